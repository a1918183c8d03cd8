"""Self-play training with sb3-contrib's MaskablePPO, from configuration to the final table.

A run's folder:

| path | holds |
|---|---|
| ``config.json`` | the :class:`~train.config.TrainConfig` |
| ``tensorboard/`` | the metrics below |
| ``checkpoints/`` | see :mod:`train.checkpoint` |
| ``model.zip`` | the trained model, for ``MaskablePPO.load`` |
| ``evaluation.json``, ``evaluation.csv`` | its scores against every baseline |

The metrics, all over the last rollout unless said; games that ended in it count:

| metric | meaning |
|---|---|
| ``self_play/score_vs_self`` | wins and half the draws against the newest snapshot, 0 to 1 |
| ``self_play/score_vs_past`` | the same against older snapshots |
| ``self_play/score_vs_<baseline>`` | the same against a baseline |
| ``self_play/games`` | games that ended |
| ``self_play/draws`` | the part of them that was drawn |
| ``self_play/unsolved`` | turns that ``solve_endings``, if on, could not solve |
| ``self_play/snapshots`` | snapshots in the pool |
| ``self_play/snapshot_age`` | steps since the newest of them was taken |
| ``rollout/ep_rew_mean`` | SB3's: reward a game, over the last 100 games |
| ``rollout/ep_len_mean`` | SB3's: the learner's decisions a game, over the last 100 games |
| ``train/*``, ``time/*`` | SB3's own: losses, entropy, KL divergence, clipping, speed |

Randomness: the games draw from streams of their own. SB3 seeds the global generators of ``random``,
NumPy and torch when a model is made, and draws from the last two while it learns; a run leaves them
in another state than it found them. It also sets the number of torch threads of the process.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.utils import LinearSchedule

from train.checkpoint import CheckpointError, latest_checkpoint, restore, save_checkpoint
from train.config import TrainConfig
from train.evaluate import Evaluation, evaluate, write_text
from train.opponents import OpponentPool, PolicySnapshot
from train.vec_env import SelfPlayVecEnv

__all__ = ["run"]


def run(
    config: TrainConfig,
    out_dir: str | os.PathLike[str],
    resume: bool = False,
    progress: bool = True,
) -> Evaluation:
    """Trains, saves and evaluates.

    A run that was killed goes on from its last checkpoint with ``resume`` and ends with the same
    weights, bit for bit, as if it had not been.

    Args:
        config: What to train.
        out_dir: The run's folder; made if it is not there.
        resume: Go on with the run that is in the folder, or begin it if there is none yet.
        progress: Show SB3's progress bar.

    Returns:
        The trained player's matches against every baseline, which also stand in the folder.

    Raises:
        FileExistsError: The folder is not empty, and not to be resumed.
        CheckpointError: The folder holds a run of another configuration, or no usable checkpoint.
    """
    out = Path(out_dir)
    _open_folder(out, config, resume)
    torch.set_num_threads(config.threads)
    pool = OpponentPool(
        config.baselines,
        config.pool_size,
        config.self_share,
        config.past_share,
        config.baseline_share,
    )
    env = SelfPlayVecEnv(
        config.num_envs,
        config.rules,
        pool.agents,
        reward=config.reward,
        seed=config.seed,
        solve_endings=config.solve_endings,
    )
    checkpoint = latest_checkpoint(out, config)
    if checkpoint is None:
        model = _new_model(config, env)
        pool.add(model.policy, 0)
        pool.install(env)
    else:
        model = restore(checkpoint, env, pool)
    model.set_logger(configure(str(out / "tensorboard"), ["tensorboard"]))
    if model.num_timesteps < config.total_steps:
        model.learn(
            config.total_steps - model.num_timesteps,
            callback=SelfPlayCallback(config, out, env, pool),
            reset_num_timesteps=False,
            progress_bar=progress,
        )
        checkpoint = save_checkpoint(out, model, env, pool, config)
    model.logger.close()
    assert checkpoint is not None
    shutil.copyfile(checkpoint / "model.zip", out / ".model.draft")
    os.replace(out / ".model.draft", out / "model.zip")

    player = PolicySnapshot(model.policy, model.num_timesteps, "trained", deterministic=True)
    evaluation = evaluate(player, pool.baselines, config.rules, config.eval_deals)
    evaluation.save(out)
    return evaluation


def _open_folder(out: Path, config: TrainConfig, resume: bool) -> None:
    """Makes the run's folder, or finds the run that is to be resumed there.

    Raises:
        FileExistsError: The folder is not empty, and not to be resumed.
        CheckpointError: It holds no run, or one of another configuration.
    """
    path = out / "config.json"
    drafts = ".*.draft"  # of files that a killed run did not finish
    if out.exists() and any(not entry.match(drafts) for entry in out.iterdir()):
        if not resume:
            raise FileExistsError(f"{out} is not empty; resume its run or choose another folder")
        if not path.is_file():
            raise CheckpointError(f"{out} holds files, but no config.json: it is no run to resume")
        differences = config.differences(TrainConfig.from_json(path.read_text()))
        if differences:
            raise CheckpointError(
                f"{out} holds a run of another configuration (asked for, not there): "
                + "; ".join(differences)
            )
    else:
        out.mkdir(parents=True, exist_ok=True)
        write_text(path, config.to_json())


def _new_model(config: TrainConfig, env: SelfPlayVecEnv) -> MaskablePPO:
    model = MaskablePPO(
        "MlpPolicy",
        env,
        learning_rate=LinearSchedule(config.learning_rate, config.final_learning_rate, 1.0),
        n_steps=config.n_steps,
        batch_size=config.batch_size,
        n_epochs=config.n_epochs,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        ent_coef=config.ent_coef,
        policy_kwargs={
            "net_arch": list(config.net_arch),
            "activation_fn": torch.nn.ReLU,
        },
        seed=config.seed,
        device="cpu",
    )
    # SB3 seeds game i with seed + i, which would give runs of neighbouring seeds nearly all deals
    # in common.
    env.seed(int(np.random.SeedSequence(config.seed).generate_state(1)[0]))
    return model


class SelfPlayCallback(BaseCallback):
    """Takes snapshots and checkpoints between rollouts, and logs the scores by opponent.

    Args:
        config: The run's.
        out: The run's folder.
        env: The run's environment, as the model has it.
        pool: The run's opponents, installed in the environment.
    """

    def __init__(
        self, config: TrainConfig, out: Path, env: SelfPlayVecEnv, pool: OpponentPool
    ) -> None:
        super().__init__()
        self._config = config
        self._out = out
        self._env = env
        self._pool = pool
        self._scores: dict[str, list[float]] = {}

    def _on_training_start(self) -> None:
        self._last_checkpoint = self.model.num_timesteps
        self._unsolved_before = self._env.unsolved

    def _on_rollout_start(self) -> None:
        # Before the first rollout after a checkpoint both steps are those of the checkpoint itself,
        # so a resumed run repeats nothing.
        step = self.model.num_timesteps
        if step - self._pool.newest_step >= self._config.snapshot_every:
            self._pool.add(self.model.policy, step)  # type: ignore[arg-type]
            self._pool.install(self._env)
        if step - self._last_checkpoint >= self._config.checkpoint_every:
            save_checkpoint(self._out, self.model, self._env, self._pool, self._config)  # type: ignore[arg-type]
            self._last_checkpoint = step

    def _on_step(self) -> bool:
        infos: list[dict[str, Any]] = self.locals["infos"]
        for row in np.flatnonzero(self.locals["dones"]).tolist():
            kind = self._pool.kind(infos[row]["opponent"])
            score = (1.0 + float(np.sign(infos[row]["episode"]["r"]))) / 2.0
            self._scores.setdefault(kind, []).append(score)
        return True

    def _on_rollout_end(self) -> None:
        games = [score for scores in self._scores.values() for score in scores]
        for kind, scores in self._scores.items():
            self.logger.record(f"self_play/score_vs_{kind}", float(np.mean(scores)))
        if games:
            self.logger.record("self_play/draws", games.count(0.5) / len(games))
        self.logger.record("self_play/games", len(games))
        if self._config.solve_endings:
            self.logger.record("self_play/unsolved", self._env.unsolved - self._unsolved_before)
            self._unsolved_before = self._env.unsolved
        self.logger.record("self_play/snapshots", len(self._pool.snapshots))
        self.logger.record(
            "self_play/snapshot_age", self.model.num_timesteps - self._pool.newest_step
        )
        self._scores.clear()
