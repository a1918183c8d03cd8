"""Self-play PPO on RLlib, on one machine or a cluster: :func:`run`.

The module ``main`` learns. In a part of the games it holds both seats; in the others it meets one
of the modules ``past_0``, ``past_1``, ..., copies of itself from earlier, with the seat drawn for
each game. Games are collected whole, one at a time in each env runner: where RLlib cuts an episode
it may drop a decision of the player who waits (ray-project/ray#44677).

A run's folder:

| path | holds |
|---|---|
| ``config.json`` | the :class:`RllibConfig` |
| ``progress.jsonl`` | one line an iteration |
| ``checkpoints/iteration-<n>/`` | RLlib's checkpoints, each written whole or not at all |
| ``actor.npz`` | the trained actor's weights, layer by layer |
| ``evaluation.json``, ``evaluation.csv`` | its scores against every baseline |

A run with the same seed is not the same run: RLlib names episodes by chance, and env runners answer
in no fixed order.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core import COMPONENT_LEARNER, COMPONENT_RL_MODULE
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from counterweight_env.rules import as_rules
from counterweight_env.view import ViewBatch
from train.evaluate import Evaluation, evaluate, write_text
from train.ray_tasks import connected
from train.rllib_env import CounterweightMultiAgentEnv, MaskedActorCritic

__all__ = [
    "MAIN",
    "ActorPlayer",
    "EnvRunnersLostError",
    "RllibConfig",
    "SelfPlayScores",
    "build_algorithm",
    "module_of",
    "restore",
    "run",
    "take_snapshot",
]

MAIN: Final = "main"
#: Attempts at an iteration before a run gives up on its env runners; each takes 2 to 10 seconds.
PATIENCE: Final = 30
BASELINES: Final = ("random", "greedy", "keeper", "cautious")


@dataclass(frozen=True)
class RllibConfig:
    """One self-play run.

    Args:
        rules: The text of a rule set.
        reward: ``"outcome"`` or ``"margin"``.
        seed: From 0 to 2**32 - 1, for the weights and the deals.
        num_env_runners: Processes that play; 0 plays in the driver's own.
        batch_size: Decisions of both players an iteration, at least.
        minibatch_size: Decisions a gradient step.
        num_epochs: Passes over each batch.
        learning_rate: Adam's.
        ent_coef: Weight of the entropy bonus.
        gamma: Discount a decision.
        gae_lambda: Of generalized advantage estimation.
        clip_range: Of PPO's probability ratio.
        hidden: Widths of the hidden layers, for actor and critic each.
        snapshots: How many past selves are opponents, the last ones taken.
        snapshot_every: Iterations between snapshots.
        self_share: Share of the games in which the learner holds both seats.
        checkpoint_every: Iterations between checkpoints; there is one at the end too.
        keep_checkpoints: The most checkpoints kept.
        eval_deals: Duplicate deals (two games each) against every baseline at the end.

    Raises:
        ValueError: A field is bad; the message names it and its value.
    """

    rules: str = "classic"
    reward: str = "outcome"
    seed: int = 0
    num_env_runners: int = 2
    batch_size: int = 8_192
    minibatch_size: int = 512
    num_epochs: int = 3
    learning_rate: float = 1e-3
    ent_coef: float = 0.01
    gamma: float = 1.0
    gae_lambda: float = 0.9
    clip_range: float = 0.2
    hidden: tuple[int, ...] = (128, 128)
    snapshots: int = 5
    snapshot_every: int = 10
    self_share: float = 0.5
    checkpoint_every: int = 10
    keep_checkpoints: int = 2
    eval_deals: int = 1_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", str(as_rules(self.rules)))
        object.__setattr__(self, "hidden", tuple(self.hidden))
        if self.reward not in ("outcome", "margin"):
            raise ValueError(f'reward must be "outcome" or "margin", got {self.reward!r}')
        least = dict.fromkeys(("seed", "num_env_runners"), 0)
        least |= dict.fromkeys(("batch_size", "minibatch_size", "num_epochs", "eval_deals"), 1)
        least |= dict.fromkeys(("snapshots", "snapshot_every"), 1)
        least |= dict.fromkeys(("checkpoint_every", "keep_checkpoints"), 1)
        for name, value in [(name, getattr(self, name)) for name in least] + [
            ("hidden", width) for width in self.hidden
        ]:
            if type(value) is not int or value < least.get(name, 1):
                raise ValueError(
                    f"{name} must be an int of at least {least.get(name, 1)}, got {value!r}"
                )
        if self.seed >= 2**32:
            raise ValueError(f"seed must be less than 2**32, got {self.seed}")
        for name in ("gamma", "gae_lambda", "clip_range", "self_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, got {getattr(self, name)}")
        for name in ("learning_rate", "ent_coef"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise ValueError(f"{name} must be finite and not negative, got {value}")

    @classmethod
    def from_json(cls, text: str) -> RllibConfig:
        """Reads what :meth:`to_json` writes.

        Raises:
            ValueError: The text is no JSON object of these fields, or a value is bad.
        """
        try:
            return cls(**json.loads(text))
        except TypeError as error:
            raise ValueError(
                f"a configuration must be a JSON object of its fields: {error}"
            ) from error

    def to_json(self) -> str:
        """The configuration as a JSON object, one field a line."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    @property
    def past(self) -> tuple[str, ...]:
        """The names of the modules that hold past selves."""
        return tuple(f"past_{slot}" for slot in range(self.snapshots))


