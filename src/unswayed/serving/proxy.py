"""Answers of a decision model that do not depend on the order of the options."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, Literal, NamedTuple

import aiohttp
import numpy as np
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from unswayed.backends.client import HttpBackend
from unswayed.backends.dialect import token_count
from unswayed.backends.packed import MALFORMED, MOST_PROBED, is_cut, is_mixed
from unswayed.backends.transport import LARGEST_BODY, plain_body, proxy_for
from unswayed.backends.typed_apis import (
    APIS,
    JOINT,
    Json,
    ServeError,
    SystemOne,
    TypedQuestion,
    distribution,
    need,
    parsed,
)
from unswayed.base.errors import UsageError
from unswayed.methods.voting import log_mean_by_candidate, mean_by_candidate
from unswayed.model.items import Item
from unswayed.model.permutations import MOST_CANDIDATES, Order, invert, orders, reverse
from unswayed.model.presentation import Ask
from unswayed.serving.correction import Correction
from unswayed.serving.server import RelayedError, Server

Orders = Literal["cyclic", "reverse", "williams", "all", "none"]
Mean = Literal["arithmetic", "log"]

SETS: Final = {"all": "full"}
"""Sets of orders that are called otherwise here."""

MOST_QUESTIONS: Final = 64
"""Questions of one request: the least limit among known servers."""
MOST_ALL: Final = 4
"""Options of a question that may be asked in all orders."""
IDLE: Final = 1.0
"""Seconds to keep a connection without a request: a server that closes it first loses the next one."""

HOPS: Final = frozenset(
    [
        "connection",
        "keep-alive",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "content-length",
        "host",
    ]
)
"""Headers of one connection, which are not passed on."""
REPLACED: Final = HOPS | {"content-type", "content-encoding", "accept-encoding"}
"""Headers of a request that the server writes itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Settings of a decision server."""

    orders: Orders = "cyclic"
    mean: Mean = "arithmetic"
    polarity: bool = False  # whether described sides of yes-no questions are exchanged
    budget: float | None = None  # USD


class Spread(NamedTuple):
    """A question and the orders it is asked in."""

    question: TypedQuestion  # as the client put it
    first: Order  # its options in canonical order
    orders: tuple[Order, ...]  # of the canonical options; empty for a question left as it is
    item: Item | None = None  # of a question that a fitted method corrects
    asks: tuple[Ask, ...] = ()

    def variants(self, name: str) -> dict[str, TypedQuestion]:
        """Return the question in all orders, by name."""
        sorted_ = self.question.arranged(self.first)
        if len(self.asks or self.orders) < 2:
            return {name: sorted_}
        shown: list[tuple[Order, ...]] = [tuple(ask.presentation) for ask in self.asks]
        shown = shown or [(order,) for order in self.orders]
        return {f"{name}{JOINT}{k}": sorted_.arranged(*way) for k, way in enumerate(shown)}

    def mean(self, said: Sequence[Sequence[float]], mean: Mean) -> tuple[list[float], bool]:
        """Return the mean of probabilities by place for the options as the client put them.

        The second value tells whether the orders name different options.
        """
        rows = np.array([said])
        for column, order in enumerate(self.orders):
            rows[0, column] = rows[0, column, list(invert(order))]
        cells, weights = np.ones(rows.shape[:2], dtype=np.bool_), np.ones(rows.shape[1])
        mean_of = mean_by_candidate if mean == "arithmetic" else log_mean_by_candidate
        probs = mean_of(rows, cells, weights)[0]
        flipped = len(set(rows[0].argmax(axis=1).tolist())) > 1
        return self.restored(probs.tolist()), flipped

    def restored(self, probs: Sequence[float]) -> list[float]:
        """Return probabilities of the canonical options for the options as the client put them."""
        return [probs[place] for place in invert(self.first)] if self.first else list(probs)


class DecisionServer(Server):
    """Both APIs in front of a model of one of them."""

    def __init__(
        self,
        backend: HttpBackend,
        serving: Serving,
        *,
        correction: Correction | None = None,
        **limits: Any,
    ) -> None:
        model, self.backend, self.address = backend.model, backend, backend.address
        shown = model.removesuffix("/")  # no name: any that a request has
        super().__init__({"model": shown, "orders": serving.orders, "mean": serving.mean}, **limits)
        provider, _, self.name = model.partition("/")
        self.relays = f"/v1/{provider}"
        self.api: SystemOne = APIS[self.relays]
        self.serving, self.timeout = serving, backend.settings.timeout
        self.correction = correction
        if correction is not None:
            self.about["method"] = correction.method.name
            correction.shadow.check_repeatable()
        if serving.budget is not None and backend.price(0, 0) is None:
            raise UsageError(f"{model} has no known price. Give --prices, or leave --budget out.")
        self.spent = self.held = 0.0
        self.apart: bool | None = None  # whether questions asked together influence each other
        self.probing = asyncio.Lock()

    def application(self) -> web.Application:
        """Return the application with its routes."""
        app = super().application()
        app.add_routes([web.post(route, self.decide) for route in APIS])
        return app

    async def context(self, app: web.Application) -> Any:
        """Keep connections to the model."""
        url = self.address.join(self.api.path)
        self.url = URL(url, encoded=True)
        self.proxy = None if self.address.is_loopback else proxy_for(url)
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self.timeout),
            connector=aiohttp.TCPConnector(limit=self.max_open, keepalive_timeout=IDLE),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        ) as self.http:
            yield

    def gauges(self) -> dict[str, float]:
        """Return the spending, and the p-value of all tests for drift."""
        priced = self.backend.price(0, 0) is not None
        figures = {"spent_usd": round(self.spent, 9)} if priced else {}
        if self.correction is not None and self.correction.shadow.looks.p_value is not None:
            figures["shadow_p_value"] = self.correction.shadow.looks.p_value
        return figures

    async def decide(self, request: web.Request) -> web.Response:
        """Answer one request."""
        client, raw = APIS[request.path], await request.read()
        body, own = client.body(raw, self.name), client is self.api
        asked = {} if own and self.serving.orders == "none" else client.read(body)
        spreads = {name: self.spread(question, body) for name, question in asked.items()}
        if own and not any(spread.orders for spread in spreads.values()):
            self.counts["passed_through"] += 1
            sized = body.get("questions")
            count = len(sized) if isinstance(sized, dict | list) else 1
            reply, _ = await self.post(raw, count, request)
            self.counts["failed"] += reply.status >= 400
            return reply
        sent = {k: q for name, spread in spreads.items() for k, q in spread.variants(name).items()}
        try:
            said, answers = await self.ask(client, body, sent, request)
            parts = {name: self.merged(client, name, s, answers) for name, s in spreads.items()}
            usage = said["usage"] if own else client.usage(said["usage"])
        except MALFORMED as error:
            raise ServeError(502, f"the model's answer does not follow its API: {error}") from None
        more = said if own else {"model": said.get("model")}
        return web.json_response({**more, "answers": client.collect(parts), "usage": usage})

    def spread(self, question: TypedQuestion, body: Json) -> Spread:
        """Return a question with its orders, or with the one that a fitted method corrects."""
        n, kind, name = len(question.options), question.kind, self.serving.orders
        own = tuple(range(n))
        if name == "none" or not n or (kind == "noul" and not self.serving.polarity):
            return Spread(question, own, ())
        if kind != "choice":  # a scale has no other orders, and yes and no have two
            return Spread(question, own, reverse(n) if n > 1 else (own,))
        named = SETS.get(name, name)
        most = MOST_ALL if name == "all" else MOST_CANDIDATES.get(named, n)
        need(n <= most, 400, f"orders {name}: at most {most} options, got {n}")
        api, options = question.api, question.options
        first = tuple(sorted(own, key=lambda place: api.key(options[place].value)))
        chosen = orders(named, n) if n > 1 else (own,)
        spread, fitted = Spread(question, first, chosen), self.correction
        if fitted is None or not (order := fitted.order([option.name for option in options])):
            return spread
        texts = [options[place].text for place in order]
        content = [body.get(api.state), question.raw.get("instructions"), *texts]
        item = fitted.item(json.dumps(content), n)
        return spread._replace(first=order, item=item, asks=fitted.asks(item))

    def merged(
        self, client: SystemOne, name: str, spread: Spread, answers: Mapping[str, Json]
    ) -> Json:
        """Return the answer to a question from the answers in all its orders."""
        variants, own = spread.variants(name), client is self.api
        replies = [answers[key] for key in variants]
        if own and not spread.orders:
            if spread.question.kind == "noul":
                self.api.probabilities(spread.question, replies[0])  # checked, and left as it is
            return replies[0]
        said = []
        for variant, answer in zip(variants.values(), replies, strict=True):
            pair = self.api.probabilities(variant, answer)
            if pair is None:
                return client.answer(spread.question, None, answer if own else {})
            said.append(pair[0])
        self.counts["choices"] += bool(spread.orders)
        if self.correction is not None and spread.item is not None:
            fitted = self.correction.corrected(spread.item, spread.asks, said)
            probs = spread.restored(distribution(fitted)[0])
            return client.answer(spread.question, probs, replies[0] if own else {})
        probs, flipped = spread.mean(said, self.serving.mean)
        self.counts["flipped"] += flipped
        return client.answer(spread.question, probs, replies[0] if own else {})

    async def ask(
        self, client: SystemOne, body: Json, sent: Mapping[str, TypedQuestion], request: web.Request
    ) -> tuple[Json, dict[str, Json]]:
        """Return the first response with the usage of all, and the answers by name."""

        async def answered(*parts: Sequence[str]) -> tuple[Json, dict[str, Json]]:
            asked = [self.api.write(body, {k: sent[k] for k in part}, client) for part in parts]
            raws = [json.dumps(part, allow_nan=False).encode() for part in asked]
            posts = map(self.post, raws, map(len, parts), repeat(request))
            replies = await asyncio.gather(*posts, return_exceptions=True)
            answers, said, usage = dict[str, Json](), Json(), Json()
            for part, reply in zip(parts, replies, strict=True):
                if isinstance(reply, BaseException):
                    raise reply
                response, own = reply
                status, usage_ = response.status, own.get("usage") or {}
                need(status == 200 or status >= 400, 502, f"the model's server answered {status}")
                if status != 200:
                    raise RelayedError(response)
                answers |= zip(part, self.api.answers(own, part), strict=True)
                cut = "the model cut the state and would decide on part of it"
                need(not is_cut(usage_), 502, cut)
                usage = summed(usage, usage_)
                said = said or own
            return {**said, "usage": usage}, answers

        names = list(sent)
        async with asyncio.timeout(3 * self.timeout), self.probing:  # three requests in turn
            some = [name for name in names if JOINT in name][:MOST_PROBED]
            if self.apart is None and some:
                alone, again = [await answered(*([name] for name in some)) for _ in range(2)]
                packed = await answered(some)
                self.apart = self.differ(sent, alone[1], again[1], packed[1])
        size = 1 if self.apart else MOST_QUESTIONS
        return await answered(*(names[k : k + size] for k in range(0, len(names), size)))

    def differ(self, asked: Mapping[str, TypedQuestion], *said: Mapping[str, Json]) -> bool:
        """Return True if questions get other answers together than alone, beyond the noise of asking twice."""
        alone, again, packed = (
            [p for k in answers for p in (self.api.probabilities(asked[k], answers[k]) or [()])[0]]
            for answers in said
        )
        noise, difference = (
            max((abs(a - b) for a, b in zip(alone, other, strict=True)), default=0.0)
            for other in (again, packed)
        )
        return is_mixed(difference, noise)

    async def post(
        self, raw: bytes, questions: int, request: web.Request
    ) -> tuple[web.Response, Json]:
        """Send a body to the model with the client's headers, within the budget; return its reply, read."""
        most = self.cost(len(raw) * questions)
        budget = self.serving.budget
        left = budget is None or self.spent + self.held + most <= budget
        need(left, 402, f"the request could exceed the budget of {budget} USD")
        kept = CIMultiDict((k, v) for k, v in request.headers.items() if k.lower() not in REPLACED)
        if self.token:
            kept.pop("Authorization", None)
            if key := self.address.key.reveal():
                kept["Authorization"] = f"Bearer {key}"
        kept.update({"Accept-Encoding": "identity", "Content-Type": "application/json"})
        self.held += most
        charged = most  # a call that is given up may be answered and charged
        try:
            async with self.http.post(
                self.url, data=raw, headers=kept, allow_redirects=False, proxy=self.proxy
            ) as response:
                body = await plain_body(response, LARGEST_BODY)
            charged = most * (len(body) > LARGEST_BODY)
        except aiohttp.ClientConnectorError:
            charged = 0.0
            raise
        finally:
            self.held -= most
            self.spent += charged
        status = response.status
        need(len(body) <= LARGEST_BODY, 502, f"the model's answer exceeds {LARGEST_BODY} bytes")
        self.counts["upstream_requests"] += 1
        headers = CIMultiDict((k, v) for k, v in response.headers.items() if k.lower() not in HOPS)
        said: Json = {}
        if status == 200:
            with contextlib.suppress(ValueError):
                said = parsed(body)
            said = said if isinstance(said, dict) else {}
            usage = said.get("usage")
            tokens = token_count(usage.get("input_tokens")) if isinstance(usage, dict) else None
            self.counts["upstream_input_tokens"] += tokens or 0
            self.spent += most if tokens is None else self.cost(tokens)  # without a count the most
        return web.Response(status=status, body=body, headers=headers), said

    def cost(self, tokens: int) -> float:
        """Return the price of input tokens in USD."""
        return self.backend.price(tokens, 0) or 0.0


def summed(a: Json, b: Json) -> Json:
    """Return the sums of the counts of two usages."""
    return {
        key: summed(a.get(key) or {}, b.get(key) or {})
        if isinstance(a.get(key, b.get(key)), dict)
        else (a.get(key) or 0) + (b.get(key) or 0)
        for key in {**a, **b}
    }
