"""Models on this machine through vLLM: `vllm/<path or id>[@revision][+bits=8][+dtype=NAME][+lora=DIR]`.

Prompts become token ids by the code that `hf/` uses, so both read the same tokens. Where the answer is the
label itself, one token is asked for with the log-probabilities of the label's tokens among all tokens
(`logprob_token_ids`): nothing is renormalised over the labels and nothing is censored. Everything else is
generated, held to its JSON schema where it has one. Prompts are given in lexicographic order, so that equal
beginnings are adjacent and stay in vLLM's prefix cache.

The engine takes one batch at a time, from one thread; it starts with the first query.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from unswayed.backends import BackendSettings
from unswayed.backends.local_jobs import (
    Job,
    LocalBackend,
    Reader,
    broken_off,
    label_logprobs,
    timed,
)
from unswayed.backends.local_models import load_tokenizer
from unswayed.backends.local_texts import seed_of
from unswayed.backends.model_folders import ADAPTER_CONFIG, ModelFolder, locate
from unswayed.backends.own_prompts import asked_as
from unswayed.backends.protocol import Answer, failed
from unswayed.base.errors import MissingExtraError, UsageError
from unswayed.base.files import read_object
from unswayed.base.registry import install_command
from unswayed.model.calls import Failure, Query, Request, Response
from unswayed.model.parsing import is_failed_attempt

if TYPE_CHECKING:
    from vllm import LLM, RequestOutput, SamplingParams
    from vllm.lora.request import LoRARequest

    _Asked = tuple[list[int], SamplingParams]

AT_ONCE: Final = 1024
"""Prompts given to the engine at once: more than it runs together, and what a kill repeats at most."""

MOST_IDS: Final = 128
"""Tokens whose log-probabilities vLLM gives for one prompt; what has more is asked more than once."""

_LARGEST: Final = 1e-2
"""Log-probability of what is certain, with the rounding of half precision."""

RANKS: Final = (8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks of adapters that vLLM makes room for."""


def open_vllm(model: str, settings: BackendSettings) -> VllmBackend:
    """Local folder or Hub id, run here by vLLM on GPUs: `vllm/<path or id>[+bits=8][+lora=DIR]` (extra: vllm; tested by vLLM's types, not yet on a GPU). A server is `openai-api/vllm/<model>` with VLLM_BASE_URL.

    Finds and fingerprints the model; the engine starts with the first question.
    """
    if find_spec("vllm") is None and not settings.pricing_only:
        raise MissingExtraError(
            f"vllm/{model} needs vllm, which is not installed. Install it with: "
            f"{install_command('vllm')}; or start its server (vllm serve MODEL) and write "
            "openai-api/vllm/<model>, with VLLM_BASE_URL, such as http://127.0.0.1:8000/v1."
        )
    folder = locate(model, provider="vllm", dtype=settings.dtype, weights=not settings.pricing_only)
    _check(folder, settings, f"vllm/{model}")
    folder = replace(folder, prompt=asked_as(settings.recipe, folder.prompt))
    return VllmBackend(folder, settings)


def _check(folder: ModelFolder, settings: BackendSettings, shown: str) -> None:
    if folder.bits == 4:
        raise UsageError(
            f"{shown}: vLLM rounds weights to 8 bits (fp8) as it loads them, not to 4. Write +bits=8, or "
            "name a model that was saved with 4 bits (AWQ, GPTQ): vLLM reads that from its config.json."
        )
    if folder.heads is not None:
        raise UsageError(f"{shown}: vLLM does not scale heads (+heads). Use an hf/ model.")
    for option, value in (
        ("device", settings.device),
        ("device_map", settings.device_map),
        ("attn_implementation", settings.attn_implementation),
        ("threads", settings.threads),
    ):
        if value is not None:
            raise UsageError(
                f"{shown}: {option}={value!r} is for hf/ models. Leave it out: vLLM takes the GPUs that it sees "
                "(CUDA_VISIBLE_DEVICES; tensor_parallel splits the model over several) and chooses its attention."
            )


@dataclass(frozen=True, slots=True)
class _Engine:
    llm: LLM
    reader: Reader
    lora: LoRARequest | None


