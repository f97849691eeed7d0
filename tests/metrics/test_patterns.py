"""Answer patterns: counted once for the whole, the same for its parts, alone and jointly."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_builders import outcomes, simulated

from unswayed.metrics import difference, measure, measure_groups
from unswayed.metrics.metric import Need
from unswayed.metrics.moments import EXACT_UP_TO
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.pairing import jointly
from unswayed.metrics.patterns import patterns_of_rows, unique_rows
from unswayed.metrics.uncertainty import fewer_rows, resample_sums
from unswayed.model.decisions.clusters import Clusters


@given(
    kinds=st.lists(st.integers(0, 6), min_size=1, max_size=40),
    wanted=st.lists(st.integers(0, 39), max_size=40),
)
def test_patterns_of_some_items_are_those_of_their_rows(
    kinds: list[int], wanted: list[int]
) -> None:
    rows = np.array([[kind, kind % 2] for kind in kinds], dtype=np.int64)
    index = np.array([row % len(kinds) for row in wanted], dtype=np.intp)
    first, pattern = patterns_of_rows(unique_rows(rows)[1], index)
    own_first, own_pattern = unique_rows(rows[index])
    np.testing.assert_array_equal(first, own_first)
    np.testing.assert_array_equal(pattern, own_pattern)


def test_a_tally_is_one_row_per_pattern_with_its_items() -> None:
    own = outcomes([[0, 1], [0, 0], [0, 1], [0, 1]], gold=[0, 0, 0, 1])
    tally = own.tally
    assert tally.weights is not None
    right = tally.gold.argmax(axis=1)
    rows = np.column_stack([tally.choices, right, tally.weights]).tolist()
    counted = {tuple(row[:-1]): row[-1] for row in rows}
    assert counted == {(0, 1, 0): 2, (0, 0, 0): 1, (0, 1, 1): 1}
    assert (len(tally), tally.n_items, own.n_items) == (3, 4, 4)
    assert tally.count(tally.unanimous) == own.count(own.unanimous) == 1
    assert tally.count(tally.answered) == own.count(own.answered) == 8
    assert sorted(map(tuple, tally.each.choices.tolist())) == sorted(
        map(tuple, own.choices.tolist())
    )
    np.testing.assert_array_equal(tally.tally.weights, tally.weights)


def test_joint_patterns_keep_what_each_method_and_the_pair_says() -> None:
    one = outcomes([[0, 0], [0, 1], [0, 0], [0, 0]])
    other = outcomes([[0, 1], [0, 1], [0, 1], [1, 1]])
    left, right = jointly((one, other))
    pairs = zip(left.choices.tolist(), right.choices.tolist(), strict=True)
    assert left.weights is not None
    joint = {(*map(tuple, pair),): weight for pair, weight in zip(pairs, left.weights, strict=True)}
    assert joint == {((0, 0), (0, 1)): 2, ((0, 1), (0, 1)): 1, ((0, 0), (1, 1)): 1}
    assert left.item_ids == right.item_ids


def test_many_methods_are_told_apart_beyond_the_numbers_that_fit() -> None:
    generator = np.random.default_rng(0)
    sides = [outcomes(generator.integers(0, 2, (300, 2)).tolist()) for _ in range(24)]
    joint = jointly(sides)  # 4 to the power of 24 joint patterns, of which 300 occur
    assert len(joint[0]) == len(np.unique(np.hstack([side.choices for side in sides]), axis=0))
    for own, side in zip(joint, sides, strict=True):
        assert measure([own], names=["accuracy"], resamples=0) == measure(
            [side], names=["accuracy"], resamples=0
        )


def test_needs_apply_to_patterns_or_to_scores_of_items() -> None:
    own = replace(outcomes([[0, 1]] * 3), human=np.arange(3.0), score=np.ones((3, 2)))
    assert Need.COMPLETE.met_by(own)
    assert Need.HUMAN.met_by(own)
    assert Need.HUMAN_VARIES.met_by(own)
    assert not Need.SCORE_VARIES.met_by(own)
    assert not Need.PROBS.met_by(own)


@pytest.fixture(scope="module")
def many() -> Outcomes:
    """More items than are drawn one by one."""
    own = simulated(EXACT_UP_TO + 1_000, 2, orders="swap", position=0.6, seed=1)
    return replace(own, groups=tuple("ab"[row % 2] for row in range(len(own))))


def test_items_are_drawn_one_by_one_up_to_five_thousand(many: Outcomes) -> None:
    """The groups have 3 000 items each: their figures are what they were."""
    rows, _ = measure_groups([many], names=["icc3k"])
    width = rows["a"]["icc3k"].high - rows["a"]["icc3k"].low  # type: ignore[operator]
    alone = measure([many.rows(np.arange(0, len(many), 2))], names=["icc3k"], seed=3)["icc3k"]
    assert alone.value == rows["a"]["icc3k"].value  # the same sum, in the same order
    assert alone.low == pytest.approx(rows["a"]["icc3k"].low, abs=0.15 * width)


def test_patterns_with_equal_statistics_are_drawn_together() -> None:
    statistics = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    counts = np.array([3_000, 2_000, 1_000])
    few = fewer_rows(statistics, counts)
    np.testing.assert_array_equal(few[0], statistics)  # three are few enough
    wide = np.tile(statistics, (2_000, 1))
    rows, together = fewer_rows(wide, np.ones(6_000, dtype=np.int64))
    assert sorted(map(tuple, np.column_stack([rows, together]).tolist())) == [
        (1.0, 0.0, 4_000.0),
        (1.0, 1.0, 2_000.0),
    ]
    small, ones = wide[:EXACT_UP_TO], np.ones(EXACT_UP_TO, dtype=np.int64)
    np.testing.assert_array_equal(fewer_rows(small, ones)[0], small)
    spread = [
        resample_sums(*rows, np.full(4_000, 6_000), np.random.default_rng(0))[:, 1].std()
        for rows in ((rows, together), (wide, np.ones(6_000, dtype=np.int64)))
    ]
    assert spread == pytest.approx([np.sqrt(6_000 * 2 / 9)] * 2, rel=0.05)  # binomial, p = 1/3


def test_a_difference_of_many_patterns_is_drawn_by_sums() -> None:
    """Four options in four rotations: more joint patterns than can be drawn as such."""
    one, other = (simulated(6_000, 4, orders="cyclic", position=p, seed=2) for p in (0.9, 0.2))
    assert len(jointly((one, other))[0]) * 18 > 6_000
    gap = difference([one], [other], "rstd")
    assert gap.low > 0
    again = difference([one], [other], "rstd", seed=9)
    assert (again.low, again.high) == pytest.approx(
        (gap.low, gap.high), abs=0.2 * (gap.high - gap.low)
    )


def test_clusters_of_strata_are_told_apart() -> None:
    of_pairs = Clusters.of("aab")
    assert of_pairs is not None
    both = Clusters.of_strata([(3, of_pairs), (2, None)])
    assert both.of_item.tolist() == [0, 0, 1, 2, 3]
    assert Clusters.of_strata([(3, None), (2, None)]) is None
