"""Counterweight: a two-player card game as reinforcement-learning environments."""

from importlib.metadata import version
from typing import Any

import gymnasium

from counterweight_env.cards import action_name, card_name, parse_action, parse_card
from counterweight_env.game import Game, GameBatch, IllegalActionError
from counterweight_env.observation import observation_layout, observation_space
from counterweight_env.phase import Phase
from counterweight_env.plugins import Agent, make_agent
from counterweight_env.rules import CLASSIC, EXCHANGE, Rules
from counterweight_env.view import View, ViewBatch

__all__ = [
    "CLASSIC",
    "EXCHANGE",
    "Agent",
    "Game",
    "GameBatch",
    "IllegalActionError",
    "Phase",
    "Rules",
    "View",
    "ViewBatch",
    "action_name",
    "card_name",
    "env",
    "make_agent",
    "observation_layout",
    "observation_space",
    "parse_action",
    "parse_card",
    "raw_env",
]

__version__ = version("counterweight-env")

gymnasium.register(
    id="Counterweight-v0",
    entry_point="counterweight_env.envs.single:CounterweightEnv",
    vector_entry_point="counterweight_env.envs.vector:CounterweightVectorEnv",
)


def _register_with_pettingzoo() -> None:
    import pettingzoo

    if hasattr(pettingzoo, "register"):  # older releases have no registry
        pettingzoo.register("aec", "counterweight_v0", entry_point="counterweight_env.envs.aec:env")


_register_with_pettingzoo()


def env(*args: Any, **kwargs: Any) -> Any:
    """The PettingZoo environment, see :func:`counterweight_env.envs.aec.env`."""
    from counterweight_env.envs import aec

    return aec.env(*args, **kwargs)


def raw_env(*args: Any, **kwargs: Any) -> Any:
    """The PettingZoo environment without wrappers, see :mod:`counterweight_env.envs.aec`."""
    from counterweight_env.envs import aec

    return aec.raw_env(*args, **kwargs)
