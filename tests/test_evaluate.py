"""`counterweight evaluate` and `counterweight export`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from test_policy import all_views, moves_of, plain_scores, some_network

from agents.policy import Network, load_network, scorer_of
from train.cli import main
from train.evaluate_command import response_config
from train.network import MoveNet, load_into

SMALL = "exchange(ranks=6,suits=2,hand_size=3)"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A network's file."""
    path = tmp_path / "net.npz"
    some_network(rules=SMALL).save(path)
    return path


def test_the_table_has_a_row_for_every_way_and_opponent(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(file), "--deals", "6", "--opponents", "random", "greedy"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert SMALL in lines[0]
    table = [line.split(" | ") for line in lines if line.startswith("| ")][1:]
    assert [(row[0].strip("| "), row[1]) for row in table] == [
        ("best moves", "random"),
        ("best moves", "greedy"),
        ("drawn moves", "random"),
        ("drawn moves", "greedy"),
        ("with perfect endings", "random+exact"),
    ]
    for row in table:
        low, high = (float(end) for end in row[3].split(" to "))
        assert 0 <= low <= float(row[2]) <= high <= 1
    assert table[-1][4] == "0.0%"


def test_a_response_is_trained_against_the_frozen_model(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--deals", "4", "--opponents", "random", "--best-response", "1000"]
    assert main(["evaluate", str(file), *arguments]) == 0
    assert "A response trained for 1,000 decisions scores" in capsys.readouterr().out
    config = response_config(SMALL, f"policy:path={file}", 1000)
    assert config.baselines == (f"policy:path={file}",)
    assert (config.baseline_share, config.self_share, config.past_share) == (1, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.npz"], "nothing.npz: there is no such file"),
        (["random"], "--rules is missing"),
        (["random", "--rules", "poker"], "poker"),
        (["nobody", "--rules", "classic", "--opponents", "random"], "nobody"),
        (["random", "--rules", "classic", "--opponents", "nobody"], "nobody"),
        (["random", "--rules", "classic", "--deals", "0"], "--deals.*0"),
        (["random", "--rules", "classic", "--best-response", "-5"], "total_steps.*-5"),
    ],
)
def test_bad_arguments_are_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *arguments]) == 2
    text = capsys.readouterr().err
    assert re.search(message, text), text


def test_onnx_gives_the_same_numbers(file: Path, tmp_path: Path) -> None:
    """To 1e-5, for positions with one move and with many, before and after exhaustion."""
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    out = tmp_path / "net.onnx"
    assert main(["export", str(file), "--out", str(out)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.npz", "net.onnx"]
    session = onnxruntime.InferenceSession(str(out))
    network = load_network(file)
    net = MoveNet(network.hidden)
    load_into(net, network.arrays)
    kinds, sizes = set(), set()
    for views in all_views("exchange", 6, 3)[::6]:
        for row in range(len(views)):
            rows = moves_of(views, row)[1]
            late = scorer_of(views.records[row])
            got = session.run(None, {"rows": rows})[2 * late : 2 * late + 2]
            scores, value = plain_scores(network, rows, bool(late))
            np.testing.assert_allclose(got[0], scores, atol=1e-5)
            assert got[1][0] == pytest.approx(value, abs=1e-5)
            with torch.no_grad():
                scorer = net.ending if late else net.opening
                np.testing.assert_allclose(got[0], scorer(torch.from_numpy(rows))[0], atol=1e-5)
            kinds.add(late)
            sizes.add(len(rows))
    assert kinds == {0, 1}
    assert 1 in sizes
    assert max(sizes) > 8


def test_a_manifest_takes_notes(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "ship.npz"
    notes = ["commit=abc", "command=counterweight train --seed 1"]
    assert main(["export", str(file), "--out", str(out), "--note", *notes]) == 0
    manifest = load_network(out).manifest
    assert manifest["commit"] == "abc"
    assert manifest["command"] == "counterweight train --seed 1"
    for arguments, message in (
        (["--out", str(out), "--note", "rules=classic"], "rules"),
        (["--out", str(out), "--note", "nothing"], "nothing"),
        (["--out", str(tmp_path / "net.pt")], r"net.pt"),
    ):
        assert main(["export", str(file), *arguments]) == 2
        assert message in capsys.readouterr().err
    assert isinstance(load_network(out), Network)


def test_a_path_may_hold_what_texts_of_agents_do_not(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = tmp_path / "a+b" / "c,d=1.npz"
    odd.parent.mkdir()
    odd.write_bytes(file.read_bytes())
    tables = []
    for path in (file, odd):
        assert main(["evaluate", str(path), "--deals", "3", "--opponents", "random"]) == 0
        tables.append(capsys.readouterr().out.splitlines()[1:])
    assert tables[0] == tables[1]
    assert main(["evaluate", str(odd), "--deals", "3", "--best-response", "100"]) == 2
    assert "c,d=1.npz" in capsys.readouterr().err


def test_games_that_were_given_up_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    bot = f"exec:{sys.executable} -c 1"
    few = ["--rules", SMALL, "--deals", "2"]
    assert main(["evaluate", bot, *few, "--opponents", "random"]) == 0
    printed = capsys.readouterr().out
    assert "nan" not in printed
    assert "gave up 4 of 4 games (best moves against random)" in printed
    assert main(["evaluate", "greedy", *few, "--opponents", bot]) == 0
    assert f"(best moves against {bot})" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "a.npz", "--note", "=x"], "takes NAME=TEXT, got =x"),
        (["--out", "a.npz", "--note", "commit"], "takes NAME=TEXT, got commit"),
        (["--out", "a.npz", "--note", "commit=1", "commit=2"], "commit is given twice"),
        (["--out", "a.npz", "--note", "rules=poker"], "must not change rules"),
        (["--out", "a.ONNX", "--note", "commit=1"], "--note is for .npz files"),
        (["--out", "a.txt"], "must end in .onnx or .npz"),
    ],
)
def test_what_export_cannot_do_is_refused(
    arguments: list[str],
    message: str,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert main(["export", str(file), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before
