"""Public files in the exact layout in which their projects publish them; the content is made up."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from foreign_files import array, choices, lines

from unswayed.base.errors import ItemError, UsageError
from unswayed.data.importers import import_files
from unswayed.model.items import Message, text_of

# LLMBar: results are [text, finish reason] for what is asked first, and the verdict last


def verdict(own: object, swapped: object, **more: object) -> dict[str, object]:
    return {
        "swap = False": {"completion": ["Output (a)", "stop"], "winner": own},
        "swap = True": {"completion": ["Output (a)", "stop"], "winner": swapped, "prompt": "..."},
        **more,
    }


def llmbar(*results: object, **fields: object) -> dict[str, object]:
    row = {"input": "Name a metal.", "output_1": "Tin", "output_2": "Oak", "label": 1}
    return {**row, "results": list(results), **fields}


def test_llmbar_verdicts_come_after_metrics_and_a_reference(tmp_path: Path) -> None:
    questions, reference = ["1. Is it a metal?", "stop"], ["Iron", "stop"]
    rows = [
        llmbar(questions, reference, verdict("1", "2")),
        llmbar(questions, verdict("2", "2"), input="Name a tree.", label=2, note="extra"),
        llmbar(verdict("1", "1"), verdict("2", "1"), input="Name a bird."),  # Swap: synthesised
    ]
    del rows[2]["label"]
    made = import_files("auto", [array(tmp_path / "result.json", *rows)])
    assert choices(made.decisions) == [
        *[((0, 1), 0), ((1, 0), 1)],
        *[((0, 1), 1), ((1, 0), 1)],
        *[((0, 1), 1), ((1, 0), 0)],
    ]
    assert [item.gold for item in made.items] == [0, 1, None]


def rated(first: str, second: str, own: str, swapped: str) -> dict[str, object]:
    return {
        "score_1": [first, "stop"],
        "score_2": [second, "stop"],
        "swap = False": {"winner": own},
        "swap = True": {"winner": swapped},
    }


def test_equal_llmbar_ratings_are_ties(
    tmp_path: Path,
) -> None:
    rows = [
        llmbar(["metrics", "stop"], rated("8", "9", "2", "2")),
        llmbar(rated("9", "9", "2", "1"), input="Name a tree."),
        llmbar(rated("I rate it 7", "5", "1", "1"), input="Name a bird."),
        llmbar(rated("", "9", "1", "2"), input="Name a fish."),  # the project's words for unread
        llmbar(rated("8.5", "9", "1", "2"), input="Name a gas."),  # to the project a half is unread
    ]
    made = import_files("auto", [array(tmp_path / "result.json", *rows)])
    read = [choice for _, choice in choices(made.decisions)]
    assert read == [1, 1, "tie", "tie", 0, 0, None, None, 1, 1]
    scores = [decision.scores for decision in made.decisions[::2]]
    assert scores == [(8.0, 9.0), (9.0, 9.0), None, None, (8.5, 9.0)]


def test_llmbar_without_a_verdict_is_counted_or_refused(tmp_path: Path) -> None:
    rows = [llmbar(verdict("1", "1")), llmbar({"swap = False": None}, input="Name a tree.")]
    made = import_files("llmbar", [array(tmp_path / "result.json", *rows)])
    assert made.counts["left_out: no verdict was recorded"] == 1
    last_is_text = [llmbar(["only a reference", "stop"])]
    with pytest.raises(ItemError, match="results: the last entry is not a verdict"):
        import_files("llmbar", [array(tmp_path / "bad.json", *last_is_text)])


# Auto-J: test data and outputs joined by line


PAIRS = [
    {
        "scenario": "planning",
        "label": label,
        "prompt": f"Plan trip {label}.",
        "response 1": "By train.",
        "response 2": "By bus.",
    }
    for label in (0, 1, 2)
]


@pytest.fixture
def autoj(tmp_path: Path) -> dict[str, Path]:
    own = [{"output": 0}, {"output": 0}, {"output": 2}]
    exchanged = [{"output": 1}, {"output": 0}, {"output": 2}]
    return {
        "data": lines(tmp_path / "testdata_pairwise.jsonl", *PAIRS),
        "own": lines(tmp_path / "pairwise_example_output.jsonl", *own),
        "exchanged": lines(tmp_path / "pairwise_exchange_example_output.jsonl", *exchanged),
    }


@pytest.mark.parametrize("kind", ["auto", "autoj"])
@pytest.mark.parametrize(
    "names",
    [("data", "own", "exchanged"), ("exchanged", "own", "data"), ("data", "exchanged", "own")],
)
def test_autoj_outputs_are_joined_with_the_test_data_by_line(
    kind: str, names: tuple[str, ...], autoj: dict[str, Path]
) -> None:
    made = import_files(kind, [autoj[name] for name in names])
    # exchanged, 1 is the second shown: response 1, candidate 0
    assert choices(made.decisions) == [
        *[((0, 1), 0), ((1, 0), 0)],
        *[((0, 1), 0), ((1, 0), 1)],
        *[((0, 1), "tie"), ((1, 0), "tie")],
    ]
    assert [item.gold for item in made.items] == [0, 1, "tie"]
    assert [item.group for item in made.items] == ["planning"] * 3
    assert {decision.model for decision in made.decisions} == {"pairwise_example_output"}


def test_autoj_outputs_in_one_order_give_one_decision_each(autoj: dict[str, Path]) -> None:
    made = import_files("autoj", [autoj["data"], autoj["own"]])
    assert choices(made.decisions) == [((0, 1), 0), ((0, 1), 0), ((0, 1), "tie")]


def test_autoj_files_that_do_not_belong_together_are_refused(
    autoj: dict[str, Path], tmp_path: Path
) -> None:
    short = lines(tmp_path / "short.jsonl", {"output": 0})
    with pytest.raises(
        UsageError, match=r"by line, but their lengths differ: .*jsonl 3, .*jsonl 1"
    ):
        import_files("autoj", [autoj["data"], short])
    with pytest.raises(UsageError, match=r"0 files of test data and 1 of outputs.*TESTDATA"):
        import_files("auto", [autoj["own"]])
    with pytest.raises(ItemError, match="no decisions"):
        import_files("autoj", [autoj["data"]])


def test_a_bad_autoj_output_is_named_in_its_own_file(
    autoj: dict[str, Path], tmp_path: Path
) -> None:
    bad = tmp_path / "bad_output.jsonl"
    bad.write_text('{"output": 0}\n{"output": \n{"output": 1}\n')
    with pytest.raises(ItemError, match=r"bad_output\.jsonl:2: JSON"):
        import_files("autoj", [autoj["data"], bad])
    made = import_files("autoj", [autoj["data"], bad], on_bad_item="skip")
    assert (len(made.decisions), made.counts["bad_records"]) == (2, 1)


# Position-Bias-Analyzer: record_<judge>.tsv


def tsv(path: Path, rows: Sequence[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter="\t", quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)
    return path


def mt_bench(first: str, second: str, said: str) -> dict[str, str]:
    return {
        "cmp_index": f"129;{first};{second}",
        "question_1": "Sort a list.",
        "question_2": "And\nfaster?",
        "answer1_1": f"{first} sorts",
        "answer1_2": f'{first} "again"',
        "answer2_1": f"{second} sorts",
        "answer2_2": f'{second} "again"',
        "A": first,
        "B": second,
        "reference_answer_1": "Use sort.",
        "reference_answer_2": "nan",
        "evaluating_guidance": "nan",
        "task": "coding",
        "judge-x": said,
    }


def test_the_mt_bench_table_has_texts_turns_and_judge(tmp_path: Path) -> None:
    vicuna = "vicuna-13b-v1.3"
    rows = [
        mt_bench(vicuna, "alpaca", "Both are fine.\n[[A]]"),
        mt_bench("alpaca", vicuna, "[[A]]"),
    ]
    made = import_files("auto", [tsv(tmp_path / "Repetition2-record_judge-x_3.tsv", rows)])
    assert choices(made.decisions) == [((0, 1), 0), ((1, 0), 1)]
    (item,) = made.items
    assert item.prompt == "Sort a list."
    assert item.candidates[1] == (
        Message("assistant", "alpaca sorts"),
        Message("user", "And\nfaster?"),
        Message("assistant", 'alpaca "again"'),
    )
    assert text_of(item.candidates[0]).startswith("assistant: vicuna-13b-v1.3 sorts")
    assert (item.reference, item.group) == ("Use sort.", "coding")
    assert {(decision.model, decision.sample) for decision in made.decisions} == {("judge-x", 1)}


def test_tables_split_by_consistency_use_extracted_letter(tmp_path: Path) -> None:
    said = {"A": "[[A]]", "B": "so [[B]]", "C": "a tie", "N": "[[A]] and [[B]]"}
    calls = [("a", "b", "A"), ("b", "a", "B"), ("a", "c", "B"), ("c", "a", "C"), ("a", "d", "N")]
    rows = [mt_bench(x, y, said[letter]) | {"extracted": letter} for x, y, letter in calls]
    folder = tmp_path / "Repetition3-judge-x"
    folder.mkdir()
    files = [
        tsv(folder / "consistent_cmp.tsv", rows[:2]),
        tsv(folder / "inconsistent_cmp.tsv", rows[2:]),
    ]
    made = import_files("auto", files)
    assert choices(made.decisions) == [
        *[((0, 1), 0), ((1, 0), 0)],
        *[((0, 1), 1), ((1, 0), "tie"), ((0, 1), None)],
    ]
    assert {(d.model, d.sample) for d in made.decisions} == {("judge-x", 2)}
    assert [decision.text for decision in made.decisions[:2]] == ["[[A]]", "so [[B]]"]


def test_repetitions_of_one_judge_are_samples(tmp_path: Path) -> None:
    files = [
        tsv(tmp_path / f"repetition{n}_judge.tsv", [mt_bench("a", "b", "[[B]]")]) for n in (1, 2, 3)
    ]
    made = import_files("mt-bench", files)
    assert [decision.sample for decision in made.decisions] == [0, 1, 2]


def test_the_dev_bench_table_has_one_turn_and_other_verdicts(tmp_path: Path) -> None:
    row = {
        "cmp_index": "uml;human;gpt",
        "question": "Draw it.",
        "answer1": "this",
        "answer2": "that",
        "A": "human",
        "B": "gpt",
        "reference_answer": "",
        "evaluating_guidance": "Look at the arrows.",
        "task": "uml",
        "judge-x": "Choice: B\nReason: fewer arrows than in [[A]].",
    }
    made = import_files("auto", [tsv(tmp_path / "record.tsv", [row])])
    (item,) = made.items
    assert (item.id, item.candidates) == ("uml;gpt;human", ("that", "this"))
    assert choices(made.decisions) == [((1, 0), 0)]
    del row["judge-x"]
    with pytest.raises(ItemError, match="no column is called after a judge"):
        import_files("auto", [tsv(tmp_path / "none.tsv", [row])])


# FastChat: model_judgment/gpt-4_pair.jsonl


def match(g1: str, g2: str, **fields: object) -> dict[str, Any]:
    return {
        "question_id": 81,
        "model_1": "alpaca",
        "model_2": "vicuna",
        "g1_winner": g1,
        "g2_winner": g2,
        "judge": ["gpt-4", "pair-v2"],
        "g1_user_prompt": "[User Question] ...",
        "g1_judgment": "so [[A]]",
        "g2_user_prompt": "[User Question] ...",
        "g2_judgment": "so [[B]]",
        "turn": 1,
        "tstamp": 1686.25,
        **fields,
    }


def test_fastchat_winners_are_models_and_not_letters(tmp_path: Path) -> None:
    rows = [
        match("model_1", "model_1"),
        match("model_1", "model_2", turn=2, judge=["gpt-4", "pair-v2-multi-turn"]),
        match("tie", "error", question_id=82),
    ]
    file = lines(tmp_path / "gpt-4_pair.jsonl", *rows)
    made = import_files("auto", [file])
    assert choices(made.decisions) == [
        *[((0, 1), 0), ((1, 0), 0)],
        *[((0, 1), 0), ((1, 0), 1)],
        *[((0, 1), "tie"), ((1, 0), None)],
    ]
    assert [item.id for item in made.items] == [
        "81;1;alpaca;vicuna",
        "81;2;alpaca;vicuna",
        "82;1;alpaca;vicuna",
    ]
    assert made.decisions[0].model == "gpt-4/pair-v2"
    assert made.counts["unparsed"] == 1


def test_failed_fastchat_call_gives_no_decision(tmp_path: Path) -> None:
    rows = [match("model_2", "error", g2_judgment="$ERROR$")]
    made = import_files("fastchat", [lines(tmp_path / "x.jsonl", *rows)])
    assert choices(made.decisions) == [((0, 1), 1)]
    assert made.counts["calls that failed ($ERROR$), left out"] == 1


def test_fastchat_ratings_keep_scores_without_optional_fields(tmp_path: Path) -> None:
    row = match("model_2", "model_2", m1_score=6.5, m2_score=8)
    for name in ("turn", "judge", "g1_user_prompt", "g2_user_prompt", "tstamp"):
        del row[name]
    made = import_files("auto", [lines(tmp_path / "x.jsonl", row)])
    assert [decision.scores for decision in made.decisions] == [(6.5, 8.0), (6.5, 8.0)]
    with pytest.raises(ItemError, match="g1_winner: 'A' is not model_1, model_2, tie or error"):
        import_files("fastchat", [lines(tmp_path / "y.jsonl", match("A", "B"))])


# AlpacaEval without log-probabilities


def annotation(preference: float | None, instruction: str, **fields: object) -> dict[str, object]:
    return {
        "instruction": instruction,
        "output_1": "one",
        "generator_1": "reference",
        "dataset": "helpful_base",
        "output_2": "two",
        "generator_2": "model",
        "annotator": "claude",
        "preference": preference,
        "price_per_example": 0.005,
        "time_per_example": 0.19,
        **fields,
    }


def test_alpaca_eval_without_log_probabilities_lacks_an_order(
    tmp_path: Path,
) -> None:
    rows = [
        annotation(1, "a"),
        annotation(2.0, "b"),
        annotation(1.5, "c"),
        annotation(0, "d"),
        annotation(1.31, "e"),
        annotation(None, "f"),
        annotation(1.5, "g", output_2="one"),
    ]
    made = import_files("auto", [array(tmp_path / "annotations.json", *rows)])
    assert [decision.choice for decision in made.decisions] == [0, 1, "tie", "tie", 0]
    assert {decision.probs for decision in made.decisions} == {None}
    (said,) = [name for name in made.counts if name.startswith("order not recorded")]
    assert made.counts[said] == 5
    assert made.counts["left_out: no preference was recorded"] == 1
    assert made.counts["left_out: the outputs are equal: they were not judged"] == 1
    with pytest.raises(ItemError, match=r"preference: 3\.0 is not between 1 and 2"):
        import_files("alpaca-eval", [lines(tmp_path / "x.jsonl", annotation(3, "a"))])


def test_odd_and_missing_optional_fields_are_accepted(tmp_path: Path) -> None:
    pair = {
        "pair_id": "p",
        "question": "q",
        "response_A": "x",
        "response_B": "y",
        "judgments": [{"decision": "A>B", "judgment": ["raw"], "extra": 1}, {"decision": None}],
        "notes": [[1]],
    }
    made = import_files("auto", [lines(tmp_path / "outputs.jsonl", pair)])
    assert choices(made.decisions) == [((0, 1), 0), ((1, 0), None)]
    assert (made.items[0].gold, made.items[0].group) == (None, None)
    odd = annotation(2, "a", first_token_logprobs=[], raw_completion=[1], extra={"k": []})
    for name in ("generator_1", "generator_2", "annotator", "dataset"):
        del odd[name]
    made = import_files("auto", [lines(tmp_path / "annotations.jsonl", odd)])
    assert choices(made.decisions) == [((0, 1), 1)]
