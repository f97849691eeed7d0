"""What is read is bounded: lines, rows, arrays, what compressed files expand to, and columns."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from unswayed.base.errors import ItemError, UsageError
from unswayed.data.importers import import_files, read_decisions_file, read_recording
from unswayed.data.importers.reading import records_of
from unswayed.model.items import iter_lines, load_items, loading, tables
from unswayed.model.items import lines as files

LIMIT = 1000
Reader = Callable[[Path], object]


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """Of a line and a row, in place of 64 MB."""
    monkeypatch.setattr(files, "LARGEST", LIMIT)
    monkeypatch.setattr(tables, "LARGEST", LIMIT)
    monkeypatch.setattr(files, "AT_ONCE", 128)
    return LIMIT


def item(number: int, size: int) -> bytes:
    """A line of so many bytes, without its newline."""
    line = json.dumps({"id": f"q{number}", "prompt": "", "candidates": ["a", "b"]}).encode()
    return line.replace(b'""', b'"' + b"p" * (size - len(line)) + b'"')


def written(path: Path, *lines: bytes) -> Path:
    text = b"\n".join(lines)
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def imported(path: Path) -> object:
    return import_files("auto", [path])


@pytest.mark.parametrize("name", ["f.jsonl", "f.jsonl.gz", "-"])
@pytest.mark.parametrize("before", range(0, 300, 74))
def test_line_at_limit_is_read_and_one_byte_more_is_not(
    name: str, before: int, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(size: int) -> list[str]:
        path = written(tmp_path / name, b" " * before, item(1, size), item(2, 200))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        return [one.id for one in load_items("-" if name == "-" else path)]

    assert load(limit) == ["q1", "q2"]
    longer = r"(-|gz|jsonl):2: the line is longer than 0.001 MB\. Split"
    with pytest.raises(UsageError, match=longer):
        load(limit + 1)


@pytest.mark.parametrize("read", [load_items, read_recording, read_decisions_file, imported, list])
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".csv", ".tsv.gz", ".json"])
def test_every_reader_refuses_long_line(
    read: Reader, suffix: str, limit: int, tmp_path: Path
) -> None:
    path = written(tmp_path / f"f{suffix}", b"\n", b'{"id": "' + b"x" * 5000 + b'"}')
    with pytest.raises(UsageError, match=r":3: the line is longer than 0.001 MB"):
        list(iter_lines(path)) if read is list else read(path)


@pytest.mark.parametrize(
    ("begins", "remedy"),
    [
        (b'\xef\xbb\xbf\n [{"id": "', r"MB\. Write one record per line, with: jq -c '\.\[\]'$"),
        (b'{"id": "', r"MB\. Split it, or leave it out\.$"),
        (b"id,prompt\nx,", r"MB\. Split it, or leave it out\.$"),
        (b'{\n"a": "', r"Split the record into several\.$"),
        (b'[\n"', r"jq -c '\.\[\]'$"),
    ],
)
def test_the_remedy_for_a_long_text_is_that_of_its_kind(
    begins: bytes, remedy: str, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last two are JSON over several lines, which have a limit of their own."""
    (tmp_path / "f.json").write_bytes(begins + b"x" * 5000)
    if begins.endswith((b'"a": "', b'[\n"')):
        monkeypatch.setattr(files, "LARGEST", 10_000)
        monkeypatch.setattr(files, "LARGEST_ARRAY", limit)
    with pytest.raises(UsageError, match=remedy):
        list(records_of(str(tmp_path / "f.json")))


def test_endless_line_is_refused_before_it_fills_memory(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl.gz"
    path.write_bytes(gzip.compress(b"x" * 10_000_000) * 100)  # 1 GB
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=r"f\.jsonl\.gz:1: the line is longer than 64 MB"):
            load_items(path)
        assert tracemalloc.get_traced_memory()[1] < 250_000_000
    finally:
        tracemalloc.stop()


def test_count_of_bad_lines_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MOST_BAD", 3)
    path = written(tmp_path / "f.jsonl", *[b"x"] * 2)
    with pytest.raises(ItemError, match=r"f\.jsonl: 2 bad lines"):
        load_items(path)
    written(path, *[b"x"] * 9)
    with pytest.raises(ItemError, match=r"f\.jsonl: at least 3 bad lines"):
        load_items(path)
    written(path, *[b"x"] * 9, item(1, 80))
    assert len(load_items(path, on_bad_item="skip")) == 1


