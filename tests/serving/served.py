"""A decision server in the loop of a test, in front of the stub, and questions of both APIs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import pytest
from aiohttp import web

from unswayed.backends import BackendSettings, open_backend
from unswayed.backends.client import HttpBackend
from unswayed.serving.proxy import DecisionServer, Serving
from unswayed.serving.server import Server

MODEL = "stub-1"
TEXTS = {
    "billing": "Payments and invoices",
    "support": "Trouble with the product",
    "sales": "Prices and upgrades",
    "A": "None of these",
    "other": "Something else",
    "legal": "Contracts",
    "x": "y",
    "Ω": "naïve",
}
APIS = ("systemone", "decisions")


class Reply(NamedTuple):
    """An answer of a server, read to its end."""

    status: int
    raw: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


Post = Callable[..., Awaitable[Reply]]


def body_of(
    api: str, names: Sequence[Any], state: str = "A customer writes.", **more: Any
) -> dict[str, Any]:
    """A choice named q and a yes-no question named n."""
    texts = [TEXTS.get(name, str(name)) for name in names]
    if api == "systemone":
        choice = {
            "type": "choice",
            "instructions": "Who?",
            "criteria": dict(zip(names, texts, strict=True)),
        }
        noul = {"type": "noul", "instructions": "Urgent?"}
        return {"model": MODEL, "state": state, "questions": {"q": choice, "n": noul}, **more}
    rows = [{"value": name, "description": text} for name, text in zip(names, texts, strict=True)]
    asked = [
        {"type": "choice", "name": "q", "instructions": "Who?", "choices": rows},
        {"type": "predicate", "instructions": "Urgent?"},
    ]
    return {"model": MODEL, "input": state, "questions": asked, **more}


def probabilities(api: str, said: Any) -> dict[Any, float]:
    """The probabilities of the choice q by option, in the order of the answer."""
    if api == "systemone":
        return dict(said["answers"]["q"]["probabilities"])
    return {p["value"]: p["probability"] for p in said["answers"][0]["probabilities"]}


def choice(api: str, said: Any) -> Any:
    return (said["answers"]["q"] if api == "systemone" else said["answers"][0])["choice"]


def decision_server(
    url: str, api: str = "systemone", *, environ: dict[str, str] | None = None, **settings: Any
) -> DecisionServer:
    reach = {k: settings.pop(k) for k in ("timeout", "prices") if k in settings}
    limits = {k: settings.pop(k) for k in ("token", "max_open", "correction") if k in settings}
    asking = BackendSettings(base_url=url, pricing_only=not limits.get("token"), **reach)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (environ or {}).items():
            patch.setenv(name, value)
        backend = open_backend(f"{api}/{MODEL}", asking)
    assert isinstance(backend, HttpBackend)
    return DecisionServer(backend, Serving(**settings), **limits)


@asynccontextmanager
async def running(application: web.Application) -> AsyncIterator[str]:
    """Serve an application; its address. What a client has not sent soon after an error is not waited for."""
    limits: dict[str, Any] = {"handler_cancellation": True, "lingering_time": 0.1}
    runner = web.AppRunner(application, access_log=None, **limits)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def answering(answer: Callable[..., Awaitable[Any]], *apis: str) -> AsyncIterator[str]:
    """A model whose answers to requests of these APIs a function gives; its base address."""
    app = web.Application()
    app.add_routes([web.post(f"/v1/{api}", answer) for api in apis])
    async with running(app) as url:
        yield f"{url}/v1"


@asynccontextmanager
async def client_of(server: Server) -> AsyncIterator[Post]:
    """Post to a running server: `post(path, body, headers={...})`; without a body GET."""
    async with running(server.application()) as url, aiohttp.ClientSession() as http:

        async def post(path: str, body: Any = None, **how: Any) -> Reply:
            if body is None:
                call = http.get(f"{url}/{path}", **how)
            elif isinstance(body, bytes):
                call = http.post(f"{url}/{path}", data=body, **how)
            else:
                call = http.post(f"{url}/{path}", json=body, **how)
            async with call as response:
                return Reply(response.status, await response.read(), dict(response.headers))

        yield post


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(work())  # type: ignore[arg-type]
