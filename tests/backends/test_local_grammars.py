"""Local models write what a schema says, whatever their weights; where they cannot be held, it is said."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from local_asking import answered, chat, opened, query
from random_llama import CHAT_TEMPLATE, make_random_llama

from unswayed.backends.huggingface import HuggingFaceBackend
from unswayed.base.registry import install_command
from unswayed.model.calls import Query

torch = pytest.importorskip("torch")
needs_grammars = pytest.mark.skipif(
    importlib.util.find_spec("llguidance") is None, reason="needs the extra 'structured'"
)


class Reply(msgspec.Struct, forbid_unknown_fields=True):
    """What SCHEMA says, as Python reads it."""

    score: Annotated[int, msgspec.Meta(ge=0, le=100)]
    rationale: Annotated[str, msgspec.Meta(max_length=20)]
    fair: bool
    ranking: Annotated[list[Literal["A", "B"]], msgspec.Meta(min_length=2, max_length=2)]


SCHEMA = msgspec.json.encode(msgspec.json.schema_components([Reply])[1]["Reply"]).decode()


def texts(backend: HuggingFaceBackend, asked: list[Query]) -> list[str]:
    return [answer.text for answer in answered(backend, asked)]


def written(number: int, **fields: Any) -> Query:
    settings = {"top_logprobs": 0, "max_tokens": 400, "temperature": 1.0, "sample": number}
    return query(chat(5 + number), **{**settings, **fields})


@needs_grammars
def test_random_weights_write_what_the_schema_says(folder: Path) -> None:
    backend = opened(folder)
    answers = answered(backend, [written(number, schema=SCHEMA) for number in range(6)])
    replies = [msgspec.json.decode(answer.text, type=Reply) for answer in answers]
    assert len({reply.score for reply in replies}) > 1
    assert {answer.finish_reason for answer in answers} == {"stop"}
    assert backend.remarks == ()


@needs_grammars
def test_neighbours_in_a_batch_are_not_held_and_change_nothing(folder: Path) -> None:
    other = '{"type":"object","properties":{"x":{"type":"boolean"}},"required":["x"],'
    other += '"additionalProperties":false}'
    asked = [
        written(0, schema=SCHEMA),
        written(1, max_tokens=30),
        written(2, schema=other),
        written(3, max_tokens=30),
    ]
    backend = opened(folder)
    together = texts(backend, asked)
    alone = [texts(backend, [single])[0] for single in asked]
    assert together == alone
    assert set(msgspec.json.decode(together[2])) == {"x"}
    for text in (together[1], together[3]):
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(text)


@needs_grammars
def test_outputs_that_no_token_stands_for_are_ruled_out(folder: Path) -> None:
    from unswayed.backends.local_models import load_model
    from unswayed.backends.model_folders import locate

    loaded = load_model(locate(str(folder)), opened(folder)._settings, name="random")
    hold = loaded.grammars.hold([written(0, schema=SCHEMA).request])
    assert hold is not None
    width = len(loaded.tokenizer)
    scores = hold(torch.tensor([[0]]), torch.zeros(1, width + 7))
    allowed = {loaded.tokenizer.decode([token]) for token in scores.isfinite()[0].nonzero()[:, 0]}
    assert {text[:1] for text in allowed} == {"{"}
    assert not scores[0, width:].isfinite().any()


@needs_grammars
@pytest.mark.parametrize("schema", ['{"type":"nonsense"}', "{"])
def test_an_unsupported_schema_is_named_and_the_answer_free(folder: Path, schema: str) -> None:
    backend = opened(folder)
    assert all(texts(backend, [written(k, schema=schema, max_tokens=30) for k in range(2)]))
    (remark,) = backend.remarks
    assert remark.startswith("answers are not held to their JSON schema: ")


def test_without_the_library_the_remark_names_the_extra(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "llguidance" else whole(name, *rest),
    )
    backend = opened(folder)
    assert texts(backend, [written(0, max_tokens=30)])[0]
    assert backend.remarks == ()  # nothing was to be held
    assert texts(backend, [written(0, schema=SCHEMA, max_tokens=30)])[0]
    (remark,) = backend.remarks
    assert install_command("structured") in remark


def test_an_answer_with_a_schema_has_no_reasoning_before_it(tmp_path: Path) -> None:
    switch = "{% if enable_thinking is defined and not enable_thinking %}closed{% endif %}"
    backend = opened(make_random_llama(tmp_path / "model", chat_template=CHAT_TEMPLATE + switch))
    messages = chat(5)
    fields: dict[str, Any] = {"top_logprobs": 0, "max_tokens": 2}
    asked = [query(messages, **fields), query(messages, schema=SCHEMA, **fields)]
    free, held = answered(backend, asked)
    assert held.input_tokens > free.input_tokens
