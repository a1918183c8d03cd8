"""The engine against the rule book written a second time (`reference_game.ReferenceGame`).

Random games, compared at every decision, over both rule sets, every switch and many sizes; games
of any shape drawn by hypothesis; and facts that hold whatever is played: no card is lost, games
are bounded, and the 96 images of a game are played alike. A failure prints the rules, the deck and
the actions.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations, permutations
from math import comb, factorial, sqrt
from typing import Any

import numpy as np
import pytest
from helpers import (
    assert_same,
    couples_of,
    describe_play,
    is_legal_size,
    random_deck,
    snapshot_of_engine,
    snapshot_of_reference,
    symmetries,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_game import ReferenceGame, is_legal_couple, legal_couples

from counterweight_env import Game, GameBatch, Rules

VARIANTS = ("classic", "exchange")
PHASE_NUMBERS = {"LEFT": 0, "RIGHT": 1, "DISCARD": 2, "REFILL": 3, "OVER": 4}

Fields = dict[str, Any]


def field_groups() -> Iterator[tuple[Fields, int]]:
    """Yield the rules to compare and the number of games for each."""
    for variant in VARIANTS:
        for chunk in range(4):
            yield {"variant": variant, "chunk": chunk}, 500
        yield {"variant": variant, "open_discards": False}, 300
        yield {"variant": variant, "blocked": "discard"}, 300
        yield {"variant": variant, "open_discards": False, "blocked": "discard"}, 300
        for ranks, suits, hand_size, extra in (
            (7, 1, 2, {}),  # one suit, one stock card
            (2, 4, 2, {}),  # two ranks: C3 never applies
            (6, 2, 3, {"open_discards": False}),
            (13, 1, 4, {"blocked": "discard"}),
            (4, 4, 6, {}),  # a hand as large as the stock is small
            (13, 4, 20, {"open_discards": False, "blocked": "discard"}),
        ):
            sizes = {"ranks": ranks, "suits": suits, "hand_size": hand_size}
            yield {"variant": variant, **sizes, **extra}, 300


def group_name(group: tuple[Fields, int]) -> str:
    return ",".join(str(value) for value in group[0].values())


GROUPS = [
    pytest.param(
        {key: value for key, value in fields.items() if key != "chunk"},
        games,
        100 + seed,
        id=group_name((fields, games)),
    )
    for seed, (fields, games) in enumerate(field_groups())
]


def deck_size_of(fields: Fields) -> int:
    return int(fields.get("ranks", 13) * fields.get("suits", 4))


def random_reference(fields: Fields, rng: random.Random) -> tuple[list[int], ReferenceGame]:
    deck = random_deck(rng, deck_size_of(fields))
    return deck, ReferenceGame(deck, dealer=rng.randrange(2), **fields)


def assert_in_bounds(reference: ReferenceGame, rules: Rules) -> None:
    assert reference.turn <= rules.max_turns
    assert reference.decisions <= rules.max_decisions


def compare_one_game(
    fields: Fields,
    deck: list[int],
    dealer: int,
    choose: Callable[[list[int]], int],
) -> None:
    """Play a game on both and compare them at every decision and at the end."""
    rules = Rules(**fields)
    reference = ReferenceGame(deck, dealer=dealer, **fields)
    game = Game.from_deck(deck, rules, dealer=dealer)
    where = {**fields, "dealer": dealer}
    assert game.dealer == dealer
    actions: list[int] = []
    while True:
        expected, found = snapshot_of_reference(reference), snapshot_of_engine(game)
        assert_same(expected, found, where, deck, actions)
        if reference.done:
            break
        action = choose(reference.legal_actions())
        actions.append(action)
        reference.step(action)
        game.step(action)
    assert_in_bounds(reference, rules)


@pytest.mark.parametrize(("fields", "games", "seed"), GROUPS)
def test_game_plays_as_the_rule_book(fields: Fields, games: int, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(games):
        deck = random_deck(rng, deck_size_of(fields))
        compare_one_game(fields, deck, rng.randrange(2), rng.choice)


def mask_of(held: list[int]) -> int:
    return sum(1 << card for card in held)


@pytest.mark.parametrize(("fields", "games", "seed"), GROUPS)
def test_batch_plays_as_the_rule_book(fields: Fields, games: int, seed: int) -> None:
    """All games of a group in one batch: every row at every step, finished rows too.

    The arrays are compared in full; what only a single game shows is compared for every
    16th row, another 16th at every step.
    """
    rng = random.Random(seed)
    rules = Rules(**fields)
    for dealer in (0, 1):
        decks = [random_deck(rng, rules.deck_size) for _ in range(games // 2)]
        references = [ReferenceGame(deck, dealer=dealer, **fields) for deck in decks]
        batch = GameBatch.from_decks(decks, rules, dealer=dealer)
        played: list[list[int]] = [[] for _ in decks]
        where = {**fields, "dealer": dealer}
        step = 0
        while True:
            legal = np.zeros((len(decks), rules.num_actions), bool)
            for row, reference in enumerate(references):
                legal[row, reference.legal_actions()] = True
            expected = {
                "legal": legal,
                "to_move": np.array([game.to_move for game in references]),
                "phase": np.array([PHASE_NUMBERS[game.phase] for game in references]),
                "done": np.array([game.done for game in references]),
                "returns": np.array([game.returns for game in references]),
                "hands": np.array([[mask_of(held) for held in g.hands] for g in references], "u8"),
                "hand_counts": np.array([[len(held) for held in g.hands] for g in references]),
            }
            for key, values in expected.items():
                found = np.asarray(getattr(batch, key))
                assert found.shape == values.shape, key
                wrong = (found != values).reshape(len(decks), -1).any(axis=1)
                if wrong.any():
                    row = int(wrong.argmax())
                    pytest.fail(
                        f"row {row}, {key}: rule book {values[row]}, engine {found[row]}\n"
                        + describe_play(where, decks[row], played[row])
                    )
            over = bool(expected["done"].all())
            for row in range(0 if over else step % 16, len(decks), 1 if over else 16):
                assert_same(
                    snapshot_of_reference(references[row]),
                    snapshot_of_engine(batch[row]),
                    where,
                    decks[row],
                    played[row],
                )
            if over:
                break
            # The action of a finished row is ignored, whatever it is.
            actions = np.array([rng.randrange(rules.num_actions) for _ in decks])
            for row, reference in enumerate(references):
                if not reference.done:
                    actions[row] = rng.choice(reference.legal_actions())
                    played[row].append(int(actions[row]))
                    reference.step(int(actions[row]))
            batch.step(actions)
            step += 1
        for reference in references:
            assert_in_bounds(reference, rules)


# Any game at all ----------------------------------------------------------------------------


@st.composite
def any_fields(draw: st.DrawFn) -> Fields:
    """Draw rules of any legal size, with any switches."""
    suits = draw(st.integers(1, 4))
    ranks = draw(st.integers(2 if suits == 4 else 3 if suits == 3 else 4 if suits == 2 else 7, 13))
    hand_size = draw(st.integers(2, (suits * ranks - 3) // 2))
    assert is_legal_size(ranks, suits, hand_size)
    return {
        "variant": draw(st.sampled_from(VARIANTS)),
        "ranks": ranks,
        "suits": suits,
        "hand_size": hand_size,
        "open_discards": draw(st.booleans()),
        "blocked": draw(st.sampled_from(("pass", "discard"))),
    }


@st.composite
def any_game(draw: st.DrawFn) -> tuple[Fields, list[int], int, list[int]]:
    """Draw rules, a deck in any order, a dealer and a list of choices."""
    fields = draw(any_fields())
    deck = draw(st.permutations(range(deck_size_of(fields))))
    choices = draw(st.lists(st.integers(0, 59), min_size=1, max_size=60))
    return fields, list(deck), draw(st.integers(0, 1)), choices


def chooser(choices: list[int]) -> Callable[[list[int]], int]:
    """Return a player that takes its choices in turn, and begins again at the end of them."""
    taken = 0

    def choose(legal: list[int]) -> int:
        nonlocal taken
        choice = choices[taken % len(choices)]
        taken += 1
        return legal[choice % len(legal)]

    return choose


@settings(max_examples=200, deadline=None)
@given(any_game())
def test_any_game_plays_as_the_rule_book(
    drawn: tuple[Fields, list[int], int, list[int]],
) -> None:
    fields, deck, dealer, choices = drawn
    compare_one_game(fields, deck, dealer, chooser(choices))


@st.composite
def any_table_and_hands(draw: st.DrawFn) -> tuple[Fields, list[int], list[int], list[int]]:
    """Draw rules, a table and two hands, of an even number of cards together."""
    fields = draw(any_fields())
    deck = draw(st.permutations(range(deck_size_of(fields))))
    ours = draw(st.integers(1, min(16, len(deck) - 4)))
    theirs = draw(st.integers(1, min(16, len(deck) - 2 - ours)))
    if (len(deck) - 2 - ours - theirs) % 2:
        ours, theirs = (ours - 1, theirs) if ours > 1 else (ours, theirs - 1)
    return fields, deck[:2], deck[2 : 2 + ours], deck[2 + ours : 2 + ours + theirs]


@settings(max_examples=300, deadline=None)
@given(any_table_and_hands())
def test_C1_C2_C3_C4_two_ways_of_writing_them(
    drawn: tuple[Fields, list[int], list[int], list[int]],
) -> None:
    """The reference's couples from candidates are the couples word for word."""
    fields, table, ours, theirs = drawn
    for held in (ours, theirs, ours + theirs):
        word_for_word = {
            (a, b)
            for a in held
            for b in held
            if is_legal_couple(a, b, table, fields["variant"], fields["ranks"])
        }
        assert legal_couples(held, table, fields["variant"], fields["ranks"]) == word_for_word


