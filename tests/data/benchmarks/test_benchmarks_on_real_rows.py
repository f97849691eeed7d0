"""The loaders on real rows, where the folder `shared` lies beside the checkout; no row is kept here."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from published_rows import write

import needs
from unswayed.api import audit
from unswayed.data.importers import import_files
from unswayed.model.items import ItemSet
from unswayed.sources import load_data

pytestmark = needs.recorded


def lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(needs.DATA / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def expected(name: str) -> Any:
    return json.loads((needs.DATA / "expected" / name).read_text())


def copied(name: str, folder: Path, files: dict[str, str]) -> ItemSet:
    """A benchmark from these files, under the published names."""
    for published, own in files.items():
        path = folder / published
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to((needs.DATA / own).resolve())
    return load_data(name, data_dir=folder)


def test_arc_has_three_to_five_options_and_digits_as_labels(tmp_path: Path) -> None:
    own = "arc/ARC-Challenge-Test_dev.jsonl.gz"
    items = copied("arc-challenge", tmp_path, {"ARC-Challenge-Test.jsonl.gz": own})
    assert Counter(item.n for item in items) == {4: 587, 5: 3, 3: 1}
    assert Counter("".join(item.meta["labels"]) for item in items)["1234"] == 9
    for row, item in zip(lines(own), items, strict=True):
        (right,) = (c for c in row["question"]["choices"] if c["label"] == row["answerKey"])
        assert isinstance(item.gold, int)
        assert item.candidates[item.gold] == right["text"]


def test_mmlu_has_options_that_speak_of_others_and_equal_ones(tmp_path: Path) -> None:
    own = "mmlu/mmlu_test_dev.jsonl.gz"
    items = copied("mmlu", tmp_path, {"test-dev.jsonl.gz": own})
    assert len(items) == 7749
    assert sum(not item.permutable for item in items) == 402
    assert sum(len(set(item.candidates)) < item.n for item in items) == 4
    assert len({item.group for item in items}) == 28
    assert [item.gold for item in items] == ["ABCD".index(row["answer"]) for row in lines(own)]


def test_judgebench_is_both_files_with_labels_and_buckets(tmp_path: Path) -> None:
    start = "dataset=judgebench,response_model="
    names = ("gpt-4o-2024-05-13", "claude-3-5-sonnet-20240620")
    own = {f"{start}{name}.jsonl.gz": f"judgebench/items_{name}.dev.jsonl.gz" for name in names}
    items = copied("judgebench", tmp_path, own)
    rows = [row for name in own.values() for row in lines(name)]
    assert [item.id for item in items] == [row["pair_id"] for row in rows]
    assert [item.gold for item in items] == [("A>B", "B>A").index(row["label"]) for row in rows]
    assert {item.group for item in items} == {"Knowledge", "Reasoning", "Math", "Coding"}
    coding = load_data("judgebench:Coding", data_dir=tmp_path)
    assert len(coding) == sum(row["source"] == "livecodebench" for row in rows)


def test_recorded_judges_of_llmbar_are_about_the_same_items(tmp_path: Path) -> None:
    own = {"Dataset/LLMBar/Natural/dataset.json.gz": "llmbar/Natural_dataset.json.gz"}
    for published, name in own.items():
        path = tmp_path / published
        path.parent.mkdir(parents=True)
        path.symlink_to((needs.DATA / name).resolve())
    items = load_data("llmbar:Natural", data_dir=tmp_path)
    judged = import_files("llmbar", [needs.DATA / "llmbar/Natural_ChatGPT_Vanilla.json.gz"])
    assert {item.id: item.gold for item in items} == {i.id: i.gold for i in judged.items}
    assert len(items) == 100


def test_auto_j_has_two_answers_and_ties(tmp_path: Path) -> None:
    own = {"testdata_pairwise.jsonl.gz": "autoj/pairs_with_judge_dev.jsonl.gz"}
    items = copied("auto-j", tmp_path, own)
    assert Counter(item.gold for item in items) == {0: 266, 1: 261, "tie": 190}


def test_vicuna_bench_has_a_scale_for_every_question(tmp_path: Path) -> None:
    own = {"vicuna_eval.json.gz": "vicuna_bench/vicuna_eval_dev.json.gz"}
    items = copied("vicuna-bench", tmp_path, own)
    assert len(items) == 160
    assert {item.values for item in items} == {(1.0, 2.0, 3.0, 4.0, 5.0)}
    assert all(item.response and item.reference for item in items)


def test_gold_of_hanna_is_the_mean_of_its_three_raters(tmp_path: Path) -> None:
    shorts = ("RE", "CH", "EM", "SU", "EG", "CX")
    names = ("Relevance", "Coherence", "Empathy", "Surprise", "Engagement", "Complexity")
    with gzip.open(needs.DATA / "hanna/hanna_scores_long_dev.csv.gz", "rt") as file:
        stories = list(csv.DictReader(io.StringIO(file.read())))
    ratings = [
        {
            "Story ID": story["story_id"],
            "Prompt": f"prompt {story['prompt_idx']}",
            "Story": f"story {story['story_id']}",  # the texts are not at hand
            "Model": story["system"],
            **{
                name: story[f"human{rater}_{short}"]
                for name, short in zip(names, shorts, strict=True)
            },
        }
        for story in stories
        for rater in (1, 2, 3)
    ]
    folder = write(tmp_path, {"hanna_stories_annotations.csv": ratings})
    items = load_data("hanna", data_dir=folder)
    dev = expected("hanna_llm_vs_human.json")["splits"]["dev"]
    assert len(items) == dev["n_stories"]
    assert {item.meta["system"] for item in items} == set(dev["systems"])
    for story, item in zip(stories, items, strict=True):
        assert isinstance(item.gold, dict)
        for name in names:
            assert item.gold[name] == pytest.approx(float(story[f"human_mean_{name}"]))


@pytest.fixture(scope="module")
def copy_of_summaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SummEval's articles in the hub's layout."""
    by_article: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in lines("summeval/summaries_expert_scores_dev.jsonl.gz"):
        by_article[row["doc_id"]].append(row)
    criteria = ("coherence", "consistency", "fluency", "relevance")
    rows = [
        {
            "id": article["doc_id"],
            "text": article["source"],
            "human_summaries": article["references"],
            "machine_summaries": [row["summary"] for row in by_article[article["doc_id"]]],
            **{
                name: [row["expert_mean"][name] for row in by_article[article["doc_id"]]]
                for name in criteria
            },
        }
        for article in lines("summeval/documents_dev.jsonl.gz")
    ]
    return write(tmp_path_factory.mktemp("summeval"), {"data/test-0.parquet": rows})


