"""A backend of tests that answers at once, slowly or in any order, and questions for it."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field

from unswayed.backends import Backend
from unswayed.backends.protocol import Wait
from unswayed.calls import Question, RunSettings
from unswayed.model.calls import Failure, Query, Request, Response, key_of
from unswayed.model.items import Item
from unswayed.model.presentation import X0, X2, Ask
from unswayed.prompts import PromptSettings
from unswayed.store import CallStore
from unswayed.store.records import decode

SETTINGS = RunSettings(prompts=PromptSettings())


def label_by_content(query: Query) -> Response:
    """A judge whose answer depends on the prompt only."""
    number = key_of(query.request)[0] % len(query.request.labels)
    return Response(
        text=query.request.labels[number], input_tokens=100, output_tokens=1, cost_usd=0.01
    )


@dataclass
class FakeBackend(Backend):
    """Answers in random order with a number of calls in flight, and remembers what it was asked."""

    reply: Callable[[Query], Response | Failure | None] = label_by_content
    model: str = "fake/one"
    gives_logprobs: bool = True
    keyed_by_item: bool = False
    offline: bool = False
    template: str | None = None
    waiting: Wait | None = None
    per_token: float | None = 0.0
    connections: int = 8
    delay_s: float = 0.0
    asked: list[Request] = field(default_factory=list)

    async def answer(
        self, queries: Iterable[Query]
    ) -> AsyncIterator[tuple[Query, Response | Failure]]:
        chance = random.Random(0)
        pulled = iter(queries)
        open_: list[Query] = []
        while True:
            while len(open_) < self.connections:
                query = next(pulled, None)
                if query is None:
                    break
                self.asked.append(query.request)
                open_.append(query)
            if not open_:
                return
            await asyncio.sleep(self.delay_s)
            query = open_.pop(chance.randrange(len(open_)))
            result = self.reply(query)
            if result is not None:
                yield query, result

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        return None if self.per_token is None else self.per_token * (input_tokens + output_tokens)


def failures(store: CallStore) -> list[tuple[bytes, Request, Failure, float]]:
    """Key, request, failure and time of every call that no later answer cleared, oldest first."""
    rows = store.rows("SELECT key, request, failure, failed_at FROM failures ORDER BY id")
    return [(k, decode(Request, r, k), decode(Failure, f, k), at) for k, r, f, at in rows]


def pair(number: int) -> Item:
    return Item(
        id=f"q{number}", prompt=f"Question {number}?", candidates=(f"yes {number}", f"no {number}")
    )


def questions(n_items: int, *asks: Ask) -> list[Question]:
    return [
        Question(pair(number), ask)
        for number in range(n_items)
        for ask in asks or (Ask(X0), Ask(X2))
    ]
