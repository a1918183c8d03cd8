"""The passes over a batch, shared out among threads; results do not depend on how many there are.

A pass over thousands of games takes some 100 microseconds, and waking a sleeping thread takes half
of that. So a helper that has ended its part stays awake for a moment, in compiled code that does
not hold the GIL, and looks for the next one. A part that no helper has begun when the caller is
through with its own is done by the caller, so nothing ever waits for a thread to wake.

Each thread keeps to its part of the rows in every pass: games then stay in one core's cache.
"""

from __future__ import annotations

import os
import threading
from functools import lru_cache
from typing import Final

import numba
import numpy as np
from numba import config

from counterweight_env import kernels
from counterweight_env.atomics import array_at, exchange_word, load_word, store_word
from counterweight_env.cards import RULE_TABLE, rule_table
from counterweight_env.kernels import STATE, kernel
from counterweight_env.observation import MOVERS, encode_games, encoder_offsets
from counterweight_env.rules import Rules

__all__ = ["Passes", "check_threads", "passes"]

LEAST_ROWS: Final = 1024  # a part; smaller ones cost more than they save
#: Looks for the next piece of work before a helper sleeps: about a fifth of a millisecond.
PATIENCE: Final = 2**18

carray = numba.carray  # type: ignore[attr-defined]

# The passes.
CHECK: Final = 0
STEP: Final = 1
DRAW: Final = 2
DEAL: Final = 3
DEAL_FINISHED: Final = 4
ENCODE: Final = 5
UNPACK: Final = 6

# The words of a helper, in cache lines of their own by who writes them.
GIVEN: Final = 0  # pieces of work given so far
TASK: Final = 1
START: Final = 2  # the rows of this part
STOP: Final = 3
DEALER: Final = 4
ADDRESSES: Final = 5  # games, table, offsets, rows, actions, players, observation, legal
LENGTHS: Final = 13  # of games, offsets, players; of a row of observation and legal
CLAIMED: Final = 24  # the last piece that somebody has begun
ENDED: Final = 32  # the last piece that the helper has ended
RESULT: Final = 33
AWAKE: Final = 34  # whether the helper looks for work
WORDS: Final = 48


def check_threads(threads: int) -> int:
    """Refuses a thread count that is no positive int.

    Raises:
        ValueError: The message names the value.
    """
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be a positive int, got {threads!r}")
    return threads


@kernel
def do_part(
    task, start, stop, dealer, games, tables, offsets, rows, actions, players, observation, legal
):
    """One pass over a part of the rows. Returns what the pass found, counted from the part."""
    if task == CHECK:
        return kernels.first_illegal(games, tables, rows[start:stop], actions[start:stop])
    if task == STEP:
        return kernels.step_rows(games, tables, rows[start:stop], actions[start:stop])
    if task == DRAW:
        kernels.draw_actions(games, rows[start:stop], actions[start:stop])
    elif task == DEAL:
        kernels.deal_games(games, tables, dealer, rows[start:stop])
    elif task == DEAL_FINISHED:
        return kernels.deal_finished(games[start:stop], tables, dealer, rows[start:stop])
    elif task == ENCODE:
        sides = players[start:stop] if players.size else players
        encode_games(tables, offsets, games[start:stop], sides, observation[start:stop])
    else:
        kernels.unpack_legal(tables, games[start:stop], legal[start:stop])
    return 0


@kernel
def do_given_part(box):
    """The part that a helper's words describe."""
    size = box[LENGTHS]
    return do_part(
        box[TASK],
        box[START],
        box[STOP],
        box[DEALER],
        carray(array_at(box[ADDRESSES]), (size,), STATE),
        carray(array_at(box[ADDRESSES + 1]), (1,), RULE_TABLE),
        carray(array_at(box[ADDRESSES + 2]), (box[LENGTHS + 1],), np.int64),
        carray(array_at(box[ADDRESSES + 3]), (box[STOP],), np.int64),
        carray(array_at(box[ADDRESSES + 4]), (box[STOP],), np.int64),
        carray(array_at(box[ADDRESSES + 5]), (box[LENGTHS + 2],), np.int8),
        carray(array_at(box[ADDRESSES + 6]), (size, box[LENGTHS + 3]), np.int8),
        carray(array_at(box[ADDRESSES + 7]), (size, box[LENGTHS + 4]), np.bool_),
    )


@kernel
def help_out(box):
    """What a helper does: parts as they are given, until none has come for a while."""
    store_word(box, AWAKE, 1)
    looks = 0
    while looks < PATIENCE:
        given = load_word(box, GIVEN)
        if load_word(box, CLAIMED) != given and exchange_word(box, CLAIMED, given - 1, given):
            box[RESULT] = do_given_part(box)
            store_word(box, ENDED, given)
            looks = 0
        looks += 1
    store_word(box, AWAKE, 0)


