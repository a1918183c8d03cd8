"""Exact values after exhaustion, where nothing is hidden any more (E3).

:func:`solve` gives the value of a position and all optimal moves, :func:`couple_values` the value
of every move, :func:`value_bounds` and :func:`solve_states` proven bounds within a budget. Inside
other kernels, call :func:`position_bounds`. How it works, and what was tried, is in
``docs/endgame.md``; clause numbers are those of ``docs/rules.md``.

In the search a card is ``16 * suit + rank``, so that each suit has a lane of 16 bits in a mask and
one kernel serves every deck size. The two table cards are an unordered pair there: swapping left
with right changes no value.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

import numpy as np

from counterweight_env import kernels
from counterweight_env.bits import prefetch
from counterweight_env.cards import cards_of, rule_table
from counterweight_env.game import Game
from counterweight_env.kernels import ONE, RIGHT, STATE, ZERO, bit, count_bits, kernel, lowest_bit
from counterweight_env.phase import Phase
from counterweight_env.rules import Rules, as_rules

__all__ = [
    "Solution",
    "Workspace",
    "couple_values",
    "forget",
    "position_bounds",
    "solve",
    "solve_states",
    "value_bounds",
]

Move = tuple[int, ...]

DEFAULT_TABLE_SIZE: Final = 2**17
#: Nodes between two looks for an interrupt; about a quarter of a second.
SLICE: Final = 2**21
UNLIMITED: Final = 2**62

LANE: Final = np.uint64(0x1FFF)  # one suit
COLUMN: Final = np.uint64(0x0001000100010001)  # one rank
FREE_BITS: Final = np.uint64(0xE000E000E000E000)  # what the cards leave free of a mask

OPEN: Final = 99  # outside all values, which are at most 52
ABORTED: Final = 100
REPLIES: Final = 1 << 30  # orders moves that can be replied to after those that cannot
OFFSET: Final = 64  # makes values positive for the table

KEPT_SIZE: Final = 20  # smaller positions are searched again rather than kept: that is quicker
DANGER_SIZE: Final = 28  # from here on better ordering is worth its time

LEARN_FROM: Final = 1000  # nodes; shorter searches are over before experience pays

# The memory of a search is one array of words: counters, frames with moves, experience, table.
NODES: Final = 0
NODE_LIMIT: Final = 1
TABLE_MASK: Final = 2  # buckets - 1
GENERATION: Final = 3  # how often all was forgotten
VARIANT: Final = 4  # two words: what keys have in the bits that cards leave free
LEARNT: Final = 6  # whether the experience is of this search
HEADER: Final = 8
# A frame; small numbers that may be negative are stored plus OFFSET.
MINE: Final = 0
OTHER: Final = 1
SQUARES: Final = 2  # left and right
GOAL: Final = 3
BEST: Final = 4
LOW: Final = 5
HIGH: Final = 6
KEPT: Final = 7  # the bucket, 0 = not kept
STARTED: Final = 8
COUNT: Final = 9  # moves
TRIED: Final = 10  # how many of them
NEXT: Final = 11  # all moves below this have been tried
PASSED: Final = 12
FRAME_WORDS: Final = 13
PLY_WORDS: Final = FRAME_WORDS + 1225  # 50 cards, two at a time
MAX_PLIES: Final = 53
# How often a couple has reached its goal in this search, then how often not, by the work it took.
REACHED: Final = (HEADER + PLY_WORDS * MAX_PLIES + 7) // 8 * 8  # on a cache line
FAILED: Final = REACHED + 64 * 64
# Small positions: a question with more than one couple to try is one of these.
SMALL_MINE: Final = 0
SMALL_OTHER: Final = 1
SMALL_GOAL: Final = 2
SMALL_FLIPPED: Final = 3
SMALL_LIST: Final = 4  # where its couples start
SMALL_COUNT: Final = 5
SMALL_LEFT: Final = 6  # couples not tried yet
SMALL_NEXT: Final = 7  # all couples below this have been tried
SMALL_WORDS: Final = 8
SMALL_FRAMES: Final = FAILED + 64 * 64
SMALL_PLIES: Final = KEPT_SIZE // 2
SMALL_LISTS: Final = SMALL_FRAMES + SMALL_WORDS * SMALL_PLIES
SMALL_COUPLES: Final = (KEPT_SIZE - 2) * (KEPT_SIZE - 3) // 2
TABLE_START: Final = (SMALL_LISTS + SMALL_COUPLES * SMALL_PLIES + 7) // 8 * 8
ENTRY: Final = 4  # words: two of key, one of bounds and work, one unused
BUCKET: Final = 2 * ENTRY


def _geometry() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    above, below, same = (np.zeros(64, np.uint64) for _ in range(3))
    for suit in range(4):
        for rank in range(13):
            card = 16 * suit + rank
            above[card] = sum(1 << (16 * suit + r) for r in range(rank + 1, 13))
            below[card] = sum(1 << (16 * suit + r) for r in range(rank))
            same[card] = sum(1 << (16 * s + rank) for s in range(4))
    return above, below, same


ABOVE, BELOW, SAME = _geometry()
#: What a reply counts for by the answers it leaves.
DANGER: Final = (64 / np.sqrt(1 + np.arange(64))).astype(np.int64)


# --- Couples ------------------------------------------------------------------------------------


@kernel
def lane_of(mask, suit):
    """The ranks that a mask holds in one suit."""
    return (mask >> np.uint64(16 * suit)) & LANE


@kernel
def ranks_in(mask):
    """The ranks that a mask holds in any suit."""
    mask |= mask >> np.uint64(32)
    return (mask | mask >> np.uint64(16)) & LANE


@kernel
def paired_ranks(mask):
    """The ranks of which a mask holds two cards or more."""
    first = mask & LANE
    second = (mask >> np.uint64(16)) & LANE
    third = (mask >> np.uint64(32)) & LANE
    fourth = (mask >> np.uint64(48)) & LANE
    return (first & second) | (third & fourth) | ((first | second) & (third | fourth))


@kernel
def open_ranks(left, right):
    """The ranks whose pairs may be placed (C3, or C4 on equal ranks)."""
    low = left & 15
    high = right & 15
    if low == high:
        return LANE
    if low > high:
        low, high = high, low
    return (ONE << np.uint64(high)) - (ONE << np.uint64(low + 1))


@kernel
def count_couples(hand, pairs, left, right):
    """About as many couples as a hand holds on the table; exactly 0 if it holds none.

    `pairs` are the ranks of which the hand holds a pair, if C3 and C4 are in force.
    """
    on_left = count_bits(hand & SAME[left])
    total = on_left * (count_bits(hand & SAME[right]) - np.int64(left & 15 == right & 15))
    up = hand & ABOVE[left]
    down = hand & BELOW[right]
    total += count_bits(up) * count_bits(down) - count_bits(up & down)
    down = hand & BELOW[left]
    up = hand & ABOVE[right]
    total += count_bits(up) * count_bits(down) - count_bits(up & down)
    if pairs:
        total += 2 * count_bits(pairs & open_ranks(left, right))
    return total


@kernel
def count_all(hand, left, right, exchange):
    """As :func:`count_couples`, finding the pairs itself."""
    return count_couples(hand, paired_ranks(hand) if exchange else ZERO, left, right)


@kernel
def couple_sets(hand, left, right, ranks):
    """The cards of a hand that may be part of a couple: all, and three times two sets.

    A card of a set and one of the set beside it make a couple; where a hand lacks one of the two,
    both are empty. `ranks` are those whose pairs may be placed besides.
    """
    same_left = hand & SAME[left]
    same_right = hand & SAME[right]
    if same_left == ZERO or same_right == ZERO:
        same_left = same_right = ZERO
    up_left = hand & ABOVE[left]
    down_right = hand & BELOW[right]
    if up_left == ZERO or down_right == ZERO:
        up_left = down_right = ZERO
    down_left = hand & BELOW[left]
    up_right = hand & ABOVE[right]
    if down_left == ZERO or up_right == ZERO:
        down_left = up_right = ZERO
    cards = same_left | same_right | up_left | down_right | down_left | up_right
    if ranks:
        cards |= hand & (ranks * COLUMN)
    return cards, (same_left, same_right, up_left, down_right, down_left, up_right)


@kernel
def all_if(condition):
    """All bits if the lowest bit of a word is set, else none."""
    return ZERO - (condition & ONE)


@kernel
def partners_of(card, sets, ranks):
    """The cards that make a couple with `card`, whichever lies left; perhaps the card itself.

    `sets` are those of :func:`couple_sets`. Pairs are of any cards, so the caller keeps to a hand.
    """
    place = np.uint64(card)
    return (
        sets[0] & all_if(sets[1] >> place)
        | sets[1] & all_if(sets[0] >> place)
        | sets[2] & all_if(sets[3] >> place)
        | sets[3] & all_if(sets[2] >> place)
        | sets[4] & all_if(sets[5] >> place)
        | sets[5] & all_if(sets[4] >> place)
        | SAME[card] & all_if(ranks >> (place & np.uint64(15)))
    )


@kernel
def danger(mine, other, other_pairs, left, right, exchange):
    """How hard a couple's replies are to answer: the fewer answers they leave, the more."""
    total = 0
    ranks = open_ranks(left, right) & other_pairs
    my_pairs = paired_ranks(mine) if exchange else ZERO
    cards, sets = couple_sets(other, left, right, ranks)
    while cards:
        card = lowest_bit(cards)
        cards &= cards - ONE
        partners = partners_of(card, sets, ranks) & cards
        while partners:
            partner = lowest_bit(partners)
            partners &= partners - ONE
            total += DANGER[min(count_couples(mine, my_pairs, card, partner), 63)]
    return total


