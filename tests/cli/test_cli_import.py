"""`unswayed import`: what it writes and prints, whatever the records hold."""

import json
from pathlib import Path

import pytest
from cli_commands import Run

QUESTION = {"idx": 0, "options": ["a", "b"], "probs": [[0.6, 0.4], [0.4, 0.6]], "ideal": "A"}


def written(path: Path, *records: dict[str, object]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def test_a_record_cannot_write_lines_of_its_own(tmp_path: Path, run: Run) -> None:
    file = written(
        tmp_path / "law.jsonl",
        {"type": "result", "data": QUESTION},
        {"type": "x\n  99 decisions\n\x1b[2J", "data": {}},
    )
    ran = run("import", "pride", file, "--out", str(tmp_path / "d.jsonl"))
    assert ran.code == 0
    assert "  left out: a call that failed (x 99 decisions ␛[2J): 1" in ran.out.splitlines()


def test_import_without_readable_answer_fails_and_writes_nothing(tmp_path: Path, run: Run) -> None:
    unread = {"type": "result", "data": {**QUESTION, "probs": None, "sampled": "neither"}}
    file = written(tmp_path / "law.jsonl", unread, {"type": "broken", "data": {}})
    ran = run("import", "pride", file, "--out", str(tmp_path / "d.jsonl"))
    assert (ran.code, ran.out) == (2, "")
    assert (
        "none of the 1 values of 'data.sampled' could be read (1 a call that failed (broken))"
        in ran.err
    )
    assert not (tmp_path / "d.jsonl").exists()


def test_unparsed_answers_are_named(tmp_path: Path, run: Run) -> None:
    mapping = "id=id,candidates=a|b,prompt=q,text=said"
    record = {"q": "Q", "a": "x", "b": "y"}
    said = ("[[A]]", "who knows", "[[B]]", "hm", "[[A]]", "well", "no idea")
    records = [{**record, "id": f"r{k}", "said": text} for k, text in enumerate(said)]
    file = written(tmp_path / "log.jsonl", *records)
    ran = run("import", "jsonl", file, "--map", mapping, "--out", str(tmp_path / "d.jsonl"))
    assert ran.code == 0
    assert "  unparsed: items r1, r3, r5, ..." in ran.out.splitlines()
    assert "  first record as read: item r0, order [0, 1], choice 0" in ran.out.splitlines()


@pytest.mark.parametrize("option", ["--out", "--items"])
def test_a_name_that_promises_gzip_is_refused(option: str, tmp_path: Path, run: Run) -> None:
    file = written(tmp_path / "law.jsonl", {"type": "result", "data": QUESTION})
    ran = run("import", "pride", file, option, str(tmp_path / "d.jsonl.gz"))
    assert ran.code == 2
    assert "Remove .gz from the name." in ran.err
    assert not (tmp_path / "d.jsonl.gz").exists()
