"""The exact value of a tiny deck, from the reference game and a linear program alone.

Knows nothing of OpenSpiel nor of the engine: it deals every hand and table, plays every line of the
reference game, keys information sets by what a player saw of its events, and solves the
sequence form (Koller, Megiddo and von Stengel, 1994).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import combinations, permutations
from typing import Any

import numpy as np
from reference_game import ReferenceGame
from scipy.optimize import linprog
from scipy.sparse import coo_array

ROOT = ((), -1)  # the empty sequence


def all_deals(deck_size: int, hand_size: int) -> Iterator[tuple[int, ...]]:
    """Every deal of hands (as sets) and table, each once and all as likely."""
    deck = set(range(deck_size))
    for first in combinations(sorted(deck), hand_size):
        for second in combinations(sorted(deck - set(first)), hand_size):
            rest = sorted(deck - set(first) - set(second))
            for table in permutations(rest, 2):
                yield (*first, *second, *table)


def _seen(game: ReferenceGame, player: int, deal: tuple[int, ...]) -> Hashable:
    """What a player has seen, with open discards."""
    size = game.hand_size
    hand = deal[player * size : (player + 1) * size]
    events = tuple(
        event[:2] if event[0] == "stock" and event[1] != player else event for event in game.events
    )
    return (player, hand, deal[2 * size :], events, game.chosen)


def exact_value(deck_size: int, hand_size: int, **rules: Any) -> float:
    """Return the value of the game for player 0, for a deck with one stock card."""
    deals = list(all_deals(deck_size, hand_size))
    sequences: list[dict[Hashable, int]] = [{ROOT: 0}, {ROOT: 0}]
    sets: list[dict[Hashable, tuple[int, list[int]]]] = [{}, {}]  # parent sequence, own sequences
    payoffs: dict[tuple[int, int], float] = {}

    def walk(deal: tuple[int, ...], deck: list[int], line: list[int], last: list[int]) -> None:
        game = ReferenceGame(deck, hand_size=hand_size, **rules)
        for action in line:
            game.step(action)
        if game.done:
            key = (last[0], last[1])
            payoffs[key] = payoffs.get(key, 0.0) + game.returns[0] / len(deals)
            return
        mover = game.to_move
        seen = _seen(game, mover, deal)
        legal = game.legal_actions()
        numbers = sequences[mover]
        own = [numbers.setdefault((seen, action), len(numbers)) for action in legal]
        kept = sets[mover].setdefault(seen, (last[mover], own))
        assert kept == (last[mover], own)  # perfect recall
        for action, sequence in zip(legal, own, strict=True):
            after = last.copy()
            after[mover] = sequence
            walk(deal, deck, [*line, action], after)

    for deal in deals:
        rest = [card for card in range(deck_size) if card not in deal]
        assert len(rest) == 1
        walk(deal, [*deal, *rest], [], [0, 0])
    return _solve(payoffs, sets, [len(numbers) for numbers in sequences])


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
