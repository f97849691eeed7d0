"""What is said about using a method: the lines of every state, and the controls beside them."""

from dataclasses import replace
from typing import Any

import pytest

from judges import est, figures, method, plain_run, with_metrics
from unswayed.auditing.flips import Flips
from unswayed.auditing.recommendation import Recommendation
from unswayed.model.decisions import Estimate
from unswayed.report.applying import applications_of
from unswayed.report.data import RunData
from unswayed.report.findings import Finding
from unswayed.report.intervals import above, below
from unswayed.report.scores import lede_of
from unswayed.report.sections import controls_of, remedies_claim
from unswayed.report.table import main_table
from unswayed.report.words import plain, say, sentence

DIRECT = (0.71, 0.69, 0.73)
KEY = "accuracy_fractional"


def row(*given: Any) -> dict[str, Any]:
    own: dict[str, Any] = method(*given)
    return {**own, KEY: own["accuracy"]}


def advised(state: str, method: str | None = None, **more: Any) -> RunData:
    """A run with three methods and what is shown about them."""
    single = figures(plain_run())["methods"]["direct"]
    methods = {
        "direct": {**single, KEY: single["accuracy"]},
        "average": row((0.87, 0.85, 0.89), 2.0, None),
        "cheap": row((0.85, 0.83, 0.87), 1.05, (0.83, 0.81, 0.85)),
    }
    differences = {
        "average-direct": {KEY: {**est(0.164, 0.15, 0.17), "joint": [0.142, 0.184]}},
        "cheap-direct": {KEY: est(0.158, 0.14, 0.17)},
        "cheap-average": {KEY: est(-0.006, -0.02, 0.008)},
    }
    given = {"state": state, "method": method, "criterion": KEY, "items": 1000, "units": 1000}
    given |= {"most_accurate": "average"} if state in ("better", "enough", "worse") else {}
    return plain_run(methods=methods, recommendation={**given, **more}, differences=differences)


def lines(run: RunData) -> list[str]:
    return [plain(text).replace("−", "-") for text in say("advice.advice", Finding(run))]


OPEN = {"cheapest": "direct", "most_accurate": "average", "gain": est(0.014, -0.009, 0.037)}


@pytest.mark.parametrize(
    ("state", "given", "told"),
    [
        (
            "better",
            {"method": "average", "most_accurate": "average", "gain": est(0.041, 0.012, 0.07)},
            ["Use average: 2 calls per item, +4.1 points (1.2 to 7.0) over a single call."],
        ),
        (
            "better",
            {
                "method": "average", "most_accurate": "average", "cheapest": "cheap",
                "gain": est(0.041, 0.012, 0.07), "items": 212,
            },
            [
                "Use average: 2 calls per item, +4.1 points (1.2 to 7.0) over a single call.",
                "Cheaper: cheap, 1.05 calls per item. It measures 0.6 points below the recommended method "
                "(-2.0 to 0.8), which does not show that it is within 1 point.",
                "Compared on 212 of 1,000 items.",
            ],
        ),
        (
            "better",
            {
                "method": "average", "most_accurate": "average", "cheapest": "direct",
                "gain": est(0.041, 0.012, 0.07),
            },
            [
                "Use average: 2 calls per item, +4.1 points (1.2 to 7.0) over a single call.",
                "No cheaper method comes close: direct, 1 call per item, measures 16.4 points (14.2 to 18.4) "
                "below the recommended method.",
            ],
        ),
        (
            "enough",
            {"method": "direct", "most_accurate": "average", "gain": est(0.001, -0.005, 0.007)},
            ["A single call is enough for accuracy: reading every order gains at most 0.7 points (95% bound; measured: 0.1)."],
        ),
        (
            "enough",
            {"method": "direct", "most_accurate": "cheap", "gain": est(0.001, -0.005, 0.007)},
            ["A single call is enough for accuracy: cheap gains at most 0.7 points (95% bound; measured: 0.1)."],
        ),
        (
            "worse",
            {"method": "direct", "most_accurate": "average", "gain": est(-0.03, -0.049, -0.011)},
            ["Keep the single call: reading every order loses 3.0 points (1.1 to 4.9)."],
        ),
        (
            "open",
            {**OPEN, "needed": 643},
            [
                "Undecided after 1,000 items: average measures +1.4 points (-0.9 to 3.7).",
                "Cheapest: direct, 1 call per item. Most accurate: average, 2 calls per item.",
                "About 650 more items would decide it.",
            ],
        ),
        (
            "open",
            {**OPEN, "items": 1000, "units": 250, "needed": 643},
            [
                "Undecided after 1,000 items: average measures +1.4 points (-0.9 to 3.7).",
                "Cheapest: direct, 1 call per item. Most accurate: average, 2 calls per item.",
                "About 650 more questions would decide it.",
            ],
        ),
        (
            "open",
            {**OPEN, "needed": 20_001},
            [
                "Undecided after 1,000 items: average measures +1.4 points (-0.9 to 3.7).",
                "Cheapest: direct, 1 call per item. Most accurate: average, 2 calls per item.",
                "More than 20,000 more items would decide it.",
            ],
        ),
        (
            "open",
            {**OPEN, "most_accurate": "direct", "top": "cheap", "gain": est(-0.014, -0.037, 0.009)},
            [
                "Undecided after 1,000 items: cheap measures -1.4 points (-3.7 to 0.9).",
                "Cheapest: direct, 1 call per item. Most accurate: direct, 1 call per item.",
            ],
        ),
        ("none", {"reason": "33% of the calls are missing"}, ["No recommendation: 33% of the calls are missing."]),
    ],
)  # fmt: skip
def test_every_state_has_its_lines(state: str, given: dict[str, Any], told: list[str]) -> None:
    run = advised(state, **given)
    assert lines(run) == told
    assert told[0] in plain(lede_of(Finding(run))).replace("−", "-")
    claim = remedies_claim(Finding(run))
    assert claim is not None
    assert plain(claim.title).replace("−", "-") == told[0]


