"""The players of `agents/`, finding players by name, and matches on duplicate deals.

What a player likes best is computed a second time here from its docstring, in plain Python over
`reference_game.legal_couples`; the positions at the end are worked out by hand.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from helpers import card, cards, names
from reference_game import Couple, legal_couples

import agents.arena
from agents import (
    Agent,
    Cautious,
    Greedy,
    Keeper,
    MatchResult,
    Patient,
    Random,
    ViewBatch,
    make_agent,
    play_match,
)
from agents.agent import FallibleAgent
from agents.exact import Exact
from counterweight_env import Game, GameBatch, IllegalActionError, Phase, Rules, View
from counterweight_env.record import replay

PLAYERS = (Random(), Greedy(), Keeper(), Cautious(), Patient())
THINKERS = PLAYERS[1:]
VARIANTS = ("classic", "exchange")
RULES = tuple(
    variant + options
    for variant in VARIANTS
    for options in (
        "",
        "(open_discards=False)",
        "(blocked=discard)",
        "(open_discards=False,blocked=discard)",
        "(ranks=7,suits=1,hand_size=2)",
        "(ranks=2,suits=4,hand_size=2)",
        "(ranks=6,suits=2,hand_size=3,open_discards=False)",
        "(ranks=13,suits=1,hand_size=4,blocked=discard)",
        "(ranks=4,suits=4,hand_size=6)",
        "(hand_size=2)",
        "(hand_size=20,open_discards=False,blocked=discard)",
    )
)


class Pick:
    """Always the legal action at one place of their list: a player that uses no chance."""

    def __init__(self, name: str, place: int) -> None:
        self.name = name
        self.place = place

    def act(self, views: ViewBatch) -> np.ndarray:
        return np.array([np.flatnonzero(row)[self.place] for row in views.legal])


LOWEST = Pick("lowest", 0)
HIGHEST = Pick("highest", -1)


def walk(rules: str, num_games: int, seed: int) -> Iterator[ViewBatch]:
    """Yield the movers' views at every decision of games that all the players play at random."""
    games = GameBatch(num_games, rules, seed=seed)
    rng = np.random.default_rng(seed)
    while not games.done.all():
        rows = np.flatnonzero(~games.done)
        views = games.views(rows=rows)
        yield views
        choices = np.stack([player.act(views) for player in PLAYERS])
        # Every turn a random one of the players: no habit of theirs narrows the positions.
        games.step(choices[rng.integers(len(PLAYERS), size=rows.size), np.arange(rows.size)], rows)


def repeated_views(games: GameBatch, draws: int) -> ViewBatch:
    """Return one decision of one game many times over, each with a random word of its own."""
    views = GameBatch.from_state(np.repeat(games.state, draws), games.rules).views()
    views.random_bits = np.random.default_rng(1).integers(2**64, size=draws, dtype=np.uint64)
    return views


def every_choice(agent: Agent, game: Game) -> set[int]:
    """Return all the actions that an agent chooses at one decision, over many random words."""
    games = GameBatch.from_state(game._state.copy(), game.rules)
    return set(agent.act(repeated_views(games, 64)).tolist())


# Every player ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", RULES)
def test_every_player_is_legal_at_every_decision(rules: str) -> None:
    seen = set()
    for views in walk(rules, 320, seed=11):
        for player in PLAYERS:
            actions = player.act(views)
            assert actions.shape == (len(views),)
            assert np.issubdtype(actions.dtype, np.integer)
            assert views.legal[np.arange(len(views)), actions].all(), player.name
        seen.update(views.records["phase"].tolist())
    assert {Phase.LEFT, Phase.RIGHT, Phase.DISCARD} <= seen


@pytest.mark.parametrize("rules", RULES)
def test_nothing_unknown_and_no_neighbour_has_a_say(rules: str) -> None:
    rng = np.random.default_rng(5)
    differing = 0
    for views in walk(rules, 24, seed=12):
        worlds = views.determinize(1)
        differing += int((worlds.hands.sum(axis=1) != views.records["hand"].sum(axis=1)).sum())
        others = worlds.views(players=views.players)
        others.random_bits = views.random_bits
        order = rng.permutation(len(views))
        for player in PLAYERS:
            actions = player.act(views)
            assert (player.act(views) == actions).all()
            assert (player.act(others) == actions).all(), player.name
            assert (player.act(views.take(order)) == actions[order]).all(), player.name
            assert player.act(views.take(order[:1])) == actions[order[:1]]
    assert differing > 0, "the worlds never differed from the view"


def test_no_global_random_stream_is_read_or_moved() -> None:
    results = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        before = str(np.random.get_state()), random.getstate()  # noqa: NPY002
        results.append(play_match(PLAYERS[0], PLAYERS[3], deals=20).game_scores)
        assert (str(np.random.get_state()), random.getstate()) == before  # noqa: NPY002
    assert (results[0] == results[1]).all()


