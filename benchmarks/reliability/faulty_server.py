"""A server that answers some requests badly, and the bytes of bad responses."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

KEY: Final = "sk-planted-0123456789abcdefKEY"
"""The key that clients of the server send; no output and no file may hold it."""

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[None]]


@dataclass(frozen=True)
class Mode:
    """One way to misbehave.

    Attributes:
        behave: What the server does with a request about a faulty item.
        expected: What the faulty calls are in the end: failed, refused, unparsed or answered.
        options: More options of the audit.
        outage_s: For how long the server is gone after two answers.
        up: Whether the server is there at all.
    """

    name: str
    behave: Behaviour
    expected: str = "failed"
    options: tuple[str, ...] = ()
    outage_s: float = 0.0
    up: bool = True


def completion(**changes: Any) -> dict[str, Any]:
    """A good chat completion that says A; `message`, `choice` and others are merged in."""
    top = [{"token": "A", "logprob": -0.2}, {"token": "B", "logprob": -1.7}]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "A", **changes.pop("message", {})},
        "finish_reason": "stop",
        "logprobs": {"content": [{"token": "A", "logprob": -0.2, "top_logprobs": top}]},
        **changes.pop("choice", {}),
    }
    usage = {"prompt_tokens": 50, "completion_tokens": 1}
    return {"model": "m", "choices": [choice], "usage": usage, **changes}


def head(status: int | str, headers: Mapping[str, object]) -> bytes:
    lines = [f"HTTP/1.1 {status} X" if isinstance(status, int) else status]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")


def http(
    body: bytes | str | dict[str, Any] = b"", status: int | str = 200, **headers: object
) -> bytes:
    """A whole response; `content_type="…"` and the like add headers, None leaves one out."""
    if isinstance(body, dict):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    whole = {
        "content-type": "application/json",
        "content-length": len(body),
        "connection": "close",
        **named,
    }
    return head(status, {k: v for k, v in whole.items() if v is not None}) + body


def sends(*parts: bytes | float, then: str = "close") -> Behaviour:
    """Send these bytes, waiting where a number stands; then close, reset, or hang."""

    async def behave(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        for part in parts:
            if isinstance(part, bytes):
                writer.write(part)
                await writer.drain()
            else:
                await asyncio.sleep(part)
        if then == "reset":
            writer.transport.abort()
        elif then == "hang":
            await reader.read()

    return behave


def endless(start: bytes, again: bytes, *, pause_s: float = 0.0) -> Behaviour:
    """Send bytes until the client has enough."""

    async def behave(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        writer.write(start)
        while True:
            writer.write(again)
            await writer.drain()
            await asyncio.sleep(pause_s)

    return behave


async def answer_well(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
) -> None:
    writer.write(http(completion()))


def bomb(size: int, wbits: int = 31) -> bytes:
    """Zeros packed a thousand to one: one block of them, again and again."""
    squeeze = zlib.compressobj(wbits=wbits)
    megabyte = bytes(1 << 20)
    first, block = (squeeze.compress(megabyte) + squeeze.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + block * ((size >> 20) - 1)


def says(expected: str, **changes: Any) -> tuple[Behaviour, str]:
    return sends(http(completion(**changes))), expected


class FaultyServer:
    """A server in a thread of its own; `mode` says what it does with calls about faulty items."""

    def __init__(self) -> None:
        self.mode = Mode("none", answer_well)
        self.port = 0
        self._answers = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._return: asyncio.TimerHandle | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def serve(self, mode: Mode) -> None:
        """Misbehave in this way from now on."""
        self.mode, self._answers = mode, 0
        self._call(self._open() if mode.up else self._shut())

    def close(self) -> None:
        """Serve no more."""
        self._call(self._shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _call(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _open(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def _shut(self) -> None:
        if self._return is not None:
            self._return.cancel()
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in tuple(self._tasks):
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            top = await reader.readuntil(b"\r\n\r\n")
            length = int(top.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            await (self.mode.behave if b"FAULTY" in body else answer_well)(reader, writer, body)
            await self._count()
        self._tasks.discard(task)
        writer.close()

    async def _count(self) -> None:
        self._answers += 1
        if self.mode.outage_s and self._answers == 2 and self._server is not None:
            self._server.close()
            self._server = None
            self._return = self._loop.call_later(
                self.mode.outage_s, lambda: self._loop.create_task(self._open())
            )
