"""Intervals where few items differ, against numbers by hand, and the identities that they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from metric_builders import SWAP, M, by_letter, outcomes, simulated

from unswayed.metrics import METRICS, Outcomes, difference, measure, measure_groups
from unswayed.metrics.resampling import Bootstrapped
from unswayed.metrics.uncertainty import TOO_FEW, paired_difference
from unswayed.model.decisions import MISSING, UNPARSED, Estimate
from unswayed.model.decisions.clusters import Clusters
from unswayed.model.presentation import X0, X1, X2, X3, presentations

NEVER = 1 - 0.025 ** (1 / 20)
"""Share of items that 20 alike ones leave open."""


def cell(name: str, made: Outcomes, resamples: int = 100) -> Estimate:
    return measure([made], names=[name], resamples=resamples).values[name][0]


def ends(estimate: Estimate) -> tuple[float, float]:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def judged(letters: Sequence[str], gold: Sequence[int] | None = None) -> Outcomes:
    return outcomes([by_letter(own, SWAP) for own in letters], gold=gold)


def mixed(seed: int, n: int = 2, items: int = 60) -> Outcomes:
    """Random answers of every kind, under every presentation."""
    draw = np.random.default_rng(seed)
    shown = presentations("swap" if n == 2 else "cyclic", n)
    choices = draw.integers(-2, n, (items, len(shown)))
    return outcomes(choices.tolist(), shown=shown, gold=draw.integers(0, n, items).tolist())


def test_position_effect_by_hand() -> None:
    # 2f - 1: always A 1; kept 0; A and a tie (1 + 1/2)/2 -> 1/2; an unread side: none
    made = judged(["AA", "AB", "A=", "B?", "??"])
    found = cell("position_effect", made)
    assert (found.value, found.n) == (0.5, 3)
    by_hand = paired_difference(np.array([1, 0, 0.5]), np.ones(3, np.int64), span=1.0)
    assert ends(found) == pytest.approx(ends(by_hand), abs=1e-12)


@pytest.mark.parametrize("lacking", [UNPARSED, MISSING])
def test_place_takes_nothing_from_items_read_in_one_order(lacking: int) -> None:
    # the better answer stands first where one order is read alone: no pull of the place
    made = outcomes([[0, 0], [1, 1], *[[0, lacking]] * 30], shown=SWAP)
    found = cell("position_effect", made)
    assert (found.value, found.n) == (0.0, 2)
    if lacking == MISSING:
        shares = measure([made], names=["position_rate"], resamples=0).values["position_rate"]
        assert [(share.value, share.n) for share in shares] == [(0.5, 4), (0.5, 4)]


def test_position_effect_takes_items_read_evenly() -> None:
    # X0 and X3 show candidate 0 first, X1 and X2 the other one
    half, odd, kept = [0, UNPARSED, UNPARSED, 1], [0, 0, UNPARSED, 1], [0, 0, 0, 0]
    found = cell("position_effect", outcomes([half, odd, kept], shown=(X0, X3, X1, X2)))
    assert (found.value, found.n) == (0.5, 2)


def test_position_effect_reads_positions_not_labels() -> None:
    # the order moves and each candidate keeps its label: the first one always wins
    made = outcomes([[0, 1]] * 3, shown=(X0, presentations("swap", 2, protocol="order")[1]))
    assert cell("position_effect", made).value == 1.0
    assert cell("label_rate", made).value == 0.5
    # the label moves and the order stays: which answer is the better one
    still = (X0, presentations("swap", 2, protocol="label")[1])
    assert cell("position_effect", outcomes([[0, 0]] * 3, shown=still)).value is None


def test_position_effect_needs_two_candidates() -> None:
    assert "position_effect" not in measure([mixed(1, n=3)], resamples=0).values


@pytest.mark.parametrize("name", ["position_effect", "recall_difference"])
def test_places_turned_round_turn_the_effect_round(name: str) -> None:
    made = mixed(3)
    # the same verdicts, had each candidate stood at the other place
    turned = replace(made, shown=made.shown[::-1])
    found, mirrored = cell(name, made), cell(name, turned)
    assert found.value == pytest.approx(-(mirrored.value or 0.0))
    low, high = ends(mirrored)
    assert ends(found) == pytest.approx((-high, -low), abs=1e-12)


@pytest.mark.parametrize(
    ("letters", "low", "high"),
    [
        ("AB", 0.5 - NEVER / 2, 0.5 + NEVER / 2),  # all items kept their answer: 1/n
        ("AA", 1 - NEVER, 1.0),  # none did: what was not seen can lie at 0
        ("BB", 0.0, NEVER),
    ],
)
def test_shares_of_items_all_alike(letters: str, low: float, high: float) -> None:
    assert ends(cell("position_rate", judged([letters] * 20))) == pytest.approx((low, high))


def test_shares_by_hand() -> None:
    # 19 kept, one always first: R = 21/40; residuals (f - 2R)/2 of -.025 (19) and .475; from an even share 0 and .5
    found = cell("position_rate", judged(["AB"] * 19 + ["AA"]))
    apart = paired_difference(np.array([0.0] * 19 + [0.5]), np.ones(20, np.int64), span=1.0)
    low, high = ends(apart)
    assert ends(found) == pytest.approx((0.5 + low, 0.5 + high), abs=1e-12)


@pytest.mark.parametrize("count", [2, 3, 6, 40])
def test_shares_of_two_candidates_follow_the_effect(count: int) -> None:
    pairs = ["AA", "AB", "AA", "BB", "AA", "AA"] * count
    units = Clusters(np.arange(len(pairs)) % count, count)  # a few questions, each with six items
    made = replace(judged(pairs), clusters=units)
    low, high = ends(cell("position_effect", made))
    assert ends(cell("position_rate", made)) == pytest.approx(((1 + low) / 2, (1 + high) / 2))


def test_shares_leave_out_ties_of_their_items() -> None:
    # choices 2, 1 and 0: R = 2/3, mean of p 3/2 over the two that chose
    found = cell("position_rate", judged(["AB", "A=", "=="]))
    residuals = np.array([1 - 4 / 3, 1 - 2 / 3]) / 1.5
    apart = paired_difference(2 / 3 - 1 / 2 + residuals, np.ones(2, int), span=1.0)
    assert found.value == pytest.approx(2 / 3)
    low, high = ends(apart)
    assert ends(found) == pytest.approx((max(1 / 2 + low, 0), min(1 / 2 + high, 1)), abs=1e-12)


def test_shares_of_positions_and_primacy_have_the_same_interval() -> None:
    made = mixed(4, n=3)
    low, high = ends(cell("position_rate", made))
    assert ends(cell("primacy", made)) == pytest.approx((low - 1 / 3, high - 1 / 3))


@pytest.mark.parametrize("seed", range(5))
def test_rstd_is_half_the_recall_difference(seed: int) -> None:
    # ties and unread answers are misses; every order of both candidates has the gold under A once
    made = mixed(seed)
    signed, spread = cell("recall_difference", made), cell("rstd", made)
    assert spread.value == pytest.approx(abs(signed.value or 0.0) / 2, abs=1e-12)
    low, high = ends(signed)
    nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    assert ends(spread) == pytest.approx((nearest / 2, max(abs(low), abs(high)) / 2), abs=1e-12)


def test_rstd_is_half_the_recall_difference_in_four_orders() -> None:
    draw = np.random.default_rng(8)
    shown = (X0, X1, X2, presentations("swap", 2, protocol="label")[1])
    made = outcomes(draw.integers(-2, 2, (50, 4)).tolist(), shown=shown)
    signed = cell("recall_difference", made).value or 0.0
    assert cell("rstd", made).value == pytest.approx(abs(signed) / 2, abs=1e-12)


def test_with_failed_calls_rstd_counts_calls_not_items() -> None:
    # gold is candidate 0: right under A 2 of 3 calls, under B 1 of 2; both of an item: -1 and 1
    made = outcomes([[1, 0], [0, 1], [0, M]])
    assert cell("rstd", made).value == pytest.approx((2 / 3 - 1 / 2) / 2)
    signed = cell("recall_difference", made)
    assert (signed.value, signed.n) == (0.0, 2)
    # entries of each item: -1/18 + its share of both recalls' residuals
    entries = [
        1 / 6 + (-2 / 3) - (1 - 1 / 2) * 1.5,
        1 / 6 + 1 / 3 - (0 - 1 / 2) * 1.5,
        1 / 6 + 1 / 3,
    ]
    by_hand = paired_difference(np.array(entries), np.ones(3, int), span=1.0)
    assert by_hand.value == pytest.approx(1 / 6)
    low, high = ends(by_hand)
    assert low < 0 < high
    assert ends(cell("rstd", made)) == pytest.approx((0, max(-low, high) / 2))


def test_rstd_of_more_candidates_keeps_its_resamples() -> None:
    made = mixed(6, n=3)
    seeded = [measure([made], names=["rstd"], seed=seed)["rstd"] for seed in (0, 1)]
    assert seeded[0].high != seeded[1].high
    pair = [measure([mixed(6)], names=["rstd"], seed=seed)["rstd"] for seed in (0, 1)]
    assert pair[0] == pair[1]


@pytest.mark.parametrize("place", [0.0, 0.4])
def test_sizes_cover_the_truth_of_four_labels(place: float) -> None:
    # errors add to the size of a difference: quantiles of resamples exclude 0 in every round
    def asked(seed: int, items: int) -> Outcomes:
        return simulated(items, 4, orders="cyclic", position=place, seed=seed)

    whole = measure([asked(0, 40_000)], names=["rstd", "ckld"], resamples=0)
    held = dict.fromkeys(("rstd", "ckld"), 0)
    for seed in range(1, 31):
        row = measure([asked(seed, 100)], names=list(held), resamples=200)
        for name in held:
            low, high = ends(row[name])
            held[name] += low <= (whole[name].value or 0.0) * (place > 0) <= high
    assert min(held.values()) >= 27


@pytest.mark.parametrize(
    ("value", "high", "power", "low"),
    [(5.0, 7.0, 1, 3.0), (5.0, 7.0, 2, 1.0), (3.0, 5.0, 2, 0.0)],  # 1 = 2 * 25 - 49
)
def test_low_end_of_a_size_mirrors_its_high_end(
    value: float, high: float, power: int, low: float
) -> None:
    samples = np.array([[value]] * 10 + [[high]] * 10)
    made = Bootstrapped(np.array([value]), samples, 20, 20, None, "", inflated=power)
    assert ends(made.estimates[0]) == pytest.approx((low, high))


def test_macro_average_of_sizes_has_no_interval() -> None:
    made = replace(mixed(9, n=3), groups=("a", "b") * 30)
    _, macro = measure_groups([made], names=["rstd", "accuracy"], resamples=50)
    assert (macro["rstd"].low, macro["rstd"].high) == (None, None)
    assert macro["rstd"].value is not None
    assert macro["accuracy"].low is not None


def test_ckld_has_no_interval_below_ten_items_that_differ() -> None:
    few, enough = judged(["AB"] * 40 + ["AA"] * 9), judged(["AB"] * 40 + ["AA"] * 10)
    for name in ("ckld", "ckld_raw"):
        found = cell(name, few)
        assert found.value is not None
        assert (found.low, found.high, found.reason) == (None, None, TOO_FEW)
        assert cell(name, enough).reason is None
        low, high = ends(cell(name, enough))
        assert low < high


def scored(first: np.ndarray) -> Outcomes:
    probs = np.stack([first, 1 - first], axis=2)
    return outcomes(probs.argmax(axis=2).tolist(), probs=probs)


def test_icc_has_the_jackknife_of_its_logarithm() -> None:
    from scipy.stats import t

    draw = np.random.default_rng(2)
    scores = np.clip(draw.uniform(0.1, 0.9, (30, 1)) + draw.normal(0, 0.05, (30, 2)), 0.01, 0.99)
    for name in ("icc2k", "icc3k"):
        kept = [np.delete(scores, row, axis=0) for row in range(30)]
        without = [cell(name, scored(part), 0).value for part in kept]
        logs = np.log(1 - np.array(without, dtype=float))
        error = (29 / 30 * ((logs - logs.mean()) ** 2).sum()) ** 0.5
        found = cell(name, scored(scores))
        reach = t.ppf(0.975, 29) * error
        centre = np.log(1 - found.value)
        wanted = 1 - np.exp(centre + reach), 1 - np.exp(centre - reach)
        assert ends(found) == pytest.approx(wanted, abs=1e-9)


def test_icc_without_spread_has_no_interval_and_a_reason() -> None:
    alike = scored(np.repeat(np.linspace(0.1, 0.9, 12)[:, None], 2, axis=1))
    found = cell("icc3k", alike)
    assert found.value == pytest.approx(1.0)
    assert (found.low, found.high, found.reason) == (None, None, TOO_FEW)


@pytest.mark.parametrize("name", ["position_rate", "position_effect", "rstd", "icc2k", "icc3k"])
def test_copies_of_a_question_say_nothing_new(name: str) -> None:
    single = simulated(60, 2, orders="swap", position=0.5, seed=1)
    rows = np.repeat(np.arange(60), 4)
    copies = replace(single.rows(rows), item_ids=tuple(map(str, range(240))))
    units = replace(copies, clusters=Clusters.of(rows.tolist()))
    narrow, wide, once = cell(name, copies), cell(name, units), cell(name, single)
    slack = 0.05 if name.startswith("icc") else 1e-9  # degrees of freedom of the mean squares
    assert wide.value == pytest.approx(once.value, abs=slack)
    assert narrow.high - narrow.low < 0.7 * (wide.high - wide.low)  # type: ignore[operator]
    assert ends(wide) == pytest.approx(ends(once), abs=slack)


@pytest.mark.parametrize("name", ["rstd", "ckld", "icc2k", "icc3k", "position_effect"])
def test_what_has_no_interval_of_a_difference_is_not_compared(name: str) -> None:
    assert METRICS.load(name).compared == "no"


def test_two_judges_differ_in_recall_with_a_sign() -> None:
    # one finds gold under A, the other under B: their RStd are the same
    first = judged(["AA"] * 15 + ["AB"] * 15)
    last = judged(["BB"] * 15 + ["AB"] * 15)
    assert cell("rstd", first).value == cell("rstd", last).value == 0.25
    apart = difference([first], [last], "recall_difference")
    assert apart.value == 1.0
    assert apart.low > 0.5


def test_an_interval_holds_its_value_whatever_the_answers() -> None:
    for seed in range(8):
        for n in (2, 3):
            row = measure([mixed(seed, n=n, items=12)], resamples=50)
            for name, values in row.values.items():
                for found in values:
                    if found.value is None or found.low is None or found.high is None:
                        assert found.reason, name
                    else:
                        assert found.low <= found.value <= found.high, name


@pytest.mark.parametrize(("orders", "said"), [("cyclic", True), ("uneven", False)])
def test_shares_hold_by_construction_in_even_orders_only(orders: str, said: bool) -> None:
    shown = presentations("cyclic", 4)
    if orders == "uneven":  # candidates 0 and 2 change places, 1 and 3 stay
        shown = (shown[0], shown[0]._replace(order=(2, 1, 0, 3)))
    made = outcomes([[own] * len(shown) for own in (0, 1, 1, 3)], shown=shown)
    row = measure([made], names=["position_rate", "rstd", "consistency"], constructed=True)
    assert row.values["position_rate"][0].by_construction is said
    assert row["rstd"].by_construction is said
    assert row["consistency"].by_construction is True
    assert (row.values["position_rate"][1].value == 0.25) is said
