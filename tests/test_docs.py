"""What the README and the docs show is true: their code and commands run, their links lead on."""

from __future__ import annotations

import argparse
import importlib
import inspect
import io
import json
import pydoc
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
import pytest
from contrast import contrast

import agents
import counterweight_env as cw
from agents import make_agent
from agents.arena import play_deals
from counterweight_env.envs import aec, single, vector
from counterweight_env.plugins import AGENT_GROUP
from counterweight_env.record import append_records
from train.cli import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """Every fenced block of a language, with the line where it begins."""
    text = page.read_text(encoding="utf-8")
    return [
        (text[: match.start()].count("\n") + 1, match.group(1))
        for match in re.finditer(rf"^```{language}\n(.*?)^```", text, re.S | re.M)
    ]


#: Where the blocks of each language are tested.
TESTED: Final = {
    "python": "below",
    "bash": "below",
    "toml": "below",
    "py": "in test_open_spiel.py, where OpenSpiel is installed",
    "json": "in test_process.py",
    "bibtex": "below, as far as it can be wrong",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_has_a_language_that_is_tested(page: Path) -> None:
    fences = re.findall(r"^ *```(.*)$", page.read_text(encoding="utf-8"), re.M)
    assert not any(fences[1::2]), f"{page}: a block is not closed"
    assert set(fences[::2]) <= set(TESTED), page


# --- Python -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(code, id=f"{page.name}:{line}")
        for page in PAGES
        for line, code in blocks(page, "python")
        if page.name != "index.md" or code not in README  # run once
    ],
)
def test_python_in_the_docs_runs(code: str) -> None:
    exec(compile(code, "<docs>", "exec"), {"__name__": "__docs__"})


def test_the_site_begins_with_what_the_readme_shows() -> None:
    site = (DOCS / "index.md").read_text(encoding="utf-8")
    shown = re.findall(r"(^<!-- command: test -->\n)?(^```.*?^```)", README, re.S | re.M)
    assert len(shown) == 4
    for is_test_command, block in shown:
        if not is_test_command:
            assert block in site, f"docs/index.md has this otherwise than the README:\n{block}"


def test_the_readme_is_a_screen_and_a_half() -> None:
    assert len(README.splitlines()) <= 75
    pictures = re.findall(r'^<img .*alt=".+" src="(.+)">$', README, re.M)
    assert pictures == ["docs/images/table.svg", "docs/benchmarks/peers-short.svg"]
    for picture in pictures:
        assert (ROOT / picture).is_file()


def test_the_entry_point_in_the_docs_is_of_the_right_group() -> None:
    tomllib = pytest.importorskip("tomllib")
    [(_, block)] = blocks(DOCS / "agents.md", "toml")
    assert list(tomllib.loads(block)["project"]["entry-points"]) == [AGENT_GROUP]


# --- Commands -----------------------------------------------------------------------------------

#: How commands of other programs begin, and why none is run here.
OTHERS: Final = {
    "python3 -m venv": "makes an environment for what follows",
    "pip install": "installs; CI runs the README's commands as they stand",
    "python -m pytest": "is this",
    "pytest": "is this",
    "ruff": "CI runs it",
    "mypy": "CI runs it",
    "mkdocs": "CI runs it",
    "jupyter": "CI runs the notebooks",
    "ray start": "needs Ray; test_rllib.py plays on a cluster of its own",
    "python docs/examples/": "test_examples.py and test_process.py run the examples",
}
#: What stands in a command here, so that it takes seconds at most; by subcommand, then by option.
SHORTER: Final[dict[str, dict[str, list[str]]]] = {
    "arena": {"--deals": ["2"], "--workers": ["1"], "--no-progress": []},
    "play": {},
    "render": {"--nodes": ["100"]},
    "replay": {},
    "solve": {"--nodes": ["1000"]},
    "sprt": {"--max-deals": ["20"], "--workers": ["1"], "--no-progress": []},
    "train": {
        "--steps": ["64"],
        "--num-envs": ["2"],
        "--eval-deals": ["2"],
        "--workers": ["1"],
        "--no-progress": [],
        "--set": ["ending_games=8", "ending_epochs=1", "select_deals=2", "hidden=8"],
    },
}
#: Commands that are only read by the real parser, by words they have, and why.
ONLY_READ: Final = {
    "train-rllib": "needs Ray; test_rllib.py runs it",
    "--ray": "needs Ray; test_rllib.py runs it",
    "exploit": "solves; test_exploit.py runs it on small decks",
    "speed": "measures; test_cli.py runs it",
    "evaluate": "needs a trained network; test_train.py makes one",
    "export": "needs a trained network; test_train.py makes one",
    "benchmarks": "measures; test_benchmarks.py runs its parts",
}


