"""The `counterweight` command, but for `train`, which `test_train.py` holds."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import counterweight_env as cw
from train.cli import main

# On table 10S 3H the mover can go JS, 2H or 9S, 4H (C2); the other has nothing to answer with.
POSITION = ["--table", "TS,3H", "--me", "JS,2H,KC", "--opponent", "5C 7D QC"]


def test_an_option_given_twice_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """``--set a=1 --set b=2`` means both: else the first would go without a word."""
    found: list[argparse.ArgumentParser] = []

    def stop(parser: argparse.ArgumentParser, _: object) -> argparse.Namespace:
        found.append(parser)
        raise KeyboardInterrupt

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    with pytest.raises(KeyboardInterrupt):
        main([])
    monkeypatch.undo()
    (commands,) = [a for a in found[0]._actions if isinstance(a, argparse._SubParsersAction)]
    options = 0
    for command, parser in commands.choices.items():
        for action in parser._actions:
            if action.nargs == "+" and action.option_strings:
                options += 1
                assert isinstance(action, argparse._ExtendAction), (command, action.dest)
                assert not action.default, (command, action.dest)  # it would be extended too
    assert options >= 7
    given = ["train", "--set", "hidden=32", "n_epochs=1", "--set", "seed=3", "--seeds", "4", "5"]
    assert found[0].parse_args(given).set == ["hidden=32", "n_epochs=1", "seed=3"]
    assert found[0].parse_args(["train"]).set == []


def test_solve_gives_the_value_and_the_best_moves(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", *POSITION, "--best-moves"]) == 0
    shown = capsys.readouterr().out
    assert "A win for player_0" in shown
    assert "J♠ on the left, 2♥ on the right" in shown


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "stopped"),
        (BrokenPipeError(), 141, ""),
        (OSError(28, "No space left on device"), 2, "error: [Errno 28] No space left on device"),
    ],
)
def test_every_command_ends_in_a_sentence(
    error: BaseException,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: argparse.Namespace) -> None:
        raise error

    parse = argparse.ArgumentParser.parse_args

    def parsed(self: argparse.ArgumentParser, *given: Any) -> argparse.Namespace:
        arguments = parse(self, *given)
        arguments.run = fail
        return arguments

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parsed)
    assert main(["speed"]) == status
    errors = capsys.readouterr().err.strip().splitlines()
    assert len(errors) == bool(said)
    assert said in "".join(errors)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close otherwise there")
@pytest.mark.parametrize("length", [0, 40])
def test_a_reader_who_has_enough_is_no_fault(length: int) -> None:
    command = [sys.executable, "-m", "train.cli", "solve", *POSITION, "--best-moves"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"}
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(length)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode in (0, 141)


def test_a_file_that_is_no_game_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for content in (b"dear", b"\xff\xfe", b"{}"):
        (tmp_path / "game.json").write_bytes(content)
        assert main(["solve", "--game", str(tmp_path / "game.json")]) == 2
        assert "game.json" in capsys.readouterr().err


def test_solve_gives_the_margin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", *POSITION, "--margin"]) == 0
    assert "The final card difference is +2" in capsys.readouterr().out


def test_solve_says_when_the_node_limit_ran_out(capsys: pytest.CaptureFixture[str]) -> None:
    me = "AC,3C,5C,7C,2D,4D,6D,8D,TD,QD,AH,3H"
    opponent = "2C,4C,6C,8C,3D,5D,7D,9D,JD,KD,2H,4H"
    command = ["solve", "--table", "9C,5H", "--me", me, "--opponent", opponent, "--nodes", "1"]
    assert main(command) == 0
    assert "Not solved within the node limit: from -1 to 1" in capsys.readouterr().out


def test_solve_reads_a_game(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    game = cw.Game.from_position(
        [["5C", "7D", "QC"], ["JS", "2H", "KC"]], ["TS", "3H"], to_move=1, rules="exchange"
    )
    path = tmp_path / "game.json"
    path.write_text(game.to_json())
    assert main(["solve", "--game", str(path)]) == 0
    assert "A win for player_1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--table", "TS,3H", "--me", "1X,2H", "--opponent", "5C,7D"], "1X"),
        (["--table", "TS,3H", "--me", "TS,2H", "--opponent", "5C,7D"], "TS stands twice"),
        (["--table", "TS", "--me", "JS,2H", "--opponent", "5C,7D"], "table must have 2"),
        (["--table", "TS,3H", "--me", "JS,2H,4H", "--opponent", "5C,7D"], "unreachable sizes"),
        (["--table", "TS,3H", "--me", "JS,2H"], "--opponent is missing"),
        ([*POSITION, "--rules", "bridge"], "variant must be one of"),
        ([*POSITION, "--nodes", "-1"], "node_limit"),
        (["--game", "no_such_file.json"], "no_such_file.json"),
        ([*POSITION, "--game", "game.json"], "leave out --table --me --opponent"),
    ],
)
def test_solve_refuses_bad_input_by_name(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


def test_speed_measures_every_way_in(capsys: pytest.CaptureFixture[str]) -> None:
    short = ["speed", "--rules", "classic", "--runs", "1", "--seconds", "0.001"]
    assert main([*short, "--batch", "1", "64", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert "232 bytes a game" in data["machine"]
    measured = {(row["name"], row["batch"]) for row in data["measurements"]}
    many = {"kernel", "GameBatch", "VectorEnv", "clone", "determinize", "SelfPlayVecEnv"}
    assert measured == {(name, batch) for name in many for batch in (1, 64)} | {
        (name, 1) for name in ("Game", "AEC", "Env")
    }
    assert all(row["decisions_per_second"] > 0 for row in data["measurements"])
    assert main([*short, "--batch", "64", "--threads", "2"]) == 0
    assert "decisions/s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--threads", "0"], "threads must be a positive int, got 0"),
        (["--runs", "0"], "--runs must be at least 1"),
        (["--batch", "0"], "num_games must be at least 1, got 0"),
        (["--rules", "bridge"], "variant must be one of"),
    ],
)
def test_speed_refuses_bad_input_by_name(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["speed", *arguments]) == 2
    assert message in capsys.readouterr().err
