"""Pictures: what they show and what they hide, where it lies, and the files made of them.

Text renderings are held in `test_envs.py`. Positions are exact ones or come from random games;
verdicts are held against the plain search in `endings.py`.
"""

from __future__ import annotations

import argparse
import copy
import functools
import io
import itertools
import json
import pickle
import random
import re
import subprocess
import sys
import types
import warnings
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gymnasium as gym
import numpy as np
import pytest
from contrast import contrast
from endings import move_results
from gymnasium.error import DependencyNotInstalled
from gymnasium.utils.env_checker import check_env
from helpers import card, cards, name, random_deck
from players import Even, First

import counterweight_env
from counterweight_env import Game, Phase, Rules
from counterweight_env.envs.single import CounterweightEnv
from counterweight_env.envs.vector import CounterweightVectorEnv
from counterweight_env.picture import HEIGHT, WIDTH, table_picture
from counterweight_env.raster import gif_bytes, pixels, png_bytes
from counterweight_env.record import Fault, GameRecord, read_records, write_records
from counterweight_env.replay_page import STYLE, page_text
from counterweight_env.shapes import Group, Picture, Rect, SuitMark, Text, words_and_suits
from counterweight_env.story import Step, judge, story, story_pictures
from counterweight_env.svg import animated_svg, svg_text
from train.render_command import add_render
from train.usage import UsageError

Image = pytest.importorskip("PIL.Image")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it imports games of its own
    from pettingzoo.test import render_test

SMALL = "exchange(ranks=6,suits=2,hand_size=3)"
TINY = "classic(ranks=7,suits=1,hand_size=2,blocked=discard)"
CLOSED = "classic(open_discards=False,blocked=discard)"
RULE_TEXTS = ("classic", "exchange", CLOSED, SMALL, TINY)
FRAME = (672, 720, 3)
SVG = "{http://www.w3.org/2000/svg}"

# Table 10♠ 3♥. Player 0 can go 10♦ 3♣ (C1), J♠ 2♥ or K♠ 2♥ (C2).
POSITION: dict[str, Any] = {
    "hands": [
        ["TD", "3C", "KS", "2H", "JS", "KH"],
        ["AS", "2S", "4S", "5S", "6S", "7S"],
    ],
    "table": ["TS", "3H"],
    "stock": ["AH", "9H", "4H", "5H", "6H", "7H", "8H"],
    "discards": [["8C", "9C"], ["QC"]],
}


def played(rules: str, seed: int, phase: Phase | None = None, after: int = 0) -> Game:
    """Return a random game at the first decision, `after` decisions on, that is in that phase."""
    rng = random.Random(seed)
    for deal in itertools.count(seed):
        game = Game(rules, seed=deal)
        done = 0
        while not game.done and (done < after or phase not in (None, game.phase)):
            game.step(rng.choice(game.legal_actions()))
            done += 1
        if done >= after and phase in (None, game.phase):
            return game
    raise AssertionError


def recorded(rules: str, seed: int, names: tuple[str, str] = ("one", "two")) -> GameRecord:
    """Return a random game's record."""
    rng = random.Random(seed)
    deck = random_deck(rng, Rules.parse(rules).deck_size)
    game = Game.from_deck(deck, rules, 1)
    actions = []
    while not game.done:
        actions.append(rng.choice(game.legal_actions()))
        game.step(actions[-1])
    return GameRecord(str(game.rules), 1, names, tuple(deck), tuple(actions), game.returns)


def pieces(picture: Picture) -> list[Group]:
    return [shape for shape in picture.shapes if isinstance(shape, Group)]


def names_in(svg: str) -> Counter[str]:
    """Return how often every piece is placed in an SVG document."""
    root = ElementTree.fromstring(svg)
    return Counter(use.get("data-name") for use in root.iter(f"{SVG}use") if use.get("data-name"))


def marked(svg: str, mark: str) -> set[str]:
    """Return the names of the pieces that have a mark."""
    root = ElementTree.fromstring(svg)
    return {
        str(use.get("data-name"))
        for use in root.iter(f"{SVG}use")
        if mark in (use.get("class") or "").split()
    }


def words_in(picture: Picture) -> str:
    """Return all text outside the cards; suits are left out."""
    return " ".join(shape.text for shape in picture.shapes if isinstance(shape, Text))


# --- What is shown ------------------------------------------------------------------------------


def test_a_game_shows_all_cards_and_what_is_legal() -> None:
    game = Game.from_position(**POSITION)
    svg = game._repr_svg_()
    found = names_in(svg)
    for shown in [*POSITION["hands"][0], *POSITION["hands"][1], *POSITION["table"], "8C", "9C"]:
        assert found[shown] == 1, shown
    assert found["stock7"] == 1
    assert not any(found[hidden] for hidden in POSITION["stock"])
    assert marked(svg, "legal") == {"TD", "JS", "KS"}
    assert marked(svg, "dim") == {"3C", "2H", "KH"}
    words = words_in(table_picture(game))
    assert "player_0: choose a card for the left, on 10" in words
    assert "buried 28" in words
    assert "discard 2" in words
    assert "turn 1" in words


