"""One way in: JSON Lines, a JSON array, a table and records in memory give the same items."""

import csv
import gzip
import json
from pathlib import Path

import pytest

from unswayed.base.errors import ItemError, UsageError
from unswayed.model.items import Task, decode_item, item_of, items_of, load_items

ROWS = [
    {"id": "q1", "prompt": "Which, then?", "candidates": ["one,\ntwo", 'a "b"'], "gold": 0},
    {"id": "q2", "prompt": "p", "candidates": ["é", ""], "gold": "tie", "group": "g"},
    {"id": "q3", "prompt": "[p]", "candidates": ["x", "y"], "meta": {"source": "s"}},
    {"id": "q4", "prompt": "p", "candidates": ["x", "y"], "gold": [0, 1], "permutable": False},
]


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def table(path: Path, header: list[str], *rows: list[object], separator: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=separator).writerows([header, *rows])
    return path


HEADER = [
    "id",
    "prompt",
    "candidate_0",
    "candidate_1",
    "gold",
    "group",
    "meta.source",
    "permutable",
]
CELLS: list[list[object]] = [
    ["q1", "Which, then?", "one,\ntwo", 'a "b"', 0, "", "", ""],
    ["q2", "p", "é", "", "tie", "g", "", ""],
    ["q3", "[p]", "x", "y", "", "", "s", ""],
    ["q4", "p", "x", "y", "[0, 1]", "", "", "FALSE"],
]


def test_lines_an_array_a_table_and_records_give_the_same_items(tmp_path: Path) -> None:
    expected = load_items(lines(tmp_path / "pairs.jsonl", *ROWS))
    array = tmp_path / "pairs.json"
    array.write_text(json.dumps(ROWS, indent=2))
    plain = table(tmp_path / "pairs.csv", HEADER, *CELLS)
    packed, shouted = tmp_path / "pairs.csv.gz", tmp_path / "PAIRS.CSV.GZ"
    for path in (packed, shouted):
        path.write_bytes(gzip.compress(plain.read_bytes()))
    tabs = table(tmp_path / "pairs.tsv", HEADER, *CELLS, separator="\t")
    semicolons = table(tmp_path / "pairs2.csv", HEADER, *CELLS, separator=";")
    for path in (array, plain, packed, shouted, tabs, semicolons):
        assert load_items(path).items == expected.items, path
    assert load_items(packed).name == load_items(array).name == "pairs"
    assert items_of(ROWS).fingerprint == load_items(packed).fingerprint == expected.fingerprint


@pytest.mark.parametrize(
    "names",
    [
        "candidate_0 candidate_1 candidate_2",
        "option_a option_b option_c",
        "Option_A Option_B Option_C",
        "answer_a answer_b answer_c",
        "response_a response_b response_c",
        "A B C",
        "c a b",
    ],
)
def test_candidates_may_stand_in_columns(names: str) -> None:
    texts = {name: name.lower()[-1] for name in names.split()}
    item = item_of({"id": "x", "prompt": "p", **texts, "gold": 2})
    assert item.candidates == tuple(sorted(texts.values()))
    assert item.task is Task.MCQ


PAIR = {"id": "x", "prompt": "p"}
LISTED = {**PAIR, "candidates": ["a", "b"]}


def test_two_columns_are_a_pair_and_a_task_that_is_given_counts() -> None:
    pair = {**PAIR, "a": "1", "b": "2"}
    assert item_of(pair).task is Task.PAIRWISE
    assert item_of({**pair, "task": "mcq"}).task is Task.MCQ
    with_empty_end = item_of({**pair, "c": "", "d": None})
    assert (with_empty_end.candidates, with_empty_end.task) == (("1", "2"), Task.MCQ)
    nan = float("nan")  # as a data frame has what is missing
    item = item_of({**pair, "gold": 1.0, "group": nan, "meta.k": nan})
    assert (item.gold, item.group, item.meta) == (1, None, {})


def test_two_levels_with_values_are_a_rubric_without_a_task() -> None:
    levels = {"id": "a", "prompt": "p", "response": "r", "candidates": ["bad", "good"]}
    record = {**levels, "values": [0, 1]}
    assert decode_item(json.dumps(record)) == item_of(record)
    assert decode_item(json.dumps(record)).task is Task.RUBRIC
    assert decode_item(json.dumps({**record, "task": "pairwise"})).task is Task.PAIRWISE


