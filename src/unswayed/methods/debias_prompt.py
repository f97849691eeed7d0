"""Debiasing instruction: tell the judge not to be biased.

Asks the prompt `debias`: the default prompt with an instruction to ignore order, length and
labels. It is a different prompt, so it shares no call with the other methods.
Calls per item: fit 0, judge 1. Ties: as for the direct answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unswayed.decisions import DecisionTable, VerdictTable
from unswayed.methods.protocol import About, Method
from unswayed.methods.sets import canonical_ask
from unswayed.methods.voting import decide_by_answer
from unswayed.presentation import Ask


@dataclass(frozen=True, slots=True)
class DebiasPrompt(Method):
    """One call with an instruction against bias."""

    name: ClassVar[str] = "debias-prompt"
    about: ClassVar[About] = About(
        title="Debiasing instruction",
        source="baseline of CalibraEval (Li et al. 2024, arXiv 2410.15393)",
        idea="Add an instruction to the prompt: order, length and labels must not matter.",
        calls="1",
        equation="verdict = parsed label under the prompt `debias`",
        helps="Costs nothing to try; a judge that follows instructions well may gain a little.",
        cannot="The gain is unreliable and often negative: the bias is not in what the judge "
        "believes it should do. It needs a judge that reads free-form instructions.",
    )

    def asks(self, n: int) -> tuple[Ask, ...]:
        """The canonical presentation under the prompt `debias`."""
        return (canonical_ask(n, prompt_id="debias"),)

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """The answer in the only column."""
        return decide_by_answer(table)
