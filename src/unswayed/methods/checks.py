"""Check learned values, so that a damaged file cannot be loaded."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from unswayed.base.errors import MethodError, ShapeError
from unswayed.model.permutations import Order, invert

ROUNDING = 1e-9


class UnsoundError(MethodError, ValueError):
    """A learned value that no fit makes (a ValueError too: file readers then say where it is)."""


def check_numbers(
    name: str,
    numbers: Sequence[float],
    size: int,
    *,
    least: float = -math.inf,
    most: float = math.inf,
) -> None:
    """Check how many numbers there are, and that all are finite and in a range."""
    if len(numbers) != size:
        raise UnsoundError(f"{name}: {len(numbers)} numbers where {size} are needed")
    for number in numbers:
        if not (math.isfinite(number) and least - ROUNDING <= number <= most + ROUNDING):
            raise UnsoundError(f"{name}: {number} is not a number between {least:g} and {most:g}")


def check_offsets(offsets: Sequence[float], n: int) -> None:
    """Check offsets of n labels, in nats: they sum to 0, and no log-probability is far below -1000."""
    check_numbers("offsets", offsets, n, least=-1000, most=1000)
    check_numbers("sum of offsets", [math.fsum(offsets)], 1, least=0, most=0)


def check_rising(name: str, numbers: Sequence[float], *, strictly: bool) -> None:
    """Check that numbers rise, or at least never fall."""
    for before, after in itertools.pairwise(numbers):
        if after < before or (strictly and after == before):
            raise UnsoundError(f"{name}: {before} is followed by {after}")


def check_layout(name: str, layout: Order, n: int) -> None:
    """Check that a label sequence has each of n labels once."""
    try:
        invert(layout)
    except ShapeError:
        n = -1
    if len(layout) != n or n < 2:
        raise UnsoundError(f"{name}: {list(layout)} is not a sequence of the item's labels")
