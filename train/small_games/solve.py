"""The value of a small game and an equilibrium of it, by CFR+."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from counterweight_env.cards import rule_table
from counterweight_env.endgame import Workspace, position_bounds
from counterweight_env.kernels import kernel
from counterweight_env.rules import Rules, as_rules
from train.small_games import flow
from train.small_games.symmetry import starting_tables
from train.small_games.tree import Endings, Tree, build_tree, check_size

__all__ = ["Equilibrium", "Point", "Solver", "exact_endings", "solve_game"]

UNLIMITED: Final = 2**62
#: What a solver keeps of a leaf beside its payoff.
SEQUENCE_PAIR: Final = np.dtype([("sequence", np.int32, 2)])
#: A best response is looked for after the first iteration, and each time after this much more.
CHECK_GROWTH: Final = 1.5


@kernel
def solve_endings(memory, tables, games, values):
    """Writes the exact value of each ending for player 0."""
    for i in range(games.size):
        low, _ = position_bounds(memory, tables[0], games[i], False, UNLIMITED)
        values[i] = -low if games[i]["to_move"] == 1 else low


def exact_endings(endings: Endings) -> np.ndarray:
    """The value of every ending for player 0, both playing perfectly; (n,) float64."""
    values = np.zeros(endings.size)
    memory = Workspace().memory
    solve_endings(memory, rule_table(endings.rules), endings.positions(), values)
    return values


class Solver:
    """CFR+ on the game behind one starting table: alternating updates, linear averaging.

    Args:
        tree: The game.
        values: (n,) float64, what each of its endings is worth to player 0.

    Attributes:
        iterations: Iterations done.
        chances: For each player (n,) float64, the current chance of each sequence's last action.
    """

    def __init__(self, tree: Tree, values: np.ndarray) -> None:
        self.tree = tree
        self.iterations = 0
        matters = (values != 0.0)[tree.leaves["ending"]]  # a draw adds nothing
        self._leaves = tree.leaves["sequence"][matters].view(SEQUENCE_PAIR)[:, 0]
        self._payoffs = tree.leaves["weight"][matters]
        self._payoffs *= values[tree.leaves["ending"][matters]]
        sizes = tree.num_sequences
        self.chances = [np.zeros(n) for n in sizes]
        self._regrets = [np.zeros(n) for n in sizes]
        self._totals = [np.zeros(n) for n in sizes]
        self._reach = [np.zeros(n) for n in sizes]
        self._worth = np.zeros(int(sizes.max()))
        for player in range(2):
            sets = int(tree.num_sets[player])
            flow.spread_evenly(
                tree.set_begin[player, :sets], tree.set_end[player, :sets], self.chances[player]
            )
            self._flow_down(player, self.chances[player], self._reach[player])

    def run(self, iterations: int) -> None:
        """Does some more iterations."""
        tree = self.tree
        for _ in range(iterations):
            self.iterations += 1
            for player in range(2):
                self._weigh(player, self._reach[1 - player])
                flow.improve(
                    tree.steps[player, : tree.num_steps[player]],
                    tree.sources[player],
                    tree.set_parent[player],
                    tree.set_begin[player],
                    tree.set_end[player],
                    self._regrets[player],
                    self.chances[player],
                    self._worth,
                )
                self._flow_down(player, self.chances[player], self._reach[player])
                flow.accumulate(self._reach[player], float(self.iterations), self._totals[player])

    def average(self, player: int) -> np.ndarray:
        """The average strategy: the chance of each sequence's last action; (n,) float64."""
        tree = self.tree
        chances = np.zeros(int(tree.num_sequences[player]))
        sets = int(tree.num_sets[player])
        flow.average(
            tree.set_begin[player, :sets],
            tree.set_end[player, :sets],
            self._totals[player],
            chances,
        )
        return chances

    def best_response(self, player: int, chances: np.ndarray) -> float:
        """What a player gets at most against the other's chances."""
        tree = self.tree
        reach = np.zeros(int(tree.num_sequences[1 - player]))
        self._flow_down(1 - player, chances, reach)
        self._weigh(player, reach)
        return float(
            flow.respond(
                tree.steps[player, : tree.num_steps[player]],
                tree.sources[player],
                tree.set_parent[player],
                tree.set_begin[player],
                tree.set_end[player],
                tree.num_roots,
                self._worth,
            )
        )

    def expected(self, first: np.ndarray, second: np.ndarray) -> float:
        """What player 0 expects when both play the given chances."""
        reaches = [np.zeros(int(n)) for n in self.tree.num_sequences]
        for player, chances in enumerate((first, second)):
            self._flow_down(player, chances, reaches[player])
        return float(flow.expected(self._leaves, self._payoffs, *reaches))

    def _flow_down(self, player: int, chances: np.ndarray, reach: np.ndarray) -> None:
        tree = self.tree
        flow.flow_down(
            tree.steps[player, : tree.num_steps[player]],
            tree.sources[player],
            tree.set_parent[player],
            tree.set_begin[player],
            tree.set_end[player],
            tree.num_roots,
            chances,
            reach,
        )

    def _weigh(self, player: int, other_reach: np.ndarray) -> None:
        flow.weigh_leaves(self._leaves, self._payoffs, player, other_reach, self._worth)


