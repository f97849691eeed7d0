"""Parse recorded calls into decisions again, so that a parser fix costs nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from unswayed.calls.drafts import Draft
from unswayed.calls.keys import Question
from unswayed.calls.questions import Drafter
from unswayed.model.decisions import Decision
from unswayed.model.parsing import is_unread
from unswayed.store import Pool

CHUNK: Final = 500


def read_decisions(
    questions: Iterable[Question], pool: Pool, drafter: Drafter
) -> Iterator[Decision]:
    """Read recorded answers as decisions, in the order of the questions; what is missing is left out.

    The answer of a second call replaces an unread answer.
    """
    remaining = iter(questions)
    while chunk := list(itertools.islice(remaining, CHUNK)):
        keys = [key for key, _ in drafter.addresses(chunk)]
        responses = dict(pool.responses(dict.fromkeys(keys)))
        decisions: list[Decision] = []
        seconds: dict[int, Draft] = {}
        for question, key in zip(chunk, keys, strict=True):
            response = responses.get(key)
            if response is None:
                continue
            decision = drafter.read(question, response)
            if is_unread(response, decision) and (call := pool.get(key)) is not None:
                draft = drafter.recorded(question, key, call[0])
                second = drafter.second(draft, response, decision)
                if second is not None and not drafter.leaves_out(second):
                    seconds[len(decisions)] = second
            decisions.append(decision)
        responses = dict(pool.responses({second.key: None for second in seconds.values()}))
        for place, second in seconds.items():
            if second.key in responses:
                later = second.read(responses[second.key])
                decisions[place] = with_costs_of(later, decisions[place])
        yield from decisions


def with_costs_of(decision: Decision, earlier: Decision) -> Decision:
    """Return the decision with the tokens, the cost and the time of an earlier call as well."""
    costs = [cost for cost in (decision.cost_usd, earlier.cost_usd) if cost is not None]
    return msgspec.structs.replace(
        decision,
        input_tokens=decision.input_tokens + earlier.input_tokens,
        output_tokens=decision.output_tokens + earlier.output_tokens,
        cost_usd=sum(costs) if costs else None,
        latency_s=(decision.latency_s or 0.0) + (earlier.latency_s or 0.0),
    )
