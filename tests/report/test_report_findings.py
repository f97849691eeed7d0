"""Which state a run is in, decided from its intervals."""

from dataclasses import replace
from typing import Any

import pytest

from judges import est, figures, null, plain_run, shares, with_metrics
from unswayed.auditing.records import RunRecord
from unswayed.model.decisions import Estimate
from unswayed.report.findings import Finding, State
from unswayed.report.intervals import apart
from unswayed.report.words import plain, sentence

EVEN = (0.50, 0.48, 0.52)


def label_row(share: float, low: float, high: float) -> dict[str, Any]:
    return {"label": {"label_rate": [est(share, low, high), est(1 - share, 1 - high, 1 - low)]}}


STEADY, SHAKY = (0.95, 0.93, 0.97), (0.70, 0.67, 0.73)


@pytest.mark.parametrize(
    ("first", "steady", "items", "state", "favoured", "recommends"),
    [
        ((0.78, 0.76, 0.80), STEADY, 1000, State.POSITION, 0, True),
        ((0.40, 0.37, 0.43), STEADY, 1000, State.POSITION, 1, True),
        (EVEN, STEADY, 1000, State.CLEAN, None, True),
        (EVEN, SHAKY, 1000, State.FLIPS, None, True),
        ((0.50, 0.44, 0.56), STEADY, 100, State.FEW, None, True),
        ((0.50, 0.44, 0.56), STEADY, 15, State.FEW, None, False),
        ((0.90, 0.80, 1.00), STEADY, 19, State.FEW, 0, False),  # too few, whatever they show
    ],
)
def test_the_state_follows_from_intervals_and_questions(
    first: tuple[float, float, float],
    steady: tuple[float, float, float],
    items: int,
    state: State,
    favoured: int | None,
    recommends: bool,
) -> None:
    found = Finding(plain_run(first, steady, n_items=items))
    assert (found.state, found.favoured, found.recommends) == (state, favoured, recommends)


@pytest.mark.parametrize(
    ("first", "items", "settling"),
    [
        ((0.50, 0.44, 0.56), 100, 400),  # half-width 6 points: 100 * (6/3)^2
        ((0.90, 0.80, 1.00), 19, 220),  # 10 points: 19 * (10/3)^2 = 211.1, up to two digits
        ((1.0, 1.0, 1.0), 5, 1100),  # no spread: any share, (1.96 * 0.5 / 0.03)^2 = 1067
    ],
)
def test_so_many_questions_would_settle_it(
    first: tuple[float, float, float], items: int, settling: int
) -> None:
    assert Finding(plain_run(first, n_items=items)).settling == settling


def with_effect(value: float, low: float, high: float, **metrics: Any) -> Finding:
    coupled = figures(plain_run(EVEN))["protocols"]["coupled"]
    coupled["position_effect"] = est(value, low, high)
    return Finding(plain_run(EVEN, protocols={"coupled": coupled}, **metrics))


@pytest.mark.parametrize(
    ("effect", "favoured"),
    [((0.10, 0.06, 0.14), 0), ((-0.10, -0.14, -0.06), 1), ((0.02, -0.02, 0.06), None)],
)
def test_effect_names_the_place_that_two_candidates_gain_from(
    effect: tuple[float, float, float], favoured: int | None
) -> None:
    found = with_effect(*effect)
    assert found.favoured == favoured
    assert (found.state is State.POSITION) is (favoured is not None)


def test_effect_in_the_headline_is_that_of_the_place_that_gains() -> None:
    said = plain(sentence("lead.headline", with_effect(-0.10, -0.14, -0.06)))
    assert said == (
        "An answer wins 55% of its comparisons when shown last and 45% when shown first (10.0 points, 6.0 to 14.0)."
    )


def test_effect_must_leave_zero_jointly_over_all_looks() -> None:
    even = {"position_rate": shares(0.5, 0.5), "label_rate": shares(0.5, 0.5)}
    coupled = {**figures(plain_run(EVEN))["protocols"]["coupled"]}
    coupled["position_effect"] = est(0.044, 0.004, 0.084)  # 2.2 standard errors; 2.4 of three
    run = plain_run(EVEN, protocols={"coupled": coupled, "order": even, "label": even})
    assert Finding(run).favoured is None


def test_few_questions_are_too_few_however_many_items_they_are() -> None:
    data = {"name": "d", "n_items": 1000, "n_units": 19, "task": "pairwise"}
    found = Finding(plain_run(data=data))
    assert (found.units, found.state, found.recommends) == (19, State.FEW, False)
    said = plain(sentence("lead.headline", found))
    assert "1,000 items, 19 distinct questions, the" in said


@pytest.mark.parametrize(("ties", "state"), [(0.90, State.TIES), (0.89, State.FEW)])
def test_mostly_ties_are_the_finding_without_a_favourite(ties: float, state: State) -> None:
    wide = figures(plain_run((0.5, 0.3, 0.7)))["protocols"]["coupled"]
    coupled = {**wide, "tie_rate": est(ties, ties - 0.02, ties + 0.02)}
    found = Finding(plain_run((0.5, 0.3, 0.7), protocols={"coupled": coupled}))
    assert (found.state, found.recommends) == (state, state is State.FEW)


