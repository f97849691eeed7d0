"""Direct: believe the one answer the judge gives to the item as it stands.

The baseline every correction is compared with. Verdict = what the call chose: the label its text
names, with the likeliest one taken where the answer is next-token probabilities (equal ones by the
package's tie rule). A reply that names no label is unparsed, whatever its probabilities.
Calls per item: fit 0, judge 1. Ties: a declared tie is a tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from unswayed.decisions import Decision, DecisionTable, Verdict, VerdictTable
from unswayed.items import Item, Task
from unswayed.methods.protocol import CHOOSING, About, decide_one, plan_all
from unswayed.methods.sets import canonical_ask
from unswayed.methods.voting import decide_by_vote
from unswayed.presentation import Ask, Presentation

__all__ = ["Direct"]


@dataclass(frozen=True, slots=True)
class Direct:
    """One call, taken as it is."""

    name: ClassVar[str] = "direct"
    tasks: ClassVar[frozenset[Task]] = CHOOSING
    needs_probs: ClassVar[bool] = False
    fitted_from: ClassVar[int] = 0
    about: ClassVar[About] = About(
        title="Direct answer",
        source="baseline",
        idea="Ask once, in the item's own order, and take the answer.",
        calls="1",
        equation="verdict = the label the answer names",
        helps="Nothing is corrected; it is what every other method is compared with.",
        cannot="It carries the judge's whole position and label bias into the verdict.",
    )

    def plan_fit(self, items: Sequence[Item]) -> list[tuple[Item, Ask]]:
        """Nothing to learn."""
        return []

    def fit(self, items: Sequence[Item], decisions: Sequence[Decision]) -> Self:
        """Itself: nothing to learn."""
        return self

    def threshold(self, shown: Presentation) -> float | None:
        """The P(A) above which A wins, for two candidates: never moved."""
        return 0.5

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
        """The answer in the only column."""
        return decide_by_vote(table)
