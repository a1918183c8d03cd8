"""The rows that describe moves: symmetric, without hidden cards, and counting what they say."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from helpers import Symmetry, card, cards, random_deck, symmetries
from reference_game import legal_couples

from agents.leaf import ESTIMATE
from agents.moves import ENDING, MAX_MOVES, OPENING, WIDTH, count_moves, list_moves
from counterweight_env import Game, GameBatch, Phase, Rules
from counterweight_env.cards import rule_table
from counterweight_env.kernels import NO_CARD, STATE
from counterweight_env.observation import decode, encode_batch, encoder_offsets

RULE_SETS = (
    "classic",
    "exchange",
    "classic(open_discards=False)",
    "exchange(open_discards=False)",
    "exchange(ranks=5,suits=3,hand_size=3)",
    "classic(ranks=6,suits=2,hand_size=3)",
    "classic(blocked=discard)",
)


def described(record: np.ndarray, rules: Rules, player: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the actions (n, 2) and rows (n, WIDTH) of a record's moves."""
    table = rule_table(rules)[0]
    actions = np.full((MAX_MOVES, 2), -7, np.int64)
    rows = np.full((MAX_MOVES, WIDTH), np.nan, np.float32)
    count = list_moves(record, table, player, actions, rows)
    assert count == count_moves(record, table, player)
    return actions[:count], rows[:count]


def moves_of(game: Game) -> dict[tuple[int, int], tuple[float, ...]]:
    """Return the row of every move of the player on turn."""
    view = game.view(game.to_move)
    actions, rows = described(view._game, game.rules, game.to_move)
    listed = {
        (int(first), int(second)): tuple(np.round(row, 5).tolist())
        for (first, second), row in zip(actions, rows, strict=True)
    }
    assert len(listed) == len(actions)
    return listed


def random_positions(rules: str, games: int, seed: int, every: int) -> list[Game]:
    """Return positions of random games, every n-th decision."""
    batch = GameBatch(games, rules, seed)
    found, step = [], 0
    while not batch.done.all():
        live = np.flatnonzero(~batch.done)
        found += [batch[row] for row in live if (step + row) % every == 0]
        batch.step(batch.random_actions())
        step += 1
    return found


@pytest.mark.parametrize("rules", RULE_SETS)
def test_the_moves_are_the_legal_ones(rules: str) -> None:
    for game in random_positions(rules, 12, 3, 7):
        listed = moves_of(game)
        assert {first for first, _ in listed} == set(game.legal_actions())
        if game.phase == Phase.LEFT:
            hand = game.hand(game.to_move)
            assert set(listed) == set(
                legal_couples(hand, game.table, game.rules.variant, game.rules.ranks)
            )
        else:
            assert {second for _, second in listed} == {NO_CARD}


@pytest.mark.parametrize("rules", ["classic", "exchange"])
def test_the_96_images_of_a_position_have_the_same_rows(rules: str) -> None:
    rng = random.Random(5)
    images = symmetries(13, 4)
    assert len(images) == 96
    seen = set()
    for _ in range(6):
        deck = random_deck(rng)
        base = Game.from_deck(deck, rules, dealer=0)
        games = [Game.from_deck(image.deck(deck, 6), rules, dealer=0) for image in images]
        while not base.done:
            if rng.random() < 0.15:
                seen.add((base.phase, base.exhausted))
                rows = moves_of(base)
                for image, game in zip(images, games, strict=True):
                    mapped = {
                        image_of_move(image, base.rules, move): row for move, row in rows.items()
                    }
                    assert mapped == moves_of(game)
            # Right cards are chosen with their left ones, since images may swap the two.
            move = rng.choice(sorted(moves_of(base)))
            rules_of = base.rules
            for image, game in zip([None, *images], [base, *games], strict=True):
                there = move if image is None else image_of_move(image, rules_of, move)
                for action in there:
                    if action != NO_CARD:
                        game.step(action)
    assert {phase for phase, _ in seen} >= {Phase.LEFT, Phase.DISCARD}
    assert (Phase.LEFT, True) in seen


