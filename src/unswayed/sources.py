"""Load items from built-in sets, benchmarks, files or memory."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

from msgspec import Meta

from unswayed.base.arguments import Settings, checked, takes
from unswayed.base.digests import drawn
from unswayed.base.errors import ItemError, UnknownNameError, UsageError
from unswayed.base.registry import did_you_mean
from unswayed.data.benchmarks import BENCHMARKS, is_benchmark, load_benchmark
from unswayed.model.items import (
    TASKS,
    Item,
    ItemSet,
    collect_items,
    encoded,
    items_of,
    load_items,
    rows_of_columns,
)
from unswayed.tiny import SETS, is_built_in, judge_of

if TYPE_CHECKING:
    from unswayed.keywords import DataKeywords

Source = str | Path | ItemSet | Iterable[Item] | Iterable[Mapping[str, object]]
"""Where items come from; a data frame and a dataset are iterated by their rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions(Settings):
    """Options that select items, for commands and functions."""

    task: Annotated[str | None, Meta(description="Use only the items of this task.")] = None
    on_bad_item: Annotated[
        Literal["stop", "skip"], Meta(description="At an invalid line: stop, or skip and count it.")
    ] = "stop"
    limit: Annotated[int, Meta(ge=1, description="Use the first N items.")] | None = None
    sample: (
        Annotated[int, Meta(ge=1, description="Use N items, drawn at random by seed and item id.")]
        | None
    ) = None
    data_dir: Annotated[
        str | Path | None,
        Meta(
            description="Read a benchmark from this folder instead of downloading it.",
            extra={"text": Path},
        ),
    ] = None
    columns: Annotated[
        str | None,
        Meta(
            description="Names of your columns, such as prompt=question,candidates=GPT|Claude.",
            extra={"value": str | Mapping[str, str | Sequence[str]] | None},
        ),
    ] = None
    seed: int = 0  # of the sample

    def load(self, source: Source) -> ItemSet:
        """Return the items; see `load_data`."""
        task, limit = self.task, self.limit
        if task is not None and task not in TASKS:
            raise UnknownNameError(f"unknown task {task!r}. {did_you_mean(task, TASKS)}")
        for name, count in (("limit", limit), ("sample", self.sample)):
            if count is not None and count < 1:
                raise UsageError(f"{name} {count!r}: give a number of items, at least 1.")
        if self.data_dir is not None and not is_benchmark(source):
            raise UsageError(
                f"--data-dir works only with a benchmark, and {source!s:.60} is not one. Leave it out."
            )
        if self.sample is not None:
            whole = replace(self, sample=None, limit=None).load(source)
            part = _sample(whole, self.sample, self.seed)
            return _subset(part, range(len(part))[:limit])
        if is_benchmark(source):
            loaded = load_benchmark(
                str(source), data_dir=self.data_dir, on_bad_item=self.on_bad_item
            )
        elif isinstance(source, str | Path) and not is_built_in(source):
            return _told(load_items(_existing(str(source)), limit=limit, **self._reading))
        elif isinstance(source, str | Path):
            from unswayed.tiny.items import builtin_items

            loaded = builtin_items(str(source))
        elif isinstance(source, ItemSet):
            loaded = source
        else:
            records = list(records_of(source))
            if not all(isinstance(record, Item) for record in records):
                return _told(items_of(map(encoded, records), limit=limit, **self._reading))
            loaded = ItemSet.of(records, name="items")
        if self.columns:
            raise UsageError(
                f"--columns works only with records; {loaded.name} has items. Leave it out."
            )
        if task is not None and loaded.task != task:
            raise ItemError(f"{loaded.name} has no items of task {task}; they are {loaded.task}.")
        return _subset(loaded, range(len(loaded))[:limit])

    def load_lines(self, lines: Iterable[tuple[int, bytes]], source: str) -> ItemSet:
        """Return the items of numbered lines of JSON, which were read from a source already."""
        return _told(collect_items(lines, source=source, limit=None, **self._reading))

    @property
    def _reading(self) -> dict[str, Any]:
        """Return how records are read."""
        return {"task": self.task, "on_bad_item": self.on_bad_item, "columns": self.columns}


@checked
@takes(DataOptions)
def load_data(source: Source, *, seed: int = 0, **options: Unpack[DataKeywords]) -> ItemSet:
    """Items from a built-in set, a benchmark, a file, or items already in memory.

    Args:
        source: `tiny-judge`, `tiny-mcq`, `tiny-rubric`, a benchmark (`mmlu`, `gpqa:diamond`), a path, `-`, or
            what holds items in memory: items, or mappings with their fields, as a list, a data
            frame or a dataset.
        seed: Of the sample, which holds the same items wherever they stand.

    Raises:
        UnknownNameError: If there is no such task.
        UsageError: If there is neither such a set nor such a file, or a benchmark is not available.
        ItemError: If an item is malformed, or none is left.
    """
    return DataOptions.of({"seed": seed, **options}).load(source)


def examples_of(shots: Source | None) -> tuple[Item, ...]:
    """Return the items that are shown as examples; none where none are given."""
    return tuple(load_data(shots)) if shots else ()


def model_for(model: str | None, source: Source | None, *, typed: bool = True) -> str:
    """Return the model to use: a built-in set's tiny judge, else it must be given."""
    if model is not None:
        return model
    if is_built_in(source):
        return judge_of(source)
    if not typed:
        raise UsageError('no model to judge the items. Give model="provider/model".')
    raise UsageError(
        f"no model to judge {source}. Add --model, such as --model openai/gpt-4.1-mini or "
        "--model hf/PATH."
    )


def _subset(items: ItemSet, places: Sequence[int]) -> ItemSet:
    """Return some of the items; the same set where it is all of them."""
    if len(places) == len(items):
        return items
    kept = [items.items[place] for place in places]
    part = ItemSet.of(kept, name=items.name, bad_lines=items.bad_lines, origin=items.origin)
    return replace(part, read_as=items.read_as)


def _sample(items: ItemSet, count: int, seed: int) -> ItemSet:
    """So many items, in their own order."""
    ids = [item.id for item in items.items]
    chosen = drawn(ids, count, seed=seed)
    return _subset(items, [place for place, item_id in enumerate(ids) if item_id in chosen])


def records_of(source: Iterable[Any]) -> Iterable[Any]:
    """Yield the items or records of a list, a data frame or a dataset."""
    if hasattr(source, "columns") and hasattr(source, "to_dict"):
        return source.to_dict("records")  # type: ignore[no-any-return]  # a data frame
    return rows_of_columns(source) if isinstance(source, Mapping) else source


def _told(items: ItemSet) -> ItemSet:
    """Return the items after telling the user what of their columns was taken for what."""
    if items.read_as:
        print(f"unswayed: {items.read_as}", file=sys.stderr, flush=True)
    return items


def _existing(source: str) -> str:
    looks_like_a_file = source == "-" or "." in source or "/" in source
    if not source or not (looks_like_a_file or Path(source).exists()):
        raise UsageError(
            f"{source!r} is not a file, a built-in set or a benchmark. "
            f"{did_you_mean(source, (*SETS, *BENCHMARKS))}"
        )
    return source
