"""Inspect's `.eval` files: a zip of one JSON per sample, read one by one and never unpacked.

A zip says how large its members are and where they lie, and can lie about both. So before anything
is read, its table is checked against the file. Names that lead elsewhere, members that overlap or are encrypted, and
archives that expand too far are refused. No more than a member's stated size is ever read from it.
Members are deflated or Zstandard (method 93). Zipfile reads it from Python 3.14 on, but expands whole blocks, so
that the stated size would bound nothing.
"""

from __future__ import annotations

import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import PurePosixPath
from typing import Final

import msgspec

from unswayed.base.errors import UsageError
from unswayed.base.files import open_file
from unswayed.data.importers.protocol import Entry, Record, Source, object_of
from unswayed.model.items import BadFieldError, expands

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, ZstdFile
else:
    from backports.zstd import ZstdError, ZstdFile

EVALUATION: Final = "unswayed_eval"
"""Under which the evaluation that a sample belongs to is given beside its own fields."""
LARGEST: Final = 256 * 2**20
"""Bytes of one sample; Inspect keeps large attachments once per sample, far below."""
_ZSTANDARD: Final = 93
_HEADER: Final = struct.Struct("<4s5H3L2H")
"""Header of a member; its name and extra field follow, and its last two numbers are their lengths."""
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTANDARD)
"""Of others Python expands a whole block at once, whatever the member says it holds."""
_DAMAGED: Final = (
    zipfile.BadZipFile,
    zlib.error,
    ZstdError,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
)
_ENCRYPTED: Final = 0x1
_STARTS: Final = ("header.json", "_journal/start.json")
"""Where a log says what was evaluated; a run that was cut off has only the second."""


def samples_of(file: str) -> Iterator[Entry]:
    """Yield the samples of a log with the evaluation they belong to, one in memory at a time."""
    try:
        with open_file(file) as packed, zipfile.ZipFile(packed) as archive:
            members = archive.infolist()
            _check(file, members, packed.seek(0, os.SEEK_END))
            yield from _samples(file, archive, {member.filename: member for member in members})
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise UsageError(f"{file}: not an .eval log: {error}. Give a log of Inspect.") from None
    except OSError as error:
        raise UsageError(
            f"cannot read {file}: {error.strerror or error}. Correct its path or permissions."
        ) from None


def _samples(
    file: str, archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]
) -> Iterator[Entry]:
    start = next((members[name] for name in _STARTS if name in members), None)
    head = _decoded(archive, start) if start is not None else {}
    evaluation = head if isinstance(head, BadFieldError) else head.get("eval", {})
    if isinstance(evaluation, BadFieldError):
        raise UsageError(f"{file}: {evaluation}.")
    samples = [
        member
        for member in members.values()
        # the zip's table or the member's own header says so: one name may be damaged
        for names in [(member.orig_filename.encode(), _header(archive, member)[0])]
        if any(name.startswith(b"samples/") and name.endswith(b".json") for name in names)
    ]
    for number, member in enumerate(samples, start=1):
        sample = _decoded(archive, member)
        if not isinstance(sample, BadFieldError):
            sample = {**sample, EVALUATION: evaluation}
        yield Source(file, number), sample


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[bytes, int]:
    """Return a member's name in its own header and the length of what follows it, up to which the file is read."""
    file = archive.fp
    assert file is not None
    file.seek(min(member.header_offset, 2**40))  # a damaged one may be beyond what can be sought
    header = file.read(_HEADER.size)
    *_, name, extra = _HEADER.unpack(header) if len(header) == _HEADER.size else (0, 0)
    return file.read(name), extra


def _decoded(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Record | BadFieldError:
    try:
        content = _content(archive, member)
    except _DAMAGED as error:
        return BadFieldError(member.filename, f"is damaged ({error})")
    return object_of(msgspec.Raw(content), member.filename)


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.compress_type != _ZSTANDARD:
        with archive.open(member) as stored:
            return stored.read(member.file_size)
    _, extra = _header(archive, member)
    file = archive.fp
    assert file is not None
    file.seek(extra, os.SEEK_CUR)
    packed = ZstdFile(BytesIO(file.read(member.compress_size)))
    content = packed.read(member.file_size)
    if zlib.crc32(content) != member.CRC:
        raise zipfile.BadZipFile("its checksum differs")
    return content


def _check(file: str, members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse what no program that writes logs would write."""
    if not any(member.filename.startswith("samples/") for member in members):
        raise UsageError(f"{file}: not an .eval log: no samples/ in it. Give a log of Inspect.")
    if sum(member.compress_size for member in members) > size:
        raise UsageError(
            f"{file}: its members overlap and claim more bytes than the file has. Copy the log again."
        )
    if expands(size, whole := sum(member.file_size for member in members)):
        raise UsageError(
            f"{file}: its {size:,} bytes expand to {whole:,}. If you trust it, convert it: inspect log "
            f"convert --to json."
        )
    names = set()
    for member in members:
        reason = _reason(member)
        if member.filename in names:
            reason = "occurs twice"
        if reason is not None:
            raise UsageError(f"{file}: {member.filename!r:.100} {reason}. Write the log again.")
        names.add(member.filename)


def _reason(member: zipfile.ZipInfo) -> str | None:
    """Return why a member is refused; None if it is not."""
    path = PurePosixPath(member.orig_filename)
    if path.is_absolute() or ".." in path.parts or member.orig_filename[1:2] == ":":
        return "leads out of the archive"
    if {"\\", "\0"} & set(member.orig_filename):
        return "is not a valid member name"
    if member.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if member.compress_type not in _METHODS:
        return f"is compressed by method {member.compress_type}; logs are deflated or Zstandard"
    if member.file_size > LARGEST:
        return f"has {member.file_size:,} bytes; the most for one sample is {LARGEST:,}"
    return None
