"""Claims of each section: typed findings, decided from intervals, that the words are said over."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum, auto

from unswayed.metrics.rows import Row
from unswayed.metrics.table import METRICS
from unswayed.model.decisions import Estimate
from unswayed.report.findings import ACCURACY, CONSISTENCY, Finding
from unswayed.report.intervals import (
    above,
    apart,
    below,
    disjoint,
    favoured_of,
    half_width,
    widened,
)

ABOUT_THE_SAME = 0.03
"""Two consistencies this close, each settled to 3 points, weigh about the same."""


@dataclass(frozen=True, slots=True)
class Aim:
    """A position or label that is spoken about."""

    index: int
    rate: Estimate
    excluded: bool  # its own interval does not hold 1/n
    wins: bool  # its joint interval lies above 1/n


@dataclass(frozen=True, slots=True)
class Bias:
    """Effect of position and label: together, and each alone where both were measured."""

    together: Aim | None = None
    position: Aim | None = None
    label: Aim | None = None
    winning: tuple[int, ...] = ()  # every label whose joint interval lies above 1/n
    measured: bool = True


def _aim(finding: Finding, rates: Sequence[Estimate], otherwise: int) -> Aim:
    winner = favoured_of(rates, finding.looks)
    index = otherwise if winner is None else winner
    rate, expected = rates[index], finding.expected
    return Aim(index, rate, above(rate, expected) or below(rate, expected), winner is not None)


def balanced(finding: Finding) -> bool:
    """Return True if every candidate is known to have stood equally often at every position."""
    sets = {"swap", "cyclic", "balanced", "williams", "full", "graeco-latin"}
    return finding.metrics.protocol.name in sets and not finding.plain.incomplete


def bias_of(finding: Finding) -> Bias:
    """Measure the effect of position and label."""
    alone = finding.shares("order", "position")
    named = finding.shares("label", "label")
    if not alone or not named or unfollowed(finding):
        together = _aim(finding, finding.rates, 0) if finding.rates else None
        return Bias(together, measured=bool(finding.rates or alone))
    over = (i for i, rate in enumerate(named) if above(finding.jointly(rate), finding.expected))
    return Bias(
        position=_aim(finding, alone, finding.position),
        label=_aim(finding, named, 0),
        winning=tuple(over),
    )


class Cause(StrEnum):
    """Cause of changed verdicts: the order or the labels."""

    ORDER_ALONE = auto()
    LABELS_ALONE = auto()
    POSITION = auto()
    LABEL = auto()
    SAME = auto()
    UNTOLD = auto()
    UNFOLLOWED = auto()  # the judge does not follow the printed labels


def cause_of(finding: Finding) -> tuple[Cause, Mapping[str, Estimate]] | None:
    """Return the cause, and consistency by protocol; None with fewer than two protocols."""
    rows = {
        protocol: estimate
        for protocol in ("coupled", "order", "label")
        if (row := finding.metrics.protocols.get(protocol)) is not None
        and (estimate := row.get(CONSISTENCY)) is not None
    }
    if len(rows) < 2:
        return None
    if unfollowed(finding):
        return Cause.UNFOLLOWED, rows
    return _cause(rows.get("order"), rows.get("label")), rows


def unfollowed(finding: Finding) -> Mapping[str, Estimate]:
    """Return accuracy by protocol if it is that of chance where labels and positions part, and higher
    where they move together: then the judge does not follow the printed labels. Empty otherwise.
    """
    accuracies = {
        protocol: estimate
        for protocol, row in finding.metrics.protocols.items()
        if (estimate := row.get(ACCURACY)) is not None and estimate.low is not None
    }
    if not {"coupled", "order", "label"} <= accuracies.keys():
        return {}
    both, *each = (accuracies[name] for name in ("coupled", "order", "label"))
    ignored = all((e.low or 0.0) <= finding.expected and disjoint(e, both) for e in each)
    return accuracies if ignored and above(both, finding.expected) else {}


def _cause(order: Estimate | None, label: Estimate | None) -> Cause:
    if order is None or label is None:
        return Cause.LABELS_ALONE if order is None else Cause.ORDER_ALONE
    a, b = order.value or 0.0, label.value or 0.0
    if disjoint(order, label):
        return Cause.POSITION if a < b else Cause.LABEL
    settled = all((half_width(e) or 1.0) <= ABOUT_THE_SAME for e in (order, label))
    return Cause.SAME if settled and abs(a - b) <= ABOUT_THE_SAME else Cause.UNTOLD


class Trend(StrEnum):
    """Trend of the position rate from the worst group to the best."""

    NONE = auto()
    WITH = auto()  # higher where consistency is lowest
    UNEVEN = auto()  # not the same in every group


@dataclass(frozen=True, slots=True)
class ClaimGroups:
    """Groups by consistency under the base method, the least consistent first."""

    rows: tuple[tuple[str, Row], ...]
    unlike: tuple[int, int] | None = None  # two groups that differ: worst and best, if they do
    trend: Trend = Trend.NONE

    @property
    def differ(self) -> bool:
        """True if worst and best may be named."""
        return self.unlike == (0, len(self.rows) - 1)

    @property
    def alone(self) -> bool:
        """True if every group has one item."""
        return all(self.consistency(index).n == 1 for index in range(len(self.rows)))

    def consistency(self, index: int) -> Estimate:
        """Return the consistency of a group."""
        return self.rows[index][1].estimates[CONSISTENCY]


def groups_of(finding: Finding) -> ClaimGroups:
    """Compare the groups; fewer than two rows mean nothing to compare."""
    base = finding.base or ""
    rows = [
        (group, methods[base])
        for group, methods in finding.metrics.groups.items()
        if base in methods and methods[base].get(CONSISTENCY) is not None
    ]
    rows.sort(key=lambda pair: pair[1].estimates[CONSISTENCY].value or 0.0)
    groups = ClaimGroups(tuple(rows))
    if len(rows) < 2:
        return groups
    groups = replace(groups, unlike=_unlike(groups))
    return replace(groups, trend=_trend(finding, [row for _, row in rows], groups.differ))


def _unlike(groups: ClaimGroups) -> tuple[int, int] | None:
    """Return worst and best if they differ, else two groups whose intervals are furthest apart, if they do:
    a few items at an extreme do not hide what others show. The test holds for all pairs together.
    """
    bounded = [
        (index, estimate.low, estimate.high)
        for index in range(len(groups.rows))
        if (estimate := groups.consistency(index)).low is not None and estimate.high is not None
    ]
    if not bounded:
        return None
    lowest, highest = (
        min(bounded, key=lambda row: row[2])[0],
        max(bounded, key=lambda row: row[1])[0],
    )
    pairs = ((0, len(groups.rows) - 1), (lowest, highest))
    for worse, better in pairs:
        if apart(groups.consistency(worse), groups.consistency(better), len(groups.rows)):
            return worse, better
    return None


def _trend(finding: Finding, rows: Sequence[Row], differ: bool) -> Trend:
    if any(len(row.position_rate) <= finding.position for row in rows):
        return Trend.NONE
    rates = [row.position_rate[finding.position] for row in rows]
    lowest = min(rates, key=lambda rate: rate.value or 0.0)
    highest = max(rates, key=lambda rate: rate.value or 0.0)
    if not apart(lowest, highest, len(rates)):
        return Trend.NONE
    falls = (
        differ
        and disjoint(rates[0], rates[-1])
        and (rates[0].value or 0.0) > (rates[-1].value or 0.0)
    )
    return Trend.WITH if falls else Trend.UNEVEN


def changes_of(changes: Mapping[str, Estimate], others: int) -> dict[str, Estimate]:
    """Measure the changes from one run to another, with intervals that hold for all of them together.

    `changes` are by metric the other run minus the first, of so many `others`. Of four differences
    between two runs of the same judge one lies beside 0 in every tenth report where each has an
    interval for itself.
    """
    gains = {name: gain for name, gain in changes.items() if gain.value is not None}
    limits = {name: METRICS.load(name).limits for name in gains}
    spans = {name: own(2)[1] - own(2)[0] if own else math.inf for name, own in limits.items()}
    return {name: widened(gain, others * len(gains), spans[name]) for name, gain in gains.items()}
