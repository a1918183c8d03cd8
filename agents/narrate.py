"""Turns in words, for one player: nothing that this player may not know is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from counterweight_env.game import Game
from counterweight_env.phase import Phase
from counterweight_env.render import card_label
from counterweight_env.rules import Rules

__all__ = ["YOU", "card_labels", "count_cards", "describe_turn"]

#: The name of the player who is told.
YOU: Final = "you"


def describe_turn(
    start: Game, actions: Sequence[int], seat: int, names: tuple[str, str]
) -> list[str]:
    """What happened in one turn, and what followed by itself.

    Args:
        start: The game before the turn; it is left as it is.
        actions: The turn's decisions, in order.
        seat: The player who is told, 0 or 1.
        names: Of player 0 and player 1; the one at ``seat`` is called ``YOU``.

    Returns:
        Sentences.
    """
    game = start.copy()
    rules = game.rules
    mover = game.to_move
    told_all = mover == seat
    name = _capital(names[mover])
    parts: list[str] = []
    for action in actions:
        before = game.copy()
        game.step(action)
        if before.phase == Phase.RIGHT:
            assert before.chosen is not None
            placed = zip((before.chosen, action), before.table, strict=True)
            parts += [
                f"laid {card_label(card, rules)} on {card_label(under, rules)}"
                for card, under in placed
            ]
        elif before.phase == Phase.DISCARD and before.exhausted:
            parts += ["had no couple", f"laid {card_label(action, rules)} out of play"]
        elif before.phase == Phase.DISCARD:
            seen = told_all or rules.open_discards
            card = card_label(action, rules) if seen else "a card face down"
            parts += ["had no couple", f"discarded {card}"]
        elif before.phase == Phase.REFILL and action == rules.reclaim_action:
            seen = told_all or rules.open_discards
            card = card_label(before.discard(mover)[-1], rules) if seen else "a card"
            parts.append(f"took {card} back from the discard")
        drawn = before.stock[: before.stock_size - game.stock_size]
        if drawn:
            cards = card_labels(drawn, rules) if told_all else count_cards(len(drawn))
            parts.append(f"drew {cards}")
    sentences = [f"{name} {_listed(parts)}."]
    if game.exhausted and not start.exhausted:
        how = "Both take the other's" if rules.variant == "exchange" else "Both take their own"
        sentences.append(
            f"The stock has run out. {how} discard into hand; all cards are known now."
        )
    if game.exhausted and not game.done and game.to_move == mover:
        other = names[1 - mover]
        have = "have" if other == YOU else "has"
        sentences.append(f"{_capital(other)} {have} no couple: a pass.")
    return sentences


def card_labels(cards: Iterable[int], rules: Rules) -> str:
    """Cards with their suit symbols."""
    return " ".join(card_label(card, rules) for card in cards)


def count_cards(count: int) -> str:
    """Such as ``"1 card"``."""
    return f"{count} card" if count == 1 else f"{count} cards"


def _capital(name: str) -> str:
    return "You" if name == YOU else name


def _listed(parts: Sequence[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last
