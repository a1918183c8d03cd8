"""The rule book, clause by clause, on exact positions with results worked out by hand.

A test's name holds the clause it checks (S1..S3, T1..T6, C1..C4, E1..E3, F1..F4). Positions are
written as text, `Game.from_position` builds them; a position without stock is exhausted.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

import pytest
from helpers import card, cards, couples_of, name, names, random_deck

from counterweight_env import (
    CLASSIC,
    EXCHANGE,
    Game,
    GameBatch,
    IllegalActionError,
    Phase,
    Rules,
    action_name,
    card_name,
    parse_action,
    parse_card,
)

STOCK, RECLAIM = 52, 53
VARIANTS = ("classic", "exchange")

# On the table TS 3H these two hands hold no couple in either rule set: neither a ten nor a three,
# neither a spade nor a heart, and no pair.
BLOCKED_CLUBS = "AC 2C 4C 5C 6C 7C"
BLOCKED_DIAMONDS = "AD 2D 4D 5D 6D 7D"
# On the table TS 3H the only couple of this hand is TD on TS with 3C on 3H (C1).
ONE_COUPLE = "TD 3C AC 2C 4C 5C"


def position(
    hands: tuple[str, str],
    table: str = "TS 3H",
    stock: str = "",
    discards: tuple[str, str] = ("", ""),
    to_move: int = 0,
    rules: Any = "classic",
    buried: str | None = None,
) -> Game:
    """Build the position; `buried` None is every card not named."""
    return Game.from_position(
        (cards(hands[0]), cards(hands[1])),
        cards(table),
        stock=cards(stock),
        discards=(cards(discards[0]), cards(discards[1])),
        buried=None if buried is None else cards(buried),
        to_move=to_move,
        rules=rules,
    )


def play(game: Game, actions: str | Sequence[int]) -> Game:
    """Step through a text such as "TD 3C STOCK"."""
    for word in actions.split() if isinstance(actions, str) else actions:
        game.step({"STOCK": STOCK, "RECLAIM": RECLAIM}.get(word) or card(word))
    return game


def hand(game: Game, player: int) -> set[int]:
    held = game.hand(player)
    assert list(held) == sorted(held)
    return set(held)


def ending_couples(held: str, table: str, rules: Any) -> set[tuple[int, int]]:
    """Return the couples of two cards after exhaustion; the other hand never matters here."""
    game = position((held, "KD QD"), table, rules=rules)
    assert game.done or game.to_move == 0
    return couples_of(game)


def pairs(text: str) -> set[tuple[int, int]]:
    """Read couples such as "TD/3C 3D/3C"."""
    return {(card(word[:2]), card(word[3:])) for word in text.split()}


# Set-up -------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_S1_52_cards_two_players_dealer_by_lot(variant: str) -> None:
    dealers = set()
    for seed in range(40):
        game = Game(variant, seed=seed)
        dealers.add(game.dealer)
        assert game.dealer == Game(variant, seed=seed).dealer
    assert dealers == {0, 1}
    rules = Rules.parse(variant)
    assert (rules.deck_size, rules.num_actions, rules.stock_size) == (52, 54, 38)
    assert (rules.stock_action, rules.reclaim_action) == (STOCK, RECLAIM)


@pytest.mark.parametrize("dealer", [0, 1])
def test_S1_caller_fixes_the_dealer(dealer: int) -> None:
    assert [Game(seed=seed, dealer=dealer).dealer for seed in range(20)] == [dealer] * 20


@pytest.mark.parametrize("variant", VARIANTS)
def test_S2_six_cards_each_two_on_the_table_38_in_stock(variant: str) -> None:
    game = Game(variant, seed=3)
    dealt = [*game.hand(0), *game.hand(1), *game.table]
    assert (len(game.hand(0)), len(game.hand(1)), len(game.table)) == (6, 6, 2)
    assert len(set(dealt)) == 14
    assert game.stock_size == 38
    assert (game.discard(0), game.discard(1), tuple(game.buried)) == ((), (), ())
    assert not game.exhausted
    assert not game.done
    assert game.turn == 0


def test_S2_from_deck_deals_in_the_stated_order() -> None:
    deck = random_deck(random.Random(1))
    game = Game.from_deck(deck, "classic", dealer=1)
    assert game.hand(0) == tuple(sorted(deck[0:6]))
    assert game.hand(1) == tuple(sorted(deck[6:12]))
    assert tuple(game.table) == (deck[12], deck[13])
    assert game.stock_size == 38


def test_S2_from_deck_draws_the_first_stock_card_first() -> None:
    first = cards(f"{BLOCKED_CLUBS} {BLOCKED_DIAMONDS} TS 3H 8C 8D")
    rest = [index for index in range(52) if index not in first]
    game = Game.from_deck(first + rest, "classic", dealer=1)
    play(game, "7C 7D")
    assert hand(game, 0) == set(cards("AC 2C 4C 5C 6C 8C"))
    assert hand(game, 1) == set(cards("AD 2D 4D 5D 6D 8D"))


def test_S2_from_deck_reads_text() -> None:
    deck = random_deck(random.Random(2))
    as_text = Game.from_deck([name(index) for index in deck], "classic", dealer=1)
    as_index = Game.from_deck(deck, "classic", dealer=1)
    assert as_text.hand(0) == as_index.hand(0)
    assert tuple(as_text.table) == tuple(as_index.table)


def test_S2_other_sizes_read_the_same() -> None:
    rules = Rules("exchange", ranks=6, suits=2, hand_size=3)
    game = Game.from_deck(list(range(12)), rules, dealer=1)
    assert (game.hand(0), game.hand(1)) == ((0, 1, 2), (3, 4, 5))
    assert (tuple(game.table), game.stock_size) == ((6, 7), 4)


@pytest.mark.parametrize("dealer", [0, 1])
def test_S3_dealers_opponent_moves_first(dealer: int) -> None:
    game = Game.from_deck(list(range(52)), "classic", dealer=dealer)
    assert game.dealer == dealer
    assert game.to_move == 1 - dealer


def test_S3_turns_alternate() -> None:
    game = position((BLOCKED_CLUBS, BLOCKED_DIAMONDS), stock="8C 8D 9C 9D JC JD")
    movers = []
    for laid in ("AC", "AD", "2C", "2D"):
        movers.append(game.to_move)
        game.step(card(laid))
    assert movers == [0, 1, 0, 1]
    assert game.turn == 4


# A turn -------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
class TestT1:
    def test_T1_a_couple_must_be_placed(self, variant: str) -> None:
        game = position((ONE_COUPLE, BLOCKED_DIAMONDS), stock="8C 9C JC QC", rules=variant)
        assert game.phase == Phase.LEFT
        assert game.to_move == 0
        assert game.legal_actions() == cards("TD")  # neither discard nor draw
        game.step(card("TD"))
        assert game.phase == Phase.RIGHT
        assert game.to_move == 0
        assert game.legal_actions() == cards("3C")
        assert game.chosen == card("TD")
        assert card("TD") in game.hand(0)  # it stays in hand until the couple is placed
        assert tuple(game.table) == tuple(cards("TS 3H"))

    def test_T1_the_couple_covers_the_table(self, variant: str) -> None:
        game = position((ONE_COUPLE, BLOCKED_DIAMONDS), stock="8C 9C JC QC", rules=variant)
        buried = set(game.buried)
        play(game, "TD 3C")
        assert tuple(game.table) == tuple(cards("TD 3C"))
        assert set(game.buried) == buried | set(cards("TS 3H"))
        assert game.chosen is None
        assert game.turn == 1

    def test_T1_any_one_of_the_couples(self, variant: str) -> None:
        held = "TD TC 3C 3D AC 2C"
        game = position((held, BLOCKED_DIAMONDS), table="TS 3H", stock="8C 9C", rules=variant)
        assert couples_of(game) == pairs("TD/3C TD/3D TC/3C TC/3D")

    def test_T1_which_card_covers_which_matters(self, variant: str) -> None:
        game = position(("6S 7S", "KD QD"), table="5S 9S", rules=variant)
        other = game.copy()
        assert tuple(play(game, "7S 6S").table) == tuple(cards("7S 6S"))
        assert tuple(play(other, "6S 7S").table) == tuple(cards("6S 7S"))

    def test_T1_no_card_without_a_partner_may_go_left(self, variant: str) -> None:
        # JS is above TS and TD has its rank, but only TD has a partner (3C).
        game = position(("JS TD 3C AC 2C 4C", BLOCKED_DIAMONDS), stock="8C 9C", rules=variant)
        assert game.legal_actions() == cards("TD")

    def test_T1_anything_else_is_refused_and_changes_nothing(self, variant: str) -> None:
        game = position((ONE_COUPLE, BLOCKED_DIAMONDS), stock="8C 9C JC QC", rules=variant)
        before = game.to_json()
        for action in (card("3C"), card("AC"), card("AD"), card("8C"), STOCK, RECLAIM, -1, 54):
            with pytest.raises(IllegalActionError):
                game.step(action)
        assert game.to_json() == before


@pytest.mark.parametrize("variant", VARIANTS)
class TestT2:
    def start(self, variant: str) -> Game:
        return position(
            (BLOCKED_CLUBS, BLOCKED_DIAMONDS),
            stock="8C 8D 9C 9D",
            discards=("QC KC", ""),
            rules=variant,
        )

    def test_T2_any_hand_card_may_be_laid(self, variant: str) -> None:
        game = self.start(variant)
        assert game.phase == Phase.DISCARD
        assert game.legal_actions() == sorted(cards(BLOCKED_CLUBS))

    def test_T2_on_top_of_the_own_discard_and_one_from_the_stock(self, variant: str) -> None:
        game = play(self.start(variant), "4C")
        assert game.discard(0) == tuple(cards("QC KC 4C"))
        assert game.discard(1) == ()
        assert hand(game, 0) == set(cards("AC 2C 5C 6C 7C 8C"))
        assert game.stock_size == 3
        assert tuple(game.table) == tuple(cards("TS 3H"))
        assert (game.to_move, game.turn) == (1, 1)

    def test_T2_never_from_the_discard(self, variant: str) -> None:
        game = self.start(variant)
        for action in (STOCK, RECLAIM):
            with pytest.raises(IllegalActionError):
                game.step(action)
        game.step(card("4C"))
        assert game.to_move == 1  # no choice of source after a discard
        assert game.phase == Phase.DISCARD


@pytest.mark.parametrize("variant", VARIANTS)
def test_T3_refill_by_two_cards_to_six(variant: str) -> None:
    game = position((ONE_COUPLE, BLOCKED_DIAMONDS), stock="8C 9C JC QC", rules=variant)
    play(game, "TD 3C")
    assert hand(game, 0) == set(cards("AC 2C 4C 5C 8C 9C"))
    assert game.stock_size == 2
    assert game.to_move == 1


class TestT4:
    def start(self) -> Game:
        game = position(
            (ONE_COUPLE, BLOCKED_DIAMONDS), stock="8C 9C JC 8D", discards=("QC KC", "JD 9D")
        )
        return play(game, "TD 3C")

    @pytest.mark.parametrize(
        ("sources", "drawn", "pile", "stock_size"),
        [
            ("STOCK STOCK", "8C 9C", "QC KC", 2),
            ("STOCK RECLAIM", "8C KC", "QC", 3),
            ("RECLAIM STOCK", "KC 8C", "QC", 3),
            ("RECLAIM RECLAIM", "KC QC", "", 4),
        ],
    )
    def test_T4_classic_each_card_from_either_source(
        self, sources: str, drawn: str, pile: str, stock_size: int
    ) -> None:
        game = play(self.start(), sources)
        assert hand(game, 0) == set(cards(f"AC 2C 4C 5C {drawn}"))
        assert game.discard(0) == tuple(cards(pile))
        assert game.discard(1) == tuple(cards("JD 9D"))
        assert game.stock_size == stock_size
        assert (game.to_move, game.turn) == (1, 1)

    def test_T4_classic_the_first_is_seen_before_the_second_is_chosen(self) -> None:
        game = self.start()
        assert game.phase == Phase.REFILL
        assert game.legal_actions() == [STOCK, RECLAIM]
        assert not game.view(0).second_refill
        game.step(STOCK)
        assert hand(game, 0) == set(cards("AC 2C 4C 5C 8C"))
        assert game.to_move == 0
        assert game.phase == Phase.REFILL
        assert game.legal_actions() == [STOCK, RECLAIM]
        assert game.view(0).second_refill

    def test_T4_classic_only_the_own_discard(self) -> None:
        game = position((ONE_COUPLE, BLOCKED_DIAMONDS), stock="8C 9C JC 8D", discards=("", "JD 9D"))
        play(game, "TD 3C")
        assert game.to_move == 1
        assert game.discard(1) == tuple(cards("JD 9D"))


def test_T5_exchange_refills_from_the_stock_only() -> None:
    game = position(
        (ONE_COUPLE, BLOCKED_DIAMONDS),
        stock="8C 9C JC 8D",
        discards=("QC KC", "JD 9D"),
        rules="exchange",
    )
    play(game, "TD 3C")
    assert game.to_move == 1  # no decision
    assert hand(game, 0) == set(cards("AC 2C 4C 5C 8C 9C"))
    assert game.discard(0) == tuple(cards("QC KC"))


class TestT6:
    def test_T6_empty_discard_refills_by_itself(self) -> None:
        game = position((ONE_COUPLE, BLOCKED_DIAMONDS), stock="8C 9C JC 8D")
        play(game, "TD 3C")
        assert (game.to_move, game.phase) == (1, Phase.DISCARD)

    def test_T6_second_card_comes_by_itself_once_the_discard_is_gone(self) -> None:
        game = position((ONE_COUPLE, BLOCKED_DIAMONDS), stock="8C 9C JC", discards=("QC", ""))
        play(game, "TD 3C RECLAIM")
        assert hand(game, 0) == set(cards("AC 2C 4C 5C QC 8C"))
        assert (game.to_move, game.stock_size, game.discard(0)) == (1, 2, ())

    def test_T6_a_discard_of_one_still_leaves_two_sources_after_stock(self) -> None:
        game = position((ONE_COUPLE, BLOCKED_DIAMONDS), stock="8C 9C JC", discards=("QC", ""))
        play(game, "TD 3C STOCK")
        assert (game.to_move, game.phase) == (0, Phase.REFILL)


# Legal couples ------------------------------------------------------------------------------

BOTH = "both"
EXAMPLES = [
    # held, table, couples in classic, couples in exchange
    ("TD 3C", "TS 3H", "TD/3C", BOTH),  # yes, C1; 3C on TS with TD on 3H is not among them
    ("JS 2H", "TS 3H", "JS/2H", BOTH),  # C2, one up, one down
    ("9S 4H", "TS 3H", "9S/4H", BOTH),  # C2, one down, one up
    ("JS 4H", "TS 3H", "", BOTH),  # both higher
    ("TD 2H", "TS 3H", "", BOTH),  # C1 and C2 do not mix
    ("7C 7D", "TS 3H", "", "7C/7D 7D/7C"),  # C3
    ("JC JD", "2C 2H", "", "JC/JD JD/JC"),  # C4
    ("7S 6S", "5S 9S", "7S/6S 6S/7S", BOTH),  # C2 with one suit
]


@pytest.mark.parametrize(("held", "table", "classic", "exchange"), EXAMPLES)
def test_C1_C2_C3_C4_worked_examples(held: str, table: str, classic: str, exchange: str) -> None:
    assert ending_couples(held, table, "classic") == pairs(classic)
    expected = classic if exchange == BOTH else exchange
    assert ending_couples(held, table, "exchange") == pairs(expected)


@pytest.mark.parametrize("variant", VARIANTS)
class TestC1:
    def test_C1_ranks_match_respectively(self, variant: str) -> None:
        assert ending_couples("3C TD", "3H TS", variant) == pairs("3C/TD")
        assert ending_couples("3C TD", "TS 3H", variant) == pairs("TD/3C")

    def test_C1_on_two_equal_ranks(self, variant: str) -> None:
        assert ending_couples("TD TC", "TS TH", variant) == pairs("TD/TC TC/TD")

    def test_C1_needs_both(self, variant: str) -> None:
        assert ending_couples("TD TC", "TS 3H", variant) == set()
        assert ending_couples("TD 4C", "TS 3H", variant) == set()


@pytest.mark.parametrize("variant", VARIANTS)
class TestC2:
    def test_C2_any_distance(self, variant: str) -> None:
        assert ending_couples("KS AH", "TS 3H", variant) == pairs("KS/AH")
        assert ending_couples("AS KH", "TS 3H", variant) == pairs("AS/KH")

    def test_C2_not_both_higher_nor_both_lower(self, variant: str) -> None:
        assert ending_couples("JS 4H", "TS 3H", variant) == set()
        assert ending_couples("9S 2H", "TS 3H", variant) == set()

    def test_C2_suits_match_respectively(self, variant: str) -> None:
        assert ending_couples("JC 2H", "TS 3H", variant) == set()
        assert ending_couples("JS 2D", "TS 3H", variant) == set()
        # 2S is below TS and JH above 3H; JH on TS with 2S on 3H would change the suits.
        assert ending_couples("2S JH", "TS 3H", variant) == pairs("2S/JH")

    def test_C2_one_suit_on_both_sides(self, variant: str) -> None:
        assert ending_couples("TS JS", "5S 9S", variant) == set()  # both higher either way
        assert ending_couples("AS KS", "5S 9S", variant) == pairs("AS/KS KS/AS")
        # 7S on 5S is up and 3S on 9S down; 3S on 5S and 7S on 9S are both down.
        assert ending_couples("3S 7S", "5S 9S", variant) == pairs("7S/3S")

    def test_C2_ranks_do_not_wrap(self, variant: str) -> None:
        # An ace is never above a king (AS down, 2H down), a king never below an ace.
        assert ending_couples("AS 2H", "KS 3H", variant) == set()
        assert ending_couples("KS 4H", "AS 3H", variant) == set()
        assert ending_couples("AS 2H", "KS AH", variant) == pairs("AS/2H")

    def test_C2_does_not_mix_with_C1(self, variant: str) -> None:
        for held in ("TD 2H", "TD 4H", "JS 3C", "9S 3C"):
            assert ending_couples(held, "TS 3H", variant) == set()


class TestC3:
    @pytest.mark.parametrize("rank", "A23456789TJQK")
    @pytest.mark.parametrize("table", ["TS 3H", "3H TS"])
    def test_C3_pairs_strictly_between(self, rank: str, table: str) -> None:
        held = f"{rank}C {rank}D"
        other = "KH QH"  # for once not KD QD, which the pairs of kings and queens use
        for variant in VARIANTS:
            game = position((held, other), table, rules=variant)
            between = variant == "exchange" and rank in "456789"
            expected = pairs(f"{rank}C/{rank}D {rank}D/{rank}C") if between else set()
            found = couples_of(game) if game.to_move == 0 else set()
            assert found == expected

    def test_C3_any_suits(self) -> None:
        assert ending_couples("7S 7H", "TS 3H", "exchange") == pairs("7S/7H 7H/7S")
        assert ending_couples("7C 8D", "TS 3H", "exchange") == set()

    def test_C3_nothing_lies_between_neighbours(self) -> None:
        assert ending_couples("5C 5D", "5S 6H", "exchange") == set()
        assert ending_couples("6C 6D", "5S 6H", "exchange") == set()

    def test_C3_does_not_wrap_around_the_king(self) -> None:
        assert ending_couples("AC AD", "KS 2H", "exchange") == set()
        assert ending_couples("3C 3D", "KS 2H", "exchange") == pairs("3C/3D 3D/3C")


class TestC4:
    @pytest.mark.parametrize("rank", "A23456789TJQ")
    def test_C4_any_pair_on_a_pair(self, rank: str) -> None:
        expected = pairs(f"{rank}C/{rank}H {rank}H/{rank}C")
        game = position((f"{rank}C {rank}H", "KH QD"), "KS KC", rules="exchange")
        assert couples_of(game) == expected
        game = position((f"{rank}C {rank}H", "KH QD"), "KS KC", rules="classic")
        assert couples_of(game) == set()

    def test_C4_needs_a_pair_on_the_table(self) -> None:
        assert ending_couples("JC JD", "2C 3H", "exchange") == set()

    def test_C4_needs_a_pair_in_hand(self) -> None:
        assert ending_couples("JC TD", "2S 2H", "exchange") == set()


# Exhaustion ---------------------------------------------------------------------------------

# Six cards with TH on a ten and 3D on a three (C1), and 6D 6H between them (C3).
SIX_WITH_COUPLES = "AD 2D 3D TH 6D 6H"


class TestE1:
    def last_card(self, discards: tuple[str, str], variant: str) -> Game:
        game = position(
            (ONE_COUPLE, SIX_WITH_COUPLES), stock="8C", discards=discards, rules=variant
        )
        return play(game, "TD 3C")

    def test_E1_middle_of_an_automatic_refill_classic(self) -> None:
        game = self.last_card(("", "9D"), "classic")
        assert game.exhausted
        assert game.stock_size == 0
        assert hand(game, 0) == set(cards("AC 2C 4C 5C 8C"))  # five, not six
        assert hand(game, 1) == set(cards(SIX_WITH_COUPLES + " 9D"))
        assert (game.discard(0), game.discard(1)) == ((), ())
        assert (game.to_move, game.phase) == (1, Phase.LEFT)

    def test_E1_middle_of_an_automatic_refill_exchange(self) -> None:
        game = self.last_card(("9D", ""), "exchange")
        assert game.exhausted
        assert hand(game, 0) == set(cards("AC 2C 4C 5C 8C"))
        assert hand(game, 1) == set(cards(SIX_WITH_COUPLES + " 9D"))
        assert (game.to_move, game.phase) == (1, Phase.LEFT)

    def test_E1_first_refill_card_chosen_from_the_stock(self) -> None:
        game = self.last_card(("QC KC JC", ""), "classic")
        assert (game.to_move, game.phase) == (0, Phase.REFILL)
        game.step(STOCK)
        # Five cards, the refill is over, and the whole discard comes back (E2).
        assert game.exhausted
        assert hand(game, 0) == set(cards("AC 2C 4C 5C 8C QC KC JC"))
        assert hand(game, 1) == set(cards(SIX_WITH_COUPLES))
        assert (game.to_move, game.turn) == (1, 1)

    def test_E1_second_refill_card_chosen_from_the_stock(self) -> None:
        game = play(self.last_card(("QC KC JC", ""), "classic"), "RECLAIM")
        assert not game.exhausted
        assert game.discard(0) == tuple(cards("QC KC"))
        assert (game.to_move, game.phase, game.stock_size) == (0, Phase.REFILL, 1)
        game.step(STOCK)
        assert game.exhausted
        assert hand(game, 0) == set(cards("AC 2C 4C 5C 8C QC KC JC"))

    def test_E1_second_refill_card_drawn_by_itself(self) -> None:
        game = play(self.last_card(("QC", ""), "classic"), "RECLAIM")
        assert game.exhausted
        assert hand(game, 0) == set(cards("AC 2C 4C 5C 8C QC"))
        assert game.to_move == 1

    def test_E1_the_last_card_may_stay_in_the_stock(self) -> None:
        game = play(self.last_card(("QC KC JC", ""), "classic"), "RECLAIM RECLAIM")
        assert not game.exhausted
        assert hand(game, 0) == set(cards("AC 2C 4C 5C JC KC"))
        assert (game.discard(0), game.stock_size) == (tuple(cards("QC")), 1)

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_E1_two_last_cards_fill_the_hand(self, variant: str) -> None:
        game = position((ONE_COUPLE, SIX_WITH_COUPLES), stock="8C 9C", rules=variant)
        play(game, "TD 3C")
        assert game.exhausted
        assert hand(game, 0) == set(cards("AC 2C 4C 5C 8C 9C"))

    def test_E1_by_a_discard_classic(self) -> None:
        game = position((BLOCKED_CLUBS, SIX_WITH_COUPLES), stock="8C", discards=("QC", ""))
        play(game, "7C")
        # The card just laid is in the discard already when the last stock card is drawn.
        assert game.exhausted
        assert hand(game, 0) == set(cards("AC 2C 4C 5C 6C 8C QC 7C"))
        assert hand(game, 1) == set(cards(SIX_WITH_COUPLES))
        assert (game.to_move, game.phase, game.turn) == (1, Phase.LEFT, 1)

    def test_E1_by_a_discard_exchange(self) -> None:
        game = position(
            (BLOCKED_CLUBS, SIX_WITH_COUPLES), stock="8C", discards=("QC", ""), rules="exchange"
        )
        play(game, "7C")
        assert game.exhausted
        assert hand(game, 0) == set(cards("AC 2C 4C 5C 6C 8C"))
        assert hand(game, 1) == set(cards(SIX_WITH_COUPLES + " QC 7C"))
        assert couples_of(game) == pairs("TH/3D 6D/6H 6H/6D")


class TestE2:
    def exhaust(self, variant: str) -> Game:
        game = position(
            (BLOCKED_CLUBS, SIX_WITH_COUPLES),
            stock="8C",
            discards=("QC KC", "JD"),
            rules=variant,
        )
        return play(game, "7C")

    def test_E2_classic_each_takes_the_own_discard(self) -> None:
        game = self.exhaust("classic")
        assert hand(game, 0) == set(cards("AC 2C 4C 5C 6C 8C QC KC 7C"))
        assert hand(game, 1) == set(cards(SIX_WITH_COUPLES + " JD"))
        assert (game.discard(0), game.discard(1)) == ((), ())

    def test_E2_exchange_the_players_swap_discards(self) -> None:
        game = self.exhaust("exchange")
        assert hand(game, 0) == set(cards("AC 2C 4C 5C 6C 8C JD"))
        assert hand(game, 1) == set(cards(SIX_WITH_COUPLES + " QC KC 7C"))
        assert (game.discard(0), game.discard(1)) == ((), ())


@pytest.mark.parametrize("variant", VARIANTS)
class TestE3:
    def test_E3_hands_only_shrink(self, variant: str) -> None:
        game = position(("TD 3C AC 2C", "TH 3D 8S 9S"), rules=variant)
        assert game.exhausted
        play(game, "TD 3C")
        assert hand(game, 0) == set(cards("AC 2C"))
        assert (game.to_move, game.stock_size) == (1, 0)
        play(game, "TH 3D")
        assert hand(game, 1) == set(cards("8S 9S"))

    def test_E3_both_players_know_everything(self, variant: str) -> None:
        game = position(("TD 3C AC 2C", "TH 3D 8S 9S"), rules=variant)
        for player in (0, 1):
            assert tuple(game.known(player)) == game.hand(player)
            view = game.view(player)
            assert tuple(view.known_in_opponent_hand) == game.hand(1 - player)
            assert tuple(view.unseen) == ()

    def test_E3_from_the_moment_of_exhaustion(self, variant: str) -> None:
        game = position(
            (BLOCKED_CLUBS, SIX_WITH_COUPLES), stock="8C", discards=("QC", ""), rules=variant
        )
        assert tuple(game.known(0)) == ()
        play(game, "7C")
        assert tuple(game.known(0)) == game.hand(0)
        assert tuple(game.known(1)) == game.hand(1)


# The end ------------------------------------------------------------------------------------

# Neither TD 3C nor TC 3D nor TH 3D can be covered from these: no ten, no three, and the hearts
# and spades are never both right; no pair.
IDLE = "AH 2H 4S 6S"


@pytest.mark.parametrize("variant", VARIANTS)
class TestF1:
    def test_F1_the_pass_is_automatic(self, variant: str) -> None:
        game = position(("TD 3C TH 3D", IDLE), rules=variant)
        play(game, "TD 3C")
        assert (game.to_move, game.phase) == (0, Phase.LEFT)  # player 1 has passed
        assert couples_of(game) == pairs("TH/3D")
        assert hand(game, 1) == set(cards(IDLE))

    def test_F1_a_blocked_first_mover_passes(self, variant: str) -> None:
        game = position((IDLE, "TD 3C QH KH"), rules=variant, to_move=0)
        assert (game.to_move, game.phase) == (1, Phase.LEFT)

    def test_F1_the_other_goes_on_alone(self, variant: str) -> None:
        game = position(("TD 3C TC 3D QH KH", IDLE), rules=variant)
        play(game, "TD 3C TC 3D")
        assert game.done
        assert hand(game, 0) == set(cards("QH KH"))
        assert game.returns == (1, -1)


@pytest.mark.parametrize("variant", VARIANTS)
class TestF2:
    def test_F2_going_out_on_the_last_couple(self, variant: str) -> None:
        # Player 1 could go on (TH on TD, 3D on 3C), but the game is over at once.
        game = position(("TD 3C", "TH 3D"), rules=variant)
        play(game, "TD 3C")
        assert game.done
        assert game.phase == Phase.OVER
        assert (game.hand(0), hand(game, 1)) == ((), set(cards("TH 3D")))
        assert (game.to_move, game.legal_actions()) == (-1, [])
        assert not game.legal_mask().any()

    def test_F2_both_blocked(self, variant: str) -> None:
        game = position(("TD 3C QH KH", IDLE), rules=variant)
        play(game, "TD 3C")
        assert game.done
        assert game.phase == Phase.OVER
        assert game.to_move == -1

    def test_F2_both_blocked_from_the_start(self, variant: str) -> None:
        game = position(("AC 2C", "AD 2D 4D 5D"), rules=variant)
        assert game.done
        assert game.returns == (1, -1)

    def test_F2_not_while_one_can_move(self, variant: str) -> None:
        game = position(("TD 3C QH KH", "TH 3D"), rules=variant)
        play(game, "TD 3C")
        assert not game.done
        assert game.to_move == 1
        assert game.returns == (0, 0)

    def test_F2_nothing_is_legal_after_the_end(self, variant: str) -> None:
        game = play(position(("TD 3C", "TH 3D"), rules=variant), "TD 3C")
        before = game.to_json()
        for action in (card("TH"), card("TD"), STOCK, RECLAIM):
            with pytest.raises(IllegalActionError):
                game.step(action)
        assert game.to_json() == before


@pytest.mark.parametrize("variant", VARIANTS)
class TestF3:
    def test_F3_an_empty_hand_wins(self, variant: str) -> None:
        game = play(position(("TD 3C", "AH 2H"), rules=variant), "TD 3C")
        assert game.returns == (1, -1)
        assert game.margin == pytest.approx((2 / 52, -2 / 52))
        game = play(position(("AH 2H", "TD 3C"), rules=variant, to_move=1), "TD 3C")
        assert game.returns == (-1, 1)

    def test_F3_fewer_cards_win(self, variant: str) -> None:
        game = play(position(("TD 3C QH KH", IDLE), rules=variant), "TD 3C")
        assert game.returns == (1, -1)
        assert game.margin == pytest.approx((2 / 52, -2 / 52))

    def test_F3_more_cards_lose_whoever_moved_last(self, variant: str) -> None:
        game = play(position(("TD 3C QH KH JH 9H", "AH 4S"), rules=variant), "TD 3C")
        assert game.done
        assert game.returns == (-1, 1)
        assert game.margin == pytest.approx((-2 / 52, 2 / 52))

    def test_F3_equal_counts_are_a_draw(self, variant: str) -> None:
        game = play(position(("TD 3C QH KH", "AH 4S"), rules=variant), "TD 3C")
        assert game.done
        assert game.returns == (0, 0)
        assert game.margin == (0, 0)


@pytest.mark.parametrize("variant", VARIANTS)
class TestF4:
    def test_F4_a_lone_card_is_never_placed(self, variant: str) -> None:
        # TD fits both sides, but a card may not serve on both.
        game = position(("TD", "AC 2C 4C"), "TS TH", rules=variant)
        assert game.done
        assert hand(game, 0) == set(cards("TD"))
        assert game.returns == (1, -1)

    @pytest.mark.parametrize("table", ["5S 9S", "9S 5S"])
    def test_F4_the_lone_card_may_lie_between_both(self, variant: str, table: str) -> None:
        # 7S is above 5S and below 9S; one card makes no couple.
        game = position(("7S", "AC 2C 4C"), table, rules=variant)
        assert game.done

    def test_F4_an_odd_count_wins_by_count(self, variant: str) -> None:
        game = play(position(("TD 3C QH", "AH 4S 6S"), rules=variant), "TD 3C")
        assert game.done
        assert hand(game, 0) == set(cards("QH"))
        assert game.returns == (1, -1)

    def test_F4_an_odd_count_never_goes_out(self, variant: str) -> None:
        # Both place their couple and keep a lone card that nothing can place.
        game = position(("TD 3C QH", "TH 3D KH"), rules=variant)
        play(game, "TD 3C TH 3D")
        assert game.done
        assert (game.hand(0), game.hand(1)) == (tuple(cards("QH")), tuple(cards("KH")))
        assert game.returns == (0, 0)


# The switches -------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
class TestOpenDiscards:
    def start(self, variant: str, open_discards: bool) -> Game:
        return position(
            (ONE_COUPLE, BLOCKED_DIAMONDS),
            stock="8C 9C JC 8D",
            discards=("QC KC", "JD 9D"),
            rules=Rules(variant, open_discards=open_discards),
        )

    def test_open_discards_true_both_see_them(self, variant: str) -> None:
        game = self.start(variant, True)
        view = game.view(1)
        assert tuple(view.opponent_discard) == tuple(cards("QC KC"))
        assert tuple(view.own_discard) == tuple(cards("JD 9D"))
        assert not set(cards("QC KC")) & set(view.unseen)

    def test_open_discards_false_only_the_owner_knows(self, variant: str) -> None:
        game = self.start(variant, False)
        view = game.view(1)
        assert tuple(view.opponent_discard) == ()
        assert view.opponent_discard_size == 2
        assert tuple(view.own_discard) == tuple(cards("JD 9D"))
        # Player 1 cannot tell player 0's hand, player 0's discard and the stock apart.
        assert set(view.unseen) == set(cards(f"{ONE_COUPLE} QC KC 8C 9C JC 8D"))
        assert tuple(game.view(0).own_discard) == tuple(cards("QC KC"))

    def test_open_discards_is_no_matter_of_play(self, variant: str) -> None:
        opened, closed = self.start(variant, True), self.start(variant, False)
        sources = "RECLAIM STOCK" if variant == "classic" else ""
        for game in (opened, closed):
            play(game, f"TD 3C {sources} AD")
        for player in (0, 1):
            assert opened.hand(player) == closed.hand(player)
            assert opened.discard(player) == closed.discard(player)

    def test_E3_closed_discards_open_at_exhaustion(self, variant: str) -> None:
        game = position(
            (BLOCKED_CLUBS, SIX_WITH_COUPLES),
            stock="8C",
            discards=("QC", ""),
            rules=Rules(variant, open_discards=False),
        )
        play(game, "7C")
        assert tuple(game.view(1).known_in_opponent_hand) == game.hand(0)
        assert tuple(game.view(0).known_in_opponent_hand) == game.hand(1)


@pytest.mark.parametrize(("open_discards", "known"), [(True, "QC KC"), (False, "")])
def test_open_discards_reclaimed_cards_are_known(open_discards: bool, known: str) -> None:
    game = position(
        (ONE_COUPLE, BLOCKED_DIAMONDS),
        stock="8C 9C JC 8D",
        discards=("QC KC", "JD 9D"),
        rules=Rules("classic", open_discards=open_discards),
    )
    play(game, "TD 3C RECLAIM RECLAIM")
    assert set(game.known(0)) == set(cards(known))
    assert tuple(game.known(1)) == ()
    assert set(game.view(1).known_in_opponent_hand) == set(cards(known))
    # Player 1 is blocked on TD 3C; so is player 0 then, and lays the known king away.
    play(game, "AD KC")
    assert set(game.known(0)) == set(cards(known)) - set(cards("KC"))


@pytest.mark.parametrize("variant", VARIANTS)
class TestBlocked:
    def test_blocked_pass_ends_with_cards_in_both_hands(self, variant: str) -> None:
        game = position(("AC 2C", "AD 2D 4D 5D"), rules=Rules(variant, blocked="pass"))
        assert game.done
        assert (len(game.hand(0)), len(game.hand(1))) == (2, 4)

    def test_blocked_discard_lays_cards_away_for_good(self, variant: str) -> None:
        game = position(("AC 2C", "AD 2D 4D 5D"), rules=Rules(variant, blocked="discard"))
        assert (game.to_move, game.phase) == (0, Phase.DISCARD)
        assert game.legal_actions() == cards("AC 2C")
        buried = set(game.buried)
        game.step(card("AC"))
        assert game.hand(0) == tuple(cards("2C"))
        assert game.discard(0) == ()
        assert set(game.buried) == buried | set(cards("AC"))
        assert tuple(game.table) == tuple(cards("TS 3H"))
        assert (game.to_move, game.phase) == (1, Phase.DISCARD)

    def test_blocked_discard_ends_with_an_empty_hand(self, variant: str) -> None:
        game = position(("AC 2C", "AD 2D 4D 5D"), rules=Rules(variant, blocked="discard"))
        play(game, "AC AD 2C")
        assert game.done
        assert (game.hand(0), len(game.hand(1))) == ((), 3)
        assert game.returns == (1, -1)

    def test_blocked_discard_has_no_draws(self, variant: str) -> None:
        hands = ("AC 2C", "AD 2D")
        assert position(hands, rules=variant).returns == (0, 0)
        for first in (0, 1):
            game = position(hands, rules=Rules(variant, blocked="discard"), to_move=first)
            while not game.done:
                game.step(game.legal_actions()[0])
            assert game.hand(first) == ()
            assert game.returns == ((1, -1) if first == 0 else (-1, 1))

    def test_blocked_discard_still_forces_a_couple(self, variant: str) -> None:
        rules = Rules(variant, blocked="discard")
        game = position(("TD 3C AC 2C", IDLE), rules=rules)
        assert game.legal_actions() == cards("TD")
        play(game, "TD 3C")
        assert (game.to_move, game.phase) == (1, Phase.DISCARD)
        assert game.legal_actions() == sorted(cards(IDLE))

    def test_blocked_discard_lone_card(self, variant: str) -> None:
        rules = Rules(variant, blocked="discard")
        game = position(("TD", "AC 2C 4C"), "TS TH", rules=rules)
        assert game.phase == Phase.DISCARD
        assert game.legal_actions() == cards("TD")
        play(game, "TD")
        assert game.done
        assert game.returns == (1, -1)

    def test_blocked_discard_does_not_change_the_time_before_exhaustion(self, variant: str) -> None:
        game = position(
            (BLOCKED_CLUBS, BLOCKED_DIAMONDS),
            stock="8C 8D",
            rules=Rules(variant, blocked="discard"),
        )
        play(game, "4C")
        assert game.discard(0) == tuple(cards("4C"))
        assert card("4C") not in game.buried


class TestOpponentBlocked:
    """What a discard gives away: the opponent held no couple on the table as it lies now."""

    def start(self) -> Game:
        return position((BLOCKED_CLUBS, BLOCKED_DIAMONDS), stock="8C TH 3D 8D 9C 9D")

    def test_T2_a_discard_says_so_to_the_other_player_only(self) -> None:
        game = self.start()
        assert not game.view(1).opponent_blocked
        play(game, "7C")
        assert game.view(1).opponent_blocked
        assert not game.view(0).opponent_blocked

    def test_T2_it_holds_while_the_table_stays(self) -> None:
        game = play(self.start(), "7C 7D")
        assert game.view(0).opponent_blocked
        assert game.view(1).opponent_blocked

    def test_T1_a_couple_clears_it(self) -> None:
        # Player 0 has drawn 8C and 3D, player 1 TH and 8D: C1 needs a ten and a three in one hand.
        game = play(self.start(), "7C 7D 6C")
        assert hand(game, 0) == set(cards("AC 2C 4C 5C 8C 3D"))
        assert game.view(1).opponent_blocked
        game = position((BLOCKED_CLUBS, "3C TD 4D 5D 6D 7D"), stock="8C 8D 9C 9D")
        play(game, "7C")
        assert game.view(1).opponent_blocked
        game.step(card("TD"))  # the couple is not placed yet
        assert game.view(1).opponent_blocked
        game.step(card("3C"))
        assert not game.view(1).opponent_blocked
        assert not game.view(0).opponent_blocked

    def test_E1_exhaustion_clears_it(self) -> None:
        game = position((BLOCKED_CLUBS, SIX_WITH_COUPLES), stock="8C", discards=("QC", ""))
        play(game, "7C")
        assert not game.view(1).opponent_blocked


# Refusals -----------------------------------------------------------------------------------


class TestFromPositionRefuses:
    def test_a_doubled_card_on_table_and_hand(self) -> None:
        with pytest.raises(ValueError, match="TS"):
            position(("TS 3C", "AD 2D"))

    def test_a_doubled_card_in_two_hands(self) -> None:
        with pytest.raises(ValueError, match="4D"):
            position(("4D 3C", "AD 4D"))

    def test_a_doubled_card_in_one_hand(self) -> None:
        with pytest.raises(ValueError, match="3C"):
            position(("3C 3C", "AD 4D"))

    def test_a_doubled_card_in_stock_and_discard(self) -> None:
        with pytest.raises(ValueError, match="8C"):
            position((BLOCKED_CLUBS, BLOCKED_DIAMONDS), stock="8C 9C", discards=("8C", "9D"))

    def test_a_doubled_card_in_the_buried_ones(self) -> None:
        buried = names(i for i in range(52) if name(i) not in ("TS", "3H", "TD", "3C", "AD"))
        with pytest.raises(ValueError, match="2D"):
            position(("TD 3C", "AD 2D"), buried=buried)

    def test_a_lost_card(self) -> None:
        named = ("TS", "3H", "TD", "3C", "AD", "2D")
        buried = [name(i) for i in range(52) if name(i) not in named]
        assert not position(("TD 3C", "AD 2D"), buried=" ".join(buried)).done
        buried.remove("QC")
        with pytest.raises(ValueError, match="QC"):
            position(("TD 3C", "AD 2D"), buried=" ".join(buried))

    @pytest.mark.parametrize("unknown", [52, -1, 99, "1X", "ZC"])
    def test_an_unknown_card(self, unknown: Any) -> None:
        with pytest.raises(ValueError, match=str(unknown)):
            Game.from_position(([unknown, 3], [4, 5]), cards("TS 3H"))

    def test_a_card_outside_a_small_deck(self) -> None:
        rules = Rules(ranks=6, suits=2, hand_size=3)
        with pytest.raises(ValueError, match="13"):
            Game.from_position(([13, 1], [2, 3]), [4, 5], rules=rules)

    @pytest.mark.parametrize("table", ["TS", "TS 3H 4H", ""])
    def test_a_table_of_other_than_two_cards(self, table: str) -> None:
        with pytest.raises(ValueError, match="table"):
            position(("TD 3C", "AD 2D"), table=table)

    def test_a_mover_that_is_no_player(self) -> None:
        for to_move in (-1, 2):
            with pytest.raises(ValueError, match=str(to_move)):
                position(("TD 3C", "AD 2D"), to_move=to_move)

    @pytest.mark.parametrize(
        ("hands", "size"),
        [
            (("AC 2C 4C 5C 6C", BLOCKED_DIAMONDS), "5"),
            ((BLOCKED_CLUBS + " 9C", BLOCKED_DIAMONDS), "7"),
            ((BLOCKED_CLUBS, "AD"), "1"),
        ],
    )
    def test_T3_hands_are_full_while_there_is_stock(
        self, hands: tuple[str, str], size: str
    ) -> None:
        with pytest.raises(ValueError, match=size):
            position(hands, stock="8C 8D")

    def test_T1_an_odd_number_buried_while_there_is_stock(self) -> None:
        # A couple buries two cards; 52 - 12 - 2 - 1 = 37 cannot be.
        with pytest.raises(ValueError, match="37"):
            position((BLOCKED_CLUBS, BLOCKED_DIAMONDS), stock="8C")

    def test_E2_discards_without_stock(self) -> None:
        with pytest.raises(ValueError, match="discard"):
            position((BLOCKED_CLUBS, BLOCKED_DIAMONDS), discards=("8C 9C", ""))

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_E3_an_odd_number_buried_after_exhaustion(self, variant: str) -> None:
        # 52 - 2 - 5 = 45. With blocked="discard" a single card may have been laid away.
        hands = ("AC 2C", "AD 2D 4D")
        with pytest.raises(ValueError, match="45"):
            position(hands, rules=Rules(variant, blocked="pass"))
        assert not position(hands, rules=Rules(variant, blocked="discard")).done


class TestFromDeckRefuses:
    def test_a_short_and_a_long_deck(self) -> None:
        with pytest.raises(ValueError, match="51"):
            Game.from_deck(list(range(51)))
        with pytest.raises(ValueError, match=r"53|AC"):  # too many cards, so one is there twice
            Game.from_deck([*range(52), card("AC")])

    def test_a_doubled_card(self) -> None:
        with pytest.raises(ValueError, match="QC"):
            Game.from_deck([card("QC"), *range(51)])

    @pytest.mark.parametrize("unknown", [52, -1, "1X"])
    def test_an_unknown_card(self, unknown: Any) -> None:
        with pytest.raises(ValueError, match=str(unknown)):
            Game.from_deck([unknown, *range(1, 52)])

    def test_S1_a_dealer_that_is_no_player(self) -> None:
        for dealer in (2, -1):
            with pytest.raises(ValueError, match="dealer"):
                Game.from_deck(list(range(52)), dealer=dealer)
            with pytest.raises(ValueError, match="dealer"):
                Game(seed=1, dealer=dealer)

    def test_a_batch_with_one_bad_deck(self) -> None:
        decks = [list(range(52)), [card("QC"), *range(51)]]
        with pytest.raises(ValueError, match="QC"):
            GameBatch.from_decks(decks, CLASSIC)


# Rules and names ----------------------------------------------------------------------------


class TestRules:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("variant", "poker"),
            ("variant", ""),
            ("ranks", 1),
            ("ranks", 14),
            ("ranks", 6.5),
            ("ranks", "6"),
            ("suits", 0),
            ("suits", 5),
            ("suits", None),
            ("hand_size", 1),
            ("hand_size", 0),
            ("hand_size", -6),
            ("hand_size", 25),  # 52 - 50 - 2 leaves no stock
            ("open_discards", "maybe"),
            ("open_discards", None),
            ("blocked", "draw"),
            ("blocked", None),
        ],
    )
    def test_a_bad_field_is_named(self, field: str, value: Any) -> None:
        with pytest.raises(ValueError, match=field):
            Rules(**{field: value})

    def test_the_largest_and_smallest_sizes_are_legal(self) -> None:
        assert Rules(hand_size=24).stock_size == 2
        assert Rules(ranks=7, suits=1, hand_size=2).stock_size == 1
        assert Rules(ranks=2, suits=4, hand_size=2).stock_size == 2
        with pytest.raises(ValueError, match="hand_size"):
            Rules(ranks=6, suits=1, hand_size=2)

    def test_frozen(self) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            CLASSIC.ranks = 6  # type: ignore[misc]
        assert hash(Rules()) == hash(CLASSIC)

    def test_defaults(self) -> None:
        assert Rules() == CLASSIC == Rules("classic", 13, 4, 6, True, "pass")
        assert Rules("exchange") == EXCHANGE

    @pytest.mark.parametrize(
        ("rules", "text"),
        [
            (Rules(), "classic"),
            (Rules("exchange"), "exchange"),
            (Rules("exchange", 6, 2, 3), "exchange(ranks=6,suits=2,hand_size=3)"),
            (Rules(open_discards=False), "classic(open_discards=False)"),
            (Rules(blocked="discard"), "classic(blocked=discard)"),
            (
                Rules("classic", open_discards=False, blocked="discard"),
                "classic(open_discards=False,blocked=discard)",
            ),
            (
                Rules("exchange", 5, 3, 4, False, "discard"),
                "exchange(ranks=5,suits=3,hand_size=4,open_discards=False,blocked=discard)",
            ),
        ],
    )
    def test_text_round_trip(self, rules: Rules, text: str) -> None:
        assert str(rules) == text
        assert Rules.parse(text) == rules

    @pytest.mark.parametrize(
        ("text", "named"),
        [
            ("", ""),
            ("poker", "poker"),
            ("classic(", ""),
            ("classic)", ""),
            ("classic(ranks)", "ranks"),
            ("classic(ranks=)", "ranks"),
            ("classic(ranks=abc)", "abc"),
            ("classic(ranks=99)", "ranks"),
            ("classic(suits=0)", "suits"),
            ("classic(cards=3)", "cards"),
            ("classic(open_discards=perhaps)", "perhaps"),
            ("classic(blocked=draw)", "draw"),
            ("classic(ranks=6,ranks=7)", "ranks"),
            ("exchange(ranks=6)(suits=2)", ""),
            ("exchange(ranks=6) and more", ""),
        ],
    )
    def test_bad_text_is_refused(self, text: str, named: str) -> None:
        with pytest.raises(ValueError, match=named or None):
            Rules.parse(text)


class TestNames:
    def test_every_card_has_a_name_and_back(self) -> None:
        for index in range(52):
            assert card_name(index) == name(index)
            assert parse_card(name(index)) == index

    @pytest.mark.parametrize(
        ("text", "index"), [("AC", 0), ("KC", 12), ("TD", 22), ("10D", 22), ("JH", 36), ("KS", 51)]
    )
    def test_parse_card(self, text: str, index: int) -> None:
        assert parse_card(text) == index

    @pytest.mark.parametrize("text", ["", "C", "T", "1C", "11D", "100D", "AX", "ZC", "ACC", "A C"])
    def test_parse_card_refuses(self, text: str) -> None:
        with pytest.raises(ValueError, match=text or None):
            parse_card(text)

    @pytest.mark.parametrize("index", [52, -1])
    def test_card_name_refuses(self, index: int) -> None:
        with pytest.raises(ValueError, match=str(index)):
            card_name(index)

    def test_small_deck(self) -> None:
        rules = Rules(ranks=6, suits=2, hand_size=3)
        assert card_name(6, rules) == "AD"
        assert parse_card("6D", rules) == 11
        for text in ("7C", "KC", "10C", "AH", "AS"):
            with pytest.raises(ValueError, match=text or None):
                parse_card(text, rules)
        with pytest.raises(ValueError, match="12"):
            card_name(12, rules)

    def test_actions(self) -> None:
        assert action_name(22, CLASSIC) == "TD"
        assert action_name(52, CLASSIC) == "STOCK"
        assert action_name(53, CLASSIC) == "RECLAIM"
        assert parse_action("10D", CLASSIC) == parse_action("TD", CLASSIC) == 22
        assert parse_action("STOCK", CLASSIC) == 52
        assert parse_action("RECLAIM", CLASSIC) == 53

    def test_actions_of_a_small_deck(self) -> None:
        rules = Rules(ranks=6, suits=2, hand_size=3)
        assert [action_name(action, rules) for action in range(14)] == [
            *names(range(12), 6).split(),
            "STOCK",
            "RECLAIM",
        ]
        assert (parse_action("STOCK", rules), parse_action("RECLAIM", rules)) == (12, 13)

    @pytest.mark.parametrize("text", ["", "DRAW", "7", "ZC", "STOCK2"])
    def test_parse_action_refuses(self, text: str) -> None:
        with pytest.raises(ValueError, match=text or None):
            parse_action(text, CLASSIC)

    @pytest.mark.parametrize("action", [54, -1])
    def test_action_name_refuses(self, action: int) -> None:
        with pytest.raises(ValueError, match=str(action)):
            action_name(action, CLASSIC)
