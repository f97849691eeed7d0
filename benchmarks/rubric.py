"""Measure the effect of methods on position bias among the levels of a scale, where truth is known.

    python benchmarks/rubric.py [--trials N] [--items N] [--levels 5,7,10]

A response of quality q, uniform on the scale, is judged as `simulated/judge` judges it (content 1.2,
noise .4): the logit of a level falls with the square of its distance from q, and positions add to
it. Every answer, the single call's too, is drawn from the softmax (a judge at temperature 1), so that
orders are the only difference between a method and its control. A trial makes new responses; orders
are learned on 100 others, and all levels are listed from the lowest. Nothing here says how large the
bias of a real judge is. Columns: rank correlation with the quality; mean of score - quality, over all
trials and as the mean of its size in each; mean of |score - quality|; and in how many trials the 95%
interval of the paired difference of |score - quality| says that the method is better than its control.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import warnings
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from scipy.stats import spearmanr

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
        "primacy": 1.5 * (1.0 - places),
        "recency": 1.5 * places,
        "U-shape": 1.5 * (2.0 * places - 1.0) ** 2,
    }
    one_level = np.zeros((n, n))
    one_level[0, 0] = 1.5
    every = {name: np.tile(bias, (n, 1)) for name, bias in by_position.items()}
    return {**every, "lowest level first": one_level}


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


def run(n: int, kind: str, trials: int, size: int) -> None:
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
    for name, rows in figures.items():
        told = f"{better[name] / trials:.1%} than {AGAINST[name]}" if name in AGAINST else "–"
        cells = [n, kind, f"`{name}`", *map(_with_error, np.array(rows).T), told]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def _with_error(values: FloatArray) -> str:
    """The mean over trials and its standard error."""
    error = float(np.std(values, ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():.3f} ± {error:.3f}"


def main() -> None:
    """Every bias for every number of levels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--items", type=int, default=200, help="responses judged in a trial")
    parser.add_argument("--levels", default="5,7,10")
    arguments = parser.parse_args()
    heads = (
        "Spearman",
        "mean error",
        "its size in a trial",
        "mean absolute error",
        "called better",
    )
    print(f"| levels | bias | method | {' | '.join(heads)} |")
    print("|---" * 8 + "|")
    for n in map(int, arguments.levels.split(",")):
        for kind in biases(n):
            run(n, kind, arguments.trials, arguments.items)


if __name__ == "__main__":
    main()
