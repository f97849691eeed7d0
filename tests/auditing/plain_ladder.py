"""The recommendation from a table of values, computed the plain way from its written rules.

Nothing of the package is used. Critical values come from other draws; `slack` moves them, to show
which results hang on the draws. Intervals are (value, low, high).
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

TWO_SIDED, ONE_SIDED = stats.norm.ppf(0.975), stats.norm.ppf(0.95)


@dataclass
class Ladder:
    """Methods that compete with "direct".

    `values[i, m]` is what method m earns on item i, NaN where it lacks an answer; `prices` holds calls
    per item (with those for fitting, without), `units` the question of each item; `alike` says that by
    design all orders may be the same sum as a single call, `chance` what guessing earns.
    """

    values: Any
    names: list[str]
    prices: list[tuple[float, float]]
    units: list[Any]
    margin: float = 0.01
    alike: bool = False
    chance: float | None = None
    slack: float = 0.0
    quantiles: dict[tuple[int, bool], float] = field(default_factory=dict)  # they know no slack

    def advice(self) -> dict[str, Any]:
        self.kept = np.flatnonzero(np.isnan(self.values).mean(axis=0) <= 0.1).tolist()
        whole = ~np.isnan(self.values[:, self.kept]).any(axis=1)
        self.common = self.values[whole]
        rows: dict[object, list[int]] = defaultdict(list)
        for row, unit in enumerate(itertools.compress(self.units, whole)):
            rows[unit].append(row)
        self.of_unit = list(rows.values())
        return {"items": len(self.common), "units": len(rows), **self._state()}

    def _state(self) -> dict[str, Any]:
        at = {self.names[m]: m for m in self.kept}
        base, every = at.get("direct"), at.get("average", at.get("vote"))
        if len(self.of_unit) < 20 or base is None or every is None:
            return {"state": "none", "method": None}
        above = [m for m, own in self._family(every).items() if m != base and own[1] > 0]
        top = max(above, key=lambda m: self.common[:, m].mean()) if above else every
        apart = self.common[:, top] - self.common[:, base]
        if self.alike and top == every and not apart.any():
            return {"state": "same", "method": None}
        level = [
            self._interval(self.common[:, m] - (self.chance or 0), TWO_SIDED) for m in (top, base)
        ]
        if self.chance is not None and max(own[1] for own in level) <= 0:
            return {"state": "none", "method": None}
        gains = self._family(base)
        critical = self._critical(base)
        if top == every:  # planned: no correction
            critical = TWO_SIDED + self.slack
            gains[top] = self._interval(apart, critical)
        value, low, high = gains[top]
        if high < 0:
            return {"state": "worse", "method": "direct", "gain": gains[top]}
        below = self._family(top, two_sided=False)
        near = [top, *(m for m in below if below[m][1] >= -self.margin)]
        if base in near:
            gain = tuple(-below[base][end] for end in (0, 2, 1))
            return {"state": "enough", "method": "direct", "gain": gain}
        if low > 0:
            able = [m for m in near if gains[m][1] > 0]
            chosen = min(able, key=lambda m: (*self.prices[m], self.names[m]))
            return {"state": "better", "method": self.names[chosen], "gain": gains[chosen]}
        spread = np.std(self._entries(apart))
        wanted = ((critical + 0.84) * spread / max(value, self.margin - value)) ** 2
        return {
            "state": "open", "method": None, "gain": gains[top], "cheapest": "direct",
            "most_accurate": self.names[base if value < -self.margin else top],
            "needed": wanted - len(self.of_unit),
        }  # fmt: skip

    def _entries(self, values: Any) -> Any:
        """One number per unit, whose mean is that of the values."""
        mean, size = values.mean(), len(self.of_unit) / len(values)
        return np.array([mean + size * (values[rows] - mean).sum() for rows in self.of_unit])

    def _interval(self, values: Any, critical: float) -> tuple[float, float, float]:
        """The mean with one unit more on each side, as far off as the farthest."""
        own = self._entries(values).round(12)
        n, mean = len(own), values.mean()
        if len(set(own)) == 1:
            share = 1 - 0.025 ** (1 / n)
            return mean, mean - share * (mean + 1), mean + share * (1 - mean)
        centre, square = own.sum() / (n + 2), (sum(own**2) + 2 * max(own**2)) / (n + 2)
        error = math.sqrt((square - centre**2) / (n + 1)) * stats.t.ppf(0.975, n - 1)
        reach = critical * error / TWO_SIDED
        return mean, min(max(centre - reach, -1), mean), max(min(centre + reach, 1), mean)

    def _family(self, b: int, *, two_sided: bool = True) -> dict[int, tuple[float, float, float]]:
        critical = self._critical(b, two_sided=two_sided)
        apart = self.common - self.common[:, [b]]
        return {m: self._interval(apart[:, m], critical) for m in self.kept if m != b}

    def _critical(self, b: int, *, two_sided: bool = True) -> float:
        """The 95% quantile of the largest studentised difference to b, at least the normal one."""
        if (b, two_sided) not in self.quantiles:
            self.quantiles[b, two_sided] = self._quantile(b, two_sided=two_sided)
        normal = TWO_SIDED if two_sided else ONE_SIDED
        return max(normal, self.quantiles[b, two_sided]) + self.slack

    def _quantile(self, b: int, *, two_sided: bool) -> float:
        apart = self.common - self.common[:, [b]]
        sums = np.array([(apart - apart.mean(axis=0))[rows].sum(axis=0) for rows in self.of_unit])
        spread, axes = np.linalg.eigh(sums.T @ sums)
        root = axes * np.sqrt(np.where(spread > 1e-12 * spread[-1], spread, 0))
        drawn = np.random.default_rng(len(sums)).normal(size=(20_000, len(spread))) @ root.T
        drawn = drawn[:, drawn.std(axis=0) > 1e-6 * max(drawn.std(), 1e-9)]
        drawn = (abs(drawn) if two_sided else drawn) / drawn.std(axis=0)
        return float(np.quantile(drawn.max(axis=1, initial=0), 0.95))
