"""Measure the effect of methods on position bias among the levels of a scale, where truth is known.

    python benchmarks/rubric.py [--trials N] [--items N] [--levels 5,7,10] [--write]

A response of quality q, uniform on the scale, is judged as `simulated/judge` judges it (content 1.2,
noise .4): the logit of a level falls with the square of its distance from q, and positions add to
it. Every answer, the single call's too, is drawn from the softmax (a judge at temperature 1), so that
orders are the only difference between a method and its control. A trial makes new responses; orders
are learned on 100 others, and all levels are listed from the lowest. Nothing here says how large the
bias of a real judge is. Columns: rank correlation with the quality; mean of score - quality, over all
trials and as the mean of its size in each; mean of |score - quality|; and in how many trials the 95%
interval of the paired difference of |score - quality| says that the method is better than its control.
--write keeps a table of `balanced-rubric` and one of `bias-cost`, each beside its control.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import spearmanr

from evidence_table import Table, add_write
from unswayed.backends.simulated import simulated_items
from unswayed.methods.bias_cost import BiasCost
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.names import parse_method
from unswayed.methods.protocol import Method
from unswayed.metrics.uncertainty import paired_difference
from unswayed.model.decisions import DecisionTable, FloatArray
from unswayed.model.items import Item, Task, blind
from unswayed.model.presentation import Ask, settled

CONTENT: Final = 1.2
NOISE: Final = 0.4
PROBED: Final = 100
"""Items of the probe that bias-cost learns from."""

METHODS: Final = (
    "direct",
    "canonical",
    "repeat-score",
    "balanced-rubric",
    "average:orders=balanced",
)
AGAINST: Final = {
    "canonical": "direct",
    "bias-cost": "direct",
    "bias-cost:search=all": "direct",
    "balanced-rubric": "repeat-score",
}
"""A method with the control that asks as often: on an unbiased judge neither is better."""


def biases(n: int) -> Mapping[str, FloatArray]:
    """Return the shift of each level's logit at each position, shape (n, n): level, position."""
    places = np.linspace(0.0, 1.0, n)
    by_position = {
        "none": np.zeros(n),
        "first positions": 1.5 * (1.0 - places),
        "last positions": 1.5 * places,
        "both ends": 1.5 * (2.0 * places - 1.0) ** 2,
    }
    one_level = np.zeros((n, n))
    one_level[0, 0] = 1.5
    every = {name: np.tile(bias, (n, 1)) for name, bias in by_position.items()}
    return {**every, "the lowest level where it is first": one_level}


def answers(
    items: Sequence[Item], asks: Sequence[Ask], bias: FloatArray, rng: np.random.Generator
) -> DecisionTable:
    """Draw the judge's answer to each question about each item."""
    n, positions = len(bias), np.arange(len(bias))
    utility = CONTENT * np.array([item.meta["utility"] for item in items])
    logits = np.repeat(utility[:, None, :], len(asks), axis=1)
    for column, ask in enumerate(asks):
        shown = settled(ask, items[0])  # levels are listed alike in all items
        assert shown is not None
        order = list(shown.presentation.order)
        logits[:, column, order] += bias[order, positions]
    logits += rng.normal(0.0, NOISE / np.sqrt(2), logits.shape)
    probs = np.exp(logits - logits.max(axis=2, keepdims=True))
    probs /= probs.sum(axis=2, keepdims=True)
    return DecisionTable(
        items=tuple(map(blind, items)),
        asks=tuple(asks),
        shown=tuple(ask.presentation for ask in asks),
        label_set=tuple("ABCDEFGHIJ"[:n]),
        choices=(logits + rng.gumbel(size=logits.shape)).argmax(axis=2).astype(np.int16),
        probs=probs,
    )


