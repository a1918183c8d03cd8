"""The OpenSpiel game: the engine's rules, the right chances, perfect recall, honest resampling."""

from __future__ import annotations

import pickle
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel")

from open_spiel.python.algorithms import cfr, exploitability  # noqa: E402
from open_spiel.python.observation import make_observation  # noqa: E402
from open_spiel_oracle import all_deals, exact_value  # noqa: E402
from scipy.stats import chisquare  # noqa: E402

from counterweight_env import Game, IllegalActionError, Rules, observation_layout  # noqa: E402
from counterweight_env.envs import open_spiel as module  # noqa: E402
from counterweight_env.render import view_text  # noqa: E402
from train.small_games import solve_game  # noqa: E402

ROOT = Path(__file__).parents[1]
GOLDEN = sorted((Path(__file__).parent / "playthroughs").glob("*.txt"))

TINY = "ranks=7,suits=1,hand_size=2"
RULES = [
    "",
    "variant=exchange",
    "open_discards=False",
    "blocked=discard",
    "variant=exchange,open_discards=False,blocked=discard",
    "variant=exchange,ranks=6,suits=2,hand_size=3",
    "ranks=5,suits=3,hand_size=4,open_discards=False",
    f"{TINY}",
    f"variant=exchange,{TINY},dealer=0",
    "ranks=2,suits=4,hand_size=2,dealer=1,blocked=discard",
]


def load(parameters: str) -> Any:
    return pyspiel.load_game(f"python_counterweight({parameters})")


def cached(rules: Rules) -> Any:
    """A deck with a fixed dealer, whose tree OpenSpiel keeps, so that each node is made once."""
    return pyspiel.load_game(
        f"cached_tree(game=python_counterweight(variant={rules.variant},ranks={rules.ranks},"
        f"suits={rules.suits},hand_size={rules.hand_size},dealer=1))"
    )


def pick_evenly(rng: random.Random) -> Callable[[Any], int]:
    """A way to choose: chance by its probabilities, players evenly."""

    def pick(state: Any) -> int:
        if state.is_chance_node():
            outcomes, weights = zip(*state.chance_outcomes(), strict=True)
            return rng.choices(outcomes, weights)[0]
        return rng.choice(state.legal_actions())

    return pick


def course(game: Any, seed: int) -> Iterator[Any]:
    """All states of one random game, as one object that moves on."""
    pick = pick_evenly(random.Random(seed))
    state = game.new_initial_state()
    yield state
    while not state.is_terminal():
        state.apply_action(pick(state))
        yield state


def after(game: Any, actions: list[int]) -> Any:
    state = game.new_initial_state()
    for action in actions:
        state.apply_action(action)
    return state


# --- OpenSpiel's own checks -----------------------------------------------------------------------


@pytest.mark.parametrize("parameters", RULES)
def test_open_spiels_simulation_passes(parameters: str, capfd: Any) -> None:
    pyspiel.random_sim_test(load(parameters), num_sims=3, serialize=True, verbose=False)


@pytest.mark.parametrize("parameters", ["", f"variant=exchange,open_discards=False,{TINY}"])
def test_open_spiels_api_checks_pass(parameters: str) -> None:
    import unittest

    from open_spiel.integration_tests.api_test import EnforceAPIOnPartialTreeBase

    class Checks(EnforceAPIOnPartialTreeBase):
        game = load(parameters)
        game_name = "python_counterweight"

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Checks).run(result)
    assert result.testsRun >= 5
    assert result.wasSuccessful(), result.failures + result.errors


