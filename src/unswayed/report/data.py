"""What a report is made from: the metrics and settings of a run, and its flipped items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from unswayed.auditing.flips import Flips
from unswayed.auditing.records import Metrics, Run
from unswayed.decisions import Estimate


@dataclass(frozen=True, slots=True)
class RunData:
    """One audited run.

    Attributes:
        metrics: Its figures.
        run: How they were made.
        flips: Its items without the same verdict in every order (an answer that could not be read
            agrees with nothing, a tie agrees with a tie): 1 − consistency for two candidates.
        caveats: Sentences about what this run does not show, added to the standing ones.
        about: Method to what it does, as a sentence in the imperative ("Ask twice and ...").
        name: What to call it beside other runs; empty for what tells them apart.
        changes: Metric to its paired difference to the first run of a report, this minus that, on
            the items that both judged; empty for the first run and where nothing is shared.
    """

    metrics: Metrics
    run: Run
    flips: Flips
    caveats: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    changes: Mapping[str, Estimate] = field(default_factory=dict)
