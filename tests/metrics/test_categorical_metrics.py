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


FULL, CYCLIC, CYCLIC_3 = (
    presentations("full", 4),
    presentations("cyclic", 4),
    presentations("cyclic", 3),
)
FOUR, THREE = {"shown": (X0, X1, X2, X3)}, {"shown": (X0, X1, X2)}
ALWAYS_A = [by_letter("AA", SWAP)] * 2
KAPPA_ROWS = [[1, 1, 1], [0, 0, 0], [0, 1, 1], [0, 0, 0]]
MIXED = {"gold": [0, None, "tie", 0]}
CLASS = {**MIXED, "gold_ties": "class"}
# of the first answer the candidates 0 and 2 are tied, of the second 1, 2 and 3
TIED = {"shown": CYCLIC, "tied": [[[1, 0, 1, 0], [0, 1, 1, 1], [0] * 4, [0] * 4]]}


@pytest.mark.parametrize(
    ("name", "rows", "more", "expected"),
    [
        # right in 1 of 2, in 1 of 1 and in 0 of 2: (0.5 + 1 + 0) / 3
        ("accuracy", [[0, 1], [0, M], [U, T]], {}, 0.5),
        # unknown gold and gold ties are left out; as a third class the tie item is right once
        ("accuracy", [[0, 0], [0, 0], [T, 1], [1, 1]], MIXED, 0.5),
        ("accuracy", [[0, 0], [0, 0], [T, 1], [1, 1]], CLASS, 0.5),
        ("consistent_accuracy", [[0, 0], [0, 0], [T, 1], [1, 1]], MIXED, 0.5),
        ("consistent_accuracy", [[0, 0], [0, 0], [T, 1], [1, 1]], CLASS, 1 / 3),
        # any of several right candidates is right
        ("accuracy", [[0, 2, 1]], {"gold": [(0, 2)], "shown": CYCLIC_3}, 2 / 3),
        # a tie earns its share that is right, one without names is a tie of all
        ("accuracy", [[T, T, 0, 1]], TIED, 0.25),
        ("accuracy_fractional", [[T, T, 0, 1]], TIED, (0.5 + 0 + 1 + 0) / 4),
        ("accuracy_fractional", [[T, 0]], {}, 0.75),
        ("accuracy_fractional", [[T, T, 0, 1]], TIED | {"gold": [(1, 2)]}, (0.5 + 2 / 3 + 1) / 4),
        # "A" in both orders names different candidates, "A" then "B" the same one
        ("consistency", [by_letter("AA", SWAP), by_letter("AB", SWAP)], {}, 0.5),
        # unparsed never agrees, and ties do
        ("consistency", [[U, U], [U, 0], [T, T], [T, 0], [1, 1]], {}, 2 / 5),
        ("consistency", [[0, 0, 0, 1], [1, 1, 1, 1]], FOUR, 0.5),
        ("consistent_accuracy", [[0, 0, 0, 1], [0, 0, 0, 0]], FOUR, 0.5),
        # of more candidates the share of the mode, which unparsed answers never form
        ("consistency", [[0] * 15 + [1] * 5 + [2] * 3 + [3]], {"shown": FULL}, 0.625),
        ("consistency", [[U, U, U, 2]], {"shown": CYCLIC}, 0.25),
        ("consistency", [[U, U, U, U]], {"shown": CYCLIC}, 0.0),
        ("consistency", [[T, T, U, 2]], {"shown": CYCLIC}, 0.5),
        # sum n_k (n_k - 1) / (24 * 23) = (210 + 20 + 6 + 0) / 552
        ("pairwise_agreement", [[0] * 15 + [1] * 5 + [2] * 3 + [3]], {"shown": FULL}, 236 / 552),
        # a unique right mode; the tie of modes 0 and 1 is credited with one half
        *(
            (name, [[0, 0, 1, 2], [0, 0, 1, 1], [1, 1, 1, 0], [U] * 4], {"shown": CYCLIC}, right)
            for name, right in (
                ("consistent_accuracy", 1 / 4),
                ("consistent_accuracy_fractional", 1.5 / 4),
            )
        ),
        # always "A": recall 1 under A, 0 under B; pooled by candidate it would be 0
        ("rstd", ALWAYS_A, {"gold": [0, 1]}, 0.5),
        # gold 0 is A in X0, B in X2. Under A: hit, unparsed. Under B: hit, tie
        ("rstd", [[0, 0], [U, T]], {}, 0.0),
        ("rstd", [[0, 0], [0, T]], {}, 0.25),  # recalls 1 and 1/2
        # p = (2.5/5, 2.5/5), q = (4.5/5, 0.5/5)
        ("ckld", ALWAYS_A, {"gold": [0, 1]}, 0.5 * math.log(5 / 9) + 0.5 * math.log(5)),
        # choices of items without a single gold are none
        ("ckld_raw", [[0, 0]], {}, 0.0),
        ("ckld_raw", [[0, 0], [1, 0], [0, 1]], {"gold": [0, "tie", None]}, 0.0),
        # rows 0/3, 3/0, 1/2, 3/0: observed .8333, expected .5139; unparsed and missing drop an item
        ("fleiss_kappa", KAPPA_ROWS, THREE, 0.6571429),
        ("fleiss_kappa", [*KAPPA_ROWS, [U, 0, 1], [0, M, 1]], THREE, 0.6571429),
    ],
)
def test_worked_values(name: str, rows: list, more: dict, expected: float) -> None:
    ties = {key: more[key] for key in more if key == "gold_ties"}
    made = outcomes(rows, **{key: more[key] for key in more if key != "gold_ties"})
    assert value(name, made, **ties) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("rows", "shown", "positions", "labels"),
    [
        (ALWAYS_A, SWAP, [1, 0], [1, 0]),
        ([[0, 0]], (X0, X1), [0.5, 0.5], [1, 0]),  # X1 shows B:b, A:a: labels stay
        (
            [[c] for c, times in enumerate((35, 20, 12, 13, 20)) for _ in range(times)],
            presentations("identity", 5),
            *[[0.35, 0.20, 0.12, 0.13, 0.20]] * 2,
        ),
    ],
)
def test_rates_of_positions_and_labels(rows, shown, positions, labels) -> None:
    made = outcomes(rows, shown=shown)
    assert listed("position_rate", made) == positions
    assert listed("label_rate", made) == labels
    assert value("primacy", made) == pytest.approx(positions[0] - 1 / len(positions))


