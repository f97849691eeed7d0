"""Correlations with human scores: worked values, oracles, resampling, reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from metric_builders import SWAP, cell, outcomes, value
from scipy import stats

from unswayed.base.errors import UsageError
from unswayed.metrics import Outcomes, difference, measure, measure_groups
from unswayed.metrics.correlation import SPEARMAN, Pairs, kendall, pearson, spearman
from unswayed.metrics.jackknife import jackknife
from unswayed.metrics.simultaneous import contrasts
from unswayed.model.decisions import FloatArray
from unswayed.model.presentation import presentations

CORRELATIONS = ("pearson", "spearman", "kendall_tau")
ORACLES = (
    (pearson, stats.pearsonr),
    (spearman, stats.spearmanr),
    (kendall, stats.kendalltau),
)


def scored(score: object, human: object, groups: list[str] | None = None) -> Outcomes:
    """Outcomes of one presentation, or of two for scores in two columns."""
    columns = np.asarray(score, dtype=np.float64)
    columns = columns.reshape(len(columns), -1)
    views = columns.shape[1]
    plain = outcomes([[0] * views] * len(columns), shown=SWAP[:views], groups=groups)
    return replace(plain, score=columns, human=np.asarray(human, dtype=np.float64))


def reason(made: Outcomes, name: str) -> str | None:
    return measure([made], names=[name], resamples=10)[name].reason


def ordinal(items: int, seed: int, *, noise: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Scores from 1 to 5 and human scores in thirds that go with them."""
    draw = np.random.default_rng(seed)
    quality = draw.normal(3, 1, items)
    score = np.clip(np.round(quality + draw.normal(0, noise, items)), 1, 5)
    raters = np.clip(np.round(quality[:, None] + draw.normal(0, 1, (items, 3))), 1, 5)
    return score, raters.mean(axis=1)


def test_the_worked_values() -> None:
    made = scored([1, 2, 3, 4], [1, 3, 2, 4])
    assert value("spearman", made) == pytest.approx(0.8)
    assert value("pearson", made) == pytest.approx(0.8)
    assert value("kendall_tau", made) == pytest.approx(2 / 3)  # 5 pairs alike, 1 not, of 6


@pytest.mark.parametrize(("ours", "oracle"), ORACLES)
def test_a_weighted_item_is_an_item_repeated(
    ours: Callable[[Pairs, FloatArray], FloatArray],
    oracle: Callable[[FloatArray, FloatArray], tuple[float, float]],
) -> None:
    draw = np.random.default_rng(7)
    for trial in range(60):
        items = int(draw.integers(4, 50))
        x = draw.integers(0, 2 + trial % 7, items) * 0.25
        y = x + (draw.integers(0, 4, items) if trial % 2 else draw.normal(size=items))
        weights = np.vstack([np.ones(items), draw.multinomial(items, [1 / items] * items)])
        pairs = Pairs.of(x, y)
        for row, computed in zip(weights, ours(pairs, pairs.counts(weights)), strict=True):
            repeated = [np.repeat(side, row.astype(int)) for side in (x, y)]
            if min(len(set(side)) for side in repeated) > 1:
                assert computed == pytest.approx(oracle(*repeated)[0], abs=1e-9)
            else:
                assert np.isnan(computed)


def test_scores_that_differ_by_rounding_alone_are_tied() -> None:
    tenths = [0.1 + 0.2, 0.3, 0.4, 0.7]
    assert tenths[0] != tenths[1]
    for name in CORRELATIONS:
        rounded = value(name, scored([0.3, 0.3, 0.4, 0.7], [1, 2, 3, 4]))
        assert value(name, scored(tenths, [1, 2, 3, 4])) == pytest.approx(rounded, abs=1e-12)
    assert value("spearman", scored([0.0, 0.0, 0.0], [1, 2, 3])) is None


def test_presentations_are_averaged_where_they_are_defined() -> None:
    human = [1.0, 2.0, 3.0, 4.0]
    both = scored([[1, 1], [3, 2], [2, 3], [4, 4]], human)
    assert value("spearman", both) == pytest.approx((0.8 + 1.0) / 2)
    one_constant = scored([[1, 5], [3, 5], [2, 5], [4, 5]], human)
    assert value("spearman", one_constant) == pytest.approx(0.8)
    one_unscored = scored([[1, np.nan], [3, np.nan], [2, np.nan], [4, 4]], human)
    assert value("spearman", one_unscored) == pytest.approx(0.8)


def test_items_without_both_scores_are_left_out() -> None:
    nan = float("nan")
    made = scored([1, 2, 3, 4, 5, nan], [1, 3, 2, 4, nan, 1])
    estimate = cell("spearman", made)
    assert estimate.value == pytest.approx(0.8)
    assert estimate.n == 4


@pytest.mark.parametrize("name", CORRELATIONS)
def test_what_is_undefined_says_which_side_is_at_fault(name: str) -> None:
    nan = float("nan")
    assert reason(scored([1, 2, 3], [4, 4, 4]), name) == "all human scores are the same"
    assert reason(scored([2, 2, 2], [1, 2, 3]), name) == "all scores of the judge are the same"
    assert "fewer than 3 items" in str(reason(scored([1, 2], [1, 2]), name))
    assert "fewer than 3 items" in str(reason(scored([1, 2, nan], [1, 2, 3]), name))
    # the human scores differ, but not where the judge gave one
    assert reason(scored([1, 2, 3, nan], [4, 4, 4, 5]), name) == "all human scores are the same"


