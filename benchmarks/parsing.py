"""CPU time of a call's pure parts: rendering a prompt and reading a response, microseconds each.

    python benchmarks/parsing.py [--rounds 7]

Prints the median over rounds of process CPU time per call. One presentation is rendered per call,
as in a run; a direct response carries 20 log-probabilities, a reasoning reply is about 1.5 kB. Then
what reading a label takes: forms that built-in prompts ask for, the mean over the fresh set of replies,
the longest of repeated texts, and the first reply of a new process.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from reliability.replies import SETS, labelled_replies
from unswayed.model.calls import Response, TokenLogprob
from unswayed.model.items import Item, Task
from unswayed.model.parsing import parse_label, read_decision
from unswayed.model.presentation import X0, X2, Ask, presentations
from unswayed.prompts import PromptSettings, render

TEMPLATE = (
    "rate the answers about {{ question }} "
    "{% for c in candidates %}{{ c.label }} : {{ c.text }} . {% endfor %}which is better"
)


def cpu_us(call: Callable[[], object], *, rounds: int, seconds: float = 0.1) -> float:
    """Median CPU microseconds of one call."""
    times = 1
    while True:
        start = time.process_time()
        for _ in range(times):
            call()
        spent = time.process_time() - start
        if spent >= seconds / 4:
            break
        times *= 2
    times = max(1, round(times * seconds / spent))
    medians = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(times):
            call()
        medians.append((time.process_time() - start) / times)
    return statistics.median(medians) * 1e6


def pair() -> Item:
    return Item(
        id="q1",
        prompt="Explain the tides to a child in a few sentences. " * 4,
        candidates=(
            "The moon pulls at the water of the sea.\n" * 25,
            "It is the wind that moves it. " * 30,
        ),
        gold=0,
    )


def question() -> Item:
    return Item(
        id="q2",
        task=Task.MCQ,
        prompt="Which of these animals is the largest?",
        candidates=("a cat", "a blue whale", "an ant", "a bush baby"),
    )


def direct_response() -> Response:
    words = ("B", "A", " B", "The", "Answer", "**", "b", "Both", "(", "\n", "I", "Option", "Based")
    words += ("[[", "It", "After", " A", "As", "<", "Better")
    top = tuple(TokenLogprob(word, math.log(0.7) - 0.9 * k) for k, word in enumerate(words))
    return Response(text="B", tokens=("B",), top_logprobs=(top,))


def reasoning_response() -> Response:
    thought = "The first answer names the moon, the second one the wind, which is wrong. " * 20
    return Response(text=f"<think>{thought}</think>\n<answer>B</answer>")


def prose_response() -> Response:
    thought = "The first answer names the moon, the second one the wind, which is wrong. " * 20
    return Response(text=f"{thought}\n\nTherefore, Assistant B is better.")


FORMS = (
    "B",
    "**B**",
    "<answer>B</answer>",
    '{"label": "B"}',
    "[[B]]",
    "Answer: B",
    "B, because it is clear.",
)
UNITS = (
    "A", "A ", "A\n", "B, ", "a:", "*", '"', "'", "`", "(", "{", "[[", "$", "\n", "> ", "- A\n", "1. ", "~~", "的", "\u0301",
    "word ", "because ", "A: ", "Answer: A\n", "Verdict: A. ", "I think A. ", "A is better. ", "<answer>", "<answer>A</answer>",
    "[[A]]", "\\boxed{", '{"a":', '{"answer": "A"}\n', "<think>", "```\n", "the better answer is ",
)  # fmt: skip
FIRST = """
import re, sys, time
import unswayed.model.parsing
for name in ("labels", "places", "quoting", "symbols", "words"):
    del sys.modules[f"unswayed.model.parsing.{name}"]
re.purge()
start = time.process_time()
from unswayed.model.parsing.labels import parse_label
loaded = time.process_time()
parse_label("The better answer is B.", ("A", "B"))
print((loaded - start) * 1e3, (time.process_time() - loaded) * 1e3)
"""


def label_reading(rounds: int) -> None:
    """Measure the reading of a label."""
    for text in FORMS:
        spent = cpu_us(lambda text=text: parse_label(text, ("A", "B")), rounds=rounds)
        print(f"read {text!r:<23} {spent:8.1f} µs")
    replies = labelled_replies(SETS["fresh"])
    spent = cpu_us(lambda: [reply.reading() for reply in replies], rounds=rounds) / len(replies)
    print(f"{'mean of the fresh set':<28} {spent:8.1f} µs")
    for size in (20_000, 1_000_000):
        texts = [(unit * size)[:size] for unit in UNITS]
        times = [
            cpu_us(lambda text=text: parse_label(text, ("A", "B")), rounds=1) for text in texts
        ]
        worst = max(times)
        unit = UNITS[times.index(worst)]
        print(
            f"{size} characters of any of {len(UNITS)} units: at most {worst / 1e3:.0f} ms ({unit!r})"
        )
    run = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    loading, first = map(float, run.stdout.split())
    print(f"importing the reader {loading:.1f} ms, the first reply {first:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    two, four = pair(), question()
    plain = PromptSettings()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.txt"
        path.write_text(TEMPLATE)
        own = PromptSettings(template=str(path))
        rotations = presentations("cyclic", 4)
        cases: dict[str, Callable[[], object]] = {
            "render direct, pairwise": lambda: render(two, Ask(X2), plain),
            "render reasoning, pairwise": lambda: render(two, Ask(X2, "reasoning"), plain),
            "render direct, mcq": lambda: render(four, Ask(rotations[1]), plain),
            "render template file": lambda: render(two, Ask(X2), own),
        }
        replies = {"direct": direct_response(), "reasoning": reasoning_response()}
        replies["prose"] = prose_response()
        for name, response in replies.items():
            answer_only = name == "direct"
            cases[f"read {name} reply"] = lambda response=response, answer_only=answer_only: (
                read_decision(
                    two, Ask(X0), ("A", "B"), response, model="m", answer_only=answer_only
                )
            )
        for name, call in cases.items():
            print(f"{name:<28} {cpu_us(call, rounds=rounds):8.1f} µs")
    label_reading(rounds)


if __name__ == "__main__":
    main()
