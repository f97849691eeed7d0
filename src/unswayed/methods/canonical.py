"""Canonical: one call, the candidates sorted by their content.

The control that every claim of consistency must beat: the verdict cannot depend on the order in
which the candidates were given, so consistency is 100 % and consistent accuracy equals accuracy,
while the judge's bias is untouched and falls on whichever candidate the hash puts first.
Order: sha256 of the candidate's text, then the text; equal texts as they stand. Items without
text (recorded decisions) have no such order. Verdict = what the call chose.
Calls per item: fit 0, judge 1. Ties: a declared tie is a tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unswayed.decisions import DecisionTable, VerdictTable
from unswayed.methods.protocol import About, Method
from unswayed.methods.sets import content_ask
from unswayed.methods.voting import decide_by_answer
from unswayed.presentation import Ask


@dataclass(frozen=True, slots=True)
class Canonical(Method):
    """One call in an order that the content decides, taken as it is."""

    name: ClassVar[str] = "canonical"
    about: ClassVar[About] = About(
        title="Order by content",
        source="control",
        idea="Ask once, with the candidates sorted by a hash of their text.",
        calls="1",
        equation="verdict = the label the answer names under sort_c(sha256(text_c))",
        helps="Shows what consistency is worth by itself: it has all of it, for one call.",
        cannot="It removes no bias: only accuracy shows whether a verdict is better.",
        rank=1,
        control=True,
    )

    def asks(self, n: int) -> tuple[Ask, ...]:
        """The candidates sorted by content."""
        return (content_ask(n),)

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """The answer in the only column."""
        return decide_by_answer(table)
