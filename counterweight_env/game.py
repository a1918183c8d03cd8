"""Games as objects: :class:`Game` is one, :class:`GameBatch` is many.

Both are thin covers of the same state array (dtype ``kernels.STATE``) and hold no rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from counterweight_env import kernels
from counterweight_env.cards import action_name, as_card, card_name, cards_of, mask_of, rule_table
from counterweight_env.kernels import AGENT_STREAM, NO_CARD, NOBODY, STATE
from counterweight_env.observation import MOVERS, encode_batch, observation_size
from counterweight_env.phase import Phase
from counterweight_env.position import Card, build_record, check_sizes
from counterweight_env.rules import Rules, as_rules
from counterweight_env.threads import check_threads, passes
from counterweight_env.view import View, ViewBatch

if TYPE_CHECKING:
    from counterweight_env.settle import Settler

__all__ = ["Game", "GameBatch", "IllegalActionError"]

Seed = int | Sequence[int] | np.ndarray | None


class IllegalActionError(ValueError):
    """An action that the rules do not allow here. Nothing has changed."""


def _check_player(player: int, name: str = "player") -> int:
    if player not in (0, 1):
        raise ValueError(f"{name} must be 0 or 1, got {player!r}")
    return int(player)


def _check_dealer(dealer: int | None) -> int:
    if dealer is None:
        return NOBODY
    if dealer not in (0, 1):
        raise ValueError(f"dealer must be 0, 1 or None, got {dealer!r}")
    return int(dealer)


def _check_seed(seed: object) -> int:
    try:
        number = index(seed)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"seed must be an int, got {seed!r}") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"seed must be from 0 to 2**64 - 1, got {number}")
    return number


def seeds_for(seed: Seed, rows: np.ndarray) -> np.ndarray:
    """One 64-bit seed a row: ``seed + row`` from an int, a sequence's entries, or entropy.

    Raises:
        ValueError: A seed is negative or no int, or a sequence has the wrong length.
    """
    if seed is None:
        return np.random.SeedSequence().generate_state(max(rows.size, 1), np.uint64)[: rows.size]
    if isinstance(seed, (Sequence, np.ndarray)) and not isinstance(seed, str):
        if len(seed) != rows.size:
            raise ValueError(f"seed has {len(seed)} entries for {rows.size} games")
        return np.array([_check_seed(entry) for entry in seed], np.uint64)
    return rows.astype(np.uint64) + np.uint64(_check_seed(seed))


def _read_deck(deck: Iterable[Card], rules: Rules) -> np.ndarray:
    cards = [as_card(card, rules) for card in deck]
    if len(set(cards)) != len(cards):
        doubled = next(card for card in cards if cards.count(card) > 1)
        raise ValueError(f"card {card_name(doubled, rules)} stands twice in the deck")
    if len(cards) != rules.deck_size:
        missing = " ".join(
            card_name(card, rules) for card in range(rules.deck_size) if card not in cards
        )
        raise ValueError(
            f"the deck has {len(cards)} cards, not {rules.deck_size}; missing: {missing}"
        )
    return np.array(cards, np.uint8)


def _describe_illegal(action: object, game: np.ndarray, rules: Rules) -> str:
    """Says in words what is wrong with an action."""
    try:
        text = f"action {action} ({action_name(action, rules)})"  # type: ignore[arg-type]
    except ValueError:
        text = f"action {action!r} (actions are ints from 0 to {rules.num_actions - 1})"
    if int(game["phase"]) == kernels.OVER:
        return f"{text} is illegal: the game is over"
    legal = " ".join(action_name(a, rules) for a in cards_of(int(game["legal"])))
    return (
        f"{text} is illegal for player {int(game['to_move'])} "
        f"in phase {Phase(int(game['phase'])).name}; legal: {legal}"
    )


class GameBatch:
    """Many independent games of one rule set, moved together. No Python loop runs over the games.

    Args:
        num_games: ``B``, how many.
        rules: A :class:`Rules` or its text.
        seed: An int (game i is seeded with ``seed + i``), one int a game, or None for entropy. A
            game's future depends on its own seed alone, not on the batch around it.
        dealer: 0, 1, or None for a lot drawn from the seed (S1).
        threads: How many threads to share large batches out to; results do not depend on it.
        solve_endings: End every game at exhaustion with its exact value as the return. A game that
            ``solve_nodes`` leaves open goes on, is tried again at its next turn, and is counted in
            :attr:`unsolved`.
        solve_nodes: Positions to look at for one game and turn, at most.

    Raises:
        ValueError: ``num_games`` is not a positive int, or another argument is bad.
    """

    def __init__(
        self,
        num_games: int,
        rules: Rules | str = "classic",
        seed: Seed = None,
        dealer: int | None = None,
        threads: int = 1,
        solve_endings: bool = False,
        solve_nodes: int | None = None,
    ) -> None:
        if isinstance(num_games, bool) or not isinstance(num_games, (int, np.integer)):
            raise ValueError(f"num_games must be an int, got {num_games!r}")
        if num_games < 1:
            raise ValueError(f"num_games must be at least 1, got {num_games}")
        self._set(np.zeros(int(num_games), STATE), as_rules(rules), _check_dealer(dealer))
        self._share_out(check_threads(threads))
        self.solve_endings(solve_endings, solve_nodes)
        rows = np.arange(num_games)
        kernels.seed_games(self.state, seeds_for(seed, rows))
        kernels.deal_games(self.state, self._table, self._dealer, rows)

    def _set(self, state: np.ndarray, rules: Rules, dealer: int = NOBODY) -> None:
        self.state = state
        self.rules = rules
        self._share_out(1)
        self._settler: Settler | None = None
        self._dealer = dealer
        self._table = rule_table(rules)
        self._all_rows = np.arange(len(state))

    def _share_out(self, threads: int) -> None:
        self.threads = threads
        self._passes = passes(self.state, self.rules, threads)

    @classmethod
    def from_state(cls, state: np.ndarray, rules: Rules | str) -> GameBatch:
        """Takes over a state array (B,) of dtype ``STATE`` without copying it.

        Raises:
            ValueError: The array is of another dtype or shape.
        """
        if not isinstance(state, np.ndarray) or state.dtype != STATE or state.ndim != 1:
            raise ValueError("state must be an array of dtype kernels.STATE and shape (B,)")
        batch = cls.__new__(cls)
        batch._set(state, as_rules(rules))
        return batch

    @classmethod
    def from_decks(
        cls,
        decks: Sequence[Iterable[Card]] | np.ndarray,
        rules: Rules | str = "classic",
        dealer: int = 1,
        seed: Seed = 0,
    ) -> GameBatch:
        """Deals every game from its own deck; equal decks are duplicate deals.

        Args:
            decks: (B, deck size) cards in the order of :meth:`Game.from_deck`.
            rules: A :class:`Rules` or its text.
            dealer: 0 or 1, in later deals too.
            seed: Seeds the games' own streams, as in the constructor.

        Raises:
            ValueError: A deck is not a permutation of the cards, or another argument is bad.
        """
        rules = as_rules(rules)
        if isinstance(decks, np.ndarray) and np.issubdtype(decks.dtype, np.integer):
            array = decks
            expected = np.arange(rules.deck_size)
            if array.ndim != 2 or array.shape[1:] != expected.shape:
                raise ValueError(f"decks must have shape (B, {rules.deck_size}), got {array.shape}")
            bad = np.flatnonzero((np.sort(array, axis=1) != expected).any(axis=1))
            if bad.size:
                _read_deck(array[bad[0]].tolist(), rules)  # raises, and names the card
            array = array.astype(np.uint8)
        else:
            array = np.array([_read_deck(deck, rules) for deck in decks], np.uint8)
        if len(array) == 0:
            raise ValueError("decks is empty")
        batch = cls.from_state(np.zeros(len(array), STATE), rules)
        batch._dealer = _check_dealer(dealer)
        if batch._dealer == NOBODY:
            raise ValueError("dealer must be 0 or 1, got None")
        kernels.seed_games(batch.state, seeds_for(seed, np.arange(len(array))))
        kernels.lay_out_games(batch.state, batch._table, array, batch._dealer)
        return batch

    def solve_endings(self, on: bool = True, nodes: int | None = None) -> None:
        """Switches ``solve_endings`` on or off from the next step on.

        Args:
            on: Whether games end at exhaustion with their exact value.
            nodes: ``solve_nodes``; the default if None.

        Raises:
            ValueError: ``on`` is no bool or ``nodes`` not a positive int.
        """
        if not isinstance(on, bool):
            raise ValueError(f"solve_endings must be a bool, got {on!r}")
        self._settler = None
        if on:
            from counterweight_env.settle import SOLVE_NODES, Settler

            self._settler = Settler(SOLVE_NODES if nodes is None else nodes)

    @property
    def unsolved(self) -> int:
        """How often the node limit of ``solve_endings`` has let a game go on."""
        return 0 if self._settler is None else self._settler.unsolved

    def __len__(self) -> int:
        return len(self.state)

    @property
    def num_games(self) -> int:
        """``B``, the number of games."""
        return len(self.state)

    def __getitem__(self, row: int) -> Game:
        """A copy of one game."""
        number = index(row)
        if not -len(self) <= number < len(self):
            raise IndexError(f"row {number} is out of range for {len(self)} games")
        state = self.state[number % len(self)].reshape(1).copy()
        return Game._of(state, self.rules, self._dealer)

    def copy(self) -> GameBatch:
        """An independent batch that goes on exactly as this one would."""
        twin = GameBatch.from_state(self.state.copy(), self.rules)
        twin._dealer = self._dealer
        twin._share_out(self.threads)
        if self._settler is not None:
            twin.solve_endings(True, self._settler.nodes)
        return twin

    __copy__ = copy

    # --- What there is to see -------------------------------------------------------------------

    @property
    def legal(self) -> np.ndarray:
        """(B, A) bool, True = legal; all False for a finished game."""
        out = np.empty((len(self), self.rules.num_actions), np.bool_)
        self._passes.unpack_legal(out)
        return out

    @property
    def to_move(self) -> np.ndarray:
        """(B,) int8, the player on turn; -1 for a finished game."""
        return self.state["to_move"].copy()

    @property
    def done(self) -> np.ndarray:
        """(B,) bool, whether the game is over (F2)."""
        return self.state["phase"] == kernels.OVER

    @property
    def phase(self) -> np.ndarray:
        """(B,) uint8, the number of the :class:`Phase`."""
        return self.state["phase"].copy()

    @property
    def turn(self) -> np.ndarray:
        """(B,) uint8, turns completed."""
        return self.state["turn"].copy()

    @property
    def exhausted(self) -> np.ndarray:
        """(B,) bool, whether the stock has run out (E1)."""
        return self.state["stock_size"] == 0

    @property
    def hands(self) -> np.ndarray:
        """(B, 2) uint64, each player's hand as a mask, bit = card."""
        return self.state["hand"].copy()

    @property
    def hand_counts(self) -> np.ndarray:
        """(B, 2) int64, cards in each player's hand."""
        return np.bitwise_count(self.state["hand"]).astype(np.int64)

    @property
    def returns(self) -> np.ndarray:
        """(B, 2) float32: +1 win, 0 draw, -1 loss for each player (F3); 0 while a game runs.

        A game that ended at exhaustion (``solve_endings``) counts as what perfect play makes of it.
        """
        out = np.empty((len(self), 2), np.float32)
        kernels.outcomes(self.state, out)
        return out

    @property
    def margins(self) -> np.ndarray:
        """(B, 2) float32: (opponent's cards - own cards) / deck size at the end; 0 before.

        NaN for a game that ended at exhaustion (``solve_endings``).
        """
        counts = self.hand_counts
        lead = np.where(self.done, counts[:, 1] - counts[:, 0], 0) / np.float32(
            self.rules.deck_size
        )
        lead[self.state["settled"] != 0] = np.nan
        return np.stack([lead, -lead], axis=1).astype(np.float32)

    def observe(
        self, out: np.ndarray | None = None, players: np.ndarray | int | None = None
    ) -> np.ndarray:
        """Encodes every game as ``observation_layout(rules)`` describes.

        Args:
            out: (B, K) int8 to write into; a new array if None.
            players: Whose side to take: one player, or one a row; the movers if None (player 0 for
                a finished game).

        Returns:
            (B, K) int8 of 0 and 1.

        Raises:
            ValueError: ``out`` or ``players`` has the wrong shape, dtype or values.
        """
        shape = (len(self), observation_size(self.rules))
        if out is None:
            out = np.empty(shape, np.int8)
        elif (
            not isinstance(out, np.ndarray)
            or out.shape != shape
            or out.dtype != np.int8
            or not out.flags.carray  # C-contiguous, aligned, writeable
        ):
            raise ValueError(
                f"out must be a writeable C-contiguous int8 array of shape {shape}, got "
                + (f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else repr(out))
            )
        if players is not None:
            players = self._check_players(players)
        self._passes.encode(MOVERS if players is None else players, out)
        return out

    def _check_players(self, players: np.ndarray | int) -> np.ndarray:
        array = np.asarray(players)
        if array.shape not in ((), (len(self),)):
            raise ValueError(f"players must have shape ({len(self)},), got {array.shape}")
        if not ((array == 0) | (array == 1)).all():
            raise ValueError(f"players must be 0 or 1, got {players!r}")
        return np.broadcast_to(array, (len(self),)).astype(np.int8)

    def views(
        self, players: np.ndarray | int | None = None, rows: np.ndarray | None = None
    ) -> ViewBatch:
        """What the players know, ready for ``Agent.act``: each row's mover by default.

        Draws one word from the agent stream of every game asked for; the deal is untouched.

        Args:
            players: One player, or one a game of the batch; the movers if None.
            rows: Indexes or a bool mask of the games wanted; all if None.

        Raises:
            ValueError: A game is over and has no mover, or an argument is bad.
        """
        picked = self._rows(rows)
        if players is None:
            sides = self.state["to_move"][picked]
            if (sides == NOBODY).any():
                row = picked[np.argmax(sides == NOBODY)]
                raise ValueError(f"game {row} is over and has no mover; pass rows= or players=")
        else:
            sides = self._check_players(players)[picked]
        return ViewBatch.of(self.rules, self.state, picked, sides)

    def random_bits(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Draws one fresh (n,) uint64 word from the agent stream of each of the given games."""
        picked = self._rows(rows)
        words = np.empty(picked.size, np.uint64)
        kernels.draw_words(self.state, picked, AGENT_STREAM, words)
        return words

    def _rows(self, rows: np.ndarray | Sequence[int] | None) -> np.ndarray:
        """Row indexes from indexes, a bool mask or None."""
        if rows is None:
            return self._all_rows
        array = np.asarray(rows)
        if array.dtype == np.bool_:
            if array.shape != (len(self),):
                raise ValueError(f"a row mask must have shape ({len(self)},), got {array.shape}")
            return np.flatnonzero(array)
        if array.size == 0:
            return np.empty(0, np.int64)
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"rows must be indexes or a bool mask, got {rows!r}")
        if array.min() < 0 or array.max() >= len(self):
            raise ValueError(f"rows must be from 0 to {len(self) - 1}, got {rows!r}")
        if np.unique(array).size != array.size:
            raise ValueError(f"rows must be distinct, got {rows!r}")
        return array.astype(np.int64, copy=False)

    # --- What there is to do --------------------------------------------------------------------

    def step(
        self, actions: np.ndarray | Sequence[int], rows: np.ndarray | Sequence[int] | None = None
    ) -> None:
        """Moves running games by one action each; finished games ignore theirs.

        Args:
            actions: (n,) ints, one for each game that moves.
            rows: (n,) distinct indexes, or a bool mask, of the games that move; all B if None.

        Raises:
            IllegalActionError: An action of a running game is illegal or no int. The message names
                the row, the player, the phase and the action; no game has moved.
            ValueError: ``rows`` is bad.
        """
        picked = self._rows(rows)
        array = np.asarray(actions)
        if array.dtype.kind != "i":  # also ints too large for int64
            self._check_actions(picked, actions, array.shape)
        self._step(picked, array)

    def _step(self, picked: np.ndarray, array: np.ndarray) -> None:
        if array.shape != picked.shape or array.dtype.kind not in "iu":
            self._check_actions(picked, array, array.shape)
        array = array.astype(np.int64, copy=False)
        bad = self._passes.step(picked, array)
        if bad >= 0:
            row = picked[bad]
            what = _describe_illegal(int(array[bad]), self.state[row], self.rules)
            raise IllegalActionError(f"row {row}: {what}")
        if self._settler is not None:
            self._settler.settle(self.state, self._table, picked)

    def _check_actions(self, rows: np.ndarray, actions: Any, shape: tuple[int, ...]) -> None:
        """Refuses actions that are no (n,) ints, and names the first that is none."""
        if shape != rows.shape:
            raise IllegalActionError(f"actions must have shape {rows.shape}, got {shape}")
        for row, action in zip(rows, actions, strict=True):
            number = action.item() if isinstance(action, np.generic) else action
            is_int = isinstance(number, int) and not isinstance(number, bool)
            if isinstance(action, np.integer) and self.state["phase"][row] == kernels.OVER:
                continue
            if not is_int or not 0 <= number < self.rules.num_actions:
                what = _describe_illegal(number, self.state[row], self.rules)
                raise IllegalActionError(f"row {row}: {what}")

    def random_actions(self, rows: np.ndarray | Sequence[int] | None = None) -> np.ndarray:
        """Draws one legal action evenly for each of the given games, from its agent stream.

        Args:
            rows: Indexes or a bool mask of the games; all if None.

        Returns:
            (n,) int64; 0 for a finished game.
        """
        picked = self._rows(rows)
        actions = np.empty(picked.size, np.int64)
        self._passes.draw_actions(picked, actions)
        return actions

    def reset(self, rows: np.ndarray | Sequence[int] | None = None, seed: Seed = None) -> None:
        """Deals new games in the given rows (indexes or a bool mask; all if None).

        Args:
            rows: Which games; the others stay as they are.
            seed: As in the constructor (an int seeds row i with ``seed + i``); None goes on with
                each game's own stream.

        Raises:
            ValueError: ``rows`` or ``seed`` is bad; nothing has been dealt.
        """
        picked = self._rows(rows)
        if seed is not None:
            fresh = self.state[picked]
            kernels.seed_games(fresh, seeds_for(seed, picked))
            self.state[picked] = fresh
        self._passes.deal(picked, self._dealer)

    def reset_done(self) -> np.ndarray:
        """Deals anew wherever a game is over, each from its own stream.

        Returns:
            (n,) int64, the rows of these games, ascending.
        """
        return self._passes.deal_finished(self._dealer)


class Game:
    """One game.

    Args:
        rules: A :class:`Rules` or its text.
        seed: An int from 0 to 2**64 - 1, or None for entropy. Equal seeds deal equal games
            anywhere.
        dealer: 0, 1, or None for a lot drawn from the seed (S1). The dealer's opponent moves first.

    Raises:
        ValueError: An argument is bad.
    """

    __slots__ = ("_dealer", "_legal", "_record", "_state", "_table", "rules")

    def __init__(
        self, rules: Rules | str = "classic", seed: int | None = None, dealer: int | None = None
    ) -> None:
        seeds = None if seed is None else _check_seed(seed)
        state = GameBatch(1, rules, seeds, dealer).state
        self._set(state, as_rules(rules), _check_dealer(dealer))

    def _set(self, state: np.ndarray, rules: Rules, dealer: int = NOBODY) -> None:
        self.rules = rules
        self._dealer = dealer
        self._state = state
        self._record = state[0]
        self._table = rule_table(rules)
        self._legal = int(self._record["legal"])

    @classmethod
    def _of(cls, state: np.ndarray, rules: Rules, dealer: int = NOBODY) -> Game:
        game = cls.__new__(cls)
        game._set(state, rules, dealer)
        return game

    @classmethod
    def from_deck(
        cls, deck: Iterable[Card], rules: Rules | str = "classic", dealer: int = 1, seed: int = 0
    ) -> Game:
        """Deals a given deck.

        Args:
            deck: All cards, as indexes or text, for hand size h: ``deck[0:h]`` to player 0,
                ``deck[h:2h]`` to player 1, then left, right, then the stock, next card first.
            rules: A :class:`Rules` or its text.
            dealer: 0 or 1, of this deal; a later :meth:`reset` draws by lot.
            seed: Seeds the game's own streams (which a given deck does not use).

        Raises:
            ValueError: A card is unknown, doubled or missing, or another argument is bad.
        """
        rules = as_rules(rules)
        batch = GameBatch.from_decks([list(deck)], rules, dealer, [_check_seed(seed)])
        return cls._of(batch.state, rules)

    @classmethod
    def from_position(
        cls,
        hands: Sequence[Iterable[Card]],
        table: Sequence[Card],
        stock: Iterable[Card] = (),
        discards: Sequence[Iterable[Card]] = ((), ()),
        buried: Iterable[Card] | None = None,
        to_move: int = 0,
        rules: Rules | str = "classic",
    ) -> Game:
        """Sets up the start of a turn. A position has no past: nothing is known of any hand.

        Args:
            hands: The two hands.
            table: The left and the right table card.
            stock: The next card first; empty = exhausted.
            discards: The two temporary discards, bottom first.
            buried: Cards out of play; None = all cards that are named nowhere else.
            to_move: The player whose turn begins. If they are blocked after exhaustion, F1 applies.
            rules: A :class:`Rules` or its text.

        Raises:
            ValueError: A card is unknown, doubled or lost, or no game reaches these sizes.
        """
        rules = as_rules(rules)
        to_move = _check_player(to_move, "to_move")
        state = build_record(rules, hands, table, stock, discards, buried)
        record = state[0]
        check_sizes(rules, record, to_move)
        record["dealer"] = 1 - to_move
        kernels.seed_games(state, np.zeros(1, np.uint64))
        if int(record["stock_size"]) == 0:
            record["known"] = record["hand"]
        if 0 in record["hand"]:
            kernels.finish(record)
        else:
            kernels.begin_turn(record, rule_table(rules)[0], to_move)
        return cls._of(state, rules)

    # --- What there is to see -------------------------------------------------------------------

    @property
    def to_move(self) -> int:
        """The player on turn, 0 or 1; -1 when the game is over."""
        return int(self._record["to_move"])

    @property
    def phase(self) -> Phase:
        """What the player on turn decides."""
        return Phase(int(self._record["phase"]))

    @property
    def done(self) -> bool:
        """Whether the game is over (F2)."""
        return int(self._record["phase"]) == kernels.OVER

    @property
    def returns(self) -> tuple[float, float]:
        """+1 win, 0 draw, -1 loss for each player (F3); zeros while the game runs."""
        first = float(kernels.outcome(self._record))
        return first, 0.0 - first

    @property
    def settled(self) -> bool:
        """Whether the game was ended at exhaustion with its exact value (``solve_endings``)."""
        return bool(self._record["settled"])

    @property
    def margin(self) -> tuple[float, float]:
        """(Opponent's cards - own cards) / deck size at the end, for each player; zeros before.

        NaN if the game was ended at exhaustion (``solve_endings``).
        """
        if not self.done:
            return 0.0, 0.0
        if self._record["settled"]:
            return float("nan"), float("nan")
        mine, theirs = (int(mask).bit_count() for mask in self._record["hand"])
        lead = (theirs - mine) / self.rules.deck_size
        return lead, 0.0 - lead

    @property
    def table(self) -> tuple[int, int]:
        """The left and the right table card."""
        left, right = self._record["table"]
        return int(left), int(right)

    @property
    def stock_size(self) -> int:
        """Cards in the stock."""
        return int(self._record["stock_size"])

    @property
    def stock(self) -> tuple[int, ...]:
        """The stock, next card first. Players do not see it."""
        return tuple(int(card) for card in self._record["stock"][: self.stock_size][::-1])

    @property
    def exhausted(self) -> bool:
        """Whether the stock has run out (E1)."""
        return self.stock_size == 0

    @property
    def chosen(self) -> int | None:
        """The card picked for the left table card, in phase RIGHT."""
        card = int(self._record["chosen"])
        return None if card == NO_CARD else card

    @property
    def buried(self) -> tuple[int, ...]:
        """Cards under the table cards or laid out of play, sorted."""
        return cards_of(self._record["buried"])

    @property
    def dealer(self) -> int:
        """The dealer, whose opponent moved first (S3)."""
        return int(self._record["dealer"])

    @property
    def turn(self) -> int:
        """Turns completed."""
        return int(self._record["turn"])

    def hand(self, player: int) -> tuple[int, ...]:
        """A player's hand, sorted; a card picked for the left is still in it."""
        return cards_of(self._record["hand"][_check_player(player)])

    def known(self, player: int) -> tuple[int, ...]:
        """The part of a player's hand that the other player knows, sorted."""
        return cards_of(self._record["known"][_check_player(player)])

    def discard(self, player: int) -> tuple[int, ...]:
        """A player's temporary discard, bottom first."""
        size = int(self._record["discard_size"][_check_player(player)])
        return tuple(int(card) for card in self._record["discard"][player, :size])

    def legal_actions(self) -> list[int]:
        """The legal actions, ascending; empty when the game is over."""
        mask = self._legal
        actions = []
        while mask:
            low = mask & -mask
            actions.append(low.bit_length() - 1)
            mask ^= low
        return actions

    def legal_mask(self) -> np.ndarray:
        """(A,) bool, True = legal."""
        out = np.empty((1, self.rules.num_actions), np.bool_)
        kernels.unpack_legal(self._table, self._state, out)
        return out[0]

    def observe(self, player: int) -> np.ndarray:
        """(K,) int8 of 0 and 1, the game from one player's side."""
        out = np.empty((1, observation_size(self.rules)), np.int8)
        return encode_batch(
            self._state, self.rules, np.array([_check_player(player)], np.int8), out
        )[0]

    def view(self, player: int) -> View:
        """What one player knows."""
        return View.of(self.rules, self._state, _check_player(player))

    def __str__(self) -> str:
        from counterweight_env.render import game_text

        return game_text(self)

    def _repr_svg_(self) -> str:
        """The table with all cards open, as notebooks show it."""
        from counterweight_env.picture import table_picture
        from counterweight_env.svg import svg_text

        return svg_text(table_picture(self))

    def __repr__(self) -> str:
        return f"<Game {self.rules}, turn {self.turn}, {self.phase.name}, to_move {self.to_move}>"

    # --- What there is to do --------------------------------------------------------------------

    def step(self, action: int) -> None:
        """Carries out one action of the player on turn.

        Raises:
            IllegalActionError: The action is illegal, no int, or the game is over; nothing changed.
        """
        try:
            number = -1 if action is True or action is False else index(action)
            legal = kernels.step_one(self._state, self._table, number)
        except (TypeError, OverflowError):
            legal = -1
        if legal < 0:
            raise IllegalActionError(_describe_illegal(action, self._record, self.rules))
        self._legal = int(legal)

    def reset(self, seed: int | None = None) -> None:
        """Deals a new game: from ``seed``, or from the game's own stream if it is None.

        Raises:
            ValueError: ``seed`` is bad.
        """
        rows = np.zeros(1, np.int64)
        if seed is not None:
            kernels.seed_games(self._state, np.array([_check_seed(seed)], np.uint64))
        kernels.deal_games(self._state, self._table, self._dealer, rows)
        self._legal = int(self._record["legal"])

    def copy(self) -> Game:
        """An independent game that goes on exactly as this one would."""
        return Game._of(self._state.copy(), self.rules, self._dealer)

    def __copy__(self) -> Game:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Game:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return Game._of, (self._state, self.rules, self._dealer)

    def __eq__(self, other: object) -> bool:
        """Whether both games are the same position with the same past and the same future."""
        if not isinstance(other, Game):
            return NotImplemented
        return self.rules == other.rules and bool((self._state == other._state).all())

    __hash__ = None  # type: ignore[assignment]

    # --- Text -----------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The whole game, hidden cards and random streams included, as one line of JSON."""
        rules = self.rules
        record = self._record

        def names(cards: Iterable[int]) -> list[str]:
            return [card_name(card, rules) for card in cards]

        def name_or_none(card: int) -> str | None:
            return None if card == NO_CARD else card_name(card, rules)

        return json.dumps(
            {
                "rules": str(rules),
                "hands": [names(self.hand(player)) for player in (0, 1)],
                "table": names(self.table),
                "stock": names(self.stock),
                "discards": [names(self.discard(player)) for player in (0, 1)],
                "buried": names(self.buried),
                "dealer": self.dealer,
                "fixed_dealer": None if self._dealer == NOBODY else self._dealer,
                "turn": self.turn,
                "to_move": self.to_move,
                "phase": self.phase.name,
                "chosen": name_or_none(int(record["chosen"])),
                "refills": int(record["refills"]),
                "settled": int(record["settled"]) - 2 if record["settled"] else None,
                "known": [names(self.known(player)) for player in (0, 1)],
                "drawn_since_blocked": [name_or_none(int(card)) for card in record["fresh"]],
                "rng": [f"{int(word):016x}" for word in record["rng"]],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Game:
        """Reads what :meth:`to_json` writes.

        Raises:
            ValueError: The text is no JSON object of this form, or holds an impossible game. The
                message names the field.
        """
        return cls._of(*_read_game(text))


_FIELDS = frozenset(
    [
        "rules",
        "hands",
        "table",
        "stock",
        "discards",
        "buried",
        "dealer",
        "fixed_dealer",
        "turn",
        "to_move",
        "phase",
        "chosen",
        "refills",
        "settled",
        "known",
        "drawn_since_blocked",
        "rng",
    ]
)


def _read_game(text: str) -> tuple[np.ndarray, Rules, int]:
    """The state array (1,), the rules and the fixed dealer of a game's JSON."""
    try:
        data = json.loads(text)
    except (TypeError, RecursionError, json.JSONDecodeError) as error:
        raise ValueError(f"not the JSON of a game: {error}") from None
    if not isinstance(data, dict) or set(data) != _FIELDS:
        wrong = sorted(_FIELDS ^ set(data)) if isinstance(data, dict) else type(data).__name__
        raise ValueError(f"not the JSON of a game: fields missing or unknown: {wrong}")
    for name in ("known", "drawn_since_blocked", "rng"):
        if not isinstance(data[name], list) or len(data[name]) != 2:
            raise ValueError(f"{name} must have 2 entries, got {data[name]!r}")
    if data["buried"] is None:
        raise ValueError("buried must be a list of cards, got None")
    try:
        fixed_dealer = _check_dealer(data["fixed_dealer"])
        rules = as_rules(data["rules"])
        state = build_record(
            rules, data["hands"], data["table"], data["stock"], data["discards"], data["buried"]
        )
        record = state[0]
        phase = Phase[data["phase"]]
        to_move = index(data["to_move"])
        record["dealer"] = _check_player(data["dealer"], "dealer")
        record["turn"] = index(data["turn"])
        record["refills"] = index(data["refills"])
        if data["settled"] is not None:
            record["settled"] = (-1, 0, 1).index(data["settled"]) + 1
        for player in range(2):
            known = mask_of(as_card(card, rules) for card in data["known"][player])
            drawn = data["drawn_since_blocked"][player]
            record["known"][player] = known
            if drawn is not None:
                record["fresh"][player] = as_card(drawn, rules)
            record["rng"][player] = int(data["rng"][player], 16)
        if data["chosen"] is not None:
            record["chosen"] = as_card(data["chosen"], rules)
    except (KeyError, IndexError, TypeError, OverflowError, AttributeError) as error:
        raise ValueError(f"not the JSON of a game: {error!r}") from None
    _check_course(rules, record, phase, to_move)
    return state, rules, fixed_dealer


def _check_course(rules: Rules, record: np.ndarray, phase: Phase, to_move: int) -> None:
    """Puts the player of a read record on turn and refuses what contradicts its cards."""
    table = rule_table(rules)[0]
    for player in range(2):
        hand, known = int(record["hand"][player]), int(record["known"][player])
        fresh = int(record["fresh"][player])
        if known & ~hand or (int(record["stock_size"]) == 0 and known != hand):
            raise ValueError(f"known does not fit the hand of player {player}")
        if fresh != NO_CARD:
            pile = int(record["discard_size"][player])
            if not (hand >> fresh) & 1 or (known >> fresh) & 1 or pile == 0:
                raise ValueError(f"drawn_since_blocked does not fit the hand of player {player}")
            then = hand & ~(1 << fresh) | 1 << int(record["discard"][player, pile - 1])
            if kernels.left_cards(table, np.uint64(then), *record["table"]):
                raise ValueError(f"drawn_since_blocked: player {player} was not blocked")
    if phase != Phase.OVER and record["settled"]:
        raise ValueError(f"settled must be null in phase {phase.name}")
    if phase != Phase.RIGHT and int(record["chosen"]) != NO_CARD:
        raise ValueError(f"chosen must be null in phase {phase.name}")
    if phase == Phase.OVER:
        check_sizes(rules, record, 0 if to_move == NOBODY else 1)
        if to_move != NOBODY:
            raise ValueError(f"to_move must be -1 in phase OVER, got {to_move}")
        if record["settled"]:
            if int(record["stock_size"]):
                raise ValueError("settled, but the stock has not run out")
        elif 0 not in record["hand"]:
            kernels.begin_turn(record, table, 0)
            if int(record["phase"]) != kernels.OVER or int(record["stock_size"]):
                raise ValueError("phase OVER, but a player can move")
        kernels.finish(record)
    elif phase == Phase.REFILL:
        _check_player(to_move, "to_move")
        counts = [int(mask).bit_count() for mask in record["hand"]]
        full = [rules.hand_size, rules.hand_size]
        full[to_move] -= int(record["refills"])
        fits = rules.variant == "classic" and int(record["refills"]) in (1, 2) and counts == full
        if not fits or not record["discard_size"][to_move] or not record["stock_size"]:
            raise ValueError("phase REFILL does not fit the cards")
        record["to_move"] = to_move
        record["phase"] = kernels.REFILL
        record["legal"] = 3 << rules.deck_size
        return
    else:
        _check_player(to_move, "to_move")
        check_sizes(rules, record, to_move)
        if 0 in record["hand"]:
            raise ValueError(f"phase {phase.name}, but a hand is empty")
        chosen = int(record["chosen"])
        kernels.begin_turn(record, table, to_move)
        if phase == Phase.RIGHT:
            if int(record["phase"]) != kernels.LEFT or not (int(record["legal"]) >> chosen) & 1:
                raise ValueError("chosen is no card that a couple can begin with")
            kernels.apply(record, table, chosen)
        if int(record["phase"]) != phase or int(record["to_move"]) != to_move:
            raise ValueError(f"phase {phase.name} of player {to_move} does not fit the cards")
    if int(record["refills"]):
        raise ValueError(f"refills must be 0 in phase {phase.name}")
