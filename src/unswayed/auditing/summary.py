"""metrics.json: every number of an audit, from one pool of decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from unswayed.auditing.contrasts import compare_methods
from unswayed.auditing.evaluation import Scored, score_method
from unswayed.auditing.planning import AuditPlan
from unswayed.auditing.pool import DecisionSource
from unswayed.auditing.records import LevelChoices, Metrics
from unswayed.base.counts import plural
from unswayed.methods import BASE, Method
from unswayed.methods.threshold import ThresholdView, threshold_view
from unswayed.metrics import METRICS, Options, Row, flips, measure, measure_groups, self_check
from unswayed.metrics.abstention import risk_curve
from unswayed.metrics.accuracy import ACCURACY
from unswayed.metrics.consistency import CONSISTENCY
from unswayed.metrics.improvements import Improvements, improved_regressed
from unswayed.metrics.rates import level_choices
from unswayed.metrics.rows import Beside
from unswayed.model.decisions import MISSING, REASKED, SCORE, Estimate

MOST_REASKED = 0.02
"""Share of replies asked again above which figures without them are reported too."""


def evaluate(plan: AuditPlan, source: DecisionSource) -> Metrics:
    """Return the sections of `metrics.json` that come from decisions; the others are left empty."""
    settings = plan.settings
    options = Options(
        resamples=settings.resamples, seed=settings.seed, gold_ties=settings.gold_ties
    )
    score = partial(_scored, plan, source)
    curve = partial(_curve, plan, options)
    scored = {name: score(method) for name, method in plan.methods.items()}
    protocols: dict[str, Row] = {
        protocol: measure([own.single_calls[protocol] for own in plan.strata], **options)
        for protocol in plan.strata[0].protocols
    }
    rows = {name: _row(own, options) for name, own in scored.items()}
    groups, macro = _groups(scored, options)
    comparison = compare_methods(plan, scored, rows, options)
    return Metrics(
        protocols=protocols,
        methods={
            name: row.with_values(comparison.beside.get(name, {})).with_beside(
                **asdict(scored[name].costs),
                exposure={n: shown.counts for n, shown in scored[name].exposures.items()},
            )
            for name, row in rows.items()
        },
        differences={"-".join(pair): own for pair, own in comparison.differences.items()},
        recommendation=comparison.recommendation,
        groups=groups,
        macro=macro,
        skipped=dict(plan.skipped),
        cautions={
            name: said
            for name, own in scored.items()
            if (said := _cautions(name, own, comparison.left_out))
        },
        flips=asdict(flips(scored[BASE].outcomes)),
        thresholds=_thresholds(plan, scored),
        # how good fitted methods are with fewer or more estimation items
        estimation_curve={
            name: tuple(_point(score(method, items=n), options, items=n) for n in sizes)
            for name, method in plan.methods.items()
            if method.fitted_from
        }
        if (sizes := plan.settings.estimation_sizes)
        else UNSET,
        order_curve=curve(
            lambda own: [
                score(own, prefix=prefix)
                for prefix in sorted({p for part in plan.strata for p in own.prefixes(part.n)})
            ]
        ),
        call_curve=curve(lambda own: [score(way) for way in own.settings()], changes=True),
        risk_curve={
            name: points
            for name, method in plan.methods.items()
            if method.abstains and (points := risk_curve(scored[name].outcomes))
        }
        or UNSET,
        improvements=_improvements(plan, scored),
        level_choices=_level_choices(plan),
        without_reasked=_without_reasked(plan, scored, options),
    )


def _without_reasked(
    plan: AuditPlan, scored: Mapping[str, Scored], options: Options
) -> dict[str, Row] | UnsetType:
    """Measure accuracy and consistency without items that were asked again, if they are many."""
    tables = [stratum.table for stratum in plan.strata]
    marks = [table.marked(REASKED) for table in tables]
    replies = sum(int((table.choices != MISSING).sum()) for table in tables)
    kept = [np.flatnonzero(~own.any(axis=1)) for own in marks]
    if sum(int(own.sum()) for own in marks) <= MOST_REASKED * replies or not any(map(len, kept)):
        return UNSET
    names = list(map(METRICS.name_of, (ACCURACY, CONSISTENCY)))

    def row(own: Scored) -> Row:
        outcomes = [o.rows(rows) for o, rows in zip(own.outcomes, kept, strict=True)]
        return measure(outcomes, names=names, constructed=own.by_construction, **options)

    return {name: Row(row(own).values) for name, own in scored.items()}


def _improvements(
    plan: AuditPlan, scored: Mapping[str, Scored]
) -> dict[str, Improvements] | UnsetType:
    """Count, where candidates are scored, the items that each method gets right and the single call does not."""
    if not any(SCORE in stratum.table.ratings for stratum in plan.strata):
        return UNSET
    base = scored[BASE].outcomes
    own = {
        f"{name}-{BASE}": improved_regressed(other.outcomes, base)
        for name, other in scored.items()
        if name != BASE
    }
    return {pair: counts for pair, counts in own.items() if counts.n} or UNSET


def _level_choices(plan: AuditPlan) -> dict[int, LevelChoices] | UnsetType:
    """Count level choices by position, where the candidates are levels with values."""
    counted = {}
    for stratum in plan.strata:
        values = stratum.table.values
        if values is not None:
            scales = {tuple(sorted(own)) for own in values.tolist()}
            chosen, shown = level_choices(stratum.single_calls["coupled"], values)
            counted[stratum.n] = LevelChoices(
                values=scales.pop() if len(scales) == 1 else None,
                chosen=tuple(map(tuple, chosen.tolist())),
                shown=tuple(map(tuple, shown.tolist())),
            )
    return counted or UNSET


def _thresholds(plan: AuditPlan, scored: Mapping[str, Scored]) -> ThresholdView | UnsetType:
    """For two candidates: every single-call method as a threshold on P(A), and the oracle's."""
    for stratum in plan.strata:
        if stratum.n != 2 or stratum.table.probs is None:
            continue
        fitted = [
            own.fitted[0] if own.fitted else plan.methods[name] for name, own in scored.items()
        ]
        single = [method for method in fitted if len(method.asks(2)) == 1]
        named = stratum.unanswered.gold
        gold = [
            candidate if count == 1 else None
            for candidate, count in zip(
                named.argmax(axis=1).tolist(), named.sum(axis=1).tolist(), strict=True
            )
        ]
        return threshold_view(single, stratum.table, gold)
    return UNSET


