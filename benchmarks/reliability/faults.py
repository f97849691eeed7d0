"""Servers that misbehave: what an audit makes of each of some hundred ways.

    python benchmarks/reliability/faults.py [--only WORD] [--memory-mb 300]

Each way is one run of `unswayed audit` in a process of its own, against a server in this one. Two of
the four items get good answers; the calls about the other two meet the fault. Printed for each: the
verdicts on those two items, what was counted, seconds, peak memory, exit code and message. The last
line says how many ways broke a rule:

- a call that failed has no verdict, and is counted (as failed, or the run says why it stopped);
- the good items have their verdicts, unless the run stopped;
- no traceback, no hang (60 s), no more memory than allowed;
- the key is nowhere: not in the run directory, not in what was printed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from evidence_table import Table, add_write
from unswayed.store.records import SEALED

KEY: Final = "sk-planted-0123456789abcdefKEY"
N_FAULTY: Final = 4
N_GOOD: Final = 4
LONGEST_S: Final = 60.0
TIE_CODE: Final = -2

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


@dataclass(frozen=True)
class Outcome:
    """What came of one mode; `broken` names the rules that did not hold."""

    mode: str
    verdicts: int
    calls: Mapping[str, Any]
    seconds: float
    peak_mb: float | None
    code: int
    message: str
    broken: tuple[str, ...] = field(default=())


# --- what is sent ------------------------------------------------------------------------------


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


# --- the ways ----------------------------------------------------------------------------------

STATUSES: Final = (
    *(204, 206, 226, 300, 301, 302, 303, 304, 307, 308),
    *(400, 401, 402, 403, 404, 405, 407, 408, 409, 410, 413, 415, 418, 422, 425, 429, 431, 451, 499),
    *(500, 501, 502, 503, 504, 505, 507, 508, 511, 520, 522, 524, 529, 598, 599),
)  # fmt: skip


def statuses() -> Iterator[Mode]:
    for status in STATUSES:
        body = {"error": {"message": "A", "code": "planned"}}
        elsewhere = {"location": f"http://127.0.0.1:9/?key={KEY}"} if status // 100 == 3 else {}
        bare = status in {204, 304}
        yield Mode(f"status {status}", sends(http(b"" if bare else body, status, **elsewhere)))
    for wait in ("soon", "1e309", "-5", "999999999", "nan", "Tue, 14 Nov 2099 22:13:22 GMT", ""):
        yield Mode(f"429, Retry-After {wait!r}", sends(http("{}", 429, retry_after=wait)))
    yield Mode("503, Retry-After 0", sends(http("{}", 503, retry_after="0")))
    yield Mode("503, HTML page", sends(http("<html>busy</html>", 503, content_type="text/html")))
    yield Mode("500, good completion as body", sends(http(completion(), 500)))
    yield Mode("400, error page without end", endless(head(400, {}), b"no " * 10_000))
    yield Mode("500, gzip bomb", sends(http(bomb(1 << 28), 500, content_encoding="gzip")))
    yield Mode("status 99", sends(http(completion(), "HTTP/1.1 99 X")))
    yield Mode("status 999", sends(http(completion(), "HTTP/1.1 999 X")))
    yield Mode("status 101, upgrade", sends(http(b"", 101, upgrade="websocket"), then="hang"))
    yield Mode("endless 100 Continue", endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause_s=0.01))


def bodies() -> Iterator[Mode]:
    whole = json.dumps(completion())
    texts = {
        "empty": "",
        "HTML page": "<html><body>Answer: A</body></html>",
        "bare label": "A",
        "null": "null",
        "list": "[]",
        "string": '"A"',
        "number": "1",
        "truncated JSON": whole[:60],
        "JSON twice": whole + whole,
        "NaN": whole.replace("-0.2", "NaN"),
        "Infinity": whole.replace("-0.2", "Infinity"),
        "server-sent events": f"data: {whole}\n\ndata: [DONE]\n\n",
        "error object": '{"error": {"message": "upstream said A"}}',
        "error object beside a choice": json.dumps(completion(error={"message": "half done"})),
        "deep nesting": '{"choices": ' + "[" * 200_000 + "]" * 200_000 + "}",
        "deep nesting beside a choice": whole[:-1] + ', "x": ' + "[" * 100_000 + "]" * 100_000 + "}",
        "UTF-16": "",
    }  # fmt: skip
    for name, text in texts.items():
        raw = whole.encode("utf-16") if name == "UTF-16" else text.encode()
        yield Mode(f"200, {name}", sends(http(raw)))
    yield Mode("200, byte order mark", sends(http(b"\xef\xbb\xbf" + whole.encode())))
    yield Mode("200, not UTF-8", sends(http(whole.replace('"A"', '"A\xff"').encode("latin-1"))))
    yield Mode("200, lone surrogate", sends(http(whole.replace('"A"', '"A\\ud800"'))))
    yield Mode("logprob 1e999", sends(http(whole.replace("-0.2", "1e999"))), "answered")
    yield Mode("200, text/html, good", sends(http(whole, content_type="text/html")), "answered")
    yield Mode("200, no content type", sends(http(whole, content_type=None)), "answered")
    yield Mode(
        "200, duplicate keys", sends(http(whole.replace('"content": ', '"content": "B", "content": '))), "answered"
    )  # fmt: skip


def shapes() -> Iterator[Mode]:
    named = {
        "no choices": {"choices": []},
        "choices null": {"choices": None},
        "choices an object": {"choices": {"message": {"content": "A"}}},
        "choice null": {"choices": [None]},
        "choice without message": {"choices": [{"text": "A"}]},
        "message null": {"choices": [{"message": None}]},
        "message a string": {"choices": [{"message": "A"}]},
        "content a number": {"message": {"content": 0}},
        "content an object": {"message": {"content": {"text": "A"}}},
        "finish reason a number": {"choice": {"finish_reason": 3}},
        "finish reason error": {"choice": {"finish_reason": "error"}},
    }
    for name, changes in named.items():
        yield Mode(f"200, {name}", *says("failed", **changes))
    good = completion()["choices"][0]
    yield Mode("200, two choices", *says("answered", choices=[good, good]))
    yield Mode("200, content parts", *says("answered", message={"content": [{"text": "A"}]}))
    for name, message in {
        "content null": {"content": None},
        "content empty": {"content": ""},
        "content spaces": {"content": " \n\t "},
        "content NUL": {"content": "\0"},
        "terminal codes": {"content": "\x1b[2J\x1b]0;owned\x07"},
        "tool call": {"content": None, "tool_calls": [{"function": {"name": "A"}}]},
    }.items():
        yield Mode(f"200, {name}", *says("unparsed", message=message, choice={"logprobs": None}))


def refusals() -> Iterator[Mode]:
    refusal = {"content": None, "refusal": "A. I cannot help"}
    yield Mode("refusal, content null", *says("refused", message=refusal))
    yield Mode("refusal beside content A", *says("refused", message={"refusal": "I cannot help"}))
    yield Mode("content filter, content A", *says("refused", choice={"finish_reason": "content_filter"}))  # fmt: skip
    yield Mode("finish reason refusal, content A", *says("refused", choice={"finish_reason": "refusal"}))  # fmt: skip


def usages() -> Iterator[Mode]:
    for name, usage in {
        "9999999999999999999": {"prompt_tokens": 9999999999999999999, "completion_tokens": 1},
        "10^40": {"prompt_tokens": 10**40, "completion_tokens": 1},
        "2^40": {"prompt_tokens": 1, "completion_tokens": 2**40},
        "negative": {"prompt_tokens": -5, "completion_tokens": -1},
        "fractions": {"prompt_tokens": 1.5, "completion_tokens": 1e300},
        "strings": {"prompt_tokens": "5", "completion_tokens": "1"},
        "booleans": {"prompt_tokens": True, "completion_tokens": False},
        "a list": [1, 2],
        "null": None,
        "cached more than read": {
            "prompt_tokens": 1,
            "completion_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": 2**70},
        },
    }.items():
        yield Mode(f"usage {name}", *says("answered", usage=usage))


def logprobs() -> Iterator[Mode]:
    token = {"token": "A", "logprob": -0.2}
    for name, value in {
        "a list": [token],
        "a string": "A",
        "content a string": {"content": "A"},
        "content of strings": {"content": ["A"]},
        "token null": {"content": [{"token": None, "top_logprobs": [token]}]},
        "top null": {"content": [{"token": "A", "top_logprobs": None}]},
        "logprob a string": {"content": [{"token": "A", "top_logprobs": [{"token": "A", "logprob": "-0.2"}]}]},
        "logprob null": {"content": [{"token": "A", "top_logprobs": [{"token": "A", "logprob": None}]}]},
        "above 0": {"content": [{"token": "A", "top_logprobs": [{"token": "A", "logprob": 5.0}, {"token": "B", "logprob": 9.0}]}]},
        "1e308": {"content": [{"token": "A", "top_logprobs": [{"token": "A", "logprob": 1e308}]}]},
        "-1e308": {"content": [{"token": "A", "top_logprobs": [{"token": "A", "logprob": -1e308}]}]},
        "no labels": {"content": [{"token": "A", "top_logprobs": [{"token": "the", "logprob": -0.1}]}]},
        "labels ten times": {"content": [{"token": "A", "top_logprobs": [token] * 10}]},
        "fewer than tokens": {"content": []},
    }.items():  # fmt: skip
        yield Mode(f"logprobs {name}", *says("answered", choice={"logprobs": value}))


def sizes() -> Iterator[Mode]:
    yield Mode("200, body without end", endless(head(200, {}), b"x" * 65_536))
    yield Mode("200, JSON string without end", endless(head(200, {}) + b'{"x": "', b"A" * 65_536))
    yield Mode("200, 64 MB stated", endless(head(200, {"content-length": 1 << 26}), b" " * 65_536))
    yield Mode("200, gzip bomb of 1 GiB", sends(http(bomb(1 << 30), content_encoding="gzip")))
    yield Mode("200, deflate bomb", sends(http(bomb(1 << 28, 15), content_encoding="deflate")))
    yield Mode("200, br", sends(http(b"\x0b\x02\x80A\x03", content_encoding="br")))
    yield Mode("200, zstd", sends(http(b"\x28\xb5\x2f\xfd", content_encoding="zstd")))
    yield Mode("200, gzip twice", sends(http(b"", content_encoding="gzip, gzip")))
    yield Mode("200, no gzip", sends(http(completion(), content_encoding="gzip")))
    squeezed = zlib.compress(json.dumps(completion()).encode(), wbits=31)
    yield Mode("200, half a gzip", sends(http(squeezed[:-20], content_encoding="gzip")))
    yield Mode("200, good gzip", sends(http(squeezed, content_encoding="gzip")), "answered")
    long = "word " * 700_000
    yield Mode("200, text of 3.5 MB", *says("unparsed", message={"content": long}, choice={"logprobs": None}))  # fmt: skip
    tops = [{"token": str(k), "logprob": -0.001 * k} for k in range(90_000)]
    many = {"content": [{"token": "A", "top_logprobs": tops}]}
    yield Mode("200, 90 000 logprobs", *says("answered", choice={"logprobs": many}))
    tokens = [{"token": "A", "top_logprobs": tops[:1]}] * 50_000
    yield Mode("200, 50 000 tokens", *says("answered", choice={"logprobs": {"content": tokens}}))
    yield Mode("header of 1 MB", sends(http(completion(), x_long="y" * (1 << 20))))
    yield Mode("headers without end", endless(b"HTTP/1.1 200 X\r\n", b"x-a: b\r\n" * 1000))
    yield Mode("header without end", endless(b"HTTP/1.1 200 X\r\nx-a: ", b"b" * 65_536))
    yield Mode("100 000 cookies", sends(http(completion(), set_cookie="a=b\r\nset-cookie: a=b" * 100_000)))  # fmt: skip


def wires() -> Iterator[Mode]:
    whole = http(completion())
    yield Mode("hang before headers", sends(then="hang"))
    yield Mode("hang within headers", sends(whole[:30], then="hang"))
    yield Mode("hang after headers", sends(head(200, {"content-length": 99}), then="hang"))
    yield Mode("hang within body", sends(whole[:-9], then="hang"))
    yield Mode("slow drip of headers", endless(b"HTTP/1.1 200 X\r\n", b"x-a: b\r\n", pause_s=0.1))
    yield Mode("slow drip of body", endless(head(200, {}), b" ", pause_s=0.1))
    yield Mode("slow drip of an error page", endless(head(500, {}), b" ", pause_s=0.1))
    yield Mode("closed at once", sends())
    yield Mode("reset at once", sends(then="reset"))
    yield Mode("reset within headers", sends(whole[:30], 0.05, then="reset"))
    yield Mode("reset within body", sends(whole[:-9], 0.05, then="reset"))
    yield Mode("closed within body", sends(whole[:-9]))
    yield Mode("401, closed within body", sends(http("no key", 401, content_length=99)))
    yield Mode("content length too small", sends(http(completion(), content_length=40)))
    yield Mode("content length negative", sends(http(completion(), content_length=-1)))
    yield Mode("content length no number", sends(http(completion(), content_length="many")))
    yield Mode("content length 2^70", sends(http(completion(), content_length=2**70)))
    chunked = head(200, {"transfer-encoding": "chunked"})
    yield Mode("chunked, garbage", sends(chunked + b"zz\r\nA\r\n0\r\n\r\n"))
    yield Mode("chunked, chunk of 2^60", sends(chunked + b"fffffffffffffff\r\nA", then="hang"))
    yield Mode("chunked, no last chunk", sends(chunked + b"2\r\n{}\r\n"))
    yield Mode("chunked, no size", endless(chunked, b"1"))
    yield Mode("SSH", sends(b"SSH-2.0-OpenSSH_9.0\r\n"))
    yield Mode("TLS alert", sends(b"\x15\x03\x01\x00\x02\x02\x50"))
    yield Mode("HTTP/2 settings", sends(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
    yield Mode("JSON without HTTP", sends(json.dumps(completion()).encode()))
    yield Mode("status line garbage", sends(b"HTTP/1.1 OK\r\n\r\n{}"))
    yield Mode("header without colon", sends(http(completion()).replace(b"content-type:", b"ct")))
    yield Mode("random bytes", sends(bytes((k * 167 + 13) % 256 for k in range(5000))))


def keys() -> Iterator[Mode]:
    def echo(expected: str, **changes: Any) -> tuple[Behaviour, str]:
        return says(expected, **changes)

    apart = {"token": KEY, "logprob": -3.0}
    tops = [
        {"token": "A", "logprob": -0.2, "top_logprobs": [{"token": "A", "logprob": -0.2}, apart]}
    ]
    pieces = [
        {"token": piece, "top_logprobs": [{"token": piece, "logprob": -0.1}]}
        for piece in ("A", KEY[:9], KEY[9:])
    ]  # fmt: skip
    yield Mode("401, key in the body", sends(http(f"Incorrect API key: {KEY}", 401)))
    yield Mode("500, key in HTML", sends(http(f"<p>Bearer {KEY}</p>" * 50, 500)))
    yield Mode("400, key after 390 characters", sends(http("x" * 390 + KEY, 400)))
    yield Mode("400, key in headers", sends(http("{}", 400, x_key=KEY, retry_after=KEY)))
    yield Mode("key in the reason phrase", sends(http("{}", f"HTTP/1.1 503 {KEY}")))
    yield Mode("key as encoding", sends(http("{}", content_encoding=KEY)))
    yield Mode("key in another shape", sends(http({KEY: KEY, "choices": KEY})))
    yield Mode("key in the text", *echo("unparsed", message={"content": f"key {KEY}"}, choice={"logprobs": None}))  # fmt: skip
    yield Mode("key in a long text", *echo("unparsed", message={"content": f"{'w ' * 9000}{KEY}"}, choice={"logprobs": None}))  # fmt: skip
    yield Mode("key in the reasoning", *echo("answered", message={"reasoning": KEY}))
    yield Mode("key in the model", *echo("answered", model=KEY))
    yield Mode("key in the finish reason", *echo("unparsed", choice={"finish_reason": KEY}))
    yield Mode("key among the logprobs", *echo("answered", choice={"logprobs": {"content": tops}}))
    yield Mode("key in pieces among the tokens", *echo("answered", choice={"logprobs": {"content": pieces}}))  # fmt: skip


def outages() -> Iterator[Mode]:
    patient = ("--patience", "30", "--max-connections", "1")
    yield Mode("gone for 3 s after two answers", answer_well, "answered", patient, outage_s=3.0)
    yield Mode("never there", answer_well, "failed", up=False)


def modes() -> list[Mode]:
    """All ways."""
    sources = (outages, keys, sizes, wires, refusals, usages, logprobs, bodies, shapes, statuses)
    return [mode for source in sources for mode in source()]


# --- the server --------------------------------------------------------------------------------


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


# --- one run -----------------------------------------------------------------------------------


def write_items(path: Path) -> Path:
    """Two items that meet the fault, and two that do not."""
    rows = [
        {
            "id": f"{kind}-{number}",
            "prompt": f"{word} question {number}?",
            "candidates": [f"first {number}", f"second {number}"],
            "gold": 0,
        }
        for kind, word in (("faulty", "FAULTY"), ("good", "Fine"))
        for number in range(2)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def command(mode: Mode, items: Path, out: Path) -> list[str]:
    return [
        *("audit", str(items), "--model", "openai-api/faulty/m", "--out", str(out)),
        *("--resamples", "100", "--timeout", "1", "--max-retries", "1", "--patience", "2"),
        *mode.options,
    ]


def environment(server: FaultyServer) -> dict[str, str]:
    return {
        **os.environ,
        "FAULTY_BASE_URL": f"http://127.0.0.1:{server.port}/v1",
        "FAULTY_API_KEY": KEY,
    }


def run_apart(arguments: Sequence[str], env: Mapping[str, str]) -> tuple[int, str, float | None]:
    """Exit code, all output, and peak memory in MB of a process of its own."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "unswayed", *arguments], stdout=output, stderr=output, env=env
        )
        ends = time.monotonic() + LONGEST_S
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > ends:
                process.kill()
            time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    return process.returncode, text, usage.ru_maxrss / 1024


