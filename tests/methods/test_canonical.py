"""The control: sorted by content, so that the order given cannot matter."""

import itertools
from typing import Any

import msgspec
import pytest

from unswayed.auditing.recorded import audit_decisions
from unswayed.auditing.settings import AuditSettings
from unswayed.audits import audit_calls
from unswayed.backends import BackendSettings
from unswayed.backends.simulated import simulated_items
from unswayed.methods.single_call import Canonical
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, ItemSet, Task, blind
from unswayed.model.presentation import Ask, Presentation, content_order, settled
from unswayed.prompts import PromptSettings, render
from unswayed.result import AuditResult

MODEL = "simulated/judge?slot=1.5&label=0.5"


def item(*texts: str, permutable: bool = True) -> Item:
    task = Task.PAIRWISE if len(texts) == 2 else Task.MCQ
    return Item(id="q", task=task, prompt="which?", candidates=texts, permutable=permutable)


def audited(items: ItemSet, *, model: str = MODEL, **settings: Any) -> AuditResult:
    given = AuditSettings(methods=("canonical",), resamples=50, **settings)
    return audit_calls(items, given, model, BackendSettings(), directory=None)


def recorded(item_id: str, order: tuple[int, ...], choice: int) -> Decision:
    label_set = tuple("ABCD"[: len(order)])
    return Decision(
        item_id=item_id,
        order=order,
        labels=label_set,
        label_set=label_set,
        choice=choice,
        model="judge",
    )


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_request_is_the_same_in_all_orders_given(n: int) -> None:
    texts = [f"answer {c}" for c in range(n)]
    asked = set()
    for order in itertools.permutations(range(n)):
        given = item(*(texts[c] for c in order))
        (ask,) = Canonical().plan(given)
        asked.add(msgspec.json.encode(render(given, ask, PromptSettings()).messages))
    assert len(asked) == 1


def test_candidates_are_sorted_by_hash_and_equal_ones_stay() -> None:
    # sha256: "a" ca97…, "b" 3e23…, "c" 2e7d…
    assert content_order(item("a", "b", "c")) == (2, 1, 0)
    assert content_order(item("c", "a", "b")) == (0, 2, 1)
    assert content_order(item("a", "a")) == (0, 1)
    assert content_order(item("a", "b", "a")) == (1, 0, 2)
    assert content_order(item("", "")) is None
    assert content_order(item("a", "b", permutable=False)) == (0, 1)


def test_a_question_by_content_is_settled_for_the_item() -> None:
    (ask,) = Canonical().asks(3)
    shown = Presentation((2, 1, 0), (0, 1, 2))
    assert settled(ask, item("a", "b", "c")) == Ask(shown)
    assert not ask.as_given
    assert Canonical().plan(item("", "")) == []


@pytest.mark.parametrize("n", [2, 4])
def test_it_is_consistent_and_as_accurate_as_one_call(n: int) -> None:
    record = audited(simulated_items(150, n, seed=5))
    row = record.metrics["methods"]["canonical"]
    assert row["consistency"]["by_construction"] is True
    assert row["consistency"]["value"] == 1.0
    assert row["consistent_accuracy"]["value"] == row["accuracy"]["value"]
    assert row["calls_per_item"] == 1.0
    gap = record.metrics["differences"]["canonical-direct"]["accuracy"]
    assert abs(gap["value"]) < 2 * (gap["high"] - gap["value"])


def test_two_candidates_need_no_call_beyond_both_orders() -> None:
    record = audited(simulated_items(50, 2, seed=6))
    assert record.metrics["calls"]["made"] == 100


def test_recorded_orders_that_lack_it_leave_the_item_out() -> None:
    kept = [msgspec.structs.replace(item("a", "b", "c"), id=f"q{k}", gold=0) for k in range(30)]
    lost = [msgspec.structs.replace(item("a", "c", "b"), id=f"r{k}", gold=0) for k in range(10)]
    items = ItemSet.of([*kept, *lost], name="recorded")
    # sorted (c, b, a): order (2, 1, 0) of the first thirty, (1, 2, 0) of the others
    decisions = [recorded(one.id, order, 0) for one in items for order in ((0, 1, 2), (2, 1, 0))]
    given = AuditSettings(methods=("canonical",), resamples=50)
    metrics = AuditResult(audit_decisions(decisions, items, given, command="test")).metrics
    assert metrics["methods"]["canonical"]["accuracy"]["n"] == 30


def test_recorded_decisions_without_text_have_no_such_order() -> None:
    decisions = [recorded(f"q{k}", order, 0) for k in range(30) for order in ((0, 1), (1, 0))]
    given = AuditSettings(methods=("direct", "canonical"), resamples=50)
    metrics = AuditResult(audit_decisions(decisions, None, given, command="test")).metrics
    assert metrics["skipped"] == {"canonical": "the candidates have no text to sort by"}


def test_an_item_that_may_not_be_permuted_is_asked_as_given() -> None:
    fixed = blind(item("b", "a", permutable=False))
    assert Canonical().plan(fixed) == [Ask(Presentation((0, 1), (0, 1)))]


def test_the_view_does_not_move_candidates_sorted_by_content() -> None:
    record = audited(simulated_items(20, 3, seed=8), orders="full")
    table = record.record.plan.strata[0].table
    (ask,) = Canonical().asks(3)
    own = table.select([ask])
    for shown in record.record.plan.strata[0].views:
        seen = table.select([ask], through=shown)
        assert [shown.order[c] for c in seen.choices[:, 0]] == own.choices[:, 0].tolist()
        assert seen.select([ask]).choices.tolist() == seen.choices.tolist()
        back = table.select([Ask(v) for v in record.record.plan.strata[0].views], through=shown)
        assert back.select([ask]).choices.tolist() == seen.choices.tolist()