# --- The table ----------------------------------------------------------------------------------


@kernel
def key_of(memory, mine, other, left, right):
    """The whole position and the rules in two words: no two that play differently share them.

    A card set in the first word is the mover's, in the second the other's, in both a table card.
    """
    table = bit(left) | bit(right)
    return mine | table | memory[VARIANT], other | table | memory[VARIANT + 1]


@kernel
def frame_key(memory, frame):
    """The key of a frame's position."""
    return key_of(
        memory,
        memory[frame + MINE],
        memory[frame + OTHER],
        memory[frame + SQUARES] >> np.uint64(6),
        memory[frame + SQUARES] & np.uint64(63),
    )


@kernel
def bucket_of(memory, first, second):
    """Where the two entries start that may hold a position; the cards alone say so."""
    word = (first & ~FREE_BITS) * np.uint64(0x9E3779B97F4A7C15)
    word ^= word >> np.uint64(32)
    word = (word + (second & ~FREE_BITS)) * np.uint64(0xD6E8FEB86659FD93)
    word ^= word >> np.uint64(32)
    word *= np.uint64(0xD6E8FEB86659FD93)
    word ^= word >> np.uint64(32)
    return TABLE_START + BUCKET * np.int64(word & memory[TABLE_MASK])


@kernel
def find_entry(memory, bucket, first, second):
    """The entry of a position, or -1."""
    # One exit: with more, Numba counts references to the memory at every call.
    first_entry = (memory[bucket] ^ first) | (memory[bucket + 1] ^ second)
    second_entry = (memory[bucket + ENTRY] ^ first) | (memory[bucket + ENTRY + 1] ^ second)
    found = bucket + ENTRY if second_entry == ZERO else np.int64(-1)
    return bucket if first_entry == ZERO else found


