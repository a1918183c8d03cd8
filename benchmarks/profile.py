"""Where a step of `GameBatch` spends its time: ``python -m benchmarks.profile``.

Every part is timed on its own, on the same games in mid-play, beside what it costs merely to fill
the bytes of the observation. Medians of many passes, in nanoseconds a game.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from counterweight_env import GameBatch, kernels
from counterweight_env.cards import rule_table
from counterweight_env.speed import machine_line


def measure(batch: int, passes: int) -> dict[str, float]:
    """The parts of a step at one batch size, in nanoseconds a game."""
    games = GameBatch(batch, "classic", seed=0)
    kernels.play_random(games.state, rule_table(games.rules), 40)
    out = games.observe()
    spent: dict[str, list[float]] = {}

    def timed(part: str, work: Callable[[], object]) -> object:
        started = time.perf_counter()
        result = work()
        spent.setdefault(part, []).append((time.perf_counter() - started) / batch * 1e9)
        return result

    for _ in range(passes):
        actions = timed("draw legal actions", games.random_actions)
        assert isinstance(actions, np.ndarray)
        timed("step", lambda actions=actions: games.step(actions))
        timed("deal finished games anew", games.reset_done)
        timed("observation", lambda: games.observe(out))
        timed("legal mask", lambda: games.legal)
        timed("(fill the observation's bytes with 0)", lambda: out.fill(0))
    return {part: statistics.median(times) for part, times in spent.items()}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, nargs="+", default=[1024, 8192])
    parser.add_argument("--passes", type=int, default=2000)
    arguments = parser.parse_args()
    columns = {batch: measure(batch, arguments.passes) for batch in arguments.batch}
    print(f"Nanoseconds a game and decision, classic rules, one thread. {machine_line()}.\n")
    print("| part | " + " | ".join(f"{batch:,} games" for batch in columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for part in next(iter(columns.values())):
        print(
            f"| {part} | " + " | ".join(f"{times[part]:.1f}" for times in columns.values()) + " |"
        )


if __name__ == "__main__":
    main()
