"""Some hundred ways for a server to misbehave."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Final

from reliability.faulty_server import (
    KEY,
    Mode,
    answer_well,
    bomb,
    completion,
    endless,
    head,
    http,
    says,
    sends,
)

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
    yield Mode("key in the text", *says("unparsed", message={"content": f"key {KEY}"}, choice={"logprobs": None}))  # fmt: skip
    yield Mode("key in a long text", *says("unparsed", message={"content": f"{'w ' * 9000}{KEY}"}, choice={"logprobs": None}))  # fmt: skip
    yield Mode("key in the reasoning", *says("answered", message={"reasoning": KEY}))
    yield Mode("key in the model", *says("answered", model=KEY))
    yield Mode("key in the finish reason", *says("unparsed", choice={"finish_reason": KEY}))
    yield Mode("key among the logprobs", *says("answered", choice={"logprobs": {"content": tops}}))
    yield Mode("key in pieces among the tokens", *says("answered", choice={"logprobs": {"content": pieces}}))  # fmt: skip


def outages() -> Iterator[Mode]:
    patient = ("--patience", "30", "--max-connections", "1")
    yield Mode("gone for 3 s after two answers", answer_well, "answered", patient, outage_s=3.0)
    yield Mode("never there", answer_well, "failed", up=False)


def modes() -> list[Mode]:
    """All ways."""
    sources = (outages, keys, sizes, wires, refusals, usages, logprobs, bodies, shapes, statuses)
    return [mode for source in sources for mode in source()]
