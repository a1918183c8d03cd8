"""Exploitability against iterations as an SVG, both axes logarithmic; needs nothing installed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final

from train.small_games.solve import Equilibrium

__all__ = ["curves_svg"]

#: An opaque card, so that it reads the same on a light and on a dark page.
CARD, EDGE, TEXT, MUTED = "#ffffff", "#d0d7de", "#1f2328", "#59636e"
COLORS: Final = ("#0969da", "#cf222e", "#1a7f37", "#8250df", "#bf8700", "#59636e")
WIDTH: Final = 720
HEIGHT: Final = 420
LEFT: Final = 70
RIGHT: Final = 40
TOP: Final = 50
BOTTOM: Final = 50
LINE: Final = 18  # pixels from one line of the legend to the next
#: What counts as nothing, so that it has a place on the axis.
FLOOR: Final = 1e-6


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around some positive values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def curves_svg(games: Sequence[Equilibrium]) -> str:
    """Draws the curves of some games.

    Args:
        games: What :func:`solve_game` found, up to six.

    Returns:
        The text of an SVG.

    Raises:
        ValueError: There is no game, or there are too many.
    """
    if not 1 <= len(games) <= len(COLORS):
        raise ValueError(f"a figure shows 1 to {len(COLORS)} games, got {len(games)}")
    points = [
        [(point.iterations, max(point.exploitability, FLOOR)) for point in game.curve]
        for game in games
    ]
    first_x, last_x = _decades([x for line in points for x, _ in line])
    first_y, last_y = _decades([y for line in points for _, y in line])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - first_x) / (last_x - first_x)
        up = (math.log10(y) - first_y) / (last_y - first_y)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (
            HEIGHT - TOP - BOTTOM
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
        "<title>Exploitability of the average strategy against iterations of CFR+</title>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" fill="{CARD}" '
        f'stroke="{EDGE}"/>',
        f'<text x="{LEFT}" y="28" fill="{TEXT}" font-size="15" font-weight="bold">'
        "Exploitability of the average strategy of CFR+</text>",
    ]
    for power in range(first_x, last_x + 1):
        x, _ = place(10.0**power, 10.0**first_y)
        parts.append(_line(x, TOP, x, HEIGHT - BOTTOM))
        parts.append(_label(x, HEIGHT - BOTTOM + 18, f"{10**power:,}", "middle"))
    for power in range(first_y, last_y + 1):
        _, y = place(10.0**first_x, 10.0**power)
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y))
        parts.append(_label(LEFT - 8, y + 4, f"{10.0**power:g}", "end"))
    parts.append(_label(WIDTH - RIGHT, HEIGHT - 12, "iterations", "end"))
    for number, (game, line) in enumerate(zip(games, points, strict=True)):
        color = COLORS[number]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2" '
            'stroke-linejoin="round"/>'
        )
        x, y = place(*line[-1])
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>')
        top = TOP + 14 + LINE * number
        parts.append(
            f'<text x="{WIDTH - RIGHT - 6}" y="{top}" fill="{color}" text-anchor="end">'
            f"{escape(str(game.rules))}</text>"
        )
    return "\n".join([*parts, "</svg>", ""])


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{EDGE}" '
        'stroke-width="0.7"/>'
    )


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{MUTED}" text-anchor="{anchor}">{text}</text>'
