"""Inspect AI: a model as judge, a pairwise scorer, multiple choice in every order, and their metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable
from functools import cache
from string import ascii_uppercase
from typing import Any, Final

from inspect_ai import Task, scorer, solver, task, util
from inspect_ai import model as models
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import SampleScore, Score, accuracy, stderr

from unswayed.auditing.rows import as_json
from unswayed.backends.protocol import Answer, Backend, Outcome, overlapping
from unswayed.base.errors import UsageError
from unswayed.calls.judge import Judge
from unswayed.calls.judging import Judged
from unswayed.data.importers.inspect_log import INSPECT
from unswayed.data.importers.protocol import MARK, Source, mark_of
from unswayed.methods import JUDGING
from unswayed.methods.names import parse_method
from unswayed.metrics import METRICS, Metric, measure, outcomes_from_decisions
from unswayed.metrics.accuracy import ACCURACY
from unswayed.metrics.consistency import CONSISTENCY
from unswayed.metrics.rates import POSITION_RATE
from unswayed.model import permutations
from unswayed.model.calls import Failure, Query, Response, TokenLogprob
from unswayed.model.decisions import Decision, Estimate, Evidence
from unswayed.model.items import Item, Message, Text, as_item, text_of
from unswayed.sources import load_data

CLUSTER: Final = "unswayed_item"
"""Key of a sample's metadata: the question that it shows in some order."""
PAIR: Final = "unswayed_pair"
"""Key of a sample's metadata: the item that the task `judge` judges."""
_warn: Final = cache(logging.getLogger(__name__).warning)


class InspectBackend(Backend):
    """A model of Inspect as the judge in `audit`, `calibrate` and `Judge`.

    Retries, limits, cache and prices stay Inspect's. The JSON schema of a request is not sent.

    Args:
        model: Model that `inspect_ai.model.get_model` returns.
        logprobs: Whether to ask for label probabilities. False for a provider that refuses to give them.
        at_once: Most calls at the same time.
    """

    def __init__(self, model: models.Model, *, logprobs: bool = True, at_once: int = 32) -> None:
        self.model = f"inspect/{model}"
        self.gives_logprobs = logprobs
        self._model, self._at_once = model, at_once

    def answer(self, queries: Iterable[Query]) -> AsyncGenerator[Answer, None]:
        """Answer every query once; see `Backend.answer`."""
        return overlapping(queries, self._outcome, at_once=self._at_once)

    async def _outcome(self, query: Query) -> Outcome:
        request = query.request
        config = models.GenerateConfig(
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            logprobs=True if request.top_logprobs else None,
            top_logprobs=request.top_logprobs or None,
            seed=request.sample or None,
        )
        messages = [
            getattr(models, f"ChatMessage{own.role.title()}")(content=own.content)
            for own in request.messages
        ]
        try:
            output = await self._model.generate(messages, config=config)
        except util.LimitExceededError:
            raise
        except Exception as error:  # of any provider
            reason = f"{type(error).__name__}: {error}"
        else:
            if output.choices and not output.error:
                return _response(output)
            reason = output.error or "the model gave no answer"
        return Failure(error="BackendError", message=f"{query.item.id}: {self.model}: {reason}")


def _response(output: Any) -> Response:
    first, usage = output.choices[0], output.usage or models.ModelUsage()
    cached = usage.input_tokens_cache_read or 0
    content = first.logprobs.content if first.logprobs else ()
    tops = [
        [TokenLogprob(top.token, top.logprob) for top in own.top_logprobs or ()] for own in content
    ]
    ranked = [tuple(sorted(top, key=lambda top: -top.logprob)) for top in tops]
    return Response(
        text=output.completion,
        tokens=tuple(own.token for own in content) if content else None,
        top_logprobs=tuple(ranked) if content else None,
        finish_reason="length" if first.stop_reason == "max_tokens" else first.stop_reason,
        input_tokens=usage.input_tokens + cached + (usage.input_tokens_cache_write or 0),
        cached_tokens=cached,
        output_tokens=usage.output_tokens,
        usage_known=output.usage is not None,
        cost_usd=usage.total_cost,
        latency_s=output.time or 0.0,
        model=output.model or None,
    )


