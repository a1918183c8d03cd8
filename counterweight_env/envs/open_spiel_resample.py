"""Draws an OpenSpiel state anew so that one player cannot tell it from the true one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

import numpy as np

from counterweight_env import kernels
from counterweight_env.cards import rule_table

if TYPE_CHECKING:
    from counterweight_env.envs.open_spiel import CounterweightGame, CounterweightState

__all__ = ["resample"]

# What happens to the opponent's hand before exhaustion: the kind of an event.
DRAW: Final = 0
BLOCKED: Final = 1  # with the two table cards
LOSE: Final = 2  # with the card
REGAIN: Final = 3  # with the card
HIDDEN_DISCARD: Final = 4  # with its number
HIDDEN_RECLAIM: Final = 5  # with the number of the discard that is taken back

#: Attempts before Python gets a chance to see an interrupt.
BATCH: Final = 100_000


@dataclass
class _Past:
    """What one player has seen of a game's past, and where there are gaps in it.

    Attributes:
        plan: The actions that lead to the state; None for a gap.
        gaps: For each gap whether the opponent gets a card there; else they lay one face down.
        events: What happens to the opponent's hand before exhaustion: kind and up to two numbers.
        deadlines: Cards that the opponent has shown, and how many cards they had got by then.
        slots: How many cards the opponent has got.
        own: The player's cards and the first table cards.
        face_down: The numbers of the opponent's face-down discards that still lie.
        slots_before: For each face-down discard, how many cards the opponent had got by then.
        forbidden: For each face-down discard, the cards played from hand while it lies there.
        laid: The true face-down discards, by their numbers.
        laid_known: Whether the player knows those that still lie, though not their order (E2).
    """

    plan: list[int | None] = field(default_factory=list)
    gaps: list[bool] = field(default_factory=list)
    events: list[tuple[int, int, int]] = field(default_factory=list)
    deadlines: dict[int, int] = field(default_factory=dict)
    slots: int = 0
    own: set[int] = field(default_factory=set)
    face_down: list[int] = field(default_factory=list)
    slots_before: list[int] = field(default_factory=list)
    forbidden: list[int] = field(default_factory=list)
    laid: list[int] = field(default_factory=list)
    laid_known: bool = False

    def lose(self, card: int) -> None:
        """Notes that the opponent plays a card from hand for all to see."""
        self.events.append((LOSE, card, 0))
        self.deadlines.setdefault(card, self.slots)


@kernels.kernel
def draw_past(
    table,
    hand_size,
    deadlines,
    placed,
    numbers,
    lying,
    rest,
    events,
    forbidden,
    stream,
    slots,
    laid,
    attempts,
):
    """Draws what the opponent got and laid face down until it agrees with the past.

    Cards that were shown, and face-down discards that still lie, are all different cards, and each
    came before it was played. They are given their places in the order of these deadlines: every
    one then has as many free places as there are by its deadline, less those before it, whatever
    these have got, so all arrangements come out as likely. Only discards that were taken back are
    chosen from the hand of that time.

    Args:
        table: The rule table.
        hand_size: The size of a full hand.
        deadlines: (n,) int64, ascending: for each such card, how many had been got by then.
        placed: (n,) int64, the card; -1 for a discard that lies.
        numbers: (n,) int64, the number of a discard that lies; -1 for others.
        lying: (k,) int64, the discards that lie in no order, if the player knows them; else empty.
        rest: (m,) int64, all other cards that the opponent may have got.
        events: (e, 3) int64.
        forbidden: (d,) uint64, for each face-down discard the cards that it cannot be.
        stream: (1,) uint64, where chance comes from.
        slots: (s,) int64, filled with the cards that the opponent got, in order.
        laid: (d,) int64, filled with the face-down discards.
        attempts: When to give up.

    Returns:
        Whether an attempt came out right.
    """
    free = np.empty(slots.size, np.int64)
    for _ in range(attempts):
        kernels.shuffle(rest, stream, 0)
        kernels.shuffle(lying, stream, 0)
        slots[:] = -1
        used = used_lying = num_free = end = 0
        for i in range(deadlines.size):
            while end < deadlines[i]:
                free[num_free] = end
                num_free += 1
                end += 1
            card = placed[i]
            if card < 0:
                if lying.size > 0:
                    card = lying[used_lying]
                    used_lying += 1
                else:
                    card = rest[used]
                    used += 1
                laid[numbers[i]] = card
            j = kernels.random_below(stream, 0, num_free)
            num_free -= 1
            slots[free[j]] = card
            free[j] = free[num_free]
        for i in range(slots.size):
            if slots[i] < 0:
                slots[i] = rest[used]
                used += 1
        if agrees(table, hand_size, numbers, events, forbidden, stream, slots, laid):
            return True
    return False


@kernels.kernel
def agrees(table, hand_size, numbers, events, forbidden, stream, slots, laid):
    """Whether cards got agree with the past; chooses the discards that were taken back.

    Each of these is chosen evenly from those allowed. All that fit must come out as likely, so the
    fewer were allowed on the way, the more often the result is thrown away.
    """
    hand = np.uint64(0)
    got = 0
    for i in range(len(events)):
        kind = events[i, 0]
        if kind == DRAW:
            hand |= kernels.bit(slots[got])
            got += 1
        elif kind == BLOCKED:
            if kernels.left_cards(table, hand, events[i, 1], events[i, 2]):
                return False
        elif kind == LOSE:
            hand &= ~kernels.bit(events[i, 1])
        elif kind == REGAIN:
            hand |= kernels.bit(events[i, 1])
        elif kind == HIDDEN_RECLAIM:
            hand |= kernels.bit(laid[events[i, 1]])
        else:
            number = events[i, 1]
            lies = False
            for other in numbers:
                lies |= other == number
            if not lies:
                allowed = hand & ~forbidden[number]
                chosen = kernels.random_below(stream, 0, hand_size)
                if chosen >= kernels.count_bits(allowed):
                    return False
                laid[number] = kernels.nth_bit(allowed, chosen)
            hand &= ~kernels.bit(laid[number])
    return True


def resample(
    state: CounterweightState, player: int, sampler: Callable[[], float]
) -> CounterweightState:
    """Draws a state evenly from all courses of chance that agree with what a player has seen.

    The whole past is drawn, not the present alone: the opponent has had the cards they played in
    time, and was blocked whenever they discarded (T1, T2). Where discards are closed, the cards the
    opponent discarded are drawn too. If the opponent has picked a left card, which the player does
    not see, the new state lies before that choice.

    Deals that disagree are thrown away and drawn again, so a state late in a long game takes longer
    than an early one.

    Args:
        state: Any state; it is left as it is.
        player: Whose information state is kept, 0 or 1.
        sampler: Gives floats from 0 to 1; called once.

    Raises:
        ValueError: ``player`` is not 0 or 1.
    """
    if player not in (0, 1):
        raise ValueError(f"player must be 0 or 1, got {player!r}")
    rng = Random(int(sampler() * 2**53))
    length = len(state.history())
    dealt = state.clone()
    while dealt._course.deals:
        outcomes, weights = zip(*dealt.chance_outcomes(), strict=True)
        dealt.apply_action(rng.choices(outcomes, weights)[0])
    game = state.get_game()
    past = _read_past(dealt, game, player)
    twin = game.new_initial_state()
    for action in _draw_course(past, game, rng)[:length]:
        twin.apply_action(action)
    return twin


def _read_past(state: CounterweightState, game: CounterweightGame, player: int) -> _Past:
    """Plays a state's history again and notes what the player has seen of it."""
    past = _Past()
    history = state.history()
    walker = game.new_initial_state()
    for number, action in enumerate(history):
        if walker.is_chance_node():
            _note_chance(past, walker, action, player)
        elif walker.current_player() == player:
            past.plan.append(action)
        elif int(walker._course.state[0]["phase"]) == kernels.LEFT and number == len(history) - 1:
            break
        else:
            _note_action(past, walker, action, player)
        walker.apply_action(action)
    exhausted = int(walker._course.state[0]["stock_size"]) == 0
    past.laid_known = exhausted and game.rules.variant == "exchange"
    return past


