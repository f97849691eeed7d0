"""What is asked, with which settings, and the request that asks it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from unswayed.backends.protocol import Backend, Wait
from unswayed.calls import Query, Request, Response, key_of
from unswayed.decisions import Decision
from unswayed.errors import ItemError
from unswayed.items import Item
from unswayed.presentation import Ask
from unswayed.prompts import PromptSettings, Rendered, render
from unswayed.store import CallStore
from unswayed.tasks import task_of

__all__ = [
    "Draft",
    "Drafter",
    "Question",
    "RunCounts",
    "RunSettings",
    "agreed_logprobs",
    "requests_for",
]

SIMULATED: Final = "simulated/"


class Question(NamedTuple):
    """One thing to ask about one item."""

    item: Item
    ask: Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How calls are made.

    Attributes:
        prompts: How items are put into words.
        sample_temperature: Temperature of repeated samples (`Ask.sample` > 0); sample 0 is greedy.
        budget_usd: Most USD that all calls recorded in the run directory may cost together,
            earlier runs included; None for no limit.
        retry_max_tokens: Factor by which the cap on tokens grows for the one retry of an answer
            that was cut off before it could be read; 1 for no retry.
    """

    prompts: PromptSettings
    sample_temperature: float = 1.0
    budget_usd: float | None = None
    retry_max_tokens: int = 4


@dataclass(slots=True)
class RunCounts:
    """What a run did. The runner counts up while it works; only committed calls are counted.

    Attributes:
        planned: Distinct calls met so far, recorded or not, retries of cut-off answers included.
        made: Answered and committed in this run.
        cached: Recorded by an earlier run.
        failed: Given up in this run; they are in the store's error table.
        retried: Attempts beyond the first, over all calls.
        truncated_retries: Calls that repeat a cut-off answer with a larger cap.
        unparsed: Answers of this run that could not be read, refusals among them.
        refused: Answers of this run that are refusals, or what a content filter left.
        input_tokens, output_tokens, cost_usd: Of the calls made in this run.
        unknown_usage: Answers of this run whose tokens the server did not state, or stated
            impossibly; they are in no token count, and in the cost with the most they can cost.
        budget_spent: True if the next call could have exceeded the budget.
        interrupted: True if it was stopped before it was done.
        fatal: Why no further call can succeed; None if all is well.
        waiting: What holds up all calls just now.
    """

    planned: int = 0
    made: int = 0
    cached: int = 0
    failed: int = 0
    retried: int = 0
    truncated_retries: int = 0
    unparsed: int = 0
    refused: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unknown_usage: int = 0
    budget_spent: bool = False
    interrupted: bool = False
    fatal: str | None = None
    waiting: Wait | None = None

    def plus(self, later: RunCounts) -> RunCounts:
        """The counts of two runs one after the other."""
        pairs = ((name, getattr(self, name), getattr(later, name)) for name in self.__slots__)
        return RunCounts(
            **{
                name: mine + theirs if type(mine) in (int, float) else mine or theirs
                for name, mine, theirs in pairs
            }
        )

    @property
    def exit_code(self) -> int:
        """0 done, 3 calls failed or the budget ran out, 130 interrupted."""
        if self.interrupted:
            return 130
        return 3 if self.failed or self.budget_spent or self.fatal else 0


class Draft(NamedTuple):
    """A question put into words: what is sent, under which key, and how its answer is read."""

    question: Question
    request: Request
    key: bytes
    rendered: Rendered
    is_retry: bool = False

    @property
    def query(self) -> Query:
        """What a backend is given."""
        return Query(self.question.item, self.question.ask, self.request)

    def read(self, response: Response) -> Decision:
        """The decision that an answer to this draft stands for."""
        return task_of(self.question.item.task).reply.read(
            self.question.item,
            self.question.ask,
            self.rendered.labels,
            response,
            model=self.request.model,
            answer_only=self.rendered.answer_only,
        )


@dataclass(frozen=True, slots=True)
class Drafter:
    """Builds the requests of one model under one run's settings.

    Attributes:
        model: Full model name.
        gives_logprobs: Whether label logprobs are asked for. It is part of every key, so it is
            settled once per run directory (`agreed_logprobs`); what the answers really carry is
            in the responses.
    """

    model: str
    gives_logprobs: bool
    settings: RunSettings

    def draft(self, question: Question) -> Draft:
        """Render a question and address its call.

        Raises:
            TemplateError: If it cannot be rendered.
            ItemError: If its text is not valid Unicode.
        """
        item, ask = question
        rendered = render(item, ask, self.settings.prompts)
        request = Request(
            model=self.model,
            messages=rendered.messages,
            labels=rendered.labels,
            max_tokens=rendered.max_tokens,
            temperature=self.settings.sample_temperature if ask.sample else 0.0,
            top_logprobs=rendered.top_logprobs if self.gives_logprobs else 0,
            sample=ask.sample,
            # a simulated judge reads the item, not the prompt
            nonce=item.id if self.model.startswith(SIMULATED) else None,
        )
        try:
            return Draft(question, request, key_of(request), rendered)
        except UnicodeEncodeError as error:
            raise ItemError(
                f"{item.id}: its text has half a character (a lone surrogate, {error.reason}). "
                "Mend the text."
            ) from None

    def longer(self, draft: Draft) -> Draft | None:
        """The retry of an answer that was cut off; None if it was a retry or none is wanted."""
        factor = self.settings.retry_max_tokens
        if draft.is_retry or factor <= 1:
            return None
        request = msgspec.structs.replace(
            draft.request, max_tokens=draft.request.max_tokens * factor
        )
        return Draft(draft.question, request, key_of(request), draft.rendered, is_retry=True)


def agreed_logprobs(
    store: CallStore, model: str, backend: Backend | None = None, *, record: bool = False
) -> bool:
    """Whether the calls of this store ask for logprobs: the first run settles it.

    A server may turn out not to give logprobs, halfway or in a later run. Asking differently from
    then on would change the keys and so pay again for everything recorded.

    Args:
        store: Where it is settled.
        model: Full model name.
        backend: What to go by if nothing was settled; None for True.
        record: Settle it.
    """
    name = f"logprobs of {model}"
    settled = store.noted(name)
    if settled is not None:
        return settled == "asked"
    wanted = True if backend is None else backend.gives_logprobs
    if record:
        store.note(name, "asked" if wanted else "not asked")
    return wanted


def requests_for(
    questions: Iterable[Question], backend: Backend, settings: RunSettings
) -> Iterator[tuple[Question, Request]]:
    """The request of every question, in order; equal questions give equal requests.

    Raises:
        TemplateError: If a question cannot be rendered.
    """
    drafter = Drafter(backend.model, backend.gives_logprobs, settings)
    for question in questions:
        yield question, drafter.draft(question).request
