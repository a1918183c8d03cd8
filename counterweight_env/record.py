"""Game records: what was dealt, who played what, and how it ended; saved, loaded and replayed.

A record holds everything that a game's course follows from, so it can be played again and checked
move by move. A file of records has one record a line (JSON Lines), with one field each for

| field | what |
|---|---|
| ``rules`` | the rules' text |
| ``dealer`` | 0 or 1; the other player moves first (S3) |
| ``players`` | the names of player 0 and player 1 |
| ``deck`` | the cards in the order of :meth:`Game.from_deck`, as one text |
| ``actions`` | every decision in order, as one text of cards, STOCK and RECLAIM |
| ``returns`` | +1 win, 0 draw, -1 loss for each player (F3) |
| ``fault`` | null, or ``player`` and ``reason`` of the player on turn who gave the game up |
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from counterweight_env.cards import action_name, card_name, parse_action, parse_card
from counterweight_env.game import Game, IllegalActionError
from counterweight_env.rules import Rules

__all__ = [
    "Fault",
    "GameRecord",
    "RecordError",
    "append_records",
    "read_records",
    "replay",
    "write_records",
]

#: How every record begins.
FIRST_BYTES: Final = b'{"rules": "'
FIELDS: Final = ("rules", "dealer", "players", "deck", "actions", "returns", "fault")


class RecordError(ValueError):
    """A record that is damaged, or whose game the rules do not allow; the message says where."""


@dataclass(frozen=True)
class Fault:
    """How a player lost a game without playing it to its end.

    Attributes:
        player: 0 or 1, the player on turn, who gave up.
        reason: Why.
    """

    player: int
    reason: str


@dataclass(frozen=True)
class GameRecord:
    """One game.

    Attributes:
        rules: The text of the rules, as ``str(Rules)`` gives it.
        dealer: 0 or 1.
        players: The names of player 0 and player 1.
        deck: All cards, in the order of :meth:`Game.from_deck`.
        actions: Every decision, in order.
        returns: +1 win, 0 draw, -1 loss, for each player.
        fault: Who gave the game up and why; None for a game that was played to its end.
    """

    rules: str
    dealer: int
    players: tuple[str, str]
    deck: tuple[int, ...]
    actions: tuple[int, ...]
    returns: tuple[float, float]
    fault: Fault | None = None

    def deal(self) -> Game:
        """The game as it was dealt.

        Raises:
            RecordError: The rules, the dealer or the deck are none.
        """
        try:
            return Game.from_deck(self.deck, self.rules, self.dealer)
        except (TypeError, ValueError) as error:
            raise RecordError(str(error)) from None

    def to_json(self) -> str:
        """The record as one line of JSON, without the line's end."""
        rules = Rules.parse(self.rules)
        fault = self.fault
        return json.dumps(
            {
                "rules": self.rules,
                "dealer": self.dealer,
                "players": list(self.players),
                "deck": " ".join(card_name(card, rules) for card in self.deck),
                "actions": " ".join(action_name(action, rules) for action in self.actions),
                "returns": list(self.returns),
                "fault": fault and {"player": fault.player, "reason": fault.reason},
            }
        )

    @classmethod
    def from_json(cls, text: str) -> GameRecord:
        """Reads what :meth:`to_json` writes. The game itself is checked by :func:`replay`.

        Raises:
            RecordError: The text is no JSON object of this form; the message names the field.
        """
        try:
            data = json.loads(text)
        except (RecursionError, json.JSONDecodeError) as error:
            raise RecordError(f"not the JSON of a record: {error}") from None
        if not isinstance(data, dict) or set(data) != set(FIELDS):
            wrong = sorted(set(FIELDS) ^ set(data)) if isinstance(data, dict) else data
            raise RecordError(f"not a record: fields missing or unknown: {wrong}")
        try:
            rules = Rules.parse(data["rules"])
        except (TypeError, ValueError) as error:
            raise RecordError(f"rules: {error}") from None
        try:
            deck = tuple(parse_card(word, rules) for word in _words(data, "deck"))
        except ValueError as error:
            raise RecordError(f"deck: {error}") from None
        words = _words(data, "actions")
        try:
            actions = tuple(parse_action(word, rules) for word in words)
        except ValueError:
            number = next(i for i, word in enumerate(words) if not _is_action(word, rules))
            raise RecordError(f"move {number + 1}: {words[number]!r} is no action") from None
        return cls(
            rules=str(rules),
            dealer=_one_of(data, "dealer", (0, 1)),
            players=_pair(data, "players", str),
            deck=deck,
            actions=actions,
            returns=_returns(data),
            fault=_fault(data),
        )


