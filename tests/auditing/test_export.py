"""Exported decisions are those the audit measured, in every format."""

import csv
import json
import shutil
import sqlite3
from pathlib import Path

import msgspec
import pytest

import unswayed as us
from unswayed.auditing.export import decisions_of_run, export_decisions
from unswayed.backends.simulated import simulated_items
from unswayed.base.errors import RunDirectoryError
from unswayed.cli import main
from unswayed.model.decisions import Decision
from unswayed.model.items import encode_item

MODEL = "simulated/judge?slot=0.6&label=0.4&unparsed=0.05&tie=0.05"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    items = simulated_items(60, 2, seed=3)
    lines = "".join(f"{encode_item(item).decode()}\n" for item in items)
    (folder / "items.jsonl").write_text(lines)
    command = ["audit", str(folder / "items.jsonl"), "--model", MODEL, "--protocol", "all"]
    out = ["--methods", "vote,average,repeat,pride", "--resamples", "100", "--out"]
    assert main([*command, *out, str(folder / "run")]) == 0
    return folder / "run"


def test_auditing_exported_decisions_gives_the_same_figures(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "decisions.jsonl"
    assert main(["export", str(run), "--out", str(file)]) == 0
    capsys.readouterr()
    items = run.parent / "items.jsonl"
    again = ["audit", str(items), "--decisions", str(file)]
    again += ["--methods", "vote,average,repeat,pride"]
    assert main([*again, "--resamples", "100", "--json", "--out", str(tmp_path / "again")]) == 0
    found = json.loads(capsys.readouterr().out)
    first = json.loads((run / "metrics.json").read_text())
    for method in ("direct", "vote", "average", "repeat", "pride"):
        for metric in ("accuracy", "consistency", "tie_rate", "unparsed_rate"):
            got, want = (m["methods"][method][metric]["value"] for m in (found, first))
            assert got == pytest.approx(want, abs=1e-12), (method, metric)
    assert found["protocols"].keys() == first["protocols"].keys()


def test_csv_has_one_row_a_decision_and_lists_as_json(run: Path, tmp_path: Path) -> None:
    decisions = list(decisions_of_run(run))
    assert len({(d.item_id, d.ask) for d in decisions}) == len(decisions)
    count = export_decisions(decisions, tmp_path / "d.csv", "csv")
    with (tmp_path / "d.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == count == len(decisions)
    assert rows[0].keys() == set(Decision.__struct_fields__)
    assert tuple(json.loads(rows[0]["order"])) == decisions[0].order


def test_parquet_keeps_choices_and_probabilities(run: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    decisions = list(decisions_of_run(run))
    export_decisions(decisions, tmp_path / "d.parquet", "parquet")
    table = parquet.read_table(tmp_path / "d.parquet").to_pydict()
    choices = [None if d.choice is None else str(d.choice) for d in decisions]
    assert table["choice"] == choices
    assert [None if p is None else tuple(p) for p in table["probs"]] == [d.probs for d in decisions]


@pytest.mark.parametrize("methods", ["direct,average", "direct,pride"])
def test_the_decisions_of_a_run_are_those_of_its_result(methods: str, tmp_path: Path) -> None:
    items = simulated_items(24, 2, seed=3)
    probs = {"probs": "sampled:5", "methods": methods, "resamples": 100}
    result = us.audit(MODEL, items, out=tmp_path / "run", **probs)  # type: ignore[arg-type]
    exported = {(d.item_id, d.ask): d for d in decisions_of_run(tmp_path / "run")}
    assert exported == {(d.item_id, d.ask): d for d in result.decisions}
    assert any(d.probs is not None for d in exported.values())
    in_memory = us.audit(MODEL, items, **probs)  # type: ignore[arg-type]
    assert len(in_memory.decisions) == len(exported) == 24 * 2 * 6


def test_a_run_whose_template_changed_is_refused(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    copy.mkdir()
    record = json.loads((run / "run.json").read_text())
    record["prompt"]["fingerprint"] = "sha256:other"
    (copy / "run.json").write_text(json.dumps(record))
    with pytest.raises(RunDirectoryError, match="has changed since"):
        list(decisions_of_run(copy))
    record.pop("prompt_settings")
    (copy / "run.json").write_text(msgspec.json.encode(record).decode())
    with pytest.raises(RunDirectoryError, match="Run the audit again"):
        list(decisions_of_run(copy))


@pytest.mark.parametrize(
    ("name", "options", "first"),
    [
        ("d.csv", [], "item_id,"),
        ("D.CSV", [], "item_id,"),
        ("d.jsonl", [], "{"),
        ("d.txt", [], "{"),
        ("d.txt", ["--as", "csv"], "item_id,"),
        ("d.csv", ["--as", "jsonl"], "{"),
    ],
)
def test_the_name_says_the_format_unless_it_is_given(
    run: Path, tmp_path: Path, name: str, options: list[str], first: str
) -> None:
    file = tmp_path / name
    assert main(["export", str(run), "--out", str(file), *options]) == 0
    assert file.read_text().startswith(first)


@pytest.mark.parametrize("name", ["d.xlsx", "d.jsonl.gz"])
def test_a_name_that_promises_another_format_is_refused(
    run: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(run), "--out", str(tmp_path / name)]) == 2
    assert "Let the name end in .jsonl, .csv, .parquet" in capsys.readouterr().err
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "＝1"])
def test_a_cell_that_a_spreadsheet_would_run_is_text(text: str, tmp_path: Path) -> None:
    decision = Decision(
        item_id=text, order=(0, 1), labels=("A", "B"), label_set=("A", "B"), text=text, model=text
    )
    export_decisions([decision], tmp_path / "d.csv", "csv")
    with (tmp_path / "d.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["item_id"] == row["text"] == row["model"] == f"'{text}"


def with_row(run: Path, folder: Path, value: str) -> Path:
    """Copy a run, with one recorded answer overwritten."""
    damaged = Path(shutil.copytree(run, folder / "run"))
    connection = sqlite3.connect(damaged / "calls.sqlite")
    connection.execute(f"UPDATE calls SET response = {value} WHERE id = 7")
    connection.commit()
    connection.close()
    return damaged


def test_an_export_reports_a_damaged_answer(run: Path, tmp_path: Path) -> None:
    damaged = with_row(run, tmp_path, "CAST('x' AS BLOB)")
    out = tmp_path / "d.jsonl"
    with pytest.raises(RunDirectoryError, match=r"1 of \d+ answers is missing or damaged"):
        export_decisions(decisions_of_run(damaged), out, "jsonl")
    assert not out.exists()


def test_a_damaged_answer_is_asked_for_again_and_said(run: Path, tmp_path: Path) -> None:
    damaged = with_row(run, tmp_path, "substr(response, 2)")
    command = ["audit", str(run.parent / "items.jsonl"), "--model", MODEL, "--protocol", "all"]
    methods = ["--methods", "vote,average,repeat,pride", "--resamples", "100"]
    assert main([*command, *methods, "--out", str(damaged)]) == 0
    first, again = (json.loads((d / "metrics.json").read_text()) for d in (run, damaged))
    assert again["methods"] == first["methods"]
    assert again["calls"]["made"] == 1
    warnings = json.loads((damaged / "run.json").read_text())["warnings"]
    assert "1 damaged answer asked for again." in warnings


def test_a_run_of_all_methods_exports_what_could_be_asked(tmp_path: Path) -> None:
    # the tiny judge has no words for other prompts, so "all" leaves methods out
    command = ["audit", "tiny-judge", "--limit", "12", "--methods", "all", "--resamples", "100"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    planned = json.loads((tmp_path / "run" / "metrics.json").read_text())["calls"]["planned"]
    questions = [(d.item_id, d.ask) for d in decisions_of_run(tmp_path / "run")]
    # content-free questions about different items are one call
    assert len(set(questions)) == len(questions) >= planned