@pytest.mark.parametrize(
    ("protocols", "said"),
    [
        (("coupled",), "No joint effect of position and label in 1,000 items"),
        (("coupled", "order"), "No position bias found in 1,000 items"),
        (("coupled", "order", "label"), "No position or label bias found in 1,000 items"),
    ],
)
def test_absence_names_what_was_moved(protocols: tuple[str, ...], said: str) -> None:
    even = {"order": {"position_rate": shares(0.5, 0.5)}, "label": {"label_rate": shares(0.5, 0.5)}}
    run = plain_run(EVEN, STEADY, protocols={k: even[k] for k in protocols[1:]})
    found = Finding(run)
    assert found.state is State.CLEAN
    assert plain(sentence("lead.headline", found)).startswith(said)


def test_a_favoured_label_is_found_behind_even_positions() -> None:
    run = plain_run((0.50, 0.48, 0.52), protocols=label_row(0.60, 0.57, 0.63))
    found = Finding(run)
    assert found.state is State.HIDDEN
    assert found.hidden is not None
    assert (found.hidden.kind, found.hidden.index) == ("label", 0)


def test_a_wide_label_interval_forbids_saying_no_bias() -> None:
    run = plain_run((0.50, 0.48, 0.52), (0.95, 0.93, 0.97), protocols=label_row(0.50, 0.45, 0.55))
    found = Finding(run)
    assert found.state is State.FEW
    assert found.widest is not None
    assert (found.widest.kind, found.widest.index) == ("label", 0)


@pytest.mark.parametrize(("unparsed", "state"), [(400, State.POSITION), (401, State.UNPARSED)])
def test_more_than_a_fifth_unparsed_is_the_finding(unparsed: int, state: State) -> None:
    calls = {"planned": 2400, "made": 1900, "cached": 500, "replies": 2000, "unparsed": unparsed}
    assert Finding(with_metrics(plain_run(), calls=calls)).state is state
    calls = {"planned": 2000, "made": 1500, "cached": 500, "unparsed": unparsed}  # an older file
    assert Finding(with_metrics(plain_run(), calls=calls)).state is state


def test_states_that_settle_nothing_recommend_nothing() -> None:
    unparsed = plain_run(calls={"planned": 2000, "made": 2000, "unparsed": 900})
    row = {**figures(unparsed)["methods"]["direct"], "consistency": null("one order was recorded")}
    one_order = plain_run(protocols={"coupled": row}, methods={"direct": row})
    found = [Finding(run) for run in (unparsed, one_order)]
    assert [own.state for own in found] == [State.UNPARSED, State.ONE_ORDER]
    assert not any(own.recommends for own in found)


def test_of_many_positions_the_largest_share_is_favoured() -> None:
    rates = shares(0.3, 0.4, 0.2, 0.1)
    coupled = {"consistency": est(0.6, 0.57, 0.63), "position_rate": rates}
    found = Finding(plain_run(protocols={"coupled": coupled}))
    assert (found.n, found.favoured) == (4, 1)


def test_the_most_frequent_size_of_items_is_described() -> None:
    def stratum(n: int, items: int) -> dict[str, Any]:
        rates = [est(1 / n, 0.9 / n, 1.1 / n, items) for _ in range(n)]
        return {"consistency": est(0.6, 0.5, 0.7, items), "position_rate": rates}

    coupled = {
        "consistency": est(0.6, 0.57, 0.63, 900),
        "position_rate": null("items differ in their number of candidates"),
        "strata": {"3": stratum(3, 200), "4": stratum(4, 700)},
    }
    run = plain_run(protocols={"coupled": coupled}, methods={"direct": coupled})
    found = Finding(run)
    assert (found.n, len(found.rates), found.sizes) == (4, 4, (3, 4))
    assert found.items == 900


def test_labels_come_from_the_run_and_else_from_the_alphabet() -> None:
    run = plain_run()
    assert Finding(replace(run, run=RunRecord(labels=("X", "Y")))).labels == ("X", "Y")
    assert Finding(replace(run, run=RunRecord())).labels == ("A", "B")


def test_one_of_twelve_shares_off_by_chance_shows_no_bias() -> None:
    def state_of(first: float) -> State:
        rates = shares(first, 0.24, 0.24, 0.25, half=0.018)
        own = {"position_rate": rates, "label_rate": rates}
        coupled = {**own, "consistency": est(*STEADY)}
        return Finding(plain_run(protocols={"coupled": coupled, "order": own, "label": own})).state

    assert state_of(0.27) is State.CLEAN  # 2.2 standard errors above 1/4
    assert state_of(0.28) is State.POSITION  # 3.3; of twelve shares 2.9 are enough


def test_the_extremes_of_many_groups_must_lie_further_apart() -> None:
    low, high = (Estimate(value=v, low=v - 0.10, high=v + 0.10, n=30) for v in (0.40, 0.61))
    assert apart(low, high, 2)  # a gap of .21 where 1.96 standard errors are .141
    assert not apart(low, high, 10)  # 45 pairs: 3.26 of them are .235
    assert apart(low, Estimate(value=0.65, low=0.55, high=0.75, n=30), 10)
    assert not apart(low, Estimate(value=0.59, low=0.49, high=0.69, n=30), 2)  # not disjoint
    assert not apart(low, Estimate(value=0.9), 2)  # no interval, no finding


@pytest.mark.parametrize(
    ("task", "noun"),
    [("pairwise", "answer"), ("mcq", "option"), ("not there", "candidate"), (None, "candidate")],
)
def test_candidates_are_named_by_their_task(task: str | None, noun: str) -> None:
    finding = Finding(plain_run(data={"name": "d", "n_items": 1000, "task": task}))
    assert (finding.n, finding.noun) == (2, noun)
    assert f"The {noun} shown first takes" in plain(sentence("lead.headline", finding))
