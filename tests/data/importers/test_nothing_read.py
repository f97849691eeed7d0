"""An import that reads nothing, or not one answer, fails and says what it counted."""

import re
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
        "none of the 1 values of 'winner' could be read .1 order not recorded.*They begin with 'error'",
        lambda at: lines(at / "t.jsonl", mt_row(winner="error")),
    ),
    "jsonl": (
        "none of the 1 values of 'choice' could be read .1 record.*They begin with 'I cannot'",
        lambda at: lines(at / "d.jsonl", {**OWN, "choice": None, "text": "I cannot"}),
    ),
    "lm-eval": (
        "none of the 1 values of 'filtered_resps' could be read .1 answers that are no letter, unparsed",
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


NO_GOLD: dict[str, Callable[[Path], Path]] = {
    "inspect": lambda at: inspect_zip(
        at / "log.eval", *(inspect_sample(k, target=f"text {k}") for k in range(5))
    ),
    "lm-eval": lambda at: lines(
        at / "samples.jsonl", *(lm_sample(k, target=f"text {k}") for k in range(5))
    ),
}
"""By importer: what writes a file whose answers can be read, but no target."""


@pytest.mark.parametrize("kind", NO_GOLD)
def test_file_without_readable_gold_is_error(kind: str, tmp_path: Path) -> None:
    said = (
        "none of the 5 values of 'target' could be read (5 records). They begin with "
        "'text 0', 'text 1', 'text 2'. Correct or remove this field."
    )
    with pytest.raises(ItemError, match=re.escape(said)):
        import_files("auto", [NO_GOLD[kind](tmp_path)])


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
        import_files(
            "jsonl", [lines(tmp_path / "x.jsonl", *rows)], fields=parse_map(f"id=id,{text}")
        )
    assert f"{said}{', '.join(map(repr, values))}. " in str(caught.value)
    assert str(caught.value).endswith(f"{remedy}.")


def test_path_without_values_is_error(tmp_path: Path) -> None:
    log = lines(tmp_path / "x.jsonl", {"id": 1, "v": "A", "r": {"t": "A"}, "model": None})
    message = "no record has a value at 'r.x', which --map gives as text."
    with pytest.raises(ItemError, match=re.escape(message)):
        import_files("jsonl", [log], fields=parse_map("id=id,verdict=v,text=r.x"))
    made = import_files("jsonl", [log], fields=parse_map("id=id,verdict=v,model=model"))
    assert made.decisions[0].model is None  # a column without values


def test_many_unparsed_answers_give_warning(tmp_path: Path) -> None:
    words = ["A", "B", "tie", "both", "both", "none"]
    rows = [{"id": k, "v": word, "t": "why"} for k, word in enumerate(words)]
    fields = parse_map("id=id,verdict=v,text=t")
    made = import_files("jsonl", [lines(tmp_path / "x.jsonl", *rows)], fields=fields)
    assert made.warning == (
        "3 of 6 answers (50%) are unparsed. "
        "The most frequent unread value of 'verdict=v' is 'both' (2 times)."
    )
    log = lines(tmp_path / "y.jsonl", *rows[:4], {"id": 9, "v": "A"})
    assert import_files("jsonl", [log], fields=fields).warning == ""  # exactly 20%


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


@pytest.mark.parametrize(
    ("second", "choice"), [("7", "tie"), ("Rating: 7", None), ("nan", None), (None, None)]
)
def test_llmbar_rating_without_score_is_unparsed(
    second: str | None, choice: object, tmp_path: Path
) -> None:
    # such a pair has one recorded win for each order, whether the scores are equal or one is unread
    calls = {"swap = False": {"winner": "1"}, "swap = True": {"winner": "2"}}
    result = {**calls, "score_1": ["7", "stop"], "score_2": [second, "stop"]}
    record = {"input": "i", "output_1": "x", "output_2": "y", "label": 1}
    sure = {"swap = False": {"winner": "1"}}
    log = array(
        tmp_path / "result.json",
        {**record, "results": [result]},
        {**record, "input": "j", "results": [sure]},
    )
    made = import_files("llmbar", [log])
    assert [decision.choice for decision in made.decisions] == [choice, choice, 0]
