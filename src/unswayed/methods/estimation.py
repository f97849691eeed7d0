"""From estimation items and their decisions to the tables that `fit` learns from."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from unswayed.decisions import Decision, DecisionTable
from unswayed.errors import MethodError, NeedsLogprobs
from unswayed.items import Item, blind
from unswayed.methods.protocol import Method, MethodWarning
from unswayed.presentation import Ask

__all__ = [
    "FEW_ITEMS",
    "MOST_ITEMS",
    "ROUNDED_TO_ZERO",
    "Tables",
    "estimation_tables",
    "not_fitted",
    "plan_each",
    "warn_if_few",
    "warn_of",
    "warn_uncorrected",
]

FEW_ITEMS: Final = 20
"""Fewer estimation items than this are warned about."""

MOST_ITEMS: Final = 3000
"""More estimation items than this are not asked about: the intervals no longer shrink visibly."""

ROUNDED_TO_ZERO: Final = 1.0001e-10
"""Probabilities up to here are what a server's rounding to 0 is read as."""

Tables = Mapping[int, DecisionTable]
"""One table per number of candidates: a prior for four options is not valid for five."""


def plan_each(
    items: Sequence[Item], presentations: Mapping[int, Sequence[Ask]]
) -> list[tuple[Item, Ask]]:
    """Every question about every item that may be permuted, at most `MOST_ITEMS` per n."""
    left = dict.fromkeys(presentations, MOST_ITEMS)
    planned: list[tuple[Item, Ask]] = []
    for item in items:
        if not item.permutable or left[item.n] == 0:
            continue
        left[item.n] -= 1
        planned.extend((item, ask) for ask in presentations[item.n])
    return planned


def estimation_tables(
    method: Method, items: Sequence[Item | Decision], decisions: Sequence[Decision] | None
) -> Tables:
    """The decisions that the method planned, arranged per number of candidates.

    Args:
        method: The method; only the questions of its `plan_fit` are read, so that it learns from
            nothing that it is not priced for.
        items: Estimation items; or the decisions alone, when there are no item texts.
        decisions: Decisions about them (others are left out); None if `items` are the decisions.

    Raises:
        NeedsLogprobs: If it needs probabilities and no decision has any.
    """
    blinded, recorded = _split(items, decisions)
    rows: dict[int, dict[str, Item]] = {}
    asks: dict[int, dict[Ask, None]] = {}
    for item, ask in method.plan_fit(blinded):
        rows.setdefault(item.n, {})[item.id] = item
        asks.setdefault(item.n, {})[ask] = None
    tables = {
        n: _floored(DecisionTable.of(tuple(rows[n].values()), recorded, asks=tuple(asks[n])))
        for n in rows
    }
    answered = any((table.choices >= 0).any() for table in tables.values())
    if method.needs_probs and answered and all(t.probs is None for t in tables.values()):
        raise NeedsLogprobs(
            f"{method.name} needs label probabilities, and none of the {len(recorded)} estimation "
            "decisions has any. Use vote, or ask for sampled probabilities (--probs sampled:R)."
        )
    return tables


def _floored(table: DecisionTable) -> DecisionTable:
    """The table with the smallest probability it has in the place of those rounded to 0.

    A server that rounds says no more than one whose list ends: the logarithm of its 0 is unknown,
    and bounded by that of the smallest probability it does return.
    """
    if table.probs is None:
        return table
    zero = table.probs <= ROUNDED_TO_ZERO
    if not zero.any() or not (table.probs > ROUNDED_TO_ZERO).any():
        return table
    probs = np.where(zero, table.probs[table.probs > ROUNDED_TO_ZERO].min(), table.probs)
    rows = zero.any(axis=2)
    probs[rows] /= probs[rows].sum(axis=1, keepdims=True)
    return replace(table, probs=probs)


def _split(
    items: Sequence[Item | Decision], decisions: Sequence[Decision] | None
) -> tuple[list[Item], Sequence[Decision]]:
    if decisions is not None:
        return [blind(item) for item in items if isinstance(item, Item)], decisions
    recorded = [entry for entry in items if isinstance(entry, Decision)]
    if len(recorded) < len(items):
        raise MethodError("fit needs the decisions: call fit(items, decisions) or fit(decisions).")
    found: dict[str, Item] = {}
    for decision in recorded:
        if decision.item_id not in found:
            blank = ("",) * len(decision.order)
            found[decision.item_id] = Item(id=decision.item_id, prompt="", candidates=blank)
    return list(found.values()), recorded


def warn_if_few(method: Method, counts: Mapping[int, int], *, what: str = "items") -> None:
    """Warn about strata whose estimate rests on too little, and about no estimate at all.

    Args:
        method: The method that was fitted.
        counts: Estimation items used, per number of candidates.
        what: What is counted.
    """
    if not counts or not any(counts.values()):
        warn_of(
            f"{method.name}: no estimation {what}; verdicts are the uncorrected ones. "
            f"Give at least {method.fitted_from}."
        )
        return
    for n, count in sorted(counts.items()):
        if count == 0:
            warn_of(
                f"{method.name}: no estimation {what} with {n} candidates and complete "
                "probabilities; verdicts on such items are the uncorrected ones."
            )
        elif count < method.fitted_from:
            warn_of(
                f"{method.name}: only {count} estimation {what} with {n} candidates; the "
                f"correction is unreliable below {method.fitted_from}."
            )


def warn_uncorrected(name: str, reason: str) -> None:
    """Warn that verdicts are the uncorrected ones."""
    warn_of(f"{name}: {reason}; these verdicts are the uncorrected ones.")


def warn_of(message: str) -> None:
    """Issue a `MethodWarning`."""
    warnings.warn(message, MethodWarning, stacklevel=4)


def not_fitted(name: str) -> MethodError:
    """The error of a method that is asked to decide before it has learned anything."""
    return MethodError(
        f"{name} has learned nothing yet. Call fit(items, decisions) first, "
        "or load a file made by `unswayed calibrate`."
    )
