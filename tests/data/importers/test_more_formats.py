"""What the records of each further format mean: the trap that each hides, by hand."""

import json
import math
import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from foreign_files import (
    array,
    choices,
    counted,
    geval_row,
    grpo_file,
    grpo_result,
    hanna_row,
    hanna_wide,
    lines,
    lm_sample,
    mt_row,
    panda_pair,
    panda_result,
    pride_line,
    read,
    reward_columns,
    table,
    whole,
)

from unswayed.base.errors import ItemError, UsageError
from unswayed.data.importers import import_files
from unswayed.data.importers.pride import orders_of
from unswayed.model.items import Task

# MT-Bench as a table


def test_verdict_over_both_orders_is_not_one_call(tmp_path: Path) -> None:
    rows = [
        mt_row(),
        mt_row(question_id=82, winner="tie"),
        mt_row(question_id=83, winner="tie (inconsistent)"),
        mt_row(question_id=84, judge="expert_3", winner="model_a", turn=2, extra=1),
    ]
    made = read("auto", tmp_path, *rows)
    assert choices(made.decisions) == [((0, 1), 1), ((0, 1), "tie"), ((0, 1), "tie"), ((0, 1), 0)]
    assert [decision.model for decision in made.decisions[::3]] == ["gpt-4/pair-v2", "expert_3"]
    assert made.items[0].prompt == "Name a metal."
    assert made.items[0].candidates == ("Tin.", "Iron.")
    assert made.items[3].id == "84;2;alpaca;vicuna"
    assert made.counts["orders that disagreed, recorded as a tie"] == 1
    assert list(counted(made, "order not recorded").values()) == [4]


def test_a_table_without_conversations_has_items_without_text(tmp_path: Path) -> None:
    row = mt_row(winner="error")
    del row["conversation_a"], row["turn"]
    voted = {**row, "question_id": 82, "winner": "tie"}
    made = read("auto", tmp_path, row, voted)
    assert made.items[0].candidates == ("", "")
    assert made.counts["unparsed"] == 1
    with pytest.raises(ItemError, match=r"x\.jsonl:1: winner: 'model_c'"):
        read("auto", tmp_path, mt_row(winner="model_c"))


# PandaLM


def test_pandalm_joins_pairs_and_judges_by_idx(tmp_path: Path) -> None:
    pairs = array(
        tmp_path / "testset-v1.json",
        panda_pair(0),
        panda_pair(1, annotator1=0, annotator2=1, annotator3=2),  # no majority
        panda_pair(2, annotator1=0, annotator2=0, annotator3=2, response1=True, input=""),
    )
    gpt = array(
        tmp_path / "gpt-3.5-turbo-testset-v1.json",
        panda_result(2, "garbage"),
        panda_result(0, "2"),
        panda_result(1, "Tie"),
    )
    own = array(tmp_path / "pandalm-7b-testset-v1.json", panda_result(0, 1, judge="pandalm"))
    made = import_files("auto", [gpt, pairs, own])
    assert [(d.item_id, d.choice, d.model) for d in made.decisions] == [
        ("pandalm-2", None, "gpt-3.5-turbo"),  # a tie in the project's own script
        ("pandalm-0", 1, "gpt-3.5-turbo"),
        ("pandalm-1", "tie", "gpt-3.5-turbo"),
        ("pandalm-0", 0, "pandalm-7b"),
    ]
    by_id = {item.id: item for item in made.items}
    assert [by_id[f"pandalm-{k}"].gold for k in range(3)] == [0, None, "tie"]
    assert by_id["pandalm-0"].prompt == "Name a metal.\n\nOne word."
    assert by_id["pandalm-2"].candidates == ("True", "Oak")  # the public file lost its quotes
    assert by_id["pandalm-2"].prompt == "Name a metal."
    assert made.counts["items without gold: no majority of the annotators"] == 1
    assert made.decisions[0].text == "why"


def test_pandalm_pairs_are_items_and_results_decisions(tmp_path: Path) -> None:
    pairs = array(tmp_path / "testset-v1.json", panda_pair(0))
    result = array(tmp_path / "gpt-testset-v1.json", panda_result(0))
    made = import_files("auto", [pairs])
    assert (len(made.items), len(made.decisions)) == (1, 0)
    made = import_files("auto", [result])
    assert (len(made.items), len(made.decisions)) == (0, 1)
    with pytest.raises(UsageError, match="two files of pairs"):
        import_files("auto", [pairs, array(tmp_path / "other.json", panda_pair(0))])
    with pytest.raises(ItemError, match="result: 'both' is not"):
        import_files("auto", [array(tmp_path / "bad.json", panda_result(0, "both"))])


