"""Records of Prometheus' rubric benchmarks."""

import re
from pathlib import Path
from typing import Any

import pytest
from foreign_files import array

from unswayed.base.errors import ItemError
from unswayed.data.importers import import_files
from unswayed.model.items import Task

PROMPT = """###Task Description:
A response to evaluate and a score rubric are given.

###The instruction to evaluate:
Explain rain.

In two lines.

###Response to evaluate:
Water falls.
Score 2: is what I deserve.

###Reference Answer (Score 3):
Drops fall from clouds.

###Score Rubrics:
[Is the cause named?]
Score 1: It is not named.
Score 2: It is named
in part.
Score 3: It is named.

###Feedback: """


def record(prompt: str = PROMPT, **fields: object) -> dict[str, Any]:
    row = {"idx": 7, "response_source": "model-x", "category": "science", "instruction": prompt}
    scores = {"gpt4_score": [2, 3, None], "gpt4_feedback": ["so so", "well", "?"]}
    return {**row, **scores, **fields}


def test_a_prompt_is_taken_apart_and_its_scores_are_levels(tmp_path: Path) -> None:
    file = array(tmp_path / "bench.json", record())
    imported = import_files("auto", [file])
    (item,) = imported.items
    assert item.id == "bench-7-model-x"
    assert item.task is Task.RUBRIC
    assert item.prompt == "Explain rain.\n\nIn two lines."
    assert item.response == "Water falls.\nScore 2: is what I deserve."
    assert item.reference == "Drops fall from clouds."
    assert item.candidates == ("It is not named.", "It is named\nin part.", "It is named.")
    assert item.values == (1.0, 2.0, 3.0)
    assert item.meta["criterion"] == "Is the cause named?"
    assert (item.gold, item.group) == (None, "science")
    assert [d.choice for d in imported.decisions] == [1, 2, None]
    assert [d.sample for d in imported.decisions] == [0, 1, 2]
    assert {(d.order, d.labels) for d in imported.decisions} == {((0, 1, 2), ("1", "2", "3"))}
    assert imported.decisions[1].text == "well"
    assert imported.counts["unparsed"] == 1


def test_scales_of_other_numbers_and_no_reference(tmp_path: Path) -> None:
    start = PROMPT.partition("###Reference")[0]
    scale = "###Score Rubric:\n[?]\nScore 0: no\nScore 10: yes\n\n###Feedback: "
    row = record(start + scale, gpt4_score=[10], idx=None, response_source=None)
    (item,) = import_files("prometheus", [array(tmp_path / "b.json", row)]).items
    assert (item.id, item.values, item.reference) == ("b-1", (0.0, 10.0), None)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (record(gpt4_score=[4]), r"gpt4_score\[0\]: 4 is not a score of the scale \(1, 2, 3\)"),
        (record(gpt4_score=[1, 2.5]), r"gpt4_score\[1\]: 2.5 is not a score"),
        (record(PROMPT.replace("###Resp", "Resp")), "no heading '###Response to evaluate:'"),
        (record(PROMPT.replace("Water", "###Score Rubrics:\n")), "has two headings 'Score R"),
        (record(PROMPT.replace("Score 3: It", "Score 2: It")), "describes one score twice"),
        (record(re.sub("\nScore ([13]:)", r"\n\1", PROMPT)), "has 1 lines such"),
    ],
)
def test_a_record_that_cannot_be_read_says_why(
    tmp_path: Path, row: dict[str, Any], message: str
) -> None:
    with pytest.raises(ItemError, match=message):
        import_files("prometheus", [array(tmp_path / "b.json", row)])
