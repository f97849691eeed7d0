"""Worth of candidates to a simulated judge, and the random numbers it draws."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterator, Sequence
from typing import Final

from unswayed.base.errors import ItemError
from unswayed.model.items import Item, text_of

UTILITY_SD: Final = 1.5
"""Standard deviation of the difference of two candidates' utilities, in logits."""
LEVEL_COST: Final = 0.5
"""Logits, times `content`, that a level loses one step of the scale away from the quality."""
MOST_UTILITY: Final = 1e6
"""Logits; anything near it decides by itself."""


class Draws:
    """A stream of random numbers that a key determines, cheaper to start than a generator."""

    def __init__(self, key: bytes, seed: int) -> None:
        self._key = key + seed.to_bytes(8, signed=True)
        self._block = 0
        self._numbers: Iterator[int] = iter(())

    def uniform(self) -> float:
        """Uniform in (0, 1)."""
        number = next(self._numbers, None)
        if number is None:
            digest = hashlib.sha256(self._key + self._block.to_bytes(4)).digest()
            self._numbers = iter(struct.unpack("<4Q", digest))
            self._block += 1
            number = next(self._numbers)
        return ((number >> 11) + 0.5) / 2**53

    def normal(self) -> float:
        """Return standard normal (Box-Muller, one of the pair)."""
        radius = math.sqrt(-2.0 * math.log(self.uniform()))
        return radius * math.cos(2.0 * math.pi * self.uniform())


def utilities(item: Item, point: str = "") -> list[float]:
    """Return the worth of the candidates: `meta.utility`, else drawn once from item id and text.

    For levels of a scale the quality of the response is drawn from id and response. Where one reply
    answers several points, each has its own: `meta.utility` then holds the numbers by name.
    """
    stated = item.meta.get("utility")
    if point and isinstance(stated, dict):
        stated = stated.get(point)
    if isinstance(stated, list | tuple) and len(stated) == item.n:
        if not all(type(value) in {int, float} and abs(value) < MOST_UTILITY for value in stated):
            raise ItemError(
                f"{item.id}: meta.utility: {stated} is not a list of numbers. Correct it."
            )
        return [float(value) for value in stated]
    if item.values is not None:
        name = f"{item.asked_as}\0{point}" if point else item.id
        response = f"{name}\0{item.response or ''}".encode("utf-8", "surrogatepass")
        lowest, highest = min(item.values), max(item.values)
        drawn = Draws(response, 0).uniform()
        return level_utilities(item.values, lowest + (highest - lowest) * drawn)
    return [
        UTILITY_SD
        / math.sqrt(2)
        * Draws(f"{item.id}\0{text_of(candidate)}".encode("utf-8", "surrogatepass"), 0).normal()
        for candidate in item.candidates
    ]


def heights(item: Item) -> list[float]:
    """Return the heights of the levels on their scale, -.5 the lowest and .5 the highest."""
    values = item.values or (0.0,) * item.n
    low, high = min(values), max(values)
    return [(value - low) / (high - low or 1.0) - 0.5 for value in values]


def level_utilities(values: Sequence[float], quality: float) -> list[float]:
    """Return the worth of levels for a response of some quality: -0.5 ((value - quality) / step)^2.

    A step is the mean distance of neighbouring values.
    """
    step = (max(values) - min(values)) / (len(values) - 1)
    return [-LEVEL_COST * ((value - quality) / step) ** 2 for value in values]
