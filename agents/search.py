"""Determinised search: every action is tried in many full games that agree with what is known.

For each decision before exhaustion, hidden cards are drawn evenly from all that agree with the view
(``determinize``), or enumerated where the stock is so small that there are few orders of it. Each
action is carried out in each of these worlds, and the game goes on at random to exhaustion, where
:mod:`agents.leaf` says what it is worth. The action with the best mean is played (Ginsberg, 2001,
calls this perfect-information Monte Carlo; here rollouts stop at perfect information instead of
assuming it from the start). All actions share a world and its random numbers, so their differences
are less noisy than their means, and actions that are behind by more than chance explains are
dropped early.

A search may be guided by a network: its log-probability of each action, times a weight, is added to
the action's mean.

A search reads the view and its random bits and nothing else.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

import numpy as np

from agents.baselines import apart
from agents.exact import Exact
from agents.leaf import FEATURES, leaf_value, weights_for
from agents.moves import WIDTH, list_moves
from agents.policy import PRETRAINED, load_network, score_rows
from counterweight_env.cards import rule_table
from counterweight_env.endgame import Workspace, forget
from counterweight_env.kernels import (
    AGENT_STREAM,
    DISCARD,
    LEFT,
    NO_CARD,
    ONE,
    OVER,
    REFILL,
    STATE,
    ZERO,
    apply,
    bit,
    count_bits,
    kernel,
    left_cards,
    lowest_bit,
    mix_bits,
    next_word,
    nth_bit,
    outcome,
    random_below,
    right_cards,
    seed_streams,
)
from counterweight_env.observation import opponent_hand_size
from counterweight_env.rules import Rules
from counterweight_env.settle import TABLE_SIZE
from counterweight_env.view import ViewBatch, complete

__all__ = ["Champion", "FlatMonteCarlo", "Pimc"]

#: Two cards of fifty-two, either way round.
MAX_CANDIDATES: Final = 52 * 51
#: Worlds between two looks at which actions have fallen behind.
ROUND: Final = 16
#: An action is dropped when it is behind by this many standard errors of the difference.
BEHIND: Final = 2.5
LEAST_VARIANCE: Final = 0.05
MOST_WORLDS: Final = 2**31 - 1
#: Worlds that tell how long one takes.
PILOT: Final = 32
#: Worlds and leaf nodes of the champion, by rule set: what pays, see docs/agents.md.
CHAMPION: Final = {"classic": (512, 30), "exchange": (512, 30)}
#: Weight of the champion's network, and the least stock with which it is asked; in exchange none
#: was of use.
CHAMPION_PRIOR: Final = {"classic": (0.3, 17), "exchange": (0.0, 1)}

TO_THE_END: Final = 0  # rollouts by even chance to the very end
TO_EXHAUSTION: Final = 1  # rollouts to exhaustion, then a leaf value


#: Networks for perfect endings, by rule set.
GUIDES: Final = {"classic": PRETRAINED / "classic-exact.npz"}


class Prior(NamedTuple):
    """A network that guides a search before exhaustion.

    Attributes:
        packed: The scorer of openings, a row of :meth:`agents.policy.Network.packed`.
        hidden: The width of its hidden layers.
        weight: What a log-probability lower by 1 takes from an action's mean; 0 for no network.
        least: The least stock with which it is asked, at least 1.
    """

    packed: np.ndarray
    hidden: int
    weight: float
    least: int


NO_PRIOR: Final = Prior(np.empty(0, np.float32), 0, 0.0, 1)


# --- One rollout --------------------------------------------------------------------------------


@kernel
def roll_out(game, table, kind, memory, nodes, weights, scratch):
    """Plays a game on at random; returns what it comes to for player 0, from -1 to 1.

    To exhaustion, refills come from the stock and discards are kept apart, as
    :class:`agents.baselines.Patient` does; the rest is evenly drawn.
    """
    stream = np.empty(1, np.uint64)
    stream[0] = next_word(game["rng"], AGENT_STREAM)
    keep_apart = kind == TO_EXHAUSTION and table["exchange"]
    while game["phase"] != OVER and (kind == TO_THE_END or game["stock_size"] > 0):
        cards = game["legal"]
        if keep_apart and game["phase"] == DISCARD:
            cards = apart(game, table, np.int64(game["to_move"]))
        if kind == TO_EXHAUSTION and game["phase"] == REFILL:
            cards = bit(table["deck_size"])  # STOCK
        apply(game, table, nth_bit(cards, random_below(stream, 0, count_bits(cards))))
    if kind == TO_THE_END:
        return float(outcome(game))
    return leaf_value(memory, table, game, nodes, weights, scratch)


# --- Worlds -------------------------------------------------------------------------------------


@kernel
def count_orders(game, table, player):
    """How many orders the stock can have, or 0 if more hides than the stock and one hand."""
    opponent = 1 - player
    if not table["open_discards"] and game["discard_size"][opponent] > 0:
        return 0
    stock = np.int64(game["stock_size"])
    hidden = stock + opponent_hand_size(game, table, player) - count_bits(game["known"][opponent])
    orders = 1
    for i in range(stock):
        orders *= hidden - i
        if orders > 1 << 20:
            return 0
    return orders


@kernel
def lay_order(game, table, player, order):
    """Fills a redacted record with the n-th order of the stock; returns the weight of that world.

    The weight is 1, or where the opponent was blocked on the table as it lies now, the number of
    cards of theirs that could be the one drawn since: 0 means that the world cannot be.
    """
    opponent = 1 - player
    seen = game["hand"][0] | game["hand"][1] | game["buried"]
    seen |= bit(game["table"][0]) | bit(game["table"][1])
    seen |= game["discarded"][0] | game["discarded"][1]
    unseen = ((ONE << np.uint64(table["deck_size"])) - ONE) & ~seen
    known = game["known"][opponent]
    size = count_bits(unseen)
    stock = np.int64(game["stock_size"])
    for i in range(stock):
        card = nth_bit(unseen, order % (size - i))
        order //= size - i
        unseen &= ~bit(card)
        game["stock"][i] = card
    game["hand"][opponent] = known | unseen
    if game["fresh"][opponent] == NO_CARD:
        return 1
    laid = np.int64(game["discard"][opponent, np.int64(game["discard_size"][opponent]) - 1])
    weight = 0
    drawn = unseen
    while drawn:
        card = lowest_bit(drawn)
        drawn &= drawn - ONE
        then = ((known | unseen) & ~bit(card)) | bit(laid)
        if left_cards(table, then, game["table"][0], game["table"][1]) == ZERO:
            weight += 1
            game["fresh"][opponent] = card
    return weight


# --- One decision -------------------------------------------------------------------------------


@kernel
def list_candidates(game, table, player, candidates):
    """Writes what the mover can do, couples whole; returns how many there are."""
    count = 0
    legal = game["legal"]
    while legal:
        action = lowest_bit(legal)
        legal &= legal - ONE
        if game["phase"] != LEFT:
            candidates[count, 0] = action
            candidates[count, 1] = NO_CARD
            count += 1
            continue
        left = game["table"][0]
        right = game["table"][1]
        seconds = right_cards(table, game["hand"][player], left, right, action)
        while seconds:
            candidates[count, 0] = action
            candidates[count, 1] = lowest_bit(seconds)
            seconds &= seconds - ONE
            count += 1
    return count


@kernel
def leader(count, alive, totals):
    """The candidate with the best total among those still tried."""
    best = -1
    for i in range(count):
        if alive[i] and (best < 0 or totals[i] > totals[best]):
            best = i
    return best


@kernel
def drop_losers(count, alive, totals, crosses, weight):
    """Stops trying candidates that are clearly behind the leader; returns how many are left.

    `crosses[i, j]` is the sum over worlds of the product of both candidates' values.
    """
    best = leader(count, alive, totals)
    left = 0
    for i in range(count):
        if not alive[i]:
            continue
        gap = (totals[best] - totals[i]) / weight
        square = (crosses[best, best] - 2.0 * crosses[best, i] + crosses[i, i]) / weight
        variance = max(square - gap * gap, LEAST_VARIANCE) / weight
        alive[i] = gap * gap <= BEHIND * BEHIND * variance or i == best
        left += alive[i]
    return left


@kernel
def weigh_moves(game, table, player, prior, leads):
    """Writes the network's opinion of each candidate, 0 for the one that it likes best.

    Both list the same moves in the same order.
    """
    count = leads.size
    listed = np.empty((count, 2), np.int64)
    rows = np.empty((count, WIDTH), np.float32)
    scores = np.empty(count, np.float32)
    buffer = np.empty((3, prior.hidden), np.float32)
    list_moves(game, table, player, listed, rows)
    score_rows(rows, count, prior.packed, prior.hidden, buffer, scores)
    most = scores.max()
    for i in range(count):
        leads[i] = prior.weight * (scores[i] - most)


@kernel
def search_game(game, table, player, word, kind, worlds, nodes, memory, weights, candidates, prior):
    """Searches one decision.

    Args:
        game: The record, as the player sees it.
        table: One ``RULE_TABLE`` record.
        player: Who moves.
        word: Random bits, on which everything by chance depends.
        kind: How rollouts go on and end.
        worlds: Worlds, at most.
        nodes: Positions that the exact solver may look at for one leaf value.
        memory: ``Workspace(...).memory``; emptied first.
        weights: Of the leaf value.
        candidates: (MAX_CANDIDATES, 2) int64 to write to: what the mover can do.
        prior: The network that guides the choice, or :data:`NO_PRIOR`.

    Returns:
        The mean value of each candidate for the mover, (count,) float64, without what the network
        adds, and which one is best with it. Those that fell behind were not tried in all worlds.
    """
    count = list_candidates(game, table, player, candidates)
    forget(memory)
    stream = np.empty(1, np.uint64)
    stream[0] = mix_bits(word)
    orders = count_orders(game, table, player)
    if orders > worlds:
        orders = 0
    if orders > 0:
        worlds -= worlds % orders
    if game["stock_size"] == 0 and kind == TO_EXHAUSTION:
        worlds = 1
    # Where orders are enumerated, a look before all have come up would be one-sided.
    period = -(-ROUND // orders) * orders if orders > 0 else ROUND
    alive = np.ones(count, np.bool_)
    totals = np.zeros(count)
    tried = np.zeros(count)  # the weight of the worlds that each candidate has seen
    crosses = np.zeros((count, count))
    values = np.zeros(count)
    leads = np.zeros(count)  # added to each candidate's value in every world
    if prior.weight > 0 and game["stock_size"] >= prior.least and count > 1:
        weigh_moves(game, table, player, prior, leads)
    scratch = np.empty(FEATURES)
    pair = np.empty(2, STATE)  # a world, and what a candidate makes of it
    pool = np.empty(table["deck_size"], np.uint8)
    for world in range(worlds):
        pair[0] = game
        seed_streams(pair[0], next_word(stream, 0))
        weight = 1
        if orders > 0:
            weight = lay_order(pair[0], table, player, world % orders)
            if weight == 0:
                continue
        else:
            complete(pair[0], table, player, pool)
        for i in range(count):
            if not alive[i]:
                continue
            pair[1] = pair[0]
            apply(pair[1], table, candidates[i, 0])
            if candidates[i, 1] != NO_CARD:
                apply(pair[1], table, candidates[i, 1])
            value = roll_out(pair[1], table, kind, memory, nodes, weights, scratch)
            values[i] = (value if player == 0 else -value) + leads[i]
            totals[i] += weight * values[i]
            tried[i] += weight
        for i in range(count):
            if alive[i]:
                for j in range(count):
                    if alive[j]:
                        crosses[i, j] += weight * values[i] * values[j]
        if (world + 1) % period == 0:
            best = leader(count, alive, totals)
            if drop_losers(count, alive, totals, crosses, tried[best]) == 1:
                break
    return totals / tried - leads, leader(count, alive, totals)


@kernel
def search_rows(
    games,
    tables,
    players,
    words,
    kind,
    worlds,
    nodes,
    memory,
    weights,
    actions,
    means,
    prior,
):
    """Searches every row and writes the chosen actions.

    `means` (B, A) gets what each action came to on average, for the mover; with no rows in it none
    is written, and rows with nothing to choose are not searched.
    """
    table = tables[0]
    candidates = np.empty((MAX_CANDIDATES, 2), np.int64)
    for row in range(games.size):
        player = np.int64(players[row])
        if means.shape[0] == 0 and list_candidates(games[row], table, player, candidates) == 1:
            actions[row] = candidates[0, 0]
            continue
        game = games[row]
        word = words[row]
        found, best = search_game(
            game, table, player, word, kind, worlds, nodes, memory, weights, candidates, prior
        )
        actions[row] = candidates[best, 0]
        if means.shape[0]:
            for i in range(found.size):
                if not means[row, candidates[i, 0]] >= found[i]:
                    means[row, candidates[i, 0]] = found[i]


# --- The players --------------------------------------------------------------------------------


def _check_number(name: str, value: int, least: int) -> int:
    is_int = isinstance(value, int) and not isinstance(value, bool)
    if not is_int or not least <= value <= MOST_WORLDS:
        raise ValueError(f"{name} must be an int from {least} to {MOST_WORLDS}, got {value!r}")
    return value


class Pimc:
    """Tries every action in many worlds, with rollouts to exhaustion and near exact values there.

    After exhaustion, where there is one world, it looks one move ahead with the same leaf values;
    ``"pimc+exact"`` plays that part perfectly.

    Args:
        worlds: Worlds a decision, at most; fewer when one action is clearly best.
        nodes: Positions that the exact solver may look at for one leaf value.
        seconds: Time a decision instead of a number of worlds: results then depend on the machine.
        prior: Weight of the network that is shipped for this, trained for perfect endings: what a
            log-probability lower by 1 takes from an action's mean. 0: no network. Only in classic.
        prior_stock: The least stock with which the network is asked.

    Raises:
        ValueError: A number is out of range.
    """

    kind = TO_EXHAUSTION

    def __init__(
        self,
        worlds: int = 64,
        nodes: int = 30,
        seconds: float | None = None,
        prior: float = 0,
        prior_stock: int = 1,
    ) -> None:
        self.worlds = _check_number("worlds", worlds, 1)
        self.nodes = _check_number("nodes", nodes, 0)
        number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        if seconds is not None and not (number and 0 < seconds < float("inf")):
            raise ValueError(f"seconds must be a number above 0, got {seconds!r}")
        self.seconds = seconds
        number = isinstance(prior, (int, float)) and not isinstance(prior, bool)
        if not (number and 0 <= prior < float("inf")):
            raise ValueError(f"prior must be a number of at least 0, got {prior!r}")
        self.prior = float(prior)
        self.prior_stock = _check_number("prior_stock", prior_stock, 1)
        effort = f"worlds={worlds}" if seconds is None else f"seconds={seconds}"
        self.name = f"pimc:{effort}" + ("" if nodes == 30 else f",nodes={nodes}")
        if prior:
            self.name += f",prior={prior}"
            self.name += "" if prior_stock == 1 else f",prior_stock={prior_stock}"
        self._priors: dict[str, Prior] = {}
        self._memory = Workspace(TABLE_SIZE).memory

    def act(self, views: ViewBatch) -> np.ndarray:
        """Chooses for the mover of every row.

        Args:
            views: What each mover knows.

        Returns:
            (B,) int64, a legal action for each row.
        """
        return self._search(views, np.empty((0, 0)))

    def values(self, views: ViewBatch) -> np.ndarray:
        """What each action comes to on average, by a search that no network guides.

        Args:
            views: What each mover knows.

        Returns:
            (B, A) float64 from -1 (loss) to 1 (win), for the mover; NaN for an illegal action.
        """
        means = np.full((len(views), views.rules.num_actions), np.nan)
        self._search(views, means)
        return means

    def prior_for(self, rules: Rules) -> Prior:
        """The network that guides the search under these rules, or :data:`NO_PRIOR`.

        Raises:
            ValueError: ``prior`` is not 0, and no network is shipped for these rules.
        """
        if self.prior == 0:
            return NO_PRIOR
        if rules.variant not in GUIDES:
            raise ValueError(
                f"prior must be 0 for {rules}, got {self.prior!r}: no network is shipped"
            )
        if rules.variant not in self._priors:
            network = load_network(GUIDES[rules.variant])
            self._priors[rules.variant] = Prior(
                network.packed()[0], network.hidden, self.prior, self.prior_stock
            )
        return self._priors[rules.variant]

    def _search(self, views: ViewBatch, means: np.ndarray) -> np.ndarray:
        actions = np.empty(len(views), np.int64)
        if self.seconds is None:
            self._search_rows(views, self.worlds, actions, means)
            return actions
        for row in range(len(views)):
            here = slice(row, row + 1)
            view = views.take(np.array([row]))
            started = time.perf_counter()
            self._search_rows(view, PILOT, actions[here], means[here])
            spent = time.perf_counter() - started
            worlds = int(min(PILOT * (self.seconds / spent - 1), MOST_WORLDS))
            if worlds > PILOT:
                means[here] = np.nan
                self._search_rows(view, worlds, actions[here], means[here])
        return actions

    def _search_rows(
        self, views: ViewBatch, worlds: int, actions: np.ndarray, means: np.ndarray
    ) -> None:
        search_rows(
            views.records,
            rule_table(views.rules),
            views.players,
            views.random_bits,
            self.kind,
            worlds,
            self.nodes,
            self._memory,
            weights_for(views.rules.variant, views.rules.blocked),
            actions,
            means,
            NO_PRIOR if len(means) else self.prior_for(views.rules),
        )


class FlatMonteCarlo(Pimc):
    """Tries every action in many worlds, with random play to the very end: a mark on the ladder.

    Args:
        worlds: Worlds a decision, at most.

    Raises:
        ValueError: ``worlds`` is not a positive int.
    """

    kind = TO_THE_END

    def __init__(self, worlds: int = 10) -> None:
        super().__init__(worlds)
        self.name = f"mc:worlds={worlds}"


class _Tuned:
    """:class:`Pimc` with numbers of its own for each rule set."""

    def __init__(self, effort: float, network: bool) -> None:
        self.name = "tuned"
        self._players = {}
        for variant, (worlds, nodes) in CHAMPION.items():
            prior, least = CHAMPION_PRIOR[variant]
            self._players[variant] = Pimc(
                max(round(worlds * effort), 1),
                nodes,
                prior=prior if network else 0,
                prior_stock=least,
            )

    def act(self, views: ViewBatch) -> np.ndarray:
        return self._players[views.rules.variant].act(views)

    def values(self, views: ViewBatch) -> np.ndarray:
        return self._players[views.rules.variant].values(views)


class Champion(Exact):
    """The strongest player here: :class:`Pimc`, as deep as it pays in each rule set, then exact.

    Args:
        effort: Worlds a decision as a multiple of the usual number: 0.25 is faster, 4 slower.
        network: Whether a network guides the search in classic while the stock is large.

    Raises:
        ValueError: ``effort`` is no number above 0, or ``network`` is no bool.
    """

    def __init__(self, effort: float = 1, network: bool = True) -> None:
        number = isinstance(effort, (int, float)) and not isinstance(effort, bool)
        if not (number and 0 < effort < float("inf")):
            raise ValueError(f"effort must be a number above 0, got {effort!r}")
        if not isinstance(network, bool):
            raise ValueError(f"network must be a bool, got {network!r}")
        self._search = _Tuned(effort, network)
        super().__init__(self._search)
        options = [] if effort == 1 else [f"effort={effort}"]
        options += [] if network else ["network=False"]
        self.name = "champion" + (f":{','.join(options)}" if options else "")

    def values(self, views: ViewBatch) -> np.ndarray:
        """What each action comes to on average, as :meth:`Pimc.values`.

        Args:
            views: What each mover knows.

        Returns:
            (B, A) float64 from -1 (loss) to 1 (win), for the mover; NaN for an illegal action.
        """
        return self._search.values(views)
