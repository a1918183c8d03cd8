"""The card table as a picture: where everything lies, in which colours.

:func:`table_picture` is the only description of it; ``svg.py`` and ``raster.py`` draw what it says.
The size never changes, so pictures of one game make a film.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from counterweight_env.cards import RANK_LETTERS, card_name
from counterweight_env.phase import Phase
from counterweight_env.rules import Rules
from counterweight_env.scene import NAMES, Scene, scene_of, status
from counterweight_env.shapes import (
    Group,
    Picture,
    Rect,
    Shape,
    SuitMark,
    Text,
    mixed,
    text_width,
    words_and_suits,
)

if TYPE_CHECKING:
    from counterweight_env.game import Game
    from counterweight_env.view import View

__all__ = ["HEIGHT", "WIDTH", "table_picture"]

WIDTH: Final = 480
HEIGHT: Final = 448
EDGE: Final = 12  # free at both sides

FELT: Final = "#22644a"
DARK_FELT: Final = "#1b5340"
BAR: Final = "#14382c"
LINE: Final = "#3b8063"
PAPER: Final = "#fffdf6"
PAPER_EDGE: Final = "#b9b3a2"
SHADOW: Final = "#08251b"
WORDS: Final = "#f6f3e8"
QUIET: Final = "#b4d1c3"
GOLD: Final = "#ffcb3d"
BLUE: Final = "#2f8bf0"
INK: Final = "#1d2421"
BACK: Final = "#37538f"
BACK_LIGHT: Final = "#8aa3d6"
#: Clubs, diamonds, hearts, spades: four colours, for much turns on equal suits here (C2).
SUIT_COLOURS: Final = ("#1c8043", "#1c5fc4", "#d02a2a", "#20252b")

TOP_NAMES: Final = 41  # base lines
BOTTOM_NAMES: Final = 392
TOP_HAND: Final = 50
BOTTOM_HAND: Final = 292
HAND_HEIGHT: Final = 84
RAISED: Final = 6  # how far a legal card sticks out
ROW: Final = 21  # more cards than this lie in two rows
LEGAL_EDGE: Final = 3.0  # half of it lies on the card
MARGIN: Final = 2.0  # between a card's side and its signs, so that no edge runs through them
MIDDLE: Final = 142
MIDDLE_HEIGHT: Final = 144
PILES: Final = 252  # where the discards begin


def table_picture(
    position: Game | View | Scene,
    before: Game | View | Scene | None = None,
    names: tuple[str, str] = ("", ""),
    note: str = "",
    remark: str = "",
) -> Picture:
    """Draws a game with all cards open, or a view with the cards that its player knows.

    Legal cards and piles have a golden edge and hand cards among them stick out; small arrows show
    where the card goes. A blue dot is on every card that has come to its place since ``before``.

    Args:
        position: What to draw, or its scene. A view's player sits at the bottom, otherwise
            player 0 does.
        before: An earlier position of the same game, seen the same way; None for no dots.
        names: Who plays as player 0 and player 1; empty for none.
        note: A second line below the status, such as what was just played.
        remark: A few words on the last turn, shown after exhaustion where the discards were.

    Raises:
        TypeError: A position is neither a game nor a view.
        ValueError: One position is open, the other is a view, or they are of different players.
    """
    scene = scene_of(position)
    earlier = scene if before is None else scene_of(before)
    if earlier.seen_from != scene.seen_from or earlier.rules != scene.rules:
        raise ValueError("position and before must be of one game and seen by the same player")
    bottom = scene.seen_from or 0
    shapes: list[Shape] = [
        Rect(0, 0, WIDTH, HEIGHT, FELT),
        Rect(0, MIDDLE, WIDTH, MIDDLE_HEIGHT, DARK_FELT),
        Rect(0, MIDDLE, WIDTH, 1, LINE),
        Rect(0, MIDDLE + MIDDLE_HEIGHT - 1, WIDTH, 1, LINE),
        *_header(scene),
        *_stock(scene),
        *_table(scene, earlier),
        *_news(scene, remark),
    ]
    for player in (1 - bottom, bottom):
        upper = player != bottom
        shapes += _name_line(scene, player, names[player], TOP_NAMES if upper else BOTTOM_NAMES)
        shapes += _discard(scene, earlier, player, upper)
        shapes += _hand(scene, earlier, player, upper)
    shapes += _footer(scene, note)
    title = f"Counterweight, {scene.rules}, turn {scene.turn + 1}. {status(scene)}."
    return Picture(WIDTH, HEIGHT, _printable(title), tuple(shapes))


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


# --- Words --------------------------------------------------------------------------------------


def _header(scene: Scene) -> list[Shape]:
    turn = f"turn {scene.turn + 1}" if scene.to_move >= 0 else f"{scene.turn} turns"
    name = "Counterweight"
    x = EDGE + text_width(name, 13) + 12
    room = WIDTH - EDGE - text_width(turn, 12) - 12 - x
    return [
        Rect(0, 0, WIDTH, 24, BAR),
        *words_and_suits(EDGE, 16.5, name, 13, WORDS, bold=True),
        *words_and_suits(x, 16.5, str(scene.rules), 12, QUIET, room=room),
        *words_and_suits(WIDTH - EDGE, 16.5, turn, 12, WORDS, anchor="end"),
    ]


def _name_line(scene: Scene, player: int, name: str, y: float) -> list[Shape]:
    """The player's name, golden when on turn, and what is to be said of the hand."""
    on_turn = scene.to_move == player
    wins = scene.to_move < 0 and scene.returns[player] > 0
    ink, paper = (INK, GOLD) if on_turn or wins else (WORDS, BAR)
    label = f"{NAMES[player]} ({name})" if name else NAMES[player]
    drawn = words_and_suits(EDGE + 8, y, label, 12, ink, bold=True, room=190)
    end = max([EDGE, *[part.x + _length(part) for part in drawn]]) + 8
    shapes: list[Shape] = [Rect(EDGE, y - 12.5, end - EDGE, 17, paper, radius=8.5), *drawn]
    count = scene.hand_counts[player]
    words = f"{count} card" + "s" * (count != 1)
    if on_turn:
        words += ", on turn"
    elif wins:
        words += ", wins"
    shapes += words_and_suits(end + 8, y, words, 12, QUIET)
    right = ""
    if scene.seats[player].blocked:
        right = "had no couple on this table"
    elif scene.seen_from == player:
        right = "your turn" if on_turn else "you"
    shapes += words_and_suits(WIDTH - EDGE, y, right, 11, QUIET, anchor="end")
    return shapes