def _note_chance(past: _Past, walker: CounterweightState, outcome: int, player: int) -> None:
    if walker.receiver == 1 - player:
        past.events.append((DRAW, 0, 0))
        past.slots += 1
        past.plan.append(None)
        past.gaps.append(True)
        return
    past.plan.append(outcome)
    if walker._course.dealer != kernels.NOBODY:
        past.own.add(outcome)


def _note_action(past: _Past, walker: CounterweightState, action: int, player: int) -> None:
    """Notes what an action of the opponent tells; after exhaustion all is known anyway (E3)."""
    rules = walker._course.rules
    record = walker._course.state[0]
    phase = int(record["phase"])
    hidden = False
    if record["stock_size"] == 0:
        pass
    elif phase == kernels.RIGHT:
        for card in (int(record["chosen"]), action):
            past.lose(card)
            for lying in past.face_down:
                past.forbidden[lying] |= 1 << card
    elif phase == kernels.DISCARD:
        past.events.append((BLOCKED, int(record["table"][0]), int(record["table"][1])))
        hidden = not rules.open_discards
        if hidden:
            number = len(past.forbidden)
            past.events.append((HIDDEN_DISCARD, number, 0))
            past.face_down.append(number)
            past.slots_before.append(past.slots)
            past.forbidden.append(0)
            past.laid.append(action)
        else:
            past.lose(action)
    elif action == rules.reclaim_action:
        if rules.open_discards:
            top = int(record["discard_size"][1 - player]) - 1
            past.events.append((REGAIN, int(record["discard"][1 - player, top]), 0))
        else:
            past.events.append((HIDDEN_RECLAIM, past.face_down.pop(), 0))
    if hidden:
        past.gaps.append(False)
    past.plan.append(None if hidden else action)


def _draw_course(past: _Past, game: CounterweightGame, rng: Random) -> list[int]:
    """Fills the gaps of the plan evenly from all that agrees with the past."""
    rules = game.rules
    lying = [past.laid[number] for number in past.face_down] if past.laid_known else []
    seen = past.own.union(past.deadlines, lying)
    rest = [card for card in range(rules.deck_size) if card not in seen]
    placed = [(deadline, card, -1) for card, deadline in past.deadlines.items()]
    placed += [(past.slots_before[number], -1, number) for number in past.face_down]
    columns = np.array(sorted(placed), np.int64).reshape(-1, 3)
    slots = np.zeros(past.slots, np.int64)
    laid = np.zeros(len(past.forbidden), np.int64)
    arguments = (
        rule_table(rules)[0],
        rules.hand_size,
        *columns.T.copy(),
        np.array(lying, np.int64),
        np.array(rest, np.int64),
        np.array(past.events, np.int64).reshape(-1, 3),
        np.array(past.forbidden, np.uint64),
        np.array([rng.getrandbits(64)], np.uint64),
        slots,
        laid,
        BATCH,
    )
    while not draw_past(*arguments):
        pass
    gains = iter([*sorted(slots[: rules.hand_size].tolist()), *slots[rules.hand_size :].tolist()])
    discards = iter(laid.tolist())
    gaps = iter(past.gaps)
    return [
        next(gains if next(gaps) else discards) if action is None else action
        for action in past.plan
    ]
