"""All layouts: each is told from every other and read, or refused with the field that is something else."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from foreign_files import FORMATS

from unswayed.base.errors import UnswayedError
from unswayed.data.importers import IMPORTERS, Imported, import_files
from unswayed.data.importers.reading import records_of
from unswayed.model.decisions import Decision, check_decision
from unswayed.model.items import BadFieldError, decode_item, encode_item

WRONG: tuple[Any, ...] = (None, 5, -1.5, "x", "", [], {}, True, [1], ["a", None], {"a": {"b": 1}})
HOSTILE: tuple[Any, ...] = (10**400, 1e308, 2**64, "²", "9" * 5000, "-Infinity", "\0\x1b[2J")
JSON = [
    layout
    for layout, (_, written) in FORMATS.items()
    if layout not in ("hanna", "hanna, its own form", "inspect")
]


def places(value: Any, depth: int = 4) -> Iterator[tuple[Any, ...]]:
    """The paths to everything inside a value."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, part in inner:
        yield (key,)
        if depth > 1 and not (isinstance(part, list) and len(part) > 5):
            yield from ((key, *rest) for rest in places(part, depth - 1))


def changed(record: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The record with another value at a place."""
    copied = copy.deepcopy(record)
    *outer, last = path
    inner = copied
    for key in outer:
        inner = inner[key]
    inner[last] = value
    return copied


def assert_written_and_read_again(imported: Imported) -> None:
    for decision in imported.decisions:
        check_decision(decision)
        line = msgspec.json.encode(decision)
        assert msgspec.json.decode(line, type=Decision) == decision
    for item in imported.items:
        assert decode_item(encode_item(item)) == item


@pytest.mark.parametrize("layout", JSON)
def test_no_field_of_another_type_breaks_an_importer(layout: str, tmp_path: Path) -> None:
    kind, written = FORMATS[layout]
    file = written(tmp_path)
    text = file.read_text()
    alone = text.lstrip().startswith("{")
    record = json.loads(
        text.splitlines()[0]
        if alone and "\n{" not in text.rstrip() and text.count("\n") == 1
        else text
    )
    tried = refused = 0
    for path in places(record):
        for value in WRONG + HOSTILE:
            file.write_text(json.dumps(changed(record, path, value)))
            tried += 1
            try:
                imported = import_files(kind, [file])
            except UnswayedError:
                refused += 1
            else:
                assert_written_and_read_again(imported)
    assert tried > 50
    assert refused > 0


@pytest.mark.parametrize("layout", FORMATS)
def test_only_its_own_importer_claims_a_layout_and_reads_it(layout: str, tmp_path: Path) -> None:
    kind, written = FORMATS[layout]
    file = written(tmp_path)
    if file.suffix != ".eval":  # which only its importer opens
        _, record = next(records_of(str(file)))
        assert not isinstance(record, BadFieldError)
        assert [name for name in IMPORTERS if IMPORTERS.load(name).detects(record)] == [kind]
    by_itself = import_files("auto", [file])
    assert by_itself.counts["records"] > 0
    assert by_itself.items or by_itself.decisions
    assert import_files(kind, [file]) == by_itself


def test_every_importer_has_a_layout_here() -> None:
    assert {kind for kind, _ in FORMATS.values()} == set(IMPORTERS)


@pytest.mark.parametrize(
    ("layout", "question"),
    [
        ("fastchat", "81"),
        ("fastchat-table", "81"),
        ("mt-bench", "81"),
        ("prometheus", "mt_bench_eval-1"),
    ],
)
def test_pairs_of_one_question_count_once(layout: str, question: str, tmp_path: Path) -> None:
    """Units are questions, which several models answer; the texts may be missing or differ."""
    kind, written = FORMATS[layout]
    items = import_files(kind, [written(tmp_path)]).items
    assert {item.unit for item in items} == {question}
