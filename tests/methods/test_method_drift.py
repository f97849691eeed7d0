"""Drift: a judge that stayed the same passes, a judge that changed is noticed."""

from __future__ import annotations

from functools import cache

import pytest
from simulated_judges import decision, decisions_of, fit, pairs

from claim_rates.drift import alarms
from unswayed.base.errors import MethodError
from unswayed.methods.drift import drift
from unswayed.methods.names import parse_method
from unswayed.methods.protocol import Method
from unswayed.model.decisions import Decision

SPECS = ("pride", "cell-median", "additive", "calibraeval:resamples=60", "batch")


def tables(spec: str, count: int, **planted: float):
    table = pairs(count, **planted).table  # type: ignore[arg-type]
    method = parse_method(spec)
    asks = list(dict.fromkeys(ask for _, ask in method.plan_fit(table.items)))
    return {2: table.select(asks)}


@cache
def fitted(spec: str) -> Method:
    return fit(spec, pairs(200, seed=1).table)


@pytest.mark.parametrize("spec", SPECS)
def test_a_judge_that_changed_is_noticed(spec: str) -> None:
    found = drift(fitted(spec), tables(spec, 100, seed=2, label=1.6, slot=1.2), resamples=60)
    assert any(entry.moved for entry in found)
    moved = next(entry for entry in found if entry.moved)
    assert "moved" in str(moved)
    assert moved.fresh.low is not None
    assert moved.fresh.high is not None


def test_all_the_numbers_of_a_file_are_one_test() -> None:
    # 16 priors of groups and 2 of all: each at 5% of its own raised an alarm in every third check
    found = list(alarms("pride:prior=group", 2, 8, asked=200, trials=10, resamples=40))
    assert len(found) == 10
    assert sum(found) <= 2  # 38% of 10 are 4


@pytest.mark.parametrize("spec", ["pride", "cell-median", "additive", "batch"])
def test_a_judge_that_stayed_the_same_mostly_passes(spec: str) -> None:
    assert sum(alarms(spec, 2, 1, asked=60, trials=8, resamples=40)) <= 2


def test_distance_of_number_is_in_units_of_chance() -> None:
    entry = drift(fitted("pride"), tables("pride", 100, seed=2))[0]
    assert entry.moved == (entry.score > 1)
    same = drift(fitted("pride"), tables("pride", 200, seed=1))[0]  # the very items of the fit
    assert same.score == pytest.approx(0, abs=1e-6)


def test_it_reads_decisions_and_leaves_the_method_alone() -> None:
    method = fitted("pride")
    table = tables("pride", 40, seed=3)[2]
    decisions = decisions_of(table)
    before = method.estimates()
    found = drift(method, method.estimation_tables(table.items, decisions), resamples=30)
    assert [entry.name for entry in found] == list(before)
    assert method.estimates() == before


def test_content_free_answers_have_no_interval_and_no_alarm() -> None:
    method = parse_method("contextual")
    item = pairs(1).table.items[0]

    def answers(p_a: float) -> list[Decision]:
        return [decision(item.id, ask, p_a=p_a) for _, ask in method.plan_fit([item])]

    fitted_once = method.fit([item], answers(0.7))
    found = drift(fitted_once, fitted_once.estimation_tables([item], answers(0.71)))
    assert found
    assert not any(entry.moved for entry in found)
    assert "(no interval)" in str(found[0])


def test_nothing_to_compare_is_an_error() -> None:
    method = fitted("pride")
    with pytest.raises(MethodError, match="nothing to compare"):
        drift(method, {}, resamples=2)
