"""The row `macro` of an audit is the plain mean of per-source accuracies, here of JudgeBench."""

import gzip
import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest

from needs import DATA, recorded
from unswayed.cli import main

pytestmark = recorded

FILES = sorted((DATA / "judgebench").glob("outputs_*.jsonl.gz"))
SWAPPED = {"A>B": "B>A", "B>A": "A>B"}


def by_source(file: Path) -> dict[str, dict[str, list[float]]]:
    """Per source and method what each pair scores, by hand: a direct call in either order counts half.

    The second judgment is in the letters of the swapped pair. A vote of two that disagree is a tie,
    which is wrong, and an answer that was not read has no vote.
    """
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            first, second = (judgment["decision"] for judgment in row["judgments"])
            second = SWAPPED.get(second, second)
            right = row["label"]
            scores[row["source"]]["direct"].append(fmean([first == right, second == right]))
            votes = {first, second} - {None}
            scores[row["source"]]["vote"].append(float(votes == {right}))
    return scores


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_macro_average_is_the_mean_of_the_sources(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decisions, items = str(tmp_path / "decisions.jsonl"), str(tmp_path / "items.jsonl")
    assert main(["import", "judgebench", str(file), "--out", decisions, "--items", items]) == 0
    capsys.readouterr()
    command = ["audit", items, "--decisions", decisions, "--json", "--out", str(tmp_path / "run")]
    options = ["--methods", "direct,vote", "--group-by", "meta.source", "--resamples", "100"]
    assert main([*command, *options]) == 0
    metrics = json.loads(capsys.readouterr().out)
    want = by_source(file)
    assert metrics["groups"].keys() == want.keys()
    assert len(want) > 10
    for method in ("direct", "vote"):
        means = {source: fmean(scores[method]) for source, scores in want.items()}
        for source, mean in means.items():
            assert metrics["groups"][source][method]["accuracy"]["value"] == pytest.approx(mean)
        average = metrics["macro"][method]["accuracy"]
        assert average["value"] == pytest.approx(fmean(means.values()))
        assert average["groups"] == len(want)
        pooled = metrics["methods"][method]["accuracy"]["value"]
        assert abs(average["value"] - pooled) > 0.005  # sources differ in size and difficulty
