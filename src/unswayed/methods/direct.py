"""Direct: believe the one answer the judge gives to the item as it stands.

The baseline every correction is compared with. Verdict = what the call chose: the label its text
names, with the likeliest one taken where the answer is next-token probabilities (equal ones by the
package's tie rule). A reply that names no label is unparsed, whatever its probabilities.
Calls per item: fit 0, judge 1. Ties: a declared tie is a tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unswayed.decisions import DecisionTable, VerdictTable
from unswayed.methods.protocol import About, Method
from unswayed.methods.sets import canonical_ask
from unswayed.methods.voting import decide_by_answer
from unswayed.presentation import Ask, Presentation


@dataclass(frozen=True, slots=True)
class Direct(Method):
    """One call, taken as it is."""

    name: ClassVar[str] = "direct"
    about: ClassVar[About] = About(
        title="Direct answer",
        source="baseline",
        idea="Ask once, in the item's own order, and take the answer.",
        calls="1",
        equation="verdict = the label the answer names",
        helps="Nothing is corrected; it is what every other method is compared with.",
        cannot="It carries the judge's whole position and label bias into the verdict.",
        rank=0,
    )

    def threshold(self, shown: Presentation) -> float | None:
        """The P(A) above which A wins, for two candidates: never moved."""
        return 0.5

    def asks(self, n: int) -> tuple[Ask, ...]:
        """The canonical presentation."""
        return (canonical_ask(n),)

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """The answer in the only column."""
        return decide_by_answer(table)
