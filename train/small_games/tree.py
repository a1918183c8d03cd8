"""The whole game behind one starting table, as the flat arrays that the solvers run over.

With open discards everything but the hands and the order of the stock is public, so the tree
branches on public events alone, and what a player holds is a *hand*: a set of hidden cards. Two
things make it small and lose nothing:

- A hand forgets in which order its cards came. The opponent cannot see that order, every order of
  the stock is as likely, and nothing later depends on it, so what a hand is worth against any
  opponent is the same for all of them. The two cards of a couple are one decision: only both
  together are seen.
- At exhaustion nothing is hidden any more (E3), so the tree ends there, in an *ending*: both hands,
  the table and the player to move.

For each player there are *sequences* and *information sets*, as in the sequence form (Koller,
Megiddo and von Stengel, 1994). An information set is a public history with a hand; it follows one
sequence and has one sequence for each action. A draw leads from several sequences (the hand less
one card, for each card) to one. What the rules say stands in the kernels alone: each public event
is carried out on an example, one pair of hands that allows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import Any, Final

import numpy as np

from counterweight_env import kernels
from counterweight_env.cards import rule_table
from counterweight_env.kernels import (
    ONE,
    REFILL,
    STATE,
    ZERO,
    apply,
    begin_turn,
    bit,
    count_bits,
    kernel,
    left_cards,
    lowest_bit,
    right_cards,
)
from counterweight_env.rules import Rules

__all__ = ["Endings", "Tree", "build_tree", "check_size"]

#: Cards of the largest deck: an ending has to fit into one word.
MAX_CARDS: Final = 20

DECISION: Final = 0
DRAW: Final = 1

# The columns of `steps`.
KIND: Final = 0
BEGIN: Final = 1  # information sets of a decision, sequences of a draw
END: Final = 2
WIDTH: Final = 3  # of a draw: sequences that lead to each
SOURCES: Final = 4  # of a draw: where they start in `sources`
STEP_COLUMNS: Final = 5

# Counters of what is in use; those with two entries are per player.
SEQUENCES: Final = 0
SETS: Final = 2
STEPS: Final = 4
USED_SOURCES: Final = 6
LISTED: Final = 8  # hands on the stack
LEAVES: Final = 10
NODES: Final = 11
STACKED: Final = 12  # nodes on the stack
ENDINGS: Final = 13
COUNTERS: Final = 14

#: An action that is a couple: this times the left card, plus the right card, plus this.
COUPLE: Final = 64

#: A node of the stack that is yet to be expanded.
WAITING: Final = np.dtype(
    [
        ("game", STATE),
        ("unknown", np.uint64),  # the cards of the hidden hands and of the stock
        ("weight", np.float64),  # chance's part of the probability
        ("node", np.int64),
        ("begin", np.int64, 2),  # its hands on the stack
        ("end", np.int64, 2),
    ],
    align=True,
)

LEAF: Final = np.dtype(
    [
        ("weight", np.float64),  # chance's part of the probability
        ("sequence", np.int32, 2),
        ("ending", np.int32),
    ],
    align=True,
)


def check_size(rules: Rules) -> None:
    """Refuses what the tree cannot hold.

    Raises:
        ValueError: Discards are closed, or the deck has more than ``MAX_CARDS`` cards.
    """
    if not rules.open_discards:
        raise ValueError(f"only open discards can be solved, got {rules}")
    if rules.deck_size > MAX_CARDS:
        raise ValueError(
            f"a deck to be solved has at most {MAX_CARDS} cards, got {rules.deck_size} in {rules}"
        )


class Endings:
    """All endings met so far under one rule set, each once, with a number.

    One object serves many trees, which then share the work of giving the endings values.

    Args:
        rules: The rules.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.keys = np.zeros(1024, np.int64)
        self.size = 0
        self.slots = np.full(4096, -1, np.int32)

    def reserve(self, more: int) -> None:
        """Makes room for some more endings."""
        need = self.size + more
        if need > self.keys.size:
            keys = np.zeros(2 * need, np.int64)
            keys[: self.size] = self.keys[: self.size]
            self.keys = keys
        if 2 * need > self.slots.size:
            self.slots = np.full(1 << int(4 * need).bit_length(), -1, np.int32)
            file_endings(self.keys, self.size, self.slots)

    def positions(self, numbers: np.ndarray | None = None) -> np.ndarray:
        """The endings as a state array, the mover's blocked or not, everything known (E3).

        Args:
            numbers: Which; all if None.

        Returns:
            Array of dtype ``STATE``, at the start of a turn or over.
        """
        keys = self.keys[: self.size] if numbers is None else self.keys[numbers]
        games = np.zeros(keys.size, STATE)
        lay_out_endings(keys, rule_table(self.rules), games)
        return games


