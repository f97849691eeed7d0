"""Why an answer ended goes with it, as recorded, from every format that says so."""

from collections.abc import Callable
from pathlib import Path

import pytest
from foreign_files import OWN, array, inspect_sample, inspect_zip, lines

from unswayed.data.importers import import_files, parse_map

ALPACA = {"instruction": "i", "output_1": "x", "output_2": "y", "preference": 1.0}
LLMBAR = {"input": "i", "output_1": "x", "output_2": "y"}


def llmbar(at: Path, result: dict[str, object]) -> Path:
    return array(at / "result.json", {**LLMBAR, "results": [result]})


def compared(reason: str) -> dict[str, object]:
    return {"swap = False": {"completion": ["Output (a)", reason], "winner": "1"}}


def rated(first: str, second: str) -> dict[str, object]:
    scores = {"score_1": ["7", first], "score_2": ["5", second]}
    return {**scores, "swap = False": {"winner": "1"}}


RECORDED: dict[str, tuple[str, str | None, Callable[[Path], Path]]] = {
    "alpaca-eval, OpenAI": (
        "alpaca-eval",
        "length",
        lambda at: array(at / "a.json", {**ALPACA, "raw_completion": {"finish_reason": "length"}}),
    ),
    "alpaca-eval, Anthropic": (
        "alpaca-eval",
        "max_tokens",
        lambda at: array(
            at / "a.json", {**ALPACA, "raw_completion": {"stop_reason": "max_tokens"}}
        ),
    ),
    "alpaca-eval, a text": (
        "alpaca-eval",
        None,
        lambda at: array(at / "a.json", {**ALPACA, "raw_completion": "m"}),
    ),
    "inspect": (
        "inspect",
        "content_filter",
        lambda at: inspect_zip(
            at / "log.eval",
            inspect_sample(output={"choices": [{"message": {}, "stop_reason": "content_filter"}]}),
        ),
    ),
    "inspect, no choice": (
        "inspect",
        None,
        lambda at: inspect_zip(at / "log.eval", inspect_sample(output={"choices": []})),
    ),
    "jsonl": (
        "jsonl",
        "end_turn",
        lambda at: lines(at / "d.jsonl", {**OWN, "finish_reason": "end_turn"}),
    ),
    "llmbar": (
        "llmbar",
        "content management policy",
        lambda at: llmbar(at, compared("content management policy")),
    ),
    "llmbar, two ratings": ("llmbar", "length", lambda at: llmbar(at, rated("stop", "length"))),
    "llmbar, the first rating": (
        "llmbar",
        "length",
        lambda at: llmbar(at, rated("length", "stop")),
    ),
    "llmbar, both ended": ("llmbar", "stop", lambda at: llmbar(at, rated("stop", "stop"))),
}
"""By name: the importer, the reason as recorded, and what writes a file with it."""


@pytest.mark.parametrize("name", RECORDED)
def test_import_keeps_finish_reason(name: str, tmp_path: Path) -> None:
    kind, reason, written = RECORDED[name]
    made = import_files(kind, [written(tmp_path)])
    assert {decision.finish_reason for decision in made.decisions} == {reason}


def test_map_names_finish_reason_field(tmp_path: Path) -> None:
    cut, whole = "I think A is better, but [[B", "A"
    log = lines(
        tmp_path / "log.jsonl",
        {"id": "1", "said": cut, "meta": {"why": "length"}},
        {"id": "2", "said": whole, "meta": {"why": "stop"}},
        {"id": "3", "said": whole},
    )
    made = import_files("jsonl", [log], fields=parse_map("id=id,text=said,finish_reason=meta.why"))
    assert [decision.finish_reason for decision in made.decisions] == ["length", "stop", None]
    assert [decision.choice for decision in made.decisions] == [None, 0, 0]
