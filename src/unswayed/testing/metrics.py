"""Rules for every metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from unswayed.metrics import METRICS, Metric, Need, Outcomes, difference, measure
from unswayed.metrics.gold import GOLD_ONE
from unswayed.metrics.rates import UNPARSED_RATE
from unswayed.metrics.simultaneous import contrasts
from unswayed.model.decisions import ABSTAINED, MISSING, TIE, UNPARSED, Estimate, FloatArray
from unswayed.model.presentation import presentations
from unswayed.testing.rules import hold

SIZES: Final = (2, 3)


def check_metric(metric: Metric) -> None:
    """Check a metric that is registered.

    Raises:
        AssertionError: Naming the broken rule.
    """
    hold(f"metric {metric.title}", RULES, metric)


def judged(metric: Metric, n: int, seed: int, *, steady: bool = False) -> Outcomes:
    """Return a random judge: every kind of answer and of item; where `steady`, one verdict per item."""
    draw = np.random.default_rng([seed, n])
    shown = presentations("cyclic", n)
    logits = draw.normal(size=(40, 1 if steady else n, n))
    probs = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    probs = np.broadcast_to(probs, (40, n, n)).copy()
    choices = probs.argmax(axis=2).astype(np.int16)
    kinds = draw.random(choices.shape)
    gold = np.eye(n, dtype=np.bool_)[draw.integers(0, n, 40)]
    fixed = draw.random(40) < (0.0 if steady else 0.1)
    if steady:
        choices[kinds[:, 0] < 0.1] = TIE
    else:
        for code, limit in ((MISSING, 0.15), (UNPARSED, 0.1), (TIE, 0.05)):
            choices[kinds < limit] = code
        probs[kinds < 0.15] = np.nan
    if Need.ABSTAINS in metric.needs:
        choices[kinds[:, 0] > 0.9] = ABSTAINED
    choices[fixed, 1:] = MISSING
    return Outcomes(
        item_ids=tuple(map(str, range(40))),
        groups=(None,) * 40,
        shown=shown,
        label_set=tuple("ABC"[:n]),
        choices=choices,
        gold=gold,
        gold_kind=np.full(40, GOLD_ONE, dtype=np.int8),
        permutable=~fixed,
        probs=probs,
        label_mass=np.where(choices == MISSING, np.nan, draw.random(choices.shape)),
        abstains=Need.ABSTAINS in metric.needs,
        yardstick=Need.YARDSTICK in metric.needs,
        human=np.where(draw.random(40) < 0.1, np.nan, draw.integers(1, 6, 40)),
        score=np.where(choices >= 0, choices + 1.0, np.nan),
        scores=np.where((choices >= 0)[:, :, None], logits, np.nan),
        places=np.add.outer(np.arange(40), np.arange(n)).astype(np.int16) % 3,
    )


def complete(metric: Metric, n: int, seed: int) -> Outcomes:
    """Return a random judge that answers everything about the same items whatever the seed."""
    draw = np.random.default_rng(seed)
    return replace(
        judged(metric, n, seed),
        choices=draw.integers(0, n, (40, n)).astype(np.int16),
        human=np.arange(40.0) % 5,
        score=draw.integers(1, 6, (40, n)).astype(float),
        scores=draw.normal(size=(40, n, n)),
        gold=np.eye(n, dtype=np.bool_)[np.arange(40) % n],
        permutable=np.ones(40, dtype=np.bool_),
    )


def _sizes(metric: Metric) -> list[int]:
    return [n for n in SIZES if metric.applies_to(n)]


def _measured(metric: Metric, *strata: Outcomes, constructed: bool = False) -> tuple[Estimate, ...]:
    """Return the metric's estimates; none where it is left out."""
    name = METRICS.name_of(metric)
    row = measure(strata, names=[name], resamples=20, constructed=constructed)
    return tuple(row.values.get(name, ()))


def says_what_it_is(metric: Metric) -> None:
    """Check that a metric is registered, with its own title, a meaning without a full stop, and a reason."""
    assert metric.title
    assert metric.undefined
    assert metric.meaning
    assert not metric.meaning.endswith(".")
    same = [other for other in METRICS if METRICS.load(other).title == metric.title]
    assert same == [METRICS.name_of(metric)], f"{same} have one title"


def has_a_finite_row_per_item(metric: Metric) -> None:
    """Statistics have a finite row for each item, and only zeros for an item that does not count."""
    for n in _sizes(metric):
        statistics = metric.statistics(judged(metric, n, 1))
        assert statistics.shape == (40, statistics.shape[1])
        assert statistics.dtype == np.float64
        assert np.isfinite(statistics).all()
        assert not statistics[statistics[:, 0] == 0].any()
        assert (statistics[:, 0] > 0).any()