def test_row_needs_scores_of_both_sides() -> None:
    made = scored([1, 2, 3, 4], [1, 3, 2, 4])
    for lacking in (replace(made, human=None), replace(made, score=None)):
        assert not set(CORRELATIONS) & set(measure([lacking], resamples=0).values)


def test_numbers_of_levels_are_not_pooled() -> None:
    three = outcomes([[0, 1, 2]] * 4, shown=presentations("cyclic", 3))
    three = replace(three, score=np.arange(12.0).reshape(4, 3), human=np.arange(4.0))
    row = measure([scored([1, 2, 3, 4], [1, 3, 2, 4]), three], names=["spearman"], resamples=5)
    assert "spearman" not in row.values
    assert row.strata[2]["spearman"].value == pytest.approx(0.8)
    assert row.strata[3]["spearman"].value == pytest.approx(1.0)


@pytest.mark.parametrize("name", CORRELATIONS)
def test_the_interval_is_that_of_a_plain_bootstrap(name: str) -> None:
    score, human = ordinal(200, 1)
    oracle = dict(zip(CORRELATIONS, (o for _, o in ORACLES), strict=True))[name]
    draw = np.random.default_rng(5)
    plain = []
    for _ in range(300):
        rows = draw.integers(0, 200, 200)
        plain.append(oracle(score[rows], human[rows])[0])
    estimate = measure([scored(score, human)], names=[name], resamples=2000)[name]
    assert estimate.low == pytest.approx(np.quantile(plain, 0.024), abs=0.02)
    assert estimate.high == pytest.approx(np.quantile(plain, 0.976), abs=0.02)


def test_a_group_is_ranked_by_itself() -> None:
    made = scored([1, 2, 3, 4] * 2, [1, 3, 2, 4, 4, 3, 2, 1], groups=["a"] * 4 + ["b"] * 4)
    rows, macro = measure_groups([made], names=["spearman"], resamples=50)
    assert rows["a"]["spearman"].value == pytest.approx(0.8)
    assert rows["b"]["spearman"].value == pytest.approx(-1.0)
    assert macro["spearman"].value == pytest.approx(-0.1)


@pytest.mark.parametrize("name", CORRELATIONS)
def test_a_difference_is_paired(name: str) -> None:
    score, human = ordinal(300, 2)
    other = score + (np.arange(300) % 10 == 0) * np.where(score < 3, 1, -1)
    a, b = scored(score, human), scored(other, human)
    paired = difference([a], [b], name)
    values = [measure([side], names=[name], resamples=500)[name] for side in (a, b)]
    assert paired.value == pytest.approx((values[0].value or 0) - (values[1].value or 0))
    assert paired.n == 300
    width = (paired.high or 0) - (paired.low or 0)
    assert width < 0.5 * ((values[0].high or 0) - (values[0].low or 0))
    turned = difference([b], [a], name)
    assert (turned.low, turned.high) == (
        pytest.approx(-(paired.high or 0)),
        pytest.approx(-(paired.low or 0)),
    )


def test_a_method_that_scores_alike_cannot_be_told_apart() -> None:
    score, human = ordinal(100, 3)
    paired = difference([scored(score, human)], [scored(score, human)], "spearman")
    assert paired.value == 0.0
    assert (paired.low or 0) < 0 < (paired.high or 0)


def test_leaving_items_out_gives_the_standard_error_of_the_value() -> None:
    # Pearson's r of normal scores has standard error (1 - r^2) / sqrt(n)
    draw = np.random.default_rng(11)
    x = draw.normal(size=4000)
    y = 0.6 * x + 0.8 * draw.normal(size=4000)
    pairs = Pairs.of(x, y)

    def of_weights(weights: FloatArray) -> FloatArray:
        return pearson(pairs, pairs.counts(weights))

    entries = jackknife(of_weights, 4000)
    assert len(entries) == 400
    assert entries.mean() == pytest.approx(stats.pearsonr(x, y)[0], abs=1e-12)
    error = entries.std(ddof=1) / np.sqrt(400)
    assert error == pytest.approx((1 - 0.6**2) / np.sqrt(4000), rel=0.12)


def test_joint_intervals_are_wider_than_those_of_one_pair() -> None:
    score, human = ordinal(300, 4)
    draw = np.random.default_rng(1)
    noisy = [np.clip(score + draw.integers(-1, 2, 300), 1, 5) for _ in range(5)]
    family = {"direct": [scored(score, human)]} | {
        f"m{k}": [scored(own, human)] for k, own in enumerate(noisy)
    }
    together = contrasts(family, "spearman").against("direct")["m0"]
    alone = difference(family["m0"], family["direct"], "spearman")
    assert together.value == pytest.approx(alone.value)
    assert (together.low or 0) < (alone.low or 0) < (alone.high or 0) < (together.high or 0)


def test_a_weighted_metric_must_say_its_limits_and_is_not_pooled() -> None:
    with pytest.raises(UsageError, match="needs limits"):
        replace(SPEARMAN, limits=None)
    with pytest.raises(UsageError, match="across strata"):
        replace(SPEARMAN, across=True)
