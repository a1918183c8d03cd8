"""The searching players: `Pimc`, `FlatMonteCarlo`, `Champion`, and the leaf values under them.

What an action is worth is worked out again in plain Python: every world that `ReferenceGame`
allows, even play by the rule book, and `endings.best_result` once the stock is gone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import asdict
from functools import lru_cache, partial
from math import factorial, isnan, nan, perm
from typing import Any

import numpy as np
import pytest
from endings import (
    SMALL_RULES,
    Hand,
    best_actions,
    best_result,
    decisions,
    move_results,
    value_for_player_0,
)
from helpers import cards, random_deck, symmetries
from players import global_generators_seeded
from reference_game import Couple, ReferenceGame, legal_couples

from agents import Random, ViewBatch, make_agent, play_match
from agents.agent import Agent, FallibleAgent, decide
from agents.baselines import apart
from agents.exact import Exact
from agents.leaf import FEATURES, leaf_value, weights_for
from agents.moves import MAX_MOVES, WIDTH, list_moves
from agents.policy import Network, Policy, load_network, score_rows, scorer_of
from agents.search import (
    CHAMPION,
    CHAMPION_PRIOR,
    GUIDES,
    MAX_CANDIDATES,
    ROUND,
    Champion,
    FlatMonteCarlo,
    Pimc,
    count_orders,
    drop_losers,
    lay_order,
    leader,
    list_candidates,
)
from counterweight_env import Game, GameBatch, Phase, Rules
from counterweight_env.cards import cards_of, mask_of, rule_table
from counterweight_env.endgame import Workspace, position_bounds, solve_states
from counterweight_env.kernels import LEFT, NO_CARD, STATE

VARIANTS = ("classic", "exchange")
FULL_RULES = tuple(
    variant + options
    for variant in VARIANTS
    for options in ("", "(open_discards=False)", "(open_discards=False,blocked=discard)")
)
SMALL_DECKS = tuple(
    f"{variant}({options})"
    for variant in VARIANTS
    for options in (
        "ranks=13,suits=1,hand_size=3",
        "ranks=7,suits=1,hand_size=2,open_discards=False,blocked=discard",
        "ranks=6,suits=2,hand_size=3,open_discards=False",
        "ranks=5,suits=3,hand_size=3,blocked=discard",
        "ranks=2,suits=4,hand_size=2",
        "ranks=4,suits=4,hand_size=6",
    )
)
#: Decks whose worlds and whose play can all be tried.
TINY_DECKS = (
    "ranks=13,suits=1,hand_size=3",
    "ranks=5,suits=2,hand_size=2",
    "ranks=8,suits=2,hand_size=2",
    "ranks=5,suits=3,hand_size=3",
)
UNLIMITED = 10**9


def players() -> tuple[Agent, ...]:
    """Return one small player of each kind."""
    return Pimc(worlds=3, nodes=5), FlatMonteCarlo(worlds=2), Champion(effort=0.02)


def walk_views(rules: str, num_games: int, seed: int) -> Iterator[ViewBatch]:
    """Yield the movers' views at every decision of random games, from the deal to the end."""
    games = GameBatch(num_games, rules, seed=seed)
    while not games.done.all():
        rows = np.flatnonzero(~games.done)
        yield games.views(rows=rows)
        games.step(games.random_actions(rows), rows=rows)


def mixed_views(rules: str, num_games: int, seed: int) -> ViewBatch:
    """Return one view of each of many games, at decisions from the deal to the end."""
    games = GameBatch(num_games, rules, seed=seed)
    longest = games.rules.stock_size + 8
    for decision in range(longest):
        rows = np.flatnonzero(~games.done & (np.arange(num_games) % longest > decision))
        games.step(games.random_actions(rows), rows=rows)
    return games.views(rows=np.flatnonzero(~games.done))


def one_view(game: Game) -> ViewBatch:
    """Return the mover's view of one game."""
    return GameBatch.from_state(game._state.copy(), game.rules).views()


def repeated_view(game: Game, draws: int, seed: int) -> ViewBatch:
    """Return one decision many times over, each with random bits of its own."""
    views = one_view(game).take(np.zeros(draws, np.int64))
    views.random_bits = np.random.default_rng(seed).integers(2**64, size=draws, dtype=np.uint64)
    return views


# Whole games ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", FULL_RULES + SMALL_DECKS)
def test_every_action_is_legal_from_the_deal_to_the_end(rules: str) -> None:
    phases = set()
    for agent in players():
        games = GameBatch(4 if rules in FULL_RULES else 12, rules, seed=31)
        while not games.done.all():
            rows = np.flatnonzero(~games.done)
            views = games.views(rows=rows)
            before = views.records.tobytes(), views.random_bits.tobytes(), views.players.tobytes()
            actions = agent.act(views)
            after = views.records.tobytes(), views.random_bits.tobytes(), views.players.tobytes()
            assert before == after, f"{agent.name} changed its views"
            assert actions.shape == rows.shape
            assert actions.dtype == np.int64
            assert views.legal[np.arange(len(views)), actions].all(), agent.name
            phases.update(views.records["phase"].tolist())
            games.step(actions, rows=rows)
    assert {Phase.LEFT, Phase.RIGHT} <= phases
    # With so few ranks and so many cards in hand nobody is blocked.
    assert Phase.DISCARD in phases or "ranks=4,suits=4" in rules


@pytest.mark.parametrize("rules", ["classic", "exchange(ranks=6,suits=2,hand_size=3)"])
def test_a_time_limit_plays_legally(rules: str) -> None:
    agent = make_agent("pimc:seconds=0.0005")
    assert isinstance(agent, Pimc)
    for views in walk_views(rules, 2, seed=32):
        assert views.legal[np.arange(len(views)), agent.act(views)].all()
        assert (np.isnan(agent.values(views)) == ~views.legal).all()