def test_a_card_picked_for_the_left_lies_there_and_its_partners_are_legal() -> None:
    game = Game.from_position(**POSITION)
    game.step(card("TD"))
    svg = game._repr_svg_()
    assert names_in(svg)["TD"] == 2  # a ghost in hand, and on the table
    assert marked(svg, "chosen") == marked(svg, "picked") == {"TD"}
    assert marked(svg, "legal") == {"3C"}
    assert svg == game.copy()._repr_svg_()


def test_refill_marks_the_stock_and_the_discard() -> None:
    game = Game.from_position(**POSITION)
    for text in ("TD", "3C"):
        game.step(card(text))
    assert game.phase == Phase.REFILL
    assert marked(game._repr_svg_(), "legal") == {"stock7", "9C"}
    assert marked(game.view(0)._repr_svg_(), "legal") == {"stock7", "9C"}
    assert marked(game.view(1)._repr_svg_(), "legal") == set()


def test_a_view_shows_backs_for_what_is_not_known() -> None:
    game = Game.from_position(**POSITION)
    found = names_in(game.view(0)._repr_svg_())
    assert found["back"] == 6 + 2 + 2  # the hand; below the stock's top; below the table
    assert not any(found[hidden] for hidden in [*POSITION["hands"][1], *POSITION["stock"]])
    found = names_in(game.view(1)._repr_svg_())
    assert not any(found[hidden] for hidden in POSITION["hands"][0])
    assert "player_0 is on turn" in words_in(table_picture(game.view(1)))


def test_a_view_shows_cards_that_are_known() -> None:
    game = Game.from_position(**POSITION)
    rules = game.rules
    for action in (card("TD"), card("3C"), rules.reclaim_action, rules.stock_action):
        game.step(action)
    found = names_in(game.view(1)._repr_svg_())
    assert found["9C"] == 1  # taken back from the open discard
    assert not found["AH"]
    assert found["8C"] == 1


def test_closed_discards_show_backs_to_the_other_player() -> None:
    game = Game.from_position(**POSITION, rules=CLOSED)
    assert names_in(game.view(0)._repr_svg_())["QC"] == 0
    assert names_in(game.view(1)._repr_svg_())["QC"] == 1
    assert names_in(game._repr_svg_())["QC"] == 1
    backs = [names_in(game.view(player)._repr_svg_())["back"] for player in (0, 1)]
    assert backs == [10 + 1, 10 + 2]


@pytest.mark.parametrize(
    ("me", "other", "words"),
    [
        ("TD 3C KS", "7D 8D 9D", "player_0 wins, 1 to 3 cards in hand"),
        ("TD 3C KS KH 5H 6H", "7D 8D", "player_1 wins, 2 to 4 cards in hand"),
        ("TD 3C KS", "7D", "A draw, one card each"),
    ],
)
def test_the_end_is_told(me: str, other: str, words: str) -> None:
    game = Game.from_position([cards(me), cards(other)], ["TS", "3H"])
    for text in ("TD", "3C"):
        game.step(card(text))
    assert game.done
    for position in (game, game.view(0), game.view(1)):
        picture = table_picture(position)
        assert words in words_in(picture)
        assert words in picture.title
        assert not marked(svg_text(picture), "legal")
        found = names_in(svg_text(picture))
        assert all(found[shown] for shown in [*other.split(), *me.split()[2:]])


@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_every_state_of_random_games_shows_its_cards_and_marks(rules: str) -> None:
    rng = random.Random(3)
    game = Game(rules, seed=rng.randrange(1000))
    ranks = game.rules.ranks
    while not game.done:
        svg = game._repr_svg_()
        found = names_in(svg)
        shown = [*game.hand(0), *game.hand(1), *game.table, *game.discard(0), *game.discard(1)]
        expected = Counter(name(each, ranks) for each in shown)
        if game.chosen is not None:
            expected[name(game.chosen, ranks)] += 1
        assert {key: n for key, n in found.items() if re.fullmatch("..", key)} == expected
        legal = game.legal_actions()
        if game.phase != Phase.REFILL:
            assert marked(svg, "legal") == {name(each, ranks) for each in legal}
        game.step(rng.choice(legal))


def test_a_dot_is_on_what_is_new() -> None:
    game = Game.from_position(**POSITION)
    before = game.copy()
    rules = game.rules
    for action in (card("TD"), card("3C"), rules.reclaim_action, rules.stock_action):
        game.step(action)
    svg = svg_text(table_picture(game, before))
    assert marked(svg, "new") == {"TD", "3C", "9C", "AH"}
    seen = svg_text(table_picture(game.view(1), before.view(1)))
    assert marked(seen, "new") == {"TD", "3C", "9C"}
    assert marked(game._repr_svg_(), "new") == set()


def test_pictures_of_two_sides_do_not_mix() -> None:
    game = Game.from_position(**POSITION)
    for position, before in ((game, game.view(0)), (game.view(0), game.view(1))):
        with pytest.raises(ValueError, match="same player"):
            table_picture(position, before)
    with pytest.raises(TypeError, match="a Game or a View, got 'x'"):
        table_picture("x")  # type: ignore[arg-type]


# --- What is hidden -----------------------------------------------------------------------------


