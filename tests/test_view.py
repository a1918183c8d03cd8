"""What a player may know: nothing hidden gets out, and `determinize` draws evenly from the rest.

The hidden cards are exchanged here by the tests' own code on the JSON of a game, so that a fault of
`determinize` cannot hide a leak; worlds are checked against the enumeration in `reference_game`.
"""

from __future__ import annotations

import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from helpers import card, name, random_deck
from players import Even, First, global_generators_seeded
from reference_game import ReferenceGame, legal_couples
from scipy.stats import binomtest, chisquare, norm

import counterweight_env
from counterweight_env import Game, GameBatch, Phase, Rules, View, ViewBatch
from counterweight_env.envs.single import CounterweightEnv
from counterweight_env.envs.vector import CounterweightVectorEnv
from counterweight_env.render import view_text

SWITCHES = [(opened, blocked) for opened in (True, False) for blocked in ("pass", "discard")]
RULE_SETS = [
    Rules(variant, open_discards=opened, blocked=blocked, **sizes)
    for variant in ("classic", "exchange")
    for opened, blocked in SWITCHES
    for sizes in ({}, {"ranks": 6, "suits": 2, "hand_size": 3})
]
PLAYERS = (0, 1)
# Chance decides whether a test of evenness fails; with fixed seeds it decides once.
LEAST_P = 1e-3


# --- States from real play ----------------------------------------------------------------------


def kind_of(data: dict[str, Any]) -> tuple[Any, ...]:
    """Say what is special about a state, so that every kind is tried."""
    return (
        data["phase"],
        data["refills"],
        not data["stock"],
        tuple(drawn is not None for drawn in data["drawn_since_blocked"]),
        tuple(bool(known) and bool(data["stock"]) for known in data["known"]),
        data["to_move"],
    )


@cache
def states_of(rules: Rules, per_kind: int = 2) -> tuple[str, ...]:
    """Play random games and return the JSON of a few states of every kind met."""
    rng = random.Random(f"states of {rules}")
    found: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for seed in range(3000):
        if seed >= 60 and not missing_kinds(rules, list(found)):
            break
        game = Game(rules, seed=seed)
        while True:
            text = game.to_json()
            kept = found[kind_of(json.loads(text))]
            if len(kept) < per_kind:
                kept.append(text)
            if game.done:
                break
            legal = game.legal_actions()
            # Reclaiming makes cards known, so it is done more often than by an even draw.
            reclaims = legal[-1] == rules.reclaim_action and rng.random() < 0.7
            game.step(legal[-1] if reclaims else rng.choice(legal))
    assert not missing_kinds(rules, list(found)), f"{rules}: no states of some kinds"
    return tuple(text for texts in found.values() for text in texts)