# PriDe's files


def test_rows_of_24_are_sorted_orders_with_displayed_labels(tmp_path: Path) -> None:
    # a model that always picks the candidate 2 with .7, wherever it stands
    orders = list(permutations(range(4)))
    rows = [[0.7 if c == 2 else 0.1 for c in order] for order in orders]
    made = import_files("auto", [lines(tmp_path / "law.jsonl", pride_line(rows, ideal="C"))])
    assert [decision.order for decision in made.decisions] == orders
    assert {decision.choice for decision in made.decisions} == {2}
    for decision in made.decisions:
        assert decision.probs == pytest.approx((0.1, 0.1, 0.7, 0.1))
    assert made.items[0].gold == 2  # the letter of the original option, whatever the row
    assert made.items[0].id == "law-0"


def test_as_many_rows_as_options_are_rotations(tmp_path: Path) -> None:
    always_first = pride_line([[0.4, 0.3, 0.2, 0.05, 0.05]] * 5, n=5)
    flat = pride_line([0.1, 0.6, 0.2, 0.1], idx=1, sampled="B", correct=False)
    run = tmp_path / "results_mmlu" / "0s_llama-7b" / "mmlu_cyclic"
    made = import_files("auto", [lines(run / "law.jsonl", always_first, flat)])
    assert choices(made.decisions) == [
        *[((0, 1, 2, 3, 4), 0), ((1, 2, 3, 4, 0), 1), ((2, 3, 4, 0, 1), 2)],
        *[((3, 4, 0, 1, 2), 3), ((4, 0, 1, 2, 3), 4)],
        ((0, 1, 2, 3), 1),
    ]
    assert {decision.model for decision in made.decisions} == {"llama-7b"}
    assert orders_of(24, 4) is not None
    assert orders_of(7, 4) is None


def test_sample_counts_become_shares_and_unordered_ones_go(tmp_path: Path) -> None:
    observed = [[70, 10, 10, 0], [0, 0, 0, 0], [40, 40, 0, 0], [0, 0, 0, 9]]
    records = [
        pride_line([], probs=None, observed=observed),
        {"type": "broken", "data": {"idx": 9, "options": ["a", "b"], "ideal": "A"}},
        {"type": "metric", "data": {"accuracy": 0.5}},
        pride_line([], idx=2, probs=None, sampled="B"),
        pride_line([], idx=3, probs=None, sampled="none of these"),
    ]
    made = import_files("auto", [lines(tmp_path / "law.jsonl", *records)])
    assert choices(made.decisions) == [
        *[((0, 1, 2, 3), 0), ((1, 2, 3, 0), None), ((2, 3, 0, 1), "tie"), ((3, 0, 1, 2), 2)],
        *[((0, 1, 2, 3), 1), ((0, 1, 2, 3), None)],
    ]
    assert made.decisions[0].probs == (70 / 90, 10 / 90, 10 / 90, 0.0)
    assert [decision.probs for decision in made.decisions[1::4]] == [None, None]
    assert counted(made) == {
        "a call that failed (broken)": 1,
        "a summary of the file, not a question": 1,
    }
    shuffled = lines(tmp_path / "mmlu_shuffle_both" / "law.jsonl", pride_line([0.7, 0.1, 0.1, 0.1]))
    bare = lines(tmp_path / "mmlu_noid" / "law.jsonl", pride_line([0.7, 0.1, 0.1, 0.1], idx=5))
    made = import_files("pride", [shuffled, bare, tmp_path / "law.jsonl"], on_bad_item="skip")
    assert counted(made)["options were shown without labels"] == 1
    assert counted(made)["labels were shuffled, and the order is not recorded"] == 1


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[0.25] * 4] * 7, "7 rows for 4 options"),
        ([[0.5] * 4] * 4, "sums to 2, not to 1"),
        ([[0.5, 0.5, 0.0]] * 4, "is not 4 shares"),
        ([["x"] * 4] * 4, "is not a list of numbers"),
    ],
)
def test_rows_that_cannot_be_are_refused(rows: list[object], said: str, tmp_path: Path) -> None:
    with pytest.raises(ItemError, match=said):
        read("pride", tmp_path, pride_line(rows))


