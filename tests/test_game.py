"""`Game` and `GameBatch` as objects: copies, text, seeds, refusals, and the kept golden games.

What the rules say is tested in `test_rule_book.py` and `test_reference.py`. The golden files are
written anew with `python tests/golden_games.py --update`.
"""

from __future__ import annotations

import ast
import copy
import json
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import golden_games
import numpy as np
import pytest
from helpers import card
from hypothesis import given, settings
from hypothesis import strategies as st
from players import global_generators_seeded
from reference_game import ReferenceGame, legal_couples
from scipy.stats import binomtest, chisquare

from counterweight_env import (
    Game,
    GameBatch,
    IllegalActionError,
    Phase,
    Rules,
    parse_action,
    parse_card,
)

ROOT = Path(__file__).parent.parent
RULE_TEXTS = [
    "classic",
    "exchange",
    "classic(open_discards=False,blocked=discard)",
    "exchange(open_discards=False,blocked=discard)",
    "classic(ranks=6,suits=2,hand_size=3)",
    "exchange(ranks=7,suits=1,hand_size=2)",
]


@cache
def moments(rules: str) -> tuple[Game, ...]:
    """Return a game at each kind of moment: every phase, before and after exhaustion, and over."""
    rng = random.Random(f"moments of {rules}")
    found: dict[tuple[Any, ...], Game] = {}
    for seed in range(80):
        game = Game(rules, seed=seed)
        while True:
            kind = (game.phase, game.exhausted, game.to_move, bool(game.known(0)))
            found.setdefault(kind, game.copy())
            if game.done:
                break
            game.step(rng.choice(game.legal_actions()))
    phases = {kind[0].name for kind in found}
    wanted = {"LEFT", "RIGHT", "DISCARD", "OVER"}
    if rules == "classic":
        wanted.add("REFILL")
    assert phases >= wanted
    return tuple(found.values())


def state_bytes(game: Game | GameBatch) -> bytes:
    return (game._state if isinstance(game, Game) else game.state).tobytes()


# --- Copies -------------------------------------------------------------------------------------

TWINS: dict[str, Callable[[Game], Game]] = {
    "copy()": Game.copy,
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda game: pickle.loads(pickle.dumps(game)),
    "JSON": lambda game: Game.from_json(game.to_json()),
}


def assert_go_on_alike(game: Game, twin: Game, rng: random.Random) -> None:
    """Play both to the end, deal once more, and play on for a while."""
    for _ in range(2):
        while True:
            assert state_bytes(twin) == state_bytes(game)
            assert (twin.rules, twin.legal_actions()) == (game.rules, game.legal_actions())
            assert twin == game
            assert str(twin) == str(game)
            assert twin.to_json() == game.to_json()
            if game.done:
                break
            action = rng.choice(game.legal_actions())
            game.step(action)
            twin.step(action)
        game.reset()
        twin.reset()


@pytest.mark.parametrize("way", TWINS)
@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_a_copy_goes_on_exactly_as_the_original(way: str, rules: str) -> None:
    rng = random.Random(1)
    for moment in moments(rules):
        game = moment.copy()
        before = state_bytes(game)
        assert str(game)
        assert repr(game)
        assert state_bytes(game) == before
        twin = TWINS[way](game)
        assert not np.shares_memory(twin._state, game._state)
        assert_go_on_alike(game, twin, rng)


@pytest.mark.parametrize("way", TWINS)
def test_a_copy_of_a_game_with_a_fixed_dealer_keeps_fixing_the_dealer(way: str) -> None:
    for dealer in (0, 1):
        game = Game(seed=5, dealer=dealer)
        twin = TWINS[way](game)
        for _ in range(8):
            game.reset()
            twin.reset()
            assert game.dealer == dealer
            assert state_bytes(twin) == state_bytes(game)


def test_a_copy_of_a_game_does_not_move_with_it() -> None:
    for way in TWINS.values():
        game = Game(seed=1)
        twin = way(game)
        before = state_bytes(twin)
        game.step(game.legal_actions()[0])
        assert state_bytes(twin) == before != state_bytes(game)
        assert twin != game


BATCH_TWINS: dict[str, Callable[[GameBatch], GameBatch]] = {
    "copy()": GameBatch.copy,
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda batch: pickle.loads(pickle.dumps(batch)),
}


@pytest.mark.parametrize("way", BATCH_TWINS)
@pytest.mark.parametrize("dealer", [None, 1])
def test_a_copy_of_a_batch_goes_on_exactly_as_the_original(way: str, dealer: int | None) -> None:
    batch = GameBatch(5, "classic", seed=2, dealer=dealer)
    rng = np.random.default_rng(2)
    for _ in range(30):
        batch.step(random_actions(batch, rng))
    twin = BATCH_TWINS[way](batch)
    kept = state_bytes(twin)
    for _ in range(120):
        actions = random_actions(batch, rng)
        before = batch.copy()
        batch.step(actions)
        assert state_bytes(twin) == state_bytes(before)  # the copy does not move along
        twin.step(actions)
        assert state_bytes(twin) == state_bytes(batch)
        assert (twin.views(players=0).random_bits == batch.views(players=0).random_bits).all()
        for games in (batch, twin):
            games.reset(games.done)
    assert kept != state_bytes(twin)


def random_actions(batch: GameBatch, rng: np.random.Generator) -> np.ndarray:
    return np.array([rng.choice(np.flatnonzero(row)) if row.any() else 0 for row in batch.legal])


def test_equal_games_are_equal_and_others_are_not() -> None:
    assert Game(seed=1) == Game(seed=1)
    assert Game(seed=1) != Game(seed=2)
    assert Game("classic", seed=1) != Game("exchange", seed=1)
    assert Game(seed=1) != "a game"
    with pytest.raises(TypeError):
        hash(Game(seed=1))  # it changes as it is played


# --- JSON ---------------------------------------------------------------------------------------


def json_at(phase: str, rules: str = "classic") -> dict[str, Any]:
    """Return the JSON of a game in that phase, before exhaustion where that can be."""
    games = [game for game in moments(rules) if game.phase.name == phase]
    game = min(games, key=lambda g: g.exhausted)
    return dict(json.loads(game.to_json()))