def adds_up(metric: Metric) -> None:
    """Check that an item's row depends on the item alone, and values are computed row by row."""
    for n in _sizes(metric):
        outcomes = judged(metric, n, 2)
        whole = metric.statistics(outcomes)
        split = np.split(np.arange(40), [11, 12, 30])
        parts = [metric.statistics(outcomes.rows(rows)) for rows in split]
        np.testing.assert_allclose(np.vstack(parts), whole, atol=1e-12)
        sums = np.vstack([part.sum(axis=0) for part in (*parts, whole)])
        each = np.concatenate([metric.values(row[None, :]) for row in sums])
        np.testing.assert_allclose(metric.values(sums), each, atol=1e-12)


def names_its_needs(metric: Metric) -> None:
    """Check that a metric that reads continuous quantities, such as probabilities, names them in `needs`."""
    for n in _sizes(metric):
        outcomes = judged(metric, n, 3)
        try:
            plain = metric.statistics(outcomes.categorical())
            reads = not np.array_equal(metric.statistics(outcomes), plain)
        except (AttributeError, TypeError):  # what it reads is None there
            reads = True
        assert reads == metric.continuous


def has_a_reason_where_it_is_undefined(metric: Metric) -> None:
    """Check that a value without data is None with a reason, or left out."""
    for n in _sizes(metric):
        outcomes = judged(metric, n, 4)
        nothing = replace(
            outcomes,
            choices=np.full_like(outcomes.choices, MISSING),
            abstains=False,
            yardstick=False,
            probs=None,
            label_mass=None,
            human=None,
            score=None,
            scores=None,
        )
        estimates = _measured(metric, nothing)
        assert bool(estimates) != metric.optional
        for estimate in estimates:
            assert (estimate.value, estimate.low) == (None, None)
            assert estimate.reason


def is_measured_where_it_applies(metric: Metric) -> None:
    """Check that a metric has a value within its limits where it applies, and over two sizes only if it may."""
    for n in SIZES:
        estimates = _measured(metric, judged(metric, n, 5))
        assert bool(estimates) == metric.applies_to(n)
        low, high = (-np.inf, np.inf) if metric.limits is None else metric.limits(n)
        for estimate in estimates:
            assert estimate.value is not None
            assert low <= estimate.value <= high
    both = [judged(metric, n, 5) for n in _sizes(metric)]
    assert len(both) < 2 or bool(_measured(metric, *both)) == metric.across


def marks_what_holds_by_construction(metric: Metric) -> None:
    """Check that `constructed` is set only if every judge whose verdicts ignore the order has the same value."""
    for n in _sizes(metric):
        judges = [judged(metric, n, seed, steady=True) for seed in range(6)]
        rows = [[estimate.value for estimate in _measured(metric, judge)] for judge in judges]
        values = {
            tuple(None if value is None else round(value, 9) for value in row) for row in rows
        }
        if metric is not UNPARSED_RATE:  # steady judges say something every time
            assert (len(values) == 1) == bool(metric.constructed)
        for estimate in _measured(metric, judges[1], constructed=True):
            assert estimate.by_construction == bool(metric.constructed)
            if metric.constructed:
                assert estimate.low == estimate.value == estimate.high


def compares_by_differences(metric: Metric) -> None:
    """Check that a compared metric's difference is that of the two values, inside its interval."""
    name = METRICS.name_of(metric)
    for n in _sizes(metric) if metric.compared != "no" else ():
        a, b = complete(metric, n, 6), complete(metric, n, 7)
        (own,), (other,) = _measured(metric, a), _measured(metric, b)
        paired = _numbers(difference([a], [b], name, resamples=200))
        np.testing.assert_allclose(paired[0], _numbers(own)[0] - _numbers(other)[0], atol=1e-12)
        assert paired[1] <= paired[0] <= paired[2]
        if metric.compared == "jointly":
            joint = _numbers(contrasts({"a": [a], "b": [b]}, name).against("b")["a"])
            np.testing.assert_allclose(joint[0], paired[0], atol=1e-12)
            np.testing.assert_allclose(joint[1], paired[1], atol=1e-3)


def _numbers(estimate: Estimate) -> FloatArray:
    """Value and ends of the interval; NaN where there is none."""
    return np.array([estimate.value, estimate.low, estimate.high], dtype=float)


RULES: Final[tuple[Callable[[Metric], None], ...]] = (
    says_what_it_is,
    has_a_finite_row_per_item,
    adds_up,
    names_its_needs,
    has_a_reason_where_it_is_undefined,
    is_measured_where_it_applies,
    marks_what_holds_by_construction,
    compares_by_differences,
)
