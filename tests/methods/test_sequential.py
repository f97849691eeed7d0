"""Sequential voting: the same verdict for fewer calls, and what the riskier rules cost."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_judges import answers, decision

from unswayed.base.errors import UsageError
from unswayed.methods.sequential import Sequential
from unswayed.methods.voting import decide_by_vote
from unswayed.model.decisions import MISSING, TIE, UNPARSED, Decision, DecisionTable
from unswayed.model.items import Item
from unswayed.model.presentation import X0, X1, X2, X3


def table(method: Sequential, choices: np.ndarray, n: int) -> DecisionTable:
    return answers(choices, method.asks(n), n)


def share_changed(method: Sequential, choices: np.ndarray) -> float:
    """How often stopping early changes the verdict of the whole vote between two candidates."""
    pool = table(method, choices, 2)
    return float((method.decide_table(pool).choices != decide_by_vote(pool).choices).mean())


def test_two_candidates_are_asked_in_balanced_pairs() -> None:
    assert [ask.presentation for ask in Sequential().asks(2)] == [X0, X2, X1, X3]
    assert [ask.sample for ask in Sequential(samples=2).asks(2)] == [1] * 4 + [2] * 4
    for n in (3, 4):
        shown = [ask.presentation for ask in Sequential().asks(n)]
        for block in range(2):
            part = shown[block * n : (block + 1) * n]
            for candidate in range(n):
                at = {shape.position_of_candidate(candidate) for shape in part}
                assert at == set(range(n))


@pytest.mark.parametrize("n", [2, 3])
def test_curtailment_never_changes_a_verdict(n: int) -> None:
    method = Sequential()
    length = len(method.asks(n))
    codes = [*range(n), TIE, UNPARSED]
    if n == 3:
        codes = [*range(n), UNPARSED]
    choices = np.array(list(itertools.product(codes, repeat=length)))
    whole = decide_by_vote(table(method, choices, n))
    early = method.decide_table(table(method, choices, n))
    np.testing.assert_array_equal(early.choices, whole.choices)
    np.testing.assert_array_equal(early.tied, whole.tied)
    assert early.n_calls.max() == length
    assert early.n_calls.mean() < length


def test_three_of_four_equal_answers_are_enough() -> None:
    rows = [[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, MISSING], [0, MISSING, 0, 0]]
    verdicts = Sequential().decide_table(table(Sequential(), np.array(rows), 2))
    assert verdicts.choices.tolist() == [0, TIE, TIE, 0, MISSING]
    assert verdicts.n_calls.tolist() == [3, 4, 4, 3, 1]
    assert verdicts.consistent.tolist() == [1, 0, 0, 1, -1]
    np.testing.assert_allclose(verdicts.confidence[[0, 3]], [1, 1])


def test_a_stop_is_never_planned_past() -> None:
    method = Sequential()
    item = Item(id="q", prompt="?", candidates=("a", "b"))

    def call(position: int, choice: int) -> Decision:
        return decision("q", method.asks(2)[position].presentation, choice)

    assert len(method.plan(item)) == 3  # even three equal answers need three calls
    agreed = [call(0, 1), call(1, 1), call(2, 1)]
    assert len(method.plan(item, agreed)) == 3
    split = [call(0, 1), call(1, 1), call(2, 0)]
    assert len(method.plan(item, split)) == 4


def test_the_riskier_rules_stop_after_complete_blocks_only() -> None:
    lead = Sequential(rule="lead", lead=2)
    agree = Sequential(rule="agree")
    rows = np.array([[0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]])
    assert lead.decide_table(table(lead, rows, 2)).n_calls.tolist() == [2, 4, 4, 2]
    assert lead.decide_table(table(lead, rows, 2)).choices.tolist() == [0, 1, TIE, 0]
    # X0 alone would lead by 1; the block X0, X2 of the second and third row is even
    soon = Sequential(rule="lead", lead=1).decide_table(table(lead, rows, 2))
    assert (soon.n_calls.tolist(), soon.choices.tolist()) == ([2, 4, 4, 2], [0, 1, TIE, 0])
    assert agree.decide_table(table(agree, rows, 2)).n_calls.tolist() == [2, 4, 4, 2]
    assert share_changed(lead, rows) == 0.25  # the first row ties in full
    with pytest.raises(UsageError, match="balanced blocks only"):
        Sequential(rule="lead", orders="random:7")
    with pytest.raises(UsageError, match="at least 1"):
        Sequential(lead=0)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_savings_and_risk_of_independent_votes(seed: int) -> None:
    # votes i.i.d. given the item, sharp: the right candidate with probability .9
    rng = np.random.default_rng(seed)
    curtail = Sequential(orders="swap", samples=4)
    votes = np.where(rng.random((4000, 8)) < 0.9, 0, 1)
    early = curtail.decide_table(table(curtail, votes, 2))
    assert share_changed(curtail, votes) == 0
    # 8 calls; the leader needs 5: negative binomial mean 5 / .9 = 5.56, less what ends in a tie
    assert early.n_calls.mean() == pytest.approx(5.5, abs=0.1)
    lead = Sequential(orders="swap", samples=4, rule="lead")
    assert share_changed(lead, votes) < 0.03
    assert lead.decide_table(table(lead, votes, 2)).n_calls.mean() < early.n_calls.mean()
