"""Measurements of the game itself: what decides it, and how sure that is. The notebooks show them.

Players meet on duplicate deals. Endings are played perfectly by both: a game stops at exhaustion
with its exact value, and where a node limit leaves that open, ``cautious`` plays on for both until
the limit suffices. So what is measured is the time before exhaustion. Every number comes with a
95 % interval by a bootstrap over deals and, where there is one, the value that chance alone would
give. The same arguments always give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from agents import MatchResult, as_agent
from agents.agent import Agent, close_agent
from agents.arena import deal_twice, percentiles
from agents.moves import ENDING, MAX_MOVES, OPENING, WIDTH, list_moves
from agents.policy import Policy, scorer_of
from agents.ratings import Resamples
from counterweight_env import Phase, Rules
from counterweight_env.cards import rule_table
from counterweight_env.endgame import solve_states
from counterweight_env.game import GameBatch
from counterweight_env.kernels import NOBODY, begin_turn, kernel
from counterweight_env.rules import as_rules
from counterweight_env.view import ViewBatch
from train.small_games import Equilibrium, flow
from train.small_games.agents import tree_chances
from train.small_games.solve import Solver
from train.small_games.tree import COUPLE

__all__ = [
    "DISCARDS",
    "REFILLS",
    "DecisionKind",
    "Finding",
    "Findings",
    "Habit",
    "StudyGames",
    "by_lead",
    "draws",
    "equilibrium_habits",
    "first_mover",
    "habit_scores",
    "hand_at_exhaustion",
    "last_drawer",
    "leads_after",
    "luck_share",
    "on_move",
    "parity",
    "play_out",
    "preferences",
    "score",
    "turns_before_exhaustion",
    "worth_of_the_move",
]

#: Positions that the solver looks at for one ending.
NODES: Final = 10_000
#: Who plays on where that is not enough.
FINISHER: Final = "cautious"
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
#: Where studies deal from; no training and no published match does.
STUDY_SEED: Final = 2**61


# --- Numbers and their intervals ----------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """A number with its 95 % interval.

    Attributes:
        what: What the number is, in words.
        value: The number.
        low: Where the interval begins.
        high: Where it ends.
        chance: What the number would be if there were nothing in it; None if nothing is claimed.
    """

    what: str
    value: float
    low: float
    high: float
    chance: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the interval lies above or below chance, or holds it."""
        if self.chance is None:
            return ""
        if self.low > self.chance:
            return f"above {self.chance:g}"
        return f"below {self.chance:g}" if self.high < self.chance else f"may be {self.chance:g}"

    def __str__(self) -> str:
        line = f"{self.what}: {self.value:.3f} ({self.low:.3f} to {self.high:.3f})"
        return f"{line}, {self.verdict}" if self.verdict else line


class Findings(tuple[Finding, ...]):
    """Findings that show themselves as a table in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(str(finding) for finding in self)

    def _repr_markdown_(self) -> str:
        lines = ["| | value | 95 % interval | |", "|---|---:|---:|---|"]
        lines += [
            f"| {f.what} | {f.value:.3f} | {f.low:.3f} to {f.high:.3f} | {f.verdict} |"
            for f in self
        ]
        return "\n".join(lines)


@lru_cache(maxsize=4)
def _resamples(deals: int) -> Resamples:
    return Resamples(deals)


def _find(
    what: str,
    columns: np.ndarray,
    statistic: Callable[[np.ndarray], np.ndarray],
    chance: float | None = None,
) -> Finding:
    """A statistic of sums over deals.

    Args:
        what: What it is.
        columns: (deals, k) numbers.
        statistic: From (n, k) sums to (n,) values; NaN where a resample has none.
        chance: As in :class:`Finding`.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        value = statistic(columns.sum(axis=0, keepdims=True).astype(np.float64))
        drawn = statistic(_resamples(len(columns)).sums(columns))
    low, high = percentiles(drawn[~np.isnan(drawn)])
    return Finding(what, float(value[0]), low, high, chance)


def _mean(what: str, values: np.ndarray, chance: float | None = None) -> Finding:
    """The mean of (deals,) values."""
    deals = len(values)
    return _find(what, values[:, None], lambda sums: sums[:, 0] / deals, chance)