# From a position ----------------------------------------------------------------------------


def engine_at(reference: ReferenceGame, rules: Rules, name_buried: bool) -> Game:
    """Build the engine's game at the start of the turn the reference stands at."""
    return Game.from_position(
        reference.hands,
        reference.table,
        stock=reference.stock,
        discards=reference.discards,
        buried=reference.buried if name_buried else None,
        to_move=max(reference.to_move, 0),
        rules=rules,
    )


# A position says nothing of the turns before it.
FORGOTTEN = ("known", "turn")


@pytest.mark.parametrize(
    "fields",
    [
        {"variant": variant, **more}
        for variant in VARIANTS
        for more in (
            {},
            {"blocked": "discard", "open_discards": False},
            {"ranks": 7, "suits": 1, "hand_size": 2},
            {"ranks": 6, "suits": 2, "hand_size": 3, "blocked": "discard"},
            {"ranks": 4, "suits": 4, "hand_size": 6},
        )
    ],
    ids=lambda fields: ",".join(map(str, fields.values())),
)
def test_every_position_that_occurs_can_be_built(fields: Fields) -> None:
    """Every start of a turn, and every end, of random games; and play goes on from there."""
    rng = random.Random(17)
    rules = Rules(**fields)
    for number in range(40):
        deck, reference = random_reference(fields, rng)
        actions: list[int] = []
        while True:
            if reference.phase in ("LEFT", "DISCARD", "OVER"):
                game = engine_at(reference, rules, name_buried=bool(rng.randrange(2)))
                expected, found = snapshot_of_reference(reference), snapshot_of_engine(game)
                for key in FORGOTTEN:
                    del expected[key], found[key]
                assert_same(expected, found, fields, deck, actions)
                if number < 10 and rng.random() < 0.1:
                    play_on(copy.deepcopy(reference), game, rng, fields, deck, actions)
            if reference.done:
                break
            actions.append(rng.choice(reference.legal_actions()))
            reference.step(actions[-1])


