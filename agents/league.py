"""Round robins on duplicate deals, in several processes, that can be killed and gone on with.

Every pair plays the same deals under each rule set. What a block of deals comes to follows from the
pair, the rules and the seed alone, so neither the number of processes nor the order of the players
has a say in the results.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from agents.agent import close_agent, make_agent
from agents.arena import DealsPlayed
from agents.blocks import BlockStore, BlockTask, Setup, SetupError, pairs_of, play_block
from agents.workers import run_tasks

__all__ = ["PairGames", "TaskRunner", "check_players", "collect", "play_league"]

#: Shares work out, as :func:`agents.workers.run_tasks` does.
TaskRunner = Callable[[Callable[[Any], Any], Iterable[Any], int], Generator[Any, None, None]]


@dataclass(frozen=True, eq=False)
class PairGames:
    """All that a pair played under one rule set.

    Attributes:
        a: The player that had seat 0 in the first game of each deal.
        b: The other.
        played: The games.
    """

    a: str
    b: str
    played: DealsPlayed


def check_players(players: tuple[str, ...]) -> None:
    """Makes and closes every player once, so that a bad one is found before anything is played.

    Raises:
        SetupError: A text names no player; the message names it.
    """
    for text in players:
        try:
            close_agent(make_agent(text))
        except (ValueError, TypeError, ImportError, OSError) as error:
            raise SetupError(f"player {text!r}: {error}") from error


def play_league(
    store: BlockStore,
    setup: Setup,
    workers: int = 1,
    record: bool = False,
    on_block: Callable[[BlockTask], None] | None = None,
    run: TaskRunner = run_tasks,
) -> None:
    """Plays all blocks of a round robin that the folder does not hold yet.

    Args:
        store: The folder.
        setup: What is to be played, with a number of deals.
        workers: Processes; 1 plays in this one.
        record: Keep every game.
        on_block: Called with every block that is done, those that were done before first.
        run: What shares the blocks out; the results do not depend on it.

    Raises:
        IllegalActionError: A player answered with an illegal action.
        WorkerError: A process died.
    """
    missing = []
    for task in setup.tasks(record):
        if not store.is_done(task):
            missing.append(task)
        elif on_block is not None:
            on_block(task)
    with closing(run(play_block, missing, min(workers, max(1, len(missing))))) as finished:
        for task, played in finished:
            store.write(task, played)
            if on_block is not None:
                on_block(task)


def collect(store: BlockStore, setup: Setup) -> dict[str, list[PairGames]]:
    """The games of every pair under each rule set, from a folder that holds them all.

    Raises:
        SetupError: A block is missing or damaged.
    """
    return {
        rules: [
            PairGames(
                a,
                b,
                DealsPlayed.joined([store.read(task) for task in setup.pair_tasks(rules, a, b)]),
            )
            for a, b in pairs_of(setup.players)
        ]
        for rules in setup.rules
    }
