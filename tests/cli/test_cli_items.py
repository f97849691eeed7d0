"""Every command takes items as lines, arrays and tables, and says what is wrong with them."""

import json
from pathlib import Path

import pytest
from cli_commands import Run

ROWS = [
    {"id": f"q{k}", "prompt": f"Which? {k}", "candidates": [f"yes {k}", f"no {k}"], "gold": k % 2}
    for k in range(40)
]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    made = {name: tmp_path / name for name in ("x.jsonl", "x.json", "x.csv")}
    made["x.jsonl"].write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    made["x.json"].write_text(json.dumps(ROWS))
    cells = [
        f"{row['id']},{row['prompt']},yes {k},no {k},{row['gold']}" for k, row in enumerate(ROWS)
    ]
    made["x.csv"].write_text("\n".join(["id,prompt,a,b,gold", *cells]) + "\n")
    return made


def test_lines_array_table_and_parquet_give_the_same_verdicts(
    files: dict[str, Path], tmp_path: Path, run: Run
) -> None:
    rows = tmp_path / "x.parquet"
    assert run("export", files["x.jsonl"], "--what", "items", "--out", rows).code == 0
    texts = set()
    for path in (*files.values(), rows):
        ran = run("judge", path, "--model", "simulated/judge?slot=0.6", "--method", "vote")
        assert ran.code == 0, ran.err
        texts.add(ran.out)
    assert len(texts) == 1


def test_bad_rows_stop_before_any_call_with_all_counted(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "bad.csv"
    rows = "".join(f"q{k},p,x,y,B\n" for k in range(9))
    path.write_text(f"id,prompt,a,b,gold\nq,p,x,y,0\n{rows}")  # a column of indices, but for these
    ran = run("audit", str(path), "--model", "simulated/judge", "--out", str(tmp_path / "run"))
    assert ran.code == 2
    assert "9 bad lines" in ran.err
    assert "candidates are counted from 0, so write 1 for B" in ran.err
    assert "and 4 more" in ran.err
    assert not (tmp_path / "run").exists()
