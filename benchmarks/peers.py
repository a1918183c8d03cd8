"""``python -m benchmarks.peers``: Counterweight and its peers, measured in turn in one run.

Each peer gets a virtual environment with pinned versions and a process in it that stays on one
core. In every round each loop runs once, so that both sides of a ratio saw the same conditions.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from benchmarks.comparisons import COMPARISONS, Comparison, Loop, Rates
from benchmarks.environments import PeerError, ensure
from benchmarks.report import as_json, markdown, write_between_markers

__all__ = ["Worker", "main", "measure"]

ROOT: Final = Path(__file__).resolve().parent.parent
#: The environment that each module of loops runs in; ours runs in the one that runs this.
ENVIRONMENTS: Final = {
    "open_spiel": "open_spiel",
    "pettingzoo": "pettingzoo",
    "rlcard": "pettingzoo",
    "pgx": "pgx",
}
OUR_PACKAGES: Final = ("counterweight-env", "numpy", "numba", "gymnasium", "pettingzoo")
WARM_UP: Final = 0.5  # seconds


class Worker:
    """A process that runs the loops of one library.

    Args:
        module: A module of ``benchmarks.loops``.
        python: The Python that has the library.
        core: The core to stay on; None for all.
    """

    def __init__(self, module: str, python: Path, core: int | None) -> None:
        self.module = module
        command = [str(python), "-m", f"benchmarks.loops.{module}"]
        if core is not None:
            command.append(str(core))
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, name: str, seconds: float) -> dict[str, Any]:
        """Times one of its loops.

        Returns:
            ``decisions``, ``games`` and ``seconds``.

        Raises:
            PeerError: The process has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answer = ""
        try:
            self._process.stdin.write(f"{seconds} {name}\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            pass
        if not answer:
            raise PeerError(
                f"{self.module}: the loop {name!r} failed with exit status {self._process.wait()}"
            )
        result: dict[str, Any] = json.loads(answer)
        return result

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._process.communicate(timeout=10)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.communicate()


def measure(
    comparisons: Sequence[Comparison], pythons: Mapping[str, Path], runs: int, seconds: float
) -> dict[Loop, Rates]:
    """Runs every loop once a round, back and forth, after a warm-up that is not counted.

    Args:
        comparisons: What to compare.
        pythons: The Python of every module of loops.
        runs: Rounds.
        seconds: The least length of a run of one loop.

    Raises:
        PeerError: A loop failed.
    """
    compared = (loop for pair in comparisons for loop in (pair.ours, pair.other))
    rates = {loop: Rates() for loop in dict.fromkeys(compared)}
    core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    with ExitStack() as stack:
        workers: dict[tuple[str, bool], Worker] = {}
        for loop in rates:
            place = (loop.module, loop.pinned)
            if place not in workers:
                worker = Worker(loop.module, pythons[loop.module], core if loop.pinned else None)
                workers[place] = stack.enter_context(worker)
            print(f"warming up: {loop.title}", file=sys.stderr, flush=True)
            workers[place].run(loop.name, min(seconds, WARM_UP))
        for number in range(runs):
            print(f"round {number + 1} of {runs}", file=sys.stderr, flush=True)
            for loop in rates if number % 2 == 0 else reversed(rates):
                run = workers[loop.module, loop.pinned].run(loop.name, seconds)
                rates[loop].decisions.append(run["decisions"] / run["seconds"])
                rates[loop].games.append(run["games"] / run["seconds"])
    return rates


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _commit() -> str:
    git = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        found = subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def _about(arguments: argparse.Namespace, given: Sequence[str]) -> dict[str, Any]:
    """What the results say of the run; the environments are still to be filled in."""
    from counterweight_env.speed import processor_name

    ours = {name: importlib.metadata.version(name) for name in OUR_PACKAGES}
    return {
        "command": shlex.join(["python", "-m", "benchmarks.peers", *given]),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "commit": _commit(),
        "processor": processor_name(),
        "cores": _cores(),
        "is_pinned": hasattr(os, "sched_setaffinity"),
        "runs": arguments.runs,
        "seconds": arguments.seconds,
        "environments": {"counterweight": {"Python": platform.python_version()} | ours},
    }


def _read_arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description="Measures Counterweight and its peers in turn. Writes peers.json, peers.svg "
        "and peers-short.svg into --out, and the table between the markers of speed.md beside it.",
    )
    parser.add_argument("--runs", type=int, default=5, help="rounds (5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a loop in a round (1)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks", metavar="DIR")
    parser.add_argument(
        "--venvs",
        type=Path,
        default=ROOT / ".venv-peers",
        metavar="DIR",
        help="where the peers' environments are or will be made (.venv-peers)",
    )
    parser.add_argument(
        "--only",
        choices=["counterweight", *ENVIRONMENTS],
        help="compare with this one alone, print the table and write nothing",
    )
    arguments = parser.parse_args(given)
    if arguments.runs < 1:
        parser.error(f"--runs must be at least 1, got {arguments.runs}")
    if not arguments.seconds > 0:
        parser.error(f"--seconds must be positive, got {arguments.seconds}")
    return arguments


def _write(results: Mapping[str, Any], out: Path, chart_python: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    data = out / "peers.json"
    pictures: dict[Path, list[str]] = {out / "peers.svg": [], out / "peers-short.svg": ["--short"]}
    data.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for picture, options in pictures.items():
        chart = [str(chart_python), "-m", "benchmarks.chart", str(data), str(picture), *options]
        try:
            subprocess.run(chart, cwd=ROOT, check=True)
        except subprocess.CalledProcessError as error:
            raise PeerError(f"chart: cannot draw {picture}: {error}") from error
    text = markdown(results)
    page = out.parent / "speed.md"
    written = [data, *pictures, *([page] if write_between_markers(page, text) else [])]
    print(f"written: {', '.join(map(str, written))}", file=sys.stderr)


def main(given: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        given: The arguments; ``sys.argv``'s if None.

    Returns:
        The exit status: 0, or 1 if a peer could not be installed or measured.
    """
    given = sys.argv[1:] if given is None else list(given)
    arguments = _read_arguments(given)
    comparisons = [
        comparison
        for comparison in COMPARISONS
        if comparison.cores <= _cores() and arguments.only in (None, comparison.other.module)
    ]
    about = _about(arguments, given)
    pythons = {"counterweight": Path(sys.executable)}
    try:
        modules = dict.fromkeys(comparison.other.module for comparison in comparisons)
        for module, name in ENVIRONMENTS.items():
            if module in modules:
                pythons[module], about["environments"][name] = ensure(name, arguments.venvs)
        if arguments.only is None:
            chart_python, _ = ensure("chart", arguments.venvs)
        rates = measure(comparisons, pythons, arguments.runs, arguments.seconds)
        results = as_json(comparisons, rates, about)
        print(markdown(results))
        if arguments.only is None:
            _write(results, arguments.out.absolute(), chart_python)
    except PeerError as error:
        print(f"benchmarks.peers: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
