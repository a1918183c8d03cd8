"""Bots in other programs: the lines, every way to misbehave, and that nothing is left behind."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import pickle
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import card
from jsonschema import Draft202012Validator

from agents import Agent, ViewBatch, make_agent, play_match
from agents.process import PATIENCE, Process, ProcessError
from agents.program import ANSWER_LIMIT, ProgramError
from agents.protocol import HELLO, decision_request
from counterweight_env import Game, GameBatch, Phase
from counterweight_env.plugins import FallibleAgent

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "docs" / "examples" / "bot.py"
SCHEMA = json.loads(files("agents").joinpath("protocol.schema.json").read_text())

#: The beginning of every bot here: it reads requests and answers with the first legal action.
GOOD = """
import json, os, signal, subprocess, sys, time
def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)
def say(text):
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()
def ready():
    read()
    say('{"protocol": 1}')
def first(request):
    say(json.dumps({"action": request["legal"][0]}))
"""
LOYAL = "ready()\nwhile True:\n    first(read())\n"

Maker = Callable[..., Process]


def views_of(num_games: int = 1, rules: str = "classic", seed: int = 3) -> ViewBatch:
    """Return the movers' views of some fresh games."""
    return GameBatch(num_games, rules, seed=seed).views()


@pytest.fixture
def make_bot(tmp_path: Path) -> Iterator[Maker]:
    """Write a bot and return its player; all of them are closed at the end."""
    made: list[Process] = []

    def make(body: str, seconds: float = 20, start_seconds: float = 20) -> Process:
        path = tmp_path / f"bot{len(made)}.py"
        path.write_text(GOOD + textwrap.dedent(body))
        command = shlex.join([sys.executable, str(path)])
        made.append(Process(command, seconds, start_seconds))
        return made[-1]

    yield make
    for agent in made:
        agent.close()


def living(pid: int) -> bool:
    """Say whether a process runs; one that is dead but not yet waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def dies(pid: int) -> bool:
    """Say whether a killed process, whose parent is gone too, is dead within a while."""
    for _ in range(500):
        if not living(pid):
            return True
        time.sleep(0.01)
    return False


def children() -> set[int]:
    """Return all children of this process, dead ones that nobody waited for included."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


# Good bots -------------------------------------------------------------------------------------


def test_a_good_bot_answers_every_row(make_bot: Maker) -> None:
    agent = make_bot(LOYAL)
    assert isinstance(agent, Agent)
    assert isinstance(agent, FallibleAgent)
    views = views_of(40)
    actions, faults = agent.act_or_fault(views)
    assert faults == {}
    assert actions.dtype == np.int64
    assert actions.tolist() == views.legal.argmax(axis=1).tolist()
    assert agent.act(views).tolist() == actions.tolist()


@pytest.mark.parametrize("rules", ["classic", "exchange(ranks=6,suits=2,hand_size=3)"])
def test_a_match_is_that_of_the_same_player_in_python(make_bot: Maker, rules: str) -> None:
    class Lowest:
        name = "lowest"

        def act(self, views: ViewBatch) -> np.ndarray:
            return views.legal.argmax(axis=1)

    there = play_match(make_bot(LOYAL), "random", rules, deals=8, seed=4)
    here = play_match(Lowest(), "random", rules, deals=8, seed=4)
    assert (there.game_scores == here.game_scores).all()
    assert there.faults == (0, 0)


def test_the_program_starts_at_the_first_move_and_serves_them_all(make_bot: Maker) -> None:
    before = children()
    agent = make_bot(LOYAL)
    assert children() == before
    agent.act(views_of(2))
    started = children() - before
    assert len(started) == 1
    agent.act(views_of(2))
    assert children() - before == started
    agent.close()
    assert children() == before
    agent.close()
    agent.act(views_of(2))  # a closed one starts again
    assert len(children() - before) == 1


def test_a_program_that_answers_and_ends_has_answered(make_bot: Maker) -> None:
    agent = make_bot("ready(); first(read()); sys.exit(3)")
    _, faults = agent.act_or_fault(views_of(3))
    assert set(faults) == {1}
    assert "ended with status 3" in faults[1]


def test_much_error_output_is_no_fault(make_bot: Maker) -> None:
    agent = make_bot("""
        ready()
        while True:
            request = read()
            sys.stderr.write("x" * 1_000_000)
            first(request)
    """)
    assert agent.act_or_fault(views_of(3))[1] == {}


