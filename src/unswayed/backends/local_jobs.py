"""Queries to a local model as token ids, window by window, and answers that are a label from its probabilities."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.backends import BackendSettings
from unswayed.backends.local_chats import (
    ChatWriter,
    Ids,
    LabelTokens,
    may_think,
    template_arguments,
)
from unswayed.backends.local_costs import PassCosts
from unswayed.backends.local_plans import WINDOW, Form, PromptBatch, by_length, plan
from unswayed.backends.local_texts import seed_of
from unswayed.backends.model_folders import ModelFolder
from unswayed.backends.protocol import Answer, Backend, Outcome, failed, ranked, too_long
from unswayed.model.calls import Failure, Query, Request, Response
from unswayed.model.parsing import is_failed_attempt

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CPU_TOKENS: Final = 2048
"""Padded tokens per batch on a CPU: up to 1.7 times faster than 8192, which leave its caches."""

B = TypeVar("B")

FloatArray = NDArray[np.float64]


class Job(NamedTuple):
    """One query, ready to run; where its label ids are None, a text is generated."""

    query: Query
    tokens: list[int]
    label_ids: Ids | None

    @property
    def room(self) -> int:
        """Tokens it may take up, prompt and answer."""
        return len(self.tokens) + (1 if self.label_ids else self.query.request.max_tokens)


class LocalBackend(Backend):
    """A model on this machine, which takes one batch at a time in a thread of its own."""

    provider: ClassVar[str]
    gives_logprobs = True
    hands_over = True
    offline = True

    def __init__(self, folder: ModelFolder, settings: BackendSettings) -> None:
        self.model = f"{self.provider}/{folder.name}"
        self.own_prompt = folder.prompt
        self.extra_body = settings.extra_body
        template_arguments(settings, folder.prompt, name=self.model)
        self.folder, self._settings = folder, settings
        # torch's settings are per thread
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="unswayed-model")
        self._loaded: Any = None

    def answer(self, queries: Iterable[Query]) -> AsyncGenerator[Answer, None]:
        """Answer in windows of queries, each in batches; a subclass prepares, divides and runs them."""
        return answer_in_windows(
            queries, self._thread, self._prepare, self._batches, lambda batch: self._run(*batch)
        )

    def _prepare(self, window: Sequence[Query]) -> tuple[list[Job], list[Answer]]:
        raise NotImplementedError

    def _batches(self, jobs: list[Job]) -> Iterator[tuple[Any, ...]]:
        raise NotImplementedError

    def _run(self, *batch: Any, **_: Any) -> Iterator[list[Answer]]:
        raise NotImplementedError

    def _label(self, job: Job, logprobs: FloatArray) -> Response:
        tokens = len(job.tokens)
        return label_response(job.query.request, logprobs, model=self.model, input_tokens=tokens)

    def _text(self, job: Job, text: str, finish_reason: str, tokens: int) -> Response:
        return Response(
            text=text,
            finish_reason=finish_reason,
            input_tokens=len(job.tokens),
            output_tokens=tokens,
            cost_usd=0.0,
            model=self.model,
        )

    async def close(self) -> None:
        """Let go of the model's memory once the running batch is done."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        self._loaded = None


def timed(query: Query, outcome: Outcome, latency_s: float) -> Answer:
    """Return an answer with its share of the time of a batch."""
    if isinstance(outcome, Response):
        outcome = msgspec.structs.replace(outcome, latency_s=latency_s)
    return query, outcome


