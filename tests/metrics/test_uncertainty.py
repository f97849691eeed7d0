"""The bootstrap: right width, right coverage, one distribution for both ways of drawing."""

import numpy as np
import pytest
from metric_builders import SWAP, by_letter, outcomes, simulated

from unswayed.metrics import measure, sign_test
from unswayed.metrics.patterns import unique_rows
from unswayed.metrics.uncertainty import (
    TOO_FEW,
    alike_interval,
    interval,
    paired_difference,
    percentile_interval,
    resample_sums,
)
from unswayed.model.decisions import Estimate


def test_patterns_and_items_are_drawn_from_the_same_distribution() -> None:
    # 12 000 items of 6 kinds: few patterns are drawn as counts, the same rows singly as items
    counts = np.array([5000, 3000, 2500, 1000, 499, 1], dtype=np.int64)
    statistics = np.column_stack([np.ones(6), [0.0, 1.0, 2.0, 5.0, 0.5, 40.0]])
    draws = np.full(600, 12_000, dtype=np.int64)
    by_pattern = resample_sums(statistics, counts, draws, np.random.default_rng(0))
    singly = np.repeat(statistics, counts, axis=0)
    ones = np.ones(12_000, dtype=np.int64)
    by_item = resample_sums(singly, ones, draws, np.random.default_rng(1))
    expected = singly[:, 1].sum()
    deviation = singly[:, 1].std() * np.sqrt(12_000)
    for sums in (by_pattern, by_item):
        assert (sums[:, 0] == 12_000).all()  # every resample has as many items as the sample
        assert sums[:, 1].mean() == pytest.approx(expected, abs=4 * deviation / np.sqrt(600))
        assert sums[:, 1].std() == pytest.approx(deviation, rel=0.12)


def test_every_item_can_be_drawn_from_every_block() -> None:
    # 8 192 + 808 items: the second block is not a power of two
    items = 9000
    watched = [0, 1, 4000, 8190, 8191, 8192, 8193, 8998, 8999]
    statistics = np.zeros((items, len(watched)))
    statistics[watched, range(len(watched))] = 1.0
    ones = np.ones(items, dtype=np.int64)
    draws = np.full(2000, items, dtype=np.int64)
    seen = resample_sums(statistics, ones, draws, np.random.default_rng(3))
    # each is drawn a Poisson-like number of times with mean and variance 1 in every resample
    np.testing.assert_allclose(seen.mean(axis=0), 1.0, atol=5 / np.sqrt(2000))
    np.testing.assert_allclose(seen.var(axis=0), 1.0, atol=0.2)


def test_a_rate_has_the_binomial_interval() -> None:
    made = outcomes([[0, 0]] * 300 + [[0, 1]] * 100, gold=[None] * 400)
    cell = measure([made], names=["consistency"], seed=1)["consistency"]
    half = 1.96 * np.sqrt(0.75 * 0.25 / 400)
    assert cell.low == pytest.approx(0.75 - half, abs=0.01)
    assert cell.high == pytest.approx(0.75 + half, abs=0.01)


def test_intervals_are_reproducible_and_depend_on_the_seed() -> None:
    made = simulated(60, 3, orders="cyclic", position=0.5, seed=4)
    assert measure([made], seed=7) == measure([made], seed=7)
    assert measure([made], seed=7)["accuracy"] != measure([made], seed=8)["accuracy"]


