"""How much a given player can be exploited: exact best responses to it.

The agent is asked in every view of the game what it does, before exhaustion (in the tree's
information sets) and after it (in all positions that an ending may lead to), and the best response
is computed against those chances. Nothing is sampled but the agent's own dice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from agents.agent import Agent, as_agent, close_agent
from counterweight_env.cards import rule_table
from counterweight_env.kernels import (
    DISCARD,
    NO_CARD,
    NOBODY,
    ONE,
    REFILL,
    STATE,
    apply,
    begin_turn,
    kernel,
    lowest_bit,
    outcome,
    right_cards,
)
from counterweight_env.rules import Rules, as_rules
from counterweight_env.view import redact
from train.small_games.solve import Solver
from train.small_games.symmetry import starting_tables
from train.small_games.tree import (
    COUPLE,
    Endings,
    Tree,
    build_tree,
    check_size,
    ending_key,
    number_of,
)
from train.small_games.views import SAMPLES, event_chances, forget_draw

__all__ = ["AgentReport", "ending_values", "exploitability", "tree_chances"]

#: Endings whose continuations are listed at once.
CHUNK: Final = 20_000
ENDINGS_COUNTER: Final = 13


@dataclass(frozen=True)
class AgentReport:
    """What :func:`exploitability` found.

    Attributes:
        rules: The rules.
        name: The agent's name.
        first: What the agent gets on average against its best response when it moves first.
        second: The same when it moves second.
        views: Views in which it was asked, before and after exhaustion.
    """

    rules: Rules
    name: str
    first: float
    second: float
    views: int

    @property
    def exploitability(self) -> float:
        """What a best response wins on average over both seats; 0 for an equilibrium."""
        return max(-(self.first + self.second) / 2, 0.0)  # rounding may leave less than nothing


# --- Before exhaustion --------------------------------------------------------------------------


@kernel
def lay_out_views(tables, records, nodes, hands, player, games):
    """Writes what a player sees with each hand in each public history."""
    table = tables[0]
    for i in range(nodes.size):
        game = games[i]
        games[i] = records[nodes[i]]
        game["hand"][player] = hands[i]
        if game["phase"] != REFILL:
            game["chosen"] = NO_CARD
            begin_turn(game, table, player)
        forget_draw(game, table, player)
        redact(game, table, player)


def tree_chances(
    tree: Tree, player: int, agent: Agent, samples: int = SAMPLES, seed: int = 0
) -> np.ndarray:
    """The chance of each of a player's sequences' last action, if the agent plays.

    Args:
        tree: The game, with its records kept.
        player: The agent's seat.
        agent: The agent.
        samples: As in :func:`event_chances`.
        seed: As in :func:`event_chances`.

    Returns:
        (num_sequences,) float64.
    """
    sets = int(tree.num_sets[player])
    begin = tree.set_begin[player, :sets].astype(np.int64)
    sizes = tree.set_end[player, :sets] - begin
    games = np.zeros(sets, STATE)
    lay_out_views(
        rule_table(tree.rules),
        tree.records,
        tree.set_node[player, :sets],
        tree.set_hand[player, :sets],
        player,
        games,
    )
    rows = np.repeat(np.arange(sets), sizes)
    sequences = np.arange(rows.size) - np.repeat(np.cumsum(sizes) - sizes, sizes) + begin[rows]
    chances = np.zeros(int(tree.num_sequences[player]))
    chances[sequences] = event_chances(
        agent,
        tree.rules,
        games,
        np.full(sets, player, np.int8),
        rows,
        tree.action_of[player, sequences],
        samples,
        seed,
    )
    return chances


# --- After exhaustion ---------------------------------------------------------------------------


@kernel
def list_continuations(tables, games, keys, slots, counters, codes, targets, counts):
    """Writes each move of each ending's mover and the ending it leads to; returns how many.

    Moves of one ending are sorted by left card.
    """
    table = tables[0]
    total = 0
    after = np.zeros(1, STATE)
    for i in range(games.size):
        game = games[i]
        counts[i] = 0
        if game["to_move"] == NOBODY:
            continue
        mover = np.int64(game["to_move"])
        firsts = game["legal"]
        while firsts:
            first = lowest_bit(firsts)
            firsts &= firsts - ONE
            laid_away = game["phase"] == DISCARD
            seconds = ONE
            if not laid_away:
                seconds = right_cards(
                    table, game["hand"][mover], game["table"][0], game["table"][1], first
                )
            while seconds:
                second = lowest_bit(seconds)
                seconds &= seconds - ONE
                after[0] = game
                apply(after[0], table, first)
                codes[total] = first
                if not laid_away:
                    apply(after[0], table, second)
                    codes[total] = COUPLE * (first + 1) + second
                key = ending_key(
                    after[0]["hand"][0],
                    after[0]["hand"][1],
                    after[0]["table"][0],
                    after[0]["table"][1],
                    1 - mover,
                )
                targets[total] = number_of(keys, slots, counters, key)
                total += 1
                counts[i] += 1
    return total


@kernel
def back_up(games, order, begins, chances, targets, seat, values):
    """Values endings for player 0, smaller ones first: the agent by its chances, the other best."""
    for k in range(order.size):
        i = order[k]
        game = games[i]
        if game["to_move"] == NOBODY:
            values[i] = outcome(game)
            continue
        mine = game["to_move"] == seat
        sign = 1.0 if game["to_move"] == 0 else -1.0
        total = 0.0 if mine else -2.0
        for e in range(begins[i], begins[i + 1]):
            value = sign * values[targets[e]]
            total = total + chances[e] * value if mine else max(total, value)
        values[i] = sign * total


def ending_values(
    endings: Endings, seat: int, agent: Agent, samples: int = SAMPLES, seed: int = 0
) -> tuple[np.ndarray, int]:
    """What each ending is worth to player 0 if the agent meets its best response there.

    Args:
        endings: The endings; those that they lead to are added behind them.
        seat: The agent's seat.
        agent: The agent.
        samples: As in :func:`event_chances`.
        seed: As in :func:`event_chances`.

    Returns:
        (endings.size,) float64, and the number of views in which the agent was asked.
    """
    rules = endings.rules
    moves = max((rules.deck_size - 2) ** 2 // 2, 1)  # of one position, more than enough
    counters = np.zeros(ENDINGS_COUNTER + 1, np.int64)
    all_codes, all_targets, all_counts = [], [], []
    done = 0
    while done < endings.size:
        numbers = np.arange(done, min(done + CHUNK, endings.size))
        games = endings.positions(numbers)
        endings.reserve(numbers.size * moves)
        counters[ENDINGS_COUNTER] = endings.size
        codes = np.zeros(numbers.size * moves, np.int64)
        targets = np.zeros(numbers.size * moves, np.int64)
        counts = np.zeros(numbers.size, np.int64)
        used = list_continuations(
            rule_table(rules), games, endings.keys, endings.slots, counters, codes, targets, counts
        )
        endings.size = int(counters[ENDINGS_COUNTER])
        all_codes.append(codes[:used].copy())
        all_targets.append(targets[:used].copy())
        all_counts.append(counts)
        done += numbers.size
    games = endings.positions()
    if not games.size:
        return np.zeros(0), 0
    codes, targets = np.concatenate(all_codes), np.concatenate(all_targets)
    counts = np.concatenate(all_counts)
    begins = np.concatenate([[0], np.cumsum(counts)])
    rows = np.repeat(np.arange(games.size), counts)

    asked = np.flatnonzero(games["to_move"] == seat)
    place = np.full(games.size, -1)
    place[asked] = np.arange(asked.size)
    mine = place[rows] >= 0
    chances = np.zeros(codes.size)
    chances[mine] = event_chances(
        agent,
        rules,
        games[asked],
        np.full(asked.size, seat, np.int8),
        place[rows[mine]],
        codes[mine],
        samples,
        seed,
    )
    cards = np.bitwise_count(games["hand"]).sum(axis=1)
    values = np.zeros(games.size)
    back_up(games, np.argsort(cards, kind="stable"), begins, chances, targets, seat, values)
    return values, asked.size


# --- Both ---------------------------------------------------------------------------------------


def exploitability(
    agent: Agent | str,
    rules: Rules | str,
    samples: int = SAMPLES,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> AgentReport:
    """How much a player loses against the best response to it, in each seat.

    The agent must decide by the cards it sees, as all of this distribution do. It is not exact for
    one that looks at which card of its hand it has drawn last, or after exhaustion at the number of
    turns played; such a view names a card and a number that may have been.

    Args:
        agent: The player, or its text.
        rules: A small deck with open discards.
        samples: Random words to try on each view in which the agent does not always act alike.
        seed: Where they come from.
        progress: Told in a few words how it goes.

    Raises:
        ValueError: The rules cannot be solved, ``samples`` is not a positive int, the text names no
            agent, or the agent acts illegally or gives up.
    """
    rules = as_rules(rules)
    check_size(rules)
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
        raise ValueError(f"samples must be a positive int, got {samples!r}")
    player = as_agent(agent)
    try:
        endings = Endings(rules)
        tables = starting_tables(rules, merge=False)
        trees = [build_tree(rules, table, endings, keep_records=True) for table, _ in tables]
        results = np.zeros(2)
        views = 0
        for seat in range(2):
            values, asked = ending_values(endings, seat, player, samples, seed)
            views += asked
            for number, (tree, (_, weight)) in enumerate(zip(trees, tables, strict=True), 1):
                chances = tree_chances(tree, seat, player, samples, seed)
                views += int(tree.num_sets[seat])
                results[seat] -= weight * Solver(tree, values).best_response(1 - seat, chances)
                if progress is not None:
                    progress(f"seat {seat}, table {number} of {len(tables)}")
    finally:
        if isinstance(agent, str):
            close_agent(player)
    first, second = results.tolist()
    return AgentReport(rules, player.name, first, second, views)
