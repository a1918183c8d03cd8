"""``counterweight arena``, ``counterweight sprt`` and ``counterweight replay``."""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from train.usage import UsageError, require_extra

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents.blocks import BlockTask
    from agents.league import TaskRunner
    from agents.standings import Standings
    from counterweight_env.record import GameRecord

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_arena", "add_replay", "add_sprt"]

ARENA_EXTRA: Final = ("choix", "scipy", "tqdm")
INTERRUPTED: Final = 130


def _add_common(parser: argparse.ArgumentParser) -> None:
    seeds = parser.add_mutually_exclusive_group()
    seeds.add_argument("--seed", type=int, default=0, help="of the deals, 0 if not given")
    seeds.add_argument(
        "--held-out", action="store_true", help="play the deals that published numbers are from"
    )
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes, 1 if not given"
    )
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar")


def _read_common(arguments: argparse.Namespace) -> tuple[int, int]:
    """The seed and the number of workers.

    Raises:
        UsageError: There are none.
    """
    from agents.arena import HELD_OUT_SEED

    if arguments.workers < 1:
        raise UsageError(f"--workers must be at least 1, got {arguments.workers}")
    return (HELD_OUT_SEED if arguments.held_out else arguments.seed), arguments.workers


def _read_rules(texts: Sequence[str]) -> tuple[str, ...]:
    """The rules' texts in their usual form; "both" stands for the two rule sets.

    Raises:
        ValueError: A text is none.
    """
    from counterweight_env.rules import Rules

    both = ("classic", "exchange")
    named = [rules for text in texts for rules in (both if text == "both" else (text,))]
    return tuple(str(Rules.parse(text)) for text in named)


