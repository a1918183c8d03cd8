"""Is A better than B? A sequential test on duplicate deals that stops by itself.

The generalised sequential probability ratio test of fishtest, the test bed of Stockfish, with the
deal as the unit. Both games of a deal share its cards, so what counts is the frequency of the five
outcomes of a deal: 0, 1/2, 1, 3/2 and 2 points of A (fishtest's "pentanomial" model).

The hypotheses are "A's expected score is that of ``elo0``" and "... of ``elo1``" on the logistic
scale ``1 / (1 + 10 ** (-elo / 400))``, and leave the rest of the distribution open; the test takes
the likeliest distribution under each. Sources:

- fishtest, ``LLR_logistic`` in ``server/fishtest/stats/LLRcalc.py``,
  https://github.com/official-stockfish/fishtest
- the likeliest distribution of a given mean: Proposition 1.1 of
  https://www.cantate.be/Fishtest/support_MLE_multinomial.pdf
- the test: https://www.cantate.be/Fishtest/GSPRT_approximation.pdf and
  http://stat.columbia.edu/~jcliu/paper/GSPRT_SQA3.pdf

The bounds are Wald's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from math import isfinite, log
from typing import Final

import numpy as np

from agents.arena import DealsPlayed
from agents.blocks import BlockStore, BlockTask, Setup, play_block
from agents.workers import run_tasks

__all__ = ["Sprt", "SprtResult", "deal_counts", "play_sprt"]

#: The points of A in a deal, as a part of 2.
OUTCOMES: Final = np.linspace(0.0, 1.0, 5)
#: What an outcome that has not come up yet counts, as in fishtest: no outcome is impossible.
UNSEEN: Final = 1e-3


def expected_score(elo: float) -> float:
    """The score, from 0 to 1, of a player that is this much stronger."""
    return float(1.0 / (1.0 + 10.0 ** (-elo / 400.0)))


def deal_counts(scores: np.ndarray) -> np.ndarray:
    """How often each of the five outcomes came up.

    Args:
        scores: (deals, 2) float64, A's points in the games of each deal.

    Returns:
        (5,) int64, for 0, 1/2, 1, 3/2 and 2 points.
    """
    return np.bincount((2.0 * scores.sum(axis=1)).round().astype(np.int64), minlength=5)


@dataclass(frozen=True)
class Sprt:
    """The test.

    Attributes:
        elo0: A's lead over B under the null hypothesis, on the Elo scale.
        elo1: Its lead under the alternative, more than ``elo0``.
        alpha: The chance to accept ``elo1`` where ``elo0`` is true, about.
        beta: The chance to accept ``elo0`` where ``elo1`` is true, about.

    Raises:
        ValueError: A number is out of range.
    """

    elo0: float = 0.0
    elo1: float = 10.0
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not (isfinite(self.elo0) and isfinite(self.elo1) and self.elo0 < self.elo1):
            raise ValueError(f"elo0 must be less than elo1, got {self.elo0} and {self.elo1}")
        for name in ("alpha", "beta"):
            if not 0.0 < getattr(self, name) < 0.5:
                raise ValueError(f"{name} must be between 0 and 0.5, got {getattr(self, name)}")

    @property
    def bounds(self) -> tuple[float, float]:
        """The log likelihood ratios at which ``elo0`` and ``elo1`` are accepted."""
        return log(self.beta / (1.0 - self.alpha)), log((1.0 - self.beta) / self.alpha)

    def log_likelihood_ratio(self, counts: np.ndarray) -> float:
        """How much likelier the outcomes are under ``elo1`` than under ``elo0``.

        Args:
            counts: (5,) as :func:`deal_counts`; not all 0.

        Raises:
            ImportError: scipy is not installed.
        """
        weights = np.where(counts == 0, UNSEEN, counts)
        shares = weights / weights.sum()
        first, second = (_likeliest(shares, expected_score(elo)) for elo in (self.elo0, self.elo1))
        return float(weights @ np.log(second / first))

    def accepted(self, ratio: float) -> str | None:
        """``"elo0"``, ``"elo1"``, or None while the log likelihood ratio leaves it open."""
        low, high = self.bounds
        if ratio <= low:
            return "elo0"
        return "elo1" if ratio >= high else None


def _likeliest(shares: np.ndarray, mean: float) -> np.ndarray:
    """The likeliest distribution of a given mean, for the observed shares of the outcomes.

    It is ``shares / (1 + x * (outcome - mean))``, with the x at which the mean comes out right.
    """
    from scipy.optimize import brentq

    away = OUTCOMES - mean
    low, high = -1.0 / away[-1], -1.0 / away[0]
    edge = 1e-9 * (high - low)
    x = brentq(lambda x: float(np.sum(shares * away / (1.0 + x * away))), low + edge, high - edge)
    return shares / (1.0 + x * away)


@dataclass(frozen=True)
class SprtResult:
    """How a test ended.

    Attributes:
        accepted: ``"elo0"``, ``"elo1"``, or None if the deals ran out.
        deals: Deals played.
        counts: How often the five outcomes came up.
        log_likelihood_ratio: At the end.
        score: A's score, from 0 to 1.
        faults: Games that A and B gave up.
    """

    accepted: str | None
    deals: int
    counts: tuple[int, ...]
    log_likelihood_ratio: float
    score: float
    faults: tuple[int, int]


def play_sprt(
    a: str,
    b: str,
    test: Sprt,
    setup: Setup,
    workers: int = 1,
    max_deals: int | None = None,
    store: BlockStore | None = None,
    on_block: Callable[[int, float], None] | None = None,
) -> SprtResult:
    """Plays blocks of deals until the test decides. It is asked after each block, in their order.

    Args:
        a: The player that may be better.
        b: The other.
        test: The test.
        setup: Both players, one rule set, and ``deals=None``.
        workers: Processes; the result does not depend on them.
        max_deals: Where to give up, rounded up to whole blocks; None for never.
        store: Where blocks are kept and looked for; None for nowhere.
        on_block: Called with the deals so far and the log likelihood ratio.

    Raises:
        IllegalActionError: A player answered with an illegal action.
        WorkerError: A process died.
    """
    first, second = sorted((a, b))
    counts = np.zeros(5, np.int64)
    faults = np.zeros(2, np.int64)
    with closing(_blocks(first, second, setup, workers, store)) as blocks:
        for played in blocks:
            counts += deal_counts(played.scores if first == a else 1.0 - played.scores)
            faults += played.fault_counts if first == a else played.fault_counts[::-1]
            ratio = test.log_likelihood_ratio(counts)
            if on_block is not None:
                on_block(int(counts.sum()), ratio)
            accepted = test.accepted(ratio)
            if accepted is not None or (max_deals is not None and counts.sum() >= max_deals):
                break
    return SprtResult(
        accepted=accepted,
        deals=int(counts.sum()),
        counts=tuple(counts.tolist()),
        log_likelihood_ratio=ratio,
        score=float(counts @ OUTCOMES / counts.sum()),
        faults=(int(faults[0]), int(faults[1])),
    )


def _blocks(
    a: str, b: str, setup: Setup, workers: int, store: BlockStore | None
) -> Generator[DealsPlayed, None, None]:
    """The blocks of a pair, in their order and without end."""
    ready: dict[int, DealsPlayed] = {}

    def is_kept(task: BlockTask) -> bool:
        return store is not None and store.is_done(task)

    tasks = partial(setup.pair_tasks, setup.rules[0], a, b)
    missing = (task for task in tasks() if not is_kept(task))
    with closing(run_tasks(play_block, missing, workers)) as finished:
        for task in tasks():
            if store is not None and store.is_done(task) and task.number not in ready:
                yield store.read(task)
                continue
            while task.number not in ready:
                done, played = next(finished)
                ready[done.number] = played
                if store is not None:
                    store.write(done, played)
            yield ready.pop(task.number)
