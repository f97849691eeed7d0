"""Logs of any layout, read through a map; the commands of docs/your-data.md run as they are printed."""

import json
import re
import shlex
from pathlib import Path

import pytest

from unswayed.base.errors import ItemError, UsageError
from unswayed.cli import main
from unswayed.data.importers import import_files, parse_map, read_decisions_file
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


def test_numbers_of_scale_move_with_levels(tmp_path: Path) -> None:
    log = write(tmp_path / "x.csv", "id,o,v,h\n1,321,3.0,2.5\n2,123,2.5,\n")
    made = import_files(
        "jsonl", [log], fields=parse_map("id=id,order=o,verdict=v,gold=h,values=1|2|3")
    )
    assert made.items[0].task is Task.RUBRIC
    assert made.items[0].values == (1.0, 2.0, 3.0)
    assert [item.human_score() for item in made.items] == [2.5, None]
    first, second = made.decisions
    assert (first.order, first.labels, first.label_set) == (
        (2, 1, 0),
        ("3", "2", "1"),
        ("1", "2", "3"),
    )
    assert (first.choice, second.choice) == (2, None)  # 2.5 is no level: unparsed


def test_letters_beside_levels_stay_in_their_places(tmp_path: Path) -> None:
    log = write(tmp_path / "x.csv", 'id;o;v\n1;"[2, 0, 1]";A\n')
    fields = parse_map("id=id,order=o,verdict=v,values=1|2|4,labels=A|B|C")
    (decision,) = import_files("jsonl", [log], fields=fields).decisions
    assert (decision.labels, decision.choice) == (("A", "B", "C"), 2)


def test_scores_and_rankings_are_kept_by_candidate(tmp_path: Path) -> None:
    content, command = SECTIONS["list.jsonl"]
    log = write(tmp_path / "list.jsonl", content)
    fields = parse_map(shlex.split(command)[-1])
    made = import_files("jsonl", [log], fields=fields)
    assert {item.task for item in made.items} == {Task.LISTWISE}
    assert [decision.scores for decision in made.decisions] == [
        (80.0, 60.0, 40.0),
        (60.0, 50.0, 70.0),  # C A B were shown
        (50.0, 50.0, 10.0),
        (None, None, 90.0),
    ]
    assert [decision.ranking for decision in made.decisions] == [(0, 1, 2), (2, 0, 1), None, None]


def test_scores_in_columns_stand_as_verdict_is_says(tmp_path: Path) -> None:
    log = write(tmp_path / "x.csv", "id,o,s1,s2\n1,BA,10,90\n")
    for meaning, scores, choice in (("label", (90.0, 10.0), 0), ("candidate", (10.0, 90.0), 1)):
        text = f"id=id,order=o,scores=s1|s2,task=pairwise,verdict_is={meaning}"
        made = import_files("jsonl", [log], fields=parse_map(text))
        assert made.items[0].task is Task.PAIRWISE
        assert (made.decisions[0].scores, made.decisions[0].choice) == (scores, choice)


def test_a_raw_reply_is_read_as_a_live_one(tmp_path: Path) -> None:
    marks = {
        label: {"score": score, "rationale": "so", "major_error": label == "A"}
        for label, score in (("A", 10), ("B", 30), ("C", 20))
    }
    reply = json.dumps({"candidates": marks, "ranking": ["B", "C", "A"]})
    rows = [
        {"id": 1, "o": [2, 0, 1], "raw": f"```json\n{reply}\n```"},
        {"id": 1, "o": [0, 1, 2], "raw": "I cannot say."},
    ]
    log = write(tmp_path / "x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    fields = parse_map("id=id,order=o,text=raw,labels=A|B|C,task=listwise")
    read, unread = import_files("jsonl", [log], fields=fields).decisions
    assert (read.choice, read.scores, read.ranking) == (0, (30.0, 20.0, 10.0), (0, 1, 2))
    assert read.flags is not None
    assert read.flags["major_error"][2] is True  # A was candidate 2
    assert (unread.choice, unread.scores) == (None, None)
    pairs = write(tmp_path / "y.csv", "id,sw,raw\n1,yes,The better answer is B.\n")
    fields = parse_map("id=id,order=sw,text=raw")
    assert import_files("jsonl", [pairs], fields=fields).decisions[0].choice == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id=id", "needs verdict, scores, ranking or text"),
        ("id=id,verdict=v,task=rubric", "task=rubric needs values="),
        (
            "id=id,verdict=v,task=ranking",
            "task=ranking: write criteria, listwise, mcq, pairwise, rubric",
        ),
        ("id=id,verdict=v,values=1|high", "'high' is not a number"),
    ],
)
def test_a_map_that_makes_no_scale_or_list_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_map(text)


