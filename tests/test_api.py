"""The Python names: the same audit as on the command line, in plain code and in notebooks."""

import ast
import asyncio
import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import unswayed as us
from unswayed.backends import BackendSettings
from unswayed.backends.simulated import SimulatedBackend, simulated_items
from unswayed.base.errors import (
    BackendError,
    ItemError,
    MissingKeyError,
    UnknownNameError,
    UnswayedError,
    UsageError,
)
from unswayed.cli import main
from unswayed.model.items import ItemSet, encode_item
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
    tree = ast.parse(Path(us.__file__).read_text(encoding="utf-8"))
    (value,) = (n.value for n in tree.body if ast.unparse(n).startswith("__all__"))  # type: ignore[attr-defined]
    assert ast.literal_eval(value) == us.__all__  # type checkers read it without running it
    assert dir(us) == us.__all__
    for name in us.__all__:
        assert getattr(us, name).__doc__, name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'unswayed' has no attribute 'adit'"):
        us.adit  # type: ignore[attr-defined]  # noqa: B018


def test_an_audit_has_figures_decisions_report_and_table(items: ItemSet, tmp_path: Path) -> None:
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


def test_a_built_in_set_is_equal_by_name_and_by_path() -> None:
    by_text, by_path = (
        us.audit(items=name, limit=12, resamples=100) for name in ("tiny-mcq", Path("tiny-mcq"))
    )
    assert by_path.metrics["model"].startswith("tiny/judge@")
    assert by_path.metrics == by_text.metrics


