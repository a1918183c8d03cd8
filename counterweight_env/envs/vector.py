"""The Gymnasium vector environment: many games against an opponent in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from counterweight_env.envs.drawing import Drawer, check_render_mode
from counterweight_env.envs.duel import Duel, Ended
from counterweight_env.observation import observation_space
from counterweight_env.plugins import Agent
from counterweight_env.render import view_text
from counterweight_env.rules import Rules
from counterweight_env.view import View

__all__ = ["CounterweightVectorEnv"]


class CounterweightVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """``num_envs`` games in one batch; slot i of seed s plays what ``CounterweightEnv`` s + i does.

    Autoreset is SAME_STEP: when a game ends, ``step`` returns the first observation of the next
    game, and the ended game's last observation and info stand in ``infos["final_obs"]`` and
    ``infos["final_info"]``. Nothing returned is a view of the environment's own memory.

    Args:
        num_envs: ``B``, how many games.
        rules: A ``Rules`` or its text.
        opponent: An agent or its text.
        seat: The learner's: 0, 1, or ``"random"``, drawn anew for each game.
        reward: ``"outcome"`` or ``"margin"``, given on the learner's last transition.
        render_mode: None, ``"ansi"`` or ``"rgb_array"``: each game as its learner sees it.
        threads: How many threads to share the games out to; results do not depend on it.
        solve_endings: End every game at exhaustion with its exact value as the reward; see
            ``GameBatch``. Not with ``reward="margin"``.
        solve_nodes: Positions to look at for one game and turn, at most.

    Raises:
        DependencyNotInstalled: The render mode needs a package that is missing.
        ValueError: An argument is bad.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 2,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        rules: Rules | str = "classic",
        opponent: Agent | str = "random",
        seat: int | str = "random",
        reward: str = "outcome",
        render_mode: str | None = None,
        threads: int = 1,
        solve_endings: bool = False,
        solve_nodes: int | None = None,
    ) -> None:
        self.render_mode = check_render_mode(render_mode, self.metadata)
        self._duel = Duel(
            num_envs,
            rules,
            [opponent],
            seat=seat,
            reward=reward,
            threads=threads,
            solve_endings=solve_endings,
            solve_nodes=solve_nodes,
        )
        self._running = False
        pictures = self.render_mode == "rgb_array"
        self._drawers = [Drawer(self.metadata["render_fps"]) for _ in range(num_envs * pictures)]
        self.num_envs = num_envs
        self.rules = self._duel.rules
        self.single_observation_space = observation_space(self.rules)
        self.single_action_space = gym.spaces.Discrete(self.rules.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    @property
    def unsolved(self) -> int:
        """How often ``solve_nodes`` has let a game go on, since this object was made."""
        return self._duel.games.unsolved

    def reset(
        self,
        *,
        seed: int | Sequence[int] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Deals all games anew.

        Args:
            seed: An int s seeds slot i with s + i; a sequence has one seed a slot; None goes on
                with each slot's own stream.
            options: Ignored.

        Raises:
            ValueError: The sequence has the wrong length, or a seed is bad.
        """
        super().reset(seed=seed if isinstance(seed, int) else None)
        self._duel.reset(seed=seed)
        self._running = True
        for slot, drawer in enumerate(self._drawers):
            drawer.begin(self._view(slot))
        return self._duel.observe(), self._infos()

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Carries out one action a slot and the opponents' replies; deals anew where a game ended.

        Args:
            actions: (B,) ints.

        Returns:
            Observations (B, K) int8, rewards (B,) float64, terminations (B,) bool, truncations (B,)
            bool (never True), infos.

        Raises:
            IllegalActionError: An action is illegal; no game has moved.
            ResetNeeded: ``reset`` has not been called.
        """
        if not self._running:
            raise ResetNeeded("call reset() before step()")
        rewards, terminations, ended = self._duel.step_autoreset(actions)
        for slot, drawer in enumerate(self._drawers):
            (drawer.begin if terminations[slot] else drawer.follow)(self._view(slot))
        infos = self._infos()
        if ended.rows.size:
            infos |= self._final(terminations, ended)
        truncations = np.zeros(self.num_envs, np.bool_)
        return self._duel.observe(), rewards.astype(np.float64), terminations, truncations, infos

    def _infos(self) -> dict[str, Any]:
        return {
            "action_mask": self._duel.legal.view(np.int8),
            "_action_mask": np.ones(self.num_envs, np.bool_),
        }

    def _final(self, terminations: np.ndarray, ended: Ended) -> dict[str, Any]:
        """The last observations and infos of the games that ended, in Gymnasium's form."""
        final_obs = np.full(self.num_envs, None, object)
        for row, observation in zip(ended.rows, ended.observation, strict=True):
            final_obs[row] = observation
        final_info = {
            "action_mask": np.zeros((self.num_envs, self.rules.num_actions), np.int8),
            "_action_mask": terminations.copy(),
        }
        return {
            "final_obs": final_obs,
            "_final_obs": terminations.copy(),
            "final_info": final_info,
            "_final_info": terminations.copy(),
        }

    def action_masks(self) -> np.ndarray:
        """(B, A) bool, True = legal."""
        return self._duel.legal

    def _view(self, slot: int) -> View:
        return self._duel.games[slot].view(int(self._duel.seats[slot]))

    def render(self) -> tuple[str, ...] | tuple[np.ndarray, ...] | None:
        """Every game as its learner sees it.

        Returns:
            Texts in mode ``"ansi"``; (672, 720, 3) uint8 each in mode ``"rgb_array"``.
        """
        if self.render_mode is None:
            gym.logger.warn("render() needs a render_mode when the environment is made")
            return None
        if self.render_mode == "ansi":
            return tuple(view_text(self._view(slot)) for slot in range(self.num_envs))
        return tuple(drawer.pixels(self._view(slot)) for slot, drawer in enumerate(self._drawers))
