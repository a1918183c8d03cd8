"""How fast the engine is on this machine: the measurements behind ``counterweight speed``.

Every measurement plays evenly drawn legal actions, deals anew where a game ends, and counts the
decisions of both players. It is warmed up first; the median of several runs is reported.
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from counterweight_env import kernels
from counterweight_env.cards import rule_table
from counterweight_env.game import Game, GameBatch
from counterweight_env.observation import observation_size
from counterweight_env.plugins import Agent, as_agent
from counterweight_env.rules import Rules, as_rules
from counterweight_env.view import ViewBatch

__all__ = ["BATCH_SIZES", "Measurement", "Workload", "measure", "processor_name", "workloads"]

BATCH_SIZES: Final = (1, 64, 1024, 8192)

#: Plays some steps and returns the decisions made and the games ended.
Play = Callable[[int], tuple[int, int]]


@dataclass(frozen=True)
class Workload:
    """Something to measure: ``make`` prepares it and returns what plays."""

    name: str
    rules: Rules
    batch: int
    make: Callable[[], Play]


@dataclass(frozen=True)
class Measurement:
    """The medians of one workload."""

    name: str
    rules: str
    batch: int
    threads: int
    decisions_per_second: float
    games_per_second: float
    runs: int


def processor_name() -> str:
    """What the processor calls itself."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def measure(
    workload: Workload, runs: int = 5, seconds: float = 1.0, threads: int = 1
) -> Measurement:
    """Measures one workload.

    Args:
        workload: What to run.
        runs: How many timed runs; the medians are reported.
        seconds: The least length of a run.
        threads: What to note as the thread count.
    """
    play = workload.make()
    play(1)  # compiles
    steps, elapsed = 1, 0.0
    while elapsed < seconds / 4:  # warms up, and finds how many steps fill a run
        steps *= 2
        started = time.perf_counter()
        play(steps)
        elapsed = time.perf_counter() - started
    steps = max(int(steps * seconds / elapsed * 1.05), 1)
    rates: list[tuple[float, float]] = []
    while len(rates) < runs:
        started = time.perf_counter()
        decisions, games = play(steps)
        elapsed = time.perf_counter() - started
        if elapsed < seconds:
            steps = int(steps * seconds / elapsed * 1.1) + 1
            continue
        rates.append((decisions / elapsed, games / elapsed))
    return Measurement(
        workload.name,
        str(workload.rules),
        workload.batch,
        threads,
        statistics.median(rate for rate, _ in rates),
        statistics.median(rate for _, rate in rates),
        runs,
    )


def workloads(rules: Rules | str, batch: int, threads: int = 1) -> Iterator[Workload]:
    """The measurements of this package at one batch size.

    Args:
        rules: A ``Rules`` or its text.
        batch: Games in the batch; what plays one game at a time is measured at 1 only.
        threads: For ``GameBatch`` and ``VectorEnv``.
    """
    rules = as_rules(rules)
    many: Iterable[tuple[str, Callable[[Rules, int, int], Play]]] = (
        ("kernel", _play_in_kernel),
        ("GameBatch", _play_batch),
        ("VectorEnv", _play_vector_env),
        ("clone", _clone),
        ("determinize", _determinize),
    )
    for name, make in many:
        yield Workload(name, rules, batch, partial(make, rules, batch, threads))
    if batch == 1:
        single: Iterable[tuple[str, Callable[[Rules], Play]]] = (
            ("Game", _play_game),
            ("AEC", _play_aec),
            ("Env", _play_env),
        )
        for name, make_one in single:
            yield Workload(name, rules, 1, partial(make_one, rules))


def _play_in_kernel(rules: Rules, batch: int, threads: int) -> Play:
    """Random play inside the kernel, nothing written out."""
    games = GameBatch(batch, rules, seed=0).state
    table = rule_table(rules)

    def play(steps: int) -> tuple[int, int]:
        decisions = 64 * steps
        return batch * decisions, kernels.play_random(games, table, decisions)

    return play


def _play_batch(rules: Rules, batch: int, threads: int) -> Play:
    """``GameBatch.step`` with the legal mask and the observation of every decision."""
    games = GameBatch(batch, rules, seed=0, threads=threads)
    out = np.empty((batch, observation_size(rules)), np.int8)

    def play(steps: int) -> tuple[int, int]:
        ended = 0
        for _ in range(steps):
            games.step(games.random_actions())
            ended += len(games.reset_done())
            games.observe(out)
            games.legal  # noqa: B018 - its cost is measured
        return batch * steps, ended

    return play


