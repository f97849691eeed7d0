"""What is true of a planted judge, from its law, and what it said of the items of one seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judges import TIE, UNREAD, Planted, Scored

Holds = Callable[..., bool]
MANY = 40_000
"""Items from which the truth about a judge is read."""


@dataclass(frozen=True)
class Law:
    """What is true of a judge of pairs or options, from many draws of what is planted in it."""

    wins: float  # share of the comparisons that the first place wins, a tie counted as half
    shares: tuple[float, ...]  # of the choices, by place
    kept: dict[str, float]  # share of the items with the same verdict, by what changed
    again: float  # share of the verdicts that change in the same order
    ties: float  # share of the answers that call one
    right: float  # share of items judged right in every order
    accuracy: dict[str, float]  # of each method, a tie of candidates shared
    spread: float  # sd over items of the share of one item's choices in first place


def places_of(judge: Planted, choices: NDArray[np.intp]) -> NDArray[np.intp]:
    """At which place each choice stood, shape (I, layouts); ties and unread answers stay."""
    where = np.array([np.argsort(order) for order, _ in judge.layouts])
    stood = where[np.arange(choices.shape[1]), choices]
    return np.where(choices < 0, choices, stood)


def credit(
    judge: Planted, choices: NDArray[np.intp], gold: NDArray[np.intp]
) -> NDArray[np.float64]:
    return (choices == gold[:, None]) + (choices == TIE) / judge.n


@cache
def law(judge: Planted) -> Law:
    n, judge = judge.n, replace(judge, samples=2, copies=1, gaps=0)
    gold, samples, odds = judge.drawn(0, MANY)
    choices, coupled = samples[..., 0], samples[:, :n, 0]
    at = places_of(judge, choices)[:, :n]
    read, first = at > UNREAD, (at == 0) + 0.5 * (at == TIE)
    item = (first * read).sum(1) / np.maximum(read.sum(1), 1)
    counts = np.stack([(coupled == c).sum(1) for c in range(n)], axis=1)
    most = counts == counts.max(1, keepdims=True)
    most |= ((coupled == TIE).sum(1) >= counts.max(1))[:, None]  # a tie is one of the answers
    voted = most[np.arange(len(gold)), gold] / most.sum(1)
    mean = odds[:, :n, 0].mean(1).argmax(1)
    return Law(
        wins=float(item[read.any(1)].mean()),
        shares=tuple(float((at == p).sum() / max((at >= 0).sum(), 1)) for p in range(n)),
        kept={
            "coupled": float((coupled == coupled[:, :1]).all(1).mean()),
            "order": float((choices[:, 0] == choices[:, -1]).mean()),
            "label": float((choices[:, 0] == choices[:, -n]).mean()),
        },
        again=float((samples[:, :n, 0] != samples[:, :n, 1]).mean()),
        ties=float((coupled == TIE).sum() / max((coupled > UNREAD).sum(), 1)),
        right=float((coupled == gold[:, None]).all(1).mean()),
        accuracy={
            "direct": float(credit(judge, coupled, gold).mean()),
            "vote": float(voted.mean()),
            "average": float((mean == gold).mean()),
        },
        spread=float(item.std()),
    )


@dataclass(frozen=True)
class Facts:
    """What is true of a judge, and what it said of the items of one seed."""

    judge: Planted
    seed: int

    @property
    def law(self) -> Law:
        return law(self.judge)

    @property
    def whole(self) -> int:
        """Items that were asked in every order."""
        return self.judge.items - self.judge.gaps

    @property
    def units(self) -> int:
        return self.judge.items // self.judge.copies

    @cached_property
    def said(self) -> NDArray[np.intp]:
        """Choices by coupled order, of the items that were asked in every order."""
        choices = self.judge.drawn(self.seed, self.judge.items)[1]
        return choices[self.judge.gaps :, : self.judge.n, 0]

    @cached_property
    def changed(self) -> int:
        apart = (self.said != self.said[:, :1]) | (self.said == UNREAD)
        return int(apart.any(1).sum())

    @property
    def right(self) -> float:
        """Share of these items that were judged right in every order."""
        gold = self.judge.drawn(self.seed, self.judge.items)[0][self.judge.gaps :]
        return float((self.said == gold[:, None]).all(1).mean())

    @property
    def unread(self) -> tuple[int, int]:
        """Answers that could not be read, of all that were recorded."""
        choices = self.judge.drawn(self.seed, self.judge.items)[1]
        kept = choices[self.judge.gaps :].size, choices[: self.judge.gaps, :-1].size
        left = (
            (choices[self.judge.gaps :] == UNREAD).sum(),
            choices[: self.judge.gaps, :-1] == UNREAD,
        )
        return int(left[0] + left[1].sum()), sum(kept)

    @property
    def exact(self) -> float:
        return self.law.accuracy["direct"]

    @property
    def unbiased(self) -> float:
        """Accuracy of a single call without the effects."""
        return law(replace(self.judge, place=0.0, label=0.0, opposed=False)).accuracy["direct"]

    def stayed(self, place: int) -> int:
        """Items of which the same place was chosen in every order."""
        return int((places_of(self.judge, self.said) == place).all(1).sum())

    def touched(self, answer: int) -> int:
        """Items that change, with such an answer in one of the orders."""
        apart = (self.said != self.said[:, :1]).any(1) | (answer == UNREAD)
        return int((apart & (self.said == answer).any(1)).sum())


def pairs(t: Facts) -> bool:
    return t.judge.n == 2


def joint(t: Facts) -> float:
    """What the first place gains where labels move with it, as a share of comparisons or choices."""
    law = t.law
    return 2 * law.wins - 1 if pairs(t) else law.shares[0] - 1 / t.judge.n


def biased(t: Facts) -> bool:
    return abs(joint(t)) > 0.02


def near(percent: float, share: float, slack: float = 0.6) -> bool:
    """Whether a printed percentage is this share, up to how it was rounded."""
    return abs(percent - 100 * share) <= slack


def within(low: float, share: float, high: float, slack: float = 0.6) -> bool:
    return low - slack <= 100 * share <= high + slack


def about(t: Facts, percent: float, share: float) -> bool:
    """Whether a printed share is four standard errors or fewer from the true one."""
    return near(percent, share, 0.6 + 400 * sqrt(max(share * (1 - share), 0.0025) / t.units))


def gain(t: Facts, method: str, over: str = "direct") -> float:
    """Of tie-fair accuracy; a correction is worth what the judge would be without its effects."""
    exact = {**t.law.accuracy, "single": t.exact, "repeat": t.exact}
    return exact.get(method.partition(":")[0], t.unbiased) - exact[over]


def half_width(t: Facts) -> float:
    return 1.96 * t.law.spread / sqrt(t.units)


def place(name: str) -> int:
    words = ("first", "second", "third", "fourth")
    return len(words) - 1 if name == "last" else words.index(name)


def no_effect(t: Facts) -> bool:
    return t.judge.place == t.judge.label == 0


def change(t: Facts) -> float:
    return 1 - t.law.kept["coupled"]


def again(t: Facts) -> bool:
    return t.judge.samples > 1


def counts(t: Facts) -> tuple[int, int]:
    """Items whose verdict changes, of those asked in every order."""
    return t.changed, t.whole


def steady(t: Facts) -> float:
    """Mean share of the orders that agree with an item's most frequent answer."""
    answers = [(t.said == candidate).mean(1) for candidate in range(t.judge.n)]
    return float(np.max(answers, axis=0).mean())


def first_wins(t: Facts, *_: Any) -> bool:
    return biased(t) and joint(t) > 0


def moved(what: str) -> Holds:
    """What changing this leaves unchanged."""
    return lambda t, share: about(t, share, t.law.kept[what])


def slots(t: Scored, name: str) -> float:
    """What a place is worth: ten points for a logit, falling evenly from the first to the last."""
    return 10 * t.slot * (0.5 - place(name) / (t.n - 1))
