"""Draws an OpenSpiel state anew so that one player cannot tell it from the true one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from counterweight_env import kernels
from counterweight_env.cards import cards_of, rule_table

if TYPE_CHECKING:
    from counterweight_env.envs.open_spiel import CounterweightGame, CounterweightState

__all__ = ["resample"]

# What happens to the opponent's hand before exhaustion, in order.
DRAW = "draw"
BLOCKED = "blocked"
LOSE = "lose"
REGAIN = "regain"
HIDDEN_DISCARD = "hidden discard"
HIDDEN_RECLAIM = "hidden reclaim"


@dataclass
class _Past:
    """What one player has seen of a game's past, and where there are gaps in it.

    Attributes:
        plan: The actions that lead to the state; None for a gap.
        gaps: For each gap whether the opponent gets a card there; else they lay one face down.
        events: What happens to the opponent's hand before exhaustion, with its card, the table
            cards, or the number of the face-down discard.
        deadlines: Cards that the opponent has shown, and how many cards they had got by then.
        slots: How many cards the opponent has got.
        own: The player's cards and the first table cards.
        face_down: The numbers of the opponent's face-down discards that still lie.
        forbidden: For each face-down discard, the cards played from hand while it lies there.
        laid: The true face-down discards, which the player learns at exhaustion in exchange (E2).
        slots_at_last_discard: How many cards the opponent had got at the last of them.
        wanted: The cards that the opponent must have laid face down, if the player knows them.
    """

    plan: list[int | None] = field(default_factory=list)
    gaps: list[bool] = field(default_factory=list)
    events: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    deadlines: dict[int, int] = field(default_factory=dict)
    slots: int = 0
    own: set[int] = field(default_factory=set)
    face_down: list[int] = field(default_factory=list)
    forbidden: list[set[int]] = field(default_factory=list)
    laid: list[int] = field(default_factory=list)
    slots_at_last_discard: int = 0
    wanted: set[int] | None = None

    def lose(self, card: int) -> None:
        """Notes that the opponent plays a card from hand for all to see."""
        self.events.append((LOSE, (card,)))
        self.deadlines.setdefault(card, self.slots)


def resample(
    state: CounterweightState, player: int, sampler: Callable[[], float]
) -> CounterweightState:
    """Draws a state evenly from all courses of chance that agree with what a player has seen.

    The whole past is drawn, not the present alone: the opponent has had the cards they played in
    time, and was blocked whenever they discarded (T1, T2). Where discards are closed, the cards the
    opponent discarded are drawn too, each evenly from the hand of that time. If the opponent has
    picked a left card, which the player does not see, the new state lies before that choice.

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
    if int(walker._course.state[0]["stock_size"]) == 0 and game.rules.variant == "exchange":
        past.wanted = set(past.laid)
        for card in past.laid:
            past.deadlines[card] = past.slots_at_last_discard
    return past


def _note_chance(past: _Past, walker: CounterweightState, outcome: int, player: int) -> None:
    if walker.receiver == 1 - player:
        past.events.append((DRAW, ()))
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
                past.forbidden[lying].add(card)
    elif phase == kernels.DISCARD:
        past.events.append((BLOCKED, (int(record["table"][0]), int(record["table"][1]))))
        hidden = not rules.open_discards
        if hidden:
            past.events.append((HIDDEN_DISCARD, (len(past.forbidden),)))
            past.face_down.append(len(past.forbidden))
            past.forbidden.append(set())
            past.laid.append(action)
            past.slots_at_last_discard = past.slots
        else:
            past.lose(action)
    elif action == rules.reclaim_action:
        if rules.open_discards:
            top = int(record["discard_size"][1 - player]) - 1
            past.events.append((REGAIN, (int(record["discard"][1 - player, top]),)))
        else:
            past.events.append((HIDDEN_RECLAIM, ()))
            past.face_down.pop()
    if hidden:
        past.gaps.append(False)
    past.plan.append(None if hidden else action)


def _draw_course(past: _Past, game: CounterweightGame, rng: Random) -> list[int]:
    """Fills the gaps of the plan evenly from all that agrees with the past."""
    rules = game.rules
    unseen = [card for card in range(rules.deck_size) if card not in past.own]
    laid = None
    while laid is None:
        slots = _draw_slots(past, unseen, rng)
        laid = _draw_discards(past, slots, game, rng)
    gains = iter([*sorted(slots[: rules.hand_size]), *slots[rules.hand_size :]])
    discards = iter(laid)
    gaps = iter(past.gaps)
    return [
        next(gains if next(gaps) else discards) if action is None else action
        for action in past.plan
    ]


def _draw_slots(past: _Past, unseen: list[int], rng: Random) -> list[int]:
    """The cards that the opponent got, in order; those they have shown came in time.

    The earlier a card was shown, the fewer the places it can have come to, and they are among the
    places of those shown later: choosing in that order is even.
    """
    slots: list[int | None] = [None] * past.slots
    shown = sorted(past.deadlines, key=past.deadlines.__getitem__)
    for card in shown:
        free = [i for i in range(past.deadlines[card]) if slots[i] is None]
        slots[rng.choice(free)] = card
    rest = [card for card in unseen if card not in past.deadlines]
    rng.shuffle(rest)
    return [rest.pop() if card is None else card for card in slots]


def _draw_discards(
    past: _Past, slots: list[int], game: CounterweightGame, rng: Random
) -> list[int] | None:
    """The cards that the opponent laid face down; None if the cards disagree with the past.

    Each is chosen evenly from those allowed. All that fit must come out as likely, so the fewer
    were allowed on the way, the more often the result is thrown away.
    """
    table = rule_table(game.rules)[0]
    hand = 0
    got = 0
    laid: list[int] = []
    pile: list[int] = []
    for event, what in past.events:
        if event == DRAW:
            hand |= 1 << slots[got]
            got += 1
        elif event == LOSE:
            hand &= ~(1 << what[0])
        elif event == REGAIN:
            hand |= 1 << what[0]
        elif event == HIDDEN_RECLAIM:
            hand |= 1 << pile.pop()
        elif event == BLOCKED:
            if kernels.left_cards(table, np.uint64(hand), what[0], what[1]):
                return None
        else:
            allowed = [
                card
                for card in cards_of(hand)
                if card not in past.forbidden[what[0]]
                and (past.wanted is None or card in past.wanted)
            ]
            if rng.random() * game.rules.hand_size >= len(allowed):
                return None
            card = rng.choice(allowed)
            hand &= ~(1 << card)
            pile.append(card)
            laid.append(card)
    return laid