def test_item_clusters_cover_and_single_calls_do_not() -> None:
    """150 items x 24 presentations: about 95% against about half (methods.md C)."""
    generator = np.random.default_rng(11)
    trials, items, views = 150, 150, 24
    covered = {"items": 0, "calls": 0}
    for trial in range(trials):
        easy = generator.beta(0.6, 0.4, size=items)  # true mean 0.6, items differ a lot
        right = generator.random((items, views)) < easy[:, None]
        value = float(right.mean())
        per_item = np.column_stack([np.ones(items), right.mean(axis=1)])
        per_call = np.array([[1.0, 1.0], [1.0, 0.0]])
        samples = {
            "items": resample_sums(
                per_item,
                np.ones(items, dtype=np.int64),
                np.full(300, items, dtype=np.int64),
                np.random.default_rng([trial, 0]),
            ),
            "calls": resample_sums(
                per_call,
                np.array([right.sum(), right.size - right.sum()], dtype=np.int64),
                np.full(300, right.size, dtype=np.int64),
                np.random.default_rng([trial, 1]),
            ),
        }
        for kind, sums in samples.items():
            bounds = interval(value, sums[:, 1] / sums[:, 0], n_items=items, limits=(0, 1))
            covered[kind] += bounds[0] <= 0.6 <= bounds[1]
    assert 0.90 <= covered["items"] / trials <= 0.99
    assert covered["calls"] / trials <= 0.60


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        # u = 1 - 0.025^(1/10) = .3085, the exact binomial interval of 0 of 10
        (0.0, 0.0, 0.3085),
        (1.0, 0.6915, 1.0),
        (0.5, 0.3458, 0.6542),
    ],
)
def test_items_all_alike_do_not_claim_certainty(value: float, low: float, high: float) -> None:
    assert alike_interval(value, 10, (0.0, 1.0)) == pytest.approx((low, high), abs=5e-5)


def test_a_rate_never_observed_has_the_exact_upper_bound() -> None:
    import scipy.stats as scipy_stats

    cell = measure([outcomes([[0, 0]] * 25)], names=["unparsed_rate"])["unparsed_rate"]
    exact = scipy_stats.binomtest(0, 25).proportion_ci(0.95, method="exact")
    assert (cell.value, cell.low) == (0.0, 0.0)
    assert cell.high == pytest.approx(exact.high)


def test_alike_items_have_the_interval_of_those_not_seen() -> None:
    # always "A": up to a share 1 - .025^(1/20) of all items may be answered the other way round
    made = outcomes([by_letter("AA", SWAP)] * 20)
    row = measure([made], names=["rstd", "position_rate", "primacy"])
    assert (row["rstd"].value, row["rstd"].high) == (0.5, 0.5)
    assert row["rstd"].low == pytest.approx(0.025 ** (1 / 20) - 0.5)
    first, last = row.values["position_rate"]
    assert first.high == 1.0
    assert first.low == pytest.approx(0.025 ** (1 / 20))
    assert last.high == pytest.approx(1 - 0.025 ** (1 / 20))
    assert row["primacy"].low == pytest.approx(first.low - 0.5)


def test_values_that_hold_by_construction_are_their_own_interval() -> None:
    made = outcomes([[0, 0], [1, 1]])
    row = measure([made], names=["consistency", "accuracy"], constructed=True)
    assert row["consistency"] == Estimate(value=1.0, low=1.0, high=1.0, n=2, by_construction=True)
    assert row["accuracy"].by_construction is False


def test_an_interval_needs_half_of_its_resamples() -> None:
    samples = np.array([np.nan, np.nan, 0.1, 0.2])
    assert interval(0.1, samples, n_items=4, limits=None) == "too many resamples are undefined"


def test_an_interval_needs_finite_ends() -> None:
    samples = np.concatenate([np.linspace(0.1, 0.3, 980), np.full(20, np.inf)])
    bounds = interval(0.2, samples, n_items=400, limits=None)
    assert not isinstance(bounds, str)
    assert bounds[1] < 0.3
    more = np.concatenate([samples, np.full(10, np.inf)])
    assert interval(0.2, more, n_items=400, limits=None) == "too many resamples are undefined"


def test_patterns_number_the_distinct_rows() -> None:
    rows = np.array([[1, 2], [1, 3], [1, 2], [-1, 2]])
    first, kind = unique_rows(rows)
    assert len(first) == 3
    np.testing.assert_array_equal(rows[first][kind], rows)


def test_patterns_keep_items_apart_that_differ_in_ties_or_gold() -> None:
    tied = np.zeros((3, 2, 2), dtype=bool)
    tied[1] = True
    made = outcomes([[-2, -2], [-2, -2], [-2, -2]], gold=[0, 0, 1], tied=tied)
    assert len(made.patterns[0]) == 3


