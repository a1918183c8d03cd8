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

from counterweight_env.bits import store_bits
from counterweight_env.cards import rule_table
from counterweight_env.kernels import (
    DISCARD,
    LEFT,
    NO_CARD,
    ONE,
    REFILL,
    WAIT,
    ZERO,
    bit,
    count_bits,
    kernel,
    left_cards,
    lowest_bit,
    right_cards,
)
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
    Feature(
        "opponent_discard", _deck, "the opponent's temporary discard; empty if discards are closed"
    ),
    Feature("opponent_discard_top", _deck, "its top card; empty if discards are closed"),
    Feature(
        "opponent_discard_second", _deck, "the card below its top; empty if discards are closed"
    ),
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


#: Stands in a redacted record for a card that the player has not seen.
UNSEEN: Final = 254


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
def place(row, start, mask, tail):
    """Writes the bits of a mask as 64 bytes of a row, from entry `start` on.

    Features are placed in their order in the row, so the next one overwrites what is too much of
    this one. What reaches into the last 64 entries is gathered in `tail`, which is returned, since
    nothing may be written past the end.
    """
    before_last = row.size - 64 - start
    if before_last >= 64:  # nearly always
        store_bits(row, start, mask)
        return tail
    if before_last >= 0:
        store_bits(row, start, mask)
        return tail | (mask >> np.uint64(before_last))
    return tail | (mask << np.uint64(-before_last))


@kernel
def unary(count):
    """A mask of `count` ones."""
    return (ONE << np.uint64(count)) - ONE


@kernel
def only_if(condition, mask):
    """The mask if the condition holds, else nothing; without a branch to predict."""
    return mask & (ZERO - np.uint64(condition))


@kernel
def from_top(game, owner, depth):
    """The mask of the card at a depth, from 1, of a discard; empty if the pile is smaller."""
    place = np.int64(game["discard_size"][owner]) - depth
    return only_if(place >= 0, bit(game["discard"][owner, max(place, 0)]))


@kernel
def opponent_hand_size(game, table, player):
    """Cards in the other hand, from what `player` sees: all that lie nowhere else."""
    elsewhere = count_bits(game["hand"][player] | game["buried"]) + 2
    piles = np.int64(game["discard_size"][0]) + np.int64(game["discard_size"][1])
    return table["deck_size"] - elsewhere - np.int64(game["stock_size"]) - piles


@kernel
def encode(game, table, offsets, player, row):
    """Writes the observation of one player into a row of K bytes, K at least 64.

    Reads nothing that `player` does not know, so that a game and its view encode alike.
    """
    opponent = 1 - player
    on_turn = game["to_move"] == player
    chosen = game["chosen"]
    tail = ZERO
    tail = place(row, offsets[_HAND], game["hand"][player], tail)
    tail = place(row, offsets[_TABLE_LEFT], bit(game["table"][0]), tail)
    tail = place(row, offsets[_TABLE_RIGHT], bit(game["table"][1]), tail)
    picked = only_if(on_turn and chosen != NO_CARD, bit(chosen & 63))
    tail = place(row, offsets[_CHOSEN], picked, tail)
    tail = place(row, offsets[_BURIED], game["buried"], tail)

    tail = place(row, offsets[_OWN_DISCARD], game["discarded"][player], tail)
    tail = place(row, offsets[_OWN_TOP], from_top(game, player, 1), tail)
    tail = place(row, offsets[_OWN_SECOND], from_top(game, player, 2), tail)
    seen = table["open_discards"] != 0
    pile = only_if(seen, game["discarded"][opponent])
    tail = place(row, offsets[_OPPONENT_DISCARD], pile, tail)
    tail = place(row, offsets[_OPPONENT_TOP], only_if(seen, from_top(game, opponent, 1)), tail)
    tail = place(row, offsets[_OPPONENT_SECOND], only_if(seen, from_top(game, opponent, 2)), tail)
    tail = place(row, offsets[_OPPONENT_KNOWN], game["known"][opponent], tail)

    tail = place(row, offsets[_STOCK_COUNT], unary(game["stock_size"]), tail)
    size = opponent_hand_size(game, table, player)
    tail = place(row, offsets[_OPPONENT_HAND_COUNT], unary(size), tail)
    size = np.int64(game["discard_size"][opponent])
    tail = place(row, offsets[_OPPONENT_DISCARD_COUNT], unary(size), tail)

    phase = game["phase"]
    tail = place(row, offsets[_PHASE], only_if(on_turn, bit(phase)), tail)
    tail = place(row, offsets[_EXHAUSTED], only_if(game["stock_size"] == 0, ONE), tail)
    second = on_turn and phase == REFILL and game["refills"] == 1
    tail = place(row, offsets[_SECOND_REFILL], only_if(second, ONE), tail)
    blocked = game["fresh"][opponent] != NO_CARD
    tail = place(row, offsets[_OPPONENT_BLOCKED], only_if(blocked, ONE), tail)
    store_bits(row, row.size - 64, tail)


