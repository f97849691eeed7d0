"""Gold that tells candidates apart: items without it teach nothing, or the wrong thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unswayed.errors import ItemError
from unswayed.items import Item, text_of
from unswayed.tasks import task_of
from unswayed.training.recipe_parts import DataTable


@dataclass(frozen=True, slots=True)
class Usable:
    """The items that can be trained on, and how many of the others were dropped for what."""

    items: tuple[Item, ...]  # those whose gold tells candidates apart, in order
    without_gold: int  # items without a right candidate
    all_right: int  # items whose gold names every candidate: whatever is answered is right
    identical: int  # items with two candidates of one text: which of them was meant cannot be said


def usable_items(items: Sequence[Item], data: DataTable, *, needs_gold: bool = True) -> Usable:
    """Part the items whose gold tells candidates apart from those whose does not.

    Items with a repeated candidate are always dropped: nobody can mend them, and the released
    training files of PA-GRPO (arXiv 2603.21016) hold some. `data.without_gold` says whether other
    faults of gold stop (`ItemError`) or drop; without `needs_gold` gold is not looked at.
    """
    faults = [_gold_fault(item) if needs_gold else None for item in items]
    faulty = [(item, fault) for item, fault in zip(items, faults, strict=True) if fault]
    if faulty and data.without_gold == "stop":
        first, fault = faulty[0]
        remedy = (
            "Mend gold, or leave these items out with --set data.without_gold=drop."
            if len(faulty) < len(items)
            else "Give gold, or train what needs none: train distill."
        )
        raise ItemError(
            f"{first.id}: gold {fault}; {len(faulty)} of {len(items)} items name no right "
            f"candidate, or no wrong one. {remedy}"
        )
    golden = [item for item, fault in zip(items, faults, strict=True) if not fault]
    distinct = tuple(item for item in golden if not _repeats_a_candidate(item))
    without_gold = sum(needs_gold and not item.gold_candidates() for item in items)
    return Usable(
        items=distinct,
        without_gold=without_gold,
        all_right=len(faulty) - without_gold,
        identical=len(golden) - len(distinct),
    )


def _gold_fault(item: Item) -> str | None:
    """What is wrong with an item's gold; None if it tells candidates apart."""
    right = item.gold_candidates()
    if right:
        return None if len(set(right)) < item.n else f"names all {item.n} candidates"
    score = item.human_score()
    if score is not None:
        return f"{score:g} is the value of no level"
    return "is a tie" if item.gold == "tie" else "is missing"


def _repeats_a_candidate(item: Item) -> bool:
    """Whether two candidates have one text; the levels of a scale differ by their values."""
    texts = {text_of(candidate).strip() for candidate in item.candidates}
    return len(texts) < item.n and not task_of(item.task).scaled
