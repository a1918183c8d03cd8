"""Learning from the search player: its judgement of moves before exhaustion as a data set.

The search of :mod:`agents.search` says of each move what it comes to on average over many worlds.
Those means are noisy and dear; a scorer fitted to many decisions has less noise and no cost. A run
may start from such a scorer instead of chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from agents.leaf import FEATURES, weights_for
from agents.league import TaskRunner
from agents.moves import MAX_MOVES, WIDTH, count_moves, list_moves
from agents.search import MAX_CANDIDATES, TO_EXHAUSTION, search_game
from agents.workers import run_tasks
from counterweight_env.cards import rule_table
from counterweight_env.endgame import Workspace
from counterweight_env.game import GameBatch
from counterweight_env.kernels import NO_CARD, STATE, kernel
from counterweight_env.rules import Rules, as_rules
from counterweight_env.settle import TABLE_SIZE
from train.fitting import fit_scorer

if TYPE_CHECKING:  # they need SB3 and torch, and searching does not
    import torch

    from train.network import MoveNet

__all__ = ["SearchedDecisions", "fit_search", "search_decisions"]

#: Positions that the solver may look at for one leaf value.
NODES: Final = 30
#: Share of moves that are drawn instead, so that odd positions come up too.
STRAY: Final = 0.1
#: A move is wanted in proportion to exp(mean / TEMPERATURE).
TEMPERATURE: Final = 0.08
#: Games of one task.
BLOCK: Final = 16


@dataclass(frozen=True)
class SearchedDecisions:
    """Decisions before exhaustion and what the search made of them.

    Attributes:
        rows: (M, WIDTH) float16, as :func:`agents.moves.list_moves` writes them.
        means: (M,) float32, what the move came to on average, -1 to 1 for the player on move.
        counts: (n,) int64, the moves of each decision, at least 2.
    """

    rows: np.ndarray
    means: np.ndarray
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.counts)

    @classmethod
    def joined(cls, parts: Sequence[SearchedDecisions]) -> SearchedDecisions:
        """Several data sets as one, in this order."""
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.means for part in parts]),
            np.concatenate([part.counts for part in parts]),
        )


@kernel
def judge_row(game, table, player, word, worlds, memory, weights, rows, means, actions):
    """Searches one decision, describes its moves, and writes the best one's actions.

    Args:
        game: The record as the player sees it, before exhaustion and with a choice.
        table: One ``RULE_TABLE`` record.
        player: Who moves.
        word: Random bits.
        worlds: Worlds, at most.
        memory: ``Workspace(...).memory``.
        weights: Of the leaf value.
        rows: (MAX_MOVES, WIDTH) float32 to write to.
        means: (MAX_MOVES,) float32 to write to.
        actions: (2,) int64 to write to.

    Returns:
        How many moves there are.
    """
    candidates = np.empty((MAX_CANDIDATES, 2), np.int64)
    found, best = search_game(
        game,
        table,
        player,
        word,
        TO_EXHAUSTION,
        worlds,
        NODES,
        memory,
        weights,
        np.empty(FEATURES),
        np.empty(2, STATE),
        np.empty(table["deck_size"], np.uint8),
        candidates,
    )
    actions[:] = candidates[best]
    means[: found.size] = found
    # Both lists go through the cards in the same order.
    return list_moves(game, table, player, candidates, rows)


class _Task(NamedTuple):
    rules: str
    worlds: int
    seed: int
    games: int


def _play(task: _Task) -> SearchedDecisions:
    rules = as_rules(task.rules)
    table = rule_table(rules)[0]
    batch = GameBatch(task.games, rules, task.seed)
    generator = np.random.default_rng(task.seed)
    memory = Workspace(TABLE_SIZE).memory
    weights = weights_for(rules.variant, rules.blocked)
    rows = np.empty((MAX_MOVES, WIDTH), np.float32)
    means = np.empty(MAX_MOVES, np.float32)
    actions = np.empty(2, np.int64)
    parts = [_nothing()]
    while (live := np.flatnonzero(~batch.done & ~batch.exhausted)).size:
        views = batch.views(rows=live)
        chosen = batch.random_actions(rows=live)
        stray = generator.random(live.size) < STRAY
        seconds = np.full(live.size, NO_CARD, np.int64)
        for i in range(live.size):
            record = views.records[i]
            player = int(views.players[i])
            if count_moves(record, table, player) < 2:
                continue
            word = views.random_bits[i]
            count = judge_row(
                record, table, player, word, task.worlds, memory, weights, rows, means, actions
            )
            parts.append(
                SearchedDecisions(
                    rows[:count].astype(np.float16), means[:count].copy(), np.array([count])
                )
            )
            if not stray[i]:
                chosen[i], seconds[i] = actions
        batch.step(chosen, rows=live)
        couples = seconds != NO_CARD
        batch.step(seconds[couples], rows=live[couples])
    return SearchedDecisions.joined(parts)


def _nothing() -> SearchedDecisions:
    return SearchedDecisions(
        np.empty((0, WIDTH), np.float16), np.empty(0, np.float32), np.empty(0, np.int64)
    )


def search_decisions(
    rules: Rules | str,
    games: int,
    worlds: int = 64,
    seed: int = 0,
    workers: int = 1,
    run: TaskRunner = run_tasks,
) -> SearchedDecisions:
    """Lets the search play itself to exhaustion, and notes what it made of each move.

    Args:
        rules: A :class:`Rules` or its text.
        games: How many; some twenty decisions each.
        worlds: Worlds a decision, at most.
        seed: Of the games. The result does not depend on `workers`.
        workers: Processes.
        run: How tasks are shared out; ``train.ray_tasks.run_ray_tasks`` for a Ray cluster.
    """
    blocks = -(-games // BLOCK)
    seeds = np.random.SeedSequence([seed, 1]).generate_state(blocks, np.uint64) >> np.uint64(1)
    tasks = [
        _Task(str(as_rules(rules)), worlds, int(seeds[i]), min(BLOCK, games - i * BLOCK))
        for i in range(blocks)
    ]
    results = dict(run(_numbered, list(enumerate(tasks)), workers))
    return SearchedDecisions.joined([_nothing(), *(results[i] for i in range(blocks))])


def _numbered(task: tuple[int, _Task]) -> tuple[int, SearchedDecisions]:
    return task[0], _play(task[1])


def fit_search(
    net: MoveNet,
    data: SearchedDecisions,
    epochs: int = 10,
    batch_size: int = 512,
    learning_rate: float = 2e-3,
    seed: int = 0,
) -> list[float]:
    """Fits the scorer of the time before exhaustion to what the search made of each move.

    The loss is the cross-entropy to probabilities in proportion to ``exp(mean / TEMPERATURE)``,
    plus half the squared error of the value, which is the best mean. Other arguments are those of
    :func:`train.fitting.fit_scorer`.

    Returns:
        The mean loss of each epoch.
    """
    starts = np.cumsum(data.counts) - data.counts
    values = np.maximum.reduceat(data.means, starts) if len(data) else np.empty(0)
    wanted = np.exp((data.means - np.repeat(values, data.counts)) / TEMPERATURE)
    if len(data):
        wanted /= np.repeat(np.add.reduceat(wanted, starts), data.counts)
    return fit_scorer(
        net.opening,
        data.rows,
        wanted,
        data.counts,
        values,
        _cross_entropy,
        epochs,
        batch_size,
        learning_rate,
        seed,
    )


def _cross_entropy(
    logs: torch.Tensor, wanted: torch.Tensor, owners: torch.Tensor, nothing: torch.Tensor
) -> torch.Tensor:
    return -nothing.index_add(0, owners, logs * wanted)
