"""Inspect AI: the scorer's and the permuted figures are the audit's; failures are unscored."""

import hashlib
import logging
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import unswayed as us
from unswayed.base.errors import UsageError
from unswayed.data.importers import import_files

pytest.importorskip(
    "inspect_ai", reason="inspect-ai is not installed: pip install unswayed[inspect]"
)

import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import (
    ChatMessageUser,
    ContentImage,
    ContentText,
    Logprob,
    Logprobs,
    Model,
    ModelOutput,
    ModelUsage,
    TopLogprob,
    get_model,
)
from inspect_ai.scorer import accuracy, choice, stderr
from inspect_ai.solver import generate, multiple_choice
from inspect_ai.util import LimitExceededError

from unswayed.integrations.inspect_ai import (
    InspectBackend,
    consistency,
    judge,
    mcq,
    permuted,
    permuted_accuracy,
    position_rate,
    unswayed_pairwise,
)

Said = Callable[..., ModelOutput]
FIGURES = ("consistency", "position_rate", "permuted_accuracy")


def said(text: str, **fields: Any) -> ModelOutput:
    """Output with usage: without it mockllm counts tokens by a tokeniser that it downloads."""
    output = ModelOutput.from_content("mockllm", text, **fields)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def worth(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32


def swayed(messages: Sequence[Any], _tools: Any, _choice: Any, config: Any) -> ModelOutput:
    """Prefers the worthier of two answers, and the one shown first."""
    text = messages[-1].text
    first, second = sorted(
        (word for word in set(text.split()) if word.startswith("ans-")), key=text.index
    )
    logit = 4 * (worth(first) + 0.25 - worth(second))
    output = said("A" if logit > 0 else "B")
    if config.logprobs:
        shares = {"A": 1 / (1 + math.exp(-logit)), "B": 1 / (1 + math.exp(logit))}
        tops = [TopLogprob(token=t, logprob=math.log(p)) for t, p in shares.items()]
        best = max(top.logprob for top in tops)
        content = [Logprob(token=output.completion, logprob=best, top_logprobs=tops)]
        output.choices[0].logprobs = Logprobs(content=content)
    return output


def letter(messages: Sequence[Any], *_: Any) -> ModelOutput:
    """Names the worthiest option, and rather the first."""
    lines = [line for line in messages[-1].text.splitlines() if line[1:3] == ") "]
    worths = [worth(line[3:]) + 0.3 * line.startswith("A") for line in lines]
    return said(f"ANSWER: {lines[worths.index(max(worths))][0]}")


def mock(outputs: Said, name: str = "model") -> Model:
    return get_model(f"mockllm/{name}", custom_outputs=outputs, memoize=False)


def evaluated(task: Any, model: Model, folder: Path, **options: Any) -> EvalLog:
    (log,) = inspect_ai.eval(task, model=model, log_dir=str(folder), display="none", **options)
    return log


def figures(log: EvalLog) -> dict[str, float]:
    assert log.status == "success", log.error
    (scores,) = log.results.scores
    return {name: metric.value for name, metric in scores.metrics.items()}


def audited(log: EvalLog | str) -> dict[str, Any]:
    path = log if isinstance(log, str) else log.location
    data = import_files("inspect", [path])
    return us.audit(items=data.items, decisions=data.decisions, methods=["direct"]).metrics[
        "methods"
    ]["direct"]


def same(log: dict[str, float], row: dict[str, Any]) -> None:
    """Value and interval of each figure that the audit has, and no other."""
    expected = {}
    for name, key in zip(("consistency", "position_rate", "accuracy"), FIGURES, strict=True):
        estimate = row.get(name)
        estimate = estimate[0] if isinstance(estimate, list) else estimate
        if estimate and estimate["value"] is not None:
            ends = (estimate["value"], estimate["low"], estimate["high"])
            expected |= dict(zip((key, f"{key}_low", f"{key}_high"), ends, strict=True))
    assert {name: value for name, value in log.items() if name.startswith(FIGURES)} == expected
    assert "consistency_low" in expected


def pairs(n: int, **more: Any) -> list[us.Item]:
    return [
        us.Item(
            id=f"q{k}",
            prompt=f"question {k}",
            candidates=(f"ans-{k}-x", f"ans-{k}-y"),
            gold=k % 2,
            **more,
        )
        for k in range(n)
    ]


def pairs_file(folder: Path, n: int) -> str:
    path = folder / "pairs.jsonl"
    path.write_bytes(b"\n".join(map(msgspec.json.encode, pairs(n))))
    return str(path)


def test_scorer_figures_equal_audit_and_import(tmp_path: Path) -> None:
    samples = [
        Sample(id=item.id, input=item.prompt, metadata={"baseline": item.candidates[1]})
        for item in pairs(120)
    ]
    policy = mock(lambda messages, *_: said(f"ans-{messages[-1].text.split()[-1]}-x"))
    task = inspect_ai.Task(dataset=samples, solver=generate(), scorer=unswayed_pairwise())
    log = evaluated(task, policy, tmp_path, model_roles={"grader": mock(swayed)})
    items = [
        us.Item(id=item.id, prompt=item.prompt, candidates=item.candidates) for item in pairs(120)
    ]
    native = us.audit(InspectBackend(mock(swayed)), items).metrics["methods"]
    same(figures(log), native["direct"])
    verdicts = us.Judge(InspectBackend(mock(swayed))).verdicts(items)
    assert {own.id: own.scores["unswayed_pairwise"].value for own in log.samples} == {
        verdict.item_id: {0: 1.0, 1: 0.0}[verdict.choice] for verdict in verdicts
    }
    imported = audited(log)
    assert {name: imported[name] for name in ("consistency", "position_rate")} == {
        name: native["direct"][name] for name in ("consistency", "position_rate")
    }


def test_task_judge_measures_accuracy_of_model(tmp_path: Path) -> None:
    items = pairs(80)
    log = evaluated(judge(pairs_file(tmp_path, 80)), mock(swayed), tmp_path)
    native = us.audit(InspectBackend(mock(swayed)), items).metrics["methods"]["direct"]
    same(figures(log), native)
    same(figures(log), audited(log))


def questions(n: int) -> MemoryDataset:
    """Questions with three or four options; the letters are targets."""
    return MemoryDataset(
        [
            Sample(
                id=k,
                input=f"Which is best, {k}?",
                choices=[f"opt-{k}-{c}" for c in range(4 if k % 3 else 3)],
                target="ABC"[k % 3],
            )
            for k in range(n)
        ],
        name="best",
    )


def test_permuted_figures_equal_audit_of_both_log_forms(tmp_path: Path) -> None:
    dataset = questions(40)
    task = inspect_ai.Task(
        dataset=permuted(dataset),
        solver=multiple_choice(),
        scorer=choice(),
        metrics=[
            accuracy(),
            stderr(cluster="unswayed_item"),
            permuted_accuracy(),
            consistency(),
            position_rate(),
        ],
    )
    log = evaluated(task, mock(letter), tmp_path, log_format="eval")
    written = tmp_path / "again.json"
    write_eval_log(read_eval_log(log.location), str(written))
    rows = [audited(log), audited(str(written))]
    assert rows[0] == rows[1]
    same(figures(log), rows[0])
    sizes = [len(sample.choices) for sample in dataset]
    assert len(log.samples) == sum(sizes)
    assert figures(log)["permuted_accuracy"] != pytest.approx(figures(log)["accuracy"])


def test_permuted_moves_choices_and_target() -> None:
    sample = Sample(
        id="q", input="?", choices=["a", "b", "c"], target=["A", "C"], metadata={"x": 1}
    )
    shown = list(permuted([sample, Sample(input="?", choices=["d", "e"], target="b")]))
    assert [(own.id, own.choices, own.target) for own in shown] == [
        ("q@0", ["a", "b", "c"], ["A", "C"]),
        ("q@1", ["b", "c", "a"], ["C", "B"]),
        ("q@2", ["c", "a", "b"], ["B", "A"]),
        ("2@0", ["d", "e"], "B"),
        ("2@1", ["e", "d"], "A"),
    ]
    mark = {"item": "q", "order": [1, 2, 0], "n": 3, "gold": [0, 2], "permutable": True}
    assert shown[1].metadata == {"x": 1, "unswayed_item": "q", "unswayed": mark}
    fixed = Sample(input="?", choices=["a", "b"], target="AB", metadata={"permutable": False})
    assert [(own.choices, own.target) for own in permuted([fixed])] == [(["a", "b"], "AB")]
    assert len(permuted([sample], "full")) == 6


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"choices": None}, "sample q: it has 0 `choices`, and 2 to 26 can be permuted"),
        ({"choices": ["a"] * 27}, "sample q: it has 27 `choices`"),
        ({"target": "tin"}, "sample q: its target 'tin' is not a letter of its 2 choices"),
        ({"target": "C"}, "sample q: its target 'C' is not a letter"),
    ],
)
def test_permuted_names_unusable_sample(fields: dict[str, Any], reason: str) -> None:
    sample = Sample(**{"id": "q", "input": "?", "choices": ["a", "b"], "target": "A", **fields})
    with pytest.raises(UsageError, match=reason):
        permuted([sample])


