"""Ratings: the Bradley-Terry model on the Elo scale, with intervals by a bootstrap over deals.

The model says that player i scores ``1 / (1 + 10 ** ((r_j - r_i) / 400))`` against player j. Draws
count as half a win of each. The fit is that of `choix <https://choix.lum.li>`_ (iterative Luce
spectral ranking; Maystre and Grossglauser, "Fast and accurate inference of Plackett-Luce models",
NIPS 2015), which finds the greatest likelihood.

All pairs of a round robin play the same deals, so a resample draws deals and takes the games of
every pair on each: what the pairs have in common because of the cards stays together.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Final

import numpy as np

from agents.arena import RESAMPLES, percentiles

__all__ = ["Rating", "Resamples", "bradley_terry", "rate"]

ELO: Final = 400.0 / log(10.0)
#: Regularisation of the fit. A player that wins (or loses) every game has no greatest likelihood;
#: this much is added to each transition rate of choix's Markov chain, so that its rating is finite.
#: 2,000 games won out of 2,000 come to 2,800 Elo. Beside the thousands of games of other ratings it
#: weighs nothing.
ALPHA: Final = 1e-4
#: Resamples drawn at once, times deals, at most: a matter of memory.
CHUNK: Final = 4_000_000


@dataclass(frozen=True)
class Rating:
    """A player's strength.

    Attributes:
        elo: Points above the anchor.
        interval: 95 %, of the difference from the anchor; (0, 0) for the anchor itself.
        bounded: Whether the games tie the player to the anchor from both sides: each has won
            against the other, or against somebody who has, and so on (Ford, 1957). If not, one side
            of the interval and the rating itself are those of the regularisation.
    """

    elo: float
    interval: tuple[float, float]
    bounded: bool


def bradley_terry(wins: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Fits the model.

    Args:
        wins: (n, n) float64, how often the row's player won against the column's, draws as halves.
        start: (n,) ratings to begin at.

    Returns:
        (n,) float64 ratings on the Elo scale, their mean 0.

    Raises:
        ImportError: choix is not installed.
    """
    import choix

    first = None if start is None else start / ELO
    return choix.ilsr_pairwise_dense(wins, alpha=ALPHA, initial_params=first) * ELO


class Resamples:
    """Resamples of the deals, each as many deals as there are: always the same draws.

    Args:
        deals: How many deals.
        count: How many resamples.
    """

    def __init__(self, deals: int, count: int = RESAMPLES) -> None:
        rng = np.random.default_rng(0)
        even = np.full(deals, 1.0 / deals)
        size = max(1, min(count, CHUNK // deals))
        # How often a deal is drawn never comes near 255.
        self._chunks = [
            rng.multinomial(deals, even, size=min(size, count - start)).astype(np.uint8)
            for start in range(0, count, size)
        ]

    def sums(self, columns: np.ndarray) -> np.ndarray:
        """Adds up what belongs to the deals of each resample.

        Args:
            columns: (deals, k) numbers.

        Returns:
            (resamples, k) float64.
        """
        return np.concatenate([chunk.astype(np.float64) @ columns for chunk in self._chunks])


def rate(
    pairs: list[tuple[int, int]], scores: np.ndarray, anchor: int, resamples: Resamples
) -> list[Rating]:
    """Rates the players of a round robin.

    Args:
        pairs: The numbers of the two players of each pair; every player is in one.
        scores: (pairs, deals) float64, the points of each pair's first player in the two games of
            each deal, 0 to 2.
        anchor: The player whose rating is 0.
        resamples: Of these deals.

    Returns:
        The rating of each player.

    Raises:
        ImportError: choix is not installed.
    """
    games = 2.0 * scores.shape[1]
    wins = _wins(pairs, scores.sum(axis=1), games)
    fit = bradley_terry(wins)
    spread = np.stack(
        [bradley_terry(_wins(pairs, drawn, games), fit) for drawn in resamples.sums(scores.T)]
    )
    spread -= spread[:, [anchor]]
    beats = wins > 0
    for player in range(fit.size):  # whom one has won against, by way of others too
        beats |= np.outer(beats[:, player], beats[player])
    tied = beats[anchor] & beats[:, anchor]
    tied[anchor] = True
    return [
        Rating(
            elo=float(fit[player] - fit[anchor]),
            interval=percentiles(spread[:, player]),
            bounded=bool(tied[player]),
        )
        for player in range(fit.size)
    ]


def _wins(pairs: list[tuple[int, int]], points: np.ndarray, games: float) -> np.ndarray:
    """The (n, n) matrix of wins from the points of each pair's first player."""
    players = 1 + max(max(pair) for pair in pairs)
    wins = np.zeros((players, players))
    for (a, b), won in zip(pairs, points, strict=True):
        wins[a, b] = won
        wins[b, a] = games - won
    return wins
