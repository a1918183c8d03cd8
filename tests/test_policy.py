"""The network as a player and as a policy for SB3: the same numbers everywhere, and its files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import random_deck, symmetries
from players import global_generators_seeded
from sb3_contrib import MaskablePPO
from test_moves import image_of_move
from test_moves import moves_of as moves_by_row

from agents import make_agent, play_match
from agents.moves import ENDING, MAX_MOVES, OPENING, WIDTH, list_moves
from agents.policy import (
    PRETRAINED,
    Network,
    Policy,
    PolicyFileError,
    digest,
    load_network,
    scorer_of,
)
from agents.search import GUIDES
from counterweight_env import Game, GameBatch, Rules, ViewBatch
from counterweight_env.cards import rule_table
from counterweight_env.kernels import NO_CARD
from train.network import MoveNet, MovePolicy, describe_observations, load_into, network_of
from train.vec_env import SelfPlayVecEnv

RULE_SETS = ("classic", "exchange", "exchange(ranks=5,suits=3,hand_size=3)")


def some_network(hidden: int = 16, seed: int = 0, rules: str = "classic") -> Network:
    """Return a network of drawn numbers, large enough that choices are clear."""
    rng = np.random.default_rng(seed)
    arrays = {
        name: (rng.normal(size=shape) * 0.4).astype(np.float32)
        for name, shape in Network.shapes(hidden).items()
    }
    return Network(arrays, {"rules": rules, "hidden": hidden})


def all_views(rules: str, games: int, seed: int) -> list[ViewBatch]:
    """Return the views of every decision of random games, a batch a step."""
    batch = GameBatch(games, rules, seed)
    views = []
    while not batch.done.all():
        live = np.flatnonzero(~batch.done)
        views.append(batch.views(rows=live))
        batch.step(batch.random_actions())
    return views


def plain_scores(network: Network, rows: np.ndarray, late: bool) -> tuple[np.ndarray, float]:
    """Return the scores of some rows and their position's value, in float64 NumPy."""
    kind, features = ("ending", len(ENDING)) if late else ("opening", len(OPENING))

    def layer(name: str, x: np.ndarray) -> np.ndarray:
        weight = network.arrays[f"{kind}.{name}.weight"].astype(np.float64)
        return x @ weight + network.arrays[f"{kind}.{name}.bias"]

    hidden = np.maximum(layer("hidden_1", rows[:, :features].astype(np.float64)), 0)
    hidden = np.maximum(layer("hidden_2", hidden), 0)
    return layer("score", hidden)[:, 0], float(np.tanh(layer("value", hidden.mean(axis=0))[0]))


def moves_of(views: ViewBatch, row: int) -> tuple[np.ndarray, np.ndarray]:
    actions = np.empty((MAX_MOVES, 2), np.int64)
    rows = np.empty((MAX_MOVES, WIDTH), np.float32)
    table = rule_table(views.rules)[0]
    count = list_moves(views.records[row], table, int(views.players[row]), actions, rows)
    return actions[:count], rows[:count]


@pytest.mark.parametrize("rules", RULE_SETS)
def test_the_player_takes_the_move_with_the_best_score(rules: str) -> None:
    network = some_network()
    player = Policy.of(network, "net")
    late = 0
    for views in all_views(rules, 12, 2)[::5]:
        picked = player.act(views)
        assert (player.probabilities(views).argmax(axis=1) == picked).all()
        for row in range(len(views)):
            actions, rows = moves_of(views, row)
            ending = bool(scorer_of(views.records[row]))
            late += ending
            scores, _ = plain_scores(network, rows, ending)
            best = scores[actions[:, 0] == picked[row]].max()
            assert best == pytest.approx(scores.max(), abs=1e-5)
    assert late > 5


def test_moves_are_drawn_as_often_as_the_scores_say() -> None:
    network = some_network(seed=3)
    views = next(
        views.take(np.array([row]))
        for views in all_views("exchange", 20, 4)
        for row in range(len(views))
        if 3 <= len(moves_of(views, row)[0]) <= 8
    )
    actions, rows = moves_of(views, 0)
    scores, _ = plain_scores(network, rows, bool(scorer_of(views.records[0])))
    for temperature in (1.0, 2.5):
        weights = np.exp((scores - scores.max()) / temperature)
        n = 20_000
        many = views.take(np.zeros(n, np.int64))
        many.random_bits = np.random.default_rng(5).integers(0, 2**64, n, np.uint64)
        player = Policy.of(network, "net", temperature)
        drawn = player.act(many)
        chances = player.probabilities(views)[0]
        assert chances.sum() == pytest.approx(1)
        for action in set(actions[:, 0].tolist()):
            share = weights[actions[:, 0] == action].sum() / weights.sum()
            assert chances[action] == pytest.approx(share, abs=1e-5)
            error = np.sqrt(share * (1 - share) / n)
            assert abs((drawn == action).mean() - share) < 5 * error + 1e-9


