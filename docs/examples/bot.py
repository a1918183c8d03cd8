#!/usr/bin/env python3
"""A Counterweight bot in plain Python: "exec:python3 docs/examples/bot.py".

It lays the couple that leaves the fewest couples to the cards the opponent may hold, discards the
card with the fewest partners in hand, and takes its own discard back.
"""

import json
import sys
from itertools import permutations

RANKS, SUITS = "A23456789TJQK", "CDHS"


def fits(a, b, left, right, exchange):
    """Tell whether card a on the left and card b on the right are a legal couple."""
    low, high = sorted((RANKS.index(left[0]), RANKS.index(right[0])))
    if a[0] == left[0] and b[0] == right[0]:  # C1
        return True
    if a[1] == left[1] and b[1] == right[1]:  # C2: one up, one down
        up = RANKS.index(a[0]) - RANKS.index(left[0])
        if up * (RANKS.index(b[0]) - RANKS.index(right[0])) < 0:
            return True
    between = low == high or low < RANKS.index(a[0]) < high
    return exchange and a[0] == b[0] and between  # C3, C4


def decide(request):
    """Choose one of the legal actions."""
    rules, legal, hand = request["rules"], request["legal"], request["hand"]
    exchange = rules["variant"] == "exchange"
    if request["phase"] == "REFILL":
        return "RECLAIM"
    if request["phase"] == "DISCARD":
        return min(legal, key=lambda card: sum(card[1] == other[1] for other in hand))
    left, right = request["table"]
    deck = [rank + suit for suit in SUITS[: rules["suits"]] for rank in RANKS[: rules["ranks"]]]
    seen = {left, right, *hand, *request["buried"]}
    seen.update(request["own_discard"], request["opponent_discard"])
    unseen = [card for card in deck if card not in seen]
    couples = [pair for pair in permutations(hand, 2) if fits(*pair, left, right, exchange)]
    if request["phase"] == "RIGHT":
        couples = [pair for pair in couples if pair[0] == request["chosen"]]
    replies = {
        pair: sum(fits(*reply, *pair, exchange) for reply in permutations(unseen, 2))
        for pair in couples
    }
    best = min(couples, key=replies.get)
    return best[0] if request["phase"] == "LEFT" else best[1]


for line in sys.stdin:
    message = json.loads(line)
    answer = {"protocol": 1} if message["type"] == "hello" else {"action": decide(message)}
    print(json.dumps(answer), flush=True)
