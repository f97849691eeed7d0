"""A question put into words, the second call that may follow it, and the most that it can cost."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from unswayed.calls import Query, Request, Response, key_of
from unswayed.decisions import Decision
from unswayed.items import Message
from unswayed.parsing import is_unread
from unswayed.parsing.quoting import without_thinking
from unswayed.runner.keys import Question
from unswayed.runner.writer import Answered
from unswayed.store import prompt_bytes
from unswayed.tasks import task_of

__all__ = ["Draft", "Layout", "most_tokens", "read_by"]

TOKENS_AROUND: Final = 16
"""The most that a chat template puts around a message."""
LONGEST_TOKEN: Final = 8
"""Bytes of a token of a reply, on average at most."""
LABEL_TOKENS: Final = 16
"""Cap on the reply to a call that asks again for the label alone."""
NOTHING_SAID: Final = "(no answer)"
"""Stands for a reply without words: servers refuse an empty message."""
MOST_QUOTED: Final = 8000
"""Characters of a reply, its last ones, that a judge is shown when it is asked again."""


class Layout(NamedTuple):
    """What all answers to one prompt about items of one size are read by.

    Attributes:
        labels: The label set in canonical order.
        answer_only: The answer is the label itself.
        reask: What asks again for the label of an answer that could not be read; None for nothing.
    """

    labels: tuple[str, ...]
    answer_only: bool
    reask: str | None = None


class Draft(NamedTuple):
    """A question put into words: what is sent, under which key, and how its answer is read.

    Attributes:
        is_retry: It repeats a call whose answer was cut off, with a larger cap.
        is_reask: It asks again for the label of an answer that could not be read.
    """

    question: Question
    request: Request
    key: bytes
    layout: Layout
    is_retry: bool = False
    is_reask: bool = False

    @property
    def query(self) -> Query:
        """What a backend is given."""
        return Query(self.question.item, self.question.ask, self.request)

    def read(self, response: Response) -> Decision:
        """The decision that an answer to this draft stands for."""
        decision = read_by(self.layout, self.question, response, self.request.model)
        return msgspec.structs.replace(decision, reasked=True) if self.is_reask else decision

    def answered(self, response: Response, decision: Decision, *, retried: bool) -> Answered:
        """The row of an answer; one that is followed by a second call does not count as unparsed."""
        return Answered(
            self.key,
            self.request,
            response,
            self.question.item.id,
            unread=is_unread(response, decision),
            unparsed=decision.choice is None and not retried,
            is_retry=self.is_retry,
            is_reask=self.is_reask,
        )

    def longer(self, factor: int) -> Draft | None:
        """The same with a cap so many times as large; None if it is no larger."""
        if factor <= 1:
            return None
        request = self.request
        request = msgspec.structs.replace(request, max_tokens=request.max_tokens * factor)
        return Draft(self.question, request, key_of(request), self.layout, is_retry=True)

    def again(self, reply: str) -> Draft | None:
        """What asks for the label alone behind a reply that names none; None if the prompt does not."""
        request, asks = self.request, self.layout.reask
        if asks is None:
            return None
        said = without_thinking(reply).strip()[-MOST_QUOTED:] or NOTHING_SAID
        request = msgspec.structs.replace(
            request,
            messages=(*request.messages, Message("assistant", said), Message("user", asks)),
            max_tokens=LABEL_TOKENS,
            temperature=0.0,
            top_logprobs=0,
            schema=msgspec.UNSET,
        )
        layout = Layout(self.layout.labels, answer_only=True)
        return Draft(self.question, request, key_of(request), layout, is_reask=True)

    def most_again(self) -> tuple[int, int]:
        """The most input and output tokens of `again`, whatever the reply; see `most_tokens`."""
        said = min(MOST_QUOTED, LONGEST_TOKEN * self.request.max_tokens)
        asks = len((self.layout.reask or "").encode())
        return most_tokens(self.request)[0] + said + asks + 2 * TOKENS_AROUND, LABEL_TOKENS


def read_by(layout: Layout, question: Question, response: Response, model: str) -> Decision:
    """The decision that an answer stands for."""
    item, ask = question
    return task_of(item.task).reply.read(
        item, ask, layout.labels, response, model=model, answer_only=layout.answer_only
    )


def most_tokens(request: Request) -> tuple[int, int]:
    """The most input and output tokens a call can cost, for the budget.

    Byte-level tokenisers never make more tokens than bytes; the rest is room for a chat template.
    """
    around = TOKENS_AROUND * len(request.messages) + 64
    return prompt_bytes(request) + around, request.max_tokens
