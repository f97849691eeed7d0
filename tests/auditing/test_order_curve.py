"""What an audit says of methods that read a set of orders: the curve over its size, and how even it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

import unswayed as us
from unswayed.auditing.design import stratum_asks
from unswayed.auditing.planning import plan_audit
from unswayed.auditing.rows import as_json
from unswayed.auditing.settings import AuditSettings
from unswayed.backends.simulated import simulated_items
from unswayed.methods import METHODS
from unswayed.methods.pcf import PCF
from unswayed.model.decisions import Evidence
from unswayed.model.items import Item, ItemSet, Task
from unswayed.model.permutations import balanced, cyclic
from unswayed.model.presentation import Ask
from unswayed.model.tasks import task_of

JUDGE = "simulated/judge?slot=2&label=0&logprobs=0"
METHODS_AUDITED = ("direct", "vote", "pcf", "pcf:orders=cyclic", "pcf:orders=balanced")


def listwise(*sizes: int, count: int = 30) -> ItemSet:
    parts: list[Item] = [
        msgspec.structs.replace(item, task=Task.LISTWISE)
        for n in sizes
        for item in simulated_items(count, n, seed=n)
    ]
    return ItemSet.of(parts, name="lists")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("orders") / "run"
    us.audit(JUDGE, listwise(4), methods=METHODS_AUDITED, resamples=100, out=out)
    return out


def metrics_of(run: Path) -> dict:
    return json.loads((run / "metrics.json").read_text())


def test_the_curve_goes_from_single_call_to_method(run: Path) -> None:
    metrics = metrics_of(run)
    assert set(metrics["order_curve"]) == {"pcf", "pcf:orders=cyclic", "pcf:orders=balanced"}
    rows = metrics["order_curve"]["pcf"]
    assert [row["calls_per_item"] for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    for name, curve in metrics["order_curve"].items():
        for metric in ("accuracy", "consistency"):
            # the simulated reply ranks by its scores, so that one run is the single call
            assert curve[0][metric] == metrics["methods"]["direct"][metric]
            assert curve[-1][metric] == metrics["methods"][name][metric]


@dataclass(frozen=True, slots=True)
class FirstThree(PCF):
    """pcf with the first three of its seven orders."""

    name: ClassVar[str] = "first-three"

    def asks(self, n: int) -> tuple[Ask, ...]:
        return PCF.asks(self, n)[:3]


def test_a_point_is_the_method_with_that_many_recorded_orders(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert METHODS.load("pcf") is PCF
    monkeypatch.setitem(METHODS._all, "first-three", "outside:FirstThree")
    monkeypatch.setitem(METHODS._loaded, "first-three", FirstThree)
    asked = us.audit(JUDGE, listwise(4), methods=["first-three"], resamples=100)
    row = asked.record.metrics.methods["first-three"].to_json()
    third = metrics_of(run)["order_curve"]["pcf"][2]
    for metric in ("accuracy", "consistency"):
        assert row[metric] == third[metric]
    wanted, items = AuditSettings(methods=METHODS_AUDITED), listwise(4)
    whole = plan_audit(items, wanted, gives=task_of(items.task).gives - {Evidence.PROBS})
    asks = stratum_asks(whole.strata[0], whole.methods.values())
    assert metrics_of(run)["calls"]["planned"] == 30 * len(asks)


def test_only_the_row_of_drawn_orders_has_exposure(run: Path) -> None:
    rows = metrics_of(run)["methods"]
    assert "exposure" not in rows["direct"]
    assert "exposure" not in rows["vote"]
    seeded = [ask.presentation.order for ask in METHODS.load("pcf")().asks(4)]
    expected = [[[o[p] for o in seeded].count(c) for p in range(4)] for c in range(4)]
    assert rows["pcf"]["exposure"] == {"4": expected}
    for name, orders in (("cyclic", cyclic(4)), ("balanced", balanced(4))):
        assert rows[f"pcf:orders={name}"]["exposure"] == {"4": [[len(orders) // 4] * 4] * 4}


def test_uneven_orders_alone_are_reported(run: Path) -> None:
    cautions = metrics_of(run)["cautions"]
    assert set(cautions) == {"pcf"}
    first = [row[0] for row in metrics_of(run)["methods"]["pcf"]["exposure"]["4"]]
    assert "/".join(map(str, first)) in cautions["pcf"][0]


def test_lists_of_two_sizes_share_a_curve_but_not_exposure() -> None:
    audited = us.audit(JUDGE, listwise(3, 4), methods=["pcf"], resamples=100).record.metrics
    assert set(audited.methods["pcf"].beside.exposure) == {3, 4}
    curve = audited.order_curve["pcf"]  # type: ignore[index]
    calls = [row.beside.calls_per_item for row in curve]
    assert calls == [1, 2, 3, 4, 5, 6, 6.5]  # three have 6 orders
    assert "of 4 candidates" in audited.cautions["pcf"][0]
    assert "of 3 candidates" not in audited.cautions["pcf"][0]  # all six orders are even


def test_an_audit_without_such_a_method_has_no_curve() -> None:
    audited = us.audit(JUDGE, listwise(3), methods=["direct", "vote"], resamples=100)
    assert "order_curve" not in as_json(audited.record.metrics)
