"""What is compared with what, and what the ratios are to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

__all__ = ["COMPARISONS", "Comparison", "Loop", "Rates", "Spread"]


@dataclass(frozen=True)
class Loop:
    """A timed loop.

    Attributes:
        module: The module of ``benchmarks.loops`` that has it.
        name: Its name there.
        title: What a reader sees.
        pinned: Whether its process stays on one core.
    """

    module: str
    name: str
    title: str
    pinned: bool = True


@dataclass
class Rates:
    """What a loop did in each round, per second."""

    decisions: list[float] = field(default_factory=list)
    games: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Spread:
    """Median, least and most of the rounds."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Summarises one value a round."""
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True)
class Comparison:
    """Two loops and the bound on the ratio of their decisions per second.

    Attributes:
        what: The kind of play.
        ours: The loop above the line of the ratio.
        other: The loop below it.
        at_least: The ratio wanted, if there is such a bound.
        at_most: The ratio allowed, if there is such a bound.
        cores: The cores it takes.
    """

    what: str
    ours: Loop
    other: Loop
    at_least: float | None = None
    at_most: float | None = None
    cores: int = 1

    def ratio(self, rates: Mapping[Loop, Rates]) -> Spread:
        """The ratio of each round, summarised."""
        pairs = zip(rates[self.ours].decisions, rates[self.other].decisions, strict=True)
        return Spread.of([ours / other for ours, other in pairs])

    def is_met(self, ratio: float) -> bool:
        """Whether a ratio keeps the bound; True if there is none."""
        if self.at_least is not None and ratio < self.at_least:
            return False
        return self.at_most is None or ratio <= self.at_most


KERNEL: Final = Loop("counterweight", "kernel", "Counterweight, random play in the kernel")
BATCH: Final = Loop("counterweight", "batch", "Counterweight GameBatch, 1,024 games")
VECTOR: Final = Loop("counterweight", "vector env", "Counterweight VectorEnv, 1,024 games")
AEC: Final = Loop("counterweight", "AEC", "Counterweight AEC")
GAME: Final = Loop("counterweight", "Game", "Counterweight Game")
LARGE: Final = Loop("counterweight", "large batch", "Counterweight GameBatch, 8,192 games")
ONE_THREAD: Final = Loop(
    "counterweight", "large batch", "Counterweight GameBatch, 8,192 games, 1 thread", pinned=False
)
TWO_THREADS: Final = Loop(
    "counterweight",
    "large batch, 2 threads",
    "Counterweight GameBatch, 8,192 games, 2 threads",
    pinned=False,
)

BOTS: Final = Loop("open_spiel", "evaluate_bots", "OpenSpiel crazy_eights, evaluate_bots")
SPIEL: Final = Loop("open_spiel", "documented", "OpenSpiel crazy_eights, documented loop")
SPIEL_QUICKER: Final = Loop("open_spiel", "quicker", "OpenSpiel crazy_eights, quicker loop")
SPIEL_FASTEST: Final = Loop("open_spiel", "fastest", "OpenSpiel crazy_eights, fastest loop")
SPIEL_LEGAL: Final = Loop("open_spiel", "legal actions", "OpenSpiel crazy_eights, bare loop")
PGX: Final = Loop("pgx", "leduc_holdem", "Pgx leduc_holdem, 1,024 games")
CONNECT_FOUR: Final = Loop("pettingzoo", "connect_four", "PettingZoo connect_four_v3")
LEDUC: Final = Loop("pettingzoo", "leduc_holdem", "PettingZoo leduc_holdem_v4")
UNO: Final = Loop("rlcard", "uno", "RLCard uno")

IN_ENGINE: Final = "Whole games inside the engine"
IN_BATCH: Final = "Observation and mask of every decision"
VECTORISED: Final = "Vectorised play"
ONE_ENV: Final = "One environment in Python"
ONE_GAME: Final = "One game in Python, legal actions only"

#: In the order of measurement: what is compared runs shortly after one another.
COMPARISONS: Final = (
    Comparison(IN_ENGINE, KERNEL, BOTS, at_least=10),
    Comparison(IN_BATCH, BATCH, SPIEL, at_least=120),
    Comparison(IN_BATCH, BATCH, SPIEL_QUICKER),
    Comparison(IN_BATCH, BATCH, SPIEL_FASTEST),
    Comparison(VECTORISED, VECTOR, PGX, at_least=3),
    Comparison(VECTORISED, BATCH, PGX),
    Comparison(ONE_ENV, AEC, CONNECT_FOUR, at_least=3),
    Comparison(ONE_ENV, AEC, LEDUC),
    Comparison(ONE_ENV, AEC, UNO),
    Comparison(ONE_GAME, GAME, SPIEL_LEGAL, at_least=0.7),
    Comparison("Cost of a decision in the larger batch", BATCH, LARGE, at_most=1.2),
    Comparison("Two threads", TWO_THREADS, ONE_THREAD, at_least=1.7, cores=2),
)