def test_undefined_values_say_why() -> None:
    several = outcomes([[0, 2, 1]], gold=[(0, 2)], shown=CYCLIC_3)
    assert "exactly one right candidate" in reason("rstd", several)
    assert reason("ckld_raw", outcomes(ALWAYS_A, gold=[0, 1])).startswith("infinite")
    assert "same candidate" in reason("fleiss_kappa", outcomes([[0, 0], [0, 0]]))


def test_pairwise_agreement_ignores_the_size_of_the_set() -> None:
    choices = [0, 0, 0, 1, 1, 2]
    whole = value("pairwise_agreement", outcomes([choices], shown=FULL[:6]))
    parts = [outcomes([list(part)], shown=FULL[:4]) for part in combinations(choices, 4)]
    mean = np.mean([value("pairwise_agreement", part) for part in parts])
    assert mean == pytest.approx(whole)
    # the mode's share does: 3/6 with all six, more on average with four of them
    assert np.mean([value("consistency", part) for part in parts]) > 0.5


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


def test_rates_leave_out_ties_and_unparsed_answers() -> None:
    made = outcomes([by_letter("A?", SWAP), by_letter("=A", SWAP), by_letter("?B", SWAP)])
    row = measure([made], resamples=0)
    assert [cell.value for cell in row.values["position_rate"]] == [2 / 3, 1 / 3]
    assert [cell.n for cell in row.values["position_rate"]] == [3, 3]
    assert row["unparsed_rate"] == Estimate(value=2 / 6, n=6)
    assert row["tie_rate"] == Estimate(value=1 / 6, n=6)
    assert row["primacy"].value == pytest.approx(2 / 3 - 1 / 2)


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
