"""Methods compared in pairs: differences, the yardstick without gold, and the recommendation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from unswayed.auditing.evaluation import Scored, average_of_everything, with_reference
from unswayed.auditing.planning import AuditPlan
from unswayed.auditing.pool import with_content
from unswayed.auditing.recommendation import (
    Candidate,
    Gain,
    Recommendation,
    reaches_zero,
    recommend,
    steadiest,
)
from unswayed.decisions import MISSING, UNPARSED, DecisionTable, Estimate
from unswayed.items import Item
from unswayed.methods import BASE, CONTROL
from unswayed.metrics import METRICS, Need, Options, Row, difference, measure
from unswayed.metrics.metric import Criterion
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.simultaneous import Contrasts, contrasts
from unswayed.metrics.table import compared_metrics, ranked_metrics

ByMethod = Mapping[str, Sequence[Outcomes]]
Estimates = Mapping[str, Mapping[str, Estimate]]
"""By method and metric."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing the methods of an audit says.

    Attributes:
        beside: By method and metric: what is measured beside the yardstick that stands in for gold;
            empty with gold, or where there is no yardstick.
        differences: By pair of methods, first minus second, and metric.
        recommendation: What to use and why.
    """

    beside: Mapping[str, dict[str, Estimate]]
    differences: Mapping[tuple[str, str], dict[str, Estimate]]
    recommendation: Recommendation


@dataclass(frozen=True, eq=False)
class _Compared:
    """Everything that is compared.

    Attributes:
        scored: The methods.
        values: What was measured of them.
        outcomes: By metric: verdicts beside gold, or beside the yardstick in its place.
        joint: By metric; methods without a value, or with one that is no evidence, are left out.
    """

    scored: Mapping[str, Scored]
    values: Estimates
    outcomes: Mapping[str, ByMethod]
    joint: Mapping[str, Contrasts]
    options: Options

    def difference(self, first: str, second: str, metric: str) -> Estimate:
        """First minus second, with the joint interval where there is one."""
        plain = self._mirrored(first, second, metric)
        measured = [self.values[name].get(metric) for name in (first, second)]
        if any(own is not None and own.by_construction for own in measured):
            return msgspec.structs.replace(plain, by_construction=True)
        family = self.joint.get(metric)
        if family is None or not {first, second} <= set(family.names):
            return plain
        together = family.difference(first, second)
        if together.low is None or together.high is None:
            return plain
        return msgspec.structs.replace(plain, joint=(together.low, together.high))

    def _mirrored(self, first: str, second: str, metric: str) -> Estimate:
        """First minus second, resampled one way round, so that turning it round turns the interval
        round exactly.
        """
        a, b = sorted((first, second))
        outcomes = self.outcomes[metric]
        upright = difference(outcomes[a], outcomes[b], metric, **self.options)
        if first == a:
            return upright
        ends = (upright.value, upright.high, upright.low)
        value, low, high = (None if end is None else 0.0 - end for end in ends)
        return msgspec.structs.replace(upright, value=value, low=low, high=high)

    def candidates(self, metric: str) -> dict[str, Candidate]:
        """The methods that may be recommended by a metric."""
        names = self.joint[metric].names if metric in self.joint else ()
        return {
            name: Candidate(name, self.scored[name].costs.calls_per_item_amortised, value)
            for name in names
            if (value := self.values[name][metric].value) is not None
        }

    def gain(self, metric: str) -> Gain:
        """Differences of a metric that hold for all methods together."""
        return self.joint[metric].difference if metric in self.joint else _no_difference


def compare_methods(
    plan: AuditPlan,
    tables: Sequence[DecisionTable],
    scored: Mapping[str, Scored],
    rows: Mapping[str, Row],
    options: Options,
) -> Comparison:
    """Paired differences to the single call and to the best method, and the recommendation.

    Without gold the average over the full pool is the yardstick, where there is one.
    """
    criterion = _criterion(rows)
    yardstick = None if criterion else _beside_yardstick(plan, tables, scored)
    beside = {name: _beside(plan, name, own, options) for name, own in (yardstick or {}).items()}
    compared = _compared(scored, rows, yardstick, beside, options)
    key, words = criterion or _criterion_of(Need.YARDSTICK)
    recommendation = _recommendation(plan, tables, compared, key, words)
    pairs = [(name, BASE) for name in scored if name != BASE]
    for other in dict.fromkeys((recommendation.best, recommendation.method)):
        if other is not None and other != BASE:
            pairs.extend((name, other) for name in scored if name != other)
    method = recommendation.method
    if method not in (None, BASE, CONTROL) and CONTROL in scored:
        pairs.append((method, CONTROL))
    differences = {
        pair: {metric: compared.difference(*pair, metric) for metric in compared.outcomes}
        for pair in pairs
    }
    return Comparison(beside, differences, recommendation)


def _compared(
    scored: Mapping[str, Scored],
    rows: Mapping[str, Row],
    yardstick: ByMethod | None,
    beside: Estimates,
    options: Options,
) -> _Compared:
    values = {name: {**row.estimates, **beside.get(name, {})} for name, row in rows.items()}
    judged = {name: own.outcomes for name, own in scored.items()}
    metrics = compared_metrics()
    outcomes = {
        name: source
        for name, metric in metrics.items()
        if (source := yardstick if Need.YARDSTICK in metric.needs else judged) is not None
        and not all(metric.left_out(strata) for strata in source.values())
    }
    joint = {}
    for metric, source in outcomes.items():
        names = [name for name, own in values.items() if _is_evidence(own.get(metric))]
        if metrics[metric].compared == "jointly" and BASE in names:
            joint[metric] = contrasts(
                {name: source[name] for name in names},
                metric,
                base=BASE,
                seed=options["seed"],
                gold_ties=options["gold_ties"],
            )
    return _Compared(scored, values, outcomes, joint, options)


def _recommendation(
    plan: AuditPlan,
    tables: Sequence[DecisionTable],
    compared: _Compared,
    key: str,
    criterion: Criterion,
) -> Recommendation:
    if key not in compared.outcomes:
        return Recommendation(None, _no_yardstick(plan), criterion.name)
    recommendation = recommend(
        compared.candidates(key),
        compared.gain(key),
        criterion=criterion,
        n_items=_n_asked(plan.items.items),
        unparsed=_share(tables, UNPARSED),
        missing=_missing_share(compared.scored[BASE].outcomes),
    )
    harmless = [
        name for name in compared.scored if reaches_zero(compared.difference(name, BASE, key))
    ]
    steady = next(name for name, metric in ranked_metrics().items() if metric.steadiness)
    return steadiest(recommendation, compared.candidates(steady), compared.gain(steady), harmless)


def _n_asked(items: Sequence[Item]) -> int:
    """How many items there are, those with several criteria counted once."""
    if all(item.criterion is None for item in items):
        return len(items)
    return len({item.asked_as for item in items})


def _criterion(rows: Mapping[str, Row]) -> tuple[str, Criterion] | None:
    """What methods are recommended by where people have said something: human scores before gold.

    Where there are both, a right answer is a level that happens to have the human score.
    """
    kinds = (_criterion_of(Need.HUMAN), _criterion_of(None))
    return next((own for own in kinds if rows[BASE].get(own[0]) is not None), None)


def _criterion_of(need: Need | None) -> tuple[str, Criterion]:
    """The metric to recommend by beside human scores, the yardstick or, without either, gold."""
    return next(
        (name, metric.criterion)
        for name, metric in ranked_metrics().items()
        if metric.criterion is not None
        and next((own for own in metric.needs if own in (Need.HUMAN, Need.YARDSTICK)), None) is need
    )


def _no_difference(first: str, second: str) -> Estimate:
    return Estimate(value=None, reason="not compared")


def _is_evidence(estimate: Estimate | None) -> bool:
    return estimate is not None and estimate.value is not None and not estimate.by_construction


def _beside_yardstick(
    plan: AuditPlan, tables: Sequence[DecisionTable], scored: Mapping[str, Scored]
) -> ByMethod | None:
    """The verdicts with those of the average over the full pool in the place of gold."""
    reference = average_of_everything(plan.strata, tables)
    if not any((part >= 0).any() for part in reference):
        return None
    return {
        name: tuple(with_reference(o, r) for o, r in zip(own.outcomes, reference, strict=True))
        for name, own in scored.items()
    }


def _beside(
    plan: AuditPlan, name: str, outcomes: Sequence[Outcomes], options: Options
) -> dict[str, Estimate]:
    """What is measured of a method beside the yardstick."""
    names = [metric for metric in METRICS if Need.YARDSTICK in METRICS.load(metric).needs]
    method = plan.methods[name]
    if any(len(method.asks(stratum.n)) < len(stratum.views) for stratum in plan.strata):
        row = measure(outcomes, names=names, **options)
        return {metric: row[metric] for metric in names}
    reason = "it reads all that the average it would be compared with reads"
    return dict.fromkeys(names, Estimate(value=None, reason=reason))


def _no_yardstick(plan: AuditPlan) -> str:
    if all(len(stratum.views) < 2 for stratum in plan.strata):
        return "there are neither right answers nor a second order to compare with"
    return (
        "there are neither right answers nor probabilities, and where two orders differ nothing "
        "says which of them to believe"
    )


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
