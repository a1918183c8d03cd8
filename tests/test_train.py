"""Training: the SB3 environment, opponents, configuration, checkpoints, and the command."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from helpers import card, cards
from players import Even, First, global_generators_seeded
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.vec_env import VecCheckNan, VecMonitor, VecNormalize

import counterweight_env  # noqa: F401 - registers Counterweight-v0
from agents.policy import load_network
from counterweight_env import Game, GameBatch, IllegalActionError, observation_layout, settle
from train import checkpoint as checkpoints
from train import self_play
from train.checkpoint import CheckpointError
from train.cli import main
from train.config import PRESETS, TrainConfig
from train.evaluate import evaluate
from train.opponents import OpponentPool, PolicySnapshot
from train.vec_env import SelfPlayVecEnv

VARIANTS = ("classic", "exchange")
SMALL = "exchange(ranks=6,suits=2,hand_size=3)"


class Named(Even):
    """An even player of a given name."""

    def __init__(self, name: str) -> None:
        self.name = name


def even_actions(masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a legal action a row."""
    return (masks * rng.random(masks.shape)).argmax(axis=1)


def games_of(env: SelfPlayVecEnv) -> GameBatch:
    """Return a copy of an environment's games."""
    return GameBatch.from_state(env.get_state()["games"], env.rules)


def play(env: Any, steps: int, seed: int = 0) -> list[Any]:
    """Step with even actions; return actions, masks, observations, rewards, dones and infos."""
    rng = np.random.default_rng(seed)
    seen = []
    for _ in range(steps):
        masks = get_action_masks(env)
        actions = even_actions(masks, rng)
        seen.append((actions, masks, *env.step(actions)))
    return seen


def assert_same_play(first: list[Any], second: list[Any]) -> None:
    for one, other in zip(first, second, strict=True):
        for mine, theirs in zip(one[:5], other[:5], strict=True):
            np.testing.assert_array_equal(mine, theirs)
        for info, other_info in zip(one[5], other[5], strict=True):
            assert info.keys() == other_info.keys()
            if info:
                np.testing.assert_array_equal(
                    info["terminal_observation"], other_info["terminal_observation"]
                )
                assert info["opponent"] == other_info["opponent"]
                assert info["episode"]["l"] == other_info["episode"]["l"]


# --- The environment ----------------------------------------------------------------------------


@pytest.mark.parametrize("rules", VARIANTS)
def test_masks_are_the_legal_actions_of_the_learner(rules: str) -> None:
    env = SelfPlayVecEnv(8, rules, [Even()], seed=3)
    env.reset()
    assert is_masking_supported(env)
    rng = np.random.default_rng(3)
    for _ in range(120):
        masks = get_action_masks(env)
        assert masks.shape == (8, env.rules.num_actions)
        assert masks.dtype == np.bool_
        games = games_of(env)
        for row in range(8):
            assert games[row].to_move == env.seats[row]
            assert games[row].legal_actions() == np.flatnonzero(masks[row]).tolist()
        np.testing.assert_array_equal(env.env_method("action_masks", indices=5), masks[[5]])
        np.testing.assert_array_equal(env.env_method("action_masks", indices=[2, 7]), masks[[2, 7]])
        env.step(even_actions(masks, rng))


@pytest.mark.parametrize("rules", [*VARIANTS, SMALL, "classic(ranks=2,suits=4,hand_size=2)"])
@pytest.mark.parametrize("reward", ["outcome", "margin"])
def test_slot_i_plays_what_the_gymnasium_env_of_seed_plus_i_plays(rules: str, reward: str) -> None:
    env = SelfPlayVecEnv(3, rules, [Even()], reward=reward, seed=40)
    singles = [
        gym.make("Counterweight-v0", rules=rules, opponent=Even(), reward=reward) for _ in range(3)
    ]
    observations = env.reset()
    for row, single in enumerate(singles):
        np.testing.assert_array_equal(single.reset(seed=40 + row)[0], observations[row])
    returns, lengths = np.zeros(3), np.zeros(3)
    ended = 0
    for actions, _, observations, rewards, dones, infos in play(env, 150):
        returns += rewards
        lengths += 1
        for row, single in enumerate(singles):
            observation, reward_of_one, terminated, truncated, _ = single.step(actions[row])
            assert (rewards[row], dones[row]) == (np.float32(reward_of_one), terminated)
            assert not truncated
            if terminated:
                ended += 1
                info = infos[row]
                np.testing.assert_array_equal(info["terminal_observation"], observation)
                assert info["terminal_observation"].dtype == np.int8
                assert info["TimeLimit.truncated"] is False
                assert info["episode"]["r"] == pytest.approx(returns[row])
                assert info["episode"]["l"] == lengths[row]
                assert info["opponent"] == "even"
                returns[row] = lengths[row] = 0
                observation, _ = single.reset()
            else:
                assert infos[row] == {}
            np.testing.assert_array_equal(observation, observations[row])
    assert ended > 3


def exhausted_env(hands: tuple[str, str], table: str, opponent: Any) -> SelfPlayVecEnv:
    """One game in an exact position without stock, with the learner in seat 0, to move."""
    game = Game.from_position((cards(hands[0]), cards(hands[1])), cards(table), to_move=0)
    env = SelfPlayVecEnv(1, "classic", [opponent], seat=0, seed=0)
    env.reset()
    state = env.get_state()
    state["games"][:] = game._state
    env.set_state(state)
    return env


# The only couple on TS 3H is TD on TS with 3C on 3H; it leaves the table TD 3C.
LEARNER = "TD 3C AC 2C"


@pytest.mark.parametrize(
    ("theirs", "reward", "left"),
    [
        ("TH 3D", -1.0, 2),  # they answer TH on TD with 3D on 3C and go out (F2, F3)
        ("KH QH AH 2H", 1.0, 2),  # neither side has an answer; two cards against four (F3)
        ("KH QH", 0.0, 2),  # neither has an answer; two against two (F3)
    ],
)
def test_the_learner_sees_the_end_that_follows_its_move(
    theirs: str, reward: float, left: int
) -> None:
    opponent = First()
    env = exhausted_env((LEARNER, theirs), "TS 3H", opponent)
    assert env.env_method("action_masks")[0].nonzero()[0].tolist() == [card("TD")]
    _, rewards, dones, infos = env.step(np.array([card("TD")]))
    assert (rewards[0], dones[0], infos[0]) == (0.0, False, {})
    assert env.env_method("action_masks")[0].nonzero()[0].tolist() == [card("3C")]
    asked = opponent.rows_asked
    observations, rewards, dones, infos = env.step(np.array([card("3C")]))
    assert (rewards[0], dones[0]) == (reward, True)
    assert infos[0]["episode"]["r"] == reward
    assert infos[0]["episode"]["l"] == 2
    if reward < 0:
        assert opponent.rows_asked >= asked + 2  # the opponent's couple ended the game
    last = infos[0]["terminal_observation"]
    assert last[observation_layout("classic")["hand"]].nonzero()[0].tolist() == cards("AC 2C")
    assert last[observation_layout("classic")["hand"]].sum() == left
    # The observation returned is that of the next game.
    assert observations[0][observation_layout("classic")["hand"]].sum() == 6


