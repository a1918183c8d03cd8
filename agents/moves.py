"""What a move looks like to a network: one row of numbers for every legal move.

A *move* is a couple, a card to discard, or a source to refill from. Every feature is a count, a
yes/no or a guess from counts, and stays the same when suits are renamed, ranks are flipped or left
and right are swapped. So a network that scores moves by these rows and by nothing else cannot play
the 96 images of a position differently (see ``docs/rules.md`` on symmetries).

None of them reads anything that the player does not know. After exhaustion, where both hands are
known (E3), couples have rows of another kind, so there are two layouts of one width; ``OPENING``
and ``ENDING`` name the columns. Rows of endings look at every reply to the couple and every answer
to the reply, and no further: what the answer leaves is guessed from counts
(:func:`agents.leaf.estimate`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from agents.leaf import COUNTS, estimate
from counterweight_env.endgame import (
    DANGER,
    SAME,
    count_all,
    count_couples,
    couple_sets,
    lane_of,
    open_ranks,
    paired_ranks,
    partners_of,
    ranks_in,
    to_lanes,
)
from counterweight_env.kernels import (
    DISCARD,
    LEFT,
    NO_CARD,
    ONE,
    REFILL,
    ZERO,
    bit,
    count_bits,
    kernel,
    lowest_bit,
    right_cards,
)
from counterweight_env.observation import opponent_hand_size

__all__ = ["ENDING", "MAX_MOVES", "OPENING", "WIDTH", "count_moves", "list_moves"]

#: Two cards of fifty, either way round.
MAX_MOVES: Final = 50 * 49

#: The columns of a move before exhaustion. "Mine" is the hand after the move.
OPENING: Final = (
    "couple",
    "discard",
    "stock",
    "reclaim",
    "second refill",
    "stock left",
    "one card left",
    "two cards left",
    "three cards left",
    "four cards left",
    "five or six cards left",
    "stock even",
    "opponent blocked",
    "mine",
    "theirs",
    "my discard",
    "their discard",
    "lead at exhaustion if all stopped now",
    "no lead",
    "sign of the lead",
    "my pairs",
    "my ranks",
    "pairs of what I shall have",
    "ranks of what I shall have",
    "pairs of my discard",
    "ranks of my discard",
    "pairs of their discard",
    "ranks of their discard",
    "ranks of mine that lie in my discard",
    "my couples on the new table",
    "none of them",
    "replies to be expected",
    "chance of none",
    "replies by cards known",
    "share of their cards among the unseen",
    "cards that would open the table to me",
    "distance from the middle rank",
    "copies in mine",
    "copies in my discard",
    "copies in their discard",
    "copies unseen",
    "cards of the suit in mine",
    "cards of the suit unseen",
    "distance of the couple's ranks",
    "couple of one suit",
    "couple of one rank",
    "couples that the reclaimed card brings",
)
#: The columns of a couple after exhaustion.
ENDING: Final = (
    "game over",
    "result",
    "no reply",
    "replies",
    "I cannot go on",
    "my couples on the new table",
    "replies, those that are hard to answer counting more",
    "replies without an answer",
    "any such reply",
    "fewest answers",
    "mean answers",
    "worst standing after a reply",
    "unanswered replies after which they go on",
    "couples after no reply that have no reply",
    "fewest replies to one of those",
    "mine",
    "theirs",
    "lead",
    "no lead",
    "one card ahead",
    "one card behind",
    "more ahead",
    "more behind",
    "mine odd",
    "theirs odd",
    "my pairs",
    "their pairs",
    "my ranks",
    "their ranks",
    "ranks of both",
    "copies in mine",
    "copies in theirs",
    "couple of one suit",
    "distance of the couple's ranks",
    "couple of one rank",
    "their cards on which I have couples",
    "my cards on which they have couples",
    "my cards on which I have couples",
    "their cards on which they have couples",
    "replies to which no answer is silent",
    "share of those",
    "all replies have a silent answer",
    "worst standing after a reply and the best answer",
    "worst estimate after a reply and the best answer",
    "mean estimate after a reply and the best answer",
)
WIDTH: Final = max(len(OPENING), len(ENDING))

#: What sets an answer without a reply apart: more than twice the couples that a hand can have.
SILENT: Final = 4 * MAX_MOVES


@kernel
def squash(count):
    """A count on a scale that tells 0, 1 and 2 well apart and 20 and 30 less."""
    return np.log1p(count) * 0.5


@kernel
def answerable(cards, pool, exchange):
    """The share of the tables of two cards of a pool on which a set of cards holds a couple."""
    found = 0
    size = count_bits(pool)
    if size < 2:
        return 0.0
    pairs = paired_ranks(cards) if exchange else ZERO
    lefts = pool
    while lefts:
        left = lowest_bit(lefts)
        lefts &= lefts - ONE
        rights = lefts
        while rights:
            right = lowest_bit(rights)
            rights &= rights - ONE
            if count_couples(cards, pairs, left, right):
                found += 1
    return 2.0 * found / (size * (size - 1))


@kernel
def best_answer(mine, theirs, left, right, exchange, scratch):
    """The best that a player can make of a table after exhaustion.

    Args:
        mine: The player's hand, in lanes.
        theirs: The other hand, in lanes.
        left: The card on the left, as ``16 * suit + rank``.
        right: The one on the right.
        exchange: Whether C3 and C4 are in force.
        scratch: (COUNTS,) float64.

    Returns:
        The best standing after a couple, which is the own couples less the replies, and SILENT more
        if there are none of those; and the best estimate of the value, from -1 to 1.
    """
    my_pairs = paired_ranks(mine) if exchange else ZERO
    their_pairs = paired_ranks(theirs) if exchange else ZERO
    best = -SILENT
    most = -1.0
    ranks = open_ranks(left, right) & my_pairs
    cards, sets = couple_sets(mine, left, right, ranks)
    while cards:
        card = lowest_bit(cards)
        cards &= cards - ONE
        partners = partners_of(card, sets, ranks) & cards
        while partners:
            partner = lowest_bit(partners)
            partners &= partners - ONE
            replies = count_couples(theirs, their_pairs, card, partner)
            rest = mine & ~(bit(card) | bit(partner))
            again = count_all(rest, card, partner, exchange)
            best = max(best, again - replies + (SILENT if replies == 0 else 0))
            if rest == ZERO or (replies == 0 and again == 0):
                value = result_for(rest, theirs)
            elif replies:
                value = -estimate(theirs, rest, replies, again, exchange, scratch)
            else:
                value = estimate(rest, theirs, again, 0, exchange, scratch)
            most = max(most, value)
    return best, most


@kernel
def result_for(mine, theirs):
    """What a game that ends with these hands is worth (F3)."""
    return float(min(max(count_bits(theirs) - count_bits(mine), -1), 1))


# --- After exhaustion ---------------------------------------------------------------------------


@kernel
def describe_replies(mine, theirs, left, right, exchange, scratch, out):
    """Writes what replies to a couple are like (columns 6 to 12, 39 to 44); returns how many."""
    their_pairs = paired_ranks(theirs) if exchange else ZERO
    my_pairs = paired_ranks(mine) if exchange else ZERO
    replies = 0
    threat = 0
    unanswered = 0
    twice = 0
    fewest = 64
    total = 0
    worst = 64
    loud = 0
    least = 2 * SILENT
    lowest = 1.0
    sum_of_values = 0.0
    ranks = open_ranks(left, right) & their_pairs
    cards, sets = couple_sets(theirs, left, right, ranks)
    while cards:
        card = lowest_bit(cards)
        cards &= cards - ONE
        partners = partners_of(card, sets, ranks) & cards
        while partners:
            partner = lowest_bit(partners)
            partners &= partners - ONE
            answers = count_couples(mine, my_pairs, card, partner)
            rest = theirs & ~(bit(card) | bit(partner))
            again = count_all(rest, card, partner, exchange)
            replies += 1
            threat += DANGER[min(answers, 63)]
            total += min(answers, 63)
            fewest = min(fewest, answers)
            standing = answers - again
            if answers == 0:
                unanswered += 1
                twice += again > 0
                if again == 0:  # the game would be over
                    standing = (count_bits(rest) - count_bits(mine)) * 8
            worst = min(worst, standing)
            best = -SILENT
            if rest == ZERO or (answers == 0 and again == 0):
                value = result_for(mine, rest)
            elif answers == 0:
                value = -estimate(rest, mine, again, 0, exchange, scratch)
            else:
                best, value = best_answer(mine, rest, card, partner, exchange, scratch)
            loud += best < SILENT // 2
            least = min(least, best)
            lowest = min(lowest, value)
            sum_of_values += value
    if replies > 0:
        out[6] = squash(threat / 64.0)
        out[7] = squash(unanswered)
        out[8] = unanswered > 0
        out[9] = min(fewest, 8) / 8
        out[10] = squash(total / replies)
        out[11] = min(max(worst, -8), 8) / 8
        out[12] = squash(twice)
        out[39] = squash(loud)
        out[40] = loud / replies
        out[41] = loud == 0
        if least > SILENT // 2:
            least += 8 - SILENT
        out[42] = min(max(least, -8), 12) / 8
        out[43] = lowest
        out[44] = sum_of_values / replies
    return replies


@kernel
def describe_next(mine, theirs, left, right, exchange, out):
    """Writes how a player can go on after a couple without a reply (columns 13 and 14)."""
    my_pairs = paired_ranks(mine) if exchange else ZERO
    their_pairs = paired_ranks(theirs) if exchange else ZERO
    silent = 0
    fewest = 64
    ranks = open_ranks(left, right) & my_pairs
    cards, sets = couple_sets(mine, left, right, ranks)
    while cards:
        card = lowest_bit(cards)
        cards &= cards - ONE
        partners = partners_of(card, sets, ranks) & cards
        while partners:
            partner = lowest_bit(partners)
            partners &= partners - ONE
            replies = count_couples(theirs, their_pairs, card, partner)
            silent += replies == 0
            fewest = min(fewest, replies)
    out[13] = squash(silent)
    out[14] = min(fewest, 8) / 8


@kernel
def describe_ending(mine, theirs, left, right, their_share, exchange, out):
    """Writes the row of a couple after exhaustion.

    Args:
        mine: The mover's hand after the couple, in lanes.
        theirs: The other hand, in lanes.
        left: The couple's card on the left, as ``16 * suit + rank``.
        right: The one on the right.
        their_share: ``answerable(theirs, theirs, exchange)``, the same for all couples.
        exchange: Whether C3 and C4 are in force.
        out: (WIDTH,) float32, all 0.
    """
    my_cards = count_bits(mine)
    their_cards = count_bits(theirs)
    lead = their_cards - my_cards
    own = count_all(mine, left, right, exchange)
    scratch = np.empty(COUNTS)
    replies = describe_replies(mine, theirs, left, right, exchange, scratch, out)
    over = my_cards == 0 or (replies == 0 and own == 0)
    if over:
        out[0] = 1
        out[1] = min(max(lead, -1), 1)
        out[43] = out[44] = out[1]
    elif replies == 0:
        describe_next(mine, theirs, left, right, exchange, out)
        out[43] = out[44] = best_answer(mine, theirs, left, right, exchange, scratch)[1]
    out[2] = replies == 0
    out[3] = squash(replies)
    out[4] = own == 0
    out[5] = squash(own)
    out[15] = my_cards / 20
    out[16] = their_cards / 20
    out[17] = min(max(lead, -4), 4) / 4
    out[18] = lead == 0
    out[19] = lead == 1
    out[20] = lead == -1
    out[21] = lead >= 2
    out[22] = lead <= -2
    out[23] = my_cards & 1
    out[24] = their_cards & 1
    out[25] = count_bits(paired_ranks(mine)) / 6
    out[26] = count_bits(paired_ranks(theirs)) / 6
    my_ranks = ranks_in(mine)
    their_ranks = ranks_in(theirs)
    out[27] = count_bits(my_ranks) / 6
    out[28] = count_bits(their_ranks) / 6
    out[29] = count_bits(my_ranks & their_ranks) / 6
    out[30] = (count_bits(mine & SAME[left]) + count_bits(mine & SAME[right])) / 3
    out[31] = (count_bits(theirs & SAME[left]) + count_bits(theirs & SAME[right])) / 3
    out[32] = left >> 4 == right >> 4
    out[33] = abs((left & 15) - (right & 15)) / 12
    out[34] = left & 15 == right & 15
    out[35] = answerable(mine, theirs, exchange)
    out[36] = answerable(theirs, mine, exchange)
    out[37] = answerable(mine, mine, exchange)
    out[38] = their_share


# --- Before exhaustion --------------------------------------------------------------------------


@kernel
def unseen_lanes(game, table, player):
    """The cards that a player does not see, as lanes: the other hand's unknown ones and the stock.

    With closed discards, the opponent's discard too.
    """
    seen = game["hand"][player] | game["buried"] | game["known"][1 - player]
    seen |= bit(game["table"][0]) | bit(game["table"][1])
    seen |= game["discarded"][player]
    if table["open_discards"]:
        seen |= game["discarded"][1 - player]
    every = (ONE << np.uint64(table["deck_size"])) - ONE
    return to_lanes(every & ~seen, table["ranks"])


@kernel
def count_suit(cards, card):
    """The cards of a set that have the suit of a card."""
    return count_bits(lane_of(cards, card >> 4))


@kernel
def describe_opening(game, table, player, kind, mine, mine_laid, unseen, first, second, out):
    """Writes the row of a move before exhaustion.

    Args:
        game: The record, as the player sees it.
        table: One ``RULE_TABLE`` record.
        player: Who moves.
        kind: The column to mark: 0 couple, 1 discard, 2 stock, 3 reclaim.
        mine: The hand after the move, in lanes.
        mine_laid: The own discard after the move, in lanes.
        unseen: The cards that the player does not see, in lanes.
        first: The card moved, as ``16 * suit + rank``; -1 for a card from the stock.
        second: The other card of a couple, else -1.
        out: (WIDTH,) float32, all 0.
    """
    exchange = table["exchange"]
    width = table["ranks"]
    opponent = 1 - player
    stock = np.int64(game["stock_size"])
    known = to_lanes(game["known"][opponent], width)
    their_laid = ZERO
    if table["open_discards"]:
        their_laid = to_lanes(game["discarded"][opponent], width)
    out[kind] = 1
    if kind in (1, 2):
        stock -= 1
    out[4] = game["phase"] == REFILL and game["refills"] == 1
    out[5] = stock / 38
    out[6] = stock == 1
    out[7] = stock == 2
    out[8] = stock == 3
    out[9] = stock == 4
    out[10] = stock == 5 or stock == 6
    out[11] = stock & 1 == 0
    out[12] = game["fresh"][opponent] != NO_CARD
    my_cards = count_bits(mine) + (kind == 1 or kind == 2)
    their_cards = opponent_hand_size(game, table, player)
    my_pile = count_bits(mine_laid)
    their_pile = np.int64(game["discard_size"][opponent])
    out[13] = my_cards / 20
    out[14] = their_cards / 20
    out[15] = my_pile / 20
    out[16] = their_pile / 20
    if exchange:
        final = mine | their_laid
        lead = their_cards + my_pile - my_cards - their_pile
    else:
        final = mine | mine_laid
        lead = their_cards + their_pile - my_cards - my_pile
    out[17] = min(max(lead, -8), 8) / 8
    out[18] = lead == 0
    out[19] = min(max(lead, -1), 1)
    out[20] = count_bits(paired_ranks(mine)) / 6
    out[21] = count_bits(ranks_in(mine)) / 6
    out[22] = count_bits(paired_ranks(final)) / 6
    out[23] = count_bits(ranks_in(final)) / 6
    out[24] = count_bits(paired_ranks(mine_laid)) / 6
    out[25] = count_bits(ranks_in(mine_laid)) / 6
    out[26] = count_bits(paired_ranks(their_laid)) / 6
    out[27] = count_bits(ranks_in(their_laid)) / 6
    out[28] = count_bits(ranks_in(mine) & ranks_in(mine_laid)) / 6

    if kind == 0:
        left = first
        right = second
    else:
        left = np.int64(game["table"][0])
        right = np.int64(game["table"][1])
        left = left // width * 16 + left % width
        right = right // width * 16 + right % width
    own = count_all(mine, left, right, exchange)
    hidden = count_bits(unseen)
    share = (their_cards - count_bits(known)) / hidden if hidden > 0 else 0.0
    by_known = count_all(known, left, right, exchange)
    pool = unseen | known
    in_pool = count_all(pool, left, right, exchange)
    expected = by_known + (in_pool - by_known) * share * share
    out[29] = squash(own)
    out[30] = own == 0
    out[31] = squash(expected)
    out[32] = np.exp(-expected)
    out[33] = squash(by_known)
    out[34] = share
    if own == 0 and hidden > 0:
        openers = 0
        cards = unseen
        while cards:
            card = lowest_bit(cards)
            cards &= cards - ONE
            openers += count_all(mine | bit(card), left, right, exchange) > 0
        out[35] = openers / hidden
    else:
        out[35] = own > 0
    middle = (width - 1) / 2
    cards_moved = 0
    for card in (first, second):
        if card < 0:
            continue
        cards_moved += 1
        same = SAME[card]
        out[36] += abs((card & 15) - middle) / max(middle, 1.0)
        out[37] += count_bits(mine & same) / 3
        out[38] += count_bits(mine_laid & same) / 3
        out[39] += count_bits(their_laid & same) / 3
        out[40] += count_bits(unseen & same) / 3
        out[41] += count_suit(mine, card) / 6
        out[42] += count_suit(unseen, card) / 13
    if cards_moved == 2:
        for column in range(36, 43):
            out[column] *= 0.5
        out[43] = abs((first & 15) - (second & 15)) / 12
        out[44] = first >> 4 == second >> 4
        out[45] = first & 15 == second & 15
    if kind == 3:
        before = count_all(mine & ~bit(first), left, right, exchange)
        out[46] = squash(own) - squash(before)


# --- The list -----------------------------------------------------------------------------------


@kernel
def to_lane_card(card, width):
    """A card's index as ``16 * suit + rank``."""
    return np.int64(card) // width * 16 + np.int64(card) % width


