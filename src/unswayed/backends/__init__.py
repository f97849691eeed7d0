"""Sources of answers: one file per provider, one line here.

A model name is `provider/model`. Each entry is a function `open(model, settings) -> Backend`,
where `model` is what follows the provider's name.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Self

import msgspec
from msgspec import Meta

from unswayed.backends.addresses import SERVICES, Service
from unswayed.backends.own_prompts import OwnPrompt, asked_as
from unswayed.backends.protocol import Backend
from unswayed.base.arguments import Settings
from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.base.registry import Registry, did_you_mean

__all__ = [
    "BACKENDS",
    "LOCAL",
    "Backend",
    "BackendSettings",
    "backend_of",
    "local_options",
    "open_backend",
]


Rate = Annotated[float, Meta(gt=0)]
MOST: Final = sys.float_info.max


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSettings(Settings):
    """Settings to reach and drive a model; a backend uses those that apply to it."""

    base_url: Annotated[str | None, Meta(description="Address of an OpenAI-compatible server.")] = (
        None  # over the provider's own
    )
    max_connections: (
        Annotated[
            int,
            Meta(
                ge=1,
                description="Largest number of requests in flight [default: 64; 4 for a decision model on this "
                "machine]",
            ),
        ]
        | None
    ) = None  # concurrency adapts below it
    # requests_per_minute, tokens_per_minute: limits to stay under; None for what the server says
    requests_per_minute: Rate | None = None
    tokens_per_minute: Rate | None = None
    timeout: Annotated[
        float, Meta(gt=0, le=MOST, description="Seconds until one attempt of a call fails.")
    ] = 120.0
    # One more attempt follows when all other calls are done. Attempts that find no server, or a
    # server that turns every call away, do not count: `patience` limits them.
    max_retries: Annotated[int, Meta(ge=0, description="Further attempts after a call fails.")] = 5
    patience: Annotated[
        float,
        Meta(
            gt=0,
            le=MOST,
            description="Seconds to wait for a server that is down or rejects every call.",
        ),
    ] = 180.0
    prices: Annotated[
        str | None,
        Meta(
            description="Price table to use (TOML or JSON).",
            extra={"text": Path, "value": str | Path | None},
        ),
    ] = None  # overrides the shipped one
    extra_body: Annotated[
        str | None,
        Meta(
            description="JSON object to add to every request; a change of it makes new calls.",
            extra={"text": str, "value": str | Mapping[str, object] | None},
        ),
    ] = None  # kept as sorted JSON; a local model takes `chat_template_kwargs` alone
    pack: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            description="Largest number of questions in one request to a decision model.",
        ),
    ] = 16
    recipe: Annotated[
        str | None,
        Meta(
            description="Ask as this recipe does, or as the model trained in this folder.",
            extra={"value": str | Path | None},
        ),
    ] = None  # its prompt goes before the model's own
    device: Annotated[
        str | None,
        Meta(description="Device: cpu, cuda, cuda:1 or mps [default: a GPU if there is one]"),
    ] = None
    device_map: Annotated[
        str | None, Meta(description="Set to auto to spread an hf/ model over several devices.")
    ] = None  # in place of `device`; needs accelerate
    dtype: Annotated[
        str | None,
        Meta(
            description="Number format, part of the model's name: float32, bfloat16 or float16 "
            "[default: float32 on a CPU, bfloat16 on a GPU; vllm/: as saved]"
        ),
    ] = None  # one that is given is part of every key as well
    attn_implementation: Annotated[
        str | None,
        Meta(
            description="Attention of an hf/ model: sdpa, eager or flash_attention_2 [default: chosen by "
            "transformers]"
        ),
    ] = None
    batch_tokens: int = 8192  # padded tokens per batch of local models
    memory_gb: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="GB to use in addition to the weights; vllm/: for keys and values on each GPU "
                "[default: half of the free memory; vllm/: chosen by vLLM]",
            ),
        ]
        | None
    ) = None
    threads: (
        Annotated[
            int,
            Meta(ge=1, description="CPU threads of an hf/ model [default: OMP_NUM_THREADS, or 1]"),
        ]
        | None
    ) = None
    tensor_parallel: Annotated[
        int, Meta(ge=1, description="GPUs over which vLLM splits each layer.")
    ] = 1
    trust_remote_code: Annotated[
        bool, Meta(description="Run code shipped with the model, with your rights.")
    ] = False
    pricing_only: bool = False  # no call will be made (`--dry-run`), so a missing key is no error

    def valid(self) -> Self:
        """Return the same, checked.

        Raises:
            UsageError: Naming the first setting that is not possible.
        """
        values = asdict(self)
        for name in ("prices", "recipe"):
            values[name] = None if values[name] is None else str(values[name])
        values["extra_body"] = _sorted_object(self.extra_body)
        try:
            return msgspec.convert(values, type(self))
        except msgspec.ValidationError as error:
            raise UsageError(f"invalid backend settings: {error}.") from None


def _sorted_object(given: object) -> str | None:
    """Return a JSON object, given as text or as a mapping, as sorted text; None without fields."""
    try:
        read = json.loads(given) if isinstance(given, str) else given
        if read is None or isinstance(read, Mapping):
            return json.dumps(dict(read), sort_keys=True, allow_nan=False) if read else None
    except (ValueError, TypeError, RecursionError):
        pass
    raise UsageError(
        f"extra_body {given!r:.60} is not a JSON object. Write it like "
        """'{"reasoning_effort": "low"}'."""
    )


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
    """Return the options of local models that were given, by name: what has its default is left out."""
    plain, given = asdict(BackendSettings()), asdict(settings)
    return {name: given[name] for name in LOCAL if given[name] != plain[name]}


BACKENDS: Registry[Callable[[str, BackendSettings], Backend]] = Registry(
    "backend",
    {
        "anthropic": "unswayed.backends.anthropic:open_anthropic",
        "decisions": "unswayed.backends.typed:open_decisions",
        "hf": "unswayed.backends.huggingface:open_huggingface",
        "openai": "unswayed.backends.openai_compatible:open_openai",
        "openai-api": "unswayed.backends.openai_compatible:open_service",
        "replay": "unswayed.backends.replay:open_replay",
        "simulated": "unswayed.backends.simulated:open_simulated",
        "systemone": "unswayed.backends.typed:open_systemone",
        "tiny": "unswayed.tiny.backend:open_tiny",
        "vllm": "unswayed.backends.vllm:open_vllm",
    },
    like="",
)


def open_backend(name: str, settings: BackendSettings | None = None) -> Backend:
    """Return the backend of a model name such as `openai/gpt-4.1-mini` or `hf/path/to/model`.

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
        if provider in (*SERVICES, "azure", "litellm", "lm-studio", "llama.cpp"):
            way = f"openai-api/{provider}/{model}"
            more = (
                ""
                if provider in SERVICES
                else f", with its address in {Service.named(provider).url_variable}"
            )
            raise UnknownNameError(f"model {name!r}: write {way}{more}.")
        close = did_you_mean(provider, BACKENDS, cutoff=0.8)  # another provider is no guess
        more = (
            ""
            if close.startswith("Did")
            else " Any server with the API of OpenAI is openai-api/<service>/<model>."
        )
        raise UnknownNameError(f"unknown provider {provider!r}. {close}{more}")
    settings = (settings or BackendSettings()).valid()
    if settings.recipe is not None:
        settings = _told_to_think(name, settings, asked_as(settings.recipe, OwnPrompt()))
    backend = BACKENDS.load(provider)(model, settings)
    backend.recipe = settings.recipe
    backend.own_prompt = asked_as(settings.recipe, backend.own_prompt)
    if settings.extra_body != backend.extra_body is None:
        raise UsageError(f"{name} sends no request, so it takes no extra_body. Leave it out.")
    return backend


