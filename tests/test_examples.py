"""The examples run, and do what they show."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import counterweight_env as cw

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
SMALL = "exchange(ranks=6,suits=2,hand_size=3)"

torch: Any = pytest.importorskip("torch")


def load(name: str) -> ModuleType:
    """Import an example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def output(name: str, **options: int) -> str:
    """Run an example with a small network on small rules and return what it prints."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--rules", SMALL, "--width", "16"]
    for option, value in options.items():
        command += [f"--{option.replace('_', '-')}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- CleanRL ------------------------------------------------------------------------------------


def test_cleanrl_example_trains_and_says_how_it_plays() -> None:
    text = output("cleanrl_ppo", iterations=2, num_envs=16, num_steps=8, minibatch=64, games=32)
    assert "iteration 1:" in text
    assert "iteration 2:" in text
    scores = re.search(r"score against random: ([\d.]+) before, ([\d.]+) after", text)
    assert scores is not None
    assert all(0 <= float(score) <= 1 for score in scores.groups())


def test_cleanrl_example_gives_illegal_actions_no_chance() -> None:
    example = load("cleanrl_ppo")
    torch.manual_seed(3)
    agent = example.Agent(5, 9, 8)
    for weights in agent.parameters():
        weights.data.mul_(50.0)
    masks = torch.rand(200, 9) < 0.3
    masks[:, 4] = True
    policy = agent.policy(torch.randn(200, 5), masks)
    assert (policy.probs[~masks] == 0).all()
    assert policy.entropy().isfinite().all()
    for _ in range(50):
        assert masks.gather(1, policy.sample().unsqueeze(1)).all()


def test_cleanrl_example_spreads_rewards_over_the_game_that_earned_them() -> None:
    advantages = load("cleanrl_ppo").advantages
    rng = np.random.default_rng(4)
    steps, games, decay = 12, 3, 0.9
    rewards = rng.normal(size=(steps, games)).astype(np.float32)
    ended = rng.random((steps, games)) < 0.3
    values = rng.normal(size=(steps + 1, games)).astype(np.float32)
    expected = np.zeros((steps, games))
    for game in range(games):  # by the definition: a sum over the rest of the game
        for start in range(steps):
            for t in range(start, steps):
                following = 0.0 if ended[t, game] else values[t + 1, game]
                error = rewards[t, game] + following - values[t, game]
                expected[start, game] += decay ** (t - start) * error
                if ended[t, game]:
                    break
    found = advantages(*map(torch.as_tensor, (rewards, ended, values[:-1], values[-1])))
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)


def test_cleanrl_example_counts_equally_many_games_in_each_slot() -> None:
    example = load("cleanrl_ppo")

    class Envs:
        """Slot 0 wins a game each step, slot 1 loses one every third step."""

        num_envs, now = 2, 0

        def observations(self) -> tuple[Any, Any]:
            return np.zeros((2, 3)), {"action_mask": np.ones((2, 4))}

        def reset(self, seed: int) -> tuple[Any, Any]:
            return self.observations()

        def step(self, actions: np.ndarray) -> tuple[Any, ...]:
            self.now += 1
            ended = np.array([True, self.now % 3 == 0])
            observations, infos = self.observations()
            return observations, np.where(ended, [1.0, -1.0], 0.0), ended, ~ended, infos

    assert example.score(example.Agent(3, 4, 8), Envs(), 10, seed=1) == 0.5


# --- TorchRL ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("rules", ["classic", "exchange"])
def test_torchrl_plays_whole_games_by_the_mask(rules: str) -> None:
    envs = pytest.importorskip("torchrl.envs")
    env = envs.PettingZooWrapper(
        cw.raw_env(rules=rules),
        use_mask=True,
        group_map=envs.MarlGroupMapType.ALL_IN_ONE_GROUP,
        seed=5,
    )
    torch.manual_seed(5)
    longest = 0
    for _ in range(3):
        reset = env.reset()
        game = env._env._game.copy()
        steps = env.rollout(10_000, tensordict=reset, auto_reset=False)
        agents, movers = steps["agents"], []
        for t in range(len(steps)):
            movers.append(game.to_move)
            acts = [player == game.to_move for player in (0, 1)]
            assert agents["mask"][t].tolist() == acts
            legal = agents["action_mask"][t][game.to_move]
            np.testing.assert_array_equal(legal.numpy(), game.legal_mask())
            seen = agents["observation", "observation"][t]
            for player in (0, 1):  # both see the game at each step
                np.testing.assert_array_equal(seen[player].numpy(), game.observe(player))
            game.step(int(agents["action"][t][game.to_move]))
            assert bool(steps["next", "done"][t]) == game.done
        assert game.done
        payoffs = steps["next", "agents", "reward"].sum(0).flatten()
        assert tuple(payoffs.tolist()) == game.returns
        text = "".join(map(str, movers))
        longest = max(longest, *(len(run.group()) for run in re.finditer(r"0+|1+", text)))
    assert longest > 1  # a player may act several times running


def test_torchrl_example_trains_and_says_how_it_plays() -> None:
    pytest.importorskip("torchrl")
    text = output("torchrl_ppo", iterations=2, steps=64, minibatch=32, deals=10)
    assert re.search(r"iteration 2: [1-9]\d* games ended", text)
    scores = re.findall(r"score against random (before|after): ([\d.]+)", text)
    assert [when for when, _ in scores] == ["before", "after"]
    assert all(0 <= float(score) <= 1 for _, score in scores)