# Bad bots --------------------------------------------------------------------------------------

#: What a bot does when it is asked for a move -> the reason that its player gives.
MISDEEDS = {
    "sys.exit(0)": "the program ended with status 0$",
    "sys.exit('no idea')": "ended with status 1; its last error output: 'no idea'",
    "1 / 0": "ended with status 1; .*ZeroDivisionError",
    "os.kill(os.getpid(), signal.SIGSEGV)": "killed by signal SIGSEGV",
    "os.close(1); time.sleep(600)": "closed its output",
    "os.close(1); os.close(0); sys.stderr.write('bye'); sys.stderr.flush(); time.sleep(600)": (
        "closed its output; its last error output: 'bye'"
    ),
    "say('')": "not JSON",
    "say('TS')": "not JSON .*'TS'",
    "say('\\u201c')": "not JSON",
    "os.write(1, b'\\xff\\xfe{}\\n')": "not JSON .*utf-8",
    "say('[' * 4000)": "not JSON",
    "say('NaN')": "NaN is not JSON",
    "say('{\"action\": NaN}')": "NaN is not JSON",
    "say('{\"action\": ' + '9' * 4000 + '}')": "illegal action 9999|not JSON",
    "say('{\"action\": 1e999}')": "illegal action inf",
    "say('null')": "not an object with the one field",
    "say('[\"TS\"]')": "not an object with the one field",
    "say('{}')": "not an object with the one field",
    'say(\'{"move": "TS"}\')': "not an object with the one field",
    "say(json.dumps({'action': request['legal'][0], 'why': 1}))": "not an object with the one",
    'say(\'{"action": "TS", "action": "TS"}\')': "a field stands twice",
    "say('{\"action\": 3}')": "illegal action 3 in phase LEFT; legal: ",
    "say('{\"action\": true}')": "illegal action True",
    "say('{\"action\": null}')": "illegal action None",
    'say(\'{"action": ["TS"]}\')': "illegal action \\['TS'\\]",
    'say(\'{"action": "STOCK"}\')': "illegal action 'STOCK' in phase LEFT; legal: ",
    'say(\'{"action": ""}\')': "illegal action ''",
    "say(json.dumps({'action': request['legal'][0].lower()}))": "illegal action '..' in phase",
    "say(json.dumps({'action': [c for c in request['hand'] if c not in request['legal']][0]}))": (
        "illegal action '..' in phase LEFT; legal: "
    ),
    "say('x' * 5000)": "4,096 bytes without the end of a line",
    "say(' ' * 4096)": "4,096 bytes without",
    "sys.stdout.write('{' * 100_000_000)": "4,096 bytes without the end of a line",
    "os.write(1, b'{\"action\": \"%s\"}\\nmore' % request['legal'][0].encode())": "more than one",
    "\n    while True: say('{}')": "more than one line|not an object with the one field",
}


def left_first_views(count: int) -> ViewBatch:
    """Return views in phase LEFT in which not all of the hand is legal."""
    games = GameBatch(200, "classic", seed=9)
    legal = np.array([game.bit_count() for game in games.state["legal"].tolist()])
    return games.views(rows=np.flatnonzero((games.phase == Phase.LEFT) & (legal < 6))[:count])


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_a_misdeed_is_a_fault_and_the_next_row_goes_on(
    misdeed: str, make_bot: Maker, tmp_path: Path
) -> None:
    before, files_before = children(), open_files()
    done = tmp_path / "done"
    agent = make_bot(f"""
        ready()
        while True:
            request = read()
            if not os.path.exists({str(done)!r}):
                open({str(done)!r}, "w").close()
                {misdeed.strip()}
                time.sleep(600)
            first(request)
    """)
    views = left_first_views(3)
    actions, faults = agent.act_or_fault(views)
    assert set(faults) == {0}
    (reason,) = faults.values()
    assert re.search(MISDEEDS[misdeed], reason), reason
    assert reason.isprintable()
    assert len(reason) < 700
    assert actions[2] == views.legal[2].argmax()
    agent.close()
    assert children() == before
    assert open_files() == files_before


def test_a_late_second_line_spoils_the_next_decision(make_bot: Maker, tmp_path: Path) -> None:
    note = tmp_path / "note"
    agent = make_bot(f"""
        ready()
        request = read()
        first(request)
        time.sleep(0.1)
        first(request)
        open({str(note)!r}, "w").close()
        while True:
            first(read())
    """)
    agent.act(views_of(1))
    while not note.exists():
        time.sleep(0.01)
    _, faults = agent.act_or_fault(views_of(1))
    assert "output that nothing asked for: " in faults[0]


