"""What each section claims follows from intervals: states and numbers, before a word is said."""

from dataclasses import replace
from typing import Any

import pytest

from judges import GROUPS, est, figures, fixed, plain_run, sample_run, shares, with_metrics
from page_text import printed
from unswayed.auditing.records import RunRecord
from unswayed.model.decisions import Estimate
from unswayed.model.permutations import ORDER_SETS, exposure, orders
from unswayed.report.claims import (
    Bias,
    Cause,
    ClaimGroups,
    Trend,
    balanced,
    bias_of,
    cause_of,
    changes_of,
    groups_of,
)
from unswayed.report.data import RunData
from unswayed.report.findings import Finding
from unswayed.report.keys import key_figures
from unswayed.report.page import render_report
from unswayed.report.words import plain, sentence

EVEN = (0.50, 0.48, 0.52)


def even(share: float) -> list[dict[str, Any]]:
    return shares(share, 1 - share, n=1000)


def bias(position: float, label: float) -> Bias:
    alone = {"order": {"position_rate": even(position)}, "label": {"label_rate": even(label)}}
    return bias_of(Finding(plain_run(protocols=alone)))


@pytest.mark.parametrize("name", ORDER_SETS)
def test_orders_are_balanced_if_exposure_is_even(name: str) -> None:
    sizes = [2] if name == "swap" else range(2, 7)
    even = all(len(set(row)) == 1 for n in sizes for row in exposure(orders(name, n)).counts)
    protocol = {"name": name, "n_presentations": 2}
    assert balanced(Finding(plain_run(protocol=protocol))) is even


def test_clear_flips_are_plain_without_a_named_position() -> None:
    # at least 1 - .74 = 26% of the verdicts flip, more than the 10% that matter
    few = Finding(plain_run((0.40, 0.30, 0.50), (0.57, 0.40, 0.74), n_items=35, n_flipped=15))
    assert few.flips_are_plain
    near = Finding(plain_run((0.50, 0.44, 0.56), (0.93, 0.88, 0.98), n_items=100, n_flipped=7))
    assert not near.flips_are_plain
    assert near.widest is not None
    assert (near.widest.kind, near.widest.index, near.settling) == ("position", 0, 400)


@pytest.mark.parametrize(("unparsed", "matters"), [(100, False), (101, True), (900, False)])
def test_some_unparsed_matter_beside_the_finding(unparsed: int, matters: bool) -> None:
    calls = {"planned": 2000, "made": 2000, "unparsed": unparsed}
    assert Finding(with_metrics(plain_run(), calls=calls)).unparsed_matters is matters
    calls |= {"planned": 3000, "made": 3000, "replies": 2000}  # 1,000 second calls
    assert Finding(with_metrics(plain_run(), calls=calls)).unparsed_matters is matters


@pytest.mark.parametrize(
    ("position", "label", "wins", "places"),
    [
        (0.7, 0.6, (True, True), (0, 0)),
        (0.3, 0.6, (True, True), (1, 0)),
        (0.7, 0.5, (True, False), (0, 0)),
        (0.5, 0.4, (False, True), (0, 1)),
        (0.5, 0.5, (False, False), (0, 0)),
    ],
)
def test_position_is_told_from_label(
    position: float, label: float, wins: tuple[bool, bool], places: tuple[int, int]
) -> None:
    found = bias(position, label)
    assert found.position is not None
    assert found.label is not None
    assert (found.position.wins, found.label.wins) == wins
    assert (found.position.excluded, found.label.excluded) == wins  # far from their limits
    assert (found.position.index, found.label.index) == places
    assert found.winning == ((places[1],) if wins[1] else ())


def test_an_interval_that_is_out_by_chance_wins_nothing() -> None:
    near = [est(0.522, 0.502, 0.542), est(0.478, 0.458, 0.498)]  # 2.2 standard errors, 2.4 needed
    alone = {"order": {"position_rate": near}, "label": {"label_rate": even(0.5)}}
    finding = Finding(plain_run(EVEN, protocols=alone))
    found = bias_of(finding)
    assert found.position is not None
    assert (found.position.excluded, found.position.wins, finding.looks) == (True, False, 3)


@pytest.mark.parametrize(("strong", "weak"), [("position", "label"), ("label", "position")])
def test_lone_interval_beside_a_finding_is_called_chance(strong: str, weak: str) -> None:
    near = [est(0.522, 0.502, 0.542), est(0.478, 0.458, 0.498)]
    rates = {strong: shares(0.7, 0.3, n=1000), weak: near}
    alone = {
        "order": {"position_rate": rates["position"]},
        "label": {"label_rate": rates["label"]},
    }
    finding = Finding(plain_run(EVEN, protocols=alone))
    said = plain(sentence("bias.bias", finding, bias_of(finding)))
    assert "Both intervals exclude 50%. One of three such intervals can miss by chance" in said
    assert f"so the {weak} is not a finding" in said
    rates[weak] = shares(0.6, 0.4, n=1000)
    alone = {
        "order": {"position_rate": rates["position"]},
        "label": {"label_rate": rates["label"]},
    }
    finding = Finding(plain_run(EVEN, protocols=alone))
    assert "by chance" not in plain(sentence("bias.bias", finding, bias_of(finding)))


