"""The built-in models: what each was trained on, its words, and where its weights lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unswayed.model.items import Task
from unswayed.tiny.items import LABELS, RUBRIC_LABELS, RUBRIC_VOCABULARY, VOCABULARY


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One built-in model; all come from one recipe (`train`)."""

    tasks: tuple[Task, ...]  # what it was trained on, batches of each in turn
    vocabulary: tuple[str, ...]  # every token; its place is its id
    labels: tuple[str, ...]  # those that it answers with
    # a plain Hugging Face folder, with the one prompt template that the model understands
    folder: Path
    # the folder whose weights training begins from; None for random ones
    begins_from: Path | None = None


_JUDGE: Final = Format(
    tasks=(Task.PAIRWISE, Task.MCQ),
    vocabulary=VOCABULARY,
    labels=LABELS,
    folder=Path(__file__).parent / "weights",
)

FORMATS: Final[Mapping[str, Format]] = {
    "judge": _JUDGE,
    "rubric": Format(
        tasks=(Task.RUBRIC,),
        vocabulary=RUBRIC_VOCABULARY,
        labels=RUBRIC_LABELS,
        folder=Path(__file__).parent / "rubric_weights",
        # From random weights 700 steps teach it the positions and nothing of the words.
        begins_from=_JUDGE.folder,
    ),
}
"""Formats, by the part of the model's name after `tiny/`."""
