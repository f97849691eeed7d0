"""Measure the gain of a keyed judge where two orders disagree, and false claims of a gain.

The judge of the two orders is the simulated one with a planted preference for the first answer. Its key
is right with a probability that is chosen, independently of everything else. Whoever disagrees with
itself has been right once, so a key that is right with probability q moves the accuracy of `direct`
by (share of disagreements)(q - 1/2), and two keys agree with probability q^2 + (1 - q)^2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from claim_rates.rate import Rate
from unswayed.auditing.audit import Audit, plan_for, run_settings_for
from unswayed.auditing.settings import AuditSettings
from unswayed.backends import Backend
from unswayed.backends.simulated import Draws, SimulatedBackend, SimulatedJudge, simulated_items
from unswayed.base.sync import run_sync
from unswayed.calls import Caller
from unswayed.model.calls import Query, Response, key_of
from unswayed.model.items import ItemSet
from unswayed.store import Memory

TRIALS = 200
ITEMS = 200
MEASURED = 4000
"""Pairs of the audits that measure accuracy and consistency, one per setting."""

SLOTS: Final = (0.0, 0.6, 1.5)
"""Log-odds in favour of the answer shown first."""

KEYS: Final = (0.5, 0.7, 0.9)
"""Probabilities that the key is right; at one half it says nothing."""


class KeyedJudge(Backend):
    """A simulated judge whose keyed calls name the right answer with probability `right`."""

    offline = True
    keyed_by_item = True
    planted = True

    def __init__(self, judge: SimulatedJudge, items: ItemSet, right: float) -> None:
        self.plain = SimulatedBackend(judge)
        self.model = f"{judge.name}&key={right}"
        self.right = right
        self.gold = {item.id: item.gold_candidates()[0] for item in items}

    def respond(self, query: Query) -> Response:
        """The plain judge's answer, or that of the key."""
        if query.ask.prompt_id != "keyed":
            return self.plain.respond(query)
        gold = self.gold[query.item.id]
        solved = Draws(key_of(query.request), self.plain.judge.seed).uniform() < self.right
        label = query.ask.presentation.label_of_candidate(gold if solved else 1 - gold)
        answer = query.request.labels[label]
        return Response(text=f"<think>solved</think><answer>{answer}</answer>", cost_usd=0.0)


def audited(slot: float, right: float, *, count: int, seed: int, noise: float = 0.4) -> Any:
    """The metrics of one audit of direct, vote and apoc."""
    items = simulated_items(count, 2, seed=40_000 + seed)
    judge = SimulatedJudge(slot=(slot,), label=(0.0,), noise=noise, seed=seed)
    backend = KeyedJudge(judge, items, right)
    settings = AuditSettings(methods=("vote", "apoc"), seed=seed, resamples=100)
    caller = Caller(backend, Memory(), run_settings_for(settings, backend))
    audit = Audit.begin(plan_for(items, settings, backend), caller)
    record = audit.measure(run_sync(audit.ask()), command="benchmarks/claims.py keyed")
    return record.metrics


def _value(metrics: Any, method: str, metric: str) -> float:
    return float(metrics.methods[method][metric].value)


def _near(share: float, spread: float, count: int) -> dict[str, float]:
    """Bounds three standard errors around a share that keys alone make vary."""
    margin = 3 * math.sqrt(spread / count) + 1 / count
    return {"at_least": max(share - margin, 0.0), "at_most": min(share + margin, 1.0)}


def measured(slot: float, right: float, count: int) -> Iterator[Rate]:
    """Accuracy and consistency of each method beside what the key must give."""
    metrics = audited(slot, right, count=count, seed=0)
    direct, steady = (_value(metrics, "direct", name) for name in ("accuracy", "consistency"))
    disputed, alike = 1 - steady, right**2 + (1 - right) ** 2
    moved = direct + disputed * (right - 0.5)
    wanted = {
        ("apoc", "accuracy"): _near(moved, disputed * right * (1 - right) / 2, count),
        ("apoc", "consistency"): _near(
            steady + disputed * alike, disputed * alike * (1 - alike), count
        ),
    }
    for method in ("direct", "vote", "apoc"):
        for metric in ("accuracy", "consistency"):
            calls = count * (2 if metric == "accuracy" else 1)
            yield Rate(
                statement=f"{metric}, {method}",
                setting=f"slot {slot}, key right {right:.0%}, {count} pairs",
                count=round(_value(metrics, method, metric) * calls),
                trials=calls,
                **wanted.get((method, metric), {}),
            )


def left_alone(count: int) -> Rate:
    """Verdicts of apoc that are as right as the direct ones on a judge that never contradicts itself."""
    metrics = audited(0.0, 0.0, count=count, seed=1, noise=0.0)
    gap = abs(metrics.differences["apoc-direct"]["accuracy"].value)
    changed = round(gap * count) + round((1 - _value(metrics, "apoc", "consistency")) * count)
    return Rate(
        statement="apoc changes a verdict",
        setting=f"no bias, no noise, every key wrong, {count} pairs",
        count=changed,
        trials=count,
        at_most=0.0,
    )


def claimed(slot: float, right: float, trials: int, *, at_most: float | None) -> Iterator[Rate]:
    """Measure how often apoc's accuracy is called better than that of direct, and apoc is recommended."""
    better = named = 0
    for seed in range(trials):
        metrics = audited(slot, right, count=ITEMS, seed=100 + seed)
        better += metrics.differences["apoc-direct"]["accuracy"].joint[0] > 0
        named += metrics.recommendation.method == "apoc"
    for statement, count in (
        ("apoc is called more accurate", better),
        ("apoc is recommended", named),
    ):
        yield Rate(
            statement=statement,
            setting=f"slot {slot}, key right {right:.0%}, {ITEMS} pairs",
            count=count,
            trials=trials,
            at_most=at_most,
        )


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Measure the method, then claims about it: first without an advantage, then power."""
    runs = trials or TRIALS
    count = MEASURED if trials is None else min(MEASURED, 100 * trials)
    yield left_alone(count)
    for slot in SLOTS:
        for right in KEYS:
            yield from measured(slot, right, count)
    for slot in SLOTS[1:]:
        yield from claimed(slot, 0.5, runs, at_most=0.06)
    for right in (0.6, 0.8):
        for slot in SLOTS[1:]:
            yield from claimed(slot, right, max(1, runs // 4), at_most=None)
