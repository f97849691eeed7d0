"""Means and spread of per-item statistics: all that a bootstrap of the sums of many items needs.

The sum of n items drawn with replacement has mean n m and covariance S, the scatter of the items'
statistics around their mean m, and is normal where n is large. Metrics of continuous quantities are
maps of such sums, so normal draws through the same map take the place of drawn items: the interval
needs no item any more, and merged shards have it as the whole has. The scatter is kept around the
mean, where nothing cancels.

Source: Chan, Golub and LeVeque (1983), The American Statistician 37, 242, for the merging.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from unswayed.decisions import FloatArray
from unswayed.errors import ShapeError

__all__ = [
    "EXACT_UP_TO",
    "FEWEST_EFFECTIVE",
    "FEWEST_MERGED",
    "Merged",
    "Moments",
    "effective_items",
]

EXACT_UP_TO: Final = 5_000
"""Items that count up to which they are drawn one by one, where they are at hand."""

FEWEST_MERGED: Final = 2_000
"""Items that have to count for an interval where they are not at hand."""

FEWEST_EFFECTIVE: Final = 200
"""Effective items below which items are drawn one by one, however many count."""

_ROUNDING: Final = 1e-13
"""Share of the largest spread below which one is rounding: its root would be 1e-8 of a sum."""


class Moments(Struct, frozen=True):
    """The first two moments of one metric's statistics, shape (I, k) before.

    Attributes:
        items: Items n, those that do not count in the metric included.
        counted: Items that count.
        mean: Mean of the statistics over all n, k numbers.
        scatter: Sum of the products of their deviations from it, k times k numbers.
    """

    items: int
    counted: int
    mean: tuple[float, ...]
    scatter: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, statistics: FloatArray) -> Moments:
        """Those of statistics, shape (I, k); column 0 is 0 where an item does not count."""
        columns = np.ascontiguousarray(
            statistics.T
        )  # in rows numpy adds pairwise, with no rounding that grows
        mean = columns.mean(axis=1) if len(statistics) else np.zeros(len(columns))
        apart = statistics - mean
        counted = int(np.count_nonzero(statistics[:, 0]))
        return cls(len(statistics), counted, tuple(mean.tolist()), _rows(apart.T @ apart))

    @classmethod
    def of_none(cls, items: int, size: int) -> Moments:
        """Those of items that do not count in a metric of k sums."""
        return cls(items, 0, (0.0,) * size, ((0.0,) * size,) * size)

    def __add__(self, other: Moments) -> Moments:
        """Those of the items of both.

        Raises:
            ShapeError: If they are of statistics of different width.
        """
        if len(self.mean) != len(other.mean):
            raise ShapeError(f"moments of {len(self.mean)} and of {len(other.mean)} sums")
        items = self.items + other.items
        if not items:
            return self
        apart = np.array(other.mean) - np.array(self.mean)
        mean = np.array(self.mean) + apart * (other.items / items)
        between = np.outer(apart, apart) * (self.items / items * other.items)
        scatter = np.array(self.scatter) + np.array(other.scatter) + between
        return Moments(items, self.counted + other.counted, tuple(mean.tolist()), _rows(scatter))

    def fits(self, items: int) -> bool:
        """Whether they can be of so many items."""
        size = len(self.mean)
        numbers = [*self.mean, *chain.from_iterable(self.scatter)]
        return (
            self.items == items >= self.counted >= 0
            and size > 0
            and [len(row) for row in self.scatter] == [size] * size
            and all(map(math.isfinite, numbers))
        )

    @property
    def sums(self) -> FloatArray:
        """The statistics summed over all items, shape (k,)."""
        return self.items * np.array(self.mean)

    def resampled(self, draws: NDArray[np.int64], generator: np.random.Generator) -> FloatArray:
        """Sums over as many items as each resample draws, (B,) -> (B, k), as a normal law has them.

        The root of the covariance is the symmetric one, which changes little where it changes
        little, so that merged shards and the whole draw alike.
        """
        size = len(self.mean)
        share = draws[:, None] / self.items
        spread, directions = np.linalg.eigh(np.array(self.scatter))
        spread[spread < _ROUNDING * spread[-1]] = 0.0
        root = (directions * np.sqrt(spread)) @ directions.T
        noise = generator.standard_normal((len(draws), size)) @ root
        sums: FloatArray = share * self.sums + np.sqrt(share) * noise
        return sums


def effective_items(statistics: FloatArray) -> float:
    """From how many items the spread comes, in the column where these are fewest, (I, k) -> ().

    `(sum d^2)^2 / sum d^4` over the deviations d from the mean: a third of the items where these are
    normal, about m where m of very many differ from the rest. Infinite where nothing differs.
    """
    fewest = np.inf
    for column in np.ascontiguousarray(statistics.T):  # one by one, in less memory
        squares = (column - column.mean()) ** 2
        spread, fourth = squares.sum(), (squares**2).sum()
        if spread > _ROUNDING * (column**2).sum():
            fewest = min(fewest, float(spread**2 / fourth))
    return fewest


def _rows(matrix: FloatArray) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, matrix.tolist()))


@dataclass(frozen=True, slots=True)
class Merged:
    """What shards said of the continuous quantities of one method.

    Attributes:
        recorded: The quantities that any shard had, by name (`Outcomes.recorded`).
        moments: By metric; one that is missing has no value.
    """

    recorded: tuple[str, ...]
    moments: Mapping[str, Moments]