def test_an_opponent_never_changes_in_the_middle_of_a_game() -> None:
    env = SelfPlayVecEnv(16, SMALL, [Named("a0"), Named("b0")], weights=[1, 3], seed=9)
    env.reset()
    rng = np.random.default_rng(9)
    owner = [env.opponents[i].name for i in env.opponent_of]
    allowed = ["a0", "b0"]
    ended = 0
    for step in range(200):
        if step % 7 == 3:  # far more often than games end
            allowed = [f"a{step}", f"b{step}"]
            env.set_opponents([Named(name) for name in allowed])
        _, _, dones, infos = env.step(even_actions(env.action_masks(), rng))
        now = [env.opponents[i].name for i in env.opponent_of]
        for row in range(16):
            if dones[row]:
                assert infos[row]["opponent"] == owner[row]
                assert now[row] in allowed
                ended += 1
            else:
                assert now[row] == owner[row]
        owner = now
        assert len(env.opponents) <= 16 + 2  # those no game needs are let go
    assert ended > 100


def test_each_game_is_played_by_its_own_opponent() -> None:
    """With First for one half and Last for the other, every reply shows who gave it."""

    class Last:
        name = "last"

        def act(self, views: Any) -> np.ndarray:
            legal = views.legal
            return legal.shape[1] - 1 - legal[:, ::-1].argmax(axis=1)

    env = SelfPlayVecEnv(8, "classic", [First(), Last()], seed=5)
    pure = [SelfPlayVecEnv(8, "classic", [agent], seed=5) for agent in (First(), Last())]
    observations = env.reset()
    answers = [other.reset() for other in pure]
    assert {0, 1} <= set(env.opponent_of.tolist())
    owner = env.opponent_of
    for _ in range(12):  # no game ends that soon
        for row in range(8):
            np.testing.assert_array_equal(observations[row], answers[owner[row]][row])
        observations = env.step(env.action_masks().argmax(axis=1))[0]
        answers = [other.step(other.action_masks().argmax(axis=1))[0] for other in pure]
    assert not np.array_equal(*answers)


def test_weights_are_the_shares_of_new_games() -> None:
    env = SelfPlayVecEnv(4000, SMALL, [First(), Even()], weights=[1, 3], seed=1)
    env.reset()
    share = (env.opponent_of == 0).mean()
    assert abs(share - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)


def test_nothing_returned_is_a_view_of_a_buffer() -> None:
    env = SelfPlayVecEnv(6, SMALL, [Even()], seed=2)
    twin = SelfPlayVecEnv(6, SMALL, [Even()], seed=2)
    observations = env.reset()
    np.testing.assert_array_equal(observations, twin.reset())
    observations[:] = 7
    rng, twin_rng = np.random.default_rng(2), np.random.default_rng(2)
    for _ in range(60):
        masks, twin_masks = get_action_masks(env), get_action_masks(twin)
        np.testing.assert_array_equal(masks, twin_masks)
        actions = even_actions(masks, rng)
        given = env.step(actions)
        expected = twin.step(even_actions(twin_masks, twin_rng))
        for mine, theirs in zip(given[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(mine, theirs)
        actions[:] = -1
        for array in (*given[:3], env.seats, env.opponent_of, *env.get_state().values()):
            array.fill(0) if array.dtype.names else array.fill(1)
        env.action_masks().fill(False)
        for row_mask in env.env_method("action_masks"):
            row_mask.fill(False)
        for info, other in zip(given[3], expected[3], strict=True):
            if info:
                np.testing.assert_array_equal(
                    info["terminal_observation"], other["terminal_observation"]
                )
                info["terminal_observation"].fill(9)
            info["mine"] = True
            assert "mine" not in other
        env.opponents.clear()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"num_envs": 2.0}, "num_envs"),
        ({"num_envs": True}, "num_envs"),
        ({"rules": "poker"}, "poker"),
        ({"opponents": []}, "opponents"),
        ({"opponents": "random"}, "opponents"),
        ({"opponents": ["nobody"]}, "nobody"),
        ({"weights": [1, 2]}, "weights"),
        ({"weights": [-1]}, "weights"),
        ({"weights": [0]}, "weights"),
        ({"seat": 2}, "seat"),
        ({"reward": "money"}, "reward"),
        ({"seed": -1}, "seed"),
        ({"seed": 0.5}, "seed"),
    ],
)
def test_wrong_arguments_are_named(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"num_envs": 2, "opponents": [Even()], **changes}
    with pytest.raises(ValueError, match=message):
        SelfPlayVecEnv(**arguments)


def test_what_is_no_agent_is_refused() -> None:
    with pytest.raises(TypeError, match="agent"):
        SelfPlayVecEnv(2, opponents=[object()])  # type: ignore[list-item]


def test_an_illegal_action_changes_nothing() -> None:
    env = SelfPlayVecEnv(4, "classic", [Even()], seed=6)
    env.reset()
    before = env.get_state()
    actions = env.action_masks().argmax(axis=1)
    wrong = actions.copy()
    wrong[2] = (~env.action_masks()[2]).argmax()
    for bad in (wrong, np.full(4, -1), np.full(4, 54), actions.astype(float), actions[:3]):
        with pytest.raises(IllegalActionError):
            env.step(bad)
        for name, array in env.get_state().items():
            np.testing.assert_array_equal(array, before[name])
    env.step(actions)


def test_a_step_needs_actions() -> None:
    env = SelfPlayVecEnv(1, opponents=[Even()])
    env.reset()
    with pytest.raises(RuntimeError, match="step_async"):
        env.step_wait()


