"""Logs of any layout, read through a map; the commands of docs/your-data.md run as they are printed."""

import json
import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
from foreign_files import choices, read

from unswayed.base.errors import ItemError, UsageError
from unswayed.cli import main
from unswayed.data.importers import (
    FieldMap,
    Imported,
    import_files,
    parse_map,
    read_decisions_file,
)
from unswayed.model.items import Task, load_items

PAGE = Path(__file__).parents[3] / "docs" / "your-data.md"
SECTION = re.compile(
    r"^[^\n]*`([\w.]+)`:\n\n```\w+\n([^`]*)```\n\n```\n(unswayed import [^\n]*)\n", re.M
)
SECTIONS = {
    name: (content, command)
    for name, content, command in SECTION.findall(PAGE.read_text(encoding="utf-8"))
}

# by item: gold, and per order the choice
EXPECTED: dict[str, dict[str, tuple[object, dict[tuple[int, ...], object]]]] = {
    "shown.csv": {
        "q1": (0, {(0, 1): 0, (1, 0): 1}),
        "q2": (1, {(0, 1): 1, (1, 0): 1}),
        "q3": ("tie", {(0, 1): 0, (1, 0): 0}),
    },
    # the own order is the texts': iron before oak, pine before salt
    "ab.tsv": {
        "7": (None, {(0, 1): 0, (1, 0): 1}),
        "8": (None, {(1, 0): 0, (0, 1): "tie"}),
    },
    "names.jsonl": {
        "81;model-x;model-y": (None, {(0, 1): 0, (1, 0): 0}),
        "82;model-x;model-y": (None, {(0, 1): "tie", (1, 0): None}),
    },
    "scale.csv": {
        "s1": (2.0, {(0, 1, 2): 1, (2, 1, 0): 2}),
        "s2": (1.5, {(0, 1, 2): 0, (2, 1, 0): None}),
    },
    "batch.jsonl": {
        "q1": (None, {(0, 1): 0, (1, 0): 1}),
        "q2": (None, {(0, 1): None}),
    },
    "list.jsonl": {
        "l1": (0, {(0, 1, 2): 0, (2, 0, 1): 2}),
        "l2": (2, {(0, 1, 2): "tie", (2, 0, 1): None}),
    },
}


def test_every_log_on_the_page_is_tried() -> None:
    assert sorted(SECTIONS) == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_documented_map_reads_documented_log(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, command = SECTIONS[name]
    write(tmp_path / name, content)
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == 0
    stem = name.partition(".")[0]
    made: dict[str, tuple[object, dict[tuple[int, ...], object]]] = {
        item.id: (item.gold, {}) for item in load_items(f"{stem}-items.jsonl")
    }
    for decision in read_decisions_file(f"{stem}-decisions.jsonl"):
        made[decision.item_id][1][decision.order] = decision.choice
    assert made == EXPECTED[name]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def table(folder: Path, text: str, cells: str) -> Imported:
    """What a map reads of a table."""
    return import_files("jsonl", [write(folder / "x.csv", cells)], fields=parse_map(text))


def mapped(folder: Path, text: str, *records: object) -> Imported:
    """What a map reads of records."""
    return read("jsonl", folder, *records, fields=parse_map(text))


def test_a_map_reads_displayed_labels_and_swaps(tmp_path: Path) -> None:
    row = {"key": 7, "best": "B", "q": "?", "a1": "x", "a2": "y", "kind": "k"}
    calls = ((False, "A"), ("true", "a "))
    made = mapped(
        tmp_path,
        "id=key,order=meta.swapped,verdict=out.winner,tie=C,gold=best,prompt=q,candidates=a1|a2,group=kind",
        *({**row, "meta": {"swapped": flag}, "out": {"winner": said}} for flag, said in calls),
    )
    assert choices(made.decisions) == [((0, 1), 0), ((1, 0), 1)]
    (item,) = made.items
    assert (item.id, item.gold, item.group, item.candidates) == ("7", 1, "k", ("x", "y"))


def test_a_map_reads_ties_unparsed_and_candidate_symbols(tmp_path: Path) -> None:
    made = table(
        tmp_path,
        "id=id,order=o,verdict=v,verdict_is=candidate,labels=1|2,tie=same,gold=gold",
        "id,o,v,gold\na,true,1,2\na,false,same,2\nb,true,?,same\n",
    )
    # by candidate: "1" is candidate 0 although the order is swapped
    assert choices(made.decisions) == [((1, 0), 0), ((0, 1), "tie"), ((1, 0), None)]
    assert [item.gold for item in made.items] == [1, "tie"]
    assert made.decisions[0].labels == ("1", "2")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("verdict=ab,swapped=ba,labels=0|1,tie=2", ["0", "1", "2", "?"]),
        ("text=ab,swapped=ba", ["[[A]]", "The better answer is [[B]]", "[[C]]", "?"]),
    ],
)
def test_record_with_both_orders_is_two_calls(text: str, words: list[str], tmp_path: Path) -> None:
    rows = [
        {"id": f"{ab}{ba}", "ab": words[ab], "ba": words[ba]} for ab in range(4) for ba in range(4)
    ]
    made = mapped(tmp_path, f"id=id,{text}", *rows)
    said, exchanged = (0, 1, "tie", None), (1, 0, "tie", None)
    assert choices(made.decisions) == [
        call
        for ab in range(4)
        for ba in range(4)
        for call in (((0, 1), said[ab]), ((1, 0), exchanged[ba]))
    ]
    assert len(made.items) == 16
    assert made.counts["unparsed"] == 8


