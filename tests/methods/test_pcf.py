"""PCFJudge: the published rule on worked numbers, and the other methods on scored lists."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unswayed as us
from unswayed.backends.simulated import simulated_items
from unswayed.base.errors import UsageError
from unswayed.methods.names import default_methods, spec_name
from unswayed.methods.over_orders import Average, Vote
from unswayed.methods.pcf import PCF
from unswayed.methods.protocol import Method
from unswayed.methods.sequential import Sequential
from unswayed.methods.single_call import Direct
from unswayed.model.decisions import MISSING, UNPARSED, Decision, DecisionTable, Verdict
from unswayed.model.items import Item, Task
from unswayed.model.parsing import FLAGS
from unswayed.model.permutations import cyclic, random

CAUTION = "calibrated_uncertainty"
TWO_RUNS = PCF(runs=2)


def item(n: int = 3) -> Item:
    return Item(
        id="q",
        task=Task.LISTWISE,
        prompt="?",
        candidates=tuple(f"text {candidate}" for candidate in range(n)),
    )


def run(method: Method, number: int, scores=None, ranks=None, *, choice=None, **flags) -> Decision:
    """The answer to question `number` of a method; scores, ranks and flags by candidate."""
    known = [s for s in scores or ranks or () if s is not None]
    n = len(scores or ranks or flags["n"])
    flags.pop("n", None)
    shown = method.asks(n)[number].presentation
    labels = tuple("ABCDEFG"[:n])
    if choice is None and scores and len(known) == n:
        top = [c for c in range(n) if scores[c] == max(known)]
        choice = top[0] if len(top) == 1 else "tie"
    return Decision(
        item_id="q",
        order=shown.order,
        labels=shown.symbols(labels),
        choice=choice,
        scores=scores,
        ranking=None if ranks is None else tuple(int(c) for c in np.argsort(ranks)),
        flags=flags or None,
    )


def test_the_worked_example_of_the_specification() -> None:
    calls = [
        run(TWO_RUNS, 0, (80, 70, 60), (1, 2, 3), calibrated_uncertainty=(True, False, False)),
        run(TWO_RUNS, 1, (90, 95, 40), (2, 1, 3), calibrated_uncertainty=(False, False, True)),
    ]
    verdict = TWO_RUNS.decide(item(), calls)
    assert verdict.parts == {
        "mean_score": (85.0, 82.5, 50.0),
        "borda": (75.0, 75.0, 0.0),
        "top_share": (0.5, 0.5, 0.0),
        CAUTION: (0.5, 0.0, 0.5),
    }
    # .50 * 85 + .25 * 75 + .20 * 50 + .05 * 50 = 42.5 + 18.75 + 10 + 2.5
    assert verdict.scores == pytest.approx((73.75, 70.0, 27.5), abs=1e-12)
    assert (verdict.choice, verdict.n_calls, verdict.consistent) == (0, 2, False)
    assert verdict.confidence == 0.5


def test_flagged_errors_are_reported_and_change_no_score() -> None:
    calls = [run(TWO_RUNS, number, (80, 70, 60), (1, 2, 3)) for number in range(2)]
    plain = TWO_RUNS.decide(item(), calls)
    flags = {"major_error": (True, False, False), "hallucinated_specificity": (True, True, False)}
    flagged = TWO_RUNS.decide(item(), [msgspec.structs.replace(calls[0], flags=flags), calls[1]])
    assert (flagged.choice, flagged.scores) == (plain.choice, plain.scores)
    assert flagged.parts["major_error"] == (0.5, 0.0, 0.0)
    assert flagged.parts["hallucinated_specificity"] == (0.5, 0.5, 0.0)
    assert CAUTION not in flagged.parts  # no run gave it, so it is unknown
    assert plain.parts is not None
    assert set(plain.parts) == {"mean_score", "borda", "top_share"}


def test_a_flag_that_one_run_leaves_out_is_not_raised_there() -> None:
    calls = [
        run(TWO_RUNS, 0, (80, 70, 60), (1, 2, 3), calibrated_uncertainty=(None, True, None)),
        run(TWO_RUNS, 1, (80, 70, 60), (1, 2, 3), calibrated_uncertainty=(None, None, False)),
    ]
    verdict = TWO_RUNS.decide(item(), calls)
    assert verdict.parts[CAUTION] == (None, 0.5, 0.0)
    # scores 80, 70, 60; Borda 100, 50, 0; top 1, 0, 0; caution unknown (adds 0), .5, 0
    assert verdict.scores == pytest.approx((85.0, 50.0, 30.0))


def test_a_run_without_ranking_is_ranked_by_averaged_scores() -> None:
    one = PCF(runs=1)
    verdict = one.decide(item(4), [run(one, 0, (90, 70, 70, 10))])
    assert verdict.parts["borda"] == pytest.approx((100.0, 50.0, 50.0, 0.0))  # ranks 1, 2.5, 2.5, 4


def test_runs_that_share_their_top_split_its_credit() -> None:
    calls = [run(TWO_RUNS, 0, (80, 80, 60)), run(TWO_RUNS, 1, (80, 70, 60))]
    verdict = TWO_RUNS.decide(item(), calls)
    assert verdict.parts["top_share"] == (0.75, 0.25, 0.0)
    # ranks 1.5, 1.5, 3 and 1, 2, 3: Borda 100/(2*2) * (1.5 + 2, 1.5 + 1, 0)
    assert verdict.parts["borda"] == pytest.approx((87.5, 62.5, 0.0))


@pytest.mark.parametrize(
    "failed",
    [
        {"choice": None, "scores": None, "ranking": None},
        {"choice": 2, "scores": None, "ranking": (2, 1, 0)},
        {"choice": 2, "scores": (1.0, None, 99.0), "ranking": (2, 1, 0)},
    ],
    ids=["unreadable", "a ranking alone", "a score is missing"],
)
def test_a_run_without_all_scores_is_dropped_for_its_item(failed: dict) -> None:
    calls = [
        run(TWO_RUNS, 0, (80, 70, 60), (1, 2, 3), calibrated_uncertainty=(True, False, False)),
        msgspec.structs.replace(run(TWO_RUNS, 1, (0, 0, 0)), **failed),
    ]
    verdict = TWO_RUNS.decide(item(), calls)
    alone = PCF(runs=1).decide(item(), calls[:1])
    assert (verdict.choice, verdict.scores, verdict.parts) == (0, alone.scores, alone.parts)
    assert verdict.n_calls == 2  # it was paid for
    assert not verdict.consistent


def test_no_run_is_unparsed_and_a_failed_call_missing() -> None:
    items = [msgspec.structs.replace(item(), id=name) for name in ("none", "failed", "whole")]
    empty = msgspec.structs.replace(run(TWO_RUNS, 0, (0, 0, 0)), choice=None, scores=None)
    calls = [
        msgspec.structs.replace(empty, item_id="none"),
        msgspec.structs.replace(run(TWO_RUNS, 0, (80, 70, 60)), item_id="failed"),
        msgspec.structs.replace(run(TWO_RUNS, 0, (80, 70, 60)), item_id="whole"),
        msgspec.structs.replace(run(TWO_RUNS, 1, (80, 70, 60)), item_id="whole"),
    ]
    second = run(TWO_RUNS, 1, (0, 0, 0))
    calls.append(msgspec.structs.replace(second, item_id="none", choice=None, scores=None))
    table = DecisionTable.of(items, calls).select(TWO_RUNS.asks(3))
    verdicts = TWO_RUNS.decide_table(table)
    assert verdicts.choices.tolist() == [UNPARSED, MISSING, 0]
    assert verdicts.n_calls.tolist() == [2, 1, 2]
    assert verdicts.verdict(1, item_id="failed", method="pcf").parts is None


@pytest.mark.parametrize(("gap", "tied"), [(0.0, True), (1e-6, True), (3e-6, False)])
def test_all_within_the_tolerance_are_the_tie_set(gap: float, tied: bool) -> None:
    # candidates 0 and 1 are first once each: mean scores 80 - gap and 80, so C differs by gap / 2
    calls = [
        run(TWO_RUNS, 0, (80, 80 - gap, 10), (1, 2, 3)),
        run(TWO_RUNS, 1, (80 - 2 * gap, 80 + gap, 10), (2, 1, 3)),
    ]
    verdict = TWO_RUNS.decide(item(), calls)
    assert verdict.tie == ((0, 1) if tied else None)
    assert verdict.choice == ("tie" if tied else 1)


def test_the_sets_of_orders_and_their_sizes() -> None:
    def shown(method: Method, n: int) -> tuple:
        return tuple(ask.presentation.order for ask in method.asks(n))

    assert shown(PCF(), 4) == random(4, 7, seed=0)
    assert shown(PCF(seed=5), 4) == random(4, 7, seed=5)
    assert len(set(shown(PCF(), 4))) == 7
    assert [len(PCF().asks(n)) for n in (2, 3, 4, 9)] == [2, 6, 7, 7]  # min(7, n!)
    assert shown(PCF(orders="cyclic"), 5) == cyclic(5)
    assert [len(PCF(orders="balanced").asks(n)) for n in (3, 4)] == [6, 8]
    for ask in PCF().asks(4):
        assert ask.presentation.labels == (0, 1, 2, 3)  # labels stay, candidates move


@pytest.mark.parametrize("wrong", [{"runs": 0}, {"tolerance": -1.0}, {"tolerance": float("nan")}])
def test_parameters_out_of_range_are_refused(wrong: dict) -> None:
    with pytest.raises(UsageError, match="pcf:"):
        PCF(**wrong)


@given(
    scores=st.lists(st.integers(0, 100), min_size=2, max_size=5),
    caution=st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_direct_is_pcf_with_one_consistent_run(scores: list[int], caution: list[bool]) -> None:
    # up to five candidates one rank (25 / (n - 1) points) outweighs the caution flag (5)
    one, n = PCF(runs=1), len(scores)
    ranks = np.argsort(np.argsort(-np.array(scores), kind="stable")) + 1
    best = int(np.argmin(ranks))
    flag = {CAUTION: tuple(caution[:n])}
    call = run(one, 0, tuple(map(float, scores)), tuple(ranks), choice=best, **flag)
    assert one.asks(n) == Direct().asks(n)
    assert one.decide(item(n), [call]).choice == Direct().decide(item(n), [call]).choice == best


def test_direct_and_one_run_differ_on_contradictions() -> None:
    one = PCF(runs=1)
    # C: .5 * 80 + 0 + 20 = 60 and .5 * 79 + 25 + 0 = 64.5
    contrary = run(one, 0, (80, 78, 79), (3, 2, 1))
    assert Direct().decide(item(), [contrary]).choice == 0
    assert one.decide(item(), [contrary]).choice == 2
    partial = run(one, 0, (80, None, 60), (1, 2, 3), choice=0)
    assert Direct().decide(item(), [partial]).choice == 0
    assert one.decide(item(), [partial]).choice is None


SCORES = ((80, 70, 60), (40, 90, 60), (65, 70, 66))
"""Three runs: candidate 0 is named once, 1 twice; means 61.67, 76.67, 62."""


def test_vote_average_and_sequential_read_scored_lists() -> None:
    calls = [run(Vote(), number, scores) for number, scores in enumerate(SCORES)]
    voted = Vote().decide(item(), calls)
    assert (voted.choice, voted.scores) == (1, pytest.approx((1 / 3, 2 / 3, 0)))
    averaged = Average().decide(item(), calls)
    assert averaged.choice == 1
    assert averaged.scores == pytest.approx((185 / 3, 230 / 3, 62))
    assert averaged.confidence == pytest.approx(2 / 3)
    method = Sequential(orders="cyclic")
    early = method.decide(item(), [run(method, 0, SCORES[1]), run(method, 1, SCORES[2])])
    assert (early.choice, early.n_calls) == (1, 2)  # the third call could change nothing


def test_average_ties_within_a_millionth_and_needs_all_scores() -> None:
    level = [(80, 70, 10), (70, 80, 10), (75, 75, 10)]
    calls = [run(Average(), number, scores) for number, scores in enumerate(level)]
    assert Average().decide(item(), calls).tie == (0, 1)
    nudged = [*calls[:2], msgspec.structs.replace(calls[2], scores=(75.0 + 6e-6, 75.0, 10.0))]
    assert Average().decide(item(), nudged).choice == 0  # means differ by 2e-6
    partial = [*calls[:2], msgspec.structs.replace(calls[2], scores=(75.0, None, 10.0))]
    assert Average().decide(item(), partial).choice is None  # the rest would not be balanced


def test_all_includes_it_for_lists_alone() -> None:
    chosen = {spec_name(method) for method in default_methods(Task.LISTWISE, [4], groups=False)}
    assert {"pcf", "pcf:orders=cyclic", "average", "vote", "sequential"} <= chosen
    assert "pcf" not in {m.name for m in default_methods(Task.MCQ, [4], groups=False)}


@pytest.mark.parametrize("method", ["pcf", "vote"])
def test_a_judge_gives_the_parts_where_the_method_has_some(method: str) -> None:
    lists = [
        msgspec.structs.replace(item, task=Task.LISTWISE) for item in simulated_items(3, 4, seed=1)
    ]
    with us.Judge("simulated/judge?slot=1&logprobs=0", method=method) as judge:
        verdicts = list(judge.verdicts(lists))
    for verdict in verdicts:
        assert isinstance(verdict, Verdict)
        line = msgspec.json.encode(verdict)
        assert msgspec.json.decode(line, type=Verdict) == verdict
        if method == "vote":
            assert verdict.parts is None
            assert b"parts" not in line
        else:
            assert set(verdict.parts) == {"mean_score", "borda", "top_share", *FLAGS}
            assert all(len(values) == 4 for values in verdict.parts.values())
