"""A run's folder: its record, its checkpoints and its log, read and written in one place.

A checkpoint is written aside and takes its name when it is whole, so a process that is killed
while it saves leaves the checkpoints that were there. What is taken away loses its name first.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from unswayed.base.errors import RunDirectoryError
from unswayed.base.files import lock, read_object, whole_file
from unswayed.training.checkpoints import (
    FILES,
    RECORD,
    changed_file,
    checkpoint_defect,
    written_files,
)
from unswayed.training.provenance import Record, differing_fields
from unswayed.training.weight_files import weights_defect

LOG: Final = "train.jsonl"
SETTLED: Final = "target/"
"""How the names begin, in the log, of what was settled before training."""
ASIDE: Final = ".writing"
DIGITS: Final = re.compile("0|[1-9][0-9]{0,17}")
"""A step, as names of checkpoints say it."""


class Start(NamedTuple):
    """Starting point of a run."""

    resume: int | None  # step of the checkpoint to go on from; None for a fresh start
    finished: int | None  # the steps that this very run had when it finished; None if it has not
    warnings: tuple[str, ...]  # what of the folder could not be used, in sentences


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Folder for the result, log and checkpoints of a run."""

    path: Path  # may not exist before `prepare`
    # what keeps a step's checkpoint from being resumed, see `protocol.Engine`
    checkpoint_defect: Callable[[Path, int], str | None] = checkpoint_defect

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from training into the folder; a process that dies lets go of it."""
        with ExitStack() as stack:
            with suppress(OSError):  # `prepare` says what is wrong; some file systems have no locks
                self.path.mkdir(parents=True, exist_ok=True)
                folder = os.open(self.path, os.O_RDONLY)
                stack.callback(os.close, folder)
                try:
                    lock(folder)
                except BlockingIOError:
                    raise RunDirectoryError(
                        f"another process is training into {self.path}. Wait until it has ended, "
                        "or choose another --out."
                    ) from None
            yield

    def prepare(self, record: Record, steps: int) -> Start:
        """Create the folder, or check that it holds this run of so many steps; one process does it for all.

        `RunDirectoryError` if it holds another run, or cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            defects = self._defects()
            resume = self._resumable(defects)
            old = None
            if resume is not None or (self.path / RECORD).exists():
                old = self.read_record(resume)
                self.check_same_run(old, record)
            finished, warnings = self._finished()
            if finished is None or finished < steps:
                if finished is not None and resume is None:
                    raise RunDirectoryError(
                        f"{self.path} holds the finished run of {finished} steps and no checkpoint from which to "
                        f"continue to {steps}. Choose another --out."
                    )
                self._clear()
                self.write_record(record)
                self.trim_log(resume or 0)
        except OSError as error:
            raise RunDirectoryError.cannot(f"write to {self.path}", error) from None
        before, now = (old or record).get("processes"), record.get("processes")
        if resume is not None and before != now:
            warnings.append(
                f"the checkpoint was written by {before} processes and {now} go on: they draw other "
                "random numbers, so the result differs from an uninterrupted run."
            )
        place = "the beginning" if resume is None else f"step {resume}"
        warnings += [
            f"{self.checkpoint(step)} cannot be resumed ({defect}); the run goes on from {place} "
            "and removes it with its next checkpoint."
            for step, defect in defects.items()
            if defect is not None and step > (resume or 0)
        ]
        return Start(resume, finished, tuple(warnings))

    def checkpoint(self, step: int) -> Path:
        """Return the path of a step's checkpoint."""
        return self.path / f"checkpoint-{step}"

    @property
    def aside(self) -> Path:
        """Folder in which checkpoints are written before they are moved into place."""
        return self.path / ASIDE

    def keep_checkpoint(self, step: int, record: Record, most: int) -> None:
        """Give a checkpoint that was written aside its name; then take away all but the newest.

        The record is put beside it, so that another run cannot take it for its own.
        """
        written = self.aside / self.checkpoint(step).name
        self.write_record({**record, FILES: written_files(written)}, written)
        self._discard(step)
        written.rename(self.checkpoint(step))
        self.discard_older(most)

    def discard_older(self, most: int) -> None:
        """Take away all checkpoints but so many of the newest; one that cannot be read is none."""
        defects = self._defects()
        whole = sorted(at for at, defect in defects.items() if defect is None)
        for at in set(defects) - set(whole[-most:]):
            self._discard(at)
        self._clear()

    def read_record(self, step: int | None = None) -> Record:
        """Return the record of the run, or of one of its checkpoints."""
        folder = self.path if step is None else self.checkpoint(step)
        try:
            record: Record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
            if not isinstance(record, dict):
                raise ValueError("not an object")
        except (OSError, ValueError, RecursionError) as error:
            raise RunDirectoryError(
                f"{folder}: no readable {RECORD} ({error}), so its run is unknown. Choose another "
                "--out."
            ) from None
        return record

    def write_record(self, record: Record, folder: Path | None = None) -> None:
        """Write the record of the run, or of a checkpoint in another folder."""
        text = json.dumps(record, indent=1, ensure_ascii=False)
        with whole_file((folder or self.path) / RECORD) as file:
            file.write(f"{text}\n".encode())

    def check_same_run(self, old: Record, new: Record) -> None:
        """Check that what lies here belongs to the run that is to be resumed; else name what differs."""
        differing = differing_fields(old, new)
        if differing:
            shown = "; ".join(
                f"{key} was {was!r} and is {now!r}"
                for key, (was, now) in list(differing.items())[:6]
            )
            more = f" and {len(differing) - 6} more" if len(differing) > 6 else ""
            why = (
                " Held-out items come from the training items, so their number changes the items that are trained on."
                if "recipe.data.held_out" in differing
                else ""
            )
            raise RunDirectoryError(
                f"{self.path} holds another run: {shown}{more}.{why} Resume with the recipe, model "
                "and data it began with, or choose another --out."
            )

    def check_weights(self) -> None:
        """Check that the result can be read; if not, the checkpoints are still there."""
        defect = weights_defect(self.path)
        if defect is not None:
            raise RunDirectoryError(
                f"{self.path}: the saved model is incomplete ({defect}), so the run has not "
                "finished. Run the same command again: it resumes from the last checkpoint."
            )

    def append(self, line: Mapping[str, float | str]) -> None:
        """Append a line to the log."""
        with (self.path / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def trim_log(self, step: int) -> None:
        """Forget log lines after `step`: they belong to a part of a run that is run again."""
        if (self.path / LOG).exists():
            kept = [json.dumps(line) for line in self._log_lines() if line["step"] <= step]
            with whole_file(self.path / LOG) as file:
                file.write("".join(f"{line}\n" for line in kept).encode())

    def held_out(self) -> dict[int, Mapping[str, float]]:
        """Return the held-out figures in the log, by step."""
        by_step: dict[int, Mapping[str, float]] = {}
        for logged in self._log_lines():
            figures = {key: value for key, value in logged.items() if key.startswith("held_out/")}
            if figures:
                by_step[int(logged["step"])] = figures
        return by_step

    def settled(self) -> dict[str, float]:
        """Return the values settled before training, such as a `temperature`: part of every step."""
        choices: dict[str, float] = {}
        for logged in self._log_lines():
            choices |= {
                key.removeprefix(SETTLED): value
                for key, value in logged.items()
                if key.startswith(SETTLED)
            }
        return choices

    def _log_lines(self) -> Iterator[dict[str, Any]]:
        path = self.path / LOG
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        for line in text.splitlines(keepends=True):
            try:
                logged = json.loads(line) if line.endswith("\n") else None
            except (ValueError, RecursionError):
                continue
            if isinstance(logged, dict) and isinstance(logged.get("step"), int):
                yield logged

    def _defects(self) -> dict[int, str | None]:
        names = [path.name.removeprefix("checkpoint-") for path in self.path.glob("checkpoint-*/")]
        steps = sorted((int(name) for name in names if DIGITS.fullmatch(name)), reverse=True)
        return {step: self.checkpoint_defect(self.checkpoint(step), step) for step in steps}

    def _resumable(self, defects: dict[int, str | None]) -> int | None:
        """Return the newest step without a defect; what its checksums find joins `defects`."""
        for step in (step for step, defect in defects.items() if defect is None):
            name = changed_file(self.checkpoint(step))
            if name is None:
                return step
            defects[step] = f"{name} has changed since it was written"
        return None

    def _finished(self) -> tuple[int | None, list[str]]:
        """Return the steps of a finished run, if its weights can be read, and what to say if not."""
        steps = read_object(self.path / RECORD).get("finished")
        if not isinstance(steps, int):
            return None, []
        defect = weights_defect(self.path)
        if defect is None:
            return steps, []
        return None, [
            f"{self.path} was finished, but its weights cannot be read ({defect}); they are "
            "trained again from the last checkpoint."
        ]

    def _discard(self, step: int) -> None:
        """Take a checkpoint away; where that is cut short, no part of it has its name."""
        if self.checkpoint(step).exists():
            gone = self.aside / f"removed-{step}"
            shutil.rmtree(gone, ignore_errors=True)
            self.aside.mkdir(exist_ok=True)
            self.checkpoint(step).rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def _clear(self) -> None:
        shutil.rmtree(self.aside, ignore_errors=True)
