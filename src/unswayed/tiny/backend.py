"""The models `tiny/judge` and `tiny/rubric`: the shipped weights, read and run with numpy alone.

Their folders are plain Hugging Face ones, so `hf/<folder>` runs the same judge through
transformers; the two agree to 1e-5 in log-probability.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from unswayed.backends import BackendSettings
from unswayed.backends.local_jobs import label_response, timed
from unswayed.backends.model_folders import PART, ModelFolder, locate
from unswayed.backends.protocol import Answer, Backend, too_long
from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.base.registry import did_you_mean
from unswayed.model.calls import Query, Request, Response
from unswayed.model.items import Item, text_of
from unswayed.tiny import sets_of
from unswayed.tiny.formats import FORMATS, Format
from unswayed.tiny.forward import TinyModel, read_model
from unswayed.tiny.items import SPECIAL

WEIGHTS: Final = FORMATS["judge"].folder

BATCH: Final = 64
"""Prompts at a time: about as fast as any size on one core, and left on one core by numpy."""


def open_tiny(model: str, settings: BackendSettings) -> TinyBackend:
    """Built-in model: `tiny/judge` or `tiny/rubric`, no key, no download, no extra."""
    given, plus, file = model.partition("+heads=")
    name, _, revision = given.partition("@")
    if name not in FORMATS:
        raise UnknownNameError(f"unknown model 'tiny/{model}'. {did_you_mean(name, FORMATS)}")
    if PART.search(file):
        raise UsageError(
            f"tiny/{model}: only +heads=FILE may follow tiny/{name}, once, and FILE may not hold +NAME=."
        )
    weights = str(FORMATS[name].folder)
    folder = locate(weights + plus + file)
    identity = folder.name.removeprefix(f"{weights}@")
    fingerprint = identity.partition("+")[0]
    if revision not in ("", fingerprint):
        raise UsageError(
            f"tiny/{model}: this version of unswayed ships {fingerprint}. Write tiny/{name}."
        )
    return TinyBackend(FORMATS[name], f"tiny/{name}@{identity}", folder)


class TinyBackend(Backend):
    """A judge that answers with one label."""

    gives_logprobs = True
    offline = True
    planted = True

    def __init__(self, kind: Format, model: str, folder: ModelFolder) -> None:
        self.model = model
        self.own_prompt = folder.prompt
        self._heads = folder.heads
        self._format = kind
        self._tokens = {token: number for number, token in enumerate(kind.vocabulary)}
        self._loaded: TinyModel | None = None

    async def answer(self, queries: Iterable[Query]) -> AsyncGenerator[Answer, None]:
        """Answer every query."""
        pending = iter(queries)
        while batch := list(itertools.islice(pending, BATCH)):
            for answered in await asyncio.to_thread(self._answers, batch):
                yield answered

    async def close(self) -> None:
        """Let go of the weights."""
        self._loaded = None

    def _answers(self, batch: Sequence[Query]) -> list[Answer]:
        if self._loaded is None:
            self._loaded = read_model(self._format.folder, self._heads)
        model = self._loaded
        start = time.perf_counter()
        by_length: dict[int, list[tuple[Query, list[int]]]] = {}
        for query in batch:
            self._check_item(query.item)
            tokens = prompt_ids(query.request, self._tokens)
            by_length.setdefault(len(tokens), []).append((query, tokens))
        answers: list[Answer] = []
        for length, prompts in by_length.items():
            if length >= model.longest:
                answers += [
                    (query, too_long(query, length + 1, longest=model.longest, model=self.model))
                    for query, _ in prompts
                ]
                continue
            asked = [query for query, _ in prompts]
            answers += zip(
                asked, self._score(model, asked, [ids for _, ids in prompts]), strict=True
            )
        share = (time.perf_counter() - start) / len(batch)
        return [timed(*answered, share) for answered in answers]

    def _score(
        self, model: TinyModel, asked: Sequence[Query], prompts: Sequence[list[int]]
    ) -> list[Response]:
        logprobs = model.logprobs(np.array(prompts))
        return [
            label_response(
                query.request,
                row[
                    [self._label_id(label, query.request.labels) for label in query.request.labels]
                ],
                model=self.model,
                input_tokens=len(tokens),
            )
            for query, tokens, row in zip(asked, prompts, logprobs, strict=True)
        ]

    def _label_id(self, label: str, labels: tuple[str, ...]) -> int:
        if label not in self._tokens or label in SPECIAL:
            raise UsageError(
                f"{self.model}: its tokenizer has no token that begins {label!r} and no other of "
                f"the labels {', '.join(labels)}. Choose from {', '.join(self._format.labels)}."
            )
        return self._tokens[label]

    def _check_item(self, item: Item) -> None:
        name = self.model.partition("@")[0]
        if item.task not in self._format.tasks:
            raise UsageError(
                f"{item.id}: {name} was trained on {' and '.join(self._format.tasks)} items, and "
                f"this is a {item.task.value} item. Choose another --model for your data."
            )
        texts = (item.prompt, item.response or "", *item.candidates)
        words = [word for text in texts for word in text_of(text).split()]
        unknown = [word for word in words if word not in self._tokens]
        if 2 * len(unknown) > len(words):
            raise UsageError(
                f"{item.id}: {name} does not know the word {unknown[0]!r}; it knows only the "
                f"{len(self._tokens)} words of {', '.join(sets_of(name))}. Choose another --model "
                "for "
                "your data."
            )


def prompt_ids(request: Request, ids: Mapping[str, int]) -> list[int]:
    """Return the chat as token ids; words that the judge does not know, and marks of turns, are `<unk>`."""
    unknown = ids["<unk>"]
    tokens: list[int] = []
    system: list[int] = []
    for message in request.messages:
        words = [
            unknown if word in SPECIAL else ids.get(word, unknown)
            for word in message.content.split()
        ]
        if message.role == "system":
            system = words
        elif message.role == "assistant":
            tokens += [ids["<|assistant|>"], *words, ids["<|end|>"]]
        else:
            tokens += [ids["<|user|>"], *system, *words]
            system = []
    return [*tokens, ids["<|assistant|>"]]
