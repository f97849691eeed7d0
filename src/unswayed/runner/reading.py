"""From recorded calls to decisions: a pure re-parse, so that a parser fix costs nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from unswayed.decisions import Decision
from unswayed.parsing import was_truncated
from unswayed.runner.keys import Question
from unswayed.runner.questions import Drafter
from unswayed.store import CallStore

__all__ = ["read_decisions", "with_costs_of"]

CHUNK: Final = 500


def read_decisions(
    questions: Iterable[Question], store: CallStore, drafter: Drafter
) -> Iterator[Decision]:
    """Read the answers to questions, in their order.

    An answer that was cut off gives way to its longer retry where there is one; the decision then
    carries the tokens and the cost of both calls.

    Args:
        questions: What was asked.
        store: The pool of recorded calls.
        drafter: Knows under which keys they were asked.

    Yields:
        One decision per question; questions without a recorded answer are left out.

    Raises:
        TemplateError: If a question cannot be rendered.
        StoreError: If a recorded call is damaged.
    """
    remaining = iter(questions)
    while chunk := list(itertools.islice(remaining, CHUNK)):
        keys = [key for key, _ in drafter.addresses(chunk)]
        responses = dict(store.responses(dict.fromkeys(keys)))
        decisions: list[Decision] = []
        retries: dict[int, tuple[Question, bytes]] = {}
        for question, key in zip(chunk, keys, strict=True):
            response = responses.get(key)
            if response is None:
                continue
            decision = drafter.read(question, response)
            if was_truncated(response, decision):
                longer = _longer_key(question, key, store, drafter)
                if longer is not None:
                    retries[len(decisions)] = question, longer
            decisions.append(decision)
        longer_responses = dict(store.responses({key: None for _, key in retries.values()}))
        for place, (question, key) in retries.items():
            response = longer_responses.get(key)
            if response is not None:
                later = drafter.read(question, response)
                decisions[place] = with_costs_of(later, decisions[place])
        yield from decisions


def _longer_key(question: Question, key: bytes, store: CallStore, drafter: Drafter) -> bytes | None:
    """The key of the longer retry of an answer that was cut off."""
    recorded_key = drafter.longer_key(key)
    call = None if recorded_key is not None else store.get(key)
    if call is None:
        return recorded_key
    longer = drafter.longer(drafter.recorded(question, key, call[0]))
    return None if longer is None else longer.key


def with_costs_of(decision: Decision, earlier: Decision) -> Decision:
    """The decision, with the tokens, the cost and the time of an earlier call as well."""
    costs = [cost for cost in (decision.cost_usd, earlier.cost_usd) if cost is not None]
    return msgspec.structs.replace(
        decision,
        input_tokens=decision.input_tokens + earlier.input_tokens,
        output_tokens=decision.output_tokens + earlier.output_tokens,
        cost_usd=sum(costs) if costs else None,
        latency_s=(decision.latency_s or 0.0) + (earlier.latency_s or 0.0),
    )
