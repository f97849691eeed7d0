"""What every metric must do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from unswayed.decisions import MISSING, TIE, UNPARSED
from unswayed.metrics import METRICS, Metric, Need, Outcomes, difference, measure
from unswayed.metrics.answers import UNPARSED_RATE
from unswayed.metrics.gold import GOLD_ONE
from unswayed.metrics.simultaneous import contrasts
from unswayed.presentation import presentations
from unswayed.testing.rules import hold

ORDERS: Final = {2: "swap", 3: "cyclic"}


def check_metric(metric: Metric) -> None:
    """Check a metric that is registered: every rule of `RULES`.

    Raises:
        AssertionError: Naming the rule.
    """
    hold(f"metric {metric.title}", RULES, metric)


def sizes(metric: Metric) -> list[int]:
    """Numbers of candidates that a metric is tried with."""
    return [n for n in ORDERS if metric.applies_to(n)]


def judged(
    n: int, seed: int, *, items: int = 40, steady: bool = False, yardstick: bool = False
) -> Outcomes:
    """A random judge: every kind of answer and of item; where `steady`, one verdict per item."""
    draw = np.random.default_rng([seed, n])
    shown = presentations(ORDERS[n], n)
    views = 1 if steady else len(shown)
    logits = draw.normal(size=(items, views, n))
    probs = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    probs = np.broadcast_to(probs, (items, len(shown), n)).copy()
    choices = probs.argmax(axis=2).astype(np.int16)
    kinds = draw.random(choices.shape)
    if steady:
        choices[kinds[:, 0] < 0.1] = TIE
    else:
        for code, limit in ((MISSING, 0.15), (UNPARSED, 0.1), (TIE, 0.05)):
            choices[kinds < limit] = code
        probs[kinds < 0.15] = np.nan
    gold = np.eye(n, dtype=np.bool_)[draw.integers(0, n, items)]
    fixed = draw.random(items) < (0.0 if steady else 0.1)
    choices[fixed, 1:] = MISSING
    return Outcomes(
        item_ids=tuple(str(number) for number in range(items)),
        groups=(None,) * items,
        shown=shown,
        label_set=tuple("ABC"[:n]),
        choices=choices,
        gold=gold,
        gold_kind=np.full(items, GOLD_ONE, dtype=np.int8),
        permutable=~fixed,
        probs=probs,
        label_mass=np.where(choices == MISSING, np.nan, draw.random(choices.shape)),
        yardstick=yardstick,
        human=np.where(draw.random(items) < 0.1, np.nan, draw.integers(1, 6, items)),
        score=np.where(choices >= 0, choices + 1.0, np.nan),
        scores=np.where((choices >= 0)[:, :, None], logits, np.nan),
        places=np.add.outer(np.arange(items), np.arange(len(shown))).astype(np.int16) % 3,
    )


def _for(metric: Metric, n: int, seed: int, *, steady: bool = False) -> Outcomes:
    return judged(n, seed, steady=steady, yardstick=Need.YARDSTICK in metric.needs)


def says_what_it_is(metric: Metric) -> None:
    """A metric is registered, with a title of its own, a meaning without a full stop, and a reason."""
    name = METRICS.name_of(metric)
    assert metric.title
    assert metric.undefined
    assert metric.meaning
    assert not metric.meaning.endswith(".")
    same = [other for other in METRICS if METRICS.load(other).title == metric.title]
    assert same == [name], f"{same} have one title"


def has_a_finite_row_per_item(metric: Metric) -> None:
    """Statistics have a finite row for each item, and only zeros for an item that does not count."""
    for n in sizes(metric):
        statistics = metric.statistics(judged(n, 1))
        assert statistics.shape == (40, statistics.shape[1])
        assert statistics.dtype == np.float64
        assert np.isfinite(statistics).all()
        assert not statistics[statistics[:, 0] == 0].any()
        assert (statistics[:, 0] > 0).any()


def adds_up(metric: Metric) -> None:
    """An item's row hangs on the item alone, and values are computed row by row."""
    for n in sizes(metric):
        outcomes = judged(n, 2)
        whole = metric.statistics(outcomes)
        split = np.split(np.arange(40), [11, 12, 30])
        parts = [metric.statistics(outcomes.rows(rows)) for rows in split]
        np.testing.assert_allclose(np.vstack(parts), whole, atol=1e-12)
        sums = np.vstack([part.sum(axis=0) for part in (*parts, whole)])
        each = np.concatenate([metric.values(row[None, :]) for row in sums])
        np.testing.assert_allclose(metric.values(sums), each, atol=1e-12)