@pytest.mark.parametrize("rules", RULE_SETS)
def test_torch_and_numba_give_the_same_scores_and_values(rules: str) -> None:
    """To 1e-5, against plain NumPy; logits gather the moves that begin alike."""
    network = some_network(24, seed=6, rules=rules)
    net = MoveNet(24)
    load_into(net, network.arrays)
    again = network_of(net, rules)
    for name, array in network.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
    space = SelfPlayVecEnv(1, rules)
    policy = MovePolicy(
        space.observation_space, space.action_space, lambda _: 1e-3, rules=rules, hidden=24
    )
    load_into(policy.move_net, network.arrays)
    for views in all_views(rules, 8, 7)[::7]:
        moves = describe_observations(views.observation, views.rules)
        with torch.no_grad():
            scores, values = net(moves)
            observations = torch.from_numpy(views.observation)
            logits = policy.get_distribution(observations).distribution.logits.numpy()
            np.testing.assert_allclose(policy.predict_values(observations)[:, 0], values)
        for row in range(len(views)):
            actions, rows = moves_of(views, row)
            expected, value = plain_scores(network, rows, bool(scorer_of(views.records[row])))
            mine = (moves.owners == row).numpy()
            np.testing.assert_allclose(scores.numpy()[mine], expected, atol=1e-5)
            assert float(values[row]) == pytest.approx(value, abs=1e-5)
            weights = np.exp(expected - expected.max())
            for action in range(views.rules.num_actions):
                share = weights[actions[:, 0] == action].sum() / weights.sum()
                assert np.exp(logits[row, action]) == pytest.approx(share, abs=1e-5)
            assert ((np.exp(logits[row]) > 0) <= views.legal[row]).all()


def test_ppo_learns_with_the_policy_and_loads_it_again(tmp_path: Path) -> None:
    env = SelfPlayVecEnv(8, "exchange(ranks=5,suits=3,hand_size=3)", ["random"], seed=1)
    options = {"rules": str(env.rules), "hidden": 8}
    model = MaskablePPO(
        MovePolicy, env, n_steps=16, batch_size=32, policy_kwargs=options, device="cpu", seed=2
    )
    before = model.policy.to_network()  # type: ignore[operator]
    model.learn(256)
    after = model.policy.to_network()  # type: ignore[operator]
    assert digest(before.arrays) != digest(after.arrays)
    model.save(tmp_path / "model.zip")
    loaded = MaskablePPO.load(tmp_path / "model.zip", device="cpu")
    assert digest(loaded.policy.to_network().arrays) == digest(after.arrays)  # type: ignore[operator]
    observation = env.reset()
    masks = env.action_masks()
    picked, _ = loaded.predict(observation, action_masks=masks, deterministic=True)
    assert masks[np.arange(8), picked].all()


@pytest.mark.parametrize("rules", ["classic", "exchange"])
def test_the_96_images_of_a_position_are_played_alike(rules: str) -> None:
    """The move that is picked has the same row in every image: it is the same or its equal."""
    rng = random.Random(9)
    player = Policy.of(some_network(seed=8), "net")
    images = symmetries()
    for _ in range(3):
        deck = random_deck(rng)
        games = [Game.from_deck(image.deck(deck, 6), rules, dealer=1) for image in images]
        base = Game.from_deck(deck, rules, dealer=1)
        while not base.done:
            rows = set()
            for game in games:
                picked = int(player.act(game.view(game.to_move)._batch)[0])
                scores = {
                    row: plain_scores(player.network, np.array([row]), game.exhausted)[0][0]
                    for move, row in moves_by_row(game).items()
                    if move[0] == picked
                }
                rows.add(max(scores, key=lambda row: round(scores[row], 4)))
            assert len(rows) == 1
            move = rng.choice(sorted(moves_by_row(base)))
            rules_of = base.rules
            for image, game in zip([None, *images], [base, *games], strict=True):
                there = move if image is None else image_of_move(image, rules_of, move)
                for action in there:
                    if action != NO_CARD:
                        game.step(action)


def test_play_follows_from_views_and_random_bits_only() -> None:
    player = Policy.of(some_network(seed=1), "net", temperature=1.0)
    for views in all_views("classic", 10, 3)[::11]:
        together = player.act(views)
        with global_generators_seeded(4):
            alone = [player.act(views.take(np.array([row])))[0] for row in range(len(views))]
        np.testing.assert_array_equal(together, alone)


# --- Files --------------------------------------------------------------------------------------


