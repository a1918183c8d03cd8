"""``counterweight render``: a game as a picture, a film or a page."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from train.usage import UsageError, require_extra

if TYPE_CHECKING:
    from counterweight_env.game import Game
    from counterweight_env.record import GameRecord
    from counterweight_env.shapes import Picture
    from counterweight_env.story import Step

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_render"]

KINDS: Final = (".svg", ".png", ".gif", ".html")
PIXELS: Final = (".png", ".gif")


def add_render(subparsers: Subparsers) -> None:
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "render",
        help="draw a position or a recorded game",
        description="Draws a position (a game's JSON) or a recorded game. A position becomes an "
        ".svg or a .png. A recorded game becomes an animated .svg or .gif, an .html page that "
        "steps through it with the solver's verdicts, or a .png of its end; with --turn an .svg "
        "or a .png of one moment.",
    )
    parser.add_argument("path", type=Path, metavar="FILE", help="a game's JSON, or records")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="what to write; its ending decides"
    )
    parser.add_argument("--game", type=int, metavar="N", help="the N-th record, from 1; 1 if left")
    parser.add_argument("--turn", type=int, metavar="N", help="the moment after N turns")
    parser.add_argument(
        "--seat", type=int, choices=[0, 1], help="a still picture as this player sees it"
    )
    parser.add_argument(
        "--seconds", type=float, default=1.5, metavar="S", help="how long a turn of a film stands"
    )
    parser.add_argument(
        "--nodes", type=int, metavar="N", help="positions the solver looks at for a turn, at most"
    )
    parser.set_defaults(run=_render)


def _render(arguments: argparse.Namespace) -> None:
    out: Path = arguments.out
    kind = out.suffix.lower()
    if kind not in KINDS:
        raise UsageError(f"--out must end in one of {' '.join(KINDS)}, got {str(out)!r}")
    if not 0 < arguments.seconds < float("inf"):
        raise UsageError(f"--seconds must be more than 0 and finite, got {arguments.seconds}")
    if arguments.nodes is not None and arguments.nodes < 0:
        raise UsageError(f"--nodes must be at least 0, got {arguments.nodes}")
    if kind in PIXELS:
        require_extra("render", ["PIL"])
    try:
        game = _read_game(arguments.path)
        data = _drawn_game(game, kind, arguments) if game else _drawn_record(kind, arguments)
        _write(out, data)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    print(f"{out}: {len(data):,} bytes")


def _read_game(path: Path) -> Game | None:
    """The position that a file holds; None if it does not look like one.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file holds an impossible game.
    """
    from counterweight_env.game import Game

    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text)
    except (RecursionError, ValueError):
        return None  # records, or nothing
    if not isinstance(data, dict) or "hands" not in data:
        return None
    try:
        return Game.from_json(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _drawn_game(game: Game, kind: str, arguments: argparse.Namespace) -> bytes:
    from counterweight_env.picture import table_picture

    given = [name for name in ("game", "turn") if getattr(arguments, name) is not None]
    if given:
        raise UsageError(f"--{given[0]} is for records; {arguments.path} is one position")
    if kind not in (".svg", ".png"):
        raise UsageError(f"{arguments.path} is one position: --out must end in .svg or .png")
    seat = arguments.seat
    return _still(table_picture(game if seat is None else game.view(seat)), kind)


def _drawn_record(kind: str, arguments: argparse.Namespace) -> bytes:
    from counterweight_env.record import RecordError
    from counterweight_env.story import STORY_NODES, story, story_pictures

    number = 1 if arguments.game is None else arguments.game
    record = _find(arguments.path, number)
    still = kind == ".png" or arguments.turn is not None or arguments.seat is not None
    if still and kind not in (".svg", ".png"):
        raise UsageError("--turn and --seat are for a still picture: --out must be .svg or .png")
    try:
        # A player must not be told what the solver knows.
        nodes = STORY_NODES if arguments.nodes is None else arguments.nodes
        steps = story(record, nodes if arguments.seat is None else 0)
    except RecordError as error:
        raise RecordError(f"{arguments.path}, game {number}: {error}") from None
    if kind == ".html":
        from counterweight_env.replay_page import page_text

        return page_text(record, steps).encode()
    if still:
        return _still(_moment(record, steps, arguments), kind)
    pictures = story_pictures(record, steps)
    if kind == ".svg":
        from counterweight_env.svg import animated_svg

        return animated_svg(pictures, arguments.seconds).encode()
    from counterweight_env.raster import gif_bytes

    return gif_bytes(pictures, arguments.seconds)


def _moment(record: GameRecord, steps: list[Step], arguments: argparse.Namespace) -> Picture:
    """One position of a record, as all or one player sees it."""
    from counterweight_env.picture import table_picture
    from counterweight_env.story import story_pictures

    last = len(steps) - 1
    turn: int = last if arguments.turn is None else arguments.turn
    if not 0 <= turn <= last:
        raise UsageError(f"--turn must be from 0 to {last}, got {turn}")
    if arguments.seat is None:
        return story_pictures(record, steps)[turn]
    now, before = steps[turn].game, steps[max(turn - 1, 0)].game
    seat = arguments.seat
    return table_picture(now.view(seat), before.view(seat), record.players)


def _find(path: Path, number: int) -> GameRecord:
    """The N-th record of a file.

    Raises:
        OSError: The file cannot be read.
        RecordError: A record up to there is bad.
        UsageError: There are not as many.
    """
    from counterweight_env.record import read_records

    games = 0
    for record in read_records(path):
        games += 1
        if games == number:
            return record
    if games == 0:
        raise UsageError(f"{path} holds neither a game's JSON nor records")
    raise UsageError(f"--game must be from 1 to {games}, got {number}")


def _still(picture: Picture, kind: str) -> bytes:
    if kind == ".svg":
        from counterweight_env.svg import svg_text

        return svg_text(picture).encode()
    from counterweight_env.raster import png_bytes

    return png_bytes(picture)


def _write(path: Path, data: bytes) -> None:
    """Writes a file: whole, or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        draft.write_bytes(data)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
