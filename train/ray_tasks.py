"""Work shared out over a Ray cluster: :func:`connected`, :func:`run_ray_tasks`."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from agents.workers import WorkerError

__all__ = ["connected", "run_ray_tasks"]

Task = TypeVar("Task")
Result = TypeVar("Result")


@contextmanager
def connected(address: str | None = None, least_cpus: int = 1) -> Iterator[int]:
    """Ray, for a time: a cluster that is there, or one of this machine's own.

    If Ray already runs in this process, that is used and left running.

    Args:
        address: Of the cluster, or ``"auto"`` for the one that this machine belongs to; None starts
            Ray here.
        least_cpus: How many processors are needed. Ray started here claims as many.

    Yields:
        How many processors the cluster has.

    Raises:
        ConnectionError: There is no cluster at the address.
        ValueError: The cluster has too few processors.
    """
    own = not ray.is_initialized()
    if own:
        options: dict[str, Any] = {"address": address}
        if address is None:
            cpus = max(os.cpu_count() or 1, least_cpus)
            options = {"address": "local", "num_cpus": cpus, "include_dashboard": False}
        ray.init(log_to_driver=False, logging_level="ERROR", **options)
    try:
        cpus = int(ray.cluster_resources().get("CPU", 0))
        if cpus < least_cpus:
            raise ValueError(f"the cluster has {cpus} processors, {least_cpus} are needed")
        yield cpus
    finally:
        if own:
            ray.shutdown()


def run_ray_tasks(
    function: Callable[[Task], Result], tasks: Iterable[Task], workers: int
) -> Generator[Result, None, None]:
    """Calls a function on each task, in the order of the tasks, on a cluster.

    It stands in for :func:`agents.workers.run_tasks`. Ray plays a task again whose process or
    machine is lost, so what it comes to must follow from the task alone. Ray must run, and the
    package must be installed on every machine.

    Args:
        function: Defined at the top of a module.
        tasks: Taken one by one as others are done.
        workers: How many are under way at once, each on one processor.

    Yields:
        The results, as they come in. Closing the iterator ends the tasks under way.

    Raises:
        WorkerError: A task was lost again and again.
        Exception: Whatever the function raises.
    """
    remote = ray.remote(num_cpus=1)(function)
    queue = iter(tasks)
    running = [remote.remote(task) for task in islice(queue, workers)]
    try:
        while running:
            ready, running = ray.wait(running, num_returns=1)
            try:
                result = ray.get(ready[0])
            except RayTaskError as error:
                raise error.cause from None
            except RayError as error:
                raise WorkerError(f"a task was lost: {error}") from None
            running += [remote.remote(task) for task in islice(queue, 1)]
            yield result
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