def _scored(
    plan: AuditPlan,
    source: DecisionSource,
    method: Method,
    items: int | None = None,
    prefix: int | None = None,
) -> Scored:
    return score_method(
        method,
        plan.strata,
        source,
        estimation_items=items or plan.settings.estimation_items,
        samples=plan.samples,
        prefix=prefix,
    )


def _point(
    scored: Scored, options: Options, *, items: int | None = None, changed: Estimate | None = None
) -> Row:
    """Return a point of a curve: a method with so many estimation items, or with fewer or more calls."""
    costs, constructed = scored.costs, items is None and scored.by_construction
    beside = Beside(calls_per_item=costs.calls_per_item, changed=changed)
    if items is not None:
        amortised = costs.calls_per_item_amortised
        beside = Beside(estimation_items=items, calls_per_item_amortised=amortised)
    # items with different numbers of candidates have no RStd over all
    names = [name for name in METRICS if METRICS.load(name).curve]
    row = measure(scored.outcomes, names=names, constructed=constructed, **options)
    return Row(row.values, beside)


def _curve(
    plan: AuditPlan,
    options: Options,
    scored_by: Callable[[Method], Sequence[Scored]],
    *,
    changes: bool = False,
) -> dict[str, tuple[Row, ...]] | UnsetType:
    """Measure methods with fewer or more calls, where wanted with the share of verdicts that change."""
    curve = {}
    for name, method in plan.methods.items():
        if scored := scored_by(method):
            changed = [_changed(own, scored[-1], options) if changes else None for own in scored]
            pairs = zip(scored, changed, strict=True)
            curve[name] = tuple(_point(own, options, changed=share) for own, share in pairs)
    return curve or UNSET


def _changed(own: Scored, whole: Scored, options: Options) -> Estimate:
    """Estimate the share of items, in their own order, whose verdict differs from the whole method's."""
    outcomes = [
        replace(
            part,
            shown=part.shown[:1],
            choices=part.choices[:, :1],
            gold=other.choices[:, :1] == np.arange(part.n),
            gold_kind=(other.choices[:, 0] >= 0).astype(np.int8),
            probs=None,
            tied=None,
            score=None,
            scores=None,
        )
        for part, other in zip(own.outcomes, whole.outcomes, strict=True)
    ]
    name = METRICS.name_of(ACCURACY)
    same = measure(outcomes, names=[name], **options)[name]
    value, low, high = (
        None if end is None else 1 - end for end in (same.value, same.high, same.low)
    )
    return msgspec.structs.replace(same, value=value, low=low, high=high)


def _cautions(name: str, scored: Scored, left_out: Mapping[str, str]) -> tuple[str, ...]:
    """Collect warnings of fitting, the first sentence with the number of folds that agree, and that a method
    lacks the answers to be compared.
    """
    said = [*scored.remarks]
    if scored.cautions:
        first, *others = scored.cautions
        more = f" ({plural(len(others), 'more fold')} gave this warning.)" if others else ""
        said.append(f"{first}{more}")
    if name in left_out:
        said.append(f"{name} {left_out[name]}. Its row has fewer verdicts and is not compared.")
    return tuple(said)


def _row(scored: Scored, options: Options) -> Row:
    row = measure(scored.outcomes, constructed=scored.by_construction, **options)
    self_check(row, scored.outcomes)
    return row


def _groups(
    scored: Mapping[str, Scored], options: Options
) -> tuple[dict[str, dict[str, Row]], dict[str, Row]]:
    """Group to method to row, and method to averages over groups."""
    groups: dict[str, dict[str, Row]] = {}
    macro: dict[str, Row] = {}
    for name, own in scored.items():
        rows, average = measure_groups(own.outcomes, constructed=own.by_construction, **options)
        for group, row in rows.items():
            groups.setdefault(group, {})[name] = row
        if average is not None:
            macro[name] = average
    return groups, macro
