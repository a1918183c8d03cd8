"""The ``counterweight`` command.

Every subcommand is one function that adds its arguments and names the function that runs it. What
needs torch is imported inside that, so that ``counterweight --help`` works in a plain install.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from train.config import PRESETS, TrainConfig

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["main"]

TRAIN_EXTRA: Final = ("torch", "stable_baselines3", "sb3_contrib", "tensorboard", "tqdm", "rich")


class UsageError(Exception):
    """What the user has to change, in one sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: Those after the command's name; ``sys.argv``'s if None.

    Returns:
        The exit status: 0, or 2 for a mistake in the arguments or the folder.
    """
    parser = argparse.ArgumentParser(
        prog="counterweight", description="Tools around the two-player card game Counterweight."
    )
    parser.add_argument("--version", action="version", version=version("counterweight-env"))
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_train(subparsers)
    parsed = parser.parse_args(arguments)
    try:
        parsed.run(parsed)
    except UsageError as error:
        print(f"counterweight: error: {error}", file=sys.stderr)
        return 2
    return 0


def require_extra(extra: str, modules: Sequence[str]) -> None:
    """Refuses to go on without the modules of an extra.

    Raises:
        UsageError: One is not installed; the message names it and what to install.
    """
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise UsageError(
            f'this command needs {", ".join(missing)}: pip install "counterweight-env[{extra}]"'
        )


# --- counterweight train ------------------------------------------------------------------------


def _add_train(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "train",
        help="train a self-play agent and show how it does against the baselines",
        description="Trains a self-play agent with MaskablePPO, saves it, and prints its scores "
        "against every baseline. Equal arguments give equal results on one machine.",
    )
    parser.add_argument(
        "--rules", help='"classic", "exchange", or a text such as "exchange(ranks=6,suits=2)"'
    )
    parser.add_argument(
        "--preset",
        choices=list(PRESETS),
        help="quick (under 3 minutes on 2 cores) or standard (about half an hour)",
    )
    parser.add_argument("--seed", type=int, help="0 if not given")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the run's folder, new or empty")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on from the last checkpoint in DIR; the other arguments may be left out",
    )
    parser.add_argument("--steps", type=int, metavar="N", help="decisions to learn from")
    parser.add_argument(
        "--num-envs",
        type=int,
        metavar="N",
        help="games played side by side; the batch size changes in proportion",
    )
    parser.add_argument("--eval-deals", type=int, metavar="N", help="deals a match of the table")
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar")
    parser.set_defaults(run=_train)


def _train(arguments: argparse.Namespace) -> None:
    require_extra("train", TRAIN_EXTRA)
    try:
        config, out = _read_run(arguments)
    except ValueError as error:
        raise UsageError(str(error)) from error

    from train.checkpoint import CheckpointError
    from train.self_play import run

    print(f"training {config.rules} for {config.total_steps:,} decisions in {out}", flush=True)
    started = time.monotonic()
    try:
        evaluation = run(config, out, arguments.resume, progress=not arguments.no_progress)
    except FileExistsError as error:
        raise UsageError(f"{error}: --resume or --out DIR") from error
    except CheckpointError as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt:
        print(f"\nstopped; to go on: counterweight train --resume --out {out}", file=sys.stderr)
        raise SystemExit(130) from None
    print(f"\n{config.rules}, {config.eval_deals:,} duplicate deals a match, 0.5 is even:\n")
    print(evaluation.table())
    print(f"\n{time.monotonic() - started:.0f} seconds. The agent is in {out / 'model.zip'},")
    print(f"the curves are in tensorboard --logdir {out / 'tensorboard'}")


def _read_run(arguments: argparse.Namespace) -> tuple[TrainConfig, Path]:
    """The configuration and the folder that the arguments mean.

    Raises:
        ValueError: An argument is bad.
    """
    given = {
        "rules": arguments.rules,
        "seed": arguments.seed,
        "total_steps": arguments.steps,
        "num_envs": arguments.num_envs,
        "eval_deals": arguments.eval_deals,
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    out: Path | None = arguments.out
    if arguments.resume and arguments.preset is None and out and (out / "config.json").is_file():
        base = TrainConfig.from_json((out / "config.json").read_text())
    else:
        base = TrainConfig.preset(arguments.preset or "quick")
    if arguments.num_envs is not None:
        changes["batch_size"] = base.batch_size * arguments.num_envs // base.num_envs
    config = dataclasses.replace(base, **changes)
    if out is None:
        rules = re.sub(r"[^\w.=-]+", "_", config.rules).strip("_")
        out = Path("runs") / f"{rules}-{arguments.preset or 'quick'}-seed{config.seed}"
    return config, out


if __name__ == "__main__":
    sys.exit(main())
