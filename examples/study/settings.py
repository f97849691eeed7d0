"""Settings of the study, its sweeps, and the runs of its parts."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final, Literal

from arms import ARMS, FINALISTS, RIVALS, STEPPED

from unswayed.model.items import Task
from unswayed.model.presentation import Protocol

Gold = Literal["noisy", "clean", "flips"]
HeldOut = Literal["topic", "words"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One situation that the arms are compared in.

    Attributes:
        name, title: Short name for files; what the table says.
        arms: What is run.
        task: Judge (two candidates) or multiple choice (four).
        gold: Training gold: drawn from a Bradley-Terry rater, the truth, or the truth with 35% of
            the labels replaced by a wrong one. Evaluation always uses the truth.
        orders: The permutation group.
        layouts: Labels stay with the positions in it, or it has all four layouts of two candidates.
        lam: Weight of the consistency reward, where the arm has none of its own.
        samples: N.
        items_per_step, steps, learning_rate: AdamW, constant rate.
        lora: Rank of an adapter; 0 trains all weights.
        held_out: What the evaluation items are about and the training items are not.
        second: A base of another seed, with evaluation items of another seed.
    """

    name: str
    title: str
    arms: tuple[str, ...]
    task: Task = Task.PAIRWISE
    gold: Gold = "noisy"
    orders: str = "swap"
    layouts: Literal["coupled", "all"] = "coupled"
    lam: float = 1.0
    samples: int = 8
    items_per_step: int = 16
    steps: int = 100
    learning_rate: float = 3e-4
    lora: int = 0
    held_out: HeldOut | None = None
    second: bool = False

    @property
    def terms(self) -> dict[str, object]:
        """Everything that a run of one of its arms depends on."""
        return {k: v for k, v in asdict(self).items() if k not in ("name", "title", "arms")}


@dataclass(frozen=True, slots=True)
class Job:
    """One training run: a setting, an arm, a seed."""

    setting: Setting
    arm: str
    seed: int

    @property
    def name(self) -> str:
        """File name without ending."""
        arm = re.sub(r"[^a-z0-9_.]+", "-", self.arm.lower()).strip("-")
        return f"{self.setting.name}__{arm}__seed{self.seed}"

    @property
    def measured_at(self) -> tuple[int, ...]:
        """Steps after which the model is measured."""
        if self.setting.name not in HEADLINE or self.arm not in STEPPED:
            return (self.setting.steps,)
        # with 24 orders a measurement costs as much as twenty steps
        early = (10, 25, 50) if self.setting.task is Task.PAIRWISE else (10,)
        return (*early, self.setting.steps)

    @property
    def decomposed(self) -> bool:
        """True if it is also measured with labels only and orders only permuted."""
        layouts = any(self.arm in other.arms for other in SETTINGS if other.layouts == "all")
        return (layouts or self.arm in FINALISTS) and self.setting.name in DECOMPOSED

    def fingerprint(self, base: str) -> str:
        """Changes whenever the run would be another one."""
        terms = [base, self.setting.terms, asdict(ARMS[self.arm]), self.measured_at, self.seed]
        return hashlib.sha256(json.dumps(terms, sort_keys=True).encode()).hexdigest()


_ALL: Final = tuple(ARMS)
_PAIRED_ARMS: Final = tuple(arm for arm in ARMS if arm != "mode")
"""With more than two presentations `con` is the mode rule: the arm `mode` is PA-GRPO itself."""

