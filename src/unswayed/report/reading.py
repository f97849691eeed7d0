"""`metrics.json` with types: the one place that knows its keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from unswayed.decisions import Estimate

__all__ = ["Audit", "Rates", "Recommendation", "Row", "model_name", "read_audit"]

Rates = tuple[Estimate, ...]

_REVISION = re.compile(r"@(?:sha256:)?[0-9a-f]{12,}(?=$|\+)")


@dataclass(frozen=True, slots=True)
class Row:
    """The estimates of one method, protocol or group.

    Attributes:
        estimates: Metric to estimate, nulls included.
        position_rate, label_rate: By position and by label; empty where unknown.
        calls: Calls per item with the estimation calls spread over the data; None for protocols.
        calls_next: What one more item costs.
        strata: Number of candidates to its own row, where items differ in it.
    """

    estimates: Mapping[str, Estimate]
    position_rate: Rates = ()
    label_rate: Rates = ()
    calls: float | None = None
    calls_next: float | None = None
    strata: Mapping[int, Row] = field(default_factory=dict)

    def positions(self, n: int) -> Rates:
        """Shares by position, of the items with n candidates where items differ."""
        return self.position_rate or (self.strata[n].position_rate if n in self.strata else ())

    def labels(self, n: int) -> Rates:
        """Shares by label, of the items with n candidates where items differ."""
        return self.label_rate or (self.strata[n].label_rate if n in self.strata else ())

    def get(self, metric: str) -> Estimate | None:
        """The estimate if it has a value."""
        found = self.estimates.get(metric)
        return found if found is not None and found.value is not None else None

    @property
    def items(self) -> int:
        """Items behind it."""
        return max((e.n for k, e in self.estimates.items() if k == "consistency"), default=0)

    def reason(self, metric: str) -> str | None:
        """Why a metric has no value."""
        found = self.estimates.get(metric)
        return found.reason if found is not None and found.value is None else None


NO_ROW = Row({})


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The method to use, the criterion that chose it and the best one below its price."""

    method: str | None
    reason: str
    criterion: str
    alternative: str | None
    best: str | None = None
    steadiest: str | None = None

    @property
    def metric(self) -> str:
        """The criterion's key among a method's estimates."""
        return "agreement" if self.criterion.startswith("agreement") else self.criterion


def _asked(row: Row) -> int:
    """Calls behind the shares by position."""
    return max((rate.n for rate in row.position_rate), default=0)


