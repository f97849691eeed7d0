"""The HTTP server: routes, token, limits, metrics, and verdicts of any judge.

aiohttp is imported with this module, which is loaded when a server starts.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, cast

import aiohttp
import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from unswayed.backends.addresses import is_loopback
from unswayed.backends.faults import server_words
from unswayed.backends.typed_apis import APIS, Json, ServeError, need, parsed
from unswayed.base.errors import ItemError, UnswayedError, UsageError
from unswayed.calls.judge import Judge
from unswayed.calls.judging import JudgeFailure
from unswayed.model.decisions import Verdict
from unswayed.model.faces import named
from unswayed.model.items import Item, check_item

MOST_BYTES: Final = 4_000_000
"""Longest body of a request."""

NDJSON: Final = "application/x-ndjson"
AT_ONCE: Final = 64
"""Lines of a request that are judged together."""

SLOWEST: Final = 60
"""Seconds in which the body of a request must arrive."""

COUNTED: Final = (
    "requests choices flipped upstream_requests upstream_input_tokens failed refused passed_through"
)
"""Counters of `/metrics`; each is `unswayed_serve_…_total`."""

HEADERS: Final = {429: {"Retry-After": "1"}, 401: {"WWW-Authenticate": "Bearer"}}
"""Headers of errors by status."""


class RelayedError(ServeError):
    """An error of the model's server, which goes to the client as it is."""

    def __init__(self, reply: web.Response) -> None:
        super().__init__(reply.status, server_words(cast(bytes, reply.body)))
        self.reply = reply


class Server:
    """Routes with a token and limits; a subclass adds what it serves.

    Args:
        about: Answer of `/health`.
        token: Token that clients must send; empty for none.
        max_open: Largest number of open requests.
    """

    relays = ""  # route whose errors of the model's server are passed on as they are

    def __init__(self, about: Json, *, token: str = "", max_open: int = 64) -> None:
        self.about = about
        self.token = token
        self.max_open = max_open
        self.open = 0
        self.counts: Counter[str] = Counter(dict.fromkeys(COUNTED.split(), 0))

    def application(self) -> web.Application:
        """Return the application with its routes."""
        guard: Any = self.guard  # aiohttp marks the function; a method has the mark, too
        app = web.Application(client_max_size=MOST_BYTES, middlewares=[guard])
        app.add_routes([web.get("/health", self.health), web.get("/metrics", self.metrics)])
        app.cleanup_ctx.append(self.context)
        return app

    async def context(self, app: web.Application) -> Any:
        """Open what the server needs, and close it at the end."""
        yield

    @web.middleware
    async def guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Check token and limits, and turn errors into answers in the API's own form."""
        if request.path == "/health":
            return await self.health(request)
        asks = request.method == "POST"
        try:
            token = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
            valid = not self.token or hmac.compare_digest(token, b"Bearer " + self.token.encode())
            need(valid, 401, "the token is missing or wrong: send Authorization: Bearer TOKEN")
            if asks:
                await receive(request)
            need(self.open < self.max_open or not asks, 429, f"{self.max_open} requests are open")
            self.open += asks
            self.counts["requests"] += asks
            try:
                return await handler(request)  # type: ignore[no-any-return]  # aiohttp's handlers
            finally:
                self.open -= asks
        except web.HTTPException as error:
            said = f"{request.method} {request.path} is not served here"
            reply = self.refused(request, ServeError(error.status, said))
            reply.headers.update({k: v for k, v in error.headers.items() if k == "Allow"})
            return reply
        except ServeError as error:
            told = error
        except TimeoutError:
            told = ServeError(504, "the model did not answer in time")
        except aiohttp.ClientError as error:  # its text can hold headers
            told = ServeError(502, f"the model cannot be reached ({type(error).__name__})")
        return self.refused(request, told)

    def refused(self, request: web.Request, error: ServeError) -> web.Response:
        """Return an error, counted as the client's or as the model's."""
        failed = error.status >= 500 or isinstance(error, RelayedError)
        self.counts["failed" if failed else "refused"] += 1
        if isinstance(error, RelayedError) and request.path == self.relays:
            return error.reply
        body = APIS.get(request.path, APIS["/v1/decisions"]).error(error.status, str(error))
        headers = dict(HEADERS.get(error.status, {}))
        if isinstance(error, RelayedError) and "Retry-After" in error.reply.headers:
            headers["Retry-After"] = error.reply.headers["Retry-After"]
        return web.json_response(body, status=error.status, headers=headers)

    async def health(self, request: web.Request) -> web.Response:
        """Describe the server."""
        return web.json_response(self.about)

    async def metrics(self, request: web.Request) -> web.Response:
        """Return counters in the text format of Prometheus."""
        gauges = {"open": self.open, **self.gauges()}
        lines = [f"unswayed_serve_{name}_total {count}" for name, count in self.counts.items()]
        lines += [f"unswayed_serve_{name} {value}" for name, value in gauges.items()]
        return web.Response(text="\n".join([*lines, ""]))

    def gauges(self) -> dict[str, float]:
        """Return further figures by name."""
        return {}


