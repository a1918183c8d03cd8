"""Whole games kept as files: the same seed must give the same game on any machine.

`tests/golden/games.json` holds games with their deck, actions and end; `tests/golden/<rules>.txt`
is one game of each rule set for a person to read. `test_game.py` plays them again and compares. If
the rules, the layout of the observation or the random streams change on purpose, write the files
anew with

    python tests/golden_games.py --update

and read the difference. Without `--update` the script compares and says what differs. It needs
nothing but the package, so that it also runs with NUMBA_DISABLE_JIT=1 and warnings as errors.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from counterweight_env import Game, GameBatch, action_name, card_name
from counterweight_env.render import action_label

GOLDEN = Path(__file__).parent / "golden"
GAMES_FILE = GOLDEN / "games.json"

CASES = [
    ("classic", 0),
    ("classic", 2**64 - 1),
    ("exchange", 0),
    ("exchange", 2006),
    ("classic(open_discards=False)", 1),
    ("classic(blocked=discard)", 2),
    ("exchange(open_discards=False,blocked=discard)", 3),
    ("classic(ranks=7,suits=1,hand_size=2)", 4),
    ("exchange(ranks=6,suits=2,hand_size=3)", 5),
    ("classic(ranks=8,suits=3,hand_size=4)", 6),
]
READABLE = {"classic": 0, "exchange": 138}  # rules: seed; in both a player goes out


def choose(legal: list[int], decision: int) -> int:
    """Return the action of the fixed rule that plays the kept games."""
    return legal[(5 * decision + 2) % len(legal)]


def deck_names(game: Game) -> str:
    """Return a fresh deal as a deck that `Game.from_deck` deals alike."""
    cards = [*game.hand(0), *game.hand(1), *game.table, *game.stock]
    return " ".join(card_name(card, game.rules) for card in cards)


def play(rules: str, seed: int) -> dict[str, Any]:
    """Play one game by the fixed rule and return all that is kept of it."""
    game = Game(rules, seed=seed)
    batch = GameBatch(1, rules, seed=[seed])
    kept: dict[str, Any] = {
        "rules": rules,
        "seed": seed,
        "dealer": game.dealer,
        "deck": deck_names(game),
        "random_bits": [f"{int(batch.views().random_bits[0]):016x}" for _ in range(2)],
    }
    seen = hashlib.sha256()
    actions: list[str] = []
    while True:
        for player in (0, 1):
            seen.update(game.observe(player).tobytes())
            seen.update(game.legal_mask().tobytes())
        if game.done:
            break
        action = choose(game.legal_actions(), len(actions))
        actions.append(action_name(action, game.rules))
        game.step(action)
    kept["actions"] = " ".join(actions)
    kept["turns"] = game.turn
    kept["final_hands"] = [
        " ".join(card_name(card, game.rules) for card in game.hand(player)) for player in (0, 1)
    ]
    kept["returns"] = list(game.returns)
    kept["observations_sha256"] = seen.hexdigest()
    game.reset()
    kept["next_dealer"], kept["next_deck"] = game.dealer, deck_names(game)
    return kept


def playthrough(rules: str, seed: int) -> str:
    """Return one game as text: every turn from above, every decision with what was legal."""
    game = Game(rules, seed=seed)
    lines = [f"Game(rules={rules!r}, seed={seed}), player_{game.dealer} deals", ""]
    turn, decision = -1, 0
    while not game.done:
        if game.turn != turn:
            turn = game.turn
            lines += [str(game), ""]
        legal = game.legal_actions()
        action = choose(legal, decision)
        choices = " ".join(action_label(a, game.rules) for a in legal)
        label = action_label(action, game.rules)
        lines += [f"    {game.phase.name:<7} player_{game.to_move}: {label:<7} of {choices}", ""]
        game.step(action)
        decision += 1
    returns = "player_0 {:+.0f}, player_1 {:+.0f}".format(*game.returns)
    lines += [str(game), "", f"returns: {returns}"]
    return "\n".join(lines) + "\n"


def expected_files() -> dict[Path, str]:
    """Return what every kept file must hold."""
    games = [play(rules, seed) for rules, seed in CASES]
    files = {GAMES_FILE: json.dumps(games, indent=1) + "\n"}
    for rules, seed in READABLE.items():
        files[GOLDEN / f"{rules}.txt"] = playthrough(rules, seed)
    return files


def main() -> int:
    """Compare, or with --update write, every kept file."""
    different = []
    for path, text in expected_files().items():
        if "--update" in sys.argv[1:]:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            different.append(path.name)
    if different:
        print("these files differ from what is played now:", *different)
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
