"""Decisions (one judge call), verdicts (a method's answer) and estimates, singly and as columns.

Everything is by candidate unless its name says otherwise.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.digests import digest
from unswayed.errors import ItemError, ShapeError
from unswayed.items import Item, text_of
from unswayed.permutations import Order, compose, invert
from unswayed.presentation import Ask, Presentation, Substitution, content_order

__all__ = [
    "MISSING",
    "TIE",
    "UNPARSED",
    "Choice",
    "Decision",
    "DecisionTable",
    "Estimate",
    "Evidence",
    "Verdict",
    "VerdictTable",
    "argmax_by_tie_rule",
    "tie_rank",
]

Choice = int | Literal["tie"] | None
"""A candidate, a declared tie, or None (unparsed)."""

UNPARSED: Final = -1
"""Column code of a choice that could not be read."""
TIE: Final = -2
"""Column code of a declared tie."""
MISSING: Final = -3
"""Column code of a call that was not made or failed: never a decision."""

IntArray = NDArray[np.int16]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


class Evidence(StrEnum):
    """What a reply can tell: the best candidate, label probabilities, a score of each candidate."""

    CHOICE = "choice"
    PROBS = "probs"
    SCORES = "scores"


# gc=False: a decision cannot refer to itself, and half a million need not be looked through.
class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One judge call, read: the fields are those of `formats.md`.

    Attributes:
        order: `order[p]` = candidate shown at position p.
        labels: `labels[p]` = the symbol printed at position p.
        label_set: The symbols in canonical order; may be left out where they are A, B, … or
            1, 2, ….
        choice: Candidate index, "tie", or None (unparsed).
        probs: Probability by candidate, renormalised over the labels; None if unknown or partial.
        label_mass: Probability mass on the labels before renormalising.
        censored: True if a label was outside the returned top-k and got the floor.
        substitute: Content-free text shown in place of the candidates, if any.
    """

    item_id: str
    order: tuple[int, ...]
    labels: tuple[str, ...]
    label_set: tuple[str, ...] = ()
    sample: int = 0
    prompt_id: str = "default"
    choice: int | Literal["tie"] | None = None
    probs: tuple[float, ...] | None = None
    label_mass: float | None = None
    censored: bool = False
    scores: tuple[float, ...] | None = None
    ranking: tuple[int, ...] | None = None
    flags: dict[str, tuple[bool, ...]] | None = None
    text: str | None = None
    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    latency_s: float | None = None
    finish_reason: str | None = None
    criterion: str | None = None
    criteria_order: tuple[int, ...] | None = None
    substitute: tuple[str, ...] | None = None
    substitute_prompt: str | None = None

    def __post_init__(self) -> None:
        """Derive a label set that was left out.

        Raises:
            ShapeError: If the labels are neither A, B, … nor 1, 2, ….
        """
        if not self.label_set:
            msgspec.structs.force_setattr(self, "label_set", _canonical_labels(self.labels))

    @property
    def presentation(self) -> Presentation:
        """Order and label indices."""
        return _presentation(self.order, self.labels, self.label_set)

    @property
    def ask(self) -> Ask:
        """The question this decision answers."""
        return _ask(
            _presentation(self.order, self.labels, self.label_set),
            self.prompt_id,
            self.sample,
            self.substitute,
            self.substitute_prompt,
        )


@lru_cache(maxsize=8192)
def _canonical_labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    n = len(labels)
    for symbols in (
        tuple(chr(65 + label) for label in range(min(n, 26))),
        tuple(str(label + 1) for label in range(n)),
    ):
        if n and sorted(labels) == sorted(symbols):
            return symbols
    raise ShapeError(
        f"label_set: give it, since the labels {list(labels)} are neither A, B, ... nor 1, 2, ..."
    )


@lru_cache(maxsize=8192)  # few questions are asked about very many items
def _presentation(
    order: tuple[int, ...], labels: tuple[str, ...], label_set: tuple[str, ...]
) -> Presentation:
    index = {symbol: label for label, symbol in enumerate(label_set)}
    return Presentation(order, tuple(index[symbol] for symbol in labels))


@lru_cache(maxsize=8192)
def _ask(
    presentation: Presentation,
    prompt_id: str,
    sample: int,
    substitute: tuple[str, ...] | None,
    substitute_prompt: str | None,
) -> Ask:
    shown = None if substitute is None else Substitution(substitute, substitute_prompt)
    return Ask(presentation, prompt_id, sample, shown)


