"""An import that reads nothing, or not one answer, fails and says what it counted."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from foreign_files import (
    OWN,
    fastchat,
    grpo_result,
    inspect_sample,
    judgebench,
    lm_sample,
    mt_row,
    read,
)

from unswayed.base.errors import ItemError
from unswayed.data.importers import parse_map, read_decisions_file

ERRORS = {"g1_judgment": "$ERROR$", "g2_judgment": "$ERROR$"}


@pytest.mark.parametrize(
    ("kind", "records", "reasons"),
    [
        (
            "fastchat",
            [fastchat("$ERROR$", "$ERROR$", **ERRORS)],
            r"1 no verdict was recorded; 2 calls that failed \(\$ERROR\$\), left out",
        ),
        (
            "judgebench",
            [judgebench(None, judgments=[None, None])],
            r"1 no verdict was recorded; 2 calls that failed \(null\), left out",
        ),
        (
            "inspect",
            [*(inspect_sample(k, choices=None) for k in (1, 2)), inspect_sample(3, scores=None)],
            "2 a sample without choices: no multiple choice; 1 a sample that was not scored",
        ),
        ("llmbar", [], "0 records"),
    ],
)
def test_import_without_decisions_names_counted_reasons(
    kind: str, records: list[object], reasons: str, tmp_path: Path
) -> None:
    with pytest.raises(ItemError, match=rf"no decisions \({reasons}\)\. Name files"):
        read(kind, tmp_path, *records)


def test_bad_records_are_counted_and_first_is_shown(tmp_path: Path) -> None:
    with pytest.raises(ItemError, match=r"\(2 bad records left out, the first: .*x\.jsonl:1: "):
        read("judgebench", tmp_path, {"pair_id": 1}, {"pair_id": 2}, on_bad_item="skip")


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            mt_row(winner="error"),
            "none of the 1 values of 'winner' could be read .1 order not recorded.*They begin with 'error'",
        ),
        (
            {**OWN, "choice": None, "text": "I cannot"},
            "none of the 1 values of 'choice' could be read .1 record.*They begin with 'I cannot'",
        ),
        (
            lm_sample(arguments=[["ctx", {}]], filtered_resps=["the first"]),
            "none of the 1 values of 'filtered_resps' could be read .1 answers that are not a letter, unparsed",
        ),
        (grpo_result(None), "They begin with '<think></think>'. Name another format"),
    ],
)
def test_file_without_readable_answer_is_error(record: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(ItemError, match=said):
        read("auto", tmp_path, record)


@pytest.mark.parametrize(("kind", "sample"), [("inspect", inspect_sample), ("lm-eval", lm_sample)])
def test_file_without_readable_gold_is_error(
    kind: str, sample: Callable[..., object], tmp_path: Path
) -> None:
    said = (
        "none of the 5 values of 'target' could be read (5 records). They begin with "
        "'text 0', 'text 1', 'text 2'. Correct or remove this field."
    )
    with pytest.raises(ItemError, match=re.escape(said)):
        read(kind, tmp_path, *(sample(k, target=f"text {k}") for k in range(5)))


MAPPED = {
    "verdict": ("verdict=w", "verdict=w", "Fix labels= or tie= in --map"),
    "text": ("text=w", "text=w", "Fix labels= or tie= in --map"),
    "ranking": ("ranking=w,verdict=v", "ranking=w", "Fix labels= or ranking= in --map"),
    "ranking alone": ("ranking=w", "ranking=w", "Fix labels= or ranking= in --map"),
    "scores": ("scores=s,verdict=v", "scores=s", "Fix labels= or scores= in --map"),
    "scores alone": ("scores=s", "scores=s", "Fix labels= or scores= in --map"),
}
"""By part: the map, and what is said of a field whose values cannot be read."""


@pytest.mark.parametrize("part", MAPPED)
def test_mapped_field_that_reads_nowhere_is_error(part: str, tmp_path: Path) -> None:
    text, field, remedy = MAPPED[part]
    rows = [{"id": k, "v": "A", "w": f"x > {k}", "s": {"x": 1, "y": k}} for k in range(5)]
    values = [str(row[field.partition("=")[2]]) for row in rows[:3]]
    said = f"none of the 5 values of '{field}' could be read (5 records). They begin with "
    with pytest.raises(ItemError) as caught:
        read("jsonl", tmp_path, *rows, fields=parse_map(f"id=id,{text}"))
    assert f"{said}{', '.join(map(repr, values))}. " in str(caught.value)
    assert str(caught.value).endswith(f"{remedy}.")


def test_path_without_values_is_error(tmp_path: Path) -> None:
    log = {"id": 1, "v": "A", "r": {"t": "A"}, "model": None}
    message = "no record has a value at 'r.x', which --map gives as text."
    with pytest.raises(ItemError, match=re.escape(message)):
        read("jsonl", tmp_path, log, fields=parse_map("id=id,verdict=v,text=r.x"))
    made = read("jsonl", tmp_path, log, fields=parse_map("id=id,verdict=v,model=model"))
    assert made.decisions[0].model is None  # a column without values


def test_many_unparsed_answers_give_warning(tmp_path: Path) -> None:
    words = ["A", "B", "tie", "both", "both", "none"]
    rows = [{"id": k, "v": word, "t": "why"} for k, word in enumerate(words)]
    fields = parse_map("id=id,verdict=v,text=t")
    made = read("jsonl", tmp_path, *rows, fields=fields)
    assert made.warning == (
        "3 of 6 answers (50%) are unparsed. "
        "The most frequent unparsed value of 'verdict=v' is 'both' (2 times)."
    )
    fewer = read("jsonl", tmp_path, *rows[:4], {"id": 9, "v": "A"}, fields=fields)
    assert fewer.warning == ""  # exactly 20%


def test_empty_decisions_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text("\n")
    with pytest.raises(ItemError, match=r"no decisions \(the file has no lines\)\."):
        read_decisions_file(tmp_path / "d.jsonl")


def test_replies_unread_for_their_finish_reason_are_counted(tmp_path: Path) -> None:
    rows = [{"id": "1", "r": "B", "w": word} for word in ("finished", "done")]
    fields = parse_map("id=id,text=r,finish_reason=w")
    stopped = {"id": "2", "r": "B", "w": "stop"}
    counts = read("jsonl", tmp_path, rows[0], stopped, fields=fields).counts
    assert counts["unparsed for finish reason finished"] == counts["unparsed"] == 1
    with pytest.raises(ItemError) as caught:
        read("jsonl", tmp_path, *({**row, "id": row["w"]} for row in rows), fields=fields)
    said = str(caught.value)
    assert "1 unparsed for finish reason finished; 1 unparsed for finish reason done" in said
    assert "docs/reference/formats.md#finish-reasons" in said
    assert "labels=" not in said