@kernel
def do_all(
    boxes,
    results,
    size,
    task,
    dealer,
    games,
    tables,
    offsets,
    rows,
    actions,
    players,
    observation,
    legal,
):
    """Gives every helper a part of `size` rows, does the last one, and sees that all are done.

    Writes the result of each part.
    """
    parts = results.size
    for i in range(parts - 1):
        box = boxes[i]
        box[TASK] = task
        box[START] = size * i // parts
        box[STOP] = size * (i + 1) // parts
        box[DEALER] = dealer
        box[ADDRESSES] = games.ctypes.data
        box[ADDRESSES + 1] = tables.ctypes.data
        box[ADDRESSES + 2] = offsets.ctypes.data
        box[ADDRESSES + 3] = rows.ctypes.data
        box[ADDRESSES + 4] = actions.ctypes.data
        box[ADDRESSES + 5] = players.ctypes.data
        box[ADDRESSES + 6] = observation.ctypes.data
        box[ADDRESSES + 7] = legal.ctypes.data
        box[LENGTHS] = games.size
        box[LENGTHS + 1] = offsets.size
        box[LENGTHS + 2] = players.size
        box[LENGTHS + 3] = observation.shape[1]
        box[LENGTHS + 4] = legal.shape[1]
        store_word(box, GIVEN, box[GIVEN] + 1)
    for part in range(parts - 1, -1, -1):
        if part < parts - 1:
            given = boxes[part, GIVEN]
            if not exchange_word(boxes[part], CLAIMED, given - 1, given):
                while load_word(boxes[part], ENDED) != given:
                    pass
                results[part] = boxes[part, RESULT]
                continue
        results[part] = do_part(
            task,
            size * part // parts,
            size * (part + 1) // parts,
            dealer,
            games,
            tables,
            offsets,
            rows,
            actions,
            players,
            observation,
            legal,
        )


class _Team:
    """Threads that help whoever calls. They serve one caller at a time."""

    def __init__(self, helpers: int) -> None:
        self.free = threading.Lock()
        self.boxes = np.zeros((helpers, WORDS), np.int64)
        help_out(np.zeros(WORDS, np.int64))  # compiles, so that no helper has to
        self._beds = [threading.Lock() for _ in range(helpers)]
        for box, bed in zip(self.boxes, self._beds, strict=True):
            bed.acquire()
            threading.Thread(
                target=self._help, args=(box, bed), name="counterweight", daemon=True
            ).start()

    @staticmethod
    def _help(box: np.ndarray, bed: threading.Lock) -> None:
        while True:
            bed.acquire()
            help_out(box)

    def wake(self, helpers: int) -> None:
        """Wakes those of the first helpers that sleep."""
        for box, bed in zip(self.boxes[:helpers], self._beds, strict=False):
            if not box[AWAKE] and bed.locked():
                bed.release()


@lru_cache(maxsize=8)
def _team(helpers: int) -> _Team:
    return _Team(helpers)


if hasattr(os, "register_at_fork"):
    # A forked child has the team but not its threads.
    os.register_at_fork(after_in_child=_team.cache_clear)


NO_ROWS: Final = np.empty(0, np.int64)
NO_OBSERVATION: Final = np.empty((0, 0), np.int8)
NO_LEGAL: Final = np.empty((0, 0), np.bool_)


class Passes:
    """The passes over a batch of games, by the calling thread alone.

    Args:
        games: (B,) state array.
        rules: The rules of all games.
    """

    def __init__(self, games: np.ndarray, rules: Rules) -> None:
        self._games = games
        self._tables = rule_table(rules)
        self._offsets = encoder_offsets(rules)

    def step(self, rows: np.ndarray, actions: np.ndarray) -> int:
        """Moves the games if all actions are legal; else returns where the first bad one stands.

        Args:
            rows: (n,) int64, which games.
            actions: (n,) int64.

        Returns:
            A position in ``rows``, or -1.
        """
        return int(kernels.step_rows(self._games, self._tables, rows, actions))

    def draw_actions(self, rows: np.ndarray, actions: np.ndarray) -> None:
        """Writes a legal action for each of the given games; 0 for a finished one."""
        kernels.draw_actions(self._games, rows, actions)

    def deal(self, rows: np.ndarray, dealer: int) -> None:
        """Deals new games in the given rows."""
        kernels.deal_games(self._games, self._tables, dealer, rows)

    def deal_finished(self, dealer: int) -> np.ndarray:
        """Deals anew wherever a game is over; returns these rows, ascending."""
        rows = np.empty(len(self._games), np.int64)
        count = kernels.deal_finished(self._games, self._tables, dealer, rows)
        return rows[:count].copy()

    def encode(self, players: np.ndarray, out: np.ndarray) -> None:
        """Writes observations (B, K) for the given players; for the movers if there are none."""
        encode_games(self._tables, self._offsets, self._games, players, out)

    def unpack_legal(self, out: np.ndarray) -> None:
        """Writes the legal actions (B, A) as 0 and 1."""
        kernels.unpack_legal(self._tables, self._games, out)


