"""The layouts and commands of docs/own-logs.md, run as they are printed."""

import json
import re
import shlex
from pathlib import Path

import pytest

from unswayed.cli import main
from unswayed.errors import ItemError, UsageError
from unswayed.importers import import_files, parse_map

PAGE = Path(__file__).parents[2] / "docs" / "own-logs.md"
SECTION = re.compile(
    r"^`([\w.]+)`:\n\n```\n(.*?)^```\n\n```\n(unswayed import .*?)\n```", re.M | re.S
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
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_page_s_commands_read_the_page_s_logs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    content, command = SECTIONS[name]
    Path(name).write_text(content, encoding="utf-8")
    assert main(shlex.split(command)[1:]) == 0
    items = [json.loads(line) for line in Path("items.jsonl").read_text().splitlines()]
    decisions = [json.loads(line) for line in Path("decisions.jsonl").read_text().splitlines()]
    made: dict[str, tuple[object, dict[tuple[int, ...], object]]] = {
        item["id"]: (item.get("gold"), {}) for item in items
    }
    for decision in decisions:
        made[decision["item_id"]][1][tuple(decision["order"])] = decision["choice"]
    assert made == EXPECTED[name]
    assert (
        main(["audit", "items.jsonl", "--decisions", "decisions.jsonl", "--resamples", "100"]) == 0
    )
    capsys.readouterr()


def test_every_log_on_the_page_is_tried() -> None:
    assert sorted(SECTIONS) == sorted(EXPECTED)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_texts_shown_are_kept_by_candidate(tmp_path: Path) -> None:
    log = write(tmp_path / "x.csv", "id,first,second,swapped,v\n1,x,y,0,A\n1,y,x,1,A\n")
    fields = parse_map("id=id,candidates=first|second,candidates_are=shown,order=swapped,verdict=v")
    made = import_files("jsonl", [log], fields=fields)
    (item,) = made.items
    assert item.candidates == ("x", "y")


def test_a_table_s_cells_hold_orders_indices_and_repetitions(tmp_path: Path) -> None:
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
            "are equal texts, which tell no order; give order=",
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

    from unswayed.importers import FieldMap

    text = PAGE.read_text(encoding="utf-8")
    assert [part.name for part in fields(FieldMap) if f"`{part.name}`" not in text] == []
