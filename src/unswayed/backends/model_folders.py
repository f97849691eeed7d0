"""Locate and identify a local model: `<path or id>[@revision][+bits=4|8][+dtype=NAME][+heads=FILE][+lora=DIR]`.

The name that goes into every call's key carries the revision of a hub model or a fingerprint of a
folder's files, so a folder that is trained further is another model and its old answers are not
mistaken for its new ones. Nothing here imports torch.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, cast

from unswayed.backends.head_scales import FINGERPRINT_DIGITS, HeadScales
from unswayed.backends.own_prompts import PROMPT_FILE, OwnPrompt, own_prompt_of
from unswayed.base.errors import MissingExtraError, UnknownNameError, UsageError, first_line
from unswayed.base.files import read_object, whole_file
from unswayed.base.registry import require

NEEDED: Final = (
    "*.safetensors",
    "*.index.json",
    "config.json",
    "generation_config.json",
    "adapter_config.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab*",
    "merges.txt",
    "*.jinja",
    PROMPT_FILE,
    "*.py",
    "*.model",
)
"""The files of a model folder that are read: weights first, then all that a prompt needs."""

DETERMINING: Final = (*NEEDED, "*.bin", "*.pt", "*.pth", "*.ckpt", "*.gguf", "*.h5", "*.msgpack")
"""The files that a fingerprint covers: weights in every form, whether or not they are read."""

DTYPES: Final = ("float32", "bfloat16", "float16", "float64")
"""Numbers that a model may compute in."""

ADAPTER_CONFIG: Final = "adapter_config.json"
ADAPTER_WEIGHTS: Final = "adapter_model.safetensors"
TRAINING: Final = "training.json"

PART: Final = re.compile(r"\+(?=\w+=)")
"""Begins what follows the place of a model in its name."""

OPEN: Final = "@sha256:"
"""Ends the name of a folder whose files were not hashed."""
CACHED_FROM_BYTES: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model on disk."""

    path: Path  # folder with config, weights and tokenizer
    name: str  # what was asked for, with revision or fingerprint; without the provider
    # how the model was trained to be asked: the adapter's, or else the folder's own
    prompt: OwnPrompt
    adapter: Path | None = None  # folder of a LoRA adapter to put on top
    # Of its weights once they are rounded: 8, 4, or None for what the dtype says. It is part of the
    # name, since answers change with it.
    bits: Literal[4, 8] | None = None
    # What it computes in; None for the default of where it runs. What was asked for is part of the
    # name, since label probabilities change with it (by the rounding of 16 bits).
    dtype: str | None = None
    # scales of its heads and neurons, also part of the name
    heads: HeadScales | None = None


def locate(
    model: str,
    *,
    provider: str = "hf",
    dtype: str | None = None,
    weights: bool = True,
    digest: bool = True,
) -> ModelFolder:
    """Find a model by what follows `hf/` in its name.

    That is a folder or a hub id, with `@revision` (a hub revision, or the fingerprint that a folder
    must have), `+bits=`, `+dtype=`, `+heads=FILE` and `+lora=DIR` where wanted. The option `dtype` says the same as
    `+dtype=`. An adapter alone is put on the base that it names. A price needs no `weights`, and none are downloaded for it. Without `digest` the files
    of a folder are not hashed, and its name ends in `OPEN`.
    """
    shown = f"{provider}/{model}"
    base, plus, adapter = model.partition("+lora=")
    base, bits, parts = _split_parts(base, shown)
    dtype = _one_dtype(parts.get("dtype"), dtype, shown)
    base, revision = _split_revision(base)
    folder = Path(base).expanduser()
    if (folder / ADAPTER_CONFIG).is_file() and not (plus or (folder / "config.json").is_file()):
        adapter, plus = base if revision is None else f"{base}@{revision}", "+lora="
        base, revision = _split_revision(base_of_adapter(folder, shown))
        folder = Path(base).expanduser()
    if folder.is_dir():
        shown_base = f"{provider}/{base}"
        name = (
            f"{base}@{_checked_fingerprint(folder, shown_base, revision)}"
            if digest
            else base + OPEN
        )
    elif base.startswith((".", "~", "/")) or base.count("/") > 1 or "\\" in base:
        raise UsageError(
            f"{shown}: there is no folder {folder}. Give a folder with config.json and "
            "model.safetensors, or a hub id such as org/name."
        )
    else:
        folder = _download(base, revision, shown=f"{provider}/{base}", weights=weights)
        name = f"{base}@{folder.name}"
    _check_weights(folder, shown, needed=weights)
    revision = name.rpartition("@")[2]
    if bits is not None:
        name = f"{name}+bits={bits}"
    if dtype is not None:
        name = f"{name}+dtype={dtype}"
    heads = None
    if "heads" in parts:
        file, wanted = _split_revision(parts["heads"])
        heads = HeadScales.read(Path(file).expanduser(), revision=revision, wanted=wanted)
        name = f"{name}+heads={file}@{heads.fingerprint}"
    adapter_folder = None
    if plus:
        adapter, wanted = _split_revision(adapter)
        adapter_folder = _adapter_folder(adapter, shown)
        fingerprint = _checked_fingerprint(adapter_folder, f"{provider}/{adapter}", wanted)
        name = f"{name}+lora={adapter}@{fingerprint}"
    return ModelFolder(
        path=folder,
        name=name,
        adapter=adapter_folder,
        bits=bits,
        dtype=dtype,
        heads=heads,
        prompt=own_prompt_of([folder] if adapter_folder is None else [adapter_folder, folder]),
    )


