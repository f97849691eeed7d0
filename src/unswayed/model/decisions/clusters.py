"""Items that are not independent: the criteria of one item, and duplicates of a question.

They are drawn together, and count together in differences; each cluster of a set is one draw.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unswayed.model.decisions.codes import FloatArray


@dataclass(frozen=True, slots=True)
class Clusters:
    """Groups of items that belong together."""

    of_item: NDArray[np.intp]  # the cluster of each item, 0 to `count` - 1; shape (I,)
    count: int  # clusters to draw from; some may have no item here

    @classmethod
    def of(cls, names: Sequence[Hashable]) -> Self | None:
        """Items of the same name together, in order of appearance; None where no two share one."""
        clusters = cls.among(names)
        return None if clusters.count == len(names) else clusters

    @classmethod
    def among(cls, names: Sequence[Hashable]) -> Self:
        """Return the same, also where no two share one."""
        codes: dict[Hashable, int] = {}
        of_item = [codes.setdefault(name, len(codes)) for name in names]
        return cls(np.array(of_item, dtype=np.intp), len(codes))

    @classmethod
    def of_strata(cls, strata: Sequence[tuple[int, Self | None]]) -> Self | None:
        """Return the clusters of consecutive strata, each with its number of items; None without any."""
        if all(clusters is None for _, clusters in strata):
            return None
        return cls.of(
            [
                (stratum, own)
                for stratum, (items, clusters) in enumerate(strata)
                for own in (range(items) if clusters is None else clusters.of_item.tolist())
            ]
        )

    def rows(self, index: NDArray[np.intp]) -> Self:
        """Select the clusters of some items."""
        return replace(self, of_item=self.of_item[index])

    def alone(self) -> Self | None:
        """Return the clusters that have an item, and no others."""
        return type(self).of(self.of_item.tolist())

    def sums(self, values: FloatArray) -> FloatArray:
        """Return sums over the items of each cluster, shape (I, ...) -> (count, ...)."""
        sums = np.zeros((self.count, *values.shape[1:]))
        np.add.at(sums, self.of_item, values)
        return sums

    def entries(self, values: FloatArray) -> FloatArray:
        """One row per cluster with the mean of the values, (I, ...) -> (count, ...).

        The deviations of the items of a cluster from the mean, summed: the spread of these numbers
        is that of the mean, however large clusters are.
        """
        if self.count == len(values):
            return values
        mean = values.mean(axis=0)
        entries: FloatArray = mean + self.sums(values - mean) * (self.count / len(values))
        return entries

    def drawn(self, generator: np.random.Generator) -> NDArray[np.intp]:
        """Return the items of as many clusters as there are, drawn with replacement."""
        drawn = generator.integers(0, self.count, self.count)
        if self.count == len(self.of_item):
            return drawn
        ends = np.bincount(self.of_item, minlength=self.count).cumsum()
        members = np.split(self.of_item.argsort(kind="stable"), ends[:-1])
        return np.concatenate([members[cluster] for cluster in drawn.tolist()])
