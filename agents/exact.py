"""Any player, with perfect endings: ``make_agent("greedy+exact")``."""

from __future__ import annotations

from typing import Final

import numpy as np

from agents.agent import Agent, ViewBatch, as_agent, close_agent, decide
from counterweight_env.cards import rule_table
from counterweight_env.endgame import NODES, Workspace, forget, move_bounds, position_bounds
from counterweight_env.game import IllegalActionError
from counterweight_env.kernels import (
    DISCARD,
    LEFT,
    NO_CARD,
    ONE,
    ZERO,
    bit,
    kernel,
    lowest_bit,
    right_cards,
)

__all__ = ["Exact"]

#: Positions looked at to solve one decision, at most; nearly all need far fewer.
NODE_LIMIT: Final = 6_000_000
PROVEN: Final = 100


@kernel
def move_quality(memory, table, game, first, second, low):
    """PROVEN if a move is proven to be worth `low`, else what is proven of it as a number."""
    least, most = move_bounds(memory, table, game, first, second, False, low - 1, low)
    if least >= low:
        return PROVEN
    # Worth more by what is proven, then by what is possible.
    return 10 * least + most


@kernel
def best_action(memory, table, game, preferred, node_limit):
    """An action that keeps the value of an exhausted position, and whether that is proven.

    The preferred action is taken if it is as good as any other. At the node limit it is an action
    that keeps as much as is proven, for which as many nodes are spent again.
    """
    forget(memory)
    low, high = position_bounds(memory, table, game, False, node_limit)
    if low < high:
        memory[NODES] = ZERO
    player = np.int64(game["to_move"])
    hand = game["hand"][player]
    best = np.int64(-1000)
    picked = np.int64(preferred)
    rest = game["legal"] & ~bit(preferred)
    action = np.int64(preferred)
    while True:
        quality = np.int64(-1000)
        if game["phase"] == DISCARD:
            quality = move_quality(memory, table, game, action, NO_CARD, low)
        elif game["phase"] == LEFT:
            seconds = right_cards(table, hand, game["table"][0], game["table"][1], action)
            while seconds and quality < PROVEN:
                second = lowest_bit(seconds)
                seconds &= seconds - ONE
                quality = max(quality, move_quality(memory, table, game, action, second, low))
        else:
            quality = move_quality(memory, table, game, game["chosen"], action, low)
        if quality > best:
            best = quality
            picked = action
        if not rest or best == PROVEN:
            return picked, low == high and best == PROVEN
        action = lowest_bit(rest)
        rest &= rest - ONE


@kernel
def best_actions(memory, tables, games, node_limit, actions):
    """Improves the actions of exhausted games; returns how many are not proven to be best."""
    unproven = 0
    for i in range(games.size):
        if games[i]["legal"] & (games[i]["legal"] - ONE) == 0:
            continue  # nothing to choose
        action, proven = best_action(memory, tables[0], games[i], actions[i], node_limit)
        actions[i] = action
        unproven += not proven
    return unproven


class Exact:
    """Plays as another player until the stock runs out, and perfectly from then on.

    After exhaustion nothing is hidden (E3), so the position is solved. Where several moves keep its
    value, the other player's choice is taken if it is among them. When the node limit runs out, the
    best move by what is proven so far is taken, and counted. Every decision is searched from an
    empty table, so that it follows from the view and the other player's choice alone.

    Args:
        agent: The other player, or its text.
        nodes: Positions to look at to solve one decision, at most; where that is not enough, as
            many again to choose by what is proven.

    Attributes:
        decisions: Decisions made after exhaustion so far.
        unproven: How many of them the node limit left unproven.

    Raises:
        ValueError: ``nodes`` is not a positive int.
    """

    def __init__(self, agent: Agent | str, nodes: int = NODE_LIMIT) -> None:
        if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 1:
            raise ValueError(f"nodes must be a positive int, got {nodes!r}")
        self.agent = as_agent(agent)
        self.nodes = nodes
        limit = "" if nodes == NODE_LIMIT else f":nodes={nodes}"
        self.name = f"{self.agent.name}+exact{limit}"
        self.decisions = 0
        self.unproven = 0
        self._workspace = Workspace()

    def act(self, views: ViewBatch) -> np.ndarray:
        """Chooses for the mover of every row.

        Args:
            views: What each mover knows.

        Returns:
            (B,) int64, a legal action for each row.
        """
        return self._improve(views, self.agent.act(views), {})

    def act_or_fault(self, views: ViewBatch) -> tuple[np.ndarray, dict[int, str]]:
        """Chooses as :meth:`act` does; a row that the other player gives up stays given up.

        Args:
            views: What each mover knows.

        Returns:
            (B,) int64, a legal action for each row that is not given up, and the reason for each
            row that is.
        """
        actions, faults = decide(self.agent, views)
        return self._improve(views, actions, faults), faults

    def close(self) -> None:
        """Closes the other player."""
        close_agent(self.agent)

    def _improve(self, views: ViewBatch, answer: np.ndarray, faults: dict[int, str]) -> np.ndarray:
        """The answer with perfect endings in the rows that are not given up."""
        given = np.asarray(answer)
        if given.dtype.kind not in "iu":
            raise IllegalActionError(f"{self.agent.name} must answer with ints, got {given.dtype}")
        actions = given.astype(np.int64)
        exhausted = views.records["stock_size"] == 0
        exhausted[list(faults)] = False
        rows = np.flatnonzero(exhausted)
        if rows.size:
            chosen = actions[rows]
            self.unproven += best_actions(
                self._workspace.memory,
                rule_table(views.rules),
                views.records[rows],
                self.nodes,
                chosen,
            )
            self.decisions += rows.size
            actions[rows] = chosen
        return actions