@dataclass(frozen=True)
class Point:
    """How near an average strategy is to an equilibrium.

    Attributes:
        iterations: Iterations of CFR+.
        exploitability: Half of what best responses to both players get together: 0 in equilibrium.
        value: What player 0, who moves first, expects when both play the average.
        low: What player 0's average gets against its best response: the value is no less.
        high: What a best response gets against player 1's average: the value is no more.
    """

    iterations: int
    exploitability: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Equilibrium:
    """What :func:`solve_game` found.

    Attributes:
        rules: The rules.
        curve: How it went; the last point is the result.
        tables: Starting tables solved, one for each kind.
        information_sets: Information sets of both players in their trees.
        sequences: Their sequences.
        leaves: Their leaves.
        seconds: Processor time it took.
        solvers: The solver of each starting table if they were kept, else empty.
        weights: The probability of each starting table's kind.
    """

    rules: Rules
    curve: list[Point]
    tables: int
    information_sets: int
    sequences: int
    leaves: int
    seconds: float
    solvers: list[Solver] = field(repr=False)
    weights: list[float] = field(repr=False)

    @property
    def value(self) -> float:
        """What the player who moves first wins on average; between ``low`` and ``high``."""
        return self.curve[-1].value

    @property
    def exploitability(self) -> float:
        """How much a best response gains on average over both seats; 0 in equilibrium."""
        return self.curve[-1].exploitability


def solve_game(
    rules: Rules | str,
    target: float = 1e-3,
    max_iterations: int = 10_000,
    keep: bool = False,
    merge: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Equilibrium:
    """Solves a small game, the player who moves first being player 0.

    The games behind the starting tables are solved one after the other, each until it is within
    the target; it then stands still while the others go on.

    Args:
        rules: A small deck with open discards.
        target: Exploitability to reach.
        max_iterations: Iterations for one starting table, at most.
        keep: Whether to keep the solvers, with their strategies; they take much memory.
        merge: Whether to solve one starting table of each kind alone.
        progress: Told in a few words how it goes.

    Raises:
        ValueError: The rules cannot be solved, or a number is not positive.
    """
    rules = as_rules(rules)
    check_size(rules)
    if not target > 0:
        raise ValueError(f"target must be positive, got {target!r}")
    if isinstance(max_iterations, bool) or not isinstance(max_iterations, int):
        raise ValueError(f"max_iterations must be an int, got {max_iterations!r}")
    if max_iterations < 1:
        raise ValueError(f"max_iterations must be positive, got {max_iterations}")
    started = time.process_time()
    tables = starting_tables(rules, merge)
    endings = Endings(rules)
    values = np.zeros(0)
    curves = []
    solvers = []
    sizes = np.zeros(3, np.int64)
    for number, (table, _) in enumerate(tables, 1):
        tree = build_tree(rules, table, endings, keep_records=keep)
        values = _more_values(endings, values)
        sizes += (tree.num_sets.sum(), tree.num_sequences.sum(), len(tree.leaves))
        solver = Solver(tree, values)
        if not keep:
            tree.leaves = tree.leaves[:0].copy()  # most of the memory; the solver has its own
        curves.append(_run(solver, target, max_iterations))
        if keep:
            solvers.append(solver)
        if progress is not None:
            last = curves[-1][-1]
            progress(
                f"table {number} of {len(tables)}: {tree.num_sets.sum():,} information sets, "
                f"{last.iterations} iterations, exploitability {last.exploitability:.1e}, "
                f"{time.process_time() - started:.1f} s"
            )
        del tree, solver  # before the next is built
    weights = [weight for _, weight in tables]
    seconds = time.process_time() - started
    curve = _merge_curves(curves, weights)
    sets, sequences, leaves = sizes.tolist()
    return Equilibrium(
        rules, curve, len(tables), sets, sequences, leaves, seconds, solvers, weights
    )


def _more_values(endings: Endings, known: np.ndarray) -> np.ndarray:
    """The exact values of all endings, of which the first are known."""
    games = endings.positions(np.arange(known.size, endings.size))
    new = np.zeros(games.size)
    solve_endings(Workspace().memory, rule_table(endings.rules), games, new)
    return np.concatenate([known, new])


def _point(solver: Solver) -> Point:
    first, second = solver.average(0), solver.average(1)
    high = solver.best_response(0, second)
    low = -solver.best_response(1, first)
    value = solver.expected(first, second)
    gap = max(high - low, 0.0)  # rounding may leave less than nothing
    return Point(solver.iterations, gap / 2, value, low, high)


def _run(solver: Solver, target: float, max_iterations: int) -> list[Point]:
    """Runs one solver until it is within the target; returns how it went."""
    curve: list[Point] = []
    following = 1
    while True:
        solver.run(following - solver.iterations)
        curve.append(_point(solver))
        if curve[-1].exploitability <= target or solver.iterations >= max_iterations:
            return curve
        following = min(max(int(following * CHECK_GROWTH), following + 1), max_iterations)


def _merge_curves(curves: list[list[Point]], weights: list[float]) -> list[Point]:
    """The curve of the whole game; one that has ended stays where it is."""
    merged = []
    for i in range(max(len(curve) for curve in curves)):
        points = [curve[min(i, len(curve) - 1)] for curve in curves]
        columns = np.array([(p.exploitability, p.value, p.low, p.high) for p in points])
        means = (np.array(weights) @ columns).tolist()
        merged.append(Point(max(p.iterations for p in points), *means))
    return merged
