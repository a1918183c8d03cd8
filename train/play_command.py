"""``counterweight play``: a game at the terminal."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from train.usage import UsageError

if TYPE_CHECKING:
    from agents import Agent

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_play"]


def add_play(subparsers: Subparsers) -> None:
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "play",
        help="play a game at the terminal",
        description="Plays one game against any agent. Type help in the game for the commands.",
    )
    parser.add_argument("--opponent", default="champion", help='an agent; "champion" if not given')
    parser.add_argument(
        "--rules", default="classic", help='"classic" if not given, "exchange", or a longer text'
    )
    parser.add_argument(
        "--seat", choices=["0", "1", "random"], default="random", help="your player"
    )
    parser.add_argument("--seed", type=int, help="deal and chance; a new one if not given")
    parser.add_argument("--hints", action="store_true", help="show a hint at every decision")
    parser.add_argument(
        "--hints-agent",
        default="champion",
        metavar="AGENT",
        help='who gives the hints before the stock has run out; "champion" if not given',
    )
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="add the game's record to a file"
    )
    parser.set_defaults(run=_play)


def _play(arguments: argparse.Namespace) -> None:
    import numpy as np

    from agents import make_agent
    from agents.agent import close_agent
    from agents.human import TerminalGame
    from counterweight_env.game import GameBatch
    from counterweight_env.record import append_records
    from counterweight_env.rules import as_rules

    with ExitStack() as stack:

        def seated(text: str) -> Agent:
            agent = make_agent(text)
            stack.callback(close_agent, agent)
            return agent

        try:
            seed = arguments.seed
            if seed is None:
                seed = int(np.random.SeedSequence().generate_state(1)[0])
            games = GameBatch(1, as_rules(arguments.rules), seed=[seed])
            seat = _seat(arguments.seat, seed)
            opponent = seated(arguments.opponent)
            adviser = seated(arguments.hints_agent) if arguments.hints else None
            if adviser is not None and not hasattr(adviser, "values"):
                raise ValueError(f"--hints-agent {adviser.name!r} does not value moves")
            if arguments.record is not None:
                append_records(arguments.record, [])  # a file that cannot be written shows now
        except (ValueError, OSError) as error:
            raise UsageError(str(error)) from error
        session = TerminalGame(
            games,
            seat,
            opponent,
            hints=lambda: adviser or seated(arguments.hints_agent),
            always_hint=arguments.hints,
        )
        print(f"seed {seed}")
        session.play()
    if arguments.record is not None:
        record = session.record()
        if record is None:
            print("The game is not over: no record.")
            return
        append_records(arguments.record, [record])
        print(f"The record is in {arguments.record}.")


def _seat(text: str, seed: int) -> int:
    """The seat that is asked for; drawn from the seed, apart from the deal, if it is "random"."""
    import numpy as np

    if text != "random":
        return int(text)
    return int(np.random.default_rng([seed, 1]).integers(2))
