"""Benchmark: source of its rows, their required fields, and their meaning.

A benchmark is one value. Fetching, reading, checking the schema and choosing a part are `copies` and
`loading`; a benchmark only says how rows become items.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from unswayed.base.digests import digest
from unswayed.data.importers.protocol import Record
from unswayed.model.items import Item

T = TypeVar("T")

ORDER_SEED: Final = 0
"""Seed of the candidates' order where the published one gives gold away; recorded with every run."""

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Place:
    """Place of published rows.

    Attributes:
        part: Which of the benchmark's parts, a key of `files`.
        file: Name of the file.
        number: The first row's number over all files that are read, from 0.
    """

    part: str
    file: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark(Generic[T]):
    """Published rows, and the items that they are.

    Attributes:
        title: What it asks, in a sentence.
        hub: Who publishes it: a data set of the Hugging Face hub, or files of a GitHub repository.
        repository: `owner/name` there.
        revision: The commit that is read; `main`, which may move, where none is pinned.
        files: Part to the patterns of its file, the hub's own path first; the others are accepted in
            a local copy. On GitHub the first is a path without wildcards.
        default: The parts that are read unless one is asked for; empty for all.
        schema: The fields of a row that are needed; what has no default must be there.
        items: What rows mean: all rows with one `key`, in file order, and the first one's place.
            Raises BadFieldError naming the field and the reason.
        key: Which rows belong together; None: each stands alone.
        header: Columns of its CSV files, if these have no header.
        republished: A row of another published layout as one of this; None where there is one only.
        task: The items' task.
        rows: Rows of the default parts, as published.
        licence: As the source states it, "not stated" where it does not.
        paper: arXiv number.
        gated: Whether the hub asks for terms to be accepted.
        shuffles: Whether candidates are put into an order of our own, by `ORDER_SEED`.
        note: What a user must know: what not to publish, how gold came about.
    """

    title: str
    hub: Literal["huggingface", "github"]
    repository: str
    revision: str
    files: Mapping[str, tuple[str, ...]]
    schema: type[T]
    items: Callable[[Sequence[T], Place], Iterable[Item]]
    task: str
    rows: int
    licence: str
    paper: str
    default: tuple[str, ...] = ()
    key: Callable[[T], Hashable] | None = None
    header: tuple[str, ...] = ()
    republished: Callable[[Record], Record] | None = None
    gated: bool = False
    shuffles: bool = False
    note: str = ""

    @property
    def is_pinned(self) -> bool:
        """True if the revision is a commit."""
        return _COMMIT.fullmatch(self.revision) is not None

    @property
    def address(self) -> str:
        """Page on which readers find the benchmark and ask for access."""
        if self.hub == "github":
            return f"https://github.com/{self.repository}"
        return f"https://huggingface.co/datasets/{self.repository}"


def shuffled(item_id: str, n: int) -> tuple[int, ...]:
    """Return an order of n candidates that says nothing of gold, the same on every machine.

    Published first to last they are sorted by a hash of the seed, the item and their number.

    Args:
        item_id: Of the item.
        n: Number of candidates.

    Returns:
        The published number of each candidate of the item.
    """
    return tuple(sorted(range(n), key=lambda k: digest(str(ORDER_SEED), item_id, str(k))))
