"""Single calls: believe the one answer that the judge gives.

Verdict = what the call chose: the label its text names, with the likeliest one taken where the answer is
next-token probabilities (equal ones by the package's tie rule). A reply that names no label is unparsed,
whatever its probabilities. Calls per item: fit 0, judge 1. Ties: a declared tie is a tie.

`direct`, the item as it stands, is the baseline every correction is compared with.

`canonical` sorts the candidates by their content: sha256 of the candidate's text, then the text; equal
texts as they stand. It is the control that every claim of consistency must beat: the verdict cannot
depend on the order in which the candidates were given, so consistency is 100% and consistent accuracy
equals accuracy, while the judge's bias is untouched and falls on whichever candidate the hash puts
first. Items without text (recorded decisions) have no such order.

`debias-prompt` asks the prompt `debias`: the default prompt with an instruction to ignore order, length
and labels. It is a different prompt, so it shares no call with the other methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unswayed.methods.protocol import About, Method
from unswayed.methods.sets import canonical_ask, content_ask
from unswayed.methods.voting import decide_by_answer
from unswayed.model.decisions import DecisionTable, VerdictTable
from unswayed.model.presentation import Ask, Presentation


@dataclass(frozen=True, slots=True)
class _SingleCall(Method):
    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the answer in the only column."""
        return decide_by_answer(table)


@dataclass(frozen=True, slots=True)
class Direct(_SingleCall):
    """One call, taken as it is."""

    name: ClassVar[str] = "direct"
    about: ClassVar[About] = About(
        title="Direct answer",
        source="baseline",
        idea="Ask once, in the item's own order, and take the answer.",
        calls="1",
        equation="verdict = the label the answer names",
        helps="you need the baseline: it corrects nothing, and every other method is compared "
        "with it",
        cannot="Its verdicts carry the judge's whole position and label bias.",
        rank=0,
    )

    def threshold(self, shown: Presentation) -> float | None:
        """Return the P(A) above which A wins, for two candidates: never moved."""
        return 0.5

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Return the canonical presentation."""
        return (canonical_ask(n),)


@dataclass(frozen=True, slots=True)
class Canonical(_SingleCall):
    """One call in an order that the content decides, taken as it is."""

    name: ClassVar[str] = "canonical"
    about: ClassVar[About] = About(
        title="Order by content",
        source="control",
        idea="Ask once, with the candidates sorted by a hash of their text.",
        calls="1",
        equation="verdict = the label the answer names under sort_c(sha256(text_c))",
        helps="you want to know the value of consistency alone: this control is fully consistent, for one"
        " call",
        cannot="It removes no bias. Only accuracy shows whether a verdict is better.",
        rank=1,
        control=True,
    )

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Return the candidates sorted by content."""
        return (content_ask(n),)


@dataclass(frozen=True, slots=True)
class DebiasPrompt(_SingleCall):
    """One call with an instruction against bias."""

    name: ClassVar[str] = "debias-prompt"
    about: ClassVar[About] = About(
        title="Debiasing instruction",
        source="baseline of CalibraEval (Li et al. 2024, arXiv 2410.15393)",
        idea="Add an instruction to the prompt: order, length and labels must not matter.",
        calls="1",
        equation="verdict = parsed label under the prompt `debias`",
        helps="your judge follows instructions well: the prompt needs no fitting and may gain a little",
        cannot="The gain is unreliable and often negative, because the bias is not a belief "
        "that an instruction could change. The method needs a judge that reads free-form "
        "instructions.",
    )

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Return the canonical presentation under the prompt `debias`."""
        return (canonical_ask(n, prompt_id="debias"),)
