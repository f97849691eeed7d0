"""A method that withholds verdicts is not compared: neither on the frontier nor by bold figures."""

import pytest

import unswayed as us
from unswayed.report.collect import run_data
from unswayed.report.findings import ACCURACY_FRACTIONAL, Finding
from unswayed.report.frontier import dots_of
from unswayed.report.table import main_table


@pytest.fixture(scope="module")
def finding() -> Finding:
    methods = ["direct", "selective", "average"]
    result = us.audit(limit=400, methods=methods, estimation_items=200)
    return Finding(run_data(result.record))


def test_method_that_withholds_is_not_on_the_frontier(finding: Finding) -> None:
    rates = [
        finding.metrics.methods[name].get(ACCURACY_FRACTIONAL) for name in ("selective", "average")
    ]
    few, every = (rate.value for rate in rates if rate is not None and rate.value is not None)
    assert few > every  # of fewer verdicts
    assert {dot.name for dot in dots_of(finding, ACCURACY_FRACTIONAL)} == {"direct", "average"}


def test_figures_of_fewer_verdicts_are_never_the_best(finding: Finding) -> None:
    (row,) = [row for row in main_table(finding).rows if row.name == "selective"]
    assert not any(cell.best for cell in row.cells)
