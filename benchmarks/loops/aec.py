"""PettingZoo's usual loop with evenly drawn legal actions, the same for every AEC environment."""

from __future__ import annotations

from typing import Any

from benchmarks.loops.worker import Count, Play

__all__ = ["aec_loop"]


def aec_loop(env: Any) -> Play:
    """A loop over one AEC environment whose observations hold an ``action_mask``."""
    import numpy as np

    rng = np.random.default_rng(0)
    env.reset(seed=0)

    def play(steps: int) -> Count:
        decisions = games = 0
        while decisions < steps:
            env.reset()
            games += 1
            for _ in env.agent_iter():
                observation, _, terminated, truncated, _ = env.last()
                action = None
                if not (terminated or truncated):
                    legal = observation["action_mask"].nonzero()[0]
                    action = int(legal[rng.integers(len(legal))])
                    decisions += 1
                env.step(action)
        return decisions, games

    return play
