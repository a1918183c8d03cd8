"""Players by name: the :class:`Agent` protocol, and looking agents up among installed packages.

A package adds players by entry points: the group ``counterweight_env.agents`` maps a name to a
callable that returns an agent, the group ``counterweight_env.agent_wrappers`` maps a name to a
callable that takes an agent and returns one. A callable with a true attribute ``takes_text`` gets
what follows the colon as it stands, signs such as ``=``, ``,`` and ``+`` included, unless it begins
like an option.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from counterweight_env.view import ViewBatch

__all__ = ["Agent", "FallibleAgent", "as_agent", "close_agent", "decide", "make_agent"]

AGENT_GROUP: Final = "counterweight_env.agents"
WRAPPER_GROUP: Final = "counterweight_env.agent_wrappers"


@runtime_checkable
class Agent(Protocol):
    """A player of any number of games at once.

    Attributes:
        name: How tables call it.
    """

    name: str

    def act(self, views: ViewBatch) -> np.ndarray:
        """Chooses for the mover of every row.

        Args:
            views: What each mover knows. ``views.random_bits`` is the only source of chance an
                agent may use, so that its play does not depend on batch size or order.

        Returns:
            (B,) ints, a legal action for each row.
        """
        ...


@runtime_checkable
class FallibleAgent(Agent, Protocol):
    """A player that may be unable to answer, such as a program that crashes or thinks too long.

    A match asks :meth:`act_or_fault` instead of ``act``. A player that gives a game up has lost it;
    its other games go on. An illegal action is still an error of the match, not a fault.
    """

    def act_or_fault(self, views: ViewBatch) -> tuple[np.ndarray, dict[int, str]]:
        """Chooses for the mover of every row, or gives the row's game up.

        Args:
            views: What each mover knows.

        Returns:
            (B,) ints, a legal action for each row that is not given up, and the reason for each row
            that is. The action of such a row is ignored.
        """
        ...


def decide(agent: Agent, views: ViewBatch) -> tuple[np.ndarray, dict[int, str]]:
    """Asks any agent for its actions and its faults; an agent that is not fallible has none."""
    if isinstance(agent, FallibleAgent):
        return agent.act_or_fault(views)
    return agent.act(views), {}


def close_agent(agent: Agent) -> None:
    """Calls an agent's ``close()``, if it has one: it lets go of a program, a file, a socket.

    Whoever makes an agent from text closes it.
    """
    close = getattr(agent, "close", None)
    if close is not None:
        close()


def _find(group: str, name: str, text: str) -> EntryPoint:
    found = entry_points(group=group)
    for entry in found:
        if entry.name == name:
            return entry
    kind = "agent" if group == AGENT_GROUP else "agent wrapper"
    known = ", ".join(sorted(set(found.names))) or "none installed"
    raise ValueError(f"unknown {kind} {name!r} in {text!r}; known: {known}")


def _parse_value(text: str) -> Any:
    """A number, a bool or None where the text reads as one, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return {"true": True, "false": False}.get(text.lower(), text)


def _build(group: str, part: str, text: str, *first: Agent) -> Any:
    """Calls the factory that ``part``, such as ``"pimc:worlds=100"``, names."""
    name, colon, rest = part.partition(":")
    if not name.strip() or (colon and not rest.strip()):
        raise ValueError(f"an agent reads like 'name' or 'name:option=value', got {text!r}")
    factory: Callable[..., Any] = _find(group, name.strip(), text).load()
    positional: list[Any] = list(first)
    options: dict[str, Any] = {}
    if colon and _is_plain_text(factory, rest):
        positional.append(rest.strip())
    elif colon:
        for item in rest.split(","):
            key, equals, value = (piece.strip() for piece in item.partition("="))
            if not equals or not key.isidentifier() or not value:
                raise ValueError(f"bad option {item!r} in {text!r}: it must read key=value")
            if key in options:
                raise ValueError(f"option {key!r} stands twice in {text!r}")
            options[key] = _parse_value(value)
    try:
        return factory(*positional, **options)
    except TypeError as error:
        raise ValueError(f"bad options in {text!r}: {error}") from error


def _is_plain_text(factory: Callable[..., Any], rest: str) -> bool:
    """Whether what follows the colon is one text rather than options."""
    if getattr(factory, "takes_text", False):
        return re.match(r"\s*[A-Za-z_]\w*\s*=", rest) is None
    return "=" not in rest


def _split_wrappers(text: str) -> tuple[str, list[str]]:
    """The first agent's text, and the wrappers' behind it."""
    base, *wrappers = text.split("+")
    name, colon, _ = base.partition(":")
    if not colon or not wrappers:
        return base, wrappers
    if getattr(_find(AGENT_GROUP, name.strip(), text).load(), "takes_text", False):
        # A plus sign may be part of the text; what is no wrapper's name does not end it.
        known = entry_points(group=WRAPPER_GROUP).names
        start = len(wrappers)
        while start and wrappers[start - 1].partition(":")[0].strip() in known:
            start -= 1
        return "+".join([base, *wrappers[:start]]), wrappers[start:]
    return base, wrappers


def make_agent(text: str) -> Agent:
    """Builds an agent from text.

    Args:
        text: ``"name"``, ``"name:option=value,option=value"`` or ``"name:TEXT"``, each optionally
            followed by wrappers: ``"name+wrapper"``.

    Raises:
        ValueError: A name is not installed or an option does not fit; the message names it.
    """
    if not isinstance(text, str):
        raise ValueError(f"an agent's text must be a str, got {text!r}")
    base, wrappers = _split_wrappers(text)
    agent = _build(AGENT_GROUP, base, text)
    for wrapper in wrappers:
        agent = _build(WRAPPER_GROUP, wrapper, text, agent)
    return as_agent(agent)


def as_agent(agent: Agent | str) -> Agent:
    """Takes an agent as an object or as text.

    Raises:
        TypeError: The object has no ``name`` or no ``act``.
        ValueError: The text does not name an agent.
    """
    if isinstance(agent, str):
        return make_agent(agent)
    if not isinstance(agent, Agent) or isinstance(agent, type):
        raise TypeError(f"an agent has a name and act(views), got {agent!r}")
    return agent