# What has a say and what has none ---------------------------------------------------------------


@pytest.mark.parametrize("rules", FULL_RULES + SMALL_DECKS)
def test_games_with_the_same_view_get_the_same_answer(rules: str) -> None:
    views = mixed_views(rules, 48 if rules in FULL_RULES else 24, seed=33)
    worlds = views.determinize(3)
    same = worlds.views(players=np.repeat(views.players, 3))
    same.random_bits = np.repeat(views.random_bits, 3)
    hidden = worlds.hands[np.arange(len(same)), 1 - same.players].reshape(-1, 3)
    assert (hidden != hidden[:, :1]).any(), "the worlds never differed"
    for agent in players():
        actions = agent.act(views)
        assert (agent.act(same) == np.repeat(actions, 3)).all(), agent.name
        values = agent.values(views)
        assert agent.values(same).tobytes() == np.repeat(values, 3, axis=0).tobytes(), agent.name


@pytest.mark.parametrize("rules", FULL_RULES + SMALL_DECKS[:1])
def test_what_stands_in_erased_places_has_no_say(rules: str) -> None:
    # A view holds nothing there; were anything left, it would not be looked at.
    views = mixed_views(rules, 40 if rules in FULL_RULES else 160, seed=34)
    records = views.records.copy()
    rng = np.random.default_rng(34)
    records["rng"] = rng.integers(2**64, size=records["rng"].shape, dtype=np.uint64)
    deck_size = views.rules.deck_size
    records["stock"] = rng.integers(deck_size, size=records["stock"].shape)
    blocked = 0
    for record, player in zip(records, views.players.tolist(), strict=True):
        if record["fresh"][1 - player] != NO_CARD:
            record["fresh"][1 - player] = rng.integers(deck_size)
            blocked += 1
        if not views.rules.open_discards:
            record["discard"][1 - player] = rng.integers(deck_size)
    assert blocked > 0
    scribbled = ViewBatch(views.rules, records, views.players, views.random_bits)
    for agent in players():
        assert (agent.act(scribbled) == agent.act(views)).all(), agent.name
        assert agent.values(scribbled).tobytes() == agent.values(views).tobytes(), agent.name


@pytest.mark.parametrize("rules", [*VARIANTS, "classic(open_discards=False)", *SMALL_DECKS[-4:]])
def test_neighbours_have_no_say(rules: str) -> None:
    views = mixed_views(rules, 48, seed=35)
    order = np.random.default_rng(35).permutation(len(views))
    half = len(views) // 2
    for agent in (*players(), Pimc(worlds=24, nodes=40)):
        with global_generators_seeded(35):
            actions, values = agent.act(views), agent.values(views)
        assert (agent.act(views) == actions).all(), "asked again"
        shuffled = views.take(order)
        assert (agent.act(shuffled) == actions[order]).all(), agent.name
        assert agent.values(shuffled).tobytes() == values[order].tobytes(), agent.name
        parts = [views.take(np.arange(half)), views.take(np.arange(half, len(views)))]
        assert np.concatenate([agent.act(part) for part in parts]).tolist() == actions.tolist()
        for row in order[:5]:
            alone = views.take(np.array([row]))
            fresh = make_agent(agent.name)
            assert fresh.act(alone)[0] == actions[row], agent.name
            assert fresh.values(alone).tobytes() == values[row].tobytes(), agent.name


def test_random_bits_do_have_a_say() -> None:
    views = repeated_view(Game("classic", seed=36), 40, seed=36)
    for agent in (Pimc(worlds=2, nodes=5), FlatMonteCarlo(worlds=2)):
        assert len(np.unique(agent.values(views), axis=0)) > 20


# Against everything that can be -----------------------------------------------------------------


def walk(rules: Rules, rng: random.Random) -> Iterator[tuple[Game, ReferenceGame]]:
    """Yield every decision of a random game, in the engine and in the reference."""
    deck = random_deck(rng, rules.deck_size)
    game, reference = Game.from_deck(deck, rules), ReferenceGame(deck, **asdict(rules))
    while not game.done:
        yield game, reference
        legal = reference.legal_actions()
        action = legal[-1] if rng.random() < 0.3 else rng.choice(legal)
        game.step(action)
        reference.step(action)


def positions(
    rules: Rules, num_games: int, rng: random.Random
) -> Iterator[tuple[Game, ReferenceGame]]:
    """Yield every decision before exhaustion of some random games."""
    for _ in range(num_games):
        for game, reference in walk(rules, rng):
            if not reference.exhausted:
                yield game, reference


def in_world(reference: ReferenceGame, world: Any) -> ReferenceGame:
    """Return the game that it would be in another world that its mover takes for possible."""
    hand, _, stock, pile = world
    other = 1 - reference.to_move
    game = deepcopy(reference)
    game.hands[other] = sorted(hand)
    game.stock = list(stock)
    if pile is not None:
        game.discards[other] = list(pile)
    return game


def perfect_ending(game: ReferenceGame, rules: Rules) -> float:
    """Return what player 0 gets of a game by perfect play after exhaustion; NaN before it."""
    if game.done:
        return game.returns[0]
    if not game.exhausted:
        return nan
    mover = game.to_move
    hands = [frozenset(hand) for hand in game.hands]
    table = (game.table[0], game.table[1])
    value = best_result(rules, hands[mover], hands[1 - mover], table)
    return value if mover == 0 else -value


