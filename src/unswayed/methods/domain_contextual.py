"""Domain-context calibration: contextual calibration with random words of the task itself.

p_dc is the mean answer to 20 random texts; q(c) proportional to p(c) / p_dc(label of c). Each
field (the prompt, and each candidate's place) gets its own text: L words drawn with replacement
from the words of that field over the estimation items, L = floor(mean length) + 1.
Calls: fit 20 in all per label sequence, judge 1. Ties: the tie rule. The draw is seeded.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from unswayed.base.errors import MethodError
from unswayed.methods.content_free import content_free_priors, plan_content_free
from unswayed.methods.priors import LabelPrior, PriorMethod
from unswayed.methods.protocol import About, Layouts
from unswayed.model.decisions import DecisionTable
from unswayed.model.items import Item, text_of
from unswayed.model.presentation import Ask, Substitution


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
class DomainContextual(PriorMethod):
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
    fitted_from: ClassVar[int] = 1
    evidence: ClassVar[str] = "answers to random words"
    about: ClassVar[About] = About(
        title="Domain-context calibration",
        source="Fei et al. 2023 (arXiv 2305.19148)",
        idea="Learn label probabilities from random words of the task and divide every answer "
        "by them.",
        calls="1",
        estimation="20 in all, per label sequence",
        equation="q(c) ~ p(c) / p_dc(label of c)",
        helps="fixed content-free texts are too far from your content: it is still almost free",
        cannot="Random words are not answers, so the prior from nonsense may differ from the "
        "prior on content. For two candidates it moves one threshold, as `contextual` "
        "does.",
    )

    def plan_fit(self, items: Sequence[Item]) -> list[tuple[Item, Ask]]:
        """Return the random texts, put once per number of candidates."""
        return plan_content_free(
            items, lambda same: random_texts(same, self.samples, seed=self.seed), self.layouts
        )

    def layout_priors(self, table: DecisionTable, columns: Sequence[int]) -> Sequence[LabelPrior]:
        """Return the mean answer to random words."""
        return content_free_priors(table, columns)
