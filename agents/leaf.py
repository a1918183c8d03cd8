"""What an exhausted position is worth, in microseconds: proven bounds, or an estimate in them.

A search asks this at the end of every rollout. Thirty nodes of the exact solver settle a third of
all exhausted positions; where bounds stay apart, a linear estimate over a few counts stands in,
kept within the bounds. The weights are fitted to solved positions by ``python -m benchmarks.leaf``,
which prints how much of the variance of the exact value each part explains.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from counterweight_env.endgame import (
    count_all,
    paired_ranks,
    position_bounds,
    ranks_in,
    to_lanes,
)
from counterweight_env.kernels import OVER, count_bits, kernel, outcome

__all__ = ["FEATURES", "leaf_value", "weights_for"]

FEATURES: Final = 15

#: Fitted weights, in the order of :func:`leaf_features`.
WEIGHTS: Final = {
    "classic": (
        -1.168,
        -0.640,
        0.763,
        -0.787,
        -0.321,
        0.046,
        -0.001,
        0.573,
        -0.392,
        -0.023,
        -0.069,
        -0.065,
        0.163,
        0.618,
        -0.469,
    ),
    "exchange": (
        -0.369,
        -0.041,
        1.329,
        -1.061,
        -0.332,
        0.001,
        -0.009,
        0.324,
        -0.224,
        -0.021,
        0.476,
        -0.609,
        -1.205,
        1.159,
        -0.008,
    ),
}
NO_WEIGHTS: Final = np.empty(0)


def weights_for(variant: str, blocked: str) -> np.ndarray:
    """The weights for a rule set; none for ``blocked="discard"``, which they were not fitted to."""
    return np.array(WEIGHTS[variant]) if blocked == "pass" else NO_WEIGHTS


@kernel
def leaf_features(table, game, low, high, out):
    """Counts that say something of an exhausted position, from the mover's side.

    Two mark the bounds; the others are hand sizes, parity, couples on the table, and ranks: in
    pairs, held at all, and held by both. (A mover who is not over has a couple, and with hands that
    differ by an odd number one question decides, so there is nothing more to mark.)
    """
    player = np.int64(game["to_move"])
    width = table["ranks"]
    mine = to_lanes(game["hand"][player], width)
    other = to_lanes(game["hand"][1 - player], width)
    left = np.int64(game["table"][0])
    right = np.int64(game["table"][1])
    left = left // width * 16 + left % width
    right = right // width * 16 + right % width
    my_cards = count_bits(mine)
    other_cards = count_bits(other)
    lead = other_cards - my_cards
    other_now = count_all(other, left, right, table["exchange"])
    out[0] = low == -1 and high == 0
    out[1] = low == -1 and high == 1
    out[2] = my_cards / 20
    out[3] = other_cards / 20
    out[4] = min(max(lead, -4), 4) / 4
    out[5] = lead == 0
    out[6] = my_cards % 2
    out[7] = min(count_all(mine, left, right, table["exchange"]), 8) / 8
    out[8] = min(other_now, 8) / 8
    out[9] = other_now == 0
    out[10] = count_bits(paired_ranks(mine)) / 6
    out[11] = count_bits(paired_ranks(other)) / 6
    out[12] = count_bits(ranks_in(mine)) / 6
    out[13] = count_bits(ranks_in(other)) / 6
    out[14] = count_bits(ranks_in(mine) & ranks_in(other)) / 6


@kernel
def leaf_value(memory, table, game, nodes, weights, scratch):
    """The value of an exhausted game for player 0: exact, or estimated within proven bounds.

    Args:
        memory: A solver's memory, as ``Workspace(...).memory``.
        table: One ``RULE_TABLE`` record.
        game: One ``STATE`` record without stock, at the start of a turn or over.
        nodes: Positions to look at, at most.
        weights: As :func:`weights_for`; the middle of the bounds stands in if there are none.
        scratch: (FEATURES,) float64.

    Returns:
        A float from -1 to 1.
    """
    if game["phase"] == OVER:
        return float(outcome(game))
    low, high = position_bounds(memory, table, game, False, nodes)
    value = 0.5 * (low + high)
    if low < high and weights.size:
        leaf_features(table, game, low, high, scratch)
        value = 0.0
        for i in range(FEATURES):
            value += weights[i] * scratch[i]
        value = min(max(value, float(low)), float(high))
    return value if game["to_move"] == 0 else -value
