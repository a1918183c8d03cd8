"""OpenSpiel's loops: crazy_eights with two players, written in C++."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from benchmarks.loops.worker import Count, Play, serve

__all__ = ["LOOPS"]

GAME: Final = "crazy_eights(players=2)"


def _usual() -> Play:
    """The loop of OpenSpiel's documentation, with a quicker draw at chance nodes than there."""
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
                    actions, chances = zip(*state.chance_outcomes(), strict=True)
                    state.apply_action(rng.choices(actions, chances)[0])
                    continue
                state.observation_tensor()
                state.legal_actions_mask()
                actions = state.legal_actions()
                state.apply_action(actions[int(rng.random() * len(actions))])
                decisions += 1
        return decisions, games

    return play


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
    "usual": _usual,
    "fastest": lambda: _fastest(observe=True),
    "legal actions": lambda: _fastest(observe=False),
    "evaluate_bots": _bots,
}

if __name__ == "__main__":
    serve(LOOPS)