def test_equal_seeds_give_equal_games_whatever_the_number_of_slots() -> None:
    runs = []
    for num_envs in (3, 3, 5):
        env = SelfPlayVecEnv(num_envs, "exchange", [Even(), First()], seed=11)
        observations = [env.reset()[:3]]
        for _ in range(80):
            masks = env.action_masks()
            observations.append(env.step(masks.argmax(axis=1))[0][:3])
        runs.append(np.stack(observations))
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])
    other = SelfPlayVecEnv(3, "exchange", [Even(), First()], seed=12)
    assert not np.array_equal(other.reset(), runs[0][0])
    # seed() before reset() does what the constructor's seed does; without one a reset goes on.
    other.seed(11)
    np.testing.assert_array_equal(other.reset(), runs[0][0])
    assert not np.array_equal(other.reset(), runs[0][0])


def test_global_generators_are_neither_read_nor_changed() -> None:
    states = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        with global_generators_seeded(seed):
            env = SelfPlayVecEnv(4, SMALL, [Even()], seed=3)
            env.reset()
            play(env, 20)
            states.append(env.get_state()["games"])
            env.seed()
            env.reset()
    np.testing.assert_array_equal(states[0], states[1])


def test_state_is_taken_back_exactly() -> None:
    env = SelfPlayVecEnv(8, SMALL, [Even(), First()], seed=4)
    env.reset()
    play(env, 23, seed=1)
    state = env.get_state()
    expected = play(env, 40, seed=2)
    fresh = SelfPlayVecEnv(8, SMALL, [Even(), First()], seed=99)
    fresh.set_state(state)
    assert_same_play(play(fresh, 40, seed=2), expected)
    with pytest.raises(ValueError, match="shape"):
        SelfPlayVecEnv(7, SMALL, [Even(), First()]).set_state(state)
    with pytest.raises(ValueError, match="opponent"):
        SelfPlayVecEnv(8, SMALL, [Even()]).set_state(state)


def test_attributes_and_methods_of_single_games() -> None:
    env = SelfPlayVecEnv(3, "classic", [Even()])
    assert env.has_attr("action_masks")
    assert not env.has_attr("no_such_thing")
    assert env.get_attr("render_mode") == [None, None, None]
    assert env.get_attr("rules", indices=[0, 2]) == [env.rules, env.rules]
    with pytest.raises(AttributeError, match="no_such_thing"):
        env.get_attr("no_such_thing")
    env.set_attr("note", "x")
    assert env.get_attr("note", 1) == ["x"]
    with pytest.raises(ValueError, match="indices"):
        env.set_attr("note", "y", indices=[0])
    with pytest.raises(AttributeError, match="fly"):
        env.env_method("fly")
    assert env.env_is_wrapped(gym.Wrapper) == [False, False, False]
    assert list(env.get_images()) == [None, None, None]
    env.close()


def test_sb3_wrappers_work_on_top() -> None:
    monitored = VecMonitor(SelfPlayVecEnv(8, SMALL, [Even()], seed=7))
    monitored.reset()
    ended = 0
    for step in play(monitored, 60):
        for info in step[-1]:
            if info:
                ended += 1
                assert info["episode"]["r"] in (-1.0, 0.0, 1.0)
                assert info["episode"]["l"] > 0
                assert info["TimeLimit.truncated"] is False
    assert ended > 20
    inner = SelfPlayVecEnv(8, SMALL, [Even()], seed=7)
    normalized = VecCheckNan(VecNormalize(VecMonitor(inner)), raise_exception=True)
    normalized.reset()
    model = MaskablePPO("MlpPolicy", normalized, n_steps=16, batch_size=64, n_epochs=1, seed=0)
    model.learn(256)
    assert model.num_timesteps == 256
    assert len(model.ep_info_buffer) > 0


# --- Opponents ----------------------------------------------------------------------------------


def small_model(rules: str = SMALL, num_envs: int = 8, seed: int = 0) -> MaskablePPO:
    """An untrained model with small nets whose logits are far from even."""
    env = SelfPlayVecEnv(num_envs, rules, [Even()], seed=seed)
    model = MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=16,
        batch_size=64,
        n_epochs=1,
        learning_rate=1e-2,
        policy_kwargs={"net_arch": [16]},
        seed=seed,
    )
    with torch.no_grad():
        model.policy.action_net.weight *= 100
    return model


def views_of(rules: str, num_games: int, seed: int = 0) -> Any:
    games = GameBatch(num_games, rules, seed)
    rng = np.random.default_rng(seed)
    for _ in range(6):
        games.step(even_actions(games.legal, rng))
    return games.views(rows=np.flatnonzero(~games.done))


def test_a_snapshot_does_not_follow_its_policy() -> None:
    model = small_model()
    views = views_of(SMALL, 200)
    snapshot = PolicySnapshot(model.policy, step=5)
    assert snapshot.name == "snapshot-5"
    before = snapshot.act(views)
    weights = [parameter.clone() for parameter in snapshot.actor.parameters()]
    model.learn(1024)
    model.learn(1024)  # a policy that has been trained can be copied too
    np.testing.assert_array_equal(snapshot.act(views), before)
    for parameter, copied in zip(snapshot.actor.parameters(), weights, strict=True):
        assert torch.equal(parameter, copied)
        assert not parameter.requires_grad
    assert not np.array_equal(PolicySnapshot(model.policy).act(views), before)
    assert not any("value" in name for name in snapshot.actor.state_dict())


def test_a_snapshot_draws_as_often_as_its_policy_says() -> None:
    model = small_model()
    views = views_of(SMALL, 100)
    views = views.take(views.legal.sum(axis=1).argmax(keepdims=True))
    legal = views.legal[0]
    assert legal.sum() > 2
    many = 20_000
    copies = views.take(np.zeros(many, np.int64))
    copies.random_bits = np.random.default_rng(8).integers(2**64, size=many, dtype=np.uint64)
    drawn = np.bincount(PolicySnapshot(model.policy).act(copies), minlength=legal.size)
    assert not drawn[~legal].any()
    tensor = torch.as_tensor(views.observation)
    distribution = model.policy.get_distribution(tensor, action_masks=views.legal)
    expected = distribution.distribution.probs[0].detach().numpy().astype(float) * many
    chi_square = ((drawn - expected)[legal] ** 2 / expected[legal]).sum()
    assert chi_square < legal.sum() - 1 + 5 * np.sqrt(2 * (legal.sum() - 1))


def test_a_deterministic_snapshot_plays_what_the_policy_predicts() -> None:
    model = small_model("classic")
    views = views_of("classic", 300)
    snapshot = PolicySnapshot(model.policy, deterministic=True)
    expected, _ = model.predict(views.observation, deterministic=True, action_masks=views.legal)
    np.testing.assert_array_equal(snapshot.act(views), expected)


