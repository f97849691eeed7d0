"""What is sent to each API, what its answers and refusals mean; without a server."""

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from chat_cases import KEY, query
from hypothesis import given
from hypothesis import strategies as st

from unswayed.backends.anthropic import AnthropicDialect, split_system
from unswayed.backends.dialect import Dialect, Traits
from unswayed.backends.openai_compatible import OpenAIDialect, without_system
from unswayed.base.errors import BadResponseError
from unswayed.model.calls import Response, TokenLogprob
from unswayed.model.items import Message
from unswayed.model.parsing.endings import FAILED

SCHEMA = '{"type":"object","properties":{"score":{"type":"integer"}},"required":["score"]}'
OPENAI, ANTHROPIC = OpenAIDialect("m"), AnthropicDialect("claude-haiku-4-5")


def payload(
    dialect: Dialect = OPENAI, *, traits: Traits | None = None, **fields: object
) -> dict[str, Any]:
    body = dialect.encode(query(**fields).request, traits or dialect.traits)
    loaded: dict[str, Any] = json.loads(body)
    return loaded


def decode(dialect: Dialect = OPENAI, /, usage: object = None, **fields: object) -> Response:
    """The response to an answer "A" with these fields, of the first choice or the message."""
    answer: dict[str, object] = {"content": [{"type": "text", "text": "A"}], **fields}
    if isinstance(dialect, OpenAIDialect):
        answer = {"choices": [{"message": {"content": "A"}, "finish_reason": "stop", **fields}]}
    return dialect.decode(json.dumps({**answer, "usage": usage}).encode())


# --- requests ---------------------------------------------------------------------------------


def test_a_greedy_request_by_hand() -> None:
    asked = {"role": "user", "content": "question 0"}
    assert payload(max_tokens=1, top_logprobs=5) == {
        "model": "m",
        "messages": [{"role": "system", "content": "You judge."}, asked],
        "max_tokens": 1,
        "temperature": 0.0,
        "logprobs": True,
        "top_logprobs": 5,
    }
    assert payload(ANTHROPIC, top_logprobs=5, max_tokens=3) == {
        "model": "claude-haiku-4-5",
        "max_tokens": 3,
        "system": "You judge.",
        "messages": [asked],
        "temperature": 0.0,
    }


def test_headers_carry_version_and_key() -> None:
    version = {"anthropic-version": "2023-06-01"}
    assert ANTHROPIC.headers(KEY) == {**version, "x-api-key": KEY}
    assert ANTHROPIC.headers("") == version
    assert OPENAI.headers(KEY) == {"Authorization": f"Bearer {KEY}"}
    assert OPENAI.headers("") == {}


def test_sampled_requests_carry_a_seed_each_their_own() -> None:
    assert "seed" not in payload()
    assert payload(temperature=0.7)["seed"] == 0
    assert payload(temperature=0.7, sample=3)["seed"] == 3
    assert "seed" not in payload(temperature=0.7, traits=Traits(seed=False))


