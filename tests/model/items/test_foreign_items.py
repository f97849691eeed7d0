"""Items in other people's columns: what is taken for what, and what is refused."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import unswayed as us
from unswayed.base.errors import ItemError, UsageError
from unswayed.cli import main
from unswayed.model.items import ItemSet, items_of, load_items
from unswayed.model.items.foreign import parse_columns, written_columns


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


SHEET = """Nr.,Question text,Answer from GPT,Answer from Claude,Which is better?,Notes
1,What is 2+2?,4,5,GPT,
2,Capital of France?,Lyon,Paris,Claude,hm
"""
GOOD: dict[str, tuple[list[dict[str, Any]], str | None, list[Any]]] = {
    "sheet": (
        table(SHEET),
        "prompt=Question text,candidates=Answer from GPT|Answer from Claude,gold=Which is better?,id=Nr.",
        [0, 1],
    ),
    "families and a letter": (
        table("question,answer_a,answer_b,label\nWhat is 2+2?,4,5,A\nCapital?,Lyon,Paris,B\n"),
        None,
        [0, 1],
    ),
    "mmlu": (
        [
            {"question": f"q{k}", "subject": "law", "choices": list("wxyz"), "answer": k}
            for k in range(4)
        ],
        None,
        [0, 1, 2, 3],
    ),
    "mmlu-pro": (
        [
            {
                "question_id": k,
                "question": f"q{k}",
                "options": list("wxyzuv"),
                "answer": "ABCDEF"[k],
                "answer_index": k,
                "category": "law",
            }
            for k in range(6)
        ],
        None,
        list(range(6)),
    ),
    "arc": (
        [
            {
                "id": f"M{k}",
                "question": f"q{k}",
                "choices": {"text": list("wxyz"), "label": ["1", "2", "3", "4"]},
                "answerKey": str(k + 1),
            }
            for k in range(4)
        ],
        None,
        [0, 1, 2, 3],
    ),
    "medqa": (
        [
            {"question": f"Q{k}", "options": {"A": "w", "B": "x", "C": "y"}, "answer_idx": "ABC"[k]}
            for k in range(3)
        ],
        None,
        [0, 1, 2],
    ),
    "text": (
        [
            {"question": f"q{k}", "options": ["oak", "iron", "salt"], "answer": ["iron", "salt"][k]}
            for k in range(2)
        ],
        None,
        [1, 2],
    ),
    "integer ids": (
        [{"id": k, "prompt": f"Q{k}", "candidates": ["a", "b"], "gold": k % 2} for k in range(4)],
        None,
        [0, 1, 0, 1],
    ),
    "no ids, one twice": ([{"prompt": "Q", "candidates": ["a", "b"], "gold": 1}] * 2, None, [1, 1]),
    "nested": (
        [
            {"item": {"q": f"Q{k}"}, "responses": [{"text": f"x{k}"}, {"text": f"y{k}"}]}
            for k in range(3)
        ],
        "prompt=item.q,candidates=responses[0].text|responses[1].text",
        [None] * 3,
    ),
    "JSON in a cell": (
        table('question,choices,answer\nQ0,"[""w"", ""x""]",0\nQ1,"[""y"", ""z""]",1\n'),
        None,
        [0, 1],
    ),
    "ties": (
        [
            {
                "instruction": f"Q{k}",
                "output_1": "a",
                "output_2": "b",
                "preference": ["A", "B", "tie"][k],
            }
            for k in range(3)
        ],
        None,
        [0, 1, "tie"],
    ),
    "option that is a word for a tie": (
        [
            {"question": f"q{k}", "choices": ["more", "equal"], "answer": ["equal", "more"][k]}
            for k in range(2)
        ],
        None,
        [1, 0],
    ),
    "scores of levels": (
        table("question,response,level_1,level_2,level_3,label\nq,r,x,y,z,1\ns,r,x,y,z,2.5\n"),
        None,
        [1, 2.5],
    ),
    "scores of listed levels": (
        [
            {
                "id": k,
                "prompt": f"Q{k}",
                "response": "r",
                "candidates": list("xyz"),
                "values": [1, 2, 3],
                "gold": k + 1,
            }
            for k in range(3)
        ],
        None,
        [1, 2, 3],
    ),
    "scores by criterion": (
        [
            {
                "question": "Q",
                "response": "r",
                "level_1": "x",
                "level_2": "y",
                "criteria": ["s", "t"],
                "label": {"s": 1, "t": 2},
            }
        ],
        None,
        [{"s": 1, "t": 2}],
    ),
    "chosen with gold of its own": (
        [{"prompt": f"Q{k}", "chosen": f"x{k}", "rejected": f"y{k}", "label": k} for k in (0, 1)],
        "candidates=chosen|rejected,gold=label",
        [0, 1],
    ),
    "arrays in a cell": (
        [
            {
                "question": f"Q{k}",
                "choices": {"text": np.array(["x", "y"]), "label": np.array(["A", "B"])},
                "answerKey": "AB"[k],
            }
            for k in range(2)
        ],
        None,
        [0, 1],
    ),
    "texts that are JSON": (
        [{"question": "Q", "output_1": "[1, 2]", "output_2": '{"a": 1}', "label": "A"}],
        None,
        [0],
    ),
    "column like a field": (
        [{"question": "Q", "choices": ["a", "b"], "results": "x"}],
        None,
        [None],
    ),
    "from 1, given": (
        [{"question": f"Q{k}", "choices": ["a", "b", "c"], "label": 1} for k in range(3)],
        "gold=label,gold_from=1",
        [0, 0, 0],
    ),
    "from 1, seen": (
        [{"question": f"Q{k}", "choices": ["a", "b"], "label": k % 2 + 1} for k in range(4)],
        None,
        [0, 1, 0, 1],
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_layout_is_read(name: str) -> None:
    records, columns, gold = GOOD[name]
    items = items_of(records, name=name, columns=columns or None)
    assert [item.gold for item in items] == gold
    assert len({item.id for item in items}) == len(records)
    assert all(item.prompt for item in items)


def test_what_was_taken_is_a_sentence() -> None:
    (records, _, _) = GOOD["mmlu"]
    items = items_of([{**record, "source": "web"} for record in records], name="data.csv")
    assert items.read_as == (
        "data.csv: took choices as candidates; question as prompt; subject as group; answer as gold (the "
        "right candidate counted from 0); ids made from the texts; source into meta."
    )
    assert items[0].meta == {"source": "web"}
    assert items[0].group == "law"


def test_own_records_are_read_without_a_word() -> None:
    own = [{"id": "x", "prompt": "Q", "candidates": ["a", "b"], "gold": 1}]
    assert items_of(own).read_as == ""
    assert items_of(table("id,prompt,answer_a,answer_b,gold\n1,q,4,5,1\n")).read_as == ""


def test_ids_depend_on_the_texts_alone() -> None:
    rows = [{"question": f"Q{k}", "choices": ["a", "b"]} for k in range(3)]
    ids = [item.id for item in items_of(rows)]
    assert [item.id for item in items_of(rows[::-1])] == ids[::-1]
    assert [item.id for item in items_of([rows[0]] * 3)] == [ids[0], f"{ids[0]}-2", f"{ids[0]}-3"]


def test_column_of_ids_that_repeat_goes_into_meta() -> None:
    items = items_of([{"qid": 7, "question": q, "choices": ["a", "b"]} for q in "xy"])
    assert [item.meta["qid"] for item in items] == [7, 7]
    assert "qid, which is not unique, into meta" in items.read_as
    with pytest.raises(ItemError, match="'7' was used on line 1 already"):
        items_of([{"id": 7, "prompt": q, "candidates": ["a", "b"]} for q in "xy"])


def test_blank_ids_are_counted() -> None:
    rows = [{"id": own, "question": f"Q{own}", "choices": ["a", "b"]} for own in ("x", "", None)]
    items = items_of(rows)
    assert "2 ids made from the texts, where id is empty" in items.read_as
    assert [item.id[:5] for item in items] == ["x", "item-", "item-"]
    with_qid = [{"qid": own, "question": f"Q{own}", "choices": ["a", "b"]} for own in (1, None)]
    assert "1 id made from the texts, where qid is empty" in items_of(with_qid).read_as


@pytest.mark.parametrize("golds", [["tie", ""], ["", None], ["tie", "both"]])
def test_gold_without_candidate_is_not_reported_as_number(golds: list[str | None]) -> None:
    items = items_of(
        [{"question": f"Q{own}", "choices": ["a", "b"], "label": own} for own in golds]
    )
    assert "label as gold" in items.read_as
    assert "counted" not in items.read_as
    assert [item.gold for item in items] == [
        "tie" if own in ("tie", "both") else None for own in golds
    ]


def test_letters_of_gold_have_any_case() -> None:
    items = items_of([{"question": own, "choices": ["x", "y"], "label": own} for own in "ab"])
    assert [item.gold for item in items] == [0, 1]


def test_text_of_columns_works_at_every_door(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("Q?,one,two\nq,a,b\n")
    columns = "prompt=Q?,candidates=one|two"
    expected = us.load_items(
        tmp_path / "x.csv", columns={"prompt": "Q?", "candidates": ["one", "two"]}
    )
    rows = [{"Q?": "q", "one": "a", "two": "b"}]
    assert us.load_items(tmp_path / "x.csv", columns=columns).items == expected.items
    assert us.load_data(tmp_path / "x.csv", columns=columns).items == expected.items
    assert us.load_data(rows, columns=columns).items == expected.items
    assert items_of(rows, columns=columns).items == expected.items


TEXTS: Final = ("movies", "dull complete simple", "broken sound kind")


def test_made_ids_are_the_same_from_every_door(tmp_path: Path) -> None:
    question, first, second = TEXTS
    (tmp_path / "x.csv").write_text(f"question,answer_a,answer_b\n{question},{first},{second}\n")
    row: dict[str, Any] = {"prompt": question, "candidates": [first, second]}
    (tmp_path / "x.jsonl").write_text(json.dumps(row))
    doors = [us.load_items(tmp_path / "x.csv"), us.load_items(tmp_path / "x.jsonl")]
    doors += [us.load_data([row]), us.load_data([{**row, "candidates": np.array([first, second])}])]
    ids = {item.id for items in doors for item in items}
    with us.Judge("simulated/judge", method="vote") as judge:
        ids.add(judge.compare(*TEXTS).item_id)
        ids |= {verdict.item_id for verdict in judge.verdicts([row])}
    assert len(ids) == 1


def test_fitted_file_judges_an_item_the_same_from_every_door(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, file = "simulated/judge?slot=1&noise=0.6", tmp_path / "pride.json"
    us.calibrate("pride", us.load_data("tiny-judge", limit=100), model, out=file)
    question, first, second = TEXTS
    path = tmp_path / "x.csv"
    path.write_text(f"question,answer_a,answer_b,subject\n{question},{first},{second},films\n")
    capsys.readouterr()
    assert main(["judge", str(path), "--model", model, "--method", str(file)]) == 0
    told = json.loads(capsys.readouterr().out)
    audited = next(iter(us.audit(model, path, resamples=100, methods="direct").decisions))
    with us.Judge(model, method=us.load_method(file)) as judge:
        verdict = judge.compare(*TEXTS)
        (again,) = judge.verdicts(us.load_items(path))
    assert (told["item_id"], told["confidence"]) == (verdict.item_id, verdict.confidence)
    assert again == verdict
    assert audited.item_id == verdict.item_id


def test_judge_reads_other_columns_from_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(json.dumps(row) + "\n" for row in GOOD["mmlu"][0])
    (tmp_path / "x.jsonl").write_text(rows)
    command = ["--model", "simulated/judge", "--method", "vote"]
    assert main(["judge", str(tmp_path / "x.jsonl"), *command]) == 0
    filed = capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    assert main(["judge", "-", *command]) == 0
    piped = capsys.readouterr()
    assert piped.out == filed.out
    assert "unswayed: -: took choices as candidates; question as prompt" in piped.err
    bad = rows + "\n{}\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(bad.encode())))
    assert main(["judge", "-", *command]) == 2
    assert "-:6: question: is empty" in capsys.readouterr().err


def chosen(k: int, *, talk: bool) -> dict[str, Any]:
    if not talk:
        return {"prompt": f"Q{k}", "chosen": f"good{k}", "rejected": f"bad{k}"}
    turns = [{"role": "user", "content": f"Q{k}"}]
    return {
        word: [*turns, {"role": "assistant", "content": f"{text}{k}"}]
        for word, text in (("chosen", "good"), ("rejected", "bad"))
    }


@pytest.mark.parametrize("talk", [False, True])
def test_chosen_is_gold_in_either_place(talk: bool) -> None:
    items = items_of([chosen(k, talk=talk) for k in range(40)])
    assert all("good" in str(item.candidates[item.gold]) for item in items)  # type: ignore[index]
    assert 8 <= sum(item.gold == 0 for item in items) <= 32
    assert all(f"Q{k}" in str(item.prompt) for k, item in enumerate(items))


BAD: dict[str, tuple[list[dict[str, Any]], str]] = {
    "two prompts": (
        [{"question": "q", "instruction": "i", "choices": ["a", "b"]}],
        "prompt could be question or instruction. Choose with --columns prompt=question",
    ),
    "two lists": (
        [{"question": "q", "choices": ["a", "b"], "options": ["c", "d"]}],
        "candidates could be choices or options",
    ),
    "two golds": (
        [{"question": "q", "choices": ["a", "b"], "answer": 0, "label": 1}],
        "gold could be answer or label",
    ),
    "0 or 1": (
        [{"question": f"q{k}", "choices": ["a", "b", "c"], "answer": k} for k in (1, 2)],
        "counted from 0 or the right candidate counted from 1, which differ.*gold_from=0",
    ),
    "letter or text": (
        [{"question": "q", "choices": ["B", "A"], "answer": "A"}],
        "the letter of the right candidate or the text",
    ),
    "neither": (
        [{"question": "q", "choices": ["a", "b"], "answer": "42"}],
        "answer is '42' where the candidates are 'a', 'b'. Write letters, .* and tie for a tie",
    ),
    "nothing": ([{"x": 1, "y": 2}], r"no candidates among its fields \(x, y\)"),
    "no prompt": ([{"choices": ["a", "b"]}], "no prompt among its fields"),
    "misspelt": (
        [{"question": "q", "choices": ["a", "b"], "glod": 1}],
        "glod is not a field of an item. Did you mean 'gold'",
    ),
    "own, misspelt": (
        [{"id": "1", "prompt": "q", "candidates": ["a", "b"], "glod": 1}],
        "glod: .*Did you mean 'gold'",
    ),
    "own gold from 1": (
        table("id,prompt,answer_a,answer_b,gold\n1,q,4,5,1\n2,r,4,5,2\n"),
        "gold counts from 0, and .* names no candidate.*gold_from=1",
    ),
    "index or text, with a point": (
        [{"question": f"q{k}", "choices": ["1", "0"], "answer": float(k)} for k in range(2)],
        "counted from 0 or the text of the right candidate, which differ",
    ),
    "chosen or gold": (
        [{"prompt": "q", "chosen": "a", "rejected": "b", "gold": 1}],
        "gold could be chosen or gold",
    ),
    "huge number": (
        [{"question": "q", "choices": ["a", "b"], "answer": 10**400}],
        "answer is '1000.* where the candidates are",
    ),
    "nested cell": (
        [{"question": "q", "choices": "[" * 10_000}],
        "data.csv:1: choices: has no list",
    ),
    "text for candidates": (
        [{"question": "q", "choices": {"text": "foo", "label": "bar"}}],
        "data.csv:1: choices: has no list",
    ),
    "candidate of another type": (
        [{"question": "q", "choices": ["a", 2]}],
        r"data.csv:1: choices\[1\]: Expected `str",
    ),
    "prompt of another type": (
        [{"question": 5, "choices": ["a", "b"]}],
        "data.csv:1: question: Expected `str",
    ),
    "no question in a row": (
        [{"question": q, "choices": ["a", "b"]} for q in ("q", None)],
        "data.csv:2: question: is empty",
    ),
    "nothing chosen": (
        [{"prompt": "q", "chosen": None, "rejected": "b"}],
        "data.csv:1: chosen: is empty",
    ),
    "texts without prompt": (
        [{"chosen": "a", "rejected": "b"}],
        "data.csv:1: prompt: is missing, and chosen and rejected share no first turns",
    ),
    "turns of texts": ([{"chosen": ["a", "b"], "rejected": ["a", "c"]}], "share no first turns"),
    "text as meta": (
        [{"question": "q", "choices": ["a", "b"], "meta": "x", "source": "web"}],
        "meta: expected an object, got str",
    ),
    "one candidate": (
        [{"question": "q", "choices": ["a"]}],
        "choices: has no list of at least two",
    ),
    "one column of candidates, with gold": (
        [{"question": "q", "choices": "a", "answer": "b"}],
        r"choices: has no list of at least two candidates .two columns: candidates=FIRST\|SECOND",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_ambiguous_or_unknown_layout_is_rejected(name: str) -> None:
    records, reason = BAD[name]
    with pytest.raises(ItemError, match=reason):
        items_of(records, name="data.csv")


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("prompt=Question", "data.csv has no such field"),
        ("promt=question", "promt is not a field of an item. Did you mean 'prompt'"),
        ("question=prompt", "question is not a field of an item. Did you mean 'prompt'"),
        ("question", "write field=column"),
        ("gold=answer,gold_from=2", "gold_from=2: write one of 0, 1, letters"),
        ("group=answer,gold_from=0", "data.csv has no column that names the right candidate"),
    ],
)
def test_wrong_columns_are_rejected(columns: str, reason: str) -> None:
    rows = [{"question": "q", "choices": ["a", "b"], "answer": 0}]
    with pytest.raises(UsageError, match=reason):
        items_of(rows, name="data.csv", columns=columns)


def test_signs_in_names_are_doubled() -> None:
    text = "prompt=a,,b,candidates=x||y|z"
    columns = {"prompt": ("a,b",), "candidates": ("x|y", "z")}
    assert parse_columns(text) == columns
    assert written_columns(columns) == text


def test_bad_row_is_named_by_its_column_and_line(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("question,answer_a,answer_b,label\nq,1,2,A\nr,1,2,C\ns,1,2,B\n")
    with pytest.raises(ItemError, match="label is 'C' where"):
        load_items(path)
    with pytest.raises(ItemError, match=r"x.csv:3: label: 'C' is not the letter"):
        load_items(path, columns={"gold": "label", "gold_from": "letters"})
    kept = load_items(path, columns={"gold": "label", "gold_from": "letters"}, on_bad_item="skip")
    assert [item.gold for item in kept] == [0, 1]
    assert [line.line for line in kept.bad_lines] == [3]


@pytest.mark.parametrize("form", ["jsonl", "json", "jsonl.gz", "memory", "frame", "columns"])
def test_forms_of_a_source_give_the_same_items(form: str, tmp_path: Path) -> None:
    rows = GOOD["mmlu-pro"][0]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path = tmp_path / f"x.{form}"
    if form == "memory":
        got: ItemSet = us.load_data(rows)
    elif form == "frame":
        got = us.load_data(pytest.importorskip("pandas").DataFrame(rows))
    elif form == "columns":
        got = us.load_data({name: [row[name] for row in rows] for name in rows[0]})  # type: ignore[arg-type]
    else:
        path.write_bytes(
            {"jsonl": lines, "json": json.dumps(rows).encode(), "jsonl.gz": gzip.compress(lines)}[
                form
            ]
        )
        got = us.load_data(path)
    assert got.items == items_of(rows).items


def test_splits_are_rejected() -> None:
    class Split(list[Any]):
        column_names = ("question",)

    with pytest.raises(UsageError, match="items has the splits train, test"):
        us.load_data({"train": Split(), "test": Split()})  # type: ignore[arg-type]


def test_audit_reports_how_columns_were_read(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"question": f"Q{k}", "choices": ["a", f"b{k}"], "answer": k % 2} for k in range(20)]
    result = us.audit("simulated/judge", rows, resamples=100)
    sentence = "items: took choices as candidates; question as prompt;"
    assert sentence in capsys.readouterr().err
    assert result.run["data"]["read_as"].startswith(sentence)
    given = us.audit("simulated/judge", rows, columns={"group": "answer"}, resamples=100)
    assert "answer as group" in given.run["data"]["read_as"]


def test_judge_command_reads_other_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "x.jsonl", tmp_path / "verdicts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in GOOD["mmlu"][0]))
    assert (
        main(
            [
                "judge",
                str(path),
                "--model",
                "simulated/judge",
                "--method",
                "vote",
                "--out",
                str(out),
            ]
        )
        == 0
    )
    assert "took choices as candidates" in capsys.readouterr().err
    assert len(out.read_text().splitlines()) == 4
    given = [
        "--columns",
        "gold=answer,prompt=question,group=subject",
        "--out",
        str(tmp_path / "v.jsonl"),
    ]
    assert main(["judge", str(path), "--model", "simulated/judge", "--method", "vote", *given]) == 0


OWN: dict[str, str] = {
    "scores from 1": "id,prompt,response,level_1,level_2,gold\n1,q,r,a,b,1\n2,q,r,a,b,2\n",
    "no prompt": "id,prompt,answer_a,answer_b,gold\n1,,a,b,1\n",
}


@pytest.mark.parametrize("name", OWN)
def test_own_table_is_read_strictly(name: str, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(OWN[name])
    rows = [json.loads(row["gold"]) for row in table(OWN[name])]
    items = load_items(path)
    assert [item.gold for item in items] == rows
    assert items.read_as == ""


def test_own_records_may_differ_in_form() -> None:
    own = {"prompt": "q", "gold": 1}
    items = items_of(
        [
            {"id": "x", "answer_a": "a", "answer_b": "b", **own},
            {"id": "y", "candidates": ["a", "b"], **own},
        ]
    )
    assert [item.gold for item in items] == [1, 1]


def test_bad_first_line_does_not_decide_the_form(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    rows = [json.dumps(row) for row in GOOD["mmlu"][0]]
    path.write_text("\n".join(["{", *rows]))
    with pytest.raises(ItemError, match=r"x.jsonl:1: JSON: not valid JSON"):
        load_items(path)
    assert [item.gold for item in load_items(path, on_bad_item="skip")] == [0, 1, 2, 3]


def test_missing_values_of_pandas_are_missing() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [{"question": f"q{k}", "choices": ["a", "b"], "answer": k} for k in range(2)]
    frame = pandas.DataFrame([*rows, {"question": "q2", "choices": ["c", "d"]}])
    frame["answer"] = frame["answer"].astype("Int64")
    assert [item.gold for item in us.load_data(frame)] == [0, 1, None]


def test_sample_keeps_reading_and_sets_reject_columns() -> None:
    assert us.load_data(GOOD["mmlu"][0], sample=2).read_as.startswith("items: took choices")
    with pytest.raises(UsageError, match="--columns works only with records; tiny-judge"):
        us.load_data("tiny-judge", columns="prompt=question")