def test_a_snapshot_plays_row_by_row_and_without_global_generators() -> None:
    model = small_model("exchange")
    views = views_of("exchange", 150)
    snapshot = PolicySnapshot(model.policy)
    torch_state = torch.get_rng_state()
    with global_generators_seeded(3):
        actions = snapshot.act(views)
        assert views.legal[np.arange(len(views)), actions].all()
        singly = [snapshot.act(views.take(np.array([row])))[0] for row in range(len(views))]
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(actions, singly)
    # The random word decides, and nothing else does.
    np.testing.assert_array_equal(snapshot.act(views), actions)
    extremes = views.take(np.arange(len(views)))
    for word in (0, 2**64 - 1):
        extremes.random_bits = np.full(len(views), word, np.uint64)
        assert views.legal[np.arange(len(views)), snapshot.act(extremes)].all()


def test_only_a_maskable_policy_can_be_copied() -> None:
    with pytest.raises(TypeError, match="policy"):
        PolicySnapshot(object())  # type: ignore[arg-type]


def test_the_pool_shares_games_out() -> None:
    policy = small_model().policy
    pool = OpponentPool([Even(), First()], 4, 0.5, 0.3, 0.2)
    np.testing.assert_allclose(pool.weights, [0.5, 0.5])  # no snapshot yet
    pool.add(policy, 0)
    np.testing.assert_allclose(pool.weights, [0.1, 0.1, 0.8])  # no past self yet
    pool.add(policy, 10)
    pool.add(policy, 20)
    np.testing.assert_allclose(pool.weights, [0.1, 0.1, 0.15, 0.15, 0.5])
    names = [agent.name for agent in pool.agents]
    assert names == ["even", "first", "snapshot-0", "snapshot-10", "snapshot-20"]
    assert [pool.kind(name) for name in names] == ["even", "first", "past", "past", "self"]
    assert pool.kind("snapshot-5") == "past"  # retired
    for name in ("even", "snapshot-10"):  # won nearly always: they keep a little
        pool.record(name, [1.0] * 2000)
    np.testing.assert_allclose(pool.scores["even"], 1.0, atol=1e-6)
    seldom = 0.05 / 0.55
    expected = [0.2 * seldom, 0.2 * (1 - seldom), 0.3 * (1 - seldom), 0.3 * seldom, 0.5]
    np.testing.assert_allclose(pool.weights, expected)
    with pytest.raises(ValueError, match="step"):
        pool.add(policy, 20)


def test_the_pool_drops_what_is_closest_to_its_neighbours() -> None:
    policy = small_model().policy
    pool = OpponentPool([Even()], 4)
    dropped = []
    for step in range(0, 100, 10):
        gone = pool.add(policy, step)
        dropped.append(None if gone is None else gone.step)
    # At 40, each of 10, 20 and 30 has neighbours 20 apart, and the oldest goes. At 50, of 0 20 30
    # 40 50, it is 30 and 40; at 60, of 0 20 40 50 60, only 50; and so on.
    assert dropped == [None, None, None, None, 10, 30, 50, 60, 20, 80]
    assert [snapshot.step for snapshot in pool.snapshots] == [0, 40, 70, 90]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([Even()], 1), "size"),
        (([Even()], 4, -0.1, 0.3, 0.2), "self_share"),
        (([Even()], 4, 0.5, float("nan"), 0.2), "past_share"),
        (([Even()], 4, 0.0, 0.0, 0.0), "shares"),
        ((["nobody"], 4), "nobody"),
    ],
)
def test_wrong_pools_are_refused(arguments: Sequence[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OpponentPool(*arguments)


def test_the_pool_is_saved_with_those_that_running_games_still_have(tmp_path: Path) -> None:
    model = small_model(num_envs=32)
    env = model.env
    assert isinstance(env, SelfPlayVecEnv)
    pool = OpponentPool([Even()], 2, 0.6, 0.3, 0.1)
    pool.add(model.policy, 0)
    pool.install(env)
    env.reset()
    for step in (100, 200, 300):
        model.learn(128, reset_num_timesteps=False)
        pool.add(model.policy, step)
        pool.install(env)
    assert pool.retired
    pool.save(tmp_path / "pool")

    fresh = small_model(num_envs=32, seed=1)
    loaded = OpponentPool([Even()], 2, 0.6, 0.3, 0.1)
    loaded.load(tmp_path / "pool", fresh.policy)
    views = views_of(SMALL, 100)
    for kind in ("snapshots", "retired"):
        for mine, theirs in zip(getattr(pool, kind), getattr(loaded, kind), strict=True):
            assert mine.name == theirs.name
            np.testing.assert_array_equal(mine.act(views), theirs.act(views))
    assert isinstance(fresh.env, SelfPlayVecEnv)
    loaded.install_exactly(fresh.env)
    names = [agent.name for agent in env.opponents]
    assert [agent.name for agent in fresh.env.opponents][: len(names)] == names
    fresh.env.set_state(env.get_state())
    assert_same_play(play(fresh.env, 80), play(env, 80))
    with pytest.raises(ValueError, match="baselines"):
        OpponentPool([First()], 2).load(tmp_path / "pool", fresh.policy)


def test_scores_that_have_changed_do_not_change_who_is_drawn_until_the_next_snapshot(
    tmp_path: Path,
) -> None:
    model = small_model(num_envs=8)
    pool = OpponentPool([First(), Even()], 2, 0.1, 0.0, 0.9)
    pool.add(model.policy, 0)
    assert isinstance(model.env, SelfPlayVecEnv)
    pool.install(model.env)
    pool.record(First().name, [1.0] * 100)
    pool.save(tmp_path / "pool")
    fresh = small_model(num_envs=8)
    loaded = OpponentPool([First(), Even()], 2, 0.1, 0.0, 0.9)
    loaded.load(tmp_path / "pool", fresh.policy)
    assert isinstance(fresh.env, SelfPlayVecEnv)
    loaded.install_exactly(fresh.env)
    np.testing.assert_array_equal(fresh.env._duel._cumulative, model.env._duel._cumulative)
    assert loaded.scores == pool.scores
    loaded.install(fresh.env)
    assert fresh.env._duel._cumulative[0] < model.env._duel._cumulative[0]


# --- Configuration ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rules", "poker"),
        ("rules", 3),
        ("reward", "money"),
        ("seed", -1),
        ("seed", 2**32),
        ("seed", 1.5),
        ("total_steps", 0),
        ("num_envs", 0),
        ("num_envs", "many"),
        ("n_steps", True),
        ("batch_size", 1),
        ("batch_size", 1000),
        ("n_epochs", 0),
        ("learning_rate", -1e-3),
        ("final_learning_rate", float("inf")),
        ("ent_coef", "high"),
        ("gamma", 1.1),
        ("gae_lambda", float("nan")),
        ("clip_range", -0.1),
        ("net_arch", ()),
        ("net_arch", (64, 0)),
        ("net_arch", 64),
        ("baselines", ()),
        ("baselines", ("random", "random")),
        ("baselines", (1,)),
        ("self_share", 2.0),
        ("snapshot_every", 0),
        ("pool_size", 1),
        ("checkpoint_every", -5),
        ("keep_checkpoints", 0),
        ("eval_deals", 0),
        ("threads", 0),
        ("endings", 1),
        ("endings", "late"),
        ("both_seats", "yes"),
        ("network", "cnn"),
        ("hidden", 0),
        ("ending_games", -1),
        ("search_games", -1),
        ("search_worlds", 0),
        ("average_decay", 1.5),
        ("select_every", 0),
        ("final_ent_coef", -0.1),
    ],
)
def test_a_bad_field_is_named_with_its_value(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field) as caught:
        TrainConfig(**{field: value})
    assert str(value) in str(caught.value)


