"""Balanced rubric: ask with the levels in 2n orders and take the mean of the values named.

score = mean_t value(z_t) over the n rotations of the scale and the n rotations of its reverse,
where every level stands twice at every position; the level nearest to the score is the choice. The
mean is of values, never of positions. `average:orders=balanced` on a rubric is the same with
probabilities, score = sum_c value(c) * mean_t p_t(c), so there is no second way here.
Answers that name no level (unread, a declared tie) are left out. That unbalances the rest: without
one order, a level is first less often than the others. So an answer that names level s at position
p weighs (orders that show s at p) / (those of them that named a level); where a level is left
unseen at a position, the mean of the rest is given with a warning. A failed call gives no verdict.
Calls per item: fit 0, judge 2n. Ties: two levels equally near to the score.
The published prompt prints each level with its score, which stays with it: `layouts=order`, with
the values as labels. By default the label belongs to the position, so that a preference for a
label is balanced out too. The paper does not say how unread answers or ties are treated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unswayed.decisions import DecisionTable, Evidence, VerdictTable
from unswayed.methods.mean_value import decide_by_mean_value
from unswayed.methods.protocol import About, Method
from unswayed.methods.sets import Reading, Turning, asks_of_set, presentation_weights
from unswayed.presentation import Ask


@dataclass(frozen=True, slots=True)
class BalancedRubric(Method):
    """Mean value over orders of the levels.

    Attributes:
        orders: Set of orders read: balanced (2n), cyclic (n), full (n!) or `random:K`.
        layouts: What moves with the orders: coupled, label, order, or all three.
        seed: Seed of `random:K` orders.
        criteria: Of items with several: "rotate" turns their list by one place from call to call.
    """

    orders: str = "balanced"
    layouts: Reading = "coupled"
    seed: int = 0
    criteria: Turning = "given"

    name: ClassVar[str] = "balanced-rubric"
    reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.CHOICE, Evidence.LEVELS})
    about: ClassVar[About] = About(
        title="Mean score over balanced orders",
        source="rubric position bias (arXiv 2602.02219)",
        idea="Ask with the levels of the scale in 2n orders and average the scores.",
        calls="2n for n levels",
        equation="score = mean_t value(z_t); choice = the level whose value is nearest",
        helps="Removes from the mean score what a preference for positions adds to it, without "
        "probabilities; the standard deviation within an item shows how much the order moved it.",
        cannot="A preference for positions is still noise within each order, and pulls the mean "
        "towards the middle of the scale. Where there are probabilities `average` has less noise.",
        points_variants=("balanced-rubric:criteria=rotate",),
    )

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Every presentation of the set."""
        return asks_of_set(self.orders, n, self.layouts, self.seed, self.criteria)

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """The mean value of each row."""
        weights = presentation_weights(self.orders, table.n, self.layouts, self.seed)
        return decide_by_mean_value(table, self.name, weights)
