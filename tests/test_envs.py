"""The environments: PettingZoo AEC, Gymnasium Env and VectorEnv, and the `Duel` under them.

Positions are put into an environment with `Game.from_position`, so that a test says what it speaks
of. The opponents are the tests' own; the one that is named ("random") is used where names matter.
"""

from __future__ import annotations

import copy
import functools
import multiprocessing
import pickle
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pettingzoo
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from helpers import card
from pettingzoo.test import api_test, seed_test
from pettingzoo.test.save_obs_test import test_save_obs as save_obs_test
from players import Even, First, global_generators_seeded
from scipy.stats import binomtest, chisquare

import counterweight_env
from counterweight_env import Game, GameBatch, IllegalActionError, Phase, Rules
from counterweight_env.envs.duel import Duel
from counterweight_env.envs.single import CounterweightEnv
from counterweight_env.envs.vector import CounterweightVectorEnv

SMALL = {
    "classic": "classic(ranks=6,suits=2,hand_size=3)",
    "exchange": "exchange(ranks=7,suits=1,hand_size=2)",
}
RULE_TEXTS = ["classic", "exchange", *SMALL.values()]
SEATS: list[int | str] = [0, 1, "random"]
ENV_ID = "counterweight_env:Counterweight-v0"


def legal_action(mask: np.ndarray, rng: random.Random) -> int:
    return rng.choice(np.flatnonzero(mask).tolist())


# --- The checkers of other houses ---------------------------------------------------------------

# PettingZoo's api_test warns about every dict observation and every mask that is all 0 unless the
# environment's name is in a list inside PettingZoo. All its own card games are in that list.
PETTINGZOO_LISTS = [
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be",
    "Action mask numpy array is all zeros",
]


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("rules", RULE_TEXTS)
@pytest.mark.parametrize("make", [counterweight_env.env, counterweight_env.raw_env])
def test_pettingzoo_api_test(rules: str, make: Callable[..., Any]) -> None:
    for message in PETTINGZOO_LISTS:
        warnings.filterwarnings("ignore", message=message)
    api_test(make(rules=rules), num_cycles=300)
    api_test(make(rules=rules, reward="margin", render_mode="ansi"), num_cycles=50)


@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_pettingzoo_seed_test(rules: str) -> None:
    seed_test(functools.partial(counterweight_env.env, rules=rules), num_cycles=100)
    seed_test(functools.partial(counterweight_env.raw_env, rules=rules), num_cycles=100)


