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
from unswayed.base.errors import ItemError, ShapeError, StoreError, UsageError
from unswayed.data.importers import (
    items_from_decisions,
    read_decisions_file,
    read_recording,
    recorded_lines,
    write_decisions,
)
from unswayed.metrics import measure, outcomes_from_decisions
from unswayed.model.decisions import Decision, Estimate, Recording, tie_rank
from unswayed.model.items import Task


def decision(name: str = "q", order: tuple[int, ...] = (0, 1), **fields: object) -> Decision:
    letters = tuple("ABCD"[: len(order)])
    given = {"choice": 0, "probs": (0.75, 0.25), **fields}
    return Decision(item_id=name, order=order, labels=letters, label_set=letters, **given)  # type: ignore[arg-type]


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


def encoded(**fields: object) -> bytes:
    return msgspec.json.encode({**msgspec.to_builtins(decision()), **fields})


def test_decisions_survive_a_round_trip(tmp_path: Path) -> None:
    made = [
        decision(probs=(0.25, 0.75), label_mass=0.9, text="é", cost_usd=0.01),
        decision(order=(1, 0), choice="tie"),
        decision("q2", order=(1, 2, 0), choice=None, probs=None, ranking=(2, 1, 0)),
    ]
    for name in ("d.jsonl", "d.jsonl.gz"):
        assert write_decisions(tmp_path / name, made) == 3
        assert list(read_decisions_file(tmp_path / name)) == made
    with gzip.open(tmp_path / "d.jsonl.gz") as file:
        assert file.read() == (tmp_path / "d.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{not json", "JSON: not valid JSON"),
        (b'{"item_id": "q"}', "missing required field `order`"),
        (encoded(order="01"), "order: Expected `array`, got `str`"),
        (encoded(order=[0, 0]), "order: .* is not a permutation"),
        (encoded(choice=2), r"choice: 2 is out of range \(0 to 1\)"),
        (encoded(choice="draw"), "choice"),
        (encoded(probs=[0.9, 0.9]), "probs: not probabilities"),
        (encoded(probs=[1.0]), "probs: 1 values for 2 candidates"),
        (encoded(labels=["A", "C"]), "labels"),
    ],
)
def test_a_bad_line_is_reported_with_its_number(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(encoded(item_id="fine") + b"\n\n" + line + b"\n")
    with pytest.raises(ItemError, match=rf"d\.jsonl:3: .*{message}"):
        read_decisions_file(path)
    kept = read_recording(path, "skip")
    assert kept.item_ids == ("fine",)
    assert [bad.line for bad in kept.bad_lines] == [3]


def test_a_question_answered_twice_is_refused_or_counted(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    others: list[dict[str, object]] = [{}, {"sample": 1}, {"model": "o"}, {"prompt_id": "debias"}]
    asked = [decision(choice=int(k > 0), **other) for k, other in enumerate(others)]
    write_decisions(path, [*asked, decision(choice=1)])
    said = r":5: item_id: q: the same question was answered on line 1"
    with pytest.raises(ItemError, match=said):
        read_decisions_file(path)
    assert [one.choice for one in read_decisions_file(path, "skip")] == [0, 1, 1, 1]
    assert len(read_recording(path, "skip").bad_lines) == 1


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


@pytest.mark.parametrize("name", ["d.parquet", "d.jsonl.gz", "absent.jsonl"])
def test_file_that_cannot_be_read_is_an_error(name: str, tmp_path: Path) -> None:
    lines = b"\n".join(msgspec.json.encode(decision(f"{k}")) for k in range(99))
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(lines)[:-40])
    (tmp_path / "d.parquet").write_bytes(b"item_id,order\n")
    with pytest.raises(UsageError, match=rf"cannot read .*{name}"):
        read_recording(tmp_path / name)


def test_parquet_says_which_row_is_bad(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    export_decisions([decision("a"), decision("b", choice=5)], path, "parquet")
    with pytest.raises(ItemError, match=r"d\.parquet:2: decision: b: choice: 5 is out of range"):
        read_recording(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of two decisions."""
    write_decisions(tmp_path / "d.jsonl", [decision("a"), decision("b")])
    return tmp_path / "d.jsonl"


def test_a_replaced_file_stays_readable_and_a_cut_one_fails(path: Path) -> None:
    recording = read_recording(path)
    write_decisions(path, [decision("c")])
    assert [own.item_id for own in decisions_of(recording)] == ["a", "b"]
    recording = read_recording(path)
    path.write_bytes(b"{")
    with pytest.raises(UsageError, match="has changed since it was read"):
        decisions_of(recording)


def test_an_overwritten_file_is_an_error_and_a_growing_one_not(path: Path) -> None:
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


def test_a_longer_text_in_the_place_of_another_is_an_error(path: Path) -> None:
    recording = read_recording(path)
    longer = path.with_name("longer.jsonl")
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


# written whole, and items without text


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot write"):
        write_decisions(tmp_path / "absent" / "d.jsonl", [decision()])
    target = tmp_path / "d.jsonl"
    target.mkdir()
    with pytest.raises(StoreError, match="cannot write"):
        write_decisions(target, [decision()])
    assert [path.name for path in tmp_path.iterdir()] == ["d.jsonl"]


def test_items_are_made_without_text_and_gold() -> None:
    made = items_from_decisions([decision("a"), decision("a", order=(1, 0)), decision("b")])
    assert [(item.id, item.n, item.task, item.gold) for item in made] == [
        ("a", 2, Task.PAIRWISE, None),
        ("b", 2, Task.PAIRWISE, None),
    ]
    assert sorted(tie_rank(made[0])) == [0, 1]  # ties fall back to the index


@pytest.mark.parametrize(
    ("order", "rated", "task"),
    [
        ((0, 1, 2), {}, Task.MCQ),
        ((1, 2, 3, 0), {}, Task.MCQ),
        ((0, 1, 2), {"scores": (1.0, None, 2.0)}, Task.LISTWISE),
        ((1, 2, 0), {"ranking": (0, 1, 2)}, Task.LISTWISE),
        ((0, 1), {"ranking": (1, 0)}, Task.LISTWISE),
        ((0, 1), {"scores": (1.0, 2.0)}, Task.PAIRWISE),  # a reward model's
    ],
)
def test_decisions_that_rank_or_score_several_are_listwise(
    order: tuple[int, ...], rated: dict[str, object], task: Task
) -> None:
    (item,) = items_from_decisions([decision(order=order, probs=None, **rated)])
    assert item.task is task


def test_an_item_has_one_number_of_candidates() -> None:
    with pytest.raises(ItemError, match="a: one decision has 2 candidates and another has 3"):
        items_from_decisions([decision("a"), decision("a", order=(0, 1, 2))])


def test_decisions_alone_can_be_measured() -> None:
    decisions = [decision("a"), decision("a", order=(1, 0)), decision("b", choice=1)]
    strata = outcomes_from_decisions(items_from_decisions(decisions), decisions)
    row = measure(strata, resamples=0)
    assert row["consistency"] == Estimate(value=1.0, n=1)
    assert row.incomplete == 1
    assert row["accuracy"].value is None


def test_label_sets_may_be_left_out_where_the_labels_suffice(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(
        '{"item_id": "q1", "order": [1, 0], "labels": ["A", "B"], "choice": 1}\n'
        '{"item_id": "q2", "order": [0, 1], "labels": ["X", "Y"], "choice": 0}\n'
    )
    with pytest.raises(ItemError, match=r"d\.jsonl:2: .*label_set: give it"):
        read_decisions_file(path)
    (decision,) = read_decisions_file(path, on_bad_item="skip")
    assert decision.label_set == ("A", "B")
