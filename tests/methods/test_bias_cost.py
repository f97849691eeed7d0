"""The order of levels in which a liking for positions shows least."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from unswayed.auditing.settings import AuditSettings
from unswayed.audits import audit_calls
from unswayed.backends import BackendSettings
from unswayed.backends.simulated import simulated_items
from unswayed.base.errors import MethodError, UsageError
from unswayed.methods.bias_cost import (
    BiasCost,
    Probe,
    bias_cost,
    cheapest,
    cheapest_of_all,
    position_shares,
)
from unswayed.methods.drift import drift
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.fitted_file import from_json, to_json
from unswayed.model.decisions import DecisionTable, FloatArray
from unswayed.model.items import Item, Task, blind
from unswayed.model.permutations import balanced
from unswayed.model.presentation import Ask, Presentation, canonical, content_order, settled

WORKED = np.array(
    [
        (6, 2, 2, 2, 8),
        (5, 3, 2, 3, 7),
        (9, 4, 3, 2, 2),
        (4, 4, 4, 4, 4),
        (3, 3, 3, 3, 8),
    ],
    dtype=float,
)
"""Choices by level and position of the specification, B13; every level was chosen 20 times."""
SHOWN = np.full((5, 5), 40.0)
SHARES = position_shares(WORKED, SHOWN)


def order(*levels: int) -> tuple[int, ...]:
    """An order written with levels from 1."""
    return tuple(level - 1 for level in levels)


def test_shares_are_choices_at_a_position_per_level() -> None:
    np.testing.assert_allclose(SHARES, WORKED / 20)


def test_the_worked_costs() -> None:
    # .10 + .05 + .05 + 0 + .20
    assert bias_cost(SHARES, order(1, 2, 3, 4, 5)) == pytest.approx(0.40)
    best = cheapest(SHARES, balanced(5))
    assert bias_cost(SHARES, best) == pytest.approx(0.30)
    tied = [o for o in balanced(5) if bias_cost(SHARES, o) < 0.30 + 1e-9]
    assert order(2, 3, 4, 5, 1) in tied
    assert best == min(tied)
    exact = cheapest_of_all(SHARES)
    assert bias_cost(SHARES, exact) == pytest.approx(0.20)
    optima = [o for o in itertools.permutations(range(5)) if bias_cost(SHARES, o) < 0.20 + 1e-9]
    assert len(optima) == 4
    assert {order(1, 3, 5, 2, 4), order(2, 3, 1, 5, 4)} <= set(optima)
    assert exact == min(optima)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_the_assignment_finds_what_trying_all_orders_does(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        counts = rng.integers(0, 4, (n, n)).astype(float)  # many ties
        shares = position_shares(counts, np.full((n, n), 8.0))
        costs = {o: bias_cost(shares, o) for o in itertools.permutations(range(n))}
        least = min(costs.values())
        assert cheapest_of_all(shares) == min(o for o, c in costs.items() if c < least + 1e-9)


def test_rates_take_the_place_of_counts_where_exposure_differs() -> None:
    # level 1: 6 of 12 at the first position, 3 of 12 at the second: 2 to 1, as 6 to 3;
    # level 2: 2 of 4 and 4 of 16: 1/2 to 1/4, though 2 are fewer than 4
    shares = position_shares(
        np.array([[6.0, 3.0], [2.0, 4.0]]), np.array([[12.0, 12.0], [4.0, 16.0]])
    )
    np.testing.assert_allclose(shares, [[2 / 3, 1 / 3], [2 / 3, 1 / 3]])


def test_added_answers_pull_shares_towards_even() -> None:
    shares = position_shares(WORKED, SHOWN, added=0.2)
    np.testing.assert_allclose(shares, (WORKED + 0.2) / 21)


def test_a_level_never_chosen_or_not_shown_everywhere_is_even() -> None:
    chosen = np.array([[3.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(position_shares(chosen, np.full((2, 2), 4.0))[1], [0.5, 0.5])
    shown = np.array([[4.0, 0.0], [4.0, 4.0]])
    np.testing.assert_allclose(position_shares(np.ones((2, 2)), shown)[0], [0.5, 0.5])


def first_position(item: Item, ask: Ask) -> int:
    return ask.presentation.order[0]


def probed(
    method: BiasCost, count: int, n: int, judge: Any = first_position, **changed: Any
) -> tuple[dict[int, DecisionTable], list[Item]]:
    """A probe of items whose levels are listed in ascending order."""
    items = [
        msgspec.structs.replace(blind(item), **changed)
        for item in simulated_items(count, n, seed=n, task=Task.RUBRIC)
    ]
    asks = method.estimation_asks(n)
    empty = DecisionTable.of(items, [], asks=asks)
    choices = np.array([[judge(item, ask) for ask in asks] for item in items], dtype=np.int16)
    return {n: replace(empty, choices=choices)}, items


def probe_of(method: BiasCost) -> Probe:
    assert method.probes
    return method.probes[0]


@pytest.mark.parametrize("n", [2, 5, 7, 10])
def test_a_first_position_judge_costs_the_same_in_every_order(n: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        probe = probe_of(BiasCost(resamples=0).fit_tables(probed(BiasCost(), 60, n)[0]))
    # every level is chosen only when it is first: N = 60 or 120 times, 1/n more per position
    times = 60 * len(balanced(n)) / n
    first, other = (times + 1 / n) / (times + 1), (1 / n) / (times + 1)
    np.testing.assert_allclose(probe.shares[:, 0], first)
    expected = abs(first - 1 / n) + (n - 1) * abs(other - 1 / n)
    np.testing.assert_allclose(probe.costs, expected)
    assert probe.order == tuple(range(n))  # equal costs: the usual scale
    assert probe.count == 60


@pytest.mark.parametrize("search", ["balanced", "all"])
def test_it_finds_the_order_of_evenly_chosen_positions(search: Any) -> None:
    # level 1 is chosen by every item whenever it stands in the first two positions, else level 3
    def judge(item: Item, ask: Ask) -> int:
        return 0 if ask.presentation.position_of_candidate(0) < 2 else 2

    method = BiasCost(search=search, resamples=0)
    with pytest.warns(MethodWarning, match=r"the probe does not cover 2, 4, 5"):
        probe = probe_of(method.fit_tables(probed(method, 50, 5, judge)[0]))
    assert probe.unknown == (1, 3, 4)
    np.testing.assert_allclose(probe.shares[[1, 3, 4]], 0.2)
    assert probe.cost == pytest.approx(bias_cost(probe.shares, probe.order))
    assert probe.cost <= min(probe.costs) + 1e-12


def test_levels_are_told_apart_by_value_however_items_list_them() -> None:
    # the same judge: names the highest level where it is first or second, else the lowest
    def judge(item: Item, ask: Ask) -> int:
        values = item.values or ()
        top, bottom = values.index(max(values)), values.index(min(values))
        return top if ask.presentation.position_of_candidate(top) < 2 else bottom

    method = BiasCost(resamples=0)
    probes = []
    for moved in ((0, 1, 2, 3, 4), (2, 0, 4, 1, 3)):
        values = tuple(float(c + 1) for c in moved)
        tables, _ = probed(method, 50, 5, judge, values=values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            probes.append(probe_of(method.fit_tables(tables)))
    # other neighbours, so that the lowest stands elsewhere; the top level is seen alike
    assert probes[0].chosen[4] == probes[1].chosen[4] == (100, 100, 0, 0, 0)
    assert probes[0].shown == probes[1].shown


def test_unread_answers_change_rates_not_shares() -> None:
    def judge(item: Item, ask: Ask) -> int:
        if ask.presentation.order == (0, 1, 2, 3, 4):
            return -1  # unparsed
        return ask.presentation.order[0]

    probe = probe_of(BiasCost(resamples=0).fit_tables(probed(BiasCost(), 60, 5, judge)[0]))
    assert probe.chosen[0] == (60, 0, 0, 0, 0)
    assert probe.shown[0] == (60, 120, 120, 120, 120)
    # 60 of 60: the mean exposure 108 stands for it; .2 more per position, 1 in all
    assert probe.shares[0, 0] == pytest.approx(108.2 / 109)
    assert probe.shares[1, 0] == pytest.approx((0.2 + 120 * 108 / 120) / 109)


SCALE = Item(
    id="q",
    task=Task.RUBRIC,
    prompt="?",
    response="r",
    candidates=("e", "a", "d", "b", "c"),
    values=(5.0, 1.0, 4.0, 2.0, 3.0),
)


def test_a_fitted_method_asks_one_order_counted_by_value() -> None:
    fitted = BiasCost(probes=(_probe(order(3, 4, 5, 1, 2), EVEN),))
    (ask,) = fitted.asks(5)
    assert ask == Ask(Presentation((2, 3, 4, 0, 1), (0, 1, 2, 3, 4)), arranged="content")
    asked = settled(ask, SCALE)
    assert [SCALE.candidates[c] for c in asked.presentation.order] == ["c", "d", "e", "a", "b"]
    (own,) = fitted.asks(4)  # never probed: the usual scale
    assert own.presentation == canonical(4)


def test_a_fixed_item_is_asked_in_its_own_order() -> None:
    fitted = BiasCost(probes=(_probe(order(3, 4, 5, 1, 2), EVEN),))
    fixed = msgspec.structs.replace(SCALE, permutable=False)
    assert content_order(fixed) == (0, 1, 2, 3, 4)
    assert fitted.plan(fixed) == [Ask(canonical(5))]
    assert BiasCost().plan_fit([fixed]) == []


EVEN = np.full((5, 5), 8.0)
"""Answers under which every order costs nothing."""


def _probe(best: tuple[int, ...], chosen: FloatArray = WORKED) -> Probe:
    counts = tuple(tuple(map(int, row)) for row in chosen)
    shares = position_shares(chosen, SHOWN, added=0.2)
    return Probe(
        n=5,
        chosen=counts,
        shown=((40,) * 5,) * 5,
        order=best,
        cost=bias_cost(shares, best),
        costs=tuple(bias_cost(shares, entry) for entry in balanced(5)),
        count=20,
    )


def test_a_damaged_file_is_refused() -> None:
    fitted = BiasCost(probes=(_probe(order(2, 3, 4, 5, 1)),))
    data = to_json(fitted)
    (probe,) = data["probes"]
    assert from_json(data) == fitted
    shares = position_shares(np.array(probe["chosen"]), np.array(probe["shown"]), added=1 / 5)
    worse = max(balanced(5), key=lambda entry: bias_cost(shares, entry))
    for change, said in (
        ({"order": [0, 0, 1, 2, 3]}, "not a sequence"),
        ({"cost": 0.1}, "do not follow from the counts"),
        ({"costs": probe["costs"][:-1]}, "costs: 9 numbers"),
        ({"chosen": [[-1, 0, 0, 0, 0]] * 5}, "chosen: -1"),
        ({"shown": []}, "shown: 0 levels"),
        ({"order": list(worse), "cost": bias_cost(shares, worse)}, "costs more than another"),
    ):
        with pytest.raises(MethodError, match=f"the file is damaged: .*{said}"):
            from_json({**data, "probes": [{**probe, **change}]})


def test_what_it_may_learn_is_bounded_where_all_of_it_is_asked() -> None:
    assert len(BiasCost().asks(10)) == 20
    assert len(BiasCost(search="all").asks(5)) == 120
    with pytest.raises(UsageError, match=r"any of 5,040 orders of 7 levels.*Use bias-cost"):
        BiasCost(search="all").asks(7)
    tables, _ = probed(BiasCost(), 60, 7)
    fitted = BiasCost(search="all", resamples=0).fit_tables(tables)
    assert len(fitted.asks(7)) == 1


def test_rates_of_positions_have_intervals_from_60_items() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few, enough = (
            BiasCost(resamples=50).fit_tables(probed(BiasCost(), count, 5, by_id)[0])
            for count in (59, 60)
        )
    name = "share of position 0 among 5 levels"
    assert few.estimates()[name].low is None
    estimate = enough.estimates()[name]
    # every third item names the first position, the others the lowest level: 1 / 3 + 2 / 3 / 5
    assert estimate.value == pytest.approx(1 / 3 + 2 / 15)
    assert estimate.low < 1 / 3 + 2 / 15 < estimate.high
    assert sum(own.value or 0 for own in enough.estimates().values()) == pytest.approx(1)


def by_id(item: Item, ask: Ask) -> int:
    """Every third item is judged by position."""
    return ask.presentation.order[0] if int(item.id[-5:]) % 3 == 0 else 0


def test_drift_is_noticed_only_where_preferences_change() -> None:
    def liking(position: int, seed: int) -> Any:
        rng = np.random.default_rng(seed)

        def judge(item: Item, ask: Ask) -> int:
            logits = np.array(item.meta["utility"])[list(ask.presentation.order)]
            logits[position] += 1.0
            return ask.presentation.order[int((logits + rng.gumbel(size=5)).argmax())]

        return judge

    method = BiasCost(resamples=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filed = method.fit_tables(probed(method, 100, 5, liking(0, 1))[0])
        same = drift(filed, probed(method, 80, 5, liking(0, 2))[0], resamples=60)
        changed = drift(filed, probed(method, 80, 5, liking(4, 3))[0], resamples=60)
    assert not any(number.moved for number in same)
    assert any(number.moved for number in changed)


def audited(**settings: Any) -> Any:
    items = simulated_items(60, 5, seed=4, task=Task.RUBRIC)
    given = AuditSettings(methods=("bias-cost", "canonical"), resamples=50, **settings)
    return audit_calls(items, given, "simulated/judge?slot=1", BackendSettings(), directory=None)


def test_an_audit_needs_no_call_beyond_the_balanced_orders() -> None:
    metrics = audited().metrics
    assert metrics["calls"]["made"] == 60 * 10
    row = metrics["methods"]["bias-cost"]
    assert row["calls_per_item"] == 1.0
    assert row["consistency"]["by_construction"] is True
    # 12 items of 60 are probed with 10 calls, one of which judges them anyway
    assert row["calls_per_item_amortised"] == pytest.approx(1 + 12 * 9 / 60)
