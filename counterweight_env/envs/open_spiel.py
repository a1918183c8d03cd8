"""Counterweight as the OpenSpiel game ``python_counterweight``; importing this module registers it.

The rules are those of the kernels: a state holds one game's record, and chance nodes only decide
which cards the kernels deal and draw.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import comb, prod
from typing import Any, Final

import numpy as np

from counterweight_env import kernels
from counterweight_env.cards import action_name, card_name, cards_of, rule_table
from counterweight_env.game import Game, IllegalActionError
from counterweight_env.kernels import NOBODY, STATE
from counterweight_env.observation import encode_batch, observation_layout, observation_size
from counterweight_env.render import view_text
from counterweight_env.rules import Rules, as_rules

try:
    import pyspiel
except ImportError as error:
    raise ImportError(
        "the OpenSpiel game needs pyspiel: pip install 'counterweight-env[openspiel]'"
    ) from error

__all__ = ["CounterweightGame", "CounterweightObserver", "CounterweightState"]

CHANCE: Final = int(pyspiel.PlayerId.CHANCE)
TERMINAL: Final = int(pyspiel.PlayerId.TERMINAL)

_PARAMETERS: Final[dict[str, Any]] = {
    "variant": "classic",
    "ranks": 13,
    "suits": 4,
    "hand_size": 6,
    "open_discards": True,
    "blocked": "pass",
    "dealer": NOBODY,  # by lot
}

_GAME_TYPE: Final = pyspiel.GameType(
    short_name="python_counterweight",
    long_name="Python Counterweight",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=True,
    provides_observation_tensor=True,
    provides_factored_observation_string=False,
    parameter_specification=_PARAMETERS,
)


# What a player may see happen after the deal, in the order of the tensor's columns.
OWN_LEFT: Final = 0
OWN_RIGHT: Final = 1
OWN_DISCARD: Final = 2
OWN_STOCK: Final = 3
OWN_RECLAIM: Final = 4
OWN_DRAW: Final = 5
OPPONENT_LEFT: Final = 6
OPPONENT_RIGHT: Final = 7
OPPONENT_DISCARD: Final = 8
OPPONENT_STOCK: Final = 9
OPPONENT_RECLAIM: Final = 10
EXHAUSTION: Final = 11
KINDS: Final = EXHAUSTION + 1
# What they see before: parts of the tensor that are no rows.
DEALER: Final = KINDS
DEALT: Final = KINDS + 1
TABLE: Final = KINDS + 2


def _events_shape(rules: Rules) -> tuple[int, int]:
    """Rows and columns of ``events``: at most a row a decision, a stock card and exhaustion."""
    return rules.max_decisions + rules.stock_size + 1, KINDS + rules.deck_size


@lru_cache(maxsize=256)
def _names(rules: Rules) -> tuple[str, ...]:
    """The name of every card."""
    return tuple(card_name(card, rules) for card in range(rules.deck_size))


class CounterweightGame(pyspiel.Game):
    """The game ``python_counterweight``.

    Args:
        params: The fields of ``Rules`` by name, and ``dealer``: 0, 1, or -1 for a lot (S1).

    Raises:
        ValueError: A parameter is bad.
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        params = _PARAMETERS | (params or {})
        fields = {name: value for name, value in params.items() if name != "dealer"}
        self.rules = as_rules(Rules(**fields))
        self.dealer = params["dealer"]
        if self.dealer not in (NOBODY, 0, 1):
            raise ValueError(f"dealer must be 0, 1, or -1 for a lot, got {self.dealer!r}")
        by_lot = self.dealer == NOBODY
        info = pyspiel.GameInfo(
            num_distinct_actions=self.rules.num_actions,
            max_chance_outcomes=self.rules.deck_size + (2 if by_lot else 0),
            num_players=2,
            min_utility=-1.0,
            max_utility=1.0,
            utility_sum=0.0,
            max_game_length=self.rules.max_decisions,
        )
        # No game ends before exhaustion, so every card is dealt or drawn by chance.
        self._chance_nodes = self.rules.deck_size + (1 if by_lot else 0)
        super().__init__(_GAME_TYPE, info, params)

    def new_initial_state(self) -> CounterweightState:
        """The state before the deal."""
        return CounterweightState(self)

    def max_chance_nodes_in_history(self) -> int:
        """The chance nodes of any whole game: the lot, if there is one, and every card."""
        return self._chance_nodes

    def make_py_observer(
        self, iig_obs_type: Any = None, params: dict[str, Any] | None = None
    ) -> CounterweightObserver | None:
        """An observer of one player's whole knowledge; None for its public or private part alone.

        Args:
            iig_obs_type: A ``pyspiel.IIGObservationType``; without one, there is no perfect recall.
                There are a string and a tensor either way.
            params: Must be empty.

        Raises:
            ValueError: ``params`` is not empty.
        """
        if params:
            raise ValueError(f"observation parameters are not supported, got {params}")
        if not iig_obs_type:
            return CounterweightObserver(self.rules, perfect_recall=False)
        single = iig_obs_type.private_info == pyspiel.PrivateInfoType.SINGLE_PLAYER
        if not (single and iig_obs_type.public_info):
            return None
        return CounterweightObserver(self.rules, iig_obs_type.perfect_recall)


