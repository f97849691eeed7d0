"""Sentences follow from numbers: headline, lede, claims of the sections."""

from dataclasses import replace
from typing import Any

import pytest
from report_samples import GROUPS, est, figures, fixed, plain_run, sample_run, with_metrics

from unswayed.auditing.records import Run
from unswayed.report import headline, lede
from unswayed.report.claims import Claim, bias_claim, cause_claim, groups_claim, items_claim
from unswayed.report.findings import find
from unswayed.report.keys import key_figures
from unswayed.report.lead import missing_calls
from unswayed.report.wording import plain_text

EVEN = (0.50, 0.48, 0.52)
STEADY = (0.95, 0.93, 0.97)


def title(claim: Claim | None) -> str:
    assert claim is not None
    return plain_text(claim.title)


def body(claim: Claim | None) -> str:
    assert claim is not None
    return " ".join(plain_text(one) for one in claim.lines)


def rates(share: float, half: float = 0.02) -> list[dict[str, Any]]:
    return [
        est(share, share - half, share + half),
        est(1 - share, 1 - share - half, 1 - share + half),
    ]


def test_the_headline_counts_flips_and_names_the_favoured_place() -> None:
    assert headline(plain_run()) == (
        "This judge picks whichever answer comes first 78\u202f% of the time; "
        "570 of its 1,000 verdicts flip when the two answers change places."
    )


def test_the_headline_speaks_of_the_last_answer_where_that_one_wins() -> None:
    assert headline(plain_run((0.4, 0.37, 0.43))).startswith(
        "This judge picks whichever answer comes last 60\u202f% of the time"
    )


@pytest.mark.parametrize(
    ("flipped", "words"),
    [(0, "none of its 1,000 verdicts flip"), (1, "1 of its 1,000 verdicts flips")],
)
def test_the_headline_counts_none_and_one(flipped: int, words: str) -> None:
    assert words in headline(plain_run(n_flipped=flipped))


def test_above_ten_thousand_items_flips_are_a_share() -> None:
    run = plain_run(n_items=20_000, n_flipped=11_400)
    assert "57\u202f% of its verdicts flip" in headline(run)


def test_more_than_two_candidates_name_the_option_and_what_is_expected() -> None:
    run = sample_run(4, 200)
    assert headline(run).startswith("This judge prefers the third option: ")
    assert headline(run).endswith("\u202f% where 25\u202f% is expected.")


def test_no_bias_says_how_small_a_bias_would_not_have_shown() -> None:
    run = plain_run(EVEN, STEADY, n_flipped=50)
    assert headline(run) == (
        "No position or label bias found in 1,000 items: the first answer is picked "
        "50.0\u202f% of the time (48.0–52.0), and 50 verdicts flip."
    )
    # half-width of 48-52 is 2 points
    assert "A bias smaller than 2.0 points would not show" in lede(run)


def test_flips_without_a_favoured_position_are_told() -> None:
    run = plain_run(EVEN, (0.7, 0.67, 0.73), n_flipped=300)
    assert headline(run) == "This judge favours no position, yet 300 of 1,000 verdicts flip."


def test_too_few_items_say_how_many_would_do() -> None:
    run = plain_run((0.50, 0.44, 0.56), (0.93, 0.88, 0.98), n_items=100, n_flipped=7)
    assert headline(run) == (
        "Too few items to tell: with 100 items the first-position rate lies anywhere between 44 "
        "and 56\u202f%. About 400 items would settle ±3 points."
    )


def test_flips_beyond_doubt_are_told_though_no_position_can_be_named() -> None:
    # at least 1 - .74 = 26 % of the verdicts flip, more than the 10 % that matter
    run = plain_run((0.40, 0.30, 0.50), (0.57, 0.40, 0.74), n_items=35, n_flipped=15)
    assert headline(run).startswith(
        "15 of 35 verdicts flip when the two answers change places; too few items to tell whether "
        "a position is favoured: with 35 items the first-position rate lies anywhere between 30 "
        "and 50\u202f%."
    )


def test_mostly_unparsed_describes_the_rest_only() -> None:
    calls = {"planned": 2000, "made": 2000, "unparsed": 900}
    run = with_metrics(plain_run(), calls=calls)
    assert headline(run) == (
        "900 of 2,000 answers could not be read, so this report describes the other 1,100 only."
    )


def test_some_unparsed_are_told_in_the_lede() -> None:
    few, more = (
        with_metrics(plain_run(), calls={"planned": 2000, "made": 2000, "unparsed": u})
        for u in (100, 101)
    )
    assert "could not be read" not in lede(few)
    assert "101 of 2,000 answers could not be read" in lede(more)


