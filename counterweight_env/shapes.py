"""What a picture is made of: a few kinds of shapes with places, sizes and colours.

A picture is data. ``svg.py`` writes it as text, ``raster.py`` paints it; neither decides anything.
Lengths are in pixels of a picture at scale 1, y grows downwards, colours are ``#rrggbb`` or
``#rrggbbaa``. Suits are outlines here and text is as wide as :func:`text_width` says, so no font
decides where things are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from counterweight_env.cards import SUIT_SYMBOLS

__all__ = [
    "SUIT_LOOPS",
    "Group",
    "Loop",
    "Picture",
    "Rect",
    "Shape",
    "SuitMark",
    "Text",
    "mixed",
    "text_width",
    "words_and_suits",
]

Point: TypeAlias = tuple[float, float]
#: A closed outline: where it starts, and cubic curves, each two control points and its end.
Loop: TypeAlias = tuple[Point, tuple[tuple[Point, Point, Point], ...]]


@dataclass(frozen=True)
class Rect:
    """A rectangle, its corner at (x, y); the stroke is centred on its edge."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    radius: float = 0
    stroke: str | None = None
    stroke_width: float = 0


@dataclass(frozen=True)
class SuitMark:
    """The outline of a suit (0 to 3) in a square of the given size, its corner at (x, y)."""

    x: float
    y: float
    size: float
    suit: int
    fill: str


@dataclass(frozen=True)
class Text:
    """One line of text without suits. ``x`` is its start, middle or end, ``y`` its base line."""

    x: float
    y: float
    text: str
    size: float
    fill: str
    anchor: str = "start"
    bold: bool = False

    @property
    def width(self) -> float:
        """How wide it is drawn."""
        return text_width(self.text, self.size)


@dataclass(frozen=True)
class Group:
    """Shapes that belong together, moved to (x, y). Equal keys mean equal shapes and size.

    Attributes:
        name: What it is: a card's name such as ``"TD"``, ``"back"``, ``"stock"``, ``"buried"``.
        marks: What is special about it, such as ``"legal"``.
    """

    x: float
    y: float
    width: float
    height: float
    name: str
    marks: tuple[str, ...]
    shapes: tuple[Rect | SuitMark | Text, ...]

    @property
    def key(self) -> str:
        """The name of the drawing, wherever it is placed."""
        return "-".join([self.name, f"{self.width:g}x{self.height:g}", *self.marks])


Shape: TypeAlias = Rect | SuitMark | Text | Group


@dataclass(frozen=True)
class Picture:
    """Shapes in the order of drawing, on nothing.

    Attributes:
        title: What the picture shows, in one sentence.
    """

    width: int
    height: int
    title: str
    shapes: tuple[Shape, ...]


