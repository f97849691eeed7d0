"""Numbers as the report writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.model.decisions import Estimate
from unswayed.report.numerals import (
    calls_text,
    gap,
    gap_points,
    interval,
    ordinal,
    percent,
    points,
    share,
    signed,
    small,
    two_digits_up,
    whole,
)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (percent(0.782), "78.2%"),
        (percent(0.5, 0), "50%"),
        (share(-0.0001), "0.0"),
        (share(-0.012), "\u22121.2"),
        (whole(0.78, beside=0.5), "78"),
        (whole(0.503, beside=0.5), "50.3"),  # 50 beside 50 would say "no difference"
        (whole(0.997), "99.7"),  # 100 would say "always"
        (whole(0.005), "0.5"),  # rounded to even: 0
        (whole(0.995), "99.5"),
        (whole(1.0), "100"),
        (interval(Estimate(value=0.5, low=0.484, high=0.516)), "48.4–51.6"),
        (interval(Estimate(value=0.5)), ""),
        (
            points(Estimate(value=-0.003, low=-0.012, high=0.005)),
            "\u22120.3 points (95% interval \u22121.2 to +0.5)",
        ),
        (signed(0.0004), "0.0"),
        (" ".join(map(small, ("Accuracy", "RStd", "ICC(2,k)", ""))), "accuracy RStd ICC(2,k) "),
        (" ".join(map(calls_text, (1, 1.2, 1.05, 24.0))), "1 1.2 1.05 24"),
        (" ".join(map(ordinal, (0, 9, 10, 21, 110))), "first tenth 11th 22nd 111th"),
        (" ".join(map(gap, (0.574, -0.02, 0.0041, 0.0))), "57 −2 0.4 0"),
        (", ".join(map(gap_points, (0.01, -0.01, 0.02))), "1 point, −1 point, 2 points"),
        (", ".join(map(gap_points, (0.004, 0.0))), "0.4 points, 0 points"),
    ],
)
def test_numbers_are_written_in_one_way(written: str, text: str) -> None:
    assert written == text


def test_needed_items_are_rounded_up_to_two_digits() -> None:
    assert [two_digits_up(n) for n in (1067, 1100, 231, 9.2, 10.1)] == [1100, 1100, 240, 10, 11]


@given(st.floats(min_value=10.5, max_value=1e7))
def test_rounding_up_adds_at_most_a_tenth(number: float) -> None:
    assert number <= two_digits_up(number) <= 1.1 * number + 1
