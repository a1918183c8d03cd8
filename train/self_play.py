"""Self-play training with sb3-contrib's MaskablePPO, from configuration to the final table.

A run's folder:

| path | holds |
|---|---|
| ``config.json`` | the :class:`~train.config.TrainConfig` |
| ``tensorboard/`` | the metrics below |
| ``checkpoints/`` | see :mod:`train.checkpoint` |
| ``model.zip`` | the model at the end, for ``MaskablePPO.load`` |
| ``network.npz`` | the best averaged network, for :class:`agents.policy.Policy` |
| ``progress.csv`` | see :mod:`train.selection` |
| ``evaluation.json``, ``evaluation.csv`` | its scores against every baseline |

The metrics, all over the last rollout unless said; games that ended in it count:

| metric | meaning |
|---|---|
| ``self_play/score_vs_self`` | wins and half the draws against the newest snapshot, 0 to 1 |
| ``self_play/score_vs_past`` | the same against older snapshots |
| ``self_play/score_vs_<baseline>`` | the same against a baseline |
| ``self_play/games`` | games that ended |
| ``self_play/draws`` | the part of them that was drawn |
| ``self_play/unsolved`` | turns that ``endings="exact"``, if on, could not solve |
| ``self_play/snapshots`` | snapshots in the pool |
| ``self_play/snapshot_age`` | steps since the newest of them was taken |
| ``self_play/ent_coef`` | weight of the entropy bonus |
| ``select/score_vs_<baseline>`` | the averaged network's score on fixed deals |
| ``select/blunders_vs_<baseline>`` | its part of decisions after exhaustion that gave away value |
| ``endings/decisions`` | solved decisions that the scorer of endings was fitted to |
| ``endings/loss`` | the loss of the last pass over them |
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
from stable_baselines3.common.logger import Logger, configure
from stable_baselines3.common.utils import LinearSchedule

from agents.exact import Exact
from agents.policy import Policy
from counterweight_env.plugins import Agent
from train.both_seats import BOTH_SEATS, BothSeatsBuffer, BothSeatsVecEnv
from train.checkpoint import CheckpointError, latest_checkpoint, restore, save_checkpoint
from train.config import TrainConfig
from train.endings import fit_endings, solve_decisions
from train.evaluate import Evaluation, evaluate, write_text
from train.network import MovePolicy
from train.opponents import OpponentPool, PolicySnapshot
from train.search_data import fit_search, search_decisions
from train.selection import Selection
from train.vec_env import SelfPlayVecEnv

__all__ = ["check_folder", "run"]


def run(
    config: TrainConfig,
    out_dir: str | os.PathLike[str],
    resume: bool = False,
    progress: bool = True,
    workers: int = 1,
) -> Evaluation:
    """Trains, saves and evaluates.

    A run that was killed goes on from its last checkpoint with ``resume`` and ends with the same
    weights, bit for bit, as if it had not been.

    Args:
        config: What to train.
        out_dir: The run's folder; made if it is not there.
        resume: Go on with the run that is in the folder, or begin it if there is none yet.
        progress: Show SB3's progress bar.
        workers: Processes that solve endings before the first decision. The result does not depend
            on it.

    Returns:
        The trained player's matches against every baseline, which also stand in the folder.

    Raises:
        FileExistsError: The folder is not empty, and not to be resumed.
        CheckpointError: The folder holds a run of another configuration, or no usable checkpoint.
        ValueError: A baseline is no agent.
    """
    out = Path(out_dir)
    check_folder(out, config, resume)
    torch.set_num_threads(config.threads)
    pool = _new_pool(config)  # refuses what is no agent, before anything is written
    if not (out / "config.json").is_file():
        out.mkdir(parents=True, exist_ok=True)
        write_text(out / "config.json", config.to_json())
    env = _new_env(config, pool)
    exact = config.endings == "exact"
    baselines = [Exact(agent) if exact else agent for agent in pool.baselines]
    selection = Selection(config.rules, baselines, config.average_decay, config.select_deals, exact)
    checkpoint = latest_checkpoint(out, config)
    logger = configure(str(out / "tensorboard"), ["tensorboard"])
    if checkpoint is None:
        model = _new_model(config, env)
        if config.network == "moves" and config.ending_games:
            _learn_endings(config, model, logger, workers)
        if config.search_games:
            _learn_from_search(config, model, logger, workers)
        pool.add(model.policy, 0)
        pool.install(env)
    else:
        model = restore(checkpoint, env, pool, selection)
    if config.network == "moves" and config.ending_games and config.endings != "learn":
        # It has been fitted to exact values, and few samples or none of PPO are endings.
        model.policy.move_net.ending.requires_grad_(False)  # type: ignore[union-attr]
    if isinstance(env, BothSeatsVecEnv):
        model.rollout_buffer.env = env  # type: ignore[attr-defined]
        if config.endings == "scorer":
            assert isinstance(model.policy, MovePolicy)
            env.ending_player = Policy.of(model.policy.to_network(), "scorer")
    model.set_logger(logger)
    if model.num_timesteps < config.total_steps:
        callback = SelfPlayCallback(config, out, env, pool, selection)
        model.learn(
            config.total_steps - model.num_timesteps,
            callback=callback,
            reset_num_timesteps=False,
            progress_bar=progress,
        )
        callback.finish()
        checkpoint = save_checkpoint(out, model, env, pool, config, selection)
    model.logger.close()
    assert checkpoint is not None
    shutil.copyfile(checkpoint / "model.zip", out / ".model.draft")
    os.replace(out / ".model.draft", out / "model.zip")

    player: Agent
    if isinstance(model.policy, MovePolicy):
        assert selection.best is not None
        selection.write(out)
        selection.best.save(out / "network.npz")
        player = Policy.of(selection.best, "trained")
    else:
        player = PolicySnapshot(model.policy, model.num_timesteps, "trained", deterministic=True)
    player = Exact(player) if exact else player
    evaluation = evaluate(player, baselines, config.rules, config.eval_deals)
    evaluation.save(out)
    return evaluation


def _new_pool(config: TrainConfig) -> OpponentPool:
    others = config.past_share + config.baseline_share
    return OpponentPool(
        config.baselines,
        config.pool_size,
        # Games against oneself are not the pool's where both seats learn; without others in it, its
        # shares have no meaning, but must not all be 0.
        0.0 if config.both_seats and others else config.self_share,
        config.past_share,
        config.baseline_share,
    )


def _new_env(config: TrainConfig, pool: OpponentPool) -> SelfPlayVecEnv | BothSeatsVecEnv:
    exact = config.endings == "exact"
    options: dict[str, Any] = {
        "reward": config.reward,
        "seed": config.seed,
        "solve_endings": exact,
        "solve_nodes": config.solve_nodes if exact else None,
    }
    if not config.both_seats:
        return SelfPlayVecEnv(config.num_envs, config.rules, pool.agents, **options)
    others = config.past_share + config.baseline_share
    share = others / (others + config.self_share)
    duels = min(round(config.num_envs * share), config.num_envs - 1)
    return BothSeatsVecEnv(config.num_envs, config.rules, duels, pool.agents, **options)


def _learn_endings(config: TrainConfig, model: MaskablePPO, logger: Logger, workers: int) -> None:
    """Fits the scorer of endings to solved decisions."""
    data = solve_decisions(config.rules, config.ending_games, config.seed, workers)
    losses = fit_endings(
        model.policy.move_net,  # type: ignore[arg-type]
        data,
        config.ending_epochs,
        seed=config.seed,
    )
    logger.record("endings/decisions", len(data))
    logger.record("endings/loss", losses[-1])


def _learn_from_search(
    config: TrainConfig, model: MaskablePPO, logger: Logger, workers: int
) -> None:
    """Fits the scorer of the time before exhaustion to what the search made of each move."""
    data = search_decisions(
        config.rules, config.search_games, config.search_worlds, config.seed, workers
    )
    losses = fit_search(
        model.policy.move_net,  # type: ignore[arg-type]
        data,
        config.search_epochs,
        seed=config.seed,
    )
    logger.record("search/decisions", len(data))
    logger.record("search/loss", losses[-1])


def check_folder(out: Path, config: TrainConfig, resume: bool) -> None:
    """Looks whether a run may begin in a folder or go on there.

    Raises:
        FileExistsError: The folder is not empty, and not to be resumed.
        CheckpointError: It holds no run, or one of another configuration.
        OSError: It cannot be read.
    """
    path = out / "config.json"
    drafts = ".*.draft"  # of files that a killed run did not finish
    if not out.exists() or all(entry.match(drafts) for entry in out.iterdir()):
        return
    if not resume:
        raise FileExistsError(f"{out} is not empty; resume its run or choose another folder")
    if not path.is_file():
        raise CheckpointError(f"{out} holds files, but no config.json: it is no run to resume")
    try:
        differences = config.differences(TrainConfig.from_json(path.read_text()))
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from None
    if differences:
        raise CheckpointError(
            f"{out} holds a run of another configuration (asked for, not there): "
            + "; ".join(differences)
        )


def _new_model(config: TrainConfig, env: SelfPlayVecEnv | BothSeatsVecEnv) -> MaskablePPO:
    policy: Any = "MlpPolicy"
    options: dict[str, Any] = {
        "net_arch": list(config.net_arch),
        "activation_fn": torch.nn.ReLU,
    }
    if config.network == "moves":
        policy, options = MovePolicy, {"rules": config.rules, "hidden": config.hidden}
    model = MaskablePPO(
        policy,
        env,
        learning_rate=LinearSchedule(config.learning_rate, config.final_learning_rate, 1.0),
        n_steps=config.n_steps,
        batch_size=config.batch_size,
        n_epochs=config.n_epochs,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        ent_coef=config.ent_coef,
        rollout_buffer_class=BothSeatsBuffer if config.both_seats else None,
        policy_kwargs=options,
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
        selection: The run's averages and their scores.
    """

    def __init__(
        self,
        config: TrainConfig,
        out: Path,
        env: SelfPlayVecEnv | BothSeatsVecEnv,
        pool: OpponentPool,
        selection: Selection,
    ) -> None:
        super().__init__()
        self._config = config
        self._out = out
        self._env = env
        self._pool = pool
        self._selection = selection
        self._scores: dict[str, list[float]] = {}

    def _on_training_start(self) -> None:
        self._last_checkpoint = self.model.num_timesteps
        self._unsolved_before = self._env.unsolved

    def _on_rollout_start(self) -> None:
        # Before the first rollout after a checkpoint both steps are those of the checkpoint itself,
        # so a resumed run repeats nothing. What checkpoints hold is taken before they are.
        step = self.model.num_timesteps
        done = min(step / self._config.total_steps, 1.0)
        start, end = self._config.ent_coef, self._config.final_ent_coef
        self.model.ent_coef = start + done * (end - start)  # type: ignore[attr-defined]
        if step > 0 and step != self._last_checkpoint:
            self._select(step)
        if step - self._pool.newest_step >= self._config.snapshot_every:
            self._pool.add(self.model.policy, step)  # type: ignore[arg-type]
            self._pool.install(self._env)
        if step - self._last_checkpoint >= self._config.checkpoint_every:
            save_checkpoint(
                self._out,
                self.model,  # type: ignore[arg-type]
                self._env,
                self._pool,
                self._config,
                self._selection,
            )
            self._last_checkpoint = step

    def _select(self, step: int, last: bool = False) -> None:
        """Takes the network into the average, and judges that when it is time."""
        policy = self.model.policy
        if not isinstance(policy, MovePolicy):
            return
        self._selection.update(policy.to_network())
        if last or step - self._selection.last_step >= self._config.select_every:
            for row in self._selection.judge(step, policy.hidden):
                self.logger.record(f"select/score_vs_{row['opponent']}", row["score"])
                self.logger.record(f"select/blunders_vs_{row['opponent']}", row["blunders"])
            self._selection.write(self._out)

    def finish(self) -> None:
        """Judges the last average."""
        self._select(self.model.num_timesteps, last=True)

    def _on_step(self) -> bool:
        infos: list[dict[str, Any]] = self.locals["infos"]
        for row in np.flatnonzero(self.locals["dones"]).tolist():
            if infos[row]["opponent"] == BOTH_SEATS:
                continue
            kind = self._pool.kind(infos[row]["opponent"])
            score = (1.0 + float(np.sign(infos[row]["episode"]["r"]))) / 2.0
            self._pool.record(infos[row]["opponent"], [score])
            self._scores.setdefault(kind, []).append(score)
        return True

    def _on_rollout_end(self) -> None:
        self.logger.record("self_play/ent_coef", self.model.ent_coef)  # type: ignore[attr-defined]
        games = [score for scores in self._scores.values() for score in scores]
        for kind, scores in self._scores.items():
            self.logger.record(f"self_play/score_vs_{kind}", float(np.mean(scores)))
        if games:
            self.logger.record("self_play/draws", games.count(0.5) / len(games))
        self.logger.record("self_play/games", len(games))
        if self._config.endings == "exact":
            self.logger.record("self_play/unsolved", self._env.unsolved - self._unsolved_before)
            self._unsolved_before = self._env.unsolved
        self.logger.record("self_play/snapshots", len(self._pool.snapshots))
        self.logger.record(
            "self_play/snapshot_age", self.model.num_timesteps - self._pool.newest_step
        )
        self._scores.clear()
