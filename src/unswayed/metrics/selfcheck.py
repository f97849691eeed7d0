"""The self-check: cells that no judge can produce are not printed.

For two candidates shown in V presentations an item that is answered consistently is right always or
never, and an inconsistent one is right in at most V - 1 of them. So on items with gold

    accuracy <= CA + (1 - Con) (V - 1) / V,

with equality for V = 2 without ties and unparsed answers: accuracy = CA + (1 - Con) / 2. A table
that exceeds the bound averages different items in its columns, or is wrong. Published tables do:
`printed_table` finds where.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from unswayed.base.errors import UnswayedError
from unswayed.metrics.accuracy import ACCURACY, CONSISTENT_ACCURACY
from unswayed.metrics.consistency import CONSISTENCY
from unswayed.metrics.gold import GOLD_ONE
from unswayed.metrics.measure import measure
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.rows import Row
from unswayed.metrics.table import METRICS
from unswayed.model.decisions import UNPARSED

_ROUNDING = 1e-9
_TERMS = tuple(map(METRICS.name_of, (ACCURACY, CONSISTENCY, CONSISTENT_ACCURACY)))


class ImpossibleTableError(UnswayedError):
    """A measured table contradicts itself; it is a defect of the program, not of the data."""


def self_check(row: Row, strata: Sequence[Outcomes]) -> None:
    """Check a row from `measure` over these outcomes before it is printed.

    The three terms are measured again on the complete items with one right candidate, compared with
    a direct count that shares no code with the metrics, and held against the bound. Where the row
    covers exactly those items its own cells must be the same. Every interval must contain its
    value.
    """
    for name, estimates in row.values.items():
        for cell in estimates:
            low, value, high = cell.low, cell.value, cell.high
            if value is None or low is None or high is None:
                continue
            if not low - _ROUNDING <= value <= high + _ROUNDING:
                raise ImpossibleTableError(f"{name}: {value} is outside its interval {low}..{high}")
    for outcomes in strata:
        if outcomes.n == 2 and outcomes.n_views > 1:
            _check_pairs(row, outcomes, alone=len(strata) == 1)


def _check_pairs(row: Row, outcomes: Outcomes, *, alone: bool) -> None:
    counted = outcomes.complete & (outcomes.gold_kind == GOLD_ONE)
    if not counted.any():
        return
    decided = outcomes if counted.all() else outcomes.rows(np.flatnonzero(counted))
    measured = _terms(measure([decided], names=_TERMS, resamples=0))
    if alone and counted.all():
        measured |= _terms(row)
    for name, value in _count(decided).items():
        if name in measured and abs(measured[name] - value) > _ROUNDING:
            raise ImpossibleTableError(
                f"{name}: measured {measured[name]:.6f}, but counting gives {value:.6f}"
            )
    accuracy, consistency, both = (measured[name] for name in _TERMS)
    over = accuracy - both - (1.0 - consistency) * (outcomes.n_views - 1) / outcomes.n_views
    if over > _ROUNDING:
        raise ImpossibleTableError(
            f"accuracy {accuracy:.4f} is impossible: consistent accuracy {both:.4f} and "
            "consistency "
            f"{consistency:.4f} allow at most {accuracy - over:.4f}"
        )


def _count(outcomes: Outcomes) -> dict[str, float]:
    """Return the three terms by counting, row by row (items that answered alike at once)."""
    right = same = always = 0.0
    rows = zip(outcomes.gold.argmax(axis=1).tolist(), *outcomes.choices.T.tolist(), strict=True)
    alike: Counter[tuple[int, ...]] = Counter()
    if outcomes.weights is None:
        alike.update(rows)
    else:
        for row, weight in zip(rows, outcomes.weights.tolist(), strict=True):
            alike[row] += weight
    for (gold, *choices), count in alike.items():
        hits = sum(choice == gold for choice in choices)
        right += count * hits / len(choices)
        always += count * (hits == len(choices))
        same += count * (choices[0] != UNPARSED and len(set(choices)) == 1)
    items = outcomes.n_items
    return dict(zip(_TERMS, (right / items, same / items, always / items), strict=True))


def _terms(row: Row) -> dict[str, float]:
    values = {name: row[name].value for name in _TERMS if name in row.estimates}
    return {name: value for name, value in values.items() if value is not None}