def _mean_where(
    what: str, values: np.ndarray, where: np.ndarray, chance: float | None = None
) -> Finding:
    """The mean of those of (deals, games) values that a mask of the same shape picks."""
    columns = np.stack([(values * where).sum(axis=1), where.sum(axis=1)], axis=1)
    return _find(what, columns, lambda sums: sums[:, 0] / sums[:, 1], chance)


# --- Games --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StudyGames:
    """Both games of some deals; in column 0 `a` had seat 0, in column 1 seat 1.

    Attributes:
        rules: What was played.
        a: The first player's name.
        b: The other's; both are the same where a player met itself.
        scores: (deals, 2) float64, the score of `a`: 1, 0.5 or 0.
        first_movers: (deals,) int8, the seat that moved first.
        last_drawers: (deals, 2) int8, the seat that drew the last stock card.
        exhausted: (2 * deals,) of dtype ``STATE``, the games at exhaustion, two a deal.
        turns: (deals, 2) int64, turns before exhaustion.
        left_open: The share of endings that the node limit left open at exhaustion.
    """

    rules: Rules
    a: str
    b: str
    scores: np.ndarray
    first_movers: np.ndarray
    last_drawers: np.ndarray
    exhausted: np.ndarray
    turns: np.ndarray
    left_open: float

    @property
    def name(self) -> str:
        """The players and the rules in words."""
        return f"{self.a} against {'itself' if self.a == self.b else self.b}, {self.rules}"

    @property
    def seat_scores(self) -> np.ndarray:
        """(deals, 2, 2) float64, the score of seats 0 and 1 in each game."""
        zero = np.stack([self.scores[:, 0], 1.0 - self.scores[:, 1]], axis=1)
        return np.stack([zero, 1.0 - zero], axis=2)

    @property
    def hand_counts(self) -> np.ndarray:
        """(deals, 2, 2) int64, the cards of seats 0 and 1 at exhaustion (E2) in each game."""
        counts = np.bitwise_count(self.exhausted["hand"]).astype(np.int64)
        return counts.reshape(-1, 2, 2)


def play_out(
    a: Agent | str,
    b: Agent | str | None = None,
    rules: Rules | str = "classic",
    deals: int = 1_200,
    seed: int = STUDY_SEED,
    nodes: int = NODES,
) -> StudyGames:
    """Plays every deal twice, with the seats swapped and perfect endings.

    Args:
        a: A player or its text.
        b: The other; None for `a` against itself.
        rules: What is played.
        deals: How many deals.
        seed: Where they come from.
        nodes: Positions that the solver looks at for one ending, at most.

    Raises:
        IllegalActionError: A player answered with an illegal action.
        ValueError: A text names no player or no rules, or a number is out of range.
    """
    rules = as_rules(rules)
    first = as_agent(a)
    second = first if b is None else as_agent(b)
    games = deal_twice(rules, seed, 0, deals)
    first_movers = (1 - games.state["dealer"][::2]).astype(np.int8)
    seats_of_a = np.tile(np.array([0, 1], np.int8), deals)
    last_drawers = np.full(len(games), NOBODY, np.int8)
    while not games.exhausted.all():
        for player, seats in ((first, seats_of_a), (second, 1 - seats_of_a)):
            rows = np.flatnonzero(~games.exhausted & (games.to_move == seats))
            if rows.size:
                games.step(player.act(games.views(rows=rows)), rows=rows)
                drawn = rows[games.exhausted[rows]]
                last_drawers[drawn] = seats[drawn]
    for agent, text in ((first, a), (second, b)):
        if isinstance(text, str):
            close_agent(agent)
    exhausted = games.state.copy()
    values, left_open = _ending_values(games, nodes)
    zero = (1.0 + values) / 2.0
    scores = np.where(seats_of_a == 0, zero, 1.0 - zero).reshape(deals, 2)
    return StudyGames(
        rules=rules,
        a=first.name,
        b=second.name,
        scores=scores,
        first_movers=first_movers,
        last_drawers=last_drawers.reshape(deals, 2),
        exhausted=exhausted,
        turns=exhausted["turn"].astype(np.int64).reshape(deals, 2),
        left_open=left_open,
    )