@lru_cache(maxsize=200_000)
def random_ending(rules: Rules, mine: Hand, other: Hand, table: Couple) -> float:
    """Return what the player on turn gets on average, when both play evenly to the end."""
    if not mine or not other:
        return (len(other) > len(mine)) - (len(other) < len(mine))
    couples = legal_couples(mine, table, rules.variant, rules.ranks)
    if couples:
        lefts = Counter(left for left, _ in couples)
        return sum(
            -random_ending(rules, other, mine - set(couple), couple) / lefts[couple[0]]
            for couple in couples
        ) / len(lefts)
    if rules.blocked == "discard":
        return sum(-random_ending(rules, other, mine - {out}, table) for out in mine) / len(mine)
    if legal_couples(other, table, rules.variant, rules.ranks):
        return -random_ending(rules, other, mine, table)
    return (len(other) > len(mine)) - (len(other) < len(mine))


def kept_apart(hand: list[int], pile: list[int], ranks: int) -> list[int]:
    """Return the cards of a hand that give no pair away, as `apart` says."""
    fresh = [held for held in hand if held % ranks not in {laid % ranks for laid in pile}]
    counts = Counter(held % ranks for held in hand)
    return [held for held in fresh if counts[held % ranks] == 1] or fresh or hand


def rollout_actions(game: ReferenceGame, rules: Rules, to_the_end: bool) -> list[int]:
    """Return the actions among which a rollout draws evenly."""
    actions = game.legal_actions()
    if game.phase == "DISCARD" and rules.variant == "exchange" and not to_the_end:
        return kept_apart(actions, game.discards[game.to_move], rules.ranks)
    if game.phase == "REFILL" and not to_the_end:
        return [game.stock_action]
    return actions


def even_play(game: ReferenceGame, rules: Rules, to_the_end: bool) -> float:
    """Return what player 0 gets of a rollout on average."""
    if game.done:
        return game.returns[0]
    if game.exhausted:
        assert game.phase != "RIGHT"
        if not to_the_end:
            return perfect_ending(game, rules)
        hands = [frozenset(hand) for hand in game.hands]
        mover = game.to_move
        table = (game.table[0], game.table[1])
        value = random_ending(rules, hands[mover], hands[1 - mover], table)
        return value if mover == 0 else -value
    actions = rollout_actions(game, rules, to_the_end)
    total = 0.0
    for action in actions:
        played = deepcopy(game)
        played.step(action)
        total += even_play(played, rules, to_the_end)
    return total / len(actions)


def moves_of(reference: ReferenceGame) -> list[tuple[int, ...]]:
    """Return all that the mover can do, couples whole."""
    if reference.phase == "LEFT":
        return sorted(reference.couples(reference.to_move))
    return [(action,) for action in reference.legal_actions()]


def averages(
    reference: ReferenceGame, result: Callable[[ReferenceGame], float]
) -> dict[int, float]:
    """Return each action's average result for the mover, over all worlds, by its best partner."""
    worlds = reference.worlds(reference.to_move)
    sign = 1 if reference.to_move == 0 else -1
    found: dict[int, float] = {}
    for move in moves_of(reference):
        total = 0.0
        for world in worlds:
            game = in_world(reference, world)
            for action in move:
                game.step(action)
            total += result(game)
        mean = sign * total / len(worlds)
        best = found.get(move[0], -2.0)
        found[move[0]] = nan if isnan(mean) or isnan(best) else max(best, mean)
    return found


def orders_of(reference: ReferenceGame) -> int:
    """Return how many orders the stock can have by what the mover knows, discards being open."""
    return perm(len(reference.unseen(reference.to_move)), len(reference.stock))


def num_worlds(reference: ReferenceGame) -> int:
    """Return how many worlds the mover takes for possible, before asking who was blocked."""
    other = 1 - reference.to_move
    unseen = len(reference.unseen(reference.to_move))
    return factorial(unseen) // factorial(len(reference.hands[other]) - len(reference.known[other]))


