"""The exact solver against a plain memoised search over `reference_game.legal_couples`.

The oracle below knows nothing of bounds, keys or orders: it tries every move and remembers the
value of every position.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from helpers import Symmetry, cards, symmetries
from reference_game import legal_couples

from benchmarks.endgame import exhausted_positions, plain_value
from counterweight_env import Game, GameBatch, Phase, Rules
from counterweight_env import endgame as endgame_module
from counterweight_env.cards import rule_table
from counterweight_env.endgame import (
    KEPT_SIZE,
    LEARN_FROM,
    NODES,
    Solution,
    Workspace,
    couple_values,
    forget,
    position_bounds,
    solve,
    solve_states,
    value_bounds,
)
from counterweight_env.kernels import kernel
from counterweight_env.rules import as_rules

Move = tuple[int, ...]
Memo = dict[tuple[frozenset[int], frozenset[int], tuple[int, int]], int]

SIZES = (
    {},
    {},
    {},
    {"ranks": 6, "suits": 4, "hand_size": 4},
    {"ranks": 8, "suits": 3, "hand_size": 4},
    {"ranks": 12, "suits": 2, "hand_size": 4},
    {"ranks": 13, "suits": 1, "hand_size": 4},
    {"ranks": 4, "suits": 4, "hand_size": 3},
)


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


def margin_of(
    rules: Rules,
    mine: frozenset[int],
    other: frozenset[int],
    table: tuple[int, int],
    memo: Memo,
) -> int:
    """Return the mover's margin under best play."""
    if not mine or not other:
        return len(other) - len(mine)
    key = (mine, other, table)
    if key not in memo:
        values = margins_of_moves(rules, mine, other, table, memo)
        if values:
            memo[key] = max(values.values())
        elif legal_couples(other, table, rules.variant, rules.ranks):
            memo[key] = -margin_of(rules, other, mine, table, memo)
        else:
            memo[key] = len(other) - len(mine)
    return memo[key]


def margins_of_moves(
    rules: Rules,
    mine: frozenset[int],
    other: frozenset[int],
    table: tuple[int, int],
    memo: Memo,
) -> dict[Move, int]:
    """Return the mover's margin after each move."""
    couples = legal_couples(mine, table, rules.variant, rules.ranks)
    if couples or rules.blocked == "pass":
        return {
            couple: -margin_of(rules, other, mine - set(couple), couple, memo) for couple in couples
        }
    return {(card,): -margin_of(rules, other, mine - {card}, table, memo) for card in mine}


def oracle(game: Game) -> dict[Move, int]:
    """Return the margin of every move of a game at the start of a turn."""
    mine, other = frozenset(game.hand(game.to_move)), frozenset(game.hand(1 - game.to_move))
    return margins_of_moves(game.rules, mine, other, game.table, {})


def positions(
    seed: int, count: int, most: dict[str, int], sizes: tuple[dict, ...] = SIZES
) -> Iterator[Game]:
    """Draw exhausted games that run, with up to `most[blocked]` cards a hand."""
    rng = random.Random(seed)
    while count:
        blocked = rng.choice(sorted(most))
        rules = Rules(rng.choice(("classic", "exchange")), blocked=blocked, **rng.choice(sizes))
        mine, other = rng.randint(1, most[blocked]), rng.randint(1, most[blocked])
        deck = list(range(rules.deck_size))
        rng.shuffle(deck)
        hands = (deck[:mine], deck[mine : mine + other])
        table = deck[mine + other : mine + other + 2]
        if len(table) < 2:
            continue
        try:
            game = Game.from_position(hands, table, to_move=rng.randrange(2), rules=rules)
        except ValueError:
            continue  # sizes that no game reaches
        if not game.done:
            count -= 1
            yield game


def exhausted_game(rules: str, seed: int) -> Game:
    """Play at random to exhaustion, dealing again if the game ends there."""
    rng = random.Random(seed)
    while True:
        game = Game(rules, seed=rng.randrange(2**32))
        while not game.exhausted:
            game.step(rng.choice(game.legal_actions()))
        if not game.done:
            return game


def small_game(rules: str = "classic") -> Game:
    """Return a game in which the mover has a choice."""
    return Game.from_position(
        (cards("JS 9S TD 4C 2H 4H"), cards("3C TC QS AH KD 8S")),
        cards("TS 3H"),
        to_move=0,
        rules=rules,
    )


def test_values_and_best_moves_equal_the_oracle_on_3000_positions() -> None:
    for game in positions(seed=11, count=3000, most={"pass": 8, "discard": 8}):
        margins = oracle(game)
        best = max(margins.values())
        by_margin = solve(game, margin=True, table_size=2**12)
        assert by_margin.proven, str(game)
        assert by_margin.value == best, str(game)
        assert by_margin.bounds == (best, best)
        assert set(by_margin.best) == {m for m, v in margins.items() if v == best}, str(game)
        solution = solve(game, table_size=2**12)
        assert solution.value == sign(best), str(game)
        assert set(solution.best) == {m for m, v in margins.items() if sign(v) == sign(best)}
        assert len(solution.best) == len(set(solution.best))


