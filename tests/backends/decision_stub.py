"""A decision server with planted place and name bias: System One and OpenAI decisions, with planned faults.

In a test: `with DecisionStub() as stub:` and `stub.url`. The server runs in threads of the test's process, so
synchronous and asynchronous clients can use it.

The score of an option is `2 * liking(text)`, plus `first` in the first place, plus `named` if its name is
`favoured`; the probabilities are the softmax. A state or an option text that begins with `fault:KIND` makes the
request misbehave; `FAULTS` lists the kinds.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import pytest

FAULTS = {
    "500": "status 500",
    "429": "status 429 with Retry-After: 7",
    "400": "status 400, as for an unknown model",
    "422": "status 422, as for a bad question",
    "garbage": "200 with HTML",
    "empty": "200 without answers",
    "nan": "the first probability is NaN",
    "sum": "the probabilities add up to 1.5",
    "zero": "the last option has probability 0; the first option gets its share",
    "other-options": "the first option has another name",
    "missing": "the first question has no answer",
    "refusal": "each question is refused (OpenAI), the answer says so (System One has no such answer)",
    "cut": "usage says that the state was cut",
    "dropped": "usage counts dropped tokens of the state",
    "rounded": "probabilities with two decimals",
    "slow": "the answer comes after 30 seconds",
}
MOST_QUESTIONS = {"systemone": 64, "decisions": 400}
MOST_OPTIONS = {"systemone": 26, "decisions": 255}
FIELDS = {
    "systemone": {"model", "state", "assets", "questions"},
    "decisions": {
        *("model", "input", "questions", "prompt_cache_key"),
        *("prompt_cache_options", "safety_identifier"),
    },
}
BOTH = pytest.mark.parametrize("api", FIELDS)
Option = tuple[Any, str]
"""Name and text."""


def liking(text: str) -> float:
    """How much the stub likes a text, from 0 to 1: what an unbiased judge would go by."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32


def rows(count: int = 60, n: int = 4) -> list[dict[str, Any]]:
    """Questions whose right answer is what the stub likes most."""
    made = []
    for i in range(count):
        texts = [f"answer {i} {k}" for k in range(n)]
        best = max(range(n), key=lambda k: liking(texts[k]))
        made.append({"id": f"q{i}", "task": "mcq", "prompt": f"Question {i}?", "candidates": texts})
        made[-1]["gold"] = best
    return made


def softmax(scores: Sequence[float]) -> list[float]:
    weights = [math.exp(score) for score in scores]
    return [weight / math.fsum(weights) for weight in weights]