def image_of_move(image: Symmetry, rules: Rules, move: tuple[int, int]) -> tuple[int, int]:
    """Return the image of a move: a couple, a card, or a source."""
    first, second = move
    if second != NO_CARD:
        return image.couple(move)
    if first >= rules.deck_size:
        return move
    return image.card(first), second


@pytest.mark.parametrize("rules", RULE_SETS)
def test_rows_follow_from_the_view_and_from_the_observation(rules: str) -> None:
    """Full record, redacted record and the record read back from the observation agree."""
    for game in random_positions(rules, 10, 4, 9):
        player = game.to_move
        actions, rows = described(game.view(player)._game, game.rules, player)
        full_actions, full_rows = described(game._state[0], game.rules, player)
        np.testing.assert_array_equal(full_actions, actions)
        np.testing.assert_array_equal(full_rows, rows)
        observation = game.observe(player)
        record = np.zeros(1, STATE)
        decode(observation, rule_table(game.rules)[0], encoder_offsets(game.rules), record[0])
        read_actions, read_rows = described(record[0], game.rules, 0)
        np.testing.assert_array_equal(read_actions, actions)
        np.testing.assert_array_equal(read_rows, rows)
        again = np.empty((1, observation.size), np.int8)
        encode_batch(record, game.rules, np.zeros(1, np.int8), again)
        np.testing.assert_array_equal(again[0], observation)


def test_rows_are_finite_and_small() -> None:
    for rules in RULE_SETS:
        for game in random_positions(rules, 6, 6, 5):
            _, rows = described(game.view(game.to_move)._game, game.rules, game.to_move)
            assert np.isfinite(rows).all()
            assert np.abs(rows).max() <= 8


@pytest.mark.parametrize("rules", ["classic", "exchange"])
def test_the_columns_of_an_ending_count_what_they_say(rules: str) -> None:
    """Against plain counts over `reference_game.legal_couples` of unordered couples."""
    column = {name: place for place, name in enumerate(ENDING)}
    checked = 0
    for game in random_positions(rules, 30, 8, 3):
        if not game.exhausted or game.phase != Phase.LEFT or len(game.hand(0)) > 12:
            continue
        mine, theirs = set(game.hand(game.to_move)), set(game.hand(1 - game.to_move))
        for (left, right), row in moves_of(game).items():
            rest = mine - {left, right}
            replies = held(theirs, (left, right), game)
            own = held(rest, (left, right), game)
            assert row[column["no reply"]] == (not replies)
            assert row[column["I cannot go on"]] == (not own)
            over = not rest or not (replies or own)
            assert row[column["game over"]] == over
            if over:
                lead = len(theirs) - len(rest)
                assert row[column["result"]] == (lead > 0) - (lead < 0)
            assert row[column["mine"]] == pytest.approx(len(rest) / 20)
            assert row[column["theirs"]] == pytest.approx(len(theirs) / 20)
            if replies:
                silent = [reply for reply in replies if not held(rest, tuple(sorted(reply)), game)]
                expected = 0.5 * np.log1p(len(silent))
                assert row[column["replies without an answer"]] == pytest.approx(expected, abs=1e-4)
                assert row[column["any such reply"]] == bool(silent)
            elif not over:
                silent = [couple for couple in own if not held(theirs, tuple(sorted(couple)), game)]
                expected = 0.5 * np.log1p(len(silent))
                name = "couples after no reply that have no reply"
                assert row[column[name]] == pytest.approx(expected, abs=1e-4)
            hands = {"my": rest, "their": theirs}
            for whose, on in (("their", "my"), ("my", "their"), ("my", "my"), ("their", "their")):
                pairs = list(combinations(sorted(hands[whose]), 2))
                answered = sum(bool(held(hands[on], pair, game)) for pair in pairs)
                name = f"{whose} cards on which {'I' if on == 'my' else 'they'} have couples"
                expected = answered / max(len(pairs), 1)
                assert row[column[name]] == pytest.approx(expected, abs=1e-4)
            checked += 1
    assert checked > 100


