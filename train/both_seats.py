"""Self-play in which both seats learn: an environment and the rollout buffer that belongs to it.

Every decision of either player is a sample. Returns are counted from one side's view, the
*reference* player's, and their sign is turned where somebody else decides, so two decisions running
by one player are right too. SB3's own buffer takes the decisions of one environment for those of
one agent.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from gymnasium.spaces import Discrete
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer

from counterweight_env.envs.duel import Duel, check_reward
from counterweight_env.game import GameBatch
from counterweight_env.observation import observation_space
from counterweight_env.plugins import Agent
from counterweight_env.rules import Rules, as_rules
from train.vec_env import GamesVecEnv

__all__ = ["BOTH_SEATS", "BothSeatsBuffer", "BothSeatsVecEnv"]

#: The opponent's name in the infos of games in which both seats learn.
BOTH_SEATS: Final = "both seats"


class BothSeatsVecEnv(GamesVecEnv):
    """Games in which the learner has both seats, and others in which it has one.

    In the first ``num_envs - num_duels`` games the learner decides for whoever is on turn;
    decisions with one legal action are carried out unasked there. In the remaining ones it plays
    against opponents, as in :class:`~train.vec_env.SelfPlayVecEnv`.

    Rewards are the reference player's: player 0's where both seats learn, else the learner's.
    :attr:`signs` says whose decision comes next. Finished games are dealt anew at once. The infos
    of finished games are as in ``SelfPlayVecEnv``; ``opponent`` is ``"both seats"`` in the first
    games.

    Args:
        num_envs: ``B``, how many games are played at a time.
        rules: A :class:`Rules` or its text.
        num_duels: How many of them are against opponents.
        opponents: Agents or their texts for those.
        weights: One non-negative weight an opponent; even if None.
        reward: ``"outcome"`` or ``"margin"``.
        seed: An int seeds game i with ``seed + i``; None draws from entropy.
        solve_endings: End every game at exhaustion with its exact value as the reward.
        solve_nodes: Positions to look at for one game and turn, at most. A game left open goes on.

    Raises:
        ValueError: An argument is bad; the message names it.
        TypeError: An opponent is no agent.
    """

    def __init__(
        self,
        num_envs: int,
        rules: Rules | str = "classic",
        num_duels: int = 0,
        opponents: Sequence[Agent | str] = ("random",),
        weights: Sequence[float] | None = None,
        reward: str = "outcome",
        seed: int | None = None,
        solve_endings: bool = False,
        solve_nodes: int | None = None,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ValueError(f"num_envs must be a positive int, got {num_envs!r}")
        fits = isinstance(num_duels, int) and not isinstance(num_duels, bool)
        if not fits or not 0 <= num_duels < num_envs:
            raise ValueError(
                f"num_duels must be an int from 0 to {num_envs - 1}, got {num_duels!r}"
            )
        self.rules = as_rules(rules)
        self.reward = check_reward(reward, solve_endings)
        self.games = GameBatch(
            num_envs - num_duels,
            self.rules,
            0,
            solve_endings=solve_endings,
            solve_nodes=solve_nodes,
        )
        self.duel: Duel | None = None
        if num_duels:
            self.duel = Duel(
                num_duels,
                self.rules,
                opponents,
                weights,
                reward=reward,
                seed=0,
                solve_endings=solve_endings,
                solve_nodes=solve_nodes,
            )
        #: Plays the games of both seats out from exhaustion on; nobody asked then learns from it.
        self.ending_player: Agent | None = None
        self._lengths = np.zeros(num_envs, np.int64)
        self._actions: np.ndarray | None = None
        self._started = time.time()
        super().__init__(num_envs, observation_space(self.rules), Discrete(self.rules.num_actions))
        self.seed(seed)

    @property
    def opponents(self) -> list[Agent]:
        """Those drawn for new games, then any others that running games still have."""
        return [] if self.duel is None else list(self.duel.opponents)

    def set_opponents(
        self, opponents: Sequence[Agent | str], weights: Sequence[float] | None = None
    ) -> None:
        """Sets who is drawn for the games dealt from now on; a running game keeps its opponent."""
        if self.duel is not None:
            self.duel.set_opponents(opponents, weights)

    @property
    def unsolved(self) -> int:
        """How often the solver's node limit has let a game go on, since this object was made."""
        return self.games.unsolved + (0 if self.duel is None else self.duel.games.unsolved)

    @property
    def signs(self) -> np.ndarray:
        """(B,) float32, 1 where the reference player decides next, -1 where the other one does."""
        signs = np.ones(self.num_envs, np.float32)
        signs[: len(self.games)] -= 2 * (self.games.to_move == 1)
        return signs

    def _observe(self) -> np.ndarray:
        parts = [self.games.observe()]
        if self.duel is not None:
            parts.append(self.duel.observe())
        return np.concatenate(parts)

    def action_masks(self) -> np.ndarray:
        """(B, A) bool, True = legal for whoever decides."""
        parts = [self.games.legal]
        if self.duel is not None:
            parts.append(self.duel.legal)
        return np.concatenate(parts)

    def reset(self) -> np.ndarray:
        """Deals every game anew, from the seeds of :meth:`seed` if they have not been used yet.

        Returns:
            (B, K) int8 observations, from the side of whoever decides.
        """
        seeds = [seed for seed in self._seeds if seed is not None]
        both = len(self.games)
        self.games.reset(seed=seeds[:both] or None)
        if self.duel is not None:
            self.duel.reset(seed=seeds[both:] or None)
        self._reset_seeds()
        self._reset_options()
        self._actions = None
        self._lengths[:] = 0
        self._go_on(np.zeros(both, np.float32), np.zeros(both, np.bool_))
        return self._observe()

    def _go_on(self, rewards: np.ndarray, ended: np.ndarray) -> dict[int, np.ndarray]:
        """Deals anew and plays forced moves until somebody has a choice in every game.

        Adds what ends to `rewards` and `ended`; returns the last observations of what ended.
        """
        games = self.games
        last: dict[int, np.ndarray] = {}
        while True:
            done = np.flatnonzero(games.done)
            if done.size:
                payoffs = games.returns if self.reward == "outcome" else games.margins
                # A game can end in forced moves as soon as it has begun: the first end counts.
                first = done[~ended[done]]
                rewards[first] = payoffs[first, 0]
                ended[first] = True
                last.update(zip(first.tolist(), games.observe()[first], strict=True))
                games.reset(done)
            legal = games.state["legal"]
            forced = np.flatnonzero(legal & (legal - np.uint64(1)) == 0)
            if forced.size:
                games.step(np.log2(legal[forced].astype(np.float64)).astype(np.int64), rows=forced)
                continue
            late = np.flatnonzero(games.exhausted)
            if self.ending_player is None or late.size == 0:
                return last
            games.step(self.ending_player.act(games.views(rows=late)), rows=late)

    def step_async(self, actions: np.ndarray) -> None:
        """Takes the actions (B,), to be carried out by :meth:`step_wait`."""
        self._actions = np.array(actions)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Carries out the actions and what is forced, and deals finished games anew.

        Returns:
            Observations (B, K) int8, rewards (B,) float32 of the reference player, whether a game
            ended (B,) bool, infos.

        Raises:
            RuntimeError: No actions were given by :meth:`step_async`.
            IllegalActionError: An action is illegal.
        """
        if self._actions is None:
            raise RuntimeError("step_wait() was called without step_async(actions)")
        actions, self._actions = self._actions, None
        both = len(self.games)
        rewards = np.zeros(self.num_envs, np.float32)
        dones = np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self._lengths += 1
        self.games.step(actions[:both])
        last = self._go_on(rewards[:both], dones[:both])
        for row, observation in last.items():
            infos[row] = self._info(row, observation, rewards[row], BOTH_SEATS)
        if self.duel is not None:
            rewards[both:], dones[both:], ended = self.duel.step_autoreset(actions[both:])
            for row, observation, opponent in zip(
                (ended.rows + both).tolist(),
                ended.observation,
                ended.opponent.tolist(),
                strict=True,
            ):
                name = self.duel.opponents[opponent].name
                infos[row] = self._info(row, observation, rewards[row], name)
        self._lengths[dones] = 0
        return self._observe(), rewards, dones, infos

    def _info(
        self, row: int, observation: np.ndarray, reward: float, opponent: str
    ) -> dict[str, Any]:
        return {
            "terminal_observation": observation.copy(),
            "TimeLimit.truncated": False,
            "episode": {
                "r": float(reward),
                "l": int(self._lengths[row]),
                "t": round(time.time() - self._started, 6),
            },
            "opponent": opponent,
        }

    def get_state(self) -> dict[str, np.ndarray]:
        """Everything but the opponents, as arrays: what an exact continuation needs."""
        state = {"both_seats": self.games.state.copy(), "lengths": self._lengths.copy()}
        if self.duel is not None:
            state.update(self.duel.get_state())
        return state

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        """Takes back what :meth:`get_state` gave; a seed that waits for ``reset`` is forgotten.

        Raises:
            ValueError: The arrays do not fit this environment.
        """
        for name, own in (("both_seats", self.games.state), ("lengths", self._lengths)):
            if state[name].shape != own.shape:
                raise ValueError(f"{name} must have shape {own.shape}, got {state[name].shape}")
        self.games.state[:] = state["both_seats"]
        self._lengths[:] = state["lengths"]
        if self.duel is not None:
            self.duel.set_state(state)
        self._actions = None
        self._reset_seeds()


class BothSeatsBuffer(MaskableRolloutBuffer):
    """SB3's rollout buffer for :class:`BothSeatsVecEnv`, with values turned to one player's side.

    :attr:`env` must be set before the first rollout. Returns and advantages are those of whoever
    decided, by generalized advantage estimation (Schulman et al., 2016) on the reference player's
    values.
    """

    env: BothSeatsVecEnv

    def reset(self) -> None:
        """Empties the buffer for the next rollout."""
        super().reset()
        self.signs = np.ones((self.buffer_size, self.n_envs), np.float32)
        if hasattr(self, "env"):
            self._next_signs = self.env.signs

    def add(self, *args: Any, **kwargs: Any) -> None:
        """As SB3's; the environment has already moved on to the next decision."""
        self.signs[self.pos] = self._next_signs
        self._next_signs = self.env.signs
        super().add(*args, **kwargs)

    def compute_returns_and_advantage(self, last_values: torch.Tensor, dones: np.ndarray) -> None:
        """As SB3's, on values from the reference player's side.

        Args:
            last_values: (B,) or (B, 1), of the decisions after the last ones here.
            dones: (B,) bool, whether the last decisions ended their games.
        """
        values = self.values * self.signs
        next_values = last_values.clone().cpu().numpy().flatten() * self._next_signs
        goes_on = 1.0 - dones.astype(np.float32)
        advantage = np.zeros(self.n_envs, np.float32)
        for step in reversed(range(self.buffer_size)):
            delta = self.rewards[step] + self.gamma * next_values * goes_on - values[step]
            advantage = delta + self.gamma * self.gae_lambda * goes_on * advantage
            self.advantages[step] = advantage * self.signs[step]
            next_values = values[step]
            goes_on = 1.0 - self.episode_starts[step]
        self.returns = self.advantages + self.values