@pytest.mark.parametrize(
    "silence",
    [
        "time.sleep(600)",
        "while True: pass",
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
        "while True: sys.stderr.write('x' * 1000)",
        "sys.stdout.write('{'); sys.stdout.flush(); time.sleep(600)",
        "os.close(0); time.sleep(600)",
    ],
)
def test_silence_is_a_fault_at_the_time_limit(silence: str, make_bot: Maker) -> None:
    before = children()
    agent = make_bot(f"ready()\nread()\n{silence}\n", seconds=0.2)
    _, faults = agent.act_or_fault(views_of(1))
    assert faults[0].startswith("no answer within 0.2 s")
    assert children() == before


def test_a_bot_that_does_not_read_does_not_hold_up_the_writer(make_bot: Maker) -> None:
    agent = make_bot(LOYAL)
    agent.act(views_of(1))
    assert agent._program is not None
    os.kill(agent._program._process.pid, signal.SIGSTOP)  # the pipe fills up
    with pytest.raises(ProgramError, match=r"no answer within 0\.2 s and has not read the request"):
        agent._program.ask(b"x" * 10_000_000 + b"\n", 0.2)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("time.sleep(600)", "at its start: no answer within 0.3 s"),
        ("read(); say('{\"protocol\": 2}'); time.sleep(600)", "speaks protocol 2, not 1"),
        ("read(); say('{\"protocol\": true}'); time.sleep(600)", "speaks protocol True, not 1"),
        ("read(); say('hello'); time.sleep(600)", "at its start: not JSON"),
        ("say('welcome'); read(); time.sleep(600)", "at its start: "),
        ("import no_such_module", "at its start: .*ended with status 1; .*no_such_module"),
    ],
)
def test_a_bad_start_is_a_fault(body: str, message: str, make_bot: Maker) -> None:
    before = children()
    agent = make_bot(body, start_seconds=0.3 if "600" in body else 20)
    with pytest.raises(ProcessError, match=message):
        agent.act(views_of(1))
    assert children() == before


def test_a_program_that_cannot_be_run_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "bot"
    path.write_text("no program\n")
    path.chmod(0o755)
    _, faults = Process(str(path)).act_or_fault(views_of(1))
    assert "cannot be started" in faults[0]


