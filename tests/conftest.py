"""Set-up shared by all tests."""

from pathlib import Path

import pytest

import agents
import counterweight_env


def pytest_configure(config: pytest.Config) -> None:
    """Drops compiled kernels that are older than the source.

    Numba's cache looks at a function's own file only; it does not see that a kernel which the
    function calls, from another file, has changed.
    """
    if hasattr(config, "workerinput"):
        return  # the controller has done it
    folders = [Path(package.__file__ or "").parent for package in (counterweight_env, agents)]
    newest = max(path.stat().st_mtime for folder in folders for path in folder.rglob("*.py"))
    for folder in folders:
        for path in (*folder.rglob("*.nbi"), *folder.rglob("*.nbc")):
            if path.stat().st_mtime < newest:
                path.unlink(missing_ok=True)
