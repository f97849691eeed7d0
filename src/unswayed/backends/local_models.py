"""Loading a local model: weights, tokenizer, adapter, device, threads."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from unswayed.backends import BackendSettings
from unswayed.backends.local_heads import HeadSites
from unswayed.backends.local_jobs import LocalPlan
from unswayed.backends.local_passes import LabelScorer
from unswayed.backends.local_texts import Grammars, end_ids
from unswayed.backends.model_folders import DTYPES, ModelFolder
from unswayed.base.errors import UsageError, first_line
from unswayed.base.registry import require

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SMALL_PARAMETERS: Final = 100_000_000
"""Below this a second CPU thread brings nothing (15 times slower on a busy machine); from there on
the one thread is remarked."""

LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory with what is needed to ask it."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    plan: LocalPlan
    scorer: LabelScorer
    grammars: Grammars
    pad: int  # an id to pad with
    remarks: tuple[str, ...] = ()  # what its user should know of how it was loaded, in sentences


def load_model(folder: ModelFolder, settings: BackendSettings, *, name: str) -> LoadedModel:
    """Load a model for answering."""
    device = device_of(settings)
    tokenizer = load_tokenizer(folder, settings, name=name)
    with _no_progress_bar():  # the run shows its own progress
        try:
            model = _read_model(folder, settings, device)
        except UsageError:
            raise
        except Exception as error:  # safetensors raises nothing narrower about a damaged file
            raise UsageError(
                f"{name}: cannot be loaded from {folder.path} ({error}). Save or download it again."
            ) from error
    remarks: tuple[str, ...] = ()
    if model.device.type == "cpu":
        remarks = _set_threads(settings, model.num_parameters(), name=name)
    pad = pad_of(tokenizer, model)
    scorer = LabelScorer(model, pad=pad)
    plan = LocalPlan.of(
        model,
        tokenizer,
        folder,
        settings,
        name=name,
        device=model.device,
        pads=scorer.pads,
        trees=scorer.takes_trees,
    )
    grammars = Grammars(tokenizer, end_ids(model, tokenizer))
    return LoadedModel(model, tokenizer, plan, scorer, grammars, pad, remarks)


def build_outline(
    path: Path, *, name: str, trust_remote_code: bool = False, **options: Any
) -> PreTrainedModel:
    """Return the model of a folder on the meta device: every layer in its size, and no weights."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

    try:
        config = AutoConfig.from_pretrained(path, trust_remote_code=trust_remote_code)
        with torch.device("meta"):
            outline = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
                config, trust_remote_code=trust_remote_code, **options
            )
    except Exception as error:  # configurations raise nothing narrower about a damaged file
        raise UsageError(
            f"{name}: transformers cannot build a causal language model from {path / 'config.json'} "
            f"({shortened(error)}). Choose another model."
        ) from error
    if not isinstance(outline, PreTrainedModel):
        raise UsageError(
            f"{path}: {type(outline).__name__} is not a transformers model. Choose another."
        )
    return outline


def shortened(error: Exception) -> str:
    """Return another package's error on one line of at most `LONGEST` characters; peft prints whole models."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def load_tokenizer(
    folder: ModelFolder, settings: BackendSettings, *, name: str
) -> PreTrainedTokenizerBase:
    """Return the tokenizer of a model, with a warning where the model's own code may run."""
    from transformers import AutoTokenizer

    if settings.trust_remote_code:
        warnings.warn(
            f"{name} may run Python code of {folder.path} with your rights (trust_remote_code). "
            "Read that code, and name a revision so that it stays as you read it.",
            stacklevel=2,
        )
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            folder.path, trust_remote_code=settings.trust_remote_code
        )
    except Exception as error:  # tokenizers raises nothing narrower about a damaged file
        raise UsageError(
            f"{name}: cannot be loaded from {folder.path} ({error}). Save or download it again."
        ) from error
    if not isinstance(tokenizer.model_max_length, int | float):
        raise UsageError(
            f"{name}: model_max_length in {folder.path / 'tokenizer_config.json'} is not a number. Correct it."
        )
    return tokenizer