def play_on(
    reference: ReferenceGame,
    game: Game,
    rng: random.Random,
    fields: Fields,
    deck: list[int],
    before: list[int],
) -> None:
    actions = list(before)
    while not reference.done:
        actions.append(rng.choice(reference.legal_actions()))
        reference.step(actions[-1])
        game.step(actions[-1])
        expected, found = snapshot_of_reference(reference), snapshot_of_engine(game)
        for key in FORGOTTEN:
            del expected[key], found[key]
        assert_same(expected, found, fields, deck, actions)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.permutations(range(52)), st.sampled_from(VARIANTS))
def test_C1_C2_C3_C4_on_any_table(data: st.DataObject, deck: list[int], variant: str) -> None:
    """Couples of the engine on any table, before exhaustion, with hands of any size."""
    hand_size = data.draw(st.integers(2, 16))
    table, ours, theirs = deck[:2], deck[2 : 2 + hand_size], deck[2 + hand_size :][:hand_size]
    stock = deck[2 + 2 * hand_size :]
    game = Game.from_position(
        (ours, theirs), table, stock=stock, rules=Rules(variant, hand_size=hand_size)
    )
    expected = legal_couples(ours, table, variant, 13)
    assert couples_of(game) == expected
    assert game.phase.name == ("LEFT" if expected else "DISCARD")


