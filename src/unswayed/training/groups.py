"""Permutation groups: P presentations of one item in consecutive rows, whole groups only.

Items may have different numbers of candidates as long as each has P presentations. Everything that
can be wrong with the data is found here, before a model is loaded: missing gold, groups of different
sizes, prompts that are too long (the whole item is dropped, never one of its presentations), items
that may not be permuted.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from unswayed.base.digests import drawn
from unswayed.base.errors import ItemError, UsageError
from unswayed.model.items import TASKS, Item, Message, blind, fingerprint, text_of, units_of
from unswayed.model.presentation import Ask, Presentation, Protocol, presentations
from unswayed.model.tasks import task_of
from unswayed.prompts import PromptSettings, render
from unswayed.training.recipe_parts import DataTable, Layouts, PromptTable


def usable_items(
    items: Sequence[Item], data: DataTable, *, needs_gold: bool = True
) -> tuple[list[Item], dict[str, int]]:
    """Return the items whose gold tells candidates apart, in order, and what of `Counts` the others are.

    Items with a repeated candidate are always dropped: no setting can repair them, and the released
    training files of PA-GRPO (arXiv 2603.21016) hold some. `data.without_gold` says whether other
    faults of gold stop (`ItemError`) or drop; without `needs_gold` gold is not looked at.
    """
    faults = [_gold_fault(item) if needs_gold else None for item in items]
    faulty = [(item, fault) for item, fault in zip(items, faults, strict=True) if fault]
    if faulty and data.without_gold == "stop":
        first, fault = faulty[0]
        remedy = (
            "Fix gold, or drop these items with --set data.without_gold=drop."
            if len(faulty) < len(items)
            else "Give gold, or use train distill, which needs none."
        )
        raise ItemError(
            f"{first.id}: gold {fault}; {len(faulty)} of {len(items)} items name no right "
            f"candidate, or no wrong one. {remedy}"
        )
    golden = [item for item, fault in zip(items, faults, strict=True) if not fault]
    distinct = [item for item in golden if not _repeats_a_candidate(item)]
    without_gold = sum(needs_gold and not item.gold_candidates() for item in items)
    return distinct, {
        "without_gold": without_gold,
        "all_right": len(faulty) - without_gold,
        "identical": len(golden) - len(distinct),
    }


def _gold_fault(item: Item) -> str | None:
    """Return the fault of an item's gold; None if it tells candidates apart."""
    right = item.gold_candidates()
    if right:
        return None if len(set(right)) < item.n else f"names all {item.n} candidates"
    score = item.human_score()
    if score is not None:
        return f"{score:g} is not the value of a level"
    return "is a tie" if item.gold == "tie" else "is missing"


def _repeats_a_candidate(item: Item) -> bool:
    """Return True if two candidates have one text; the levels of a scale differ by their values."""
    texts = {text_of(candidate).strip() for candidate in item.candidates}
    return len(texts) < item.n and not task_of(item.task).scaled


TokenCount = Callable[[Sequence[Message]], int]
"""Tokens of a rendered chat with the answer about to begin."""


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One presentation of one item."""

    item_id: str  # the item
    presentation: int  # index within the group
    shown: Presentation  # order and labels
    symbols: tuple[str, ...]  # the answer symbols, in label order
    gold: tuple[int, ...]  # the right candidates
    messages: tuple[Message, ...]  # the rendered chat
    answer_only: bool  # whether the prompt asks for a label and nothing else
    max_tokens: int  # the prompt's own cap on the response

    @property
    def n(self) -> int:
        """Number of candidates."""
        return len(self.shown.order)


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of kept and dropped items."""

    # given, kept: items before and after; kept are trained on
    given: int
    kept: int
    held_out: int  # items kept apart
    overlong: int  # items with a prompt above the limit in at least one presentation
    longest_prompt: int  # tokens of the longest prompt kept; 0 if tokens were not counted
    # without_gold, all_right, identical: items dropped because their gold tells no candidate apart:
    # it names none; or all, so that whatever is answered is right; or two candidates have one text,
    # and which of them was meant is unknown
    without_gold: int
    all_right: int
    identical: int
    not_permutable: int  # items that may be shown in their own order only