def json_in_the_middle() -> dict[str, Any]:
    """Return the JSON of a game with cards in every place, a couple to place."""
    for seed in range(100):
        game = Game(seed=seed)
        for decision in range(60):
            game.step(golden_games.choose(game.legal_actions(), decision))
            piles = game.discard(0) and game.discard(1)
            if game.phase == Phase.LEFT and game.buried and piles and not game.exhausted:
                return dict(json.loads(game.to_json()))
    raise AssertionError("no such game")


def test_json_is_one_line_of_names() -> None:
    text = Game.from_deck(range(52)).to_json()
    data = json.loads(text)
    assert "\n" not in text
    assert data["rules"] == "classic"
    assert data["hands"][0] == ["AC", "2C", "3C", "4C", "5C", "6C"]
    assert data["table"] == ["KC", "AD"]
    assert data["stock"][:2] == ["2D", "3D"]  # the next card first
    assert (data["dealer"], data["to_move"], data["turn"]) == (1, 0, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "5",
        '"classic"',
        "{}",
        "NaN",
        '{"rules": 1e999}',
        "1" * 10_000,
        "[" * 100_000,
        "\ud800",
        None,
        5,
        b"\xff",
    ],
    ids=lambda text: repr(text)[:20],
)
def test_text_that_is_no_game_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        Game.from_json(text)


def without(data: dict[str, Any], word: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != word}


def corrupted() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield (what is wrong, JSON, what the message must say)."""
    left, over = json_in_the_middle(), json_at("OVER")
    right, discard, refill = json_at("RIGHT"), json_at("DISCARD"), json_at("REFILL")
    hands, stock = left["hands"], left["stock"]

    def spoiled(what: str, message: str, base: dict[str, Any] = left, **fields: Any) -> Any:
        return what, base | fields, message

    for word in left:
        yield f"{word} is missing", without(left, word), f"missing or unknown.*{word}"
        if word not in ("chosen", "fixed_dealer", "settled"):  # which may be null
            yield spoiled(f"{word} is null", ".", **{word: None})
    yield spoiled("chosen is a number", ".", chosen=5.5)
    yield spoiled("fixed_dealer is nobody", "dealer must be 0, 1 or None", fixed_dealer=2)
    yield spoiled("one field too many", "missing or unknown.*score", score=1)
    yield spoiled("unknown rules", "variant must be one of", rules="bridge")
    yield spoiled("impossible rules", "ranks must be from", rules="classic(ranks=14)")
    yield spoiled("rules of another deck", "not in the deck", rules="classic(ranks=12)")
    yield spoiled("rules are a number", "JSON of a game|rules", rules=5)

    yield spoiled("a lost card", r"cards are lost", hands=[hands[0][1:], hands[1]])
    yield spoiled("a doubled card", "stands twice", hands=[hands[0], hands[1] + stock[:1]])
    yield spoiled("an unknown card", "'ZZ'", table=["ZZ", left["table"][1]])
    yield spoiled("a card of another kind", ".", table=[None, left["table"][1]])
    yield spoiled("one hand", "hands must have 2", hands=hands[:1])
    yield spoiled("three hands", "hands must have 2", hands=[*hands, []])
    yield spoiled("one table card", "table must have 2", table=left["table"][:1])
    yield spoiled("a long hand", "unreachable sizes", hands=[hands[0] + stock[:1], hands[1]],
                  stock=stock[1:])  # fmt: skip
    piles = [left["buried"] + left["discards"][0], left["discards"][1]]
    yield spoiled("couples in a discard", "unreachable sizes", discards=piles, buried=[])
    yield spoiled("no stock, short hands", ".", stock=[], buried=left["buried"] + stock)

    yield spoiled("dealer 2", "player must be|dealer", dealer=2)
    yield spoiled("dealer in words", "player must be|dealer", dealer="1")
    for turn in (-1, 70_000, 1.5, "3"):
        yield spoiled(f"turn {turn!r}", ".", turn=turn)
    for to_move in (2, -1, "0", 0.5):
        yield spoiled(f"{to_move!r} to move", ".", to_move=to_move)
    yield spoiled("an unknown phase", "JSON of a game|phase", phase="LUNCH")
    yield spoiled("a phase of views", "WAIT", phase="WAIT")
    yield spoiled("over too early", "phase OVER|to_move|unreachable", phase="OVER", to_move=-1)
    yield spoiled("over, but on turn", "to_move must be -1", over, to_move=0)
    yield spoiled("no longer over", ".", over, phase="LEFT", to_move=0)
    yield spoiled("DISCARD, but a couple fits", "does not fit", phase="DISCARD")
    yield spoiled("LEFT, but no couple fits", "does not fit", discard, phase="LEFT")
    yield spoiled("RIGHT, nothing chosen", "chosen", right, chosen=None)
    yield spoiled("RIGHT, chosen from nowhere", "chosen", right, chosen=stock_card(right))
    yield spoiled("LEFT, something chosen", "chosen", chosen=hands[left["to_move"]][0])
    yield spoiled("REFILL, something chosen", "chosen", refill, chosen=refill["table"][0])
    yield spoiled("OVER, something chosen", "chosen", over, chosen=over["table"][0])
    yield spoiled("LEFT, refills to come", "refills", refills=1)
    for refills in (0, 3, -1, 255, 1.5):
        yield spoiled(f"REFILL, {refills} to come", ".", refill, refills=refills)
    no_pile = [[], []]
    moved = refill["buried"] + refill["discards"][0] + refill["discards"][1]
    yield spoiled("REFILL without a pile", "REFILL", refill, discards=no_pile, buried=moved)
    yield spoiled("REFILL in the exchange rules", "REFILL", refill, rules="exchange")

    yield spoiled("a known card elsewhere", "known", known=[stock[:1], []])
    yield spoiled("something unknown after exhaustion", "known", over, known=[[], []])
    yield spoiled("one set of known cards", "known|JSON of a game", known=[[]])
    yield spoiled("three sets of known cards", "known", known=[*left["known"], []])
    opponent = 1 - left["to_move"]
    for since in ([None], [None, None, None]):
        yield spoiled(f"drawn since: {since}", "drawn_since|JSON", drawn_since_blocked=since)
    nobody_drew = [None, None]
    nobody_drew[opponent] = stock[0]
    yield spoiled("drawn, but still in the stock", "drawn_since", drawn_since_blocked=nobody_drew)
    holder = left["to_move"]  # the mover has a couple, so cannot have been blocked without a pile
    holders = [None, None]
    holders[holder] = hands[holder][0]
    yield spoiled("blocked, but nothing laid", "drawn_since", left | {"discards": no_pile} | {
        "buried": left["buried"] + left["discards"][0] + left["discards"][1]},
        drawn_since_blocked=holders)  # fmt: skip

    for rng in (
        ["0"],
        ["0", "1", "2"],
        ["x", "0"],
        ["0" * 20 + "1" * 20, "0"],
        [0, 1],
        ["-1", "0"],
    ):
        yield spoiled(f"rng {rng}", ".", rng=rng)


def stock_card(data: dict[str, Any]) -> str:
    return str(data["stock"][0])


CORRUPTED = list(corrupted())


@pytest.mark.parametrize(
    ("data", "message"), [case[1:] for case in CORRUPTED], ids=[case[0] for case in CORRUPTED]
)
def test_a_corrupted_game_is_refused_by_name(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Game.from_json(json.dumps(data))


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 300),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from(["AC", "KS", "TD", "10H", "LEFT", "OVER", "REFILL", "classic", "exchange"]),
    st.lists(st.sampled_from(["AC", "2C", "KS"]), max_size=3),
    st.just({}),
)


def slots(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every (container, key) in nested lists and dicts."""
    keys = list(node) if isinstance(node, dict) else range(len(node))
    for key in keys:
        yield node, key
        if isinstance(node[key], (dict, list)):
            yield from slots(node[key])


