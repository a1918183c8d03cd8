"""Positions given by hand: which are possible, and why the others are refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from counterweight_env.cards import as_card, card_name, mask_of
from counterweight_env.kernels import NO_CARD, STATE
from counterweight_env.rules import Rules

__all__ = ["build_record", "reachable_sizes"]

Card = int | str


def build_record(
    rules: Rules,
    hands: Sequence[Iterable[Card]],
    table: Sequence[Card],
    stock: Iterable[Card],
    discards: Sequence[Iterable[Card]],
    buried: Iterable[Card] | None,
) -> np.ndarray:
    """Lays cards out as a state array of shape (1,), without putting anyone on turn.

    Raises:
        ValueError: A card is unknown, stands twice or is missing, or there are not two hands, two
            discards and two table cards. The message names the card and its places.
    """
    for name, value in (("hands", hands), ("discards", discards), ("table", table)):
        if isinstance(value, str) or len(value) != 2:
            raise ValueError(f"{name} must have 2 entries, got {value!r}")
    places = {
        "hand of player 0": [as_card(card, rules) for card in hands[0]],
        "hand of player 1": [as_card(card, rules) for card in hands[1]],
        "table": [as_card(card, rules) for card in table],
        "stock": [as_card(card, rules) for card in stock],
        "discard of player 0": [as_card(card, rules) for card in discards[0]],
        "discard of player 1": [as_card(card, rules) for card in discards[1]],
        "buried": [] if buried is None else [as_card(card, rules) for card in buried],
    }
    place_of: dict[int, str] = {}
    for place, cards in places.items():
        for card in cards:
            if card in place_of:
                raise ValueError(
                    f"card {card_name(card, rules)} stands twice: in {place_of[card]}, in {place}"
                )
            place_of[card] = place
    rest = [card for card in range(rules.deck_size) if card not in place_of]
    if buried is None:
        places["buried"] = rest
    elif rest:
        names = " ".join(card_name(card, rules) for card in rest)
        raise ValueError(f"cards are lost: {names} are in no hand, pile, table or buried")
    for owner in range(2):
        pile = places[f"discard of player {owner}"]
        if len(pile) > rules.stock_size:
            raise ValueError(
                f"unreachable sizes: {len(pile)} cards in the discard of player {owner}, but only "
                f"{rules.stock_size} stock cards to discard for"
            )
    if len(places["stock"]) > rules.stock_size:
        raise ValueError(
            f"unreachable sizes: {len(places['stock'])} stock cards, "
            f"but the deal leaves {rules.stock_size}"
        )

    state = np.zeros(1, STATE)
    game = state[0]
    for player in range(2):
        pile = places[f"discard of player {player}"]
        game["hand"][player] = mask_of(places[f"hand of player {player}"])
        game["discarded"][player] = mask_of(pile)
        game["discard"][player, : len(pile)] = pile
        game["discard_size"][player] = len(pile)
        game["fresh"][player] = NO_CARD
    game["table"] = places["table"]
    game["buried"] = mask_of(places["buried"])
    game["stock_size"] = len(places["stock"])
    game["stock"][: len(places["stock"])] = places["stock"][::-1]
    game["chosen"] = NO_CARD
    return state


@lru_cache(maxsize=64)
def reachable_sizes(rules: Rules) -> tuple[frozenset, frozenset]:
    """All counts of cards that can stand at the start of a turn.

    Before exhaustion both hands are full, and a position is ``(stock, discard of the player to
    move, other discard)``; after it, ``(hand of the player to move, other hand)``. What is buried
    follows. Counts only: whether the cards at hand permit each move is not asked.

    Returns:
        The reachable counts before and after exhaustion. Finished games are among the latter, as
        either player's turn.
    """
    classic = rules.variant == "classic"
    size = rules.hand_size

    def exhausted(hand: int, other_hand: int, pile: int, other_pile: int) -> tuple[int, int]:
        """Sizes after the mover's last draw, from the side of the player who is next."""
        if not classic:
            pile, other_pile = other_pile, pile
        return other_hand + other_pile, hand + pile

    running = {(rules.stock_size, 0, 0)}
    ended: set[tuple[int, int]] = set()
    todo = list(running)
    while todo:
        stock, pile, other_pile = todo.pop()
        reached = []
        if stock == 1:
            ended.add(exhausted(size, size, pile + 1, other_pile))
        else:
            reached.append((stock - 1, other_pile, pile + 1))
        # The refill of a couple, as (stock left, pile left, cards refilled).
        refills = [(stock, pile, 0)]
        while refills:
            stock_left, pile_left, refilled = refills.pop()
            if stock_left == 0:
                ended.add(exhausted(size - 2 + refilled, size, pile_left, other_pile))
            elif refilled == 2:
                reached.append((stock_left, other_pile, pile_left))
            else:
                refills.append((stock_left - 1, pile_left, refilled + 1))
                if classic and pile_left > 0:
                    refills.append((stock_left, pile_left - 1, refilled + 1))
        for sizes in reached:
            if sizes not in running:
                running.add(sizes)
                todo.append(sizes)
    todo_ended = list(ended)
    while todo_ended:
        mine, theirs = todo_ended.pop()
        # A couple; a blocked player passes, or lays one card out of play.
        blocked = mine - 1 if rules.blocked == "discard" else mine
        reached_ended = [(theirs, mine - 2), (theirs, blocked)]
        for hands in reached_ended:
            if min(hands) >= 0 and hands not in ended:
                ended.add(hands)
                if min(hands) > 0:
                    todo_ended.append(hands)
    return frozenset(running), frozenset(ended)


def check_sizes(rules: Rules, game: np.ndarray, to_move: int) -> None:
    """Refuses card counts that no game reaches at the start of a turn.

    Raises:
        ValueError: The message names the counts.
    """
    hands = [int(mask).bit_count() for mask in game["hand"]]
    piles = [int(size) for size in game["discard_size"]]
    stock = int(game["stock_size"])
    buried = int(game["buried"]).bit_count()
    counts = (
        f"hands of {hands[0]} and {hands[1]}, discards of {piles[0]} and {piles[1]}, "
        f"{stock} in the stock, {buried} buried, player {to_move} to move"
    )
    running, ended = reachable_sizes(rules)
    other = 1 - to_move
    if stock > 0:
        if hands != [rules.hand_size] * 2:
            raise ValueError(
                f"unreachable sizes: before exhaustion both hands have {rules.hand_size} cards "
                f"({counts})"
            )
        possible = (stock, piles[to_move], piles[other]) in running
    else:
        if any(piles):
            raise ValueError(f"unreachable sizes: no discards after exhaustion ({counts})")
        possible = (hands[to_move], hands[other]) in ended
        if 0 in hands:  # a finished game is nobody's turn
            possible = possible or (hands[other], hands[to_move]) in ended
    if not possible:
        raise ValueError(f"unreachable sizes: no game of {rules} gets to {counts}")
