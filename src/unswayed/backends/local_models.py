"""Loading a local model: weights, tokenizer, adapter, device, threads."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from unswayed.backends import BackendSettings
from unswayed.backends.local_chats import ChatWriter, LabelTokens
from unswayed.backends.local_grammars import Grammars
from unswayed.backends.local_passes import LabelScorer
from unswayed.backends.local_texts import end_ids
from unswayed.backends.model_folders import ModelFolder
from unswayed.errors import UsageError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["LoadedModel", "load_model"]

SMALL_PARAMETERS: Final = 100_000_000
"""Below this a second CPU thread costs more than it brings (15 times slower on a busy machine)."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory with what is needed to ask it.

    Attributes:
        pad: An id to pad with.
        longest: Most tokens of prompt and answer together; None if the model does not say.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    writer: ChatWriter
    labels: LabelTokens
    scorer: LabelScorer
    grammars: Grammars
    pad: int
    longest: int | None


def load_model(folder: ModelFolder, settings: BackendSettings, *, name: str) -> LoadedModel:
    """Load a model for answering.

    Raises:
        UsageError: If the folder does not hold a causal language model that can be loaded, or
            the device or dtype does not exist.
    """
    from transformers import AutoTokenizer

    device = _device(settings)
    with _no_progress_bar():  # the run shows its own progress
        try:
            tokenizer = AutoTokenizer.from_pretrained(
                folder.path, trust_remote_code=settings.trust_remote_code
            )
            model = _read_model(folder, settings, device)
        except UsageError:
            raise
        except Exception as error:  # tokenizers raises nothing narrower about a damaged file
            raise UsageError(f"{name}: cannot be loaded from {folder.path}: {error}") from error
    if not isinstance(tokenizer.model_max_length, int | float):
        raise UsageError(
            f"{name}: model_max_length in {folder.path / 'tokenizer_config.json'} is not a number."
        )
    if device.type == "cpu":
        _set_threads(settings, model.num_parameters())
    writer = ChatWriter(tokenizer, model=name, enable_thinking=folder.prompt.enable_thinking)
    pad = _pad(tokenizer, model)
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return LoadedModel(
        model=model,
        tokenizer=tokenizer,
        writer=writer,
        labels=LabelTokens(writer),
        scorer=LabelScorer(model, pad=pad),
        grammars=Grammars(tokenizer, end_ids(model, tokenizer)),
        pad=pad,
        longest=longest if isinstance(longest, int) else None,
    )


def _pad(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> int:
    """An id that the model has; it is never attended to, so any will do."""
    import torch

    pad, rows = tokenizer.pad_token_id, model.get_input_embeddings()
    if not isinstance(pad, int) or (
        isinstance(rows, torch.nn.Embedding) and pad >= rows.num_embeddings
    ):
        return 0
    return pad


def _device(settings: BackendSettings) -> torch.device:
    import torch

    if settings.device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.device(settings.device)
    except RuntimeError as error:
        raise UsageError(f"unknown device {settings.device!r}: {error}") from None


def _dtype(settings: BackendSettings, device: torch.device) -> torch.dtype:
    import torch

    if settings.dtype is None:
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    dtype = getattr(torch, settings.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise UsageError(f"unknown dtype {settings.dtype!r}. Known: float32, bfloat16, float16.")
    return dtype


def _set_threads(settings: BackendSettings, parameters: int) -> None:
    """Threads of the calling thread's torch: as told, as OMP_NUM_THREADS says, else by size."""
    import torch

    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    elif "OMP_NUM_THREADS" not in os.environ and parameters < SMALL_PARAMETERS:
        torch.set_num_threads(1)


def _read_model(
    folder: ModelFolder, settings: BackendSettings, device: torch.device
) -> PreTrainedModel:
    from transformers import AutoModelForCausalLM, PreTrainedModel

    model: torch.nn.Module = AutoModelForCausalLM.from_pretrained(
        folder.path,
        dtype=_dtype(settings, device),
        use_safetensors=True,
        trust_remote_code=settings.trust_remote_code,
    )
    if folder.adapter is not None:
        model = _with_adapter(model, folder.adapter)
    model = model.to(device).eval()
    if not isinstance(model, PreTrainedModel):
        raise UsageError(f"{folder.path}: {type(model).__name__} is not a transformers model.")
    return model


def _with_adapter(model: torch.nn.Module, adapter: Path) -> torch.nn.Module:
    """The model with a LoRA adapter inside: its layers are replaced in place."""
    from peft import PeftModel

    adapted = PeftModel.from_pretrained(model, str(adapter))
    kinds = {
        str(config.peft_type).removeprefix("PeftType.") for config in adapted.peft_config.values()
    }
    if kinds != {"LORA"}:
        raise UsageError(f"{adapter} is a {', '.join(kinds)} adapter; only LoRA is understood.")
    inner: torch.nn.Module = adapted.get_base_model()
    return inner


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
