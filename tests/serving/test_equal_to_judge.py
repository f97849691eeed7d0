"""The decision server and `Judge` over the same model give the same probabilities."""

from __future__ import annotations

from typing import Any

import pytest
from decision_stub import DecisionStub
from served import APIS, MODEL, client_of, decision_server, probabilities, run

import unswayed as us

OPTIONS = ("Payments and invoices", "Trouble", "Prices", "Contracts", "Something else")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize(("mean", "space"), [("arithmetic", "probability"), ("log", "logit")])
@pytest.mark.parametrize("orders", ["cyclic", "williams"])
def test_server_and_judge_average_alike(
    api: str, n: int, mean: Any, space: str, orders: Any
) -> None:
    names = "ABCDE"[:n]
    item = us.Item(id="q", task="mcq", prompt="A customer writes.", candidates=OPTIONS[:n])
    method = f"average:orders={orders}:layouts=order:space={space}"
    with DecisionStub() as stub:
        with us.Judge(f"{api}/{MODEL}", method=method, base_url=stub.url) as judge:
            verdict = next(iter(judge.verdicts([item])))
            asked = stub.bodies[-1]["questions"]
        question = (asked["q0"] if api == "systemone" else asked[0]) | {"name": "q"}
        body = {**stub.bodies[-1], "questions": [question]}
        if api == "systemone":
            del question["name"]
            question["criteria"] = dict(zip(names, OPTIONS, strict=False))
            body["questions"] = {"q": question}
        else:
            rows = [{"value": a, "description": b} for a, b in zip(names, OPTIONS, strict=False)]
            question["choices"] = rows

        async def work() -> None:
            server = decision_server(stub.url, api, orders=orders, mean=mean)
            async with client_of(server) as post:
                found = probabilities(api, (await post(f"v1/{api}", body)).json)
            assert verdict.scores is not None
            wanted = dict(zip(names, verdict.scores, strict=True))
            assert found == pytest.approx(wanted, abs=1e-12, rel=0)

        run(work)
