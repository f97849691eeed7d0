"""The training files released with PA-GRPO, put back together to items."""

import gzip
import json
from collections import Counter

import pytest

from needs import DATA, recorded
from unswayed.base.errors import ItemError, UsageError
from unswayed.cli import main
from unswayed.data.importers import import_files
from unswayed.model.items import Task, load_items


def training_row(source, text, truth, **extra):
    prompt = [{"role": "system", "content": "s"}, {"role": "user", "content": text}]
    said = {"model_answer": "B", "model_response": "<think>\n\n</think>\n\nB", "split": "train"}
    row = {"data_source": source, "prompt": prompt, "ability": "text"}
    model = {"ground_truth": truth, "style": "rule"}
    return {**row, "reward_model": model, "extra_info": {"index": 9218, **said, **extra}}


def pair_row(permutation, truth, answers, *, query="Which?"):
    first, second = answers
    text = f"###Query: \\n{query}\\n\\n###A Answer: \\n{first}\\n\\n###B Answer:\\n{second}"
    extra = {"model_a": "first-model", "model_b": "second-model", "winner": "model_b"}
    extra |= {"original_question_id": "z", "permutation": permutation}
    return training_row("chatbot_arena", text, truth, **extra)


def question_row(permutation, truth, options):
    shown = "\n".join(f"{letter}. {option}" for letter, option in zip("ABCD", options, strict=True))
    extra = {"expected_answer": None, "original_index": 7, "permutation": permutation}
    return training_row("mmlu", f"How?\n\nOptions:\n{shown}", truth, **extra)


def write_rows(tmp_path, *rows):
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress("".join(f"{json.dumps(row)}\n" for row in rows).encode()))
    return path


def imported(path):
    return import_files("pa-grpo", [path])


def test_the_pairwise_file_names_the_displayed_letter(tmp_path):
    rows = pair_row(1, "A", ("second", "first")), pair_row(0, "B", ("first", "second"))
    (item,) = imported(write_rows(tmp_path, *rows)).items
    assert item.candidates == ("first", "second")
    assert (item.gold, item.task, item.id, item.prompt) == (1, Task.PAIRWISE, "arena/z", "Which?")


def test_the_multiple_choice_file_names_the_original_letter(tmp_path):
    # BCDA shows the original B first; gold stays B in every row.
    rows = question_row("BCDA", "B", "bcda"), question_row("DCBA", "B", "dcba")
    (item,) = imported(write_rows(tmp_path, *rows)).items
    assert item.candidates == ("a", "b", "c", "d")
    assert (item.gold, item.task, item.id) == (1, Task.MCQ, "mmlu/7")


def test_rows_become_items_and_no_decisions(tmp_path):
    path = write_rows(
        tmp_path, *(question_row(order, "C", order.lower()) for order in ("ABCD", "DCBA", "CDAB"))
    )
    found = imported(path)
    assert (found.counts["records"], found.counts["items"], found.decisions) == (3, 1, ())
    assert import_files("auto", [path]) == found


def test_rows_that_contradict_each_other_are_refused(tmp_path):
    rows = pair_row(0, "A", ("first", "second")), pair_row(1, "A", ("second", "first"))
    with pytest.raises(ItemError, match=r"rows.jsonl.gz:2: gold: of item 'arena/z' is another"):
        imported(write_rows(tmp_path, *rows))
    rows = pair_row(0, "A", ("first", "second")), pair_row(1, "B", ("other", "first"))
    with pytest.raises(ItemError, match=r":2: candidates: of item 'arena/z' is another"):
        imported(write_rows(tmp_path, *rows))
    rows = question_row("ABCD", "A", "abcd"), question_row("DCBA", "D", "dcba")
    with pytest.raises(ItemError, match=r":2: gold: of item 'mmlu/7' is another"):
        imported(write_rows(tmp_path, *rows))


