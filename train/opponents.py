"""Whom the learner plays: frozen copies of itself and a pool of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.preprocessing import preprocess_obs

from agents.policy import Network, Policy, load_network
from counterweight_env import ViewBatch
from counterweight_env.plugins import Agent, as_agent
from train.network import MovePolicy

__all__ = ["NetworkSnapshot", "OpponentPool", "PolicySnapshot", "take_snapshot"]


class Env(Protocol):
    """What a pool asks of an environment."""

    @property
    def opponents(self) -> list[Agent]: ...

    def set_opponents(
        self, opponents: Sequence[Agent | str], weights: Sequence[float] | None = None
    ) -> None: ...


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

    def save(self, folder: Path) -> None:
        """Writes the weights into a folder."""
        torch.save(self.actor.state_dict(), folder / f"{self.name}.pt")

    def load(self, folder: Path) -> None:
        """Takes back what :meth:`save` wrote."""
        weights = torch.load(folder / f"{self.name}.pt", weights_only=True)
        self.actor.load_state_dict(weights)


class NetworkSnapshot:
    """An agent that plays a :class:`~train.network.MovePolicy` as it is now, in numba.

    Args:
        policy: The policy to copy.
        step: The training step it was taken at.
    """

    def __init__(self, policy: MovePolicy, step: int = 0) -> None:
        self.step = step
        self.name = f"snapshot-{step}"
        self._play(policy.to_network())

    def _play(self, network: Network) -> None:
        self._network = network
        self._player = Policy.of(network, self.name, temperature=1.0)

    def act(self, views: ViewBatch) -> np.ndarray:
        """Draws a move for the mover of every row; (B,) int64."""
        return self._player.act(views)

    def save(self, folder: Path) -> None:
        """Writes the network into a folder."""
        self._network.save(folder / f"{self.name}.npz")

    def load(self, folder: Path) -> None:
        """Takes back what :meth:`save` wrote."""
        self._play(load_network(folder / f"{self.name}.npz"))


Snapshot = PolicySnapshot | NetworkSnapshot


def take_snapshot(policy: MaskableActorCriticPolicy, step: int) -> Snapshot:
    """A frozen copy of a policy that draws its moves."""
    if isinstance(policy, MovePolicy):
        return NetworkSnapshot(policy, step)
    return PolicySnapshot(policy, step)


class OpponentPool:
    """The baselines, and snapshots of the learner from different times of its training.

    The newest snapshot is the learner's *current self*; the others are *past* selves. New games
    draw the current self, any past self or any baseline in the given shares. Among past selves, and
    among baselines, the harder ones are drawn more often, by the share of its points that the
    learner lost against each lately (after Vinyals et al., 2019). While there is no past self, the
    current self takes that share.

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
    MEMORY: Final = 0.01  # of the score against a snapshot: some hundred games
    LEAST_HARDNESS: Final = 0.05

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
        self.snapshots: list[Snapshot] = []
        #: The learner's score against each snapshot and baseline lately, by name.
        self.scores: dict[str, float] = {}
        #: Snapshots that are drawn no more, but that running games still have.
        self.retired: list[Snapshot] = []
        #: The weights that the environment draws by, which stay while scores change.
        self.installed: list[float] = []

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
        weights = self._shared(share_of["baseline_share"], self.baselines)
        if len(self.snapshots) > 1:
            weights += self._shared(share_of["past_share"], self.snapshots[:-1])
        weights += [share_of["self_share"] for _ in self.snapshots[-1:]]
        total = np.array(weights)
        return total / total.sum()

    def _shared(self, share: float, agents: Sequence[Agent]) -> list[float]:
        """Shares something out among agents by their hardness."""
        hardness = np.array([self.hardness(agent.name) for agent in agents])
        return (share * hardness / hardness.sum()).tolist() if hardness.size else []

    @property
    def newest_step(self) -> int:
        """The training step of the newest snapshot; -1 if there is none."""
        return self.snapshots[-1].step if self.snapshots else -1

    def kind(self, name: str) -> str:
        """What the agent of a name is: a baseline's name, ``"self"`` or ``"past"``."""
        if any(agent.name == name for agent in self.baselines):
            return name
        return "self" if self.snapshots and self.snapshots[-1].name == name else "past"

    def record(self, name: str, scores: Sequence[float]) -> None:
        """Notes how the learner did against an opponent in some games, 0 to 1 each."""
        for score in scores:
            before = self.scores.get(name, 0.5)
            self.scores[name] = before + self.MEMORY * (score - before)

    def hardness(self, name: str) -> float:
        """How much an opponent is to be played, from the score against it: more than 0."""
        return max(1.0 - self.scores.get(name, 0.5), self.LEAST_HARDNESS)

    def add(self, policy: MaskableActorCriticPolicy, step: int) -> Snapshot | None:
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
        self.snapshots.append(take_snapshot(policy, step))
        if len(self.snapshots) <= self.size:
            return None
        steps = np.array([snapshot.step for snapshot in self.snapshots])
        gone = self.snapshots.pop(1 + int((steps[2:] - steps[:-2]).argmin()))
        self.scores.pop(gone.name, None)
        return gone

    def install(self, env: Env) -> None:
        """Gives an environment these opponents for the games dealt from now on."""
        self.installed = self.weights.tolist()
        env.set_opponents(self.agents, self.installed)
        former = env.opponents[len(self.agents) :]
        self.retired = [agent for agent in former if isinstance(agent, Snapshot)]

    def install_exactly(self, env: Env) -> None:
        """Gives an environment the opponents it had when the pool was saved, ahead of its state."""
        weights = [*self.installed, *[0.0 for _ in self.retired]]
        env.set_opponents([*self.agents, *self.retired], weights)

    def save(self, folder: Path) -> None:
        """Writes the snapshots, the retired ones too, into a new folder."""
        folder.mkdir(parents=True)
        for snapshot in (*self.snapshots, *self.retired):
            snapshot.save(folder)
        index = {
            "scores": self.scores,
            "baselines": [agent.name for agent in self.baselines],
            "snapshots": [snapshot.step for snapshot in self.snapshots],
            "retired": [snapshot.step for snapshot in self.retired],
            "installed": self.installed,
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
            loaded = [take_snapshot(policy, step) for step in index[kind]]
            for snapshot in loaded:
                snapshot.load(folder)
            setattr(self, kind, loaded)
        self.scores = index["scores"]
        self.installed = index["installed"]
