"""The game for Stable-Baselines3: a ``VecEnv`` over one batch of games."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from stable_baselines3.common.vec_env import VecEnv

from counterweight_env.envs.duel import Duel, Ended
from counterweight_env.observation import observation_space
from counterweight_env.plugins import Agent
from counterweight_env.rules import Rules, as_rules
from counterweight_env.speed import CountingAgent, Play, Workload

__all__ = ["GamesVecEnv", "SelfPlayVecEnv", "collection_workload"]


class GamesVecEnv(VecEnv):
    """What SB3 asks of single environments, answered for one batch of games."""

    render_mode = None

    def action_masks(self) -> np.ndarray:
        """(B, A) bool, True = legal for the learner."""
        raise NotImplementedError

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seeds game i of the next ``reset`` with ``seed + i``; None draws the seeds from entropy.

        Raises:
            ValueError: ``seed`` is no int or negative.
        """
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        try:
            first = index(seed)
        except TypeError:
            raise ValueError(f"seed must be an int, got {seed!r}") from None
        if first < 0:
            raise ValueError(f"seed must not be negative, got {first}")
        self._seeds = [first + i for i in range(self.num_envs)]
        return self._seeds

    def close(self) -> None:
        """Nothing is held that needs closing."""

    def has_attr(self, attr_name: str) -> bool:
        """Whether :meth:`get_attr` knows the name."""
        return hasattr(self, attr_name)

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """The attribute of this object, once for each game asked for.

        Raises:
            AttributeError: There is no such attribute.
        """
        value = getattr(self, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(
        self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None
    ) -> None:
        """Sets an attribute of this object, which all games share.

        Raises:
            ValueError: ``indices`` leaves games out.
        """
        if set(self._get_indices(indices)) != set(range(self.num_envs)):
            raise ValueError(f"games share {attr_name!r}: indices must be None, got {indices!r}")
        setattr(self, attr_name, value)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: int | Iterable[int] | None = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Calls a method of the single games: ``action_masks``, which gives (A,) bool for each.

        Raises:
            AttributeError: The method is another one.
        """
        if method_name != "action_masks":
            raise AttributeError(
                f"the games of {type(self).__name__} have the method 'action_masks', "
                f"not {method_name!r}"
            )
        masks = self.action_masks(*method_args, **method_kwargs)
        return list(masks) if indices is None else [masks[i] for i in self._get_indices(indices)]

    def env_is_wrapped(
        self, wrapper_class: type, indices: int | Iterable[int] | None = None
    ) -> list[bool]:
        """False for every game asked for: there are no single environments to wrap."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[np.ndarray | None]:
        """None for every game: this environment does not draw."""
        return [None] * self.num_envs


class SelfPlayVecEnv(GamesVecEnv):
    """One :class:`~counterweight_env.envs.duel.Duel` as an SB3 ``VecEnv``.

    The learner holds one seat of every game and an opponent the other; opponents move inside
    ``reset`` and ``step``. A game's reward arrives on the learner's last transition, also when the
    opponent's move ends it: the loser sees the loss. Finished games are dealt anew at once.
    Whatever is returned is the caller's; it is never a view of a buffer of this object.

    The infos of running games are empty. That of a finished one holds

    * ``terminal_observation``: (K,) int8, from the learner's side;
    * ``TimeLimit.truncated``: False, since games end by the rules;
    * ``episode``: ``r``, the sum of rewards, ``l``, the learner's decisions, and ``t``, seconds
      since this object was made; SB3 logs the first two as ``ep_rew_mean`` and ``ep_len_mean``;
    * ``opponent``: the opponent's name.

    Args:
        num_envs: ``B``, how many games are played at a time.
        rules: A :class:`Rules` or its text.
        opponents: Agents or their texts. Each game draws one when it is dealt and keeps it.
        weights: One non-negative weight an opponent; even if None.
        seat: The learner's: 0, 1 or ``"random"``.
        reward: ``"outcome"`` or ``"margin"``.
        seed: An int seeds game i with ``seed + i``; None draws from entropy.
        solve_endings: End every game at exhaustion with its exact value as the reward; see
            :class:`~counterweight_env.game.GameBatch`. Not with ``reward="margin"``.
        solve_nodes: Positions to look at for one game and turn, at most.

    Raises:
        ValueError: An argument is bad; the message names it.
        TypeError: An opponent is no agent.
    """

    def __init__(
        self,
        num_envs: int,
        rules: Rules | str = "classic",
        opponents: Sequence[Agent | str] = ("random",),
        weights: Sequence[float] | None = None,
        seat: int | str = "random",
        reward: str = "outcome",
        seed: int | None = None,
        solve_endings: bool = False,
        solve_nodes: int | None = None,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, (int, np.integer)):
            raise ValueError(f"num_envs must be an int, got {num_envs!r}")
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        self.rules = as_rules(rules)
        self._duel = Duel(
            int(num_envs),
            self.rules,
            opponents,
            weights,
            seat,
            reward,
            seed,
            solve_endings=solve_endings,
            solve_nodes=solve_nodes,
        )
        self._episode_returns = np.zeros(num_envs, np.float32)
        self._episode_lengths = np.zeros(num_envs, np.int64)
        self._actions: np.ndarray | None = None
        self._started = time.time()
        super().__init__(
            int(num_envs), observation_space(self.rules), Discrete(self.rules.num_actions)
        )
        if seed is not None:
            self.seed(seed)

    @property
    def opponents(self) -> list[Agent]:
        """Those drawn for new games, then any others that running games still have."""
        return list(self._duel.opponents)

    @property
    def opponent_of(self) -> np.ndarray:
        """(B,) int64, each game's opponent as an index into :attr:`opponents`."""
        return self._duel.opponent_of.copy()

    @property
    def seats(self) -> np.ndarray:
        """(B,) int8, the learner's seat in each game."""
        return self._duel.seats.copy()

    @property
    def unsolved(self) -> int:
        """How often ``solve_nodes`` has let a game go on, since this object was made."""
        return self._duel.games.unsolved

    def set_opponents(
        self, opponents: Sequence[Agent | str], weights: Sequence[float] | None = None
    ) -> None:
        """Sets who is drawn for the games dealt from now on; a running game keeps its opponent.

        Raises:
            ValueError: There are no opponents, or the weights do not fit.
            TypeError: An opponent is no agent.
        """
        self._duel.set_opponents(opponents, weights)

    # --- The course of training -----------------------------------------------------------------

    def reset(self) -> np.ndarray:
        """Deals every game anew, from the seeds of :meth:`seed` if they have not been used yet.

        Returns:
            (B, K) int8 observations, from the learner's side.
        """
        seeds = [seed for seed in self._seeds if seed is not None]
        self._duel.reset(seed=seeds or None)
        self._reset_seeds()
        self._reset_options()
        self._actions = None
        self._episode_returns[:] = 0
        self._episode_lengths[:] = 0
        return self._duel.observe()

    def action_masks(self) -> np.ndarray:
        """(B, A) bool, True = legal for the learner."""
        return self._duel.legal

    def step_async(self, actions: np.ndarray) -> None:
        """Takes the learner's actions (B,), to be carried out by :meth:`step_wait`."""
        self._actions = np.array(actions)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Carries out the actions and the opponents' replies, and deals finished games anew.

        Returns:
            Observations (B, K) int8, rewards (B,) float32, whether a game ended (B,) bool, infos.

        Raises:
            RuntimeError: No actions were given by :meth:`step_async`.
            IllegalActionError: An action is illegal; no game has moved.
        """
        if self._actions is None:
            raise RuntimeError("step_wait() was called without step_async(actions)")
        actions, self._actions = self._actions, None
        rewards, dones, ended = self._duel.step_autoreset(actions)
        self._episode_returns += rewards
        self._episode_lengths += 1
        infos = self._infos(ended)
        self._episode_returns[ended.rows] = 0
        self._episode_lengths[ended.rows] = 0
        return self._duel.observe(), rewards, dones, infos

    def _infos(self, ended: Ended) -> list[dict[str, Any]]:
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        seconds = round(time.time() - self._started, 6)
        for row, observation, opponent in zip(
            ended.rows.tolist(), ended.observation, ended.opponent.tolist(), strict=True
        ):
            infos[row] = {
                "terminal_observation": observation.copy(),
                "TimeLimit.truncated": False,
                "episode": {
                    "r": float(self._episode_returns[row]),
                    "l": int(self._episode_lengths[row]),
                    "t": seconds,
                },
                "opponent": self._duel.opponents[opponent].name,
            }
        return infos

    # --- State ----------------------------------------------------------------------------------

    def get_state(self) -> dict[str, np.ndarray]:
        """Everything but the opponents, as arrays: what an exact continuation needs."""
        return {
            **self._duel.get_state(),
            "episode_returns": self._episode_returns.copy(),
            "episode_lengths": self._episode_lengths.copy(),
        }

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        """Takes back what :meth:`get_state` gave; a seed that waits for ``reset`` is forgotten.

        :attr:`opponents` must be the same, in the same order, as when the state was taken.

        Raises:
            ValueError: The arrays do not fit this environment.
        """
        for name, own in (
            ("episode_returns", self._episode_returns),
            ("episode_lengths", self._episode_lengths),
        ):
            if state[name].shape != own.shape:
                raise ValueError(f"{name} must have shape {own.shape}, got {state[name].shape}")
        self._duel.set_state(state)
        self._episode_returns[:] = state["episode_returns"]
        self._episode_lengths[:] = state["episode_lengths"]
        self._actions = None
        self._reset_seeds()


def collection_workload(rules: Rules | str, batch: int) -> Workload:
    """For ``counterweight speed``: stepping with masks against ``random``, as SB3 collects."""

    def make() -> Play:
        opponent = CountingAgent("random")
        env = SelfPlayVecEnv(batch, rules, [opponent], seed=0)
        env.reset()
        games = env._duel.games

        def play(steps: int) -> tuple[int, int]:
            ended = 0
            before = opponent.decisions
            for _ in range(steps):
                np.stack(env.env_method("action_masks"))
                _, _, dones, _ = env.step(games.random_actions())
                ended += int(dones.sum())
            return batch * steps + opponent.decisions - before, ended

        return play

    return Workload("SelfPlayVecEnv", as_rules(rules), batch, make)
