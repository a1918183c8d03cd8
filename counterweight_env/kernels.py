"""The rules of Counterweight, once: numba functions over one game's record of the state array.

Every other module is a cover of this one. Functions take ``game`` (a record of dtype ``STATE``) and
``table`` (a record of dtype ``RULE_TABLE``) and check nothing: callers refuse bad input first.
Clause numbers (S1 to F4) are those of the rule book in ``docs/rules.md``.

With ``NUMBA_DISABLE_JIT=1`` everything here runs as plain Python, for debugging.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np
from numba import config

from counterweight_env.bits import store_bits

__all__ = ["NO_CARD", "STATE"]

MAX_STOCK: Final = 46  # 52 cards, two hands of two and the table
NO_CARD: Final = 255
NOBODY: Final = -1

LEFT: Final = 0
RIGHT: Final = 1
DISCARD: Final = 2
REFILL: Final = 3
OVER: Final = 4
WAIT: Final = 5  # only in views: somebody else is on turn

DEAL_STREAM: Final = 0
AGENT_STREAM: Final = 1

#: One game. Sets of cards are masks; piles whose order matters are arrays with a length. What a
#: step reads most comes first, so that it lies together in the processor's cache.
STATE: Final = np.dtype(
    [
        ("hand", np.uint64, 2),
        ("legal", np.uint64),  # the legal actions; none when the game is over
        ("discarded", np.uint64, 2),  # the cards of each discard, as a set
        ("buried", np.uint64),
        ("table", np.uint8, 2),
        ("phase", np.uint8),
        ("to_move", np.int8),  # NOBODY when the game is over
        ("chosen", np.uint8),  # the card picked for the left in phase RIGHT, else NO_CARD
        ("refills", np.uint8),  # refill cards still to come, in phase REFILL
        ("stock_size", np.uint8),
        ("discard_size", np.uint8, 2),
        # The card drawn after a discard that faced the table as it lies now, or NO_CARD.
        ("fresh", np.uint8, 2),
        ("turn", np.uint8),  # turns completed, never more than 96
        ("dealer", np.uint8),
        # 0, or 2 plus the exact value for player 0 of a game that was ended at exhaustion.
        ("settled", np.uint8),
        ("stock", np.uint8, MAX_STOCK),  # the next card is the last
        ("discard", np.uint8, (2, MAX_STOCK)),  # bottom first
        ("known", np.uint64, 2),  # the part of each hand that the other player knows
        ("rng", np.uint64, 2),  # DEAL_STREAM, AGENT_STREAM
    ],
    align=True,
)

_F = TypeVar("_F", bound=Callable[..., Any])


def kernel(function: _F) -> _F:
    """Compiles a function; without JIT, lets its 64-bit arithmetic wrap as compiled code does.

    Compiled code is kept for the next process, where a folder for it can be written.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return np.errstate(over="ignore")(function)
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no such folder
        return cast(_F, numba.njit(nogil=True)(function))
    # Numba takes what it has kept as long as the function's own file is the same, but kernels are
    # compiled into one another across files: what is kept must be as old as all of them.
    kept = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if kept is not None and hasattr(kept, "_source_stamp"):
        kept._source_stamp = (kept._source_stamp, _engine_stamp(), _kernel_stamp(function))
    return cast(_F, compiled)


def _stamp(path: Path) -> tuple[str, int, int]:
    return path.name, path.stat().st_mtime_ns, path.stat().st_size


def _kernel_stamp(function: Callable[..., Any]) -> tuple[tuple[str, int, int], ...]:
    """What changes when any file does from which a kernel may be compiled into this one."""
    files: set[str] = set()
    waiting = [function]
    while waiting:
        source = waiting.pop()
        if source.__code__.co_filename not in files:
            files.add(source.__code__.co_filename)
            waiting += [
                value.py_func
                for value in list(source.__globals__.values())
                if hasattr(value, "py_func")
            ]
    return tuple(_stamp(Path(file)) for file in sorted(files) if Path(file).is_file())


