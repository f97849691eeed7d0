"""The model `tiny/judge`: the shipped weights through the same backend as any local model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from unswayed.backends import BackendSettings
from unswayed.backends.huggingface import Answer, HuggingFaceBackend
from unswayed.backends.model_folders import locate
from unswayed.calls import Query
from unswayed.errors import UnknownNameError, UsageError
from unswayed.items import text_of
from unswayed.registry import did_you_mean, require
from unswayed.tiny.items import VOCABULARY

__all__ = ["WEIGHTS", "TinyBackend", "open_tiny"]

WEIGHTS: Final = Path(__file__).parent / "weights"
"""A plain Hugging Face folder, with the one prompt template that the judge understands."""

MODELS: Final = {"judge": WEIGHTS}


def open_tiny(model: str, settings: BackendSettings) -> TinyBackend:
    """The built-in tiny judge: `tiny/judge`, no key, no download (extra: local).

    Raises:
        UnknownNameError: If another tiny model is asked for.
        MissingExtraError: If torch or transformers is not installed.
    """
    name, _, revision = model.partition("@")
    if name not in MODELS:
        raise UnknownNameError(f"unknown model 'tiny/{model}'. {did_you_mean(name, MODELS)}")
    for module in ("torch", "transformers"):
        require(module, extra="local", feature="the built-in tiny judge")
    folder = locate(str(MODELS[name]))
    fingerprint = folder.name.rpartition("@")[2]
    if revision not in ("", fingerprint):
        raise UsageError(
            f"tiny/{model}: this version of unswayed ships {fingerprint}. Write tiny/{name}."
        )
    return TinyBackend(replace(folder, name=f"{name}@{fingerprint}"), settings, provider="tiny")


class TinyBackend(HuggingFaceBackend):
    """A local model that refuses to judge words it has never seen."""

    def answer(self, queries: Iterable[Query]) -> AsyncIterator[Answer]:
        """Answer every query.

        Raises:
            UsageError: If most words of an item are not in the judge's vocabulary.
        """
        return super().answer(_understood(queries))


def _understood(queries: Iterable[Query]) -> Iterator[Query]:
    known = frozenset(VOCABULARY)
    for query in queries:
        words = [
            word
            for text in (query.item.prompt, *query.item.candidates)
            for word in text_of(text).split()
        ]
        unknown = [word for word in words if word not in known]
        if 2 * len(unknown) > len(words):
            raise UsageError(
                f"{query.item.id}: the tiny judge knows the {len(known)} words of its own items "
                f"(tiny-judge, tiny-mcq) and not {unknown[0]!r}. Choose another --model for your data."
            )
        yield query