def check_decision(decision: Decision) -> None:
    """Check a decision that came from a file.

    Raises:
        ItemError: Naming the item and the field.
    """
    n = len(decision.order)
    where = f"{decision.item_id}: "
    wrong = _wrong_presentation(decision.order, decision.labels, decision.label_set)
    if wrong is not None:
        raise ItemError(where + wrong)
    choice = decision.choice
    if isinstance(choice, int) and not 0 <= choice < n:
        raise ItemError(f"{where}choice: {choice} is out of range (0 to {n - 1})")
    for name, values in (("probs", decision.probs), ("scores", decision.scores)):
        if values is not None and len(values) != n:
            raise ItemError(f"{where}{name}: {len(values)} values for {n} candidates")
    if decision.probs is not None:
        total = sum(decision.probs)
        if min(decision.probs) < 0 or not abs(total - 1) < 1e-3:
            raise ItemError(f"{where}probs: not probabilities (sum {total:.4g})")


@lru_cache(maxsize=8192)
def _wrong_presentation(
    order: tuple[int, ...], labels: tuple[str, ...], label_set: tuple[str, ...]
) -> str | None:
    """The field that is wrong and why; None if all is well."""
    try:
        invert(order)
    except ShapeError:
        return f"order: {list(order)} is not a permutation"
    if len(labels) != len(order) or sorted(labels) != sorted(label_set):
        return (
            f"labels: {list(labels)} must be the {len(order)} symbols of label_set "
            f"{list(label_set)} in displayed order"
        )
    return None


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A method's answer for one item.

    Attributes:
        choice: Candidate, "tie", or None where no verdict was possible.
        tie: The tied candidates where `choice` is "tie".
        scores: What the method ranks the candidates by.
        confidence: Mean corrected probability of the chosen candidate over the presentations
            read; without probabilities its vote share.
        consistent: Whether all presentations read named the same candidate; None for one call.
        n_calls: Decisions read for this item.
    """

    item_id: str
    choice: int | Literal["tie"] | None
    method: str
    tie: tuple[int, ...] | None = None
    scores: tuple[float, ...] | None = None
    confidence: float | None = None
    consistent: bool | None = None
    n_calls: int = 0
    score: float | None = None
    sd: float | None = None

    def _repr_html_(self) -> str:
        fields = msgspec.to_builtins(self).items()
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
            for name, value in fields
        )
        return f"<table>{rows}</table>"


class Estimate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A number with its 95 % interval, or a reason why there is none.

    Attributes:
        value, low, high: The estimate and its interval, fractions in [0, 1] for rates.
        n: Items (or calls, for rates over calls) behind it.
        reason: Why `value` is None.
        by_construction: The value holds for any judge (a method that reads every order is always
            consistent) and is not evidence.
        joint: Of a difference between methods: the interval that holds with 95 % for all methods
            compared at once.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    reason: str | None = None
    by_construction: bool = False
    joint: tuple[float, float] | None = None


def tie_rank(item: Item) -> tuple[int, ...]:
    """Rank of each candidate under the one tie rule (0 wins).

    Candidates are ranked by sha256 of item id and candidate text, so the rule does not depend on
    order, position or label. Without text (recorded decisions) the index is hashed instead.
    """
    keys = []
    for candidate, text in enumerate(item.candidates):
        content = text_of(text) or f"\x00{candidate}"
        keys.append(digest(item.id, content))
    by_rank = sorted(range(item.n), key=lambda candidate: (keys[candidate], candidate))
    return invert(tuple(by_rank))


@dataclass(frozen=True, eq=False)
class DecisionTable:
    """Decisions of items with the same number of candidates, as columns.

    Attributes:
        items: The I items, blind.
        asks: The T questions, one per column, as the reader of the table asked them.
        shown: The T presentations really shown (equal to the asks' own unless the items are seen
            through a view); label and position effects belong to these.
        label_set: The n symbols.
        choices: Candidate or UNPARSED, TIE, MISSING; shape (I, T).
        probs: Probability by candidate, NaN where unknown; shape (I, T, n). None if there are none.
        label_mass: Shape (I, T), NaN where unknown; None if there is none.
        outer: The view the table is seen through; candidate j is `items[i].candidates[outer[j]]`.
    """

    items: tuple[Item, ...]
    asks: tuple[Ask, ...]
    shown: tuple[Presentation, ...]
    label_set: tuple[str, ...]
    choices: IntArray
    probs: FloatArray | None = None
    label_mass: FloatArray | None = None
    outer: Order | None = None

    @property
    def n(self) -> int:
        """Number of candidates."""
        return len(self.label_set)

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def columns(self) -> Mapping[Ask, int]:
        """Column of each ask."""
        return {ask: column for column, ask in enumerate(self.asks)}

    @cached_property
    def content_orders(self) -> tuple[Order | None, ...]:
        """The candidates of each item, as seen, sorted by content; None where they have no text."""
        found = [content_order(item) for item in self.items]
        if self.outer is None:
            return tuple(found)
        seen_as = invert(self.outer)
        return tuple(None if order is None else compose(seen_as, order) for order in found)

    def rows(self, index: NDArray[np.intp]) -> DecisionTable:
        """The table of some items."""
        return DecisionTable(
            items=tuple(self.items[i] for i in index),
            asks=self.asks,
            shown=self.shown,
            label_set=self.label_set,
            choices=self.choices[index],
            probs=None if self.probs is None else self.probs[index],
            label_mass=None if self.label_mass is None else self.label_mass[index],
            outer=self.outer,
        )

    def select(self, asks: Sequence[Ask], *, through: Presentation | None = None) -> DecisionTable:
        """The columns that answer `asks`, the items seen through a view.

        Args:
            asks: Questions about the item as seen. A question that was never asked gives a column
                of MISSING.
            through: The view; None for the items as they are.

        Returns:
            A table whose candidates are those of the view: choices and probabilities are mapped.
        """
        from unswayed.presentation import canonical
        from unswayed.presentation import through as seen_through

        outer = through or canonical(self.n)
        real = [seen_through(outer, ask) for ask in asks]
        found = [self.columns.get(ask, -1) for ask in real]
        has = np.array([column >= 0 for column in found], dtype=bool)
        at = np.array([max(column, 0) for column in found], dtype=np.intp)
        shape = (len(self), len(found))
        choices = np.full(shape, MISSING, dtype=np.int16)
        probs = None
        mass = None
        if len(self.asks):
            choices[:, has] = self.choices[:, at[has]]
            if self.probs is not None:
                probs = np.full((*shape, self.n), np.nan)
                probs[:, has] = self.probs[:, at[has]]
            if self.label_mass is not None:
                mass = np.full(shape, np.nan)
                mass[:, has] = self.label_mass[:, at[has]]
        for place, ask in enumerate(real):
            if ask.arranged == "content" and not has[place]:
                for rows, column in self._by_content(ask):
                    choices[rows, place] = self.choices[rows, column]
                    if probs is not None and self.probs is not None:
                        probs[rows, place] = self.probs[rows, column]
                    if mass is not None and self.label_mass is not None:
                        mass[rows, place] = self.label_mass[rows, column]
        if outer.order != tuple(range(self.n)):
            seen_as = np.array(invert(outer.order), dtype=np.int16)
            choices = np.where(choices >= 0, seen_as[np.maximum(choices, 0)], choices)
            if probs is not None:
                probs = probs[:, :, list(outer.order)]
        return DecisionTable(
            items=self.items,
            asks=tuple(asks),
            shown=tuple(
                self.shown[column] if column >= 0 else ask.presentation
                for column, ask in zip(found, real, strict=True)
            ),
            label_set=self.label_set,
            choices=choices,
            probs=probs,
            label_mass=mass,
            outer=outer.order if self.outer is None else compose(self.outer, outer.order),
        )

    def _by_content(self, ask: Ask) -> Iterator[tuple[NDArray[np.intp], int]]:
        """Rows whose candidates are sorted alike, with the column that shows them so."""
        rows: dict[Order, list[int]] = {}
        for row, order in enumerate(self.content_orders):
            if order is not None:
                rows.setdefault(order, []).append(row)
        for order, found in rows.items():
            shown = Presentation(compose(order, ask.presentation.order), ask.presentation.labels)
            column = self.columns.get(ask._replace(presentation=shown, arranged="given"))
            if column is not None:
                yield np.array(found, dtype=np.intp), column

    def tie_ranks(self, index: NDArray[np.intp]) -> IntArray:
        """Rank under the tie rule of the candidates of some rows, shape (len(index), n)."""
        ranks = np.array([tie_rank(self.items[i]) for i in index], dtype=np.int16)
        ranks = ranks.reshape(len(index), self.n)
        return ranks if self.outer is None else ranks[:, list(self.outer)]

    @classmethod
    def of(
        cls,
        items: Sequence[Item],
        decisions: Iterable[Decision],
        *,
        asks: Sequence[Ask] | None = None,
    ) -> DecisionTable:
        """Arrange decisions in columns; the last decision for a question wins.

        Args:
            items: Items with the same number of candidates (used without their gold).
            decisions: Any decisions; those of other items or other questions are left out.
            asks: Columns; default: every question that occurs, in order of appearance.

        Raises:
            ShapeError: If the items differ in their number of candidates, or the decisions in
                their label set.
        """
        from unswayed.items import blind

        if not items:
            raise ShapeError("a decision table needs at least one item")
        n = items[0].n
        if any(item.n != n for item in items):
            raise ShapeError("items of one decision table need the same number of candidates")
        row_of = {item.id: row for row, item in enumerate(items)}
        kept = [decision for decision in decisions if decision.item_id in row_of]
        column_of: dict[Ask, int] = (
            {ask: t for t, ask in enumerate(asks)} if asks is not None else {}
        )
        label_set: tuple[str, ...] | None = None
        cells: list[tuple[int, int, Decision]] = []
        for decision in kept:
            if label_set is None:
                label_set = decision.label_set
            elif decision.label_set != label_set:
                raise ShapeError(
                    f"{decision.item_id}: label set {decision.label_set} differs from {label_set}"
                )
            ask = decision.ask
            if asks is None:
                column_of.setdefault(ask, len(column_of))
            elif ask not in column_of:
                continue
            cells.append((row_of[decision.item_id], column_of[ask], decision))
        shape = (len(items), len(column_of))
        choices = np.full(shape, MISSING, dtype=np.int16)
        any_probs = any(decision.probs is not None for _, _, decision in cells)
        probs = np.full((*shape, n), np.nan) if any_probs else None
        any_mass = any(decision.label_mass is not None for _, _, decision in cells)
        mass = np.full(shape, np.nan) if any_mass else None
        for row, column, decision in cells:
            choices[row, column] = code_of(decision.choice)
            if probs is not None:
                probs[row, column] = np.nan if decision.probs is None else decision.probs
            if mass is not None:
                mass[row, column] = np.nan if decision.label_mass is None else decision.label_mass
        made = tuple(column_of)
        return cls(
            items=tuple(blind(item) for item in items),
            asks=made,
            shown=tuple(ask.presentation for ask in made),
            label_set=label_set or tuple(chr(65 + label) for label in range(n)),
            choices=choices,
            probs=probs,
            label_mass=mass,
        )


def code_of(choice: Choice) -> int:
    """The column code of a choice."""
    if choice is None:
        return UNPARSED
    return TIE if choice == "tie" else int(choice)


def choice_of(code: int) -> Choice:
    """The choice of a column code (MISSING reads None)."""
    if code >= 0:
        return int(code)
    return "tie" if code == TIE else None


@dataclass(frozen=True, eq=False)
class VerdictTable:
    """A method's verdicts for the rows of a `DecisionTable`.

    Attributes:
        choices: Candidate, TIE, UNPARSED (no verdict possible) or MISSING (a call that the method
            needs is missing); shape (I,).
        tied: Which candidates are tied where `choices` is TIE, False elsewhere; shape (I, n).
        scores: Shape (I, n), NaN where unknown; None if the method has none.
        confidence: Shape (I,), NaN where unknown.
        consistent: 1 yes, 0 no, -1 not defined (fewer than two decisions); shape (I,).
        n_calls: Decisions read; shape (I,).
    """

    choices: IntArray
    tied: BoolArray
    scores: FloatArray | None
    confidence: FloatArray
    consistent: NDArray[np.int8]
    n_calls: NDArray[np.int32]

    def verdict(self, row: int, *, item_id: str, method: str) -> Verdict:
        """One row as a record."""
        code = int(self.choices[row])
        tie = tuple(int(c) for c in np.flatnonzero(self.tied[row])) if code == TIE else None
        scores = None
        if self.scores is not None and not np.isnan(self.scores[row]).any():
            scores = tuple(float(score) for score in self.scores[row])
        confidence = float(self.confidence[row])
        return Verdict(
            item_id=item_id,
            choice=choice_of(code),
            method=method,
            tie=tie,
            scores=scores,
            confidence=None if np.isnan(confidence) else confidence,
            consistent=None if self.consistent[row] < 0 else bool(self.consistent[row]),
            n_calls=int(self.n_calls[row]),
        )


def argmax_by_tie_rule(
    scores: FloatArray, table: DecisionTable, *, tolerance: float = 0.0
) -> IntArray:
    """The highest-scored candidate of each row; exact ties go to the one tie rule.

    Args:
        scores: Shape (I, n); a row with NaN gives UNPARSED.
        table: The table the rows belong to.
        tolerance: Scores within this of the best count as tied.

    Returns:
        Candidates, shape (I,).
    """
    known: BoolArray = ~np.asarray(np.isnan(scores).any(axis=1), dtype=np.bool_)
    safe = np.where(known[:, None], scores, 0.0)
    best: BoolArray = np.asarray(
        safe >= safe.max(axis=1, keepdims=True) - tolerance, dtype=np.bool_
    )
    choice: IntArray = best.argmax(axis=1).astype(np.int16)
    tied = np.flatnonzero(known & (best.sum(axis=1) > 1))
    if len(tied):
        ranks = table.tie_ranks(tied)
        choice[tied] = np.where(best[tied], ranks, np.iinfo(np.int16).max).argmin(axis=1)
    choice[~known] = UNPARSED
    return choice
