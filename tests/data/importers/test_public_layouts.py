"""Public files of pairs in the exact layout in which their projects publish them; the content is made up."""

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest
from foreign_files import (
    OWN,
    alpaca,
    array,
    choices,
    counted,
    fastchat,
    inspect_sample,
    judgebench,
    lines,
    llmbar,
    mt_call,
    ratings,
    read,
    verdict,
)

from unswayed.base.errors import ItemError, UsageError
from unswayed.data.importers import import_files, parse_map
from unswayed.model.items import Message, text_of

OWN_ORDER, OTHER = (0, 1), (1, 0)


def both(first: object, second: object) -> list[tuple[tuple[int, ...], object]]:
    """The choices of a pair, shown in its own order and in the other one."""
    return [(OWN_ORDER, first), (OTHER, second)]


# JudgeBench: decisions are displayed letters


def test_judgebench_decisions_are_displayed_letters(tmp_path: Path) -> None:
    rows = judgebench("A>B", "A>B"), judgebench(None, "A=B", pair_id="p2")
    made = read("judgebench", tmp_path, *rows)
    assert choices(made.decisions) == [*both(0, 1), *both(None, "tie")]
    assert (made.items[0].gold, made.items[0].group) == (1, "Knowledge")
    assert made.items[0].meta["source"] == "mmlu-pro-law"
    assert (made.decisions[0].model, made.decisions[0].text) == ("arena_hard/m", "text")
    totals = {"records": 2, "items": 2, "decisions": 4, "unparsed": 1, "ties": 1, "bad records": 0}
    assert made.counts == totals


def test_judgebench_scores_are_kept_by_candidate(tmp_path: Path) -> None:
    record = judgebench("A>B", "B>A")
    record["judgments"][0]["judgment"]["scores"] = [3.0, 1.0]  # first shown first
    record["judgments"][1]["judgment"]["scores"] = [1.0, 3.0]
    made = read("judgebench", tmp_path, record)
    assert [decision.scores for decision in made.decisions] == [(3.0, 1.0), (3.0, 1.0)]


def test_judgebench_buckets(tmp_path: Path) -> None:
    buckets = {
        "livebench-reasoning": "Reasoning",
        "livebench-math": "Math",
        "livecodebench": "Coding",
        "mmlu-pro-math": "Knowledge",
        "elsewhere": None,
    }
    rows = [judgebench("A>B", "A>B", source=source, pair_id=source) for source in buckets]
    made = read("judgebench", tmp_path, *rows)
    assert {item.id: item.group for item in made.items} == buckets


def test_failed_judgment_is_counted_and_gives_no_decision(tmp_path: Path) -> None:
    record = judgebench("A>B", "A>B")
    record["judgments"][1] = None
    made = read("judgebench", tmp_path, record)
    assert choices(made.decisions) == [(OWN_ORDER, 0)]
    assert made.counts["calls that failed (null), left out"] == 1


# LLMBar: winners are by candidate; results are [text, finish reason] first, and the verdict last


def test_llmbar_verdicts_come_after_metrics_and_a_reference(tmp_path: Path) -> None:
    questions, reference = ["1. Is it a metal?", "stop"], ["Iron", "stop"]
    rows = [
        llmbar(questions, reference, verdict("1", "2")),
        llmbar(questions, verdict("2", "2"), input="Name a tree.", label=2, note="extra"),
        llmbar(verdict("1", "1"), verdict("2", "1"), input="Name a bird."),  # Swap: synthesised
        llmbar(verdict("None", None), input="Name a fish."),
    ]
    del rows[2]["label"]
    folder = tmp_path / "LLMBar" / "Adversarial" / "Manual" / "evaluators" / "GPT" / "CoT"
    folder.mkdir(parents=True)
    made = import_files("auto", [array(folder / "result.json", *rows)])
    assert choices(made.decisions) == [*both(0, 1), *both(1, 1), *both(1, 0), *both(None, None)]
    assert [item.gold for item in made.items] == [0, 1, None, 0]
    assert {item.group for item in made.items} == {"Adversarial/Manual"}
    assert len({item.id for item in made.items}) == 4
    assert {(d.model, d.finish_reason) for d in made.decisions} == {("GPT/CoT", "stop")}