@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_pettingzoo_save_obs_test(rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    # It saves observations as images. Ours are no images, so it must say so and save nothing.
    save_obs_test(counterweight_env.env(rules=rules))
    assert "Observations must be Box" in capsys.readouterr().out


def test_pettingzoo_max_cycles_test_does_not_apply() -> None:
    # max_cycles_test builds `parallel_env(max_cycles=)`. The same agent may act several times
    # running, so there is no parallel form, and games end by themselves (see max_decisions).
    assert counterweight_env.env().metadata["is_parallelizable"] is False
    assert not hasattr(counterweight_env, "parallel_env")
    with pytest.raises(TypeError, match="max_cycles"):
        counterweight_env.env(max_cycles=4)
    with pytest.raises((TypeError, AssertionError)):
        pettingzoo.utils.aec_to_parallel(counterweight_env.env())


class AnyActionEnv(CounterweightEnv):
    """Takes any action for a legal one: the checkers sample actions without looking at the mask."""

    def step(self, action: Any) -> Any:
        legal = np.flatnonzero(self.action_masks())
        return super().step(int(legal[int(action) % len(legal)]))


gym.register("CounterweightAnyAction-v0", entry_point=AnyActionEnv)


@pytest.mark.parametrize("rules", RULE_TEXTS)
@pytest.mark.parametrize("seat", SEATS)
def test_gymnasium_check_env(rules: str, seat: int | str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # the checker opens a window, too
    env = gym.make(
        "CounterweightAnyAction-v0", rules=rules, seat=seat, opponent=Even(), render_mode="ansi"
    )
    check_env(env.unwrapped)


@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_stable_baselines_check_env(rules: str) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    for reward in ("outcome", "margin"):
        env = AnyActionEnv(rules=rules, opponent=Even(), reward=reward, render_mode="ansi")
        checker.check_env(env, warn=True, skip_render_check=False)


# --- Ways in ------------------------------------------------------------------------------------


def test_the_aec_environment_is_made_in_every_way() -> None:
    made = [
        counterweight_env.env(rules="exchange"),
        counterweight_env.raw_env(rules=Rules("exchange")),
        pettingzoo.make("aec", "counterweight_v0", rules="exchange"),
    ]
    for env in made:
        env.reset(seed=3)
        assert env.possible_agents == env.agents == ["player_0", "player_1"]
        assert env.unwrapped.rules == Rules("exchange")
        assert str(env.unwrapped) == env.metadata["name"] == "counterweight_v0"
        assert env.agent_selection == f"player_{Game('exchange', seed=3).to_move}"
        expected = Game("exchange", seed=3)
        for player in (0, 1):
            seen = env.observe(f"player_{player}")["observation"]
            assert seen.tobytes() == expected.observe(player).tobytes()


def test_the_single_environment_is_made_by_gymnasium() -> None:
    env = gym.make(ENV_ID, rules="exchange", opponent="random", seat=1, reward="margin")
    assert isinstance(env.unwrapped, CounterweightEnv)
    assert env.spec is not None
    assert env.spec.id == "Counterweight-v0"
    observation, info = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert info["action_mask"].dtype == np.int8
    assert (env.unwrapped.action_masks() == info["action_mask"].astype(bool)).all()
    action = env.action_space.sample(info["action_mask"])
    assert env.action_space.contains(action)
    observation, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert isinstance(reward, float)
    assert isinstance(terminated, bool)
    default = gym.make(ENV_ID)
    assert default.unwrapped.rules == Rules()


def test_the_vector_environment_is_made_by_gymnasium() -> None:
    envs = gym.make_vec(ENV_ID, num_envs=3, rules="exchange", opponent="random", seat=0)
    assert isinstance(envs.unwrapped, CounterweightVectorEnv)
    assert envs.num_envs == 3
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    observations, infos = envs.reset(seed=0)
    assert envs.observation_space.contains(observations)
    assert observations.shape == (3, envs.single_observation_space.shape[0])
    actions = envs.action_space.sample(tuple(infos["action_mask"]))
    _, rewards, terminations, truncations, infos = envs.step(actions)
    assert (rewards.dtype, terminations.dtype, truncations.dtype) == (np.float64, bool, bool)
    assert infos["action_mask"].shape == (3, 54)
    assert infos["_action_mask"].all()


BAD_ARGUMENTS = [
    ({"rules": "bridge"}, ValueError, r"variant must be one of .*bridge"),
    ({"rules": "classic(ranks=14)"}, ValueError, "ranks must be from 2 to 13, got 14"),
    ({"rules": 5}, TypeError, "rules must be .*5"),
    ({"reward": "score"}, ValueError, "reward must be one of .*score"),
    ({"reward": None}, ValueError, "reward must be one of .*None"),
    ({"render_mode": "video"}, ValueError, "render_mode must be None or one of .*video"),
    ({"speed": 3}, TypeError, "speed"),
]
BAD_LEARNER_ARGUMENTS = [
    *BAD_ARGUMENTS,
    ({"opponent": "nobody"}, ValueError, "unknown agent 'nobody'"),
    ({"opponent": "random:depth=3"}, ValueError, "random:depth=3"),
    ({"opponent": 5}, TypeError, "an agent has a name and act"),
    ({"opponent": Even}, TypeError, "an agent has a name and act"),
    ({"seat": 2}, ValueError, "seat must be 0, 1 or 'random', got 2"),
    ({"seat": "left"}, ValueError, "seat must be 0, 1 or 'random', got 'left'"),
    ({"seat": None}, ValueError, "seat must be .*None"),
    ({"seat": True}, ValueError, "seat must be .*True"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD_ARGUMENTS)
@pytest.mark.parametrize("make", [counterweight_env.env, counterweight_env.raw_env])
def test_the_aec_environment_refuses_bad_arguments_by_name(
    make: Callable[..., Any], arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(**arguments)


@pytest.mark.parametrize(("arguments", "error", "message"), BAD_LEARNER_ARGUMENTS)
def test_env_and_vector_env_refuse_bad_arguments_by_name(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        CounterweightEnv(**arguments)
    with pytest.raises(error, match=message):
        CounterweightVectorEnv(2, **arguments)
    if "render_mode" not in arguments:  # gym.make looks at that one itself
        with pytest.raises(error, match=message):
            gym.make(ENV_ID, **arguments)
        with pytest.raises(error, match=message):
            gym.make_vec(ENV_ID, num_envs=2, **arguments)


@pytest.mark.parametrize("num_envs", [0, -1, 1.5, None])
def test_a_bad_number_of_slots_is_refused(num_envs: Any) -> None:
    with pytest.raises(ValueError, match=r"num_games|num_envs"):
        CounterweightVectorEnv(num_envs, opponent=First())


# --- AEC ----------------------------------------------------------------------------------------


def put(env: Any, game: Game) -> None:
    """Set an AEC environment to a position."""
    env.reset(seed=0)
    raw = env.unwrapped
    raw._game = game.copy()
    raw.agent_selection = f"player_{max(game.to_move, 0)}"
    raw._set_masks(game.to_move)


def play_out(env: Any, choose: Callable[[np.ndarray], int]) -> dict[str, float]:
    """Play an AEC episode to its end and return each agent's sum of `last()` rewards."""
    sums = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        sums[agent] += reward
        assert (observation["action_mask"] == info["action_mask"]).all()
        if terminated or truncated:
            assert not observation["action_mask"].any()
            env.step(None)
        else:
            env.step(choose(observation["action_mask"]))
    assert env.agents == []
    return sums


# Spades and hearts that are no tens, no threes and no pairs between them fit no table of the ten
# of diamonds and the three of clubs. So who lays TD on TS and 3C on 3H (C1) blocks all of them.
TABLE = ["TS", "3H"]
COUPLE = ["TD", "3C"]
ENDINGS = {
    # what ends the game: (mover's other cards, opponent's cards, the mover's payoff)
    "empty hand": ("", "KS QH", 1),
    "both blocked, fewer cards": ("KS", "QS QH JS", 1),
    "both blocked, more cards": ("KS KH JH", "QS", -1),
    "both blocked, a draw": ("KS", "QS", 0),
}


def ending(kind: str, mover: int, rules: str) -> tuple[Game, int]:
    """Return the position before the last couple, and the mover's payoff."""
    own, others, payoff = ENDINGS[kind]
    hands = [COUPLE + own.split(), others.split()]
    if mover == 1:
        hands.reverse()
    return Game.from_position(hands=hands, table=TABLE, to_move=mover, rules=rules), payoff


@pytest.mark.parametrize("rules", ["classic", "exchange"])
@pytest.mark.parametrize("mover", [0, 1])
@pytest.mark.parametrize("kind", ENDINGS)
@pytest.mark.parametrize("reward", ["outcome", "margin"])
def test_F3_the_rewards_of_last_sum_to_the_payoff(
    rules: str, mover: int, kind: str, reward: str
) -> None:
    game, payoff = ending(kind, mover, rules)
    env = counterweight_env.env(rules=rules, reward=reward)
    put(env, game)
    couple = iter([card(text) for text in COUPLE])
    sums = play_out(env, lambda mask: next(couple))
    end = env.unwrapped._game
    assert end.done
    assert end.returns[mover] == payoff
    agents = [f"player_{mover}", f"player_{1 - mover}"]
    if reward == "outcome":
        assert [sums[agent] for agent in agents] == [payoff, -payoff]
    else:
        own, others, _ = ENDINGS[kind]
        margin = (len(others.split()) - len(own.split())) / 52
        assert [sums[agent] for agent in agents] == pytest.approx([margin, -margin])


@pytest.mark.parametrize("mover", [0, 1])
def test_F3_the_last_card_laid_away_wins(mover: int) -> None:
    # blocked="discard": the mover's only card fits nothing, is laid out of play, and wins.
    rules = "classic(blocked=discard)"
    hands = [["KS"], ["QS", "QH"]]
    if mover == 1:
        hands.reverse()
    game = Game.from_position(hands=hands, table=["TD", "3C"], to_move=mover, rules=rules)
    assert game.phase == Phase.DISCARD
    env = counterweight_env.env(rules=rules)
    put(env, game)
    sums = play_out(env, lambda mask: card("KS"))
    assert sums[f"player_{mover}"] == 1
    assert sums[f"player_{1 - mover}"] == -1


@pytest.mark.parametrize("rules", RULE_TEXTS)
@pytest.mark.parametrize("reward", ["outcome", "margin"])
def test_the_rewards_of_last_sum_to_the_payoff_in_random_games(rules: str, reward: str) -> None:
    rng = random.Random(1)
    env = counterweight_env.env(rules=rules, reward=reward)
    payoffs = set()
    for seed in range(25):
        env.reset(seed=seed)
        sums = play_out(env, lambda mask: legal_action(mask, rng))
        game = env.unwrapped._game
        expected = game.returns if reward == "outcome" else game.margin
        assert list(sums.values()) == pytest.approx(list(expected))
        payoffs.add(game.returns[0])
    assert len(payoffs) > 1


def test_the_player_who_is_not_on_turn_sees_a_mask_of_zeros() -> None:
    env = counterweight_env.env()
    rng = random.Random(2)
    env.reset(seed=2)
    runs_of_one_agent = 0
    for _ in range(60):
        mover = env.agent_selection
        other = "player_1" if mover == "player_0" else "player_0"
        for agent in (mover, other):
            seen = env.observe(agent)
            assert env.observation_space(agent).contains(seen)
            assert seen["action_mask"].dtype == np.int8
            assert (seen["action_mask"] == env.infos[agent]["action_mask"]).all()
            assert seen["action_mask"].any() == (agent == mover)
            layout = counterweight_env.observation_layout()
            assert seen["observation"][layout["phase"]].sum() == (agent == mover)
        env.step(legal_action(env.observe(mover)["action_mask"], rng))
        runs_of_one_agent += env.agent_selection == mover
    assert runs_of_one_agent > 10  # a turn is one to four decisions


@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_an_illegal_action_ends_an_aec_episode_and_the_next_ones_run_clean(
    rules: str, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(3)
    env = counterweight_env.env(rules=rules)
    for offender in (0, 1):
        dealt = (Game(rules, seed=seed) for seed in range(100))
        seed = next(seed for seed, game in enumerate(dealt) if game.to_move == offender)
        env.reset(seed=seed)
        env.step(legal_action(env.observe(env.agent_selection)["action_mask"], rng))
        if env.agent_selection != f"player_{offender}":  # a discard: the turn has passed on
            env.reset(seed=seed)
        illegal = int(np.flatnonzero(env.observe(env.agent_selection)["action_mask"] == 0)[0])
        caplog.clear()
        env.step(illegal)
        assert "Illegal move made" in caplog.text
        assert not any(info["action_mask"].any() for info in env.infos.values())
        sums = dict.fromkeys(env.possible_agents, 0.0)
        for agent in env.agent_iter():
            _, reward, terminated, truncated, _ = env.last()
            assert terminated or truncated
            sums[agent] += reward
            env.step(None)
        assert sums == {f"player_{offender}": -1, f"player_{1 - offender}": 0}
    for seed in range(100):
        env.reset(seed=seed)
        sums = play_out(env, lambda mask: legal_action(mask, rng))
        assert list(sums.values()) == list(env.unwrapped._game.returns)


@pytest.mark.parametrize("action", [-1, 54, 5.0, None, "5"])
def test_an_action_outside_the_space_is_an_error_in_aec(action: Any) -> None:
    env = counterweight_env.env()
    env.reset(seed=0)
    before = env.unwrapped._game._state.tobytes()
    with pytest.raises(AssertionError, match=r"action .* not in .*action space"):
        env.step(action)
    assert env.unwrapped._game._state.tobytes() == before


@pytest.mark.parametrize("action", [-1, 54, 5.0, None, "5", "a wrong card"])
def test_an_illegal_action_raises_in_the_raw_environment_and_changes_nothing(action: Any) -> None:
    env = counterweight_env.raw_env()
    env.reset(seed=0)
    if action == "a wrong card":
        action = int(np.flatnonzero(env.infos[env.agent_selection]["action_mask"] == 0)[0])
    before = pickle.dumps(env)
    with pytest.raises(IllegalActionError, match="action"):
        env.step(action)
    assert pickle.dumps(env) == before


def test_the_order_of_calls_is_enforced_in_aec(caplog: pytest.LogCaptureFixture) -> None:
    env = counterweight_env.env(render_mode="ansi")
    for call in (env.render, lambda: env.step(0), lambda: env.observe("player_0")):
        with pytest.raises(Exception, match="reset"):
            call()
    with pytest.raises(AttributeError, match="agent_selection"):
        _ = env.agent_selection
    game, _ = ending("empty hand", 0, "classic")
    put(env, game)
    couple = iter([card(text) for text in COUPLE])
    play_out(env, lambda mask: next(couple))
    caplog.clear()
    env.step(0)  # nobody is left
    assert "step" in caplog.text
    put(env, game)
    for text in COUPLE:
        env.step(card(text))
    with pytest.raises(ValueError, match="only valid action is None"):
        env.step(0)
    raw = counterweight_env.raw_env()
    put(raw, game)
    for text in COUPLE:
        raw.step(card(text))
    with pytest.raises(ValueError, match="only valid action is None"):
        raw.step(0)


def test_aec_without_a_seed_goes_on_with_its_own_stream() -> None:
    first, second = counterweight_env.env(), counterweight_env.env()
    for env in (first, second):
        env.reset(seed=7)
        env.reset()
    twin = Game(seed=7)
    twin.reset()
    assert first.unwrapped._game == second.unwrapped._game == twin
    fresh = counterweight_env.env()
    fresh.reset()
    other = counterweight_env.env()
    other.reset()
    assert fresh.unwrapped._game != other.unwrapped._game


# --- Env ----------------------------------------------------------------------------------------


def put_duel(env: Any, game: Game, seat: int) -> None:
    """Set an Env or a VectorEnv of one slot to a position, the learner in that seat."""
    env.reset(seed=0)
    duel = env.unwrapped._duel
    duel.games.state[:] = game._state
    duel.seats[:] = seat


@pytest.mark.parametrize("rules", ["classic", "exchange"])
@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("kind", ENDINGS)
@pytest.mark.parametrize("reward", ["outcome", "margin"])
def test_env_gives_the_learner_the_payoff_of_every_ending(
    rules: str, seat: int, kind: str, reward: str
) -> None:
    game, payoff = ending(kind, seat, rules)
    own, others, _ = ENDINGS[kind]
    margin = (len(others.split()) - len(own.split())) / 52
    env = CounterweightEnv(rules=rules, opponent=First(), reward=reward)
    put_duel(env, game, seat)
    _, first, terminated, truncated, info = env.step(card("TD"))
    assert (first, terminated, truncated) == (0.0, False, False)
    assert np.flatnonzero(info["action_mask"]).tolist() == [card("3C")]
    observation, last, terminated, truncated, info = env.step(card("3C"))
    assert (terminated, truncated) == (True, False)
    assert last == pytest.approx(payoff if reward == "outcome" else margin)
    assert not info["action_mask"].any()
    assert not env.action_masks().any()
    assert env.observation_space.contains(observation)
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(card("TD"))
    env.reset()
    assert env.action_masks().any()


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("reward", ["outcome", "margin"])
def test_env_ends_with_minus_one_when_the_opponents_move_ends_it(seat: int, reward: str) -> None:
    # The learner's couple makes the table TD 3C; the opponent answers TC on TD and 3D on 3C by C1
    # and goes out, while the learner still holds two cards.
    hands = [[*COUPLE, "KS", "KH"], ["TC", "3D"]]
    if seat == 1:
        hands.reverse()
    game = Game.from_position(hands=hands, table=TABLE, to_move=seat)
    expected = -1.0 if reward == "outcome" else -2 / 52
    env = CounterweightEnv(opponent=First(), reward=reward)
    put_duel(env, game, seat)
    env.step(card("TD"))
    _, last, terminated, truncated, _ = env.step(card("3C"))
    assert (terminated, truncated) == (True, False)
    assert last == pytest.approx(expected)

    envs = CounterweightVectorEnv(1, opponent=First(), reward=reward)
    put_duel(envs, game, seat)
    envs.step(np.array([card("TD")]))
    _, rewards, terminations, _, infos = envs.step(np.array([card("3C")]))
    assert terminations.all()
    assert rewards == pytest.approx([expected])
    assert infos["_final_obs"].all()
    assert infos["action_mask"].any()  # the next game has begun


@pytest.mark.parametrize("seat", SEATS)
def test_the_learner_sits_where_it_was_asked_to(seat: int | str) -> None:
    duel = Duel(4000, "exchange", [First()], seat=seat, seed=1)
    if seat == "random":
        assert binomtest(int(duel.seats.sum()), len(duel), 0.5).pvalue > 1e-3
        before = duel.seats.copy()
        duel.reset()
        assert (duel.seats != before).any()  # drawn anew for each game
        # The lot for the seat is not the lot for the dealer.
        same = int((duel.seats == duel.games.state["dealer"]).sum())
        assert binomtest(same, len(duel), 0.5).pvalue > 1e-3
    else:
        assert (duel.seats == seat).all()
    assert (duel.games.to_move == duel.seats).all()


def test_fixing_the_seat_changes_neither_the_cards_nor_the_opponent() -> None:
    options: dict[str, Any] = {"opponents": [First(), Even()], "seed": 5}
    by_lot, fixed = Duel(200, **options), Duel(200, seat=0, **options)
    assert (by_lot.opponent_of == fixed.opponent_of).all()
    same = by_lot.seats == 0
    assert 50 < same.sum() < 150
    assert (by_lot.games.state[same] == fixed.games.state[same]).all()


def test_env_needs_a_reset_first() -> None:
    with pytest.raises(ResetNeeded):
        CounterweightEnv(opponent=First()).step(0)
    with pytest.raises(ResetNeeded):
        CounterweightVectorEnv(2, opponent=First()).step(np.zeros(2, np.int64))
    with pytest.raises(ResetNeeded):
        gym.make(ENV_ID, opponent=First()).step(0)


BAD_ACTIONS = [-1, 54, 10**6, 2**70, 5.0, None, "5", [5], "a wrong card"]


@pytest.mark.parametrize("action", BAD_ACTIONS, ids=repr)
def test_an_illegal_action_raises_in_env_and_changes_nothing(action: Any) -> None:
    env = CounterweightEnv(opponent=Even(), render_mode="ansi")
    env.reset(seed=4)
    if action == "a wrong card":
        action = int(np.flatnonzero(~env.action_masks())[0])
    before = pickle.dumps(env)
    with pytest.raises(IllegalActionError, match="action"):
        env.step(action)
    assert pickle.dumps(env) == before
    env.step(int(np.flatnonzero(env.action_masks())[0]))


@pytest.mark.parametrize("action", BAD_ACTIONS, ids=repr)
def test_one_illegal_action_stops_every_slot_of_vector_env(action: Any) -> None:
    envs = CounterweightVectorEnv(3, opponent=Even())
    _, infos = envs.reset(seed=4)
    good = infos["action_mask"].argmax(axis=1)
    if action == "a wrong card":
        action = int(np.flatnonzero(infos["action_mask"][1] == 0)[0])
    actions = np.empty(3, object)
    actions[:] = good.tolist()
    actions[1] = action
    if isinstance(action, int) and action < 2**63:
        actions = actions.astype(np.int64)
    before = pickle.dumps(envs)
    with pytest.raises(IllegalActionError, match="action"):
        envs.step(actions)
    assert pickle.dumps(envs) == before
    for wrong_shape in (good[:2], good[None], good[0], good.astype(np.float32)):
        with pytest.raises(IllegalActionError, match="action"):
            envs.step(wrong_shape)
    assert pickle.dumps(envs) == before
    envs.step(good)


# --- VectorEnv ----------------------------------------------------------------------------------


def first_difference(one: Any, other: Any) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return f"keys {sorted(one)} and {sorted(other)}"
        return "; ".join(
            f"{key}: {one[key]!r} and {other[key]!r}"
            for key in one
            if not data_equivalence(one[key], other[key], exact=True)
        )
    return f"{one!r} and {other!r}"


def assert_same(one: Any, other: Any, step: int) -> None:
    assert data_equivalence(one, other, exact=True), (
        f"at step {step}: {first_difference(one, other)}"
    )


@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_slot_i_plays_what_env_of_seed_s_plus_i_plays(rules: str) -> None:
    slots, seed = 3, 40
    options: dict[str, Any] = {"rules": rules, "opponent": Even(), "reward": "margin"}
    envs = CounterweightVectorEnv(slots, **options)
    singles = [CounterweightEnv(**options) for _ in range(slots)]
    rng = random.Random(4)
    observations, infos = envs.reset(seed=seed)
    for slot, env in enumerate(singles):
        assert_same(
            (observations[slot], infos["action_mask"][slot]), _of(env.reset(seed=seed + slot)), 0
        )
    ended = 0
    for step in range(1000):
        actions = np.array([legal_action(mask, rng) for mask in infos["action_mask"]])
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        for slot, env in enumerate(singles):
            observation, reward, terminated, truncated, info = env.step(int(actions[slot]))
            assert (rewards[slot], terminations[slot], truncations[slot]) == (
                np.float32(reward), terminated, truncated,
            )  # fmt: skip
            if terminated:
                ended += 1
                assert_same(infos["final_obs"][slot], observation, step)
                final_mask = infos["final_info"]["action_mask"][slot]
                assert_same(final_mask, info["action_mask"], step)
                observation, info = env.reset()
            elif "final_obs" in infos:
                assert infos["final_obs"][slot] is None
                assert not infos["_final_obs"][slot]
            assert_same(
                (observations[slot], infos["action_mask"][slot]),
                (observation, info["action_mask"]),
                step,
            )
    assert ended > 20


def _of(result: tuple[np.ndarray, dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    return result[0], result[1]["action_mask"]


@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_vector_env_is_a_sync_vector_env_in_the_same_mode(rules: str) -> None:
    slots, seed = 4, 11
    options: dict[str, Any] = {"rules": rules, "opponent": Even()}
    ours = gym.make_vec(ENV_ID, num_envs=slots, **options)
    theirs = SyncVectorEnv(
        [functools.partial(gym.make, ENV_ID, **options)] * slots, autoreset_mode="SameStep"
    )
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"]
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    rng = random.Random(5)
    for seeds in (seed, [9, 3, 7, 5], None):
        results = [envs.reset(seed=seeds) for envs in (ours, theirs)]
        assert_same(results[0], results[1], 0)
        infos = results[0][1]
        ended = 0
        for step in range(1000 if seeds == seed else 100):
            actions = np.array([legal_action(mask, rng) for mask in infos["action_mask"]])
            result, expected = ours.step(actions), theirs.step(actions)
            assert_same(result, expected, step)
            infos = result[4]
            ended += int(result[2].sum())
        assert ended > (20 if seeds == seed else 0)
    theirs.close()


def test_vector_env_does_not_depend_on_the_number_of_slots() -> None:
    few = CounterweightVectorEnv(2, opponent=Even())
    many = CounterweightVectorEnv(9, opponent=Even())
    small, large = few.reset(seed=20), many.reset(seed=18)
    rng = random.Random(6)
    for step in range(400):
        actions = np.array([legal_action(mask, rng) for mask in large[-1]["action_mask"]])
        assert_same(small[0], large[0][2:4], step)
        for ours, theirs in zip(small[1:-1], large[1:-1], strict=True):
            assert_same(ours, theirs[2:4], step)
        assert_same(small[-1]["action_mask"], large[-1]["action_mask"][2:4], step)
        small, large = few.step(actions[2:4]), many.step(actions)


def test_vector_env_takes_one_seed_a_slot_and_refuses_another_number() -> None:
    envs = CounterweightVectorEnv(3, opponent=Even())
    seeds: Any
    for seeds in ([5, 5, 8], (5, 5, 8), np.array([5, 5, 8])):
        observations, _ = envs.reset(seed=seeds)
        assert (observations[0] == observations[1]).all()
        single = CounterweightEnv(opponent=Even())
        assert (observations[2] == single.reset(seed=8)[0]).all()
    before = pickle.dumps(envs)
    for seeds in ([5, 5], [5, 5, 8, 9], []):
        with pytest.raises(ValueError, match=r"seed has .* entries for 3"):
            envs.reset(seed=seeds)
    for seeds in ([5, 5, -1], [5, 5, 0.5], [5, 5, None]):
        with pytest.raises(ValueError, match="seed must be"):
            envs.reset(seed=seeds)
    assert pickle.dumps(envs) == before


def arrays_of(result: Any) -> Iterator[np.ndarray]:
    """Yield every array in a result, however deep."""
    if isinstance(result, np.ndarray):
        yield result
        if result.dtype == object:
            for part in result:
                yield from arrays_of(part)
    elif isinstance(result, dict):
        for part in result.values():
            yield from arrays_of(part)
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from arrays_of(part)


def spoil(result: Any) -> None:
    """Write into every array of a result."""
    for array in arrays_of(result):
        if array.dtype != object and array.flags.writeable:
            array.view(np.uint8)[...] = 1


@pytest.mark.parametrize("rules", ["classic", SMALL["exchange"]])
def test_what_vector_env_returns_is_never_its_own_memory(rules: str) -> None:
    options: dict[str, Any] = {"rules": rules, "opponent": Even()}
    spoiled = CounterweightVectorEnv(4, **options)
    kept = CounterweightVectorEnv(4, **options)
    rng = random.Random(7)
    result, expected = spoiled.reset(seed=1), kept.reset(seed=1)
    history: list[tuple[Any, Any]] = []
    for step in range(300):
        assert_same(result, expected, step)
        if step % 2:
            history.append((expected, copy.deepcopy(expected)))
        actions = np.array([legal_action(mask, rng) for mask in expected[-1]["action_mask"]])
        for masks in (spoiled.action_masks(), spoiled._duel.observe(), result):
            spoil(masks)
        result, expected = spoiled.step(actions), kept.step(actions.copy())
        spoil(actions)
    for before, copied in history:  # nothing returned earlier has changed since
        assert_same(before, copied, -1)


def test_what_env_returns_is_never_its_own_memory() -> None:
    spoiled, kept = (CounterweightEnv(opponent=Even()) for _ in range(2))
    rng = random.Random(8)
    result: Any = spoiled.reset(seed=1)
    expected: Any = kept.reset(seed=1)
    for step in range(200):
        assert_same(result, expected, step)
        if len(expected) == 5 and expected[2]:
            result, expected = spoiled.reset(), kept.reset()
        action = legal_action(expected[-1]["action_mask"], rng)
        spoil(result)
        spoil(spoiled.action_masks())
        result, expected = spoiled.step(action), kept.step(action)


def test_what_aec_returns_is_never_the_games_memory() -> None:
    spoiled, kept = counterweight_env.raw_env(), counterweight_env.raw_env()
    rng = random.Random(9)
    for env in (spoiled, kept):
        env.reset(seed=1)
    while kept.agents:
        for agent in kept.agents:
            assert_same(spoiled.observe(agent), kept.observe(agent), -1)
            assert_same(spoiled.infos[agent], kept.infos[agent], -1)
            spoil(spoiled.observe(agent))
        spoil(spoiled.last())  # the observation and the info
        observation, _, terminated, _, _ = kept.last()
        action = None if terminated else legal_action(observation["action_mask"], rng)
        spoiled.step(action)
        kept.step(action)
        assert spoiled._game == kept._game


@pytest.mark.parametrize("rules", ["classic", SMALL["exchange"]])
def test_episode_statistics_can_be_recorded(rules: str) -> None:
    envs = RecordEpisodeStatistics(
        gym.make_vec(ENV_ID, num_envs=4, rules=rules, opponent=Even(), reward="margin")
    )
    rng = random.Random(10)
    _, infos = envs.reset(seed=0)
    sums, lengths, episodes = np.zeros(4), np.zeros(4, int), 0
    for _ in range(300):
        actions = np.array([legal_action(mask, rng) for mask in infos["action_mask"]])
        _, rewards, terminations, _, infos = envs.step(actions)
        sums += rewards
        lengths += 1
        for slot in np.flatnonzero(terminations):
            assert infos["episode"]["r"][slot] == pytest.approx(sums[slot])
            assert infos["episode"]["l"][slot] == lengths[slot]
            assert infos["_episode"][slot]
            sums[slot], lengths[slot] = 0, 0
            episodes += 1
    assert envs.episode_count == episodes > 10


# --- Copies and processes -----------------------------------------------------------------------

TWINS: dict[str, Callable[[Any], Any]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
}


def aec_trace(env: Any, rng: random.Random, decisions: int) -> list[Any]:
    """Play on and return all that is seen, through the end of an episode into the next."""
    trace = []
    for _ in range(decisions):
        if not env.agents:
            env.reset()
        trace.append((env.agent_selection, copy.deepcopy(env.last()), env.render()))
        observation, _, terminated, _, _ = env.last()
        env.step(None if terminated else legal_action(observation["action_mask"], rng))
    return trace


@pytest.mark.parametrize("way", TWINS)
@pytest.mark.parametrize("make", [counterweight_env.env, counterweight_env.raw_env])
@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_a_copy_of_aec_goes_on_the_same(way: str, make: Callable[..., Any], rules: str) -> None:
    env = make(rules=rules, render_mode="ansi")
    env.reset(seed=6)
    for stop in (0, 7, 60, 61, 1):
        aec_trace(env, random.Random(stop), stop)
        assert env.agents == [] or env.render()
        twin = TWINS[way](env)
        kept = pickle.dumps(twin.unwrapped._game)
        trace = aec_trace(env, random.Random(1), 150)
        assert pickle.dumps(twin.unwrapped._game) == kept  # it does not move along
        assert_same(trace, aec_trace(twin, random.Random(1), 150), stop)


def test_a_copy_of_aec_before_its_first_reset_can_be_played() -> None:
    for way in TWINS.values():
        twin = way(counterweight_env.env(render_mode="ansi"))
        twin.reset(seed=0)
        assert len(aec_trace(twin, random.Random(0), 120)) == 120


def env_trace(env: Any, rng: random.Random, decisions: int) -> list[Any]:
    trace: list[Any] = []
    for _ in range(decisions):
        mask = env.unwrapped.action_masks()
        if not mask.any():
            trace.append(env.reset())
            continue
        trace.append((env.step(legal_action(mask, rng)), env.render()))
    return trace


@pytest.mark.parametrize("way", TWINS)
@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_a_copy_of_env_goes_on_the_same(way: str, wrapped: bool, rules: str) -> None:
    options: dict[str, Any] = {"rules": rules, "opponent": Even(), "render_mode": "ansi"}
    env = gym.make(ENV_ID, **options) if wrapped else CounterweightEnv(**options)
    env.reset(seed=6)
    for stop in (0, 7, 60):
        env_trace(env, random.Random(stop), stop)
        twin = TWINS[way](env)
        kept = twin.unwrapped._duel.games.state.tobytes()
        trace = env_trace(env, random.Random(1), 120)
        assert twin.unwrapped._duel.games.state.tobytes() == kept
        assert_same(trace, env_trace(twin, random.Random(1), 120), stop)


@pytest.mark.parametrize("way", TWINS)
@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_a_copy_of_vector_env_goes_on_the_same(way: str, rules: str) -> None:
    envs = gym.make_vec(ENV_ID, num_envs=3, rules=rules, opponent=Even(), render_mode="ansi")
    envs.reset(seed=6)

    def trace_of(games: Any, steps: int) -> list[Any]:
        rng, trace = random.Random(1), []
        for _ in range(steps):
            masks = games.unwrapped.action_masks()
            actions = np.array([legal_action(mask, rng) for mask in masks])
            trace.append((games.step(actions), games.render()))
        return trace

    for stop in (0, 7, 60):
        trace_of(envs, stop)
        twin = TWINS[way](envs)
        kept = twin.unwrapped._duel.games.state.tobytes()
        trace = trace_of(envs, 120)
        assert twin.unwrapped._duel.games.state.tobytes() == kept
        assert_same(trace, trace_of(twin, 120), stop)


def played_in_a_process(seed: int) -> tuple[list[Any], list[Any], bytes]:
    """Play each environment for a while. Runs in this process and in a spawned one."""
    aec = counterweight_env.env(rules="classic", render_mode="ansi")
    aec.reset(seed=seed)
    env = gym.make(ENV_ID, rules="exchange", opponent="random", render_mode="ansi")
    env.reset(seed=seed)
    envs = gym.make_vec(ENV_ID, num_envs=3, opponent="random")
    envs.reset(seed=seed)
    for _ in range(100):
        envs.step(envs.unwrapped.action_masks().argmax(axis=1))
    state = envs.unwrapped._duel.games.state.tobytes()
    rng = random.Random(seed)
    return aec_trace(aec, rng, 150), env_trace(env, rng, 150), state


def test_envs_play_the_same_in_a_spawned_process() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply(played_in_a_process, (3,))
    assert_same(there, played_in_a_process(3), -1)


def test_env_works_in_an_async_vector_env_of_spawned_processes() -> None:
    make = functools.partial(gym.make, ENV_ID, rules="classic", opponent="random")
    theirs = AsyncVectorEnv([make] * 2, context="spawn", autoreset_mode="SameStep")
    ours = CounterweightVectorEnv(2, rules="classic", opponent="random")
    rng = random.Random(11)
    try:
        result, expected = ours.reset(seed=2), theirs.reset(seed=2)
        for step in range(150):
            assert_same(result, expected, step)
            actions = np.array([legal_action(mask, rng) for mask in result[-1]["action_mask"]])
            result, expected = ours.step(actions), theirs.step(actions)
    finally:
        theirs.close()


# --- Rendering ----------------------------------------------------------------------------------

# Player 0's side of a table 10♠ 3♥ with one couple in hand, cards in both discards.
SHOWN: dict[str, Any] = {
    "hands": [["TD", "3C", "KS", "QS", "JS", "KH"], ["AS", "2S", "4S", "5S", "6S", "7S"]],
    "table": TABLE,
    "stock": ["AH", "2H", "4H", "5H", "6H", "7H", "8H"],
    "discards": [["8C", "9C"], ["QC"]],
}
BLOCKED_TABLE = SHOWN | {"hands": [["QH", "JH", "KS", "QS", "JS", "KH"], SHOWN["hands"][1]],
                         "table": COUPLE}  # fmt: skip


def renderings(phase: str) -> list[str]:
    """Return what AEC, Env and VectorEnv draw for player 0 in an exact position."""
    game = Game.from_position(**(BLOCKED_TABLE if phase == "DISCARD" else SHOWN))
    if phase == "OVER":
        game, _ = ending("both blocked, fewer cards", 0, "classic")
    steps = {"RIGHT": ["TD"], "REFILL": COUPLE, "OVER": COUPLE}.get(phase, [])
    for text in steps:
        game.step(card(text))
    assert game.phase.name == phase
    aec = counterweight_env.env(render_mode="ansi")
    put(aec, game)
    texts = [aec.render()]
    for env in (
        CounterweightEnv(opponent=First(), render_mode="ansi"),
        CounterweightVectorEnv(1, opponent=First(), render_mode="ansi"),
    ):
        put_duel(env, game, 0)
        text = env.render()
        texts.append(text if isinstance(text, str) else text[0])
    return texts


RENDERED = {
    "LEFT": ["player_0 to move", "on the left table card 10♠", "legal: 10♦\n"],
    "RIGHT": ["player_0 to move", "10♦ goes on 10♠", "to lay on 3♥", "legal: 3♣\n"],
    "DISCARD": ["player_0 to move", "no couple", "legal: J♥ Q♥ K♥ J♠ Q♠ K♠\n"],
    "REFILL": ["player_0 to move", "refill card", "legal: STOCK RECLAIM\n"],
    "OVER": ["player_0 wins", "1 to 3"],
}


@pytest.mark.parametrize("phase", RENDERED)
def test_a_person_can_play_from_the_text(phase: str) -> None:
    texts = renderings(phase)
    assert texts[0] == texts[1] == texts[2]
    text = texts[0] + "\n"
    for part in RENDERED[phase]:
        assert part in text, text
    table = ["[ 10♠ ] [ 3♥ ]"] if phase in ("LEFT", "RIGHT") else ["[ 10♦ ] [ 3♣ ]"]
    if phase == "OVER":
        hand, parts = "K♠", ["stock 0", "3 cards"]
    else:
        piles = ["8♣ 9♣ (top)", "Q♣ (top)"]
        parts = ["stock 7", "player_1: 6 cards", *piles]
        hand = {
            "DISCARD": "J♥ Q♥ K♥ J♠ Q♠ K♠",
            "REFILL": "K♥ J♠ Q♠ K♠",
        }.get(phase, "3♣ 10♦ K♥ J♠ Q♠ K♠")
    for part in [*table, *parts, f"player_0: {hand}\n"]:
        assert part in text, text
    if phase != "OVER":  # the opponent's cards are known after exhaustion only
        assert "A♠" not in text
        assert "A♥" not in text


def test_the_text_for_a_player_who_waits_says_who_is_on_turn() -> None:
    game = Game.from_position(**SHOWN)
    text = counterweight_env.render.view_text(game.view(1))
    assert "player_0 is on turn" in text
    assert "legal" not in text
    assert "10♦" not in text


def test_render_without_a_mode_warns_and_draws_nothing() -> None:
    for env in (
        counterweight_env.env(),
        CounterweightEnv(opponent=First()),
        CounterweightVectorEnv(2, opponent=First()),
    ):
        env.reset(seed=0)
        with pytest.warns(UserWarning, match="render_mode"):
            assert env.render() is None


def test_drawing_changes_nothing() -> None:
    env = CounterweightEnv(opponent=Even(), render_mode="ansi")
    envs = CounterweightVectorEnv(2, opponent=Even(), render_mode="ansi")
    aec = counterweight_env.raw_env(render_mode="ansi")
    for each in (env, envs, aec):
        each.reset(seed=3)
        before = pickle.dumps(each)
        assert each.render() == each.render()
        assert pickle.dumps(each) == before


# --- Small decks --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rules",
    [
        "exchange(ranks=7,suits=1,hand_size=2)",
        "classic(ranks=7,suits=1,hand_size=2)",
        "classic(ranks=2,suits=4,hand_size=2)",
        "exchange(ranks=13,suits=1,hand_size=5)",
    ],
)
@pytest.mark.parametrize("seat", SEATS)
def test_the_learner_has_a_decision_in_every_game_of_a_small_deck(
    rules: str, seat: int | str
) -> None:
    duel = Duel(500, rules, [Even()], seat=seat, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        assert duel.legal.any(axis=1).all()
        assert (duel.games.to_move == duel.seats).all()
        actions = [rng.choice(np.flatnonzero(row)) for row in duel.legal]
        _, done = duel.step(np.array(actions))
        duel.reset(done)


def test_deals_without_a_decision_for_the_learner_do_occur() -> None:
    # Otherwise the test above would show nothing.
    rules = "exchange(ranks=7,suits=1,hand_size=2)"
    fresh = GameBatch(500, rules, seed=0)
    duel = Duel(500, rules, [Even()], seat=1, seed=0)
    dealt_again = duel.games.state["rng"][:, 0] != fresh.state["rng"][:, 0]
    assert 0 < dealt_again.sum() < 250
    once = np.flatnonzero(~dealt_again)
    assert (duel.games.state["dealer"][once] == fresh.state["dealer"][once]).all()


# --- Duel ---------------------------------------------------------------------------------------


def test_opponents_are_drawn_with_the_given_weights() -> None:
    players = [First(), Even(), First(), Even()]
    weights = [1.0, 2.0, 0.0, 5.0]
    duel = Duel(8000, "exchange", players, weights=weights, seed=3)
    for _ in range(2):
        counts = np.bincount(duel.opponent_of, minlength=4)
        assert counts[2] == 0
        expected = [1000, 2000, 5000]
        assert chisquare(counts[[0, 1, 3]], expected).pvalue > 1e-3
        duel.reset()
    even = Duel(8000, "exchange", players, seed=3)
    assert chisquare(np.bincount(even.opponent_of, minlength=4)).pvalue > 1e-3
    # The draw depends on a game's seed alone.
    row = Duel(1, "exchange", players, weights=weights, seed=[3 + 77])
    assert row.opponent_of[0] == Duel(8000, "exchange", players, weights, seed=3).opponent_of[77]


@pytest.mark.parametrize(
    "weights",
    [
        [1.0],
        [1.0, 1.0, 1.0],
        [-1.0, 2.0],
        [0.0, 0.0],
        [float("nan"), 1.0],
        [float("inf"), 1.0],
        3.0,
    ],
)
def test_bad_weights_are_refused_and_nothing_changes(weights: Any) -> None:
    with pytest.raises(ValueError, match="weights must be"):
        Duel(2, "exchange", [First(), Even()], weights=weights)
    duel = Duel(2, "exchange", [First()], seed=0)
    before = pickle.dumps(duel)
    with pytest.raises(ValueError, match="weights must be"):
        duel.set_opponents([First(), Even()], weights)
    assert pickle.dumps(duel) == before


@pytest.mark.parametrize("opponents", [[], "random", ()])
def test_no_opponents_are_refused(opponents: Any) -> None:
    with pytest.raises(ValueError, match="opponents must be"):
        Duel(2, "exchange", opponents)


def random_step(duel: Duel, rng: np.random.Generator) -> np.ndarray:
    """Play one random action of the learner everywhere; deal anew where a game ended."""
    actions = [rng.choice(np.flatnonzero(row)) for row in duel.legal]
    _, done = duel.step(np.array(actions))
    ended = done.copy()
    if done.any():
        duel.reset(done)
    return ended


def test_a_running_game_keeps_its_opponent() -> None:
    old, new, newest = First(), First(), First()
    duel = Duel(30, "classic", [old], seed=4)
    rng = np.random.default_rng(4)
    for _ in range(10):
        random_step(duel, rng)
    running = np.ones(len(duel), np.bool_)
    assert old.rows_asked > 0
    duel.set_opponents([new])
    assert all(duel.opponents[number] is old for number in duel.opponent_of)
    for step in range(600):
        if step == 20:  # twice in the middle of games
            duel.set_opponents([newest, new])
        running &= ~random_step(duel, rng)
        for row in range(len(duel)):
            opponent = duel.opponents[duel.opponent_of[row]]
            assert (opponent is old) == running[row]
        if not running.any():
            break
    assert not running.any()
    asked = old.rows_asked
    duel.set_opponents([newest])
    for _ in range(100):
        random_step(duel, rng)
    assert old.rows_asked == asked  # no game needs it any more
    assert [opponent for opponent in duel.opponents if opponent is old] == []


def test_an_opponent_is_asked_for_its_own_games_only() -> None:
    players = [First(), First()]
    duel = Duel(40, "exchange", players, weights=[1, 0], seed=5)
    rng = np.random.default_rng(5)
    for _ in range(60):
        random_step(duel, rng)
    assert players[0].rows_asked > 0
    assert players[1].rows_asked == 0


def test_the_games_of_a_duel_do_not_depend_on_who_else_is_among_the_opponents() -> None:
    # The same opponent under another number plays the same game.
    even = Even()
    alone = Duel(20, "classic", [even], seed=6)
    among = Duel(20, "classic", [First(), even], weights=[0, 1], seed=6)
    for _ in range(80):
        assert alone.games.state.tobytes() == among.games.state.tobytes()
        actions = alone.legal.argmax(axis=1)
        for duel in (alone, among):
            _, done = duel.step(actions)
            duel.reset(done)


def test_a_duels_state_can_be_put_back_and_goes_on_exactly() -> None:
    players = [First(), Even()]
    duel = Duel(12, "classic", players, seed=7)
    rng = np.random.default_rng(7)
    for _ in range(40):
        random_step(duel, rng)
    state = duel.get_state()
    kept = copy.deepcopy(state)
    assert all(isinstance(part, np.ndarray) for part in state.values())

    def trace(games: Duel) -> list[bytes]:
        dice, seen = np.random.default_rng(8), []
        for _ in range(120):
            random_step(games, dice)
            seen.append(games.games.state.tobytes() + games.seats.tobytes())
            seen.append(games.observe().tobytes() + games.opponent_of.tobytes())
        return seen

    first = trace(duel)
    for name, part in state.items():  # it was no view of the duel's memory
        assert part.tobytes() == kept[name].tobytes()
    duel.set_state(state)
    assert trace(duel) == first
    other = Duel(12, "classic", players, seed=999)
    other.set_state(pickle.loads(pickle.dumps(state)))
    assert trace(other) == first
    for part in state.values():
        part.view(np.uint8)[...] = 1
    other.set_state(kept)
    assert trace(other) == first


def test_a_state_that_does_not_fit_is_refused() -> None:
    duel = Duel(3, "classic", [First()], seed=0)
    good = duel.get_state()
    before = pickle.dumps(duel)
    bad: list[dict[str, Any]] = [
        Duel(4, "classic", [First()], seed=0).get_state(),
        good | {"seats": good["seats"].astype(np.int64)},
        good | {"opponent_of": np.array([0, 1, 0])},
        good | {"opponent_of": np.array([0, -1, 0])},
        good | {"games": good["games"][:2]},
    ]
    for state in bad:
        with pytest.raises(ValueError, match=r"games|seats|opponent_of"):
            duel.set_state(state)
    with pytest.raises((KeyError, ValueError), match=r"seats|opponent_of"):
        duel.set_state({"games": good["games"]})
    assert pickle.dumps(duel) == before


def test_a_duel_gives_no_reward_before_the_end_and_deals_nothing_by_itself() -> None:
    duel = Duel(50, "exchange", [Even()], seed=9)
    rng = np.random.default_rng(9)
    finished = np.zeros(50, np.bool_)
    total = np.zeros(50)
    while not finished.all():
        actions = [rng.choice(np.flatnonzero(row)) if row.any() else 0 for row in duel.legal]
        before = duel.games.state.copy()
        rewards, done = duel.step(np.array(actions))
        assert rewards.dtype == np.float32
        assert done.dtype == np.bool_
        assert not rewards[~done].any()
        assert (done >= finished).all()
        assert (duel.games.state[finished] == before[finished]).all()
        total += np.where(finished, 0, rewards)
        finished = done.copy()
    sides = duel.games.returns[np.arange(50), duel.seats]
    assert (total == sides).all()
    assert {-1.0, 1.0} <= set(total.tolist())


def test_a_finished_game_pays_its_learner_once() -> None:
    duel = Duel(20, "exchange", [Even()], seed=10)
    paid = np.zeros(20)
    for _ in range(200):
        rewards, done = duel.step(duel.legal.argmax(axis=1))
        paid += rewards
    assert done.all()
    assert (paid == duel.games.returns[np.arange(20), duel.seats]).all()


def test_an_illegal_action_of_the_learner_moves_no_game_of_a_duel() -> None:
    duel = Duel(3, "classic", [Even()], seed=0)
    before = pickle.dumps(duel)
    actions = duel.legal.argmax(axis=1)
    actions[2] = 54
    with pytest.raises(IllegalActionError, match="row 2: action 54"):
        duel.step(actions)
    assert pickle.dumps(duel) == before


class Cheat:
    """An opponent that answers nonsense."""

    name = "cheat"

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.answer = answer

    def act(self, views: Any) -> Any:
        return self.answer(views)


@pytest.mark.parametrize(
    "answer",
    [
        lambda views: np.full(len(views), 54),
        lambda views: np.full(len(views), -1),
        lambda views: np.zeros(len(views) + 1, np.int64),
        lambda views: np.full(len(views), 0.5),
        lambda views: None,
    ],
)
def test_an_opponents_illegal_action_is_an_error_and_never_carried_out(
    answer: Callable[[Any], Any],
) -> None:
    with pytest.raises((IllegalActionError, ValueError, TypeError)):
        Duel(20, "classic", [Cheat(answer)], seed=0)


def test_an_opponent_cannot_change_the_games_through_its_views() -> None:
    def vandal(views: Any) -> np.ndarray:
        actions = views.legal.argmax(axis=1)
        for array in (views.records, views.observation, views.legal, views.players):
            array.view(np.uint8)[...] = 1
        return actions

    honest, spoiled = (Duel(20, "classic", [agent], seed=1) for agent in (First(), Cheat(vandal)))
    for _ in range(60):
        assert spoiled.games.state.tobytes() == honest.games.state.tobytes()
        actions = honest.legal.argmax(axis=1)
        for duel in (honest, spoiled):
            _, done = duel.step(actions)
            duel.reset(done)


def test_the_global_generators_are_neither_read_nor_changed_by_the_environments() -> None:
    traces = []
    for seed in (0, 1):
        with global_generators_seeded(seed):
            traces.append(played_in_a_process(5))
    assert_same(traces[0], traces[1], -1)