@lru_cache(maxsize=1)
def _engine_stamp() -> tuple[tuple[str, int, int], ...]:
    """What changes when any source file of this package does."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return tuple(_stamp(path) for path in files)


ZERO: Final = np.uint64(0)
ONE: Final = np.uint64(1)
EACH_BYTE: Final = np.uint64(0x0101010101010101)


def _nth_in_byte() -> np.ndarray:
    table = np.zeros((8, 256), np.uint8)
    for byte in range(256):
        for n, place in enumerate(i for i in range(8) if byte >> i & 1):
            table[n, byte] = place
    return table


NTH_IN_BYTE: Final = _nth_in_byte()


# --- Bits ---------------------------------------------------------------------------------------


@kernel
def bit(card):
    """The mask of one card."""
    return ONE << np.uint64(card)


@kernel
def count_bits(mask):
    """Cards in a mask (the usual SWAR sum, which LLVM turns into one instruction)."""
    mask = mask - ((mask >> ONE) & np.uint64(0x5555555555555555))
    mask = (mask & np.uint64(0x3333333333333333)) + (
        (mask >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    mask = (mask + (mask >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((mask * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def lowest_bit(mask):
    """The index of the lowest card of a mask that is not empty."""
    return count_bits((mask & (~mask + ONE)) - ONE)


@kernel
def nth_bit(mask, n):
    """The index of the n-th lowest card of a mask, n from 0, without a branch (Vigna, 2008)."""
    # Byte i of `sums` counts the cards in the bytes up to i.
    sums = mask - ((mask >> ONE) & np.uint64(0x5555555555555555))
    sums = (sums & np.uint64(0x3333333333333333)) + (
        (sums >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    sums = (sums + (sums >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    sums *= EACH_BYTE
    wanted = np.uint64(n)
    passed = (((wanted * EACH_BYTE) | (EACH_BYTE << np.uint64(7))) - sums) & (
        EACH_BYTE << np.uint64(7)
    )
    start = np.uint64(count_bits(passed)) * np.uint64(8)
    before = ((sums << np.uint64(8)) >> start) & np.uint64(255)
    byte = (mask >> start) & np.uint64(255)
    return np.int64(start) + np.int64(NTH_IN_BYTE[wanted - before, byte])


# --- Chance -------------------------------------------------------------------------------------


@kernel
def mix_bits(word):
    """The output function of SplitMix64 (Steele, Lea and Flood, 2014)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@kernel
def next_word(streams, stream):
    """Advances one SplitMix64 stream and returns 64 fresh bits."""
    state = streams[stream] + np.uint64(0x9E3779B97F4A7C15)
    streams[stream] = state
    return mix_bits(state)


@kernel
def random_below(streams, stream, n):
    """A number from 0 to n - 1, without bias (Lemire, 2019)."""
    bound = np.uint64(n)
    low_half = np.uint64(0xFFFFFFFF)
    product = (next_word(streams, stream) >> np.uint64(32)) * bound
    if product & low_half < bound:
        least = (np.uint64(0x100000000) - bound) % bound
        while product & low_half < least:
            product = (next_word(streams, stream) >> np.uint64(32)) * bound
    return np.int64(product >> np.uint64(32))


@kernel
def shuffle(cards, streams, stream):
    """Shuffles an array in place (Fisher and Yates)."""
    for i in range(cards.size - 1, 0, -1):
        j = random_below(streams, stream, i + 1)
        swapped = cards[i]
        cards[i] = cards[j]
        cards[j] = swapped


@kernel
def seed_streams(game, seed):
    """Starts both streams of a game from one 64-bit seed."""
    game["rng"][DEAL_STREAM] = mix_bits(seed + np.uint64(0x632BE59BD9B4E019))
    game["rng"][AGENT_STREAM] = mix_bits(~seed + np.uint64(0x2545F4914F6CDD1D))


# --- Legal couples (C1 to C4) -------------------------------------------------------------------


@kernel
def with_partner(cards, partners):
    """The members of `cards` for which `partners` holds a card other than themselves."""
    if partners == ZERO:
        return ZERO
    if partners & (partners - ONE) == ZERO:
        return cards & ~partners
    return cards


@kernel
def free_ranks(table, left, right):
    """The ranks, as a mask of one suit, whose pairs may be placed: C3, or C4 on equal ranks."""
    low = np.uint64(table["rank_of"][left])
    high = np.uint64(table["rank_of"][right])
    if low == high:
        return np.uint64(table["all_ranks"])
    if low > high:
        low, high = high, low
    return (ONE << high) - (ONE << (low + ONE))


@kernel
def pairs(table, hand, left, right):
    """The hand's cards that form a pair by C3 or C4."""
    ranks = np.uint64(table["all_ranks"])
    width = np.uint64(table["ranks"])
    once = ZERO
    twice = ZERO
    for _ in range(table["suits"]):
        suit = hand & ranks
        twice |= once & suit
        once |= suit
        hand >>= width
    return (twice & free_ranks(table, left, right)) * np.uint64(table["rank_column"])


