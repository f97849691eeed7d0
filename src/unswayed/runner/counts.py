"""What a run did, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from unswayed.backends.protocol import Wait
from unswayed.parsing import Ending, ending
from unswayed.runner.writer import Answered, Failed


@dataclass(slots=True)
class RunCounts:
    """What a run did. The runner counts up while it works; only committed calls are counted.

    Attributes:
        planned: Distinct calls met so far, recorded or not, including second calls after unread answers.
        made: Answered and committed in this run.
        cached: Recorded by an earlier run.
        failed: Given up in this run; they are in the store's error table.
        retried: Attempts beyond the first, over all calls.
        seconds: Calls that follow an unread answer: with a larger cap, or for its label alone.
        left_out: Recorded calls that ask again and that the settings leave out.
        unparsed: Answers of this run that could not be read, refusals among them.
        refused: Answers of this run that the model or a content filter refused.
        broken: Answers of this run with an unknown finish reason, by that reason.
        input_tokens, output_tokens, cost_usd: Of the calls made in this run.
        unknown_usage: Answers of this run whose tokens the server did not state, or stated
            impossibly; they are in no token count, and in the cost with the most they can cost.
        budget_spent: True if the next call could have exceeded the budget.
        interrupted: True if it was stopped before it was done.
        fatal: Why no further call can succeed; None if all is well.
        last_failure: What the last failed call says.
        waiting: What holds up all calls just now.
    """

    planned: int = 0
    made: int = 0
    cached: int = 0
    failed: int = 0
    retried: int = 0
    seconds: int = 0
    left_out: int = 0
    unparsed: int = 0
    refused: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unknown_usage: int = 0
    budget_spent: bool = False
    interrupted: bool = False
    fatal: str | None = None
    last_failure: str | None = None
    waiting: Wait | None = None

    def add(self, answered: Iterable[Answered], failed: Iterable[Failed]) -> None:
        """Count calls that were committed."""
        for row in answered:
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
        for lost in failed:
            self.failed += 1
            self.retried += lost.failure.attempts - 1
            self.last_failure = lost.failure.message

    @property
    def exit_code(self) -> int:
        """0 done, 3 calls failed or the budget ran out, 130 interrupted."""
        if self.interrupted:
            return 130
        return 3 if self.failed or self.budget_spent or self.fatal else 0
