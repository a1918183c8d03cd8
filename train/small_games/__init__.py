"""Exact game theory on small decks: equilibria, and how much any player can be exploited.

``docs/small-games.md`` says how it works and what was measured.
"""

from __future__ import annotations

from train.small_games.agents import AgentReport, exploitability
from train.small_games.solve import Equilibrium, Point, solve_game

__all__ = ["AgentReport", "Equilibrium", "Point", "exploitability", "solve_game"]
