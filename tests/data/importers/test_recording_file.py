"""A decisions file read as columns: the same decisions, faults and sentences as read one by one."""

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

import needs
from plain_decisions import read_plainly
from random_decisions import random_file
from unswayed.auditing.export import export_decisions
from unswayed.base.errors import ItemError, ShapeError, UsageError
from unswayed.data.importers import (
    items_from_decisions,
    read_recording,
    recorded_lines,
    write_decisions,
)
from unswayed.model.decisions import Decision, Recording


def decisions_of(recording: Recording) -> list[Decision]:
    return list(recording.decisions(np.arange(len(recording))))


def outcome(read: object, *args: object) -> object:
    """What a reader gives, or the error that it ends with."""
    try:
        given = read(*args)  # type: ignore[operator]
    except (ItemError, UsageError) as error:
        return type(error), str(error)
    if isinstance(given, Recording):
        return tuple(decisions_of(given)), given.bad_lines
    return given


@pytest.mark.parametrize("seed", range(30))
def test_both_readers_agree_about_any_file(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_lines, "AT_ONCE", 700)  # a few lines at a time
    path = tmp_path / "d.jsonl"
    bad = (0.0, 0.02, 0.3)[seed % 3]
    path.write_bytes(random_file(seed, size=40 + 3 * seed, bad=bad, criteria=seed % 5 == 4))
    for on_bad_item in ("skip", "stop"):
        expected = outcome(read_plainly, path, on_bad_item)
        assert outcome(read_recording, path, on_bad_item) == expected


