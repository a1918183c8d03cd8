"""The observation: its layout, and the encoder against a slow one that follows the docs table.

The slow encoder reads the reference game, so it shares neither the layout nor the state with the
package.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers import is_legal_size, random_deck
from reference_game import ReferenceGame

from counterweight_env import Game, GameBatch, Rules, observation_layout, observation_space
from counterweight_env.observation import observation_size, observation_table

DOCS = Path(__file__).parent.parent / "docs" / "environments.md"

ALL_SIZES = [
    {"ranks": ranks, "suits": suits, "hand_size": hand_size}
    for ranks in range(2, 14)
    for suits in range(1, 5)
    for hand_size in range(2, 25)
    if is_legal_size(ranks, suits, hand_size)
]

# The names in order, and how many numbers each takes, from the docs table.
DECK_PLANES = [
    "hand",
    "table_left",
    "table_right",
    "chosen",
    "buried",
    "own_discard",
    "own_discard_top",
    "own_discard_second",
    "opponent_discard",
    "opponent_discard_top",
    "opponent_discard_second",
    "opponent_known",
]


def widths(ranks: int, suits: int, hand_size: int) -> dict[str, int]:
    """Return the width of every part, in order."""
    deck = ranks * suits
    stock = deck - 2 * hand_size - 2
    counts = {
        "stock_count": stock,
        "opponent_hand_count": hand_size + stock,
        "opponent_discard_count": stock,
    }
    flags = {"phase": 4, "exhausted": 1, "second_refill": 1, "opponent_blocked": 1}
    return dict.fromkeys(DECK_PLANES, deck) | counts | flags


def slow_observation(game: ReferenceGame, player: int) -> dict[str, set[int]]:
    """Return, for every named part, the places that hold a 1."""
    other = 1 - player
    mine, theirs = game.discards[player], game.discards[other]
    shown = theirs if game.open_discards else []
    on_turn = game.to_move == player
    chosen = {game.chosen} if on_turn and game.chosen is not None else set()
    phases = ("LEFT", "RIGHT", "DISCARD", "REFILL")
    return {
        "hand": set(game.hands[player]),
        "table_left": {game.table[0]},
        "table_right": {game.table[1]},
        "chosen": chosen,
        "buried": set(game.buried),
        "own_discard": set(mine),
        "own_discard_top": set(mine[-1:]),
        "own_discard_second": set(mine[-2:-1]),
        "opponent_discard": set(shown),
        "opponent_discard_top": set(shown[-1:]),
        "opponent_discard_second": set(shown[-2:-1]),
        "opponent_known": set(game.known[other]),
        "stock_count": set(range(len(game.stock))),
        "opponent_hand_count": set(range(len(game.hands[other]))),
        "opponent_discard_count": set(range(len(theirs))),
        "phase": {phases.index(game.phase)} if on_turn else set(),
        "exhausted": {0} if game.exhausted else set(),
        "second_refill": {0} if on_turn and game.second_refill else set(),
        "opponent_blocked": {0} if game.blocked_flag[other] else set(),
    }


def as_vector(parts: dict[str, set[int]], sizes: dict[str, int]) -> np.ndarray:
    """Lay the parts out one after the other."""
    row: list[int] = []
    for word, size in sizes.items():
        assert parts[word] <= set(range(size)), (word, parts[word], size)
        row += [int(place in parts[word]) for place in range(size)]
    return np.array(row, np.int8)


@pytest.mark.parametrize("variant", ["classic", "exchange"])
def test_the_layout_covers_the_vector_without_gap_for_every_legal_size(variant: str) -> None:
    for sizes in ALL_SIZES:
        rules = Rules(variant, **sizes)
        layout = observation_layout(rules)
        expected = widths(**sizes)
        assert list(layout) == list(expected)
        stop = 0
        for word, part in layout.items():
            assert (part.start, part.stop, part.step) == (stop, stop + expected[word], None), rules
            stop = part.stop
        assert stop == observation_size(rules) == sum(expected.values())
        assert observation_space(rules).shape == (stop,)
        assert Game(rules, seed=0).observe(0).shape == (stop,)


def test_the_layout_is_the_same_for_rules_and_their_text_and_cannot_be_changed() -> None:
    assert observation_layout("exchange") == observation_layout(Rules("exchange"))
    assert observation_layout() == observation_layout(Rules())
    with pytest.raises(TypeError):
        observation_layout()["hand"] = slice(0, 1)  # type: ignore[index]
    with pytest.raises(ValueError, match="variant must be one of"):
        observation_layout("bridge")


VARIANTS: list[dict[str, Any]] = [
    {"variant": variant, "open_discards": opened, "blocked": blocked, **sizes}
    for variant in ("classic", "exchange")
    for opened in (True, False)
    for blocked in ("pass", "discard")
    for sizes in (
        {"ranks": 13, "suits": 4, "hand_size": 6},
        {"ranks": 6, "suits": 2, "hand_size": 3},
        {"ranks": 7, "suits": 1, "hand_size": 2},
        {"ranks": 4, "suits": 4, "hand_size": 6},
    )
]


@pytest.mark.parametrize("fields", VARIANTS, ids=lambda f: str(Rules(**f)))
def test_the_encoder_agrees_with_the_docs_table(fields: dict[str, Any]) -> None:
    seed = f"observation {Rules(**fields)}"
    print("seed", seed)
    rng = random.Random(seed)
    rules = Rules(**fields)
    sizes = widths(rules.ranks, rules.suits, rules.hand_size)
    games = 12 if rules.deck_size == 52 else 100
    met: set[str] = set()
    for _ in range(games):
        deck, dealer = random_deck(rng, rules.deck_size), rng.randrange(2)
        reference = ReferenceGame(deck, **fields, dealer=dealer)
        game = Game.from_deck(deck, rules, dealer)
        while True:
            rows = {}
            for player in (0, 1):
                parts = slow_observation(reference, player)
                met |= {word for word, places in parts.items() if places}
                rows[player] = as_vector(parts, sizes)
                where = f"player {player}, {deck=}, {dealer=}\n{game}"
                assert game.observe(player).tolist() == rows[player].tolist(), where
                assert game.view(player).observation.tolist() == rows[player].tolist(), where
            batch = GameBatch.from_state(game._state, rules)
            assert (batch.observe()[0] == rows[max(game.to_move, 0)]).all()
            if game.done:
                break
            legal = game.legal_actions()
            reclaims = legal[-1] == rules.reclaim_action and rng.random() < 0.6
            action = legal[-1] if reclaims else rng.choice(legal)
            reference.step(action)
            game.step(action)
    # Every part was seen with something in it, where the rules allow that.
    never = set()
    if not rules.open_discards:
        never |= {word for word in sizes if word.startswith("opponent_discard")}
        never.remove("opponent_discard_count")
    if rules.variant == "exchange" or rules.deck_size == 12:  # too rare among twelve cards
        never.add("second_refill")
    if rules.deck_size == 7:  # one stock card: nothing outlasts a discard
        never |= {"own_discard", "opponent_discard", "opponent_discard_count", "second_refill"}
        never |= {"opponent_blocked"}
        never |= {word for word in sizes if word.endswith(("_top", "_second"))}
    if rules.deck_size == 16:  # two stock cards: a pile of one is the most
        never |= {"own_discard_second", "opponent_discard_second", "second_refill"}
    assert met >= set(sizes) - never, sorted(set(sizes) - never - met)
    assert not met & never - {"second_refill"}


def test_a_finished_game_is_encoded_for_player_0() -> None:
    game = Game.from_position(hands=[["KS"], ["QS", "QH", "JS"]], table=["TD", "3C"])
    assert game.done
    batch = GameBatch.from_state(game._state, game.rules)
    assert (batch.observe()[0] == game.observe(0)).all()
    assert (batch.observe()[0] != game.observe(1)).any()
    layout = observation_layout()
    assert game.observe(0)[layout["phase"]].sum() == 0
    assert game.observe(0)[layout["opponent_hand_count"]].sum() == 3
    assert game.observe(1)[layout["opponent_hand_count"]].sum() == 1


# --- Batches ------------------------------------------------------------------------------------


def played_batch(num_games: int = 8, decisions: int = 25) -> GameBatch:
    batch = GameBatch(num_games, seed=3)
    rng = np.random.default_rng(3)
    for _ in range(decisions):
        batch.step([rng.choice(np.flatnonzero(row)) for row in batch.legal])
    return batch


def test_observe_writes_into_out_and_returns_it() -> None:
    batch = played_batch()
    out = np.full((len(batch), observation_size(batch.rules)), 7, np.int8)
    assert batch.observe(out) is out
    assert out.tobytes() == batch.observe().tobytes()
    assert set(np.unique(out)) == {0, 1}
    assert batch.observe().dtype == np.int8


@pytest.mark.parametrize("rules", ["classic", "exchange(ranks=7,suits=1,hand_size=2)"])
@pytest.mark.parametrize("num_games", [1, 2, 3, 9, 40])
def test_observe_writes_nothing_outside_of_out(rules: str, num_games: int) -> None:
    batch = GameBatch(num_games, rules, seed=3)
    wide = np.full((num_games + 20, observation_size(batch.rules)), 7, np.int8)
    out = wide[10:-10]
    batch.observe(out)
    assert out.tobytes() == batch.observe().tobytes()
    assert [out[row].tolist() for row in range(num_games)] == [
        game.observe(game.to_move).tolist() for game in map(batch.__getitem__, range(num_games))
    ]
    out[...] = 7
    assert (wide == 7).all()


def test_observe_takes_the_side_it_is_asked_for() -> None:
    batch = played_batch()
    singles = [[batch[row].observe(player) for player in (0, 1)] for row in range(len(batch))]
    for player in (0, 1):
        rows = batch.observe(players=player)
        assert all((rows[i] == singles[i][player]).all() for i in range(len(batch)))
    sides = np.arange(len(batch)) % 2
    for players in (sides, sides.tolist(), sides.astype(np.int8), sides.astype(np.uint64)):
        rows = batch.observe(players=players)
        assert all((rows[i] == singles[i][sides[i]]).all() for i in range(len(batch)))
    assert batch.observe().tobytes() == batch.observe(players=batch.to_move).tobytes()


def read_only(shape: tuple[int, int]) -> np.ndarray:
    array = np.zeros(shape, np.int8)
    array.flags.writeable = False
    return array


SHAPE = (8, observation_size(Rules()))


@pytest.mark.parametrize(
    "out",
    [
        np.zeros((7, SHAPE[1]), np.int8),
        np.zeros((8, SHAPE[1] - 1), np.int8),
        np.zeros(SHAPE[1], np.int8),
        np.zeros(SHAPE, np.uint8),
        np.zeros(SHAPE, np.float32),
        np.zeros(SHAPE, np.bool_),
        np.zeros((8, SHAPE[1] + 1), np.int8)[:, 1:],
        np.zeros(SHAPE, np.int8, order="F"),
        read_only(SHAPE),
        np.zeros(SHAPE, np.int8).tolist(),
    ],
    ids=[
        "rows",
        "width",
        "flat",
        "uint8",
        "float32",
        "bool",
        "columns",
        "order F",
        "read-only",
        "list",
    ],
)
def test_observe_refuses_an_out_that_does_not_fit(out: Any) -> None:
    batch = played_batch()
    with pytest.raises(ValueError, match="out must be"):
        batch.observe(out)


@pytest.mark.parametrize(
    "players", [2, -1, [0] * 7, [0, 1, 0, 1, 0, 1, 0, 2], 0.5, "0", [None] * 8]
)
def test_observe_refuses_players_that_are_none(players: Any) -> None:
    with pytest.raises(ValueError, match=r"players"):
        played_batch().observe(players=players)


@pytest.mark.parametrize("player", [2, -1, None, "0"])
def test_a_game_refuses_a_player_that_is_none(player: Any) -> None:
    game = Game(seed=0)
    for ask in (game.observe, game.view, game.hand, game.discard, game.known):
        with pytest.raises(ValueError, match="player must be 0 or 1"):
            ask(player)


# --- Space and docs -----------------------------------------------------------------------------


@pytest.mark.parametrize("rules", ["classic", "exchange(ranks=6,suits=2,hand_size=3)"])
def test_the_space_contains_every_observation(rules: str) -> None:
    space = observation_space(rules)
    size = observation_size(Rules.parse(rules))
    assert space == gym.spaces.Box(0, 1, (size,), np.int8)
    assert isinstance(space, gym.spaces.Box)
    assert space.dtype == np.int8
    batch = GameBatch(16, rules, seed=1)
    rng = np.random.default_rng(1)
    for _ in range(60):
        for player in (0, 1):
            assert all(space.contains(row) for row in batch.observe(players=player))
        batch.step([rng.choice(np.flatnonzero(row)) if row.any() else 0 for row in batch.legal])


def test_the_docs_show_the_layout_as_it_is() -> None:
    # Regenerate with: python -c "from counterweight_env.observation import observation_table;
    # print(observation_table('classic'), end='')"
    assert observation_table("classic") in DOCS.read_text(encoding="utf-8")


def test_the_docs_table_is_read_from_the_layout() -> None:
    lines = observation_table("exchange(ranks=6,suits=2,hand_size=3)").splitlines()
    layout = observation_layout("exchange(ranks=6,suits=2,hand_size=3)")
    assert lines[:2] == ["| slice | width | name | meaning |", "|---|---|---|---|"]
    assert len(lines) == 2 + len(layout)
    for line, (word, part) in zip(lines[2:], layout.items(), strict=True):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[:3] == [f"{part.start}:{part.stop}", str(part.stop - part.start), f"`{word}`"]
        assert len(cells) == 4
        assert len(cells[3]) > 5