def _ending_values(games: GameBatch, nodes: int) -> tuple[np.ndarray, float]:
    """The results of exhausted games for player 0, and the share that was not solved at once."""
    low, high, _ = solve_states(games.state, games.rules, nodes)
    values = np.where(games.to_move == 1, -low, low).astype(np.float64)
    left = np.flatnonzero(low < high)
    if left.size:
        rest = GameBatch.from_state(games.state[left], games.rules)
        rest.solve_endings(True, nodes)
        player = as_agent(FINISHER)
        while not rest.done.all():
            rows = np.flatnonzero(~rest.done)
            rest.step(player.act(rest.views(rows=rows)), rows=rows)
        values[left] = rest.returns[:, 0]
    return values, left.size / len(games)


# --- Questions about games ----------------------------------------------------------------------


def score(games: StudyGames, what: str | None = None) -> Finding:
    """Wins and half the draws of `a`."""
    return _mean(what or games.name, games.scores.mean(axis=1), 0.5)


def draws(games: StudyGames) -> Finding:
    """The share of games that nobody wins."""
    return _mean(f"draws, {games.name}", (games.scores == 0.5).mean(axis=1))


def first_mover(games: StudyGames) -> Finding:
    """The score of whoever moves first."""
    moved = np.take_along_axis(games.seat_scores, games.first_movers[:, None, None], axis=2)
    return _mean(f"first mover, {games.name}", moved[:, :, 0].mean(axis=1), 0.5)


def last_drawer(games: StudyGames) -> Finding:
    """The score of whoever draws the last stock card, and so leaves the first move after it."""
    drew = np.take_along_axis(games.seat_scores, games.last_drawers[:, :, None], axis=2)
    return _mean(f"drew the last card, {games.name}", drew[:, :, 0].mean(axis=1), 0.5)


def on_move(games: StudyGames) -> Finding:
    """The score of whoever is on move at exhaustion, in games that are not over there."""
    movers = games.exhausted["to_move"].reshape(-1, 2).astype(np.int64)
    mine = np.take_along_axis(games.seat_scores, np.maximum(movers, 0)[:, :, None], axis=2)
    return _mean_where(f"on move at exhaustion, {games.name}", mine[:, :, 0], movers != NOBODY, 0.5)


def by_lead(games: StudyGames, leads: Iterable[int] = (-6, -4, -2, 0, 2, 4, 6)) -> Findings:
    """The score of seat 0 by how many cards more than the other it has at exhaustion."""
    counts = games.hand_counts
    more = counts[:, :, 0] - counts[:, :, 1]
    mine = games.seat_scores[:, :, 0]
    return Findings(
        _mean_where(f"{lead:+d} cards at exhaustion, {games.rules}", mine, more == lead, 0.5)
        for lead in leads
        if (more == lead).any()
    )


def parity(games: StudyGames) -> Findings:
    """What an odd hand at exhaustion means.

    The table holds two cards and couples bury two at a time, so in a deck of even size both hands
    are even or both are odd.
    """
    counts = games.hand_counts % 2
    movers = games.exhausted["to_move"].reshape(-1, 2).astype(np.int64)
    mine = np.take_along_axis(games.seat_scores, np.maximum(movers, 0)[:, :, None], axis=2)[:, :, 0]
    drawn = (games.scores == 0.5).astype(np.float64)
    found = [
        _mean(
            f"hands of equal parity, {games.rules}",
            (counts[:, :, 0] == counts[:, :, 1]).mean(axis=1),
        )
    ]
    for odd, word in ((0, "even"), (1, "odd")):
        where = counts[:, :, 0] == odd
        found.append(_mean_where(f"draws with {word} hands, {games.rules}", drawn, where))
        moving = where & (movers != NOBODY)
        found.append(_mean_where(f"on move, {word} hands, {games.rules}", mine, moving, 0.5))
    return Findings(found)


def hand_at_exhaustion(games: StudyGames) -> Finding:
    """Cards in one hand at exhaustion, on average."""
    return _mean(f"cards at exhaustion, {games.name}", games.hand_counts.mean(axis=(1, 2)))


def turns_before_exhaustion(games: StudyGames) -> Finding:
    """Turns of both players before exhaustion, on average."""
    return _mean(f"turns before exhaustion, {games.name}", games.turns.mean(axis=1))


