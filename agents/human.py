"""A person at a terminal against any agent: ``counterweight play``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from agents.agent import Agent, decide
from agents.narrate import YOU, card_labels, count_cards, describe_turn
from counterweight_env.cards import parse_action
from counterweight_env.endgame import value_bounds
from counterweight_env.game import Game, GameBatch
from counterweight_env.phase import Phase
from counterweight_env.record import Fault, GameRecord
from counterweight_env.render import action_label, card_label
from counterweight_env.rules import Rules
from counterweight_env.view import View

__all__ = ["TerminalGame"]

HELP: Final = """\
  a card     9S, 10d or th: lay it where the question says; [brackets] mark the legal ones
  S  R       refill from the stock, or with the top of your discard (reclaim)
  undo       take back your last choice, while the turn goes on and you have drawn no card since
  hint       how good each choice looks; after the stock has run out, how good it is
  help       this list
  quit       give the game up (so do Ctrl-C and the end of the input)
Two cards make a couple if they go, one each, on the two table cards (docs/rules.md):
  the same ranks as the table cards; or the same suits, one card higher and the other lower.
  Exchange rules too: two of one rank that lies between the table's ranks, or any two of one
  rank where the table's ranks are equal."""
#: What is known of a move, by the least and the most that it reaches.
VALUE_NAMES: Final = {
    (1, 1): "win",
    (0, 1): "win or draw",
    (0, 0): "draw",
    (-1, 1): "not solved",
    (-1, 0): "draw or loss",
    (-1, -1): "loss",
}
#: Positions looked at to solve one move, at most; nearly all need far fewer.
HINT_NODES: Final = 300_000


