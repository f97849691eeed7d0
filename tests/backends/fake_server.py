"""A fast fake chat server: OpenAI's chat completions and Anthropic's messages, with planned faults.

As a process, for tests that kill the client:

    python tests/backends/fake_server.py --port 0 --latency-ms 1 --log bodies.txt

It prints its port on the first line and serves until it is killed. `--log` appends one line per
request received: the sha256 of its body, written before anything is answered.

In a test's own loop: `async with FakeServer(faults=[...]) as server:` and `server.url`.

The answer depends on nothing but the model, the messages and the seed of a request, so the same
request gets the same answer from every process.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import math
import os
import re
import sys
from collections.abc import Callable
from typing import Self

import msgspec

KINDS = (
    "status",  # an error status with a body
    "reset",  # the connection is reset without an answer
    "close",  # the connection is closed without an answer
    "half",  # half of the body is sent, then the connection is closed
    "hang",  # no answer ever
    "slow",  # the answer after delay_s
    "not_json",  # 200 with something else
    "wrong_shape",  # 200 with other JSON
    "no_logprobs",  # 200 without logprobs
    "body",  # 200 with `message` as the body
    "echo_key",  # 200 with the Authorization header in the text
    "redirect",  # 307 to `location`
)


class Fault(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A planned fault. It strikes the requests that match all of its conditions.

    Attributes:
        on: Numbers of requests, from 1, in the order they arrive.
        every: Every so many requests.
        contains: Requests with this text in the body; without: those without it.
        times: At most this often.
    """

    kind: str
    status: int = 500
    message: str = "planned fault"
    code: str | None = None
    retry_after: str | None = None
    location: str = "http://127.0.0.1:9/"
    delay_s: float = 0.0
    on: list[int] | None = None
    every: int | None = None
    contains: str | None = None
    without: str | None = None
    times: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown fault {self.kind!r}: one of {', '.join(KINDS)}")

    def strikes(self, number: int, body: bytes) -> bool:
        hit = (
            (self.on is None or number in self.on)
            and (self.every is None or number % self.every == 0)
            and (self.contains is None or self.contains.encode() in body)
            and (self.without is None or self.without.encode() not in body)
            and (self.times is None or self.times > 0)
        )
        if hit and self.times is not None:
            self.times -= 1
        return hit


class Asked(msgspec.Struct):
    model: str
    messages: msgspec.Raw
    seed: int | None = None
    logprobs: bool = False
    top_logprobs: int = 0
    system: msgspec.Raw = msgspec.Raw(b"")
    max_tokens: int | None = None


ASKED = msgspec.json.Decoder(Asked)
ENCODER = msgspec.json.Encoder()


def answer_of(asked: Asked, labels: tuple[str, ...]) -> list[tuple[str, float]]:
    """Labels with their log-probabilities, likeliest first: a softmax over bytes of a hash."""
    content = b"\0".join((asked.model.encode(), bytes(asked.messages), bytes(asked.system)))
    digest = hashlib.sha256(content + str(asked.seed).encode()).digest()
    scores = [digest[i % 32] / 64.0 for i in range(len(labels))]
    log_total = math.log(sum(math.exp(score) for score in scores))
    pairs = [(label, score - log_total) for label, score in zip(labels, scores, strict=True)]
    return sorted(pairs, key=lambda pair: -pair[1])


def cut(text: str, max_tokens: int | None) -> str:
    """The beginning of a text that a cap lets through: words and line breaks count as tokens."""
    pieces = re.findall(r"[^\S\n]*[^\s]+|\s*\n", text)
    return text if max_tokens is None else "".join(pieces[:max_tokens])


