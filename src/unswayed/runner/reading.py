"""From recorded calls to decisions: a pure re-parse, so that a parser fix costs nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from unswayed.calls import Response
from unswayed.decisions import Decision
from unswayed.parsing import is_unread
from unswayed.runner.drafts import Draft
from unswayed.runner.keys import Question
from unswayed.runner.questions import Drafter
from unswayed.store import Pool

CHUNK: Final = 500


class Answer(NamedTuple):
    """A recorded answer: that of the second call, if there was one."""

    question: Question
    key: bytes  # of the first call
    second: Draft | None
    response: Response
    decision: Decision  # with the tokens and the cost of both calls


def read_decisions(
    questions: Iterable[Question], pool: Pool, drafter: Drafter
) -> Iterator[Decision]:
    """Read the decisions of recorded answers; see `Caller.read`."""
    return (answer.decision for answer in read_answers(questions, pool, drafter))


def read_answers(questions: Iterable[Question], pool: Pool, drafter: Drafter) -> Iterator[Answer]:
    """Read the recorded answers to questions, in their order; what is missing is left out."""
    remaining = iter(questions)
    while chunk := list(itertools.islice(remaining, CHUNK)):
        keys = [key for key, _ in drafter.addresses(chunk)]
        responses = dict(pool.responses(dict.fromkeys(keys)))
        answers: list[Answer] = []
        seconds: dict[int, Draft] = {}
        for question, key in zip(chunk, keys, strict=True):
            response = responses.get(key)
            if response is None:
                continue
            decision = drafter.read(question, response)
            if is_unread(response, decision):
                second = drafter.second(drafter.draft(question, key), response, decision)
                if second is not None and not drafter.leaves_out(second):
                    seconds[len(answers)] = second
            answers.append(Answer(question, key, None, response, decision))
        responses = dict(pool.responses({second.key: None for second in seconds.values()}))
        for place, second in seconds.items():
            if second.key in responses:
                response = responses[second.key]
                decision = with_costs_of(second.read(response), answers[place].decision)
                answers[place] = answers[place]._replace(
                    second=second, response=response, decision=decision
                )
        yield from answers


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
