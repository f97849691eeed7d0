"""The wire: one aiohttp session per event loop, no cookies, no redirects, bounded bodies.

Bodies are decompressed here and not by aiohttp, which would unpack a few megabytes to gigabytes
before anybody could count them.

aiohttp is imported with this module, which is loaded when the first call is made.
"""

from __future__ import annotations

import contextlib
import ssl
import zlib
from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from unswayed.backends.addresses import Address
from unswayed.backends.faults import HttpReply, LostError, TimedOutError, UnreachableError
from unswayed.base.errors import ServerError, UsageError
from unswayed.base.version import VERSION

LARGEST_BODY = 4 * 1024 * 1024
"""Bytes of an answer, decompressed; the longest that are asked for take a tenth of it."""
LARGEST_ERROR = 64 * 1024
"""Bytes of an error page that are read; the rest is left."""
_CONNECT_S = 15.0
_IDLE_S = 60.0
"""How long a connection is kept without a call: a judge that is asked now and then opens it once."""
_KEPT_HEADERS = ("retry-after", "retry-after-ms")
_ZLIB = frozenset({"gzip", "x-gzip", "deflate"})
_EITHER_HEADER = 32 + zlib.MAX_WBITS
"""Tells zlib to take gzip and zlib streams alike."""


class HttpTransport:
    """Posts JSON to one endpoint; its headers are the only place where the key is in the clear."""

    def __init__(
        self,
        address: Address,
        path: str,
        headers: Mapping[str, str],
        *,
        connections: int,
        timeout_s: float,
    ) -> None:
        url = address.join(path)
        self._url = URL(url, encoded=True)
        self._shown = address.shown
        self._timeout_s = timeout_s
        self._proxy = None if address.is_loopback else proxy_for(url)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=connections, ttl_dns_cache=300, keepalive_timeout=_IDLE_S
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(_CONNECT_S, timeout_s)),
            headers={
                "Accept-Encoding": "gzip",
                "Content-Type": "application/json",
                "User-Agent": f"unswayed/{VERSION}",
                **headers,
            },
            auto_decompress=False,
            trust_env=False,  # would also read passwords from ~/.netrc
        )

    async def post(self, body: bytes) -> HttpReply:
        """Send one request and read the whole response.

        Raises:
            ServerError: If there was no complete response; never carries headers or keys.
        """
        try:
            async with self._session.post(
                self._url, data=body, allow_redirects=False, proxy=self._proxy
            ) as response:
                if response.status == 200:
                    return HttpReply(200, {}, await self._answer(response))
                words = await self._error(response)
                kept = {
                    name: response.headers[name]
                    for name in _KEPT_HEADERS
                    if name in response.headers
                }
                return HttpReply(response.status, kept, words)
        except TimeoutError:
            raise TimedOutError(
                f"{self._shown} did not answer within {self._timeout_s:g} s"
            ) from None
        except (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError):
            raise UnreachableError(
                f"{self._shown}: its certificate cannot be verified", hopeless=True
            ) from None
        except aiohttp.ClientHttpProxyError as error:
            raise UnreachableError(
                f"the proxy does not connect to {self._shown}: HTTP {error.status}"
            ) from None
        except aiohttp.ClientProxyConnectionError:
            raise UnreachableError(
                f"cannot connect to the proxy that the environment names for {self._shown}"
            ) from None
        except aiohttp.ClientConnectorError as error:
            reason = error.strerror or type(error.os_error).__name__
            raise UnreachableError(f"cannot connect to {self._shown}: {reason}") from None
        except aiohttp.ClientPayloadError:
            raise LostError(f"{self._shown} broke off in the middle of its answer") from None
        except aiohttp.ServerDisconnectedError:
            raise LostError(f"{self._shown} closed the connection without an answer") from None
        except (aiohttp.ClientOSError, ConnectionError):
            raise LostError(f"the connection to {self._shown} was reset") from None
        except aiohttp.ClientError as error:
            # The text of these errors can hold headers: only their name is told.
            raise ServerError(
                f"{self._shown}: not an HTTP answer ({type(error).__name__})"
            ) from None

    async def _answer(self, response: aiohttp.ClientResponse) -> bytes:
        body = await self._body(response, LARGEST_BODY)
        if len(body) > LARGEST_BODY:
            raise ServerError(
                f"{self._shown} sent an answer that is too large: over {LARGEST_BODY:,} bytes"
            )
        return body

    async def _error(self, response: aiohttp.ClientResponse) -> bytes:
        try:
            return (await self._body(response, LARGEST_ERROR))[:LARGEST_ERROR]
        except (ServerError, aiohttp.ClientPayloadError):
            return b""  # the status says enough

    async def _body(self, response: aiohttp.ClientResponse, most: int) -> bytes:
        """Return the body, decompressed bit by bit; cut off soon after `most` bytes."""
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding in {"", "identity"}:
            return await plain_body(response, most)
        if encoding not in _ZLIB:
            raise ServerError(
                f"{self._shown} sent an answer compressed as {encoding!r}; only gzip was asked for"
            )
        try:
            return await _inflated(response, most)
        except (zlib.error, EOFError):
            raise ServerError(f"{self._shown} sent an incomplete answer in {encoding}") from None

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    def abandon(self) -> None:
        """Let go of connections whose event loop has ended."""
        connector = self._session.connector
        self._session.detach()
        if connector is not None:
            # With its loop closed there is nothing to wait for: one step ends it.
            with contextlib.suppress(StopIteration, RuntimeError):
                connector.close().__await__().send(None)


async def plain_body(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Return a body as it was sent; cut off soon after `most` bytes."""
    received = bytearray()
    async for chunk in response.content.iter_any():
        received += chunk
        if len(received) > most:
            break
    return bytes(received)


async def _inflated(response: aiohttp.ClientResponse, most: int) -> bytes:
    inflate = zlib.decompressobj(_EITHER_HEADER)
    received = bytearray()
    async for chunk in response.content.iter_any():
        if not inflate.eof:
            received += inflate.decompress(chunk, most + 1 - len(received))
        if len(received) > most:
            return bytes(received)
    if not inflate.eof:
        raise EOFError
    return bytes(received)


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for an address."""
    parts = urlsplit(url)
    named = getproxies().get(parts.scheme)
    if not named or proxy_bypass(parts.netloc):
        return None
    kind, is_whole, _ = named.partition("://")
    if is_whole and kind.lower() not in {"http", "https"}:
        raise UsageError(
            f"the environment names a {kind} proxy for {parts.scheme}; only http and https proxies "
            f"are supported. Set {parts.scheme}_proxy to one, or unset it."
        )
    return named if is_whole else f"http://{named}"
