"""Checkpoints of a training run: whole or absent, checked on loading, and exact.

A checkpoint is a folder ``<run>/checkpoints/step-<steps>`` with everything that a run's future
depends on. It is written under another name and then renamed, so a run killed in between leaves no
half checkpoint behind, and ``manifest.json`` holds a SHA-256 of every file, so damage is found.

| file | holds |
|---|---|
| ``model.zip`` | what ``MaskablePPO.load`` reads: weights, Adam's moments, last observations |
| ``env.npz`` | every running game: cards, random streams, seats, opponents, returns so far |
| ``pool/`` | the snapshots that are opponents, those that running games still have included |
| ``selection/`` | the average of the weights, the best one so far and the evaluations |
| ``random.npz`` | the states of torch's and NumPy's global generators, from which SB3 draws |
| ``config.json`` | the run's configuration |
| ``manifest.json`` | format, versions, steps and the checksums |
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from train.both_seats import BothSeatsVecEnv
from train.config import TrainConfig
from train.opponents import OpponentPool
from train.selection import Selection
from train.vec_env import SelfPlayVecEnv

__all__ = ["CheckpointError", "latest_checkpoint", "restore", "save_checkpoint"]

FORMAT: Final = 3
#: A checkpoint of another version of these is refused.
PACKAGE: Final = "counterweight-env"
#: With other versions of these, a run goes on, but not bit for bit as it would have.
LIBRARIES: Final = ("torch", "numpy", "stable-baselines3", "sb3-contrib")


class CheckpointError(ValueError):
    """A run or checkpoint that cannot be gone on with, and why."""


def _folder(run: Path) -> Path:
    return run / "checkpoints"


def _versions() -> dict[str, str]:
    return {name: version(name) for name in (PACKAGE, *LIBRARIES)}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _sync(path: Path) -> None:
    """Waits until a file or folder is on the disk, where the system has a way to."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def save_checkpoint(
    run: Path,
    model: MaskablePPO,
    env: SelfPlayVecEnv | BothSeatsVecEnv,
    pool: OpponentPool,
    config: TrainConfig,
    selection: Selection,
) -> Path:
    """Writes a checkpoint of a run that stands between two rollouts, and drops the oldest ones.

    Returns:
        The checkpoint's folder.
    """
    step = model.num_timesteps
    target = _folder(run) / f"step-{step:012d}"
    draft = _folder(run) / f"draft-{step:012d}"
    for leftover in _folder(run).glob("draft-*"):
        shutil.rmtree(leftover)
    draft.mkdir(parents=True)
    model.save(draft / "model.zip")
    pool.save(draft / "pool")
    (draft / "selection").mkdir()
    selection.save(draft / "selection")
    np.savez(draft / "env.npz", **env.get_state())  # type: ignore[arg-type]
    np.savez(draft / "random.npz", **_random_state())
    (draft / "config.json").write_text(config.to_json())
    manifest = {
        "format": FORMAT,
        "versions": _versions(),
        "step": step,
        "files": {str(path.relative_to(draft)): _digest(path) for path in _files(draft)},
    }
    (draft / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    for path in (*_files(draft), draft / "pool", draft / "selection", draft):
        _sync(path)
    if target.exists():  # a damaged one, which the run passed over
        shutil.rmtree(target)
    os.replace(draft, target)
    _sync(target.parent)
    for old in _checkpoints(run)[config.keep_checkpoints :]:
        shutil.rmtree(old)
    return target


def _random_state() -> dict[str, Any]:
    _, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002 - SB3's
    return {
        "torch": torch.get_rng_state().numpy(),
        "numpy_keys": keys,
        "numpy_position": position,
        "numpy_has_gauss": has_gauss,
        "numpy_gauss": gauss,
    }


def _set_random_state(state: Any) -> None:
    torch.set_rng_state(torch.from_numpy(state["torch"]))
    np.random.set_state(  # noqa: NPY002 - SB3's
        (
            "MT19937",
            state["numpy_keys"],
            int(state["numpy_position"]),
            int(state["numpy_has_gauss"]),
            float(state["numpy_gauss"]),
        )
    )


def _checkpoints(run: Path) -> list[Path]:
    """The folders of all checkpoints, newest first."""
    return sorted(_folder(run).glob("step-*"), reverse=True)


def _read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a checkpoint whose files are all as they were written.

    Raises:
        CheckpointError: The message names the file that is missing or damaged.
    """
    path = folder / "manifest.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
        files: dict[str, str] = manifest["files"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is missing or damaged ({error})") from error
    for name, digest in files.items():
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder / name} is missing")
        if _digest(folder / name) != digest:
            raise CheckpointError(f"{folder / name} is damaged: its checksum differs")
    return manifest


def latest_checkpoint(run: Path, config: TrainConfig) -> Path | None:
    """The newest checkpoint of a run whose files are whole; None if the run has none at all.

    Damaged ones are passed over with a warning that names the file.

    Raises:
        CheckpointError: Every checkpoint is damaged, or the newest good one is of another format,
            version or configuration; the message names what differs.
    """
    damaged = []
    for folder in _checkpoints(run):
        try:
            manifest = _read_manifest(folder)
        except CheckpointError as error:
            damaged.append(str(error))
            continue
        _check_origin(folder, manifest, config)
        for message in damaged:
            warnings.warn(f"{message}; going on from {folder.name}", RuntimeWarning, stacklevel=2)
        return folder
    if damaged:
        raise CheckpointError("no checkpoint is whole: " + "; ".join(damaged))
    return None


def _check_origin(folder: Path, manifest: dict[str, Any], config: TrainConfig) -> None:
    if manifest["format"] != FORMAT:
        raise CheckpointError(
            f"{folder} has checkpoint format {manifest['format']}, this version reads {FORMAT}"
        )
    saved, current = manifest["versions"], _versions()
    if saved[PACKAGE] != current[PACKAGE]:
        raise CheckpointError(
            f"{folder} is of {PACKAGE} {saved[PACKAGE]}, this is version {current[PACKAGE]}"
        )
    for name in LIBRARIES:
        if saved[name] != current[name]:
            warnings.warn(
                f"{folder.name} was written with {name} {saved[name]}, this is {current[name]}: "
                "the run goes on, but not bit for bit",
                RuntimeWarning,
                stacklevel=3,
            )
    differences = config.differences(TrainConfig.from_json((folder / "config.json").read_text()))
    if differences:
        raise CheckpointError(
            f"{folder} is of another configuration (asked for, not saved): "
            + "; ".join(differences)
        )


def restore(
    folder: Path,
    env: SelfPlayVecEnv | BothSeatsVecEnv,
    pool: OpponentPool,
    selection: Selection,
) -> MaskablePPO:
    """Puts model, pool, environment and the global generators back to where a checkpoint stands.

    Args:
        folder: What :func:`latest_checkpoint` found.
        env: A fresh environment of the run's configuration.
        pool: A fresh pool of the run's configuration.
        selection: A fresh one of the run's configuration.

    Returns:
        The model, with ``env`` as its environment, ready for
        ``learn(..., reset_num_timesteps=False)``.
    """
    model = MaskablePPO.load(folder / "model.zip", env=env, device="cpu", force_reset=False)
    pool.load(folder / "pool", model.policy)
    pool.install_exactly(env)
    selection.load(folder / "selection")
    with np.load(folder / "env.npz") as state:
        env.set_state(dict(state))
    with np.load(folder / "random.npz") as state:
        _set_random_state(state)
    return model
