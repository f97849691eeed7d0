"""Scores of candidates or on a scale: their section, and the lead with what it says of them."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from unswayed.report.findings import Finding
from unswayed.report.lists import lists_of, lists_section
from unswayed.report.scales import scale_of, scales_section
from unswayed.report.sections import Section
from unswayed.report.words import sentence


def lede_of(finding: Finding) -> Markup:
    """The sentences below the headline."""
    return sentence("lead.lede", finding, lists_of(finding), scale_of(finding))


def score_sections(findings: Sequence[Finding]) -> list[Section]:
    """What the order does to scores; none where no run has scores."""
    sections = (lists_section(findings), scales_section(findings))
    return [section for section in sections if section is not None]
