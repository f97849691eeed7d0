"""`openai/<model>` and `openai-api/<service>/<model>`: any server that speaks chat completions.

OpenAI itself, and vLLM, SGLang, llama.cpp, Ollama, gateways. What a model accepts is known by its
family where the name says it, and else learned from its refusals (see `OpenAIDialect.adapt`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from typing import Final

import msgspec

from unswayed.backends import BackendSettings
from unswayed.backends.addresses import Service
from unswayed.backends.client import HttpBackend
from unswayed.backends.dialect import (
    EMPTY,
    THINKING_TOKENS,
    Dialect,
    ReplyFormat,
    Traits,
    lenient,
    merged,
    schema_of,
    system_apart,
    token_count,
    whole,
)
from unswayed.backends.faults import server_words
from unswayed.base.errors import BadResponseError, UnknownNameError
from unswayed.model.calls import Request, Response, TokenLogprob
from unswayed.model.items import Message
from unswayed.model.parsing import is_failed_attempt

OPENAI: Final = Service("OPENAI", "https://api.openai.com/v1")

_THINKS = re.compile(r"^(?:o\d|gpt-5(?:-(?:mini|nano|pro))?(?:-\d{4}-\d{2}-\d{2})?$)")
"""Families that always think, refuse a temperature and give no logprobs."""
_NEW_CAP = re.compile(r"^(?:o\d|gpt-(?:[5-9]|\d\d))")
"""Families that know the cap on generated tokens by its new name only."""

_REFUSED = r"not supported?|n.t support|unsupported|deprecated|not allowed|not permitted|invalid"
_REFUSED += r"|unrecognized|unknown|unexpected|only the default|extra inputs|not available"
_FIELD = r"(?:\b(?:{refused})\b.{{0,80}}\b{name}\b|\b{name}\b.{{0,80}}(?:{refused}))"
_CEILING = re.compile(
    r"(?:<=|less than or equal to|at most|up to|maximum(?: value)?(?: of| is| allowed:?)?"
    r"|max(?:imum)? allowed:?|between \d+ and|no more than|cannot exceed|not exceed)\s*(\d+)",
    re.IGNORECASE,
)


def _refuses(name: str) -> re.Pattern[str]:
    return re.compile(_FIELD.format(refused=_REFUSED, name=name), re.IGNORECASE)


_NO_MAX_TOKENS = _refuses("max_tokens")
_NO_MAX_COMPLETION_TOKENS = _refuses("max_completion_tokens")
_NO_TEMPERATURE = _refuses("temperature")
_NO_SEED = _refuses("seed")
_NO_LOGPROBS = _refuses(r"(?:top_)?logprobs?")
_NO_SYSTEM = re.compile(
    r"system['\"`]? (?:role|message)s?.{0,40}(?:not support|unsupported)"
    r"|(?:not support|unsupported|invalid).{0,80}['\"`]system['\"`]",
    re.IGNORECASE,
)
# Only a request with a schema is asked about, and little else in it has these names: no word of
# refusal is needed beside them ("'response_format.type' must be 'text'", "... is unavailable").
_NO_REPLY_FORMAT = re.compile(
    r"response[ _]?format|json[ _]?(?:schema|object|mode)|structured[ _]outputs?"
    r"|guided[ _](?:json|decoding)|\bgrammar\b|['\"`.]strict\b",
    re.IGNORECASE,
)
_LOOSER: Final[dict[ReplyFormat, ReplyFormat]] = {
    "json_schema": "object_schema",
    "object_schema": "json_object",
    "json_object": "text",
}


class _Payload(msgspec.Struct, omit_defaults=True):
    model: str
    messages: tuple[Message, ...]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    logprobs: bool = False
    top_logprobs: int | None = None
    response_format: dict[str, object] | None = None


class _Part(msgspec.Struct, gc=False):
    type: str = "text"
    text: str | None = None
    refusal: str | None = None


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _InputDetails(msgspec.Struct, gc=False):
    cached_tokens: object = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: object = None
    completion_tokens: object = None
    prompt_tokens_details: _InputDetails | None = None
    prompt_cache_hit_tokens: object = None


class _Alternative(msgspec.Struct, gc=False):
    token: str
    logprob: float | None = None


class _Generated(msgspec.Struct, gc=False):
    token: str
    logprob: float | None = None
    top_logprobs: list[_Alternative] = []


class _Logprobs(msgspec.Struct, gc=False):
    content: list[_Generated] | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: msgspec.Raw = EMPTY


class _Completion(msgspec.Struct):
    choices: list[_Choice] = []
    usage: msgspec.Raw = EMPTY
    error: object = None
    model: str | None = None


_ENCODER = msgspec.json.Encoder()
_COMPLETION = msgspec.json.Decoder(_Completion)
_LOGPROBS = msgspec.json.Decoder(_Logprobs)
_USAGE = msgspec.json.Decoder(_Usage)
_SAID: Final = frozenset(("text", "output_text"))
"""Types of the parts that are the answer; others are reasoning, calls of tools, images."""


class OpenAIDialect(Dialect):
    """Chat completions."""

    path = "chat/completions"
    fields: tuple[str, ...] = _Payload.__struct_fields__

    def __init__(self, model: str) -> None:
        self._model = model
        family = model.rpartition("/")[2]
        thinks = _THINKS.match(family) is not None
        self.traits = Traits(
            tokens_field="max_completion_tokens" if _NEW_CAP.match(family) else "max_tokens",
            temperature=not thinks,
            logprobs=0 if thinks else None,
            thinking_tokens=THINKING_TOKENS if thinks else 0,
        )

    def encode(self, request: Request, traits: Traits) -> bytes:
        """Return the body of a request.

        `seed` goes with sampled answers only: it keeps repeated samples of one prompt apart where
        a server or a gateway caches equal requests.
        """
        logprobs = request.top_logprobs
        if traits.logprobs is not None:
            logprobs = min(logprobs, traits.logprobs)
        sampled = request.temperature > 0 or request.sample > 0
        payload = _Payload(
            model=self._model,
            messages=request.messages if traits.system else without_system(request.messages),
            temperature=request.temperature if traits.temperature else None,
            seed=request.sample if sampled and traits.seed else None,
            logprobs=logprobs > 0,
            top_logprobs=logprobs or None,
            response_format=_reply_format(request, traits),
        )
        setattr(payload, traits.tokens_field, request.max_tokens + traits.thinking_tokens)
        return merged(_ENCODER.encode(payload), request)

    def decode(self, body: bytes) -> Response:
        """Return the response of a 200 body."""
        completion = whole(body, _COMPLETION, "a chat completion")
        if not completion.choices:
            raise BadResponseError(f"not a chat completion: no choices; {server_words(body)}")
        choice = completion.choices[0]
        finish = choice.finish_reason or "stop"
        if completion.error or is_failed_attempt(finish):
            words = f": {server_words(body)}" if completion.error else ""
            raise BadResponseError(f"the answer came with an error ({finish}){words}")
        message = choice.message
        content = message.content
        parts = content if isinstance(content, list) else []
        said = [part.text or "" for part in parts if part.type in _SAID]
        text = content if isinstance(content, str) else "".join(said)
        if refusal := message.refusal or "".join([part.refusal or "" for part in parts]):
            text, finish = text or refusal, "refusal"
        tokens, tops = _read_logprobs(lenient(choice.logprobs, _LOGPROBS))
        usage = lenient(completion.usage, _USAGE)
        details = usage.prompt_tokens_details
        read, written = token_count(usage.prompt_tokens), token_count(usage.completion_tokens)
        cached = token_count(details.cached_tokens if details else usage.prompt_cache_hit_tokens)
        return Response(
            text=text,
            reasoning=message.reasoning_content or message.reasoning or None,
            tokens=tokens,
            top_logprobs=tops,
            finish_reason=finish,
            input_tokens=read or 0,
            cached_tokens=cached or 0,
            output_tokens=written or 0,
            usage_known=read is not None and written is not None,
            model=completion.model,
        )

    def adapt(self, traits: Traits, words: str, request: Request) -> Traits | None:
        """Adapt the traits to a 400 with these words; None if it is not about them."""
        if traits.tokens_field == "max_tokens" and _NO_MAX_TOKENS.search(words):
            return replace(traits, tokens_field="max_completion_tokens")
        if (
            traits.tokens_field == "max_completion_tokens"
            and traits == self.traits  # once there, never back and forth
            and _NO_MAX_COMPLETION_TOKENS.search(words)
        ):
            return replace(traits, tokens_field="max_tokens")
        if traits.temperature and _NO_TEMPERATURE.search(words):
            # Models that refuse a temperature are those that think before they answer.
            return replace(traits, temperature=False, thinking_tokens=THINKING_TOKENS)
        if traits.seed and _NO_SEED.search(words):
            return replace(traits, seed=False)
        if traits.system and _NO_SYSTEM.search(words):
            return replace(traits, system=False)
        if traits.logprobs != 0 and request.top_logprobs and "logprob" in words.lower():
            asked = min(request.top_logprobs, traits.logprobs or request.top_logprobs)
            ceilings = [int(number) for number in _CEILING.findall(words)]
            lower = [number for number in ceilings if 0 < number < asked]
            if lower:
                return replace(traits, logprobs=min(lower))
            if ceilings or _NO_LOGPROBS.search(words):
                return replace(traits, logprobs=0)
        if schema_of(request, traits) is not None and _NO_REPLY_FORMAT.search(words):
            return replace(traits, reply_format=_LOOSER[traits.reply_format])
        return None


def _reply_format(request: Request, traits: Traits) -> dict[str, object] | None:
    """Return the form that the answer is held to, the schema as it stands in the request."""
    schema = schema_of(request, traits)
    if schema is None:
        return None
    if traits.reply_format == "json_schema":
        held = {"schema": schema, "name": "reply", "strict": True}
        return {"type": "json_schema", "json_schema": held}
    loose: dict[str, object] = {"type": "json_object"}
    return loose if traits.reply_format == "json_object" else {**loose, "schema": schema}


def _read_logprobs(
    logprobs: _Logprobs,
) -> tuple[tuple[str, ...] | None, tuple[tuple[TokenLogprob, ...], ...] | None]:
    """Read generated tokens and their alternatives, likeliest first; (None, None) if there are none."""
    content = logprobs.content
    if not content or not any(generated.top_logprobs for generated in content):
        return None, None
    return (
        tuple([generated.token for generated in content]),
        tuple([_ranked(generated) for generated in content]),
    )


_BY_LOGPROB: Final[Callable[[TokenLogprob], float]] = itemgetter(1)


def _ranked(generated: _Generated) -> tuple[TokenLogprob, ...]:
    """Rank the alternatives; add the generated token if they lack it and its log-probability is known."""
    given = generated.top_logprobs
    ranked = [TokenLogprob(a.token, a.logprob) for a in given if a.logprob is not None]
    if generated.logprob is not None and all(top[0] != generated.token for top in ranked):
        ranked.append(TokenLogprob(generated.token, generated.logprob))
    ranked.sort(key=_BY_LOGPROB, reverse=True)
    return tuple(ranked)


def without_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the chat without system messages: their text goes before the first user message."""
    system, chat = system_apart(messages)
    if not system:
        return messages
    first = next((i for i, m in enumerate(chat) if m.role == "user"), None)
    if first is None:
        return (Message("user", "\n\n".join(system)), *chat)
    chat[first] = Message("user", "\n\n".join([*system, chat[first].content]))
    return tuple(chat)


def open_openai(model: str, settings: BackendSettings) -> HttpBackend:
    """OpenAI models: `openai/<model>`, with OPENAI_API_KEY (and OPENAI_BASE_URL)."""
    return HttpBackend.open(OPENAI, f"openai/{model}", OpenAIDialect(model), settings)


def open_service(model: str, settings: BackendSettings) -> HttpBackend:
    """Any OpenAI-compatible server: `openai-api/<service>/<model>`, with <SERVICE>_BASE_URL, _API_KEY."""
    service, _, name = model.partition("/")
    if not service or not name:
        raise UnknownNameError(
            f"model 'openai-api/{model}' has no service: write openai-api/<service>/<model>, with "
            "<SERVICE>_BASE_URL and <SERVICE>_API_KEY in the environment."
        )
    dialect = OpenAIDialect(name)
    return HttpBackend.open(Service.named(service), f"openai-api/{model}", dialect, settings)