@st.composite
def mutated_games(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a game's JSON with one to three things changed."""
    game = draw(st.sampled_from(moments(draw(st.sampled_from(RULE_TEXTS)))))
    data: dict[str, Any] = json.loads(game.to_json())
    for _ in range(draw(st.integers(1, 3))):
        places = list(slots(data))
        if not places:
            return data
        container, key = draw(st.sampled_from(places))
        other, other_key = draw(st.sampled_from(places))
        kind = draw(st.sampled_from(["junk", "swap", "drop", "double", "nudge"]))
        if kind == "junk":
            container[key] = draw(JUNK)
        elif kind == "swap":
            values = copy.deepcopy((container[key], other[other_key]))
            container[key], other[other_key] = values[1], values[0]
        elif kind == "drop":
            del container[key]
        elif kind == "double" and isinstance(other, list):
            other.append(copy.deepcopy(container[key]))
        elif isinstance(container[key], int):
            container[key] += draw(st.sampled_from([-1, 1]))
    return data


def assert_a_possible_game(game: Game, rng: random.Random) -> None:
    """Fail where a read game is not whole, or cannot be played to its end."""
    rules = game.rules
    twin = Game.from_json(game.to_json())
    assert twin == game
    assert state_bytes(twin) == state_bytes(game)
    decisions = 0
    while not game.done:
        places = [game.hand(0), game.hand(1), game.discard(0), game.discard(1)]
        places += [game.table, game.buried, game.stock]
        assert sorted(c for place in places for c in place) == list(range(rules.deck_size))
        mover, legal = game.to_move, game.legal_actions()
        couples = legal_couples(game.hand(mover), game.table, rules.variant, rules.ranks)
        if game.phase == Phase.LEFT:
            assert legal == sorted({left for left, _ in couples})
        elif game.phase == Phase.RIGHT:
            assert legal == sorted(right for left, right in couples if left == game.chosen)
        elif game.phase == Phase.DISCARD:
            assert not couples
            assert legal == list(game.hand(mover))
        else:
            assert game.phase == Phase.REFILL
            assert rules.variant == "classic"
            assert legal == [rules.stock_action, rules.reclaim_action]
            assert game.chosen is None
        assert legal
        game.step(rng.choice(legal))
        decisions += 1
        assert decisions <= rules.max_decisions
    assert sum(game.returns) == 0
    assert game.chosen is None


@settings(max_examples=600, deadline=None)
@given(data=mutated_games())
def test_mutated_json_is_refused_or_a_possible_game(data: dict[str, Any]) -> None:
    try:
        game = Game.from_json(json.dumps(data))
    except ValueError:
        return
    assert_a_possible_game(game, random.Random(0))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_mutilated_text_is_refused_or_a_possible_game(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(moments("classic"))).to_json()
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(len(text), start + 12)))
    patch = data.draw(st.one_of(st.text(max_size=2), st.sampled_from([*'"[]{},:0', "null"])))
    try:
        game = Game.from_json(text[:start] + patch + text[stop:])
    except ValueError:
        return
    assert_a_possible_game(game, random.Random(0))


# --- Illegal actions ----------------------------------------------------------------------------

# The mover's hand is player 0's. LEFT: TD 3C on TS 3H by C1. DISCARD: spades and hearts do not
# fit a table of the ten of diamonds and the three of clubs.
HIGH = ["KS", "QS", "JS", "KH", "QH", "JH"]
REST = ["AS", "2S", "4S", "5S", "6S", "7S"]
LEFT_POSITION: dict[str, Any] = {
    "hands": [["TD", "3C", "KS", "QS", "JS", "KH"], REST],
    "table": ["TS", "3H"],
    "stock": ["AH", "2H", "4H", "5H", "6H", "7H", "8H"],
    "discards": [["8C", "9C"], ["QC"]],
}
DISCARD_POSITION: dict[str, Any] = {
    "hands": [HIGH, REST],
    "table": ["TD", "3C"],
    "stock": ["AH", "2H", "4H", "5H", "6H", "7H", "8H"],
    "discards": [["8C", "9C"], ["QC"]],
}


