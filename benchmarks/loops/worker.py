"""What every module of loops runs: it times one of its loops whenever it is asked to.

The process stays alive between the rounds, so that nothing is imported or compiled twice. It needs
nothing but the standard library, since it runs in every peer's environment.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Count", "Play", "Timed", "serve"]

#: Decisions made and games ended.
Count = tuple[int, int]
#: Plays about so many steps and returns the count, or what counts after the clock has stopped.
Play = Callable[[int], Count | Callable[[], Count]]


class Timed:
    """A loop with the number of steps that make one call long enough to time.

    Args:
        play: The loop.
    """

    def __init__(self, play: Play) -> None:
        self.play = play
        self.steps = 1

    def run(self, seconds: float) -> dict[str, Any]:
        """Plays for at least so many seconds.

        Returns:
            ``decisions``, ``games`` and ``seconds`` of this run.
        """
        decisions = games = 0
        elapsed = 0.0
        while elapsed < seconds:
            started = time.perf_counter()
            count = self.play(self.steps)
            took = time.perf_counter() - started
            more_decisions, more_games = count() if callable(count) else count
            decisions += more_decisions
            games += more_games
            elapsed += took
            if took < seconds / 20:
                self.steps *= 2
        return {"decisions": decisions, "games": games, "seconds": elapsed}


def serve(loops: Mapping[str, Callable[[], Play]]) -> None:
    """Answers each line ``SECONDS NAME`` of standard input with one JSON object.

    The first argument of the process, if there is one, is the core to stay on. What a loop prints
    goes to standard error.

    Args:
        loops: Name -> what prepares the loop; called at the first request.
    """
    if len(sys.argv) > 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(sys.argv[1])})
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    timed: dict[str, Timed] = {}
    for line in sys.stdin:
        seconds, name = line.rstrip("\n").split(" ", 1)
        if name not in timed:
            timed[name] = Timed(loops[name]())
        print(
            json.dumps({"loop": name} | timed[name].run(float(seconds))), file=replies, flush=True
        )
