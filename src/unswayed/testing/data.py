"""Rules for every importer and every benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from unswayed.data.benchmarks import Benchmark, Place
from unswayed.data.importers import IMPORTERS, Importer
from unswayed.data.importers.protocol import Source
from unswayed.model.decisions import check_decision
from unswayed.model.items import BadFieldError, Item
from unswayed.model.tasks import task_of
from unswayed.testing.rules import hold, refuses

Record = Mapping[str, Any]


def check_importer(importer: Importer[Any], records: Sequence[Record]) -> None:
    """Check an importer by records of its format that each stand alone.

    Raises:
        AssertionError: Naming the broken rule.
    """
    rules = (tells_its_format, reads_every_record, refuses_a_bad_record_by_its_field)
    hold(f"importer {importer.title}", rules, importer, records)


def tells_its_format(importer: Importer[Any], records: Sequence[Record]) -> None:
    """Check that an importer knows its own records, and no other registered one claims them."""
    assert records, "give it a record"
    assert not importer.detects({})
    assert importer.detects(records[0])
    others = [(name, IMPORTERS.load(name)) for name in IMPORTERS]
    claims = [name for name, other in others if other.detects(records[0]) and other is not importer]
    assert claims == []


def reads_every_record(importer: Importer[Any], records: Sequence[Record]) -> None:
    """Every record gives an item or calls about one, with decisions that are well formed."""
    for number, record in enumerate(records, start=1):
        judged = importer.convert(record, Source("records.jsonl", number))
        assert judged.item is not None or judged.decisions or judged.left_out
        for decision in judged.decisions:
            check_decision(decision)
            assert judged.item is None or decision.item_id.startswith(judged.item.id)


def refuses_a_bad_record_by_its_field(importer: Importer[Any], records: Sequence[Record]) -> None:
    """Check that a record without a required field, or with another type, is refused by `BadFieldError`."""
    required = [f.encode_name for f in msgspec.structs.fields(importer.schema) if f.required]
    assert required, "its schema requires nothing"
    for field in required:
        lacking = {name: value for name, value in records[0].items() if name != field}
        for bad in (lacking, {**lacking, field: {"odd": object}}):
            source = Source("records.jsonl", 1)
            assert field in refuses(BadFieldError, importer.convert, bad, source)


def check_benchmark(benchmark: Benchmark[Any], rows: Sequence[Record]) -> None:
    """Check a benchmark by rows as they are published, all with one key if it has keys.

    Raises:
        AssertionError: Naming the broken rule.
    """
    hold(f"benchmark {benchmark.title}", (is_described, turns_rows_into_items), benchmark, rows)


def is_described(benchmark: Benchmark[Any], rows: Sequence[Record]) -> None:
    """Check that a benchmark names its question, place, licence and paper."""
    for text in (benchmark.title, benchmark.repository, benchmark.revision, benchmark.licence):
        assert text.strip()
    assert benchmark.paper
    assert benchmark.files
    assert {*benchmark.default} <= {*benchmark.files}
    assert benchmark.rows > 0


def turns_rows_into_items(benchmark: Benchmark[Any], rows: Sequence[Record]) -> None:
    """Check that published rows become items of the task with ids of their own, the same each time."""
    place = Place(next(iter(benchmark.files)), "rows.jsonl", 0)
    read = [msgspec.convert(row, benchmark.schema) for row in rows]

    def made() -> list[Item]:
        groups = [read] if benchmark.key else [[row] for row in read]
        return [item for group in groups for item in benchmark.items(group, place)]

    items = made()
    assert items
    assert made() == items
    assert len({item.id for item in items}) == len(items)
    for item in items:
        assert item.task == benchmark.task
        task_of(item.task).check(item)
