"""How fast training is: ``python -m benchmarks.training``, collection and learning together.

Four ways to learn the same game by PPO, decisions a second each, in turn and in one process:

* *ours*: ``MaskablePPO`` as ``counterweight train`` sets it up, with the move network;
* *lean loop*: the same environment, network, rollouts and updates without SB3;
* *plain network*: *ours* with SB3's ``MlpPolicy``;
* *usual route*: SB3's defaults over ``DummyVecEnv`` with one AEC environment, a wrapper that plays
  a random opponent's moves, and ``ActionMasker``.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.wrappers import ActionMasker
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv

import counterweight_env
from counterweight_env.observation import observation_space
from counterweight_env.rules import as_rules
from train.both_seats import BothSeatsBuffer, BothSeatsVecEnv
from train.config import TrainConfig
from train.network import MoveNet, MovePolicy, action_logits, describe_observations


class OneSeat(gym.Env):
    """The AEC environment with a random opponent, as tutorials wrap it."""

    def __init__(self, rules: str) -> None:
        self.rules = as_rules(rules)
        self.aec = counterweight_env.env(rules=rules)
        self.observation_space = observation_space(self.rules)
        self.action_space = gym.spaces.Discrete(self.rules.num_actions)
        self.rng = np.random.default_rng(0)

    def _let_opponent_move(self) -> None:
        while self.aec.agents and self.aec.agent_selection != "player_0":
            mask = self.aec.observe("player_1")["action_mask"]
            over = self.aec.terminations["player_1"]
            self.aec.step(None if over else int(self.rng.choice(np.flatnonzero(mask))))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        """Deals until there is something to decide."""
        super().reset(seed=seed)
        self.aec.reset(seed=seed)
        self._let_opponent_move()
        return self.aec.observe("player_0")["observation"], {}

    def action_masks(self) -> np.ndarray:
        """What is legal."""
        return self.aec.observe("player_0")["action_mask"].astype(bool)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Moves, and lets the opponent reply."""
        self.aec.step(int(action))
        reward = self.aec.rewards["player_0"]
        self._let_opponent_move()
        over = not self.aec.agents or self.aec.terminations["player_0"]
        if over:
            reward = self.aec.rewards.get("player_0", reward)
        return self.aec.observe("player_0")["observation"], float(reward), over, False, {}


def silent(model: MaskablePPO) -> MaskablePPO:
    """A model that logs nowhere."""
    model.set_logger(configure(None, []))
    return model


def make_ours(config: TrainConfig, network: str) -> Callable[[int], int]:
    """Training as ``counterweight train`` does it, in steps of whole rollouts."""
    env = BothSeatsVecEnv(
        config.num_envs, config.rules, seed=1, solve_endings=True, solve_nodes=config.solve_nodes
    )
    options: dict[str, Any] = {"rules": config.rules, "hidden": config.hidden}
    model = MaskablePPO(
        MovePolicy if network == "moves" else "MlpPolicy",
        env,
        n_steps=config.n_steps,
        batch_size=config.batch_size,
        n_epochs=config.n_epochs,
        gamma=1.0,
        gae_lambda=config.gae_lambda,
        ent_coef=config.ent_coef,
        learning_rate=config.learning_rate,
        rollout_buffer_class=BothSeatsBuffer,
        policy_kwargs=options if network == "moves" else {"net_arch": list(config.net_arch)},
        device="cpu",
        seed=0,
    )
    model.rollout_buffer.env = env  # type: ignore[attr-defined]
    silent(model)

    def learn(rollouts: int) -> int:
        steps = rollouts * config.rollout_steps
        model.learn(steps, reset_num_timesteps=False)
        return steps

    return learn


