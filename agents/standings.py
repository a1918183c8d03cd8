"""What a round robin comes to: scores, ratings, blunders, first mover, faults and time.

Every interval is the 95 % percentile interval of one bootstrap over deals, in which a resample
takes all games of all pairs on each deal it draws, so the same games always have the same numbers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from agents.arena import percentiles
from agents.blunders import Verdict
from agents.league import PairGames
from agents.ratings import Resamples, rate

__all__ = ["Estimate", "PairRow", "PlayerRow", "Standings", "report", "standings"]

#: Reasons for giving games up that the report has of each player.
REASONS: Final = 5


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval.

    Attributes:
        value: The number.
        interval: From, to.
    """

    value: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class PairRow:
    """A pair, from the side of `a`.

    Attributes:
        a: A player.
        b: Its opponent.
        score: Wins and half the draws of `a`, as a part of all games.
        wins: Games that `a` won.
        draws: Games that nobody won.
        losses: Games that `a` lost.
        turns: Turns a game.
    """

    a: str
    b: str
    score: Estimate
    wins: int
    draws: int
    losses: int
    turns: float


@dataclass(frozen=True)
class PlayerRow:
    """A player over all its games.

    Attributes:
        name: Its text.
        elo: Bradley-Terry rating on the Elo scale.
        bounded: False if the games do not tie it to the anchor from both sides, so that the fit's
            regularisation sets the rating.
        score: Wins and half the draws, as a part of all games.
        games: Games played.
        first_mover: Its score where it moved first, less its score where it moved second.
        blunder_rate: Decisions after exhaustion that gave away value, as a part of them; None
            without such decisions.
        endgame_decisions: Decisions after exhaustion.
        unproven: Decisions that the node limit left open, not among the others.
        faults: Games given up.
        fault_reasons: How often for which reason.
        decisions: Decisions in all.
    """

    name: str
    elo: Estimate
    bounded: bool
    score: Estimate
    games: int
    first_mover: Estimate
    blunder_rate: Estimate | None
    endgame_decisions: int
    unproven: int
    faults: int
    fault_reasons: dict[str, int]
    decisions: int


@dataclass(frozen=True)
class Standings:
    """A round robin under one rule set. Nothing in here depends on time but ``milliseconds``.

    Attributes:
        rules: The rules' text.
        deals: Deals a pair, each played twice.
        anchor: The player whose rating is 0.
        players: The best first.
        pairs: All pairs, from the side of the better player.
        first_mover: The score of whoever moved first, over all games.
        draws: The share of drawn games.
        milliseconds: Time a decision of each player; NaN if it is not known.
    """

    rules: str
    deals: int
    anchor: str
    players: tuple[PlayerRow, ...]
    pairs: tuple[PairRow, ...]
    first_mover: Estimate
    draws: float
    milliseconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """All that does not depend on time, as JSON takes it."""
        fields = asdict(self)
        del fields["milliseconds"]
        return fields


def _ratio(above: np.ndarray, below: np.ndarray, resamples: Resamples) -> Estimate | None:
    """The ratio of two sums over deals, of (deals,) each; None if the lower one is 0."""
    if not below.sum():
        return None
    drawn = resamples.sums(np.stack([above, below], axis=1))
    drawn = drawn[drawn[:, 1] > 0]  # a resample may miss the few deals that have any
    return Estimate(float(above.sum() / below.sum()), percentiles(drawn[:, 0] / drawn[:, 1]))


def _mean(values: np.ndarray, resamples: Resamples) -> Estimate:
    """The mean over deals of (deals,) values."""
    drawn = resamples.sums(values[:, None])[:, 0] / len(values)
    return Estimate(float(values.mean()), percentiles(drawn))


@dataclass
class _Sums:
    """What a player did, added up by deal."""

    points: np.ndarray
    games: int
    when_first: np.ndarray
    when_second: np.ndarray
    verdicts: np.ndarray
    reasons: dict[str, int]
    decisions: int
    seconds: float


