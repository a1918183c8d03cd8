"""Ratings, and what else the standings of a round robin say.

The fit is held against an optimum that scipy finds from the likelihood itself; the standings
against games written by hand.
"""

from __future__ import annotations

from itertools import combinations, permutations
from math import log

import numpy as np
import pytest
from scipy.optimize import minimize

from agents.arena import DealsPlayed
from agents.blunders import Verdict
from agents.league import PairGames
from agents.ratings import Rating, Resamples, bradley_terry, rate
from agents.standings import report, standings

ELO = 400 / log(10)


def expected(difference: np.ndarray | float) -> np.ndarray | float:
    """Return the score that a lead of so many Elo points brings."""
    return 1 / (1 + 10 ** (-np.asarray(difference) / 400))


def likeliest(wins: np.ndarray) -> np.ndarray:
    """Return the ratings of the greatest likelihood, their mean 0, by a general optimiser."""

    def loss(rest: np.ndarray) -> float:
        ratings = np.append(rest, -rest.sum())
        chance = expected(ratings[:, None] - ratings[None, :])
        return -float((wins * np.log(chance)).sum())

    found = minimize(loss, np.zeros(len(wins) - 1), method="BFGS", options={"gtol": 1e-6})
    return np.append(found.x, -found.x.sum())


@pytest.mark.parametrize("spread", [50, 200, 500])
@pytest.mark.parametrize("players", [2, 3, 7])
def test_the_fit_is_the_greatest_likelihood(players: int, spread: float) -> None:
    rng = np.random.default_rng(players)
    strengths = rng.normal(0, spread, players)
    games = 4_000
    wins = np.zeros((players, players))
    for a, b in combinations(range(players), 2):
        wins[a, b] = rng.binomial(2 * games, expected(strengths[a] - strengths[b])) / 2
        wins[b, a] = games - wins[a, b]  # half points are draws
    assert bradley_terry(wins) == pytest.approx(likeliest(wins), abs=0.5)
    assert bradley_terry(wins, rng.normal(0, 100, players)) == pytest.approx(
        bradley_terry(wins), abs=1e-3
    )


def rated(
    pairs: list[tuple[int, int]], scores: np.ndarray, anchor: int, count: int
) -> list[Rating]:
    return rate(pairs, scores, anchor, Resamples(scores.shape[1], count))


def simulated(strengths: np.ndarray, deals: int, rng: np.random.Generator) -> np.ndarray:
    """Return (pairs, deals) points of the first of each pair in two games a deal."""
    return np.stack(
        [
            rng.binomial(2, expected(strengths[a] - strengths[b]), deals).astype(float)
            for a, b in combinations(range(len(strengths)), 2)
        ]
    )


def test_known_strengths_are_found_and_the_intervals_hold_them() -> None:
    rng = np.random.default_rng(1)
    strengths = np.array([0.0, 60.0, 150.0, -40.0])
    pairs = list(combinations(range(4), 2))
    inside = runs = 0
    for _ in range(40):
        ratings = rated(pairs, simulated(strengths, 300, rng), 0, 120)
        assert (ratings[0].elo, ratings[0].interval) == (0, (0, 0))
        for rating, strength in zip(ratings[1:], strengths[1:], strict=True):
            assert abs(rating.elo - strength) < 60
            low, high = rating.interval
            assert low < rating.elo < high
            inside += low <= strength <= high
            runs += 1
    assert 0.88 <= inside / runs <= 0.99


def test_more_deals_and_opposite_seats_make_intervals_narrower() -> None:
    rng = np.random.default_rng(2)
    scores = simulated(np.array([0.0, 100.0]), 400, rng)
    narrow = rated([(0, 1)], scores, 0, 400)[1].interval
    wide = rated([(0, 1)], scores[:, :100], 0, 400)[1].interval
    assert (wide[1] - wide[0]) / (narrow[1] - narrow[0]) == pytest.approx(2, rel=0.3)
    # Where every deal is shared one to one, the cards decide all and the deal says nothing.
    even = rated([(0, 1)], np.ones((1, 100)), 0, 100)[1]
    assert (even.elo, even.interval) == (
        pytest.approx(0, abs=1e-6),
        pytest.approx((0, 0), abs=1e-6),
    )


