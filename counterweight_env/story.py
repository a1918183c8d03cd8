"""A recorded game turn by turn: what was done, what it leads to, and whether it was right.

From exhaustion on nothing is hidden (E3), so the solver can say of every turn whether it kept the
value of the position for its player.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from counterweight_env.endgame import solve, value_bounds
from counterweight_env.game import Game
from counterweight_env.phase import Phase
from counterweight_env.picture import table_picture
from counterweight_env.record import GameRecord, replay
from counterweight_env.render import card_label
from counterweight_env.rules import Rules
from counterweight_env.scene import NAMES, scene_of, status
from counterweight_env.shapes import Picture

__all__ = ["STORY_NODES", "Step", "Verdict", "judge", "story", "story_pictures"]

#: Positions to look at for one turn, at most.
STORY_NODES: Final = 2_000_000

RESULTS: Final = {1: "win", 0: "draw", -1: "loss"}

Move = tuple[int, ...]


@dataclass(frozen=True)
class Verdict:
    """What the solver says of one turn after exhaustion.

    Attributes:
        before: What perfect play reaches for the turn's player: 1, 0 or -1; None if it was not
            found out.
        after: What it reaches after the turn, for the same player; None if it was not found out.
        kept: Whether the turn kept the value; None if it was not found out.
        moves: How many moves there were to choose from.
        best: Those found to keep the value, each a couple (left, right) or the card laid away.
    """

    before: int | None
    after: int | None
    kept: bool | None
    moves: int
    best: tuple[Move, ...]

    def __str__(self) -> str:
        if self.kept is None:
            return "not solved"
        assert self.before is not None
        if self.moves == 1:
            return f"the only move, a {RESULTS[self.before]}"
        if self.before == -1:
            return "lost whatever the move"
        if self.kept:
            return f"keeps the {RESULTS[self.before]}"
        gone = f"gives away the {RESULTS[self.before]}"
        return gone if self.after is None else f"{gone} for a {RESULTS[self.after]}"


@dataclass(frozen=True)
class Step:
    """A position of a game and how it came about.

    Attributes:
        game: The position: the deal, or the one after a turn.
        player: Who made the turn; None for the deal.
        text: What happened, in one sentence or a few.
        verdict: The solver's, for a turn that began after exhaustion; otherwise None.
    """

    game: Game
    player: int | None
    text: str
    verdict: Verdict | None


def story(record: GameRecord, node_limit: int = STORY_NODES) -> list[Step]:
    """Plays a record again and tells it turn by turn.

    Args:
        record: The game.
        node_limit: Positions to look at for one turn, at most.

    Returns:
        The deal, then one step a turn; a game given up in the middle of a turn ends there.

    Raises:
        RecordError: The record is wrong.
        ValueError: ``node_limit`` is negative or no int.
    """
    start = record.deal()
    steps = [Step(start, None, f"The deal. {status(scene_of(start))}.", None)]
    actions: list[int] = []
    for game, action in zip(replay(record), record.actions, strict=True):
        actions.append(action)
        if game.turn == start.turn and not game.done:
            continue
        steps.append(_step(start, actions, game.copy(), node_limit))
        start, actions = steps[-1].game, []
    if record.fault is not None:
        game = start.copy()
        for action in actions:
            game.step(action)
        player, reason = record.fault.player, record.fault.reason
        text = f"{NAMES[player]} gave the game up: {reason}"
        steps.append(Step(game, player, text, None))
    return steps


def story_pictures(record: GameRecord, steps: Sequence[Step]) -> list[Picture]:
    """A picture of each step, all cards open, with what happened and the verdict."""
    pictures = []
    before = None
    for step in steps:
        remark = "" if step.verdict is None else str(step.verdict)
        pictures.append(table_picture(step.game, before, record.players, step.text, remark))
        before = step.game
    return pictures


def _step(start: Game, actions: Sequence[int], after: Game, node_limit: int) -> Step:
    player = start.to_move
    verdict = None
    if start.exhausted:
        verdict = judge(start, tuple(actions), after, node_limit)
    return Step(after, player, _tell(start, actions), verdict)


# --- Words --------------------------------------------------------------------------------------


def _tell(start: Game, actions: Sequence[int]) -> str:
    """A turn in words, all cards open."""
    game = start.copy()
    rules = game.rules
    mover = game.to_move
    parts: list[str] = []
    drawn: list[int] = []
    for action in actions:
        before = game.copy()
        game.step(action)
        if before.phase == Phase.RIGHT:
            assert before.chosen is not None
            pairs = zip((before.chosen, action), before.table, strict=True)
            laid = [f"{card_label(card, rules)} on {card_label(on, rules)}" for card, on in pairs]
            parts.append("laid " + " and ".join(laid))
        elif before.phase == Phase.DISCARD:
            how = "out of play" if before.exhausted else "on the discard"
            parts.append(f"had no couple, laid {card_label(action, rules)} {how}")
        elif action == rules.reclaim_action:
            parts.append(f"took {card_label(before.discard(mover)[-1], rules)} back")
        drawn += before.stock[: before.stock_size - game.stock_size]
    if drawn:
        parts.append(f"drew {_labels(drawn, rules)}")
    text = f"{NAMES[mover]} {', '.join(parts)}."
    if game.exhausted and not start.exhausted:
        text += " The stock has run out."
    if game.exhausted and game.to_move == mover:
        text += f" {NAMES[1 - mover]} passes."
    return text


def _labels(cards: Sequence[int], rules: Rules) -> str:
    return " ".join(card_label(card, rules) for card in cards)


# --- Verdicts -----------------------------------------------------------------------------------


def judge(start: Game, move: Move, after: Game, node_limit: int = STORY_NODES) -> Verdict:
    """What the solver says of one turn.

    Args:
        start: An exhausted game at the start of a turn.
        move: The couple (left, right), or the one card laid away.
        after: The game after the turn.
        node_limit: Positions to look at, at most, before the turn and after it.

    Raises:
        ValueError: ``start`` is not exhausted or over, or ``node_limit`` is bad.
    """
    solution = solve(start, node_limit)
    moves = _count_moves(start)
    best = tuple(solution.best)
    if solution.value is None:
        return Verdict(None, None, None, moves, best)
    if move in best:
        return Verdict(solution.value, solution.value, True, moves, best)
    reached = _value_after(after, start.to_move, node_limit)
    if reached is not None:
        return Verdict(solution.value, reached, reached == solution.value, moves, best)
    return Verdict(solution.value, None, False if solution.proven else None, moves, best)


def _count_moves(start: Game) -> int:
    if start.phase == Phase.DISCARD:
        return len(start.legal_actions())
    total = 0
    for first in start.legal_actions():
        tried = start.copy()
        tried.step(first)
        total += len(tried.legal_actions())
    return total


def _value_after(after: Game, player: int, node_limit: int) -> int | None:
    if after.done:
        return int(after.returns[player])
    low, high = value_bounds(after, node_limit)
    if low < high:
        return None
    return low if after.to_move == player else -low
