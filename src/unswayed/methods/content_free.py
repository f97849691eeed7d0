"""Content-free questions: ask about nothing, and divide out what the judge answers anyway.

`contextual`: q(c) proportional to p(c) / p_cf(label of c), with p_cf the mean answer to content-free
inputs (Zhao et al. 2021: W = diag(p_cf)^-1, b = 0). By default the question and every candidate are
replaced by "N/A", "" and "[MASK]" in turn: one prior per label sequence, 3 calls in all. The
CalibraEval paper's variant is `strings=N/A` with `per_item=true`: the question stays, 1 call more
per item. Calls: fit 3 in all, judge 1 (`per_item`: fit 0, judge 1 + number of strings).

`domain-contextual`: the same with random words of the task itself, q(c) proportional to p(c) /
p_dc(label of c), p_dc the mean answer to 20 random texts. Each field (the prompt, and each
candidate's place) gets its own text: L words drawn with replacement from the words of that field over
the estimation items, L = floor(mean length) + 1. Calls: fit 20 in all per label sequence, judge 1.
The draw is seeded.

Ties: the tie rule.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unswayed.base.errors import MethodError
from unswayed.methods.priors import LabelPrior, PriorMethod, decide_by_offsets
from unswayed.methods.protocol import About, Layouts
from unswayed.methods.sets import canonical_ask, label_layouts
from unswayed.methods.tables import EPSILON, probs_by_label
from unswayed.model.decisions import DecisionTable, FloatArray, VerdictTable
from unswayed.model.items import Item, text_of
from unswayed.model.presentation import Ask, Presentation, Substitution

CONTENT_FREE = ("N/A", "", "[MASK]")


def content_free_asks(
    n: int, substitutions: Sequence[Substitution], layouts: Layouts
) -> tuple[Ask, ...]:
    """Each substitution under each label sequence, candidates in their own order."""
    own = tuple(range(n))
    return tuple(
        Ask(Presentation(own, layout), substitute=substitution)
        for layout in label_layouts(n, layouts)
        for substitution in substitutions
    )


def mean_by_label(table: DecisionTable, columns: Sequence[int]) -> FloatArray:
    """Mean probability by label over some columns, renormalised, shape (I, n).

    Columns without probabilities are left out; NaN where none has any. Floor 1e-10.
    """
    total = np.zeros((len(table), table.n))
    count = np.zeros(len(table))
    for column in columns:
        by_label = probs_by_label(table, column)
        read = ~np.isnan(by_label).any(axis=1)
        total[read] += by_label[read]
        count += read
    total[count == 0] = np.nan
    mean: FloatArray = np.maximum(total / np.maximum(count, 1)[:, None], EPSILON)
    result: FloatArray = mean / mean.sum(axis=1, keepdims=True)
    return result


@dataclass(frozen=True, slots=True)
class _ContentFree(PriorMethod):
    fitted_from: ClassVar[int] = 1

    @abstractmethod
    def planned(self, items: Sequence[Item]) -> tuple[Ask, ...]:
        """Return the content-free questions for items with one number of candidates."""

    def plan_fit(self, items: Sequence[Item]) -> list[tuple[Item, Ask]]:
        """Return the content-free questions, put once for all items with a number of candidates."""
        strata: dict[int, list[Item]] = {}
        for item in items:
            strata.setdefault(item.n, []).append(item)
        return [(same[0], ask) for _, same in sorted(strata.items()) for ask in self.planned(same)]

    def layout_priors(self, table: DecisionTable, columns: Sequence[int]) -> Sequence[LabelPrior]:
        """Return the mean answer to content-free inputs, from one row of them."""
        values = mean_by_label(table, columns)[0]
        if np.isnan(values).any():
            return ()
        count = sum(not np.isnan(probs_by_label(table, column)[0]).any() for column in columns)
        layout = table.shown[columns[0]].labels
        return (LabelPrior(table.n, layout, tuple(map(float, values)), count, units=count),)


@dataclass(frozen=True, slots=True)
class Contextual(_ContentFree):
    """Division by the answer to content-free inputs.

    Attributes:
        strings: Content-free texts, joined by `+`; one may be empty.
        per_item: True keeps each item's question and replaces only the candidates.
        layouts: Label sequences to fit: the label set's own (`canonical`), or all rotations (`all`).
    """

    strings: tuple[str, ...] = CONTENT_FREE
    per_item: bool = False
    layouts: Layouts = "canonical"

    name: ClassVar[str] = "contextual"
    evidence: ClassVar[str] = "answers to content-free inputs"
    about: ClassVar[About] = About(
        title="Contextual calibration",
        source="Zhao et al. 2021 (arXiv 2102.09690)",
        idea="Learn label probabilities from content-free text and divide every answer by them.",
        calls="1",
        estimation="3 in all, per label sequence",
        equation="q(c) ~ p(c) / p_cf(label of c)",
        helps="the label preference shows without any content: the correction is almost free",
        cannot="The answer to empty content need not match the bias on real content, so the method often "
        "over- or under-corrects. For two candidates it moves one threshold, so it "
        "cannot undo a first-position preference where labels and positions move separately.",
    )

    def __post_init__(self) -> None:
        """Drop priors with `per_item`, which learns nothing."""
        if self.per_item:
            object.__setattr__(self, "priors", ())

    def _substitutions(self, n: int) -> tuple[Substitution, ...]:
        return tuple(
            Substitution((text,) * n, None if self.per_item else text) for text in self.strings
        )

    def planned(self, items: Sequence[Item]) -> tuple[Ask, ...]:
        """Return each text under each label sequence; nothing with `per_item`."""
        texts = () if self.per_item else self._substitutions(items[0].n)
        return content_free_asks(items[0].n, texts, self.layouts)

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Return the canonical presentation; with `per_item`, its content-free versions too."""
        per_item = self._substitutions(n) if self.per_item else ()
        return (canonical_ask(n), *content_free_asks(n, per_item, "canonical"))

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Divide by the prior of the label sequence shown, or by each item's own."""
        if self.per_item:
            return decide_by_offsets(table, np.log(mean_by_label(table, range(1, len(table.asks)))))
        return PriorMethod.decide_table(self, table)


