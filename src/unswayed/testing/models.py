"""Rules for every backend."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Final

from unswayed.backends import Backend, BackendSettings
from unswayed.backends.protocol import Answer
from unswayed.model.calls import Failure, Query, Request, Response
from unswayed.model.items import Item
from unswayed.model.presentation import Ask, canonical
from unswayed.prompts import PromptSettings, render
from unswayed.testing.rules import hold
from unswayed.tiny.items import judge_items

Open = Callable[[str, BackendSettings], Backend]

MOST_PULLED: Final = 1000
"""Queries that a backend with one connection may pull before its first answer."""


def check_backend(
    open_backend: Open, model: str = "test", *, items: Iterable[Item] | None = None
) -> None:
    """Check a backend: it is opened as `<name>/<model>` and asked about a few items.

    Args:
        open_backend: What is registered.
        model: What follows the provider's name.
        items: Items that the model can judge; the first ten of `tiny-judge` if not given.

    Raises:
        AssertionError: Naming the broken rule.
    """
    asked = tuple(judge_items(10) if items is None else items)
    hold(f"backend {getattr(open_backend, '__name__', '')}", RULES, open_backend, model, asked)


def _query(backend: Backend, item: Item) -> Query:
    ask = Ask(canonical(item.n))
    shown = render(item, ask, backend.own_prompt.settings(PromptSettings()))
    request = Request(
        model=backend.model,
        messages=shown.messages,
        labels=shown.labels,
        max_tokens=shown.max_tokens,
        top_logprobs=shown.top_logprobs if backend.gives_logprobs else 0,
    )
    return Query(item, ask, request, answer_only=shown.answer_only)


def _answers(backend: Backend, queries: Iterable[Query], most: int) -> list[Answer]:
    async def ask() -> list[Answer]:
        answers = []
        async with aclosing(backend.answer(queries)) as coming:
            async for answered in coming:
                answers.append(answered)
                if len(answers) == most:
                    break
        await backend.close()
        return answers

    return asyncio.run(ask())


def says_what_it_is(opened: Open, model: str, items: Sequence[Item]) -> None:
    """Check that a backend has a model name, a description in its function's docstring, and opens for a price alone."""
    assert (opened.__doc__ or "").strip(), "`unswayed list models` shows its function's docstring"
    backend = opened(model, BackendSettings())
    assert isinstance(backend, Backend)
    assert backend.model
    assert opened(model, BackendSettings(pricing_only=True)).model == backend.model
    price = backend.price(100, 10)
    assert price is None or price >= 0


def answers_every_query_once(opened: Open, model: str, items: Sequence[Item]) -> None:
    """Every query gets one response or failure, and no error ends the others."""
    backend = opened(model, BackendSettings())
    answers = _answers(backend, (_query(backend, item) for item in items), len(items) + 1)
    assert sorted(query.item.id for query, _ in answers) == sorted(item.id for item in items)
    for _, outcome in answers:
        assert isinstance(outcome, Response | Failure), outcome
        if isinstance(outcome, Response):
            assert outcome.cost_usd is None or outcome.cost_usd >= 0


def pulls_lazily(opened: Open, model: str, items: Sequence[Item]) -> None:
    """Check that a backend pulls no further than it works: queries may end early, and a stop takes effect."""
    backend = opened(model, BackendSettings(max_connections=1))
    query, numbers = _query(backend, items[0]), iter(range(MOST_PULLED + 1))
    _answers(backend, (query for _ in numbers), 1)
    assert next(numbers, None) is not None, (
        f"more than {MOST_PULLED} queries pulled for one answer. Pull a query only to start its call"
    )


RULES: Final = (says_what_it_is, answers_every_query_once, pulls_lazily)