def names_its_needs(metric: Metric) -> None:
    """A metric that reads continuous quantities, such as probabilities, names them in `needs`."""
    for n in sizes(metric):
        outcomes = judged(n, 3)
        try:
            plain = metric.statistics(outcomes.categorical())
            reads = not np.array_equal(metric.statistics(outcomes), plain)
        except (AttributeError, TypeError):  # what it reads is None there
            reads = True
        assert reads == metric.continuous


def has_a_reason_where_it_is_undefined(metric: Metric) -> None:
    """Where nothing can be measured the value is None with a reason, or left out."""
    name = METRICS.name_of(metric)
    for n in sizes(metric):
        outcomes = _for(metric, n, 4)
        nothing = replace(
            outcomes,
            choices=np.full_like(outcomes.choices, MISSING),
            yardstick=False,
            probs=None,
            label_mass=None,
            human=None,
            score=None,
            scores=None,
        )
        row = measure([nothing], names=[name], resamples=5)
        if metric.optional:
            assert name not in row.values
            continue
        for estimate in row.values[name]:
            assert (estimate.value, estimate.low) == (None, None)
            assert estimate.reason


def is_measured_where_it_applies(metric: Metric) -> None:
    """It has a value within its limits where it applies, and over two sizes only if it may."""
    name = METRICS.name_of(metric)
    for n in ORDERS:
        row = measure([_for(metric, n, 5)], names=[name], resamples=50)
        assert (name in row.values) == metric.applies_to(n)
        for estimate in row.values.get(name, ()):
            assert estimate.value is not None
            if metric.limits is not None:
                low, high = metric.limits(n)
                assert low <= estimate.value <= high
    both = [_for(metric, n, 5) for n in sizes(metric)]
    if len(both) > 1:
        assert (name in measure(both, names=[name], resamples=5).values) == metric.across


def marks_what_holds_by_construction(metric: Metric) -> None:
    """`constructed` says whether every judge whose verdicts ignore the order has one and the same value."""
    name = METRICS.name_of(metric)
    for n in sizes(metric):
        judges = [_for(metric, n, seed, steady=True) for seed in range(6)]
        rows = [measure([judge], names=[name], resamples=0).values[name] for judge in judges]
        values = {
            tuple(None if e.value is None else round(e.value, 9) for e in row) for row in rows
        }
        if metric is not UNPARSED_RATE:  # steady judges say something every time
            assert (len(values) == 1) == bool(metric.constructed)
        row = measure([judges[1]], names=[name], resamples=20, constructed=True)
        for estimate in row.values[name]:
            assert estimate.by_construction == bool(metric.constructed)
            if metric.constructed:
                assert estimate.low == estimate.value == estimate.high


def compares_by_differences(metric: Metric) -> None:
    """A compared metric's difference is that of the two values, inside its interval."""
    if metric.compared == "no":
        return
    name = METRICS.name_of(metric)
    for n in sizes(metric):
        a, b = (_complete(_for(metric, n, seed), seed) for seed in (6, 7))
        value, other = (measure([side], names=[name], resamples=0)[name].value for side in (a, b))
        paired = difference([a], [b], name, resamples=200)
        assert value is not None
        assert other is not None
        assert paired.value is not None
        assert paired.low is not None
        assert paired.high is not None
        np.testing.assert_allclose(paired.value, value - other, atol=1e-12)
        assert paired.low <= paired.value <= paired.high
        if metric.compared == "jointly":
            together = contrasts({"a": [a], "b": [b]}, name).against("b")["a"]
            assert together.low is not None
            np.testing.assert_allclose(together.value or 0.0, paired.value, atol=1e-12)
            np.testing.assert_allclose(together.low, paired.low, atol=1e-3)


def _complete(outcomes: Outcomes, seed: int) -> Outcomes:
    """The same items count on both sides."""
    n, draw = outcomes.n, np.random.default_rng(seed)
    return replace(
        outcomes,
        choices=draw.integers(0, n, (40, n)).astype(np.int16),
        human=np.arange(40.0) % 5,
        score=draw.integers(1, 6, (40, n)).astype(float),
        scores=draw.normal(size=(40, n, n)),
        gold=np.eye(n, dtype=np.bool_)[np.arange(40) % n],
        permutable=np.ones(40, dtype=np.bool_),
    )


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
