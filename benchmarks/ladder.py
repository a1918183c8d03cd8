"""A round robin on duplicate deals as Markdown: ``python -m benchmarks.ladder random greedy``."""

from __future__ import annotations

import argparse
from itertools import combinations

from agents import play_match


def table(players: list[str], rules: str, deals: int, seed: int) -> str:
    """Scores of the row's player with their 95 % intervals."""
    cells: dict[tuple[str, str], str] = {}
    for a, b in combinations(players, 2):
        match = play_match(a, b, rules, deals=deals, seed=seed)
        low, high = match.interval
        cells[a, b] = f"{match.score:.3f} ({low:.3f} to {high:.3f})"
        cells[b, a] = f"{1 - match.score:.3f} ({1 - high:.3f} to {1 - low:.3f})"
    lines = ["| | " + " | ".join(f"`{name}`" for name in players) + " |"]
    lines.append("|---|" + "---|" * len(players))
    lines += [
        f"| `{a}` | " + " | ".join(cells.get((a, b), "") for b in players) + " |" for a in players
    ]
    return "\n".join(lines)


def main() -> None:
    """Prints a table for each rule set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("players", nargs="+", help="agents by name")
    parser.add_argument("--rules", nargs="+", default=["classic", "exchange"])
    parser.add_argument("--deals", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for rules in arguments.rules:
        print(f"**{rules}**\n")
        print(table(arguments.players, rules, arguments.deals, arguments.seed) + "\n")


if __name__ == "__main__":
    main()