class TerminalGame:
    """One game between a person, who reads and writes lines, and an agent.

    The person sees what their player may know, and the whole position when the game is over.

    Args:
        games: A batch of one game as dealt, from whose streams the opponent's chance comes too. It
            is left as it is.
        seat: The person's player, 0 or 1.
        opponent: The other player.
        hints: Gives the hints before exhaustion; called when the first is wanted.
        always_hint: Whether to show a hint at every decision.
        read: Asks for a line, as ``input`` does: EOFError or KeyboardInterrupt gives up.
        write: Shows some lines, as ``print`` does.

    Raises:
        ValueError: There is not exactly one game, or the seat is none.
    """

    def __init__(
        self,
        games: GameBatch,
        seat: int,
        opponent: Agent,
        hints: Callable[[], Agent],
        always_hint: bool = False,
        read: Callable[[str], str] = input,
        write: Callable[[str], None] = print,
    ) -> None:
        if len(games) != 1:
            raise ValueError(f"games must hold one game, got {len(games)}")
        if seat not in (0, 1):
            raise ValueError(f"seat must be 0 or 1, got {seat!r}")
        self.seat = seat
        self.opponent = opponent
        self._names = (YOU, opponent.name) if seat == 0 else (opponent.name, YOU)
        self._hints = hints
        self._adviser: Agent | None = None
        self._always_hint = always_hint
        self._read = read
        self._write = write
        self._start = games[0]
        self._games = games.copy()
        self._actions: list[int] = []
        #: The positions within this turn that the person may go back to.
        self._past: list[tuple[GameBatch, int]] = []
        self._turn_start: tuple[Game, int] = (self._start, 0)
        self._fault: Fault | None = None

    @property
    def game(self) -> Game:
        """The game as it stands, as a copy."""
        return self._games[0]

    def play(self) -> None:
        """Plays the game to its end, or until somebody gives it up."""
        try:
            self._write(self._opening())
            while not self._games.done[0] and self._fault is None:
                if self.game.to_move == self.seat:
                    self._ask()
                else:
                    self._let_opponent_move()
        except (EOFError, KeyboardInterrupt):
            self._write("")
            # Only the player on turn can give up; an interrupt of the opponent's turn ends no more
            # than the program.
            if self.game.to_move == self.seat:
                self._fault = Fault(self.seat, "quit")
        self._write(self._closing())

    def record(self) -> GameRecord | None:
        """The record, or None if the game was broken off while the opponent was on turn."""
        game, start = self.game, self._start
        if not game.done and self._fault is None:
            return None
        returns = game.returns
        if self._fault is not None:
            returns = (-1.0, 1.0) if self._fault.player == 0 else (1.0, -1.0)
        return GameRecord(
            rules=str(game.rules),
            dealer=start.dealer,
            players=("human", self.opponent.name)
            if self.seat == 0
            else (self.opponent.name, "human"),
            deck=start.hand(0) + start.hand(1) + start.table + start.stock,
            actions=tuple(self._actions),
            returns=returns,
            fault=self._fault,
        )

    # --- Moving ---------------------------------------------------------------------------------

    def _step(self, action: int) -> None:
        before = self.game
        self._games.step(np.array([action]))
        self._actions.append(action)
        after = self.game
        if after.turn != before.turn or after.done:
            start, first = self._turn_start
            for sentence in describe_turn(start, self._actions[first:], self.seat, self._names):
                self._write(f"  {sentence}")
            self._turn_start = after, len(self._actions)
        if after.turn != before.turn or after.done or after.stock_size != before.stock_size:
            self._past.clear()

    def _let_opponent_move(self) -> None:
        actions, faults = decide(self.opponent, self._games.views())
        if faults:
            self._fault = Fault(1 - self.seat, faults[0])
        else:
            self._step(int(actions[0]))

    def _ask(self) -> None:
        """Asks the person until they have chosen or given up."""
        game = self.game
        view = game.view(self.seat)
        if not self._past and game.phase in (Phase.LEFT, Phase.DISCARD):
            self._write("\n" + _screen(view, self.opponent.name))
        elif game.phase == Phase.REFILL:
            self._write(f"  your hand: {_hand(view)}")
        if self._always_hint:
            self._show_hint()
        while True:
            word = self._read(f"{_question(view)} ").strip().lower()
            if word == "undo":
                if self._undo():
                    return
            elif word == "hint":
                self._show_hint()
            elif word == "help":
                self._write(HELP)
            elif word == "quit":
                self._fault = Fault(self.seat, "quit")
                return
            else:
                action = self._read_action(word, view)
                if action is not None:
                    self._past.append((self._games.copy(), len(self._actions)))
                    self._step(action)
                    return

    def _read_action(self, word: str, view: View) -> int | None:
        """The legal action that a word means; says what is wrong if there is none."""
        try:
            action = parse_action({"s": "STOCK", "r": "RECLAIM"}.get(word, word), view.rules)
        except ValueError:
            self._write(f"  {word!r} is no card and no command; help lists what there is.")
            return None
        if view.legal_mask[action]:
            return action
        label = action_label(action, view.rules)
        fitting = " ".join(action_label(int(a), view.rules) for a in view.legal_mask.nonzero()[0])
        self._write(f"  {label} is not possible here; possible: {fitting}")
        return None

    def _undo(self) -> bool:
        if not self._past:
            self._write(
                "  Nothing to take back: the turn has just begun, or you have drawn a card."
            )
            return False
        self._games, length = self._past.pop()
        del self._actions[length:]
        return True

    # --- Hints ----------------------------------------------------------------------------------

    def _show_hint(self) -> None:
        game = self.game
        try:
            lines = _exact_hint(game) if game.exhausted else self._searched_hint()
        except ValueError as error:
            lines = [f"no hint: {error}"]
        for line in lines:
            self._write(f"  {line}")

    def _searched_hint(self) -> list[str]:
        """What the adviser expects of each action, best first."""
        if self._adviser is None:
            self._adviser = self._hints()
        values = getattr(self._adviser, "values", None)
        if values is None:
            raise ValueError(f"agent {self._adviser.name!r} does not value moves")
        # A copy's words, so that asking for a hint leaves the opponent's chance alone.
        views = self._games.copy().views()
        row = np.asarray(values(views))[0]
        legal = views.legal[0].nonzero()[0]
        ranked = sorted(legal, key=lambda action: -row[action])
        expected = "  ".join(
            f"{action_label(int(action), views.rules)} {row[action]:+.2f}" for action in ranked
        )
        return [f"{self._adviser.name} expects (+1 a win, -1 a loss): {expected}"]

    # --- Text -----------------------------------------------------------------------------------

    def _opening(self) -> str:
        you_begin = self._start.dealer != self.seat
        return (
            f"Counterweight, {self._start.rules}: you are player_{self.seat} against "
            f"{self.opponent.name}.\n{'You move' if you_begin else f'{self.opponent.name} moves'} "
            "first. Type help for the commands."
        )

    def _closing(self) -> str:
        game = self.game
        if self._fault is not None and self._fault.player == self.seat:
            return f"You gave the game up; {self.opponent.name} wins."
        if self._fault is not None:
            result = f"{self.opponent.name} gave the game up ({self._fault.reason}). You win"
        elif not game.done:
            return "Broken off."
        else:
            result = {1.0: "You win", 0.0: "A draw", -1.0: "You lose"}[game.returns[self.seat]]
        mine, theirs = len(game.hand(self.seat)), len(game.hand(1 - self.seat))
        return f"\n{game}\n\n{result}: you hold {count_cards(mine)}, {self.opponent.name} {theirs}."