# lm-evaluation-harness

SAMPLES = "samples_mmlu_law_2026-01-02T03-04-05.678.jsonl"


def test_scored_labels_are_probabilities_by_candidate(tmp_path: Path) -> None:
    mark = {"item": "q7", "order": [1, 2, 3, 0], "gold": 0, "permutable": False}
    marked = lm_sample(4, target="2")
    marked["doc"] = {**marked["doc"], "unswayed": mark}  # type: ignore[dict-item]
    made = import_files("auto", [lines(tmp_path / "org__model" / SAMPLES, lm_sample(3), marked)])
    assert choices(made.decisions) == [((0, 1, 2, 3), 0), ((1, 2, 3, 0), 1)]
    mass = sum(map(math.exp, (-0.1, -3, -4, -5)))
    by_place = [math.exp(score) / mass for score in (-0.1, -3, -4, -5)]
    assert made.decisions[0].probs == pytest.approx(by_place)
    assert made.decisions[1].probs == pytest.approx([*by_place[3:], *by_place[:3]])
    assert made.decisions[0].label_mass == pytest.approx(mass)
    assert [item.id for item in made.items] == ["mmlu_law/3", "mmlu_law/q7"]
    assert [item.gold for item in made.items] == [0, 0]
    assert made.items[1].candidates == ("ash", "tin", "oak", "elm")  # shown tin, oak, elm, ash
    assert [item.permutable for item in made.items] == [True, False]
    assert made.decisions[0].model == "org/model"
    mark["order"] = [1, 0]
    with pytest.raises(ItemError, match=r"doc\.unswayed\.order: \[1, 0\] is not an order of 4"):
        read("lm-eval", tmp_path, marked)


def test_ten_calls_keep_order_and_skip_mutual_information(tmp_path: Path) -> None:
    labels = "ABCDEFGHIJKL"
    many = lm_sample(0, target=11, doc={"question": "q", "options": list("abcdefghijkl")})
    many["arguments"] = {
        f"gen_args_{k}": {"arg_0": "c", "arg_1": f" {label}"} for k, label in enumerate(labels)
    }
    many["filtered_resps"] = [[str(-k - 1.0), "False"] for k in range(12)]
    pairs = [["ctx", f" {x}"] for x in "AB"] + [["", f" {x}"] for x in "AB"]
    doubled = lm_sample(1, metrics=["acc", "acc_mutual_info"], arguments=pairs, target="[0, 1]")
    doubled["filtered_resps"] = [-0.5, -1.5, -0.1, -0.2]  # in memory they are numbers
    doubled["doc"] = {"query": "q", "choices": {"text": ["x", "y"], "label": ["A", "B"]}}
    made = import_files("auto", [lines(tmp_path / SAMPLES, many, doubled)])
    assert made.decisions[0].labels == tuple(labels)
    assert made.decisions[0].choice == 0
    assert made.items[0].gold == 11
    assert (made.decisions[1].labels, made.decisions[1].choice) == (("A", "B"), 0)
    assert made.items[1].gold == (0, 1)


def test_cloze_tasks_have_no_order_and_one_filter_is_read(tmp_path: Path) -> None:
    cloze = lm_sample(0)
    cloze["arguments"] = [["ctx", " tin"], ["ctx", " oak"]]
    one_letter = {"arguments": [["ctx", {"until": []}]], "target": "B"}

    def generated(number: int, text: str, name: str) -> dict[str, object]:
        return lm_sample(number, filtered_resps=[text], filter=name, **one_letter)

    records = [
        generated(1, "(B)", "strict-match"),
        generated(2, "the second", "strict-match"),
        generated(1, "A", "flexible-extract"),
        {**generated(3, "A", "strict-match"), "doc": {"text": "free"}},
        {**cloze, "filter": "strict-match"},
    ]
    made = import_files("auto", [lines(tmp_path / SAMPLES, *records)])
    assert choices(made.decisions) == [((0, 1, 2, 3), 1), ((0, 1, 2, 3), None)]
    assert [item.gold for item in made.items] == [1, 1]
    assert counted(made) == {
        "another filter of the same answers": 1,
        "a generated answer whose options were not found in doc": 1,
        "options were scored as continuations: they have no order": 1,
    }
    assert made.counts["answers that are not a letter, unparsed"] == 1


