"""A decisions file read line by line: the oracle of the reader of columns."""

from collections.abc import Hashable
from pathlib import Path
from typing import Literal

from unswayed.data.importers.decisions_file import (
    decode_decision,
    no_decisions,
    question_key,
    refusal,
    repeated,
)
from unswayed.model.decisions import Decision
from unswayed.model.items import BadFieldError, BadLine, iter_lines


def read_plainly(
    path: str | Path, on_bad_item: Literal["stop", "skip"] = "stop"
) -> tuple[tuple[Decision, ...], tuple[BadLine, ...]]:
    """The decisions of a file and its bad lines."""
    kept: list[Decision] = []
    bad: list[BadLine] = []
    first: dict[Hashable, int] = {}
    for number, line in iter_lines(path):
        try:
            decision = decode_decision(line)
            before = first.setdefault(question_key(decision), number)
            if before != number:
                raise repeated(decision.item_id, f"on line {before}")
            kept.append(decision)
        except BadFieldError as error:
            problem = BadLine(str(path), number, error.field, error.reason)
            if on_bad_item == "stop":
                raise refusal(problem, is_first=not kept) from None
            bad.append(problem)
    if not kept:
        raise no_decisions(path, bad)
    return tuple(kept), tuple(bad)
