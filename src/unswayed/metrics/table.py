"""The table of metrics: one line registers one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from unswayed.base.registry import Registry
from unswayed.metrics.metric import Metric

BUILT_IN: Final = {
    "accuracy": "unswayed.metrics.accuracy:ACCURACY",
    "accuracy_fractional": "unswayed.metrics.accuracy:FRACTIONAL",
    "agreement": "unswayed.metrics.accuracy:AGREEMENT",
    "aurc": "unswayed.metrics.abstention:AURC",
    "ckld": "unswayed.metrics.recall_balance:CKLD",
    "ckld_raw": "unswayed.metrics.recall_balance:CKLD_RAW",
    "consistency": "unswayed.metrics.consistency:CONSISTENCY",
    "consistent_accuracy": "unswayed.metrics.accuracy:CONSISTENT_ACCURACY",
    "consistent_accuracy_fractional": "unswayed.metrics.accuracy:CONSISTENT_FRACTIONAL",
    "coverage": "unswayed.metrics.abstention:COVERAGE",
    "criterion_place": "unswayed.metrics.score_effects:CRITERION_PLACE",
    "fleiss_kappa": "unswayed.metrics.consistency:FLEISS_KAPPA",
    "icc2k": "unswayed.metrics.intraclass:ICC2K",
    "icc3k": "unswayed.metrics.intraclass:ICC3K",
    "kendall_tau": "unswayed.metrics.correlation:KENDALL",
    "label_bias": "unswayed.metrics.signed_bias:LABEL_BIAS",
    "label_mass": "unswayed.metrics.rates:LABEL_MASS",
    "label_rate": "unswayed.metrics.rates:LABEL_RATE",
    "pairwise_agreement": "unswayed.metrics.consistency:PAIRWISE_AGREEMENT",
    "pearson": "unswayed.metrics.correlation:PEARSON",
    "position_bias": "unswayed.metrics.signed_bias:POSITION_BIAS",
    "position_effect": "unswayed.metrics.rates:POSITION_EFFECT",
    "position_rate": "unswayed.metrics.rates:POSITION_RATE",
    "position_score": "unswayed.metrics.score_effects:POSITION_SCORE",
    "primacy": "unswayed.metrics.rates:PRIMACY",
    "rank_stability": "unswayed.metrics.score_effects:RANK_STABILITY",
    "recall_difference": "unswayed.metrics.recall_balance:RECALL_DIFFERENCE",
    "rstd": "unswayed.metrics.recall_balance:RSTD",
    "score_sd": "unswayed.metrics.intraclass:SCORE_SD",
    "score_shift": "unswayed.metrics.score_effects:SCORE_SHIFT",
    "spearman": "unswayed.metrics.correlation:SPEARMAN",
    "tie_rate": "unswayed.metrics.rates:TIE_RATE",
    "unparsed_rate": "unswayed.metrics.rates:UNPARSED_RATE",
    "within_item_sd": "unswayed.metrics.score_effects:WITHIN_ITEM_SD",
}

METRICS: Registry[Metric] = Registry("metric", BUILT_IN, like="unswayed.metrics.metric:Metric")


def load_metrics(names: Iterable[str] | None = None) -> dict[str, Metric]:
    """Return the named metrics; all that are registered by default."""
    return {name: METRICS.load(name) for name in (METRICS if names is None else names)}


def compared_metrics() -> dict[str, Metric]:
    """Return the metrics in which methods, and runs, are compared item by item."""
    return {name: metric for name, metric in load_metrics().items() if metric.compared != "no"}