def luck_share(games: StudyGames) -> Finding:
    """The share of the variance of a single game's result that the deal explains.

    What a deal gives to seat 0, it takes from `a` when the seats are swapped. So it is minus the
    correlation of the two scores of `a` on a deal, both having the same variance.
    """
    one, two = games.scores.T
    n = len(one)
    columns = np.stack([one, two, one * two, one**2, two**2], axis=1)

    def share(sums: np.ndarray) -> np.ndarray:
        m = sums / n
        covariance = m[:, 2] - m[:, 0] * m[:, 1]
        variance = (m[:, 3] - m[:, 0] ** 2 + m[:, 4] - m[:, 1] ** 2) / 2
        return -covariance / variance

    return _find(f"explained by the deal, {games.name}", columns, share, 0.0)


def leads_after(games: StudyGames | MatchResult, deals: Iterable[int] = (1, 5, 25)) -> Findings:
    """How often `a` is ahead after so many duplicate deals; being level counts half.

    The games are cut into matches that share no deal, and these are what is resampled. A single
    game, without its duplicate, comes first.
    """
    single = games.scores if isinstance(games, StudyGames) else games.game_scores
    names = f"{games.a} against {games.b}, {games.rules}"
    found = [_mean(f"wins a game, {names}", (single == 1.0).mean(axis=1))]
    for size in deals:
        whole = len(single) // size * size
        sums = single[:whole].reshape(-1, 2 * size).mean(axis=1)
        ahead = (1.0 + np.sign(sums - 0.5)) / 2.0
        found.append(_mean(f"ahead after {2 * size} games, {names}", ahead, 0.5))
    return Findings(found)


@kernel
def give_turn(games, tables, player):
    """Puts a player on turn in exhausted games."""
    for i in range(games.size):
        begin_turn(games[i], tables[0], player)


def worth_of_the_move(games: StudyGames, nodes: int = 100_000) -> Findings:
    """What being on move at exhaustion is worth: each position solved with either player on move.

    Nothing but the turn differs between the two, so unlike in :func:`on_move` it is a cause. A
    position of which the node limit leaves either value open counts as the middle of its bounds.

    Returns:
        The score on move less the score off move, the share of positions where being on move is
        better, the share where it is worse, and the share that was left open.
    """
    values = []
    unsolved = np.zeros(len(games.exhausted), np.bool_)
    for player in range(2):
        states = games.exhausted.copy()
        give_turn(states, rule_table(games.rules), player)
        low, high, _ = solve_states(states, games.rules, nodes)
        middle = (low + high) / 2.0
        values.append(np.where(states["to_move"] == 1, -middle, middle))
        unsolved |= low < high
    gain = ((values[0] - values[1]) / 2.0).reshape(-1, 2)  # a score is half of a value
    return Findings(
        (
            _mean(f"score on move less score off move, {games.name}", gain.mean(axis=1), 0.0),
            _mean(f"better to be on move, {games.name}", (gain > 0).mean(axis=1)),
            _mean(f"worse to be on move, {games.name}", (gain < 0).mean(axis=1)),
            _mean(f"left open, {games.name}", unsolved.reshape(-1, 2).mean(axis=1)),
        )
    )


# --- Habits -------------------------------------------------------------------------------------


def _rank_copies(cards: np.ndarray) -> np.ndarray:
    """(B, suits, ranks) counts of each card's rank in a set of cards of the same shape."""
    return np.broadcast_to(cards.sum(axis=1, keepdims=True), cards.shape)


def _suit_copies(cards: np.ndarray) -> np.ndarray:
    """(B, suits, ranks) counts of each card's suit."""
    return np.broadcast_to(cards.sum(axis=2, keepdims=True), cards.shape)


def _from_middle(cards: np.ndarray) -> np.ndarray:
    """(B, suits, ranks) distance of each card's rank from the middle one."""
    ranks = cards.shape[2]
    return np.broadcast_to(np.abs(np.arange(ranks) - (ranks - 1) / 2), cards.shape)


