"""Lists whose candidates are scored: what a place is worth, and how steady rankings are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import UNSET

from unswayed.decisions import Estimate
from unswayed.metrics import METRICS, position_score, rank_stability
from unswayed.metrics.rows import Rates, Row
from unswayed.permutations import Exposure
from unswayed.report.findings import Finding
from unswayed.report.heat import Heat, exposure_heat
from unswayed.report.intervals import above, below, widened
from unswayed.report.numerals import figure, gained, plural
from unswayed.report.plots import (
    Axis,
    Note,
    PlotBlock,
    PlotRow,
    PlotTable,
    place_name,
    tables_of_curve,
)
from unswayed.report.sections import Gains, Section, claim, joint_claim
from unswayed.report.words import plain, sentence
from unswayed.visible import one_line

POSITION_SCORE: Final = METRICS.name_of(position_score.POSITION_SCORE)
RANK_STABILITY: Final = METRICS.name_of(rank_stability.RANK_STABILITY)


@dataclass(frozen=True, slots=True)
class ListRow:
    """What a place is worth in points, with an interval that holds for all places together."""

    index: int
    points: Estimate


@dataclass(frozen=True, slots=True)
class Lists:
    """What the order does to scores."""

    n: int  # candidates of the lists that places are described for
    gains: tuple[ListRow, ...]  # places whose joint interval lies above 0, the best one first
    losses: tuple[ListRow, ...]  # places whose joint interval lies below 0, the worst one first
    measured: bool  # whether points by position were measured
    # agreement of the rankings of single calls; None where it was not measured
    stability: Estimate | None
    always_first: int  # lists in which whatever came first won, under every order


def points_of(finding: Finding) -> Rates:
    """Points by position of single calls, of the lists with `Finding.n` candidates."""
    row = finding.plain
    rates = row.values.get(POSITION_SCORE, ())
    if not rates or any(rate.value is None for rate in rates):
        rates = row.strata[finding.n].values.get(POSITION_SCORE, ()) if row.strata else ()
    return () if any(rate.value is None for rate in rates) else rates


def lists_of(finding: Finding) -> Lists | None:
    """What the order does to scores; None where candidates were not scored, or on too few items."""
    stability, rates = finding.plain.get(RANK_STABILITY), points_of(finding)
    if not finding.recommends or (stability is None and not rates):
        return None
    places = [ListRow(i, widened(rate, len(rates))) for i, rate in enumerate(rates)]
    by_points = sorted(places, key=lambda place: place.points.value or 0.0)
    return Lists(
        n=finding.n,
        gains=tuple(place for place in reversed(by_points) if above(place.points, 0.0)),
        losses=tuple(place for place in by_points if below(place.points, 0.0)),
        measured=bool(rates),
        stability=stability,
        always_first=finding.metrics.flips.get("first", 0),
    )


def gains_of(finding: Finding) -> list[Gains]:
    """What each method improves on the single call, with the exact test."""
    kept = finding.metrics.improvements
    if kept is UNSET:
        return []
    ends = f"-{finding.base}"
    return [Gains(pair.removesuffix(ends), counts) for pair, counts in kept.items()]


def uneven_orders(finding: Finding) -> Iterator[tuple[str, int, Exposure]]:
    """Methods that read orders which do not show every candidate first equally often."""
    for method, row in finding.metrics.methods.items():
        for n, counts in row.beside.exposure.items():
            shown = Exposure(counts)
            if not shown.is_even_first:
                yield method, n, shown


def lists_section(findings: Sequence[Finding]) -> Section | None:
    """Scores by position and rankings; None where no run scored candidates."""
    told = [
        None if (own := lists_of(f)) is None else claim("lists.lists", f, own) for f in findings
    ]
    joint = joint_claim(findings, told, "lists")
    if joint is None:
        return None
    curves = [table for finding in findings for table in curve_tables(finding)]
    heats = [heat for finding in findings for heat in exposure_heats(finding)]
    gains = [(finding.name, won) for finding in findings if (won := gains_of(finding))]
    return Section(
        joint,
        sentence("lists.caption", bool(curves), bool(heats)),
        tables=(*points_tables(findings), *curves),
        heats=tuple(heats),
        gains=tuple((one_line(name), tuple(won)) for name, won in gains),
    )


def points_tables(findings: Sequence[Finding]) -> list[PlotTable]:
    """Points by position, all runs on one axis."""
    measured = [(finding, rates) for finding in findings if (rates := points_of(finding))]
    if not measured:
        return []
    ends = [
        abs(end or 0.0) for _, rates in measured for r in rates for end in (r.low, r.value, r.high)
    ]
    reach = next((own for own in (1, 2, 5, 10, 20, 50) if own >= max(ends)), 100)
    axis = Axis(
        -reach,
        reach,
        write=gained,
        tick=lambda value: f"+{figure(value)}" if value > 0 else figure(value),
        unit="",
    )
    blocks = []
    for finding, rates in measured:
        rows = tuple(
            PlotRow(
                place_name(finding, index, len(rates), "order"),
                rate,
                0.0,
                above(joint := widened(rate, len(rates)), 0.0) or below(joint, 0.0),
                axis=axis,
            )
            for index, rate in enumerate(rates)
        )
        blocks.append(PlotBlock(rows, finding.name, note=Note("no effect: 0", 0.5)))
    sub = f"points, less the {findings[0].noun}'s own mean"
    return [PlotTable("What each place is worth", "groups", tuple(blocks), sub)]


def curve_tables(finding: Finding) -> list[PlotTable]:
    """What methods are worth with the first of their orders only."""

    def row(point: Row, estimate: Estimate) -> PlotRow:
        if estimate.by_construction:  # its interval says nothing
            estimate = msgspec.structs.replace(estimate, low=None, high=None)
        return PlotRow(plural(round(point.calls or 0), "order"), estimate, on=True)

    return tables_of_curve(
        finding.metrics.order_curve or {},
        row,
        kind="groups",
        sub="%, by number of orders read",
        of_run=f", {finding.name}" if finding.name else "",
    )


def exposure_heats(finding: Finding) -> list[Heat]:
    """The sets of orders that are not even."""
    return [
        exposure_heat(
            plain(sentence("lists.uneven_title", method, finding.name)),
            plain(sentence("lists.uneven_sub", n, shown.orders, finding.noun)),
            finding.noun,
            shown.counts,
        )
        for method, n, shown in uneven_orders(finding)
    ]
