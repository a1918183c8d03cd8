"""Players of Counterweight, and matches between them."""

from agents.agent import Agent, ViewBatch, as_agent, make_agent
from agents.arena import MatchResult, play_match
from agents.baselines import Cautious, Greedy, Keeper, Patient, Random

__all__ = [
    "Agent",
    "Cautious",
    "Greedy",
    "Keeper",
    "MatchResult",
    "Patient",
    "Random",
    "ViewBatch",
    "as_agent",
    "make_agent",
    "play_match",
]