def test_levels_stand_in_columns_by_their_values(tmp_path: Path) -> None:
    header = ["id", "prompt", "response", "level_5", "level_1", "level_2.5", "gold"]
    levels = ["clear", "wrong", "half right"]
    cells: list[list[object]] = [
        ["r1", "Explain rain.", "It falls.", *levels, 3.5],
        ["r2", "Explain snow.", "[1]", *levels, ""],
    ]
    items = load_items(table(tmp_path / "scale.csv", header, *cells))
    assert items.task is Task.RUBRIC
    assert [item.values for item in items] == [(1.0, 2.5, 5.0)] * 2  # the lowest first
    assert items[0].candidates == ("wrong", "half right", "clear")
    assert [item.response for item in items] == ["It falls.", "[1]"]
    assert [item.human_score() for item in items] == [3.5, None]
    records = [dict(zip(header, row, strict=True)) for row in cells]
    records[1]["gold"] = float("nan")  # as a data frame has it
    assert items_of(records, name="scale").items == items.items


def test_values_beside_candidates_make_a_scale(tmp_path: Path) -> None:
    header = ["id", "prompt", "response", "a", "b", "c", "values", "gold"]
    rows: list[list[object]] = [["r1", "p", "r", "low", "middle", "high", "[0, 1, 2]", 2]]
    (item,) = load_items(table(tmp_path / "scale.tsv", header, *rows, separator="\t"))
    assert (item.task, item.values, item.gold_candidates()) == (Task.RUBRIC, (0.0, 1.0, 2.0), (2,))


def test_list_to_rank_is_marked_in_its_column(tmp_path: Path) -> None:
    header, row = ["id", "prompt", "a", "b", "c", "gold"], ["l1", "p", "x", "y", "z", 1]
    path = table(tmp_path / "list.csv", [*header, "task"], [*row, "listwise"])
    assert load_items(path, task="listwise")[0].task is Task.LISTWISE
    options = table(tmp_path / "options.csv", header, row)
    with pytest.raises(ItemError, match=r"no items of task listwise \(1 mcq\)\. .* column\) task"):
        load_items(options, task="listwise")


LEVELS = {"id": "r", "prompt": "p", "response": "r", "level_1": "low", "level_2": "high"}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({**LEVELS, "level_2": " "}, "level_2: is empty: every level needs"),
        ({**LEVELS, "level_2": None}, "level_2: is empty"),
        ({**LEVELS, "values": [1, 2]}, "values: is given, and so are the columns level_1, level_2"),
        ({**LEVELS, "response": None}, "response: rubric needs the text that is scored"),
        ({**LEVELS, "level_1.0": "low"}, r"values: \[1.0, 1.0, 2.0\] are not 3 different numbers"),
        ({**LEVELS, "gold": "high"}, "gold: for rubric gold is a number"),
        ({**PAIR, "response": "r", "level_1": "low"}, "candidates: needs at least 2, got 1"),
        (
            {**LISTED, "task": "listwise", "candidates": ["a"]},
            "candidates: needs at least 2, got 1",
        ),
    ],
)
def test_a_scale_or_list_that_is_none_says_why(record: dict[str, object], message: str) -> None:
    with pytest.raises(ItemError, match=message):
        item_of(record)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({**PAIR, "a": "1", "c": "3"}, "candidates: have columns a, c: count from 0, 1 or a with"),
        ({**PAIR, "candidate_2": "1", "candidate_3": "2"}, "count from 0, 1 or a without"),
        ({**PAIR, "a": "1", "b": "2", "option_a": "3"}, "columns of different kinds"),
        ({**PAIR, "a": "1", "A": "2"}, "A: is the same candidate as a"),
        ({**PAIR, "a": "1", "b": None}, "b: is empty"),
        ({**PAIR, "a": "1", "b": "", "c": "3"}, "b: is empty"),
        ({**LISTED, "golds": 1}, "golds: .*Did you mean 'gold'.*meta"),
        ({**LISTED, "rating": 1}, "rating: is not a field .*into meta"),
        ({**LISTED, "gold": "B"}, "counted from 0, so write 1 for B"),
        ({**LISTED, "gold": "1"}, "write 1 without quotes"),
        ({**LISTED, "gold": "first"}, "write 0 to 1, a list of them"),
        ({**LISTED, "meta": 1, "meta.k": 2}, "meta: expected an object"),
    ],
)
def test_invalid_record_gives_reason(record: dict[str, object], message: str) -> None:
    with pytest.raises(ItemError, match=message):
        item_of(record)
    with pytest.raises(ItemError, match=rf"^mine:1: (.* )?{message}"):
        items_of([record], name="mine")