@kernel
def store_entry(memory, bucket, first, second, low, high, work):
    """Writes bounds. The costlier of two positions keeps the first entry of a bucket."""
    entry = find_entry(memory, bucket, first, second)
    work = np.uint64(min(work, 0xFFFFFFFF))
    if entry < 0:
        entry = bucket + ENTRY
        stale = ((memory[bucket] ^ first) | (memory[bucket + 1] ^ second)) & FREE_BITS
        if stale or work >= memory[bucket + 2] >> np.uint64(16):
            for word in range(3):
                memory[entry + word] = memory[bucket + word]
            entry = bucket
    memory[entry] = first
    memory[entry + 1] = second
    memory[entry + 2] = (
        np.uint64(low + OFFSET) | np.uint64(high + OFFSET) << np.uint64(8) | work << np.uint64(16)
    )


# --- Experience ---------------------------------------------------------------------------------


@kernel
def learn(memory, frame):
    """Notes how the couple after a frame's table fared; big searches count more than small ones."""
    if memory[LEARNT] == ZERO:
        memory[REACHED:SMALL_FRAMES] = ZERO
        memory[LEARNT] = ONE
    child = frame + PLY_WORDS
    couple = np.int64(memory[child + SQUARES])
    work = np.int64(memory[NODES] - memory[child + STARTED])
    kind = REACHED if memory[frame + BEST] >= memory[frame + GOAL] else FAILED
    memory[kind + couple] += np.uint64(1 + (work >> 4) if work < 1008 else 64)


@kernel
def by_experience(memory, replies, left, right):
    """A couple's replies, fewer the more often it has reached its goal: down to a quarter."""
    reached = np.int64(memory[REACHED + (left << 6 | right)])
    failed = np.int64(memory[FAILED + (left << 6 | right)])
    return replies * 64 * (reached + failed + 64) // (4 * reached + failed + 64)


@kernel
def next_in(memory, start, count, least):
    """The best of the moves in a list from `least` on; they differ, and the least is best.

    Moves are few, and looking through them all has no branch to be guessed wrong.
    """
    best = ~ZERO
    for i in range(start, start + count):
        best = min(best, memory[i] if memory[i] >= least else ~ZERO)
    return best


# --- Small positions ----------------------------------------------------------------------------
#
# Most positions of a search are small, and most of those have one couple worth trying or none. So
# the question is kept in variables, and only one with couples left to try is written down.


@kernel
def list_small(memory, start, mine, other, left, right, goal, exchange):
    """Lists the couples that may bring the mover's lead to `goal`, from `start` on.

    The mover holds a couple. The reading and what a couple is worth are as in :func:`open_lead`.

    Returns:
        How many couples there are, or -1 if the mover reaches `goal` at once; and the best one.
    """
    count = 0
    best = ~ZERO
    most = count_bits(mine) >> 1
    least = 1 - (count_bits(other) >> 1)
    if least >= goal:
        count = -1
    elif most >= goal:
        my_pairs = paired_ranks(mine) if exchange else ZERO
        other_pairs = paired_ranks(other) if exchange else ZERO
        ranks = open_ranks(left, right) & my_pairs
        cards, sets = couple_sets(mine, left, right, ranks)
        while cards:
            card = lowest_bit(cards)
            cards &= cards - ONE
            partners = partners_of(card, sets, ranks) & cards
            while partners:
                partner = lowest_bit(partners)
                partners &= partners - ONE
                rest = mine & ~(bit(card) | bit(partner))
                over = rest == ZERO
                worth = count_couples(other, other_pairs, card, partner)
                if worth == 0:
                    worth = count_all(rest, card, partner, exchange)
                    over |= worth == 0
                    if not over and 1 + least >= goal:  # the mover goes on at once
                        count = -1
                        break
                elif most <= goal and not over:
                    continue
                else:
                    worth += REPLIES
                if over:
                    if goal <= 1:
                        count = -1
                        break
                    continue
                move = np.uint64(worth << 12 | card << 6 | partner)
                memory[start + count] = move
                best = min(best, move)
                count += 1
            if count < 0:
                break
    return count, np.int64(best)


@kernel
def search_small(memory, mine, other, left, right, goal, exchange):
    """Answers as :func:`search` does, for positions with fewer than KEPT_SIZE cards."""
    asked = goal
    answer = np.int64(OPEN)
    frame = SMALL_FRAMES  # where the next question is written down
    start = np.int64(SMALL_LISTS)
    flipped = False  # whether yes means no to the last question that was written down
    nodes = memory[NODES]
    while answer == OPEN:
        nodes += ONE
        count, move = list_small(memory, start, mine, other, left, right, goal, exchange)
        if nodes > memory[NODE_LIMIT]:
            answer = np.int64(ABORTED)
        elif count <= 0:
            yes = count < 0
            while frame > SMALL_FRAMES:
                yes = yes != flipped
                if not yes and memory[frame - SMALL_WORDS + SMALL_LEFT] != ZERO:
                    break
                frame -= SMALL_WORDS
                flipped = memory[frame + SMALL_FLIPPED] != ZERO
            if frame == SMALL_FRAMES:
                answer = asked if yes != flipped else asked - 1
            else:
                top = frame - SMALL_WORDS
                mine = memory[top + SMALL_MINE]
                other = memory[top + SMALL_OTHER]
                goal = np.int64(memory[top + SMALL_GOAL]) - OFFSET
                start = np.int64(memory[top + SMALL_LIST])
                flipped = False
                listed = np.int64(memory[top + SMALL_COUNT])
                best = next_in(memory, start, listed, memory[top + SMALL_NEXT])
                memory[top + SMALL_NEXT] = best + ONE
                memory[top + SMALL_LEFT] -= ONE
                start += listed
                move = np.int64(best)
        elif count > 1:
            memory[frame + SMALL_MINE] = mine
            memory[frame + SMALL_OTHER] = other
            memory[frame + SMALL_GOAL] = np.uint64(goal + OFFSET)
            memory[frame + SMALL_FLIPPED] = np.uint64(flipped)
            memory[frame + SMALL_LIST] = np.uint64(start)
            memory[frame + SMALL_COUNT] = np.uint64(count)
            memory[frame + SMALL_LEFT] = np.uint64(count - 1)
            memory[frame + SMALL_NEXT] = np.uint64(move + 1)
            frame += SMALL_WORDS
            start += count
            flipped = False
        left = (move >> 6) & 63
        right = move & 63
        rest = mine & ~(bit(left) | bit(right))
        if move >> 12 < REPLIES:  # the other has no reply and passes (F1)
            mine = rest
            goal -= 1
        else:
            mine = other
            other = rest
            goal = 2 - goal
            flipped = not flipped
    memory[NODES] = nodes
    return answer


