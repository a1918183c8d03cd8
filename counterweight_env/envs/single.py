"""The Gymnasium environment ``Counterweight-v0``: one learner against one opponent."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded

from counterweight_env.envs.drawing import check_render_mode, drawer_for
from counterweight_env.envs.duel import Duel
from counterweight_env.observation import observation_space
from counterweight_env.plugins import Agent
from counterweight_env.render import view_text
from counterweight_env.rules import Rules
from counterweight_env.view import View

__all__ = ["CounterweightEnv"]


class CounterweightEnv(gym.Env[np.ndarray, np.int64]):
    """Counterweight for one learner; the opponent moves inside ``reset`` and ``step``.

    Observation: (K,) int8 of 0 and 1, laid out as ``observation_layout(rules)`` says. The legal
    actions are in ``info["action_mask"]``, (A,) int8, and in :meth:`action_masks`, (A,) bool; both
    are all 0 when the game is over. ``action_space.sample(info["action_mask"])`` draws a legal
    action.

    Args:
        rules: A ``Rules`` or its text.
        opponent: An agent or its text.
        seat: The learner's: 0, 1, or ``"random"``, drawn anew for each game.
        reward: ``"outcome"`` or ``"margin"``, given on the learner's last transition.
        render_mode: None, ``"ansi"``, ``"rgb_array"`` or ``"human"``, a window. All show what the
            learner may know: after exhaustion that is everything (E3).

    Raises:
        DependencyNotInstalled: The render mode needs a package that is missing.
        ValueError: An argument is bad.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi", "rgb_array", "human"],
        "render_fps": 2,
    }

    def __init__(
        self,
        rules: Rules | str = "classic",
        opponent: Agent | str = "random",
        seat: int | str = "random",
        reward: str = "outcome",
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = check_render_mode(render_mode, self.metadata)
        self._drawer = drawer_for(self.render_mode, self.metadata)
        self._duel = Duel(1, rules, [opponent], seat=seat, reward=reward)
        self._running = False
        self.rules = self._duel.rules
        self.observation_space = observation_space(self.rules)
        self.action_space = gym.spaces.Discrete(self.rules.num_actions)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Deals a new game: from ``seed``, or from the environment's own stream if it is None."""
        super().reset(seed=seed)
        self._duel.reset(seed=seed)
        self._running = True
        if self._drawer is not None:
            self._drawer.begin(self._view())
        if self.render_mode == "human":
            self.render()
        return self._duel.observe()[0], self._info()

    def step(
        self, action: np.integer[Any] | int
    ) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Carries out the learner's action and the opponent's replies.

        Raises:
            IllegalActionError: The action is illegal; nothing has changed.
            ResetNeeded: The game is over, or has not begun.
        """
        if not self._running:
            raise ResetNeeded("the game is over or has not begun: call reset() before step()")
        rewards, done = self._duel.step(np.asarray(action)[None])
        self._running = not done[0]
        if self._drawer is not None:
            self._drawer.follow(self._view())
        if self.render_mode == "human":
            self.render()
        return self._duel.observe()[0], float(rewards[0]), bool(done[0]), False, self._info()

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self.action_masks().view(np.int8)}

    def action_masks(self) -> np.ndarray:
        """(A,) bool, True = legal, as sb3-contrib's MaskablePPO asks for it."""
        return self._duel.legal[0]

    def _view(self) -> View:
        return self._duel.games[0].view(int(self._duel.seats[0]))

    def render(self) -> str | np.ndarray | None:
        """The game as the learner sees it.

        Returns:
            Text in mode ``"ansi"``; (672, 720, 3) uint8 in mode ``"rgb_array"``; None in mode
            ``"human"``, where :meth:`reset` and :meth:`step` draw by themselves.
        """
        if self.render_mode is None:
            gym.logger.warn("render() needs a render_mode when the environment is made")
            return None
        if self._drawer is None:
            return view_text(self._view())
        if self.render_mode == "rgb_array":
            return self._drawer.pixels(self._view())
        self._drawer.show(self._view())
        return None

    def close(self) -> None:
        """Closes the window, if there is one."""
        if self._drawer is not None:
            self._drawer.close()