def test_players_are_found_by_their_own_names() -> None:
    for player in PLAYERS:
        assert type(make_agent(player.name)) is type(player)


# What they choose ------------------------------------------------------------------------------


def test_random_draws_evenly_among_the_legal_actions() -> None:
    draws = 60_000
    games = GameBatch(1, seed=4)
    tested = set()
    while not games.done.all():
        count = int(games.legal.sum())
        if count > 1 and count not in tested:
            tested.add(count)
            actions = Random().act(repeated_views(games, draws))
            found = np.bincount(actions, minlength=54)[games.legal[0]]
            deviation = np.sqrt(draws / count * (1 - 1 / count))
            assert (abs(found - draws / count) < 5 * deviation).all(), found
        games.step(LOWEST.act(games.views()))
    assert len(tested) >= 3


def hidden_cards(view: View) -> list[int]:
    """Return the cards that the opponent may hold, from the view's own words."""
    seen = {*view.hand, *view.table, *view.buried, *view.own_discard, *view.opponent_discard}
    return [index for index in range(view.rules.deck_size) if index not in seen]


def liked_best(player: Agent, view: View) -> set[int]:
    """Return the actions that a player's docstring allows."""
    rules, pool = view.rules, hidden_cards(view)

    def couples(hand: Any, table: Couple) -> set[Couple]:
        return legal_couples(hand, table, rules.variant, rules.ranks)

    def without(*gone: int) -> list[int]:
        return [index for index in view.hand if index not in gone]

    def answered(hand: list[int]) -> int:
        return sum(bool(couples(hand, table)) for table in combinations(pool, 2))

    def standing(mine: list[int], theirs: list[int], table: Couple) -> float:
        own, other = len(couples(mine, table)), len(couples(theirs, table))
        if not own and not other and rules.blocked == "pass":
            return 1e6 * (len(theirs) - len(mine))
        return own - other

    def after_best_reply(mine: list[int], table: Couple) -> float:
        values = []
        for reply in couples(pool, table):
            rest = [index for index in pool if index not in reply]
            values.append(standing(mine, rest, reply) if rest else -1e6 * len(mine))
        if not values and couples(mine, table):
            return 1e4 + standing(mine, pool, table)
        return min(values, default=standing(mine, pool, table))

    def couple_key(couple: Couple) -> Any:
        rest = without(*couple)
        if player.name == "keeper":
            return answered(rest)
        if player.name in ("cautious", "patient") and view.exhausted:
            return after_best_reply(rest, couple)
        return -len(couples(pool, couple)), len(couples(rest, couple))

    def discard_key(index: int) -> float:
        if player.name == "keeper" or view.exhausted:
            return answered(without(index))
        return -sum(index in couple for p in pool for couple in couples((index, p), view.table))

    def given_apart() -> list[int]:
        ranks = [index % rules.ranks for index in view.hand]
        laid = {index % rules.ranks for index in view.own_discard}
        fresh = [index for index in view.hand if index % rules.ranks not in laid]
        single = [index for index in fresh if ranks.count(index % rules.ranks) == 1]
        return single or fresh or list(view.hand)

    patient = player.name == "patient"
    if view.phase == Phase.REFILL:
        return {rules.stock_action if patient else rules.reclaim_action}
    options: dict[int, list[Any]] = {}
    if view.phase == Phase.DISCARD:
        chosen_from = list(view.hand)
        if patient and rules.variant == "exchange" and not view.exhausted:
            chosen_from = given_apart()
        for index in chosen_from:
            options[index] = [discard_key(index)]
    for left, right in couples(view.hand, view.table):
        if view.phase == Phase.LEFT:
            options.setdefault(left, []).append(couple_key((left, right)))
        elif view.phase == Phase.RIGHT and left == view.chosen:
            options.setdefault(right, []).append(couple_key((left, right)))
    best = max(key for keys in options.values() for key in keys)
    return {action for action, keys in options.items() if best in keys}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("options", "num_games", "share"),
    [
        ("(ranks=6,suits=3,hand_size=3)", 12, 1.0),
        ("(ranks=7,suits=2,hand_size=4,open_discards=False,blocked=discard)", 16, 1.0),
        ("(ranks=5,suits=2,hand_size=2)", 100, 1.0),  # games that are nearly over
        ("(ranks=5,suits=2,hand_size=2,blocked=discard)", 100, 1.0),
        ("", 6, 0.1),
    ],
)
def test_choices_are_what_the_docstrings_say(
    variant: str, options: str, num_games: int, share: float
) -> None:
    rng = np.random.default_rng(7)
    decided = dict.fromkeys((player.name for player in THINKERS), 0)
    for views in walk(variant + options, num_games, seed=13):
        actions = [player.act(views) for player in THINKERS]
        for row in np.flatnonzero(rng.random(len(views)) < share):
            view = views[row]
            for player, action in zip(THINKERS, actions, strict=True):
                allowed = liked_best(player, view)
                assert action[row] in allowed, (player.name, view.hand, view.table)
                decided[player.name] += len(allowed) < view.legal_mask.sum()
    assert min(decided.values()) >= 10, decided