@pytest.fixture(scope="module")
def summaries(copy_of_summaries: Path) -> ItemSet:
    return load_data("summeval", data_dir=copy_of_summaries)


def test_summeval_has_the_experts_scores(summaries: ItemSet) -> None:
    dev = expected("summeval_expert_scores.json")["splits"]["dev"]
    assert len(summaries) == dev["n"]
    assert len({item.meta["article"] for item in summaries}) == dev["docs"]
    for name, mean in dev["mean"].items():
        scores = [item.gold[name] for item in summaries if isinstance(item.gold, dict)]
        assert sum(scores) / len(scores) == pytest.approx(mean)
        share = sum(score == 5 for score in scores) / len(scores)
        assert share == pytest.approx(dev["share_exact_5"][name])


def test_a_constant_criterion_has_no_correlation(
    summaries: ItemSet, copy_of_summaries: Path
) -> None:
    scores: defaultdict[str, set[float]] = defaultdict(set)
    for item in summaries:
        assert isinstance(item.gold, dict)
        scores[item.meta["article"]].add(item.gold["consistency"])
    constant = [article for article, values in scores.items() if len(values) == 1]
    varying = [article for article, values in scores.items() if len(values) > 2]
    assert constant
    chosen = {*constant, *varying[:3]}
    whole = load_data("summeval:consistency", data_dir=copy_of_summaries)
    result = audit(
        "simulated/judge?slot=1&label=0",
        [item for item in whole if item.meta["article"] in chosen],
        methods="direct",
        group_by="meta.article",
        resamples=100,
    )
    json.dumps(result.metrics, allow_nan=False)
    groups = {name: row["direct"]["spearman"] for name, row in result.metrics["groups"].items()}
    assert {name for name, row in groups.items() if row["value"] is None} == set(constant)
    assert all(groups[name]["reason"] for name in constant)
    assert result.metrics["macro"]["direct"]["spearman"]["groups"] == 3


def test_the_categories_of_mt_bench_are_those_of_its_questions() -> None:
    from unswayed.data.benchmarks.preferences import category

    with (needs.DATA / "fastchat" / "mt_bench__question.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert len(rows) == 80
    assert all(category(row["question_id"]) == row["category"] for row in rows)
