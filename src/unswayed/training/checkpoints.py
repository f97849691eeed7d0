"""Check that a checkpoint is whole, so that a run can resume from it.

Nothing is unpickled: a file of safetensors says how long it is, an archive of torch is a zip file whose table
of contents stands at its end. The record beside a checkpoint keeps size and CRC-32 of every other file. Sizes are
compared for all checkpoints, checksums (about 4 GB a second) for the one to resume from. They find accidents of a
disk, not malice.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from unswayed.base.files import read_object
from unswayed.training.weight_files import weights_defect

RECORD: Final = "training.json"
STATE: Final = "trainer_state.json"
CONFIGS: Final = ("config.json", "adapter_config.json")
SHARDED: Final = (("pytorch_model_fsdp", "weights"), ("optimizer", "optimiser"))
"""Folders that torch writes of a sharded run, by how their names begin; the last file is `.metadata`."""
MOST_PROCESSES: Final = 1 << 16
FILES: Final = "files"
"""Field of a checkpoint's record: `[bytes, crc32]` of each file, by its path in the folder."""
DEEPSPEED: Final = "latest"
"""Deepspeed's file that names the folder of its own checkpoint: weights, optimiser and schedule."""


def checkpoint_defect(folder: Path, step: int) -> str | None:
    """Return the defect that keeps a step's checkpoint from being resumed, in a few words; None without one."""
    return next(_checkpoint_defects(folder, step), None)


def written_files(folder: Path) -> dict[str, list[int]]:
    """Return bytes and CRC-32 of every file of a checkpoint but its record, read back from the disk."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        path.relative_to(folder).as_posix(): [path.stat().st_size, _crc32(path)]
        for path in files
        if path != folder / RECORD
    }


def changed_file(folder: Path) -> str | None:
    """Name a file whose bytes are no longer those that were written; None without one, or without checksums."""
    written = read_object(folder / RECORD).get(FILES)
    if not isinstance(written, dict):
        return None
    present = written_files(folder)
    return next((name for name, entry in written.items() if present.get(name) != entry), None)


def rng_file(rank: int, processes: int) -> str:
    """Return the file in which transformers keeps the state of a process's random numbers."""
    return "rng_state.pth" if processes == 1 else f"rng_state_{rank}.pth"


def _checkpoint_defects(folder: Path, step: int) -> Iterator[str]:
    record, state = read_object(folder / RECORD), read_object(folder / STATE)
    if not record:
        yield f"no readable {RECORD}"
    if state.get("global_step") != step:
        yield f"no {STATE} of step {step}"
    for name in CONFIGS:
        if (folder / name).exists() and not read_object(folder / name):
            yield f"{name} is incomplete"
    processes = record.get("processes") or 1
    if not isinstance(processes, int) or not 0 < processes <= MOST_PROCESSES:
        yield f"no number of processes in {RECORD}"
        return
    needed = [rng_file(rank, processes) for rank in range(processes)]
    if (folder / DEEPSPEED).is_file():
        name = (folder / DEEPSPEED).read_text(encoding="utf-8", errors="replace").strip()
        if not name or not (folder / name).is_dir():
            yield f"no folder {name!r}, which {DEEPSPEED} names"
        archives = sorted(folder.glob("**/*.pt"))
    else:
        yield from _state_defects(folder)
        needed.append("scheduler.pt")
        archives = sorted(path for form in ("*.pt", "*.bin") for path in folder.glob(form))
    for name in needed:
        if not (folder / name).is_file():
            yield f"no {name}"
    for path in (*archives, *sorted(folder.glob("*.pth"))):
        if not _is_archive(path):
            yield f"{path.name} is incomplete"
    written = record.get(FILES)
    for name, entry in (written if isinstance(written, dict) else {}).items():
        if not (folder / name).is_file() or [(folder / name).stat().st_size] != entry[:1]:
            yield f"{name} is shorter or longer than it was written"


def _state_defects(folder: Path) -> Iterator[str]:
    """Yield defects of weights and optimiser: whole in files, or each process's share in a folder."""
    for begins, noun in SHARDED:
        shares = [path for path in folder.glob(f"{begins}_*/") if path.is_dir()]
        if any(not (path / ".metadata").is_file() for path in shares):
            yield f"the {noun} of some process are missing"
        whole = (folder / f"{begins}.bin").is_file() or (folder / f"{begins}.pt").is_file()
        if not shares and not whole:
            if begins != SHARDED[0][0]:
                yield f"no {noun}"
            elif (defect := weights_defect(folder)) is not None:
                yield defect


def _is_archive(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return bool(archive.namelist())
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return False


def _crc32(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            value = zlib.crc32(block, value)
    return value
