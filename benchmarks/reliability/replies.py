"""The label reader on replies of which it is known what a careful human reads: share read, share wrong.

    python benchmarks/reliability/replies.py

The sets are `tests/model/parsing/*_replies.jsonl`, one reply per line: `kind`, `text`, `reads` (a label, "tie"
or null), `labels` where they are not A and B, `texts` for what the labels stood for, `quoted` for the
item's texts, `scale` where the labels are levels, `cut` for a reply that hit its cap on tokens, `clear`
where the verdict is stated so that it has to be read. Where the recorded judges lie in ../shared/data
beside the checkout, their replies are read too, and MT-Bench replies whose mark is taken out and whose
opposite verdict is put in six other forms: the form has to win over the prose, or nothing is read.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from evidence_table import Table, add_write
from unswayed.model.parsing.labels import read_label
from unswayed.model.parsing.places import DECLARED_TIE
from unswayed.model.parsing.symbols import symbols_of

FOLDER: Final = Path(__file__).parents[2] / "tests" / "model" / "parsing"
SETS: Final = {
    "labelled": FOLDER / "labelled_replies.jsonl",
    "fresh": FOLDER / "fresh_replies.jsonl",
    "plain, by language": FOLDER / "plain_replies.jsonl",
    "misleading": FOLDER / "misleading_replies.jsonl",
    "strong place against weak": FOLDER / "strong_replies.jsonl",
    "blind": FOLDER / "blind_replies.jsonl",
    "untouched": FOLDER / "untouched_replies.jsonl",
}
SET: Final = SETS["labelled"]
OPEN: Final = FOLDER / "open_replies.jsonl"
"""Replies that are known to be read wrongly; one that is not any more is taken out."""
DATA: Final = Path(__file__).parents[3] / "shared" / "data"
OPPOSITE_FORMS: Final = {
    "tag": "<answer>{} - more detailed</answer>",
    "bare tag": "<answer>{}</answer>",
    "box": "\\boxed{{{}. more detailed}}",
    "JSON": '{{"verdict": "{}"}}',
    "German line": "Endgültiges Urteil: {}",
    "Chinese line": "最终答案：{}",
}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A reply and what a careful human reads in it."""

    kind: str
    text: str
    reads: str | None
    labels: tuple[str, ...] = ("A", "B")
    texts: tuple[str, ...] = ()
    quoted: tuple[str, ...] = ()
    scale: bool = False
    cut: bool = False
    clear: bool = False

    def reading(self) -> str | None:
        """Return the label that the parser reads."""
        code = read_label(
            self.text,
            symbols_of(self.labels),
            quoted=self.quoted,
            texts=self.texts,
            scale=self.scale,
            truncated=self.cut,
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
    unread: list[Reply] = field(default_factory=list)
    wrong: list[Reply] = field(default_factory=list)

    def add(self, reply: Reply, reading: str | None) -> None:
        """Count one reply, read so."""
        self.n += 1
        self.read += reading is not None
        self.lost += reading is None and reply.reads is not None
        self.clear += reply.clear
        if reading is None and reply.clear:
            self.unread.append(reply)
        if reading is not None and reading != reply.reads:
            self.wrong.append(reply)

    def cells(self) -> tuple[object, ...]:
        """The cells of its row."""
        clear = f"{len(self.unread)} of {self.clear}"
        return self.n, self.read, self.lost, clear, len(self.wrong)


def labelled_replies(path: Path = SET) -> list[Reply]:
    """The replies of a set."""
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        for name in ("labels", "texts", "quoted"):
            if name in row:
                row[name] = tuple(row[name])
    return [Reply(**row) for row in rows]


def tally(replies: Iterable[Reply]) -> dict[str, Tally]:
    """The counts by kind, and of all."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for reply in replies:
        reading = reply.reading()
        tallies[reply.kind].add(reply, reading)
        tallies["all"].add(reply, reading)
    return {**{kind: tallies[kind] for kind in tallies if kind != "all"}, "all": tallies["all"]}


def _rows(name: str) -> list[Any]:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        return json.load(file) if ".jsonl" not in name else [json.loads(line) for line in file]


def recorded_replies() -> Iterator[Reply]:
    """Replies of real judges with the verdict that their authors read, where they read one."""
    for row in mt_bench():
        mark = re.search(r"\[\[([ABC])\]\]", row["raw"])
        verdict = None if mark is None else {"C": "tie"}.get(mark[1], mark[1])
        yield Reply(kind="MT-Bench", text=row["raw"], reads=verdict)
    for path in sorted((DATA / "llmbar").glob("*_*_*.json.gz")):
        for row in _rows(f"llmbar/{path.name}"):
            for swapped in (False, True):
                result = row["results"][-1][f"swap = {swapped}"]
                winner, text = result["winner"], result["completion"][0]
                reads = None if winner is None else "ab"[(int(winner) - 1) ^ swapped]
                yield Reply(kind="LLMBar", text=text, reads=reads, labels=("a", "b"))
    arena = "judgebench/outputs_resp=claude-3-5-sonnet-20240620_judge=arena_hard_claude-3-haiku-20240307"
    for row in _rows(f"{arena}.jsonl.gz"):
        for judgment in row["judgments"]:
            verdict = {"A>B": "A", "B>A": "B", "A=B": "tie"}.get(judgment["decision"])
            yield Reply(kind="JudgeBench", text=judgment["judgment"]["response"], reads=verdict)
    for name, labels in (("chatbot_arena_filter_2perm", "AB"), ("mmlu_filter_5perm", "ABCD")):
        for row in _rows(f"pagrpo_train/{name}_think_dev.jsonl.gz"):
            extra = row["extra_info"]
            verdict = extra["model_answer"] if extra["model_answer"] in tuple(labels) else None
            kind = f"PA-GRPO {name.partition('_')[0]}"
            yield Reply(
                kind=kind, text=extra["model_response"], reads=verdict, labels=tuple(labels)
            )


def mt_bench() -> list[Any]:
    """The recorded MT-Bench replies."""
    return _rows("mtbench/position_bias_gpt-3.5-turbo-1106_4800.jsonl.gz")


def opposite_replies(form: str) -> Iterator[Reply]:
    """MT-Bench replies that end in a mark for A or B: its opposite in another form instead."""
    for row in mt_bench():
        text, mark, rest = row["raw"].rpartition("[[")
        if mark and rest in {"A]]", "B]]"} and "[[" not in text:
            other = "BA"["AB".index(rest[0])]
            text = f"{text.rstrip()}\n\n{OPPOSITE_FORMS[form].format(other)}"
            yield Reply(kind=form, text=text, reads=other)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_write(parser, "reliability")
    given = parser.parse_args(arguments)
    tallies: dict[str, Tally] = {}
    for name, path in SETS.items():
        tallies[f"**{name}**"] = tally(labelled_replies(path)).pop("all")
    for name in ("plain, by language", "blind", "untouched"):
        for kind, counts in tally(labelled_replies(SETS[name])).items():
            if kind != "all":
                tallies[f"{name.partition(',')[0]}: {kind}"] = counts
    tallies["known to be read wrongly"] = tally(labelled_replies(OPEN))["all"]
    table = Table(
        ("set", "replies", "read", "unparsed, verdict stated", "clear, unparsed", "wrong")
    )
    for name, counts in tallies.items():
        table.add(name, *counts.cells())
    if DATA.is_dir():
        recorded = tally(reply for reply in recorded_replies() if reply.reads is not None)
        for kind, counts in recorded.items():
            table.add(f"recorded: {kind}", *counts.cells())
        for form in OPPOSITE_FORMS:
            table.add(f"opposite verdict: {form}", *tally(opposite_replies(form))["all"].cells())
    print()
    wrong = Table(("reply that is read wrongly", "labels", "read as"))
    for reply in tallies["known to be read wrongly"].wrong:
        text = " / ".join(filter(None, reply.text.splitlines()))
        wrong.add(f"`{text}`", ", ".join(reply.labels), reply.reading())
    if given.write:
        table.keep("reliability", "replies")
        wrong.keep("reliability", "wrong-readings")
    for name, counts in tallies.items():
        for reply in counts.wrong if name.startswith("**") else ():
            print(f"wrong: {reply.text!r} is {reply.reads}, read as {reply.reading()}")


if __name__ == "__main__":
    main()
