"""Scores on a scale: how close they are to human scores, and what the order of the levels costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import UNSET

from unswayed.auditing.records import LevelChoices
from unswayed.decisions import Estimate
from unswayed.methods.bias_cost import bias_cost, cheapest, cheapest_of_all, position_shares
from unswayed.metrics import METRICS, correlation, score_spread
from unswayed.permutations import Order, balanced
from unswayed.report.findings import SPEARMAN, Finding
from unswayed.report.heat import Heat, share_heat
from unswayed.report.intervals import above, below
from unswayed.report.numerals import figure
from unswayed.report.plots import RHO, PlotBlock, PlotRow, PlotTable
from unswayed.report.sections import Section, claim, joint_claim
from unswayed.report.words import plain, sentence
from unswayed.visible import one_line

KENDALL: Final = METRICS.name_of(correlation.KENDALL)
PEARSON: Final = METRICS.name_of(correlation.PEARSON)
SHIFT: Final = METRICS.name_of(score_spread.SCORE_SHIFT)
SPREAD: Final = METRICS.name_of(score_spread.WITHIN_ITEM_SD)

MOST_GROUPS = 60


@dataclass(frozen=True, slots=True)
class Cost:
    """An order of the levels, lowest value 0, and its bias cost."""

    order: Order
    cost: float


@dataclass(frozen=True, slots=True)
class Scale:
    """What single calls score."""

    now: Estimate | None  # rank correlation of single calls with human scores; None without those
    then: Estimate | None  # the same of the recommended method, where that is another one
    others: Mapping[str, Estimate]  # further correlations of single calls, by title
    gain: Estimate | None  # its rank correlation less that of single calls
    spread: Estimate | None  # standard deviation of the scores of one response over the orders
    shift: Estimate | None  # what its own order adds to a score; None where its interval holds 0


def scale_of(finding: Finding) -> Scale | None:
    """What single calls score; None where candidates are no levels, or on too few items."""
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


def costs_of(counted: LevelChoices) -> tuple[Cost, Cost, Cost, Cost]:
    """Bias costs: the usual scale, the reverse, the least of the 2n orders, the least of all."""
    n = len(counted.chosen)
    chosen, shown = (np.array(part, dtype=np.float64) for part in (counted.chosen, counted.shown))
    shares = position_shares(chosen, shown, added=1 / n)
    usual = tuple(range(n))
    orders = (usual, usual[::-1], cheapest(shares, balanced(n)), cheapest_of_all(shares))
    first, reverse, tried, best = (Cost(order, bias_cost(shares, order)) for order in orders)
    return first, reverse, tried, best


def scales_section(findings: Sequence[Finding]) -> Section | None:
    """Scores and human scores, levels by position; None where no run scored on a scale."""
    told = [
        None if (own := scale_of(f)) is None else claim("scales.scales", f, own, _costs(f))
        for f in findings
    ]
    joint = joint_claim(findings, told, "scales")
    if joint is None:
        return None
    heats = [heat for finding in findings for heat in level_heats(finding)]
    tables = [*correlation_tables(findings), *group_tables(findings)]
    caption = sentence("scales.caption", bool(tables), bool(heats))
    return Section(joint, caption, tables=tuple(tables), heats=tuple(heats))


def _costs(finding: Finding) -> list[tuple[int, tuple[Cost, ...]]]:
    kept = finding.metrics.level_choices
    return [] if kept is UNSET else [(n, costs_of(counted)) for n, counted in kept.items()]


def level_heats(finding: Finding) -> list[Heat]:
    """Which level was chosen at which position, a table for each number of levels."""
    kept = finding.metrics.level_choices
    if kept is UNSET:
        return []
    several = len(kept) > 1
    heats = []
    for n, counted in kept.items():
        values = counted.values
        labels = [str(level + 1) for level in range(n)] if values is None else map(figure, values)
        title, sub = (
            plain(
                sentence(f"scales.heat_{part}", n if several else 0, finding.name, values is None)
            )
            for part in ("title", "sub")
        )
        heats.append(share_heat(title, sub, list(labels), counted.chosen))
    return heats


def correlation_tables(findings: Sequence[Finding]) -> list[PlotTable]:
    """Rank correlation with human scores by method; the table of methods has the others."""
    blocks = []
    for finding in findings:
        rows = tuple(
            PlotRow(one_line(name), row.get(SPEARMAN), on=name == finding.recommended, axis=RHO)
            for name, row in finding.metrics.methods.items()
            if row.get(SPEARMAN) is not None
        )
        blocks += [PlotBlock(rows, finding.name)] if rows else []
    title, sub = METRICS.load(SPEARMAN).title, "with human scores, by method"
    return [PlotTable(title, "runs", tuple(blocks), sub)] if blocks else []


def group_tables(findings: Sequence[Finding]) -> list[PlotTable]:
    """Rank correlation of single calls by group, beside that of all items."""
    blocks = []
    for finding in findings:
        whole = finding.base_row.get(SPEARMAN)
        rows = [
            PlotRow(
                one_line(group),
                own,
                None if whole is None else whole.value,
                axis=RHO,
            )
            for group, methods in finding.metrics.groups.items()
            if (row := methods.get(finding.base or "")) is not None
            and (own := row.get(SPEARMAN)) is not None
        ]
        if len(rows) > 1:
            rows.sort(key=lambda row: (row.estimate.value or 0.0) if row.estimate else 0.0)
            blocks.append(PlotBlock(tuple(rows[:MOST_GROUPS]), finding.name))
    sub = "single calls with human scores; dashed: all items"
    title = f"{METRICS.load(SPEARMAN).title} by group"
    return [PlotTable(title, "groups", tuple(blocks), sub)] if blocks else []
