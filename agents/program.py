"""A program that answers lines with lines, kept on a short lead.

Whatever the program does, asking it ends in time with an answer or with a :class:`ProgramError`,
and ending it leaves no process behind.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["ANSWER_LIMIT", "Program", "ProgramError"]

#: Bytes of an answer, at most, the end of its line included.
ANSWER_LIMIT: Final = 4_096
CHUNK: Final = 65_536
#: What is kept of the program's error output, and what a message quotes of it.
TAIL: Final = 4_096
QUOTED: Final = 300
#: Seconds between two looks at whether a silent program still lives.
LOOK: Final = 0.05
#: Seconds that a program has to end by itself once its output is closed, before it is killed.
FAREWELL: Final = 0.2
#: Seconds that ending goes on looking for children that left the group, at most.
PURSUIT: Final = 2.0
#: Seconds that it waits for a process to show whether it is one of them, at most.
STARTING: Final = 0.2
#: The parent of all threads of the kernel.
KERNEL_THREADS: Final = b"2"


class ProgramError(Exception):
    """A program gave no answer; the message is the reason."""


class Program:
    """A running program with pipes to its three streams, in a session of its own.

    Args:
        command: The program and its arguments.
        folder: Where it runs.

    Raises:
        ProgramError: It cannot be started.
    """

    def __init__(self, command: Sequence[str], folder: str) -> None:
        # Children inherit the environment, so this variable tells them even where they have left
        # the session. Its name is fresh: a program may run programs of this kind itself.
        self._mark = f"COUNTERWEIGHT_PROGRAM_{uuid.uuid4().hex}"
        self._owner = os.getpid()
        self._tail = b""
        self._output = bytearray()
        try:
            self._process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env={**os.environ, self._mark: "1"},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ProgramError(f"the program cannot be started: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._stdin, self._stdout, self._stderr = (pipe.fileno() for pipe in self._pipes)
        for descriptor in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(descriptor, False)

    @property
    def usable(self) -> bool:
        """Whether this process started the program; after a fork the child must not use it."""
        return self._owner == os.getpid()

    def ask(self, line: bytes, seconds: float) -> bytes:
        """Sends one line and reads one, both within ``seconds``.

        Args:
            line: What to send, with the end of the line.
            seconds: How long sending and answering may take together.

        Returns:
            The answer without the end of the line, at most ``ANSWER_LIMIT`` bytes.

        Raises:
            ProgramError: There is no answer, or more than one line.
        """
        self._read_output()
        if self._output:
            raise ProgramError(f"output that nothing asked for: {_quote(self._output)}")
        end = time.monotonic() + seconds
        unsent = memoryview(line)
        with selectors.PollSelector() as selector:
            selector.register(self._stdin, selectors.EVENT_WRITE)
            selector.register(self._stdout, selectors.EVENT_READ)
            selector.register(self._stderr, selectors.EVENT_READ)
            while True:
                left = end - time.monotonic()
                if left <= 0:
                    unread = " and has not read the request" if unsent else ""
                    raise ProgramError(
                        f"no answer within {seconds:g} s{unread}{self._last_words()}"
                    )
                ready = {key.fd for key, _ in selector.select(min(left, LOOK))}
                # A child may hold the pipes open when the program itself is gone.
                gone = not ready and self._process.poll() is not None
                if self._stderr in ready and not self._read_errors():
                    selector.unregister(self._stderr)
                if self._stdout in ready and not self._read_output():
                    gone = True
                answer, newline, rest = self._output.partition(b"\n")
                if len(answer) >= ANSWER_LIMIT:
                    raise ProgramError(
                        f"{ANSWER_LIMIT:,} bytes without the end of a line: {_quote(answer)}"
                    )
                if newline and rest:
                    raise ProgramError(f"more than one line in answer to one: {_quote(rest)}")
                if newline:
                    self._output.clear()
                    return bytes(answer)
                if gone:
                    raise ProgramError(self._how_it_ended())
                if self._stdin in ready:
                    unsent = unsent[self._send(unsent) :]
                    if not unsent:
                        selector.unregister(self._stdin)

    def _send(self, data: memoryview) -> int:
        """Writes what the pipe takes; a closed pipe takes all, since reading tells more."""
        try:
            return os.write(self._stdin, data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)

    def _read_output(self) -> bool:
        """Takes what lies in the output pipe, one chunk at most; whether it is still open."""
        chunk = _read(self._stdout)
        self._output += chunk or b""
        return chunk != b""

    def _read_errors(self) -> bool:
        """Keeps the tail of what lies in the error pipe; whether it is still open."""
        chunk = _read(self._stderr)
        self._tail = (self._tail + (chunk or b""))[-TAIL:]
        return chunk != b""

    def _how_it_ended(self) -> str:
        """Says what became of a program whose output has ended."""
        try:
            status = self._process.wait(FAREWELL)
        except subprocess.TimeoutExpired:
            return f"the program closed its output{self._last_words()}"
        if status >= 0:
            return f"the program ended with status {status}{self._last_words()}"
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = str(-status)
        return f"the program was killed by signal {name}{self._last_words()}"

    def _last_words(self) -> str:
        """The last of the program's error output, as the end of a message."""
        for _ in range(TAIL):  # it may be endless
            if not _has_input(self._stderr) or not self._read_errors():
                break
        text = self._tail.decode("utf-8", "replace").strip()
        # ascii(), so that a record or a terminal can hold whatever the program wrote.
        return f"; its last error output: {text[-QUOTED:]!a}" if text else ""

    def end(self) -> None:
        """Kills the program and everything it started, and closes the pipes. May be repeated."""
        if not self.usable or self._stdin < 0:
            return
        self._stdin = -1
        # The program is reaped after this or was a moment before it, so its number, which is that
        # of its group too, is nobody else's.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pipe in self._pipes:
            pipe.close()
        self._process.wait()
        _kill_marked(self._mark)


def _read(descriptor: int) -> bytes | None:
    """What lies in a pipe, one chunk at most; b"" at its end, None if nothing has come."""
    try:
        return os.read(descriptor, CHUNK)
    except BlockingIOError:
        return None


def _has_input(descriptor: int) -> bool:
    with selectors.PollSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return bool(selector.select(0))


def _quote(data: bytes | bytearray) -> str:
    text = ascii(bytes(data[:QUOTED]))
    return text if len(text) <= QUOTED else text[: QUOTED - 3] + "..."


def _kill_marked(mark: str) -> None:
    """Kills all processes whose environment holds a variable, and those that they start meanwhile.

    They are found by ``/proc``; where there is none, children that left the group go on.
    """
    start = time.monotonic()
    while True:
        marked, starting = _marked(mark)
        passed = time.monotonic() - start
        if not (marked and passed < PURSUIT) and not (starting and passed < STARTING):
            return
        for number in marked:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.001)


def _marked(mark: str) -> tuple[list[int], bool]:
    """Living processes whose environment holds a variable; whether any may be about to have one.

    In the middle of starting another program a process shows no environment, as kernel threads and
    dead processes always do.
    """
    wanted = b"\0" + mark.encode() + b"="
    found = []
    starting = False
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # ended meanwhile, or somebody else's
            environment = path.read_bytes()
            if wanted in b"\0" + environment:
                found.append(int(path.parent.name))
            elif not environment:
                # The name may hold anything but ends with the last bracket.
                state, parent, *_ = (path.parent / "stat").read_bytes().rpartition(b")")[2].split()
                starting |= state not in b"ZX" and parent not in (b"0", KERNEL_THREADS)
    return found, starting
