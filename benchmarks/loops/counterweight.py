"""Counterweight's loops, classic rules: those of ``counterweight speed``, and PettingZoo's loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from benchmarks.loops.aec import aec_loop
from benchmarks.loops.worker import Play, serve

__all__ = ["LOOPS"]


def _workload(name: str, batch: int, threads: int = 1) -> Play:
    """What ``counterweight speed`` measures under this name."""
    from counterweight_env.speed import workloads

    found = [load for load in workloads("classic", batch, threads) if load.name == name]
    return found[0].make()


def _aec() -> Play:
    import counterweight_env

    return aec_loop(counterweight_env.env())


LOOPS: Final[dict[str, Callable[[], Play]]] = {
    "kernel": lambda: _workload("kernel", 1024),
    "batch": lambda: _workload("GameBatch", 1024),
    "large batch": lambda: _workload("GameBatch", 8192),
    "large batch, 2 threads": lambda: _workload("GameBatch", 8192, threads=2),
    "vector env": lambda: _workload("VectorEnv", 1024),
    "AEC": _aec,
    "Game": lambda: _workload("Game", 1),
}

if __name__ == "__main__":
    serve(LOOPS)