def position(
    mine: str,
    theirs: str,
    table: str,
    stock: str = "",
    ranks: int = 13,
    rules: str = "classic",
) -> Game:
    """Build a position with player 0 on turn."""
    return Game.from_position(
        (cards(mine, ranks), cards(theirs, ranks)),
        cards(table, ranks),
        stock=cards(stock, ranks),
        rules=rules,
    )


def chosen_couple(agent: Agent, game: Game) -> str:
    """Return the couple that an agent places for certain."""
    (left,) = every_choice(agent, game)
    game.step(left)
    (right,) = every_choice(agent, game)
    return names((left, right), game.rules.ranks)


def test_greedy_leaves_the_fewest_couples() -> None:
    # On JS 2H the opponent has QS with AH, on TD 3C nothing.
    game = position("TD 3C JS 2H", "QS AH 5C 6C", "TS 3H")
    assert chosen_couple(Greedy(), game) == "TD 3C"
    # The other way round: on TD 3C they have JD with AC, on JS 2H nothing.
    game = position("TD 3C JS 2H", "JD AC 5C 6C", "TS 3H")
    assert chosen_couple(Greedy(), game) == "JS 2H"


def test_greedy_then_keeps_the_most_couples() -> None:
    # Nothing is left to the opponent either way; 9D with 4C then fits TD 3C, nothing fits JS 2H.
    game = position("TD 3C JS 2H 9D 4C", "5C 6C 7C 8C", "TS 3H")
    assert chosen_couple(Greedy(), game) == "TD 3C"


def test_greedy_discards_what_fits_the_table_least() -> None:
    mine, theirs, table = "9S 3D 3C 8S AS KC", "KD KH KS QC QD QH", "TS 3H"
    named = cards(f"{mine} {theirs} {table}")
    stock = names(index for index in range(52) if index not in named)
    game = position(mine, theirs, table, stock)
    assert game.phase == Phase.DISCARD
    # Spades wait for a heart and threes for a ten; a king of clubs is no use here.
    assert every_choice(Greedy(), game) == {card("KC")}
    assert every_choice(Cautious(), game) == {card("KC")}


def test_keeper_discards_what_answers_the_fewest_tables() -> None:
    # One suit, so a couple goes one up, one down. Of the ten tables of two cards out of 2 3 5 6 8,
    # A and 7 answer all, 4 and 7 all but 2 3, and A and 4 those with a 2 or a 3, that is seven.
    rules = "classic(ranks=10,suits=1,hand_size=3)"
    game = position("AC 4C 7C", "2C 3C 5C", "TC 9C", "6C 8C", 10, rules)
    assert game.phase == Phase.DISCARD
    assert every_choice(Keeper(), game) == {card("4C", 10)}
    # A with 7 and A with 8 both answer all ten tables of 2 3 4 5 6; 7 with 8 answers none.
    game = position("AC 7C 8C", "2C 3C 4C", "TC 9C", "5C 6C", 10, rules)
    assert every_choice(Keeper(), game) == {card("7C", 10), card("8C", 10)}
    # Chance decides evenly between equals.
    games = GameBatch.from_state(game._state.copy(), game.rules)
    actions = Keeper().act(repeated_views(games, 10_000))
    assert abs((actions == card("7C", 10)).mean() - 0.5) < 0.025


def test_cautious_looks_at_the_reply_and_greedy_does_not() -> None:
    rules = "classic(ranks=6,suits=2,hand_size=3)"
    mine, theirs, table = "3D 4C 2C 6D", "5D AC 6C 2D", "AD 3C"
    # 3D 2C leaves two replies, 6D 2C three. But after 3D 2C comes 5D AC, which leaves nothing for
    # 4C 6D and 2D with 6C for them; after 6D 2C each reply leaves both a couple, or both none and
    # equal hands.
    assert chosen_couple(Greedy(), position(mine, theirs, table, "", 6, rules)) == "3D 2C"
    assert chosen_couple(Cautious(), position(mine, theirs, table, "", 6, rules)) == "6D 2C"


def test_cautious_keeps_a_draw() -> None:
    # After 6D AC comes 3D 2C and the opponent is out, though 2D 4C would have been next; 6D 4C
    # blocks both at two cards each.
    rules = "classic(ranks=6,suits=2,hand_size=3)"
    game = position("6D 2D 4C AC", "2C 3D", "5D 5C", "", 6, rules)
    assert chosen_couple(Cautious(), game) == "6D 4C"


