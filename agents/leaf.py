"""What an exhausted position is worth, in microseconds: proven bounds, or an estimate in them.

A search asks this at the end of every rollout. Thirty nodes of the exact solver settle a third of
all exhausted positions; where bounds stay apart, a linear estimate over a few counts stands in,
kept within the bounds. Where even thirty nodes are too dear, :func:`estimate` has the counts alone.
The weights are fitted to solved positions by ``python -m benchmarks.leaf``, which prints how much
of the variance of the exact value each part explains.
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

__all__ = ["COUNTS", "FEATURES", "STAGES", "estimate", "leaf_value", "weights_for"]

COUNTS: Final = 13
FEATURES: Final = 2 + COUNTS

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


#: Cards in both hands up to which :func:`estimate` takes its first weights, and its second ones.
STAGES: Final = (16, 24)
#: Fitted weights of the counts alone: [exchange, stage, count].
ESTIMATE: Final = np.array(
    [
        [
            (
                -0.218,
                0.401,
                0.441,
                0.209,
                0.005,
                0.814,
                -0.685,
                0.184,
                0.022,
                0.183,
                -0.521,
                0.428,
                -0.023,
            ),
            (
                0.394,
                -0.348,
                0.207,
                0.102,
                -0.030,
                0.901,
                -0.739,
                0.041,
                0.019,
                -0.079,
                -0.175,
                0.301,
                -0.229,
            ),
            (
                0.507,
                -0.316,
                -0.115,
                0.060,
                0.003,
                0.886,
                -0.630,
                -0.040,
                0.044,
                -0.142,
                0.014,
                -0.011,
                -0.160,
            ),
        ],
        [
            (
                0.304,
                0.026,
                0.188,
                0.151,
                0.000,
                1.027,
                -0.520,
                0.116,
                -0.233,
                -0.646,
                -1.013,
                0.937,
                -0.122,
            ),
            (
                1.144,
                -1.299,
                -0.090,
                0.056,
                -0.006,
                0.845,
                -0.515,
                -0.033,
                0.189,
                -0.420,
                -1.148,
                1.177,
                -0.031,
            ),
            (
                0.716,
                -0.548,
                -0.341,
                0.066,
                0.001,
                0.585,
                -0.399,
                0.164,
                0.604,
                -0.668,
                -0.947,
                0.775,
                0.034,
            ),
        ],
    ]
)


@kernel
def count_ending(mine, other, own, other_now, out):
    """Counts that say something of an exhausted position, from the mover's side.

    Hand sizes, parity, couples on the table, and ranks: in pairs, held at all, and held by both.

    Args:
        mine: The mover's hand, in lanes.
        other: The other hand, in lanes.
        own: The mover's couples on the table.
        other_now: The couples that the other player would have there.
        out: (COUNTS,) float64.
    """
    my_cards = count_bits(mine)
    other_cards = count_bits(other)
    lead = other_cards - my_cards
    my_ranks = ranks_in(mine)
    other_ranks = ranks_in(other)
    out[0] = my_cards / 20
    out[1] = other_cards / 20
    out[2] = min(max(lead, -4), 4) / 4
    out[3] = lead == 0
    out[4] = my_cards % 2
    out[5] = min(own, 8) / 8
    out[6] = min(other_now, 8) / 8
    out[7] = other_now == 0
    out[8] = count_bits(paired_ranks(mine)) / 6
    out[9] = count_bits(paired_ranks(other)) / 6
    out[10] = count_bits(my_ranks) / 6
    out[11] = count_bits(other_ranks) / 6
    out[12] = count_bits(my_ranks & other_ranks) / 6


@kernel
def estimate(mine, other, own, other_now, exchange, scratch):
    """A guess at the value for the mover, who has a couple, by counts alone; from -1 to 1.

    Args:
        mine: The mover's hand, in lanes.
        other: The other hand, in lanes.
        own: The mover's couples on the table.
        other_now: The couples that the other player would have there.
        exchange: Whether C3 and C4 are in force.
        scratch: (COUNTS,) float64.
    """
    count_ending(mine, other, own, other_now, scratch)
    cards = count_bits(mine) + count_bits(other)
    stage = np.int64(cards > STAGES[0]) + np.int64(cards > STAGES[1])
    value = 0.0
    for i in range(COUNTS):
        value += ESTIMATE[np.int64(exchange), stage, i] * scratch[i]
    return min(max(value, -1.0), 1.0)


@kernel
def leaf_features(table, game, low, high, out):
    """Two marks of the bounds, then what :func:`count_ending` counts.

    (A mover who is not over has a couple, and with hands that differ by an odd number one question
    decides, so there is nothing more to mark.)
    """
    player = np.int64(game["to_move"])
    width = table["ranks"]
    mine = to_lanes(game["hand"][player], width)
    other = to_lanes(game["hand"][1 - player], width)
    left = np.int64(game["table"][0])
    right = np.int64(game["table"][1])
    left = left // width * 16 + left % width
    right = right // width * 16 + right % width
    out[0] = low == -1 and high == 0
    out[1] = low == -1 and high == 1
    own = count_all(mine, left, right, table["exchange"])
    other_now = count_all(other, left, right, table["exchange"])
    count_ending(mine, other, own, other_now, out[2:])


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
