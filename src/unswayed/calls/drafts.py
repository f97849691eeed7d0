"""Draft a question as a request, the second call that may follow it, and its highest cost."""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

import msgspec

from unswayed.calls.keys import Question
from unswayed.calls.writer import Answered
from unswayed.model.calls import REPLAYED, Query, Request, Response, key_of
from unswayed.model.decisions import Decision
from unswayed.model.items import Message
from unswayed.model.parsing import Ending, ending, is_unread
from unswayed.model.parsing.quoting import without_thinking
from unswayed.model.tasks import task_of
from unswayed.store import mended_text, prompt_bytes

TOKENS_AROUND: Final = 16
"""Most tokens that a chat template puts around a message."""
LONGEST_TOKEN: Final = 8
"""Most bytes of a reply's token, on average."""
LONGER: Final = 4
"""Factor by which the cap on tokens grows for an answer that was cut off before it could be read."""
LABEL_TOKENS: Final = 16
"""Cap on the reply to a call that asks again for the label alone."""
NOTHING_SAID: Final = "(no answer)"
"""Replacement for an empty reply, since servers refuse an empty message."""
MOST_QUOTED: Final = 8000
"""Most characters from the end of a reply that a judge sees when it is asked again."""


class ReplyLayout(NamedTuple):
    """Data for reading all answers to one prompt about items of one size."""

    labels: tuple[str, ...]  # in canonical order
    answer_only: bool  # the answer is the label itself
    reask: str | None = None  # asks again for the label of an answer that could not be read
    form: str | None = None  # where the label is wanted, as in `ReplySpec`


class Draft(NamedTuple):
    """Question put into words: its request, its key and the layout that reads its answer."""

    question: Question
    request: Request
    key: bytes
    layout: ReplyLayout
    after: Ending | None = None  # of the unread answer that this call follows

    @property
    def is_reask(self) -> bool:
        """True if it asks again for the label of a complete answer that could not be read."""
        return self.after is Ending.COMPLETE

    @property
    def may_be_reasked(self) -> bool:
        """True if an answer may be asked about. Simulated judges read items directly, not a conversation."""
        converses = self.request.nonce is None or self.request.model.startswith(REPLAYED)
        return self.after is None and self.layout.reask is not None and converses

    @property
    def query(self) -> Query:
        """Query for a backend."""
        item, ask = self.question
        return Query(item, ask, self.request, self.layout.answer_only)

    def read(self, response: Response) -> Decision:
        """Read an answer to this draft as a decision."""
        decision = read_by(self.layout, self.question, response, self.request.model)
        return msgspec.structs.replace(decision, reasked=True) if self.is_reask else decision

    def answered(self, response: Response, decision: Decision, *, retried: bool) -> Answered:
        """Build the row of an answer; an answer that a second call follows does not count as unparsed."""
        return Answered(
            self.key,
            self.request,
            response,
            self.question.item.id,
            unread=is_unread(response, decision) and self.second(response) is not None,
            unparsed=decision.choice is None
            and not retried
            and self.question.ask.substitute is None,
            is_second=self.after is not None,
        )

    def second(self, response: Response) -> Draft | None:
        """Draft the one call that may follow an unread answer.

        A cut-off answer is asked for again with a larger cap; after a complete one, the judge is asked for its
        label in the same conversation, if the prompt has a sentence for it.
        """
        request, layout, ended = self.request, self.layout, ending(response.finish_reason)
        if ended is Ending.CUT:
            request = msgspec.structs.replace(request, max_tokens=LONGER * request.max_tokens)
        elif not self.may_be_reasked or layout.reask is None:
            return None
        else:
            own = without_thinking(mended_text(response.text)).strip()[-MOST_QUOTED:]
            talk = Message("assistant", own or NOTHING_SAID), Message("user", layout.reask)
            request = msgspec.structs.replace(
                request,
                messages=(*request.messages, *talk),
                max_tokens=LABEL_TOKENS,
                temperature=0.0,
                top_logprobs=0,
                schema=msgspec.UNSET,
            )
            layout = ReplyLayout(layout.labels, answer_only=True)
        return Draft(self.question, request, key_of(request), layout, after=ended)

    def most_seconds(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return `most_tokens` of the call that asks again, for any reply, and of the longer call."""
        said = min(MOST_QUOTED, LONGEST_TOKEN * self.request.max_tokens)
        asks = len((self.layout.reask or "").encode())
        asked, cap = most_tokens(self.request)
        return (asked + said + asks + 2 * TOKENS_AROUND, LABEL_TOKENS), (asked, LONGER * cap)


def read_by(layout: ReplyLayout, question: Question, response: Response, model: str) -> Decision:
    """Read an answer as a decision."""
    item, ask = question
    read = task_of(item.task).reply.read
    if layout.form is not None:
        read = partial(read, form=layout.form)
    return read(item, ask, layout.labels, response, model=model, answer_only=layout.answer_only)


def most_tokens(request: Request) -> tuple[int, int]:
    """Return the most input and output tokens that a call can cost, for the budget.

    Byte-level tokenisers never make more tokens than bytes; the rest is room for a chat template.
    """
    around = TOKENS_AROUND * len(request.messages) + 64
    return prompt_bytes(request) + around, request.max_tokens
