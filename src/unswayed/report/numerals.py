"""Numbers as the report writes them; every function of this module is a filter of its templates.

Percent with one decimal, intervals with an en dash, a real minus sign.
"""

from __future__ import annotations

import math

from unswayed.base.counts import agrees as agrees
from unswayed.base.counts import plural as plural
from unswayed.model.decisions import Estimate

MINUS = "\u2212"

_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip
_CARDINALS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
)  # fmt: skip


def share(value: float, digits: int = 1) -> str:
    """Return a fraction in percent without the sign: 0.7825 is 78.2 or 78.3."""
    text = f"{100 * value:.{digits}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", MINUS)


def percent(value: float, digits: int = 1) -> str:
    """Return a fraction in percent with the sign."""
    return f"{share(value, digits)}%"


def whole(value: float, beside: float | None = None) -> str:
    """Return a fraction in whole percent, without the sign; with a decimal where that would hide the
    difference to the fraction `beside` it in the same sentence.
    """
    text = share(value, 0)
    if beside is not None and beside != value and text == share(beside, 0):
        return share(value, 1)
    return text if text not in ("0", "100") or value in (0.0, 1.0) else share(value, 1)


def expected(n: int) -> str:
    """1/n in percent: 50%, 25%, 33.3%."""
    return percent(1 / n, 0 if 100 % n == 0 else 1)


def interval(estimate: Estimate) -> str:
    """Return the interval in percent, without the sign; empty if there is none."""
    if estimate.low is None or estimate.high is None:
        return ""
    dash = "–" if estimate.low >= 0 else " to "  # no dash beside a minus sign
    return f"{share(estimate.low)}{dash}{share(estimate.high)}"


def signed(value: float) -> str:
    """Return a difference of fractions in points, with its sign."""
    return gained(100 * value)


def gap(value: float) -> str:
    """Return a difference of fractions in whole points; with a decimal below one point."""
    return share(value, 1 if 0 < abs(value) < 0.01 else 0)


def gap_points(value: float) -> str:
    """Return `gap` with its noun."""
    text = gap(value)
    return f"{text} {'point' if text.strip(MINUS) == '1' else 'points'}"


def points(gain: Estimate) -> str:
    """Return a difference with its interval: "−0.3 points, 95% interval −1.2 to +0.5"."""
    value = f"{signed(gain.value or 0.0)} points"
    if gain.low is None or gain.high is None:
        return value
    return f"{value} (95% interval {signed(gain.low)} to {signed(gain.high)})"


def number(value: float) -> str:
    """Format a number that is not a percentage, with a real minus sign: 0.716."""
    return f"{value:.3f}".replace("-", MINUS)


def figure(value: float) -> str:
    """Return a number as short as it can be: 2, 0.5, −10."""
    return f"{value:g}".replace("-", MINUS)


def gained(value: float) -> str:
    """Return a difference in points of a scale, with its sign: "+4.1"."""
    text = f"{value:+.1f}"
    return text.replace("-", MINUS) if float(text) else "0.0"


def p_value(p: float) -> str:
    """Return a p-value with two decimals, three where it is small."""
    return "<\u00a0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def apart(gap: Estimate, *, percent: bool = True) -> str:
    """Return a difference with its interval, in points of percent or as it is."""
    if percent:
        return points(gap)
    signs = [
        "" if value is None else f"{'+' if value > 0 else ''}{number(value)}"
        for value in (gap.value, gap.low, gap.high)
    ]
    return f"{signs[0]} (95% interval {signs[1]} to {signs[2]})" if signs[1] else signs[0]


def capital(text: str) -> str:
    """Return the text with a capital at its start."""
    return text[:1].upper() + text[1:]


def small(text: str) -> str:
    """Return a title inside a sentence: "Accuracy" is "accuracy", but "RStd" stays."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def css(fraction: float) -> str:
    """Return a fraction as a CSS percentage."""
    return f"{100 * fraction:.2f}%"


def px(length: float) -> str:
    """Return a length in a drawing."""
    return f"{length:.1f}"


def count(number: int) -> str:
    """Return a count with thousands separators."""
    return f"{number:,}"


def spelled(number: int) -> str:
    """Small counts in words, as they stand inside a sentence."""
    return _CARDINALS[number] if 0 <= number < len(_CARDINALS) else count(number)


def calls_text(calls: float, digits: int = 2) -> str:
    """Return calls per item with at most two decimals: 2, 1.2, 1.05."""
    return f"{calls:.{digits}f}".rstrip("0").rstrip(".")


def calls_phrase(calls: float) -> str:
    """Return calls per item with their noun."""
    text = calls_text(calls)
    return f"{text} call per item" if text == "1" else f"{text} calls per item"


def ordinal(position: int) -> str:
    """Return the word for a position, 0 first."""
    if position < len(_ORDINALS):
        return _ORDINALS[position]
    number = position + 1
    suffix = (
        "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{suffix}"


def two_digits_up(number: float) -> int:
    """Round up to two significant digits: 1067 is 1100."""
    if number <= 10:
        return math.ceil(number)
    scale = 10 ** (math.floor(math.log10(number)) - 1)
    return int(math.ceil(round(number / scale, 9)) * scale)
