"""Requests as each server wants them, answers in every shape, and what refusals teach."""

import json
from dataclasses import replace

import msgspec
import pytest
from chat_cases import KEY, JumpClock, backend_at, collect, failures, queries, query
from fake_server import FakeServer, Fault
from hypothesis import given
from hypothesis import strategies as st

from unswayed.backends import BackendSettings, open_backend
from unswayed.backends.dialect import Traits
from unswayed.backends.openai_compatible import OpenAIDialect, without_system
from unswayed.base.errors import BadResponseError, MissingKeyError, UnknownNameError
from unswayed.model.calls import Response, TokenLogprob
from unswayed.model.items import Message
from unswayed.model.parsing import Ending, ending
from unswayed.model.parsing.endings import FAILED

SCHEMA = '{"type":"object","properties":{"score":{"type":"integer"}},"required":["score"]}'


def payload(
    model: str = "m", *, traits: Traits | None = None, **fields: object
) -> dict[str, object]:
    dialect = OpenAIDialect(model)
    body = dialect.encode(query(**fields).request, traits or dialect.traits)
    loaded: dict[str, object] = json.loads(body)
    return loaded


def decode(**fields: object) -> Response:
    """The response of a completion whose first choice has these fields."""
    choice = {"message": {"content": "A"}, "finish_reason": "stop", **fields}
    return OpenAIDialect("m").decode(json.dumps({"choices": [choice]}).encode())


# --- requests ---------------------------------------------------------------------------------


def test_a_greedy_request_by_hand() -> None:
    assert payload(max_tokens=1, top_logprobs=5) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "You judge."},
            {"role": "user", "content": "question 0"},
        ],
        "max_tokens": 1,
        "temperature": 0.0,
        "logprobs": True,
        "top_logprobs": 5,
    }


def test_sampled_requests_carry_a_seed_each_their_own() -> None:
    assert "seed" not in payload()
    assert payload(temperature=0.7)["seed"] == 0
    assert payload(temperature=0.7, sample=3)["seed"] == 3
    assert "seed" not in payload(temperature=0.7, traits=Traits(seed=False))


@pytest.mark.parametrize(
    ("model", "field", "temperature", "thinks"),
    [
        ("gpt-4.1-mini", "max_tokens", True, False),
        ("gpt-4o-2024-11-20", "max_tokens", True, False),
        ("meta-llama/Llama-3.1-8B", "max_tokens", True, False),
        ("gpt-oss-120b", "max_tokens", True, False),
        ("o3", "max_completion_tokens", False, True),
        ("o4-mini-2025-04-16", "max_completion_tokens", False, True),
        ("gpt-5", "max_completion_tokens", False, True),
        ("gpt-5-mini-2025-08-07", "max_completion_tokens", False, True),
        ("openai/gpt-5-nano", "max_completion_tokens", False, True),
        ("gpt-5-chat-latest", "max_completion_tokens", True, False),
        ("gpt-5.1", "max_completion_tokens", True, False),
        ("gpt-6", "max_completion_tokens", True, False),
    ],
)
def test_families_of_models_are_known_by_name(
    model: str, field: str, temperature: bool, thinks: bool
) -> None:
    sent = payload(model, max_tokens=10, top_logprobs=5)
    assert {"max_tokens", "max_completion_tokens"} & set(sent) == {field}
    assert ("temperature" in sent) is temperature
    assert ("logprobs" in sent) is not thinks
    assert sent[field] == (10 + 2048 if thinks else 10)
    assert OpenAIDialect(model).traits.logprobs == (0 if thinks else None)


def test_no_more_logprobs_are_asked_for_than_the_server_gives() -> None:
    assert payload(top_logprobs=20, traits=Traits(logprobs=5))["top_logprobs"] == 5
    assert payload(top_logprobs=3, traits=Traits(logprobs=5))["top_logprobs"] == 3
    assert "top_logprobs" not in payload(top_logprobs=20, traits=Traits(logprobs=0))


def test_a_schema_is_relaxed_for_servers_that_refuse_it() -> None:
    held = {
        "type": "json_schema",
        "json_schema": {"schema": json.loads(SCHEMA), "name": "reply", "strict": True},
    }
    assert payload(schema=SCHEMA)["response_format"] == held
    older = payload(schema=SCHEMA, traits=Traits(reply_format="object_schema"))
    assert older["response_format"] == {"type": "json_object", "schema": json.loads(SCHEMA)}
    loose = payload(schema=SCHEMA, traits=Traits(reply_format="json_object"))
    assert loose["response_format"] == {"type": "json_object"}
    assert "response_format" not in payload(schema=SCHEMA, traits=Traits(reply_format="text"))
    assert "response_format" not in payload()


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
    dialect = OpenAIDialect("m")
    asked = query(schema=SCHEMA).request
    traits: Traits | None = dialect.traits
    for looser in ("object_schema", "json_object", "text"):
        assert traits is not None
        traits = dialect.adapt(traits, words, asked)
        assert traits == replace(dialect.traits, reply_format=looser)
    assert traits is not None
    assert dialect.adapt(traits, words, asked) is None
    assert dialect.adapt(dialect.traits, words, query().request) is None  # it sent no schema


