"""The listwise reader on hand-written replies, each with what a careful human reads.

    python benchmarks/reliability/listwise_replies.py

The set is `tests/model/parsing/listwise_replies.jsonl`, one reply per line: `kind`, `text`, `scores` by label,
`ranking` as labels or null, `flags` by name where any is said, `labels` where they are not A and B,
`quoted` for the item's texts, `cut` for a reply that hit its cap on tokens.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from evidence_table import Table, add_write
from unswayed.model.parsing.listwise import ListwiseReading, read_listwise
from unswayed.model.parsing.listwise_objects import FLAGS

SET: Final = Path(__file__).parents[2] / "tests" / "model" / "parsing" / "listwise_replies.jsonl"


@dataclass(frozen=True, kw_only=True)
class ListwiseReply:
    """A reply and what a careful human reads in it."""

    kind: str
    text: str
    scores: list[float | None]
    ranking: list[str] | None
    flags: dict[str, list[bool | None]] = field(default_factory=dict)
    labels: tuple[str, ...] = ("A", "B")
    quoted: tuple[str, ...] = ()
    cut: bool = False

    def right(self) -> ListwiseReading:
        """The reading that is right."""
        missing = (None,) * len(self.labels)
        return ListwiseReading(
            tuple(self.scores),
            {flag: tuple(self.flags.get(flag, missing)) for flag in FLAGS},
            None if self.ranking is None else tuple(map(self.labels.index, self.ranking)),
        )

    def reading(self) -> ListwiseReading:
        """Verdict that the reader reads."""
        return read_listwise(self.text, self.labels, quoted=self.quoted)

    def is_right(self) -> bool:
        """Return True if the reader reads what is right."""
        right, reading = self.right(), self.reading()
        return (right.scores, right.flags, right.ranking) == (
            reading.scores,
            reading.flags,
            reading.ranking,
        )


def listwise_replies() -> list[ListwiseReply]:
    with SET.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        for name in ("labels", "quoted"):
            if name in row:
                row[name] = tuple(row[name])
    return [ListwiseReply(**row) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_write(parser, "reliability")
    given = parser.parse_args()
    replies = listwise_replies()
    counts = Counter(reply.kind for reply in replies)
    right = Counter(reply.kind for reply in replies if reply.is_right())
    table = Table(("kind", "replies", "read as a human does"))
    for kind, n in counts.items():
        table.add(kind, n, right[kind])
    if given.write:
        table.keep("reliability", "listwise-replies")
    for reply in replies:
        if not reply.is_right():
            print(f"wrong: {reply.text!r} is {reply.right()}, read as {reply.reading()}")


if __name__ == "__main__":
    main()