def test_unread_second_calls_are_named_by_their_field(tmp_path: Path) -> None:
    rows = [{"id": str(k), "ab": "A", "ba": "first"} for k in range(3)]
    made = mapped(tmp_path, "id=id,verdict=ab,swapped=ba", *rows)
    assert "value of 'swapped=ba' is 'first' (3 times)" in made.warning


def test_second_call_exchanges_the_order_of_its_record(tmp_path: Path) -> None:
    row = {"id": "1", "first": "x", "second": "a", "v": "A", "w": "A"}
    shown = "id=id,candidates=first|second,candidates_are=shown,verdict=v,swapped=w"
    made = mapped(tmp_path, shown, row)
    assert [item.candidates for item in made.items] == [("a", "x")]
    assert choices(made.decisions) == [((1, 0), 1), ((0, 1), 0)]
    by_name = "id=id,names=first|second,verdict=v,verdict_is=name,swapped=w"
    made = mapped(tmp_path, by_name, {**row, "v": "x", "w": "a"})
    assert choices(made.decisions) == [((1, 0), 1), ((0, 1), 0)]
    flagged = mapped(tmp_path, "id=id,order=o,verdict=v,swapped=w", {**row, "o": True})
    assert choices(flagged.decisions) == [((1, 0), 1), ((0, 1), 0)]


def test_a_map_reads_orders_of_four_as_lists_and_strings(tmp_path: Path) -> None:
    orders = {"a": [1, 2, 3, 0], "b": "BCDA"}
    records = ({"id": name, "order": order, "verdict": "D"} for name, order in orders.items())
    made = mapped(tmp_path, "id=id,order=order,verdict=verdict,labels=A|B|C|D", *records)
    # BCDA shows candidate 0 last, under D
    assert choices(made.decisions) == [((1, 2, 3, 0), 0), ((1, 2, 3, 0), 0)]
    assert made.items[0].task == "mcq"


def test_numbers_of_scale_move_with_levels(tmp_path: Path) -> None:
    text = "id=id,order=o,verdict=v,gold=h,values=1|2|3"
    made = table(tmp_path, text, "id,o,v,h\n1,321,3.0,2.5\n2,123,2.5,\n")
    assert made.items[0].task is Task.RUBRIC
    assert made.items[0].values == (1.0, 2.0, 3.0)
    assert [item.human_score() for item in made.items] == [2.5, None]
    first, second = made.decisions
    printed = (2, 1, 0), ("3", "2", "1"), ("1", "2", "3")
    assert (first.order, first.labels, first.label_set) == printed
    assert (first.choice, second.choice) == (2, None)  # 2.5 is no level: unparsed