def test_missing_calls_are_counted() -> None:
    calls = {"planned": 2000, "made": 1500, "cached": 300, "failed": 20}
    found = find(with_metrics(plain_run(), calls=calls))
    assert missing_calls(found) == "200 of 2,000 calls are missing; the same command continues."
    assert missing_calls(find(plain_run())) is None


def test_without_gold_the_lede_says_what_is_not_known() -> None:
    run = plain_run()
    direct = {k: v for k, v in figures(run)["methods"]["direct"].items() if "accuracy" not in k}
    assert "There are no gold labels" in lede(with_metrics(run, methods={"direct": direct}))
    assert "gold" not in lede(run)


@pytest.mark.parametrize(
    ("position", "label", "said"),
    [
        (0.7, 0.6, "The first position wins, and the label A helps it."),
        (0.3, 0.6, "The last position wins, and the label A works against it."),
        (0.7, 0.5, "The first position wins; no label does."),
        (0.5, 0.4, "The label B wins, wherever it stands."),
        (0.5, 0.5, "Neither a position nor a label wins."),
    ],
)
def test_the_bias_title_tells_position_from_label(position: float, label: float, said: str) -> None:
    alone = {"order": {"position_rate": rates(position)}, "label": {"label_rate": rates(label)}}
    assert title(bias_claim(find(plain_run(protocols=alone)))) == said


@pytest.mark.parametrize(
    ("position", "label", "said"),
    [
        (0.7, 0.6, "Both intervals exclude 50\u202f%."),
        (0.7, 0.5, "The first interval excludes 50\u202f%, the second contains it."),
        (0.5, 0.6, "The first interval contains 50\u202f%, the second excludes it."),
        (0.5, 0.5, "Both intervals contain 50\u202f%."),
    ],
)
def test_the_bias_text_says_which_intervals_exclude(
    position: float, label: float, said: str
) -> None:
    alone = {"order": {"position_rate": rates(position)}, "label": {"label_rate": rates(label)}}
    assert body(bias_claim(find(plain_run(protocols=alone)))).endswith(said)


def test_an_interval_that_is_out_by_chance_is_called_no_finding() -> None:
    near = [est(0.522, 0.502, 0.542), est(0.478, 0.458, 0.498)]  # 2.2 standard errors, 2.4 needed
    alone = {"order": {"position_rate": near}, "label": {"label_rate": rates(0.5)}}
    claim = bias_claim(find(plain_run((0.5, 0.48, 0.52), protocols=alone)))
    assert title(claim) == "Neither a position nor a label wins."
    assert body(claim).endswith("Of three such shares one may by chance: that is no finding.")


def test_one_protocol_cannot_tell_position_from_label_and_says_so() -> None:
    claim = bias_claim(find(plain_run()))
    assert title(claim) == "The first answer wins."
    assert "cannot be told apart" in body(claim)


@pytest.mark.parametrize(
    ("order", "label", "said"),
    [
        ((0.57, 0.54, 0.60), (0.84, 0.82, 0.87), "Position matters more than the letter."),
        ((0.84, 0.82, 0.87), (0.57, 0.54, 0.60), "The letter matters more than the position."),
        ((0.80, 0.78, 0.82), (0.81, 0.79, 0.83), "Position and label weigh about the same."),
        ((0.80, 0.70, 0.90), (0.81, 0.71, 0.91), "Position and label cannot be told apart."),
    ],
)
def test_the_cause_is_named_only_where_intervals_are_disjoint(
    order: tuple[float, float, float], label: tuple[float, float, float], said: str
) -> None:
    rows = {"order": {"consistency": est(*order)}, "label": {"consistency": est(*label)}}
    assert title(cause_claim(find(plain_run(protocols=rows)))) == said


def test_one_protocol_has_no_cause_section() -> None:
    assert cause_claim(find(plain_run())) is None


def groups(*consistencies: tuple[float, float, float]) -> dict[str, Any]:
    return {
        name: {"direct": {"consistency": est(*c, 100)}}
        for name, c in zip(GROUPS, consistencies, strict=False)
    }


