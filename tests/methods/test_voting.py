"""Direct, repeat, vote and average: counting answers and averaging probabilities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_judges import answers

from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.methods.names import parse_method
from unswayed.methods.over_orders import Average, Vote
from unswayed.methods.repeated import Repeat
from unswayed.methods.sets import orbit, presentation_set, presentation_weights
from unswayed.methods.single_call import DebiasPrompt, Direct
from unswayed.methods.tables import plurality
from unswayed.model.decisions import MISSING, TIE, UNPARSED, Decision, DecisionTable
from unswayed.model.items import Item, Task
from unswayed.model.presentation import X0, X1, X2, X3


def table(choices: list[list[int]], shown, probs=None, n: int = 2) -> DecisionTable:
    made = answers(choices, shown, n)
    return made if probs is None else replace(made, probs=np.array(probs, dtype=float))


def test_two_orders_agree_or_tie() -> None:
    rows = [[0, 0], [1, 1], [0, 1], [0, UNPARSED], [UNPARSED, UNPARSED], [0, TIE], [TIE, TIE]]
    verdicts = Vote().decide_table(table(rows, (X0, X2)))
    assert verdicts.choices.tolist() == [0, 1, TIE, 0, UNPARSED, TIE, TIE]
    assert verdicts.tied.tolist()[2] == [True, True]
    assert verdicts.consistent.tolist() == [1, 1, 0, 0, 0, 0, 1]
    assert verdicts.n_calls.tolist() == [2] * 7
    # unparsed answers do not vote but stay in the denominator
    np.testing.assert_allclose(verdicts.confidence, [1, 1, np.nan, 0.5, np.nan, np.nan, np.nan])


def test_a_missing_call_is_not_a_vote() -> None:
    verdicts = Vote().decide_table(table([[0, MISSING], [MISSING, MISSING]], (X0, X2)))
    assert verdicts.choices.tolist() == [MISSING, MISSING]
    assert verdicts.n_calls.tolist() == [1, 0]
    assert verdicts.consistent.tolist() == [-1, -1]


def test_four_options_keep_the_set_of_the_tied() -> None:
    shown = presentation_set("cyclic", 4)
    rows = [[0, 0, 1, 1], [0, 1, 2, 3], [2, 2, 1, 3], [3, 3, 3, UNPARSED]]
    verdicts = Vote().decide_table(table(rows, shown, n=4))
    assert verdicts.choices.tolist() == [TIE, TIE, 2, 3]
    assert verdicts.verdict(0, item_id="q", method="vote").tie == (0, 1)
    assert verdicts.verdict(1, item_id="q", method="vote").tie == (0, 1, 2, 3)
    assert verdicts.verdict(3, item_id="q", method="vote").scores == (0, 0, 0, 0.75)


def test_a_plurality_of_declared_ties_is_a_tie_of_all() -> None:
    choices, tied = plurality(np.array([[1.0, 0, 1], [2, 0, 1], [0, 0, 3], [0, 0, 0]]))
    assert choices.tolist() == [TIE, 0, TIE, UNPARSED]
    assert tied.tolist() == [[True, True], [False, False], [True, True], [False, False]]


def test_vote_confidence_is_the_mean_probability_if_known() -> None:
    probs = [[[0.9, 0.1], [0.6, 0.4]]]
    assert Vote().decide_table(table([[0, 0]], (X0, X2), probs)).confidence[0] == pytest.approx(
        0.75
    )


def test_averaging_uses_how_sure_each_answer_was() -> None:
    # X0 says candidate 0 at .9, X2 says candidate 1 at .6: means (.65, .35)
    probs = [[[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.2, 0.8]]]
    verdicts = Average().decide_table(table([[0, 1], [0, 1]], (X0, X2), probs))
    assert verdicts.choices.tolist() == [0, 1]
    np.testing.assert_allclose(verdicts.scores, [[0.65, 0.35], [0.35, 0.65]])
    np.testing.assert_allclose(verdicts.confidence, [0.65, 0.65])
    assert verdicts.consistent.tolist() == [0, 0]


def test_the_mean_of_logarithms_weighs_certainty_more() -> None:
    # probabilities: means (.525, .475); logs: .5 (log .05 + log 1) against .5 (log .95 + log 0)
    probs = [[[0.05, 0.95], [1.0, 0.0]]]
    shown = table([[1, 0]], (X0, X2), probs)
    assert Average().decide_table(shown).choices[0] == 0
    logit = Average(space="logit").decide_table(shown)
    assert logit.choices[0] == 0
    # odds: sqrt(.05 * 1 / (.95 * 1e-10))
    assert logit.scores[0, 0] == pytest.approx(1 / (1 + np.sqrt(0.95e-10 / 0.05)), rel=1e-6)
    assert logit.confidence[0] == pytest.approx(0.525)


def test_one_call_without_probabilities_spoils_a_balanced_mean() -> None:
    probs = [[[0.9, 0.1], [np.nan, np.nan]], [[0.9, 0.1], [0.8, np.nan]]]
    verdicts = Average().decide_table(table([[0, 0], [0, 0]], (X0, X2), probs))
    assert verdicts.choices.tolist() == [UNPARSED, UNPARSED]


def test_answer_without_label_gives_no_verdict_despite_probs() -> None:
    verdicts = Direct().decide_table(
        table([[UNPARSED], [UNPARSED]], (X0,), [[[0.3, 0.7]], [[np.nan] * 2]])
    )
    assert verdicts.choices.tolist() == [UNPARSED, UNPARSED]


def test_direct_believes_the_answer_not_the_probabilities() -> None:
    verdicts = Direct().decide_table(table([[1], [TIE]], (X0,), [[[0.7, 0.3]], [[0.5, 0.5]]]))
    assert verdicts.choices.tolist() == [1, TIE]
    assert verdicts.confidence[0] == pytest.approx(0.3)
    assert verdicts.consistent.tolist() == [-1, -1]


def test_the_debiasing_instruction_is_a_prompt_of_its_own() -> None:
    assert [ask.prompt_id for ask in DebiasPrompt().asks(3)] == ["debias"]


def test_repeats_are_samples_of_one_presentation_numbered_from_1() -> None:
    asks = Repeat(samples=2).asks(2)
    assert [(ask.presentation, ask.sample) for ask in asks] == [(X0, 1), (X0, 2)]
    with pytest.raises(UsageError, match="samples=0"):
        Repeat(samples=0)


def test_the_sets_read_are_those_of_the_specification() -> None:
    assert presentation_set("auto", 2) == (X0, X2)
    assert presentation_set("auto", 2, "all") == (X0, X2, X1, X3)
    assert orbit(2, (0, 1)) == (X0, X2)
    assert set(orbit(2, (1, 0))) == {X1, X3}
    assert [shape.order for shape in presentation_set("auto", 4)] == [
        (0, 1, 2, 3),
        (1, 2, 3, 0),
        (2, 3, 0, 1),
        (3, 0, 1, 2),
    ]
    with pytest.raises(UnknownNameError):
        presentation_set("cycle", 4)


@pytest.mark.parametrize(
    ("orders", "n"),
    [
        *((orders, n) for orders in ("auto", "balanced") for n in (2, 3, 4, 5)),
        *(("graeco-latin", n) for n in (3, 4, 5)),
    ],
)
def test_weights_even_out_positions_and_labels(orders: str, n: int) -> None:
    shown = presentation_set(orders, n, "all")
    weights = presentation_weights(orders, n, "all")
    at_position, with_label = np.zeros((n, n)), np.zeros((n, n))
    for shape, weight in zip(shown, weights, strict=True):
        for candidate in range(n):
            at_position[candidate, shape.position_of_candidate(candidate)] += weight
            with_label[candidate, shape.label_of_candidate(candidate)] += weight
    assert np.ptp(at_position) == 0
    assert np.ptp(with_label) == 0


ITEM = Item(id="l", task=Task.LISTWISE, prompt="?", candidates=("x", "y", "z"))


def listed(**fields: object) -> Decision:
    return Decision(item_id="l", order=(0, 1, 2), labels=("A", "B", "C"), **{"choice": 1, **fields})  # type: ignore[arg-type]


def test_the_scores_of_a_single_call_rank_every_candidate() -> None:
    verdict = parse_method("direct").decide(ITEM, [listed(scores=(40.0, 70.0, 55.0))])
    assert (verdict.choice, verdict.scores) == (1, (40.0, 70.0, 55.0))
    assert verdict.ranking == ((1,), (2,), (0,))


def test_a_score_that_is_missing_is_not_made_up() -> None:
    verdict = parse_method("direct").decide(ITEM, [listed(scores=(None, 70.0, 55.0))])
    assert verdict.scores == (0.0, 1.0, 0.0)


def test_a_declared_tie_is_of_the_highest_scores_or_of_all() -> None:
    tied = listed(choice="tie", scores=(80.0, 10.0, 80.0))
    for method in ("direct", "pcf:runs=1"):
        verdict = parse_method(method).decide(ITEM, [tied])
        assert (verdict.choice, verdict.tie) == ("tie", (0, 2))
        assert verdict.ranking == ((0, 2), (1,))
    over_one = listed(choice="tie", scores=(80.0, 10.0, 70.0))
    assert parse_method("direct").decide(ITEM, [over_one]).tie == (0, 1, 2)