def _split_parts(base: str, shown: str) -> tuple[str, Literal[4, 8] | None, dict[str, str]]:
    """Split `PATH+bits=4+dtype=NAME` into path, bits and all parts by name."""
    base, *written = PART.split(base)
    parts = dict(part.split("=", 1) for part in written)
    if len(parts) < len(written):
        raise UsageError(f"{shown}: a part is given twice. Write it once.")
    for name in parts:
        if name not in ("bits", "dtype", "heads"):
            raise UnknownNameError(
                f"{shown}: unknown part +{name}=. Known: +bits=4, +bits=8, +dtype=NAME, "
                "+heads=FILE, +lora=DIR."
            )
    bits = parts.get("bits")
    if bits not in (None, "4", "8"):
        raise UsageError(f"{shown}: +bits={bits} is not supported. Write +bits=4 or +bits=8.")
    return base, None if bits is None else cast(Literal[4, 8], int(bits)), parts


def _one_dtype(named: str | None, given: str | None, shown: str) -> str | None:
    if named is not None and given not in (None, named):
        raise UsageError(f"{shown} and the option {given} name different dtypes. Give one of them.")
    dtype = given if named is None else named
    if dtype is not None and dtype not in DTYPES:
        raise UsageError(f"unknown dtype {dtype!r}. Known: {', '.join(DTYPES)}.")
    return dtype


def check_extras(folder: ModelFolder, shown: str) -> None:
    """Check that transformers can round weights, or load an adapter, where that is asked for."""
    if folder.adapter is not None:
        require("peft", extra="train", feature="a LoRA adapter (+lora=)")
    for module in () if folder.bits is None else ("bitsandbytes", "accelerate"):
        if find_spec(module) is None:
            raise MissingExtraError(
                f"{shown}: weights of 4 or 8 bits need {module}, which is not installed. "
                "Install it with: pip install bitsandbytes accelerate; or leave out +bits."
            )


def _split_revision(base: str) -> tuple[str, str | None]:
    if Path(base).expanduser().exists():  # a folder or file may have an @ in its name
        return base, None
    name, at, revision = base.rpartition("@")
    return (name, revision) if at else (base, None)


def _checked_fingerprint(folder: Path, base: str, wanted: str | None) -> str:
    fingerprint = fingerprint_folder(folder)
    if wanted is not None and wanted != fingerprint:
        raise UsageError(
            f"{base}@{wanted}: the folder's files have fingerprint {fingerprint} now; it is not the named model. "
            f"Write {base} to use it as it is."
        )
    return fingerprint


def _check_weights(folder: Path, shown: str, *, needed: bool) -> None:
    """Refuse what holds no safetensors; a price may do with none, but not with other weights."""
    if any(folder.glob("*.safetensors")):
        return
    _check_finished(folder, shown)
    other = any(file for pattern in DETERMINING[len(NEEDED) :] for file in folder.glob(pattern))
    if needed or other:
        raise UsageError(
            f"{shown}: {folder} holds no *.safetensors file (pickled weights are not loaded). "
            "Save the model again with save_pretrained, or choose a revision with safetensors."
        )