def commands(block: str) -> list[list[str]]:
    """The commands of a shell block as words, without the folder of the program."""
    found = []
    for line in re.split(r"\n|&&", block.replace("\\\n", " ")):
        words = shlex.split(line, comments=True)
        if words:
            found.append([re.sub(r"^\.venv[\w-]*/bin/", "", words[0]), *words[1:]])
    return found


def is_other(words: Sequence[str]) -> bool:
    return " ".join(words).startswith(tuple(OTHERS))


def shorter(words: Sequence[str]) -> list[str]:
    """The arguments of a ``counterweight`` command, with those of ``SHORTER`` added or instead.

    One value takes the place of the one given; several come after those given.
    """
    arguments = list(words)
    for option, values in SHORTER[arguments[0]].items():
        if option not in arguments:
            arguments += [option, *values]
            continue
        place = arguments.index(option) + 1
        if len(values) == 1:
            arguments[place] = values[0]
        else:
            while place < len(arguments) and not arguments[place].startswith("--"):
                place += 1
            arguments[place:place] = values
    return arguments


class FoundParserError(Exception):
    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__(parser)
        self.parser = parser


def parser_of(run: Callable[[], Any]) -> argparse.ArgumentParser:
    """The parser that a program makes for itself, caught before it reads anything."""

    def stop(self: argparse.ArgumentParser, *_: Any) -> None:
        raise FoundParserError(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", stop)
        with pytest.raises(FoundParserError) as caught:
            run()
    return caught.value.parser


def program(words: Sequence[str]) -> tuple[argparse.ArgumentParser, list[str]]:
    """The parser of a command and the arguments it gets.

    Raises:
        AssertionError: The command is neither ours nor one of ``OTHERS``.
    """
    if words[0] == "counterweight":
        return parser_of(main), list(words[1:])
    is_module = words[:2] == ["python", "-m"] and words[2].startswith("benchmarks.")
    assert is_module, f"what is {shlex.join(words)!r}? Run it, or name it in OTHERS"
    return parser_of(importlib.import_module(words[2]).main), list(words[3:])


def complaint(words: Sequence[str]) -> str | None:
    """What the real parser has against a command; None if nothing."""

    def refuse(self: argparse.ArgumentParser, message: str) -> None:
        raise ValueError(message)

    parser, arguments = program(words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "error", refuse)
        try:
            parser.parse_args(arguments)
        except ValueError as error:
            return str(error)
    return None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, which becomes the current one, with the files that commands in the docs name."""
    monkeypatch.chdir(tmp_path)
    for name in ("examples", "images"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(DOCS / name, tmp_path / "docs" / name, ignore=ignored)
    shutil.copy(DOCS / "examples" / "bot.py", tmp_path / "mybot")
    (tmp_path / "mybot").chmod(0o755)
    (tmp_path / "position.json").write_text(cw.Game(seed=0).to_json(), encoding="utf-8")
    players = make_agent("greedy"), make_agent("random")
    played = play_deals(players, cw.CLASSIC, seed=0, first_deal=0, count=2, record=True)
    for name in ("games.jsonl", "FILE"):
        append_records(tmp_path / name, played.records)
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page, "bash")],
    ids=lambda page: page.name,
)
def test_commands_in_the_docs_run(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for line, block in blocks(page, "bash"):
        monkeypatch.chdir(folder)
        for words in commands(block):
            place = f"{page.name}:{line}: {shlex.join(words)}"
            if words[0] == "cd":
                monkeypatch.chdir(words[1])
                continue
            if words[0] == "cp":
                shutil.copy(*words[1:])
                continue
            if is_other(words):
                continue
            assert complaint(words) is None, place
            if any(word in ONLY_READ or word.split(".")[0] in ONLY_READ for word in words):
                continue
            assert words[1] in SHORTER, f"{place}: name it in SHORTER or ONLY_READ"
            monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
            status = main(shorter(words[1:]))
            assert status == 0, f"{place}\n{capsys.readouterr().err}"
    for made in (folder / "docs").rglob("*.svg"):
        kept = ROOT / made.relative_to(folder)
        assert made.read_text(encoding="utf-8") == kept.read_text(encoding="utf-8"), kept


def inline_commands(page: Path) -> list[str]:
    """What stands between backticks in a page's text and begins like one of our commands."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    found = re.findall(r"`((?:counterweight|python -m) [^`]+)`", text)
    return [" ".join(command.split()) for command in found]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if inline_commands(page)], ids=lambda page: page.name
)
def test_commands_in_sentences_exist(page: Path) -> None:
    for command in inline_commands(page):
        words = shlex.split(command)
        if is_other(words):
            continue
        parser, arguments = program(words)
        assert parser._subparsers is None or arguments, command
        if parser._subparsers is not None and not arguments[0].startswith("--"):
            choices = parser._subparsers._group_actions[0].choices
            assert isinstance(choices, dict)
            assert arguments[0] in choices, command
            parser = choices[arguments[0]]
        for word in arguments:
            if word.startswith("--"):
                assert word in parser._option_string_actions, f"{command}: no {word}"
        if arguments == ["--version"]:
            continue  # ends the program
        problem = complaint(words)
        if problem is not None:  # a sentence may name an option and leave the rest to the reader
            partial = re.search(r"arguments are required|expected (one|at least one)", problem)
            assert partial, f"{page.name}: {command}: {problem}"


