"""What one player may know, and full games drawn from it.

A view holds a copy of a game's record in which everything its player does not know has been erased.
Whatever is computed from a view (observation, mask, text, sampled games) is computed from that
record, so nothing hidden can reach it.
"""

from __future__ import annotations

from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Final

import numpy as np

from counterweight_env.cards import cards_of, rule_table
from counterweight_env.kernels import (
    AGENT_STREAM,
    DEAL_STREAM,
    NO_CARD,
    NOBODY,
    ONE,
    OVER,
    REFILL,
    STATE,
    WAIT,
    ZERO,
    begin_turn,
    bit,
    count_bits,
    kernel,
    left_cards,
    lowest_bit,
    next_word,
    outcome,
    random_below,
    seed_streams,
    unpack_legal,
)
from counterweight_env.observation import (
    UNSEEN,
    encode_batch,
    observation_size,
    opponent_hand_size,
)
from counterweight_env.phase import Phase
from counterweight_env.rules import Rules

if TYPE_CHECKING:
    from counterweight_env.game import GameBatch

__all__ = ["View", "ViewBatch"]


@kernel
def redact(game, table, player):
    """Erases from a record all that `player` does not know."""
    opponent = 1 - player
    game["hand"][opponent] = game["known"][opponent]
    game["rng"][0] = ZERO
    game["rng"][1] = ZERO
    for i in range(game["stock"].size):
        game["stock"][i] = 0
    if game["fresh"][opponent] != NO_CARD:
        game["fresh"][opponent] = UNSEEN
    if not table["open_discards"]:
        game["discarded"][opponent] = ZERO
    for owner in range(2):
        visible = np.int64(game["discard_size"][owner])
        if owner == opponent and not table["open_discards"]:
            visible = np.int64(0)
        for i in range(visible, game["discard"].shape[1]):
            game["discard"][owner, i] = 0
    if game["to_move"] != player and game["phase"] != OVER:
        # Before the opponent acts, neither whether they are blocked nor a half-made couple shows.
        game["phase"] = WAIT
        game["legal"] = ZERO
        game["chosen"] = NO_CARD


@kernel
def gather_views(games, tables, rows, players, records, words):
    """Copies the records of some games and redacts each copy for its own player.

    Unless `words` is empty, it takes one word from the agent stream of each game.
    """
    for i in range(rows.size):
        if words.size:
            words[i] = next_word(games[rows[i]]["rng"], AGENT_STREAM)
        records[i] = games[rows[i]]
        redact(records[i], tables[0], np.int64(players[i]))


@kernel
def complete(game, table, player, pool):
    """Fills a redacted record in place with hidden cards drawn evenly from all that agree with it.

    The unseen cards are dealt to the places that `player` cannot see. If the opponent was blocked
    on the table as it lies now, deals in which they were not are thrown away and drawn again, which
    leaves the rest evenly drawn. `pool` is scratch space of one entry a card. The record's own
    streams are the source of chance.
    """
    opponent = 1 - player
    open_discards = table["open_discards"]
    seen = game["hand"][0] | game["hand"][1] | game["buried"]
    seen |= bit(game["table"][0]) | bit(game["table"][1])
    seen |= game["discarded"][0] | game["discarded"][1]
    everything = (ONE << np.uint64(table["deck_size"])) - ONE
    unseen = everything & ~seen
    size = 0
    while unseen:
        pool[size] = lowest_bit(unseen)
        unseen &= unseen - ONE
        size += 1

    known = game["known"][opponent]
    drawn = opponent_hand_size(game, table, player) - count_bits(known)
    pile = 0 if open_discards else np.int64(game["discard_size"][opponent])
    was_blocked = game["fresh"][opponent] != NO_CARD
    left = game["table"][0]
    right = game["table"][1]
    hand = known
    agrees = False
    while not agrees:
        for i in range(min(drawn + pile, size - 1)):
            j = i + random_below(game["rng"], DEAL_STREAM, size - i)
            swapped = pool[i]
            pool[i] = pool[j]
            pool[j] = swapped
        hand = known
        for i in range(drawn):
            hand |= bit(pool[i])
        agrees = True
        if was_blocked:  # pool[0] is the card drawn since
            top = np.int64(game["discard_size"][opponent]) - 1
            laid = np.int64(game["discard"][opponent, top])
            if not open_discards:
                laid = np.int64(pool[drawn + pile - 1])
            then = (hand & ~bit(pool[0])) | bit(laid)
            agrees = left_cards(table, then, left, right) == ZERO
    game["hand"][opponent] = hand
    if was_blocked:
        game["fresh"][opponent] = pool[0]
    for i in range(pile):
        game["discard"][opponent, i] = pool[drawn + i]
        game["discarded"][opponent] |= bit(pool[drawn + i])
    first = drawn + pile
    for i in range(first, size):
        j = i + random_below(game["rng"], DEAL_STREAM, size - i)
        swapped = pool[i]
        pool[i] = pool[j]
        pool[j] = swapped
        game["stock"][i - first] = pool[i]
    if game["phase"] == WAIT:
        if game["refills"] > 0:
            game["phase"] = REFILL
            game["legal"] = np.uint64(3) << np.uint64(table["deck_size"])
        else:
            begin_turn(game, table, np.int64(game["to_move"]))