def _check_finished(folder: Path, shown: str) -> None:
    """Refuse the folder of a training that has only checkpoints so far."""
    if (folder / TRAINING).is_file():
        raise UsageError(
            f"{shown}: the training in {folder} has not finished. Run the same `unswayed train` "
            "command again: it resumes from the newest checkpoint."
        )


def _adapter_folder(adapter: str, shown: str) -> Path:
    folder = Path(adapter).expanduser()
    if not any(folder.glob("adapter_*")) and not any(folder.glob("*.safetensors")):
        _check_finished(folder, shown)
    if not (folder / ADAPTER_CONFIG).is_file():
        raise UsageError(
            f"{shown}: {folder} is not a LoRA adapter (no {ADAPTER_CONFIG}). "
            "Give the folder that training wrote."
        )
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise UsageError(
            f"{shown}: {folder} holds no {ADAPTER_WEIGHTS} (pickled weights are not loaded). "
            "Save the adapter again with save_pretrained, which writes safetensors."
        )
    return folder


def base_of_adapter(adapter: Path, shown: str) -> str:
    """Return the base that an adapter names: a hub id with its revision, or a folder with its fingerprint.

    A folder that is no longer where the adapter says is looked for next to the adapter.
    """
    config, record = read_object(adapter / ADAPTER_CONFIG), read_object(adapter / TRAINING)
    name, revision = str(config.get("base_model_name_or_path")), config.get("revision")
    if revision is not None:
        return f"{name}@{revision}"
    places = Path(name), adapter.resolve().parent / Path(name).name
    folder = next((place for place in places if place.is_dir()), None)
    trained = str(record.get("model")).rpartition("@")[2]
    if trained.startswith("sha256:") and folder is None:
        raise UsageError(
            f"{shown}: its base {name} does not exist. Put the folder of the base next to the adapter, or "
            "name it: hf/BASE+lora=ADAPTER."
        )
    return f"{folder}@{trained}" if trained.startswith("sha256:") else str(folder or name)


def _download(repository: str, revision: str | None, *, shown: str, weights: bool) -> Path:
    """Return the folder of a hub model's snapshot, named after its commit; from the cache if offline."""
    require("huggingface_hub", extra="local", feature="a model from the Hugging Face hub")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        return Path(
            snapshot_download(
                repository,
                revision=revision,
                allow_patterns=list(NEEDED if weights else NEEDED[1:]),
                ignore_patterns=["original/*", "consolidated*"],
            )
        )
    except (HFValidationError, RepositoryNotFoundError) as error:
        reason = f"there is no folder and no hub model of that name ({type(error).__name__})"
    except RevisionNotFoundError:
        reason = f"the hub model has no revision {revision!r}"
    except LocalEntryNotFoundError:
        reason = "it is neither a folder nor in the cache, and the hub cannot be reached"
    except OSError as error:
        reason = f"it is not a folder, and it cannot be downloaded ({first_line(error)})"
    raise UsageError(f"{shown}: {reason}. Give a folder, or the id of a hub model.")


def fingerprint_folder(folder: Path) -> str:
    """`sha256:` and the first digits over the files that determine a model's answers.

    Large folders are hashed once: the result is remembered by name, size and time of change.
    """
    files = sorted({file for pattern in DETERMINING for file in folder.glob(pattern)})
    stats = [(file.name, file.stat()) for file in files]
    stamps = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    remember = sum(size for _, size, _ in stamps) >= CACHED_FROM_BYTES
    stamp = hashlib.sha256(json.dumps([str(folder.resolve()), stamps]).encode()).hexdigest()
    if remember and (remembered := read_object(_memory_file()).get(stamp)):
        return str(remembered)  # only a cache: hashing again gives the same
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            content = hashlib.file_digest(opened, "sha256").hexdigest()
        digest.update(f"{file.name}\0{content}\n".encode())
    fingerprint = f"sha256:{digest.hexdigest()[:FINGERPRINT_DIGITS]}"
    if remember:
        _remember(stamp, fingerprint)
    return fingerprint


def _memory_file() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "unswayed" / "fingerprints.json"


def _remember(stamp: str, fingerprint: str) -> None:
    file = _memory_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(file) as whole:
            whole.write(json.dumps({**read_object(file), stamp: fingerprint}).encode())
    except OSError:
        return  # a read-only home costs a hash per start, nothing else
