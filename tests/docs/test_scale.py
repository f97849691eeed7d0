"""`docs/scale.md`: the batch script, the Kubernetes job and the SQL recipe do what the page says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from unswayed.cli import main
from unswayed.model.items import encode_item
from unswayed.sources import load_data

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")


def block(kind: str, match: str = "") -> str:
    """The first block of a kind on the page that has some words."""
    blocks = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return next(body for body in blocks if match in body)


def write_items(path: Path, count: int) -> None:
    """Write built-in items, one per line."""
    items = load_data("tiny-judge", limit=count)
    path.write_bytes(b"".join(encode_item(item) + b"\n" for item in items))


def job() -> Any:
    """The Kubernetes job."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load(block("yaml"))


def container_script() -> str:
    """What the container of the Kubernetes job runs."""
    (container,) = job()["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["sh", "-c"]
    (script,) = container["args"]
    return str(script)


@pytest.mark.parametrize(
    ("script", "index"),
    [
        (lambda: block("sh", "SBATCH"), "SLURM_ARRAY_TASK_ID"),
        (container_script, "JOB_COMPLETION_INDEX"),
    ],
    ids=["slurm", "kubernetes"],
)
def test_shards_of_cluster_script_merge(script: Any, index: str, tmp_path: Path) -> None:
    text = script()
    assert "/100 " in text
    text = text.replace("/100 ", "/2 ").replace("MODEL", "tiny/judge")
    write_items(tmp_path / "new.jsonl", 40)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for number in range(2):
        env = {**os.environ, "PATH": path, "TMPDIR": str(tmp_path), index: str(number)}
        subprocess.run(["bash", "-eu", "-c", text], cwd=tmp_path, env=env, check=True)
    merge = [sys.executable, "-m", "unswayed", "merge", "run"]
    subprocess.run(merge, cwd=tmp_path, capture_output=True, check=True)
    calls = json.loads((tmp_path / "run" / "metrics.json").read_bytes())["calls"]
    assert (calls["planned"], calls["failed"]) == (80, 0)


def test_cluster_jobs_have_a_task_for_every_shard() -> None:
    assert "#SBATCH --array=0-99\n" in block("sh", "SBATCH")
    spec = job()["spec"]
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == 100
    pod = spec["template"]["spec"]
    assert pod["restartPolicy"] == "Never"  # backoffLimitPerIndex is for nothing else
    mounts = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}


def test_patterns_counted_in_sql_give_figures_of_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    monkeypatch.chdir(tmp_path)
    write_items(Path("new.jsonl"), 400)
    judge = "simulated/judge?unparsed=0.05&tie=0.1"
    assert (
        main(["audit", "new.jsonl", "--model", judge, "--methods", "direct", "--out", "run"]) == 0
    )
    assert main(["export", "run", "--out", "decisions.parquet"]) == 0
    names: dict[str, Any] = {}
    exec(block("python", "duckdb"), names)
    figures = names["direct"].to_json()
    expected = json.loads((tmp_path / "run" / "metrics.json").read_bytes())["methods"]["direct"]
    same = {name for name in figures if json.loads(json.dumps(figures[name])) == expected[name]}
    assert figures.keys() - same == {"icc2k", "icc3k", "score_sd"}  # they read probabilities
    assert len(rows := names["rows"]["items"]) < 40
    assert rows.sum() == 400