@pytest.mark.parametrize("blocked", ["pass", "discard"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_values_are_exact_where_an_action_draws_the_last_card(variant: str, blocked: str) -> None:
    rng = random.Random(f"exact {variant} {blocked}")
    kinds: Counter[str] = Counter()
    for deck in TINY_DECKS:
        rules = Rules.parse(f"{variant}({deck},blocked={blocked})")
        for game, reference in positions(rules, 40, rng):
            # Few enough orders that nothing is dropped before the last one.
            if len(reference.stock) > 2 or orders_of(reference) > ROUND:
                continue
            expected = averages(reference, partial(perfect_ending, rules=rules))
            told = {value for value in expected.values() if not isnan(value)}
            if not told:
                continue
            agent = Pimc(worlds=orders_of(reference), nodes=UNLIMITED)
            (values,) = agent.values(one_view(game))
            for action, value in expected.items():
                if not isnan(value):
                    assert values[action] == pytest.approx(value, abs=1e-12), (action, str(game))
            if not any(isnan(value) for value in expected.values()):
                (action,) = agent.act(one_view(game))
                assert expected[action] == pytest.approx(max(told), abs=1e-12), str(game)
            kinds[f"{reference.phase} {len(reference.stock)}"] += 1
            kinds["after a block"] += reference.blocked_flag[1 - reference.to_move]
            kinds["with known cards"] += bool(reference.known[1 - reference.to_move])
            kinds["with a choice"] += len(told) > 1
    wanted = ["DISCARD 1", "LEFT 1", "RIGHT 1", "after a block", "with a choice"]
    if variant == "exchange":
        wanted += ["LEFT 2", "RIGHT 2"]
    else:
        wanted += ["REFILL 1", "with known cards"]
    assert min(kinds[kind] for kind in wanted) >= 4, kinds
    assert kinds["LEFT 2"] >= 1, kinds


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("player", ["pimc", "mc"])
def test_values_are_averages_over_even_play(player: str, variant: str, opened: bool) -> None:
    rng = random.Random(f"even {player} {variant} {opened}")
    draws = 400
    kinds: Counter[str] = Counter()
    for deck, blocked in zip(TINY_DECKS, ["pass", "discard"] * 2, strict=True):
        rules = Rules.parse(f"{variant}({deck},open_discards={opened},blocked={blocked})")
        for game, reference in positions(rules, 12, rng):
            orders = orders_of(reference)
            kind = f"{deck} {reference.phase} {orders > ROUND}"
            if not 2 <= len(reference.stock) <= 3 or kinds[kind] >= 2:
                continue
            if len(reference.legal_actions()) == 1 or num_worlds(reference) > 60:
                continue
            kinds[kind] += 1
            kinds[reference.phase] += 1
            kinds["enumerated" if opened and orders <= ROUND else "drawn"] += 1
            expected = averages(
                reference, partial(even_play, rules=rules, to_the_end=player == "mc")
            )
            kinds["with a choice"] += len(set(expected.values())) > 1
            # Many rows of few worlds each: no row drops anything before its last world.
            worlds = min(orders, ROUND)
            agent = Pimc(worlds, UNLIMITED) if player == "pimc" else FlatMonteCarlo(worlds)
            values = agent.values(repeated_view(game, draws, seed=37))
            partners = Counter(move[0] for move in moves_of(reference))
            for action, value in expected.items():
                if partners[action] == 1:  # the best of several by noisy values looks better
                    found = values[:, action]
                    error = found.std() / draws**0.5
                    assert abs(found.mean() - value) < 5 * error + 1e-3, (action, str(game))
    assert kinds["drawn"] >= 4
    assert kinds["with a choice"] >= 2
    if opened:
        assert kinds["enumerated"] >= 4
        assert min(kinds["LEFT"], kinds["DISCARD"]) >= 2, kinds
        assert kinds["REFILL"] >= 2 or variant == "exchange"


# The orders of a small stock --------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_order_of_the_stock_is_laid_once(variant: str) -> None:
    rng = random.Random(f"orders {variant}")
    kinds: Counter[str] = Counter()
    for deck in TINY_DECKS:
        rules = Rules.parse(f"{variant}({deck})")
        table = rule_table(rules)[0]
        for game, reference in positions(rules, 15, rng):
            mover, stock = reference.to_move, len(reference.stock)
            orders = orders_of(reference)
            if orders > 120:
                continue
            expected = Counter(
                (mask_of(hand), order) for hand, _, order, _ in reference.worlds(mover)
            )
            record = one_view(game).records[0]
            assert count_orders(record, table, mover) == orders
            known = mask_of(reference.known[1 - mover])
            found: Counter[tuple[int, tuple[int, ...]]] = Counter()
            seen_orders = set()
            for number in range(orders):
                world = one_view(game).records
                weight = lay_order(world[0], table, mover, number)
                order = tuple(world["stock"][0, :stock][::-1].tolist())
                hand = int(world["hand"][0, 1 - mover])
                seen_orders.add(order)
                assert hand & known == known
                if weight:
                    found[hand, order] = weight
                    filled = Game._of(world, rules)
                    # Every card is in one place, and what has been seen is where it was.
                    assert Game.from_json(filled.to_json()).to_json() == filled.to_json()
                    assert filled.hand(mover) == game.hand(mover)
                    assert (filled.table, filled.buried) == (game.table, game.buried)
                    assert [filled.discard(p) for p in (0, 1)] == [game.discard(p) for p in (0, 1)]
            assert len(seen_orders) == orders
            assert set().union(*seen_orders) == set(reference.unseen(mover))
            assert found == expected, str(game)
            kinds["after a block"] += reference.blocked_flag[1 - mover]
            kinds["impossible"] += len(found) < orders
            kinds["heavier"] += max(found.values()) > 1
            kinds["known"] += known != 0
            kinds[f"stock {stock}"] += 1
    wanted = ["after a block", "impossible", "heavier", "stock 1", "stock 2", "stock 3"]
    if variant == "classic":
        wanted.append("known")
    assert min(kinds[kind] for kind in wanted) >= 4, kinds


@pytest.mark.parametrize("variant", VARIANTS)
def test_orders_are_counted_only_where_the_stock_and_one_hand_hide(variant: str) -> None:
    rng = random.Random(f"closed {variant}")
    rules = Rules.parse(f"{variant}(ranks=8,suits=2,hand_size=2,open_discards=False)")
    table = rule_table(rules)[0]
    empty = 0
    for game, reference in positions(rules, 20, rng):
        mover = reference.to_move
        record = one_view(game).records[0]
        if reference.discards[1 - mover]:
            assert count_orders(record, table, mover) == 0
        else:
            orders = perm(len(reference.unseen(mover)), len(reference.stock))
            assert count_orders(record, table, mover) == (orders if orders <= 1 << 20 else 0)
            empty += 1
    assert empty >= 10


@pytest.mark.parametrize("variant", VARIANTS)
def test_orders_are_too_many_in_a_full_deck_and_one_when_nothing_hides(variant: str) -> None:
    for views in walk_views(variant, 8, seed=38):
        table = rule_table(views.rules)[0]
        for record, player in zip(views.records, views.players.tolist(), strict=True):
            orders = count_orders(record, table, player)
            if record["stock_size"] > 7:
                assert orders == 0
            elif record["stock_size"] == 0:
                assert orders == 1
                before = record.tobytes()
                assert lay_order(record, table, player, 0) == 1
                assert record.tobytes() == before


# Values and choices -----------------------------------------------------------------------------


@pytest.mark.parametrize("rules", FULL_RULES + SMALL_DECKS)
def test_values_are_numbers_where_legal_and_the_best_is_chosen(rules: str) -> None:
    views = mixed_views(rules, 48, seed=39)
    # No more worlds than before the first look at who has fallen behind.
    for agent in (Pimc(worlds=ROUND - 1, nodes=20), FlatMonteCarlo(worlds=ROUND - 1)):
        values, actions = agent.values(views), agent.act(views)
        assert len(np.unique(values[views.legal])) >= 3
        assert values.shape == (len(views), views.rules.num_actions)
        assert values.dtype == np.float64
        assert (np.isnan(values) == ~views.legal).all()
        assert (np.abs(values[views.legal]) <= 1).all()
        assert (values[np.arange(len(views)), actions] == np.nanmax(values, axis=1)).all()
    values = Champion(effort=0.02).values(views)
    assert (np.isnan(values) == ~views.legal).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_exhausted_positions_are_looked_at_one_move_deep(variant: str) -> None:
    agent = Pimc(worlds=1, nodes=UNLIMITED)
    checked = 0
    for rules in (text for text in SMALL_RULES if text.startswith(variant)):
        for views in walk_views(rules, 20, seed=40):
            for row in np.flatnonzero(views.records["stock_size"] == 0):
                view = views.take(np.array([row]))
                game = Game._of(view.records.copy(), view.rules)
                results = move_results(game)
                place = 1 if game.phase == Phase.RIGHT else 0
                (values,) = agent.values(view)
                for action in game.legal_actions():
                    best = max(result for move, result in results.items() if move[place] == action)
                    assert values[action] == best, str(game)
                assert agent.act(view)[0] in best_actions(game, results)
                checked += 1
    assert checked > 100


# Who is dropped ---------------------------------------------------------------------------------


def drop(values: Any, alive: Any = None) -> list[bool]:
    """Return which candidates are kept after these values, one row a world."""
    samples = np.array(values, np.float64)
    count = samples.shape[1]
    kept = np.ones(count, np.bool_) if alive is None else np.array(alive)
    left = drop_losers(count, kept, samples.sum(axis=0), samples.T @ samples, len(samples))
    assert left == kept.sum()
    return kept.tolist()


def test_who_is_clearly_behind_is_dropped() -> None:
    rng = np.random.default_rng(41)
    noise = rng.choice([-1.0, 0.0, 1.0], size=(32, 1))
    # All worlds move all candidates alike, so even a lead that is small beside the noise is sure.
    assert drop(0.2 * noise + np.array([0.0, 0.7, -0.5])) == [False, True, False]
    assert drop(0.2 * noise + np.array([0.7, 0.65, -0.5])) == [True, True, False]


def test_who_may_be_as_good_is_kept() -> None:
    assert drop(np.full((64, 3), 0.25)) == [True, True, True]
    # Behind by 0.25 on average, with a standard error of about 0.35.
    assert drop([[1.0, -1.0]] * 9 + [[-1.0, 1.0]] * 7) == [True, True]
    # Behind by as much, and surely so after many more worlds.
    assert drop(([[1.0, -1.0]] * 9 + [[-1.0, 1.0]] * 7) * 64) == [True, False]
    # Two worlds without any noise prove little.
    assert drop([[0.1, -0.1]] * 2) == [True, True]


def test_the_leader_is_never_dropped_and_the_dropped_stay_so() -> None:
    rng = np.random.default_rng(42)
    dropped = 0
    for _ in range(300):
        count = int(rng.integers(1, 7))
        values = rng.choice([-1.0, 0.0, 1.0], size=(16, count)) / 2 + rng.random(count) - 0.5
        alive = rng.random(count) < 0.7
        alive[rng.integers(count)] = True
        totals = np.where(alive, values.sum(axis=0), 99.0)
        best = leader(count, alive, totals)
        assert alive[best]
        assert totals[best] == totals[alive].max()
        kept = drop(np.where(alive, values, 99.0), alive)
        assert kept[best]
        assert not (np.array(kept) & ~alive).any()
        dropped += int(alive.sum()) - sum(kept)
    assert dropped > 100


# What rollouts lay down -------------------------------------------------------------------------


def apart_of(hand: list[int], pile: list[int], rules: Rules) -> list[int]:
    """Return what `apart` keeps of player 0's hand."""
    record = np.zeros(1, STATE)
    record["hand"][0] = mask_of(hand), 0
    record["discarded"][0] = mask_of(pile), 0
    return list(cards_of(apart(record[0], rule_table(rules)[0], 0)))


@pytest.mark.parametrize(
    ("hand", "pile", "kept"),
    [
        ("AC 5D 9H", "", "AC 5D 9H"),
        ("AC 5D 9H", "5S", "AC 9H"),
        ("AC AD 9H", "", "9H"),
        ("AC AD 9H", "9C", "AC AD"),
        ("AC AD AH AS", "KC", "AC AD AH AS"),
        ("AC 5D", "AS 5H KD", "AC 5D"),
        ("KC KD QH", "KS", "QH"),
        ("KC KD QH QS TC", "", "TC"),
        ("2C 3C 4C", "2D 3D", "4C"),
    ],
)
def test_apart_on_hands_worked_out_by_hand(hand: str, pile: str, kept: str) -> None:
    assert apart_of(cards(hand), cards(pile), Rules("exchange")) == sorted(cards(kept))


@pytest.mark.parametrize("sizes", ["", "(ranks=5,suits=3,hand_size=3)", "(suits=1)"])
def test_apart_is_what_its_docstring_says(sizes: str) -> None:
    rules = Rules.parse(f"exchange{sizes}".replace("(suits=1)", "(suits=1,hand_size=4)"))
    rng = random.Random(43)
    for _ in range(300):
        deck = random_deck(rng, rules.deck_size)
        size = rng.randint(1, 6)
        hand, pile = deck[:size], deck[size : size + rng.randint(0, 6)]
        assert apart_of(hand, pile, rules) == sorted(kept_apart(hand, pile, rules.ranks))


# Leaf values ------------------------------------------------------------------------------------


def leaf_of(game: Game, nodes: int, weights: np.ndarray | None = None) -> float:
    """Return the leaf value of a game for player 0, from an empty memory."""
    if weights is None:
        weights = weights_for(game.rules.variant, game.rules.blocked)
    table = rule_table(game.rules)[0]
    memory = Workspace(2**12).memory
    return leaf_value(memory, table, game._record, nodes, weights, np.empty(FEATURES))


def bounds_of(game: Game, nodes: int) -> tuple[int, int]:
    """Return the proven bounds for player 0, from an empty memory."""
    low, high = position_bounds(
        Workspace(2**12).memory, rule_table(game.rules)[0], game._record, False, nodes
    )
    return (low, high) if game.to_move == 0 else (-high, -low)


def exhausted_games(rules: str, num_games: int, seed: int, turns: int = 0) -> list[Game]:
    """Return games at the start of a turn after exhaustion, some turns later for some."""
    games = GameBatch(num_games, rules, seed=seed)
    while (running := ~games.done & ~games.exhausted).any():
        games.step(games.random_actions(running), rows=running)
    later = np.arange(num_games) % (turns + 1)
    for turn in range(turns):
        for phase in (Phase.LEFT, Phase.RIGHT):
            rows = np.flatnonzero((games.phase == phase) & (later > turn))
            games.step(games.random_actions(rows), rows=rows)
    return [game for game in (games[row] for row in range(num_games)) if not game.done]


@pytest.mark.parametrize("rules", SMALL_RULES)
def test_a_leaf_is_exact_where_it_is_settled(rules: str) -> None:
    results = set()
    for game in exhausted_games(rules, 150, seed=44, turns=2):
        value = value_for_player_0(game)
        assert leaf_of(game, UNLIMITED) == value, str(game)
        for nodes in (0, 2, 10):
            low, high = bounds_of(game, nodes)
            found = leaf_of(game, nodes)
            assert low <= value <= high
            assert low <= found <= high
            if low == high:
                assert found == value
            elif "blocked" in rules:
                assert found == (low + high) / 2
        results.add(value)
    assert {-1, 1} <= results


@pytest.mark.parametrize("rules", [*VARIANTS, "classic(blocked=discard)"])
def test_a_leaf_of_a_finished_game_is_its_outcome(rules: str) -> None:
    games = GameBatch(40, rules, seed=45)
    while not games.done.all():
        games.step(games.random_actions())
    results = {leaf_of(games[row], 0) - games[row].returns[0] for row in range(40)}
    assert results == {0.0}
    assert len({game.returns for game in (games[row] for row in range(40))}) >= 2


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_estimate_is_kept_within_its_bounds(variant: str) -> None:
    kinds = set()
    for game in exhausted_games(variant, 60, seed=46, turns=3):
        for nodes in (0, 30):
            low, high = bounds_of(game, nodes)
            estimate = leaf_of(game, nodes)
            assert low <= estimate <= high
            if low < high:
                # Every weight is large: the estimate falls off at one end or the other.
                ends = {leaf_of(game, nodes, np.full(FEATURES, weight)) for weight in (99.0, -99.0)}
                assert ends == {float(low), float(high)}
                assert leaf_of(game, nodes, np.empty(0)) == (low + high) / 2
                kinds.add((low, high))
    assert (-1, 1) in kinds
    assert len(kinds) >= 2


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_leaf_changes_sign_with_the_players_and_nothing_else_changes_it(variant: str) -> None:
    rng = random.Random(47)
    images = symmetries()
    open_ones = 0
    for game in exhausted_games(variant, 40, seed=47, turns=4):
        hands = [game.hand(0), game.hand(1)]
        value = leaf_of(game, 0)
        low, high = bounds_of(game, 0)
        open_ones += low < high
        turned = Game.from_position(
            hands[::-1], game.table, to_move=1 - game.to_move, rules=game.rules
        )
        for nodes in (0, 50):
            assert leaf_of(turned, nodes) == -leaf_of(game, nodes)
        for image in rng.sample(images, 12):
            moved = Game.from_position(
                [[image.card(held) for held in hand] for hand in hands],
                image.couple(game.table),
                to_move=game.to_move,
                rules=game.rules,
            )
            assert leaf_of(moved, 0) == value, (image, str(game))
    assert open_ones >= 20


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_estimate_is_nearer_than_the_middle(variant: str) -> None:
    games = exhausted_games(variant, 200, seed=48, turns=2)
    states = np.concatenate([game._state for game in games])
    lows, highs, _ = solve_states(states, variant, 20_000)
    estimated, middle = [], []
    for game, low, high in zip(games, lows.tolist(), highs.tolist(), strict=True):
        known = bounds_of(game, 100)
        if low == high and known[0] < known[1]:
            exact = low if game.to_move == 0 else -low
            estimated.append((leaf_of(game, 100) - exact) ** 2)
            middle.append((sum(known) / 2 - exact) ** 2)
    assert len(estimated) >= 40
    assert np.mean(estimated) < 0.9 * np.mean(middle)


def test_there_are_weights_only_where_they_were_fitted() -> None:
    for variant in VARIANTS:
        assert weights_for(variant, "pass").shape == (FEATURES,)
        assert weights_for(variant, "discard").size == 0
    assert (weights_for("classic", "pass") != weights_for("exchange", "pass")).any()


# A network that guides the search ---------------------------------------------------------------


@pytest.mark.parametrize("rules", [*VARIANTS, "classic(open_discards=False)"])
def test_the_network_lists_the_moves_that_the_search_tries_in_the_same_order(rules: str) -> None:
    several = 0
    phases = set()
    for views in walk_views(rules, 6, seed=71):
        table = rule_table(views.rules)[0]
        for record, player in zip(views.records, views.players, strict=True):
            candidates = np.empty((MAX_CANDIDATES, 2), np.int64)
            listed = np.empty((MAX_MOVES, 2), np.int64)
            rows = np.empty((MAX_MOVES, WIDTH), np.float32)
            count = list_candidates(record, table, np.int64(player), candidates)
            assert count == list_moves(record, table, np.int64(player), listed, rows)
            assert (candidates[:count] == listed[:count]).all()
            several += count > 1
            phases.add(int(record["phase"]))
    assert several > 100
    assert len(phases) >= 3


def favourites(views: ViewBatch, network: Network) -> list[set[int]]:
    """Return the actions that begin a move which the network likes as well as any, for each row."""
    found = []
    for record, player in zip(views.records, views.players, strict=True):
        listed = np.empty((MAX_MOVES, 2), np.int64)
        rows = np.empty((MAX_MOVES, WIDTH), np.float32)
        scores = np.empty(MAX_MOVES, np.float32)
        table = rule_table(views.rules)[0]
        count = list_moves(record, table, np.int64(player), listed, rows)
        packed = network.packed()[scorer_of(record)]
        buffer = np.empty((3, network.hidden), np.float32)
        score_rows(rows, count, packed, network.hidden, buffer, scores)
        found.append(set(listed[:count, 0][scores[:count] == scores[:count].max()].tolist()))
    return found


@pytest.mark.parametrize("variant", GUIDES)
def test_a_network_that_outweighs_the_search_decides_where_it_is_asked(variant: str) -> None:
    views = mixed_views(variant, 120, seed=72)
    stock = views.records["stock_size"]
    liked = favourites(views, load_network(GUIDES[variant]))
    plain = Pimc(worlds=4, nodes=5).act(views)
    guided = Pimc(worlds=4, nodes=5, prior=1e6, prior_stock=12).act(views)
    always = Pimc(worlds=4, nodes=5, prior=1e6).act(views)
    changed = 0
    for row in range(len(views)):
        # Never after exhaustion, however small the stock may be.
        assert always[row] in liked[row] if stock[row] else always[row] == plain[row]
        assert guided[row] in liked[row] if stock[row] >= 12 else guided[row] == plain[row]
        changed += guided[row] != plain[row]
    assert changed > 10
    assert {0, 11, 12} <= set(stock.tolist())


@pytest.mark.parametrize("variant", GUIDES)
def test_a_light_network_breaks_ties_and_nothing_else(variant: str) -> None:
    views = mixed_views(variant, 120, seed=73)
    views = views.take(views.records["stock_size"] > 0)
    network = Policy(str(GUIDES[variant]), temperature=1)
    shares = network.probabilities(views)
    # Too few worlds for any action to be dropped, so all are tried in the same ones.
    values = Pimc(worlds=2, nodes=20).values(views)
    guided = Pimc(worlds=2, nodes=20, prior=1e-9)
    # Leads are summed over worlds; the sums round by less than they differ.
    ties = 0
    for row, action in enumerate(guided.act(views)):
        best = np.nanmax(values[row])
        assert values[row, action] > best - 1e-7
        even = np.flatnonzero(values[row] > best - 1e-12)
        if len(even) > 1 and views.records["phase"][row] != LEFT:
            ties += 1
            assert shares[row, action] == pytest.approx(shares[row, even].max())
    assert ties > 2


@pytest.mark.parametrize("variant", GUIDES)
def test_values_are_those_of_a_search_without_a_network(variant: str) -> None:
    # An action that a network has had dropped would show what few worlds said of it.
    views = mixed_views(variant, 30, seed=75)
    guided = Pimc(worlds=48, nodes=5, prior=1e6)
    assert guided.values(views).tobytes() == Pimc(worlds=48, nodes=5).values(views).tobytes()


def test_a_search_without_a_network_of_its_own_rules_says_so() -> None:
    views = mixed_views("exchange", 3, seed=74)
    with pytest.raises(ValueError, match=r"prior must be 0 for exchange, got 0\.5"):
        Pimc(prior=0.5).act(views)


# The champion -----------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("network", [True, False])
def test_the_champion_searches_as_deep_as_its_rule_set_asks(variant: str, network: bool) -> None:
    worlds, nodes = CHAMPION[variant]
    weight, least = CHAMPION_PRIOR[variant]
    prior = {"prior": weight, "prior_stock": least} if network else {}
    views = mixed_views(variant, 46, seed=49)
    running = views.take(views.records["stock_size"] > 0)
    for effort in (0.05, 0.1):
        agent = Champion(effort, network)
        pimc = Pimc(max(round(worlds * effort), 1), nodes, **prior)
        assert isinstance(agent, FallibleAgent)
        actions, faults = decide(agent, running)
        assert faults == {}
        assert (actions == pimc.act(running)).all()
        assert agent.values(views).tobytes() == pimc.values(views).tobytes()
        assert agent.decisions == 0
    few = running.take(np.arange(3))
    assert (Champion(network=network).act(few) == Pimc(worlds, nodes, **prior).act(few)).all()
    assert (Champion(1e-9, network).act(few) == Pimc(1, nodes, **prior).act(few)).all()


@pytest.mark.parametrize("rules", SMALL_RULES)
def test_the_champion_gives_away_nothing_after_exhaustion(rules: str) -> None:
    agent = Champion(effort=0.02)
    assert isinstance(agent, Exact)
    choices = 0
    for game, action in decisions(agent, Random(), rules, 80, seed=50):
        results = move_results(game)
        assert action in best_actions(game, results), str(game)
        choices += len(set(results.values())) > 1
    assert choices >= 1
    assert agent.decisions > 20
    assert agent.unproven == 0


# Names and options ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("pimc", f"pimc:worlds={Pimc().worlds}"),
        ("pimc:worlds=5", "pimc:worlds=5"),
        ("pimc:nodes=0,worlds=5", "pimc:worlds=5,nodes=0"),
        (f"pimc:worlds=5,nodes={Pimc().nodes}", "pimc:worlds=5"),
        ("pimc:seconds=0.001", "pimc:seconds=0.001"),
        ("pimc:seconds=2,nodes=7", "pimc:seconds=2,nodes=7"),
        ("pimc:worlds=5,prior=0.5", "pimc:worlds=5,prior=0.5"),
        ("pimc:prior_stock=9,prior=2,worlds=5", "pimc:worlds=5,prior=2,prior_stock=9"),
        ("pimc:worlds=5,prior=0,prior_stock=9", "pimc:worlds=5"),
        ("mc", "mc:worlds=10"),
        ("mc:worlds=3", "mc:worlds=3"),
        ("champion", "champion"),
        ("champion:effort=1.0", "champion"),
        ("champion:effort=0.02", "champion:effort=0.02"),
        ("champion:effort=2", "champion:effort=2"),
        ("champion:network=true", "champion"),
        ("champion:network=false", "champion:network=False"),
        ("champion:network=False,effort=0.02", "champion:effort=0.02,network=False"),
        ("pimc:worlds=2+exact", "pimc:worlds=2+exact"),
    ],
)
def test_a_name_builds_an_equal_player(text: str, name: str) -> None:
    agent = make_agent(text)
    again = make_agent(agent.name)
    assert agent.name == again.name == name
    assert type(agent) is type(again)
    if isinstance(agent, Pimc) and isinstance(again, Pimc):
        assert (agent.nodes, agent.seconds) == (again.nodes, again.seconds)
        assert (agent.prior, agent.prior_stock) == (
            again.prior,
            again.prior_stock,
        ) or not agent.prior
        if agent.seconds is not None:
            return
        assert agent.worlds == again.worlds
    rules = "classic" if getattr(agent, "prior", 0) else "exchange"
    views = mixed_views(f"{rules}(ranks=6,suits=2,hand_size=3)", 20, seed=51)
    assert (agent.act(views) == again.act(views)).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pimc:worlds=0", "worlds.* 0"),
        ("pimc:worlds=1.5", "worlds.* 1.5"),
        ("pimc:worlds=True", "worlds.* True"),
        ("pimc:worlds=many", "worlds.* 'many'"),
        ("pimc:nodes=-1", "nodes.* -1"),
        ("pimc:nodes=2.0", "nodes.* 2.0"),
        ("pimc:nodes=False", "nodes.* False"),
        ("pimc:seconds=0", "seconds.* 0"),
        ("pimc:seconds=-1.5", "seconds.* -1.5"),
        ("pimc:seconds=nan", "seconds.* 'nan'"),
        ("pimc:seconds=1e999", "seconds.* inf"),
        ("pimc:seconds=True", "seconds.* True"),
        ("pimc:depth=3", "depth"),
        ("pimc:prior=-0.5", "prior.* -0.5"),
        ("pimc:prior=True", "prior.* True"),
        ("pimc:prior=1e999", "prior.* inf"),
        ("pimc:prior=much", "prior.* 'much'"),
        ("pimc:prior_stock=0", "prior_stock.* 0"),
        ("pimc:prior_stock=1.5", "prior_stock.* 1.5"),
        ("mc:worlds=0", "worlds.* 0"),
        ("mc:prior=1", "prior"),
        ("champion:network=1", "network.* 1"),
        ("champion:network=FILE", "network.* 'FILE'"),
        ("mc:nodes=5", "nodes"),
        ("champion:effort=0", "effort.* 0"),
        ("champion:effort=-2", "effort.* -2"),
        ("champion:effort=True", "effort.* True"),
        ("champion:effort=much", "effort.* 'much'"),
        ("champion:effort=1e999", "effort.* inf"),
        ("champion:worlds=3", "worlds"),
    ],
)
def test_bad_options_are_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_agent(text)


def test_what_is_no_number_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"seconds.* nan"):
        Pimc(seconds=nan)
    with pytest.raises(ValueError, match=r"effort.* nan"):
        Champion(nan)
    with pytest.raises(ValueError, match=r"effort.* None"):
        Champion(None)  # type: ignore[arg-type]


# Strength ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_searching_beats_random(variant: str) -> None:
    deep = play_match("pimc:worlds=16,nodes=30", "random", variant, deals=60, seed=52)
    flat = play_match("mc:worlds=10", "random", variant, deals=60, seed=52)
    assert deep.score > 0.6, deep
    assert flat.score > 0.55, flat
    better = play_match("pimc:worlds=16,nodes=30", "mc:worlds=10", variant, deals=60, seed=53)
    assert better.score > 0.5, better
