"""Counterweight as an RLlib multi-agent environment, and the network that plays it there.

An observation is the PettingZoo environment's own: ``{"observation": (K,) int8, "action_mask": (A,)
int8}``. Only the player on turn gets one, however often it acts in a row; at the end both do, with
their payoffs.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI, ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from counterweight_env.envs.aec import raw_env

__all__ = ["CounterweightMultiAgentEnv", "MaskedActorCritic"]

#: An illegal action's logit. Its probability is exactly 0, and unlike minus infinity it makes no
#: nan of an entropy or a divergence.
ILLEGAL_LOGIT: Final = -1e9


class CounterweightMultiAgentEnv(MultiAgentEnv):
    """One game; agents ``player_0`` and ``player_1``.

    Args:
        config: ``rules`` and ``reward``, as :class:`counterweight_env.raw_env` takes them.

    Raises:
        TypeError: ``config`` has other keys.
        ValueError: A value is bad.
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._env = raw_env(**dict(config or {}))
        self.possible_agents = list(self._env.possible_agents)
        self.agents = list(self.possible_agents)
        self.observation_spaces = dict(self._env.observation_spaces)
        self.action_spaces = dict(self._env.action_spaces)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Deals a new game: from ``seed``, or from the environment's own stream if it is None."""
        self._env.reset(seed=seed)
        self.agents = list(self.possible_agents)
        mover = self._env.agent_selection
        return {mover: self._env.observe(mover)}, {}

    def step(
        self, action_dict: dict[str, int]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Carries out the action of the player on turn.

        Raises:
            IllegalActionError: The action is illegal; nothing has changed.
            ValueError: It is not exactly the player on turn who acts.
        """
        env = self._env
        if list(action_dict) != [env.agent_selection]:
            raise ValueError(f"only {env.agent_selection} may act, got {action_dict}")
        env.step(int(action_dict[env.agent_selection]))
        done = all(env.terminations.values())
        told = self.possible_agents if done else [env.agent_selection]
        rewards = {agent: float(env.rewards[agent]) for agent in told}
        terminateds = {**dict.fromkeys(told, done), "__all__": done}
        truncateds = {**dict.fromkeys(told, False), "__all__": False}
        if done:
            self.agents = []
        return {agent: env.observe(agent) for agent in told}, rewards, terminateds, truncateds, {}


class MaskedActorCritic(TorchRLModule, InferenceOnlyAPI, ValueFunctionAPI):
    """Two networks of their own, actor and critic; an illegal action has no chance to be drawn.

    ``model_config``: ``{"hidden": [width, ...]}``.
    """

    def setup(self) -> None:
        """Builds the networks from the spaces."""
        inputs = self.observation_space["observation"].shape[0]
        widths = [inputs, *self.model_config["hidden"]]
        self.actor = _network(widths, int(self.action_space.n))
        self.critic = _network(widths, 1)

    def get_non_inference_attributes(self) -> list[str]:
        """What is left out where games are played: the critic."""
        return ["critic"]

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        seen = batch[Columns.OBS]
        logits = self.actor(seen["observation"].float())
        illegal = seen["action_mask"] == 0
        return {Columns.ACTION_DIST_INPUTS: logits.masked_fill(illegal, ILLEGAL_LOGIT)}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        """The (B,) expected returns."""
        return self.critic(batch[Columns.OBS]["observation"].float()).squeeze(-1)


def _network(widths: list[int], outputs: int) -> torch.nn.Sequential:
    layers: list[torch.nn.Module] = []
    for inputs, width in pairwise(widths):
        layers += [torch.nn.Linear(inputs, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], outputs))
