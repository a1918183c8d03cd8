"""Games in which one seat is the learner's and the other an opponent's.

The Gymnasium environments and the training environment all stand on :class:`Duel`, so that one slot
of a batch plays exactly what a single environment plays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from counterweight_env.game import GameBatch, Seed
from counterweight_env.kernels import (
    AGENT_STREAM,
    NOBODY,
    OVER,
    STATE,
    deal,
    kernel,
    next_word,
    random_below,
)
from counterweight_env.observation import observation_size
from counterweight_env.plugins import Agent, as_agent
from counterweight_env.rules import Rules
from counterweight_env.view import ViewBatch

__all__ = ["Duel", "check_reward", "check_seat"]

REWARDS: Final = ("outcome", "margin")


def check_seat(seat: int | str) -> int:
    """The learner's seat as a number: 0, 1, or -1 for ``"random"``.

    Raises:
        ValueError: ``seat`` is none of the three.
    """
    if isinstance(seat, str) and seat == "random":
        return NOBODY
    if isinstance(seat, (int, np.integer)) and not isinstance(seat, bool) and seat in (0, 1):
        return int(seat)
    raise ValueError(f"seat must be 0, 1 or 'random', got {seat!r}")


def check_reward(reward: str, solve_endings: bool = False) -> str:
    """Refuses an unknown reward, and one that solved endings do not give.

    Raises:
        ValueError: ``reward`` is neither ``"outcome"`` nor ``"margin"``, or it is the latter and
            ``solve_endings`` is on.
    """
    if reward not in REWARDS:
        raise ValueError(f"reward must be one of {REWARDS}, got {reward!r}")
    if solve_endings and reward == "margin":
        raise ValueError('solve_endings gives outcomes, so reward must not be "margin"')
    return reward


@kernel
def draw_sides(game, seat, cumulative, seats, opponent_of, row):
    """Draws the learner's seat and the opponent of a newly dealt game from its agent stream.

    Both words are drawn in any case, so that fixing the seat does not change the opponent.
    """
    lot = random_below(game["rng"], AGENT_STREAM, 2)
    seats[row] = lot if seat == NOBODY else seat
    # 53 bits, as an even number from 0 to 1.
    share = (next_word(game["rng"], AGENT_STREAM) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
    opponent = 0
    while opponent < cumulative.size - 1 and share >= cumulative[opponent]:
        opponent += 1
    opponent_of[row] = opponent


@kernel
def start_games(games, rows, seat, cumulative, seats, opponent_of):
    """Draws the sides of newly dealt games."""
    for i in range(rows.size):
        draw_sides(games[rows[i]], seat, cumulative, seats, opponent_of, rows[i])


@kernel
def find_waiting(games, tables, rows, seat, cumulative, seats, opponent_of, done, last, waiting):
    """Collects those of the given rows whose opponent is on turn; returns how many.

    With `last` not empty, finished games are dealt anew. The first time that happens in a row, it
    is marked in `done` and its last record, seat and opponent are kept in `last`.
    """
    deck = np.empty(tables[0]["deck_size"], np.uint8)
    count = 0
    for i in range(rows.size):
        row = rows[i]
        game = games[row]
        if game["phase"] == OVER:
            if last.size == 0:
                continue
            if not done[row]:
                done[row] = True
                last[row]["game"] = game
                last[row]["seat"] = seats[row]
                last[row]["opponent"] = opponent_of[row]
            deal(game, tables[0], deck, NOBODY)
            draw_sides(game, seat, cumulative, seats, opponent_of, row)
        if game["to_move"] != seats[row]:
            waiting[count] = row
            count += 1
    return count


#: A finished game as autoreset keeps it.
LAST: Final = np.dtype([("game", STATE), ("opponent", np.int64), ("seat", np.int8)], align=True)
NOTHING_KEPT: Final = np.empty(0, LAST)


class Ended(NamedTuple):
    """The games that ended in a step and have been dealt anew.

    Attributes:
        rows: (n,) int64, ascending.
        observation: (n, K) int8, their last positions from the learner's side.
        opponent: (n,) int64, who the opponent was, as an index of ``Duel.opponents``.
        turns: (n,) uint8, the turns they took.
    """

    rows: np.ndarray
    observation: np.ndarray
    opponent: np.ndarray
    turns: np.ndarray


class Duel:
    """A batch of games with the learner in one seat of each and an opponent in the other.

    Args:
        num_games: ``B``.
        rules: A :class:`Rules` or its text.
        opponents: Agents or their texts. Each game draws one when it is dealt, from its own stream,
            and keeps it to the end.
        weights: One non-negative weight an opponent; even if None.
        seat: The learner's: 0, 1, or ``"random"`` (drawn for each game from its own stream).
        reward: ``"outcome"``: +1, 0, -1 at the end; ``"margin"``: (opponent's cards - own cards)
            / deck size at the end.
        seed: As for :class:`GameBatch`.
        threads: As for :class:`GameBatch`.
        solve_endings: As for :class:`GameBatch`; not with ``reward="margin"``.
        solve_nodes: As for :class:`GameBatch`.

    Raises:
        ValueError: An argument is bad.
        TypeError: An opponent is no agent.
    """

    def __init__(
        self,
        num_games: int,
        rules: Rules | str = "classic",
        opponents: Sequence[Agent | str] = ("random",),
        weights: Sequence[float] | None = None,
        seat: int | str = "random",
        reward: str = "outcome",
        seed: Seed = None,
        threads: int = 1,
        solve_endings: bool = False,
        solve_nodes: int | None = None,
    ) -> None:
        self.seat = seat
        self._seat = check_seat(seat)
        self.reward = check_reward(reward, solve_endings)
        self.set_opponents(opponents, weights)
        self.games = GameBatch(
            num_games,
            rules,
            seed,
            threads=threads,
            solve_endings=solve_endings,
            solve_nodes=solve_nodes,
        )
        self.rules = self.games.rules
        self.seats = np.zeros(num_games, np.int8)
        self.opponent_of = np.zeros(num_games, np.int64)
        self._last = np.empty(num_games, LAST)
        self._start(np.arange(num_games))

    def __len__(self) -> int:
        return len(self.games)

    def set_opponents(
        self, opponents: Sequence[Agent | str], weights: Sequence[float] | None = None
    ) -> None:
        """Sets who is drawn for the games dealt from now on; a running game keeps its opponent.

        Raises:
            ValueError: There are no opponents, or the weights do not fit.
            TypeError: An opponent is no agent.
        """
        if isinstance(opponents, str) or len(opponents) == 0:
            raise ValueError(f"opponents must be a non-empty sequence of agents, got {opponents!r}")
        shares = np.ones(len(opponents)) if weights is None else np.asarray(weights, np.float64)
        fits = shares.shape == (len(opponents),) and (shares >= 0).all()
        if not fits or not 0 < shares.sum() < np.inf:
            raise ValueError(
                f"weights must be {len(opponents)} non-negative numbers, not all 0, got {weights!r}"
            )
        current = [as_agent(agent) for agent in opponents]
        # Agents that running games still need stay behind the current ones.
        former = getattr(self, "opponents", [])
        self.opponents: list[Agent] = list(current)
        for number in np.unique(getattr(self, "opponent_of", np.empty(0, np.int64))):
            agent = former[number]
            if not any(agent is other for other in self.opponents):
                self.opponents.append(agent)
        if former:
            places = [
                next((i for i, other in enumerate(self.opponents) if other is agent), -1)
                for agent in former
            ]
            self.opponent_of = np.array(places, np.int64)[self.opponent_of]
        self._cumulative = np.cumsum(shares / shares.sum())

    def reset(self, rows: np.ndarray | None = None, seed: Seed = None) -> None:
        """Deals new games and lets opponents move until the learner is on turn in each.

        On small decks a game can end before the learner has had a decision; it is dealt again.

        Args:
            rows: Indexes or a bool mask; all if None.
            seed: As for :meth:`GameBatch.reset`.
        """
        self.games.reset(rows, seed)
        self._start(self.games._rows(rows))

    def _start(self, rows: np.ndarray) -> None:
        """Begins newly dealt games."""
        start_games(
            self.games.state, rows, self._seat, self._cumulative, self.seats, self.opponent_of
        )
        # Nothing has been played yet, so nothing is kept of games that end here.
        self._let_opponents_move(rows, np.ones(len(self), np.bool_), self._last)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Carries out the learner's action in every game, then the opponents' replies.

        Args:
            actions: (B,) ints. Those of finished games are ignored.

        Returns:
            The learner's reward (B,) float32, once for each game, and whether the game is over (B,)
            bool. No new game is dealt.

        Raises:
            IllegalActionError: An action is illegal; no game has moved.
        """
        before = self.games.done
        self.games.step(actions)
        self._let_opponents_move(self.games._all_rows, before, NOTHING_KEPT)
        done = self.games.done
        rows = np.flatnonzero(done & ~before)
        return self._rewards(rows, self.games.state[rows], self.seats[rows]), done

    def step_autoreset(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, Ended]:
        """Like :meth:`step`, and deals anew where a game has ended.

        Args:
            actions: (B,) ints.

        Returns:
            The learner's reward (B,) float32, whether a game has ended (B,) bool, and what the
            ended games were like.

        Raises:
            IllegalActionError: An action is illegal; no game has moved.
        """
        done = np.zeros(len(self), np.bool_)
        self.games.step(actions)
        self._let_opponents_move(self.games._all_rows, done, self._last)
        rows = np.flatnonzero(done)
        last = self._last[rows]
        ended = Ended(
            rows,
            GameBatch.from_state(last["game"], self.rules).observe(players=last["seat"]),
            last["opponent"].copy(),
            last["game"]["turn"].copy(),
        )
        return self._rewards(rows, last["game"], last["seat"]), done, ended

    def _rewards(self, rows: np.ndarray, ended: np.ndarray, seats: np.ndarray) -> np.ndarray:
        """The rewards of all rows, given those that ended, their records and learner's seats."""
        games = GameBatch.from_state(ended, self.rules)
        payoffs = games.returns if self.reward == "outcome" else games.margins
        rewards = np.zeros(len(self), np.float32)
        rewards[rows] = payoffs[np.arange(rows.size), seats]
        return rewards

    def _let_opponents_move(self, rows: np.ndarray, done: np.ndarray, last: np.ndarray) -> None:
        """Goes on in the given rows until the learner is on turn, dealing anew as `last` says."""
        games = self.games
        sides = (self._seat, self._cumulative, self.seats, self.opponent_of)
        waiting = np.empty(rows.size, np.int64)
        while True:
            count = find_waiting(games.state, games._table, rows, *sides, done, last, waiting)
            if count == 0:
                return
            rows = waiting[:count].copy()
            games._step(rows, self._ask_opponents(rows))

    def _ask_opponents(self, rows: np.ndarray) -> np.ndarray:
        views = ViewBatch.of(self.rules, self.games.state, rows, 1 - self.seats[rows])
        if len(self.opponents) == 1:
            return np.asarray(self.opponents[0].act(views))
        actions = np.empty(rows.size, np.int64)
        owners = self.opponent_of[rows]
        for number in np.unique(owners):
            mine = np.flatnonzero(owners == number)
            actions[mine] = self.opponents[number].act(views.take(mine))
        return actions

    def observe(self) -> np.ndarray:
        """(B, K) int8, every game from the learner's side."""
        out = np.empty((len(self), observation_size(self.rules)), np.int8)
        self.games._passes.encode(self.seats, out)
        return out

    @property
    def legal(self) -> np.ndarray:
        """(B, A) bool, True = legal for the learner; all False for a finished game."""
        return self.games.legal

    def get_state(self) -> dict[str, Any]:
        """Everything but the opponents, as arrays: what an exact continuation needs."""
        return {
            "games": self.games.state.copy(),
            "seats": self.seats.copy(),
            "opponent_of": self.opponent_of.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back what :meth:`get_state` gave; the opponents must be the same, in order.

        Raises:
            ValueError: The arrays do not fit this batch.
        """
        for name, own in (
            ("games", self.games.state),
            ("seats", self.seats),
            ("opponent_of", self.opponent_of),
        ):
            array = state[name]
            if array.shape != own.shape or array.dtype != own.dtype:
                raise ValueError(
                    f"{name} must be {own.dtype} of shape {own.shape}, "
                    f"got {array.dtype} of shape {array.shape}"
                )
        unknown = np.setdiff1d(state["opponent_of"], range(len(self.opponents)))
        if unknown.size:
            raise ValueError(f"opponent_of names opponents {unknown.tolist()}, unknown here")
        self.games.state[:] = state["games"]
        self.seats[:] = state["seats"]
        self.opponent_of[:] = state["opponent_of"]
