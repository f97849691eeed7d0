"""A row of `metrics.json`, measured, written and read: metrics and what stands beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from unswayed.base.registry import did_you_mean
from unswayed.metrics.consistency import CONSISTENCY
from unswayed.metrics.gold import GOLD_NONE, GOLD_ONE, GOLD_SEVERAL, GOLD_TIE
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.rates import LABEL_RATE, POSITION_RATE
from unswayed.metrics.resampling import Sample
from unswayed.metrics.table import METRICS
from unswayed.model.decisions import MISSING, TIE, UNPARSED, Estimate

Rates = tuple[Estimate, ...]
"""The estimates of one metric: one, or one for each position or label."""


class Beside(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Values beside the metrics of a row; None or empty where unknown."""

    groups: int | None = None  # over how many groups it averages
    # items that a method learned from, in a row of the estimation curve
    estimation_items: int | None = None
    calls_per_item: float | None = None  # what one more item costs in calls
    # distinct calls to fit a method and to judge every item once, per item
    calls_per_item_amortised: float | None = None
    estimation_calls: int | None = None  # distinct calls that fitting needs
    # share of items whose verdict differs from that of every call, in a row of the call curve
    changed: Estimate | None = None
    incomplete: int | None = None  # items that lack a presentation
    # presentations per item, by stratum where they differ
    set_size: int | tuple[int, ...] | None = None
    counts: dict[str, int] | None = None  # what went in and what was left out where
    strata: dict[int, Row] = {}  # a row for each number of candidates, where items differ in it
    # by number of candidates: how often each candidate stands at each position in the orders that a
    # method reads, where these may be cut short
    exposure: dict[int, tuple[tuple[int, ...], ...]] = {}


BEHIND: Final = ("exposure", "incomplete", "set_size", "counts", "strata")
"""What stands behind the metrics in the file."""


