"""Models on this machine through transformers: `hf/<path or id>[@revision][+bits=4|8][+lora=DIR]`.

Where the answer is the label itself, the label's probability is read off the next-token
distribution: one forward pass, exact, nothing generated. Everything else is generated, held to
its JSON schema where it has one and llguidance is installed.
The model is loaded at the first query, so a run whose calls are all recorded never loads it.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec
import numpy as np

from unswayed.backends import BackendSettings
from unswayed.backends.local_chats import may_think
from unswayed.backends.local_costs import Costs
from unswayed.backends.local_models import LoadedModel, load_model
from unswayed.backends.local_passes import FloatArray, Ids
from unswayed.backends.local_plans import Batch, Step, by_length, plan
from unswayed.backends.local_texts import generate, seed_of
from unswayed.backends.model_folders import ModelFolder, locate
from unswayed.backends.protocol import Answer, Backend, too_long
from unswayed.calls import Failure, Query, Request, Response, TokenLogprob
from unswayed.registry import require

__all__ = ["HuggingFaceBackend", "label_response", "open_huggingface"]

WINDOW: Final = 4096
"""Queries taken at once, so that prompts of like length can share a batch."""

CPU_TOKENS: Final = 2048
"""Padded tokens per batch on a CPU: up to 1.7 times faster than 8192, which leave its caches."""


def open_huggingface(model: str, settings: BackendSettings) -> HuggingFaceBackend:
    """A local folder or Hub id, run here with transformers: `hf/<path or id>[+bits=4|8][+lora=DIR]` (extra: local).

    Finds and fingerprints the model; it is loaded with the first question.

    Raises:
        MissingExtraError: If torch or transformers is not installed.
        UsageError: If there is no such model.
    """
    for module in ("torch", "transformers"):
        require(module, extra="local", feature=f"the local model hf/{model}")
    return HuggingFaceBackend(locate(model), settings)


class _Job(NamedTuple):
    """One query, ready to run; where its label ids are None, a text is generated."""

    query: Query
    tokens: list[int]
    label_ids: Ids | None

    @property
    def room(self) -> int:
        """Tokens it may take up, prompt and answer."""
        return len(self.tokens) + (1 if self.label_ids else self.query.request.max_tokens)


@dataclass(slots=True)
class _Read:
    """What label prompts took to read.

    Attributes:
        prompts: How many were read.
        shared: Of them, those in trees.
        given: Their tokens.
        tokens: The tokens that went through the model.
    """

    prompts: int = 0
    shared: int = 0
    given: int = 0
    tokens: int = 0

    def add(self, jobs: Sequence[_Job], batch: Batch) -> None:
        """Count a batch."""
        self.prompts += len(jobs)
        self.shared += len(jobs) if batch.steps else 0
        self.given += sum(len(job.tokens) for job in jobs)
        self.tokens += batch.tokens

    def sentences(self, model: str) -> tuple[str, ...]:
        """How they were read, if not each by itself."""
        if not self.shared:
            return ()
        return (
            f"{model}: of {self.prompts:,} label prompts {self.shared:,} were read as trees (what "
            f"prompts begin with alike is read once; same probabilities): {self.tokens:,} of "
            f"{self.given:,} tokens were read.",
        )


class HuggingFaceBackend(Backend):
    """Answers from a model on this machine.

    Args:
        folder: Where the model lies.
        settings: Device, dtype, batch size, threads.
        provider: What the full name begins with.
    """

    gives_logprobs = True
    offline = True

    def __init__(
        self, folder: ModelFolder, settings: BackendSettings, *, provider: str = "hf"
    ) -> None:
        self.model = f"{provider}/{folder.name}"
        self.own_prompt = folder.prompt
        self._folder = folder
        self._settings = settings
        # torch's settings are per thread, and a model takes one batch at a time
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="unswayed-model")
        self._loaded: LoadedModel | None = None
        self._read = _Read()

    async def answer(self, queries: Iterable[Query]) -> AsyncGenerator[Answer, None]:
        """Answer in windows of queries, each in batches of about equal length.

        Raises:
            UsageError: If the model cannot be loaded, or its tokenizer cannot write a label.
        """
        loop = asyncio.get_running_loop()
        pending = iter(queries)
        while window := list(itertools.islice(pending, WINDOW)):
            jobs, refused = await loop.run_in_executor(self._thread, self._prepare, window)
            for answered in refused:
                yield answered
            for batch, steps in self._batches(jobs):
                for answered in await loop.run_in_executor(self._thread, self._run, batch, steps):
                    yield answered

    async def close(self) -> None:
        """Let go of the model's memory once the running batch is done."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        self._loaded = None

    # --- in the model's thread -------------------------------------------------------------

    def _prepare(self, window: Sequence[Query]) -> tuple[list[_Job], list[Answer]]:
        """Render and tokenise; prompts too long for the model are refused."""
        loaded = self._load()
        jobs: list[_Job] = []
        refused: list[Answer] = []
        for thinking in (False, True):
            chosen = [query for query in window if _thinks(query.request) is thinking]
            chats = [query.request.messages for query in chosen]
            written = loaded.writer.write(chats, thinking=thinking)
            for query, (text, tokens) in zip(chosen, written, strict=True):
                labels = query.request.labels
                ids = loaded.labels.ids(labels, text) if _is_answer_only(query.request) else None
                job = _Job(query, tokens, ids)
                if loaded.longest is not None and job.room > loaded.longest:
                    refusal = too_long(query, job.room, longest=loaded.longest, model=self.model)
                    refused.append((query, refusal))
                elif not loaded.costs.fits(job.room, scored=1, caches=ids is None):
                    refused.append((query, self._over_budget(job, loaded.costs)))
                else:
                    jobs.append(job)
        return jobs, refused

    def _batches(self, jobs: Sequence[_Job]) -> Iterator[tuple[list[_Job], tuple[Step, ...]]]:
        """Jobs of one kind that run together, and the passes where they are a tree.

        Label jobs first, then those that generate; the longest of each first.
        """
        scored = [job for job in jobs if job.label_ids]
        loaded = self._load()
        cap = self._settings.batch_tokens
        for batch in plan(
            [job.tokens for job in scored],
            [job.query.item.id for job in scored],
            costs=loaded.costs,
            cap=cap,
            cap_apart=min(cap, CPU_TOKENS) if loaded.model.device.type == "cpu" else cap,
            pads=loaded.scorer.pads,
            trees=loaded.scorer.takes_trees,
        ):
            jobs_together = [scored[row] for row in batch.rows]
            self._read.add(jobs_together, batch)
            yield jobs_together, batch.steps
        generated = [job for job in jobs if not job.label_ids]

        def writing_fits(count: int, longest: int) -> bool:
            return loaded.costs.fits(longest, rows=count, scored=count, caches=True)

        for part in by_length([job.room for job in generated], cap=cap, fits=writing_fits):
            yield [generated[row] for row in part], ()

    def _run(self, jobs: Sequence[_Job], steps: tuple[Step, ...]) -> list[Answer]:
        """Answer one batch, in halves and row by row if it does not fit into the memory after all."""
        import torch

        start = time.perf_counter()
        try:
            responses = self._score(jobs, steps) if jobs[0].label_ids else self._write(jobs)
        except torch.OutOfMemoryError:
            responses = None
        if responses is None:  # outside `except`: its traceback would keep the memory in use
            torch.cuda.empty_cache()
            if len(jobs) == 1:
                return [(jobs[0].query, self._no_memory(jobs[0]))]
            half = len(jobs) // 2
            return [*self._run(jobs[:half], ()), *self._run(jobs[half:], ())]
        share = (time.perf_counter() - start) / len(jobs)
        return [
            (
                job.query,
                self._no_numbers(job)
                if response is None
                else msgspec.structs.replace(response, latency_s=share),
            )
            for job, response in zip(jobs, responses, strict=True)
        ]

    def _score(self, jobs: Sequence[_Job], steps: tuple[Step, ...]) -> list[Response | None]:
        """Label answers; None where the scores are not numbers."""
        self._remark()
        logprobs = self._load().scorer.score(
            [job.tokens for job in jobs], [job.label_ids or () for job in jobs], steps=steps
        )
        return [
            label_response(job.query.request, row, model=self.model, input_tokens=len(job.tokens))
            if np.isfinite(row).all()
            else None
            for job, row in zip(jobs, logprobs, strict=True)
        ]

    def _write(self, jobs: Sequence[_Job]) -> list[Response | None]:
        """Generated answers; None where the scores are not numbers."""
        loaded = self._load()
        prompts, requests = [job.tokens for job in jobs], [job.query.request for job in jobs]
        hold = loaded.grammars.hold(requests)
        self._remark()
        texts = generate(
            loaded.model,
            loaded.tokenizer,
            prompts,
            requests,
            pad=loaded.pad,
            held=() if hold is None else (hold,),
        )
        return [
            None
            if generated is None
            else Response(
                text=generated.text,
                finish_reason=generated.finish_reason,
                input_tokens=len(job.tokens),
                output_tokens=generated.tokens,
                cost_usd=0.0,
                model=self.model,
            )
            for job, generated in zip(jobs, texts, strict=True)
        ]

    def _remark(self) -> None:
        grammars = self._load().grammars
        self.remarks = (*self._read.sentences(self.model), *grammars.remarks)

    def _over_budget(self, job: _Job, costs: Costs) -> Failure:
        needed = costs.memory(job.room, scored=1, caches=not job.label_ids) / 1e9
        return Failure(
            error="BackendError",
            message=f"{job.query.item.id}: a prompt and answer of {job.room} tokens would take about "
            f"{needed:.2g} GB of memory beside {self.model}, over the {costs.budget / 1e9:.2g} GB "
            "that its passes may take. Raise BackendSettings(memory_gb=...), free memory (half of "
            "what is free is taken by default), or choose a smaller model or dtype.",
        )

    def _no_memory(self, job: _Job) -> Failure:
        return Failure(
            error="BackendError",
            message=f"{job.query.item.id}: a prompt of {len(job.tokens)} tokens does not fit into "
            f"the memory of {self._settings.device or 'the accelerator'} beside {self.model}. "
            "Choose a smaller model or dtype, or run on the CPU.",
        )

    def _no_numbers(self, job: _Job) -> Failure:
        dtype = str(self._load().model.dtype).removeprefix("torch.")
        remedy = (
            "Its weights are damaged: save or download it again."
            if dtype == "float32"
            else "Load it with dtype float32 (BackendSettings(dtype='float32')); if that changes "
            "nothing, its weights are damaged."
        )
        return Failure(
            error="BackendError",
            message=f"{job.query.item.id}: in dtype {dtype} the scores that {self.model} gives are "
            f"not numbers (NaN or infinite). {remedy}",
        )

    def _load(self) -> LoadedModel:
        if self._loaded is None:
            self._loaded = load_model(self._folder, self._settings, name=self.model)
        return self._loaded


