#!/usr/bin/env python3
"""Masked PPO in one file, in CleanRL's manner: python docs/examples/cleanrl_ppo.py --help.

Trains on `gymnasium.make_vec` against one opponent and prints the score (wins and half the draws)
on games that training has not seen, before and after.
"""

import argparse

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical


def parse():
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--rules", default="classic")
    parser.add_argument("--opponent", default="random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--num-envs", type=int, default=512)
    parser.add_argument("--num-steps", type=int, default=32, help="decisions a game and iteration")
    parser.add_argument("--minibatch", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=1.5e-3)
    parser.add_argument("--entropy", type=float, default=0.01)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--games", type=int, default=4000, help="games of each score")
    return parser.parse_args()


class Agent(nn.Module):
    """A policy that gives illegal actions no probability, and a critic."""

    def __init__(self, inputs, actions, width):
        super().__init__()
        self.actor, self.critic = (
            nn.Sequential(
                *(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()),
                nn.Linear(width, outputs),
            )
            for outputs in (actions, 1)
        )

    def policy(self, observations, masks):
        """Return the masked distribution."""
        return Categorical(logits=self.actor(observations).masked_fill(~masks, -1e9))

    def value(self, observations):
        """Return the expected reward."""
        return self.critic(observations).squeeze(-1)


def tensors(observations, infos):
    """Return what the network takes: observations and masks."""
    masks = torch.as_tensor(infos["action_mask"], dtype=torch.bool)
    return torch.as_tensor(observations, dtype=torch.float32), masks


def score(agent, envs, games, seed):
    """Play equally many games in each slot, drawing from the policy; return the mean score."""
    current, played, total = tensors(*envs.reset(seed=seed)), np.zeros(envs.num_envs, int), 0.0
    each = -(-games // envs.num_envs)
    while played.min() < each:
        with torch.no_grad():
            actions = agent.policy(*current).sample()
        observations, rewards, ended, _, infos = envs.step(actions.numpy())
        current = tensors(observations, infos)
        total += ((1 + np.sign(rewards[ended & (played < each)])) / 2).sum()
        played += ended
    return total / (each * envs.num_envs)


def advantages(rewards, ended, values, last_value, gae_lambda=0.9):
    """Return generalized advantages, (steps, games), without discount."""
    found, running = torch.zeros_like(rewards), torch.zeros_like(last_value)
    for t in reversed(range(len(rewards))):
        following = (last_value if t + 1 == len(rewards) else values[t + 1]) * ~ended[t]
        running = rewards[t] + following - values[t] + gae_lambda * running * ~ended[t]
        found[t] = running
    return found


def main():
    """Train."""
    args = parse()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # the network is small
    env_id, options = "counterweight_env:Counterweight-v0", {"opponent": args.opponent}
    envs, test_envs = (
        gymnasium.make_vec(env_id, num_envs=args.num_envs, rules=args.rules, **options)
        for _ in range(2)
    )
    inputs, actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    agent = Agent(inputs, actions, args.width)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    first_score = score(agent, test_envs, args.games, seed=2**40)

    current = tensors(*envs.reset(seed=args.seed))
    for iteration in range(args.iterations):
        optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - iteration / args.iterations)
        steps, scores = [], []
        for _ in range(args.num_steps):
            with torch.no_grad():
                policy, value = agent.policy(*current), agent.value(current[0])
                action = policy.sample()
            observations, rewards, ended, _, infos = envs.step(action.numpy())
            reward = torch.as_tensor(rewards, dtype=torch.float32)
            log_prob = policy.log_prob(action)
            steps.append((*current, action, log_prob, value, reward, torch.as_tensor(ended)))
            current = tensors(observations, infos)
            scores.extend((1 + np.sign(rewards[ended])) / 2)
        columns = [torch.stack(column) for column in zip(*steps, strict=True)]
        with torch.no_grad():
            gains = advantages(columns[5], columns[6], columns[4], agent.value(current[0]))
        batch = [column.flatten(0, 1) for column in (*columns[:4], gains, gains + columns[4])]
        for _ in range(args.epochs):
            for rows in torch.randperm(len(gains.flatten())).split(args.minibatch):
                seen, masks, action, old_log_prob, gain, target = (column[rows] for column in batch)
                policy = agent.policy(seen, masks)
                ratio = (policy.log_prob(action) - old_log_prob).exp()
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
                loss += 0.25 * (agent.value(seen) - target).square().mean()
                loss -= args.entropy * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        mean = f"{np.mean(scores):.3f}" if scores else "no game ended"
        print(f"iteration {iteration + 1}: score while training {mean}", flush=True)
    last_score = score(agent, test_envs, args.games, seed=2**40)
    print(f"score against {args.opponent}: {first_score:.3f} before, {last_score:.3f} after")


if __name__ == "__main__":
    main()
