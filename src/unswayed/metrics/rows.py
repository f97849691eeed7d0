"""A row of `metrics.json`: every metric of some outcomes, and the counts behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from unswayed.decisions import MISSING, TIE, UNPARSED, Estimate
from unswayed.metrics.outcomes import GOLD_NONE, GOLD_ONE, GOLD_SEVERAL, GOLD_TIE, Outcomes
from unswayed.metrics.resampling import Sample

__all__ = ["Row", "cells", "row_of"]


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured.

    Attributes:
        estimates: By metric; several for rates by position or label, else one.
        incomplete: Items that lack a presentation.
        set_size: Presentations per item, by stratum where they differ.
        counts: What went in and what was left out where.
        strata: A row for each number of candidates, where items differ in it.
    """

    estimates: Mapping[str, tuple[Estimate, ...]]
    incomplete: int
    set_size: int | tuple[int, ...]
    counts: Mapping[str, int]
    strata: Mapping[int, Row] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Estimate:
        """The estimate of a metric that has a single value."""
        (estimate,) = self.estimates[name]
        return estimate

    def to_json(self) -> dict[str, object]:
        """The row as it stands in `metrics.json`."""
        size = self.set_size
        record = {
            **cells(self.estimates),
            "incomplete": self.incomplete,
            "set_size": size if isinstance(size, int) else list(size),
            "counts": dict(self.counts),
        }
        if self.strata:
            record["strata"] = {str(n): row.to_json() for n, row in self.strata.items()}
        return record


def cells(rows: Mapping[str, Sequence[Estimate]]) -> dict[str, object]:
    """Estimates as they stand in `metrics.json`: a list where a metric has several values."""
    parts = {name: msgspec.to_builtins(list(values)) for name, values in rows.items()}
    return {name: values if len(values) > 1 else values[0] for name, values in parts.items()}


def row_of(sample: Sample) -> Row:
    """The values of some outcomes as a row, with their counts."""
    strata = sample.strata
    sizes = sorted({outcomes.n_views for outcomes in strata})
    return Row(
        estimates={name: value.estimates for name, value in sample.values.items()},
        incomplete=sum(int((s.permutable & ~s.complete).sum()) for s in strata if s.n_views > 1),
        set_size=sizes[0] if len(sizes) == 1 else tuple(sizes),
        counts=_counts(strata),
        strata={part.strata[0].n: row_of(part) for part in sample.parts} if len(strata) > 1 else {},
    )


def _counts(strata: Sequence[Outcomes]) -> dict[str, int]:
    answers = {"unparsed": UNPARSED, "ties": TIE}
    kinds = {
        "gold_one": GOLD_ONE,
        "gold_several": GOLD_SEVERAL,
        "gold_tie": GOLD_TIE,
        "gold_none": GOLD_NONE,
    }
    counts = {
        "items": sum(len(s) for s in strata),
        "calls": sum(int(s.answered.sum()) for s in strata),
        "missing": sum(int((s.choices == MISSING)[s.permutable].sum()) for s in strata),
        "not_permutable": sum(int((~s.permutable).sum()) for s in strata),
    }
    for name, code in answers.items():
        counts[name] = sum(int((s.choices == code).sum()) for s in strata)
    for name, kind in kinds.items():
        counts[name] = sum(int((s.gold_kind == kind).sum()) for s in strata)
    return counts