def test_one_protocol_cannot_tell_position_from_label() -> None:
    found = bias_of(Finding(plain_run()))
    assert found.together is not None
    assert (found.together.index, found.together.wins) == (0, True)
    assert found.position is found.label is None


def test_several_favoured_labels_are_all_found() -> None:
    third, both = shares(0.2, 0.2, 0.4, 0.2, n=1000), shares(0.3, 0.2, 0.3, 0.2, n=1000)
    rows = {
        "coupled": {"consistency": est(0.6, 0.57, 0.63), "position_rate": third},
        "order": {"position_rate": third},
        "label": {"label_rate": both},
    }
    found = bias_of(Finding(replace(plain_run(protocols=rows), run=RunRecord())))
    assert found.position is not None
    assert (found.position.index, found.winning) == (2, (0, 2))


@pytest.mark.parametrize(
    ("order", "label", "cause"),
    [
        ((0.57, 0.54, 0.60), (0.84, 0.82, 0.87), Cause.POSITION),
        ((0.84, 0.82, 0.87), (0.57, 0.54, 0.60), Cause.LABEL),
        ((0.80, 0.78, 0.82), (0.81, 0.79, 0.83), Cause.SAME),
        ((0.80, 0.70, 0.90), (0.81, 0.71, 0.91), Cause.UNTOLD),
    ],
)
def test_the_cause_is_named_only_where_intervals_are_disjoint(
    order: tuple[float, float, float], label: tuple[float, float, float], cause: Cause
) -> None:
    rows = {"order": {"consistency": est(*order)}, "label": {"consistency": est(*label)}}
    found = cause_of(Finding(plain_run(protocols=rows)))
    assert found is not None
    assert found[0] is cause
    measured = {"coupled": 0.43, "order": order[0], "label": label[0]}
    assert {k: e.value for k, e in found[1].items()} == measured


@pytest.mark.parametrize(
    ("order", "label", "ignores"),
    [
        ((0.50, 0.47, 0.53), (0.50, 0.48, 0.52), True),
        ((0.56, 0.53, 0.59), (0.50, 0.48, 0.52), False),  # right more often than by chance
        ((0.57, 0.49, 0.65), (0.50, 0.48, 0.52), False),  # not shown to be below both together
    ],
)
def test_judge_that_ignores_letters_has_no_separate_effects(
    order: tuple[float, float, float], label: tuple[float, float, float], ignores: bool
) -> None:
    rows = {
        name: {
            "consistency": est(*ends),
            "accuracy": est(*right),
            "position_rate": [est(0.5, 0.4, 0.6)] * 2,
            "label_rate": [est(0.5, 0.4, 0.6)] * 2,
        }
        for name, ends, right in (
            ("coupled", (0.43, 0.40, 0.46), (0.66, 0.63, 0.69)),
            ("order", (0.84, 0.82, 0.87), order),
            ("label", (0.10, 0.05, 0.15), label),
        )
    }
    finding = Finding(plain_run(protocols=rows))
    found = cause_of(finding)
    assert found is not None
    assert (found[0] is Cause.UNFOLLOWED) is ignores
    assert (bias_of(finding).label is None) >= ignores
    assert ("does not follow the printed labels" in printed(finding.run, 110)) is ignores
    thresholds = {
        "methods": {"direct": {"X0": 0.5}},
        "by_presentation": {},
        "single": None,
        "cells": None,
        "text": "Why.",
    }
    page = render_report([with_metrics(finding.run, thresholds=thresholds)])
    assert ("Thresholds on P(A)" in page) is not ignores


def test_two_protocols_tell_what_one_change_alone_does() -> None:
    rows = {"label": {"consistency": est(0.8, 0.7, 0.9)}}
    found = cause_of(Finding(plain_run(protocols=rows)))
    assert found is not None
    assert found[0] is Cause.LABELS_ALONE


def test_one_protocol_has_no_cause() -> None:
    assert cause_of(Finding(plain_run())) is None


def grouped(*consistencies: tuple[float, float, float], first: Any = None) -> ClaimGroups:
    rows = {
        name: {
            "direct": {
                "consistency": est(*c, 100),
                **({} if first is None else {"position_rate": even(first[i])}),
            }
        }
        for i, (name, c) in enumerate(zip(GROUPS, consistencies, strict=False))
    }
    return groups_of(Finding(plain_run(groups=rows)))


def test_groups_are_named_only_where_worst_and_best_are_apart() -> None:
    found = grouped((0.4, 0.3, 0.5), (0.2, 0.15, 0.25), (0.6, 0.55, 0.65))
    assert [name for name, _ in found.rows] == ["chess", "law", "soup"]  # the worst first
    assert found.differ
    assert found.trend is Trend.NONE  # no shares by position
    assert not grouped((0.4, 0.3, 0.5), (0.5, 0.4, 0.6)).differ