def test_cautious_ends_a_won_game() -> None:
    # There is no reply to either couple. 5D 6C blocks both and wins by two cards to four; after
    # 3D 6C the game would go on.
    rules = "classic(ranks=6,suits=2,hand_size=3)"
    mine, theirs, table = "5D 3D 6C 3C", "AD 5C AC 2D", "6D 4C"
    assert chosen_couple(Greedy(), position(mine, theirs, table, "", 6, rules)) == "3D 6C"
    assert chosen_couple(Cautious(), position(mine, theirs, table, "", 6, rules)) == "5D 6C"


def test_thinkers_reclaim_and_the_patient_draws() -> None:
    for views in walk("classic", 40, seed=14):
        refills = views.records["phase"] == Phase.REFILL
        for player in THINKERS:
            patient = player.name == "patient"
            source = views.rules.stock_action if patient else views.rules.reclaim_action
            assert (player.act(views)[refills] == source).all()


def test_patient_gives_no_pairs_away() -> None:
    # In exchange the discard becomes the opponent's hand. A single card of a fresh rank goes first.
    hand = ["AC", "AD", "3C", "5D", "7H", "9S"]
    table, stock = ["KC", "QD"], ["2C", "2D", "2H", "2S", "4C", "4D", "4H", "4S", "6C", "6D"]
    other = ["JC", "JD", "JH", "TC", "TD", "TH"]
    piles = (["3D", "9C"], ["8C", "8D"])
    game = Game.from_position([hand, other], table, stock, piles, rules="exchange")
    assert game.phase == Phase.DISCARD
    assert every_choice(Patient(), game) <= {card("5D"), card("7H")}
    # Only aces are of a fresh rank, though there are two of them.
    piles = (["3D", "9C", "5C", "7C"], ["8C", "8D"])
    game = Game.from_position([hand, other], table, stock, piles, rules="exchange")
    assert every_choice(Patient(), game) <= {card("AC"), card("AD")}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("player", THINKERS, ids=lambda player: player.name)
def test_thinkers_beat_random(variant: str, player: Agent) -> None:
    result = play_match(player, "random", variant, deals=1_200)
    assert result.interval[0] > 0.5, result


# Matches ---------------------------------------------------------------------------------------

NINE = "classic(ranks=9,suits=1,hand_size=3)"


def test_a_match_counted_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    # Player 0 moves first and draws the only stock card after the first couple. In order: hands of
    # players 0 and 1, table, stock.
    decks = [
        # Lowest places 2 3, which blocks both: 2 cards to 3. Highest places 9 3, lowest answers
        # 6 7, which blocks both: 2 cards to 1. Lowest wins both games, in 1 and 2 turns.
        "2C 3C 9C 7C 8C 6C AC 5C 4C",
        # Lowest places 3 8, highest answers 4 2, which blocks both: 2 cards to 1. Highest places
        # 6 8, which blocks both: 2 cards to 3. Highest wins both games, in 2 turns and 1.
        "3C 8C 6C AC 2C 4C 9C 7C 5C",
        # Lowest places 6 7, the other is blocked, lowest places 3 8 and is out. Highest places 8 7,
        # which blocks both: 2 cards to 3. Player 0 wins both games, in 2 turns and 1.
        "6C 7C 8C 5C 4C AC 9C 2C 3C",
    ]

    def deal(rules: Rules, seed: int, first_deal: int, deals: int) -> GameBatch:
        picked = decks[first_deal : first_deal + deals]
        return GameBatch.from_decks([cards(deck, 9) for deck in picked for _ in "12"], rules)

    monkeypatch.setattr(agents.arena, "deal_twice", deal)
    for batch_size in (1, 2, 3):
        result = play_match(LOWEST, HIGHEST, NINE, deals=3, seed=9, batch_size=batch_size)
        assert result.game_scores.tolist() == [[1, 1], [0, 0], [1, 0]]
        assert result.deal_scores.tolist() == [1, 0, 0.5]
        assert (result.wins, result.draws, result.losses) == (3, 0, 3)
        assert (result.deals, result.games, result.score) == (3, 6, 0.5)
        assert result.turns == 9 / 6
        assert result.first_mover_score == pytest.approx(4 / 6)
        assert (result.a, result.b, result.seed) == ("lowest", "highest", 9)
        assert result.rules == Rules.parse(NINE)


@pytest.mark.parametrize("variant", VARIANTS)
def test_match_agrees_with_games_played_one_at_a_time(variant: str) -> None:
    result = play_match(LOWEST, HIGHEST, variant, deals=12, seed=5)
    turns, first_mover = [], []
    for number in range(12):
        for seat in (0, 1):
            game = agents.arena.deal_twice(Rules(variant), 5, number, 1)[seat]
            while not game.done:
                game.step((min if game.to_move == seat else max)(game.legal_actions()))
            score = (game.returns[seat] + 1) / 2
            assert result.game_scores[number, seat] == score
            turns.append(game.turn)
            first_mover.append((game.returns[1 - game.dealer] + 1) / 2)
    assert result.turns == pytest.approx(np.mean(turns))
    assert result.first_mover_score == pytest.approx(np.mean(first_mover))


