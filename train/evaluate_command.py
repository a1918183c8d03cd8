"""``counterweight evaluate`` and ``counterweight export``: what a trained network is worth."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from train.usage import UsageError, require_extra

if TYPE_CHECKING:
    from agents import Agent, MatchResult
    from train.config import TrainConfig

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_evaluate", "add_export", "response_config"]

LADDER: Final = ("random", "greedy", "keeper", "cautious", "patient", "mc:worlds=10")
TRAIN_EXTRA: Final = ("torch", "stable_baselines3", "sb3_contrib", "tensorboard", "tqdm", "rich")


# --- counterweight evaluate ---------------------------------------------------------------------


def add_evaluate(subparsers: Subparsers) -> None:
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "evaluate",
        help="play a trained network against the ladder, and train an exploiter against it",
        description="Plays a network (a .npz file, or the text of any agent) against the ladder on "
        "held-out duplicate deals: its best moves, moves drawn by its probabilities, and with "
        "perfect endings against perfect endings.",
    )
    parser.add_argument("model", metavar="MODEL", help="a network's .npz file, or an agent's text")
    parser.add_argument("--rules", help="those of the network's file if not given")
    parser.add_argument("--deals", type=int, default=1000, metavar="N", help="a match; 1000")
    parser.add_argument(
        "--opponents",
        action="extend",
        nargs="+",
        metavar="AGENT",
        help="instead of the ladder",
    )
    parser.add_argument(
        "--no-blunders", action="store_true", help="count no blunders, which is much quicker"
    )
    parser.add_argument(
        "--best-response",
        type=int,
        default=0,
        metavar="STEPS",
        help="also train an agent against the frozen model for so many decisions, and show how it "
        "does: a lower bound on what the model can be exploited for",
    )
    parser.set_defaults(run=_evaluate)


def _evaluate(arguments: argparse.Namespace) -> None:
    try:
        _show(arguments)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _show(arguments: argparse.Namespace) -> None:
    from agents.arena import HELD_OUT_SEED, play_match
    from agents.exact import Exact
    from agents.policy import Policy, load_network
    from counterweight_env.plugins import make_agent
    from counterweight_env.rules import Rules

    text: str = arguments.model
    rules = arguments.rules
    is_file = text.endswith(".npz")
    if is_file:
        manifest = load_network(text).manifest
        rules = rules or str(manifest["rules"])
    if rules is None:
        raise ValueError("--rules is missing")
    rules = str(Rules.parse(rules))
    if arguments.deals < 1:
        raise ValueError(f"--deals must be at least 1, got {arguments.deals}")
    ways: list[tuple[str, Agent | str]]
    if is_file:  # whose path may hold what has a meaning in an agent's text
        ways = [("best moves", Policy(text)), ("drawn moves", Policy(text, temperature=1))]
        exact: Agent | str = Exact(Policy(text))
        if arguments.best_response and ("+" in text or "," in text):
            raise ValueError(f"--best-response needs a path without + and commas, got {text}")
        text = f"policy:path={text}"
    else:
        make_agent(text)
        ways = [("best moves", text)]
        exact = f"{text}+exact"
    if arguments.best_response:
        require_extra("train", TRAIN_EXTRA)
        response_config(rules, text, arguments.best_response)  # refuses bad numbers early
    opponents = arguments.opponents or LADDER
    for opponent in opponents:
        make_agent(opponent)
    print(f"{arguments.model}, {rules}, {arguments.deals:,} held-out duplicate deals a match\n")
    print("| play | opponent | score | 95 % interval | blunders | their blunders |")
    print("|---|---|---:|---:|---:|---:|")
    faults: list[str] = []
    pairs = [(name, player, opponent) for name, player in ways for opponent in opponents]
    pairs.append(("with perfect endings", exact, "random+exact"))
    for name, player, opponent in pairs:
        match = play_match(
            player,
            opponent,
            rules,
            arguments.deals,
            HELD_OUT_SEED,
            count_blunders=not arguments.no_blunders,
        )
        print(_line(name, match), flush=True)
        faults += [
            f"{player} gave up {count} of {match.games} games ({name} against {match.b})"
            for player, count in zip((match.a, match.b), match.faults, strict=True)
            if count
        ]
    if faults:
        print("\n" + "\n".join(faults))
    if arguments.best_response:
        _show_response(rules, text, arguments)


def _line(name: str, match: MatchResult) -> str:
    low, high = match.interval
    rates = match.blunder_rates or (float("nan"), float("nan"))  # also without decisions
    blunders = " | ".join("-" if math.isnan(rate) else f"{rate:.1%}" for rate in rates)
    return f"| {name} | {match.b} | {match.score:.3f} | {low:.3f} to {high:.3f} | {blunders} |"


def response_config(rules: str, model: str, steps: int) -> TrainConfig:
    """How an approximate best response to a frozen player is trained.

    Args:
        rules: The text of the rules.
        model: The player's text.
        steps: Decisions to learn from.

    Raises:
        ValueError: An argument is bad.
    """
    from counterweight_env.rules import Rules
    from train.config import TrainConfig

    return TrainConfig(
        rules=rules,
        total_steps=steps,
        both_seats=False,
        endings="learn",
        self_share=0.0,
        past_share=0.0,
        baseline_share=1.0,
        baselines=(model,),
        ending_games=0
        if Rules.parse(rules).blocked == "discard"
        else max(min(1500, steps // 200), 0),
        select_every=max(steps // 4, 1),
        checkpoint_every=max(steps, 1),
        eval_deals=1,
    )


def _show_response(rules: str, text: str, arguments: argparse.Namespace) -> None:
    from agents.arena import HELD_OUT_SEED, play_match
    from train.self_play import run

    config = response_config(rules, text, arguments.best_response)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "response"
        print(f"\ntraining a response for {config.total_steps:,} decisions", file=sys.stderr)
        run(config, out, progress=False, workers=2)
        response = f"policy:path={out / 'network.npz'}"
        match = play_match(response, text, rules, arguments.deals, HELD_OUT_SEED)
    low, high = match.interval
    print(
        f"\nA response trained for {config.total_steps:,} decisions scores {match.score:.3f} "
        f"({low:.3f} to {high:.3f}) against the model."
    )


# --- counterweight export -----------------------------------------------------------------------


def add_export(subparsers: Subparsers) -> None:
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "export",
        help="write a trained network as ONNX, or with a manifest to ship",
        description="Writes a network's .npz file as ONNX (.onnx), or again as .npz with more in "
        "its manifest.",
    )
    parser.add_argument("network", type=Path, metavar="NETWORK.npz")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help=".onnx or .npz")
    parser.add_argument(
        "--note",
        action="extend",
        nargs="+",
        default=[],
        metavar="NAME=TEXT",
        help="more for the manifest of a .npz file, such as commit=1a2b3c4",
    )
    parser.set_defaults(run=_export)


def _export(arguments: argparse.Namespace) -> None:
    from agents.policy import Network, load_network

    try:
        network = load_network(arguments.network)
        notes: dict[str, str] = {}
        for text in arguments.note:
            name, equals, value = text.partition("=")
            if not name or not equals:
                raise ValueError(f"--note takes NAME=TEXT, got {text}")
            if name in notes:
                raise ValueError(f"--note: {name} is given twice")
            notes[name] = value
        kind = arguments.out.suffix.lower()
        if kind == ".npz":
            taken = {"rules", "hidden", "layout", "sha256"} & notes.keys()
            if taken:
                raise ValueError(f"--note must not change {', '.join(sorted(taken))}")
            Network(network.arrays, {**network.manifest, **notes}).save(arguments.out)
        elif kind == ".onnx":
            if notes:
                raise ValueError(f"--note is for .npz files, got {arguments.out}")
            require_extra("onnx", ("torch", "onnx", "onnxscript"))
            from train.onnx_file import write_onnx

            write_onnx(network, arguments.out)
        else:
            raise ValueError(f"--out must end in .onnx or .npz, got {arguments.out}")
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    print(arguments.out)
