"""The sequential test: its likelihood ratio, its error rates, and stopping by itself."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

import agents.blocks
import agents.sprt
from agents import Agent, ViewBatch, make_agent
from agents.blocks import BlockStore, BlockTask, Setup, SetupError
from agents.sprt import Sprt, deal_counts, play_sprt
from train.cli import main

POINTS = np.array([0, 0.25, 0.5, 0.75, 1])


def score_of(elo: float) -> float:
    return 1 / (1 + 10 ** (-elo / 400))


def best_likelihood(counts: np.ndarray, mean: float) -> float:
    """Return the greatest log likelihood under a mean, by a general optimiser."""
    start = np.full(5, 0.2)
    found = minimize(
        lambda p: -float(counts @ np.log(p)) / counts.sum(),
        start,
        jac=lambda p: -counts / p / counts.sum(),
        method="SLSQP",
        bounds=[(1e-9, 1)] * 5,
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1},
            {"type": "eq", "fun": lambda p: p @ POINTS - mean},
        ],
        options={"ftol": 1e-13, "maxiter": 500},
    )
    return -found.fun * counts.sum()


@pytest.mark.parametrize("counts", [(3, 8, 20, 9, 4), (100, 240, 330, 260, 120), (1, 1, 1, 1, 1)])
@pytest.mark.parametrize("elos", [(0, 10), (-20, 30), (5, 200)])
def test_the_likelihood_ratio_is_that_of_the_likeliest_distributions(
    counts: tuple[int, ...], elos: tuple[float, float]
) -> None:
    observed = np.array(counts)
    ratio = Sprt(*elos).log_likelihood_ratio(observed)
    low, high = (best_likelihood(observed, score_of(elo)) for elo in elos)
    assert ratio == pytest.approx(high - low, abs=2e-3)


def test_the_likelihood_ratio_turns_with_the_players() -> None:
    counts = np.array([30, 50, 81, 47, 39])
    assert Sprt(-10, 10).log_likelihood_ratio(counts) == pytest.approx(
        -Sprt(-10, 10).log_likelihood_ratio(counts[::-1])
    )


@pytest.mark.parametrize(
    ("counts", "accepted"),
    [
        ((0, 0, 0, 0, 200), "elo1"),
        ((200, 0, 0, 0, 0), "elo0"),
        ((0, 0, 5_000, 0, 0), "elo0"),  # a player against itself, without chance
        ((0, 0, 0, 0, 1), None),
        ((1, 0, 0, 0, 0), None),
        ((10, 30, 40, 30, 10), None),
    ],
)
def test_outcomes_that_never_came_up_are_no_obstacle(
    counts: tuple[int, ...], accepted: str | None
) -> None:
    test = Sprt()
    assert test.accepted(test.log_likelihood_ratio(np.array(counts))) == accepted


def test_bounds_are_those_of_wald() -> None:
    low, high = Sprt(0, 10, alpha=0.02, beta=0.1).bounds
    assert (low, high) == pytest.approx((np.log(0.1 / 0.98), np.log(0.9 / 0.02)))
    test = Sprt(0, 10, alpha=0.02, beta=0.1)
    assert [test.accepted(x) for x in (low - 1e-9, low + 1e-9, 0, high - 1e-9, high + 1e-9)] == [
        "elo0",
        None,
        None,
        None,
        "elo1",
    ]


def test_counting_the_outcomes_of_deals() -> None:
    scores = np.array([[1, 1], [0, 1], [1, 0], [0.5, 0.5], [0, 0.5], [1, 0.5], [0, 0], [0, 0]])
    assert deal_counts(scores).tolist() == [2, 1, 3, 1, 1]


def distribution(mean: float) -> np.ndarray:
    """Return the chances of the five outcomes of a deal whose games hang together."""
    middle = np.array([0.15, 0.2, 0.3, 0.2, 0.15])
    low, high = -5.0, 5.0
    for _ in range(100):  # tilt until the mean is right
        tilt = (low + high) / 2
        chances = middle * np.exp(tilt * POINTS)
        chances /= chances.sum()
        low, high = (tilt, high) if chances @ POINTS < mean else (low, tilt)
    return chances


@pytest.mark.parametrize(("alpha", "beta"), [(0.05, 0.05), (0.02, 0.1)])
@pytest.mark.parametrize("truth", ["elo0", "elo1"])
def test_errors_are_as_rare_as_promised(truth: str, alpha: float, beta: float) -> None:
    test = Sprt(0, 40, alpha, beta)
    chances = distribution(score_of(getattr(test, truth)))
    rng = np.random.default_rng(7)
    runs, errors, deals = 300, 0, 0
    for _ in range(runs):
        counts = np.zeros(5, np.int64)
        accepted = None
        while accepted is None:
            counts += rng.multinomial(20, chances)
            accepted = test.accepted(test.log_likelihood_ratio(counts))
        errors += accepted != truth
        deals += int(counts.sum())
    promised = alpha if truth == "elo0" else beta
    assert binom.cdf(errors, runs, promised) < 0.999, errors
    assert binom.cdf(errors, runs, promised / 4) > 0.001, "it stops far too late"
    fixed = (1.645 * 2) ** 2 * (np.square(POINTS - 0.5) @ chances) / (score_of(40) - 0.5) ** 2
    assert deals / runs < fixed, "a fixed number of deals would have done as well"


# Playing ---------------------------------------------------------------------------------------


def setup(a: str, b: str, seed: int = 0, block_deals: int = 20) -> Setup:
    return Setup((a, b), ("classic",), None, seed, count_blunders=False, block_deals=block_deals)


def test_it_stops_by_itself_whichever_way_the_players_stand() -> None:
    test = Sprt(0, 60)
    better = play_sprt("greedy", "random", test, setup("greedy", "random"))
    worse = play_sprt("random", "greedy", test, setup("random", "greedy"))
    assert (better.accepted, worse.accepted) == ("elo1", "elo0")
    assert better.deals % 20 == 0
    assert better.score > 0.5 > worse.score
    # Both are the same games; the longer test has those of the shorter one and more.
    again = play_sprt(
        "random", "greedy", Sprt(-1_000, 1_000, 1e-9, 1e-9), setup("random", "greedy"),
        max_deals=better.deals,
    )  # fmt: skip
    assert again.counts == better.counts[::-1]
    assert again.score == pytest.approx(1 - better.score)


def test_it_is_asked_block_by_block_and_may_stay_undecided() -> None:
    seen: list[tuple[int, float]] = []
    test = Sprt(0, 1e-3)
    result = play_sprt(
        "random", "keeper", test, setup("random", "keeper", 3, 10), max_deals=35,
        on_block=lambda deals, ratio: seen.append((deals, ratio)),
    )  # fmt: skip
    assert result.accepted is None
    assert [deals for deals, _ in seen] == [10, 20, 30, 40]
    assert result.deals == sum(result.counts) == 40
    assert seen[-1][1] == result.log_likelihood_ratio
    assert seen[-1][1] == test.log_likelihood_ratio(np.array(result.counts))


def test_the_result_does_not_depend_on_the_workers() -> None:
    test = Sprt(0, 80)
    arguments = ("greedy", "random", test, setup("greedy", "random", 5, 10))
    assert play_sprt(*arguments, workers=2) == play_sprt(*arguments)


def test_a_killed_test_goes_on_and_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = Sprt(0, 80)
    plan = setup("greedy", "random", 6, 5)
    whole = play_sprt("greedy", "random", test, plan)
    assert whole.deals >= 20
    played: list[int] = []

    def counting(task: BlockTask) -> object:
        if len(played) == 2 and not (tmp_path / "again").exists():
            raise KeyboardInterrupt
        played.append(task.number)
        return play_block(task)

    play_block = agents.sprt.play_block
    monkeypatch.setattr(agents.sprt, "play_block", counting)
    with pytest.raises(KeyboardInterrupt):
        play_sprt("greedy", "random", test, plan, store=BlockStore(tmp_path / "run", plan))
    (tmp_path / "again").touch()
    store = BlockStore(tmp_path / "run", plan)
    assert play_sprt("greedy", "random", test, plan, store=store) == whole
    assert sorted(played) == list(range(whole.deals // 5))
    # With a hole in the middle, too, and from the other side.
    store.path(next(plan.pair_tasks("classic", "greedy", "random"))).with_suffix(".json").unlink()
    assert play_sprt("greedy", "random", test, plan, store=store) == whole
    assert played.count(0) == 2
    with pytest.raises(SetupError, match="seed"):
        BlockStore(tmp_path / "run", setup("greedy", "random", 7, 5))


class Quitter:
    """Gives up every game in which it moves first."""

    name = "quitter"

    def act(self, views: ViewBatch) -> np.ndarray:
        return views.legal.argmax(axis=1)

    def act_or_fault(self, views: ViewBatch) -> tuple[np.ndarray, dict[int, str]]:
        quits = np.flatnonzero(views.records["turn"] == 0)
        return self.act(views), {int(row): "no" for row in quits}


@pytest.mark.parametrize("pair", [("greedy", "quitter"), ("quitter", "greedy")])
def test_games_given_up_are_lost_and_counted(
    pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(text: str) -> Agent:
        return Quitter() if text == "quitter" else make_agent(text)

    monkeypatch.setattr(agents.blocks, "make_agent", make)
    result = play_sprt(*pair, Sprt(0, 100), setup(*pair, 8))
    assert result.accepted == ("elo1" if pair[0] == "greedy" else "elo0")
    faults = result.faults if pair[1] == "quitter" else result.faults[::-1]
    assert faults[0] == 0
    assert faults[1] == result.deals  # it moves first in one game of each deal


# counterweight sprt ----------------------------------------------------------------------------


def test_the_command_says_who_is_better(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sprt", "greedy", "random", "--elo1", "60", "--no-progress"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    shown = capsys.readouterr().out
    assert "greedy is better than random by more than 0 Elo" in shown
    assert main(["sprt", "random", "greedy", *command[3:]]) == 0
    assert "random is not 60 Elo better than greedy" in capsys.readouterr().out
    assert main([*command, "--elo1", "1", "--max-deals", "10"]) == 0
    assert "undecided, after 50 deals" in capsys.readouterr().out
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["random", "nobody"], "nobody"),
        (["random", "random"], "'random' stands twice"),
        (["random", "greedy", "--rules", "both"], "one rule set"),
        (["random", "greedy", "--rules", "whist"], "whist"),
        (["random", "greedy", "--elo0", "10"], "elo0 must be less than elo1, got 10.0 and 10.0"),
        (["random", "greedy", "--alpha", "0"], "alpha .*0.0"),
        (["random", "greedy", "--beta", "0.7"], "beta .*0.7"),
        (["random", "greedy", "--max-deals", "0"], "--max-deals .*0"),
        (["random", "greedy", "--workers", "0"], "--workers .*0"),
        (["random", "greedy", "--seed", "-1"], "seed .*-1"),
    ],
)
def test_the_command_refuses_bad_arguments_by_name(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sprt", *arguments, "--no-progress"]) == 2
    assert re.search(message, capsys.readouterr().err)
