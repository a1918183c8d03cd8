"""Players that follow a few plain thoughts: opponents to begin with, and marks to measure against.

None of them remembers anything between decisions, and none knows more than its view. Each decision
follows from the view and its random bits alone; whatever a thought leaves equal, the bits decide,
evenly.

All but :class:`Random` and :class:`Patient` always reclaim (T4): a reclaimed card adds nothing to
the cards that must be got rid of, a stock card adds one. Clause numbers are those of the rule book
in ``docs/rules.md``.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from counterweight_env.cards import rule_table
from counterweight_env.kernels import (
    DISCARD,
    LEFT,
    ONE,
    REFILL,
    ZERO,
    bit,
    count_bits,
    kernel,
    left_cards,
    lowest_bit,
    nth_bit,
    random_below,
    right_cards,
)
from counterweight_env.view import ViewBatch

__all__ = ["Cautious", "Greedy", "Keeper", "Patient", "Random"]

GREEDY: Final = 0
KEEPER: Final = 1
CAUTIOUS: Final = 2
PATIENT: Final = 3

LEAST: Final = -(2**40)
DECIDED: Final = 2**20  # outweighs any count of couples
FIRST_COUNT: Final = 2**12  # makes one count weigh more than all of a second one


# --- Counting -----------------------------------------------------------------------------------


@kernel
def opponent_cards(game, table, player):
    """The cards that the opponent may hold or draw; after exhaustion exactly their hand (E3)."""
    seen = game["hand"][player] | game["buried"]
    seen |= bit(game["table"][0]) | bit(game["table"][1])
    seen |= game["discarded"][0] | game["discarded"][1]
    return ((ONE << np.uint64(table["deck_size"])) - ONE) & ~seen


@kernel
def count_couples(table, cards, left, right):
    """The couples that a set of cards holds on two table cards."""
    found = 0
    firsts = left_cards(table, cards, left, right)
    while firsts:
        first = lowest_bit(firsts)
        firsts &= firsts - ONE
        found += count_bits(right_cards(table, cards, left, right, first))
    return found


@kernel
def count_answered(table, cards, pool):
    """The tables of two cards of a pool on which a set of cards holds a couple."""
    found = 0
    lefts = pool
    while lefts:
        left = lowest_bit(lefts)
        lefts &= lefts - ONE
        rights = lefts
        while rights:
            right = lowest_bit(rights)
            rights &= rights - ONE
            if left_cards(table, cards, left, right):
                found += 1
    return found


@kernel
def count_partners(table, card, pool, left, right):
    """The ways in which a card and one card of a pool make a couple on two table cards."""
    return count_bits(right_cards(table, pool, left, right, card)) + count_bits(
        right_cards(table, pool, right, left, card)
    )


@kernel
def apart(game, table, player):
    """The hand's cards whose rank lies neither in the own discard nor twice in the hand.

    In *exchange* the discard becomes the opponent's hand (E2), and pairs are what makes couples
    there (C3, C4). If no card is like that, those not in the discard, or else all.
    """
    ranks = np.uint64(table["all_ranks"])
    width = np.uint64(table["ranks"])
    hand = game["hand"][player]
    rest = hand
    pile = game["discarded"][player]
    laid = ZERO
    once = ZERO
    twice = ZERO
    for _ in range(table["suits"]):
        laid |= pile & ranks
        pile >>= width
        suit = rest & ranks
        twice |= once & suit
        once |= suit
        rest >>= width
    column = np.uint64(table["rank_column"])
    fresh = hand & ~(laid * column)
    if fresh == ZERO:
        return hand
    single = fresh & ~(twice * column)
    return single if single else fresh


# --- What an action is worth --------------------------------------------------------------------


@kernel
def standing(table, mine, theirs, left, right):
    """How good it is to be on turn after exhaustion: own couples less theirs, or the end."""
    own = count_couples(table, mine, left, right)
    other = count_couples(table, theirs, left, right)
    blocked = own + other == 0 and not table["discard_when_blocked"]
    if theirs == ZERO or blocked:
        return DECIDED * (count_bits(theirs) - count_bits(mine))
    return own - other


@kernel
def worst_reply(table, mine, theirs, left, right, enough):
    """The standing after the best reply to a couple; stops looking once below `enough`."""
    firsts = left_cards(table, theirs, left, right)
    if firsts == ZERO:
        own = count_couples(table, mine, left, right)
        if own > 0:
            return FIRST_COUNT + own  # they miss a turn, which is better than any reply
        return standing(table, mine, theirs, left, right)
    worst = 2 * DECIDED
    while firsts and worst >= enough:
        first = lowest_bit(firsts)
        firsts &= firsts - ONE
        seconds = right_cards(table, theirs, left, right, first)
        while seconds and worst >= enough:
            second = lowest_bit(seconds)
            seconds &= seconds - ONE
            rest = theirs & ~(bit(first) | bit(second))
            worst = min(worst, standing(table, mine, rest, first, second))
    return worst


@kernel
def couple_worth(style, game, table, player, pool, first, second, enough):
    """How much a player likes to place a couple, given that `enough` is had already."""
    rest = game["hand"][player] & ~(bit(first) | bit(second))
    if style == KEEPER:
        return count_answered(table, rest, pool)
    if style in (CAUTIOUS, PATIENT) and game["stock_size"] == 0:
        return worst_reply(table, rest, pool, first, second, enough)
    theirs = count_couples(table, pool, first, second)
    return count_couples(table, rest, first, second) - FIRST_COUNT * theirs


@kernel
def discard_worth(style, game, table, player, pool, card):
    """How much a player likes to part with a card."""
    if style == KEEPER or game["stock_size"] == 0:
        return count_answered(table, game["hand"][player] & ~bit(card), pool)
    return -count_partners(table, card, pool, game["table"][0], game["table"][1])


# --- Choosing -----------------------------------------------------------------------------------


@kernel
def best_couple_card(style, game, table, player, stream):
    """The card to lay now of a best couple: its left card, or the partner of the chosen one."""
    pool = opponent_cards(game, table, player)
    choosing_left = game["phase"] == LEFT
    firsts = game["legal"] if choosing_left else bit(game["chosen"])
    best = LEAST
    equals = 0
    picked = 0
    while firsts:
        first = lowest_bit(firsts)
        firsts &= firsts - ONE
        seconds = right_cards(
            table, game["hand"][player], game["table"][0], game["table"][1], first
        )
        while seconds:
            second = lowest_bit(seconds)
            seconds &= seconds - ONE
            worth = couple_worth(style, game, table, player, pool, first, second, best)
            if worth > best:
                best = worth
                equals = 0
            if worth == best:
                equals += 1
                if random_below(stream, 0, equals) == 0:
                    picked = first if choosing_left else second
    return picked


@kernel
def best_discard(style, game, table, player, stream):
    """The card that is liked best to be laid away."""
    pool = opponent_cards(game, table, player)
    cards = game["legal"]
    if style == PATIENT and table["exchange"] and game["stock_size"] > 0:
        cards = apart(game, table, player)
    best = LEAST
    equals = 0
    picked = 0
    while cards:
        card = lowest_bit(cards)
        cards &= cards - ONE
        worth = discard_worth(style, game, table, player, pool, card)
        if worth > best:
            best = worth
            equals = 0
        if worth == best:
            equals += 1
            if random_below(stream, 0, equals) == 0:
                picked = card
    return picked


@kernel
def choose(style, game, table, player, stream):
    """The action of a counting player."""
    if game["phase"] == DISCARD:
        return best_discard(style, game, table, player, stream)
    if game["phase"] == REFILL:
        stock = np.int64(table["deck_size"])
        return stock if style == PATIENT else stock + 1  # STOCK or RECLAIM
    return best_couple_card(style, game, table, player, stream)


@kernel
def choose_all(style, games, tables, players, words, actions):
    """Writes the action of a counting player for every view."""
    stream = np.empty(1, np.uint64)
    for i in range(games.size):
        stream[0] = words[i]
        actions[i] = choose(style, games[i], tables[0], np.int64(players[i]), stream)


@kernel
def choose_evenly(games, words, actions):
    """Writes an evenly drawn legal action for every view."""
    stream = np.empty(1, np.uint64)
    for i in range(games.size):
        stream[0] = words[i]
        legal = games[i]["legal"]
        actions[i] = nth_bit(legal, random_below(stream, 0, count_bits(legal)))


# --- The players --------------------------------------------------------------------------------


class Random:
    """Draws evenly among the legal actions."""

    name = "random"

    def act(self, views: ViewBatch) -> np.ndarray:
        """Chooses for the mover of every row.

        Args:
            views: What each mover knows.

        Returns:
            (B,) int64, a legal action for each row.
        """
        actions = np.empty(len(views), np.int64)
        choose_evenly(views.records, views.random_bits, actions)
        return actions


class CountingPlayer:
    """A player that counts couples; `style` says which counts it goes by."""

    name: str
    style: int

    def act(self, views: ViewBatch) -> np.ndarray:
        """Chooses for the mover of every row.

        Args:
            views: What each mover knows.

        Returns:
            (B,) int64, a legal action for each row.
        """
        actions = np.empty(len(views), np.int64)
        table = rule_table(views.rules)
        choose_all(self.style, views.records, table, views.players, views.random_bits, actions)
        return actions


class Greedy(CountingPlayer):
    """Leaves the opponent as little as possible, and looks no further than that.

    Couple: the one on which the cards that the opponent may hold make the fewest couples (after
    exhaustion these are exactly their hand, E3); among those, the one on which the own hand keeps
    the most. Discard: the card that makes the fewest couples with unseen cards on the table as it
    lies; after exhaustion (``blocked="discard"``) as :class:`Keeper`.
    """

    name = "greedy"
    style = GREEDY


class Keeper(CountingPlayer):
    """Looks after the own hand and never at the table it leaves.

    A hand is worth as many tables as it can answer, of all tables of two cards that the opponent
    may hold. Couple and discard: whatever leaves the hand worth most.
    """

    name = "keeper"
    style = KEEPER


class Cautious(CountingPlayer):
    """Expects the best reply.

    Couple after exhaustion: the one after whose best reply the own couples outnumber the opponent's
    by most. Going on while the opponent has no reply is better still, and a game that is over
    counts as what it is (F3). Everything else as :class:`Greedy`.
    """

    name = "cautious"
    style = CAUTIOUS


class Patient(CountingPlayer):
    """Plays for the ending: many moves in hand, and a bad hand for the opponent.

    Refill: always from the stock, since the cards left in the discard come back (E2) as moves when
    the stock is gone. That is bad for a player who plays the ending badly, and the best simple rule
    for one who plays it well. Discard in *exchange*, where the opponent gets it (E2): a card whose
    rank is not in the discard yet and not twice in hand, so that no pairs (C3, C4) are given away;
    among those as :class:`Greedy`. Everything else as :class:`Cautious`.
    """

    name = "patient"
    style = PATIENT
