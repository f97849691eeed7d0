"""ICC against the worked example, pingouin, and what it cannot see."""

import warnings

import numpy as np
import pytest
from metric_builders import M, outcomes, simulated, value

from unswayed.metrics import Outcomes, measure
from unswayed.model.decisions import Estimate
from unswayed.model.presentation import X0, X1, X2, presentations

ROWS = [(0.9, 0.8, 0.7), (0.2, 0.4, 0.3), (0.6, 0.7, 0.2), (0.1, 0.3, 0.2)]


def pairs(scores: np.ndarray) -> Outcomes:
    """Scores of the first of two candidates under up to three presentations."""
    probs = np.stack([scores, 1 - scores], axis=2)
    return outcomes(probs.argmax(axis=2), shown=[X0, X1, X2][: scores.shape[1]], probs=probs)


def test_icc_of_the_worked_rows() -> None:
    # MSR .21, MSC .04, MSE .02
    made = pairs(np.array(ROWS))
    assert value("icc2k", made) == pytest.approx(0.19 / 0.215, abs=1e-9)  # .8837
    assert value("icc3k", made) == pytest.approx(0.19 / 0.21, abs=1e-9)  # .9048


def test_icc_agrees_with_pingouin() -> None:
    pingouin = pytest.importorskip("pingouin")
    import pandas

    made = simulated(80, 2, orders="swap", position=0.8, seed=2)
    scores = made.probs[:, :, 0]
    frame = pandas.DataFrame(
        {
            "item": np.repeat(np.arange(80), 2),
            "rater": np.tile([0, 1], 80),
            "score": scores.ravel(),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = pingouin.intraclass_corr(frame, targets="item", raters="rater", ratings="score")
    by_type = dict(zip(table["Type"], table["ICC"], strict=True))
    absolute = by_type.get("ICC(A,k)", by_type.get("ICC2k"))
    consistent = by_type.get("ICC(C,k)", by_type.get("ICC3k"))
    assert value("icc2k", made) == pytest.approx(absolute, abs=1e-9)
    assert value("icc3k", made) == pytest.approx(consistent, abs=1e-9)


def test_a_collapsed_judge_keeps_its_icc_but_not_its_spread() -> None:
    scores = np.array(ROWS)
    squeezed = 0.5 + 0.001 * (scores - 0.5)
    assert value("icc2k", pairs(squeezed)) == pytest.approx(value("icc2k", pairs(scores)), abs=1e-6)
    assert value("score_sd", pairs(scores)) == pytest.approx(scores.std())
    assert value("score_sd", pairs(squeezed)) == pytest.approx(0.001 * scores.std())


def test_scores_that_do_not_differ_between_items_have_no_icc() -> None:
    made = pairs(np.full((5, 3), 0.3))
    row = measure([made], names=["icc2k", "icc3k", "score_sd"], resamples=0)
    assert row["icc2k"].value is None
    assert "do not differ between items" in row["icc3k"].reason
    assert row["score_sd"].value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("row", "items"), [((0.83, 0.31), 20_000), ((0.7, 0.7), 200_000)])
def test_nor_have_as_many_items_as_make_rounding_visible(
    row: tuple[float, float], items: int
) -> None:
    made = pairs(np.tile(row, (items, 1)))
    figures = measure([made], names=["icc2k", "icc3k", "score_sd"], resamples=20)
    assert figures["icc2k"].value is None
    assert figures["icc3k"].value is None
    assert figures["score_sd"].value == pytest.approx(np.std(row), abs=1e-12)
    assert figures["score_sd"].low is None


@pytest.mark.parametrize("items", [4_000, 6_000])
def test_a_perfectly_consistent_judge_claims_no_certainty(items: int) -> None:
    score = 1 / (1 + np.exp(-np.random.default_rng(1).normal(size=items)))
    figures = measure([pairs(np.column_stack([score, score]))], names=["icc2k", "icc3k"])
    for name in ("icc2k", "icc3k"):
        assert figures[name].value == pytest.approx(1.0, abs=1e-12)
        assert (figures[name].low, figures[name].high) == (None, None)


def test_icc2k_is_undefined_where_formula_exceeds_one() -> None:
    # MSR .0002, MSC 0, MSE .3202: (MSR - MSE) / (MSR + (MSC - MSE) / 2) would be 2.0
    made = pairs(np.array([(0.9, 0.1), (0.12, 0.92)]))
    assert value("icc2k", made) is None
    assert value("icc3k", made) < -1000  # type: ignore[operator]


def test_icc_leaves_out_items_without_every_probability() -> None:
    probs = np.stack([np.array(ROWS), 1 - np.array(ROWS)], axis=2)
    more = np.concatenate([probs, probs[:2]])
    more[4, 1] = np.nan
    choices = more.argmax(axis=2)
    choices[5, 2] = M
    made = outcomes(choices.tolist(), shown=[X0, X1, X2], probs=more)
    cell = measure([made], names=["icc3k"], resamples=0)["icc3k"]
    assert cell == Estimate(value=pytest.approx(0.19 / 0.21), n=4)


def test_more_candidates_are_scored_by_probability_of_gold() -> None:
    shown = presentations("cyclic", 3)
    scores = np.array(ROWS)
    probs = np.repeat((1 - scores)[:, :, None] / 2, 3, axis=2)
    probs[:, :, 1] = scores
    made = outcomes([[1, 1, 1]] * 4, gold=[1] * 4, shown=shown, probs=probs)
    assert value("icc2k", made) == pytest.approx(0.19 / 0.215)
    blind = outcomes([[1, 1, 1]] * 4, gold=[None] * 4, shown=shown, probs=probs)
    assert value("icc2k", blind) is None


def test_without_probabilities_icc_is_null_with_the_reason() -> None:
    row = measure([outcomes([[0, 0]])], resamples=0)
    assert row["icc2k"] == Estimate(value=None, reason="no label probabilities")
    assert "label_mass" not in row.values  # optional metrics are left out instead


def test_label_mass_is_a_mean_over_the_calls_where_it_is_known() -> None:
    made = outcomes([[0, 0], [0, M]], label_mass=[[0.9, 0.5], [np.nan, 0.1]])
    assert measure([made], resamples=0)["label_mass"] == Estimate(value=0.7, n=2)
