"""Every benchmark reads its own layout, and names id, revision and field where that has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from published_rows import ROWS, Rows, write

from unswayed.base.errors import ItemError, UnswayedError, UsageError
from unswayed.data.benchmarks import BENCHMARKS
from unswayed.sources import load_data

NEEDED = [
    (name, field.encode_name)
    for name in BENCHMARKS
    for field in msgspec.structs.fields(BENCHMARKS.load(name).schema)
    if field.required
]


def test_every_benchmark_has_rows_here() -> None:
    assert set(ROWS) == set(BENCHMARKS)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_benchmark_reads_its_published_layout(name: str, tmp_path: Path) -> None:
    items = load_data(name, data_dir=write(tmp_path, ROWS[name]))
    benchmark = BENCHMARKS.load(name)
    assert items.task == benchmark.task
    assert len({item.id for item in items}) == len(items)
    assert items.origin["address"] == benchmark.address
    assert items.origin["data_dir"] == str(tmp_path)
    assert "revision" not in items.origin  # of a copy nobody told it
    assert items.origin["rows"] == sum(map(len, ROWS[name].values()))
    assert items.origin["licence"] == benchmark.licence


@pytest.mark.parametrize(("name", "field"), NEEDED)
def test_a_renamed_field_is_reported_with_id_and_revision(
    name: str, field: str, tmp_path: Path
) -> None:
    folder = write(tmp_path, {file: renamed(rows, field) for file, rows in ROWS[name].items()})
    with pytest.raises(ItemError) as refused:
        load_data(name, data_dir=folder, on_bad_item="skip")
    benchmark = BENCHMARKS.load(name)
    for part in (name, benchmark.repository, benchmark.revision, repr(field), f"{field} (new)"):
        assert part in str(refused.value)


def renamed(rows: Rows, field: str) -> Rows:
    return [{f"{k} (new)" if k == field else k: v for k, v in row.items()} for row in rows]


@pytest.mark.parametrize("name", sorted(ROWS))
def test_an_empty_folder_is_told_which_file_to_put_there(name: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS.load(name)
    with pytest.raises(UsageError) as refused:
        load_data(name, data_dir=tmp_path)
    for part in (name, benchmark.repository, benchmark.revision, benchmark.address):
        assert part in str(refused.value)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_benchmark_says_what_it_is(name: str) -> None:
    benchmark: Any = BENCHMARKS.load(name)
    assert benchmark.title.endswith(".")
    assert benchmark.licence
    assert benchmark.paper.count(".") == 1
    assert set(benchmark.default) <= set(benchmark.files)
    assert benchmark.is_pinned or benchmark.revision == "main"
    if benchmark.hub == "github":
        assert not any("*" in path for path, *_ in benchmark.files.values())


def test_a_bad_row_stops_with_its_place_or_is_counted(tmp_path: Path) -> None:
    rows = [chosen_row(answer) for answer in (0, 9, 2)]
    folder = write(tmp_path, {"all/test-00000-of-00001.parquet": rows})
    with pytest.raises(ItemError, match=rf"mmlu: {folder}: .*row 1: answer: 9"):
        load_data("mmlu", data_dir=folder)
    items = load_data("mmlu", data_dir=folder, on_bad_item="skip")
    assert [item.id for item in items] == ["mmlu-0", "mmlu-2"]
    assert [(line.line, line.field) for line in items.bad_lines] == [(1, "answer")]


def chosen_row(answer: int) -> Any:
    return {"question": "Q", "subject": "s", "choices": ["a", "b", "c", "d"], "answer": answer}


def test_a_value_of_another_type_is_a_bad_row(tmp_path: Path) -> None:
    rows = [{**chosen_row(0), "choices": "abcd"}]
    folder = write(tmp_path, {"test-0.jsonl": rows})
    with pytest.raises(ItemError, match=r"test-0.jsonl, row 0: choices: Expected `array`"):
        load_data("mmlu", data_dir=folder)


def test_invalid_parquet_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "test-0.parquet").write_bytes(b"no table")
    with pytest.raises(UnswayedError, match=r"cannot read .*test-0.parquet"):
        load_data("mmlu", data_dir=tmp_path)


def test_a_parquet_file_with_text_that_is_not_utf_8_is_told(tmp_path: Path) -> None:
    folder = write(tmp_path, ROWS["mmlu"])
    (file,) = folder.rglob("*.parquet")
    assert b"anatomy" in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(b"anatomy", b"\xff\xfe\xfdtomy"))
    with pytest.raises(UsageError, match=r"cannot read .*parquet: 'utf-8' codec"):
        load_data("mmlu", data_dir=tmp_path)