# --- The search ---------------------------------------------------------------------------------
#
# One loop over frames in the memory, because compiled functions that call themselves cannot be
# cached. A frame asks: does the mover reach `goal`? Its answer is a bound on the proven side, below
# `goal` or not; the words LOW and HIGH are what is known of the value whatever the goal.


@kernel
def set_frame(memory, frame, mine, other, left, right, goal):
    """Writes down a question."""
    memory[frame + MINE] = mine
    memory[frame + OTHER] = other
    memory[frame + SQUARES] = np.uint64(left << 6 | right)
    memory[frame + GOAL] = np.uint64(goal + OFFSET)


@kernel
def seek(memory, frame):
    """Notes where the table keeps a frame's position, and fetches that while couples are listed."""
    first, second = frame_key(memory, frame)
    bucket = bucket_of(memory, first, second)
    prefetch(memory, bucket)
    memory[frame + KEPT] = np.uint64(bucket)
    memory[frame + STARTED] = memory[NODES]


@kernel
def look_up(memory, frame, low, high):
    """What the table knows of the value of a frame's position, or else `low` and `high`."""
    first, second = frame_key(memory, frame)
    entry = find_entry(memory, np.int64(memory[frame + KEPT]), first, second)
    if entry >= 0:
        bounds = memory[entry + 2]
        low = np.int64(bounds & np.uint64(255)) - OFFSET
        high = np.int64((bounds >> np.uint64(8)) & np.uint64(255)) - OFFSET
    memory[frame + LOW] = np.uint64(low + OFFSET)
    memory[frame + HIGH] = np.uint64(high + OFFSET)
    return low, high


@kernel
def open_lead(memory, frame, exchange):
    """Opens a frame of the reading in which a blocked player passes (F1, F2).

    The mover holds a couple. The value is the lead: the couples that the mover places from here on
    less the other's.

    Returns:
        An answer, or OPEN if the frame now holds its moves.
    """
    mine = memory[frame + MINE]
    other = memory[frame + OTHER]
    goal = np.int64(memory[frame + GOAL]) - OFFSET
    my_cards = count_bits(mine)
    high = my_cards >> 1
    if high < goal:
        return high
    other_cards = count_bits(other)
    low = 1 - (other_cards >> 1)
    if low >= goal:
        return low
    left = np.int64(memory[frame + SQUARES] >> np.uint64(6))
    right = np.int64(memory[frame + SQUARES] & np.uint64(63))
    replied_in_vain = high <= goal  # the other places a couple at least: the lead stays below

    my_pairs = paired_ranks(mine) if exchange else ZERO
    other_pairs = paired_ranks(other) if exchange else ZERO
    best = np.int64(0)
    count = 0
    start = frame + FRAME_WORDS
    ranks = open_ranks(left, right) & my_pairs
    cards, sets = couple_sets(mine, left, right, ranks)
    while cards:
        card = lowest_bit(cards)
        cards &= cards - ONE
        partners = partners_of(card, sets, ranks) & cards
        while partners:
            partner = lowest_bit(partners)
            partners &= partners - ONE
            rest = mine & ~(bit(card) | bit(partner))
            worth = count_couples(other, other_pairs, card, partner)
            if worth == 0 and rest != ZERO:
                worth = count_all(rest, card, partner, exchange)
                if worth > 0 and 1 + low >= goal:  # the mover goes on at once
                    return 1 + low
            elif rest != ZERO and replied_in_vain:
                best = max(best, np.int64(goal - 1 + OFFSET))
                continue
            else:
                if my_cards + other_cards >= DANGER_SIZE:
                    worth = danger(rest, other, other_pairs, card, partner, exchange)
                if memory[LEARNT] != ZERO:
                    worth = by_experience(memory, worth, card, partner)
                worth += REPLIES
            if worth == 0 or rest == ZERO:  # the game is over
                if goal <= 1:
                    return 1
                best = max(best, np.int64(1 + OFFSET))
                continue
            memory[start + count] = np.uint64(worth << 12 | card << 6 | partner)
            count += 1
    low, high = look_up(memory, frame, low, high)
    if low >= goal:
        return low
    if high < goal:
        return high
    memory[frame + BEST] = np.uint64(best)
    memory[frame + COUNT] = np.uint64(count)
    memory[frame + TRIED] = ZERO
    memory[frame + NEXT] = ZERO
    return OPEN


