"""`Exact`: any player, with perfect endings.

Small decks are held against the plain search in `endings.py`, full ones against `couple_values`,
which `test_endgame.py` holds against another.
"""

from __future__ import annotations

import numpy as np
import pytest
from endings import SMALL_RULES, best_actions, decisions, move_results
from helpers import cards

from agents import Agent, Random, ViewBatch, make_agent, play_match
from agents.exact import Exact
from counterweight_env import Game, GameBatch, IllegalActionError, Phase
from counterweight_env.endgame import couple_values, solve

VARIANTS = ("classic", "exchange")
BASES = ("random", "greedy", "keeper", "cautious", "patient")


def views_in_all_phases(rules: str, num_games: int, seed: int) -> ViewBatch:
    """Return the movers' views of games of which about half are exhausted."""
    games = GameBatch(num_games, rules, seed=seed)
    for decision in range(60):
        rows = np.flatnonzero(~games.done & (np.arange(num_games) > decision))
        games.step(games.random_actions(rows), rows=rows)
    return games.views(rows=np.flatnonzero(~games.done))


def exhausted_views(rules: str, num_games: int, seed: int) -> ViewBatch:
    """Return the movers' views at the first decision after exhaustion, or the one behind it."""
    games = GameBatch(num_games, rules, seed=seed)
    while (~games.done & ~games.exhausted).any():
        rows = np.flatnonzero(~games.done & ~games.exhausted)
        games.step(games.random_actions(rows), rows=rows)
    rows = np.flatnonzero(~games.done & (games.phase == Phase.LEFT))[::2]
    games.step(games.random_actions(rows), rows=rows)
    return games.views(rows=np.flatnonzero(~games.done))


@pytest.mark.parametrize("rules", SMALL_RULES)
def test_it_never_gives_away_value(rules: str) -> None:
    agent = Exact("random")
    phases = set()
    choices = 0
    for game, action in decisions(agent, Random(), rules, 300, seed=21):
        results = move_results(game)
        assert action in best_actions(game, results), str(game)
        phases.add(game.phase)
        choices += len(set(results.values())) > 1
    assert agent.unproven == 0
    assert choices >= 5
    assert {Phase.LEFT, Phase.RIGHT} <= phases
    assert (Phase.DISCARD in phases) == ("blocked" in rules)


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_never_gives_away_value_with_the_full_deck(variant: str) -> None:
    agent = Exact("random")
    checked = choices = 0
    for game, action in decisions(agent, Random(), variant, 36, seed=22):
        if len(game.legal_actions()) == 1:
            continue
        if len(game.hand(0)) + len(game.hand(1)) <= 22:
            values = couple_values(game)
            choices += len(set(values.values())) > 1
            assert action in best_actions(game, values), str(game)
            checked += 1
        elif (solution := solve(game, node_limit=300_000)).proven:
            place = 1 if game.phase == Phase.RIGHT else 0
            assert action in {move[place] for move in solution.best}, str(game)
            checked += 1
    assert checked > 150
    assert choices > 20


@pytest.mark.parametrize("rules", SMALL_RULES)
def test_a_begun_couple_is_ended_as_well_as_it_can_be(rules: str) -> None:
    # The left card is a random one here, not the agent's own.
    views = exhausted_views(rules, 300, seed=23)
    actions = Exact("greedy").act(views)
    seen = 0
    for row in np.flatnonzero(views.records["phase"] == Phase.RIGHT):
        (game,) = list_games(views.take(np.array([row])))
        assert actions[row] in best_actions(game, move_results(game)), str(game)
        seen += len(game.legal_actions()) > 1
    assert seen > 5


def list_games(views: ViewBatch) -> list[Game]:
    """Return the games of exhausted views, in which nothing is hidden."""
    games = GameBatch.from_state(views.records.copy(), views.rules)
    return [games[row] for row in range(len(games))]


@pytest.mark.parametrize("rules", [*VARIANTS, "classic(open_discards=False,blocked=discard)"])
@pytest.mark.parametrize("base", BASES)
def test_it_plays_as_the_base_before_exhaustion(rules: str, base: str) -> None:
    views = views_in_all_phases(rules, 128, seed=24)
    agent = Exact(base, nodes=100)
    running = views.records["stock_size"] > 0
    assert 30 < running.sum() < len(views) - 10
    expected = make_agent(base).act(views)
    assert (agent.act(views)[running] == expected[running]).all()
    assert agent.decisions == (~running).sum()


@pytest.mark.parametrize("base", BASES)
def test_it_keeps_the_choice_of_the_base_where_that_is_optimal(base: str) -> None:
    kept = changed = 0
    for rules in SMALL_RULES:
        views = exhausted_views(rules, 120, seed=25)
        wanted = make_agent(base).act(views)
        actions = Exact(base).act(views)
        for row, game in enumerate(list_games(views)):
            best = best_actions(game, move_results(game))
            assert actions[row] in best
            if wanted[row] in best:
                assert actions[row] == wanted[row], str(game)
                kept += len(game.legal_actions()) > 1
            else:
                changed += 1
    assert kept > 50
    assert changed > 3


class Lowest:
    """Always takes the legal action of the lowest number."""

    name = "lowest"

    def act(self, views: ViewBatch) -> np.ndarray:
        return views.legal.argmax(axis=1)