def test_solved_endings_do_not_go_with_margins() -> None:
    with pytest.raises(ValueError, match=r"endings.*reward"):
        TrainConfig(endings="exact", reward="margin")


@pytest.mark.parametrize(
    "changes", [{"network": "mlp"}, {"both_seats": False}, {"ending_games": 0}]
)
def test_a_scorer_plays_endings_only_where_there_is_one(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match='endings="scorer" needs'):
        TrainConfig(endings="scorer", **changes)
    TrainConfig(endings="learn", **changes)


def test_the_configuration_is_frozen_and_goes_through_json() -> None:
    config = TrainConfig(
        rules=" exchange( ranks=6, suits=2,hand_size = 3 )", net_arch=(8, 4), gae_lambda=1
    )
    assert config.rules == "exchange(ranks=6,suits=2,hand_size=3)"
    assert TrainConfig.from_json(config.to_json()) == config
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.seed = 1  # type: ignore[misc]
    for bad in ("[1]", "{", '{"colour": 1}', '{"seed": -1}'):
        with pytest.raises(ValueError, match=r"JSON|colour|seed"):
            TrainConfig.from_json(bad)
    other = dataclasses.replace(config, seed=1, n_epochs=9)
    assert config.differences(other) == ["seed: 0, not 1", "n_epochs: 2, not 9"]
    assert config.differences(config) == []


def test_presets_are_valid_and_named() -> None:
    for name in PRESETS:
        assert TrainConfig.preset(name, seed=3).seed == 3
    with pytest.raises(ValueError, match="slow"):
        TrainConfig.preset("slow")
    with pytest.raises(ValueError, match="colour"):
        TrainConfig.preset("quick", colour=1)


# --- Whole runs ---------------------------------------------------------------------------------

TINY = TrainConfig(
    rules=SMALL,
    seed=5,
    total_steps=6 * 256,
    num_envs=16,
    n_steps=16,
    batch_size=64,
    n_epochs=2,
    hidden=16,
    endings="scorer",
    ending_games=16,
    ending_epochs=2,
    select_every=512,
    select_deals=4,
    self_share=0.5,
    past_share=0.3,
    baseline_share=0.2,
    baselines=("random", "greedy"),
    snapshot_every=256,
    pool_size=3,
    checkpoint_every=512,
    eval_deals=30,
)
#: One seat learns, with SB3's plain network, in whole games.
PLAIN = dataclasses.replace(
    TINY,
    network="mlp",
    net_arch=(16, 16),
    both_seats=False,
    endings="learn",
    ending_games=0,
    self_share=0.5,
)


