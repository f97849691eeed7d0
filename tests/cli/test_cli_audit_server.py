"""`unswayed audit` against a server with faults: what failed is counted, kept apart and tried again."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_commands import Ran, Run, Server, pair, write_lines, write_prices

import unswayed as us
from unswayed.backends import BackendSettings

KEY = "sk-abcdefghijklmnop"
N_CALLS = 24


@pytest.fixture
def few(folder: Path) -> Path:
    """12 pairs: 24 calls."""
    return write_lines("few.jsonl", [pair(number) for number in range(12)])


def audit(run: Run, data: Path, *more: str | Path, model: str = Server.model) -> Ran:
    return run("audit", data, "--model", model, "--out", "run", "--resamples", "100", *more)


def metrics() -> Any:
    return json.loads(Path("run/metrics.json").read_text())


def figures() -> Any:
    """Everything but what this run has paid."""
    return {name: value for name, value in metrics().items() if name != "calls"}


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "status", "status": 429},
        {"kind": "status", "status": 429, "retry_after": "0.05"},
        {"kind": "status", "status": 500},
        {"kind": "status", "status": 503, "retry_after": "0.05"},
        {"kind": "half"},
        {"kind": "reset"},
        {"kind": "close"},
        {"kind": "not_json"},
        {"kind": "wrong_shape"},
    ],
    ids=lambda fault: f"{fault['kind']}{fault.get('status', '')}{fault.get('retry_after', '')}",
)
def test_a_passing_fault_is_tried_again_and_changes_no_figure(
    fault: dict[str, object], run: Run, few: Path, server: Server
) -> None:
    server.start({**fault, "on": [3]})
    ran = audit(run, few)
    assert ran.code == 0
    assert "1 retry" in ran.err
    assert server.received == N_CALLS + 1
    calls = metrics()["calls"]
    assert (calls["made"], calls["failed"]) == (N_CALLS, 0)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"kind": "status", "status": 400, "message": "no such thing"}, "HTTP 400"),
        ({"kind": "not_json"}, "not a chat completion"),
    ],
)
def test_failed_calls_never_decide_and_can_be_resumed(
    fault: dict[str, object], said: str, run: Run, few: Path, server: Server
) -> None:
    server.start({**fault, "contains": "first answer 3"})
    ran = audit(run, few)
    assert ran.code == 3
    calls = metrics()["calls"]
    assert (calls["planned"], calls["made"], calls["failed"]) == (N_CALLS, N_CALLS - 2, 2)
    assert calls["unparsed"] == 0
    direct = metrics()["methods"]["direct"]
    assert direct["consistency"]["n"] == 11
    assert direct["incomplete"] == 1
    assert any("2 of 24 calls failed, such as q3: " in line and said in line for line in ran.said)
    server.start()
    assert audit(run, few).code == 0
    assert server.received == 2
    calls = metrics()["calls"]
    assert (calls["made"], calls["cached"], calls["failed"]) == (2, N_CALLS - 2, 0)
    assert metrics()["methods"]["direct"]["consistency"]["n"] == 12


def test_a_failed_call_ends_in_the_figures_of_a_clean_run(
    run: Run, few: Path, server: Server
) -> None:
    server.start()
    assert audit(run, few).code == 0
    undisturbed = figures()
    Path("run").rename("undisturbed")
    server.start({"kind": "status", "status": 400, "contains": "first answer 5"})
    assert audit(run, few).code == 3
    server.start()
    assert audit(run, few).code == 0
    assert figures() == undisturbed


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"kind": "status", "status": 401}, "LOCAL_API_KEY is not set"),
        ({"kind": "status", "status": 403}, "HTTP 403"),
        ({"kind": "status", "status": 402}, "no quota left"),
        ({"kind": "status", "status": 404}, "Check the model name"),
        ({"kind": "redirect"}, "redirects are not followed"),
    ],
)
def test_error_of_every_call_stops_run_with_message(
    fault: dict[str, object], said: str, run: Run, few: Path, server: Server
) -> None:
    server.start(fault)
    ran = audit(run, few, "--max-connections", "2")
    assert ran.code == 3
    assert any(line.startswith("unswayed: stopped: ") and said in line for line in ran.said)
    assert server.received < N_CALLS
    calls = metrics()["calls"]
    assert (calls["planned"], calls["made"]) == (N_CALLS, 0)
    assert ran.out == ""  # no report of nothing


def test_absent_server_is_reported_and_loses_nothing(run: Run, few: Path, server: Server) -> None:
    server.start()
    server.stop()
    ran = audit(run, few)
    assert ran.code == 3
    assert any("the server is down" in line for line in ran.said)
    assert ran.out == ""
    assert metrics()["methods"]["direct"]["calls_per_item"] == 1.0
    assert metrics()["methods"]["vote"]["calls_per_item"] == 2.0
    assert metrics()["methods"]["direct"]["accuracy"]["value"] is None
    server.start()
    assert audit(run, few, "--base-url", server.url).code == 0
    assert metrics()["calls"]["made"] == N_CALLS


def test_a_server_without_logprobs_leaves_some_methods(run: Run, few: Path, server: Server) -> None:
    server.start({"kind": "no_logprobs"})
    ran = audit(run, few, "--methods", "vote,average,pride")
    assert ran.code == 0
    found = metrics()
    assert list(found["methods"]) == ["direct", "vote"]
    assert sorted(found["skipped"]) == ["average", "pride"]
    assert "no answer has any" in found["skipped"]["average"]
    assert any("skipped average, pride: " in line for line in ran.said)


def test_partial_logprobs_give_null_verdicts_that_are_counted(
    run: Run, few: Path, server: Server
) -> None:
    server.start({"kind": "no_logprobs", "contains": "first answer 3"})
    ran = audit(run, few)
    assert ran.code == 0
    average = metrics()["methods"]["average"]
    assert average["unparsed_rate"]["value"] == pytest.approx(1 / 12)  # item q3 under every order
    assert any("2 of 24 answers came without label probabilities" in line for line in ran.said)


# --- budget ------------------------------------------------------------------------------------


def test_a_budget_is_never_exceeded_and_a_higher_one_continues(
    run: Run, few: Path, server: Server
) -> None:
    write_prices(1)
    server.start()
    ran = audit(run, few, "--budget", "0.002", "--prices", "prices.json")
    assert ran.code == 3
    calls = metrics()["calls"]
    assert 0 < calls["made"] < N_CALLS
    assert calls["cost_usd"] <= 0.002
    assert calls["planned"] == N_CALLS
    left = N_CALLS - calls["made"]
    assert any(f"{left} of 24 calls were not made" in line for line in ran.said)
    again = audit(run, few, "--budget", "0.002", "--prices", "prices.json")
    assert again.code == 3
    assert metrics()["calls"]["made"] == 0
    assert audit(run, few, "--budget", "1", "--prices", "prices.json").code == 0
    assert server.received == N_CALLS


def test_a_budget_needs_a_price(
    run: Run, few: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_BASE_URL", "https://example.org/v1")
    monkeypatch.setenv("LOCAL_API_KEY", "")
    ran = audit(run, few, "--budget", "1")
    assert ran.code == 2
    assert "is unknown, so a budget" in ran.err


# --- offline -----------------------------------------------------------------------------------


def test_a_recorded_run_needs_no_key_and_no_server(
    run: Run, few: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.start(key=KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert audit(run, few, model="openai/m").code == 0
    first = figures()
    server.stop()
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    ran = audit(run, few, model="openai/m")
    assert ran.code == 0
    assert figures() == first
    calls = metrics()["calls"]
    assert (calls["made"], calls["cached"]) == (0, N_CALLS)
    assert "24 recorded, 0 to make" in audit(run, few, "--dry-run", model="openai/m").out
    more = audit(run, few, "--orders", "balanced", "--protocol", "all", model="openai/m")
    assert more.code == 2
    assert "set OPENAI_API_KEY" in more.err
    assert "24 of 48 calls are not recorded yet" in more.err
    for path in Path("run").iterdir():
        assert KEY.encode() not in path.read_bytes()


def test_missing_key_is_reported_despite_run_of_other_model(
    run: Run, few: Path, server: Server
) -> None:
    server.start()
    assert audit(run, few).code == 0
    ran = audit(run, few, model="openai/m")
    assert ran.code == 2
    assert "set OPENAI_API_KEY" in ran.err
    assert "not recorded" not in ran.err


def test_a_key_is_sent_to_its_own_address_only(
    run: Run, few: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.start()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert audit(run, few, "--base-url", server.url, model="openai/m").code == 0
    assert server.received == N_CALLS
    assert KEY not in str(server.headers)


@pytest.mark.parametrize(
    "command",
    [
        ("audit", "few.jsonl", "--out", "run"),
        ("judge", "few.jsonl", "--method", "direct"),
        ("calibrate", "pride", "few.jsonl", "--out", "pride.json"),
        ("filter", "few.jsonl", "--out", "kept.jsonl"),
    ],
    ids=lambda command: command[0],
)
def test_every_command_for_servers_takes_patience(
    command: tuple[str, ...], run: Run, few: Path, server: Server
) -> None:
    server.start({"kind": "status", "status": 503})
    how = ("--patience", "0.25", "--max-retries", "0", "--timeout", "5")
    ran = run(*command, "--model", Server.model, *how)
    assert ran.code in {2, 3}
    assert "the server has answered nothing for 0.25 seconds: HTTP 503" in ran.err
    assert "--patience SECONDS waits longer" in ran.err


def test_a_failing_call_is_retried_as_asked_and_once_at_the_end(
    run: Run, few: Path, server: Server
) -> None:
    server.start({"kind": "status", "status": 500, "contains": "first answer 3"})
    assert audit(run, few, "--max-retries", "1").code == 3
    assert server.received == N_CALLS + 2 * 2  # both calls about q3
    server.start({"kind": "status", "status": 500, "contains": "first answer 3"})
    assert audit(run, few, "--max-retries", "0").code == 3
    assert server.received == 2 * 2


def test_refusals_and_impossible_counts_are_reported(run: Run, few: Path, server: Server) -> None:
    refusal = {
        "choices": [{"message": {"content": None, "refusal": "A. I cannot"}}],
        "usage": {"prompt_tokens": 9999999999999999999, "completion_tokens": -1},
    }
    server.start({"kind": "body", "message": json.dumps(refusal), "contains": "first answer 3"})
    ran = audit(run, few)
    assert ran.code == 0
    calls = metrics()["calls"]
    assert (calls["made"], calls["unparsed"], calls["refused"]) == (N_CALLS, 2, 2)
    assert calls["unknown_usage"] == 2
    assert any("2 answers refused by the model" in line for line in ran.said)
    assert any("2 answers came without a valid token count" in line for line in ran.said)
    again = audit(run, few)
    assert metrics()["calls"]["refused"] == 2
    assert any("2 answers refused by the model" in line for line in again.said)
    assert "2 of 24, 2 refused" in Path("run/report.html").read_text()


def test_a_server_that_hangs_is_given_up_and_the_rest_is_kept(few: Path, server: Server) -> None:
    server.start({"kind": "hang", "contains": "first answer 3"})
    how = BackendSettings(timeout=0.3, max_retries=1)
    result = us.audit(Server.model, few, out="run", backend=how, resamples=100)
    calls = result.metrics["calls"]
    assert (calls["made"], calls["failed"]) == (N_CALLS - 2, 2)
    assert any("q3" in line for line in result.run["warnings"])
