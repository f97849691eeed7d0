"""Measure estimates from gold: its share of errors, and the temperature of the model's average.

The truth is drawn from the average at a temperature that is not told, gold from the truth. Four
settings break what the estimate assumes: an average that is sure and wrong, gold that is wrong on
close items only, an average that is never sure, and topics with a temperature of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from claim_rates.rate import Rate
from unswayed.model.decisions import Estimate
from unswayed.training.advice import CLEAN, hardly_wrong, surest_contradicted
from unswayed.training.targets import shared_temperature, wrong_gold

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TRIALS: Final = 80
SIZES: Final = (20, 200, 1600)
MANY: Final = 2000
"""Items on which a temperature's log loss is computed."""

COVERED: Final = 0.92
"""At least so often an interval holds the truth: 95% less two standard errors of 240 trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A model's average, the truth and gold.

    Attributes:
        n: Candidates.
        right: How often the average is right, where it is not sure and wrong.
        temperature: At which the average is calibrated; above 1 it says too much.
        epsilon: Share of gold that is wrong, by lot.
        sure: Share of items on which the average is about something else, as sure as elsewhere.
        close: Temperature of annotators who err where candidates are close; 0 for none.
        limit: Size that the average's logits never exceed, however sure it should be; 0 for none.
        topics: The average is calibrated at this temperature on half of the items, by lot, and at
            one over it on the others.
    """

    n: int = 2
    right: float = 0.75
    temperature: float = 1.0
    epsilon: float = 0.0
    sure: float = 0.0
    close: float = 0.0
    limit: float = 0.0
    topics: float = 1.0

    def drawn(self, items: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray, IntArray]:
        """Mean logits, shape (items, n), the truth and gold, each (items,)."""
        own = rng.normal(size=(items, self.n)) * _spread(self.n, self.right)
        worth = own + rng.gumbel(size=own.shape)
        truth = worth.argmax(axis=1)
        gold = truth
        if self.close:
            gold = (worth / self.close + rng.gumbel(size=own.shape)).argmax(axis=1)
        lot = (gold + rng.integers(1, self.n, items)) % self.n
        gold = np.where(rng.random(items) < self.epsilon, lot, gold)
        other = rng.normal(size=own.shape) * _spread(self.n, self.right)
        own = np.where((rng.random(items) < self.sure)[:, None], other, own)
        if self.limit:
            own = self.limit * np.tanh((own - own.mean(axis=1, keepdims=True)) / self.limit)
        if self.topics != 1:
            half = (rng.random(items) < 0.5)[:, None]
            own = np.where(half, own * self.topics, own / self.topics)
        return own * self.temperature, truth, gold

    def __str__(self) -> str:
        parts = [f"n {self.n}, average right {self.right:.0%}"]
        parts += [f"calibrated at {self.temperature:g}"] if self.temperature != 1 else []
        parts += [f"{self.epsilon:.0%} wrong"]
        parts += [f"{self.sure:.0%} about something else"] if self.sure else []
        parts += [f"annotators' temperature {self.close:g}"] if self.close else []
        parts += [f"logits below {self.limit:g}"] if self.limit else []
        parts += (
            [f"topics calibrated at {self.topics:g} and its inverse"] if self.topics != 1 else []
        )
        return ", ".join(parts)


@functools.cache
def _spread(n: int, right: float) -> float:
    """The standard deviation of logits whose most probable candidate is right so often."""
    unit = np.random.default_rng(0).normal(size=(20_000, n))
    low, high = 0.0, 100.0
    for _ in range(30):
        middle = (low + high) / 2
        if softmax(unit * middle, axis=1).max(axis=1).mean() < right:
            low = middle
        else:
            high = middle
    return middle


RIGHT: Final = (0.6, 0.75, 0.95)
"""How often averages are right."""
BROKEN: Final = tuple(
    replace(world, n=n)
    for n in (2, 4)
    for world in (
        World(sure=0.1),
        World(sure=0.3),
        World(close=1.0),
        World(right=0.9, close=1.0),
        World(topics=2.0),
        World(right=0.9, topics=2.0),
    )
)
"""Worlds that are not what the estimate assumes; their gold is right, or wrong on close items."""
LIMITED: Final = tuple(
    World(n=n, right=0.9, limit=0.6, epsilon=epsilon)
    for n in (2, 4)
    for epsilon in (0.0, 0.12, 0.15, 0.2)
)
"""Averages that are never sure, with right and with wrong gold."""


def bootstrap_interval(
    mean_logits: FloatArray, gold: Sequence[int], *, resamples: int = 200
) -> Estimate:
    """The percentile interval of the likeliest share, over items drawn with replacement."""
    items, n = mean_logits.shape
    shares = np.linspace(0.0, (n - 1) / n, 51)
    table = []
    for tau in np.geomspace(0.1, 10.0, 21):
        own = softmax(mean_logits / tau, axis=1)[np.arange(items), np.asarray(gold)]
        likelihood = (1 - shares)[:, None] * own + (shares / (n - 1))[:, None] * (1 - own)
        table.append(np.log(np.maximum(likelihood, 1e-300)))
    rng = np.random.default_rng(0)
    weights = rng.multinomial(items, np.full(items, 1 / items), size=resamples)
    best = (np.array(table) @ weights.T).max(axis=0).argmax(axis=0)
    low, high = np.quantile(shares[best], [0.025, 0.975])
    return Estimate(value=float(shares[best].mean()), low=float(low), high=float(high), n=items)