class BadRequestError(Exception):
    """A request that the server refuses, with its status."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class DecisionStub:
    """See the module's docstring.

    Args:
        first: Score for the first place.
        named: Score for the option that is called `favoured`.
        mixture: Where given, a score question answers with `1 - mixture` of its content's distribution and
            `mixture` of a falling line over the places, in place of `first` and `named`.
        mixes: Score for the last option of every question but the first of a request: a server that renders
            all questions of a request into one prompt.
        noise: Share by which the first option's probability changes with the number of the request.
    """

    def __init__(
        self,
        *,
        first: float = 1.2,
        named: float = 0.4,
        favoured: str = "A",
        mixture: float | None = None,
        mixes: float = 0.0,
        noise: float = 0.0,
        latency_s: float = 0.0,
    ) -> None:
        self.first, self.named, self.favoured = first, named, favoured
        self.mixture, self.mixes, self.noise = mixture, mixes, noise
        self.latency_s = latency_s
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.input_tokens = 0  # billed
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Base address, with `/v1`."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def questions(self) -> int:
        """Questions that were asked in all requests."""
        return sum(len(body["questions"]) for body in self.bodies)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def probabilities(self, options: Sequence[Option], *, shift: float = 0.0) -> list[float]:
        """The probability of each option, in the order given; `shift` goes to the last one."""
        scores = [2 * liking(text) + self.named * (name == self.favoured) for name, text in options]
        scores[0] += self.first
        scores[-1] += shift
        return softmax(scores)

    def answer(self, api: str, body: dict[str, Any], number: int) -> tuple[int, Any]:
        """Status and body (text or JSON) for a request of `systemone` or `decisions`."""
        questions = _questions(api, body)
        state = body["state" if api == "systemone" else "input"]
        texts = [state if isinstance(state, str) else json.dumps(state)]
        texts += [text for _, question in questions for _, text in options_of(api, question)]
        faults = [text[6:].split()[0] for text in texts if text.startswith("fault:")]
        fault = faults[0] if faults else ""
        if fault == "slow":
            time.sleep(30)
        if fault.isdigit():
            words = "the server is pinned to 'stub'" if fault == "400" else f"planned fault {fault}"
            raise BadRequestError(int(fault), words)
        if fault == "garbage":
            return 200, "<html>gateway says hello</html>"
        made = {
            name: self._answer_to(api, question, fault, place, number)
            for place, (name, question) in enumerate(questions)
        }
        if fault == "missing":
            made.pop(questions[0][0])
        if fault == "empty":
            made = {}
        used = sum(len(json.dumps([state, question])) // 4 for _, question in questions)
        usage: dict[str, Any] = {"input_tokens": used, "output_tokens": 0}
        if api == "decisions":
            usage |= {
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": used,
            }
        if fault == "cut":
            usage["truncated"] = True
        if fault == "dropped":
            usage["state_tokens_dropped"] = 12
        with self._lock:
            self.input_tokens += used
        answers = made if api == "systemone" else list(made.values())
        return 200, {"model": "stub-1", "answers": answers, "usage": usage}

    def _answer_to(
        self, api: str, question: dict[str, Any], fault: str, place: int, number: int
    ) -> dict[str, Any]:
        kind, options = question["type"], options_of(api, question)
        named = {} if api == "systemone" else {"name": question.get("name")}
        if fault == "refusal":
            return {"type": "refusal", **named}
        if kind == "predicate":
            return {"type": kind, **named, "probability": liking(question["instructions"])}
        probs = self.probabilities(options, shift=self.mixes * (place > 0))
        if self.noise:
            chance = (0, 1, -1)[(number - 1) // 4 % 3]  # four requests alike, the next four not
            probs[0] += self.noise * chance * min(probs[0], 1 - probs[0])
            probs = [p / math.fsum(probs) for p in probs]
        if kind == "score" and self.mixture is not None:
            own, n = softmax([2 * liking(text) for _, text in options]), len(options)
            line = [2 * (n - k) / (n * (n + 1)) for k in range(n)]
            probs = [
                (1 - self.mixture) * p + self.mixture * q for p, q in zip(own, line, strict=True)
            ]
        if fault == "zero":
            probs = [probs[0] + probs[-1], *probs[1:-1], 0.0]
        if fault == "rounded":
            probs = [round(p, 2) for p in probs]
        if fault == "nan":
            probs[0] = math.nan
        if fault == "sum":
            probs = [1.5 * p for p in probs]
        if kind == "noul":
            return {"type": kind, "noul": probs[0]}
        best = max(range(len(probs)), key=probs.__getitem__)
        even = 1 / len(probs)
        sure = max(0.0, (probs[best] - even) / (1 - even)) if len(probs) > 1 else 1.0
        if kind == "score":
            score = math.fsum(k * p for k, p in enumerate(probs))
            rows = [(str(k) if api == "systemone" else k, p) for k, p in enumerate(probs)]
            if fault == "other-options":
                rows[0] = ("9" if api == "systemone" else 9, rows[0][1])
            said: dict[str, Any] = {"type": kind, **named, "score": score, "confidence": sure}
            if api == "systemone":
                legend = {str(k): text for k, (_, text) in enumerate(options)}
                return {**said, "legend": legend, "probabilities": dict(rows)}
            labels = [name for name, _ in options]
            return said | {
                "probabilities": [
                    {"value": k, "label": label, "probability": p}
                    for (k, p), label in zip(rows, labels, strict=True)
                ]
            }
        names = [name for name, _ in options]
        if fault == "other-options":
            names[0] = "none of them"
        said = {"type": kind, **named, "choice": names[best], "confidence": sure}
        if api == "systemone":
            return {**said, "probabilities": dict(zip(names, probs, strict=True))}
        rows = [{"value": v, "probability": p} for v, p in zip(names, probs, strict=True)]
        return {**said, "probabilities": rows}


def options_of(api: str, question: dict[str, Any]) -> list[Option]:
    """Name and text of each option of a question, in its order; the name is the text where there is none."""
    kind, given = question["type"], question.get("criteria")
    if kind == "noul":
        given = given or {}
        return [(name, given.get(name) or name) for name in ("true", "false")]
    if api == "systemone":
        pairs = given.items() if kind == "choice" else enumerate(given)
        return [(name, name if text is None else text) for name, text in pairs]
    rows = question.get("choices" if kind == "choice" else "levels", [])
    field = "value" if kind == "choice" else "label"
    return [(row[field], row.get("description") or str(row[field])) for row in rows]


def _questions(api: str, body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Questions by name; what a real server refuses is refused."""
    given = body.get("questions")
    if unknown := body.keys() - FIELDS[api]:
        raise BadRequestError(422, f"extra fields not permitted: {min(unknown)}")
    if not given or not isinstance(given, dict if api == "systemone" else list):
        raise BadRequestError(422, "questions: wrong or missing")
    named = list(
        given.items() if api == "systemone" else ((str(k), q) for k, q in enumerate(given))
    )
    if len(named) > MOST_QUESTIONS[api]:
        raise BadRequestError(422, f"at most {MOST_QUESTIONS[api]} questions")
    for _, question in named:
        names = [(type(name), name) for name, _ in options_of(api, question)]
        if len(names) > MOST_OPTIONS[api] or len(set(names)) < len(names):
            raise BadRequestError(422, f"at most {MOST_OPTIONS[api]} options, each once")
    return named


def _error(api: str, status: int, words: str) -> Any:
    if api == "decisions":
        return {"error": {"message": words, "type": "planned", "param": None, "code": None}}
    return {
        "detail": [{"loc": ["body"], "msg": words, "type": "value_error"}]
        if status == 422
        else words
    }


def _handler(stub: DecisionStub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # headers and body leave together

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            api = self.path.partition("?")[0].rpartition("/")[2]
            try:
                self._answer(api, raw)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def _answer(self, api: str, raw: bytes) -> None:
            if api not in FIELDS:
                return self._send(404, json.dumps({"detail": "Not Found"}))
            try:
                body = json.loads(raw)
                with stub._lock:
                    stub.bodies.append(body)
                    stub.paths.append(self.path)
                    stub.headers.append({k.lower(): v for k, v in self.headers.items()})
                    number = len(stub.bodies)
                time.sleep(stub.latency_s)
                status, said = stub.answer(api, body, number)
            except BadRequestError as error:
                status, said = error.status, _error(api, error.status, str(error))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                status, said = 422, _error(api, 422, f"not a request: {error!r}")
            return self._send(status, said if isinstance(said, str) else json.dumps(said))

        def _send(self, status: int, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            if status == 429:
                self.send_header("retry-after", "7")
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def log_message(self, *args: object) -> None:
            """Keep quiet."""

    return Handler
