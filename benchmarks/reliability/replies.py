"""The parser on hand-written replies, each with what a careful human reads: share read, share wrong.

    python benchmarks/reliability/replies.py

The set is `tests/parsing/labelled_replies.jsonl`, one reply per line: `kind`, `text`, `reads` (a
label, "tie" or null), `labels` where they are not A and B, `quoted` for the item's texts, `cut` for
a reply that hit its cap on tokens, `clear` where the verdict is stated so that it has to be read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from unswayed.parsing.labels import DECLARED_TIE, read_label
from unswayed.parsing.symbols import symbols_of

SET: Final = Path(__file__).parents[2] / "tests" / "parsing" / "labelled_replies.jsonl"
OPEN: Final = SET.with_name("open_replies.jsonl")
"""Replies that are known to be read wrongly; one that is not any more moves to the set."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A reply and what a careful human reads in it."""

    kind: str
    text: str
    reads: str | None
    labels: tuple[str, ...] = ("A", "B")
    quoted: tuple[str, ...] = ()
    cut: bool = False
    clear: bool = False

    def reading(self) -> str | None:
        """What the parser reads."""
        code = read_label(
            self.text, symbols_of(self.labels), quoted=self.quoted, truncated=self.cut
        )
        if code >= 0:
            return self.labels[code]
        return "tie" if code == DECLARED_TIE else None


@dataclass
class Tally:
    """Replies of one kind: how many, read, not read though they state a verdict, read wrongly."""

    n: int = 0
    read: int = 0
    lost: int = 0
    clear: int = 0
    clear_read: int = 0
    wrong: list[Reply] = field(default_factory=list)

    def add(self, reply: Reply) -> None:
        """Count one reply."""
        reading = reply.reading()
        self.n += 1
        self.read += reading is not None
        self.lost += reading is None and reply.reads is not None
        self.clear += reply.clear
        self.clear_read += reply.clear and reading is not None
        if reading is not None and reading != reply.reads:
            self.wrong.append(reply)


def labelled_replies(path: Path = SET) -> list[Reply]:
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        for name in ("labels", "quoted"):
            if name in row:
                row[name] = tuple(row[name])
    return [Reply(**row) for row in rows]


def tally(replies: Iterable[Reply]) -> dict[str, Tally]:
    """The counts by kind, and of all."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for reply in replies:
        tallies[reply.kind].add(reply)
        tallies["all"].add(reply)
    return {**{kind: tallies[kind] for kind in tallies if kind != "all"}, "all": tallies["all"]}


def main() -> None:
    tallies = tally(labelled_replies())
    tallies |= {"open, not in the sum": tally(labelled_replies(OPEN))["all"]}
    print("| kind | replies | read | unparsed | of these with a verdict | clear, read | wrong |")
    print("|---|---|---|---|---|---|---|")
    for kind, counts in tallies.items():
        print(
            f"| {kind} | {counts.n} | {counts.read} | {counts.n - counts.read} | {counts.lost} | "
            f"{counts.clear_read} of {counts.clear} | {len(counts.wrong)} |"
        )
    for reply in tallies["all"].wrong:
        print(f"wrong: {reply.text!r} is {reply.reads}, read as {reply.reading()}")


if __name__ == "__main__":
    main()