@pytest.mark.parametrize("rules", ["classic", "exchange(open_discards=False,blocked=discard)"])
def test_result_does_not_depend_on_the_batch_size(rules: str) -> None:
    results = [
        play_match("random", Cautious(), rules, deals=21, seed=8, batch_size=batch_size)
        for batch_size in (1_024, 1, 4, 21)
    ]
    for other in results[1:]:
        assert (other.game_scores == results[0].game_scores).all()
        assert other.turns == results[0].turns
        assert other.first_mover_score == results[0].first_mover_score
        assert other.interval == results[0].interval
    fewer = play_match("random", Cautious(), rules, deals=5, seed=8)
    assert (fewer.game_scores == results[0].game_scores[:5]).all()


def test_a_deal_is_the_same_wherever_it_is_played() -> None:
    def cards_of_games(games: GameBatch) -> list[bytes]:
        state = games.state.copy()
        state["rng"] = 0
        return [row.tobytes() for row in state]

    rules = Rules()
    games = agents.arena.deal_twice(rules, 3, 0, 64)
    dealt = cards_of_games(games)
    assert dealt[::2] == dealt[1::2], "both games of a deal have its cards and its dealer"
    assert len(set(dealt)) == 64
    assert len({row.tobytes() for row in games.state["rng"]}) == 128, "streams of their own"
    assert set(games.state["dealer"].tolist()) == {0, 1}
    later = agents.arena.deal_twice(rules, 3, 40, 2)
    assert [row.tobytes() for row in later.state] == [row.tobytes() for row in games.state[80:84]]
    assert not set(cards_of_games(agents.arena.deal_twice(rules, 4, 0, 64))) & set(dealt)


@pytest.mark.parametrize("variant", VARIANTS)
def test_swapping_the_players_turns_the_score(variant: str) -> None:
    there = play_match(LOWEST, HIGHEST, variant, deals=50, seed=1)
    back = play_match(HIGHEST, LOWEST, variant, deals=50, seed=1)
    assert there.score == pytest.approx(1 - back.score)
    assert (there.deal_scores == 1 - back.deal_scores).all()
    assert (there.wins, there.draws, there.losses) == (back.losses, back.draws, back.wins)
    assert there.turns == back.turns
    assert there.first_mover_score == back.first_mover_score
    assert there.score != 0.5


def test_a_player_without_chance_draws_every_deal_with_itself() -> None:
    result = play_match(LOWEST, LOWEST, deals=40, seed=2)
    assert (result.deal_scores == 0.5).all()
    assert result.interval == (0.5, 0.5)
    assert result.wins == result.losses > 0


def test_random_against_itself_is_even() -> None:
    result = play_match("random", "random", deals=3_000, seed=6)
    assert abs(result.score - 0.5) < 0.02
    assert 0.2 < result.draws / result.games < 0.3  # 25 %, says the rule book
    assert abs(result.turns - 43.8) < 0.5
    assert len(np.unique(result.deal_scores)) == 5, "the two games have chance of their own"


def result_of(game_scores: np.ndarray) -> MatchResult:
    return MatchResult("x", "y", Rules(), 0, game_scores, 40.0, 0.5)


def test_interval_is_the_percentile_bootstrap_over_deals() -> None:
    from scipy.stats import bootstrap

    scores = np.random.default_rng(3).choice([0, 0.5, 1], size=(150, 2), p=[0.5, 0.2, 0.3])
    result = result_of(scores)
    expected = bootstrap(
        (scores.mean(axis=1),), np.mean, method="percentile", n_resamples=20_000, rng=0
    ).confidence_interval
    assert result.interval == pytest.approx((expected.low, expected.high), abs=0.005)
    assert result.interval == result_of(scores.copy()).interval
    # Games of one deal go together, so the deal is the unit: twice the games, the same interval.
    doubled = result_of(np.repeat(scores.mean(axis=1)[:, None], 2, axis=1))
    assert doubled.interval == result.interval


def test_interval_covers_the_true_score_19_times_in_20() -> None:
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(400):
        first = rng.choice([0, 0.5, 1], size=120, p=[0.2, 0.25, 0.55])
        second = np.where(rng.random(120) < 0.5, first, 1 - first)  # the games of a deal depend
        low, high = result_of(np.stack([first, second], axis=1)).interval
        covered += low <= 0.5 * (0.675 + 0.5) <= high
    assert 0.91 <= covered / 400 <= 0.98


