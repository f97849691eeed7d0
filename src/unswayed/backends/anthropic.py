"""`anthropic/<model>`: the messages API. System text stands apart; there are no logprobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec

from unswayed.backends import BackendSettings
from unswayed.backends.addresses import Service
from unswayed.backends.client import HttpBackend
from unswayed.backends.dialect import (
    EMPTY,
    THINKING_TOKENS,
    Dialect,
    Traits,
    lenient,
    merged,
    schema_of,
    system_apart,
    token_count,
    whole,
)
from unswayed.base.errors import BadResponseError
from unswayed.model.calls import Request, Response
from unswayed.model.items import Message
from unswayed.model.parsing import is_failed_attempt

ANTHROPIC: Final = Service("ANTHROPIC", "https://api.anthropic.com/v1")
VERSION: Final = "2023-06-01"

_GENERATION = re.compile(r"^claude-[a-z]+-(\d+)(?:-(\d)(?!\d))?")
_FIRST_THAT_THINKS: Final = (5, 0)
_FIRST_WITHOUT_TEMPERATURE: Final = (4, 7)
_NO_TEMPERATURE = re.compile(
    r"temperature.{0,60}(?:deprecated|not support|unsupported|only|may only|must be)"
    r"|(?:unsupported|not support|extra inputs).{0,60}temperature",
    re.IGNORECASE,
)
_NO_REPLY_FORMAT = re.compile(
    r"output[ _](?:config|format)|structured[ _]outputs?|json[ _]?schema|\bgrammar\b", re.IGNORECASE
)


class _Payload(msgspec.Struct, omit_defaults=True):
    model: str
    max_tokens: int
    messages: tuple[Message, ...]
    system: str | None = None
    temperature: float | None = None
    output_config: dict[str, object] | None = None


class _Block(msgspec.Struct):
    type: str
    text: str | None = None
    thinking: str | None = None


class _Usage(msgspec.Struct):
    input_tokens: object = None
    output_tokens: object = None
    cache_read_input_tokens: object = None
    cache_creation_input_tokens: object = None


class _Reply(msgspec.Struct):
    content: list[_Block]
    stop_reason: str | None = None
    usage: msgspec.Raw = EMPTY
    model: str | None = None


_ENCODER = msgspec.json.Encoder()
_REPLY = msgspec.json.Decoder(_Reply)
_USAGE = msgspec.json.Decoder(_Usage)


class AnthropicDialect(Dialect):
    """The messages API."""

    path = "messages"
    fields: tuple[str, ...] = _Payload.__struct_fields__

    def __init__(self, model: str) -> None:
        self._model = model
        version = _GENERATION.match(model)
        generation = (int(version[1]), int(version[2] or 0)) if version else (0, 0)
        self.traits = Traits(
            temperature=generation < _FIRST_WITHOUT_TEMPERATURE,
            seed=False,
            logprobs=0,
            thinking_tokens=THINKING_TOKENS if generation >= _FIRST_THAT_THINKS else 0,
        )

    def headers(self, key: str) -> Mapping[str, str]:
        """Headers of every request."""
        version = {"anthropic-version": VERSION}
        return {**version, "x-api-key": key} if key else version

    def encode(self, request: Request, traits: Traits) -> bytes:
        """Return the body of a request."""
        system, messages = split_system(request.messages)
        payload = _Payload(
            model=self._model,
            max_tokens=request.max_tokens + traits.thinking_tokens,
            messages=messages,
            system=system or None,
            temperature=min(request.temperature, 1.0) if traits.temperature else None,
        )
        if (schema := schema_of(request, traits)) is not None:
            payload.output_config = {"format": {"schema": schema, "type": "json_schema"}}
        return merged(_ENCODER.encode(payload), request)

    def decode(self, body: bytes) -> Response:
        """Return the response of a 200 body; cache reads and writes are part of the input."""
        reply = whole(body, _REPLY, "a message")
        usage = lenient(reply.usage, _USAGE)
        fresh, generated = token_count(usage.input_tokens), token_count(usage.output_tokens)
        cached = token_count(usage.cache_read_input_tokens) or 0
        written = token_count(usage.cache_creation_input_tokens) or 0
        stop = reply.stop_reason or "end_turn"
        if is_failed_attempt(stop):
            raise BadResponseError(f"the answer came with an error ({stop})")
        thinking = "".join(block.thinking or "" for block in reply.content)
        return Response(
            text="".join(block.text or "" for block in reply.content if block.type == "text"),
            reasoning=thinking or None,
            finish_reason=stop,
            input_tokens=(fresh or 0) + cached + written,
            cached_tokens=cached,
            output_tokens=generated or 0,
            usage_known=fresh is not None and generated is not None,
            model=reply.model,
        )

    def adapt(self, traits: Traits, words: str, request: Request) -> Traits | None:
        """Adapt the traits to a 400 with these words; None if it is not about them."""
        if traits.temperature and _NO_TEMPERATURE.search(words):
            return replace(traits, temperature=False)
        if schema_of(request, traits) is not None and _NO_REPLY_FORMAT.search(words):
            return replace(traits, reply_format="text")  # the API knows no form in between
        return None


def split_system(messages: tuple[Message, ...]) -> tuple[str, tuple[Message, ...]]:
    """Return the system text, and a chat that begins with the user and alternates.

    Neighbouring turns of the same role become one, a paragraph apart.
    """
    system, turns = system_apart(messages)
    chat: list[Message] = []
    for message in turns:
        role = "assistant" if message.role == "assistant" else "user"
        if chat and chat[-1].role == role:
            chat[-1] = Message(role, f"{chat[-1].content}\n\n{message.content}")
        else:
            chat.append(Message(role, message.content))
    if not chat:  # the API wants at least one turn
        return "", (Message("user", "\n\n".join(system)),)
    if chat[0].role != "user":
        chat.insert(0, Message("user", "(conversation so far)"))
    return "\n\n".join(system), tuple(chat)


def open_anthropic(model: str, settings: BackendSettings) -> HttpBackend:
    """Claude models: `anthropic/<model>`, with ANTHROPIC_API_KEY.

    `ANTHROPIC_BASE_URL`, or the settings' base URL, names another server of the same API; it ends
    in `/v1`.
    """
    return HttpBackend.open(ANTHROPIC, f"anthropic/{model}", AnthropicDialect(model), settings)