def _length(part: Text | SuitMark) -> float:
    return part.width if isinstance(part, Text) else part.size


def _footer(scene: Scene, note: str) -> list[Shape]:
    over = scene.to_move < 0
    room = WIDTH - 2 * EDGE
    y = 420 if note else 427.5
    return [
        Rect(0, 402, WIDTH, HEIGHT - 402, GOLD if over else BAR),
        *words_and_suits(EDGE, y, status(scene), 13.5, INK if over else GOLD, bold=True, room=room),
        *words_and_suits(EDGE, 438, note, 12, INK if over else WORDS, room=room),
    ]


def _news(scene: Scene, remark: str) -> list[Shape]:
    """What stands after exhaustion where the discards were."""
    if not scene.exhausted:
        return []
    lines: list[tuple[str, float, str]] = []
    if scene.to_move < 0:
        lead = scene.returns[0]
        result = "a draw" if lead == 0 else f"{NAMES[0 if lead > 0 else 1]} wins"
        lines.append((result, 22.0, GOLD))
    elif not remark:
        lines += [("The stock has run out:", 12.0, QUIET), ("all cards are known.", 12.0, QUIET)]
    if remark:
        lines += [("the last turn", 12.0, QUIET), (remark, 14.0, WORDS)]
    room = WIDTH - EDGE - PILES
    y = MIDDLE + MIDDLE_HEIGHT / 2 - 12 * (len(lines) - 1) + 5
    shapes: list[Shape] = []
    for text, size, colour in lines:
        bold = colour != QUIET
        x = PILES + room / 2
        shapes += words_and_suits(x, y, text, size, colour, bold, "middle", room)
        y += size * 0.5 + 14
    return shapes


# --- Cards --------------------------------------------------------------------------------------


def _card(
    x: float,
    y: float,
    width: float,
    height: float,
    card: int | None,
    rules: Rules,
    marks: Sequence[str] = (),
) -> Group:
    """One card. ``marks``: legal, dim (not legal), chosen (a ghost), new (a blue dot)."""
    radius = round(width * 0.1, 1)
    edge, line = (GOLD, LEGAL_EDGE) if "legal" in marks else (PAPER_EDGE, 0.8)
    paper = PAPER
    if "dim" in marks or "chosen" in marks:
        paper = mixed(PAPER, FELT, 0.34)
        edge = mixed(PAPER_EDGE, FELT, 0.34)
    shapes: list[Rect | SuitMark | Text] = [
        Rect(1, 1.5, width, height, SHADOW + "66", radius=radius),
        Rect(0, 0, width, height, paper, radius=radius, stroke=edge, stroke_width=line),
    ]
    if card is None:
        name = "back"
        shapes += _back(width, height, radius)
    else:
        name = card_name(card, rules)
        shapes += _face(width, height, card, rules, paper, "chosen" in marks)
    if "new" in marks:
        size = max(5.0, width * 0.13)
        shapes.append(
            Rect(width * 0.09, height - size * 1.5, size, size, BLUE, size / 2, PAPER, 1.0)
        )
    return Group(x, y, width, height, name, tuple(marks), tuple(shapes))


