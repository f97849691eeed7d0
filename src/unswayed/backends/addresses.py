"""Addresses of calls, and the keys that may go to each.

One rule, without exceptions: **a key is sent only to the address it belongs to** - the provider's
own, or the one in the `<SERVICE>_BASE_URL` variable that stands beside the `<SERVICE>_API_KEY`
variable. An address given any other way (`BackendSettings.base_url`, `--base-url`) gets the key
only if its scheme, host and port are those of one of these two; else it is called without a key,
which is what local servers want, and a 401 from it says why no key was sent. Redirects are never
followed, and a key never travels over plain http except to this machine.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

from unswayed.base.errors import MissingKeyError, UsageError
from unswayed.base.redaction import HIDDEN, without_keys

_SHORTEST_HIDDEN = 4  # a shorter "key" is a placeholder, and replacing it would garble messages
_AS_GIVEN = "%/:?@!$&'()*+,;=~[]"  # what is in a URL as it is, quoted characters among it


class Secret:
    """A key that does not show itself: not in repr, str, tracebacks or messages."""

    __slots__ = ("_value",)

    def __init__(self, value: str = "") -> None:
        self._value = value

    def __repr__(self) -> str:
        return "Secret(***)" if self._value else "Secret()"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> str:
        raise TypeError("a key is not pickled")

    def reveal(self) -> str:
        """Return the key itself, for the one header it goes into."""
        return self._value

    def occurs_in(self, text: str) -> bool:
        """Return True if the key stands in a text."""
        return len(self._value) >= _SHORTEST_HIDDEN and self._value in text

    def scrub(self, text: str) -> str:
        """Return the text without this key and without anything that looks like a key."""
        return without_keys(self.hide(text))

    def hide(self, text: str) -> str:
        """Return the text without this key; anything else is left as it is (a model's own words)."""
        return text.replace(self._value, HIDDEN) if self.occurs_in(text) else text


@dataclass(frozen=True, slots=True)
class Service:
    """A provider: the names of its variables and its own address."""

    name: str  # Prefix of the variables, e.g. `OPENAI` for `OPENAI_API_KEY`, `OPENAI_BASE_URL`.
    # the provider's address; None for a service that exists only by its variables
    own_url: str | None = None

    @property
    def key_variable(self) -> str:
        """Name of the variable that holds the key."""
        return f"{self.name}_API_KEY"

    @property
    def url_variable(self) -> str:
        """Name of the variable that holds the address."""
        return f"{self.name}_BASE_URL"

    @classmethod
    def named(cls, service: str) -> Service:
        """Return the service of `openai-api/<service>/<model>`: `together-ai` reads `TOGETHER_AI_...`."""
        return cls(re.sub(r"[^A-Z0-9]", "_", service.upper()), SERVICES.get(service.lower()))


SERVICES: Final = {
    "gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
    "groq": "https://api.groq.com/openai/v1",
    "ollama": "http://localhost:11434/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "together": "https://api.together.xyz/v1",
}
"""Services of `openai-api/` whose address is known; `<SERVICE>_BASE_URL` goes before it."""


@dataclass(frozen=True, slots=True)
class Address:
    """A base address and the key for it."""

    url: str = field(repr=False)  # base URL without a trailing slash; may carry a query (not shown)
    key: Secret  # the key to send; empty for none
    is_loopback: bool  # true if the server runs on this machine
    is_own: bool  # true if this is the provider's own address, whose prices are known
    no_key_reason: str = ""  # why no key is sent although one may be wanted; for the 401 message

    @property
    def shown(self) -> str:
        """The address for messages and records: no query, no user name."""
        return shown_address(self.url)

    def join(self, path: str) -> str:
        """Return the URL of an endpoint below the base, its query kept; what no URL may hold is quoted."""
        parts = urlsplit(self.url)
        path = quote(f"{parts.path.rstrip('/')}/{path}", safe=_AS_GIVEN)
        return urlunsplit(parts._replace(path=path, query=quote(parts.query, safe=_AS_GIVEN)))


def shown_address(url: str) -> str:
    """Return an address without its user name and its query, which may be secrets."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def is_loopback(host: str) -> bool:
    """Return True if a host name is this machine by its name alone; nothing is looked up."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split(url: str, source: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname)
        _ = parts.port  # a bad port shows itself only when it is read
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(
            f"{source} is not an http or https address. Write it like http://localhost:8000/v1."
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"{source} contains a user name or password. Put the key in the service's _API_KEY "
            "variable instead."
        )
    return parts._replace(fragment="")


def _origin(parts: SplitResult) -> tuple[str, str, int]:
    default = 443 if parts.scheme == "https" else 80
    return parts.scheme, (parts.hostname or "").lower(), parts.port or default


def resolve(
    service: Service,
    *,
    base_url: str | None,
    environ: Mapping[str, str],
    model: str,
    needs_key: bool = True,
) -> Address:
    """Return the address of a service and the key that may be sent there.

    `base_url`, from the command line or the settings, goes over all other addresses. Where no call will
    be made a missing key is no error (`needs_key`).
    """
    own = None if service.own_url is None else _split(service.own_url, service.own_url)
    in_environ = environ.get(service.url_variable) or None
    beside_key = None if in_environ is None else _split(in_environ, service.url_variable)
    chosen = _split(base_url, "the base URL") if base_url else (beside_key or own)
    if chosen is None:
        raise MissingKeyError(
            f"{model} has no server address. Set {service.url_variable}, for example to "
            "http://localhost:8000/v1."
        )
    here = is_loopback((chosen.hostname or "").lower())
    trusted = {_origin(parts) for parts in (own, beside_key) if parts is not None}
    key = Secret((environ.get(service.key_variable) or "").strip())
    reason = f"{service.key_variable} is not set"
    if _origin(chosen) not in trusted:
        key = Secret()
        reason = (
            f"the key in {service.key_variable} goes only to its own provider's address. To send a "
            f"key here, set {service.url_variable} to this address, or name a service: "
            "openai-api/<service>/<model> with <SERVICE>_BASE_URL and <SERVICE>_API_KEY"
        )
    elif key and chosen.scheme == "http" and not here:
        raise UsageError(
            f"{model}: {service.key_variable} would be sent unencrypted to "
            f"{chosen.hostname}. Use https, or unset the key if the server needs none."
        )
    elif (
        needs_key
        and not (key or here)
        and chosen.scheme == "https"
        and service.key_variable not in environ
    ):
        raise MissingKeyError(
            f"{model} needs a key: set {service.key_variable} (empty if the server wants none). "
            "A server on this machine needs no key: give its address as base URL."
        )
    if not (key.reveal().isascii() and key.reveal().isprintable()) or " " in key.reveal():
        raise UsageError(
            f"{service.key_variable} contains a space, a line break or a special character. "
            "Copy the key again."
        )
    return Address(
        url=urlunsplit(chosen).rstrip("/"),
        key=key,
        is_loopback=here,
        is_own=own is not None and _origin(chosen) == _origin(own),
        no_key_reason="" if key else reason,
    )