def test_open_spiel_finds_perfect_recall_in_the_whole_tree() -> None:
    from open_spiel.integration_tests.api_test import _assert_is_perfect_recall

    for variant in ("classic", "exchange"):
        _assert_is_perfect_recall(load(f"variant={variant},{TINY},dealer=1"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_golden_playthrough_is_played_again(path: Path) -> None:
    from absl import flags
    from open_spiel.python.algorithms import generate_playthrough

    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["test"])
    kept, now = generate_playthrough.replay(path)
    assert now.splitlines() == kept.splitlines()


def test_there_is_a_golden_playthrough_of_each_variant() -> None:
    assert [path.stem for path in GOLDEN] == ["classic", "exchange"]


# --- The same game as the engine's ----------------------------------------------------------------


@pytest.mark.parametrize("parameters", RULES)
def test_every_decision_is_the_engines(parameters: str) -> None:
    game = load(parameters)
    observer = make_observation(game)
    for seed in range(4):
        rng = random.Random(seed)
        deck = list(range(game.rules.deck_size))
        rng.shuffle(deck)
        dealer = rng.randrange(2) if game.dealer < 0 else game.dealer
        engine = Game.from_deck(deck, game.rules, dealer)
        size = game.rules.hand_size
        chance = [*sorted(deck[:size]), *sorted(deck[size : 2 * size]), *deck[2 * size :]]
        if game.dealer < 0:
            chance.insert(0, game.rules.deck_size + dealer)
        state = game.new_initial_state()
        while True:
            if state.is_chance_node():
                assert not state.is_terminal()
                state.apply_action(chance.pop(0))
                continue
            assert state.is_terminal() == engine.done, (parameters, seed)
            assert state.returns() == list(engine.returns)
            assert state.rewards() == state.returns()
            for player in (0, 1):
                expected = engine.observe(player)
                assert (state.observation_tensor(player) == expected).all()
                observer.set_from(state, player)
                for name, part in observation_layout(game.rules).items():
                    assert (observer.dict[name] == expected[part]).all(), name
                assert state.observation_string(player) == view_text(engine.view(player))
                assert state.legal_actions(player) == (
                    engine.legal_actions() if player == engine.to_move else []
                )
            if engine.done:
                break
            assert state.current_player() == engine.to_move
            action = rng.choice(engine.legal_actions())
            state.apply_action(action)
            engine.step(action)
        assert chance == []  # the chance nodes have dealt and drawn every card


@pytest.mark.parametrize("parameters", RULES)
def test_lengths_stay_within_what_the_game_says(parameters: str) -> None:
    game = load(parameters)
    rules = game.rules
    assert game.num_distinct_actions() == rules.num_actions
    assert (game.min_utility(), game.max_utility(), game.utility_sum()) == (-1, 1, 0)
    for seed in range(3):
        *_, last = course(game, seed)
        players = Counter(item.player for item in last.full_history())
        assert players[-1] == game.max_chance_nodes_in_history()
        assert players[0] + players[1] <= game.max_game_length() == rules.max_decisions
        assert all(
            item.action < game.max_chance_outcomes()
            for item in last.full_history()
            if item.player == -1
        )


@pytest.mark.parametrize("parameters", ["", "variant=exchange,open_discards=False", TINY])
def test_every_kind_of_node_answers_for_both_players(parameters: str) -> None:
    game = load(parameters)
    kinds = set()
    for state in course(game, 1):
        kinds.add(state.get_type())
        for player in (0, 1):
            assert isinstance(state.information_state_string(player), str)
            assert isinstance(state.observation_string(player), str)
            assert len(state.observation_tensor(player)) == game.observation_tensor_size()
            if not state.is_chance_node() and player != state.current_player():
                assert state.legal_actions(player) == []
            assert state.player_return(player) == state.returns()[player]
        assert sum(state.returns()) == sum(state.rewards()) == 0
        texts = [
            state.action_to_string(state.current_player(), action)
            for action in state.legal_actions()
        ]
        assert len(set(texts)) == len(texts)
        assert isinstance(str(state), str)
    assert len(kinds) == 3


def test_chance_names_its_outcomes() -> None:
    state = load("").new_initial_state()
    assert [state.action_to_string(a) for a in state.legal_actions()] == ["dealer 0", "dealer 1"]
    state.apply_action(53)
    assert state.action_to_string(0) == "AC"


# --- Chance ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [f"{TINY},dealer=1", "ranks=2,suits=4,hand_size=2,dealer=0"])
def test_S2_every_deal_is_as_likely(parameters: str) -> None:
    game = load(parameters)
    reached: Counter[tuple[int, ...]] = Counter()

    def deal(state: Any, probability: float) -> None:
        if len(state.history()) == 2 * game.rules.hand_size + 2:
            reached[tuple(state.history())] += probability
            return
        outcomes = state.chance_outcomes()
        assert sum(weight for _, weight in outcomes) == pytest.approx(1)
        for outcome, weight in outcomes:
            deal(state.child(outcome), probability * weight)

    deal(game.new_initial_state(), 1.0)
    expected = list(all_deals(game.rules.deck_size, game.rules.hand_size))
    assert set(reached) == set(expected)
    assert list(reached.values()) == pytest.approx([1 / len(expected)] * len(expected))


def test_S1_the_lot_is_even_and_a_fixed_dealer_leaves_it_out() -> None:
    assert load("").new_initial_state().chance_outcomes() == [(52, 0.5), (53, 0.5)]
    assert load("").max_chance_outcomes() == 54
    for dealer in (0, 1):
        game = load(f"dealer={dealer}")
        assert game.max_chance_outcomes() == 52
        assert game.max_chance_nodes_in_history() == 52
        outcomes = game.new_initial_state().chance_outcomes()
        assert outcomes[0] == (0, pytest.approx(comb(51, 5) / comb(52, 6)))
        first = next(s for s in course(game, 0) if s.is_player_node())
        assert first.current_player() == 1 - dealer  # S3


@pytest.mark.parametrize("parameters", RULES)
def test_T3_draws_are_even_among_the_cards_that_are_left(parameters: str) -> None:
    """What is drawn is uniform over the cards not yet seen anywhere, the second draw included."""
    game = load(parameters)
    drawn_or_dealt: set[int] = set()
    history: list[int] = []
    was_chance = False
    for state in course(game, 5):
        if history != state.history():
            if was_chance and state.history()[-1] < game.rules.deck_size:
                drawn_or_dealt.add(state.history()[-1])
            history = state.history()
        was_chance = state.is_chance_node()
        if was_chance and len(drawn_or_dealt) >= 2 * game.rules.hand_size:
            left = sorted(set(range(game.rules.deck_size)) - drawn_or_dealt)
            assert state.chance_outcomes() == [
                (card, pytest.approx(1 / len(left))) for card in left
            ]


def test_E1_a_refill_ends_with_the_last_stock_card() -> None:
    """One stock card: a couple draws one card in the middle of its refill, not two."""
    game = load(f"variant=exchange,{TINY},dealer=1")
    # 2C 6C on the table; player 0 holds AC and 7C: lower on the left, higher on the right (C2).
    state = after(game, [0, 6, 2, 3, 1, 5])
    assert state.legal_actions() == [0, 6]
    state.apply_action(0)
    state.apply_action(6)
    assert state.chance_outcomes() == [(4, 1.0)]
    state.apply_action(4)
    assert state.game.exhausted
    assert state.game.hand(0) == (4,)


# --- What players see -----------------------------------------------------------------------------


def test_the_information_state_tells_a_players_whole_past() -> None:
    game = load(f"variant=exchange,{TINY},dealer=1")
    state = after(game, [0, 6, 2, 3, 1, 5, 0])
    start = "player {} dealer 1 dealt {} dealt {} table 2C table 6C"
    assert state.information_state_string(0) == start.format(0, "AC", "7C") + " left AC"
    assert state.information_state_string(1) == start.format(1, "3C", "4C")
    state.apply_action(6)
    state.apply_action(4)
    assert state.information_state_string(0) == (
        start.format(0, "AC", "7C") + " left AC right 7C draws 5C exhausted takes nothing"
    )
    assert state.information_state_string(1) == (
        start.format(1, "3C", "4C") + " opponent couple AC 7C exhausted takes nothing"
    )


@pytest.mark.parametrize("is_open", [True, False])
def test_a_closed_discard_is_not_seen(is_open: bool) -> None:
    game = load(f"ranks=9,suits=1,hand_size=2,dealer=1,open_discards={is_open}")
    # 4C 5C on the table; player 0 holds 8C 9C, both higher: blocked.
    texts = []
    for card in (7, 8):
        state = after(game, [7, 8, 0, 1, 3, 4])
        assert state.game.phase.name == "DISCARD"
        state.apply_action(card)
        texts.append(state.information_state_string(1))
        assert ("opponent lays a card" in texts[-1]) != is_open
    assert (texts[0] != texts[1]) == is_open


def test_E2_the_swapped_discard_is_seen() -> None:
    game = load(f"variant=exchange,{TINY},dealer=1,open_discards=False")
    # 3C 4C on the table, player 0 holds 6C 7C, the stock 5C.
    state = after(game, [5, 6, 0, 1, 2, 3, 6, 4])
    assert state.information_state_string(0).endswith("lays 7C draws 5C exhausted takes nothing")
    assert state.information_state_string(1).endswith("opponent lays a card exhausted takes 7C")


@pytest.mark.parametrize("parameters", RULES)
def test_E2_the_cards_got_at_exhaustion_are_a_whole_discard(parameters: str) -> None:
    """As it is when the last card is drawn: with the card just laid, without one just reclaimed."""
    game = load(parameters)
    checked = 0
    for seed in range(10):
        piles: list[list[str]] = [[], []]
        text = ["", ""]
        for state in course(game, seed):
            for player in (0, 1):
                now = state.information_state_string(player)
                new = now.removeprefix(text[player]).replace("opponent lays", "").split()
                text[player] = now
                if "lays" in new:
                    piles[player].append(new[new.index("lays") + 1])
                if "RECLAIM" in new and "opponent" not in new:
                    piles[player].pop()
            if " exhausted takes " in text[0]:
                for player in (0, 1):
                    got = text[player].partition(" exhausted takes ")[2].split()
                    owner = 1 - player if game.rules.variant == "exchange" else player
                    assert sorted(got) == sorted(piles[owner] or ["nothing"]), text[player]
                checked += 1
                break
    assert checked == 10


@pytest.mark.parametrize("parameters", RULES)
def test_information_states_only_grow_and_name_their_player(parameters: str) -> None:
    before = ["", ""]
    for state in course(load(parameters), 3):
        for player in (0, 1):
            now = state.information_state_string(player)
            assert now.startswith(before[player] or f"player {player}")
            before[player] = now


def tell_apart(states: Iterator[Any]) -> int:
    """Holds that tensors differ where information states do; returns how many were seen.

    At the chance nodes of a draw the observation in the tensor shows the position before.
    """
    texts: dict[bytes, str] = {}
    tensors: dict[str, bytes] = {}
    for state in states:
        for player in (0, 1):
            text = state.information_state_string(player)
            tensor = np.array(state.information_state_tensor(player), np.int8).tobytes()
            assert texts.setdefault(tensor, text) == text
            assert state.is_chance_node() or tensors.setdefault(text, tensor) == tensor
    return len(texts)


def whole_tree(state: Any) -> Iterator[Any]:
    """All states from here on."""
    yield state
    for action in state.legal_actions() if not state.is_terminal() else ():
        yield from whole_tree(state.child(action))


@pytest.mark.parametrize("variant", ["classic", "exchange"])
@pytest.mark.parametrize("others", ["", ",open_discards=False", ",blocked=discard"])
def test_the_information_state_tensor_tells_what_the_string_does(variant: str, others: str) -> None:
    """In the whole tree of seven cards, the lot left out."""
    game = load(f"variant={variant},{TINY},dealer=1{others}")
    assert tell_apart(whole_tree(game.new_initial_state())) > 2000


@pytest.mark.parametrize("parameters", RULES)
def test_the_information_state_tensor_holds_whole_games(parameters: str) -> None:
    game = load(parameters)
    assert game.get_type().provides_information_state_tensor
    assert tell_apart(state for seed in range(3) for state in course(game, seed)) > 20


def test_the_information_state_tensor_row_by_row() -> None:
    game = load(f"variant=exchange,{TINY},dealer=1")
    recall = make_observation(game, pyspiel.IIGObservationType(perfect_recall=True))
    now = make_observation(game)
    state = after(game, [0, 6, 2, 3, 1, 5, 0, 6, 4])
    kinds = {0: "left", 1: "right", 5: "draws", 6: "opponent left", 7: "opponent right"}
    kinds[11] = "exhausted"
    for player, hand, happened in (
        (0, [0, 6], [("left", 0), ("right", 6), ("draws", 4), ("exhausted", None)]),
        (1, [2, 3], [("opponent left", 0), ("opponent right", 6), ("exhausted", None)]),
    ):
        recall.set_from(state, player)
        now.set_from(state, player)
        assert (recall.tensor[: now.tensor.size] == now.tensor).all()
        assert np.flatnonzero(recall.dict["player"]).tolist() == [player]
        assert np.flatnonzero(recall.dict["dealer"]).tolist() == [1]
        assert np.flatnonzero(recall.dict["dealt"]).tolist() == hand
        assert np.flatnonzero(recall.dict["start_left"]).tolist() == [1]
        assert np.flatnonzero(recall.dict["start_right"]).tolist() == [5]
        rows = recall.dict["events"]
        seen = []
        for row in rows[: len(happened)]:
            [kind] = np.flatnonzero(row[:12])
            cards = np.flatnonzero(row[12:]).tolist()
            seen.append((kinds[kind], cards[0] if cards else None))
        assert seen == happened
        assert not rows[len(happened) :].any()


def test_learners_in_open_spiel_take_either_tensor() -> None:
    """Through OpenSpiel's environment for them, with masks and rewards."""
    from open_spiel.python import rl_environment
    from open_spiel.python.algorithms import random_agent

    game = load(f"variant=exchange,{TINY}")
    sizes = {
        rl_environment.ObservationType.OBSERVATION: game.observation_tensor_size(),
        rl_environment.ObservationType.INFORMATION_STATE: game.information_state_tensor_size(),
    }
    for kind, size in sizes.items():
        environment = rl_environment.Environment(game, observation_type=kind, seed=1)
        agents = [random_agent.RandomAgent(i, game.num_distinct_actions()) for i in (0, 1)]
        for _ in range(10):
            step = environment.reset()
            while not step.last():
                mover = step.observations["current_player"]
                assert len(step.observations["info_state"][mover]) == size
                step = environment.step([agents[mover].step(step).action])
            assert sum(step.rewards) == 0


def test_observers_take_no_parameters() -> None:
    with pytest.raises(ValueError, match="'x'"):
        load("").make_py_observer(None, {"x": 1})


# --- Copies and saves -----------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", RULES)
def test_copies_and_saves_go_on_alike_and_alone(parameters: str) -> None:
    game = load(parameters)
    pick = random.Random(4)
    state = game.new_initial_state()
    while not state.is_terminal():
        text = str(state)
        loaded_game, loaded = pyspiel.deserialize_game_and_state(
            pyspiel.serialize_game_and_state(game, state)
        )
        assert loaded_game.get_parameters() == game.get_parameters()
        assert str(loaded_game) == str(game)
        twins = [state.clone(), loaded, pickle.loads(pickle.dumps(state))]
        action = pick.choice(state.legal_actions())
        for twin in twins:
            assert str(twin) == text
            assert twin.history() == state.history()
            assert twin.legal_actions() == state.legal_actions()
            twin.apply_action(pick.choice(twin.legal_actions()))
        assert str(state) == text  # the copies' moves did not reach it
        for twin in (state.clone(), state):
            twin.apply_action(action)
        sides = [twin.observation_tensor(0) for twin in (state.clone(), state)]
        assert sides[0] == sides[1]


def test_parameters_are_kept_and_bad_ones_named() -> None:
    fields = {
        "variant": "exchange",
        "ranks": 6,
        "suits": 2,
        "hand_size": 3,
        "open_discards": False,
        "blocked": "discard",
    }
    game = pyspiel.load_game("python_counterweight", {**fields, "dealer": 1})
    assert game.rules == Rules(**fields)
    assert game.get_parameters() == {**fields, "dealer": 1}
    assert pyspiel.load_game(str(game)).rules == game.rules
    assert module.CounterweightGame().rules == Rules()
    for bad, message in [("ranks=14", "ranks"), ("dealer=2", "dealer"), ("variant=x", "variant")]:
        with pytest.raises(ValueError, match=message):
            load(bad)


def test_illegal_actions_change_nothing() -> None:
    game = load("dealer=1")
    state = game.new_initial_state()
    with pytest.raises(IllegalActionError, match="52"):
        state.apply_action(52)
    state = next(s for s in course(game, 0) if s.is_player_node())
    text, history = str(state), state.history()
    with pytest.raises(IllegalActionError, match="RECLAIM"):
        state.apply_action(53)
    assert (str(state), state.history()) == (text, history)


# --- Resampling -----------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [*RULES[1:3], *RULES[4:]])
def test_a_player_cannot_tell_a_resampled_state(parameters: str) -> None:
    game = load(parameters)
    sampler = random.Random(6).random
    for state in course(game, 2):
        for player in (0, 1):
            twin = state.resample_from_infostate(player, sampler)
            assert twin.information_state_string(player) == state.information_state_string(player)
            if state.is_chance_node() or state.is_terminal() or state.current_player() == player:
                assert twin.current_player() == state.current_player()
            if state.current_player() == player:
                assert twin.observation_tensor(player) == state.observation_tensor(player)
                assert twin.legal_actions() == state.legal_actions()


def agreeing(game: Any, state: Any, player: int) -> list[tuple[int, ...]]:
    """All histories as long as a state's that a player cannot tell from it."""
    text = state.information_state_string(player)
    found = []

    def walk(node: Any) -> None:
        if not text.startswith(node.information_state_string(player)):
            return
        if len(node.history()) == len(state.history()):
            if node.information_state_string(player) == text:
                found.append(tuple(node.history()))
            return
        for action in node.legal_actions():
            walk(node.child(action))

    walk(game.new_initial_state())
    return found


LYING = [6, 8, 0, 1, 7, 4, 8, 2, 0, 5, 2]
TAKEN_BACK = [3, 7, 4, 6, 10, 9, 3, 0, 6, 2, 0, 11, 4, 1, 7, 11, 13, 13]
SWAPPED = [2, 6, 10, 0, 1, 5, 4, 11, 10, 9, 0, 7, 9, 8, 5, 7, 3]


@pytest.mark.parametrize(
    ("parameters", "player", "actions"),
    [
        # Player 0 was blocked on 4C 5C and has laid 9C.
        ("ranks=9,suits=1,hand_size=2,dealer=1", 1, [7, 8, 0, 1, 3, 4, 8, 5]),
        ("ranks=9,suits=1,hand_size=2,dealer=1,open_discards=False", 1, [7, 8, 0, 1, 3, 4, 8, 5]),
        # Then player 1 was blocked too, and player 0 again.
        (
            "ranks=9,suits=1,hand_size=2,dealer=1,open_discards=False",
            1,
            [7, 8, 0, 1, 3, 4, 8, 5, 1, 2, 5, 6],
        ),
        (
            "variant=exchange,ranks=9,suits=1,hand_size=2,dealer=1,open_discards=False",
            1,
            [7, 8, 0, 1, 3, 4, 8, 5, 1, 2, 5, 6],
        ),
        # Two discards of player 0 lie face down.
        ("ranks=3,suits=3,hand_size=2,dealer=1,open_discards=False", 1, LYING),
        # Player 0 laid two cards face down, played a couple, and took both back. How many cards
        # the first of them may have been depends on the hand.
        ("ranks=6,suits=2,hand_size=2,dealer=1,open_discards=False", 1, TAKEN_BACK),
        # Player 1 has got two cards that player 0 laid face down (E2), but not seen their order.
        (
            "variant=exchange,ranks=6,suits=2,hand_size=3,dealer=1,open_discards=False",
            1,
            SWAPPED,
        ),
        # Player 0 played AC 9C on 4C 5C and drew two cards.
        ("ranks=9,suits=1,hand_size=2,dealer=1", 1, [0, 8, 1, 2, 3, 4, 0, 8, 5, 6]),
    ],
)
def test_resampling_is_even_over_all_that_agrees(
    parameters: str, player: int, actions: list[int]
) -> None:
    game = load(parameters)
    state = after(game, actions)
    histories = agreeing(game, state, player)
    assert tuple(actions) in histories
    assert len(histories) > 1
    sampler = random.Random(7).random
    drawn = Counter(
        tuple(state.resample_from_infostate(player, sampler).history()) for _ in range(1500)
    )
    assert set(drawn) <= set(histories)
    assert chisquare([drawn[history] for history in histories]).pvalue > 1e-4


def test_resampling_refuses_a_player_who_is_none() -> None:
    with pytest.raises(ValueError, match="2"):
        load("").new_initial_state().resample_from_infostate(2, random.random)


# --- Algorithms -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "iterations"),
    [
        ("classic(ranks=7,suits=1,hand_size=2)", 5),
        ("exchange(ranks=7,suits=1,hand_size=2)", 15),
        ("classic(ranks=4,suits=2,hand_size=2)", 5),
        ("exchange(ranks=4,suits=2,hand_size=2)", 20),
    ],
)
def test_open_spiels_own_solver_finds_the_value(text: str, iterations: int) -> None:
    """Its CFR+ and best responses, in its own tree, against a linear program and our solver.

    The linear program is written on the reference implementation and has each table by itself.
    """
    rules = Rules.parse(text)
    game = cached(rules)
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(iterations):
        solver.evaluate_and_update_policy()
    policy = solver.tabular_average_policy()
    found, lost = pyspiel.expected_returns(game.new_initial_state(), policy, -1, True)
    gap = pyspiel.nash_conv(game, policy)  # of both players together
    assert 0 <= gap / 2 < 1e-3
    assert found == pytest.approx(-lost)
    assert found == pytest.approx(exact_value(rules), abs=gap)
    ours = solve_game(rules, target=1e-4)
    assert found == pytest.approx(ours.value, abs=gap + 2 * ours.exploitability)


