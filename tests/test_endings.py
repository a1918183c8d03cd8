"""Solved endings as a data set: right labels, the same whatever the workers, and learnable."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from agents.moves import MAX_MOVES, WIDTH
from counterweight_env import GameBatch, Phase
from counterweight_env.cards import rule_table
from counterweight_env.endgame import Workspace, couple_values, solve
from train.endings import SolvedEndings, fit_endings, label_position, solve_decisions
from train.network import MoveNet


@pytest.mark.parametrize("rules", ["classic", "exchange", "exchange(ranks=6,suits=3,hand_size=4)"])
def test_marked_moves_are_those_that_keep_the_value(rules: str) -> None:
    memory = Workspace(2**12).memory
    batch = GameBatch(25, rules, 3)
    table = rule_table(batch.rules)[0]
    checked = 0
    while not batch.done.all():
        for row in np.flatnonzero(batch.exhausted & ~batch.done):
            game = batch[row]
            if game.phase != Phase.LEFT or len(game.hand(0)) + len(game.hand(1)) > 18:
                continue
            actions = np.empty((MAX_MOVES, 2), np.int64)
            rows = np.empty((MAX_MOVES, WIDTH), np.float32)
            right = np.zeros(MAX_MOVES, np.bool_)
            count, value = label_position(
                memory, table, batch.state[row], 2_000_000, actions, rows, right
            )
            values = couple_values(game)
            if len(values) < 2:
                assert count == 0
                continue
            best = solve(game).value
            assert (count, value) == (len(values), best)
            for (first, second), kept in zip(actions[:count].tolist(), right, strict=False):
                assert kept == (values[first, second] == best)
            checked += 1
        batch.step(batch.random_actions())
    assert checked > 25


def test_a_node_limit_leaves_no_wrong_label() -> None:
    batch = GameBatch(40, "exchange", 5)
    while (~batch.exhausted & ~batch.done).any():
        batch.step(batch.random_actions(), rows=None)
    table = rule_table(batch.rules)[0]
    memory = Workspace(2**12).memory
    answers = set()
    for row in np.flatnonzero(batch.exhausted & ~batch.done & (batch.phase == Phase.LEFT)):
        actions = np.empty((MAX_MOVES, 2), np.int64)
        rows = np.empty((MAX_MOVES, WIDTH), np.float32)
        right = np.zeros(MAX_MOVES, np.bool_)
        count, value = label_position(memory, table, batch.state[row], 3, actions, rows, right)
        answers.add(int(np.sign(count)))
        if count > 0:
            assert value == solve(batch[row]).value
    assert -1 in answers


def assert_same(one: SolvedEndings, other: SolvedEndings) -> None:
    for name in ("rows", "right", "counts", "values"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.skipped == other.skipped


def test_the_data_do_not_depend_on_the_workers() -> None:
    rules = "exchange(ranks=6,suits=3,hand_size=4)"
    one = solve_decisions(rules, 150, seed=4)
    assert_same(one, solve_decisions(rules, 150, seed=4, workers=2))
    assert len(one) > 50
    assert one.counts.sum() == len(one.right) == len(one.rows)
    assert (one.counts >= 2).all()
    assert set(np.unique(one.values)) == {-1, 0, 1}
    ends = np.cumsum(one.counts)
    for end, count, value in zip(ends, one.counts, one.values, strict=True):
        right = one.right[end - count : end]
        assert right.any()
        assert right.all() or value > -1  # nothing is lost that is lost already
    other = solve_decisions(rules, 150, seed=5)
    assert len(other) != len(one) or (other.rows != one.rows).any()


def test_a_scorer_learns_what_is_right() -> None:
    rules = "exchange(ranks=7,suits=3,hand_size=4)"
    train, test = (solve_decisions(rules, games, seed) for games, seed in ((600, 1), (300, 2)))
    torch.manual_seed(0)
    net = MoveNet(24)
    opening = [parameter.clone() for parameter in net.opening.parameters()]
    before = mistakes(net, test)
    losses = fit_endings(net, train, epochs=8, batch_size=64)
    assert losses[-1] < 0.7 * losses[0]
    assert mistakes(net, test) < 0.6 * before
    for kept, parameter in zip(opening, net.opening.parameters(), strict=True):
        assert torch.equal(kept, parameter)


def mistakes(net: MoveNet, data: SolvedEndings) -> float:
    """Return the part of the decisions in which the best score is no right move."""
    with torch.no_grad():
        scores = net.ending(torch.from_numpy(data.rows.astype(np.float32)))[0].numpy()
    ends = np.cumsum(data.counts)
    wrong = [
        not data.right[end - count + scores[end - count : end].argmax()]
        for end, count in zip(ends, data.counts, strict=True)
    ]
    return float(np.mean(wrong))


def test_rules_that_blocked_players_discard_under_are_refused() -> None:
    with pytest.raises(ValueError, match=r"blocked=pass.*classic\(blocked=discard\)"):
        solve_decisions("classic(blocked=discard)", 4)
