"""Rows of metrics.json: strata, groups, differences, registration."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_builders import SWAP, M, T, U, outcomes, simulated

from unswayed.base.errors import ShapeError, UnknownNameError, UsageError
from unswayed.metrics import METRICS, difference, measure, measure_groups, self_check
from unswayed.metrics.groups import UNGROUPED
from unswayed.metrics.metric import FloatArray, Need, item_means
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.table import load_metrics
from unswayed.metrics.uncertainty import ONE, exact_interval
from unswayed.model.decisions import ABSTAINED, Estimate
from unswayed.model.presentation import presentations


def test_a_row_is_json_with_every_contract_key() -> None:
    made = simulated(50, 2, orders="swap", position=0.6, seed=1)
    row = json.loads(json.dumps(measure([made]).to_json(), allow_nan=False))
    single = ["accuracy", "accuracy_fractional", "consistency", "consistent_accuracy", "rstd"]
    for name in [*single, "ckld", "fleiss_kappa", "icc2k", "icc3k", "unparsed_rate", "tie_rate"]:
        assert set(row[name]) == {"value", "low", "high", "n"}, name
        assert row[name]["low"] <= row[name]["value"] <= row[name]["high"]
    for name in ("position_rate", "label_rate"):
        assert len(row[name]) == 2
    assert "strata" not in row
    assert "pairwise_agreement" not in row  # only for more than two candidates


def test_items_are_measured_by_number_of_candidates() -> None:
    two = outcomes([[0, 0], [0, 1]])
    four = outcomes([[0, 0, 0, 1]] * 2, shown=presentations("cyclic", 4), ids=["m1", "m2"])
    row = measure([four, two], resamples=0)
    # what is defined for all is pooled over items: (1 + .5 + .75 + .75) / 4
    assert row["accuracy"] == Estimate(value=0.75, n=4)
    assert row["consistency"] == Estimate(value=(1 + 0 + 0.75 + 0.75) / 4, n=4)
    # what depends on labels or positions is not
    assert not {"rstd", "position_rate", "label_rate", "ckld", "fleiss_kappa"} & row.values.keys()
    assert row.beside.set_size == (2, 4)
    strata = row.strata
    assert list(strata) == [4, 2]
    assert len(strata[4].values["position_rate"]) == 4
    assert strata[2]["accuracy"].value == 0.75
    assert strata[4].beside.set_size == 4
    assert "pairwise_agreement" in strata[4].values
    assert list(row.to_json()["strata"]) == ["4", "2"]  # type: ignore[call-overload]


def test_strata_of_the_same_size_and_empty_input_are_refused() -> None:
    two = outcomes([[0, 0]])
    with pytest.raises(ShapeError, match="2 strata have 2 candidates"):
        measure([two, two])
    with pytest.raises(ShapeError, match="no items"):
        measure([])
    with pytest.raises(UsageError, match="write exclude or class"):
        measure([two], gold_ties="ignore")  # type: ignore[arg-type]


def test_an_unknown_metric_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'consistency'"):
        measure([outcomes([[0, 0]])], names=["consistancy"])


def test_what_was_left_out_is_counted() -> None:
    rows = [[0, U], [T, T], [0, M], [1, M], [0, 0]]
    made = outcomes(
        rows, gold=[0, "tie", None, 1, (0, 1)], permutable=[True, True, True, False, True]
    )
    assert measure([made], resamples=0).beside.counts == {
        "items": 5,
        "calls": 8,
        "missing": 1,
        "not_permutable": 1,
        "unparsed": 1,
        "ties": 2,
        "gold_one": 2,
        "gold_several": 1,
        "gold_tie": 1,
        "gold_none": 1,
    }


def test_a_bootstrap_value_is_the_value_of_the_resampled_items() -> None:
    """Weights in the sums are the same as items repeated in the outcomes, or put into patterns."""
    made = simulated(30, 3, orders="cyclic", position=0.5, seed=8)
    drawn = np.random.default_rng(0).integers(0, 30, 30)
    weights = np.bincount(drawn, minlength=30).astype(float)
    first, kind = made.patterns
    for name, metric in load_metrics().items():
        if metric.applies_to(3):
            if not metric.continuous:
                collapsed = metric.statistics(made.rows(first))[kind]
                np.testing.assert_array_equal(collapsed, metric.statistics(made))
            from_sums = metric.values((weights @ metric.statistics(made))[None, :])
            repeated = metric.statistics(made.rows(drawn)).sum(axis=0, keepdims=True)
            np.testing.assert_allclose(from_sums, metric.values(repeated), atol=1e-9, err_msg=name)


def test_differences_are_paired_by_item() -> None:
    base = simulated(300, 2, orders="swap", position=0.0, seed=5)
    choices = base.choices.copy()
    choices[:60, 0] = 0  # the other method differs on a few items only
    other = outcomes(choices.tolist(), gold=base.gold.argmax(axis=1).tolist())
    paired = difference([other], [base], "accuracy")
    rows = [measure([side], names=["accuracy"])["accuracy"] for side in (other, base)]
    assert paired.value == pytest.approx(rows[0].value - rows[1].value)
    assert paired.n == 300
    width = paired.high - paired.low
    assert width < 0.5 * (rows[0].high - rows[0].low)


def test_differences_match_items_by_id_and_leave_out_the_rest() -> None:
    a = outcomes([[0, 0], [0, 0], [1, 1]], ids=["x", "y", "z"])
    b = outcomes([[1, 1], [1, 1], [0, M]], ids=["z", "x", "y"])
    # accuracy counts x, y, z on both sides: 2/3 - 1/3
    assert difference([a], [b], "accuracy").value == pytest.approx(1 / 3)
    # consistency of y is undefined in b, so y is left out on both sides
    assert difference([a], [b], "consistency").n == 2


def test_a_method_does_not_differ_from_itself_but_could() -> None:
    made = simulated(100, 2, orders="swap", position=0.5, seed=6)
    same = difference([made], [made], "accuracy")
    assert same.value == 0.0
    share = 1 - 0.025 ** (1 / 100)
    assert (same.low, same.high) == (pytest.approx(-share), pytest.approx(share))


def test_differences_that_make_no_sense_say_why() -> None:
    two = outcomes([[0, 0]])
    with pytest.raises(UsageError, match="list of values"):
        difference([two], [two], "position_rate")
    other = outcomes([[0, 0]], ids=["elsewhere"])
    assert (
        difference([two], [other], "accuracy").reason == "no item counts in accuracy on both sides"
    )
    four = outcomes([[0, 0, 0, 1]], shown=presentations("cyclic", 4), ids=["m"])
    assert "different numbers" in str(difference([two, four], [two, four], "rstd").reason)
    assert difference([two, four], [two, four], "accuracy").value == 0.0


def test_groups_are_measured_alone_and_averaged_plainly() -> None:
    made = outcomes(
        [[0, 0]] * 6 + [[1, 1]] * 2 + [[0, 1]] * 2, groups=["big"] * 6 + ["small"] * 2 + [None] * 2
    )
    rows, macro = measure_groups([made])
    assert list(rows) == [UNGROUPED, "big", "small"]
    assert rows["big"]["accuracy"].value == 1.0
    assert rows["small"]["accuracy"].value == 0.0
    cell = macro["accuracy"]
    assert cell.value == 0.5
    assert (cell.n, cell.groups) == (10, 3)
    assert cell.low < 0.5 < cell.high
    assert macro.beside.groups == 3


def test_the_macro_interval_resamples_within_groups() -> None:
    made = outcomes(
        [[0, 0]] * 50 + [[1, 1]] * 50 + [[0, 0]] * 100, groups=["a"] * 100 + ["b"] * 100
    )
    _, macro = measure_groups([made], names=["accuracy"], seed=2)
    cell = macro["accuracy"]
    # only group a varies: half of the standard error of 50 of 100
    assert cell.high - cell.low == pytest.approx(2 * 1.96 * 0.05 / 2, rel=0.15)


def test_macro_interval_of_small_groups_is_that_of_samples() -> None:
    names = [f"g{item // 2}" for item in range(100)]
    _, macro = measure_groups([outcomes([[0, 0], [1, 1]] * 50, groups=names)], names=["accuracy"])
    cell = macro["accuracy"]
    # each mean of two has the variance 0.5 / 2; resamples of two have half of it
    assert cell.high - cell.low == pytest.approx(2 * 2.01 * (0.25 / 50) ** 0.5, rel=0.1)


def test_macro_interval_near_a_limit_is_that_of_a_rate() -> None:
    names = [f"g{item // 3}" for item in range(60)]
    made = outcomes([[1, 1]] + [[0, 0]] * 59, groups=names)
    _, macro = measure_groups([made], names=["accuracy"], seed=1)
    cell = macro["accuracy"]
    low, high = exact_interval(59 / 60, 60, (0.0, 1.0))
    # the items that are alike in one more group of three count for a variance of their own
    assert low - 0.03 < cell.low < low
    assert cell.high == pytest.approx(high, abs=0.001)


def test_macro_average_without_resamples_has_no_interval() -> None:
    made = outcomes([[0, 0], [0, 0], [0, 0], [1, 1]], groups=["a", "a", "b", "b"])
    _, macro = measure_groups([made], names=["accuracy"], resamples=0)
    cell = macro["accuracy"]
    assert (cell.value, cell.low, cell.reason) == (0.75, None, None)


def test_small_group_of_equal_items_widens_the_macro_interval() -> None:
    names = ["small"] * 2 + ["large"] * 50
    made = outcomes([[0, 0]] * 2 + [[0, 0], [1, 1]] * 25, groups=names)
    rows, macro = measure_groups([made], names=["accuracy"])
    small, cell = rows["small"]["accuracy"], macro["accuracy"]
    assert cell.value == 0.75
    # two of two right may well be one of two in another sample, which moves the mean by a quarter
    assert cell.high - cell.low > (small.high - small.low) / 2


def test_macro_average_over_groups_of_one_item_gives_the_reason() -> None:
    made = outcomes([[0, 0], [1, 1]] * 5, groups=[f"g{item}" for item in range(10)])
    _, macro = measure_groups([made], names=["accuracy"])
    cell = macro["accuracy"]
    assert (cell.value, cell.low, cell.high, cell.reason) == (0.5, None, None, ONE)


def test_an_undefined_group_leaves_the_average_to_the_others() -> None:
    made = outcomes([[0, 0], [0, 1], [0, 0]], gold=[0, 0, None], groups=["a", "a", "b"])
    _, macro = measure_groups([made], resamples=50)
    assert macro["accuracy"].value == 0.75
    assert macro["accuracy"].groups == 1
    assert macro["consistency"].groups == 2


def test_items_without_groups_have_no_group_rows() -> None:
    assert measure_groups([outcomes([[0, 0]])]) == ({}, None)


codes = st.sampled_from([0, 1, T, U, M])


@settings(max_examples=25, deadline=None)
@given(rows=st.lists(st.tuples(codes, codes), min_size=1, max_size=12))
def test_accuracy_never_exceeds_its_bound(rows: list[tuple[int, int]]) -> None:
    made = outcomes(rows, shown=SWAP, gold=[0, 1, None, "tie"] * 3 if len(rows) == 12 else None)
    self_check(measure([made], resamples=20), [made])


@settings(max_examples=20, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=12))
def test_accuracy_meets_its_bound_where_everything_is_read(rows: list[tuple[int, int]]) -> None:
    row = measure([outcomes(rows)], resamples=0)
    acc, con, both = (
        row[name].value for name in ("accuracy", "consistency", "consistent_accuracy")
    )
    assert acc == pytest.approx(both + (1 - con) / 2)


def test_a_stratum_without_probabilities_counts_no_item(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def first(part: Outcomes) -> FloatArray:
        return item_means(part.probs[:, 0, 0], np.isfinite(part.probs).all(axis=(1, 2)))

    sure = replace(METRICS.load("accuracy"), statistics=first, needs=(Need.PROBS,))
    monkeypatch.setattr(type(METRICS), "load", lambda *_: sure)
    two, three = (
        simulated(30, n, orders=orders, position=0.5, seed=n)
        for n, orders in ((2, "swap"), (3, "cyclic"))
    )
    bare = [replace(part, probs=None) for part in (two, three)]
    other = replace(two, probs=two.probs[::-1])
    alone = difference([two], [other], "sure", resamples=50)
    assert alone.value is not None
    assert difference([two, bare[1]], [other, three], "sure", resamples=50) == alone
    apart = difference([two, bare[1]], [bare[0], three], "sure", resamples=50)
    assert (apart.value, apart.reason) == (None, "no item counts in sure on both sides")
    row = measure([two, bare[1]], names=["sure"], resamples=50)["sure"]
    assert isinstance(row, Estimate)
    assert (row.value, row.n) == (pytest.approx(two.probs[:, 0, 0].mean()), 30)


def test_a_group_without_value_stays_out_of_the_macro_interval() -> None:
    # group g: 4 of 4 right; group h has no gold. 1 - .025^(1/4) of 4 alike may be different.
    made = outcomes(
        [[0, 0]] * 6, gold=[0, 0, 0, 0, None, None], groups=["g", "g", "g", "g", "h", "h"]
    )
    _, macro = measure_groups([made], names=["accuracy"], resamples=50)
    found = macro["accuracy"]
    assert (found.value, found.groups) == (1.0, 1)
    assert found.low == pytest.approx(0.025**0.25)


def test_an_item_that_must_not_be_permuted_is_never_complete() -> None:
    # answers to its other orders may have been recorded: they say nothing about the judge's orders
    row = measure([outcomes([[0, 0], [0, 1]], permutable=[True, False])], resamples=0)
    assert (row["consistency"].value, row["consistency"].n) == (1.0, 1)
    assert row.incomplete == 0


@pytest.mark.parametrize(
    ("choices", "reason"),
    [
        ([[ABSTAINED, ABSTAINED], [ABSTAINED, M]], "the method withheld every verdict"),
        ([[M, M], [M, M]], "no answered item has gold"),  # every call failed
    ],
)
def test_what_is_withheld_is_told_from_calls_that_failed(choices: list, reason: str) -> None:
    row = measure([replace(outcomes(choices), abstains=True)], resamples=0)
    assert (row["accuracy"].value, row["accuracy"].reason) == (None, reason)