def test_groups_are_named_only_where_worst_and_best_are_disjoint() -> None:
    apart = groups((0.2, 0.15, 0.25), (0.4, 0.3, 0.5), (0.6, 0.55, 0.65))
    near = groups((0.4, 0.3, 0.5), (0.5, 0.4, 0.6))
    assert title(groups_claim(find(plain_run(groups=apart)))) == "Worst on law, best on soup."
    assert (
        title(groups_claim(find(plain_run(groups=near))))
        == "No group differs measurably from the others."
    )


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (2, "With two groups, chance alone marks one in about every ten reports."),  # 0.1 marks
        (10, "With ten groups, chance alone marks one in about every two reports."),  # 0.5 marks
        (50, "With 50 groups, chance alone marks about 2.5 in each column."),  # 5 % of 50
    ],
)
def test_groups_say_how_many_marks_chance_alone_would_give(n: int, said: str) -> None:
    made = {f"g{i}": {"direct": {"consistency": est(0.5, 0.4, 0.6, 50)}} for i in range(n)}
    claim = groups_claim(find(plain_run(groups=made)))
    assert claim is not None
    assert claim.note is not None
    assert plain_text(claim.note).endswith(said)


def test_flipped_items_say_where_the_judge_stayed() -> None:
    run = plain_run(n_flipped=570, flips={"total": 570, "first": 550, "last": 15})
    run = replace(run, flipped=sample_run().flipped[:1])
    claim = items_claim(find(run))
    assert title(claim) == "In 550 of 570 flipped items the judge stayed with the first position."
    assert body(claim).startswith(
        "In 15 it stayed with the last one, and in 5 one of the two verdicts is a tie."
    )


def test_all_flips_one_way_are_told_as_all() -> None:
    run = plain_run(n_flipped=570, flips={"total": 570, "first": 570, "last": 0})
    assert title(items_claim(find(run))) == (
        "In all 570 flipped items the judge stayed with the first position."
    )


def test_no_flip_is_a_finding_of_its_own() -> None:
    claim = items_claim(find(plain_run(n_flipped=0)))
    assert (title(claim), claim.lines) == ("No verdict changed with the order.", ())


def test_a_share_by_construction_is_not_a_group_finding() -> None:
    rows = {"law": {"direct": {"consistency": fixed(1.0, 10)}}}
    assert groups_claim(find(plain_run(groups=rows))) is None


def test_several_favoured_labels_are_all_named() -> None:
    third = [est(0.2, 0.18, 0.22), est(0.2, 0.18, 0.22), est(0.4, 0.38, 0.42), est(0.2, 0.18, 0.22)]
    both = [est(0.3, 0.28, 0.32), est(0.2, 0.18, 0.22), est(0.3, 0.28, 0.32), est(0.2, 0.18, 0.22)]
    rows = {
        "coupled": {"consistency": est(0.6, 0.57, 0.63), "position_rate": third},
        "order": {"position_rate": third},
        "label": {"label_rate": both},
    }
    run = replace(plain_run(protocols=rows), run=Run())
    assert title(bias_claim(find(run))) == (
        "The third position wins, and so do the labels A and C."
    )


def test_mostly_ties_are_told_as_ties() -> None:
    run = plain_run(n_flipped=122, flips={"total": 122, "first": 37, "last": 7})
    run = replace(run, flipped=sample_run().flipped[:1])
    claim = items_claim(find(run))
    # 122 - 37 - 7 = 78
    assert title(claim) == "In 78 of 122 flipped items one of the two verdicts is a tie."
    assert body(claim).startswith("In 37 the judge stayed with the first position, in 7 with the")


def test_flips_that_are_no_change_of_winner_are_counted_beside_the_flips() -> None:
    flips = {"total": 570, "first": 500, "last": 20, "unread": 30, "ties": 20}
    run = plain_run(n_flipped=570, flips=flips)
    assert headline(run).endswith(
        "570 of its 1,000 verdicts flip when the two answers change places (30 with an answer that "
        "could not be read and 20 with a tie)."
    )
    figure = key_figures(find(run))[1]
    assert (figure.number, figure.label) == (
        "57.0",
        "of verdicts flip or cannot be read when the answers change places",
    )


def test_nothing_wins_where_too_few_items_were_asked_to_tell() -> None:
    run = plain_run((0.95, 0.8, 0.99), (0.1, 0.0, 0.3), n_items=12, n_flipped=10)
    assert headline(run).startswith("Too few items to tell")
    assert plain_text(bias_claim(find(run)).title) == "No position can be named."


def test_groups_that_are_alike_are_not_given_a_range() -> None:
    row = {"consistency": est(1.0, 0.99, 1.0, 400)}
    groups = {name: {"direct": row} for name in ("g0", "g7")}
    claim = groups_claim(find(plain_run(groups=groups)))
    assert claim is not None
    assert plain_text(claim.lines[0]) == "Consistency is 100.0\u202f% in every group."