def test_a_bot_that_only_fails_is_given_up(make_bot: Maker, tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    agent = make_bot(f"open({str(starts)!r}, 'a').write('x')\nsys.exit(1)\n")
    _, faults = agent.act_or_fault(views_of(PATIENCE + 5))
    assert len(faults) == PATIENCE + 5
    assert "ended with status 1" in faults[PATIENCE - 1]
    assert faults[PATIENCE] == f"not asked any more after {PATIENCE} faults in a row"
    assert len(starts.read_text()) == PATIENCE


def test_faults_with_good_answers_between_are_not_held_against_a_bot(make_bot: Maker) -> None:
    agent = make_bot("ready(); first(read()); sys.exit(3)")
    _, faults = agent.act_or_fault(views_of(4 * PATIENCE))
    assert set(faults) == set(range(1, 4 * PATIENCE, 2))


@pytest.mark.parametrize("rules", ["classic", "exchange"])
def test_a_match_goes_on_after_a_fault_with_the_reason_in_the_result(
    make_bot: Maker, rules: str
) -> None:
    agent = make_bot("""
        ready()
        while True:
            request = read()
            if request["stock_size"] < 10:
                sys.exit("I hate endings")
            first(request)
    """)
    before = children()
    result = play_match(agent, "random", rules, deals=3, seed=1)
    assert result.faults == (6, 0)
    assert result.losses == 6
    assert children() == before


# Nothing is left -------------------------------------------------------------------------------

CHILD = "[sys.executable, '-c', 'import time; time.sleep(600)']"


@pytest.mark.parametrize(
    "start_child",
    [
        f"child = subprocess.Popen({CHILD}).pid",
        f"child = subprocess.Popen({CHILD}, process_group=0).pid"
        if sys.version_info >= (3, 11)
        else f"child = subprocess.Popen({CHILD}, preexec_fn=os.setpgrp).pid",
        f"child = subprocess.Popen({CHILD}, start_new_session=True).pid",
    ],
    ids=["same group", "own group", "own session"],
)
@pytest.mark.parametrize("ending", ["sys.exit(5)", "time.sleep(600)", "first(request)"])
def test_children_of_a_bot_end_with_it(
    start_child: str, ending: str, make_bot: Maker, tmp_path: Path
) -> None:
    note = tmp_path / "pid"
    agent = make_bot(
        f"""
        ready()
        request = read()
        {start_child}
        open({str(note)!r}, "w").write(str(child))
        {ending}
        read()
        """,
        seconds=1 if "600" in ending else 20,
    )
    _, faults = agent.act_or_fault(views_of(1))
    # The child holds the pipes open: the death of the bot is noticed all the same.
    assert (0 in faults) == ("first" not in ending)
    if "exit" in ending:
        assert "ended with status 5" in faults[0]
    child = int(note.read_text())
    if not faults:
        assert living(child)
        agent.close()
    assert dies(child)


def test_the_program_ends_with_its_player(make_bot: Maker, tmp_path: Path) -> None:
    path = tmp_path / "loyal.py"
    path.write_text(GOOD + LOYAL)
    before, files_before = children(), open_files()
    agent = Process(shlex.join([sys.executable, str(path)]))
    agent.act(views_of(1))
    assert children() != before
    del agent
    gc.collect()
    assert children() == before
    assert open_files() == files_before


@pytest.mark.parametrize("last", ["", "raise KeyboardInterrupt", "sys.exit(3)"])
def test_the_program_ends_with_the_interpreter(last: str, tmp_path: Path) -> None:
    path = tmp_path / "stubborn.py"
    # It goes on when its input ends, so only being killed ends it.
    path.write_text(GOOD + "ready()\nfirst(read())\ntime.sleep(600)\n")
    command = shlex.join([sys.executable, str(path)])
    script = f"""
import sys
from agents import make_agent
from counterweight_env import GameBatch
agent = make_agent("exec:" + {command!r})
agent.act(GameBatch(1, seed=1).views())
print(agent._program._process.pid, flush=True)
{last}
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False
    )
    assert dies(int(run.stdout))
    assert "Warning" not in run.stderr


def test_an_interrupt_ends_the_program(make_bot: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    before = children()
    agent = make_bot(LOYAL)
    agent.act(views_of(1))

    def interrupted(line: bytes, seconds: float) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(agent._program, "ask", interrupted)
    with pytest.raises(KeyboardInterrupt):
        agent.act(views_of(1))
    assert children() == before
    agent.act(views_of(1))  # and no answer to an older request is in the way


def test_many_faults_leak_nothing(make_bot: Maker) -> None:
    agent = make_bot("ready(); first(read()); sys.exit(3)")
    before, files_before = children(), open_files()
    agent.act_or_fault(views_of(40))
    agent.close()
    assert children() == before
    assert open_files() == files_before


def test_a_copy_starts_a_program_of_its_own(make_bot: Maker) -> None:
    before = children()
    agent = make_bot(LOYAL)
    agent.act(views_of(1))
    copy = pickle.loads(pickle.dumps(agent))
    assert copy.name == agent.name
    copy.act(views_of(1))
    assert len(children() - before) == 2
    copy.close()
    agent.act(views_of(1))


def test_a_forked_process_neither_uses_nor_ends_the_program(make_bot: Maker) -> None:
    agent = make_bot(LOYAL)
    agent.act(views_of(1))
    program = agent._program
    assert program is not None
    program._owner += 1  # as a forked child sees it
    agent.act(views_of(1))
    assert agent._program is not program
    program.end()
    assert living(program._process.pid)
    program._owner -= 1
    program.end()
    assert not living(program._process.pid)


# By name ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("BOT", []),
        ("BOT --depth=3", ["--depth=3"]),
        ("BOT --list=1,2,3 a=b", ["--list=1,2,3", "a=b"]),
        ("BOT 'two words' a\\ b", ["two words", "a b"]),
        ("BOT c++ +x 1+1", ["c++", "+x", "1+1"]),
        ("command=BOT --depth=3", ["--depth=3"]),
        ("command=BOT --depth=3,seconds=30", ["--depth=3"]),
        ("seconds=30,start_seconds=40,command=BOT c++", ["c++"]),
    ],
)
def test_a_command_reads_as_a_shell_reads_it(rest: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "bot"
    path.write_text(f"#!{sys.executable}\n" + GOOD + "sys.exit(json.dumps(sys.argv[1:]))\n")
    path.chmod(0o755)
    text = f"exec:{rest.replace('BOT', str(path))}"
    agent = make_agent(text)
    assert isinstance(agent, Process)
    with pytest.raises(ProcessError) as error:
        agent.act(views_of(1))
    assert json.dumps(words) in str(error.value).replace("\\\\", "\\")
    assert make_agent(agent.name).name == agent.name, "the name makes the same player again"
    wrapped = make_agent(f"{text}+exact:nodes=5")
    assert wrapped.name.endswith("+exact:nodes=5")
    assert wrapped.agent.name == agent.name  # type: ignore[attr-defined]


def test_names_are_those_of_the_text() -> None:
    for text in ("exec:cat", "exec:cat -u", "exec:command=cat -u,seconds=2"):
        assert make_agent(text).name == text
    assert make_agent("exec:command=cat,seconds=5").name == "exec:cat"
    assert make_agent("exec:command=cat,start_seconds=2,seconds=0.5").name == (
        "exec:command=cat,seconds=0.5,start_seconds=2"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exec", "command"),
        ("exec:", "exec:"),
        ("exec:no_such_program --x", "no program 'no_such_program'"),
        ("exec:cat+nothing", "no program 'cat\\+nothing'"),
        ("exec:cat 'open", "bad command .*quotation"),
        ("exec:command=cat,seconds=0", "seconds must be more than 0 and finite, got 0"),
        ("exec:command=cat,seconds=-1", "seconds must be more than 0"),
        ("exec:command=cat,seconds=1e999", "seconds must be more than 0 and finite, got inf"),
        ("exec:command=cat,seconds=soon", "seconds must be a number, got 'soon'"),
        ("exec:command=cat,start_seconds=True", "start_seconds must be a number, got True"),
        ("exec:command=cat,speed=1", "speed"),
        ("exec:command=3", "command must be a str, got 3"),
        ("exec:/", "may not be executed"),
    ],
)
def test_bad_commands_are_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_agent(text)


def test_a_system_without_process_groups_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.process.os.name", "nt")
    with pytest.raises(ValueError, match="process groups of POSIX, which nt lacks"):
        Process("cat")


# The lines -------------------------------------------------------------------------------------

RULES = (
    "classic",
    "exchange",
    "classic(open_discards=False)",
    "exchange(open_discards=False,blocked=discard)",
    "classic(ranks=6,suits=2,hand_size=3,blocked=discard)",
    "exchange(ranks=5,suits=3,hand_size=3,open_discards=False)",
    "classic(ranks=3,suits=4,hand_size=2)",
)


def walk(rules: str, num_games: int, seed: int) -> Iterator[ViewBatch]:
    """Yield the movers' views at every decision of some random games."""
    games = GameBatch(num_games, rules, seed=seed)
    while not games.done.all():
        rows = np.flatnonzero(~games.done)
        yield games.views(rows=rows)
        games.step(games.random_actions(rows), rows=rows)


def requests_of(views: ViewBatch) -> list[dict[str, Any]]:
    return [decision_request(views[i], int(views.random_bits[i])) for i in range(len(views))]


@pytest.mark.parametrize("rules", RULES)
def test_every_request_of_random_games_fits_the_schema(rules: str) -> None:
    validator = Draft202012Validator({**SCHEMA, "anyOf": [{"$ref": "#/$defs/decide"}]})
    phases = set()
    for views in walk(rules, 8 if "ranks" not in rules else 60, seed=6):
        for request in requests_of(views):
            validator.validate(json.loads(json.dumps(request)))
            phases.add(request["phase"])
    classic = rules.startswith("classic")
    assert phases == {"LEFT", "RIGHT", "DISCARD"} | ({"REFILL"} if classic else set())


def test_the_schema_is_one_and_refuses_what_is_not_said() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    validator = Draft202012Validator(SCHEMA)
    assert validator.is_valid(HELLO)
    request = requests_of(views_of(1))[0]
    assert validator.is_valid(request)
    for field in request:
        assert not validator.is_valid({k: v for k, v in request.items() if k != field}), field
        assert not validator.is_valid({**request, field: {"x": 1}}), field
    assert not validator.is_valid({**request, "more": 1})
    assert not validator.is_valid({**request, "phase": "RIGHT"}), "nothing is chosen"
    assert not validator.is_valid({**request, "exhausted": True}), "there is a stock"
    assert not validator.is_valid({**request, "table": ["TS", "3H", "4H"]})
    for name, good, bad in (
        ("ready", {"protocol": 1}, {"protocol": 2}),
        ("move", {"action": "TS"}, {"action": 3}),
    ):
        answer = Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})
        assert answer.is_valid(good)
        assert not answer.is_valid(bad)
        assert not answer.is_valid({**good, "more": 1})