def worse(
    world: World, items: int, choose: Callable[[FloatArray, Sequence[int]], float], trials: int
) -> int:
    """Measure how often the chosen temperature has a larger log loss against the truth than 1."""
    logits, truth, _ = world.drawn(MANY, np.random.default_rng(10**6))

    def loss(tau: float) -> float:
        own = log_softmax(logits / tau, axis=1)
        return float(-own[np.arange(MANY), truth].mean())

    plain, count = loss(1.0), 0
    for trial in range(trials):
        chosen = choose(*_gold_of(world, items, trial))
        count += chosen != 1.0 and loss(chosen) > plain
    return count


def _gold_of(world: World, items: int, trial: int) -> tuple[FloatArray, list[int]]:
    logits, _, gold = world.drawn(items, np.random.default_rng(trial))
    return logits, gold.tolist()


class Verdict(NamedTuple):
    """Report on gold: its share of errors, and whether it is called clean."""

    wrong: Estimate
    clean: bool


def verdicts(world: World, items: int, trials: int) -> list[Verdict]:
    """Yield the report on gold, once a trial."""
    verdicts = []
    for trial in range(trials):
        drawn = _gold_of(world, items, trial)
        wrong = wrong_gold(*drawn)
        verdicts.append(Verdict(wrong, hardly_wrong(wrong, surest_contradicted(*drawn))))
    return verdicts


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Coverage, what is said on the strength of an interval, temperatures, broken assumptions."""
    runs = trials or TRIALS
    for n in (2, 4):
        for epsilon in (0.0, 0.1, 0.2, 0.4):
            for items in SIZES:
                worlds = [World(n=n, right=right, epsilon=epsilon) for right in RIGHT]
                yield from _of_intervals(worlds, items, runs)
        for temperature in (0.5, 2.0):
            yield from _of_intervals(
                [World(n=n, temperature=temperature, epsilon=0.2)], 200, len(RIGHT) * runs
            )
        yield from _of_temperatures(n, runs)
    for world in BROKEN:
        for items in (200, 1600):
            yield from _said(world, items, verdicts(world, items, runs))
    for world in LIMITED:
        for items, times in ((200, runs), (1600, runs), (5000, (runs + 1) // 2)):
            yield from _said(world, items, verdicts(world, items, times))
    yield from of_bootstrap(runs)


def _of_intervals(worlds: Sequence[World], items: int, trials: int) -> Iterator[Rate]:
    """Errors of all worlds together, with their bounds; what is said of each, without."""
    parts = [verdicts(world, items, trials) for world in worlds]
    every = [verdict for part in parts for verdict in part]
    epsilon = worlds[0].epsilon
    setting = str(replace(worlds[0], right=0)) if len(worlds) > 1 else str(worlds[0])
    setting = f"{setting.replace('average right 0%', 'averages of every kind')}, {items:,} items"
    held = sum(wrong.low - 1e-9 <= epsilon <= wrong.high + 1e-9 for wrong, _ in every)
    yield Rate(
        statement="the interval of the share of wrong gold holds it",
        setting=setting, count=held, trials=len(every), at_least=COVERED,
    )  # fmt: skip
    statement, errors = (
        ("gold is called clean", sum(clean for _, clean in every))
        if epsilon
        else ("gold is called wrong in part", sum(wrong.low > 0 for wrong, _ in every))
    )
    yield Rate(statement=statement, setting=setting, count=errors, trials=len(every), at_most=0.05)
    for world, part in zip(worlds, parts, strict=True):
        yield from _said(world, items, part)


def of_bootstrap(trials: int) -> Iterator[Rate]:
    """The interval that was not taken, without a bound."""
    for n in (2, 4):
        for items in (20, 200):
            shares = [
                bootstrap_interval(*_gold_of(World(n=n, right=right, epsilon=0.1), items, trial))
                for right in RIGHT
                for trial in range(trials)
            ]
            for statement, count in (
                ("a bootstrap of it holds it", sum(s.low <= 0.1 <= s.high for s in shares)),
                ("a bootstrap calls gold clean", sum(s.high < CLEAN for s in shares)),
            ):
                yield Rate(
                    statement=statement,
                    setting=f"n {n}, averages of every kind, 10% wrong, {items:,} items",
                    count=count,
                    trials=len(shares),
                )


def _said(world: World, items: int, part: Sequence[Verdict]) -> Iterator[Rate]:
    """Return statements about gold; the last one, by the interval alone, is not the program's."""
    for statement, count in (
        ("gold is called wrong in part", sum(wrong.low > 0 for wrong, _ in part)),
        ("gold is called clean", sum(clean for _, clean in part)),
        ("the interval alone would call it clean", sum(wrong.high < CLEAN for wrong, _ in part)),
    ):
        yield Rate(
            statement=statement, setting=f"{world}, {items:,} items", count=count, trials=len(part)
        )


def _of_temperatures(n: int, trials: int) -> Iterator[Rate]:
    for epsilon, sure in ((0.0, 0.0), (0.2, 0.0), (0.35, 0.0), (0.0, 0.2)):
        world = World(n=n, epsilon=epsilon, sure=sure)
        for items in (20, 60, 200):
            worst = max(
                worse(
                    replace(world, temperature=temperature), items, shared_temperature, 2 * trials
                )
                for temperature in (0.5, 0.7, 1.0, 1.4, 2.0)
            )
            yield Rate(
                statement="the temperature chosen is worse than 1, worst of five averages",
                setting=f"{world}, {items:,} items",
                count=worst,
                trials=2 * trials,
                at_most=0.08,
            )
