"""Run directories: names, whole files, clear refusals."""

import json
from pathlib import Path

import pytest

import unswayed as us
from unswayed.auditing.run_directory import (
    default_directory,
    json_text,
    package_versions,
    prepare_directory,
    read_json,
    write_text,
)
from unswayed.base.errors import RunDirectoryError


def test_the_default_directory_name_is_valid_everywhere() -> None:
    assert default_directory("pairs", "openai/gpt-4.1-mini") == Path(
        "runs/pairs-openai-gpt-4.1-mini"
    )
    odd = default_directory("a b/../c", "simulated/judge?slot=1&x=\u202e").name
    assert odd == "a-b-..-c-simulated-judge-slot-1-x"
    assert len(default_directory("x" * 500, "y").name) <= 120


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(RunDirectoryError, match="is a file, not a directory"):
        prepare_directory(tmp_path / "run")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    write_text(path, "old")
    with pytest.raises(RunDirectoryError, match="cannot write"):
        write_text(tmp_path / "absent" / "metrics.json", "new")
    write_text(path, "new")
    assert path.read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["metrics.json"]


def test_lone_surrogates_do_not_stop_a_report(tmp_path: Path) -> None:
    write_text(tmp_path / "x", "a\ud800b")
    assert (tmp_path / "x").read_text() == "a?b"


def test_metrics_never_hold_what_json_cannot() -> None:
    with pytest.raises(ValueError, match="Out of range float values"):
        json_text({"x": float("nan")})
    assert json.loads(json_text({"é": 1})) == {"é": 1}


@pytest.mark.parametrize("content", ["{", "[]", "\x00", '"x"'])
def test_a_damaged_file_is_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(content)
    with pytest.raises(RunDirectoryError, match=r"run\.json"):
        read_json(path)


def test_a_directory_without_a_run_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="Run the audit first"):
        read_json(tmp_path / "metrics.json")


def test_versions_are_those_of_what_is_installed() -> None:
    versions = package_versions()
    assert versions["unswayed"]
    assert versions["python"].count(".") == 2


def test_a_run_keeps_what_columns_were_taken_for(tmp_path: Path) -> None:
    row = {"question": "Which?", "candidates": ["x", "y"]}
    (tmp_path / "items.jsonl").write_text(json.dumps(row))
    us.audit("simulated/judge", tmp_path / "items.jsonl", out=tmp_path / "run", resamples=100)
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert "took question as prompt" in run["data"]["read_as"]
