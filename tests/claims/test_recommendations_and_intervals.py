"""The record of claims in small: the same harness, few trials, bounds that these seeds keep."""

from dataclasses import replace

from claim_rates import headlines, intervals, recommendations
from unswayed.backends.simulated import simulated_items


def test_on_a_judge_without_bias_no_remedy_is_named() -> None:
    for seed in (9, 10):
        found = recommendations.recommended(
            f"simulated/judge?{recommendations.UNBIASED}&seed={seed}",
            simulated_items(200, 2, seed=1000 + seed),
            1000 + seed,
        )
        assert found["method"] in (None, "direct")


def test_intervals_of_differences_cover_where_few_items_differ() -> None:
    steady = intervals.SETTINGS[-1]
    assert steady.judge == intervals.STEADY
    made = list(intervals.coverage(replace(steady, items=60), 120, size=600))
    assert len(made) == len(intervals.METHODS) - 1 + len(intervals.SINGLE) + 1
    for rate in made:
        assert rate.share >= 0.9, rate


def test_the_headline_names_no_bias_of_a_judge_without_any() -> None:
    assert not any(headlines.biased(4, "all", 6))
