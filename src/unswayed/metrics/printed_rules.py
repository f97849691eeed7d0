"""Rules for the cells of a printed row: two candidates, more candidates, or an unknown number.

Each row is about items with one right answer, all answered in the same V presentations. Per item let r be its share
of right answers. Unparsed answers and ties are wrong; an unparsed one never agrees.

**Two candidates.** An item is consistent (c = 1) if all its answers are the same choice, a tie
included, and consistently right (a = 1) if that is the right one. Then a <= c. An item with a = 1 has
r = 1; one with c = 1 and a = 0 has r = 0; one with c = 0 has 0 <= r <= (V - 1) / V, since one answer at
least differs. Averaging r >= a, a <= c and r <= a + (1 - c) (V - 1) / V over the items:

    CA <= Con,    CA <= Acc,    Acc <= CA + (1 - Con) (V - 1) / V.

With two orders and neither ties nor unparsed answers an inconsistent item is right exactly once, so the
last holds with equality; and CA <= Acc is then strict by half of what is inconsistent.

**More candidates.** Con is the mean share m of an item's most frequent choice, CA the share of items
(a = 1) whose only most frequent choice is the right one. If a = 1, r = m. If a = 0, the right choice and
another that is as frequent share the answers, so r <= m and r <= 1 - m. One mode needs one answer:
a = 1 has r >= 1 / V. From r <= m; from r >= a / V; from r <= a + (1 - m), which is more for a = 1 and
the above for a = 0; and from m - r <= 1 - a, which is 0 for a = 1:

    Acc <= Con,    CA <= V Acc,    Acc <= 1 + CA - Con,    CA <= 1 + Acc - Con.

All but the first follow from the rules for two candidates too, so they hold where the number is unknown or
items differ in it; the second is left out where V is not stated.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypedDict

_KNOWN: Final = {
    2: "mt.?bench|judge.?bench|preference.?bench|reward.?bench(?!.?v?2)|llm.?bar|alpaca.?eval|hhh|dev.?bench|"
    "vicuna.?bench|chatbot.?arena|wino.?grande|piqa|boolq|copa",
    4: "(?:tiny.?|c)?mmlu(?!.?pro)|arc|gpqa|hella.?swag|open.?book.?qa|medmcqa|sciq|c.?eval|reward.?bench.?v?2",
    5: "common.?sense.?qa|csqa",
    10: "mmlu.?pro",
}
"""Benchmark names by number of candidates per item (a few ARC items do not have four)."""


class Design(TypedDict, total=False):
    """Design of a published table: how its items were shown and printed."""

    # rounding allowed in the table's unit; by default the rounding of the printed digits
    tolerance: float | None
    # presentations per item; by default 2 for two candidates, and any number for more
    views: int | None
    # candidates per item for rows that do not give the number: neither as a whole number in a
    # column "candidates" or "options", nor by a known benchmark in the row or column names
    candidates: int | None
    # Every answer names a candidate: no ties, none unparsed. Two candidates in two orders.
    decided: bool


class Rule(NamedTuple):
    """Left side <= right side: `sum of weight * term <= constant` in fractions."""

    text: str
    weights: tuple[float, float, float]
    constant: float


def rules_for(candidates: int | None, design: Design) -> tuple[Rule, ...]:
    """Return the rules for a number of candidates; for None, the rules that hold for any number."""
    views = design.get("views")
    if candidates != 2:
        return (
            *((Rule("accuracy <= Con", (1, -1, 0), 0),) if candidates else ()),
            *((Rule(f"CA <= {views} accuracy", (-views, 0, 1), 0),) if views else ()),
            Rule("accuracy <= 1 + CA - Con", (1, 1, -1), 1),
            Rule("CA <= 1 + accuracy - Con", (-1, 1, 1), 1),
        )
    views = views or 2
    share = (views - 1) / views
    factor = "(1 - Con) / 2" if views == 2 else f"(1 - Con) {views - 1}/{views}"
    exact = (Rule(f"accuracy >= CA + {factor}", (-1, -share, 1), -share),)
    return (
        Rule(f"accuracy <= CA + {factor}", (1, share, -1), share),
        Rule("CA <= accuracy", (-1, 0, 1), 0),
        Rule("CA <= Con", (0, -1, 1), 0),
        *(exact if design.get("decided") and views == 2 else ()),
    )


def candidates_of(name: str) -> int | None:
    """Return the number of candidates of the benchmark in a name; None without one, or if several differ."""
    sizes = [
        size
        for size, names in _KNOWN.items()
        if re.search(rf"(?<![a-z0-9])(?:{names})(?![a-z0-9])", name, re.IGNORECASE)
    ]
    return sizes[0] if len(sizes) == 1 else None