def run_here(arguments: Sequence[str], env: Mapping[str, str]) -> tuple[int, str, float | None]:
    """The same in this process, for tests; memory is not measured."""
    from unswayed.cli import main as unswayed

    before = dict(os.environ)
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    os.environ.update(env)
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = unswayed(list(arguments))
    finally:
        os.environ.clear()
        os.environ.update(before)
    output.seek(0)
    return code, output.read(), None


Runner = Callable[[Sequence[str], Mapping[str, str]], tuple[int, str, float | None]]


def observe(
    mode: Mode, server: FaultyServer, folder: Path, *, run: Runner = run_apart, most_mb: float = 300
) -> Outcome:
    """Run an audit against one mode and check every rule."""
    items, out = write_items(folder / "items.jsonl"), folder / "run"
    server.serve(mode)
    started = time.monotonic()
    code, text, peak_mb = run(command(mode, items, out), environment(server))
    seconds = time.monotonic() - started
    calls = read_json(out / "metrics.json").get("calls", {})
    record = read_json(out / "run.json")
    faulty, good = verdicts(out, "faulty"), verdicts(out, "good")
    broken = [
        *judged(mode, calls, faulty, good, stopped=bool(record.get("fatal"))),
        *(["a traceback"] if "Traceback" in text else []),
        *(["it hung"] if code < 0 else []),
        *(["the exit code"] if code != (0 if mode.expected in FINISHED else 3) else []),
        *(["memory"] if peak_mb is not None and peak_mb > most_mb else []),
        *(["the key leaked"] if leaked(out, text) else []),
    ]
    said = [line for line in text.splitlines() if line.startswith("unswayed: ")]
    return Outcome(
        mode.name, faulty, calls, seconds, peak_mb, code, " ".join(said[:1]), tuple(broken)
    )


