"""What each ingredient of the training recipe is worth: ``python -m benchmarks.ablation``.

The recipe of ``standard`` runs at some 60 % of its budget, with one ingredient taken out at a time,
and with some put in, each with several seeds on one core. All runs are scored on the same duplicate
deals. What has been run stays in the folder, so a study that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from agents import play_match
from agents.policy import Policy
from train.config import TrainConfig
from train.evaluate import EVALUATION_SEED, evaluate, write_text
from train.self_play import run

#: The budget of every run, over the ``standard`` preset.
BUDGET: Final[dict[str, Any]] = {"total_steps": 3_000_000, "ending_games": 18_000}
#: What is changed, and how.
VARIANTS: Final[dict[str, dict[str, Any]]] = {
    "all": {},
    "one seat learns": {"both_seats": False},
    "no fit to solved endings": {"ending_games": 0},
    "a fit that stays as it is": {"endings": "scorer"},
    "the same, for perfect endings": {"endings": "exact"},
    "no averaged weights": {"average_decay": 0.0},
    "no opponents but itself": {"self_share": 1.0, "past_share": 0.0, "baseline_share": 0.0},
    "start from the search player": {"search_games": 600},
    "plain MLP, more decisions": {
        "network": "mlp",
        "ending_games": 0,
        "total_steps": 12_000_000,
    },
}
OPPONENTS: Final = ("random", "cautious", "patient")
#: Deals on which endings are looked at.
BLUNDER_DEALS: Final = 500


def measure(rules: str, variant: str, seed: int, folder: Path) -> dict[str, Any]:
    """Trains one variant with one seed and scores it; reads the result if it is there."""
    place = folder / rules / f"{variant.replace(' ', '-').replace(',', '')}-{seed}"
    done = place / "ablation.json"
    if done.is_file():
        found: dict[str, Any] = json.loads(done.read_text())
        return found
    changes = {**BUDGET, **VARIANTS[variant]}
    config = TrainConfig.preset("standard", rules=rules, seed=seed, **changes)
    started = time.process_time()
    evaluation = run(config, place, resume=True, progress=False)
    seconds = time.process_time() - started
    network = place / "network.npz"
    if config.endings == "exact":  # its own table is of perfect endings
        evaluation = evaluate(Policy(str(network)), OPPONENTS, rules, config.eval_deals)
    scores = {match.b: match.score for match in evaluation.matches}
    row: dict[str, Any] = {name: scores[name] for name in OPPONENTS}
    row["minutes"] = seconds / 60
    row["blunders"] = None
    if config.network == "moves":
        match = play_match(
            Policy(str(network)),
            "random",
            rules,
            BLUNDER_DEALS,
            EVALUATION_SEED,
            count_blunders=True,
        )
        assert match.blunder_rates is not None
        row["blunders"] = match.blunder_rates[0]
    write_text(done, json.dumps(row) + "\n")
    return row


def cell(values: list[float | None]) -> str:
    """The mean, and the least and the most."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    return f"{np.mean(known):.3f} ({min(known):.3f} to {max(known):.3f})"


def main() -> None:
    """Trains, measures and prints the table."""
    parser = argparse.ArgumentParser(description="What each ingredient of training is worth.")
    parser.add_argument("--rules", nargs="+", default=["classic", "exchange"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--out", type=Path, default=Path("runs/ablation"))
    arguments = parser.parse_args()
    for rules in arguments.rules:
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in arguments.variants}
        for seed in arguments.seeds:
            for name in arguments.variants:
                found[name].append(measure(rules, name, seed, arguments.out))
                print(f"# {rules}, {name}, seed {seed}: {found[name][-1]}", flush=True)
        print(f"\n{rules}, seeds {arguments.seeds}: mean (least to most)\n")
        print(f"| recipe | {' | '.join(OPPONENTS)} | blunders | minutes of one core |")
        print("|---|---:|---:|---:|---:|---:|")
        for name, rows in found.items():
            cells = [cell([row[key] for row in rows]) for key in (*OPPONENTS, "blunders")]
            minutes = np.mean([row["minutes"] for row in rows])
            print(f"| {name} | {' | '.join(cells)} | {minutes:.1f} |", flush=True)


if __name__ == "__main__":
    main()
