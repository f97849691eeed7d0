"""Clients that nobody here wrote: the SDKs of OpenAI and TypeSafe, and LiteLLM, each in its own process."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from decision_stub import DecisionStub
from processes import serving
from served import APIS, MODEL, TEXTS

from needs import interpreter

SIZES = range(2, 9)
ORDERS = 20
"""Random orders for each number of options and each API of the model."""
FAULTS = {"400": 400, "422": 422, "429": 429, "500": 500}
FAULTS |= dict.fromkeys(("garbage", "empty", "nan", "other-options", "missing", "cut"), 502)
"""Status that a client of the server gets where the model's server misbehaves."""
NAMES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    404: "NotFoundError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
    500: "InternalServerError",
    502: "InternalServerError",
}
OWN_NAMES = {
    "openai": {402: "APIStatusError"},
    "typesafe_sdk": {status: f"TypeSafe{name}" for status, name in NAMES.items()}
    | {402: "TypeSafeAPIError"},
    "litellm": {402: "BadRequestError", 422: "BadRequestError", 502: "BadGatewayError"},
}
"""Exceptions by status, where they are not those above."""


class Told(NamedTuple):
    """A question and the answer that the SDK gave, or its exception and status."""

    case: str
    asked: dict[str, Any]
    said: Any


def question(url: str, names: list[str], **more: Any) -> dict[str, Any]:
    options = [[name, TEXTS[name]] for name in names]
    asked = {"url": f"{url}/v1", "model": MODEL, "state": "A customer writes."}
    return {**asked, "options": options, "asked": "q", **more}


def questions(servers: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All questions by case."""
    draws = random.Random(1)
    for api in APIS:
        for n in SIZES:
            names = list(TEXTS)[:n]
            for _ in range(ORDERS):
                draws.shuffle(names)
                yield f"{api} {n}", question(servers[api], names)
    pair = list(TEXTS)[:2]
    for api in APIS:
        for fault in FAULTS:
            yield f"fault {fault}", question(servers[api], pair, state=f"fault:{fault} x")
    yield "model", question(servers["systemone"], pair, model="another")
    yield "token", question(servers["token"], pair)
    yield "budget", question(servers["budget"], pair)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    prices = tmp_path_factory.mktemp("prices") / "prices.toml"
    prices.write_text(f'as_of = "x"\n[models."systemone/{MODEL}"]\ninput = 1.0\noutput = 0.0\n')
    with ExitStack() as stack:
        stub = stack.enter_context(DecisionStub())
        plain = {api: [f"{api}/{MODEL}"] for api in APIS}
        spent = [f"systemone/{MODEL}", "--budget", "0", "--prices", str(prices)]
        urls = {
            name: stack.enter_context(serving(stub.url, *options))[0]
            for name, options in {**plain, "budget": spent}.items()
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("UNSWAYED_SERVE_TOKEN", "secret")
            urls["token"] = stack.enter_context(serving(stub.url, f"systemone/{MODEL}"))[0]
        yield urls


@pytest.fixture(scope="module", params=["openai", "typesafe_sdk", "litellm"])
def package(request: pytest.FixtureRequest) -> str:
    interpreter("UNSWAYED_CLIENTS", request.param)  # no server starts without it
    return str(request.param)


@pytest.fixture(scope="module")
def told(package: str, servers: dict[str, str]) -> list[Told]:
    """What the SDK got for every question."""
    python = interpreter("UNSWAYED_CLIENTS", package)
    asked = list(questions(servers))
    done = subprocess.run(
        [python, str(Path(__file__).with_name("sdk_clients.py")), package],
        input="".join(f"{json.dumps(one)}\n" for _, one in asked),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return [Told(case, one, reply) for (case, one), reply in zip(asked, said, strict=True)]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("n", SIZES)
def test_sdk_gets_equal_answers_in_every_order(told: list[Told], api: str, n: int) -> None:
    found = [one for one in told if one.case == f"{api} {n}"]
    answers = set()
    for one in found:
        choice, rows = one.said
        assert [name for name, _ in rows] == [name for name, _ in one.asked["options"]]
        answers.add((choice, *sorted(map(tuple, rows))))
    assert len(found) == ORDERS
    assert len(answers) == 1


def test_sdk_raises_error_of_status(told: list[Told], package: str) -> None:
    statuses = {f"fault {fault}": status for fault, status in FAULTS.items()}
    statuses |= {"model": 404, "token": 401, "budget": 402}
    names = NAMES | OWN_NAMES[package]
    found = [one for one in told if one.case in statuses]
    assert {one.case for one in found} == statuses.keys()
    for one in found:
        assert one.said == [names[statuses[one.case]], statuses[one.case]], one.asked