def game_in(phase: str) -> Game:
    """Return an exact position in that phase, player 0 to move."""
    if phase == "DISCARD":
        game = Game.from_position(**DISCARD_POSITION)
    else:
        game = Game.from_position(**LEFT_POSITION)
    steps = {"RIGHT": ["TD"], "REFILL": ["TD", "3C"]}.get(phase, [])
    for text in steps:
        game.step(card(text))
    assert (game.phase.name, game.to_move) == (phase, 0)
    return game


LEGAL = {
    "LEFT": "TD",
    "RIGHT": "3C",
    "DISCARD": "QS JS KS QH JH KH",
    "REFILL": "STOCK RECLAIM",
}


@pytest.mark.parametrize("phase", LEGAL)
def test_the_positions_are_what_they_are_meant_to_be(phase: str) -> None:
    legal = sorted(parse_action(word) for word in LEGAL[phase].split())
    assert game_in(phase).legal_actions() == legal


NO_ACTIONS = [
    -1,
    54,
    10**6,
    2**63,
    2**64,
    -(2**70),
    5.0,
    0.5,
    float("nan"),
    None,
    "5",
    "TD",
    [5],
    (),
]


@pytest.mark.parametrize("phase", LEGAL)
@pytest.mark.parametrize("action", NO_ACTIONS, ids=repr)
def test_what_is_no_action_is_refused_by_name(phase: str, action: Any) -> None:
    game = game_in(phase)
    before = state_bytes(game)
    with pytest.raises(IllegalActionError) as caught:
        game.step(action)
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert f"action {action!r}" in message
    assert "player 0" in message
    assert phase in message
    assert "0 to 53" in message
    assert state_bytes(game) == before
    assert game.legal_actions() == game_in(phase).legal_actions()


@pytest.mark.parametrize("phase", LEGAL)
def test_every_wrong_card_is_refused_by_name(phase: str) -> None:
    game = game_in(phase)
    before, legal = state_bytes(game), game.legal_actions()
    for action in sorted(set(range(54)) - set(legal)):
        with pytest.raises(IllegalActionError, match=rf"action {action} .*player 0.*{phase}"):
            game.step(action)
    assert state_bytes(game) == before
    with pytest.raises(IllegalActionError, match=r"action 12 \(KC\) is illegal"):
        game.step(card("KC"))
    with pytest.raises(IllegalActionError) as caught:
        game.step(card("KC"))
    listed = str(caught.value).split("legal: ")[-1].split()
    assert [parse_action(word) for word in listed] == legal  # it says what would be legal


def test_a_bool_is_no_action() -> None:
    # The two of clubs is legal here, and True is 1; but a truth value is a slip, as in a batch.
    hand = ["2C", "KS", "QS", "JS", "KH", "QH"]
    game = Game.from_position(**DISCARD_POSITION | {"hands": [hand, REST], "table": ["TD", "AD"]})
    assert 1 in game.legal_actions()
    batch = GameBatch.from_state(game._state, game.rules)
    before = state_bytes(game)
    with pytest.raises(IllegalActionError, match="True"):
        batch.step([True])
    with pytest.raises(IllegalActionError, match="True"):
        game.step(True)
    assert state_bytes(game) == before


def test_numpy_integers_are_actions() -> None:
    for kind in (np.int8, np.uint8, np.int32, np.int64, np.uint64):
        game = game_in("LEFT")
        game.step(kind(card("TD")))
        assert game.phase == Phase.RIGHT
        batch = GameBatch.from_state(game_in("LEFT")._state, "classic")
        batch.step(np.array([card("TD")], kind))
        assert batch.phase[0] == Phase.RIGHT


def four_games() -> GameBatch:
    games = [game_in(phase) for phase in LEGAL]
    return GameBatch.from_state(np.concatenate([game._state for game in games]), "classic")


GOOD = [parse_action(words.split()[0]) for words in LEGAL.values()]


@pytest.mark.parametrize("row", range(4))
@pytest.mark.parametrize("action", [-1, 54, 10**6, card("KC")], ids=repr)
def test_one_bad_number_stops_the_whole_batch(row: int, action: int) -> None:
    batch = four_games()
    before = state_bytes(batch)
    actions = list(GOOD)
    actions[row] = action
    with pytest.raises(IllegalActionError) as caught:
        batch.step(actions)
    assert state_bytes(batch) == before
    message = str(caught.value)
    assert f"row {row}: action {action} " in message
    assert "player 0" in message
    assert list(LEGAL)[row] in message
    batch.step(GOOD)
    assert state_bytes(batch) != before


@pytest.mark.parametrize("row", range(4))
@pytest.mark.parametrize("action", [5.0, None, "5", True, [5]], ids=repr)
def test_one_thing_that_is_no_number_stops_the_whole_batch(row: int, action: Any) -> None:
    batch = four_games()
    before = state_bytes(batch)
    actions = np.empty(4, object)
    actions[:] = GOOD
    actions[row] = action
    with pytest.raises(IllegalActionError) as caught:
        batch.step(actions)
    assert state_bytes(batch) == before
    message = str(caught.value)
    assert f"row {row}: action {action!r}" in message
    assert "player 0" in message
    assert list(LEGAL)[row] in message
    if not isinstance(action, (bool, list)):  # NumPy makes numbers of these, or refuses them
        with pytest.raises(IllegalActionError, match="action"):
            batch.step(actions.tolist())
    assert state_bytes(batch) == before


@pytest.mark.parametrize("kind", [list, np.uint64])
@pytest.mark.parametrize("action", [2**63, 2**64 - 1, 2**70])
def test_a_huge_number_is_named_as_it_is(kind: Any, action: int) -> None:
    if kind is np.uint64 and action >= 2**64:
        return
    batch = four_games()
    before = state_bytes(batch)
    actions: Any = [*GOOD[:2], action, GOOD[3]]
    with pytest.raises(IllegalActionError, match=rf"row 2: action {action} "):
        batch.step(actions if kind is list else np.array(actions, np.uint64))
    assert state_bytes(batch) == before


