"""`unswayed import` then `audit --decisions` gives the independently computed figures."""

import json
from pathlib import Path
from typing import Any

import pytest

from unswayed.cli import main

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
pytestmark = pytest.mark.skipif(
    not (DATA / "expected").is_dir(), reason="shared/data is not beside the checkout"
)


def judges(name: str) -> list[dict[str, Any]]:
    path = DATA / "expected" / name
    found = json.loads(path.read_text())["judges"] if path.is_file() else {}
    return list(found.values())


def audited(kind: str, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    decisions, items = str(tmp_path / "decisions.jsonl"), str(tmp_path / "items.jsonl")
    assert main(["import", kind, str(DATA / file), "--out", decisions, "--items", items]) == 0
    capsys.readouterr()
    command = ["audit", items, "--decisions", decisions, "--json", "--out", str(tmp_path / "run")]
    assert main([*command, "--resamples", "100", "--methods", "direct"]) == 0
    return json.loads(capsys.readouterr().out)


def assert_same(row: dict[str, Any], want: dict[str, Any]) -> None:
    close = {
        "consistency_strict": row["consistency"]["value"],
        "order_level_accuracy": row["accuracy"]["value"],
        "consistent_accuracy": row["consistent_accuracy"]["value"],
        "first_position_rate": row["position_rate"][0]["value"],
        "rstd": row["rstd"]["value"],
    }
    for name, got in close.items():
        assert got == pytest.approx(want[name], abs=1e-9), name
    assert row["counts"]["unparsed"] == want["verdicts_total"]["unparsed"]
    assert row["counts"]["ties"] == want["verdicts_total"]["tie"]
    assert row["counts"]["items"] == want["n_pairs"]


@pytest.mark.parametrize("want", judges("judgebench_recorded_judges.json"), ids=lambda j: j["file"])
def test_judgebench_is_reproduced_per_bucket_and_overall(
    want: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = audited("judgebench", want["file"], tmp_path, capsys)
    buckets = dict(want["buckets"])
    assert_same(metrics["methods"]["direct"], buckets.pop("Overall"))
    assert sorted(metrics["groups"]) == sorted(buckets)
    for bucket, figures in buckets.items():
        assert_same(metrics["groups"][bucket]["direct"], figures)


@pytest.mark.parametrize("want", judges("llmbar_recorded_judges.json"), ids=lambda j: j["file"])
def test_llmbar_is_reproduced(
    want: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_same(audited("llmbar", want["file"], tmp_path, capsys)["methods"]["direct"], want)


def test_the_kind_of_file_is_recognised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    want = judges("llmbar_recorded_judges.json")[0]
    assert_same(audited("auto", want["file"], tmp_path, capsys)["methods"]["direct"], want)
