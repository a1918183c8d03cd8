"""Self-play PPO on a small deck, by its exploitability: ``python -m benchmarks.small_self_play``.

The network of ``counterweight train`` learns on a deck that is solved exactly, drawing its moves,
and after every so many decisions the best response to it is computed. Beside it stands CFR+.
"""

from __future__ import annotations

import argparse
import time

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import configure

from agents.policy import Policy
from train.both_seats import BothSeatsBuffer, BothSeatsVecEnv
from train.network import MovePolicy
from train.small_games import exploitability, solve_game

RULES = ("classic(ranks=5,suits=2,hand_size=2)", "exchange(ranks=5,suits=2,hand_size=2)")


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description="Exploitability of self-play PPO beside CFR+.")
    parser.add_argument("--rules", nargs="+", default=list(RULES))
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="evaluations; 5")
    parser.add_argument("--steps", type=int, default=262144, metavar="N", help="between two; 2^18")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for rules in arguments.rules:
        started = time.perf_counter()
        game = solve_game(rules, target=1e-3)
        seconds = time.perf_counter() - started
        last = game.curve[-1]
        print(
            f"\n{rules}: CFR+ {last.exploitability:.5f} after {last.iterations} iterations, ",
            end="",
        )
        print(f"{seconds:.1f} s\n\n| decisions | seconds | exploitability |\n|---:|---:|---:|")
        env = BothSeatsVecEnv(256, rules, seed=1)
        model = MaskablePPO(
            MovePolicy,
            env,
            n_steps=32,
            batch_size=2048,
            n_epochs=2,
            gamma=1.0,
            gae_lambda=0.9,
            ent_coef=0.01,
            learning_rate=1e-3,
            rollout_buffer_class=BothSeatsBuffer,
            policy_kwargs={"rules": rules, "hidden": 64},
            seed=0,
            device="cpu",
        )
        assert isinstance(model.rollout_buffer, BothSeatsBuffer)
        model.rollout_buffer.env = env
        model.set_logger(configure(None, []))
        spent = 0.0
        for done in range(arguments.rounds + 1):
            assert isinstance(model.policy, MovePolicy)
            player = Policy.of(model.policy.to_network(), "ppo", temperature=1.0)
            report = exploitability(player, rules)
            line = f"| {done * arguments.steps:,} | {spent:.0f} | {report.exploitability:.4f} |"
            print(line, flush=True)
            if done < arguments.rounds:
                started = time.perf_counter()
                model.learn(arguments.steps, reset_num_timesteps=False)
                spent += time.perf_counter() - started


if __name__ == "__main__":
    main()