@pytest.mark.parametrize(
    ("model", "cap", "temperature"),
    [
        *((name, {"max_tokens": 10}, True) for name in ("gpt-4.1-mini", "gpt-4o-2024-11-20")),
        *((name, {"max_tokens": 10}, True) for name in ("meta-llama/Llama-3.1-8B", "gpt-oss-120b")),
        *((name, {"max_completion_tokens": 2058}, False) for name in ("o3", "o4-mini-2025-04-16")),
        *(
            (name, {"max_completion_tokens": 2058}, False)
            for name in ("gpt-5", "openai/gpt-5-nano")
        ),
        ("gpt-5-mini-2025-08-07", {"max_completion_tokens": 2058}, False),
        *((name, {"max_completion_tokens": 10}, True) for name in ("gpt-5.1", "gpt-6")),
        ("gpt-5-chat-latest", {"max_completion_tokens": 10}, True),
        *(
            (f"claude-{name}", {"max_tokens": 10}, True)
            for name in ("opus-4-6", "3-5-haiku-20241022")
        ),
        *(
            (f"claude-{name}-4{day}", {"max_tokens": 10}, True)
            for name, day in [("sonnet", "-20250514"), ("haiku", "-5-20251001")]
        ),
        *((f"claude-opus-4-{minor}", {"max_tokens": 10}, False) for minor in (7, 8)),
        *((f"claude-{name}", {"max_tokens": 2058}, False) for name in ("sonnet-5", "opus-5-5")),
        ("claude-sonnet-5-20260601", {"max_tokens": 2058}, False),
    ],
)
def test_families_of_models_are_known_by_name(
    model: str, cap: dict[str, int], temperature: bool
) -> None:
    dialect = (AnthropicDialect if model.startswith("claude") else OpenAIDialect)(model)
    sent = payload(dialect, max_tokens=10, top_logprobs=5)
    assert {name: sent[name] for name in sent if name.startswith("max_")} == cap
    assert ("temperature" in sent) is temperature
    none = 2058 in cap.values() or model.startswith("claude")
    assert dialect.traits.logprobs == (0 if none else None)
    assert ("logprobs" in sent) is not none


def test_no_more_logprobs_are_asked_for_than_the_server_gives() -> None:
    assert payload(top_logprobs=20, traits=Traits(logprobs=5))["top_logprobs"] == 5
    assert payload(top_logprobs=3, traits=Traits(logprobs=5))["top_logprobs"] == 3
    assert "top_logprobs" not in payload(top_logprobs=20, traits=Traits(logprobs=0))


def test_a_schema_is_relaxed_for_servers_that_refuse_it() -> None:
    schema = json.loads(SCHEMA)
    for form, held in {
        "json_schema": {
            "type": "json_schema",
            "json_schema": {"schema": schema, "name": "reply", "strict": True},
        },
        "object_schema": {"type": "json_object", "schema": schema},
        "json_object": {"type": "json_object"},
        "text": None,
    }.items():
        sent = payload(schema=SCHEMA, traits=Traits(reply_format=form))  # type: ignore[arg-type]
        assert sent.get("response_format") == held
    assert "response_format" not in payload()
    held = {"format": {"type": "json_schema", "schema": schema}}
    assert payload(ANTHROPIC, schema=SCHEMA)["output_config"] == held
    assert "output_config" not in payload(ANTHROPIC)


def test_the_system_text_precedes_the_first_user_message() -> None:
    chat = (
        Message("system", "S"),
        Message("assistant", "hello"),
        Message("user", "U"),
        Message("developer", "D"),
        Message("user", "V"),
    )
    assert without_system(chat) == (
        Message("assistant", "hello"),
        Message("user", "S\n\nD\n\nU"),
        Message("user", "V"),
    )
    assert without_system((Message("system", "S"),)) == (Message("user", "S"),)
    assert without_system(chat[1:3]) == chat[1:3]
    assert payload(traits=Traits(system=False))["messages"] == [
        {"role": "user", "content": "You judge.\n\nquestion 0"}
    ]


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


# --- refusals ---------------------------------------------------------------------------------


LEARNED = [
    (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead. (unsupported_parameter)",
        {"tokens_field": "max_completion_tokens"},
    ),
    (
        "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default "
        "(1) value is supported.",
        {"temperature": False, "thinking_tokens": 2048},
    ),
    ("Unrecognized request argument supplied: seed", {"seed": False}),
    ("seed: Extra inputs are not permitted", {"seed": False}),
    ("System role not supported", {"system": False}),
    (
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        {"system": False},
    ),
    ("Invalid value for 'top_logprobs': must be less than or equal to 5.", {"logprobs": 5}),
    ("Requested sample logprobs of 20, which is greater than max allowed: 8", {"logprobs": 8}),
    ("Expected a value <= 10, but got 20 instead for top_logprobs.", {"logprobs": 10}),
    ("20 is greater than the maximum of 1 - 'logprobs'", {"logprobs": 1}),
    ("top_logprobs must be between 0 and 5", {"logprobs": 5}),
    ("'logprobs' is not supported with this model gpt-5-mini", {"logprobs": 0}),
    ("You are not allowed to request logprobs from this model.", {"logprobs": 0}),
    ("logprobs: property 'logprobs' is unsupported", {"logprobs": 0}),
]