def test_a_wrong_command_is_seen() -> None:
    assert complaint(["counterweight", "arena", "random", "greedy"]) is None
    assert "nonsense" in str(complaint(["counterweight", "nonsense"]))
    assert "--nonsense" in str(complaint(["counterweight", "arena", "random", "--nonsense"]))
    assert "--deals" in str(complaint(["counterweight", "arena", "random", "--deals", "x"]))
    with pytest.raises(AssertionError, match="name it in OTHERS"):
        complaint(["nonsense"])


def test_a_command_is_made_shorter() -> None:
    assert commands('.venv-x/bin/counterweight arena "a b" \\\n c  # why\n') == [
        ["counterweight", "arena", "a b", "c"]
    ]
    assert commands("cd a && ruff b") == [["cd", "a"], ["ruff", "b"]]
    short = shorter(["arena", "--deals", "1000", "random", "--rules", "both"])
    assert " ".join(short) == "arena --deals 2 random --rules both --workers 1 --no-progress"
    parsed = parser_of(main).parse_args(shorter(["train", "--set", "seed=3", "--preset", "quick"]))
    assert parsed.set == ["seed=3", *SHORTER["train"]["--set"]]
    assert parsed.preset == "quick"


# --- Links --------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for text, target in re.findall(r"\[([^\]]*)\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("http:", "https:")):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name}: [{text}]({target})"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.M)
            slugs = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings]
            assert anchor in slugs, f"{page.name}: [{text}]({target}), headings {slugs}"


def test_the_readme_has_the_commands_that_ci_runs() -> None:
    for name in ("train", "test"):
        assert re.search(rf"<!-- command: {name} -->\n```bash\n.+?^```", README, re.S | re.M), name


