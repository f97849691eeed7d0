"""Classify a failed attempt from status, body and headers, and decide if another one is worthwhile.

401, 403                      AuthError, fatal
402, 429 "insufficient quota" RateLimitedError, fatal
404, 3xx, 400 about the model BackendError, fatal (wrong model or address: all calls fail alike)
400, 413, 422, other 4xx      BackendError, this call only
408, 409, 425, 5xx            ServerError, again; 500 also where a request is put wrongly
429                           RateLimitedError, again, all calls wait
200 with the wrong body       BadResponseError, again
no connection                 ServerError, again, all calls wait
connection lost               ServerError, again
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus

import msgspec

from unswayed.backends.addresses import Address
from unswayed.base.errors import (
    AuthError,
    BackendError,
    BadResponseError,
    RateLimitedError,
    ServerError,
)

_LONGEST_MESSAGE = 400
_AGAIN = frozenset({408, 409, 425, 429})
_BUSY = frozenset({429, 502, 503, 504, 529})
_NO_MONEY = re.compile(
    r"insufficient[_ ]quota|billing_hard_limit|billing[_ ]not[_ ]active|exceeded your current quota"
    r"|credit balance is too low|insufficient (?:balance|funds|credits)",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(r"\bpinned to\b|model_not_found")


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An HTTP response, read to its end. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class LostError(ServerError):
    """No connection was made, or it ended before the answer was complete."""


class UnreachableError(LostError):
    """No connection came about: refused, unknown host, TLS trouble.

    `hopeless` is True where another attempt cannot go otherwise (a bad certificate).
    """

    def __init__(self, message: str, *, hopeless: bool = False) -> None:
        super().__init__(message)
        self.hopeless = hopeless


class TimedOutError(ServerError):
    """The server took longer than the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A failed attempt."""

    error: type[BackendError]  # class of `unswayed.base.errors`
    message: str  # what happened, without keys
    status: int | None = None  # HTTP status; None if there was no response
    again: bool = False  # whether another attempt may succeed
    fatal: bool = False  # whether every other call would fail as well
    busy: bool = False  # whether all calls should wait and fewer be under way at once
    retry_after_s: float | None = None  # how long it asks to wait
    unreachable: bool = False  # whether no connection came about
    lost: bool = False  # true if no connection came about, or it was lost
    detail: str = ""  # the server's own words, for adapting the request

    @property
    def turned_away(self) -> bool:
        """True if the call itself was not looked at: it says nothing about trying it again."""
        return self.lost or (self.busy and self.status is not None)

    @property
    def reason(self) -> str:
        """Cause in a few words, none of them the server's."""
        if self.status is None:
            return "no connection" if self.lost else "no answer in time"
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return f"HTTP {self.status}"


def retry_after_s(headers: Mapping[str, str], *, wall: float) -> float | None:
    """Return the wait that the server asks for, in seconds, never negative; None without one.

    Reads `retry-after-ms`, and `retry-after` as seconds or as an HTTP date, of which `wall` is now.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000.0
    value = headers.get("retry-after", "")
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        date = parsedate_to_datetime(value)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - wall)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def server_words(body: bytes) -> str:
    """Return the server's own message in an error body, whatever its form; on one line."""
    text = body[:20_000].decode("utf-8", "replace")
    try:
        message = _find_message(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        message = None
    return " ".join((message or text).split())


def shown(text: str, address: Address) -> str:
    """Return the text without keys, then shortened: the other way round, half a key could be left."""
    text = address.key.scrub(text)
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}..."


def _find_message(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return None
    for name in ("error", "message", "detail", "errors"):
        inner = value.get(name)
        if isinstance(inner, dict | str) and inner:
            message = _find_message(inner)
            if message is None:
                continue
            code = inner.get("code") if isinstance(inner, dict) else None
            return f"{message} ({code})" if isinstance(code, str) and code else message
    return None


def fault_of(reply: HttpReply, address: Address, *, model: str, wall: float) -> Fault | None:
    """Return the fault of a reply; None for 200."""
    status = reply.status
    if status == 200:
        return None
    words = shown(server_words(reply.body), address)
    where = f"HTTP {status} from {address.shown}"
    said = f"{where}: {words}" if words else where
    fatal = partial(Fault, status=status, fatal=True)
    if status == 402 or (status in {400, 403, 429} and _NO_MONEY.search(words)):
        hint = "The account has no quota left: check its plan and billing."
        return fatal(error=RateLimitedError, message=f"{said}. {hint}")
    if status in {401, 403}:
        hint = "Check the key and its permissions."
        if address.no_key_reason:
            hint = f"No key was sent: {address.no_key_reason}."
        return fatal(error=AuthError, message=f"{said}. {hint}")
    if status == 404 or (status == 400 and _NO_MODEL.search(words)):
        hint = f"Check the model name ({model}) and the address"
        return fatal(error=BackendError, message=f"{said}. {hint}, which usually ends in /v1.")
    if 300 <= status < 400:
        hint = "redirects are not followed; give the server's final address."
        return fatal(error=BackendError, message=f"{where}: {hint}")
    if status >= 500 or status in _AGAIN:
        return Fault(
            error=RateLimitedError if status == 429 else ServerError,
            message=said,
            status=status,
            again=True,
            busy=status in _BUSY,
            retry_after_s=retry_after_s(reply.headers, wall=wall),
            detail=words if status == 500 else "",
        )
    if 400 <= status < 500:
        return Fault(error=BackendError, message=said, status=status, detail=words)
    return bad_response(f"{where}: not a status this API knows", address, status=status)


def bad_response(message: str, address: Address, *, status: int = 200) -> Fault:
    """Return a fault for an answer that is not what the protocol promises."""
    return Fault(error=BadResponseError, message=shown(message, address), status=status, again=True)


def lost(error: ServerError, address: Address) -> Fault:
    """Return a fault for an attempt that got no response."""
    unreachable = isinstance(error, UnreachableError)
    hopeless = isinstance(error, UnreachableError) and error.hopeless
    return Fault(
        error=ServerError,
        message=shown(str(error), address),
        again=not hopeless,
        fatal=hopeless,
        busy=unreachable or isinstance(error, TimedOutError),
        unreachable=unreachable,
        lost=isinstance(error, LostError),
    )
