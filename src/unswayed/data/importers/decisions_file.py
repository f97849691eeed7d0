"""Own decisions file: encode its lines, report its errors, write it whole, make items from it."""

from __future__ import annotations

import gzip
import shlex
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import attrgetter
from pathlib import Path
from typing import IO, Final, cast

import msgspec
import numpy as np

from unswayed.base.errors import ItemError, StoreError, field_and_reason
from unswayed.base.files import whole_file
from unswayed.model.decisions import RANK, SCORE, Decision, Recording, check_decision, record
from unswayed.model.decisions.recorder import SHARED
from unswayed.model.items import TOO_DEEP, BadFieldError, BadLine, Item, Task, is_packed, suffix

decode_quickly: Final = msgspec.json.Decoder(Decision).decode
"""The decision of a line as it stands there, its types checked only."""
_ENCODER = msgspec.json.Encoder()


question_key: Final[Callable[[Decision], Hashable]] = attrgetter(
    "item_id", *(name for name in SHARED if name != "label_set")
)
"""What makes two decisions answers to the same question by the same model."""


def repeated(item_id: str, where: str) -> BadFieldError:
    """Describe a decision whose question was answered by an earlier one, such as "on line 3"."""
    return BadFieldError("item_id", f"{item_id}: the same question was answered {where}")


def refusal(problem: BadLine, *, is_first: bool, in_memory: bool = False) -> ItemError:
    """Return the error of a bad line, and the way out; `is_first` if no line before it is a decision."""
    if in_memory:
        return ItemError(f'{problem}. Fix it, or skip invalid decisions with on_bad_item="skip".')
    foreign = (
        " Outputs of another tool become decisions with: unswayed import auto "
        f"{shlex.quote(problem.file)} --out decisions.jsonl --items items.jsonl"
    )
    return ItemError(
        f"{problem}. Fix the line, or skip invalid lines with --on-bad-item skip."
        f"{foreign if is_first else ''}"
    )


def no_decisions(path: str | Path, bad: Sequence[BadLine], *, in_memory: bool = False) -> ItemError:
    """Return the error of a source without a good line."""
    lines, empty = ("decisions", "none given") if in_memory else ("lines", "the file has no lines")
    why = f"{len(bad)} bad {lines} left out, the first: {bad[0]}" if bad else empty
    return ItemError(f"{path}: no decisions ({why}). Give a decisions.jsonl of an audit or import.")


def decode_decision(line: bytes) -> Decision:
    """Return the decision of a line, checked, under the id that its criterion has in memory."""
    try:
        decision = decode_quickly(line)
        check_decision(decision)
    except msgspec.ValidationError as error:
        field, reason = field_and_reason(error)
        raise BadFieldError(field or "decision", reason) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadFieldError("JSON", f"not valid JSON ({error})") from None
    except RecursionError:
        raise BadFieldError("JSON", TOO_DEEP) from None
    except ItemError as error:
        raise BadFieldError("decision", str(error)) from None
    if decision.criterion is None:
        return decision
    return msgspec.structs.replace(decision, item_id=decision.item_id + suffix(decision.criterion))


def as_filed(decision: Decision) -> Decision:
    """Return the decision as files have it: under the id of the item, whatever its criterion."""
    if decision.criterion is None:
        return decision
    item_id = decision.item_id.removesuffix(suffix(decision.criterion))
    return msgspec.structs.replace(decision, item_id=item_id)


def write_decisions(path: str | Path, decisions: Iterable[Decision]) -> int:
    """Write a decisions file, whole or not at all; `.gz` is compressed.

    Returns:
        How many were written.
    """
    target = Path(path)
    count = 0
    try:
        with whole_file(target) as whole, _packed(whole, target) as file:
            for count, decision in enumerate(decisions, start=1):  # noqa: B007
                file.write(line_of(decision) + b"\n")
    except OSError as error:
        raise StoreError.cannot(f"write {path}", error) from None
    return count


def _packed(file: IO[bytes], target: Path) -> AbstractContextManager[IO[bytes]]:
    if is_packed(target):
        return cast("IO[bytes]", gzip.GzipFile(target.name, "wb", fileobj=file))
    return nullcontext(file)


class Listed:
    """Decisions in memory as the originals of a `Recording`."""

    def __init__(self, decisions: Sequence[Decision]) -> None:
        self._decisions = decisions

    def read(self, places: Sequence[int]) -> Iterator[Decision]:
        """Yield the decisions at some places."""
        return map(self._decisions.__getitem__, places)

    def lines(self, places: Sequence[int]) -> list[bytes]:
        """Return the same as lines of a file, without the newline."""
        return list(map(line_of, self.read(places)))


def line_of(decision: Decision) -> bytes:
    """Return the line that a file has for a decision, without the newline."""
    return without_marks(_ENCODER.encode(as_filed(decision)))


def without_marks(line: bytes) -> bytes:
    """Remove what says nothing from a line. Inside a text their quotation marks are escaped."""
    line = line.replace(b',"reasked":false', b"").replace(b',"disagrees":false', b"")
    return line.replace(b',"unit":null', b"")


def items_from_decisions(decisions: Iterable[Decision] | Recording) -> tuple[Item, ...]:
    """Items without text, gold and group, for decisions that came without their items.

    Decisions with rankings, or scores of more than two, are listwise; levels are options then, since
    only their items know the values. Ties between candidates are then broken by a hash of their index.
    """
    recording = decisions if isinstance(decisions, Recording) else record(decisions)
    of_row = recording.sizes[recording.kind]
    names, first, of_item = np.unique(recording.item, return_index=True, return_inverse=True)
    other = np.flatnonzero(of_row != of_row[first][of_item])
    if len(other):
        row, before = other[0], of_row[first][of_item][other[0]]
        raise ItemError(
            f"{recording.item_ids[recording.item[row]]}: one decision has {before} candidates and "
            f"another has {of_row[row]}. Give decisions on different items different ids."
        )
    last = np.zeros(len(names), dtype=np.intp)
    last[of_item] = np.arange(len(recording))
    rated = recording.ratings
    listwise = RANK in rated and not rated[RANK].is_empty
    if SCORE in rated:  # of pairs they may be a reward model's
        listwise = listwise or bool((of_row[rated[SCORE].start >= 0] > 2).any())
    pairwise = bool((of_row == 2).all()) and not listwise
    task = Task.LISTWISE if listwise else Task.PAIRWISE if pairwise else Task.MCQ
    criteria = [recording.kinds[code].criterion for code in recording.kind[last].tolist()]
    return tuple(
        Item(
            id=recording.item_ids[name],
            prompt="",
            candidates=("",) * n,
            task=task,
            criterion=criterion,
            group=criterion,
            unit=recording.units.get(recording.item_ids[name]),
        )
        for name, n, criterion in zip(names.tolist(), of_row[first].tolist(), criteria, strict=True)
    )
