"""The recommendation from a table of values, computed the plain way from its written rules.

Nothing of the package is used. `values[i][m]` is what method m earns on item i, ties shared, NaN
where it lacks an answer that it reads. Critical values come from draws of their own;
`slack` moves all of them, so that a caller can tell which results hang on the draws. `gain` is (value,
low, high).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

DRAWS = 40_000


@dataclass
class Ladder:
    """Methods that compete, on their common items.

    `prices` holds (calls per item with those for fitting, calls per item without), `units` the question
    of each item, `alike` whether the design makes reading all orders the same as a single call.
    """

    values: Any
    names: Sequence[str]
    prices: Sequence[tuple[float, float]]
    units: Sequence[object]
    margin: float = 0.01
    alike: bool = False
    slack: float = 0.0
    base: str = "direct"

    def advice(self) -> dict[str, Any]:
        lacking = np.isnan(self.values).mean(axis=0)
        self.kept = [m for m in range(len(self.names)) if lacking[m] <= 0.1]
        whole = ~np.isnan(self.values[:, self.kept]).any(axis=1)
        self.common = self.values[whole]
        own = [unit for unit, is_whole in zip(self.units, whole, strict=True) if is_whole]
        self.of_unit = [[i for i, u in enumerate(own) if u == unit] for unit in dict.fromkeys(own)]
        return {"items": len(own), "units": len(self.of_unit), **self._state()}

    def _state(self) -> dict[str, Any]:
        at = {self.names[m]: m for m in self.kept}
        base, every = at.get(self.base), at.get("average", at.get("vote"))
        if len(self.of_unit) < 20 or base is None or every is None:
            return {"state": "none", "method": None}
        if self.alike and (self.common[:, every] == self.common[:, base]).all():
            return {"state": "same", "method": None}
        ahead = self._family([(m, every) for m in self.kept if m != every], two_sided=True)
        above = [m for m in self.kept if m != every and self._interval(m, every, ahead)[1] > 0]
        top = max(above, key=lambda m: self.common[:, m].mean()) if above else every
        beside_base = self._family([(m, base) for m in self.kept if m != base], two_sided=True)
        critical = 1.959964 + self.slack if top == every else beside_base
        gain = self._interval(top, base, critical)
        below = self._family([(m, top) for m in self.kept if m != top], two_sided=False)
        near = [
            m for m in self.kept if m == top or self._interval(m, top, below)[1] >= -self.margin
        ]
        if base in near:
            return {"state": "enough", "method": self.base, "gain": gain}
        if gain[1] > 0:
            able = [m for m in near if m == top or self._interval(m, base, critical)[1] > 0]
            chosen = min(able, key=lambda m: (*self.prices[m], self.names[m]))
            return {"state": "better", "method": self.names[chosen], "gain": gain}
        if gain[2] < 0:
            return {"state": "worse", "method": self.base, "gain": gain}
        likely = base if gain[0] < -self.margin else top
        return {
            "state": "open", "method": None, "gain": gain, "cheapest": self.base,
            "most_accurate": self.names[likely], "needed": self._needed(top, base, critical),
        }  # fmt: skip

    def _apart(self, a: int, b: int) -> list[float]:
        """One number per unit whose mean is that of the differences."""
        apart = self.common[:, a] - self.common[:, b]
        mean, n = apart.mean(), len(apart)
        if len(self.of_unit) == n:
            return [float(d) for d in apart]
        size = len(self.of_unit) / n
        return [mean + size * sum(apart[i] - mean for i in rows) for rows in self.of_unit]

    def _interval(self, a: int, b: int, critical: float) -> tuple[float, float, float]:
        """The difference with one unit more on each side, as far off as the farthest."""
        apart = self._apart(a, b)
        n, mean = len(apart), math.fsum(apart) / len(apart)
        if len({round(d, 12) for d in apart}) == 1:
            share = 1 - 0.025 ** (1 / n)
            return mean, mean - share * (mean + 1), mean + share * (1 - mean)
        most = max(abs(d) for d in apart)
        centre = math.fsum(apart) / (n + 2)
        square = (math.fsum(d * d for d in apart) + 2 * most**2) / (n + 2)
        spread = math.sqrt((square - centre**2) / (n + 1))
        reach = critical * spread * stats.t.ppf(0.975, max(n - 1, 1)) / stats.norm.ppf(0.975)
        return mean, min(max(centre - reach, -1), mean), max(min(centre + reach, 1), mean)

    def _family(self, pairs: Sequence[tuple[int, int]], *, two_sided: bool) -> float:
        """The 95% quantile of the largest studentised difference, not below the normal one."""
        sums = np.array([(self.common - self.common.mean(0))[rows].sum(0) for rows in self.of_unit])
        law = np.random.default_rng(len(sums)).multivariate_normal(
            np.zeros(sums.shape[1]), sums.T @ sums, DRAWS, method="eigh"
        )
        largest = np.zeros(DRAWS)
        for a, b in pairs:
            drawn = law[:, a] - law[:, b]
            if drawn.std() > 1e-6 * law.std():
                drawn = drawn / drawn.std()
                largest = np.maximum(largest, abs(drawn) if two_sided else drawn)
        floor = 1.959964 if two_sided else 1.644854
        return max(floor, float(np.quantile(largest, 0.95))) + self.slack

    def _needed(self, top: int, base: int, critical: float) -> float:
        """Further units that would decide, not rounded."""
        apart = self._apart(top, base)
        spread, measured = float(np.std(apart)), float(np.mean(apart))
        reach = max(measured, self.margin - measured)
        return ((critical + 0.84) * spread / reach) ** 2 - len(self.of_unit)
