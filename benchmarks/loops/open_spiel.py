"""OpenSpiel's loops: crazy_eights with two players, written in C++."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from benchmarks.loops.worker import Count, Play, serve

__all__ = ["LOOPS"]

GAME: Final = "crazy_eights(players=2)"


def _python_loop(draw: Callable[[list[tuple[int, float]]], int]) -> Play:
    """OpenSpiel's loop with the given draw among the outcomes of a chance node."""
    import pyspiel

    game = pyspiel.load_game(GAME)
    rng = random.Random(0)

    def play(steps: int) -> Count:
        decisions = games = 0
        while decisions < steps:
            state = game.new_initial_state()
            games += 1
            while not state.is_terminal():
                if state.is_chance_node():
                    state.apply_action(draw(state.chance_outcomes()))
                    continue
                state.observation_tensor()
                state.legal_actions_mask()
                actions = state.legal_actions()
                state.apply_action(actions[int(rng.random() * len(actions))])
                decisions += 1
        return decisions, games

    return play


def _documented() -> Play:
    """The loop of OpenSpiel's documentation and its ``example.py``: NumPy draws at chance nodes."""
    import numpy as np

    rng = np.random.RandomState(0)

    def draw(outcomes: list[tuple[int, float]]) -> int:
        actions, chances = zip(*outcomes, strict=True)
        return int(rng.choice(actions, p=chances))

    return _python_loop(draw)


def _quicker() -> Play:
    """The same with ``random.choices``, which is quicker there than NumPy's ``choice``."""
    rng = random.Random(0)

    def draw(outcomes: list[tuple[int, float]]) -> int:
        actions, chances = zip(*outcomes, strict=True)
        return rng.choices(actions, chances)[0]

    return _python_loop(draw)


def _fastest(observe: bool) -> Play:
    """The fastest Python loop known to us.

    In this game all outcomes of a chance node are equally likely, so that they can be drawn from
    the legal actions; and OpenSpiel's observer fills a NumPy array instead of a new list.
    """
    import pyspiel
    from open_spiel.python.observation import make_observation

    game = pyspiel.load_game(GAME)
    observer: Any = make_observation(game)
    rng = random.Random(0)

    def play(steps: int) -> Count:
        decisions = games = 0
        while decisions < steps:
            state = game.new_initial_state()
            games += 1
            while not state.is_terminal():
                if not state.is_chance_node():
                    decisions += 1
                    if observe:
                        observer.set_from(state, state.current_player())
                        state.legal_actions_mask()
                actions = state.legal_actions()
                state.apply_action(actions[int(rng.random() * len(actions))])
        return decisions, games

    return play


def _bots() -> Play:
    """Whole games between OpenSpiel's own random bots, without a step in Python."""
    import pyspiel

    game = pyspiel.load_game(GAME)
    bots = [pyspiel.make_uniform_random_bot(player, player) for player in (0, 1)]
    rng = random.Random(0)

    def play(steps: int) -> Callable[[], Count]:
        states = [game.new_initial_state() for _ in range(steps)]
        for state in states:
            pyspiel.evaluate_bots(state, bots, rng.getrandbits(31))

        def count() -> Count:  # takes longer than the games, so the clock does not see it
            moves = (move for state in states for move in state.full_history())
            return sum(move.player >= 0 for move in moves), len(states)

        return count

    return play


LOOPS: Final[dict[str, Callable[[], Play]]] = {
    "documented": _documented,
    "quicker": _quicker,
    "fastest": lambda: _fastest(observe=True),
    "legal actions": lambda: _fastest(observe=False),
    "evaluate_bots": _bots,
}

if __name__ == "__main__":
    serve(LOOPS)