def test_letters_beside_levels_stay_in_their_places(tmp_path: Path) -> None:
    text = "id=id,order=o,verdict=v,values=1|2|4,labels=A|B|C"
    (decision,) = table(tmp_path, text, 'id;o;v\n1;"[2, 0, 1]";A\n').decisions
    assert (decision.labels, decision.choice) == (("A", "B", "C"), 2)


def test_scores_and_rankings_are_kept_by_candidate(tmp_path: Path) -> None:
    content, command = SECTIONS["list.jsonl"]
    log = write(tmp_path / "list.jsonl", content)
    made = import_files("jsonl", [log], fields=parse_map(shlex.split(command)[-1]))
    assert {item.task for item in made.items} == {Task.LISTWISE}
    assert [decision.scores for decision in made.decisions] == [
        (80.0, 60.0, 40.0),
        (60.0, 50.0, 70.0),  # C A B were shown
        (50.0, 50.0, 10.0),
        (None, None, 90.0),
    ]
    assert [decision.ranking for decision in made.decisions] == [(0, 1, 2), (2, 0, 1), None, None]
    shown = {
        "id": 1,
        "o": "BCA",
        "r": "BCA",
    }  # whose labels, in the order shown, are candidates 2, 0, 1
    (ranked,) = mapped(tmp_path, "id=id,order=o,ranking=r,labels=A|B|C", shown).decisions
    assert (ranked.order, ranked.choice, ranked.ranking) == ((1, 2, 0), 2, (2, 0, 1))


def test_scores_in_columns_stand_as_verdict_is_says(tmp_path: Path) -> None:
    for meaning, scores, choice in (("label", (90.0, 10.0), 0), ("candidate", (10.0, 90.0), 1)):
        text = f"id=id,order=o,scores=s1|s2,task=pairwise,verdict_is={meaning}"
        made = table(tmp_path, text, "id,o,s1,s2\n1,BA,10,90\n")
        assert made.items[0].task is Task.PAIRWISE
        assert (made.decisions[0].scores, made.decisions[0].choice) == (scores, choice)


def test_a_raw_reply_is_read_as_a_live_one(tmp_path: Path) -> None:
    marks = {
        label: {"score": score, "rationale": "so", "major_error": label == "A"}
        for label, score in (("A", 10), ("B", 30), ("C", 20))
    }
    reply = json.dumps({"candidates": marks, "ranking": ["B", "C", "A"]})
    listed = mapped(
        tmp_path,
        "id=id,order=o,text=raw,labels=A|B|C,task=listwise",
        {"id": 1, "o": [2, 0, 1], "raw": f"```json\n{reply}\n```"},
        {"id": 1, "o": [0, 1, 2], "raw": "I cannot say."},
    )
    said, unread = listed.decisions
    assert (said.choice, said.scores, said.ranking) == (0, (30.0, 20.0, 10.0), (0, 1, 2))
    assert said.flags is not None
    assert said.flags["major_error"][2] is True  # A was candidate 2
    assert (unread.choice, unread.scores) == (None, None)
    pair = table(tmp_path, "id=id,order=sw,text=raw", "id,sw,raw\n1,yes,The better answer is B.\n")
    assert pair.decisions[0].choice == 0


def test_texts_shown_are_kept_by_candidate(tmp_path: Path) -> None:
    text = "id=id,candidates=first|second,candidates_are=shown,order=swapped,verdict=v"
    made = table(tmp_path, text, "id,first,second,swapped,v\n1,x,y,0,A\n1,y,x,1,A\n")
    assert [item.candidates for item in made.items] == [("x", "y")]


def test_cells_of_table_hold_orders_indices_and_repetitions(tmp_path: Path) -> None:
    text = "id=id,order=o,verdict=v,gold=g,sample=n,labels=A|B|C"
    made = table(tmp_path, text, 'id;o;v;g;n\n1;"[2, 0, 1]";A;0;\n1;"[2, 0, 1]";C;0;1\n')
    read = [(decision.order, decision.choice, decision.sample) for decision in made.decisions]
    assert read == [((2, 0, 1), 2, 0), ((2, 0, 1), 1, 1)]
    assert made.items[0].gold == 0


