"""Whole games through other people's wrappers: no illegal action, and the game's own payoffs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import counterweight_env as cw

ENV_ID = "Counterweight-v0"


def make_one(rules: str = "classic") -> Any:
    return gym.make(ENV_ID, rules=rules)


def lowest(mask: np.ndarray) -> int:
    return int(np.flatnonzero(mask)[0])


def plain_returns(seed: int, games: int) -> list[float]:
    """The payoffs of one unwrapped environment, always taking the lowest legal action."""
    env = make_one().unwrapped
    found = []
    for game in range(games):
        _, info = env.reset(seed=seed if game == 0 else None)
        done = False
        while not done:
            _, reward, done, _, info = env.step(lowest(info["action_mask"]))
        found.append(reward)
    return found


@pytest.mark.parametrize("kind", ["dummy", "subprocess"])
def test_sb3_vector_environments_play_whole_games(kind: str) -> None:
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    makers = [make_one, make_one]
    envs = DummyVecEnv(makers) if kind == "dummy" else SubprocVecEnv(makers, "spawn")
    try:
        envs.seed(5)
        envs.reset()
        found: list[list[float]] = [[], []]
        while min(map(len, found)) < 2:
            masks = envs.env_method("action_masks")
            _, rewards, dones, infos = envs.step(np.array([lowest(mask) for mask in masks]))
            for slot in np.flatnonzero(dones):
                found[slot].append(float(rewards[slot]))
                assert "terminal_observation" in infos[slot]
        assert [kept[:2] for kept in found] == [plain_returns(5 + slot, 2) for slot in (0, 1)]
    finally:
        envs.close()


WRAPPED: dict[str, Callable[[Any], Any]] = {
    "dtype": lambda ss: ss.dtype_v0(make_one(), np.float32),
    "frame_stack": lambda ss: ss.frame_stack_v1(make_one(), 3),
}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("wrapper", WRAPPED)
def test_supersuit_wraps_the_gymnasium_environment(wrapper: str) -> None:
    env = WRAPPED[wrapper](pytest.importorskip("supersuit"))
    observation, info = env.reset(seed=5)
    done = False
    while not done:
        assert env.observation_space.contains(observation)
        observation, reward, done, _, info = env.step(lowest(info["action_mask"]))
    assert [reward] == plain_returns(5, 1)


def flat(ss: Any) -> Any:
    return ss.observation_lambda_v0(
        cw.env(),
        lambda o, space, agent: o["observation"],
        lambda space, agent: space["observation"],
    )


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("stack", [1, 3])
def test_supersuit_wraps_the_aec_environment_once_it_is_flat(stack: int) -> None:
    ss = pytest.importorskip("supersuit")
    env = ss.frame_stack_v1(flat(ss), stack) if stack > 1 else flat(ss)
    game = cw.Game(seed=5)
    env.reset(seed=5)
    totals = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter():
        _, reward, terminated, _, info = env.last()
        totals[agent] += reward
        action = None if terminated else lowest(info["action_mask"])
        if action is not None:
            game.step(action)
        env.step(action)
    assert tuple(totals.values()) == game.returns
