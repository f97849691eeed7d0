"""The recommendation rests on paired differences, never on single intervals."""

from typing import Any

import pytest

from judges import est, figures, method, plain_run, with_metrics
from unswayed.decisions import Estimate
from unswayed.report.advice import (
    Steady,
    Why,
    advice_of,
    control_of,
    repeats_of,
    steadier_of,
)
from unswayed.report.data import RunData
from unswayed.report.findings import AGREEMENT, Finding
from unswayed.report.intervals import above, below
from unswayed.report.scored import lede_of
from unswayed.report.sections import remedies_claim
from unswayed.report.words import plain, sentence

DIRECT = (0.71, 0.69, 0.73)
BETTER = (0.87, 0.85, 0.89)


def gap(value: float, low: float, high: float) -> Estimate:
    return Estimate(value=value, low=low, high=high, n=1000)


def advised(name: str | None, *, best: str = "thorough", **more: Any) -> RunData:
    """A run with three methods, where `name` is recommended."""
    methods = {
        "direct": figures(plain_run())["methods"]["direct"],
        "average": method(BETTER, 2.0, None),
        "thorough": method((0.88, 0.86, 0.90), 4.0, None),
        "cheap": method((0.85, 0.83, 0.87), 1.05, (0.83, 0.81, 0.85)),
    }
    advice = {"method": name, "reason": "", "criterion": "accuracy", "best": best, **more}
    differences = {
        "average-thorough": {"accuracy": est(-0.003, -0.012, 0.005)},
        "average-direct": {"accuracy": est(0.164, 0.142, 0.184)},
        "thorough-direct": {"accuracy": est(0.004, -0.002, 0.010)},
    }
    return plain_run(methods=methods, recommendation=advice, differences=differences)


def test_the_cheapest_that_cannot_be_told_from_the_best_is_recommended_with_its_gap() -> None:
    advice = advice_of(Finding(advised("average", alternative="cheap")))
    assert advice is not None
    assert (advice.method, advice.why, advice.best) == ("average", Why.CHEAPEST, "thorough")
    assert advice.gap == gap(-0.003, -0.012, 0.005)
    assert advice.alternative == "cheap"


def test_the_best_method_is_recommended_as_such() -> None:
    alone = advice_of(Finding(advised("thorough")))
    assert alone is not None
    assert (alone.why, alone.top, alone.rivals, alone.alternative) == (
        Why.HIGHEST,
        True,
        True,
        None,
    )


def test_the_best_of_those_that_gain_need_not_be_at_the_top() -> None:
    advice = advice_of(Finding(advised("average", best="average")))
    assert advice is not None
    assert (advice.why, advice.top) == (Why.HIGHEST, False)


@pytest.mark.parametrize(
    ("best", "why"), [("thorough", Why.NONE_BETTER), ("direct", Why.NONE_HIGHER)]
)
def test_a_single_call_is_recommended_where_nothing_is_measurably_better(
    best: str, why: Why
) -> None:
    advice = advice_of(Finding(advised("direct", best=best)))
    assert advice is not None
    assert advice.why is why
    if why is Why.NONE_BETTER:  # the pair is stored as thorough-direct; here it is turned round
        assert advice.gap == gap(-0.004, -0.010, 0.002)


def test_the_remedy_has_its_gain_and_its_price() -> None:
    finding = Finding(advised("average"))
    assert finding.recommended == "average"
    assert finding.difference("average", "direct", "accuracy") == gap(0.164, 0.142, 0.184)
    assert "raises accuracy by 16.4 points" in plain(lede_of(finding))
    assert "for 2 calls per item" in plain(lede_of(finding))


def test_a_reason_is_kept_where_nothing_can_be_recommended() -> None:
    finding = Finding(advised(None, reason="33% of the calls are missing"))
    assert advice_of(finding) is None
    words = plain(sentence("advice.advice", finding, None))
    assert words == "No recommendation: 33% of the calls are missing."


def test_a_label_free_criterion_is_named() -> None:
    criterion = "agreement with the average over the full pool"
    run = advised("average", best="cheap", criterion=criterion)
    rows = figures(run)["methods"]
    for row in rows.values():
        row["agreement"] = est(0.8, 0.78, 0.82)
    run = with_metrics(run, methods=rows)
    advice = advice_of(Finding(run))
    assert advice is not None
    assert (advice.criterion, advice.why) == (criterion, Why.CHEAPEST)
    assert Finding(run).criterion == AGREEMENT


def test_a_criterion_that_nothing_was_scored_by_leaves_the_recorded_reason() -> None:
    advice = advice_of(Finding(advised("average", criterion="rstd", reason="it was cheap")))
    assert advice is not None
    assert (advice.why, advice.reason) == (Why.UNSCORED, "it was cheap")


