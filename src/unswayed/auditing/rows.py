"""The rows of `metrics.json`: figures under whatever names their metrics have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from unswayed.decisions import Estimate

__all__ = ["Average", "Rates", "Row", "as_json", "converted"]

T = TypeVar("T")

Rates = tuple[Estimate, ...]


class Average(Estimate, frozen=True, kw_only=True, omit_defaults=True):
    """An estimate; an average over groups says over how many."""

    groups: int | None = None


class _Beside(Struct, frozen=True):
    """What stands beside the metrics in a row of `metrics.json`."""

    groups: int | None = None
    estimation_items: int | None = None
    calls_per_item: float | None = None
    calls_per_item_amortised: float | None = None
    estimation_calls: int | None = None
    incomplete: int | None = None
    set_size: int | tuple[int, ...] | None = None
    counts: dict[str, int] | None = None
    strata: dict[int, Row] = {}


BEHIND: Final = ("incomplete", "set_size", "counts", "strata")
"""What stands behind the metrics."""


class Row:
    """The figures of one method, protocol or group: a flat object of metrics, whoever made them.

    Attributes:
        values: Metric to estimate, or to one for each position or label; nulls included.
    """

    __slots__ = ("_beside", "values")

    def __init__(self, record: Mapping[str, Any]) -> None:
        own = _Beside.__struct_fields__
        self._beside = converted({k: v for k, v in record.items() if k in own}, _Beside)
        self.values: Mapping[str, Estimate | Rates] = msgspec.convert(
            {k: v for k, v in record.items() if k not in own},
            dict[str, Average | tuple[Average, ...]],
        )

    def to_json(self) -> dict[str, Any]:
        """The row as `metrics.json` has it."""
        fields = msgspec.structs.asdict(self._beside)
        beside = {name: value for name, value in fields.items() if value not in (None, {})}
        behind: dict[str, Any] = {name: beside.pop(name) for name in BEHIND if name in beside}
        return {**beside, **self.values, **behind}

    @property
    def estimates(self) -> dict[str, Estimate]:
        """The metrics that are single numbers."""
        return {name: v for name, v in self.values.items() if isinstance(v, Estimate)}

    @property
    def calls(self) -> float | None:
        """Calls per item, the estimation calls spread over the data; None for protocols."""
        amortised = self._beside.calls_per_item_amortised
        return self.calls_next if amortised is None else amortised

    @property
    def calls_next(self) -> float | None:
        """What one more item costs."""
        return self._beside.calls_per_item

    @property
    def estimation_items(self) -> int | None:
        """Items that a method learned from, in a row of the estimation curve."""
        return self._beside.estimation_items

    @property
    def incomplete(self) -> int:
        """Items that lack a presentation."""
        return self._beside.incomplete or 0

    @property
    def strata(self) -> Mapping[int, Row]:
        """Number of candidates to its own row, where items differ in it."""
        return self._beside.strata

    @property
    def position_rate(self) -> Rates:
        """Shares by position; empty where unknown."""
        return self._rates("position_rate")

    @property
    def label_rate(self) -> Rates:
        """Shares by label; empty where unknown."""
        return self._rates("label_rate")

    def _rates(self, metric: str) -> Rates:
        rates = self.values.get(metric)
        if not isinstance(rates, tuple) or any(rate.value is None for rate in rates):
            return ()
        return rates

    def positions(self, n: int) -> Rates:
        """Shares by position, of the items with n candidates where items differ."""
        return self.position_rate or (self.strata[n].position_rate if n in self.strata else ())

    def labels(self, n: int) -> Rates:
        """Shares by label, of the items with n candidates where items differ."""
        return self.label_rate or (self.strata[n].label_rate if n in self.strata else ())

    def get(self, metric: str) -> Estimate | None:
        """The estimate if it has a value."""
        value = self.values.get(metric)
        return value if isinstance(value, Estimate) and value.value is not None else None

    @property
    def items(self) -> int:
        """Items behind it."""
        consistency = self.values.get("consistency")
        return consistency.n if isinstance(consistency, Estimate) else 0

    def reason(self, metric: str) -> str | None:
        """Why a metric has no value."""
        value = self.values.get(metric)
        return value.reason if isinstance(value, Estimate) and value.value is None else None


def as_json(record: object) -> Any:
    """A record as `json` writes it and reads it again; not-a-number never appears in it.

    Raises:
        ValueError: If a number is not a number.
    """
    plain = msgspec.to_builtins(record, str_keys=True, enc_hook=_flat)
    return json.loads(json.dumps(plain, allow_nan=False))


def _flat(row: object) -> object:
    if isinstance(row, Row):
        return row.to_json()
    raise NotImplementedError(type(row))


def converted(record: object, kind: type[T]) -> T:
    """A record from plain values; keys that it does not have are left out.

    Raises:
        msgspec.ValidationError: If something has the wrong type; the message names the place.
    """

    def row(wanted: type, value: object) -> object:
        if wanted is Row and isinstance(value, Mapping):
            return Row(value)
        raise msgspec.ValidationError(f"Expected `object`, got `{type(value).__name__}`")

    return msgspec.convert(record, kind, str_keys=True, dec_hook=row)
