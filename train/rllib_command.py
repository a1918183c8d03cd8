"""``counterweight train-rllib``: self-play training on RLlib, on one machine or a Ray cluster."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from train.usage import UsageError, require_extra

if TYPE_CHECKING:
    from train.rllib_train import RllibConfig

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_train_rllib"]

RLLIB_EXTRA: Final = ("ray", "torch", "tree", "pyarrow", "scipy")
#: Arguments that are fields of the configuration.
FIELDS: Final = ("rules", "seed", "num_env_runners", "batch_size", "eval_deals")


def add_train_rllib(subparsers: Subparsers) -> None:
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "train-rllib",
        help="train a self-play agent with RLlib, on one machine or a Ray cluster",
        description="Trains a self-play agent with RLlib's PPO, saves it, and prints its scores "
        "against every baseline. A lost env runner is replaced while the run goes on.",
    )
    parser.add_argument("--rules", help='"classic" if not given, "exchange", or a longer text')
    parser.add_argument("--iterations", type=int, default=100, metavar="N", help="100 if not given")
    parser.add_argument(
        "--num-env-runners", type=int, metavar="N", help="processes that play, 2 if not given"
    )
    parser.add_argument(
        "--address", help='of a Ray cluster, or "auto"; Ray is started here if not given'
    )
    parser.add_argument("--batch-size", type=int, metavar="N", help="decisions an iteration")
    parser.add_argument("--seed", type=int, help="0 if not given")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the run's folder, new or empty")
    parser.add_argument(
        "--resume", action="store_true", help="go on from the last checkpoint in DIR"
    )
    parser.add_argument("--eval-deals", type=int, metavar="N", help="deals a match of the table")
    parser.set_defaults(run=_train_rllib)


def _train_rllib(arguments: argparse.Namespace) -> None:
    require_extra("rllib", RLLIB_EXTRA)
    from train.rllib_train import EnvRunnersLostError, run

    try:
        config, out = _read_run(arguments)
        print(f"training {config.rules} for {arguments.iterations} iterations in {out}", flush=True)
        evaluation = run(
            config, out, arguments.iterations, arguments.resume, arguments.address, _show
        )
    except FileExistsError as error:
        raise UsageError(f"{error}: --resume or --out DIR") from error
    except (ValueError, OSError, EnvRunnersLostError) as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt:
        print(
            f"\nstopped; to go on: counterweight train-rllib --resume --out {out}", file=sys.stderr
        )
        raise SystemExit(130) from None
    print(f"\n{config.rules}, {config.eval_deals:,} duplicate deals a match, 0.5 is even:\n")
    print(evaluation.table())
    print(f"\nThe agent is in {out / 'actor.npz'} and {out / 'checkpoints'}.")


def _read_run(arguments: argparse.Namespace) -> tuple[RllibConfig, Path]:
    """The configuration and the folder that the arguments mean.

    Raises:
        ValueError: An argument is bad.
        OSError: The run to be resumed cannot be read.
    """
    from train.rllib_train import RllibConfig

    if arguments.iterations < 1:
        raise ValueError(f"--iterations must be at least 1, got {arguments.iterations}")
    given: dict[str, Any] = {name: getattr(arguments, name) for name in FIELDS}
    changes = {name: value for name, value in given.items() if value is not None}
    out: Path | None = arguments.out
    if arguments.resume:
        if out is None:
            raise ValueError("--resume needs --out DIR")
        saved = RllibConfig.from_json((out / "config.json").read_text())
        config = dataclasses.replace(saved, **changes)
        if config.rules != saved.rules:
            raise ValueError(f"{out} is a run of {saved.rules}, not {config.rules}")
        return config, out
    config = RllibConfig(**changes)
    if out is None:
        rules = re.sub(r"[^\w.=-]+", "_", config.rules).strip("_")
        out = Path("runs") / f"{rules}-rllib-seed{config.seed}"
    return config, out


def _show(row: dict[str, Any]) -> None:
    """Prints an iteration."""
    score = "-" if row["score_vs_past"] is None else f"{row['score_vs_past']:.3f}"
    print(
        f"iteration {row['iteration']}: {row['decisions']:,} decisions, "
        f"score against past selves {score}, {row['seconds']:.1f} s",
        flush=True,
    )