@pytest.mark.parametrize(
    ("top", "presentations", "named"),
    [
        ("average", 2, "reading every order"),
        ("average", 24, "average"),
        ("vote:orders=random:2", 2, "vote:orders=random:2"),
        ("cheap", 2, "cheap"),
    ],
)
def test_every_order_is_read_by_a_method_of_all_orders(
    top: str, presentations: int, named: str
) -> None:
    given = {"method": "direct", "top": top, "gain": est(-0.03, -0.049, -0.011)}
    protocol = {"name": "swap", "n_presentations": presentations}
    run = with_metrics(advised("worse", **given), protocol=protocol)
    assert lines(run) == [f"Keep the single call: {named} loses 3.0 points (1.1 to 4.9)."]


def test_the_same_sum_says_that_single_verdicts_are_not_reliable() -> None:
    reason = (
        "both orders agree on 43% of the compared items; those verdicts are right 61% of the time"
    )
    told = lines(advised("same", reason=reason))
    assert told[0].startswith("Single verdicts are not reliable here: 57% change with the order.")
    assert "One answer in each of two orders cannot show a better method" in told[0]
    assert (
        "Both orders agree on 43% of the compared items; those verdicts are right 61% of the time."
        in told[1]
    )
    unshown = lines(unproven(advised("same", reason=reason)))
    assert unshown[0].startswith("One answer in each of two orders")


def test_orders_that_always_agree_need_no_vote() -> None:
    run = replace(advised("same", reason="."), flips=Flips(n_flipped=0))
    assert lines(run) == [
        "Both orders agree on every item, so a vote over them gives the verdicts of a single call."
    ]


def unproven(run: RunData) -> RunData:
    """The same advice where no pull of the place is shown."""
    told = figures(run)
    kept = {key: told[key] for key in ("methods", "recommendation", "differences")}
    return plain_run((0.5, 0.48, 0.52), **kept)


def test_a_single_call_is_enough_for_accuracy_despite_bias() -> None:
    run = advised("enough", "direct", gain=est(0.001, -0.005, 0.007))
    assert lines(run)[0].startswith("A single call is enough for accuracy: reading every order")
    assert lines(unproven(run))[0].startswith("A single call is enough: reading every order")


@pytest.mark.parametrize(
    ("state", "given", "titles"),
    [
        ("open", OPEN, ["Apply the method: most accurate", "Apply the method: cheapest"]),
        ("open", {**OPEN, "most_accurate": "direct"}, ["Apply the method: cheapest"]),
        ("better", {"method": "average", "gain": est(0.04, 0.01, 0.07)}, ["Apply the method"]),
        ("enough", {"method": "direct", "gain": est(0.0, -0.01, 0.01)}, []),
        ("none", {"method": "average"}, []),
        ("same", {}, []),
    ],
)
def test_an_open_question_shows_both_commands(
    state: str, given: dict[str, Any], titles: list[str]
) -> None:
    run = advised(state, **given)
    object.__setattr__(run, "run", type(run.run)(asked={"model": "m", "data": "a.jsonl"}))
    assert [use.title for use in applications_of(Finding(run))] == titles


def test_an_older_file_recommends_nothing() -> None:
    run = advised("none", "average", best="average", alternative="cheap")
    assert Finding(run).recommended is None
    assert lines(run) == ["No recommendation: the audit used an earlier rule; run it again."]