@pytest.mark.parametrize(("words", "changes"), LEARNED, ids=[words[:40] for words, _ in LEARNED])
def test_a_refusal_changes_what_it_is_about_and_nothing_else(
    words: str, changes: dict[str, object]
) -> None:
    dialect = OpenAIDialect("m")
    request = query(top_logprobs=20, schema=SCHEMA).request
    assert dialect.adapt(dialect.traits, words, request) == replace(dialect.traits, **changes)


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
    dialect = OpenAIDialect("m")
    asked = query(temperature=0.0, top_logprobs=0, schema=SCHEMA).request
    changed = dialect.adapt(dialect.traits, words, asked)
    assert changed is None or changed.temperature is False  # the third may be taken for one


@given(
    words=st.lists(st.sampled_from([*NO_SCHEMAS, *(words for words, _ in LEARNED)]), max_size=30)
)
def test_learning_always_comes_to_an_end(words: list[str]) -> None:
    dialect = OpenAIDialect("m")
    request = query(top_logprobs=20, schema=SCHEMA).request
    traits, changes = dialect.traits, 0
    for said in words:
        adapted = dialect.adapt(traits, said, request)
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


# --- answers ----------------------------------------------------------------------------------


def test_an_answer_by_hand() -> None:
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
    assert OpenAIDialect("m").decode(json.dumps(body).encode()) == Response(
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
        OpenAIDialect("m").decode(body)


@pytest.mark.parametrize(
    ("prompt", "completion"),
    [
        (None, 1),
        (12, None),
        (-1, 1),
        (12, -5),
        (2**40, 1),
        (9999999999999999999, 1),
        (10**40, 1),
        (12.5, 1),
        (12, "many"),
        (True, 1),
        ([12], {}),
    ],
)
def test_impossible_token_counts_are_unknown_and_answers_kept(
    prompt: object, completion: object
) -> None:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    body = {"choices": [{"message": {"content": "A"}}], "usage": usage}
    response = OpenAIDialect("m").decode(json.dumps(body).encode())
    assert response.text == "A"
    assert not response.usage_known
    assert {response.input_tokens, response.output_tokens} <= {0, 1, 12}


@pytest.mark.parametrize("usage", [b"null", b"3", b"[]", b'"?"', b'{"prompt_tokens_details": 3}'])
def test_an_unknown_usage_shape_keeps_the_logprobs(usage: bytes) -> None:
    top = b'{"token": "A", "logprob": -0.1}'
    body = b"""{"choices": [{"message": {"content": "A"}, "logprobs": {"content":
        [{"token": "A", "top_logprobs": [%s]}]}}], "usage": %s}"""
    response = OpenAIDialect("m").decode(body % (top, usage))
    assert response.tokens == ("A",)
    assert not response.usage_known


def test_possible_token_counts_are_known() -> None:
    body = b"""{"choices": [{"message": {"content": "A"}}], "usage": {"prompt_tokens": 0,
        "completion_tokens": 1099511627775, "prompt_tokens_details": {"cached_tokens": -3}}}"""
    response = OpenAIDialect("m").decode(body)
    assert response.usage_known
    assert (response.input_tokens, response.output_tokens) == (0, 2**40 - 1)
    assert response.cached_tokens == 0


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (None, Ending.COMPLETE),
        *((word, Ending.COMPLETE) for word in ("stop", "eos")),
        ("length", Ending.CUT),
        *(
            (word, Ending.REFUSED)
            for word in (
                "content_filter",
                "CONTENT_FILTER",
                "contentFilter",
                "SAFETY",
                "PROHIBITED_CONTENT",
            )
        ),
    ],
)
def test_finish_reasons_are_kept_as_they_are(reason: str | None, expected: Ending) -> None:
    kept = decode(finish_reason=reason).finish_reason
    assert kept == (reason or "stop")
    assert ending(kept) is expected


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
        OpenAIDialect("m").decode(body)


@given(body=st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_a_bad_response(body: bytes) -> None:
    try:
        response = OpenAIDialect("m").decode(body)
    except BadResponseError:
        return
    assert isinstance(response, Response)


@given(text=st.text(max_size=100), other=st.text(max_size=100))
def test_text_survives_the_journey(text: str, other: str) -> None:
    body = OpenAIDialect("m").encode(query(text=text).request, Traits())
    assert json.loads(body)["messages"][1]["content"] == text
    assert decode(message={"content": other}).text == other


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


# --- opening ----------------------------------------------------------------------------------


@pytest.fixture
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MY_LAB_API_KEY", "MY_LAB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("_no_variables")
def test_opening_without_a_key_or_address_says_what_to_set() -> None:
    with pytest.raises(MissingKeyError, match="OPENAI_API_KEY"):
        open_backend("openai/gpt-4.1-mini")
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
async def test_a_configured_address_gets_no_openai_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
