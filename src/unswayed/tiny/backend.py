"""The model `tiny/judge`: the shipped weights, read and run with numpy alone.

The folder is a plain Hugging Face one, so `hf/<folder>` runs the same judge through transformers;
the two agree to 1e-5 in log-probability.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from unswayed.backends import BackendSettings
from unswayed.backends.huggingface import label_response
from unswayed.backends.model_folders import locate
from unswayed.backends.protocol import Answer, Backend, too_long
from unswayed.calls import Query, Request, Response
from unswayed.errors import UnknownNameError, UsageError
from unswayed.items import text_of
from unswayed.registry import did_you_mean
from unswayed.tiny.forward import TinyModel, read_model
from unswayed.tiny.items import LABELS, SPECIAL, VOCABULARY

__all__ = ["WEIGHTS", "TinyBackend", "open_tiny", "prompt_ids"]

WEIGHTS: Final = Path(__file__).parent / "weights"
"""A plain Hugging Face folder, with the one prompt template that the judge understands."""

MODELS: Final = {"judge": WEIGHTS}

BATCH: Final = 64
"""Prompts at a time: about as fast as any size on one core, and left on one core by numpy."""

TOKENS: Final = {token: number for number, token in enumerate(VOCABULARY)}
UNKNOWN: Final = TOKENS["<unk>"]


def open_tiny(model: str, settings: BackendSettings) -> TinyBackend:
    """The built-in tiny judge: `tiny/judge`, no key, no download, no extra.

    Raises:
        UnknownNameError: If another tiny model is asked for.
    """
    name, _, revision = model.partition("@")
    if name not in MODELS:
        raise UnknownNameError(f"unknown model 'tiny/{model}'. {did_you_mean(name, MODELS)}")
    folder = locate(str(MODELS[name]))
    fingerprint = folder.name.rpartition("@")[2]
    if revision not in ("", fingerprint):
        raise UsageError(
            f"tiny/{model}: this version of unswayed ships {fingerprint}. Write tiny/{name}."
        )
    return TinyBackend(folder.path, f"tiny/{name}@{fingerprint}", template=folder.template)


class TinyBackend(Backend):
    """A judge that answers with one label.

    Args:
        folder: With its weights.
        model: Full name with revision.
        template: The prompt template that it was trained on.
    """

    gives_logprobs = True
    offline = True
    planted = True

    def __init__(self, folder: Path, model: str, *, template: Path | None) -> None:
        self.model = model
        self.template = None if template is None else str(template)
        self._folder = folder
        self._loaded: TinyModel | None = None

    async def answer(self, queries: Iterable[Query]) -> AsyncGenerator[Answer, None]:
        """Answer every query.

        Raises:
            UsageError: If most words of an item, or a label, are not in the judge's vocabulary.
        """
        pending = iter(queries)
        while batch := list(itertools.islice(pending, BATCH)):
            for answered in await asyncio.to_thread(self._answers, batch):
                yield answered

    async def close(self) -> None:
        """Let go of the weights."""
        self._loaded = None

    def _answers(self, batch: Sequence[Query]) -> list[Answer]:
        model = self._loaded = self._loaded or read_model(self._folder)
        start = time.perf_counter()
        by_length: dict[int, list[tuple[Query, list[int]]]] = {}
        for query in batch:
            _check_words(query)
            tokens = prompt_ids(query.request)
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
        return [
            (query, msgspec.structs.replace(result, latency_s=share))
            if isinstance(result, Response)
            else (query, result)
            for query, result in answers
        ]

    def _score(
        self, model: TinyModel, asked: Sequence[Query], prompts: Sequence[list[int]]
    ) -> list[Response]:
        logprobs = model.logprobs(np.array(prompts))
        return [
            label_response(
                query.request,
                row[
                    [
                        _label_id(label, query.request.labels, self.model)
                        for label in query.request.labels
                    ]
                ],
                model=self.model,
                input_tokens=len(tokens),
            )
            for query, tokens, row in zip(asked, prompts, logprobs, strict=True)
        ]


def prompt_ids(request: Request) -> list[int]:
    """The chat as token ids; words that the judge does not know, and marks of turns, are `<unk>`."""
    tokens: list[int] = []
    system: list[int] = []
    for message in request.messages:
        words = [TOKENS.get(word, UNKNOWN) for word in message.content.split()]
        words = [UNKNOWN if VOCABULARY[word] in SPECIAL else word for word in words]
        if message.role == "system":
            system = words
        elif message.role == "assistant":
            tokens += [TOKENS["<|assistant|>"], *words, TOKENS["<|end|>"]]
        else:
            tokens += [TOKENS["<|user|>"], *system, *words]
            system = []
    return [*tokens, TOKENS["<|assistant|>"]]


def _label_id(label: str, labels: tuple[str, ...], model: str) -> int:
    if label not in TOKENS or VOCABULARY[TOKENS[label]] in SPECIAL:
        raise UsageError(
            f"{model}: its tokenizer has no token that begins {label!r} and no other of the "
            f"labels {', '.join(labels)}. The built-in judge knows {', '.join(LABELS)}."
        )
    return TOKENS[label]


def _check_words(query: Query) -> None:
    words = [
        word
        for text in (query.item.prompt, *query.item.candidates)
        for word in text_of(text).split()
    ]
    unknown = [word for word in words if word not in TOKENS]
    if 2 * len(unknown) > len(words):
        raise UsageError(
            f"{query.item.id}: the tiny judge knows the {len(TOKENS)} words of its own items "
            f"(tiny-judge, tiny-mcq) and not {unknown[0]!r}. Choose another --model for your data."
        )
