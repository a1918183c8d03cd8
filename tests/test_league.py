"""Round robins: the same results whatever the workers, the order and the interruptions."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents.blocks
import agents.league
from agents import Agent, ViewBatch, make_agent, play_match
from agents.arena import HELD_OUT_SEED
from agents.blocks import BlockStore, BlockTask, Setup, SetupError, file_name
from agents.blunders import Verdict
from agents.league import check_players, collect, play_league
from agents.workers import WorkerError, run_tasks
from counterweight_env import IllegalActionError
from counterweight_env.record import read_records, replay
from train.cli import main

SMALL = "classic(ranks=7,suits=2,hand_size=3)"
OTHER = "exchange(ranks=7,suits=2,hand_size=3)"
PLAYERS = ("random", "greedy", "cautious")


def plan(**changes: Any) -> Setup:
    fields: dict[str, Any] = {
        "players": PLAYERS,
        "rules": (SMALL,),
        "deals": 23,
        "seed": 3,
        "block_deals": 5,
    }
    return Setup(**{**fields, **changes})


def run(folder: Path, setup: Setup, **options: Any) -> None:
    play_league(BlockStore(folder, setup), setup, **options)


def kept(folder: Path) -> dict[str, bytes]:
    """Return every file of a run but those that hold times."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(".time.json")
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return what an uninterrupted run of `plan()` keeps."""
    folder = tmp_path_factory.mktemp("whole")
    run(folder, plan(), record=True)
    return kept(folder)


# Results ---------------------------------------------------------------------------------------


def test_every_pair_plays_the_match_of_its_own(tmp_path: Path) -> None:
    setup = plan(rules=(SMALL, OTHER))
    run(tmp_path, setup)
    games = collect(BlockStore(tmp_path, setup), setup)
    assert list(games) == [SMALL, OTHER]
    for rules, pairs in games.items():
        assert [(p.a, p.b) for p in pairs] == list(combinations(sorted(PLAYERS), 2))
        for pair in pairs:
            match = play_match(pair.a, pair.b, rules, 23, 3, count_blunders=True)
            played = pair.played
            assert (played.scores == match.game_scores).all()
            assert played.turns.mean() == match.turns
            assert played.first_mover_scores.mean() == match.first_mover_score
            assert match.timing is not None
            assert tuple(played.decisions.sum(axis=(0, 1))) == match.timing.decisions
            assert tuple(played.verdicts[..., Verdict.BLUNDER].sum(axis=(0, 1))) == match.blunders
            assert np.isfinite(played.seconds).all()


@pytest.mark.parametrize("players", [PLAYERS[::-1], ("greedy", "random", "cautious")])
def test_the_order_of_the_players_has_no_say(
    tmp_path: Path, whole: dict[str, bytes], players: tuple[str, ...]
) -> None:
    run(tmp_path, plan(players=players), record=True)
    found = kept(tmp_path)
    assert found.pop("setup.json") != whole["setup.json"]
    assert found == {name: text for name, text in whole.items() if name != "setup.json"}


def test_the_number_of_workers_has_no_say(tmp_path: Path, whole: dict[str, bytes]) -> None:
    done: list[BlockTask] = []
    run(tmp_path, plan(), record=True, workers=2, on_block=done.append)
    assert kept(tmp_path) == whole
    assert sorted(done, key=str) == sorted(plan().tasks(record=True), key=str)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_blocks_has_no_say(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    def shuffled(function: Callable[[Any], Any], tasks: Iterable[Any], workers: int) -> Any:
        listed = list(tasks)
        order = np.random.default_rng(seed).permutation(len(listed))
        return run_tasks(function, [listed[i] for i in order], workers)

    monkeypatch.setattr(agents.league, "run_tasks", shuffled)
    run(tmp_path, plan(), record=True)
    assert kept(tmp_path) == whole


def test_records_of_a_block_that_grew_without_them_are_played_again(tmp_path: Path) -> None:
    for deals, record in ((2, True), (4, False), (4, True)):
        run(tmp_path, plan(deals=deals), record=record)
    for path in tmp_path.rglob("*.json"):
        if path.parent != tmp_path and not path.name.endswith(".time.json"):
            records = path.with_suffix(".games.jsonl")
            assert len(list(read_records(records))) == 8


def test_records_that_were_cut_off_are_played_again(tmp_path: Path) -> None:
    run(tmp_path, plan(), record=True)
    before = kept(tmp_path)
    for number, path in enumerate(sorted(tmp_path.rglob("*.games.jsonl"))):
        path.write_bytes(path.read_bytes()[: -1 - number])
    run(tmp_path, plan(), record=True)
    assert kept(tmp_path) == before


@pytest.mark.parametrize("workers", [0, -1])
def test_no_workers_are_refused(workers: int) -> None:
    with pytest.raises(ValueError, match=f"workers must be at least 1, got {workers}"):
        list(run_tasks(abs, [1, 2], workers))


def test_records_are_the_games_of_the_blocks(tmp_path: Path) -> None:
    setup = plan()
    run(tmp_path, setup, record=True)
    store = BlockStore(tmp_path, setup)
    for task in setup.tasks():
        path = store.path(task).with_suffix(".games.jsonl")
        scores = store.read(task).scores
        records = list(read_records(path))
        assert len(records) == scores.size
        for number, record in enumerate(records):
            deal, game = divmod(number, 2)
            assert record.players == ((task.a, task.b) if game == 0 else (task.b, task.a))
            assert (record.returns[game] + 1) / 2 == scores[deal, game]
            assert sum(1 for _ in replay(record)) == len(record.actions)


class Quitter:
    """Plays the lowest card and gives up whenever it holds the ace of clubs at turn 4."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.closed = False

    def act(self, views: ViewBatch) -> np.ndarray:
        return views.legal.argmax(axis=1)

    def act_or_fault(self, views: ViewBatch) -> tuple[np.ndarray, dict[int, str]]:
        assert not self.closed
        hands = views.records["hand"][np.arange(len(views)), views.players]
        quits = ((hands & np.uint64(1)) != 0) & (views.records["turn"] == 4)
        return self.act(views), {int(row): "the ace!" for row in np.flatnonzero(quits)}

    def close(self) -> None:
        self.closed = True


