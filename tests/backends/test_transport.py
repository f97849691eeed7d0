"""The wire against servers that send what nobody asked for: bounded, and said."""

import asyncio
import contextlib
import gzip
import socket
import ssl
import time
import tracemalloc
import zlib
from pathlib import Path

import pytest

from reliability.faults import bomb
from unswayed.backends import transport
from unswayed.backends.addresses import Address, Secret
from unswayed.backends.faults import HttpReply, TimedOutError, UnreachableError
from unswayed.backends.transport import LARGEST_ERROR, HttpTransport
from unswayed.errors import ServerError, UsageError

BODY = b'{"choices": []}'
PACKED = gzip.compress(BODY, mtime=0)  # the same bytes in every process, for the tests' names


async def post_to(answer: bytes) -> tuple[HttpReply, bytes]:
    """What comes of one request to a server that sends these bytes, and what it was sent."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    address = Address(
        url=f"http://127.0.0.1:{port}/v1", key=Secret(), is_loopback=True, is_own=False
    )
    wire = HttpTransport(address, "x", {}, connections=1, timeout_s=10)
    try:
        return await wire.post(b"{}"), requests[0]
    finally:
        await wire.close()
        server.close()


def reply_to(answer: bytes) -> HttpReply:
    return asyncio.run(post_to(answer))[0]


def packed(body: bytes, encoding: str = "gzip", status: int = 200) -> bytes:
    head = f"HTTP/1.1 {status} X\r\ncontent-encoding: {encoding}\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def test_only_gzip_is_asked_for() -> None:
    _, request = asyncio.run(post_to(packed(PACKED)))
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
        (b"no gzip at all", "gzip", "no whole gzip"),
        (PACKED[:-9], "gzip", "no whole gzip"),
        (b"", "gzip", "no whole gzip"),
        (BODY, "br", "only gzip was asked for"),
        (PACKED, "gzip, gzip", "only gzip was asked for"),
    ],
)
def test_an_answer_that_cannot_be_unpacked_is_a_failure(
    body: bytes, encoding: str, said: str
) -> None:
    with pytest.raises(ServerError, match=said):
        reply_to(packed(body, encoding))


def test_a_small_body_that_unpacks_to_gigabytes_is_cut_off_before_it_takes_memory() -> None:
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
def test_a_connection_is_kept_for_a_call_that_comes_within_a_minute(
    idle_s: float, n_connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            try:
                await reader.readuntil(b"{}")
            except asyncio.IncompleteReadError:
                break
            writer.write(packed(PACKED))
        writer.close()

    async def work() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        address = Address(url=url, key=Secret(), is_loopback=True, is_own=False)
        wire = HttpTransport(address, "x", {}, connections=1, timeout_s=10)
        await wire.post(b"{}")
        later = time.monotonic() + idle_s
        monkeypatch.setattr("aiohttp.connector.monotonic", lambda: later)
        await wire.post(b"{}")
        await wire.close()
        server.close()

    asyncio.run(work())
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


def encrypted_post(
    monkeypatch: pytest.MonkeyPatch, *, proxy: Proxy | None = None
) -> list[HttpReply]:
    """Two posts, one after the other, to a server with the certificate of localhost."""

    async def work() -> list[HttpReply]:
        server = await asyncio.start_server(hello, "127.0.0.1", 0, ssl=own_certificate())
        url = f"https://localhost:{server.sockets[0].getsockname()[1]}/v1"
        if proxy is not None:
            between = await asyncio.start_server(proxy, "127.0.0.1", 0)
            named = f"http://me:p%40ss@127.0.0.1:{between.sockets[0].getsockname()[1]}"
            monkeypatch.setenv("https_proxy", named)
            monkeypatch.setenv("no_proxy", "")
        address = Address(url=url, key=Secret(), is_loopback=proxy is None, is_own=False)
        wire = HttpTransport(address, "x", {}, connections=1, timeout_s=10)
        try:
            return [await wire.post(b"{}") for _ in range(2)]
        finally:
            await wire.close()
            server.close()

    return asyncio.run(work())


@pytest.mark.usefixtures("trusted")
def test_an_encrypted_answer_is_read_from_whom_the_machine_trusts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert [reply.body for reply in encrypted_post(monkeypatch)] == [BODY, BODY]


def test_a_certificate_that_nobody_vouches_for_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UnreachableError, match="its certificate cannot be verified") as refused:
        encrypted_post(monkeypatch)
    assert refused.value.hopeless


@pytest.mark.usefixtures("trusted")
def test_a_certificate_of_another_host_is_not_taken() -> None:
    async def work() -> None:
        server = await asyncio.start_server(hello, "127.0.0.1", 0, ssl=own_certificate())
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        address = Address(url=url, key=Secret(), is_loopback=True, is_own=False)
        wire = HttpTransport(address, "x", {}, connections=1, timeout_s=10)
        try:
            await wire.post(b"{}")
        finally:
            await wire.close()
            server.close()

    with pytest.raises(UnreachableError, match="its certificate cannot be verified"):
        asyncio.run(work())


@pytest.mark.usefixtures("trusted")
def test_a_proxy_is_asked_for_a_tunnel_once_and_told_who_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = Proxy()
    assert [reply.body for reply in encrypted_post(monkeypatch, proxy=proxy)] == [BODY, BODY]
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
def test_a_proxy_that_refuses_is_named(
    answer: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ServerError, match=said) as refused:
        encrypted_post(monkeypatch, proxy=Proxy(answer))
    assert "p@ss" not in str(refused.value) + repr(refused.value)


def test_a_proxy_is_given_the_whole_address_where_nothing_is_encrypted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = Proxy(HELLO)

    async def work() -> HttpReply:
        between = await asyncio.start_server(proxy, "127.0.0.1", 0)
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{between.sockets[0].getsockname()[1]}")
        monkeypatch.setenv("no_proxy", "")
        address = Address(
            url="http://judge.invalid:81/v1?v=a b", key=Secret(), is_loopback=False, is_own=False
        )
        wire = HttpTransport(address, "x", {}, connections=1, timeout_s=10)
        try:
            return await wire.post(b"{}")
        finally:
            await wire.close()
            between.close()

    assert asyncio.run(work()).body == BODY
    (head,) = proxy.heads
    assert head.startswith(b"POST http://judge.invalid:81/v1/x?v=a%20b HTTP/1.1\r\n")
    assert b"\r\nHost: judge.invalid:81\r\n" in head


def test_a_proxy_that_is_not_there_is_blamed_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        address = Address(url="http://x.invalid", key=Secret(), is_loopback=False, is_own=False)
        wire = HttpTransport(address, "x", {}, connections=1, timeout_s=10)
        try:
            await wire.post(b"{}")
        finally:
            await wire.close()

    monkeypatch.setenv("http_proxy", "http://me:pass@127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(UnreachableError, match=r"cannot connect to the proxy .*x\.invalid$"):
        asyncio.run(work())


def test_a_proxy_of_another_kind_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("https_proxy", "socks5://me:pass@there:1080")
    monkeypatch.setenv("no_proxy", "")
    address = Address(url="https://x.invalid", key=Secret(), is_loopback=False, is_own=False)
    with pytest.raises(UsageError, match="names a socks5 proxy for https") as refused:
        HttpTransport(address, "x", {}, connections=1, timeout_s=10)
    assert "pass" not in str(refused.value)


def test_a_call_that_was_given_up_never_gets_the_answer_to_the_next_one() -> None:
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

    async def work() -> bytes:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        address = Address(url=url, key=Secret(), is_loopback=True, is_own=False)
        wire = HttpTransport(address, "x", {}, connections=1, timeout_s=10)
        slow = asyncio.create_task(wire.post(b"slow"))
        await asyncio.sleep(0.05)
        slow.cancel()
        reply = await wire.post(b"quick")
        await asyncio.sleep(0.1)
        assert (await wire.post(b"again")).body == b"again"
        await wire.close()
        server.close()
        return reply.body

    assert asyncio.run(work()) == b"quick"
    assert connections == 2


def test_a_server_that_answers_nothing_is_given_up_in_time() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def work() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        address = Address(url=url, key=Secret(), is_loopback=True, is_own=False)
        wire = HttpTransport(address, "x", {}, connections=1, timeout_s=0.1)
        with pytest.raises(TimedOutError, match="did not answer within"):
            await wire.post(b"{}")
        await wire.close()
        server.close()

    asyncio.run(work())


def test_connections_that_nobody_uses_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        gone = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await hello(reader, writer)
            gone.set()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        address = Address(url=url, key=Secret(), is_loopback=True, is_own=False)
        wire = HttpTransport(address, "x", {}, connections=1, timeout_s=10)
        await wire.post(b"{}")
        await asyncio.wait_for(gone.wait(), 5)
        await wire.post(b"{}")
        await wire.close()
        server.close()

    monkeypatch.setattr(transport, "_IDLE_S", 0.05)
    asyncio.run(work())


def test_the_next_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> HttpReply:
        loop = asyncio.get_running_loop()
        server = await asyncio.start_server(hello, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        stream = (socket.AF_INET, socket.SOCK_STREAM, 6, "")

        async def two(*_: object, **__: object) -> list[object]:
            return [(*stream, ("127.0.0.1", 1)), (*stream, ("127.0.0.1", port))]

        monkeypatch.setattr(loop, "getaddrinfo", two)
        address = Address(url="http://x.invalid", key=Secret(), is_loopback=True, is_own=False)
        wire = HttpTransport(address, "x", {}, connections=1, timeout_s=10)
        try:
            return await wire.post(b"{}")
        finally:
            await wire.close()
            server.close()

    assert asyncio.run(work()).body == BODY