async def answer_in_windows(
    queries: Iterable[Query],
    thread: Executor,
    prepare: Callable[[Sequence[Query]], tuple[list[Job], list[Answer]]],
    batches: Callable[[list[Job]], Iterable[B]],
    run: Callable[[B], Iterator[list[Answer]]],
) -> AsyncGenerator[Answer, None]:
    """Answer some queries at a time, in batches that the model's own thread prepares and runs.

    A batch runs in passes. If cancelled, it finishes the pass under way, yields its answers and starts no
    other.
    """
    loop = asyncio.get_running_loop()
    pending = iter(queries)
    while window := list(itertools.islice(pending, WINDOW)):
        jobs, refused = await loop.run_in_executor(thread, prepare, window)
        for answered in refused:
            yield answered
        for batch in batches(jobs):
            passes, left = run(batch), True
            while left:
                await asyncio.sleep(0)  # where a stop can come between two passes
                running = loop.run_in_executor(thread, next, passes, ())
                try:
                    await asyncio.wait([running])
                finally:
                    answers = await running
                    for answered in answers:
                        yield answered
                left = bool(answers)


@dataclass(frozen=True, slots=True)
class Reader:
    """Turns queries into the token ids that one model reads."""

    writer: ChatWriter
    labels: LabelTokens
    longest: int | None  # most tokens of prompt and answer together; None if the model does not say

    @classmethod
    def of(
        cls,
        tokenizer: PreTrainedTokenizerBase,
        folder: ModelFolder,
        settings: BackendSettings,
        *,
        name: str,
        longest: object,
    ) -> Reader:
        """Return the reader of a model, which is told of its template what its folder and the settings say."""
        arguments = template_arguments(settings, folder.prompt, name=name)
        writer = ChatWriter(tokenizer, model=name, arguments=arguments)
        return cls(writer, LabelTokens(writer), longest if isinstance(longest, int) else None)

    def prepare(self, queries: Sequence[Query]) -> tuple[list[Job], list[Answer]]:
        """Render and tokenise; prompts too long for the model are refused."""
        jobs: list[Job] = []
        refused: list[Answer] = []
        longest, model = self.longest, self.writer.model
        for thinking in (False, True):
            chosen = [query for query in queries if _may_think(query) is thinking]
            chats = [query.request.messages for query in chosen]
            written = self.writer.write(chats, thinking=thinking)
            for query, (text, tokens) in zip(chosen, written, strict=True):
                request = query.request
                # label logprobs are asked for exactly where the answer is the label itself
                ids = self.labels.ids(request.labels, text) if request.top_logprobs else None
                job = Job(query, tokens, ids)
                if longest is not None and job.room > longest:
                    refused.append((query, too_long(query, job.room, longest=longest, model=model)))
                else:
                    jobs.append(job)
        return jobs, refused


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """Plan for reading queries with one model of transformers: their tokens and their batches.

    Weights are not needed, so a model that is only priced is planned for in the same way.
    """

    reader: Reader
    costs: PassCosts
    cap: int  # most padded tokens of a pass
    cap_apart: int  # the same of a pass over rows
    pads: bool  # whether prompts of different lengths may run together
    trees: bool  # whether the model takes trees

    @classmethod
    def of(
        cls,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        folder: ModelFolder,
        settings: BackendSettings,
        *,
        name: str,
        device: torch.device,
        pads: bool,
        trees: bool,
    ) -> LocalPlan:
        """Return the plan of a model on a device."""
        longest = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        reader = Reader.of(tokenizer, folder, settings, name=name, longest=longest)
        costs = PassCosts.of(model, memory_gb=settings.memory_gb, device=device)
        cap = settings.batch_tokens
        apart = min(cap, CPU_TOKENS) if device.type == "cpu" else cap
        return cls(reader, costs, cap, apart, pads, trees)

    def prepare(self, queries: Sequence[Query]) -> tuple[list[Job], list[Answer]]:
        """Render and tokenise; prompts too long for the model or for the memory are refused."""
        jobs, refused = self.reader.prepare(queries)
        fitting: list[Job] = []
        for job in jobs:
            needed = self.costs.memory(job.room, scored=1, caches=not job.label_ids)
            if needed <= self.costs.budget:
                fitting.append(job)
            else:
                refused.append((job.query, self._over_budget(job, needed)))
        return fitting, refused

    def scored(self, jobs: Sequence[Job]) -> Iterator[tuple[list[Job], PromptBatch]]:
        """Yield the jobs whose answer is a label, in the batches in which they are read."""
        scored = [job for job in jobs if job.label_ids]
        for batch in plan(
            [job.tokens for job in scored],
            [job.query.item.id for job in scored],
            costs=self.costs,
            cap=self.cap,
            cap_apart=self.cap_apart,
            pads=self.pads,
            trees=self.trees,
        ):
            yield [scored[row] for row in batch.rows], batch

    def written(self, jobs: Sequence[Job]) -> Iterator[list[Job]]:
        """Yield the jobs that are answered with a text, longest first, in batches."""
        written = [job for job in jobs if not job.label_ids]

        def fits(count: int, longest: int) -> bool:
            needed = self.costs.memory(longest, rows=count, scored=count, caches=True)
            return needed <= self.costs.budget

        for part in by_length([job.room for job in written], cap=self.cap, fits=fits):
            yield [written[row] for row in part]

    def _over_budget(self, job: Job, needed: float) -> Failure:
        return failed(
            job.query,
            f"a prompt and answer of {job.room} tokens would take about {needed / 1e9:.2g} GB of memory in addition "
            f"to {self.reader.writer.model}, over the "
            f"{self.costs.budget / 1e9:.2g} GB that its passes may take. Raise --memory-gb "
            "(BackendSettings(memory_gb=...)), free memory (half of the free memory is used by default), or choose "
            "a smaller model or dtype.",
        )