def test_games_given_up_are_kept_with_their_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Quitter] = []

    def make(text: str) -> Agent:
        if text != "quitter":
            return make_agent(text)
        made.append(Quitter(text))
        return made[-1]

    monkeypatch.setattr(agents.blocks, "make_agent", make)
    setup = plan(players=("greedy", "quitter"))
    run(tmp_path, setup, record=True)
    assert len(made) == 5, "a player of its own for every block"
    assert all(player.closed for player in made)
    (pair,) = collect(BlockStore(tmp_path, setup), setup)[SMALL]
    match = play_match("greedy", Quitter("quitter"), SMALL, 23, 3)
    assert match.faults[1] > 0
    assert [(player, reason) for _, _, player, reason in pair.played.faults] == [
        (1, "the ace!")
    ] * match.faults[1]
    records = [
        record
        for task in setup.tasks()
        for record in read_records(
            BlockStore(tmp_path, setup).path(task).with_suffix(".games.jsonl")
        )
    ]
    given_up = {divmod(n, 2) for n, record in enumerate(records) if record.fault}
    assert given_up == {(deal, game) for deal, game, _, _ in pair.played.faults}


# Interruptions ---------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 9, 20, 44, 45, 46])
def test_a_run_killed_at_any_write_goes_on_and_ends_the_same(
    tmp_path: Path,
    whole: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    moment: str,
) -> None:
    # Files come into being by a rename alone; 15 blocks of 3 files, and the set-up.
    rename = os.replace
    renames = 0

    def replace(source: Any, target: Any) -> None:
        nonlocal renames
        renames += 1
        if renames == number and moment == "before":
            raise Killed
        rename(source, target)
        if renames == number:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        with pytest.raises(Killed):
            run(tmp_path, plan(), record=True)
    finished = len(list(tmp_path.rglob("[0-9]" * 6 + ".json")))
    assert finished == (number - 1 - (moment == "before")) // 3 if number > 1 else finished == 0

    played: list[BlockTask] = []

    def playing(task: BlockTask) -> Any:
        played.append(task)
        return play_block(task)

    play_block = agents.league.play_block
    monkeypatch.setattr(agents.league, "play_block", playing)
    done: list[BlockTask] = []
    run(tmp_path, plan(), record=True, on_block=done.append)
    assert kept(tmp_path) == whole
    assert len(played) == 15 - finished, "no finished block is played again"
    assert len(done) == 15


KILLED_RUN = """
import os, signal, sys
from agents import blocks
from train.cli import main

write = blocks.BlockStore.write
written = 0

def writing(store, task, played):
    global written
    write(store, task, played)
    written += 1
    if written == 3:
        os.kill(os.getpid(), signal.SIGKILL)

blocks.BlockStore.write = writing
main(sys.argv[1:])
"""