@pytest.mark.parametrize(
    "actions",
    [
        5,
        None,
        [],
        GOOD[:3],
        [*GOOD, 0],
        [GOOD],
        np.array(GOOD)[:, None],
        np.array(GOOD, np.float32),
        np.array(GOOD, np.float64),
        np.array(GOOD, np.bool_),
        np.array(GOOD, np.complex64),
        np.array(GOOD).astype(str),
        {},
    ],
    ids=lambda actions: repr(actions)[:32],
)
def test_actions_of_another_shape_or_type_are_refused(actions: Any) -> None:
    batch = four_games()
    before = state_bytes(batch)
    with pytest.raises(IllegalActionError, match="action"):
        batch.step(actions)
    assert state_bytes(batch) == before


def test_a_finished_game_takes_no_action() -> None:
    game = Game.from_position(hands=[["KS"], ["QS"]], table=["TD", "3C"])
    assert game.done
    assert game.phase == Phase.OVER
    assert game.to_move == -1
    assert game.legal_actions() == []
    assert not game.legal_mask().any()
    before = state_bytes(game)
    for action in (0, card("KS"), 52, -1, None):
        with pytest.raises(IllegalActionError, match="the game is over"):
            game.step(action)
    assert state_bytes(game) == before


def test_finished_rows_of_a_batch_ignore_their_action() -> None:
    over = Game.from_position(hands=[["KS"], ["QS"]], table=["TD", "3C"])
    running = game_in("LEFT")
    for ignored in (0, -1, 54, 10**6):
        batch = GameBatch.from_state(np.concatenate([over._state, running._state]), "classic")
        batch.step([ignored, card("TD")])
        assert state_bytes(batch[0]) == state_bytes(over)
        assert batch.phase.tolist() == [Phase.OVER, Phase.RIGHT]
        assert not batch.legal[0].any()
        assert batch.legal[1].any()
        with pytest.raises(IllegalActionError, match="row 1"):
            batch.step([ignored, -1])
    for dtype in (np.uint8, np.uint64, np.int8, np.int16):
        batch = GameBatch.from_state(np.concatenate([over._state, running._state]), "classic")
        batch.step(np.array([99, card("TD")], dtype))
        assert batch.phase.tolist() == [Phase.OVER, Phase.RIGHT]
        with pytest.raises(IllegalActionError, match="row 1"):
            batch.step(np.array([card("TD"), 99], dtype))


@pytest.mark.parametrize("dealer", [0, 1])
def test_a_fixed_dealer_stays_fixed_in_every_new_deal(dealer: int) -> None:
    deck = list(range(52))
    games = [
        Game(seed=1, dealer=dealer),
        GameBatch(2, seed=1, dealer=dealer)[1],
        GameBatch.from_decks([deck], dealer=dealer)[0],
        GameBatch(1, seed=1, dealer=dealer).copy()[0],
        copy.deepcopy(GameBatch(1, seed=1, dealer=dealer)[0]),
        pickle.loads(pickle.dumps(Game(seed=1, dealer=dealer))),
    ]
    for number, game in enumerate(games):
        assert game.dealer == dealer, number
        for seed in range(8):
            game.reset(seed)
            assert game.dealer == dealer, number
    lot = Game.from_deck(deck, dealer=dealer)
    assert lot.dealer == dealer
    dealers = set()
    for seed in range(8):
        lot.reset(seed)
        dealers.add(lot.dealer)
    assert dealers == {0, 1}


def test_step_moves_only_the_rows_it_is_given() -> None:
    batch = four_games()
    before = batch.copy()
    batch.step([GOOD[2], GOOD[0]], rows=[2, 0])
    assert (batch.state[[1, 3]] == before.state[[1, 3]]).all()
    other = before.copy()
    mask = np.array([True, False, True, False])
    other.step([GOOD[0], GOOD[2]], rows=mask)
    assert state_bytes(other) == state_bytes(batch)
    with pytest.raises(IllegalActionError, match="row 3: action 54"):
        batch.step([54], rows=[3])
    batch.step(np.array([], np.int64), rows=[])
    assert state_bytes(other) == state_bytes(batch)


def test_step_refuses_a_row_named_twice() -> None:
    # The second action would be carried out unchecked.
    batch = four_games()
    before = state_bytes(batch)
    with pytest.raises(ValueError, match="row"):
        batch.step([GOOD[0], GOOD[0]], rows=[0, 0])
    assert state_bytes(batch) == before


BAD_ROWS = [[4], [-1], [0.5], 1, [[0]], [True, False], ["0"], [None]]


@pytest.mark.parametrize("rows", BAD_ROWS, ids=repr)
def test_rows_that_are_none_are_refused(rows: Any) -> None:
    batch = four_games()
    before = state_bytes(batch)
    with pytest.raises(ValueError, match="row"):
        batch.reset(rows)
    with pytest.raises(ValueError, match="row"):
        batch.step([0], rows=rows)
    with pytest.raises(ValueError, match="row"):
        batch.views(rows=rows)
    assert state_bytes(batch) == before


def test_a_state_array_of_another_type_is_refused() -> None:
    for state in (np.zeros(3), np.zeros((2, 2), GameBatch(1).state.dtype)):
        with pytest.raises(ValueError, match="state"):
            GameBatch.from_state(state, "classic")


# --- Resets and seeds ---------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [[3, 1], np.array([1, 3]), np.array([0, 1, 0, 1, 0], np.bool_)])
def test_reset_deals_in_the_given_rows_only(rows: Any) -> None:
    batch = GameBatch(5, seed=10)
    before = batch.copy()
    batch.reset(rows)
    assert (batch.state[[0, 2, 4]] == before.state[[0, 2, 4]]).all()
    for row in (1, 3):
        single = before[row]
        single.reset()
        assert batch[row] == single != before[row]