def _figure(metric: Metric, prefix: str = "") -> scorer.Metric:
    """Return a metric of `metrics.json` as one of Inspect, at the first place if it has several.

    Inspect leaves out None. It calls equal keys of two metrics `value`, `value2`.
    """
    name = METRICS.name_of(metric)

    def compute(scores: list[SampleScore]) -> scorer.Value:
        items: dict[str, Item] = {}
        decisions: list[Decision] = []
        for own in scores:
            kept, shown = own.score.metadata or {}, own.sample_metadata
            mark = None if MARK in kept else mark_of(shown, field="metadata")
            choices = [""] * len(mark.order) if mark else None
            scored = {"": {"answer": own.score.answer, "metadata": kept}}
            record = {"id": own.sample_id, "choices": choices, "metadata": shown, "scores": scored}
            read = INSPECT.convert(record, Source("scores", 1))
            if read.item is not None:
                items[read.item.id] = read.item
                decisions += read.decisions
        estimate = Estimate(value=None)
        if items:
            row = measure(outcomes_from_decisions(items.values(), decisions), names=[name])
            estimate = (*row.values.get(name, ()), estimate)[0]
        figures = {"": estimate.value, "_low": estimate.low, "_high": estimate.high}
        return {f"{prefix}{name}{end}": figure for end, figure in figures.items()}

    return compute


@scorer.metric
def consistency() -> scorer.Metric:
    """Consistency over the orders, with its 95% interval."""
    return _figure(CONSISTENCY)


@scorer.metric
def position_rate() -> scorer.Metric:
    """Share of answers that name the first place, with its 95% interval."""
    return _figure(POSITION_RATE)


@scorer.metric
def permuted_accuracy() -> scorer.Metric:
    """Accuracy over the orders, each question counted once, with its 95% interval."""
    return _figure(ACCURACY, "permuted_")


@scorer.scorer(metrics=[accuracy(), stderr(), consistency(), position_rate(), permuted_accuracy()])
def unswayed_pairwise(
    baseline: str = "baseline",
    method: str = JUDGING,
    model: str | models.Model | None = None,
    role: str = "grader",
) -> scorer.Scorer:
    """Judge the output against another answer in both orders: 1 for a win, 0.5 for a tie, 0 for a loss.

    A sample without a verdict is unscored. The score keeps the decisions for `unswayed import inspect`.
    Label probabilities are requested only for a method that reads them.

    Args:
        baseline: Key of the other answer in the sample's metadata.
        method: Method that decides, as `--method` takes it.
        model: The judge; without it the model of the role, and without that the evaluated model.
        role: Role of the judge.
    """

    reads = parse_method(method).readings()
    logprobs = any(Evidence.PROBS in reading for reading in reads)

    async def score(state: solver.TaskState, target: scorer.Target) -> Score:
        _check_epoch(state)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise UsageError(
                "Unswayed needs asyncio, and this evaluation runs on trio. Unset INSPECT_ASYNC_BACKEND."
            ) from None
        item = _pair(state, baseline)
        judged_by = models.get_model(model or None, role=None if model else role)
        judge = InspectBackend(judged_by, logprobs=logprobs)
        async with Judge(judge, method=method) as judging:
            (judged,) = [judged async for judged in judging.ajudged([item])]
            return _score(judged, item, ", ".join(judging.null_reasons))

    return score


def _check_epoch(state: solver.TaskState) -> None:
    if state.epoch > 1:
        _warn("epochs repeat samples, and the metrics of Unswayed take the first. Set epochs=1.")


def _pair(state: solver.TaskState, baseline: str) -> Item:
    """Return the item of the task `judge`, or the output and the other answer."""
    if PAIR in state.metadata:
        return as_item(state.metadata[PAIR])
    other, given = state.metadata.get(baseline), state.input
    if not isinstance(other, str):
        raise UsageError(
            f"sample {state.sample_id}: its metadata has no text {baseline!r}. Name the key of the other "
            "answer with baseline=."
        )
    turns = () if isinstance(given, str) else given
    parts = [part for own in turns if not isinstance(own.content, str) for part in own.content]
    if any(part.type != "text" for part in parts):
        raise UsageError(
            f"sample {state.sample_id}: its input has more than text, which a judge would not see. Leave the sample "
            f"out."
        )
    prompt: Text = tuple(Message(own.role, own.text) for own in turns) or given
    name = f"{state.sample_id}#{state.epoch}" if state.epoch > 1 else str(state.sample_id)
    return Item(id=name, prompt=prompt, candidates=(state.output.completion, other))


def _score(judged: Judged, item: Item, null_reason: str) -> Score:
    verdict, decisions = judged.verdict, judged.decisions
    kept = as_json({MARK: {"decisions": decisions, "gold": item.gold}})
    replies = "\n".join(f"{own.order}: {own.text}" for own in decisions)
    if verdict is None or verdict.choice is None:
        return Score.unscored(
            reason="grader_failed",
            explanation=str(judged.failure or f"no verdict, {null_reason}\n{replies}"),
            metadata=kept if decisions else None,
        )
    value = 0.5 if verdict.choice == "tie" else 1.0 - verdict.choice
    return Score(value=value, answer=str(verdict.choice), explanation=replies, metadata=kept)


