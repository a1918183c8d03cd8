"""The phases of a turn, by name."""

from enum import IntEnum

from counterweight_env import kernels

__all__ = ["Phase"]


class Phase(IntEnum):
    """What the player on turn decides."""

    LEFT = kernels.LEFT
    """Which card goes on the left table card, among those that some partner completes (T1)."""
    RIGHT = kernels.RIGHT
    """Which card goes on the right table card (T1)."""
    DISCARD = kernels.DISCARD
    """Which card to lay down, for lack of a couple (T2)."""
    REFILL = kernels.REFILL
    """Where the next refill card comes from, classic only (T4)."""
    OVER = kernels.OVER
    """Nothing: the game is over (F2)."""
    WAIT = kernels.WAIT
    """Nothing: the other player is on turn. Only views show this."""
