"""Accuracy, consistency, recall balance, rates and kappa against numbers computed by hand."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_builders import SWAP, M, T, U, by_letter, outcomes, value

from unswayed.metrics import Outcomes, measure
from unswayed.metrics.recall_balance import CKLD, CKLD_RAW, RSTD, recall_spread, recalls
from unswayed.model.decisions import Estimate
from unswayed.model.presentation import X0, X1, X2, X3, Presentation, presentations


def listed(name: str, *strata: Outcomes) -> list[float]:
    return [cell.value for cell in measure(strata, names=[name], resamples=0).values[name]]


def reason(name: str, *strata: Outcomes) -> str:
    cell = measure(strata, names=[name], resamples=0)[name]
    assert cell.value is None
    return cell.reason


FULL = presentations("full", 4)


def test_accuracy_weights_items_equally_despite_missing_calls() -> None:
    # right in 1 of 2, in 1 of 1 and in 0 of 2: (0.5 + 1 + 0) / 3
    made = outcomes([[0, 1], [0, M], [U, T]])
    assert value("accuracy", made) == 0.5


def test_accuracy_leaves_out_unknown_gold_and_gold_ties() -> None:
    made = outcomes([[0, 0], [0, 0], [T, 1], [1, 1]], gold=[0, None, "tie", 0])
    assert value("accuracy", made) == 0.5
    assert value("consistent_accuracy", made) == 0.5
    # as a third class the tie item is right once: (1 + 0.5 + 0) / 3
    assert value("accuracy", made, gold_ties="class") == 0.5
    assert value("consistent_accuracy", made, gold_ties="class") == pytest.approx(1 / 3)


def test_any_of_several_right_candidates_is_right() -> None:
    shown = presentations("cyclic", 3)
    made = outcomes([[0, 2, 1]], gold=[(0, 2)], shown=shown)
    assert value("accuracy", made) == pytest.approx(2 / 3)
    assert "exactly one right candidate" in reason("rstd", made)


def test_fractional_accuracy_credits_a_tie_with_its_right_share() -> None:
    shown = presentations("cyclic", 4)
    tied = np.zeros((1, 4, 4), dtype=bool)
    tied[0, 0, [0, 2]] = True  # gold among two tied: 1/2
    tied[0, 1, [1, 2, 3]] = True  # gold is not tied: 0
    made = outcomes([[T, T, 0, 1]], shown=shown, tied=tied)
    assert value("accuracy", made) == 0.25
    assert value("accuracy_fractional", made) == (0.5 + 0 + 1 + 0) / 4
    # a tie that names no candidates is a tie of all
    assert value("accuracy_fractional", outcomes([[T, 0]])) == 0.75
    # several right: the tied share that is right
    made = outcomes([[T, T, 0, 1]], gold=[(1, 2)], shown=shown, tied=tied)
    assert value("accuracy_fractional", made) == pytest.approx((0.5 + 2 / 3 + 0 + 1) / 4)


def test_letters_are_compared_as_candidates() -> None:
    # "A" in both orders names different candidates; "A" then "B" names the same one
    made = outcomes([by_letter("AA", SWAP), by_letter("AB", SWAP)])
    assert value("consistency", made) == 0.5


def test_unparsed_never_agrees_and_ties_do() -> None:
    made = outcomes([[U, U], [U, 0], [T, T], [T, 0], [1, 1]])
    assert value("consistency", made) == 2 / 5


def test_a_consistent_judge_keeps_its_choice_everywhere() -> None:
    four = (X0, X1, X2, X3)
    made = outcomes([[0, 0, 0, 1], [1, 1, 1, 1]], shown=four)
    assert value("consistency", made) == 0.5
    assert value("consistent_accuracy", outcomes([[0, 0, 0, 1], [0, 0, 0, 0]], shown=four)) == 0.5


def test_consistency_of_many_candidates_is_the_share_of_the_mode() -> None:
    counts = [0] * 15 + [1] * 5 + [2] * 3 + [3]
    made = outcomes([counts], shown=FULL)
    assert value("consistency", made) == 0.625
    # sum n_k (n_k - 1) / (24 * 23) = (210 + 20 + 6 + 0) / 552
    assert value("pairwise_agreement", made) == pytest.approx(236 / 552)
    assert measure([made]).beside.set_size == 24


def test_unparsed_answers_never_form_the_mode() -> None:
    shown = presentations("cyclic", 4)
    assert value("consistency", outcomes([[U, U, U, 2]], shown=shown)) == 0.25
    assert value("consistency", outcomes([[U, U, U, U]], shown=shown)) == 0.0
    assert value("consistency", outcomes([[T, T, U, 2]], shown=shown)) == 0.5


def test_pairwise_agreement_ignores_the_size_of_the_set() -> None:
    choices = [0, 0, 0, 1, 1, 2]
    whole = value("pairwise_agreement", outcomes([choices], shown=FULL[:6]))
    parts = [outcomes([list(part)], shown=FULL[:4]) for part in combinations(choices, 4)]
    mean = np.mean([value("pairwise_agreement", part) for part in parts])
    assert mean == pytest.approx(whole)
    # the mode's share does: 3/6 with all six, more on average with four of them
    assert np.mean([value("consistency", part) for part in parts]) > 0.5


def test_consistent_accuracy_of_many_needs_a_unique_right_mode() -> None:
    shown = presentations("cyclic", 4)
    rows = [[0, 0, 1, 2], [0, 0, 1, 1], [1, 1, 1, 0], [U, U, U, U]]
    made = outcomes(rows, shown=shown)
    assert value("consistent_accuracy", made) == 0.25
    # the tie of modes 0 and 1 is credited with one half
    assert value("consistent_accuracy_fractional", made) == 1.5 / 4


def test_items_that_lack_a_presentation_are_left_out_and_counted() -> None:
    made = outcomes([[0, 0], [0, M], [M, M], [0, 1]])
    row = measure([made], resamples=0)
    assert row.incomplete == 2
    assert row["consistency"] == Estimate(value=0.5, n=2)
    assert row["consistent_accuracy"] == Estimate(value=0.5, n=2)
    # accuracy counts every item that was answered at all
    assert row["accuracy"] == Estimate(value=pytest.approx(2.5 / 3), n=3)


@pytest.mark.parametrize(
    ("rows", "shown", "said"),
    [
        ([[0], [1]], [X0], "one presentation only: this needs at least two"),
        ([[0, M], [M, 1]], SWAP, "no item has an answer under every presentation"),
    ],
)
def test_without_several_answers_agreement_is_null(rows, shown, said) -> None:
    made = outcomes(rows, shown=shown)
    for name in ("consistency", "consistent_accuracy", "fleiss_kappa"):
        assert reason(name, made) == said
    assert value("accuracy", made) == 0.5
    assert measure([made]).incomplete == (2 if shown == SWAP else 0)


def test_without_gold_accuracy_is_null_with_the_reason() -> None:
    made = outcomes([[0, 0]], gold=[None])
    for name in ("accuracy", "consistent_accuracy", "rstd", "ckld"):
        assert reason(name, made).startswith("no item has")
    assert value("consistency", made) == 1.0


def test_fixed_items_stay_out_of_order_metrics() -> None:
    made = outcomes([[0, 1], [0, M]], permutable=[True, False])
    row = measure([made], resamples=0)
    assert row["accuracy"].value == 0.75
    assert row["consistency"] == Estimate(value=0.0, n=1)
    assert [cell.n for cell in row.values["position_rate"]] == [2, 2]
    assert row.incomplete == 0
    assert row.beside.counts["not_permutable"] == 1


def sums_of(gold: list[float], second: list[float]) -> np.ndarray:
    return np.array([[sum(gold), *gold, *second]])


@pytest.mark.parametrize(
    ("hits", "population", "sample"),
    [([80, 60], 0.1000, 0.1414), ([90, 70, 60, 80], 0.1118, 0.1291)],
)
def test_rstd_of_given_recalls(hits: list[float], population: float, sample: float) -> None:
    sums = sums_of([100.0] * len(hits), hits)
    assert recall_spread(sums)[0] == pytest.approx(population, abs=5e-5)
    assert recall_spread(sums, ddof=1)[0] == pytest.approx(sample, abs=5e-5)


def test_a_label_that_never_carries_gold_is_left_out_of_rstd() -> None:
    sums = sums_of([10, 0, 10], [8, 0, 6])
    assert np.isnan(recalls(sums)[0, 1])
    assert recall_spread(sums)[0] == pytest.approx(0.1)
    assert np.isnan(recall_spread(sums_of([10, 0], [5, 0]))[0])


def test_rstd_sees_a_constant_letter_by_displayed_label() -> None:
    # always "A": recall 1 under A, 0 under B. Pooled by candidate it would be 0.
    made = outcomes([by_letter("AA", SWAP)] * 2, gold=[0, 1])
    assert value("rstd", made) == 0.5
    assert listed("label_rate", made) == [1.0, 0.0]


def test_rstd_counts_ties_and_unparsed_as_misses() -> None:
    # gold 0: A in X0, B in X2. Under A: hit, unparsed. Under B: hit, tie.
    made = outcomes([[0, 0], [U, T]])
    assert value("rstd", made) == 0.0
    made = outcomes([[0, 0], [0, T]])  # recalls 1 and 1/2
    assert value("rstd", made) == 0.25


def test_labels_are_those_displayed_in_bcda() -> None:
    # only BCDA: gold 0 is displayed as D, gold 1 as A
    bcda = Presentation((1, 2, 3, 0), (0, 1, 2, 3))
    made = outcomes([[0], [0]], gold=[0, 1], shown=[bcda])
    sums = RSTD.statistics(made).sum(axis=0)
    assert sums[1:5].tolist() == [1, 0, 0, 1]  # gold under A and D
    assert sums[5:].tolist() == [0, 0, 0, 1]  # the hit is under D


@pytest.mark.parametrize(
    ("gold", "chosen", "expected"),
    [
        ([0.25] * 4, [0.4, 0.3, 0.2, 0.1], 0.1218),
        ([0.4, 0.3, 0.2, 0.1], [0.25] * 4, 0.1064),  # the other direction differs
        ([0.5, 0.5], [0.7, 0.3], 0.0872),
    ],
)
def test_ckld_of_given_shares(gold: list[float], chosen: list[float], expected: float) -> None:
    sums = sums_of(gold, chosen)
    assert CKLD_RAW.values(sums)[0] == pytest.approx(expected, abs=5e-5)
    many = sums_of([1e7 * x for x in gold], [1e7 * x for x in chosen])
    assert CKLD.values(many)[0] == pytest.approx(expected, abs=5e-5)


def test_smoothing_keeps_ckld_finite() -> None:
    made = outcomes([by_letter("AA", SWAP)] * 2, gold=[0, 1])
    assert reason("ckld_raw", made).startswith("infinite")
    # p = (2.5/5, 2.5/5), q = (4.5/5, 0.5/5)
    assert value("ckld", made) == pytest.approx(0.5 * math.log(5 / 9) + 0.5 * math.log(5))


def test_ckld_ignores_choices_of_items_without_a_single_gold() -> None:
    base = outcomes([[0, 0]])
    more = outcomes([[0, 0], [1, 0], [0, 1]], gold=[0, "tie", None])
    assert value("ckld_raw", more) == value("ckld_raw", base) == 0.0


def test_rates_leave_out_ties_and_unparsed_answers() -> None:
    made = outcomes([by_letter("A?", SWAP), by_letter("=A", SWAP), by_letter("?B", SWAP)])
    row = measure([made], resamples=0)
    assert [cell.value for cell in row.values["position_rate"]] == [2 / 3, 1 / 3]
    assert [cell.n for cell in row.values["position_rate"]] == [3, 3]
    assert row["unparsed_rate"] == Estimate(value=2 / 6, n=6)
    assert row["tie_rate"] == Estimate(value=1 / 6, n=6)
    assert row["primacy"].value == pytest.approx(2 / 3 - 1 / 2)


def test_primacy_is_the_excess_of_the_first_position() -> None:
    identity = presentations("identity", 5)
    rows = [[c] for c, times in enumerate((35, 20, 12, 13, 20)) for _ in range(times)]
    made = outcomes(rows, gold=[None] * 100, shown=identity)
    assert listed("position_rate", made) == [0.35, 0.20, 0.12, 0.13, 0.20]
    assert value("primacy", made) == pytest.approx(0.15)


def test_position_and_label_rates_differ_when_labels_stay() -> None:
    # X1 shows B:b, A:a; choosing a is label A but position 2
    made = outcomes([[0, 0]], shown=[X0, X1])
    assert listed("position_rate", made) == [0.5, 0.5]
    assert listed("label_rate", made) == [1.0, 0.0]


def test_fleiss_kappa_of_the_worked_table() -> None:
    # rows 0/3, 3/0, 1/2, 3/0: observed .8333, expected .5139
    shown = (X0, X1, X2)
    made = outcomes([[1, 1, 1], [0, 0, 0], [0, 1, 1], [0, 0, 0]], shown=shown)
    assert value("fleiss_kappa", made) == pytest.approx(0.65714, abs=1e-5)


def test_fleiss_kappa_drops_items_with_an_unparsed_answer() -> None:
    shown = (X0, X1, X2)
    rows = [[1, 1, 1], [0, 0, 0], [0, 1, 1], [0, 0, 0]]
    more = outcomes([*rows, [U, 0, 1], [0, M, 1]], shown=shown)
    assert value("fleiss_kappa", more) == value("fleiss_kappa", outcomes(rows, shown=shown))
    assert "same candidate" in reason("fleiss_kappa", outcomes([[0, 0], [0, 0]]))


def test_fleiss_kappa_agrees_with_statsmodels() -> None:
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    generator = np.random.default_rng(5)
    shown = presentations("cyclic", 4)
    choices = generator.choice([0, 1, 2, 3, T], size=(60, 4), p=[0.5, 0.2, 0.1, 0.1, 0.1])
    table, _ = inter_rater.aggregate_raters(choices)
    made = outcomes(choices.tolist(), shown=shown)
    assert value("fleiss_kappa", made) == pytest.approx(inter_rater.fleiss_kappa(table), abs=1e-12)


def test_recalls_agree_with_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(6)
    shown = presentations("full", 3)
    gold = generator.integers(0, 3, 40)
    choices = np.where(
        generator.random((40, 6)) < 0.6, gold[:, None], generator.integers(0, 3, (40, 6))
    )
    letters = [
        [v.label_of_candidate(int(c)) for v, c in zip(shown, row, strict=True)] for row in choices
    ]
    right = [[v.label_of_candidate(int(g)) for v in shown] for g in gold]
    expected = metrics.recall_score(np.ravel(right), np.ravel(letters), average=None)
    made = outcomes(choices.tolist(), gold=gold.tolist(), shown=shown)
    sums = RSTD.statistics(made).sum(axis=0, keepdims=True)
    np.testing.assert_allclose(recalls(sums)[0], expected, atol=1e-12)
    assert value("rstd", made) == pytest.approx(np.std(expected), abs=1e-12)
    assert value("accuracy", made) == pytest.approx(
        metrics.accuracy_score(np.ravel(right), np.ravel(letters))
    )


def test_a_judge_that_always_ties_is_consistent_and_never_right() -> None:
    row = measure([outcomes([[T, T]] * 3)], resamples=0)
    assert row["consistency"].value == 1.0
    assert row["accuracy"].value == 0.0
    assert row["tie_rate"].value == 1.0


def flat(row: dict[str, object]) -> dict[str, object]:
    """Every number of a row under a name of its own; None where undefined."""
    found = {}
    for name, cell in row.items():
        for k, part in enumerate(cell if isinstance(cell, list) else [cell]):
            leaves = part.items() if isinstance(part, dict) else [("", part)]
            found |= {f"{name}.{k}.{key}": leaf for key, leaf in leaves if key != "reason"}
    return found


codes = st.sampled_from([0, 1, 2, T, U])


@settings(max_examples=20, deadline=None)
@given(
    rows=st.lists(st.lists(codes, min_size=3, max_size=3), min_size=1, max_size=8),
    relabel=st.permutations([0, 1, 2]),
)
def test_renaming_the_candidates_changes_no_metric(
    rows: list[list[int]], relabel: list[int]
) -> None:
    """The item's own numbering carries no information: rename candidates and orders together."""
    shown = presentations("cyclic", 3)
    renamed = [Presentation(tuple(relabel[c] for c in view.order), view.labels) for view in shown]
    mapped = [[relabel[c] if c >= 0 else c for c in row] for row in rows]
    before = measure([outcomes(rows, shown=shown)], resamples=0)
    after = measure([outcomes(mapped, gold=[relabel[0]] * len(rows), shown=renamed)], resamples=0)
    assert flat(before.to_json()) == pytest.approx(flat(after.to_json()), abs=1e-12)
