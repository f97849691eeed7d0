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


def test_percent_has_one_decimal_and_a_narrow_no_break_space() -> None:
    assert percent(0.782) == "78.2%"
    assert percent(0.5, 0) == "50%"


def test_a_share_that_rounds_to_zero_has_no_minus() -> None:
    assert share(-0.0001) == "0.0"
    assert share(-0.012) == "\u22121.2"


def test_whole_percent_keeps_a_decimal_that_matters() -> None:
    assert whole(0.78, beside=0.5) == "78"
    assert whole(0.503, beside=0.5) == "50.3"  # 50 beside 50 would say "no difference"
    assert whole(0.997) == "99.7"  # 100 would say "always"
    assert (whole(0.005), whole(0.995)) == ("0.5", "99.5")  # rounded to even: 0 and 100
    assert whole(1.0) == "100"


def test_an_interval_has_an_en_dash_or_is_empty() -> None:
    assert interval(Estimate(value=0.5, low=0.484, high=0.516)) == "48.4–51.6"
    assert interval(Estimate(value=0.5)) == ""


def test_differences_carry_their_sign_and_are_points() -> None:
    gap = Estimate(value=-0.003, low=-0.012, high=0.005)
    assert points(gap) == "\u22120.3 points, 95% interval \u22121.2 to +0.5"
    assert signed(0.0004) == "0.0"


def test_a_title_in_a_sentence_is_lower_case_unless_abbreviated() -> None:
    assert [small(title) for title in ("Accuracy", "RStd", "ICC(2,k)", "")] == [
        "accuracy",
        "RStd",
        "ICC(2,k)",
        "",
    ]


def test_calls_lose_trailing_zeros() -> None:
    assert [calls_text(c) for c in (1, 1.2, 1.05, 24.0)] == ["1", "1.2", "1.05", "24"]


@pytest.mark.parametrize(
    ("position", "word"), [(0, "first"), (9, "tenth"), (10, "11th"), (21, "22nd"), (110, "111th")]
)
def test_ordinals_are_words_up_to_ten(position: int, word: str) -> None:
    assert ordinal(position) == word


@pytest.mark.parametrize(
    ("number", "rounded"), [(1067, 1100), (1100, 1100), (231, 240), (9.2, 10), (10.1, 11)]
)
def test_needed_items_are_rounded_up_to_two_digits(number: float, rounded: int) -> None:
    assert two_digits_up(number) == rounded


@given(st.floats(min_value=10.5, max_value=1e7))
def test_rounding_up_adds_at_most_a_tenth(number: float) -> None:
    assert number <= two_digits_up(number) <= 1.1 * number + 1


def test_points_are_whole_except_below_one() -> None:
    assert [gap(v) for v in (0.574, -0.02, 0.0041, 0.0)] == ["57", "−2", "0.4", "0"]


def test_points_agree_with_their_number() -> None:
    assert [gap_points(v) for v in (0.01, -0.01, 0.02, 0.004, 0.0)] == [
        "1 point",
        "−1 point",
        "2 points",
        "0.4 points",
        "0 points",
    ]
