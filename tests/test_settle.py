"""`solve_endings`: games that end at exhaustion with their exact value, wherever it is offered."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from endings import SMALL_RULES, value_for_player_0
from players import Even, First

from counterweight_env import Game, GameBatch, Phase
from counterweight_env.endgame import solve
from counterweight_env.envs.duel import Duel
from counterweight_env.envs.vector import CounterweightVectorEnv
from counterweight_env.render import view_text
from counterweight_env.settle import Settler
from train.vec_env import SelfPlayVecEnv

VARIANTS = ("classic", "exchange")
SMALL = SMALL_RULES[4]


def both(rules: str, num_games: int, seed: int) -> Iterator[tuple[Game, Game]]:
    """Yield games that have just been exhausted, as they go on and as they end by their value."""
    plain = GameBatch(num_games, rules, seed=seed)
    solved = GameBatch(num_games, rules, seed=seed, solve_endings=True)
    while not solved.done.all():
        rows = np.flatnonzero(~solved.done)
        assert not plain.exhausted[rows].any()
        assert (plain.state[rows] == solved.state[rows]).all(), "equal before exhaustion"
        actions = plain.random_actions(rows)
        assert (solved.random_actions(rows) == actions).all()
        plain.step(actions, rows=rows)
        solved.step(actions, rows=rows)
        assert (solved.done[rows] == plain.exhausted[rows]).all()
        for row in rows[solved.done[rows]]:
            yield plain[row], solved[row]
    assert solved.unsolved == 0


@pytest.mark.parametrize("rules", SMALL_RULES)
def test_games_end_at_exhaustion_with_the_value_of_the_oracle(rules: str) -> None:
    values = []
    for plain, solved in both(rules, 200, seed=41):
        assert solved.done
        assert solved.settled == (not plain.done)
        expected = plain.returns[0] if plain.done else value_for_player_0(plain)
        assert solved.returns == (expected, -expected), str(plain)
        values.append(expected)
    assert len(values) == 200
    assert {-1, 1} <= set(values)


def check_exhausted_games(rules: str, num_games: int, seed: int) -> None:
    plain = GameBatch(num_games, rules, seed=seed)
    solved = GameBatch(num_games, rules, seed=seed, solve_endings=True, solve_nodes=100_000)
    while (~plain.exhausted).any():
        rows = np.flatnonzero(~plain.exhausted)
        actions = plain.random_actions(rows)
        plain.step(actions, rows=rows)
        solved.step(actions, rows=rows)
    settled = [row for row in range(num_games) if solved[row].settled]
    assert len(settled) > 0.8 * num_games
    assert len(settled) + solved.unsolved + plain.done.sum() == num_games
    for row in settled:
        value = solve(plain[row]).value
        assert value is not None
        mover = int(plain.to_move[row])
        assert solved.returns[row, mover] == value
        assert solved.returns[row, 1 - mover] == -value


@pytest.mark.parametrize("rules", VARIANTS)
def test_full_decks_end_with_the_value_of_the_solver(rules: str) -> None:
    check_exhausted_games(rules, 40, seed=42)


@pytest.mark.parametrize("rules", ["classic", "exchange(blocked=discard,ranks=6,suits=3)"])
def test_a_settled_game_is_over_and_its_hands_are_left_as_they_are(rules: str) -> None:
    some = 0
    for plain, solved in both(rules, 12, seed=43):
        if plain.done:
            continue
        some += 1
        assert solved.phase == Phase.OVER
        assert solved.to_move == -1
        assert solved.legal_actions() == []
        assert not solved.legal_mask().any()
        for player in range(2):
            assert solved.hand(player) == plain.hand(player)
            assert not solved.view(player).legal_mask.any()
            assert solved.view(player).settled
            assert solved.view(player).returns == solved.returns
        assert (solved.table, solved.buried, solved.turn) == (
            plain.table,
            plain.buried,
            plain.turn,
        )
        assert np.isnan(solved.margin).all()
        with pytest.raises(ValueError, match="over"):
            solved.step(plain.legal_actions()[0])
        for text in (str(solved), *(view_text(solved.view(player)) for player in range(2))):
            assert "by perfect play from here on" in text
            assert "cards in hand" not in text
        assert "perfect play" not in str(plain)
        assert not plain.settled
        assert not plain.view(0).settled
    assert some > 5


def settled_batch(rules: str = SMALL, num_games: int = 40, seed: int = 44) -> GameBatch:
    """Return a batch whose games are all over, most of them settled."""
    games = GameBatch(num_games, rules, seed=seed, solve_endings=True)
    while not games.done.all():
        rows = np.flatnonzero(~games.done)
        games.step(games.random_actions(rows), rows=rows)
    return games


def test_margins_are_nan_for_settled_games_only() -> None:
    games = settled_batch()
    settled = games.state["settled"] != 0
    assert 0 < (~settled).sum() < settled.sum()
    assert (np.isnan(games.margins).all(axis=1) == settled).all()
    assert (np.isnan(games.margins).any(axis=1) == settled).all()
    assert np.isfinite(games.returns).all()


def test_settled_games_go_through_json_pickle_and_copy() -> None:
    games = settled_batch()
    values = set()
    for row in range(len(games)):
        game = games[row]
        for twin in (
            Game.from_json(game.to_json()),
            pickle.loads(pickle.dumps(game)),
            game.copy(),
            copy.deepcopy(game),
        ):
            assert twin == game
            assert twin.settled == game.settled
            assert twin.returns == game.returns == tuple(games.returns[row])
            assert str(twin) == str(game)
        if game.settled:
            values.add(game.returns[0])
    assert values == {-1.0, 0.0, 1.0}


def test_a_copied_or_pickled_batch_goes_on_solving() -> None:
    games = GameBatch(30, SMALL, seed=45, solve_endings=True, solve_nodes=1)
    for _ in range(8):
        games.step(games.random_actions())
    assert 0 < games.done.sum() < 30
    assert len(pickle.dumps(games)) < 40_000, "the solver's memory stays out of it"
    twins = [games.copy(), copy.deepcopy(games), pickle.loads(pickle.dumps(games))]
    assert [twin.unsolved for twin in twins] == [0, games.unsolved, games.unsolved]
    while not games.done.all():
        for batch in (games, *twins):
            batch.step(batch.random_actions())
    for twin in twins:
        assert (twin.state == games.state).all()
    assert twins[1].unsolved == twins[2].unsolved == games.unsolved > 0


def test_games_dealt_afterwards_are_normal() -> None:
    games = settled_batch()
    fresh = GameBatch(40, SMALL, seed=7)
    games.reset(seed=7)
    assert (games.state == fresh.state).all()
    assert not games.done.any()
    assert (games.returns == 0).all()
    assert not games.state["settled"].any()
    games.solve_endings(False)
    while not games.done.all():
        actions = games.random_actions()
        games.step(actions)
        fresh.random_actions()
        fresh.step(actions)
    assert (games.state == fresh.state).all()
    assert np.isfinite(games.margins).all()


def test_it_is_off_by_default_and_can_be_switched() -> None:
    games = GameBatch(40, SMALL, seed=8)
    while not games.done.all():
        games.step(games.random_actions())
    assert games.unsolved == 0
    assert not games.state["settled"].any()
    games.reset(seed=8)
    games.solve_endings()
    while not games.done.all():
        games.step(games.random_actions())
    assert games.state["settled"].any()


# The node limit ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "nodes"),
    [("classic", 60), (SMALL, 1), ("exchange(ranks=6,suits=3,blocked=discard)", 10)],
)
def test_what_the_limit_leaves_open_is_counted_goes_on_and_is_tried_again(
    rules: str, nodes: int
) -> None:
    games = GameBatch(100, rules, seed=46, solve_endings=True, solve_nodes=nodes)
    plain = GameBatch(100, rules, seed=46)
    tries = later = 0
    while not games.done.all():
        rows = np.flatnonzero(~games.done)
        exhausted = games.exhausted[rows]
        actions = games.random_actions(rows)
        plain.random_actions(rows)  # keeps its streams level
        plain.step(actions, rows=rows)
        games.step(actions, rows=rows)
        left_open = rows[games.exhausted[rows] & ~games.done[rows]]
        tries += (games.phase[left_open] != Phase.RIGHT).sum()
        assert games.unsolved == tries
        later += (exhausted & (games.state["settled"][rows] != 0)).sum()
        assert (games.state[left_open] == plain.state[left_open]).all(), "it just goes on"
        for row in rows[games.state["settled"][rows] != 0]:
            # A value that is proven in few nodes is as exact as any other.
            before = plain[row]
            if not before.done:
                assert games.returns[row, before.to_move] == solve(before).value
    assert tries > 0
    assert later > 0


def test_the_same_games_are_left_open_whatever_the_batch_and_the_threads() -> None:
    def play(num_games: int, seed: int, **options: Any) -> tuple[GameBatch, int]:
        games = GameBatch(
            num_games, "exchange", seed=seed, solve_endings=True, solve_nodes=300, **options
        )
        while not games.done.all():
            games.step(games.random_actions())
        return games, games.unsolved

    whole, unsolved = play(600, 47)
    assert unsolved > 100
    threaded, unsolved_threaded = play(600, 47, threads=2)
    assert (threaded.state == whole.state).all()
    assert unsolved_threaded == unsolved
    first, unsolved_first = play(200, 47)
    rest, unsolved_rest = play(400, 247)
    assert (np.concatenate([first.state, rest.state]) == whole.state).all()
    assert unsolved_first + unsolved_rest == unsolved
    for row in (0, 17, 599):
        single, _ = play(1, 47 + row)
        assert single.state[0] == whole.state[row]


@pytest.mark.parametrize("nodes", [0, -1, 2.5, True, "many"])
def test_bad_node_limits_are_refused_by_name(nodes: Any) -> None:
    makers = (
        lambda: GameBatch(2, SMALL, solve_endings=True, solve_nodes=nodes),
        lambda: GameBatch(2, SMALL).solve_endings(True, nodes),
        lambda: Duel(2, SMALL, [First()], solve_endings=True, solve_nodes=nodes),
        lambda: CounterweightVectorEnv(2, SMALL, First(), solve_endings=True, solve_nodes=nodes),
        lambda: SelfPlayVecEnv(2, SMALL, [First()], solve_endings=True, solve_nodes=nodes),
        lambda: Settler(nodes),
    )
    for make in makers:
        with pytest.raises(ValueError, match="solve_nodes"):
            make()


@pytest.mark.parametrize("on", [1, None, "yes"])
def test_solve_endings_is_a_bool(on: Any) -> None:
    with pytest.raises(ValueError, match="solve_endings"):
        GameBatch(2, SMALL, solve_endings=on)


# Environments -----------------------------------------------------------------------------------


def test_a_margin_cannot_be_the_reward_of_a_settled_game() -> None:
    for make in (
        lambda: Duel(2, SMALL, [First()], reward="margin", solve_endings=True),
        lambda: CounterweightVectorEnv(2, SMALL, First(), reward="margin", solve_endings=True),
        lambda: SelfPlayVecEnv(2, SMALL, [First()], reward="margin", solve_endings=True),
    ):
        with pytest.raises(ValueError, match=r"solve_endings.*reward"):
            make()


@pytest.mark.parametrize("rules", SMALL_RULES[1::2])
def test_a_duel_pays_the_value_to_the_learner(rules: str) -> None:
    solved = Duel(120, rules, [Even()], seed=48, solve_endings=True)
    plain = Duel(120, rules, [Even()], seed=48)
    games = plain.games
    paid = 0
    running = np.arange(120)
    # Small decks may be exhausted, and dealt anew where solved, before the learner decides.
    running = running[(solved.games.state == games.state)]
    assert running.size > 60
    actions = np.zeros(120, np.int64)
    while running.size:
        for duel in (solved, plain):
            actions[:] = np.where(duel.legal.any(axis=1), duel.legal.argmax(axis=1), 0)
            if duel is solved:
                rewards, done = duel.step(actions)
            else:
                duel.step(actions)
        ended = running[done[running]]
        for row in ended:
            game = solved.games[row]
            assert rewards[row] == game.returns[solved.seats[row]]
            assert game.exhausted
            if game.settled:
                expected = value_of(game)
                assert game.returns[0] == expected, str(game)
                paid += 1
        running = running[~done[running]]
        assert (solved.games.state[running] == games.state[running]).all()
    assert paid > 40


def value_of(settled: Game) -> int:
    """Return the oracle's value for player 0 of a settled game, whoever was on turn.

    A settled game does not say so any more: S3 and F1 do, from the turns completed.
    """
    first_mover = 1 - settled.dealer
    to_move = (first_mover + settled.turn) % 2
    return value_for_player_0(
        Game.from_position(
            (settled.hand(0), settled.hand(1)),
            settled.table,
            buried=settled.buried,
            to_move=to_move,
            rules=settled.rules,
        )
    )


@pytest.mark.parametrize("kind", ["vector", "sb3"])
def test_environments_end_games_at_exhaustion(kind: str) -> None:
    options: dict[str, Any] = {"solve_endings": True, "solve_nodes": 1}
    env: Any
    if kind == "vector":
        env = CounterweightVectorEnv(40, SMALL, Even(), **options)
        env.reset(seed=49)
    else:
        env = SelfPlayVecEnv(40, SMALL, [Even()], seed=49, **options)
        env.reset()
    duel = Duel(40, SMALL, [Even()], seed=49, **options)
    duel.reset(seed=49)
    games = 0
    for _ in range(40):
        masks = env.action_masks()
        assert (masks == duel.legal).all()
        assert masks.any(axis=1).all(), "dealt anew, a game is a normal one"
        actions = masks.argmax(axis=1)
        rewards, done, ended = duel.step_autoreset(actions)
        stepped = env.step(actions)
        assert (stepped[0] == duel.observe()).all()
        assert (stepped[1] == rewards).all()
        assert (stepped[2] == done).all()
        games += ended.rows.size
    assert games > 100
    assert env.unsolved == duel.games.unsolved > 0


def test_sb3_slots_play_what_each_would_play_alone_and_a_state_is_taken_back() -> None:
    options: dict[str, Any] = {"solve_endings": True, "solve_nodes": 40}
    whole = SelfPlayVecEnv(12, "exchange", [Even()], seed=50, **options)
    singles = [SelfPlayVecEnv(1, "exchange", [Even()], seed=50 + i, **options) for i in range(12)]
    for env in (whole, *singles):
        env.reset()
    other = SelfPlayVecEnv(12, "exchange", [Even()], seed=99, **options)
    other.reset()
    for step in range(120):
        if step == 60:
            other.set_state(whole.get_state())
        actions = whole.action_masks().argmax(axis=1)
        observations, rewards, dones, _ = whole.step(actions)
        if step >= 60:
            again = other.step(actions)
            assert (again[0] == observations).all()
            assert (again[1] == rewards).all()
        for row, single in enumerate(singles):
            alone = single.step(actions[row : row + 1])
            assert (alone[0] == observations[row]).all()
            assert alone[1] == rewards[row]
            assert alone[2] == dones[row]
    assert whole.unsolved == sum(single.unsolved for single in singles) > 0


def test_environments_are_unsolved_by_nothing_when_off() -> None:
    env = SelfPlayVecEnv(8, SMALL, [Even()], seed=51)
    env.reset()
    for _ in range(30):
        env.step(env.action_masks().argmax(axis=1))
    assert env.unsolved == 0
    assert not env.get_state()["games"]["settled"].any()
