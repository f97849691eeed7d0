"""Labels in JSON objects: from servers that hold replies to a schema, and from those that do not."""

import json

import pytest
from chat_cases import backend_at
from fake_server import FakeServer, Fault

from unswayed.backends import open_backend
from unswayed.backends.simulated import simulated_items
from unswayed.calls import Caller, Question, RunSettings
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, Task
from unswayed.model.presentation import X0, X2, Ask, canonical
from unswayed.prompts import PromptSettings, render
from unswayed.store import Memory

ITEMS = simulated_items(6, 2, seed=1)
OBJECTS = {
    "structured": '{"label": "B"}',
    "structured-reasoning": '{"reasoning": "A is fine, but wrong.", "label": "B"}',
}
STYLES = pytest.mark.parametrize("style", OBJECTS)
REFUSED = "Invalid parameter: 'response_format' of type 'json_schema' is not supported."


async def decisions(server: FakeServer, style: str) -> list[Decision]:
    questions = [Question(item, Ask(shown, style)) for item in ITEMS for shown in (X0, X2)]
    async with server:
        backend = backend_at(server.url)
        caller = Caller(backend, Memory(), RunSettings(prompts=PromptSettings()))
        await caller.ask(questions)
        await backend.close()
        return list(caller.read(questions))


@STYLES
@pytest.mark.parametrize("holds", [True, False])
async def test_label_is_read_from_object_with_or_without_schema(style: str, holds: bool) -> None:
    faults = [] if holds else [Fault(kind="status", status=400, message=REFUSED, contains="schema")]
    say = OBJECTS[style] if holds else f"```json\n{OBJECTS[style]}\n```"
    server = FakeServer(say=lambda _: say, faults=faults)
    read = await decisions(server, style)
    assert [decision.choice for decision in read] == [1, 0] * len(ITEMS)
    assert {(decision.probs, decision.reasked) for decision in read} == {(None, False)}
    formats = [json.loads(body).get("response_format") for body in server.bodies]
    wanted = formats[0]["json_schema"]["schema"]
    assert list(wanted["properties"])[-1] == "label"
    assert wanted["properties"]["label"] == {"type": "string", "enum": ["A", "B"]}
    assert wanted["required"] == list(wanted["properties"])
    assert wanted["additionalProperties"] is False
    assert formats[-1] == (formats[0] if holds else {"type": "json_object"})


@STYLES
async def test_object_without_label_is_reasked_for_label_alone(style: str) -> None:
    server = FakeServer(say=lambda said: "A" if b"label only" in said else '{"label": ""}')
    read = await decisions(server, style)
    assert [decision.choice for decision in read] == [0, 1] * len(ITEMS)
    last = json.loads(server.bodies[-1])
    assert "response_format" not in last
    assert last["max_tokens"] == 16


@STYLES
async def test_simulated_judge_writes_object(style: str) -> None:
    backend = open_backend("simulated/judge?slot=0&label=0&noise=0")
    for item in ITEMS:
        ask = Ask(X0, style)
        rendered = render(item, ask, PromptSettings())
        assert rendered.schema is not None
        assert (rendered.answer_only, rendered.top_logprobs) == (False, 0)
        with Memory() as store:
            caller = Caller(backend, store, RunSettings(prompts=PromptSettings()))
            await caller.ask([Question(item, ask)])
            ((_, _, response),) = caller.calls([Question(item, ask)])
            (decision,) = caller.read([Question(item, ask)])
        said = json.loads(response.text)
        assert list(said) == list(json.loads(rendered.schema)["properties"])
        assert said["label"] == "AB"[decision.choice]  # type: ignore[index]


@STYLES
def test_lists_keep_own_object(style: str) -> None:
    item = Item(id="l", prompt="?", candidates=("a", "b", "c"), task=Task.LISTWISE)
    own = render(item, Ask(canonical(3), style), PromptSettings())
    plain = render(item, Ask(canonical(3)), PromptSettings())
    assert (own.messages, own.schema, own.reask) == (plain.messages, plain.schema, None)
