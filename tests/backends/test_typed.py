"""`systemone/MODEL` and `decisions/MODEL` against a server with planted place and name bias."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from decision_stub import BOTH, DecisionStub, liking, rows, softmax
from hypothesis import given, settings
from hypothesis import strategies as st

import unswayed as us
from unswayed.backends import BackendSettings, open_backend
from unswayed.backends.typed import TEMPLATES, TypedPrompt
from unswayed.backends.typed_apis import distribution
from unswayed.base.errors import UsageError
from unswayed.model.items import Item, Message, Task, as_item
from unswayed.model.presentation import Ask, Presentation, canonical
from unswayed.prompts import PromptSettings, render

FAST = {"resamples": 100}


def scale(count: int = 20, n: int = 5) -> list[dict[str, Any]]:
    return [
        {
            "id": f"r{i}",
            "task": "rubric",
            "prompt": f"Question {i}?",
            "response": f"response {i}",
            "candidates": [f"level {k} of {i}" for k in range(n)],
            "values": list(range(n)),
        }
        for i in range(count)
    ]


def audit(stub: DecisionStub, items: Any, api: str = "systemone", **options: Any) -> us.AuditResult:
    return us.audit(f"{api}/stub", items, base_url=stub.url, **{**FAST, **options})


def one(stub: DecisionStub, api: str, prompt: str, texts: list[str]) -> us.Verdict:
    with us.Judge(f"{api}/stub", method="direct", base_url=stub.url, max_retries=0) as judge:
        return judge.answer(prompt, texts)


@BOTH
def test_average_recovers_planted_content(api) -> None:
    with DecisionStub() as stub:
        result = audit(stub, rows(), api, methods="direct,average")
    assert result["average"].accuracy.value == 1.0
    assert result["direct"].accuracy.value < 0.7
    expected = [
        max(range(4), key=stub.probabilities(list(zip("ABCD", texts, strict=True))).__getitem__)
        for row in rows()
        for shift in range(4)
        for texts in [[row["candidates"][(p + shift) % 4] for p in range(4)]]
    ]
    first = expected.count(0) / len(expected)
    assert result["direct"].position_rate[0].value == pytest.approx(first)


@BOTH
def test_probabilities_are_those_of_server(api) -> None:
    with DecisionStub() as stub:
        texts = ["one", "two", "three"]
        verdict = one(stub, api, "Which?", texts)
        planted = stub.probabilities(list(zip("ABC", texts, strict=True)))
    assert verdict.scores == pytest.approx(planted, abs=1e-12)


def test_probabilities_are_read_despite_arithmetic_of_server() -> None:
    assert distribution([1.0000000000000002, -2e-16, 0.004])[0] == pytest.approx(
        (1 / 1.004, 0.0, 0.004 / 1.004)
    )
    assert sum(distribution([0.6, 0.42])[0]) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    "values",
    [
        (1.01, -0.01),
        (0.6, 0.422),
        (0.6, 0.378),
        (math.inf, 0.5),
        (10**400, 0.5),
        (True, False),
        ("0.6", "0.4"),
        (None, 1.0),
    ],
)
def test_values_beyond_rounding_are_not_probabilities(values) -> None:
    with pytest.raises(ValueError, match="not a distribution"):
        distribution(values)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("nan", "is not a distribution"),
        ("sum", "is not a distribution"),
        ("other-options", "none of them"),
        ("missing", "no answer to the question"),
        ("empty", "no answer to the question"),
        ("cut", "the server cut the state"),
        ("dropped", "the server cut the state"),
        ("garbage", "not an answer to typed questions"),
        ("422", "planned fault 422"),
    ],
)
@BOTH
def test_faulty_answer_is_failure(api, fault, words) -> None:
    with DecisionStub() as stub, pytest.raises(us.UnswayedError, match=words):
        one(stub, api, f"fault:{fault} Which?", ["one", "two", "three"])


@pytest.mark.parametrize("fault", ["nan", "cut", "other-options", "422"])
def test_faulty_answer_is_not_asked_for_again(fault) -> None:
    with DecisionStub() as stub:
        with pytest.raises(us.UnswayedError):
            one(stub, "systemone", f"fault:{fault} Which?", ["one", "two"])
        assert len(stub.bodies) == 1


@BOTH
def test_unknown_model_stops_run(api) -> None:
    items = [row | {"prompt": "fault:400 Which?"} for row in rows(40)]
    with DecisionStub() as stub:
        with pytest.raises(us.UnswayedError, match="pinned to"):
            audit(stub, items, api, max_connections=1)
        assert len(stub.bodies) < 4


@BOTH
def test_refusal_gives_no_verdict(api) -> None:
    with DecisionStub() as stub:
        verdict = one(stub, api, "fault:refusal Which?", ["one", "two"])
    assert verdict.choice is None


@BOTH
def test_rounded_zero_becomes_half_step(api) -> None:
    with DecisionStub(first=9) as stub:
        result = audit(
            stub, [{**rows(1, n=2)[0], "prompt": "fault:rounded Which?"}], api, methods="direct"
        )
        (decision, *_) = result.decisions
    assert decision.probs == pytest.approx((1 / 1.005, 0.005 / 1.005))
    assert any("two decimals" in text for text in result.run["warnings"])


def test_zero_stays_small_without_rounding() -> None:
    with DecisionStub() as stub:
        verdict = one(stub, "systemone", "fault:zero Which?", ["one", "two", "three"])
    assert verdict.scores[2] == pytest.approx(0.0, abs=1e-299)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"methods": "repeat"}, "samples nothing"),
        ({"methods": "repeat-mean"}, "samples nothing"),
        ({"probs": "sampled:5"}, "samples nothing"),
        ({"methods": "debias-prompt"}, "words that this judge does not know"),
        ({"prompt": "reasoning"}, "read no other prompt"),
        ({"prompt": "debias"}, "read no other prompt"),
        ({"shots": rows(4)}, "read no other prompt"),
    ],
)
def test_request_for_another_prompt_or_sample_is_refused(options, words) -> None:
    with DecisionStub() as stub:
        with pytest.raises(us.UnswayedError, match=words):
            audit(stub, rows(4), **options)
        assert not stub.bodies


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": "listwise", "gold": None}, "choose or score one thing"),
        (
            {"task": "rubric", "values": [1, 2, 3, 4], "gold": None, "response": "R"},
            "--orders reverse",
        ),
    ],
)
def test_task_or_order_is_refused_before_any_call(change, words) -> None:
    with DecisionStub() as stub:
        with pytest.raises(us.UnswayedError, match=words):
            audit(stub, [row | change for row in rows(4)])
        with (
            pytest.raises(us.UnswayedError, match=words),
            us.Judge("systemone/stub", method="vote", base_url=stub.url) as judge,
        ):
            judge.verdicts([row | change for row in rows(1)]).__next__()
        assert not stub.bodies


@BOTH
def test_reversed_scale_undoes_even_mixture(api) -> None:
    share, n, items = 0.5, 5, scale()
    with DecisionStub(mixture=share) as stub:
        result = audit(stub, items, api, orders="reverse", methods="direct,average:orders=reverse")
    by_item: dict[str, list[tuple[float, ...]]] = {}
    for decision in result.decisions:
        by_item.setdefault(decision.item_id, []).append(decision.probs)
    assert {question["type"] for body in stub.bodies for question in questions(body)} == {"score"}
    for item in items:
        own = softmax([2 * liking(text) for text in item["candidates"]])
        mean = [math.fsum(ps) / 2 for ps in zip(*by_item[item["id"]], strict=True)]
        assert mean == pytest.approx([(1 - share) * p + share / n for p in own], abs=1e-12)


def questions(body: dict[str, Any]) -> list[dict[str, Any]]:
    given = body["questions"]
    return list(given.values() if isinstance(given, dict) else given)


@BOTH
def test_typed_choice_asks_scale_in_any_order(api) -> None:
    with DecisionStub() as stub:
        result = audit(stub, scale(6), api, prompt="typed-choice", methods="direct,balanced-rubric")
    assert {question["type"] for body in stub.bodies for question in questions(body)} == {"choice"}
    assert result.metrics["calls"]["failed"] == 0


def test_yes_bias_is_planted_one() -> None:
    items, bias = rows(30, n=2), 0.8
    with DecisionStub(first=bias, named=0) as stub:
        result = audit(stub, items, labels="true,false", methods="direct,average")
    assert {question["type"] for body in stub.bodies for question in questions(body)} == {"noul"}
    probs: dict[str, dict[tuple[int, ...], tuple[float, ...]]] = {}
    for decision in result.decisions:
        probs.setdefault(decision.item_id, {})[decision.order] = decision.probs
    for item in items:
        a, b = (2 * liking(text) for text in item["candidates"])
        ab, ba = softmax([a + bias, b])[0], softmax([b + bias, a])[0]
        own = probs[item["id"]]
        measured = (own[0, 1][0] + own[1, 0][1] - 1) / 2
        assert measured == pytest.approx((ab + ba - 1) / 2, abs=1e-12)
    assert result["average"].accuracy.value == 1.0


def test_words_of_labels_may_occur_in_texts() -> None:
    items = [{**row, "prompt": f"True or false? {row['prompt']}"} for row in rows(3, n=2)]
    with DecisionStub() as stub:
        result = audit(stub, items, labels="true,false", methods="direct")
    assert result.metrics["calls"]["failed"] == 0
    with pytest.raises(us.UnswayedError, match="occurs in the prompt"):
        us.audit("simulated/judge", items, labels="true,false", methods="direct")


TEXT = st.text(
    st.one_of(st.sampled_from("\u2028\u2029\ud800\udfff</>&'\"\\{}%\x00\n"), st.characters()),
    max_size=12,
).filter(lambda text: not re.search("[\ud800-\udbff][\udc00-\udfff]", text))
"""No text holds a pair of surrogates: JSON reads one as the character that it stands for."""


@settings(max_examples=25, deadline=None)
@given(TEXT, st.lists(TEXT, min_size=2, max_size=4, unique=True), st.randoms())
def test_message_holds_item_exactly(prompt, texts, random) -> None:
    texts = tuple(f"c{text}" for text in texts)
    item = Item(id="x", task=Task.MCQ, prompt=f"p{prompt}", candidates=texts)
    order = list(range(item.n))
    random.shuffle(order)
    shown = Presentation(tuple(order), canonical(item.n).labels)
    prompts = TypedPrompt().settings(PromptSettings())
    (message,) = render(item, Ask(shown), prompts).messages
    assert json.loads(message.content) == {
        "kind": "choice",
        "state": item.prompt,
        "ask": "Which option is the best answer?",
        "options": [["ABCD"[p], item.candidates[c]] for p, c in enumerate(order)],
    }


def test_state_holds_turns_reference_and_response() -> None:
    turns = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
    item = as_item({**scale(1)[0], "prompt": turns, "reference": "R"})
    (message,) = render(
        item, Ask(canonical(5)), PromptSettings(template=TEMPLATES["typed"])
    ).messages
    asked = json.loads(message.content)
    talk = [{"role": "system", "text": "S"}, {"role": "user", "text": "U"}]
    assert asked["state"] == {"question": talk, "response": "response 0", "reference": "R"}
    assert asked["kind"] == "score"
    assert isinstance(message, Message)


@pytest.mark.parametrize("given", [None, 7, 64])
def test_local_server_gets_four_connections_by_default(given) -> None:
    limit = {} if given is None else {"max_connections": given}
    reach = BackendSettings(base_url="http://127.0.0.1:9/v1", **limit)
    backend = open_backend("systemone/x", reach)
    assert backend.max_connections == (given or 4)


def test_price_is_at_most_and_output_is_free(tmp_path: Path) -> None:
    table = tmp_path / "prices.toml"
    table.write_text('as_of = "2026-11-01"\n[models."systemone/x"]\ninput = 0.1\noutput = 0.0\n')
    reach = BackendSettings(base_url="http://127.0.0.1:9/v1", prices=str(table))
    backend = open_backend("systemone/x", reach)
    assert backend.price(1_000_000, 500) == pytest.approx(0.1)
    assert "at most" in backend.forecast([])[0]


def test_extra_body_joins_request() -> None:
    more = {"extra_body": {"x": 1}}
    with (
        DecisionStub() as stub,
        us.Judge("systemone/stub", method="direct", base_url=stub.url, **more) as judge,
        pytest.raises(us.UnswayedError, match="extra fields"),
    ):
        judge.answer("Which?", ["one", "two"])
    with pytest.raises(UsageError, match="unswayed sets state"):
        open_backend("systemone/x", BackendSettings(base_url=stub.url, extra_body='{"state": 1}'))
