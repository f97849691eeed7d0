"""Reading items: what is accepted, and what is refused with which words."""

import contextlib
import gzip
import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.base.errors import ItemError, UnknownNameError, UsageError
from unswayed.model.items import (
    Item,
    ItemSet,
    Message,
    Task,
    blind,
    decode_item,
    encode_item,
    items_of,
    load_items,
    text_of,
)
from unswayed.sources import load_data

GOOD = {"id": "q1", "task": "pairwise", "prompt": "p", "candidates": ["a", "b"], "gold": 0}


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_items_load_from_lines_packed_lines_and_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = write(tmp_path / "pairs.jsonl", GOOD, {**GOOD, "id": "q2"})
    packed = tmp_path / "pairs.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(plain.read_bytes())))
    sets = [load_items(path) for path in (plain, packed, "-")]
    assert [item.id for item in sets[0]] == ["q1", "q2"]
    assert [items.name for items in sets] == ["pairs", "pairs", "stdin"]
    assert len({items.fingerprint for items in sets}) == 1


def test_windows_line_ends_bom_and_blank_lines_are_harmless(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n\r\n   \n")
    assert len(load_items(path)) == 1


def test_multi_turn_candidates_and_chat_prompts_are_kept() -> None:
    turns = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    item = decode_item(json.dumps({**GOOD, "prompt": turns, "candidates": [turns, "b"]}))
    assert item.candidates[0] == (Message("user", "q"), Message("assistant", "a"))
    assert text_of(item.candidates[0]) == "user: q\n\nassistant: a"


BAD = [
    ({**GOOD, "candidates": ["a"]}, "candidates: needs at least 2, got 1"),
    ({**GOOD, "candidates": ["a", "b", "c"]}, "pairwise needs exactly 2, got 3"),
    ({**GOOD, "gold": 2}, r"gold: 2 is out of range: there are 2 candidates \(0 to 1\)"),
    ({**GOOD, "gold": -1}, "gold: -1 is out of range"),
    ({**GOOD, "gold": True}, "gold"),
    ({**GOOD, "gold": 0.5}, "gold: 0.5 is not a candidate index"),
    ({**GOOD, "gold": "A"}, "gold: 'A' is not a candidate index"),
    ({**GOOD, "gold": []}, "gold: is an empty list"),
    ({**GOOD, "gold": [0, 0]}, "gold: .* repeats an index"),
    ({**GOOD, "id": ""}, "id: is empty"),
    ({**GOOD, "id": 7}, "id: Expected `str`, got `int`"),
    ({**GOOD, "task": "pair"}, r"task: there is no task 'pair' \(Did you mean 'pairwise'\?"),
    ({**GOOD, "task": "ranking"}, "Known: listwise, mcq, pairwise, rubric"),
    ({**GOOD, "criteria": ["style"]}, "criteria: are for task rubric; this item's is pairwise"),
    ({**GOOD, "golds": 1}, "golds"),
    ({key: GOOD[key] for key in ("id", "prompt")}, "candidates"),
]


@pytest.mark.parametrize(("row", "message"), BAD)
def test_a_bad_item_is_refused_with_file_line_field_and_reason(
    row: object, message: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "x.jsonl", {**GOOD, "id": "fine"}, row)
    with pytest.raises(ItemError, match=message) as caught:
        load_items(path)
    assert f"{path}:2:" in str(caught.value)


@pytest.mark.parametrize("line", ["{", "[7]", '"x"', "nonsense", '{"id": "\\ud800"}', "\x00"])
def test_garbage_lines_are_refused_never_crash(line: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(ItemError, match=r"x\.jsonl:1"):
        load_items(path)


@given(st.binary(max_size=200))
def test_any_bytes_give_items_or_a_clear_error(data: bytes) -> None:
    with contextlib.suppress(ItemError):
        decode_item(data)


def test_bad_lines_can_be_skipped_and_are_counted(tmp_path: Path) -> None:
    rows = [GOOD, GOOD, {**GOOD, "id": "q2", "gold": 5}, {**GOOD, "id": "q3"}]
    path = write(tmp_path / "x.jsonl", *rows)
    loaded = load_items(path, on_bad_item="skip")
    assert [item.id for item in loaded] == ["q1", "q3"]
    assert [(bad.line, bad.field) for bad in loaded.bad_lines] == [(2, "id"), (3, "gold")]
    with pytest.raises(ItemError, match="'q1' was used on line 1 already"):
        load_items(path)


def test_mixed_tasks_are_refused_with_counts_and_selectable(tmp_path: Path) -> None:
    rows = [GOOD, {**GOOD, "id": "m1", "task": "mcq"}, {**GOOD, "id": "m2", "task": "mcq"}]
    path = write(tmp_path / "x.jsonl", *rows)
    with pytest.raises(ItemError, match=r"2 mcq, 1 pairwise.*--task"):
        load_items(path)
    assert [item.id for item in load_items(path, task=Task.MCQ)] == ["m1", "m2"]


@pytest.mark.parametrize("task", ["pairwise", "mcq", "listwise"])
def test_values_of_any_task_are_one_per_candidate(task: str) -> None:
    with pytest.raises(ItemError, match="values: 1 for 2 candidates"):
        decode_item(json.dumps({**GOOD, "task": task, "values": [1]}))


@pytest.mark.parametrize("fields", [{"prompt": "\ud800"}, {"meta": {"x": object()}}])
def test_what_json_cannot_hold_is_refused_of_records_too(fields: dict[str, object]) -> None:
    with pytest.raises(ItemError, match="items:1: item: cannot be written as JSON"):
        items_of([{**GOOD, **fields}])


def test_an_unknown_task_is_named(tmp_path: Path) -> None:
    rubric = {**GOOD, "id": "r1", "task": "rubric", "gold": 3.5, "values": [1, 2], "response": "x"}
    path = write(tmp_path / "x.jsonl", GOOD, rubric)
    assert [item.id for item in load_items(path, task=Task.PAIRWISE)] == ["q1"]
    assert [item.id for item in load_items(path, task="rubric")] == ["r1"]
    with pytest.raises(ItemError, match="1 pairwise, 1 rubric"):
        load_items(path)
    with pytest.raises(UnknownNameError, match=r"unknown task 'rubrik'\. Did you mean 'rubric'"):
        load_data(path, task="rubrik")


def test_empty_missing_and_damaged_files_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    with pytest.raises(ItemError, match="no items"):
        load_items(empty)
    with pytest.raises(UsageError, match="cannot read"):
        load_items(tmp_path / "absent.jsonl")
    broken = tmp_path / "x.jsonl.gz"
    broken.write_bytes(gzip.compress(json.dumps(GOOD).encode() * 50)[:40])
    with pytest.raises(UsageError, match="cannot read"):
        load_items(broken)


def test_an_empty_selection_names_the_file_and_its_content(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", GOOD, {**GOOD, "id": "q2"})
    with pytest.raises(ItemError, match=r"x\.jsonl: no items of task mcq \(2 pairwise\)"):
        load_items(path, task=Task.MCQ)
    bad = write(tmp_path / "y.jsonl", {**GOOD, "gold": 9})
    with pytest.raises(ItemError, match=r"y\.jsonl: no items \(1 bad lines left out, the first: "):
        load_items(bad, on_bad_item="skip")


def test_a_blind_item_has_no_gold_and_is_otherwise_the_same() -> None:
    item = Item(id="x", prompt="p", candidates=("a", "b"), gold=1, meta={"k": 1})
    assert blind(item) == Item(id="x", prompt="p", candidates=("a", "b"), meta={"k": 1})
    assert blind(blind(item)) is not item


def test_items_survive_a_round_trip_and_are_told_apart() -> None:
    item = Item(
        id="x", prompt="p", candidates=("a", "b", "c"), task=Task.MCQ, gold=(0, 2), group="g"
    )
    assert decode_item(encode_item(item)) == item
    one = ItemSet.of([Item(id="x", prompt="p", candidates=("a", "b"))], name="one")
    other = ItemSet.of([Item(id="x", prompt="p", candidates=("a", "c"))], name="one")
    assert one.fingerprint != other.fingerprint
    assert one.fingerprint.startswith("sha256:")