@pytest.mark.parametrize(
    ("text", "log", "message"),
    [
        ("id=id,scores=s,labels=A|B|C", 'id;s\n1;"[1, 2]"\n', "s: 2 scores for 3 candidates"),
        ("id=id,scores=s|t", "id,s,t\n1,high,2\n", r"s\|t: 'high' is not a number"),
        ("id=id,verdict=v,values=1|1", "id,v\n1,1\n", "symbols|different numbers"),
        ("id=id,verdict=v,values=1|2,gold=g", "id,v,g\n1,1,good\n", "g: 'good' is not a number"),
    ],
)
def test_null_scores_are_rejected(text: str, log: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", log)
    with pytest.raises((ItemError, UsageError), match=message):
        import_files("jsonl", [path], fields=parse_map(text))


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_texts_shown_are_kept_by_candidate(tmp_path: Path) -> None:
    log = write(tmp_path / "x.csv", "id,first,second,swapped,v\n1,x,y,0,A\n1,y,x,1,A\n")
    fields = parse_map("id=id,candidates=first|second,candidates_are=shown,order=swapped,verdict=v")
    made = import_files("jsonl", [log], fields=fields)
    (item,) = made.items
    assert item.candidates == ("x", "y")


def test_cells_of_table_hold_orders_indices_and_repetitions(tmp_path: Path) -> None:
    log = write(tmp_path / "x.csv", 'id;o;v;g;n\n1;"[2, 0, 1]";A;0;\n1;"[2, 0, 1]";C;0;1\n')
    fields = parse_map("id=id,order=o,verdict=v,gold=g,sample=n,labels=A|B|C")
    made = import_files("jsonl", [log], fields=fields)
    read = [(decision.order, decision.choice, decision.sample) for decision in made.decisions]
    assert read == [((2, 0, 1), 2, 0), ((2, 0, 1), 1, 1)]
    assert made.items[0].gold == 0
    bad = write(tmp_path / "y.csv", 'id;o;v;g;n\n1;"[2, 0, 1]";A;0;twice\n')
    with pytest.raises(ItemError, match="n: 'twice' is not a number"):
        import_files("jsonl", [bad], fields=fields)


@pytest.mark.parametrize(
    ("text", "log", "message"),
    [
        (
            "id=id,candidates=a|b,candidates_are=shown,verdict=v",
            "id,a,b,v\n1,same,same,A\n",
            "are equal texts, which show no order; give order=",
        ),
        (
            "id=id,names=a|b,verdict=v,verdict_is=name",
            "id,a,b,v\n1,m,M,m\n",
            "are not two names",
        ),
        (
            "id=id,names=a|b,verdict=v,verdict_is=name,gold=g,gold_is=name",
            "id,a,b,v,g\n1,m,n,m,k\n",
            "g: 'k' names no candidate and no tie",
        ),
    ],
)
def test_a_row_that_tells_no_order_or_name_is_refused(
    text: str, log: str, message: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "x.csv", log)
    with pytest.raises(ItemError, match=rf"x\.csv:2: .*{message}"):
        import_files("jsonl", [path], fields=parse_map(text))


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
    path = write(tmp_path / "x.csv", "id,winner\n1,A\n2,B\n")
    message = f"no record has the field '{name}', which --map gives as {part}"
    with pytest.raises(ItemError, match=message):
        import_files("jsonl", [path], fields=parse_map(text))


def test_a_field_that_some_records_lack_is_read_where_it_is(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.jsonl", '{"id": 1, "v": "A"}\n{"id": 2, "v": "B", "t": {"r": "b"}}\n'
    )
    read = import_files("jsonl", [path], fields=parse_map("id=id,verdict=v,text=t.r"))
    assert [decision.text for decision in read.decisions] == [None, "b"]


def test_a_log_without_a_map_is_told_about_the_map(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "id,winner\n1,A\n")
    with pytest.raises(UsageError, match=r"fields are id, winner.*import jsonl FILE --map"):
        import_files("jsonl", [path])


def test_every_part_of_a_map_is_on_the_page() -> None:
    from dataclasses import fields

    from unswayed.data.importers import FieldMap

    text = PAGE.read_text(encoding="utf-8")
    assert [part.name for part in fields(FieldMap) if f"`{part.name}`" not in text] == []


def test_map_paths_reach_into_lists_and_cells(tmp_path: Path) -> None:
    record = {
        "id": "x",
        "o": False,
        "r": {"content": [{"text": "B"}]},
        "a": [{"t": "p"}, {"t": "q"}],
    }
    cell = {**record, "o": True, "r": json.dumps(record["r"])}
    path = write(tmp_path / "log.jsonl", f"{json.dumps(record)}\n{json.dumps(cell)}\n")
    text = "id=id,order=o,verdict=r.content[0].text,candidates=a[0].t|a[1].t"
    read = import_files("jsonl", [path], fields=parse_map(text))
    assert [decision.choice for decision in read.decisions] == [1, 0]
    assert read.items[0].candidates == ("p", "q")


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
    log = write(tmp_path / "out.jsonl", "".join(f"{json.dumps(line)}\n" for line in records))
    fields = parse_map(f"id=custom_id~^(.+)-(?:AB|BA)$,order=custom_id~-(AB|BA)$,{text}")
    made = import_files("jsonl", [log], fields=fields)
    assert [(d.item_id, d.order, d.choice, d.model) for d in made.decisions] == [
        ("q1", (0, 1), 0, "m"),
        ("q1", (1, 0), 1, "m"),
        ("q-2", (0, 1), 1, "m"),
    ]
    assert made.counts["left_out: a call that failed (error)"] == 2
    only = write(tmp_path / "errors.jsonl", f"{json.dumps(records[3])}\n")
    with pytest.raises(ItemError, match=r"no decisions \(1 a call that failed \(error\)\)\."):
        import_files("jsonl", [only], fields=fields)


def test_expression_that_matches_nowhere_is_named(tmp_path: Path) -> None:
    log = write(tmp_path / "x.csv", "id,v\nq1/AB,A\n")
    with pytest.raises(ItemError, match=r"x\.csv:2: id=id~\^\(q\)-: 'q1/AB' gives no id"):
        import_files("jsonl", [log], fields=parse_map("id=id~^(q)-,verdict=v"))
    with pytest.raises(ItemError, match=r"no record has a value at 'id~-\(x\)', .* as group"):
        import_files("jsonl", [log], fields=parse_map("id=id,verdict=v,group=id~-(x)"))
    made = import_files("jsonl", [log], fields=parse_map("id=id~^(q[0-9]{1,,2})/,verdict=v"))
    assert made.items[0].id == "q1"  # a comma is doubled
    for pattern in ("id~q(", "id~q", "id~"):
        with pytest.raises(UsageError, match="is not a regular expression with a group"):
            parse_map(f"id={pattern},verdict=v")


@pytest.mark.parametrize("text", ["id=id,verdict=v,labels=first", "id=id,candidates=first"])
def test_map_cut_at_bar_by_shell_says_quote(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"quote the map: a shell reads an unquoted \| as a pipe\.$"
    ):
        parse_map(text)


@pytest.mark.parametrize(
    ("text", "winner", "said"),
    [
        ("verdict=w", "n", "verdict=w: 'n' is a name, not a label: verdict_is=name reads it"),
        ("verdict=w,verdict_is=name", "B", "'B' is a label, not a name: verdict_is=label reads it"),
        ("verdict=v,gold=w", "n", "gold=w: 'n' is a name, not a candidate: gold_is=name reads it"),
    ],
)
def test_values_that_contradict_meaning_are_refused(
    text: str, winner: str, said: str, tmp_path: Path
) -> None:
    log = write(tmp_path / "x.csv", f"id,a,b,v,w\n1,m,n,A,{winner}\n")
    with pytest.raises(ItemError, match=rf"x\.csv:2: .*{said}\."):
        import_files("jsonl", [log], fields=parse_map(f"id=id,names=a|b,{text}"))


def test_gold_that_moves_with_order_names_both_fields(tmp_path: Path) -> None:
    log = write(tmp_path / "x.csv", "id,o,v,human\n1,AB,A,A\n1,BA,A,B\n")
    fields = parse_map("id=id,order=o,verdict=v,gold=human")
    with pytest.raises(ItemError, match=r"x\.csv:3: gold=human: of item '1' is another one at"):
        import_files("jsonl", [log], fields=fields)
