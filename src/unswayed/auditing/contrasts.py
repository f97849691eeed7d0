"""Methods compared in pairs: differences, the yardstick without gold, and the recommendation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from unswayed.auditing.evaluation import (
    CONSTRUCTED,
    Scored,
    average_of_everything,
    with_reference,
)
from unswayed.auditing.planning import AuditPlan
from unswayed.auditing.pool import with_content
from unswayed.auditing.recommendation import (
    AGREEMENT,
    Candidate,
    Gain,
    Recommendation,
    reaches_zero,
    recommend,
    steadiest,
)
from unswayed.decisions import MISSING, UNPARSED, DecisionTable, Estimate
from unswayed.metrics import difference, measure
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.simultaneous import Contrasts, contrasts

__all__ = ["CONTROL", "compare_methods"]

COMPARED = ("accuracy", "consistency", "consistent_accuracy", "rstd")

CONTROL = "canonical"
"""The method that claims of consistent accuracy are measured against."""

HIGHER_IS_BETTER = ("accuracy", "agreement", "consistency")
"""What methods are recommended for; the differences of these have joint intervals too."""

ByMethod = Mapping[str, Sequence[Outcomes]]


@dataclass(frozen=True, eq=False)
class _Compared:
    """Everything that is compared, by method.

    Attributes:
        judged: Verdicts beside gold.
        yardstick: Verdicts beside those of the average over the full pool; None with gold, or
            where there is no such average.
        constructed: Methods whose verdicts cannot depend on the order whatever the judge does.
        joint: By metric; methods without a value, or with one that is no evidence, are left out.
    """

    judged: ByMethod
    yardstick: ByMethod | None
    constructed: frozenset[str]
    joint: Mapping[str, Contrasts]
    options: Mapping[str, Any]

    def difference(self, first: str, second: str, metric: str) -> Estimate:
        """First minus second, with the joint interval where there is one."""
        outcomes = self.yardstick if metric == "agreement" and self.yardstick else self.judged
        found = mirrored(outcomes, first, second, _measured(metric), self.options)
        if metric in CONSTRUCTED and {first, second} & self.constructed:
            return msgspec.structs.replace(found, by_construction=True)
        family = self.joint.get(metric)
        if family is None or not {first, second} <= set(family.names):
            return found
        together = family.difference(first, second)
        if together.low is None or together.high is None:
            return found
        return msgspec.structs.replace(found, joint=(together.low, together.high))


def compare_methods(
    plan: AuditPlan,
    tables: Sequence[DecisionTable],
    scored: Mapping[str, Scored],
    methods: dict[str, dict[str, Any]],
    options: Mapping[str, Any],
) -> tuple[dict[str, dict[str, Any]], Recommendation]:
    """Paired differences to the single call and to the best method, and the recommendation.

    Without gold, `agreement` is added to the rows of `methods` where there is a yardstick.
    """
    judged = {name: one.outcomes for name, one in scored.items()}
    yardstick = None
    if _value(methods["direct"].get("accuracy")) is None:
        yardstick = _beside_yardstick(plan, tables, judged)
        for name, some in (yardstick or {}).items():
            methods[name]["agreement"] = _agreement(plan, name, some, options)
    joint = {}
    for metric in HIGHER_IS_BETTER:
        outcomes = yardstick if metric == "agreement" else judged
        names = [name for name, row in methods.items() if _is_evidence(row.get(metric))]
        if outcomes is not None and "direct" in names:
            joint[metric] = contrasts(
                {name: outcomes[name] for name in names},
                _measured(metric),
                seed=options["seed"],
                gold_ties=options["gold_ties"],
            )
    constructed = frozenset(name for name, one in scored.items() if one.by_construction)
    compared = _Compared(judged, yardstick, constructed, joint, options)
    found = _recommendation(plan, tables, compared, methods)
    metrics = (*COMPARED, *(["agreement"] if yardstick else []))
    pairs = [(name, "direct") for name in scored if name != "direct"]
    for other in dict.fromkeys((found.best, found.method)):
        if other is not None and other != "direct":
            pairs.extend((name, other) for name in scored if name != other)
    if found.method not in (None, "direct", CONTROL) and CONTROL in scored:
        pairs.append((found.method, CONTROL))
    differences = {
        f"{first}-{second}": {
            metric: _record(compared.difference(first, second, metric)) for metric in metrics
        }
        for first, second in pairs
    }
    return differences, found


def _recommendation(
    plan: AuditPlan,
    tables: Sequence[DecisionTable],
    compared: _Compared,
    methods: Mapping[str, Mapping[str, Any]],
) -> Recommendation:
    gold = _value(methods["direct"].get("accuracy")) is not None
    criterion, key = ("accuracy", "accuracy") if gold else (AGREEMENT, "agreement")
    if not gold and compared.yardstick is None:
        return Recommendation(None, _no_yardstick(plan), criterion)

    def candidates(metric: str) -> dict[str, Candidate]:
        family = compared.joint.get(metric)
        return {
            name: Candidate(
                name,
                float(methods[name]["calls_per_item_amortised"]),
                methods[name][metric]["value"],
            )
            for name in (() if family is None else family.names)
        }

    def gain(metric: str) -> Gain:
        return compared.joint[metric].difference if metric in compared.joint else _no_difference

    found = recommend(
        candidates(key),
        gain(key),
        criterion=criterion,
        n_items=len(plan.items),
        unparsed=_share(tables, UNPARSED),
        missing=_missing_share(compared.judged["direct"]),
    )
    harmless = [name for name in methods if reaches_zero(compared.difference(name, "direct", key))]
    return steadiest(found, candidates("consistency"), gain("consistency"), harmless)


def _no_difference(first: str, second: str) -> Estimate:
    return Estimate(value=None, reason="not compared")


def _record(estimate: Estimate) -> dict[str, Any]:
    """As JSON gives it back: a list for the joint interval."""
    made: dict[str, Any] = msgspec.to_builtins(estimate)
    return made if estimate.joint is None else {**made, "joint": list(estimate.joint)}


def _measured(metric: str) -> str:
    """The registered metric behind a key of a method's row."""
    return "accuracy" if metric == "agreement" else metric


