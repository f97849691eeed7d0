"""Whole audits of simulated judges: planted bias is found, costs are right, gold stays out."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from unswayed.auditing.design import strata_of
from unswayed.auditing.planning import plan_audit
from unswayed.auditing.settings import AuditSettings
from unswayed.audits import audit_calls
from unswayed.backends import BackendSettings
from unswayed.backends.simulated import simulated_items
from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.model.decisions import Evidence
from unswayed.model.items import Item, ItemSet
from unswayed.result import AuditResult

BOTH = frozenset({Evidence.CHOICE, Evidence.PROBS})

SETTINGS = AuditSettings(resamples=200)


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
    record = run(pairs, AuditSettings(methods=("pride",), estimation_items=40, resamples=200))
    row = record.metrics["methods"]["pride"]
    # 40 items in both orders; their own order is asked for the verdict anyway: 40 of 400 more.
    assert row["estimation_calls"] == 80
    assert row["calls_per_item"] == 1.0
    assert row["calls_per_item_amortised"] == pytest.approx(1.1)


def test_averaging_rotations_has_no_dagger_under_all_orders(
    questions: ItemSet,
) -> None:
    # 24 views, but the average reads a coset of 4: views of different cosets can disagree.
    settings = AuditSettings(methods=("average",), orders="full", resamples=200)
    few = ItemSet.of(questions.items[:60], name="few")
    row = run(few, settings, model="simulated/judge?slot=2,0,0,0&label=0&noise=0.8").metrics[
        "methods"
    ]["average"]
    assert "by_construction" not in row["consistency"]
    assert 0.5 < row["consistency"]["value"] < 1


def test_verdicts_do_not_depend_on_gold(pairs: ItemSet) -> None:
    other = ItemSet.of(
        [msgspec.structs.replace(item, gold=1 - int(item.gold)) for item in pairs],  # type: ignore[arg-type]
        name="other",
    )
    settings = AuditSettings(methods=("direct", "pride", "average"), resamples=200)
    one, two = run(pairs, settings), run(other, settings)
    for method in settings.methods:
        assert value(one, method, "consistency") == value(two, method, "consistency")
        assert value(one, method, "accuracy") == pytest.approx(1 - value(two, method, "accuracy"))


def test_without_gold_agreement_is_listed_and_no_method_named(pairs: ItemSet) -> None:
    blind = ItemSet.of([msgspec.structs.replace(item, gold=None) for item in pairs], name="blind")
    record = run(blind, AuditSettings(methods=("vote", "average", "pride"), resamples=200))
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


def test_differences_have_an_interval_for_all_methods_at_once(
    pairs: ItemSet,
) -> None:
    record = run(pairs, AuditSettings(methods=("vote", "average", "pride"), resamples=50))
    gain = record.metrics["differences"]["pride-direct"]["accuracy"]
    low, high = gain["joint"]
    assert low < gain["low"] <= gain["value"] <= gain["high"] < high


def test_fixed_items_have_one_verdict_and_no_order_metrics(
    pairs: ItemSet,
) -> None:
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


def test_duplicates_share_a_fold_and_a_place_in_estimation(
    pairs: ItemSet,
) -> None:
    turned = [
        msgspec.structs.replace(
            item, id=f"again-{item.id}", candidates=item.candidates[::-1], gold=None
        )
        for item in pairs.items[:100]
    ]
    both = ItemSet.of([*pairs.items, *turned], name="twice")
    (stratum,) = plan_audit(both, AuditSettings(methods=("pride",)), gives=BOTH).strata
    fold = dict(zip((item.id for item in stratum.items), stratum.folds, strict=True))
    assert all(fold[item.id] == fold[item.id.removeprefix("again-")] for item in turned)
    assert len(set(fold.values())) == 5
    place = {stratum.items[row].id: at for at, row in enumerate(stratum.rank)}
    assert all(abs(place[item.id] - place[item.id.removeprefix("again-")]) == 1 for item in turned)


def test_without_text_the_id_decides_the_fold() -> None:
    blank = [Item(id=f"r{row}", prompt="", candidates=("", "")) for row in range(60)]
    (stratum,) = strata_of(blank, orders="swap", protocols=("coupled",), seed=0)
    assert set(stratum.folds.tolist()) == {0, 1, 2, 3, 4}


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
        Item(
            id=f"i{k}",
            prompt="p",
            candidates=(f"a{k}", f"b{k}"),
            gold=0,
            group="even" if k % 2 == 0 else "odd",
            meta={"utility": [1.0, 0.0], "source": f"s{k % 3}"},
        )
        for k in range(60)
    ]
    data = ItemSet.of(items, name="grouped")
    assert sorted(run(data).metrics["groups"]) == ["even", "odd"]
    by_source = run(data, replace(SETTINGS, group_by="meta.source"))
    assert sorted(by_source.metrics["groups"]) == ["s0", "s1", "s2"]
    assert "accuracy" in by_source.metrics["macro"]["direct"]


def test_difference_to_constructed_value_is_marked(pairs: ItemSet) -> None:
    differences = run(pairs, AuditSettings(methods=("average", "pride"), resamples=200)).metrics[
        "differences"
    ]
    assert differences["average-direct"]["consistency"]["by_construction"] is True
    assert "by_construction" not in differences["average-direct"]["accuracy"]
    assert "by_construction" not in differences["pride-direct"]["consistency"]
