"""The parser on replies of real judges, against the verdicts their authors recorded."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from unswayed.parsing import parse_label

DATA = Path(__file__).parents[2].parent / "shared" / "data"


def rows_of(name: str) -> list[Any]:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"needs {name} in ../shared/data")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file) if ".jsonl" not in name else [json.loads(line) for line in file]


def test_bracketed_verdicts_of_4800_mt_bench_replies_are_read() -> None:
    rows = rows_of("mtbench/position_bias_gpt-3.5-turbo-1106_4800.jsonl.gz")
    agreed: Counter[str] = Counter()
    without: Counter[str | None] = Counter()
    lost: Counter[str] = Counter()
    for row in rows:
        verdict = parse_label(row["raw"], ("A", "B"))
        recorded = re.search(r"\[\[([ABC])\]\]", row["raw"])
        if recorded is None:
            without[verdict] += 1
            continue
        expected = {"C": "tie"}.get(recorded[1], recorded[1])
        if verdict is None:  # a mark in the middle of a sentence
            lost[expected] += 1
            continue
        assert verdict == expected, row["raw"]
        agreed[verdict] += 1
    expected = json.loads((DATA / "expected" / "mtbench_position_bias_judges.json").read_text())
    totals = expected["judges"]["gpt-3.5-turbo-1106"]["overall"]["verdicts_total"]
    assert agreed + lost == {"A": totals["A"], "B": totals["B"], "tie": totals["tie"]}
    assert lost.total() <= 1
    # 19 have no brackets: 6 are transport errors, 13 say who is better in words.
    assert sum(without.values()) == totals["unparsed"]
    assert without[None] >= 6
    failed = [row["raw"] for row in rows if row["raw"].startswith("Failed to obtain")]
    assert [parse_label(text, ("A", "B")) for text in failed] == [None] * 6


@pytest.mark.parametrize(
    ("name", "replies"),
    [
        ("Natural_ChatGPT_CoT", 200),
        ("Natural_LLaMA2_CoT", 200),
        ("Natural_ChatGPT_Vanilla", 200),
        ("Natural_LLaMA2_Vanilla", 200),
        ("FairEval_ChatGPT_Vanilla_NoRules", 132),
        ("FairEval_LLaMA2_Vanilla_NoRules", 132),
    ],
)
def test_llmbar_verdicts_in_prose_are_read(name: str, replies: int) -> None:
    compared = unread = 0
    for row in rows_of(f"llmbar/{name}.json.gz"):
        for swapped in (False, True):
            result = row["results"][-1][f"swap = {swapped}"]
            winner = result["winner"]  # the candidate: output 1 or 2
            expected = None if winner is None else ("a", "b")[(int(winner) - 1) ^ swapped]
            verdict = parse_label(result["completion"][0], ("a", "b"))
            assert verdict in {expected, None}
            unread += verdict != expected
            compared += 1
    assert compared == replies
    assert unread <= (22 if name.endswith("CoT") else 0)  # verdicts in the middle of prose


def test_arena_hard_comparisons_are_read() -> None:
    name = (
        "judgebench/outputs_resp=claude-3-5-sonnet-20240620_judge=arena_hard_claude-3-haiku-20240307"
        ".jsonl.gz"
    )
    compared = 0
    twice: Counter[str | None] = Counter()
    for row in rows_of(name):
        for judgment in row["judgments"]:
            recorded = judgment["decision"]
            if recorded is None:  # the authors drop replies that compare twice
                twice[parse_label(judgment["judgment"]["response"], ("A", "B"))] += 1
                continue
            expected = {"A>B": "A", "B>A": "B", "A=B": "tie"}[recorded]
            assert parse_label(judgment["judgment"]["response"], ("A", "B")) == expected
            compared += 1
    assert compared == 527
    assert twice[None] >= 10  # in two of them both comparisons prefer A
    assert set(twice) <= {None, "A"}


def test_replies_after_an_empty_think_section_are_read() -> None:
    rows = rows_of("pagrpo_train/chatbot_arena_filter_2perm_think_dev.jsonl.gz")
    for row in rows:
        extra = row["extra_info"]
        recorded = extra["model_answer"] if extra["model_answer"] in {"A", "B"} else None
        assert parse_label(extra["model_response"], ("A", "B")) == recorded
    assert len(rows) == 1546