def _is_evidence(estimate: object) -> bool:
    known = _value(estimate) is not None
    return known and isinstance(estimate, dict) and not estimate.get("by_construction")


def _beside_yardstick(
    plan: AuditPlan, tables: Sequence[DecisionTable], judged: ByMethod
) -> ByMethod | None:
    """The verdicts with those of the average over the full pool in the place of gold."""
    reference = average_of_everything(plan.strata, tables)
    if not any((part >= 0).any() for part in reference):
        return None
    return {
        name: tuple(with_reference(o, r) for o, r in zip(some, reference, strict=True))
        for name, some in judged.items()
    }


def _agreement(
    plan: AuditPlan, name: str, outcomes: Sequence[Outcomes], options: Mapping[str, Any]
) -> object:
    method = plan.methods[name]
    if any(len(method.asks(stratum.n)) < len(stratum.views) for stratum in plan.strata):
        return measure(outcomes, names=["accuracy"], **options)["accuracy"]
    reason = "it reads all that the average it would be compared with reads"
    return msgspec.to_builtins(Estimate(value=None, reason=reason))


def _no_yardstick(plan: AuditPlan) -> str:
    if all(len(stratum.views) < 2 for stratum in plan.strata):
        return "there are neither right answers nor a second order to compare with"
    return (
        "there are neither right answers nor probabilities, and where two orders differ nothing "
        "says which of them to believe"
    )


def mirrored(
    outcomes: ByMethod, first: str, second: str, metric: str, options: Mapping[str, Any]
) -> Estimate:
    """The paired difference, first minus second: resampled one way round, so that turning it
    round turns the interval round exactly.
    """
    if first <= second:
        return difference(outcomes[first], outcomes[second], metric, **options)
    found = difference(outcomes[second], outcomes[first], metric, **options)
    value, low, high = (
        None if x is None else 0.0 - x for x in (found.value, found.high, found.low)
    )
    return msgspec.structs.replace(found, value=value, low=low, high=high)


def _value(estimate: object) -> float | None:
    value = estimate.get("value") if isinstance(estimate, dict) else None
    return None if value is None else float(value)


def _share(tables: Sequence[DecisionTable], code: int) -> float:
    tables = [with_content(table) for table in tables]
    asked = sum(int((table.choices != MISSING).sum()) for table in tables)
    return sum(int((table.choices == code).sum()) for table in tables) / max(asked, 1)


def _missing_share(outcomes: Sequence[Outcomes]) -> float:
    cells = missing = 0
    for part in outcomes:
        wanted = np.ones(part.choices.shape, dtype=bool)
        wanted[~part.permutable, 1:] = False
        cells += int(wanted.sum())
        missing += int(((part.choices == MISSING) & wanted).sum())
    return missing / max(cells, 1)