# What holds in every game -------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("blocked", ["pass", "discard"])
def test_no_card_is_lost_or_doubled(variant: str, blocked: str) -> None:
    rng = random.Random(5)
    fields = {"variant": variant, "blocked": blocked}
    for _ in range(60):
        deck, reference = random_reference(fields, rng)
        game = Game.from_deck(deck, Rules(**fields), dealer=reference.dealer)
        actions: list[int] = []
        while True:
            places = [
                *(game.hand(0) + game.hand(1)),
                *(game.discard(0) + game.discard(1)),
                *game.table,
                *game.buried,
            ]
            say = describe_play(fields, deck, actions)
            assert len(places) == len(set(places)), say
            assert len(places) + game.stock_size == 52, say
            assert set(places) | set(reference.stock) == set(range(52)), say
            if game.done:
                break
            actions.append(rng.choice(game.legal_actions()))
            game.step(actions[-1])
            reference.step(actions[-1])


def own_bounds(rules: Rules) -> tuple[int, int]:
    """Return bounds on turns and decisions, from the rule book's last line.

    A couple buries two cards for good and two cards stay on the table, so there are at most
    (deck - 2) / 2 couples. A discard before exhaustion uses up a stock card, so there are at
    most `stock_size` of them. With blocked="discard" a card laid away after exhaustion is gone
    like half a couple. A pass is no turn. A couple takes at most four decisions (left, right,
    two refills), a discard one.
    """
    gone = rules.deck_size - 2
    turns = rules.stock_size + (gone if rules.blocked == "discard" else gone // 2)
    return turns, rules.stock_size + 4 * (gone // 2) + gone % 2


@pytest.mark.parametrize(
    "fields",
    [
        {"variant": variant, "blocked": blocked, **sizes}
        for variant in VARIANTS
        for blocked in ("pass", "discard")
        for sizes in (
            {},
            {"ranks": 7, "suits": 1, "hand_size": 2},
            {"ranks": 2, "suits": 4, "hand_size": 2},
            {"ranks": 13, "suits": 1, "hand_size": 2},
            {"ranks": 6, "suits": 2, "hand_size": 4},
        )
    ],
    ids=lambda fields: ",".join(map(str, fields.values())),
)
def test_games_are_bounded(fields: Fields) -> None:
    """Also for players who draw the game out: a card reclaimed spares the stock."""
    rng = random.Random(23)
    rules = Rules(**fields)
    turns, decisions = own_bounds(rules)
    longest_turns = longest_decisions = 0
    for number in range(300):
        _, reference = random_reference(fields, rng)
        while not reference.done:
            legal = reference.legal_actions()
            if reference.phase == "REFILL" and number % 3:
                reference.step(legal[number % 3 - 1])
            else:
                reference.step(rng.choice(legal))
        longest_turns = max(longest_turns, reference.turn)
        longest_decisions = max(longest_decisions, reference.decisions)
    assert longest_turns <= min(turns, rules.max_turns)
    assert longest_decisions <= min(decisions, rules.max_decisions)
    # A bound that anybody can use, to size a buffer for instance.
    assert rules.max_turns <= 2 * rules.deck_size
    assert rules.max_decisions <= 8 * rules.deck_size


@pytest.mark.parametrize("variant", VARIANTS)
def test_F4_an_odd_count_at_exhaustion_never_goes_out(variant: str) -> None:
    rng = random.Random(29)
    odd = 0
    for _ in range(150):
        deck, reference = random_reference({"variant": variant}, rng)
        game = Game.from_deck(deck, variant, dealer=reference.dealer)
        counts = None
        while not game.done:
            game.step(rng.choice(game.legal_actions()))
            if game.exhausted and counts is None:
                counts = (len(game.hand(0)), len(game.hand(1)))
        assert counts is not None
        for player in (0, 1):
            if counts[player] % 2:
                odd += 1
                assert len(game.hand(player)) % 2 == 1
    assert odd > 50


@pytest.mark.parametrize(
    ("fields", "images"),
    [
        ({"variant": "classic"}, 96),
        ({"variant": "exchange"}, 96),
        ({"variant": "classic", "blocked": "discard", "ranks": 9, "hand_size": 4}, 96),
        ({"variant": "exchange", "ranks": 8, "suits": 3, "hand_size": 3}, 24),
        ({"variant": "classic", "ranks": 12, "suits": 2, "hand_size": 3}, 8),
        ({"variant": "exchange", "ranks": 13, "suits": 1, "hand_size": 3}, 4),
    ],
)
def test_symmetries_play_the_image_of_a_game(fields: Fields, images: int) -> None:
    """A game and its images: the same moves, mapped, at every turn; the same end.

    Swapping left with right changes which card is chosen first, so whole couples are compared.
    """
    rng = random.Random(31)
    rules = Rules(**fields)
    deck, base = random_reference(fields, rng)
    mappings = symmetries(rules.ranks, rules.suits)
    assert len(mappings) == images
    games = [
        Game.from_deck(image.deck(deck, rules.hand_size), rules, dealer=base.dealer)
        for image in mappings
    ]
    while not base.done:
        legal = base.legal_actions()
        if base.phase == "LEFT":
            couples = base.couples(base.to_move)
            left, right = rng.choice(sorted(couples))
            base.step(left)
            base.step(right)
            for image, game in zip(mappings, games, strict=True):
                assert couples_of(game) == {image.couple(couple) for couple in couples}
                for action in image.couple((left, right)):
                    game.step(action)
        elif base.phase == "DISCARD":
            action = rng.choice(legal)
            base.step(action)
            for image, game in zip(mappings, games, strict=True):
                assert set(game.legal_actions()) == {image.card(laid) for laid in legal}
                game.step(image.card(action))
        else:
            action = rng.choice(legal)
            base.step(action)
            for game in games:
                assert game.legal_actions() == legal
                game.step(action)
        for image, game in zip(mappings, games, strict=True):
            assert (game.to_move, game.phase.name) == (base.to_move, base.phase)
            assert game.turn == base.turn
            for player in (0, 1):
                assert set(game.hand(player)) == {image.card(held) for held in base.hands[player]}
    assert all(tuple(game.returns) == base.returns for game in games)


# What a player may know ---------------------------------------------------------------------

SMALL = {"ranks": 6, "suits": 2, "hand_size": 3}


def test_worlds_of_a_fresh_deal_are_all_of_them() -> None:
    game = ReferenceGame(list(range(12)), **SMALL)
    for player in (0, 1):
        worlds = game.worlds(player)
        # Seven cards unseen: three of them in the other hand, four in the stock in any order.
        assert len(worlds) == len(set(worlds)) == comb(7, 3) * factorial(4)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("open_discards", [True, False])
def test_worlds_after_a_discard_are_the_deals_that_allow_it(
    variant: str, open_discards: bool
) -> None:
    """One discard into the game the worlds can be counted from the deals alone."""
    rng = random.Random(3)
    checked = 0
    while checked < 5:
        deck = random_deck(rng, 12)
        game = ReferenceGame(deck, variant=variant, open_discards=open_discards, **SMALL)
        if game.phase != "DISCARD":
            continue
        laid = game.hands[0][0]
        game.step(laid)
        checked += 1
        hidden = deck[0:3] + deck[8:]
        expected = Counter()
        for first in combinations(hidden, 3):
            if legal_couples(first, deck[6:8], variant, 6):
                continue  # the player was blocked, so this was not the hand
            rest = [card for card in hidden if card not in first]
            for out in (laid,) if open_discards else first:
                if out not in first:
                    continue
                for stock in permutations(rest):
                    now = frozenset(first) - {out} | {stock[0]}
                    expected[now, stock[0], stock[1:], None if open_discards else (out,)] += 1
        assert Counter(game.worlds(1)) == expected


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("open_discards", [True, False])
def test_worlds_hold_the_truth(variant: str, open_discards: bool) -> None:
    rng = random.Random(11)
    fields = {"variant": variant, "open_discards": open_discards, **SMALL}
    for _ in range(12):
        _, game = random_reference(fields, rng)
        while not game.done:
            for player in (0, 1):
                worlds = game.worlds(player)
                assert game.true_world(player) in worlds
                assert len(worlds) == len(set(worlds))
                if game.exhausted:
                    assert len(worlds) == 1  # E3
            game.step(rng.choice(game.legal_actions()))


@pytest.mark.parametrize(
    "fields",
    [
        {"variant": variant, "open_discards": open_discards, **sizes}
        for variant in VARIANTS
        for open_discards in (True, False)
        for sizes in ({}, {"ranks": 9, "suits": 2, "hand_size": 3})
    ],
    ids=lambda fields: ",".join(map(str, fields.values())),
)
def test_views_know_what_the_rule_book_says(fields: Fields) -> None:
    """Cards seen, cards known, cards unseen and "opponent blocked", of both players, always."""
    rng = random.Random(37)
    rules = Rules(**fields)
    for _ in range(20):
        deck, reference = random_reference(fields, rng)
        game = Game.from_deck(deck, rules, dealer=reference.dealer)
        actions: list[int] = []
        while True:
            for player in (0, 1):
                other = 1 - player
                on_turn = reference.to_move == player
                pile = reference.discards[other] if reference.open_discards else []
                expected = {
                    "player": player,
                    "to_move": reference.to_move,
                    "hand": tuple(reference.hands[player]),
                    "table": tuple(reference.table),
                    "buried": tuple(reference.buried),
                    "own_discard": tuple(reference.discards[player]),
                    "opponent_discard": tuple(pile),
                    "known_in_opponent_hand": tuple(sorted(reference.known[other])),
                    "unseen": tuple(reference.unseen(player)),
                    "stock_size": len(reference.stock),
                    "opponent_hand_size": len(reference.hands[other]),
                    "opponent_discard_size": len(reference.discards[other]),
                    "exhausted": reference.exhausted,
                    "opponent_blocked": reference.blocked_flag[other],
                    "chosen": reference.chosen if on_turn else None,
                    "phase": reference.phase if on_turn or reference.done else "WAIT",
                    "legal": reference.legal_actions() if on_turn else [],
                }
                view = game.view(player)
                found = {
                    key: getattr(view, key) for key in expected if key not in ("phase", "legal")
                }
                found["phase"] = view.phase.name
                found["legal"] = np.flatnonzero(view.legal_mask).tolist()
                assert_same(expected, found, fields, deck, actions)
            if reference.done:
                break
            actions.append(rng.choice(reference.legal_actions()))
            reference.step(actions[-1])
            game.step(actions[-1])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("open_discards", [True, False])
def test_determinize_draws_evenly_from_the_worlds(variant: str, open_discards: bool) -> None:
    """The opponent's hand (and closed discard) as often as the worlds hold it, and no other."""
    rng = random.Random(41)
    fields = {"variant": variant, "open_discards": open_discards, **SMALL}
    rules = Rules(**fields)
    wanted = {"deal", "blocked", "known" if variant == "classic" and open_discards else "deal"}
    samples = 6000
    while wanted:
        deck, reference = random_reference(fields, rng)
        game = Game.from_deck(deck, rules, dealer=reference.dealer)
        actions: list[int] = []
        while not reference.done and wanted:
            player = reference.to_move
            other = 1 - player
            kinds = {
                "deal": not actions,
                "blocked": reference.blocked_flag[other],
                "known": bool(reference.known[other]) and not reference.exhausted,
            }
            seen = {kind for kind, holds in kinds.items() if holds} & wanted
            if seen:
                wanted -= seen
                weights: Counter = Counter()
                for hand, _, pile, _ in reference.hidden(player):
                    weights[hand, pile] += 1  # every one of them with as many stock orders
                batch = game.view(player).determinize(np.random.default_rng(7), n=samples)
                found: Counter = Counter()
                for row in range(samples):
                    world = batch[row]
                    pile = None if open_discards else tuple(world.discard(other))
                    found[frozenset(world.hand(other)), pile] += 1
                say = f"{seen}\n" + describe_play(fields, deck, actions)
                assert set(found) <= set(weights), say
                total = sum(weights.values())
                square = sum(
                    (found[key] - samples * weight / total) ** 2 / (samples * weight / total)
                    for key, weight in weights.items()
                )
                freedom = len(weights) - 1
                # Five standard deviations of a chi-square variable, and no more than one world
                # when there is only one.
                assert square <= freedom + 5 * sqrt(2 * freedom) + 5 * (freedom > 0), say
            actions.append(rng.choice(reference.legal_actions()))
            reference.step(actions[-1])
            game.step(actions[-1])
