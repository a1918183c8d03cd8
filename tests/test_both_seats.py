"""Self-play of both seats: whose decision it is, whose reward, and whose advantage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from players import Even, First
from sb3_contrib import MaskablePPO

from counterweight_env import Game, GameBatch
from train.both_seats import BOTH_SEATS, BothSeatsBuffer, BothSeatsVecEnv
from train.network import MovePolicy

VARIANTS = ("classic", "exchange")
SMALL = "exchange(ranks=6,suits=2,hand_size=3)"


def choose(masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a legal action a row."""
    return (masks * rng.random(masks.shape)).argmax(axis=1)


def forced(game: Game) -> bool:
    return not game.done and len(game.legal_actions()) == 1


@pytest.mark.parametrize("reward", ["outcome", "margin"])
@pytest.mark.parametrize("rules", VARIANTS)
def test_games_of_both_seats_are_those_of_the_engine(rules: str, reward: str) -> None:
    """Every slot, replayed by a Game: forced moves are skipped, rewards are player 0's."""
    env = BothSeatsVecEnv(6, rules, reward=reward, seed=11)
    observations = env.reset()
    batch = GameBatch(6, rules, seed=[11 + i for i in range(6)])
    games = [batch[i] for i in range(6)]
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(400):
        for game in games:
            while forced(game):
                game.step(game.legal_actions()[0])
        masks = env.action_masks()
        for row, game in enumerate(games):
            assert not game.done
            assert env.signs[row] == (1 if game.to_move == 0 else -1)
            np.testing.assert_array_equal(observations[row], game.observe(game.to_move))
            np.testing.assert_array_equal(masks[row], game.legal_mask())
            assert masks[row].sum() > 1
        actions = choose(masks, rng)
        observations, rewards, dones, infos = env.step(actions)
        for row, game in enumerate(games):
            game.step(int(actions[row]))
            while forced(game):
                game.step(game.legal_actions()[0])
            assert dones[row] == game.done
            if not game.done:
                assert rewards[row] == 0
                assert infos[row] == {}
                continue
            ends += 1
            payoff = game.returns[0] if reward == "outcome" else game.margin[0]
            assert rewards[row] == pytest.approx(payoff)
            assert infos[row]["episode"]["r"] == pytest.approx(payoff)
            assert infos[row]["opponent"] == BOTH_SEATS
            np.testing.assert_array_equal(infos[row]["terminal_observation"], game.observe(0))
            game.reset()
    assert ends > 20


def test_duels_stand_behind_the_games_of_both_seats() -> None:
    env = BothSeatsVecEnv(10, SMALL, 4, [Even()], seed=2)
    env.reset()
    rng = np.random.default_rng(1)
    names = set()
    for _ in range(200):
        assert (env.signs[6:] == 1).all()
        _, rewards, dones, infos = env.step(choose(env.action_masks(), rng))
        for row in np.flatnonzero(dones):
            names.add((row >= 6, infos[row]["opponent"]))
            assert infos[row]["episode"]["r"] == rewards[row]
    assert names == {(False, BOTH_SEATS), (True, "even")}


