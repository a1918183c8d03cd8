"""The small parts that everything stands on: bits, chance, compiled code and threads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from scipy.stats import chisquare

import counterweight_env as cw
from counterweight_env import kernels
from counterweight_env import threads as threads_module
from counterweight_env.bits import prefetch, store_bits
from counterweight_env.kernels import kernel

WORDS = [0, 1, 2**63, 2**64 - 1, 0x8000_0000_0000_0001, 0x0123_4567_89AB_CDEF, 2**52 - 1]


@pytest.mark.parametrize("word", WORDS)
def test_bits_are_counted_and_found(word: int) -> None:
    mask = np.uint64(word)
    ones = [i for i in range(64) if word >> i & 1]
    assert kernels.count_bits(mask) == len(ones)
    if ones:
        assert kernels.lowest_bit(mask) == ones[0]
    assert [kernels.nth_bit(mask, n) for n in range(len(ones))] == ones


def test_a_game_has_no_padding() -> None:
    # NumPy does not copy padding, so games that are equal would differ in their bytes.
    assert kernels.STATE.itemsize == sum(
        kernels.STATE[name].itemsize for name in kernels.STATE.names
    )
    assert kernels.STATE.itemsize < 400


@kernel
def _store(row, start, word):
    store_bits(row, start, word)


@pytest.mark.parametrize("start", [0, 1, 7, 36])
@pytest.mark.parametrize("word", WORDS)
def test_a_word_becomes_64_bytes_and_no_more(word: int, start: int) -> None:
    row = np.full(100, 7, np.int8)
    _store(row, start, np.uint64(word))
    assert row[start : start + 64].tolist() == [word >> i & 1 for i in range(64)]
    assert (np.delete(row, range(start, start + 64)) == 7).all()


def test_a_prefetch_is_one_instruction_and_changes_nothing() -> None:
    @numba.njit
    def fetch(row, index):
        prefetch(row, index)

    row = np.arange(100)
    fetch(row, 64)
    assert row.tolist() == list(range(100))
    (code,) = fetch.inspect_asm().values()
    assert "prefetch" in code or "prfm" in code  # x86 and ARM call it so


def test_splitmix64_gives_its_published_numbers() -> None:
    # The first outputs for seed 1234567, as in the reference implementation's own test.
    streams = np.array([1234567, 0], np.uint64)
    drawn = [int(kernels.next_word(streams, 0)) for _ in range(3)]
    assert drawn == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert streams[1] == 0


@pytest.mark.parametrize("n", [1, 2, 3, 6, 38, 52])
def test_numbers_below_a_bound_are_even(n: int) -> None:
    streams = np.array([20240607, 0], np.uint64)
    counts = np.bincount([kernels.random_below(streams, 0, n) for _ in range(4000)], minlength=n)
    assert len(counts) == n
    assert n == 1 or chisquare(counts).pvalue > 1e-4


def test_shuffles_of_four_cards_are_even() -> None:
    streams = np.array([5, 0], np.uint64)
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(4800):
        cards = np.arange(4, dtype=np.uint8)
        kernels.shuffle(cards, streams, 0)
        order = tuple(cards.tolist())
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 24
    assert chisquare(list(seen.values())).pvalue > 1e-4


@pytest.mark.parametrize("rules", ["classic", "exchange", "exchange(ranks=7,suits=1,hand_size=2)"])
def test_masks_are_unpacked_to_the_last_row(rules: str) -> None:
    for size in (1, 2, 3, 10, 11, 12, 40):
        games = cw.GameBatch(size, rules, seed=size)
        expected = [[int(word) >> a & 1 for a in range(games.rules.num_actions)]
                    for word in games.state["legal"]]  # fmt: skip
        assert games.legal.astype(int).tolist() == expected


def test_random_actions_are_legal_and_even() -> None:
    blocked = ["AC", "3C", "5D", "7D", "9H", "JH"]
    other = ["2C", "4C", "6D", "8D", "TH", "QH"]
    named = {cw.parse_card(card) for card in [*blocked, *other, "KS", "QS"]}
    stock = [card for card in range(52) if card not in named]
    game = cw.Game.from_position([blocked, other], ["KS", "QS"], stock, buried=())
    assert len(game.legal_actions()) == 6
    games = cw.GameBatch.from_state(np.repeat(game._state, 3000), game.rules)
    kernels.seed_games(games.state, np.arange(3000, dtype=np.uint64))
    actions = games.random_actions()
    counts = np.bincount(actions, minlength=54)
    assert np.flatnonzero(counts).tolist() == game.legal_actions()
    assert chisquare(counts[counts > 0]).pvalue > 1e-4
    picked = games.copy().random_actions(rows=[5, 7])
    assert picked.shape == (2,)


@pytest.mark.parametrize("threads", [2, 3])
def test_results_do_not_depend_on_the_thread_count(threads: int) -> None:
    alone = cw.GameBatch(4096, "classic", seed=1)
    shared = cw.GameBatch(4096, "classic", seed=1, threads=threads)
    for _ in range(120):
        actions = alone.random_actions()
        assert (shared.random_actions() == actions).all()
        alone.step(actions)
        shared.step(actions)
        for games in (alone, shared):
            games.reset(games.done)
    assert (alone.state == shared.state).all()
    assert (alone.observe() == shared.observe()).all()
    assert shared.copy().threads == threads


def test_one_illegal_action_moves_no_game_of_any_thread() -> None:
    games = cw.GameBatch(4096, "classic", seed=1, threads=2)
    before = games.state.copy()
    actions = games.copy().random_actions()
    actions[4095] = games.rules.reclaim_action
    with pytest.raises(cw.IllegalActionError, match="row 4095"):
        games.step(actions)
    assert (games.state == before).all()


def test_finished_games_are_dealt_anew_as_by_reset() -> None:
    games = cw.GameBatch(300, "exchange", seed=4, dealer=1)
    twin = games.copy()
    ended = 0
    for _ in range(150):
        actions = games.random_actions()
        assert (twin.random_actions() == actions).all()
        games.step(actions)
        twin.step(actions)
        rows = np.flatnonzero(twin.done)
        twin.reset(rows)
        assert games.reset_done().tolist() == rows.tolist()
        assert (games.state == twin.state).all()
        ended += rows.size
    assert ended > 300
    assert games.reset_done().size == 0


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, None, "2"])
def test_a_bad_thread_count_is_refused_by_name(threads: object) -> None:
    with pytest.raises(ValueError, match="threads must be a positive int"):
        cw.GameBatch(2, "classic", threads=threads)  # type: ignore[arg-type]


def _play_with(games: cw.GameBatch, rows: np.ndarray) -> list[bytes]:
    """A few decisions in every pass that threads may share; all that there is to see."""
    seen = []
    for _ in range(60):
        actions = games.random_actions(rows)
        games.step(actions, rows)
        seen += [actions, games.observe(), games.observe(players=1), games.legal]
        seen += [games.reset_done()]
    games.reset(rows)
    return [array.tobytes() for array in [*seen, games.state]]


@pytest.mark.parametrize("threads", [2, 3, 5])
@pytest.mark.parametrize("size", [1, 511, 512, 767, 2001, 5003])
def test_every_pass_is_the_same_whoever_does_the_parts(size: int, threads: int) -> None:
    rows = np.arange(size)[::-1][: size - size // 5]
    alone = _play_with(cw.GameBatch(size, seed=4), rows)
    assert _play_with(cw.GameBatch(size, seed=4, threads=threads), rows) == alone


def test_the_caller_does_the_parts_that_no_helper_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.arange(4500)
    alone = _play_with(cw.GameBatch(4500, seed=4), rows)
    asleep = threads_module._Team(2)
    monkeypatch.setattr(asleep, "wake", lambda helpers: None)
    monkeypatch.setattr(threads_module, "_team", lambda helpers: asleep)
    assert _play_with(cw.GameBatch(4500, seed=4, threads=3), rows) == alone
    assert not asleep.boxes[:, threads_module.ENDED].any()


def test_helpers_do_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    team = threads_module._Team(1)
    monkeypatch.setattr(threads_module, "_team", lambda helpers: team)
    games = cw.GameBatch(4096, seed=4, threads=2)
    deadline = time.monotonic() + 60
    while not team.boxes[0, threads_module.ENDED] and time.monotonic() < deadline:
        games.observe()
    assert team.boxes[0, threads_module.ENDED] > 0


def test_two_callers_can_use_threads_at_once() -> None:
    rows = np.arange(4096)
    alone = [_play_with(cw.GameBatch(4096, seed=seed), rows) for seed in (1, 2)]
    shared = [cw.GameBatch(4096, seed=seed, threads=2) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(_play_with, shared, [rows, rows])) == alone


@pytest.mark.parametrize("kind", ["read-only", "strided"])
def test_shared_batches_take_rows_and_actions_as_they_lie(kind: str) -> None:
    alone, shared = cw.GameBatch(4096, seed=3), cw.GameBatch(4096, seed=3, threads=2)
    rows, actions = np.arange(4096), alone.copy().random_actions()
    if kind == "strided":
        rows, actions = np.repeat(rows, 2)[::2], np.repeat(actions, 2)[::2]
    else:
        rows.flags.writeable = actions.flags.writeable = False
    alone.step(actions, rows)
    shared.step(actions, rows)
    assert (alone.state == shared.state).all()


def test_a_read_only_or_strided_state_is_not_shared_out() -> None:
    state = cw.GameBatch(4096, seed=3).state
    seen = cw.GameBatch(4096, seed=3).observe()
    frozen = state.copy()
    frozen.flags.writeable = False
    for array in (frozen, np.repeat(state, 2)[::2]):
        games = cw.GameBatch.from_state(array, "classic")
        games._share_out(2)
        assert (games.observe() == seen).all()


def test_a_forked_child_can_use_threads() -> None:
    code = """
