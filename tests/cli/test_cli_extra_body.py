"""`--extra-body`: fields in every request and key, refused where nothing could carry them."""

import json
from pathlib import Path

import pytest
from cli_commands import Run, Server

import unswayed as us
from unswayed.auditing.export import decisions_of_run
from unswayed.base.errors import UsageError
from unswayed.model.calls import Request, key_of
from unswayed.model.items import Message
from unswayed.prompts import PromptSettings, prompt_fingerprint
from unswayed.store import CallStore

EXTRA = '{"reasoning_effort": "low", "provider": {"only": ["x"]}}'
SORTED = '{"provider": {"only": ["x"]}, "reasoning_effort": "low"}'
NEEDED = {"kind": "status", "status": 400, "without": '"reasoning_effort": "low"'}


def test_keys_and_fingerprints_without_extra_body_are_unchanged() -> None:
    request = Request(
        model="openai/m", messages=(Message("user", "q"),), labels=("A", "B"), max_tokens=1
    )
    assert key_of(request).hex() == (
        "1a63b01f36177a839ed30c999f5138293f59c17222847984a0f2a498b4a6b289"
    )
    assert prompt_fingerprint(PromptSettings()) == (
        "sha256:b6e6403d47beb81c9de1858c83ba89aa0d141d2e4b7ea39606657c06546f876e"
    )


def test_extra_body_is_in_requests_keys_and_run_record(
    run: Run, pairs: Path, server: Server
) -> None:
    server.start(NEEDED)
    audit = ("audit", pairs, "--model", server.model, "--resamples", "100", "--max-retries", "0")
    assert run(*audit, "--out", "plain").code == 3  # the server answers with the field alone
    ran = run(*audit, "--out", "run", "--extra-body", EXTRA)
    assert ran.code == 0, ran.err
    record = json.loads(Path("run/run.json").read_text())
    assert record["asked"]["extra_body"] == SORTED
    with CallStore.open(Path("run"), read_only=True) as store:
        calls = list(store.calls())
    assert {call.request.extra_body for call in calls} == {SORTED}
    assert all(call.key == key_of(call.request) for call in calls)
    assert len(list(decisions_of_run("run"))) == 60
    received = server.received
    assert run(*audit, "--out", "run", "--extra-body", SORTED).code == 0
    assert run("audit", pairs, "--model", "replay/run", "--out", "again").code == 0
    assert server.received == received
    other = run(*audit, "--out", "run")
    assert (other.code, other.said) == (
        2,
        [
            "unswayed: run holds an audit with a different prompt, template, label set, extra_body "
            "or examples, and this one would overwrite it. Choose another --out."
        ],
    )


def test_fitted_file_is_refused_under_another_extra_body(
    run: Run, pairs: Path, server: Server
) -> None:
    server.start(NEEDED)
    model = ("--model", server.model, "--extra-body", EXTRA)
    assert run("calibrate", "pride", pairs, *model, "--out", "p.json").code == 0
    judge = ("judge", pairs, "--method", "p.json")
    assert run(*judge, *model, "--out", "v.jsonl").code == 0
    other = run(*judge, "--model", server.model, "--out", "w.jsonl")
    assert other.code == 2
    assert "Use the same template and extra_body, or calibrate again." in other.err


@pytest.mark.parametrize(
    ("model", "extra", "reason"),
    [
        (Server.model, '{"a": ', "is not a JSON object. Write it like"),
        (Server.model, "[1]", "is not a JSON object. Write it like"),
        (Server.model, '{"a": NaN}', "is not a JSON object. Write it like"),
        (Server.model, '{"max_tokens": 9}', "unswayed sets max_tokens itself. Leave it out."),
        (Server.model, '{"temperature": 1}', "unswayed sets temperature itself. Leave it out."),
        ("anthropic/claude-x", '{"system": "S"}', "unswayed sets system itself. Leave it out."),
        (Server.model, '{"stream": true}', "unswayed sets stream itself. Leave it out."),
        (Server.model, '{"n": 5}', "unswayed sets n itself. Leave it out."),
        ("simulated/judge", "{}  ", None),
        ("simulated/judge", '{"a": 1}', "simulated/judge sends no request, so it takes no extra"),
        ("tiny/judge", '{"a": 1}', "tiny/judge sends no request, so it takes no extra_body."),
    ],
)
def test_extra_body_that_cannot_be_sent_is_refused(
    model: str, extra: str, reason: str | None, run: Run, pairs: Path, server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    server.start()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-abcdefghijklmnop")
    ran = run("audit", pairs, "--model", model, "--extra-body", extra, "--dry-run")
    assert ran.code == (0 if reason is None else 2)
    assert (reason or "calls") in ran.out + ran.err
    assert server.received == 0


def test_judge_takes_extra_body_as_mapping(server: Server) -> None:
    server.start(NEEDED)
    with us.Judge(server.model, extra_body=json.loads(EXTRA), max_retries=0) as judge:
        assert judge.compare("q", "a", "b").choice is not None
    with (
        pytest.raises(UsageError, match="is not a JSON object"),
        us.Judge(server.model, extra_body={"a": {1}}),
    ):
        pass


def test_every_asking_command_takes_extra_body(run: Run) -> None:
    for command in ("audit", "judge", "calibrate", "filter"):
        assert "--extra-body" in run(command, "--help").out