@kernel
def open_race(memory, frame, exchange):
    """Opens a frame of the reading in which a blocked player lays a card out of play.

    The value is the mover's margin: the other's cards at the end less the own.

    Returns:
        An answer, or OPEN if the frame now holds its moves.
    """
    mine = memory[frame + MINE]
    other = memory[frame + OTHER]
    goal = np.int64(memory[frame + GOAL]) - OFFSET
    my_cards = count_bits(mine)
    other_cards = count_bits(other)
    # Every turn takes one card or, with a couple, two; the mover's turns come first.
    my_turns = (my_cards + 1) >> 1
    other_turns = (other_cards + 1) >> 1
    high = other_cards - my_turns + 1 if my_turns <= other_cards else -1
    if high < goal:
        return high
    low = other_turns - my_cards if other_turns < my_cards else 1
    if low >= goal:
        return low
    left = np.int64(memory[frame + SQUARES] >> np.uint64(6))
    right = np.int64(memory[frame + SQUARES] & np.uint64(63))
    low, high = look_up(memory, frame, low, high)
    if low >= goal:
        return low
    if high < goal:
        return high

    my_pairs = paired_ranks(mine) if exchange else ZERO
    other_pairs = paired_ranks(other) if exchange else ZERO
    count = 0
    start = frame + FRAME_WORDS
    ranks = open_ranks(left, right) & my_pairs
    cards, sets = couple_sets(mine, left, right, ranks)
    while cards:
        card = lowest_bit(cards)
        cards &= cards - ONE
        partners = partners_of(card, sets, ranks) & cards
        while partners:
            partner = lowest_bit(partners)
            partners &= partners - ONE
            if my_cards == 2:
                return other_cards
            replies = count_couples(other, other_pairs, card, partner)
            memory[start + count] = np.uint64(replies << 12 | card << 6 | partner)
            count += 1
    if count == 0:  # blocked: the table stays, and the card goes "to both sides"
        if my_cards == 1:
            return other_cards
        cards = mine
        while cards:
            card = lowest_bit(cards)
            cards &= cards - ONE
            memory[start + count] = np.uint64(card << 6 | card)
            count += 1
    memory[frame + BEST] = ZERO
    memory[frame + COUNT] = np.uint64(count)
    memory[frame + TRIED] = ZERO
    memory[frame + NEXT] = ZERO
    return OPEN


@kernel
def next_move(memory, frame):
    """Takes the frame's most promising move that is left."""
    start = frame + FRAME_WORDS
    move = next_in(memory, start, np.int64(memory[frame + COUNT]), memory[frame + NEXT])
    memory[frame + NEXT] = move + ONE
    memory[frame + TRIED] += ONE
    return np.int64(move)


@kernel
def ask_lead(memory, frame, move):
    """Sets the next frame to what follows a couple; the frame's PASSED says whose turn it is."""
    other = memory[frame + OTHER]
    card = (move >> 6) & 63
    partner = move & 63
    rest = memory[frame + MINE] & ~(bit(card) | bit(partner))
    goal = np.int64(memory[frame + GOAL]) - OFFSET
    if move >> 12 < REPLIES:  # the other has no reply and passes (F1)
        memory[frame + PASSED] = ONE
        set_frame(memory, frame + PLY_WORDS, rest, other, card, partner, goal - 1)
    else:
        memory[frame + PASSED] = ZERO
        set_frame(memory, frame + PLY_WORDS, other, rest, card, partner, 2 - goal)


@kernel
def ask_race(memory, frame, move):
    """Sets the next frame to what follows a couple or a card laid out of play."""
    other = memory[frame + OTHER]
    left = (move >> 6) & 63
    right = move & 63
    rest = memory[frame + MINE] & ~(bit(left) | bit(right))
    if left == right:  # no couple: the table stays
        left = np.int64(memory[frame + SQUARES] >> np.uint64(6))
        right = np.int64(memory[frame + SQUARES] & np.uint64(63))
    goal = np.int64(memory[frame + GOAL]) - OFFSET
    set_frame(memory, frame + PLY_WORDS, other, rest, left, right, 1 - goal)


@kernel
def close_frame(memory, frame):
    """The answer of a frame that is done, which the table keeps."""
    best = np.int64(memory[frame + BEST]) - OFFSET
    if memory[frame + KEPT] != ZERO:
        low = np.int64(memory[frame + LOW]) - OFFSET
        high = np.int64(memory[frame + HIGH]) - OFFSET
        if memory[frame + BEST] >= memory[frame + GOAL]:
            low = max(low, best)
        else:
            high = min(high, best)
        first, second = frame_key(memory, frame)
        work = np.int64(memory[NODES] - memory[frame + STARTED])
        bucket = np.int64(memory[frame + KEPT])
        store_entry(memory, bucket, first, second, low, high, work)
    return best


@kernel
def search(memory, mine, other, left, right, goal, exchange, discard):
    """Whether the mover reaches `goal`: a lead in couples, or a margin if blocked players discard.

    In the first case the mover must hold a couple.

    Returns:
        A proven lower bound of at least `goal`, or a proven upper bound below it; or ABORTED at the
        node limit.
    """
    frame = HEADER
    set_frame(memory, frame, mine, other, left, right, goal)
    while True:
        size = count_bits(memory[frame + MINE] | memory[frame + OTHER])
        if size < KEPT_SIZE and not discard:
            memory[frame + KEPT] = ZERO
            squares = np.int64(memory[frame + SQUARES])
            answer = search_small(
                memory,
                memory[frame + MINE],
                memory[frame + OTHER],
                squares >> 6,
                squares & 63,
                np.int64(memory[frame + GOAL]) - OFFSET,
                exchange,
            )
        else:
            memory[NODES] += ONE
            seek(memory, frame)
            if memory[NODES] > memory[NODE_LIMIT]:
                answer = np.int64(ABORTED)
            elif discard:
                answer = open_race(memory, frame, exchange)
            else:
                answer = open_lead(memory, frame, exchange)
        if answer == ABORTED:
            return ABORTED
        while True:
            if answer != OPEN:
                if frame == HEADER:
                    return answer
                frame -= PLY_WORDS
                if discard:
                    answer = -answer
                elif memory[frame + PASSED]:
                    answer += 1
                else:
                    answer = 1 - answer
                memory[frame + BEST] = max(memory[frame + BEST], np.uint64(answer + OFFSET))
                if (
                    memory[NODES] >= np.uint64(LEARN_FROM)
                    and not discard
                    and memory[frame + KEPT] != ZERO
                    and memory[frame + PLY_WORDS + KEPT] != ZERO
                ):
                    learn(memory, frame)
            if (
                memory[frame + BEST] < memory[frame + GOAL]
                and memory[frame + TRIED] < memory[frame + COUNT]
            ):
                break
            answer = close_frame(memory, frame)
        move = next_move(memory, frame)
        if discard:
            ask_race(memory, frame, move)
        else:
            ask_lead(memory, frame, move)
        frame += PLY_WORDS


