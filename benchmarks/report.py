"""The results as JSON and as a Markdown table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.comparisons import Comparison, Loop, Rates, Spread

__all__ = ["as_json", "markdown", "write_between_markers"]

BEGIN: Final = "<!-- peers: begin -->"
END: Final = "<!-- peers: end -->"

NOTES: Final = """\
Actions are drawn evenly among the legal ones, and a new game follows a finished one. Every process
stays on one core, except for the two threads. In each round every loop ran once; the ratio is the
median of the rounds' ratios, with the least and the most in brackets.

- OpenSpiel's *documented loop* is that of its documentation and its `example.py`, with
  `observation_tensor` and `legal_actions_mask`: NumPy's `choice` draws at chance nodes. The
  *quicker loop* draws there by `random.choices`. The *fastest loop* takes OpenSpiel's NumPy
  observer and draws chance evenly from `legal_actions`, which this game allows; the *bare loop* is
  that without observation and mask. `evaluate_bots` plays two uniform random bots against each
  other.
- Decisions are those of both players everywhere. About half of VectorEnv's are the learner's; the
  opponent's are made inside the step. Pgx's loop is one compiled scan with the choice of actions
  and the automatic reset inside.
- The AEC loops are one and the same function. RLCard's environment is stepped as its `Env.run`
  does, without keeping trajectories."""


def as_json(
    comparisons: Sequence[Comparison], rates: Mapping[Loop, Rates], about: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything that was measured.

    Args:
        comparisons: What was compared.
        rates: Each loop's rounds.
        about: What to say of the run: command, date, processor, versions.
    """
    return {
        **about,
        "loops": [
            {
                **asdict(loop),
                "decisions_per_second": _spread(of.decisions),
                "games_per_second": _spread(of.games),
            }
            for loop, of in rates.items()
        ],
        "comparisons": [_comparison(comparison, rates) for comparison in comparisons],
    }


def _spread(values: Sequence[float]) -> dict[str, Any]:
    return {**asdict(Spread.of(values)), "rounds": list(values)}


def _comparison(comparison: Comparison, rates: Mapping[Loop, Rates]) -> dict[str, Any]:
    ratio = comparison.ratio(rates)
    return {
        "what": comparison.what,
        "ours": comparison.ours.title,
        "other": comparison.other.title,
        "is_peer": comparison.other.module != comparison.ours.module,
        "ratio": asdict(ratio),
        "at_least": comparison.at_least,
        "at_most": comparison.at_most,
        "is_met": comparison.is_met(ratio.median),
    }


def markdown(results: Mapping[str, Any]) -> str:
    """The table and what a reader must know of it, from what :func:`as_json` gives."""
    rates = {loop["title"]: loop["decisions_per_second"]["median"] for loop in results["loops"]}
    lines = [
        "| what | Counterweight | decisions/s | against | decisions/s | ratio | target |",
        "|---|---|---:|---|---:|---:|---:|",
    ]
    for row in results["comparisons"]:
        ours, other, ratio = row["ours"], row["other"], row["ratio"]
        cells = (
            row["what"],
            ours.removeprefix("Counterweight").lstrip(" ,"),
            _rounded(rates[ours]),
            other,
            _rounded(rates[other]),
            "**{}** ({} to {})".format(
                *map(_rounded, (ratio["median"], ratio["least"], ratio["most"]))
            ),
            _target(row),
        )
        lines.append(f"| {' | '.join(cells)} |")
    cores = "1 core" if results["cores"] == 1 else f"{results['cores']} cores"
    installed = [item for of in results["environments"].values() for item in of.items()]
    versions = ", ".join(f"{name} {version}" for name, version in dict.fromkeys(installed))
    run = (
        f"`{results['command']}` on {results['date']} at commit {results['commit']}: "
        f"{results['processor']}, {cores}; medians of {results['runs']} rounds of "
        f"{results['seconds']:g} s a loop; {versions}."
    )
    return "\n".join([*lines, "", run, "", NOTES])


def _rounded(number: float) -> str:
    """Three significant digits."""
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 100 else f"{number:.3g}"


def _target(row: Mapping[str, Any]) -> str:
    bounds = [("≥", row["at_least"]), ("≤", row["at_most"])]
    text = ", ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)
    return text if row["is_met"] else f"{text}, missed"


def write_between_markers(page: Path, text: str) -> bool:
    """Puts a text in place of what stands between a page's markers.

    Returns:
        False if there is no such page or it has no markers.

    Raises:
        ValueError: A marker is missing or stands in the wrong place.
    """
    if not page.is_file():
        return False
    old = page.read_text(encoding="utf-8")
    if BEGIN not in old and END not in old:
        return False
    head, found, rest = old.partition(BEGIN)
    _, ended, tail = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"{page}: {BEGIN} must stand before {END}")
    page.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}", encoding="utf-8")
    return True
