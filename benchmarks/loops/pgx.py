"""Pgx's loop: leduc_holdem in one compiled scan over many steps, on the CPU."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from benchmarks.loops.worker import Count, Play, serve

__all__ = ["LOOPS"]

BATCH: Final = 1024
SCAN: Final = 100  # steps of a compiled call


def _leduc_holdem() -> Play:
    """Steps, action choice and automatic reset are compiled together.

    Observations are added up so that the compiler cannot leave them out; they need not be written
    to memory. A step is one decision of whichever player is on turn.
    """
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental.wrappers import auto_reset

    env = pgx.make("leduc_holdem")
    step_all = jax.vmap(auto_reset(env.step, env.init))

    def step(carry: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        states, key = carry
        key, choice, resets = jax.random.split(key, 3)
        logits = jnp.where(states.legal_action_mask, 0.0, -1e9)
        actions = jax.random.categorical(choice, logits, axis=1)
        states = step_all(states, actions, jax.random.split(resets, BATCH))
        return (states, key), (states.observation.sum(), states.terminated.sum())

    scan = jax.jit(lambda carry: jax.lax.scan(step, carry, None, length=SCAN))
    start, key = jax.random.split(jax.random.PRNGKey(0))
    carry = (jax.jit(jax.vmap(env.init))(jax.random.split(start, BATCH)), key)

    def play(steps: int) -> Count:
        nonlocal carry
        games = 0
        for _ in range(steps):
            carry, (seen, ended) = scan(carry)
            seen.block_until_ready()
            games += int(ended.sum())
        return BATCH * SCAN * steps, games

    return play


LOOPS: Final[dict[str, Callable[[], Play]]] = {"leduc_holdem": _leduc_holdem}

if __name__ == "__main__":
    serve(LOOPS)
