"""The sentence about what changed between runs."""

from dataclasses import replace

from report_samples import sample_run

from unswayed.decisions import Estimate
from unswayed.report import render_report
from unswayed.report.changes import changes_of
from unswayed.report.wording import plain_text

CHANGES = {
    "accuracy": Estimate(value=0.181, low=0.152, high=0.21, n=800),
    "consistency": Estimate(value=-0.02, low=-0.05, high=0.01, n=800),
    "rstd": Estimate(value=None, reason="no gold"),
}


def test_differences_are_told_in_points_with_their_intervals() -> None:
    told = plain_text(changes_of(replace(sample_run(n_items=50), changes=CHANGES), "base"))
    assert told == (
        "Compared item by item with base (800 items): accuracy +18.1 points, 95\u202f% interval "
        "+15.2 to +21.0; consistency \u22122.0 points, 95\u202f% interval \u22125.0 to +1.0."
    )


def test_a_run_that_shares_nothing_says_nothing() -> None:
    assert changes_of(sample_run(n_items=50), "base") == ()


def test_the_page_of_two_runs_tells_what_changed() -> None:
    run = sample_run(n_items=50)
    page = render_report([run, replace(run, changes=CHANGES)])
    assert "Compared item by item with" in page
    assert "Compared item by item with" not in render_report([run, run])
