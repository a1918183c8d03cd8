"""The exact value of a tiny deck, from the reference game and a linear program alone.

Knows nothing of OpenSpiel, of the engine nor of the solver: it deals every order of the cards,
plays every line of the reference game, keys information sets by what a player saw of its events,
and solves the sequence form (Koller, Megiddo and von Stengel, 1994).
"""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any

import numpy as np
from reference_game import ReferenceGame
from scipy.optimize import linprog
from scipy.sparse import coo_array

from counterweight_env import Rules

ROOT = ((), -1)  # the empty sequence


def all_deals(deck_size: int, hand_size: int) -> Iterator[tuple[int, ...]]:
    """Every deal of hands (as sets) and table, each once and all as likely."""
    deck = set(range(deck_size))
    for first in combinations(sorted(deck), hand_size):
        for second in combinations(sorted(deck - set(first)), hand_size):
            rest = sorted(deck - set(first) - set(second))
            for table in permutations(rest, 2):
                yield (*first, *second, *table)


@dataclass
class Node:
    """One position of a game written out in full, for one order of all cards."""

    deck: list[int]
    line: list[int]
    mover: int = -1
    seen: Hashable = None
    payoff: float = 0.0
    children: dict[int, Node] = field(default_factory=dict)


def written_out(rules: Rules, table: tuple[int, int]) -> list[Node]:
    """Every order of the cards that starts with a table, each as likely, with all lines of play."""
    size = rules.hand_size
    fields: dict[str, Any] = {
        "variant": rules.variant,
        "ranks": rules.ranks,
        "suits": rules.suits,
        "hand_size": size,
        "blocked": rules.blocked,
    }

    def decks() -> Iterator[list[int]]:
        rest = sorted(set(range(rules.deck_size)) - set(table))
        for first in combinations(rest, size):
            others = sorted(set(rest) - set(first))
            for second in combinations(others, size):
                for stock in permutations(sorted(set(others) - set(second))):
                    yield [*first, *second, *table, *stock]

    def node_of(deck: list[int], game: ReferenceGame, line: list[int]) -> Node:
        node = Node(deck, line)
        if game.done:
            node.payoff = float(game.returns[0])
            return node
        node.mover = game.to_move
        node.seen = _seen(game, node.mover, tuple(deck[: 2 * size + 2]))
        saved = pickle.dumps(game)  # several times faster to copy than by deepcopy
        for action in game.legal_actions():
            after = pickle.loads(saved)
            after.step(action)
            node.children[action] = node_of(deck, after, [*line, action])
        return node

    return [node_of(deck, ReferenceGame(deck, **fields), []) for deck in decks()]


def _seen(game: ReferenceGame, player: int, deal: tuple[int, ...]) -> Hashable:
    """What a player has seen, with open discards."""
    size = game.hand_size
    hand = deal[player * size : (player + 1) * size]
    events = tuple(
        event[:2] if event[0] == "stock" and event[1] != player else event for event in game.events
    )
    return (player, hand, deal[2 * size :], events, game.chosen)


def value_of(roots: list[Node]) -> float:
    """The value for player 0 of a game written out, by a linear program over the sequence form."""
    sequences: list[dict[Hashable, int]] = [{ROOT: 0}, {ROOT: 0}]
    sets: list[dict[Hashable, tuple[int, list[int]]]] = [{}, {}]  # parent sequence, own sequences
    payoffs: dict[tuple[int, int], float] = {}

    def walk(node: Node, last: list[int]) -> None:
        if node.mover < 0:
            key = (last[0], last[1])
            payoffs[key] = payoffs.get(key, 0.0) + node.payoff / len(roots)
            return
        numbers = sequences[node.mover]
        own = [numbers.setdefault((node.seen, a), len(numbers)) for a in node.children]
        kept = sets[node.mover].setdefault(node.seen, (last[node.mover], own))
        assert kept == (last[node.mover], own)  # perfect recall
        for sequence, child in zip(own, node.children.values(), strict=True):
            after = last.copy()
            after[node.mover] = sequence
            walk(child, after)

    for root in roots:
        walk(root, [0, 0])
    return _solve(payoffs, sets, [len(numbers) for numbers in sequences])


@lru_cache(maxsize=8)
def exact_value(rules: Rules) -> float:
    """The value of a whole deck for player 0, who moves first, with open discards.

    The starting table is public and by chance, so each is a game of its own; none is left out for
    being like another.
    """
    tables = list(permutations(range(rules.deck_size), 2))
    return sum(value_of(written_out(rules, table)) for table in tables) / len(tables)


def _constraints(
    sets: dict[Hashable, tuple[int, list[int]]], num_sequences: int
) -> tuple[coo_array, np.ndarray]:
    """The rows `E x = e` that make x a realization plan."""
    rows, columns, values = [0], [0], [1.0]
    for row, (parent, own) in enumerate(sets.values(), 1):
        for column, value in [(parent, -1.0), *((sequence, 1.0) for sequence in own)]:
            rows.append(row)
            columns.append(column)
            values.append(value)
    right = np.zeros(len(sets) + 1)
    right[0] = 1.0
    return coo_array((values, (rows, columns)), shape=(right.size, num_sequences)), right


def _solve(
    payoffs: dict[tuple[int, int], float],
    sets: list[dict[Hashable, tuple[int, list[int]]]],
    sizes: list[int],
) -> float:
    """Maximise `f p` over plans x >= 0 of player 0 with `F^T p <= A^T x`."""
    from scipy.sparse import hstack

    keys = np.array(list(payoffs))
    matrix = coo_array((list(payoffs.values()), (keys[:, 0], keys[:, 1])), shape=sizes)
    mine, mine_right = _constraints(sets[0], sizes[0])
    theirs, theirs_right = _constraints(sets[1], sizes[1])
    zeros = coo_array((mine_right.size, theirs_right.size))
    solution = linprog(
        np.concatenate([np.zeros(sizes[0]), -theirs_right]),
        A_ub=hstack([-matrix.T, theirs.T]).tocsr(),
        b_ub=np.zeros(sizes[1]),
        A_eq=hstack([mine, zeros]).tocsr(),
        b_eq=mine_right,
        bounds=[(0, None)] * sizes[0] + [(None, None)] * theirs_right.size,
    )
    assert solution.status == 0, solution.message
    return float(-solution.fun)
