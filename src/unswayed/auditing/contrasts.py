"""Methods compared in pairs: differences, the yardstick without gold, and the recommendation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from unswayed.auditing.evaluation import Scored, beside_average
from unswayed.auditing.planning import AuditPlan
from unswayed.auditing.pool import with_content
from unswayed.auditing.recommendation import Recommendation, recommend
from unswayed.base.counts import plural
from unswayed.methods import BASE
from unswayed.metrics import METRICS, Need, Options, Row, difference, measure
from unswayed.metrics.accuracy import ACCURACY, FRACTIONAL
from unswayed.metrics.correlation import SPEARMAN
from unswayed.metrics.gold import GOLD_NONE, GOLD_TIE
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.simultaneous import Contrasts, contrasts
from unswayed.metrics.table import compared_metrics
from unswayed.model.decisions import ABSTAINED, MISSING, TIE, UNPARSED, BoolArray, Estimate

ByMethod = Mapping[str, Sequence[Outcomes]]
MOST_LACKING: Final = 0.1
"""Share of the items of a single call that a method may lack and still be compared."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of comparing methods."""

    # by method and metric: what is measured beside the yardstick that stands in for gold; empty
    # with gold, or where there is no yardstick
    beside: Mapping[str, dict[str, Estimate]]
    # by pair of methods, first minus second, and metric, on common items
    differences: Mapping[tuple[str, str], dict[str, Estimate]]
    left_out: Mapping[str, str]  # why methods are not compared
    recommendation: Recommendation  # what to use and why


def compare_methods(
    plan: AuditPlan,
    scored: Mapping[str, Scored],
    rows: Mapping[str, Row],
    options: Options,
) -> Comparison:
    """Paired differences to the single call and to the methods named, and the recommendation."""
    key = _criterion(rows, options)
    yardstick = None if key else beside_average(plan.strata, scored)
    beside = {name: _beside(plan, name, own, options) for name, own in (yardstick or {}).items()}
    common, left_out = _common(scored)
    metrics = compared_metrics()
    sources = {
        metric: source
        for metric, own in metrics.items()
        if (source := yardstick if Need.YARDSTICK in own.needs else common) is not None
        and not all(own.left_out(strata) for strata in source.values())
    }
    gold = {kind for part in scored[BASE].outcomes for kind in part.gold_kind.tolist()} - {
        GOLD_NONE
    }
    lacks = "answers to items with gold" if gold - {GOLD_TIE} else "gold"
    by = "with ties as the only gold" if gold == {GOLD_TIE} else f"without {lacks}"
    without = "" if key else f"{by} nothing can be shown to be more accurate"
    given = Recommendation(margin=plan.settings.margin / 100, criterion=key or "", reason=without)
    if key is not None:
        given = _recommended(plan, scored, sources[key], given, options)
    differences: dict[tuple[str, str], dict[str, Estimate]] = {}
    for metric, source in sources.items():
        values = {name: {**rows[name].estimates, **beside.get(name, {})} for name in common}
        telling = [
            name
            for name, own in values.items()
            if (e := own.get(metric)) and e.value is not None and not e.by_construction
        ]
        for second in filter(None, dict.fromkeys((BASE, given.method, given.most_accurate))):
            joint = {}
            if metrics[metric].compared == "jointly" and {BASE, second} <= set(telling):
                joint = _contrasts(source, telling, metric, options).against(second)
            for first in common:
                if first not in (BASE, second):
                    gap = difference(source[first], source[second], metric, **options)
                    sides = (values[name].get(metric) for name in (first, second))
                    if any(side and side.by_construction for side in sides):
                        gap = msgspec.structs.replace(gap, by_construction=True)
                    elif first in joint and (own := joint[first]).low is not None:
                        gap = msgspec.structs.replace(gap, joint=(own.low, own.high))
                    differences.setdefault((first, second), {})[metric] = gap
    return Comparison(beside, differences, left_out, given)