@pytest.mark.parametrize("rules", ["classic", "exchange"])
def test_the_answers_to_replies_are_looked_at_whatever_the_hands(rules: str) -> None:
    """A reply is bad for them if some answer leaves them no couple; hands of all sizes."""
    column = {name: place for place, name in enumerate(ENDING)}
    sizes = []
    for game in random_positions(rules, 12, 9, 2):
        if not game.exhausted or game.phase != Phase.LEFT:
            continue
        mine, theirs = set(game.hand(game.to_move)), set(game.hand(1 - game.to_move))
        for couple, row in list(moves_of(game).items())[:4]:
            rest = mine - set(couple)
            loud = []
            replies = held(theirs, couple, game)
            for reply in replies:
                answers = held(rest, tuple(sorted(reply)), game)
                loud.append(
                    theirs == reply
                    or all(held(theirs - reply, tuple(sorted(answer)), game) for answer in answers)
                )
            if replies:
                name = "replies to which no answer is silent"
                assert row[column[name]] == pytest.approx(0.5 * np.log1p(sum(loud)), abs=1e-4)
                assert row[column["share of those"]] == pytest.approx(np.mean(loud), abs=1e-4)
                assert row[column["all replies have a silent answer"]] == (not any(loud))
                sizes.append(len(rest) + len(theirs))
    assert len(sizes) > 100
    assert min(sizes) < 18
    assert max(sizes) > 24


def about(hand: set[int], table: tuple[int, ...], rules: Rules) -> int:
    """Return the couples by C1 and C2, either way round, and two for each rank of C3 or C4."""
    left, right = table
    low, high = sorted((left % rules.ranks, right % rules.ranks))
    open_pairs = 0
    if rules.variant == "exchange":
        pairs = {
            rank for rank, count in Counter(c % rules.ranks for c in hand).items() if count > 1
        }
        open_pairs = sum(low < rank < high or low == high for rank in pairs)
    return len(legal_couples(hand, (left, right), "classic", rules.ranks)) + 2 * open_pairs


def guess(mine: set[int], other: set[int], table: tuple[int, ...], game: Game) -> float:
    """Return the estimate for a mover who has a couple, counted in plain Python."""
    rules = game.rules
    ranks, others = (Counter(c % rules.ranks for c in hand) for hand in (mine, other))
    own, other_now = (about(hand, table, rules) for hand in (mine, other))
    lead = len(other) - len(mine)
    counts = [
        len(mine) / 20,
        len(other) / 20,
        max(-4, min(4, lead)) / 4,
        lead == 0,
        len(mine) % 2,
        min(own, 8) / 8,
        min(other_now, 8) / 8,
        other_now == 0,
        sum(count > 1 for count in ranks.values()) / 6,
        sum(count > 1 for count in others.values()) / 6,
        len(ranks) / 6,
        len(others) / 6,
        len(ranks.keys() & others.keys()) / 6,
    ]
    size = len(mine) + len(other)
    weights = ESTIMATE[int(rules.variant == "exchange"), (size > 16) + (size > 24)]
    return max(-1.0, min(1.0, sum(w * c for w, c in zip(weights, counts, strict=True))))


def worth(mine: set[int], theirs: set[int], table: tuple[int, ...], game: Game) -> float:
    """Return what a table is worth to `mine`, whose turn it is, one couple ahead at most."""
    best = -1.0
    for couple in held(mine, table, game):
        rest, after = mine - couple, tuple(sorted(couple))
        if not rest or not (held(rest, after, game) or held(theirs, after, game)):
            value = float(np.sign(len(theirs) - len(rest)))
        elif held(theirs, after, game):
            value = -guess(theirs, rest, after, game)
        else:
            value = guess(rest, theirs, after, game)
        best = max(best, value)
    return best