def scored_as(number: int, *options: str, shown: tuple[str, ...] = ()) -> dict[str, object]:
    return lm_sample(
        number,
        doc={"question": "q", "choices": list(shown or options)},
        arguments=[["ctx", f" {option}"] for option in options],
        filtered_resps=[[str(-k - 1.0), "False"] for k in range(len(options))],
    )


def test_cloze_is_decided_once_per_file(tmp_path: Path) -> None:
    cloze = "options were scored as continuations: they have no order"
    digits = scored_as(2, "3", "7")
    mixed = lines(tmp_path / "m" / SAMPLES, scored_as(1, "tin", "oak"), digits)
    alone = lines(tmp_path / "a" / SAMPLES, digits)
    # questions about the labels themselves do not make a cloze task
    labels = [
        lines(
            tmp_path / name / SAMPLES, scored_as(n, x, y), scored_as(n + 1, x, y, shown=("a", "b"))
        )
        for name, n, x, y in (("b", 3, "A", "B"), ("c", 5, "1", "2"))
    ]
    made = import_files("lm-eval", [mixed, alone, *labels])
    assert [item.id for item in made.items] == [f"mmlu_law/{n}" for n in (3, 4, 5, 6)]
    assert counted(made) == {cloze: 3}
    for file, n in ((mixed, 2), (alone, 1)):
        with pytest.raises(ItemError, match=rf"no decisions \({n} {cloze}\)\."):
            import_files("auto", [file])


def test_scores_other_than_log_probabilities_are_rejected(tmp_path: Path) -> None:
    bad = lm_sample(0, filtered_resps=[["0.7", "False"]] * 4)
    with pytest.raises(ItemError, match=r"filtered_resps\[0\]: 0.7 is not a log-probability"):
        read("lm-eval", tmp_path, bad)


# PA-GRPO's results


def test_displayed_letters_are_taken_through_the_order(tmp_path: Path) -> None:
    results = [
        grpo_result("A", 0),
        grpo_result("A", 1),
        {"row_index": 3, "error": "CUDA", "golden_answer": None, "is_correct": None},
        grpo_result(None, 0, extra_info={"pair_id": "p", "permutation": 0}),
    ]
    made = import_files("auto", [grpo_file(tmp_path / "run_think" / "x_results.json", *results)])
    assert choices(made.decisions) == [((0, 1), 0), ((1, 0), 1), ((0, 1), None)]
    assert [(item.id, item.gold) for item in made.items] == [("mtbench/q7", 0), ("mtbench/p", 0)]
    assert made.decisions[0].model == "run_think"
    assert counted(made) == {"a call that failed (error)": 1}


def mcq(answer: str, permutation: str, golden: str, **extra: object) -> dict[str, object]:
    info = {"original_index": 11, "permutation": permutation, **extra}
    return grpo_result(
        answer, permutation, extra_info=info, golden_answer=golden, data_source="mmlu"
    )


def test_entries_tell_displayed_from_original_gold_letters(tmp_path: Path) -> None:
    # the right option is the original B: displayed at B, then at A
    displayed = [mcq("A", "ABCD", "B"), mcq("A", "BCDA", "A")]
    original = [mcq("A", "ABCD", "B"), mcq("A", "BCDA", "B")]
    for name, results in (("d", displayed), ("o", original)):
        made = import_files("auto", [grpo_file(tmp_path / f"{name}.json", *results)])
        assert [item.gold for item in made.items] == [1], name
        assert choices(made.decisions) == [((0, 1, 2, 3), 0), ((1, 2, 3, 0), 1)]
    stated = [mcq("A", "BCDA", "C", original_answer_idx=1)]
    made = import_files("auto", [grpo_file(tmp_path / "s.json", *stated)])
    assert made.items[0].gold == 1
    mixed = [mcq("A", "ABCD", "B"), mcq("A", "BCDA", "C")]
    with pytest.raises(ItemError, match="gold: of item 'mmlu/11' is another one"):
        import_files("auto", [grpo_file(tmp_path / "m.json", *mixed)])


