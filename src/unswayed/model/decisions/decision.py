"""Decisions: one judge call, read. Everything is by candidate unless its name says otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final, Literal

import msgspec

from unswayed.base.errors import ItemError, ShapeError
from unswayed.model.decisions.codes import DISAGREES, REASKED
from unswayed.model.permutations import invert
from unswayed.model.presentation import Ask, Presentation, Substitution, label_symbols

SCORE: Final = "score"
"""The rating that `scores` are."""
RANK: Final = "rank"
"""The rating that a `ranking` is: 1 for the best."""


class Evidence(StrEnum):
    """Kinds of evidence in a decision: `choice`, `probs`, `scores`, or a level with a value."""

    CHOICE = "a chosen candidate"
    PROBS = "label probabilities"
    SCORES = "a score for every candidate"
    LEVELS = "levels that have values"


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
        scores: Score by candidate, None where it was not given; None if there are none.
        ranking: Candidates, best first; None if there is no full ranking.
        flags: By name, by candidate; None where a flag was not given.
        criterion: The criterion it is about, where several were scored in one reply.
        criteria_order: `criteria_order[k]` = criterion of the item printed at place k.
        substitute: Content-free text shown in place of the candidates, if any.
        reasked: True if the first reply could not be read and a second call asked again.
        disagrees: True if the text states a label other than the likeliest, which is the choice.
        unit: `Item.unit` of an item made from it.
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
    scores: tuple[float | None, ...] | None = None
    ranking: tuple[int, ...] | None = None
    flags: dict[str, tuple[bool | None, ...]] | None = None
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
    reasked: bool = False
    disagrees: bool = False
    unit: str | None = None

    def __post_init__(self) -> None:
        """Derive a label set that was left out."""
        if not self.label_set:
            msgspec.structs.force_setattr(self, "label_set", _canonical_labels(self.labels))

    @property
    def presentation(self) -> Presentation:
        """Order and label indices."""
        return _presentation(self.order, self.labels, self.label_set)

    @property
    def ratings(self) -> dict[str, tuple[float | None, ...]]:
        """Ratings of the candidates by name: scores, ranks (1 is best) and flags."""
        ratings: dict[str, tuple[float | None, ...]] = {} if self.flags is None else {**self.flags}
        if self.scores is not None:
            ratings[SCORE] = self.scores
        if self.ranking is not None:
            ratings[RANK] = tuple(place + 1 for place in invert(self.ranking))
        return ratings

    @property
    def marks(self) -> int:
        """Bits of `reasked` and `disagrees` for a column of marks (`codes.py`)."""
        return REASKED * self.reasked | DISAGREES * self.disagrees

    @property
    def ask(self) -> Ask:
        """The question this decision answers."""
        return _ask(
            _presentation(self.order, self.labels, self.label_set),
            self.prompt_id,
            self.sample,
            self.substitute,
            self.substitute_prompt,
            self.criteria_order,
        )


MOST_SCORE: Final = 1e15
"""Scores are smaller, so that sums of them are never infinite."""
MOST_COUNT: Final = 2**53
"""Counts are smaller, so that every column and every reader of JSON holds them."""


@lru_cache(maxsize=8192)
def _canonical_labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    n = len(labels)
    for symbols in (label_symbols(n), label_symbols(n, letters=False)):
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
    if not index.keys() >= set(labels):
        raise ShapeError(_wrong_presentation(order, labels, label_set) or "")
    return Presentation(order, tuple(index[symbol] for symbol in labels))


@lru_cache(maxsize=8192)
def _ask(
    presentation: Presentation,
    prompt_id: str,
    sample: int,
    substitute: tuple[str, ...] | None,
    substitute_prompt: str | None,
    criteria_order: tuple[int, ...] | None,
) -> Ask:
    shown = None if substitute is None else Substitution(substitute, substitute_prompt)
    own = criteria_order is None or criteria_order == tuple(range(len(criteria_order)))
    return Ask(presentation, prompt_id, sample, shown, criteria=() if own else criteria_order or ())


def check_decision(decision: Decision) -> None:
    """Check a decision that came from a file; an `ItemError` names the item and the field."""
    if (fault := next(_faults(decision), None)) is not None:
        raise ItemError(f"{decision.item_id}: {fault}")


def _faults(decision: Decision) -> Iterator[str]:
    n, choice, probs = len(decision.order), decision.choice, decision.probs
    wrong = _wrong_presentation(decision.order, decision.labels, decision.label_set)
    if wrong is not None:
        yield wrong
    if isinstance(choice, int) and not 0 <= choice < n:
        yield f"choice: {choice} is out of range (0 to {n - 1})"
    if decision.unit == "":
        yield "unit: empty; leave it out"
    for count in (decision.sample, decision.input_tokens, decision.output_tokens):
        if not 0 <= count < MOST_COUNT:
            yield f"sample or tokens: {count} is not a count (0 to 2**53)"
    if probs is not None and len(probs) != n:
        yield f"probs: {len(probs)} values for {n} candidates"
    if decision.scores is not None or decision.ranking is not None or decision.flags is not None:
        yield from _faults_of_ratings(decision, n)
    if decision.criteria_order is not None:
        if decision.criterion is None:
            yield "criterion: missing, although criteria_order is given"
        if not _is_permutation(decision.criteria_order):
            yield f"criteria_order: {list(decision.criteria_order)} is not a permutation"
    if decision.label_mass is not None and not -1e-3 < decision.label_mass < 1 + 1e-3:
        yield f"label_mass: {decision.label_mass} is not a share (0 to 1)"
    if probs is not None and (min(probs) < 0 or not abs(sum(probs) - 1) < 1e-3):
        yield f"probs: not probabilities (sum {sum(probs):.4g})"


def _faults_of_ratings(decision: Decision, n: int) -> Iterator[str]:
    flags, scores = decision.flags or {}, decision.scores
    for name in {SCORE, RANK} & set(flags):
        yield f"flags: {name!r} is a rating of its own. Give the flag another name."
    for name, values in (("scores", scores), *flags.items()):
        if values is not None and len(values) != n:
            yield f"{name}: {len(values)} values for {n} candidates"
    if any(score is not None and not abs(score) < MOST_SCORE for score in scores or ()):
        yield f"scores: {list(scores or ())} are not all numbers below {MOST_SCORE:g}"
    if decision.ranking is not None and sorted(decision.ranking) != list(range(n)):
        yield f"ranking: {list(decision.ranking)} does not name each of the {n} candidates once"


def _is_permutation(order: Sequence[int]) -> bool:
    return sorted(order) == list(range(len(order)))


def has_sound_presentation(decision: Decision) -> bool:
    """Return True if `check_decision` passes order and labels."""
    return _wrong_presentation(decision.order, decision.labels, decision.label_set) is None


@lru_cache(maxsize=8192)
def _wrong_presentation(
    order: tuple[int, ...], labels: tuple[str, ...], label_set: tuple[str, ...]
) -> str | None:
    """Return the field that is wrong and why; None if all is well."""
    if not _is_permutation(order):
        return f"order: {list(order)} is not a permutation"
    if len(labels) != len(order) or sorted(labels) != sorted(label_set):
        return (
            f"labels: {list(labels)} must be the {len(order)} symbols of label_set "
            f"{list(label_set)} in displayed order"
        )
    return None