@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_states_with_the_same_view_give_the_same_svg(rules: str) -> None:
    rng = np.random.default_rng(8)
    changed = 0
    large = Rules.parse(rules).deck_size == 52
    for after in (0, 1, 5, 14, 25, 36, 45, 55) if large else range(6):
        game = played(rules, after, after=after)
        for player in (0, 1):
            view = game.view(player)
            svg = view._repr_svg_()
            unseen = {name(each, game.rules.ranks) for each in view.unseen}
            assert not unseen & set(names_in(svg))
            if game.done:
                continue
            worlds = view.determinize(rng, 3)
            for world in range(3):
                changed += worlds[world].hand(1 - player) != game.hand(1 - player)
                assert worlds[world].view(player)._repr_svg_() == svg
    assert changed >= 2


def test_a_half_made_couple_does_not_show_to_the_other_player() -> None:
    game = Game.from_position(**POSITION)
    before = game.view(1)._repr_svg_()
    game.step(card("TD"))
    assert game.view(1)._repr_svg_() == before


# --- Where it lies ------------------------------------------------------------------------------


def assert_readable(picture: Picture) -> None:
    """Everything is inside, no text is tiny, and every card shows its corner."""
    for shape in picture.shapes:
        assert min(shape.x, shape.y) >= 0, shape
        if isinstance(shape, Text):
            assert shape.x + shape.width <= WIDTH - 11.5, shape
            assert shape.y <= HEIGHT
            assert shape.size >= 8
        elif isinstance(shape, (Group, Rect)):
            assert shape.x + shape.width <= WIDTH, shape
            assert shape.y + shape.height <= HEIGHT, shape
    found = [piece for piece in pieces(picture) if piece.name != "back" and len(piece.name) == 2]
    for place, piece in enumerate(found):
        [paper] = [part for part in piece.shapes if isinstance(part, Rect) and part.stroke_width][
            :1
        ]
        signs = [part for part in piece.shapes if isinstance(part, (Text, SuitMark))][:2]
        for sign in signs:
            left = sign.x - sign.width / 2 if isinstance(sign, Text) else sign.x
            assert left >= paper.x + paper.stroke_width / 2, f"an edge runs through {sign}"
        # Three quarters of a sign tell which it is.
        right = piece.x + 0.75 * max(_right(sign) for sign in signs)
        top, bottom = piece.y + 3, piece.y + signs[1].y
        for other in found[place + 1 :]:
            if "picked" in other.marks:
                continue
            apart = other.x >= right or other.x + other.width <= piece.x + 3
            assert apart or other.y >= bottom or other.y + other.height <= top, (piece, other)


def _right(sign: Any) -> float:
    return sign.x + sign.width / 2 if isinstance(sign, Text) else sign.x + sign.size


@pytest.mark.parametrize("rules", RULE_TEXTS)
def test_all_states_of_random_games_are_readable(rules: str) -> None:
    rng = random.Random(5)
    for seed in range(4):
        game = Game(rules, seed=seed)
        while not game.done:
            assert_readable(table_picture(game))
            game.step(rng.choice(game.legal_actions()))
        assert_readable(table_picture(game.view(1), names=("a" * 99, "b" * 99), note="c" * 300))


def test_hands_of_more_than_20_cards_are_readable() -> None:
    sizes = set()
    for seed in range(60):
        game = Game("classic", seed=seed)
        while not game.exhausted:
            game.step(game.legal_actions()[0])
        if not game.done:
            sizes |= {len(game.hand(0)), len(game.hand(1))}
            picture = table_picture(game)
            assert_readable(picture)
            assert sum(len(piece.name) == 2 for piece in pieces(picture)) == 2 + sum(
                len(game.hand(player)) for player in (0, 1)
            )
    assert max(sizes) > 21
    assert min(sizes) <= 20


def test_a_line_of_text_takes_the_room_it_is_given() -> None:
    long = "10♠ on 9♦ " * 20
    for anchor, left in (("start", 10), ("middle", -40), ("end", -90)):
        parts = words_and_suits(10, 50, long, 12, "#ffffff", anchor=anchor, room=100)
        assert min(part.x for part in parts) >= left - 0.01
        ends = [part.x + (part.width if isinstance(part, Text) else part.size) for part in parts]
        assert max(ends) <= left + 100.01
        assert min(part.size for part in parts) >= 6
    assert words_and_suits(0, 0, "a\x07b", 12, "#ffffff")[0].text == "a?b"  # type: ignore[union-attr]


# --- Pixels -------------------------------------------------------------------------------------


def test_pixels_are_where_the_picture_says() -> None:
    game = Game.from_position(**POSITION)
    picture = table_picture(game)
    for scale in (1.0, 1.5, 2.0):
        image = pixels(picture, scale)
        assert image.dtype == np.uint8
        assert image.shape == (round(HEIGHT * scale), round(WIDTH * scale), 3)
        for piece in pieces(picture):
            if len(piece.name) != 2 or "picked" in piece.marks or piece.width < 40:
                continue
            # In the middle of the large suit at the lower right, or on the paper beside it.
            mark = [part for part in piece.shapes if isinstance(part, SuitMark)][-1]
            x = piece.x + mark.x + mark.size * 0.5
            y = piece.y + mark.y + mark.size * 0.5
            red, green, blue = image[int(y * scale), int(x * scale)].astype(int)
            suit = "CDHS".index(piece.name[1])
            assert (green > red, blue > 150, red > 150, max(red, green, blue) < 60)[suit], piece
            gold = image[int((piece.y + 40) * scale), int(piece.x * scale)].astype(int)
            is_gold = gold[0] > 220 and gold[2] < 140
            assert is_gold == ("legal" in piece.marks), (piece, gold)