@pytest.mark.parametrize(
    ("lost", "tied"),
    [
        ([(0, 1), (0, 2), (0, 3)], [True, False, False, False]),  # the anchor lost everything
        ([(0, 2), (0, 3), (1, 2), (1, 3)], [True, True, False, False]),  # two groups
        ([(1, 0), (2, 0), (3, 0), (2, 1), (3, 1), (3, 2)], [True, False, False, False]),  # a chain
        ([(1, 0), (2, 1), (3, 2), (0, 3)], [True] * 4),  # a ring
        ([], [True] * 4),
    ],
)
def test_ratings_that_only_the_fit_bounds_are_marked(
    lost: list[tuple[int, int]], tied: list[bool]
) -> None:
    rng = np.random.default_rng(8)
    pairs = list(combinations(range(4), 2))
    scores = np.stack(
        [
            np.zeros(100)
            if pair in lost
            else np.full(100, 2.0)
            if pair[::-1] in lost
            else rng.binomial(2, 0.5, 100).astype(float)
            for pair in pairs
        ]
    )
    assert [rating.bounded for rating in rated(pairs, scores, 0, 20)] == tied


def test_what_pairs_have_in_common_stays_together() -> None:
    # Against each of two equal players the third has the same points on every deal. A bootstrap
    # that drew each pair's deals apart would find an interval between the two of some 40 points.
    rng = np.random.default_rng(3)
    points = rng.choice([0.0, 1.0, 2.0], size=300)
    scores = np.stack([np.ones(300), points, points])
    first, second, _ = rated([(0, 1), (0, 2), (1, 2)], scores, 0, 200)
    assert first.elo == 0
    assert second.elo == pytest.approx(0, abs=1e-3)
    assert second.interval == pytest.approx((0, 0), abs=1e-3)


@pytest.mark.parametrize("winner", [0, 1, 2])
def test_a_player_that_wins_everything_has_a_finite_rating(winner: int) -> None:
    rng = np.random.default_rng(4)
    pairs = list(combinations(range(3), 2))
    scores = np.stack(
        [
            np.full(200, 2.0 if a == winner else 0.0)
            if winner in (a, b)
            else rng.binomial(2, 0.6, 200).astype(float)
            for a, b in pairs
        ]
    )
    ratings = rated(pairs, scores, (winner + 1) % 3, 50)
    assert [rating.bounded for rating in ratings] == [player != winner for player in range(3)]
    assert 1_000 < ratings[winner].elo < 5_000
    other = ratings[(winner + 2) % 3]
    assert np.isfinite(other.interval).all()
    # The other two are rated as they would be without the winner.
    alone = rated(
        [(0, 1)], scores[[i for i, pair in enumerate(pairs) if winner not in pair]], 0, 50
    )
    assert abs(other.elo) == pytest.approx(abs(alone[1].elo), abs=1)


def test_one_loss_among_many_games_is_rated_by_the_games() -> None:
    scores = np.full((1, 1_000), 2.0)
    scores[0, 7] = 1.0
    assert rated([(0, 1)], scores, 1, 20)[0].elo == pytest.approx(400 * np.log10(1_999), abs=5)


def test_resamples_are_always_the_same_and_have_all_deals() -> None:
    drawn = Resamples(50, 300).sums(np.eye(50))
    assert drawn.shape == (300, 50)
    assert (drawn.sum(axis=1) == 50).all()
    assert (drawn == Resamples(50, 300).sums(np.eye(50))).all()
    assert drawn.mean(axis=0) == pytest.approx(np.ones(50), abs=0.35)
    # Too many deals for one chunk.
    assert (Resamples(1_500_000, 3).sums(np.ones((1_500_000, 1))) == 1_500_000).all()


# Standings -------------------------------------------------------------------------------------


def games(
    a: str,
    b: str,
    scores: list[tuple[float, float]],
    first_movers: list[int],
    verdicts: dict[tuple[int, int, int, Verdict], int] | None = None,
    faults: list[tuple[int, int, int, str]] | None = None,
) -> PairGames:
    counted = np.zeros((len(scores), 2, 2, len(Verdict)), np.int64)
    for place, count in (verdicts or {}).items():
        counted[place] = count
    return PairGames(
        a,
        b,
        DealsPlayed(
            scores=np.array(scores, np.float64),
            first_movers=np.array(first_movers, np.int8),
            turns=np.full((len(scores), 2), 40),
            decisions=np.full((len(scores), 2, 2), (10, 20)),
            verdicts=counted,
            faults=faults or [],
            seconds=np.array([0.1, 0.4]),
            records=[],
        ),
    )


