"""Matches on duplicate deals: every deal is played twice, with the seats swapped.

The luck of the cards falls on both players alike, so a match needs far fewer games to tell two
players apart, and the deal (not the game) is the unit of the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import Final

import numpy as np

from agents.agent import Agent, as_agent
from agents.blunders import BlunderWatch, Verdict
from counterweight_env.game import GameBatch, IllegalActionError
from counterweight_env.kernels import kernel, mix_bits, next_word, seed_games
from counterweight_env.rules import Rules, as_rules

__all__ = ["MatchResult", "play_match"]

RESAMPLES: Final = 2_000
CONFIDENCE: Final = 0.95


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
        outside = (1.0 - CONFIDENCE) / 2.0
        low, high = np.quantile(drawn @ values / self.deals, (outside, 1.0 - outside))
        return float(low), float(high)

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
        if self.blunder_rates is None:
            return line
        assert self.endgame_decisions is not None
        assert self.unproven is not None
        rates = " and ".join(
            f"{rate:.4f} of {decisions} decisions"
            for rate, decisions in zip(self.blunder_rates, self.endgame_decisions, strict=True)
        )
        return f"{line}; blunders after exhaustion {rates}, {sum(self.unproven)} more unproven"


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
    random bits of its own for the players. The result does not depend on ``batch_size``.

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
    players = as_agent(a), as_agent(b)
    rules = as_rules(rules)
    deals = _check_int("deals", deals, 1)
    batch_size = _check_int("batch_size", batch_size, 1)
    seed = _check_int("seed", seed, 0)
    if seed >= 2**64:
        raise ValueError(f"seed must be less than 2**64, got {seed}")

    scores = np.empty(2 * deals)
    turns = first_mover_scores = 0.0
    verdicts = np.zeros((2, len(Verdict)), np.int64)
    for first_deal in range(0, deals, batch_size):
        count = min(batch_size, deals - first_deal)
        games = deal_twice(rules, seed, first_deal, count)
        seats_of_a = np.tile(np.array([0, 1], np.int8), count)
        watch = BlunderWatch(games) if count_blunders else None
        _play_out(games, players, seats_of_a, first_deal, watch)
        seat_scores = (games.returns + 1.0) / 2.0
        rows = np.arange(len(games))
        if watch is not None:
            for player, seats in enumerate((seats_of_a, 1 - seats_of_a)):
                verdicts[player] += watch.verdicts[rows, seats].sum(axis=0)
        scores[2 * first_deal : 2 * (first_deal + count)] = seat_scores[rows, seats_of_a]
        first_mover_scores += float(seat_scores[rows, 1 - games.state["dealer"]].sum())
        turns += float(games.turn.sum())
    scores.flags.writeable = False
    kept, blundered, unproven = (
        (int(verdicts[0, verdict]), int(verdicts[1, verdict]))
        for verdict in (Verdict.KEPT, Verdict.BLUNDER, Verdict.UNPROVEN)
    )
    decisions = kept[0] + blundered[0], kept[1] + blundered[1]
    return MatchResult(
        a=players[0].name,
        b=players[1].name,
        rules=rules,
        seed=seed,
        game_scores=scores.reshape(deals, 2),
        turns=turns / scores.size,
        first_mover_score=first_mover_scores / scores.size,
        endgame_decisions=decisions if count_blunders else None,
        blunders=blundered if count_blunders else None,
        unproven=unproven if count_blunders else None,
    )


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


def _play_out(
    games: GameBatch,
    players: tuple[Agent, Agent],
    seats_of_a: np.ndarray,
    first_deal: int,
    watch: BlunderWatch | None,
) -> None:
    """Plays every game to its end, and shows the watch every move."""
    while not games.done.all():
        for agent, seats in zip(players, (seats_of_a, 1 - seats_of_a), strict=True):
            rows = np.flatnonzero(games.to_move == seats)
            if rows.size:
                if watch is not None:
                    watch.before(rows)
                _move(games, agent, rows, first_deal)
                if watch is not None:
                    watch.after(rows)


def _move(games: GameBatch, agent: Agent, rows: np.ndarray, first_deal: int) -> None:
    """Lets an agent decide once in each of the given games."""
    actions = np.asarray(agent.act(games.views(rows=rows)))
    if actions.shape != rows.shape or not np.issubdtype(actions.dtype, np.integer):
        raise IllegalActionError(
            f"agent {agent.name!r} must answer {len(rows)} views with ints of shape "
            f"{rows.shape}, got {actions.dtype} of shape {actions.shape}"
        )
    try:
        games.step(actions, rows=rows)
    except IllegalActionError:
        for row, action in zip(rows.tolist(), actions.tolist(), strict=True):
            game = games[row]
            try:
                game.step(action)
            except IllegalActionError as error:
                deal, number = divmod(row, 2)
                raise IllegalActionError(
                    f"agent {agent.name!r} in deal {first_deal + deal}, game {number}, "
                    f"turn {games[row].turn}: {error}"
                ) from None
        raise
