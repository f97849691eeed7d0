"""Backend protocol: queries in, responses or failures out, in any order.

A backend is one file with a class on top of `Backend` and a function that opens it:

    class Echo(Backend):
        offline = True

        def __init__(self, model: str) -> None:
            self.model = f"echo/{model}"

        def respond(self, query: Query) -> Response:
            return Response(text=query.request.labels[0], cost_usd=0.0)


    def open_echo(model: str, settings: BackendSettings) -> Echo:
        \"\"\"Always the first label: `echo/<anything>`.\"\"\"
        return Echo(model)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from unswayed.backends.own_prompts import OwnPrompt
from unswayed.model.calls import Failure, Query, Request, Response, TokenLogprob
from unswayed.model.items import Item
from unswayed.model.presentation import Ask

if TYPE_CHECKING:
    from unswayed.prompts import PromptSettings

Outcome = Response | Failure
Answer = tuple[Query, Outcome]

ANSWERS_AT_ONCE: Final = 256
"""Answers in a row before the rest of the program is let live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Reason and length of a wait of all calls.

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


class Backend:
    """A source of answers. A subclass sets `model`, and has `respond` or, where calls overlap, `answer`.

    Attributes:
        model: Full name with revision, as it goes into `Request.model` and so into every key.
        gives_logprobs: Whether direct prompts come back with label logprobs.
        offline: True if it needs no network and costs nothing.
        keyed_by_item: Whether answers depend on the item beyond its prompt, so that its id belongs
            into every key.
        hands_over: True if a cancelled `answer` first hands over the calls under way. A stopped run
            then waits for these calls, however long they take, and for nothing else.
        running: Prompts of the batch under way that have no answer yet, for the message of a stop; 0 where
            there are no batches.
        planted: Whether the bias was planted, which a report must say.
        reads_prompt: Whether it is given the rendered prompt with its labels; a function gets the texts.
        writes: Whether it answers in text; otherwise it gives the probabilities of labels alone.
        samples: Whether asking the same again may bring another answer (`Ask.sample`).
        own_prompt: How it is asked unless its user says otherwise: as it was trained to be, or as
            everybody is.
        recipe: Recipe that the prompt was taken from in place of the model's own.
        extra_body: The JSON object of the settings that goes into every request; None if it takes none.
        probed: Number of questions that it will ask twice more before any share a request.
        packing: How questions share requests, for `run.json`; None where they do not.
        server: The address calls go to, without anything secret; None for local models.
        remarks: What was learned about it that a reader of the results should know, in sentences.
        waiting: What holds up all calls just now; None if nothing does.
    """

    model: str
    gives_logprobs: bool = False
    offline: bool = False
    keyed_by_item: bool = False
    hands_over: bool = False
    running: int = 0
    planted: bool = False
    reads_prompt: bool = True
    writes: bool = True
    samples: bool = True
    own_prompt: OwnPrompt = OwnPrompt()
    recipe: str | None = None
    extra_body: str | None = None
    probed: int = 0
    packing: Mapping[str, float] | None = None
    server: str | None = None
    remarks: tuple[str, ...] = ()

    @property
    def waiting(self) -> Wait | None:
        """Reason that all calls wait now; None without one."""
        return None

    def respond(self, query: Query) -> Outcome:
        """Return the answer to one query, at once."""
        raise NotImplementedError(f"{type(self).__name__} has neither respond nor answer")

    async def answer(self, queries: Iterable[Query]) -> AsyncGenerator[Answer, None]:
        """Answer every query once, in any order, pulling from `queries` lazily.

        `queries` may stop early (the budget is spent); a backend never pulls more than it is
        about to work on, so that memory stays bounded and a stop takes effect at once.
        """
        for number, query in enumerate(queries, start=1):
            yield query, self.respond(query)
            if number % ANSWERS_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def call(self, query: Query) -> Outcome:
        """Answer one query; the same as `answer` of it alone."""
        async with aclosing(self.answer([query])) as answers:
            async for _, outcome in answers:
                return outcome
        return unanswered(query, self.model)

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        """Price in USD of a call of that size; None where no price is known."""
        return 0.0 if self.offline else None

    def converses(self, request: Request) -> bool:
        """Return True if the judge can be asked this about its own reply."""
        return self.writes

    def refusal(self, item: Item, asks: Iterable[Ask], prompts: PromptSettings) -> str | None:
        """Return why these cannot be asked about an item, without a full stop; None if they can."""
        if not (self.offline or item.prompt or item.response or any(item.candidates)):
            return "it has neither question nor answers; only recorded decisions can judge it"
        for ask in asks:
            if ask.sample and not self.samples:
                return "this judge samples nothing: asked again, it answers the same"
            if ask.prompt_id != "default" and self.own_prompt.only_template:
                if not self.reads_prompt:
                    return "this judge has its own prompt"
                return "its prompt has words that this judge does not know"
        return None

    def forecast(self, queries: Iterable[Query]) -> tuple[str, ...]:
        """Describe how the backend would answer, without loading or calling anything."""
        return ()

    async def close(self) -> None:
        """Release connections and memory."""


async def overlapping(
    queries: Iterable[Query], ask: Callable[[Query], Coroutine[Any, Any, Outcome]], *, at_once: int
) -> AsyncGenerator[Answer, None]:
    """Answer every query once, in calls that overlap; see `Backend.answer`."""
    remaining = iter(queries)
    running: dict[asyncio.Task[Outcome], Query] = {}
    try:
        while True:
            while len(running) < at_once and (query := next(remaining, None)) is not None:
                running[asyncio.create_task(ask(query))] = query
            if not running:
                return
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield running.pop(task), task.result()
    finally:
        for task in running:
            task.cancel()


def failed(query: Query, words: str, *, error: str = "BackendError") -> Failure:
    """Return the failure of a call, its item named."""
    return Failure(error=error, message=f"{query.item.id}: {words}")


def unanswered(query: Query, model: str) -> Failure:
    """Return the failure of a call that a backend took and never answered."""
    words = f"{model} took the call and gave neither an answer nor an error"
    return failed(query, words, error="BadResponseError")


def ranked(tokens: Iterable[str], logprobs: Iterable[float]) -> tuple[TokenLogprob, ...]:
    """Return tokens with their log-probabilities, likeliest first."""
    tops = [TokenLogprob(*pair) for pair in zip(tokens, logprobs, strict=True)]
    return tuple(sorted(tops, key=lambda top: -top.logprob))


def too_long(query: Query, tokens: int, *, longest: int, model: str) -> Failure:
    """Return the failure of a prompt that does not fit into a local model."""
    return failed(
        query,
        f"the prompt and its answer take {tokens} tokens, but {model} reads at most {longest}. "
        "Shorten the item or choose another model.",
    )
