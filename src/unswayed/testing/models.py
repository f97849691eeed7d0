"""What every backend must do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Final

from unswayed.backends import Backend, BackendSettings
from unswayed.backends.protocol import Answer
from unswayed.calls import Failure, Query, Request, Response
from unswayed.items import Item
from unswayed.presentation import Ask, canonical
from unswayed.prompts import PromptSettings, render
from unswayed.testing.rules import hold

Open = Callable[[str, BackendSettings], Backend]


def check_backend(open_backend: Open, model: str = "test") -> None:
    """Check a backend: it is opened as `<name>/<model>` and asked ten questions.

    Args:
        open_backend: What is registered.
        model: What follows the provider's name.

    Raises:
        AssertionError: Naming the rule.
    """
    hold(f"backend {getattr(open_backend, '__name__', '')}", RULES, open_backend, model)


def queries(model: str, count: int = 10) -> list[Query]:
    """Questions about pairs."""
    questions = []
    for number in range(count):
        item = Item(id=f"q{number}", prompt=f"Which, {number}?", candidates=("one", "two"))
        ask = Ask(canonical(2), "direct")
        shown = render(item, ask, PromptSettings())
        request = Request(
            model=model, messages=shown.messages, labels=shown.labels, max_tokens=shown.max_tokens
        )
        questions.append(Query(item, ask, request, answer_only=True))
    return questions


def says_what_it_is(opened: Open, model: str) -> None:
    """A backend has a model name, is described in its function's docstring, and opens for a price alone."""
    assert (opened.__doc__ or "").strip(), (
        "its function has no docstring for `unswayed list models`"
    )
    first = opened(model, BackendSettings())
    assert isinstance(first, Backend)
    assert first.model
    assert opened(model, BackendSettings(pricing_only=True)).model == first.model
    price = first.price(100, 10)
    assert price is None or price >= 0


def answers_every_query_once(opened: Open, model: str) -> None:
    """Every query gets one response or failure, and no error ends the others."""
    backend = opened(model, BackendSettings())
    asked = queries(backend.model)

    async def ask() -> list[Answer]:
        async with aclosing(backend.answer(iter(asked))) as answers:
            outcomes = [answer async for answer in answers]
        await backend.close()
        return outcomes

    answers = asyncio.run(ask())
    assert sorted(query.item.id for query, _ in answers) == sorted(q.item.id for q in asked)
    for _, outcome in answers:
        assert isinstance(outcome, Response | Failure), outcome
        if isinstance(outcome, Response):
            assert outcome.cost_usd is None or outcome.cost_usd >= 0


def pulls_lazily(opened: Open, model: str) -> None:
    """A backend pulls no further than it works: queries may end early, and a stop takes effect."""
    backend = opened(model, BackendSettings(max_connections=1))
    pulled = 0

    def endless() -> Iterator[Query]:
        nonlocal pulled
        (query,) = queries(backend.model, 1)
        while True:
            pulled += 1
            yield query

    async def first() -> None:
        async with aclosing(backend.answer(endless())) as answers:
            async for _ in answers:
                break
        await backend.close()

    asyncio.run(first())
    assert pulled <= 1000, f"{pulled} queries pulled for one answer"


RULES: Final = (says_what_it_is, answers_every_query_once, pulls_lazily)
