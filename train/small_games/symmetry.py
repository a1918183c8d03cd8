"""The starting tables of a deck, one for each kind: suits renamed, ranks flipped, sides swapped.

These images leave the rules unchanged (``docs/rules.md``, Symmetries), and the starting table is
public, so the games behind two tables of one kind are the same game with other names.
"""

from __future__ import annotations

from itertools import permutations

from counterweight_env.rules import Rules

__all__ = ["images", "starting_tables"]

Table = tuple[int, int]


def images(rules: Rules, table: Table) -> set[Table]:
    """All tables that a symmetry makes of one."""
    found = set()
    for suits in permutations(range(rules.suits)):
        for flipped in (False, True):
            left, right = (
                suits[card // rules.ranks] * rules.ranks
                + (rules.ranks - 1 - card % rules.ranks if flipped else card % rules.ranks)
                for card in table
            )
            found |= {(left, right), (right, left)}
    return found


def starting_tables(rules: Rules, merge: bool = True) -> list[tuple[Table, float]]:
    """The starting tables with their probabilities.

    Args:
        rules: The rules.
        merge: Whether one table stands for all of its kind, with their probability together.
    """
    tables = list(permutations(range(rules.deck_size), 2))
    if not merge:
        return [(table, 1.0 / len(tables)) for table in tables]
    kinds: dict[Table, int] = {}
    for table in tables:
        first = min(images(rules, table))
        kinds[first] = kinds.get(first, 0) + 1
    return [(table, count / len(tables)) for table, count in kinds.items()]
