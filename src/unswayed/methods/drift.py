"""Drift: does what a fitted file says still hold for the judge of today?

A share of the items is asked again in all the presentations of the method's estimation; the method
is fitted on them afresh, with a bootstrap over items, and compared with the file.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from unswayed.decisions import Decision, DecisionTable, Estimate
from unswayed.errors import MethodError
from unswayed.items import Item
from unswayed.methods.estimation import estimation_tables
from unswayed.methods.protocol import FittedMethod, MethodWarning, learned_fields

__all__ = ["Drift", "compare", "drift"]

F = TypeVar("F", bound=FittedMethod)


@dataclass(frozen=True, slots=True)
class Drift:
    """One learned number, then and now.

    Attributes:
        name: What it is, such as "prior of label A under A B".
        filed: In the file.
        fresh: Estimated now, with its 95 % interval.
        moved: Whether the difference is larger than both intervals allow; False where the fresh
            value has no interval (content-free questions are asked once).
    """

    name: str
    filed: Estimate
    fresh: Estimate
    moved: bool

    def __str__(self) -> str:
        now = f"{_number(self.fresh.value)} [{_number(self.fresh.low)}, {_number(self.fresh.high)}]"
        verb = "moved" if self.moved else "holds"
        return f"{self.name} {verb}: {_number(self.filed.value)} in the file, {now} now"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.3f}"


def drift(
    method: FittedMethod,
    items: Sequence[Item],
    decisions: Sequence[Decision],
    *,
    resamples: int = 200,
    seed: int = 0,
) -> tuple[Drift, ...]:
    """Fit afresh on re-asked items and compare with what the method has learned.

    Args:
        method: The fitted method.
        items: The items asked again.
        decisions: The answers to `method.plan_fit(items)`.
        resamples: Bootstrap resamples of items.
        seed: Seed of the bootstrap.
    """
    return compare(
        method, estimation_tables(method, items, decisions), resamples=resamples, seed=seed
    )


def compare(
    method: FittedMethod,
    tables: Mapping[int, DecisionTable],
    *,
    resamples: int = 200,
    seed: int = 0,
) -> tuple[Drift, ...]:
    """`drift` on estimation tables, one per number of candidates."""
    filed = method.estimates()
    with warnings.catch_warnings():  # small samples are the point here
        warnings.simplefilter("ignore", MethodWarning)
        plain = _without_intervals(method)
        point = plain.fit_tables(tables).estimates()
        draws: dict[str, list[float]] = {name: [] for name in point}
        rng = np.random.default_rng(seed)
        several = any(len(table) > 1 for table in tables.values())  # else nothing to resample
        for _ in range(resamples if several else 0):
            drawn = {
                n: table.rows(rng.integers(0, len(table), len(table)))
                for n, table in tables.items()
            }
            for name, estimate in plain.fit_tables(drawn).estimates().items():
                if estimate.value is not None and name in draws:
                    draws[name].append(estimate.value)
    result = []
    for name, old in filed.items():
        new = _with_interval(point.get(name), draws.get(name, []))
        if new is not None and new.value is not None and old.value is not None:
            result.append(Drift(name, old, new, _moved(old, new)))
    if filed and not result:
        raise MethodError(
            f"{method.name}: nothing to compare: the re-asked items give none of the numbers in "
            "the file. Ask again in the presentations of its plan_fit."
        )
    return tuple(result)


def _without_intervals(method: F) -> F:
    """The method before `fit`, without a bootstrap of its own inside this one."""
    unlearned = replace(method, **dict.fromkeys(learned_fields(method)))  # type: ignore[type-var]
    if hasattr(method, "resamples"):
        unlearned = replace(unlearned, resamples=0)  # type: ignore[type-var]
    return unlearned


def _with_interval(estimate: Estimate | None, draws: Sequence[float]) -> Estimate | None:
    if estimate is None or len(draws) < 2:
        return estimate
    low, high = np.percentile(draws, (2.5, 97.5))
    return Estimate(value=estimate.value, low=float(low), high=float(high), n=estimate.n)


def _moved(old: Estimate, new: Estimate) -> bool:
    """Whether the interval of the difference excludes 0; False without an interval of the new."""
    if new.low is None or new.high is None or old.value is None or new.value is None:
        return False
    up = old.value > new.value
    allowed = (new.high - new.value) if up else (new.value - new.low)
    if old.low is not None and old.high is not None:
        filed = (old.value - old.low) if up else (old.high - old.value)
        allowed = float(np.hypot(allowed, filed))
    return abs(old.value - new.value) > allowed