def test_several_pairs_of_one_question_are_several_items(tmp_path: Path) -> None:
    results = [grpo_result("A", 0), grpo_result("B", 1), grpo_result("B", 0), grpo_result("B", 1)]
    made = import_files("auto", [array(tmp_path / "x.json", *results)])
    assert [item.id for item in made.items] == ["mtbench/q7", "mtbench/q7#1"]
    assert [decision.choice for decision in made.decisions] == [0, 0, 1, 0]


def test_probabilities_by_letter_become_those_by_candidate(tmp_path: Path) -> None:
    given = grpo_result("A", 1, answer_probability={"A": 0.6, "B": 0.2})
    partial = grpo_result("A", 0, answer_probability={"A": 0.6})
    made = import_files("auto", [grpo_file(tmp_path / "x.json", given, partial)])
    assert [decision.probs for decision in made.decisions] == [pytest.approx((0.25, 0.75)), None]
    assert list(counted(made, "answer_probability").values()) == [1]


# HANNA


def test_hanna_scores_are_means_and_failed_tries_are_counted(tmp_path: Path) -> None:
    rows = hanna_row(96, ChatGPT_p1_RE=-1.0), hanna_row(97, ChatGPT_p1_RE="", human3_RE="nan")
    made = import_files("auto", [table(tmp_path / "h.csv.gz", *rows)])
    assert made.counts["scores outside 1 to 5 (failed tries averaged in), kept"] == 1
    assert made.counts["scores that were not recorded"] == 1
    assert len(made.items) == 12
    assert made.items[0].id == "hanna-96/Relevance"
    assert made.items[0].values == (-1.0, 1.0, 2 + 1 / 3, 2 + 2 / 3, 5.0)
    first = [made.items[0].values[d.choice] for d in made.decisions[:2]]  # type: ignore[index]
    assert first == [-1.0, 2 + 2 / 3]
    assert [d.model for d in made.decisions[:2]] == ["ChatGPT/prompt1", "ChatGPT/prompt2"]
    assert made.items[0].gold == 3.0  # of 2, 3, 4
    assert made.items[6].gold == 2.5  # of 2, 3
    assert made.items[0].group == "Relevance"


def test_hanna_in_its_own_form_has_a_row_per_system(tmp_path: Path) -> None:
    wide = [hanna_wide("Human"), hanna_wide("GPT", **{"ChatGPT RE 1": "[nan, 4.5]"})]
    made = import_files("auto", [table(tmp_path / "wide.csv.gz", *wide)])
    assert [item.id for item in made.items[::6]] == [f"hanna-{k}/Relevance" for k in range(4)]
    assert [item.meta["system"] for item in made.items[::6]] == ["Human", "Human", "GPT", "GPT"]
    assert made.counts["scores that were not recorded"] == 1
    assert made.counts["decisions"] == 4 * 6 * 2 - 1
    broken = hanna_wide("GPT", **{"ChatGPT RE 1": "[1.0]"})
    with pytest.raises(ItemError, match=r"its lists have \[1, 2\] numbers"):
        import_files("auto", [table(tmp_path / "bad.csv.gz", broken)])


# SummEval by G-Eval


def test_replies_are_samples_and_one_without_number_is_unparsed(tmp_path: Path) -> None:
    replies = "4", " 3\nbecause 5", "- Coherence: 2", "Coherence (1-5): 5", "The summary", "0", "45"
    file = array(tmp_path / "gpt4_coh_detailed.json", geval_row(*replies))
    made = import_files("auto", [file])
    assert [d.choice for d in made.decisions] == [3, 2, 1, 4, None, None, None]
    assert [d.sample for d in made.decisions] == list(range(7))
    item = made.items[0]
    assert (item.id, item.gold, item.group) == ("dm-test-1/M11/coherence", 3.3, "coherence")
    assert (item.values, item.response) == ((1.0, 2.0, 3.0, 4.0, 5.0), "A summary.")
    assert made.decisions[0].model == "gpt4"


def test_fluency_is_asked_for_on_three_levels(tmp_path: Path) -> None:
    row = geval_row("3", "5", prompt="")
    made = import_files("auto", [array(tmp_path / "gpt4_flu_detailed.json", row)])
    assert made.items[0].values == (1.0, 2.0, 3.0)
    assert [d.choice for d in made.decisions] == [2, None]
    stated = geval_row("5", prompt="Fluency (1-5): ...\n\n- Fluency (scores ONLY):")
    made = import_files("auto", [array(tmp_path / "x.json", stated)])
    assert (made.items[0].n, made.decisions[0].choice) == (5, 4)
    with pytest.raises(ItemError, match="prompt: names no criterion"):
        import_files("auto", [array(tmp_path / "x.json", geval_row("5", prompt=""))])