def _words(data: dict[str, Any], field: str) -> list[str]:
    if not isinstance(data[field], str):
        raise RecordError(f"{field} must be a text, got {data[field]!r}")
    return str(data[field]).split()


def _is_action(word: str, rules: Rules) -> bool:
    try:
        parse_action(word, rules)
    except ValueError:
        return False
    return True


def _one_of(data: dict[str, Any], field: str, values: tuple[int, ...]) -> int:
    value = data[field]
    if type(value) is not int or value not in values:
        raise RecordError(f"{field} must be one of {values}, got {value!r}")
    return value


def _pair(data: dict[str, Any], field: str, kind: type) -> tuple[Any, Any]:
    value = data[field]
    if not isinstance(value, list) or [type(entry) for entry in value] != [kind, kind]:
        raise RecordError(f"{field} must be two of {kind.__name__}, got {value!r}")
    return value[0], value[1]


def _returns(data: dict[str, Any]) -> tuple[float, float]:
    value = data["returns"]
    if value not in ([1, -1], [0, 0], [-1, 1]):
        raise RecordError(f"returns must be [1, -1], [0, 0] or [-1, 1], got {value!r}")
    return float(value[0]), float(value[1])


def _fault(data: dict[str, Any]) -> Fault | None:
    value = data["fault"]
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"player", "reason"}:
        raise RecordError(f"fault must be null or have player and reason, got {value!r}")
    if not isinstance(value["reason"], str):
        raise RecordError(f"fault's reason must be a text, got {value['reason']!r}")
    return Fault(_one_of(value, "player", (0, 1)), value["reason"])


def replay(record: GameRecord) -> Iterator[Game]:
    """Plays a record again, checks every move, and the result at the end.

    Yields:
        The game after each move, one and the same object all along: copy what is to be kept.
        :meth:`GameRecord.deal` gives the game before the first.

    Raises:
        RecordError: The deal, a move or the result is wrong; the message names the move.
    """
    game = record.deal()
    for number, action in enumerate(record.actions, start=1):
        try:
            game.step(action)
        except IllegalActionError as error:
            raise RecordError(f"move {number}: {error}") from None
        yield game
    moves = f"after {len(record.actions)} moves"
    if record.fault is None:
        if not game.done:
            raise RecordError(f"{moves} the game is not over, and nobody gave it up")
        returns = game.returns
    else:
        if game.done or record.fault.player != game.to_move:
            raise RecordError(f"player {record.fault.player}, who gave up, is not on turn {moves}")
        returns = (-1.0, 1.0) if record.fault.player == 0 else (1.0, -1.0)
    if record.returns != returns:
        raise RecordError(f"{moves} the returns are {returns}, not {record.returns}")


# --- Files --------------------------------------------------------------------------------------


def write_records(path: Path, records: Iterable[GameRecord]) -> None:
    """Writes a file of records: whole, or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(record.to_json() + "\n" for record in records)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _check_first(path: Path, line: bytes) -> None:
    """Refuses a file by its first line, unless that is a record or what is left of one."""
    try:
        GameRecord.from_json(line.decode())
    except (RecordError, UnicodeDecodeError) as error:
        try:
            json.loads(line)
            is_cut = False
        except ValueError:
            is_cut = line.startswith(FIRST_BYTES) or FIRST_BYTES.startswith(line)
        if line.endswith(b"\n") or not is_cut:
            raise RecordError(f"{path} holds something else than records: {error}") from None


def append_records(path: Path, records: Iterable[GameRecord]) -> None:
    """Adds records to a file, which need not exist.

    A last line without its end, which a killed process leaves behind, is dropped first. A file that
    begins with anything but a record is left as it is.

    Raises:
        OSError: The file cannot be written.
        RecordError: It holds something else than records.
    """
    with path.open("a+b") as file:
        file.seek(0)
        line = file.readline()
        if line:
            _check_first(path, line)
        file.seek(0, os.SEEK_END)
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)
        file.writelines(record.to_json().encode() + b"\n" for record in records)


def read_records(path: Path) -> Iterator[GameRecord]:
    """Reads a file of records, one by one.

    Raises:
        OSError: The file cannot be read.
        RecordError: A line is no record, or the last one has no end; the message names the line.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                if not line.endswith(b"\n"):
                    raise RecordError("cut off")
                yield GameRecord.from_json(line.decode())
            except (RecordError, UnicodeDecodeError) as error:
                raise RecordError(f"{path}, line {number}: {error}") from None
