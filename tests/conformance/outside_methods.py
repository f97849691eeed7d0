"""Two methods as another package would write them: one class and one entry point each.

`first-two` asks the rotations and stops after two of them where these agree. `label-shift` learns
what each label gets on average. Nothing of the package's own names them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from unswayed.decisions import DecisionTable, Estimate, Evidence, VerdictTable
from unswayed.methods import METHODS
from unswayed.methods.estimation import Tables, not_fitted, warn_if_few
from unswayed.methods.priors import decide_by_offsets
from unswayed.methods.protocol import About, Learned, Method, learned
from unswayed.methods.sets import canonical_ask
from unswayed.methods.tables import agreement, log_probs_by_label, plurality, verdict_table
from unswayed.methods.voting import count_votes
from unswayed.presentation import Ask, presentations

ENTRY_POINTS = """[unswayed.methods]
first-two = outside_methods:FirstTwo
label-shift = outside_methods:LabelShift
"""


@dataclass(frozen=True, slots=True)
class FirstTwo(Method):
    """A vote over the rotations that stops where the first two agree."""

    name: ClassVar[str] = "first-two"
    about: ClassVar[About] = About(
        title="First two",
        source="another package",
        idea="Ask two rotations, and the others only where these disagree.",
        calls="2 to n",
        equation="z_1 if z_1 = z_2, else argmax_c #{t : z_t = c}",
        helps="Two calls where the judge is sure.",
        cannot="The order it starts with decides when it stops.",
    )

    def asks(self, n: int) -> tuple[Ask, ...]:
        return tuple(map(Ask, presentations("cyclic", n)))

    def stops_after(self, n: int) -> Sequence[int]:
        return (2,) if n > 2 else ()

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        cells = table.allowed.copy()
        cells[agreement(table.choices[:, :2], cells[:, :2]) == 1, 2:] = False
        counts = count_votes(table.choices, cells, table.n, np.ones(len(table.asks)))
        choices, tied = plurality(counts)
        shares = counts[:, :-1] / np.maximum(cells.sum(axis=1), 1)[:, None]
        return verdict_table(table, choices, cells=cells, scores=shares, tied=tied)


@dataclass(frozen=True, slots=True)
class Shift(Learned):
    """What each label gets, in nats."""

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
        helps="Removes a preference for a label.",
        cannot="Anything else.",
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
            f"shift of label {label} among {shift.n}": Estimate(value=value, n=shift.count)
            for shift in self.shifts or ()
            for label, value in enumerate(shift.nats)
        }

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        if self.shifts is None:
            raise not_fitted(self.name)
        nats = [np.array(shift.nats) for shift in self.shifts if shift.n == table.n]
        return decide_by_offsets(table, self.strength * nats[0] if nats else np.zeros(table.n))


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """The package of this module, installed: its entry points are all that names its methods."""
    facts = folder / "outside_methods-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-methods\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(ENTRY_POINTS)
    sys.path.append(str(folder))
    _look_again()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        _look_again()


def _look_again() -> None:
    importlib.invalidate_caches()
    METHODS.__dict__.pop("_all", None)
