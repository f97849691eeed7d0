"""Points of accuracy lost by following the recommendation, and how often its states are wrong.

A trial of the first part is a judge drawn at random. It is audited with all methods on samples of 100,
300 and 1,000 items, and the truth is what every method measures on further items. "Lost" is the
distance to the most accurate method of that judge. Where no method is named the reader is taken to use
the method printed as "most accurate", and where none is printed the single call.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from claim_rates.drawn_judges import DrawnJudge, Recorded, drawn_judge, recorded
from claim_rates.rate import Rate
from unswayed.auditing.recommendation import Recommendation
from unswayed.auditing.records import Metrics
from unswayed.methods import BASE

JUDGES: Final = {2: 48, 4: 20}
"""Drawn judges, by number of candidates."""

HOSTILE: Final = 10
COINS: Final = 50
"""Audits of a cell in which gold is a coin."""

PARTS: Final = {100: (0, 100, 200), 300: (300, 600), 1000: (1000,)}
"""First items of the samples of a judge, by their size."""

SAMPLED: Final = 2000
TRUTH: Final = 5000
"""Items that samples are taken from, and further items that give the truth."""

MARGIN: Final = 0.01
AT_MOST: Final = {100: 0.003, 300: 0.003, 1000: 0.001}
AT_MOST_WHEN_WRONG: Final = {100: 0.015, 300: 0.005, 1000: 0.001}
"""Mean loss that is allowed, by items; of judges that are confident when wrong."""

GAINS: Final = (0, 0.5, 1, 2, 4, 8, 100)
"""Ends of the classes of gains, in points."""

COIN_CELLS: Final = (
    *(
        (2, place, probs, items)
        for place, probs in ((0, True), (1, True), (1, False))
        for items in (100, 300)
    ),
    (4, 1, True, 150),
    (4, 1, False, 150),
)
"""Candidates, lead of the first place, whether probabilities are known, and items."""

FEW: Final = 10
"""Judges, or audits of a cell, below which no bound is held."""

CONTROLS: Final = {"canonical", "repeat", "repeat-mean", "repeat-score"}
"""Methods that are controls and must never be named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """The recommendation of one audit of a judge whose truth is known.

    Attributes:
        cell: Number of candidates and what was recorded.
        trial: The judge.
        items: Audited.
        found: The recommendation.
        truth: Accuracy of every method but the controls, on further items.
    """

    cell: str
    trial: int
    items: int
    found: Recommendation
    truth: Mapping[str, float]

    @property
    def gain(self) -> float:
        """The gain of the most accurate method on a single call."""
        return max(self.truth.values()) - self.truth[BASE]

    def loss(self, method: str | None) -> float:
        """Return the loss by using a method; None stands for a single call."""
        return max(self.truth.values()) - self.truth[method or BASE]

    @property
    def followed(self) -> str | None:
        """The method of a reader who takes the most accurate where no method is named."""
        return self.found.method or self.found.most_accurate

    @property
    def cheapest(self) -> str | None:
        """The method of a reader who takes the cheapest where no method is named."""
        return self.found.method or self.found.cheapest

    @property
    def every_order(self) -> str:
        """The method that reads all orders."""
        return "average" if "average" in self.truth else "vote"


def advised(
    answers: Recorded, cell: str, trial: int, *, probs: bool, sizes: Sequence[int] = tuple(PARTS)
) -> Iterator[Advised]:
    """Audit every sample of a judge, beside its truth."""
    rest = answers.audit(SAMPLED, len(answers.items), probs=probs, seed=trial)
    truth = {
        name: value
        for name, row in rest.methods.items()
        if name not in CONTROLS and (value := row["accuracy_fractional"].value) is not None
    }
    for size in sizes:
        for start in PARTS[size]:
            found = advice_of(answers.audit(start, start + size, probs=probs, seed=trial))
            yield Advised(cell=cell, trial=trial, items=size, found=found, truth=truth)


