"""The data filter: keep the items on which the model is inconsistent.

An item on which the model already names the same candidate in every order gives a permutation
group little to learn from. The filter asks greedily under a few orders and keeps items with more
than one distinct answer, whole items only. It is a step of its own, so that its calls are recorded
and the kept items are a file like any other.

Source: PA-GRPO (arXiv 2603.21016), Appendix D: both orders for two candidates, the cyclic orders
for more. Not for evaluation items: a set filtered by a model's own mistakes measures that filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unswayed.backends import Backend
from unswayed.base.files import read_object
from unswayed.calls import Question, RunCounts
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, ItemSet, blind, by_criterion, expanded, text_of
from unswayed.model.presentation import Ask, presentations
from unswayed.prompts import PromptSettings
from unswayed.training.asking import ask_recorded

FATES: Final = ("evaluation", "incomplete", "kept", "unparsed", "consistent")
"""What can become of an item; of criteria with several fates the first decides."""


@dataclass(frozen=True, slots=True)
class FilterReport:
    """Counts of the filter."""

    given: int  # items given
    kept: int  # items with more than one distinct answer
    consistent: int  # items answered alike under every order, dropped
    # items with fewer than two parsed answers and at least one unparsed, dropped (kept with
    # `count_unparsed`)
    unparsed: int
    incomplete: int  # items with a call missing, dropped
    evaluation: int  # items that also occur in an evaluation set, dropped
    unparsed_answers: int  # unparsed answers over all items


@dataclass(frozen=True, slots=True)
class Filtered:
    """The items kept, in their order, and the report."""

    items: tuple[Item, ...]
    report: FilterReport


def beside(items: Path) -> Path:
    """Return the file that keeps how items were filtered."""
    return items.with_name(f"{items.name.partition('.')[0]}.filter.json")


def check_prompt(items: Path, style: str, fingerprint: str) -> str | None:
    """Return a warning if the items were filtered by another prompt; None if not, or if nothing says so."""
    filtered = read_object(beside(items))
    if filtered.get("prompt_fingerprint") in (None, fingerprint):
        return None
    return (
        f"{items.name} was filtered with prompt {filtered.get('prompt')} of {filtered.get('model')}; "
        f"this run asks with another ({style}). Filter again with --recipe."
    )


def filter_asks(n: int, *, orders: str | None = None) -> tuple[Ask, ...]:
    """Return the filter's questions about n candidates; cyclic orders (for two, the swap) unless others are named."""
    return tuple(map(Ask, presentations(orders or "cyclic", n)))


async def ask_in_orders(
    items: ItemSet,
    backend: Backend,
    directory: Path,
    prompts: PromptSettings,
    orders: str | None = None,
    *,
    reask: bool = True,
) -> tuple[list[Decision], RunCounts]:
    """Ask what `keep_inconsistent` needs, into a directory of recorded calls; close the backend.

    Items that may not be permuted are not asked.
    """
    items = expanded(items)
    questions = [
        Question(blind(item), ask)
        for item in items
        if item.permutable
        for ask in filter_asks(item.n, orders=orders)
    ]
    return await ask_recorded(items, questions, backend, directory, prompts, reask=reask)


def keep_inconsistent(
    items: Sequence[Item],
    decisions: Iterable[Decision],
    *,
    orders: str | None = None,
    count_unparsed: bool = False,
    evaluation: Sequence[Item] = (),
) -> Filtered:
    """Keep the items with more than one distinct candidate (or tie) among their answers.

    An item with criteria is kept where the answers on any of them differ. Decisions that answer no ask
    of `filter_asks` are left out; `count_unparsed` lets an unparsed answer count as a distinct one;
    `evaluation` items must not be trained on and are compared by text, not by id.
    """
    answers = {(decision.item_id, decision.ask): decision.choice for decision in decisions}
    forbidden = {content_of(item) for item in evaluation}
    tally = dict.fromkeys(FATES, 0)
    kept: list[Item] = []
    unparsed_answers = 0
    for item in items:
        asks = filter_asks(item.n, orders=orders)
        fates = []
        for own in by_criterion([item]):
            choices = [answers[own.id, ask] for ask in asks if (own.id, ask) in answers]
            unparsed_answers += choices.count(None)
            distinct = {choice for choice in choices if choice is not None}
            if forbidden and content_of(own) in forbidden:
                fates.append("evaluation")
            elif len(choices) < len(asks):
                fates.append("incomplete")
            elif len(distinct) > 1 or (count_unparsed and None in choices):
                fates.append("kept")
            else:
                fates.append("unparsed" if None in choices else "consistent")
        fate = min(fates, key=FATES.index)
        tally[fate] += 1
        if fate == "kept":
            kept.append(item)
    return Filtered(
        items=tuple(kept),
        report=FilterReport(given=len(items), unparsed_answers=unparsed_answers, **tally),
    )


def content_of(item: Item) -> tuple[str, frozenset[str]]:
    """Return the content that makes two items the same question: prompt, text scored, candidates in any order."""
    asked = f"{text_of(item.prompt)} {item.response or ''}"
    normal = " ".join(asked.split()).casefold()
    return normal, frozenset(" ".join(text_of(c).split()).casefold() for c in item.candidates)
