"""Sources of answers: one file per provider, one line here.

A model name is `provider/model`. Each entry is a function `open(model, settings) -> Backend`,
where `model` is what follows the provider's name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import msgspec

from unswayed.backends.protocol import Backend
from unswayed.errors import UnknownNameError, UsageError
from unswayed.registry import Registry, did_you_mean

__all__ = [
    "BACKENDS",
    "LOCAL",
    "Backend",
    "BackendSettings",
    "backend_settings",
    "checked_settings",
    "local_options",
    "open_backend",
]


Seconds = Annotated[float, msgspec.Meta(gt=0, le=sys.float_info.max)]
Rate = Annotated[float, msgspec.Meta(gt=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSettings:
    """How to reach and drive a model; a backend uses what applies to it."""

    base_url: str | None = None  # address of an OpenAI-compatible server, over the provider's own
    # most requests in flight; concurrency adapts below it
    max_connections: Annotated[int, msgspec.Meta(ge=1)] = 64
    # requests_per_minute, tokens_per_minute: limits to stay under; None for what the server says
    requests_per_minute: Rate | None = None
    tokens_per_minute: Rate | None = None
    timeout: Seconds = 120.0  # longest wait for one attempt, in seconds
    # Further attempts after a call fails; one more follows when all others are done. Attempts that
    # find no server, or a server that turns every call away, do not count: `patience` limits them.
    max_retries: Annotated[int, msgspec.Meta(ge=0)] = 5
    # for how many seconds such a server is waited for before the run stops
    patience: Seconds = 180.0
    prices: str | None = None  # path of a price table that overrides the shipped one
    device: str | None = None  # torch device of local models; None picks one
    # how a local model is laid over several devices, such as "auto", in place of `device` (needs
    # accelerate)
    device_map: str | None = None
    # attention of a local model, such as "sdpa" or "eager"; None leaves it to transformers
    attn_implementation: str | None = None
    # torch dtype of local models; None for float32 on CPU, bfloat16 on a GPU (`vllm/`: what the
    # model was saved in). One that is given is part of the model's name and of every key.
    dtype: str | None = None
    batch_tokens: int = 8192  # padded tokens per batch of local models
    # Most memory in GB that a local model's passes take beside its weights; None for half of what
    # is free when it is loaded. For `vllm/` that of keys and values on each GPU; None for what vLLM
    # leaves them.
    memory_gb: Annotated[float, msgspec.Meta(gt=0)] | None = None
    # torch threads on CPU; None for what OMP_NUM_THREADS says, or else one
    threads: Annotated[int, msgspec.Meta(ge=1)] | None = None
    # GPUs over which vLLM lays every layer of a `vllm/` model
    tensor_parallel: Annotated[int, msgspec.Meta(ge=1)] = 1
    # Let a local model run code that it ships, with a warning. Off by default.
    trust_remote_code: bool = False
    pricing_only: bool = False  # no call will be made (`--dry-run`), so a missing key is no error


LOCAL: Final = (
    "device",
    "device_map",
    "dtype",
    "attn_implementation",
    "memory_gb",
    "threads",
    "tensor_parallel",
    "trust_remote_code",
)
"""The settings of local models that are options of commands."""


def local_options(settings: BackendSettings) -> dict[str, str | int | float | bool]:
    """The options of local models that were given, by name: what has its default is left out."""
    plain, given = asdict(BackendSettings()), asdict(settings)
    return {name: given[name] for name in LOCAL if given[name] != plain[name]}


def checked_settings(settings: BackendSettings) -> BackendSettings:
    """The settings, if all of them are possible."""
    try:
        return msgspec.convert(asdict(settings), BackendSettings)
    except msgspec.ValidationError as error:
        raise UsageError(f"cannot reach a model so: {error}.") from None


def backend_settings(
    base: BackendSettings | None = None,
    *,
    base_url: str | None = None,
    max_connections: int | None = None,
    timeout: float | None = None,
    max_retries: int | None = None,
    patience: float | None = None,
    prices: str | Path | None = None,
) -> BackendSettings:
    """Settings from the options of the Python functions, laid over `base`; None leaves its own."""
    given = {
        "base_url": base_url,
        "max_connections": max_connections,
        "timeout": timeout,
        "max_retries": max_retries,
        "patience": patience,
        "prices": None if prices is None else str(prices),
    }
    named = {name: value for name, value in given.items() if value is not None}
    return checked_settings(replace(base or BackendSettings(), **named))  # type: ignore[arg-type]


BACKENDS: Registry[Callable[[str, BackendSettings], Backend]] = Registry(
    "backend",
    {
        "anthropic": "unswayed.backends.anthropic:open_anthropic",
        "hf": "unswayed.backends.huggingface:open_huggingface",
        "openai": "unswayed.backends.openai_compatible:open_openai",
        "openai-api": "unswayed.backends.openai_compatible:open_service",
        "replay": "unswayed.backends.replay:open_replay",
        "simulated": "unswayed.backends.simulated:open_simulated",
        "tiny": "unswayed.tiny.backend:open_tiny",
        "vllm": "unswayed.backends.vllm:open_vllm",
    },
    like="",
)


def open_backend(name: str, settings: BackendSettings | None = None) -> Backend:
    """The backend of a model name such as `openai/gpt-4.1-mini` or `hf/path/to/model`.

    Raises:
        UnknownNameError: If the name has no provider or an unknown one.
        MissingExtraError: If the provider needs an extra that is not installed.
        MissingKeyError: If a key or address is missing from the environment.
    """
    provider, slash, model = name.partition("/")
    if not slash or not model:
        raise UnknownNameError(
            f"model {name!r} has no provider: write provider/model, such as openai/gpt-4.1-mini. "
            f"Providers: {', '.join(BACKENDS)}."
        )
    if provider not in BACKENDS:
        raise UnknownNameError(f"unknown provider {provider!r}. {did_you_mean(provider, BACKENDS)}")
    return BACKENDS.load(provider)(model, settings or BackendSettings())
