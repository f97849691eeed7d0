"""A run's folder: its record, its checkpoints and its log, read and written in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unswayed.errors import RunDirectoryError
from unswayed.training.provenance import Record, differing_fields

__all__ = ["RunFolder"]

RECORD: Final = "training.json"
LOG: Final = "train.jsonl"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where a run leaves its result, log and checkpoints.

    Attributes:
        path: May not exist before `prepare`.
    """

    path: Path

    def prepare(self, record: Record) -> int | None:
        """Create the folder, or check that it holds this run.

        Returns:
            The step of the checkpoint to go on from; None for a fresh start.

        Raises:
            RunDirectoryError: If it holds another run, or cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            step = self.last_checkpoint()
            if step is not None or (self.path / RECORD).exists():
                self.check_same_run(self.read_record(step), record)
            self.write_record(record)
        except OSError as error:
            raise RunDirectoryError(
                f"cannot write to {self.path}: {error.strerror or error}. Choose another --out."
            ) from None
        return step

    def finished_steps(self, record: Record) -> int | None:
        """The steps that this very run had when it finished; None if it has not.

        Raises:
            RunDirectoryError: If another run has finished here.
        """
        if not (self.path / RECORD).is_file():
            return None
        old = self.read_record()
        steps: int | None = old.get("finished")
        if steps is not None:
            self.check_same_run(old, record)
        return steps

    def checkpoint(self, step: int) -> Path:
        """Where transformers puts the checkpoint of a step."""
        return self.path / f"checkpoint-{step}"

    def last_checkpoint(self) -> int | None:
        """The step of the newest checkpoint; None if there is none."""
        names = [path.name.removeprefix("checkpoint-") for path in self.path.glob("checkpoint-*/")]
        return max((int(name) for name in names if name.isdigit()), default=None)

    def read_record(self, step: int | None = None) -> Record:
        """The record of the run, or of one of its checkpoints.

        Raises:
            RunDirectoryError: If there is none, or it cannot be read.
        """
        folder = self.path if step is None else self.checkpoint(step)
        try:
            record: Record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunDirectoryError(
                f"{folder}: no readable {RECORD} beside the checkpoint ({error}); it cannot be told "
                "whether it belongs to this run. Choose another --out."
            ) from None
        return record

    def write_record(self, record: Record, step: int | None = None) -> None:
        """Write the record of the run, or put it beside one of its checkpoints."""
        folder = self.path if step is None else self.checkpoint(step)
        text = json.dumps(record, indent=1, ensure_ascii=False)
        (folder / RECORD).write_text(text + "\n", encoding="utf-8")

    def check_same_run(self, old: Record, new: Record) -> None:
        """Check that what lies here belongs to the run that is to be resumed.

        Raises:
            RunDirectoryError: Naming every field that differs, with both values.
        """
        differing = differing_fields(old, new)
        if differing:
            shown = "; ".join(
                f"{key} was {was!r} and is {now!r}"
                for key, (was, now) in list(differing.items())[:6]
            )
            more = f" and {len(differing) - 6} more" if len(differing) > 6 else ""
            raise RunDirectoryError(
                f"{self.path} holds a checkpoint of another run: {shown}{more}. Resume with the "
                "recipe, model and data it began with, or choose another --out."
            )

    def append(self, line: Mapping[str, float | str]) -> None:
        """Append a line to the log."""
        with (self.path / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def trim_log(self, step: int) -> None:
        """Forget log lines after `step`: they belong to a part of a run that is run again."""
        lines = self._log_lines()
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
        if lines:
            (self.path / LOG).write_text("".join(kept), encoding="utf-8")

    def held_out(self) -> dict[int, Mapping[str, float]]:
        """The held-out figures in the log, by step."""
        by_step: dict[int, Mapping[str, float]] = {}
        for logged in map(json.loads, self._log_lines()):
            figures = {key: value for key, value in logged.items() if key.startswith("held_out/")}
            if figures:
                by_step[int(logged["step"])] = figures
        return by_step

    def _log_lines(self) -> list[str]:
        path = self.path / LOG
        return path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