def _face(
    width: float, height: float, card: int, rules: Rules, paper: str, ghost: bool
) -> list[Rect | SuitMark | Text]:
    suit, rank = divmod(card, rules.ranks)
    colour = mixed(SUIT_COLOURS[suit], paper, 0.55 if ghost else 0.0)
    letter = RANK_LETTERS[rank].replace("T", "10")
    corner = min(19.0, max(10.0, width * 0.34))  # both signs fit in the strip an overlap leaves
    corner_size = corner * 0.78 if letter == "10" else corner
    suit_size = corner * 0.74
    widest = max(text_width(letter, corner_size), suit_size)
    middle = max(corner * 0.48, width * 0.17, MARGIN + widest / 2)
    shapes: list[Rect | SuitMark | Text] = [
        Text(middle, corner * 0.98, letter, corner_size, colour, "middle", bold=True),
        SuitMark(middle - suit_size / 2, corner * 1.12, suit_size, suit, colour),
    ]
    big = width * 0.5
    if height > corner * 2 + big * 0.8:
        shapes.append(SuitMark(width * 0.44, height - big - width * 0.1, big, suit, colour))
    return shapes


def _back(width: float, height: float, radius: float) -> list[Rect | SuitMark | Text]:
    inset = max(2.0, width * 0.06)
    inner = max(1.0, radius - inset)
    shapes: list[Rect | SuitMark | Text] = [
        Rect(inset, inset, width - 2 * inset, height - 2 * inset, BACK, radius=inner)
    ]
    columns, rows = (3, 4) if width > 40 else (2, 3)
    wide, high = (width - 2 * inset) / columns, (height - 2 * inset) / rows
    size = min(wide, high) * 0.72
    for row in range(rows):
        for column in range(columns):
            x = inset + (column + 0.5) * wide - size / 2
            y = inset + (row + 0.5) * high - size / 2
            shapes.append(SuitMark(x, y, size, 1, mixed(BACK, BACK_LIGHT, 0.5)))
    return shapes


def _marks(**marks: bool) -> tuple[str, ...]:
    return tuple(name for name, on in marks.items() if on)


