"""Vote: ask in several orders and take the candidate named most often.

Answers are mapped to candidates before they are counted. Equal counts are a tie, reported as such
(wrong in accuracy, 1/|tied| in fractional accuracy); unparsed answers do not vote but stay in the
denominator; a declared tie is a vote for "tie".
Calls per item: fit 0, judge the size of the set (2 for two candidates, n else).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unswayed.decisions import DecisionTable, VerdictTable
from unswayed.methods.protocol import About, Method
from unswayed.methods.sets import Reading, Turning, asks_of_set, presentation_weights
from unswayed.methods.voting import decide_by_vote
from unswayed.presentation import Ask


@dataclass(frozen=True, slots=True)
class Vote(Method):
    """Majority over presentations.

    Attributes:
        orders: Set of orders read; `auto` is swap for two candidates and cyclic for more.
        layouts: What moves with the orders: coupled, label, order, or all three.
        seed: Seed of `random:K` orders.
        criteria: Of items with several: "rotate" turns their list by one place from call to call.
    """

    orders: str = "auto"
    layouts: Reading = "coupled"
    seed: int = 0
    criteria: Turning = "given"

    name: ClassVar[str] = "vote"
    about: ClassVar[About] = About(
        title="Majority vote over orders",
        source="Wang et al. 2023 (arXiv 2305.17926)",
        idea="Ask in several orders and take the candidate named most often.",
        calls="size of the set: 2 for two candidates, n for more",
        equation="argmax_c #{t : z_t = c}; equal counts are a tie",
        helps="Works without probabilities; removes any bias that the orders balance.",
        cannot="With two orders every disagreement is a tie, and it throws away how sure each "
        "answer was: where there are probabilities, averaging them is better.",
        points_variants=("vote:criteria=rotate",),
    )

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Every presentation of the set."""
        return asks_of_set(self.orders, n, self.layouts, self.seed, self.criteria)

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """The plurality of each row."""
        return decide_by_vote(
            table, presentation_weights(self.orders, table.n, self.layouts, self.seed)
        )