def missing_kinds(rules: Rules, kinds: list[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """Return what the leak tests are to cover and the sample lacks, as (mover, what)."""
    wanted: set[tuple[Any, ...]] = {(-1, "OVER", 0, True)}
    found = {(kind[5], *kind[:3]) for kind in kinds}
    classic = rules.variant == "classic"
    for mover in PLAYERS:
        for exhausted in (False, True):
            wanted |= {(mover, "LEFT", 0, exhausted), (mover, "RIGHT", 0, exhausted)}
        wanted |= {(mover, "DISCARD", 0, False), (mover, "blocked")}
        if rules.blocked == "discard":
            wanted.add((mover, "DISCARD", 0, True))
        if classic:
            wanted |= {(mover, "REFILL", 2, False), (mover, "REFILL", 1, False)}
        if classic and rules.open_discards:
            wanted |= {(mover, "known")}
    for kind in kinds:
        found |= {(player, "blocked") for player in PLAYERS if kind[3][player]}
        found |= {(player, "known") for player in PLAYERS if kind[4][player]}
    return wanted - found


# --- Another game that a player cannot tell from this one ---------------------------------------


def other_assignment(text: str, player: int, rng: random.Random) -> str:
    """Exchange what `player` cannot know for something else that agrees with what they know."""
    data = json.loads(text)
    rules = Rules.parse(data["rules"])
    ranks, opponent = rules.ranks, 1 - player
    data["rng"] = [f"{rng.getrandbits(64):016x}" for _ in range(2)]
    hand = {card(text, ranks) for text in data["hands"][opponent]}
    table = [card(text, ranks) for text in data["table"]]

    if data["stock"]:
        known = {card(text, ranks) for text in data["known"][opponent]}
        pile = [card(text, ranks) for text in data["discards"][opponent]]
        stock = [card(text, ranks) for text in data["stock"]]
        closed = not rules.open_discards
        pool = sorted(hand - known) + stock + (pile if closed else [])
        size = len(hand - known)
        was_blocked = data["drawn_since_blocked"][opponent] is not None
        while True:
            rng.shuffle(pool)
            hand, rest = known | set(pool[:size]), pool[size:]
            if closed:
                pile, rest = rest[: len(pile)], rest[len(pile) :]
            if not was_blocked:
                break
            drawn = rng.choice(pool[:size])
            then = hand - {drawn} | {pile[-1]}
            if not legal_couples(then, table, rules.variant, ranks):
                data["drawn_since_blocked"][opponent] = name(drawn, ranks)
                break
        data["hands"][opponent] = [name(held, ranks) for held in sorted(hand)]
        data["discards"][opponent] = [name(laid, ranks) for laid in pile]
        data["stock"] = [name(hidden, ranks) for hidden in rest]

    if data["to_move"] == opponent and data["phase"] != "REFILL":
        # What the opponent is about to do, or is half done with, is theirs alone.
        lefts = sorted({left for left, _ in legal_couples(hand, table, rules.variant, ranks)})
        data["phase"], data["chosen"] = "DISCARD", None
        if lefts:
            data["phase"] = rng.choice(("LEFT", "RIGHT"))
            if data["phase"] == "RIGHT":
                data["chosen"] = name(rng.choice(lefts), ranks)
    return json.dumps(data)


VIEW_PROPERTIES = [
    "player",
    "hand",
    "table",
    "buried",
    "own_discard",
    "opponent_discard",
    "opponent_discard_size",
    "unseen",
    "known_in_opponent_hand",
    "stock_size",
    "exhausted",
    "opponent_hand_size",
    "phase",
    "to_move",
    "dealer",
    "turn",
    "chosen",
    "second_refill",
    "opponent_blocked",
    "done",
]


class Shells:
    """The environments of one rule set, into which the tests put their states."""

    def __init__(self, rules: Rules) -> None:
        self.aec = counterweight_env.env(rules=rules, render_mode="ansi")
        self.aec.reset(seed=0)
        options: dict[str, Any] = {"rules": rules, "opponent": First(), "render_mode": "ansi"}
        self.single = [CounterweightEnv(seat=seat, **options) for seat in PLAYERS]
        self.vector = [CounterweightVectorEnv(1, seat=seat, **options) for seat in PLAYERS]

    def aec_sees(self, game: Game, player: int) -> Iterator[tuple[str, Any]]:
        """Yield what the AEC environment tells a player."""
        raw, agent = self.aec.unwrapped, f"player_{player}"
        raw._game = game.copy()
        raw.agent_selection = f"player_{max(game.to_move, 0)}"
        raw._set_masks(game.to_move)
        yield "aec observe", self.aec.observe(agent)
        yield "aec info", self.aec.infos[agent]
        yield "aec mover", self.aec.agent_selection
        if self.aec.agent_selection == agent:
            yield "aec last", self.aec.last()
            yield "aec text", self.aec.render()

    def gymnasium_sees(self, game: Game, player: int) -> Iterator[tuple[str, Any]]:
        """Yield what Env and VectorEnv tell the learner in that seat."""
        for env in (self.single[player], self.vector[player]):
            env._duel.games.state[:] = game._state
            yield f"{type(env).__name__} observation", env._duel.observe()
            yield f"{type(env).__name__} masks", env.action_masks()
            yield f"{type(env).__name__} text", env.render()
        yield "Env info", self.single[player]._info()
        yield "VectorEnv infos", self.vector[player]._infos()


def frozen(value: Any) -> Any:
    """Return all that a value holds, however deep, in a form that can be compared."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, dict):
        return [(key, frozen(part)) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [frozen(part) for part in value]
    if isinstance(value, (View, ViewBatch)):
        return frozen(vars(value))
    if isinstance(value, np.void):  # one record of an array
        return frozen(np.array(value))
    assert value is None or isinstance(value, (bool, int, float, str, Rules)), repr(value)
    return type(value), value


def all_that_is_seen(game: Game, player: int, shells: Shells) -> dict[str, Any]:
    """Return everything that reaches a player, byte for byte."""
    view = game.view(player)
    batch = GameBatch.from_state(game._state.copy(), game.rules)
    views = batch.views(players=player)
    seen: dict[str, Any] = {
        "view": view,  # all that hangs on it, however deep
        "observation": view.observation,
        "mask": view.legal_mask,
        "text": view_text(view),
        "game.observe": game.observe(player),
        "batch.observe": batch.observe(players=player),
        "records": views.records,
        "batch observation": views.observation,
        "batch legal": views.legal,
        "worlds": view.determinize(np.random.default_rng(0), 2).state,
    }
    seen |= {word: getattr(view, word) for word in VIEW_PROPERTIES}
    seen |= shells.aec_sees(game, player)
    if game.to_move in (player, -1):
        seen |= shells.gymnasium_sees(game, player)
    # The random bits are an agent's own dice; they come from a stream that deals no cards.
    seen |= {key: value for key, value in vars(views).items() if key != "random_bits"}
    return {key: frozen(value) for key, value in seen.items()}


@pytest.mark.parametrize("rules", RULE_SETS, ids=str)
def test_what_a_player_cannot_know_changes_nothing_they_see(rules: Rules) -> None:
    rng = random.Random(1)
    shells = Shells(rules)
    changed_hands = changed_phases = 0
    for text in states_of(rules):
        game = Game.from_json(text)
        for player in PLAYERS:
            seen = all_that_is_seen(game, player, shells)
            for _ in range(4):
                other = Game.from_json(other_assignment(text, player, rng))
                changed_hands += other.hand(1 - player) != game.hand(1 - player)
                changed_phases += other.phase != game.phase
                seen_then = all_that_is_seen(other, player, shells)
                different = [key for key in seen if seen[key] != seen_then[key]]
                assert not different, (
                    f"player {player} can tell two games apart by {different}:\n{text}\n"
                    f"{other.to_json()}"
                )
    assert changed_hands > 50
    assert changed_phases > 10


def test_the_exchange_shows_what_a_player_does_know() -> None:
    # The check above is not blind: the owner of the exchanged cards sees the difference.
    rules = Rules()
    rng = random.Random(2)
    shells = Shells(rules)
    told_apart = 0
    for text in states_of(rules):
        game = Game.from_json(text)
        other = Game.from_json(other_assignment(text, 0, rng))
        if game.hand(1) != other.hand(1):
            seen, seen_then = (all_that_is_seen(g, 1, shells) for g in (game, other))
            assert seen["observation"] != seen_then["observation"]
            assert seen["records"] != seen_then["records"]
            told_apart += 1
    assert told_apart > 10


@pytest.mark.parametrize("opened", [True, False])
def test_a_closed_discard_shows_its_size_and_an_open_one_its_cards(opened: bool) -> None:
    # Table TS 3H. Player 1 has laid the king, then the queen of clubs.
    rules = Rules(open_discards=opened)
    game = Game.from_position(
        hands=[["AS", "2S", "4S", "5S", "6S", "7S"], ["AC", "2C", "4C", "5C", "6C", "7C"]],
        table=["TS", "3H"],
        stock=["AD", "2D", "4D", "5D", "6D", "7D", "8D", "9D"],
        discards=[[], ["KC", "QC"]],
        rules=rules,
    )
    view = game.view(0)
    layout = counterweight_env.observation_layout(rules)
    shown = view.observation[layout["opponent_discard"]]
    assert view.opponent_discard_size == 2
    assert view.observation[layout["opponent_discard_count"]].sum() == 2
    assert view.opponent_discard == ((12, 11) if opened else ())
    assert set(np.flatnonzero(shown)) == ({11, 12} if opened else set())
    assert ("Q♣ (top)" in view_text(view)) == opened
    assert ("2 face down" in view_text(view)) != opened
    assert (11 in view.unseen) != opened
    assert game.view(1).own_discard == (12, 11)  # the owner knows their pile in any case


# --- A view agrees with its game ----------------------------------------------------------------


def full_deck(rules: Rules) -> list[int]:
    return list(range(rules.deck_size))


def assert_view_agrees(game: Game, view: View, player: int) -> None:
    """Fail where a view says something else than its game."""
    rules, opponent = game.rules, 1 - player
    data = json.loads(game.to_json())
    assert (view.player, view.rules) == (player, rules)
    assert view.hand == game.hand(player)
    assert view.table == game.table
    assert view.buried == game.buried
    assert view.own_discard == game.discard(player)
    assert view.opponent_discard == (game.discard(opponent) if rules.open_discards else ())
    assert view.opponent_discard_size == len(game.discard(opponent))
    assert view.known_in_opponent_hand == game.known(opponent)
    assert view.stock_size == game.stock_size
    assert view.exhausted == game.exhausted
    assert view.opponent_hand_size == len(game.hand(opponent))
    assert (view.to_move, view.dealer, view.turn) == (game.to_move, game.dealer, game.turn)
    assert view.done == game.done
    assert view.opponent_blocked == (data["drawn_since_blocked"][opponent] is not None)

    hidden = set(game.hand(opponent)) - set(game.known(opponent)) | set(game.stock)
    if not rules.open_discards:
        hidden |= set(game.discard(opponent))
    assert view.unseen == tuple(sorted(hidden))

    on_turn = game.to_move == player
    if game.done:
        assert view.phase == Phase.OVER
    else:
        assert view.phase == (game.phase if on_turn else Phase.WAIT)
    assert view.chosen == (game.chosen if on_turn else None)
    assert view.second_refill == (on_turn and game.phase == Phase.REFILL and data["refills"] == 1)
    legal = game.legal_mask() if on_turn else np.zeros(rules.num_actions, np.bool_)
    assert view.legal_mask.dtype == np.bool_
    assert view.legal_mask.tobytes() == legal.tobytes()
    assert view.observation.tobytes() == game.observe(player).tobytes()


@pytest.mark.parametrize("rules", RULE_SETS, ids=str)
def test_a_view_says_what_the_game_says(rules: Rules) -> None:
    for text in states_of(rules):
        game = Game.from_json(text)
        for player in PLAYERS:
            assert_view_agrees(game, game.view(player), player)


def test_a_batch_of_views_is_the_views_of_its_games() -> None:
    batch = GameBatch(64, "classic", seed=5)
    steps = np.random.default_rng(5)
    for _ in range(40):
        batch.step([steps.choice(np.flatnonzero(row)) for row in batch.legal])
    batch = GameBatch.from_state(batch.state[batch.state["to_move"] >= 0], batch.rules)
    views = batch.views()
    assert len(views) == len(batch)
    assert (views.players == batch.to_move).all()
    assert (views.legal == batch.legal).all()
    assert (views.observation == batch.observe()).all()
    for row in range(len(batch)):
        assert_view_agrees(batch[row], views[row], int(batch.to_move[row]))

    rows = np.array([3, 1])
    taken = views.take(rows)
    assert len(taken) == 2
    assert (taken.observation == views.observation[rows]).all()
    assert (taken.random_bits == views.random_bits[rows]).all()
    mask = np.zeros(len(batch), np.bool_)
    mask[[1, 3]] = True
    assert (views.take(mask).records == views.records[[1, 3]]).all()
    picked = batch.copy().views(rows=rows)
    assert (picked.records == views.records[rows]).all()


def test_a_view_of_the_last_row_can_be_taken_from_the_end() -> None:
    views = GameBatch(3, seed=0).views()
    assert views[-1].hand == views[2].hand
    with pytest.raises(IndexError):
        views[3]
    assert len(list(iter_views(views))) == 3


def iter_views(views: ViewBatch) -> Iterator[View]:
    yield from (views[row] for row in range(len(views)))


def test_views_draw_one_word_from_the_agents_stream_and_none_from_the_dealers() -> None:
    batch = GameBatch(5, seed=9)
    before = batch.copy()
    first = batch.views().random_bits
    assert (batch.state["rng"][:, 0] == before.state["rng"][:, 0]).all()
    assert (batch.state["rng"][:, 1] != before.state["rng"][:, 1]).all()
    assert (batch.views().random_bits != first).all()
    assert len(set(first.tolist())) == 5
    # Asking about some games leaves the others' dice alone.
    twin = before.copy()
    assert (twin.views(rows=[4]).random_bits == first[4:]).all()
    assert (twin.state["rng"][:4] == before.state["rng"][:4]).all()


def test_views_of_a_finished_game_need_a_player() -> None:
    game = Game.from_position(hands=[["KS"], ["QS"]], table=["TD", "3C"], rules="classic")
    assert game.done
    batch = GameBatch.from_state(game._state, game.rules)
    with pytest.raises(ValueError, match="game 0 is over"):
        batch.views()
    with pytest.raises(ValueError, match="players must be 0 or 1"):
        batch.views(players=2)
    assert batch.views(players=1)[0].phase == Phase.OVER


# --- determinize --------------------------------------------------------------------------------


def assert_world_agrees(game: Game, world: Game, player: int) -> None:
    """Fail where a drawn world contradicts anything that `player` knows of `game`."""
    rules, opponent = game.rules, 1 - player
    data, drawn = json.loads(game.to_json()), json.loads(world.to_json())
    for word in ("rules", "table", "buried", "dealer", "turn", "to_move", "refills", "known"):
        assert drawn[word] == data[word], word
    assert drawn["hands"][player] == data["hands"][player]
    assert drawn["discards"][player] == data["discards"][player]
    assert drawn["drawn_since_blocked"][player] == data["drawn_since_blocked"][player]
    for word in ("hands", "discards"):
        assert len(drawn[word][opponent]) == len(data[word][opponent]), word
    assert len(drawn["stock"]) == len(data["stock"])
    assert drawn["rng"] != data["rng"]
    if rules.open_discards:
        assert drawn["discards"][opponent] == data["discards"][opponent]
    assert set(world.known(opponent)) <= set(world.hand(opponent))
    places = [world.hand(0), world.hand(1), world.table, world.buried, world.stock]
    places += [world.discard(0), world.discard(1)]
    assert sorted(c for place in places for c in place) == full_deck(rules)

    since = drawn["drawn_since_blocked"][opponent]
    assert (since is None) == (data["drawn_since_blocked"][opponent] is None)
    if since is not None:
        since = card(since, rules.ranks)
        assert since in world.hand(opponent)
        assert since not in world.known(opponent)
        then = {*world.hand(opponent), world.discard(opponent)[-1]} - {since}
        assert not legal_couples(then, world.table, rules.variant, rules.ranks)

    if game.to_move == player or game.done:
        assert (world.phase, world.chosen) == (game.phase, game.chosen)
        assert world.legal_actions() == game.legal_actions()
    elif game.phase == Phase.REFILL:
        assert world.phase == Phase.REFILL
    else:
        couples = legal_couples(world.hand(opponent), world.table, rules.variant, rules.ranks)
        assert world.phase == (Phase.LEFT if couples else Phase.DISCARD)
        expected = {left for left, _ in couples} if couples else set(world.hand(opponent))
        assert set(world.legal_actions()) == expected
    assert json.loads(Game.from_json(world.to_json()).to_json()) == drawn  # a possible game


@pytest.mark.parametrize("rules", RULE_SETS, ids=str)
def test_worlds_agree_with_all_that_is_known(rules: Rules) -> None:
    rng = np.random.default_rng(3)
    for text in states_of(rules):
        game = Game.from_json(text)
        for player in PLAYERS:
            view, untouched = game.view(player), frozen(game.view(player))
            worlds = view.determinize(rng, 3)
            assert len(worlds) == 3
            assert worlds.rules == rules
            for row in range(3):
                assert_world_agrees(game, worlds[row], player)
                own_view = worlds[row].view(player)
                assert frozen(own_view) == untouched
                assert view_text(own_view) == view_text(view)
                assert own_view.observation.tobytes() == view.observation.tobytes()


@pytest.mark.parametrize("variant", ["classic", "exchange"])
def test_a_world_is_byte_for_byte_the_game_it_describes(variant: str) -> None:
    # Equal games are equal bytes, so that worlds can be compared, hashed and counted.
    for text in states_of(Rules(variant)):
        world = Game.from_json(text).view(0).determinize(np.random.default_rng(6))[0]
        twin = Game.from_json(world.to_json())
        assert twin == world
        assert twin._state.tobytes() == world._state.tobytes()


@pytest.mark.parametrize("rules", RULE_SETS[::3], ids=str)
def test_worlds_can_be_played_to_the_end(rules: Rules) -> None:
    rng = np.random.default_rng(4)
    player = Even()
    for text in states_of(rules):
        worlds = Game.from_json(text).view(0).determinize(rng, 2)
        while not worlds.done.all():
            rows = np.flatnonzero(~worlds.done)
            worlds.step(player.act(worlds.views(rows=rows)), rows)
        assert (worlds.returns.sum(axis=1) == 0).all()


# The kinds of knowledge that a draw may have to respect: (open discards, opponent blocked, known
# cards in the opponent's hand). Before exhaustion only reclaiming from an open pile makes cards
# known, and only the classic rules have it (T5).
KNOWLEDGE = [
    (variant, opened, blocked, known)
    for variant in ("classic", "exchange")
    for opened in (True, False)
    for blocked in (True, False)
    for known in ((True, False) if opened and variant == "classic" else (False,))
]
SMALL_DECK = {"ranks": 5, "suits": 2, "hand_size": 2}


def walk(fields: dict[str, Any], rng: random.Random) -> Iterator[tuple[Game, ReferenceGame]]:
    """Yield every decision of a random game, in the engine and in the reference."""
    deck_size = fields["ranks"] * fields["suits"]
    deck = random_deck(rng, deck_size)
    game, reference = Game.from_deck(deck, Rules(**fields)), ReferenceGame(deck, **fields)
    while not game.done:
        yield game, reference
        legal = reference.legal_actions()
        action = legal[-1] if rng.random() < 0.3 else rng.choice(legal)
        game.step(action)
        reference.step(action)


def position_with(
    variant: str, opened: bool, blocked: bool, known: bool, rng: random.Random
) -> tuple[Game, int, list[Any], Any]:
    """Search random small games for a view with this knowledge and few enough worlds."""
    fields: dict[str, Any] = {"variant": variant, "open_discards": opened, **SMALL_DECK}
    if known:  # it takes a longer game until something has been reclaimed
        fields["ranks"] = 7
    for _ in range(20_000):
        for game, reference in walk(fields, rng):
            for player in PLAYERS:
                other = 1 - player
                kind = (opened, reference.blocked_flag[other], bool(reference.known[other]))
                if reference.exhausted or kind != (opened, blocked, known):
                    continue
                if not 4 <= len(reference.unseen(player)) <= 6:
                    continue
                worlds = reference.worlds(player)
                if 12 <= len(worlds) <= 3000:
                    return game.copy(), player, worlds, reference.true_world(player)
    raise AssertionError(f"no position with {opened=} {blocked=} {known=}")


def keys_of_worlds(batch: GameBatch, opponent: int) -> np.ndarray:
    """Return one row of bytes a world: hand, card drawn since, stock, pile.

    The batch holds worlds of one view, so all stocks and all piles have one size.
    """
    state = batch.state
    stock_size, pile_size = state["stock_size"][0], state["discard_size"][0, opponent]
    parts = [
        state["hand"][:, opponent].copy().view(np.uint8).reshape(len(batch), 8),
        state["fresh"][:, opponent, None],
        state["stock"][:, :stock_size],
        state["discard"][:, opponent, :pile_size],
    ]
    return np.concatenate(parts, axis=1)


def key_of_world(world: Any, game: Game, opponent: int) -> bytes:
    """Return the same bytes for a world of the reference."""
    hand, since, stock, pile = world
    mask = sum(1 << held for held in hand).to_bytes(8, sys.byteorder)
    cards = game.discard(opponent) if pile is None else pile
    return mask + bytes([255 if since is None else since, *stock[::-1], *cards])


@pytest.mark.parametrize(("variant", "opened", "blocked", "known"), KNOWLEDGE)
def test_worlds_are_drawn_evenly(variant: str, opened: bool, blocked: bool, known: bool) -> None:
    seed = f"even {variant} {opened} {blocked} {known}"
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(2):
        game, player, worlds, truth = position_with(variant, opened, blocked, known, rng)
        expected = {key_of_world(world, game, 1 - player): 0 for world in worlds}
        assert len(expected) == len(worlds)
        assert key_of_world(truth, game, 1 - player) in expected
        draws = game.view(player).determinize(
            np.random.default_rng(rng.getrandbits(32)), 40 * len(worlds)
        )
        found, counts = np.unique(keys_of_worlds(draws, 1 - player), axis=0, return_counts=True)
        for row, count in zip(found, counts.tolist(), strict=True):
            assert row.tobytes() in expected, f"an impossible world of\n{game}\nfor {player}"
            expected[row.tobytes()] = count
        result = chisquare(list(expected.values()))
        assert result.pvalue > LEAST_P, f"{len(worlds)} worlds of\n{game}\nfor player {player}"


@pytest.mark.parametrize("source", ["a caller's generator", "the game's own random bits"])
def test_the_truth_is_drawn_no_more_often_than_chance(source: str) -> None:
    # Eight cards, two in each hand, two on the table: two of the four unseen cards are the
    # opponent's and the stock has two orders, so there are twelve worlds after the deal.
    rules, games = Rules(ranks=4, suits=2, hand_size=2), 6000
    batch = GameBatch(games, rules, seed=100_000)
    views = batch.views()
    words = None
    if source == "a caller's generator":
        words = np.random.default_rng(11).integers(2**64, size=games, dtype=np.uint64)
    worlds = views.determinize(1, words)
    same_hands = (worlds.hands == batch.hands).all(axis=1)
    stocks = [games_.state["stock"][:, : rules.stock_size] for games_ in (worlds, batch)]
    same_stock = (stocks[0] == stocks[1]).all(axis=1)
    hits = int((same_hands & same_stock).sum())
    assert binomtest(hits, games, 1 / 12).pvalue > LEAST_P, hits


def test_the_truth_is_drawn_no_more_often_than_chance_all_along_a_game() -> None:
    # At every decision the truth is one of W worlds; the hits must not stand out against sum(1/W).
    rng, dice = random.Random(12), np.random.default_rng(12)
    expected = variance = hits = 0.0
    for number in range(250):
        fields = {"variant": "classic", "open_discards": number % 2 == 0, **SMALL_DECK}
        for game, reference in walk(fields, rng):
            if reference.exhausted:
                continue
            player = number % 2
            chance = 1 / max(1, count_worlds(reference, player))
            truth = reference.true_world(player)
            drawn = game.view(player).determinize(dice, 40)
            keys = keys_of_worlds(drawn, 1 - player)
            wanted = np.frombuffer(key_of_world(truth, game, 1 - player), np.uint8)
            hits += int((keys == wanted).all(axis=1).sum())
            expected += 40 * chance
            variance += 40 * chance * (1 - chance)
    assert expected > 50
    z = (hits - expected) / variance**0.5
    assert 2 * norm.sf(abs(z)) > LEAST_P, f"{hits} hits, {expected:.1f} expected"


def count_worlds(reference: ReferenceGame, player: int) -> int:
    """Return how many worlds there are without listing the orders of the stock."""
    orders = 1
    for size in range(2, len(reference.stock) + 1):
        orders *= size
    return sum(1 for _ in reference.hidden(player)) * orders


def test_the_opponents_hand_in_a_full_deck_is_drawn_no_more_often_than_chance() -> None:
    # Any one of the opponent's six cards is one of 44 unseen: it is drawn into a hand of six with
    # chance 6/44.
    batch = GameBatch(8000, seed=7_000)
    views = batch.views()
    worlds = views.determinize(1)
    rows = np.arange(len(batch))
    true_hands = batch.hands[rows, 1 - batch.to_move]
    lowest = true_hands & (~true_hands + np.uint64(1))
    hits = int(((worlds.hands[rows, 1 - batch.to_move] & lowest) != 0).sum())
    assert binomtest(hits, len(batch), 6 / 44).pvalue > LEAST_P, hits


def test_a_world_does_not_depend_on_how_many_are_drawn() -> None:
    view = Game(seed=3).view(0)
    few = view.determinize(np.random.default_rng(5), 3)
    many = view.determinize(np.random.default_rng(5), 7)
    assert few.state.tobytes() == many.state[:3].tobytes()
    assert len({world.tobytes() for world in many.state}) == 7


def test_a_world_does_not_depend_on_the_other_rows() -> None:
    views = GameBatch(4, seed=3).views()
    worlds = views.determinize(3)
    assert len(worlds) == 12
    alone = views.take(np.array([2])).determinize(3)
    assert alone.state.tobytes() == worlds.state[6:9].tobytes()
    # Worlds of other rows differ, and other bits draw other worlds.
    assert worlds.state[0].tobytes() != worlds.state[3].tobytes()
    other = views.determinize(3, views.random_bits + np.uint64(1))
    assert other.state.tobytes() != worlds.state.tobytes()


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "3", None])
def test_a_bad_number_of_worlds_is_refused(n: Any) -> None:
    view = Game(seed=3).view(0)
    with pytest.raises(ValueError, match=r"n must be a positive int, got"):
        view.determinize(np.random.default_rng(0), n)
    with pytest.raises(ValueError, match=r"n must be a positive int, got"):
        GameBatch(2, seed=0).views().determinize(n)


@pytest.mark.parametrize("rng", [None, 5, random, np.random, np.random.RandomState(0)])
def test_a_generator_of_another_kind_is_refused(rng: Any) -> None:
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        Game(seed=3).view(0).determinize(rng)


@pytest.mark.parametrize(
    "bits", [np.zeros(2, np.uint64), np.zeros(4, np.uint64), np.zeros((3, 1), np.uint64), 7]
)
def test_random_bits_that_do_not_fit_the_rows_are_refused(bits: Any) -> None:
    views = GameBatch(3, seed=0).views()
    with pytest.raises(ValueError, match="random_bits"):
        views.determinize(2, bits)


@pytest.mark.parametrize("n", [1, 5])
def test_determinize_takes_one_word_of_the_generator(n: int) -> None:
    used, counted = np.random.default_rng(8), np.random.default_rng(8)
    Game(seed=3).view(1).determinize(used, n)
    counted.integers(2**64, dtype=np.uint64, size=1)
    assert used.bit_generator.state == counted.bit_generator.state


def test_determinize_leaves_the_global_generators_and_the_view_alone() -> None:
    game = Game(seed=3)
    view = game.view(1)
    before = game._state.tobytes(), frozen(view)
    worlds = []
    for seed in (0, 1):
        with global_generators_seeded(seed):
            worlds.append(view.determinize(np.random.default_rng(8), 4).state.tobytes())
    assert worlds[0] == worlds[1]
    assert (game._state.tobytes(), frozen(view)) == before


def test_writing_into_what_a_view_returns_changes_nothing() -> None:
    game = Game(seed=3)
    view = game.view(game.to_move)
    kept = frozen(view)
    worlds = view.determinize(np.random.default_rng(0), 2)
    for array in (view.observation, view.legal_mask, worlds.state):
        array.view(np.uint8)[...] = 1
    batch = GameBatch.from_state(game._state, game.rules)
    views = batch.views(players=0)
    state = game._state.tobytes()  # views() took a word of the agents' stream
    for array in (views.records, views.observation, views.legal, views.players, views.random_bits):
        assert not np.shares_memory(array, game._state)
        array.view(np.uint8)[...] = 1
    assert game._state.tobytes() == state
    assert frozen(game.view(view.player)) == kept