def _hand(scene: Scene, earlier: Scene, player: int, upper: bool) -> list[Shape]:
    """A hand in one row, or two if it is large; cards overlap where there is no room."""
    hand = scene.seats[player].hand
    if not hand:
        return _empty_hand(upper)
    chooses = scene.to_move == player and scene.phase in (Phase.LEFT, Phase.RIGHT, Phase.DISCARD)
    # Nothing of a hand that was swapped or grew by a whole discard is worth a dot.
    same = earlier.exhausted == scene.exhausted
    old = earlier.seats[player].hand
    rows = [hand] if len(hand) <= ROW else [hand[: len(hand) // 2], hand[len(hand) // 2 :]]
    width, height = (56.0, HAND_HEIGHT - RAISED) if len(rows) == 1 else (46.0, 50.0)
    longest = max(len(row) for row in rows)
    # Both rows have the same step, so that they stand in line.
    step = _step(longest, width, width + 4, WIDTH - 2 * EDGE)
    top = TOP_HAND if upper else BOTTOM_HAND
    shapes: list[Shape] = []
    for number, row in enumerate(rows):
        x = (WIDTH - step * (longest - 1) - width) / 2
        y = top + RAISED if len(rows) == 1 else top + number * (HAND_HEIGHT - height - 1) + 1
        for card in row:
            legal = chooses and card in scene.legal
            chosen = card is not None and card == scene.chosen and scene.to_move == player
            marks = _marks(
                legal=legal,
                dim=chooses and not legal and not chosen,
                chosen=chosen,
                new=same and card is not None and card not in old,
            )
            lift = (RAISED if len(rows) == 1 else 2) if legal else 0
            shapes.append(_card(x, y - lift, width, height, card, scene.rules, marks))
            x += step
    return shapes


def _step(count: int, width: float, widest: float, room: float) -> float:
    """From one card of a row to the next."""
    return min(widest, (room - width) / max(count - 1, 1))


def _empty_hand(upper: bool) -> list[Shape]:
    y = (TOP_HAND if upper else BOTTOM_HAND) + HAND_HEIGHT / 2 + 4
    return [*words_and_suits(WIDTH / 2, y, "no cards in hand", 13, QUIET, anchor="middle")]


# --- The middle ---------------------------------------------------------------------------------


def _stock(scene: Scene) -> list[Shape]:
    """The stock, with how many cards it has, and how many are buried."""
    x, y, width, height = float(EDGE), MIDDLE + 12.0, 54.0, 74.0
    shapes: list[Shape] = []
    if scene.stock_size == 0:
        shapes.append(Rect(x, y, width, height, FELT, radius=5.4, stroke=LINE, stroke_width=1))
        shapes += words_and_suits(
            x + width / 2, y + height / 2 + 4, "empty", 12, QUIET, anchor="middle"
        )
    else:
        legal = scene.rules.stock_action in scene.legal
        under = min(2, scene.stock_size - 1)
        shapes += [
            _card(x + 2 * i, y + 2 * i, width, height, None, scene.rules)
            for i in range(under, 0, -1)
        ]
        top = _card(x, y, width, height, None, scene.rules, _marks(legal=legal))
        number = str(scene.stock_size)
        wide = text_width(number, 16) + 14
        plate = Rect((width - wide) / 2, height / 2 - 12, wide, 24, BAR, radius=12)
        label = Text(width / 2, height / 2 + 6, number, 16, WORDS, "middle", bold=True)
        name = f"stock{scene.stock_size}"
        shapes.append(Group(x, y, width, height, name, top.marks, (*top.shapes, plate, label)))
    words = f"stock {scene.stock_size}"
    shapes += words_and_suits(x, y + height + 19, words, 12, WORDS)
    shapes += words_and_suits(x, y + height + 36, f"buried {scene.buried_size}", 12, QUIET)
    return shapes


def _table(scene: Scene, earlier: Scene) -> list[Shape]:
    """The two table cards, an arrow above the one to be covered, and the card picked for it."""
    width, height, gap = 70.0, 98.0, 8.0
    left, y = 88.0, MIDDLE + 22.0
    shapes: list[Shape] = []
    for side, card in enumerate(scene.table):
        x = left + side * (width + gap)
        if scene.buried_size:
            shapes.append(_card(x + 2.5, y + 2.5, width, height, None, scene.rules))
        marks = _marks(new=card != earlier.table[side])
        shapes.append(_card(x, y, width, height, card, scene.rules, marks))
        word = ("left", "right")[side]
        shapes += words_and_suits(x + width / 2, y + height + 17, word, 12, QUIET, anchor="middle")
    if scene.phase in (Phase.LEFT, Phase.RIGHT):
        side = 0 if scene.phase == Phase.LEFT else 1
        x = left + side * (width + gap) + width / 2
        shapes += _arrow(x, y - 16)
    if scene.chosen is not None:
        shapes.append(_card(left - 8, y + 26, 56, 78, scene.chosen, scene.rules, ("picked",)))
    return shapes


def _arrow(x: float, y: float) -> list[Shape]:
    """A small golden arrow downwards."""
    return [Rect(x - 6 + i / 2, y + i, 12 - i, 1, GOLD) for i in range(12)]


def _discard(scene: Scene, earlier: Scene, player: int, upper: bool) -> list[Shape]:
    """A discard, bottom left, top right; two rows if it is large."""
    pile = scene.seats[player].discard
    top = MIDDLE + 3.0 if upper else MIDDLE + MIDDLE_HEIGHT / 2 + 1
    width, height, row_length = 32.0, 41.0, 15
    number = len(pile)
    if scene.exhausted:
        return []
    words = f"discard {number}" if number else "discard empty"
    shapes: list[Shape] = [*words_and_suits(PILES, top + 10, words, 11, QUIET)]
    if not pile:
        return shapes
    old = earlier.seats[player].discard
    first = pile[: number // 2] if number > row_length else ()
    rows = [row for row in (first, pile[len(first) :]) if row]
    reclaim = scene.to_move == player and scene.rules.reclaim_action in scene.legal
    for index, row in enumerate(rows):
        step = _step(len(row), width, width + 3, WIDTH - EDGE - PILES)
        for place, card in enumerate(row):
            is_top = row is rows[-1] and place == len(row) - 1
            position = place + (len(first) if row is not first else 0)
            marks = _marks(
                legal=reclaim and is_top,
                new=position >= len(old) or (card is not None and card != old[position]),
            )
            y = top + 14 + index * 15
            shapes.append(_card(PILES + place * step, y, width, height, card, scene.rules, marks))
    return shapes
