"""The mark "by construction" stands on constants only: equal for every judge and every sample."""

from __future__ import annotations

from collections import defaultdict

import pytest

import unswayed as us
from unswayed.backends.simulated import simulated_items
from unswayed.model.items import Item, ItemSet, Task

JUDGES = ("", "?slot=2&unparsed=0.1&tie=0.2&noise=1", "?unparsed=1", "?tie=1", "?slot=30")


def marked(items: list[Item] | ItemSet, methods: str) -> dict[tuple[str, int], set[float]]:
    """The marked values by metric and place, over judges that differ in everything."""
    found = defaultdict(set)
    for judge in JUDGES:
        audit = us.audit(f"simulated/judge{judge}", items, methods=methods, resamples=100)
        for row in audit.metrics["methods"].values():
            for name, values in row.items():
                for place, own in enumerate(values if isinstance(values, list) else [values]):
                    if isinstance(own, dict) and own.get("by_construction"):
                        found[name, place].add(round(own["value"], 6))
    return found


def lists() -> list[Item]:
    return [
        Item(
            id=f"l{k}", task=Task.LISTWISE, prompt=f"p{k}", gold=k % 3,
            candidates=tuple(f"{c} {k}" for c in "xyz"),
        )
        for k in range(20)
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["pairs", "options", "lists"])
def test_every_marked_value_is_the_same_for_every_judge(kind: str) -> None:
    items = lists() if kind == "lists" else simulated_items(20, 2 if kind == "pairs" else 3)
    found = marked(items, "canonical,average,vote,sequential")
    assert ("consistency", 0) in found
    assert {key: values for key, values in found.items() if len(values) > 1} == {}
    assert not {"accuracy", "accuracy_fractional", "tie_rate", "unparsed_rate"} & {
        name for name, _ in found
    }


def test_consistency_with_unread_answers_has_an_interval() -> None:
    audit = us.audit(
        "simulated/judge?unparsed=0.3", simulated_items(60), methods="vote", resamples=200
    )
    steady = audit.metrics["methods"]["vote"]["consistency"]
    assert "by_construction" not in steady
    assert steady["low"] < steady["value"] < steady["high"] <= 1
    compared = audit.metrics["differences"]["vote-direct"]["consistency"]
    assert "by_construction" not in compared
    assert "joint" in compared