NO_SCHEMAS = [  # as real services say it
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model. "
    "Learn more about supported models at the Structured Outputs guide",
    "This response_format type is unavailable now",
    "This model does not support response format `json_schema`.",
    "'response_format.type' must be 'json_object' or 'text'",
    "Invalid schema for response_format 'reply': In context=(), 'additionalProperties' is required",
    "Unknown parameter: 'response_format.json_schema.strict'.",
    "body -> response_format -> json_schema -> strict: Extra inputs are not permitted",
    "Structured outputs are not enabled for this deployment",
    "Failed to parse grammar",
    "1 validation error: {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
    "'msg': \"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}",
]


@pytest.mark.parametrize("words", NO_SCHEMAS)
def test_a_refused_schema_is_asked_for_ever_more_loosely(words: str) -> None:
    asked = query(schema=SCHEMA).request
    traits: Traits | None = OPENAI.traits
    for looser in ("object_schema", "json_object", "text"):
        assert traits is not None
        traits = OPENAI.adapt(traits, words, asked)
        assert traits == replace(OPENAI.traits, reply_format=looser)
    assert traits is not None
    assert OPENAI.adapt(traits, words, asked) is None
    assert OPENAI.adapt(OPENAI.traits, words, query().request) is None  # it sent no schema


@pytest.mark.parametrize(
    "words",
    [
        "output_config: Extra inputs are not permitted",
        "output_config.format.schema: For 'integer' type, property 'minimum' is not supported",
        "This model does not support structured outputs",
    ],
)
def test_a_refused_schema_is_left_out_from_then_on(words: str) -> None:
    asked = query(schema=SCHEMA).request
    learned = ANTHROPIC.adapt(ANTHROPIC.traits, words, asked)
    assert learned == replace(ANTHROPIC.traits, reply_format="text")
    assert "output_config" not in payload(ANTHROPIC, schema=SCHEMA, traits=learned)
    assert ANTHROPIC.adapt(learned, words, asked) is None
    assert ANTHROPIC.adapt(ANTHROPIC.traits, words, query().request) is None


def test_a_refused_temperature_is_left_out_from_then_on() -> None:
    dialect = AnthropicDialect("claude-new")
    request = query().request
    words = "`temperature` is deprecated for this model."
    assert dialect.adapt(dialect.traits, words, request) == Traits(
        temperature=False, seed=False, logprobs=0
    )
    assert dialect.adapt(dialect.traits, "prompt is too long: 300000 tokens", request) is None


@pytest.mark.parametrize(("words", "changes"), LEARNED, ids=[words[:40] for words, _ in LEARNED])
def test_a_refusal_changes_what_it_is_about_and_nothing_else(
    words: str, changes: dict[str, object]
) -> None:
    request = query(top_logprobs=20, schema=SCHEMA).request
    assert OPENAI.adapt(OPENAI.traits, words, request) == replace(OPENAI.traits, **changes)


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens, you requested 9000.",
        "The response was filtered due to the prompt triggering a content policy.",
        "Invalid prompt: the temperature of the reactor was 300 degrees",
        "messages: roles must alternate between user and assistant",
        "",
    ],
)
def test_other_refusals_change_nothing(words: str) -> None:
    asked = query(temperature=0.0, top_logprobs=0, schema=SCHEMA).request
    changed = OPENAI.adapt(OPENAI.traits, words, asked)
    assert changed is None or changed.temperature is False  # the third may be taken for one


@given(
    words=st.lists(st.sampled_from([*NO_SCHEMAS, *(words for words, _ in LEARNED)]), max_size=30)
)
def test_learning_always_comes_to_an_end(words: list[str]) -> None:
    request = query(top_logprobs=20, schema=SCHEMA).request
    traits, changes = OPENAI.traits, 0
    for said in words:
        adapted = OPENAI.adapt(traits, said, request)
        if adapted is not None and adapted != traits:
            traits, changes = adapted, changes + 1
    assert changes <= 12