async def receive(request: web.Request) -> None:
    """Read the body of a request, which aiohttp keeps; a slow client holds no place meanwhile."""
    try:
        async with asyncio.timeout(SLOWEST):
            await request.read()
    except TimeoutError:
        raise ServeError(408, f"the body took longer than {SLOWEST} seconds") from None
    except web.HTTPRequestEntityTooLarge:
        raise ServeError(413, f"the body exceeds {MOST_BYTES} bytes") from None
    except web.RequestPayloadError:
        request.content.feed_eof()  # the rest is not read
        raise ServeError(400, "the body does not have its encoding") from None


class JudgeRequest(msgspec.Struct, forbid_unknown_fields=True):
    """An item to judge."""

    prompt: Any
    candidates: list[Any]
    task: str = "pairwise"
    id: str = ""
    reference: str | None = None


class JudgeServer(Server):
    """`POST /v1/judge`: the verdict on one item."""

    def __init__(self, judge: Judge, **limits: Any) -> None:
        super().__init__({"model": judge.model, "method": judge.method.name}, **limits)
        self.judge = judge
        judge.shadow.check_repeatable()

    def application(self) -> web.Application:
        """Return the application with its routes."""
        app = super().application()
        app.router.add_post("/v1/judge", self.verdict)
        return app

    async def context(self, app: web.Application) -> Any:
        """Close the judge at the end."""
        yield
        await self.judge.aclose()

    def gauges(self) -> dict[str, float]:
        """Return the spending and the p-value of all tests for drift, and bring the counts of calls up to date."""
        counts = self.judge.counts
        self.counts["upstream_requests"] = counts.made
        self.counts["upstream_input_tokens"] = counts.input_tokens
        spent = round(counts.cost_usd, 9) or None
        figures = {"spent_usd": spent, "shadow_p_value": self.judge.shadow.looks.p_value}
        return {name: value for name, value in figures.items() if value is not None}

    async def verdict(self, request: web.Request) -> web.StreamResponse:
        """Judge the item of a request, or one item in each line of NDJSON."""
        raw = await request.read()
        if request.content_type == NDJSON:
            return await self.lines(request, raw.splitlines())
        outcome = await self.judged(raw)
        if isinstance(outcome, JudgeFailure):
            spent = self.judge.counts.budget_spent
            raise ServeError(402 if spent else 502, str(outcome))
        return web.Response(body=msgspec.json.encode(outcome), content_type="application/json")

    async def lines(self, request: web.Request, raws: Sequence[bytes]) -> web.StreamResponse:
        """Write one line for each line that is not blank: its verdict or its error."""
        reply = web.StreamResponse(headers={"Content-Type": NDJSON})
        await reply.prepare(request)
        raws = [raw for raw in raws if raw.strip()]
        for start in range(0, len(raws), AT_ONCE):
            some = await asyncio.gather(*map(self.line, raws[start : start + AT_ONCE]))
            await reply.write(b"".join(msgspec.json.encode(outcome) + b"\n" for outcome in some))
        return reply

    async def line(self, raw: bytes) -> Verdict | Json:
        """Return the verdict on the item of a line, or the error, which is counted."""
        try:
            outcome = await self.judged(raw)
        except ServeError as error:
            self.counts["failed" if error.status >= 500 else "refused"] += 1
            return {"error": str(error)}
        if isinstance(outcome, JudgeFailure):
            self.counts["failed"] += 1
            return {"item_id": outcome.item_id, "error": str(outcome)}
        return outcome

    async def judged(self, raw: bytes) -> Verdict | JudgeFailure:
        """Judge an item."""
        try:
            asked = msgspec.convert(parsed(raw), JudgeRequest)
            item = msgspec.convert(msgspec.to_builtins(asked), Item)
            if item.id:
                check_item(item)
            else:
                item = named(item)
            outcome = await anext(self.judge.averdicts([item]))
        except (ValueError, ItemError, UsageError) as error:
            raise ServeError(400, str(error)) from None
        except UnswayedError as error:
            raise ServeError(502, str(error)) from None
        self.judge.shadow.look()
        if not isinstance(outcome, JudgeFailure):
            self.counts["choices"] += 1
            self.counts["flipped"] += outcome.consistent is False
        return outcome


def run(server: Server, *, host: str, port: int, timeout: float) -> None:
    """Serve until a signal; open requests then finish within the timeout. Port 0 takes a free one.

    Raises:
        UsageError: If the address is taken, or others reach it and no token is set.
    """
    if not (server.token or is_loopback(host)):
        raise UsageError(
            f"--host {host} is reachable from outside. Set UNSWAYED_SERVE_TOKEN, or serve 127.0.0.1."
        )
    logging.getLogger("aiohttp.server").addFilter(  # it would quote headers, keys among them
        lambda told: not (told.exc_info and isinstance(told.exc_info[1], HttpProcessingError))
    )
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family)
        said = f"serving {server.about['model']} at http://{host}:{listening.getsockname()[1]}"
        web.run_app(
            server.application(),
            sock=listening,
            shutdown_timeout=timeout,
            handler_cancellation=True,
            access_log=None,
            print=lambda _: print(said, flush=True),
        )
    except OSError as error:
        raise UsageError(
            f"cannot serve {host}:{port}: {error.strerror or error}. Choose another --port."
        ) from None