@kernel
def determinize_games(games, tables, players, words, worlds, out):
    """Writes `worlds` completions of every redacted record, each with its own streams."""
    pool = np.empty(tables[0]["deck_size"], np.uint8)
    stream = np.empty(1, np.uint64)
    for i in range(games.size):
        stream[0] = words[i]
        for k in range(worlds):
            world = i * worlds + k
            out[world] = games[i]
            seed_streams(out[world], next_word(stream, 0))
            complete(out[world], tables[0], np.int64(players[i]), pool)


class ViewBatch:
    """What the player of each row knows: the argument of ``Agent.act``.

    Attributes:
        rules: The rules of all rows.
        records: (B,) structured array of dtype ``STATE`` with all hidden things erased: the
            opponent's hand is what is known of it, the stock is a size, the random streams are
            zero.
        players: (B,) int8, whose view each row is.
        random_bits: (B,) uint64, the only source of chance an agent has: one fresh word a decision
            from that game's own stream, which is not the stream that deals.
    """

    def __init__(
        self, rules: Rules, records: np.ndarray, players: np.ndarray, random_bits: np.ndarray
    ) -> None:
        self.rules = rules
        self.records = records
        self.players = players
        self.random_bits = random_bits

    @classmethod
    def of(
        cls,
        rules: Rules,
        games: np.ndarray,
        rows: np.ndarray,
        players: np.ndarray,
    ) -> ViewBatch:
        """Views of some rows of a state array, for the given (n,) int8 players.

        Draws one word from the agent stream of each game.
        """
        records = np.empty(rows.size, STATE)
        words = np.empty(rows.size, np.uint64)
        gather_views(games, rule_table(rules), rows, players, records, words)
        return cls(rules, records, players, words)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, row: int) -> View:
        """The view of one row, as a copy."""
        number = index(row)
        if not -len(self) <= number < len(self):
            raise IndexError(f"row {number} is out of range for {len(self)} views")
        number %= len(self)
        return View(self.rules, self.records[[number]], int(self.players[number]))

    def take(self, rows: np.ndarray) -> ViewBatch:
        """The views of some rows (indexes or a bool mask), as a batch of its own."""
        return ViewBatch(self.rules, self.records[rows], self.players[rows], self.random_bits[rows])

    @cached_property
    def observation(self) -> np.ndarray:
        """(B, K) int8 of 0 and 1, each from its own player's side."""
        out = np.empty((len(self), observation_size(self.rules)), np.int8)
        return encode_batch(self.records, self.rules, self.players, out)

    @cached_property
    def legal(self) -> np.ndarray:
        """(B, A) bool, True = legal; all False for a player who is not on turn."""
        out = np.empty((len(self), self.rules.num_actions), np.bool_)
        unpack_legal(rule_table(self.rules), self.records, out)
        return out

    def determinize(self, n: int = 1, random_bits: np.ndarray | None = None) -> GameBatch:
        """Draws full games evenly from those that agree with all each player knows.

        Known are: the cards seen, the cards known to be in the opponent's hand, and that the
        opponent was blocked where their last discard faced the table as it lies now.

        Args:
            n: Games a row.
            random_bits: (B,) uint64 to draw with; ``self.random_bits`` if None. World k of a row
                depends on its word and k alone, not on ``n`` or the other rows.

        Returns:
            A batch of B * n games; those of row i are ``i * n`` to ``i * n + n - 1``.

        Raises:
            ValueError: ``n`` is not a positive int, or ``random_bits`` is no (B,) uint64.
        """
        from counterweight_env.game import GameBatch

        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise ValueError(f"n must be a positive int, got {n!r}")
        words = self.random_bits if random_bits is None else np.asarray(random_bits)
        if words.shape != (len(self),) or words.dtype != np.uint64:
            raise ValueError(
                f"random_bits must be uint64 of shape ({len(self)},), "
                f"got {words.dtype} of shape {words.shape}"
            )
        out = np.empty(len(self) * int(n), STATE)
        determinize_games(self.records, rule_table(self.rules), self.players, words, int(n), out)
        return GameBatch.from_state(out, self.rules)


NO_WORDS: Final = np.empty(0, np.uint64)


