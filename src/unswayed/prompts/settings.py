"""Prompt settings, rendered prompts and label symbols."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from unswayed.base.arguments import Settings
from unswayed.base.errors import TemplateError, UsageError
from unswayed.model.items import Item, Message
from unswayed.model.presentation import label_symbols
from unswayed.prompts.blocks import Outline

DEFAULT_PROMPT: Final = "direct"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    """Settings of a run's prompts. One value stands for one wording: a template file is read once per value."""

    # the prompt that `Ask.prompt_id == "default"` means; None for the model's own, or else direct
    prompt: str | None = None
    # Answer symbols in canonical order, at least as many as candidates; None for A, B, C, ... (1,
    # 2, 3, ... for more than 26 candidates).
    label_set: tuple[str, ...] | None = None
    template: str | None = None  # path of the user's template file, used for "default"
    shots: tuple[Item, ...] = ()  # worked examples shown before the question: items with their gold
    max_tokens: int | None = None  # cap on generated tokens, over the prompt's own
    # the same for "default" alone, where there is no `max_tokens`
    default_max_tokens: int | None = None
    top_logprobs: int = 20  # alternatives per token to ask for where the answer is the label itself
    extra_body: str | None = None  # that of the backend's settings, which is set by whoever asks it

    @property
    def style(self) -> str:
        """The prompt that "default" means without a template."""
        return self.prompt or DEFAULT_PROMPT


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions(Settings):
    """Options for asking about items, for commands and functions."""

    prompt: Annotated[
        str | PromptSettings | None,
        Meta(
            description="Prompt style; see `unswayed list prompts` [default: the model's own, or direct]",
            extra={"text": str},
        ),
    ] = None
    template: Annotated[
        str | Path | None,
        Meta(description="Prompt template file, instead of a style.", extra={"text": Path}),
    ] = None
    labels: Annotated[
        str | Sequence[str] | None,
        Meta(description="Label symbols, such as X,Y [default: A,B,...]", extra={"text": str}),
    ] = None
    reask: Annotated[
        bool, Meta(description="Do not ask a second time if a reply cannot be read.")
    ] = True

    def prompts(self, shots: Sequence[Item] = ()) -> PromptSettings:
        """Return the settings of prompts, laid over those that `prompt` brings; `shots` are items with gold."""
        prompt = self.prompt
        base = prompt if isinstance(prompt, PromptSettings) else PromptSettings(prompt=prompt)
        if not isinstance(base.prompt, str | None):
            raise UsageError(f"prompt {prompt!r}: give the name of a prompt, such as direct.")
        parts = self.labels.split(",") if isinstance(self.labels, str) else self.labels
        try:
            return replace(
                base,
                template=base.template if self.template is None else os.fspath(self.template),
                label_set=base.label_set if parts is None else tuple(p.strip() for p in parts),
                shots=tuple(shots) or base.shots,
            )
        except (TypeError, AttributeError):
            raise UsageError(
                f"template {self.template!r}, labels {self.labels!r}: give a path, and text such "
                "as X,Y."
            ) from None


class Terms(msgspec.Struct, frozen=True, eq=False, gc=False, kw_only=True):
    """Labels, limits and form of the reply that a prompt asks for."""

    labels: tuple[str, ...]  # the label set in canonical order, length n
    max_tokens: int  # cap on generated tokens
    top_logprobs: int  # alternatives per token to ask for; 0 for reasoning prompts
    answer_only: bool  # the answer is the label itself, so next-token label logits are the answer
    schema: str | None  # JSON schema, as text, that the answer is wanted to fit; None for free text
    # sentence that asks again for the label of an answer that could not be read, or None
    reask: str | None
    form: str | None  # where the label is wanted, as in `ReplySpec`


class Wording(Terms, frozen=True, eq=False, gc=False, kw_only=True):
    """Everything but the texts of plain items that are shown alike."""

    before: tuple[Message, ...]  # the messages before the last one, which is the user's
    outline: Outline  # the last message, with holes for the texts


class Rendered(Terms, frozen=True, eq=True, gc=False, kw_only=True):
    """A prompt ready to be sent."""

    messages: tuple[Message, ...]  # the chat


_FORBIDDEN: Final = re.compile(r"[<>\[\]{}\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")


def label_set_of(n: int, settings: PromptSettings) -> tuple[str, ...]:
    """Return the labels of an item with n candidates, in canonical order."""
    if settings.label_set is None:
        return label_symbols(n)
    check_labels(settings.label_set)
    if len(settings.label_set) < n:
        raise TemplateError(
            f"{n} candidates need {n} labels, but the label set has "
            f"{len(settings.label_set)} ({', '.join(settings.label_set)}). Give more labels."
        )
    return settings.label_set[:n]


def check_labels(labels: Sequence[str]) -> None:
    """Check that labels can be printed and read back, or raise `TemplateError`.

    Labels that differ only in case (m and M) are allowed: answers are then read case-sensitively.
    """
    seen: dict[str, str] = {}
    for label in labels:
        if not label.strip():
            raise TemplateError("the label set has an empty label. Give every label a symbol.")
        if label != label.strip():
            raise TemplateError(f"label {label!r} begins or ends with white space. Remove it.")
        if _FORBIDDEN.search(label):
            raise TemplateError(
                f"label {label!r} contains a bracket, a line break or an unprintable character, "
                "which looks like the format of an answer. Choose another symbol."
            )
        if label.casefold() == "tie":
            raise TemplateError(f"label {label!r} would be read as a tie. Choose another symbol.")
        # Full-width and ASCII forms look alike and are read as one.
        key = unicodedata.normalize("NFKC", label)
        if key in seen:
            raise TemplateError(
                f"label {label!r} occurs twice in the label set"
                + (f" (as {seen[key]!r})" if seen[key] != label else "")
                + ". Labels must be distinct."
            )
        seen[key] = label