# --- From the root ------------------------------------------------------------------------------


@kernel
def to_lanes(mask, ranks):
    """A mask of deck indexes as one of lanes."""
    suit = (ONE << np.uint64(ranks)) - ONE
    lanes = ZERO
    for i in range(4):
        lanes |= (mask & suit) << np.uint64(16 * i)
        mask >>= np.uint64(ranks)
    return lanes


@kernel
def ask(memory, mine, other, left, right, goal, exchange, discard):
    """Whether the mover can end with a margin of at least `goal`: a bound on the proven side."""
    if discard:
        return search(memory, mine, other, left, right, goal, exchange, True)
    ahead = count_bits(other) - count_bits(mine)
    if count_all(mine, left, right, exchange) > 0:
        value = search(memory, mine, other, left, right, (goal - ahead + 1) >> 1, exchange, False)
        return ABORTED if value == ABORTED else ahead + 2 * value
    if count_all(other, left, right, exchange) > 0:
        # margin >= goal unless the other's lead is at least this
        least = ((ahead - goal) >> 1) + 1
        value = search(memory, other, mine, left, right, least, exchange, False)
        return ABORTED if value == ABORTED else ahead - 2 * value
    return ahead


@kernel
def as_result(margin_of, margin):
    """A margin as it is, or as a win, draw or loss (F3)."""
    return margin_of if margin else min(max(margin_of, -1), 1)


@kernel
def set_variant(memory, exchange, discard):
    """Sets what keys hold besides the cards: the rules and the generation, three bits a lane."""
    generation = memory[GENERATION]
    first = np.uint64(exchange) | np.uint64(discard) << ONE
    second = ZERO
    for suit in range(1, 4):
        first |= (generation & np.uint64(7)) << np.uint64(16 * suit)
        generation >>= np.uint64(3)
    for suit in range(4):
        second |= (generation & np.uint64(7)) << np.uint64(16 * suit)
        generation >>= np.uint64(3)
    memory[VARIANT] = first << np.uint64(13)
    memory[VARIANT + 1] = second << np.uint64(13)


@kernel
def bounds_within(memory, mine, other, left, right, exchange, discard, margin, low, high):
    """Proven bounds on the mover's result, as near as `low` to `high` need it.

    Masks and cards are in lanes. Only questions between `low` and `high` are asked, so that the
    bounds say whether the value is at most `low`, at least `high`, or what it is in between; they
    stay apart at the node limit.
    """
    least = as_result(-count_bits(mine), margin)
    most = as_result(count_bits(other), margin)
    if mine == ZERO or other == ZERO:
        value = as_result(count_bits(other) - count_bits(mine), margin)
        return value, value
    set_variant(memory, exchange, discard)
    guess = np.int64(1)
    while max(least, low) < min(most, high):
        goal = min(max(guess, max(least, low) + 1), min(most, high))
        value = ask(memory, mine, other, left, right, goal, exchange, discard)
        if value == ABORTED:
            break
        if value >= goal:
            least = max(least, as_result(value, margin))
            guess = least + 1
        else:
            most = min(most, as_result(value, margin))
            guess = most
    return least, most


@kernel
def start_search(memory, node_limit):
    """Sets the counters. What the table knows stays, under whatever rules it was found."""
    memory[NODES] = ZERO
    memory[LEARNT] = ZERO
    memory[NODE_LIMIT] = np.uint64(node_limit)


@kernel
def forget(memory):
    """Empties the table, at no cost: keys of an older generation are never found again."""
    memory[GENERATION] += ONE
    if memory[GENERATION] == ONE << np.uint64(21):
        memory[TABLE_START:] = ZERO
        memory[GENERATION] = ZERO


@kernel
def move_bounds(memory, table, game, first, second, margin, low, high):
    """As :func:`bounds_within`, for the mover's result after one couple (or discard: NO_CARD)."""
    player = np.int64(game["to_move"])
    width = table["ranks"]
    gone = bit(first)
    left = np.int64(game["table"][0])
    right = np.int64(game["table"][1])
    if second != kernels.NO_CARD:
        gone |= bit(second)
        left = np.int64(first)
        right = np.int64(second)
    least, most = bounds_within(
        memory,
        to_lanes(game["hand"][1 - player], width),
        to_lanes(game["hand"][player] & ~gone, width),
        left // width * 16 + left % width,
        right // width * 16 + right % width,
        table["exchange"],
        table["discard_when_blocked"],
        margin,
        -high,
        -low,
    )
    return -most, -least


