"""The figures of the runs, by setting and arm; their means, spreads and paired differences."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from arms import ARMS
from settings import Setting, trained_in

Run = Mapping
METRICS: Final = ("Acc", "Con", "CA", "RStd", "ECE", "Brier")
SMALLER_IS_BETTER: Final = frozenset({"RStd", "ECE", "Brier"})
BASE, AVERAGED = "base", "base averaged"
"""The untrained model, asked once and asked in all orders: rows beside the arms."""


class Figures:
    """Measurements of every run."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs: dict[tuple[str, str], dict[int, Run]] = {}
        for run in runs:
            self._runs.setdefault((run["setting"], run["arm"]), {})[run["seed"]] = run

    def runs(self, setting: Setting, arm: str) -> list[Run]:
        """The runs of an arm by seed; where it reads no gold they are those with noisy gold."""
        by_seed = self._runs.get((trained_in(setting, arm).name, arm), {})
        return [by_seed[seed] for seed in sorted(by_seed)]

    def values(
        self, setting: Setting, arm: str, metric: str, step: int | None = None
    ) -> list[float]:
        """A metric of every seed, of an arm or of the untrained model."""
        return list(self._by_seed(setting, arm, metric, step).values())

    def paired(
        self,
        settings: Sequence[Setting],
        metric: str,
        first: str,
        second: str = "PA-GRPO",
        *,
        steps: tuple[int | None, int | None] = (None, None),
    ) -> list[float]:
        """First minus second on the same setting and seed, where both were run."""
        differences = []
        for setting in settings:
            rows = self._by_seed(setting, first, metric, steps[0])
            others = self._by_seed(setting, second, metric, steps[1])
            differences += [rows[seed] - others[seed] for seed in rows if seed in others]
        return differences

    def _by_seed(
        self, setting: Setting, arm: str, metric: str, step: int | None
    ) -> dict[int, float]:
        if arm not in ARMS:
            runs = self.runs(setting, "PA-GRPO")
            return {run["seed"]: run["untrained"][arm][metric] for run in runs}
        at = str(step or setting.steps)
        return {
            run["seed"]: run["steps"][at][metric]
            for run in self.runs(setting, arm)
            if at in run["steps"]
        }


def difference(metric: str, differences: Sequence[float]) -> str:
    """Mean, its standard error, and in how many runs the first was better."""
    if not differences:
        return "–"
    sign = -1 if metric in SMALLER_IS_BETTER else 1
    better = sum(sign * value > 0 for value in differences)
    error = ""
    if len(differences) > 1:
        error = f"±{statistics.stdev(differences) / math.sqrt(len(differences)):.1f}"
    value = f"{mean(differences):+.1f}".replace("-", "−")
    return f"{value}{error} ({better} of {len(differences)})"


def mean(values: Sequence[float]) -> float:
    """NaN for none."""
    return statistics.fmean(values) if values else float("nan")


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Mean and standard deviation; the mean alone if they do not differ."""
    if not values:
        return "–"
    if len(values) < 2 or max(values) == min(values):
        return f"{mean(values):.{digits}f}"
    return f"{mean(values):.{digits}f}±{statistics.stdev(values):.{digits}f}"