def test_reset_of_no_rows_does_nothing() -> None:
    batch = GameBatch(3, seed=10)
    before = state_bytes(batch)
    for rows in ([], np.zeros(3, np.bool_), np.array([], np.int64)):
        batch.reset(rows)
        batch.reset(rows, seed=5)
        batch.reset(rows, seed=[])
    assert state_bytes(batch) == before


def test_reset_with_a_seed_is_a_new_batch() -> None:
    batch = GameBatch(5, seed=10)
    batch.reset(seed=77)
    assert state_bytes(batch) == state_bytes(GameBatch(5, seed=77))
    batch.reset(seed=[9, 8, 7, 6, 5])
    assert [batch[row] for row in range(5)] == [Game(seed=seed) for seed in (9, 8, 7, 6, 5)]
    batch.reset(rows=[4, 2], seed=100)  # an int counts from the row
    assert batch[4] == Game(seed=104)
    assert batch[2] == Game(seed=102)
    batch.reset(rows=[4, 2], seed=[1, 2])
    assert batch[4] == Game(seed=1)
    assert batch[2] == Game(seed=2)
    assert batch[3] == Game(seed=6)
    game = Game(seed=1)
    game.reset(seed=3)
    assert game == Game(seed=3)


BAD_SEEDS = [-1, 2**64, 1.5, "5", [1, 2], [1, 2, 3, -4], [1, 2, 3, None], [1, 2, 3, "4"], [[1]] * 4]


@pytest.mark.parametrize("seed", BAD_SEEDS, ids=repr)
def test_bad_seeds_are_refused_and_nothing_is_dealt(seed: Any) -> None:
    batch = GameBatch(4, seed=10)
    before = state_bytes(batch)
    with pytest.raises(ValueError, match="seed"):
        batch.reset(seed=seed)
    assert state_bytes(batch) == before
    with pytest.raises(ValueError, match="seed"):
        GameBatch(4, seed=seed)
    with pytest.raises(ValueError, match="seed"):
        Game(seed=seed)
    game = Game(seed=10)
    before = state_bytes(game)
    with pytest.raises(ValueError, match="seed"):
        game.reset(seed=seed)
    assert state_bytes(game) == before


@pytest.mark.parametrize("num_games", [0, -1, 1.5, True, "3", None])
def test_a_bad_number_of_games_is_refused(num_games: Any) -> None:
    with pytest.raises(ValueError, match="num_games must be"):
        GameBatch(num_games)


@pytest.mark.parametrize("dealer", [2, -1, "0", 0.5])
def test_a_bad_dealer_is_refused(dealer: Any) -> None:
    with pytest.raises(ValueError, match="dealer must be"):
        Game(seed=0, dealer=dealer)
    with pytest.raises(ValueError, match="dealer must be"):
        GameBatch(2, seed=0, dealer=dealer)
    with pytest.raises(ValueError, match="dealer must be"):
        Game.from_deck(range(52), dealer=dealer)


@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_row_i_of_a_seeded_batch_is_the_game_of_seed_plus_i(rules: str) -> None:
    batch = GameBatch(6, rules, seed=2**40)
    games = [Game(rules, seed=2**40 + row) for row in range(6)]
    rng = np.random.default_rng(0)
    for _ in range(150):
        assert [batch[row] for row in range(6)] == games
        actions = random_actions(batch, rng)
        batch.step(actions)
        for game, action in zip(games, actions.tolist(), strict=True):
            if not game.done:
                game.step(action)
        for game in games:
            if game.done:
                game.reset()
        batch.reset(batch.done)


def test_a_game_does_not_depend_on_the_batch_around_it() -> None:
    small, large = GameBatch(3, seed=50), GameBatch(40, seed=48)
    rng = np.random.default_rng(0)
    for _ in range(150):
        assert (small.state == large.state[2:5]).all()
        assert (small.observe() == large.observe()[2:5]).all()
        actions = random_actions(large, rng)
        large.step(actions)
        small.step(actions[2:5])
        words = large.views(players=0).random_bits
        assert (small.views(players=0).random_bits == words[2:5]).all()
        for batch in (small, large):
            batch.reset(batch.done)


def test_a_batch_does_not_depend_on_its_threads() -> None:
    alone, shared = GameBatch(4000, seed=1), GameBatch(4000, seed=1, threads=3)
    some = np.arange(0, 4000, 2)
    for _ in range(40):
        actions = [batch.random_actions() for batch in (alone, shared)]
        assert (actions[0] == actions[1]).all()
        for batch in (alone, shared):
            batch.step(actions[0])
            running = some[~batch.done[some]]
            batch.step(batch.legal[running].argmax(axis=1), running)
            batch.reset(batch.done)
        assert alone.state.tobytes() == shared.state.tobytes()
        assert alone.observe().tobytes() == shared.observe().tobytes()
        assert alone.observe(players=1).tobytes() == shared.observe(players=1).tobytes()
        assert (alone.legal == shared.legal).all()
        words = [batch.views().random_bits for batch in (alone, shared)]
        assert (words[0] == words[1]).all()
    actions[0][...] = shared.legal.argmax(axis=1)
    for bad in (0, 2000, 3999):  # in the first thread's part, in another's, at the very end
        before = state_bytes(shared)
        wrong = actions[0].copy()
        wrong[bad] = 54
        with pytest.raises(IllegalActionError, match=rf"row {bad}: action 54"):
            shared.step(wrong)
        assert state_bytes(shared) == before


@pytest.mark.parametrize("threads", [0, -1, 1.5, None, True])
def test_a_bad_number_of_threads_is_refused(threads: Any) -> None:
    with pytest.raises(ValueError, match="threads must be"):
        GameBatch(4, seed=0, threads=threads)