def random_texts(items: Sequence[Item], count: int, *, seed: int) -> tuple[Substitution, ...]:
    """Random in-domain text in place of the prompt and of each candidate, from the words of items
    with the same number of candidates.

    Source: Fei et al. 2023 (arXiv 2305.19148), random in-domain words; per-field lengths follow the
    released code.
    """
    n = items[0].n
    fields = [[text_of(item.prompt).split() for item in items]]
    fields += [[text_of(item.candidates[c]).split() for item in items] for c in range(n)]
    corpora = [[word for text in texts for word in text] for texts in fields]
    if not all(corpora[1:]):
        raise MethodError(
            "domain-contextual draws random words from the items, and there is no candidate text. "
            "Use pride, which needs none."
        )
    lengths = [len(corpus) // len(items) + 1 for corpus in corpora]
    draw = random.Random(f"{seed}:{n}")
    substitutions = []
    for _ in range(count):
        texts = [
            " ".join(draw.choices(corpus, k=length)) if corpus else ""
            for corpus, length in zip(corpora, lengths, strict=True)
        ]
        substitutions.append(Substitution(tuple(texts[1:]), texts[0]))
    return tuple(substitutions)


@dataclass(frozen=True, slots=True)
class DomainContextual(_ContentFree):
    """Division by the answer to random in-domain words.

    Attributes:
        samples: Number of random texts.
        layouts: Label sequences to fit: the label set's own (`canonical`), or all rotations (`all`).
        seed: Seed of the draw.
    """

    samples: int = 20
    layouts: Layouts = "canonical"
    seed: int = 0

    name: ClassVar[str] = "domain-contextual"
    evidence: ClassVar[str] = "answers to random words"
    about: ClassVar[About] = About(
        title="Domain-context calibration",
        source="Fei et al. 2023 (arXiv 2305.19148)",
        idea="Learn label probabilities from random words of the task and divide every answer "
        "by them.",
        calls="1",
        estimation="20 in all, per label sequence",
        equation="q(c) ~ p(c) / p_dc(label of c)",
        helps="fixed content-free texts are too far from your content: the correction is still almost free",
        cannot="Random words are not answers, so the prior from nonsense may differ from the "
        "prior on content. For two candidates it moves one threshold, as `contextual` "
        "does.",
    )

    def planned(self, items: Sequence[Item]) -> tuple[Ask, ...]:
        """Return the random texts under each label sequence."""
        texts = random_texts(items, self.samples, seed=self.seed)
        return content_free_asks(items[0].n, texts, self.layouts)
