"""Exported items load as the same items, and a folder opens as a dataset."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unswayed.auditing.export_items import export_items, items_of_run
from unswayed.auditing.run_directory import write_text
from unswayed.base.errors import RunDirectoryError, UsageError
from unswayed.base.files import temporary_for
from unswayed.cli import main
from unswayed.model.items import Item, Message, Task, load_items

PAIRS = [
    Item(
        id="a", prompt="Which?", candidates=("x, y", 'say "z"'), gold=1, group="g", meta={"k": [1]}
    ),
    Item(id="b", prompt="", candidates=("one\ntwo", ""), gold="tie", permutable=False),
    Item(id="c", prompt="ünï", candidates=("1", "true"), reference="r", meta={"a": {"b": None}}),
]
QUESTIONS = [
    Item(id="q", task=Task.MCQ, prompt="?", candidates=("a", "b", "c"), gold=(0, 2)),
    Item(id="r", task=Task.MCQ, prompt="?", candidates=("a", "b"), gold=0),
]
SCALES = [
    Item(id="s", task=Task.RUBRIC, prompt="p", candidates=("bad", "good"), values=(1.0, 2.5),
         response="text", gold=1.5),
    Item(id="t", task=Task.RUBRIC, prompt="p", candidates=("bad", "good"), values=(1.0, 2.0),
         response="text", criteria=("clear", "true"), gold={"clear": 2.0}),
]  # fmt: skip
TALK = (Message("assistant", "a"), Message("user", "b")), (Message("assistant", "c"),)
TALKS = [Item(id="m", prompt=(Message("user", "hello"),), candidates=TALK, gold=0)]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("items", [PAIRS, QUESTIONS, SCALES], ids=["pairs", "questions", "scales"])
def test_items_come_back_as_they_were(items: list[Item], ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"items.{ending}"
    assert export_items(items, file, ending) == len(items)  # type: ignore[arg-type]
    assert list(load_items(file)) == items


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_conversations_come_back_as_they_were(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"items.{ending}"
    export_items(TALKS, file, ending)  # type: ignore[arg-type]
    assert list(load_items(file)) == TALKS


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=5))
def test_any_text_comes_back_from_parquet_and_lines(texts: list[tuple[str, str, str]]) -> None:
    import tempfile

    items = [Item(id=f"i{k}", prompt=p, candidates=(a, b)) for k, (p, a, b) in enumerate(texts)]
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("jsonl", "parquet"):
            file = Path(folder) / f"x.{ending}"
            export_items(items, file, ending)  # type: ignore[arg-type]
            assert list(load_items(file)) == items


def test_a_csv_runs_no_formula_and_holds_no_conversation(tmp_path: Path) -> None:
    item = Item(id="f", prompt="=1+1", candidates=("=2", "b"))
    export_items([item], tmp_path / "f.csv", "csv")
    (again,) = load_items(tmp_path / "f.csv")
    assert again.prompt == "'=1+1"
    assert again.candidates == item.candidates  # in JSON they are no formula
    scale = msgspec.structs.replace(SCALES[0], response="")
    with pytest.raises(UsageError, match=r"s: a CSV cannot hold an empty response.*parquet"):
        export_items([scale], tmp_path / "s.csv", "csv")
    with pytest.raises(UsageError, match="m: a conversation as a prompt"):
        export_items(TALKS, tmp_path / "m.csv", "csv")
    with pytest.raises(UsageError, match="prompt: text in some items"):
        export_items([*PAIRS, *TALKS], tmp_path / "m.parquet", "parquet")


@pytest.mark.parametrize("items", [PAIRS, SCALES, TALKS], ids=["pairs", "scales", "conversations"])
def test_a_folder_opens_as_a_dataset(items: list[Item], tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    folder = tmp_path / "set"
    assert export_items(items, folder, "dataset") == len(items)
    assert sorted(entry.name for entry in folder.iterdir()) == ["README.md", "items.parquet"]
    names = pq.read_schema(folder / "items.parquet").names
    card = (folder / "README.md").read_text()
    assert [line[10:] for line in card.splitlines() if line.startswith("  - name: ")] == names
    assert list(load_items(folder / "items.parquet")) == items
    export_items(items, folder, "dataset")  # again, over what it wrote
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(RunDirectoryError, match=r"holds notes\.txt"):
        export_items(items, folder, "dataset")


def test_a_folder_where_an_export_was_killed_is_taken_again(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    for name in ("items.parquet", "README.md"):
        temporary_for(folder / name).write_bytes(b"half")
    export_items(PAIRS, folder, "dataset")
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "items.parquet"]


@pytest.mark.parametrize("items", [PAIRS, SCALES, TALKS], ids=["pairs", "scales", "conversations"])
def test_datasets_reads_the_folder_with_the_features_of_its_card(
    items: list[Item], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    export_items(items, tmp_path / "set", "dataset")
    loaded = datasets.load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))["test"]
    assert loaded["id"] == [item.id for item in items]
    assert [json.loads(gold) if gold else None for gold in loaded["gold"]] == [
        list(item.gold) if isinstance(item.gold, tuple) else item.gold for item in items
    ]
    assert set(loaded.features) == set(Item.__struct_fields__)


def test_the_command_writes_items_and_decisions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = str(tmp_path / "run")
    audit = ["audit", "--limit", "5", "--orders", "swap", "--methods", "direct"]
    audit += ["--resamples", "100"]
    assert main([*audit, "--protocol", "coupled", "--out", run]) == 0
    assert main(["export", run, "--what", "items", "--out", str(tmp_path / "i.parquet")]) == 0
    assert "5 items -> " in capsys.readouterr().out
    items = load_items(tmp_path / "i.parquet")
    assert list(items) == list(items_of_run(run))
    assert main(["export", "tiny-mcq", "--what", "items", "--out", str(tmp_path / "m.csv")]) == 0
    assert load_items(tmp_path / "m.csv").task == Task.MCQ
    (tmp_path / "dataset.json").write_text(
        json.dumps([{"input": "Do it.", "output_1": "a", "output_2": "b", "label": 2}])
    )
    named = ["export", "llmbar:Natural", "--what", "items", "--out", str(tmp_path / "n.jsonl")]
    assert main([*named, "--data-dir", str(tmp_path)]) == 0
    assert load_items(tmp_path / "n.jsonl")[0].gold == 1
    folder = tmp_path / "calls"
    assert main(["export", run, "--as", "dataset", "--out", str(folder)]) == 0
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))["test"]
    assert len(loaded) == 10
    assert loaded[0]["order"] == [0, 1]


def test_recorded_decisions_have_no_items_to_export(tmp_path: Path) -> None:
    call = {"item_id": "q", "labels": ["A", "B"], "label_set": ["A", "B"], "choice": 0}
    lines = [json.dumps({**call, "order": order}) for order in ([0, 1], [1, 0])]
    write_text(tmp_path / "d.jsonl", "\n".join(lines))
    run = str(tmp_path / "run")
    command = ["audit", "--decisions", str(tmp_path / "d.jsonl"), "--resamples", "100"]
    assert main([*command, "--out", run]) == 0
    with pytest.raises(RunDirectoryError, match="holds no items"):
        items_of_run(run)
