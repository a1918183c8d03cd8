"""RLCard's loop: uno, stepped as its ``Env.run`` does but without keeping trajectories."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from benchmarks.loops.worker import Count, Play, serve

__all__ = ["LOOPS"]


def _uno() -> Play:
    import rlcard

    env = rlcard.make("uno", config={"seed": 0})
    rng = random.Random(0)

    def play(steps: int) -> Count:
        decisions = games = 0
        while decisions < steps:
            state, _ = env.reset()
            games += 1
            while not env.is_over():
                legal = list(state["legal_actions"])
                state, _ = env.step(legal[int(rng.random() * len(legal))])
                decisions += 1
            env.get_payoffs()
        return decisions, games

    return play


LOOPS: Final[dict[str, Callable[[], Play]]] = {"uno": _uno}

if __name__ == "__main__":
    serve(LOOPS)
