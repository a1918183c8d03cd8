"""CFR+ (Tammelin, 2014) and best responses, as loops over the sequences of a tree.

For a player, `reach` is the probability with which their own choices lead to each sequence, and
`worth` what each sequence is worth: the sum over all leaves behind it of the payoff, weighted with
chance and the opponent's reach. Hands that have come together by a draw have several sources: reach
adds up over them, and each source is worth the sum over all hands that it may lead to.
"""

from __future__ import annotations

from counterweight_env.kernels import kernel
from train.small_games.tree import BEGIN, DECISION, END, KIND, SOURCES, WIDTH

__all__ = ["average", "expected", "improve", "respond", "spread_evenly"]


@kernel
def spread_evenly(sets_begin, sets_end, chances):
    """Gives all actions of each information set the same chance."""
    for i in range(sets_begin.size):
        for t in range(sets_begin[i], sets_end[i]):
            chances[t] = 1.0 / (sets_end[i] - sets_begin[i])


@kernel
def flow_down(steps, sources, set_parent, set_begin, set_end, num_roots, chances, reach):
    """Writes a player's reach of every sequence."""
    for t in range(num_roots):
        reach[t] = 1.0
    for s in range(steps.shape[0]):
        begin = steps[s, BEGIN]
        end = steps[s, END]
        if steps[s, KIND] == DECISION:
            for i in range(begin, end):
                before = reach[set_parent[i]]
                for t in range(set_begin[i], set_end[i]):
                    reach[t] = before * chances[t]
            continue
        width = steps[s, WIDTH]
        entry = steps[s, SOURCES]
        for t in range(begin, end):
            total = 0.0
            for _ in range(width):
                if sources[entry] >= 0:
                    total += reach[sources[entry]]
                entry += 1
            reach[t] = total


@kernel
def weigh_leaves(leaves, payoffs, player, other_reach, worth):
    """Starts a player's worth of every sequence with what its own leaves hold."""
    worth[:] = 0.0
    sign = 1.0 if player == 0 else -1.0
    for i in range(leaves.size):
        gain = sign * payoffs[i] * other_reach[leaves[i]["sequence"][1 - player]]
        worth[leaves[i]["sequence"][player]] += gain


@kernel
def collect_draw(step, sources, worth):
    """Carries the worth of drawn hands to what they come from."""
    width = step[WIDTH]
    entry = step[SOURCES]
    for t in range(step[BEGIN], step[END]):
        for _ in range(width):
            if sources[entry] >= 0:
                worth[sources[entry]] += worth[t]
            entry += 1


@kernel
def match_regrets(begin, end, regrets, chances):
    """Plays each action in proportion to its regret, or evenly where there is none."""
    total = 0.0
    for t in range(begin, end):
        total += regrets[t]
    for t in range(begin, end):
        chances[t] = regrets[t] / total if total > 0.0 else 1.0 / (end - begin)


@kernel
def improve(steps, sources, set_parent, set_begin, set_end, regrets, chances, worth):
    """One update of regrets and chances of a player, from the worth of their own leaves."""
    for s in range(steps.shape[0] - 1, -1, -1):
        if steps[s, KIND] != DECISION:
            collect_draw(steps[s], sources, worth)
            continue
        for i in range(steps[s, BEGIN], steps[s, END]):
            begin = set_begin[i]
            end = set_end[i]
            value = 0.0
            for t in range(begin, end):
                value += chances[t] * worth[t]
            worth[set_parent[i]] += value
            if end - begin > 1:
                for t in range(begin, end):
                    regrets[t] = max(regrets[t] + worth[t] - value, 0.0)
                match_regrets(begin, end, regrets, chances)


@kernel
def respond(steps, sources, set_parent, set_begin, set_end, num_roots, worth):
    """What a best response is worth, given the worth of the player's own leaves."""
    for s in range(steps.shape[0] - 1, -1, -1):
        if steps[s, KIND] != DECISION:
            collect_draw(steps[s], sources, worth)
            continue
        for i in range(steps[s, BEGIN], steps[s, END]):
            if set_begin[i] < set_end[i]:
                best = worth[set_begin[i]]
                for t in range(set_begin[i] + 1, set_end[i]):
                    best = max(best, worth[t])
                worth[set_parent[i]] += best
    total = 0.0
    for t in range(num_roots):
        total += worth[t]
    return total


@kernel
def expected(leaves, payoffs, reach, other_reach):
    """What player 0 expects, given the reach of players 0 and 1."""
    total = 0.0
    for i in range(leaves.size):
        first = reach[leaves[i]["sequence"][0]]
        total += payoffs[i] * first * other_reach[leaves[i]["sequence"][1]]
    return total


@kernel
def accumulate(reach, weight, totals):
    """Adds weighted reach to the sum of which the average is made."""
    for t in range(reach.size):
        totals[t] += weight * reach[t]


@kernel
def average(set_begin, set_end, totals, chances):
    """The chances of the average of the strategies that were summed; even where none comes."""
    for i in range(set_begin.size):
        match_regrets(set_begin[i], set_end[i], totals, chances)
