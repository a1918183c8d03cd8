"""Self-play on RLlib and work over Ray, on a real cluster of two nodes with one processor each."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")

import ray
import torch
from ray.cluster_utils import Cluster
from ray.rllib.core.columns import Columns
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
from ray.rllib.evaluation.postprocessing import Postprocessing

from agents.blocks import BlockStore, Setup, play_block
from agents.league import collect, play_league
from agents.workers import WorkerError
from counterweight_env import Game, IllegalActionError, raw_env
from train import rllib_train
from train.endings import solve_decisions
from train.ray_tasks import connected, run_ray_tasks
from train.rllib_command import add_train_rllib
from train.rllib_env import CounterweightMultiAgentEnv, MaskedActorCritic
from train.rllib_train import (
    MAIN,
    ActorPlayer,
    EnvRunnersLostError,
    RllibConfig,
    build_algorithm,
    module_of,
    restore,
    run,
    take_snapshot,
)
from train.usage import UsageError

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own

SMALL = "exchange(ranks=6,suits=2,hand_size=3)"
VARIANTS = ("classic", "exchange", SMALL)
CONFIG = RllibConfig(
    rules=SMALL,
    batch_size=300,
    minibatch_size=150,
    num_epochs=2,
    hidden=(16,),
    snapshots=2,
    snapshot_every=1,
    checkpoint_every=1,
    eval_deals=5,
)


class Recorder(CounterweightMultiAgentEnv):
    """An environment that keeps every game it deals, and what was done in it."""

    games: ClassVar[list[tuple[Game, list[int]]]] = []

    def reset(self, **options: Any) -> Any:
        answer = super().reset(**options)
        self.games.append((self._env._game.copy(), []))
        return answer

    def step(self, action_dict: dict[str, int]) -> Any:
        self.games[-1][1].extend(int(action) for action in action_dict.values())
        return super().step(action_dict)


def payoffs(game: Game, actions: list[int]) -> tuple[float, ...]:
    """Play a recorded game again without any environment."""
    game = game.copy()
    for action in actions:
        game.step(action)
    assert game.done
    return game.returns


def even(mask: np.ndarray, rng: np.random.Generator) -> int:
    """Draw a legal action."""
    return int(rng.choice(np.flatnonzero(mask)))


# --- The environment ----------------------------------------------------------------------------


@pytest.mark.parametrize("rules", VARIANTS)
def test_only_the_player_on_turn_is_asked_and_both_are_paid(rules: str) -> None:
    env, rng, longest = CounterweightMultiAgentEnv({"rules": rules}), np.random.default_rng(3), 0
    for seed in range(5):
        game = Game(rules, seed=seed)
        observations, _ = env.reset(seed=seed)
        in_a_row, before = 0, None
        while not game.done:
            agent = f"player_{game.to_move}"
            in_a_row = in_a_row + 1 if agent == before else 1
            longest, before = max(longest, in_a_row), agent
            assert list(observations) == [agent]
            seen = observations[agent]
            assert env.observation_spaces[agent].contains(seen)
            np.testing.assert_array_equal(seen["action_mask"], game.legal_mask())
            np.testing.assert_array_equal(seen["observation"], game.observe(game.to_move))
            action = even(seen["action_mask"], rng)
            game.step(action)
            observations, rewards, ended, cut, _ = env.step({agent: action})
            assert ended["__all__"] == game.done
            assert not any(cut.values())
            assert set(rewards) == set(observations)
        assert rewards == {"player_0": game.returns[0], "player_1": game.returns[1]}
        assert set(observations) == {"player_0", "player_1"}
    assert longest > 1


def test_the_margin_is_paid_if_asked_for() -> None:
    env, rng = (
        CounterweightMultiAgentEnv({"rules": SMALL, "reward": "margin"}),
        np.random.default_rng(3),
    )
    game = Game(SMALL, seed=4)
    observations, _ = env.reset(seed=4)
    while not game.done:
        ((agent, seen),) = observations.items()
        action = even(seen["action_mask"], rng)
        game.step(action)
        observations, rewards, *_ = env.step({agent: action})
    assert tuple(rewards.values()) == pytest.approx(game.margin)


def test_an_illegal_action_is_an_error_and_changes_nothing() -> None:
    env = CounterweightMultiAgentEnv({"rules": "classic"})
    observations, _ = env.reset(seed=1)
    ((agent, seen),) = observations.items()
    illegal = int(np.flatnonzero(seen["action_mask"] == 0)[0])
    with pytest.raises(IllegalActionError):
        env.step({agent: illegal})
    np.testing.assert_array_equal(env._env.observe(agent)["action_mask"], seen["action_mask"])


@pytest.mark.parametrize("agents", [(), ("other",), ("player_0", "player_1")])
def test_nobody_else_may_act(agents: tuple[str, ...]) -> None:
    env = CounterweightMultiAgentEnv({"rules": "classic"})
    observations, _ = env.reset(seed=1)
    ((agent, seen),) = observations.items()
    with pytest.raises(ValueError, match=f"only {agent} may act"):
        env.step(dict.fromkeys(agents, even(seen["action_mask"], np.random.default_rng(1))))


def test_a_bad_configuration_is_refused() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        CounterweightMultiAgentEnv({"rules": "nonsense"})
    with pytest.raises(TypeError, match="rulez"):
        CounterweightMultiAgentEnv({"rulez": "classic"})


def test_rllibs_own_wrapper_plays_whole_games_too() -> None:
    env, rng = PettingZooEnv(raw_env(rules=SMALL)), np.random.default_rng(5)
    for seed in range(5):
        game = Game(SMALL, seed=seed)
        observations, _ = env.reset(seed=seed)
        while not game.done:
            ((agent, seen),) = observations.items()
            action = even(seen["action_mask"], rng)
            game.step(action)
            observations, rewards, ended, *_ = env.step({agent: action})
        assert ended["__all__"]
        assert rewards == {"player_0": game.returns[0], "player_1": game.returns[1]}


# --- The network --------------------------------------------------------------------------------


def make_module(inference_only: bool = False) -> MaskedActorCritic:
    env = CounterweightMultiAgentEnv({"rules": SMALL})
    torch.manual_seed(2)
    return MaskedActorCritic(
        observation_space=env.observation_spaces["player_0"],
        action_space=env.action_spaces["player_0"],
        model_config={"hidden": [16]},
        inference_only=inference_only,
    )


def make_batch(module: MaskedActorCritic, rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    masks = rng.random((rows, module.action_space.n)) < 0.3
    masks[np.arange(rows), rng.integers(module.action_space.n, size=rows)] = True
    seen = rng.random((rows, module.observation_space["observation"].shape[0])) < 0.3
    return {
        Columns.OBS: {
            "observation": torch.as_tensor(seen.astype(np.int8)),
            "action_mask": torch.as_tensor(masks.astype(np.int8)),
        }
    }


@pytest.mark.parametrize("phase", ["forward_inference", "forward_exploration", "forward_train"])
def test_an_illegal_action_has_no_chance_whatever_the_network(phase: str) -> None:
    module = make_module()
    with torch.no_grad():
        for weights in module.parameters():
            weights.mul_(100.0)
    batch = make_batch(module, 50)
    logits = getattr(module, phase)(batch)[Columns.ACTION_DIST_INPUTS]
    legal = batch[Columns.OBS]["action_mask"].bool()
    plain = module.actor(batch[Columns.OBS]["observation"].float())
    assert torch.equal(logits[legal], plain[legal])
    chances = torch.softmax(logits.detach(), dim=1)
    assert (chances[~legal] == 0).all()
    policy = module.get_exploration_action_dist_cls().from_logits(logits.detach())
    for _ in range(50):
        assert legal.gather(1, policy.sample().long().unsqueeze(1)).all()
    assert policy.entropy().isfinite().all()
    assert policy.kl(policy).isfinite().all()


def test_where_games_are_played_there_is_no_critic() -> None:
    module, batch = make_module(), make_batch(make_module(), 4)
    assert module.compute_values(batch).shape == (4,)
    assert not hasattr(make_module(inference_only=True), "critic")
    assert any(name.startswith("critic.") for name in module.get_state())
    assert not any(name.startswith("critic.") for name in module.get_state(inference_only=True))


def test_the_saved_actor_plays_what_the_network_plays(tmp_path: Path) -> None:
    module = make_module()
    player = ActorPlayer(module.get_state())
    player.save(tmp_path / "actor.npz")
    with np.load(tmp_path / "actor.npz") as saved:
        loaded = ActorPlayer(dict(saved))
    batch = make_batch(module, 50)
    seen = batch[Columns.OBS]
    views: Any = SimpleNamespace(
        observation=seen["observation"].numpy(), legal=seen["action_mask"].bool().numpy()
    )
    expected = module.forward_inference(batch)[Columns.ACTION_DIST_INPUTS].argmax(dim=1).numpy()
    np.testing.assert_array_equal(player.act(views), expected)
    np.testing.assert_array_equal(loaded.act(views), expected)


# --- Who plays whom -----------------------------------------------------------------------------


def test_seats_and_past_selves_are_shared_out_evenly() -> None:
    past = ("past_0", "past_1", "past_2")
    pairs: Counter[tuple[str, str]] = Counter()
    games = 40_000
    for number in range(games):
        episode = SimpleNamespace(id_=f"{number:032x}")
        first, second = (
            module_of(agent, episode, past=past, self_share=0.4)
            for agent in ("player_0", "player_1")
        )
        pairs[first, second] += 1
    assert pairs.pop((MAIN, MAIN)) / games == pytest.approx(0.4, abs=0.02)
    assert set(pairs) == {pair for slot in past for pair in ((MAIN, slot), (slot, MAIN))}
    for count in pairs.values():
        assert count / games == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(("share", "self_play"), [(0.0, False), (1.0, True)])
def test_the_share_of_games_against_itself_may_be_none_or_all(
    share: float, self_play: bool
) -> None:
    for number in range(1_000):
        episode = SimpleNamespace(id_=f"{number:032x}")
        seats = [
            module_of(agent, episode, past=("past_0",), self_share=share)
            for agent in ("player_0", "player_1")
        ]
        assert (seats == [MAIN, MAIN]) == self_play
        assert MAIN in seats


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rules", "nonsense"),
        ("reward", "money"),
        ("batch_size", 0),
        ("num_env_runners", -1),
        ("snapshots", 0),
        ("hidden", (0,)),
        ("seed", 2**32),
        ("gamma", 1.5),
        ("learning_rate", float("inf")),
    ],
)
def test_a_bad_field_is_named(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=str(value) if field == "rules" else field):
        RllibConfig(**{field: value})


def test_a_configuration_survives_json() -> None:
    assert RllibConfig.from_json(CONFIG.to_json()) == CONFIG
    with pytest.raises(ValueError, match="colour"):
        RllibConfig.from_json('{"colour": 1}')


# --- The cluster --------------------------------------------------------------------------------


NODE = {"num_cpus": 1, "object_store_memory": 10**8}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two nodes with one processor each, to which this process is connected."""
    made = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    made.add_node(**NODE)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()


