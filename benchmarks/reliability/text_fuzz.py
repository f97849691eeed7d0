"""The readers on fuzzed texts: no crash, only what may be read, laws that hold, bounded time.

    python benchmarks/reliability/text_fuzz.py [--reader labels|listwise] [--texts 1000000]
        [--seed 20261122]

Text k of a run comes from the generator seeded with (seed, k), so every text can be made again.
They are labelled replies with characters and pieces deleted, doubled, moved and spliced, random
Unicode, nested tags, brackets, JSON and fences, and long repeats. Laws, for every text t:

* swap: with symbols that occur in no word, exchanging them in t exchanges the reading;
* reasoning: a closed block of reasoning before t changes nothing;
* tag: reasoning that holds t, then `<answer>X</answer>`, reads as X;
* line: `<answer>X</answer>` on a line of its own behind t reads as X or not at all, and with a word that
  is no label in it as none, where t has no tag, mark, brace, fence or channel;
* cut: a cut-off t reads as none, or as the whole t, or the whole t contradicts itself (none).

Laws of listwise replies:

* value: scores are 0 to 100 or missing, a ranking has every label once or is missing;
* order: the labels in another order give the same reading in that order;
* reasoning: a closed block of reasoning before t changes nothing;
* think: reasoning that holds t, then a reply of the contract, reads as that reply or as less;
* quote: nothing is read of t where t is one of the item's texts.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from evidence_table import Table, add_write
from reliability.listwise_replies import listwise_replies
from reliability.replies import labelled_replies
from unswayed.model.parsing import parse_label
from unswayed.model.parsing.labels import read_label
from unswayed.model.parsing.listwise import ListwiseReading, read_listwise
from unswayed.model.parsing.places import DECLARED_TIE
from unswayed.model.parsing.symbols import symbols_of

LABEL_SETS: Final = (
    ("A", "B"),
    ("a", "b"),
    ("1", "2"),
    ("1", "2", "12"),
    ("m", "M"),
    ("Alice", "Bob"),
    ("(i)", "(ii)"),
    ("A", "B", "C", "D", "E"),
    ("甲", "乙"),
    ("I", "II"),
    ("Model X", "Model Y"),
    ("é", "ß"),
)
PIECES: Final = (
    "A", "B", " ", "\n", "\n\n", "<answer>", "</answer>", "<think>", "</think>", "[[", "]]", "[", "]",
    "answer", "Answer", " is ", " is not ", "better", "worse", "verdict", ":", "**", '"', "'", "`",
    "```\n", "```json\n", "~~", "~~~\n", "> ", "{", "}", '{"answer": "', '"}', "\\boxed{", "the ", "The ",
    "tie", "C", "\x00", "\ud800", "\uff21", "\uff22", "\u0410", "not ", "’s ", "(", ")", ".", ",", "or ",
    "I choose ", "maybe ", "if ", "◁think▷", "◁/think▷", "<|channel|>", "final", "<|message|>",
    "<analysis>", "</analysis>", "\u200f", "\u2067", "\u2069", "says: ", "# ", "- ", "1. ", "|", "=", ">", "<",
    "“", "”", "„", "‘", "’", "«", "»", "「", "」", "😀", "e\u0301", "\u202e", "\t", "\r\n", "\u2028",
)  # fmt: skip
JSON_PIECES: Final = (
    *PIECES, '"candidates": ', '"ranking": ', '"score": ', '"A": ', '"B": ', "73", '"73/100"', ", ", "},", "}}", "],", "[",
    '["B", "A"]', '"B > A"', "{'", "': ", "//", "/*", "*/", "\\", '\\"', "\\u0041", "\\ud800", "true", "True", "null", "NaN",
    "1e999", "-", "0.5", '"label": "A", ', '[{"', '{"candidates": {"A": {"score": 1}, "B": {"score": 2}}}', "Wait, revised: ",
    '"rationale": "', '"major_error": true', "Candidate A ends with: ", "\ue000", "\ue0000\ue001", "\ufeff", "<0-100>", "…",
)  # fmt: skip
_PLACES: Final = re.compile(r"[<>\[\]{}`~\\◁▷＜＞［］｛｝]|channel")
SWAP: Final = str.maketrans("§¶", "¶§")
KINDS: Final = ("mutated", "spliced", "pieces", "nested", "unicode", "repeats")


def text_of(
    kind: str, draw: random.Random, replies: Sequence[str], pieces: Sequence[str] = PIECES
) -> str:
    """One text of a kind."""
    if kind == "mutated":
        return mutated(draw.choice(replies), draw, pieces)
    if kind == "spliced":
        parts = [draw.choice(replies) for _ in range(draw.randint(2, 4))]
        return "".join(part[: draw.randint(0, len(part))] + draw.choice(pieces) for part in parts)
    if kind == "pieces":
        return "".join(draw.choices(pieces, k=draw.randint(0, 40)))
    if kind == "nested":
        inside = draw.choice(replies)
        for _ in range(draw.randint(1, 12)):
            before, after = draw.choice(NESTS)
            inside = before + inside + after
        return inside
    if kind == "unicode":
        return "".join(
            chr(
                draw.choice(
                    (draw.randrange(0x80), draw.randrange(0x3100), draw.randrange(0x110000))
                )
            )
            for _ in range(draw.randint(0, 80))
        )
    # Rarely long, very rarely longer than what the parser reads as a whole.
    size = draw.choices((60, 150, 400, 3_000, 25_000), weights=(40, 40, 19, 0.9, 0.1))[0]
    seed = "".join(draw.choices(pieces, k=draw.randint(1, 4))) or "A"
    return (seed * (size // len(seed) + 1))[:size] + draw.choice(replies)


NESTS: Final = (
    ("<answer>", "</answer>"),
    ("<think>", "</think>"),
    ("<think>", ""),
    ("<analysis>", "</analysis>"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>B"),
    ("[[", "]]"),
    ("[", "]"),
    ("(", ")"),
    ('{"answer": "', '"}'),
    ('{"answer": ', "}"),
    ("```\n", "\n```"),
    ("~~~\n", "\n~~~"),
    ("> ", "\n"),
    ('"', '"'),
    ("'", "'"),
    ("“", "”"),
    ("**", "**"),
    ("~~", "~~"),
    ("\\boxed{", "}"),
    ("\u2067", "\u2069"),
)


def mutated(text: str, draw: random.Random, pieces: Sequence[str] = PIECES) -> str:
    """A text with a few characters or pieces deleted, doubled, moved or put in."""
    for _ in range(draw.randint(1, 6)):
        start = draw.randint(0, len(text))
        end = min(len(text), start + draw.randint(0, 12))
        part = text[start:end]
        action = draw.randrange(4)
        if action == 0:
            text = text[:start] + text[end:]
        elif action == 1:
            text = text[:end] + part + text[end:]
        elif action == 2:
            rest = text[:start] + text[end:]
            place = draw.randint(0, len(rest))
            text = rest[:place] + part + rest[place:]
        else:
            text = text[:start] + draw.choice(pieces) + text[start:]
    return text


@dataclass
class Outcome:
    """Findings of a run of the fuzzer."""

    texts: Counter[str] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)
    slowest_s: dict[str, float] = field(default_factory=dict)
    total_s: float = 0.0
    faults: list[str] = field(default_factory=list)


def check(text: str, labels: tuple[str, ...], draw: random.Random) -> tuple[str | None, list[str]]:
    """The reading of a text, and the laws that it breaks."""
    broken = []
    reading = parse_label(text, labels)
    if reading not in {*labels, "tie", None}:
        broken.append(f"reading {reading!r}")
    marked = text.replace("A", "§").replace("B", "¶")
    first, second = (parse_label(t, ("§", "¶")) for t in (marked, marked.translate(SWAP)))
    if second != (first.translate(SWAP) if first in {"§", "¶"} else first):
        broken.append(f"swap: {first} and {second}")
    if "<|channel|>" not in text:
        after = parse_label(f"<think>A thought.</think>{text}", labels)
        if after != reading:
            broken.append(f"reasoning: {reading} and {after}")
    said = draw.choice(labels)
    if parse_label(f"<think>{text}</think>\n<answer>{said}</answer>", labels) != said:
        broken.append(f"tag: not {said}")
    if _PLACES.search(text) is None:
        if parse_label(f"{text}\n<answer>{said}</answer>", labels) not in {said, None}:
            broken.append(f"line: not {said}")
        if parse_label(f"{text}\n<answer>neither</answer>", labels) is not None:
            broken.append("line: a word")
    code = read_label(text, symbols_of(labels), truncated=True)
    cut = labels[code] if code >= 0 else "tie" if code == DECLARED_TIE else None
    if cut is not None and reading not in {cut, None}:
        broken.append(f"cut: {cut}, whole: {reading}")
    return reading, broken


OWN: Final = '{"candidates": {"A": {"score": 61}, "B": {"score": 62}}, "ranking": ["B", "A"]}'


def what_is_read(reading: ListwiseReading) -> tuple[object, ...]:
    return reading.scores, reading.flags, reading.ranking


def check_listwise(
    text: str, labels: tuple[str, ...], draw: random.Random
) -> tuple[str | None, list[str]]:
    """Return the reading of the labels of a text, and the laws that it breaks."""
    broken = []
    reading = read_listwise(text, labels)
    if not all(score is None or 0 <= score <= 100 for score in reading.scores):
        broken.append(f"value: {reading.scores}")
    if sorted(reading.ranking or range(len(labels))) != list(range(len(labels))):
        broken.append(f"value: {reading.ranking}")
    order = draw.sample(range(len(labels)), len(labels))
    moved = read_listwise(text, [labels[k] for k in order])
    place = None if reading.ranking is None else tuple(map(order.index, reading.ranking))
    if (moved.scores, moved.ranking) != (tuple(reading.scores[k] for k in order), place):
        broken.append(f"order: {reading} and {moved}")
    if "<|channel|>" not in text:
        after = read_listwise(f"<think>A thought.</think>{text}", labels)
        if what_is_read(after) != what_is_read(reading):
            broken.append(f"reasoning: {reading} and {after}")
    said = read_listwise(f"<think>{text}</think>\n{OWN}", "AB")
    if said.scores not in OWN_SCORES or said.ranking not in {None, (1, 0)}:
        broken.append(f"think: {said}")
    copy = read_listwise(text, labels, quoted=[text])
    if copy.ranking is not None or any(score is not None for score in copy.scores):
        broken.append(f"quote: {copy}")
    is_read = reading.ranking is not None or any(score is not None for score in reading.scores)
    return ("read" if is_read else None), broken


OWN_SCORES: Final = {(first, second) for first in (None, 61.0) for second in (None, 62.0)}


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Target of the fuzzer: its texts, the function that is timed, and the laws that are checked."""

    replies: Callable[[], list[str]]
    pieces: Sequence[str]
    read: Callable[[str, tuple[str, ...]], object]
    check: Callable[[str, tuple[str, ...], random.Random], tuple[str | None, list[str]]]