def test_a_method_that_is_not_here_is_not_advised() -> None:
    run = advised("better", "pride", gain=est(0.04, 0.01, 0.07))
    assert (Finding(run).advised, lines(run)) == (Recommendation(), [])


def test_few_items_get_no_recommendation_even_if_one_is_recorded() -> None:
    metrics = figures(advised("better", "average", gain=est(0.04, 0.01, 0.07)))
    metrics["methods"]["direct"]["consistency"]["n"] = 15
    few = plain_run((0.5, 0.4, 0.6), n_items=15, **{
        key: metrics[key] for key in ("methods", "recommendation", "differences")
    })  # fmt: skip
    finding = Finding(few)
    assert (finding.recommends, finding.recommended, lines(few)) == (False, None, [])


def test_one_method_recommends_nothing() -> None:
    run = plain_run(recommendation={"state": "same"})
    assert remedies_claim(Finding(run)) is None


@pytest.mark.parametrize(
    ("gain", "up", "down", "told"),
    [
        ((0.00, -0.008, 0.011), False, False, "shows no gain (-0.8 to 1.1 points)"),
        ((0.02, 0.01, 0.03), True, False, "gains 2.0 points (1.0 to 3.0)"),
        ((-0.02, -0.03, -0.01), False, True, "loses 2.0 points (1.0 to 3.0)"),
    ],
)
@pytest.mark.parametrize("name", ["repeat", "repeat-mean", "repeat:samples=5"])
def test_asking_again_is_judged_by_its_paired_difference(
    name: str, gain: tuple[float, float, float], up: bool, down: bool, told: str
) -> None:
    metrics = figures(advised("none"))
    metrics["methods"][name] = {**row(DIRECT, 3.0), "calls_per_item": 3}
    metrics["differences"][f"{name}-direct"] = {KEY: est(*gain)}
    finding = Finding(with_metrics(advised("none"), **metrics))
    assert controls_of(finding) == ([name], [])
    measured = finding.difference(name, "direct", KEY)
    assert measured is not None
    assert (above(measured, 0), below(measured, 0)) == (up, down)
    words = plain(sentence("advice.remedies", finding, [name], [])).replace("−", "-")
    assert "Asking three times in the same order" in words
    assert told in words


def test_methods_of_other_orders_or_unknown_repeat_nothing() -> None:
    assert controls_of(Finding(advised("none"))) == ([], [])


def test_claims_use_the_joint_interval() -> None:
    finding = Finding(advised("none"))
    one, other = (
        finding.difference(*pair, KEY) for pair in (("average", "direct"), ("direct", "average"))
    )
    assert one == Estimate(value=0.164, low=0.142, high=0.184, n=1000)
    assert other == Estimate(value=-0.164, low=-0.184, high=-0.142, n=1000)


@pytest.mark.parametrize(("gain", "told"), [((0.16, 0.13, 0.19), True), ((0.1, -0.1, 0.3), False)])
def test_an_order_by_content_is_the_control_of_consistency(
    gain: tuple[float, float, float], told: bool
) -> None:
    run = advised("better", "average", most_accurate="average", gain=est(0.04, 0.01, 0.07))
    metrics = figures(run)
    metrics["methods"]["canonical"] = row((0.71, 0.68, 0.74), 1.0, (1.0, 1.0, 1.0))
    metrics["differences"]["canonical-average"] = {
        "consistent_accuracy": est(*(-x for x in gain[:1]), -gain[2], -gain[1])
    }
    finding = Finding(with_metrics(run, **metrics))
    assert controls_of(finding) == ([], ["canonical"])
    words = plain(sentence("advice.remedies", finding, [], ["canonical"]))
    assert ("average gets more items right in both orders than canonical: +" in words) is told


def test_a_method_on_other_items_is_marked() -> None:
    metrics = figures(advised("none"))
    del metrics["differences"]["cheap-direct"]
    table = main_table(Finding(with_metrics(advised("none"), **metrics)))
    remarks = {row.name: row.remark for row in table.rows}
    assert (remarks["cheap"], remarks["average"]) == ("fewer verdicts", "")


def test_with_ties_the_column_says_that_they_are_shared() -> None:
    assert main_table(Finding(advised("none"))).columns[0].title == "Accuracy"
    metrics = figures(advised("none"))
    metrics["methods"]["average"]["tie_rate"] = est(0.1, 0.08, 0.12)
    tied = main_table(Finding(with_metrics(advised("none"), **metrics)))
    assert tied.columns[0].title == "Accuracy, ties shared"
    assert [cell.best for cell in (row.cells[0] for row in tied.rows)] == ["", "", "highest"]
