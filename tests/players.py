"""Two players, and a watch over the global random generators, for several test modules.

The players are here so that the tests of the environments need nothing of the agents package.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from counterweight_env import ViewBatch


class Even:
    """Draws evenly among the legal actions, from the random bits of the views."""

    name = "even"

    def act(self, views: ViewBatch) -> np.ndarray:
        """Return a legal action for every row."""
        legal = views.legal
        picks = views.random_bits % legal.sum(axis=1).astype(np.uint64)
        return (legal.cumsum(axis=1) > picks[:, None].astype(np.int64)).argmax(axis=1)


class First:
    """Takes the legal action of the lowest number and counts the rows it was asked about."""

    name = "first"

    def __init__(self) -> None:
        self.rows_asked = 0

    def act(self, views: ViewBatch) -> np.ndarray:
        """Return a legal action for every row."""
        self.rows_asked += len(views)
        return views.legal.argmax(axis=1)


@contextmanager
def global_generators_seeded(seed: int) -> Iterator[None]:
    """Seed the generators of `random` and NumPy, and fail if the block changes their state."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the global generator is what is watched
    before = random.getstate(), repr(np.random.get_state(legacy=False))  # noqa: NPY002
    yield
    assert (random.getstate(), repr(np.random.get_state(legacy=False))) == before  # noqa: NPY002
