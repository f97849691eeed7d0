"""Domain-context calibration: contextual calibration with random words of the task itself.

p_dc is the mean answer to 20 random texts; q(c) proportional to p(c) / p_dc(label of c). Each
field (the prompt, and each candidate's place) gets its own text: L words drawn with replacement
from the words of that field over the estimation items, L = floor(mean length) + 1.
Calls: fit 20 in all per label sequence, judge 1. Ties: the tie rule. The draw is seeded.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from unswayed.decisions import Decision, DecisionTable, Estimate, Verdict, VerdictTable
from unswayed.errors import MethodError
from unswayed.items import Item, Task, text_of
from unswayed.methods.content_free import content_free_asks, content_free_priors
from unswayed.methods.estimation import estimation_tables, not_fitted, warn_if_few
from unswayed.methods.priors import LabelPrior, decide_by_priors, estimates_of, prior_threshold
from unswayed.methods.protocol import COMPARING, About, Layouts, decide_one, learned, plan_all
from unswayed.methods.sets import canonical_ask
from unswayed.presentation import Ask, Presentation, Substitution

__all__ = ["DomainContextual", "random_texts"]


def random_texts(items: Sequence[Item], count: int, *, seed: int) -> tuple[Substitution, ...]:
    """Random in-domain text in place of the prompt and of each candidate.

    Args:
        items: Items with the same number of candidates; their words are the corpus.
        count: Number of substitutions.
        seed: Seed of the draw.

    Raises:
        MethodError: If the items have no text.

    Source: Fei et al. 2023 (arXiv 2305.19148), random in-domain words; per-field lengths follow
    the released code.
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
    made = []
    for _ in range(count):
        texts = [
            " ".join(draw.choices(corpus, k=length)) if corpus else ""
            for corpus, length in zip(corpora, lengths, strict=True)
        ]
        made.append(Substitution(tuple(texts[1:]), texts[0]))
    return tuple(made)


@dataclass(frozen=True, slots=True)
class DomainContextual:
    """Division by the answer to random in-domain words.

    Attributes:
        samples: Number of random texts.
        layouts: Label sequences to estimate: the label set's own, or all rotations.
        seed: Seed of the draw.
        priors: What `fit` learned.
    """

    samples: int = 20
    layouts: Layouts = "canonical"
    seed: int = 0
    priors: tuple[LabelPrior, ...] | None = learned()

    name: ClassVar[str] = "domain-contextual"
    tasks: ClassVar[frozenset[Task]] = COMPARING
    needs_probs: ClassVar[bool] = True
    fitted_from: ClassVar[int] = 1
    about: ClassVar[About] = About(
        title="Domain-context calibration",
        source="Fei et al. 2023 (arXiv 2305.19148)",
        idea="Ask about random words of the task and divide every answer by what came back.",
        calls="1",
        estimation="20 in all, per label sequence",
        equation="q(c) ~ p(c) / p_dc(label of c)",
        helps="Closer to real content than a fixed string, still almost free.",
        cannot="Random words are still not answers: the prior of nonsense may differ from the "
        "prior on content. One threshold for two candidates, as in contextual calibration.",
    )

    def plan_fit(self, items: Sequence[Item]) -> list[tuple[Item, Ask]]:
        """The random texts, put once per number of candidates."""
        strata: dict[int, list[Item]] = {}
        for item in items:
            strata.setdefault(item.n, []).append(item)
        return [
            (same[0], ask)
            for n, same in sorted(strata.items())
            for ask in content_free_asks(
                n, random_texts(same, self.samples, seed=self.seed), self.layouts
            )
        ]

    def fit(
        self, items: Sequence[Item | Decision], decisions: Sequence[Decision] | None = None
    ) -> Self:
        """A copy that knows the prior of random words for every label sequence asked about."""
        return self.fit_tables(estimation_tables(self, items, decisions))

    def fit_tables(self, tables: Mapping[int, DecisionTable]) -> Self:
        """`fit` on tables of one row."""
        priors = {n: content_free_priors(table) for n, table in tables.items()}
        counts = {n: len(found) for n, found in priors.items()}
        warn_if_few(self, counts, what="answers to random words")
        return replace(self, priors=tuple(p for found in priors.values() for p in found))

    def estimates(self) -> dict[str, Estimate]:
        """The priors by label and label sequence."""
        return estimates_of(self.priors or ())

    def threshold(self, shown: Presentation) -> float | None:
        """The P(A) above which A wins, for two candidates."""
        return prior_threshold(self.priors or (), shown)

    def asks(self, n: int) -> tuple[Ask, ...]:
        """The canonical presentation."""
        return (canonical_ask(n),)

    def plan(self, item: Item, seen: Sequence[Decision] = ()) -> list[Ask]:
        """The canonical presentation."""
        return plan_all(self, item)

    def decide(self, item: Item, decisions: Sequence[Decision]) -> Verdict:
        """The verdict for one item."""
        return decide_one(self, item, decisions)

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Divide by the prior of the label sequence shown."""
        if self.priors is None:
            raise not_fitted(self.name)
        return decide_by_priors(self.name, self.priors, table)