def test_random_actions_are_drawn_evenly_from_each_games_own_stream() -> None:
    games = [game_in(phase) for phase in LEGAL]
    state = np.concatenate([game._state for game in games] * 3000)
    batch = GameBatch.from_state(state, "classic")
    batch.state["rng"] = GameBatch(len(batch), seed=5).state["rng"]
    before = batch.copy()
    actions = batch.random_actions()
    assert (batch.state["rng"][:, 0] == before.state["rng"][:, 0]).all()
    for phase, drawn in zip(LEGAL, actions.reshape(3000, 4).T, strict=True):
        legal = sorted(parse_action(word) for word in LEGAL[phase].split())
        counts = np.bincount(drawn, minlength=54)
        assert counts.sum() == counts[legal].sum()
        assert len(legal) == 1 or chisquare(counts[legal]).pvalue > 1e-3
    assert (before.copy().random_actions([5, 3]) == actions[[5, 3]]).all()
    over = Game.from_position(hands=[["KS"], ["QS"]], table=["TD", "3C"])
    assert GameBatch.from_state(over._state, "classic").random_actions().tolist() == [0]


def test_games_without_a_seed_differ() -> None:
    batch = GameBatch(16)
    assert len({row.tobytes() for row in batch.state}) == 16
    assert Game() != Game()
    batch.reset(seed=None)


def test_the_global_generators_are_neither_read_nor_changed() -> None:
    results = []
    for seed in (0, 1):
        with global_generators_seeded(seed):
            batch = GameBatch(4, seed=3)
            for _ in range(200):
                batch.step(batch.views(rows=~batch.done).legal.argmax(axis=1), ~batch.done)
                batch.reset(batch.done)
            worlds = batch.views().determinize(3)
            game = Game(seed=9)
            game.reset()
            batch.random_actions()
            GameBatch(2).reset()  # entropy does not come from them either
        results.append((state_bytes(batch), state_bytes(worlds), state_bytes(game)))
    assert results[0] == results[1]


def test_S1_the_lot_for_the_dealer_is_fair() -> None:
    batch = GameBatch(20_000, seed=0)
    dealers = batch.state["dealer"]
    assert binomtest(int(dealers.sum()), len(batch), 0.5).pvalue > 1e-3
    assert (batch.to_move == 1 - dealers).all()
    # The lot says nothing of the cards: either dealer's left table card is any of 52.
    for dealer in (0, 1):
        counts = np.bincount(batch.state["table"][dealers == dealer, 0], minlength=52)
        assert chisquare(counts).pvalue > 1e-3


def test_S2_every_place_of_the_deal_gets_every_card_evenly() -> None:
    batch = GameBatch(20_000, seed=10**6)
    places = [batch.state["table"][:, 1], batch.state["stock"][:, 0], batch.state["stock"][:, 37]]
    for cards in places:
        assert chisquare(np.bincount(cards, minlength=52)).pvalue > 1e-3
    for player in (0, 1):
        hands = batch.hands[:, player, None] >> np.arange(52, dtype=np.uint64) & np.uint64(1)
        # Six of 52 without replacement: the spread is smaller than that of independent draws.
        statistic = chisquare(hands.sum(axis=0)).statistic / (1 - 5 / 51)
        assert statistic < 100  # the 99.99 % point of 51 degrees of freedom


def test_S1_fixing_the_dealer_keeps_the_cards() -> None:
    for seed in range(20):
        by_lot = Game(seed=seed)
        for dealer in (0, 1):
            fixed = Game(seed=seed, dealer=dealer)
            assert (fixed.dealer, fixed.to_move) == (dealer, 1 - dealer)
            assert (fixed.hand(0), fixed.hand(1)) == (by_lot.hand(0), by_lot.hand(1))
            assert (fixed.table, fixed.stock) == (by_lot.table, by_lot.stock)
            fixed.reset()
            assert fixed.dealer == dealer
        assert by_lot == Game(seed=seed, dealer=by_lot.dealer)
    batch = GameBatch(50, seed=0, dealer=1)
    assert (batch.state["dealer"] == 1).all()
    batch.reset()
    assert (batch.state["dealer"] == 1).all()


# --- Golden games -------------------------------------------------------------------------------