# RewardBench


def test_the_chosen_answer_does_not_stand_first(tmp_path: Path) -> None:
    n = 200
    columns = reward_columns(
        results=[1] * n,
        scores_chosen=[2.0] * n,
        scores_rejected=[[1.0]] * n,
        prompt=["q" * 900] * n,  # long: the columns are decoded row by row
    )
    made = import_files("auto", [whole(tmp_path / "m.json", columns)])
    first = sum(item.gold == 0 for item in made.items)
    assert 70 < first < 130
    for item, decision in zip(made.items, made.decisions, strict=True):
        assert decision.choice == item.gold
        assert item.candidates[item.gold] == "Tin"  # type: ignore[index]
        assert decision.scores[item.gold] == 2.0  # type: ignore[index]
    assert made.items[0].group == "hep-python"
    assert any(name.startswith("order not recorded") for name in made.counts)


def test_a_half_is_a_tie_or_unread_and_equal_scores_are_a_tie(tmp_path: Path) -> None:
    judged = reward_columns(results=[0.5, 0], model_type="Generative RM")
    for name in ("scores_chosen", "scores_rejected"):
        del judged[name]
    made = import_files("auto", [whole(tmp_path / "g.json", judged)])
    assert made.decisions[0].choice is None
    assert made.decisions[1].choice == 1 - made.items[1].gold  # type: ignore[operator]
    scored = reward_columns(results=[0], scores_chosen=[1.0], scores_rejected=[1.0])
    made = import_files("auto", [whole(tmp_path / "s.json", scored)])
    assert made.decisions[0].choice == "tie"  # 0 in the file
    uneven = reward_columns(results=[1, 1], subset=["a"], id=[1])
    with pytest.raises(ItemError, match="columns differ in length"):
        import_files("auto", [whole(tmp_path / "u.json", uneven)])


def test_the_second_version_has_a_score_per_answer(tmp_path: Path) -> None:
    scores = [[2.0, 1.0, 0.5, 0.1], [[0.1], [0.7], [0.2], [0.3]], [3.0, 2.0, 1.0]]
    columns = {"results": [1, 0, 1], "subset": ["Math", "Math", "Ties"], "id": ["1", "2", "3"]}
    columns |= {"prompt": ["q"] * 3, "num_correct": [1, 1, 2], "scores": scores}
    columns["model"] = ["m", "n"]  # two judges together: no column
    made = import_files("auto", [whole(tmp_path / "v2.json", columns)])
    right = [
        d.choice in (i.gold if isinstance(i.gold, tuple) else (i.gold,))
        for i, d in zip(made.items, made.decisions, strict=True)
    ]
    assert right == [True, False, True]
    assert {decision.model for decision in made.decisions} == {"m+n"}
    assert [item.meta["answers"] == sorted(item.meta["answers"]) for item in made.items] == [
        False
    ] * 3
    assert list(counted(made, "order not recorded").values()) == [3]
    assert isinstance(made.items[2].gold, tuple)
    assert sorted(made.decisions[0].scores or ()) == [0.1, 0.5, 1.0, 2.0]  # type: ignore[type-var]


def test_one_object_of_no_format_is_refused_with_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"alpha": 1, "beta": ["b" * 100_000]}, indent=1))
    with pytest.raises(UsageError, match="unknown format; the fields are alpha, beta"):
        import_files("auto", [path])
    path.write_text('{\n "alpha": 1,\n')
    with pytest.raises(ItemError, match=r"x\.json:1: JSON: not valid JSON"):
        import_files("fastchat", [path])


def test_parquet_is_read_row_by_row(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [mt_row(question_id=k) for k in range(2500)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "gpt4_pair.parquet")
    made = import_files("auto", [tmp_path / "gpt4_pair.parquet"])
    assert made.counts["decisions"] == 2500
    assert made.items[0].candidates == ("Tin.", "Iron.")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(UsageError, match=r"cannot read .*bad\.parquet"):
        import_files("auto", [tmp_path / "bad.parquet"])


# Prometheus' rubric benchmarks

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
