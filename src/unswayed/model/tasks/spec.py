"""Task specification: everything that differs between tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from unswayed.base.errors import UnknownNameError
from unswayed.model.decisions import Evidence
from unswayed.model.items import TASKS, Item
from unswayed.model.parsing import Reply
from unswayed.model.presentation import Ask


@dataclass(frozen=True, slots=True)
class Points:
    """Several things that one reply answers, each with a verdict of its own.

    Attributes:
        names: What they are called, in displayed order.
        joined: The reply that gives each its verdict, by name: what a simulated judge writes.
    """

    names: Callable[[Item, Ask], tuple[str, ...]]
    joined: Callable[[Mapping[str, str]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """One task.

    Attributes:
        name: Registered name, the `task` of its items.
        noun: What a candidate is called: answer, option, level.
        listed: Whether candidates of one line each stand in one list; else in blocks of their own.
        check: Raises `BadFieldError` where an item is none of this task (an item has an id and
            two candidates at least when it comes here).
        gold: The right candidates of an item; empty where gold is a tie or unknown. Like `human` it
            looks at gold, values, criteria and the number of candidates, at no text, id or `meta`
            (where one does, seen at the first of many items alike, large sets stay in memory).
        human: The score that humans gave an item, None where there is none; None if gold names
            candidates.
        orders: Set of orders that an audit asks for unless told otherwise. One name for every
            number of candidates: for two, `cyclic` and `structured` are the swap.
        train_orders: Set of orders of a permutation group; None if the task cannot be trained.
            Rewards read the candidate that a reply chooses.
        sentences: The words of the prompts by name. `{labels}` stands for the labels ("A or B"),
            `{first}` for the first of them, `{noun}` for the noun. A style names the ones it uses;
            those of the built-in styles are in `unswayed.prompts.styles`.
        reply: What the judge is to reply, and how that is read.
        scaled: Whether the candidates are levels with values.
        points: What one reply answers; None for one thing.
    """

    name: str
    noun: str
    listed: bool
    check: Callable[[Item], None]
    gold: Callable[[Item], tuple[int, ...]]
    human: Callable[[Item], float | None] | None = None
    orders: str
    train_orders: str | None
    sentences: Mapping[str, str]
    reply: Reply
    scaled: bool = False
    points: Points | None = None

    @property
    def gives(self) -> frozenset[Evidence]:
        """Kinds of evidence that decisions of this task can hold."""
        return self.reply.gives | ({Evidence.LEVELS} if self.scaled else frozenset())


def sentences_of(text: str) -> dict[str, str]:
    """Return sentences by name: each begins a line with its name and a colon, and goes on in indented ones."""
    named = (part.partition(":") for part in re.split(r"\n(?! )", text.strip()))
    return {name: " ".join(words.split()) for name, _, words in named}


def points_of(item: Item, ask: Ask) -> tuple[str, ...]:
    """Return the points that one reply answers, in displayed order; empty for a single one."""
    points = task_of(item.task).points
    return () if points is None else points.names(item, ask)


def tasks_giving(*readings: frozenset[Evidence]) -> list[str]:
    """Return the tasks whose decisions can hold all of one of them: where a method that reads it works."""
    return [name for name in TASKS if any(reading <= task_of(name).gives for reading in readings)]


def task_of(name: str) -> TaskSpec:
    """Return the task of that name; an `UnknownNameError` where there is none."""
    try:
        task = TASKS.load(name)
    except UnknownNameError:
        raise UnknownNameError(
            f"task {str(name)!r} is not available; there are {' and '.join(TASKS)}."
        ) from None
    if not isinstance(task, TaskSpec):
        raise UnknownNameError(f"task {str(name)!r}: the registered object is not a TaskSpec.")
    return task
