"""Escalation: exact verdicts where every order is read, stops as stated, and a bound that holds."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta
from simulated_judges import table_of

import unswayed as us
from claim_rates import escalation
from unswayed.backends.simulated import simulated_items
from unswayed.base.errors import UsageError
from unswayed.calls.judge import Judge
from unswayed.methods.bounds import upper_end
from unswayed.methods.checks import UnsoundError
from unswayed.methods.escalate import GRID, Escalate, Escalation, first_order
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.over_orders import Average
from unswayed.methods.selective import Selective
from unswayed.model.decisions import MISSING, UNPARSED, Decision, DecisionTable
from unswayed.model.items import Item
from unswayed.model.items.shards import shard_of
from unswayed.model.presentation import content_order

GIVEN = Escalate(arranged="given")


def judged(rows: int, n: int, seed: int = 0, bias: float = 1.0) -> DecisionTable:
    """Answers to every question of the method: content, an offset for each label, noise."""
    rng = np.random.default_rng(seed)
    shown = [ask.presentation for ask in GIVEN.asks(n)]
    content = rng.normal(0, 1.5, (rows, n))
    label = bias * np.linspace(1, -1, n)
    logits = np.stack(
        [content + label[list(own.labels_by_candidate())] for own in shown], axis=1
    ) + rng.normal(0, 0.3, (rows, len(shown), n))
    odds = np.exp(logits)
    return table_of(odds / odds.sum(axis=2, keepdims=True), shown)


def fitted(n: int, gap: float | None, offsets: np.ndarray | None = None) -> Escalate:
    own = tuple(np.zeros(n) if offsets is None else offsets)
    return replace(GIVEN, stops=(Escalation(n, own, gap, 0, 100, float(n), units=200),))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"offsets": (5.0, 5.0)}, "sum of offsets: 10.0"),
        ({"offsets": (1e308, -1e308)}, "offsets: 1e\\+308"),
        ({"changed": -1}, "changed: -1 of 100"),
        ({"changed": 101}, "changed: 101 of 100"),
        ({"changed": 0, "count": 0}, "changed: 0 of 0"),
        ({"changed": 3}, "3 events among 100 do not prove a share of 0.05"),
        ({"calls": -1.0}, "calls: -1.0"),
    ],
)
def test_damaged_stop_is_refused(change: dict[str, object], reason: str) -> None:
    (stop,) = fitted(2, 0.4).stops or ()
    with pytest.raises(UnsoundError, match=reason):
        replace(GIVEN, stops=(replace(stop, **change),))  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_without_a_stop_the_mean_log_of_all_orders_decides(n: int) -> None:
    table = judged(300, n)
    whole = fitted(n, None, np.linspace(0.5, -0.5, n)).decide_table(table)
    np.testing.assert_array_equal(whole.choices, Average(space="logit").decide_table(table).choices)
    assert (whole.n_calls == n).all()


def test_a_gap_of_zero_reads_the_first_order_alone() -> None:
    table = judged(50, 3)
    verdicts = fitted(3, 0.0).decide_table(table)
    assert (verdicts.n_calls == 1).all()
    first = [first_order(item, 3) for item in table.items]
    assert set(first) == {0, 1, 2}
    assert table.probs is not None
    alone = table.probs[np.arange(50), first].argmax(axis=1)
    np.testing.assert_array_equal(verdicts.choices, alone)


def by_hand(
    logs: np.ndarray, labels: list[list[int]], offsets: list[float], gap: float, first: int
) -> tuple[int, int]:
    """The rule for one item, written out; logs by order and candidate."""
    orders, n = logs.shape
    total = [0.0] * n
    for k in range(orders):
        at = (first + k) % orders
        centre = sum(logs[at]) / n
        for c in range(n):
            total[c] += logs[at][c] - centre - offsets[labels[at][c]]
        mean = sorted(value / (k + 1) for value in total)
        if mean[-1] - mean[-2] >= gap or k == orders - 1:
            return max(range(n), key=lambda c: total[c]), k + 1
    raise AssertionError


@given(seed=st.integers(0, 10**6), n=st.integers(2, 5), gap=st.sampled_from(GRID[:80]))
@settings(max_examples=40, deadline=None)
def test_every_item_stops_as_written_by_hand(seed: int, n: int, gap: float) -> None:
    table = judged(20, n, seed)
    offsets = np.random.default_rng(seed).normal(0, 0.5, n)
    offsets -= offsets.mean()
    verdicts = fitted(n, gap, offsets).decide_table(table)
    assert table.probs is not None
    labels = [list(shown.labels_by_candidate()) for shown in table.shown]
    for row, item in enumerate(table.items):
        logs = np.log(table.probs[row] + 1e-10)
        expected = by_hand(logs, labels, list(offsets), gap, first_order(item, n))
        assert (verdicts.choices[row], verdicts.n_calls[row]) == expected


def answer(item: Item, table: DecisionTable, column: int) -> Decision:
    assert table.probs is not None
    row = [own.id for own in table.items].index(item.id)
    return Decision(
        item_id=item.id,
        order=table.shown[column].order,
        labels=table.shown[column].symbols(table.label_set),
        label_set=table.label_set,
        choice=int(table.choices[row, column]),
        probs=tuple(table.probs[row, column]),
    )


@pytest.mark.parametrize("gap", [0.0, 0.4, 1.0, None])
def test_asking_one_by_one_gives_the_verdicts_of_the_table(gap: float | None) -> None:
    table, method = judged(40, 4), fitted(4, gap)
    whole = method.decide_table(table)
    for row, item in enumerate(table.items):
        seen: list[Decision] = []
        while len(wanted := method.plan(item, seen)) > len(seen):
            assert len(wanted) == len(seen) + 1
            seen.append(answer(item, table, table.columns[wanted[-1]]))
        verdict = method.decide(item, seen)
        assert (verdict.choice, verdict.n_calls) == (whole.choices[row], whole.n_calls[row])
        assert len(seen) == whole.n_calls[row]


def test_only_answers_before_the_stop_are_needed() -> None:
    table = judged(60, 4)
    method = fitted(4, 0.5)
    clean = method.decide_table(table)
    assert table.probs is not None
    for code, lost in ((MISSING, MISSING), (UNPARSED, UNPARSED)):
        choices, probs = table.choices.copy(), table.probs.copy()
        choices[:, 1], probs[:, 1] = code, np.nan
        verdicts = method.decide_table(replace(table, choices=choices, probs=probs))
        for row, item in enumerate(table.items):
            place = (1 - first_order(item, 4)) % 4
            read = place < clean.n_calls[row]
            assert verdicts.choices[row] == (lost if read else clean.choices[row])


def test_the_bound_of_the_smallest_gap_is_clopper_pearson() -> None:
    method = replace(GIVEN, share=0.03)
    high = partial(upper_end, "high", risk=0.1)
    table = judged(400, 2, seed=3)
    (stop,) = method.fit_tables({2: table}).stops or ()
    assert stop.gap is not None
    assert high(stop.changed, stop.count) <= 0.03
    assert high(3, 200) == pytest.approx(beta.ppf(0.9, 4, 197))
    assert stop.count == 200
    assert stop.units == 400
    assert 1 < stop.calls < 1.5
    assert np.array(stop.offsets) == pytest.approx([1.0, -1.0], abs=0.1)


@pytest.mark.parametrize(
    ("share", "guarantee", "needed"),
    [(0.01, "high", 230), (0.02, "high", 114), (0.05, "high", 45), (0.05, "mean", 19)],
)
def test_too_few_questions_ask_every_order_with_a_warning(
    share: float, guarantee: str, needed: int
) -> None:
    method = replace(GIVEN, share=share, guarantee=guarantee)  # type: ignore[arg-type]
    assert method.questions_needed == needed
    same = judged(1, 2)
    assert same.probs is not None
    sure = table_of(np.repeat(np.array([[[0.9, 0.1], [0.9, 0.1]]]), 2 * needed, axis=0), same.shown)
    (enough,) = method.fit_tables({2: sure}).stops or ()
    assert enough.gap == 0.0
    with pytest.warns(MethodWarning, match=f"at least {2 * needed} estimation questions"):
        fewer = method.fit_tables({2: sure.rows(np.arange(2 * needed - 2))})
    (stop,) = fewer.stops or ()
    assert stop.gap is None
    assert (fewer.decide_table(sure).n_calls == 2).all()


def test_first_orders_are_even_among_all_items_and_in_each_shard() -> None:
    items = simulated_items(4000, 4)
    assert abs(np.bincount([first_order(item, 4) for item in items]) - 1000).max() < 120
    for shard in range(4):
        own = [first_order(item, 4) for item in items if shard_of(item.id, 4) == shard]
        assert abs(np.bincount(own, minlength=4) / len(own) - 0.25).max() < 0.06
    bare = [Item(id=f"r{row}", prompt="", candidates=("", "")) for row in range(1000)]
    assert abs(sum(first_order(item, 2) for item in bare) - 500) < 60


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_verdict_is_the_same_in_all_orders_given(n: int) -> None:
    calls = set()
    with Judge(
        "simulated/judge?slot=1&label=0.5", method=replace(fitted(n, 1.5), arranged="content")
    ) as judge:
        for item in simulated_items(8, n):
            told = set()
            for given in itertools.permutations(item.candidates):
                verdict = judge.answer(item.prompt, given)
                assert isinstance(verdict.choice, int)
                assert verdict.scores is not None
                scores = sorted(zip(given, np.round(verdict.scores, 12), strict=True))
                told.add((given[verdict.choice], verdict.n_calls, *scores))
            assert len(told) == 1
            calls.add(verdict.n_calls)
    assert {1, n} <= calls


def test_items_sorted_by_content_are_fitted_alike_either_way(tmp_path: Path) -> None:
    """Items given in the order of their content are asked the same either way."""
    items = [
        msgspec.structs.replace(item, candidates=tuple(item.candidates[c] for c in content_order(item) or ()))
        for item in simulated_items(150, 4)
    ]  # fmt: skip
    fits = [
        us.calibrate(method, items, "simulated/judge?label=1", out=tmp_path / "fitted.json").method
        for method in (Escalate(share=0.1), replace(GIVEN, share=0.1))
    ]
    assert fits[0].stops == fits[1].stops
    assert fits[0].stops[0].gap is not None


def test_duplicates_of_a_question_count_once() -> None:
    table = judged(200, 2)
    again = table.rows(np.repeat(np.arange(200), 3))
    alone = GIVEN.fit_tables({2: table}).stops
    assert GIVEN.fit_tables({2: again}).stops == alone


@pytest.mark.parametrize(("method", "share"), [(Escalate, "share"), (Selective, "error")])
def test_settings_that_cannot_be_are_refused(method: type, share: str) -> None:
    impossible = ((share, 0.0), (share, 1e-310), (share, 1.0), ("risk", 0.0))
    for name, value in (*impossible, ("gap", -1.0), ("gap", math.nan)):
        with pytest.raises(UsageError, match=method.name):
            method(**{name: value})


@pytest.mark.filterwarnings("ignore")
def test_the_bound_holds_on_new_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(escalation, "FRESH", 1000)
    assert all(rate.count <= 3 for rate in itertools.islice(escalation.rates(12), 2))


def test_an_audit_counts_fitting_calls_beyond_the_stop() -> None:
    names = ["escalate:gap=0.0", "escalate:gap=inf", "escalate:gap=0.3"]
    metrics = us.audit(
        "simulated/judge?noise=0.5", "tiny-judge", methods=names, limit=100, estimation_items=20,
        resamples=100,
    ).metrics  # fmt: skip
    costs = {name: metrics["methods"][name] for name in metrics["methods"] if name != "direct"}
    nothing, everything, some = costs.values()
    assert (nothing["calls_per_item"], everything["calls_per_item"]) == (1, 2)
    assert nothing["calls_per_item_amortised"] == pytest.approx(1 + 20 / 100)
    assert everything["calls_per_item_amortised"] == pytest.approx(2)
    extra = some["calls_per_item_amortised"] - some["calls_per_item"]
    assert 0 < extra < 20 / 100
    curve = metrics["call_curve"]["escalate:gap=0.3"]
    calls = [point["calls_per_item"] for point in curve]
    assert calls == sorted(calls)
    changed = [point["changed"] for point in curve]
    assert (calls[0], calls[-1], changed[-1]["value"], changed[-1]["low"]) == (1, 2, 0, 0)
    assert changed[-1]["high"] == pytest.approx(1 - 0.025 ** (1 / 100))
    assert 0 < changed[0]["low"] < changed[0]["value"] < changed[0]["high"]