def test_equal_llmbar_ratings_are_ties(tmp_path: Path) -> None:
    # to the project equal ratings, and one that is unread, are a win in each order
    cases: list[tuple[dict[str, object], tuple[object, object], object]] = [
        (ratings("8", "9", "2", "2"), (1, 1), (8.0, 9.0)),
        (ratings("9", "9", "2", "1"), ("tie", "tie"), (9.0, 9.0)),
        (ratings("I rate it 7", "5", "1", "1"), (0, 0), None),
        (ratings("", "9", "1", "2"), (None, None), None),
        (ratings("7", "nan", "1", "2"), (None, None), None),
        (ratings("7", None, "1", "2"), (None, None), None),
        (ratings("8.5", "9", "1", "2"), (1, 1), (8.5, 9.0)),  # to the project a half is unread
    ]
    rows = [llmbar(["metrics", "stop"], case, input=f"{k}") for k, (case, *_) in enumerate(cases)]
    made = import_files("auto", [array(tmp_path / "result.json", *rows)])
    assert choices(made.decisions) == [pair for _, own, _ in cases for pair in both(*own)]
    assert [decision.scores for decision in made.decisions[::2]] == [scores for *_, scores in cases]


def test_llmbar_without_a_verdict_is_counted_or_refused(tmp_path: Path) -> None:
    rows = [llmbar(verdict("1", "1")), llmbar({"swap = False": None}, input="Name a tree.")]
    made = import_files("llmbar", [array(tmp_path / "result.json", *rows)])
    assert counted(made) == {"no verdict was recorded": 1}
    last_is_text = [llmbar(["only a reference", "stop"])]
    with pytest.raises(ItemError, match="results: the last entry is not a verdict"):
        import_files("llmbar", [array(tmp_path / "bad.json", *last_is_text)])


# Auto-J: test data and outputs joined by line


@pytest.fixture
def autoj(tmp_path: Path) -> dict[str, Path]:
    texts = {"response 1": "By train.", "response 2": "By bus.", "scenario": "planning"}
    pairs = [{**texts, "label": label, "prompt": f"Plan trip {label}."} for label in (0, 1, 2)]
    outputs = {"own": [0, 0, 2], "exchanged": [1, 0, 2]}
    files = {
        name: lines(tmp_path / f"pairwise_{name}.jsonl", *({"output": k} for k in given))
        for name, given in outputs.items()
    }
    return {"data": lines(tmp_path / "testdata_pairwise.jsonl", *pairs), **files}


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
    assert choices(made.decisions) == [*both(0, 0), *both(0, 1), *both("tie", "tie")]
    assert [item.gold for item in made.items] == [0, 1, "tie"]
    assert [item.group for item in made.items] == ["planning"] * 3
    assert {decision.model for decision in made.decisions} == {"pairwise_own"}


def test_autoj_outputs_in_one_order_give_one_decision_each(autoj: dict[str, Path]) -> None:
    made = import_files("autoj", [autoj["data"], autoj["own"]])
    assert choices(made.decisions) == [(OWN_ORDER, 0), (OWN_ORDER, 0), (OWN_ORDER, "tie")]


def test_autoj_files_that_do_not_belong_together_are_refused(
    autoj: dict[str, Path], tmp_path: Path
) -> None:
    short = lines(tmp_path / "short.jsonl", {"output": 0})
    with pytest.raises(UsageError, match=r"by line: .*l 3, .*l 1"):
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
    assert (len(made.decisions), made.counts["bad records"]) == (2, 1)


# Position-Bias-Analyzer: record_<judge>.tsv

VICUNA = "vicuna-13b-v1.3"


