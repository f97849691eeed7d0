from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

import unswayed as us
from unswayed.backends import open_backend
from unswayed.backends.replay import ReplayBackend
from unswayed.base.errors import ItemError, RunDirectoryError, UnswayedError, UsageError
from unswayed.model.calls import Failure, Query, Request, Response, TokenLogprob, key_of
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, ItemSet, Message, Task
from unswayed.model.parsing import read_decision
from unswayed.model.presentation import X0, X2, Ask, Presentation, Substitution
from unswayed.store import CallStore

ITEM = Item(id="q", task=Task.MCQ, prompt="?", candidates=("a", "b", "c"), gold=1)
LABELS = ("A", "B", "C")


def decision(**fields: object) -> Decision:
    base: dict[str, object] = {
        "item_id": "q", "order": (1, 2, 0), "labels": LABELS, "label_set": LABELS, "choice": 2,
        "probs": (0.1, 0.2, 0.7), "label_mass": 0.9, "model": "openai/gpt", "input_tokens": 12,
        "output_tokens": 3, "cost_usd": 0.5, "text": "B",
    }  # fmt: skip
    return Decision(**{**base, **fields})


def write(path: Path, *decisions: Decision) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in decisions))
    return path


def query(ask: Ask, *, model: str = "m", labels: tuple[str, ...] = LABELS) -> Query:
    request = Request(
        model=model, messages=(Message("user", "?"),), labels=labels, max_tokens=16, top_logprobs=20
    )
    return Query(ITEM, ask, request)


def answers(model: str, *queries: Query) -> list[Response | Failure]:
    backend = open_backend(model)

    async def ask() -> list[Response | Failure]:
        found = [response async for _, response in backend.answer(queries)]
        await backend.close()
        return found

    return asyncio.run(ask())


def reread(recorded: Decision, path: Path) -> Decision:
    """The decision that comes back when the recorded one is replayed and parsed."""
    asked = query(recorded.ask)
    (response,) = answers(f"replay/{write(path, recorded)}", asked)
    assert isinstance(response, Response), response
    return read_decision(ITEM, asked.ask, LABELS, response, model="m", answer_only=True)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"choice": 0, "probs": (0.8, 0.1, 0.1), "label_mass": None},
        {"choice": 1, "probs": (0.0, 1.0, 0.0)},
        {"choice": 1, "probs": None, "label_mass": None},
        {"choice": "tie", "probs": None, "label_mass": None, "text": "It is a tie."},
        {"choice": None, "probs": None, "label_mass": None, "text": "I cannot say."},
        {"choice": None, "probs": None, "label_mass": None, "text": None},
        {"finish_reason": "tool_calls"},
        {"choice": 1, "probs": None, "label_mass": None, "finish_reason": "content_filter"},
        {"choice": None, "probs": None, "label_mass": None, "text": "B", "finish_reason": "OTHER"},
    ],
)
def test_a_recorded_decision_reads_back_as_it_was(
    fields: dict[str, object], tmp_path: Path
) -> None:
    recorded = decision(**fields)
    found = reread(recorded, tmp_path / "d.jsonl")
    assert found.choice == recorded.choice
    assert found.order == recorded.order
    assert found.input_tokens == 12
    if recorded.probs is None:
        assert found.probs is None
    else:
        assert found.probs == pytest.approx(recorded.probs)
        assert found.label_mass == pytest.approx(recorded.label_mass or 1.0)
        assert not found.censored


def test_answers_are_found_by_every_part_of_the_question(tmp_path: Path) -> None:
    free = Substitution(("N/A", "N/A", "N/A"))
    recorded = [
        decision(choice=0),
        decision(choice=1, order=(0, 1, 2)),
        decision(choice=2, labels=("B", "C", "A")),
        decision(choice=1, sample=2),
        decision(choice=0, prompt_id="reasoning", probs=None),
        decision(choice=1, substitute=free.candidates),
    ]
    path = write(tmp_path / "d.jsonl", *recorded)
    found = answers(f"replay/{path}", *(query(one.ask) for one in recorded))
    for one, response in zip(recorded, found, strict=True):
        assert isinstance(response, Response)
        assert response.text == LABELS[one.presentation.label_of_candidate(one.choice)]


