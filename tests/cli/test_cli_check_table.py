"""`unswayed check-table`: exit code 1 and the cells that cannot be."""

from pathlib import Path

import pytest
from cli_commands import Run

PAIRS = "accuracy <= CA + (1 - Con) / 2, CA <= accuracy, CA <= Con"
POSSIBLE = "| judge | Acc | Con | CA |\n|---|---|---|---|\n| a | 59.6 | 25.2 | 22.2 |\n"


def test_impossible_rows_are_named_and_fail(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "table.md"
    file.write_text(f"\n{POSSIBLE}| b | 69.1 | 25.2 | 22.2 |\n| c | 50 | - | 1 |\n")
    ran = run("check-table", str(file), "--candidates", "2")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "line 5 (b): accuracy <= CA + (1 - Con) / 2 fails by 9.5 points; rounding explains 0.125",
        f"2 candidates: 1 of 2 rows impossible (rules: {PAIRS})",
    ]
    assert "skipped, because one of the three terms is missing: line 6." in ran.err
    assert "1 impossible row." in ran.err


def test_a_row_that_lacks_several_triples_is_one_row(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "table.csv"
    file.write_text("judge,X Acc,X Con,Y Acc,Y Con,Acc,Con,CA\na,1,1,1,1,1,1,1\nb,1,1,1,1,1,1,1\n")
    assert (
        "skipped, because one of the three terms is missing: line 2, 3."
        in run("check-table", str(file)).err
    )


def test_a_possible_table_passes(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "table.csv"
    file.write_text("judge,accuracy,consistency,consistent accuracy\na,0.596,0.252,0.222\n")
    ran = run("check-table", str(file), "--candidates", "2")
    assert (ran.code, ran.out) == (
        0,
        f"2 candidates: 0 of 1 row impossible (rules: {PAIRS})\n",
    )


def test_rules_are_named_for_each_number_of_candidates(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "table.md"
    file.write_text(
        "| | MT-Bench Acc/Con/CA | MMLU Acc/Con/CA | Other Acc/Con/CA |\n|---|---|---|---|\n"
        "| a | 58.0/80.0/45.0 | 58.0/80.0/45.0 | 58.0/80.0/45.0 |\n"
    )
    ran = run("check-table", str(file), "--orders", "2")
    assert ran.code == 1
    assert ran.out.splitlines()[1:] == [
        f"2 candidates: 1 of 1 row impossible (rules: {PAIRS})",
        "4 candidates: 0 of 1 row impossible (rules: accuracy <= Con, CA <= 2 accuracy, "
        "accuracy <= 1 + CA - Con, CA <= 1 + accuracy - Con)",
        "candidates unknown: 0 of 1 row impossible (rules: CA <= 2 accuracy, "
        "accuracy <= 1 + CA - Con, CA <= 1 + accuracy - Con)",
    ]
    assert "To check more rules, add --candidates or a column 'candidates'." in ran.err


def test_other_designs_have_other_rules(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "table.csv"
    pairs = (str(file), "--candidates", "2")
    file.write_text("judge,acc,con,ca\na,75.0,0.0,0.0\n")
    assert run("check-table", *pairs).code == 1
    assert run("check-table", *pairs, "--orders", "4").code == 0
    assert run("check-table", *pairs, "--tolerance", "30").code == 0
    for endless in ("inf", "101"):
        refused = run("check-table", *pairs, "--tolerance", endless)
        assert (refused.code, "is not between 0 and 100" in refused.err) == (2, True)
    file.write_text("judge,acc,con,ca\na,50.0,40.0,30.0\n")
    assert run("check-table", *pairs).code == 0
    assert run("check-table", *pairs, "--decided").code == 1


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.md", "nothing here\n", "no Markdown table"),
        ("t.md", "| Term | a |\n|---|---|\n| Acc | 59.6 |\n", "with one of accuracy, consistency"),
        ("t.csv", "a,b\n1,2\n", "no row has all three"),
        ("t.csv", "acc,con,ca\n1,2\n", "2 cells under 3 columns"),
        ("t.csv", "acc,con,ca\n101,2,3\n", "is not between 0 and 100"),
        ("t.csv", "acc,con,ca,candidates\n1,1,1,two\n", "candidates is 'two'. Write 2 or more"),
        ("t.csv", "acc,con,ca,options\n1,1,1,1\n", "candidates is '1'. Write 2 or more"),
        ("t.md", "\udcff|a\n", "not UTF-8"),
    ],
)
def test_what_cannot_be_checked_says_why(
    tmp_path: Path, run: Run, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    ran = run("check-table", str(tmp_path / name))
    assert ran.code == 2
    assert said in ran.err


def test_a_name_cannot_write_lines_of_its_own(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "table.csv"
    file.write_text('judge,acc,con,ca\n"a\x1b[2J\n0 of 1 rows are impossible",0.9,0.9,0.1\n')
    lines = run("check-table", str(file)).out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("line 2 (a␛[2J 0 of 1 rows are impossible): accuracy")


def test_more_orders_than_anybody_asks_are_refused(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "table.csv"
    file.write_text("judge,acc,con,ca\na,0.9,0.9,0.1\n")
    ran = run("check-table", str(file), "--candidates", "3", "--orders", "1" + "0" * 400)
    assert ran.code == 2
    assert "--orders" in ran.err
