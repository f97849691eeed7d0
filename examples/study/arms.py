"""What is compared: the settings of the study, its arms, and the sweeps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final, Literal

from unswayed.items import Task
from unswayed.presentation import Protocol
from unswayed.reward_settings import Advantage

__all__ = [
    "ARMS",
    "DECOMPOSED",
    "LAYOUTS",
    "REWARDED",
    "SETTINGS",
    "SUPERVISED",
    "SWEEPS",
    "Job",
    "Setting",
    "jobs",
]

Gold = Literal["noisy", "clean", "flips"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of the study's table.

    Attributes:
        name, title: Short name for files; what the table says.
        task: Judge (two candidates) or multiple choice (four).
        gold: Training gold: drawn from a Bradley-Terry rater, the truth, or the truth with 35 % of
            the labels replaced by a wrong one. Evaluation always uses the truth.
        orders: The permutation group.
        lam: Weight of r_con.
        samples: N.
        items_per_step, steps, learning_rate: AdamW, constant rate.
        lora: Rank of an adapter; 0 trains all weights.
    """

    name: str
    title: str
    task: Task = Task.PAIRWISE
    gold: Gold = "noisy"
    orders: str = "swap"
    lam: float = 1.0
    samples: int = 8
    items_per_step: int = 16
    steps: int = 100
    learning_rate: float = 3e-4
    lora: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """One training run: a setting, an arm, a seed."""

    setting: Setting
    arm: str
    seed: int

    @property
    def name(self) -> str:
        """File name without ending."""
        arm = self.arm.strip("+").lower().replace(" ", "-")
        return f"{self.setting.name}__{arm}__seed{self.seed}"

    def fingerprint(self, base: str) -> str:
        """Changes whenever the run would be another one."""
        setting = {k: v for k, v in asdict(self.setting).items() if k not in ("name", "title")}
        text = json.dumps([base, setting, self.arm, self.seed], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


REWARDED: Final[Mapping[str, tuple[str, Advantage]]] = {
    "GRPO": ("none", "prompt"),
    "+r_con": ("con", "prompt"),
    "+A_PA": ("none", "group"),
    "PA-GRPO": ("con", "group"),
}
"""The four arms of the paper's Table 2: consistency reward and advantage."""

SUPERVISED: Final[Mapping[str, Mapping[str, str]]] = {
    "permuted SFT": {"pif.negatives": "0", "pif.content_weight": "0"},
    "PIF": {},
}
"""Arms that are told the gold label, as changes (`--set`) of `train pif --recipe tiny-judge`.

Without negatives and content what is left of that loss is the cross-entropy on the gold label.
"""

ARMS: Final = (*REWARDED, *SUPERVISED)

_MCQ = Setting(name="mcq-noisy", title="MCQ, noisy gold", task=Task.MCQ, orders="structured")
_JUDGE = Setting(name="judge-noisy", title="judge, noisy gold")

SETTINGS: Final = (
    _JUDGE,
    replace(_JUDGE, name="judge-clean", title="judge, clean gold", gold="clean"),
    replace(_JUDGE, name="judge-flips", title="judge, 35 % label flips", gold="flips"),
    replace(
        _JUDGE,
        name="judge-lora",
        title="judge, noisy gold, LoRA r=8, lr 1e-3",
        lora=8,
        learning_rate=1e-3,
    ),
    _MCQ,
    replace(_MCQ, name="mcq-clean", title="MCQ, clean gold", gold="clean"),
    replace(_MCQ, name="mcq-flips", title="MCQ, 35 % label flips", gold="flips"),
    replace(_MCQ, name="mcq-quarter", title="MCQ, noisy gold, lambda 0.25", lam=0.25),
)


def _sweep(base: Setting, field: str, values: dict[float | str, str]) -> tuple[Setting, ...]:
    """Settings that differ in one field; those of the main table keep their name and runs."""
    swept = []
    for value, title in values.items():
        made = replace(base, **{field: value, "title": title})
        same = [
            s for s in SETTINGS if replace(s, name="", title="") == replace(made, name="", title="")
        ]
        name = same[0].name if same else f"{base.name}-{field}-{value}"
        swept.append(replace(made, name=name))
    return tuple(swept)


_LAMBDAS: Final[dict[float | str, str]] = {
    value: f"lambda {value:g}" for value in (0.0, 0.25, 0.5, 1.0, 2.0)
}
SWEEPS: Final[Mapping[str, tuple[Setting, ...]]] = {
    "lambda, judge with noisy gold": _sweep(_JUDGE, "lam", _LAMBDAS),
    "lambda, MCQ with noisy gold": _sweep(_MCQ, "lam", _LAMBDAS),
    "P, MCQ with noisy gold": _sweep(
        _MCQ,
        "orders",
        {"cyclic": "P = 4, cyclic", "structured": "P = 5, with reverse", "full": "P = 24, all"},
    ),
}
"""PA-GRPO only."""

DECOMPOSED: Final = ("judge-noisy", "mcq-noisy")
"""Settings whose base and arms are also measured with labels only and orders only permuted."""


LAYOUTS: Final[tuple[Protocol, ...]] = ("coupled", "label", "order")
"""What moves with a presentation: both, labels alone, orders alone."""


def jobs(seeds: int) -> Iterator[Job]:
    """Every run of the study, the main table first."""
    for setting in SETTINGS:
        for seed in range(seeds):
            for arm in ARMS:
                yield Job(setting, arm, seed)
    main = {setting.name for setting in SETTINGS}
    for settings in SWEEPS.values():
        for setting in settings:
            if setting.name not in main:
                for seed in range(seeds):
                    yield Job(setting, "PA-GRPO", seed)
