"""The threshold view: for two candidates, every single-call method is a threshold on P(A).

Whatever its idea, a method that reads one call and keeps the order of the probabilities answers A
exactly where P(A) is above some t. Methods therefore differ in nothing but t, and the best t in
hindsight (the oracle) bounds them all. A preference for the first position needs one t where A
stands first and another where A stands second: no single t can be right for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from unswayed.base.errors import MethodError
from unswayed.methods import METHODS
from unswayed.methods.names import spec_name
from unswayed.methods.protocol import Method
from unswayed.methods.tables import labels_by_candidate, probs_of
from unswayed.model.decisions import BoolArray, DecisionTable, FloatArray
from unswayed.model.permutations import invert
from unswayed.model.presentation import X0, X1, X2, X3, Ask, Presentation

PRESENTATIONS: Final[Mapping[str, Presentation]] = {"X0": X0, "X1": X1, "X2": X2, "X3": X3}


@dataclass(frozen=True, slots=True)
class Oracle:
    """The best threshold in hindsight."""

    threshold: float  # A wins where P(A) is above it
    accuracy: float  # share of right verdicts with it
    n: int  # verdicts it was chosen on


@dataclass(frozen=True, slots=True)
class ThresholdView:
    """Thresholds of methods and of the oracle."""

    # by display name, then by presentation (X0 to X3); None where a method has none
    methods: dict[str, dict[str, float | None]]
    by_presentation: dict[str, Oracle]  # the oracle of each presentation alone
    single: Oracle | None  # the oracle of one threshold for all of them
    # the oracle of one threshold per label sequence (A first, A second) together: its accuracy
    # over the same verdicts; `threshold` is that of "A first"
    cells: Oracle | None
    text: str  # why one threshold cannot serve both, in words with these numbers


def method_thresholds(
    methods: Sequence[Method], shown: Mapping[str, Presentation] = PRESENTATIONS
) -> dict[str, dict[str, float | None]]:
    """Return the P(A) above which each single-call method answers A, by presentation.

    Methods that read several calls are left out, and so are those that neither learn nor have one.
    """
    result: dict[str, dict[str, float | None]] = {}
    for method in methods:
        if len(method.asks(2)) == 1:
            values = {name: method.threshold(shape) for name, shape in shown.items()}
            if method.fitted_from or any(value is not None for value in values.values()):
                result[spec_name(method)] = values
    return result


def best_threshold(p_a: FloatArray, a_is_right: BoolArray) -> Oracle:
    """Find the threshold on P(A), shape (K,), with the most right verdicts (A where P(A) is above it):
    the middle of the best gap between neighbouring probabilities, the lowest if several are best.
    """
    if not len(p_a):
        raise MethodError("a best threshold needs at least one item with gold and probabilities.")
    z, inverse = np.unique(p_a, return_inverse=True)
    gain = np.bincount(inverse, np.where(a_is_right, -1.0, 1.0), minlength=len(z))
    # moving t past z_k takes A away from those items: right ones are lost, wrong ones are won
    right = np.concatenate([[0.0], np.cumsum(gain)]) + a_is_right.sum()
    best = int(right.argmax())
    edges = np.concatenate([[0.0], z, [1.0]])
    middle = float((edges[best] + edges[best + 1]) / 2)
    return Oracle(middle, float(right[best]) / len(p_a), len(p_a))


def threshold_view(
    methods: Sequence[Method], table: DecisionTable, gold: Sequence[int | None]
) -> ThresholdView:
    """Methods compared with the oracle on items with two candidates; columns other than X0 to X3
    are not read. Gold is used for the oracle only; no method sees it.
    """
    p_a: dict[str, FloatArray] = {}
    right: dict[str, BoolArray] = {}
    answer = np.array([-1 if candidate is None else candidate for candidate in gold])
    for name, shape in PRESENTATIONS.items():
        column = table.columns.get(Ask(shape))
        if column is None:
            continue
        holder = invert(labels_by_candidate(table, column))[0]
        scores = probs_of(table, column)[:, holder]
        kept = ~np.isnan(scores) & (answer >= 0)
        if kept.any():
            p_a[name] = scores[kept]
            right[name] = answer[kept] == holder
    alone = {name: best_threshold(p_a[name], right[name]) for name in p_a}
    single = cells = None
    if p_a:
        single = _pooled(p_a, right, tuple(p_a))
        pairs = [_pooled(p_a, right, pair) for pair in (("X0", "X2"), ("X3", "X1"))]
        parts = [part for part in pairs if part is not None]
        total = sum(part.n for part in parts)
        accuracy = sum(part.accuracy * part.n for part in parts) / total
        cells = Oracle(parts[0].threshold, accuracy, total)
    view = method_thresholds(methods, {name: PRESENTATIONS[name] for name in p_a} or PRESENTATIONS)
    text = _explain(alone, single, cells)
    if any(value is None for own in view.values() for value in own.values()):
        text += " A dash (–) stands where a method was not fitted."
    return ThresholdView(view, alone, single, cells, text)


def _pooled(
    p_a: Mapping[str, FloatArray], right: Mapping[str, BoolArray], names: Sequence[str]
) -> Oracle | None:
    shown = [name for name in names if name in p_a]
    if not shown:
        return None
    scores = np.concatenate([p_a[name] for name in shown])
    return best_threshold(scores, np.concatenate([right[name] for name in shown]))


def _explain(alone: Mapping[str, Oracle], single: Oracle | None, cells: Oracle | None) -> str:
    general = (
        "With two candidates, a method that reads one call answers A where P(A) is above a "
        "threshold; methods differ only in that threshold. For a fitted method, the threshold of its first fit is "
        "shown."
    )
    if single is None or cells is None:
        return f"{general} Without gold answers the best threshold is not known."
    listed = ", ".join(f"{oracle.threshold:.2f} under {name}" for name, oracle in alone.items())
    text = (
        f"{general} The best threshold in hindsight is {listed}. "
        f"One threshold for all reaches {single.accuracy:.1%} at best."
    )
    first, second = {"X0", "X2"} & set(alone), {"X1", "X3"} & set(alone)
    if not (first and second):
        return f"{text} In all of these presentations A stands first, so one threshold can serve."
    names = (METHODS.load(name).about.per_layout for name in reversed(list(METHODS)))
    *free, last = filter(None, names)  # what can have one threshold per label sequence
    return (
        f"{text} A preference for the first position raises P(A) where A stands first (X0, X2) and "
        "lowers it where A stands second (X1, X3). The threshold that is right for one is then wrong for the other, "
        "whatever method chose it. One threshold for each label sequence reaches "
        f"{cells.accuracy:.1%}: {', '.join(free)} and {last} have that freedom; one map or one prior for all "
        f"presentations does not."
    )