def weights_of(module: Any) -> dict[str, dict[str, np.ndarray]]:
    """The actors of all modules."""
    return {
        name: {key: value.copy() for key, value in state.items() if key.startswith("actor.")}
        for name, state in module.get_state().items()
    }


def assert_same_weights(first: Any, second: Any) -> None:
    assert set(first) == set(second)
    for name, state in first.items():
        assert set(state) == set(second[name])
        for key, value in state.items():
            np.testing.assert_array_equal(value, second[name][key], err_msg=f"{name} {key}")


def are_equal(first: Any, second: Any) -> bool:
    return all(np.array_equal(value, second[key]) for key, value in first.items())


def everywhere(algorithm: Any) -> list[Any]:
    """The weights in the learner, and in every env runner."""
    learner = algorithm.learner_group._learner
    played = algorithm.env_runner_group.foreach_env_runner(
        lambda runner: {
            name: {key: value.copy() for key, value in state.items() if key.startswith("actor.")}
            for name, state in runner.module.get_state().items()
        }
    )
    return [weights_of(learner.module), *played]


def test_every_payoff_reaches_the_policy_that_earned_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rllib_train, "CounterweightMultiAgentEnv", Recorder)
    monkeypatch.setattr(Recorder, "games", [])
    algorithm = build_algorithm(replace(CONFIG, num_env_runners=0, gae_lambda=1.0))
    try:
        algorithm.train()
        Recorder.games.clear()
        episodes = [
            episode for _ in range(40) for episode in algorithm.env_runner.sample(num_episodes=1)
        ]
        # One game is dealt after the last.
        games = [payoffs(*game) for game in Recorder.games if game[1]]
        assert len(episodes) == len(games) == 40
        main_seats: Counter[int] = Counter()
        expected: list[float] = []
        for episode, paid in zip(episodes, games, strict=True):
            for player, agent in enumerate(("player_0", "player_1")):
                if agent not in episode.agent_episodes:  # it never came on turn
                    continue
                played = episode.agent_episodes[agent]
                assert played.get_return() == paid[player]
                assert played.is_terminated
                if episode.module_for(agent) == MAIN:
                    main_seats[player] += 1
                    expected += [paid[player]] * len(played)
        assert min(main_seats[0], main_seats[1]) > 0
        assert len(set(expected)) > 1
        # With a discount and a lambda of 1, what each decision is worth is the game's payoff.
        learner = algorithm.learner_group._learner
        batch = learner._learner_connector(
            rl_module=learner.module, batch={}, episodes=episodes, shared_data={}
        )[MAIN]
        valid = batch.get(Columns.LOSS_MASK, torch.ones(len(batch[Columns.ACTIONS])).bool())
        targets = batch[Postprocessing.VALUE_TARGETS][valid]
        assert sorted(targets.tolist()) == pytest.approx(sorted(expected), abs=1e-5)
        chosen = batch[Columns.ACTIONS].long().unsqueeze(1)
        assert batch[Columns.OBS]["action_mask"].gather(1, chosen)[valid].all()
    finally:
        algorithm.stop()