def _sums(name: str, games: list[PairGames]) -> _Sums:
    deals = len(games[0].played.scores)
    own = _Sums(
        points=np.zeros(deals),
        games=0,
        when_first=np.zeros(deals),
        when_second=np.zeros(deals),
        verdicts=np.zeros((deals, len(Verdict)), np.int64),
        reasons={},
        decisions=0,
        seconds=0.0,
    )
    rows = np.arange(deals)
    for pair in games:
        if name not in (pair.a, pair.b):
            continue
        played = pair.played
        side = 0 if name == pair.a else 1
        scores = played.scores if side == 0 else 1.0 - played.scores
        # `a` has seat 0 in game 0 and seat 1 in game 1, `b` the other way round.
        first = played.first_movers if side == 0 else 1 - played.first_movers
        own.points += scores.sum(axis=1)
        own.when_first += scores[rows, first]
        own.when_second += scores[rows, 1 - first]
        own.games += scores.size
        own.verdicts += played.verdicts[:, :, side].sum(axis=1)
        for _, _, player, reason in played.faults:
            if player == side:
                own.reasons[reason] = own.reasons.get(reason, 0) + 1
        own.decisions += int(played.decisions[:, :, side].sum())
        own.seconds += float(played.seconds[side])
    return own


def standings(rules: str, players: tuple[str, ...], games: list[PairGames]) -> Standings:
    """Works out the standings of one rule set.

    Args:
        rules: The rules' text.
        players: All players. ``random`` is the anchor of the ratings if it is among them, else the
            first.
        games: All pairs, on the same deals.

    Raises:
        ImportError: choix is not installed.
    """
    anchor = "random" if "random" in players else players[0]
    names = sorted(players)
    number = {name: i for i, name in enumerate(names)}
    deals = len(games[0].played.scores)
    resamples = Resamples(deals)
    ratings = rate(
        [(number[pair.a], number[pair.b]) for pair in games],
        np.stack([pair.played.scores.sum(axis=1) for pair in games]),
        number[anchor],
        resamples,
    )
    rows = []
    milliseconds = {}
    for name, rating in zip(names, ratings, strict=True):
        own = _sums(name, games)
        decided = own.verdicts[:, Verdict.KEPT] + own.verdicts[:, Verdict.BLUNDER]
        opponents = len(names) - 1
        rows.append(
            PlayerRow(
                name=name,
                elo=Estimate(rating.elo, rating.interval),
                bounded=rating.bounded,
                score=_mean(own.points / (2 * opponents), resamples),
                games=own.games,
                first_mover=_mean((own.when_first - own.when_second) / opponents, resamples),
                blunder_rate=_ratio(own.verdicts[:, Verdict.BLUNDER], decided, resamples),
                endgame_decisions=int(decided.sum()),
                unproven=int(own.verdicts[:, Verdict.UNPROVEN].sum()),
                faults=sum(own.reasons.values()),
                fault_reasons=dict(sorted(own.reasons.items())),
                decisions=own.decisions,
            )
        )
        milliseconds[name] = 1e3 * own.seconds / own.decisions if own.decisions else float("nan")
    rows.sort(key=lambda row: (-row.elo.value, row.name))
    place = {row.name: i for i, row in enumerate(rows)}
    pairs = [_pair_row(pair, place[pair.a] < place[pair.b], resamples) for pair in games]
    pairs.sort(key=lambda pair: (place[pair.a], place[pair.b]))
    every_score = np.stack([pair.played.first_mover_scores.mean(axis=1) for pair in games])
    return Standings(
        rules=rules,
        deals=deals,
        anchor=anchor,
        players=tuple(rows),
        pairs=tuple(pairs),
        first_mover=_mean(every_score.mean(axis=0), resamples),
        draws=float(np.mean([pair.played.scores == 0.5 for pair in games])),
        milliseconds=milliseconds,
    )