def test_result_reads_in_one_line_and_cannot_be_changed() -> None:
    result = result_of(np.array([[1, 1], [0.5, 0], [1, 1]]))
    text = str(result)
    assert "\n" not in text
    for part in ("x against y", "0.750", "4 won, 1 drawn, 1 lost", "3 deals of classic"):
        assert part in text, text
    with pytest.raises(AttributeError):
        result.turns = 3.0  # type: ignore[misc]
    played = play_match(LOWEST, HIGHEST, NINE, deals=2)
    with pytest.raises(ValueError, match="read-only"):
        played.game_scores[0] = 0


class Faulty:
    """A lowest-card player whose answer is spoiled by a function of the views and the answer."""

    name = "faulty one"

    def __init__(self, spoil: Callable[[ViewBatch, np.ndarray], Any]) -> None:
        self.spoil = spoil

    def act(self, views: ViewBatch) -> Any:
        return self.spoil(views, LOWEST.act(views))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda views, answer: answer[:-1], "shape"),
        (lambda views, answer: answer[:, None], "shape"),
        (lambda views, answer: answer.astype(float), "float64"),
        (lambda views, answer: answer.astype(bool), "bool"),
        (lambda views, answer: None, "object"),
        (lambda views, answer: answer - 100, "action -"),
        (lambda views, answer: answer + 100, "action 1"),
        (lambda views, answer: np.full_like(answer, 53), "RECLAIM.* illegal"),
    ],
)
@pytest.mark.parametrize("seat", [0, 1])
def test_a_bad_answer_is_refused_by_name(spoil: Any, message: str, seat: int) -> None:
    pair = [LOWEST, LOWEST]
    pair[seat] = Faulty(spoil)  # type: ignore[call-overload]
    with pytest.raises(IllegalActionError, match=f"faulty one.*{message}"):
        play_match(*pair, deals=4)


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_a_bad_answer_is_refused_with_its_decision(batch_size: int) -> None:
    dealt = agents.arena.deal_twice(Rules(), 0, 7, 1)
    first_mover = int(dealt.to_move[0])
    hand = dealt.hands[0, first_mover]

    def spoil(views: ViewBatch, answer: np.ndarray) -> np.ndarray:
        mine = views.records["hand"][np.arange(len(views)), views.players]
        return np.where((mine == hand) & (views.records["turn"] == 0), 52, answer)

    # The faulty player is the first; it has the first mover's seat in game `first_mover`.
    where = f"deal 7, game {first_mover}, turn 0: .*52 .STOCK. is illegal for player {first_mover}"
    with pytest.raises(IllegalActionError, match=where):
        play_match(Faulty(spoil), LOWEST, deals=10, batch_size=batch_size)


def test_what_a_player_writes_into_its_views_changes_no_game() -> None:
    def vandalise(views: ViewBatch, answer: np.ndarray) -> np.ndarray:
        for field in views.records.dtype.names:
            views.records[field] = 0
        return answer

    spoiled = play_match(Faulty(vandalise), HIGHEST, deals=10)
    assert (spoiled.game_scores == play_match(LOWEST, HIGHEST, deals=10).game_scores).all()


class Quitter:
    """Plays the lowest card, and gives a game up wherever a function of the views says so."""

    name = "quitter"

    def __init__(self, quits: Callable[[ViewBatch], np.ndarray]) -> None:
        self.quits = quits
        self.closed = 0

    def act(self, views: ViewBatch) -> np.ndarray:
        raise AssertionError("a match asks act_or_fault where there is one")

    def act_or_fault(self, views: ViewBatch) -> tuple[np.ndarray, dict[int, str]]:
        quits = self.quits(views)
        actions = np.where(quits, -7, LOWEST.act(views))
        return actions, {int(row): f"tired of row {row}" for row in np.flatnonzero(quits)}

    def close(self) -> None:
        self.closed += 1


def never(views: ViewBatch) -> np.ndarray:
    return np.zeros(len(views), np.bool_)


def holds_clubs(turn: int) -> Callable[[ViewBatch], np.ndarray]:
    """Say which movers hold the ace of clubs from some turn on."""

    def quits(views: ViewBatch) -> np.ndarray:
        hands = views.records["hand"][np.arange(len(views)), views.players]
        return ((hands & np.uint64(1)) != 0) & (views.records["turn"] >= turn)

    return quits


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("turn", [0, 12, 25])
def test_who_gives_a_game_up_loses_just_that_game(turn: int, first: bool) -> None:
    quitter = Quitter(holds_clubs(turn))
    deals = 40
    pair = (quitter, HIGHEST) if first else (HIGHEST, quitter)
    result = play_match(*pair, deals=deals, seed=15)
    full = play_match(*((LOWEST, HIGHEST) if first else (HIGHEST, LOWEST)), deals=deals, seed=15)
    expected = full.game_scores.copy()
    faults = 0
    for deal, seat in np.ndindex(deals, 2):
        game = agents.arena.deal_twice(Rules(), 15, deal, 1)[seat]
        quitter_seat = seat if first else 1 - seat
        while not game.done:
            mine = game.to_move == quitter_seat
            if mine and 0 in game.hand(quitter_seat) and game.turn >= turn:
                expected[deal, seat] = 0 if first else 1
                faults += 1
                break
            game.step((min if mine else max)(game.legal_actions()))
    assert 0 < faults < 2 * deals
    assert (result.game_scores == expected).all()
    assert result.faults == ((faults, 0) if first else (0, faults))
    assert f"given up {result.faults[0]} and {result.faults[1]}" in str(result)
    for batch_size in (1, 7):
        other = play_match(*pair, deals=deals, seed=15, batch_size=batch_size)
        assert (other.game_scores == result.game_scores).all()
        assert other.faults == result.faults
        assert other.turns == result.turns


