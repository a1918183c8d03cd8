"""A network as an ONNX file, for runtimes other than this package's.

The graph takes the rows of the moves of one position at a time, as :mod:`agents.moves` writes them,
and gives the score of every move and the value of the position. There is one pair of outputs for
each scorer: which one counts follows from whether the stock has run out.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import torch
from torch import nn

from agents.moves import WIDTH
from agents.policy import Network
from train.network import MoveNet, Scorer, load_into

__all__ = ["write_onnx"]


class _OnePosition(nn.Module):
    """Both scorers on the moves of one position."""

    def __init__(self, net: MoveNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(M, WIDTH) rows to scores (M,) and value (1,), before and after exhaustion."""
        return (*self._look(self.net.opening, rows), *self._look(self.net.ending, rows))

    @staticmethod
    def _look(scorer: Scorer, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores, hidden = scorer(rows)
        return scores, torch.tanh(scorer.value(hidden.mean(dim=0)))


def write_onnx(network: Network, path: str | os.PathLike[str]) -> None:
    """Writes a network as ONNX: input ``rows`` (M, WIDTH) float32, M free.

    Outputs: ``opening_scores`` (M,), ``opening_value`` (1,), ``ending_scores`` (M,) and
    ``ending_value`` (1,). The file is there whole or not at all.

    Args:
        network: The network.
        path: Where to.
    """
    net = MoveNet(network.hidden)
    load_into(net, network.arrays)
    target = Path(path)
    draft = target.with_name(f".{target.name}.draft")
    names = ["opening_scores", "opening_value", "ending_scores", "ending_value"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, about itself
        torch.onnx.export(
            _OnePosition(net).eval(),
            (torch.zeros(5, WIDTH),),
            str(draft),
            input_names=["rows"],
            output_names=names,
            dynamic_shapes={"rows": {0: torch.export.Dim("moves", min=1, max=4096)}},
            external_data=False,
            verbose=False,
        )
    os.replace(draft, target)
