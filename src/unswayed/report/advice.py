"""The controls beside the recommendation: what a gain is worth."""

from __future__ import annotations

from unswayed.methods import METHODS
from unswayed.methods.names import parse_method
from unswayed.report.findings import Finding


def controls_of(finding: Finding) -> tuple[list[str], list[str]]:
    """The controls that ask the same order again, and those that ask once, sorted by content."""
    again: list[str] = []
    once: list[str] = []
    for name in finding.metrics.methods:
        if name.partition(":")[0] in METHODS and name != finding.base:  # of a package that is here
            own = parse_method(name)
            if own.about.control:
                (again if len(own.asks(finding.n)) > 1 else once).append(name)
    return again, once
