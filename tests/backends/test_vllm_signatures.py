"""That vLLM's own types take what is given to them, read from its source where that is at hand.

The source is read and not imported: vLLM imports on a machine with the torch that it pins. It is enough that it
lies on the path (`pip install --no-deps --target DIR vllm`, `PYTHONPATH=DIR`).
"""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import vllm_engine_types

from unswayed.backends.vllm import MOST_IDS, RANKS

SPEC = importlib.util.find_spec("vllm")
pytestmark = pytest.mark.skipif(SPEC is None, reason="vLLM's source is not on the path")


def tree_of(file: str) -> ast.Module:
    assert SPEC is not None
    assert SPEC.submodule_search_locations is not None
    return ast.parse((Path(SPEC.submodule_search_locations[0]) / file).read_text())


def member(file: str, owner: str, name: str = "") -> Any:
    """A class, or what it says under a name."""
    found: Any = next(n for n in tree_of(file).body if getattr(n, "name", "") == owner)
    for node in found.body if name else ():
        if name in (getattr(node, "name", ""), getattr(getattr(node, "target", None), "id", "")):
            found = node
    return found


def field_names(file: str, name: str) -> list[str]:
    body = member(file, name).body
    return [node.target.id for node in body if isinstance(node, ast.AnnAssign)]


def parameters(file: str, owner: str, function: str) -> tuple[list[str], list[str]]:
    """Names that may be given by place, and those by name alone."""
    arguments = member(file, owner, function).args
    return [one.arg for one in arguments.args], [one.arg for one in arguments.kwonlyargs]


def constant(file: str, name: str) -> object:
    """The value of a name at the top of a file; of a `Literal`, what it allows."""
    for node in tree_of(file).body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        ):
            value = node.value.slice if isinstance(node.value, ast.Subscript) else node.value
            return ast.literal_eval(value)
    raise AssertionError(f"{file} has no {name}")


def test_the_names_that_are_imported_are_public() -> None:
    names: Any = constant("__init__.py", "__all__")
    assert {"LLM", "SamplingParams", "TokensPrompt", "RequestOutput"} <= set(names)
    assert member("lora/request.py", "LoRARequest")
    assert member("sampling_params.py", "StructuredOutputsParams")


def test_an_engine_takes_its_arguments() -> None:
    _, own = parameters("entrypoints/llm.py", "LLM", "__init__")
    known = {*own, *field_names("engine/arg_utils.py", "EngineArgs")}
    assert known >= {
        *("trust_remote_code", "tensor_parallel_size", "dtype", "max_model_len", "enable_lora"),
        *("enable_prefix_caching", "quantization", "hf_overrides", "kv_cache_memory_bytes"),
        "max_lora_rank",
    }


def test_generate_takes_prompts_parameters_progress_and_adapter() -> None:
    placed, named = parameters("entrypoints/llm.py", "LLM", "generate")
    assert placed[:3] == ["self", "prompts", "sampling_params"]
    assert {"use_tqdm", "lora_request"} <= set(named)


@pytest.mark.parametrize(
    ("file", "name", "kind"),
    [
        ("sampling_params.py", "SamplingParams", vllm_engine_types.SamplingParams),
        (
            "sampling_params.py",
            "StructuredOutputsParams",
            vllm_engine_types.StructuredOutputsParams,
        ),
        ("lora/request.py", "LoRARequest", vllm_engine_types.LoRARequest),
        ("outputs.py", "CompletionOutput", vllm_engine_types.CompletionOutput),
        ("logprobs.py", "Logprob", vllm_engine_types.Logprob),
    ],
)
def test_the_fake_types_have_no_field_that_the_real_ones_lack(
    file: str, name: str, kind: type
) -> None:
    assert {field.name for field in fields(kind)} <= set(field_names(file, name))


def test_an_adapter_is_named_numbered_and_placed_in_this_order() -> None:
    names = field_names("lora/request.py", "LoRARequest")
    assert names[:3] == ["lora_name", "lora_int_id", "lora_path"]


def test_an_output_says_what_was_in_the_cache() -> None:
    placed, _ = parameters("outputs.py", "RequestOutput", "__init__")
    assert {"prompt_token_ids", "outputs", "num_cached_tokens"} <= set(placed)


def test_limits_are_those_of_vllm() -> None:
    assert constant("sampling_params.py", "MAX_LOGPROB_TOKEN_IDS") == MOST_IDS
    ranks = constant("config/lora.py", "MaxLoRARanks")
    assert isinstance(ranks, tuple)
    assert set(RANKS) <= set(ranks)
    methods = constant("model_executor/layers/quantization/__init__.py", "QuantizationMethods")
    assert isinstance(methods, tuple)
    assert "fp8" in methods


def test_log_probabilities_precede_any_masking() -> None:
    assert member("config/model.py", "ModelConfig", "logprobs_mode").value.value == "raw_logprobs"