def test_a_missing_recording_is_a_failure_that_names_it(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", decision())
    (found,) = answers(f"replay/{path}", query(Ask(Presentation((0, 1, 2), (0, 1, 2)))))
    assert isinstance(found, Failure)
    assert "q:" in found.message
    assert "[0, 1, 2]" in found.message
    (other_labels,) = answers(f"replay/{path}", query(decision().ask, labels=("X", "Y", "Z")))
    assert isinstance(other_labels, Failure)


def test_another_recording_is_another_model(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    first = open_backend(f"replay/{write(path, decision())}").model
    again = open_backend(f"replay/{write(path, decision())}").model
    second = open_backend(f"replay/{write(path, decision(choice=0))}").model
    assert first == again
    assert first != second


def test_logprobs_are_promised_only_if_recorded(tmp_path: Path) -> None:
    with_probs = open_backend(f"replay/{write(tmp_path / 'a.jsonl', decision())}")
    without = open_backend(f"replay/{write(tmp_path / 'b.jsonl', decision(probs=None))}")
    assert with_probs.gives_logprobs
    assert not without.gives_logprobs


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not valid JSON"),
        ('{"item_id": "q"}', "order"),
        (json.dumps({"item_id": "q", "order": [0, 0], "labels": ["A", "B"],
                     "label_set": ["A", "B"]}), "permutation"),
        ('{"item_id": "q", "meta": ' + '[' * 200_000, "nested too deep"),
        (msgspec.json.encode(decision(choice=0)).decode(), "answered on line 1"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(msgspec.json.encode(decision()).decode() + "\n" + line + "\n")
    with pytest.raises(ItemError, match=message) as caught:
        open_backend(f"replay/{path}")
    assert f"{path}:2" in str(caught.value)


def test_two_models_are_not_replayed_as_one(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", decision(), decision(model="other/judge"))
    with pytest.raises(ItemError, match=r"twice, by openai/gpt and by other/judge"):
        open_backend(f"replay/{path}")


def test_replay_without_decisions_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or directory"):
        open_backend(f"replay/{tmp_path / 'missing.jsonl'}")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(ItemError, match="no decisions"):
        open_backend(f"replay/{tmp_path / 'empty.jsonl'}")
    with pytest.raises(RunDirectoryError):
        open_backend(f"replay/{tmp_path}")


def recorded_run(directory: Path) -> list[Query]:
    """A run directory with one answer for X0 and X2 each."""
    pair = Item(id="p", prompt="?", candidates=("a", "b"))
    asked = [
        Query(
            pair, Ask(shown),
            Request(model="openai/gpt", messages=(Message("user", str(shown)),),
                    labels=("A", "B"), max_tokens=16, top_logprobs=20),
        )
        for shown in (X0, X2)
    ]  # fmt: skip
    with CallStore.open(directory) as store:
        store.bind(model="openai/gpt", items=ItemSet.of([pair], name="pairs"))
        store.put_many(
            [
                (
                    key_of(one.request),
                    one.request,
                    Response(text=text, cost_usd=0.1, top_logprobs=((TokenLogprob(text, -0.1),),)),
                )
                for one, text in zip(asked, ("A", "B"), strict=True)
            ]
        )
    return asked


def test_a_run_directory_gives_the_very_calls_back(tmp_path: Path) -> None:
    asked = recorded_run(tmp_path / "run")
    backend = open_backend(f"replay/{tmp_path / 'run'}")
    assert isinstance(backend, ReplayBackend)
    assert backend.model == "openai/gpt"
    assert backend.gives_logprobs
    found = answers(f"replay/{tmp_path / 'run'}", *asked)
    assert [one.text for one in found if isinstance(one, Response)] == ["A", "B"]
    assert all(isinstance(one, Response) and one.cost_usd == 0.0 for one in found)


def test_a_call_that_the_run_did_not_make_is_a_failure(tmp_path: Path) -> None:
    asked, _ = recorded_run(tmp_path / "run")
    other = asked._replace(request=msgspec.structs.replace(asked.request, sample=1))
    (found,) = answers(f"replay/{tmp_path / 'run'}", other)
    assert isinstance(found, Failure)


def test_a_run_directory_is_not_written_to(tmp_path: Path) -> None:
    asked = recorded_run(tmp_path / "run")
    before = (tmp_path / "run" / "calls.sqlite").read_bytes()
    answers(f"replay/{tmp_path / 'run'}", *asked)
    assert (tmp_path / "run" / "calls.sqlite").read_bytes() == before


def test_orders_of_a_log_without_texts_are_answered_apart(tmp_path: Path) -> None:
    items = [Item(id=name, task=Task.PAIRWISE, prompt="", candidates=("", "")) for name in "pq"]
    said = {"p": 0, "q": 1}
    log = [
        decision(
            item_id=name, order=shown.order, labels=("A", "B"), label_set=("A", "B"),
            choice=choice, probs=None, label_mass=None, text="",
        )
        for name, choice in said.items()
        for shown in (X0, X2)
    ]  # fmt: skip
    model = f"replay/{write(tmp_path / 'log.jsonl', *log)}"
    for method in ("vote", "direct"):
        with us.Judge(model, method=method) as judge:
            verdicts = list(judge.verdicts(items))
        assert [verdict.choice for verdict in verdicts] == [0, 1]


def test_no_model_is_asked_about_items_without_texts() -> None:
    items = [Item(id="p", task=Task.PAIRWISE, prompt="", candidates=("", ""))]
    with (
        us.Judge("openai-api/local/m", method="vote", base_url="http://127.0.0.1:9/v1") as judge,
        pytest.raises(UnswayedError, match="neither question nor answers"),
    ):
        list(judge.verdicts(items))