def assert_same_run(first: Path, second: Path) -> None:
    """Compare the ends of two runs bit for bit: model, opponents, games, generators."""
    ends = [checkpoints._checkpoints(run)[0] for run in (first, second)]
    assert ends[0].name == ends[1].name
    models = [MaskablePPO.load(end / "model.zip") for end in ends]
    for attribute in ("num_timesteps", "_n_updates", "_last_obs", "_last_episode_starts"):
        np.testing.assert_array_equal(*[getattr(model, attribute) for model in models])
    rewards = [[info["r"] for info in model.ep_info_buffer] for model in models]
    assert rewards[0] == rewards[1]
    policies = [model.policy.state_dict() for model in models]
    for name, tensor in policies[0].items():
        assert torch.equal(tensor, policies[1][name]), name
    moments = [model.policy.optimizer.state_dict()["state"] for model in models]
    for key, values in moments[0].items():
        for name, tensor in values.items():
            assert torch.equal(tensor, moments[1][key][name]), name
    for name in ("env.npz", "random.npz"):
        with np.load(ends[0] / name) as mine, np.load(ends[1] / name) as theirs:
            assert mine.files == theirs.files
            for array in mine.files:
                np.testing.assert_array_equal(mine[array], theirs[array])
    pools = [json.loads((end / "pool" / "pool.json").read_text()) for end in ends]
    assert pools[0] == pools[1]
    for path in (ends[0] / "pool").glob("*.pt"):
        weights = [torch.load(end / "pool" / path.name, weights_only=True) for end in ends]
        assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    for name in ("evaluation.json", "evaluation.csv", "config.json"):
        assert (first / name).read_text() == (second / name).read_text()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of TINY."""
    run = tmp_path_factory.mktemp("runs") / "uninterrupted"
    self_play.run(TINY, run, progress=False)
    return run


class KilledError(Exception):
    """Stands for the end of a process."""


def run_until(
    monkeypatch: pytest.MonkeyPatch,
    run: Path,
    step: int,
    resume: bool = False,
    config: TrainConfig = TINY,
) -> None:
    """Train until a step, where nothing more is written."""
    callback = self_play.SelfPlayCallback
    on_step = callback._on_step

    def stop(self: Any) -> bool:
        if self.model.num_timesteps >= step:
            raise KilledError
        return on_step(self)

    with monkeypatch.context() as patch:
        patch.setattr(callback, "_on_step", stop)
        with pytest.raises(KilledError):
            self_play.run(config, run, resume=resume, progress=False)


@pytest.mark.parametrize("rules", VARIANTS)
def test_200_000_steps_without_an_illegal_action_or_a_nan(rules: str, tmp_path: Path) -> None:
    config = TrainConfig(
        rules=rules,
        total_steps=200_000,
        num_envs=250,
        n_steps=40,
        batch_size=1000,
        n_epochs=1,
        net_arch=(32,),
        snapshot_every=40_000,
        pool_size=3,
        eval_deals=100,
    )
    # Every action is checked by the engine, which raises on an illegal one.
    evaluation = self_play.run(config, tmp_path / "run", progress=False)
    model = MaskablePPO.load(tmp_path / "run" / "model.zip")
    assert model.num_timesteps == 200_000
    for name, tensor in model.policy.state_dict().items():
        assert torch.isfinite(tensor).all(), name
    assert np.isfinite([info["r"] for info in model.ep_info_buffer]).all()
    assert [match.b for match in evaluation.matches] == list(config.baselines)
    assert all(0 <= match.score <= 1 for match in evaluation.matches)


def test_equal_configurations_give_equal_weights(uninterrupted: Path, tmp_path: Path) -> None:
    self_play.run(TINY, tmp_path / "again", progress=False)
    assert_same_run(uninterrupted, tmp_path / "again")
    self_play.run(dataclasses.replace(TINY, seed=6), tmp_path / "other", progress=False)
    weights = [
        MaskablePPO.load(run / "model.zip").policy.move_net.opening.score.weight
        for run in (uninterrupted, tmp_path / "other")
    ]
    assert not torch.equal(*weights)


@pytest.mark.parametrize("step", [100, 512, 700, 1024 + 256, 1536 - 16])
def test_a_killed_run_ends_as_if_it_had_not_been_killed(
    step: int, uninterrupted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    run_until(monkeypatch, run, step)
    assert not (run / "model.zip").exists()
    self_play.run(TINY, run, resume=True, progress=False)
    assert_same_run(uninterrupted, run)


def test_a_run_may_be_killed_more_than_once(
    uninterrupted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    for step in (600, 700, 1100, 1400):
        run_until(monkeypatch, run, step, resume=True)
    self_play.run(TINY, run, resume=True, progress=False)
    assert_same_run(uninterrupted, run)


@pytest.mark.parametrize(("snapshots", "checkpoints_at"), [(768, 256), (1024, 512), (10_000, 256)])
@pytest.mark.parametrize("network", ["moves", "mlp"])
def test_a_checkpoint_between_two_snapshots_is_resumed_exactly(
    network: str,
    snapshots: int,
    checkpoints_at: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What opponents are drawn by stays from snapshot to snapshot, while the scores change.
    config = dataclasses.replace(
        TINY if network == "moves" else PLAIN,
        self_share=0.1,
        baseline_share=0.6,
        snapshot_every=snapshots,
        checkpoint_every=checkpoints_at,
        select_every=10_000,
    )
    self_play.run(config, tmp_path / "whole", progress=False)
    run_until(monkeypatch, tmp_path / "killed", 800, config=config)
    self_play.run(config, tmp_path / "killed", resume=True, progress=False)
    assert_same_run(tmp_path / "whole", tmp_path / "killed")


def test_a_killed_run_with_solved_endings_ends_the_same_and_counts_what_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So few nodes that much stays open: what does must not depend on what was solved before.
    monkeypatch.setattr(settle, "SOLVE_NODES", 50)
    config = dataclasses.replace(
        TINY, rules="classic", endings="exact", n_steps=64, batch_size=256, total_steps=3072
    )
    evaluation = self_play.run(config, tmp_path / "whole", progress=False)
    run_until(monkeypatch, tmp_path / "killed", 2100, config=config)
    self_play.run(config, tmp_path / "killed", resume=True, progress=False)
    assert_same_run(tmp_path / "whole", tmp_path / "killed")
    counts = [event.value for event in metrics_of(tmp_path / "whole").Scalars("self_play/unsolved")]
    assert sum(counts) > 0

    # What was not learnt is not judged either: both sides play endings perfectly.
    assert evaluation.player == "trained+exact"
    opponents = [f"{name}+exact" for name in TINY.baselines]
    assert [match.b for match in evaluation.matches] == opponents
    with open(tmp_path / "whole" / "progress.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["opponent"] for row in rows} == set(opponents)
    assert {float(row["blunders"]) for row in rows} == {0.0}


def test_a_finished_run_is_resumed_to_the_same_table(uninterrupted: Path) -> None:
    before = (uninterrupted / "evaluation.json").read_text()
    (uninterrupted / "evaluation.json").unlink()
    self_play.run(TINY, uninterrupted, resume=True, progress=False)
    assert (uninterrupted / "evaluation.json").read_text() == before


def test_a_kill_while_a_checkpoint_is_written_leaves_the_last_one(
    uninterrupted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"

    def die(source: Path, target: Path) -> None:
        if Path(target).name == "step-000000001024":
            raise KilledError
        os.rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints.os, "replace", die)
        with pytest.raises(KilledError):
            self_play.run(TINY, run, progress=False)
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == [
        "draft-000000001024",
        "step-000000000512",
    ]
    self_play.run(TINY, run, resume=True, progress=False)
    assert_same_run(uninterrupted, run)
    assert not list((run / "checkpoints").glob("draft-*"))


def test_self_play_alone_needs_no_opponents(tmp_path: Path) -> None:
    config = dataclasses.replace(
        TINY, self_share=1.0, past_share=0.0, baseline_share=0.0, total_steps=256
    )
    evaluation = self_play.run(config, tmp_path / "run", progress=False)
    assert [match.b for match in evaluation.matches] == ["random", "greedy"]


def test_a_fit_to_solved_endings_stays_or_goes_on_learning(tmp_path: Path) -> None:
    config = dataclasses.replace(TINY, total_steps=256, average_decay=0.0)
    fitted = self_play.run(config, tmp_path / "fitted", progress=False)
    assert len(fitted.matches) == 2
    for endings, learns in (("scorer", False), ("exact", False), ("learn", True)):
        out = tmp_path / endings
        longer = dataclasses.replace(config, endings=endings, total_steps=512, select_every=256)
        self_play.run(longer, out, progress=False)
        end = checkpoints._checkpoints(out)[0]
        before = load_network(tmp_path / "fitted" / "network.npz").arrays
        after = MaskablePPO.load(end / "model.zip").policy.to_network().arrays
        for name, array in after.items():
            if name.startswith("ending") and "value" not in name:
                assert np.array_equal(array, before[name]) != learns, (endings, name)


def test_a_run_may_start_from_the_search_player(tmp_path: Path) -> None:
    config = dataclasses.replace(TINY, search_games=16, search_worlds=4, search_epochs=2)
    with pytest.raises(ValueError, match=r"search_games.*mlp"):
        dataclasses.replace(PLAIN, search_games=16)
    networks = []
    for name, given in (("one", config), ("two", config), ("none", TINY)):
        given = dataclasses.replace(given, total_steps=256)
        self_play.run(given, tmp_path / name, progress=False)
        networks.append(load_network(tmp_path / name / "network.npz").arrays)
    for array, kept in networks[0].items():
        np.testing.assert_array_equal(kept, networks[1][array])
        same = np.array_equal(kept, networks[2][array])
        assert same == array.startswith("ending"), array  # its loss has no part in endings
    assert metrics_of(tmp_path / "one").Scalars("search/loss")[0].value > 0


def test_a_full_folder_is_refused_without_resume(uninterrupted: Path, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError, match="not empty"):
        self_play.run(TINY, uninterrupted, progress=False)
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(FileExistsError, match="not empty"):
        self_play.run(TINY, tmp_path, progress=False)
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        self_play.run(TINY, tmp_path, resume=True, progress=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["letter.txt"]


def test_another_configuration_is_refused_by_name(uninterrupted: Path) -> None:
    other = dataclasses.replace(TINY, n_epochs=3, rules="classic")
    with pytest.raises(CheckpointError, match="n_epochs: 3, not 2") as caught:
        self_play.run(other, uninterrupted, resume=True, progress=False)
    assert "rules: 'classic'" in str(caught.value)
    folder = checkpoints.latest_checkpoint(uninterrupted, TINY)
    assert folder is not None
    with pytest.raises(CheckpointError, match="n_epochs: 3, not 2"):
        checkpoints.latest_checkpoint(uninterrupted, other)


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of TINY with the checkpoints of steps 512 and 1024."""
    run_until(monkeypatch, tmp_path / "run", 1100)
    return tmp_path / "run"