def make_lean(config: TrainConfig) -> Callable[[int], int]:
    """The same algorithm without SB3."""
    env = BothSeatsVecEnv(
        config.num_envs, config.rules, seed=1, solve_endings=True, solve_nodes=config.solve_nodes
    )
    torch.manual_seed(0)
    net = MoveNet(config.hidden)
    optimizer = torch.optim.Adam(net.parameters(), lr=config.learning_rate, eps=1e-5)
    generator = np.random.default_rng(0)
    observation = env.reset()
    steps, games = config.n_steps, config.num_envs
    actions_count = env.rules.num_actions

    def look(observations: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        moves = describe_observations(observations, env.rules)
        scores, values = net(moves)
        return torch.log_softmax(action_logits(scores, moves, actions_count), 1), values

    def rollout() -> None:
        nonlocal observation
        seen = np.empty((steps, games, observation.shape[1]), np.int8)
        taken = np.empty((steps, games), np.int64)
        old = np.empty((steps, games), np.float32)
        values = np.empty((steps + 1, games), np.float32)
        rewards = np.empty((steps, games), np.float32)
        over = np.empty((steps, games), np.bool_)
        signs = np.empty((steps + 1, games), np.float32)
        for step in range(steps):
            with torch.no_grad():
                logs, value = look(observation)
                picked = torch.multinomial(logs.exp(), 1)
            seen[step], values[step], signs[step] = observation, value.numpy(), env.signs
            taken[step] = picked[:, 0].numpy()
            old[step] = logs.gather(1, picked)[:, 0].numpy()
            observation, rewards[step], over[step], _ = env.step(taken[step])
        with torch.no_grad():
            values[steps] = look(observation)[1].numpy()
        signs[steps] = env.signs
        advantages = np.empty((steps, games), np.float32)
        running = np.zeros(games, np.float32)
        sided = values * signs
        for step in reversed(range(steps)):
            on = 1.0 - over[step]
            error = rewards[step] + sided[step + 1] * on - sided[step]
            running = error + config.gae_lambda * on * running
            advantages[step] = running * signs[step]
        flat = seen.reshape(-1, seen.shape[2])
        gains = torch.from_numpy(advantages.ravel())
        goals = torch.from_numpy((advantages + values[:-1]).ravel())
        chosen, before = torch.from_numpy(taken.ravel()), torch.from_numpy(old.ravel())
        for _ in range(config.n_epochs):
            order = generator.permutation(len(flat))
            for start in range(0, len(flat), config.batch_size):
                rows = order[start : start + config.batch_size]
                logs, value = look(flat[rows])
                gain = gains[rows]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                ratio = torch.exp(logs.gather(1, chosen[rows][:, None])[:, 0] - before[rows])
                clipped = ratio.clamp(1 - config.clip_range, 1 + config.clip_range)
                entropy = -(logs.exp() * logs).sum(1).mean()
                loss = -torch.min(gain * ratio, gain * clipped).mean()
                loss = loss - config.ent_coef * entropy
                loss = loss + 0.5 * torch.nn.functional.mse_loss(value, goals[rows])
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                optimizer.step()

    def learn(rollouts: int) -> int:
        for _ in range(rollouts):
            rollout()
        return rollouts * config.rollout_steps

    return learn


def make_usual(rules: str) -> Callable[[int], int]:
    """SB3's defaults over one AEC environment."""

    def masks(env: gym.Env) -> np.ndarray:
        return env.unwrapped.action_masks()  # type: ignore[attr-defined,no-any-return]

    env = DummyVecEnv([lambda: ActionMasker(OneSeat(rules), masks)])
    model = silent(MaskablePPO("MlpPolicy", env, device="cpu", seed=0))

    def learn(rollouts: int) -> int:
        steps = rollouts * model.n_steps
        model.learn(steps, reset_num_timesteps=False)
        return steps

    return learn


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description="Decisions a second of collection and learning.")
    parser.add_argument("--rules", default="classic")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="timed turns of each; 5")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    config = TrainConfig.preset("quick", rules=arguments.rules)
    ways = {
        "ours": make_ours(config, "moves"),
        "lean loop": make_lean(config),
        "plain network": make_ours(config, "mlp"),
        "usual route": make_usual(arguments.rules),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for learn in ways.values():
        learn(2)
    for _ in range(arguments.runs):
        for name, learn in ways.items():
            started = time.perf_counter()
            steps = learn(2)
            rates[name].append(steps / (time.perf_counter() - started))
    print(f"{arguments.rules}, one thread, medians of {arguments.runs} turns\n")
    print("| way | decisions/s | ours is |\n|---|---:|---:|")
    for name in ways:
        ratio = statistics.median(
            mine / other for mine, other in zip(rates["ours"], rates[name], strict=True)
        )
        print(f"| {name} | {statistics.median(rates[name]):,.0f} | {ratio:.2f} times as fast |")


if __name__ == "__main__":
    main()