# --- Who plays whom -----------------------------------------------------------------------------


def module_of(
    agent_id: str, episode: Any, *, past: tuple[str, ...], self_share: float, **kwargs: Any
) -> str:
    """The module that holds a seat of a game; it follows from the game's name alone.

    Args:
        agent_id: ``"player_0"`` or ``"player_1"``.
        episode: The game, with a name ``id_``.
        past: The modules of the past selves.
        self_share: Share of the games in which ``main`` holds both seats.
        kwargs: What else RLlib passes.
    """
    draw = zlib.crc32(episode.id_.encode()) / 2**32
    if draw < self_share:
        return MAIN
    pairing = int((draw - self_share) / (1 - self_share) * 2 * len(past))
    slot, seat = divmod(min(pairing, 2 * len(past) - 1), 2)
    return MAIN if agent_id == f"player_{seat}" else past[slot]


class SelfPlayScores(RLlibCallback):
    """Logs ``score_vs_past``: wins and half the draws of ``main`` against its past selves."""

    def on_episode_end(self, *, episode: Any, metrics_logger: Any = None, **kwargs: Any) -> None:
        """Called with every game that is over, where it was played."""
        seats = [agent for agent in episode.agent_ids if episode.module_for(agent) == MAIN]
        if len(seats) == 1:
            payoff = episode.agent_episodes[seats[0]].get_return()
            metrics_logger.log_value(
                "score_vs_past", (1.0 + float(np.sign(payoff))) / 2.0, window=500
            )


def take_snapshot(algorithm: Algorithm, slot: str) -> None:
    """Puts ``main``'s actor as it is now into the module of a past self, everywhere."""
    state = {slot: algorithm.get_module(MAIN).get_state()}
    algorithm.learner_group.set_state({COMPONENT_LEARNER: {COMPONENT_RL_MODULE: state}})
    _tell_env_runners(algorithm, state)


def restore(algorithm: Algorithm, checkpoint: Path) -> None:
    """Takes a checkpoint into an algorithm that has not trained, env runners included."""
    algorithm.restore_from_path(checkpoint)
    state = algorithm.learner_group.get_state(
        components=f"{COMPONENT_LEARNER}/{COMPONENT_RL_MODULE}", inference_only=True
    )
    _tell_env_runners(algorithm, state[COMPONENT_LEARNER][COMPONENT_RL_MODULE])


def _tell_env_runners(algorithm: Algorithm, state: dict[str, Any]) -> None:
    """Gives env runners the weights of some modules.

    RLlib numbers weights by updates of the learner, and an env runner drops those that are no newer
    than what it has. Weights without a number are always taken.
    """
    update = {COMPONENT_RL_MODULE: state}
    algorithm.env_runner.set_state(update)
    algorithm.env_runner_group.foreach_env_runner(
        "set_state", kwargs={"state": update}, local_env_runner=False
    )


