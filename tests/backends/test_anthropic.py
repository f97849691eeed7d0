"""The messages API: system apart, thinking apart, caches counted, no logprobs."""

import itertools
import json
from dataclasses import replace

import pytest
from chat_cases import KEY, collect, failures, query
from fake_server import FakeServer, Fault
from hypothesis import given
from hypothesis import strategies as st

from unswayed.backends import open_backend
from unswayed.backends.anthropic import AnthropicDialect, split_system
from unswayed.backends.client import HttpBackend
from unswayed.backends.dialect import Traits
from unswayed.base.errors import BadResponseError, MissingKeyError
from unswayed.model.calls import Response
from unswayed.model.items import Message
from unswayed.model.parsing import Ending, ending


def payload(model: str = "claude-haiku-4-5", **fields: object) -> dict[str, object]:
    dialect = AnthropicDialect(model)
    loaded: dict[str, object] = json.loads(dialect.encode(query(**fields).request, dialect.traits))
    return loaded


def decode(**fields: object) -> Response:
    body = {"content": [{"type": "text", "text": "A"}], "stop_reason": "end_turn", **fields}
    return AnthropicDialect("m").decode(json.dumps(body).encode())


def test_a_request_by_hand() -> None:
    assert payload(top_logprobs=5, max_tokens=3) == {
        "model": "claude-haiku-4-5",
        "max_tokens": 3,
        "system": "You judge.",
        "messages": [{"role": "user", "content": "question 0"}],
        "temperature": 0.0,
    }


@pytest.mark.parametrize(
    ("model", "temperature", "thinks"),
    [
        ("claude-3-5-haiku-20241022", True, False),
        ("claude-sonnet-4-20250514", True, False),
        ("claude-haiku-4-5-20251001", True, False),
        ("claude-opus-4-6", True, False),
        ("claude-opus-4-7", False, False),
        ("claude-opus-4-8", False, False),
        ("claude-sonnet-5", False, True),
        ("claude-opus-5-5", False, True),
        ("claude-sonnet-5-20260601", False, True),
    ],
)
def test_generations_are_known_by_name(model: str, temperature: bool, thinks: bool) -> None:
    sent = payload(model, max_tokens=10)
    assert ("temperature" in sent) is temperature
    assert sent["max_tokens"] == (10 + 2048 if thinks else 10)


SCHEMA = '{"type":"object","properties":{"score":{"type":"integer"}}}'


def test_a_schema_is_sent_as_the_format_of_the_output() -> None:
    held = {"format": {"type": "json_schema", "schema": json.loads(SCHEMA)}}
    assert payload(schema=SCHEMA)["output_config"] == held
    assert "output_config" not in payload()


@pytest.mark.parametrize(
    "words",
    [
        "output_config: Extra inputs are not permitted",
        "output_config.format.schema: For 'integer' type, property 'minimum' is not supported",
        "This model does not support structured outputs",
    ],
)
def test_a_refused_schema_is_left_out_from_then_on(words: str) -> None:
    dialect = AnthropicDialect("claude-haiku-4-5")
    asked = query(schema=SCHEMA).request
    learned = dialect.adapt(dialect.traits, words, asked)
    assert learned == replace(dialect.traits, reply_format="text")
    assert "output_config" not in json.loads(dialect.encode(asked, learned))
    assert dialect.adapt(learned, words, asked) is None
    assert dialect.adapt(dialect.traits, words, query().request) is None


def test_headers_carry_version_and_key() -> None:
    assert AnthropicDialect("m").headers(KEY) == {
        "anthropic-version": "2023-06-01",
        "x-api-key": KEY,
    }
    assert AnthropicDialect("m").headers("") == {"anthropic-version": "2023-06-01"}


