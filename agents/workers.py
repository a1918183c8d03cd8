"""Work shared out to processes: :func:`run_tasks`.

The processes are spawned, so this works alike on every system, and each is tied to its parent by a
pipe of its own: when the parent is gone, however it ended, the pipe closes and they end too. A
thread of each looks after the parent, so that they do so in the middle of a task.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from multiprocessing.connection import Connection, wait
from typing import Any, Final, TypeVar

__all__ = ["WorkerError", "run_tasks"]

Task = TypeVar("Task")
Result = TypeVar("Result")

GRACE: Final = 5.0  # seconds for a process to end by itself


class WorkerError(RuntimeError):
    """A worker process has ended before its task."""


def run_tasks(
    function: Callable[[Task], Result], tasks: Iterable[Task], workers: int
) -> Generator[Result, None, None]:
    """Calls a function on each task, in the order of the tasks, in several processes at once.

    Args:
        function: Defined at the top of a module, so that other processes find it.
        tasks: Taken one by one when a process has nothing to do.
        workers: How many processes; 1 calls the function in this one.

    Yields:
        The results, as they come in. Closing the iterator ends the processes at once.

    Raises:
        ValueError: ``workers`` is less than 1.
        WorkerError: A process died.
        Exception: Whatever the function raises.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    if workers == 1:
        for task in tasks:
            yield function(task)
        return
    context = multiprocessing.get_context("spawn")
    queue = iter(tasks)
    pipes: dict[Connection, Any] = {}
    try:
        for task in queue:
            mine, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(function, theirs), daemon=True)
            process.start()
            theirs.close()
            pipes[mine] = process
            mine.send(task)
            if len(pipes) == workers:
                break
        busy = set(pipes)
        while busy:
            for pipe in wait(list(busy)):
                assert isinstance(pipe, Connection)
                try:
                    result, error = pipe.recv()
                except (EOFError, OSError):
                    process = pipes[pipe]
                    process.join(GRACE)
                    raise WorkerError(
                        f"worker process {process.pid} ended with status {process.exitcode}"
                    ) from None
                if error is not None:
                    raise error
                try:
                    pipe.send(next(queue))
                except StopIteration:
                    busy.remove(pipe)
                except OSError:
                    pass  # it has ended, as will show when it is asked for its next answer
                yield result
    finally:
        for pipe, process in pipes.items():
            pipe.close()
            process.terminate()
        for process in pipes.values():
            process.join(GRACE)
            if process.exitcode is None:  # deep in compiled code
                process.kill()
                process.join()


def _serve(function: Callable[[Any], Any], pipe: Connection) -> None:
    """Answers tasks until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C and ends this process
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what is open is closed
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            # The parent may end it just now: no more is open, and exit must not be interrupted.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            return
        answer: tuple[Any, Exception | None]
        try:
            answer = function(task), None
        except Exception as error:
            answer = None, error
        try:
            pipe.send(answer)
        except OSError:
            return


def _end_with_parent() -> None:
    """Ends this process, closing what is open, as soon as its parent has ended."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