def build_algorithm(config: RllibConfig) -> Algorithm:
    """A fresh algorithm in which every past self is ``main`` as it starts. Ray must run."""
    modules = (MAIN, *config.past)
    spec = partial(
        RLModuleSpec, module_class=MaskedActorCritic, model_config={"hidden": list(config.hidden)}
    )
    algorithm = (
        PPOConfig()
        .api_stack(enable_rl_module_and_learner=True, enable_env_runner_and_connector_v2=True)
        .environment(
            CounterweightMultiAgentEnv,
            env_config={"rules": config.rules, "reward": config.reward},
            disable_env_checking=True,  # it would try actions without a look at the mask
        )
        .env_runners(
            num_env_runners=config.num_env_runners,
            num_envs_per_env_runner=1,  # with more, a round of whole games prefers short ones
            batch_mode="complete_episodes",
        )
        .multi_agent(
            policies=set(modules),
            policy_mapping_fn=partial(module_of, past=config.past, self_share=config.self_share),
            policies_to_train=[MAIN],
        )
        .rl_module(
            rl_module_spec=MultiRLModuleSpec(rl_module_specs={name: spec() for name in modules})
        )
        .training(
            train_batch_size_per_learner=config.batch_size,
            minibatch_size=config.minibatch_size,
            num_epochs=config.num_epochs,
            lr=config.learning_rate,
            entropy_coeff=config.ent_coef,
            gamma=config.gamma,
            lambda_=config.gae_lambda,
            clip_param=config.clip_range,
            vf_loss_coeff=0.25,
            use_kl_loss=False,
            grad_clip=0.5,
        )
        .callbacks(SelfPlayScores)
        .debugging(seed=config.seed, log_level="ERROR")
        .fault_tolerance(restart_failed_env_runners=True, env_runner_health_probe_timeout_s=10)
        .build_algo()
    )
    for slot in config.past:
        take_snapshot(algorithm, slot)
    return algorithm


class EnvRunnersLostError(RuntimeError):
    """No env runner plays, and none comes back."""


# --- A run --------------------------------------------------------------------------------------


def run(
    config: RllibConfig,
    out: Path,
    iterations: int,
    resume: bool = False,
    address: str | None = None,
    on_iteration: Callable[[dict[str, Any]], None] | None = None,
) -> Evaluation:
    """Trains, saves and evaluates.

    Args:
        config: What to train.
        out: The run's folder; made if it is not there.
        iterations: How many the run is to have in all, those before it was stopped included.
        resume: Go on from the last checkpoint in the folder.
        address: Of a Ray cluster, or "auto"; None starts Ray on this machine.
        on_iteration: Called with what ``progress.jsonl`` gets.

    Returns:
        The trained player's matches against every baseline, which also stand in the folder.

    Raises:
        FileExistsError: The folder is not empty, and not to be resumed.
        FileNotFoundError: There is no checkpoint to resume.
        ConnectionError: There is no cluster at the address.
        ValueError: The cluster is too small.
        EnvRunnersLostError: No env runner plays any more.
    """
    folder = out.resolve()
    checkpoint = _open_folder(folder, config, resume)
    done, decisions, progress = 0, 0, []
    if checkpoint is not None:
        done = int(checkpoint.name.removeprefix("iteration-"))
        lines = (folder / "progress.jsonl").read_text().splitlines()
        progress = [line for line in lines if json.loads(line)["iteration"] <= done]
        decisions = json.loads(progress[-1])["decisions"]
    with connected(address, config.num_env_runners):
        algorithm = build_algorithm(config)
        try:
            if checkpoint is not None:
                restore(algorithm, checkpoint)
            for iteration in range(done + 1, iterations + 1):
                row = _iterate(algorithm, iteration, decisions)
                decisions = row["decisions"]
                progress.append(json.dumps(row))
                write_text(folder / "progress.jsonl", "\n".join(progress) + "\n")
                if iteration % config.snapshot_every == 0:
                    taken = iteration // config.snapshot_every - 1
                    take_snapshot(algorithm, config.past[taken % config.snapshots])
                if iteration % config.checkpoint_every == 0 or iteration == iterations:
                    _save(algorithm, folder, iteration, config.keep_checkpoints)
                if on_iteration is not None:
                    on_iteration(row)
            player = ActorPlayer(algorithm.get_module(MAIN).get_state())
        finally:
            algorithm.stop()
    player.save(folder / "actor.npz")
    evaluation = evaluate(player, BASELINES, config.rules, config.eval_deals)
    evaluation.save(folder)
    return evaluation