def test_small_extreme_group_hides_no_other() -> None:
    found = grouped((0.2, 0.15, 0.25), (0.6, 0.55, 0.65), (1.0, 0.1, 1.0))
    assert found.unlike == (0, 1)
    assert not found.differ
    assert grouped((0.4, 0.3, 0.5), (0.5, 0.4, 0.6), (1.0, 0.1, 1.0)).unlike is None


@pytest.mark.parametrize(
    ("first", "trend"),
    [((0.8, 0.6), Trend.WITH), ((0.6, 0.8), Trend.UNEVEN), ((0.7, 0.71), Trend.NONE)],
)
def test_the_position_rate_follows_consistency_or_does_not(
    first: tuple[float, float], trend: Trend
) -> None:
    assert grouped((0.2, 0.15, 0.25), (0.6, 0.55, 0.65), first=first).trend is trend


def test_groups_that_all_keep_everything_do_not_differ() -> None:
    row = {"consistency": est(1.0, 0.99, 1.0, 400)}
    found = groups_of(Finding(plain_run(groups={name: {"direct": row} for name in ("g0", "g7")})))
    assert (len(found.rows), found.differ) == (2, False)


def test_one_group_is_nothing_to_compare() -> None:
    rows = {"law": {"direct": {"consistency": fixed(1.0, 10)}}}
    assert len(groups_of(Finding(plain_run(groups=rows))).rows) == 1


def test_a_flip_that_cannot_be_read_is_part_of_the_key_figure() -> None:
    flips = {"total": 570, "first": 500, "last": 20, "unread": 30, "ties": 20}
    figure = key_figures(Finding(plain_run(n_flipped=570, flips=flips)))[1]
    assert figure.label.startswith("of verdicts change")
    assert figure.estimate is not None
    assert figure.estimate.value == pytest.approx(0.57)
    assert "cannot be read" in figure.label


def test_change_beyond_noise_is_the_key_figure_if_known() -> None:
    again = {"changed": est(0.06, 0.05, 0.07), "across": est(0.57, 0.54, 0.6),
             "beyond": est(0.51, 0.48, 0.54), "temperature": 1.0}  # fmt: skip
    finding = Finding(plain_run(repeats=again))
    figure = key_figures(finding)[1]
    assert figure.estimate is not None
    assert (figure.estimate.value, figure.line, figure.flow) == (0.51, None, "")
    other = Finding(plain_run())
    shares = [key_figures(run, [finding, other])[1] for run in (finding, other)]
    assert {own.label for own in shares} == {"of verdicts change when the answers change places"}
    assert shares[0].estimate == shares[1].estimate
    assert plain(sentence("phrases.noise", finding)) == (
        "On a repeated call (temperature 1), 6% of verdicts change in the same order and 57% in another, "
        "so 51 points come from the order (48 to 54)."
    )
    none = Finding(plain_run(repeats={**again, "beyond": est(0.01, -0.02, 0.04)}))
    assert "so another order shows no further change (1 point, −2 to 4)." in plain(
        sentence("phrases.noise", none)
    )


def labels(run: RunData) -> list[str]:
    """The two words that tell what each key figure counts."""
    return [" ".join(figure.label.split()[1:3]) for figure in key_figures(Finding(run))]


def test_key_figures_are_four_with_and_without_gold() -> None:
    run = sample_run(n_items=200)
    assert labels(run) == ["more comparisons", "verdicts change", "of single", "items are"]
    rows = {
        name: {k: v for k, v in row.items() if "accuracy" not in k}
        for name, row in figures(run)["methods"].items()
    }
    without = with_metrics(run, methods=rows)
    assert labels(without) == ["more comparisons", "verdicts change", *["choices fall"] * 2]
    assert labels(sample_run(4, 100))[:2] == ["more choices", "verdicts change"]


def test_differences_between_runs_hold_jointly() -> None:
    gain = Estimate(value=0.1, low=0.0, high=0.3, n=50)
    nothing = Estimate(value=None, reason="no gold")
    assert changes_of({"accuracy": gain, "rstd": nothing}, 1) == {"accuracy": gain}
    both = changes_of({"accuracy": gain, "rstd": gain}, 2)
    # four looks: a normal quantile of 1 - .025 / 4, 2.4977, over 1.9600 is 1.2743
    assert both["rstd"].low == pytest.approx(0.1 - 1.2743 * 0.1, abs=1e-4)
    assert both["accuracy"].high == pytest.approx(0.1 + 1.2743 * 0.2, abs=1e-4)
    wide = Estimate(value=-0.3, low=-0.95, high=0.3, n=6)
    assert changes_of({"accuracy": wide, "rstd": gain}, 2)["accuracy"].low == -1.0
