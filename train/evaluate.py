"""How strong a player is: a table of its scores against others on duplicate deals."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agents import MatchResult, play_match
from counterweight_env.plugins import Agent
from counterweight_env.rules import Rules

__all__ = ["Evaluation", "evaluate", "write_text"]

#: Where evaluations deal from, apart from the seeds that training deals from.
EVALUATION_SEED: Final = 2**63


@dataclass(frozen=True)
class Evaluation:
    """A player's matches, one against each opponent.

    Attributes:
        player: Its name.
        matches: The results, from the player's side.
    """

    player: str
    matches: tuple[MatchResult, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One row a match.

        ``score`` is wins and half the draws as a part of all games, ``low`` and ``high`` are its
        95 % interval (bootstrap over deals), ``games`` is twice ``deals``.
        """
        return [
            {
                "opponent": match.b,
                "score": round(match.score, 4),
                "low": round(match.interval[0], 4),
                "high": round(match.interval[1], 4),
                "wins": match.wins,
                "draws": match.draws,
                "losses": match.losses,
                "deals": match.deals,
                "games": match.games,
                "turns": round(match.turns, 2),
                "rules": str(match.rules),
                "seed": match.seed,
            }
            for match in self.matches
        ]

    def table(self) -> str:
        """The rows as a Markdown table."""
        header = ("opponent", "score", "95 % interval", "wins", "draws", "losses")
        cells = [header] + [
            (
                str(row["opponent"]),
                f"{row['score']:.3f}",
                f"{row['low']:.3f} to {row['high']:.3f}",
                str(row["wins"]),
                str(row["draws"]),
                str(row["losses"]),
            )
            for row in self.rows()
        ]
        widths = [max(len(line[column]) for line in cells) for column in range(len(header))]
        rule = ["-" * (widths[0] + 2)] + ["-" * (width + 1) + ":" for width in widths[1:]]
        lines = [_line(line, widths) for line in cells]
        return "\n".join([lines[0], "|" + "|".join(rule) + "|", *lines[1:]])

    def save(self, folder: Path) -> None:
        """Writes ``evaluation.json`` and ``evaluation.csv``."""
        rows = self.rows()
        content = {"player": self.player, "matches": rows}
        write_text(folder / "evaluation.json", json.dumps(content, indent=2) + "\n")
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]) if rows else ["opponent"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(folder / "evaluation.csv", text.getvalue())


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """One row of a table: names to the left, numbers to the right."""
    parts = [cells[0].ljust(widths[0])]
    parts += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return "| " + " | ".join(parts) + " |"


def write_text(path: Path, text: str) -> None:
    """Writes a text file so that it is there whole or not at all."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text)
    os.replace(draft, path)


def evaluate(
    player: Agent | str,
    opponents: Sequence[Agent | str],
    rules: Rules | str = "classic",
    deals: int = 1000,
    seed: int = EVALUATION_SEED,
) -> Evaluation:
    """Plays a player against every opponent, on the same duplicate deals.

    Args:
        player: An agent or its text.
        opponents: Agents or their texts.
        rules: A :class:`Rules` or its text.
        deals: Deals a match; each is played twice, with the seats swapped.
        seed: Of the deals.

    Raises:
        ValueError: An argument is bad.
    """
    matches = tuple(play_match(player, other, rules, deals, seed) for other in opponents)
    name = player if isinstance(player, str) else player.name
    return Evaluation(matches[0].a if matches else name, matches)
