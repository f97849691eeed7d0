"""Items in other people's columns: what is taken for what, and what is refused."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import unswayed as us
from unswayed.base.errors import ItemError, UsageError
from unswayed.cli import main
from unswayed.model.items import items_of, load_items
from unswayed.model.items.foreign import parse_columns, written_columns


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def rows(n: int = 1, **columns: Any) -> list[dict[str, Any]]:
    """Records with the same columns; a function gives the value in row k."""
    return [
        {name: own(k) if callable(own) else own for name, own in columns.items()} for k in range(n)
    ]


def one(**more: Any) -> list[dict[str, Any]]:
    return [{"question": "q", "choices": ["a", "b"], **more}]


Q: Final = "q{}".format
WXYZ: Final = list("wxyz")
SHEET: Final = """Nr.,Question text,Answer from GPT,Answer from Claude,Which is better?,Notes
1,What is 2+2?,4,5,GPT,
2,Capital of France?,Lyon,Paris,Claude,hm
"""
SHEET_COLUMNS: Final = "prompt=Question text,candidates=Answer from GPT|Answer from Claude,gold=Which is better?,id=Nr."
MMLU: Final = rows(4, question=Q, subject="law", choices=WXYZ, answer=int)
MMLU_PRO: Final = rows(
    6,
    question_id=int,
    question=Q,
    options=list("wxyzuv"),
    answer="ABCDEF".__getitem__,
    answer_index=int,
    category="law",
)
GOOD: dict[str, tuple[list[dict[str, Any]], str | None, list[Any]]] = {
    "sheet": (table(SHEET), SHEET_COLUMNS, [0, 1]),
    "families and a letter": (
        table("question,answer_a,answer_b,label\nWhat is 2+2?,4,5,A\nCapital?,Lyon,Paris,B\n"),
        None,
        [0, 1],
    ),
    "mmlu": (MMLU, None, [0, 1, 2, 3]),
    "mmlu-pro": (MMLU_PRO, None, list(range(6))),
    "arc": (
        rows(
            4,
            id="M{}".format,
            question=Q,
            choices={"text": WXYZ, "label": list("1234")},
            answerKey=lambda k: str(k + 1),
        ),
        None,
        [0, 1, 2, 3],
    ),
    "medqa": (
        rows(3, question=Q, options={"A": "w", "B": "x", "C": "y"}, answer_idx="ABC".__getitem__),
        None,
        [0, 1, 2],
    ),
    "text": (
        rows(2, question=Q, options=["oak", "iron", "salt"], answer=lambda k: ["iron", "salt"][k]),
        None,
        [1, 2],
    ),
    "integer ids": (
        rows(4, id=int, prompt=Q, candidates=["a", "b"], gold=lambda k: k % 2),
        None,
        [0, 1, 0, 1],
    ),
    "no ids, one twice": (rows(2, prompt="Q", candidates=["a", "b"], gold=1), None, [1, 1]),
    "nested": (
        rows(
            3,
            item=lambda k: {"q": f"Q{k}"},
            responses=lambda k: [{"text": f"x{k}"}, {"text": f"y{k}"}],
        ),
        "prompt=item.q,candidates=responses[0].text|responses[1].text",
        [None] * 3,
    ),
    "JSON in a cell": (
        table('question,choices,answer\nQ0,"[""w"", ""x""]",0\nQ1,"[""y"", ""z""]",1\n'),
        None,
        [0, 1],
    ),
    "ties": (
        table("instruction,output_1,output_2,preference\nQ0,a,b,A\nQ1,a,b,B\nQ2,a,b,tie\n"),
        None,
        [0, 1, "tie"],
    ),
    "option that is a word for a tie": (
        rows(2, question=Q, choices=["more", "equal"], answer=lambda k: ["equal", "more"][k]),
        None,
        [1, 0],
    ),
    "scores of levels": (
        table("question,response,level_1,level_2,level_3,label\nq,r,x,y,z,1\ns,r,x,y,z,2.5\n"),
        None,
        [1, 2.5],
    ),
    "scores of listed levels": (
        rows(
            3,
            id=int,
            prompt=Q,
            response="r",
            candidates=list("xyz"),
            values=[1, 2, 3],
            gold=lambda k: k + 1,
        ),
        None,
        [1, 2, 3],
    ),
    "scores by criterion": (
        rows(
            question="Q",
            response="r",
            level_1="x",
            level_2="y",
            criteria=["s", "t"],
            label={"s": 1, "t": 2},
        ),
        None,
        [{"s": 1, "t": 2}],
    ),
    "chosen with gold of its own": (
        rows(2, prompt=Q, chosen="x{}".format, rejected="y{}".format, label=int),
        "candidates=chosen|rejected,gold=label",
        [0, 1],
    ),
    "arrays in a cell": (
        rows(
            2,
            question=Q,
            choices={"text": np.array(["x", "y"]), "label": np.array(["A", "B"])},
            answerKey="AB".__getitem__,
        ),
        None,
        [0, 1],
    ),
    "texts that are JSON": (
        rows(question="Q", output_1="[1, 2]", output_2='{"a": 1}', label="A"),
        None,
        [0],
    ),
    "column like a field": (one(results="x"), None, [None]),
    "from 1, given": (
        rows(3, question=Q, choices=["a", "b", "c"], label=1),
        "gold=label,gold_from=1",
        [0, 0, 0],
    ),
    "from 1, seen": (
        rows(4, question=Q, choices=["a", "b"], label=lambda k: k % 2 + 1),
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
    items = items_of([{**record, "source": "web"} for record in MMLU], name="data.csv")
    assert items.read_as == (
        "data.csv: took choices as candidates; question as prompt; subject as group; answer as gold (the "
        "right candidate counted from 0); ids made from the texts; source into meta."
    )
    assert (items[0].meta, items[0].group) == ({"source": "web"}, "law")


def test_words_for_ties_are_named() -> None:
    votes = ["left", "Both", "right", "equal", "tie"]
    records = [
        {"question": f"Q{k}", "left": "a", "right": "b", "v": v} for k, v in enumerate(votes)
    ]
    items = items_of(records, name="v", columns="candidates=left|right,gold=v")
    assert "v as gold (the name of the right column; Both and equal as a tie)" in items.read_as
    assert [item.gold for item in items] == [0, "tie", 1, "tie", "tie"]


def test_own_records_are_read_without_a_word() -> None:
    own = [{"id": "x", "prompt": "Q", "candidates": ["a", "b"], "gold": 1}]
    assert items_of(own).read_as == ""
    assert items_of(table("id,prompt,answer_a,answer_b,gold\n1,q,4,5,1\n")).read_as == ""


def test_ids_depend_on_the_texts_alone() -> None:
    records = rows(3, question=Q, choices=["a", "b"])
    ids = [item.id for item in items_of(records)]
    assert [item.id for item in items_of(records[::-1])] == ids[::-1]
    repeated = [item.id for item in items_of([records[0]] * 3)]
    assert repeated == [ids[0], f"{ids[0]}-2", f"{ids[0]}-3"]


def test_column_of_ids_that_repeat_goes_into_meta() -> None:
    items = items_of(one(qid=7) * 2)
    assert [item.meta["qid"] for item in items] == [7, 7]
    assert "qid, which is not unique, into meta" in items.read_as
    with pytest.raises(ItemError, match="'7' was used on line 1 already"):
        items_of(rows(2, id=7, prompt=Q, candidates=["a", "b"]))


def test_blank_ids_are_counted() -> None:
    items = items_of([record for own in ("x", "", None) for record in one(id=own, n=own)])
    assert "2 ids made from the texts, where id is empty" in items.read_as
    assert [item.id[:5] for item in items] == ["x", "item-", "item-"]
    with_qid = items_of([*one(qid=1), *one(qid=None)])
    assert "1 id made from the texts, where qid is empty" in with_qid.read_as


@pytest.mark.parametrize("golds", [["tie", ""], ["", None], ["tie", "both"]])
def test_gold_without_candidate_is_not_reported_as_number(golds: list[str | None]) -> None:
    items = items_of([record for own in golds for record in one(label=own)])
    assert "label as gold" in items.read_as
    assert "counted" not in items.read_as
    assert [item.gold for item in items] == ["tie" if own else None for own in golds]


def test_letters_of_gold_have_any_case() -> None:
    assert [item.gold for item in items_of([*one(label="a"), *one(label="b")])] == [0, 1]


def test_text_of_columns_works_at_every_door(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("Q?,one,two\nq,a,b\n")
    columns = "prompt=Q?,candidates=one|two"
    expected = us.load_items(path, columns={"prompt": "Q?", "candidates": ["one", "two"]})
    records = [{"Q?": "q", "one": "a", "two": "b"}]
    doors = [us.load_items(path, columns=columns), us.load_data(path, columns=columns)]
    doors += [us.load_data(records, columns=columns), items_of(records, columns=columns)]
    assert all(items.items == expected.items for items in doors)


TEXTS: Final = ("movies", "dull complete simple", "broken sound kind")


def test_made_ids_are_the_same_from_every_door(tmp_path: Path) -> None:
    question, first, second = TEXTS
    (tmp_path / "x.csv").write_text(f"question,answer_a,answer_b\n{question},{first},{second}\n")
    row: dict[str, Any] = {"prompt": question, "candidates": [first, second]}
    (tmp_path / "x.jsonl").write_text(json.dumps(row))
    sources: list[Any] = [tmp_path / "x.csv", tmp_path / "x.jsonl", [row]]
    sources.append([{**row, "candidates": np.array([first, second])}])
    ids = {item.id for source in sources for item in us.load_data(source)}
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
    text = "".join(json.dumps(row) + "\n" for row in MMLU)
    (tmp_path / "x.jsonl").write_text(text)

    def judged(data: str, standard: str = "") -> int:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(standard.encode())))
        return main(["judge", data, "--model", "simulated/judge", "--method", "vote"])

    assert judged(str(tmp_path / "x.jsonl")) == 0
    filed = capsys.readouterr()
    assert judged("-", text) == 0
    piped = capsys.readouterr()
    assert piped.out == filed.out
    assert "unswayed: -: took choices as candidates; question as prompt" in piped.err
    assert judged("-", text + "\n{}\n") == 2
    assert "-:6: question: is empty" in capsys.readouterr().err


TALK: Final = [{"role": "user", "content": "Q"}]


@pytest.mark.parametrize("talk", [False, True])
def test_chosen_is_gold_in_either_place(talk: bool) -> None:
    def reply(text: str) -> Callable[[int], object]:
        turn = {"role": "assistant", "content": text}
        return lambda k: [*TALK, {**turn, "content": f"{text}{k}"}] if talk else f"{text}{k}"

    prompt = {} if talk else {"prompt": "Q"}
    items = items_of(rows(40, chosen=reply("good"), rejected=reply("bad"), **prompt))
    assert all("good" in str(item.candidates[item.gold]) for item in items)  # type: ignore[index]
    assert 8 <= sum(item.gold == 0 for item in items) <= 32
    assert all("Q" in str(item.prompt) for item in items)


BAD: dict[str, tuple[list[dict[str, Any]], str]] = {
    "two prompts": (
        one(instruction="i"),
        "prompt could be question or instruction. Choose with --columns prompt=question",
    ),
    "two lists": (one(options=["c", "d"]), "candidates could be choices or options"),
    "two golds": (one(answer=0, label=1), "gold could be answer or label"),
    "0 or 1": (
        rows(2, question=Q, choices=["a", "b", "c"], answer=lambda k: k + 1),
        "counted from 0 or the right candidate counted from 1, which differ.*gold_from=0",
    ),
    "letter or text": (
        one(choices=["B", "A"], answer="A"),
        "the letter of the right candidate or the text",
    ),
    "neither": (
        one(answer="42"),
        "answer is '42' where the candidates are 'a', 'b'. Write letters, .* and tie for a tie",
    ),
    "nothing": (rows(x=1, y=2), r"no candidates among its fields \(x, y\)"),
    "no prompt": (rows(choices=["a", "b"]), "no prompt among its fields"),
    "misspelt": (one(glod=1), "glod is not a field of an item. Did you mean 'gold'"),
    "own, misspelt": (
        rows(id="1", prompt="q", candidates=["a", "b"], glod=1),
        "glod: .*Did you mean 'gold'",
    ),
    "own gold from 1": (
        table("id,prompt,answer_a,answer_b,gold\n1,q,4,5,1\n2,r,4,5,2\n"),
        "gold counts from 0, and .* names no candidate.*gold_from=1",
    ),
    "index or text, with a point": (
        rows(2, question=Q, choices=["1", "0"], answer=float),
        "counted from 0 or the text of the right candidate, which differ",
    ),
    "chosen or gold": (
        rows(prompt="q", chosen="a", rejected="b", gold=1),
        "gold could be chosen or gold",
    ),
    "huge number": (one(answer=10**400), "answer is '1000.* where the candidates are"),
    "nested cell": (one(choices="[" * 10_000), "data.csv:1: choices: has no list"),
    "text for candidates": (
        one(choices={"text": "foo", "label": "bar"}),
        "data.csv:1: choices: has no list",
    ),
    "candidate of another type": (
        one(choices=["a", 2]),
        r"data.csv:1: choices\[1\]: Expected `str",
    ),
    "prompt of another type": (one(question=5), "data.csv:1: question: Expected `str"),
    "no question in a row": ([*one(), *one(question=None)], "data.csv:2: question: is empty"),
    "nothing chosen": (
        rows(prompt="q", chosen=None, rejected="b"),
        "data.csv:1: chosen: is empty",
    ),
    "texts without prompt": (
        rows(chosen="a", rejected="b"),
        "data.csv:1: prompt: is missing, and chosen and rejected share no first turns",
    ),
    "turns of texts": (rows(chosen=["a", "b"], rejected=["a", "c"]), "share no first turns"),
    "text as meta": (one(meta="x", source="web"), "meta: expected an object, got str"),
    "one candidate": (one(choices=["a"]), "choices: has no list of at least two"),
    "one column of candidates, with gold": (
        one(choices="a", answer="b"),
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


def test_columns_of_lines_without_json_name_the_line(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text("question,first,second\nQ,x,y\n")
    with pytest.raises(ItemError, match="not valid JSON"):
        us.load_data(tmp_path / "own.jsonl", columns="prompt=question,candidates=first|second")


def test_names_of_models_may_stand_in_two_columns() -> None:
    rows = [{"question": "Q", "answer_1": "x", "answer_2": "y", "model_1": "m", "model_2": "n"}]
    (item,) = us.load_data(rows, columns="candidates_by=model_1|model_2")
    assert item.candidates_by == ("m", "n")


def test_headings_name_models_of_their_columns() -> None:
    rows = [{"question": "Q", "bloom": "x", "llama": "y", "better": "llama"}]
    columns = "candidates=bloom|llama,candidates_by=bloom|llama,gold=better"
    (item,) = us.load_data(rows, columns=columns)
    assert (item.candidates, item.candidates_by, item.gold) == (("x", "y"), ("bloom", "llama"), 1)


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
    columns = {"gold": "label", "gold_from": "letters"}
    with pytest.raises(ItemError, match=r"x.csv:3: label: 'C' is not the letter"):
        load_items(path, columns=columns)
    kept = load_items(path, columns=columns, on_bad_item="skip")
    assert [item.gold for item in kept] == [0, 1]
    assert [line.line for line in kept.bad_lines] == [3]


@pytest.mark.parametrize("form", ["jsonl", "json", "jsonl.gz", "memory", "frame", "columns"])
def test_forms_of_a_source_give_the_same_items(form: str, tmp_path: Path) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in MMLU_PRO).encode()
    files = {
        "jsonl": lines,
        "json": json.dumps(MMLU_PRO).encode(),
        "jsonl.gz": gzip.compress(lines),
    }
    source: Any = tmp_path / f"x.{form}"
    if form in files:
        source.write_bytes(files[form])
    elif form == "memory":
        source = MMLU_PRO
    elif form == "frame":
        source = pytest.importorskip("pandas").DataFrame(MMLU_PRO)
    else:
        source = {name: [row[name] for row in MMLU_PRO] for name in MMLU_PRO[0]}
    assert us.load_data(source).items == items_of(MMLU_PRO).items


def test_splits_are_rejected() -> None:
    class Split(list[Any]):
        column_names = ("question",)

    with pytest.raises(UsageError, match="items has the splits train, test"):
        us.load_data({"train": Split(), "test": Split()})  # type: ignore[arg-type]


def test_audit_reports_how_columns_were_read(capsys: pytest.CaptureFixture[str]) -> None:
    records = rows(20, question=Q, choices=lambda k: ["a", f"b{k}"], answer=lambda k: k % 2)
    result = us.audit("simulated/judge", records, columns={"group": "answer"}, resamples=100)
    sentence = "items: took answer as group; choices as candidates; question as prompt"
    assert sentence in capsys.readouterr().err
    assert result.run["data"]["read_as"].startswith(sentence)


@pytest.mark.parametrize(
    ("text", "golds"),
    [
        ("id,prompt,response,level_1,level_2,gold\n1,q,r,a,b,1\n2,q,r,a,b,2\n", [1, 2]),
        ("id,prompt,answer_a,answer_b,gold\n1,,a,b,1\n", [1]),
    ],
)
def test_own_table_is_read_strictly(text: str, golds: list[int], tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(text)
    items = load_items(path)
    assert [item.gold for item in items] == golds
    assert items.read_as == ""


def test_own_records_may_differ_in_form() -> None:
    in_columns = rows(id="x", prompt="q", gold=1, answer_a="a", answer_b="b")
    listed = rows(id="y", prompt="q", gold=1, candidates=["a", "b"])
    assert [item.gold for item in items_of(in_columns + listed)] == [1, 1]


def test_bad_first_line_does_not_decide_the_form(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(["{", *map(json.dumps, MMLU)]))
    with pytest.raises(ItemError, match=r"x.jsonl:1: JSON: not valid JSON"):
        load_items(path)
    assert [item.gold for item in load_items(path, on_bad_item="skip")] == [0, 1, 2, 3]


def test_missing_values_of_pandas_are_missing() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([*one(answer=0), *one(answer=1), *one()])
    frame["answer"] = frame["answer"].astype("Int64")
    assert [item.gold for item in us.load_data(frame)] == [0, 1, None]


def test_sample_keeps_reading_and_sets_reject_columns() -> None:
    assert us.load_data(MMLU, sample=2).read_as.startswith("items: took choices")
    with pytest.raises(UsageError, match="--columns works only with records; tiny-judge"):
        us.load_data("tiny-judge", columns="prompt=question")