def kept_games() -> list[dict[str, Any]]:
    return list(json.loads(golden_games.GAMES_FILE.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", [golden_games.GAMES_FILE.name, "classic.txt", "exchange.txt"])
def test_the_golden_files_are_what_is_played_today(path: str) -> None:
    expected = golden_games.expected_files()
    assert {file.name for file in expected} == {p.name for p in golden_games.GOLDEN.iterdir()}
    file = golden_games.GOLDEN / path
    assert file.read_text(encoding="utf-8") == expected[file]


def test_every_rule_set_and_switch_has_a_golden_game() -> None:
    rules = [Rules.parse(kept["rules"]) for kept in kept_games()]
    for variant in ("classic", "exchange"):
        assert Rules(variant) in rules
        assert (golden_games.GOLDEN / f"{variant}.txt").exists()
    assert {r.open_discards for r in rules} == {True, False}
    assert {r.blocked for r in rules} == {"pass", "discard"}


@pytest.mark.parametrize("kept", kept_games(), ids=lambda kept: f"{kept['rules']}-{kept['seed']}")
def test_a_golden_game_follows_the_rule_book(kept: dict[str, Any]) -> None:
    # The kept deck and actions, without any seed, in the engine and in the reference.
    rules = Rules.parse(kept["rules"])
    deck = [parse_card(text, rules) for text in kept["deck"].split()]
    game = Game.from_deck(kept["deck"].split(), rules, kept["dealer"])
    reference = ReferenceGame(
        deck, rules.variant, rules.ranks, rules.suits, rules.hand_size, rules.open_discards,
        rules.blocked, kept["dealer"],
    )  # fmt: skip
    for text in kept["actions"].split():
        action = parse_action(text, rules)
        assert game.legal_actions() == reference.legal_actions()
        game.step(action)
        reference.step(action)
    assert game.done
    assert reference.done
    assert list(game.returns) == list(reference.returns) == kept["returns"]
    assert game.turn == reference.turn == kept["turns"]
    for player in (0, 1):
        hand = [parse_card(text, rules) for text in kept["final_hands"][player].split()]
        assert list(game.hand(player)) == reference.hands[player] == hand


def run_python(*arguments: str, **environment: str) -> str:
    """Run a fresh interpreter with warnings as errors and return what it prints."""
    result = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env=os.environ | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_golden_games_are_the_same_in_plain_python() -> None:
    script = (
        "import runpy, sys\n"
        "from counterweight_env import kernels\n"
        "assert type(kernels.apply).__name__ == 'function', 'compiled'\n"
        "sys.argv = ['golden_games.py']\n"
        "runpy.run_path('tests/golden_games.py', run_name='__main__')\n"
    )
    run_python("-c", script, NUMBA_DISABLE_JIT="1")


# --- Aliases ------------------------------------------------------------------------------------


def fill(value: Any) -> None:
    """Write into every array of a result."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value.view(np.uint8)[...] = 1


def test_what_a_batch_returns_is_not_its_own_memory() -> None:
    batch = four_games()
    batch.step(GOOD)
    before = state_bytes(batch)
    names = [
        "legal",
        "to_move",
        "done",
        "returns",
        "margins",
        "phase",
        "turn",
        "exhausted",
        "hands",
        "hand_counts",
    ]
    for word in names:
        value = getattr(batch, word)
        assert not np.shares_memory(value, batch.state), word
        fill(value)
        assert state_bytes(batch) == before, word
    fill(batch.observe())
    fill(batch.observe(players=1))
    fill(batch[0]._state)
    fill(batch.copy().state)
    assert state_bytes(batch) == before
    words = batch.copy().random_bits()
    assert not np.shares_memory(words, batch.state)
    actions = np.array([0, 0, 0, 0])
    with pytest.raises(IllegalActionError):
        batch.step(actions)
    assert actions.tolist() == [0, 0, 0, 0]
    # And the batch keeps nothing of what it is given.
    decks = np.tile(np.arange(52), (2, 1))
    dealt = GameBatch.from_decks(decks, "classic")
    kept = state_bytes(dealt)
    fill(decks)
    assert state_bytes(dealt) == kept


def test_what_a_game_returns_is_not_its_own_memory() -> None:
    game = game_in("REFILL")
    before = state_bytes(game)
    fill(game.legal_mask())
    fill(game.observe(0))
    game.legal_actions().clear()
    assert state_bytes(game) == before
    assert game.legal_mask().tobytes() == game_in("REFILL").legal_mask().tobytes()
    assert game.legal_actions() == [52, 53]
    for word in ("hand", "discard", "known"):
        assert isinstance(getattr(game, word)(0), tuple)
    assert isinstance(game.table, tuple)
    assert isinstance(game.buried, tuple)


# --- A batch says what its games say ------------------------------------------------------------


@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_a_batch_says_what_its_games_say(rules: str) -> None:
    batch = GameBatch(6, rules, seed=4)
    rng = np.random.default_rng(4)
    while not batch.done.all():
        batch.step(random_actions(batch, rng))
        games = [batch[row] for row in range(6)]
        assert batch.to_move.tolist() == [game.to_move for game in games]
        assert batch.phase.tolist() == [game.phase for game in games]
        assert batch.done.tolist() == [game.done for game in games]
        assert batch.turn.tolist() == [game.turn for game in games]
        assert batch.exhausted.tolist() == [game.exhausted for game in games]
        assert batch.legal.tolist() == [game.legal_mask().tolist() for game in games]
        assert batch.returns.tolist() == [list(game.returns) for game in games]
        margins = np.array([game.margin for game in games], np.float32)
        assert np.allclose(batch.margins, margins, atol=1e-7)
        counts = [[len(game.hand(0)), len(game.hand(1))] for game in games]
        assert batch.hand_counts.tolist() == counts
        masks = [[sum(1 << c for c in game.hand(p)) for p in (0, 1)] for game in games]
        assert batch.hands.tolist() == masks
    assert batch.legal.shape == (6, batch.rules.num_actions)
    assert batch.legal.dtype == np.bool_
    assert batch.returns.dtype == batch.margins.dtype == np.float32
    assert batch.done.dtype == np.bool_
    assert batch.to_move.dtype == np.int8
    assert (batch.returns.sum(axis=1) == 0).all()
    assert (batch.margins.sum(axis=1) == 0).all()
    assert (np.sign(batch.margins) == batch.returns).all()
    assert len(batch) == batch.num_games == 6
    with pytest.raises(IndexError):
        batch[6]
    assert batch[-1] == batch[5]


# --- Imports ------------------------------------------------------------------------------------


def test_importing_and_playing_loads_nothing_heavy_and_no_players() -> None:
    script = (
        "import sys, counterweight_env as cw\n"
        "game = cw.Game(seed=0)\n"
        "str(game), game.view(0).observation\n"
        "env = cw.env()\n"
        "env.reset(seed=0)\n"
        "from counterweight_env.envs import single, vector\n"
        "heavy = 'torch ray jax pyspiel matplotlib tensorboard stable_baselines3 agents train'\n"
        "print(*(name for name in heavy.split() if name in sys.modules))\n"
    )
    assert run_python("-c", script).split() == []


def imported_modules(file: Path) -> Iterator[str]:
    """Yield the absolute name of every module that a file imports, wherever it does so."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            yield node.module or ""


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        ("counterweight_env", {"agents", "train", "notebooks", "tests"}),
        ("agents", {"train", "notebooks", "tests"}),
        ("train", {"notebooks", "tests"}),
    ],
)
def test_imports_go_one_way(package: str, forbidden: set[str]) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    for file in files:
        roots = {name.partition(".")[0] for name in imported_modules(file)}
        assert not roots & forbidden, f"{file.relative_to(ROOT)} imports {roots & forbidden}"


HEAVY = {"torch", "ray", "pyspiel", "matplotlib", "stable_baselines3", "sb3_contrib", "jax"}


@pytest.mark.parametrize("package", ["counterweight_env", "agents"])
def test_heavy_modules_are_not_imported_at_module_level(package: str) -> None:
    for file in sorted((ROOT / package).rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Import):
                roots = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                roots = {(node.module or "").partition(".")[0]}
            else:
                continue
            allowed = {"pyspiel"} if file.name == "open_spiel.py" else set()
            assert not roots & HEAVY - allowed, f"{file.relative_to(ROOT)} imports {roots & HEAVY}"