@pytest.mark.parametrize(
    ("wins", "losses"),
    [(4, 0), (5, 0), (6, 0), (7, 0), (7, 1), (8, 1), (9, 2), (10, 2), (14, 4), (15, 4), (17, 6)],
)
@pytest.mark.parametrize("size", [1.0, 0.5])
@pytest.mark.parametrize("items", [40, 400, 4000])
def test_a_paired_interval_agrees_with_the_exact_sign_test(
    wins: int, losses: int, size: float, items: int
) -> None:
    counts = np.array([wins, losses, items - wins - losses], dtype=np.int64)
    paired = paired_difference(np.array([size, -size, 0.0]), counts, span=1.0)
    assert (paired.low > 0) == (sign_test(wins, losses) < 0.05)
    assert paired.low <= (wins - losses) * size / items <= paired.high
    turned = paired_difference(np.array([0.0, size, -size]), counts[[2, 1, 0]], span=1.0)
    assert paired.value is not None
    assert (turned.value, turned.low, turned.high) == (-paired.value, -paired.high, -paired.low)


def test_a_paired_interval_by_hand() -> None:
    # 6 of +1 and 14 of 0, with one of +1 and one of -1 added: centre 6/22, square 8/22
    paired = paired_difference(np.array([1.0, 0.0]), np.array([6, 14]), span=1.0)
    spread = np.sqrt((8 / 22 - (6 / 22) ** 2) / 21)
    assert paired.low == pytest.approx(6 / 22 - 2.093024 * spread)  # t with 19 degrees of freedom
    assert paired.high == pytest.approx(6 / 22 + 2.093024 * spread)


@pytest.mark.parametrize(
    ("items", "low", "high"), [(2, 0.003, 0.969), (6, 0.059, 0.806), (7, 0.246, 0.503)]
)
def test_handful_of_fractions_is_as_uncertain_as_a_rate(
    items: int, low: float, high: float
) -> None:
    samples = np.random.default_rng(0).normal(0.375, 0.05, 4000)
    ends = interval(0.375, samples, n_items=items, limits=(0.0, 1.0))
    assert ends == pytest.approx((low, high), abs=0.001)


def test_handful_of_items_gives_an_interval_only_of_a_mean() -> None:
    samples = np.random.default_rng(0).normal(0.375, 0.05, 4000)
    assert interval(0.375, samples, n_items=6, limits=None) == TOO_FEW
    assert not isinstance(interval(0.375, samples, n_items=7, limits=None), str)


def test_few_items_away_from_a_limit_have_the_exact_interval() -> None:
    import scipy.stats as scipy_stats

    made = outcomes([[0, 0]] * 147 + [[0, 1]] * 3)
    cell = measure([made], names=["consistency"], resamples=4000)["consistency"]
    exact = scipy_stats.binomtest(147, 150).proportion_ci(0.95, method="exact")
    assert (cell.low, cell.high) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize(("resamples", "seed"), [(100, 3), (1000, 3), (1000, 4)])
def test_a_rate_keeps_its_exact_interval_under_any_resamples(resamples: int, seed: int) -> None:
    drawn = np.random.default_rng(seed).binomial(60, 56 / 60, resamples) / 60
    low, high = interval(56 / 60, drawn, n_items=60, limits=(0.0, 1.0))
    assert (low, high) == pytest.approx((0.8380, 0.9815), abs=1e-4)  # Clopper-Pearson, 56 of 60


def test_small_samples_widen_quantiles_as_student_t() -> None:
    samples = np.linspace(0.0, 1.0, 100_001)
    # t(39) = 2.0227, sqrt(40/39) = 1.0127: the normal tail beyond 2.0484 is .02026
    low, high = percentile_interval(0.5, samples, n_items=40)
    assert (low, high) == pytest.approx((0.02026, 0.97974), abs=2e-5)
    assert percentile_interval(0.5, samples) == pytest.approx((0.025, 0.975))


def test_outcomes_of_no_items_have_no_patterns() -> None:
    tied = np.ones((3, 2, 2), dtype=np.bool_)
    made = outcomes([[-2, -2], [-2, -2], [-2, -2]], gold=[0, 0, 1], tied=tied)
    first, of_item = made.rows(np.arange(0)).patterns
    assert len(first) == len(of_item) == 0
