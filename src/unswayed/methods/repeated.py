"""Repeated: ask the same presentation several times and take the majority.

The control for gains of permutation methods: as many calls, no change of order. It needs sampling
at a temperature above 0; greedy repeats are one answer copied. Samples are numbered from 1
because sample 0 is the greedy answer. `repeat-mean` averages their probabilities instead, and
`repeat-score` the values of the levels that they name.
Calls per item: fit 0, judge `samples`. Ties: equal counts are a tie; means go to the tie rule;
two levels equally near to the mean value are a tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unswayed.base.errors import UsageError
from unswayed.methods.protocol import About, Method
from unswayed.methods.sets import canonical_ask
from unswayed.methods.voting import decide_by_average, decide_by_mean_value, decide_by_vote
from unswayed.model.decisions import DecisionTable, Evidence, VerdictTable
from unswayed.model.presentation import Ask


@dataclass(frozen=True, slots=True)
class _Repeated(Method):
    samples: int | None = None

    def __post_init__(self) -> None:
        if self.samples is not None and self.samples < 1:
            raise UsageError(f"{self.name}:samples={self.samples}: give at least 1.")

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Return samples 1 to `samples` of the canonical presentation."""
        count = 2 * n if self.samples is None else self.samples
        return tuple(canonical_ask(n, sample=sample) for sample in range(1, count + 1))


@dataclass(frozen=True, slots=True)
class Repeat(_Repeated):
    """Majority over samples of one presentation.

    Attributes:
        samples: Number of samples, at least 1.
    """

    samples: int = 3

    name: ClassVar[str] = "repeat"
    about: ClassVar[About] = About(
        title="Repeated sampling",
        source="control",
        idea="Ask the same presentation several times and take the majority.",
        calls="number of samples (3)",
        equation="argmax_c #{r : z_r = c}",
        helps="you want to know how much of a permutation method's gain comes from the extra "
        "calls alone",
        cannot="It removes no bias: every sample has the same order and labels.",
        rank=2,
        control=True,
    )

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the majority of each row."""
        return decide_by_vote(table)


@dataclass(frozen=True, slots=True)
class RepeatMean(Repeat):
    """Mean probability over samples of one presentation."""

    name: ClassVar[str] = "repeat-mean"
    reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.PROBS})
    about: ClassVar[About] = About(
        title="Repeated sampling, averaged",
        source="control",
        idea="Ask the same presentation several times and average the probabilities.",
        calls="number of samples (3)",
        equation="argmax_c mean_r p_r(c)",
        helps="you want to know how much of the gain of `average` comes from the extra calls alone",
        cannot="It removes no bias: every sample has the same order and labels. If the answer "
        "is one token, its probabilities are the same in every sample.",
        default=False,
        control=True,
    )

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the highest mean of each row."""
        return decide_by_average(table)


@dataclass(frozen=True, slots=True)
class RepeatScore(_Repeated):
    """Mean value over samples of one presentation of the levels.

    Attributes:
        samples: Number of samples, at least 1; `None` takes twice the number of levels, as many
            calls as `balanced-rubric`.
    """

    samples: int | None = None

    name: ClassVar[str] = "repeat-score"
    reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.CHOICE, Evidence.LEVELS})
    about: ClassVar[About] = About(
        title="Repeated sampling, mean score",
        source="control of rubric position bias (arXiv 2602.02219)",
        idea="Ask with the levels in one order several times and average the scores.",
        calls="number of samples (2n for n levels)",
        equation="score = mean_r value(z_r); choice = the level whose value is nearest",
        helps="you want to know how much of the gain of `balanced-rubric` comes from the extra "
        "calls alone",
        cannot="It removes no bias: every sample has the same order and labels.",
        rank=2,
        control=True,
    )

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the mean value of each row."""
        return decide_by_mean_value(table, self.name)
