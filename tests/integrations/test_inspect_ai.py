"""Inspect AI: the scorer's and the permuted figures are the audit's; failures are unscored."""

import hashlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import unswayed as us
from unswayed.data.importers import import_files

pytest.importorskip(
    "inspect_ai", reason="inspect-ai is not installed: pip install unswayed[inspect]"
)

import inspect_ai
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import (
    Logprob,
    Logprobs,
    Model,
    ModelOutput,
    ModelUsage,
    TopLogprob,
    get_model,
)
from inspect_ai.solver import generate

from unswayed.integrations.inspect_ai import (
    InspectBackend,
    judge,
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
    file = tmp_path / "pairs.jsonl"
    file.write_bytes(b"\n".join(map(msgspec.json.encode, items)))
    log = evaluated(judge(str(file)), mock(swayed), tmp_path)
    native = us.audit(InspectBackend(mock(swayed)), items).metrics["methods"]["direct"]
    same(figures(log), native)
    same(figures(log), audited(log))
