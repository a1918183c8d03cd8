"""What of a game is to be seen: by all who may see everything, or by one player."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from counterweight_env.phase import Phase
from counterweight_env.render import card_label
from counterweight_env.rules import Rules

if TYPE_CHECKING:
    from counterweight_env.game import Game
    from counterweight_env.view import View

__all__ = ["NAMES", "Scene", "Seat", "scene_of", "status"]

#: What player 0 and player 1 are called.
NAMES: Final = ("player_0", "player_1")

Cards: TypeAlias = tuple[int | None, ...]


@dataclass(frozen=True)
class Seat:
    """One player's cards; None is a card that is not seen.

    Attributes:
        hand: Sorted, unseen cards last.
        discard: Bottom first.
        blocked: Whether the other player knows that no couple fitted at this one's last turn.
    """

    hand: Cards
    discard: Cards
    blocked: bool


@dataclass(frozen=True)
class Scene:
    """All that a picture shows of one moment.

    Attributes:
        seats: Player 0's and player 1's.
        seen_from: The player who looks, who sits at the bottom; None for all cards open, player 0
            at the bottom.
        phase: As a view has it: ``WAIT`` where the player who looks is not on turn.
        chosen: The card picked for the left table card, if it is seen.
        legal: The legal actions that are seen.
    """

    rules: Rules
    seats: tuple[Seat, Seat]
    seen_from: int | None
    table: tuple[int, int]
    stock_size: int
    buried_size: int
    phase: Phase
    to_move: int
    chosen: int | None
    legal: frozenset[int]
    turn: int
    returns: tuple[float, float]
    settled: bool

    @property
    def exhausted(self) -> bool:
        """Whether the stock has run out (E1)."""
        return self.stock_size == 0

    @property
    def hand_counts(self) -> tuple[int, int]:
        """Cards in the hands of player 0 and player 1."""
        return len(self.seats[0].hand), len(self.seats[1].hand)


def scene_of(position: Game | View | Scene) -> Scene:
    """What there is to see of a game (everything) or a view (what its player knows).

    Raises:
        TypeError: The position is neither.
    """
    from counterweight_env.game import Game
    from counterweight_env.view import View

    if isinstance(position, Scene):
        return position
    if isinstance(position, Game):
        return _open_scene(position)
    if isinstance(position, View):
        return _seen_scene(position)
    raise TypeError(f"a picture shows a Game or a View, got {position!r}")


def _open_scene(game: Game) -> Scene:
    blocked = [not game.done and game.view(1 - player).opponent_blocked for player in (0, 1)]
    return Scene(
        rules=game.rules,
        seats=(
            Seat(game.hand(0), game.discard(0), blocked[0]),
            Seat(game.hand(1), game.discard(1), blocked[1]),
        ),
        seen_from=None,
        table=game.table,
        stock_size=game.stock_size,
        buried_size=len(game.buried),
        phase=game.phase,
        to_move=game.to_move,
        chosen=game.chosen,
        legal=frozenset(game.legal_actions()),
        turn=game.turn,
        returns=game.returns,
        settled=game.settled,
    )


def _seen_scene(view: View) -> Scene:
    known = view.known_in_opponent_hand
    unseen = view.opponent_hand_size - len(known)
    pile: Cards = view.opponent_discard or (None,) * view.opponent_discard_size
    own = Seat(view.hand, view.own_discard, False)
    other = Seat((*known, *[None] * unseen), pile, view.opponent_blocked)
    return Scene(
        rules=view.rules,
        seats=(own, other) if view.player == 0 else (other, own),
        seen_from=view.player,
        table=view.table,
        stock_size=view.stock_size,
        buried_size=len(view.buried),
        phase=view.phase,
        to_move=view.to_move,
        chosen=view.chosen,
        legal=frozenset(int(action) for action in view.legal_mask.nonzero()[0]),
        turn=view.turn,
        returns=view.returns,
        settled=view.settled,
    )


def status(scene: Scene) -> str:
    """Whose turn it is and what for, or how the game ended, in one short sentence."""
    if scene.to_move < 0:
        return _result(scene)
    mover = NAMES[scene.to_move]
    left, right = (card_label(card, scene.rules) for card in scene.table)
    if scene.phase == Phase.LEFT:
        return f"{mover}: choose a card for the left, on {left}"
    if scene.phase == Phase.RIGHT:
        assert scene.chosen is not None
        chosen = card_label(scene.chosen, scene.rules)
        return f"{mover}: {chosen} goes on {left}; choose a card for {right}"
    if scene.phase == Phase.DISCARD:
        what = "lay a card out of play" if scene.exhausted else "discard a card"
        return f"{mover}: no couple fits; {what}"
    if scene.phase == Phase.REFILL:
        return f"{mover}: refill from the stock or from the discard"
    return f"{mover} is on turn"


def _result(scene: Scene) -> str:
    mine, theirs = scene.hand_counts
    lead = scene.returns[0]
    if scene.settled:
        how = "with perfect play from here on"
    elif lead == 0:
        how = f"{mine} cards each" if mine != 1 else "one card each"
    else:
        how = f"{min(mine, theirs)} to {max(mine, theirs)} cards in hand"
    if lead == 0:
        return f"A draw, {how}"
    return f"{NAMES[0 if lead > 0 else 1]} wins, {how}"
