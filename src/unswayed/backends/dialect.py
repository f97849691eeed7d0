"""Differences of the chat APIs: a `Dialect` writes requests and reads answers, `Traits` say
what a model's server accepts, a `Transport` carries bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeVar

import msgspec

from unswayed.backends.faults import HttpReply
from unswayed.base.errors import BadResponseError
from unswayed.model.calls import Request, Response
from unswayed.model.items import Message

Part = TypeVar("Part")
ReplyFormat = Literal["json_schema", "object_schema", "json_object", "text"]

EMPTY: Final = msgspec.Raw(b"{}")
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

THINKING_TOKENS: Final = 2048
"""Tokens added to the cap for models that think first."""

MOST_TOKENS: Final = 2**40
"""Counts from here on are no counts: no model reads or writes so much, no table can hold the sum."""


def token_count(value: object) -> int | None:
    """Return a token count as a server states it; None if it is none."""
    return value if type(value) is int and 0 <= value < MOST_TOKENS else None


def whole(body: bytes, decoder: msgspec.json.Decoder[Part], kind: str) -> Part:
    """Return a body, typed; raise BadResponseError if it is not of that kind."""
    try:
        return decoder.decode(body)
    except UNREADABLE as error:
        raise BadResponseError(f"not {kind}: {error}") from None


def lenient(stated: msgspec.Raw, decoder: msgspec.json.Decoder[Part]) -> Part:
    """Return a part read apart, empty if it is in another shape: an answer is not lost for its usage or logprobs."""
    try:
        return decoder.decode(stated)
    except UNREADABLE:
        return decoder.decode(EMPTY)


def system_apart(messages: tuple[Message, ...]) -> tuple[list[str], list[Message]]:
    """Return the system texts, and the messages that are not the system's."""
    roles = {"system", "developer"}
    return (
        [message.content for message in messages if message.role in roles],
        [message for message in messages if message.role not in roles],
    )


_HELD: Final[dict[ReplyFormat, str]] = {
    "json_schema": "the server takes JSON schemas",
    "object_schema": "the server takes a JSON schema only in an older form",
    "json_object": "the server refuses JSON schemas: any JSON object is asked for",
    "text": "the server refuses JSON schemas: only the prompt describes the form of the answer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Features that a model's server accepts: known by model family, or learned from its refusals."""

    # name of the field that caps generated tokens
    tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    # temperature, seed, system: whether the field, or the role, may be sent
    temperature: bool = True
    seed: bool = True
    system: bool = True
    # most alternatives per token; 0 for none at all, None if no limit is known
    logprobs: int | None = None
    # added to the cap on generated tokens for models that think before they answer and count that
    # against the cap; without it a one-word answer never comes
    thinking_tokens: int = 0
    # The strictest form in which an answer can be held to its schema: by the schema, by the schema
    # beside `json_object` (llama-cpp-python), to any JSON object, or not at all. Like all traits it
    # is no part of a call's key: a server that learns to take schemas is not asked anew for what it
    # has answered.
    reply_format: ReplyFormat = "json_schema"

    def changes(self, since: Traits) -> tuple[str, ...]:
        """Describe what was learned since, for the record of a run."""
        words = []
        if since.temperature and not self.temperature:
            words.append("the server refuses temperature: answers are sampled at its default")
        if since.seed and not self.seed:
            words.append("the server refuses seed: repeated samples are not reproducible")
        if since.system and not self.system:
            words.append(
                "the server refuses the system role: its text is put before the first message"
            )
        if since.logprobs != self.logprobs:
            most = f"at most {self.logprobs} logprobs" if self.logprobs else "no logprobs"
            words.append(f"the server gives {most} per token")
        if since.thinking_tokens < self.thinking_tokens:
            words.append(f"{self.thinking_tokens} tokens per call are added for thinking")
        if since.reply_format != self.reply_format:
            words.append(_HELD[self.reply_format])
        return tuple(words)


def schema_of(request: Request, traits: Traits) -> msgspec.Raw | None:
    """Return the schema that an answer is to be held to; None for none, and where the server takes none."""
    if request.schema is msgspec.UNSET or traits.reply_format == "text":
        return None
    return msgspec.Raw(request.schema.encode())


def merged(body: bytes, request: Request) -> bytes:
    """Return a body with the extra fields of its request."""
    extra = request.extra_body
    return b"%b,%b" % (body[:-1], extra[1:].encode()) if isinstance(extra, str) else body


class Dialect:
    """One API: how a request is written and an answer is read."""

    path: str  # endpoint below the base address
    fields: tuple[str, ...]  # that it sets itself
    traits: Traits  # what is known of the model by its name

    def headers(self, key: str) -> Mapping[str, str]:
        """Headers of every request; `key` may be empty."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def encode(self, request: Request, traits: Traits) -> bytes:
        """Return the body of a request."""
        raise NotImplementedError

    def decode(self, body: bytes) -> Response:
        """Return the response of a 200 body; cost and timing are filled in later.

        Raises:
            BadResponseError: If it is not JSON, or not of the promised shape.
        """
        raise NotImplementedError

    def adapt(self, traits: Traits, words: str, request: Request) -> Traits | None:
        """Adapt the traits to a 400 with these words; None if it is not about them."""
        return None


class Transport(Protocol):
    """Carrier of bodies to the server and back; `HttpTransport` outside of tests."""

    async def post(self, body: bytes) -> HttpReply:
        """Send one request. Raises ServerError if there is no complete response."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...

    def abandon(self) -> None:
        """Let go of connections whose event loop has ended."""
        ...
