"""A package of somebody else is seen everywhere without an edit: `examples/outside-package`."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from example_package import EXAMPLE, FOLDER, TABLES, describe, environment, installed
from scripts import load_script
from unswayed.api import audit
from unswayed.auditing.comparison import changes, load_answers
from unswayed.base.errors import ItemError, TemplateError, UnknownNameError, UsageError
from unswayed.cli import main
from unswayed.methods import METHODS
from unswayed.methods.fitted_file import load_method
from unswayed.methods.names import default_methods
from unswayed.metrics.table import compared_metrics
from unswayed.model.decisions import Evidence
from unswayed.model.items import TASKS, Item, Task, items_of, load_items
from unswayed.model.parsing import ReplySpec
from unswayed.model.presentation import X1, Ask, canonical, presentations
from unswayed.model.tasks import task_of
from unswayed.prompts import PROMPTS, PromptSettings, prompt_fingerprint, render
from unswayed.testing import check_backend, check_method
from unswayed.testing.tasks import item_of, sizes
from unswayed.training.checks import check_task
from unswayed.training.groups import build_groups
from unswayed.training.pif import PIF
from unswayed.training.recipe_parts import DataTable, PromptTable, Recipe
from unswayed.training.responses import reader

ROOT = Path(__file__).parents[2]
JUDGE = ("--model", "simulated/judge?slot=0.9&noise=1")


@pytest.fixture(scope="module", autouse=True)
def _package() -> Iterator[None]:
    with installed():
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(task: str, counts: Sequence[int], first: int) -> list[dict[str, Any]]:
    """Items in two groups with `first`, `first + 1`, … candidates, so many of each."""
    return [
        {
            "id": f"{n}-{number}",
            "task": task,
            "prompt": f"question {number}",
            "candidates": [f"text {candidate} of {number}" for candidate in range(n)],
            "gold": number % n,
            "group": "odd" if number % 2 else "even",
        }
        for n, count in enumerate(counts, start=first)
        for number in range(count)
    ]


def items(path: Path, task: str, counts: Sequence[int], first: int) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows(task, counts, first)))
    return path


def test_example_registers_every_kind_through_ext_alone() -> None:
    assert {table.kind for table in TABLES} == EXAMPLE.keys()
    for path in (FOLDER / "unswayed_example").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unswayed"):
                assert node.module.startswith("unswayed.ext"), path
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("unswayed") for alias in node.names), path


def test_example_passes_its_own_tests_in_a_process_of_its_own(tmp_path: Path) -> None:
    describe(tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, str(FOLDER)],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("method", "metric", "task", "prompt", "importer", "benchmark"):
        assert main(["list", f"{kind}s"]) == 0
        shown = capsys.readouterr().out
        assert all(name in shown for name in EXAMPLE[kind]), kind
    assert main(["list", "models"]) == 0
    assert "longest" in capsys.readouterr().out


# methods


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return items(tmp_path_factory.mktemp("data") / "questions.jsonl", "mcq", (60,), 4)


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "audit"
    names = ("--methods", "first-two,label-shift,vote", "--resamples", "100")
    sizes = ("--estimation-sizes", "10,20")
    assert main(["audit", str(data), *JUDGE, *names, *sizes, "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def metrics(run: Path) -> Any:
    return json.loads((run / "metrics.json").read_text())


def test_method_has_a_table_row_a_page_and_is_part_of_all() -> None:
    page = load_script("docs/generate.py").method_page("label-shift", "")
    assert "`strength` | `1.0` |  | Share of the shift that is subtracted." in page
    assert "unswayed calibrate label-shift" in page
    names = {method.name for method in default_methods(Task.MCQ, {4})}
    assert EXAMPLE["method"] <= names


def test_method_is_priced_and_what_is_planned_is_asked(
    data: Path, run: Path, metrics: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["audit", str(data), *JUDGE, "--methods", "first-two,label-shift", "--dry-run"]
    assert main([*asked, "--out", str(run.parent / "priced")]) == 0
    assert "240" in capsys.readouterr().out  # 60 items in 4 rotations; nothing else is asked
    assert metrics["calls"]["made"] == 240
    methods = metrics["methods"]
    assert 2 < methods["first-two"]["calls_per_item"] < 4
    assert methods["label-shift"]["calls_per_item"] == 1
    assert methods["label-shift"]["estimation_calls"] == 4 * 12
    curve = metrics["estimation_curve"]["label-shift"]
    assert [point["estimation_items"] for point in curve] == [10, 20]


def test_early_stop_is_not_consistent_by_construction(metrics: Any) -> None:
    # every view reads the same four rotations in the end, but not the same two first
    consistency = {name: row["consistency"] for name, row in metrics["methods"].items()}
    assert consistency["vote"]["by_construction"]
    assert not consistency["first-two"].get("by_construction", False)
    assert consistency["first-two"]["value"] < 1
    assert not consistency["label-shift"].get("by_construction", False)


def test_method_has_a_place_in_differences_and_in_the_report(run: Path, metrics: Any) -> None:
    assert {"first-two-direct", "label-shift-direct"} <= set(metrics["differences"])
    assert main(["report", str(run), "--out", str(run / "page.html")]) == 0
    page = (run / "page.html").read_text()
    assert all(name in page for name in EXAMPLE["method"])


def test_judging_with_method_stops_early(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "verdicts.jsonl"
    assert main(["judge", str(data), *JUDGE, "--method", "first-two", "--out", str(out)]) == 0
    verdicts = [json.loads(line) for line in out.read_text().splitlines()]
    assert {(verdict["n_calls"], verdict["method"]) for verdict in verdicts} == {
        (2, "first-two"),
        (4, "first-two"),
    }


def test_what_method_learned_is_filed_loaded_and_judged_with(data: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "shift.json", tmp_path / "verdicts.jsonl"
    prompt = ["--prompt", "direct"]
    fit = ["calibrate", "label-shift:strength=0.5", str(data), *JUDGE, *prompt]
    assert main([*fit, "--out", str(file)]) == 0
    record = json.loads(file.read_text())
    assert record["diagnostics"]["estimates"]["shift of label 0 among 4 candidates"]["n"] == 60
    loaded: Any = load_method(file).load()
    assert (loaded.name, loaded.strength) == ("label-shift", 0.5)
    assert [shift.n for shift in loaded.shifts] == [4]
    judge = ["judge", str(data), *JUDGE, *prompt, "--method", str(file), "--shadow", "0.5"]
    assert main([*judge, "--out", str(out)]) == 0
    assert len(out.read_text().splitlines()) == 60


# metrics


def test_metric_is_documented() -> None:
    row = next(
        line
        for line in load_script("docs/generate.py").metric_table().splitlines()
        if "first_two" in line
    )
    assert "First two alike | share of items with one verdict" in row
    assert "jointly | yes |" in row


def test_metric_is_everywhere_in_an_audit(folder: Path) -> None:
    path = items(folder / "items.jsonl", "mcq", (40, 30), 2)
    asked = ("--methods", "direct,vote,average,pride", "--estimation-sizes", "10")
    model = ("--model", "simulated/judge?slot=0.6", "--resamples", "100", "--protocol", "all")
    assert main(["audit", str(path), *model, *asked, "--out", "run"]) == 0
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    direct, vote, average = (metrics["methods"][name] for name in ("direct", "vote", "average"))
    assert 0 < direct["first_two"]["low"] < direct["first_two"]["high"] < 1
    assert {row["first_two"]["n"] for row in direct["strata"].values()} == {40, 30}
    # the vote reads the same questions under every presentation
    assert "by_construction" not in direct["first_two"]
    assert vote["first_two"] == {
        "value": 1.0, "low": 1.0, "high": 1.0, "n": 70, "by_construction": True,
    }  # fmt: skip
    differences = metrics["differences"]
    assert differences["vote-direct"]["first_two"]["by_construction"] is True
    pride = differences["pride-direct"]["first_two"]
    assert pride["joint"][0] <= pride["low"] <= pride["value"] <= pride["high"] <= pride["joint"][1]
    assert all("first_two" in row for row in metrics["protocols"].values())
    assert all("first_two" in row["direct"] for row in metrics["groups"].values())
    assert metrics["macro"]["direct"]["first_two"]["groups"] == 2
    assert "first_two" in metrics["estimation_curve"]["pride"][0]
    # a vote has verdicts and no probabilities: null there, and so is the difference
    lacking = {"value": None, "reason": "no label probabilities"}
    assert lacking.items() <= vote["surest"].items()
    assert average["surest"]["value"] is not None
    assert lacking.items() <= differences["vote-direct"]["surest"].items()
    assert differences["average-direct"]["surest"]["low"] is not None
    assert differences["vote-direct"]["accuracy"]["value"] is not None


def test_metric_is_compared_between_runs(folder: Path) -> None:
    path = items(folder / "items.jsonl", "mcq", (30,), 2)
    asked = ("--methods", "direct", "--resamples", "100")
    for seed in ("1", "2"):
        model = f"simulated/judge?slot=0.6&seed={seed}"
        assert main(["audit", str(path), "--model", model, *asked, "--out", seed]) == 0
    compared = changes(load_answers(folder / "1"), load_answers(folder / "2"))
    everywhere = {name for name, own in compared_metrics().items() if not own.optional}
    assert {*compared} == everywhere - {"accuracy"}  # ties are shared
    assert {"first_two", "surest"} <= {*compared}
    assert compared["first_two"].n == 30


# importer, benchmark and skip rule


def test_importer_benchmark_and_skip_are_used_by_their_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = {"case": "c1", "left": "iron", "right": "oak", "picks": [0, 0]}
    (folder / "cases.jsonl").write_text(json.dumps(case) + "\n")
    assert main(["import", "auto", "cases.jsonl", "--out", "calls.jsonl"]) == 0
    calls = [json.loads(line) for line in Path("calls.jsonl").read_text().splitlines()]
    assert [(call["order"], call["choice"]) for call in calls] == [([0, 1], 0), ([1, 0], 1)]
    duels = [{"name": f"d{k}", "left": "a", "right": "b", "better": k % 2} for k in range(6)]
    (folder / "duels.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in duels))
    asked = ("duels", "--data-dir", ".", "--model", "simulated/judge", "--resamples", "100")
    assert main(["audit", *asked, "--out", "run"]) == 0
    origin = json.loads(Path("run/run.json").read_text())["data"]["origin"]
    assert (origin["address"], origin["licence"]) == (
        "https://huggingface.co/datasets/mine/duels",
        "CC0",
    )
    short = [{**row, "prompt": "Why?"} for row in rows("pairwise", (4,), 2)]
    long = [{**row, "prompt": f"{row['prompt']} of very many"} for row in rows("pairwise", (4,), 2)]
    both = [{**row, "id": f"{k}"} for k, row in enumerate((*short, *long))]
    (folder / "items.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in both))
    judge = "simulated/judge?slot=9&label=0&noise=0"  # always the first: the orders disagree
    skipping = ("--model", judge, "--method", "apoc:skip=short", "--out", "verdicts.jsonl")
    assert main(["judge", "items.jsonl", *skipping]) == 0
    verdicts = [json.loads(line) for line in Path("verdicts.jsonl").read_text().splitlines()]
    n_calls = {verdict["item_id"]: verdict["n_calls"] for verdict in verdicts}
    assert [n_calls[row["id"]] for row in both] == [2] * 4 + [3] * 4


# prompts

# files of calibrate hold these: they change with the words, and fitted files are worthless then
FINGERPRINTS = {
    "debias": "sha256:b2950d653df019da74a7de96848b4f003ce6df279a93d12e591777f5265c1be6",
    "debias-reasoning": "sha256:e4f2405e18f7abdd718847b59989a03380152b9429954b55a1600b0b6f9f9aa8",
    "direct": "sha256:b6e6403d47beb81c9de1858c83ba89aa0d141d2e4b7ea39606657c06546f876e",
    "keyed": "sha256:ec79397fd2157b941f8074c3ceba5d8bcac3f0b0142b302ddd36e8763ce1f527",
    "modified": "sha256:88e21fde3bb6aadaa96e1607c8c0041cd8af272b749381a24bb15dcbf940e435",
    "modified-direct": "sha256:19f005a6ac644b30ef0b6a20f7891d6374c308ee86b2b93deca2bae5b8eac5df",
    "reasoning": "sha256:9ce29a297fa0e99d311d84043f38675c307c931bbedd24a9b675ead57cb46ed4",
}
PAIR = Item(id="q1", prompt="Why?", candidates=("one", "two"), gold=0)
OPTIONS = Item(id="q2", task=Task.MCQ, prompt="Why?", candidates=("one", "two", "three"), gold=0)


@pytest.mark.parametrize(
    ("item", "phrase"),
    [
        (PAIR, "Name the better answer: A or B, such as A."),
        (OPTIONS, "Name the better option: A, B or C, such as A."),
    ],
)
def test_words_of_prompt_speak_of_every_task(item: Item, phrase: str) -> None:
    rendered = render(item, Ask(canonical(item.n), "brief"), PromptSettings())
    assert rendered.messages[0].content.endswith(phrase)
    assert (rendered.max_tokens, rendered.answer_only, rendered.top_logprobs) == (4, True, 20)


def test_prompt_has_its_own_fingerprint_and_changes_no_other() -> None:
    prints = {name: prompt_fingerprint(PromptSettings(prompt=name)) for name in PROMPTS}
    assert len(set(prints.values())) == len(prints) > len(FINGERPRINTS)
    assert {name: prints[name] for name in FINGERPRINTS} == FINGERPRINTS


def test_lacking_sentence_of_prompt_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    style = PROMPTS.load("brief")
    monkeypatch.setitem(PROMPTS._loaded, "brief", replace(style, words={}))
    with pytest.raises(TemplateError, match=r"q1: .*task 'pairwise'.*no 'brief' sentence"):
        render(PAIR, Ask(X1, "brief"), PromptSettings())
    with pytest.raises(UnknownNameError, match="Did you mean 'brief'"):
        render(PAIR, Ask(X1, "brif"), PromptSettings())


def test_audit_asks_a_backend_with_a_prompt_of_the_package(folder: Path) -> None:
    path = items(folder / "items.jsonl", "pairwise", (12,), 2)
    asked = ("--model", "longest/words", "--prompt", "brief", "--resamples", "100")
    assert main(["audit", str(path), *asked, "--methods", "first-two", "--out", "run"]) == 0
    run = json.loads((folder / "run" / "run.json").read_text(encoding="utf-8"))
    assert run["prompt"]["name"] == "brief"
    assert run["planted"] is True


# tasks


@pytest.mark.parametrize("name", [*TASKS, "best-worst"])
def test_item_with_named_task_is_audited(name: str) -> None:
    task = task_of(name)
    n = sizes(task)[0]
    several = [
        msgspec.structs.replace(item_of(task, n), id=f"{k}", prompt=f"Which, {k}?")
        for k in range(4)
    ]
    named = [Item(**{**msgspec.structs.asdict(item), "task": name}) for item in several]
    assert named == several
    assert all(item.task is Task(name) for item in named)
    result = audit("simulated/judge?slot=0.8", named, resamples=100)
    assert result.metrics["data"]["task"] == name


@pytest.fixture
def ranked(folder: Path) -> Path:
    return items(folder / "items.jsonl", "best-worst", (30,), 3)


def test_items_of_task_load_and_keep_their_task(ranked: Path) -> None:
    loaded = load_items(ranked)
    assert loaded.task is Task("best-worst")
    assert loaded.task.value == "best-worst"
    assert [item.gold_candidates() for item in loaded][:3] == [(0,), (1,), (2,)]
    assert load_items(ranked).fingerprint == loaded.fingerprint
    given = rows("best-worst", (30,), 3)
    with pytest.raises(ItemError, match=r"1 mcq|30 best-worst"):
        items_of([*given, {**given[0], "id": "m", "task": "mcq"}])
    with pytest.raises(UnknownNameError, match="Did you mean 'best-worst'"):
        audit("simulated/judge", ranked, task="best-wurst")


def test_training_uses_orders_and_rewards_of_its_task(ranked: Path) -> None:
    recipe = Recipe("r", Task("best-worst"))
    groups = build_groups(load_items(ranked), DataTable(held_out=0), PromptTable(style="direct"))
    assert groups.views[3] == presentations("cyclic", 3)
    assert groups.rows[0].answer_only is False
    check_task(groups.items, recipe)
    read = reader(recipe.prompt, answer_only=groups.answer_only, task=recipe.task)
    assert read("best B, worst C", groups.symbols) == (1, True, 0)
    assert read("B", groups.symbols) == (None, False, 0)
    with pytest.raises(UsageError, match=r"pif trains .* replies of task best-worst"):
        PIF.check(recipe, groups, None)


def test_method_of_probabilities_is_refused_before_any_call(
    ranked: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class AnswerOnly(type(task_of("best-worst").reply)):  # type: ignore[misc]
        def request(self, labels: Sequence[str], style: ReplySpec) -> ReplySpec:
            return style

    task = replace(task_of("best-worst"), reply=AnswerOnly())
    monkeypatch.setitem(TASKS._loaded, "best-worst", task)
    assert main(["calibrate", "pride", str(ranked), *JUDGE, "--out", "fitted.json"]) == 2
    assert "it needs label probabilities" in capsys.readouterr().err
    assert not list(Path().rglob("calls.sqlite"))
    assert Evidence.PROBS not in task.gives


def test_task_is_audited_priced_judged_and_exported(
    ranked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ("--model", "simulated/judge?slot=0.8&logprobs=0")
    assert main(["audit", str(ranked), *model, "--dry-run"]) == 0
    assert "90 calls for 90 questions" in capsys.readouterr().out
    everything = ("--methods", "all", "--resamples", "100")
    assert main(["audit", str(ranked), *model, *everything, "--out", "run"]) == 0
    metrics = json.loads(Path("run/metrics.json").read_text(encoding="utf-8"))
    assert metrics["calls"]["unparsed"] == 0
    assert metrics["protocol"]["name"] == "cyclic"
    assert {"direct", "vote"} <= metrics["methods"].keys()
    assert "average" not in metrics["methods"]  # the reply has no label probabilities
    assert metrics["methods"]["direct"]["accuracy"]["n"] == 30
    sampled = ("--probs", "sampled:5", "--methods", "average", "--resamples", "100")
    assert main(["audit", str(ranked), *model, *sampled, "--out", "sampled"]) == 0
    of_samples = json.loads(Path("sampled/metrics.json").read_text(encoding="utf-8"))
    assert of_samples["methods"]["average"]["accuracy"]["n"] == 30
    assert main(["export", "run", "--out", "decisions.jsonl"]) == 0
    lines = Path("decisions.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["choice"] for line in lines} == {0, 1, 2}
    assert main(["judge", str(ranked), *model, "--method", "vote", "--out", "verdicts.jsonl"]) == 0
    verdicts = [json.loads(line) for line in Path("verdicts.jsonl").read_text().splitlines()]
    assert [verdict["n_calls"] for verdict in verdicts] == [3] * 30


def test_examples_of_the_page_for_contributors_keep_the_rules(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    spaces: list[dict[str, Any]] = []
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page, re.DOTALL)):
        (folder / f"page_{number}.py").write_text(block)
        monkeypatch.syspath_prepend(str(folder))
        spaces.append(vars(importlib.import_module(f"page_{number}")))
    plain = spaces[0]["PlainVote"]
    monkeypatch.setitem(METHODS._all, "plain-vote", "page_0:PlainVote")
    monkeypatch.setitem(METHODS._loaded, "plain-vote", plain)
    check_method(plain())
    check_backend(spaces[1]["open_echo"])
