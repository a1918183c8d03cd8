"""Whole games through other people's wrappers: no illegal action, and the game's own payoffs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import counterweight_env as cw
from train import usage
from train.arena_commands import add_arena
from train.rllib_command import add_train_rllib
from train.usage import UsageError

ENV_ID = "Counterweight-v0"


def make_one(rules: str = "classic") -> Any:
    return gym.make(ENV_ID, rules=rules)


def lowest(mask: np.ndarray) -> int:
    return int(np.flatnonzero(mask)[0])


def plain_returns(seed: int, games: int, rules: str = "classic") -> list[float]:
    """The payoffs of one unwrapped environment, always taking the lowest legal action."""
    env = make_one(rules).unwrapped
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


def test_sb3s_wrappers_see_the_payoffs_and_the_length() -> None:
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor

    envs = VecMonitor(VecFrameStack(DummyVecEnv([make_one, make_one]), 2))
    envs.seed(5)
    observations = envs.reset()
    bits = make_one().observation_space.shape[0]
    assert observations.shape == (2, 2 * bits)
    steps = [0, 0]
    found: list[list[float]] = [[], []]
    while min(map(len, found)) < 2:
        masks = envs.env_method("action_masks")
        _, rewards, dones, infos = envs.step(np.array([lowest(mask) for mask in masks]))
        for slot in (0, 1):
            steps[slot] += 1
            if dones[slot]:
                assert infos[slot]["episode"]["r"] == rewards[slot]
                assert infos[slot]["episode"]["l"] == steps[slot]
                found[slot].append(float(rewards[slot]))
                steps[slot] = 0
    assert [kept[:2] for kept in found] == [plain_returns(5 + slot, 2) for slot in (0, 1)]


def test_maskable_ppo_learns_through_sb3s_own_vector_environment() -> None:
    """An illegal action would be an error of the environment."""
    sb3_contrib = pytest.importorskip("sb3_contrib")
    from sb3_contrib.common.wrappers import ActionMasker

    rules = "exchange(ranks=6,suits=2,hand_size=3)"
    env = ActionMasker(make_one(rules), lambda env: env.unwrapped.action_masks())
    model = sb3_contrib.MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=32, seed=3)
    model.learn(128)
    assert model.num_timesteps == 128
    assert len(model.ep_info_buffer) > 3


@pytest.mark.skipif(
    gym.__version__.startswith("1.2"), reason="counts a step too few after each autoreset"
)
@pytest.mark.parametrize("rules", ["classic", "exchange"])
def test_gymnasiums_vector_statistics_are_the_games_own(rules: str) -> None:
    games = 3
    envs = gym.wrappers.vector.RecordEpisodeStatistics(
        gym.make_vec(ENV_ID, num_envs=2, rules=rules)
    )
    _, infos = envs.reset(seed=5)
    found: list[list[float]] = [[], []]
    steps = np.zeros(2, int)
    while min(map(len, found)) < games:
        actions = np.array([lowest(mask) for mask in infos["action_mask"]])
        _, rewards, terminations, _, infos = envs.step(actions)
        steps += 1
        for slot in np.flatnonzero(terminations):
            assert infos["episode"]["r"][slot] == rewards[slot]
            assert infos["episode"]["l"][slot] == steps[slot]
            found[slot].append(float(rewards[slot]))
            steps[slot] = 0
    kept = [results[:games] for results in found]
    assert kept == [plain_returns(5 + slot, games, rules) for slot in (0, 1)]


SINGLE_WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "statistics": gym.wrappers.RecordEpisodeStatistics,
    "dtype": lambda env: gym.wrappers.DtypeObservation(env, np.float32),
    "frame_stack": lambda env: gym.wrappers.FrameStackObservation(env, 3),
    "flatten": gym.wrappers.FlattenObservation,
}


@pytest.mark.parametrize("wrapper", SINGLE_WRAPPERS)
def test_gymnasiums_wrappers_leave_masks_and_payoffs(wrapper: str) -> None:
    env = SINGLE_WRAPPERS[wrapper](make_one())
    observation, info = env.reset(seed=5)
    done = False
    while not done:
        assert env.observation_space.contains(observation)
        observation, reward, done, _, info = env.step(lowest(info["action_mask"]))
    assert [reward] == plain_returns(5, 1)


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


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("wrapper", ["dtype_v0", "frame_stack_v1", "agent_indicator_v0"])
def test_supersuit_refuses_the_dict_observation(wrapper: str) -> None:
    """The table says so; if it changes, so must the table."""
    ss = pytest.importorskip("supersuit")
    arguments = {"dtype_v0": [np.float32], "frame_stack_v1": [3]}.get(wrapper, [])
    with pytest.raises((AssertionError, AttributeError)):
        getattr(ss, wrapper)(cw.env(), *arguments)


@pytest.mark.parametrize(
    ("arguments", "module", "extra"),
    [
        (["train-rllib"], "ray", "rllib"),
        (["arena", "random", "greedy", "--ray", "auto"], "ray", "rllib"),
    ],
)
def test_a_missing_extra_is_named(
    arguments: list[str], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "find_spec", lambda name: None if name == module else object())
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    add_train_rllib(subparsers)
    add_arena(subparsers)
    parsed = parser.parse_args(arguments)
    with pytest.raises(UsageError, match=rf"needs {module}: pip install .*\[{extra}\]"):
        parsed.run(parsed)
