"""Data sets of decisions, made of many games that are shared out to processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeVar

import numpy as np

from agents.league import TaskRunner

__all__ = ["Block", "Decisions", "play_blocks"]

Part = TypeVar("Part")
Set = TypeVar("Set", bound="Decisions")


@dataclass(frozen=True)
class Decisions:
    """Decisions whose moves stand one after the other; subclasses add what is known of them.

    Attributes:
        rows: (M, WIDTH) float16, as :func:`agents.moves.list_moves` writes them.
        counts: (n,) int64, the moves of each decision, at least 2.
    """

    rows: np.ndarray
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.counts)

    @classmethod
    def joined(cls: type[Set], parts: Sequence[Set]) -> Set:
        """Several data sets, at least one, as one in this order: arrays follow on, numbers add."""
        columns = ([getattr(part, field.name) for part in parts] for field in fields(cls))
        return cls(
            *(
                np.concatenate(column) if isinstance(column[0], np.ndarray) else sum(column)
                for column in columns
            )
        )


class Block(NamedTuple):
    """Games that are played side by side.

    Attributes:
        number: The blocks before it.
        seed: Of its games.
        games: How many.
    """

    number: int
    seed: int
    games: int


def play_blocks(
    play: Callable[[Block], Part],
    games: int,
    size: int,
    seed: int | Sequence[int],
    workers: int,
    run: TaskRunner,
) -> list[Part]:
    """Plays games in blocks; the result does not depend on `workers` or `run`.

    Args:
        play: Plays a block; defined at the top of a module, or a ``functools.partial`` of such.
        games: How many.
        size: Games of a block, at most.
        seed: Of all.
        workers: Processes.
        run: How tasks are shared out, as :func:`agents.workers.run_tasks` does.

    Returns:
        What came of each block, in their order.
    """
    number = -(-games // size)
    seeds = np.random.SeedSequence(seed).generate_state(number, np.uint64) >> np.uint64(1)
    tasks = [(play, Block(i, int(seeds[i]), min(size, games - i * size))) for i in range(number)]
    results = dict(run(_numbered, tasks, workers))
    return [results[i] for i in range(number)]


def _numbered(task: tuple[Callable[[Block], Part], Block]) -> tuple[int, Part]:
    play, block = task
    return block.number, play(block)
