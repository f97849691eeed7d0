"""What a backend is: queries in, responses or failures out, in any order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Protocol

from unswayed.calls import Failure, Query, Response

__all__ = ["Backend", "Wait"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What holds up all calls.

    Attributes:
        server: Who is waited for.
        reason: Why.
        next_try_s: Seconds until the next attempt; 0 if it is under way.
        gives_up_at: When the run stops unless something is answered before, in seconds since the
            epoch; None while other calls are answered.
    """

    server: str
    reason: str
    next_try_s: float
    gives_up_at: float | None


class Backend(Protocol):
    """A source of answers.

    Attributes:
        model: Full name with revision, as it goes into `Request.model` and so into every key.
        gives_logprobs: Whether direct prompts come back with label logprobs.
        generates: Whether it can generate text (reasoning prompts); label logits only if False.
        offline: True if it needs no network and costs nothing.
        template: Name or path of the prompt template this model must be asked with; None for the
            run's own (the tiny judge understands only its own sentences).
    """

    model: str
    gives_logprobs: bool
    generates: bool
    offline: bool
    template: str | None

    @property
    def waiting(self) -> Wait | None:
        """What holds up all calls just now; None if nothing does."""
        ...

    def answer(self, queries: Iterable[Query]) -> AsyncIterator[tuple[Query, Response | Failure]]:
        """Answer every query once, in any order, pulling from `queries` lazily.

        `queries` may stop early (the budget is spent); a backend never pulls more than it is
        about to work on, so that memory stays bounded and a stop takes effect at once.
        """
        ...

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        """Price in USD of a call of that size; None where no price is known."""
        ...

    async def close(self) -> None:
        """Release connections and memory."""
        ...
