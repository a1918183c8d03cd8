"""A trained network as a player, in numba: no torch, no search.

The network scores every legal move by its row of :mod:`agents.moves` with a multilayer perceptron,
the same for all moves, and plays the best one or draws by the softmax of the scores. There are two
such scorers, for the time before and after exhaustion. Training lives in :mod:`train`; what it
writes is a ``.npz`` file that holds nothing but arrays of numbers and a manifest in JSON, which is
read without pickle and refused if it is damaged or of another layout.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from agents.moves import ENDING, MAX_MOVES, OPENING, WIDTH, list_moves
from counterweight_env.cards import rule_table
from counterweight_env.kernels import LEFT, RIGHT, kernel, mix_bits
from counterweight_env.rules import Rules
from counterweight_env.view import ViewBatch

__all__ = ["LAYOUT_VERSION", "Network", "Policy", "PolicyFileError", "load_network"]

#: Changes whenever the columns of a move do.
LAYOUT_VERSION: Final = 2
PRETRAINED: Final = Path(__file__).with_name("pretrained")
LAYERS: Final = ("hidden_1", "hidden_2", "score", "value")
KINDS: Final = {"opening": len(OPENING), "ending": len(ENDING)}


class PolicyFileError(ValueError):
    """A network's file that cannot be used, and why."""


