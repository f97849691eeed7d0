"""Build the tables that `fit_tables` learns from, out of estimation items and their decisions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from unswayed.base.errors import MethodError
from unswayed.model.decisions import Decision, DecisionTable
from unswayed.model.items import Item, blind
from unswayed.model.presentation import Ask
from unswayed.model.tasks import task_of

FEW_ITEMS: Final = 20
"""Fewer estimation items than this are warned about."""

MOST_ITEMS: Final = 3000
"""More estimation items than this are not asked about: the intervals no longer shrink visibly."""

ROUNDED_TO_ZERO: Final = 1.0001e-10
"""Probabilities up to here are what a server's rounding to 0 is read as."""

Tables = Mapping[int, DecisionTable]
"""One table per number of candidates: a prior for four options is not valid for five."""


class MethodWarning(UserWarning):
    """A method works, but on less than it should have (few estimation items, a layout never seen).

    Attributes:
        all_equal: Whether it says that the judge tells the estimation answers apart by nothing.
    """

    def __init__(self, message: str, *, all_equal: bool = False) -> None:
        super().__init__(message)
        self.all_equal = all_equal


def tables_of(planned: Iterable[tuple[Item, Ask]], decisions: Sequence[Decision]) -> Tables:
    """Return the answers to the planned questions, arranged per number of candidates; others are left out."""
    rows: dict[int, dict[str, Item]] = {}
    asks: dict[int, dict[Ask, None]] = {}
    for item, ask in planned:
        rows.setdefault(item.n, {})[item.id] = item
        asks.setdefault(item.n, {})[ask] = None
    return {
        n: _floored(DecisionTable.of(tuple(rows[n].values()), decisions, asks=tuple(asks[n])))
        for n in rows
    }


def with_gold(tables: Tables, items: Sequence[Item | Decision]) -> Tables:
    """Return the tables with the right candidates of their items, none where gold is a tie or unknown."""
    right = {item.id: task_of(item.task).gold(item) for item in items if isinstance(item, Item)}
    gilded = {}
    for n, table in tables.items():
        named = [right.get(item.id, ()) for item in table.items]
        gold = np.array([[c in own for c in range(n)] for own in named], dtype=np.bool_)
        gilded[n] = replace(table, gold=gold)
    return gilded


def _floored(table: DecisionTable) -> DecisionTable:
    """Return the table with the smallest probability it has in the place of those rounded to 0.

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


def split(
    items: Sequence[Item | Decision], decisions: Sequence[Decision] | None
) -> tuple[list[Item], Sequence[Decision]]:
    """Blind items and decisions, from both or from the decisions alone (items without texts)."""
    if decisions is not None:
        return [blind(item) for item in items if isinstance(item, Item)], decisions
    recorded = [entry for entry in items if isinstance(entry, Decision)]
    if len(recorded) < len(items):
        raise MethodError("fit needs the decisions: call fit(items, decisions) or fit(decisions).")
    sizes = {decision.item_id: len(decision.order) for decision in reversed(recorded)}
    ids = dict.fromkeys(decision.item_id for decision in recorded)
    return [Item(id=name, prompt="", candidates=("",) * sizes[name]) for name in ids], recorded


def warn_if_few(
    name: str, counts: Mapping[int, int], *, least: int, what: str = "questions"
) -> None:
    """Warn about strata whose estimate rests on too little, and about no estimate at all.

    Args:
        name: Name of the method that was fitted.
        counts: What the estimates rest on, per number of candidates.
        least: Fewer than this are warned about.
        what: What is counted.
    """
    if not counts or not any(counts.values()):
        unread, remedy = (
            (f"no estimation {what}", f" Give at least {least}.")
            if least > 1
            else (f"{what} could not be read", "")
        )
        warn_of(f"{name}: {unread}; verdicts are the uncorrected ones.{remedy}")
        return
    for n, count in sorted(counts.items()):
        if count == 0:
            warn_of(
                f"{name}: no estimation {what} with {n} candidates and complete "
                "probabilities; verdicts on such items are the uncorrected ones."
            )
        elif count < least:
            warn_of(
                f"{name}: only {count} estimation {what} with {n} candidates; the "
                f"correction is unreliable below {least}. Give more items."
            )


def warn_uncorrected(name: str, reason: str) -> None:
    """Warn that verdicts are the uncorrected ones."""
    warn_of(f"{name}: {reason}; these verdicts are the uncorrected ones.")


def warn_of(message: str, *, all_equal: bool = False) -> None:
    """Issue a `MethodWarning`."""
    warnings.warn(MethodWarning(message, all_equal=all_equal), stacklevel=4)


def not_fitted(name: str) -> MethodError:
    """Return the error of a method that is asked to decide before it has learned anything."""
    return MethodError(
        f"{name} has not been fitted. Call fit(items, decisions) first, "
        "or load a file made by `unswayed calibrate`."
    )
