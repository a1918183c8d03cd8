"""Rows of a batch shared out among threads; results do not depend on it. Kernels free the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Final

__all__ = ["check_threads", "share_out"]

LEAST_ROWS: Final = 512  # below this, waking a thread costs more than it saves


def check_threads(threads: int) -> int:
    """Refuses a thread count that is no positive int.

    Raises:
        ValueError: The message names the value.
    """
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be a positive int, got {threads!r}")
    return threads


@lru_cache(maxsize=8)
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="counterweight")


if hasattr(os, "register_at_fork"):
    # A forked child has the pool but not its threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def share_out(threads: int, size: int, work: Callable[[slice], None]) -> None:
    """Calls ``work`` with slices that together cover ``range(size)``, at the same time.

    An exception of any call is raised after all have ended.
    """
    parts = max(min(threads, size // LEAST_ROWS), 1)
    bounds = [size * part // parts for part in range(parts + 1)]
    slices = [slice(bounds[part], bounds[part + 1]) for part in range(parts)]
    if parts == 1:
        work(slices[0])
        return
    futures = [_pool(threads - 1).submit(work, part) for part in slices[1:]]
    try:
        work(slices[0])
    finally:
        for future in futures:
            future.result()