def test_a_killed_command_goes_on_and_prints_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "arena",
        "random",
        "greedy",
        "--rules",
        SMALL,
        OTHER,
        "--deals",
        "220",
        "--seed",
        "9",
    ]
    folders = [tmp_path / "killed", tmp_path / "whole"]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_RUN, *command, "--records", "--out", str(folders[0])],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (folders[0] / "results.json").exists()
    reports = []
    for folder in folders:
        assert main([*command, "--records", "--no-progress", "--out", str(folder)]) == 0
        lines = [re.sub(r" [^|]* \|$", "", line) for line in capsys.readouterr().out.splitlines()]
        reports.append(lines[:-1])  # without the times and the folder's name
    assert reports[0] == reports[1]
    left, right = (kept(folder) for folder in folders)
    for found in (left, right):
        for name in ("report.md", "milliseconds.json"):
            del found[name]
    assert left == right
    assert "results.json" in left
    assert main(["replay", str(folders[0])]) == 0
    assert "880 games" in capsys.readouterr().out


def test_without_a_folder_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    command = ["arena", "random", "greedy", "--rules", SMALL, "--deals", "10", "--no-progress"]
    assert main(command) == 0
    assert "10 duplicate deals" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    assert main([*command, "--records"]) == 2
    assert "--records needs --out DIR" in capsys.readouterr().err


def test_ctrl_c_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(task: BlockTask) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(agents.league, "play_block", interrupted)
    command = ["arena", "random", "greedy", "--rules", SMALL, "--no-progress"]
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--out", str(tmp_path / "out")])
    assert stopped.value.code == 130
    assert f"the same command goes on from what {tmp_path / 'out'}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(command)
    assert "nothing was kept" in capsys.readouterr().err


# Folders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"deals": 60},
        {"deals": 24},
        {"players": ("keeper", *PLAYERS)},
        {"rules": (OTHER, SMALL)},
        {"deals": 31, "players": (*PLAYERS, "random+exact"), "rules": (SMALL, OTHER)},
    ],
)
def test_a_run_can_be_extended(tmp_path: Path, more: dict[str, Any]) -> None:
    run(tmp_path / "grown", plan())
    run(tmp_path / "grown", plan(**more))
    run(tmp_path / "fresh", plan(**more))
    assert kept(tmp_path / "grown") == kept(tmp_path / "fresh")


def test_half_written_files_of_a_killed_run_are_cleared_away(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    run(tmp_path, plan(deals=5), record=True)
    pair = BlockStore(tmp_path, plan()).path(next(plan().tasks())).parent
    (pair / ".000000.json.12345.draft").write_text('{"task": {"rul')
    (pair / ".000001.games.jsonl.12345.draft").write_text("{")
    run(tmp_path, plan(), record=True)
    assert kept(tmp_path) == whole


def test_records_asked_for_later_are_made(tmp_path: Path, whole: dict[str, bytes]) -> None:
    run(tmp_path, plan())
    assert not list(tmp_path.rglob("*.games.jsonl"))
    run(tmp_path, plan(), record=True)
    assert kept(tmp_path) == whole


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 4}, "seed: .* has 3, not 4"),
        ({"deals": 22}, "deals: .* has 23, not 22"),
        ({"deals": None}, "deals: .* has 23, not None"),
        ({"block_deals": 6}, "block_deals: .* has 5, not 6"),
        ({"count_blunders": False}, "count_blunders: .* has True, not False"),
        ({"players": ("random", "greedy")}, "players: .* has 'cautious' too"),
        ({"rules": (OTHER,)}, r"rules: .* has 'classic\(ranks=7.*' too"),
    ],
)
def test_another_set_up_in_the_same_folder_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    run(tmp_path, plan(deals=23))
    before = kept(tmp_path)
    with pytest.raises(SetupError, match=message):
        run(tmp_path, plan(**change))
    assert kept(tmp_path) == before


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(SetupError, match="not empty"):
        BlockStore(tmp_path, plan())
    with pytest.raises(SetupError, match="not empty"):
        BlockStore(tmp_path / "thesis.txt", plan())
    for text in ("", "{}", "[]", '{"format": 99}'):
        (tmp_path / "setup.json").write_text(text)
        with pytest.raises(SetupError, match=r"setup\.json is"):
            BlockStore(tmp_path, plan())


