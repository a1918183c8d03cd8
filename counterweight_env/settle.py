"""Ending games at exhaustion with their exact value, for training and for evaluation."""

from __future__ import annotations

from typing import Final

import numpy as np

from counterweight_env.endgame import Workspace, forget, position_bounds
from counterweight_env.kernels import OVER, RIGHT, finish, kernel

__all__ = ["SOLVE_NODES", "TABLE_SIZE", "Settler"]

#: Positions to look at for one game and turn, at most.
SOLVE_NODES: Final = 200_000
#: Positions that a table for so small a search holds: 1 MiB, which is soon emptied.
TABLE_SIZE: Final = 2**15


@kernel
def settle_rows(memory, tables, games, rows, node_limit):
    """Ends those of the given games that are exhausted and at the start of a turn, if solved.

    Returns how many the node limit left unsolved; they go on.
    """
    unsolved = 0
    for i in range(rows.size):
        game = games[rows[i]]
        if game["stock_size"] > 0 or game["phase"] == OVER or game["phase"] == RIGHT:
            continue
        forget(memory)  # what stays open then depends on this position alone
        low, high = position_bounds(memory, tables[0], game, False, node_limit)
        if low < high:
            unsolved += 1
            continue
        value = low if game["to_move"] == 0 else -low
        game["settled"] = value + 2
        finish(game)
    return unsolved


class Settler:
    """Solves the endings of a batch, each by itself: neighbours and threads have no say.

    Args:
        nodes: Positions to look at for one game and turn, at most. A game that this leaves open
            goes on, and is tried again at its next turn.

    Attributes:
        unsolved: How often that has happened so far.

    Raises:
        ValueError: ``nodes`` is not a positive int.
    """

    def __init__(self, nodes: int = SOLVE_NODES) -> None:
        if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 1:
            raise ValueError(f"solve_nodes must be a positive int, got {nodes!r}")
        self.nodes = nodes
        self.unsolved = 0
        self._memory = Workspace(TABLE_SIZE).memory

    def __getstate__(self) -> dict[str, int]:
        """All but the memory, which nothing depends on."""
        return {"nodes": self.nodes, "unsolved": self.unsolved}

    def __setstate__(self, state: dict[str, int]) -> None:
        """Takes back what :meth:`__getstate__` gave."""
        self.__init__(state["nodes"])  # type: ignore[misc]
        self.unsolved = state["unsolved"]

    def settle(self, games: np.ndarray, table: np.ndarray, rows: np.ndarray) -> None:
        """Ends the exhausted games among some rows of a state array."""
        if (games["stock_size"][rows] == 0).any():
            self.unsolved += int(settle_rows(self._memory, table, games, rows, self.nodes))