@pytest.mark.parametrize("rules", RULES)
def test_a_request_holds_nothing_hidden(rules: str) -> None:
    differing = 0
    for views in walk(rules, 4, seed=8):
        worlds = views.determinize(1)
        differing += int((worlds.hands.sum(axis=1) != views.records["hand"].sum(axis=1)).sum())
        others = worlds.views(players=views.players)
        others.random_bits = views.random_bits
        assert requests_of(others) == requests_of(views)
    assert differing > 0


def test_a_request_in_full() -> None:
    game = Game.from_position(
        [["JS", "2H", "KC", "AC"], ["5C", "7D", "QC", "3D"]],
        ["TS", "3H"],
        stock=["9D", "8D", "4C", "6C"],
        discards=[["AD", "4D"], []],
        to_move=1,
        rules="classic(hand_size=4)",
    )
    game.step(card("QC"))  # no couple: it goes onto the discard, and 9D comes
    game.step(card("JS"))
    digest = hashlib.sha256((7).to_bytes(8, "little")).digest()
    request = decision_request(game.view(0), 7)
    assert len(request.pop("buried")) == 52 - 4 - 4 - 2 - 2 - 4
    assert request == {
        "type": "decide",
        "protocol": 1,
        "rules": {
            "text": "classic(hand_size=4)",
            "variant": "classic",
            "ranks": 13,
            "suits": 4,
            "hand_size": 4,
            "open_discards": True,
            "blocked": "pass",
        },
        "player": 0,
        "dealer": 0,
        "turn": 1,
        "phase": "RIGHT",
        "second_refill": False,
        "table": ["TS", "3H"],
        "chosen": "JS",
        "hand": ["AC", "KC", "2H", "JS"],
        "own_discard": ["AD", "4D"],
        "opponent_discard": ["QC"],
        "opponent_discard_size": 1,
        "opponent_hand_size": 4,
        "known_in_opponent_hand": [],
        "opponent_blocked": True,
        "stock_size": 3,
        "exhausted": False,
        "legal": ["2H"],
        "random": digest[0] + (digest[1] << 8) + (digest[2] << 16) + (digest[3] << 24),
    }


