"""Asking local models in tests, and the same by transformers alone."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unswayed.backends import Backend, BackendSettings, open_backend
from unswayed.backends.huggingface import HuggingFaceBackend
from unswayed.model.calls import Failure, Query, Request, Response
from unswayed.model.items import Item, Message
from unswayed.model.parsing.symbols import symbols_of
from unswayed.model.presentation import X0, Ask

CPU = BackendSettings(device="cpu", threads=1)
WORDS = ("rivers", "change", "because", "of", "time", "and", "bridges", "do", "not")


def chat(length: int, *, start: int = 0) -> tuple[Message, ...]:
    words = itertools.islice(itertools.cycle(WORDS), start, start + length)
    return (Message("system", "Judge."), Message("user", " ".join(words) + "\nA or B?"))


def query(messages: Sequence[Message], item_id: str = "q7", **fields: Any) -> Query:
    base: dict[str, Any] = {"model": "m", "labels": ("A", "B"), "max_tokens": 16}
    request = Request(messages=tuple(messages), **{"top_logprobs": 20, **base, **fields})
    return Query(Item(id=item_id, prompt="Which?", candidates=("one", "two")), Ask(X0), request)


def ask(
    backend: Backend, queries: Iterable[Query], *, closes: bool = False
) -> list[Response | Failure]:
    """Answers in the order of the queries; `closes` if the backend has connections of this loop."""
    queries = list(queries)

    async def collect() -> dict[int, Response | Failure]:
        found = {id(asked): answer async for asked, answer in backend.answer(queries)}
        if closes:
            await backend.close()
        return found

    found = asyncio.run(collect())
    return [found[id(asked)] for asked in queries]


def answered(backend: Backend, queries: Iterable[Query], *, closes: bool = False) -> list[Response]:
    """The same, where nothing may fail."""
    answers = ask(backend, queries, closes=closes)
    responses = [answer for answer in answers if isinstance(answer, Response)]
    assert len(responses) == len(answers), answers
    return responses


def opened(folder: Path | str, settings: BackendSettings = CPU) -> HuggingFaceBackend:
    backend = open_backend(f"hf/{folder}", settings)
    assert isinstance(backend, HuggingFaceBackend)
    return backend


def logprobs(response: Response | Failure) -> dict[str, float]:
    assert isinstance(response, Response), response
    assert response.top_logprobs is not None
    return dict(response.top_logprobs[0])


def plain_label_logprobs(
    folder: Path, messages: Sequence[Message], labels: tuple[str, ...] = ("A", "B")
) -> dict[str, float]:
    """By transformers alone: one prompt, no padding, the model's own forward pass."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    rows = [{"role": message.role, "content": message.content} for message in messages]
    encoded = tokenizer.apply_chat_template(
        rows, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    with torch.no_grad():
        last = model(**encoded).logits[0, -1].double().log_softmax(-1).numpy()
    symbols = symbols_of(labels)
    said = dict.fromkeys(labels, -np.inf)
    for token in range(len(tokenizer)):
        code = symbols.token(tokenizer.decode([token]))
        if code >= 0:
            said[labels[code]] = float(np.logaddexp(said[labels[code]], last[token]))
    return said
