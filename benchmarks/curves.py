"""Learning curves of several seeds: ``python -m benchmarks.curves RUN RUN RUN --chart FILE.svg``.

Reads the ``progress.csv`` of finished runs of ``counterweight train`` and prints, for each number
of decisions, the mean score over the runs with the least and the most. The chart shows the same
against decisions and against time; it needs matplotlib (extra ``notebooks``).
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

OPPONENTS = ("random", "cautious", "patient")


class Point(NamedTuple):
    """What several runs had reached after so many decisions.

    Attributes:
        steps: Decisions.
        minutes: Since the start, on average.
        scores: One a run.
        blunders: Part of the decisions after exhaustion that gave away value, one a run.
    """

    steps: int
    minutes: float
    scores: np.ndarray
    blunders: np.ndarray


def read_curves(folders: list[Path], opponents: tuple[str, ...]) -> dict[str, list[Point]]:
    """Reads the runs; a curve for each opponent.

    Raises:
        ValueError: The runs were not judged after the same numbers of decisions, or not against an
            opponent.
        OSError: A folder holds no ``progress.csv``, as that of a plain MLP.
    """
    found: dict[tuple[str, int], list[dict[str, str]]] = defaultdict(list)
    for folder in folders:
        with open(folder / "progress.csv", newline="") as file:
            for row in csv.DictReader(file):
                found[row["opponent"], int(row["steps"])].append(row)
    curves: dict[str, list[Point]] = {opponent: [] for opponent in opponents}
    for (opponent, steps), rows in sorted(found.items()):
        if len(rows) != len(folders):
            raise ValueError(f"only {len(rows)} of {len(folders)} runs have a row at {steps}")
        if opponent in curves:
            columns = {
                key: np.array([float(row[key]) for row in rows]) for key in list(rows[0])[3:]
            }
            seconds = np.mean([float(row["seconds"]) for row in rows])
            curves[opponent].append(
                Point(steps, float(seconds) / 60, columns["score"], columns["blunders"])
            )
    for opponent, points in curves.items():
        if not points:
            known = ", ".join(sorted({name for name, _ in found}))
            raise ValueError(f"the runs were not judged against {opponent!r}, but {known}")
    return curves


def spread(values: np.ndarray) -> str:
    """The mean, and the least and the most."""
    return f"{values.mean():.3f} ({values.min():.3f} to {values.max():.3f})"


def draw(curves: dict[str, list[Point]], title: str, path: Path) -> None:
    """Draws the chart as SVG."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "curves"
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.4), sharey=True, layout="constrained")
    for opponent, points in curves.items():
        low = [point.scores.min() for point in points]
        mean = [point.scores.mean() for point in points]
        high = [point.scores.max() for point in points]
        for panel, places in zip(
            panels,
            ([point.steps / 1e6 for point in points], [point.minutes for point in points]),
            strict=True,
        ):
            panel.plot(places, mean, marker="o", markersize=3, label=f"against {opponent}")
            panel.fill_between(places, low, high, alpha=0.25)
            panel.grid(alpha=0.3)
    panels[0].set_xlabel("million decisions")
    panels[0].set_ylabel("score")
    panels[1].set_xlabel("minutes")
    panels[0].legend(fontsize="small")
    figure.suptitle(title, fontsize="medium")
    draft = path.with_name(f".{path.name}.draft")
    figure.savefig(draft, format="svg", metadata={"Date": None})
    draft.replace(path)


def main() -> None:
    """Prints the table and draws the chart."""
    parser = argparse.ArgumentParser(description="Learning curves of several seeds.")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument("--opponents", nargs="+", default=list(OPPONENTS))
    parser.add_argument("--title", default="Mean and range over the seeds")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw as SVG to this file")
    arguments = parser.parse_args()
    try:
        curves = read_curves(arguments.runs, tuple(arguments.opponents))
    except (ValueError, OSError) as error:
        parser.error(str(error))
    print(f"| decisions | minutes | {' | '.join(curves)} | blunders against the first |")
    print("|---:|---:|" + "---:|" * (len(curves) + 1))
    for points in zip(*curves.values(), strict=True):
        cells = [spread(point.scores) for point in points] + [spread(points[0].blunders)]
        print(f"| {points[0].steps:,} | {points[-1].minutes:.1f} | {' | '.join(cells)} |")
    if arguments.chart is not None:
        draw(curves, arguments.title, arguments.chart)


if __name__ == "__main__":
    main()
