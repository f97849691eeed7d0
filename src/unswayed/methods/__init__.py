"""Ways from recorded decisions to a verdict: one file per method, one line here."""

from __future__ import annotations

from unswayed.methods.protocol import Method
from unswayed.registry import Registry

__all__ = ["METHODS", "Method"]

METHODS: Registry[type[Method]] = Registry(
    "method",
    {
        "average": "unswayed.methods.average:Average",
        "direct": "unswayed.methods.direct:Direct",
        "repeat": "unswayed.methods.repeat:Repeat",
        "vote": "unswayed.methods.vote:Vote",
    },
)