FINISHED: Final = ("answered", "unparsed", "refused")


def judged(
    mode: Mode, calls: Mapping[str, Any], faulty: int, good: int, *, stopped: bool
) -> Iterator[str]:
    """Rules about counts that do not hold."""
    if mode.expected != "answered" and faulty:
        yield "a verdict from a failure"
    if mode.expected == "answered" and faulty != N_FAULTY:
        yield "an answer was lost"
    if mode.expected == "failed" and not stopped and calls.get("failed") != N_FAULTY:
        yield "failures were not counted"
    if mode.expected in {"refused", "unparsed"} and calls.get("unparsed") != N_FAULTY:
        yield "unparsed answers were not counted"
    if mode.expected == "refused" and calls.get("refused") != N_FAULTY:
        yield "refusals were not counted"
    if good != N_GOOD and not stopped:
        yield "a good answer was lost"


def read_json(path: Path) -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return loaded


def verdicts(out: Path, kind: str) -> int:
    """Calls about items of a kind that have a verdict."""
    if not (out / "answers.json").exists():
        return 0
    parts = json.loads((out / "answers.json").read_text(encoding="utf-8"))
    return sum(
        choice >= 0 or choice == TIE_CODE
        for part in parts
        for item, row in zip(part["item_ids"], part["choices"], strict=True)
        if item.startswith(kind)
        for choice in row
    )


