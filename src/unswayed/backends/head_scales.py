"""Scales of attention heads and MLP neurons in a safetensors file: `+heads=FILE` in a model's name."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NotRequired, Self, TypedDict

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import UsageError
from unswayed.base.files import read_whole, whole_file

FORMAT: Final = "unswayed-gates/1"
FINGERPRINT_DIGITS: Final = 16
LARGEST_SCALE: Final = 1000.0
"""UniBias needs 4; far larger ones overflow, and every answer would be the same."""
HEADER_BYTES: Final = 8
"""A safetensors file: header length as little-endian uint64, JSON header, the numbers."""

FAULTS: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError)

FloatArray = NDArray[np.float32]
Count = Annotated[int, msgspec.Meta(ge=0)]


class Record(TypedDict):
    """Origin and figures of the scales in a file."""

    base: str
    revision: str
    imbalance: tuple[float, float]
    variance_ratio: tuple[float, float]
    how: NotRequired[str]
    items: NotRequired[Count]
    orders: NotRequired[Count]
    masks: NotRequired[Count]


@dataclass(frozen=True, slots=True, eq=False)
class HeadScales:
    """One factor for every head and neuron of a model; 1 leaves it as it is, 0 masks it."""

    heads: FloatArray  # shape (layers, heads)
    neurons: FloatArray | None  # shape (layers, neurons); None leaves neurons as they are
    record: Mapping[str, Any]  # for which base and revision, and how they were fitted
    fingerprint: str = ""  # of the file
    file: str = "these"

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
            msgspec.convert(record, Record)
            own = heads, tensors.get("neurons")
            whole = record.pop("crc32") == _checksum(*own)
            whole = whole and all(t.ndim == 2 and len(t) == len(heads) for t in tensors.values())
            if not whole or any(abs(t).max(initial=0) > LARGEST_SCALE for t in tensors.values()):
                raise ValueError(path)
        except OSError as error:
            raise UsageError(
                f"{path} cannot be read: {error.strerror or error}. Give a file that `unswayed heads "
                f"fit` wrote."
            ) from None
        except (msgspec.ValidationError, *FAULTS):
            raise UsageError(
                f"{path} is not a complete mask file ({FORMAT}). Write it again with `unswayed heads fit`."
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
        return cls(*own, record, fingerprint, str(path))

    def check(self, layers: int, heads: int, neurons: int) -> None:
        """Check that there is one scale for every head of a model, and for every neuron or none.

        Raises:
            UsageError: If there are more or fewer.
        """
        own = self.neurons is None or self.neurons.shape == (layers, neurons)
        if self.heads.shape != (layers, heads) or not own:
            raise UsageError(
                f"{self.file}: the mask does not fit {layers} layers of {heads} heads and {neurons:,} neurons. Fit "
                f"heads for this model."
            )

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all; needs the extra `local`."""
        from safetensors.numpy import save

        tensors = {"heads": self.heads, "neurons": self.neurons}
        named = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        # one entry: the order of several is left to chance
        told = {**self.record, "crc32": _checksum(self.heads, self.neurons)}
        content = save(named, {FORMAT: json.dumps(told, sort_keys=True)})
        try:
            with whole_file(path) as file:
                file.write(content)
        except OSError as error:
            raise UsageError.cannot(f"write {path}", error) from None


def _checksum(heads: FloatArray, neurons: FloatArray | None) -> int:
    return zlib.crc32(b"" if neurons is None else neurons.tobytes(), zlib.crc32(heads.tobytes()))


def tensors_of(content: bytes) -> tuple[dict[str, FloatArray], dict[str, str]]:
    """Return the tensors of a safetensors file in float32, by name, and its metadata.

    Raises:
        FAULTS: If it is not one, or not whole.
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