def test_standings_of_games_written_by_hand() -> None:
    pairs = [
        # Seat 1 moved first on both deals: x in its second games, y in its first ones.
        games("x", "y", [(1.0, 1.0), (0.5, 1.0)], [1, 1], {(0, 0, 0, Verdict.KEPT): 6}),
        games(
            "x",
            "random",
            [(1.0, 0.0), (1.0, 1.0)],
            [0, 1],
            {
                (0, 0, 0, Verdict.BLUNDER): 2,
                (1, 1, 0, Verdict.UNPROVEN): 3,
                (1, 0, 1, Verdict.BLUNDER): 1,
            },
            [(0, 1, 0, "silence"), (1, 0, 1, "crash"), (1, 1, 1, "crash")],
        ),
        games("y", "random", [(1.0, 0.5), (0.0, 1.0)], [0, 0]),
    ]
    table = standings("classic", ("y", "x", "random"), pairs)
    assert (table.rules, table.deals, table.anchor) == ("classic", 2, "random")
    assert [row.name for row in table.players] == ["x", "y", "random"]
    x, y, rand = table.players
    assert (x.score.value, y.score.value, rand.score.value) == (6.5 / 8, 3 / 8, 2.5 / 8)
    assert (x.games, x.decisions, y.decisions, rand.decisions) == (8, 80, 120, 160)
    # x: 1 + 1 moving first against y, 1 + 1 against random; .5 + 1 and 0 + 1 moving second.
    assert x.first_mover.value == pytest.approx((4 - 2.5) / 4)
    assert y.first_mover.value == pytest.approx(((0 + 0.5 + 1 + 0) - (0 + 0 + 0.5 + 1)) / 4)
    assert x.blunder_rate is not None
    assert x.blunder_rate.value == 2 / 8
    assert (x.endgame_decisions, x.unproven) == (8, 3)
    assert y.blunder_rate is None
    assert rand.blunder_rate is not None
    assert rand.blunder_rate.value == 1
    assert (x.faults, x.fault_reasons) == (1, {"silence": 1})
    assert (rand.faults, rand.fault_reasons) == (2, {"crash": 2})
    assert y.faults == 0
    assert rand.elo.value == 0
    assert x.elo.value > y.elo.value > 0
    best = table.pairs[0]
    assert (best.a, best.b, best.wins, best.draws, best.losses) == ("x", "y", 3, 1, 0)
    turned = table.pairs[1]
    assert (turned.a, turned.b, turned.score.value, turned.wins) == ("x", "random", 0.75, 3)
    # First movers: 1 + 1 and .5... of x against y: games 0 are won by seat 1 for 0, 0.5; 1 by 1, 1.
    first = [(0 + 1 + 0.5 + 1), (1 + 1 + 0 + 1), (1 + 0.5 + 0 + 0)]
    assert table.first_mover.value == pytest.approx(sum(first) / 12)
    assert table.draws == 2 / 12
    assert table.milliseconds == pytest.approx(
        {"x": 1e3 * 0.2 / 80, "y": 1e3 * 0.5 / 120, "random": 1e3 * 0.8 / 160}
    )
    text = report(table)
    for part in ("| `x` |", "`random` = 0", "0.875 (", "- `random`, 2 times: crash", "2 duplicate"):
        assert part in text, text


def test_standings_do_not_depend_on_the_order_of_the_players() -> None:
    rng = np.random.default_rng(5)
    names = ("ant", "bee", "random")
    pairs = [
        games(
            a, b, rng.choice([0, 0.5, 1], size=(30, 2)).tolist(), rng.integers(2, size=30).tolist()
        )
        for a, b in combinations(names, 2)
    ]
    tables = [standings("classic", order, pairs).as_json() for order in permutations(names)]
    assert all(table == tables[0] for table in tables)
    assert "milliseconds" not in tables[0]


def test_without_random_the_first_player_is_the_anchor() -> None:
    pair = games("ant", "bee", [(1.0, 0.5)] * 20, [0] * 20)
    table = standings("classic", ("bee", "ant"), [pair])
    assert table.anchor == "bee"
    assert {row.name: row.elo.value for row in table.players}["bee"] == 0


def test_the_report_stays_a_table_whatever_players_and_reasons_are_called() -> None:
    reasons = [(0, 0, 1, f"line 1\nline 2 of `{i}`") for i in range(9)]
    name = "exec:./a | ./b `c`"
    text = report(
        standings("classic", (name, "x"), [games("x", name, [(1, 0.5)], [0], None, reasons)])
    )
    rows = [line.replace("\\|", "") for line in text.splitlines() if line.startswith("|")]
    assert [row.count("|") for row in rows] == [8] * 4 + [4] * 4
    assert "line 1 line 2 of `3`" in text
    assert "4 times for other reasons" in text
