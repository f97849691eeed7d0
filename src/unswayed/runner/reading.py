"""From recorded calls to decisions: a pure re-parse, so that a parser fix costs nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from unswayed.calls import Response
from unswayed.decisions import Decision
from unswayed.parsing import was_truncated
from unswayed.runner.questions import Draft, Drafter, Question, RunSettings, agreed_logprobs
from unswayed.store import CallStore

__all__ = ["read_decisions"]

CHUNK: Final = 500


def read_decisions(
    questions: Iterable[Question], store: CallStore, settings: RunSettings, *, model: str
) -> Iterator[Decision]:
    """Read the answers to questions, in their order.

    An answer that was cut off gives way to its longer retry where there is one; the decision then
    carries the tokens and the cost of both calls.

    Args:
        questions: What was asked.
        store: The pool of recorded calls.
        settings: As the calls were made with.
        model: Full name of the model that was asked.

    Yields:
        One decision per question; questions without a recorded answer are left out.

    Raises:
        TemplateError: If a question cannot be rendered.
        StoreError: If a recorded call is damaged.
    """
    drafter = Drafter(model, agreed_logprobs(store, model), settings)
    remaining = iter(questions)
    while chunk := list(itertools.islice(remaining, CHUNK)):
        drafts = [drafter.draft(question) for question in chunk]
        responses = dict(store.responses({draft.key: None for draft in drafts}))
        first = [
            None if draft.key not in responses else draft.read(responses[draft.key])
            for draft in drafts
        ]
        retries = _retries(drafter, drafts, responses, first)
        longer = dict(store.responses(draft.key for draft in retries.values()))
        for place, decision in enumerate(first):
            if decision is None:
                continue
            retry = retries.get(place)
            if retry is None or retry.key not in longer:
                yield decision
            else:
                yield _with_costs_of(retry.read(longer[retry.key]), decision)


def _retries(
    drafter: Drafter,
    drafts: list[Draft],
    responses: dict[bytes, Response],
    decisions: list[Decision | None],
) -> dict[int, Draft]:
    """The longer retry of every decision that was cut off, by its place."""
    retries = {}
    for place, (draft, decision) in enumerate(zip(drafts, decisions, strict=True)):
        if decision is not None and was_truncated(responses[draft.key], decision):
            longer = drafter.longer(draft)
            if longer is not None:
                retries[place] = longer
    return retries


def _with_costs_of(decision: Decision, earlier: Decision) -> Decision:
    costs = [cost for cost in (decision.cost_usd, earlier.cost_usd) if cost is not None]
    return msgspec.structs.replace(
        decision,
        input_tokens=decision.input_tokens + earlier.input_tokens,
        output_tokens=decision.output_tokens + earlier.output_tokens,
        cost_usd=sum(costs) if costs else None,
        latency_s=(decision.latency_s or 0.0) + (earlier.latency_s or 0.0),
    )
