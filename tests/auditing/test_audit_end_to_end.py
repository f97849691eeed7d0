"""Whole audits of simulated judges: planted bias is found, costs are right, gold stays out."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from unswayed.auditing.planning import plan_audit
from unswayed.auditing.settings import AuditSettings
from unswayed.audits import audit_calls
from unswayed.backends import BackendSettings
from unswayed.backends.simulated import simulated_items
from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.model.decisions import Evidence
from unswayed.model.items import ItemSet
from unswayed.result import AuditResult

BOTH = frozenset({Evidence.CHOICE, Evidence.PROBS})

SETTINGS = AuditSettings(resamples=100)


def run(
    items: ItemSet,
    settings: AuditSettings = SETTINGS,
    *,
    model: str = "simulated/judge?slot=0.6&label=0.4",
    directory: Path | None = None,
) -> AuditResult:
    return audit_calls(items, settings, model, BackendSettings(), directory=directory)


def value(record: AuditResult, method: str, metric: str) -> float:
    found = record.metrics["methods"][method][metric]["value"]
    assert isinstance(found, float)
    return found


@pytest.fixture(scope="module")
def pairs() -> ItemSet:
    return simulated_items(400, 2, seed=1)


@pytest.fixture(scope="module")
def questions() -> ItemSet:
    return simulated_items(200, 4, seed=1)


@pytest.mark.parametrize(
    ("slot", "label", "swayed"),
    [(0, 0, set()), (2, 0, {"coupled", "order"}), (0, 2, {"coupled", "label"})],
)
def test_a_bias_shows_under_the_protocols_that_move_its_cause(
    slot: int, label: int, swayed: set[str], pairs: ItemSet
) -> None:
    model = f"simulated/judge?slot={slot}&label={label}&noise=0"
    protocols = run(pairs, replace(SETTINGS, protocol="all"), model=model).metrics["protocols"]
    steady = {name: row["consistency"]["value"] for name, row in protocols.items()}
    assert {name for name, own in steady.items() if own < 0.8} == swayed
    assert {own for name, own in steady.items() if name not in swayed} <= {1.0}


def test_a_fitted_method_pays_its_estimation_calls(pairs: ItemSet) -> None:
    record = run(pairs, AuditSettings(methods=("pride",), estimation_items=40, resamples=100))
    row = record.metrics["methods"]["pride"]
    # 40 items in both orders; their own order is asked for the verdict anyway: 40 of 400 more.
    assert row["estimation_calls"] == 80
    assert row["calls_per_item"] == 1.0
    assert row["calls_per_item_amortised"] == pytest.approx(1.1)


def test_averaging_rotations_has_no_dagger_under_all_orders(questions: ItemSet) -> None:
    # 24 views, but the average reads a coset of 4: views of different cosets can disagree.
    settings = AuditSettings(methods=("average",), orders="full", resamples=100)
    few = ItemSet.of(questions.items[:60], name="few")
    record = run(few, settings, model="simulated/judge?slot=2,0,0,0&label=0&noise=0.8")
    assert "by_construction" not in record.metrics["methods"]["average"]["consistency"]
    assert 0.5 < value(record, "average", "consistency") < 1


def test_verdicts_do_not_depend_on_gold(pairs: ItemSet) -> None:
    items = pairs.items[:100]
    other = [msgspec.structs.replace(item, gold=1 - int(item.gold)) for item in items]  # type: ignore[arg-type]
    wanted = AuditSettings(methods=("direct", "pride", "average"), resamples=50)
    one, two = (run(ItemSet.of(own, name="own"), wanted) for own in (items, other))
    for method in wanted.methods:
        assert value(one, method, "consistency") == value(two, method, "consistency")
        assert value(one, method, "accuracy") == pytest.approx(1 - value(two, method, "accuracy"))


def test_without_gold_agreement_is_listed_and_no_method_named(pairs: ItemSet) -> None:
    blind = ItemSet.of([msgspec.structs.replace(item, gold=None) for item in pairs], name="blind")
    record = run(blind, AuditSettings(methods=("vote", "average", "pride"), resamples=100))
    assert record.metrics["recommendation"]["state"] == "none"
    methods = record.metrics["methods"]
    assert methods["direct"]["accuracy"]["value"] is None
    assert 0.5 < methods["pride"]["agreement"]["value"] < 1
    for name in ("vote", "average"):  # they read all that the yardstick reads
        assert methods[name]["agreement"]["value"] is None


@pytest.mark.parametrize("orders", ["identity", "swap"])
def test_without_gold_nothing_is_compared_with_the_average(pairs: ItemSet, orders: str) -> None:
    """One order is its own average, and two answers have a winner only where they agree."""
    blind = ItemSet.of([msgspec.structs.replace(item, gold=None) for item in pairs], name="blind")
    record = run(
        blind,
        AuditSettings(methods=("repeat",), orders=orders, resamples=50),
        model="simulated/judge?slot=2&logprobs=0",
    )
    found = record.metrics["recommendation"]
    assert (found["state"], found["method"]) == ("none", None)
    assert "agreement" not in record.metrics["methods"]["direct"]


def test_a_remedy_is_named_only_where_it_is_measured(pairs: ItemSet) -> None:
    settings = AuditSettings(methods=("vote", "average", "pride"), resamples=50)
    found = run(pairs, settings, model="simulated/judge?slot=1.5&label=0").metrics["recommendation"]
    assert (found["state"], found["method"]) == ("better", "average")
    unrelated = ItemSet.of(
        [msgspec.structs.replace(item, gold=place * 7 % 5 % 2) for place, item in enumerate(pairs)],
        name="unrelated",
    )
    found = run(unrelated, settings, model="simulated/judge?slot=1.5").metrics["recommendation"]
    assert (found["state"], found["method"]) == ("none", None)
    assert "guessing" in found["reason"]


def test_with_ties_as_a_class_strict_accuracy_decides(pairs: ItemSet) -> None:
    settings = AuditSettings(methods=("vote", "average"), resamples=50, gold_ties="class", margin=2)
    found = run(pairs, settings).metrics["recommendation"]
    assert (found["criterion"], found["margin"]) == ("accuracy", 0.02)


def test_differences_hold_jointly_and_mark_what_is_constructed(pairs: ItemSet) -> None:
    record = run(pairs, AuditSettings(methods=("vote", "average", "pride"), resamples=50))
    differences = record.metrics["differences"]
    gain = differences["pride-direct"]["accuracy"]
    low, high = gain["joint"]
    assert low < gain["low"] <= gain["value"] <= gain["high"] < high
    assert differences["average-direct"]["consistency"]["by_construction"] is True
    assert "by_construction" not in differences["average-direct"]["accuracy"]
    assert "by_construction" not in differences["pride-direct"]["consistency"]


def test_fixed_items_have_one_verdict_and_no_order_metrics(pairs: ItemSet) -> None:
    fixed = [msgspec.structs.replace(item, permutable=False) for item in pairs.items[:50]]
    mixed = ItemSet.of([*fixed, *pairs.items[50:]], name="mixed")
    record = run(mixed)
    assert record.metrics["calls"]["made"] == 50 + 2 * 350
    for method in ("direct", "average"):
        assert record.metrics["methods"][method]["consistency"]["n"] == 350
        assert record.metrics["methods"][method]["accuracy"]["n"] == 400
    assert record.metrics["data"]["not_permutable"] == 50


def test_more_items_leave_folds_and_estimation_sets_unchanged(pairs: ItemSet) -> None:
    settings = AuditSettings(methods=("pride",), estimation_items=20)
    small = plan_audit(ItemSet.of(pairs.items[:200], name="s"), settings, gives=BOTH)
    large = plan_audit(pairs, settings, gives=BOTH)
    folds = dict(zip((item.id for item in large.items), large.strata[0].folds, strict=True))
    for item, fold in zip(small.items, small.strata[0].folds, strict=True):
        assert folds[item.id] == fold


def test_no_question_carries_gold(pairs: ItemSet) -> None:
    plan = plan_audit(pairs, AuditSettings(methods=("all",)), gives=BOTH)
    assert all(question.item.gold is None for question in plan.questions())


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (AuditSettings(methods=("prid",)), UnknownNameError, "Did you mean 'pride'"),
        (AuditSettings(orders="swop"), UnknownNameError, "Did you mean 'swap'"),
        (AuditSettings(protocol="labels"), UsageError, "Did you mean 'label'"),
        (AuditSettings(probs="sampled:2"), UsageError, "at least 5"),
        (AuditSettings(probs="sampled:many"), UsageError, "sampled:R"),
    ],
)
def test_bad_settings_say_what_to_give(
    settings: AuditSettings, error: type[Exception], message: str, pairs: ItemSet
) -> None:
    with pytest.raises(error, match=message):
        plan_audit(pairs, settings, gives=BOTH)


def test_a_bad_group_field_is_refused(pairs: ItemSet) -> None:
    with pytest.raises(UsageError, match=r"meta\.FIELD"):
        run(pairs, replace(SETTINGS, group_by="source"))


def test_orders_that_do_not_exist_for_an_item_name_it(questions: ItemSet) -> None:
    with pytest.raises(UsageError, match=questions[0].id):
        plan_audit(questions, AuditSettings(orders="swap"), gives=BOTH)


def test_groups_and_macro_average_follow_the_group_field() -> None:
    items = [
        msgspec.structs.replace(
            item, group=("even", "odd")[k % 2], meta={**item.meta, "source": f"s{k % 3}"}
        )
        for k, item in enumerate(simulated_items(60))
    ]
    data = ItemSet.of(items, name="grouped")
    assert sorted(run(data).metrics["groups"]) == ["even", "odd"]
    by_source = run(data, replace(SETTINGS, group_by="meta.source"))
    assert sorted(by_source.metrics["groups"]) == ["s0", "s1", "s2"]
    assert "accuracy" in by_source.metrics["macro"]["direct"]