_JUDGE: Final = Setting(name="judge-noisy", title="judge, noisy gold", arms=_ALL)
_MCQ: Final = Setting(
    name="mcq-noisy",
    title="MCQ, noisy gold",
    arms=_PAIRED_ARMS,
    task=Task.MCQ,
    orders="structured",
)
_MAIN: Final = (
    _JUDGE,
    replace(_JUDGE, name="judge-clean", title="judge, clean gold", gold="clean"),
    replace(_JUDGE, name="judge-flips", title="judge, 35% of gold replaced", gold="flips"),
    _MCQ,
    replace(_MCQ, name="mcq-clean", title="MCQ, clean gold", gold="clean"),
)
_SECONDARY: Final = (
    replace(
        _JUDGE,
        name="judge-lora",
        title="judge, noisy gold, LoRA r=8, lr 1e-3",
        arms=tuple(dict.fromkeys((*RIVALS, *FINALISTS))),
        lora=8,
        learning_rate=1e-3,
    ),
    replace(
        _MCQ,
        name="mcq-flips",
        title="MCQ, 35% of gold replaced",
        arms=tuple(dict.fromkeys((*RIVALS, *FINALISTS))),
        gold="flips",
    ),
    replace(
        _MCQ,
        name="mcq-quarter",
        title="MCQ, noisy gold, lambda 0.25",
        arms=("+r_con", "PA-GRPO"),
        lam=0.25,
    ),
    replace(
        _JUDGE,
        name="judge-layouts",
        title="judge, noisy gold, X0-X3, 8 items",
        arms=("PA-GRPO", "exact inv + distill", "SFT + inv", "distill"),
        layouts="all",
        items_per_step=8,
    ),
    replace(
        _JUDGE,
        name="judge-layouts-4",
        title="judge, noisy gold, X0-X3, 8 items, N = 4",
        arms=("PA-GRPO",),
        layouts="all",
        items_per_step=8,
        samples=4,
    ),
)
_ROBUSTNESS: Final = (
    replace(
        _JUDGE,
        name="judge-topic",
        title="judge, held-out topic",
        arms=FINALISTS,
        held_out="topic",
    ),
    replace(
        _JUDGE,
        name="judge-words",
        title="judge, held-out words",
        arms=FINALISTS,
        held_out="words",
    ),
    replace(_MCQ, name="mcq-nouns", title="MCQ, held-out nouns", arms=FINALISTS, held_out="words"),
)
_CONFIRMATION: Final = tuple(
    replace(
        setting,
        name=f"second-{setting.name}",
        title=f"second base: {setting.title}",
        arms=FINALISTS,
        second=True,
    )
    for setting in _MAIN
)

PARTS: Final[Mapping[str, tuple[Setting, ...]]] = {
    "main": _MAIN,
    "secondary": _SECONDARY,
    "robustness": _ROBUSTNESS,
    "confirmation": _CONFIRMATION,
}
SETTINGS: Final = tuple(setting for settings in PARTS.values() for setting in settings)

HEADLINE: Final = tuple(setting.name for setting in _MAIN)
"""Settings that all arms are compared in, and are measured on the way."""

DECOMPOSED: Final = ("judge-noisy", "mcq-noisy", "judge-layouts", "judge-layouts-4")
"""Settings in which labels and orders are also moved apart."""

LAYOUTS: Final[tuple[Protocol, ...]] = ("coupled", "label", "order")
"""What moves with a presentation: both, labels alone, orders alone."""


def _sweep(base: Setting, field: str, values: dict[float | str, str]) -> tuple[Setting, ...]:
    """Settings that differ in one field; those of the tables keep their name and runs."""
    swept = []
    for value, title in values.items():
        setting = replace(base, **{field: value, "title": title}, arms=("PA-GRPO",))
        same = [s.name for s in SETTINGS if s.terms == setting.terms]
        swept.append(replace(setting, name=same[0] if same else f"{base.name}-{field}-{value}"))
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

FIRST_SEED: Final = 5
"""First training seed of the confirmation; nothing was looked at with these seeds."""


def trained_in(setting: Setting, arm: str) -> Setting:
    """The setting whose run stands for this one: where no gold is read, that with noisy gold."""
    if ARMS[arm].reads_gold:
        return setting
    terms = replace(setting, gold="noisy").terms
    return next((other for other in SETTINGS if other.terms == terms), setting)


def jobs(seeds: int, parts: Collection[str] = tuple(PARTS)) -> Iterator[Job]:
    """Every run of these parts, the main one first; the sweeps are secondary."""
    settings = [setting for part, group in PARTS.items() if part in parts for setting in group]
    if "secondary" in parts:
        settings += [setting for group in SWEEPS.values() for setting in group]
    planned: dict[str, Job] = {}
    for setting in settings:
        for number in range(seeds):
            seed = number + FIRST_SEED * setting.second
            for arm in setting.arms:
                job = Job(trained_in(setting, arm), arm, seed)
                planned.setdefault(job.name, job)
    yield from planned.values()
