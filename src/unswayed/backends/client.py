"""A thin asynchronous chat client: any number of queries in, responses or failures out.

One backend is one model at one address. What differs between the APIs - fields, headers, shapes -
is a `Dialect`; everything else is here: lazy pulling, concurrency, retries, giving up, costs.
A query is pulled from the iterable at the moment its request may start, so at most
`max_connections` are known at any time, and none is pulled after a fatal failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

import msgspec

from unswayed.backends import BackendSettings
from unswayed.backends.addresses import Address, Service, resolve
from unswayed.backends.dialect import Dialect, Traits, Transport
from unswayed.backends.faults import Fault, HttpReply, bad_response, fault_of, lost
from unswayed.backends.pacing import Clock, Concurrency, Gate, Patience, Spacing, backoff_s
from unswayed.backends.prices import FREE, Price, load_prices
from unswayed.backends.protocol import Answer, Backend, Outcome, Wait, unanswered
from unswayed.backends.workers import Attempts, Line, Workers, is_passing
from unswayed.base.errors import BadResponseError, ServerError, UsageError
from unswayed.model.calls import Query, Request, Response

MOST_CONNECTIONS: Final = 64
OTHER_FILES: Final = 24
"""Files open at once in addition to connections: records, packages, a report."""


class HttpBackend(Backend):
    """A model behind HTTP.

    Attributes:
        most_local: Default of `max_connections` for a server on this machine.
    """

    most_local = MOST_CONNECTIONS

    def __init__(
        self,
        model: str,
        dialect: Dialect,
        address: Address,
        settings: BackendSettings,
        *,
        price: Price | None,
        clock: Clock | None = None,
        connect: Callable[[], Transport] | None = None,
    ) -> None:
        settings = settings.valid()
        most = self.most_local if address.is_loopback else MOST_CONNECTIONS
        self.max_connections = settings.max_connections or most
        self.model = model
        self.address = address
        self.server = address.shown
        self.traits = dialect.traits  # what the server is known to accept
        self.gives_logprobs = dialect.traits.logprobs != 0
        self.extra_body = settings.extra_body
        if twice := json.loads(self.extra_body or "{}").keys() & {*dialect.fields, "n", "stream"}:
            raise UsageError(f"extra_body: unswayed sets {min(twice)} itself. Leave it out.")
        self.dialect = dialect
        self.settings = settings
        self.clock = clock or Clock()
        self.share_of_price = 1.0  # less in batches
        self.patience = Patience(settings.patience, self.clock)
        self._price = price
        self._connect = connect or self._connect_http
        self._concurrency = Concurrency(self.max_connections, self.clock)
        self._requests = Spacing(settings.requests_per_minute)
        self._tokens = Spacing(settings.tokens_per_minute)
        self._lines: dict[asyncio.AbstractEventLoop, Line] = {}
        self._runs: set[Attempts] = set()
        self._seen_logprobs = False

    @classmethod
    def open(
        cls, service: Service, model: str, dialect: Dialect, settings: BackendSettings
    ) -> Self:
        """Return a model of a service, its address and key from the environment, its price from the table."""
        prices = load_prices(settings.prices)
        address = resolve(
            service,
            base_url=settings.base_url,
            environ=os.environ,
            model=model,
            needs_key=not settings.pricing_only,
        )
        price = prices.find(model, own_address=address.is_own)
        if price is None and address.is_loopback:
            price = FREE
        return cls(model, dialect, address, settings, price=price)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model} at {self.address.shown}>"

    async def answer(self, queries: Iterable[Query]) -> AsyncGenerator[Answer, None]:
        """Answer every query once, in any order, pulling from `queries` lazily."""
        if not self._runs:
            self.patience.restart()
        run = Workers(self, self._line_here(), iter(queries))
        self._runs.add(run)
        try:
            while True:
                while run.done:
                    yield run.take()
                if not run.finished:
                    await run.wait()
                elif not await run.go_on():
                    break
            if run.error is not None:
                raise run.error
        finally:
            self._runs.discard(run)
            await run.close()

    async def call(self, query: Query) -> Outcome:
        """Answer one query, in the caller's own task."""
        if not self._runs:
            self.patience.restart()
        line = self._line_here()
        calls = Attempts(self, line)
        self._runs.add(calls)
        try:
            if not await line.gate.enter(calls.stop):
                return unanswered(query, self.model)  # closed before its turn came
            outcome = await calls.call(query)
            if is_passing(outcome):
                await line.gate.nap(backoff_s(outcome.attempts, self.clock), calls.stop)
                if await line.gate.enter(calls.stop):
                    return await calls.call(query, outcome)
            return outcome
        finally:
            self._runs.discard(calls)

    @property
    def waiting(self) -> Wait | None:
        """Reason that all calls wait now; None without one."""
        pause_s = max([line.gate.pause_s for line in tuple(self._lines.values())], default=0.0)
        left_s = self.patience.left_s
        if not self.patience.reason or (pause_s == 0.0 and left_s == math.inf):
            return None
        return Wait(
            server=urlsplit(self.address.url).netloc,
            reason=self.patience.reason,
            next_try_s=pause_s,
            gives_up_at=None if left_s == math.inf else self.clock.wall() + left_s,
        )

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        """Price in USD of a call of that size at most; None where no price is known.

        For models that think, the tokens allowed for thinking are part of the price.
        """
        if self._price is None:
            return None
        tokens = output_tokens + self.traits.thinking_tokens
        return self.share_of_price * self._price.of(input_tokens, tokens)

    async def close(self) -> None:
        """Stop what is under way and close all connections."""
        for run in tuple(self._runs):
            await run.close()
        lines, self._lines = self._lines, {}
        here = lines.pop(asyncio.get_running_loop(), None)
        for line in lines.values():
            line.transport.abandon()
        if here is not None:
            await here.transport.close()

    def _connect_http(self) -> Transport:
        from unswayed.backends.transport import HttpTransport

        return HttpTransport(
            self.address,
            self.dialect.path,
            self.dialect.headers(self.address.key.reveal()),
            connections=self.max_connections,
            timeout_s=self.settings.timeout,
        )

    def _line_here(self) -> Line:
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop)
        if line is None:
            for other in [other for other in tuple(self._lines) if not other.is_running()]:
                if (ended := self._lines.pop(other, None)) is not None:
                    ended.transport.abandon()
            _check_room(self.max_connections + OTHER_FILES)
            gate = Gate(self._concurrency, self._requests, self._tokens, self.clock)
            line = self._lines[loop] = Line(loop, self._connect(), gate)
        return line

    async def attempt(
        self, request: Request, traits: Traits, line: Line
    ) -> tuple[Response | Fault, float]:
        """One attempt, with the seconds it took; the caller has entered the gate."""
        body = self.dialect.encode(request, traits)
        expected = 0
        if self.settings.tokens_per_minute is not None:
            words = sum(len(message.content) for message in request.messages)
            expected = words // 4 + request.max_tokens  # four characters to a token, and the cap
            line.gate.book_tokens(expected)
        started = self.clock.now()
        outcome = await self._post(body, line.transport)
        took = self.clock.now() - started
        if isinstance(outcome, Response):
            line.gate.answered()
            self.patience.answered()
            if expected and outcome.usage_known:
                used = outcome.input_tokens + outcome.output_tokens
                line.gate.correct_tokens(used - expected)
            return outcome, took
        self.patience.failed(outcome)
        if outcome.busy:
            line.gate.pushed_back(started, outcome.retry_after_s, self.patience.most_pause_s)
        return outcome, took

    async def _post(self, body: bytes, transport: Transport) -> Response | Fault:
        try:
            reply = await transport.post(body)
        except ServerError as error:
            return lost(error, self.address)
        return self.read(reply)

    def read(self, reply: HttpReply) -> Response | Fault:
        """Read a whole reply of the server."""
        fault = fault_of(reply, self.address, model=self.model, wall=self.clock.wall())
        if fault is not None:
            return fault
        try:
            return self.dialect.decode(reply.body)
        except BadResponseError as error:
            return bad_response(f"{self.address.shown}: {error}", self.address)

    def learn(self, traits: Traits) -> None:
        """Keep traits that a refused request was changed to, and was accepted with."""
        self.traits = traits
        self.remarks = traits.changes(self.dialect.traits)
        self.gives_logprobs = self.gives_logprobs and traits.logprobs != 0

    def finish(
        self, response: Response, request: Request, traits: Traits, *, took: float, attempts: int
    ) -> Response:
        """Return a response with its cost and timing; whether it has the logprobs it should is noted."""
        if request.top_logprobs and traits.logprobs != 0 and response.text:
            if response.top_logprobs is not None:
                self._seen_logprobs = self.gives_logprobs = True
            elif not self._seen_logprobs:
                self.gives_logprobs = False
        cost = None
        if self._price is not None and response.usage_known:
            cost = self.share_of_price * self._price.of(
                response.input_tokens, response.output_tokens, response.cached_tokens
            )
        # The response is new and known to nobody yet; a copy would cost as much as decoding it.
        msgspec.structs.force_setattr(response, "cost_usd", cost)
        msgspec.structs.force_setattr(response, "latency_s", took)
        msgspec.structs.force_setattr(response, "retries", attempts - 1)
        return _without_key(response, self.address)


