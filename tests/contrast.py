"""How well a colour is read on another."""

from __future__ import annotations


def luminance(colour: str) -> float:
    """Return the relative luminance of `#rrggbb` from 0 to 1, as WCAG 2 defines it."""
    parts = [part / 255 for part in bytes.fromhex(colour.removeprefix("#"))]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(ink: str, paper: str) -> float:
    """Return the contrast of two colours from 1 to 21; text needs 4.5."""
    darker, lighter = sorted((luminance(ink), luminance(paper)))
    return (lighter + 0.05) / (darker + 0.05)