def test_failures_and_unread_answers_are_unscored(tmp_path: Path) -> None:
    def broken(messages: Sequence[Any], *rest: Any) -> ModelOutput:
        text = messages[-1].text
        if "ans-0-" in text:
            raise RuntimeError("no such model")
        if "ans-1-" in text:
            return said("", stop_reason="content_filter")
        if "ans-2-" in text:
            return said("", error="overloaded")
        return swayed(messages, *rest)

    log = evaluated(judge(pairs_file(tmp_path, 30)), mock(broken), tmp_path)
    scores = {own.id: own.scores["unswayed_pairwise"] for own in log.samples}
    assert all(math.isnan(scores[f"q{k}"].value) for k in range(3))
    assert "RuntimeError: no such model" in scores["q0"].explanation
    assert "with finish reason 'content_filter'" in scores["q1"].explanation
    assert "overloaded" in scores["q2"].explanation
    (results,) = log.results.scores
    assert (results.scored_samples, results.unscored_samples) == (27, 3)
    native = us.audit(InspectBackend(mock(swayed)), pairs(30)[3:]).metrics["methods"]["direct"]
    same(figures(log), native)
    assert audited(log)["consistency"]["n"] >= 27


def test_no_scored_sample_gives_no_figure(tmp_path: Path) -> None:
    log = evaluated(judge(pairs_file(tmp_path, 2)), mock(lambda *_: said("A")), tmp_path)
    assert [own.scores["unswayed_pairwise"].explanation.splitlines()[0] for own in log.samples] == [
        "no verdict, without label probabilities"
    ] * 2
    assert set(figures(log)) == {"accuracy", "stderr"}
    log = evaluated(
        judge(pairs_file(tmp_path, 2), method="vote"), mock(lambda *_: said("A")), tmp_path
    )
    assert [own.scores["unswayed_pairwise"].value for own in log.samples] == [0.5, 0.5]
    assert figures(log)["consistency"] == 0