@dataclass(frozen=True, slots=True)
class Groups:
    """The training data."""

    rows: tuple[GroupRow, ...]  # p consecutive rows per item, in presentation order
    # the P presentations for each number of candidates, held out or not
    views: Mapping[int, tuple[Presentation, ...]]
    moving: tuple[Protocol, ...]  # the protocols that their orders are shown in, one after another
    items: tuple[Item, ...]  # the items trained on, in row order
    held_out: tuple[Item, ...]  # items kept apart to follow consistency
    fingerprint: str  # sha256 over the items trained on and held out
    counts: Counts  # what became of the items

    def __len__(self) -> int:
        return len(self.items)

    @property
    def n_presentations(self) -> int:
        """P, the same for every item."""
        return len(next(iter(self.views.values())))

    @property
    def labels_move(self) -> bool:
        """True if labels change their positions, as graeco-latin orders have it, too."""
        shown = (view for views in self.views.values() for view in views)
        return any(view.labels != tuple(range(view.n)) for view in shown)

    @property
    def first_rows(self) -> tuple[GroupRow, ...]:
        """The first presentation of each item."""
        return self.rows[:: self.n_presentations]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of candidates that occur, the lowest first."""
        return tuple(sorted({row.n for row in self.first_rows}))

    @property
    def symbols(self) -> tuple[str, ...]:
        """The answer symbols of the items with most candidates; those of the others begin them."""
        return max((row.symbols for row in self.first_rows), key=len)

    @property
    def answer_only(self) -> bool:
        """True if the prompt asks for a label and nothing else."""
        return self.rows[0].answer_only

    @property
    def max_tokens(self) -> int:
        """Most tokens of a response."""
        return max(row.max_tokens for row in self.first_rows)


def prompt_settings(prompt: PromptTable) -> PromptSettings:
    """Return the settings of `unswayed.prompts` for a recipe's prompt."""
    return PromptSettings(
        prompt=prompt.style,
        label_set=prompt.labels,
        template=prompt.template,
        max_tokens=prompt.max_response_tokens,
    )


def group_presentations(data: DataTable, n: int) -> tuple[Presentation, ...]:
    """Return the P presentations of a permutation group, the canonical one first."""
    name = data.orders or "structured"
    views = (presentations(name, n, protocol=part, seed=data.order_seed) for part in _moving(data))
    shown = tuple(dict.fromkeys(itertools.chain.from_iterable(views)))
    if len(shown) < 2:
        raise UsageError(
            f"data.orders {name!r} gives {len(shown)} presentation; a permutation group needs at "
            "least 2. Use swap (2 candidates), structured, cyclic or full."
        )
    return shown


def _moving(data: DataTable) -> tuple[Protocol, ...]:
    if data.layouts != "all":
        return ("coupled",)
    if data.orders == "graeco-latin":
        raise UsageError(
            'data.layouts "all" does not work with data.orders "graeco-latin", which assigns '
            "its own labels. Remove data.layouts, or choose other orders: cyclic shows each "
            "candidate once in each position."
        )
    return ("coupled", "label", "order")


def build_groups(
    items: Sequence[Item],
    data: DataTable,
    prompt: PromptTable,
    *,
    seed: int = 0,
    count_tokens: TokenCount | None = None,
    layouts: Layouts = "coupled",
    needs_gold: bool = True,
    evaluation: Sequence[Item] = (),
) -> Groups:
    """Lay items of one task out in permutation groups; `UsageError` or `ItemError` says what cannot be.

    `data` may leave orders and layouts open: then they are those of the task, and `layouts`. The held-out
    items are drawn by `seed` and item ids alone, or are those of `evaluation` that can be laid out.
    Without `count_tokens` no prompt counts as too long.
    """
    orders = data.orders or _train_orders(items)
    open_layouts = "coupled" if orders == "graeco-latin" else layouts  # its orders have own labels
    data = msgspec.structs.replace(data, orders=orders, layouts=data.layouts or open_layouts)
    usable, dropped = usable_items(items, data, needs_gold=needs_gold)
    permutable = [item for item in usable if item.permutable]
    followed = [item for item in evaluation if item.permutable and not _repeats_a_candidate(item)]
    shown = _shown_by_number([*permutable, *followed], data)
    limit = data.max_prompt_tokens
    groups, longest = _lay_out(permutable, shown, prompt, limit, count_tokens)
    checked, longest_checked = _lay_out(followed, shown, prompt, limit, count_tokens)
    apart = _apart([item for item, _ in groups], data.held_out, seed)
    trained = [(item, rows) for item, rows in groups if item.id not in apart]
    items_trained = tuple(item for item, _ in trained)
    items_apart = tuple(
        item for item, _ in (checked or [group for group in groups if group[0].id in apart])
    )
    if evaluation and not checked:
        raise ItemError(
            f"no item of data.evaluation is usable: {len(followed)} may be permuted and have distinct "
            f"candidates, none with prompts of at most {limit} tokens. Give other items."
        )
    counts = Counts(
        given=len(items),
        kept=len(trained),
        held_out=len(items_apart),
        overlong=len(permutable) - len(groups),
        longest_prompt=max(longest, longest_checked),
        not_permutable=len(usable) - len(permutable),
        **dropped,
    )
    if not trained:
        raise ItemError(
            f"nothing to train on: {counts.given} items given, {counts.overlong} with a prompt "
            f"above {data.max_prompt_tokens} tokens, {counts.without_gold} without gold, "
            f"{counts.all_right} all right, {counts.identical} with a candidate twice, "
            f"{counts.not_permutable} not permutable, {counts.held_out} held out. {_remedy(counts)}"
        )
    return Groups(
        rows=tuple(row for _, rows in trained for row in rows),
        views=shown,
        moving=_moving(data),
        items=items_trained,
        held_out=items_apart,
        fingerprint=fingerprint((*items_trained, *items_apart)),
        counts=counts,
    )


