"""The table of metrics: one line registers one."""

from __future__ import annotations

from unswayed.metrics.protocol import Metric
from unswayed.registry import Registry

__all__ = ["METRICS"]

METRICS: Registry[type[Metric]] = Registry(
    "metric",
    {
        "accuracy": "unswayed.metrics.accuracy:Accuracy",
        "accuracy_fractional": "unswayed.metrics.accuracy:FractionalAccuracy",
        "ckld": "unswayed.metrics.recall_balance:ChoiceDivergence",
        "ckld_raw": "unswayed.metrics.recall_balance:RawChoiceDivergence",
        "consistency": "unswayed.metrics.consistency:Consistency",
        "consistent_accuracy": "unswayed.metrics.consistent_accuracy:ConsistentAccuracy",
        "consistent_accuracy_fractional": (
            "unswayed.metrics.consistent_accuracy:FractionalConsistentAccuracy"
        ),
        "fleiss_kappa": "unswayed.metrics.agreement:FleissKappa",
        "icc2k": "unswayed.metrics.intraclass:ICC",
        "icc3k": "unswayed.metrics.intraclass:ConsistencyICC",
        "label_bias": "unswayed.metrics.signed_bias:LabelBias",
        "label_mass": "unswayed.metrics.answers:LabelMass",
        "label_rate": "unswayed.metrics.rates:LabelRate",
        "pairwise_agreement": "unswayed.metrics.consistency:PairwiseAgreement",
        "position_bias": "unswayed.metrics.signed_bias:PositionBias",
        "position_rate": "unswayed.metrics.rates:PositionRate",
        "primacy": "unswayed.metrics.rates:Primacy",
        "rstd": "unswayed.metrics.recall_balance:RecallBalance",
        "score_sd": "unswayed.metrics.intraclass:ScoreSpread",
        "tie_rate": "unswayed.metrics.answers:TieRate",
        "unparsed_rate": "unswayed.metrics.answers:UnparsedRate",
    },
)
