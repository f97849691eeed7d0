"""Check by their headers that weight files are whole: a download or a saving process may have stopped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from unswayed.base.errors import UsageError

WEIGHTS: Final = ("model.safetensors", "adapter_model.safetensors")
INDEX: Final = "model.safetensors.index.json"

LENGTH_BYTES: Final = 8
"""A safetensors file begins with the length of its header, a little-endian number."""

REMEDY: Final = "Download or save the model again."

Shape = tuple[int, ...]


def weights_defect(folder: Path) -> str | None:
    """Return the defect that keeps the weights of a model or an adapter from being read; None if they are whole."""
    index = folder / INDEX
    try:
        names = (
            _shards(index)
            if index.is_file()
            else [name for name in WEIGHTS if (folder / name).is_file()]
        )
        for name in names:
            _shapes(folder / name)
    except (OSError, ValueError) as error:
        return str(error)
    return None if names else "no weights"


def check_weight_files(folder: Path, model: Any) -> None:
    """Check that every weight file is whole, and that together they hold the weights of a skeleton.

    What transformers does not find it draws at random, with a warning. A layer counts as missing
    where the same weight of another layer is there: names that transformers converts on loading
    are not judged.
    """
    stored: dict[str, Shape] = {}
    try:
        for index in sorted(folder.glob("*.safetensors.index.json")):
            shards = _shards(index)
            absent = [shard for shard in shards if not (folder / shard).is_file()]
            if absent:
                raise ValueError(
                    f"{len(absent)} of {len(shards)} weight files are missing, such as {absent[0]}"
                )
        for file in sorted(folder.glob("*.safetensors")):
            stored.update(_shapes(file))
    except ValueError as error:
        raise UsageError(f"{folder}: {error}. {REMEDY}") from None
    if getattr(model.config, "quantization_config", None) is not None:
        return  # packed: other names and shapes
    wanted = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    kinds = {_kind(name) for name in stored}
    missing = [name for name in wanted if name not in stored and _kind(name) in kinds]
    if missing:
        raise UsageError(
            f"{folder}: its files lack {len(missing)} of the model's weights, such as {missing[0]}; "
            f"they would be drawn at random. {REMEDY}"
        )
    for name, shape in wanted.items():
        if stored.get(name, shape) != shape:
            raise UsageError(
                f"{folder}: {name} has shape {stored[name]} in its file and {shape} by config.json. "
                f"{REMEDY}"
            )


def _shards(index: Path) -> list[str]:
    """Return the files that an index names; `ValueError` if there are none."""
    try:
        shards = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        shards = []
    if not shards:
        raise ValueError(f"{index.name} names no weights")
    return shards


def _shapes(file: Path) -> Mapping[str, Shape]:
    """Return the shapes of a file's tensors by name; `ValueError` if it is not as long as its header says."""
    size = file.stat().st_size
    try:
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(LENGTH_BYTES), "little")
            header = json.loads(opened.read(min(length, size)))
        tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
        shapes = {name: tuple(entry["shape"]) for name, entry in tensors.items()}
        end = max((entry["data_offsets"][1] for entry in tensors.values()), default=0)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{file.name} is not a safetensors file") from None
    whole = LENGTH_BYTES + length + end
    if size != whole:
        raise ValueError(f"{file.name} is {size:,} bytes long instead of {whole:,}")
    return shapes


def _kind(name: str) -> str:
    return re.sub(r"\d+", "#", name)
