"""The evidence pages show the data that the benchmarks measured."""

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from scripts import load_script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def evidence() -> ModuleType:
    return load_script("docs/evidence.py")


@pytest.fixture
def data() -> dict[str, Any]:
    columns = ["statement", "setting", "rate", "trials", "bound"]
    rows = [
        ["false alarm", "2 candidates, 60 items", "5.8%", "400", "≤ 7.0%"],
        ["false alarm", "4 candidates, 60 items", "3.8%", "400", "≤ 7.0%"],
        ["true alarm", "2 candidates, 60 items", "98.0%", "40", "–"],
    ]
    table = {"command": "python x.py", "measured": "2026-11-22", "columns": columns, "rows": rows}
    return {
        "tables": {"drift": table},
        "figures": {
            "worst": ["drift", "4 candidates", "rate"],
            "few": "3 of 4",
            "checks": {"sum": ["drift", "trials"]},
        },
        "views": {
            "alarms": {"table": "drift", "match": r"(?P<column>\w+ alarm) \| (?P<row>.*), 60"},
            "true": {"table": "drift", "match": "^true"},
        },
    }


def test_pages_show_the_measured_data(evidence: ModuleType) -> None:
    made = evidence.pages()
    wrong = [page.name for page, text in made.items() if page.read_text(encoding="utf-8") != text]
    assert wrong == [], "run: python docs/evidence.py"
    assert len(made) > 50


def test_every_marker_of_evidence_is_read(evidence: ModuleType) -> None:
    for page in (Path(__file__).parents[2] / "docs" / "evidence").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert len(re.findall(r"begin\s+-->", text)) == len(evidence.BLOCK.findall(text))
    broken = evidence.BLOCK.match("<!--\n  few:\n begin -->2<!-- few: end\n-->")
    assert broken is not None


def test_page_shows_data_of_another_by_name(
    evidence: ModuleType, data: dict[str, Any], tmp_path: Path
) -> None:
    evidence.save("claims", data, tmp_path)
    text = "<!-- claims.few: begin -->old<!-- claims.few: end --> <!-- few: begin -->2<!-- few: end -->"
    assert evidence.page_text(text, folder=tmp_path) == text.replace("old", "3 of 4")


def test_view_shows_some_columns_of_rows(evidence: ModuleType, data: dict[str, Any]) -> None:
    view = {"table": "drift", "columns": ["rate", "trials"], "match": "^false.*4 cand"}
    made = evidence.block({**data, "views": {"some": view}}, "some")
    assert made == "\n| rate | trials |\n|---|---|\n| 3.8% | 400 |\n\n`python x.py  # 2026-11-22`\n"


def test_block_shows_table_figure_or_view(evidence: ModuleType, data: dict[str, Any]) -> None:
    assert evidence.block(data, "few") == "3 of 4"
    assert evidence.block(data, "worst") == "3.8%"
    assert evidence.block(data, "checks") == "840"
    assert evidence.block(data, "drift").count("\n| ") == 4
    assert "`python x.py  # 2026-11-22`" in evidence.block(data, "drift")
    assert evidence.block(data, "true").count("\n| ") == 2
    with pytest.raises(KeyError, match="none"):
        evidence.block(data, "none")


def test_view_gives_rates_by_row_and_column(evidence: ModuleType, data: dict[str, Any]) -> None:
    assert evidence.block(data, "alarms") == (
        "\n| setting | false alarm (≤ 7.0%) | true alarm |\n|---|---|---|\n"
        "| 2 candidates | 5.8% | 98.0% |\n| 4 candidates | 3.8% | – |\n\n"
        "`python x.py  # 2026-11-22; 40 to 400 trials`\n"
    )
    one = {"table": "drift", "match": r"(?P<column>false) alarm \| (?P<row>\d)"}
    made = evidence.block({**data, "views": {"one": one}}, "one")
    assert "| setting | false |" in made
    assert "400 trials; bound ≤ 7.0%" in made
    with pytest.raises(ValueError, match="no rate matches"):
        evidence.block({**data, "views": {"one": {**one, "match": "absent"}}}, "one")


def test_marked_blocks_alone_are_rewritten(evidence: ModuleType, data: dict[str, Any]) -> None:
    text = "At <!-- few: begin -->2<!-- few: end --> of 5 | rows."
    assert evidence.page_text(text, data) == text.replace(">2<", ">3 of 4<")


