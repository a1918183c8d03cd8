"""Whom the learner plays: frozen copies of itself (:class:`PolicySnapshot`) and a pool of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.preprocessing import preprocess_obs

from counterweight_env import ViewBatch
from counterweight_env.plugins import Agent, as_agent
from train.vec_env import SelfPlayVecEnv

__all__ = ["OpponentPool", "PolicySnapshot"]


class PolicySnapshot:
    """An agent that plays the actor of a policy as it is now; later training does not reach it.

    A draw follows from the row's own random word, so the play does not depend on any global
    generator. Logits are computed in float32 by one matrix product a batch, whose rounding may differ
    in the last bit between batch sizes; everything after that is done row by row in float64.

    Args:
        policy: The policy to copy. Its weights, and nothing of its optimizer, are copied.
        name: How tables call it.
        deterministic: Whether it plays the likeliest action instead of drawing by probability.

    Raises:
        TypeError: ``policy`` is no ``MaskableActorCriticPolicy``.
    """

    def __init__(
        self, policy: MaskableActorCriticPolicy, name: str = "snapshot", deterministic: bool = False
    ) -> None:
        if not isinstance(policy, MaskableActorCriticPolicy):
            raise TypeError(f"policy must be a MaskableActorCriticPolicy, got {policy!r}")
        self.name = name
        self.deterministic = deterministic
        self._observation_space = policy.observation_space
        self._device = policy.device
        self.network = torch.nn.ModuleDict(
            {
                "features": copy.deepcopy(policy.pi_features_extractor),
                "body": copy.deepcopy(policy.mlp_extractor),
                "head": copy.deepcopy(policy.action_net),
            }
        )
        self.network.eval().requires_grad_(False)

    def logits(self, observation: np.ndarray) -> np.ndarray:
        """The actor's (B, A) float64 logits, illegal actions included."""
        with torch.no_grad():
            tensor = torch.as_tensor(observation, device=self._device)
            inputs = preprocess_obs(tensor, self._observation_space)
            hidden = self.network["body"].forward_actor(self.network["features"](inputs))
            return self.network["head"](hidden).double().cpu().numpy()

    def act(self, views: ViewBatch) -> np.ndarray:
        """Chooses for the mover of every row: (B,) legal actions."""
        logits = np.where(views.legal, self.logits(views.observation), -np.inf)
        if self.deterministic:
            return logits.argmax(axis=1)
        logits -= logits.max(axis=1, keepdims=True)
        cumulative = np.cumsum(np.exp(logits), axis=1)
        # 53 bits of the word, as an even number from 0 to below 1.
        share = (views.random_bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return (cumulative > (share * cumulative[:, -1])[:, None]).argmax(axis=1)
