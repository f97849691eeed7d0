"""Importers on records written for the tests: conventions of each format, and bad input."""

import gzip
import json
from pathlib import Path

import pytest
from foreign_files import OWN, judgebench, lines, read

from unswayed.base.errors import ItemError, UnknownNameError, UsageError
from unswayed.data.importers import IMPORTERS, import_files


def test_own_decisions_pass_through(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl.gz"
    records = json.dumps(OWN), "", json.dumps({**OWN, "item_id": "q2", "choice": "tie"}), ""
    path.write_bytes(gzip.compress("\n".join(records).encode()))
    made = import_files("auto", [path])
    assert [decision.choice for decision in made.decisions] == [0, "tie"]
    assert made.items == ()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (judgebench("A>B", "A>>B"), r"judgments\[1\]\.decision: 'A>>B' is not A>B"),
        (judgebench("A>B", "A>B", label="C"), "label: 'C' is not"),
        (judgebench("A>B", "A>B", judgments=[None] * 3), "judgments: expected 1 or 2, got 3"),
        (judgebench("A>B", "A>B", question=None), "question: Expected `str`, got `null`"),
        ({"pair_id": "p"}, "missing required field"),
        ([1], "expected an object, got list"),
    ],
)
def test_a_bad_record_is_reported_with_file_line_and_field(
    tmp_path: Path, record: object, message: str
) -> None:
    rows = judgebench("A>B", "A>B", pair_id="fine"), record
    with pytest.raises(ItemError, match=rf"x\.jsonl:2: .*{message}"):
        read("judgebench", tmp_path, *rows)
    made = read("judgebench", tmp_path, *rows, on_bad_item="skip")
    assert made.counts["bad records"] == 1
    assert [bad.line for bad in made.bad_records] == [2]
    assert len(made.decisions) == 2


def test_the_same_question_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    first = lines(tmp_path / "a.jsonl", judgebench("A>B", "A>B"))
    second = lines(tmp_path / "b.jsonl", judgebench("B>A", "A>B"))
    with pytest.raises(ItemError, match=r"b\.jsonl:1: item: 'p1' in order \[0, 1\].*a\.jsonl:1"):
        import_files("judgebench", [first, second])


def test_an_id_with_two_texts_is_refused(tmp_path: Path) -> None:
    records = [
        judgebench("A>B", "A>B"),
        judgebench("A>B", "A>B", question="another", judge_name="other"),
    ]
    with pytest.raises(ItemError, match=r"x\.jsonl:2: prompt: of item 'p1' is another one at"):
        read("judgebench", tmp_path, *records)


def test_unreadable_input_is_an_error(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n\n")
    with pytest.raises(ItemError, match="no decisions"):
        import_files("judgebench", [empty])
    broken = tmp_path / "broken.json"
    broken.write_text('[{"input": ')
    with pytest.raises(ItemError, match=r"broken\.json: not a valid JSON array"):
        import_files("llmbar", [broken])
    with pytest.raises(UsageError, match="cannot read"):
        import_files("llmbar", [tmp_path / "absent.json"])
    with pytest.raises(UsageError, match="no files"):
        import_files("llmbar", [])


def test_an_unknown_kind_or_format_says_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'judgebench'"):
        read("judgebnch", tmp_path, {"foo": 1, "bar": 2})
    with pytest.raises(UsageError, match=r"unknown format; the fields are bar, foo.*--map"):
        read("auto", tmp_path, {"foo": 1, "bar": 2})


@pytest.mark.parametrize("name", sorted(IMPORTERS))
def test_every_importer_claims_only_its_own_format(name: str) -> None:
    importer = IMPORTERS.load(name)
    assert importer.title.endswith(".")
    assert not importer.detects({"foo": 1})


def test_a_record_of_many_fields_is_told_by_some_of_them(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"field_000, .* and 688 more\. Name one of") as raised:
        read("auto", tmp_path, {f"field_{k:03}": k for k in range(700)})
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("head", [b"PK\x03\x04\x14\x00", b"\x80\x04\x95\x00\x00", b"\xff\xfe{\x00"])
def test_binary_file_is_rejected(tmp_path: Path, head: bytes) -> None:
    file = tmp_path / "judgments.xlsx"
    file.write_bytes(head + b"\nmore\n")
    with pytest.raises(
        UsageError, match=r"judgments\.xlsx: not UTF-8 text.* export a spreadsheet as .*\.csv"
    ):
        import_files("auto", [file])