def test_what_was_learned_is_told_in_words() -> None:
    before = Traits(logprobs=20)
    after = Traits(
        temperature=False,
        seed=False,
        system=False,
        logprobs=5,
        thinking_tokens=9,
        reply_format="text",
        tokens_field="max_completion_tokens",
    )
    told = " / ".join(after.changes(before))
    for word in ("temperature", "seed", "system", "at most 5 logprobs", "9 tokens", "schemas"):
        assert word in told
    assert len(after.changes(before)) == 6  # the name of a field changes no answer
    assert "JSON object" in replace(before, reply_format="json_object").changes(before)[0]
    assert "no logprobs" in Traits(logprobs=0).changes(before)[0]
    assert before.changes(before) == ()


# --- answers ----------------------------------------------------------------------------------


def test_a_completion_by_hand() -> None:
    body = {
        "id": "x",
        "model": "m-2025",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "A", "reasoning_content": "because"},
                "finish_reason": "length",
                "logprobs": {
                    "content": [
                        {
                            "token": "A",
                            "logprob": -0.1,
                            "bytes": [65],
                            "top_logprobs": [
                                {"token": "B", "logprob": -2.5, "bytes": None},
                                {"token": "A", "logprob": -0.1, "bytes": None},
                                {"token": "C", "logprob": None, "bytes": None},
                            ],
                        }
                    ]
                },
            }
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 64},
        },
    }
    assert OPENAI.decode(json.dumps(body).encode()) == Response(
        text="A",
        reasoning="because",
        tokens=("A",),
        top_logprobs=((TokenLogprob("A", -0.1), TokenLogprob("B", -2.5)),),
        finish_reason="length",
        input_tokens=100,
        cached_tokens=64,
        output_tokens=7,
        model="m-2025",
    )


def test_a_message_by_hand() -> None:
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
    assert ANTHROPIC.decode(json.dumps(body).encode()) == Response(
        text="<answer>A</answer>",
        reasoning="hm",
        finish_reason="max_tokens",
        input_tokens=330,  # 10 fresh + 300 read + 20 written
        cached_tokens=300,
        output_tokens=5,
        model="claude-x",
    )


SORRY = "I cannot judge this."


@pytest.mark.parametrize(
    ("message", "text", "reason"),
    [
        ({"content": None}, "", "stop"),
        ({}, "", "stop"),
        ({"content": []}, "", "stop"),
        ({"content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]}, "AB", "stop"),
        (
            {"content": [{"type": "thinking", "thinking": [1]}, {"type": "text", "text": "A"}]},
            "A",
            "stop",
        ),
        *(
            ({"content": [{"type": kind, "text": "A"}, {"type": "text", "text": "B"}]}, "B", "stop")
            for kind in ("reasoning", "thinking", "tool_result")
        ),
        ({"content": "A", "reasoning": None, "tool_calls": None}, "A", "stop"),
        ({"content": None, "refusal": SORRY}, SORRY, "refusal"),
        ({"content": "A", "refusal": SORRY}, "A", "refusal"),
        (
            {"content": [{"type": "text", "text": "A"}, {"type": "refusal", "refusal": SORRY}]},
            "A",
            "refusal",
        ),
    ],
)
def test_content_in_every_shape(message: dict[str, object], text: str, reason: str) -> None:
    response = decode(message=message)
    assert (response.text, response.finish_reason) == (text, reason)


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices": [{"message": {"content": "A"}}], "error": {"message": "upstream broke"}}',
        b'{"choices": [{"message": {"content": "A"}}], "error": "upstream broke"}',
        *(
            b'{"choices": [{"message": {"content": "A"}, "finish_reason": "%s"}]}' % word.encode()
            for word in (*FAILED.split(), "Network-Error")
        ),
    ],
)
def test_an_answer_with_an_error_beside_it_is_a_failure(body: bytes) -> None:
    with pytest.raises(BadResponseError, match="came with an error"):
        OPENAI.decode(body)