def fitted(n: int, bias: FloatArray, rng: np.random.Generator) -> tuple[BiasCost, BiasCost]:
    """bias-cost with the best of the 2n orders, and of all, learned from one probe."""
    items = simulated_items(PROBED, n, seed=int(rng.integers(2**31)), task=Task.RUBRIC).items
    method = BiasCost(resamples=0)
    table = answers(items, method.estimation_asks(n), bias, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        return method.fit_tables({n: table}), BiasCost("all", resamples=0).fit_tables({n: table})


def scored(
    methods: Mapping[str, Method], size: int, n: int, bias: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """The quality of new responses and every method's score for them."""
    items = simulated_items(size, n, seed=int(rng.integers(2**31)), task=Task.RUBRIC).items
    quality = np.array([item.meta["quality"] for item in items])
    scores = {}
    for name, method in methods.items():
        verdicts = method.decide_table(answers(items, method.asks(n), bias, rng))
        assert verdicts.score is not None
        scores[name] = verdicts.score
    return quality, scores


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a method on one judge: means over trials, and standard errors of these means."""

    rank: tuple[float, float]  # correlation with the quality
    apart: tuple[float, float]  # score - quality
    size: tuple[float, float]  # its absolute value in a trial
    error: tuple[float, float]  # |score - quality|
    better: float | None  # share of trials that call the method better than its control

    def cells(self) -> list[str]:
        """Return the four means with their errors, and the share."""
        means = (self.rank, self.apart, self.size, self.error)
        return [*(f"{mean:.3f} ± {error:.3f}" for mean, error in means), share(self.better)]


def share(value: float | None) -> str:
    """Format a share of trials."""
    return "–" if value is None else f"{value:.1%}"


def run(n: int, kind: str, trials: int, size: int) -> dict[str, Figures]:
    """One judge: correlation and errors of every method, and how often one is called better."""
    bias = biases(n)[kind]
    rng = np.random.default_rng([n, *kind.encode()])
    plain = {name: parse_method(name) for name in METHODS}
    figures: dict[str, list[tuple[float, ...]]] = {}
    better = dict.fromkeys(AGAINST, 0)
    for _ in range(trials):
        best, exact = fitted(n, bias, rng)
        methods = {**plain, "bias-cost": best, "bias-cost:search=all": exact}
        quality, scores = scored(methods, size, n, bias, rng)
        errors = {name: np.abs(score - quality) for name, score in scores.items()}
        for name, score in scores.items():
            rank = float(spearmanr(score, quality).statistic)
            apart = float((score - quality).mean())
            entry = (rank, apart, abs(apart), float(errors[name].mean()))
            figures.setdefault(name, []).append(entry)
        for name, control in AGAINST.items():
            gain = errors[control] - errors[name]
            gained = paired_difference(gain, span=float(n - 1))
            better[name] += gained.low is not None and gained.low > 0
    return {
        name: Figures(
            *map(_with_error, np.array(rows).T), better[name] / trials if name in better else None
        )
        for name, rows in figures.items()
    }


def _with_error(values: FloatArray) -> tuple[float, float]:
    """The mean over trials and its standard error."""
    error = float(np.std(values, ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(values.mean()), error


def short(mean: float, error: float | None = None) -> str:
    """Format an error without its leading zero, and with its standard error."""
    text = f"{mean:.3f}".replace("0.", ".").replace("-", "−")
    return text if error is None else f"{text} ± {error:.3f}".replace("± 0.", "± .")


def keep(made: Mapping[tuple[int, str], Mapping[str, Figures]], trials: int) -> None:
    """Keep the tables of the two methods and of the claims on judges without bias."""
    balanced = Table(
        (
            "levels",
            "planted bias",
            "mean error, `repeat-score`",
            "mean error, `balanced-rubric`",
            "mean absolute error, both",
            "mean absolute error, `average:orders=balanced`",
            "rank correlation, both",
            "called better",
        )
    )
    heads = (
        "`direct`",
        "`bias-cost`",
        "`bias-cost:search=all`",
        "called better than `direct`, both",
    )
    cheapest = Table(("levels", "planted bias", *heads))
    for (n, kind), row in made.items():
        control, method = row["repeat-score"], row["balanced-rubric"]
        apart = (short(*one.apart) for one in (control, method))
        error, rank = (
            ", ".join(short(getattr(one, name)[0]) for one in (control, method))
            for name in ("error", "rank")
        )
        averaged = short(row["average:orders=balanced"].error[0])
        balanced.add(n, kind, *apart, error, averaged, rank, share(method.better))
        learned = [row[name] for name in ("bias-cost", "bias-cost:search=all")]
        sizes = (short(one.size[0]) for one in (row["direct"], *learned))
        cheapest.add(n, kind, *sizes, ", ".join(share(one.better) for one in learned))
    unbiased = [row for (_, kind), row in made.items() if kind == "none"]
    alike = Table(("method", "compared with", "interval shows a smaller error"))
    for name, control in (
        ("balanced-rubric", "as many calls in one order"),
        ("bias-cost", "a single call"),
    ):
        rates = [row[name].better or 0.0 for row in unbiased]
        alike.add(f"`{name}`", control, f"{min(rates):.1%} to {max(rates):.1%} of {trials} trials")
    alike.keep("claims", "scales")
    balanced.keep("claims", "balanced-rubric")
    cheapest.keep("claims", "bias-cost")


def main() -> None:
    """Every bias for every number of levels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--items", type=int, default=200, help="responses judged in a trial")
    parser.add_argument("--levels", default="5,7,10")
    add_write(parser, "claims")
    arguments = parser.parse_args()
    heads = (
        "Spearman",
        "mean error",
        "its size in a trial",
        "mean absolute error",
        "called better",
    )
    table = Table(("levels", "bias", "method", *heads))
    made = {}
    for n in map(int, arguments.levels.split(",")):
        for kind in biases(n):
            made[n, kind] = run(n, kind, arguments.trials, arguments.items)
            for name, figures in made[n, kind].items():
                table.add(n, kind, f"`{name}`", *figures.cells())
    if arguments.write:
        keep(made, arguments.trials)


if __name__ == "__main__":
    main()