def _screen(view: View, opponent: str) -> str:
    """What the person sees before they choose."""
    rules = view.rules
    left, right = (card_label(card, rules) for card in view.table)
    known = view.known_in_opponent_hand
    about = count_cards(view.opponent_hand_size)
    if known:
        about += f", {'all' if view.exhausted else 'among them'}: {card_labels(known, rules)}"
    if view.opponent_blocked:
        about += ", no couple on this table at their last turn"
    rows = [("opponent", f"{opponent}, {about}")]
    if not view.exhausted:
        size = view.opponent_discard_size
        theirs = _pile(view.opponent_discard, size, rules)
        rows.append(("their discard", theirs))
    rows.append(("table", f"[ {left} ] [ {right} ]"))
    if not view.exhausted:
        rows.append(("your discard", _pile(view.own_discard, len(view.own_discard), rules)))
    rows.append((f"your {count_cards(len(view.hand))}", _hand(view)))
    counts = f"turn {view.turn + 1} | stock {view.stock_size} | buried {len(view.buried)}"
    return "\n".join([f"--- {counts} ---", *(f"{name:>14}: {text}" for name, text in rows)])


def _pile(cards: tuple[int, ...], size: int, rules: Rules) -> str:
    """A discard, its top last."""
    if size == 0:
        return "empty"
    if not cards:
        return f"{size} face down"
    return f"{size}, top last: {card_labels(cards, rules)}"


def _hand(view: View) -> str:
    """The person's hand by suits, legal cards in brackets."""
    legal = view.legal_mask
    suits: dict[int, list[str]] = {}
    for card in view.hand:
        label = card_label(card, view.rules)
        suits.setdefault(card // view.rules.ranks, []).append(
            f"[{label}]" if legal[card] else label
        )
    return "   ".join(" ".join(labels) for labels in suits.values()) or "empty"


def _question(view: View) -> str:
    rules = view.rules
    left, right = (card_label(card, rules) for card in view.table)
    if view.phase == Phase.LEFT:
        return f"Which card on the left one, {left}?"
    if view.phase == Phase.RIGHT:
        assert view.chosen is not None
        fitting = " ".join(action_label(int(a), rules) for a in view.legal_mask.nonzero()[0])
        chosen = card_label(view.chosen, rules)
        return f"{chosen} goes on {left}. Which card on the right one, {right} ({fitting})?"
    if view.phase == Phase.DISCARD:
        where = "out of play" if view.exhausted else "on your discard"
        return f"No couple fits. Which card do you lay {where}?"
    top = card_label(view.own_discard[-1], rules)
    which = "second" if view.second_refill else "next"
    return f"Where does the {which} card come from: S stock, R reclaim {top}?"


def _exact_hint(game: Game) -> list[str]:
    """Every move by what perfect play makes of it, the best first."""
    names: dict[tuple[int, int], list[str]] = {}
    for move, after in _moves(game):
        text = " + ".join(card_label(card, game.rules) for card in move)
        names.setdefault(_bounds(after, game.to_move), []).append(text)
    return [f"{VALUE_NAMES[bounds]}: {', '.join(names[bounds])}" for bounds in sorted(names)[::-1]]


def _moves(game: Game) -> Iterator[tuple[tuple[int, ...], Game]]:
    """The moves that end the turn of an exhausted game, and the game after each."""
    for action in game.legal_actions():
        after = game.copy()
        after.step(action)
        if game.phase == Phase.LEFT:
            yield from _moves(after)
        else:
            first = () if game.chosen is None else (game.chosen,)
            yield (*first, action), after


def _bounds(game: Game, player: int) -> tuple[int, int]:
    """The least and the most that a player reaches, as far as the node limit lets it be known."""
    if game.done:
        return (int(game.returns[player]),) * 2
    low, high = value_bounds(game, HINT_NODES)
    return (low, high) if game.to_move == player else (-high, -low)
