"""Games as text that a person can play from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from counterweight_env.cards import RANK_LETTERS, RECLAIM_NAME, STOCK_NAME, SUIT_SYMBOLS
from counterweight_env.phase import Phase
from counterweight_env.rules import Rules

if TYPE_CHECKING:
    from counterweight_env.game import Game
    from counterweight_env.view import View

__all__ = ["action_label", "card_label", "game_text", "view_text"]


def card_label(card: int, rules: Rules) -> str:
    """A card with its suit symbol, such as ``10♠``."""
    suit, rank = divmod(int(card), rules.ranks)
    letter = RANK_LETTERS[rank]
    return ("10" if letter == "T" else letter) + SUIT_SYMBOLS[suit]


def action_label(action: int, rules: Rules) -> str:
    """An action as a person reads it: a card with its suit symbol, STOCK or RECLAIM."""
    if action == rules.stock_action:
        return STOCK_NAME
    if action == rules.reclaim_action:
        return RECLAIM_NAME
    return card_label(action, rules)


def _cards(cards: Iterable[int], rules: Rules) -> str:
    return " ".join(card_label(card, rules) for card in cards) or "-"


def _pile(cards: tuple[int, ...], size: int, rules: Rules) -> str:
    """A discard, bottom first; a closed one shows its size only."""
    if size == 0:
        return "empty"
    if not cards:
        return f"{size} face down"
    return f"{_cards(cards, rules)} (top)"


def _result(returns: tuple[float, float], hands: tuple[int, int], settled: bool) -> str:
    how = f"{hands[0]} to {hands[1]} cards in hand"
    if settled:
        how = "by perfect play from here on"
    if returns[0] == 0:
        return f"Over: a draw, {how}."
    return f"Over: player_{0 if returns[0] > 0 else 1} wins, {how}."


def _task(phase: Phase, rules: Rules, table: tuple[int, int], chosen: int | None) -> str:
    left, right = (card_label(card, rules) for card in table)
    if phase == Phase.LEFT:
        return f"choose the card to lay on the left table card {left}"
    if phase == Phase.RIGHT:
        assert chosen is not None
        return f"{card_label(chosen, rules)} goes on {left}; choose the card to lay on {right}"
    if phase == Phase.DISCARD:
        return "no couple fits; choose a card to discard"
    return "choose where the next refill card comes from"


def view_text(view: View) -> str:
    """One player's side of a game: what they know, whose turn it is, what is legal."""
    rules = view.rules
    me, opponent = f"player_{view.player}", f"player_{1 - view.player}"
    known = view.known_in_opponent_hand
    known_text = f", known: {_cards(known, rules)}" if known else ""
    blocked_text = ", blocked on this table at their last turn" if view.opponent_blocked else ""
    left, right = (card_label(card, rules) for card in view.table)
    lines = [
        f"Counterweight, {rules} | turn {view.turn + 1} | stock {view.stock_size}",
        f"{opponent:>10}: {view.opponent_hand_size} cards{known_text}{blocked_text}",
        f"{'discard':>10}: {_pile(view.opponent_discard, view.opponent_discard_size, rules)}",
        f"{'table':>10}: [ {left} ] [ {right} ]   buried {len(view.buried)}",
        f"{'discard':>10}: {_pile(view.own_discard, len(view.own_discard), rules)}",
        f"{me:>10}: {_cards(view.hand, rules)}",
    ]
    if view.done:
        hands = (len(view.hand), view.opponent_hand_size)
        lines.append(
            _result(view.returns, hands if view.player == 0 else hands[::-1], view.settled)
        )
    elif view.phase == Phase.WAIT:
        lines.append(f"{opponent} is on turn.")
    else:
        legal = " ".join(action_label(int(a), rules) for a in view.legal_mask.nonzero()[0])
        lines.append(f"{me} to move: {_task(view.phase, rules, view.table, view.chosen)}.")
        lines.append(f"{'legal':>10}: {legal}")
    return "\n".join(lines)


def game_text(game: Game) -> str:
    """A whole game, nothing hidden."""
    rules = game.rules
    left, right = (card_label(card, rules) for card in game.table)
    lines = [f"Counterweight, {rules} | turn {game.turn + 1} | stock {game.stock_size}"]
    for player in (0, 1):
        pile = game.discard(player)
        lines.append(f"{f'player_{player}':>10}: {_cards(game.hand(player), rules)}")
        lines.append(f"{'discard':>10}: {_pile(pile, len(pile), rules)}")
    lines.append(f"{'table':>10}: [ {left} ] [ {right} ]   buried {len(game.buried)}")
    lines.append(f"{'stock':>10}: {_cards(game.stock, rules)}")
    if game.done:
        hands = (len(game.hand(0)), len(game.hand(1)))
        lines.append(_result(game.returns, hands, game.settled))
    else:
        task = _task(game.phase, rules, game.table, game.chosen)
        legal = " ".join(action_label(action, rules) for action in game.legal_actions())
        lines += [f"player_{game.to_move} to move: {task}.", f"{'legal':>10}: {legal}"]
    return "\n".join(lines)
