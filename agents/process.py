"""A bot in any language: ``make_agent("exec:./mybot")``. docs/bots.md describes the lines."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from agents.agent import ViewBatch
from agents.program import Program, ProgramError
from agents.protocol import HELLO, ProtocolError, decision_request, read_action, read_hello

__all__ = ["Process", "ProcessError"]

SECONDS: Final = 5.0
START_SECONDS: Final = 30.0
#: Faults in a row after which a bot is not started again: a silent one would hold up every game of
#: a match for its full time.
PATIENCE: Final = 10


class ProcessError(RuntimeError):
    """A bot gave no legal action where there was no game to give up."""


class Process:
    """A player whose moves come from another program, over its standard input and output.

    The program is started when it is first asked. Whatever it does wrong (a crash, silence, endless
    or bad output, an illegal action), it is killed with all that it started, the decision is a
    fault, and a fresh one is started for the next decision. After 10 faults in a row it is not
    started again.

    Args:
        command: The program and its arguments, as a POSIX shell would split them; no shell runs.
        seconds: Time for one move.
        start_seconds: Time from the start to the answer to the first line.

    Attributes:
        name: ``"exec:"`` and the command, with the times that are not the usual ones.

    Raises:
        ValueError: The command cannot be split or names no program, a time is not a positive
            number, or this system has no process groups (Windows).
    """

    #: ``make_agent`` hands over what follows ``exec:`` as it stands.
    takes_text: Final = True

    def __init__(
        self, command: str, seconds: float = SECONDS, start_seconds: float = START_SECONDS
    ) -> None:
        if os.name != "posix":
            raise ValueError(f"exec needs the process groups of POSIX, which {os.name} lacks")
        self._command = _split(command)
        self._folder = os.getcwd()
        times = {"seconds": (seconds, SECONDS), "start_seconds": (start_seconds, START_SECONDS)}
        changed = ""
        for option, (value, usual) in times.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValueError(f"{option} must be a number, got {value!r}")
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{option} must be more than 0 and finite, got {value!r}")
            changed += f",{option}={value:g}" if value != usual else ""
        self.name = (
            f"exec:command={command.strip()}{changed}" if changed else f"exec:{command.strip()}"
        )
        self._arguments = command, seconds, start_seconds
        self._seconds = float(seconds)
        self._start_seconds = float(start_seconds)
        self._program: Program | None = None
        self._end: Callable[[], Any] | None = None
        self._faults_in_a_row = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process starts a program of its own."""
        return Process, self._arguments

    def act(self, views: ViewBatch) -> np.ndarray:
        """Chooses for the mover of every row.

        Args:
            views: What each mover knows.

        Returns:
            (B,) int64, a legal action for each row.

        Raises:
            ProcessError: The bot gave none in some row; the message has the reason.
        """
        actions, faults = self.act_or_fault(views)
        for row, reason in faults.items():
            raise ProcessError(f"{self.name!r} gave no legal action (row {row}): {reason}")
        return actions

    def act_or_fault(self, views: ViewBatch) -> tuple[np.ndarray, dict[int, str]]:
        """Chooses for the mover of every row, or gives up the row's game.

        Args:
            views: What each mover knows.

        Returns:
            (B,) int64 actions, and the reason for each row that is given up; the action there
            means nothing.
        """
        actions = np.zeros(len(views), np.int64)
        faults: dict[int, str] = {}
        for row in range(len(views)):
            try:
                actions[row] = self._decide(views, row)
            except (ProgramError, ProtocolError) as error:
                faults[row] = str(error)
        return actions, faults

    def close(self) -> None:
        """Ends the program, if it runs. The next decision starts another."""
        if self._end is not None:
            self._end()
        self._program = self._end = None

    def _decide(self, views: ViewBatch, row: int) -> int:
        request = decision_request(views[row], int(views.random_bits[row]))
        if self._faults_in_a_row >= PATIENCE:
            raise ProgramError(f"not asked any more after {PATIENCE} faults in a row")
        try:
            program = self._running()
            action = read_action(_ask(program, request, self._seconds), request, views.rules)
        except BaseException as error:  # an interrupt, too, leaves an answer unread
            self.close()
            self._faults_in_a_row += isinstance(error, (ProgramError, ProtocolError))
            raise
        self._faults_in_a_row = 0
        return action

    def _running(self) -> Program:
        """The program, started and greeted if need be."""
        if self._program is None or not self._program.usable:
            program = Program(self._command, self._folder)
            # Also at the end of this object and of the interpreter.
            self._end = weakref.finalize(self, program.end)
            self._program = program
            try:
                read_hello(_ask(program, HELLO, self._start_seconds))
            except (ProgramError, ProtocolError) as error:
                raise type(error)(f"at its start: {error}") from error
        return self._program


def _split(command: str) -> list[str]:
    """The words of a command whose first is a program.

    Raises:
        ValueError: They are not.
    """
    if not isinstance(command, str):
        raise ValueError(f"a command must be a str, got {command!r}")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"bad command {command!r}: {error}") from None
    if not words or shutil.which(words[0]) is None:
        program = words[0] if words else ""
        raise ValueError(
            f"no program {program!r} in command {command!r}: not found, or may not be executed"
        )
    return words


def _ask(program: Program, message: dict[str, Any], seconds: float) -> bytes:
    line = json.dumps(message, separators=(",", ":")) + "\n"
    return program.ask(line.encode("ascii"), seconds)
