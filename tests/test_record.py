"""Game records: saving, loading, replaying, and refusing what is damaged.

Recorded games are held against `ReferenceGame`, which knows the rules from the rule book alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference_game import ReferenceGame

from agents import make_agent
from agents.arena import deal_twice, play_deals
from counterweight_env import Game, Rules
from counterweight_env.record import (
    Fault,
    GameRecord,
    RecordError,
    append_records,
    read_records,
    replay,
    write_records,
)
from train.cli import main

SMALL = "exchange(ranks=6,suits=2,hand_size=3)"
RULES = ("classic", "exchange", SMALL, "classic(open_discards=False,blocked=discard)")


def records_of(rules: str, deals: int, seed: int = 41) -> list[GameRecord]:
    """Return the games of a match of random against greedy."""
    pair = make_agent("random"), make_agent("greedy")
    return play_deals(pair, Rules.parse(rules), seed, 0, deals, record=True).records


def replayed(record: GameRecord) -> int:
    """Return the number of moves of a record that is right."""
    return sum(1 for _ in replay(record))


@pytest.mark.parametrize("rules", RULES)
def test_a_recorded_game_is_one_by_the_rule_book(rules: str) -> None:
    parsed = Rules.parse(rules)
    for number, record in enumerate(records_of(rules, 12)):
        players = ("random", "greedy")
        assert record.players == (players if number % 2 == 0 else players[::-1])
        reference = ReferenceGame(
            record.deck,
            parsed.variant,
            parsed.ranks,
            parsed.suits,
            parsed.hand_size,
            parsed.open_discards,
            parsed.blocked,
            record.dealer,
        )
        for game, action in zip(replay(record), record.actions, strict=True):
            assert action in reference.legal_actions()
            reference.step(action)
            assert [list(game.hand(player)) for player in (0, 1)] == reference.hands
            assert list(game.table) == reference.table
            assert game.to_move == reference.to_move
        assert reference.done
        assert record.returns == reference.returns
        assert record.fault is None


def test_the_deck_is_the_one_that_was_dealt() -> None:
    dealt = deal_twice(Rules(), 41, 0, 6)
    for row, record in enumerate(records_of("classic", 6)):
        expected, found = (json.loads(game.to_json()) for game in (dealt[row], record.deal()))
        for data in (expected, found):
            del data["rng"]
        assert found == expected


@pytest.mark.parametrize("rules", RULES)
def test_text_and_back(rules: str) -> None:
    given_up = GameRecord(
        rules, 0, ("a b", "exec:./böt"), records_of(rules, 1)[0].deck, (), (1.0, -1.0), None
    )
    given_up = replace(given_up, fault=Fault(1, "said 'no'\nand \x00 left"))
    for record in (*records_of(rules, 3), given_up):
        text = record.to_json()
        assert "\n" not in text
        assert text.isascii()
        assert GameRecord.from_json(text) == record
        assert replayed(record) == len(record.actions)


def test_a_line_reads_as_the_documentation_says() -> None:
    (record,) = (r for r in records_of(SMALL, 1)[:1])
    data = json.loads(record.to_json())
    assert data["rules"] == SMALL
    assert sorted(data["deck"].split()) == sorted(rank + suit for rank in "A23456" for suit in "CD")
    game = Game.from_deck(data["deck"].split(), data["rules"], data["dealer"])
    assert game.to_move == 1 - data["dealer"]
    assert len(data["actions"].split()) == len(record.actions)
    assert data["returns"] in ([1, -1], [0, 0], [-1, 1])
    assert data["fault"] is None


# What is refused -------------------------------------------------------------------------------


def unlike(record: GameRecord, number: int) -> int:
    """Return a card that is illegal as the given move of a record, from 1."""
    game = record.deal()
    for action in record.actions[: number - 1]:
        game.step(action)
    return next(a for a in range(game.rules.num_actions) if a not in game.legal_actions())


@pytest.mark.parametrize("rules", RULES)
def test_an_illegal_move_is_named_wherever_it_stands(rules: str) -> None:
    record = records_of(rules, 1)[0]
    for number in range(1, len(record.actions) + 1):
        moves = list(record.actions)
        moves[number - 1] = unlike(record, number)
        with pytest.raises(RecordError, match=rf"^move {number}: action {moves[number - 1]} "):
            replayed(replace(record, actions=tuple(moves)))


def test_a_game_cut_short_or_gone_on_with_is_refused() -> None:
    record = records_of("classic", 1)[0]
    for length in range(len(record.actions)):
        with pytest.raises(RecordError, match=f"after {length} moves the game is not over"):
            replayed(replace(record, actions=record.actions[:length]))
    number = len(record.actions) + 1
    with pytest.raises(RecordError, match=f"move {number}: .*the game is over"):
        replayed(replace(record, actions=(*record.actions, 0)))


@pytest.mark.parametrize("rules", RULES)
def test_a_wrong_result_is_refused(rules: str) -> None:
    seen = set()
    for record in records_of(rules, 12):
        seen.add(record.returns)
        for returns in ((1.0, -1.0), (0.0, 0.0), (-1.0, 1.0)):
            if returns != record.returns:
                with pytest.raises(RecordError, match="the returns are"):
                    replayed(replace(record, returns=returns))
    assert len(seen) >= 2


def test_the_wrong_dealer_or_deck_never_passes() -> None:
    for record in records_of("classic", 10):
        with pytest.raises(RecordError, match=r"^move 1: "):
            replayed(replace(record, dealer=1 - record.dealer))
        other = record.deck[6:12] + record.deck[:6] + record.deck[12:]
        with pytest.raises(RecordError, match=r"^move 1: "):
            replayed(replace(record, deck=other))
        doubled = (record.deck[1], *record.deck[1:])
        with pytest.raises(RecordError, match="stands twice"):
            replayed(replace(record, deck=doubled))
        with pytest.raises(RecordError, match="51 cards"):
            replayed(replace(record, deck=record.deck[1:]))


def test_only_the_player_on_turn_can_give_up_and_loses() -> None:
    record = records_of("classic", 1)[0]
    game = record.deal()
    for length, action in enumerate(record.actions):
        cut = replace(record, actions=record.actions[:length])
        for player in (0, 1):
            for returns in ((1.0, -1.0), (-1.0, 1.0), (0.0, 0.0)):
                given_up = replace(cut, returns=returns, fault=Fault(player, "crash"))
                if player == game.to_move and returns[player] == -1.0:
                    assert replayed(given_up) == length
                else:
                    with pytest.raises(RecordError, match=r"not on turn|returns are"):
                        replayed(given_up)
        game.step(action)
    with pytest.raises(RecordError, match="not on turn"):
        replayed(replace(record, fault=Fault(0, "crash")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rules": "whist"}, "rules: .*whist"),
        ({"rules": 3}, "rules"),
        ({"dealer": 2}, "dealer .*2"),
        ({"dealer": True}, "dealer .*True"),
        ({"dealer": "0"}, "dealer .*'0'"),
        ({"players": ["a"]}, "players .*'a'"),
        ({"players": ["a", 3]}, "players .*3"),
        ({"players": "ab"}, "players .*ab"),
        ({"deck": "AC 1X"}, "deck: .*1X"),
        ({"deck": ["AC"]}, "deck must be a text"),
        ({"deck": "7C"}, "deck: .*7C"),
        ({"actions": "AC 2C HUH AD"}, "move 3: 'HUH'"),
        ({"actions": [1, 2]}, "actions must be a text"),
        ({"returns": [1, 1]}, r"returns .*\[1, 1\]"),
        ({"returns": [0.5, -0.5]}, "returns .*0.5"),
        ({"returns": None}, "returns .*None"),
        ({"fault": {"player": 0}}, "fault"),
        ({"fault": {"player": 2, "reason": ""}}, "player .*2"),
        ({"fault": {"player": 0, "reason": 3}}, "reason .*3"),
        ({"fault": "crash"}, "fault .*crash"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_bad_field_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    data = json.loads(records_of(SMALL, 1)[0].to_json())
    with pytest.raises(RecordError, match=message):
        GameRecord.from_json(json.dumps({**data, **change}))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "3", '{"rules": "classic"}', "[" * 100_000]
)
def test_what_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(RecordError, match=r"not .*record"):
        GameRecord.from_json(text)


# Files -----------------------------------------------------------------------------------------


def test_a_file_of_records(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    records = records_of(SMALL, 5)
    write_records(path, records[:4])
    assert list(read_records(path)) == records[:4]
    append_records(path, records[4:])
    assert list(read_records(path)) == records
    append_records(tmp_path / "new.jsonl", records)
    assert (tmp_path / "new.jsonl").read_bytes() == path.read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["games.jsonl", "new.jsonl"]


@pytest.mark.parametrize(
    "content",
    [
        Game(SMALL, seed=1).to_json().encode(),
        Game(SMALL, seed=1).to_json().encode() + b"\n",
        b"dear",
        b"dear\nfriend\n",
        b"\x93NUMPY\x01\x00",
        b"\n",
        b'{"rules": "classic"}',
    ],
)
def test_a_file_of_something_else_is_not_touched(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "letter"
    path.write_bytes(content)
    for records in ([], records_of(SMALL, 1)):
        with pytest.raises(RecordError, match="letter holds something else"):
            append_records(path, records)
    assert path.read_bytes() == content


@pytest.mark.parametrize("length", [1, 5, 11, 12, 60, -2])
def test_what_is_left_of_the_only_record_is_dropped(length: int, tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    record = records_of(SMALL, 1)[0]
    path.write_text(record.to_json()[:length])
    append_records(path, [record])
    assert list(read_records(path)) == [record]


@pytest.mark.parametrize("lines", [1, 2, 4])
def test_a_cut_off_line_is_refused_on_reading_and_dropped_on_going_on(
    tmp_path: Path, lines: int
) -> None:
    path = tmp_path / "games.jsonl"
    records = records_of(SMALL, 2)
    write_records(path, records[:lines])
    whole = path.read_bytes()
    last = whole[:-1].rfind(b"\n") + 1
    for end in range(last + 1, len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(RecordError, match=rf"games.jsonl, line {lines}: "):
            list(read_records(path))
    append_records(path, records[lines - 1 :])
    assert list(read_records(path)) == records


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (lambda lines: [lines[0], b"\xff\xfe\n", *lines[2:]], 2),
        (lambda lines: [lines[0][:40] + b"\n", *lines[1:]], 1),
        (lambda lines: [*lines[:3], b"\n", *lines[3:]], 4),
    ],
)
def test_a_damaged_line_is_named(
    tmp_path: Path, spoil: Callable[[list[bytes]], list[bytes]], line: int
) -> None:
    path = tmp_path / "games.jsonl"
    write_records(path, records_of(SMALL, 2))
    path.write_bytes(b"".join(spoil(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(RecordError, match=f"line {line}: "):
        list(read_records(path))


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    records = records_of(SMALL, 2)
    write_records(path, records[:1])

    def interrupted() -> Any:
        yield records[1]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_records(path, interrupted())
    assert list(read_records(path)) == records[:1]
    assert [file.name for file in tmp_path.iterdir()] == ["games.jsonl"]


# counterweight replay --------------------------------------------------------------------------


def test_the_command_counts_what_it_has_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = records_of(SMALL, 4)
    mover = records[0].deal().to_move
    returns = (-1.0, 1.0) if mover == 0 else (1.0, -1.0)
    records[0] = replace(records[0], actions=(), returns=returns, fault=Fault(mover, "silence"))
    write_records(tmp_path / "one.games.jsonl", records[:3])
    write_records(tmp_path / "two.games.jsonl", records[3:])
    moves = sum(len(record.actions) for record in records)
    draws = sum(record.returns == (0, 0) for record in records)
    assert main(["replay", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert (
        f"8 games, {moves} moves, all legal, all results right; {draws} drawn, 1 given up" in shown
    )

    assert main(["replay", str(tmp_path), "--game", "1"]) == 0
    assert f"player_{mover} gave the game up: silence" in capsys.readouterr().out


def test_the_command_shows_a_game(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "games.jsonl"
    records = records_of("classic", 2)
    write_records(path, records)
    assert main(["replay", str(path), "--game", "3"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("player_0 is random, player_1 is greedy.")
    movers = [line for line in shown.splitlines() if line.startswith(("player_0: ", "player_1: "))]
    assert len(movers) == len(records[2].actions)
    *_, last = (game.copy() for game in replay(records[2]))
    assert str(records[2].deal()) in shown
    assert shown.rstrip().endswith(str(last))
    assert shown.count("Counterweight, classic") == last.turn + 1


def test_the_command_does_not_call_nothing_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "games.jsonl").write_text("")
    assert main(["replay", str(tmp_path / "games.jsonl")]) == 2
    assert "no games in" in capsys.readouterr().err


@pytest.mark.parametrize("extra", [[], ["--game", "2"]])
def test_the_command_names_the_bad_game(
    tmp_path: Path, extra: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "games.jsonl"
    records = records_of(SMALL, 2)
    swapped = np.array(records[1].actions)
    swapped[4] = unlike(records[1], 5)
    records[1] = replace(records[1], actions=tuple(swapped.tolist()))
    write_records(path, records)
    assert main(["replay", str(path), *extra]) == 2
    shown = capsys.readouterr()
    assert "games.jsonl, line 2: move 5: action" in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.jsonl"], "nothing.jsonl"),
        (["."], "has no"),
        (["games.jsonl", "--game", "0"], "--game must be from 1 to 2, got 0"),
        (["games.jsonl", "--game", "3"], "--game must be from 1 to 2, got 3"),
    ],
)
def test_the_command_refuses_bad_arguments_by_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_records(tmp_path / "games.jsonl", records_of(SMALL, 1))
    assert main(["replay", *arguments]) == 2
    assert message in capsys.readouterr().err
