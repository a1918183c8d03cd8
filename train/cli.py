"""The ``counterweight`` command.

Every subcommand is one function that adds its arguments and names the function that runs it. What
needs torch is imported inside that, so that ``counterweight --help`` works in a plain install.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import re
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from train import (
    arena_commands,
    evaluate_command,
    exploit_command,
    play_command,
    render_command,
    rllib_command,
)
from train.config import PRESETS, TrainConfig
from train.usage import UsageError, require_extra

if TYPE_CHECKING:
    from counterweight_env.game import Game
    from counterweight_env.speed import Workload

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["main"]

TRAIN_EXTRA: Final = ("torch", "stable_baselines3", "sb3_contrib", "tensorboard", "tqdm", "rich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: Those after the command's name; ``sys.argv``'s if None.

    Returns:
        The exit status: 0, or 2 for a mistake in the arguments or the folder, 130 after Ctrl-C,
        141 if nobody reads the output any more.
    """
    parser = argparse.ArgumentParser(
        prog="counterweight", description="Tools around the two-player card game Counterweight."
    )
    parser.add_argument("--version", action="version", version=version("counterweight-env"))
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_train(subparsers)
    evaluate_command.add_evaluate(subparsers)
    evaluate_command.add_export(subparsers)
    _add_solve(subparsers)
    _add_speed(subparsers)
    arena_commands.add_arena(subparsers)
    arena_commands.add_sprt(subparsers)
    arena_commands.add_replay(subparsers)
    play_command.add_play(subparsers)
    render_command.add_render(subparsers)
    exploit_command.add_exploit(subparsers)
    rllib_command.add_train_rllib(subparsers)
    parsed = parser.parse_args(arguments)
    try:
        parsed.run(parsed)
        sys.stdout.flush()
    except UsageError as error:
        print(f"counterweight: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ncounterweight: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _drop_output()
        return 141  # as a shell says of a command that SIGPIPE ended
    except OSError as error:
        _drop_output()
        print(f"counterweight: error: {error}", file=sys.stderr)
        return 2
    return 0


def _drop_output() -> None:
    """Sends what is not written yet nowhere, so that the interpreter does not stumble over it."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
        help="quick (some 3 minutes on 2 cores), standard (half an hour) or long (two hours)",
    )
    parser.add_argument("--seed", type=int, help="0 if not given")
    parser.add_argument(
        "--seeds",
        type=int,
        action="extend",
        nargs="+",
        metavar="N",
        help="several runs, each in a folder of its own",
    )
    parser.add_argument(
        "--set",
        action="extend",
        nargs="+",
        default=[],
        metavar="FIELD=VALUE",
        help="any other field of the configuration, such as ending_games=0 or network=mlp",
    )
    parser.add_argument(
        "--workers", type=int, default=2, metavar="N", help="processes that solve endings; 2"
    )
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
    if arguments.seeds and arguments.seed is not None:
        raise UsageError("give --seed or --seeds, not both")
    if arguments.seeds and len(set(arguments.seeds)) < len(arguments.seeds):
        raise UsageError(f"--seeds must differ, got {arguments.seeds}")
    runs = []
    for seed in arguments.seeds or [arguments.seed]:
        try:
            runs.append(_read_run(arguments, seed))
        except ValueError as error:
            raise UsageError(str(error)) from error
    _check_runs(arguments.resume, runs)
    for config, out in runs:
        _train_one(arguments, config, out)


def _check_runs(resume: bool, runs: Sequence[tuple[TrainConfig, Path]]) -> None:
    """Finds what would stop a run, before the first one begins."""
    from counterweight_env.plugins import make_agent
    from train.checkpoint import CheckpointError
    from train.self_play import check_folder

    # Of several seeds, the first may have begun and the others not.
    if resume and not any((out / "config.json").is_file() for _, out in runs):
        raise UsageError(f"{runs[0][1]} holds no run to resume: it has no config.json")
    for config, out in runs:
        try:
            check_folder(out, config, resume)
            for text in config.baselines:
                make_agent(text)
        except FileExistsError as error:
            raise UsageError(f"{error}: --resume or --out DIR") from error
        except (CheckpointError, OSError) as error:
            raise UsageError(str(error)) from error
        except ValueError as error:
            raise UsageError(f"baselines: {error}") from error


def _train_one(arguments: argparse.Namespace, config: TrainConfig, out: Path) -> None:
    from agents.process import ProcessError
    from train.checkpoint import CheckpointError
    from train.self_play import run

    print(f"training {config.rules} for {config.total_steps:,} decisions in {out}", flush=True)
    started = time.monotonic()
    try:
        evaluation = run(
            config,
            out,
            arguments.resume,
            progress=not arguments.no_progress,
            workers=max(arguments.workers, 1),
        )
    except FileExistsError as error:
        raise UsageError(f"{error}: --resume or --out DIR") from error
    except (CheckpointError, ProcessError) as error:
        raise UsageError(str(error)) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        advice = ""
        if (out / "checkpoints").is_dir():
            advice = f"; the last checkpoint is whole: counterweight train --resume --out {out}"
        raise UsageError(f"{error}{advice}") from error
    except KeyboardInterrupt:
        print(f"\nstopped; to go on: counterweight train --resume --out {out}", file=sys.stderr)
        raise SystemExit(130) from None
    exact = config.endings == "exact"
    ends = "perfect endings on both sides, " if exact else ""
    print(f"\n{config.rules}, {config.eval_deals:,} duplicate deals a match, {ends}0.5 is even:\n")
    print(evaluation.table())
    print(
        f"\n{time.monotonic() - started:.0f} seconds. The agent is in {out / 'model.zip'}", end=""
    )
    if config.network == "moves":
        wrapper = "+exact" if exact else ""
        print(f"\nand plays anywhere as policy:{out / 'network.npz'}{wrapper}", end="")
    print(f"; the curves are in\ntensorboard --logdir {out / 'tensorboard'}")


def _read_field(text: str) -> tuple[str, Any]:
    """A ``FIELD=VALUE`` argument: numbers, true and false, lists with commas, and other text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"--set takes FIELD=VALUE, got {text!r}")
    if name not in {field.name for field in dataclasses.fields(TrainConfig)}:
        raise ValueError(f"--set: the configuration has no field {name!r}")

    def one(word: str) -> Any:
        for kind in (int, float):
            try:
                return kind(word)
            except ValueError:
                continue
        return {"true": True, "false": False}.get(word.lower(), word)

    if name in ("net_arch", "baselines"):
        return name, tuple(one(word) for word in value.split(","))
    return name, one(value)


