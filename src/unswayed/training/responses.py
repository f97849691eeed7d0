"""Reading a sampled response: which label, in which form, after how much reasoning. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from unswayed.model.calls import Response
from unswayed.model.decisions import Evidence
from unswayed.model.items import Item, Task
from unswayed.model.parsing import LABEL
from unswayed.model.parsing.labels import parse_label
from unswayed.model.presentation import Ask, canonical
from unswayed.model.tasks import task_of
from unswayed.training.recipe_parts import PromptTable


class Reading(NamedTuple):
    """A response, read."""

    label: int | None  # label index of the candidate that the response puts first, or None
    # whether the response is exactly of the form that was asked for; of a task with a reply of its
    # own, whether it is complete: one candidate first and, where all are to be scored, every score
    # and a full ranking
    well_formed: bool
    reasoning_chars: int  # characters of reasoning; 0 where none was asked for


Reader = Callable[[str, Sequence[str]], Reading]
"""Function of a response and the label symbols: the reading."""


def reader(prompt: PromptTable, *, answer_only: bool, task: Task = Task.PAIRWISE) -> Reader:
    """Return the reader of the responses to a task's prompt."""
    spec = task_of(task)

    def read_reply(text: str, symbols: Sequence[str]) -> Reading:
        n = len(symbols)
        item = Item(id="response", task=task, prompt="", candidates=("",) * n)
        decision = spec.reply.read(
            item, Ask(canonical(n)), symbols, Response(text=text), model="", answer_only=False
        )
        label = decision.choice if isinstance(decision.choice, int) else None
        reasoning = text.partition(prompt.think_tags[1])[0] if prompt.think_tags[1] in text else ""
        complete = label is not None
        if complete and Evidence.SCORES in spec.reply.gives:
            complete = None not in (decision.scores or (None,)) and decision.ranking is not None
        return Reading(label, complete, len(reasoning.strip().removeprefix(prompt.think_tags[0])))

    if spec.reply is not LABEL:
        return read_reply

    def read_label(text: str, symbols: Sequence[str]) -> Reading:
        symbol = parse_label(text, symbols, allow_tie=False)  # training asks for one candidate
        bare = text.strip().rstrip(".").strip("()[]*\"'` ")
        reasoning, answer = ("", bare) if answer_only else _parts(text, prompt)
        if symbol is None:
            return Reading(None, False, len(reasoning))
        exact = answer.casefold() == symbol.casefold()
        return Reading(list(symbols).index(symbol), exact, len(reasoning))

    return read_label


def _parts(text: str, prompt: PromptTable) -> tuple[str, str]:
    """Reasoning and answer of a response; the answer is empty unless the form is exact."""
    opening, closing = prompt.think_tags
    before, after = prompt.answer_tags
    whole = text.strip()
    head, closed, tail = whole.partition(closing)
    reasoning = head.removeprefix(opening).strip()
    rest = tail.strip()
    exact = (
        bool(closed)
        and head.startswith(opening)
        and opening not in reasoning
        and rest.startswith(before)
        and rest.endswith(after)
    )
    answer = rest[len(before) : len(rest) - len(after)].strip() if exact else ""
    return reasoning, answer
