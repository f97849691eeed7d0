"""Which method is recommended, and when none is."""

from unswayed.auditing.recommendation import (
    Candidate,
    Recommendation,
    recommend,
    steadiest,
)
from unswayed.decisions import Estimate
from unswayed.metrics.metric import Criterion

DIRECT = Candidate("direct", 1.0, 0.70)
PRIDE = Candidate("pride", 1.2, 0.84)
AVERAGE = Candidate("average", 2.0, 0.87)
AVERAGE_4 = Candidate("average:layouts=all", 4.0, 0.875)


def chosen(
    *candidates: Candidate,
    width: float,
    n_items: int = 500,
    unparsed: float = 0.0,
    missing: float = 0.0,
) -> Recommendation:
    """Recommend where every paired difference has the same half-width."""
    by_name = {one.name: one for one in candidates}

    def gain(first: str, second: str) -> Estimate:
        value = by_name[first].score - by_name[second].score
        return Estimate(value=value, low=value - width, high=value + width, n=n_items)

    return recommend(
        by_name,
        gain,
        criterion=Criterion("accuracy", "more accurate"),
        n_items=n_items,
        unparsed=unparsed,
        missing=missing,
    )


def test_the_cheapest_method_that_cannot_be_told_from_the_best_is_recommended() -> None:
    # average is .005 below average of 4, within .02; pride is .035 below, direct .175.
    found = chosen(DIRECT, PRIDE, AVERAGE, AVERAGE_4, width=0.02)
    assert (found.method, found.best) == ("average", "average:layouts=all")
    assert "cannot be told from" in found.reason


def test_the_best_method_below_that_price_is_named_if_it_beats_a_single_call() -> None:
    assert chosen(DIRECT, PRIDE, AVERAGE, width=0.02).alternative == "pride"
    assert chosen(DIRECT, AVERAGE, width=0.02).alternative is None
    # pride is .14 above direct, but the interval of half-width .15 contains 0
    assert chosen(DIRECT, PRIDE, Candidate("average", 2.0, 1.0), width=0.15).alternative is None


def test_a_single_call_is_recommended_where_nothing_is_measurably_better() -> None:
    found = chosen(DIRECT, PRIDE, AVERAGE, width=0.3)
    assert found.method == "direct"
    assert found.reason == "no method is measurably more accurate than a single call"


def test_at_equal_price_the_better_method_is_taken() -> None:
    found = chosen(Candidate("vote", 2.0, 0.86), AVERAGE, DIRECT, width=0.02)
    assert found.method == "average"


def test_the_best_method_is_recommended_where_everything_cheaper_is_worse() -> None:
    found = chosen(DIRECT, AVERAGE, width=0.01)
    assert found.method == found.best == "average"


def test_nothing_is_recommended_from_too_few_items_or_unreadable_or_missing_answers() -> None:
    assert chosen(DIRECT, AVERAGE, width=0.01, n_items=19).method is None
    assert "too few items" in chosen(DIRECT, AVERAGE, width=0.01, n_items=19).reason
    assert "could not be read" in chosen(DIRECT, AVERAGE, width=0.01, unparsed=0.21).reason
    assert "missing" in chosen(DIRECT, AVERAGE, width=0.01, missing=0.5).reason
    assert chosen(width=0.01).method is None


def test_a_cheaper_method_whose_interval_ends_at_no_difference_is_not_below_the_best() -> None:
    # .5 - .75 + .25 is exactly 0 in float64
    cheap, best = Candidate("pride", 1.2, 0.5), Candidate("average", 2.0, 0.75)
    assert chosen(Candidate("direct", 1.0, 0.125), cheap, best, width=0.25).method == "pride"


def test_a_method_that_does_not_beat_a_single_call_is_not_recommended_for_being_cheap() -> None:
    # cheap cannot be told from average (-.03), but neither from the single call (+.02)
    cheap, best = Candidate("cheap", 1.1, 0.52), Candidate("average", 2.0, 0.55)
    found = chosen(Candidate("direct", 1.0, 0.50), cheap, best, width=0.04)
    assert (found.method, found.alternative) == ("average", None)


def steady(*candidates: Candidate, harmless: tuple[str, ...], width: float) -> str | None:
    by_name = {one.name: one for one in candidates}

    def gain(first: str, second: str) -> Estimate:
        value = by_name[first].score - by_name[second].score
        return Estimate(value=value, low=value - width, high=value + width)

    found = chosen(DIRECT, width=0.02)
    return steadiest(found, by_name, gain, harmless).steadiest


def test_the_steadiest_is_the_cheapest_of_the_steady_that_costs_no_accuracy() -> None:
    direct, pride = Candidate("direct", 1.0, 0.47), Candidate("pride", 1.02, 0.90)
    additive, toss = Candidate("additive", 1.6, 0.91), Candidate("toss", 1.4, 1.0)
    harmless = ("pride", "additive")
    assert steady(direct, additive, pride, toss, harmless=harmless, width=0.05) == "pride"
    assert steady(direct, additive, pride, harmless=harmless, width=0.005) == "additive"
    assert steady(direct, toss, harmless=harmless, width=0.05) is None
    assert steady(direct, pride, harmless=harmless, width=0.5) is None