@kernel
def left_cards(table, hand, left, right):
    """The hand's cards that some partner completes to a legal couple when laid on the left card."""
    same = table["same_rank"]
    above = table["above"]
    below = table["below"]
    found = with_partner(hand & same[left], hand & same[right])
    found |= with_partner(hand & above[left], hand & below[right])
    found |= with_partner(hand & below[left], hand & above[right])
    if table["exchange"]:
        found |= hand & pairs(table, hand, left, right)
    return found


@kernel
def right_cards(table, hand, left, right, first):
    """The hand's cards that complete a legal couple with `first` on the left card."""
    first_bit = bit(first)
    found = ZERO
    if table["same_rank"][left] & first_bit:
        found |= table["same_rank"][right]
    if table["above"][left] & first_bit:
        found |= table["below"][right]
    if table["below"][left] & first_bit:
        found |= table["above"][right]
    if table["exchange"] and free_ranks(table, left, right) & bit(table["rank_of"][first]):
        found |= table["same_rank"][first]
    return found & hand & ~first_bit


# --- The course of a game -----------------------------------------------------------------------


@kernel
def finish(game):
    """Ends the game (F2)."""
    game["phase"] = OVER
    game["to_move"] = NOBODY
    game["legal"] = ZERO


@kernel
def begin_turn(game, table, player):
    """Puts a player on turn: a couple if there is one (T1), else a discard (T2), else F1 and F2."""
    left = game["table"][0]
    right = game["table"][1]
    hand = game["hand"][player]
    playable = left_cards(table, hand, left, right)
    if playable == ZERO and game["stock_size"] == 0 and not table["discard_when_blocked"]:
        player = 1 - player  # F1: passing is automatic
        playable = left_cards(table, game["hand"][player], left, right)
        if playable == ZERO:
            finish(game)
            return
    game["to_move"] = player
    if playable != ZERO:
        game["phase"] = LEFT
        game["legal"] = playable
    else:
        game["phase"] = DISCARD
        game["legal"] = hand


@kernel
def end_turn(game, table):
    """Ends the mover's turn; an empty hand ends the game (F2)."""
    game["turn"] += 1
    player = np.int64(game["to_move"])
    if game["hand"][player] == ZERO:
        finish(game)
    else:
        begin_turn(game, table, 1 - player)


@kernel
def clear_discard(game, player):
    """Empties a discard."""
    for i in range(game["discard_size"][player]):
        game["discard"][player, i] = 0
    game["discard_size"][player] = 0
    game["discarded"][player] = ZERO


@kernel
def exhaust(game, table):
    """Hands the discards out (E2) and makes everything known (E3)."""
    for player in range(2):
        source = 1 - player if table["exchange"] else player
        game["hand"][player] |= game["discarded"][source]
    for player in range(2):
        clear_discard(game, player)
        game["known"][player] = game["hand"][player]
        game["fresh"][player] = NO_CARD


@kernel
def draw(game, table, player):
    """Draws the next stock card into a hand; the last one exhausts the stock (E1)."""
    size = game["stock_size"] - 1
    card = game["stock"][size]
    game["stock"][size] = 0  # unused slots stay 0, so that equal games are equal bytes
    game["stock_size"] = size
    game["hand"][player] |= bit(card)
    if size == 0:
        exhaust(game, table)
    return card


@kernel
def reclaim(game, table, player):
    """Takes the top of a player's own discard into hand (T4); from an open pile it is known."""
    size = game["discard_size"][player] - 1
    card_bit = bit(game["discard"][player, size])
    game["discard"][player, size] = 0
    game["discard_size"][player] = size
    game["discarded"][player] &= ~card_bit
    game["hand"][player] |= card_bit
    if table["open_discards"]:
        game["known"][player] |= card_bit


@kernel
def refill(game, table):
    """Goes on with the refill until it ends or the mover has a choice of source (T3 to T6, E1)."""
    player = np.int64(game["to_move"])
    while game["refills"] > 0 and game["stock_size"] > 0:
        if not table["exchange"] and game["discard_size"][player] > 0:
            deck = np.uint64(table["deck_size"])
            game["phase"] = REFILL
            game["legal"] = np.uint64(3) << deck  # STOCK and RECLAIM
            return
        draw(game, table, player)
        game["refills"] -= 1
    game["refills"] = 0
    end_turn(game, table)


@kernel
def place_couple(game, table, first, second):
    """Covers the table cards with a couple (T1), which buries them, and starts the refill (T3)."""
    player = np.int64(game["to_move"])
    couple = bit(first) | bit(second)
    game["hand"][player] &= ~couple
    game["known"][player] &= ~couple
    game["buried"] |= bit(game["table"][0]) | bit(game["table"][1])
    game["table"][0] = first
    game["table"][1] = second
    game["fresh"][0] = NO_CARD
    game["fresh"][1] = NO_CARD
    game["chosen"] = NO_CARD
    game["refills"] = 2
    refill(game, table)


