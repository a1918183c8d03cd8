"""Blocks of deals, the units of work of a round robin, and the folder that keeps them.

A block is some deals in a row of one rule set, played by one pair. It follows from its
:class:`BlockTask` alone. The folder holds one file a block, written whole or not at all, so a run
killed at any moment loses the blocks it was at and no more:

| file | holds |
|---|---|
| ``setup.json`` | what is played: the :class:`Setup` |
| ``RULES/A_vs_B/NNNNNN.json`` | one block: scores, turns, decisions, blunders and faults by game |
| ``RULES/A_vs_B/NNNNNN.time.json`` | the seconds it took, which differ from run to run |
| ``RULES/A_vs_B/NNNNNN.games.jsonl`` | its games, if they were recorded |
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np

from agents.agent import Agent, close_agent, make_agent
from agents.arena import DealsPlayed, play_deals
from agents.blunders import Verdict
from counterweight_env.record import write_records
from counterweight_env.rules import as_rules

__all__ = ["BlockStore", "BlockTask", "Setup", "SetupError", "pairs_of", "play_block"]

FORMAT: Final = 1
BLOCK_DEALS: Final = 50


class SetupError(ValueError):
    """What is to be played cannot be, or does not fit the folder; the message names the field."""


@dataclass(frozen=True)
class Setup:
    """What is played.

    Attributes:
        players: Two or more different texts, as :func:`make_agent` reads them.
        rules: One or more different texts of rules.
        deals: Deals a pair and rule set; None if the results decide (``counterweight sprt``).
        seed: Where the deals come from, from 0 to 2**64 - 1.
        count_blunders: Whether every turn after exhaustion is solved.
        block_deals: Deals a block.

    Raises:
        SetupError: A field is bad.
    """

    players: tuple[str, ...]
    rules: tuple[str, ...]
    deals: int | None
    seed: int = 0
    count_blunders: bool = True
    block_deals: int = BLOCK_DEALS

    def __post_init__(self) -> None:
        if len(self.players) < 2:
            raise SetupError(f"players must be at least two, got {list(self.players)}")
        for name, texts in (("players", self.players), ("rules", self.rules)):
            bare = [text.strip() for text in texts]
            doubled = [text for text in bare if bare.count(text) > 1]
            if doubled:
                raise SetupError(f"{name}: {doubled[0]!r} stands twice")
        if not self.rules:
            raise SetupError("rules must be at least one")
        for rules in self.rules:
            try:
                as_rules(rules)
            except ValueError as error:
                raise SetupError(str(error)) from None
        for name, least in (("deals", 1), ("seed", 0), ("block_deals", 1)):
            value = getattr(self, name)
            if name == "deals" and value is None:
                continue
            if type(value) is not int or value < least:
                raise SetupError(f"{name} must be an int of at least {least}, got {value!r}")
        if self.seed >= 2**64:
            raise SetupError(f"seed must be less than 2**64, got {self.seed}")

    def tasks(self, record: bool = False) -> Iterator[BlockTask]:
        """The blocks, as :meth:`pair_tasks`, of every rule set and pair."""
        for rules in self.rules:
            for a, b in pairs_of(self.players):
                yield from self.pair_tasks(rules, a, b, record)

    def pair_tasks(self, rules: str, a: str, b: str, record: bool = False) -> Iterator[BlockTask]:
        """The blocks of one pair, without end if ``deals`` is None."""
        number = 0
        while self.deals is None or number * self.block_deals < self.deals:
            first = number * self.block_deals
            last = first + self.block_deals
            if self.deals is not None:
                last = min(last, self.deals)
            blunders = self.count_blunders
            yield BlockTask(rules, a, b, self.seed, number, first, last - first, blunders, record)
            number += 1


def pairs_of(players: tuple[str, ...]) -> list[tuple[str, str]]:
    """All pairs; which of the two is `a`, and so all that they play, is settled by the alphabet."""
    return list(combinations(sorted(players), 2))


@dataclass(frozen=True)
class BlockTask:
    """What a block follows from.

    Attributes:
        rules: The rules' text.
        a: The first player's text.
        b: The second player's text.
        seed: Where the deals come from.
        number: Of the block in its pair.
        first_deal: The first deal.
        deals: How many.
        count_blunders: Whether turns after exhaustion are solved.
        record: Whether the games are kept.
    """

    rules: str
    a: str
    b: str
    seed: int
    number: int
    first_deal: int
    deals: int
    count_blunders: bool
    record: bool


def play_block(task: BlockTask) -> tuple[BlockTask, DealsPlayed]:
    """Plays a block with players of its own, so that no other block has a say in it.

    Raises:
        IllegalActionError: A player answered with an illegal action.
        ValueError: A text names no player.
    """
    made: list[Agent] = []
    try:
        made.extend(make_agent(text) for text in (task.a, task.b))
        played = play_deals(
            (made[0], made[1]),
            as_rules(task.rules),
            task.seed,
            task.first_deal,
            task.deals,
            task.count_blunders,
            task.record,
        )
    finally:
        for agent in made:
            close_agent(agent)
    return task, played


#: The arrays of a block's file, with their shapes but for the deals.
ARRAYS: Final[dict[str, tuple[type, tuple[int, ...]]]] = {
    "scores": (np.float64, (2,)),
    "first_movers": (np.int8, ()),
    "turns": (np.int64, (2,)),
    "decisions": (np.int64, (2, 2)),
    "verdicts": (np.int64, (2, 2, len(Verdict))),
}


class BlockStore:
    """The folder of a run.

    Args:
        folder: New, empty, or that of a run which this one goes on with or extends: by more deals,
            players or rule sets.
        setup: What is to be played.

    Raises:
        SetupError: The folder holds something else.
    """

    def __init__(self, folder: Path, setup: Setup) -> None:
        self.folder = folder
        path = folder / "setup.json"
        if path.exists():
            _check_extension(_read_setup(path), setup, folder)
        elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise SetupError(f"{folder} is not empty, and no folder of such a run")
        folder.mkdir(parents=True, exist_ok=True)
        for draft in folder.rglob(".*.draft"):  # of a killed process
            draft.unlink()
        write_text(path, json.dumps({"format": FORMAT, **asdict(setup)}, indent=1) + "\n")

    def path(self, task: BlockTask) -> Path:
        """Where a block is kept, without the end of the name."""
        pair = f"{file_name(task.a)}_vs_{file_name(task.b)}"
        return self.folder / file_name(task.rules) / pair / f"{task.number:06d}"

    def is_done(self, task: BlockTask) -> bool:
        """Whether a block needs not be played. One that more deals have made longer does.

        Raises:
            SetupError: The file is that of another block.
        """
        path = self.path(task)
        if not path.with_suffix(".json").exists():
            return False
        deals: int = self._read(task)["task"]["deals"]
        if deals != task.deals or not task.record:
            return deals == task.deals
        games = path.with_suffix(".games.jsonl")
        return games.exists() and games.read_bytes().count(b"\n") == 2 * deals

    def write(self, task: BlockTask, played: DealsPlayed) -> None:
        """Keeps a finished block."""
        path = self.path(task)
        path.parent.mkdir(parents=True, exist_ok=True)
        block = {
            "task": _key(task),
            **{name: getattr(played, name).tolist() for name in ARRAYS},
            "faults": played.faults,
        }
        games = path.with_suffix(".games.jsonl")
        if task.record:
            write_records(games, played.records)
        else:
            games.unlink(missing_ok=True)  # that of a shorter block
        seconds = {name: float(played.seconds[i]) for i, name in enumerate(("a", "b"))}
        write_text(path.with_suffix(".time.json"), json.dumps(seconds) + "\n")
        write_text(path.with_suffix(".json"), json.dumps(block) + "\n")  # the last: it says "done"

    def read(self, task: BlockTask) -> DealsPlayed:
        """The results of a finished block, without its records.

        Raises:
            SetupError: The file is damaged, or that of another block.
        """
        data = self._read(task)
        arrays = {}
        for name, (dtype, shape) in ARRAYS.items():
            array: np.ndarray = np.array(data[name], dtype)
            if array.shape != (task.deals, *shape):
                raise SetupError(f"{self.path(task)}.json is damaged: {name} {array.shape}")
            arrays[name] = array
        try:
            times = json.loads(self.path(task).with_suffix(".time.json").read_text())
            seconds = np.array([times["a"], times["b"]], np.float64)
        except (OSError, ValueError, KeyError):
            seconds = np.full(2, np.nan)
        faults = [(deal, game, player, reason) for deal, game, player, reason in data["faults"]]
        return DealsPlayed(**arrays, faults=faults, seconds=seconds, records=[])

    def _read(self, task: BlockTask) -> dict[str, Any]:
        path = self.path(task).with_suffix(".json")
        try:
            data = json.loads(path.read_text())
            kept = data["task"]
            same = _key(replace(task, deals=kept["deals"])) == kept
            missing = [name for name in (*ARRAYS, "faults") if name not in data]
        except (ValueError, KeyError, TypeError) as error:
            raise SetupError(f"{path} is damaged: {error!r}; delete it to play it again") from None
        if missing:
            raise SetupError(f"{path} is damaged: no {missing[0]}; delete it to play it again")
        if not same:
            raise SetupError(f"{path} is of another block: {kept}")
        return data


def _key(task: BlockTask) -> dict[str, Any]:
    """What a block's results follow from."""
    key = asdict(task)
    del key["record"], key["number"]
    return key