def _common(scored: Mapping[str, Scored]) -> tuple[ByMethod, dict[str, str]]:
    """Return the verdicts on items with all the answers that every compared method reads, and why methods
    are not compared: they lack some for too many items of the single call.
    """
    answered = {
        name: [(part.answered | ~_asked(part)).all(axis=1) for part in own.outcomes]
        for name, own in scored.items()
    }
    base = np.concatenate(answered[BASE])
    left_out = {}
    for name, parts in answered.items():
        had = int((np.concatenate(parts) & base).sum())
        withheld = [part.choices == ABSTAINED for part in scored[name].outcomes]
        if (abstained := sum(int(part.sum()) for part in withheld)) > 0:
            verdicts = abstained + sum(int(part.answered.sum()) for part in scored[name].outcomes)
            left_out[name] = f"withholds {abstained:,} of {plural(verdicts, 'verdict')}"
        elif had < (1 - MOST_LACKING) * base.sum():
            left_out[name] = f"reads orders recorded for {had:,} of {plural(len(base), 'item')}"
    kept = [name for name in scored if name not in left_out]
    rows = [
        np.flatnonzero(np.logical_and.reduce([answered[name][stratum] for name in kept]))
        for stratum in range(len(scored[BASE].outcomes))
    ]
    if not any(map(len, rows)):
        return {name: scored[name].outcomes for name in kept}, left_out
    return {
        name: tuple(
            part if len(own) == len(part) else part.rows(own)
            for part, own in zip(scored[name].outcomes, rows, strict=True)
        )
        for name in kept
    }, left_out


def _asked(outcomes: Outcomes) -> BoolArray:
    """Return the views that items may be shown in, shape (I, V)."""
    asked: BoolArray = outcomes.permutable[:, None] | (np.arange(outcomes.n_views) == 0)
    return asked


def _contrasts(source: ByMethod, names: Sequence[str], metric: str, options: Options) -> Contrasts:
    own = {name: source[name] for name in names}
    return contrasts(own, metric, seed=options["seed"], gold_ties=options["gold_ties"])


def _recommended(
    plan: AuditPlan,
    scored: Mapping[str, Scored],
    common: ByMethod,
    given: Recommendation,
    options: Options,
) -> Recommendation:
    """Return the recommendation among the methods that are no controls."""
    able = [name for name in common if not plan.methods[name].about.control]
    guesses = [part.gold[part.decided].mean(axis=1) for part in common[BASE]]
    by_luck = given.criterion == METRICS.name_of(FRACTIONAL) and any(map(len, guesses))
    choices = np.concatenate([with_content(own.table).choices.ravel() for own in plan.strata])
    unread, tied, missing = (int((choices == code).sum()) for code in (UNPARSED, TIE, MISSING))
    answered = max(len(choices) - missing, 1)
    lacking = np.concatenate([~part.answered[_asked(part)] for part in scored[BASE].outcomes])
    return recommend(
        _contrasts(common, able, given.criterion, options),
        {name: scored[name].costs.calls_per_item_amortised for name in able},
        given,
        chance=float(np.concatenate(guesses).mean()) if by_luck else None,
        agreed=_agreed(common[BASE]) if options["gold_ties"] == "exclude" else None,
        unread=unread / answered,
        missing=float(lacking.mean()) if len(lacking) else 0.0,
        tied=tied / max(answered - unread, 1) if by_luck else 0.0,
    )


def _agreed(strata: Sequence[Outcomes]) -> tuple[float, float] | None:
    """Return the shares of `recommend`, of items with gold."""
    (part, *others) = strata
    if others or not part.n == part.n_views == 2:
        return None
    alike, right = part.unanimous & part.decided, part.right.all(axis=1)
    return float(alike.sum() / max(part.decided.sum(), 1)), float(right.sum() / max(alike.sum(), 1))


def _criterion(rows: Mapping[str, Row], options: Options) -> str | None:
    """Return the criterion by which methods are compared: human scores before gold.

    Where there are both, a right answer is a level that happens to have the human score.
    """
    accuracy = ACCURACY if options["gold_ties"] == "class" else FRACTIONAL
    keys = map(METRICS.name_of, (SPEARMAN, accuracy))
    return next((key for key in keys if rows[BASE].get(key) is not None), None)


def _beside(
    plan: AuditPlan, name: str, outcomes: Sequence[Outcomes], options: Options
) -> dict[str, Estimate]:
    """Return the estimates of a method beside the yardstick."""
    names = [metric for metric in METRICS if Need.YARDSTICK in METRICS.load(metric).needs]
    asks = plan.methods[name].asks
    if any(len(asks(stratum.n)) < len(stratum.views) for stratum in plan.strata):
        return measure(outcomes, names=names, **options).estimates
    reason = "the average of all orders reads the same calls"
    return dict.fromkeys(names, Estimate(value=None, reason=reason))
