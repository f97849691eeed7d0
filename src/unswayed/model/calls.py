"""Calls: the request that is sent and the response that came back, both stored as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from unswayed.model.items import Item, Message
from unswayed.model.presentation import Ask

REPLAYED: Final = "replay/"
"""Beginning of the name of a model that answers from recorded decisions."""


class Request(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything that determines an answer; its hash is the call's address.

    Attributes:
        model: Full model name with revision, e.g. `openai/gpt-4.1-mini` or `hf/path@sha256:...`.
        messages: The rendered chat.
        labels: The answer symbols, in label order.
        max_tokens: Cap on generated tokens.
        temperature: 0 for greedy.
        top_logprobs: How many alternatives per generated token are wanted; 0 for none.
        sample: Index of a repeated sample (only its distinctness matters).
        nonce: Something else the answer depends on (simulated judges and recorded decisions: the item id).
        schema: JSON schema, as text, that the answer is wanted to fit. It is part of the key
            whatever the server makes of it; unset, it is left out, so that the keys of all other
            calls are what they were before there were schemas.
        extra_body: JSON object, as text, that goes into the request as well; unset as `schema` is.
    """

    model: str
    messages: tuple[Message, ...]
    labels: tuple[str, ...]
    max_tokens: int
    temperature: float = 0.0
    top_logprobs: int = 0
    sample: int = 0
    nonce: str | None = None
    schema: str | msgspec.UnsetType = msgspec.UNSET
    extra_body: str | msgspec.UnsetType = msgspec.UNSET


class TokenLogprob(NamedTuple):
    """One alternative at one generated position."""

    token: str
    logprob: float


class Response(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Reply of a model to one request.

    Attributes:
        text: The generated text (the answer; reasoning apart where the provider separates it).
        reasoning: Reasoning text that the provider returned separately.
        top_logprobs: For each generated token, its alternatives, likeliest first; None if the
            backend gives none. `tokens[i]` is the token generated there.
        exact: True if `top_logprobs[0]` lists every label once, computed from the full
            distribution (local models): nothing is censored.
        finish_reason: stop, length, content_filter, refusal, ...
        input_tokens, cached_tokens, output_tokens: As billed; cached is part of input.
        usage_known: False if the server did not say, or said the impossible; such counts are 0.
        cost_usd: Price of this call; None where no price is known. Without known usage, the most
            it can have cost.
        latency_s: Wall time of the successful attempt.
        retries: Attempts before it.
        model: The model the server says it ran.
    """

    text: str
    reasoning: str | None = None
    tokens: tuple[str, ...] | None = None
    top_logprobs: tuple[tuple[TokenLogprob, ...], ...] | None = None
    exact: bool = False
    finish_reason: str = "stop"
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    usage_known: bool = True
    cost_usd: float | None = None
    latency_s: float = 0.0
    retries: int = 0
    model: str | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A call that failed for good: kept in the store's error table, never a verdict.

    Attributes:
        error: Class name from `unswayed.base.errors`.
        message: What happened, without keys or headers.
        status: HTTP status, if any.
        attempts: How often it was tried.
        fatal: True if no further call can succeed (bad key): the run stops.
    """

    error: str
    message: str
    status: int | None = None
    attempts: int = 1
    fatal: bool = False


class Query(NamedTuple):
    """Question for a backend: HTTP backends read only the request, simulated ones the item too.

    `answer_only` says that the prompt asks for a label and nothing else: no place for reasoning.
    """

    item: Item
    ask: Ask
    request: Request
    answer_only: bool = False


_ENCODER = msgspec.json.Encoder(order="deterministic")


def key_of(request: Request) -> bytes:
    """Return the content address of a call: sha256 over the request's canonical JSON, 32 bytes."""
    return hashlib.sha256(_ENCODER.encode(request)).digest()


class Frame(NamedTuple):
    """The canonical JSON of requests that differ in the texts in their last message and their nonce.

    Attributes:
        pieces: From front to back; nothing yet where a text or the nonce goes.
        holes: `holes[k]` = piece that text k fills; the last one is the nonce's.
    """

    pieces: list[bytes]
    holes: tuple[int, ...]

    @classmethod
    def of(
        cls, request: Request, parts: Sequence[str] = ("",), holes: Sequence[int] = (0,)
    ) -> Frame:
        """Return the frame of a request whose last message is empty and whose nonce is None.

        `parts` are the last message with holes; text k fills part `holes[k]`.
        """
        # quotation marks inside texts are escaped, so that these stand in one place only
        head, _, rest = _ENCODER.encode(request).partition(b'""}],"labels":')
        middle, _, tail = rest.partition(b',"nonce":null')
        pieces = [head + b'"', *map(escaped, parts), b'"}],"labels":' + middle + b',"nonce":']
        return cls([*pieces, b"", tail], (*(hole + 1 for hole in holes), len(pieces)))

    def key(self, texts: Sequence[bytes], nonce: str | None) -> bytes:
        """`key_of` the request with these texts, as `escaped` writes them, and this nonce."""
        pieces = self.pieces.copy()
        for hole, text in zip(self.holes, texts, strict=False):
            pieces[hole] = text
        pieces[self.holes[-1]] = _ENCODER.encode(nonce)
        return hashlib.sha256(b"".join(pieces)).digest()


def escaped(text: str) -> bytes:
    """Return a text as it stands between the quotation marks of JSON; half a character is an error."""
    return _ENCODER.encode(text)[1:-1]