def damages(text: str) -> Iterator[str]:
    data = json.loads(text)
    yield text[: len(text) // 2]
    yield "[]"
    for name in data:
        yield json.dumps({key: value for key, value in data.items() if key != name})
    for name in ("a", "rules", "seed", "first_deal"):
        yield json.dumps({**data, "task": {**data["task"], name: "other"}})
    yield json.dumps({**data, "scores": data["scores"][1:]})


def test_a_damaged_block_is_refused_by_name(tmp_path: Path) -> None:
    setup = plan(players=("random", "greedy"), deals=5)
    run(tmp_path, setup)
    store = BlockStore(tmp_path, setup)
    (task,) = setup.tasks()
    path = store.path(task).with_suffix(".json")
    good = path.read_text()
    for text in damages(good):
        path.write_text(text)
        with pytest.raises(SetupError, match=re.escape(str(path))):
            collect(store, setup)
    path.unlink()
    run(tmp_path, setup)
    assert path.read_text() == good
    store.path(task).with_suffix(".time.json").unlink()
    assert np.isnan(store.read(task).seconds).all()


def test_names_of_files_are_plain_and_different() -> None:
    texts = [
        "random", "exec:./bot --fast", "exec:./bot_--fast", "policy:/a/b/c.npz", "..", ".hidden",
        "a/b", "a_b", "pimc:worlds=50+exact", "pimc_worlds=50+exact", "x" * 300, "x" * 301, "böt",
    ]  # fmt: skip
    names = [file_name(text) for text in texts]
    assert len({name.lower() for name in names}) == len(texts)
    assert names[0] == "random"
    for name in names:
        assert re.fullmatch(r"[\w=,()+-][\w.=,()+-]*", name, re.ASCII), name
        assert len(name) < 100


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"players": ("random",)}, "at least two"),
        ({"players": ("random", "greedy", "random")}, "'random' stands twice"),
        ({"players": ("random", " random")}, "'random' stands twice"),
        ({"rules": ()}, "rules must be at least one"),
        ({"rules": (SMALL, SMALL)}, "stands twice"),
        ({"rules": ("whist",)}, "whist"),
        ({"deals": 0}, "deals .* 0"),
        ({"deals": 2.5}, "deals .* 2.5"),
        ({"seed": -1}, "seed .* -1"),
        ({"seed": 2**64}, "seed must be less than"),
        ({"block_deals": 0}, "block_deals .* 0"),
    ],
)
def test_a_bad_set_up_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        plan(**change)


def test_a_bad_player_is_found_before_anything_is_played() -> None:
    with pytest.raises(SetupError, match="'nobody'"):
        check_players(("random", "nobody"))


# Workers ---------------------------------------------------------------------------------------


def double(number: int) -> int:
    return 2 * number


def fail(number: int) -> int:
    raise IllegalActionError(f"no {number}")


def die(number: int) -> int:
    os._exit(number)


@pytest.mark.parametrize("workers", [1, 3])
def test_every_task_is_done_once(workers: int) -> None:
    assert sorted(run_tasks(double, range(20), workers)) == [2 * n for n in range(20)]
    assert list(run_tasks(double, [], workers)) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_worker_reaches_the_caller(workers: int) -> None:
    with pytest.raises(IllegalActionError, match="no 7"):
        list(run_tasks(fail, [7], workers))


def test_a_worker_that_dies_is_an_error_and_no_endless_wait() -> None:
    with pytest.raises(WorkerError, match="ended with status 5"):
        list(run_tasks(die, [5, 5], 2))


# The command -----------------------------------------------------------------------------------


