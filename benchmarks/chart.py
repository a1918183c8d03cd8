"""``python -m benchmarks.chart peers.json peers.svg``: decisions per second as bars.

With ``--short`` of each kind only our fastest way and the fastest peer, to stand beside text.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["draw", "groups"]

#: An opaque card, so that it reads the same on a light and on a dark page.
CARD, EDGE, TEXT, MUTED = "#ffffff", "#d0d7de", "#1f2328", "#59636e"
OURS, PEER = "#0969da", "#9198a1"
WIDTH: Final = 600 / 72  # inches: 600 pt are 800 px wide
SHORT_WIDTH: Final = 330 / 72  # 440 px
ROW: Final = 0.24  # inches
SHORT_ROW: Final = 0.18
FONT_SIZE: Final = 9
SHORT_FONT_SIZE: Final = 8


def groups(results: Mapping[str, Any], short: bool = False) -> dict[str, list[tuple[str, float]]]:
    """Kind of play -> (title, decisions per second) of ours and of its peers.

    Args:
        results: What ``benchmarks.report.as_json`` gives.
        short: Only the fastest of ours and the fastest peer.
    """
    rates = {loop["title"]: loop["decisions_per_second"]["median"] for loop in results["loops"]}
    found: dict[str, list[tuple[str, float]]] = {}
    rows = [row for row in results["comparisons"] if row["is_peer"]]
    for what in dict.fromkeys(row["what"] for row in rows):
        sides = [
            dict.fromkeys(row[side] for row in rows if row["what"] == what)
            for side in ("ours", "other")
        ]
        if short:
            sides = [{max(side, key=rates.__getitem__): None} for side in sides]
        found[what] = [(title, rates[title]) for side in sides for title in side]
    return found


def _short(rate: float) -> str:
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if rate >= size:
            return f"{rate / size:.3g}{unit}"
    return f"{rate:.3g}"


def draw(results: Mapping[str, Any], path: Path, short: bool = False) -> None:
    """Draws the chart.

    Args:
        results: What ``benchmarks.report.as_json`` gives.
        path: An ``.svg``, or a ``.png`` of the same width in pixels.
        short: As for :func:`groups`.

    Raises:
        ImportError: Matplotlib is not installed; the message says where it is.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(
            "the chart needs matplotlib: run it by `python -m benchmarks.peers`, which installs it "
            "in an environment of its own"
        ) from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    width, row, size = WIDTH, ROW, FONT_SIZE
    left, right, gap = 0.385, 0.94, 0.6
    if short:
        width, row, size = SHORT_WIDTH, SHORT_ROW, SHORT_FONT_SIZE
        left, right, gap = 0.375, 0.89, 0.2
    matplotlib.rcParams.update({"font.size": size, "svg.hashsalt": "peers"})
    found = groups(results, short)
    margin = 0.6 - gap  # below the last bar
    rows = sum(len(bars) + 1 + gap for bars in found.values()) + margin
    height = rows * row + 1.1
    figure = pyplot.figure(figsize=(width, height), facecolor=CARD, edgecolor=EDGE, linewidth=1)
    axes = figure.add_axes((left, 0.5 / height, right - left, rows * row / height), facecolor=CARD)
    y = 0.0
    ticks: list[tuple[float, str, str]] = []
    fastest = max(rate for bars in found.values() for _, rate in bars)
    for what, bars in found.items():
        y += 1.0
        axes.annotate(
            what,
            (0.03, y),
            xycoords=("figure fraction", "data"),
            color=TEXT,
            weight="bold",
            va="center",
            annotation_clip=False,
        )
        for title, rate in bars:
            y += 1.0
            color = OURS if title.startswith("Counterweight") else PEER
            axes.barh(y, rate, 0.72, color=color)
            axes.annotate(
                _short(rate), (rate, y), (4, 0), textcoords="offset points", va="center", color=TEXT
            )
            ticks.append((y, title.partition(",")[0] if short else title, color))
        y += gap
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda rate, _: _short(rate))
    axes.set_xlim(1e3, fastest * 4)
    axes.set_ylim(y + margin, 0.2)
    axes.set_yticks([at for at, _, _ in ticks], [title for _, title, _ in ticks], color=TEXT)
    for label, (_, _, color) in zip(axes.get_yticklabels(), ticks, strict=True):
        label.set_color(OURS if color == OURS else TEXT)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", which="both", colors=MUTED)
    axes.grid(axis="x", color=EDGE, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(EDGE)
    axes.set_xlabel("decisions per second, logarithmic scale", color=MUTED)
    figure.text(
        0.03,
        1 - 0.3 / height,
        "Random legal play on one core",
        color=TEXT,
        size=size + 3,
        weight="bold",
        va="center",
    )
    figure.text(0.97, 1 - 0.3 / height, results["processor"], color=MUTED, ha="right", va="center")
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, dpi=96, edgecolor=EDGE, metadata=metadata)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Decisions per second as bars.")
    parser.add_argument("results", type=Path, help="what benchmarks.peers wrote as JSON")
    parser.add_argument("picture", type=Path, help="an .svg or a .png")
    parser.add_argument("--short", action="store_true", help="only the fastest of each kind")
    arguments = parser.parse_args()
    draw(
        json.loads(arguments.results.read_text(encoding="utf-8")),
        arguments.picture,
        arguments.short,
    )