@dataclass(frozen=True, slots=True)
class Audit:
    """`metrics.json`, read.

    Attributes:
        answered: Calls that came back, made or from cache.
        missing: Planned calls without an answer.
        protocols: Any of coupled, order, label.
        groups: Group to method to row.
        label_mass: Mean probability on the labels before it was renormalised.
        counts: Items by what is special about them: not_permutable, no_gold, gold_ties, bad_lines.
        macro: Method to averages over groups.
        differences: "a-b" to metric to the paired difference a minus b.
        skipped: Methods that were asked for and left out, with the reason.
        cautions: Method to what fitting warned about.
    """

    model: str
    data: str
    n_items: int
    orders: str
    n_presentations: int
    planned: int
    answered: int
    failed: int
    cached: int
    missing: int
    unparsed: int
    refused: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    protocols: Mapping[str, Row]
    methods: Mapping[str, Row]
    groups: Mapping[str, Mapping[str, Row]]
    macro: Mapping[str, Row]
    differences: Mapping[str, Mapping[str, Estimate]]
    recommendation: Recommendation | None
    skipped: Mapping[str, str]
    cautions: Mapping[str, tuple[str, ...]]
    flips: Mapping[str, int]
    label_mass: float | None
    counts: Mapping[str, int]

    @property
    def base(self) -> str | None:
        """The method that is the judge as it is used now: direct, else the first one."""
        return "direct" if "direct" in self.methods else next(iter(self.methods), None)

    @property
    def base_row(self) -> Row:
        """The row of `base`; an empty one if there is no method."""
        return self.methods[self.base] if self.base is not None else NO_ROW

    @property
    def plain(self) -> Row:
        """Single calls under the coupled protocol: what headlines speak about."""
        found = self.protocols.get("coupled", NO_ROW)
        return found if found.estimates or found.position_rate else self.base_row

    @property
    def n(self) -> int:
        """Number of candidates: the most frequent one where items differ, 2 if nothing says."""
        plain = self.plain
        if plain.strata and not plain.position_rate:
            return max(plain.strata, key=lambda n: (_asked(plain.strata[n]), plain.strata[n].items))
        return max(len(plain.position_rate), len(plain.label_rate)) or 2

    @property
    def sizes(self) -> tuple[int, ...]:
        """All numbers of candidates, fewest first."""
        plain = self.plain
        return (
            tuple(sorted(plain.strata)) if not plain.position_rate and plain.strata else (self.n,)
        )

    @property
    def orders_each(self) -> int:
        """Orders under which every item was asked; 0 where that differs between items."""
        return self.n_presentations if len(self.sizes) == 1 else 0

    def rates(self, protocol: str, what: str, n: int | None = None) -> Rates:
        """Shares by "position" or "label" under a protocol; empty where not measured."""
        row = self.plain if protocol == "coupled" else self.protocols.get(protocol, NO_ROW)
        wanted = self.n if n is None else n
        return row.positions(wanted) if what == "position" else row.labels(wanted)

    @property
    def has_gold(self) -> bool:
        """Whether any method has an accuracy."""
        return any(row.get("accuracy") for row in self.methods.values())

    @property
    def complete_items(self) -> int:
        """Items behind the headline: those with every presentation."""
        for row in (self.plain, self.base_row):
            found = row.get("consistency")
            if found is not None and found.n:
                return found.n
        return self.n_items

    def difference(self, method: str, other: str, metric: str) -> Estimate | None:
        """The paired difference method minus other; None if it was not measured."""
        found = self.differences.get(f"{method}-{other}", {}).get(metric)
        if found is not None:
            return found if found.value is not None else None
        found = self.differences.get(f"{other}-{method}", {}).get(metric)
        if found is None or found.value is None:
            return None
        low, high, joint = found.low, found.high, found.joint
        return Estimate(
            value=-found.value,
            low=None if high is None else -high,
            high=None if low is None else -low,
            n=found.n,
            by_construction=found.by_construction,
            joint=None if joint is None else (-joint[1], -joint[0]),
        )


class _Data(msgspec.Struct, frozen=True):
    name: str | None = None
    n_items: int | None = None


class _Protocol(msgspec.Struct, frozen=True):
    name: str | None = None
    n_presentations: int | None = None


class _Calls(msgspec.Struct, frozen=True):
    planned: int | None = None
    made: int | None = None
    cached: int | None = None
    failed: int | None = None
    unparsed: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


class _Advice(msgspec.Struct, frozen=True):
    method: str | None = None
    reason: str | None = None
    criterion: str | None = None
    alternative: str | None = None
    best: str | None = None


_Rows = dict[str, dict[str, Any]]


class _Shape(msgspec.Struct, frozen=True):
    """The types of what is read from `metrics.json`; anything may be absent or null."""

    unswayed: str | None = None
    model: str | None = None
    data: _Data | None = None
    protocol: _Protocol | None = None
    calls: _Calls | None = None
    protocols: _Rows | None = None
    methods: _Rows | None = None
    groups: dict[str, _Rows] | None = None
    macro: _Rows | None = None
    differences: _Rows | None = None
    recommendation: _Advice | None = None
    skipped: dict[str, str] | None = None
    cautions: dict[str, list[str]] | None = None
    flips: dict[str, int] | None = None


def _estimate(value: object) -> Estimate | None:
    if isinstance(value, Mapping) and "value" in value:
        return msgspec.convert(dict(value), Estimate)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Estimate(value=float(value))
    return None


