"""Ways from recorded decisions to a verdict: one file per method, one line here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from unswayed.base.registry import Registry

if TYPE_CHECKING:
    from unswayed.methods.protocol import Method as Method

__all__ = ["ALL_ORDERS", "AUDITED", "BASE", "JUDGING", "METHODS", "Method"]

_TABLE: Final = {
    "additive": "unswayed.methods.additive:Additive",
    "apoc": "unswayed.methods.apoc:Apoc",
    "average": "unswayed.methods.over_orders:Average",
    "balanced-rubric": "unswayed.methods.over_orders:BalancedRubric",
    "batch": "unswayed.methods.batch:Batch",
    "bias-cost": "unswayed.methods.bias_cost:BiasCost",
    "calibraeval": "unswayed.methods.calibraeval:CalibraEval",
    "canonical": "unswayed.methods.single_call:Canonical",
    "cell-median": "unswayed.methods.cell_median:CellMedian",
    "contextual": "unswayed.methods.content_free:Contextual",
    "debias-prompt": "unswayed.methods.single_call:DebiasPrompt",
    "direct": "unswayed.methods.single_call:Direct",
    "domain-contextual": "unswayed.methods.content_free:DomainContextual",
    "escalate": "unswayed.methods.escalate:Escalate",
    "pcf": "unswayed.methods.pcf:PCF",
    "pride": "unswayed.methods.pride:PriDe",
    "repeat": "unswayed.methods.repeated:Repeat",
    "repeat-mean": "unswayed.methods.repeated:RepeatMean",
    "repeat-score": "unswayed.methods.repeated:RepeatScore",
    "selective": "unswayed.methods.selective:Selective",
    "sequential": "unswayed.methods.sequential:Sequential",
    "vote": "unswayed.methods.over_orders:Vote",
}

METHODS: Registry[type[Method]] = Registry(
    "method", _TABLE, like="unswayed.methods.protocol:Method"
)

BASE: Final = "direct"
"""The single call, a judge as it is used now: what every other method is compared with."""

AUDITED: Final = (BASE, "vote", "average")
"""What an audit compares unless it is told otherwise."""

JUDGING: Final = "average"
"""What judges in production unless it is told otherwise."""

ALL_ORDERS: Final = (JUDGING, "vote")
"""What reads every order; the second needs no probabilities."""


def __getattr__(name: str) -> object:
    """Return `Method` or the class of a built-in method, such as `unswayed.methods.PriDe`, on first use."""
    if name == "Method":
        from unswayed.methods.protocol import Method

        return Method
    for registered, where in _TABLE.items():
        if where.partition(":")[2] == name:
            return METHODS.load(registered)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
