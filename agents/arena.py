"""Matches on duplicate deals: every deal is played twice, with the seats swapped.

The luck of the cards falls on both players alike, so a match needs far fewer games to tell two
players apart, and the deal (not the game) is the unit of the interval.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import Final

import numpy as np

from agents.agent import Agent, as_agent, close_agent, decide
from agents.blunders import BlunderWatch, Verdict
from counterweight_env.game import GameBatch, IllegalActionError
from counterweight_env.kernels import kernel, mix_bits, next_word, seed_games
from counterweight_env.record import Fault, GameRecord
from counterweight_env.rules import Rules, as_rules

__all__ = ["HELD_OUT_SEED", "MatchResult", "play_match"]

#: The deals that published numbers are measured on, and nothing is trained or tuned on.
HELD_OUT_SEED: Final = 2**63 + 2**32

RESAMPLES: Final = 2_000
CONFIDENCE: Final = 0.95


@dataclass(frozen=True)
class Timing:
    """How long the two players of a match took. The seconds differ from run to run.

    Attributes:
        decisions: Decisions that `a` and `b` were asked for.
        seconds: What their answers took, by the wall clock.
    """

    decisions: tuple[int, int]
    seconds: tuple[float, float]


@dataclass(frozen=True, eq=False)
class MatchResult:
    """The outcome of a match, from the side of its first player `a`.

    Attributes:
        a: The first player's name.
        b: The second player's name.
        rules: What was played.
        seed: Where the deals came from.
        game_scores: (deals, 2) float64, read-only: 1 for a game that `a` won, 0.5 for a draw, 0
            for a loss. In column 0 `a` had seat 0, in column 1 seat 1.
        turns: Turns a game, on average.
        first_mover_score: Score of whoever moved first, from 0 to 1, over all games.
        endgame_decisions: What ``count_blunders`` found, for `a` and `b`: the decisions after
            exhaustion, as :mod:`agents.blunders` counts them. None if it was off, and so below.
        blunders: How many of them gave away value.
        unproven: Decisions that the node limit left open; they are not among the others.
        faults: Games that `a` and `b` gave up, see :class:`FallibleAgent`. They are among the lost.
        timing: How long the players took; no part of what the match's arguments decide.
    """

    a: str
    b: str
    rules: Rules
    seed: int
    game_scores: np.ndarray
    turns: float
    first_mover_score: float
    endgame_decisions: tuple[int, int] | None = None
    blunders: tuple[int, int] | None = None
    unproven: tuple[int, int] | None = None
    faults: tuple[int, int] = (0, 0)
    timing: Timing | None = None

    @property
    def deals(self) -> int:
        """Deals played."""
        return len(self.game_scores)

    @property
    def games(self) -> int:
        """Games played, two a deal."""
        return self.game_scores.size

    @property
    def wins(self) -> int:
        """Games that `a` won."""
        return int((self.game_scores == 1.0).sum())

    @property
    def draws(self) -> int:
        """Games that nobody won."""
        return int((self.game_scores == 0.5).sum())

    @property
    def losses(self) -> int:
        """Games that `a` lost."""
        return int((self.game_scores == 0.0).sum())

    @property
    def score(self) -> float:
        """Wins and half the draws of `a`, as a part of all games, from 0 to 1."""
        return float(self.game_scores.mean())

    @property
    def deal_scores(self) -> np.ndarray:
        """(deals,) float64, the mean score of `a` in the two games of each deal."""
        return self.game_scores.mean(axis=1)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the score: a percentile bootstrap over deals, 2,000 resamples.

        The same match always has the same interval. Where all deals have the same score, the
        interval is that score.
        """
        # Few values are possible, so a resample is drawn by how often each of them comes up.
        values, counts = np.unique(self.deal_scores, return_counts=True)
        rng = np.random.default_rng(0)
        drawn = rng.multinomial(self.deals, counts / self.deals, size=RESAMPLES)
        return percentiles(drawn @ values / self.deals)

    @property
    def blunder_rates(self) -> tuple[float, float] | None:
        """The share of decisions after exhaustion that gave away value, for `a` and `b`.

        NaN for a player without such a decision; None if ``count_blunders`` was off.
        """
        if self.blunders is None or self.endgame_decisions is None:
            return None
        first, second = (
            count / decisions if decisions else float("nan")
            for count, decisions in zip(self.blunders, self.endgame_decisions, strict=True)
        )
        return first, second

    def __str__(self) -> str:
        low, high = self.interval
        line = (
            f"{self.a} against {self.b}: {self.score:.3f} (95 % interval {low:.3f} to {high:.3f}), "
            f"{self.wins} won, {self.draws} drawn, {self.losses} lost in {self.deals} deals of "
            f"{self.rules}, seed {self.seed}; {self.turns:.1f} turns a game, "
            f"first mover {self.first_mover_score:.3f}"
        )
        if any(self.faults):
            line += f"; given up {self.faults[0]} and {self.faults[1]}"
        if self.blunder_rates is None:
            return line
        assert self.endgame_decisions is not None
        assert self.unproven is not None
        rates = " and ".join(
            f"{rate:.4f} of {decisions} decisions"
            for rate, decisions in zip(self.blunder_rates, self.endgame_decisions, strict=True)
        )
        return f"{line}; blunders after exhaustion {rates}, {sum(self.unproven)} more unproven"


