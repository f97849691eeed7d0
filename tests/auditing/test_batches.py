"""Audits through a provider's batches: requests out, results back, figures as from single calls."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import unswayed as us
from unswayed.backends.batches import FORMATS
from unswayed.base.errors import MissingKeyError, UsageError, WaitingError
from unswayed.cli import main
from unswayed.store import CallStore

MODELS = {"openai": "openai/gpt-4.1-mini", "anthropic": "anthropic/claude-haiku-4-5"}
METHODS = {"openai": ["vote", "average", "sequential"], "anthropic": ["vote", "sequential"]}
TEXTS = [(f"It is {n}.", f"No, {n}!") for n in range(60)]
ITEMS = [
    us.Item(id=f"q{n}", prompt=f"Question {n}?", candidates=texts, gold=n % 2)
    for n, texts in enumerate(TEXTS)
]
Line = dict[str, Any]


@pytest.fixture(autouse=True)
def folder(keyless_folder: Path) -> Path:
    """A folder of its own, without keys."""
    return keyless_folder


def audit(model: str, **options: Any) -> us.audit:
    given = {"batch": "batch", "out": "run", "resamples": 100, "methods": ["vote"]}
    return us.audit(model, ITEMS, **{**given, **options})


def requests(pattern: str = "*") -> list[Line]:
    files = sorted(Path("batch/upload").glob(f"{pattern}.jsonl"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def letter(line: Line) -> str:
    """The answer to a request, drawn by its id."""
    return random.Random(line["custom_id"]).choice("AB")


def answered(line: Line, text: str | None = None, *, ended: str | None = None) -> Line:
    """A result as the provider sends it."""
    text = letter(line) if text is None else text
    if "params" in line:
        usage = {"input_tokens": 50, "output_tokens": 1}
        message = {"type": "message", "content": [{"type": "text", "text": text}], "usage": usage}
        message |= {"model": "claude-haiku-4-5", "stop_reason": ended or "end_turn"}
        return {"custom_id": line["custom_id"], "result": {"type": "succeeded", "message": message}}
    other = "B" if text == "A" else "A"
    tops = [{"token": text, "logprob": -0.1}, {"token": other, "logprob": -2.4}]
    choice: Line = {"message": {"content": text}, "finish_reason": ended or "stop"}
    if text in ("A", "B"):
        choice["logprobs"] = {"content": [{**tops[0], "top_logprobs": tops}]}
    usage = {"prompt_tokens": 50, "completion_tokens": 1}
    body = {"model": "gpt-4.1-mini", "choices": [choice], "usage": usage}
    response = {"status_code": 200, "request_id": "r", "body": body}
    own = {"id": "batch_req_1", "custom_id": line["custom_id"]}
    return {**own, "response": response, "error": None}


def refused(line: Line, words: str = "bad", number: int = 1) -> Line:
    own = {"custom_id": line["custom_id"], "id": f"batch_req_{number}"}
    error = {"type": "invalid_request_error", "message": words}
    if "params" in line:
        wrapped = {"type": "error", "error": error, "request_id": str(number)}
        return {**own, "result": {"type": "errored", "error": wrapped}}
    return {**own, "response": {"status_code": 400, "body": {"error": error}}, "error": None}


def expired(line: Line) -> Line:
    if "params" in line:
        return {"custom_id": line["custom_id"], "result": {"type": "expired"}}
    error = {"code": "batch_expired", "message": "not executed in time"}
    return {"custom_id": line["custom_id"], "response": None, "error": error}


def save(name: str, lines: Iterable[Line]) -> None:
    Path("batch", name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def waits(model: str, **options: Any) -> str:
    with pytest.raises(WaitingError) as caught:
        audit(model, **options)
    assert caught.value.exit_code == 4
    return str(caught.value)


def as_decisions(model: str, lines: Sequence[Line], result: us.AuditResult) -> us.AuditResult:
    """The audit of the same answers given as decisions."""
    names = ("item_id", "order", "labels", "choice", "probs")
    plain = [{name: getattr(own, name) for name in names} for own in result.decisions]
    return us.audit(items=ITEMS, decisions=plain, methods=METHODS[model], resamples=100)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("out", ["run", None])
def test_batches_give_figures_of_same_answers(kind: str, out: str | None) -> None:
    model, options = MODELS[kind], {"methods": METHODS[kind], "out": out}
    assert "240 of 240 calls have no answer in batch yet." in waits(model, **options)
    lines = requests()
    assert len(lines) == 240
    assert {len(line["custom_id"]) for line in lines} == {64}
    results = [answered(line) for line in lines]
    results[7], results[8] = refused(lines[7]), expired(lines[8])
    random.Random(0).shuffle(results)
    save("first.jsonl", results[:50])
    save("second.jsonl", results[50:])
    save("second-again.jsonl", results[50:])
    said = waits(model, **options)
    assert "2 of 240 calls have no answer in batch yet." in said
    assert "2 calls failed and are sent again, such as q" in said
    again = requests()
    assert {line["custom_id"] for line in again} == {lines[n]["custom_id"] for n in (7, 8)}
    save("third.jsonl", map(answered, again))
    result = audit(model, **options)
    calls = result.metrics["calls"]
    assert (calls["made"] + calls["cached"], calls["failed"], calls["planned"]) == (240, 0, 240)
    assert requests() == []
    plain = as_decisions(kind, lines, result)
    assert set(result.metrics["methods"]) == {"direct", *METHODS[kind]}
    for name, figures in result.metrics["methods"].items():
        for metric in ("consistency", "position_rate", "accuracy"):
            assert figures[metric] == plain.metrics["methods"][name][metric]
    if out is not None:
        counts = audit(model, **options, batch=None).metrics["calls"]
        assert (counts["made"], counts["cached"], counts["failed"]) == (0, 240, 0)


def test_half_price_is_counted_once() -> None:
    model = MODELS["openai"]
    waits(model)
    save("results.jsonl", map(answered, requests()))
    Path("batch/copy.jsonl").write_bytes(Path("batch/results.jsonl").read_bytes())
    result = audit(model)
    full = (50 * 0.40 + 1 * 1.60) / 1e6
    assert result.metrics["calls"]["cost_usd"] == pytest.approx(120 * full / 2)
    assert all(d.cost_usd == pytest.approx(full / 2) for d in result.decisions)
    assert audit(model).metrics["calls"]["cost_usd"] == 0


def test_call_refused_twice_has_failed() -> None:
    model = MODELS["openai"]
    waits(model)
    lines = requests()
    save("first.jsonl", [refused(lines[0]), *map(answered, lines[1:])])
    save("copy.jsonl", [refused(lines[0])])
    assert "1 of 120 calls has no answer" in waits(model)
    save("second.jsonl", [refused(requests()[0], number=2)])
    for _ in range(2):
        result = audit(model)
        calls = result.metrics["calls"]
        assert (calls["made"] + calls["cached"], calls["failed"]) == (119, 1)
        (said,) = result.run["failures"]
        assert said.startswith("1 of 120 calls failed, such as q0: HTTP 400 from ")
        assert said.endswith("Run the same command without --batch to retry.")
    assert requests() == []
    command = ["audit", "items.jsonl", "--model", model, "--batch", "batch", "--out", "run"]
    encoded = [msgspec.json.encode(item) for item in ITEMS]
    Path("items.jsonl").write_bytes(b"\n".join(encoded))
    assert main([*command, "--methods", "vote", "--resamples", "100"]) == 3


def test_other_files_in_upload_stay() -> None:
    Path("batch/upload").mkdir(parents=True)
    others = ["5.jsonl", "run-b-1.jsonl", "run-x.jsonl", "run-1.json"]
    for name in others:
        Path("batch/upload", name).touch()
    Path("batch/upload/run-7.jsonl").touch()
    waits(MODELS["openai"])
    assert sorted(os.listdir("batch/upload")) == sorted([*others, "run-1.jsonl"])


@pytest.mark.parametrize("options", [{"methods": ["repeat"]}, {"probs": "sampled:5"}])
def test_samples_are_requests(options: Line) -> None:
    waits(MODELS["openai"], **options)
    lines = requests()
    assert len({line["custom_id"] for line in lines}) == len(lines) > 120
    assert {line["body"].get("seed") for line in lines} > {None, 1, 2}
    save("results.jsonl", map(answered, lines))
    assert audit(MODELS["openai"], **options).metrics["calls"]["made"] == len(lines)


@pytest.mark.parametrize("kind", MODELS)
def test_cut_off_and_unread_replies_are_asked_again(kind: str) -> None:
    waits(MODELS[kind])
    lines = requests()
    ended = "max_tokens" if kind == "anthropic" else "length"
    replies = [answered(line) for line in lines[2:]]
    cut, vague = answered(lines[0], "Well,", ended=ended), answered(lines[1], "Both are fine.")
    save("first.jsonl", [cut, vague, *replies])
    assert "2 of 122 calls have no answer" in waits(MODELS[kind])
    longer, talk = (line.get("body") or line["params"] for line in requests())
    first = lines[0].get("body") or lines[0]["params"]
    assert longer["max_tokens"] == 4 * first["max_tokens"]
    assert talk["messages"][-2]["content"] == "Both are fine."
    save("second.jsonl", map(answered, requests()))
    calls = audit(MODELS[kind]).metrics["calls"]
    assert (calls["planned"], calls["unparsed"], calls["reasked_read"]) == (122, 0, 1)


def test_no_reask_leaves_unread_replies() -> None:
    waits(MODELS["openai"])
    save("first.jsonl", [answered(line, "Both are fine.") for line in requests()])
    assert audit(MODELS["openai"], reask=False).metrics["calls"]["unparsed"] == 120


def test_refused_field_is_left_out_of_next_requests() -> None:
    model = "openai/new-model"
    waits(model)
    lines = requests()
    assert all(line["body"]["temperature"] == 0 for line in lines)
    words = "Unsupported value: 'temperature' does not support 0.0 with this model."
    save("first.jsonl", [refused(line, words) for line in lines])
    assert "failed" not in waits(model)
    again = requests()
    assert [line["custom_id"] for line in again] == [line["custom_id"] for line in lines]
    assert not any("temperature" in line["body"] for line in again)


def test_limits_divide_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS["openai"]
    waits(model)
    (file,) = Path("batch/upload").iterdir()
    size = max(map(len, file.read_bytes().splitlines(keepends=True)))
    lines = requests()
    monkeypatch.setitem(FORMATS, "openai", FORMATS["openai"]._replace(most_lines=50))
    assert waits(model).count("requests)") == 3
    assert [len(requests(f"run-{n}")) for n in (1, 2, 3)] == [50, 50, 20]
    assert requests() == lines
    monkeypatch.setitem(FORMATS, "openai", FORMATS["openai"]._replace(most_bytes=10 * size + 100))
    waits(model)
    files = sorted(Path("batch/upload").iterdir())
    assert all(file.stat().st_size <= 10 * size for file in files)
    assert sorted(map(str, requests())) == sorted(map(str, lines))
    monkeypatch.setitem(FORMATS, "openai", FORMATS["openai"]._replace(most_bytes=1))
    waits(model)
    assert len(list(Path("batch/upload").iterdir())) == 120
    monkeypatch.undo()
    monkeypatch.chdir(file.parents[2])


def test_damaged_and_foreign_lines_are_counted() -> None:
    waits(MODELS["openai"])
    lines = requests()
    whole = [json.dumps(answered(line)) for line in lines]
    text = "\n".join([*whole[:40], "", '{"custom_id": 3}', "[]", "\0", whole[40][:90]])
    Path("batch/cut.jsonl").write_text(text)
    foreign = [answered({"custom_id": name}) for name in ("mine-1", "00" * 32, "\u00e4")]
    save("foreign.jsonl", [*foreign, *lines, {**lines[0], "custom_id": "ab" * 32}])
    said = waits(MODELS["openai"])
    assert "80 of 120 calls have no answer" in said
    assert "batch/cut.jsonl: 4 lines are not results of a batch, such as line 42." in said
    assert (
        "3 results in batch belong to no call of this audit. Check that --batch names its folder."
        in said
    )
    save("rest.jsonl", map(answered, requests("run-*")))
    result = audit(MODELS["openai"])
    assert result.metrics["calls"]["cached"] == 40
    assert any("3 results in batch belong" in said for said in result.run["warnings"])


def test_body_without_answer_is_asked_again() -> None:
    waits(MODELS["openai"])
    lines = requests()
    empty = answered(lines[0])
    empty["response"]["body"] = {"choices": []}
    save("results.jsonl", [empty, *map(answered, lines[1:])])
    assert "not a chat completion" in waits(MODELS["openai"])
    assert [line["custom_id"] for line in requests()] == [lines[0]["custom_id"]]


def test_two_runs_share_a_folder() -> None:
    waits(MODELS["openai"], out="one")
    waits(MODELS["anthropic"], out="two")
    assert {file.name for file in Path("batch/upload").iterdir()} == {"one-1.jsonl", "two-1.jsonl"}
    save("results.jsonl", map(answered, requests()))
    for kind, out in (("openai", "one"), ("anthropic", "two")):
        result = audit(MODELS[kind], out=out)
        assert result.metrics["calls"]["made"] == 120
        assert any("120 results in batch belong to no call" in w for w in result.run["warnings"])
    assert requests() == []


def test_vllm_results_are_read() -> None:
    options = {"base_url": "http://localhost:8000/v1"}
    said = waits("openai-api/vllm/org/model", **options)
    assert "vllm run-batch -i FILE -o batch/NAME.jsonl --model org/model" in said
    lines = requests()
    assert lines[0]["body"]["model"] == "org/model"
    error = {"object": "error", "message": "out of memory", "type": "InternalServerError"}
    bad = {**answered(lines[0]), "response": {"status_code": 500}, "error": error}
    save("results.jsonl", [bad, *map(answered, lines[1:])])
    assert "out of memory" in waits("openai-api/vllm/org/model", **options)
    save("more.jsonl", map(answered, requests()))
    assert audit("openai-api/vllm/org/model", **options).metrics["calls"]["cost_usd"] == 0


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("tiny/judge", {}, "tiny/judge does not take batches"),
        ("simulated/judge", {}, "simulated/judge does not take batches"),
        (MODELS["openai"], {"budget": 5.0}, "--budget cannot limit --batch"),
    ],
)
def test_impossible_batches_are_refused(model: str, options: Line, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        audit(model, **options)
    assert not Path("run").exists()
    assert not Path("batch").exists()


def test_batch_is_refused_with_decisions_or_function() -> None:
    with pytest.raises(UsageError, match="--batch has no effect on --decisions"):
        us.audit(decisions=[{"item_id": "q0", "order": [0, 1], "choice": 0}], batch="batch")
    with pytest.raises(UsageError, match="does not take batches"):
        us.audit(lambda prompt, answers: 0, ITEMS, batch="batch")


def test_missing_calls_without_batch_need_the_key() -> None:
    waits(MODELS["openai"])
    with pytest.raises(MissingKeyError, match="120 of 120 calls are not recorded yet"):
        audit(MODELS["openai"], batch=None)


def test_command_exits_with_4_and_prices_half(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["audit", "tiny-judge", "--limit", "20", "--model", MODELS["openai"]]
    costs = []
    for batch in ([], ["--batch", "batch"]):
        assert main([*command, *batch, "--dry-run"]) == 0
        costs.append(float(capsys.readouterr().out.partition("cost $")[2].split()[0]))
    assert costs[1] == pytest.approx(costs[0] / 2, abs=1e-4)
    assert not Path("batch").exists()
    assert main([*command, "--batch", "batch", "--json"]) == 4
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("unswayed: ")
    assert "\n  batch/upload/tiny-judge-openai-gpt-4.1-mini-1.jsonl (" in printed.err
    assert "curl https://api.openai.com/v1/files" in printed.err
    save("results.jsonl", map(answered, requests()))
    assert main([*command, "--batch", "batch", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["calls"]["failed"] == 0


KILLED = """
import os, pathlib, signal, sys
sys.path[:0] = [sys.argv[1]]
from test_batches import MODELS, audit
from unswayed.backends.batches import BatchFolder
from unswayed.store import CallStore