def advice_of(metrics: Metrics) -> Recommendation:
    """The recommendation of an audit of more than one method."""
    assert metrics.recommendation is not None
    return metrics.recommendation


def drawn(
    judges: int, candidates: int, truth: int = TRUTH, sizes: Sequence[int] = tuple(PARTS)
) -> Iterator[Advised]:
    """The audits of judges drawn at random, from probabilities and from labels only."""
    rng = np.random.default_rng([candidates, 5])
    for trial in range(judges):
        answers = recorded(drawn_judge(rng, candidates), SAMPLED + truth, trial)
        for probs in (True, False):
            cell = f"{candidates} candidates, {_known(probs)}"
            yield from advised(answers, cell, trial, probs=probs, sizes=sizes)


def hostile(
    judges: int, surer: str, truth: int = TRUTH, sizes: Sequence[int] = tuple(PARTS)
) -> Iterator[Advised]:
    """The audits of judges that are surer than their logits: when wrong, or by lot."""
    rng = np.random.default_rng(303)
    for trial in range(judges):
        judge = DrawnJudge(
            place=float(rng.choice([0, 0.6, 1.5])),
            spread=float(rng.choice([0.8, 1.5])),
            noise=float(rng.choice([0.5, 1.2])),
            surer=surer,
        )
        answers = recorded(judge, SAMPLED + truth, 1000 + trial)
        yield from advised(answers, f"2 candidates, surer {surer}", trial, probs=True, sizes=sizes)


def losses(audits: Sequence[Advised], bounds: Mapping[int, float] | None = None) -> Iterator[Rate]:
    """Mean loss by cell and size, and by cell of two rules that measure nothing."""
    for cell in dict.fromkeys(audit.cell for audit in audits):
        of_cell = [audit for audit in audits if audit.cell == cell]
        for items in PARTS:
            own = [audit for audit in of_cell if audit.items == items]
            bound = bounds[items] if bounds else None
            setting = f"{cell}, {items:,} items"
            lost = [audit.loss(audit.followed) for audit in own]
            yield mean_loss("the recommendation", setting, lost, at_most=bound)
            lost = [audit.loss(audit.cheapest) for audit in own]
            yield mean_loss("the recommendation, open read as cheapest", setting, lost)
        yield mean_loss("always a single call", cell, [audit.loss(BASE) for audit in of_cell])
        every = [audit.loss(audit.every_order) for audit in of_cell]
        yield mean_loss("always all orders", cell, every)


def mean_loss(
    rule: str, setting: str, lost: Sequence[float], *, at_most: float | None = None
) -> Rate:
    """The accuracy that a rule loses, on average."""
    return Rate(
        statement=f"accuracy lost by {rule}", setting=setting, count=math.fsum(lost),
        trials=len(lost), at_most=at_most,
    )  # fmt: skip


def states(audits: Sequence[Advised]) -> Iterator[Rate]:
    """Measure how often gains of several sizes are said, and how often a gain is denied that is there."""
    told = [audit for audit in audits if audit.cell.endswith("probabilities")]
    for low, high in itertools.pairwise(GAINS):
        for items in PARTS:
            own = [a.found.state for a in told if a.items == items and low <= 100 * a.gain < high]
            setting = f"gain of {low:g} to {high:g} points, probabilities, {items:,} items"
            for state in ("better", "enough", "open"):
                yield from share(f"state {state}", setting, [found == state for found in own])
    large = [a.found.state == "better" for a in told if a.items == 300 and a.gain >= 0.04]
    setting = "gain of 4 points or more, probabilities, 300 items"
    yield from share("state better", setting, large, at_least=0.6 if len(large) > FEW else None)
    hidden = [a.found.state == "enough" for a in audits if a.gain > MARGIN + 0.003]
    yield from share("state enough", "gain of more than 1.3 points", hidden, at_most=0.05)
    enough = [a.gain > MARGIN + 0.003 for a in audits if a.found.state == "enough"]
    yield from share("gain of more than 1.3 points", "state enough", enough)
    named = [a.loss(a.found.method) > a.loss(BASE) + 0.002 for a in audits if a.found.method]
    yield from share(
        "the method is 0.2 points or more below a single call", "a method is named", named
    )