def test_a_file_gives_back_the_network(tmp_path: Path) -> None:
    path = tmp_path / "net.npz"
    network = some_network()
    Network(network.arrays, {**network.manifest, "command": "train", "score": 0.5}).save(path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["net.npz"]
    loaded = load_network(path)
    assert loaded.manifest["command"] == "train"
    assert loaded.manifest["sha256"] == digest(network.arrays)
    for name, array in network.arrays.items():
        np.testing.assert_array_equal(loaded.arrays[name], array)
    views = all_views("classic", 20, 1)[3]
    player = make_agent(f"policy:{path}")
    np.testing.assert_array_equal(player.act(views), Policy.of(network, "net").act(views))
    assert str(path) in player.name
    make_agent(f"policy:path={path},temperature=0.5")


def test_bad_files_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "net.npz"
    with pytest.raises(PolicyFileError, match=r"net\.npz: there is no such file"):
        load_network(path)
    for content in (b"", b"poem", b"PK\x03\x04" + bytes(50)):
        path.write_bytes(content)
        with pytest.raises(PolicyFileError, match=r"net\.npz"):
            load_network(path)
    some_network().save(path)
    whole = path.read_bytes()
    for end in (10, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:end])
        with pytest.raises(PolicyFileError, match=r"net\.npz"):
            load_network(path)
    np.savez(path, manifest=np.array([object()], dtype=object), allow_pickle=True)
    with pytest.raises(PolicyFileError, match=r"net\.npz"):
        load_network(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layout": 99}, "layout 99"),
        ({"hidden": 0}, "hidden.*0"),
        ({"hidden": "wide"}, "hidden.*wide"),
        ({"hidden": 17}, r"opening\.hidden_1"),
        ({"sha256": "0" * 64}, "damaged"),
    ],
)
def test_a_bad_manifest_is_refused_by_name(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "net.npz"
    some_network().save(path)
    with np.load(path) as file:
        contents = dict(file)
    manifest = {**json.loads(str(contents["manifest"])), **change}
    contents["manifest"] = np.array(json.dumps(manifest))
    np.savez(path, **contents)
    with pytest.raises(PolicyFileError, match=message) as caught:
        load_network(path)
    assert "net.npz" in str(caught.value)


@pytest.mark.parametrize("fault", ["missing", "shape", "dtype", "nan"])
def test_bad_arrays_are_refused_by_name(fault: str) -> None:
    network = some_network()
    name = "ending.hidden_2.bias"
    arrays = dict(network.arrays)
    changed = {
        "shape": arrays[name][:-1],
        "dtype": arrays[name].astype(np.float64),
        "nan": np.full_like(arrays[name], np.nan),
    }
    if fault == "missing":
        del arrays[name]
    else:
        arrays[name] = changed[fault]
    with pytest.raises(PolicyFileError, match=r"ending\.hidden_2\.bias"):
        Network(arrays, network.manifest)


@pytest.mark.parametrize("temperature", [-1, float("nan"), float("inf"), "warm", True])
def test_a_bad_temperature_is_named(temperature: Any) -> None:
    with pytest.raises(ValueError, match="temperature"):
        Policy(temperature=temperature)


@pytest.mark.parametrize("path", sorted(PRETRAINED.iterdir()), ids=lambda path: path.name)
def test_a_shipped_network_says_how_it_was_made(path: Path) -> None:
    network = load_network(path)
    variant = path.stem.removesuffix("-exact")
    assert Rules.parse(network.manifest["rules"]) == Rules(variant=variant)
    assert network.manifest["command"].startswith(f"counterweight train --rules {variant}")
    assert ("endings=exact" in network.manifest["command"]) == path.stem.endswith("-exact")
    assert network.manifest["commit"]
    assert network.manifest["score"]


def test_every_network_that_players_ask_for_is_shipped() -> None:
    names = {path.name for path in PRETRAINED.iterdir()}
    assert names == {"classic.npz", "exchange.npz"} | {path.name for path in GUIDES.values()}


def test_the_network_of_the_search_is_strong_with_perfect_endings() -> None:
    match = play_match(f"policy:{GUIDES['classic']}+exact", "random+exact", "classic", 60, seed=4)
    assert match.interval[0] > 0.6


@pytest.mark.parametrize("variant", ["classic", "exchange"])
def test_the_shipped_network_is_as_strong_as_it_should_be(variant: str) -> None:
    match = play_match("policy", "random", variant, 60, seed=3, count_blunders=True)
    assert match.interval[0] > 0.6
    assert match.blunder_rates is not None
    assert match.blunder_rates[0] < 0.15 < match.blunder_rates[1] + 0.05
    sampled = play_match("policy:temperature=1", "random", variant, 60, seed=3)
    assert sampled.interval[0] > 0.5


def test_shipped_networks_are_small() -> None:
    assert sum(path.stat().st_size for path in PRETRAINED.iterdir()) <= 3_000_000