def tsv(path: Path, rows: Sequence[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter="\t", quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)
    return path


def mt_bench(first: str, second: str, said: str) -> dict[str, str]:
    texts = {
        f"answer{place}_{turn}": f"{model} {text}"
        for place, model in ((1, first), (2, second))
        for turn, text in ((1, "sorts"), (2, '"again"'))
    }
    asked = {"question_1": "Sort a list.", "question_2": "And\nfaster?"}
    more = {"reference_answer_1": "Use sort.", "reference_answer_2": "nan", "task": "coding"}
    row = {"cmp_index": f"129;{first};{second}", **asked, **texts, "A": first, "B": second}
    return {**row, **more, "evaluating_guidance": "nan", "judge-x": said}


def test_mt_bench_reads_the_first_verdict_of_the_text(tmp_path: Path) -> None:
    records = [
        mt_call(VICUNA, "alpaca", "so [[B]] and not [[A]]"),
        mt_call("alpaca", VICUNA, "[[B]]"),
        mt_call(VICUNA, "other", "[[C]]"),
        mt_call("other", VICUNA, "A careful look, but no verdict"),
    ]
    made = read("mt-bench", tmp_path, *records)
    # candidate 0 is the reference model wherever it stands
    assert choices(made.decisions) == [*both(1, 0), *both("tie", None)]
    names = [item.candidates_by for item in made.items]
    assert names == [(VICUNA, "alpaca"), (VICUNA, "other")]
    assert (made.decisions[1].model, made.decisions[1].text) == ("j", "[[B]]")


def test_the_mt_bench_table_has_texts_turns_and_judge(tmp_path: Path) -> None:
    said = "Both are fine.\n[[A]]"
    rows = [mt_bench(VICUNA, "alpaca", said), mt_bench("alpaca", VICUNA, "[[A]]")]
    made = import_files("auto", [tsv(tmp_path / "Repetition2-record_judge-x_3.tsv", rows)])
    assert choices(made.decisions) == both(0, 1)
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
    split = {"consistent_cmp.tsv": rows[:2], "inconsistent_cmp.tsv": rows[2:]}
    made = import_files("auto", [tsv(folder / name, own) for name, own in split.items()])
    assert choices(made.decisions) == [*both(0, 0), *both(1, "tie"), (OWN_ORDER, None)]
    assert {(d.model, d.sample) for d in made.decisions} == {("judge-x", 2)}
    assert [decision.text for decision in made.decisions[:2]] == ["[[A]]", "so [[B]]"]


def test_repetitions_of_one_judge_are_samples(tmp_path: Path) -> None:
    files = [
        tsv(tmp_path / f"repetition{n}_judge.tsv", [mt_bench("a", "b", "[[B]]")]) for n in (1, 2, 3)
    ]
    made = import_files("mt-bench", files)
    assert [decision.sample for decision in made.decisions] == [0, 1, 2]


def test_the_dev_bench_table_has_one_turn_and_other_verdicts(tmp_path: Path) -> None:
    row = {"cmp_index": "uml;human;gpt", "question": "Draw it.", "A": "human", "B": "gpt"}
    row |= {"answer1": "this", "answer2": "that", "reference_answer": "", "task": "uml"}
    row |= {"evaluating_guidance": "Look at the arrows."}
    said = "Choice: B\nReason: fewer arrows than in [[A]]."
    made = import_files("auto", [tsv(tmp_path / "record.tsv", [{**row, "judge-x": said}])])
    (item,) = made.items
    assert (item.id, item.candidates) == ("uml;gpt;human", ("that", "this"))
    assert choices(made.decisions) == [(OTHER, 0)]
    with pytest.raises(ItemError, match="no column is named after a judge"):
        import_files("auto", [tsv(tmp_path / "none.tsv", [row])])
    with pytest.raises(ItemError, match="has no column answer1_1, answer1_2, "):
        import_files("auto", [tsv(tmp_path / "two.tsv", [{**row, "question_2": "", "j": said}])])


# FastChat: model_judgment/gpt-4_pair.jsonl


def test_fastchat_winners_are_models_and_not_letters(tmp_path: Path) -> None:
    rows = [
        fastchat("model_1", "model_1"),
        fastchat("model_1", "model_2", turn=2, judge=["gpt-4", "pair-v2-multi-turn"]),
        fastchat("tie", "error", question_id=82),
    ]
    made = read("auto", tmp_path, *rows)
    assert choices(made.decisions) == [*both(0, 0), *both(0, 1), *both("tie", None)]
    ids = [f"{name};alpaca;vicuna" for name in ("81;1", "81;2", "82;1")]
    assert [item.id for item in made.items] == ids
    assert made.decisions[0].model == "gpt-4/pair-v2"
    assert made.counts["unparsed"] == 1


def test_failed_fastchat_call_gives_no_decision(tmp_path: Path) -> None:
    made = read("fastchat", tmp_path, fastchat("model_2", "error", g2_judgment="$ERROR$"))
    assert choices(made.decisions) == [(OWN_ORDER, 1)]
    assert made.counts["calls that failed ($ERROR$), left out"] == 1


def test_fastchat_ratings_keep_scores_without_optional_fields(tmp_path: Path) -> None:
    row = fastchat("model_2", "model_2", m1_score=6.5, m2_score=8)
    for name in ("turn", "judge", "g1_user_prompt", "tstamp"):
        del row[name]
    made = read("auto", tmp_path, row)
    assert [decision.scores for decision in made.decisions] == [(6.5, 8.0), (6.5, 8.0)]
    with pytest.raises(ItemError, match="g1_winner: 'A' is not model_1, model_2, tie or error"):
        read("fastchat", tmp_path, fastchat("A", "B"))


# AlpacaEval: the order is told by the preference and P(M), here .1; without these it is unknown

LIKELY = {"first_token_logprobs": {"m": -0.10536051565782628, "M": -2.302585092994046}}


def test_alpaca_eval_tells_the_order_from_the_preference(tmp_path: Path) -> None:
    # preferring output_2 with .9 means it was shown first; with .1 second
    made = read("alpaca-eval", tmp_path, alpaca(1.9, **LIKELY), alpaca(1.1, "j", **LIKELY))
    assert choices(made.decisions) == [(OTHER, 1), (OWN_ORDER, 0)]
    assert made.decisions[0].probs == pytest.approx((0.1, 0.9))
    assert made.decisions[1].probs == pytest.approx((0.9, 0.1))
    assert made.decisions[0].label_mass == pytest.approx(1.0)
    item = made.items[0]
    assert (item.gold, item.group, item.candidates_by) == (
        None,
        "helpful_base",
        ("reference", "model"),
    )
    with pytest.raises(ItemError, match=r"x\.jsonl:1: preference: 1\.4 is neither"):
        read("alpaca-eval", tmp_path, alpaca(1.4, **LIKELY))


def test_alpaca_eval_leaves_out_what_it_cannot_tell(tmp_path: Path) -> None:
    records = [
        alpaca(1.9, **LIKELY),
        alpaca(1.5, "3", first_token_logprobs={"m": -1.0, "M": -1.0}),
        alpaca(1.9, "4", first_token_logprobs={"The": -0.1}),
    ]
    made = read("alpaca-eval", tmp_path, *records)
    assert len(made.decisions) == 1
    assert sorted(counted(made).values()) == [1, 1]


def test_alpaca_eval_reads_raw_completions_and_floors_labels(tmp_path: Path) -> None:
    tops = [{"token": "M", "logprob": -0.05}, {"token": "The", "logprob": -3.0}]
    raw = {"logprobs": {"content": [{"token": "M", "top_logprobs": tops}]}}
    # P(M) = e^-.05 / (e^-.05 + e^-3)
    (decision,) = read("alpaca-eval", tmp_path, alpaca(1.950276, raw_completion=raw)).decisions
    assert (decision.order, decision.choice, decision.censored) == (OWN_ORDER, 1, True)
    assert decision.probs == pytest.approx((0.0497, 0.9503), abs=1e-4)


def test_alpaca_eval_without_log_probabilities_lacks_an_order(tmp_path: Path) -> None:
    given = (1, 2.0, 1.5, 0, 1.31, None)
    rows = [alpaca(preference, f"{k}") for k, preference in enumerate(given)]
    made = read("auto", tmp_path, *rows, alpaca(1.5, "g", output_2="one"))
    assert [decision.choice for decision in made.decisions] == [0, 1, "tie", "tie", 0]
    assert {decision.probs for decision in made.decisions} == {None}
    assert list(counted(made, "order not recorded").values()) == [5]
    equal = "the outputs are equal: they were not judged"
    assert counted(made) == {"no preference was recorded": 1, equal: 1}
    with pytest.raises(ItemError, match=r"preference: 3\.0 is not between 1 and 2"):
        read("alpaca-eval", tmp_path, alpaca(3))


def test_odd_and_missing_optional_fields_are_accepted(tmp_path: Path) -> None:
    pair = judgebench("A>B", notes=[[1]])
    pair["judgments"] = [{"decision": "A>B", "judgment": ["raw"], "extra": 1}, {"decision": None}]
    for name in ("label", "source", "judge_name"):
        del pair[name]
    made = read("auto", tmp_path, pair)
    assert choices(made.decisions) == both(0, None)
    assert (made.items[0].gold, made.items[0].group) == (None, None)
    odd = alpaca(2, first_token_logprobs=[], raw_completion=[1], extra={"k": []})
    for name in ("generator_1", "generator_2", "annotator", "dataset"):
        del odd[name]
    assert choices(read("auto", tmp_path, odd).decisions) == [(OWN_ORDER, 1)]


# why an answer ended goes with it, as recorded, from every format that says so


def ended(first: str, second: str) -> dict[str, object]:
    return llmbar(
        {**ratings("7", "5", "1", "1"), "score_1": ["7", first], "score_2": ["5", second]}
    )


FILTERED = {"swap = False": {"completion": ["Output (a)", "policy"], "winner": "1"}}
STOPPED = {"choices": [{"message": {}, "stop_reason": "content_filter"}]}


@pytest.mark.parametrize(
    ("kind", "record", "reason"),
    [
        ("alpaca-eval", alpaca(1.0, raw_completion={"finish_reason": "length"}), "length"),
        ("alpaca-eval", alpaca(1.0, raw_completion={"stop_reason": "max_tokens"}), "max_tokens"),
        ("alpaca-eval", alpaca(1.0, raw_completion="m"), None),
        ("inspect", inspect_sample(output=STOPPED), "content_filter"),
        ("inspect", inspect_sample(output={"choices": []}), None),
        ("jsonl", {**OWN, "finish_reason": "end_turn"}, "end_turn"),
        ("llmbar", llmbar(FILTERED), "policy"),
        ("llmbar", ended("stop", "length"), "length"),
        ("llmbar", ended("length", "stop"), "length"),
        ("llmbar", ended("stop", "stop"), "stop"),
    ],
)
def test_import_keeps_finish_reason(
    kind: str, record: object, reason: str | None, tmp_path: Path
) -> None:
    made = read(kind, tmp_path, record)
    assert {decision.finish_reason for decision in made.decisions} == {reason}


def test_map_names_finish_reason_field(tmp_path: Path) -> None:
    records = [
        {"id": "1", "said": "I think A is better, but [[B", "meta": {"why": "length"}},
        {"id": "2", "said": "A", "meta": {"why": "stop"}},
        {"id": "3", "said": "A"},
    ]
    fields = parse_map("id=id,text=said,finish_reason=meta.why")
    made = read("jsonl", tmp_path, *records, fields=fields)
    assert [decision.finish_reason for decision in made.decisions] == ["length", "stop", None]
    assert [decision.choice for decision in made.decisions] == [None, 0, 0]