@kernel
def game_bounds(memory, table, game, margin):
    """Bounds on the result of an exhausted game, for the mover; for player 0 if it is over."""
    player = np.int64(game["to_move"])
    if player < 0:
        player = np.int64(0)
    if game["phase"] == RIGHT:
        least = np.int64(-OFFSET)
        most = np.int64(-OFFSET)
        seconds = game["legal"]
        while seconds:
            second = lowest_bit(seconds)
            seconds &= seconds - ONE
            chosen = np.int64(game["chosen"])
            low, high = move_bounds(memory, table, game, chosen, second, margin, least, OFFSET)
            least = max(least, low)
            most = max(most, high)
        return least, most
    width = table["ranks"]
    left = np.int64(game["table"][0])
    right = np.int64(game["table"][1])
    return bounds_within(
        memory,
        to_lanes(game["hand"][player], width),
        to_lanes(game["hand"][1 - player], width),
        left // width * 16 + left % width,
        right // width * 16 + right % width,
        table["exchange"],
        table["discard_when_blocked"],
        margin,
        -OFFSET,
        OFFSET,
    )


@kernel
def position_bounds(memory, table, game, margin, node_limit):
    """Proven bounds on the result of an exhausted game, for use in other kernels.

    Args:
        memory: ``Workspace(...).memory``; what it has learnt stays for the next call.
        table: One ``RULE_TABLE`` record.
        game: One ``STATE`` record; nothing is checked, and nothing in it changes.
        margin: Whether to bound the final card difference rather than win, draw or loss.
        node_limit: Positions to look at, at most.

    Returns:
        Two ints, low <= high, for the player on move, or for player 0 if the game is over. Equal
        means solved. The nodes visited are in ``memory[NODES]``.
    """
    start_search(memory, node_limit)
    return game_bounds(memory, table, game, margin)


@kernel
def bound_rows(memory, tables, games, margin, node_limit, row, nodes_now, low, high, nodes):
    """Bounds the rows from `row` on, `node_limit` nodes each; stops after `nodes_now` nodes.

    Returns the next row to do.
    """
    used = 0
    while row < games.size and used < nodes_now:
        least, most = position_bounds(memory, tables[0], games[row], margin, node_limit)
        visited = min(np.int64(memory[NODES]), node_limit)
        low[row] = least
        high[row] = most
        nodes[row] += visited
        used += visited
        row += 1
    return row


# --- The public border --------------------------------------------------------------------------


class Workspace:
    """The memory of a search: the move lists and a table of proven bounds.

    The table is of fixed size. It stays valid from one position to the next, under all rules. A
    workspace serves one search at a time.

    Args:
        table_size: Positions the table holds, 32 bytes each; a power of two, at least 2.

    Attributes:
        memory: uint64 array, as :func:`position_bounds` takes it.

    Raises:
        ValueError: ``table_size`` is no power of two or less than 2.
    """

    def __init__(self, table_size: int = DEFAULT_TABLE_SIZE) -> None:
        if isinstance(table_size, bool) or not isinstance(table_size, (int, np.integer)):
            raise ValueError(f"table_size must be an int, got {table_size!r}")
        size = int(table_size)
        if size < 2 or size & (size - 1):
            raise ValueError(f"table_size must be a power of two of at least 2, got {size}")
        self.table_size = size
        self.memory = np.zeros(TABLE_START + ENTRY * size, np.uint64)
        self.memory[TABLE_MASK] = size // 2 - 1

    def clear(self) -> None:
        """Forgets everything."""
        forget(self.memory)


_thread_local = threading.local()


def _workspace(table_size: int) -> Workspace:
    """The workspace that this thread keeps; a new one if another size is wanted."""
    kept: Workspace | None = getattr(_thread_local, "workspace", None)
    if kept is None or kept.table_size != table_size:
        kept = Workspace(table_size)
        _thread_local.workspace = kept
    return kept


@dataclass(frozen=True)
class Solution:
    """What :func:`solve` found, from the side of the player on move.

    Attributes:
        value: 1 win, 0 draw, -1 loss (F3); with ``margin=True`` the opponent's cards less the
            mover's at the end. None if the node limit left it open.
        best: The moves proven to reach ``value``: couples ``(left, right)``, or ``(card,)`` where
            a card is to be laid out of play. All of them if ``proven``.
        nodes: Positions looked at.
        proven: Whether value and list of moves are complete.
        bounds: Proven bounds on the value.
    """

    value: int | None
    best: list[Move]
    nodes: int
    proven: bool
    bounds: tuple[int, int]


class _Search:
    """One question after another about one game, under one node limit."""

    def __init__(
        self, game: Game, node_limit: int | None, margin: bool, workspace: Workspace
    ) -> None:
        self.memory = workspace.memory
        self.table = rule_table(game.rules)[0]
        self.record = game._record
        self.margin = bool(margin)
        self.limit = _check_limit(node_limit)
        start_search(self.memory, self.limit)

    @property
    def nodes(self) -> int:
        return min(int(self.memory[NODES]), self.limit)

    def bounds(self, move: Move | None, low: int = -OFFSET, high: int = OFFSET) -> tuple[int, int]:
        """Bounds after a move (of the game if None), as near as `low` to `high` need it.

        Kernels cannot be interrupted, so the search runs in slices, and starts again in each from
        what the table has kept. Slices grow, so that a table that keeps little still gets there.
        """
        nodes_now = SLICE
        while True:
            self.memory[NODE_LIMIT] = min(int(self.memory[NODES]) + nodes_now, self.limit)
            if move is None:
                found = game_bounds(self.memory, self.table, self.record, self.margin)
            else:
                second = move[1] if len(move) == 2 else kernels.NO_CARD
                found = move_bounds(
                    self.memory, self.table, self.record, move[0], second, self.margin, low, high
                )
            least, most = int(found[0]), int(found[1])
            if max(least, low) >= min(most, high) or self.memory[NODES] >= self.limit:
                return least, most
            nodes_now *= 2


def _check_limit(node_limit: int | None) -> int:
    if node_limit is None:
        return UNLIMITED
    if isinstance(node_limit, bool) or not isinstance(node_limit, (int, np.integer)):
        raise ValueError(f"node_limit must be an int or None, got {node_limit!r}")
    if node_limit < 0:
        raise ValueError(f"node_limit must be at least 0, got {node_limit}")
    return min(int(node_limit), UNLIMITED)


