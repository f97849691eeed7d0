"""Models on this machine through transformers: `hf/<path or id>[@revision][+bits=4|8][+dtype=NAME][+heads=FILE][+lora=DIR]`.

Where the answer is the label itself, the label's probability is read off the next-token
distribution: one forward pass, exact, nothing generated. Everything else is generated, held to
its JSON schema where it has one and llguidance is installed.
The model is loaded at the first query, so a run whose calls are all recorded never loads it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from unswayed.backends import BackendSettings
from unswayed.backends.local_jobs import Job, LocalBackend, LocalPlan, PromptCounts, timed
from unswayed.backends.local_models import (
    LoadedModel,
    build_outline,
    check_places,
    device_of,
    dtype_of,
    load_model,
    load_tokenizer,
)
from unswayed.backends.local_passes import attends_to_all
from unswayed.backends.local_plans import WINDOW, Step
from unswayed.backends.local_texts import generate
from unswayed.backends.model_folders import ModelFolder, check_extras, locate
from unswayed.backends.own_prompts import asked_as
from unswayed.backends.protocol import Answer, failed
from unswayed.base.errors import first_line
from unswayed.base.registry import require
from unswayed.model.calls import Failure, Query, Response


def open_huggingface(model: str, settings: BackendSettings) -> HuggingFaceBackend:
    """Local folder or Hub id, run here with transformers: `hf/<path or id>[+bits=4|8][+heads=FILE][+lora=DIR]` (extra: local).

    Finds and fingerprints the model; it is loaded with the first question.
    """
    for module in ("torch", "transformers"):
        require(module, extra="local", feature=f"the local model hf/{model}")
    check_places(settings, f"hf/{model}")
    folder = locate(model, dtype=settings.dtype, weights=not settings.pricing_only)
    check_extras(folder, f"hf/{model}")
    folder = replace(folder, prompt=asked_as(settings.recipe, folder.prompt))
    return HuggingFaceBackend(folder, settings)


class HuggingFaceBackend(LocalBackend):
    """Answers from a model of transformers."""

    provider = "hf"
    _loaded: LoadedModel | None

    def __init__(self, folder: ModelFolder, settings: BackendSettings) -> None:
        super().__init__(folder, settings)
        self._reading = PromptCounts()

    def forecast(self, queries: Iterable[Query]) -> tuple[str, ...]:
        """Describe what would be read, how, and within which memory; weights are not opened.

        Tokenizer and configuration suffice: prompts become token ids, a model without weights gives the
        sizes, and the passes are planned as they will be. Whether trees are read at all is settled by a
        trial when the weights are there (`local_passes`).
        """
        settings, name = self._settings, self.model
        device = device_of(settings)
        tokenizer = load_tokenizer(self.folder, settings, name=name)
        attention = settings.attn_implementation
        model = build_outline(
            self.folder.path,
            name=name,
            trust_remote_code=settings.trust_remote_code,
            dtype=dtype_of(self.folder, settings, device),
            **({} if attention is None else {"attn_implementation": attention}),
        )
        trees = attends_to_all(model)
        try:
            plan = LocalPlan.of(
                model,
                tokenizer,
                self.folder,
                settings,
                name=name,
                device=device,
                pads=True,
                trees=trees,
            )
        except (RuntimeError, AssertionError) as error:  # torch's, where there is no such device
            reason = first_line(error).rstrip(".")
            return (
                f"{name}: the form of its prompts is unknown on this machine: {device}: {reason}.",
            )
        reading = PromptCounts()
        n_written = n_refused = 0
        peak = 0.0
        pending = iter(queries)
        while window := list(itertools.islice(pending, WINDOW)):
            jobs, refused = plan.prepare(window)
            n_refused += len(refused)
            n_written += sum(not job.label_ids for job in jobs)
            for scored, batch in plan.scored(jobs):
                reading.add(scored, batch)
                peak = max(peak, batch.memory)
        said = []
        if forms := reading.forms:
            counts = ", ".join(
                f"{form} {forms[form]:,}" for form in ("plain", "prefix", "trie") if forms[form]
            )
            shared = len(forms) > 1 or not forms["plain"]
            trial = (
                " Trees are tested at loading; if one changes a probability, all are read as rows."
            )
            said.append(
                f"{name}: label prompts would be read as {counts}; {reading.read:,} of {reading.given:,} "
                f"tokens. Passes are predicted to take at most {peak / 1e9:.2g} of "
                f"{plan.costs.budget / 1e9:.2g} GB in addition to the weights.{trial if shared else ''}"
            )
        if n_written:
            said.append(f"{name}: {n_written:,} prompts are answered with text, by rows.")
        if n_refused:
            said.append(
                f"{name}: {n_refused:,} prompts are longer than the model or the memory allows."
            )
        return tuple(said)

    # --- in the model's thread -------------------------------------------------------------

    def _prepare(self, window: Sequence[Query]) -> tuple[list[Job], list[Answer]]:
        return self._load().plan.prepare(window)

    def _batches(self, jobs: Sequence[Job]) -> Iterator[tuple[list[Job], tuple[Step, ...]]]:
        """Jobs that run together, label jobs first, and the passes where they are a tree."""
        plan = self._load().plan
        for scored, batch in plan.scored(jobs):
            self._reading.add(scored, batch)
            yield scored, batch.steps
        for written in plan.written(jobs):
            yield written, ()

    def _run(self, jobs: Sequence[Job], steps: tuple[Step, ...]) -> Iterator[list[Answer]]:
        """Answer one batch pass by pass, in halves and row by row if it does not fit into the memory after all."""
        import torch

        start = time.perf_counter()
        done = 0
        try:
            self.running = len(jobs)
            for responses in self._score(jobs, steps) if jobs[0].label_ids else self._write(jobs):
                share = (time.perf_counter() - start) / len(responses)
                own = jobs[done : done + len(responses)]
                done += len(own)
                self.running = len(jobs) - done
                yield [
                    timed(job.query, response or self._no_numbers(job), share)
                    for job, response in zip(own, responses, strict=True)
                ]
                start = time.perf_counter()
        except torch.OutOfMemoryError:
            pass
        # outside `except`: its traceback would keep the memory in use
        if done < len(jobs):
            torch.cuda.empty_cache()
            if len(jobs) == 1:
                yield [(jobs[0].query, self._no_memory(jobs[0]))]
                return
            middle = (done + 1 + len(jobs)) // 2
            for half in filter(None, (jobs[done:middle], jobs[middle:])):
                yield from self._run(half, ())

    def _score(
        self, jobs: Sequence[Job], steps: tuple[Step, ...]
    ) -> Iterator[list[Response | None]]:
        """Yield label answers of the next jobs; None where the scores are not numbers."""
        self._remark()
        waiting = iter(jobs)
        for logprobs in self._load().scorer.score(
            [job.tokens for job in jobs], [job.label_ids or () for job in jobs], steps=steps
        ):
            yield [
                self._label(job, row) if np.isfinite(row).all() else None
                for row, job in zip(logprobs, waiting, strict=False)
            ]

    def _write(self, jobs: Sequence[Job]) -> Iterator[list[Response | None]]:
        """Generate answers; None where the scores are not numbers."""
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
        yield [
            None
            if generated is None
            else self._text(job, generated.text, generated.finish_reason, generated.tokens)
            for job, generated in zip(jobs, texts, strict=True)
        ]

    def _remark(self) -> None:
        loaded, reading = self._load(), self._reading
        prompts = reading.forms.total()
        remarks = list(loaded.remarks)
        if shared := prompts - reading.forms["plain"]:
            remarks.append(
                f"{self.model}: of {prompts:,} label prompts {shared:,} were read as trees (their common beginning "
                f"is read once; same probabilities): {reading.read:,} of "
                f"{reading.given:,} tokens were read."
            )
        self.remarks = (*remarks, *loaded.grammars.remarks)

    def _no_memory(self, job: Job) -> Failure:
        return failed(
            job.query,
            f"a prompt of {len(job.tokens)} tokens does not fit into the memory of "
            f"{self._settings.device or 'the accelerator'} next to {self.model}. "
            "Choose a smaller model or dtype, or run on the CPU.",
        )

    def _no_numbers(self, job: Job) -> Failure:
        dtype = str(self._load().model.dtype).removeprefix("torch.")
        remedy = (
            "Its weights are damaged: save or download it again."
            if dtype == "float32"
            else "Load it with --dtype float32 (BackendSettings(dtype='float32')); if that changes "
            "nothing, its weights are damaged."
        )
        return failed(
            job.query,
            f"in dtype {dtype} the scores that {self.model} gives are not numbers (NaN or infinite). {remedy}",
        )

    def _load(self) -> LoadedModel:
        if self._loaded is None:
            self._loaded = load_model(self.folder, self._settings, name=self.model)
        return self._loaded