def _told_to_think(name: str, settings: BackendSettings, own: OwnPrompt) -> BackendSettings:
    """Return the settings with the thinking mode of a recipe as a field of every request to a server."""
    provider = name.partition("/")[0]
    if own.enable_thinking is None or provider not in ("openai-api", "openai", "anthropic"):
        return settings
    if provider != "openai-api":
        raise UsageError(
            f"{name}: recipe {settings.recipe} sets chat.enable_thinking, which this API does not take. Remove it."
        )
    extra = json.loads(settings.extra_body or "{}")
    arguments = {"enable_thinking": own.enable_thinking, **extra.get("chat_template_kwargs", {})}
    return replace(
        settings,
        extra_body=json.dumps({**extra, "chat_template_kwargs": arguments}, sort_keys=True),
    )


def backend_of(
    judge: str | Backend | Callable[..., Any],
    settings: BackendSettings | None = None,
    *,
    keeps_calls: bool = False,
) -> Backend:
    """Return the backend of a judge, opened or wrapped if need be; `keeps_calls` if a folder keeps its calls.

    Raises:
        UsageError: If settings are given to an open backend, or calls of a nameless function are kept.
        UnswayedError: As `open_backend`.
    """
    if isinstance(judge, str):
        return open_backend(judge, settings)
    from unswayed.backends.function import FunctionJudge

    if settings not in (None, BackendSettings()):
        raise UsageError(
            "an open backend or a function takes no connection options. Leave them out, or name a model."
        )
    backend = judge if isinstance(judge, Backend) else FunctionJudge(judge)
    if keeps_calls and isinstance(backend, FunctionJudge) and not backend.is_named:
        raise UsageError(
            f"{backend.model}: calls in a folder outlive the code of a function. Name it and its version, "
            "such as us.FunctionJudge(judge, name='judge-v3'), and change the name with the code."
        )
    return backend