def mixed(colour: str, other: str, share: float) -> str:
    """A colour (``#rrggbb``) with a share of another, from 0 to 1."""
    parts = zip(bytes.fromhex(colour[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in parts)


# --- Suits --------------------------------------------------------------------------------------


def _circle(x: float, y: float, radius: float) -> Loop:
    k = 0.5523 * radius  # makes four cubic curves a circle, but for less than a thousandth
    r = radius
    return (x, y - r), (
        ((x + k, y - r), (x + r, y - k), (x + r, y)),
        ((x + r, y + k), (x + k, y + r), (x, y + r)),
        ((x - k, y + r), (x - r, y + k), (x - r, y)),
        ((x - r, y - k), (x - k, y - r), (x, y - r)),
    )


#: Clubs, diamonds, hearts, spades in a square from (0, 0) to (1, 1).
SUIT_LOOPS: Final[tuple[tuple[Loop, ...], ...]] = (
    (
        _circle(0.5, 0.25, 0.215),
        _circle(0.25, 0.6, 0.215),
        _circle(0.75, 0.6, 0.215),
        (
            (0.46, 0.4),
            (
                ((0.49, 0.4), (0.51, 0.4), (0.54, 0.4)),
                ((0.53, 0.7), (0.57, 0.88), (0.66, 0.97)),
                ((0.56, 0.97), (0.44, 0.97), (0.34, 0.97)),
                ((0.43, 0.88), (0.47, 0.7), (0.46, 0.4)),
            ),
        ),
    ),
    (
        (
            (0.5, 0.02),
            (
                ((0.6, 0.2), (0.73, 0.37), (0.88, 0.5)),
                ((0.73, 0.63), (0.6, 0.8), (0.5, 0.98)),
                ((0.4, 0.8), (0.27, 0.63), (0.12, 0.5)),
                ((0.27, 0.37), (0.4, 0.2), (0.5, 0.02)),
            ),
        ),
    ),
    (
        (
            (0.5, 0.96),
            (
                ((0.38, 0.78), (0.04, 0.6), (0.04, 0.32)),
                ((0.04, 0.14), (0.16, 0.06), (0.27, 0.06)),
                ((0.39, 0.06), (0.47, 0.14), (0.5, 0.25)),
                ((0.53, 0.14), (0.61, 0.06), (0.73, 0.06)),
                ((0.84, 0.06), (0.96, 0.14), (0.96, 0.32)),
                ((0.96, 0.6), (0.62, 0.78), (0.5, 0.96)),
            ),
        ),
    ),
    (
        (
            (0.5, 0.03),
            (
                ((0.62, 0.2), (0.95, 0.36), (0.95, 0.6)),
                ((0.95, 0.74), (0.85, 0.81), (0.74, 0.81)),
                ((0.65, 0.81), (0.57, 0.76), (0.53, 0.68)),
                ((0.54, 0.83), (0.58, 0.91), (0.66, 0.97)),
                ((0.56, 0.97), (0.44, 0.97), (0.34, 0.97)),
                ((0.42, 0.91), (0.46, 0.83), (0.47, 0.68)),
                ((0.43, 0.76), (0.35, 0.81), (0.26, 0.81)),
                ((0.15, 0.81), (0.05, 0.74), (0.05, 0.6)),
                ((0.05, 0.36), (0.38, 0.2), (0.5, 0.03)),
            ),
        ),
    ),
)

# --- Text ---------------------------------------------------------------------------------------

#: Widths of the characters from space to tilde, in thousandths of the size: those of Aileron, the
#: font that Pillow brings along.
WIDTHS: Final = (
    216, 242, 339, 580, 580, 740, 654, 176, 315, 315, 560, 580, 220, 274, 220, 303, 580, 580, 580,
    580, 580, 580, 580, 580, 580, 580, 220, 220, 580, 580, 580, 499, 852, 639, 627, 699, 709, 587,
    567, 710, 730, 264, 544, 609, 575, 866, 718, 737, 598, 733, 619, 585, 612, 682, 622, 952, 625,
    581, 591, 307, 303, 295, 580, 500, 300, 531, 611, 529, 615, 549, 290, 615, 593, 238, 233, 522,
    247, 855, 593, 586, 611, 615, 330, 459, 313, 592, 514, 785, 482, 513, 462, 303, 250, 303, 580,
)  # fmt: skip
OTHER_WIDTH: Final = 620
SUIT_WIDTH: Final = 0.82  # of a suit within text, by the size of the text


def text_width(text: str, size: float) -> float:
    """How wide a text is drawn; suits in it count too."""
    total = 0.0
    for letter in text:
        place = ord(letter) - 32
        if letter in SUIT_SYMBOLS:
            total += SUIT_WIDTH * 1000
        else:
            total += WIDTHS[place] if 0 <= place < len(WIDTHS) else OTHER_WIDTH
    return total * size / 1000


def words_and_suits(
    x: float,
    y: float,
    text: str,
    size: float,
    fill: str,
    bold: bool = False,
    anchor: str = "start",
    room: float | None = None,
) -> list[Text | SuitMark]:
    """A line of text in which suit symbols are drawn as outlines.

    Args:
        x: Where it starts or, with that anchor, ends or has its middle.
        y: The base line.
        text: Any text; what cannot be printed becomes a question mark.
        size: The size of the font.
        fill: The colour of text and suits.
        bold: Whether letters are bold.
        anchor: ``"start"``, ``"middle"`` or ``"end"``.
        room: The greatest width; a longer text gets smaller, and is cut at two thirds of the size.
    """
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    if room is not None:
        size = min(size, max(size * 2 / 3, size * room / max(text_width(text, size), 1)))
        if text_width(text, size) > room:
            while text and text_width(text + "...", size) > room:
                text = text[:-1]
            text += "..."
    x -= {"start": 0, "middle": 0.5, "end": 1}[anchor] * text_width(text, size)
    found: list[Text | SuitMark] = []
    run = ""
    for letter in text + "\0":
        if letter not in SUIT_SYMBOLS and letter != "\0":
            run += letter
            continue
        if run.strip():
            start = len(run) - len(run.lstrip())
            place = x + text_width(run[:start], size)
            found.append(Text(place, y, run.strip(), size, fill, bold=bold))
        x += text_width(run, size)
        run = ""
        if letter != "\0":
            side = size * 0.76
            suit = SUIT_SYMBOLS.index(letter)
            found.append(SuitMark(x + size * 0.03, y - size * 0.73, side, suit, fill))
            x += size * SUIT_WIDTH
    return found