@pytest.mark.parametrize("rules", ["classic", "exchange"])
def test_long_searches_equal_a_plain_search(rules: str) -> None:
    """Positions large enough to be kept in the table and to be ordered by experience."""
    states = np.concatenate(
        [exhausted_positions(rules, player, 100, seed=77) for player in ("random", "greedy")]
    )
    low, high, nodes = solve_states(states, rules, node_limit=1_000_000)
    memory = np.zeros((2**19, 4), np.uint64)
    counters = np.array([0, 700_000], np.int64)
    compared = 0
    for row in np.flatnonzero((nodes > LEARN_FROM) & (low == high)):
        memory[:] = 0
        expected = plain_value(rule_table(as_rules(rules)), memory, counters, states[row])
        if expected != 2:  # 2: it met its limit
            assert low[row] == expected, row
            compared += 1
    assert compared >= 10


def test_values_around_the_size_that_is_kept_equal_a_plain_search() -> None:
    """Smaller positions are searched by other code, and a lopsided one has the longest lists."""
    rng = random.Random(18)
    memory = np.zeros((2**19, 4), np.uint64)
    kinds = set()
    for _ in range(1500):
        rules = Rules(rng.choice(("classic", "exchange")))
        size = rng.randint(KEPT_SIZE - 4, KEPT_SIZE + 3)
        mine = rng.choice((1, 2, size // 2, size - 2, size - 1))
        deck = list(range(rules.deck_size))
        rng.shuffle(deck)
        if rng.random() < 0.5:  # many of a kind make many couples
            deck.sort(key=lambda card: (card % 13 > 4, rng.random()))
        hands = (deck[:mine], deck[mine:size])
        try:
            game = Game.from_position(hands, deck[-2:], to_move=rng.randrange(2), rules=rules)
        except ValueError:
            continue  # sizes that no game reaches
        if game.done:
            continue
        memory[:] = 0
        counters = np.array([0, 3_000_000], np.int64)
        expected = plain_value(rule_table(rules), memory, counters, game._record)
        if expected != 2:  # 2: it met its limit
            kinds.add((rules.variant, size < KEPT_SIZE, expected))
            assert solve(game).value == expected, str(game)
    assert len(kinds) == 12


def test_couple_values_equal_the_oracle() -> None:
    for game in positions(seed=12, count=300, most={"pass": 8, "discard": 6}):
        margins = oracle(game)
        assert couple_values(game, margin=True, table_size=2**12) == margins, str(game)
        assert couple_values(game, table_size=2**12) == {m: sign(v) for m, v in margins.items()}


@pytest.mark.parametrize("rules", ["classic", "exchange", "exchange(blocked=discard)"])
def test_the_96_images_of_a_position_have_the_same_value(rules: str) -> None:
    for seed in range(3):
        game = next(
            g
            for g in positions(seed=seed, count=1000, most={"pass": 12, "discard": 9}, sizes=({},))
            if str(g.rules) == rules and len(g.hand(0)) + len(g.hand(1)) > 12
        )
        plain = solve(game, margin=True)
        for symmetry in symmetries():
            image = solve(image_of(game, symmetry), margin=True)
            assert image.value == plain.value
            moves = {
                symmetry.couple((m[0], m[1])) if len(m) == 2 else (symmetry.card(m[0]),)
                for m in plain.best
            }
            assert set(image.best) == moves


def image_of(game: Game, symmetry: Symmetry) -> Game:
    table = symmetry.couple(game.table)
    hands = [[symmetry.card(c) for c in game.hand(player)] for player in range(2)]
    return Game.from_position(hands, table, to_move=game.to_move, rules=game.rules)


@pytest.mark.parametrize("rules", ["classic", "exchange"])
def test_a_best_move_keeps_the_value_and_the_others_lose_some(rules: str) -> None:
    for seed in range(6):
        game = exhausted_game(rules, seed)
        while len(game.hand(0)) + len(game.hand(1)) > 26:
            game.step(game.legal_actions()[0])
            if game.done:
                break
        if game.done or game.phase != Phase.LEFT:
            continue
        solution = solve(game)
        for move, value in couple_values(game).items():
            after = game.copy()
            for action in move:
                after.step(action)
            if after.done:
                expected = int(after.returns[game.to_move])
            else:
                child = solve(after).value
                assert child is not None
                expected = child if after.to_move == game.to_move else -child
            assert value == expected
            assert (move in solution.best) == (value == solution.value)


def test_phase_right_keeps_the_chosen_card_on_the_left() -> None:
    seen = 0
    for game in positions(seed=13, count=200, most={"pass": 7, "discard": 5}):
        if game.phase != Phase.LEFT:
            continue
        margins = oracle(game)
        for first in game.legal_actions():
            chosen = game.copy()
            chosen.step(first)
            after = {m: v for m, v in margins.items() if m[0] == first}
            best = max(after.values())
            solution = solve(chosen, margin=True)
            assert solution.value == best
            assert set(solution.best) == {m for m, v in after.items() if v == best}
            assert couple_values(chosen, margin=True) == after
            assert value_bounds(chosen, None) == (sign(best), sign(best))
            seen += 1
    assert seen > 200


def test_bounds_at_any_node_limit_hold_the_value() -> None:
    left_open = 0
    for game in positions(seed=14, count=250, most={"pass": 14, "discard": 7}):
        full = solve(game, margin=True)
        assert full.value is not None
        for limit in (0, 1, 2, 5, 20, 100, 1000):
            for margin, value in ((True, full.value), (False, sign(full.value))):
                endgame_module._workspace(2**10).clear()
                low, high = value_bounds(game, limit, margin, table_size=2**10)
                assert low <= value <= high, str(game)
                endgame_module._workspace(2**10).clear()
                solution = solve(game, limit, margin, table_size=2**10)
                assert solution.nodes <= limit
                assert solution.bounds[0] <= value <= solution.bounds[1]
                assert solution.value in (None, value)
                assert (solution.value is None) == (solution.bounds[0] < solution.bounds[1])
                assert not (solution.proven and solution.value is None)
                if margin:
                    assert set(solution.best) <= set(full.best)
                    assert not solution.proven or set(solution.best) == set(full.best)
                left_open += not solution.proven
    assert left_open > 100


@pytest.mark.parametrize("table_size", [2, 16])
def test_a_tiny_table_gives_the_same_values(table_size: int) -> None:
    for game in positions(seed=15, count=100, most={"pass": 14, "discard": 6}):
        expected = solve(game, margin=True)
        found = solve(game, margin=True, table_size=table_size)
        assert (found.value, found.best) == (expected.value, expected.best)


def test_a_table_that_has_seen_much_gives_the_same_values() -> None:
    games = list(positions(seed=16, count=60, most={"pass": 14, "discard": 6}))
    fresh = []
    for game in games:
        endgame_module._workspace(2**10).clear()
        fresh.append(solve(game, margin=True, table_size=2**10))
    for _ in range(2):
        for game, first in zip(games, fresh, strict=True):
            again = solve(game, margin=True, table_size=2**10)
            assert (again.value, again.best) == (first.value, first.best)


def test_after_forgetting_a_search_is_as_the_first() -> None:
    table = rule_table(Rules("classic"))[0]
    games = [exhausted_game("classic", seed)._state[0] for seed in range(4)]
    visited = []
    used = Workspace(2**8)
    used.memory[endgame_module.GENERATION] = 2**21 - 3  # so that it wraps
    for game in games * 2:
        fresh = Workspace(2**8)
        counts = []
        for workspace in (fresh, used):
            forget(workspace.memory)
            bounds = position_bounds(workspace.memory, table, game, True, 10**7)
            counts.append((bounds, int(workspace.memory[NODES])))
        assert counts[0] == counts[1]
        visited.append(counts[0][1])
    assert max(visited) > 1000


def test_one_table_serves_all_rules() -> None:
    rules = [
        Rules(variant, blocked=blocked)
        for variant in ("classic", "exchange")
        for blocked in ("pass", "discard")
    ]
    differ = 0
    for game in positions(seed=17, count=150, most={"pass": 9}, sizes=({},)):
        hands = [game.hand(0), game.hand(1)]
        values = []
        for each in rules:
            try:
                other = Game.from_position(hands, game.table, to_move=game.to_move, rules=each)
            except ValueError:
                continue  # a size that these rules do not reach
            if not other.done and other.to_move == game.to_move:
                values.append(solve(other, margin=True, table_size=2**16).value)
                assert values[-1] == max(oracle(other).values())
        differ += len(set(values)) > 1
    assert differ > 20


def test_keys_tell_apart_whatever_plays_differently() -> None:
    # F2: with a dead card the mover's hand is never empty, so the other goes on placing.
    rules = "classic(ranks=13,suits=4)"
    alone = Game.from_position(
        (cards("JS 2H"), cards("QS AH 4C 4D")), cards("TS 3H"), to_move=0, rules=rules
    )
    with_dead = Game.from_position(
        (cards("JS 2H KD 9D"), cards("QS AH 4C 4D")), cards("TS 3H"), to_move=0, rules=rules
    )
    assert solve(alone, margin=True).value == max(oracle(alone).values()) == 4
    assert solve(with_dead, margin=True).value == max(oracle(with_dead).values()) == 0


@pytest.mark.parametrize("rules", ["classic", "exchange", "classic(blocked=discard)"])
def test_solve_states_equals_solve(rules: str) -> None:
    batch = GameBatch(64, rules, seed=5)
    rng = np.random.default_rng(3)
    while not (batch.exhausted & (batch.hand_counts.sum(axis=1) < 18) | batch.done).all():
        keep = np.flatnonzero(
            ~(batch.exhausted & (batch.hand_counts.sum(axis=1) < 18) | batch.done)
        )
        batch.step(batch.random_actions(keep), rows=keep)
    some = np.flatnonzero((rng.random(64) < 0.3) & (batch.phase == Phase.LEFT))
    batch.step(batch.random_actions(some), rows=some)
    before = batch.state.copy()
    for margin in (False, True):
        low, high, nodes = solve_states(batch.state, rules, margin=margin)
        assert (low == high).all()
        assert low.dtype == high.dtype == np.int8
        assert (nodes >= 0).all()
        for row in range(64):
            game = batch[row]
            if not game.done:
                assert solve(game, margin=margin).value == low[row]
                continue
            cards_left = [len(game.hand(player)) for player in range(2)]
            end = cards_left[1] - cards_left[0]
            assert low[row] == (end if margin else sign(end))
    assert (batch.state == before).all()
    low, high, nodes = solve_states(batch.state, rules, node_limit=3, workspace=Workspace(2))
    assert (nodes <= 3).all()
    assert (low <= high).all()


def test_solve_states_in_slices_and_with_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = GameBatch.from_state(
        np.concatenate([exhausted_game("classic", seed)._state for seed in range(6)]), "classic"
    )
    limited = solve_states(batch.state, "classic", 20000, workspace=Workspace(2**12))
    monkeypatch.setattr(endgame_module, "SLICE", 1000)
    sliced = solve_states(batch.state, "classic", 20000, workspace=Workspace(2**12))
    assert (sliced[2] <= 20000).all()
    for row in range(6):
        assert max(limited[0][row], sliced[0][row]) <= min(limited[1][row], sliced[1][row])


@kernel
def bounds_of_all(memory, tables, games, out):
    """As a search or a training kernel would call the solver."""
    for i in range(games.size):
        out[i] = position_bounds(memory, tables[0], games[i], True, 10**6)


def test_kernels_can_call_position_bounds() -> None:
    states = np.concatenate([small_game()._state, small_game()._state])
    out = np.zeros((2, 2), np.int64)
    bounds_of_all(Workspace(2**8).memory, rule_table(Rules("classic")), states, out)
    assert (out == solve(small_game(), margin=True).value).all()


def test_an_interrupt_leaves_nothing_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    game = exhausted_game("exchange", 3)
    endgame_module._workspace(2**12).clear()
    expected = solve(game, table_size=2**12)
    assert expected.nodes > 100
    before = game.to_json()
    endgame_module._workspace(2**12).clear()
    calls = 0
    bounds: Callable = endgame_module.game_bounds

    def interrupted(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return bounds(*arguments)

    monkeypatch.setattr(endgame_module, "SLICE", 8)
    monkeypatch.setattr(endgame_module, "game_bounds", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solve(game, table_size=2**12)
    monkeypatch.undo()
    assert game.to_json() == before
    found = solve(game, table_size=2**12)
    assert (found.value, found.best, found.proven) == (expected.value, expected.best, True)


def test_what_cannot_be_solved_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="38 cards are in the stock"):
        solve(Game("classic", seed=1))
    over = Game.from_position(([], cards("2S 4S")), cards("TS 3H"), to_move=1)
    with pytest.raises(ValueError, match="over"):
        solve(over)
    with pytest.raises(TypeError, match="must be a Game"):
        solve("classic")  # type: ignore[arg-type]
    game = small_game()
    for bad in (-1, 2.5, True):
        with pytest.raises(ValueError, match="node_limit"):
            solve(game, node_limit=bad)  # type: ignore[arg-type]
    for size in (0, 1, 3, 100, 2.0, True):
        with pytest.raises(ValueError, match="table_size"):
            solve(game, table_size=size)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="row 0 has 38 cards in the stock"):
        solve_states(GameBatch(2, "classic", seed=1).state, "classic")
    with pytest.raises(ValueError, match="dtype STATE"):
        solve_states(np.zeros(3), "classic")


def test_a_solution_says_what_it_is() -> None:
    solution = solve(small_game())
    assert isinstance(solution, Solution)
    assert solution.proven
    assert solution.best
    assert solution.nodes >= 1
    with pytest.raises(AttributeError):
        solution.value = 3  # type: ignore[misc]