def test_png_and_gif_are_what_they_say() -> None:
    record = recorded(SMALL, 3)
    pictures = story_pictures(record, story(record))
    with Image.open(io.BytesIO(png_bytes(pictures[0]))) as image:
        assert (image.format, image.size) == ("PNG", (2 * WIDTH, 2 * HEIGHT))
    with Image.open(io.BytesIO(gif_bytes(pictures, 0.5))) as image:
        assert (image.format, image.size) == ("GIF", (WIDTH, HEIGHT))
        assert image.n_frames == len(pictures) > 3
        for number, picture in enumerate(pictures):
            image.seek(number)
            assert image.info["duration"] == (500 if number < len(pictures) - 1 else 2000)
            apart = np.array(image.convert("RGB")).astype(int) - pixels(picture, 1.0)
            assert np.abs(apart).mean() < 4  # few colours, but this picture


@pytest.mark.parametrize("make", [gif_bytes, animated_svg])
def test_bad_films_are_refused(make: Any) -> None:
    picture = table_picture(Game(seed=0))
    with pytest.raises(ValueError, match="at least one picture"):
        make([], 1.0)
    for seconds in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"more than 0.*, got {seconds}"):
            make([picture], seconds)
    with pytest.raises(ValueError, match="scale must be more than 0, got 0"):
        pixels(picture, 0)


def test_a_gif_stands_as_long_as_the_format_can_hold() -> None:
    picture = table_picture(Game(seed=0))
    with Image.open(io.BytesIO(gif_bytes([picture], 160))) as image:
        assert image.info["duration"] == 640_000
    with pytest.raises(ValueError, match="at most 160, got 161"):
        gif_bytes([picture], 161)


def test_one_drawing_has_one_key() -> None:
    found: dict[str, Any] = {}
    record = recorded("classic", 1)
    for picture in story_pictures(record, story(record, 0)):
        for piece in pieces(picture):
            assert found.setdefault(piece.key, piece.shapes) == piece.shapes


# --- Environments -------------------------------------------------------------------------------


class FakeWindows(types.ModuleType):
    """A pygame that keeps what is shown."""

    def __init__(self) -> None:
        super().__init__("pygame")
        self.shown: list[np.ndarray] = []
        self.ticks: list[float] = []
        self.opened = self.closed = 0
        fake = self

        class Screen:
            def blit(self, surface: np.ndarray, corner: tuple[int, int]) -> None:
                assert corner == (0, 0)
                fake.shown.append(surface.swapaxes(0, 1))

        class Clock:
            def tick(self, fps: float) -> None:
                fake.ticks.append(fps)

        def set_mode(size: tuple[int, int]) -> Screen:
            fake.opened += 1
            assert size == (720, 672)
            return Screen()

        def quit_display() -> None:
            fake.closed += 1

        nothing = lambda *_: None  # noqa: E731
        self.display = types.SimpleNamespace(
            init=nothing, set_caption=nothing, set_mode=set_mode, flip=nothing, quit=quit_display
        )
        self.time = types.SimpleNamespace(Clock=Clock)
        self.event = types.SimpleNamespace(pump=nothing)
        self.surfarray = types.SimpleNamespace(make_surface=np.copy)


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> FakeWindows:
    fake = FakeWindows()
    monkeypatch.setitem(sys.modules, "pygame", fake)
    return fake


def legal(env: Any) -> int:
    return int(np.flatnonzero(env.unwrapped.action_masks())[0])


def test_env_draws_what_the_learner_sees() -> None:
    env = CounterweightEnv(opponent=Even(), seat=1, render_mode="rgb_array")
    env.reset(seed=4)
    view = env._duel.games[0].view(1)
    first = env.render()
    assert isinstance(first, np.ndarray)
    assert (first.shape, first.dtype) == (FRAME, np.uint8)
    assert (first == pixels(table_picture(view))).all()
    done = False
    while not done:
        done = env.step(legal(env))[2]
    last = env.render()
    assert isinstance(last, np.ndarray)
    assert last.shape == FRAME
    assert (last != first).any()


def test_env_frames_hide_the_opponents_cards() -> None:
    frames = []
    env = CounterweightEnv(opponent=First(), seat=0, render_mode="rgb_array")
    mine, theirs = POSITION["hands"]
    stock = POSITION["stock"]
    for drawn, left in ((theirs, stock), ([*theirs[:-1], "AH"], ["7S", *stock[1:]])):
        game = Game.from_position(**POSITION | {"hands": [mine, drawn], "stock": left})
        env.reset(seed=0)
        env._duel.games.state[:] = game._state
        frames.append(env.render())
    assert (frames[0] == frames[1]).all()


def test_aec_draws_all_cards_with_dots_on_the_last_turn() -> None:
    env = counterweight_env.env(render_mode="rgb_array")
    env.reset(seed=5)
    start = env._game.copy()
    assert (env.render() == pixels(table_picture(start))).all()
    while env._game.turn < 1:
        env.step(env._game.legal_actions()[0])
    assert (env.render() == pixels(table_picture(env._game, start))).all()
    env.step(env._game.legal_actions()[0])
    if env._game.turn == 1:  # in the middle of a turn the dots stay
        assert (env.render() == pixels(table_picture(env._game, start))).all()
    for _ in env.agent_iter():
        actions = env._game.legal_actions()
        env.step(actions[0] if actions else None)
    assert env.render().shape == FRAME