import os, counterweight_env as cw
games = cw.GameBatch(4096, seed=0, threads=2)
games.step(games.random_actions())
child = os.fork()
if child == 0:
    games.step(games.random_actions())
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    if not hasattr(os, "fork"):
        return  # nothing to hold on this system
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_kernels_work_where_no_cache_folder_can_be_written() -> None:
    code = """
import tempfile
def refuse(*args, **kwargs):
    raise OSError("read-only")
tempfile.TemporaryFile = refuse  # how Numba finds out whether it can write
from counterweight_env import kernels
import numpy as np
assert kernels.count_bits(np.uint64(7)) == 3
assert type(kernels.count_bits._cache).__name__ == "NullCache"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_compiled_code_is_kept_and_dropped_when_any_engine_file_changes(tmp_path: Path) -> None:
    package = Path(cw.__file__).parent
    copy = tmp_path / "counterweight_env"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    code = """
import counterweight_env.envs.duel as duel, counterweight_env as cw, sys
assert cw.__file__.startswith(sys.argv[1]), cw.__file__
cw.GameBatch(2, seed=0)
stats = cw.kernels.deal_games.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", code, str(tmp_path)]

    def run() -> list[str]:
        shown = subprocess.run(
            command,
            check=True,
            timeout=300,
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
        )
        return shown.stdout.split()

    assert run() == ["0", "1"]
    assert run() == ["1", "0"]
    with (copy / "cards.py").open("a") as file:
        file.write("# changed\n")
    assert run() == ["0", "1"]


def test_compiled_code_is_dropped_when_a_kernel_of_another_file_changes(tmp_path: Path) -> None:
    head = "from counterweight_env.kernels import kernel\n"
    (tmp_path / "middle.py").write_text(
        f"{head}from inner import one\n@kernel\ndef two():\n    return one() + 1\n"
    )
    (tmp_path / "outer.py").write_text(
        f"{head}from middle import two\n@kernel\ndef three():\n    return two() + 1\n"
    )

    def three(one: int) -> int:
        (tmp_path / "inner.py").write_text(f"{head}@kernel\ndef one():\n    return {one}\n")
        shown = subprocess.run(
            [sys.executable, "-c", "import outer; print(outer.three())"],
            check=True,
            timeout=300,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            cwd=tmp_path,
        )
        return int(shown.stdout)

    assert three(1) == 3
    assert three(100) == 102