def test_saved_data_loads_unchanged_with_one_row_per_line(
    evidence: ModuleType, data: dict[str, Any], tmp_path: Path
) -> None:
    data["tables"]["drift"]["rows"].append(['a "b", [c]', "d\\n]", "", "1 | 2", ""])
    evidence.save("page", data, tmp_path)
    assert evidence.load("page", tmp_path) == data
    text = (tmp_path / "data" / "page.json").read_text(encoding="utf-8")
    assert json.dumps(data["tables"]["drift"]["rows"][0], ensure_ascii=False)[1:-1] in text
    assert evidence.load("other", tmp_path) == {"tables": {}, "figures": {}, "views": {}}


def test_benchmark_table_is_printed_and_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import evidence_table

    kept: dict[str, Any] = {}
    monkeypatch.setattr(evidence_table.evidence, "load", lambda page: {"tables": {}})
    monkeypatch.setattr(evidence_table.evidence, "save", lambda page, data: kept.update(data))
    script = str(ROOT / "benchmarks" / "claims.py")
    monkeypatch.setattr("sys.argv", [script, "drift", "--write"])
    table = evidence_table.Table(("file", "alarm"))
    table.add("pride", 3)
    table.keep("claims", "drift")
    assert capsys.readouterr().out == "| file | alarm |\n|---|---|\n| pride | 3 |\n"
    assert kept["tables"]["drift"]["command"] == "python benchmarks/claims.py drift"
    assert kept["tables"]["drift"]["rows"] == [["pride", "3"]]


def test_no_figure_starts_a_line() -> None:
    """A comment that starts a line begins a block of HTML, which ends the list or paragraph it stands in."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    wrong = [
        f"{page.name}: {line}"
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.match(r" *<!-- [\w.-]+: begin -->\S", line)
    ]
    assert pages
    assert wrong == []


def test_ranges_that_page_of_training_calls_overlapping_do() -> None:
    page = (ROOT / "docs" / "train.md").read_text(encoding="utf-8")
    assert "`pa-grpo` and `grpo` overlap in the last column" in " ".join(page.split())
    rows = dict(re.findall(r"^\| `train ([\w-]+)` \|.*?\(([^)]*)\) \|$", page, re.MULTILINE))
    one, other = (tuple(map(float, rows[name].split("–"))) for name in ("pa-grpo", "grpo"))
    assert max(one[0], other[0]) <= min(one[1], other[1])


def test_page_gives_the_accuracy_of_the_memory_estimate() -> None:
    from unswayed.training.memory import MEASURED

    page = (ROOT / "docs" / "train.md").read_text(encoding="utf-8")
    assert "{} to {} times the memory".format(*MEASURED) in page


RENAMED = {"clients-4000", "fault-kinds", "judge-memory", "judge-quiet", "kills-lists"}
"""Tables that a script printed with other options, and that were then kept under a name of their own."""


def kept_by(script: str) -> list[str]:
    """Return the names that a script keeps tables under, as expressions."""
    saving = script.replace("study/run.py", "study/tables.py")  # which run.py calls
    text = (ROOT / saving).read_text(encoding="utf-8")
    if "evidence.save(" in text:
        return [".*"]
    written = re.findall(r'\.keep\(\s*(?:"[\w-]+"|[\w.]+), (?:f?"([^"]*)"|\w+)', text)
    return [re.sub(r"\\{.*?\\}", ".*", re.escape(name)) if name else ".*" for name in written]


def test_script_of_every_table_keeps_it() -> None:
    """A table typed into the data has no command, or one that cannot have written it."""
    for path in (ROOT / "docs" / "evidence" / "data").glob("*.json"):
        data = json.loads(path.read_text(encoding="utf-8"))
        for name, table in data["tables"].items():
            scripts = re.findall(r"python (\S+\.py)", table.get("command") or "")
            scripts = scripts or ["docs/published.py"] * (path.stem == "published")
            names = [kept for script in scripts for kept in kept_by(script)]
            known = name in RENAMED or any(re.fullmatch(kept, name) for kept in names)
            assert known, f"{path.stem}, {name}: {scripts} keep {names}"


def test_figures_are_cells_sums_or_written_by_a_script() -> None:
    written = {
        "beyond": "examples/study/page_tables.py",
        "published": "docs/published.py",
        "stability": "benchmarks/stability.py",
        "study": "examples/study/page_tables.py",
    }
    for path in (ROOT / "docs" / "evidence" / "data").glob("*.json"):
        figures = json.loads(path.read_text(encoding="utf-8"))["figures"]
        texts = {name for name, figure in figures.items() if isinstance(figure, str)}
        script = written.get(path.stem)
        assert not texts or script, f"{path.stem}: {texts}"
        if script:
            assert "figures" in (ROOT / script).read_text(encoding="utf-8")