def _read_run(arguments: argparse.Namespace, seed: int | None) -> tuple[TrainConfig, Path]:
    """The configuration and the folder that the arguments mean.

    Raises:
        ValueError: An argument is bad.
    """
    given = {
        "rules": arguments.rules,
        "seed": seed,
        "total_steps": arguments.steps,
        "num_envs": arguments.num_envs,
        "eval_deals": arguments.eval_deals,
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for text in arguments.set:
        name, value = _read_field(text)
        if given.get(name) is not None:
            raise ValueError(f"{name} is given twice, by an option of its own and by --set {text}")
        changes[name] = value
    out: Path | None = arguments.out
    if out is not None and arguments.seeds:
        out = out / f"seed{seed}"
    if arguments.resume and arguments.preset is None and out and (out / "config.json").is_file():
        try:
            base = TrainConfig.from_json((out / "config.json").read_text())
        except ValueError as error:
            raise ValueError(f"{out / 'config.json'}: {error}") from None
    else:
        base = TrainConfig.preset(arguments.preset or "quick")
    if arguments.num_envs is not None:
        changes["batch_size"] = base.batch_size * arguments.num_envs // base.num_envs
    config = dataclasses.replace(base, **changes)
    if out is None:
        rules = re.sub(r"[^\w.=-]+", "_", config.rules).strip("_")
        out = Path("runs") / f"{rules}-{arguments.preset or 'quick'}-seed{config.seed}"
    return config, out


# --- counterweight solve ------------------------------------------------------------------------


def _add_solve(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "solve",
        help="solve a position after exhaustion exactly",
        description="Gives the exact value of a position after exhaustion, for the player on move.",
    )
    parser.add_argument("--rules", help='"classic" if not given')
    parser.add_argument("--table", metavar="LEFT,RIGHT", help='the table cards, such as "TS,3H"')
    parser.add_argument("--me", metavar="CARDS", help="the hand of the player on move")
    parser.add_argument("--opponent", metavar="CARDS", help="the other hand")
    parser.add_argument(
        "--game", type=Path, metavar="FILE", help="a game's JSON, instead of the cards"
    )
    parser.add_argument("--best-moves", action="store_true", help="list all optimal moves")
    parser.add_argument(
        "--margin", action="store_true", help="solve for the final card difference instead"
    )
    parser.add_argument("--nodes", type=int, metavar="N", help="positions to look at, at most")
    parser.set_defaults(run=_solve)


def _solve(arguments: argparse.Namespace) -> None:
    from counterweight_env.endgame import solve
    from counterweight_env.render import action_label

    try:
        game = _read_position(arguments)
        solution = solve(game, arguments.nodes, arguments.margin)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    print(game)
    print(f"\n{_verdict(solution.value, solution.bounds, arguments.margin)}", end=" ")
    print(f"for player_{game.to_move}, who is on move ({solution.nodes:,} positions looked at).")
    if arguments.best_moves:
        for move in solution.best:
            print(" on the left, ".join(action_label(card, game.rules) for card in move), end="")
            print(" on the right" if len(move) == 2 else " laid away")
        if not solution.proven:
            print("(the node limit left other moves open)")


def _verdict(value: int | None, bounds: tuple[int, int], margin: bool) -> str:
    if value is None:
        return f"Not solved within the node limit: from {bounds[0]} to {bounds[1]}"
    if margin:
        return f"The final card difference is {value:+d}"
    return {1: "A win", 0: "A draw", -1: "A loss"}[value]


def _read_position(arguments: argparse.Namespace) -> Game:
    """The game that the arguments describe.

    Raises:
        ValueError: Cards or the file are missing or bad.
        OSError: The file cannot be read.
    """
    from counterweight_env.game import Game

    cards = {name: getattr(arguments, name) for name in ("table", "me", "opponent")}
    if arguments.game is not None:
        given = [name for name in ("rules", *cards) if getattr(arguments, name) is not None]
        if given:
            raise ValueError(f"--game holds the whole position; leave out --{' --'.join(given)}")
        try:
            return Game.from_json(arguments.game.read_text())
        except ValueError as error:
            raise ValueError(f"{arguments.game}: {error}") from None
    missing = [name for name, text in cards.items() if text is None]
    if missing:
        raise ValueError(f"--{missing[0]} is missing (or give --game FILE)")
    table, me, opponent = (re.split(r"[,\s]+", text.strip()) for text in cards.values())
    return Game.from_position([me, opponent], table, rules=arguments.rules or "classic")


# --- counterweight speed ------------------------------------------------------------------------


def _add_speed(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "speed",
        help="measure the engine on this machine",
        description="Decisions and games a second of random legal play, by batch size. Run it on a "
        "quiet machine.",
    )
    parser.add_argument("--rules", default="both", help='"both" or one rule set\'s text')
    parser.add_argument(
        "--batch", type=int, action="extend", nargs="+", metavar="N", help="batch sizes"
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="1 if not given")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="timed runs of each")
    parser.add_argument("--seconds", type=float, default=1.0, help="the least length of a run")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=_speed)