def _rates(value: object) -> Rates:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    found = [_estimate(rate) for rate in value]
    kept = tuple(rate for rate in found if rate is not None and rate.value is not None)
    return kept if len(kept) == len(value) else ()


def _number(value: object) -> float | None:
    found = _estimate(value)
    return None if found is None else found.value


def _row(value: object) -> Row:
    if not isinstance(value, Mapping):
        return NO_ROW
    estimates = {}
    for metric, found in value.items():
        estimate = _estimate(found)
        if estimate is not None:
            estimates[str(metric)] = estimate
    strata = msgspec.convert(value.get("strata") or {}, dict[int, dict[str, Any]], strict=False)
    next_item = _number(value.get("calls_per_item"))
    amortised = _number(value.get("calls_per_item_amortised"))
    return Row(
        estimates=estimates,
        position_rate=_rates(value.get("position_rate")),
        label_rate=_rates(value.get("label_rate")),
        calls=next_item if amortised is None else amortised,
        calls_next=next_item,
        strata={n: _row(row) for n, row in strata.items()},
    )


def _rows(value: object) -> dict[str, Row]:
    return {str(k): _row(v) for k, v in value.items()} if isinstance(value, Mapping) else {}


def _recommendation(value: object) -> Recommendation | None:
    if not isinstance(value, Mapping):
        return None
    return Recommendation(
        method=value.get("method"),
        reason=str(value.get("reason") or ""),
        criterion=str(value.get("criterion") or "accuracy"),
        alternative=value.get("alternative"),
        best=value.get("best"),
        steadiest=value.get("steadiest"),
    )


def read_audit(metrics: Mapping[str, Any]) -> Audit:
    """Read a parsed `metrics.json`; what is absent reads as unknown, never as zero.

    Raises:
        msgspec.ValidationError: If something has the wrong type; the message names the place.
    """
    msgspec.convert(metrics, _Shape)
    calls = metrics.get("calls") or {}
    data = metrics.get("data") or {}
    protocol = metrics.get("protocol") or {}
    methods = metrics.get("methods") or {}
    planned = int(calls.get("planned") or 0)
    failed = int(calls.get("failed") or 0)
    answered = int(calls.get("made") or 0) + int(calls.get("cached") or 0)
    if "made" not in calls and "cached" not in calls:
        answered = planned - failed
    return Audit(
        model=str(metrics.get("model") or "recorded decisions"),
        data=str(data.get("name") or "unnamed data"),
        n_items=int(data.get("n_items") or 0),
        orders=str(protocol.get("name") or ""),
        n_presentations=int(protocol.get("n_presentations") or 0),
        planned=planned,
        answered=answered,
        failed=failed,
        cached=int(calls.get("cached") or 0),
        missing=max(0, planned - answered),
        unparsed=int(calls.get("unparsed") or 0),
        refused=int(calls.get("refused") or 0),
        input_tokens=int(calls.get("input_tokens") or 0),
        output_tokens=int(calls.get("output_tokens") or 0),
        cost_usd=calls.get("cost_usd"),
        protocols=_rows(metrics.get("protocols")),
        methods=_rows(methods),
        groups={str(k): _rows(v) for k, v in (metrics.get("groups") or {}).items()},
        macro=_rows(metrics.get("macro")),
        differences={
            str(k): _row(v).estimates for k, v in (metrics.get("differences") or {}).items()
        },
        recommendation=_recommendation(metrics.get("recommendation")),
        skipped={str(k): str(v) for k, v in (metrics.get("skipped") or {}).items()},
        cautions={
            str(k): tuple(str(text) for text in v)
            for k, v in (metrics.get("cautions") or {}).items()
        },
        label_mass=_number(calls.get("label_mass")),
        counts={str(k): v for k, v in data.items() if isinstance(v, int)},
        flips={str(k): int(v) for k, v in (metrics.get("flips") or {}).items()},
    )


def model_name(model: str) -> str:
    """A model's name without its revision, where that is a long hash."""
    return _REVISION.sub("", model)