class _Course:
    """How a game has gone so far: all that a state has to copy or to save, in one object.

    Attributes:
        rules: The rules.
        dealer: 0, 1, or NOBODY before the lot.
        player: Who is on turn, in OpenSpiel's numbers.
        dealt: The cards dealt so far: hand of player 0, hand of player 1, left, right.
        state: (1,) of dtype ``STATE`` once all are dealt. Its stock lies in no order that matters:
            a card that chance picks is put on top.
        action: What the mover does once its cards are drawn.
        draws: Cards still to be drawn for it.
        drawn: Cards drawn for it.
        seen: For each player all that they have seen, as text.
        events: For each player the same, as pairs of what happened and the set of cards it shows.
    """

    __slots__ = (
        "action",
        "dealer",
        "dealt",
        "drawn",
        "draws",
        "events",
        "player",
        "rules",
        "seen",
        "state",
    )

    def __init__(self, rules: Rules, dealer: int) -> None:
        self.rules = rules
        self.dealer = dealer
        self.player = CHANCE
        self.dealt: tuple[int, ...] = ()
        self.state = _NOT_DEALT
        self.action = 0
        self.draws = 0
        self.drawn: tuple[int, ...] = ()
        self.seen = ["player 0", "player 1"]
        self.events: list[tuple[tuple[int, int], ...]] = [(), ()]
        if dealer != NOBODY:
            self._tell_dealer()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Course:
        twin = object.__new__(_Course)
        for name in _Course.__slots__:
            setattr(twin, name, getattr(self, name))
        # A state array is replaced, never changed, except by drawing.
        twin.state = self.state.copy() if self.draws else self.state
        twin.seen = self.seen.copy()
        twin.events = self.events.copy()
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _Course.__slots__}

    def __setstate__(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def _tell(self, player: int, text: str, *events: tuple[int, int]) -> None:
        """Notes what a player sees, as text and as pairs of what happened and a set of cards."""
        self.seen[player] += text
        self.events[player] += events

    def _tell_dealer(self) -> None:
        for player in range(2):
            self._tell(player, f" dealer {self.dealer}", (DEALER, 1 << self.dealer))

    @property
    def deals(self) -> bool:
        """Whether the cards are still being dealt."""
        return len(self.dealt) < 2 * self.rules.hand_size + 2

    @property
    def receiver(self) -> int:
        """The player who gets the next card of chance, NOBODY for the lot and the table cards."""
        if not self.deals:
            return int(self.state[0]["to_move"])
        if self.dealer == NOBODY or len(self.dealt) >= 2 * self.rules.hand_size:
            return NOBODY
        return len(self.dealt) // self.rules.hand_size

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The outcomes of a chance node, ascending, with their probabilities."""
        rules = self.rules
        if self.dealer == NOBODY:
            return [(rules.deck_size, 0.5), (rules.deck_size + 1, 0.5)]
        if self.deals:
            cards = [card for card in range(rules.deck_size) if card not in self.dealt]
            if self.receiver != NOBODY:
                return self._hand_outcomes(cards)
        else:
            left = int(self.state[0]["stock_size"]) - len(self.drawn)
            cards = sorted(self.state[0]["stock"][:left].tolist())
        return [(card, 1.0 / len(cards)) for card in cards]

    def _hand_outcomes(self, cards: list[int]) -> list[tuple[int, float]]:
        """The next card of a hand, which is dealt in ascending order: all hands are as likely.

        A hand is a set, so dealing it in one order alone makes the tree ``hand_size!`` times
        smaller a hand.
        """
        size = self.rules.hand_size
        before = len(self.dealt) % size
        if before:
            cards = [card for card in cards if card > self.dealt[-1]]
        hands = comb(len(cards), size - before)
        outcomes = []
        for i, card in enumerate(cards):
            ways = comb(len(cards) - 1 - i, size - before - 1)
            if ways:
                outcomes.append((card, ways / hands))
        return outcomes

    def happen(self, outcome: int) -> None:
        """Carries out an outcome of chance."""
        if self.dealer == NOBODY:
            self.dealer = outcome - self.rules.deck_size
            self._tell_dealer()
        elif self.deals:
            self._deal(outcome)
        else:
            self._draw(outcome)

    def _deal(self, card: int) -> None:
        receiver = self.receiver
        if receiver == NOBODY:
            for player in range(2):
                self._tell(player, f" table {_names(self.rules)[card]}", (TABLE, 1 << card))
        else:
            self._tell(receiver, f" dealt {_names(self.rules)[card]}", (DEALT, 1 << card))
        self.dealt += (card,)
        if not self.deals:
            rest = [card for card in range(self.rules.deck_size) if card not in self.dealt]
            self.state = np.zeros(1, STATE)
            decks = np.array([[*self.dealt, *rest]], np.uint8)
            kernels.lay_out_games(self.state, rule_table(self.rules), decks, self.dealer)
            self._next_player()

    def _draw(self, card: int) -> None:
        record = self.state[0]
        stock = record["stock"]
        top = int(record["stock_size"]) - len(self.drawn) - 1
        place = int(np.flatnonzero(stock[: top + 1] == card)[0])
        stock[place], stock[top] = stock[top], card
        text = f" draws {_names(self.rules)[card]}"
        self._tell(int(record["to_move"]), text, (OWN_DRAW, 1 << card))
        self.drawn += (card,)
        self.draws -= 1
        if not self.draws:
            after = self.state.copy()
            kernels.step_one(after, rule_table(self.rules), self.action)
            self._arrive(after)

    def act(self, action: int) -> None:
        """Carries out the mover's action, or makes chance draw the cards that it needs first.

        Raises:
            IllegalActionError: The action is illegal; nothing has changed.
        """
        after = self.state.copy()
        if kernels.step_one(after, rule_table(self.rules), action) < 0:
            Game._of(after, self.rules).step(action)  # raises, and says why
        self._tell_action(action)
        # How many cards a step draws follows from the sizes of the piles, not from the cards.
        self.draws = int(self.state[0]["stock_size"]) - int(after[0]["stock_size"])
        if self.draws:
            self.action = action
            self.drawn = ()
            self.player = CHANCE
            self.state = self.state.copy()  # whose stock chance is about to put in order
        else:
            self._arrive(after)

    def _tell_action(self, action: int) -> None:
        """Notes what each player sees of an action."""
        record = self.state[0]
        mover, phase = int(record["to_move"]), int(record["phase"])
        other = 1 - mover
        name = action_name(action, self.rules)
        card = 1 << action
        if phase == kernels.LEFT:  # the other player sees whole couples
            self._tell(mover, f" left {name}", (OWN_LEFT, card))
        elif phase == kernels.RIGHT:
            chosen = int(record["chosen"])
            self._tell(mover, f" right {name}", (OWN_RIGHT, card))
            self._tell(
                other,
                f" opponent couple {_names(self.rules)[chosen]} {name}",
                (OPPONENT_LEFT, 1 << chosen),
                (OPPONENT_RIGHT, card),
            )
        elif phase == kernels.DISCARD:
            self._tell(mover, f" lays {name}", (OWN_DISCARD, card))
            # What is laid after exhaustion is out of play and public.
            if self.rules.open_discards or not record["stock_size"]:
                self._tell(other, f" opponent lays {name}", (OPPONENT_DISCARD, card))
            else:
                self._tell(other, " opponent lays a card", (OPPONENT_DISCARD, 0))
        else:
            from_stock = action == self.rules.deck_size
            self._tell(mover, f" {name}", (OWN_STOCK if from_stock else OWN_RECLAIM, 0))
            event = OPPONENT_STOCK if from_stock else OPPONENT_RECLAIM
            self._tell(other, f" opponent {name}", (event, 0))

    def _arrive(self, after: np.ndarray) -> None:
        """Goes on to the record that an action has led to."""
        before, record = self.state[0], after[0]
        if before["stock_size"] and not record["stock_size"]:  # E1: the discards are handed out
            lying = int(before["discarded"][0] | before["discarded"][1])
            if before["phase"] == kernels.DISCARD:
                lying |= 1 << self.action
            elif self.action == self.rules.deck_size + 1:  # the top is reclaimed first
                mover = before["to_move"]
                lying &= ~(1 << int(before["discard"][mover][before["discard_size"][mover] - 1]))
            for player in range(2):
                gained = int(record["hand"][player]) & lying
                cards = " ".join(_names(self.rules)[card] for card in cards_of(gained))
                self._tell(player, f" exhausted takes {cards or 'nothing'}", (EXHAUSTION, gained))
        self.state = after
        self._next_player()

    def _next_player(self) -> None:
        mover = int(self.state[0]["to_move"])
        self.player = TERMINAL if mover == NOBODY else mover


_NOT_DEALT: Final = np.zeros(1, STATE)


class CounterweightState(pyspiel.State):
    """A state of ``python_counterweight``; to be made by ``game.new_initial_state()``.

    Chance decides the dealer, if by lot, then card after card: the hand of player 0, the hand of
    player 1 (each ascending), the left and the right table card, and later every stock card at the
    moment it is drawn. Outcomes are card indexes, and ``deck_size + dealer`` for the lot.

    At the chance nodes of a draw, :attr:`game` and the observation still show the position before
    the action that draws; the information state already tells it.
    """

    def __init__(self, game: CounterweightGame) -> None:
        super().__init__(game)
        # The only attribute: OpenSpiel copies and saves states attribute by attribute.
        self._course = _Course(game.rules, game.dealer)

    @property
    def game(self) -> Game | None:
        """A copy of the position as a ``Game``, None before all is dealt.

        Its stock holds the right cards in an order that means nothing.
        """
        course = self._course
        return None if course.deals else Game._of(course.state.copy(), course.rules)

    @property
    def receiver(self) -> int:
        """At a chance node, the player who gets the card; -1 for the lot and the table cards."""
        return self._course.receiver

    def current_player(self) -> int:
        """0, 1, ``PlayerId.CHANCE`` or ``PlayerId.TERMINAL``."""
        return self._course.player

    def is_terminal(self) -> bool:
        """Whether the game is over (F2)."""
        return self._course.player == TERMINAL

    def _legal_actions(self, player: int) -> list[int]:
        return list(cards_of(self._course.state[0]["legal"]))

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The outcomes of a chance node, ascending, with their probabilities."""
        return self._course.chance_outcomes()

    def _apply_action(self, action: int) -> None:
        if self._course.player == CHANCE:
            if action not in dict(self._course.chance_outcomes()):
                raise IllegalActionError(f"{action} is no outcome of this chance node")
            self._course.happen(action)
        else:
            self._course.act(action)

    def _action_to_string(self, player: int, action: int) -> str:
        rules = self._course.rules
        if player == CHANCE and action >= rules.deck_size:
            return f"dealer {action - rules.deck_size}"
        return action_name(action, rules)

    def returns(self) -> list[float]:
        """+1 win, 0 draw, -1 loss for each player (F3); zeros while the game runs."""
        if not self.is_terminal():
            return [0.0, 0.0]
        value = float(kernels.outcome(self._course.state[0]))
        return [value, 0.0 - value]

    def resample_from_infostate(
        self, player: int, sampler: Callable[[], float]
    ) -> CounterweightState:
        """A state with the same information state of one player, its hidden cards drawn anew.

        See :func:`counterweight_env.envs.open_spiel_resample.resample`.
        """
        from counterweight_env.envs.open_spiel_resample import resample

        return resample(self, player, sampler)

    def __str__(self) -> str:
        return "\n".join(self._course.seen)


class CounterweightObserver:
    """What one player knows, as OpenSpiel's observers give it.

    Without perfect recall the tensor is the observation. With it, all that the player has seen
    follows. Two tensors differ wherever the strings do, and at the players' nodes they differ only
    there; at the chance nodes of a draw the observation in it is that before the action.

    - ``player`` and ``dealer`` (2,), ``dealt`` (D,) the cards of the first hand, ``start_left`` and
      ``start_right`` (D,) the first table, for a deck of D cards;
    - ``events`` (E, KINDS + D), a row for each thing seen in the course of the game, in order and
      with rows of 0 behind: what it was (own left card, right card, discard, stock, reclaim, draw;
      the opponent's left card, right card, discard, stock, reclaim; exhaustion), then its cards.

    Attributes:
        tensor: (K,) float32 of 0 and 1. What comes from ``observation_layout(rules)`` is 0 before
            the cards are dealt.
        dict: The parts of the tensor by name, as views.
    """

    def __init__(self, rules: Rules, perfect_recall: bool) -> None:
        self._rules = rules
        self._perfect_recall = perfect_recall
        self._row = np.zeros((1, observation_size(rules)), np.int8)
        parts: list[tuple[str, tuple[int, ...]]] = [
            (name, (part.stop - part.start,)) for name, part in observation_layout(rules).items()
        ]
        if perfect_recall:
            deck = (rules.deck_size,)
            parts += [("player", (2,)), ("dealer", (2,)), ("dealt", deck)]
            parts += [("start_left", deck), ("start_right", deck)]
            parts += [("events", _events_shape(rules))]
        self.tensor = np.zeros(sum(prod(shape) for _, shape in parts), np.float32)
        self.dict: dict[str, np.ndarray] = {}
        start = 0
        for name, shape in parts:
            end = start + prod(shape)
            self.dict[name] = self.tensor[start:end].reshape(shape)
            start = end

    def set_from(self, state: CounterweightState, player: int) -> None:
        """Writes a state from one player's side into ``tensor``."""
        course = state._course
        self.tensor.fill(0.0)
        if not course.deals:
            sides = np.array([player], np.int8)
            now = encode_batch(course.state, self._rules, sides, self._row)[0]
            self.tensor[: now.size] = now
        if self._perfect_recall:
            self.dict["player"][player] = 1.0
            self._write_past(course.events[player])

    def _write_past(self, events: tuple[tuple[int, int], ...]) -> None:
        dealer, dealt = self.dict["dealer"], self.dict["dealt"]
        rows = self.dict["events"]
        tables = iter((self.dict["start_left"], self.dict["start_right"]))
        used = 0
        for kind, cards in events:
            if kind < KINDS:
                row = rows[used]
                row[kind] = 1.0
                where = row[KINDS:]
                used += 1
            elif kind == TABLE:
                where = next(tables)
            else:
                where = dealer if kind == DEALER else dealt
            where[list(cards_of(cards))] = 1.0

    def string_from(self, state: CounterweightState, player: int) -> str:
        """All that a player has seen so far, or without perfect recall what they see now."""
        course = state._course
        if self._perfect_recall or course.deals:
            return course.seen[player]
        return view_text(Game._of(course.state, self._rules).view(player))


pyspiel.register_game(_GAME_TYPE, CounterweightGame)
