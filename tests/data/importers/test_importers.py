"""Importers on records written for the tests: conventions of each format, and bad input."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from foreign_files import choices, lines

from unswayed.base.errors import ItemError, UnknownNameError, UsageError
from unswayed.data.importers import IMPORTERS, import_files, parse_map


def pair(first: str | None, second: str | None, **fields: object) -> dict[str, Any]:
    """A JudgeBench record with two decisions in displayed letters."""
    return {
        "pair_id": "p1",
        "source": "mmlu-pro-law",
        "question": "q",
        "response_A": "one",
        "response_B": "two",
        "label": "B>A",
        "judge_name": "arena_hard",
        "judgments": [
            {"judgment": {"judge_model": "m", "response": "text"}, "decision": first},
            {"judgment": {"judge_model": "m", "response": ""}, "decision": second},
        ],
        **fields,
    }


def test_judgebench_decisions_are_displayed_letters(tmp_path: Path) -> None:
    file = lines(tmp_path / "x.jsonl", pair("A>B", "A>B"), pair(None, "A=B", pair_id="p2"))
    made = import_files("judgebench", [file])
    # the first shown is candidate 0, then candidate 1
    assert choices(made.decisions) == [
        ((0, 1), 0),
        ((1, 0), 1),
        ((0, 1), None),
        ((1, 0), "tie"),
    ]
    assert made.items[0].gold == 1
    assert made.items[0].group == "Knowledge"
    assert made.items[0].meta["source"] == "mmlu-pro-law"
    assert (made.decisions[0].model, made.decisions[0].text) == ("arena_hard/m", "text")
    assert made.counts == {
        "records": 2,
        "items": 2,
        "decisions": 4,
        "unparsed": 1,
        "ties": 1,
        "bad_records": 0,
    }


def test_judgebench_scores_are_kept_by_candidate(tmp_path: Path) -> None:
    record = pair("A>B", "B>A")
    record["judgments"][0]["judgment"]["scores"] = [3.0, 1.0]  # first shown first
    record["judgments"][1]["judgment"]["scores"] = [1.0, 3.0]
    made = import_files("judgebench", [lines(tmp_path / "x.jsonl", record)])
    assert [decision.scores for decision in made.decisions] == [(3.0, 1.0), (3.0, 1.0)]


@pytest.mark.parametrize(
    ("source", "bucket"),
    [
        ("livebench-reasoning", "Reasoning"),
        ("livebench-math", "Math"),
        ("livecodebench", "Coding"),
        ("mmlu-pro-math", "Knowledge"),
        ("elsewhere", None),
    ],
)
def test_judgebench_buckets(tmp_path: Path, source: str, bucket: str | None) -> None:
    file = lines(tmp_path / "x.jsonl", pair("A>B", "A>B", source=source))
    assert import_files("judgebench", [file]).items[0].group == bucket


def test_failed_judgment_gives_no_decision(tmp_path: Path) -> None:
    record = pair("A>B", "A>B")
    record["judgments"][1] = None
    made = import_files("judgebench", [lines(tmp_path / "x.jsonl", record)])
    assert choices(made.decisions) == [((0, 1), 0)]


def test_llmbar_winners_are_already_by_candidate(tmp_path: Path) -> None:
    def result(own: object, swapped: object) -> dict[str, object]:
        return {
            "swap = False": {"completion": ["Output (a)", "stop"], "winner": own},
            "swap = True": {"completion": ["Output (a)", "stop"], "winner": swapped},
        }

    rows = [
        {
            "input": "i",
            "output_1": "x",
            "output_2": "y",
            "label": 2,
            "results": [result("1", "1"), result("1", "2")],  # the last one counts
        },
        {
            "input": "j",
            "output_1": "x",
            "output_2": "y",
            "label": 1,
            "results": [result("None", None)],
        },
    ]
    folder = tmp_path / "LLMBar" / "Adversarial" / "Manual" / "evaluators" / "GPT" / "CoT"
    folder.mkdir(parents=True)
    file = folder / "result.json"
    file.write_text(json.dumps(rows, indent=1))  # one array over many lines
    made = import_files("auto", [file])
    assert choices(made.decisions) == [((0, 1), 0), ((1, 0), 1), ((0, 1), None), ((1, 0), None)]
    assert [item.gold for item in made.items] == [1, 0]
    assert made.items[0].group == "Adversarial/Manual"
    assert made.decisions[0].model == "GPT/CoT"
    assert made.decisions[0].finish_reason == "stop"
    assert made.items[0].id != made.items[1].id


def alpaca(**fields: object) -> dict[str, object]:
    return {
        "instruction": "i",
        "output_1": "x",
        "output_2": "y",
        "generator_1": "g1",
        "generator_2": "g2",
        "preference": 1.9,
        "first_token_logprobs": {"m": -0.10536051565782628, "M": -2.302585092994046},  # .9, .1
        **fields,
    }


def test_alpaca_eval_tells_the_order_from_the_preference(tmp_path: Path) -> None:
    # P(M) = .1. Preferring output_2 with .9 means it was shown first; with .1 second.
    records = [alpaca(), alpaca(preference=1.1, instruction="j")]
    made = import_files("alpaca-eval", [lines(tmp_path / "x.jsonl", *records)])
    assert choices(made.decisions) == [((1, 0), 1), ((0, 1), 0)]
    assert made.decisions[0].probs == pytest.approx((0.1, 0.9))
    assert made.decisions[1].probs == pytest.approx((0.9, 0.1))
    assert made.decisions[0].label_mass == pytest.approx(1.0)
    assert made.items[0].gold is None


def test_alpaca_eval_leaves_out_what_it_cannot_tell(tmp_path: Path) -> None:
    even = {"m": -1.0, "M": -1.0}
    records = [
        alpaca(),
        alpaca(instruction="2", first_token_logprobs={}, output_2="x", preference=1.5),
        alpaca(instruction="3", first_token_logprobs=even, preference=1.5),
        alpaca(instruction="4", first_token_logprobs={"The": -0.1}),
    ]
    made = import_files("alpaca-eval", [lines(tmp_path / "x.jsonl", *records)])
    assert len(made.decisions) == 1
    left_out = {name: n for name, n in made.counts.items() if name.startswith("left_out")}
    assert sorted(left_out.values()) == [1, 1, 1]


def test_alpaca_eval_reads_raw_completions_and_floors_labels(tmp_path: Path) -> None:
    tops = [{"token": "M", "logprob": -0.05}, {"token": "The", "logprob": -3.0}]
    raw = {"logprobs": {"content": [{"token": "M", "top_logprobs": tops}]}}
    # P(M) = e^-.05 / (e^-.05 + e^-3)
    record = alpaca(first_token_logprobs=None, raw_completion=raw, preference=1.950276)
    (decision,) = import_files("alpaca-eval", [lines(tmp_path / "x.jsonl", record)]).decisions
    assert decision.order == (0, 1)
    assert decision.choice == 1
    assert decision.censored
    assert decision.probs == pytest.approx((0.0497, 0.9503), abs=1e-4)


def test_alpaca_eval_refuses_preferences_of_neither_order(tmp_path: Path) -> None:
    file = lines(tmp_path / "x.jsonl", alpaca(preference=1.4))
    with pytest.raises(ItemError, match=r"x\.jsonl:1: preference: 1\.4 is neither"):
        import_files("alpaca-eval", [file])


def test_mt_bench_reads_the_first_verdict_of_the_text(tmp_path: Path) -> None:
    def row(first: str, second: str, raw: str) -> dict[str, object]:
        return {
            "question_id": 81,
            "model_shown_as_A": first,
            "model_shown_as_B": second,
            "judge": "j",
            "raw": raw,
        }

    vicuna = "vicuna-13b-v1.3"
    records = [
        row(vicuna, "alpaca", "so [[B]] and not [[A]]"),
        row("alpaca", vicuna, "[[B]]"),
        row(vicuna, "other", "[[C]]"),
        row("other", vicuna, "A careful look, but no verdict"),
    ]
    made = import_files("mt-bench", [lines(tmp_path / "x.jsonl", *records)])
    # candidate 0 is the reference model wherever it stands
    assert choices(made.decisions) == [((0, 1), 1), ((1, 0), 0), ((0, 1), "tie"), ((1, 0), None)]
    assert len(made.items) == 2


def own(**fields: object) -> dict[str, object]:
    return {
        "item_id": "q1",
        "order": [1, 0],
        "labels": ["A", "B"],
        "label_set": ["A", "B"],
        "choice": 1,
        **fields,
    }


def test_own_decisions_pass_through(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.write(json.dumps(own()) + "\n\n" + json.dumps(own(item_id="q2", choice="tie")) + "\n")
    made = import_files("auto", [path])
    assert [decision.choice for decision in made.decisions] == [1, "tie"]
    assert made.items == ()


def mapped(tmp_path: Path, text: str, records: Sequence[Mapping[str, object]]) -> Any:
    return import_files("jsonl", [lines(tmp_path / "log.jsonl", *records)], fields=parse_map(text))


def test_a_map_reads_displayed_labels_and_swaps(tmp_path: Path) -> None:
    made = mapped(
        tmp_path,
        "id=key,order=meta.swapped,verdict=out.winner,tie=C,gold=best,prompt=q,candidates=a1|a2,group=kind",
        [
            {
                "key": 7,
                "meta": {"swapped": flag},
                "out": {"winner": said},
                "best": "B",
                "q": "?",
                "a1": "x",
                "a2": "y",
                "kind": "k",
            }
            for flag, said in ((False, "A"), ("true", "a "))
        ],
    )
    assert choices(made.decisions) == [((0, 1), 0), ((1, 0), 1)]
    (item,) = made.items
    assert (item.id, item.gold, item.group, item.candidates) == ("7", 1, "k", ("x", "y"))


def test_a_map_reads_ties_unparsed_and_candidate_symbols(tmp_path: Path) -> None:
    records = [
        {"id": "a", "swapped": True, "verdict": 1, "gold": 2},
        {"id": "a", "swapped": False, "verdict": "same", "gold": 2},
        {"id": "b", "swapped": True, "verdict": "?", "gold": "same"},
    ]
    made = mapped(
        tmp_path,
        "id=id,order=swapped,verdict=verdict,verdict_is=candidate,labels=1|2,tie=same,gold=gold",
        records,
    )
    # by candidate: "1" is candidate 0 although the order is swapped
    assert choices(made.decisions) == [((1, 0), 0), ((0, 1), "tie"), ((1, 0), None)]
    assert [item.gold for item in made.items] == [1, "tie"]
    assert made.decisions[0].labels == ("1", "2")


def test_a_map_reads_orders_of_four_as_lists_and_strings(tmp_path: Path) -> None:
    records = [
        {"id": "a", "order": [1, 2, 3, 0], "verdict": "D"},
        {"id": "b", "order": "BCDA", "verdict": "D"},
    ]
    made = mapped(tmp_path, "id=id,order=order,verdict=verdict,labels=A|B|C|D", records)
    # BCDA shows candidate 0 last, under D
    assert choices(made.decisions) == [((1, 2, 3, 0), 0), ((1, 2, 3, 0), 0)]
    assert made.items[0].task == "mcq"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"order": "ABBA", "verdict": "A", "id": "a"}, "order: 'ABBA' is not an order"),
        (
            {"order": "BCDA", "verdict": "A", "id": "a"},
            r"order: 'BCDA' is not an order of A\|B: name other symbols in labels=",
        ),
        ({"order": "original", "verdict": "A", "id": "a"}, "else no, false or 0"),
        ({"order": [0, 2], "verdict": "A", "id": "a"}, "is not a permutation"),
        ({"order": True, "verdict": "A"}, "id: None is not an id"),
        ({"order": True, "verdict": "A", "id": "a", "gold": "Z"}, "gold: 'Z' names no candidate"),
    ],
)
def test_a_map_that_does_not_fit_a_record_names_the_field(
    tmp_path: Path, record: dict[str, object], message: str
) -> None:
    with pytest.raises(ItemError, match=rf"log\.jsonl:1: .*{message}"):
        mapped(tmp_path, "id=id,order=order,verdict=verdict,gold=gold", [record])


def test_a_map_under_which_nothing_can_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ItemError, match=r"is one of A\|B or tie"):
        mapped(tmp_path, "id=id,verdict=verdict", [{"id": "a", "verdict": "first"}])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id=a", "needs verdict"),
        ("id=a,verdict", "write field=name"),
        ("id=a,verdikt=b", "Did you mean 'verdict'"),
        ("id=a,verdict=b,id=c", "given twice"),
        ("id=a,verdict=b,verdict_is=position", "write label, candidate or name"),
        ("id=a,verdict=b,labels=A", "different symbols"),
        ("id=a,verdict=b,verdict_is=name", "verdict_is=name needs names="),
        ("id=a,verdict=b,candidates_are=seen", "write own or shown"),
        ("id=a,verdict=b,names=m1|m2,order=o", "leave out order="),
        ("id=a,verdict=b,tie=a", "also a word for tie"),
    ],
)
def test_a_bad_map_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_map(text)


def test_a_map_belongs_to_jsonl(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="judgebench knows its own fields"):
        import_files("judgebench", [tmp_path], fields=parse_map("id=a,verdict=b"))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (pair("A>B", "A>>B"), r"judgments\[1\]\.decision: 'A>>B' is not A>B"),
        (pair("A>B", "A>B", label="C"), "label: 'C' is not"),
        (pair("A>B", "A>B", judgments=[None] * 3), "judgments: expected 1 or 2, got 3"),
        (pair("A>B", "A>B", question=None), "question: Expected `str`, got `null`"),
        ({"pair_id": "p"}, "missing required field"),
        ([1], "expected an object, got list"),
    ],
)
def test_a_bad_record_is_reported_with_file_line_and_field(
    tmp_path: Path, record: object, message: str
) -> None:
    file = lines(tmp_path / "x.jsonl", pair("A>B", "A>B", pair_id="fine"), record)
    with pytest.raises(ItemError, match=rf"x\.jsonl:2: .*{message}"):
        import_files("judgebench", [file])
    made = import_files("judgebench", [file], on_bad_item="skip")
    assert made.counts["bad_records"] == 1
    assert [bad.line for bad in made.bad_records] == [2]
    assert len(made.decisions) == 2


def test_the_same_question_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    first = lines(tmp_path / "a.jsonl", pair("A>B", "A>B"))
    second = lines(tmp_path / "b.jsonl", pair("B>A", "A>B"))
    with pytest.raises(ItemError, match=r"b\.jsonl:1: item: 'p1' in order \[0, 1\].*a\.jsonl:1"):
        import_files("judgebench", [first, second])


def test_an_id_with_two_texts_is_refused(tmp_path: Path) -> None:
    records = [pair("A>B", "A>B"), pair("A>B", "A>B", question="another", judge_name="other")]
    with pytest.raises(ItemError, match=r"x\.jsonl:2: prompt: of item 'p1' is another one at"):
        import_files("judgebench", [lines(tmp_path / "x.jsonl", *records)])


def test_unreadable_input_is_an_error(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n\n")
    with pytest.raises(ItemError, match="no decisions"):
        import_files("judgebench", [empty])
    broken = tmp_path / "broken.json"
    broken.write_text('[{"input": ')
    with pytest.raises(ItemError, match=r"broken\.json: not a valid JSON array"):
        import_files("llmbar", [broken])
    with pytest.raises(UsageError, match="cannot read"):
        import_files("llmbar", [tmp_path / "absent.json"])
    with pytest.raises(UsageError, match="no files"):
        import_files("llmbar", [])


def test_an_unknown_kind_or_format_says_what_there_is(tmp_path: Path) -> None:
    file = lines(tmp_path / "x.jsonl", {"foo": 1, "bar": 2})
    with pytest.raises(UnknownNameError, match="Did you mean 'judgebench'"):
        import_files("judgebnch", [file])
    with pytest.raises(UsageError, match=r"unknown format; the fields are bar, foo.*--map"):
        import_files("auto", [file])


@pytest.mark.parametrize("name", sorted(IMPORTERS))
def test_every_importer_claims_only_its_own_format(name: str) -> None:
    importer = IMPORTERS.load(name)
    assert importer.title.endswith(".")
    assert not importer.detects({"foo": 1})


def test_a_record_of_many_fields_is_told_by_some_of_them(tmp_path: Path) -> None:
    record = lines(tmp_path / "wide.jsonl", {f"field_{k:03}": k for k in range(700)})
    with pytest.raises(UsageError, match=r"field_000, .* and 688 more\. Name one of") as raised:
        import_files("auto", [record])
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("head", [b"PK\x03\x04\x14\x00", b"\x80\x04\x95\x00\x00", b"\xff\xfe{\x00"])
def test_binary_file_is_rejected(tmp_path: Path, head: bytes) -> None:
    file = tmp_path / "judgments.xlsx"
    file.write_bytes(head + b"\nmore\n")
    with pytest.raises(
        UsageError, match=r"judgments\.xlsx: not UTF-8 text.* export a spreadsheet as .*\.csv"
    ):
        import_files("auto", [file])
