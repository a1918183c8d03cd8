"""Strength against time: ``python -m benchmarks.strength --chart docs/benchmarks/strength.svg``.

The champion at several efforts against one opponent on held-out duplicate deals, in one process.
The chart needs matplotlib (extra ``notebooks``).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from agents.arena import HELD_OUT_SEED, MatchResult, play_match
from agents.search import Champion

EFFORTS = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)
RULES = ("classic", "exchange")


def milliseconds(match: MatchResult) -> float:
    """Mean time of one of the champion's decisions."""
    assert match.timing is not None
    return 1000 * match.timing.seconds[0] / match.timing.decisions[0]


def draw(matches: dict[str, list[MatchResult]], path: Path) -> None:
    """Draws the chart as SVG."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "strength"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for rules, results in matches.items():
        times = [milliseconds(match) for match in results]
        scores = [match.score for match in results]
        low = [match.score - match.interval[0] for match in results]
        high = [match.interval[1] - match.score for match in results]
        axes.errorbar(times, scores, (low, high), marker="o", capsize=3, label=rules)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds a decision, one core")
    axes.set_ylabel(f"score against {next(iter(matches.values()))[0].b}")
    axes.grid(alpha=0.3)
    axes.legend()
    draft = path.with_name(f".{path.name}.draft")
    figure.savefig(draft, format="svg", metadata={"Date": None})
    draft.replace(path)


def main() -> None:
    """Measures, prints the table and draws the chart."""
    parser = argparse.ArgumentParser(description="The champion's strength against its time.")
    parser.add_argument("--opponent", default="random+exact")
    parser.add_argument("--deals", type=int, default=500, metavar="N", help="a match; 500")
    parser.add_argument("--chart", type=Path, metavar="FILE.svg")
    arguments = parser.parse_args()
    print("| rules | effort | ms a decision | score | 95 % interval |\n|---|---:|---:|---:|---:|")
    matches: dict[str, list[MatchResult]] = {}
    for rules in RULES:
        matches[rules] = []
        for effort in EFFORTS:
            player = Champion(effort)
            play_match(player, arguments.opponent, rules, 1, 1)  # compiles
            match = play_match(player, arguments.opponent, rules, arguments.deals, HELD_OUT_SEED)
            matches[rules].append(match)
            low, high = match.interval
            line = f"| {rules} | {effort:g} | {milliseconds(match):.2f} | {match.score:.3f} "
            print(f"{line}| {low:.3f} to {high:.3f} |", flush=True)
    if arguments.chart:
        draw(matches, arguments.chart)


if __name__ == "__main__":
    main()
