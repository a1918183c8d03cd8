"""Perfect play after exhaustion by trying everything, over `reference_game.legal_couples`.

The oracle of the tests of what stands on the solver: small hands only.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from reference_game import Couple, legal_couples

from counterweight_env import Agent, Game, GameBatch, Phase, Rules

Move = tuple[int, ...]
Hand = frozenset[int]

#: Rule sets whose endings this oracle solves in no time.
SMALL_RULES = tuple(
    f"{variant}({sizes}{blocked})"
    for variant in ("classic", "exchange")
    for sizes in ("ranks=6,suits=2,hand_size=3", "ranks=5,suits=3,hand_size=3")
    for blocked in ("", ",blocked=discard")
)


@lru_cache(maxsize=200_000)
def best_result(rules: Rules, mine: Hand, other: Hand, table: Couple) -> int:
    """Return 1, 0 or -1, what the player on turn (who may be blocked) reaches."""
    if not mine or not other:
        return (len(other) > len(mine)) - (len(other) < len(mine))  # F2, F3
    results = results_of_moves(rules, mine, other, table)
    if results:
        return max(results.values())
    if legal_couples(other, table, rules.variant, rules.ranks):
        return -best_result(rules, other, mine, table)  # F1
    return (len(other) > len(mine)) - (len(other) < len(mine))


def results_of_moves(rules: Rules, mine: Hand, other: Hand, table: Couple) -> dict[Move, int]:
    """Return what the player on turn reaches with each move; none if they must pass."""
    couples = legal_couples(mine, table, rules.variant, rules.ranks)
    if couples or rules.blocked == "pass":
        return {
            couple: -best_result(rules, other, mine - set(couple), couple) for couple in couples
        }
    return {(card,): -best_result(rules, other, mine - {card}, table) for card in mine}


def move_results(game: Game) -> dict[Move, int]:
    """Return what each move of an exhausted game reaches; those of the chosen card if there is."""
    mine, other = frozenset(game.hand(game.to_move)), frozenset(game.hand(1 - game.to_move))
    results = results_of_moves(game.rules, mine, other, game.table)
    if game.phase != Phase.RIGHT:
        return results
    return {move: result for move, result in results.items() if move[0] == game.chosen}


def value_for_player_0(game: Game) -> int:
    """Return the exact value of an exhausted game that runs, at the start of a turn."""
    value = max(move_results(game).values())
    return value if game.to_move == 0 else -value


def best_actions(game: Game, results: dict[Move, int]) -> set[int]:
    """Return the actions that keep the value, given the moves' results."""
    best = max(results.values())
    place = 1 if game.phase == Phase.RIGHT else 0
    return {move[place] for move, result in results.items() if result == best}


def decisions(
    agent: Agent, other: Agent, rules: str, num_games: int, seed: int
) -> Iterator[tuple[Game, int]]:
    """Yield an agent's decisions after exhaustion, with what it chose; it has each seat in turn."""
    games = GameBatch(num_games, rules, seed=seed)
    seats = np.arange(num_games) % 2
    while not games.done.all():
        for player, side in ((agent, seats), (other, 1 - seats)):
            rows = np.flatnonzero(games.to_move == side)
            if rows.size == 0:
                continue
            actions = player.act(games.views(rows=rows))
            if player is agent:
                for row, action in zip(rows.tolist(), actions.tolist(), strict=True):
                    if games.state["stock_size"][row] == 0:
                        yield games[row], action
            games.step(actions, rows=rows)