@kernel
def ending_key(first_hand, second_hand, left, right, mover):
    """An ending as one word."""
    key = first_hand | second_hand << np.uint64(20)
    squares = np.uint64(left) << np.uint64(40) | np.uint64(right) << np.uint64(45)
    return np.int64(key | squares | np.uint64(mover) << np.uint64(50))


@kernel
def lay_out_endings(keys, tables, games):
    """Writes the position of each key; the player to move begins a turn or passes (F1)."""
    hand = (ONE << np.uint64(20)) - ONE
    table = tables[0]
    everything = (ONE << np.uint64(table["deck_size"])) - ONE
    for i in range(keys.size):
        key = np.uint64(keys[i])
        game = games[i]
        game["hand"][0] = key & hand
        game["hand"][1] = (key >> np.uint64(20)) & hand
        game["table"][0] = (key >> np.uint64(40)) & np.uint64(31)
        game["table"][1] = (key >> np.uint64(45)) & np.uint64(31)
        game["dealer"] = 1
        seen = bit(game["table"][0]) | bit(game["table"][1])
        for player in range(2):
            game["known"][player] = game["hand"][player]
            game["fresh"][player] = kernels.NO_CARD
            seen |= game["hand"][player]
        game["buried"] = everything & ~seen
        game["chosen"] = kernels.NO_CARD
        mover = np.int64(key >> np.uint64(50))
        game["to_move"] = 1 - mover
        kernels.end_turn(game, table)
        game["turn"] = 0


@kernel
def find_slot(keys, slots, key):
    """Where an ending's number stands, or where it would."""
    place = kernels.mix_bits(np.uint64(key)) & np.uint64(slots.size - 1)
    while slots[place] >= 0 and keys[slots[place]] != key:
        place = (place + ONE) & np.uint64(slots.size - 1)
    return place


@kernel
def file_endings(keys, size, slots):
    """Fills an empty table of numbers."""
    for i in range(size):
        slots[find_slot(keys, slots, keys[i])] = i


@kernel
def number_of(keys, slots, counters, key):
    """The number of an ending, a new one if it is met for the first time."""
    place = find_slot(keys, slots, key)
    if slots[place] < 0:
        slots[place] = counters[ENDINGS]
        keys[counters[ENDINGS]] = key
        counters[ENDINGS] += 1
    return slots[place]


# --- Growing ------------------------------------------------------------------------------------


@kernel
def list_actions(game, table, unknown, hands, blocked, codes, cards):
    """Writes the public events that the mover may cause and the cards that each takes.

    Also writes which of the mover's hands are blocked. An event that no hand allows may be listed.
    Returns how many there are.
    """
    mover = np.int64(game["to_move"])
    deck = np.int64(table["deck_size"])
    if game["phase"] == REFILL:
        for i in range(2):
            codes[i] = deck + i  # STOCK, RECLAIM
            cards[i] = ZERO
        return 2
    left = game["table"][0]
    right = game["table"][1]
    known = game["known"][mover]
    some_blocked = ZERO
    for i in range(hands.size):
        blocked[i] = left_cards(table, hands[i] | known, left, right) == ZERO
        if blocked[i]:
            some_blocked |= hands[i] | known
    count = 0
    pool = unknown | known
    firsts = left_cards(table, pool, left, right)
    while firsts:
        first = lowest_bit(firsts)
        firsts &= firsts - ONE
        seconds = right_cards(table, pool, left, right, first)
        while seconds:
            second = lowest_bit(seconds)
            seconds &= seconds - ONE
            codes[count] = COUPLE * (first + 1) + second
            cards[count] = bit(first) | bit(second)
            count += 1
    while some_blocked:
        card = lowest_bit(some_blocked)
        some_blocked &= some_blocked - ONE
        codes[count] = card
        cards[count] = bit(card)
        count += 1
    return count


