"""What a prompt is made of: a style (how to answer) x a wording (what the task is about).

A style names the sentences it uses; a wording holds the sentences of one task. A new style is one
constant here and one line in the table `PROMPTS`; a new task is one file with a `Wording` and one
line in the table `WORDINGS`. A style works on every task whose wording has its sentences.

In a sentence `{labels}` stands for the labels ("A or B"), `{first}` for the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from unswayed.errors import TemplateError
from unswayed.registry import Registry

__all__ = ["PROMPTS", "WORDINGS", "Style", "Wording", "join_labels"]

DIRECT_TOKENS: Final = 16
"""Cap for a label alone: room for a name of several tokens or for "The better answer is B"."""

REASONING_TOKENS: Final = 2048
"""Cap for reasoning and verdict; a truncated answer is retried once with a larger cap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How the judge is to answer.

    Attributes:
        name: Registered name.
        title: What it asks for, in a phrase.
        system: Names of the sentences of the system message, in order.
        closing: Name of the sentence that ends the user message.
        answer_only: The answer is the label itself (next-token label logits are the answer).
        max_tokens: Cap on generated tokens.
    """

    name: str
    title: str
    system: tuple[str, ...]
    closing: str
    answer_only: bool
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The sentences of one task.

    Attributes:
        task: Name of the task.
        noun: What a candidate is called in its heading.
        heading: What the list of candidates is called where they stand on one line each; None if
            every candidate gets a block of its own.
        sentences: Sentence by name.
    """

    task: str
    noun: str
    heading: str | None
    sentences: Mapping[str, str]

    def sentence(self, name: str, labels: tuple[str, ...]) -> str:
        """One sentence with the labels filled in.

        Raises:
            TemplateError: If this task has no such sentence.
        """
        if name not in self.sentences:
            raise TemplateError(
                f"this prompt is not written for task {self.task!r}: it has no {name!r} sentence. "
                "Choose another prompt or bring a template file."
            )
        return self.sentences[name].format(labels=join_labels(labels), first=labels[0])


PROMPTS: Registry[Style] = Registry(
    "prompt",
    {
        "debias": "unswayed.prompts.styles:DEBIAS",
        "debias-reasoning": "unswayed.prompts.styles:DEBIAS_REASONING",
        "direct": "unswayed.prompts.styles:DIRECT",
        "modified": "unswayed.prompts.styles:MODIFIED",
        "modified-direct": "unswayed.prompts.styles:MODIFIED_DIRECT",
        "reasoning": "unswayed.prompts.styles:REASONING",
    },
)

WORDINGS: Registry[Wording] = Registry(
    "wording",
    {
        "mcq": "unswayed.prompts.mcq:WORDING",
        "pairwise": "unswayed.prompts.pairwise:WORDING",
    },
)

DIRECT = Style(
    name="direct",
    title="the label alone",
    system=("role", "data", "direct"),
    closing="closing-direct",
    answer_only=True,
    max_tokens=DIRECT_TOKENS,
)
REASONING = Style(
    name="reasoning",
    title="reasoning in <think>, then the label in <answer>",
    system=("role", "data", "reasoning"),
    closing="closing-reasoning",
    answer_only=False,
    max_tokens=REASONING_TOKENS,
)
MODIFIED = Style(
    name="modified",
    title="reasoning, with criteria and a clause on impartiality",
    system=("role-modified", "criteria", "impartial", "data", "reasoning"),
    closing="closing-reasoning",
    answer_only=False,
    max_tokens=REASONING_TOKENS,
)
MODIFIED_DIRECT = Style(
    name="modified-direct",
    title="the label alone, with criteria and a clause on impartiality",
    system=("role-modified", "criteria", "impartial", "data", "direct"),
    closing="closing-direct",
    answer_only=True,
    max_tokens=DIRECT_TOKENS,
)
DEBIAS = Style(
    name="debias",
    title="the label alone, told that order, labels and length must not matter",
    system=(*DIRECT.system, "debias"),
    closing="closing-direct",
    answer_only=True,
    max_tokens=DIRECT_TOKENS,
)
DEBIAS_REASONING = Style(
    name="debias-reasoning",
    title="reasoning, told that order, labels and length must not matter",
    system=(*REASONING.system, "debias"),
    closing="closing-reasoning",
    answer_only=False,
    max_tokens=REASONING_TOKENS,
)


def join_labels(labels: tuple[str, ...]) -> str:
    """The labels as a phrase in their canonical order: `A or B`, `A, B, C or D`."""
    return f"{', '.join(labels[:-1])} or {labels[-1]}"
