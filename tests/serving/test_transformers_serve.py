"""A server that nobody here wrote: `transformers serve` with a random model, audited and served."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import counters, post, serving, transformers_serve
from served import TEXTS, probabilities

import unswayed as us
from needs import interpreter

pytest.importorskip("torch", reason="the model is made here, with the extra 'local'")

ORDERS = 2_000
"""Requests with randomly permuted options."""
ONE_PROMPT = (
    "{{ state }}{% for q in questions %}\n{{ q.instructions }}\n{% for option in q.options %}"
    "{{ q.labels[loop.index0] }}. {{ q.descriptions[loop.index0] }}\n{% endfor %}"
    "Answer:<|mark|>{% endfor %}"
)
"""A template that asks all questions of a request in one prompt."""


@pytest.fixture(scope="module")
def python() -> str:
    return interpreter("UNSWAYED_SERVING", "fastapi", "uvicorn", "transformers.decision")


@pytest.fixture(scope="module")
def model(python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from random_llama import make_random_llama

    folder = make_random_llama(tmp_path_factory.mktemp("servers") / "random")
    # "Yes" is several tokens of this tokenizer
    (folder / "decision.json").write_text(json.dumps({"labels": {"noul": ["Y", "N"]}}))
    return folder


@pytest.fixture(scope="module")
def upstream(python: str, model: Path) -> Iterator[str]:
    with transformers_serve(python, model) as url:
        yield url


@pytest.fixture(scope="module")
def proxy(upstream: str, model: Path) -> Iterator[str]:
    with serving(upstream, f"systemone/{model}") as (url, _):
        yield f"{url}/v1"


def question(names: list[str]) -> dict[str, Any]:
    criteria = {name: TEXTS.get(name, f"text of {name}") for name in names}
    return {"type": "choice", "instructions": "Who helps?", "criteria": criteria}


def body(model: Path, questions: dict[str, Any], state: str = "A customer writes.") -> Any:
    return {"model": str(model), "state": state, "questions": questions}


def answers(url: str, asked: Any) -> Any:
    status, said = post(f"{url}/systemone", asked)
    assert status == 200, said
    return said["answers"]


def items() -> list[dict[str, Any]]:
    things = ("rivers", "bridges", "kettles", "planets", "sonnets", "engines")
    return [
        {"id": f"q{k}", "task": "mcq", "prompt": f"Why do {things[k]} change?"}
        | {"candidates": [f"Because of {cause}." for cause in list(things)[:n]], "gold": k % n}
        for k, n in zip(range(len(things)), itertools.cycle((2, 3, 4)), strict=False)
    ]


def test_audit_packs_questions_as_server_answers_them_alone(
    upstream: str, model: Path, tmp_path: Path
) -> None:
    """The server has one prompt per question, so packing changes nothing."""
    written = []
    for pack in (16, 1):
        folder = tmp_path / str(pack)
        us.audit(
            f"systemone/{model}",
            items(),
            methods="direct,average",
            base_url=upstream,
            pack=pack,
            out=folder,
            resamples=100,
        )
        written.append(json.loads((folder / "answers.json").read_text()))
        run = json.loads((folder / "run.json").read_text())
        assert run["calls"]["failed"] == 0
    assert written[0] == written[1]
    packing = json.loads((tmp_path / "16" / "run.json").read_text())["packing"]
    assert packing == {"pack": 16, "difference": 0.0, "noise": 0.0}


def test_scores_of_judge_are_probabilities_of_server(upstream: str, model: Path) -> None:
    texts = ["Because of rain.", "Because of time.", "Because of luck."]
    with us.Judge(f"systemone/{model}", method="direct", base_url=upstream) as judge:
        scores = judge.answer("Why do rivers change?", texts).scores
    asked = {
        "type": "choice",
        "instructions": "Which option is the best answer?",
        "criteria": dict(zip("ABC", texts, strict=True)),
    }
    said = answers(upstream, body(model, {"q": asked}, "Why do rivers change?"))["q"]
    assert scores == pytest.approx(list(said["probabilities"].values()), abs=1e-7)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_decision_is_equal_to_last_bit_in_every_order(
    n: int, proxy: str, upstream: str, model: Path
) -> None:
    names, draws = list(TEXTS)[:n], random.Random(n)
    found: dict[str, set[Any]] = {proxy: set(), upstream: set()}
    for _ in range(ORDERS // 4):
        draws.shuffle(names)
        asked = body(model, {"q": question(names)})
        for url in (proxy, upstream)[: 1 + (len(found[upstream]) < 2)]:
            answer = answers(url, asked)["q"]
            assert list(answer["probabilities"]) == names
            found[url].add((answer["choice"], *sorted(answer["probabilities"].items())))
    assert len(found[proxy]) == 1
    assert len(found[upstream]) > 1


def test_question_in_many_orders_is_split_into_requests(
    proxy: str, upstream: str, model: Path
) -> None:
    names = list(TEXTS)
    many = {f"q{k}": question(names[k % 7 : k % 7 + 2]) for k in range(65)}
    asked = body(model, many)
    assert post(f"{upstream}/systemone", asked)[0] == 422  # at most 64 questions
    before = counters(proxy.removesuffix("/v1"))
    together = answers(proxy, asked)
    after = counters(proxy.removesuffix("/v1"))
    assert after["upstream_requests"] - before["upstream_requests"] == 3  # 2 orders of 65
    assert list(together) == list(many)
    for name in list(many)[:7]:
        assert answers(proxy, body(model, {name: many[name]}))[name] == together[name]


def test_refusal_of_server_reaches_client(proxy: str, upstream: str, model: Path) -> None:
    asked = body(model, {"q": question([f"option {k}" for k in range(27)])})
    for url in (upstream, proxy):
        status, said = post(f"{url}/systemone", asked)
        assert status == 422
        assert "at most 26 options" in said["detail"][0]["msg"]
    choices = [{"value": f"option {k}"} for k in range(27)]
    told = {"type": "choice", "instructions": "Who helps?", "choices": choices}
    asked = {"model": str(model), "input": "A customer writes.", "questions": [told]}
    status, said = post(f"{proxy}/decisions", asked)
    assert status == 422
    assert "at most 26 options" in said["error"]["message"]


def test_translated_question_has_equal_answer(proxy: str, model: Path) -> None:
    names = ["billing", "support", "sales"]
    own = answers(proxy, body(model, {"q": question(names)}))["q"]
    choices = [{"value": name, "description": TEXTS[name]} for name in reversed(names)]
    asked = {
        "model": str(model),
        "input": "A customer writes.",
        "questions": [{"type": "choice", "instructions": "Who helps?", "choices": choices}],
    }
    status, said = post(f"{proxy}/decisions", asked)
    assert status == 200
    assert said["answers"][0]["choice"] == own["choice"]
    assert probabilities("decisions", said) == own["probabilities"]


def test_scale_and_sides_are_asked_both_ways(upstream: str, proxy: str, model: Path) -> None:
    levels, sides = ["poor", "fair", "good"], {"true": "It is kind.", "false": "It is rude."}
    scale = {"type": "score", "instructions": "How good?", "criteria": levels}
    noul = {"type": "noul", "instructions": "Kind?", "criteria": sides}
    turned = {"true": sides["false"], "false": sides["true"]}
    asked = {"scale": scale, "noul": noul}
    both = asked | {
        "scale back": {**scale, "criteria": levels[::-1]},
        "noul back": {**noul, "criteria": turned},
    }
    raw = answers(upstream, body(model, both))
    own, back = (list(raw[name]["probabilities"].values()) for name in ("scale", "scale back"))
    said = answers(proxy, body(model, asked))
    even = [(p + q) / 2 for p, q in zip(own, back[::-1], strict=True)]
    assert list(said["scale"]["probabilities"].values()) == pytest.approx(even, abs=1e-6)
    assert said["noul"]["noul"] == pytest.approx(raw["noul"]["noul"], abs=1e-6)
    with serving(upstream, f"systemone/{model}", "--polarity") as (url, _):
        said = answers(f"{url}/v1", body(model, asked))
    even_noul = (raw["noul"]["noul"] + 1 - raw["noul back"]["noul"]) / 2
    assert said["noul"]["noul"] == pytest.approx(even_noul, abs=1e-6)


def test_one_prompt_for_all_questions_is_found(python: str, model: Path, tmp_path: Path) -> None:
    config = tmp_path / "one-prompt.json"
    config.write_text(json.dumps({"chat_template": ONE_PROMPT}))
    names = ["billing", "support", "sales"]
    with (
        transformers_serve(python, model, "--decision-config", str(config)) as upstream,
        serving(upstream, f"systemone/{model}") as (url, _),
    ):
        us.audit(
            f"systemone/{model}",
            items(),
            methods="direct",
            base_url=upstream,
            out=tmp_path / "run",
            resamples=100,
        )
        found = set()
        for order in itertools.permutations(names):
            said = answers(f"{url}/v1", body(model, {"q": question(list(order))}))["q"]
            found.add((said["choice"], *sorted(said["probabilities"].items())))
        metrics = counters(url)
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["packing"]["pack"] == 1
    assert run["packing"]["difference"] > 0.02
    assert len(found) == 1
    assert metrics["upstream_requests"] == 7 + 3 * 6  # the probe, then each order alone