@kernel
def allows(game, hand, is_blocked, code, cards):
    """Whether a whole hand lets its owner cause an event."""
    if game["phase"] == REFILL:
        return True
    return hand & cards == cards and (code >= COUPLE or is_blocked)


@kernel
def carry_out(game, table, unknown, hand, other_hand, code):
    """Carries an event out on a record whose hidden cards are set to an example first."""
    mover = np.int64(game["to_move"])
    game["hand"][mover] = hand | game["known"][mover]
    game["hand"][1 - mover] = other_hand | game["known"][1 - mover]
    rest = unknown & ~hand & ~other_hand
    for i in range(game["stock_size"]):
        game["stock"][i] = lowest_bit(rest)
        rest &= rest - ONE
    if game["phase"] != REFILL:
        begin_turn(game, table, mover)
    if code >= COUPLE:
        apply(game, table, code // COUPLE - 1)
        apply(game, table, code % COUPLE)
    else:
        apply(game, table, code)


@kernel
def choose_number(n, k):
    """The number of ways to choose k of n."""
    ways = 1
    for i in range(k):
        ways = ways * (n - i) // (i + 1)
    return ways


@kernel
def add_drawn_hand(hand, source, player, width, place_of, counters, sources, first, out, count):
    """Notes that a draw leads from one sequence to a hand; returns how many hands there are now."""
    place = place_of[hand]
    if place < 0:
        place = count
        place_of[hand] = place
        out[place] = hand
        for i in range(width):
            sources[player, first + place * width + i] = -1
        count += 1
    entry = first + place * width
    while sources[player, entry] >= 0:
        entry += 1
    sources[player, entry] = source
    return count


@kernel
def draw_hands(hands, from_sequences, unknown, drawn, player, place_of, counters, sources, out):
    """Writes the hands after a draw and the sequences that lead to each; returns their number."""
    width = choose_number(count_bits(hands[0]) + drawn, drawn)
    first = counters[USED_SOURCES + player]
    count = 0
    for i in range(hands.size):
        rest = unknown & ~hands[i]
        while rest:
            card = bit(lowest_bit(rest))
            rest &= ~card
            if drawn == 1:
                count = add_drawn_hand(
                    hands[i] | card,
                    from_sequences[i],
                    player,
                    width,
                    place_of,
                    counters,
                    sources,
                    first,
                    out,
                    count,
                )
                continue
            others = rest
            while others:
                other = bit(lowest_bit(others))
                others &= ~other
                count = add_drawn_hand(
                    hands[i] | card | other,
                    from_sequences[i],
                    player,
                    width,
                    place_of,
                    counters,
                    sources,
                    first,
                    out,
                    count,
                )
    for i in range(count):
        place_of[out[i]] = -1
    counters[USED_SOURCES + player] = first + count * width
    return count


@kernel
def add_leaves(
    before, after, hands, sequences, other_hands, other_sequences, counters, leaves, keys, slots
):
    """Adds a leaf for each pair of hands that an event leads into an ending.

    What is left of the stock goes to the mover, so both hands of the ending follow.
    """
    mover = np.int64(before["game"]["to_move"])
    unknown = before["unknown"]
    public = np.zeros(2, np.uint64)
    for player in range(2):
        public[player] = after["hand"][player] & ~unknown
    ending = np.zeros(2, np.uint64)
    for i in range(hands.size):
        for j in range(other_hands.size):
            if hands[i] & other_hands[j]:
                continue
            ending[mover] = public[mover] | (unknown & ~other_hands[j])
            ending[1 - mover] = public[1 - mover] | other_hands[j]
            key = ending_key(ending[0], ending[1], after["table"][0], after["table"][1], 1 - mover)
            leaf = leaves[counters[LEAVES]]
            counters[LEAVES] += 1
            leaf["weight"] = before["weight"]
            leaf["sequence"][mover] = sequences[i]
            leaf["sequence"][1 - mover] = other_sequences[j]
            leaf["ending"] = number_of(keys, slots, counters, key)


@kernel
def grow(
    tables,
    counters,
    room,
    stack,
    list_hands,
    list_sequences,
    set_parent,
    set_begin,
    set_end,
    set_hand,
    set_node,
    action_of,
    steps,
    sources,
    leaves,
    node_parent,
    node_action,
    records,
    keys,
    slots,
    place_of,
):
    """Expands the nodes of the stack until none is left; stops before any array might overflow.

    `room` holds for each counter how much one node may take at most, and then the sizes of the
    arrays. Returns whether the tree is finished.
    """
    table = tables[0]
    num_codes = 1 + COUPLE * (MAX_CARDS + 1)
    codes = np.empty(num_codes, np.int64)
    cards = np.empty(num_codes, np.uint64)
    scratch = room[0, LISTED]
    hands = np.empty((2, scratch), np.uint64)
    sequences = np.empty((2, scratch), np.int64)
    blocked = np.empty(scratch, np.bool_)
    begins = np.empty(scratch, np.int64)
    after_hands = np.empty(scratch, np.uint64)
    after_sequences = np.empty(scratch, np.int64)
    other_hands = np.empty(scratch, np.uint64)
    other_sequences = np.empty(scratch, np.int64)
    drawn_hands = np.empty(scratch, np.uint64)
    before = np.zeros(1, WAITING)
    example = np.zeros(1, STATE)
    while counters[STACKED] > 0:
        for i in range(COUNTERS):
            if counters[i] + room[0, i] > room[1, i]:
                return False
        counters[STACKED] -= 1
        before[0] = stack[counters[STACKED]]
        game = before[0]["game"]
        unknown = before[0]["unknown"]
        mover = np.int64(game["to_move"])
        other = 1 - mover
        for player in range(2):
            begin = before[0]["begin"][player]
            size = before[0]["end"][player] - begin
            for i in range(size):
                hands[player, i] = list_hands[player, begin + i]
                sequences[player, i] = list_sequences[player, begin + i]
            counters[LISTED + player] = begin
        size = before[0]["end"][mover] - before[0]["begin"][mover]
        other_size = before[0]["end"][other] - before[0]["begin"][other]
        known = game["known"][mover]
        num_actions = list_actions(game, table, unknown, hands[mover, :size], blocked, codes, cards)
        node = before[0]["node"]
        if records.size:
            records[node] = game

        first_set = counters[SETS + mover]
        for i in range(size):
            begin = counters[SEQUENCES + mover]
            begins[i] = begin
            for k in range(num_actions):
                if allows(game, hands[mover, i] | known, blocked[i], codes[k], cards[k]):
                    action_of[mover, counters[SEQUENCES + mover]] = codes[k]
                    counters[SEQUENCES + mover] += 1
            number = counters[SETS + mover]
            set_parent[mover, number] = sequences[mover, i]
            set_begin[mover, number] = begin
            set_end[mover, number] = counters[SEQUENCES + mover]
            set_hand[mover, number] = hands[mover, i] | known
            set_node[mover, number] = node
            counters[SETS + mover] += 1
        step = steps[mover, counters[STEPS + mover]]
        step[KIND] = DECISION
        step[BEGIN] = first_set
        step[END] = counters[SETS + mover]
        counters[STEPS + mover] += 1

        for k in range(num_actions):
            count = 0
            for i in range(size):
                if allows(game, hands[mover, i] | known, blocked[i], codes[k], cards[k]):
                    after_hands[count] = hands[mover, i] & ~cards[k]
                    after_sequences[count] = begins[i]
                    begins[i] += 1
                    count += 1
            other_count = 0
            for j in range(other_size):
                if hands[other, j] & cards[k] == ZERO:
                    other_hands[other_count] = hands[other, j]
                    other_sequences[other_count] = sequences[other, j]
                    other_count += 1
            found = False
            for i in range(count):
                for j in range(other_count):
                    if after_hands[i] & other_hands[j] == ZERO:
                        example[0] = game
                        whole = after_hands[i] | (cards[k] & unknown)
                        carry_out(example[0], table, unknown, whole, other_hands[j], codes[k])
                        found = True
                        break
                if found:
                    break
            if not found:
                continue
            after = example[0]
            before[0]["unknown"] = unknown & ~cards[k]
            if after["stock_size"] == 0:
                add_leaves(
                    before[0],
                    after,
                    after_hands[:count],
                    after_sequences[:count],
                    other_hands[:other_count],
                    other_sequences[:other_count],
                    counters,
                    leaves,
                    keys,
                    slots,
                )
                continue
            stock = np.int64(game["stock_size"])
            drawn = stock - np.int64(after["stock_size"])
            if drawn > 0:
                first = counters[USED_SOURCES + mover]
                width = choose_number(count_bits(after_hands[0]) + drawn, drawn)
                count = draw_hands(
                    after_hands[:count],
                    after_sequences[:count],
                    before[0]["unknown"],
                    drawn,
                    mover,
                    place_of,
                    counters,
                    sources,
                    drawn_hands,
                )
                begin = counters[SEQUENCES + mover]
                for i in range(count):
                    after_hands[i] = drawn_hands[i]
                    after_sequences[i] = begin + i
                    action_of[mover, begin + i] = -1
                counters[SEQUENCES + mover] = begin + count
                step = steps[mover, counters[STEPS + mover]]
                step[KIND] = DRAW
                step[BEGIN] = begin
                step[END] = begin + count
                step[WIDTH] = width
                step[SOURCES] = first
                counters[STEPS + mover] += 1
            waiting = stack[counters[STACKED]]
            counters[STACKED] += 1
            waiting["game"] = after
            waiting["unknown"] = before[0]["unknown"]
            waiting["weight"] = before[0]["weight"] / choose_number(stock, drawn)
            waiting["node"] = counters[NODES]
            node_parent[counters[NODES]] = node
            node_action[counters[NODES]] = codes[k]
            counters[NODES] += 1
            begin = counters[LISTED + mover]
            for i in range(count):
                list_hands[mover, begin + i] = after_hands[i]
                list_sequences[mover, begin + i] = after_sequences[i]
            waiting["begin"][mover] = begin
            waiting["end"][mover] = begin + count
            counters[LISTED + mover] = begin + count
            begin = counters[LISTED + other]
            for j in range(other_count):
                list_hands[other, begin + j] = other_hands[j]
                list_sequences[other, begin + j] = other_sequences[j]
            waiting["begin"][other] = begin
            waiting["end"][other] = begin + other_count
            counters[LISTED + other] = begin + other_count
    return True


# --- The tree -----------------------------------------------------------------------------------


@dataclass
class Tree:
    """The game behind one starting table; player 0 moves first.

    Arrays whose first axis is 2 have a row for each player, of which the first
    ``num_sequences[p]``, ``num_sets[p]`` or ``num_steps[p]`` entries count.

    Attributes:
        rules: The rules.
        table: The two table cards.
        endings: Where the endings of the leaves are.
        num_roots: Sequences at the start: one for each hand, the first of both players.
        num_sequences: (2,) int64.
        num_sets: (2,) int64, information sets.
        num_steps: (2,) int64.
        steps: (2, n, 5) int64, what happens to a player's sequences, from the start on: decisions
            (a range of information sets) and draws (a range of sequences, each reached from up to
            WIDTH others, which stand in ``sources``; -1 = none).
        sources: (2, n) int32.
        set_parent: (2, n) int32, the sequence that each information set follows.
        set_begin: (2, n) int32, the first of its own sequences, one for each action.
        set_end: (2, n) int32, the one behind its last.
        set_hand: (2, n) uint64, the player's whole hand.
        set_node: (2, n) int32, the public history.
        action_of: (2, n) int32, the action that a sequence ends with: a card laid away, STOCK,
            RECLAIM, ``COUPLE * (left + 1) + right``, or -1 where it ends with a draw.
        leaves: (n,) of dtype ``LEAF``.
        node_parent: (n,) int32, the public history before the last event; -1 at the start.
        node_action: (n,) int32, the last event.
        records: (n,) of dtype ``STATE``, an example of each public history; empty unless kept.
    """

    rules: Rules
    table: tuple[int, int]
    endings: Endings
    num_roots: int
    num_sequences: np.ndarray
    num_sets: np.ndarray
    num_steps: np.ndarray
    steps: np.ndarray
    sources: np.ndarray
    set_parent: np.ndarray
    set_begin: np.ndarray
    set_end: np.ndarray
    set_hand: np.ndarray
    set_node: np.ndarray
    action_of: np.ndarray
    leaves: np.ndarray
    node_parent: np.ndarray
    node_action: np.ndarray
    records: np.ndarray
    _children: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def num_nodes(self) -> int:
        """Public histories with a decision."""
        return len(self.node_parent)

    def node_after(self, actions: list[int]) -> int:
        """The public history of some events.

        Raises:
            KeyError: There is none.
        """
        if not self._children:
            ends = zip(self.node_parent.tolist(), self.node_action.tolist(), strict=True)
            self._children = {end: node for node, end in enumerate(ends)}
        node = 0
        for action in actions:
            node = self._children[node, action]
        return node


#: Arrays that grow: name -> (counter, has a row for each player, dtype, other axes).
_GROWING: Final[dict[str, tuple[int, bool, Any, tuple[int, ...]]]] = {
    "stack": (STACKED, False, WAITING, ()),
    "list_hands": (LISTED, True, np.uint64, ()),
    "list_sequences": (LISTED, True, np.int64, ()),
    "set_parent": (SETS, True, np.int32, ()),
    "set_begin": (SETS, True, np.int32, ()),
    "set_end": (SETS, True, np.int32, ()),
    "set_hand": (SETS, True, np.uint64, ()),
    "set_node": (SETS, True, np.int32, ()),
    "action_of": (SEQUENCES, True, np.int32, ()),
    "steps": (STEPS, True, np.int64, (STEP_COLUMNS,)),
    "sources": (USED_SOURCES, True, np.int32, ()),
    "leaves": (LEAVES, False, LEAF, ()),
    "node_parent": (NODES, False, np.int32, ()),
    "node_action": (NODES, False, np.int32, ()),
    "records": (NODES, False, STATE, ()),
}


def _room(rules: Rules) -> np.ndarray:
    """What the expansion of one node may take of each counter, at most; (COUNTERS,) int64."""
    unknown = rules.deck_size - 2
    sizes = range(min(rules.hand_size, unknown) + 1)
    hands = max(comb(unknown, k) for k in sizes)
    pairs = max(comb(unknown, k) * comb(unknown - k, other) for k in sizes for other in sizes)
    events = unknown * unknown + 2
    # A hand has at most its ordered pairs and single cards as actions.
    actions = rules.hand_size**2 + 2
    room = np.zeros(COUNTERS, np.int64)
    room[SEQUENCES : SEQUENCES + 2] = (actions + events) * hands
    room[SETS : SETS + 2] = hands
    room[STEPS : STEPS + 2] = 1 + events
    room[USED_SOURCES : USED_SOURCES + 2] = events * hands * rules.hand_size**2
    room[LISTED : LISTED + 2] = events * hands
    room[LEAVES] = actions * pairs  # the other player's hand has none of the same cards
    room[NODES] = events
    room[STACKED] = events
    room[ENDINGS] = room[LEAVES]
    return room


def build_tree(
    rules: Rules, table: tuple[int, int], endings: Endings, keep_records: bool = False
) -> Tree:
    """Builds the game behind one starting table.

    Args:
        rules: The rules, with open discards and a small deck.
        table: The left and the right table card.
        endings: Where to note the endings; of the same rules.
        keep_records: Whether to keep an example of each public history, as agents' views need it.

    Raises:
        ValueError: The rules cannot be solved.
    """
    check_size(rules)
    room = np.zeros((2, COUNTERS), np.int64)
    room[0] = _room(rules)
    counters = np.zeros(COUNTERS, np.int64)
    arrays: dict[str, np.ndarray] = {}
    for name, (_, by_player, dtype, axes) in _GROWING.items():
        arrays[name] = np.zeros((2, 0, *axes) if by_player else (0, *axes), dtype)

    def make_room() -> None:
        for name, (counter, by_player, dtype, axes) in _GROWING.items():
            if name == "records" and not keep_records:
                continue
            used = int(counters[counter : counter + 2].max() if by_player else counters[counter])
            old = arrays[name]
            size = old.shape[1] if by_player else old.shape[0]
            need = used + int(room[0, counter])
            if need > size and by_player:
                size = need + used
                new = np.zeros((2, size, *axes), dtype)
                new[:, :used] = old[:, :used]
                arrays[name] = new
            elif need > size and used == 0:
                size = need
                arrays[name] = np.zeros((size, *axes), dtype)
            elif need > size:
                size = need + used // 4
                old.resize((size, *axes), refcheck=False)  # without a copy: leaves are the most
            room[1, counter : counter + (2 if by_player else 1)] = size
        endings.size = int(counters[ENDINGS])
        endings.reserve(int(room[0, ENDINGS]))
        room[1, ENDINGS] = min(endings.keys.size, endings.slots.size // 2)

    counters[ENDINGS] = endings.size
    make_room()
    num_roots = _plant(rules, table, counters, arrays)
    place_of = np.full(1 << rules.deck_size, -1, np.int32)
    finished = False
    while not finished:
        filed = (endings.keys, endings.slots, place_of)
        finished = grow(*(rule_table(rules), counters, room, *arrays.values(), *filed))
        if not finished:
            make_room()
    endings.size = int(counters[ENDINGS])
    kept: dict[str, Any] = {}
    for name, (counter, by_player, _, _) in _GROWING.items():
        array = arrays.pop(name)  # large ones should not be there twice
        if name in ("stack", "list_hands", "list_sequences"):
            continue
        used = int(counters[counter : counter + 2].max() if by_player else counters[counter])
        if by_player:
            kept[name] = array[:, :used].copy()
        else:
            array.resize(used, refcheck=False)
            kept[name] = array
    return Tree(
        rules,
        table,
        endings,
        num_roots,
        counters[SEQUENCES : SEQUENCES + 2].copy(),
        counters[SETS : SETS + 2].copy(),
        counters[STEPS : STEPS + 2].copy(),
        **kept,
    )


def _plant(
    rules: Rules, table: tuple[int, int], counters: np.ndarray, arrays: dict[str, np.ndarray]
) -> int:
    """Puts the start on the stack; returns how many hands each player may have there."""
    unknown = [card for card in range(rules.deck_size) if card not in table]
    size = rules.hand_size
    dealt = [*unknown[: 2 * size], *table, *unknown[2 * size :]]
    game = np.zeros(1, STATE)
    kernels.lay_out_games(game, rule_table(rules), np.array([dealt], np.uint8), 1)
    hands = [sum(1 << card for card in hand) for hand in combinations(unknown, size)]
    for player in range(2):
        arrays["list_hands"][player, : len(hands)] = hands
        arrays["list_sequences"][player, : len(hands)] = np.arange(len(hands))
        arrays["action_of"][player, : len(hands)] = -1
        counters[SEQUENCES + player] = counters[LISTED + player] = len(hands)
    start = arrays["stack"][0]
    start["game"] = game[0]
    start["unknown"] = sum(1 << card for card in unknown)
    start["weight"] = 1.0 / (len(hands) * comb(len(unknown) - size, size))
    start["end"] = len(hands)
    arrays["node_parent"][0] = -1
    arrays["node_action"][0] = -1
    counters[NODES] = counters[STACKED] = 1
    return len(hands)
