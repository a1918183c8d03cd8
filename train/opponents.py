"""Whom the learner plays: frozen copies of itself (:class:`PolicySnapshot`) and a pool of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

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

    A draw follows from the row's own random word, so play depends on no global generator. The
    network runs in float64: the matrix product of a larger batch may round the last bit otherwise,
    and in float64 that is far too little to change a move.

    Args:
        policy: The policy to copy. Its actor is copied, and nothing of its critic or optimizer.
        step: The training step it was taken at.
        name: How tables call it; ``"snapshot-<step>"`` if None.
        deterministic: Whether it plays the likeliest action instead of drawing by probability.

    Raises:
        TypeError: ``policy`` is no ``MaskableActorCriticPolicy``.
    """

    def __init__(
        self,
        policy: MaskableActorCriticPolicy,
        step: int = 0,
        name: str | None = None,
        deterministic: bool = False,
    ) -> None:
        if not isinstance(policy, MaskableActorCriticPolicy):
            raise TypeError(f"policy must be a MaskableActorCriticPolicy, got {policy!r}")
        self.step = step
        self.name = f"snapshot-{step}" if name is None else name
        self.deterministic = deterministic
        self._observation_space = policy.observation_space
        self._device = policy.device
        self.actor = torch.nn.ModuleDict(
            {
                "features": copy.deepcopy(policy.pi_features_extractor),
                "hidden": copy.deepcopy(policy.mlp_extractor),
                "logits": copy.deepcopy(policy.action_net),
            }
        )
        self.actor["hidden"].value_net = torch.nn.Identity()  # the critic's half
        self.actor.double().eval().requires_grad_(False)

    def logits(self, observation: np.ndarray) -> np.ndarray:
        """The actor's (B, A) float64 logits, illegal actions included, for (B, K) observations."""
        with torch.no_grad():
            tensor = torch.as_tensor(observation, device=self._device)
            inputs: Any = preprocess_obs(tensor, self._observation_space)
            features = self.actor["features"](inputs.double())
            hidden = self.actor["hidden"].forward_actor(features)  # type: ignore[operator]
            return self.actor["logits"](hidden).cpu().numpy()

    def act(self, views: ViewBatch) -> np.ndarray:
        """Chooses for the mover of every row.

        Args:
            views: What each mover knows.

        Returns:
            (B,) int64, a legal action for each row.
        """
        logits = np.where(views.legal, self.logits(views.observation), -np.inf)
        if self.deterministic:
            return logits.argmax(axis=1)
        logits -= logits.max(axis=1, keepdims=True)
        cumulative = np.cumsum(np.exp(logits), axis=1)
        # 53 bits of the word, as an even number from 0 to below 1.
        share = (views.random_bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return (cumulative > (share * cumulative[:, -1])[:, None]).argmax(axis=1)


class OpponentPool:
    """The baselines, and snapshots of the learner from different times of its training.

    The newest snapshot is the learner's *current self*; the others are *past* selves. New games
    draw the current self, any past self or any baseline in the given shares; within the last two
    kinds all are equally likely. While there is no past self, the current self takes that share.

    When there are too many snapshots, the one goes whose neighbours are closest to each other in
    training steps (the older on a tie). The first and the newest always stay, and the rest remain
    spread over the whole training.

    Args:
        baselines: Agents or their texts.
        size: The most snapshots kept, at least 2.
        self_share: Share of the games against the current self.
        past_share: Share of the games against past selves.
        baseline_share: Share of the games against baselines.

    Raises:
        ValueError: ``size`` is too small, or the shares are negative or all 0.
        TypeError: A baseline is no agent.
    """

    INDEX: Final = "pool.json"

    def __init__(
        self,
        baselines: Sequence[Agent | str],
        size: int,
        self_share: float = 0.5,
        past_share: float = 0.3,
        baseline_share: float = 0.2,
    ) -> None:
        if size < 2:
            raise ValueError(f"size must be at least 2, got {size}")
        shares = {
            "self_share": self_share,
            "past_share": past_share,
            "baseline_share": baseline_share,
        }
        for name, share in shares.items():
            if not share >= 0:
                raise ValueError(f"{name} must not be negative, got {share}")
        if not sum(shares.values()) > 0:
            raise ValueError(f"the shares must not all be 0, got {shares}")
        self.baselines = [as_agent(agent) for agent in baselines]
        self.size = size
        self._shares = shares
        self.snapshots: list[PolicySnapshot] = []
        #: Snapshots that are drawn no more, but that running games still have.
        self.retired: list[PolicySnapshot] = []

    @property
    def agents(self) -> list[Agent]:
        """Those drawn for new games: baselines, then snapshots, oldest first."""
        return [*self.baselines, *self.snapshots]

    @property
    def weights(self) -> np.ndarray:
        """(len(agents),) float64, the share of new games that each agent gets."""
        share_of = dict(self._shares)
        if len(self.snapshots) < 2:
            share_of["self_share"] += share_of.pop("past_share")
        if not self.snapshots:
            share_of = {"baseline_share": 1.0}
        weights = [share_of["baseline_share"] / max(len(self.baselines), 1)] * len(self.baselines)
        past = len(self.snapshots) - 1
        weights += [share_of["past_share"] / past for _ in range(past)]
        weights += [share_of["self_share"] for _ in self.snapshots[-1:]]
        total = np.array(weights)
        return total / total.sum()

    @property
    def newest_step(self) -> int:
        """The training step of the newest snapshot; -1 if there is none."""
        return self.snapshots[-1].step if self.snapshots else -1

    def kind(self, name: str) -> str:
        """What the agent of a name is: a baseline's name, ``"self"`` or ``"past"``."""
        if any(agent.name == name for agent in self.baselines):
            return name
        return "self" if self.snapshots and self.snapshots[-1].name == name else "past"

    def add(self, policy: MaskableActorCriticPolicy, step: int) -> PolicySnapshot | None:
        """Takes a snapshot of a policy.

        Args:
            policy: The learner's.
            step: The training step, more than that of the newest snapshot.

        Returns:
            The snapshot that had to go, or None.

        Raises:
            ValueError: ``step`` is not more than that of the newest snapshot.
        """
        if step <= self.newest_step:
            raise ValueError(f"step must be more than {self.newest_step}, got {step}")
        self.snapshots.append(PolicySnapshot(policy, step))
        if len(self.snapshots) <= self.size:
            return None
        steps = np.array([snapshot.step for snapshot in self.snapshots])
        return self.snapshots.pop(1 + int((steps[2:] - steps[:-2]).argmin()))

    def install(self, env: SelfPlayVecEnv) -> None:
        """Gives an environment these opponents for the games dealt from now on."""
        env.set_opponents(self.agents, self.weights.tolist())
        former = env.opponents[len(self.agents) :]
        self.retired = [agent for agent in former if isinstance(agent, PolicySnapshot)]

    def install_exactly(self, env: SelfPlayVecEnv) -> None:
        """Gives an environment the opponents it had when the pool was saved, ahead of its state."""
        weights = [*self.weights.tolist(), *[0.0 for _ in self.retired]]
        env.set_opponents([*self.agents, *self.retired], weights)

    def save(self, folder: Path) -> None:
        """Writes the snapshots, the retired ones too, into a new folder."""
        folder.mkdir(parents=True)
        for snapshot in (*self.snapshots, *self.retired):
            torch.save(snapshot.actor.state_dict(), folder / f"{snapshot.name}.pt")
        index = {
            "baselines": [agent.name for agent in self.baselines],
            "snapshots": [snapshot.step for snapshot in self.snapshots],
            "retired": [snapshot.step for snapshot in self.retired],
        }
        (folder / self.INDEX).write_text(json.dumps(index, indent=1) + "\n")

    def load(self, folder: Path, policy: MaskableActorCriticPolicy) -> None:
        """Takes back what :meth:`save` wrote.

        Args:
            folder: Where it was saved.
            policy: Any policy of the same shape as those saved; its weights do not matter.

        Raises:
            ValueError: The baselines were others.
        """
        index = json.loads((folder / self.INDEX).read_text())
        names = [agent.name for agent in self.baselines]
        if index["baselines"] != names:
            raise ValueError(f"baselines must be {index['baselines']} as saved, got {names}")
        for kind in ("snapshots", "retired"):
            loaded = [PolicySnapshot(policy, step) for step in index[kind]]
            for snapshot in loaded:
                weights = torch.load(folder / f"{snapshot.name}.pt", weights_only=True)
                snapshot.actor.load_state_dict(weights)
            setattr(self, kind, loaded)