def test_vector_env_draws_every_game() -> None:
    envs = CounterweightVectorEnv(3, rules=SMALL, opponent=Even(), render_mode="rgb_array")
    twins = [CounterweightEnv(rules=SMALL, opponent=Even(), render_mode="rgb_array") for _ in "abc"]
    envs.reset(seed=1)
    for number, twin in enumerate(twins):
        twin.reset(seed=1 + number)
    for _ in range(12):
        frames = envs.render()
        assert isinstance(frames, tuple)
        for frame, twin in zip(frames, twins, strict=True):
            assert (frame == twin.render()).all()
        actions = [legal(twin) for twin in twins]
        envs.step(np.array(actions))
        for twin, action in zip(twins, actions, strict=True):
            if twin.step(action)[2]:
                twin.reset()
    with pytest.raises(ValueError, match=r"render_mode must be None or one of .*human"):
        CounterweightVectorEnv(1, opponent=Even(), render_mode="human")


@pytest.mark.parametrize("kind", ["aec", "single"])
def test_human_mode_shows_every_step_in_one_window(kind: str, windows: FakeWindows) -> None:
    if kind == "aec":
        env: Any = counterweight_env.env(rules=SMALL, render_mode="human")
        watched: Any = counterweight_env.env(rules=SMALL, render_mode="rgb_array")
    else:
        env = CounterweightEnv(opponent=Even(), seat=0, render_mode="human")
        watched = CounterweightEnv(opponent=Even(), seat=0, render_mode="rgb_array")
    frames = []
    for each in (env, watched):
        each.reset(seed=2)
        for _ in range(2):
            if each is watched:
                frames.append(each.render())
            each.step(each._game.legal_actions()[0] if kind == "aec" else legal(each))
    frames.append(watched.render())
    assert len(windows.shown) == 3
    assert all((a == b).all() for a, b in zip(windows.shown, frames, strict=True))
    assert windows.opened == 1
    assert set(windows.ticks) == {env.metadata["render_fps"]}
    waits = len(windows.ticks)
    assert env.render() is None
    assert len(windows.ticks) == waits  # the same frame again takes no time
    twin = copy.deepcopy(env)
    pickle.dumps(env)
    env.close()
    env.close()
    assert windows.closed == 1
    twin.render()
    assert windows.opened == 2


def test_the_window_is_one_of_pygame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pygame's own
        pygame = pytest.importorskip("pygame")
    env = CounterweightEnv(rules=SMALL, opponent=Even(), seat=0, render_mode="human")
    env.reset(seed=0)
    surface = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
    assert (surface == pixels(table_picture(env._duel.games[0].view(0)))).all()
    env.close()


