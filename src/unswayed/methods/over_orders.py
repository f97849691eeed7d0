"""Over orders: ask in several orders, so that what prefers a place or a label meets every candidate.

Answers and probabilities are mapped to candidates first. Calls per item: fit 0, judge the size of
the set (2 for two candidates, n else; 2n for `balanced-rubric`).

`vote` takes the candidate named most often. Equal counts are a tie, reported as such (wrong in
accuracy, 1/|tied| in fractional accuracy); unparsed answers do not vote but stay in the denominator; a
declared tie is a vote for "tie".

`average` takes the highest mean probability: mean_t p_t(c), or softmax_c(mean_t log(p_t(c) + 1e-10))
with `space="logit"`. An item with a call without (all) probabilities gets no verdict: a mean over the
rest would not be balanced. Ties: the tie rule.

`balanced-rubric` takes the mean of the values named, score = mean_t value(z_t) over the n rotations of
the scale and the n rotations of its reverse, where every level stands twice at every position; the
level nearest to the score is the choice. The mean is of values, never of positions.
`average:orders=balanced` on a rubric is the same with probabilities, score = sum_c value(c) *
mean_t p_t(c). Answers that name no level (unread, a declared tie) are left out. That unbalances the
rest: without one order, a level is first less often than the others. So an answer that names level s at
position p weighs (orders that show s at p) / (those of them that named a level); where a level is left
unseen at a position, the mean of the rest is given with a warning. A failed call gives no verdict.
Ties: two levels equally near to the score.
The published prompt prints each level with its score, which stays with it: `layouts=order`, with
the values as labels. By default the label belongs to the position, so that a preference for a
label is balanced out too. The paper does not say how unread answers or ties are treated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from unswayed.methods.protocol import About, Method
from unswayed.methods.sets import Reading, Turning, asks_of_set, presentation_weights
from unswayed.methods.voting import decide_by_average, decide_by_mean_value, decide_by_vote
from unswayed.model.decisions import DecisionTable, Evidence, VerdictTable
from unswayed.model.presentation import Ask


@dataclass(frozen=True, slots=True)
class Vote(Method):
    """Majority over presentations.

    Attributes:
        orders: Set of orders to read; `auto` is swap for two candidates and cyclic for more.
        layouts: Parts that move: order and labels together (`coupled`), one of them, or `all`
            three kinds of presentations.
        seed: Seed of `random:K` orders.
        criteria: For items with several criteria: `rotate` shifts their list by one place per call.
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
        calls="2 for two candidates, n for more (one per order)",
        equation="argmax_c #{t : z_t = c}; equal counts are a tie",
        helps="your judge returns no probabilities: the vote removes any bias that the orders balance",
        cannot="With two orders, every disagreement is a tie. The vote ignores how sure each answer "
        "was: with probabilities, `average` is better.",
        points_variants=("vote:criteria=rotate",),
    )

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Every presentation of the set."""
        return asks_of_set(self.orders, n, self.layouts, self.seed, self.criteria)

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the plurality of each row."""
        weights = presentation_weights(self.orders, table.n, self.layouts, self.seed)
        return decide_by_vote(table, weights)


@dataclass(frozen=True, slots=True)
class BalancedRubric(Vote):
    """Mean value over orders of the levels.

    Attributes:
        orders: Set of orders to read: `balanced` (2n), `cyclic` (n), `full` (n!) or `random:K`.
    """

    orders: str = "balanced"

    name: ClassVar[str] = "balanced-rubric"
    reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.CHOICE, Evidence.LEVELS})
    about: ClassVar[About] = About(
        title="Mean score over balanced orders",
        source="rubric position bias (arXiv 2602.02219)",
        idea="Ask with the levels of the scale in 2n orders and average the scores.",
        calls="2n for n levels",
        equation="score = mean_t value(z_t); choice = the level whose value is nearest",
        helps="a scale judge returns no probabilities: the mean cancels the effect of position "
        "preferences, and the standard deviation within an item shows how much the order "
        "moved the score",
        cannot="A preference for positions still adds noise within each order and pulls the "
        "mean towards the middle of the scale. With probabilities, `average` has less "
        "noise.",
        points_variants=("balanced-rubric:criteria=rotate",),
    )

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the mean value of each row."""
        weights = presentation_weights(self.orders, table.n, self.layouts, self.seed)
        return decide_by_mean_value(table, self.name, weights)


@dataclass(frozen=True, slots=True)
class Average(Method):
    """Mean probability over presentations.

    Attributes:
        orders: Set of orders to read; `auto` is swap for two candidates and cyclic for more.
        layouts: Parts that move: order and labels together (`coupled`), one of them, or `all`
            three kinds of presentations.
        space: Scale of the mean: probabilities, or their logarithms (`logit`).
        seed: Seed of `random:K` orders.
    """

    # no `Vote`: it has no criteria, and `space` stands before `seed` in its name
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
        calls="2 for two candidates, n for more (one per order)",
        equation="argmax_c mean_t p_t(c)",
        helps="you can afford several calls per item and want the strongest verdict",
        cannot="Every item costs the whole set of calls. The method needs label probabilities, or "
        "scores for lists.",
        variants=("average:layouts=all",),
    )

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Every presentation of the set."""
        return asks_of_set(self.orders, n, self.layouts, self.seed)

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the highest mean of each row."""
        weights = presentation_weights(self.orders, table.n, self.layouts, self.seed)
        return decide_by_average(table, weights, logit=self.space == "logit")
