"""A person at the terminal: scripted games, and what they get to see."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from endings import best_result
from helpers import RANK_LETTERS, SUIT_LETTERS, card, cards, name

from agents import Agent, Random, ViewBatch
from agents.human import TerminalGame
from agents.narrate import describe_turn
from counterweight_env import Game, GameBatch, Phase
from counterweight_env.record import Fault, read_records, replay
from train.cli import main

SYMBOLS = "♣♦♥♠"
SMALL = "(ranks=5,suits=3,hand_size=3)"
RULES = (
    "classic",
    "exchange",
    "classic(open_discards=False)",
    "exchange(open_discards=False,blocked=discard)",
    "classic(ranks=6,suits=2,hand_size=3,blocked=discard)",
)


def shown_cards(text: str, ranks: int = 13) -> set[int]:
    """Return the cards that a text shows."""
    found = re.findall(rf"(10|[{RANK_LETTERS}])([{SYMBOLS}])", text)
    return {
        card(("T" if rank == "10" else rank) + SUIT_LETTERS[SYMBOLS.index(suit)], ranks)
        for rank, suit in found
    }


class Valuer:
    """Values every action by its number, and remembers nothing."""

    name = "valuer"

    def act(self, views: ViewBatch) -> np.ndarray:
        return views.legal.argmax(axis=1)

    def values(self, views: ViewBatch) -> np.ndarray:
        numbers = np.arange(views.legal.shape[1]) / 100
        return np.where(views.legal, numbers, np.nan)


class Quitter:
    """A player that gives up at its second decision."""

    name = "quitter"

    def __init__(self) -> None:
        self.asked = 0

    def act(self, views: ViewBatch) -> np.ndarray:
        raise AssertionError("a match asks act_or_fault")

    def act_or_fault(self, views: ViewBatch) -> tuple[np.ndarray, dict[int, str]]:
        self.asked += 1
        return views.legal.argmax(axis=1), {} if self.asked == 1 else {0: "no more"}


class Script:
    """A terminal: answers questions from a function of the game, and keeps what is shown."""

    def __init__(
        self,
        games: GameBatch,
        seat: int,
        choose: Callable[[Game], str],
        opponent: Agent | None = None,
        hints: Agent | None = None,
        always_hint: bool = False,
    ) -> None:
        self.choose = choose
        self.shown: list[str] = []
        self.prompts: list[str] = []
        self.play = TerminalGame(
            games,
            seat,
            opponent or Random(),
            hints=lambda: hints or Valuer(),
            always_hint=always_hint,
            read=self.read,
            write=self.shown.append,
        )

    def read(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.choose(self.play.game)

    def run(self) -> str:
        """Play, and return all that was shown."""
        self.play.play()
        return "\n".join(self.shown)


def lowest(game: Game) -> str:
    """Choose the lowest legal action, by its text."""
    action = game.legal_actions()[0]
    if action >= game.rules.deck_size:
        return "S"
    return name(action, game.rules.ranks).lower()


def answers(words: Iterable[str]) -> Callable[[Game], str]:
    """Answer from a list, whatever the game is, and end the input behind it."""
    remaining = iter(words)

    def choose(game: Game) -> str:
        for word in remaining:
            return word
        raise EOFError

    return choose


def position(**changes: object) -> GameBatch:
    """Return one game: player 0 can lay JS 2H, JS 4D or 9S 4H (C2), or TD 3C (C1), on TS 3H."""
    fields: dict[str, object] = {
        "hands": [["JS", "2H", "9S", "4H", "TD", "3C"], ["5C", "7D", "QC", "3D", "8D", "KC"]],
        "table": ["TS", "3H"],
        "stock": ["9D", "6S", "4C", "6C", "2C", "8C"],
        "discards": [["AD"], ["6D"]],
        "rules": "classic",
    }
    game = Game.from_position(**{**fields, **changes})  # type: ignore[arg-type]
    return GameBatch.from_state(game._state, game.rules)


# Whole games -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seat", [0, 1])
def test_a_game_is_played_to_its_end_and_recorded(rules: str, seat: int) -> None:
    for seed in range(3):
        script = Script(GameBatch(1, rules, seed=seed), seat, lowest)
        text = script.run()
        game = script.play.game
        assert game.done
        result = {1: "You win", 0: "A draw", -1: "You lose"}[int(game.returns[seat])]
        assert result in text.splitlines()[-1]
        assert str(game) in text, "the final position is shown"
        record = script.play.record()
        assert record is not None
        assert record.players[seat] == "human"
        assert record.players[1 - seat] == "random"
        assert record.returns == game.returns
        *_, last = replay(record)
        assert (last.hand(0), last.hand(1), last.turn) == (game.hand(0), game.hand(1), game.turn)


def play_watched(rules: str, seed: int) -> int:
    """Play at random, fail where something hidden shows; return how many cards were hidden."""
    rng = random.Random(seed)
    told = hidden_cards = 0

    def choose(game: Game) -> str:
        nonlocal told, hidden_cards
        # What has been shown since the last question is known by now: cards that were laid are on
        # the table, in a pile that the person sees, or buried.
        text = "\n".join(script.shown[told:]) + script.prompts[-1]
        told = len(script.shown)
        view = game.view(script.play.seat)
        known = {*view.hand, *view.table, *view.buried, *view.own_discard}
        known |= {*view.opponent_discard, *view.known_in_opponent_hand}
        hidden = set(range(game.rules.deck_size)) - known
        hidden_cards += len(hidden)
        assert not shown_cards(text, game.rules.ranks) & hidden, text
        word = rng.choice(["undo", "hint", "", "", ""])
        if word:
            return word
        action = rng.choice(game.legal_actions())
        if action >= game.rules.deck_size:
            return "SR"[action - game.rules.deck_size]
        return name(action, game.rules.ranks)

    script = Script(GameBatch(1, rules, seed=seed), seed % 2, choose)
    script.run()
    assert script.play.game.done
    return hidden_cards


@pytest.mark.parametrize("rules", RULES)
def test_nothing_hidden_is_shown_before_the_end(rules: str) -> None:
    assert sum(play_watched(rules, seed) for seed in range(4)) > 50


def test_the_game_is_the_one_of_the_seed_and_hints_and_undo_do_not_change_it() -> None:
    def careful(game: Game) -> str:
        word = next(words)
        return lowest(game) if word == "go" else word

    for seed in range(3):
        plain = Script(GameBatch(1, "classic", seed=seed), 0, lowest, always_hint=False)
        plain.run()
        words = iter(["hint", "go", "undo", "go", "help"] * 2_000)
        fussy = Script(GameBatch(1, "classic", seed=seed), 0, careful, always_hint=True)
        fussy.run()
        assert fussy.play.record() == plain.play.record()


# One decision at a time ------------------------------------------------------------------------


def test_the_screen_shows_table_hand_and_counts() -> None:
    script = Script(position(), 0, answers([]))
    screen = script.run()
    assert "stock 6 | buried 30" in screen
    assert "random, 6 cards" in screen
    assert "their discard: 1, top last: 6♦" in screen
    assert "your discard: 1, top last: A♦" in screen
    assert "[ 10♠ ] [ 3♥ ]" in screen
    # By suits; a card that begins a couple is in brackets.
    assert "your 6 cards: 3♣   [10♦]   2♥ 4♥   [9♠] [J♠]" in screen
    assert script.prompts == ["Which card on the left one, 10♠? "]


def test_closed_discards_show_their_size() -> None:
    screen = Script(position(rules="classic(open_discards=False)"), 0, answers([])).run()
    assert "their discard: 1 face down" in screen
    assert "your discard: 1, top last: A♦" in screen


def test_moves_of_both_sides_are_told_in_words() -> None:
    script = Script(position(), 0, answers(["js", "2h", "S", "r"]))
    text = script.run()
    assert "J♠ goes on 10♠. Which card on the right one, 3♥ (2♥)? " in script.prompts
    assert "Where does the next card come from: S stock, R reclaim A♦? " in script.prompts
    assert "You laid J♠ on 10♠, laid 2♥ on 3♥, drew 9♦ and took A♦ back from the discard." in text
    # The other holds no couple on JS 2H (no jack or deuce; no spade or heart): it discards.
    assert re.search(r"random had no couple, discarded \S+ and drew 1 card\.", text)


@pytest.mark.parametrize("spelling", ["td", "TD", "10d", " 10♦ ", "Td"])
def test_cards_are_read_in_every_spelling(spelling: str) -> None:
    script = Script(position(), 0, answers([spelling]))
    script.run()
    assert script.play.game.chosen == card("TD")


@pytest.mark.parametrize("word", ["STOCK", "s", "stock", "S", "R", "reclaim", "r"])
def test_sources_are_read_in_every_spelling(word: str) -> None:
    script = Script(position(), 0, answers(["JS", "2H", word]))
    script.run()
    record = script.play.record()
    assert record is not None
    assert record.actions[2] == (52 if word[0] in "Ss" else 53)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("1x", "'1x' is no card and no command"),
        ("", "'' is no card and no command"),
        ("52", "'52' is no card and no command"),
        ("2H", "2♥ is not possible here; possible: 10♦ 9♠ J♠"),
        ("KC", "K♣ is not possible here"),
        ("S", "STOCK is not possible here"),
        ("undo", "Nothing to take back"),
        ("help", "the same ranks as the table cards"),
    ],
)
def test_a_slip_of_the_pen_changes_nothing(word: str, message: str) -> None:
    games = position()
    script = Script(games, 0, answers([word]))
    assert message in script.run()
    assert script.play.game == games[0]


def test_undo_takes_back_the_left_card() -> None:
    games = position()
    script = Script(games, 0, answers(["JS", "undo"]))
    script.run()
    assert script.play.game == games[0]
    script = Script(games, 0, answers(["JS", "undo", "9S", "4H"]))
    script.run()
    assert script.play.game.table == (card("9S"), card("4H"))


def test_undo_reaches_to_the_beginning_of_the_turn_while_no_card_is_drawn() -> None:
    games = position(discards=[["AD", "4D"], []])
    script = Script(games, 0, answers(["JS", "2H", "R", "undo", "undo", "undo"]))
    script.run()
    assert script.play.game == games[0]
    script = Script(games, 0, answers(["JS", "2H", "S", "undo"]))
    assert "Nothing to take back" in script.run()
    assert script.play.game.phase == Phase.REFILL
    assert card("9D") in script.play.game.hand(0)


def test_undo_does_not_reach_into_the_turn_before() -> None:
    script = Script(position(), 0, answers(["JS", "2H", "S", "S", "undo"]))
    assert "Nothing to take back" in script.run()
    assert script.play.game.turn >= 2


@pytest.mark.parametrize("way", ["quit", EOFError, KeyboardInterrupt])
def test_giving_up_is_a_loss_with_a_record(way: str | type[BaseException]) -> None:
    def choose(game: Game) -> str:
        if isinstance(way, str):
            return way
        raise way

    script = Script(position(), 0, choose)
    text = script.run()
    assert "You gave the game up; random wins." in text
    assert "5♣" not in text, "the other hand stays hidden"
    record = script.play.record()
    assert record is not None
    assert record.fault == Fault(0, "quit")
    assert record.returns == (-1.0, 1.0)


def test_an_interrupt_of_the_opponent_breaks_the_game_off() -> None:
    class Thinker(Valuer):
        def act(self, views: ViewBatch) -> np.ndarray:
            raise KeyboardInterrupt

    script = Script(position(to_move=1), 0, lowest, opponent=Thinker())
    assert script.run().endswith("Broken off.")
    assert script.play.record() is None


def test_an_opponent_that_gives_up_has_lost() -> None:
    script = Script(GameBatch(1, "classic", seed=2), 1, lowest, opponent=Quitter())
    text = script.run()
    assert "quitter gave the game up (no more). You win" in text
    record = script.play.record()
    assert record is not None
    assert record.fault == Fault(0, "no more")
    assert record.returns == (-1.0, 1.0)
    for _ in replay(record):
        pass


# Hints -----------------------------------------------------------------------------------------


def test_a_hint_shows_the_value_of_every_action_best_first() -> None:
    text = Script(position(), 0, answers(["hint"])).run()
    assert "valuer expects (+1 a win, -1 a loss): J♠ +0.49  9♠ +0.47  10♦ +0.22" in text


def test_hints_come_unasked_only_if_wanted() -> None:
    assert "expects" not in Script(position(), 0, answers(["JS", "2H"])).run()
    text = Script(position(), 0, answers(["JS", "2H"]), always_hint=True).run()
    assert text.count("expects") == 3
    assert "RECLAIM +0.53  STOCK +0.52" in text


def test_an_agent_without_values_gives_no_hint() -> None:
    text = Script(position(), 0, answers(["hint"]), hints=Random()).run()
    assert "no hint: agent 'random' does not value moves" in text


def hinted_moves(rules: str, seed: int) -> int:
    """Play with a hint at every exhausted turn, hold them against the oracle, and count them."""
    checked = 0

    def choose(game: Game) -> str:
        nonlocal checked
        if not game.exhausted or game.phase != Phase.LEFT:
            return lowest(game)
        if game.turn not in asked:
            asked[game.turn] = len(script.shown)
            return "hint"
        mine, other = set(game.hand(game.to_move)), frozenset(game.hand(1 - game.to_move))
        firsts = set()
        for line in script.shown[asked[game.turn] :]:
            word, _, moves = line.strip().partition(": ")
            for move in moves.split(", "):
                left, right = (shown_cards(part, 5).pop() for part in move.split(" + "))
                firsts.add(left)
                rest = frozenset(mine - {left, right})
                value = -best_result(game.rules, other, rest, (left, right))
                assert word == {1: "win", 0: "draw", -1: "loss"}[value]
                checked += 1
        assert firsts == set(game.legal_actions())
        return lowest(game)

    asked: dict[int, int] = {}
    script = Script(GameBatch(1, rules, seed=seed), 0, choose)
    script.run()
    return checked


@pytest.mark.parametrize("variant", ["classic", "exchange"])
def test_after_exhaustion_a_hint_is_exact(variant: str) -> None:
    assert sum(hinted_moves(variant + SMALL, seed) for seed in range(30)) > 20


def test_a_hint_says_what_the_node_limit_leaves_open(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = cards("AC 3C 5C 7C 2D 4D 6D 8D TD QD AH 3H")
    other = cards("2C 4C 6C 8C 3D 5D 7D 9D JD KD 2H 4H")
    game = Game.from_position([mine, other], ["9C", "5H"], rules="exchange")
    monkeypatch.setattr("agents.human.HINT_NODES", 1)
    script = Script(GameBatch.from_state(game._state, game.rules), 0, answers(["hint"]))
    assert "not solved: " in script.run()


# Turns in words --------------------------------------------------------------------------------


def test_the_opponents_hidden_cards_are_not_told() -> None:
    game = position()[0]
    actions = [card("JS"), card("2H"), 53]
    assert describe_turn(game, actions, 0, ("you", "cat")) == [
        "You laid J♠ on 10♠, laid 2♥ on 3♥, took A♦ back from the discard and drew 9♦."
    ]
    assert describe_turn(game, actions, 1, ("dog", "you")) == [
        "dog laid J♠ on 10♠, laid 2♥ on 3♥, took A♦ back from the discard and drew 1 card."
    ]
    closed = position(rules="classic(open_discards=False)")[0]
    assert describe_turn(closed, actions, 1, ("dog", "you")) == [
        "dog laid J♠ on 10♠, laid 2♥ on 3♥, took a card back from the discard and drew 1 card."
    ]


def test_a_closed_discard_is_not_told() -> None:
    hands = [["5C", "7D", "QC", "4D", "8D", "KC"], ["JS", "2H", "9S", "4H", "TD", "3C"]]
    game = position(rules="classic(open_discards=False)", hands=hands)[0]
    assert game.phase == Phase.DISCARD
    assert describe_turn(game, [card("QC")], 1, ("dog", "you")) == [
        "dog had no couple, discarded a card face down and drew 1 card."
    ]
    assert describe_turn(game, [card("QC")], 0, ("you", "cat")) == [
        "You had no couple, discarded Q♣ and drew 9♦."
    ]


@pytest.mark.parametrize(
    ("variant", "whose"), [("classic", "their own"), ("exchange", "the other's")]
)
def test_exhaustion_and_passes_are_told(variant: str, whose: str) -> None:
    game = Game.from_position(
        [["JS", "2H", "9C", "KH"], ["5C", "7D", "QC", "3D"]],
        ["TS", "3H"],
        stock=["9D", "6S"],
        rules=f"{variant}(hand_size=4)",
    )
    # Nothing of 5C 7D QC 3D goes on JS 2H.
    told = describe_turn(game, [card("JS"), card("2H")], 0, ("you", "cat"))
    assert told[0] == "You laid J♠ on 10♠, laid 2♥ on 3♥ and drew 9♦ 6♠."
    assert told[1].startswith(f"The stock has run out. Both take {whose} discard into hand")
    assert len(told) == 2 or told[2] == "cat has no couple: a pass."


def test_a_card_laid_out_of_play_is_told() -> None:
    game = Game.from_position(
        [["5C", "7D"], ["JS", "2H", "9C"]], ["TS", "3H"], rules="classic(blocked=discard)"
    )
    assert describe_turn(game, [card("7D")], 1, ("dog", "you")) == [
        "dog had no couple and laid 7♦ out of play."
    ]


# The command -----------------------------------------------------------------------------------


def type_in(monkeypatch: pytest.MonkeyPatch, words: Iterable[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{word}\n" for word in words)))


def test_the_command_plays_and_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "games.jsonl"
    command = ["play", "--opponent", "greedy", "--seed", "5", "--record", str(path)]
    for number, words in enumerate((["quit"], [])):
        type_in(monkeypatch, words)
        assert main([*command, "--seat", str(number), "--rules", "exchange"]) == 0
        shown = capsys.readouterr().out
        assert "seed 5" in shown
        assert f"exchange: you are player_{number} against greedy" in shown
        assert "You gave the game up; greedy wins." in shown
        assert f"The record is in {path}." in shown
    records = list(read_records(path))
    assert [record.players for record in records] == [("human", "greedy"), ("greedy", "human")]
    assert records[0].deck == records[1].deck


def test_the_seat_by_lot_follows_the_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seats = []
    for seed in [*range(12), *range(12)]:
        type_in(monkeypatch, [])
        assert main(["play", "--opponent", "random", "--seed", str(seed)]) == 0
        seats.append(re.findall(r"you are player_(\d)", capsys.readouterr().out)[0])
    assert seats[:12] == seats[12:]
    assert set(seats) == {"0", "1"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--opponent", "nobody"], "unknown agent 'nobody'"),
        (["--opponent", "random", "--rules", "whist"], "variant must be one of"),
        (["--opponent", "random", "--seed", "-1"], "seed must be from 0"),
        (["--opponent", "random", "--hints", "--hints-agent", "greedy"], "does not value moves"),
        (["--opponent", "random", "--hints", "--hints-agent", "nobody"], "unknown agent 'nobody'"),
        (["--opponent", "random", "--record", "no/such/folder/x.jsonl"], "no/such/folder"),
    ],
)
def test_the_command_refuses_bad_input_by_name(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
