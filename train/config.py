"""What a training run is: :class:`TrainConfig`, its presets and its JSON form."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Any, Final

from counterweight_env.rules import as_rules

__all__ = ["PRESETS", "TrainConfig"]

REWARDS: Final = ("outcome", "margin")
ENDINGS: Final = ("exact", "scorer", "learn")
NETWORKS: Final = ("moves", "mlp")
BASELINES: Final = ("random", "greedy", "keeper", "cautious", "patient")


@dataclass(frozen=True)
class TrainConfig:
    """One self-play training run. Equal configurations give equal weights on one machine.

    A *step* is one decision of the learner. Snapshots and checkpoints are taken between rollouts,
    at the first one that lies the given steps after the last; training ends with the rollout that
    reaches ``total_steps``.

    Args:
        rules: The text of a rule set, such as ``"classic"``.
        reward: ``"outcome"`` or ``"margin"``.
        seed: From 0 to 2**32 - 1, for the weights, the deals and all draws.
        total_steps: Decisions to learn from, over all games.
        network: ``"moves"``, which scores moves by their rows of :mod:`agents.moves`, or ``"mlp"``,
            SB3's plain one over the flat observation.
        hidden: Width of the two hidden layers of ``"moves"``.
        net_arch: Widths of the hidden layers of ``"mlp"``, for actor and critic each.
        both_seats: Learn from the decisions of both seats in the games against oneself; else from
            those of one seat, against the newest snapshot.
        num_envs: Games played side by side.
        n_steps: Decisions a game in each rollout.
        batch_size: Decisions a gradient step; divides ``num_envs * n_steps``.
        n_epochs: Passes over each rollout.
        learning_rate: Adam's, at the start.
        final_learning_rate: Adam's, at the end; linear between.
        ent_coef: Weight of the entropy bonus, at the start.
        final_ent_coef: The same at the end; linear between.
        gamma: Discount a decision.
        gae_lambda: Of generalized advantage estimation.
        clip_range: Of PPO's probability ratio.
        endings: What becomes of a game at exhaustion. ``"exact"``: it ends with its exact value as
            the reward, so that only the time before is learnt, for perfect endings.
            ``"scorer"``: the scorer of endings plays it out where both seats are the learner's, so
            that the time before is learnt for endings as the network plays them; needs
            ``ending_games`` and ``both_seats``. ``"learn"``: its decisions are samples like any
            others, so the scorer of endings goes on learning. All tables are of whole games, with
            ``"exact"`` of such that both sides end perfectly.
        solve_nodes: Positions that the solver may look at for one game and turn; a game left open
            goes on.
        ending_games: Games whose solved endings the scorer of endings is fitted to before the
            first decision is learnt from; with ``endings="exact"`` or ``"scorer"`` it then stays as
            it is. 0: no such fit. Only with
            ``network="moves"`` and ``blocked="pass"``.
        ending_epochs: Passes over them.
        search_games: Games that the search player plays against itself; the scorer of the time
            before exhaustion is fitted to what the search made of each move, and training starts
            from there. 0: it starts from chance. Only with ``network="moves"``.
        search_worlds: Worlds a decision of that search, at most.
        search_epochs: Passes over its decisions.
        average_decay: What evaluation and the shipped network use is an average of the weights,
            that keeps this part of itself from rollout to rollout; 0 is the weights as they are.
            Only with ``network="moves"``, as are the next two.
        select_every: Steps between evaluations against the baselines, of which the best one's
            network is kept in the end.
        select_deals: Duplicate deals a match of those, apart from those of the final table.
        baselines: Texts of agents that are both opponents and the rows of the final table.
        self_share: Share of the games against oneself.
        past_share: Share of the games against older snapshots, the harder ones more often.
        baseline_share: Share of the games against baselines, the harder ones more often.
        snapshot_every: Steps between snapshots.
        pool_size: The most snapshots kept as opponents.
        checkpoint_every: Steps between checkpoints.
        keep_checkpoints: The most checkpoints kept.
        eval_deals: Duplicate deals (two games each) against every baseline at the end.
        threads: Torch threads. Sums are split by thread, so weights depend on it in the last bit.
            The nets are small: more than one is slower, and much slower on a busy machine.

    Raises:
        ValueError: A field is bad; the message names it and its value.
    """

    rules: str = "classic"
    reward: str = "outcome"
    seed: int = 0
    total_steps: int = 1_000_000
    network: str = "moves"
    hidden: int = 64
    net_arch: tuple[int, ...] = (128, 128)
    both_seats: bool = True
    num_envs: int = 1024
    n_steps: int = 32
    batch_size: int = 4096
    n_epochs: int = 2
    learning_rate: float = 1e-3
    final_learning_rate: float = 5e-5
    ent_coef: float = 0.02
    final_ent_coef: float = 0.002
    gamma: float = 1.0
    gae_lambda: float = 0.9
    clip_range: float = 0.2
    endings: str = "learn"
    solve_nodes: int = 4000
    ending_games: int = 1500
    ending_epochs: int = 12
    search_games: int = 0
    search_worlds: int = 64
    search_epochs: int = 10
    average_decay: float = 0.9
    select_every: int = 500_000
    select_deals: int = 150
    baselines: tuple[str, ...] = BASELINES
    self_share: float = 0.6
    past_share: float = 0.1
    baseline_share: float = 0.3
    snapshot_every: int = 100_000
    pool_size: int = 5
    checkpoint_every: int = 250_000
    keep_checkpoints: int = 2
    eval_deals: int = 1000
    threads: int = 1

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "rules", str(as_rules(self.rules)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"rules: {error}") from error
        if self.reward not in REWARDS:
            raise ValueError(f"reward must be one of {REWARDS}, got {self.reward!r}")
        if self.network not in NETWORKS:
            raise ValueError(f"network must be one of {NETWORKS}, got {self.network!r}")
        if self.endings not in ENDINGS:
            raise ValueError(f"endings must be one of {ENDINGS}, got {self.endings!r}")
        if not isinstance(self.both_seats, bool):
            raise ValueError(f"both_seats must be a bool, got {self.both_seats!r}")
        if self.endings == "exact" and self.reward == "margin":
            raise ValueError('endings="exact" gives outcomes, so reward must not be "margin"')
        fitted = self.network == "moves" and self.both_seats and self.ending_games
        if self.endings == "scorer" and not fitted:
            raise ValueError(
                'endings="scorer" needs network="moves", both_seats and ending_games, got '
                f"{self.network!r}, {self.both_seats!r} and {self.ending_games!r}"
            )
        if self.ending_games and as_rules(self.rules).blocked != "pass":
            raise ValueError(f"ending_games must be 0 for {self.rules}, got {self.ending_games!r}")
        self._check_int("seed", 0)
        self._check_int("ending_games", 0)
        self._check_int("search_games", 0)
        for name in ("total_steps", "num_envs", "n_steps", "n_epochs", "snapshot_every"):
            self._check_int(name, 1)
        for name in ("hidden", "solve_nodes", "ending_epochs", "select_every", "select_deals"):
            self._check_int(name, 1)
        for name in ("search_worlds", "search_epochs"):
            self._check_int(name, 1)
        if self.search_games and self.network != "moves":
            raise ValueError(
                f'search_games needs network="moves", got {self.search_games} and {self.network!r}'
            )
        for name in ("checkpoint_every", "keep_checkpoints", "eval_deals", "threads"):
            self._check_int(name, 1)
        self._check_int("batch_size", 2)
        self._check_int("pool_size", 2)
        if self.seed >= 2**32:
            raise ValueError(f"seed must be less than 2**32, got {self.seed}")
        if self.rollout_steps % self.batch_size:
            raise ValueError(
                f"batch_size must divide num_envs * n_steps = {self.rollout_steps}, "
                f"got {self.batch_size}"
            )
        for name in ("learning_rate", "final_learning_rate", "ent_coef", "final_ent_coef"):
            self._check_float(name, 0.0, math.inf)
        for name in ("gamma", "gae_lambda", "clip_range", "average_decay"):
            self._check_float(name, 0.0, 1.0)
        for name in ("self_share", "past_share", "baseline_share"):
            self._check_float(name, 0.0, 1.0)
        if self.self_share + self.past_share + self.baseline_share <= 0:
            raise ValueError("self_share, past_share and baseline_share must not all be 0")
        self._check_tuple("net_arch")
        for width in self.net_arch:
            if isinstance(width, bool) or not isinstance(width, int) or width < 1:
                raise ValueError(f"net_arch must hold ints of at least 1, got {self.net_arch!r}")
        self._check_tuple("baselines")
        if not all(isinstance(text, str) for text in self.baselines):
            raise ValueError(f"baselines must hold texts of agents, got {self.baselines!r}")
        if len(set(self.baselines)) != len(self.baselines):
            raise ValueError(f"baselines must differ, got {self.baselines!r}")

        doubled = [text for text in self.baselines if str(text).endswith("+exact")]
        if self.endings == "exact" and doubled:
            raise ValueError(
                f'baselines have perfect endings with endings="exact", so leave +exact out of '
                f"{doubled[0]!r}"
            )

    def _check_int(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{name} must be an int, got {value!r}")
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")

    def _check_float(self, name: str, low: float, high: float) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{name} must be a number, got {value!r}")
        if not (low <= value <= high and math.isfinite(value)):
            raise ValueError(f"{name} must be finite and from {low} to {high}, got {value}")

    def _check_tuple(self, name: str) -> None:
        value = getattr(self, name)
        if not isinstance(value, (tuple, list)) or not value:
            raise ValueError(f"{name} must be a non-empty tuple, got {value!r}")
        object.__setattr__(self, name, tuple(value))

    @property
    def rollout_steps(self) -> int:
        """Decisions in one rollout."""
        return self.num_envs * self.n_steps

    @classmethod
    def preset(cls, name: str, **changes: Any) -> TrainConfig:
        """A preset, with some fields changed.

        Raises:
            ValueError: There is no such preset or field, or a value is bad.
        """
        if name not in PRESETS:
            raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")
        return cls._from_fields({**PRESETS[name], **changes})

    @classmethod
    def from_json(cls, text: str) -> TrainConfig:
        """Reads what :meth:`to_json` writes.

        Raises:
            ValueError: The text is no JSON object, names an unknown field, or a value is bad.
        """
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"a configuration must be JSON: {error}") from error
        if not isinstance(values, dict):
            raise ValueError(f"a configuration must be a JSON object, got {values!r}")
        return cls._from_fields(values)

    @classmethod
    def _from_fields(cls, values: dict[str, Any]) -> TrainConfig:
        known = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            if name not in known:
                raise ValueError(f"unknown field {name!r}; known: {', '.join(known)}")
        return cls(**values)

    def to_json(self) -> str:
        """The configuration as a JSON object, one field a line."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    def differences(self, other: TrainConfig) -> list[str]:
        """The fields in which another configuration differs, as ``"name: mine, not theirs"``."""
        return [
            f"{field.name}: {getattr(self, field.name)!r}, not {getattr(other, field.name)!r}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != getattr(other, field.name)
        ]


#: ``quick`` shows a whole run in some three minutes on two cores, ``standard`` takes half an hour
#: and ``long`` two hours.
PRESETS: Final[dict[str, dict[str, Any]]] = {
    "quick": {},
    "standard": {
        "total_steps": 5_000_000,
        "ending_games": 30_000,
        "ending_epochs": 15,
        "hidden": 128,
        "snapshot_every": 500_000,
        "pool_size": 8,
        "checkpoint_every": 1_000_000,
        "select_every": 1_000_000,
        "select_deals": 500,
        "eval_deals": 4000,
    },
    "long": {
        "total_steps": 20_000_000,
        "ending_games": 120_000,
        "ending_epochs": 20,
        "hidden": 192,
        "snapshot_every": 1_000_000,
        "pool_size": 12,
        "checkpoint_every": 2_000_000,
        "select_every": 2_000_000,
        "select_deals": 1000,
        "eval_deals": 4000,
    },
}