class View:
    """What one player knows of one game; tuples of cards are sorted unless said."""

    def __init__(self, rules: Rules, record: np.ndarray, player: int) -> None:
        self.rules = rules
        self.player = player
        self._batch = ViewBatch(rules, record, np.array([player], np.int8), np.zeros(1, np.uint64))
        self._game = record[0]

    @classmethod
    def of(cls, rules: Rules, game: np.ndarray, player: int) -> View:
        """The view of a state array (1,), which is left as it is."""
        record = np.empty(1, STATE)
        sides = np.array([player], np.int8)
        gather_views(game, rule_table(rules), np.zeros(1, np.int64), sides, record, NO_WORDS)
        return cls(rules, record, player)

    def _pile(self, player: int) -> tuple[int, ...]:
        size = int(self._game["discard_size"][player])
        return tuple(int(card) for card in self._game["discard"][player][:size])

    @property
    def hand(self) -> tuple[int, ...]:
        """The player's own hand."""
        return cards_of(self._game["hand"][self.player])

    @property
    def table(self) -> tuple[int, int]:
        """The left and the right table card."""
        left, right = self._game["table"]
        return int(left), int(right)

    @property
    def buried(self) -> tuple[int, ...]:
        """Cards under the table cards or laid out of play."""
        return cards_of(self._game["buried"])

    @property
    def own_discard(self) -> tuple[int, ...]:
        """The player's own discard, bottom first."""
        return self._pile(self.player)

    @property
    def opponent_discard(self) -> tuple[int, ...]:
        """The opponent's discard, bottom first; empty if discards are closed."""
        return self._pile(1 - self.player) if self.rules.open_discards else ()

    @property
    def opponent_discard_size(self) -> int:
        """Cards in the opponent's discard."""
        return int(self._game["discard_size"][1 - self.player])

    @property
    def known_in_opponent_hand(self) -> tuple[int, ...]:
        """Reclaimed from an open discard, or (after exhaustion) all of the hand (E3)."""
        return cards_of(self._game["known"][1 - self.player])

    @property
    def unseen(self) -> tuple[int, ...]:
        """Cards whose place the player does not know."""
        seen = set(self.hand) | set(self.table) | set(self.buried) | set(self.own_discard)
        seen |= set(self.opponent_discard) | set(self.known_in_opponent_hand)
        return tuple(card for card in range(self.rules.deck_size) if card not in seen)

    @property
    def stock_size(self) -> int:
        """Cards in the stock."""
        return int(self._game["stock_size"])

    @property
    def exhausted(self) -> bool:
        """Whether the stock has run out (E1)."""
        return self.stock_size == 0

    @property
    def opponent_hand_size(self) -> int:
        """Cards in the opponent's hand."""
        return int(opponent_hand_size(self._game, rule_table(self.rules)[0], self.player))

    @property
    def phase(self) -> Phase:
        """The phase of the player's decision; ``Phase.WAIT`` when the opponent is on turn."""
        return Phase(int(self._game["phase"]))

    @property
    def to_move(self) -> int:
        """The player on turn, -1 when the game is over."""
        return int(self._game["to_move"])

    @property
    def dealer(self) -> int:
        """The dealer, whose opponent moved first (S3)."""
        return int(self._game["dealer"])

    @property
    def turn(self) -> int:
        """Turns completed."""
        return int(self._game["turn"])

    @property
    def chosen(self) -> int | None:
        """The card this player has picked for the left table card, in phase RIGHT."""
        card = int(self._game["chosen"])
        return None if card == NO_CARD else card

    @property
    def second_refill(self) -> bool:
        """Whether this player decides on the second of two refill cards."""
        return self.phase == Phase.REFILL and int(self._game["refills"]) == 1

    @property
    def opponent_blocked(self) -> bool:
        """Whether the opponent's last discard faced the table as it lies now."""
        return int(self._game["fresh"][1 - self.player]) != NO_CARD

    @property
    def done(self) -> bool:
        """Whether the game is over."""
        return self.to_move == NOBODY

    @property
    def returns(self) -> tuple[float, float]:
        """+1 win, 0 draw, -1 loss for each player (F3); zeros while the game runs."""
        first = float(outcome(self._game))
        return first, 0.0 - first

    @property
    def settled(self) -> bool:
        """Whether the game was ended at exhaustion with its exact value (``solve_endings``)."""
        return bool(self._game["settled"])

    @property
    def legal_mask(self) -> np.ndarray:
        """(A,) bool, True = legal; all False when the player is not on turn."""
        return self._batch.legal[0].copy()

    @property
    def observation(self) -> np.ndarray:
        """(K,) int8 of 0 and 1 from this player's side."""
        return self._batch.observation[0].copy()

    def _repr_svg_(self) -> str:
        """The table as this player sees it, as notebooks show it."""
        from counterweight_env.picture import table_picture
        from counterweight_env.svg import svg_text

        return svg_text(table_picture(self))

    def determinize(self, rng: np.random.Generator, n: int = 1) -> GameBatch:
        """Draws ``n`` full games evenly from those that agree with all this player knows.

        Args:
            rng: The generator to draw with; it is advanced by one word.
            n: How many games.

        Raises:
            TypeError: ``rng`` is not a ``numpy.random.Generator``.
            ValueError: ``n`` is not a positive int.
        """
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {rng!r}")
        words = rng.integers(2**64, dtype=np.uint64, size=1)
        return self._batch.determinize(n, words)