def test_good_files_repeat_nothing_and_are_taken_quickly(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    written = [decision(f"q{k}", text="A") for k in range(3000)]
    write_decisions(path, written)
    recording = read_recording(path)
    assert decisions_of(recording) == written
    assert len(recording.kinds) == 1
    assert recording.kinds[0] == msgspec.structs.replace(
        written[0], item_id="", choice=None, probs=None, text=None
    )


def decision(name: str = "q", order: tuple[int, ...] = (0, 1), **fields: object) -> Decision:
    letters = tuple("ABCD"[: len(order)])
    given = {"choice": 0, "probs": (0.75, 0.25), **fields}
    return Decision(item_id=name, order=order, labels=letters, label_set=letters, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["sample", "input_tokens", "output_tokens"])
@pytest.mark.parametrize("count", [-1, 2**53])
def test_invalid_count_is_rejected_by_both_readers(field: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    write_decisions(path, [decision("a"), decision("b", **{field: count})])
    for read in (read_plainly, read_recording):
        with pytest.raises(
            ItemError, match=f"d.jsonl:2: decision: b: sample or tokens: {count} is"
        ):
            read(path)
    write_decisions(path, [decision("a", **{field: 2**53 - 1}), decision("b")])
    assert decisions_of(read_recording(path)) == list(read_plainly(path)[0])


@pytest.mark.parametrize("seed", range(3))
def test_compressed_piped_and_parquet_files_are_the_same(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "d.jsonl"
    plain.write_bytes(random_file(seed))
    expected, _ = read_plainly(plain, "skip")
    packed, table = tmp_path / "d.jsonl.gz", tmp_path / "d.parquet"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    export_decisions(expected, table, "parquet")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(plain.read_bytes())))
    for path in (packed, Path("-")):
        assert decisions_of(read_recording(path, "skip")) == list(expected)
    assert decisions_of(read_recording(table)) == list(expected)
    for path in (packed, table):
        shouted = path.rename(tmp_path / path.name.upper())
        assert decisions_of(read_recording(shouted, "skip")) == list(expected)


def test_invalid_parquet_table_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    path.write_bytes(b"item_id,order\n")
    with pytest.raises(UsageError, match=r"cannot read .*d\.parquet"):
        read_recording(path)


def test_parquet_says_which_row_is_bad(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    export_decisions([decision("a"), decision("b", choice=5)], path, "parquet")
    with pytest.raises(ItemError, match=r"d\.parquet:2: decision: b: choice: 5 is out of range"):
        read_recording(path)


def test_a_replaced_file_stays_readable_and_a_cut_one_fails(
    tmp_path: Path,
) -> None:
    path = tmp_path / "d.jsonl"
    write_decisions(path, [decision("a"), decision("b")])
    recording = read_recording(path)
    write_decisions(path, [decision("c")])
    assert [own.item_id for own in decisions_of(recording)] == ["a", "b"]
    recording = read_recording(path)
    path.write_bytes(b"{")
    with pytest.raises(UsageError, match="has changed since it was read"):
        decisions_of(recording)


def test_an_overwritten_file_is_an_error_and_a_growing_one_not(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    write_decisions(path, [decision("a"), decision("b")])
    recording = read_recording(path)
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(b"{}\n")
    assert [own.item_id for own in decisions_of(recording)] == ["a", "b"]
    path.write_bytes(whole)
    recording = read_recording(path)
    with path.open("r+b") as file:  # the same size, the lines in another order
        file.write(b"".join(reversed(whole.splitlines(keepends=True))))
    os.utime(path, ns=(0, 0))
    with pytest.raises(UsageError, match="has changed since it was read"):
        decisions_of(recording)


def test_a_longer_text_in_the_place_of_another_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    write_decisions(path, [decision("a"), decision("b")])
    recording = read_recording(path)
    longer = tmp_path / "longer.jsonl"
    write_decisions(longer, [decision("c"), decision("d"), decision("e")])
    path.write_bytes(longer.read_bytes())  # every line lies where one lay before
    os.utime(path, ns=(0, 0))
    with pytest.raises(UsageError, match="has changed since it was read"):
        decisions_of(recording)


@needs.posix
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_processes_that_are_forked_read_the_same_decisions(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    write_decisions(path, [decision(f"item {number}") for number in range(300)])
    recording = read_recording(path)
    own = decisions_of(recording)
    child = os.fork()
    if child == 0:
        try:
            os._exit(int(any(decisions_of(recording) != own for _ in range(40))))
        except BaseException:
            os._exit(2)
    read = [decisions_of(recording) == own for _ in range(40)]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert all(read)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("choice", "9" * 5000, "x.parquet:2: choice: "),
        ("flags", "{no", "x.parquet:2: flags: Expected `object | null`"),
        ("model", np.datetime64(1, "ns"), None),
        ("model", b"\xff", "cannot read .*x.parquet"),
    ],
)
def test_odd_cells_of_parquet_raise_no_traceback(
    column: str, value: object, said: str | None, tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "x.parquet"
    export_decisions([decision("a", choice=0), decision("b", choice=0)], path, "parquet")
    table = pq.read_table(path)
    name = table.column_names.index(column)
    if isinstance(value, bytes):
        bytes_ = pa.py_buffer(value * 2)
        ends = pa.py_buffer(np.arange(3, dtype=np.int32).tobytes())
        cells = pa.StringArray.from_buffers(2, ends, bytes_)
    else:
        first = None if column == "flags" else "0" if column == "choice" else value
        cells = pa.array([first, value])
    pq.write_table(table.set_column(name, column, cells), path)
    if said is None:
        assert len(read_recording(path)) == 2
    else:
        with pytest.raises((ItemError, UsageError), match=said):
            read_recording(path)


def test_a_candidate_that_no_column_can_hold_is_an_error(tmp_path: Path) -> None:
    n, path = 32_769, tmp_path / "d.jsonl"
    labels = tuple(f"l{place}" for place in range(n))
    own = msgspec.structs.replace(
        decision("a"), order=tuple(range(n)), labels=labels, label_set=labels, probs=None
    )
    for choice in (n - 2, n - 1):
        write_decisions(path, [msgspec.structs.replace(own, choice=choice)])
        if choice < 32_768:
            assert read_recording(path).choices.tolist() == [choice]
        else:
            with pytest.raises(ShapeError, match="a choice is 32,768"):
                read_recording(path)


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    whole = gzip.compress(b"\n".join(msgspec.json.encode(decision(f"{k}")) for k in range(99)))
    (tmp_path / "d.jsonl.gz").write_bytes(whole[:-40])
    with pytest.raises(UsageError, match="cannot read"):
        read_recording(tmp_path / "d.jsonl.gz")
    with pytest.raises(UsageError, match="cannot read"):
        read_recording(tmp_path / "absent.jsonl")


def test_nothing_good_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(b"{}\n\n")
    for read in (read_plainly, read_recording):
        with pytest.raises(
            ItemError,
            match=r"no decisions \(1 bad lines left out, the first: .*d\.jsonl:1: decision: ",
        ):
            read(path, "skip")


@pytest.mark.parametrize("seed", range(8))
def test_items_are_made_of_columns_as_of_decisions(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(random_file(seed, size=30, criteria=seed % 4 == 3))
    decisions, _ = read_plainly(path, "skip")
    items = items_from_decisions(read_recording(path, "skip"))
    assert items == items_from_decisions(decisions)
    assert [item.id for item in items] == list(dict.fromkeys(own.item_id for own in decisions))
    by_id = {own.item_id: own for own in decisions}  # the last
    assert [item.criterion for item in items] == [by_id[item.id].criterion for item in items]


@needs.posix
def test_a_full_disk_is_told_once(tmp_path: Path) -> None:
    """For what is copied as it is read: decisions that are compressed, and items in a file."""
    records = [msgspec.json.encode(decision(f"{k}")) for k in range(200)]
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(b"\n".join(records)))
    script = """
import resource, sys
from unswayed.base.errors import UsageError
from unswayed.data.importers.recording_file import read_recording
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    read_recording("d.jsonl.gz")
except UsageError as error:
    print(error)
"""
    ended = subprocess.run(
        [sys.executable, "-B", "-c", script],  # no truncated module stays for others
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr == ""
    assert ended.stdout.count("temporary file: File too large. Set TMPDIR to a directory") == 1