def edit_manifest(folder: Path, **changes: Any) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, **changes}))


def test_another_format_or_version_is_refused_by_name(interrupted: Path) -> None:
    folder = interrupted / "checkpoints" / "step-000000001024"
    versions = json.loads((folder / "manifest.json").read_text())["versions"]
    edit_manifest(folder, format=7)
    with pytest.raises(CheckpointError, match="format 7"):
        self_play.run(TINY, interrupted, resume=True, progress=False)
    edit_manifest(
        folder, format=checkpoints.FORMAT, versions={**versions, "counterweight-env": "99.0"}
    )
    with pytest.raises(CheckpointError, match=r"counterweight-env 99\.0"):
        self_play.run(TINY, interrupted, resume=True, progress=False)
    edit_manifest(folder, versions={**versions, "torch": "0.0"})
    with pytest.warns(RuntimeWarning, match=r"torch 0\.0"):
        self_play.run(TINY, interrupted, resume=True, progress=False)


@pytest.mark.parametrize(
    "name", ["model.zip", "env.npz", "pool/pool.json", "selection/best.npz", "manifest.json"]
)
def test_a_damaged_checkpoint_is_passed_over_for_the_last_good_one(
    name: str, interrupted: Path, uninterrupted: Path
) -> None:
    path = interrupted / "checkpoints" / "step-000000001024" / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.warns(RuntimeWarning, match=f"{name}.*going on from step-000000000512"):
        self_play.run(TINY, interrupted, resume=True, progress=False)
    assert_same_run(uninterrupted, interrupted)


def test_without_a_whole_checkpoint_the_bad_files_are_named(interrupted: Path) -> None:
    folders = sorted((interrupted / "checkpoints").iterdir())
    (folders[0] / "random.npz").unlink()
    (folders[1] / "env.npz").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"env\.npz.*random\.npz"):
        self_play.run(TINY, interrupted, resume=True, progress=False)


def test_only_the_newest_checkpoints_are_kept(uninterrupted: Path) -> None:
    names = sorted(path.name for path in (uninterrupted / "checkpoints").iterdir())
    assert names == ["step-000000001024", "step-000000001536"]


