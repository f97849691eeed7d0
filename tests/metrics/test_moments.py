"""Rows that stand for several items, and sums of very many items drawn from their normal law."""

from dataclasses import replace

import numpy as np
import pytest
from metric_builders import M, T, U, outcomes, simulated

from unswayed.base.errors import ShapeError
from unswayed.metrics import ImpossibleTableError, Outcomes, measure, self_check
from unswayed.metrics.moments import EXACT_UP_TO, effective_items, resampled_sums

QUICK = 60
DRAWN_UP_TO = "unswayed.metrics.resampling.EXACT_UP_TO"


def judged(items: int, n: int, *, seed: int, ties_from: int = 0) -> Outcomes:
    """Answers with refusals, failures, ties that say who is tied, several right ones, and items
    that may not be permuted; ties among the items from `ties_from` on only.
    """
    generator = np.random.default_rng(seed)
    own = simulated(items, n, orders="cyclic", position=0.6, seed=seed)
    choices, gold, kind = own.choices.copy(), own.gold.copy(), own.gold_kind.copy()
    for code, share in ((U, 0.03), (M, 0.02)):
        choices[generator.random(choices.shape) < share] = code
    tie = generator.random(choices.shape) < 0.1
    tie[:ties_from] = False
    choices[tie] = T
    tied = np.repeat(tie[:, :, None], n, axis=2)
    tied[:, :, -1] &= n == 2  # of more candidates the last one lost
    unknown = generator.random(items) < 0.1
    gold[unknown], kind[unknown] = False, 0
    declared = generator.random(items) < 0.05
    gold[declared], kind[declared] = False, 3
    return replace(
        own,
        choices=choices,
        gold=gold,
        gold_kind=kind,
        tied=tied if tie.any() else None,
        permutable=generator.random(items) > 0.05,
        groups=tuple(f"g{g}" for g in generator.integers(0, 3, items)),
        label_mass=generator.uniform(0.9, 1.0, choices.shape),
    )


def test_weights_are_items_written_out() -> None:
    rows = outcomes([[0, 0], [0, 1], [1, U]], gold=[0, 1, None])
    weights = np.array([3, 4, 2])
    written_out = rows.rows(np.repeat(np.arange(3), weights))
    row = measure([rows], weights=[weights], resamples=QUICK)
    assert row == measure([written_out], resamples=QUICK)
    assert (row["accuracy"].value, row["accuracy"].n) == ((3 + 4 / 2) / 7, 7)
    assert (row.beside.counts["items"], row.beside.counts["unparsed"]) == (9, 2)
    with pytest.raises(ShapeError, match="stands for no item"):
        measure([rows], weights=[np.array([3, 0, 2])])
    with pytest.raises(ShapeError, match="weights has shape"):
        measure([rows], weights=[np.array([3, 2])])


def test_weights_beside_probabilities_repeat_them() -> None:
    rows = judged(40, 2, seed=5)
    weights = np.random.default_rng(0).integers(1, 4, 40)
    written_out = rows.rows(np.repeat(np.arange(40), weights))
    assert measure([rows], weights=[weights], resamples=QUICK) == measure(
        [written_out], resamples=QUICK
    )


def test_the_self_check_counts_what_rows_stand_for() -> None:
    whole = judged(300, 2, seed=3)
    own = [whole.categorical().tally]
    self_check(measure(own, resamples=QUICK), own)
    kept = whole.rows(np.flatnonzero(whole.complete & (whole.gold_kind == 1)))
    others = [kept.categorical().tally]
    heavier = [replace(part, weights=part.weights + 1) for part in others]  # type: ignore[operator]
    with pytest.raises(ImpossibleTableError, match="but counting gives"):
        self_check(measure(others, resamples=0), heavier)


def test_drawn_items_and_sums_give_same_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = judged(2_500, 2, seed=7)
    row = measure([whole])
    monkeypatch.setattr(DRAWN_UP_TO, 0)
    sums = measure([whole])
    assert sums["score_sd"] != row["score_sd"]
    named = ("icc2k", "icc3k", "score_sd", "label_mass", "position_bias", "label_bias")
    assert {name: v for name, v in sums.values.items() if name not in named} == {
        name: v for name, v in row.values.items() if name not in named
    }
    for name in named:
        for own, wanted in zip(sums.values[name], row.values[name], strict=True):
            assert own.value == pytest.approx(wanted.value, abs=1e-12)
            width = wanted.high - wanted.low
            assert abs(own.low - wanted.low) < 0.15 * width, name
            assert abs(own.high - wanted.high) < 0.15 * width, name


def test_drawn_sums_have_the_mean_and_the_spread_of_drawn_items() -> None:
    statistics = np.column_stack([np.ones(100), np.arange(100.0)])
    draws = np.full(40_000, 50)
    sums = resampled_sums(statistics, draws, np.random.default_rng(0))[1]
    # 50 items of mean 49.5 and variance (100^2 - 1) / 12
    np.testing.assert_allclose(sums.mean(axis=0), [50.0, 50 * 49.5], rtol=2e-3)
    np.testing.assert_allclose(sums.std(axis=0), [0.0, (50 * 9999 / 12) ** 0.5], rtol=2e-2)


def test_effective_items_are_those_that_the_spread_comes_from() -> None:
    generator = np.random.default_rng(1)
    columns = np.ones((30_000, 4))
    columns[:, 1] = generator.normal(size=30_000)
    assert effective_items(columns) == pytest.approx(10_000, rel=0.1)
    columns[:, 2] = np.arange(30_000) < 40
    assert effective_items(columns) == pytest.approx(40, rel=0.01)
    columns[:, 2] = 0.1 + 0.2  # the sum of which has rounding
    assert effective_items(columns) == pytest.approx(10_000, rel=0.1)
    assert effective_items(np.ones((5, 2))) == np.inf


def test_where_few_of_many_items_differ_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The normal distribution is too bold there: see the coverage in docs/evidence/claims.md."""
    own = judged(EXACT_UP_TO + 1_000, 2, seed=2)
    assert own.probs is not None
    sure = np.zeros_like(own.probs)
    sure[..., 0], sure[..., 1] = 0.9, 0.1
    few, many = sure.copy(), sure.copy()
    few[:30, 1], many[:3_000, 1] = (0.2, 0.8), (0.2, 0.8)

    def measured() -> list[object]:
        judges = (replace(own, probs=probs) for probs in (few, many))
        return [measure([judge], names=["icc3k"], seed=4)["icc3k"] for judge in judges]

    before = measured()
    monkeypatch.setattr(DRAWN_UP_TO, len(own))
    assert [now == then for now, then in zip(measured(), before, strict=True)] == [True, False]