@kernel
def lay_down(game, table, card):
    """Discards a card and draws (T2), or after exhaustion lays it out of play."""
    player = np.int64(game["to_move"])
    card_bit = bit(card)
    game["hand"][player] &= ~card_bit
    game["known"][player] &= ~card_bit
    if game["stock_size"] == 0:
        game["buried"] |= card_bit
    else:
        size = game["discard_size"][player]
        game["discard"][player, size] = card
        game["discard_size"][player] = size + 1
        game["discarded"][player] |= card_bit
        drawn = draw(game, table, player)
        if game["stock_size"] > 0:
            game["fresh"][player] = drawn
    end_turn(game, table)


@kernel
def choose_left(game, table, card):
    """Picks the card for the left table card."""
    player = np.int64(game["to_move"])
    game["chosen"] = card
    game["phase"] = RIGHT
    game["legal"] = right_cards(
        table, game["hand"][player], game["table"][0], game["table"][1], card
    )


@kernel
def take_refill(game, table, action):
    """Takes one refill card from the source that the mover chose (T4)."""
    player = np.int64(game["to_move"])
    if action == table["deck_size"]:
        draw(game, table, player)
    else:
        reclaim(game, table, player)
    game["refills"] -= 1
    refill(game, table)


@kernel
def apply(game, table, action):
    """Carries out one legal action of the mover."""
    phase = game["phase"]
    if phase == LEFT:
        choose_left(game, table, action)
    elif phase == RIGHT:
        place_couple(game, table, game["chosen"], action)
    elif phase == DISCARD:
        lay_down(game, table, action)
    else:
        take_refill(game, table, action)


@kernel
def lay_out(game, table, deck, dealer):
    """Sets a game up from a deck in dealing order (S2, S3), leaving its random streams alone."""
    size = table["hand_size"]
    for player in range(2):
        hand = ZERO
        for i in range(player * size, (player + 1) * size):
            hand |= bit(deck[i])
        game["hand"][player] = hand
        game["known"][player] = ZERO
        clear_discard(game, player)
        game["fresh"][player] = NO_CARD
        game["table"][player] = deck[2 * size + player]
    stock_size = table["stock_size"]
    for i in range(stock_size):
        game["stock"][stock_size - 1 - i] = deck[2 * size + 2 + i]
    game["stock_size"] = stock_size
    game["buried"] = ZERO
    game["chosen"] = NO_CARD
    game["refills"] = 0
    game["turn"] = 0
    game["settled"] = 0
    game["dealer"] = dealer
    begin_turn(game, table, 1 - dealer)


@kernel
def deal(game, table, deck, dealer):
    """Shuffles and deals a game from its own stream; `dealer` NOBODY draws the dealer by lot (S1).

    `deck` is scratch space, one entry a card. The lot is drawn in any case, so that fixing the
    dealer does not change the cards.
    """
    for card in range(table["deck_size"]):
        deck[card] = card
    lot = random_below(game["rng"], DEAL_STREAM, 2)
    shuffle(deck, game["rng"], DEAL_STREAM)
    lay_out(game, table, deck, lot if dealer == NOBODY else dealer)


@kernel
def outcome(game):
    """The payoff of player 0 at the end: 1, 0 or -1 (F3); 0 while the game runs."""
    if game["phase"] != OVER:
        return 0
    if game["settled"] != 0:
        return np.int64(game["settled"]) - 2
    mine = count_bits(game["hand"][0])
    theirs = count_bits(game["hand"][1])
    if mine == theirs:
        return 0
    return 1 if mine < theirs else -1


# --- Whole batches ------------------------------------------------------------------------------


@kernel
def seed_games(games, seeds):
    """Starts the streams of every game from its seed."""
    for i in range(games.size):
        seed_streams(games[i], seeds[i])


@kernel
def deal_games(games, tables, dealer, rows):
    """Deals new games in the given rows."""
    deck = np.empty(tables[0]["deck_size"], np.uint8)
    for i in range(rows.size):
        deal(games[rows[i]], tables[0], deck, dealer)


@kernel
def deal_finished(games, tables, dealer, rows):
    """Deals anew wherever a game is over, and notes where; returns how many there were."""
    deck = np.empty(tables[0]["deck_size"], np.uint8)
    count = 0
    for i in range(games.size):
        if games[i]["legal"] == ZERO:
            deal(games[i], tables[0], deck, dealer)
            rows[count] = i
            count += 1
    return count


