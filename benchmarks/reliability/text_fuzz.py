"""The parser on fuzzed texts: no crash, only labels, "tie" or None, laws that hold, bounded time.

    python benchmarks/reliability/text_fuzz.py [--texts 1000000] [--seed 20261122]

Text k of a run comes from the generator seeded with (seed, k), so every text can be made again.
They are labelled replies with characters and pieces deleted, doubled, moved and spliced, random
Unicode, nested tags, brackets, JSON and fences, and long repeats. Laws, for every text t:

* swap: with symbols that occur in no word, exchanging them in t exchanges the reading;
* reasoning: a closed block of reasoning before t changes nothing;
* tag: reasoning that holds t, then `<answer>X</answer>`, reads as X;
* cut: a cut-off t reads as none, or as the whole t, or the whole t contradicts itself (none).
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from reliability.replies import labelled_replies
from unswayed.parsing import parse_label
from unswayed.parsing.labels import DECLARED_TIE, read_label
from unswayed.parsing.symbols import symbols_of

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
SWAP: Final = str.maketrans("§¶", "¶§")
KINDS: Final = ("mutated", "spliced", "pieces", "nested", "unicode", "repeats")


def text_of(kind: str, draw: random.Random, replies: Sequence[str]) -> str:
    """One text of a kind."""
    if kind == "mutated":
        return mutated(draw.choice(replies), draw)
    if kind == "spliced":
        parts = [draw.choice(replies) for _ in range(draw.randint(2, 4))]
        return "".join(part[: draw.randint(0, len(part))] + draw.choice(PIECES) for part in parts)
    if kind == "pieces":
        return "".join(draw.choices(PIECES, k=draw.randint(0, 40)))
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
    seed = "".join(draw.choices(PIECES, k=draw.randint(1, 4))) or "A"
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


def mutated(text: str, draw: random.Random) -> str:
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
            text = text[:start] + draw.choice(PIECES) + text[start:]
    return text


@dataclass
class Outcome:
    """What a run of the fuzzer saw."""

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
    code = read_label(text, symbols_of(labels), truncated=True)
    cut = labels[code] if code >= 0 else "tie" if code == DECLARED_TIE else None
    if cut is not None and reading not in {cut, None}:
        broken.append(f"cut: {cut}, whole: {reading}")
    return reading, broken


def fuzz(n: int, seed: int) -> Outcome:
    """Fuzz n texts."""
    outcome = Outcome()
    replies = [reply.text for reply in labelled_replies()]
    for labels in (*LABEL_SETS, ("§", "¶")):
        parse_label("Hard to say.\nIt is late.", labels)  # patterns are made once
    for k in range(n):
        draw = random.Random(f"{seed}/{k}")
        kind = KINDS[k % len(KINDS)]
        labels = LABEL_SETS[0] if draw.random() < 0.5 else draw.choice(LABEL_SETS)
        text = text_of(kind, draw, replies)
        start = time.process_time()
        try:
            parse_label(text, labels)
            spent = time.process_time() - start
            reading, broken = check(text, labels, draw)
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
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=20261122)
    arguments = parser.parse_args()
    outcome = fuzz(arguments.texts, arguments.seed)
    print(f"seed {arguments.seed}, {arguments.texts} texts, {len(outcome.faults)} faults")
    print("| texts | n | read | slowest, ms of CPU |")
    print("|---|---|---|---|")
    for kind, n in outcome.texts.items():
        print(f"| {kind} | {n} | {outcome.read[kind]} | {outcome.slowest_s[kind] * 1e3:.1f} |")
    mean = outcome.total_s / max(1, outcome.texts.total())
    print(f"mean time of one reading: {mean * 1e6:.0f} µs of CPU")
    for fault in outcome.faults[:50]:
        print(fault)
    sys.exit(1 if outcome.faults else 0)


if __name__ == "__main__":
    main()
