"""The peers' own virtual environments, with the exact versions that are measured."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

__all__ = ["PINS", "PeerError", "ensure"]

PINS: Final[dict[str, tuple[str, ...]]] = {
    "open_spiel": ("open_spiel==2.0.2", "numpy==2.4.6"),
    "pettingzoo": (
        "pettingzoo[classic]==1.27.0",
        "rlcard==1.2.0",
        "gymnasium==1.4.0",
        "pygame-ce==2.5.8",
        "numpy==2.4.6",
    ),
    "pgx": ("pgx==2.6.0", "jax==0.10.2", "jaxlib==0.10.2", "numpy==2.4.6"),
    "chart": ("matplotlib==3.11.2", "numpy==2.4.6"),
}

ASK_VERSIONS: Final = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


class PeerError(Exception):
    """A peer that could not be installed or measured; the message names it."""


def ensure(name: str, folder: Path) -> tuple[Path, dict[str, str]]:
    """Makes an environment if it is missing and installs what is not there in the right version.

    Args:
        name: A key of ``PINS``.
        folder: Where the environments stand; this one is its subfolder ``name``.

    Returns:
        Its Python, and the version of every pinned package.

    Raises:
        PeerError: It cannot be made, or the packages cannot be installed.
    """
    wanted = dict(re.sub(r"\[.*\]", "", pin).split("==") for pin in PINS[name])
    home = folder.absolute() / name
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        if _versions(python, wanted) != wanted:
            print(f"installing {' '.join(PINS[name])}", file=sys.stderr, flush=True)
            install = [str(python), "-m", "pip", "install", "--quiet", *PINS[name]]
            subprocess.run(install, check=True)
        found = _versions(python, wanted)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PeerError(
            f"{name}: cannot install {' '.join(PINS[name])} in {home}: {error}"
        ) from error
    if found != wanted:
        raise PeerError(f"{name}: {home} has {found} instead of {wanted}")
    return python, found


def _versions(python: Path, names: dict[str, str]) -> dict[str, str]:
    ask = [str(python), "-c", ASK_VERSIONS, *names]
    answer = subprocess.run(ask, check=True, stdout=subprocess.PIPE, text=True)
    versions: dict[str, str] = json.loads(answer.stdout)
    return versions
