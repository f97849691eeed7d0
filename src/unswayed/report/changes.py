"""What changed between two runs, in one sentence, from paired differences."""

from __future__ import annotations

from typing import Final

from unswayed.report.data import RunData
from unswayed.report.numerals import plural, points
from unswayed.report.wording import Line, Span, line, strong

__all__ = ["changes_of"]

WORDS: Final = {
    "accuracy": "accuracy",
    "consistency": "consistency",
    "consistent_accuracy": "consistent accuracy",
    "rstd": "RStd",
}


def changes_of(run: RunData, first: str) -> Line:
    """The paired differences of a run to the first one; empty where there are none.

    Args:
        run: A run with `changes`.
        first: Name of the run it is compared with.
    """
    known = {key: run.changes[key] for key in WORDS if key in run.changes}
    told = [
        f"{WORDS[key]} {points(estimate)}"
        for key, estimate in known.items()
        if estimate.value is not None
    ]
    if not told:
        return ()
    items = max(estimate.n for estimate in known.values())
    return (
        *line("Compared item by item with ", strong(first)),
        Span(f" ({plural(items, 'item')}): {'; '.join(told)}."),
    )