READERS: Final = {
    "labels": Reader(
        replies=lambda: [reply.text for reply in labelled_replies()],
        pieces=PIECES,
        read=lambda text, labels: parse_label(text, labels),
        check=check,
    ),
    "listwise": Reader(
        replies=lambda: [reply.text for reply in listwise_replies()],
        pieces=JSON_PIECES,
        read=read_listwise,
        check=check_listwise,
    ),
}


def fuzz(n: int, seed: int, reader: Reader = READERS["labels"]) -> Outcome:
    """Fuzz n texts."""
    outcome = Outcome()
    replies = reader.replies()
    for labels in (*LABEL_SETS, ("§", "¶")):
        parse_label("Hard to say.\nIt is late.", labels)  # patterns are made once
    for k in range(n):
        draw = random.Random(f"{seed}/{k}")
        kind = KINDS[k % len(KINDS)]
        labels = LABEL_SETS[0] if draw.random() < 0.5 else draw.choice(LABEL_SETS)
        text = text_of(kind, draw, replies, reader.pieces)
        start = time.process_time()
        try:
            reader.read(text, labels)
            spent = time.process_time() - start
            reading, broken = reader.check(text, labels, draw)
        except Exception as error:  # a crash is what is looked for
            outcome.faults.append(f"{seed}/{k} ({kind}, {labels}): {error!r}: {text[:200]!r}")
            continue
        outcome.texts[kind] += 1
        outcome.read[kind] += reading is not None
        outcome.total_s += spent
        outcome.slowest_s[kind] = max(spent, outcome.slowest_s.get(kind, 0.0))
        outcome.faults += [f"{seed}/{k} ({kind}, {labels}) {law}: {text[:300]!r}" for law in broken]
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reader", choices=READERS, default="labels")
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=20261122)
    add_write(parser, "reliability")
    arguments = parser.parse_args()
    outcome = fuzz(arguments.texts, arguments.seed, READERS[arguments.reader])
    print(f"seed {arguments.seed}, {arguments.texts} texts, {len(outcome.faults)} faults")
    table = Table(("texts", "number of texts", "read", "slowest, ms of CPU"))
    for kind, n in outcome.texts.items():
        table.add(kind, n, outcome.read[kind], f"{outcome.slowest_s[kind] * 1e3:.1f}")
    if arguments.write:
        table.keep("reliability", f"texts-{arguments.reader}")
    mean = outcome.total_s / max(1, outcome.texts.total())
    print(f"mean time of one reading: {mean * 1e6:.0f} µs of CPU")
    for fault in outcome.faults[:50]:
        print(fault)
    sys.exit(1 if outcome.faults else 0)


if __name__ == "__main__":
    main()
