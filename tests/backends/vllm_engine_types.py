"""A module with the public types of vLLM that are used, whose engine is transformers on a CPU.

Parameters have the names and kinds of vLLM's own, so a call that vLLM would refuse is refused here. That they
are vLLM's is tested where its source is at hand (`test_vllm_signatures.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any, TypedDict

import pytest

from unswayed.backends.local_trees import shared_lengths


@dataclass
class StructuredOutputsParams:
    json: str | dict[str, Any] | None = None


@dataclass(kw_only=True)
class SamplingParams:
    temperature: float = 1.0
    seed: int | None = None
    max_tokens: int | None = 16
    logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    detokenize: bool = True
    structured_outputs: StructuredOutputsParams | None = None


class TokensPrompt(TypedDict):
    prompt_token_ids: list[int]


@dataclass
class Logprob:
    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


@dataclass
class LoRARequest:
    lora_name: str
    lora_int_id: int
    lora_path: str = ""


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: Sequence[int]
    cumulative_logprob: float | None
    logprobs: list[dict[int, Logprob]] | None
    finish_reason: str | None = None


@dataclass
class RequestOutput:
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput]
    num_cached_tokens: int | None = None


@dataclass
class Engine:
    """What a test sees and steers.

    Attributes:
        started: The arguments of every engine.
        calls: Prompts, parameters and adapter of every call.
        longest: Tokens that fit into the memory.
        failure: What the engine fails with.
        value: In place of every log-probability.
        endings: Finish reasons of the next outputs, one after the other.
    """

    started: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[list[list[int]], list[SamplingParams], LoRARequest | None]] = field(
        default_factory=list
    )
    longest: int = 1024
    failure: Exception | None = None
    value: float | None = None
    endings: list[str] = field(default_factory=list)


class LLM:
    steered = Engine()

    def __init__(
        self,
        model: str,
        *,
        trust_remote_code: bool = False,
        tensor_parallel_size: int = 1,
        dtype: str = "auto",
        quantization: str | None = None,
        revision: str | None = None,
        hf_overrides: dict[str, Any] | None = None,
        kv_cache_memory_bytes: int | None = None,
        **engine_arguments: Any,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        given |= given.pop("engine_arguments")
        given.pop("__class__", None)
        self.steered.started.append(given)
        if self.steered.failure is not None and not self.steered.calls:
            raise self.steered.failure
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._torch = torch
        self._folder = model
        self._tokenizer = AutoTokenizer.from_pretrained(model)
        self._model = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
        self._seen: list[list[int]] = []
        self.model_config = SimpleNamespace(max_model_len=self.steered.longest)

    def generate(
        self,
        prompts: Sequence[TokensPrompt],
        sampling_params: Sequence[SamplingParams],
        *,
        use_tqdm: bool = True,
        lora_request: LoRARequest | None = None,
    ) -> list[RequestOutput]:
        assert not use_tqdm
        tokens = [prompt["prompt_token_ids"] for prompt in prompts]
        self.steered.calls.append((tokens, list(sampling_params), lora_request))
        if self.steered.failure is not None:
            raise self.steered.failure
        model = self._model
        if lora_request is not None:
            from peft import PeftModel
            from transformers import AutoModelForCausalLM

            base = AutoModelForCausalLM.from_pretrained(self._folder, dtype=self._torch.float32)
            model = PeftModel.from_pretrained(base, lora_request.lora_path).eval()
        return [
            self._answer(model, one, params)
            for one, params in zip(tokens, sampling_params, strict=True)
        ]

    def _answer(self, model: Any, prompt: list[int], params: SamplingParams) -> RequestOutput:
        torch = self._torch
        written: list[int] = []
        listed: list[dict[int, Logprob]] | None = None
        end = self._tokenizer.eos_token_id
        assert params.max_tokens is not None
        with torch.inference_mode():
            while len(written) < params.max_tokens and end not in written:
                logits = model(input_ids=torch.tensor([[*prompt, *written]])).logits[0, -1]
                logprobs = logits.double().log_softmax(-1)
                if params.logprob_token_ids is not None:
                    assert len(params.logprob_token_ids) <= 128
                    own = self.steered.value
                    listed = [
                        {
                            token: Logprob(float(logprobs[token]) if own is None else own)
                            for token in (*params.logprob_token_ids, int(logits.argmax()))
                        }
                    ]
                if params.temperature == 0:
                    written.append(int(logits.argmax()))
                else:
                    generator = torch.Generator().manual_seed((params.seed or 0) + len(written))
                    weights = (logits / params.temperature).softmax(-1)
                    written.append(int(torch.multinomial(weights, 1, generator=generator)))
        ended = written[-1] == end
        own_reason = "stop" if ended else "length"
        reason = self.steered.endings.pop(0) if self.steered.endings else own_reason
        shown = written[:-1] if ended else written
        cached = max((shared_lengths([prompt, seen])[1] for seen in self._seen), default=0)
        self._seen.append(prompt)
        text = self._tokenizer.decode(shown, skip_special_tokens=True) if params.detokenize else ""
        output = CompletionOutput(0, text, written, None, listed, reason)
        return RequestOutput(prompt, [output], cached)


def install(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Put the module where `import vllm` finds it; returns what steers its engines."""
    from importlib.machinery import ModuleSpec

    engine = Engine()
    monkeypatch.setattr(LLM, "steered", engine)
    names = ("vllm", "vllm.lora", "vllm.lora.request", "vllm.sampling_params")
    root, lora, request, sampling = map(ModuleType, names)
    root.__spec__ = ModuleSpec("vllm", None)
    for kind in (LLM, SamplingParams, TokensPrompt):
        setattr(root, kind.__name__, kind)
    request.LoRARequest = LoRARequest  # type: ignore[attr-defined]
    sampling.StructuredOutputsParams = StructuredOutputsParams  # type: ignore[attr-defined]
    for module in (root, lora, request, sampling):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return engine