def test_a_draw_is_kept_that_the_base_throws_away() -> None:
    # After 6D AC comes 3D 2C and the opponent is out; 6D 4C blocks both at two cards each.
    games = GameBatch.from_state(
        Game.from_position(
            (cards("6D 2D 4C AC", 6), cards("2C 3D", 6)),
            cards("5D 5C", 6),
            rules="classic(ranks=6,suits=2,hand_size=3)",
        )._state,
        "classic(ranks=6,suits=2,hand_size=3)",
    )
    agent = make_agent("random+exact")
    lowest = Exact(Lowest())
    assert agent.act(games.views()) == lowest.act(games.views()) == cards("6D", 6)
    games.step(cards("6D", 6))
    assert Lowest().act(games.views()) == cards("AC", 6)
    assert agent.act(games.views()) == lowest.act(games.views()) == cards("4C", 6)


@pytest.mark.parametrize("rules", [*VARIANTS, "exchange(blocked=discard)"])
def test_at_a_tiny_node_limit_it_falls_back_to_legal_moves_and_counts(rules: str) -> None:
    views = exhausted_views(rules, 120, seed=26)
    records = views.records.copy()
    agent = Exact("random", nodes=1)
    actions = agent.act(views)
    assert views.legal[np.arange(len(views)), actions].all()
    choices = (views.legal.sum(axis=1) > 1).sum()
    assert agent.decisions == len(views)
    assert 0 < agent.unproven <= choices
    assert (views.records == records).all(), "views stay as they are"
    larger = Exact("random", nodes=300)
    larger.act(views)
    assert larger.unproven < agent.unproven
    agent.act(views)
    assert agent.decisions == 2 * len(views), "counts add up"


def test_at_the_node_limit_a_proven_draw_is_not_thrown_away() -> None:
    for limit in (1, 3, 10, 30, 100):
        for rules in SMALL_RULES:
            views = exhausted_views(rules, 60, seed=27)
            agent = Exact("random", nodes=limit)
            for row, game in enumerate(list_games(views)):
                one = views.take(np.array([row]))
                before = agent.unproven
                (action,) = agent.act(one)
                if agent.unproven == before:
                    assert action in best_actions(game, move_results(game)), (limit, str(game))


@pytest.mark.parametrize("nodes", [50, 1000])
@pytest.mark.parametrize("rules", [*VARIANTS, "classic(blocked=discard)"])
def test_the_same_view_and_bits_give_the_same_action(rules: str, nodes: int) -> None:
    # Also where the node limit leaves much open: what was solved before has no say.
    views = exhausted_views(rules, 64, seed=28)
    order = np.random.default_rng(28).permutation(len(views))
    agent = Exact("random", nodes)
    actions = agent.act(views)
    unproven = agent.unproven
    assert unproven > 0
    assert (agent.act(views) == actions).all()
    assert (agent.act(views.take(order)) == actions[order]).all()
    assert agent.unproven == 3 * unproven
    for row in order[:16]:
        assert Exact("random", nodes).act(views.take(np.array([row]))) == actions[row]


@pytest.mark.parametrize("rules", ["classic", "exchange(ranks=9,suits=3,hand_size=4)"])
def test_a_match_does_not_depend_on_the_batch_size(rules: str) -> None:
    results = []
    for batch_size in (1, 5, 64):
        agent = Exact("greedy", nodes=200)
        result = play_match(agent, "random+exact:nodes=200", rules, 16, 29, batch_size)
        results.append((result.game_scores.tolist(), result.turns, agent.decisions, agent.unproven))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("variant", VARIANTS)
def test_perfect_endings_beat_random_clearly(variant: str) -> None:
    result = play_match("random+exact:nodes=20000", "random", variant, deals=80, seed=30)
    assert result.interval[0] > 0.65, result


def test_it_is_made_from_text_and_named_by_it() -> None:
    agent = make_agent("greedy+exact")
    assert isinstance(agent, Exact)
    assert isinstance(agent, Agent)
    assert agent.name == "greedy+exact"
    assert agent.agent.name == "greedy"
    limited = make_agent("random+exact:nodes=1000")
    assert isinstance(limited, Exact)
    assert limited.nodes == 1000
    assert limited.name == "random+exact:nodes=1000"
    assert make_agent(limited.name).name == limited.name
    assert Exact(Random()).name == "random+exact"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("random+exact:nodes=0", "nodes.*0"),
        ("random+exact:nodes=-3", "nodes.*-3"),
        ("random+exact:nodes=2.5", "nodes.*2.5"),
        ("random+exact:nodes=True", "nodes.*True"),
        ("random+exact:nodes=many", "nodes.*many"),
        ("random+exact:depth=3", "depth"),
        ("random+exact:", "exact:"),
        ("nobody+exact", "nobody"),
        ("exact", "unknown agent 'exact'"),
    ],
)
def test_bad_options_are_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_agent(text)


def test_what_is_no_agent_is_refused() -> None:
    with pytest.raises(TypeError, match="7"):
        Exact(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [0.7, True])
def test_an_answer_that_is_no_int_is_not_made_one(answer: float) -> None:
    class Odd:
        name = "odd"

        def act(self, views: ViewBatch) -> np.ndarray:
            return np.full(len(views), answer)

    batch = GameBatch(2, "classic", seed=1)
    with pytest.raises(IllegalActionError, match="odd must answer with ints"):
        Exact(Odd()).act(batch.views())