def test_no_fault_changes_nothing() -> None:
    result = play_match(Quitter(never), HIGHEST, deals=20, count_blunders=True)
    full = play_match(LOWEST, HIGHEST, deals=20, count_blunders=True)
    assert (result.game_scores == full.game_scores).all()
    assert (result.faults, result.blunders) == ((0, 0), full.blunders)
    assert "given up" not in str(result)


def test_both_may_give_up_every_game() -> None:
    def always(views: ViewBatch) -> np.ndarray:
        return ~never(views)

    result = play_match(Quitter(always), Quitter(always), deals=30)
    assert result.turns == 0
    assert result.first_mover_score == 0
    assert sum(result.faults) == 60
    assert result.faults == (result.losses, result.wins)


def test_the_record_of_a_game_given_up_ends_there() -> None:
    quitter = Quitter(holds_clubs(10))
    played = agents.arena.play_deals((quitter, HIGHEST), Rules(), 16, 0, 10, True, record=True)
    full = agents.arena.play_deals((LOWEST, HIGHEST), Rules(), 16, 0, 10, True, record=True)
    assert played.faults
    given_up = {2 * deal + game for deal, game, _, _ in played.faults}
    for number, (record, whole) in enumerate(zip(played.records, full.records, strict=True)):
        assert record.actions == whole.actions[: len(record.actions)]
        assert sum(1 for _ in replay(record)) == len(record.actions)
        if number in given_up:
            assert record.fault is not None
            assert record.players[record.fault.player] == "quitter"
            assert record.fault.reason.startswith("tired of row")
        else:
            assert record.actions == whole.actions
            assert record.fault is None


@pytest.mark.parametrize("turn", [5, 30])
def test_exact_endings_hand_a_fault_on(turn: int) -> None:
    result = play_match(Exact(Quitter(holds_clubs(turn)), 2_000), HIGHEST, deals=20, seed=17)
    assert 0 < result.faults[0] < 40
    assert result.faults[1] == 0
    kept = play_match(Exact(Quitter(never), 2_000), HIGHEST, deals=20, seed=17)
    plain = play_match(Exact(LOWEST, 2_000), HIGHEST, deals=20, seed=17)
    assert (kept.game_scores == plain.game_scores).all()
    lost = result.game_scores != plain.game_scores
    assert (result.game_scores[lost] == 0).all()


def test_exact_endings_solve_no_row_that_is_given_up() -> None:
    games = GameBatch(60, seed=18)
    while (~games.done & ~games.exhausted).any():
        rows = np.flatnonzero(~games.done & ~games.exhausted)
        games.step(games.random_actions(rows), rows=rows)
    views = games.views(rows=np.flatnonzero(~games.done))
    agent = Exact(Quitter(holds_clubs(0)), 2_000)
    quits = agent.agent.quits(views)  # type: ignore[attr-defined]
    assert 5 < quits.sum() < len(views) - 5
    actions, faults = agent.act_or_fault(views)
    assert set(faults) == set(np.flatnonzero(quits).tolist())
    assert agent.decisions == (~quits).sum()
    assert (actions[~quits] == Exact(LOWEST, 2_000).act(views)[~quits]).all()


def test_an_illegal_action_of_a_player_that_may_fault_is_still_an_error() -> None:
    class Liar(Quitter):
        def act_or_fault(self, views: ViewBatch) -> tuple[np.ndarray, dict[int, str]]:
            actions, _ = super().act_or_fault(views)
            return actions, {}

    with pytest.raises(IllegalActionError, match=r"quitter.*action -7"):
        play_match(Liar(holds_clubs(3)), HIGHEST, deals=10)


def test_whoever_makes_a_player_closes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Quitter] = []

    def make(text: str) -> Agent:
        if text == "nobody":
            raise ValueError(text)
        made.append(Quitter(never))
        return Exact(made[-1]) if text == "wrapped" else made[-1]

    monkeypatch.setattr("counterweight_env.plugins.make_agent", make)
    own = Quitter(never)
    play_match("plain", own, deals=2)
    play_match("wrapped", "plain", deals=2)
    assert [player.closed for player in made] == [1, 1, 1]
    assert own.closed == 0
    with pytest.raises(IllegalActionError):
        play_match("plain", Faulty(lambda views, answer: answer - 100), deals=2)
    with pytest.raises(ValueError, match="nobody"):
        play_match("plain", "nobody", deals=2)
    assert [player.closed for player in made] == [1, 1, 1, 1, 1]