def metrics_of(run: Path) -> Any:
    """Return the reader of what a run has logged."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    return events


def test_the_pool_fills_up_and_its_metrics_are_logged(uninterrupted: Path) -> None:
    end = checkpoints._checkpoints(uninterrupted)[0]
    index = json.loads((end / "pool" / "pool.json").read_text())
    assert index["snapshots"][0] == 0
    assert len(index["snapshots"]) == 3
    events = metrics_of(uninterrupted)
    logged = events.Tags()["scalars"]
    documented = self_play.__doc__ or ""
    own = [name for name in logged if name.startswith("self_play/")]
    assert {"self_play/score_vs_self", "self_play/score_vs_past", "self_play/draws"} <= set(own)
    for name in own:
        if name.startswith("self_play/score_vs_") and name.rsplit("_")[-1] in TINY.baselines:
            name = "self_play/score_vs_<baseline>"
        assert f"``{name}``" in documented
    assert "rollout/ep_rew_mean" in logged
    for name in logged:
        assert np.isfinite([event.value for event in events.Scalars(name)]).all(), name


def test_evaluation_tables_say_the_same(tmp_path: Path) -> None:
    evaluation = evaluate(Even(), [First(), "random"], SMALL, deals=40)
    evaluation.save(tmp_path)
    rows = json.loads((tmp_path / "evaluation.json").read_text())
    assert rows["player"] == "even"
    with (tmp_path / "evaluation.csv").open() as file:
        lines = list(csv.DictReader(file))
    for row, line, text in zip(
        rows["matches"], lines, evaluation.table().splitlines()[2:], strict=True
    ):
        assert {key: str(value) for key, value in row.items()} == line
        assert row["wins"] + row["draws"] + row["losses"] == row["games"] == 80
        assert row["score"] == pytest.approx((row["wins"] + row["draws"] / 2) / 80, abs=1e-4)
        assert row["low"] <= row["score"] <= row["high"]
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        assert cells == [
            row["opponent"],
            f"{row['score']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
            str(row["wins"]),
            str(row["draws"]),
            str(row["losses"]),
        ]
    assert len({len(line) for line in evaluation.table().splitlines()}) == 1


# --- The command --------------------------------------------------------------------------------

FEW = ["--set", "ending_games=16", "select_deals=4"]
ARGUMENTS = ["--steps", "1024", "--num-envs", "16", "--eval-deals", "20", "--seed", "3", *FEW]


@pytest.mark.filterwarnings("ignore:rich is experimental")  # of tqdm; SB3's progress bar uses it
@pytest.mark.parametrize("rules", VARIANTS)
def test_the_command_trains_and_prints_its_table(
    rules: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    progress = [] if rules == "classic" else ["--no-progress"]
    arguments = ["train", "--rules", rules, "--out", str(out), *ARGUMENTS, *progress]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    rows = json.loads((out / "evaluation.json").read_text())["matches"]
    assert [row["opponent"] for row in rows] == list(TrainConfig().baselines)
    for row in rows:
        assert row["rules"] == rules
        line = next(line for line in printed.splitlines() if f"| {row['opponent']} " in line)
        assert f"{row['score']:.3f}" in line
    config = TrainConfig.from_json((out / "config.json").read_text())
    assert (config.rules, config.total_steps, config.num_envs, config.seed) == (rules, 1024, 16, 3)
    assert sorted(path.name for path in out.iterdir()) == [
        "checkpoints",
        "config.json",
        "evaluation.csv",
        "evaluation.json",
        "model.zip",
        "network.npz",
        "progress.csv",
        "tensorboard",
    ]
    model = MaskablePPO.load(out / "model.zip")
    assert model.num_timesteps == 1024

    assert main(arguments) == 2  # the folder is full
    assert "--resume" in capsys.readouterr().err
    assert main(["train", "--out", str(out), "--resume", "--no-progress"]) == 0
    assert main(["train", "--out", str(out), "--resume", "--seed", "4"]) == 2
    assert "seed: 4, not 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rules", "poker"], "poker"),
        (["--steps", "0"], "total_steps"),
        (["--num-envs", "-1"], "num_envs"),
        (["--seed", "-1"], "seed"),
        (["--eval-deals", "0"], "eval_deals"),
        (["--set", "baselines=nobody"], "nobody"),
        (["--set", "baselines="], "baselines"),
        (["--seeds", "1", "2", "--set", "seed=5"], "seed is given twice"),
        (["--rules", "classic", "--set", "rules=exchange"], "rules is given twice"),
        (["--set", "endings=exact", "baselines=random,greedy+exact"], "greedy+exact"),
        (["--resume"], "run holds no run to resume"),
        (["--resume", "--seeds", "1", "2"], "seed1 holds no run to resume"),
    ],
)
def test_the_command_names_bad_arguments_before_anything_is_written(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--out", str(tmp_path / "run"), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_folder_in_use_stops_all_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "seed2" / "letter"
    taken.parent.mkdir()
    taken.write_text("dear")
    assert main(["train", "--out", str(tmp_path), "--seeds", "1", "2"]) == 2
    assert "seed2 is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["seed2"]


def test_several_seeds_are_resumed_though_only_the_first_has_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = [*FEW, "--steps", "512", "--num-envs", "16", "--eval-deals", "4", "--no-progress"]
    assert main(["train", "--out", str(tmp_path / "seed1"), "--seed", "1", *few]) == 0
    arguments = ["train", "--out", str(tmp_path), "--seeds", "1", "2", *few]
    assert main(arguments) == 2
    assert "seed1 is not empty" in capsys.readouterr().err
    assert main([*arguments, "--resume"]) == 0
    for seed in (1, 2):
        config = TrainConfig.from_json((tmp_path / f"seed{seed}" / "config.json").read_text())
        assert config.seed == seed
        assert (tmp_path / f"seed{seed}" / "network.npz").is_file()


def test_a_bad_baseline_leaves_no_folder(tmp_path: Path) -> None:
    config = dataclasses.replace(TINY, baselines=("random", "nobody"))
    with pytest.raises(ValueError, match="nobody"):
        self_play.run(config, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_a_damaged_configuration_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text('{"rules": ')
    assert main(["train", "--out", str(tmp_path), "--resume"]) == 2
    assert str(tmp_path / "config.json") in capsys.readouterr().err
    with pytest.raises(CheckpointError, match=r"config\.json"):
        self_play.run(TINY, tmp_path, resume=True, progress=False)


def test_no_checkpoint_is_promised_where_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["train", "--out", str(tmp_path / "file" / "run"), *ARGUMENTS]) == 2
    error = capsys.readouterr().err
    assert "Not a directory" in error
    assert "is whole" not in error


def test_a_run_for_perfect_endings_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    few = ["endings=exact", "ending_games=0", "baselines=random", "select_deals=2", "hidden=8"]
    assert main(["train", "--out", str(out), *ARGUMENTS, "--no-progress", "--set", *few]) == 0
    printed = capsys.readouterr().out
    assert "perfect endings on both sides" in printed
    assert "| random+exact " in printed
    assert f"policy:{out / 'network.npz'}+exact" in printed


@pytest.mark.parametrize("arguments", [[], ["dance"], ["train", "--preset", "slow"]])
def test_the_command_refuses_what_it_does_not_know(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)


def test_an_interrupted_command_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(self_play, "run", interrupt)
    with pytest.raises(SystemExit, match="130"):
        main(["train", "--out", str(tmp_path / "run")])
    assert f"counterweight train --resume --out {tmp_path / 'run'}" in capsys.readouterr().err


def test_a_process_killed_with_sigkill_is_resumed_exactly(
    uninterrupted: Path, tmp_path: Path
) -> None:
    """The real thing: another process, killed when its first checkpoint is there."""
    run = tmp_path / "run"
    program = (
        "import sys; from train import self_play; from train.config import TrainConfig;"
        "self_play.run(TrainConfig.from_json(sys.argv[1]), sys.argv[2], resume=True,"
        " progress=False)"
    )
    command = [sys.executable, "-c", program, TINY.to_json(), str(run)]
    process = subprocess.Popen(command)
    first = run / "checkpoints" / "step-000000000512"
    deadline = time.monotonic() + 120
    while not first.exists():
        assert process.poll() is None, "it ended before its first checkpoint"
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (run / "evaluation.json").exists()
    subprocess.run(command, check=True, timeout=120)
    assert_same_run(uninterrupted, run)


WITHOUT_EXTRA = """
import sys
for name in ("torch", "stable_baselines3", "sb3_contrib", "tensorboard", "tqdm", "rich"):
    sys.modules[name] = None
import train
from train.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_without_the_extra_help_works_and_train_says_what_to_install(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_EXTRA]
    helped = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False)
    assert helped.returncode == 0
    assert "train" in helped.stdout
    asked = subprocess.run(
        [*command, "train", "--out", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 2
    assert 'pip install "counterweight-env[train]"' in asked.stderr
    assert "torch" in asked.stderr
    assert "Traceback" not in asked.stderr
    assert not (tmp_path / "run").exists()
