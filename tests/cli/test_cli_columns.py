"""Every command with data reads other people's columns as it reads the same items in our format."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from cli_commands import Ran, Run

from unswayed.model.items import encode_item, load_items
from unswayed.tiny.items import builtin_items

COLUMNS = "prompt=Text,candidates=First|Second,gold=Right,gold_from=0,group=Topic"


@pytest.fixture
def own(folder: Path) -> Path:
    """The items of `sheet.csv` in our format; the sheet has headings of its own."""
    with (folder / "sheet.csv").open("w", newline="") as file:
        sheet = csv.writer(file)
        sheet.writerow(["Text", "First", "Second", "Right", "Topic"])
        for item in builtin_items("tiny-judge-train")[:100]:
            sheet.writerow([item.prompt, *item.candidates, item.gold, item.group])
    items = load_items("sheet.csv", columns=COLUMNS)
    assert len({item.group for item in items}) == 10
    path = folder / "own.jsonl"
    path.write_bytes(b"".join(encode_item(item) + b"\n" for item in items))
    return path


def both(run: Run, own: Path, *command: str, out: str = "") -> tuple[Ran, Ran]:
    """The command on the sheet, with the names of its columns, and on the items in our format."""
    parts = []
    for data, more in (("sheet.csv", ["--columns", COLUMNS]), (str(own), [])):
        wanted = [f"{data}.{out}" if part == "OUT" else part for part in command]
        ran = run(*[data if part == "DATA" else part for part in wanted], *more)
        assert ran.code == 0, ran.err
        parts.append(ran)
    assert "sheet.csv: took Text as prompt; First | Second as candidates" in parts[0].err
    return parts[0], parts[1]


def test_calibrate_fits_the_same(run: Run, own: Path) -> None:
    both(
        run, own, "calibrate", "pride", "DATA", "--model", "tiny/judge", "--out", "OUT", out="json"
    )
    fitted = [json.loads(Path(f"{name}.json").read_text()) for name in ("sheet.csv", own)]
    assert fitted[0] == fitted[1]


def test_filter_keeps_the_same(run: Run, own: Path) -> None:
    both(run, own, "filter", "DATA", "--model", "tiny/judge", "--out", "OUT", out="kept.jsonl")
    kept = [Path(f"{name}.kept.jsonl").read_bytes() for name in ("sheet.csv", own)]
    assert kept[0] == kept[1]
    assert 0 < len(kept[0].splitlines()) < 100


def test_export_writes_the_same(run: Run, own: Path) -> None:
    both(run, own, "export", "DATA", "--what", "items", "--out", "OUT", out="items.jsonl")
    written = [Path(f"{name}.items.jsonl").read_bytes() for name in ("sheet.csv", own)]
    assert written[0] == written[1] == own.read_bytes()


def test_advise_recommends_the_same(run: Run, own: Path) -> None:
    first, second = both(run, own, "train", "advise", "DATA", "--model", "tiny/judge")
    told = first.out.replace("sheet.csv", own.name).replace("runs/sheet-", "runs/own-")
    assert f" --columns '{COLUMNS}'" in told  # the command to train with reads the same columns
    assert told.replace(f" --columns '{COLUMNS}'", "") == second.out.replace(str(own), own.name)


def test_train_plans_the_same(run: Run, own: Path) -> None:
    command = [
        "train",
        "distill",
        "DATA",
        "--recipe",
        "tiny-judge",
        "--out",
        "trained",
        "--dry-run",
    ]
    plans: list[Any] = [ran.json for ran in both(run, own, *command)]
    assert plans[0] == plans[1]


def test_columns_of_run_directory_are_refused(run: Run, own: Path) -> None:
    assert (
        run("audit", own, "--model", "tiny/judge", "--resamples", "100", "--out", "run").code == 0
    )
    ran = run("export", "run", "--columns", COLUMNS, "--out", "decisions.jsonl")
    assert ran.code == 2
    assert "--columns works only with --what items" in ran.err