@pytest.mark.parametrize("rules", ["classic", "exchange", "exchange(ranks=6,suits=3,hand_size=4)"])
def test_the_estimates_of_an_ending_look_as_far_as_they_say(rules: str) -> None:
    column = {name: place for place, name in enumerate(ENDING)}
    kinds: Counter[str] = Counter()
    for game in random_positions(rules, 120, 10, 3):
        if not game.exhausted or game.phase != Phase.LEFT or len(game.hand(0)) > 12:
            continue
        mine, theirs = set(game.hand(game.to_move)), set(game.hand(1 - game.to_move))
        for couple, row in list(moves_of(game).items())[:3]:
            rest = mine - set(couple)
            values = []
            for reply in held(theirs, couple, game):
                left, after = theirs - reply, tuple(sorted(reply))
                if not left or not (held(rest, after, game) or held(left, after, game)):
                    kinds["the reply ends the game"] += 1
                    values.append(float(np.sign(len(left) - len(rest))))
                elif held(rest, after, game):
                    kinds["an answer"] += 1
                    values.append(worth(rest, left, after, game))
                else:
                    kinds["no answer"] += 1
                    values.append(-guess(left, rest, after, game))
            if not rest or (not values and not held(rest, couple, game)):
                kinds["the end"] += 1
                values = [float(np.sign(len(theirs) - len(rest)))]
            elif not values:
                kinds["no reply"] += 1
                values = [worth(rest, theirs, couple, game)]
            for name, value in (("worst", min(values)), ("mean", np.mean(values))):
                place = column[f"{name} estimate after a reply and the best answer"]
                assert row[place] == pytest.approx(value, abs=1e-4)
    assert len(kinds) == 5, kinds
    assert min(kinds.values()) > 3, kinds


def held(hand: set[int], table: tuple[int, ...], game: Game) -> set[frozenset[int]]:
    """Return the couples of a hand on a table, whichever card lies left."""
    couples = legal_couples(hand, (table[0], table[1]), game.rules.variant, game.rules.ranks)
    return {frozenset(couple) for couple in couples}


def test_the_columns_of_a_discard() -> None:
    game = Game.from_position(
        (cards("2C 2D 9D KD 5D 5S"), cards("3C 4C JH QD 7S 8D")),
        cards("TS 3H"),
        stock=cards("AC AD AH AS KC"),
        discards=(cards("2H 5C"), cards("5H")),
        to_move=0,
        rules="classic",
    )
    assert game.phase == Phase.DISCARD
    column = {name: place for place, name in enumerate(OPENING)}
    row = moves_of(game)[card("5D"), NO_CARD]
    assert row[column["discard"]] == 1
    assert row[column["couple"]] == row[column["stock"]] == row[column["reclaim"]] == 0
    assert row[column["four cards left"]] == 1
    assert row[column["mine"]] == pytest.approx(6 / 20, abs=1e-4)  # five and the card that is drawn
    assert row[column["my discard"]] == pytest.approx(3 / 20, abs=1e-4)
    assert row[column["copies in mine"]] == pytest.approx(1 / 3, abs=1e-4)  # 5S
    assert row[column["copies in my discard"]] == pytest.approx(2 / 3, abs=1e-4)  # 5C and itself
    assert row[column["copies in their discard"]] == pytest.approx(1 / 3, abs=1e-4)
    assert row[column["copies unseen"]] == 0
    assert row[column["my pairs"]] == pytest.approx(1 / 6, abs=1e-4)  # the deuces
    assert row[column["cards of the suit in mine"]] == pytest.approx(3 / 6, abs=1e-4)  # 2D 9D KD
    assert row[column["distance from the middle rank"]] == pytest.approx(2 / 6, abs=1e-4)
    # They will have 6 and 1, I 6 and 3.
    assert row[column["lead at exhaustion if all stopped now"]] == pytest.approx(-2 / 8, abs=1e-4)
    assert row[column["sign of the lead"]] == -1
