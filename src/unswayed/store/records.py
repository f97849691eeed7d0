"""Rows of the store: requests, responses and failures as bytes, and back."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from unswayed.base.errors import StoreError
from unswayed.model.calls import Failure, Request, Response, TokenLogprob

COMPRESS_FROM: Final = 8192
"""Bytes of JSON from which a record is compressed. zlib level 1 costs about 25 CPU-us per kB and
halves it: too dear for the usual 1-4 kB, worth it for long texts with logprobs per token."""

SEALED: Final = 4
"""Bytes of the check sum before a record."""

LOWEST_LOGPROB: Final = -9999.0
"""What OpenAI's API writes for a probability of zero; JSON has no minus infinity."""


class Recorded(NamedTuple):
    """A committed call."""

    row: int | None  # its number in the file; None where there is no file
    # True if its answer states no verdict, so that a second call may follow (the file's column
    # `truncated`), or may state none: marks of older rules of reading are not trusted
    unread: bool


class RecordedCall(NamedTuple):
    """One committed call."""

    key: bytes
    request: Request
    response: Response
    made_at: float


class Totals(NamedTuple):
    """Sums over everything the run directory has paid for, in the order of the file's columns."""

    calls: int  # answers received; a call that two processes paid for counts twice
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_usd: float
    prompt_bytes: int  # to learn tokens per byte from
    max_tokens: int  # the caps on generated tokens, to learn the used share from

    @classmethod
    def of(cls, calls: Sequence[tuple[bytes, Request, Response]]) -> Totals:
        """Return the totals of some calls."""
        return cls(
            len(calls),
            sum(response.input_tokens for _, _, response in calls),
            sum(response.cached_tokens for _, _, response in calls),
            sum(response.output_tokens for _, _, response in calls),
            sum(response.cost_usd or 0.0 for _, _, response in calls),
            sum(prompt_bytes(request) for _, request, _ in calls),
            sum(request.max_tokens for _, request, _ in calls),
        )


Record = TypeVar("Record", Request, Response, Failure)

_ENCODER = msgspec.json.Encoder()
_RESPONSE = msgspec.json.Decoder(Response)


def prompt_bytes(request: Request) -> int:
    """UTF-8 bytes of the messages and the schema: byte-level tokenisers make no more tokens."""
    total = len(request.schema.encode()) if isinstance(request.schema, str) else 0
    for message in request.messages:
        content = message.content
        total += len(content if content.isascii() else content.encode("utf-8", "surrogatepass"))
    return total


def encode(record: Request | Response | Failure, key: bytes) -> bytes:
    """JSON, compressed where long, behind a check sum; of what is `readable`."""
    if isinstance(record, Response):
        encoded = written(record)[0]
    elif isinstance(record, Failure):
        mended = msgspec.structs.replace(record, message=mended_text(record.message))
        encoded = _ENCODER.encode(mended)
    else:
        encoded = _ENCODER.encode(record)
    # JSON objects begin with "{" and zlib streams with 0x78, so a row says what it is
    return sealed(encoded if len(encoded) < COMPRESS_FROM else zlib.compress(encoded, 1), key)


def readable(response: Response) -> Response:
    """Return the response as it is when it is read again; see `written`."""
    return written(response)[1]


def written(response: Response) -> tuple[bytes, Response]:
    """Return a response as JSON, and as it is when it is read again.

    What JSON cannot hold is replaced rather than losing a paid answer: minus infinity by
    `LOWEST_LOGPROB`, lone surrogates by U+FFFD.
    """
    try:
        encoded = _ENCODER.encode(response)
    except UnicodeEncodeError:
        return written(_mended(response))
    # unset fields are omitted, so a null is either text or a number that JSON does not have
    if b"null" in encoded and response.top_logprobs is not None:
        response = _mended(response)
        encoded = _ENCODER.encode(response)
    return encoded, response


def is_whole(data: bytes, key: bytes) -> bool:
    """Return True if a row is what was written (0.5 us per kB)."""
    return isinstance(data, bytes) and data[:SEALED] == _check_sum(data[SEALED:], key)


def decode(kind: type[Record], data: bytes, key: bytes) -> Record:
    """Read a row, and refuse a damaged one."""
    if not is_whole(data, key):
        raise _damaged(key, "its check sum does not fit")
    return _opened(kind, data, key)


def decode_whole_responses(rows: Sequence[tuple[bytes, bytes]]) -> list[Response]:
    """Return the responses of keys and rows that are `is_whole`, at once; see `decode`."""
    try:
        lines = [_json(data) for _, data in rows]
        responses = _RESPONSE.decode_lines(b"\n".join(lines))
    except (msgspec.MsgspecError, zlib.error, ValueError, RecursionError):
        responses = []
    if len(responses) == len(rows):
        return responses
    return [_opened(Response, data, key) for key, data in rows]  # which says what is wrong


def sealed(data: bytes, key: bytes) -> bytes:
    """Return a record behind a check sum of it and its key: SQLite has none, and a changed byte is another answer."""
    return _check_sum(data, key) + data


def _check_sum(data: bytes, key: bytes) -> bytes:
    return zlib.crc32(data, zlib.crc32(key)).to_bytes(SEALED, "big")


def _opened(kind: type[Record], data: bytes, key: bytes) -> Record:
    try:
        return msgspec.json.decode(_json(data), type=kind)
    except (msgspec.MsgspecError, zlib.error, ValueError, RecursionError) as error:
        raise _damaged(key, error) from error


def _json(data: bytes) -> bytes:
    return data[SEALED:] if data[SEALED : SEALED + 1] == b"{" else zlib.decompress(data[SEALED:])


def _damaged(key: bytes, reason: object) -> StoreError:
    return StoreError(
        f"the recorded call {key.hex()[:16]} is damaged ({reason}). Move calls.sqlite aside "
        "and run the same command to make the calls again."
    )


def mended_text(text: str) -> str:
    """Replace lone surrogates in a text by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _mended(response: Response) -> Response:
    tops, tokens = response.top_logprobs, response.tokens
    return msgspec.structs.replace(
        response,
        text=mended_text(response.text),
        finish_reason=mended_text(response.finish_reason),
        model=None if response.model is None else mended_text(response.model),
        reasoning=None if response.reasoning is None else mended_text(response.reasoning),
        tokens=None if tokens is None else tuple(map(mended_text, tokens)),
        top_logprobs=None if tops is None else tuple(map(_mended_tops, tops)),
    )


def _mended_tops(alternatives: Sequence[TokenLogprob]) -> tuple[TokenLogprob, ...]:
    return tuple(
        TokenLogprob(mended_text(token), logprob if math.isfinite(logprob) else LOWEST_LOGPROB)
        for token, logprob in alternatives
        if not math.isnan(logprob)
    )