def test_all_bad_lines_are_counted_and_five_are_shown(tmp_path: Path) -> None:
    good = LISTED
    bad = [{**good, "id": f"b{k}", "gold": "A"} for k in range(7)]
    path = lines(tmp_path / "x.jsonl", good, *bad)
    with pytest.raises(ItemError) as caught:
        load_items(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: 7 bad lines:\n  {path}:2: gold: 'A' is not")
    assert message.count("'A' is not") == 1
    assert "(so it is on line 3, 4, 5, 6 and 2 more)" in message
    assert message.endswith("--on-bad-item skip.")
    assert len(load_items(path, on_bad_item="skip").bad_lines) == 7


def test_lines_with_one_fault_are_reported_once(tmp_path: Path) -> None:
    faults = [*([{"rating": 1}] * 2), *({f"own_{k}": 1} for k in range(6))]
    records = [{**LISTED, "id": str(k), **own} for k, own in enumerate(faults)]
    path = lines(tmp_path / "x.jsonl", *records)
    with pytest.raises(ItemError) as caught:
        load_items(path)
    said = str(caught.value).splitlines()
    assert said[0] == f"{path}: 8 bad lines:"
    assert said[1].startswith(f"  {path}:1: rating: is not a field")
    assert said[1].endswith("(so it is on line 2)")
    assert said[2].startswith(f"  {path}:3: own_0: ")
    assert said[6] == "  and 2 more"


def test_bad_rows_of_a_table_are_named_by_their_first_line(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('id,prompt,a,b,gold\nq1,"p\np",1,2,0\nq2,p,1,2,A\nq3,p,1\n\nq4,p,"1" 2,3,4\n')
    loaded = load_items(path, on_bad_item="skip")
    assert [item.id for item in loaded] == ["q1"]
    found = [(bad.line, bad.field) for bad in loaded.bad_lines]
    assert found == [(4, "gold"), (5, "row"), (7, "row")]
    assert "3 cells under 5 columns" in str(loaded.bad_lines[1])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            "id,prompt,a,b\nq1,é,1,2\n".encode("latin-1"),
            r"x\.csv: line 2: is not UTF-8; save the t",
        ),
        (b"id,,a,prompt,,a\nq1,x,p,1,y,2\n", r"x\.csv: a: is the name of two columns"),
        (b"id,prompt,a,b\n", "no items"),
    ],
)
def test_a_table_that_cannot_be_read_at_all_says_what_to_do(
    content: bytes, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(ItemError, match=reason):
        load_items(tmp_path / "x.csv")


def test_a_table_with_bom_index_column_and_long_cells_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    text = "x" * 200_000
    path.write_bytes(b"\xef\xbb\xbf,id,prompt,a,b\r\n0,q1,p,1," + text.encode() + b"\r\n")
    assert load_items(path)[0].candidates == ("1", text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (json.dumps([LISTED, 7]), r"x\.json:2: item: Expected `object`, got `int`"),
        ('[{"id": 1}, ', r"x\.json: not a valid JSON array"),
        (b"\xef\xbb\xbf".decode(), r"x\.json: no items\.$"),  # a byte order mark alone
    ],
)
def test_a_broken_array_is_refused_and_bad_entries_are_named(
    text: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(ItemError, match=reason):
        load_items(tmp_path / "x.json")


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.jsonl", f'{{"id": 7, "meta": {DEEP}}}\n'),
        ("x.json", f'[{{"id": 7, "meta": {DEEP}}}]'),
        ("x.csv", f'id,prompt,a,b,gold\nq,p,1,2,"{DEEP}"\n'),
    ],
    ids=["lines", "array", "table"],
)
def test_nesting_that_is_too_deep_is_a_bad_line(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ItemError):
        load_items(tmp_path / name)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    packed = bytearray(gzip.compress(b"id,prompt,a,b\n" + b"q,p,1,2\n" * 5000))
    packed[40:60] = b"\xff" * 20
    path.write_bytes(bytes(packed))
    with pytest.raises(UsageError, match="cannot read"):
        load_items(path)
    with pytest.raises(UsageError, match="it is a directory; give a file"):
        load_items(tmp_path)


def test_parquet_that_holds_what_python_cannot_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    file = tmp_path / "items.parquet"
    offsets, text = (pa.py_buffer(part) for part in (b"\0\0\0\0\1\0\0\0", b"\xff"))
    for column in (
        pa.Array.from_buffers(pa.string(), 1, [None, offsets, text]),  # no UTF-8
        pa.array([2**30], pa.date32()),
        pa.array([2**62], pa.timestamp("us")),
        pa.array([2**62], pa.duration("s")),
    ):
        given = {"id": ["a"], "prompt": ["p"], "candidates": [["x", "y"]], "meta.x": column}
        parquet.write_table(pa.table(given), file)
        with pytest.raises(UsageError, match=r"cannot read .*items\.parquet: "):
            load_items(file)


@pytest.mark.parametrize("name", ["pairwis", "xyz"])
def test_reason_of_bad_line_ends_once(name: str, tmp_path: Path) -> None:
    record = {**LISTED, "task": name}
    with pytest.raises(ItemError, match=r"[\w?]\)\. Fix the line, or"):
        load_items(lines(tmp_path / "x.jsonl", record))
