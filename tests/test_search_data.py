"""What the search makes of moves as a data set: the right rows, no luck of workers, learnable."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from agents.leaf import weights_for
from agents.moves import MAX_MOVES, WIDTH, list_moves
from agents.search import MAX_CANDIDATES, Pimc, list_candidates
from counterweight_env import GameBatch, Phase
from counterweight_env.cards import rule_table
from counterweight_env.endgame import Workspace
from counterweight_env.kernels import NO_CARD
from counterweight_env.settle import TABLE_SIZE
from train.network import MoveNet
from train.search_data import SearchedDecisions, fit_search, judge_row, search_decisions

SMALL = "exchange(ranks=6,suits=3,hand_size=4)"
RULES = ["classic", "exchange", SMALL]


def positions(rules: str, num_games: int = 30, seed: int = 4) -> GameBatch:
    """Return games before exhaustion, in all phases."""
    batch = GameBatch(num_games, rules, seed)
    for row in range(num_games):
        for _ in range(row % 9):
            batch.step(batch.random_actions(rows=[row]), rows=[row])
    return batch


@pytest.mark.parametrize("rules", RULES)
def test_the_search_and_the_rows_list_moves_in_one_order(rules: str) -> None:
    batch = positions(rules)
    table = rule_table(batch.rules)[0]
    phases = set()
    views = batch.views()
    for record, player in zip(views.records, views.players.tolist(), strict=True):
        actions = np.empty((MAX_MOVES, 2), np.int64)
        candidates = np.empty((MAX_CANDIDATES, 2), np.int64)
        count = list_moves(record, table, player, actions, np.empty((MAX_MOVES, WIDTH), np.float32))
        assert list_candidates(record, table, player, candidates) == count
        np.testing.assert_array_equal(actions[:count], candidates[:count])
        phases.add(int(record["phase"]))
    assert {Phase.LEFT, Phase.RIGHT, Phase.DISCARD} <= phases


@pytest.mark.parametrize("rules", RULES)
def test_means_and_choices_are_those_of_the_search(rules: str) -> None:
    batch = positions(rules)
    table = rule_table(batch.rules)[0]
    views = batch.views()
    search = Pimc(worlds=24)
    expected = search.values(views)
    chosen = search.act(views)
    weights = weights_for(batch.rules.variant, batch.rules.blocked)
    checked = 0
    for row in range(len(views)):
        player = int(views.players[row])
        rows = np.empty((MAX_MOVES, WIDTH), np.float32)
        listed = np.empty((MAX_MOVES, 2), np.int64)
        count = list_moves(views.records[row], table, player, listed, rows.copy())
        if count < 2:
            continue
        means = np.empty(MAX_MOVES, np.float32)
        actions = np.empty(2, np.int64)
        found = judge_row(
            views.records[row],
            table,
            player,
            views.random_bits[row],
            24,
            Workspace(TABLE_SIZE).memory,
            weights,
            rows,
            means,
            actions,
        )
        assert found == count
        best = {}
        for action, mean in zip(listed[:count, 0].tolist(), means[:count].tolist(), strict=True):
            best[action] = max(mean, best.get(action, -2.0))
        assert best == pytest.approx({action: expected[row, action] for action in best}, abs=1e-6)
        assert actions[0] == chosen[row]
        assert (actions[1] == NO_CARD) == (batch.phase[row] != Phase.LEFT)
        checked += 1
    assert checked > 10


def test_the_data_do_not_depend_on_the_workers() -> None:
    one, two = (search_decisions("exchange", 40, 4, seed=3, workers=n) for n in (1, 2))
    np.testing.assert_array_equal(one.rows, two.rows)
    np.testing.assert_array_equal(one.means, two.means)
    np.testing.assert_array_equal(one.counts, two.counts)
    assert len(one.rows) == len(one.means) == one.counts.sum()
    assert one.counts.min() >= 2
    assert np.abs(one.means).max() <= 1
    assert 8 * 40 < len(one) < 40 * 40
    other = search_decisions("exchange", 40, 4, seed=4)
    assert len(other) != len(one) or not np.array_equal(other.rows, one.rows)
    assert len(search_decisions("exchange", 0)) == 0


def test_a_scorer_learns_what_the_search_prefers() -> None:
    train, test = (search_decisions(SMALL, games, 24, seed) for games, seed in ((200, 0), (100, 1)))
    torch.manual_seed(0)
    net = MoveNet(24)
    ending = [parameter.clone() for parameter in net.ending.parameters()]
    before = regret(net, test)
    losses = fit_search(net, train, epochs=6, batch_size=128)
    assert losses[-1] < losses[0]
    assert regret(net, test) < 0.85 * before
    for kept, parameter in zip(ending, net.ending.parameters(), strict=True):
        assert torch.equal(kept, parameter)


def regret(net: MoveNet, data: SearchedDecisions) -> float:
    """Return how much worse the search finds the best score's move than its own, on average."""
    with torch.no_grad():
        scores = net.opening(torch.from_numpy(data.rows.astype(np.float32)))[0].numpy()
    lost = []
    for end, count in zip(np.cumsum(data.counts), data.counts, strict=True):
        means = data.means[end - count : end]
        lost.append(means.max() - means[scores[end - count : end].argmax()])
    return float(np.mean(lost))
