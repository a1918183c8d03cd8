"""The rule sets and their sizes: :class:`Rules`, ``CLASSIC`` and ``EXCHANGE``."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Final

__all__ = ["CLASSIC", "EXCHANGE", "Rules", "as_rules"]

VARIANTS: Final = ("classic", "exchange")
BLOCKED_READINGS: Final = ("pass", "discard")


@dataclass(frozen=True)
class Rules:
    """One rule set at one deck size; immutable, hashable and checked on construction.

    Args:
        variant: ``"classic"`` (C1, C2, T4, E2 classic) or ``"exchange"`` (C1 to C4, T5, E2
            exchange).
        ranks: Ranks per suit, from the ace upward, 2 to 13.
        suits: Suits, in the order clubs, diamonds, hearts, spades, 1 to 4.
        hand_size: Cards dealt to each player and refilled to, at least 2.
        open_discards: Whether both players see both temporary discards.
        blocked: What a blocked player does after exhaustion: ``"pass"`` (F1) or ``"discard"``,
            which lays one hand card out of play.

    Raises:
        ValueError: A field is out of range, or the deal would leave no stock card; the message
            names the field and the value.
    """

    variant: str = "classic"
    ranks: int = 13
    suits: int = 4
    hand_size: int = 6
    open_discards: bool = True
    blocked: str = "pass"

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise ValueError(f"variant must be one of {VARIANTS}, got {self.variant!r}")
        for name, low, high in (("ranks", 2, 13), ("suits", 1, 4), ("hand_size", 2, 24)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise ValueError(f"{name} must be an int, got {value!r}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be from {low} to {high}, got {value}")
        if not isinstance(self.open_discards, bool):
            raise ValueError(f"open_discards must be a bool, got {self.open_discards!r}")
        if self.blocked not in BLOCKED_READINGS:
            raise ValueError(f"blocked must be one of {BLOCKED_READINGS}, got {self.blocked!r}")
        if self.stock_size < 1:
            raise ValueError(
                f"hand_size {self.hand_size} is too large: a deck of {self.deck_size} cards "
                f"(ranks {self.ranks}, suits {self.suits}) would leave no stock card after the deal"
            )
        # Rules are the key of every cached table, so their hash is kept.
        object.__setattr__(self, "_hash", hash(tuple(getattr(self, f.name) for f in fields(self))))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined]

    @property
    def deck_size(self) -> int:
        """Cards in the deck."""
        return self.ranks * self.suits

    @property
    def num_actions(self) -> int:
        """``A``: one action a card, then STOCK and RECLAIM."""
        return self.deck_size + 2

    @property
    def stock_action(self) -> int:
        """The action that refills one card from the stock."""
        return self.deck_size

    @property
    def reclaim_action(self) -> int:
        """The action that refills one card from the top of one's own discard."""
        return self.deck_size + 1

    @property
    def stock_size(self) -> int:
        """Stock cards right after the deal (S2)."""
        return self.deck_size - 2 * self.hand_size - 2

    @property
    def max_turns(self) -> int:
        """An upper bound on the turns of a game.

        A couple takes two cards out of play for good, and at most ``deck - 2`` cards can leave the
        hands; a discard before exhaustion uses up a stock card; a card laid away after exhaustion
        (``blocked="discard"``) leaves play for good. Passing is no turn.
        """
        leaving = self.deck_size - 2
        return self.stock_size + (leaving if self.blocked == "discard" else leaving // 2)

    @property
    def max_decisions(self) -> int:
        """An upper bound on the decisions of a game.

        A couple is two decisions and at most two more for its refill; any other turn is one.
        """
        couples = (self.deck_size - 2) // 2
        laid_away = (self.deck_size - 2) % 2 if self.blocked == "discard" else 0
        return self.stock_size + 4 * couples + laid_away

    def __str__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)
            if field.name != "variant" and getattr(self, field.name) != field.default
        ]
        return self.variant + (f"({','.join(changed)})" if changed else "")

    @classmethod
    def parse(cls, text: str) -> Rules:
        """Reads what ``str(rules)`` writes, such as ``"exchange(ranks=6,suits=2,hand_size=3)"``.

        Raises:
            ValueError: The text is malformed, or names an unknown field or a bad value.
        """
        match = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", text)
        if match is None:
            raise ValueError(f'rules must read like "classic" or "exchange(ranks=6)", got {text!r}')
        variant, inside = match.groups()
        options: dict[str, object] = {}
        for part in (inside or "").split(","):
            if not part.strip():
                continue
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or name not in _PARSERS:
                raise ValueError(
                    f"unknown field {part.strip()!r} in {text!r}; known: {', '.join(_PARSERS)}"
                )
            if name in options:
                raise ValueError(f"rules field {name!r} stands twice in {text!r}")
            options[name] = _PARSERS[name](name, value)
        return cls(variant, **options)  # type: ignore[arg-type]


def _parse_int(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{name} must be an int, got {value!r}") from None


def _parse_bool(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return value.lower() == "true"


def _parse_word(name: str, value: str) -> str:
    return value.strip("'\"")


_PARSERS = {
    "ranks": _parse_int,
    "suits": _parse_int,
    "hand_size": _parse_int,
    "open_discards": _parse_bool,
    "blocked": _parse_word,
}

CLASSIC: Final = Rules("classic")
EXCHANGE: Final = Rules("exchange")


@lru_cache(maxsize=256)
def _interned(rules: Rules) -> Rules:
    """One object for all equal rules, so that looking up what is cached for them is quick."""
    return rules


def as_rules(rules: Rules | str) -> Rules:
    """Takes rules as an object or as text.

    Raises:
        TypeError: ``rules`` is neither.
        ValueError: The text does not parse.
    """
    if isinstance(rules, Rules):
        return _interned(rules)
    if isinstance(rules, str):
        return _interned(Rules.parse(rules))
    raise TypeError(f"rules must be a Rules or a str, got {rules!r}")