class VllmBackend(LocalBackend):
    """Answers from an engine of vLLM in this process."""

    provider = "vllm"
    _loaded: _Engine | None
    _read = _cached = 0

    # --- in the engine's thread ------------------------------------------------------------

    def _prepare(self, window: Sequence[Query]) -> tuple[list[Job], list[Answer]]:
        return self._start().reader.prepare(window)

    def _batches(self, jobs: Sequence[Job]) -> Iterator[tuple[list[Job]]]:
        """Jobs of one kind, label jobs first; equal beginnings are adjacent."""
        for scored in (True, False):
            kind = [job for job in jobs if bool(job.label_ids) is scored]
            kind.sort(key=lambda job: job.tokens)
            for begin in range(0, len(kind), AT_ONCE):
                yield (kind[begin : begin + AT_ONCE],)

    def _run(self, jobs: Sequence[Job]) -> Iterator[list[Answer]]:
        """Answer one batch; an engine that fails ends the run, and what was answered is kept."""
        start = time.perf_counter()
        self.running = len(jobs)
        try:
            outcomes = self._score(jobs) if jobs[0].label_ids else self._write(jobs)
        except Exception as error:  # the engine's errors have no common base
            failure = Failure(
                error="BackendError",
                message=f"{self.model}: vLLM's engine failed: {str(error) or type(error).__name__}. If memory is "
                f"short, use a smaller --memory-gb or more GPUs (--tensor-parallel). Run "
                "the same command again to resume.",
                fatal=True,
            )
            yield [(job.query, failure) for job in jobs]
            return
        share = (time.perf_counter() - start) / len(jobs)
        if self._cached:
            self.remarks = (
                f"{self.model}: of {self._read:,} tokens of prompts {self._cached:,} were in vLLM's "
                "prefix cache.",
            )
        self.running = 0
        yield [timed(job.query, own, share) for job, own in zip(jobs, outcomes, strict=True)]

    def _score(self, jobs: Sequence[Job]) -> list[Response | Failure]:
        """Label answers: one prompt for every `MOST_IDS` tokens that its labels have."""
        from vllm import SamplingParams

        ids_of = [
            sorted({token for label in job.label_ids or () for token in label}) for job in jobs
        ]
        parts = [
            [ids[begin : begin + MOST_IDS] for begin in range(0, len(ids), MOST_IDS)]
            for ids in ids_of
        ]
        asked = [
            (job.tokens, SamplingParams(max_tokens=1, temperature=0.0, detokenize=False, logprob_token_ids=part))
            for job, own in zip(jobs, parts, strict=True)
            for part in own
        ]  # fmt: skip
        outputs = iter(self._generate(asked))
        outcomes: list[Response | Failure] = []
        for job, ids, own in zip(jobs, ids_of, parts, strict=True):
            said: dict[int, float] = {}
            parted = [output.outputs[0] for output in itertools.islice(outputs, len(own))]
            for part in parted:
                (position,) = part.logprobs or ({},)
                said |= {token: entry.logprob for token, entry in position.items()}
            failure = broken_off(job, [part.finish_reason for part in parted], model=self.model)
            outcomes.append(failure or self._label_answer(job, ids, said))
        return outcomes

    def _label_answer(
        self, job: Job, ids: Sequence[int], said: dict[int, float]
    ) -> Response | Failure:
        tokens = np.array([[said[token] for token in ids]])
        (logprobs,) = label_logprobs(job.label_ids or (), ids, tokens)
        if not (np.isfinite(logprobs) & (logprobs < _LARGEST)).all():
            return failed(
                job.query,
                f"the scores that {self.model} gives are not numbers (NaN or infinite), or no "
                "log-probabilities. Try --dtype float32; if that changes nothing, its weights are damaged.",
            )
        return self._label(job, logprobs)

    def _write(self, jobs: Sequence[Job]) -> list[Response | Failure]:
        """Generate answers."""
        outputs = self._generate([(job.tokens, _sampling(job.query.request)) for job in jobs])
        written = [output.outputs[0] for output in outputs]
        return [
            broken_off(job, [said.finish_reason], model=self.model)
            or self._text(job, said.text, said.finish_reason or "stop", len(said.token_ids))
            for job, said in zip(jobs, written, strict=True)
        ]

    def _generate(self, asked: Sequence[_Asked], attempts: int = 3) -> list[RequestOutput]:
        from vllm import TokensPrompt

        engine = self._start()
        outputs: list[RequestOutput] = engine.llm.generate(
            [TokensPrompt(prompt_token_ids=tokens) for tokens, _ in asked],
            [params for _, params in asked],
            use_tqdm=False,  # the run shows its own progress
            lora_request=engine.lora,
        )
        if [output.prompt_token_ids for output in outputs] != [tokens for tokens, _ in asked]:
            raise RuntimeError(f"{len(outputs)} answers to {len(asked)} prompts, or out of order")
        self._read += sum(len(tokens) for tokens, _ in asked)
        self._cached += sum(output.num_cached_tokens or 0 for output in outputs)
        ended = [is_failed_attempt(output.outputs[0].finish_reason) for output in outputs]
        if any(ended) and attempts > 1:
            again = iter(self._generate(list(itertools.compress(asked, ended)), attempts - 1))
            return [next(again) if k else own for k, own in zip(ended, outputs, strict=True)]
        return outputs

    def _start(self) -> _Engine:
        if self._loaded is None:
            self._loaded = _started(self.folder, self._settings, name=self.model)
        return self._loaded


