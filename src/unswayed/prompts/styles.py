"""Parts of the built-in prompts: a style (how to answer) x a task (what is asked).

A style names the sentences it uses; the task has the words, or else the style brings them. A new
style is one `Style` and one line in the table `PROMPTS`; it works on every task that has its
sentences. The two parts of a sentence in braces are explained at `TaskSpec.sentences`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from unswayed.base.errors import TemplateError
from unswayed.base.registry import Registry
from unswayed.model.parsing import LabelReply, ReplySpec
from unswayed.model.tasks import TaskSpec, sentences_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Way in which the judge is to answer.

    Attributes:
        name: Registered name.
        title: What it asks for, in a phrase.
        system: Names of the sentences of the system message, in order.
        closing: Names of the sentences that end the user message.
        reply: What it asks of the server for one label.
        words: Sentences by name that the style brings, for tasks without such a sentence.
    """

    name: str
    title: str
    system: tuple[str, ...]
    closing: tuple[str, ...]
    reply: ReplySpec
    words: Mapping[str, str] = field(default_factory=dict)


PROMPTS: Registry[Style] = Registry(
    "prompt",
    {
        "debias": "unswayed.prompts.styles:DEBIAS",
        "debias-reasoning": "unswayed.prompts.styles:DEBIAS_REASONING",
        "direct": "unswayed.prompts.styles:DIRECT",
        "keyed": "unswayed.prompts.styles:KEYED",
        "modified": "unswayed.prompts.styles:MODIFIED",
        "modified-direct": "unswayed.prompts.styles:MODIFIED_DIRECT",
        "reasoning": "unswayed.prompts.styles:REASONING",
        "structured": "unswayed.prompts.styles:STRUCTURED",
        "structured-reasoning": "unswayed.prompts.styles:STRUCTURED_REASONING",
    },
    like="unswayed.prompts.styles:Style",
)

_TAGGED: Final = sentences_of("""
reasoning: Think it through step by step first, inside <think> and </think>. Then write exactly one
    label, {labels}, inside <answer> and </answer>, like this: <think>your
    reasoning</think><answer>the label</answer>.
tags: Reasoning inside <think> and </think>, then the label inside <answer> and </answer>.
key: Before you compare anything, solve the question yourself, without relying on any {noun} that is
    printed: your solution is the key. Only then hold every {noun} against that key and decide by it
    alone, even where another {noun} is argued or written better. The key and the comparison belong
    to your reasoning, not to your reply.
""")

_OBJECTS: Final = sentences_of("""
object: Reply with one JSON object and nothing else, which names the label that you choose,
    {labels}, in this form: {{"label": "the label"}}.
reasoned-object: Reply with one JSON object and nothing else. Think it through step by step first,
    under "reasoning", then name the label that you choose, {labels}, in this form: {{"reasoning":
    "your reasoning", "label": "the label"}}.
""")
"""Sentences for one label; a task with its own kind of reply has its own sentences."""

REASK: Final = "Reply with the label only: {labels}."
"""Sentence that asks for the label of a reply that could not be read."""

LABEL_ALONE: Final = ReplySpec(max_tokens=16, answer_only=True, reask=REASK)
"""Room for a name of several tokens or for "The better answer is B"."""

REASONED: Final = ReplySpec(max_tokens=2048, answer_only=False, reask=REASK, form="tag")
"""Reasoning and verdict; a truncated answer is retried once with a larger cap."""


def _label_alone(name: str, title: str, *system: str) -> Style:
    return Style(name=name, title=title, system=system, closing=("question",), reply=LABEL_ALONE)


def _reasoning(name: str, title: str, *system: str) -> Style:
    closing = ("question", "tags")
    return Style(
        name=name, title=title, system=system, closing=closing, reply=REASONED, words=_TAGGED
    )


_REFEREE: Final = ("role-modified", "criteria", "impartial", "data")

DIRECT = _label_alone("direct", "the label alone", "role", "data", "reply")
REASONING = _reasoning(
    "reasoning", "reasoning in <think>, then the label in <answer>", "role", "data", "reasoning"
)
MODIFIED = _reasoning(
    "modified",
    "reasoning, with criteria and a clause on impartiality",
    *_REFEREE,
    "reasoning",
)
MODIFIED_DIRECT = _label_alone(
    "modified-direct",
    "the label alone, with criteria and a clause on impartiality",
    *_REFEREE,
    "reply",
)
DEBIAS = _label_alone(
    "debias",
    "the label alone, told that order, labels and length must not matter",
    *DIRECT.system,
    "debias",
)
DEBIAS_REASONING = _reasoning(
    "debias-reasoning",
    "reasoning, told that order, labels and length must not matter",
    *REASONING.system,
    "debias",
)
KEYED = _reasoning(
    "keyed",
    "reasoning that solves the question first and compares with that key",
    "role",
    "data",
    "key",
    "reasoning",
)
STRUCTURED = Style(
    name="structured",
    title="the label in a JSON object with a schema that servers enforce",
    system=("role", "data", "object"),
    closing=("question",),
    reply=LABEL_ALONE._replace(max_tokens=64, keys=("label",), form="json"),
    words=_OBJECTS,
)
STRUCTURED_REASONING = Style(
    name="structured-reasoning",
    title="the same with reasoning before the label",
    system=("role", "data", "reasoned-object"),
    closing=("question",),
    reply=LABEL_ALONE._replace(
        max_tokens=REASONED.max_tokens, keys=("reasoning", "label"), form="json"
    ),
    words=_OBJECTS,
)


def phrase(labels: Sequence[str]) -> str:
    """Join labels as in a sentence: A, B or C."""
    return f"{', '.join(labels[:-1])} or {labels[-1]}"


def sentences(names: Sequence[str], style: Style, task: TaskSpec, labels: Sequence[str]) -> str:
    """Sentences by name, with the labels filled in; a `TemplateError` where nobody has one of them."""
    parts = []
    for name in names:
        if name in _OBJECTS and not isinstance(task.reply, LabelReply):
            name = "reply"
        words = task.sentences.get(name, style.words.get(name))
        if words is None:
            raise TemplateError(
                f"this prompt is not written for task {task.name!r}: it has no {name!r} sentence. "
                "Choose another prompt or give a template file."
            )
        parts.append(words.format(labels=phrase(labels), first=labels[0], noun=task.noun))
    return " ".join(parts)