def test_the_command_writes_the_numbers_apart_from_the_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    command = ["arena", *PLAYERS, "--rules", SMALL, "--deals", "60", "--out", str(out)]
    assert main([*command, "--held-out"]) == 0
    shown = capsys.readouterr()
    assert "360/360" in shown.err, "a progress bar"
    assert (out / "report.md").read_text() in shown.out
    numbers = json.loads((out / "results.json").read_text())
    assert numbers["seed"] == HELD_OUT_SEED
    rows = {row["name"]: row for row in numbers["rules"][SMALL]["players"]}
    assert set(rows) == set(PLAYERS)
    assert rows["random"]["elo"]["value"] == 0
    assert "millisecond" not in (out / "results.json").read_text()
    times = json.loads((out / "milliseconds.json").read_text())
    assert set(times[SMALL]) == set(PLAYERS)
    for pair in numbers["rules"][SMALL]["pairs"]:
        match = play_match(pair["a"], pair["b"], SMALL, 60, HELD_OUT_SEED)
        if pair["a"] < pair["b"]:
            assert pair["score"]["value"] == pytest.approx(match.score)
            assert pair["score"]["interval"] == pytest.approx(match.interval, abs=0.02)
    assert main([*command, "--held-out", "--no-progress"]) == 0
    again = capsys.readouterr()
    assert again.out == shown.out, "nothing is played again"
    assert again.err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["random"], "players must be at least two"),
        (["random", "nobody"], "player 'nobody': unknown agent"),
        (["random", "greedy:depth=3"], "player 'greedy:depth=3': bad options"),
        (["random", "greedy", "--rules", "whist"], "whist"),
        (["random", "greedy", "--rules", "both", "classic"], "'classic' stands twice"),
        (["random", "greedy", "--deals", "0"], "deals must be an int of at least 1, got 0"),
        (["random", "greedy", "--workers", "0"], "--workers must be at least 1, got 0"),
        (["random", "greedy", "--seed", "-1"], "seed must be an int of at least 0, got -1"),
    ],
)
def test_the_command_refuses_bad_arguments_by_name(
    tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["arena", *arguments, "--no-progress", "--out", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["arena", "sprt"])
def test_without_the_extra_the_error_names_it(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("train.usage.find_spec", lambda name: None if name == "choix" else name)
    arguments = [command, "random", "greedy"]
    if command == "arena":
        arguments += ["--out", str(tmp_path)]
    assert main(arguments) == 2
    assert 'choix: pip install "counterweight-env[arena]"' in capsys.readouterr().err


def test_matches_need_no_extra() -> None:
    code = (
        "import sys; sys.modules.update(choix=None, scipy=None, tqdm=None)\n"
        "import agents, agents.league, agents.sprt, agents.standings, train.cli\n"
        f"agents.play_match('random', 'greedy', '{SMALL}', deals=2).interval\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1])


WORK = """
import os, sys, time
from pathlib import Path

sys.path.insert(0, sys.argv[2])
from agents.workers import run_tasks

def work(number):
    try:
        Path(sys.argv[1], f"{os.getpid()}.begun").touch()
        while True:
            time.sleep(0.01)
    finally:
        Path(sys.argv[1], f"{os.getpid()}.closed").touch()

if __name__ == "__main__":
    list(run_tasks(work, [1, 2], 2))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a process is ended otherwise there")
def test_workers_end_in_the_middle_of_a_task_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "work.py"
    script.write_text(WORK)
    command = [sys.executable, str(script), str(tmp_path), str(Path(__file__).parents[1])]
    with subprocess.Popen(command) as parent:
        names = wait_for(
            lambda: names if len(names := sorted(tmp_path.glob("*.begun"))) == 2 else []
        )
        parent.kill()
    assert names
    closed = wait_for(lambda: found if len(found := sorted(tmp_path.glob("*.closed"))) == 2 else [])
    assert [path.stem for path in closed] == [path.stem for path in names]


def wait_for(look: Callable[[], list[Path]]) -> list[Path]:
    """Look until something is there, for a minute at most."""
    for _ in range(1200):
        if found := look():
            return found
        time.sleep(0.05)
    return []


def answer_and_end(number: int) -> int:
    threading.Timer(0.2, os._exit, (3,)).start()
    return number


def test_what_a_worker_answered_before_it_died_is_kept() -> None:
    found = []

    def gather() -> None:
        for number in run_tasks(answer_and_end, [1, 2, 3, 4, 5, 6, 7, 8], 2):
            found.append(number)
            time.sleep(1)

    with pytest.raises(WorkerError, match="status 3"):
        gather()
    assert {1, 2} <= set(found)


def test_the_held_out_deals_are_nobody_elses() -> None:
    from train.evaluate import EVALUATION_SEED

    assert HELD_OUT_SEED not in (EVALUATION_SEED, 0)
    assert 2**63 < HELD_OUT_SEED < 2**64
    root = Path(__file__).parents[1]
    numbers = {"2**63 + 2**32", str(2**63 + 2**32)}
    using = {
        path.name
        for folder in ("agents", "benchmarks", "counterweight_env", "train")
        for path in (root / folder).rglob("*.py")
        if any(number in path.read_text() for number in numbers)
    }
    assert using == {"arena.py"}
