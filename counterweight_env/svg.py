"""Pictures as SVG text: one, or many one after another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from counterweight_env.shapes import (
    SUIT_LOOPS,
    Group,
    Loop,
    Picture,
    Rect,
    Shape,
    SuitMark,
    Text,
)

__all__ = ["animated_svg", "drawings", "placed", "svg_text"]

FONTS: Final = "Aileron, Helvetica, Arial, 'Liberation Sans', sans-serif"


def svg_text(picture: Picture) -> str:
    """One picture as an SVG document, which refers to nothing outside itself."""
    return f"{_head(picture)}{drawings([picture])}{placed(picture)}</svg>\n"


def animated_svg(pictures: Sequence[Picture], seconds: float) -> str:
    """Pictures of one size one after another, over and over; a still viewer shows the last.

    Args:
        pictures: One at least.
        seconds: How long each stands.

    Raises:
        ValueError: There are no pictures, or ``seconds`` is not positive.
    """
    if not pictures:
        raise ValueError("an animation needs at least one picture")
    if not 0 < seconds < float("inf"):
        raise ValueError(f"seconds must be more than 0 and finite, got {seconds!r}")
    count = len(pictures)
    if count == 1:
        return svg_text(pictures[0])
    length = _number(count * seconds)
    share = f"{100 / count:.5f}"
    style = (
        f".f{{animation:f {length}s step-end infinite}}"
        f"@keyframes f{{0%{{visibility:visible}}{share}%{{visibility:hidden}}"
        "100%{visibility:hidden}}"
        "@media (prefers-reduced-motion:reduce){.f{animation:none}}"
    )
    frames = []
    for number, picture in enumerate(pictures):
        # A delay below zero: the animation has been running since before the first picture.
        delay = _number((number - count) * seconds)
        hidden = "" if number == count - 1 else ' visibility="hidden"'
        frames.append(
            f'<g class="f"{hidden} style="animation-delay:{delay}s">{placed(picture)}</g>'
        )
    style = f"<style>{style}</style>"
    return f"{_head(pictures[-1])}{style}{drawings(pictures)}{''.join(frames)}</svg>\n"


def drawings(pictures: Iterable[Picture]) -> str:
    """The ``defs`` that :func:`placed` refers to: each drawing of these pictures once."""
    groups: dict[str, Group] = {}
    for picture in pictures:
        for shape in picture.shapes:
            if isinstance(shape, Group):
                groups.setdefault(shape.key, shape)
    suits = (
        f'<path id="suit{suit}" d="{_suit_path(loops)}"/>' for suit, loops in enumerate(SUIT_LOOPS)
    )
    bodies = (
        f'<g id="{key}">{"".join(_shape(part) for part in group.shapes)}</g>'
        for key, group in sorted(groups.items())
    )
    return f"<defs>{''.join(suits)}{''.join(bodies)}</defs>"


def placed(picture: Picture) -> str:
    """What stands inside a picture's ``svg`` element where :func:`drawings` is at hand."""
    return "".join(_shape(shape) for shape in picture.shapes)


def _head(picture: Picture) -> str:
    size = f"{picture.width} {picture.height}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
        f'width="{picture.width}" height="{picture.height}" role="img" '
        f'font-family="{FONTS}"><title>{escape(picture.title)}</title>'
    )


def _number(value: float) -> str:
    return f"{round(value, 2):g}" if abs(value) < 1000 else f"{value:.2f}"


def _corner(shape: Rect | Group) -> str:
    return f'x="{_number(shape.x)}" y="{_number(shape.y)}"'


def _paint(colour: str, name: str = "fill") -> str:
    if len(colour) == 9:
        opacity = _number(int(colour[7:], 16) / 255)
        return f'{name}="{colour[:7]}" {name}-opacity="{opacity}"'
    return f'{name}="{colour}"'


def _shape(shape: Shape) -> str:
    if isinstance(shape, Group):
        classes = " ".join(["piece", *shape.marks])
        return (
            f'<use href="#{shape.key}" class="{classes}" data-name={quoteattr(shape.name)} '
            f"{_corner(shape)}/>"
        )
    if isinstance(shape, Rect):
        size = f'width="{_number(shape.width)}" height="{_number(shape.height)}"'
        radius = f' rx="{_number(shape.radius)}"' if shape.radius else ""
        stroke = ""
        if shape.stroke is not None:
            stroke = f' {_paint(shape.stroke, "stroke")} stroke-width="{shape.stroke_width:g}"'
        return f"<rect {_corner(shape)} {size}{radius} {_paint(shape.fill)}{stroke}/>"
    if isinstance(shape, SuitMark):
        place = f"translate({_number(shape.x)} {_number(shape.y)}) scale({_number(shape.size)})"
        return f'<use href="#suit{shape.suit}" transform="{place}" {_paint(shape.fill)}/>'
    return _text(shape)


def _suit_path(loops: tuple[Loop, ...]) -> str:
    """Outlines in a square of side 1."""
    parts = []
    for start, curves in loops:
        parts.append("M" + _places(start))
        parts += ["C" + _places(*curve) for curve in curves]
        parts.append("Z")
    return "".join(parts)


def _places(*points: tuple[float, float]) -> str:
    return " ".join(f"{round(value, 3):g}" for point in points for value in point)


def _text(text: Text) -> str:
    anchor = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
    weight = ' font-weight="bold"' if text.bold else ""
    width = ""
    if len(text.text) > 1:  # fonts differ; the place that the picture keeps for it does not
        width = f' textLength="{_number(text.width)}" lengthAdjust="spacingAndGlyphs"'
    return (
        f'<text x="{_number(text.x)}" y="{_number(text.y)}" font-size="{_number(text.size)}" '
        f"{_paint(text.fill)}{anchor}{weight}{width}>{escape(text.text)}</text>"
    )
