"""Measure coverage of intervals of rare events: shares, recalls and ICC where few items differ.

Judges of two candidates, asked in both orders, from hardly any discordant item to many; the truth is
that of 200 000 items. With `gaps` a tenth of the calls failed, and `one order` shows every item as it
was given: there gold does not stand under both labels of every item.

Then the sizes of four labels, from no pull of the first place on, where resamples lie above the truth,
means over few items, such as those of a small group, and macro averages over such groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from claim_rates.intervals import covers
from claim_rates.rate import Rate
from unswayed.metrics import measure, measure_groups
from unswayed.metrics.gold import GOLD_ONE
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.rows import Row
from unswayed.model.decisions import MISSING, TIE
from unswayed.model.decisions.clusters import Clusters
from unswayed.model.presentation import X0, X2, presentations

TRIALS = 1000
POPULATION = 200_000
SIZES = (40, 200, 1000)
COUNTED = ("position_rate", "position_effect", "recall_difference", "rstd")
AGREEMENT = ("icc2k", "icc3k")
PLACES = (0.0, 0.15, 0.6)
"""Logits for the first of four options."""
HANDFULS = (2, 3, 5, 7, 10)
GROUPS = {
    "2 groups of 2 items": (2, 2),
    "5 groups of 3 items": (3,) * 5,
    "20 groups of 2 items": (2,) * 20,
    "20 groups of 5 items": (5,) * 20,
    "a group of 2, nine of 50 items": (2, *(50,) * 9),
}
"""Items of each group."""
COPIES = 6
"""Items of a question."""
MEANS = ("consistency", "accuracy", "consistent_accuracy", "position_rate")
FEW = 40
"""Items of which ICC under a hardly discordant judge covers 88.9% (1,500 trials), below 90."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Log odds of the candidates: `ease` times their quality, `place` for the first, and noise.

    Attributes:
        spread: Ease differs between items, by this standard deviation of its logarithm.
        ties: Log odds below which a tie is called.
        gaps: Share of the calls that failed.
        copies: Times that every question is asked.
        views: Orders asked.
    """

    text: str
    ease: float = 1.0
    place: float = 0.8
    noise: float = 0.25
    spread: float = 0.0
    ties: float = 0.0
    gaps: float = 0.0
    copies: int = 1
    views: int = 2


JUDGES = (
    Judge(text="0.6%", ease=8, place=0.05),
    Judge(text="steady, position effect", ease=8, place=0.6),
    Judge(text="3%", ease=1.6, place=0.05),
    Judge(text="3% and position effect", ease=1.6, place=0.6),
    Judge(text="ties", noise=0.6, ties=0.8),
    Judge(text="heterogeneous", noise=0.8, spread=1.0),
    Judge(text="gaps", ease=1.6, place=0.6, gaps=0.1),
    Judge(text="one order", ease=1.6, place=0.6, views=1),
    Judge(text="four items per question", ease=1.6, place=0.6, copies=4),
)


def judged(judge: Judge, size: int, seed: int = 7) -> Outcomes:
    """Its answers to many items; copies of a question stand one behind the other."""
    draw = np.random.default_rng(seed)
    distinct = size // judge.copies
    ease = judge.ease * np.exp(judge.spread * draw.normal(size=(distinct, 1)))
    quality = ease * draw.normal(0, 1.5, (distinct, 2))
    gold = (quality + draw.gumbel(size=quality.shape)).argmax(axis=1)
    odds = quality[:, 0] - quality[:, 1] + draw.normal(0, 0.5, distinct)
    odds, gold = np.repeat(odds, judge.copies), np.repeat(gold, judge.copies)
    shifts = np.array([judge.place, -judge.place])[: judge.views]
    logits = odds[:, None] + shifts + draw.normal(0, judge.noise, (len(odds), judge.views))
    choices = (logits < 0).astype(np.int16)
    choices[np.abs(logits) < judge.ties] = TIE
    choices[draw.random(choices.shape) < judge.gaps] = MISSING
    first = 1 / (1 + np.exp(-logits))
    return Outcomes(
        item_ids=tuple(map(str, range(len(odds)))),
        groups=(None,) * len(odds),
        shown=(X0, X2)[: judge.views],
        label_set=("A", "B"),
        choices=choices,
        gold=np.eye(2, dtype=np.bool_)[gold],
        gold_kind=np.full(len(odds), GOLD_ONE, dtype=np.int8),
        permutable=np.ones(len(odds), dtype=np.bool_),
        probs=np.stack([first, 1 - first], axis=2),
    )


def drawn(whole: Outcomes, size: int, copies: int, draw: np.random.Generator) -> Outcomes:
    """Some questions, each with all its copies."""
    questions = draw.integers(0, len(whole) // copies, size)
    rows = (questions[:, None] * copies + np.arange(copies)).ravel()
    ids = tuple(map(str, range(len(rows))))
    clusters = Clusters.of([place // copies for place in range(len(rows))])
    return replace(whole.rows(rows), item_ids=ids, clusters=clusters)


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Coverage of each metric under each judge, at each number of items."""
    runs = trials or TRIALS
    for judge in JUDGES:
        yield from coverage(judge, runs)
    for place in PLACES:
        yield from coverage_of_sizes(place, runs)
    for place in (0.0, 2.0):
        yield from coverage_of_handfuls(place, runs)
        yield from coverage_of_groups(place, max(runs // 2, 1))
    yield from coverage_of_copies(runs)


def four(place: float, items: int, seed: int) -> Outcomes:
    """Answers to items of four options in cyclic order, the first place `place` logits above others."""
    draw, shown = np.random.default_rng([items, seed]), presentations("cyclic", 4)
    quality = draw.normal(0, 1.5, (items, 4))
    logits = quality[:, None] + draw.normal(0, 0.5, (items, len(shown), 4))
    for view, presentation in enumerate(shown):
        logits[:, view, presentation.order[0]] += place
    return Outcomes(
        item_ids=tuple(map(str, range(items))),
        groups=(None,) * items,
        shown=shown,
        label_set=tuple("ABCD"),
        choices=logits.argmax(axis=2).astype(np.int16),
        gold=np.eye(4, dtype=np.bool_)[(quality + draw.gumbel(size=quality.shape)).argmax(axis=1)],
        gold_kind=np.full(items, GOLD_ONE, dtype=np.int8),
        permutable=np.ones(items, dtype=np.bool_),
    )


def coverage_of_sizes(place: float, runs: int, *, size: int = POPULATION) -> Iterator[Rate]:
    """Coverage of what errors add to; the truth is 0 without a pull."""
    names = ("rstd", "ckld")
    whole = measure([four(place, size, 0)], names=names, resamples=0)
    for items in SIZES:
        held: Counter[str] = Counter()
        asked: Counter[str] = Counter()
        for trial in range(runs):
            row = measure([four(place, items, 1 + trial)], names=names, resamples=400, seed=trial)
            for name in names:
                if row[name].low is not None:
                    truth = (whole[name].value or 0.0) * (place > 0)
                    asked[name] += 1
                    held[name] += covers(row[name].low, row[name].high, truth)
        for name in asked:
            yield Rate(
                statement=f"interval of {name}",
                setting=f"four options, {place:g} logits for the first, {items:,} items",
                count=held[name],
                trials=asked[name],
                at_least=0.92,
            )


def coverage_of_handfuls(place: float, runs: int, *, size: int = POPULATION) -> Iterator[Rate]:
    """Coverage of means over a handful of items of four options."""
    whole, draw = four(place, size, 0), np.random.default_rng(2)
    for items in HANDFULS:

        def row_of(trial: int, items: int = items) -> Row:
            sample = drawn(whole, items, 1, draw)
            return measure([sample], names=MEANS, resamples=400, seed=trial)

        yield from coverage_of_means(whole, row_of, f"{place:g}", f"{items} items", runs)


def coverage_of_groups(place: float, runs: int, *, size: int = POPULATION) -> Iterator[Rate]:
    """Coverage of macro averages over groups of few items of four options; the truth of each group is the same."""
    whole, draw = four(place, size, 0), np.random.default_rng(4)
    for text, sizes in GROUPS.items():
        names = tuple(f"g{group}" for group, items in enumerate(sizes) for _ in range(items))

        def row_of(trial: int, names: tuple[str, ...] = names) -> Row:
            sample = replace(drawn(whole, len(names), 1, draw), groups=names, clusters=None)
            _, row = measure_groups([sample], names=MEANS, resamples=400, seed=trial)
            assert row is not None
            return row

        yield from coverage_of_means(whole, row_of, f"{place:g}", text, runs)


def coverage_of_means(
    whole: Outcomes, row_of: Callable[[int], Row], place: str, text: str, runs: int
) -> Iterator[Rate]:
    """Coverage of means in the rows of trials; the truth is that of the whole population."""
    truth = measure([whole], names=MEANS, resamples=0)
    held: Counter[str] = Counter()
    for trial in range(runs):
        row = row_of(trial)
        for name in MEANS:
            cell, right = row.values[name][0], truth.values[name][0].value
            assert right is not None
            held[name] += covers(cell.low, cell.high, right)
    for name in MEANS:
        yield Rate(
            statement=f"interval of {name}",
            setting=f"four options, {place} logits for the first, {text}, a mean",
            count=held[name],
            trials=runs,
            at_least=0.91,
        )


def pulled(questions: int, seed: int) -> Outcomes:
    """Answers to six pairs of every question, which has its own pull on the first place."""
    draw, items = np.random.default_rng([questions, seed]), COPIES * questions
    pull = np.repeat(draw.normal(1.0, 1.0, questions), COPIES)
    better = draw.normal(0, 1.0, (items, 1)) + pull[:, None] * np.array([1.0, -1.0])
    return Outcomes(
        item_ids=tuple(map(str, range(items))),
        groups=(None,) * items,
        shown=(X0, X2),
        label_set=("A", "B"),
        choices=(better + draw.normal(0, 0.5, (items, 2)) < 0).astype(np.int16),
        gold=np.tile([True, False], (items, 1)),
        gold_kind=np.full(items, GOLD_ONE, dtype=np.int8),
        permutable=np.ones(items, dtype=np.bool_),
    )


def coverage_of_copies(runs: int, *, size: int = POPULATION) -> Iterator[Rate]:
    """Coverage of shares over a handful of questions with several items each, such as those of a group."""
    whole, draw = pulled(size // COPIES, 0), np.random.default_rng(3)
    names = ["position_rate"]
    truth = measure([whole], names=names, resamples=0).values[names[0]][0].value or 0.0
    for questions in HANDFULS:
        held = 0
        for trial in range(runs):
            sample = drawn(whole, questions, COPIES, draw)
            first = measure([sample], names=names, resamples=400, seed=trial).values[names[0]][0]
            held += covers(first.low, first.high, truth)
        yield Rate(
            statement="interval of position_rate",
            setting=f"two candidates, {questions} questions with six items, a mean",
            count=held,
            trials=runs,
            at_least=0.91,
        )


def coverage(judge: Judge, runs: int, *, size: int = POPULATION) -> Iterator[Rate]:
    """Coverage under one judge; ICC in a quarter of the trials, where all probabilities are there."""
    whole = judged(judge, size)
    names = COUNTED if judge.views > 1 else ("position_rate", "rstd")
    truth = {}
    for name in (*names, *AGREEMENT):
        row = measure([whole], names=[name], resamples=0)
        truth[name] = row.values[name][0].value
    agreement = AGREEMENT if judge.views > 1 and not judge.gaps and not judge.ties else ()
    draw = np.random.default_rng(1)
    for items in SIZES:
        held: Counter[str] = Counter()
        asked: Counter[str] = Counter()
        for trial in range(runs):
            sample = drawn(whole, items, judge.copies, draw)
            wanted = (*names, *(agreement if trial % 4 == 0 else ()))
            row = measure([sample], names=wanted, resamples=2)
            for name in wanted:
                cell, right = row.values[name][0], truth[name]
                assert right is not None
                if name in AGREEMENT and cell.low is None:
                    continue  # none is given
                asked[name] += 1
                held[name] += covers(cell.low, cell.high, right)
        for name, count in asked.items():
            yield Rate(
                statement=f"interval of {name}",
                setting=f"{judge.text}, {items * judge.copies:,} items",
                count=held[name],
                trials=count,
                at_least=0.92 if name not in AGREEMENT else 0.90 if items > FEW else 0.87,
            )
