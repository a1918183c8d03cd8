"""The network that is trained: :class:`MovePolicy`, a policy for SB3's ``MaskablePPO``.

Every legal move is scored by the same multilayer perceptron from its row of :mod:`agents.moves`;
the mean of the moves' last hidden layers gives the value. Moves before and after exhaustion have
scorers of their own. An action's logit gathers all moves that begin with it: choosing the left card
of a couple and then its partner is the same as choosing the couple by the softmax of the scores.
Since rows do not change when suits are renamed, ranks flipped or left and right swapped, neither
does the network's play.

The policy reads nothing but the public observation, so a trained model works in every environment
here, and :meth:`MovePolicy.to_network` gives :class:`agents.policy.Policy` the same network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.distributions import MaskableDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from agents.moves import ENDING, OPENING, WIDTH, count_moves, list_moves
from agents.policy import Network, scorer_of
from counterweight_env.cards import rule_table
from counterweight_env.kernels import OVER, STATE, WAIT, kernel
from counterweight_env.observation import decode, encoder_offsets
from counterweight_env.rules import Rules, as_rules

__all__ = ["MoveNet", "MovePolicy", "MoveRows", "describe_observations"]

ILLEGAL: Final = -1e8


# --- Rows of moves ------------------------------------------------------------------------------


@kernel
def decode_rows(observations, tables, offsets, games, counts):
    """Reads observations back into records and counts the moves of each; returns their sum."""
    total = 0
    for i in range(games.size):
        decode(observations[i], tables[0], offsets, games[i])
        counts[i] = 0
        if games[i]["phase"] != WAIT and games[i]["phase"] != OVER:
            counts[i] = count_moves(games[i], tables[0], 0)
        total += counts[i]
    return total


@kernel
def describe_records(games, tables, counts, owners, actions, scorers, rows):
    """Writes the rows of all moves one after the other, with the position that each belongs to."""
    start = 0
    for i in range(games.size):
        scorers[i] = scorer_of(games[i])
        stop = start + counts[i]
        if counts[i] > 0:
            list_moves(games[i], tables[0], 0, actions[start:stop], rows[start:stop])
        owners[start:stop] = i
        start = stop


class MoveRows:
    """All moves of a batch of positions, one after the other.

    Attributes:
        rows: (M, WIDTH) float32, as :func:`agents.moves.list_moves` writes them.
        owners: (M,) int64, the position that each move belongs to.
        actions: (M,) int64, the action that begins each move.
        scorers: (B,) int64, 0 for positions before, 1 after exhaustion.
    """

    def __init__(
        self, rows: np.ndarray, owners: np.ndarray, actions: np.ndarray, scorers: np.ndarray
    ) -> None:
        self.rows = torch.from_numpy(rows)
        self.owners = torch.from_numpy(owners)
        self.actions = torch.from_numpy(actions)
        self.scorers = torch.from_numpy(scorers)


def describe_observations(observations: np.ndarray, rules: Rules) -> MoveRows:
    """Lists the moves of the player who observes.

    Args:
        observations: (B, K) int8.
        rules: The rules they were made under.
    """
    table = rule_table(rules)
    games = np.zeros(len(observations), STATE)
    counts = np.empty(len(observations), np.int64)
    total = decode_rows(observations, table, encoder_offsets(rules), games, counts)
    owners = np.empty(total, np.int64)
    actions = np.empty((total, 2), np.int64)
    scorers = np.empty(len(observations), np.int64)
    rows = np.empty((total, WIDTH), np.float32)
    describe_records(games, table, counts, owners, actions, scorers, rows)
    return MoveRows(rows, owners, actions[:, 0].copy(), scorers)


# --- The network --------------------------------------------------------------------------------


class Scorer(nn.Module):
    """Scores moves by their rows: two hidden layers, a score, and a value from their mean.

    Args:
        features: Columns of a row that count; the first ones.
        hidden: Width of the hidden layers.
    """

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.features = features
        self.hidden_1 = nn.Linear(features, hidden)
        self.hidden_2 = nn.Linear(hidden, hidden)
        self.score = nn.Linear(hidden, 1)
        self.value = nn.Linear(hidden, 1)
        with torch.no_grad():
            for head in (self.score, self.value):
                head.weight.mul_(0.1)
                head.bias.zero_()

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(M, WIDTH) rows to (M,) scores and (M, H) last hidden layers."""
        hidden = torch.relu(self.hidden_1(rows[:, : self.features]))
        hidden = torch.relu(self.hidden_2(hidden))
        return self.score(hidden)[:, 0], hidden


