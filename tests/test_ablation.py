"""The ablation: every variant can be run, and all are scored in the same games."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from train.config import BASELINES

sys.path.insert(0, str(Path(__file__).parent.parent))  # benchmarks/ is not installed

from benchmarks import ablation

SMALL = "exchange(ranks=6,suits=2,hand_size=3)"
TINY: dict[str, Any] = {
    "total_steps": 64,
    "num_envs": 8,
    "n_steps": 8,
    "batch_size": 32,
    "hidden": 8,
    "net_arch": (8,),
    "ending_games": 8,
    "ending_epochs": 1,
    "select_deals": 2,
    "eval_deals": 4,
}
#: What a variant makes large of itself.
LESS = {"total_steps": 64, "search_games": 2}


@pytest.mark.parametrize("variant", ablation.VARIANTS)
def test_every_variant_is_scored_in_whole_games(
    variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = ablation.VARIANTS[variant]
    monkeypatch.setattr(ablation, "BUDGET", TINY)
    monkeypatch.setattr(ablation, "BLUNDER_DEALS", 2)
    less = {name: LESS.get(name, value) for name, value in changes.items()}
    monkeypatch.setitem(ablation.VARIANTS, variant, less)
    row = ablation.measure(SMALL, variant, 0, tmp_path)
    assert set(ablation.OPPONENTS) <= set(BASELINES)
    for name in ablation.OPPONENTS:
        assert row[name] in np.arange(17) / 16  # of eight games, draws halved
    assert (row["blunders"] is None) == (less.get("network") == "mlp")
    monkeypatch.setattr(ablation, "run", None)
    assert ablation.measure(SMALL, variant, 0, tmp_path) == row  # what has been run stays
