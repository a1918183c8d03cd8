"""Pictures as pixels, by Pillow: arrays, PNG and GIF.

Everything is painted at twice the size and then halved, which smooths the edges.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from gymnasium.error import DependencyNotInstalled

from counterweight_env.shapes import (
    SUIT_LOOPS,
    Group,
    Picture,
    Rect,
    Shape,
    SuitMark,
    Text,
    text_width,
)

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["gif_bytes", "pixels", "png_bytes", "require_pillow"]

SMOOTHING: Final = 2
GIF_COLOURS: Final = 64
MOST_SECONDS: Final = 160  # four times as long a frame can stand: 16 bits of hundredths
STEPS: Final = 6  # straight pieces of a curve
MARGIN: Final = 6  # what a group may draw outside its place, in pixels at scale 1


def require_pillow() -> None:
    """Refuses to go on without Pillow.

    Raises:
        DependencyNotInstalled: Pillow is missing; the message says what to install.
    """
    try:
        import PIL.ImageFont  # noqa: F401
    except ImportError as error:
        raise DependencyNotInstalled(
            'pictures as pixels need Pillow: pip install "counterweight-env[render]"'
        ) from error


def pixels(picture: Picture, scale: float = 1.5) -> np.ndarray:
    """Paints a picture.

    Args:
        picture: What to paint.
        scale: Pixels for one of the picture's own.

    Returns:
        (height, width, 3) uint8, red, green and blue.

    Raises:
        DependencyNotInstalled: Pillow is missing.
        ValueError: ``scale`` is not positive.
    """
    return np.array(_image(picture, scale), np.uint8)


def png_bytes(picture: Picture, scale: float = 2.0) -> bytes:
    """A picture as a PNG file of at most 256 colours; arguments and errors as :func:`pixels`."""
    out = io.BytesIO()
    _few_colours(_image(picture, scale)).save(out, "PNG", optimize=True)
    return out.getvalue()


def gif_bytes(pictures: Sequence[Picture], seconds: float, scale: float = 1.0) -> bytes:
    """Pictures of one size one after another, over and over, as a GIF file.

    Args:
        pictures: One at least.
        seconds: How long each stands; the last stands four times as long.
        scale: Pixels for one of the picture's own.

    Raises:
        DependencyNotInstalled: Pillow is missing.
        ValueError: There are no pictures, or a number is not positive or more than
            a GIF file can hold.
    """
    if not pictures:
        raise ValueError("an animation needs at least one picture")
    if not 0 < seconds <= MOST_SECONDS:
        raise ValueError(f"seconds must be more than 0, at most {MOST_SECONDS}, got {seconds!r}")
    require_pillow()
    from PIL import Image

    images = [_image(picture, scale) for picture in pictures]
    palette = _palette(images)
    colours = [*(palette.getpalette() or [])[: 3 * GIF_COLOURS], 0, 0, 0]
    frames = []
    shown: np.ndarray | None = None
    for image in images:
        wanted = np.array(image.quantize(palette=palette, dither=Image.Dither.NONE))
        # What stays the same is left transparent, which takes hardly any space.
        written = wanted if shown is None else np.where(wanted == shown, GIF_COLOURS, wanted)
        frame = Image.fromarray(written.astype(np.uint8))
        frame.putpalette(colours)
        frames.append(frame)
        shown = wanted
    times = [round(seconds * 1000)] * len(frames)
    times[-1] *= 4
    out = io.BytesIO()
    frames[0].save(
        out,
        "GIF",
        save_all=True,
        append_images=frames[1:],
        duration=times,
        loop=0,
        optimize=False,
        transparency=GIF_COLOURS,
        disposal=1,
    )
    return out.getvalue()


def _palette(images: Sequence[Image.Image]) -> Image.Image:
    """One palette for all frames: that of the first, the middle and the last."""
    from PIL import Image

    picked = [images[0], images[len(images) // 2], images[-1]]
    width, height = images[0].size
    sheet = Image.new("RGB", (width, height * len(picked)))
    for number, image in enumerate(picked):
        sheet.paste(image, (0, number * height))
    return sheet.quantize(GIF_COLOURS, dither=Image.Dither.NONE)


def _few_colours(image: Image.Image) -> Image.Image:
    from PIL import Image

    return image.quantize(256, dither=Image.Dither.NONE)


# --- Painting -----------------------------------------------------------------------------------


def _image(picture: Picture, scale: float) -> Image.Image:
    require_pillow()
    if not scale > 0:
        raise ValueError(f"scale must be more than 0, got {scale!r}")
    from PIL import Image

    factor = scale * SMOOTHING
    size = (round(picture.width * scale) * SMOOTHING, round(picture.height * scale) * SMOOTHING)
    image = Image.new("RGB", size)
    painter = _Painter(image, factor)
    for shape in picture.shapes:
        painter.paint(shape)
    return image.reduce(SMOOTHING)


class _Painter:
    """Paints shapes on one image, `factor` times as large as they say."""

    def __init__(self, image: Image.Image, factor: float, x: float = 0, y: float = 0) -> None:
        from PIL import ImageDraw

        self.image = image
        self.factor = factor
        self.x, self.y = x, y  # where the picture's own corner lies
        # On an image without transparency this mode mixes colours.
        self.draw = ImageDraw.Draw(image, "RGBA")

    def paint(self, shape: Shape) -> None:
        if isinstance(shape, Group):
            self._group(shape)
        elif isinstance(shape, Rect):
            self._rect(shape)
        elif isinstance(shape, SuitMark):
            self._suit(shape)
        else:
            self._text(shape)

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return (x + self.x) * self.factor, (y + self.y) * self.factor

    def _group(self, group: Group) -> None:
        stamp = _stamp(_Keyed(group), self.factor)
        x, y = self._at(group.x - MARGIN, group.y - MARGIN)
        self.image.paste(stamp, (round(x), round(y)), stamp)

    def _rect(self, rect: Rect) -> None:
        half = rect.stroke_width / 2 if rect.stroke else 0
        left, top = self._at(rect.x - half, rect.y - half)
        right, bottom = self._at(rect.x + rect.width + half, rect.y + rect.height + half)
        self.draw.rounded_rectangle(
            (round(left), round(top), round(right) - 1, round(bottom) - 1),
            radius=(rect.radius + half) * self.factor if rect.radius else 0,
            fill=_colour(rect.fill),
            outline=_colour(rect.stroke) if rect.stroke else None,
            width=max(1, round(rect.stroke_width * self.factor)) if rect.stroke else 0,
        )

    def _suit(self, mark: SuitMark) -> None:
        for loop in _flat_suit(mark.suit):
            corners = [self._at(mark.x + x * mark.size, mark.y + y * mark.size) for x, y in loop]
            self.draw.polygon(corners, fill=_colour(mark.fill))

    def _text(self, text: Text) -> None:
        start = {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor]
        x = text.x - start * text.width
        size = text.size * self.factor
        font, colour = _font(size), _colour(text.fill)
        stroke = size * 0.02 if text.bold else 0
        # Letter by letter: a font for few pixels rounds its widths, which adds up.
        for letter in text.text:
            shown = letter if " " <= letter <= "~" else "?"
            place = self._at(x, text.y)
            self.draw.text(place, shown, fill=colour, font=font, anchor="ls", stroke_width=stroke)
            x += text_width(letter, text.size)


class _Keyed:
    """A group, equal to every group of the same drawing."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.key = group.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=512)