def _check_room(n_more: int) -> None:
    """Raise an error before any call is paid for if `n_more` more files cannot be open at once."""
    n_free = 0
    with contextlib.ExitStack() as opened, contextlib.suppress(OSError):
        while n_free < n_more:
            opened.enter_context(Path(os.devnull).open())
            n_free += 1
    if n_free < n_more:
        limit = os.sysconf("SC_OPEN_MAX")
        needed = limit - n_free + n_more
        raise UsageError(
            f"the limit of open files and connections is {limit}, but this process may need {needed}; no "
            f"call was made. Raise the limit (ulimit -n {max(256, 1 << needed.bit_length())}) or lower "
            "--max-connections."
        )


def _without_key(response: Response, address: Address) -> Response:
    """Return the response, with the key hidden should the server have put it there."""
    key = address.key
    if not key:
        return response
    texts = [response.text, response.reasoning or "", response.model or "", response.finish_reason]
    texts.append("".join(response.tokens or ()))  # it may come in pieces
    texts += [top.token for ranked in response.top_logprobs or () for top in ranked]
    if not any(key.occurs_in(text) for text in texts):
        return response
    return msgspec.structs.replace(
        response,
        text=key.hide(response.text),
        reasoning=None if response.reasoning is None else key.hide(response.reasoning),
        model=None if response.model is None else key.hide(response.model),
        finish_reason=key.hide(response.finish_reason),
        tokens=None,  # its pieces could be put together again
        top_logprobs=None,
    )