@pytest.fixture(scope="class")
def algorithm(cluster: Cluster) -> Iterator[Any]:
    made = build_algorithm(CONFIG)
    yield made
    made.stop()


class TestOnTwoNodes:
    """One algorithm with an env runner on each node."""

    def test_env_runners_are_on_both_nodes_and_none_fails(self, algorithm: Any) -> None:
        nodes = algorithm.env_runner_group.foreach_env_runner(
            lambda runner: ray.get_runtime_context().get_node_id(), local_env_runner=False
        )
        assert len(set(nodes)) == 2
        first = everywhere(algorithm)
        for name in CONFIG.past:
            assert are_equal(first[0][name], first[0][MAIN])
        for _ in range(2):
            result = algorithm.train()
            assert result["env_runners"]["num_env_steps_sampled"] >= CONFIG.batch_size
        # An illegal action would have cost an env runner.
        assert algorithm.env_runner_group.num_remote_worker_restarts() == 0
        assert algorithm.env_runner_group.num_healthy_remote_workers() == 2
        now = everywhere(algorithm)
        for weights in now[1:]:
            assert_same_weights(now[0], weights)
        assert not are_equal(now[0][MAIN], first[0][MAIN])
        for name in CONFIG.past:  # they do not learn
            assert are_equal(now[0][name], first[0][name])

    def test_a_snapshot_reaches_its_module_on_every_node(self, algorithm: Any) -> None:
        before = everywhere(algorithm)[0]
        take_snapshot(algorithm, "past_1")
        for weights in everywhere(algorithm):
            assert are_equal(weights["past_1"], before[MAIN])
            assert are_equal(weights["past_0"], before["past_0"])
            assert are_equal(weights[MAIN], before[MAIN])

    def test_a_killed_env_runner_is_replaced_and_knows_all_modules(self, algorithm: Any) -> None:
        group = algorithm.env_runner_group
        pids = group.foreach_env_runner(lambda runner: os.getpid(), local_env_runner=False)
        os.kill(pids[0], signal.SIGKILL)
        deadline = time.monotonic() + 300
        while group.num_remote_worker_restarts() < 1 or group.num_healthy_remote_workers() < 2:
            assert time.monotonic() < deadline
            before = algorithm.training_iteration
            algorithm.train()
            assert algorithm.training_iteration == before + 1
        now = group.foreach_env_runner(lambda runner: os.getpid(), local_env_runner=False)
        assert len(now) == 2
        assert pids[0] not in now
        weights = everywhere(algorithm)
        assert not are_equal(weights[0]["past_0"], weights[0]["past_1"])
        for other in weights[1:]:
            assert_same_weights(weights[0], other)