def test_a_line_of_the_longest_answer_is_taken(make_bot: Maker) -> None:
    agent = make_bot(f"""
        ready()
        answer = json.dumps({{"action": read()["legal"][0]}})
        say(answer + " " * ({ANSWER_LIMIT - 1} - len(answer)))
        read()
    """)
    assert agent.act_or_fault(views_of(1))[1] == {}


# The example -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rules",
    ["classic", "exchange", "exchange(open_discards=False,blocked=discard)", RULES[4], RULES[6]],
)
def test_the_example_plays_and_beats_random(rules: str) -> None:
    agent = make_agent(f"exec:{shlex.join([sys.executable, '-I', str(EXAMPLE)])}")
    result = play_match(agent, "random", rules, deals=25, seed=1)
    assert result.faults == (0, 0)
    if rules in ("classic", "exchange"):
        assert result.score > 0.5
    agent.close()  # type: ignore[attr-defined]


def test_the_example_is_short_and_needs_nothing() -> None:
    text = EXAMPLE.read_text()
    imported = {
        line.split()[1] for line in text.splitlines() if line.startswith(("import", "from"))
    }
    assert imported <= set(sys.stdlib_module_names)
    assert len(text.splitlines()) < 80


def test_the_page_shows_real_lines() -> None:
    page = (ROOT / "docs" / "bots.md").read_text()
    validator = Draft202012Validator(SCHEMA)
    shown = [json.loads(line) for line in page.splitlines() if line.startswith('{"type"')]
    assert [line["type"] for line in shown] == ["hello", "decide"]
    for line in shown:
        validator.validate(line)
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert documented == set(SCHEMA["$defs"]["decide"]["properties"])
