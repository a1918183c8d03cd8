"""``python -m benchmarks.endgame``: how fast exhausted positions are solved.

Positions come from play before exhaustion, which perfect endings do not change: half from random
play, half from ``greedy``, each rule set apart, from fixed seeds; games that end at exhaustion are
replaced. Each position is solved once with an empty table (the time to empty it is not counted) and
once with the table that the positions before it have filled. ``--plain`` times a plain alpha-beta
search with a table on the same positions in turn. Times are of the processor, so that other jobs
matter less.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numba
import numpy as np

from agents import Agent, make_agent
from counterweight_env import GameBatch
from counterweight_env.cards import rule_table
from counterweight_env.endgame import (
    DEFAULT_TABLE_SIZE,
    NODES,
    Workspace,
    position_bounds,
)
from counterweight_env.kernels import LEFT, STATE, bit, left_cards, lowest_bit, right_cards
from counterweight_env.rules import as_rules

__all__ = ["exhausted_positions", "main", "plain_value"]

PLAYERS: Final = ("random", "greedy")
SEED: Final = 20061
LIMITS_MS: Final = (1, 10, 100, 1000)
PERCENTILES: Final = (50, 90, 95, 99, 100)
UNLIMITED: Final = 2**62


def exhausted_positions(rules: str, player: str, count: int, seed: int = SEED) -> np.ndarray:
    """Plays both seats to exhaustion.

    Args:
        rules: The rules as text.
        player: The player's name.
        count: Positions wanted.
        seed: Of the first game.

    Returns:
        (count,) of dtype STATE, all of them running.
    """
    agent: Agent = make_agent(player)
    found = np.empty(0, STATE)
    while len(found) < count:
        batch = GameBatch(count, rules, seed=seed)
        while (rows := np.flatnonzero(~batch.done & ~batch.exhausted)).size:
            batch.step(agent.act(batch.views(rows=rows)), rows=rows)
        found = np.concatenate([found, batch.state[batch.state["phase"] == LEFT]])
        seed += count
    return found[:count]


# --- The plain search ---------------------------------------------------------------------------


@numba.njit
def plain_search(table, memory, nodes, mine, other, left, right, alpha, beta):
    """Alpha-beta on win, draw and loss; fewest replies first; a table that always replaces."""
    nodes[0] += 1
    if nodes[0] > nodes[1]:
        return 2
    mine_left = left_cards(table, mine, left, right)
    if mine_left == 0:
        if left_cards(table, other, left, right) == 0:
            return np.sign(bits_of(other) - bits_of(mine))
        value = plain_search(table, memory, nodes, other, mine, left, right, -beta, -alpha)
        return value if value == 2 else -value
    squares = np.uint64(left << 6 | right)
    word = (mine * np.uint64(0x9E3779B97F4A7C15)) ^ (other * np.uint64(0xD6E8FEB86659FD93))
    word = (word ^ (squares * np.uint64(0xC2B2AE3D27D4EB4F))) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64(word >> np.uint64(64 - 19))
    if memory[slot, 0] == mine and memory[slot, 1] == other and memory[slot, 2] == squares:
        low = np.int64(memory[slot, 3] & np.uint64(3)) - 1
        high = np.int64(memory[slot, 3] >> np.uint64(2)) - 1
        if low >= beta or low == high:
            return low
        if high <= alpha:
            return high
        alpha = max(alpha, low)
        beta = min(beta, high)
    moves = np.empty(1225 * 2, np.int64)
    count = 0
    firsts = mine_left
    while firsts:
        first = lowest_bit(firsts)
        firsts &= firsts - np.uint64(1)
        seconds = right_cards(table, mine, left, right, first)
        while seconds:
            second = lowest_bit(seconds)
            seconds &= seconds - np.uint64(1)
            replies = bits_of(left_cards(table, other, first, second))
            moves[count] = replies << 12 | first << 6 | second
            count += 1
    best = -1
    floor = alpha
    for move in np.sort(moves[:count]):
        first = (move >> 6) & 63
        second = move & 63
        rest = mine & ~(bit(first) | bit(second))
        if rest == 0:
            value = 1
        else:
            value = plain_search(table, memory, nodes, other, rest, first, second, -beta, -floor)
            if value == 2:
                return 2
            value = -value
        best = max(best, value)
        floor = max(floor, best)
        if best >= beta:
            break
    low = -1 if best <= alpha else best
    high = 1 if best >= beta else best
    memory[slot, 0] = mine
    memory[slot, 1] = other
    memory[slot, 2] = squares
    memory[slot, 3] = np.uint64(low + 1) | np.uint64(high + 1) << np.uint64(2)
    return best


@numba.njit
def bits_of(mask):
    """Cards in a mask."""
    count = 0
    while mask:
        mask &= mask - np.uint64(1)
        count += 1
    return count


def plain_value(table: np.ndarray, memory: np.ndarray, nodes: np.ndarray, game: np.void) -> int:
    """The value of a game by the plain search; 2 if the limit in ``nodes[1]`` ran out."""
    mover = int(game["to_move"])
    mine, other = game["hand"][mover], game["hand"][1 - mover]
    left, right = (int(card) for card in game["table"])
    nodes[0] = 0
    return int(plain_search(table[0], memory, nodes, mine, other, left, right, -1, 1))


# --- Timing -------------------------------------------------------------------------------------


Timed = tuple[int | None, int, float]  # value, nodes, seconds


def plain_runs(games: np.ndarray, rules: str, limit: int) -> Iterator[Timed]:
    """Solves positions by the plain search, each with an empty table."""
    table = rule_table(as_rules(rules))
    memory = np.zeros((2**19, 4), np.uint64)
    nodes = np.array([0, 100], np.int64)
    plain_value(table, memory, nodes, games[0])  # compiles
    nodes[1] = limit
    for game in games:
        memory[:] = 0
        start = time.thread_time()
        value = plain_value(table, memory, nodes, game)
        seconds = time.thread_time() - start
        yield None if value == 2 else value, min(int(nodes[0]), limit), seconds


def solver_runs(
    games: np.ndarray, rules: str, limit: int, keep: bool, table_size: int
) -> Iterator[Timed]:
    """Solves positions, with an empty table each or with one kept from position to position."""
    table = rule_table(as_rules(rules))[0]
    workspace = Workspace(table_size)
    position_bounds(workspace.memory, table, games[0], False, 100)  # compiles
    workspace.clear()
    for game in games:
        if not keep:
            workspace.clear()
        start = time.thread_time()
        low, high = position_bounds(workspace.memory, table, game, False, limit)
        seconds = time.thread_time() - start
        nodes = min(int(workspace.memory[NODES]), limit)
        yield int(low) if low == high else None, nodes, seconds


def row(title: str, runs: Sequence[Timed]) -> str:
    """One line of the table."""
    milliseconds = np.array([seconds for _, _, seconds in runs]) * 1e3
    nodes = np.array([nodes for _, nodes, _ in runs])
    solved = np.array([value is not None for value, _, _ in runs])
    within = [f"{(solved & (milliseconds <= limit)).mean():.1%}" for limit in LIMITS_MS]
    spread = [f"{value:.3g}" for value in np.percentile(milliseconds, PERCENTILES)]
    speed = f"{nodes.sum() / milliseconds.sum() / 1e3:.1f}"
    cells = [title, str(len(runs)), str(int((~solved).sum())), *within, *spread]
    return " | ".join([*cells, f"{nodes.mean():.0f}", f"{np.percentile(nodes, 99):.0f}", speed])


def show(title: str, runs: Iterable[Timed]) -> list[Timed]:
    """Prints one line, once everything in it has run."""
    done = list(runs)
    print(row(title, done), flush=True)
    return done


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.endgame", description=__doc__)
    parser.add_argument("--rules", nargs="+", default=["classic", "exchange"])
    parser.add_argument("--positions", type=int, default=1000, help="a rule set")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--node-limit", type=int, default=UNLIMITED)
    parser.add_argument("--table-size", type=int, default=DEFAULT_TABLE_SIZE)
    parser.add_argument("--plain", type=int, default=0, help="positions for the plain search too")
    parser.add_argument("--plain-limit", type=int, default=20_000_000, help="its nodes a position")
    options = parser.parse_args(arguments)

    heads = ["search", "positions", "open", *(f"<= {limit} ms" for limit in LIMITS_MS)]
    heads += [*(f"{p} % ms" for p in PERCENTILES), "nodes", "99 % nodes", "M nodes/s"]
    print(" | ".join(heads))
    print(" | ".join("---" for _ in heads))
    for rules in options.rules:
        half = options.positions // 2
        games = np.concatenate(
            [exhausted_positions(rules, player, half, options.seed) for player in PLAYERS]
        )

        size = options.table_size
        limit = options.node_limit
        ours = show(rules, solver_runs(games, rules, limit, False, size))
        show(f"{rules}, table kept", solver_runs(games, rules, limit, True, size))
        if options.plain:
            picks = np.linspace(0, len(games) - 1, options.plain).astype(int)
            some = games[picks]
            same = [ours[i] for i in picks]
            show(f"{rules}, same as plain", same)
            plain = show(f"{rules}, plain alpha-beta", plain_runs(some, rules, options.plain_limit))
            both = [
                (mine, theirs)
                for mine, theirs in zip(same, plain, strict=True)
                if None not in (mine[0], theirs[0])
            ]
            if any(mine[0] != theirs[0] for mine, theirs in both):
                raise AssertionError("the two searches disagree")
            ratio = sum(run[2] for run in plain) / sum(run[2] for run in same)
            print(
                f"{rules}: the plain search takes {ratio:.1f} times as long on the same positions"
            )


if __name__ == "__main__":
    main()
