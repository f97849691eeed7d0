"""Numbers as the report writes them; every function here is a filter of its templates.

Percent with one decimal and a narrow no-break space, intervals with an en dash, a real minus sign.
"""

from __future__ import annotations

import math

from unswayed.decisions import Estimate

NARROW = "\u202f"
MINUS = "\u2212"

_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip
_CARDINALS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
)  # fmt: skip


def share(value: float, digits: int = 1) -> str:
    """A fraction in percent without the sign: 0.7825 is 78.2 or 78.3."""
    text = f"{100 * value:.{digits}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", MINUS)


def percent(value: float, digits: int = 1) -> str:
    """A fraction in percent with the sign."""
    return f"{share(value, digits)}{NARROW}%"


def whole(value: float, beside: float | None = None) -> str:
    """Whole percent, without the sign; with a decimal where that would hide a difference.

    Args:
        value: A fraction.
        beside: The fraction it is compared with in the same sentence.
    """
    text = share(value, 0)
    if beside is not None and beside != value and text == share(beside, 0):
        return share(value, 1)
    return text if 0.005 <= value <= 0.995 or value in (0.0, 1.0) else share(value, 1)


def expected(n: int) -> str:
    """1/n in percent: 50 %, 25 %, 33.3 %."""
    return percent(1 / n, 0 if 100 % n == 0 else 1)


def interval(estimate: Estimate) -> str:
    """The interval in percent, without the sign; empty if there is none."""
    if estimate.low is None or estimate.high is None:
        return ""
    dash = "–" if estimate.low >= 0 else " to "  # no dash beside a minus sign
    return f"{share(estimate.low)}{dash}{share(estimate.high)}"


def signed(value: float) -> str:
    """A difference of fractions in points, with its sign."""
    text = f"{100 * value:+.1f}"
    return text.replace("-", MINUS) if float(text) else "0.0"


def points(gain: Estimate) -> str:
    """A difference with its interval: "−0.3 points, 95 % interval −1.2 to +0.5"."""
    value = f"{signed(gain.value or 0.0)} points"
    if gain.low is None or gain.high is None:
        return value
    return f"{value}, 95{NARROW}% interval {signed(gain.low)} to {signed(gain.high)}"


def thousandths(value: float) -> str:
    """A difference of what is no fraction, with its sign: "+0.051"."""
    return f"{value:+.3f}".replace("-", MINUS)


def capital(text: str) -> str:
    """The text with a capital at its start."""
    return text[:1].upper() + text[1:]


def small(text: str) -> str:
    """A title inside a sentence: "Accuracy" is "accuracy", but "RStd" stays."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def css(fraction: float) -> str:
    """A fraction as a CSS percentage."""
    return f"{100 * fraction:.2f}%"


def px(length: float) -> str:
    """A length in a drawing."""
    return f"{length:.1f}"


def count(number: int) -> str:
    """A count with thousands separators."""
    return f"{number:,}"


def spelled(number: int) -> str:
    """Small counts in words, as they stand inside a sentence."""
    return _CARDINALS[number] if 0 <= number < len(_CARDINALS) else count(number)


def plural(number: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def calls_text(calls: float, digits: int = 2) -> str:
    """Calls per item with at most two decimals: 2, 1.2, 1.05."""
    return f"{calls:.{digits}f}".rstrip("0").rstrip(".")


def calls_phrase(calls: float) -> str:
    """Calls per item with their noun."""
    text = calls_text(calls)
    return f"{text} call per item" if text == "1" else f"{text} calls per item"


def ordinal(position: int) -> str:
    """The word for a position, 0 first."""
    if position < len(_ORDINALS):
        return _ORDINALS[position]
    number = position + 1
    suffix = (
        "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{suffix}"


def two_digits_up(number: float) -> int:
    """Rounded up to two significant digits: 1067 is 1100."""
    if number <= 10:
        return math.ceil(number)
    scale = 10 ** (math.floor(math.log10(number)) - 1)
    return int(math.ceil(round(number / scale, 9)) * scale)
