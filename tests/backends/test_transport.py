"""The wire against servers that send what nobody asked for: bounded, and said."""

import asyncio
import contextlib
import gzip
import socket
import ssl
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from reliability.faulty_server import bomb
from unswayed.backends import transport
from unswayed.backends.addresses import Address, Secret
from unswayed.backends.faults import HttpReply, TimedOutError, UnreachableError
from unswayed.backends.transport import LARGEST_ERROR, HttpTransport
from unswayed.base.errors import ServerError, UsageError

BODY = b'{"choices": []}'
PACKED = gzip.compress(BODY, mtime=0)  # the same bytes in every process, for the tests' names


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def wire_to(url: str, *, is_loopback: bool = True, timeout_s: float = 10) -> HttpTransport:
    address = Address(url=url, key=Secret(), is_loopback=is_loopback, is_own=False)
    return HttpTransport(address, "x", {}, connections=1, timeout_s=timeout_s)


@contextlib.asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server."""
    server = await asyncio.start_server(handler, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@contextlib.asynccontextmanager
async def wired(handler: Handler, *, timeout_s: float = 10) -> AsyncIterator[HttpTransport]:
    """A wire to a server."""
    async with serving(handler) as port:
        wire = wire_to(f"http://127.0.0.1:{port}/v1", timeout_s=timeout_s)
        try:
            yield wire
        finally:
            await wire.close()


async def post_to(url: str, *, is_loopback: bool = True, times: int = 1) -> list[HttpReply]:
    wire = wire_to(url, is_loopback=is_loopback)
    try:
        return [await wire.post(b"{}") for _ in range(times)]
    finally:
        await wire.close()


async def asked(answer: bytes) -> tuple[HttpReply, bytes]:
    """What comes of one request to a server that sends these bytes, and what it was sent."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    async with wired(serve) as wire:
        return await wire.post(b"{}"), requests[0]


def reply_to(answer: bytes) -> HttpReply:
    return asyncio.run(asked(answer))[0]


def packed(body: bytes, encoding: str = "gzip", status: int = 200) -> bytes:
    head = f"HTTP/1.1 {status} X\r\ncontent-encoding: {encoding}\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def test_only_gzip_is_asked_for() -> None:
    _, request = asyncio.run(asked(packed(PACKED)))
    assert b"Accept-Encoding: gzip\r\n" in request


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (PACKED, "gzip"),
        (PACKED, "GZIP"),
        (PACKED, "x-gzip"),
        (zlib.compress(BODY), "deflate"),
        (BODY, "identity"),
        (BODY, ""),
        (PACKED + b"something after the end", "gzip"),
    ],
)
def test_a_compressed_answer_is_read(body: bytes, encoding: str) -> None:
    assert reply_to(packed(body, encoding)).body == BODY


@pytest.mark.parametrize(
    ("body", "encoding", "said"),
    [
        (b"no gzip at all", "gzip", "incomplete answer in gzip"),
        (PACKED[:-9], "gzip", "incomplete answer in gzip"),
        (b"", "gzip", "incomplete answer in gzip"),
        (BODY, "br", "only gzip was asked for"),
        (PACKED, "gzip, gzip", "only gzip was asked for"),
    ],
)
def test_an_answer_that_cannot_be_unpacked_is_a_failure(
    body: bytes, encoding: str, said: str
) -> None:
    with pytest.raises(ServerError, match=said):
        reply_to(packed(body, encoding))


def test_a_body_that_expands_to_gigabytes_is_cut_off() -> None:
    answer = packed(bomb(1 << 30))
    assert len(answer) < 2_000_000
    tracemalloc.start()
    try:
        with pytest.raises(ServerError, match="too large: over 4,194,304 bytes"):
            reply_to(answer)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "body",
    [bomb(1 << 24), gzip.compress(b"x" * 10**6, mtime=0), b"garbage", b""],
    ids=["bomb", "long", "garbage", "empty"],
)
@pytest.mark.parametrize("status", [401, 429, 503])
def test_the_status_of_an_error_page_counts_whatever_its_body(status: int, body: bytes) -> None:
    reply = reply_to(packed(body, "gzip", status))
    assert reply.status == status
    assert len(reply.body) <= LARGEST_ERROR


def test_an_error_page_without_end_is_cut_off() -> None:
    reply = reply_to(b"HTTP/1.1 400 X\r\n\r\n" + b"no " * 10**6)
    assert reply.status == 400
    assert len(reply.body) == LARGEST_ERROR


def test_an_answer_of_the_largest_size_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LARGEST_BODY", len(BODY))
    assert reply_to(packed(PACKED)).body == BODY
    assert reply_to(packed(BODY, "")).body == BODY