def test_a_checkpoint_brings_all_modules_back_on_every_node(
    cluster: Cluster, tmp_path: Path
) -> None:
    algorithm = build_algorithm(CONFIG)
    try:
        algorithm.train()
        take_snapshot(algorithm, "past_1")
        saved = everywhere(algorithm)[0]
        algorithm.save_to_path(tmp_path / "checkpoint")
    finally:
        algorithm.stop()
    assert not are_equal(saved["past_0"], saved["past_1"])
    algorithm = build_algorithm(replace(CONFIG, seed=1))
    try:
        assert not are_equal(everywhere(algorithm)[0][MAIN], saved[MAIN])
        restore(algorithm, tmp_path / "checkpoint")
        assert algorithm.training_iteration == 1
        for weights in everywhere(algorithm):
            assert_same_weights(weights, saved)
        algorithm.train()
        now = everywhere(algorithm)
        for weights in now[1:]:
            assert_same_weights(now[0], weights)
    finally:
        algorithm.stop()


# --- Runs and the command -----------------------------------------------------------------------

FRESH_PROCESS = """
import sys
from pathlib import Path
from test_rllib import command
out = Path(sys.argv[2])
arguments = ["--resume", "--out", str(out), "--address", sys.argv[1]]
command(*arguments, "--iterations", "2")  # there is nothing left to do
(out / "actor.npz").rename(out / "restored.npz")
command(*arguments, "--iterations", "3")
"""


