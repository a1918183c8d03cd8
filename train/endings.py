"""Learning from exact values: solved endings as a data set, and the fit of a scorer to them.

A *decision* is a couple to choose after exhaustion, where there is more than one. Each of its moves
is marked as right if it keeps the exact value of the position, which the solver proves. Decisions
come from whole games between players of several kinds, so that all sorts of hands come up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import torch

from agents.league import TaskRunner
from agents.moves import MAX_MOVES, WIDTH, list_moves
from agents.workers import run_tasks
from counterweight_env.cards import rule_table
from counterweight_env.endgame import Workspace, forget, move_bounds, position_bounds
from counterweight_env.game import GameBatch
from counterweight_env.kernels import LEFT, ONE, kernel, lowest_bit, right_cards
from counterweight_env.plugins import make_agent
from counterweight_env.rules import Rules, as_rules
from counterweight_env.settle import TABLE_SIZE
from train.decisions import Block, Decisions, play_blocks
from train.fitting import fit_scorer

if TYPE_CHECKING:  # it needs SB3, and solving endings does not
    from train.network import MoveNet

__all__ = ["PLAYERS", "SolvedEndings", "fit_endings", "solve_decisions"]

#: Who plays the games, before and after exhaustion.
PLAYERS: Final = (
    ("random", "random"),
    ("random", "cautious+exact"),
    ("patient", "cautious"),
    ("cautious", "random"),
)
#: Positions that the solver may look at for one question; what it leaves open is no sample.
NODES: Final = 100_000
#: Games that are played side by side, at most.
BLOCK: Final = 64


@dataclass(frozen=True)
class SolvedEndings(Decisions):
    """Solved decisions after exhaustion.

    Attributes:
        right: (M,) bool, whether the move keeps the value.
        values: (n,) int8, 1, 0 or -1 for the player on move.
        skipped: Decisions that the node limit left open.
    """

    right: np.ndarray
    values: np.ndarray
    skipped: int


@kernel
def label_position(memory, table, game, node_limit, actions, rows, right):
    """Describes and marks the moves of one position; returns their count and its value.

    The count is 0 if there is no choice, and -1 if the node limit left something open.
    """
    player = np.int64(game["to_move"])
    count = list_moves(game, table, player, actions, rows)
    if count < 2:
        return 0, 0
    forget(memory)
    low, high = position_bounds(memory, table, game, False, node_limit)
    if low < high:
        return -1, 0
    if low == -1:
        right[:count] = True
        return count, low
    place = 0
    firsts = game["legal"]
    while firsts:
        first = lowest_bit(firsts)
        firsts &= firsts - ONE
        seconds = right_cards(
            table, game["hand"][player], game["table"][0], game["table"][1], first
        )
        while seconds:
            second = lowest_bit(seconds)
            seconds &= seconds - ONE
            least, most = move_bounds(memory, table, game, first, second, False, low - 1, low)
            if least < low <= most:
                return -1, 0
            right[place] = least >= low
            place += 1
    return count, low


@kernel
def label_rows(memory, tables, games, rows, node_limit, actions, out, right, counts, values):
    """Labels some rows of a state array, one after the other; returns the moves written.

    Stops early if `out` is nearly full; rows that were not done have a count of -2.
    """
    used = 0
    counts[:] = -2
    for i in range(rows.size):
        if used + MAX_MOVES > right.size:
            break
        counts[i], values[i] = label_position(
            memory, tables[0], games[rows[i]], node_limit, actions, out[used:], right[used:]
        )
        used += max(counts[i], 0)
    return used


def _play(rules: Rules, players: Sequence[tuple[str, str]], block: Block) -> SolvedEndings:
    before, after = (make_agent(text) for text in players[block.number % len(players)])
    batch = GameBatch(block.games, rules, block.seed)
    memory = Workspace(TABLE_SIZE).memory
    actions = np.empty((MAX_MOVES, 2), np.int64)
    buffer = np.empty((8 * MAX_MOVES, WIDTH), np.float32)
    marks = np.empty(8 * MAX_MOVES, np.bool_)
    parts = [_nothing()]
    while not batch.done.all():
        live = np.flatnonzero(~batch.done)
        late = batch.exhausted[live]
        todo = live[late & (batch.phase[live] == LEFT)]
        while todo.size:
            counts = np.empty(todo.size, np.int64)
            values = np.empty(todo.size, np.int8)
            used = label_rows(
                memory, rule_table(rules), batch.state, todo, NODES, actions, buffer, marks, counts,
                values,
            )  # fmt: skip
            found = counts > 0
            parts.append(
                SolvedEndings(
                    buffer[:used].astype(np.float16),
                    counts[found],
                    marks[:used].copy(),
                    values[found],
                    int((counts == -1).sum()),
                )
            )
            todo = todo[counts == -2]
        for agent, rows in ((before, live[~late]), (after, live[late])):
            if rows.size:
                batch.step(agent.act(batch.views(rows=rows)), rows=rows)
    return SolvedEndings.joined(parts)


def _nothing() -> SolvedEndings:
    return SolvedEndings(
        np.empty((0, WIDTH), np.float16),
        np.empty(0, np.int64),
        np.empty(0, np.bool_),
        np.empty(0, np.int8),
        0,
    )


def solve_decisions(
    rules: Rules | str,
    games: int,
    seed: int = 0,
    workers: int = 1,
    players: Sequence[tuple[str, str]] = PLAYERS,
    run: TaskRunner = run_tasks,
) -> SolvedEndings:
    """Plays games and solves their decisions after exhaustion.

    Args:
        rules: A :class:`Rules` or its text; not with ``blocked="discard"``.
        games: How many; some nine decisions each.
        seed: Of the games. The result does not depend on `workers`.
        workers: Processes.
        players: Who plays, before and after exhaustion: texts of agents, taken in turn.
        run: How tasks are shared out; ``train.ray_tasks.run_ray_tasks`` for a Ray cluster.

    Raises:
        ValueError: The rules let blocked players discard after exhaustion.
    """
    rules = as_rules(rules)
    if rules.blocked != "pass":
        raise ValueError(f"rules must have blocked=pass to learn endings, got {rules}")
    play = partial(_play, rules, players)
    return SolvedEndings.joined([_nothing(), *play_blocks(play, games, BLOCK, seed, workers, run)])


def fit_endings(
    net: MoveNet,
    data: SolvedEndings,
    epochs: int = 20,
    batch_size: int = 512,
    learning_rate: float = 2e-3,
    seed: int = 0,
) -> list[float]:
    """Fits the scorer of endings to solved decisions.

    The loss is the negative logarithm of the probability of a right move, plus half the squared
    error of the value. Other arguments are those of :func:`train.fitting.fit_scorer`.

    Returns:
        The mean loss of each epoch.
    """
    return fit_scorer(
        net.ending,
        data.rows,
        data.right,
        data.counts,
        data.values,
        _miss,
        epochs,
        batch_size,
        learning_rate,
        seed,
    )


def _miss(
    logs: torch.Tensor, right: torch.Tensor, owners: torch.Tensor, nothing: torch.Tensor
) -> torch.Tensor:
    return -torch.log(nothing.index_add(0, owners, torch.exp(logs) * right) + 1e-9)
