"""The peer benchmark without its peers: our loops, the ratios, the table, and what can go wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # benchmarks/ is not installed

from benchmarks import environments, peers, report  # noqa: E402
from benchmarks.chart import draw, groups  # noqa: E402
from benchmarks.comparisons import COMPARISONS, Comparison, Loop, Rates, Spread  # noqa: E402
from benchmarks.loops import counterweight, open_spiel, pettingzoo, pgx, rlcard  # noqa: E402
from benchmarks.loops.worker import Timed  # noqa: E402

MODULES = {
    "counterweight": counterweight,
    "open_spiel": open_spiel,
    "pettingzoo": pettingzoo,
    "pgx": pgx,
    "rlcard": rlcard,
}
OURS = Loop("counterweight", "ours", "Counterweight things")
FAST = Loop("fast_peer", "loop", "Fast peer")
SLOW = Loop("slow_peer", "loop", "Slow peer")
MADE_UP = (
    Comparison("Kind A", OURS, FAST, at_least=3),
    Comparison("Kind A", OURS, SLOW),
    Comparison("Kind B", SLOW, FAST, at_most=0.5),
)
RATES = {
    OURS: Rates([2_000_000.0, 4_000_000.0, 1_234_567.0], [20.0, 40.0, 12.0]),
    FAST: Rates([1_000_000.0, 1_000_000.0, 1_000_000.0], [10.0, 10.0, 10.0]),
    SLOW: Rates([1_000.0, 4_000.0, 1_000.0], [1.0, 1.0, 1.0]),
}
ABOUT = {
    "command": "python -m benchmarks.peers",
    "date": "2001-02-03",
    "commit": "abc",
    "processor": "An abacus",
    "cores": 1,
    "runs": 3,
    "seconds": 1.0,
    "environments": {
        "ours": {"Python": "3.11", "numpy": "2"},
        "peers": {"numpy": "2", "peer": "1"},
    },
}


def results() -> dict:
    return report.as_json(MADE_UP, RATES, ABOUT)


@pytest.mark.parametrize("name", counterweight.LOOPS)
def test_our_loops_play_and_count_whole_games(name: str) -> None:
    play = counterweight.LOOPS[name]()
    batch = {"Game": 1, "AEC": 1, "large batch": 8192, "large batch, 2 threads": 8192}
    wanted = max(300 * batch.get(name, 1024), 3000)
    decisions = games = 0
    while decisions < wanted:
        count = play(5)
        assert not callable(count)
        assert count[0] > 0
        decisions += count[0]
        games += count[1]
    assert 50 < decisions / games < 120  # 73 on average


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda c: f"{c.ours.name}-{c.other.name}")
def test_every_compared_loop_exists_and_has_an_environment(comparison: Comparison) -> None:
    for loop in (comparison.ours, comparison.other):
        assert loop.name in MODULES[loop.module].LOOPS
        if loop.module != "counterweight":
            assert peers.ENVIRONMENTS[loop.module] in environments.PINS


def test_every_loop_is_compared() -> None:
    compared = {(loop.module, loop.name) for c in COMPARISONS for loop in (c.ours, c.other)}
    assert compared == {(name, loop) for name, module in MODULES.items() for loop in module.LOOPS}


def test_titles_are_unique() -> None:
    loops = {loop for c in COMPARISONS for loop in (c.ours, c.other)}
    assert len({loop.title for loop in loops}) == len(loops)


def test_pins_are_exact() -> None:
    for pins in environments.PINS.values():
        assert all(pin.count("==") == 1 for pin in pins)


def test_timed_counts_every_call_and_grows_short_ones() -> None:
    asked: list[int] = []

    def play(steps: int) -> tuple[int, int]:
        asked.append(steps)
        return 10 * steps, steps

    run = Timed(play).run(0.01)
    assert asked[:3] == [1, 2, 4]
    assert (run["decisions"], run["games"]) == (10 * sum(asked), sum(asked))
    assert run["seconds"] >= 0.01


def test_timed_counts_late_if_the_loop_says_so() -> None:
    assert Timed(lambda steps: lambda: (7, 1)).run(1e-9)["decisions"] == 7


def test_ratio_is_the_median_of_the_rounds_ratios() -> None:
    assert MADE_UP[0].ratio(RATES) == Spread(2.0, 1.234567, 4.0)
    assert MADE_UP[1].ratio(RATES) == Spread(1234.567, 1000.0, 2000.0)


def test_bounds_hold_in_both_directions() -> None:
    assert [MADE_UP[0].is_met(ratio) for ratio in (2.99, 3, 4)] == [False, True, True]
    assert [MADE_UP[2].is_met(ratio) for ratio in (0.4, 0.5, 0.51)] == [True, True, False]
    assert MADE_UP[1].is_met(0.0)


def test_json_has_every_round_and_can_be_written() -> None:
    made = json.loads(json.dumps(results()))
    assert made["command"] == ABOUT["command"]
    assert made["loops"][0]["decisions_per_second"] == {
        "median": 2_000_000.0,
        "least": 1_234_567.0,
        "most": 4_000_000.0,
        "rounds": [2_000_000.0, 4_000_000.0, 1_234_567.0],
    }
    assert [row["is_met"] for row in made["comparisons"]] == [False, True, True]


def test_table_shows_rates_ratios_and_missed_targets() -> None:
    lines = report.markdown(results()).splitlines()
    assert lines[2] == (
        "| Kind A | things | 2,000,000 | Fast peer | 1,000,000 | **2** (1.23 to 4) | ≥ 3, missed |"
    )
    assert lines[3] == (
        "| Kind A | things | 2,000,000 | Slow peer | 1,000 | **1,230** (1,000 to 2,000) |  |"
    )
    assert lines[4].endswith("**0.001** (0.001 to 0.004) | ≤ 0.5 |")
    assert {line.count("|") for line in lines[:5]} == {8}
    assert (
        "`python -m benchmarks.peers` on 2001-02-03 at commit abc: An abacus, 1 core;" in lines[6]
    )
    assert lines[6].endswith("; Python 3.11, numpy 2, peer 1.")


def test_table_replaces_what_stands_between_the_markers(tmp_path: Path) -> None:
    page = tmp_path / "speed.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", encoding="utf-8")
    for text in ("new", "newer"):
        assert report.write_between_markers(page, text)
        written = page.read_text(encoding="utf-8")
        assert written == f"before\n{report.BEGIN}\n{text}\n{report.END}\nafter\n"


def test_pages_without_markers_stay_as_they_are(tmp_path: Path) -> None:
    page = tmp_path / "speed.md"
    assert not report.write_between_markers(page, "new")
    page.write_text("nothing here\n", encoding="utf-8")
    assert not report.write_between_markers(page, "new")
    assert page.read_text(encoding="utf-8") == "nothing here\n"


@pytest.mark.parametrize("text", [report.BEGIN, report.END, f"{report.END}{report.BEGIN}"])
def test_a_marker_alone_is_an_error(tmp_path: Path, text: str) -> None:
    page = tmp_path / "speed.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"speed\.md"):
        report.write_between_markers(page, "new")


def test_the_docs_page_has_the_markers() -> None:
    text = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert 0 < text.index(report.BEGIN) < text.index(report.END)


def test_chart_has_ours_before_the_peers_of_each_kind() -> None:
    bars = groups(results())
    assert list(bars) == ["Kind A", "Kind B"]
    assert [title for title, _ in bars["Kind A"]] == [OURS.title, FAST.title, SLOW.title]


def test_the_short_chart_has_the_fastest_of_both_sides() -> None:
    bars = groups(results(), short=True)
    assert [title for title, _ in bars["Kind A"]] == [OURS.title, FAST.title]


def test_chart_without_matplotlib_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"benchmarks\.peers"):
        draw(results(), tmp_path / "peers.svg")


def test_an_environment_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(environments.PeerError, match=r"^pgx: cannot install pgx==2\.6\.0"):
        environments.ensure("pgx", tmp_path / "file")


def a_python(home: Path, answers: str) -> None:
    python = home / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{answers}\n")
    python.chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for Python is a shell script")
def test_a_failed_install_is_named(tmp_path: Path) -> None:
    a_python(tmp_path / "open_spiel", 'test "$1" = -c && echo "{}"')
    with pytest.raises(environments.PeerError, match=r"^open_spiel: cannot install open_spiel==2"):
        environments.ensure("open_spiel", tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for Python is a shell script")
def test_a_ready_environment_is_not_installed_again(tmp_path: Path) -> None:
    versions = {"open_spiel": "2.0.2", "numpy": "2.4.6"}
    a_python(tmp_path / "open_spiel", f"test \"$1\" = -c && echo '{json.dumps(versions)}'")
    python, found = environments.ensure("open_spiel", tmp_path)
    assert python == tmp_path / "open_spiel" / "bin" / "python"
    assert found == versions


def test_command_ends_with_an_error_that_names_the_peer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    status = peers.main(["--only", "rlcard", "--venvs", str(tmp_path / "file")])
    assert status == 1
    assert "benchmarks.peers: error: pettingzoo: cannot install" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--runs", "0"], ["--seconds", "0"], ["--only", "chess"]])
def test_bad_arguments_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        peers.main(arguments)
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_workers_measure_our_loops_round_by_round() -> None:
    game = Loop("counterweight", "Game", "one game")
    aec = Loop("counterweight", "AEC", "AEC", pinned=False)
    pythons = {"counterweight": Path(sys.executable)}
    rates = peers.measure([Comparison("x", game, aec)], pythons, runs=2, seconds=0.01)
    assert list(rates) == [game, aec]
    for rate in rates.values():
        assert len(rate.decisions) == len(rate.games) == 2
        assert min(rate.decisions) > 0


def test_a_loop_that_fails_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with (
        peers.Worker("counterweight", Path(sys.executable), core=None) as worker,
        pytest.raises(peers.PeerError, match="counterweight: the loop 'chess' failed"),
    ):
        worker.run("chess", 0.01)
    assert "KeyError" in capfd.readouterr().err


def test_loops_need_nothing_to_be_imported() -> None:
    names = ", ".join(f"benchmarks.loops.{name}" for name in MODULES)
    code = f"import sys, {names}; print('numpy' in sys.modules)"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "False"