def test_deep_cfr_takes_the_information_state_tensor() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("tree")
    from open_spiel.python.pytorch import deep_cfr

    torch.set_num_threads(1)
    game = load(f"variant=exchange,{TINY},dealer=1")
    solver = deep_cfr.DeepCFRSolver(
        game,
        policy_network_layers=(16,),
        advantage_network_layers=(16,),
        num_iterations=2,
        num_traversals=20,
        policy_network_train_steps=100,
        advantage_network_train_steps=20,
        batch_size_advantage=64,
        batch_size_strategy=64,
        memory_capacity=10_000,
        learning_rate=3e-3,
        seed=1,
    )
    _, _, loss = solver.solve()
    assert np.isfinite(float(loss))
    decisions = 0
    for state in course(game, 0):
        if state.current_player() >= 0:
            chances = solver.action_probabilities(state)
            assert set(chances) == set(state.legal_actions())
            assert 0.0 < sum(chances.values()) <= 1.0 + 1e-5  # it does not mask its output
            decisions += 1
    assert decisions >= 2


def test_open_spiels_python_solver_takes_the_game_as_it_is() -> None:
    game = load(f"variant=exchange,{TINY},dealer=1")
    solver = cfr.CFRPlusSolver(game)
    solver.evaluate_and_update_policy()
    solver.evaluate_and_update_policy()
    policy = solver.average_policy()
    best = [exploitability.best_response(game, policy, p)["best_response_value"] for p in (0, 1)]
    rules = Rules.parse("exchange(ranks=7,suits=1,hand_size=2)")
    assert -best[1] - 1e-9 <= exact_value(rules) <= best[0] + 1e-9
    assert best[0] + best[1] < 0.1


# --- The page and the extra -----------------------------------------------------------------------


def test_the_examples_of_the_page_run() -> None:
    page = (ROOT / "docs" / "openspiel.md").read_text()
    blocks = re.findall(r"^```py\n(.*?)^```", page, re.S | re.M)
    assert blocks
    scope: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "openspiel.md", "exec"), scope)


def test_observers_of_one_part_of_knowledge_are_not_offered() -> None:
    kinds = [(True, pyspiel.PrivateInfoType.NONE), (False, pyspiel.PrivateInfoType.SINGLE_PLAYER)]
    for public, private in kinds:
        kind = pyspiel.IIGObservationType(
            public_info=public, perfect_recall=False, private_info=private
        )
        assert make_observation(load(""), kind) is None


def test_the_tensor_is_empty_before_the_deal_and_full_after_it() -> None:
    for state in course(load(TINY), 0):
        seen = np.array(state.observation_tensor(0))
        assert seen.any() == (state.game is not None)
