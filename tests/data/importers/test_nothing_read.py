"""An import that reads nothing, or not one answer, fails and says what it counted."""

from collections.abc import Callable
from pathlib import Path

import pytest
from foreign_files import (
    JUDGMENT,
    OWN,
    array,
    grpo_file,
    grpo_result,
    inspect_sample,
    inspect_zip,
    lines,
    lm_sample,
    mt_row,
)

from unswayed.base.errors import ItemError
from unswayed.data.importers import import_files, parse_map, read_decisions_file

PAIR = {"question_id": 1, "model_1": "a", "model_2": "b", "turn": 1}
JUDGED = {"pair_id": "p", "question": "q", "response_A": "a", "response_B": "b", "label": "A>B"}


NOTHING: dict[str, tuple[str, str, Callable[[Path], Path]]] = {
    "every call failed": (
        "fastchat",
        r"1 no verdict was recorded; 2 calls that failed \(\$ERROR\$\), left out",
        lambda at: lines(
            at / "f.jsonl",
            {f"g{k}_{part}": "$ERROR$" for k in (1, 2) for part in ("winner", "judgment")} | PAIR,
        ),
    ),
    "judgments are null": (
        "judgebench",
        r"1 no verdict was recorded; 2 calls that failed \(null\), left out",
        lambda at: lines(at / "j.jsonl", {**JUDGED, "judgments": [None, None]}),
    ),
    "no multiple choice, and not scored": (
        "inspect",
        "2 a sample without choices: no multiple choice; 1 a sample that was not scored",
        lambda at: inspect_zip(
            at / "log.eval",
            *(inspect_sample(k, choices=None) for k in (1, 2)),
            inspect_sample(3, scores=None),
        ),
    ),
    "an empty list": ("llmbar", "0 records", lambda at: array(at / "result.json")),
}
"""By what is wrong: the importer, the reasons, and what writes the file."""


@pytest.mark.parametrize("name", NOTHING)
def test_import_without_decisions_names_counted_reasons(name: str, tmp_path: Path) -> None:
    kind, reasons, written = NOTHING[name]
    with pytest.raises(ItemError, match=rf"no decisions \({reasons}\)\.$"):
        import_files(kind, [written(tmp_path)])


def test_bad_records_are_counted_and_first_is_shown(tmp_path: Path) -> None:
    log = lines(tmp_path / "x.jsonl", {"pair_id": 1}, {"pair_id": 2})
    with pytest.raises(ItemError, match=r"\(2 bad records left out, the first: .*x\.jsonl:1: "):
        import_files("judgebench", [log], on_bad_item="skip")


def test_failed_judgment_is_counted_and_other_is_kept(tmp_path: Path) -> None:
    log = lines(tmp_path / "x.jsonl", {**JUDGED, "judgments": [JUDGMENT, None]})
    made = import_files("judgebench", [log])
    assert made.counts["calls that failed (null), left out"] == len(made.decisions) == 1


UNREAD: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "fastchat-table": (
        "none of the 1 answers could be read .1 order not recorded",
        lambda at: lines(at / "t.jsonl", mt_row(winner="error")),
    ),
    "jsonl": (
        "none of the 1 answers could be read .1 records.*They begin with 'I cannot'",
        lambda at: lines(at / "d.jsonl", {**OWN, "choice": None, "text": "I cannot"}),
    ),
    "lm-eval": (
        "none of the 1 answers could be read .1 answers that are no letter, unparsed",
        lambda at: lines(
            at / "samples_mmlu_2026-01-02T03-04-05.678.jsonl",
            lm_sample(arguments=[["ctx", {}]], filtered_resps=["the first"]),
        ),
    ),
    "pa-grpo-results": (
        "They begin with '<think></think>'. Name another format",
        lambda at: grpo_file(at / "r_results.json", grpo_result(None)),
    ),
}
"""By importer: what is said, and what writes a file of which no answer can be read."""


@pytest.mark.parametrize("kind", UNREAD)
def test_file_without_readable_answer_is_error(kind: str, tmp_path: Path) -> None:
    said, written = UNREAD[kind]
    with pytest.raises(ItemError, match=said):
        import_files("auto", [written(tmp_path)])


def test_empty_decisions_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text("\n")
    with pytest.raises(ItemError, match=r"no decisions \(the file has no lines\)\."):
        read_decisions_file(tmp_path / "d.jsonl")


ENDED = "id=id,text=r,finish_reason=w"


def test_replies_unread_for_their_finish_reason_are_counted(tmp_path: Path) -> None:
    rows = [{"id": "1", "r": "B", "w": word} for word in ("finished", "done")]
    log = lines(tmp_path / "x.jsonl", *rows[:1], {"id": "2", "r": "B", "w": "stop"})
    counts = import_files("jsonl", [log], fields=parse_map(ENDED)).counts
    assert counts["unparsed for finish reason finished"] == counts["unparsed"] == 1
    log = lines(tmp_path / "y.jsonl", *({**row, "id": row["w"]} for row in rows))
    with pytest.raises(ItemError) as caught:
        import_files("jsonl", [log], fields=parse_map(ENDED))
    assert "1 unparsed for finish reason finished; 1 unparsed for finish reason done" in str(
        caught.value
    )
    assert "docs/reference/formats.md#finish-reasons" in str(caught.value)
    assert "labels=" not in str(caught.value)