def _stamp(keyed: _Keyed, factor: float) -> Image.Image:
    """A group's drawing on nothing, with a margin around it."""
    from PIL import Image

    group = keyed.group
    width, height = group.width + 2 * MARGIN, group.height + 2 * MARGIN
    size = (round(width * factor), round(height * factor))
    image = Image.new("RGBA", size, (0, 0, 0, 0))
    painter = _Painter(image, factor, MARGIN, MARGIN)
    for shape in group.shapes:
        painter.paint(shape)
    return image


@lru_cache(maxsize=64)
def _font(size: float) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size=size)


@lru_cache(maxsize=256)
def _colour(text: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(text[1:]))


@lru_cache(maxsize=4)
def _flat_suit(suit: int) -> list[list[tuple[float, float]]]:
    """The outlines of a suit with straight pieces for curves."""
    loops = []
    for start, curves in SUIT_LOOPS[suit]:
        points = [start]
        for first, second, end in curves:
            begin = points[-1]
            for step in range(1, STEPS + 1):
                t = step / STEPS
                weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
                corners = (begin, first, second, end)
                points.append(
                    (
                        sum(w * corner[0] for w, corner in zip(weights, corners, strict=True)),
                        sum(w * corner[1] for w, corner in zip(weights, corners, strict=True)),
                    )
                )
        loops.append(points)
    return loops
