"""The pool: every recorded decision of an audit as columns, one table per stratum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import numpy as np

from unswayed.auditing.design import Stratum, asks_under_views
from unswayed.decisions import MISSING, Decision, DecisionTable, FloatArray, IntArray, code_of
from unswayed.errors import ShapeError
from unswayed.items import blind
from unswayed.methods import Method
from unswayed.parsing import was_refused
from unswayed.presentation import Ask
from unswayed.runner import Question

__all__ = [
    "DecisionSource",
    "TableBuilder",
    "build_tables",
    "noting_refusals",
    "remembering",
    "sampled",
    "with_content",
]

DecisionSource = Callable[[Iterable[Question]], Iterator[Decision]]
"""Reads the decisions of questions from wherever they are recorded; what is missing is left out."""


class TableBuilder:
    """Collects streamed decisions of one stratum; keeps numbers, not records."""

    def __init__(self, stratum: Stratum) -> None:
        self._items = tuple(blind(item) for item in stratum.items)
        self._row = {item.id: row for row, item in enumerate(self._items)}
        self._n = stratum.n
        self._choices: dict[Ask, IntArray] = {}
        self._probs: dict[Ask, FloatArray] = {}
        self._mass: dict[Ask, FloatArray] = {}
        self._label_set: tuple[str, ...] | None = None

    def add(self, decision: Decision) -> None:
        """Take one decision; those of other items are ignored.

        Raises:
            ShapeError: If its label set differs from the others'.
        """
        row = self._row.get(decision.item_id)
        if row is None:
            return
        if self._label_set is None:
            self._label_set = decision.label_set
        elif decision.label_set != self._label_set:
            raise ShapeError(
                f"{decision.item_id}: label set {list(decision.label_set)} differs from "
                f"{list(self._label_set)} of the other decisions."
            )
        ask = decision.ask
        size = len(self._items)
        if ask not in self._choices:
            self._choices[ask] = np.full(size, MISSING, dtype=np.int16)
        self._choices[ask][row] = code_of(decision.choice)
        if decision.probs is not None and ask not in self._probs:
            self._probs[ask] = np.full((size, self._n), np.nan)
        if ask in self._probs:  # an earlier decision's probabilities must not outlive it
            self._probs[ask][row] = np.nan if decision.probs is None else decision.probs
        if decision.label_mass is not None and ask not in self._mass:
            self._mass[ask] = np.full(size, np.nan)
        if ask in self._mass:
            self._mass[ask][row] = np.nan if decision.label_mass is None else decision.label_mass

    def table(self) -> DecisionTable:
        """The collected table."""
        size, asks = len(self._items), tuple(self._choices)
        probs = mass = None
        if self._probs:
            unknown = np.full((size, self._n), np.nan)
            probs = np.stack([self._probs.get(ask, unknown) for ask in asks], axis=1)
        if self._mass:
            nothing = np.full(size, np.nan)
            mass = np.stack([self._mass.get(ask, nothing) for ask in asks], axis=1)
        choices = (
            np.stack([self._choices[ask] for ask in asks], axis=1)
            if asks
            else np.full((size, 0), MISSING, dtype=np.int16)
        )
        return DecisionTable(
            items=self._items,
            asks=asks,
            shown=tuple(ask.presentation for ask in asks),
            label_set=self._label_set or tuple(chr(65 + label) for label in range(self._n)),
            choices=choices,
            probs=probs,
            label_mass=mass,
        )


def build_tables(
    strata: Sequence[Stratum], decisions: Iterable[Decision], *, methods: Iterable[Method] = ()
) -> tuple[DecisionTable, ...]:
    """Stream decisions into one table per stratum.

    Content-free decisions are left out, but for those that a method reads to judge an item
    (contextual calibration with `per_item`): what others learn from them, `fit` reads itself.
    """
    builders = [TableBuilder(stratum) for stratum in strata]
    by_n = {stratum.n: builder for stratum, builder in zip(strata, builders, strict=True)}
    judging = list(methods)
    content_free = {
        stratum.n: {
            ask
            for method in judging
            if any(ask.substitute is not None for ask in method.asks(stratum.n))
            for ask in asks_under_views(method, stratum)
        }
        for stratum in strata
    }
    for decision in decisions:
        n = len(decision.order)
        builder = by_n.get(n)
        if builder is None:
            continue
        if decision.substitute is None or decision.ask in content_free[n]:
            builder.add(decision)
    return tuple(builder.table() for builder in builders)


def noting_refusals(
    decisions: Iterable[Decision], refused: set[tuple[str, Ask]]
) -> Iterator[Decision]:
    """Pass decisions on, and note which questions about the candidates were refused."""
    for decision in decisions:
        unread = decision.choice is None and decision.substitute is None
        if unread and was_refused(decision.finish_reason):
            refused.add((decision.item_id, decision.ask))
        yield decision


def with_content(table: DecisionTable) -> DecisionTable:
    """The columns that ask about the candidates themselves, for counts of answers."""
    if all(ask.substitute is None for ask in table.asks):
        return table
    return table.select([ask for ask in table.asks if ask.substitute is None])


def remembering(read: DecisionSource, questions: Iterable[Question]) -> DecisionSource:
    """A source that has read some questions already: each fold and method asks for them again."""
    known = {(decision.item_id, decision.ask): decision for decision in read(questions)}

    def source(asked: Iterable[Question]) -> Iterator[Decision]:
        unknown = []
        for question in asked:
            found = known.get((question.item.id, question.ask))
            if found is None:
                unknown.append(question)
            else:
                yield found
        if unknown:
            yield from read(unknown)

    return source


def sampled(decisions: Iterable[Decision], samples: int) -> Iterator[Decision]:
    """Give each greedy decision the probabilities of its R samples, an explicit choice of the run.

    Laplace: (count + 1/n) / (R + 1). Unparsed samples count for no candidate; with none parsed
    the probabilities stay unknown. The samples themselves are passed on unchanged.
    """
    greedy: dict[tuple[str, Ask], Decision] = {}
    choices: dict[tuple[str, Ask], dict[int, int]] = {}
    for decision in decisions:
        key = (decision.item_id, decision.ask._replace(sample=0))
        if decision.sample == 0:
            greedy[key] = decision
        else:
            yield decision
            if decision.sample <= samples and isinstance(decision.choice, int):
                choices.setdefault(key, {})[decision.sample] = decision.choice
    for key, decision in greedy.items():
        seen = Counter(choices.get(key, {}).values())
        n, total = len(decision.order), seen.total()
        probs = tuple((seen[candidate] + 1 / n) / (total + 1) for candidate in range(n))
        yield msgspec.structs.replace(decision, probs=probs if total else None)