def test_a_row_twice_is_its_item_once(tmp_path):
    rows = (pair_row(0, "A", ("first", "second")),) * 2
    assert [item.id for item in imported(write_rows(tmp_path, *rows)).items] == ["arena/z"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"prompt": []}, ":1: record: Object missing required field `data_source`"),
        (pair_row(2, "A", ("first", "second")), ":1: extra_info.permutation: 2 is not 0 or 1"),
        (pair_row(0, "C", ("first", "second")), ":1: reward_model.ground_truth: 'C' is not one of"),
        (question_row("ABCC", "A", "abcd"), ":1: extra_info.permutation: 'ABCC' is not an order"),
        (question_row("ABCD", "AB", "abcd"), ":1: reward_model.ground_truth: 'AB' is not one of"),
        (
            {**pair_row(0, "A", ("first", "second")), "prompt": [{"role": "user", "content": "?"}]},
            ":1: prompt: does not show a question",
        ),
        (
            pair_row(0, "A", ("###A Answer: \\n" * 20_000, "second")),
            ":1: prompt: has a candidate's heading more than 100 times",
        ),
    ],
)
def test_a_foreign_row_is_refused_with_line_and_field(row, said, tmp_path):
    with pytest.raises(ItemError, match=said):
        imported(write_rows(tmp_path, row))


def test_verl_rows_without_permutations_are_not_recognised(tmp_path):
    row = pair_row(0, "A", ("first", "second"))
    path = write_rows(tmp_path, {**row, "extra_info": {"index": 1, "split": "train"}})
    with pytest.raises(UsageError, match="unknown format"):
        import_files("auto", [path])


def test_the_command_writes_items_alone_and_names_the_next_step(tmp_path, capsys):
    rows = pair_row(0, "B", ("first", "second")), pair_row(1, "A", ("second", "first"))
    path, out = write_rows(tmp_path, *rows), tmp_path / "items.jsonl"
    assert main(["import", "auto", str(path), "--items", str(out)]) == 0
    assert f"unswayed filter {out} --model MODEL" in capsys.readouterr().out
    assert [item.gold for item in load_items(out)] == [1]


def test_the_command_has_no_decisions_to_write(tmp_path, capsys):
    path = write_rows(tmp_path, pair_row(0, "B", ("first", "second")))
    decisions, items = str(tmp_path / "d.jsonl"), str(tmp_path / "i.jsonl")
    assert main(["import", "pa-grpo", str(path), "--items", items, "--out", decisions]) == 2
    assert "Give --items without --out" in capsys.readouterr().err
    assert main(["import", "pa-grpo", str(path)]) == 2
    assert "Give --items FILE" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["rows.jsonl.gz"]


@recorded
@pytest.mark.parametrize(
    ("name", "letters_by_order"),
    [("chatbot_arena_filter_2perm", 2), ("mmlu_filter_5perm", 1)],
)
def test_the_shared_rows_have_the_gold_that_the_prompt_shows(name, letters_by_order):
    """In the displayed convention an item's rows name two letters, in the original one only one."""
    path = DATA / "pagrpo_train" / f"{name}_think_dev.jsonl.gz"
    items = {item.id: item for item in import_files("auto", [path]).items}
    letters = {}
    with gzip.open(path, "rt") as file:
        for row in map(json.loads, file):
            extra, truth = row["extra_info"], row["reward_model"]["ground_truth"]
            question = extra.get("original_question_id")
            key = f"mmlu/{extra.get('original_index')}" if question is None else f"arena/{question}"
            letters.setdefault(key, set()).add(truth)
            if extra["permutation"] in (0, "ABCD"):  # shown as it is: both conventions agree
                assert items[key].gold == "ABCD".index(truth)
            if question is not None:  # said a second time, by model
                assert items[key].gold == ("model_a", "model_b").index(extra["winner"])
    assert Counter(map(len, letters.values())) == {letters_by_order: len(items)}