@kernel
def encode_games(tables, offsets, games, players, out):
    """Writes the observation of each row's player into a row of K bytes.

    With no players it is the mover of each game, and player 0 of a finished one.
    """
    for i in range(games.size):
        player = np.int64(players[i]) if players.size else max(np.int64(games[i]["to_move"]), 0)
        encode(games[i], tables[0], offsets, player, out[i])


MOVERS: Final = np.empty(0, np.int8)


def encode_batch(
    games: np.ndarray,
    rules: Rules,
    players: np.ndarray | None,
    out: np.ndarray,
) -> np.ndarray:
    """Encodes a state array into ``out`` (B, K) int8 for (B,) int8 players.

    From each mover's side if no players are given; from player 0's for a finished game.
    """
    sides = MOVERS if players is None else players
    encode_games(rule_table(rules), encoder_offsets(rules), games, sides, out)
    return out


# --- Back again ---------------------------------------------------------------------------------


@kernel
def gather(row, start, width):
    """The mask of the entries of a row that are not 0, from entry `start` on."""
    mask = ZERO
    for i in range(width):
        mask |= np.uint64(row[start + i] != 0) << np.uint64(i)
    return mask


@kernel
def decode(row, table, offsets, game):
    """Reads an observation back into a record in which player 0 is the one who observes.

    What the observation does not tell stays as a redacted record has it, but for the order of the
    discards, of which only the two top cards are told. Encoding the record gives the row again.
    Nothing is checked: the row must be an observation.

    Args:
        row: (K,) int8.
        table: One ``RULE_TABLE`` record.
        offsets: As :func:`encoder_offsets`.
        game: A ``STATE`` record to write to, all 0.
    """
    deck = table["deck_size"]
    hand = gather(row, offsets[_HAND], deck)
    left = gather(row, offsets[_TABLE_LEFT], deck)
    right = gather(row, offsets[_TABLE_RIGHT], deck)
    chosen = gather(row, offsets[_CHOSEN], deck)
    game["hand"][0] = hand
    game["hand"][1] = gather(row, offsets[_OPPONENT_KNOWN], deck)
    game["known"][1] = game["hand"][1]
    game["buried"] = gather(row, offsets[_BURIED], deck)
    game["table"][0] = lowest_bit(left)
    game["table"][1] = lowest_bit(right)
    game["chosen"] = lowest_bit(chosen) if chosen else NO_CARD
    stock = table["stock_size"]
    game["stock_size"] = count_bits(gather(row, offsets[_STOCK_COUNT], stock))
    game["discarded"][0] = gather(row, offsets[_OWN_DISCARD], deck)
    game["discarded"][1] = gather(row, offsets[_OPPONENT_DISCARD], deck)
    game["discard_size"][0] = count_bits(game["discarded"][0])
    game["discard_size"][1] = count_bits(gather(row, offsets[_OPPONENT_DISCARD_COUNT], stock))
    for owner in range(2):
        size = np.int64(game["discard_size"][owner])
        for depth in range(1, 3):
            feature = _OWN_TOP if owner == 0 else _OPPONENT_TOP
            card = gather(row, offsets[feature + depth - 1], deck)
            if card:
                game["discard"][owner, size - depth] = lowest_bit(card)
    game["fresh"][0] = NO_CARD
    game["fresh"][1] = UNSEEN if row[offsets[_OPPONENT_BLOCKED]] else NO_CARD
    phases = gather(row, offsets[_PHASE], 4)
    if phases == ZERO:
        game["phase"] = WAIT
        game["to_move"] = 1
        return
    phase = lowest_bit(phases)
    game["phase"] = phase
    if phase == REFILL:
        game["refills"] = 1 if row[offsets[_SECOND_REFILL]] else 2
        game["legal"] = np.uint64(3) << np.uint64(deck)
    elif phase == DISCARD:
        game["legal"] = hand
    elif phase == LEFT:
        game["legal"] = left_cards(table, hand, game["table"][0], game["table"][1])
    else:
        game["legal"] = right_cards(
            table, hand, game["table"][0], game["table"][1], np.int64(game["chosen"])
        )