class PromptCounts:
    """Amounts to read for label prompts."""

    def __init__(self) -> None:
        self.forms: Counter[Form] = Counter()  # how many prompts were read how
        self.given = 0  # their tokens
        self.read = 0  # the tokens that go through the model

    def add(self, jobs: Sequence[Job], batch: PromptBatch) -> None:
        """Count a batch."""
        self.forms[batch.form] += len(jobs)
        self.given += sum(len(job.tokens) for job in jobs)
        self.read += batch.tokens


def label_logprobs(label_ids: Ids, ids: Sequence[int], logprobs: FloatArray) -> FloatArray:
    """Log-probability of each label over the tokens that say it, shape (rows, labels).

    `logprobs` are those of the tokens `ids`, which ascend, shape (rows, tokens). Not-a-number
    stays, for the caller to refuse.
    """
    columns = [logprobs[:, np.searchsorted(ids, label)] for label in label_ids]
    with np.errstate(invalid="ignore"):
        return np.stack([np.logaddexp.reduce(column, axis=1) for column in columns], axis=1)


def label_response(
    request: Request, logprobs: FloatArray, *, model: str, input_tokens: int
) -> Response:
    """Return the answer where the label is the answer, from exact log-probabilities of shape (labels,)."""
    labels = request.labels
    text = labels[_chosen(logprobs, request)]
    return Response(
        text=text,
        tokens=(text,),
        top_logprobs=(ranked(labels, logprobs.tolist()),),
        exact=True,
        input_tokens=input_tokens,
        output_tokens=1,
        cost_usd=0.0,
        model=model,
    )


def broken_off(job: Job, reasons: Iterable[str | None], *, model: str) -> Failure | None:
    """Return a failure if a finish reason means a failed attempt, otherwise None."""
    for reason in filter(is_failed_attempt, reasons):
        return failed(job.query, f"{model} ended every attempt with {reason!r}.")
    return None


def _may_think(query: Query) -> bool:
    return may_think(
        answer_only=query.answer_only or query.request.top_logprobs > 0,
        has_schema=query.request.schema is not msgspec.UNSET,
    )


def _chosen(logprobs: FloatArray, request: Request) -> int:
    """Return the likeliest label, or a draw among the labels at the request's temperature."""
    if request.temperature <= 0:
        return int(logprobs.argmax())
    noise = np.random.default_rng(seed_of(request)).gumbel(size=len(logprobs))
    return int((logprobs / request.temperature + noise).argmax())