def test_gold_may_name_column_of_candidate_or_tie(tmp_path: Path) -> None:
    text = "id=id,candidates=left|right,order=o,labels=0|1,verdict=v,tie=2,gold=g"
    rows = "id,left,right,o,v,g\n1,x,y,no,0,Right\n2,x,y,no,2,tie\n3,x,y,no,1,left\n4,x,y,no,0,1\n"
    made = table(tmp_path, text, rows)
    assert [item.gold for item in made.items] == [1, "tie", 0, 1]
    shown = "id=id,candidates=left|right,candidates_are=shown,verdict=v,gold=g"
    made = table(tmp_path, shown, "id,left,right,v,g\n1,y,x,A,left\n1,x,y,A,right\n")
    assert [(item.candidates, item.gold) for item in made.items] == [(("x", "y"), 1)]
    with pytest.raises(
        ItemError, match=r"'top' is not one of 0\|1\|left\|right, an index from 0, or tie"
    ):
        table(tmp_path, text, "id,left,right,o,v,g\n1,x,y,no,0,top\n")


def test_map_paths_reach_into_lists_and_cells(tmp_path: Path) -> None:
    reply = {"content": [{"text": "B"}]}
    record = {"id": "x", "o": False, "r": reply, "a": [{"t": "p"}, {"t": "q"}]}
    cell = {**record, "o": True, "r": json.dumps(reply)}
    text = "id=id,order=o,verdict=r.content[0].text,candidates=a[0].t|a[1].t"
    made = mapped(tmp_path, text, record, cell)
    assert [decision.choice for decision in made.decisions] == [1, 0]
    assert made.items[0].candidates == ("p", "q")


def test_a_field_that_some_records_lack_is_read_where_it_is(tmp_path: Path) -> None:
    records = {"id": 1, "v": "A"}, {"id": 2, "v": "B", "t": {"r": "b"}}
    made = mapped(tmp_path, "id=id,verdict=v,text=t.r", *records)
    assert [decision.text for decision in made.decisions] == [None, "b"]


GROUP = "is not a regular expression with a group"
QUOTE = r"quote the map: a shell reads an unquoted \| as a pipe\.$"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id=a", "needs verdict, scores, ranking or text"),
        ("verdict=a", "needs id"),
        ("id=a,verdict", "write field=name"),
        ("id=a,verdikt=b", "Did you mean 'verdict'"),
        ("id=a,verdict=b,id=c", "given twice"),
        ("id=a,verdict=b,verdict_is=position", "write label, candidate or name"),
        ("id=a,verdict=b,labels=A", "different symbols"),
        ("id=a,verdict=b,verdict_is=name", "verdict_is=name needs names="),
        ("id=a,verdict=b,candidates_are=seen", "write own or shown"),
        ("id=a,verdict=b,names=m1|m2,order=o", "leave out order="),
        ("id=a,verdict=b,tie=a", "is also in tie="),
        ("id=a,verdict=v,task=rubric", "task=rubric needs values="),
        (
            "id=a,verdict=v,task=ranking",
            "=ranking: write criteria, listwise, mcq, pairwise, rubric",
        ),
        ("id=a,verdict=v,values=1|high", "'high' is not a number"),
        ("id=id,verdict=v,values=1|1", "different symbols"),
        ("id=id,ranking=r,swapped=s", "swapped=s needs verdict= or text="),
        ("id=id,verdict=v,scores=r,swapped=s", "swapped=s needs .* without scores="),
        ("id=id,verdict=v,swapped=v", "swapped=v names the first call"),
        ("id=id~q(,verdict=v", GROUP),
        ("id=id~q,verdict=v", GROUP),
        ("id=id~,verdict=v", GROUP),
        ("id=id,verdict=v,labels=first", QUOTE),
        ("id=id,candidates=first", QUOTE),
    ],
)
def test_a_bad_map_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_map(text)


ORDERED = "id=id,order=o,verdict=v,gold=g"