@kernel
def lay_out_games(games, tables, decks, dealer):
    """Sets every game up from its own deck."""
    for i in range(games.size):
        lay_out(games[i], tables[0], decks[i], dealer)


@kernel
def is_legal(game, action, num_actions):
    """Whether a running game allows an action."""
    return action >= 0 and action < num_actions and game["legal"] & bit(action) != ZERO


@kernel
def first_illegal(games, tables, rows, actions):
    """The first position in `rows` whose game runs and whose action is illegal, or -1."""
    num_actions = tables[0]["deck_size"] + 2
    for i in range(rows.size):
        game = games[rows[i]]
        if game["legal"] != ZERO and not is_legal(game, actions[i], num_actions):
            return i
    return -1


@kernel
def step_rows(games, tables, rows, actions):
    """Moves each of the given games that still runs, if all their actions are legal.

    Games are independent, so they are taken phase by phase: a processor guesses a branch right when
    it went the same way for the games before.

    Returns the first position in `rows` whose action is illegal, and moves no game; or -1.
    """
    table = tables[0]
    num_actions = table["deck_size"] + 2
    waiting = np.empty((OVER + 1, rows.size), np.int32)
    counts = np.zeros(OVER + 1, np.int64)
    for i in range(rows.size):
        game = games[rows[i]]
        if game["legal"] != ZERO and not is_legal(game, actions[i], num_actions):
            return i
        phase = game["phase"]
        waiting[phase, counts[phase]] = i
        counts[phase] += 1
    for k in range(counts[LEFT]):
        i = waiting[LEFT, k]
        choose_left(games[rows[i]], table, actions[i])
    for k in range(counts[RIGHT]):
        i = waiting[RIGHT, k]
        game = games[rows[i]]
        place_couple(game, table, game["chosen"], actions[i])
    for k in range(counts[DISCARD]):
        i = waiting[DISCARD, k]
        lay_down(games[rows[i]], table, actions[i])
    for k in range(counts[REFILL]):
        i = waiting[REFILL, k]
        take_refill(games[rows[i]], table, actions[i])
    return -1


@kernel
def step_one(games, tables, action):
    """Moves a single game; returns its next legal actions, or -1 if the action was illegal.

    An illegal action changes nothing.
    """
    game = games[0]
    if not is_legal(game, action, tables[0]["deck_size"] + 2):
        return -1
    apply(game, tables[0], action)
    return np.int64(game["legal"])


@kernel
def unpack_legal(tables, games, out):
    """Writes each game's legal actions as a row of 0 and 1."""
    num_actions = tables[0]["deck_size"] + 2
    flat = out.reshape(out.size)
    # Rows are narrower than what one store writes; the next row overwrites what is too much.
    safe = max(games.size - 64 // num_actions - 1, 0)
    for i in range(safe):
        store_bits(flat, i * num_actions, games[i]["legal"])
    for i in range(safe, games.size):
        legal = games[i]["legal"]
        for action in range(num_actions):
            out[i, action] = (legal >> np.uint64(action)) & ONE


@kernel
def outcomes(games, out):
    """Writes every game's payoff for both players."""
    for i in range(games.size):
        value = outcome(games[i])
        out[i, 0] = value
        out[i, 1] = 0 - value


@kernel
def draw_words(games, rows, stream, out):
    """Draws one fresh word from a stream of each of the given games."""
    for i in range(rows.size):
        out[i] = next_word(games[rows[i]]["rng"], stream)


@kernel
def random_action(game):
    """A legal action, drawn evenly from the game's agent stream."""
    legal = game["legal"]
    return nth_bit(legal, random_below(game["rng"], AGENT_STREAM, count_bits(legal)))


@kernel
def draw_actions(games, rows, out):
    """Draws a legal action for each of the given games; 0 for a finished one."""
    for i in range(rows.size):
        game = games[rows[i]]
        out[i] = 0 if game["phase"] == OVER else random_action(game)


@kernel
def play_random(games, tables, decisions):
    """Plays evenly drawn legal actions, `decisions` a game, dealing anew at each end.

    Returns the number of games that ended.
    """
    deck = np.empty(tables[0]["deck_size"], np.uint8)
    ended = 0
    for i in range(games.size):
        game = games[i]
        for _ in range(decisions):
            apply(game, tables[0], random_action(game))
            if game["phase"] == OVER:
                ended += 1
                deal(game, tables[0], deck, NOBODY)
    return ended
