"""Servers that refuse what is sent, and teach: what is learned, remembered and told; models by name."""

import json

import msgspec
import pytest
from chat_cases import KEY, JumpClock, backend_at, collect, failures, queries, query
from fake_server import FakeServer, Fault
from test_dialects import LEARNED, NO_SCHEMAS, SCHEMA

from unswayed.backends import BackendSettings, open_backend
from unswayed.backends.client import HttpBackend
from unswayed.base.errors import MissingKeyError, UnknownNameError
from unswayed.model.calls import Response


def refuse(field: str, words: str) -> Fault:
    return Fault(kind="status", status=400, message=words, contains=f'"{field}"')


async def test_what_a_refusal_taught_is_remembered_and_told() -> None:
    faults = [
        refuse("max_tokens", LEARNED[0][0]),
        refuse("temperature", LEARNED[1][0]),
        refuse("logprobs", "'logprobs' is not supported with this model"),
    ]
    async with FakeServer(faults=faults) as server:
        backend = backend_at(server.url)
        asked = [query(number, top_logprobs=5) for number in range(200)]
        outcomes = await collect(backend, asked)
    assert not failures(outcomes)
    assert sum(outcome.retries for outcome in outcomes.values()) == 0  # type: ignore[union-attr]
    assert server.received <= 200 + 3 * 64  # three refusals per place, not per call
    assert not backend.gives_logprobs
    assert len(backend.remarks) == 3
    assert any("temperature" in remark for remark in backend.remarks)


@pytest.mark.parametrize(
    ("refused", "kept"),
    [
        (['"type":"json_schema"'], "json_object"),
        (['"type":"json_schema"', '"schema":{"type"'], "json_object"),
        (['"type":"json_schema"', '"type":"json_object"'], None),
    ],
)
@pytest.mark.parametrize("status", [400, 422, 500])
async def test_a_server_without_schemas_is_asked_loosely_afterwards(
    refused: list[str], kept: str | None, status: int
) -> None:
    faults = [
        Fault(kind="status", status=status, message=words, contains=text)
        for text, words in zip(refused, NO_SCHEMAS[1:], strict=False)
    ]
    async with FakeServer(faults=faults) as server:
        backend = backend_at(server.url)
        asked = [query(number, schema=SCHEMA) for number in range(100)]
        outcomes = await collect(backend, asked)
        again = await collect(backend, queries(1))
    assert not failures({**outcomes, **again})
    assert {outcome.retries for outcome in outcomes.values()} == {0}  # type: ignore[union-attr]
    assert server.received <= 101 + 3 * 64  # refusals per place, not per call
    forms = [json.loads(body).get("response_format", {}).get("type") for body in server.bodies]
    assert forms[-2:] == [kept, None]  # remembered; and a call without a schema has none
    assert len(backend.remarks) == 1


async def test_a_cap_on_logprobs_still_gives_probabilities() -> None:
    fault = Fault(
        kind="status",
        status=400,
        message="top_logprobs must be less than or equal to 5",
        contains='"top_logprobs":20',
    )
    async with FakeServer(faults=[fault]) as server:
        backend = backend_at(server.url)
        asked = [query(number, top_logprobs=20) for number in range(50)]
        outcomes = await collect(backend, asked)
    assert backend.gives_logprobs
    assert not failures(outcomes)
    for outcome in outcomes.values():
        assert isinstance(outcome, Response)
        assert outcome.top_logprobs is not None
        assert len(outcome.top_logprobs[0]) == 5


async def test_a_running_answer_does_not_undo_what_was_learned() -> None:
    faults = [
        Fault(kind="slow", delay_s=0.1, contains='question 0"'),
        refuse("temperature", LEARNED[1][0]),
    ]
    async with FakeServer(faults=faults) as server:
        backend = backend_at(server.url, max_connections=2)
        outcomes = await collect(backend, queries(2))
    assert not failures(outcomes)
    assert b'"temperature"' in server.bodies[0]
    assert not backend.traits.temperature


async def test_a_change_that_does_not_help_is_not_kept() -> None:
    # says "temperature" whatever is sent, for one prompt only
    words = "Invalid prompt: 'temperature' is not allowed"
    faults = [Fault(kind="status", status=400, message=words, contains='question 7"')]
    async with FakeServer(faults=faults) as server:
        backend = backend_at(server.url)
        outcomes = await collect(backend, queries(40))
    (failure,) = failures(outcomes)
    assert failure.message.startswith("q7: ")
    assert backend.traits == backend.dialect.traits
    assert backend.remarks == ()
    assert b'"temperature"' in server.bodies[-1]