@pytest.mark.parametrize(
    ("text", "record", "message"),
    [
        (ORDERED, {"o": "ABBA"}, "order=o: 'ABBA' is not an order"),
        (
            ORDERED,
            {"o": "BCDA"},
            r"order=o: 'BCDA' is not an order of A\|B: name other symbols in ",
        ),
        (ORDERED, {"o": "original"}, "else no, false or 0"),
        (ORDERED, {"o": [0, 2]}, "is not a permutation"),
        (ORDERED, {"o": True, "id": None}, "id=id: None is not an id"),
        (ORDERED, {"o": True, "g": "Z"}, "gold=g: 'Z' is not one of A.B, an index"),
        ("id=id,verdict=v,sample=n", {"n": "twice"}, "n: 'twice' is not a number"),
        ("id=id,scores=s,labels=A|B|C", {"s": "[1, 2]"}, "s: 2 scores for 3 candidates"),
        ("id=id,scores=s|t", {"s": "high", "t": 2}, r"s\|t: 'high' is not a number"),
        ("id=id,verdict=v,values=1|2,gold=g", {"v": 1, "g": "good"}, "g: 'good' is not a number"),
        (
            "id=id,candidates=a|b,candidates_are=shown,verdict=v",
            {"a": "same", "b": "same"},
            "are equal texts, which show no order; give order=",
        ),
        ("id=id,names=a|b,verdict=v", {"a": "m", "b": "M"}, "are not two names"),
        ("id=id,candidates=a|b|id,verdict=v,swapped=w,labels=A|B|C", {}, "two candidates, not 3"),
        ("id=id,names=a|b,verdict=v,gold=g,gold_is=name", {"g": "k"}, "g: 'k' is not one of m.n"),
        (
            "id=id,names=a|b,verdict=w",
            {"w": "n"},
            "verdict=w: 'n' is a name, not a label: verdict_is=name reads it",
        ),
        (
            "id=id,names=a|b,verdict=w,verdict_is=name",
            {"w": "B"},
            "'B' is a label, not a name: verdict_is=label reads it",
        ),
        (
            "id=id,names=a|b,verdict=v,gold=w",
            {"w": "n"},
            "gold=w: 'n' is a name, not a candidate: gold_is=name reads it",
        ),
        ("id=id~^(q)-,verdict=v", {"id": "q1/AB"}, r"id=id~\^\(q\)-: 'q1/AB' gives no id"),
    ],
)
def test_a_record_that_does_not_fit_the_map_names_the_field(
    text: str, record: dict[str, object], message: str, tmp_path: Path
) -> None:
    row = {"id": "1", "v": "A", "a": "m", "b": "n", **record}
    with pytest.raises(ItemError, match=rf"x\.jsonl:1: .*{message}"):
        mapped(tmp_path, text, row)


def test_a_map_under_which_nothing_can_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ItemError, match=r"is one of A\|B or tie"):
        mapped(tmp_path, "id=id,verdict=v", {"id": "a", "v": "first"})


@pytest.mark.parametrize(
    ("text", "part", "name"),
    [
        ("id=id,verdict=winer", "verdict", "winer"),
        ("id=id,verdict=winner,gold=human", "gold", "human"),
        ("id=id,verdict=winner,text=reply.raw", "text", "reply.raw"),
    ],
)
def test_a_field_that_no_record_has_is_refused_by_name(
    text: str, part: str, name: str, tmp_path: Path
) -> None:
    message = f"no record has the field '{name}', which --map gives as {part}"
    with pytest.raises(ItemError, match=message):
        table(tmp_path, text, "id,winner\n1,A\n2,B\n")


def test_expression_that_matches_nowhere_is_named(tmp_path: Path) -> None:
    cells = "id,v\nq1/AB,A\n"
    with pytest.raises(ItemError, match=r"no record has a value at 'id~-\(x\)', .* as group"):
        table(tmp_path, "id=id,verdict=v,group=id~-(x)", cells)
    made = table(tmp_path, "id=id~^(q[0-9]{1,,2})/,verdict=v", cells)
    assert made.items[0].id == "q1"  # a comma is doubled


