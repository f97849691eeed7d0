"""Metrics: one file per kind, one line here per metric."""

from __future__ import annotations

from unswayed.metrics.consistency import FlipShare, flips
from unswayed.metrics.groups import measure_groups
from unswayed.metrics.improvements import Improvements, improved_regressed, sign_test
from unswayed.metrics.measure import difference, measure
from unswayed.metrics.metric import Metric, Need, fraction, item_means, ratio
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.printed_table import Impossible, check_cells
from unswayed.metrics.rates import level_choices
from unswayed.metrics.recorded import outcomes_from_decisions, outcomes_of
from unswayed.metrics.resampling import Options
from unswayed.metrics.rows import Row
from unswayed.metrics.selfcheck import ImpossibleTableError, self_check
from unswayed.metrics.table import METRICS

__all__ = [
    "METRICS",
    "FlipShare",
    "Impossible",
    "ImpossibleTableError",
    "Improvements",
    "Metric",
    "Need",
    "Options",
    "Outcomes",
    "Row",
    "check_cells",
    "difference",
    "flips",
    "fraction",
    "improved_regressed",
    "item_means",
    "level_choices",
    "measure",
    "measure_groups",
    "outcomes_from_decisions",
    "outcomes_of",
    "ratio",
    "self_check",
    "sign_test",
]
