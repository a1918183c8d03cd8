"""`train.studies`: each number against one worked out by hand or by a plain loop."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import cards

from agents import make_agent
from agents.arena import play_deals
from counterweight_env import Game, GameBatch, Phase, Rules
from counterweight_env.endgame import solve
from train import studies
from train.small_games import solve_game
from train.studies import Finding, Findings, Habit, play_out

SMALL = ("classic(ranks=6,suits=2,hand_size=3)", "exchange(ranks=6,suits=2,hand_size=3)")
ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SOLVED = "exchange(ranks=4,suits=2,hand_size=2)"


@pytest.fixture(scope="module", params=SMALL)
def games(request: pytest.FixtureRequest) -> studies.StudyGames:
    """Forty deals between two players that differ."""
    return play_out("greedy", Habit(), request.param, deals=40, seed=3)


def with_scores(scores: list[list[float]]) -> studies.StudyGames:
    """Games of which only the scores of `a` matter."""
    made = play_out("random", None, SMALL[0], deals=len(scores), seed=0)
    return replace(made, scores=np.array(scores))


def test_a_finding_says_on_which_side_of_chance_it_lies() -> None:
    assert Finding("x", 0.6, 0.51, 0.7, 0.5).verdict == "above 0.5"
    assert Finding("x", 0.4, 0.3, 0.49, 0.5).verdict == "below 0.5"
    assert Finding("x", 0.6, 0.5, 0.7, 0.5).verdict == "may be 0.5"
    assert Finding("x", 0.6, 0.51, 0.7).verdict == ""


def test_findings_are_a_table_with_a_row_each() -> None:
    found = Findings([Finding("first", 0.6, 0.51, 0.7, 0.5), Finding("second", 2, 1, 3)])
    lines = found._repr_markdown_().splitlines()
    assert lines[2:] == [
        "| first | 0.600 | 0.510 to 0.700 | above 0.5 |",
        "| second | 2.000 | 1.000 to 3.000 |  |",
    ]
    assert repr(found).count("\n") == 1


def test_every_game_ends_with_the_exact_value_of_its_ending(games: studies.StudyGames) -> None:
    batch = GameBatch.from_state(games.exhausted.copy(), games.rules)
    for row in range(len(batch)):
        game = batch[row]
        assert game.exhausted
        zero = game.returns[0]
        if not game.done:
            value = solve(game).value
            assert value is not None
            zero = value if game.to_move == 0 else -value
        assert games.seat_scores[row // 2, row % 2].tolist() == [(1 + zero) / 2, (1 - zero) / 2]


def test_the_games_before_exhaustion_are_those_of_a_match(games: studies.StudyGames) -> None:
    played = play_deals(
        (make_agent("greedy"), Habit()), games.rules, seed=3, first_deal=0, count=40, record=True
    )
    assert (games.first_movers == played.first_movers).all()
    for row, record in enumerate(played.records):
        game = Game.from_deck(record.deck, games.rules, record.dealer)
        drawer = -1
        for action in record.actions:
            drawer = game.to_move
            game.step(action)
            if game.exhausted:
                break
        assert games.last_drawers[row // 2, row % 2] == drawer
        assert games.turns[row // 2, row % 2] == game.turn
        assert games.hand_counts[row // 2, row % 2].tolist() == [
            len(game.hand(0)),
            len(game.hand(1)),
        ]


def test_an_open_ending_is_played_to_its_end() -> None:
    rules = Rules.parse("classic(ranks=8,blocked=discard)")
    made = play_out("random", None, rules, deals=10, seed=1, nodes=20)
    assert made.left_open > 0
    assert np.isin(made.scores, (0, 1)).all()  # this reading has no draws


def test_a_player_of_itself_scores_for_whoever_moved_first(games: studies.StudyGames) -> None:
    points = [
        games.scores[deal, column] if mover == column else 1 - games.scores[deal, column]
        for deal, mover in enumerate(games.first_movers)
        for column in range(2)
    ]
    found = studies.first_mover(games)
    assert found.value == pytest.approx(np.mean(points))
    assert found.low <= found.value <= found.high


def test_the_luck_of_the_deal_is_what_turns_with_the_seats() -> None:
    # The cards alone decide: whoever has seat 0 wins even deals and loses odd ones.
    decided = with_scores([[1, 0], [0, 1]] * 20)
    assert studies.luck_share(decided).value == pytest.approx(1)
    # The players alone decide which deals they win.
    assert studies.luck_share(with_scores([[1, 1], [0, 0]] * 20)).value == pytest.approx(-1)
    unrelated = with_scores([[1, 1], [0, 0], [1, 0], [0, 1]] * 10)
    assert studies.luck_share(unrelated).value == pytest.approx(0)


def test_being_ahead_is_counted_over_matches_without_a_common_deal() -> None:
    made = with_scores([[1, 1], [1, 0], [0, 0], [1, 0.5], [0.5, 0], [0.5, 0.5]])
    found = studies.leads_after(made, deals=(1, 2))
    assert found[0].value == pytest.approx(4 / 12)
    assert found[1].value == pytest.approx((1 + 0.5 + 0 + 1 + 0 + 0.5) / 6)
    assert found[2].value == pytest.approx((1 + 0 + 0) / 3)


def test_the_worth_of_the_move_is_that_of_both_players_on_turn(games: studies.StudyGames) -> None:
    gains = []
    for state in games.exhausted:
        values = []
        for player in range(2):
            game = Game.from_position(
                [cards_in(state["hand"][0]), cards_in(state["hand"][1])],
                [int(card) for card in state["table"]],
                to_move=player,
                rules=games.rules,
            )
            value = game.returns[0]
            if not game.done:
                solved = solve(game).value
                assert solved is not None
                value = solved if game.to_move == 0 else -solved
            values.append(value)
        gains.append((values[0] - values[1]) / 2)
    found = studies.worth_of_the_move(games)
    assert found[0].value == pytest.approx(np.mean(gains))
    assert found[1].value == pytest.approx(np.mean(np.array(gains) > 0))
    assert found[2].value == pytest.approx(np.mean(np.array(gains) < 0))
    assert found[3].value == 0


def cards_in(mask: np.uint64) -> list[int]:
    """Return the cards of a mask."""
    return [card for card in range(52) if int(mask) >> card & 1]


def test_both_hands_have_the_same_parity_in_an_even_deck() -> None:
    found = studies.parity(play_out("random", None, SMALL[0], deals=30, seed=5))
    assert (found[0].value, found[0].low) == (1, 1)


def discarding_view() -> Game:
    """Return a game in which player 0 must discard, with a two and a jack in the discard."""
    hand = cards("2C 2D 5H 9S KS 7D")
    other = cards("3C 3D 6H TS AS 8D")
    table = cards("4H 3H")
    discards = (cards("2H JD"), cards("AH KC"))
    rest = [c for c in range(52) if c not in {*hand, *other, *table, *discards[0], *discards[1]}]
    game = Game.from_position((hand, other), table, rest[:34], discards, to_move=0)
    assert game.phase == Phase.DISCARD
    return game


@pytest.mark.parametrize(
    ("habit", "wanted"),
    [
        ("aces and kings", {"KS"}),
        ("middle ranks", {"7D"}),
        ("ranks held twice", {"2C", "2D"}),
        ("ranks held once", {"5H", "9S", "KS", "7D"}),
        ("ranks in the discard", {"2C", "2D"}),
        ("ranks not in the discard", {"5H", "9S", "KS", "7D"}),
        ("the longest suit", {"2D", "7D", "9S", "KS"}),
        ("the shortest suit", {"2C", "5H"}),
        ("any", {"2C", "2D", "5H", "9S", "KS", "7D"}),
    ],
)
def test_a_habit_lays_away_what_it_is_named_for(habit: str, wanted: set[str]) -> None:
    game = discarding_view()
    batch = GameBatch.from_state(game._state.repeat(200), game.rules)
    batch.state["rng"][:, 1] = np.arange(200)
    chosen = set(Habit(habit).act(batch.views()).tolist())
    assert chosen == set(cards(" ".join(wanted)))


@pytest.mark.parametrize(
    ("habit", "stock", "reclaims"),
    [
        ("never", 1, False),
        ("always", 38, True),
        ("in the first half", 20, True),
        ("in the first half", 19, False),
        ("in the second half", 19, True),
        ("in the second half", 20, False),
        ("in front of the last card", 1, True),
        ("in front of the last card", 2, False),
        ("in front of the last two", 2, True),
        ("in front of the last two", 3, False),
    ],
)
def test_a_habit_reclaims_when_it_is_named_for(habit: str, stock: int, reclaims: bool) -> None:
    rule = studies.REFILLS[habit]
    assert rule(np.array([stock]), Rules().stock_size).tolist() == [reclaims]


def test_a_habit_refills_by_its_rule() -> None:
    for habit, share in (("never", 0.0), ("always", 1.0)):
        games = GameBatch(50, seed=1)
        counts = np.zeros(2)
        while not games.exhausted.all():
            rows = np.flatnonzero(~games.exhausted)
            refilling = games.phase[rows] == Phase.REFILL
            actions = Habit(reclaim=habit).act(games.views(rows=rows))
            counts += np.bincount(actions[refilling] - 52, minlength=2)
            games.step(actions, rows=rows)
        assert counts.sum() > 100
        assert counts[1] / counts.sum() == share


def test_the_lots_of_a_habit_are_even() -> None:
    words = np.random.default_rng(0).integers(0, 2**64, 20_000, np.uint64)
    lots = studies._lots(words, 3)
    assert (lots >= 0).all()
    assert (lots < 1).all()
    counts = np.bincount(lots.argmax(axis=1))
    assert np.abs(counts / 20_000 - 1 / 3).max() < 0.02  # six standard deviations


def test_bad_habits_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"discard must be one of .*'hearts'"):
        Habit(discard="hearts")
    with pytest.raises(ValueError, match=r"reclaim must be one of .*'often'"):
        Habit(reclaim="often")
    with pytest.raises(ValueError, match=r"kind must be one of .*'couple'"):
        studies.habit_scores("couple")
    with pytest.raises(ValueError, match="only classic rules"):
        studies.habit_scores("reclaim", "exchange")


def test_equal_arguments_give_equal_findings() -> None:
    one, two = (studies.habit_scores("reclaim", SMALL[0], deals=20) for _ in range(2))
    assert one == two
    assert len(one) == len(studies.REFILLS) - 1


def test_an_equilibrium_makes_as_many_decisions_as_its_games_have() -> None:
    game = solve_game(SOLVED, target=1e-2, keep=True)
    assert game.solvers
    for solver in game.solvers:
        for seat in range(2):
            _, probabilities = studies.visits(solver, seat)
            # Every game has exactly one of the deals that a player starts from.
            assert probabilities[: solver.tree.num_roots].sum() == pytest.approx(1)
    for habit in studies.equilibrium_habits(game, "random"):
        assert habit.a_game > 0
        assert 0 <= habit.mixed <= 1
        assert 0 < habit.agreement <= 1 + 1e-9


def test_an_equilibrium_without_its_solvers_is_refused() -> None:
    with pytest.raises(ValueError, match="keep=True"):
        studies.equilibrium_habits(solve_game(SOLVED, target=1e-1), "random")


# --- The notebooks that are kept ----------------------------------------------------------------


def cells_of(notebook: Path, kind: str) -> list[dict[str, Any]]:
    """Return the cells of a kind."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == kind]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_as_it_was_run_from_top_to_bottom(notebook: Path) -> None:
    cells = cells_of(notebook, "code")
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not any(output["output_type"] == "error" for output in outputs)
    assert not any(output.get("name") == "stderr" for output in outputs)
    assert notebook.stat().st_size < 300_000


def test_the_numbers_in_words_are_those_of_the_output() -> None:
    study = ROOT / "notebooks" / "04_strategy.ipynb"
    output = json.dumps([cell["outputs"] for cell in cells_of(study, "code")])
    words = ["".join(cell["source"]) for cell in cells_of(study, "markdown")]
    words.append((ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8"))
    found = re.findall(r"0\.\d{3} \(0\.\d{3} to \d\.\d{3}\)", "\n".join(words))
    assert len(found) > 30
    assert [number for number in found if number not in output] == []