def test_state_is_taken_back_exactly() -> None:
    envs = [BothSeatsVecEnv(8, "classic", 3, [Even()], seed=seed) for seed in (3, 9)]
    for env in envs:
        env.reset()
    rng = np.random.default_rng(2)
    for _ in range(40):
        envs[0].step(choose(envs[0].action_masks(), rng))
    envs[1].set_state(envs[0].get_state())
    for _ in range(60):
        masks = [env.action_masks() for env in envs]
        np.testing.assert_array_equal(*masks)
        actions = choose(masks[0], rng)
        for mine, theirs in zip(*[env.step(actions)[:3] for env in envs], strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(*[env.signs for env in envs])


def test_solved_endings_end_at_exhaustion() -> None:
    env = BothSeatsVecEnv(16, "exchange", seed=4, solve_endings=True)
    env.reset()
    rng = np.random.default_rng(3)
    exhausted = ends = 0
    for _ in range(150):
        exhausted += int(env.games.exhausted.sum())
        _, rewards, dones, _ = env.step(choose(env.action_masks(), rng))
        ends += int(dones.sum())
        assert set(np.unique(rewards)) <= {-1.0, 0.0, 1.0}
    assert ends > 20
    assert exhausted <= env.unsolved * 20


def test_an_ending_player_plays_games_out() -> None:
    """Nobody is asked after exhaustion, and the rewards are those of the games played so."""
    env = BothSeatsVecEnv(8, "exchange", seed=5)
    env.ending_player = First()
    env.reset()
    batch = GameBatch(8, "exchange", seed=[5 + i for i in range(8)])
    games = [batch[i] for i in range(8)]
    rng = np.random.default_rng(4)
    ends = 0
    for _ in range(250):
        for game in games:
            while forced(game):
                game.step(game.legal_actions()[0])
        assert not env.games.exhausted.any()
        actions = choose(env.action_masks(), rng)
        _, rewards, dones, _ = env.step(actions)
        for row, game in enumerate(games):
            game.step(int(actions[row]))
            while forced(game) or (game.exhausted and not game.done):
                game.step(game.legal_actions()[0])
            assert dones[row] == game.done
            if game.done:
                ends += 1
                assert rewards[row] == game.returns[0]
                game.reset()
    assert ends > 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "num_envs.*0"),
        ((True,), "num_envs.*True"),
        ((4, "classic", 4), "num_duels.*from 0 to 3.*4"),
        ((4, "classic", -1), "num_duels.*-1"),
        ((4, "poker"), "poker"),
    ],
)
def test_bad_arguments_are_named(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BothSeatsVecEnv(*arguments)


def test_a_step_needs_actions() -> None:
    env = BothSeatsVecEnv(2, SMALL, seed=1)
    env.reset()
    with pytest.raises(RuntimeError, match="step_async"):
        env.step_wait()


@pytest.mark.parametrize(("gamma", "gae_lambda"), [(1.0, 0.9), (0.97, 0.8), (1.0, 1.0)])
def test_advantages_are_those_of_whoever_decided(gamma: float, gae_lambda: float) -> None:
    """Against the definition: lambda-weighted n-step errors, each seen by the deciding player."""
    env = BothSeatsVecEnv(5, SMALL, 2, [Even()], seed=6)
    options = {"rules": SMALL, "hidden": 8}
    model = MaskablePPO(
        MovePolicy,
        env,
        n_steps=40,
        batch_size=50,
        gamma=gamma,
        gae_lambda=gae_lambda,
        rollout_buffer_class=BothSeatsBuffer,
        policy_kwargs=options,
        seed=0,
        device="cpu",
    )
    buffer = model.rollout_buffer
    assert isinstance(buffer, BothSeatsBuffer)
    buffer.env = env
    rng = np.random.default_rng(5)
    observations = env.reset()
    buffer.reset()
    starts = np.ones(5, np.bool_)
    signs, values, rewards, ends = [], [], [], []
    for _ in range(40):
        masks = env.action_masks()
        value = rng.normal(size=5).astype(np.float32)
        signs.append(env.signs)
        actions = choose(masks, rng)
        after, reward, dones, _ = env.step(actions)
        values.append(value)
        rewards.append(reward)
        ends.append(dones)
        buffer.add(
            observations, actions[:, None], reward, starts, torch.from_numpy(value),
            torch.zeros(5), action_masks=masks,
        )  # fmt: skip
        observations, starts = after, dones
    last = rng.normal(size=5).astype(np.float32)
    values.append(last)
    signs.append(env.signs)
    buffer.compute_returns_and_advantage(torch.from_numpy(last), starts)
    assert {-1.0, 1.0} == set(np.unique(signs[:-1]))
    for row in range(5):
        for step in range(40):
            total, weight = 0.0, 1.0
            for later in range(step, 40):
                mine = signs[later][row] * signs[step][row]
                gained = rewards[later][row] * signs[step][row]
                next_value = values[later + 1][row] * signs[later + 1][row] * signs[step][row]
                over = bool(ends[later][row])
                error = gained + (0 if over else gamma * next_value) - mine * values[later][row]
                total += weight * error
                weight *= gamma * gae_lambda
                if over:
                    break
            assert buffer.advantages[step, row] == pytest.approx(total, abs=1e-4)
            expected = total + values[step][row]
            assert buffer.returns[step, row] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("duels", [0, 1])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward": "money"}, "reward must be one of .*'money'"),
        ({"reward": "margin", "solve_endings": True}, "reward must not be .margin"),
    ],
)
def test_bad_rewards_are_refused_with_and_without_duels(
    options: dict[str, Any], message: str, duels: int
) -> None:
    with pytest.raises(ValueError, match=message):
        BothSeatsVecEnv(4, "classic", duels, **options)
