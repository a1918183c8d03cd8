"""Blunders: what counts as a decision, what gives away value, and who did."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from endings import SMALL_RULES, move_results
from helpers import cards

from agents import ViewBatch, play_match
from agents.blunders import BlunderWatch, Verdict, blunders
from agents.exact import Exact
from counterweight_env import Game, GameBatch, Phase

VARIANTS = ("classic", "exchange")
SMALL = "classic(ranks=6,suits=2,hand_size=3)"


def position(mine: str, theirs: str, table: str, rules: str, to_move: int = 0) -> Game:
    """Build an exhausted position with the first hand on turn."""
    ranks = 6 if "ranks=6" in rules else 13
    hands = [cards(mine, ranks), cards(theirs, ranks)]
    if to_move == 1:
        hands.reverse()
    return Game.from_position(hands, cards(table, ranks), to_move=to_move, rules=rules)


def verdict(game: Game, *move: int, nodes: int = 10**6) -> Verdict:
    """Return the verdict on one turn."""
    after = game.copy()
    for action in move:
        after.step(action)
    (found,) = blunders(game, after, nodes)
    return Verdict(found)


@pytest.mark.parametrize("to_move", [0, 1])
def test_a_draw_given_away_by_hand(to_move: int) -> None:
    # After 6D AC comes 3D 2C and the opponent is out; 6D 4C blocks both at two cards each.
    game = position("6D 2D 4C AC", "2C 3D", "5D 5C", SMALL, to_move)
    assert verdict(game, *cards("6D AC", 6)) == Verdict.BLUNDER
    assert verdict(game, *cards("6D 4C", 6)) == Verdict.KEPT


def test_a_win_given_away_by_laying_the_wrong_card_away() -> None:
    # Nobody but the opponent can place: JS 2H, and must. JD 2C then go on top and win; without
    # one of the two the opponent's last card is laid away first.
    game = position("JD 2C KC", "JS 2H KD", "TS 3H", "classic(blocked=discard)")
    assert game.phase == Phase.DISCARD
    assert verdict(game, *cards("KC")) == Verdict.KEPT
    assert verdict(game, *cards("JD")) == Verdict.BLUNDER
    assert verdict(game, *cards("2C")) == Verdict.BLUNDER


def test_a_lost_position_has_decisions_but_no_blunders() -> None:
    # At most two couples can be placed, and then four cards are left to two.
    game = position("JS 9S 2H 4H KC KD QC 8C", "QD 5D", "TS 3H", "classic")
    results = move_results(game)
    assert len(results) > 1
    assert set(results.values()) == {-1}
    for move in results:
        assert verdict(game, *move) == Verdict.KEPT


def test_what_is_no_decision() -> None:
    only = position("JS 2H KD 9D", "QS AH 4C 4D", "TS 3H", "classic")
    assert verdict(only, *cards("JS 2H")) == Verdict.NO_DECISION
    last = position("KC", "JS 2H KD", "TS 3H", "classic(blocked=discard)")
    assert verdict(last, *cards("KC")) == Verdict.NO_DECISION
    # One left card, two partners: the couple as a whole is the decision.
    two = position("JS 2H AH KD", "QS 4C 4D 5D", "TS 3H", "classic")
    assert len(two.legal_actions()) == 1
    assert verdict(two, *cards("JS 2H")) != Verdict.NO_DECISION
    # Before exhaustion, in the middle of a couple, and after the end.
    begun = two.copy()
    begun.step(*cards("JS"))
    ended = begun.copy()
    ended.step(*cards("2H"))
    assert blunders(begun, ended) == [Verdict.NO_DECISION]
    game = Game("classic", seed=1)
    later = game.copy()
    later.step(later.legal_actions()[0])
    assert blunders(game, later) == [Verdict.NO_DECISION]
    over = position("", "2S 4S", "TS 3H", "classic", to_move=1)
    assert over.done
    assert blunders(over, over) == [Verdict.NO_DECISION]


def turns(rules: str, num_games: int, seed: int) -> Any:
    """Yield exhausted games at the start of a turn, the same one random turn later, and the move.

    Only games that go on are in it.
    """
    games = GameBatch(num_games, rules, seed=seed)
    while not games.done.all():
        rows = np.flatnonzero(~games.done)
        before = games.copy()
        actions = games.random_actions(rows)
        games.step(actions, rows=rows)
        moves = dict(zip(rows.tolist(), actions[:, None].tolist(), strict=True))
        begun = rows[games.phase[rows] == Phase.RIGHT]
        seconds = games.random_actions(begun)
        games.step(seconds, rows=begun)
        for row, action in zip(begun.tolist(), seconds.tolist(), strict=True):
            moves[row].append(action)
        picked = rows[before.exhausted[rows]]
        if picked.size:
            yield (
                GameBatch.from_state(before.state[picked], rules),
                GameBatch.from_state(games.state[picked], rules),
                [tuple(moves[row]) for row in picked.tolist()],
            )


@pytest.mark.parametrize("rules", SMALL_RULES)
def test_verdicts_equal_the_oracle(rules: str) -> None:
    seen = dict.fromkeys(Verdict, 0)
    limited = 0
    for before, after, moves in turns(rules, 300, seed=31):
        found = blunders(before, after)
        open_ones = blunders(before, after, nodes=2)
        for row, move in enumerate(moves):
            results = move_results(before[row])
            expected = Verdict.BLUNDER if results[move] < max(results.values()) else Verdict.KEPT
            if len(results) == 1:
                expected = Verdict.NO_DECISION
            assert found[row] == expected, (str(before[row]), move)
            assert open_ones[row] in (expected, Verdict.UNPROVEN)
            limited += open_ones[row] == Verdict.UNPROVEN
            seen[expected] += 1
    assert min(seen[word] for word in (Verdict.KEPT, Verdict.BLUNDER, Verdict.NO_DECISION)) >= 5
    assert seen[Verdict.UNPROVEN] == 0
    assert limited > 0


def test_nothing_is_changed_and_neighbours_have_no_say() -> None:
    for before, after, _ in turns("exchange", 40, seed=32):
        states = before.state.copy(), after.state.copy()
        found = blunders(before, after, nodes=500)
        assert (before.state == states[0]).all()
        assert (after.state == states[1]).all()
        for row in range(0, len(before), 7):
            assert blunders(before[row], after[row], nodes=500) == found[row]


def test_what_is_not_one_turn_is_refused_by_name() -> None:
    game = position("6D 2D 4C AC", "2C 3D", "5D 5C", SMALL)
    after = game.copy()
    for action in cards("6D 4C", 6):
        after.step(action)
    begun = game.copy()
    begun.step(*cards("6D", 6))
    other = position("6D 3D 4C AC", "2C 2D", "5D 5C", SMALL)
    for wrong in (game, begun, other):
        with pytest.raises(ValueError, match="row 0: the game after is not one turn"):
            blunders(game, wrong)
    both = [
        GameBatch.from_state(np.concatenate([first._state, game._state]), SMALL)
        for first in (game, after)
    ]
    with pytest.raises(ValueError, match="row 1"):
        blunders(*both)
    with pytest.raises(ValueError, match="1 games, after 2"):
        blunders(game, both[0])
    with pytest.raises(ValueError, match="rules"):
        blunders(game, Game("classic", seed=1))
    with pytest.raises(TypeError, match="before"):
        blunders("game", after)  # type: ignore[arg-type]
    for nodes in (0, True, 2.5):
        with pytest.raises(ValueError, match="nodes"):
            blunders(game, after, nodes)  # type: ignore[arg-type]


# In matches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [*VARIANTS, "exchange(ranks=6,suits=3,hand_size=4)"])
def test_perfect_endings_have_no_blunders_and_random_ones_do(rules: str) -> None:
    agent = Exact("random")
    result = play_match(agent, "random", rules, deals=20, seed=33, count_blunders=True)
    assert result.blunder_rates is not None
    assert result.blunders is not None
    assert result.endgame_decisions is not None
    # With the full deck, one decision in some hundreds may be too hard to be perfect.
    assert result.blunders[0] <= agent.unproven <= (0 if "ranks" in rules else 2)
    assert result.blunder_rates[0] <= 0.01
    assert 0.03 < result.blunder_rates[1] < 0.5
    assert min(result.endgame_decisions) > 20
    swapped = play_match("random", agent, rules, deals=20, seed=33, count_blunders=True)
    assert swapped.blunder_rates is not None
    assert swapped.blunder_rates[0] > 0.03
    assert swapped.blunder_rates[1] <= 0.01


@pytest.mark.parametrize("rules", [*SMALL_RULES[:4], "exchange(ranks=5,suits=3,hand_size=3)"])
def test_counts_by_player_are_those_of_games_played_one_at_a_time(rules: str) -> None:
    from agents.arena import deal_twice

    class Place:
        def __init__(self, name: str, place: int) -> None:
            self.name, self.place = name, place

        def act(self, views: ViewBatch) -> np.ndarray:
            return np.array([np.flatnonzero(row)[self.place] for row in views.legal])

    result = play_match(
        Place("lowest", 0), Place("highest", -1), rules, deals=60, seed=34, count_blunders=True
    )
    decided, blundered = [0, 0], [0, 0]
    dealt = deal_twice(result.rules, 34, 0, 60)
    for row in range(120):
        game = dealt[row]
        while not game.done:
            player = int(game.to_move != row % 2)  # 0 is the first player of the match
            move: tuple[int, ...] = ()
            before = game.copy()
            while not game.done and (not move or game.phase == Phase.RIGHT):
                move += ((min, max)[player](game.legal_actions()),)
                game.step(move[-1])
            if before.exhausted and before.phase != Phase.REFILL:
                results = move_results(before)
                decided[player] += len(results) > 1
                blundered[player] += results[move] < max(results.values())
    assert result.endgame_decisions == tuple(decided)
    assert result.blunders == tuple(blundered)
    assert result.unproven == (0, 0)
    assert min(decided) > 0
    assert sum(blundered) > 0


def test_counting_changes_nothing_else_and_no_batch_size_changes_the_counts() -> None:
    def fields(result: Any) -> dict[str, Any]:
        found = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
        found["game_scores"] = found["game_scores"].tolist()
        del found["timing"]  # the one thing that no two matches share
        return found

    plain = play_match("random", "greedy", "exchange", deals=11, seed=35)
    assert plain.blunder_rates is plain.endgame_decisions is plain.unproven is None
    counted = [
        fields(play_match("random", "greedy", "exchange", 11, 35, size, count_blunders=True))
        for size in (1_024, 1, 4)
    ]
    assert counted[0] == counted[1] == counted[2]
    for name in ("endgame_decisions", "blunders", "unproven"):
        counted[0][name] = None
    assert counted[0] == fields(plain)


def test_the_rates_stand_in_the_result_as_text() -> None:
    plain = play_match("random", "random", SMALL, deals=30, seed=36)
    assert "blunder" not in str(plain)
    counted = play_match("random", "random", SMALL, deals=30, seed=36, count_blunders=True)
    assert str(counted).startswith(str(plain))
    assert counted.blunder_rates is not None
    assert counted.endgame_decisions is not None
    for rate, decisions in zip(counted.blunder_rates, counted.endgame_decisions, strict=True):
        assert f"{rate:.4f} of {decisions} decisions" in str(counted)
    assert "0 more unproven" in str(counted)
    assert "\n" not in str(counted)
    nothing = dataclasses.replace(counted, endgame_decisions=(0, 4), blunders=(0, 1))
    assert np.isnan(nothing.blunder_rates[0])
    assert nothing.blunder_rates[1] == 0.25


def test_unproven_decisions_are_counted_apart() -> None:
    games = GameBatch(60, "exchange", seed=37)
    watches = [BlunderWatch(games, nodes) for nodes in (1, 10**6)]
    while not games.done.all():
        rows = np.flatnonzero(~games.done)
        for watch in watches:
            watch.before(rows)
        games.step(games.random_actions(rows), rows=rows)
        for watch in watches:
            watch.after(rows)
    few, many = (watch.verdicts.sum(axis=0) for watch in watches)
    assert (few.sum(axis=1) == many.sum(axis=1)).all(), "every decision is in one of the counts"
    assert (few[:, Verdict.UNPROVEN] > many[:, Verdict.UNPROVEN]).all()
    assert (few[:, Verdict.BLUNDER] <= many[:, Verdict.BLUNDER]).all()
    assert (few[:, Verdict.KEPT] <= many[:, Verdict.KEPT]).all()
    assert (few[:, Verdict.NO_DECISION] == 0).all()