@pytest.mark.parametrize("dialect", [OPENAI, ANTHROPIC], ids=["completion", "message"])
@pytest.mark.parametrize(
    ("read", "written"),
    [
        *((None, 1), (12, None), (-1, 1), (12, -5), (2**40, 1), (9999999999999999999, 1)),
        *((10**40, 1), (12, 10**30), (12.5, 1), (12, "many"), (12, "1"), (True, 1), ([12], {})),
        *(("null", None), ("3", None), ("{}", None)),
    ],
)
def test_impossible_token_counts_are_unknown_and_answers_kept(
    read: object, written: object, dialect: Dialect
) -> None:
    names = ("prompt_tokens", "completion_tokens")
    if dialect is ANTHROPIC:
        names = ("input_tokens", "output_tokens")
    usage = dict(zip(names, (read, written), strict=True))
    response = decode(dialect, usage=json.loads(read) if isinstance(read, str) else usage)
    assert response.text == "A"
    assert not response.usage_known
    assert {response.input_tokens, response.output_tokens} <= {0, 1, 12}


@pytest.mark.parametrize("usage", [b"null", b"3", b"[]", b'"?"', b'{"prompt_tokens_details": 3}'])
def test_an_unknown_usage_shape_keeps_the_logprobs(usage: bytes) -> None:
    top = b'{"token": "A", "logprob": -0.1}'
    body = b"""{"choices": [{"message": {"content": "A"}, "logprobs": {"content":
        [{"token": "A", "top_logprobs": [%s]}]}}], "usage": %s}"""
    response = OPENAI.decode(body % (top, usage))
    assert response.tokens == ("A",)
    assert not response.usage_known


def test_possible_token_counts_are_known() -> None:
    body = b"""{"choices": [{"message": {"content": "A"}}], "usage": {"prompt_tokens": 0,
        "completion_tokens": 1099511627775, "prompt_tokens_details": {"cached_tokens": -3}}}"""
    response = OPENAI.decode(body)
    assert response.usage_known
    assert (response.input_tokens, response.output_tokens) == (0, 2**40 - 1)
    assert response.cached_tokens == 0


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {"content": None},
        {"content": []},
        {"content": [{"token": "A", "logprob": -0.1}]},
        {"tokens": ["A"], "token_logprobs": [-0.1]},
        {"content": "what"},
        [1, 2],
        3,
    ],
)
def test_missing_or_strange_logprobs_keep_the_answer(logprobs: object) -> None:
    response = decode(logprobs=logprobs)
    assert response.text == "A"
    assert response.top_logprobs is None
    assert response.tokens is None


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"null", b"[]", b'"A"', b"{}"),
        b'{"choices": null}',
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": 3}}]}',
        b'{"error": {"message": "overloaded"}}',
        b"\xff\xfe",
    ],
)
def test_invalid_completion_is_rejected(body: bytes) -> None:
    with pytest.raises(BadResponseError, match="not a chat completion"):
        OPENAI.decode(body)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"content": "A"}', b'{"content": [{"text": "A"}]}'])
def test_invalid_message_is_rejected(body: bytes) -> None:
    with pytest.raises(BadResponseError, match="not a message"):
        ANTHROPIC.decode(body)


def test_an_answer_without_text_is_empty() -> None:
    assert decode(ANTHROPIC, content=[]).text == ""


@given(body=st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_a_bad_response(body: bytes) -> None:
    try:
        response = OPENAI.decode(body)
    except BadResponseError:
        return
    assert isinstance(response, Response)


@given(text=st.text(max_size=100), other=st.text(max_size=100))
def test_text_survives_the_journey(text: str, other: str) -> None:
    body = OPENAI.encode(query(text=text).request, Traits())
    assert json.loads(body)["messages"][1]["content"] == text
    assert decode(message={"content": other}).text == other
