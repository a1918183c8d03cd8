"""With what chance an agent takes each action, from what it may see and nothing else."""

from __future__ import annotations

from typing import Final

import numpy as np

from agents.agent import Agent, decide
from agents.baselines import Random
from counterweight_env.cards import rule_table
from counterweight_env.kernels import (
    NO_CARD,
    ONE,
    ZERO,
    bit,
    choose_left,
    kernel,
    left_cards,
    lowest_bit,
)
from counterweight_env.rules import Rules
from counterweight_env.view import ViewBatch
from train.small_games.tree import COUPLE

__all__ = ["SAMPLES", "event_chances"]

#: Random words to try on a view whose first words did not all give the same action.
SAMPLES: Final = 256
#: Random words to try on every view.
FIRST_SAMPLES: Final = 16
#: Views to hand over at once.
CHUNK: Final = 4096


def event_chances(
    agent: Agent,
    rules: Rules,
    records: np.ndarray,
    players: np.ndarray,
    rows: np.ndarray,
    codes: np.ndarray,
    samples: int = SAMPLES,
    seed: int = 0,
) -> np.ndarray:
    """The chance of each event, in views of players on turn.

    An agent that has a method ``probabilities(views) -> (B, A)`` is asked for its chances, and of
    ``random`` they are known. Any other is asked for actions, with fresh random words: 16 times,
    and where not all agree ``samples`` times in all. Its chances are then their frequencies.

    Args:
        agent: The player.
        rules: The rules.
        records: (B,) array of dtype ``STATE``, redacted, at a decision that is no second half of a
            couple.
        players: (B,) int8, whose view each is.
        rows: (n,) the view of each event.
        codes: (n,) the events, as in ``Tree.action_of``, sorted by view and then by left card.
        samples: Random words a view.
        seed: Where they come from.

    Returns:
        (n,) float64.

    Raises:
        ValueError: The agent gives an illegal action, chances that are none, or gives up.
    """
    chances = np.zeros(codes.size)
    words = np.random.default_rng([seed, 1])
    firsts = _distributions(agent, rules, records, players, samples, words)
    single = codes < COUPLE
    chances[single] = firsts[rows[single], codes[single]]
    couples = np.flatnonzero(~single)
    left = codes[couples] // COUPLE - 1
    on_left = firsts[rows[couples], left]
    couples, left, on_left = couples[on_left > 0], left[on_left > 0], on_left[on_left > 0]
    pairs, pair_of = np.unique(rows[couples] * COUPLE + left, return_inverse=True)
    halves = records[pairs // COUPLE].copy()
    choose_lefts(rule_table(rules), halves, pairs % COUPLE)
    seconds = _distributions(agent, rules, halves, players[pairs // COUPLE], samples, words)
    chances[couples] = on_left * seconds[pair_of, codes[couples] % COUPLE]
    return chances


@kernel
def choose_lefts(tables, games, cards):
    """Picks the card for the left in every game."""
    for i in range(games.size):
        choose_left(games[i], tables[0], cards[i])


def _distributions(
    agent: Agent,
    rules: Rules,
    records: np.ndarray,
    players: np.ndarray,
    samples: int,
    words: np.random.Generator,
) -> np.ndarray:
    """The chance of each action in each view; (B, A) float64."""
    found = np.zeros((records.size, rules.num_actions))
    for begin in range(0, records.size, CHUNK):
        part = slice(begin, min(begin + CHUNK, records.size))
        views = ViewBatch(
            rules, records[part], players[part], np.zeros(part.stop - begin, np.uint64)
        )
        found[part] = _ask(agent, views, samples, words)
    return found


def _ask(agent: Agent, views: ViewBatch, samples: int, words: np.random.Generator) -> np.ndarray:
    legal = views.legal
    if isinstance(agent, Random):
        return legal / legal.sum(axis=1, keepdims=True)
    if hasattr(agent, "probabilities"):
        given = np.asarray(agent.probabilities(views), np.float64)
        sums = np.where(legal, given, 0.0).sum(axis=1) if given.shape == legal.shape else 0.0
        if not np.allclose(sums, 1.0, atol=1e-5) or (given < 0).any() or given[~legal].any():
            raise ValueError(f"agent {agent.name!r} gives no chances of the legal actions")
        return given / given.sum(axis=1, keepdims=True)
    counts = np.zeros(legal.shape)
    counts[np.flatnonzero(legal.sum(axis=1) == 1)] = legal[legal.sum(axis=1) == 1]
    open_rows = np.flatnonzero(legal.sum(axis=1) > 1)
    _count(agent, views, open_rows, min(FIRST_SAMPLES, samples), words, counts)
    torn = open_rows[(counts[open_rows] > 0).sum(axis=1) > 1]
    _count(agent, views, torn, samples - min(FIRST_SAMPLES, samples), words, counts)
    return counts / counts.sum(axis=1, keepdims=True)


def _count(
    agent: Agent,
    views: ViewBatch,
    rows: np.ndarray,
    samples: int,
    words: np.random.Generator,
    counts: np.ndarray,
) -> None:
    """Adds how often the agent takes each action of some views, over fresh random words."""
    for _ in range(samples if rows.size else 0):
        fresh = words.integers(0, 2**64, rows.size, np.uint64)
        asked = ViewBatch(views.rules, views.records[rows], views.players[rows], fresh)
        actions, faults = decide(agent, asked)
        if faults:
            raise ValueError(f"agent {agent.name!r} gives up: {next(iter(faults.values()))}")
        actions = np.asarray(actions)
        inside = (actions >= 0) & (actions < views.rules.num_actions)
        bad = ~inside | ~asked.legal[np.arange(rows.size), np.where(inside, actions, 0)]
        if bad.any():
            raise ValueError(
                f"agent {agent.name!r} gives the illegal action {actions[np.argmax(bad)]}"
            )
        np.add.at(counts, (rows, actions), 1.0)


@kernel
def forget_draw(game, table, player):
    """Names as drawn since a discard on this table a card of the hand that may have been it.

    A view holds which card its player has drawn; the tree's hands forget it.
    """
    if game["fresh"][player] == NO_CARD:
        return
    laid = game["discard"][player, game["discard_size"][player] - 1]
    rest = game["hand"][player] & ~game["known"][player]
    while rest:
        card = lowest_bit(rest)
        rest &= rest - ONE
        then = (game["hand"][player] & ~bit(card)) | bit(laid)
        if left_cards(table, then, game["table"][0], game["table"][1]) == ZERO:
            game["fresh"][player] = card
            return
