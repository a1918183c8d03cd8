"""Rows of a batch shared out among threads; results do not depend on it. Kernels free the GIL."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

__all__ = ["check_threads", "share_out"]

LEAST_ROWS: Final = 256  # below this, waking a thread costs more than it saves


def check_threads(threads: int) -> int:
    """Refuses a thread count that is no positive int.

    Raises:
        ValueError: The message names the value.
    """
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be a positive int, got {threads!r}")
    return threads


class _Worker:
    """A thread that does one piece of work at a time; handing it over takes microseconds."""

    def __init__(self) -> None:
        # Plain locks, each acquired by one side and released by the other, wake a thread soonest.
        self._given = threading.Lock()
        self._ended = threading.Lock()
        self._given.acquire()
        self._ended.acquire()
        self._kernel: Callable[..., Any]
        self._arguments: tuple[Any, ...]
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="counterweight", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._given.acquire()
            try:
                self._kernel(*self._arguments)
            except BaseException as error:  # handed to whoever waits
                self._error = error
            self._ended.release()

    def start(self, kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Hands work over."""
        self._kernel, self._arguments = kernel, arguments
        self._given.release()

    def wait(self) -> BaseException | None:
        """Waits for the end of the work; returns what it raised."""
        self._ended.acquire()
        error, self._error = self._error, None
        return error


class _Team:
    """The workers that help the calling thread. They serve one caller at a time."""

    def __init__(self, size: int) -> None:
        self.free = threading.Lock()
        self.workers = [_Worker() for _ in range(size)]


@lru_cache(maxsize=8)
def _team(size: int) -> _Team:
    return _Team(size)


if hasattr(os, "register_at_fork"):
    # A forked child has the team but not its threads.
    os.register_at_fork(after_in_child=_team.cache_clear)


def share_out(
    threads: int, kernel: Callable[..., Any], fixed: tuple[Any, ...], rows: tuple[Any, ...]
) -> None:
    """Calls ``kernel(*fixed, *rows)`` with the arrays in ``rows`` cut into parts, at the same time.

    An exception of any call is raised after all have ended.

    Args:
        threads: How many parts there may be.
        kernel: What to call; it frees the GIL.
        fixed: What every call gets as it is.
        rows: Arrays of one length. An empty one beside longer ones stays as it is.
    """
    if threads == 1:
        kernel(*fixed, *rows)
        return
    size = max(len(array) for array in rows)
    parts = max(min(threads, size // LEAST_ROWS), 1)
    team = _team(threads - 1) if parts > 1 else None
    if team is None or not team.free.acquire(blocking=False):
        kernel(*fixed, *rows)
        return
    try:
        bounds = [size * part // parts for part in range(parts + 1)]
        cuts = [
            (*fixed, *(array[start:stop] for array in rows)) for start, stop in pairwise(bounds)
        ]
        helpers = team.workers[: parts - 1]
        for helper, arguments in zip(helpers, cuts, strict=False):
            helper.start(kernel, arguments)
        try:
            kernel(*cuts[-1])
        finally:
            errors = [error for helper in helpers if (error := helper.wait())]
        if errors:
            raise errors[0]
    finally:
        team.free.release()