def leaked(out: Path, text: str) -> bool:
    """Whether the key is in what was printed or in any file, packed rows of the store included."""
    secret = KEY.encode()
    if KEY in text or any(secret in path.read_bytes() for path in out.glob("*")):
        return True
    if not (out / "calls.sqlite").exists():
        return False
    connection = sqlite3.connect(f"file:{out / 'calls.sqlite'}?mode=ro", uri=True)
    try:
        rows = [
            *connection.execute("SELECT request, response FROM calls"),
            *connection.execute("SELECT request, failure FROM failures"),
        ]
    finally:
        connection.close()
    blobs = [bytes(blob)[SEALED:] for row in rows for blob in row]
    plain = [blob if blob[:1] == b"{" else zlib.decompress(blob) for blob in blobs]
    return any(secret in blob for blob in plain)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="ways whose name contains this")
    parser.add_argument("--memory-mb", type=float, default=300.0)
    add_write(parser, "reliability")
    given = parser.parse_args()
    chosen = [mode for mode in modes() if given.only in mode.name]
    if not chosen:
        parser.error(f"no way has {given.only!r} in its name")
    server = FaultyServer()
    outcomes = []
    print(f"{'way':34} verdicts failed refused unparsed     s   MB exit  message")
    try:
        for mode in chosen:
            with tempfile.TemporaryDirectory() as folder:
                seen = observe(mode, server, Path(folder), most_mb=given.memory_mb)
            outcomes.append(seen)
            counts = [seen.calls.get(name, "-") for name in ("failed", "refused", "unparsed")]
            bad = f"BROKEN: {', '.join(seen.broken)}. " if seen.broken else ""
            print(
                f"{seen.mode:34} {seen.verdicts:8} {counts[0]:>6} {counts[1]:>7} {counts[2]:>8} "
                f"{seen.seconds:5.1f} {seen.peak_mb or 0:4.0f} {seen.code:4}  {bad}{seen.message[:150]}",
                flush=True,
            )
    finally:
        server.close()
    broken = sum(bool(seen.broken) for seen in outcomes)
    slowest = max(seen.seconds for seen in outcomes)
    largest = max(seen.peak_mb or 0 for seen in outcomes)
    print()
    table = Table(("ways", "broke a rule", "slowest (s)", "most memory (MB)"))
    table.add(len(outcomes), broken, f"{slowest:.1f}", f"{largest:.0f}")
    if given.write:
        table.keep("reliability", "faults")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
