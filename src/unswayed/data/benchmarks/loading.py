"""Load a benchmark by name: its parts, rows that belong together, rows left out."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from unswayed.base.errors import ItemError, UsageError, field_and_reason
from unswayed.base.registry import did_you_mean
from unswayed.data.benchmarks.benchmark import ORDER_SEED, Benchmark, Place
from unswayed.data.benchmarks.copies import Copy, files_of, rows_of
from unswayed.data.benchmarks.table import BENCHMARKS
from unswayed.model.items import BadFieldError, BadLine, Item, ItemSet, check_item, is_table


def is_benchmark(data: object) -> bool:
    """Return True if data are named after a benchmark: `mmlu`, or `gpqa:diamond` for a part of one."""
    if not isinstance(data, str | Path):
        return False
    name = str(data).partition(":")[0]
    return not {".", "/", "\\"} & set(name) and name not in ("", "-") and name in BENCHMARKS


def load_benchmark(
    data: str,
    *,
    data_dir: str | Path | None = None,
    on_bad_item: Literal["stop", "skip"] = "stop",
) -> ItemSet:
    """Return the items of a benchmark.

    Args:
        data: Its name; behind a colon one of its parts (`gpqa:diamond`), groups
            (`reward-bench-2:Factuality`) or criteria (`hanna:Coherence`).
        data_dir: Folder with a copy of its files; None fetches them, or takes them from the cache.
        on_bad_item: "stop" at a row that is none of this benchmark, or "skip" and count them.
    """
    name, _, chosen = data.partition(":")
    benchmark = BENCHMARKS.load(name)
    parts = (chosen,) if chosen in benchmark.files else benchmark.default or tuple(benchmark.files)
    copy = files_of(name, benchmark, parts, data_dir)
    reading = _Reading(name, benchmark, copy, on_bad_item)
    items: Sequence[Item] = list(reading.items())
    if chosen and chosen not in benchmark.files:
        items = _chosen(name, items, chosen, tuple(benchmark.files))
    return ItemSet.of(
        items,
        name=data.replace(":", "-"),
        bad_lines=reading.bad,
        origin=_origin(benchmark, copy, reading.rows),
    )


def _chosen(name: str, items: Sequence[Item], chosen: str, parts: Sequence[str]) -> Sequence[Item]:
    """Return the items of a group, or all with one of their criteria."""
    group = [item for item in items if item.group == chosen]
    if group:
        return group
    if any(chosen in (item.criteria or ()) for item in items):
        return [_with_criterion(item, chosen) for item in items]
    names = {item.group for item in items} | {c for item in items for c in item.criteria or ()}
    raise UsageError(
        f"{name} has no part, group or criterion {chosen!r}. "
        f"{did_you_mean(chosen, (*parts, *filter(None, names)))}"
    )


def _with_criterion(item: Item, criterion: str) -> Item:
    gold = item.gold if isinstance(item.gold, dict) else {}
    kept = {name: score for name, score in gold.items() if name == criterion}
    return msgspec.structs.replace(item, criteria=(criterion,), gold=kept)


def _origin(benchmark: Benchmark[Any], copy: Copy, rows: int) -> Mapping[str, str | int]:
    """Return the origin of the items for `run.json`; a copy does not tell its revision."""
    facts: dict[str, str | int | None] = {
        "address": benchmark.address,
        "revision": benchmark.revision if copy.place is None else None,
        "commit": copy.commit,
        "data_dir": copy.place,
        "rows": rows,
        "licence": benchmark.licence,
        "paper": f"arXiv {benchmark.paper}",
        "order_seed": ORDER_SEED if benchmark.shuffles else None,
        "note": benchmark.note or None,
    }
    return {name: value for name, value in facts.items() if value is not None}


@dataclass(slots=True)
class _Reading:
    """The rows of a copy, read once; what is bad is kept with its place."""

    name: str
    benchmark: Benchmark[Any]
    copy: Copy
    on_bad_item: Literal["stop", "skip"]
    bad: list[BadLine] = field(default_factory=list)
    rows: int = 0

    def items(self) -> Iterator[Item]:
        """Yield the items, in the order of their first rows."""
        key = self.benchmark.key
        together: dict[Hashable, tuple[Place, list[Any]]] = {}
        for place, row in self._places():
            if key is None:
                yield from self._checked((row,), place)
            else:
                together.setdefault((place.part, key(row)), (place, []))[1].append(row)
        for place, rows in together.values():
            yield from self._checked(rows, place)

    def _places(self) -> Iterator[tuple[Place, Any]]:
        schema = self.benchmark.schema
        for part, files in self.copy.files.items():
            for file in files:
                strict = not is_table(file)  # cells are text
                for record in rows_of(self.name, self.benchmark, file):
                    place = Place(part, file.name, self.rows)
                    self.rows += 1
                    try:
                        if isinstance(record, BadFieldError):
                            raise record
                        row = msgspec.convert(record, schema, strict=strict)
                    except msgspec.ValidationError as error:
                        column, reason = field_and_reason(error)
                        self._leave_out(place, BadFieldError(column or "row", reason))
                    except BadFieldError as error:
                        self._leave_out(place, error)
                    else:
                        yield place, row

    def _checked(self, rows: Any, place: Place) -> Iterator[Item]:
        """Yield the items of rows that belong together; all of them or none."""
        try:
            items = list(self.benchmark.items(rows, place))
            for item in items:
                check_item(item)
        except BadFieldError as error:
            self._leave_out(place, error)
        else:
            yield from items

    def _leave_out(self, place: Place, error: BadFieldError) -> None:
        if self.on_bad_item == "stop":
            fetched = f"{self.benchmark.repository} at revision {self.benchmark.revision}"
            at = self.copy.place or fetched
            raise ItemError(
                f"{self.name}: {at}: {place.file}, row {place.number}: {error}. The data set was "
                "changed, or this is another one; --on-bad-item skip leaves such rows out."
            ) from None
        self.bad.append(BadLine(place.file, place.number, error.field, error.reason))