async def test_servers_without_logprobs_are_noticed() -> None:
    async with FakeServer(faults=[Fault(kind="no_logprobs")]) as server:
        backend = backend_at(server.url)
        assert backend.gives_logprobs
        outcomes = await collect(backend, [query(top_logprobs=5)])
    (response,) = outcomes.values()
    assert isinstance(response, Response)
    assert response.top_logprobs is None
    assert not backend.gives_logprobs


async def test_one_answer_without_logprobs_changes_nothing() -> None:
    async with FakeServer(faults=[Fault(kind="no_logprobs", on=[10])]) as server:
        backend = backend_at(server.url, max_connections=1)
        asked = [query(number, top_logprobs=5) for number in range(10)]
        outcomes = await collect(backend, asked)
    missing = [
        outcome
        for outcome in outcomes.values()
        if isinstance(outcome, Response) and outcome.top_logprobs is None
    ]
    assert len(missing) == 1
    assert backend.gives_logprobs


@pytest.fixture
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for service in ("OPENAI", "ANTHROPIC", "MY_LAB"):
        for variable in ("API_KEY", "BASE_URL"):
            monkeypatch.delenv(f"{service}_{variable}", raising=False)


@pytest.mark.usefixtures("_no_variables")
def test_opening_without_a_key_or_address_says_what_to_set() -> None:
    with pytest.raises(MissingKeyError, match="OPENAI_API_KEY"):
        open_backend("openai/gpt-4.1-mini")
    with pytest.raises(MissingKeyError, match="ANTHROPIC_API_KEY"):
        open_backend("anthropic/claude-haiku-4-5")
    with pytest.raises(MissingKeyError, match="MY_LAB_BASE_URL"):
        open_backend("openai-api/my-lab/llama")
    with pytest.raises(UnknownNameError, match="openai-api/<service>/<model>"):
        open_backend("openai-api/llama")


@pytest.mark.usefixtures("_no_variables")
async def test_a_service_is_reached_with_its_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeServer(key=KEY) as server:
        monkeypatch.setenv("MY_LAB_BASE_URL", server.url)
        monkeypatch.setenv("MY_LAB_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-this-one-12345")
        backend = open_backend("openai-api/my-lab/org/llama-8b")
        outcomes = await collect(backend, [query()])  # type: ignore[arg-type]
        assert server.paths == ["/v1/chat/completions"]
        assert json.loads(server.bodies[0])["model"] == "org/llama-8b"
        assert "not-this-one" not in json.dumps(server.headers)
    assert backend.model == "openai-api/my-lab/org/llama-8b"
    assert not failures(outcomes)


@pytest.mark.usefixtures("_no_variables")
async def test_a_configured_address_gets_no_openai_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeServer(key="another") as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        backend = open_backend("openai/m", BackendSettings(base_url=server.url))
        outcomes = await collect(backend, [query()])  # type: ignore[arg-type]
        assert "authorization" not in server.headers[0]
    (failure,) = failures(outcomes)
    assert failure.fatal
    assert "No key was sent" in failure.message
    assert "OPENAI_BASE_URL" in failure.message
    assert KEY not in msgspec.json.encode(failure).decode()


async def test_an_earlier_fault_does_not_slow_reading_down() -> None:
    async with FakeServer(faults=[Fault(kind="half", every=7)]) as server:
        backend = backend_at(server.url, clock=JumpClock().clock())
        outcomes = await collect(backend, queries(100))
    assert len(outcomes) == 100
    assert not failures(outcomes)


@pytest.mark.usefixtures("_no_variables")
async def test_a_server_of_messages_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Fault(
        kind="status",
        status=400,
        message="`temperature` is deprecated for this model.",
        contains='"temperature"',
    )
    async with FakeServer(key=KEY, faults=[refused]) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        backend = open_backend("anthropic/claude-new")
        assert isinstance(backend, HttpBackend)
        assert not backend.gives_logprobs
        outcomes = await collect(backend, [query(i, top_logprobs=5) for i in range(30)])
        assert set(server.paths) == {"/v1/messages"}
        assert server.headers[0]["x-api-key"] == KEY
        assert "authorization" not in server.headers[0]
    assert not failures(outcomes)
    assert {outcome.text for outcome in outcomes.values()} == {"A", "B"}  # type: ignore[union-attr]
    assert len(backend.remarks) == 1
