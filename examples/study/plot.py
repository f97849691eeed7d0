"""The study's plot: consistency and consistent accuracy by step."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from arms import STEPPED
from figures import Figures, mean
from settings import Setting

LEFT_OUT = ("+r_con", "+A_PA (EIS-GRPO)", "PIF", "exact pair")
"""Measured on the way as well, but a plot of all is not readable."""
MARKERS = "osD^vPX"


def plot(figures: Figures, settings: Sequence[Setting], steps: Sequence[int], path: Path) -> None:
    """Means with their spread over seeds, if matplotlib is there."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    axes = figure.subplots(1, 2 * len(settings), squeeze=False, sharey=True)[0]
    arms = [arm for arm in STEPPED if arm not in LEFT_OUT]
    for axis, (setting, metric) in zip(
        axes, [(s, m) for s in settings for m in ("Con", "CA")], strict=True
    ):
        for place, (arm, marker) in enumerate(zip(arms, MARKERS, strict=True)):
            values = {step: figures.values(setting, arm, metric, step) for step in steps}
            values = {step: some for step, some in values.items() if some}
            if not values:
                continue
            axis.errorbar(
                [step + 1.2 * place for step in values],  # side by side, so spreads can be told
                [mean(some) for some in values.values()],
                [statistics.stdev(some) if len(some) > 1 else 0.0 for some in values.values()],
                marker=marker,
                markersize=4,
                capsize=2,
                linewidth=1,
                label=arm,
            )
        axis.set_title(f"{setting.title}: {metric}", fontsize=9)
        axis.set_xlabel("step")
    axes[0].set_ylabel("%, mean ± sd over seeds")
    axes[0].legend(fontsize=7, loc="lower right")
    figure.savefig(path)
