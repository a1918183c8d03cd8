"""Which network a run ends with: averaged weights, judged on fixed duplicate deals as they grow.

``progress.csv`` in the run's folder holds a row for each evaluation and baseline:

| column | meaning |
|---|---|
| ``steps`` | decisions learnt from |
| ``seconds`` | time since the run began or was resumed last |
| ``opponent`` | the baseline |
| ``score``, ``low``, ``high`` | wins and half the draws, and the 95 % interval |
| ``blunders`` | part of the decisions after exhaustion that gave away value |

Games are whole ones; a run that learns for perfect endings is judged with them, on both sides.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from agents import play_match
from agents.exact import Exact
from agents.policy import Network, Policy, load_network
from counterweight_env.plugins import Agent
from train.evaluate import write_text

__all__ = ["SELECTION_SEED", "Selection"]

#: Where evaluations during a run deal from: neither training nor the final table does.
SELECTION_SEED: Final = 2**62
COLUMNS: Final = ("steps", "seconds", "opponent", "score", "low", "high", "blunders")


class Selection:
    """The average of a run's networks, and the best average so far.

    Args:
        rules: The text of the rules.
        baselines: The agents that averages are judged against, by their mean score.
        decay: The part of itself that the average keeps from one update to the next, at most; the
            first ones weigh more.
        deals: Duplicate deals a match.
        exact: Whether the averages play with perfect endings.
    """

    def __init__(
        self,
        rules: str,
        baselines: Sequence[Agent],
        decay: float,
        deals: int,
        exact: bool = False,
    ) -> None:
        self._rules = rules
        self._baselines = baselines
        self._decay = decay
        self._deals = deals
        self._exact = exact
        self._started = time.monotonic()
        self.average: dict[str, np.ndarray] = {}
        self.updates = 0
        self.last_step = 0
        self.best: Network | None = None
        self.best_score = -1.0
        self.rows: list[dict[str, Any]] = []

    def update(self, network: Network) -> None:
        """Takes a network into the average."""
        decay = min(self._decay, self.updates / (self.updates + 1))
        self.updates += 1
        for name, array in network.arrays.items():
            before = self.average.get(name, array).astype(np.float64)
            self.average[name] = decay * before + (1 - decay) * array

    def network(self, manifest: Mapping[str, Any]) -> Network:
        """The average as a network."""
        arrays = {name: array.astype(np.float32) for name, array in self.average.items()}
        return Network(arrays, manifest)

    def judge(self, step: int, hidden: int) -> list[dict[str, Any]]:
        """Plays the average against every baseline and keeps it if it is the best so far.

        Returns:
            The new rows of ``progress.csv``.
        """
        network = self.network({"rules": self._rules, "hidden": hidden, "steps": step})
        player: Agent = Policy.of(network, f"average-{step}")
        player = Exact(player) if self._exact else player
        new = []
        for baseline in self._baselines:
            match = play_match(
                player, baseline, self._rules, self._deals, SELECTION_SEED, count_blunders=True
            )
            low, high = match.interval
            assert match.blunder_rates is not None
            numbers = (match.score, low, high, match.blunder_rates[0])
            row: dict[str, Any] = {
                "steps": step,
                "seconds": round(time.monotonic() - self._started, 1),
                "opponent": match.b,
            }
            row.update(zip(COLUMNS[3:], [round(number, 4) for number in numbers], strict=True))
            new.append(row)
        score = float(np.mean([row["score"] for row in new]))
        if score > self.best_score:
            self.best, self.best_score = network, score
        self.last_step = step
        self.rows += new
        return new

    def write(self, out: Path) -> None:
        """Writes ``progress.csv`` into a run's folder."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        write_text(out / "progress.csv", text.getvalue())

    def save(self, folder: Path) -> None:
        """Writes everything that a continuation needs into a folder."""
        np.savez(
            folder / "average.npz",
            **self.average,  # type: ignore[arg-type]
            updates=self.updates,
            last_step=self.last_step,
            best_score=self.best_score,
        )
        if self.best is not None:
            self.best.save(folder / "best.npz")
        self.write(folder)

    def load(self, folder: Path) -> None:
        """Takes back what :meth:`save` wrote."""
        with np.load(folder / "average.npz") as file:
            arrays = dict(file)
        self.updates = int(arrays.pop("updates"))
        self.last_step = int(arrays.pop("last_step"))
        self.best_score = float(arrays.pop("best_score"))
        self.average = arrays
        if (folder / "best.npz").is_file():
            self.best = load_network(folder / "best.npz")
        with open(folder / "progress.csv", newline="") as file:
            self.rows = [dict(row) for row in csv.DictReader(file)]
