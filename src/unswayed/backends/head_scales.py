"""Scales of attention heads and MLP neurons in a safetensors file: `+heads=FILE` in a model's name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import UsageError
from unswayed.base.files import read_whole, whole_file

FORMAT: Final = "unswayed-gates/1"
FINGERPRINT_DIGITS: Final = 16
HEADER_BYTES: Final = 8
"""A safetensors file: header length as little-endian uint64, JSON header, the numbers."""

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class HeadScales:
    """One factor for every head and neuron of a model; 1 leaves it as it is, 0 masks it."""

    heads: FloatArray  # shape (layers, heads)
    neurons: FloatArray | None  # shape (layers, neurons); None leaves neurons as they are
    record: Mapping[str, Any]  # for which base and revision, and how they were fitted
    fingerprint: str = ""  # of the file

    @classmethod
    def read(cls, path: Path, *, revision: str | None = None, wanted: str | None = None) -> Self:
        """Read a file for the model of a revision; `wanted` is the fingerprint that it must have.

        Raises:
            UsageError: If it is damaged, of another format, another file or for another model.
        """
        try:
            content = read_whole(path)
            tensors, metadata = tensors_of(content)
            heads, record = tensors["heads"], json.loads(metadata[FORMAT])
            own = record["base"], record["revision"], record["imbalance"], record["variance_ratio"]
            if any(t.ndim != 2 or len(t) != len(heads) for t in tensors.values()):
                raise ValueError(own)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror or error}.") from None
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise UsageError(
                f"{path} is not a whole file of scales ({FORMAT}). Write it again with `unswayed heads fit`."
            ) from None
        fingerprint = f"sha256:{hashlib.sha256(content).hexdigest()[:FINGERPRINT_DIGITS]}"
        if wanted not in (None, fingerprint):
            raise UsageError(
                f"{path} has the fingerprint {fingerprint}, not {wanted}. Give the file with that fingerprint."
            )
        if revision not in (None, record["revision"]):
            raise UsageError(
                f"{path} was fitted for {record['base']} ({record['revision']}), and this model is {revision}. "
                "Fit heads for this model."
            )
        return cls(heads, tensors.get("neurons"), record, fingerprint)

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all; needs the extra `local`."""
        from safetensors.numpy import save

        tensors = {"heads": self.heads, "neurons": self.neurons}
        named = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        with whole_file(path) as file:  # one entry: the order of several is left to chance
            file.write(save(named, {FORMAT: json.dumps(self.record, sort_keys=True)}))


def tensors_of(content: bytes) -> tuple[dict[str, FloatArray], dict[str, str]]:
    """Return the tensors of a safetensors file in float32, by name, and its metadata.

    Raises:
        ValueError, LookupError, TypeError, AttributeError, RecursionError: If it is not one, or not whole.
    """
    start = HEADER_BYTES + int.from_bytes(content[:HEADER_BYTES], "little")
    header: dict[str, Any] = json.loads(content[HEADER_BYTES:start])
    metadata = header.pop("__metadata__", {})
    kinds = {"F16": np.float16, "F32": np.float32}
    tensors = {}
    for name, entry in header.items():
        begin, end = (start + place for place in entry["data_offsets"])
        numbers = np.frombuffer(content[begin:end], dtype=kinds[entry["dtype"]])
        tensors[name] = numbers.astype(np.float32).reshape(entry["shape"])
        if not np.isfinite(tensors[name]).all():
            raise ValueError(f"{name} has values that are not finite")
    return tensors, metadata
