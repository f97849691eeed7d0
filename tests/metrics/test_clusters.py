"""Items that are drawn together: worked numbers, and no change where every item is alone."""

from dataclasses import replace

import numpy as np
import pytest

from unswayed.metrics import difference, measure, measure_groups
from unswayed.metrics.gold import GOLD_ONE
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.simultaneous import contrasts
from unswayed.model.decisions.clusters import Clusters
from unswayed.model.presentation import canonical


def judged(right: list[int], clusters: list[int] | None, groups: str | None = None) -> Outcomes:
    """Two candidates, one presentation: right or wrong."""
    size = len(right)
    return Outcomes(
        item_ids=tuple(map(str, range(size))),
        groups=(None,) * size if groups is None else tuple(groups),
        shown=(canonical(2),),
        label_set=("A", "B"),
        choices=np.array([1 - own for own in right], dtype=np.int16)[:, None],
        gold=np.tile([True, False], (size, 1)),
        gold_kind=np.full(size, GOLD_ONE, dtype=np.int8),
        permutable=np.ones(size, dtype=np.bool_),
        clusters=None if clusters is None else Clusters.of(clusters),
    )


def test_unshared_names_form_no_clusters() -> None:
    assert Clusters.of(["a", "b", "c"]) is None
    clusters = Clusters.of(["a", "b", "a", "c"])
    assert (clusters.of_item.tolist(), clusters.count) == ([0, 1, 0, 2], 3)
    some = clusters.rows(np.array([3, 1]))
    assert (some.of_item.tolist(), some.count) == ([2, 1], 3)
    assert some.alone() is None


def test_sums_and_entries_by_hand() -> None:
    clusters = Clusters.of([0, 0, 1, 1])
    assert clusters.sums(np.array([[1.0], [2.0], [3.0], [4.0]])).tolist() == [[3.0], [7.0]]
    # equal sizes: the means of the clusters
    assert clusters.entries(np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [1.5, 3.5]
    # sizes 3 and 1: mean 2; deviations -3 and 3, times 2 clusters / 4 items
    uneven = Clusters.of([0, 0, 0, 1])
    assert uneven.entries(np.array([1.0, 1.0, 1.0, 5.0])).tolist() == [0.5, 3.5]


def test_copies_of_items_do_not_make_an_interval_narrower() -> None:
    draw = np.random.default_rng(2)
    right = draw.integers(0, 2, 50).tolist()
    single = measure([judged(right, None)], names=["accuracy"])["accuracy"]
    tripled = [own for own in right for _ in range(3)]
    of_item = [item for item in range(50) for _ in range(3)]
    together = measure([judged(tripled, of_item)], names=["accuracy"])["accuracy"]
    apart = measure([judged(tripled, None)], names=["accuracy"])["accuracy"]
    assert together.value == apart.value == single.value
    assert (together.n, single.n) == (150, 50)
    width, alone, naive = (e.high - e.low for e in (together, single, apart))
    assert width == pytest.approx(alone, rel=0.08)
    assert naive < 0.65 * alone  # 1 / sqrt(3), and the error of resampling


def test_items_that_are_all_alike_count_as_their_clusters() -> None:
    of_item = [item for item in range(20) for _ in range(3)]
    together = measure([judged([1] * 60, of_item)], names=["accuracy"])["accuracy"]
    assert together.low == pytest.approx(0.025 ** (1 / 20))  # 20 independent items, not 60


def test_differences_of_copies_are_those_of_the_items() -> None:
    draw = np.random.default_rng(3)
    a, b = (draw.integers(0, 2, 40).tolist() for _ in range(2))
    of_item = [item for item in range(40) for _ in range(2)]
    copies = [[own for own in side for _ in range(2)] for side in (a, b)]
    single = difference([judged(a, None)], [judged(b, None)], "accuracy")
    left, right = (judged(side, of_item) for side in copies)
    together = difference([left], [right], "accuracy")
    assert (together.value, together.low, together.high) == pytest.approx(
        (single.value, single.low, single.high)
    )
    assert (single.n, together.n) == (40, 80)
    joint = contrasts({"a": [left], "b": [right]}, "accuracy", seed=1)
    alone = contrasts({"a": [judged(a, None)], "b": [judged(b, None)]}, "accuracy", seed=1)
    ends = [(own.low, own.high) for own in (c.against("a")["b"] for c in (joint, alone))]
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)


def test_groups_that_share_clusters_are_drawn_together() -> None:
    draw = np.random.default_rng(4)
    right = draw.integers(0, 2, 60).tolist()
    of_item = [item for item in range(60) for _ in range(3)]
    copies = judged([own for own in right for _ in range(3)], of_item, "xyz" * 60)
    _, macro = measure_groups([copies], names=["accuracy"])
    single = measure([judged(right, None)], names=["accuracy"])["accuracy"]
    own = macro["accuracy"]
    # three groups that agree are as uncertain as one: independent draws would give 1/sqrt(3)
    assert own.high - own.low == pytest.approx(single.high - single.low, rel=0.1)


def test_clusters_within_groups_are_drawn_within_them() -> None:
    of_item = [item // 2 for item in range(80)]
    grouped = judged([item % 3 > 0 for item in range(80)], of_item, "x" * 40 + "y" * 40)
    rows, _ = measure_groups([grouped], names=["accuracy"])
    alone = grouped.rows(np.arange(40))
    clusters = alone.clusters
    only = measure([replace(alone, clusters=clusters.alone())], names=["accuracy"])["accuracy"]
    assert rows["x"]["accuracy"].value == only.value
    assert rows["x"]["accuracy"].low == pytest.approx(only.low, abs=0.03)
