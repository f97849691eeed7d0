"""Impossible tables are found, in our own rows and in published ones."""

import msgspec
import pytest
from metric_builders import M, outcomes

from unswayed.base.errors import UsageError
from unswayed.metrics import ImpossibleTableError, Row, check_cells, measure, self_check, selfcheck
from unswayed.model.decisions import Estimate
from unswayed.model.presentation import X0, X1, X2, X3, Presentation


def test_a_doctored_row_is_refused() -> None:
    made = outcomes([[0, 0], [0, 1], [1, 1]])
    row = measure([made], resamples=50)
    self_check(row, [made])
    accuracy = msgspec.structs.replace(row["accuracy"], value=0.9, high=0.9)
    doctored = row.with_values({"accuracy": accuracy})
    with pytest.raises(ImpossibleTableError, match=r"accuracy: measured 0\.9"):
        self_check(doctored, [made])


def test_a_value_outside_its_interval_is_refused() -> None:
    made = outcomes([[0, 0], [0, M]], gold=[None, None])
    cell = Estimate(value=0.5, low=0.6, high=0.7, n=2)
    row = Row({"tie_rate": (cell,)})
    with pytest.raises(ImpossibleTableError, match=r"tie_rate: 0\.5 is outside"):
        self_check(row, [made])


@pytest.mark.parametrize(("shown", "most"), [((X0, X2), 0.596), ((X0, X1, X2, X3), 0.783)])
def test_accuracy_beyond_its_bound_is_impossible_however_counted(
    shown: tuple[Presentation, ...], most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # .222 + (1 - .252) / 2 = .596, and of four presentations .222 + .748 * 3 / 4 = .783
    made = outcomes([[0] * len(shown)], shown=shown)
    values = {"accuracy": most, "consistency": 0.252, "consistent_accuracy": 0.222}
    monkeypatch.setattr(selfcheck, "_count", lambda own: values)

    def check() -> None:
        self_check(Row({name: (Estimate(value=own, n=1),) for name, own in values.items()}), [made])

    check()
    values["accuracy"] += 0.001
    with pytest.raises(ImpossibleTableError, match=r"is impossible: .* at most 0\.[57][89]"):
        check()


def test_published_rows_are_checked_within_their_rounding() -> None:
    rows = [
        {"model": "fine", "Acc": "59.6", "Con": "25.2", "CA": "22.2"},
        {"model": "rounded", "Acc": "59.7", "Con": "25.2", "CA": "22.2"},  # .1 over, rounding .125
        {"model": "over", "Acc": "60.0", "Con": "25.2", "CA": "22.2"},
        {"model": "worse", "Acc": "69.1", "Con": "25.2", "CA": "22.2"},
        {"model": "no consistency", "Acc": "69.1", "CA": "22.2"},
    ]
    found = check_cells(rows, candidates=2)
    assert [(bad.row, bad.name) for bad in found] == [(4, "worse"), (3, "over")]
    assert found[0].excess == pytest.approx(9.5)
    assert found[0].rule == "accuracy <= CA + (1 - Con) / 2"


def test_tables_in_fractions_and_a_given_tolerance() -> None:
    rows = [{"accuracy": 0.61, "consistency": 0.252, "consistent_accuracy": 0.222}]
    assert len(check_cells(rows, candidates=2)) == 1
    assert check_cells(rows, candidates=2, tolerance=0.02) == []


def test_consistent_accuracy_is_at_most_its_parts() -> None:
    rows = [{"acc": "50.0", "con": "40.0", "ca": "55.0"}]
    assert {bad.rule for bad in check_cells(rows, candidates=2)} == {
        "CA <= accuracy",
        "CA <= Con",
    }


def test_a_table_that_cannot_be_checked_says_why() -> None:
    with pytest.raises(UsageError, match="no row has all three"):
        check_cells([{"accuracy": 0.5}])
    with pytest.raises(UsageError, match=r"row 1: accuracy 120.0 is not between 0 and 100"):
        check_cells([{"acc": 120.0, "con": 40.0, "ca": 10.0}])