# --- The network --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Network:
    """The numbers of a network.

    Attributes:
        arrays: float32 arrays by name. For each of the scorers ``opening`` and ``ending``:
            ``<scorer>.hidden_1.weight`` (F, H) and ``.bias`` (H,), ``hidden_2`` (H, H) and (H,),
            ``score.weight`` (H, 1) and ``.bias`` (1,), ``value.weight`` (H, 1) and ``.bias`` (1,).
        manifest: What the file says of itself: ``rules``, ``layout``, ``hidden``, ``sha256``, and
            ``command``, ``commit`` and ``score`` where they are known.

    Raises:
        PolicyFileError: An array is missing, of another shape or not finite.
    """

    arrays: Mapping[str, np.ndarray]
    manifest: Mapping[str, Any]

    def __post_init__(self) -> None:
        for name, shape in self.shapes(self.hidden).items():
            array = self.arrays.get(name)
            if array is None:
                raise PolicyFileError(f"the array {name!r} is missing")
            if array.shape != shape or array.dtype != np.float32:
                raise PolicyFileError(
                    f"{name} must be float32 of shape {shape}, got {array.dtype} {array.shape}"
                )
            if not np.isfinite(array).all():
                raise PolicyFileError(f"{name} holds numbers that are not finite")

    @property
    def hidden(self) -> int:
        """The width of the hidden layers."""
        return int(self.manifest["hidden"])

    @staticmethod
    def shapes(hidden: int) -> dict[str, tuple[int, ...]]:
        """The shape of every array, by name, for a width of the hidden layers."""
        shapes: dict[str, tuple[int, ...]] = {}
        for kind, features in KINDS.items():
            sizes = ((features, hidden), (hidden, hidden), (hidden, 1), (hidden, 1))
            for layer, size in zip(LAYERS, sizes, strict=True):
                shapes[f"{kind}.{layer}.weight"] = size
                shapes[f"{kind}.{layer}.bias"] = size[1:]
        return shapes

    def packed(self) -> np.ndarray:
        """All arrays in one (2, n) float32 array, a row a scorer, for the kernels."""
        size = WIDTH * self.hidden + self.hidden * (self.hidden + 4) + 2
        out = np.zeros((2, size), np.float32)
        for row, kind in enumerate(KINDS):
            parts = []
            for layer in LAYERS:
                weight = self.arrays[f"{kind}.{layer}.weight"]
                if layer == "hidden_1":  # both kinds as wide as the wider one
                    weight = np.pad(weight, ((0, WIDTH - weight.shape[0]), (0, 0)))
                parts += [weight.ravel(), self.arrays[f"{kind}.{layer}.bias"]]
            out[row] = np.concatenate(parts)
        return out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file, whole or not at all."""
        target = Path(path)
        arrays = {name: self.arrays[name] for name in self.shapes(self.hidden)}
        manifest = {**self.manifest, "layout": LAYOUT_VERSION, "sha256": digest(arrays)}
        draft = target.with_name(f".{target.name}.draft")
        with open(draft, "wb") as file:
            contents: dict[str, Any] = {"manifest": np.array(json.dumps(manifest)), **arrays}
            np.savez_compressed(file, **contents)
        os.replace(draft, target)


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """The SHA-256 of arrays and their names, whatever file they are in."""
    state = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        state.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        state.update(array.tobytes())
    return state.hexdigest()


def load_network(path: str | os.PathLike[str]) -> Network:
    """Reads what :meth:`Network.save` wrote.

    Raises:
        PolicyFileError: The file is missing, damaged, or of another layout; the message names it.
    """
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            manifest = json.loads(str(file["manifest"]))
            arrays = {name: file[name] for name in file.files if name != "manifest"}
        layout, hidden, sha256 = (manifest[name] for name in ("layout", "hidden", "sha256"))
        if layout != LAYOUT_VERSION:
            raise PolicyFileError(
                f"has move layout {layout!r}, this version reads {LAYOUT_VERSION}"
            )
        if not isinstance(hidden, int) or hidden < 1:
            raise PolicyFileError(f"hidden must be a positive int, got {hidden!r}")
        if digest(arrays) != sha256:
            raise PolicyFileError("is damaged: its checksum differs")
        return Network(arrays, manifest)
    except FileNotFoundError:
        raise PolicyFileError(f"{path}: there is no such file") from None
    except PolicyFileError as error:
        raise PolicyFileError(f"{path}: {error}") from None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise PolicyFileError(f"{path}: is no network of this project ({error})") from error


# --- The kernels --------------------------------------------------------------------------------


@kernel
def score_rows(rows, count, packed, hidden, buffer, scores):
    """Scores the rows of one position's moves.

    Args:
        rows: (n, WIDTH) float32.
        count: How many of them there are.
        packed: One row of :meth:`Network.packed`.
        hidden: The width of the hidden layers.
        buffer: (3, hidden) float32 of scratch space; the last row gets the mean of the last layer.
        scores: (n,) float32 to write to.
    """
    first = WIDTH * hidden
    second = first + hidden
    third = second + hidden * hidden
    last = third + hidden
    one = buffer[0]
    two = buffer[1]
    mean = buffer[2]
    mean[:] = 0
    for i in range(count):
        one[:] = packed[first:second]
        for j in range(WIDTH):
            x = rows[i, j]
            if x != 0:
                weights = packed[j * hidden : (j + 1) * hidden]
                for k in range(hidden):
                    one[k] += x * weights[k]
        two[:] = packed[third:last]
        for j in range(hidden):
            x = one[j]
            if x > 0:
                weights = packed[second + j * hidden : second + (j + 1) * hidden]
                for k in range(hidden):
                    two[k] += x * weights[k]
        score = packed[last + hidden]
        for k in range(hidden):
            x = max(two[k], np.float32(0))
            score += x * packed[last + k]
            mean[k] += x
        scores[i] = score
    for k in range(hidden):
        mean[k] /= count


@kernel
def value_of(packed, hidden, buffer):
    """The value of the position that :func:`score_rows` has just looked at, from -1 to 1."""
    start = packed.size - hidden - 1
    total = packed[packed.size - 1]
    for k in range(hidden):
        total += buffer[2, k] * packed[start + k]
    return np.tanh(total)


@kernel
def scorer_of(game):
    """Which scorer a position takes: 0 before, 1 after exhaustion."""
    return 1 if game["stock_size"] == 0 and (game["phase"] == LEFT or game["phase"] == RIGHT) else 0


@kernel
def draw_move(scores, count, temperature, word):
    """The index of the best move, or of one drawn by the softmax of the scores."""
    best = 0
    for i in range(1, count):
        if scores[i] > scores[best]:
            best = i
    if temperature == 0.0:
        return best
    total = 0.0
    for i in range(count):
        total += np.exp((scores[i] - scores[best]) / temperature)
    # 53 bits of the word, as an even number from 0 to below 1.
    share = np.float64(mix_bits(word) >> np.uint64(11)) * 2.0**-53 * total
    for i in range(count):
        share -= np.exp((scores[i] - scores[best]) / temperature)
        if share < 0:
            return i
    return best


@kernel
def play_rows(games, tables, players, words, packed, hidden, temperature, actions):
    """Chooses for the mover of every row of redacted records."""
    listed = np.empty((MAX_MOVES, 2), np.int64)
    rows = np.empty((MAX_MOVES, WIDTH), np.float32)
    scores = np.empty(MAX_MOVES, np.float32)
    buffer = np.empty((3, hidden), np.float32)
    for i in range(games.size):
        game = games[i]
        count = list_moves(game, tables[0], np.int64(players[i]), listed, rows)
        if count == 1:
            actions[i] = listed[0, 0]
            continue
        score_rows(rows, count, packed[scorer_of(game)], hidden, buffer, scores)
        actions[i] = listed[draw_move(scores, count, temperature, words[i]), 0]


@kernel
def share_rows(games, tables, players, packed, hidden, temperature, chances):
    """Writes how likely each action is in every row: the sum over the moves that it begins."""
    listed = np.empty((MAX_MOVES, 2), np.int64)
    rows = np.empty((MAX_MOVES, WIDTH), np.float32)
    scores = np.empty(MAX_MOVES, np.float32)
    buffer = np.empty((3, hidden), np.float32)
    for i in range(games.size):
        count = list_moves(games[i], tables[0], np.int64(players[i]), listed, rows)
        score_rows(rows, count, packed[scorer_of(games[i])], hidden, buffer, scores)
        best = draw_move(scores, count, 0.0, np.uint64(0))
        if temperature == 0.0:
            chances[i, listed[best, 0]] = 1.0
            continue
        total = 0.0
        for k in range(count):
            total += np.exp((scores[k] - scores[best]) / temperature)
        for k in range(count):
            chances[i, listed[k, 0]] += np.exp((scores[k] - scores[best]) / temperature) / total


# --- The player ---------------------------------------------------------------------------------


class Policy:
    """Plays a trained network.

    Attributes:
        network: The network; None for the shipped ones, which go by the rules.

    Args:
        path: A network's file; the network shipped for the rules at hand if None.
        temperature: 0 plays the move with the best score; above that, moves are drawn by the
            softmax of the scores divided by it.

    Raises:
        PolicyFileError: The file cannot be used.
        ValueError: ``temperature`` is negative or no number.
    """

    def __init__(self, path: str | None = None, temperature: float = 0) -> None:
        number = isinstance(temperature, (int, float)) and not isinstance(temperature, bool)
        if not (number and 0 <= temperature < float("inf")):
            raise ValueError(f"temperature must be a number of at least 0, got {temperature!r}")
        self.temperature = temperature
        self._packed: dict[str, tuple[np.ndarray, int]] = {}
        self.network = None if path is None else load_network(path)
        options = "" if path is None else f"path={path}"
        if temperature:
            options += f"{',' if options else ''}temperature={temperature}"
        self.name = f"policy:{options}" if options else "policy"

    @classmethod
    def of(cls, network: Network, name: str, temperature: float = 0) -> Policy:
        """A player of a network in memory."""
        player = cls.__new__(cls)
        player.temperature = temperature
        player._packed = {}
        player.network = network
        player.name = name
        return player

    def weights_for(self, rules: Rules) -> tuple[np.ndarray, int]:
        """The packed numbers of the network that plays these rules, and its hidden width."""
        if rules.variant not in self._packed:
            network = self.network or load_network(PRETRAINED / f"{rules.variant}.npz")
            self._packed[rules.variant] = network.packed(), network.hidden
        return self._packed[rules.variant]

    def act(self, views: ViewBatch) -> np.ndarray:
        """Chooses for the mover of every row.

        Args:
            views: What each mover knows.

        Returns:
            (B,) int64, a legal action for each row.
        """
        packed, hidden = self.weights_for(views.rules)
        actions = np.empty(len(views), np.int64)
        play_rows(
            views.records,
            rule_table(views.rules),
            views.players,
            views.random_bits,
            packed,
            hidden,
            float(self.temperature),
            actions,
        )
        return actions

    def probabilities(self, views: ViewBatch) -> np.ndarray:
        """How likely each action is, for the mover of every row.

        Args:
            views: What each mover knows.

        Returns:
            (B, A) float64, rows that sum to 1.
        """
        packed, hidden = self.weights_for(views.rules)
        chances = np.zeros((len(views), views.rules.num_actions))
        share_rows(
            views.records,
            rule_table(views.rules),
            views.players,
            packed,
            hidden,
            float(self.temperature),
            chances,
        )
        return chances