def test_limit_of_inspect_passes_through_judge() -> None:
    def limited(*_: Any) -> ModelOutput:
        raise LimitExceededError("token", value=2, limit=1)

    judge_of_pairs = us.Judge(InspectBackend(mock(limited)))
    with judge_of_pairs, pytest.raises(LimitExceededError):
        list(judge_of_pairs.verdicts(pairs(3)))


def test_scorer_names_sample_it_cannot_judge(tmp_path: Path) -> None:
    picture = ChatMessageUser(
        content=[ContentText(text="?"), ContentImage(image="data:image/png;base64,AAAA")]
    )
    for sample, reason in (
        (Sample(input="?", id="q"), "sample q: its metadata has no text 'baseline'"),
        (
            Sample(input=[picture], id="q", metadata={"baseline": "x"}),
            "sample q: its input has more than text",
        ),
    ):
        task = inspect_ai.Task(dataset=[sample], solver=generate(), scorer=unswayed_pairwise())
        log = evaluated(task, mock(lambda *_: said("y")), tmp_path)
        assert log.status == "error"
        assert reason in log.error.message


def test_conversation_is_judged_with_its_turns(tmp_path: Path) -> None:
    prompts = []

    def judged(messages: Sequence[Any], *rest: Any) -> ModelOutput:
        prompts.append(messages[-1].text)
        return swayed(messages, *rest)

    turns = [ChatMessageUser(content="first turn"), ChatMessageUser(content="second turn")]
    sample = Sample(input=turns, metadata={"other": "ans-1-y"})
    scorer = unswayed_pairwise(baseline="other", model=mock(judged))
    task = inspect_ai.Task(dataset=[sample], solver=generate(), scorer=scorer)
    log = evaluated(task, mock(lambda *_: said("ans-1-x")), tmp_path)
    assert log.status == "success"
    assert len(prompts) == 2
    assert all("first turn" in text and "second turn" in text for text in prompts)


def test_epochs_are_warned_of_and_first_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        log = evaluated(judge(pairs_file(tmp_path, 20)), mock(swayed), tmp_path, epochs=2)
    assert sum("epochs repeat samples" in record.message for record in caplog.records) == 1
    native = us.audit(InspectBackend(mock(swayed)), pairs(20)).metrics["methods"]["direct"]
    same(figures(log), native)


def test_loop_other_than_asyncio_is_refused() -> None:
    scoring = unswayed_pairwise()(SimpleNamespace(epoch=1), None)
    with pytest.raises(UsageError, match="runs on trio"):
        scoring.send(None)


def test_built_in_tasks_are_found_by_name(tmp_path: Path) -> None:
    log = evaluated("unswayed/mcq", mock(letter), tmp_path, limit=8)
    assert len(log.samples) == 8
    assert log.eval.task == "unswayed/mcq"
    assert {"permuted_accuracy", "consistency", "position_rate"} <= set(figures(log))


def test_several_right_answers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(
        '{"id":"q","task":"mcq","prompt":"?","candidates":["a","b","c"],"gold":[0,1]}\n'
    )
    with pytest.raises(UsageError, match="q has several right answers"):
        mcq(str(path))


def test_backend_keeps_usage_and_probabilities() -> None:
    def counted(*_: Any) -> ModelOutput:
        output = swayed(*_)
        output.usage = ModelUsage(
            input_tokens=5, output_tokens=2, input_tokens_cache_read=3, total_cost=0.5
        )
        return output

    decisions = us.audit(InspectBackend(mock(counted, "m")), pairs(3)).decisions
    assert {(d.model, d.input_tokens, d.output_tokens, d.cost_usd) for d in decisions} == {
        ("inspect/mockllm/m", 8, 2, 0.5)
    }
    assert all(d.probs is not None and sum(d.probs) == pytest.approx(1) for d in decisions)
