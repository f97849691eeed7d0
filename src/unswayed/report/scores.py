"""Candidates with scores, in lists or as the levels of a scale: what the order does to the scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec
import numpy as np
from markupsafe import Markup
from msgspec import UNSET

from unswayed.auditing.records import LevelChoices
from unswayed.base.counts import plural
from unswayed.base.visible import one_line
from unswayed.methods.bias_cost import bias_cost, cheapest, cheapest_of_all, position_shares
from unswayed.metrics import METRICS, correlation, score_effects
from unswayed.metrics.improvements import Improvements
from unswayed.metrics.rows import Rates, Row
from unswayed.model.decisions import Estimate
from unswayed.model.permutations import Exposure, Order, balanced
from unswayed.report.findings import ACCURACY, CONSISTENCY, SPEARMAN, Finding
from unswayed.report.heat import Heat, exposure_heat, share_heat
from unswayed.report.intervals import SlotFinding, above, below, widened
from unswayed.report.numerals import figure, gained
from unswayed.report.plots import (
    MOST_GROUPS,
    RHO,
    Axis,
    Note,
    PlotBlock,
    PlotRow,
    PlotTable,
    of_curve,
    place_name,
    plotted,
)
from unswayed.report.sections import Claim, Section, claim, joint_claim
from unswayed.report.words import plain, sentence

KENDALL: Final = METRICS.name_of(correlation.KENDALL)
PEARSON: Final = METRICS.name_of(correlation.PEARSON)
POSITION_SCORE: Final = METRICS.name_of(score_effects.POSITION_SCORE)
RANK_STABILITY: Final = METRICS.name_of(score_effects.RANK_STABILITY)
SHIFT: Final = METRICS.name_of(score_effects.SCORE_SHIFT)
SPREAD: Final = METRICS.name_of(score_effects.WITHIN_ITEM_SD)


def lede_of(finding: Finding) -> Markup:
    """Return the sentences below the headline."""
    return sentence("lead.lede", finding, lists_of(finding), scale_of(finding))


def score_sections(findings: Sequence[Finding]) -> list[Section]:
    """Return the sections on scores, in lists and on scales; none where no run has scores."""
    sections = []
    if joint := joint_claim(findings, _lists_claim, "lists"):
        curves = [table for finding in findings for table in curve_tables(finding)]
        heats = tuple(heat for finding in findings for heat in exposure_heats(finding))
        sections.append(
            Section(
                joint,
                sentence("lists.caption", bool(curves), bool(heats)),
                tables=(*points_tables(findings), *curves),
                heats=heats,
                gains=tuple((one_line(f.name), won) for f in findings if (won := gains_of(f))),
            )
        )
    if joint := joint_claim(findings, _scale_claim, "scales"):
        tables = (*correlation_tables(findings), *group_tables(findings))
        heats = tuple(heat for finding in findings for heat in level_heats(finding))
        caption = sentence("scales.caption", bool(tables), bool(heats))
        sections.append(Section(joint, caption, tables=tables, heats=heats))
    return sections


# Lists: what a place is worth, and how steady rankings are.


@dataclass(frozen=True, slots=True)
class Lists:
    """Effect of the order on scores."""

    n: int  # candidates of the lists that places are described for
    # Places whose interval, which holds for all places together, lies above 0, the best one first,
    # and those whose interval lies below 0, the worst one first. Their rates are points.
    gains: tuple[SlotFinding, ...]
    losses: tuple[SlotFinding, ...]
    measured: bool  # whether points by position were measured
    # agreement of the rankings of single calls; None where it was not measured
    stability: Estimate | None


def points_of(finding: Finding) -> Rates:
    """Points by position of single calls, of the lists with `Finding.n` candidates."""
    row = finding.plain
    rates = row.values.get(POSITION_SCORE, ())
    if not rates or any(rate.value is None for rate in rates):
        rates = row.strata[finding.n].values.get(POSITION_SCORE, ()) if row.strata else ()
    return () if any(rate.value is None for rate in rates) else rates


def lists_of(finding: Finding) -> Lists | None:
    """Measure the effect of the order on scores; None where candidates were not scored, or on too few items."""
    stability, rates = finding.plain.get(RANK_STABILITY), points_of(finding)
    if not finding.recommends or (stability is None and not rates):
        return None
    places = [
        SlotFinding("position", index, widened(rate, len(rates)))
        for index, rate in enumerate(rates)
    ]
    by_points = sorted(places, key=lambda place: place.rate.value or 0.0)
    return Lists(
        n=finding.n,
        gains=tuple(place for place in reversed(by_points) if above(place.rate, 0.0)),
        losses=tuple(place for place in by_points if below(place.rate, 0.0)),
        measured=bool(rates),
        stability=stability,
    )


def _lists_claim(finding: Finding) -> Claim | None:
    lists = lists_of(finding)
    return None if lists is None else claim("lists.lists", finding, lists)


def gains_of(finding: Finding) -> dict[str, Improvements]:
    """Return the improvements of each method on the single call, with the exact test."""
    kept = finding.metrics.improvements
    if kept is UNSET:
        return {}
    return {pair.removesuffix(f"-{finding.base}"): counts for pair, counts in kept.items()}


def uneven_orders(finding: Finding) -> Iterator[tuple[str, int, Exposure]]:
    """Methods that read orders which do not show every candidate first equally often."""
    for method, row in finding.metrics.methods.items():
        for n, counts in row.beside.exposure.items():
            shown = Exposure(counts)
            if not shown.is_even_first:
                yield method, n, shown


def points_tables(findings: Sequence[Finding]) -> list[PlotTable]:
    """Points by position, all runs on one axis."""
    measured = [(finding, points_of(finding)) for finding in findings]
    ends = [
        abs(end or 0.0) for _, rates in measured for r in rates for end in (r.low, r.value, r.high)
    ]
    reach = next((own for own in (1, 2, 5, 10, 20, 50) if own >= max(ends, default=0)), 100)
    axis = Axis(
        -reach,
        reach,
        write=gained,
        tick=lambda value: f"+{figure(value)}" if value > 0 else figure(value),
        unit="",
    )

    def row(finding: Finding, index: int, rate: Estimate, n: int) -> PlotRow:
        joint = widened(rate, n)
        on = above(joint, 0.0) or below(joint, 0.0)
        return PlotRow(place_name(finding, index, n, "order"), rate, 0.0, on, axis=axis)

    blocks = (
        PlotBlock(
            tuple(row(finding, index, rate, len(rates)) for index, rate in enumerate(rates)),
            finding.name,
            note=Note("no effect: 0", 0.5),
        )
        for finding, rates in measured
    )
    sub = f"points, minus the {findings[0].noun}'s own mean"
    return plotted("Points for each position", "groups", blocks, sub)


def curve_tables(finding: Finding) -> list[PlotTable]:
    """Return the accuracy of methods with only the first of their orders."""

    def row(key: str, point: Row) -> PlotRow:
        estimate = point.get(key)
        if estimate and estimate.by_construction:  # its interval says nothing
            estimate = msgspec.structs.replace(estimate, low=None, high=None)
        return PlotRow(plural(round(point.calls or 0), "order"), estimate, on=True)

    curve, sub = finding.metrics.order_curve or {}, "%, by number of orders read"
    titles = {
        key: ", ".join(filter(None, (METRICS.load(key).title, finding.name)))
        for key in (ACCURACY, CONSISTENCY)
    }
    return [
        table
        for key, title in titles.items()
        for table in of_curve(title, "groups", curve, partial(row, key), sub)
    ]


def exposure_heats(finding: Finding) -> list[Heat]:
    """Return the sets of orders that are not even."""
    return [
        exposure_heat(
            plain(sentence("lists.uneven_title", method, finding.name)),
            plain(sentence("lists.uneven_sub", n, shown.orders, finding.noun)),
            finding.noun,
            shown.counts,
        )
        for method, n, shown in uneven_orders(finding)
    ]


# Scales: how close to human scores, and what the order of the levels costs.


@dataclass(frozen=True, slots=True)
class Cost:
    """An order of the levels, lowest value 0, and its bias cost."""

    order: Order
    cost: float


@dataclass(frozen=True, slots=True)
class Scale:
    """Scores of single calls."""

    now: Estimate | None  # rank correlation of single calls with human scores; None without those
    then: Estimate | None  # the same of the recommended method, where that is another one
    others: Mapping[str, Estimate]  # further correlations of single calls, by title
    gain: Estimate | None  # its rank correlation less that of single calls
    spread: Estimate | None  # standard deviation of the scores of one response over the orders
    shift: Estimate | None  # what its own order adds to a score; None where its interval holds 0


def scale_of(finding: Finding) -> Scale | None:
    """Return the scores of single calls; None where candidates are no levels, or on too few items."""
    if not finding.metrics.data.scaled or not finding.recommends:
        return None
    method = finding.recommended
    other = None if method in (None, finding.base) else finding.metrics.methods[method or ""]
    base = finding.base_row
    shift = finding.plain.get(SHIFT)
    return Scale(
        now=base.get(SPEARMAN),
        then=None if other is None else other.get(SPEARMAN),
        others={METRICS.load(k).title: e for k in (PEARSON, KENDALL) if (e := base.get(k))},
        gain=None
        if other is None
        else finding.difference(method or "", finding.base or "", SPEARMAN),
        spread=finding.plain.get(SPREAD),
        shift=shift if shift is not None and (above(shift, 0.0) or below(shift, 0.0)) else None,
    )


def _scale_claim(finding: Finding) -> Claim | None:
    scale = scale_of(finding)
    if scale is None:
        return None
    costs = [(n, costs_of(counted)) for n, counted in _level_choices(finding).items()]
    return claim("scales.scales", finding, scale, costs)


def _level_choices(finding: Finding) -> Mapping[int, LevelChoices]:
    kept = finding.metrics.level_choices
    return {} if kept is UNSET else kept


def costs_of(counted: LevelChoices) -> tuple[Cost, Cost, Cost, Cost]:
    """Bias costs: the usual scale, the reverse, the least of the 2n orders, the least of all."""
    n = len(counted.chosen)
    chosen, shown = (np.array(part, dtype=np.float64) for part in (counted.chosen, counted.shown))
    shares = position_shares(chosen, shown, added=1 / n)
    usual = tuple(range(n))
    orders = (usual, usual[::-1], cheapest(shares, balanced(n)), cheapest_of_all(shares))
    first, reverse, tried, best = (Cost(order, bias_cost(shares, order)) for order in orders)
    return first, reverse, tried, best


def level_heats(finding: Finding) -> list[Heat]:
    """Return the level choices by position, a table for each number of levels."""
    heats, levels = [], _level_choices(finding)
    for n, counted in levels.items():
        values = counted.values
        labels = [str(level + 1) for level in range(n)] if values is None else map(figure, values)
        title, sub = (
            plain(
                sentence(
                    f"scales.heat_{part}", n if len(levels) > 1 else 0, finding.name, values is None
                )
            )
            for part in ("title", "sub")
        )
        heats.append(share_heat(title, sub, list(labels), counted.chosen))
    return heats


def correlation_tables(findings: Sequence[Finding]) -> list[PlotTable]:
    """Rank correlation with human scores by method; the table of methods has the others."""
    blocks = (
        PlotBlock(
            tuple(
                PlotRow(one_line(name), own, on=name == finding.recommended, axis=RHO)
                for name, row in finding.metrics.methods.items()
                if (own := row.get(SPEARMAN)) is not None
            ),
            finding.name,
        )
        for finding in findings
    )
    return plotted(METRICS.load(SPEARMAN).title, "runs", blocks, "with human scores, by method")


def group_tables(findings: Sequence[Finding]) -> list[PlotTable]:
    """Rank correlation of single calls by group, beside that of all items."""
    blocks = []
    for finding in findings:
        whole = finding.base_row.get(SPEARMAN)
        measured = [
            (own, one_line(group))
            for group, methods in finding.metrics.groups.items()
            if (row := methods.get(finding.base or "")) is not None
            and (own := row.get(SPEARMAN)) is not None
        ]
        measured.sort(key=lambda pair: pair[0].value or 0.0)
        line = None if whole is None else whole.value
        rows = (PlotRow(name, own, line, axis=RHO) for own, name in measured)
        if len(measured) > 1:
            blocks.append(PlotBlock(tuple(rows)[:MOST_GROUPS], finding.name))
    sub = "single calls with human scores; dashed: all items"
    return plotted(f"{METRICS.load(SPEARMAN).title} by group", "groups", blocks, sub)
