"""Average: ask in several orders and take the highest mean probability.

score(c) = mean_t p_t(c), or softmax_c(mean_t log(p_t(c) + 1e-10)) with `space="logit"`; both by
candidate. An item with a call without (all) probabilities gets no verdict: a mean over the rest
would not be balanced. Calls per item: fit 0, judge the size of the set. Ties: the tie rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from unswayed.decisions import DecisionTable, Evidence, VerdictTable
from unswayed.methods.protocol import About, Method
from unswayed.methods.sets import Reading, presentation_set, presentation_weights
from unswayed.methods.voting import decide_by_average
from unswayed.presentation import Ask


@dataclass(frozen=True, slots=True)
class Average(Method):
    """Mean probability over presentations.

    Attributes:
        orders: Set of orders read; `auto` is swap for two candidates and cyclic for more.
        layouts: What moves with the orders: coupled, label, order, or all three.
        space: Average probabilities, or their logarithms.
        seed: Seed of `random:K` orders.
    """

    orders: str = "auto"
    layouts: Reading = "coupled"
    space: Literal["probability", "logit"] = "probability"
    seed: int = 0

    name: ClassVar[str] = "average"
    reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.PROBS})
    or_reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.SCORES})
    about: ClassVar[About] = About(
        title="Average over orders",
        source="PriDe's estimator for its estimation items (Zheng et al. 2024, arXiv 2309.03882)",
        idea="Ask in several orders and average the probability of each candidate.",
        calls="size of the set: 2 for two candidates, n for more",
        equation="argmax_c mean_t p_t(c)",
        helps="The strongest verdict where several calls per item can be paid for.",
        cannot="Costs the whole set for every item; needs label probabilities, of lists the scores.",
        variants=("average:layouts=all",),
    )

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Every presentation of the set."""
        return tuple(
            Ask(shape) for shape in presentation_set(self.orders, n, self.layouts, self.seed)
        )

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """The highest mean of each row."""
        weights = presentation_weights(self.orders, table.n, self.layouts, self.seed)
        return decide_by_average(table, weights, logit=self.space == "logit")