def percentiles(values: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of a statistic, from its values in many resamples."""
    outside = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(values, (outside, 1.0 - outside))
    return float(low), float(high)


def play_match(
    a: Agent | str,
    b: Agent | str,
    rules: Rules | str = "classic",
    deals: int = 1_000,
    seed: int = 0,
    batch_size: int = 1_024,
    count_blunders: bool = False,
) -> MatchResult:
    """Plays a match: every deal twice, with the seats swapped.

    Deal i of a seed has the same deck and dealer however many deals are played, and each game has
    random bits of its own for the players. The result does not depend on ``batch_size``, but for
    an ``exec`` bot that fails so often in a row that it is asked no more: which games it still
    gets to play then depends on which are played side by side. A game that a
    :class:`FallibleAgent` gives up is lost for it. Players made from text are closed at the end.

    Args:
        a: A player, or the text of one as :func:`make_agent` reads it.
        b: Its opponent, likewise.
        rules: A :class:`Rules` or its text.
        deals: How many deals; twice as many games.
        seed: From 0 to 2**64 - 1.
        batch_size: Deals played side by side, which is a matter of memory and speed only.
        count_blunders: Solve every position after exhaustion and count, for each player, the
            decisions that gave away value. The games stay the same; the match takes longer.

    Raises:
        IllegalActionError: A player answered with an illegal action or with no (n,) int array; the
            message names the player and the decision.
        TypeError: A player or the rules are of the wrong type.
        ValueError: A text names no player or no rules, or a number is out of range.
    """
    rules = as_rules(rules)
    deals = _check_int("deals", deals, 1)
    batch_size = _check_int("batch_size", batch_size, 1)
    seed = _check_int("seed", seed, 0)
    if seed >= 2**64:
        raise ValueError(f"seed must be less than 2**64, got {seed}")
    with ExitStack() as stack:
        players = _seated(a, stack), _seated(b, stack)
        played = DealsPlayed.joined(
            [
                play_deals(
                    players, rules, seed, first, min(batch_size, deals - first), count_blunders
                )
                for first in range(0, deals, batch_size)
            ]
        )
    played.scores.flags.writeable = False
    verdicts = played.verdicts.sum(axis=(0, 1))
    kept, blundered, unproven = (
        _pair_of_ints(verdicts[:, verdict])
        for verdict in (Verdict.KEPT, Verdict.BLUNDER, Verdict.UNPROVEN)
    )
    return MatchResult(
        a=players[0].name,
        b=players[1].name,
        rules=rules,
        seed=seed,
        game_scores=played.scores,
        turns=float(played.turns.mean()),
        first_mover_score=float(played.first_mover_scores.mean()),
        endgame_decisions=(kept[0] + blundered[0], kept[1] + blundered[1])
        if count_blunders
        else None,
        blunders=blundered if count_blunders else None,
        unproven=unproven if count_blunders else None,
        faults=_pair_of_ints(played.fault_counts),
        timing=Timing(
            _pair_of_ints(played.decisions.sum(axis=(0, 1))),
            (float(played.seconds[0]), float(played.seconds[1])),
        ),
    )


def _seated(agent: Agent | str, stack: ExitStack) -> Agent:
    """The agent; the stack closes it if it is made from text here."""
    made = as_agent(agent)
    if isinstance(agent, str):
        stack.callback(close_agent, made)
    return made


def _pair_of_ints(values: np.ndarray) -> tuple[int, int]:
    return int(values[0]), int(values[1])


def _check_int(name: str, value: int, least: int) -> int:
    try:
        number = index(value)
    except TypeError:
        raise ValueError(f"{name} must be an int, got {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


@kernel
def seed_words(seed, first_deal, words):
    """Writes three seeds a deal: one for its cards and dealer, one for each of its two games."""
    stream = np.empty(1, np.uint64)
    for i in range(words.shape[0]):
        stream[0] = mix_bits(mix_bits(seed) + np.uint64(first_deal + i))
        for k in range(3):
            words[i, k] = next_word(stream, 0)


def deal_twice(rules: Rules, seed: int, first_deal: int, deals: int) -> GameBatch:
    """Deals ``first_deal`` onward, every one as two equal games with random streams of their own.

    Returns:
        A batch of 2 * deals games; rows 2i and 2i + 1 are deal ``first_deal + i``.
    """
    words = np.empty((deals, 3), np.uint64)
    seed_words(np.uint64(seed), first_deal, words)
    state = np.repeat(GameBatch(deals, rules, seed=words[:, 0]).state, 2)
    seed_games(state, np.ascontiguousarray(words[:, 1:]).reshape(-1))
    return GameBatch.from_state(state, rules)


@dataclass(frozen=True, eq=False)
class DealsPlayed:
    """Both games of some deals in a row, game by game.

    Attributes:
        scores: (deals, 2) float64, as ``MatchResult.game_scores``.
        first_movers: (deals,) int8, the seat that moved first.
        turns: (deals, 2) int64, turns of each game.
        decisions: (deals, 2, 2) int64, how often `a` and `b` were asked in each game.
        verdicts: (deals, 2, 2, 4) int64, how many turns of `a` and `b` in each game had which
            :class:`Verdict`; zeros if blunders were not counted.
        faults: For each game given up: deal (from the first of these), game, whose fault (0 for
            `a`, 1 for `b`), and the reason.
        seconds: (2,) float64, the time that `a` and `b` took; NaN if it is not known.
        records: Both games of each deal in turn, if they were asked for.
    """

    scores: np.ndarray
    first_movers: np.ndarray
    turns: np.ndarray
    decisions: np.ndarray
    verdicts: np.ndarray
    faults: list[tuple[int, int, int, str]]
    seconds: np.ndarray
    records: list[GameRecord]

    @classmethod
    def joined(cls, parts: list[DealsPlayed]) -> DealsPlayed:
        """Deals that follow each other, as one."""
        starts = np.cumsum([0] + [len(part.scores) for part in parts]).tolist()
        return cls(
            scores=np.concatenate([part.scores for part in parts]),
            first_movers=np.concatenate([part.first_movers for part in parts]),
            turns=np.concatenate([part.turns for part in parts]),
            decisions=np.concatenate([part.decisions for part in parts]),
            verdicts=np.concatenate([part.verdicts for part in parts]),
            faults=[
                (start + deal, *fault)
                for start, part in zip(starts, parts, strict=False)
                for deal, *fault in part.faults
            ],
            seconds=np.sum([part.seconds for part in parts], axis=0),
            records=[record for part in parts for record in part.records],
        )

    @property
    def fault_counts(self) -> np.ndarray:
        """(2,) int64, games that `a` and `b` gave up."""
        return np.bincount([player for _, _, player, _ in self.faults], minlength=2)

    @property
    def first_mover_scores(self) -> np.ndarray:
        """(deals, 2) float64, the score of whoever moved first in each game."""
        return np.where(self.first_movers[:, None] == (0, 1), self.scores, 1.0 - self.scores)


def play_deals(
    players: tuple[Agent, Agent],
    rules: Rules,
    seed: int,
    first_deal: int,
    count: int,
    count_blunders: bool = False,
    record: bool = False,
) -> DealsPlayed:
    """Plays deals ``first_deal`` onward of a seed twice each, all side by side.

    Args:
        players: `a`, who has seat 0 in the first game of a deal, and `b`.
        rules: What is played.
        seed: Where the deals come from.
        first_deal: The number of the first deal.
        count: How many deals.
        count_blunders: As in :func:`play_match`.
        record: Keep a :class:`GameRecord` of every game.

    Raises:
        IllegalActionError: As in :func:`play_match`.
    """
    table = _Table(deal_twice(rules, seed, first_deal, count), players, first_deal)
    watch = BlunderWatch(table.games) if count_blunders else None
    history = _History(table.games) if record else None
    table.play_out(watch, history)
    rows = np.arange(2 * count)
    seat_scores = (table.returns() + 1.0) / 2.0
    seats = np.stack([table.seats_of_a, 1 - table.seats_of_a])
    verdicts = np.zeros((2 * count, 2, len(Verdict)), np.int64)
    if watch is not None:
        verdicts = np.stack([watch.verdicts[rows, seat] for seat in seats], axis=1)
    return DealsPlayed(
        scores=seat_scores[rows, table.seats_of_a].reshape(count, 2),
        first_movers=(1 - table.games.state["dealer"][::2]).astype(np.int8),
        turns=table.games.turn.astype(np.int64).reshape(count, 2),
        decisions=table.decisions.reshape(count, 2, 2),
        verdicts=verdicts.reshape(count, 2, 2, len(Verdict)),
        faults=[
            (*divmod(row, 2), int(seat != table.seats_of_a[row]), reason)
            for row, (seat, reason) in sorted(table.faults.items())
        ],
        seconds=table.seconds,
        records=[] if history is None else history.records(table),
    )


class _Table:
    """Games in play between two players; even rows seat `a` at 0, odd rows at 1.

    Attributes:
        games: The batch.
        players: `a` and `b`.
        seats_of_a: (B,) int8.
        faults: The seat and the reason of each row that has been given up.
        decisions: (B, 2) int64, how often `a` and `b` were asked.
        seconds: (2,) float64, how long they took.
    """

    def __init__(self, games: GameBatch, players: tuple[Agent, Agent], first_deal: int) -> None:
        self.games = games
        self.players = players
        self.seats_of_a = np.tile(np.array([0, 1], np.int8), len(games) // 2)
        self.faults: dict[int, tuple[int, str]] = {}
        self.decisions = np.zeros((len(games), 2), np.int64)
        self.seconds = np.zeros(2)
        self._first_deal = first_deal
        self._running = ~games.done

    def returns(self) -> np.ndarray:
        """(B, 2) float64, the outcomes by seat; who gave a game up has lost it."""
        returns = self.games.returns.astype(np.float64)
        for row, (seat, _) in self.faults.items():
            returns[row, seat], returns[row, 1 - seat] = -1.0, 1.0
        return returns

    def play_out(self, watch: BlunderWatch | None, history: _History | None) -> None:
        """Plays every game to its end, and shows the watch and the history every move."""
        while self._running.any():
            for player, seats in enumerate((self.seats_of_a, 1 - self.seats_of_a)):
                rows = np.flatnonzero(self._running & (self.games.to_move == seats))
                if rows.size == 0:
                    continue
                actions, given_up = self._ask(player, rows)
                for place, reason in given_up.items():
                    row = int(rows[place])
                    self.faults[row] = int(seats[row]), reason
                    self._running[row] = False
                if given_up:
                    rows, actions = (np.delete(x, list(given_up)) for x in (rows, actions))
                if watch is not None:
                    watch.before(rows)
                self._move(player, actions, rows)
                self._running[rows] = ~self.games.done[rows]
                if history is not None:
                    history.add(rows, actions)
                if watch is not None:
                    watch.after(rows)

    def _ask(self, player: int, rows: np.ndarray) -> tuple[np.ndarray, dict[int, str]]:
        """Lets a player decide once in each of the given games."""
        agent = self.players[player]
        views = self.games.views(rows=rows)
        started = time.perf_counter()
        answer, faults = decide(agent, views)
        self.seconds[player] += time.perf_counter() - started
        self.decisions[rows, player] += 1
        actions = np.asarray(answer)
        if actions.shape != rows.shape or not np.issubdtype(actions.dtype, np.integer):
            raise IllegalActionError(
                f"agent {agent.name!r} must answer {len(rows)} views with ints of shape "
                f"{rows.shape}, got {actions.dtype} of shape {actions.shape}"
            )
        return actions, faults

    def _move(self, player: int, actions: np.ndarray, rows: np.ndarray) -> None:
        """Carries out a player's actions, or names the first that is illegal."""
        try:
            self.games.step(actions, rows=rows)
        except IllegalActionError:
            for row, action in zip(rows.tolist(), actions.tolist(), strict=True):
                game = self.games[row]
                try:
                    game.step(action)
                except IllegalActionError as error:
                    deal, number = divmod(row, 2)
                    raise IllegalActionError(
                        f"agent {self.players[player].name!r} in deal {self._first_deal + deal}, "
                        f"game {number}, turn {self.games[row].turn}: {error}"
                    ) from None
            raise


class _History:
    """The moves of games in play, to make records of.

    Args:
        games: The batch, just dealt.
    """

    def __init__(self, games: GameBatch) -> None:
        self._dealt = games.copy()
        self._moves = np.zeros((len(games), games.rules.max_decisions), np.uint8)
        self._counts = np.zeros(len(games), np.int64)

    def add(self, rows: np.ndarray, actions: np.ndarray) -> None:
        """Takes down one move of each of the given games."""
        self._moves[rows, self._counts[rows]] = actions
        self._counts[rows] += 1

    def records(self, table: _Table) -> list[GameRecord]:
        """The records of all games, which are over."""
        names = table.players[0].name, table.players[1].name
        returns = table.returns()
        records = []
        for row, seat_of_a in enumerate(table.seats_of_a):
            game = self._dealt[row]
            given_up = table.faults.get(row)
            records.append(
                GameRecord(
                    rules=str(game.rules),
                    dealer=game.dealer,
                    players=names if seat_of_a == 0 else names[::-1],
                    deck=(*game.hand(0), *game.hand(1), *game.table, *game.stock),
                    actions=tuple(self._moves[row, : self._counts[row]].tolist()),
                    returns=(float(returns[row, 0]), float(returns[row, 1])),
                    fault=None if given_up is None else Fault(*given_up),
                )
            )
        return records
