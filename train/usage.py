"""What a command tells its user about its use."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

__all__ = ["UsageError", "require_extra"]


class UsageError(Exception):
    """What the user has to change, in one sentence."""


def require_extra(extra: str, modules: Sequence[str]) -> None:
    """Refuses to go on without the modules of an extra.

    Raises:
        UsageError: One is not installed; the message names it and what to install.
    """
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise UsageError(
            f'this command needs {", ".join(missing)}: pip install "counterweight-env[{extra}]"'
        )
