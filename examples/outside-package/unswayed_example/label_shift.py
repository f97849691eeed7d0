"""A method that learns: subtraction of what each label gets on average."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from unswayed.ext.methods import (
    About,
    Ask,
    DecisionTable,
    Estimate,
    Evidence,
    Learned,
    Method,
    Tables,
    VerdictTable,
    canonical_ask,
    decide_by_offsets,
    learned,
    log_probs_by_label,
    not_fitted,
    presentations,
    warn_if_few,
)


@dataclass(frozen=True, slots=True)
class Shift(Learned):
    """Shift of each label, in nats."""

    nats: tuple[float, ...]
    count: int


@dataclass(frozen=True, slots=True)
class LabelShift(Method):
    """Subtraction of each label's mean log probability.

    Attributes:
        strength: Share of the shift that is subtracted.
    """

    strength: float = 1.0
    shifts: tuple[Shift, ...] | None = learned()

    name: ClassVar[str] = "label-shift"
    reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.PROBS})
    fitted_from: ClassVar[int] = 10
    about: ClassVar[About] = About(
        title="Label shift",
        source="another package",
        idea="Subtract what each label gets on average over the rotations.",
        calls="1",
        estimation="n per estimation item",
        equation="argmax_c log p(c) - shift(label of c)",
        helps="the judge prefers a label",
        cannot="It removes no other bias.",
    )

    def asks(self, n: int) -> tuple[Ask, ...]:
        return (canonical_ask(n),)

    def estimation_asks(self, n: int) -> tuple[Ask, ...]:
        return tuple(map(Ask, presentations("cyclic", n)))

    def fit_tables(self, tables: Tables) -> Self:
        shifts = []
        for n, table in tables.items():
            columns = range(len(table.shown))
            logs = np.stack([log_probs_by_label(table, column) for column in columns], axis=1)
            logs = logs[~np.isnan(logs).any(axis=(1, 2))]
            if len(logs):
                shifts.append(Shift(n, tuple(map(float, logs.mean(axis=(0, 1)))), len(logs)))
        counts = {shift.n: shift.count for shift in shifts}
        warn_if_few(self.name, counts, least=self.fitted_from)
        return replace(self, shifts=tuple(shifts))

    def estimates(self) -> dict[str, Estimate]:
        return {
            f"shift of label {label} among {shift.n} candidates": Estimate(
                value=value, n=shift.count
            )
            for shift in self.shifts or ()
            for label, value in enumerate(shift.nats)
        }

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        if self.shifts is None:
            raise not_fitted(self.name)
        nats = [np.array(shift.nats) for shift in self.shifts if shift.n == table.n]
        return decide_by_offsets(table, self.strength * nats[0] if nats else np.zeros(table.n))
