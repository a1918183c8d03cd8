"""PettingZoo's loops: its own environments with their usual wrappers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from benchmarks.loops.aec import aec_loop
from benchmarks.loops.worker import Play, serve

__all__ = ["LOOPS"]


def _connect_four() -> Play:
    from pettingzoo.classic import connect_four_v3

    return aec_loop(connect_four_v3.env())


def _leduc_holdem() -> Play:
    from pettingzoo.classic import leduc_holdem_v4

    return aec_loop(leduc_holdem_v4.env())


LOOPS: Final[dict[str, Callable[[], Play]]] = {
    "connect_four": _connect_four,
    "leduc_holdem": _leduc_holdem,
}

if __name__ == "__main__":
    serve(LOOPS)