@pytest.mark.parametrize("mode", ["rgb_array", "human"])
@pytest.mark.parametrize("package", ["PIL", "pygame"])
def test_a_missing_package_is_named_with_its_extra(
    mode: str, package: str, windows: FakeWindows, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [each for each in sys.modules if each.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    makers: list[Any] = [
        lambda: counterweight_env.env(render_mode=mode),
        lambda: CounterweightEnv(opponent=Even(), render_mode=mode),
    ]
    for make in makers:
        if package == "pygame" and mode == "rgb_array":
            make().reset()
            continue
        with pytest.raises(DependencyNotInstalled, match=r"counterweight-env\[render\]"):
            make()


def test_plain_imports_load_no_drawing_package() -> None:
    code = (
        "import sys, counterweight_env.svg, counterweight_env.raster, counterweight_env.window,"
        "counterweight_env.replay_page, counterweight_env.envs.single, counterweight_env.envs.aec;"
        "counterweight_env.Game(seed=0)._repr_svg_();"
        "print([m for m in ('PIL', 'pygame', 'torch', 'agents') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class AnyActionEnv(CounterweightEnv):
    """Takes any action for a legal one: the checkers sample actions without looking at the mask."""

    def step(self, action: Any) -> Any:
        found = np.flatnonzero(self.action_masks())
        return super().step(int(found[int(action) % len(found)]))


gym.register("CounterweightDrawn-v0", entry_point=AnyActionEnv)


@pytest.mark.parametrize("mode", ["rgb_array", "human", "ansi"])
def test_gymnasiums_checker_is_content(mode: str, windows: FakeWindows) -> None:
    env = gym.make("CounterweightDrawn-v0", rules=SMALL, opponent=Even(), render_mode=mode)
    check_env(env.unwrapped)
    assert windows.shown


@pytest.mark.parametrize("make", [counterweight_env.env, counterweight_env.raw_env])
def test_pettingzoos_render_test_is_content(make: Any, windows: FakeWindows) -> None:
    render_test(functools.partial(make, rules=SMALL))
    assert windows.shown


def test_gymnasiums_frame_list_works() -> None:
    env = gym.make(
        "counterweight_env:Counterweight-v0", opponent=Even(), render_mode="rgb_array_list"
    )
    env.reset(seed=0)
    for _ in range(3):
        env.step(legal(env))
    frames: Any = env.render()
    assert [frame.shape for frame in frames] == [FRAME] * 4


def test_drawing_changes_nothing_and_copies_draw_the_same() -> None:
    makers: list[Any] = [
        counterweight_env.raw_env(render_mode="rgb_array"),
        CounterweightEnv(opponent=Even(), render_mode="rgb_array"),
        CounterweightVectorEnv(2, opponent=Even(), render_mode="rgb_array"),
    ]
    for env in makers:
        env.reset(seed=3)
        for _ in range(5):
            if isinstance(env, CounterweightVectorEnv):
                env.step(env.action_masks().argmax(axis=1))
            elif isinstance(env, CounterweightEnv):
                env.step(legal(env))
            else:
                env.step(env._game.legal_actions()[0])
        before = pickle.dumps(env)
        frames = np.array(env.render())
        assert pickle.dumps(env) == before
        assert (np.array(pickle.loads(before).render()) == frames).all()
        assert (np.array(copy.deepcopy(env).render()) == frames).all()


# --- Records ------------------------------------------------------------------------------------

VERDICT_RULES = (
    SMALL,
    "classic(ranks=5,suits=3,hand_size=3)",
    "classic(ranks=5,suits=3,hand_size=3,blocked=discard)",
)


def turns_of(record: GameRecord) -> Iterator[tuple[Game, tuple[int, ...]]]:
    """Yield every turn's start and its actions."""
    game = record.deal()
    start, actions = game.copy(), []
    for action in record.actions:
        game.step(action)
        actions.append(action)
        if game.turn != start.turn or game.done:
            yield start, tuple(actions)
            start, actions = game.copy(), []


@pytest.mark.parametrize("rules", VERDICT_RULES)
def test_verdicts_equal_a_plain_search(rules: str) -> None:
    found: Counter[bool | None] = Counter()
    for seed in range(25):
        record = recorded(rules, seed)
        steps = story(record)
        turns = list(turns_of(record))
        assert len(steps) == len(turns) + 1
        for step, (start, move) in zip(steps[1:], turns, strict=True):
            assert step.player == start.to_move
            assert (step.verdict is None) == (not start.exhausted)
            if step.verdict is None:
                continue
            results = move_results(start)
            best = max(results.values())
            assert step.verdict.before == best
            assert step.verdict.after == results[move]
            assert step.verdict.kept == (results[move] == best)
            assert step.verdict.moves == len(results)
            right = {each for each, value in results.items() if value == best}
            assert set(step.verdict.best) == right
            found[step.verdict.kept] += 1
    assert found[True] > 5
    assert found[False] >= 1


def test_a_verdict_says_when_the_node_limit_ran_out() -> None:
    me = "AC 3C 5C 7C 2D 4D 6D 8D TD QD AH 3H"
    other = "2C 4C 6C 8C 3D 5D 7D 9D JD KD 2H 4H"
    start = Game.from_position([cards(me), cards(other)], cards("9C 5H"))
    after = start.copy()
    move = []
    while after.turn == start.turn:
        move.append(after.legal_actions()[0])
        after.step(move[-1])
    verdict = judge(start, tuple(move), after, 1)
    assert (verdict.before, verdict.kept, str(verdict)) == (None, None, "not solved")
    solved = judge(start, tuple(move), after)
    assert solved.kept is not None
    assert str(solved) != "not solved"


def test_a_turn_is_told_in_words() -> None:
    game = Game.from_position(**POSITION)
    deck = [*game.hand(0), *game.hand(1), *game.table]
    deck += [each for each in range(52) if each not in deck]
    start = Game.from_deck(deck, "classic", 1)
    actions = [card("TD"), card("3C")]
    for action in actions:
        start.step(action)
    drawn = deck[14:16]  # without a discard the refill comes from the stock by itself (T6)
    record = GameRecord(
        "classic", 1, ("one", "two"), tuple(deck), tuple(actions), (1.0, -1.0), Fault(1, "tired")
    )
    steps = story(record)
    assert steps[0].text == "The deal. player_0: choose a card for the left, on 10♠."
    symbols = [name(each)[0] + "♣♦♥♠"["CDHS".index(name(each)[1])] for each in drawn]
    assert steps[1].text == f"player_0 laid 10♦ on 10♠ and 3♣ on 3♥, drew {' '.join(symbols)}."
    assert steps[2].text == "player_1 gave the game up: tired"
    assert len(steps) == 3


class Page(HTMLParser):
    """Reads a page and holds that every element is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.frames = 0
        self.turns: list[str] = []
        self.verdicts: list[tuple[int, str, str]] = []
        self.ids: set[str] = set()
        self.used: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.attributes += attrs
        if tag not in ("meta", "input"):
            self.open.append(tag)
        if found.get("id"):
            assert found["id"] not in self.ids
            self.ids.add(str(found["id"]))
        if tag == "use":
            self.used.add(str(found["href"]).removeprefix("#"))
        classes = (found.get("class") or "").split()
        self.frames += "frame" in classes
        if tag == "li":
            self.turns.append("")
        if "verdict" in classes:
            self.verdicts.append((len(self.turns) - 1, classes[1], ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "li" in self.open:
            if (
                "span" in self.open
                and self.verdicts
                and self.verdicts[-1][0] == len(self.turns) - 1
            ):
                number, kind, text = self.verdicts[-1]
                self.verdicts[-1] = (number, kind, text + data)
            else:
                self.turns[-1] += data


@pytest.mark.parametrize("rules", ["classic", *VERDICT_RULES])
def test_the_page_holds_every_turn_and_verdict(rules: str) -> None:
    record = recorded(rules, 12, ("<script>alert(1)</script>", 'a"b&c'))
    steps = story(record, 100_000)
    text = page_text(record, steps)
    page = Page(text)
    assert page.frames == len(page.turns) == len(steps)
    for number, (step, shown) in enumerate(zip(steps, page.turns, strict=True)):
        assert shown == f"{number}{step.text}"
    judged = [number for number, step in enumerate(steps) if step.verdict is not None]
    assert [number for number, _, _ in page.verdicts] == judged
    kinds = {True: "kept", False: "gave", None: "open"}
    for number, kind, words in page.verdicts:
        verdict = steps[number].verdict
        assert verdict is not None
        assert kind == kinds[verdict.kept]
        assert words.startswith(str(verdict))
    assert page.used <= page.ids
    assert text.count("<script>") == 1
    assert "alert(1)</script>" not in text
    # It asks for nothing from elsewhere.
    assert not re.search(r"https?://|@import|url\(|fetch\(", text)
    assert not {"src", "srcset", "data", "action"} & {key for key, _ in page.attributes}
    hrefs = [value for key, value in page.attributes if key == "href"]
    assert all(str(value).startswith("#") for value in hrefs)


def test_the_page_is_readable_on_light_and_dark_paper() -> None:
    light, dark = re.findall(r":root\{(?:color-scheme:light dark;)?(--.*?)\}", STYLE, re.S)
    for colours in (light, dark):
        found = dict(re.findall(r"--(\w+):(#\w{6})", colours))
        for ink, paper in itertools.product(("ink", "quiet", "kept", "gave"), ("paper", "mark")):
            assert contrast(found[ink], found[paper]) >= 4.5, (ink, paper, found)


def test_what_the_page_hides_stays_hidden() -> None:
    # The browser's own rule for `hidden` gives way to any `display` of a style sheet.
    text = page_text(recorded(SMALL, 1), story(recorded(SMALL, 1), 0))
    assert re.search(r"<nav hidden>", text)
    assert "\n[hidden]{display:none!important}\n" in text


def test_the_animated_svg_shows_every_turn_and_the_last_to_still_viewers() -> None:
    record = recorded("exchange", 2)
    pictures = story_pictures(record, story(record))
    root = ElementTree.fromstring(animated_svg(pictures, 0.5))
    frames = [group for group in root.iter(f"{SVG}g") if group.get("class") == "f"]
    assert len(frames) == len(pictures)
    assert [frame.get("visibility") for frame in frames] == ["hidden"] * (len(frames) - 1) + [None]
    ids = {element.get("id") for element in root.iter() if element.get("id")}
    for frame, picture in zip(frames, pictures, strict=True):
        used = [use for use in frame.iter(f"{SVG}use") if use.get("data-name")]
        assert [use.get("data-name") for use in used] == [piece.name for piece in pieces(picture)]
        assert {str(use.get("href"))[1:] for use in frame.iter(f"{SVG}use")} <= ids
    delays = [frame.get("style") for frame in frames]
    assert delays[0] == f"animation-delay:-{len(frames) * 0.5:g}s"
    assert len(set(delays)) == len(frames)


# --- The command --------------------------------------------------------------------------------


def run(*arguments: object) -> None:
    """Run `counterweight render` with these arguments."""
    parser = argparse.ArgumentParser()
    add_render(parser.add_subparsers())
    parsed = parser.parse_args(["render", *map(str, arguments)])
    parsed.run(parsed)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with a position and two records."""
    (tmp_path / "game.json").write_text(Game.from_position(**POSITION).to_json())
    write_records(tmp_path / "games.jsonl", [recorded(SMALL, 1), recorded(SMALL, 2)])
    return tmp_path


def test_a_position_becomes_svg_or_png(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    game = Game.from_position(**POSITION)
    out = files / "table.svg"
    run(files / "game.json", "--out", out)
    assert out.read_text() == game._repr_svg_()
    assert capsys.readouterr().out == f"{out}: {out.stat().st_size:,} bytes\n"
    run(files / "game.json", "--out", out, "--seat", 1)
    assert out.read_text() == game.view(1)._repr_svg_()
    run(files / "game.json", "--out", files / "table.PNG")
    assert (files / "table.PNG").read_bytes() == png_bytes(table_picture(game))
    assert sorted(path.name for path in files.iterdir()) == [
        "game.json", "games.jsonl", "table.PNG", "table.svg",
    ]  # fmt: skip


def test_a_record_becomes_a_film_a_page_or_a_moment(files: Path) -> None:
    record = recorded(SMALL, 2)
    steps: list[Step] = story(record)
    pictures = story_pictures(record, steps)
    games = files / "games.jsonl"
    run(games, "--game", 2, "--out", files / "a.html")
    assert (files / "a.html").read_text() == page_text(record, steps)
    run(games, "--game", 2, "--out", files / "a.svg", "--seconds", 0.7)
    assert (files / "a.svg").read_text() == animated_svg(pictures, 0.7)
    run(games, "--game", 2, "--out", files / "a.gif")
    assert (files / "a.gif").read_bytes() == gif_bytes(pictures, 1.5)
    run(games, "--game", 2, "--out", files / "a.png")
    assert (files / "a.png").read_bytes() == png_bytes(pictures[-1])
    run(games, "--game", 2, "--out", files / "b.svg", "--turn", 1)
    assert (files / "b.svg").read_text() == svg_text(pictures[1])
    run(games, "--game", 2, "--out", files / "b.svg", "--turn", 2, "--seat", 1)
    views = [steps[turn].game.view(1) for turn in (2, 1)]
    assert (files / "b.svg").read_text() == svg_text(table_picture(*views, record.players))
    run(games, "--out", files / "first.html")
    first = recorded(SMALL, 1)
    assert (files / "first.html").read_text() == page_text(first, story(first))


def test_the_second_record_is_checked(files: Path) -> None:
    lines = (files / "games.jsonl").read_text().splitlines()
    data = json.loads(lines[1])
    data["returns"] = [0, 0] if data["returns"] != [0, 0] else [1, -1]
    (files / "games.jsonl").write_text(f"{lines[0]}\n{json.dumps(data)}\n")
    with pytest.raises(UsageError, match=r"games\.jsonl, game 2: .*returns"):
        run(files / "games.jsonl", "--game", 2, "--out", files / "a.html")
    assert not (files / "a.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no_such.json", "--out", "a.svg"], "no_such.json"),
        (["game.json", "--out", "a.jpg"], r"must end in one of \.svg \.png \.gif \.html, got"),
        (["game.json", "--out", "a.gif"], "one position: --out must end in .svg or .png"),
        (["game.json", "--out", "a.html"], "one position"),
        (["game.json", "--out", "a.svg", "--game", "1"], "--game is for records"),
        (["game.json", "--out", "a.svg", "--turn", "1"], "--turn is for records"),
        (["games.jsonl", "--out", "a.svg", "--game", "3"], "--game must be from 1 to 2, got 3"),
        (["games.jsonl", "--out", "a.svg", "--game", "0"], "--game must be from 1 to 2, got 0"),
        (["games.jsonl", "--out", "a.svg", "--turn", "99"], "--turn must be from 0 to"),
        (["games.jsonl", "--out", "a.svg", "--turn", "-1"], "--turn must be from 0 to"),
        (["games.jsonl", "--out", "a.html", "--turn", "1"], "for a still picture"),
        (["games.jsonl", "--out", "a.gif", "--seat", "1"], "for a still picture"),
        (["games.jsonl", "--out", "a.svg", "--seconds", "0"], "--seconds must be more than 0"),
        (["games.jsonl", "--out", "a.svg", "--seconds", "nan"], "--seconds must be more than 0"),
        (["games.jsonl", "--out", "a.html", "--nodes", "-1"], "--nodes must be at least 0"),
        (["games.jsonl", "--out", "no/such/folder/a.svg"], "folder"),
        (["empty.txt", "--out", "a.svg"], "holds neither"),
        (["noise.bin", "--out", "a.svg"], "noise.bin, line 1"),
        (["bad.json", "--out", "a.svg"], r"bad\.json: .*TS"),
    ],
)
def test_bad_input_is_refused_in_words(
    files: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    Path("empty.txt").touch()
    Path("noise.bin").write_bytes(b"\xff\xfe\n")
    Path("bad.json").write_text(Path("game.json").read_text().replace('"AS"', '"TS"'))
    before = sorted(files.iterdir())
    with pytest.raises(UsageError, match=message):
        run(*arguments)
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize("ending", [".png", ".gif"])
def test_the_command_names_the_extra(
    files: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train.usage.find_spec", lambda module: None)
    with pytest.raises(UsageError, match=r"PIL: pip install \"counterweight-env\[render\]\""):
        run(files / "games.jsonl", "--out", files / f"a{ending}")


def test_the_draft_is_not_left_behind(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(UsageError, match="no space"):
        run(files / "game.json", "--out", files / "a.svg")
    assert sorted(path.name for path in files.iterdir()) == ["game.json", "games.jsonl"]


# --- The docs -----------------------------------------------------------------------------------

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def test_the_pictures_in_the_docs_are_what_the_commands_make(tmp_path: Path) -> None:
    run(IMAGES / "games.jsonl", "--turn", 25, "--out", tmp_path / "table.svg")
    assert (tmp_path / "table.svg").read_text() == (IMAGES / "table.svg").read_text()
    run(IMAGES / "games.jsonl", "--turn", 25, "--seat", 0, "--out", tmp_path / "table.png")
    with Image.open(tmp_path / "table.png") as made, Image.open(IMAGES / "table.png") as kept:
        assert made.size == kept.size
        apart = np.array(made.convert("RGB")).astype(int) - np.array(kept.convert("RGB"))
        assert np.abs(apart).mean() < 2  # versions of Pillow paint edges a little differently
    assert (IMAGES / "table.png").stat().st_size < 60_000
    with Image.open(IMAGES / "replay.gif") as film:
        record = list(read_records(IMAGES / "games.jsonl"))[1]
        assert film.n_frames == len(story(record))
    assert (IMAGES / "replay.gif").stat().st_size < 300_000
