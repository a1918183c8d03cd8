"""The observation: one layout table, and everything that follows from it.

``FEATURES`` is the only description of the vector. The named slices, the Gymnasium space, the table
in the documentation and the encoder's offsets are all made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from counterweight_env.cards import rule_table
from counterweight_env.kernels import NO_CARD, ONE, OVER, REFILL, count_bits, kernel, lowest_bit
from counterweight_env.rules import Rules, as_rules

if TYPE_CHECKING:
    from gymnasium.spaces import Box

__all__ = ["observation_layout", "observation_size", "observation_space", "observation_table"]


class Feature(NamedTuple):
    """One named part of the observation vector."""

    name: str
    width: Callable[[Rules], int]
    meaning: str


def _deck(rules: Rules) -> int:
    return rules.deck_size


def _stock(rules: Rules) -> int:
    return rules.stock_size


def _most_in_hand(rules: Rules) -> int:
    return rules.hand_size + rules.stock_size


def _one(rules: Rules) -> int:
    return 1


def _phases(rules: Rules) -> int:
    return 4


FEATURES: Final = (
    Feature("hand", _deck, "the player's own hand, a card picked for the left included"),
    Feature("table_left", _deck, "the left table card"),
    Feature("table_right", _deck, "the right table card"),
    Feature("chosen", _deck, "the card the player has picked for the left"),
    Feature("buried", _deck, "cards under the table cards or laid out of play"),
    Feature("own_discard", _deck, "the player's own temporary discard"),
    Feature("own_discard_top", _deck, "its top card"),
    Feature("own_discard_second", _deck, "the card below its top"),
    Feature("opponent_discard", _deck, "the opponent's temporary discard; empty if discards are closed"),
    Feature("opponent_discard_top", _deck, "its top card; empty if discards are closed"),
    Feature("opponent_discard_second", _deck, "the card below its top; empty if discards are closed"),
    Feature("opponent_known", _deck, "cards known to be in the opponent's hand"),
    Feature("stock_count", _stock, "cards in the stock, unary"),
    Feature("opponent_hand_count", _most_in_hand, "cards in the opponent's hand, unary"),
    Feature("opponent_discard_count", _stock, "cards in the opponent's discard, unary"),
    Feature("phase", _phases, "LEFT, RIGHT, DISCARD, REFILL; all 0 when the player is not on turn"),
    Feature("exhausted", _one, "the stock has run out (E1)"),
    Feature("second_refill", _one, "the player refills the second of two cards"),
    Feature(
        "opponent_blocked",
        _one,
        "the opponent's last discard faced the table as it lies now, so all of their hand but the "
        "card drawn since holds no couple on it",
    ),
)
_INDEX: Final = {feature.name: i for i, feature in enumerate(FEATURES)}


@lru_cache(maxsize=256)
def _layout(rules: Rules) -> Mapping[str, slice]:
    slices = {}
    start = 0
    for feature in FEATURES:
        stop = start + feature.width(rules)
        slices[feature.name] = slice(start, stop)
        start = stop
    return MappingProxyType(slices)


def observation_layout(rules: Rules | str = "classic") -> Mapping[str, slice]:
    """Where each named part of the observation lies.

    Returns:
        A read-only mapping, in order, from feature name to its slice of the (K,) vector.
    """
    return _layout(as_rules(rules))


@lru_cache(maxsize=256)
def observation_size(rules: Rules) -> int:
    """``K``, the length of the observation vector."""
    return max(part.stop for part in _layout(rules).values())


def observation_space(rules: Rules | str = "classic") -> Box:
    """The Gymnasium space of one observation: ``Box(0, 1, (K,), int8)``."""
    from gymnasium.spaces import Box

    return Box(0, 1, (observation_size(as_rules(rules)),), np.int8)


def observation_table(rules: Rules | str = "classic") -> str:
    """The layout as a Markdown table, as the documentation shows it."""
    lines = ["| slice | width | name | meaning |", "|---|---|---|---|"]
    for feature, part in zip(FEATURES, observation_layout(rules).values(), strict=True):
        lines.append(
            f"| {part.start}:{part.stop} | {part.stop - part.start} | `{feature.name}` "
            f"| {feature.meaning} |"
        )
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=256)
def encoder_offsets(rules: Rules) -> np.ndarray:
    """The start of every feature, in the order of ``FEATURES``, for the encoder."""
    offsets = np.array([part.start for part in _layout(rules).values()], np.int64)
    offsets.flags.writeable = False
    return offsets


# --- The encoder --------------------------------------------------------------------------------

_HAND: Final = _INDEX["hand"]
_TABLE_LEFT: Final = _INDEX["table_left"]
_TABLE_RIGHT: Final = _INDEX["table_right"]
_CHOSEN: Final = _INDEX["chosen"]
_BURIED: Final = _INDEX["buried"]
_OWN_DISCARD: Final = _INDEX["own_discard"]
_OWN_TOP: Final = _INDEX["own_discard_top"]
_OWN_SECOND: Final = _INDEX["own_discard_second"]
_OPPONENT_DISCARD: Final = _INDEX["opponent_discard"]
_OPPONENT_TOP: Final = _INDEX["opponent_discard_top"]
_OPPONENT_SECOND: Final = _INDEX["opponent_discard_second"]
_OPPONENT_KNOWN: Final = _INDEX["opponent_known"]
_STOCK_COUNT: Final = _INDEX["stock_count"]
_OPPONENT_HAND_COUNT: Final = _INDEX["opponent_hand_count"]
_OPPONENT_DISCARD_COUNT: Final = _INDEX["opponent_discard_count"]
_PHASE: Final = _INDEX["phase"]
_EXHAUSTED: Final = _INDEX["exhausted"]
_SECOND_REFILL: Final = _INDEX["second_refill"]
_OPPONENT_BLOCKED: Final = _INDEX["opponent_blocked"]


@kernel
def spread(mask, row, start):
    """Writes a 1 for every card of a mask into a row of zeros."""
    while mask:
        row[start + lowest_bit(mask)] = 1
        mask &= mask - ONE


@kernel
def unary(count, row, start):
    """Writes `count` ones into a row of zeros."""
    for i in range(start, start + count):
        row[i] = 1


@kernel
def opponent_hand_size(game, table, player):
    """Cards in the other hand, from what `player` sees: all that lie nowhere else."""
    elsewhere = count_bits(game["hand"][player] | game["buried"]) + 2
    piles = np.int64(game["discard_size"][0]) + np.int64(game["discard_size"][1])
    return table["deck_size"] - elsewhere - np.int64(game["stock_size"]) - piles


@kernel
def encode(game, table, offsets, player, row):
    """Writes the observation of one player into a row of length K.

    Reads nothing that `player` does not know, so that a game and its view encode alike.
    """
    row[:] = 0
    opponent = 1 - player
    spread(game["hand"][player], row, offsets[_HAND])
    row[offsets[_TABLE_LEFT] + game["table"][0]] = 1
    row[offsets[_TABLE_RIGHT] + game["table"][1]] = 1
    spread(game["buried"], row, offsets[_BURIED])
    spread(game["known"][opponent], row, offsets[_OPPONENT_KNOWN])

    own_size = np.int64(game["discard_size"][player])
    spread(game["discarded"][player], row, offsets[_OWN_DISCARD])
    if own_size > 0:
        row[offsets[_OWN_TOP] + game["discard"][player, own_size - 1]] = 1
    if own_size > 1:
        row[offsets[_OWN_SECOND] + game["discard"][player, own_size - 2]] = 1
    their_size = np.int64(game["discard_size"][opponent])
    if table["open_discards"]:
        spread(game["discarded"][opponent], row, offsets[_OPPONENT_DISCARD])
        if their_size > 0:
            row[offsets[_OPPONENT_TOP] + game["discard"][opponent, their_size - 1]] = 1
        if their_size > 1:
            row[offsets[_OPPONENT_SECOND] + game["discard"][opponent, their_size - 2]] = 1

    unary(np.int64(game["stock_size"]), row, offsets[_STOCK_COUNT])
    unary(opponent_hand_size(game, table, player), row, offsets[_OPPONENT_HAND_COUNT])
    unary(their_size, row, offsets[_OPPONENT_DISCARD_COUNT])
    if game["to_move"] == player and game["phase"] < OVER:
        row[offsets[_PHASE] + game["phase"]] = 1
        if game["chosen"] != NO_CARD:
            row[offsets[_CHOSEN] + game["chosen"]] = 1
        if game["phase"] == REFILL and game["refills"] == 1:
            row[offsets[_SECOND_REFILL]] = 1
    if game["stock_size"] == 0:
        row[offsets[_EXHAUSTED]] = 1
    if game["fresh"][opponent] != NO_CARD:
        row[offsets[_OPPONENT_BLOCKED]] = 1


@kernel
def encode_games(games, tables, offsets, players, out):
    """Encodes every game for the given player of each row."""
    for i in range(games.size):
        encode(games[i], tables[0], offsets, np.int64(players[i]), out[i])


@kernel
def encode_movers(games, tables, offsets, out):
    """Encodes every game for its mover; a finished game for player 0."""
    for i in range(games.size):
        player = np.int64(games[i]["to_move"])
        encode(games[i], tables[0], offsets, max(player, 0), out[i])


def encode_batch(
    games: np.ndarray, rules: Rules, players: np.ndarray | None, out: np.ndarray
) -> np.ndarray:
    """Encodes a state array into ``out`` (B, K) int8, from each mover's side if no players are given."""
    table, offsets = rule_table(rules), encoder_offsets(rules)
    if players is None:
        encode_movers(games, table, offsets, out)
    else:
        encode_games(games, table, offsets, players, out)
    return out
