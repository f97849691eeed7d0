"""APOCJudge: ask both orders, and believe the swapped one only where a keyed judge confirms it.

The paper describes its pairwise method in prose alone (PCFJudge, arXiv 2603.20562, section 3.5); the
rule here is our reading of that text. With b0 the verdict in the item's own order, b1 the verdict
in the swapped one and k that of the prompt `keyed` (the judge solves the question first and
compares both answers with its own solution), where "tie" is an answer like any other:

    b0        b1            k               verdict   calls
    any x     the same x    –               x         2
    x         unparsed      –               x         2
    unparsed  unparsed      –               unparsed  2
    x         y             – (skipped)     x         2       the item is left out by `skip`
    unparsed  y             – (skipped)     unparsed  2
    x         y             y               y         3
    x         y             anything else   x         3       x, "tie" or unparsed
    unparsed  y             y               y         3
    unparsed  y             anything else   unparsed  3

So a key can move the verdict to b1 and to nothing else, and is asked only where it could.
Calls per item: fit 0, judge 2 and the share of disagreements. Ties: a verdict "tie" ties both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from unswayed.base.registry import Registry
from unswayed.methods.protocol import About, Method
from unswayed.methods.sets import canonical_ask, presentation_set
from unswayed.methods.tables import verdict_table
from unswayed.methods.voting import count_votes
from unswayed.model.decisions import (
    MISSING,
    TIE,
    UNPARSED,
    BoolArray,
    Decision,
    DecisionTable,
    VerdictTable,
)
from unswayed.model.items import Item
from unswayed.model.presentation import Ask

SKIPS: Registry[Callable[[Item], bool]] = Registry(
    "skip",
    {
        "estimation": "unswayed.methods.apoc:asks_for_an_estimate",
        "never": "unswayed.methods.apoc:leaves_none_out",
    },
    like="",
)
"""Which items the keyed judge is not asked about: functions of a blind item, by name.

A name, not a function: it stands in runs, prices and method files, and reading such a file must
not import whatever it says.
"""

_ESTIMATION: Final = re.compile(
    r"""
    \b (?:estimate|guess?timate) \b              # the verb or the noun, not "estimated", "estimator"
    | \b ball[ -]?park \b
    | \b (?:approximately|roughly) \s+ (?:how|what|when|where) \b
    | \b how \s+ (?:many|much|long|far|old|big|large|high|often) \b [^.?!\n]{0,60}
        \b (?:approximately|roughly) \b
    | \b what \b [^.?!\n]{0,30} \b (?:approximate|approximately|roughly) \b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def asks_for_an_estimate(item: Item) -> bool:
    """Return True if the prompt asks for an estimate; of a conversation the user's last turn is read.

    "Estimate …", "an estimate of", "ballpark", "roughly how many", "how many … approximately",
    "what is the approximate …". What only reports one ("it was estimated at 700", "approximately
    4 times faster", "an estimator") is none. The paper names no words; these are ours.
    """
    prompt = item.prompt
    if not isinstance(prompt, str):
        asked = [turn.content for turn in prompt if turn.role == "user"]
        prompt = asked[-1] if asked else ""
    return _ESTIMATION.search(prompt) is not None


def leaves_none_out(item: Item) -> bool:
    """Return False for every item: every disagreement goes to the keyed judge."""
    return False


@dataclass(frozen=True, slots=True)
class Apoc(Method):
    """Both orders, and a judge with a key of its own where they disagree.

    Attributes:
        skip: Prompts whose disagreements keep the verdict of the item's own order, without a keyed
            call: `estimation` (they ask for an estimate), `never`, or a name that a package
            registers (`unswayed.skips`).
    """

    skip: str = "estimation"

    name: ClassVar[str] = "apoc"
    about: ClassVar[About] = About(
        title="Order consensus with a keyed judge (APOCJudge, as read here)",
        source="PCFJudge (arXiv 2603.20562), section 3.5; the rule is read from its prose",
        idea="Ask in both orders, and where they disagree, take the swapped verdict only if a "
        "judge that first solves the question confirms it.",
        calls="2, and 1 more where the two disagree",
        equation="verdict = b1 where b0 != b1 and k == b1, else b0  (b0: own order, b1: swapped, "
        "k: keyed; no k if `skip` applies)",
        helps="questions have a right answer that the judge can work out: the keyed judge "
        "settles disagreements that a vote over two orders leaves tied",
        cannot="If both orders name the same wrong answer, the keyed judge is not asked. A judge that "
        "cannot solve the question keeps the bias of the item's own order. The keyed call reasons at"
        " length, and an audit makes it for every item in both orders.",
        candidates=2,
        default=False,
    )

    def __post_init__(self) -> None:
        SKIPS.load(self.skip)

    def asks(self, n: int) -> tuple[Ask, ...]:
        """X0, X2, and X0 again with the keyed prompt."""
        orders = (Ask(shown) for shown in presentation_set("swap", n))
        return (*orders, canonical_ask(n, prompt_id="keyed"))

    def stops_after(self, n: int) -> Sequence[int]:
        """After both orders: if they agree, or nothing could be confirmed, no key is asked for."""
        return (n,)

    def plan(self, item: Item, seen: Sequence[Decision] = ()) -> list[Ask]:
        """Return the two orders, then the key; an item that keeps its order has nothing to confirm."""
        if not item.permutable:
            return list(self.asks(item.n)[:1])
        return Method.plan(self, item, seen)

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the swapped verdict where the key confirms it, else that of the item's own order.

        Scores and confidence are shares of the calls read.
        """
        own, swapped, keyed = table.choices.T
        cells = self._read(table)
        confirmed = cells[:, 2] & (keyed == swapped)
        choices = np.where(confirmed, swapped, own)
        counts = count_votes(table.choices, cells, table.n, np.ones(len(table.asks)))
        tied: BoolArray = np.repeat((choices == TIE)[:, None], table.n, axis=1)
        scores = counts[:, :-1] / np.maximum(cells.sum(axis=1), 1)[:, None]
        return verdict_table(table, choices, cells=cells, scores=scores, tied=tied)

    def _read(self, table: DecisionTable) -> BoolArray:
        """Return the cells read, shape (I, 3): the key only where it could move the verdict."""
        own, swapped, _ = table.choices.T
        cells = table.allowed & table.allowed[:, :1]
        named = (own != MISSING) & (swapped != MISSING) & (swapped != UNPARSED)
        disputed = cells[:, 1] & named & (own != swapped)
        skips = SKIPS.load(self.skip)
        for row in np.flatnonzero(disputed).tolist():
            disputed[row] = not skips(table.items[row])
        cells[:, 2] &= disputed
        return cells
