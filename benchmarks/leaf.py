"""Fits the estimate of open positions in ``agents/leaf.py``: ``python -m benchmarks.leaf``.

Half of the positions come from ``random`` play to exhaustion, half from ``patient``. Those that
the solver decides within 300,000 nodes are the sample; seven in ten are fitted, the rest tell what
is explained. The estimate by counts alone is fitted in the same way to turns of whole endings.
"""

from __future__ import annotations

import argparse
from itertools import pairwise

import numpy as np

from agents import make_agent
from agents.leaf import COUNTS, FEATURES, STAGES, leaf_features
from counterweight_env import GameBatch
from counterweight_env.cards import rule_table
from counterweight_env.endgame import Workspace, forget, position_bounds
from counterweight_env.kernels import LEFT, OVER, kernel
from counterweight_env.rules import as_rules

RIDGE = 3.0
SOLVE_NODES = 300_000
MOST_CARDS = 50  # in both hands


@kernel
def examine(memory, tables, games, nodes, features, bounds, values):
    """Writes features, bounds after a few nodes, and the value (NaN if it stays open)."""
    for i in range(games.size):
        forget(memory)
        low, high = position_bounds(memory, tables[0], games[i], False, nodes)
        bounds[i, 0] = low
        bounds[i, 1] = high
        leaf_features(tables[0], games[i], low, high, features[i])
        forget(memory)
        low, high = position_bounds(memory, tables[0], games[i], False, SOLVE_NODES)
        values[i] = low if low == high else np.nan


def exhausted(rules: str, count: int, seed: int) -> np.ndarray:
    """Positions after exhaustion, the two kinds in turn."""
    kinds = []
    for number, name in enumerate(("random", "patient")):
        agent = make_agent(name)
        games = GameBatch(count // 2, rules, seed=seed + number * count)
        while True:
            rows = np.flatnonzero((games.state["stock_size"] > 0) & ~games.done)
            if not rows.size:
                break
            games.step(agent.act(games.views(rows=rows)), rows)
        kinds.append(games.state)
    mixed = np.stack(kinds, axis=1).reshape(-1)
    return mixed[mixed["phase"] != OVER]


def fit(rules: str, positions: int, nodes: int, seed: int) -> tuple[np.ndarray, str]:
    """The weights, and what they explain."""
    games = exhausted(rules, positions, seed)
    features = np.zeros((len(games), FEATURES))
    bounds = np.zeros((len(games), 2))
    values = np.zeros(len(games))
    table = rule_table(as_rules(rules))
    examine(Workspace(2**15).memory, table, games, nodes, features, bounds, values)
    solved = ~np.isnan(values)
    is_open = bounds[:, 0] < bounds[:, 1]
    rows = np.flatnonzero(is_open & solved)
    train, test = rows[: len(rows) * 7 // 10], rows[len(rows) * 7 // 10 :]
    x = features[train]
    weights = np.linalg.solve(x.T @ x + RIDGE * np.eye(FEATURES), x.T @ values[train])
    guesses = {
        "middle of the bounds": bounds[test].mean(axis=1),
        "estimate": np.clip(features[test] @ weights, *bounds[test].T),
    }
    lines = [f"{rules}, {nodes} nodes: {is_open.mean():.3f} of {len(games)} positions open"]
    spread = values[solved].var()
    for name, guess in guesses.items():
        missed = ((values[test] - guess) ** 2).mean()
        lines.append(
            f"  {name}: {1 - missed / values[test].var():.3f} of the variance of open positions "
            f"explained, {1 - missed * is_open[solved].mean() / spread:.3f} of all"
        )
    return weights, "\n".join(lines)


def turns(rules: str, games: int, seed: int) -> np.ndarray:
    """Positions after exhaustion at the start of a turn, of games of three players in turn."""
    found = []
    for number, name in enumerate(("random", "patient", "cautious")):
        agent = make_agent(name)
        batch = GameBatch(games, rules, seed=seed + number * games)
        while not batch.done.all():
            live = np.flatnonzero(~batch.done)
            late = live[batch.exhausted[live] & (batch.phase[live] == LEFT)]
            found.append(batch.state[late])
            batch.step(agent.act(batch.views(rows=live)), rows=live)
    every = np.concatenate(found)
    np.random.default_rng(seed).shuffle(every)
    return every


def fit_counts(rules: str, positions: int, seed: int) -> tuple[np.ndarray, str]:
    """The weights of the estimate by counts alone, a row a stage, and what they explain."""
    games = turns(rules, positions // 15, seed)[:positions]
    features = np.zeros((len(games), FEATURES))
    values = np.zeros(len(games))
    table = rule_table(as_rules(rules))
    bounds = np.zeros((len(games), 2))
    examine(Workspace(2**15).memory, table, games, 1, features, bounds, values)
    solved = ~np.isnan(values)
    counts, values = features[solved, 2:], values[solved]
    cards = np.rint(counts[:, :2].sum(axis=1) * 20)
    trained = np.arange(len(values)) < len(values) * 7 // 10
    weights = np.zeros((len(STAGES) + 1, COUNTS))
    lines = []
    for stage, (low, high) in enumerate(pairwise((0, *STAGES, MOST_CARDS))):
        inside = (cards > low) & (cards <= high)
        x = counts[inside & trained]
        square = x.T @ x + RIDGE * np.eye(COUNTS)
        weights[stage] = np.linalg.solve(square, x.T @ values[inside & trained])
        test = inside & ~trained
        missed = ((values[test] - np.clip(counts[test] @ weights[stage], -1, 1)) ** 2).mean()
        lines.append(
            f"  counts alone, {low + 1} to {high} cards: {1 - missed / values[test].var():.3f} of "
            f"the variance of {test.sum()} turns explained"
        )
    return weights, "\n".join(lines)


def main() -> None:
    """Prints the weights of both rule sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--positions", type=int, default=40_000)
    parser.add_argument("--nodes", type=int, default=30)
    parser.add_argument("--seed", type=int, default=177)
    options = parser.parse_args()
    for rules in ("classic", "exchange"):
        weights, report = fit(rules, options.positions, options.nodes, options.seed)
        print(report)
        print("  " + ", ".join(f"{weight:.3f}" for weight in weights))
        stages, report = fit_counts(rules, options.positions, options.seed)
        print(report)
        for weights in stages:
            print("  " + ", ".join(f"{weight:.3f}" for weight in weights))


if __name__ == "__main__":
    main()