class CountingAgent:
    """Another agent, with a count of its decisions."""

    def __init__(self, agent: Agent | str) -> None:
        self._agent = as_agent(agent)
        self.name = self._agent.name
        self.decisions = 0

    def act(self, views: ViewBatch) -> np.ndarray:
        """Chooses as the other agent does."""
        self.decisions += len(views)
        return self._agent.act(views)


def _play_vector_env(rules: Rules, batch: int, threads: int) -> Play:
    """The vector environment against ``random``."""
    import gymnasium

    opponent = CountingAgent("random")
    envs = gymnasium.make_vec(
        "Counterweight-v0", num_envs=batch, rules=rules, opponent=opponent, threads=threads
    )
    envs.reset(seed=0)
    games: GameBatch = envs.unwrapped._duel.games  # type: ignore[attr-defined]

    def play(steps: int) -> tuple[int, int]:
        ended = 0
        before = opponent.decisions
        for _ in range(steps):
            _, _, terminations, _, _ = envs.step(games.random_actions())
            ended += int(terminations.sum())
        return batch * steps + opponent.decisions - before, ended

    return play


def _play_game(rules: Rules) -> Play:
    """One ``Game`` in a Python loop, legal actions only."""
    game = Game(rules, seed=0)
    choose = np.random.default_rng(0).random

    def play(steps: int) -> tuple[int, int]:
        ended = 0
        picks = choose(steps).tolist()
        for pick in picks:
            actions = game.legal_actions()
            game.step(actions[int(pick * len(actions))])
            if game.done:
                game.reset()
                ended += 1
        return steps, ended

    return play


def _play_aec(rules: Rules) -> Play:
    """The AEC environment in PettingZoo's usual loop."""
    from counterweight_env.envs.aec import env as make_env

    env = make_env(rules)
    rng = np.random.default_rng(0)

    def play(steps: int) -> tuple[int, int]:
        decisions = ended = 0
        while decisions < steps:
            env.reset()
            ended += 1
            for _ in env.agent_iter():
                observation, _, terminated, _, _ = env.last()
                action = None
                if not terminated:
                    legal = observation["action_mask"].nonzero()[0]
                    action = int(legal[rng.integers(len(legal))])
                    decisions += 1
                env.step(action)
        return decisions, ended

    return play


def _play_env(rules: Rules) -> Play:
    """The Gymnasium environment against ``random``."""
    import gymnasium

    opponent = CountingAgent("random")
    env = gymnasium.make("Counterweight-v0", rules=rules, opponent=opponent)
    rng = np.random.default_rng(0)

    def play(steps: int) -> tuple[int, int]:
        ended = 0
        before = opponent.decisions
        _, info = env.reset()
        for _ in range(steps):
            legal = info["action_mask"].nonzero()[0]
            _, _, terminated, _, info = env.step(legal[rng.integers(len(legal))])
            if terminated:
                ended += 1
                _, info = env.reset()
        return steps + opponent.decisions - before, ended

    return play


def _clone(rules: Rules, batch: int, threads: int) -> Play:
    """Copies of whole batches; a copied game counts as a decision."""
    games = GameBatch(batch, rules, seed=0)

    def play(steps: int) -> tuple[int, int]:
        for _ in range(steps):
            games.copy()
        return batch * steps, 0

    return play


def _determinize(rules: Rules, batch: int, threads: int) -> Play:
    """Full games drawn from views in mid-game; a drawn game counts as a decision."""
    games = GameBatch(batch, rules, seed=0)
    kernels.play_random(games.state, rule_table(rules), 20)
    views = games.views()

    def play(steps: int) -> tuple[int, int]:
        for _ in range(steps):
            views.determinize(8)
        return 8 * batch * steps, 0

    return play


def table_text(measurements: Iterable[Measurement]) -> str:
    """The measurements as an aligned table."""
    rows = [("what", "rules", "batch", "threads", "decisions/s", "games/s")]
    for m in measurements:
        games = f"{m.games_per_second:,.0f}" if m.games_per_second else "-"
        decisions = f"{m.decisions_per_second:,.0f}"
        rows.append((m.name, m.rules, f"{m.batch:,}", str(m.threads), decisions, games))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        left = "  ".join(cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True))
        right = "  ".join(
            cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)
        )
        lines.append(f"{left}  {right}")
    return "\n".join(lines)


def machine_line() -> str:
    """Processor, Python and library versions, as a heading of a table."""
    import numba

    versions = f"Python {sys.version.split()[0]}, NumPy {np.__version__}, Numba {numba.__version__}"
    return f"{processor_name()}; {versions}; {kernels.STATE.itemsize} bytes a game"
