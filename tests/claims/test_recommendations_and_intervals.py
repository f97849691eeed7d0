"""The record of claims in small: the same harness, few trials, bounds that these seeds keep."""

from dataclasses import replace

import numpy as np

from claim_rates import headlines, intervals, ladder


def test_recommendation_loses_less_than_a_single_call() -> None:
    audits = [*ladder.drawn(2, 2, 500, sizes=[300]), *ladder.drawn(1, 4, 100, sizes=[100])]
    told = [audit for audit in audits if audit.cell.endswith("probabilities")]
    followed = np.mean([audit.loss(audit.followed) for audit in told])
    assert followed < np.mean([audit.loss("direct") for audit in told]) / 3
    (named,) = ladder.controls(audits)
    assert (named.count, named.trials) == (0, len(audits))


def test_averaging_costs_judge_that_is_surer_when_wrong() -> None:
    audits = list(ladder.hostile(2, "when wrong", 800, sizes=[1000]))
    averaged = np.mean([audit.loss("average") for audit in audits])
    assert averaged > 0.02
    assert np.mean([audit.loss(audit.followed) for audit in audits]) < averaged / 3


def test_coin_gold_is_rarely_called_better() -> None:
    made = list(ladder.coins(1))
    assert len(made) == 2 * len(ladder.COIN_CELLS) + 2
    together = [rate for rate in made if rate.trials == len(ladder.COIN_CELLS)]
    assert [rate.count for rate in together] == [0, 0]


def test_intervals_of_differences_cover_where_few_items_differ() -> None:
    steady = intervals.SETTINGS[-1]
    assert steady.judge == intervals.STEADY
    made = list(intervals.coverage(replace(steady, items=60), 60, size=300))
    assert len(made) == len(intervals.METHODS) - 1 + len(intervals.SINGLE) + 1
    for rate in made:
        assert rate.share >= 0.9, rate


def test_the_headline_names_no_bias_of_a_judge_without_any() -> None:
    assert not any(headlines.biased(4, "all", 3))
