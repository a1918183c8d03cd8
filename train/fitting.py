"""Fits a scorer of moves to decisions whose moves are marked, by supervised learning."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:  # it needs SB3, and data sets do not
    from train.network import Scorer

__all__ = ["fit_scorer"]

#: From the moves' probabilities, their logarithms, marks and owners, the loss of each decision.
Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def fit_scorer(
    scorer: Scorer,
    rows: np.ndarray,
    marks: np.ndarray,
    counts: np.ndarray,
    values: np.ndarray,
    loss_of: Loss,
    epochs: int,
    batch_size: int = 512,
    learning_rate: float = 2e-3,
    seed: int = 0,
) -> list[float]:
    """Fits one scorer to decisions by Adam, with a learning rate that falls to 0.

    Args:
        scorer: What to fit.
        rows: (M, WIDTH), the moves of all decisions, one after the other.
        marks: (M,), what `loss_of` needs to know of a move.
        counts: (n,) int64, the moves of each decision.
        values: (n,), from -1 to 1, for the player on move.
        loss_of: The loss of each decision, (batch,), from the log-probabilities (m,) and marks (m,)
            of its moves, the decision that each move belongs to (m,), and a tensor of zeros
            (batch,). Half the squared error of the value is added to it.
        epochs: Passes over the data.
        batch_size: Decisions a step.
        learning_rate: At the start.
        seed: Of the order.

    Returns:
        The mean loss of each epoch.
    """
    optimizer = torch.optim.Adam(scorer.parameters(), lr=learning_rate)
    generator = np.random.default_rng(seed)
    ends = np.cumsum(counts)
    size = len(counts)
    steps = epochs * -(-size // batch_size)
    step = 0
    losses = []
    for _ in range(epochs):
        order = generator.permutation(size)
        total = 0.0
        for start in range(0, size, batch_size):
            chosen = order[start : start + batch_size]
            number = counts[chosen]
            moves = _ranges(ends[chosen] - number, number)
            owners = torch.from_numpy(np.repeat(np.arange(len(chosen)), number))
            scores, hidden = scorer(torch.from_numpy(rows[moves].astype(np.float32)))
            sums = torch.zeros(len(chosen), hidden.shape[1]).index_add(0, owners, hidden)
            found = torch.tanh(scorer.value(sums / torch.from_numpy(number)[:, None])[:, 0])
            most = torch.full((len(chosen),), -1e9).scatter_reduce(
                0, owners, scores.detach(), "amax"
            )
            shifted = scores - most[owners]
            nothing = torch.zeros(len(chosen))
            every = nothing.index_add(0, owners, torch.exp(shifted))
            logs = shifted - torch.log(every)[owners]
            goal = torch.from_numpy(marks[moves].astype(np.float32))
            loss = loss_of(logs, goal, owners, nothing).mean()
            wanted = torch.from_numpy(values[chosen].astype(np.float32))
            loss = loss + 0.5 * torch.nn.functional.mse_loss(found, wanted)
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * (1 - step / steps)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            total += float(loss.detach()) * len(chosen)
        losses.append(total / size)
    return losses


def _ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The indexes of several stretches, one after the other."""
    shifts = np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return np.arange(len(shifts)) + shifts