def test_pairs_of_names_count_with_question_and_own_texts(tmp_path: Path) -> None:
    names = {"x": "y", "z": "x"}
    rows = [{"q": 81, "a": a, "b": b, "s": f"by {a}", "t": f"by {b}"} for a, b in names.items()]
    made = mapped(tmp_path, "id=q,names=a|b,candidates=s|t,verdict=a,verdict_is=name", *rows)
    assert [(item.id, item.unit) for item in made.items] == [("81;x;y", "81"), ("81;x;z", "81")]
    assert [item.candidates for item in made.items] == [("by x", "by y"), ("by x", "by z")]
    assert [item.candidates_by for item in made.items] == [("x", "y"), ("x", "z")]
    assert choices(made.decisions) == [((0, 1), 0), ((1, 0), 1)]


def test_gold_that_moves_with_order_names_both_fields(tmp_path: Path) -> None:
    with pytest.raises(ItemError, match=r"x\.csv:3: gold=human: of item '1' is another one at"):
        table(
            tmp_path,
            "id=id,order=o,verdict=v,gold=human",
            "id,o,v,human\n1,AB,A,A\n1,BA,A,B\n",
        )


def test_a_map_belongs_to_jsonl_and_a_log_needs_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="judgebench knows its own fields"):
        import_files("judgebench", [tmp_path], fields=parse_map("id=a,verdict=b"))
    with pytest.raises(UsageError, match=r"fields are id, winner.*import jsonl FILE --map"):
        import_files("jsonl", [write(tmp_path / "x.csv", "id,winner\n1,A\n")])


def test_every_part_of_a_map_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [part.name for part in fields(FieldMap) if f"`{part.name}`" not in text] == []


def openai_line(name: str, text: str | None, **fields: object) -> dict[str, object]:
    body = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "model": "m"}
    return {"id": "b", "custom_id": name, "response": {"status_code": 200, "body": body}, **fields}


def anthropic_line(name: str, text: str | None, **result: object) -> dict[str, object]:
    message = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "model": "m"}
    return {"custom_id": name, "result": {"type": "succeeded", "message": message, **result}}


BATCHES: dict[str, tuple[str, list[dict[str, object]]]] = {
    "openai": (
        "text=response.body.choices[0].message.content,model=response.body.model,"
        "finish_reason=response.body.choices[0].finish_reason",
        [
            openai_line("q1-AB", "The better answer is A."),
            openai_line("q1-BA", "The better answer is A."),
            openai_line("q-2-AB", "B"),
            openai_line("q-2-BA", None, response=None, error={"code": "batch_expired"}),
            openai_line("q3-AB", None, response={"status_code": 500, "body": {}}, error=None),
        ],
    ),
    "anthropic": (
        "text=result.message.content[0].text,model=result.message.model,"
        "finish_reason=result.message.stop_reason",
        [
            anthropic_line("q1-AB", "The better answer is A."),
            anthropic_line("q1-BA", "The better answer is A."),
            anthropic_line("q-2-AB", "B"),
            anthropic_line("q-2-BA", None, type="errored", error={"type": "overloaded_error"}),
            {"custom_id": "q3-AB", "result": {"type": "expired"}},
        ],
    ),
}
"""By provider: the map of a batch's output, and its lines."""


@pytest.mark.parametrize("provider", BATCHES)
def test_batch_output_is_read_by_custom_id(provider: str, tmp_path: Path) -> None:
    text, records = BATCHES[provider]
    text = f"id=custom_id~^(.+)-(?:AB|BA)$,order=custom_id~-(AB|BA)$,{text}"
    made = mapped(tmp_path, text, *records)
    assert [(d.item_id, d.order, d.choice, d.model) for d in made.decisions] == [
        ("q1", (0, 1), 0, "m"),
        ("q1", (1, 0), 1, "m"),
        ("q-2", (0, 1), 1, "m"),
    ]
    assert made.counts["left out: a call that failed (error)"] == 2
    with pytest.raises(ItemError, match=r"no decisions \(1 a call that failed \(error\)\)\."):
        mapped(tmp_path, text, records[3])


def test_group_that_moves_with_order_names_both_fields(tmp_path: Path) -> None:
    with pytest.raises(ItemError, match=r"x\.csv:3: group=left: of item '1' is another one at"):
        table(tmp_path, "id=id,order=o,verdict=v,group=left", "id,o,v,left\n1,AB,A,x\n1,BA,A,y\n")