def near_chance(audits: Sequence[Advised]) -> Iterator[Rate]:
    """Measure how often a correction gains a point where no method is shown to be better than guessing."""
    gains = [audit.gain >= MARGIN for audit in audits if audit.found.state == "none"]
    yield from share("a correction gains a point or more", "state none", gains)


def controls(audits: Sequence[Advised]) -> Iterator[Rate]:
    """Recommendations that name a control."""
    named = [{a.found.method, a.found.cheapest, a.found.most_accurate} & CONTROLS for a in audits]
    yield from share("a control is named", "all judges", list(map(bool, named)), at_most=0)


def needed(audits: Sequence[Advised]) -> Iterator[Rate]:
    """Measure how often an open state is decided at 1,000 items, by the items that it said would decide."""
    decided = {(a.cell, a.trial): a.found.state != "open" for a in audits if a.items == 1000}
    for items in (100, 300):
        told = [
            (items + audit.found.needed <= 1000, decided[audit.cell, audit.trial])
            for audit in audits
            if audit.items == items and audit.found.needed is not None
        ]
        for text, soon in (("at most 1,000", True), ("more than 1,000", False)):
            hits = [is_decided for is_soon, is_decided in told if is_soon == soon]
            setting = f"{items} items, {text} reported as needed"
            yield from share("decided at 1,000 items", setting, hits)


def coins(trials: int) -> Iterator[Rate]:
    """Measure how often a gain is said where gold is a coin: in every cell, and in all of them together.

    Where it is a coin on contested items alone, methods are better than guessing, and equally good.
    """
    for coin in ("all", "contested"):
        said: list[bool] = []
        for number, (candidates, place, probs, items) in enumerate(COIN_CELLS):
            ties = 0.0 if probs or candidates > 2 else 0.2
            judge = DrawnJudge(candidates=candidates, place=place, ties=ties, coin=coin)
            own = []
            for trial in range(trials):
                answers = recorded(judge, items, 10_000 * number + trial)
                found = advice_of(answers.audit(0, items, probs=probs, seed=trial))
                own.append(found.state == "better")
            cell = f"{candidates} candidates, place {place:g}, {_known(probs)}, {items} items"
            yield from share("state better", f"gold by coin toss on {coin} items, {cell}", own)
            said += own
        bound = 0.05 if trials >= FEW else None
        yield from share("state better", f"gold by coin toss on {coin} items", said, at_most=bound)


def _known(probs: bool) -> str:
    return "probabilities" if probs else "labels"


def share(
    statement: str,
    setting: str,
    hits: Sequence[bool],
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Iterator[Rate]:
    """The rate of what is true in some of the trials; nothing without any trial."""
    if hits:
        yield Rate(
            statement=statement, setting=setting, count=sum(hits), trials=len(hits),
            at_most=at_most, at_least=at_least,
        )  # fmt: skip


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Losses with their bounds, states by the gain that is there, and gold that is a coin."""
    judges = trials or HOSTILE
    enough = judges >= FEW  # a bound on a mean needs judges
    audits = [audit for n, own in JUDGES.items() for audit in drawn(trials or own, n)]
    yield from losses(audits, AT_MOST if enough else None)
    sure = list(hostile(min(HOSTILE, judges), "when wrong"))
    yield from losses(sure, AT_MOST_WHEN_WRONG if enough else None)
    by_lot = list(hostile(min(HOSTILE, judges), "by lot"))
    yield from losses(by_lot)
    yield from controls([*audits, *sure, *by_lot])
    yield from states(audits)
    yield from near_chance(audits)
    yield from needed(audits)
    yield from coins(trials or COINS)
