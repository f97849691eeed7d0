"""Two runs on the same items, compared in pairs: before and after training, or two judges."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from unswayed.auditing.planning import AuditPlan
from unswayed.auditing.run_directory import read_as
from unswayed.metrics import difference
from unswayed.metrics.accuracy import ACCURACY
from unswayed.metrics.gold import GOLD_TIE
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.table import compared_metrics
from unswayed.model.decisions import MISSING, Clusters, Estimate
from unswayed.model.permutations import Order
from unswayed.model.presentation import Presentation

ANSWERS_FILE: Final = "answers.json"
"""The single calls of a run by candidate, beside `metrics.json`."""


class SingleCalls(msgspec.Struct, frozen=True):
    """Single calls of items with n candidates, by candidate, under every coupled presentation."""

    label_set: tuple[str, ...]
    # orders, labels: of the V presentations
    orders: tuple[Order, ...]
    labels: tuple[Order, ...]
    item_ids: tuple[str, ...]
    choices: tuple[tuple[int, ...], ...]  # i lists of V codes as in `decisions`
    gold: tuple[tuple[int, ...], ...]  # i lists of right candidates
    gold_kind: tuple[int, ...]  # i codes as in `metrics.outcomes`
    permutable: tuple[bool, ...]
    # what each item counts once with; empty in files from before that was kept
    units: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n, rows = len(self.label_set), len(self.item_ids)
        per_item = (self.choices, self.gold, self.gold_kind, self.permutable)
        fits = (
            all(len(column) == rows for column in per_item)
            and len(self.units) in (0, rows)
            and len(self.orders) == len(self.labels)
            and all(sorted(order) == list(range(n)) for order in (*self.orders, *self.labels))
            and all(len(row) == len(self.orders) for row in set(self.choices))
            and all(MISSING <= choice < n for row in set(self.choices) for choice in row)
            and all(0 <= candidate < n for row in set(self.gold) for candidate in row)
            and all(0 <= kind <= GOLD_TIE for kind in set(self.gold_kind))
        )
        if not fits:
            raise ValueError("the answers do not fit their items and presentations")

    @property
    def asked(self) -> tuple[tuple[Order, ...], tuple[Order, ...]]:
        """Presentations, which two runs must share to be compared; their label symbols may differ."""
        return self.orders, self.labels

    def outcomes(self, keep: frozenset[str], unit_of: Mapping[str, str]) -> Outcomes:
        """Return the answers to some items, in the order of their ids; those of a unit together."""
        places = {item_id: place for place, item_id in enumerate(self.item_ids)}
        rows = [places[item_id] for item_id in sorted(keep) if item_id in places]
        gold = np.zeros((len(rows), len(self.label_set)), dtype=np.bool_)
        for row, place in enumerate(rows):
            gold[row, list(self.gold[place])] = True
        return Outcomes(
            item_ids=tuple(self.item_ids[place] for place in rows),
            groups=(None,) * len(rows),
            shown=tuple(Presentation(*pair) for pair in zip(self.orders, self.labels, strict=True)),
            label_set=self.label_set,
            choices=np.array([self.choices[place] for place in rows], dtype=np.int16).reshape(
                len(rows), len(self.orders)
            ),
            gold=gold,
            gold_kind=np.array([self.gold_kind[place] for place in rows], dtype=np.int8),
            permutable=np.array([self.permutable[place] for place in rows], dtype=np.bool_),
            clusters=Clusters.of([unit_of[self.item_ids[place]] for place in rows]),
        )


def answers_of(plan: AuditPlan) -> tuple[SingleCalls, ...]:
    """Return the single calls of a run directory, one entry per number of candidates."""
    units = dict(zip([item.id for item in plan.items.items], plan.items.units, strict=True))
    return tuple(
        SingleCalls(
            label_set=part.label_set,
            orders=tuple(shown.order for shown in part.shown),
            labels=tuple(shown.labels for shown in part.shown),
            item_ids=part.item_ids,
            choices=_shared(map(tuple, part.choices.tolist())),
            gold=_named(part),
            gold_kind=tuple(part.gold_kind.tolist()),
            permutable=tuple(part.permutable.tolist()),
            units=tuple(map(units.__getitem__, part.item_ids)),
        )
        for part in (stratum.single_calls["coupled"] for stratum in plan.strata)
    )


def _named(outcomes: Outcomes) -> tuple[tuple[int, ...], ...]:
    """Return the right candidates of each item."""
    rows, candidates = np.nonzero(outcomes.gold)
    ends = np.searchsorted(rows, np.arange(len(outcomes) + 1)).tolist()
    right = candidates.tolist()
    named = (tuple(right[first:last]) for first, last in itertools.pairwise(ends))
    return _shared(named)


def _shared(rows: Iterable[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Return the rows, equal ones as one object."""
    distinct: dict[tuple[int, ...], tuple[int, ...]] = {}
    return tuple(distinct.setdefault(row, row) for row in rows)


def load_answers(directory: Path) -> tuple[SingleCalls, ...]:
    """Return the single calls of a finished run."""
    return read_as(directory / ANSWERS_FILE, tuple[SingleCalls, ...])


def changes(
    first: Sequence[SingleCalls],
    other: Sequence[SingleCalls],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Estimate]:
    """Measure the change from one run to another: other minus first, paired by item.

    Only items that both runs asked in the same presentations are compared; the result is empty
    where there are none.
    """
    pairs, units = [], set()
    for before, after in itertools.product(first, other):
        shared = frozenset(before.item_ids) & frozenset(after.item_ids)
        if shared and before.asked == after.asked:
            source = before if before.units else after
            unit_of = dict(zip(source.item_ids, source.units or source.item_ids, strict=True))
            pairs.append((before.outcomes(shared, unit_of), after.outcomes(shared, unit_of)))
            units |= {unit_of[name] for name in shared}
    if not pairs:
        return {}
    old, new = zip(*pairs, strict=True)
    return {
        name: msgspec.structs.replace(
            difference(new, old, name, resamples=resamples, seed=seed), n_units=len(units)
        )
        for name, metric in compared_metrics().items()
        if metric is not ACCURACY and not metric.left_out(old)
    }