def test_time_is_measured_apart_from_the_result() -> None:
    result = play_match(LOWEST, HIGHEST, NINE, deals=5)
    assert result.timing is not None
    moves = [0, 0]
    for deal, seat in np.ndindex(5, 2):
        game = agents.arena.deal_twice(Rules.parse(NINE), 0, deal, 1)[seat]
        while not game.done:
            mine = game.to_move == seat
            moves[0 if mine else 1] += 1
            game.step((min if mine else max)(game.legal_actions()))
    assert result.timing.decisions == tuple(moves)
    assert min(result.timing.seconds) > 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"deals": 0}, ValueError, "deals"),
        ({"deals": 2.5}, ValueError, "deals"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"seed": -1}, ValueError, "seed"),
        ({"seed": 2**64}, ValueError, "seed"),
        ({"seed": None}, ValueError, "seed"),
        ({"rules": "whist"}, ValueError, "whist"),
        ({"rules": 3}, TypeError, "rules"),
        ({"a": "nobody"}, ValueError, "nobody"),
        ({"b": 7}, TypeError, "7"),
        ({"b": Random}, TypeError, "Random"),
    ],
)
def test_bad_arguments_of_a_match_are_refused_by_name(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        play_match(**{"a": LOWEST, "b": LOWEST, **arguments})


# Players by name -------------------------------------------------------------------------------


@pytest.fixture
def foreign_package(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package of somebody else's, with agents and a wrapper, for one test."""
    info = tmp_path / "toybots-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toybots\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[counterweight_env.agents]\n"
        "toy = toybots_for_tests:Toy\n"
        "junk = toybots_for_tests:Junk\n"
        "[counterweight_env.agent_wrappers]\n"
        "twice = toybots_for_tests:Twice\n"
    )
    (tmp_path / "toybots_for_tests.py").write_text(
        "import numpy as np\n"
        "class Toy:\n"
        "    def __init__(self, label='plain', *, depth=1, fast=False):\n"
        "        self.name, self.options = 'toy', (label, depth, fast)\n"
        "    def act(self, views):\n"
        "        return np.argmax(views.legal, axis=1)\n"
        "class Junk:\n"
        "    pass\n"
        "class Twice:\n"
        "    def __init__(self, agent, times=2):\n"
        "        self.name, self.agent, self.times = agent.name + '+twice', agent, times\n"
        "    def act(self, views):\n"
        "        return self.agent.act(views)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("foreign_package")
def test_a_package_of_somebody_else_adds_players() -> None:
    assert make_agent("toy").options == ("plain", 1, False)  # type: ignore[attr-defined]
    made = make_agent("toy:depth=3,fast=True")
    assert made.options == ("plain", 3, True)  # type: ignore[attr-defined]
    assert make_agent("toy:some text").options[0] == "some text"  # type: ignore[attr-defined]
    wrapped = make_agent("toy:depth=2+twice:times=5")
    assert wrapped.name == "toy+twice"
    assert wrapped.times == 5  # type: ignore[attr-defined]
    assert wrapped.agent.options == ("plain", 2, False)  # type: ignore[attr-defined]
    result = play_match("toy+twice", HIGHEST, deals=5)
    assert (result.game_scores == play_match(LOWEST, HIGHEST, deals=5).game_scores).all()
    with pytest.raises(TypeError, match="Junk"):
        make_agent("junk")


@pytest.mark.usefixtures("foreign_package")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nobody", "unknown agent 'nobody'.*known: .*random.*toy"),
        ("random+nothing", "unknown agent wrapper 'nothing'.*known: .*twice"),
        ("twice", "unknown agent 'twice'"),
        ("random+random", "unknown agent wrapper 'random'"),
        ("toy:depht=3", "depht"),
        ("toy:depth=3,depth=4", "depth.*twice"),
        ("toy:depth=3,fast", "fast"),
        ("toy:depth=", "depth="),
        ("toy:", "toy:"),
        ("random:3", "random:3"),
        ("", "''"),
        ("random+", "random"),
    ],
)
def test_text_that_names_no_player_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_agent(text)


def test_players_fit_the_protocol() -> None:
    for player in (*PLAYERS, LOWEST):
        assert isinstance(player, Agent)
    assert not isinstance(object(), Agent)
    assert isinstance(Quitter(never), FallibleAgent)
    assert not isinstance(LOWEST, FallibleAgent)
    assert [player.name for player in PLAYERS] == [
        "random",
        "greedy",
        "keeper",
        "cautious",
        "patient",
    ]
