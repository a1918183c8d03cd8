"""The rule book once more, slowly: the oracle the engine is tested against.

Everything here is written from the rule book clause by clause (S1..F4), in plain lists, sets and
tuples. It imports nothing of the package under test and nothing of NumPy, so an error in the
engine cannot hide in its own oracle.

Cards are indexes ``suit * ranks + rank``; actions are a card, ``deck size`` (STOCK) or
``deck size + 1`` (RECLAIM).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations
from typing import Any

Couple = tuple[int, int]
World = tuple[frozenset[int], int | None, tuple[int, ...], tuple[int, ...] | None]

VARIANTS = ("classic", "exchange")


def is_legal_couple(a: int, b: int, table: Sequence[int], variant: str, ranks: int) -> bool:
    """Say whether card `a` on the left and card `b` on the right is a couple, word for word."""
    if a == b:
        return False
    left, right = table
    (suit_a, rank_a), (suit_b, rank_b) = divmod(a, ranks), divmod(b, ranks)
    (suit_l, rank_l), (suit_r, rank_r) = divmod(left, ranks), divmod(right, ranks)
    c1 = rank_a == rank_l and rank_b == rank_r
    one_up_one_down = (rank_a > rank_l and rank_b < rank_r) or (rank_a < rank_l and rank_b > rank_r)
    c2 = suit_a == suit_l and suit_b == suit_r and one_up_one_down
    c3 = rank_a == rank_b and min(rank_l, rank_r) < rank_a < max(rank_l, rank_r)
    c4 = rank_l == rank_r and rank_a == rank_b
    return c1 or c2 or (variant == "exchange" and (c3 or c4))


def legal_couples(
    hand: Iterable[int], table: Sequence[int], variant: str, ranks: int
) -> set[Couple]:
    """Return every legal couple (card for the left, card for the right) of a hand.

    The same four clauses as `is_legal_couple`, each from its candidates instead of from all pairs,
    because the tests call this some hundred thousand times.
    """
    left_suit, left_rank = divmod(table[0], ranks)
    right_suit, right_rank = divmod(table[1], ranks)
    cards = [(card, *divmod(card, ranks)) for card in hand]
    couples: set[Couple] = set()

    # C1: each card has the rank of the table card it covers.
    on_left = [card for card, _, rank in cards if rank == left_rank]
    on_right = [card for card, _, rank in cards if rank == right_rank]
    couples.update((a, b) for a in on_left for b in on_right if a != b)

    # C2: each card has the suit of the card it covers; one goes up, the other down.
    left = [(card, rank) for card, suit, rank in cards if suit == left_suit]
    right = [(card, rank) for card, suit, rank in cards if suit == right_suit]
    left_up = [card for card, rank in left if rank > left_rank]
    left_down = [card for card, rank in left if rank < left_rank]
    right_up = [card for card, rank in right if rank > right_rank]
    right_down = [card for card, rank in right if rank < right_rank]
    couples.update((a, b) for a in left_up for b in right_down if a != b)
    couples.update((a, b) for a in left_down for b in right_up if a != b)

    if variant == "exchange":
        low, high = sorted((left_rank, right_rank))
        for rank in range(ranks):
            # C3: a pair strictly between the table ranks. C4: any pair on a pair.
            if low < rank < high or low == high:
                same = [card for card, _, own_rank in cards if own_rank == rank]
                couples.update(permutations(same, 2))
    return couples


class ReferenceGame:
    """One game, played by the rule book.

    Attributes:
        hands: two sorted lists.
        discards: two lists, bottom to top.
        table: [left, right].
        stock: list, the next card first.
        buried: sorted list of the cards that are out of play.
        to_move: 0 or 1, -1 when the game is over.
        phase: "LEFT", "RIGHT", "DISCARD", "REFILL" or "OVER".
        chosen: the card picked for the left table card (it is still in the hand), or None.
        exhausted: True once the last stock card is drawn (E1).
        returns: (r0, r1), +1 win, 0 draw, -1 loss.
        known: two sets: the cards of p's hand that p's opponent knows.
        blocked_flag: two bools: p's last discard faced the table as it lies now.
        drawn_since: the one card p drew after that discard, or None.
        turn: number of turns completed; a pass is no turn.
        passes: number of passes (F1).
        decisions: number of actions taken.
        events: what happened, in order, as tuples (what, player, cards...).
    """

    def __init__(
        self,
        deck: Sequence[int],
        variant: str = "classic",
        ranks: int = 13,
        suits: int = 4,
        hand_size: int = 6,
        open_discards: bool = True,
        blocked: str = "pass",
        dealer: int = 1,
    ) -> None:
        deck_size = ranks * suits
        if variant not in VARIANTS or blocked not in ("pass", "discard") or dealer not in (0, 1):
            raise ValueError(f"bad variant, blocked or dealer: {variant}, {blocked}, {dealer}")
        if sorted(deck) != list(range(deck_size)):
            raise ValueError(f"not a deck of {deck_size} cards: {deck}")
        if hand_size < 2 or deck_size - 2 * hand_size - 2 < 1:
            raise ValueError(f"hand_size {hand_size} leaves no stock in {deck_size} cards")
        self.variant, self.ranks, self.suits, self.hand_size = variant, ranks, suits, hand_size
        self.open_discards, self.blocked, self.dealer = open_discards, blocked, dealer
        self.deck_size = deck_size
        self.stock_action, self.reclaim_action = deck_size, deck_size + 1

        # S2: the hands, the table, the stock.
        h = hand_size
        self.hands = [sorted(deck[:h]), sorted(deck[h : 2 * h])]
        self.table = list(deck[2 * h : 2 * h + 2])
        self.stock = list(deck[2 * h + 2 :])
        self.discards: list[list[int]] = [[], []]
        self.buried: list[int] = []

        self.exhausted = False
        self.chosen: int | None = None
        self.returns: tuple[int, int] = (0, 0)
        self.known: list[set[int]] = [set(), set()]
        self.blocked_flag = [False, False]
        self.drawn_since: list[int | None] = [None, None]
        self.turn = self.passes = self.decisions = 0
        self.events: list[tuple[Any, ...]] = []
        self._couples: set[Couple] = set()
        self._legal: list[int] = []
        self.phase = ""

        # S3: the dealer's opponent moves first.
        self.to_move = 1 - dealer
        self._begin_turn()

    @property
    def done(self) -> bool:
        return self.phase == "OVER"

    @property
    def second_refill(self) -> bool:
        return self.phase == "REFILL" and len(self.hands[self.to_move]) == self.hand_size - 1

    @property
    def margin(self) -> tuple[float, float]:
        if not self.done:
            return (0.0, 0.0)
        less = (len(self.hands[1]) - len(self.hands[0])) / self.deck_size
        return (less, -less)

    def couples(self, player: int) -> set[Couple]:
        """Return the legal couples of a player's hand on the table as it lies."""
        return legal_couples(self.hands[player], self.table, self.variant, self.ranks)

    def legal_actions(self) -> list[int]:
        """Return the legal actions of the player to move, sorted; none after the end."""
        return list(self._legal)

    def step(self, action: int) -> None:
        """Take one action of the player to move."""
        if action not in self._legal:
            raise ValueError(f"action {action} is not legal in {self.phase}: {self._legal}")
        self.decisions += 1
        if self.phase == "LEFT":
            # T1: which card covers which matters, so the left card is named first.
            self.chosen = action
            self._ask("RIGHT", sorted(b for a, b in self._couples if a == action))
        elif self.phase == "RIGHT":
            assert self.chosen is not None
            self._place_couple(self.chosen, action)
        elif self.phase == "DISCARD":
            self._lay_away(action)
        else:
            self._refill_from(action)

    # A turn ---------------------------------------------------------------------------------

    def _ask(self, phase: str, legal: list[int]) -> None:
        self.phase, self._legal = phase, legal

    def _begin_turn(self) -> None:
        """Find out what the player to move may do, passing and ending where the rules say so."""
        player = self.to_move
        # F2: the game ends when a player has no card in hand. (Before exhaustion the refill that
        # belongs to the turn has filled every hand again.)
        if not self.hands[0] or not self.hands[1]:
            self._end()
            return
        self._couples = self.couples(player)
        if self._couples:
            # T1: a couple must be placed if there is one.
            self._ask("LEFT", sorted({a for a, _ in self._couples}))
        elif not self.exhausted or self.blocked == "discard":
            # T2 before exhaustion; the second reading of `blocked` after it.
            self._ask("DISCARD", list(self.hands[player]))
        elif self.couples(1 - player):
            # F1: the pass is automatic.
            self.passes += 1
            self.events.append(("pass", player))
            self.to_move = 1 - player
            self._begin_turn()
        else:
            # F2: both players are blocked.
            self._end()

    def _end_turn(self) -> None:
        self.turn += 1
        self.to_move = 1 - self.to_move  # S3: turns alternate.
        self._begin_turn()

    def _place_couple(self, a: int, b: int) -> None:
        """T1: the couple covers the table; what lay there is buried."""
        player = self.to_move
        self.events.append(("couple", player, a, b))
        for card in (a, b):
            self._leave_hand(player, card)
        for card in self.table:
            insort(self.buried, card)
        self.table = [a, b]
        self.chosen = None
        self._forget_blocked()  # they were blocked on another table
        self._refill()

    def _lay_away(self, card: int) -> None:
        player = self.to_move
        self.events.append(("discard", player, card))
        self._leave_hand(player, card)
        if self.exhausted:
            # blocked="discard": the card is laid away for good.
            insort(self.buried, card)
        else:
            # T2: the card goes on top of the own discard; one card comes from the stock.
            self.discards[player].append(card)
            self.blocked_flag[player] = True
            self.drawn_since[player] = self.stock[0]
            self._draw(player)
        self._end_turn()

    def _refill(self) -> None:
        """T3: fill the hand up again, asking where there are two sources (T4, T6)."""
        player = self.to_move
        # E1: the refill ends with the last stock card, even at five cards. E3: then none.
        while not self.exhausted and len(self.hands[player]) < self.hand_size:
            # T4 classic: stock or the top of the own discard. T5 exchange: the stock only.
            if self.variant == "classic" and self.discards[player]:
                self._ask("REFILL", [self.stock_action, self.reclaim_action])
                return
            self._draw(player)  # T6: one source only, no decision
        self._end_turn()

    def _refill_from(self, source: int) -> None:
        player = self.to_move
        if source == self.stock_action:
            self._draw(player)
        else:
            card = self.discards[player].pop()
            insort(self.hands[player], card)
            if self.open_discards:
                self.known[player].add(card)  # the opponent saw which card it was
            self.events.append(("reclaim", player, card))
        self._refill()

    def _leave_hand(self, player: int, card: int) -> None:
        self.hands[player].remove(card)
        self.known[player].discard(card)

    def _draw(self, player: int) -> None:
        card = self.stock.pop(0)
        insort(self.hands[player], card)
        self.events.append(("stock", player, card))
        if not self.stock:
            self._exhaust(player)

    def _exhaust(self, player: int) -> None:
        """E1: it happens at once when the last stock card is drawn."""
        self.exhausted = True
        self.events.append(("exhausted", player))
        # E2 classic: each takes the own discard. E2 exchange: each takes the other's.
        own_first = [0, 1] if self.variant == "classic" else [1, 0]
        for taker, owner in enumerate(own_first):
            self.hands[taker] = sorted(self.hands[taker] + self.discards[owner])
        self.discards = [[], []]
        # E3: what is not on the table, buried or in one's own hand is in the other's hand.
        self.known = [set(self.hands[0]), set(self.hands[1])]
        self._forget_blocked()

    def _forget_blocked(self) -> None:
        self.blocked_flag = [False, False]
        self.drawn_since = [None, None]

    def _end(self) -> None:
        """F3: fewer cards win (none is fewest); equal counts are a draw."""
        ours, theirs = len(self.hands[0]), len(self.hands[1])
        result = (theirs > ours) - (theirs < ours)
        self.returns = (result, -result)
        self.to_move = -1
        self._ask("OVER", [])
        self.events.append(("over", result))

    # What a player may know ------------------------------------------------------------------

    def unseen(self, player: int) -> list[int]:
        """Return the cards whose place `player` does not know, sorted."""
        seen = {*self.hands[player], *self.table, *self.buried, *self.discards[player]}
        seen |= self.known[1 - player]
        if self.open_discards:
            seen |= set(self.discards[1 - player])
        return [card for card in range(self.deck_size) if card not in seen]

    def hidden(
        self, player: int
    ) -> Iterator[tuple[frozenset[int], int | None, tuple[int, ...] | None, frozenset[int]]]:
        """Yield (opponent's hand, card drawn since, opponent's pile if closed, the stock's cards).

        Every one of them agrees with what `player` knows, and the stock may lie in any order.
        """
        other = 1 - player
        unseen = self.unseen(player)
        known = self.known[other]
        pile_size = 0 if self.open_discards else len(self.discards[other])
        for drawn_cards in combinations(unseen, len(self.hands[other]) - len(known)):
            hand = frozenset(drawn_cards) | known
            rest = [card for card in unseen if card not in hand]
            for pile in permutations(rest, pile_size):
                stock = frozenset(rest) - set(pile)
                closed = None if self.open_discards else pile
                if not self.blocked_flag[other]:
                    yield hand, None, closed, stock
                    continue
                laid = self.discards[other][-1] if self.open_discards else pile[-1]
                # The card drawn since came from the stock, so it is none of the known ones.
                for since in drawn_cards:
                    then = [*(hand - {since}), laid]
                    if not legal_couples(then, self.table, self.variant, self.ranks):
                        yield hand, since, closed, stock

    def worlds(self, player: int) -> list[World]:
        """Return every full hidden assignment that agrees with what `player` knows.

        Small decks only: the list holds every order of the stock.

        Returns:
            A list of (opponent's hand, the card the opponent drew since they were blocked on this
            table or None, the stock in order, the opponent's pile bottom to top or None if the
            pile is open). What the opponent holds *and* which card of it is the drawn one are
            two facts, so one hand may stand in several worlds.
        """
        return [
            (hand, since, order, pile)
            for hand, since, pile, stock in self.hidden(player)
            for order in permutations(sorted(stock))
        ]

    def true_world(self, player: int) -> World:
        """Return the world that `worlds(player)` must contain."""
        other = 1 - player
        pile = None if self.open_discards else tuple(self.discards[other])
        return (frozenset(self.hands[other]), self.drawn_since[other], tuple(self.stock), pile)