class MoveNet(nn.Module):
    """The two scorers, and what makes logits and values of their scores.

    Args:
        hidden: Width of the hidden layers.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.opening = Scorer(len(OPENING), hidden)
        self.ending = Scorer(len(ENDING), hidden)

    def forward(self, moves: MoveRows) -> tuple[torch.Tensor, torch.Tensor]:
        """The score of every move (M,) and the value of every position (B,), from -1 to 1."""
        positions = len(moves.scorers)
        late = moves.scorers[moves.owners]
        scores = torch.zeros(len(moves.owners), dtype=moves.rows.dtype)
        values = torch.zeros(positions, dtype=moves.rows.dtype)
        counts = torch.bincount(moves.owners, minlength=positions).clamp(min=1)
        for number, scorer in enumerate((self.opening, self.ending)):
            which = torch.nonzero(late == number)[:, 0]
            if len(which) == 0:
                continue
            score, hidden = scorer(moves.rows[which])
            scores = scores.index_put((which,), score)
            sums = torch.zeros(positions, hidden.shape[1], dtype=hidden.dtype)
            means = sums.index_add(0, moves.owners[which], hidden) / counts[:, None]
            value = torch.tanh(scorer.value(means)[:, 0])
            values = torch.where(moves.scorers == number, value, values)
        return scores, values


def action_logits(scores: torch.Tensor, moves: MoveRows, num_actions: int) -> torch.Tensor:
    """(B, A) logits: the log of the sum of the exponentials of all moves that an action begins."""
    positions = len(moves.scorers)
    most = torch.full((positions,), ILLEGAL, dtype=scores.dtype)
    most = most.scatter_reduce(0, moves.owners, scores.detach(), "amax")
    place = moves.owners * num_actions + moves.actions
    sums = torch.zeros(positions * num_actions, dtype=scores.dtype)
    sums = sums.index_add(0, place, torch.exp(scores - most[moves.owners]))
    sums = sums.view(positions, num_actions)
    legal = sums > 0
    return torch.where(legal, torch.log(torch.where(legal, sums, 1.0)) + most[:, None], ILLEGAL)


# --- The policy for SB3 -------------------------------------------------------------------------


class MovePolicy(MaskableActorCriticPolicy):
    """Actor and critic for ``MaskablePPO`` over the flat observation.

    Args:
        observation_space: That of any environment here.
        action_space: Its ``Discrete`` space.
        lr_schedule: As SB3 passes it.
        rules: The rules of the environment, or their text.
        hidden: Width of the hidden layers.
        kwargs: Further arguments of ``MaskableActorCriticPolicy``; ``net_arch`` has no effect.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Any,
        rules: Rules | str = "classic",
        hidden: int = 64,
        **kwargs: Any,
    ) -> None:
        self.rules = as_rules(rules)
        self.hidden = hidden
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Any) -> None:
        self.move_net = MoveNet(self.hidden)
        options: dict[str, Any] = {"lr": lr_schedule(1), **self.optimizer_kwargs}
        self.optimizer = self.optimizer_class(self.move_net.parameters(), **options)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            **super()._get_constructor_parameters(),
            "rules": str(self.rules),
            "hidden": self.hidden,
        }

    def _look(self, obs: Any) -> tuple[MaskableDistribution, torch.Tensor]:
        array = obs.detach().cpu().numpy().astype(np.int8, copy=False)
        moves = describe_observations(array, self.rules)
        scores, values = self.move_net(moves)
        logits = action_logits(scores, moves, self.rules.num_actions)
        distribution: Any = self.action_dist.proba_distribution(action_logits=logits)
        return distribution, values[:, None]

    def forward(
        self, obs: Any, deterministic: bool = False, action_masks: np.ndarray | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """As the base class: actions, values and log-probabilities.

        The network gives illegal actions no weight, with and without ``action_masks``.
        """
        distribution, values = self._look(obs)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, values, distribution.log_prob(actions)

    def evaluate_actions(
        self, obs: Any, actions: torch.Tensor, action_masks: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """As the base class: values, log-probabilities and entropies."""
        distribution, values = self._look(obs)
        return values, distribution.log_prob(actions), distribution.entropy()

    def get_distribution(
        self, obs: Any, action_masks: np.ndarray | None = None
    ) -> MaskableDistribution:
        """As the base class."""
        return self._look(obs)[0]

    def predict_values(self, obs: Any) -> torch.Tensor:
        """As the base class: (B, 1)."""
        return self._look(obs)[1]

    def to_network(self, **manifest: Any) -> Network:
        """The network as it is now, for :class:`agents.policy.Policy` and its files.

        Args:
            manifest: What the file is to say beyond the rules and sizes.
        """
        return network_of(self.move_net, str(self.rules), **manifest)


def network_of(net: MoveNet, rules: str, **manifest: Any) -> Network:
    """The numbers of a :class:`MoveNet` as a :class:`Network`."""
    arrays = {}
    for name, tensor in net.state_dict().items():
        array = tensor.detach().cpu().numpy().astype(np.float32)
        arrays[name] = np.ascontiguousarray(array.T)
    return Network(arrays, {"rules": rules, "hidden": net.hidden, **manifest})


def load_into(net: MoveNet, arrays: Mapping[str, np.ndarray]) -> None:
    """Puts the numbers of a :class:`Network` into a :class:`MoveNet` of the same width."""
    net.load_state_dict({name: torch.from_numpy(array.T.copy()) for name, array in arrays.items()})