def command(*arguments: str) -> None:
    """Run the command in this process."""
    parser = argparse.ArgumentParser()
    add_train_rllib(parser.add_subparsers())
    parsed = parser.parse_args(["train-rllib", *arguments])
    parsed.run(parsed)


def test_a_run_goes_on_in_a_fresh_process(cluster: Cluster, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(replace(CONFIG, num_env_runners=0), out, 2)
    with np.load(out / "actor.npz") as saved:
        trained = dict(saved)
    checkpoints = [path.name for path in sorted((out / "checkpoints").iterdir())]
    assert checkpoints == ["iteration-000001", "iteration-000002"]

    done = subprocess.run(
        [sys.executable, "-c", FRESH_PROCESS, cluster.address, str(out)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
    )
    assert done.returncode == 0, done.stderr
    with np.load(out / "restored.npz") as restored:
        assert set(restored) == set(trained)
        for name, value in trained.items():
            np.testing.assert_array_equal(restored[name], value)
    with np.load(out / "actor.npz") as later:
        assert not are_equal(dict(later), trained)
    assert "iteration 3:" in done.stdout
    assert "iteration 2:" not in done.stdout
    rows = [json.loads(line) for line in (out / "progress.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2, 3]
    for before, row in pairwise([{"decisions": 0}, *rows]):
        assert row["decisions"] >= before["decisions"] + CONFIG.batch_size
    checkpoints = [path.name for path in sorted((out / "checkpoints").iterdir())]
    assert checkpoints == ["iteration-000002", "iteration-000003"]
    matches = json.loads((out / "evaluation.json").read_text())["matches"]
    assert [match["deals"] for match in matches] == [CONFIG.eval_deals] * 4


def test_what_cannot_be_done_is_said_in_a_sentence(cluster: Cluster, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    small = ["--rules", SMALL]
    for arguments, message in [
        (["--rules", "nonsense", "--out", str(tmp_path / "a")], "nonsense"),
        ([*small, "--iterations", "0"], "--iterations must be at least 1, got 0"),
        ([*small, "--resume"], "--resume needs --out DIR"),
        ([*small, "--resume", "--out", str(tmp_path / "none")], "config.json"),
        ([*small, "--out", str(full)], "is not empty"),
        ([*small, "--num-env-runners", "9", "--out", str(tmp_path / "b")], "has 2 processors, 9"),
    ]:
        with pytest.raises(UsageError, match=message):
            command(*arguments)


def lose_a_node(cluster: Cluster) -> None:
    """Kills all processes of the second node, as when its machine is switched off."""
    (worker,) = cluster.worker_nodes
    cluster.remove_node(worker, allow_graceful=False)


class EnoughError(Exception):
    """Ends a run from its callback."""


def test_a_run_outlives_the_loss_of_a_whole_node(cluster: Cluster, tmp_path: Path) -> None:
    """It plays on with the env runner that is left, and has both again once there is a node."""
    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + 300

    def watch(row: dict[str, Any]) -> None:
        rows.append(row)
        runners = [row["env_runners"] for row in rows]
        if len(rows) == 2:
            assert runners == [2, 2]
            lose_a_node(cluster)
        elif runners[-1] == 1 and runners.count(1) == 1:
            cluster.add_node(**NODE)
        elif 1 in runners and runners[-1] == 2:
            raise EnoughError
        assert time.monotonic() < deadline

    try:
        with pytest.raises(EnoughError):
            run(CONFIG, tmp_path, 1_000, on_iteration=watch)
    finally:
        if not cluster.worker_nodes:
            cluster.add_node(**NODE)
    assert rows[-1]["restarts"] >= 1
    for before, row in pairwise(rows):
        assert row["decisions"] >= before["decisions"] + CONFIG.batch_size


class Stubborn(CounterweightMultiAgentEnv):
    """An environment in which every action turns out illegal."""

    def step(self, action_dict: dict[str, int]) -> Any:
        raise IllegalActionError("illegal")


def test_an_illegal_action_ends_a_run(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rllib_train, "CounterweightMultiAgentEnv", Stubborn)
    with pytest.raises(RuntimeError) as caught:
        run(replace(CONFIG, num_env_runners=0), tmp_path, 1)
    assert isinstance(caught.value.__cause__, IllegalActionError)
    assert not (tmp_path / "actor.npz").exists()


def test_an_iteration_without_a_game_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RLlib goes on with nothing while every env runner is lost."""
    nothing: dict[str, Any] = {}
    something = {"env_runners": {"num_env_steps_sampled_lifetime": 70, "num_episodes_lifetime": 9}}
    results = [nothing, nothing, something, nothing, nothing, nothing]
    group = SimpleNamespace(
        num_healthy_remote_workers=lambda: 1, num_remote_worker_restarts=lambda: 3
    )
    algorithm: Any = SimpleNamespace(
        train=lambda: results.pop(0), env_runner_group=group, stop=lambda: None
    )
    monkeypatch.setattr(rllib_train, "build_algorithm", lambda config: algorithm)
    monkeypatch.setattr(rllib_train, "connected", lambda address, cpus: nullcontext())
    monkeypatch.setattr(rllib_train, "PATIENCE", 3)
    rows: list[dict[str, Any]] = []
    with pytest.raises(EnvRunnersLostError, match="3 tries"):
        run(
            replace(CONFIG, checkpoint_every=9, snapshot_every=9),
            tmp_path,
            2,
            on_iteration=rows.append,
        )
    assert not results
    assert [(row["iteration"], row["decisions"], row["restarts"]) for row in rows] == [(1, 70, 3)]


# --- The arena over Ray -------------------------------------------------------------------------


def test_a_round_robin_over_ray_has_the_same_results(cluster: Cluster, tmp_path: Path) -> None:
    setup = Setup(("random", "greedy", "keeper"), (SMALL, "exchange"), deals=7, block_deals=3)
    local, spread = BlockStore(tmp_path / "a", setup), BlockStore(tmp_path / "b", setup)
    play_league(local, setup, record=True)
    with connected(least_cpus=2) as processors:
        assert processors == 2
        play_league(spread, setup, processors, record=True, run=run_ray_tasks)
    compared = 0
    for path in sorted(local.folder.rglob("*")):
        if path.is_file() and not path.name.endswith(".time.json"):
            other = spread.folder / path.relative_to(local.folder)
            assert path.read_bytes() == other.read_bytes(), path
            compared += 1
    assert compared == 1 + 2 * 2 * 3 * 3
    assert collect(spread, setup).keys() == {SMALL, "exchange"}


def test_an_error_on_another_node_comes_out_as_it_is(cluster: Cluster) -> None:
    setup = Setup(("nobody", "random"), (SMALL,), deals=1)
    with pytest.raises(ValueError, match="nobody"):
        list(run_ray_tasks(play_block, setup.tasks(), 2))
    with connected():  # Ray is still there
        assert ray.is_initialized()


def test_a_task_whose_process_dies_is_done_again(cluster: Cluster, tmp_path: Path) -> None:
    def die_once(number: int) -> int:
        mark = tmp_path / str(number)
        if number == 2 and not mark.exists():
            mark.write_text("was here")
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number

    assert sorted(run_ray_tasks(die_once, range(5), 2)) == [0, 1, 4, 9, 16]
    assert (tmp_path / "2").exists()


def is_running(pid: int) -> bool:
    """Whether a process is there and not only waits to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_task_whose_node_is_lost_is_done_again(cluster: Cluster, tmp_path: Path) -> None:
    def note(number: int) -> int:
        (tmp_path / f"{number} {os.getpid()}").touch()
        while not (tmp_path / "lost").exists():
            time.sleep(0.05)
        return number * number

    def lose() -> None:
        deadline = time.monotonic() + 300
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        pids = [int(path.name.split()[1]) for path in tmp_path.iterdir()]
        lose_a_node(cluster)
        # A process of the lost node may live a little longer, and must not get to its answer.
        while all(is_running(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.05)
        (tmp_path / "lost").touch()

    thread = Thread(target=lose)
    thread.start()
    try:
        assert sorted(run_ray_tasks(note, range(4), 2)) == [0, 1, 4, 9]
    finally:
        thread.join()
        cluster.add_node(**NODE)
    starts = Counter(path.name.split()[0] for path in tmp_path.glob("* *"))
    assert sorted(starts.values()) == [1, 1, 1, 2]


def test_a_task_that_always_dies_is_an_error(cluster: Cluster) -> None:
    def die(number: int) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pytest.raises(WorkerError, match="lost"):
        list(run_ray_tasks(die, range(1), 2))


def test_tasks_are_taken_no_sooner_than_they_are_needed(cluster: Cluster) -> None:
    taken: list[int] = []

    def endless() -> Iterator[int]:
        while True:
            taken.append(len(taken))
            yield taken[-1]

    def same(number: int) -> int:
        return number

    results = run_ray_tasks(same, endless(), 2)
    found = [next(results) for _ in range(4)]
    results.close()
    assert len(taken) <= 6
    assert set(found) <= set(taken)


def test_positions_solved_on_the_cluster_are_those_solved_here(cluster: Cluster) -> None:
    here = solve_decisions(SMALL, 200, seed=3)
    there = solve_decisions(SMALL, 200, seed=3, workers=2, run=run_ray_tasks)
    assert len(here) > 50
    for name in ("rows", "right", "counts", "values"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name))