def test_system_text_stands_apart_and_turns_alternate() -> None:
    chat = (
        Message("system", "S"),
        Message("user", "U"),
        Message("user", "V"),
        Message("assistant", "W"),
        Message("developer", "D"),
        Message("user", "X"),
    )
    assert split_system(chat) == (
        "S\n\nD",
        (Message("user", "U\n\nV"), Message("assistant", "W"), Message("user", "X")),
    )


@given(roles=st.lists(st.sampled_from(["system", "user", "assistant", "tool"]), min_size=1))
def test_every_chat_becomes_one_that_the_api_takes(roles: list[str]) -> None:
    _, chat = split_system(tuple(Message(role, f"t{i}") for i, role in enumerate(roles)))
    assert chat[0].role == "user"
    assert all(a.role != b.role for a, b in itertools.pairwise(chat))
    assert {message.role for message in chat} <= {"user", "assistant"}


def test_an_answer_by_hand() -> None:
    body = {
        "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "text", "text": "<answer>A"},
            {"type": "text", "text": "</answer>"},
        ],
        "stop_reason": "max_tokens",
        "usage": {
            "input_tokens": 10,
            "cache_read_input_tokens": 300,
            "cache_creation_input_tokens": 20,
            "output_tokens": 5,
        },
    }
    assert AnthropicDialect("m").decode(json.dumps(body).encode()) == Response(
        text="<answer>A</answer>",
        reasoning="hm",
        finish_reason="max_tokens",
        input_tokens=330,  # 10 fresh + 300 read + 20 written
        cached_tokens=300,
        output_tokens=5,
        model="claude-x",
    )


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", Ending.COMPLETE),
        ("stop_sequence", Ending.COMPLETE),
        ("max_tokens", Ending.CUT),
        ("model_context_window_exceeded", Ending.BROKEN),
        ("pause_turn", Ending.BROKEN),
        ("refusal", Ending.REFUSED),
        (None, Ending.COMPLETE),
    ],
)
def test_stop_reason_is_kept_as_sent(reason: str | None, expected: Ending) -> None:
    kept = decode(stop_reason=reason).finish_reason
    assert kept == reason or reason is None
    assert ending(kept) is expected


def test_broken_reply_is_failed_attempt() -> None:
    with pytest.raises(BadResponseError, match="error \\(aborted\\)"):
        decode(stop_reason="aborted")


@pytest.mark.parametrize(
    "usage",
    [
        None,
        3,
        {},
        {"input_tokens": -1, "output_tokens": 1},
        {"input_tokens": 2**40, "output_tokens": 1},
        {"input_tokens": 10, "output_tokens": 10**30},
        {"input_tokens": 10, "output_tokens": "1"},
    ],
)
def test_impossible_token_counts_are_unknown_and_answers_kept(usage: object) -> None:
    response = decode(usage=usage)
    assert response.text
    assert not response.usage_known


def test_an_answer_without_text_is_empty() -> None:
    assert decode(content=[]).text == ""


@pytest.mark.parametrize("body", [b"", b"{}", b'{"content": "A"}', b'{"content": [{"text": "A"}]}'])
def test_invalid_message_is_rejected(body: bytes) -> None:
    with pytest.raises(BadResponseError, match="not a message"):
        AnthropicDialect("m").decode(body)


def test_a_refused_temperature_is_left_out_from_then_on() -> None:
    dialect = AnthropicDialect("claude-new")
    request = query().request
    words = "`temperature` is deprecated for this model."
    assert dialect.adapt(dialect.traits, words, request) == Traits(
        temperature=False, seed=False, logprobs=0
    )
    assert dialect.adapt(dialect.traits, "prompt is too long: 300000 tokens", request) is None


@pytest.fixture
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("_no_variables")
def test_opening_without_a_key_says_which() -> None:
    with pytest.raises(MissingKeyError, match="ANTHROPIC_API_KEY"):
        open_backend("anthropic/claude-haiku-4-5")


@pytest.mark.usefixtures("_no_variables")
async def test_a_run_against_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
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
