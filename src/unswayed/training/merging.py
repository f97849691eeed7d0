"""Merge a trained adapter into its base, and publish a result."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from unswayed.backends import BackendSettings
from unswayed.backends.local_chats import ChatWriter, LabelTokens
from unswayed.backends.local_models import load_tokenizer, pad_of
from unswayed.backends.local_passes import LabelScorer
from unswayed.backends.model_folders import ADAPTER_CONFIG, locate
from unswayed.base.errors import RunDirectoryError, UsageError, first_line
from unswayed.base.registry import require
from unswayed.model.items import Message
from unswayed.training.card import base_of, merged_card
from unswayed.training.checkpoints import RECORD
from unswayed.training.run_folder import LOG, RunFolder

AGREEMENT: Final = 1e-4
HALF_AGREEMENT: Final = 0.05
"""How far a label's log-probability may move by merging: in float32, and in the formats of 16 bits, in which
the sum is rounded."""


def merge(adapter: Path, out: Path) -> float:
    """Merge an adapter that was trained here into its base, in the precision of the base's files.

    The folder takes its name once it is whole and the label log-probabilities of one prompt agree.

    Args:
        adapter: Result of a training with LoRA.
        out: Folder of the merged model; it must not exist.

    Returns:
        The largest difference between label log-probabilities.

    Raises:
        UsageError: If it is no such adapter, its base is missing or another one, or the two differ.
        RunDirectoryError: If `out` exists or cannot be written.
    """
    require("peft", extra="train", feature="merging an adapter")
    import torch
    from peft import PeftModel
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    if out.exists():
        raise RunDirectoryError(f"{out} already exists. Choose another --out.")
    folder = locate(str(adapter))
    if folder.adapter is None:
        raise UsageError(f"{adapter} is a whole model, not an adapter. Use it as hf/{adapter}.")
    record = RunFolder(adapter).read_record()
    tokenizer = load_tokenizer(folder, BackendSettings(), name=folder.name)
    base: Any = AutoModelForCausalLM.from_pretrained(
        folder.path, dtype="auto", use_safetensors=True
    )
    adapted = PeftModel.from_pretrained(base, str(adapter)).eval()
    writer = ChatWriter(tokenizer, model=folder.name)
    labels, pad = folder.prompt.labels or ("A", "B"), pad_of(tokenizer, base)
    before = _label_log_probs(adapted.get_base_model(), writer, labels, pad)
    merged: Any = adapted.merge_and_unload()
    gap = float(np.abs(_label_log_probs(merged, writer, labels, pad) - before).max())
    bound = AGREEMENT if merged.dtype == torch.float32 else HALF_AGREEMENT
    if not gap <= bound:
        raise UsageError(
            f"{adapter}: merging moves a label's log-probability by {gap:.2g}, and at most {bound:g} is rounding. "
            "Use the adapter unmerged."
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as aside:
            whole = RunFolder(Path(aside) / out.name)
            merged.save_pretrained(whole.path)
            tokenizer.save_pretrained(whole.path)
            folder.prompt.write(whole.path)
            card = (adapter / "README.md").read_text(encoding="utf-8")
            (whole.path / "README.md").write_text(merged_card(record, card, gap), encoding="utf-8")
            whole.write_record({**record, "merged": {"adapter": folder.name.rpartition("@")[2]}})
            whole.check_weights()
            whole.path.rename(out)
    except (OSError, SafetensorError) as error:
        raise RunDirectoryError(
            f"cannot write {out}: {first_line(error)}. Free some space, or choose another --out."
        ) from None
    return gap


def push(folder: Path, repository: str) -> str:
    """Upload a result to a private repository of the Hugging Face hub: no checkpoints, logs or answers.

    Returns:
        The address of the repository.

    Raises:
        UsageError: If the folder is no finished result, the repository is public or the hub refuses.
    """
    require("huggingface_hub", extra="train", feature="--push")
    import huggingface_hub

    record = RunFolder(folder).read_record()
    if "finished" not in record:
        raise UsageError(
            f"{folder} is not the result of a finished training (see its {RECORD}). Run the training "
            f"command again."
        )
    if base_of(record).hub_id is None and (folder / ADAPTER_CONFIG).is_file():
        raise UsageError(
            f"--push {repository}: {ADAPTER_CONFIG} names the base by its path on this machine. "
            "Merge the adapter with --out and push that, or train from a model of the hub."
        )
    hub = huggingface_hub.HfApi()
    try:
        address = str(hub.create_repo(repository, private=True, exist_ok=True))
        if not hub.model_info(repository).private:
            raise UsageError(f"--push {repository}: this repository is public. Name another one.")
        hub.upload_folder(
            repo_id=repository, folder_path=folder, ignore_patterns=["*/*", LOG]
        )  # what a run keeps beside its result lies in folders
    except (OSError, ValueError) as error:  # the hub's errors are of both kinds
        raise UsageError(
            f"--push {repository}: {first_line(error)}. {folder} is complete and can be pushed again."
        ) from None
    return address


def _label_log_probs(
    model: Any, writer: ChatWriter, labels: tuple[str, ...], pad: int
) -> NDArray[np.float64]:
    """Return a model's log-probabilities of labels after one prompt."""
    chat = [Message("user", f"Which one is right: {' or '.join(labels)}?")]
    (prompt,) = writer.write([chat], thinking=False)
    ids = LabelTokens(writer).ids(labels, prompt.text)
    ((row,),) = LabelScorer(model, pad=pad).score([prompt.tokens], [ids])
    return row