def _apart(items: Sequence[Item], count: int, seed: int) -> set[str]:
    """Return the ids of about so many items, all of a question or none, drawn by its first id."""
    units = dict(zip((item.id for item in items), units_of(items)[0], strict=True))
    first = {unit: name for name, unit in sorted(units.items(), reverse=True)}
    share = -(-count * len(first) // max(len(units), 1))
    chosen = drawn(first.values(), share, seed=seed)
    return {name for name, unit in units.items() if first[unit] in chosen}


def _remedy(counts: Counts) -> str:
    if counts.held_out:
        return "Give more items, or set data.held_out lower."
    if counts.overlong > counts.without_gold:
        return "Set data.max_prompt_tokens higher, or give shorter items."
    return "Give other items."


def _lay_out(
    items: Sequence[Item],
    shown: Mapping[int, Sequence[Presentation]],
    prompt: PromptTable,
    limit: int,
    count_tokens: TokenCount | None,
) -> tuple[list[tuple[Item, tuple[GroupRow, ...]]], int]:
    """Return the groups whose prompts are all short enough, and the length of the longest kept."""
    settings = prompt_settings(prompt)
    groups, longest = [], 0
    for item in items:
        rows = tuple(_row(item, index, view, settings) for index, view in enumerate(shown[item.n]))
        length = 0 if count_tokens is None else max(count_tokens(row.messages) for row in rows)
        if length <= limit:
            groups.append((item, rows))
            longest = max(longest, length)
    return groups, longest


def _train_orders(items: Sequence[Item]) -> str:
    trained = {name: orders for name in TASKS if (orders := task_of(name).train_orders)}
    for item in items:
        if item.task not in trained:
            raise ItemError(
                f"{item.id}: task {item.task.value} cannot be trained; {' and '.join(trained)} can."
            )
    return trained[items[0].task] if items else "structured"


def _shown_by_number(items: Sequence[Item], data: DataTable) -> dict[int, tuple[Presentation, ...]]:
    """Return the presentations of a group for each number of candidates; equally many for all."""
    numbers = Counter(item.n for item in items)
    if not numbers:
        raise ItemError(
            "nothing to train on: no item may be permuted and has distinct candidates. Give other items."
        )
    shown = {n: group_presentations(data, n) for n in sorted(numbers)}
    sizes = {n: len(views) for n, views in shown.items()}
    if len(set(sizes.values())) > 1:
        several = ", ".join(
            f"{numbers[n]} items with {n} candidates x {size}" for n, size in sizes.items()
        )
        raise UsageError(
            f"data.orders {data.orders!r} shows items in different numbers of "
            f"presentations ({several}), and a training run needs one. Set data.orders = "
            f'"random:{min(sizes.values())}", or train on one number of candidates at a time.'
        )
    return shown


def _row(item: Item, index: int, shown: Presentation, settings: PromptSettings) -> GroupRow:
    rendered = render(blind(item), Ask(shown), settings)
    return GroupRow(
        item_id=item.id,
        presentation=index,
        shown=shown,
        symbols=rendered.labels,
        gold=item.gold_candidates(),
        messages=rendered.messages,
        answer_only=rendered.answer_only,
        max_tokens=rendered.max_tokens,
    )
