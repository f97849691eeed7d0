"""The Python names: the same audit as on the command line, in plain code and in notebooks."""

import asyncio
import json
from pathlib import Path

import pytest

import unswayed as us
from unswayed.backends import BackendSettings
from unswayed.backends.simulated import simulated_items
from unswayed.cli import main
from unswayed.errors import (
    BackendError,
    ItemError,
    MissingKeyError,
    RunDirectoryError,
    UnknownNameError,
    UsageError,
)
from unswayed.items import ItemSet, encode_item
from unswayed.store import CallStore

MODEL = "simulated/judge"
N = 30


@pytest.fixture(scope="module")
def items() -> ItemSet:
    return simulated_items(N, 2, seed=5)


@pytest.fixture
def file(items: ItemSet, tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(b"".join(encode_item(item) + b"\n" for item in items))
    return path


def test_every_public_name_is_listed_sorted_and_documented() -> None:
    assert us.__all__ == sorted(us.__all__)
    assert set(us.__all__) <= set(dir(us))
    for name in us.__all__:
        assert getattr(us, name).__doc__, name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'unswayed' has no attribute 'adit'"):
        us.adit  # type: ignore[attr-defined]  # noqa: B018


def test_an_audit_is_a_value_with_figures_decisions_report_and_table(
    items: ItemSet, tmp_path: Path
) -> None:
    result = us.audit(MODEL, items, methods=["direct", "vote"], resamples=100)
    assert result.metrics["calls"]["made"] == 2 * N
    assert len(result.decisions) == 2 * N
    assert {decision.item_id for decision in result.decisions} == {item.id for item in items}
    page = result.report(tmp_path / "report.html")
    assert page.read_text().startswith("<!doctype html>")
    table = result.to_pandas()
    row = table[(table.method == "vote") & (table.metric == "accuracy")].iloc[0]
    assert row["value"] == result.metrics["methods"]["vote"]["accuracy"]["value"]


def test_items_are_a_list_a_path_or_a_set(items: ItemSet, file: Path) -> None:
    results = [
        us.audit(MODEL, given, methods="direct", resamples=100).metrics["methods"]
        for given in (items, list(items), file, str(file), us.load_items(file))
    ]
    assert all(result == results[0] for result in results)


def test_methods_may_be_one_string(items: ItemSet) -> None:
    result = us.audit(MODEL, items, methods="vote, pride", resamples=100)
    assert list(result.metrics["methods"]) == ["direct", "vote", "pride"]


def test_a_run_directory_is_complete_and_answers_later_questions(
    items: ItemSet, tmp_path: Path
) -> None:
    result = us.audit(MODEL, items, out=tmp_path / "run", resamples=100)
    for name in ("run.json", "metrics.json", "report.html", "calls.sqlite"):
        assert (tmp_path / "run" / name).is_file()
    assert len(result.decisions) == 2 * N
    assert json.loads((tmp_path / "run" / "metrics.json").read_text()) == result.metrics
    with CallStore.open(tmp_path / "run"):  # nobody holds its lock any more
        pass
    again = us.audit(MODEL, items, out=tmp_path / "run", resamples=100)
    assert again.metrics["calls"]["made"] == 0
    assert again.metrics["methods"] == result.metrics["methods"]
    assert again.decisions == result.decisions


def test_python_and_the_command_line_find_the_same(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["audit", str(file), "--model", MODEL, "--out", str(tmp_path / "run"), "--json"]
    assert main([*command, "--resamples", "100"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert us.audit(MODEL, file, resamples=100).metrics == printed


def test_an_audit_runs_inside_an_event_loop(items: ItemSet) -> None:
    async def notebook() -> int:
        result = us.audit(MODEL, items, methods="direct", resamples=100)
        return len(result.decisions)

    assert asyncio.run(notebook()) == 2 * N


def test_the_data_can_be_cut_and_chosen(items: ItemSet) -> None:
    assert us.audit(MODEL, items, limit=5, resamples=100).metrics["data"]["n_items"] == 5
    assert len(us.load_data("tiny-mcq", limit=3)) == 3
    assert us.load_data(items) is items
    assert len(us.load_data(items, task="pairwise")) == N
    with pytest.raises(ItemError, match="has no items of task mcq; they are pairwise"):
        us.load_data(items, task="mcq")
    with pytest.raises(UnknownNameError, match="Did you mean 'mcq'"):
        us.load_data(items, task="mcw")


@pytest.mark.parametrize(
    ("model", "options", "error", "said"),
    [
        (MODEL, {"ordres": "swap"}, UsageError, "no option 'ordres'. Did you mean 'orders'"),
        (MODEL, {"methods": ["vot"]}, UnknownNameError, "Did you mean 'vote'"),
        (MODEL, {"orders": "swp"}, UnknownNameError, "Did you mean 'swap'"),
        (MODEL, {"items": []}, ItemError, "no items"),
        (MODEL, {"items": "tiny-jugde"}, UsageError, "Did you mean 'tiny-judge'"),
        (MODEL, {"items": "absent.jsonl"}, UsageError, "cannot read absent.jsonl"),
        ("opnai/x", {}, UnknownNameError, "Did you mean 'openai'"),
        ("openai-api/nowhere/x", {}, MissingKeyError, "NOWHERE_BASE_URL"),
    ],
)
def test_what_cannot_be_audited_is_an_error_that_says_what_to_give(
    model: str,
    options: dict[str, object],
    error: type[Exception],
    said: str,
    items: ItemSet,
    tmp_path: Path,
) -> None:
    given = {"items": items, **options}
    with pytest.raises(error, match=said):
        us.audit(model, **given, out=tmp_path / "run")  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_another_model_s_directory_is_refused(items: ItemSet, tmp_path: Path) -> None:
    us.audit(MODEL, items, out=tmp_path, resamples=100)
    with pytest.raises(RunDirectoryError, match="holds calls of model"):
        us.audit("simulated/judge?slot=2", items, out=tmp_path)


def test_a_server_that_is_down_is_an_error_and_not_a_table_of_nothing(items: ItemSet) -> None:
    how = BackendSettings(base_url="http://127.0.0.1:9/v1", max_attempts=1)
    with pytest.raises(BackendError, match="the server is down"):
        us.audit("openai-api/local/m", items, backend=how)
