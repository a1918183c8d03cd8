"""What a match and a bot in another program say to each other, line by line; see docs/bots.md.

Every line is one JSON object. A request holds all that its player may know, so a bot needs no
memory; ``protocol.schema.json`` beside this module describes the lines.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from counterweight_env.cards import action_name, card_name, parse_action
from counterweight_env.rules import Rules
from counterweight_env.view import View

__all__ = ["HELLO", "PROTOCOL", "ProtocolError", "decision_request", "read_action", "read_hello"]

#: Raised by one when a bot for the old protocol would no longer understand the lines.
PROTOCOL: Final = 1
HELLO: Final[dict[str, Any]] = {"type": "hello", "protocol": PROTOCOL}

#: Characters of a bad line that an error quotes.
QUOTED: Final = 120


class ProtocolError(ValueError):
    """A bot's line is not what was asked for."""


def decision_request(view: View, random_bits: int) -> dict[str, Any]:
    """The request for one decision.

    Args:
        view: What the player on turn knows.
        random_bits: One word of :attr:`ViewBatch.random_bits`. The request holds 32 bits of its
            SHA-256, because the words themselves would give away the stream that they come from.

    Returns:
        An object of the form ``#/$defs/decide`` of the schema.
    """
    rules = view.rules

    def names(cards: tuple[int, ...]) -> list[str]:
        return [card_name(card, rules) for card in cards]

    chosen = view.chosen
    digest = hashlib.sha256(int(random_bits).to_bytes(8, "little")).digest()
    return {
        "type": "decide",
        "protocol": PROTOCOL,
        "rules": {
            "text": str(rules),
            "variant": rules.variant,
            "ranks": rules.ranks,
            "suits": rules.suits,
            "hand_size": rules.hand_size,
            "open_discards": rules.open_discards,
            "blocked": rules.blocked,
        },
        "player": view.player,
        "dealer": view.dealer,
        "turn": view.turn,
        "phase": view.phase.name,
        "second_refill": view.second_refill,
        "table": names(view.table),
        "chosen": None if chosen is None else card_name(chosen, rules),
        "hand": names(view.hand),
        "buried": names(view.buried),
        "own_discard": names(view.own_discard),
        "opponent_discard": names(view.opponent_discard),
        "opponent_discard_size": view.opponent_discard_size,
        "opponent_hand_size": view.opponent_hand_size,
        "known_in_opponent_hand": names(view.known_in_opponent_hand),
        "opponent_blocked": view.opponent_blocked,
        "stock_size": view.stock_size,
        "exhausted": view.exhausted,
        "legal": [action_name(int(action), rules) for action in view.legal_mask.nonzero()[0]],
        "random": int.from_bytes(digest[:4], "little"),
    }


def read_hello(line: bytes) -> None:
    """Checks the answer to ``HELLO``.

    Raises:
        ProtocolError: It is not ``{"protocol": 1}``.
    """
    answer = _read_object(line, "protocol")
    if type(answer) is not int or answer != PROTOCOL:
        raise ProtocolError(f"the bot speaks protocol {_quote(answer)}, not {PROTOCOL}")


def read_action(line: bytes, request: dict[str, Any], rules: Rules) -> int:
    """The action that a bot answers to a request.

    Args:
        line: The answer, without the end of the line.
        request: What :func:`decision_request` gave.
        rules: The rules of the game.

    Raises:
        ProtocolError: The line is not ``{"action": TEXT}``, or the text is none of those that the
            request lists.
    """
    text = _read_object(line, "action")
    legal: list[str] = request["legal"]
    if not isinstance(text, str) or text not in legal:
        raise ProtocolError(
            f"illegal action {_quote(text)} in phase {request['phase']}; legal: {' '.join(legal)}"
        )
    return parse_action(text, rules)


def _read_object(line: bytes, field: str) -> object:
    """The only field of a line's JSON object."""
    try:
        data = json.loads(
            line.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    # Besides bad JSON and UTF-8: numbers with thousands of digits, and deep nesting.
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON ({str(error)[:QUOTED]}): {_quote(line)}") from None
    if not isinstance(data, dict) or set(data) != {field}:
        raise ProtocolError(f'not an object with the one field "{field}": {_quote(line)}')
    return data[field]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field stands twice")
    return fields


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _quote(value: object) -> str:
    """A short form of what a bot said, safe to print."""
    text = ascii(value)
    return text if len(text) <= QUOTED else text[: QUOTED - 3] + "..."