@pytest.mark.parametrize("read", [load_items, imported])
def test_array_over_many_lines_has_limit(
    read: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "f.json", b"[", item(1, 80) + b",", item(2, 80), b"]")
    monkeypatch.setattr(files, "LARGEST_ARRAY", 170)
    assert len(load_items(path)) == 2
    monkeypatch.setattr(files, "LARGEST_ARRAY", 160)
    with pytest.raises(UsageError, match=r"f\.json:3: the JSON text is larger .* with: jq"):
        read(path)


def test_object_over_many_lines_has_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST_ARRAY", 100)
    path = written(tmp_path / "f.json", b"{", b'"a":' + b" " * 60 + b"1,", *[b'"b": 2,'] * 9, b"}")
    with pytest.raises(UsageError, match=r"f\.json:6: the JSON text is larger"):
        imported(path)


def test_row_over_many_lines_has_limit(limit: int, tmp_path: Path) -> None:
    head, row = b"id,prompt,a,b", b'q1,"' + b"line\n" * 100 + b'",x,y'
    path = written(tmp_path / "f.csv", head, row, row.replace(b"q1", b"q2"))
    assert [len(one.prompt) for one in load_items(path)] == [500, 500]
    for begun, more in ((b'q3,"', b"line"), (b'q3,"a', b'","b')):  # one cell, many cells
        written(path, head, row, begun, *[more] * 600)
        with pytest.raises(ItemError, match=r"f\.csv: line 103: begins a row longer than 0.001 MB"):
            load_items(path, on_bad_item="skip")


def test_many_columns_are_found_in_linear_time(tmp_path: Path) -> None:
    """In a process that can be ended: a look through all names for each of them takes minutes."""
    paths = []
    for names, pair in (("meta.c{}", ",a,b"), ("candidate_{}", "")):
        columns = ",".join(names.format(number) for number in range(60_000))
        row = b"q1,p" + b",x" * (pair.count(",") + 60_000)
        head = f"id,prompt{pair},{columns}".encode()
        paths.append(str(written(tmp_path / f"{len(paths)}.csv", head, row)))
    code = (
        f"from unswayed.model.items import load_items\nprint(*map(len, map(load_items, {paths})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("1 1\n", "")


@pytest.mark.parametrize("read", [load_items, read_recording, imported])
def test_gzip_bomb_is_refused(
    read: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In lines that are blank and so no error of their own; the real rule has room for 256 MB."""
    assert (files.FREE, files.RATIO) == (256_000_000, 500)
    monkeypatch.setattr(files, "FREE", 25_600_000)
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress((b" " * 499_999 + b"\n") * 40) * 10)
    with pytest.raises(UsageError, match=r"gz:5\d: the file expands more than 500 times .*gunzip"):
        read(path)


def test_small_or_piped_gzip_may_expand_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b" " * 3_000_000 + b"\n" + item(1, 80)
    path = written(tmp_path / "f.jsonl.gz", content)
    assert len(load_items(path)) == 1
    monkeypatch.setattr(files, "FREE", 2_000_000)
    with pytest.raises(UsageError, match="expands more than 500 times"):
        load_items(path)
    sound = b"\n".join(item(number, 80 + number % 400) for number in range(20_000))
    assert len(load_items(written(path, sound))) == 20_000


def parquet(path: Path, **columns: list[str]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)  # one text for all rows is in the file once
    return path


def test_parquet_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 3000
    ids = [f"q{number}" for number in range(count)]
    prompts, first, second = (["p" * 1000] * count, ["x"] * count, ["y"] * count)
    path = parquet(tmp_path / "f.parquet", id=ids, prompt=prompts, a=first, b=second)
    assert len(load_items(path)) == count
    monkeypatch.setattr(files, "FREE", 1_000_000)
    monkeypatch.setattr(files, "RATIO", 20)
    for read in (load_items, read_recording):
        with pytest.raises(UsageError, match=r"f\.parquet: its rows expand to more than 20 times"):
            read(path)


def test_parquet_batch_is_small_if_values_may_be_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parquet(tmp_path / "f.parquet", prompt=["p" * 100_000] * 200)
    sizes = []
    for most in (512_000_000, 3_000_000, 1000):
        monkeypatch.setattr(files, "LARGEST_ARRAY", most)
        with files.open_parquet(path) as table:
            sizes.append(len(next(files.batches_of(table, path))))
    assert sizes[0] == 200
    assert 16 < sizes[1] < 31
    assert sizes[2] == 16


def test_archive_bomb_of_many_members_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import zipfile

    path = tmp_path / "f.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(20):
            archive.writestr(f"samples/{number}_epoch_1.json", b" " * 100_000)
    monkeypatch.setattr(files, "FREE", 1_000_000)
    monkeypatch.setattr(files, "RATIO", 50)
    with pytest.raises(UsageError, match=r": its [\d,]+ bytes expand to 2,000,000"):
        imported(path)