def _check_exhausted(game: Game) -> None:
    if not isinstance(game, Game):
        raise TypeError(f"game must be a Game, got {game!r}")
    if game.done:
        raise ValueError("the game is over: nothing is left to solve")
    if not game.exhausted:
        raise ValueError(
            f"only exhausted games can be solved: {game.stock_size} cards are in the stock"
        )


def _moves(game: Game) -> list[Move]:
    """The mover's moves; in phase RIGHT those with the chosen card on the left."""
    record = game._record
    if game.phase == Phase.DISCARD:
        return [(card,) for card in game.legal_actions()]
    firsts = game.legal_actions() if game.chosen is None else [game.chosen]
    table = rule_table(game.rules)[0]
    hand = record["hand"][game.to_move]
    left, right = record["table"]
    return [
        (first, second)
        for first in firsts
        for second in cards_of(kernels.right_cards(table, hand, left, right, first))
    ]


def solve(
    game: Game,
    node_limit: int | None = None,
    margin: bool = False,
    table_size: int = DEFAULT_TABLE_SIZE,
) -> Solution:
    """The exact value of an exhausted game and all optimal moves.

    Args:
        game: An exhausted game in any phase. In phase RIGHT the chosen card stays on the left.
        node_limit: Positions to look at, at most; None for no limit.
        margin: Solve for the final card difference instead of win, draw or loss.
        table_size: Positions the table holds, 32 bytes each, a power of two. The table is kept for
            the thread's next call with the same size.

    Raises:
        TypeError: ``game`` is not a :class:`Game`.
        ValueError: The game is over or not exhausted, or another argument is bad.
    """
    _check_exhausted(game)
    search = _Search(game, node_limit, margin, _workspace(table_size))
    low, high = search.bounds(None)
    if low < high:
        return Solution(None, [], search.nodes, False, (low, high))
    best = []
    proven = True
    for move in _moves(game):
        least, most = search.bounds(move, low - 1, low)
        if least >= low:
            best.append(move)
        elif most >= low:
            proven = False
    return Solution(low, best, search.nodes, proven, (low, high))


def couple_values(
    game: Game, margin: bool = False, table_size: int = DEFAULT_TABLE_SIZE
) -> dict[Move, int]:
    """The exact value of every move, for the mover; keys are those of ``Solution.best``.

    Args:
        game: An exhausted game in any phase.
        margin: Values are final card differences instead of win, draw or loss.
        table_size: As in :func:`solve`.

    Raises:
        TypeError: ``game`` is not a :class:`Game`.
        ValueError: The game is over or not exhausted, or ``table_size`` is bad.
    """
    _check_exhausted(game)
    search = _Search(game, None, margin, _workspace(table_size))
    return {move: search.bounds(move)[0] for move in _moves(game)}


def value_bounds(
    game: Game,
    node_limit: int | None,
    margin: bool = False,
    table_size: int = DEFAULT_TABLE_SIZE,
) -> tuple[int, int]:
    """Proven bounds on the value for the mover, within a budget; equal bounds are the value.

    Args:
        game: An exhausted game in any phase.
        node_limit: Positions to look at, at most; 0 gives what can be said without a search.
        margin: Bounds on the final card difference instead of win, draw or loss.
        table_size: As in :func:`solve`.

    Raises:
        TypeError: ``game`` is not a :class:`Game`.
        ValueError: The game is over or not exhausted, or another argument is bad.
    """
    _check_exhausted(game)
    return _Search(game, node_limit, margin, _workspace(table_size)).bounds(None)


def solve_states(
    states: np.ndarray,
    rules: Rules | str,
    node_limit: int | None = None,
    margin: bool = False,
    workspace: Workspace | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Proven bounds on the values of many exhausted games.

    Args:
        states: (B,) of dtype ``STATE``; games may be over.
        rules: A :class:`Rules` or its text.
        node_limit: Positions to look at, at most, per game; None for no limit.
        margin: Bounds on the final card difference instead of win, draw or loss.
        workspace: The memory to use; one that the thread keeps if None.

    Returns:
        low (B,) int8, high (B,) int8 and nodes (B,) int64. Bounds are for the player on move, or
        for player 0 if the game is over; equal bounds are the value.

    Raises:
        ValueError: ``states`` has another shape or dtype, or a game is not exhausted; the message
            names the row.
    """
    rules = as_rules(rules)
    if not isinstance(states, np.ndarray) or states.dtype != STATE or states.ndim != 1:
        raise ValueError("states must be a 1-D array of dtype STATE")
    open_rows = np.flatnonzero((states["stock_size"] > 0) & (states["phase"] != kernels.OVER))
    if open_rows.size:
        row = int(open_rows[0])
        raise ValueError(
            f"only exhausted games can be solved: row {row} has "
            f"{states['stock_size'][row]} cards in the stock"
        )
    limit = _check_limit(node_limit)
    memory = (workspace or _workspace(DEFAULT_TABLE_SIZE)).memory
    low = np.zeros(len(states), np.int8)
    high = np.zeros(len(states), np.int8)
    nodes = np.zeros(len(states), np.int64)
    row = 0
    row_limit = min(limit, SLICE)
    nodes_now = SLICE
    while row < len(states):
        done = bound_rows(
            memory, rule_table(rules), states, margin, row_limit, row, nodes_now, low, high, nodes
        )
        # Only the last row can have met a slice's limit that is not its own.
        last = done - 1
        if low[last] < high[last] and nodes[last] < limit:
            row = last
            row_limit = min(2 * row_limit, limit - int(nodes[last]))
            nodes_now = 1  # this row only
        else:
            row = done
            row_limit = min(limit, SLICE)
            nodes_now = SLICE
    return low, high, nodes
