"""The PettingZoo AEC environment: both seats are agents."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from pettingzoo import AECEnv
from pettingzoo.utils.env_logger import EnvLogger

from counterweight_env.envs.drawing import check_render_mode, drawer_for
from counterweight_env.envs.duel import check_reward
from counterweight_env.game import Game, IllegalActionError
from counterweight_env.kernels import NOBODY
from counterweight_env.observation import observation_space
from counterweight_env.render import view_text
from counterweight_env.rules import Rules, as_rules

__all__ = ["CheckedEnv", "env", "raw_env"]

AGENTS = ("player_0", "player_1")


class raw_env(AECEnv[str, dict[str, np.ndarray], int]):  # noqa: N801 - PettingZoo's name
    """Counterweight with agents ``player_0`` and ``player_1``.

    An observation is ``{"observation": (K,) int8, "action_mask": (A,) int8}`` from the agent's own
    side; the mask is also in ``infos``. A turn is one to four decisions, so the same agent may act
    several times running and the environment is not parallelizable.

    Args:
        rules: A ``Rules`` or its text.
        reward: ``"outcome"`` or ``"margin"``, given to both agents when the game ends.
        render_mode: None; ``"ansi"``, which shows what the selected agent may know;
            ``"rgb_array"`` or ``"human"``, a window, which show all cards, as to a spectator.

    Raises:
        DependencyNotInstalled: The render mode needs a package that is missing.
        ValueError: An argument is bad.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "counterweight_v0",
        "render_modes": ["ansi", "rgb_array", "human"],
        "is_parallelizable": False,
        "render_fps": 2,
    }

    def __init__(
        self,
        rules: Rules | str = "classic",
        reward: str = "outcome",
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        self.rules = as_rules(rules)
        self.reward = check_reward(reward)
        self.render_mode = check_render_mode(render_mode, self.metadata)
        self._drawer = drawer_for(self.render_mode, self.metadata)
        self.possible_agents = list(AGENTS)
        self.observation_spaces = {
            agent: gym.spaces.Dict(
                {
                    "observation": observation_space(self.rules),
                    "action_mask": gym.spaces.Box(0, 1, (self.rules.num_actions,), np.int8),
                }
            )
            for agent in AGENTS
        }
        self.action_spaces = {
            agent: gym.spaces.Discrete(self.rules.num_actions) for agent in AGENTS
        }
        self._game = Game(self.rules)
        self._has_reset = False

    def observation_space(self, agent: str) -> gym.spaces.Space[Any]:
        """The space of an agent's observations; the same object at each call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.spaces.Space[Any]:
        """The space of an agent's actions; the same object at each call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Deals a new game: from ``seed``, or from the environment's own stream if it is None."""
        self._game.reset(seed)
        self.agents = list(AGENTS)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.agent_selection = AGENTS[self._game.to_move]
        self._set_masks(self._game.to_move)
        if self._drawer is not None:
            self._drawer.begin(self._game)
        if self.render_mode == "human":
            self.render()

    def step(self, action: int | None) -> None:
        """Carries out an action of ``agent_selection``.

        Raises:
            IllegalActionError: The action is illegal; nothing has changed.
            ValueError: The agent is done and the action is not None.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        game = self._game
        game.step(action)  # type: ignore[arg-type]
        self._cumulative_rewards[agent] = 0.0
        if game.done:
            payoffs = game.returns if self.reward == "outcome" else game.margin
            self.rewards = dict(zip(AGENTS, payoffs, strict=True))
            self.terminations = dict.fromkeys(AGENTS, True)
            self._accumulate_rewards()
            self._set_masks(game.to_move)
            self._deads_step_first()
        else:
            self.agent_selection = AGENTS[game.to_move]
            self._set_masks(game.to_move)
        if self._drawer is not None:
            self._drawer.follow(game)
        if self.render_mode == "human":
            self.render()

    def _set_masks(self, to_move: int) -> None:
        legal = self._game.legal_mask().view(np.int8)
        nothing = np.zeros_like(legal)
        self._masks = {
            agent: legal if player == to_move else nothing for player, agent in enumerate(AGENTS)
        }
        self.infos = {agent: {"action_mask": self._masks[agent].copy()} for agent in self.agents}

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """What an agent knows, whether or not it is on turn; the mask is all 0 when it is not."""
        observation = self._game.observe(AGENTS.index(agent))
        return {"observation": observation, "action_mask": self._masks[agent].copy()}

    def render(self) -> str | np.ndarray | None:
        """The game as the selected agent sees it, as text, or as a picture with all cards open.

        Returns:
            Text in mode ``"ansi"``; (672, 720, 3) uint8 in mode ``"rgb_array"``; None in mode
            ``"human"``, where :meth:`reset` and :meth:`step` draw by themselves.
        """
        if self.render_mode is None:
            gym.logger.warn("render() needs a render_mode when the environment is made")
            return None
        if self._drawer is None:
            return view_text(self._game.view(AGENTS.index(self.agent_selection)))
        if self.render_mode == "rgb_array":
            return self._drawer.pixels(self._game)
        self._drawer.show(self._game)
        return None

    def close(self) -> None:
        """Closes the window, if there is one."""
        if self._drawer is not None:
            self._drawer.close()

    def __str__(self) -> str:
        return self.metadata["name"]


class CheckedEnv(raw_env):
    """:class:`raw_env` with what PettingZoo's usual wrappers add, without their cost.

    An illegal action ends the episode with reward -1 for its player and 0 for the other. An action
    outside the space, and a call before ``reset``, are errors.
    """

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Deals a new game: from ``seed``, or from the environment's own stream if it is None."""
        self._has_reset = True
        super().reset(seed, options)

    def step(self, action: int | None) -> None:
        """Carries out an action of ``agent_selection``, or ends the episode if it is illegal.

        Raises:
            AssertionError: The action is not in the action space, or ``reset`` was not called.
            ValueError: The agent is done and the action is not None.
        """
        if not self._has_reset:
            EnvLogger.error_step_before_reset()
        if not self.agents:
            EnvLogger.warn_step_after_terminated_truncated()
            return
        try:
            super().step(action)
        except IllegalActionError:
            agent = self.agent_selection
            space = self.action_spaces[agent]
            assert space.contains(action), f"action {action!r} is not in the action space {space}"
            self._end_on_illegal_action(agent)

    def _end_on_illegal_action(self, agent: str) -> None:
        EnvLogger.warn_on_illegal_move()
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self.rewards[agent] = -1.0
        self.terminations = dict.fromkeys(AGENTS, True)
        self._cumulative_rewards[agent] = 0.0
        self._accumulate_rewards()
        self._set_masks(NOBODY)
        self._deads_step_first()

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """What an agent knows, whether or not it is on turn; the mask is all 0 when it is not.

        Raises:
            AssertionError: ``reset`` was not called.
        """
        if not self._has_reset:
            EnvLogger.error_observe_before_reset()
        return super().observe(agent)

    def render(self) -> str | np.ndarray | None:
        """As :meth:`raw_env.render`.

        Raises:
            AssertionError: ``reset`` was not called.
        """
        if not self._has_reset:
            EnvLogger.error_render_before_reset()
        return super().render()


env = CheckedEnv
