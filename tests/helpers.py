"""Helpers of the tests: cards as text, random decks, symmetries, and one comparison of two games.

Independent of the package: card text is parsed here again, so a fault in the package's own parser
cannot turn an expected position into another one.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from reference_game import Couple, ReferenceGame

RANK_LETTERS = "A23456789TJQK"
SUIT_LETTERS = "CDHS"


def card(text: str, ranks: int = 13) -> int:
    """Return the index of one card, "TS" is the ten of spades."""
    rank, suit = RANK_LETTERS.index(text[0]), SUIT_LETTERS.index(text[1])
    assert len(text) == 2
    assert rank < ranks
    return suit * ranks + rank


def cards(text: str, ranks: int = 13) -> list[int]:
    """Return the indexes of the cards in a text such as "TS 3H"."""
    return [card(word, ranks) for word in text.split()]


def name(index: int, ranks: int = 13) -> str:
    """Return the text of one card index."""
    return RANK_LETTERS[index % ranks] + SUIT_LETTERS[index // ranks]


def names(indexes: Iterable[int], ranks: int = 13) -> str:
    """Return the text of many card indexes, in their order."""
    return " ".join(name(index, ranks) for index in indexes)


def random_deck(rng: random.Random, deck_size: int = 52) -> list[int]:
    """Return a shuffled deck."""
    deck = list(range(deck_size))
    rng.shuffle(deck)
    return deck


def rules_text(fields: Mapping[str, Any]) -> str:
    """Return the keyword arguments of a rule set as one line, for messages."""
    return ", ".join(f"{key}={value!r}" for key, value in fields.items())


def is_legal_size(ranks: int, suits: int, hand_size: int) -> bool:
    """Say whether the rule book allows these sizes."""
    stock = ranks * suits - 2 * hand_size - 2
    return 2 <= ranks <= 13 and 1 <= suits <= 4 and hand_size >= 2 and stock >= 1


# Games of the engine ------------------------------------------------------------------------


def couples_of(game: Any) -> set[Couple]:
    """Return every couple the engine lets the player to move place, by trying each left card."""
    if game.phase.name != "LEFT":
        return set()
    couples: set[Couple] = set()
    for left in game.legal_actions():
        tried = game.copy()
        tried.step(left)
        couples.update((left, right) for right in tried.legal_actions())
    return couples


def rounded(margin: Iterable[float]) -> tuple[float, ...]:
    """Return a margin as exact numbers, whatever float type it comes in."""
    return tuple(round(float(part), 6) for part in margin)


def snapshot_of_reference(game: ReferenceGame) -> dict[str, Any]:
    """Return everything the rules say about a game at one decision, from the reference."""
    return {
        "to_move": game.to_move,
        "phase": game.phase,
        "legal": game.legal_actions(),
        "hands": (tuple(game.hands[0]), tuple(game.hands[1])),
        "discards": (tuple(game.discards[0]), tuple(game.discards[1])),
        "table": tuple(game.table),
        "stock_size": len(game.stock),
        "exhausted": game.exhausted,
        "buried": tuple(game.buried),
        "chosen": game.chosen,
        "known": (tuple(sorted(game.known[0])), tuple(sorted(game.known[1]))),
        "turn": game.turn,
        "returns": game.returns,
        "margin": rounded(game.margin),
        "done": game.done,
    }


def snapshot_of_engine(game: Any) -> dict[str, Any]:
    """Return the same facts from a `counterweight_env.Game`."""
    return {
        "to_move": int(game.to_move),
        "phase": game.phase.name,
        "legal": [int(action) for action in game.legal_actions()],
        "hands": (tuple(game.hand(0)), tuple(game.hand(1))),
        "discards": (tuple(game.discard(0)), tuple(game.discard(1))),
        "table": tuple(game.table),
        "stock_size": int(game.stock_size),
        "exhausted": bool(game.exhausted),
        "buried": tuple(game.buried),
        "chosen": game.chosen,
        "known": (tuple(sorted(game.known(0))), tuple(sorted(game.known(1)))),
        "turn": int(game.turn),
        "returns": tuple(game.returns),
        "margin": rounded(game.margin),
        "done": bool(game.done),
    }


def describe_play(fields: Mapping[str, Any], deck: Sequence[int], actions: Sequence[int]) -> str:
    """Return all that is needed to repeat a game by hand."""
    return f"rules: {rules_text(fields)}\ndeck: {list(deck)}\nactions: {list(actions)}"


def assert_same(
    reference: Mapping[str, Any],
    engine: Mapping[str, Any],
    fields: Mapping[str, Any],
    deck: Sequence[int],
    actions: Sequence[int],
) -> None:
    """Fail, with the whole game, where engine and reference differ."""
    if reference == engine:
        return
    lines = [
        f"  {key}: rule book {reference[key]!r}, engine {engine[key]!r}"
        for key in reference
        if reference[key] != engine[key]
    ]
    raise AssertionError(
        "engine and rule book differ\n"
        + "\n".join(lines)
        + "\n"
        + describe_play(fields, deck, actions)
    )


# Symmetries ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Symmetry:
    """One of the images of a deck: suits renamed, ranks perhaps flipped, sides perhaps swapped."""

    suit_to: tuple[int, ...]
    flip: bool
    swap: bool
    ranks: int

    def card(self, index: int) -> int:
        """Return the image of a card."""
        suit, rank = divmod(index, self.ranks)
        return self.suit_to[suit] * self.ranks + (self.ranks - 1 - rank if self.flip else rank)

    def couple(self, couple: Couple) -> Couple:
        """Return the image of a couple: swapping the table swaps the two cards."""
        left, right = self.card(couple[0]), self.card(couple[1])
        return (right, left) if self.swap else (left, right)

    def deck(self, deck: Sequence[int], hand_size: int) -> list[int]:
        """Return the deck that deals the image of the same game."""
        image = [self.card(index) for index in deck]
        if self.swap:
            left = 2 * hand_size
            image[left], image[left + 1] = image[left + 1], image[left]
        return image


def symmetries(ranks: int = 13, suits: int = 4) -> list[Symmetry]:
    """Return all of them: suits! x 2 x 2, that is 96 for four suits."""
    return [
        Symmetry(suit_to, flip, swap, ranks)
        for suit_to in permutations(range(suits))
        for flip in (False, True)
        for swap in (False, True)
    ]