Preference = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: What to lay away: from hand and own discard, (B, suits, ranks) of 0 and 1 each, to how much a
#: card is wanted there. Ties are broken by lot.
DISCARDS: Final[dict[str, Preference]] = {
    "any": lambda hand, pile: np.zeros(hand.shape),
    "aces and kings": lambda hand, pile: _from_middle(hand),
    "middle ranks": lambda hand, pile: -_from_middle(hand),
    "ranks held twice": lambda hand, pile: _rank_copies(hand),
    "ranks held once": lambda hand, pile: -_rank_copies(hand),
    "ranks in the discard": lambda hand, pile: _rank_copies(pile),
    "ranks not in the discard": lambda hand, pile: -_rank_copies(pile),
    "the longest suit": lambda hand, pile: _suit_copies(hand),
    "the shortest suit": lambda hand, pile: -_suit_copies(hand),
}

#: When to reclaim (T4): from the cards in the stock, (B,), and the full stock, to a (B,) bool.
REFILLS: Final[dict[str, Callable[[np.ndarray, int], np.ndarray]]] = {
    "never": lambda stock, full: np.zeros(stock.shape, np.bool_),
    "always": lambda stock, full: np.ones(stock.shape, np.bool_),
    "in the first half": lambda stock, full: 2 * stock > full,
    "in the second half": lambda stock, full: 2 * stock <= full,
    "in front of the last card": lambda stock, full: stock == 1,
    "in front of the last two": lambda stock, full: stock <= 2,
}


