"""Card and action names, and the geometry of a deck: what lies above, below or beside each card.

A card is an index ``suit * ranks + rank``; ranks run from the ace (0) upward, suits are clubs,
diamonds, hearts, spades (0..3). A set of cards is a 64-bit mask, bit = card index.
"""

from __future__ import annotations

from functools import lru_cache
from operator import index
from typing import Final

import numpy as np

from counterweight_env.rules import CLASSIC, Rules

__all__ = ["action_name", "card_name", "parse_action", "parse_card"]

RANK_LETTERS: Final = "A23456789TJQK"
SUIT_LETTERS: Final = "CDHS"
SUIT_SYMBOLS: Final = "♣♦♥♠"
STOCK_NAME: Final = "STOCK"
RECLAIM_NAME: Final = "RECLAIM"

#: A rule set as the kernels take it: plain numbers, and a mask per card. One compiled kernel set
#: serves every variant and size because all that differs is in here.
RULE_TABLE: Final = np.dtype(
    [
        ("deck_size", np.int64),
        ("ranks", np.int64),
        ("suits", np.int64),
        ("hand_size", np.int64),
        ("stock_size", np.int64),
        ("exchange", np.uint8),
        ("open_discards", np.uint8),
        ("discard_when_blocked", np.uint8),
        ("all_ranks", np.uint64),  # the mask of one suit
        ("rank_of", np.uint8, 64),  # per card
        ("rank_column", np.uint64),  # times a mask of ranks: those ranks in every suit
        ("above", np.uint64, 64),  # per card: same suit, strictly higher (C2)
        ("below", np.uint64, 64),  # per card: same suit, strictly lower (C2)
        ("same_rank", np.uint64, 64),  # per card: all cards of its rank, itself included (C1)
    ],
    align=True,
)


@lru_cache(maxsize=256)
def rule_table(rules: Rules) -> np.ndarray:
    """The rules as a read-only array of shape (1,) and dtype ``RULE_TABLE``."""
    table = np.zeros(1, RULE_TABLE)
    row = table[0]
    row["deck_size"] = rules.deck_size
    row["ranks"] = rules.ranks
    row["suits"] = rules.suits
    row["hand_size"] = rules.hand_size
    row["stock_size"] = rules.stock_size
    row["exchange"] = rules.variant == "exchange"
    row["open_discards"] = rules.open_discards
    row["discard_when_blocked"] = rules.blocked == "discard"
    row["all_ranks"] = (1 << rules.ranks) - 1
    row["rank_column"] = sum(1 << (suit * rules.ranks) for suit in range(rules.suits))
    for card in range(rules.deck_size):
        suit, rank = divmod(card, rules.ranks)
        base = suit * rules.ranks
        row["rank_of"][card] = rank
        row["above"][card] = sum(1 << (base + r) for r in range(rank + 1, rules.ranks))
        row["below"][card] = sum(1 << (base + r) for r in range(rank))
        row["same_rank"][card] = sum(1 << (s * rules.ranks + rank) for s in range(rules.suits))
    table.flags.writeable = False
    return table


def card_name(card: int, rules: Rules = CLASSIC) -> str:
    """The two-letter name of a card index, such as ``"TD"``.

    Raises:
        ValueError: ``card`` is not an index of this deck.
    """
    try:
        number = index(card)
    except TypeError:
        number = -1
    if not 0 <= number < rules.deck_size:
        raise ValueError(f"card must be an int from 0 to {rules.deck_size - 1}, got {card!r}")
    suit, rank = divmod(number, rules.ranks)
    return RANK_LETTERS[rank] + SUIT_LETTERS[suit]


def parse_card(text: str, rules: Rules = CLASSIC) -> int:
    """The index of a card name such as ``"TD"``, ``"10D"``, ``"as"`` or ``"10♦"``.

    Raises:
        ValueError: No card is called so, or it is not in this deck.
    """
    cleaned = text.strip().upper() if isinstance(text, str) else ""
    rank_text, suit_text = cleaned[:-1], cleaned[-1:]
    rank = RANK_LETTERS.find("T" if rank_text == "10" else rank_text) if rank_text else -1
    suit = max(SUIT_LETTERS.find(suit_text), SUIT_SYMBOLS.find(suit_text)) if suit_text else -1
    if rank < 0 or suit < 0 or (len(rank_text) != 1 and rank_text != "10"):
        raise ValueError(f'a card reads like "AC", "TD" or "10D", got {text!r}')
    if rank >= rules.ranks or suit >= rules.suits:
        raise ValueError(f"card {text!r} is not in the deck of {rules}")
    return suit * rules.ranks + rank


def as_card(card: int | str, rules: Rules) -> int:
    """Takes a card as an index or as text; refuses anything else by name."""
    if isinstance(card, str):
        return parse_card(card, rules)
    card_name(card, rules)
    return index(card)


def action_name(action: int, rules: Rules = CLASSIC) -> str:
    """The text form of an action: a card name, ``"STOCK"`` or ``"RECLAIM"``.

    Raises:
        ValueError: ``action`` is not from 0 to ``rules.num_actions - 1``.
    """
    try:
        number = index(action)
    except TypeError:
        number = -1
    if number == rules.stock_action:
        return STOCK_NAME
    if number == rules.reclaim_action:
        return RECLAIM_NAME
    if not 0 <= number < rules.deck_size:
        raise ValueError(f"action must be an int from 0 to {rules.num_actions - 1}, got {action!r}")
    return card_name(number, rules)


def parse_action(text: str, rules: Rules = CLASSIC) -> int:
    """Reads what ``action_name`` writes, in upper or lower case.

    Raises:
        ValueError: The text names neither a card of this deck nor STOCK nor RECLAIM.
    """
    word = text.strip().upper() if isinstance(text, str) else ""
    if word == STOCK_NAME:
        return rules.stock_action
    if word == RECLAIM_NAME:
        return rules.reclaim_action
    try:
        return parse_card(text, rules)
    except ValueError as error:
        raise ValueError(
            f"{error} (an action may also be {STOCK_NAME} or {RECLAIM_NAME})"
        ) from None


def mask_of(cards: object) -> int:
    """The mask of an iterable of card indexes."""
    mask = 0
    for card in cards:  # type: ignore[attr-defined]
        mask |= 1 << card
    return mask


def cards_of(mask: int) -> tuple[int, ...]:
    """The card indexes in a mask, ascending."""
    mask = int(mask)
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return tuple(found)
