"""Blunders: decisions after exhaustion that gave away value, and which player made them.

From exhaustion on nothing is hidden (E3), so every position has an exact value, and a move either
keeps it or gives some of it away.

A *decision* here is a whole turn after exhaustion in which the mover has more than one move to
choose from: a couple (which card covers which counts, so the two cards the other way round are
another one, if legal), or with ``blocked="discard"`` a card to lay away. It is a *blunder* if the
result that perfect play reaches after it (F3: win, draw or loss) is worse for the mover than
before. So a lost position has decisions, but no blunders. Where the node limit leaves open which of
the two it is, the turn is *unproven* and not counted among the decisions.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

from counterweight_env.cards import rule_table
from counterweight_env.endgame import Workspace, forget, move_bounds, position_bounds
from counterweight_env.game import Game, GameBatch
from counterweight_env.kernels import (
    DISCARD,
    LEFT,
    NO_CARD,
    ONE,
    RIGHT,
    STATE,
    ZERO,
    bit,
    count_bits,
    kernel,
    lowest_bit,
    right_cards,
)
from counterweight_env.settle import TABLE_SIZE

__all__ = ["BLUNDER_NODES", "BlunderWatch", "Verdict", "blunders"]

#: Positions to look at for one turn, at most.
BLUNDER_NODES: Final = 1_000_000


class Verdict(IntEnum):
    """What a turn was."""

    #: Before exhaustion, after the end, or with one move only.
    NO_DECISION = 0
    #: A decision that kept the value.
    KEPT = 1
    #: A decision that gave away value.
    BLUNDER = 2
    #: A decision that the node limit left open.
    UNPROVEN = 3


NO_DECISION: Final = int(Verdict.NO_DECISION)
KEPT: Final = int(Verdict.KEPT)
GAVE_AWAY: Final = int(Verdict.BLUNDER)
UNPROVEN: Final = int(Verdict.UNPROVEN)
NO_TURN: Final = -1


@kernel
def has_choice(table, game):
    """Whether the mover, at the start of a turn, has more than one move."""
    legal = game["legal"]
    if legal & (legal - ONE):
        return True
    if game["phase"] == DISCARD:
        return False
    hand = game["hand"][np.int64(game["to_move"])]
    left = game["table"][0]
    right = game["table"][1]
    return count_bits(right_cards(table, hand, left, right, lowest_bit(legal))) > 1


@kernel
def move_between(table, before, after):
    """The couple, or the card and NO_CARD, that a turn after exhaustion has used.

    Both are NO_CARD if `after` does not come of `before` in one turn.
    """
    none = np.int64(NO_CARD)
    player = np.int64(before["to_move"])
    hand = before["hand"][player]
    left = before["table"][0]
    right = before["table"][1]
    gone = hand & ~after["hand"][player]
    kept = hand & ~gone
    if after["hand"][player] != kept or after["hand"][1 - player] != before["hand"][1 - player]:
        return none, none
    if before["phase"] == DISCARD:
        same = after["table"][0] == left and after["table"][1] == right
        if not same or count_bits(gone) != 1:
            return none, none
        return lowest_bit(gone), none
    first = np.int64(after["table"][0])
    second = np.int64(after["table"][1])
    if first == second or gone != bit(first) | bit(second):
        return none, none
    if right_cards(table, hand, left, right, first) & bit(second) == ZERO:
        return none, none
    return first, second


@kernel
def judge_turn(memory, table, before, after, node_limit):
    """The verdict on one turn; NO_TURN if `after` does not come of `before` in one."""
    if before["stock_size"] > 0 or (before["phase"] != LEFT and before["phase"] != DISCARD):
        return NO_DECISION
    first, second = move_between(table, before, after)
    if first == NO_CARD:
        return NO_TURN
    if not has_choice(table, before):
        return NO_DECISION
    forget(memory)
    low, high = position_bounds(memory, table, before, False, node_limit)
    if high == -1:
        return KEPT  # there was nothing to lose
    least, most = move_bounds(memory, table, before, first, second, False, low - 1, high)
    if least >= high:
        return KEPT
    if most < low:
        return GAVE_AWAY
    return UNPROVEN


@kernel
def judge_turns(memory, tables, before, rows, after, after_rows, node_limit, verdicts):
    """Judges the turns from some rows of `before` to some rows of `after`."""
    for i in range(rows.size):
        verdicts[i] = judge_turn(
            memory, tables[0], before[rows[i]], after[after_rows[i]], node_limit
        )


def blunders(
    before: GameBatch | Game, after: GameBatch | Game, nodes: int = BLUNDER_NODES
) -> np.ndarray:
    """Judges one turn of each of many games.

    Args:
        before: Games at the start of a turn. Those that are not exhausted, or in the middle of a
            couple, have no decision to judge.
        after: The same games one whole turn later.
        nodes: Positions to look at for one turn, at most.

    Returns:
        (B,) int8, the number of a :class:`Verdict` for each row.

    Raises:
        TypeError: An argument is neither a :class:`GameBatch` nor a :class:`Game`.
        ValueError: The rules or the numbers of games differ, ``nodes`` is not a positive int, or a
            game after is not the game before with one turn made; the message names the row.
    """
    earlier, later = _states(before, "before"), _states(after, "after")
    if before.rules != after.rules:
        raise ValueError(f"before has the rules {before.rules}, after {after.rules}")
    if len(earlier) != len(later):
        raise ValueError(f"before has {len(earlier)} games, after {len(later)}")
    if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 1:
        raise ValueError(f"nodes must be a positive int, got {nodes!r}")
    verdicts = np.empty(len(earlier), np.int8)
    rows = np.arange(len(earlier))
    memory = Workspace(TABLE_SIZE).memory
    judge_turns(memory, rule_table(before.rules), earlier, rows, later, rows, nodes, verdicts)
    wrong = np.flatnonzero(verdicts == NO_TURN)
    if wrong.size:
        raise ValueError(f"row {wrong[0]}: the game after is not one turn after the game before")
    return verdicts


def _states(games: GameBatch | Game, name: str) -> np.ndarray:
    if isinstance(games, GameBatch):
        return games.state
    if isinstance(games, Game):
        return games._state
    raise TypeError(f"{name} must be a GameBatch or a Game, got {games!r}")


class BlunderWatch:
    """Judges the turns of a batch while it is played: call :meth:`before` and :meth:`after`.

    Args:
        games: The batch, which the watch does not change.
        nodes: Positions to look at for one turn, at most.

    Attributes:
        verdicts: (B, 2, 4) int64, how many turns of each game and seat had which :class:`Verdict`;
            those without a decision are not counted.
    """

    def __init__(self, games: GameBatch, nodes: int = BLUNDER_NODES) -> None:
        self._games = games
        self._nodes = nodes
        self._started = np.zeros(len(games), STATE)
        self._watched = np.zeros(len(games), np.bool_)
        self._memory = Workspace(TABLE_SIZE).memory
        self.verdicts = np.zeros((len(games), 2, len(Verdict)), np.int64)

    def before(self, rows: np.ndarray) -> None:
        """Remembers which of the given games, about to move, are at a turn to judge."""
        state = self._games.state
        phase = state["phase"][rows]
        starts = (state["stock_size"][rows] == 0) & ((phase == LEFT) | (phase == DISCARD))
        picked = rows[starts]
        self._started[picked] = state[picked]
        self._watched[picked] = True

    def after(self, rows: np.ndarray) -> None:
        """Judges the turns that the given games, having moved, have ended."""
        state = self._games.state
        ended = rows[self._watched[rows] & (state["phase"][rows] != RIGHT)]
        if ended.size == 0:
            return
        verdicts = np.empty(ended.size, np.int8)
        judge_turns(
            self._memory,
            rule_table(self._games.rules),
            self._started,
            ended,
            state,
            ended,
            self._nodes,
            verdicts,
        )
        self._watched[ended] = False
        seats = self._started["to_move"][ended]
        decided = verdicts != NO_DECISION
        np.add.at(self.verdicts, (ended[decided], seats[decided], verdicts[decided]), 1)
