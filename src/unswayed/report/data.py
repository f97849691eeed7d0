"""Data of a report: the metrics and settings of a run, and its flipped items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from unswayed.auditing.flips import Flips
from unswayed.auditing.records import Metrics, RunRecord
from unswayed.model.decisions import Estimate


@dataclass(frozen=True, slots=True)
class RunData:
    """One audited run."""

    metrics: Metrics  # its figures
    run: RunRecord  # how they were made
    # its items without the same verdict in every order (an answer that could not be read agrees
    # with nothing, a tie agrees with a tie): 1 − consistency for two candidates
    flips: Flips
    # sentences about what this run does not show, added to the standing ones
    caveats: tuple[str, ...] = ()
    # method to what it does, as a sentence in the imperative ("Ask twice and ...")
    about: Mapping[str, str] = field(default_factory=dict)
    name: str = ""  # what to call it beside other runs; empty for what tells them apart
    # metric to its paired difference to the first run of a report, this minus that, on the items
    # that both judged; empty for the first run and where nothing is shared
    changes: Mapping[str, Estimate] = field(default_factory=dict)

    @property
    def ties_left_out(self) -> int:
        """Items that accuracy leaves out because their gold is a tie."""
        return 0 if self.run.settings.get("gold_ties") == "class" else self.metrics.data.gold_ties

    @property
    def is_function(self) -> bool:
        """True of a function, which sees no labels: what changes is due to the position."""
        return self.metrics.model.startswith("function/")
