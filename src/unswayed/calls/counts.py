"""Counts of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from unswayed.backends.protocol import Wait
from unswayed.calls.writer import Answered, Failed
from unswayed.model.parsing import Ending, ending


@dataclass(slots=True)
class RunCounts:
    """Counts of a run, which the runner raises while it works; only committed calls are counted."""

    planned: int = 0  # distinct calls met so far, recorded or not, second calls among them
    made: int = 0  # answered and committed in this run
    cached: int = 0  # recorded by an earlier run
    failed: int = 0  # given up in this run; they are in the store's error table
    retried: int = 0  # attempts beyond the first, over all calls
    seconds: int = (
        0  # calls that follow an unread answer: with a larger cap, or for its label alone
    )
    left_out: int = 0  # recorded calls that ask again and that the settings leave out
    unparsed: int = 0  # answers that could not be read, refusals among them
    refused: int = 0  # by the model or a content filter
    broken: Counter[str] = field(default_factory=Counter)  # by an unknown finish reason
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    # answers whose tokens the server did not state, or stated impossibly; they are in no token count,
    # and in the cost with the most they can cost
    unknown_usage: int = 0
    budget_spent: bool = False  # the next call could have exceeded the budget
    interrupted: bool = False  # it was stopped before it was done
    fatal: str | None = None  # why no further call can succeed
    last_failure: str | None = None  # what the last failed call says
    waiting: Wait | None = None  # what holds up all calls just now

    def add(self, rows: Iterable[Answered | Failed]) -> None:
        """Count calls that were committed."""
        for row in rows:
            if isinstance(row, Failed):
                self.failed += 1
                self.retried += row.failure.attempts - 1
                self.last_failure = row.failure.message
                continue
            response = row.response
            self.made += 1
            self.retried += response.retries
            self.seconds += row.is_second
            self.unparsed += row.unparsed
            ended = ending(response.finish_reason)
            self.refused += ended is Ending.REFUSED
            self.broken.update([response.finish_reason] if ended is Ending.BROKEN else ())
            self.unknown_usage += not response.usage_known
            self.input_tokens += response.input_tokens
            self.output_tokens += response.output_tokens
            self.cost_usd += response.cost_usd or 0.0

    @property
    def exit_code(self) -> int:
        """0 done, 3 calls failed or the budget ran out, 130 interrupted."""
        if self.interrupted:
            return 130
        return 3 if self.failed or self.budget_spent or self.fatal else 0
