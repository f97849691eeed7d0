"""`unswayed serve --method`: one call with a fitted correction, and the test for drift."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from decision_stub import DecisionStub
from served import APIS, MODEL, TEXTS, body_of, client_of, decision_server, probabilities

import unswayed as us
from unswayed.backends import Backend, BackendSettings, open_backend
from unswayed.base.errors import MethodError, UsageError
from unswayed.calls import shadow
from unswayed.calls.calibration import prompts_for
from unswayed.methods.fitted_file import FittedFile, save_method
from unswayed.methods.names import parse_method
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, Task
from unswayed.prompts import PromptSettings, prompt_fingerprint
from unswayed.serving.correction import Correction

NAMES = ["A", "B", "C", "D"]


class Model(Backend):
    """The served model, for the checks of the file."""

    gives_logprobs = True

    def __init__(self, model: str) -> None:
        self.model = model


def decisions_of(stub: DecisionStub, item: Item, asks: Any) -> list[Decision]:
    """The stub's answers about an item."""
    made = []
    for order, labels in (ask.presentation for ask in asks):
        shown = [(NAMES[label], item.candidates[c]) for c, label in zip(order, labels, strict=True)]
        probs = [0.0] * item.n
        for candidate, p in zip(order, stub.probabilities(shown), strict=True):
            probs[candidate] = p
        symbols = tuple(NAMES[label] for label in labels)
        choice = probs.index(max(probs))
        made.append(
            Decision(
                item_id=item.id, order=order, labels=symbols, choice=choice, probs=tuple(probs)
            )
        )
    return made


def fitted(folder: Path, stub: DecisionStub, api: str, name: str = "pride") -> FittedFile:
    method = parse_method(name)
    items = [
        Item(
            id=f"i{k}",
            task=Task.MCQ,
            prompt=f"Question {k}?",
            candidates=tuple(f"option {place} of {k}" for place in range(4)),
        )
        for k in range(60)
    ]
    asks = method.estimation_asks(4)
    decisions = [d for item in items for d in decisions_of(stub, item, asks)]
    backend = Model(f"{api}/{MODEL}")
    return save_method(
        folder / "file.json",
        method.fit(items, decisions),
        model=backend.model,
        prompt_fingerprint=prompt_fingerprint(prompts_for(backend, PromptSettings())),
        label_set=NAMES,
        estimation_fingerprint="x",
    )


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("upstream", APIS)
async def test_fitted_question_is_asked_once_and_corrected(
    api: str, upstream: str, tmp_path: Path, stub: DecisionStub
) -> None:
    file = fitted(tmp_path, stub, upstream)
    correction = Correction(file, Model(f"{upstream}/{MODEL}"))
    async with client_of(decision_server(stub.url, upstream, correction=correction)) as post:
        found = [
            probabilities(api, (await post(f"v1/{api}", body_of(api, names))).json)
            for names in (NAMES, NAMES[::-1])
        ]
        assert [len(body["questions"]) for body in stub.bodies] == [2, 2]
        assert (await post("health")).json["method"] == "pride"
        await post(f"v1/{api}", body_of(api, ["billing", "sales"]))
        assert len(stub.bodies[-1]["questions"]) == 3
    item = Item(id="q", task=Task.MCQ, prompt="?", candidates=("None of these", *NAMES[1:]))
    method = file.load()
    decided = method.decide(item, decisions_of(stub, item, method.asks(4)))
    assert decided.scores is not None
    assert found[0] == pytest.approx(dict(zip(NAMES, decided.scores, strict=True)), abs=1e-12)
    assert found[1] == found[0]
    assert list(found[1]) == NAMES[::-1]