class Row:
    """The figures of one method, protocol or group, whoever registered the metrics.

    Attributes:
        values: By metric: several estimates for rates by position or label, else one; nulls
            included.
        beside: What stands beside them.
    """

    __slots__ = ("beside", "values")

    def __init__(self, values: Mapping[str, Rates], beside: Beside = Beside()) -> None:  # noqa: B008
        self.values = values
        self.beside = beside

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Row:
        """Read a row of `metrics.json`: one flat object; `msgspec.ValidationError` names
        the place of a wrong type.
        """
        own = Beside.__struct_fields__
        beside = {name: value for name, value in record.items() if name in own}
        cells = {name: value for name, value in record.items() if name not in own}
        values = msgspec.convert(cells, dict[str, Estimate | Rates])
        return cls(
            {name: v if isinstance(v, tuple) else (v,) for name, v in values.items()},
            msgspec.convert(beside, Beside, str_keys=True, dec_hook=decode_row),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the row as it stands in `metrics.json`: a list where a metric has several values."""
        before = msgspec.to_builtins(self.beside, str_keys=True, enc_hook=encode_row)
        behind = {name: before.pop(name) for name in BEHIND if name in before}
        cells = {name: msgspec.to_builtins(list(values)) for name, values in self.values.items()}
        return {
            **before,
            **{name: cell if len(cell) > 1 else cell[0] for name, cell in cells.items()},
            **behind,
        }

    def with_values(self, values: Mapping[str, Estimate]) -> Row:
        """Return the row with further metrics of a single value."""
        return Row({**self.values, **{name: (v,) for name, v in values.items()}}, self.beside)

    def with_beside(self, **more: object) -> Row:
        """Return the row with more beside its metrics."""
        return Row(self.values, msgspec.structs.replace(self.beside, **more))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return (self.values, self.beside) == (other.values, other.beside)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ((name, own.value) for name, own in self.estimates.items())
        return f"<Row {', '.join(f'{name}={v:.4g}' for name, v in values if v is not None)}>"

    if not TYPE_CHECKING:  # a name that does not exist stays an error of types

        def __getattr__(self, metric: str) -> Estimate | Rates:
            """Return a metric by its name: one estimate, or one for each position or label."""
            if metric.startswith("_") or metric in self.__slots__:  # of a copy before it is filled
                raise AttributeError(metric)
            if not (values := self.values.get(metric)):
                raise AttributeError(f"no figure {metric!r}. {did_you_mean(metric, self.values)}")
            return values if len(values) > 1 else values[0]

    def __getitem__(self, metric: str) -> Estimate:
        (estimate,) = self.values[metric]
        return estimate

    @property
    def estimates(self) -> dict[str, Estimate]:
        """The metrics that are single numbers."""
        return {name: values[0] for name, values in self.values.items() if len(values) == 1}

    def _single(self, metric: str) -> Estimate | None:
        values = self.values.get(metric, ())
        return values[0] if len(values) == 1 else None

    def get(self, metric: str) -> Estimate | None:
        """Return the estimate if it has a value."""
        estimate = self._single(metric)
        return None if estimate is None or estimate.value is None else estimate

    def reason(self, metric: str) -> str | None:
        """Why a metric has no value."""
        estimate = self._single(metric)
        return None if estimate is None or estimate.value is not None else estimate.reason

    @property
    def calls(self) -> float | None:
        """Calls per item, the estimation calls spread over the data; None for protocols."""
        amortised = self.beside.calls_per_item_amortised
        return self.beside.calls_per_item if amortised is None else amortised

    @property
    def incomplete(self) -> int:
        """Items that lack a presentation."""
        return self.beside.incomplete or 0

    @property
    def strata(self) -> Mapping[int, Row]:
        """Number of candidates to its own row, where items differ in it."""
        return self.beside.strata

    @property
    def items(self) -> int:
        """Items behind it: those whose answers can be compared between presentations."""
        consistency = self._single(METRICS.name_of(CONSISTENCY))
        return 0 if consistency is None else consistency.n

    @property
    def position_rate(self) -> Rates:
        """Shares by position; empty where unknown."""
        return self._rates(METRICS.name_of(POSITION_RATE))

    @property
    def label_rate(self) -> Rates:
        """Shares by label; empty where unknown."""
        return self._rates(METRICS.name_of(LABEL_RATE))

    def _rates(self, metric: str) -> Rates:
        rates = self.values.get(metric, ())
        return () if any(rate.value is None for rate in rates) else rates

    def positions(self, n: int) -> Rates:
        """Shares by position, of the items with n candidates where items differ."""
        return self.position_rate or (self.strata[n].position_rate if n in self.strata else ())

    def labels(self, n: int) -> Rates:
        """Shares by label, of the items with n candidates where items differ."""
        return self.label_rate or (self.strata[n].label_rate if n in self.strata else ())


def encode_row(row: object) -> object:
    """Return a row inside another record, for `msgspec.to_builtins`."""
    if isinstance(row, Row):
        return row.to_json()
    raise NotImplementedError(type(row))


def decode_row(kind: type, value: object) -> object:
    """Return a row inside another record, for `msgspec.convert`."""
    if kind is Row and isinstance(value, Mapping):
        return Row.of(value)
    raise msgspec.ValidationError(f"Expected `object`, got `{type(value).__name__}`")


def row_of(sample: Sample) -> Row:
    """Return the values of some outcomes as a row, with their counts."""
    strata = sample.strata
    sizes = sorted({outcomes.n_views for outcomes in strata})
    tallies = [outcomes.tally for outcomes in strata]
    return Row(
        {name: value.estimates for name, value in sample.values.items()},
        Beside(
            incomplete=sum(
                t.count(t.permutable & (t.choices == MISSING).any(axis=1))
                for t in tallies
                if t.n_views > 1
            ),
            set_size=sizes[0] if len(sizes) == 1 else tuple(sizes),
            counts=_counts(tallies),
            strata={part.strata[0].n: row_of(part) for part in sample.parts}
            if len(strata) > 1
            else {},
        ),
    )


def _counts(tallies: Sequence[Outcomes]) -> dict[str, int]:
    answers = {"unparsed": UNPARSED, "ties": TIE}
    kinds = {
        "gold_one": GOLD_ONE,
        "gold_several": GOLD_SEVERAL,
        "gold_tie": GOLD_TIE,
        "gold_none": GOLD_NONE,
    }
    return {
        "items": sum(t.n_items for t in tallies),
        "calls": sum(t.count(t.answered) for t in tallies),
        "missing": sum(t.count((t.choices == MISSING) & t.permutable[:, None]) for t in tallies),
        "not_permutable": sum(t.count(~t.permutable) for t in tallies),
        **{
            name: sum(t.count(t.choices == code) for t in tallies) for name, code in answers.items()
        },
        **{
            name: sum(t.count(t.gold_kind == kind) for t in tallies) for name, kind in kinds.items()
        },
    }