@contextmanager
def _failures(how_to_go_on: str) -> Iterator[None]:
    """Turns what can go wrong in a match into sentences, and Ctrl-C into exit status 130."""
    from agents.workers import WorkerError

    try:
        yield
    except (ValueError, OSError, WorkerError) as error:  # an illegal action is a ValueError
        raise UsageError(str(error)) from error
    except KeyboardInterrupt:
        print(f"\nstopped; {how_to_go_on}", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


def _how_to_go_on(out: Path | None) -> str:
    if out is None:
        return "nothing was kept; --out DIR keeps the results"
    return f"the same command goes on from what {out} holds"


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """The folder given, or one that is gone afterwards."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="counterweight-") as folder:
        yield Path(folder)


# --- counterweight arena ------------------------------------------------------------------------


def add_arena(subparsers: Subparsers) -> None:
    """Adds ``counterweight arena``."""
    parser = subparsers.add_parser(
        "arena",
        help="play a round robin on duplicate deals: cross-table, ratings, blunders",
        description="Lets every player meet every other on the same deals, each played from both "
        "seats, and prints a cross-table, ratings and more. A run that was stopped goes on from "
        "DIR with the same command; more players, rules or deals may be named then.",
    )
    parser.add_argument("players", nargs="+", metavar="PLAYER", help='such as "greedy+exact"')
    parser.add_argument(
        "--rules",
        action="extend",
        nargs="+",
        help='"both" (the default) or the texts of rules',
    )
    parser.add_argument(
        "--deals", type=int, default=1_000, metavar="N", help="deals a pair, 1000 if not given"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="keep the results here, and go on from them"
    )
    parser.add_argument(
        "--records", action="store_true", help="keep every game in DIR, move by move"
    )
    parser.add_argument("--no-blunders", action="store_true", help="do not solve the endings")
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help='play on all processors of a Ray cluster, "auto" for the one this machine belongs to; '
        "--workers has no say then",
    )
    _add_common(parser)
    parser.set_defaults(run=_arena)


def _arena(arguments: argparse.Namespace) -> None:
    require_extra("arena", ARENA_EXTRA)
    if arguments.ray is not None:
        require_extra("rllib", ["ray"])
    from tqdm import tqdm

    from agents.blocks import BlockStore, Setup
    from agents.league import check_players, collect, play_league
    from agents.standings import report, standings

    seed, workers = _read_common(arguments)
    out: Path | None = arguments.out
    if arguments.records and out is None:
        raise UsageError("--records needs --out DIR")
    with _failures(_how_to_go_on(out)), _folder(out) as folder:
        setup = Setup(
            players=tuple(arguments.players),
            rules=_read_rules(arguments.rules or ["both"]),
            deals=arguments.deals,
            seed=seed,
            count_blunders=not arguments.no_blunders,
        )
        check_players(setup.players)
        store = BlockStore(folder, setup)
        games = 2 * sum(task.deals for task in setup.tasks())
        with tqdm(total=games, unit=" games", disable=arguments.no_progress) as bar:

            def advance(task: BlockTask) -> None:
                bar.update(2 * task.deals)

            with _shared_out(arguments.ray, workers) as (run, at_once):
                play_league(store, setup, at_once, arguments.records, advance, run)
        tables = [
            standings(rules, setup.players, games_of_pairs)
            for rules, games_of_pairs in collect(store, setup).items()
        ]
        text = "\n".join(report(table) for table in tables)
        _write_results(folder, seed, tables, text)
    print(text)
    if out is not None:
        print(f"This is in {out / 'report.md'}; the numbers are in {out / 'results.json'}.")


@contextmanager
def _shared_out(ray: str | None, workers: int) -> Iterator[tuple[TaskRunner, int]]:
    """What shares blocks out, and how many are played at once.

    Raises:
        ConnectionError: There is no cluster at the address.
    """
    if ray is None:
        from agents.workers import run_tasks

        yield run_tasks, workers
        return
    from train.ray_tasks import connected, run_ray_tasks

    with connected(ray) as processors:
        yield run_ray_tasks, processors


def _write_results(out: Path, seed: int, tables: list[Standings], text: str) -> None:
    """Writes the report, the numbers, and apart from them the times."""
    from agents.blocks import write_text

    numbers = {"seed": seed, "rules": {table.rules: table.as_json() for table in tables}}
    times = {
        table.rules: {
            name: None if math.isnan(value) else value for name, value in table.milliseconds.items()
        }
        for table in tables
    }
    write_text(out / "results.json", json.dumps(numbers, indent=1) + "\n")
    write_text(out / "milliseconds.json", json.dumps(times, indent=1) + "\n")
    write_text(out / "report.md", text)


# --- counterweight sprt -------------------------------------------------------------------------


def add_sprt(subparsers: Subparsers) -> None:
    """Adds ``counterweight sprt``."""
    parser = subparsers.add_parser(
        "sprt",
        help="find out with as few deals as needed whether a player is better than another",
        description="Plays duplicate deals until a sequential test accepts that A is ELO1 better "
        "than B on the Elo scale, or that it is only ELO0 better.",
    )
    parser.add_argument("a", metavar="A", help="the player that may be better")
    parser.add_argument("b", metavar="B", help="the other player")
    parser.add_argument("--rules", default="classic", help="one rule set, classic if not given")
    parser.add_argument("--elo0", type=float, default=0.0, help="0 if not given")
    parser.add_argument("--elo1", type=float, default=10.0, help="10 if not given")
    parser.add_argument(
        "--alpha", type=float, default=0.05, help="chance of accepting ELO1 wrongly"
    )
    parser.add_argument("--beta", type=float, default=0.05, help="chance of accepting ELO0 wrongly")
    parser.add_argument(
        "--max-deals",
        type=int,
        metavar="N",
        help="stop undecided after the block of deals that holds this one",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="keep the results here, and go on from them"
    )
    _add_common(parser)
    parser.set_defaults(run=_sprt)


def _sprt(arguments: argparse.Namespace) -> None:
    require_extra("arena", ARENA_EXTRA)
    from tqdm import tqdm

    from agents.blocks import BlockStore, Setup
    from agents.league import check_players
    from agents.sprt import Sprt, play_sprt

    seed, workers = _read_common(arguments)
    out: Path | None = arguments.out
    if arguments.max_deals is not None and arguments.max_deals < 1:
        raise UsageError(f"--max-deals must be at least 1, got {arguments.max_deals}")
    with _failures(_how_to_go_on(out)):
        test = Sprt(arguments.elo0, arguments.elo1, arguments.alpha, arguments.beta)
        players = (arguments.a, arguments.b)
        setup = Setup(players, _read_rules([arguments.rules]), None, seed, count_blunders=False)
        if len(setup.rules) != 1:
            raise UsageError("--rules must be one rule set; test each on its own")
        check_players(players)
        store = None if out is None else BlockStore(out, setup)
        low, high = test.bounds
        with tqdm(unit=" deals", disable=arguments.no_progress) as bar:

            def show(deals: int, ratio: float) -> None:
                bar.set_postfix_str(f"log likelihood ratio {ratio:+.2f} in {low:.2f} to {high:.2f}")
                bar.update(deals - bar.n)

            result = play_sprt(*players, test, setup, workers, arguments.max_deals, store, show)
    verdict = {
        "elo1": f"{arguments.a} is better than {arguments.b} by more than {test.elo0:g} Elo",
        "elo0": f"{arguments.a} is not {test.elo1:g} Elo better than {arguments.b}",
        None: "undecided",
    }[result.accepted]
    print(
        f"{setup.rules[0]}: {verdict}, after {result.deals:,} deals; log likelihood ratio "
        f"{result.log_likelihood_ratio:+.2f} of {low:.2f} and {high:.2f}."
    )
    counts = ", ".join(str(count) for count in result.counts)
    print(f"Deals with 0, 1/2, 1, 3/2 and 2 points of {arguments.a}: {counts}.", end=" ")
    print(
        f"Score {result.score:.3f} (of a test that stops by itself, so a little too far from 1/2)."
    )
    if any(result.faults):
        print(f"Games given up: {result.faults[0]} and {result.faults[1]}.")


# --- counterweight replay -----------------------------------------------------------------------


def add_replay(subparsers: Subparsers) -> None:
    """Adds ``counterweight replay``."""
    parser = subparsers.add_parser(
        "replay",
        help="check recorded games move by move, or show one",
        description="Plays recorded games again and checks every move and every result.",
    )
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="FILE", help="records, or a folder with such files"
    )
    parser.add_argument("--game", type=int, metavar="N", help="show the N-th game, from 1")
    parser.set_defaults(run=_replay)


def _replay(arguments: argparse.Namespace) -> None:
    from counterweight_env.record import RecordError

    try:
        if arguments.game is None:
            found = _check(arguments.paths)
            if not found["games"]:
                raise RecordError(f"no games in {', '.join(map(str, arguments.paths))}")
        else:
            record = _find(arguments.paths, arguments.game)
    except (RecordError, OSError) as error:
        raise UsageError(str(error)) from error
    if arguments.game is not None:
        _show(record)
        return
    print(
        f"{found['games']:,} games, {found['moves']:,} moves, all legal, all results right; "
        f"{found['draws']:,} drawn, {found['faults']:,} given up"
    )


def _check(paths: Sequence[Path]) -> Counter[str]:
    """Replays all games, and counts games, moves, draws and faults.

    Raises:
        OSError: A file cannot be read.
        RecordError: A record is bad; the message names the file, the line and the move.
    """
    from counterweight_env.record import RecordError, read_records, replay

    counts: Counter[str] = Counter()
    for file in _record_files(paths):
        for line, record in enumerate(read_records(file), start=1):
            try:
                counts["moves"] += sum(1 for _ in replay(record))
            except RecordError as error:
                raise RecordError(f"{file}, line {line}: {error}") from None
            counts["games"] += 1
            counts["draws"] += record.returns[0] == 0
            counts["faults"] += record.fault is not None
    return counts


def _find(paths: Sequence[Path], number: int) -> GameRecord:
    """One game, which has been replayed.

    Raises:
        OSError: A file cannot be read.
        RecordError: A record is bad.
        UsageError: There are not as many games.
    """
    from counterweight_env.record import RecordError, read_records, replay

    games = 0
    for file in _record_files(paths):
        for line, record in enumerate(read_records(file), start=1):
            games += 1
            if games == number:
                try:
                    deque(replay(record), maxlen=0)
                except RecordError as error:
                    raise RecordError(f"{file}, line {line}: {error}") from None
                return record
    raise UsageError(f"--game must be from 1 to {games}, got {number}")


def _record_files(paths: Sequence[Path]) -> Iterator[Path]:
    """The files that the paths name, folders by name.

    Raises:
        UsageError: A folder has none.
    """
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(path.rglob("*.games.jsonl"))
        if not found:
            raise UsageError(f"{path} has no *.games.jsonl")
        yield from found


def _show(record: GameRecord) -> None:
    """Prints a game: each position at the start of a turn, and every decision."""
    from counterweight_env.record import replay
    from counterweight_env.render import action_label

    game = record.deal()
    rules = game.rules
    print(f"player_0 is {record.players[0]}, player_1 is {record.players[1]}.\n\n{game}\n")
    mover, turn = game.to_move, game.turn
    for game, action in zip(replay(record), record.actions, strict=False):
        print(f"player_{mover}: {action_label(action, rules)}")
        if game.turn != turn or game.done:
            print(f"\n{game}\n")
        mover, turn = game.to_move, game.turn
    if record.fault is not None:
        print(f"player_{record.fault.player} gave the game up: {record.fault.reason}")