owner = {"put_many": CallStore, "_request": BatchFolder, "replace": pathlib.Path}[sys.argv[2]]
original, left = getattr(owner, sys.argv[2]), [int(sys.argv[3])]

def killing(*arguments, **options):
    value = original(*arguments, **options)
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return value

setattr(owner, sys.argv[2], killing)
audit(MODELS["openai"])
"""


def killed_at(function: str, call: int) -> None:
    """Run the audit in a process that is killed after this call of a function."""
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent), function, str(call)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


def test_kills_between_and_inside_rounds_lose_nothing() -> None:
    model = MODELS["openai"]
    killed_at("_request", 70)
    assert requests() == []
    killed_at("replace", 1)
    lines = requests()
    assert len(lines) == 120
    waits(model)
    assert requests() == lines
    save("first.jsonl", [*map(answered, lines[:110]), *map(expired, lines[110:])])
    killed_at("put_many", 1)
    killed_at("_request", 5)
    assert "10 of 120 calls" in waits(model)
    assert requests() == lines[110:]
    save("second.jsonl", map(answered, requests()))
    killed_at("put_many", 1)
    result, whole = audit(model), audit(model, out=None)
    assert result.metrics["methods"] == whole.metrics["methods"]
    counts = result.metrics["calls"]
    assert (counts["planned"], counts["cached"], counts["failed"]) == (120, 120, 0)
    assert not list(Path("batch").rglob(".*"))
    with CallStore.open("run", read_only=True) as store:
        assert store.totals().calls == 120