def test_every_page_is_in_the_sites_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r": ([\w/-]+\.md)$", navigation, re.M)
    assert sorted(listed) == sorted(
        page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")
    )


def test_the_sites_style_is_there_and_readable() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    [name] = re.findall(r"^extra_css:\n  - (.+)$", settings, re.M)
    style = (DOCS / name).read_text(encoding="utf-8")
    assert not re.search(r"https?:|@import|url\(", style)
    assert settings.count("primary: custom") == 2
    bar = re.findall(r"--md-primary-[fb]g-color: (.+);", style)
    links = re.findall(r'scheme="(\w+)"\] \{\n  --md-typeset-a-color: (.+);', style)
    papers = {"default": "#ffffff", "slate": "#1e2129"}  # the theme's
    assert {scheme for scheme, _ in links} == set(papers)
    for ink, paper in [tuple(bar), *((colour, papers[scheme]) for scheme, colour in links)]:
        assert contrast(ink, paper) >= 4.5, (ink, paper)
    # A name in a table is not broken in its middle.
    assert re.search(r"td code,\n.*th code \{\n  word-break: normal;", style)
    assert re.search(r"\.whole \{\n  white-space: nowrap;", style)


def test_options_and_intervals_are_kept_in_one_piece_on_the_site(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("mkdocs", "mkdocs.structure", "mkdocs.structure.files"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["mkdocs.structure.files"].File = object  # type: ignore[attr-defined]
    hooks = runpy.run_path(str(ROOT / ".ci" / "site_hooks.py"))

    def made(html: str) -> Any:
        return hooks["on_page_content"](html, None)

    whole = '<span class="whole">{}</span>'
    assert made("<code>x\n--max-deals -1 a-b</code>") == (
        f"<code>x\n{whole.format('--max-deals')} {whole.format('-1')} a-b</code>"
    )
    interval = "(-0.5 to +12%)"
    assert made(f"<td>1 {interval}</td>") == f"<td>1 {whole.format(interval)}</td>"
    for other in (
        "<p>a --b (0.1 to 0.2)</p>",
        "<pre><code>x --y</code></pre>",
        "<code><i>x</i> --y</code>",
    ):
        assert made(other) == other


@pytest.mark.parametrize("package", [cw, agents], ids=lambda package: package.__name__)
def test_the_reference_has_every_public_name(package: ModuleType) -> None:
    reference = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    for name in package.__all__:
        assert re.search(rf"\b{name}\b", reference), name


def test_the_reference_names_what_is_there() -> None:
    for page in (DOCS / "api").glob("*.md"):
        for name, options in re.findall(r"^::: ([\w.]+)\n((?: +.*\n)*)", page.read_text(), re.M):
            found = pydoc.locate(name)
            assert found is not None, f"{page.name}: there is no {name}"
            listed = re.search(r"members: \[(.*)\]", options)
            for member in listed[1].split(", ") if listed else []:
                assert hasattr(found, member), f"{page.name}: {name} has no {member}"


# --- Facts --------------------------------------------------------------------------------------


def table(page: Path, name: str) -> list[list[str]]:
    """The rows of the table between the marks of this name, without its head."""
    text = page.read_text(encoding="utf-8")
    marked = re.search(rf"<!-- {name}: begin -->\n(.*?)<!-- {name}: end -->", text, re.S)
    assert marked is not None
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in marked.group(1).splitlines()[2:]
    ]


def test_the_environments_are_specified_as_they_are() -> None:
    facts = dict(table(DOCS / "environments.md", "specification"))
    env = cw.env()
    space = env.observation_space("player_0")
    mask = space["action_mask"]
    assert f"`{space['observation']}`" in facts["observation space"]
    assert sorted(space.spaces) == ["action_mask", "observation"]
    assert f"`{env.action_space('player_0')}`" in facts["action space"]
    assert f"({mask.shape[0]},) {mask.dtype}" in facts["action mask"]
    assert ", ".join(f"`{agent}`" for agent in env.possible_agents) in facts["agents"]
    assert f"`{env.metadata['name']}`" in facts["AEC"]
    assert facts["parallel API"] == "no"
    assert not env.metadata["is_parallelizable"]
    modes = re.findall(r'"(\w+)"', facts["render modes"])
    assert modes == env.metadata["render_modes"] == single.CounterweightEnv.metadata["render_modes"]
    assert modes[:2] == vector.CounterweightVectorEnv.metadata["render_modes"]
    assert f"at most {cw.CLASSIC.max_decisions};" in facts["decisions a game"]


@pytest.mark.parametrize("rules", ["classic", "exchange"])
def test_a_random_game_is_as_long_as_the_docs_say(rules: str) -> None:
    facts = dict(table(DOCS / "environments.md", "specification"))
    said = re.search(rf"(\d+) (?:on average )?in {rules}", facts["decisions a game"])
    assert said is not None
    games = cw.GameBatch(2000, rules, seed=1)
    decisions = 0
    while not games.done.all():
        decisions += int((~games.done).sum())
        games.step(np.where(games.done, 0, games.random_actions()))
    assert decisions / 2000 == pytest.approx(float(said[1]), abs=1.0)  # standard error below 0.25


def test_the_environments_arguments_are_as_they_are() -> None:
    made = {
        "AEC": aec.raw_env,
        "Env": single.CounterweightEnv,
        "VectorEnv": vector.CounterweightVectorEnv,
    }
    listed: dict[str, dict[str, str]] = {name: {} for name in made}
    for argument, default, names, _ in table(DOCS / "environments.md", "arguments"):
        for name in names.split(", "):
            listed[name][argument.strip("`")] = default.strip("`").replace('"', "'")
    for name, kind in made.items():
        signature = inspect.signature(kind).parameters
        assert listed[name] == {key: repr(value.default) for key, value in signature.items()}


def halved(cell: str) -> str:
    """``10 (8 to 13)`` as ``10 ± 3``: the longer half of the interval."""
    parts = re.fullmatch(r"(-?\d+) \((-?\d+) to (-?\d+)\)", cell)
    if parts is None:
        return cell
    middle, low, high = map(int, parts.groups())
    return f"{middle} ± {max(middle - low, high - middle)}"


def test_the_readmes_ladder_is_that_of_the_players() -> None:
    """Elo of both rule sets, row by row; the README may leave players out."""
    ladder = (DOCS / "agents.md").read_text(encoding="utf-8")
    measured = {}
    for rules in ("classic", "exchange"):
        after = ladder.partition(f"\n**{rules}**\n")[2]
        deals = re.search(r"^(\d+) duplicate deals", after, re.M)
        assert deals is not None
        assert f"from {deals[1]} held-out deals" in README
        table = after.partition("\n\nScores of")[0]
        measured[rules] = dict(re.findall(r"^\| (`.+?`) \| (.+?) \|", table, re.M))
    rows = re.findall(r"^\| (`.+?`) \| ([^|]+) \| ([^|]+) \|$", README, re.M)
    assert len(rows) >= 5
    for player, classic, exchange in rows:
        assert classic == halved(measured["classic"][player]), player
        assert exchange == halved(measured["exchange"][player]), player
    elo = [int(row[1].split()[0]) + int(row[2].split()[0]) for row in rows]
    assert elo == sorted(elo, reverse=True)  # on average


def test_numbers_of_the_pages_are_the_same_in_the_notebooks() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    quoted = []
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "markdown":
                quoted += re.findall(r"(\d\.\d+) \(interval (\d.+?)\)", "".join(cell["source"]))
    assert quoted
    for value, interval in quoted:
        assert f"{value} ({interval})" in pages


def test_the_citation_names_the_version() -> None:
    version = re.escape(cw.__version__)
    assert re.search(rf"^version: {version}$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert re.search(rf"version = {{{version}}}", (DOCS / "cite.md").read_text())
