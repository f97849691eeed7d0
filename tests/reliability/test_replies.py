"""The harness of the labelled sets prints a row per set and language and names every wrong reading."""

from pathlib import Path

import pytest

from reliability import replies


def test_table_has_every_set_and_every_wrong_reading(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "DATA", Path("nowhere"))
    replies.main([])
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines[: lines.index("")] if line.startswith("| ")][1:]
    names = [row.split(" | ")[0].strip("| *") for row in rows]
    assert names[: len(replies.SETS)] == list(replies.SETS)
    assert names[-1] == "known to be read wrongly"
    kinds = {reply.kind for reply in replies.labelled_replies(replies.SETS["plain, by language"])}
    assert {f"plain: {kind}" for kind in kinds} < set(names)
    wrong = sum(int(row.split(" | ")[-1].strip(" |")) for row in rows[: len(replies.SETS)])
    assert sum(line.startswith("wrong: ") for line in lines) == wrong


def test_opposite_verdict_replaces_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"raw": "B is vague. [[A]]"}, {"raw": "[[A]] or [[B]]"}, {"raw": "Both. [[C]]"}]
    monkeypatch.setattr(replies, "mt_bench", lambda: rows)
    (reply,) = replies.opposite_replies("tag")
    assert reply.text == "B is vague.\n\n<answer>B - more detailed</answer>"
    assert reply.reads == "B"