def _speed(arguments: argparse.Namespace) -> None:
    import json

    from counterweight_env import speed
    from counterweight_env.threads import check_threads

    rule_sets = ("classic", "exchange") if arguments.rules == "both" else (arguments.rules,)
    measured: list[speed.Measurement] = []
    try:
        threads = check_threads(arguments.threads)
        if arguments.runs < 1 or not arguments.seconds > 0:
            raise ValueError("--runs must be at least 1 and --seconds more than 0")
        for rules in rule_sets:
            for batch in arguments.batch or speed.BATCH_SIZES:
                work = [*speed.workloads(rules, batch, threads), *_collection(rules, batch)]
                for workload in work:
                    print(f"measuring {workload.name}, {rules}, {batch}", file=sys.stderr)
                    measured.append(
                        speed.measure(workload, arguments.runs, arguments.seconds, threads)
                    )
    except ValueError as error:
        raise UsageError(str(error)) from error
    if arguments.json:
        fields = [dataclasses.asdict(measurement) for measurement in measured]
        print(json.dumps({"machine": speed.machine_line(), "measurements": fields}, indent=1))
    else:
        print(speed.machine_line() + "\n")
        print(speed.table_text(measured))


def _collection(rules: str, batch: int) -> list[Workload]:
    """The collection of SB3's view of the game, where the train extra is installed."""
    if any(find_spec(module) is None for module in TRAIN_EXTRA):
        return []
    from train.vec_env import collection_workload

    return [collection_workload(rules, batch)]


if __name__ == "__main__":
    sys.exit(main())
