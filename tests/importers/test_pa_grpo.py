"""The training files released with PA-GRPO, put back together to items."""

import gzip
import json

import pytest

from unswayed.errors import ItemError
from unswayed.importers.pa_grpo import load_released
from unswayed.items import Task


def pair_row(permutation, truth, answers, *, query="Which?"):
    text = (
        f"###Query: \\n{query}\\n\\n###A Answer: \\n{answers[0]}\\n\\n###B Answer:\\n{answers[1]}"
    )
    return {
        "data_source": "chatbot_arena",
        "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": text}],
        "reward_model": {"ground_truth": truth},
        "extra_info": {"original_question_id": "z", "permutation": permutation},
    }


def question_row(permutation, truth, options):
    shown = "\n".join(f"{letter}. {option}" for letter, option in zip("ABCD", options, strict=True))
    return {
        "data_source": "mmlu",
        "prompt": [{"role": "user", "content": f"How?\n\nOptions:\n{shown}"}],
        "reward_model": {"ground_truth": truth},
        "extra_info": {"original_index": 7, "permutation": permutation},
    }


def write_rows(tmp_path, *rows):
    path = tmp_path / "rows.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def test_the_pairwise_file_names_the_displayed_letter(tmp_path):
    rows = pair_row(1, "A", ("second", "first")), pair_row(0, "B", ("first", "second"))
    item = load_released(write_rows(tmp_path, *rows))[0]
    assert item.candidates == ("first", "second")
    assert (item.gold, item.task, item.id, item.prompt) == (1, Task.PAIRWISE, "arena/z", "Which?")


def test_the_multiple_choice_file_names_the_original_letter(tmp_path):
    # BCDA shows the original B first; gold stays B in every row.
    rows = question_row("BCDA", "B", "bcda"), question_row("DCBA", "B", "dcba")
    item = load_released(write_rows(tmp_path, *rows))[0]
    assert item.candidates == ("a", "b", "c", "d")
    assert (item.gold, item.task, item.id) == (1, Task.MCQ, "mmlu/7")


def test_rows_that_contradict_each_other_are_refused(tmp_path):
    rows = pair_row(0, "A", ("first", "second")), pair_row(1, "A", ("second", "first"))
    with pytest.raises(ItemError, match="arena/z: gold differs from line 1"):
        load_released(write_rows(tmp_path, *rows))
    rows = pair_row(0, "A", ("first", "second")), pair_row(1, "B", ("other", "first"))
    with pytest.raises(ItemError, match="candidates differs"):
        load_released(write_rows(tmp_path, *rows))
    rows = (pair_row(0, "A", ("first", "second")),) * 2
    with pytest.raises(ItemError, match="the same order occurs twice"):
        load_released(write_rows(tmp_path, *rows))


def test_a_row_of_something_else_is_refused_with_its_line(tmp_path):
    with pytest.raises(ItemError, match=":1: not a released training row"):
        load_released(write_rows(tmp_path, {"prompt": "x"}))