def permuted(dataset: Iterable[Sample], orders: str = "cyclic", *, seed: int = 0) -> MemoryDataset:
    """Show each multiple-choice sample in every order of a set: a sample per order, its target moved along.

    Solvers and scorers of letters work unchanged. Do not shuffle the choices again, and keep epochs at 1.
    A sample with `"permutable": false` in its metadata keeps its order.

    Args:
        dataset: Samples with `choices` and letters as `target`.
        orders: Set of orders, as `--orders` takes it.
        seed: Seed of `random:K`.

    Raises:
        UsageError: If a sample has no choices, or a target that is not of their letters.
    """
    samples = []
    for number, sample in enumerate(dataset, start=1):
        name = str(number if sample.id is None else sample.id)
        right, choices, metadata = _right(sample, name), sample.choices, sample.metadata or {}
        permutable = metadata.get("permutable") is not False
        plan = permutations.orders(orders if permutable else "identity", len(choices), seed=seed)
        for k, order in enumerate(plan):
            letters = [ascii_uppercase[order.index(candidate)] for candidate in right]
            mark = {"item": name, "order": list(order), "n": len(order), "gold": right}
            fields = {
                "id": f"{name}@{k}",
                "choices": [choices[candidate] for candidate in order],
                "target": letters if isinstance(sample.target, list) else "".join(letters),
                "metadata": {**metadata, CLUSTER: name, MARK: {**mark, "permutable": permutable}},
            }
            samples.append(sample.model_copy(deep=True, update=fields))
    return MemoryDataset(samples, name=getattr(dataset, "name", None))


def _right(sample: Sample, name: str) -> list[int]:
    """Return the right choices of a sample that can be permuted."""
    n, most = len(sample.choices or ()), len(ascii_uppercase)
    if not 2 <= n <= most:
        raise UsageError(
            f"sample {name}: it has {n} `choices`, and 2 to {most} can be permuted. Leave the sample "
            f"out."
        )
    letters = "".join(sample.target).replace(",", "").replace(" ", "").upper()
    if not set(letters) <= set(ascii_uppercase[:n]):
        raise UsageError(
            f"sample {name}: its target {sample.target!r} is not a letter of its {n} choices."
        )
    return [ascii_uppercase.index(letter) for letter in letters]


@solver.solver
def single_epoch() -> solver.Solver:
    """Pass the sample on; warn if epochs repeat it."""

    async def solve(state: solver.TaskState, generate: solver.Generate) -> solver.TaskState:
        _check_epoch(state)
        return state

    return solve


@task
def mcq(data: str = "tiny-mcq", orders: str = "cyclic", seed: int = 0) -> Task:
    """Multiple choice in every order of a set.

    Args:
        data: Items with at most one right answer: a file, a benchmark or a built-in set.
        orders: Set of orders, as `--orders` takes it.
        seed: Seed of `random:K`.
    """
    samples = []
    for item in load_data(data, task="mcq"):
        target = "".join(ascii_uppercase[right] for right in item.gold_candidates())
        if len(target) > 1:
            raise UsageError(
                f"{item.id} has several right answers, which Inspect expects together. Leave the item out."
            )
        metadata = {"permutable": item.permutable}
        choices, prompt = list(map(text_of, item.candidates)), text_of(item.prompt)
        samples.append(
            Sample(id=item.id, input=prompt, choices=choices, target=target, metadata=metadata)
        )
    figures = [consistency(), position_rate(), permuted_accuracy()]
    return Task(
        dataset=permuted(MemoryDataset(samples, name=data), orders, seed=seed),
        solver=[single_epoch(), solver.multiple_choice()],
        scorer=scorer.choice(),
        metrics=[accuracy(), stderr(cluster=CLUSTER), *figures],
    )


@task
def judge(data: str = "tiny-judge", method: str = JUDGING) -> Task:
    """Pairs of answers, judged by the evaluated model: 1 if the first wins.

    Args:
        data: Pairs: a file, a benchmark or a built-in set.
        method: Method that decides, as `--method` takes it.
    """
    samples = [
        Sample(id=item.id, input=text_of(item.prompt), metadata={PAIR: as_json(item)})
        for item in load_data(data, task="pairwise")
    ]
    return Task(
        dataset=MemoryDataset(samples, name=data),
        solver=single_epoch(),
        scorer=unswayed_pairwise(method=method),
    )