def test_few_items_get_no_recommendation_even_if_one_is_recorded() -> None:
    metrics = figures(advised("average"))
    metrics["methods"]["direct"]["consistency"]["n"] = 15
    few = plain_run((0.5, 0.4, 0.6), n_items=15, **{
        key: metrics[key] for key in ("methods", "recommendation", "differences")
    })  # fmt: skip
    finding = Finding(few)
    assert (finding.recommends, finding.recommended, advice_of(finding)) == (False, None, None)


def test_one_method_recommends_nothing() -> None:
    run = plain_run(recommendation={"method": "direct", "reason": "", "criterion": "accuracy"})
    assert advice_of(Finding(run)) is None
    assert remedies_claim(Finding(run)) is None


@pytest.mark.parametrize(
    ("gain", "up", "down"),
    [
        ((0.00, -0.01, 0.01), False, False),
        ((0.02, 0.01, 0.03), True, False),
        ((-0.02, -0.03, -0.01), False, True),
    ],
)
@pytest.mark.parametrize("name", ["repeat", "repeat-mean", "repeat:samples=5"])
def test_asking_again_is_judged_by_its_paired_difference(
    name: str, gain: tuple[float, float, float], up: bool, down: bool
) -> None:
    metrics = figures(advised("average"))
    metrics["methods"][name] = {**method(DIRECT, 3.0), "calls_per_item": 3}
    metrics["differences"][f"{name}-direct"] = {"accuracy": est(*gain)}
    (control,) = repeats_of(Finding(with_metrics(advised("average"), **metrics)))
    assert control.gain is not None
    assert (control.method, control.row.calls_next) == (name, 3)
    assert (above(control.gain, 0), below(control.gain, 0)) == (up, down)


def test_methods_that_change_the_order_or_are_not_known_repeat_nothing() -> None:
    assert repeats_of(Finding(advised("average"))) == []


def test_claims_are_read_from_the_interval_that_holds_for_all_methods_at_once() -> None:
    differences = figures(advised("average"))["differences"]
    differences["average-direct"]["accuracy"]["joint"] = [-0.02, 0.308]
    finding = Finding(with_metrics(advised("average"), differences=differences))
    assert finding.difference("average", "direct", "accuracy") == gap(0.164, -0.02, 0.308)
    assert finding.difference("direct", "average", "accuracy") == gap(-0.164, -0.308, 0.02)
    assert "raises" not in plain(lede_of(finding))


@pytest.mark.parametrize(
    ("recommended", "steadiest", "kind", "numbers"),
    [
        # direct keeps 43 %, cheap 83 %: 40 of 57 points of flips are gone
        ("direct", "cheap", Steady.MOST, (0.43, 0.83)),
        ("direct", "less", Steady.SOME, (0.43, 0.63)),
        # thorough keeps more verdicts than cheap does, whose 83 % the reader would have anyway
        ("cheap", "thorough", Steady.STEADIER, (0.83, 0.95)),
        ("cheap", "less", None, ()),
        ("cheap", "cheap", None, ()),
        ("cheap", None, None, ()),
    ],
)
def test_the_steadiest_method_is_named_where_it_is_another_one(
    recommended: str, steadiest: str | None, kind: Steady | None, numbers: tuple[float, ...]
) -> None:
    run = advised(recommended, steadiest=steadiest)
    rows = figures(run)["methods"]
    rows["thorough"]["consistency"] = est(0.95, 0.93, 0.97)
    rows["less"] = method(DIRECT, 1.5, (0.63, 0.6, 0.66))
    steadier = steadier_of(Finding(with_metrics(run, methods=rows)))
    if steadier is None:
        assert kind is None
    else:
        assert (steadier.kind, (steadier.before, steadier.after)) == (kind, numbers)


@pytest.mark.parametrize(
    ("gain", "told"),
    [((0.16, 0.13, 0.19), gap(0.16, 0.13, 0.19)), ((0.1, -0.1, 0.3), None)],
)
def test_an_order_that_the_content_decides_is_the_control_of_consistency(
    gain: tuple[float, float, float], told: Estimate | None
) -> None:
    metrics = figures(advised("average"))
    metrics["methods"]["canonical"] = method((0.71, 0.68, 0.74), 1.0, (1.0, 1.0, 1.0))
    metrics["differences"]["average-canonical"] = {"consistent_accuracy": est(*gain)}
    control = control_of(Finding(with_metrics(advised("average"), **metrics)))
    assert control is not None
    assert (control.against, control.gain) == ("average", told)
    assert control_of(Finding(advised("average"))) is None