def _read_setup(path: Path) -> Setup:
    """Reads a folder's set-up.

    Raises:
        SetupError: It is damaged or of another version.
    """
    try:
        data = json.loads(path.read_text())
        if data.pop("format") != FORMAT:
            raise SetupError(f"{path} is of another version")
        for name in ("players", "rules"):
            data[name] = tuple(data[name])
        return Setup(**data)
    except (json.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
        raise SetupError(f"{path} is damaged: {error!r}") from None


def _check_extension(old: Setup, new: Setup, folder: Path) -> None:
    """Refuses a set-up that leaves out or changes what the folder was made for.

    Raises:
        SetupError: The message names the field and both values.
    """
    for name in ("players", "rules"):
        gone = [text for text in getattr(old, name) if text not in getattr(new, name)]
        if gone:
            raise SetupError(f"{name}: {folder} has {gone[0]!r} too; name it, or take a new folder")
    for field in fields(Setup):
        before, now = getattr(old, field.name), getattr(new, field.name)
        more = field.name == "deals" and None not in (before, now) and before <= now
        if field.name not in ("players", "rules") and before != now and not more:
            raise SetupError(f"{field.name}: {folder} has {before}, not {now}; take a new folder")


def file_name(text: str) -> str:
    """A text as the name of a file or folder; different texts have different names."""
    if re.fullmatch(r"[\w=,()-][\w.=,()+-]{0,59}", text, re.ASCII):
        return text
    cleaned = re.sub(r"[^\w.=,()+-]+", "_", text, flags=re.ASCII).lstrip(".")[:60]
    return f"{cleaned}-{sha256(text.encode()).hexdigest()[:8]}"


def write_text(path: Path, text: str) -> None:
    """Writes a file: whole, or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