def _sampling(request: Request) -> SamplingParams:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    schema = request.schema
    return SamplingParams(
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        seed=seed_of(request) if request.temperature > 0 else None,
        structured_outputs=StructuredOutputsParams(json=schema)
        if isinstance(schema, str)
        else None,
    )


def _started(folder: ModelFolder, settings: BackendSettings, *, name: str) -> _Engine:
    # its log goes to standard output, which belongs to --json
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    tokenizer = load_tokenizer(folder, settings, name=name)
    try:
        from vllm import LLM
        from vllm.lora.request import LoRARequest

        llm = LLM(**engine_arguments(folder, settings))
    except UsageError:
        raise
    except Exception as error:  # vLLM raises whatever its parts raise
        reason = str(error).rstrip(".") or type(error).__name__
        raise UsageError(f"{name}: vLLM cannot start: {reason}. {_remedy()}") from error
    longest = llm.model_config.max_model_len
    reader = Reader.of(tokenizer, folder, settings, name=name, longest=longest)
    adapter = folder.adapter
    lora = None if adapter is None else LoRARequest("adapter", 1, str(adapter))
    return _Engine(llm, reader, lora)


def engine_arguments(folder: ModelFolder, settings: BackendSettings) -> dict[str, Any]:
    """Return the arguments of `vllm.LLM`; vLLM chooses those that are left out."""
    given: dict[str, Any] = {
        "model": str(folder.path),
        "trust_remote_code": settings.trust_remote_code,
        "tensor_parallel_size": settings.tensor_parallel,
        "dtype": folder.dtype or "auto",
        "max_model_len": -1,  # the longest that fits into memory
        "enable_prefix_caching": True,
    }
    if folder.bits is not None:
        given["quantization"] = "fp8"
    elif "quantization_config" not in read_object(folder.path / "config.json"):
        # logits near 20 lie 0.125 apart in bfloat16: labels would tie exactly and often
        given["hf_overrides"] = {"head_dtype": "float32"}
    if settings.memory_gb is not None:
        given["kv_cache_memory_bytes"] = int(settings.memory_gb * 1e9)
    if folder.adapter is not None:
        given |= {"enable_lora": True, "max_lora_rank": _room_for(folder.adapter)}
    return given


def _room_for(adapter: Path) -> int:
    """Return the smallest rank that vLLM makes room for and the adapter fits into."""
    config = read_object(adapter / ADAPTER_CONFIG)
    ranks = [config.get("r"), *dict(config.get("rank_pattern") or {}).values()]
    largest = max((rank for rank in ranks if isinstance(rank, int)), default=RANKS[0])
    room = next((rank for rank in RANKS if rank >= largest), None)
    if room is None:
        raise UsageError(
            f"{adapter}: an adapter of rank {largest}; vLLM takes ranks up to {RANKS[-1]}. Merge it "
            "into its model (unswayed train merge), or use hf/."
        )
    return room


def _remedy() -> str:
    import torch

    if not torch.cuda.is_available():
        return (
            "Torch sees no GPU here: run it where nvidia-smi shows one and torch.cuda.is_available() is True, or "
            "use hf/, which runs on a CPU."
        )
    return (
        "If memory is short, set --memory-gb (keys and values), --tensor-parallel N (several GPUs) or +bits=8, or "
        "free the GPU (nvidia-smi shows who holds it)."
    )