def _open_folder(folder: Path, config: RllibConfig, resume: bool) -> Path | None:
    """Makes the run's folder; or finds the last checkpoint in it, if it is to be resumed."""
    if resume:
        found = _checkpoints(folder)
        if not found:
            raise FileNotFoundError(f"{folder} has no checkpoint to resume")
        write_text(folder / "config.json", config.to_json())
        return found[-1]
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty; resume its run or choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "config.json", config.to_json())
    return None


def _checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    return sorted((folder / "checkpoints").glob("iteration-*"))


def _iterate(algorithm: Algorithm, iteration: int, decisions: int) -> dict[str, Any]:
    """Collects a batch, learns from it, and says how it went.

    While every env runner is lost, RLlib goes on with nothing; that is no iteration.

    Raises:
        EnvRunnersLostError: They stay lost, as they do when the fault is in the game.
    """
    started = time.perf_counter()
    for _ in range(PATIENCE):
        played = algorithm.train().get("env_runners", {})
        if played.get("num_env_steps_sampled_lifetime", 0) > decisions:
            break
    else:
        raise EnvRunnersLostError(f"no env runner has played in {PATIENCE} tries; see Ray's logs")
    group = algorithm.env_runner_group
    return {
        "iteration": iteration,
        "decisions": int(played["num_env_steps_sampled_lifetime"]),
        "games": int(played["num_episodes_lifetime"]),
        "score_vs_past": _number(played.get("score_vs_past")),
        "episode_length": _number(played.get("episode_len_mean")),
        "env_runners": group.num_healthy_remote_workers(),
        "restarts": group.num_remote_worker_restarts(),
        "seconds": round(time.perf_counter() - started, 2),
    }


def _number(value: Any) -> float | None:
    """A metric; None if no game has ended that would count for it."""
    return None if value is None or not math.isfinite(value) else round(float(value), 4)


def _save(algorithm: Algorithm, folder: Path, iteration: int, keep: int) -> None:
    """Writes a checkpoint, under another name first, and drops the oldest."""
    target = folder / "checkpoints" / f"iteration-{iteration:06d}"
    draft = target.with_name("draft")
    shutil.rmtree(draft, ignore_errors=True)
    algorithm.save_to_path(draft)
    shutil.rmtree(target, ignore_errors=True)
    os.replace(draft, target)
    for old in _checkpoints(folder)[:-keep]:
        shutil.rmtree(old)


class ActorPlayer:
    """A trained actor that plays the likeliest action, without Ray or torch.

    Args:
        weights: What the module's ``get_state`` gives; the critic's, if there, are left out.
    """

    name = "trained"

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self._weights = {
            name: np.asarray(array, np.float64)
            for name, array in weights.items()
            if name.startswith("actor.")
        }

    def act(self, views: ViewBatch) -> np.ndarray:
        """Chooses for the mover of every row; (B,) int64."""
        values = views.observation.astype(np.float64)
        layers = sorted({int(name.split(".")[1]) for name in self._weights})
        for layer in layers:
            weight = self._weights[f"actor.{layer}.weight"]
            values = values @ weight.T + self._weights[f"actor.{layer}.bias"]
            if layer != layers[-1]:
                values = np.maximum(values, 0.0)
        return np.where(views.legal, values, -np.inf).argmax(axis=1)

    def save(self, path: Path) -> None:
        """Writes the weights."""
        draft = path.with_name(f".{path.name}")
        np.savez(draft, **self._weights)  # type: ignore[arg-type]
        os.replace(draft, path)
