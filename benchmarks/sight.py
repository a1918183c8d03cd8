"""What there is to win by guessing hidden cards: ``python -m benchmarks.sight``.

The champion's search plays some deals as it is, and again while it sees the opponent's hand (the
order of the stock stays hidden). The difference is what no better guess of the other hand, be it by
the opponent's moves or otherwise, can exceed for this search. Both sides play endings perfectly.
"""

from __future__ import annotations

import argparse

import numpy as np

from agents import make_agent
from agents.arena import HELD_OUT_SEED, deal_twice, percentiles
from agents.ratings import Resamples
from agents.search import CHAMPION, Pimc
from counterweight_env.game import GameBatch
from counterweight_env.kernels import NO_CARD
from counterweight_env.plugins import Agent
from counterweight_env.rules import as_rules
from counterweight_env.view import ViewBatch

NODES = 2_000_000


def look(games: GameBatch, rows: np.ndarray, sees: bool) -> ViewBatch:
    """The movers' views, with the opponent's whole hand among the known cards if they see it."""
    views = games.views(rows=rows)
    if sees:
        for row, record, player in zip(rows, views.records, views.players, strict=True):
            hand = games.state["hand"][row][1 - player]
            record["hand"][1 - player] = hand
            record["known"][1 - player] = hand
            record["fresh"][1 - player] = NO_CARD
    return views


def play(
    search: Pimc, sees: bool, opponent: Agent, rules: str, deals: int, seed: int
) -> np.ndarray:
    """The search's mean score on each deal, (deals,), over both seats."""
    games = deal_twice(as_rules(rules), seed, 0, deals)
    games.solve_endings(True, NODES)
    seats = np.tile(np.array([0, 1], np.int8), deals)
    while not games.done.all():
        mine = np.flatnonzero(games.to_move == seats)
        if mine.size:
            games.step(search.act(look(games, mine, sees)), rows=mine)
        theirs = np.flatnonzero(games.to_move == 1 - seats)
        if theirs.size:
            games.step(opponent.act(games.views(rows=theirs)), rows=theirs)
    payoffs = games.returns[np.arange(2 * deals), seats]
    return ((payoffs + 1) / 2).reshape(deals, 2).mean(axis=1)


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description="What seeing the other hand is worth.")
    parser.add_argument("--rules", default="exchange")
    parser.add_argument("--opponents", nargs="+", default=["random", "patient"])
    parser.add_argument("--deals", type=int, default=300, metavar="N", help="a match; 300")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--held-out", action="store_true", help="play the deals that published numbers are from"
    )
    arguments = parser.parse_args()
    rules = as_rules(arguments.rules)
    seed = HELD_OUT_SEED if arguments.held_out else arguments.seed
    search = Pimc(*CHAMPION[rules.variant])
    print("| rules | opponent, perfect endings | sees the other hand | score | 95 % interval |")
    print("|---|---|---|---:|---:|")
    for opponent in arguments.opponents:
        for sees in (False, True):
            scores = play(search, sees, make_agent(opponent), str(rules), arguments.deals, seed)
            low, high = percentiles(
                Resamples(arguments.deals).sums(scores[:, None])[:, 0] / arguments.deals
            )
            line = f"| {rules} | {opponent} | {'yes' if sees else 'no'} | {scores.mean():.3f} "
            print(f"{line}| {low:.3f} to {high:.3f} |", flush=True)


if __name__ == "__main__":
    main()