def _pair_row(pair: PairGames, as_it_stands: bool, resamples: Resamples) -> PairRow:
    scores = pair.played.scores if as_it_stands else 1.0 - pair.played.scores
    return PairRow(
        a=pair.a if as_it_stands else pair.b,
        b=pair.b if as_it_stands else pair.a,
        score=_mean(scores.mean(axis=1), resamples),
        wins=int((scores == 1.0).sum()),
        draws=int((scores == 0.5).sum()),
        losses=int((scores == 0.0).sum()),
        turns=float(pair.played.turns.mean()),
    )


# --- Text ---------------------------------------------------------------------------------------


def report(standings: Standings) -> str:
    """The standings as Markdown."""
    players = standings.players
    names = [row.name for row in players]
    scores = {(pair.a, pair.b): pair.score for pair in standings.pairs}
    cells = {}
    for (a, b), score in scores.items():
        low, high = score.interval
        cells[a, b] = f"{score.value:.3f} ({low:.3f} to {high:.3f})"
        cells[b, a] = f"{1 - score.value:.3f} ({1 - high:.3f} to {1 - low:.3f})"
    first = standings.first_mover
    lines = [
        f"## {standings.rules}",
        "",
        f"{standings.deals:,} duplicate deals a pair, each played twice with the seats swapped. "
        f"Brackets hold 95 % intervals. Whoever moves first scores {first.value:.3f} "
        f"({first.interval[0]:.3f} to {first.interval[1]:.3f}); {standings.draws:.1%} of the games "
        "are draws.",
        "",
        f"| player | Elo, {_code(standings.anchor)} = 0 | score | moving first | blunders after "
        "exhaustion | faults | ms a decision |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {_code(row.name)} | " + " | ".join(_cells(row, standings)) + " |" for row in players
    ]
    if not all(row.bounded for row in players):
        lines += [
            "",
            "\\* Its games do not tie it to the anchor from both sides; it won or lost all of them,"
            " say. The rating has no other bound than that of the fit.",
        ]
    lines += ["", "Scores of the row's player against the column's:", ""]
    lines.append("| | " + " | ".join(f"{_code(name)}" for name in names) + " |")
    lines.append("|---|" + "---|" * len(names))
    lines += [
        f"| {_code(a)} | " + " | ".join(cells.get((a, b), "") for b in names) + " |" for a in names
    ]
    if any(row.faults for row in players):
        lines += ["", "Games given up:", ""]
        lines += [line for row in players for line in _fault_lines(row)]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    """A name as code in a table."""
    return "`" + " ".join(text.split()).replace("`", "'").replace("|", "\\|") + "`"


def _fault_lines(row: PlayerRow) -> list[str]:
    """Why a player gave games up, the most frequent reasons first."""
    reasons = sorted(row.fault_reasons.items(), key=lambda item: (-item[1], item[0]))
    lines = [
        f"- {_code(row.name)}, {count} times: {' '.join(reason.split())}"
        for reason, count in reasons[:REASONS]
    ]
    others = sum(count for _, count in reasons[REASONS:])
    return [*lines, f"- {_code(row.name)}, {others} times for other reasons"] if others else lines


def _cells(row: PlayerRow, standings: Standings) -> list[str]:
    low, high = row.elo.interval
    elo = f"{row.elo.value:.0f} ({low:.0f} to {high:.0f})" + ("" if row.bounded else " \\*")
    if row.name == standings.anchor:
        elo = "0"
    blunders = "-"
    if row.blunder_rate is not None:
        low, high = row.blunder_rate.interval
        blunders = f"{row.blunder_rate.value:.2%} ({low:.2%} to {high:.2%})"
        if row.unproven:
            blunders += f", {row.unproven} unproven"
    low, high = row.score.interval
    return [
        elo,
        f"{row.score.value:.3f} ({low:.3f} to {high:.3f})",
        f"{row.first_mover.value:+.3f}",
        blunders,
        f"{row.faults}",
        f"{standings.milliseconds[row.name]:.3g}",
    ]