def pad_of(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> int:
    """Return an id that the model has; it is never attended to, so any will do."""
    import torch

    pad, rows = tokenizer.pad_token_id, model.get_input_embeddings()
    if not isinstance(pad, int) or (
        isinstance(rows, torch.nn.Embedding) and pad >= rows.num_embeddings
    ):
        return 0
    return pad


def device_of(settings: BackendSettings) -> torch.device:
    """Return the device of a model: the one given, else a GPU if there is one."""
    import torch

    if settings.device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.device(settings.device)
    except RuntimeError as error:
        raise UsageError(
            f"unknown device {settings.device!r}: give cpu, cuda, cuda:1 or mps ({first_line(error)})"
        ) from None


def check_places(settings: BackendSettings, shown: str) -> None:
    """Check where a model is to lie, as far as this needs no torch."""
    if settings.tensor_parallel > 1:
        raise UsageError(
            f"{shown}: tensor_parallel={settings.tensor_parallel} is for vllm/ models. Spread an hf/ model over "
            f"several devices with device_map='auto'."
        )
    if settings.device is not None and settings.device_map is not None:
        raise UsageError(
            f"device={settings.device!r} and device_map={settings.device_map!r} both place the "
            "model. Give only one of them."
        )


def dtype_of(folder: ModelFolder, settings: BackendSettings, device: torch.device) -> torch.dtype:
    """Return the number type of a model: the one given, else float32 on a CPU and bfloat16 elsewhere."""
    import torch

    name = folder.dtype or settings.dtype
    if name is None:
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise UsageError(f"unknown dtype {name!r}. Known: {', '.join(DTYPES)}.")
    return dtype


def _set_threads(settings: BackendSettings, parameters: int, *, name: str) -> tuple[str, ...]:
    """Threads of the calling thread's torch: as told, as OMP_NUM_THREADS says, else one, and a remark."""
    import torch

    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    elif "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
        if parameters >= SMALL_PARAMETERS and (cores := os.cpu_count() or 1) > 1:
            return (
                f"{name} ran on one thread of the CPU. Where the machine does nothing else, "
                f"--threads {cores} is faster.",
            )
    return ()


def _read_model(
    folder: ModelFolder, settings: BackendSettings, device: torch.device
) -> PreTrainedModel:
    from transformers import AutoModelForCausalLM, PreTrainedModel

    placed = _placement(folder, settings, device)
    attention = settings.attn_implementation
    model: torch.nn.Module = AutoModelForCausalLM.from_pretrained(
        folder.path,
        dtype=dtype_of(folder, settings, device),
        use_safetensors=True,
        trust_remote_code=settings.trust_remote_code,
        **({} if attention is None else {"attn_implementation": attention}),
        **placed,
    )
    if folder.adapter is not None:
        model = _with_adapter(model, folder.adapter)
    model = (model if placed else model.to(device)).eval()
    if not isinstance(model, PreTrainedModel):
        raise UsageError(
            f"{folder.path}: {type(model).__name__} is not a transformers model. Choose another."
        )
    if folder.heads is not None:
        HeadSites(model).apply(folder.heads)
    return model


def _placement(
    folder: ModelFolder, settings: BackendSettings, device: torch.device
) -> dict[str, Any]:
    """Build the device and quantisation arguments of `from_pretrained`; empty for full weights on one device."""
    where: str | dict[str, torch.device] = {"": device}
    if settings.device_map is not None:
        require("accelerate", extra="train", feature="a map of devices (device_map)")
        where = settings.device_map
    if folder.bits is None:
        return {} if settings.device_map is None else {"device_map": where}
    from transformers import BitsAndBytesConfig

    eight = folder.bits == 8
    config = BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_8bit=eight,
        load_in_4bit=not eight,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=dtype_of(folder, settings, device),
    )
    return {"device_map": where, "quantization_config": config}


def _with_adapter(model: torch.nn.Module, adapter: Path) -> torch.nn.Module:
    """Return the model with a LoRA adapter inside: its layers are replaced in place."""
    from peft import PeftModel

    adapted = PeftModel.from_pretrained(model, str(adapter))
    kinds = {
        str(config.peft_type).removeprefix("PeftType.") for config in adapted.peft_config.values()
    }
    if kinds != {"LORA"}:
        raise UsageError(
            f"{adapter} is a {', '.join(kinds)} adapter. Merge it into its base, or give a LoRA "
            f"adapter."
        )
    return adapted.get_base_model()


@contextlib.contextmanager
def _no_progress_bar() -> Iterator[None]:
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