class FakeServer:
    """See the module's docstring.

    With `say` the text of a chat completion is what it gives for a request's messages, cut off at
    the request's cap, without log-probabilities. `finish` is the finish reason of each answer, by
    the number of the request.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        latency_s: float = 0.0,
        labels: tuple[str, ...] = ("A", "B"),
        faults: list[Fault] | None = None,
        log: str | None = None,
        key: str | None = None,
        keep: bool = True,
        say: Callable[[bytes], str] | None = None,
        finish: Callable[[int], str | None] | None = None,
    ) -> None:
        self.port = port
        self.finish = finish
        self.say = say
        self.latency_s = latency_s
        self.labels = labels
        self.faults = faults or []
        self.key = key
        self.keep = keep
        self.received = 0
        self.in_flight = 0
        self.max_in_flight = 0
        self.connections: set[Connection] = set()
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self.log = None if log is None else os.open(log, flags, 0o644)
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Base address, as an OpenAI-compatible client wants it."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def start(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self), "127.0.0.1", self.port, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in tuple(self.connections):
            connection.transport.abort()
        if self.log is not None:
            os.close(self.log)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    def note(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """Record a request; before anything else is done with it."""
        self.received += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        if self.log is not None:
            os.write(self.log, hashlib.sha256(body).hexdigest().encode() + b"\n")
        if self.keep:
            self.paths.append(path)
            self.headers.append(headers)
            self.bodies.append(body)

    def completion(self, body: bytes, *, logprobs: bool = True, text: str | None = None) -> bytes:
        """The body of a chat completion."""
        asked = ASKED.decode(body)
        ranked = answer_of(asked, self.labels)
        whole = text if text is not None else self._text(asked, ranked[0][0])
        said = whole
        if self.say is not None:
            whole = self.say(bytes(asked.messages))
            said = cut(whole, asked.max_tokens)
        choice: dict[str, object] = {
            "index": 0,
            "message": {"role": "assistant", "content": said},
            "finish_reason": "stop" if said == whole else "length",
        }
        if self.finish is not None:
            choice["finish_reason"] = self.finish(self.received)
        if logprobs and asked.logprobs and self.say is None:
            tops = [{"token": t, "logprob": p} for t, p in ranked[: asked.top_logprobs]]
            tops += [
                {"token": f" word{i}", "logprob": -12.0 - i}
                for i in range(asked.top_logprobs - len(tops))
            ]
            before, _, after = said.partition(ranked[0][0])
            content = [{"token": ranked[0][0], "logprob": ranked[0][1], "top_logprobs": tops}]
            for place, other in ((0, before), (2, after)):
                if other:
                    only = {"token": other, "logprob": -0.01}
                    content.insert(place, {**only, "top_logprobs": [only]})
            choice["logprobs"] = {"content": content}
        used = len(asked.messages) // 4
        return ENCODER.encode(
            {
                "object": "chat.completion",
                "model": asked.model,
                "choices": [choice],
                "usage": {
                    "prompt_tokens": used,
                    "completion_tokens": max(1, len(said) // 4),
                    "prompt_tokens_details": {"cached_tokens": 0},
                },
            }
        )

    def message(self, body: bytes) -> bytes:
        """The body of an Anthropic message."""
        asked = ASKED.decode(body)
        said = self._text(asked, answer_of(asked, self.labels)[0][0])
        used = len(asked.messages) // 4
        return ENCODER.encode(
            {
                "type": "message",
                "role": "assistant",
                "model": asked.model,
                "content": [{"type": "text", "text": said}],
                "stop_reason": self.finish(self.received) if self.finish else "end_turn",
                "usage": {"input_tokens": used, "output_tokens": max(1, len(said) // 4)},
            }
        )

    @staticmethod
    def _text(asked: Asked, label: str) -> str:
        if b'\\"ranking\\"' in bytes(asked.messages):
            marks = {symbol: {"score": 40 + 20 * (symbol == label)} for symbol in "ABC"}
            return ENCODER.encode({"candidates": marks}).decode()
        if b"<answer>" in bytes(asked.messages):
            return f"<think>A planned thought.</think><answer>{label}</answer>"
        return label


class Connection(asyncio.Protocol):
    """One client connection; requests on it come one after the other."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while True:
            head, end, rest = self.buffer.partition(b"\r\n\r\n")
            if not end:
                return
            first, *lines = head.decode("latin-1").split("\r\n")
            pairs = (line.partition(":") for line in lines)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            length = int(headers.get("content-length", 0))
            if len(rest) < length:
                return
            body, self.buffer = rest[:length], rest[length:]
            self.handle(first.split(" ")[1], headers, body)

    def handle(self, path: str, headers: dict[str, str], body: bytes) -> None:
        server = self.server
        server.note(path, headers, body)
        number = server.received
        fault = next((f for f in server.faults if f.strikes(number, body)), None)
        delay = server.latency_s + (fault.delay_s if fault else 0.0)
        if delay > 0:
            loop = asyncio.get_running_loop()
            loop.call_later(delay, self.respond, path, headers, body, fault)
        else:
            self.respond(path, headers, body, fault)

    def respond(self, path: str, headers: dict[str, str], body: bytes, fault: Fault | None) -> None:
        if fault is not None and fault.kind == "hang":
            return
        server = self.server
        server.in_flight -= 1
        if self.transport.is_closing():
            return
        given = headers.get("authorization", "").removeprefix("Bearer ") or headers.get("x-api-key")
        if server.key is not None and given != server.key:
            self.error(Fault(kind="status", status=401, message=f"Incorrect API key: {given}"))
        elif fault is not None and fault.kind not in {"slow", "no_logprobs", "echo_key"}:
            self.strike(fault, body)
        else:
            try:
                self.send_answer(path, body, fault, given)
            except msgspec.MsgspecError as error:
                self.error(Fault(kind="status", status=400, message=f"bad request: {error}"))

    def send_answer(self, path: str, body: bytes, fault: Fault | None, given: str | None) -> None:
        server = self.server
        if path.split("?")[0].endswith("/chat/completions"):
            text = f"your key is {given}" if fault and fault.kind == "echo_key" else None
            plain = fault is None or fault.kind != "no_logprobs"
            self.send(200, server.completion(body, logprobs=plain, text=text))
        elif path.endswith("/messages"):
            self.send(200, server.message(body))
        else:
            self.error(Fault(kind="status", status=404, message=f"no such path {path}"))

    def strike(self, fault: Fault, body: bytes) -> None:
        if fault.kind == "status":
            self.error(fault)
        elif fault.kind == "reset":
            self.transport.abort()
        elif fault.kind == "close":
            self.transport.close()
        elif fault.kind == "half":
            whole = self.server.completion(body)
            self.transport.write(head_of(200, len(whole)) + whole[: len(whole) // 2])
            self.transport.close()
        elif fault.kind == "not_json":
            self.send(200, b"<html>gateway says hello</html>")
        elif fault.kind == "wrong_shape":
            self.send(200, b'{"choices": [{"message": 3}]}')
        elif fault.kind == "body":
            self.send(200, fault.message.encode())
        elif fault.kind == "redirect":
            self.send(307, b"", extra=f"location: {fault.location}\r\n")

    def error(self, fault: Fault) -> None:
        said = {"message": fault.message, "type": "planned", "code": fault.code}
        wait = "" if fault.retry_after is None else f"retry-after: {fault.retry_after}\r\n"
        self.send(fault.status, ENCODER.encode({"error": said}), extra=wait)

    def send(self, status: int, body: bytes, *, extra: str = "") -> None:
        self.transport.write(head_of(status, len(body), extra) + body)


def head_of(status: int, length: int, extra: str = "") -> bytes:
    return (
        f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n"
        f"{extra}content-length: {length}\r\n\r\n"
    ).encode()


async def serve(server: FakeServer) -> None:
    await server.start()
    print(server.port, flush=True)
    await asyncio.get_running_loop().create_future()


def main() -> None:
    parser = argparse.ArgumentParser(description="a fake chat server")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--log", help="append the sha256 of each body received to this file")
    given = parser.parse_args()
    server = FakeServer(
        port=given.port, latency_s=given.latency_ms / 1000.0, log=given.log, keep=False
    )
    try:
        asyncio.run(serve(server))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