def label_response(
    request: Request, logprobs: FloatArray, *, model: str, input_tokens: int
) -> Response:
    """The answer where the label itself is the answer.

    Args:
        request: What is asked.
        logprobs: Of its labels, from the full distribution, shape (labels,).
        model: Full name.
        input_tokens: Tokens of the prompt.
    """
    labels = request.labels
    text = labels[_chosen(logprobs, request)]
    listed = sorted(zip(labels, logprobs.tolist(), strict=True), key=lambda pair: -pair[1])
    return Response(
        text=text,
        tokens=(text,),
        top_logprobs=(tuple(TokenLogprob(*pair) for pair in listed),),
        exact=True,
        input_tokens=input_tokens,
        output_tokens=1,
        cost_usd=0.0,
        model=model,
    )


def _is_answer_only(request: Request) -> bool:
    """Label logprobs are asked for exactly where the answer is the label itself."""
    return request.top_logprobs > 0


def _thinks(request: Request) -> bool:
    return may_think(
        answer_only=_is_answer_only(request), has_schema=request.schema is not msgspec.UNSET
    )


def _chosen(logprobs: FloatArray, request: Request) -> int:
    """The likeliest label, or a draw among the labels at the request's temperature."""
    if request.temperature <= 0:
        return int(logprobs.argmax())
    noise = np.random.default_rng(seed_of(request)).gumbel(size=len(logprobs))
    return int((logprobs / request.temperature + noise).argmax())
