"""What a player is, for modules that write or use one.

The definitions stand in ``counterweight_env``, so that environments can take opponents without
importing this package.
"""

from counterweight_env.plugins import (
    Agent,
    FallibleAgent,
    as_agent,
    close_agent,
    decide,
    make_agent,
)
from counterweight_env.view import ViewBatch

__all__ = [
    "Agent",
    "FallibleAgent",
    "ViewBatch",
    "as_agent",
    "close_agent",
    "decide",
    "make_agent",
]
