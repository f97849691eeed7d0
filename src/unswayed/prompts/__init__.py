"""Prompts in our own words: a question about an item -> the chat that is sent.

A prompt is a style (direct, reasoning, ...) of `PROMPTS` in the words of the item's task, or the
user's own template file. Nothing here reads an item's gold, except that of
the examples (`PromptSettings.shots`).
"""

from __future__ import annotations

from unswayed.prompts.blocks import plain_texts
from unswayed.prompts.checks import check_prompts, prompt_fingerprint
from unswayed.prompts.rendering import candidate_spans, render, wording_of
from unswayed.prompts.settings import (
    AskOptions,
    PromptSettings,
    Rendered,
    Terms,
    Wording,
    check_labels,
    label_set_of,
)
from unswayed.prompts.spans import NO_CANDIDATE, Span, Spans, spans_of
from unswayed.prompts.styles import PROMPTS, Style

__all__ = [
    "NO_CANDIDATE",
    "PROMPTS",
    "AskOptions",
    "PromptSettings",
    "Rendered",
    "Span",
    "Spans",
    "Style",
    "Terms",
    "Wording",
    "candidate_spans",
    "check_labels",
    "check_prompts",
    "label_set_of",
    "plain_texts",
    "prompt_fingerprint",
    "render",
    "spans_of",
    "wording_of",
]
