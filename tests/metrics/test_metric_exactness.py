"""Cases that small slips in the metrics would get wrong."""

import pytest
from metric_builders import outcomes

from unswayed.metrics import measure, measure_groups


def test_a_group_without_value_stays_out_of_the_macro_interval() -> None:
    # group g: 4 of 4 right; group h has no gold. 1 - .025^(1/4) of 4 alike may be different.
    made = outcomes(
        [[0, 0]] * 6, gold=[0, 0, 0, 0, None, None], groups=["g", "g", "g", "g", "h", "h"]
    )
    _, macro = measure_groups([made], names=["accuracy"], resamples=50)
    found = macro["accuracy"]
    assert (found.value, found.groups) == (1.0, 1)
    assert found.low == pytest.approx(0.025**0.25)


def test_an_item_that_must_not_be_permuted_is_never_complete() -> None:
    # answers to its other orders may have been recorded: they say nothing about the judge's orders
    row = measure([outcomes([[0, 0], [0, 1]], permutable=[True, False])], resamples=0)
    assert (row["consistency"].value, row["consistency"].n) == (1.0, 1)
    assert row.incomplete == 0