def calibrated(folder: Path, stub: DecisionStub, api: str, labels: str) -> FittedFile:
    """A file of `calibrate --labels`."""
    n = len(labels.split(","))
    items = [
        {
            "id": f"i{k}",
            "task": "mcq",
            "prompt": f"{k}?",
            "candidates": [f"{k}.{c}" for c in range(n)],
        }
        for k in range(40)
    ]
    file = folder / "own.json"
    us.calibrate("pride", items, f"{api}/{MODEL}", base_url=stub.url, labels=labels, out=file)
    return us.load_method(file)


@pytest.mark.parametrize("api", APIS)
async def test_file_of_own_names_corrects_questions_with_these_names(
    api: str, tmp_path: Path
) -> None:
    """The stub prefers the name `support` wherever it stands: a fit under other names cannot know that."""
    names = ["support", "sales", "billing"]
    with DecisionStub(favoured="support", named=1.0) as stub:
        file = calibrated(tmp_path, stub, api, ",".join(names))
        backend = open_backend(f"{api}/{MODEL}", BackendSettings(base_url=stub.url))
        correction = Correction(file, backend)
        async with client_of(decision_server(stub.url, api, correction=correction)) as post:
            found = []
            for order in (names, names[::-1], ["sales", "support", "billing"]):
                reply = await post(f"v1/{api}", body_of(api, order))
                assert len(stub.bodies[-1]["questions"]) == 2
                found.append(probabilities(api, reply.json))
                assert list(found[-1]) == order
            assert found[0] == found[1] == found[2]
            raw = stub.probabilities([(name, TEXTS[name]) for name in names])
            prior = [number.value or 0.0 for number in file.load().estimates().values()]
            weights = [p / q for p, q in zip(raw, prior, strict=True)]
            wanted = [weight / sum(weights) for weight in weights]
            assert [found[0][name] for name in names] == pytest.approx(wanted, abs=1e-9)
            await post(f"v1/{api}", body_of(api, ["support", "sales", "legal"]))
            assert len(stub.bodies[-1]["questions"]) == 4  # other names: all orders


def test_file_of_yes_no_questions_is_refused(tmp_path: Path) -> None:
    with DecisionStub() as stub:
        file = calibrated(tmp_path, stub, "systemone", "true,false")
    with pytest.raises(UsageError, match="--polarity"):
        Correction(file, Model(f"systemone/{MODEL}"))


@pytest.mark.parametrize("api", APIS)
async def test_shadow_finds_drift(
    api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow, "WINDOW", 40)
    with DecisionStub() as stub, DecisionStub(first=0.0) as changed:
        p_values = []
        for served in (stub, changed):
            correction = Correction(fitted(tmp_path, stub, api), Model(f"{api}/{MODEL}"), 1.0)
            async with client_of(decision_server(served.url, api, correction=correction)) as post:
                for k in range(40):
                    body = body_of(api, NAMES, f"Case {k}")
                    if api == "systemone":
                        body["questions"]["q"]["criteria"] = {a: f"{a} {k}" for a in NAMES}
                    else:
                        rows = [{"value": a, "description": f"{a} {k}"} for a in NAMES]
                        body["questions"][0]["choices"] = rows
                    assert (await post(f"v1/{api}", body)).status == 200
                metrics = (await post("metrics")).raw.decode()
            p_values.append(float(metrics.partition("shadow_p_value ")[2]))
            assert len(served.bodies[-1]["questions"]) == 5
        assert p_values[1] < 0.01 < p_values[0]


def test_file_of_other_model_is_refused(tmp_path: Path) -> None:
    with DecisionStub() as stub:
        file = fitted(tmp_path, stub, "systemone")
    with pytest.raises(MethodError, match="not for systemone/other"):
        Correction(file, Model("systemone/other"))


@pytest.mark.parametrize("name", ["calibraeval", "pride:prior=cell"])
def test_methods_of_one_call_are_served(name: str, tmp_path: Path) -> None:
    with DecisionStub() as stub:
        file = fitted(tmp_path, stub, "systemone", name)
    assert Correction(file, Model(f"systemone/{MODEL}"), 0.5).sizes == (4,)