def test_a_run_says_how_its_intervals_are_made(items: ItemSet) -> None:
    values, differences = us.audit(MODEL, items, resamples=100, seed=3).run["intervals"].split("; ")
    assert "bootstrap over items, 100 resamples, seed 3" in values
    assert "differences" in differences
    assert "Student's t" in differences


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
        (None, {}, UsageError, "no model to judge the items"),
        (MODEL, {"items": 5}, UsageError, "items 5: expected Source"),
        (MODEL, {"items": [1, 2]}, ItemError, "1 is neither an item nor a mapping"),
        (MODEL, {"items": [{}]}, ItemError, "items: no candidates among its fields"),
        (MODEL, {"items": [{"id": "a", "prompt": "p", "candidates": ["x"]}]}, ItemError, "least 2"),
        (MODEL, {"items": {"id": "a"}}, UsageError, "one mapping is one item"),
        (MODEL, {"items": ""}, UsageError, "'' is not a file, a built-in set or a benchmark"),
        (MODEL, {"methods": 3}, UsageError, "methods 3: expected str | Sequence"),
        (MODEL, {"methods": []}, UsageError, "names no method"),
        (MODEL, {"methods": [1]}, UsageError, "methods.*: Expected `str`, got `int`"),
        (MODEL, {"protocol": "lable"}, UsageError, "Did you mean 'label'"),
        (MODEL, {"probs": "sampled"}, UsageError, "sampled:R"),
        (MODEL, {"estimation_sizes": ["a"]}, UsageError, "estimation_sizes"),
        (MODEL, {"estimation_sizes": [-5]}, UsageError, "estimation size -5: give at least 1"),
        (MODEL, {"gold_ties": "maybe"}, UsageError, "gold_ties 'maybe': expected Literal"),
        (MODEL, {"seed": -1}, UsageError, "seed: Expected `int` >= 0"),
        (MODEL, {"resamples": 5}, UsageError, "resamples: Expected `int` >= 100"),
        (MODEL, {"resamples": "100"}, UsageError, "resamples '100': expected int"),
        (MODEL, {"limit": 0}, UsageError, "limit 0: give a number of items"),
        (MODEL, {"limit": True}, UsageError, "limit True: expected int"),
        (MODEL, {"prompt": "drect"}, UnknownNameError, "Did you mean 'direct'"),
        (MODEL, {"template": "absent.jinja"}, UnswayedError, "absent.jinja"),
        (MODEL, {"labels": "X"}, UnswayedError, "2 candidates need 2 labels"),
        (MODEL, {"labels": [1, 2]}, UsageError, "labels"),
        (MODEL, {"labels": ["answer", "other"]}, UnswayedError, "the label 'answer' occurs in"),
        (MODEL, {"max_connections": 0}, UsageError, "max_connections"),
        (MODEL, {"timeout": -1.0}, UsageError, "timeout"),
        (MODEL, {"max_retries": -1}, UsageError, "max_retries"),
        (MODEL, {"patience": 0.0}, UsageError, "patience"),
        (MODEL, {"budget": "much"}, UsageError, "budget 'much': expected float"),
        (MODEL, {"decisions": "absent.jsonl"}, UsageError, "cannot read absent.jsonl"),
        (3, {}, UsageError, "model 3: expected str"),
        (MODEL, {"methods": ["vot"]}, UnknownNameError, "Did you mean 'vote'"),
        (MODEL, {"orders": "swp"}, UnknownNameError, "Did you mean 'swap'"),
        (MODEL, {"items": []}, ItemError, "no items"),
        (MODEL, {"items": "tiny-jugde"}, UsageError, "Did you mean 'tiny-judge'"),
        (MODEL, {"items": "absent.jsonl"}, UsageError, "cannot read absent.jsonl"),
        ("opnai/x", {}, UnknownNameError, "Did you mean 'openai'"),
        ("openai-api/nowhere/x", {}, MissingKeyError, "NOWHERE_BASE_URL"),
    ],
)
def test_an_unusable_argument_says_what_to_give(
    model: object,
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


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The backends that were closed."""
    closed: list[object] = []

    async def close(self: object) -> None:
        closed.append(self)

    monkeypatch.setattr(SimulatedBackend, "close", close)
    return closed


def test_a_backend_is_closed_once_in_every_case(
    closed: list[object], file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    command = ["audit", str(file), "--model", MODEL, "--resamples", "100", "--out", str(folder)]
    assert main([*command, "--dry-run"]) == 0
    assert len(closed) == 1
    assert main([*command, "--orders", "random:0"]) == 2
    assert len(closed) == 2
    assert not folder.exists()
    assert main(command) == 0
    assert len(closed) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": 3}, "method 3: expected str | Method | FittedFile"),
        ({"metod": "vote"}, "no option 'metod'. Did you mean 'method'"),
        ({"shadow": "half"}, "shadow 'half': expected float"),
        ({"calls": 5}, "calls 5: expected"),
        ({"model": None}, "model None: expected str"),
        ({"prompt": "drect"}, "Did you mean 'direct'"),
    ],
)
def test_what_cannot_judge_is_an_error_that_says_what_to_give(
    options: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        us.Judge(**{"model": MODEL, **options})  # type: ignore[arg-type]


def metrics_of(items: object, out: Path) -> bytes:
    us.audit(MODEL, items, out=out, group_by="meta.source", resamples=100)  # type: ignore[arg-type]
    return (out / "metrics.json").read_bytes()


class Rows:
    """A data set that is iterated by its rows, as those of HF are."""

    def __init__(self, rows: list[dict[str, object]]) -> None:
        self.column_names = list(rows[0])
        self._rows = rows

    def __iter__(self) -> Iterator[dict[str, object]]:
        return iter(self._rows)


def test_every_kind_of_data_gives_the_metrics_of_json_lines(items: ItemSet, tmp_path: Path) -> None:
    import pandas

    rows: list[dict[str, object]] = [
        {
            "id": item.id,
            "prompt": item.prompt,
            "candidates": list(item.candidates),
            "gold": item.gold,
            "meta": {"source": f"s{place % 2}"},
        }
        for place, item in enumerate(items)
    ]
    file = tmp_path / "items.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = metrics_of(file, tmp_path / "file")
    flat = pandas.json_normalize(rows).drop(columns="candidates")
    flat[["candidate_a", "candidate_b"]] = [row["candidates"] for row in rows]
    table = tmp_path / "table" / "items.csv"
    table.parent.mkdir()
    flat.to_csv(table, index=False)
    frame = pandas.DataFrame(rows)
    arrays = frame.assign(candidates=frame["candidates"].map(lambda texts: np.array(texts)))
    dated = flat.assign(**{"meta.when": pandas.Timestamp("2026-01-02")})
    assert us.load_data(dated, columns=None)[0].meta["when"] == "2026-01-02T00:00:00"
    for name, given in (
        ("list", rows),
        ("generator", (row for row in rows)),
        ("frame", frame),
        ("columns", flat),
        ("csv", table),
        ("arrays", arrays),
        ("rows", Rows(rows)),
        ("items", list(us.load_data(rows))),
    ):
        assert metrics_of(given, tmp_path / name) == expected, name


def test_a_result_prints_what_the_terminal_shows(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["audit", str(file), "--model", MODEL, "--out", str(tmp_path / "run")]
    assert main([*command, "--resamples", "100"]) == 0
    shown = capsys.readouterr().out.partition(f"\n\n{tmp_path}")[0]
    result = us.audit(MODEL, file, out=tmp_path / "run", resamples=100)
    assert [line.rstrip() for line in shown.splitlines()] == str(result).splitlines()
    assert "\x1b" not in str(result)


def test_notebooks_show_results_and_verdicts_escaped() -> None:
    rows = [
        {
            "id": f"<b>{number}",
            "prompt": f"p{number}",
            "candidates": ["x", "y"],
            "group": "<script>",
        }
        for number in range(30)
    ]
    result = us.audit(MODEL, rows, resamples=100)
    page = result._repr_html_()
    assert page.startswith("<div><p><b>An answer wins")
    assert page.count("<table>") == page.count("<th><bdi>direct</bdi>") == 1
    assert "<script" not in page
    with us.Judge(MODEL, method="vote") as judge:
        (verdict,) = judge.verdicts([us.Item(**rows[0])])  # type: ignore[arg-type]
        with pytest.raises(ItemError, match="neither an item nor a mapping"):
            list(judge.verdicts("items.jsonl"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"load_items\(\): path .*expected str"):
        us.load_items(rows)  # type: ignore[arg-type]
    assert isinstance(verdict, us.Verdict)
    assert "&lt;b&gt;0" in verdict._repr_html_()
    assert "<b>" not in verdict._repr_html_()


def test_summary_in_jupyter_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    result = us.audit(limit=100, resamples=100)
    outside = str(result)
    kernel = type("ZMQInteractiveShell", (), {})
    monkeypatch.setattr("builtins.get_ipython", kernel, raising=False)
    assert Console().is_jupyter
    assert str(result) == outside
    assert outside.count("Use average") == 2
    assert result._repr_html_().count("Use <b><bdi>average</bdi></b>") == 1


def test_the_table_has_rates_by_place_and_calls(items: ItemSet) -> None:
    result = us.audit(MODEL, items, methods="average", resamples=100)
    table = result.to_pandas().set_index(["method", "metric"])
    rates = table.loc[("direct", "position_rate")]
    assert list(rates["place"]) == [0, 1]
    assert rates["value"].sum() == pytest.approx(1)
    assert table.loc[("average", "calls_per_item"), "value"].item() == 2
    assert table.loc[("average", "accuracy"), "n"].item() == N


def test_python_reaches_a_server_and_says_how_items_are_asked(
    items: ItemSet, tmp_path: Path
) -> None:
    with pytest.raises(BackendError, match=r"127\.0\.0\.1:9"):
        us.audit("openai-api/local/m", items, base_url="http://127.0.0.1:9/v1", patience=0.1)
    shot = [{"id": "s", "prompt": "p", "candidates": ["x", "y"], "gold": 1}]
    run = us.audit(
        MODEL, items, prompt="modified-direct", labels=["X", "Y"], shots=shot, resamples=100
    ).run
    assert run["prompt"]["name"] == "modified-direct"
    assert run["prompt_settings"]["label_set"] == ["X", "Y"]
    assert run["prompt_settings"]["shots"][0]["id"] == "s"
    assert run["labels"] == ["X", "Y"]


def test_python_fits_and_judges_as_the_commands_do(file: Path, tmp_path: Path) -> None:
    fitted = us.calibrate("pride", file, MODEL, out=tmp_path / "python.json")
    assert fitted.diagnostics["estimation_items"] == N
    command = ["calibrate", "pride", str(file), "--model", MODEL, "--out"]
    assert main([*command, str(tmp_path / "command.json")]) == 0
    assert (tmp_path / "python.json").read_bytes() == (tmp_path / "command.json").read_bytes()
    method = us.load_method(tmp_path / "python.json")
    with us.Judge(MODEL, method=method, calls=tmp_path / "python.calls") as judge:
        list(judge.verdicts(us.load_items(file)))
        assert judge.counts.made == 0
    shown = [fitted, method, us.load_items(file), us.audit(MODEL, file, resamples=100)["direct"]]
    assert (
        max(len(repr(value)) for value in shown) < 1_500
    )  # a notebook shows the last line of a cell
    assert "consistency=0." in repr(shown[-1])
    with pytest.raises(UsageError, match=r"is a file. Give us.load_method\('python.json'\)"):
        us.Judge(MODEL, method="python.json")
    with pytest.raises(UsageError, match=r"`unswayed calibrate pride ...` or us.calibrate"):
        us.Judge(MODEL, method="pride")


def test_recorded_decisions_are_audited_from_python_too(items: ItemSet, tmp_path: Path) -> None:
    asked = us.audit(MODEL, items, out=tmp_path / "run", resamples=100)
    decisions = tmp_path / "decisions.jsonl"
    assert main(["export", str(tmp_path / "run"), "--out", str(decisions)]) == 0
    result = us.audit(items=items, decisions=decisions, resamples=100)
    assert result.run["recorded"]
    same = "direct", "vote", "average"
    for name in same:
        ours, theirs = (r.metrics["methods"][name]["accuracy"] for r in (result, asked))
        assert ours == theirs


def test_ctrl_c_is_an_interrupt_in_python_too(
    items: ItemSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def pressed(_: object) -> Iterator[asyncio.Event]:
        stop = asyncio.Event()
        stop.set()
        yield stop

    monkeypatch.setattr("unswayed.audits.stop_on_interrupt", pressed)
    with pytest.raises(KeyboardInterrupt):
        us.audit(MODEL, items, out=tmp_path / "run", resamples=100)
    assert json.loads((tmp_path / "run/run.json").read_text())["interrupted"]


def test_a_server_that_is_down_is_an_error(items: ItemSet) -> None:
    how = BackendSettings(base_url="http://127.0.0.1:9/v1", patience=0.1)
    with pytest.raises(BackendError, match="the server is down"):
        us.audit("openai-api/local/m", items, backend=how)


def test_figures_and_recommendation_are_read_by_name() -> None:
    result = us.audit("simulated/judge?slot=0.6", "tiny-judge", limit=60, resamples=100)
    written = result.metrics["methods"]["direct"]
    assert result["direct"].consistency.value == written["consistency"]["value"]
    assert [rate.value for rate in result["direct"].position_rate] == [
        rate["value"] for rate in written["position_rate"]
    ]
    assert result.recommendation.method == result.metrics["recommendation"].get("method")
    assert copy.copy(result["direct"]) == result["direct"]
    with pytest.raises(UnswayedError, match=r"no figures of 'dirct'\. Did you mean 'direct'"):
        result["dirct"]
    with pytest.raises(
        AttributeError, match=r"no figure 'consistancy'\. Did you mean 'consistency'"
    ):
        getattr(result["direct"], "consistancy")  # noqa: B009