@kernel
def count_moves(game, table, player):
    """How many rows :func:`list_moves` writes."""
    legal = game["legal"]
    if game["phase"] != LEFT:
        return count_bits(legal)
    left = game["table"][0]
    right = game["table"][1]
    found = 0
    while legal:
        first = lowest_bit(legal)
        legal &= legal - ONE
        found += count_bits(right_cards(table, game["hand"][player], left, right, first))
    return found


@kernel
def list_moves(game, table, player, actions, rows):
    """Describes every legal move of the player on turn.

    Before a couple's left card is chosen, the moves are whole couples, so that an action may stand
    for several rows.

    Args:
        game: One ``STATE`` record as the player sees it, ``legal`` included; not over.
        table: One ``RULE_TABLE`` record.
        player: Who is on turn.
        actions: (n, 2) int64 to write to: the action that begins the move, and for a whole couple
            the action that completes it, else ``NO_CARD``.
        rows: (n, WIDTH) float32 to write to.

    Returns:
        How many rows were written.
    """
    width = table["ranks"]
    exchange = table["exchange"]
    hand = game["hand"][player]
    lanes = to_lanes(hand, width)
    laid = to_lanes(game["discarded"][player], width)
    unseen = unseen_lanes(game, table, player)
    legal = game["legal"]
    phase = game["phase"]
    ending = game["stock_size"] == 0
    count = 0
    if phase == DISCARD:
        while legal:
            card = lowest_bit(legal)
            legal &= legal - ONE
            moved = to_lane_card(card, width)
            actions[count, 0] = card
            actions[count, 1] = NO_CARD
            rows[count] = 0
            one = bit(moved)
            describe_opening(
                game, table, player, 1, lanes & ~one, laid | one, unseen, moved, -1, rows[count]
            )
            count += 1
        return count
    if phase == REFILL:
        size = np.int64(game["discard_size"][player])
        top = to_lane_card(game["discard"][player, size - 1], width)
        one = bit(top)
        while legal:
            action = lowest_bit(legal)
            legal &= legal - ONE
            actions[count, 0] = action
            actions[count, 1] = NO_CARD
            rows[count] = 0
            if action == table["deck_size"]:
                describe_opening(game, table, player, 2, lanes, laid, unseen, -1, -1, rows[count])
            else:
                describe_opening(
                    game, table, player, 3, lanes | one, laid & ~one, unseen, top, -1, rows[count]
                )
            count += 1
        return count
    theirs = to_lanes(game["known"][1 - player], width) if ending else ZERO
    their_share = answerable(theirs, theirs, exchange) if ending else 0.0
    firsts = legal if phase == LEFT else bit(game["chosen"])
    while firsts:
        first = lowest_bit(firsts)
        firsts &= firsts - ONE
        seconds = right_cards(table, hand, game["table"][0], game["table"][1], first)
        left = to_lane_card(first, width)
        while seconds:
            second = lowest_bit(seconds)
            seconds &= seconds - ONE
            right = to_lane_card(second, width)
            rest = lanes & ~(bit(left) | bit(right))
            actions[count, 0] = first if phase == LEFT else second
            actions[count, 1] = second if phase == LEFT else NO_CARD
            rows[count] = 0
            if ending:
                describe_ending(rest, theirs, left, right, their_share, exchange, rows[count])
            else:
                describe_opening(
                    game, table, player, 0, rest, laid, unseen, left, right, rows[count]
                )
            count += 1
    return count