@pytest.mark.parametrize(("idle_s", "n_connections"), [(50, 1), (70, 2)])
async def test_a_connection_is_kept_for_a_minute(
    idle_s: float, n_connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await hello(reader, writer)

    async with wired(serve) as wire:
        await wire.post(b"{}")
        later = time.monotonic() + idle_s
        monkeypatch.setattr("aiohttp.connector.monotonic", lambda: later)
        await wire.post(b"{}")
    assert connections == n_connections


CERTIFICATE = Path(__file__).with_name("localhost.pem")
HELLO = packed(BODY, "")


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine trusts the certificate of localhost; aiohttp asks once, when it is imported."""
    context = ssl.create_default_context(cafile=CERTIFICATE)
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", context)


class Proxy:
    """A proxy that notes what it is sent and passes CONNECT on to a server, or answers by itself."""

    def __init__(self, answer: bytes = b"") -> None:
        self.answer = answer
        self.heads: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        if self.answer:
            writer.write(self.answer)
            await reader.read()
        else:
            port = int(head.split(b" ")[1].rpartition(b":")[2])
            from_server, to_server = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(passed_on(reader, to_server), passed_on(from_server, writer))
        writer.close()


async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
    writer.close()


async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            await reader.readuntil(b"{}")
            writer.write(HELLO)
    writer.close()


def own_certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


async def encrypted_post(
    monkeypatch: pytest.MonkeyPatch, *, proxy: Proxy | None = None, host: str = "localhost"
) -> list[bytes]:
    """Two posts, one after the other, to a server with the certificate of localhost."""
    async with serving(hello, own_certificate()) as port, serving(proxy or hello) as between:
        if proxy is not None:
            monkeypatch.setenv("https_proxy", f"http://me:p%40ss@127.0.0.1:{between}")
            monkeypatch.setenv("no_proxy", "")
        url = f"https://{host}:{port}/v1"
        return [reply.body for reply in await post_to(url, is_loopback=proxy is None, times=2)]


@pytest.mark.usefixtures("trusted")
async def test_an_encrypted_answer_needs_a_trusted_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await encrypted_post(monkeypatch) == [BODY, BODY]


async def test_an_untrusted_certificate_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreachableError, match="its certificate cannot be verified") as refused:
        await encrypted_post(monkeypatch)
    assert refused.value.hopeless


@pytest.mark.usefixtures("trusted")
async def test_a_certificate_of_another_host_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreachableError, match="its certificate cannot be verified"):
        await encrypted_post(monkeypatch, host="127.0.0.1")


@pytest.mark.usefixtures("trusted")
async def test_a_proxy_is_asked_for_a_tunnel_once_and_told_who_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = Proxy()
    assert await encrypted_post(monkeypatch, proxy=proxy) == [BODY, BODY]
    (head,) = proxy.heads
    assert head.startswith(b"CONNECT localhost:")
    assert b"\r\nProxy-Authorization: Basic bWU6cEBzcw==\r\n" in head  # me:p@ss


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n", "the proxy does not connect to .*407"),
        (b"SSH-2.0\r\n\r\n", "not an HTTP answer"),
    ],
)
async def test_a_proxy_that_refuses_is_named(
    answer: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ServerError, match=said) as refused:
        await encrypted_post(monkeypatch, proxy=Proxy(answer))
    assert "p@ss" not in str(refused.value) + repr(refused.value)


async def test_a_proxy_gets_the_whole_address_without_encryption(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = Proxy(HELLO)
    monkeypatch.setenv("no_proxy", "")
    async with serving(proxy) as between:
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{between}")
        (reply,) = await post_to("http://judge.invalid:81/v1?v=a b", is_loopback=False)
    assert reply.body == BODY
    (head,) = proxy.heads
    assert head.startswith(b"POST http://judge.invalid:81/v1/x?v=a%20b HTTP/1.1\r\n")
    assert b"\r\nHost: judge.invalid:81\r\n" in head


async def test_a_proxy_that_is_not_there_is_blamed_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://me:pass@127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(UnreachableError, match=r"cannot connect to the proxy .*x\.invalid$"):
        await post_to("http://x.invalid", is_loopback=False)


def test_a_proxy_of_another_kind_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("https_proxy", "socks5://me:pass@there:1080")
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(UsageError, match="names a socks5 proxy for https") as refused:
        wire_to("https://x.invalid", is_loopback=False)
    assert "pass" not in str(refused.value)


async def test_an_abandoned_call_never_gets_the_next_answer() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(head.rpartition(b": ")[2]))
                await asyncio.sleep(0.1 if body == b"slow" else 0)
                writer.write(packed(body, ""))
        writer.close()

    async with wired(serve) as wire:
        slow = asyncio.create_task(wire.post(b"slow"))
        await asyncio.sleep(0.05)
        slow.cancel()
        assert (await wire.post(b"quick")).body == b"quick"
        await asyncio.sleep(0.1)
        assert (await wire.post(b"again")).body == b"again"
    assert connections == 2


async def test_a_server_that_answers_nothing_is_given_up_in_time() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with wired(serve, timeout_s=0.1) as wire:
        with pytest.raises(TimedOutError, match="did not answer within"):
            await wire.post(b"{}")


async def test_connections_that_nobody_uses_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_IDLE_S", 0.05)
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hello(reader, writer)
        gone.set()

    async with wired(serve) as wire:
        await wire.post(b"{}")
        await asyncio.wait_for(gone.wait(), 5)
        await wire.post(b"{}")


async def test_the_next_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(hello) as port:
        stream = (socket.AF_INET, socket.SOCK_STREAM, 6, "")

        async def two(*_: object, **__: object) -> list[object]:
            return [(*stream, ("127.0.0.1", 1)), (*stream, ("127.0.0.1", port))]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", two)
        (reply,) = await post_to("http://x.invalid")
    assert reply.body == BODY
