"""Intervals that hold for all methods at once."""

import numpy as np
import pytest
from metric_builders import outcomes

from unswayed.base.errors import ShapeError
from unswayed.metrics import difference
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.simultaneous import Contrasts, contrasts
from unswayed.model.decisions import Estimate
from unswayed.model.decisions.clusters import Clusters


def rights(share: float, items: int, seed: int) -> Outcomes:
    right = np.random.default_rng(seed).random((items, 2)) < share
    return outcomes(np.where(right, 0, 1).tolist(), gold=[0] * items)


FAMILY = {name: [rights(0.7, 300, seed)] for seed, name in enumerate(["direct", *"abcdefgh"])}


def test_one_pair_has_the_interval_of_one_pair() -> None:
    two = {name: FAMILY[name] for name in ("direct", "a")}
    together = contrasts(two, "accuracy").against("direct")["a"]
    alone = difference(two["a"], two["direct"], "accuracy")
    assert together.value == alone.value
    assert together.low == pytest.approx(alone.low, abs=5e-4)
    assert together.high == pytest.approx(alone.high, abs=5e-4)


def test_more_methods_widen_the_intervals_whatever_the_base() -> None:
    made = contrasts(FAMILY, "accuracy")

    def half(first: str, second: str) -> float:
        found = made.against(second)[first]
        alone = difference(FAMILY[first], FAMILY[second], "accuracy")
        return (found.high - found.low) / (alone.high - alone.low)  # type: ignore[operator]

    # eight differences that share a method: 2.7 over 1.96
    assert half("a", "direct") == pytest.approx(2.69 / 1.96, abs=0.04)
    assert half("a", "b") == pytest.approx(2.69 / 1.96, abs=0.04)


def test_copies_of_a_method_cost_nothing() -> None:
    copies = {"direct": FAMILY["direct"], **{f"a{k}": FAMILY["a"] for k in range(9)}}
    one = contrasts({"direct": FAMILY["direct"], "a0": FAMILY["a"]}, "accuracy")
    many = contrasts(copies, "accuracy").against("direct")["a0"]
    assert many.low == pytest.approx(one.against("direct")["a0"].low, abs=1e-3)
    same = contrasts(copies, "accuracy").against("a1")["a0"]
    assert same.value == 0.0
    assert same.high == pytest.approx(1 - 0.025 ** (1 / 300))


@pytest.mark.parametrize("items", [60, 400, 3_000])
def test_nor_do_they_widen_the_other_pairs(items: int) -> None:
    """Rounding between two copies is no third difference."""
    for seed in range(5):
        three = {name: [rights(0.7, items, 3 * seed + k)] for k, name in enumerate("abc")}
        four = {**three, "copy": three["c"]}
        one = contrasts(three, "accuracy").against("c")["b"]
        many = contrasts(four, "accuracy").against("c")["b"]
        width, wider = one.high - one.value, many.high - many.value  # type: ignore[operator]
        assert wider == pytest.approx(width, rel=0.02)


def test_turned_round_the_interval_is_turned_round_exactly() -> None:
    made = contrasts(FAMILY, "accuracy")
    for first, second in (("a", "direct"), ("b", "c")):
        one, other = made.difference(first, second, 2.5), made.difference(second, first, 2.5)
        assert (one.value, one.low, one.high) == (
            -other.value,  # type: ignore[operator]
            -other.high,  # type: ignore[operator]
            -other.low,  # type: ignore[operator]
        )


def test_methods_need_the_same_items_and_a_mean() -> None:
    with pytest.raises(ShapeError, match="same items"):
        contrasts({"direct": FAMILY["direct"], "a": [rights(0.7, 20, 1)]}, "accuracy")
    with pytest.raises(ShapeError, match="is not a mean over items"):
        contrasts(FAMILY, "rstd")


def test_one_sided_intervals_are_narrower_above_the_floor() -> None:
    made = contrasts(FAMILY, "accuracy")
    assert made.critical("direct", one_sided=True) == pytest.approx(2.35, abs=0.04)
    assert made.critical("direct") == pytest.approx(2.67, abs=0.04)
    two = contrasts({name: FAMILY[name] for name in ("direct", "a")}, "accuracy")
    assert two.critical("direct", one_sided=True) == pytest.approx(1.645, abs=0.03)
    assert two.critical("direct", one_sided=True) >= 1.6448
    assert two.critical("direct") >= 1.9599
    low, wide = (made.against("direct", one_sided=one)["a"].low for one in (True, False))
    assert low > wide


@pytest.mark.filterwarnings("error")
def test_an_item_that_one_method_lacks_counts_for_none() -> None:
    gaps = outcomes([[0, 0]] * 300, gold=[None] * 40 + [0] * 260)
    made = contrasts({**FAMILY, "gaps": [gaps]}, "accuracy")
    assert (made.items, made.units, made.values.shape) == (260, 260, (260, 10))
    whole = {name: [own.rows(np.arange(40, 300))] for name, (own,) in FAMILY.items()}
    rest = contrasts(whole, "accuracy")
    for gap in (made.difference("a", "direct"), rest.difference("a", "direct")):
        assert gap.n == 260
    assert made.difference("a", "direct") == rest.difference("a", "direct")
    assert made.spread("a", "b") == pytest.approx(rest.spread("a", "b"))


@pytest.mark.filterwarnings("error")
def test_difference_needs_common_items() -> None:
    silent = outcomes([[0, 0]] * 300, gold=[None] * 300)
    made = contrasts({**FAMILY, "silent": [silent]}, "accuracy")
    assert made.items == 0
    assert {gap.value for gap in made.against("direct").values()} == {None}


def test_items_of_a_cluster_are_one_unit() -> None:
    values = np.repeat(np.random.default_rng(3).random((50, 2)), 4, axis=0)
    made = Contrasts(values, ("a", "b"), clusters=Clusters.of(np.repeat(range(50), 4).tolist()))
    once = Contrasts(values[::4], ("a", "b"))
    assert (made.items, made.units) == (200, 50)
    for gap, other in ((made.difference("a", "b"), once.difference("a", "b")),):
        assert gap.low == pytest.approx(other.low)
    assert made.spread("a", "b") == pytest.approx(once.spread("a", "b"))


def test_a_difference_turned_round_keeps_its_joint_interval() -> None:
    gap = Estimate(value=0.1, low=-0.1, high=0.3, n=7, joint=(-0.2, 0.4))
    turned = Estimate(value=-0.1, low=-0.3, high=0.1, n=7, joint=(-0.4, 0.2))
    assert gap.negated() == turned
    assert turned.negated() == gap
    assert Estimate(value=None, reason="none").negated().value is None
