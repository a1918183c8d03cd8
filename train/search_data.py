"""Learning from the search player: its judgement of moves before exhaustion as a data set.

The search of :mod:`agents.search` says of each move what it comes to on average over many worlds.
Those means are noisy and dear; a scorer fitted to many decisions has less noise and no cost. A run
may start from such a scorer instead of chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from agents.leaf import weights_for
from agents.league import TaskRunner
from agents.moves import MAX_MOVES, WIDTH, count_moves, list_moves
from agents.search import MAX_CANDIDATES, NO_PRIOR, TO_EXHAUSTION, search_game
from agents.workers import run_tasks
from counterweight_env.cards import rule_table
from counterweight_env.endgame import Workspace
from counterweight_env.game import GameBatch
from counterweight_env.kernels import NO_CARD, kernel
from counterweight_env.rules import Rules, as_rules
from counterweight_env.settle import TABLE_SIZE
from train.decisions import Block, Decisions, play_blocks
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
#: Games that are played side by side, at most.
BLOCK: Final = 16


@dataclass(frozen=True)
class SearchedDecisions(Decisions):
    """Decisions before exhaustion and what the search made of them.

    Attributes:
        means: (M,) float32, what the move came to on average, -1 to 1 for the player on move.
    """

    means: np.ndarray


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
        candidates,
        NO_PRIOR,
    )
    actions[:] = candidates[best]
    means[: found.size] = found
    # Both lists go through the cards in the same order.
    return list_moves(game, table, player, candidates, rows)


def _play(rules: Rules, worlds: int, block: Block) -> SearchedDecisions:
    table = rule_table(rules)[0]
    batch = GameBatch(block.games, rules, block.seed)
    generator = np.random.default_rng(block.seed)
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
                record, table, player, word, worlds, memory, weights, rows, means, actions
            )
            parts.append(
                SearchedDecisions(
                    rows[:count].astype(np.float16), np.array([count]), means[:count].copy()
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
        np.empty((0, WIDTH), np.float16), np.empty(0, np.int64), np.empty(0, np.float32)
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
    play = partial(_play, as_rules(rules), worlds)
    parts = play_blocks(play, games, BLOCK, (seed, 1), workers, run)
    return SearchedDecisions.joined([_nothing(), *parts])


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
