"""`unswayed report`: finished runs again, side by side, and clear words about anything else."""

import json
import shutil
from pathlib import Path

import pytest
from cli_commands import SIMULATED, Run, pair, write_lines

import unswayed as us


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    folder = tmp_path_factory.mktemp("audited")
    items = write_lines(folder / "pairs.jsonl", [pair(number) for number in range(30)])
    us.audit(SIMULATED, items, out=folder / "run", resamples=100)
    return folder / "run"


@pytest.fixture
def finished(audited: Path, folder: Path) -> Path:
    """A copy of a finished run, to change."""
    return Path(shutil.copytree(audited, "run"))


def test_a_finished_run_is_written_again(run: Run, finished: Path) -> None:
    ran = run("report", finished, "--out", "again/report.html")
    assert (ran.code, ran.out) == (0, "again/report.html\n")
    assert Path("again/report.html").read_text() == (finished / "report.html").read_text()


def test_several_runs_stand_side_by_side(run: Run, finished: Path, pairs: Path) -> None:
    other = "simulated/judge?slot=2"
    command = ["audit", pairs, "--model", other, "--out", "other", "--resamples", "100"]
    assert run(*command).code == 0
    ran = run("report", finished, "other", "--out", "both.html")
    assert ran.code == 0
    assert ran.out.startswith("judge?slot=2&")
    assert ": Compared item by item with judge?slot=0.6" in ran.out
    page = Path("both.html").read_text()
    assert "slot=0.6" in page
    assert "slot=2" in page


def test_figures_are_named(run: Run, finished: Path) -> None:
    ran = run("report", finished, "--out", "report.html", "--figures", "figures")
    assert ran.code == 0
    for line in ran.out.splitlines():
        assert Path(line).is_file()
    assert {Path(line).suffix for line in ran.out.splitlines()} == {".html", ".pdf", ".svg", ".png"}


def test_a_directory_without_a_finished_run_is_refused(run: Run, folder: Path, pairs: Path) -> None:
    for name in ("absent", ".", pairs):
        ran = run("report", name, "--out", "report.html")
        assert ran.code == 2
        assert "is not a finished run. Run the audit first" in ran.err
    assert not Path("report.html").exists()


@pytest.mark.parametrize("name", ["metrics.json", "run.json", "flipped.json"])
@pytest.mark.parametrize("content", ["", "{", "[]", "null", "\x00"])
def test_a_damaged_file_is_named(name: str, content: str, run: Run, finished: Path) -> None:
    (finished / name).write_text(content)
    ran = run("report", finished, "--out", "report.html")
    assert ran.code == 2
    assert name in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not Path("report.html").exists()


@pytest.mark.parametrize("name", ["metrics.json", "run.json", "flipped.json"])
def test_a_file_that_is_not_what_the_audit_wrote_is_refused(
    name: str, run: Run, finished: Path
) -> None:
    file = finished / name
    file.write_text(file.read_text().replace("3", "4", 1))
    ran = run("report", finished, "--out", "report.html")
    assert ran.code == 2
    assert f"{name} has changed since the audit wrote it" in ran.err


def test_an_empty_file_of_sums_is_refused(run: Run, finished: Path) -> None:
    (finished / "SHA256SUMS").write_bytes(b"")
    ran = run("report", finished, "--out", "report.html")
    assert ran.code == 2
    assert "remove SHA256SUMS" in ran.err


@pytest.mark.parametrize(
    ("name", "section", "value"),
    [
        ("metrics.json", "methods", {"direct": 5}),
        ("metrics.json", "methods", {"direct": {"accuracy": {"value": "x"}}}),
        ("metrics.json", "methods", {"direct": {"strata": {"two": {}}}}),
        ("metrics.json", "calls", {"planned": "many"}),
        ("metrics.json", "groups", {"g": []}),
        ("metrics.json", "recommendation", {"method": ["vote"]}),
        ("run.json", "seed", -1),
        ("run.json", "seed", "x"),
    ],
)
def test_a_value_of_another_type_is_refused(
    name: str, section: str, value: object, run: Run, finished: Path
) -> None:
    content = json.loads((finished / name).read_text())
    (finished / name).write_text(json.dumps({**content, section: value}))
    (finished / "SHA256SUMS").unlink()
    ran = run("report", finished, "--out", "report.html")
    assert ran.code == 2
    assert "is damaged: " in ran.err


@pytest.mark.parametrize("section", ["methods", "protocols", "calls", "data"])
def test_metrics_of_something_else_are_refused(section: str, run: Run, finished: Path) -> None:
    metrics = json.loads((finished / "metrics.json").read_text())
    del metrics[section]
    (finished / "metrics.json").write_text(json.dumps(metrics))
    (finished / "SHA256SUMS").unlink()
    ran = run("report", finished, "--out", "report.html")
    assert ran.code == 2
    assert f"has no section {section!r}" in ran.err


def test_unwritable_report_is_reported(run: Run, finished: Path) -> None:
    assert "is a directory" in run("report", finished, "--out", finished).err
    Path("file").write_text("")
    assert "cannot make file" in run("report", finished, "--out", "file/report.html").err
