"""Price a run before it starts."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from unswayed.backends.protocol import Backend
from unswayed.base.errors import UsageError
from unswayed.calls.counts import RunCounts
from unswayed.calls.drafts import most_tokens
from unswayed.calls.keys import Question
from unswayed.calls.questions import Drafter, RunSettings
from unswayed.calls.window import Window
from unswayed.model.calls import Request, Response
from unswayed.store import Pool, Totals, prompt_bytes

TOKENS_PER_BYTE: Final = 0.25
TOKENS_PER_MESSAGE: Final = 4
ENOUGH_CALLS: Final = 20
"""Recorded calls from which their real usage replaces the rules of thumb."""


@dataclass(frozen=True, slots=True)
class CallPlan:
    """Calls that a run would make."""

    n_questions: int
    n_distinct: int  # calls behind the questions
    n_cached: int  # of these, recorded already
    n_to_make: int
    est_input_tokens: int  # of the calls to make; see `Estimator`
    est_output_tokens: int
    est_cost_usd: float | None  # None where no price is known
    most_cost_usd: float | None  # a budget that is sure to reach (see `most_tokens`)
    n_seconds: int = 0  # of the distinct calls, second ones after unread replies
    n_reasks: int = 0  # calls to make that ask again about recorded replies
    most_reasks_usd: float | None = 0.0
    n_more: int = 0  # calls on top that ask again, or for a longer answer, if no reply can be read
    most_more_usd: float | None = 0.0
    n_left_out: int = 0  # recorded calls that ask again and that the settings leave out
    remarks: tuple[str, ...] = ()  # how the model would answer them (see `Backend.forecast`)
    per_item: Mapping[str, int] = field(default_factory=dict)  # by method, of an audit
    skipped: Mapping[str, str] = field(default_factory=dict)  # methods left out, with the reason


@dataclass(frozen=True, slots=True)
class Estimator:
    """Expected tokens of a call, as those of enough recorded calls were.

    Before, a prompt counts 1 token per 4 UTF-8 bytes (4 characters of English, 1.3 of Chinese) and 4 per message,
    and an answer its whole cap: an upper bound that is far too high for reasoning prompts.
    """

    tokens_per_byte: float = TOKENS_PER_BYTE
    tokens_per_message: float = TOKENS_PER_MESSAGE
    used_share_of_cap: float = 1.0

    @classmethod
    def learned(cls, totals: Totals) -> Estimator:
        """Return the estimator that a store's calls allow."""
        if totals.calls < ENOUGH_CALLS or not totals.input_tokens or not totals.prompt_bytes:
            return cls()
        return cls(
            tokens_per_byte=totals.input_tokens / totals.prompt_bytes,
            tokens_per_message=0.0,
            used_share_of_cap=min(1.0, totals.output_tokens / totals.max_tokens),
        )

    def tokens(self, request: Request) -> tuple[int, int]:
        """Estimate input and output tokens."""
        tokens_in = self.tokens_per_byte * prompt_bytes(request)
        tokens_in += self.tokens_per_message * len(request.messages)
        return math.ceil(tokens_in), math.ceil(self.used_share_of_cap * request.max_tokens)


def price_of(backend: Backend, tokens_in: int, tokens_out: int) -> float | None:
    """Price of a call of that size in USD; 0 for what costs nothing, None if unknown."""
    price = backend.price(tokens_in, tokens_out)
    return 0.0 if price is None and backend.offline else price


def check_budget(settings: RunSettings, backend: Backend) -> None:
    """Refuse a budget that cannot be kept."""
    if settings.budget_usd is not None and price_of(backend, 1, 1) is None:
        raise UsageError(
            f"the price of {backend.model} is unknown, so a budget cannot be enforced. Add the "
            "price to a price table (--prices), or remove the budget."
        )


def with_cost(
    response: Response, request: Request, backend: Backend, most: float = 0.0
) -> Response:
    """Return the answer; where its tokens are unknown with the most it can cost, which a later budget counts as well.

    That is `most` where a budget has set more aside than one call: a probe asks several times.
    """
    if response.usage_known:
        return response
    worst = price_of(backend, *most_tokens(request))
    worst = worst if worst is None else max(worst, most)
    return msgspec.structs.replace(response, cost_usd=worst)


def enough_usd(usd: float) -> float:
    """Return an amount to give as a budget: rounded up to two digits."""
    if usd <= 0:
        return 0.01
    digits = 1 - math.floor(math.log10(usd))
    return float(math.ceil(round(usd * 10.0**digits, 6)) / 10.0**digits)


def plan_calls(
    questions: Iterable[Question], backend: Backend, store: Pool, drafter: Drafter
) -> CallPlan:
    """Count and price the distinct calls, making none and writing nothing."""
    counts = RunCounts()
    window = Window(questions, drafter, store, counts)
    estimator = Estimator.learned(store.totals())
    total_in = total_out = 0
    costs: list[float | None] = []
    most, reasks, more = list[float | None](), list[float | None](), list[float | None]()
    while not window.exhausted:
        window.look()
        while window.ready:
            draft = window.ready.popleft()
            drafter.keep(draft)
            request = draft.request
            tokens_in, tokens_out = estimator.tokens(request)
            total_in += tokens_in
            total_out += tokens_out
            costs.append(price_of(backend, tokens_in, tokens_out))
            most.append(price_of(backend, *most_tokens(request)))
            if draft.is_reask:
                reasks.append(most[-1])
            elif drafter.may_reask(draft) and not (backend.offline and request.top_logprobs):
                prices = [price_of(backend, *most) for most in draft.most_seconds()]
                more.append(None if None in prices else max(filter(None, prices), default=0.0))
    return CallPlan(
        n_questions=window.n_questions,
        n_distinct=counts.planned,
        n_cached=counts.cached,
        n_to_make=len(most),
        est_input_tokens=total_in,
        est_output_tokens=total_out,
        est_cost_usd=_total(costs, backend.probed),
        most_cost_usd=_total(most, backend.probed),
        n_seconds=window.n_seconds,
        n_reasks=len(reasks),
        most_reasks_usd=_total(reasks),
        n_more=len(more),
        most_more_usd=_total(more),
        n_left_out=counts.left_out,
    )


def _total(usd: Sequence[float | None], probed: int = 0) -> float | None:
    """Sum prices, and twice more those of the dearest questions, which may be probed."""
    prices = [price for price in usd if price is not None]
    return None if None in usd else sum(prices) + 2 * sum(heapq.nlargest(probed, prices))
