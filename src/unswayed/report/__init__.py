"""The audit report: one HTML file, a table in the terminal, figures for papers."""

from __future__ import annotations

from unswayed.report.data import RunData
from unswayed.report.page import render_report
from unswayed.report.papers import write_figures
from unswayed.report.terminal import terminal_report

__all__ = [
    "RunData",
    "render_report",
    "terminal_report",
    "write_figures",
]