class SharedPasses(Passes):
    """The same, with large batches shared out among threads.

    Args:
        games: (B,) state array.
        rules: The rules of all games.
        threads: How many threads there may be.
    """

    def __init__(self, games: np.ndarray, rules: Rules, threads: int) -> None:
        super().__init__(games, rules)
        self._threads = threads

    def step(self, rows: np.ndarray, actions: np.ndarray) -> int:
        """Moves the games if all actions are legal; else returns where the first bad one stands."""
        which, what = _writeable(rows), _writeable(actions)
        # No thread may move a game before all actions have been checked.
        found = self._share(CHECK, rows.size, rows=which, actions=what)
        if found is None:
            return super().step(rows, actions)
        for bad, start in zip(*found, strict=True):
            if bad >= 0:
                return start + bad
        if self._share(STEP, rows.size, rows=which, actions=what) is None:
            return super().step(rows, actions)
        return -1

    def draw_actions(self, rows: np.ndarray, actions: np.ndarray) -> None:
        """Writes a legal action for each of the given games; 0 for a finished one."""
        if self._share(DRAW, rows.size, rows=_writeable(rows), actions=actions) is None:
            super().draw_actions(rows, actions)

    def deal(self, rows: np.ndarray, dealer: int) -> None:
        """Deals new games in the given rows."""
        if self._share(DEAL, rows.size, dealer, rows=_writeable(rows)) is None:
            super().deal(rows, dealer)

    def deal_finished(self, dealer: int) -> np.ndarray:
        """Deals anew wherever a game is over; returns these rows, ascending."""
        rows = np.empty(len(self._games), np.int64)
        found = self._share(DEAL_FINISHED, rows.size, dealer, rows=rows)
        if found is None:
            return super().deal_finished(dealer)
        return np.concatenate(
            [rows[start : start + count] + start for count, start in zip(*found, strict=True)]
        )

    def encode(self, players: np.ndarray, out: np.ndarray) -> None:
        """Writes observations (B, K) for the given players; for the movers if there are none."""
        if self._share(ENCODE, len(out), players=_writeable(players), observation=out) is None:
            super().encode(players, out)

    def unpack_legal(self, out: np.ndarray) -> None:
        """Writes the legal actions (B, A) as 0 and 1."""
        if self._share(UNPACK, len(out), legal=out) is None:
            super().unpack_legal(out)

    def _share(
        self,
        task: int,
        size: int,
        dealer: int = 0,
        rows: np.ndarray = NO_ROWS,
        actions: np.ndarray = NO_ROWS,
        players: np.ndarray = MOVERS,
        observation: np.ndarray = NO_OBSERVATION,
        legal: np.ndarray = NO_LEGAL,
    ) -> tuple[list[int], list[int]] | None:
        """Shares a pass out; returns what each part found and where it begins.

        None, with nothing done, if the pass is too small or the helpers are busy elsewhere.
        """
        parts = min(self._threads, size // LEAST_ROWS)
        if parts < 2:
            return None
        team = _team(self._threads - 1)
        if not team.free.acquire(blocking=False):
            return None
        try:
            team.wake(parts - 1)
            results = np.empty(parts, np.int64)
            do_all(
                team.boxes,
                results,
                size,
                task,
                dealer,
                self._games,
                self._tables,
                self._offsets,
                rows,
                actions,
                players,
                observation,
                legal,
            )
        finally:
            team.free.release()
        return results.tolist(), [size * part // parts for part in range(parts)]


def _writeable(array: np.ndarray) -> np.ndarray:
    """The array, or a copy if it does not lie in one piece or may not be written to.

    Nothing writes to it; but one compiled pass serves all, and helpers get a bare address.
    """
    return array if array.flags.carray else array.copy()


def passes(games: np.ndarray, rules: Rules, threads: int) -> Passes:
    """The passes over a state array, by one thread or more."""
    if threads == 1 or config.DISABLE_JIT or not games.flags.carray:  # type: ignore[attr-defined]
        return Passes(games, rules)
    return SharedPasses(games, rules, threads)