def _lots(words: np.ndarray, count: int) -> np.ndarray:
    """Even numbers from 0 to below 1, ``count`` from each random word: the words of splitmix64."""
    bits = words[:, None] + np.arange(1, count + 1, dtype=np.uint64) * GOLDEN
    bits = (bits ^ bits >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ bits >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return (bits ^ bits >> np.uint64(31)) / 2.0**64


class Habit:
    """A player with a fixed habit of discarding and reclaiming; all else is drawn by lot.

    Args:
        discard: One of ``DISCARDS``.
        reclaim: One of ``REFILLS``.

    Raises:
        ValueError: There is no such habit.
    """

    def __init__(self, discard: str = "any", reclaim: str = "never") -> None:
        if discard not in DISCARDS:
            raise ValueError(f"discard must be one of {', '.join(DISCARDS)}, got {discard!r}")
        if reclaim not in REFILLS:
            raise ValueError(f"reclaim must be one of {', '.join(REFILLS)}, got {reclaim!r}")
        self.discard = discard
        self.reclaim = reclaim
        self.name = f"discards {discard}, reclaims {reclaim}"

    def act(self, views: ViewBatch) -> np.ndarray:
        """Chooses for the mover of every row.

        Args:
            views: What each mover knows.

        Returns:
            (B,) int64, a legal action for each row.
        """
        rules = views.rules
        wanted = _lots(views.random_bits, rules.num_actions) / 2  # they decide ties alone
        phases = views.records["phase"]
        self._want_discards(views, wanted, np.flatnonzero(phases == Phase.DISCARD))
        rows = np.flatnonzero(phases == Phase.REFILL)
        back = REFILLS[self.reclaim](
            views.records["stock_size"][rows].astype(int), rules.stock_size
        )
        wanted[rows[back], rules.reclaim_action] += 1.0
        wanted[rows[~back], rules.stock_action] += 1.0
        return np.where(views.legal, wanted, -np.inf).argmax(axis=1)

    def _want_discards(self, views: ViewBatch, wanted: np.ndarray, rows: np.ndarray) -> None:
        """Adds how much each card is wanted in the discard."""
        if rows.size == 0:
            return
        rules = views.rules
        players = views.players[rows]
        bits = np.arange(rules.deck_size, dtype=np.uint64)
        hand, pile = (
            (views.records[name][rows, players][:, None] >> bits & np.uint64(1))
            .astype(np.int64)
            .reshape(-1, rules.suits, rules.ranks)
            for name in ("hand", "discarded")
        )
        wanted[rows, : rules.deck_size] += DISCARDS[self.discard](hand, pile).reshape(
            rows.size, rules.deck_size
        )


def habit_scores(
    kind: str,
    rules: Rules | str = "classic",
    deals: int = 1_200,
    seed: int = STUDY_SEED,
    nodes: int = NODES,
) -> Findings:
    """What a habit scores against a player that differs in nothing else.

    Args:
        kind: ``"discard"``, against discards by lot, or ``"reclaim"``, against never reclaiming.
        rules: What is played.
        deals: Duplicate deals a match.
        seed: Where they come from.
        nodes: As in :func:`play_out`.

    Returns:
        One score for each habit of that kind but the opponent's, the best first.

    Raises:
        ValueError: ``kind`` is no kind, or reclaiming is asked for under rules without it (T5).
    """
    habits = {"discard": list(DISCARDS), "reclaim": list(REFILLS)}
    if kind not in habits:
        raise ValueError(f"kind must be one of {', '.join(habits)}, got {kind!r}")
    rules = as_rules(rules)
    if kind == "reclaim" and rules.variant != "classic":
        raise ValueError(f"only classic rules let a player reclaim, got {rules}")
    found = [
        score(
            play_out(Habit(**{kind: habit}), Habit(), rules, deals, seed, nodes),
            f"{kind}s {habit}, {rules}",
        )
        for habit in habits[kind][1:]
    ]
    return Findings(sorted(found, key=lambda finding: -finding.value))


# --- What a network likes -----------------------------------------------------------------------


def preferences(
    player: Policy,
    rules: Rules | str = "classic",
    games: int = 400,
    seed: int = STUDY_SEED,
    phase: Phase = Phase.LEFT,
    ending: bool = False,
    most: int = 12,
) -> Findings:
    """What sets the moves of a network apart from the other legal ones, column by column.

    It plays itself. At every decision of the phase with more than one move, the row of
    :mod:`agents.moves` of the move it makes is compared with the mean row of all legal moves.

    Args:
        player: The network's player.
        rules: What is played.
        games: How many games.
        seed: Where they are dealt from.
        phase: LEFT (whole couples), DISCARD or REFILL.
        ending: The time after exhaustion instead of that before.
        most: How many columns to return, at most.

    Returns:
        The columns in which the difference is the largest, in standard deviations of the column
        over all moves. Intervals are over games.
    """
    rules = as_rules(rules)
    table = rule_table(rules)
    batch = GameBatch(games, rules, seed=seed)
    chosen = np.zeros((games, WIDTH))
    counts = np.zeros(games)
    squares = np.zeros(WIDTH)
    moves = np.empty((MAX_MOVES, 2), np.int64)
    rows = np.empty((MAX_MOVES, WIDTH), np.float32)
    while not batch.done.all():
        running = np.flatnonzero(~batch.done)
        views = batch.views(rows=running)
        actions = player.act(views)
        for i in np.flatnonzero(views.records["phase"] == phase):
            record = views.records[i]
            if scorer_of(record) != ending:
                continue
            count = list_moves(record, table[0], int(views.players[i]), moves, rows)
            picked = moves[:count, 0] == actions[i]
            # A left card with several partners is not yet a couple.
            if count < 2 or picked.all():
                continue
            described = rows[:count].astype(np.float64)
            described -= described.mean(axis=0)
            chosen[running[i]] += described[picked].mean(axis=0)
            squares += (described**2).mean(axis=0)
            counts[running[i]] += 1
        batch.step(actions, rows=running)
    spread = np.sqrt(squares / max(counts.sum(), 1.0))
    found = [
        _find(
            name,
            np.stack([chosen[:, k] / spread[k], counts], axis=1),
            lambda sums: sums[:, 0] / sums[:, 1],
            0.0,
        )
        for k, name in enumerate(ENDING if ending else OPENING)
        if spread[k] > 0
    ]
    return Findings(sorted(found, key=lambda finding: -abs(finding.value))[:most])


# --- What an equilibrium does -------------------------------------------------------------------


@dataclass(frozen=True)
class DecisionKind:
    """What an equilibrium does at one kind of decision, and how often a player does the same.

    Attributes:
        kind: ``"couple"``, ``"discard"`` or ``"refill"``.
        a_game: Such decisions a game with more than one choice, of both players together, before
            exhaustion.
        mixed: The share of them at which no choice is taken with more than ``MIXED``; choices that
            are worth the same are left to dice too.
        agreement: How often the player does the same: the sum over the choices of the lesser of the
            two chances.
        reclaimed: At refills, the share that comes from the own discard; else NaN.
        player_reclaims: The same for the player, at the decisions that the equilibrium comes to.
    """

    kind: str
    a_game: float
    mixed: float
    agreement: float
    reclaimed: float
    player_reclaims: float

    def __str__(self) -> str:
        line = (
            f"{self.kind}: {self.a_game:.2f} decisions a game, {self.mixed:.0%} of them mixed, "
            f"agrees in {self.agreement:.0%}"
        )
        if self.kind != "refill":
            return line
        return f"{line}; reclaims {self.reclaimed:.0%}, the player {self.player_reclaims:.0%}"


#: The greatest chance of a choice up to which a strategy is said to mix.
MIXED: Final = 0.95


def equilibrium_habits(game: Equilibrium, player: Agent | str) -> list[DecisionKind]:
    """What an equilibrium does before exhaustion, beside a player put to the same decisions.

    Decisions count as often as equilibrium play comes to them. There may be other equilibria.

    Args:
        game: From :func:`train.small_games.solve_game` with ``keep=True``.
        player: The player or its text.

    Raises:
        ValueError: The solvers were not kept, or the text names no player.
    """
    if not game.solvers:
        raise ValueError("solve_game must be called with keep=True")
    agent = as_agent(player)
    sums = np.zeros((3, 5))
    for solver, weight in zip(game.solvers, game.weights, strict=True):
        for seat in range(2):
            sums += weight * _decision_sums(solver, seat, agent)
    if isinstance(player, str):
        close_agent(agent)
    return [
        DecisionKind(kind, float(row[0]), *(row[1:] / row[0]).tolist())
        for kind, row in zip(("couple", "discard", "refill"), sums, strict=True)
        if row[0] > 0
    ]


def visits(solver: Solver, seat: int) -> tuple[np.ndarray, np.ndarray]:
    """How often the average strategies come to each sequence of a player.

    Returns:
        The chances of each sequence's last action, and the probability that a game has the
        sequence; (num_sequences,) float64 each.
    """
    tree = solver.tree
    chances = solver.average(seat)
    reach, other_reach = (np.zeros(int(tree.num_sequences[side])) for side in (seat, 1 - seat))
    for side, each, out in (
        (seat, chances, reach),
        (1 - seat, solver.average(1 - seat), other_reach),
    ):
        steps = tree.steps[side, : tree.num_steps[side]]
        flow.flow_down(
            steps,
            tree.sources[side],
            tree.set_parent[side],
            tree.set_begin[side],
            tree.set_end[side],
            tree.num_roots,
            each,
            out,
        )
    # With one point for the player in every leaf, all actions are worth the same: the chance that
    # the other player and the cards let the game come here.
    here = np.zeros(reach.size)
    points = tree.leaves["weight"] * (1.0 if seat == 0 else -1.0)
    flow.weigh_leaves(tree.leaves, points, seat, other_reach, here)
    flow.respond(
        tree.steps[seat, : tree.num_steps[seat]],
        tree.sources[seat],
        tree.set_parent[seat],
        tree.set_begin[seat],
        tree.set_end[seat],
        tree.num_roots,
        here,
    )
    return chances, reach * here


def _decision_sums(solver: Solver, seat: int, agent: Agent) -> np.ndarray:
    """(3, 5) float64: visits, and visits times mixed, agreement and both shares of reclaiming."""
    tree = solver.tree
    deck = tree.rules.deck_size
    chances, probabilities = visits(solver, seat)
    theirs = tree_chances(tree, seat, agent)
    sums = np.zeros((3, 5))
    count = int(tree.num_sets[seat])
    for begin, end in zip(tree.set_begin[seat, :count], tree.set_end[seat, :count], strict=True):
        if end - begin < 2:
            continue
        actions = tree.action_of[seat, begin:end]
        own, other = chances[begin:end], theirs[begin:end]
        back = actions == deck + 1
        kind = 0 if actions[0] >= COUPLE else 1 if actions[0] < deck else 2
        row = (
            1.0,
            float(own.max() <= MIXED),
            np.minimum(own, other).sum(),
            own[back].sum() if kind == 2 else np.nan,
            other[back].sum() if kind == 2 else np.nan,
        )
        sums[kind] += probabilities[begin:end].sum() * np.array(row)
    return sums
