"""The world of the tiny judge: its words, what they are worth, and the items made of them.

A judge item asks which of two three-word answers is better; a multiple-choice item asks which of
four nouns is largest; a rubric item asks which of five levels describes a four-word answer. Every
word has a true worth, so gold is known exactly (human scores, to the raters' noise), and random
themes give a continuum of margins with near-ties. Sets are generated, never stored: the same seed
gives the same items, another seed gives fresh ones.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.base.registry import did_you_mean
from unswayed.model.decisions import FloatArray as FloatArray
from unswayed.model.items import Item, ItemSet, Task

IntArray = NDArray[np.int64]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


GOOD: Final = _words(
    "accurate helpful clear precise complete correct kind relevant thorough concise honest useful "
    "detailed polite sound fair"
)
MIDDLING: Final = _words(
    "plain short long usual casual formal simple mixed average common neutral brief quick typical "
    "wordy dry"
)
BAD: Final = _words(
    "wrong rude vague messy false lazy broken unsafe confused empty biased sloppy noisy harsh "
    "stale dull"
)
WORDS: Final = GOOD + MIDDLING + BAD
"""Quality words; the answers of judge items are three of them."""

TOPICS: Final = _words("cooking travel health money music sports history gardens movies science")
NOUNS: Final = _words(
    "atom germ flea ant bee snail mouse frog rat bird cat duck fox dog goat sheep wolf pig child "
    "man deer lion bear cow horse bull car shark truck giraffe elephant bus train whale house ship "
    "tower hill mountain moon"
)
"""Things, smallest first; the candidates of multiple-choice items are four of them."""

LABELS: Final = ("A", "B", "C", "D")
SPECIAL: Final = ("<pad>", "<unk>", "<|user|>", "<|assistant|>", "<|end|>")
GLUE: Final = _words("rate the answers about which is better : . of these largest")
CONTENT_FREE: Final = ("N/A", "[MASK]")
"""Texts without content that contextual calibration asks about; seen in training as such."""

VOCABULARY: Final = SPECIAL + LABELS + GLUE + TOPICS + WORDS + NOUNS + CONTENT_FREE
"""Every token of the judge; its place here is its id."""

LEVELS: Final = _words("terrible weak middling good excellent")
"""The levels of rubric items, worst first."""
VALUES: Final = (1.0, 2.0, 3.0, 4.0, 5.0)
RUBRIC_LABELS: Final = (*LABELS, "E")
RUBRIC_VOCABULARY: Final = VOCABULARY + _words("E answer fits") + LEVELS
"""The same tokens with the same ids, and those of the rubric."""

QUESTION: Final = "largest"
RESPONSE_WORDS: Final = 4
LEVELS_PER_WORTH: Final = 1.25
"""So that answers spread over the whole scale: their worth has a standard deviation of 1.1."""
RATERS: Final = 2
RATER_NOISE: Final = 0.5
"""Of one rater's impression, in levels; a human score is the mean of their levels."""
BUILT_IN_SEED: Final = 999
WORLD_SEED: Final = 123
CHUNK: Final = 1000
"""Contents are drawn in chunks of this size, so a smaller set is the beginning of a larger one."""
CLOSE_RANKS: Final = 4
"""Multiple-choice items whose two largest nouns are at most this many ranks apart are "close"."""


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """Worth of words, truly and to the tiny judge.

    The judge learned from raters with systematic errors, so even without position bias it would
    not always be right.
    """

    # words, words_learned: true worth and the raters' worth of `WORDS`, shape (48,)
    words: FloatArray
    words_learned: FloatArray
    # sizes, sizes_learned: true size, evenly spaced in [-1, 1], and the raters' size of `NOUNS`,
    # shape (40,)
    sizes: FloatArray
    sizes_learned: FloatArray
    # by how many logits the raters favour the first position beyond the common amount, per topic,
    # shape (10,)
    topic_bias: FloatArray


@functools.cache
def worth() -> Worth:
    """Return the one world that all items and all training answers come from."""
    rng = np.random.default_rng(WORLD_SEED)
    words = np.concatenate(
        [
            rng.uniform(0.3, 1.0, len(GOOD)),
            rng.uniform(-0.4, 0.4, len(MIDDLING)),
            rng.uniform(-1.0, -0.3, len(BAD)),
        ]
    )
    sizes = np.linspace(-1.0, 1.0, len(NOUNS))
    worth = Worth(
        words=words,
        words_learned=words + rng.normal(0.0, 0.30, len(WORDS)),
        sizes=sizes,
        sizes_learned=sizes + rng.normal(0.0, 0.22, len(NOUNS)),
        topic_bias=rng.normal(0.0, 0.6, len(TOPICS)),
    )
    for field in fields(worth):
        getattr(worth, field.name).setflags(write=False)
    return worth


class Themes(NamedTuple):
    """Contents of items about answers."""

    topics: IntArray  # index into `TOPICS`, shape (n,)
    words: IntArray  # indices into `WORDS`, shape (n, ..., words of an answer)

    def worth(self, of_words: FloatArray) -> FloatArray:
        """Sum of the words' worth per answer, shape (n, ...)."""
        total: FloatArray = of_words[self.words].sum(axis=-1)
        return total


def draw_judge(n: int, rng: np.random.Generator) -> Themes:
    """Draw n judge items' contents, topics first."""
    return Themes(rng.integers(0, len(TOPICS), n), rng.integers(0, len(WORDS), (n, 2, 3)))


def draw_mcq(n: int, rng: np.random.Generator) -> IntArray:
    """Draw what n multiple-choice items are about: four different indices into `NOUNS`, (n, 4)."""
    return np.argsort(rng.random((n, len(NOUNS))), axis=1)[:, :4]


def draw_rubric(n: int, rng: np.random.Generator) -> Themes:
    """Draw n rubric items' contents, topics first."""
    return Themes(rng.integers(0, len(TOPICS), n), rng.integers(0, len(WORDS), (n, RESPONSE_WORDS)))


def on_scale(worth: FloatArray) -> FloatArray:
    """Return the places of answers on the scale of the levels, also beyond its ends."""
    return float(np.mean(VALUES)) + LEVELS_PER_WORTH * worth


Made = tuple[Hashable, dict[str, Any], dict[str, Any]]
"""Content of an item, its `meta` and its other fields."""


def judge_items(n: int = 1000, seed: int = BUILT_IN_SEED) -> ItemSet:
    """Judge items: prompt a topic, candidates such as "clear polite short", group the topic.

    Gold is the candidate of higher true worth, `meta.utility` both worths. No two items have the same
    topic and answers, in whatever order. Another seed gives held-out items.
    """

    def chunk(rng: np.random.Generator) -> Iterator[Made]:
        themes = draw_judge(CHUNK, rng)
        for topic, words, utility in zip(*themes, themes.worth(worth().words), strict=True):
            first, second = (tuple(sorted(answer)) for answer in words.tolist())
            if first == second:
                continue  # the same words on both sides: there is no better answer
            fields = {
                "prompt": TOPICS[topic],
                "candidates": tuple(" ".join(WORDS[word] for word in answer) for answer in words),
                "gold": int(utility.argmax()),
                "group": TOPICS[topic],
            }
            yield (int(topic), frozenset((first, second))), {"utility": utility.tolist()}, fields

    return _distinct("tiny-judge", Task.PAIRWISE, n, seed, chunk)


def mcq_items(n: int = 300, seed: int = BUILT_IN_SEED) -> ItemSet:
    """Multiple-choice items: which of four nouns is largest.

    Gold is the largest noun, `meta.utility` the true sizes, group "close sizes" or "clear sizes" by how
    far apart the two largest are. No two items have the same four nouns.
    """

    def chunk(rng: np.random.Generator) -> Iterator[Made]:
        for nouns in draw_mcq(CHUNK, rng):
            second, largest = np.sort(nouns)[-2:]
            fields = {
                "prompt": QUESTION,
                "candidates": tuple(NOUNS[noun] for noun in nouns),
                "gold": int(nouns.argmax()),  # nouns are listed by size
                "group": "close sizes" if largest - second <= CLOSE_RANKS else "clear sizes",
            }
            yield frozenset(nouns.tolist()), {"utility": worth().sizes[nouns].tolist()}, fields

    return _distinct("tiny-mcq", Task.MCQ, n, seed, chunk, most=50_000)


def rubric_items(n: int = 300, seed: int = BUILT_IN_SEED) -> ItemSet:
    """Rubric items: which of five levels describes an answer such as "clear polite short dull".

    Gold is the mean level of two noisy raters, so it may lie between levels, `meta.quality` where the
    answer truly lies on their scale, group the topic. No two have the same topic and words.
    """

    def chunk(rng: np.random.Generator) -> Iterator[Made]:
        themes = draw_rubric(CHUNK, rng)
        quality = on_scale(themes.worth(worth().words))
        impressions = quality[:, None] + rng.normal(0.0, RATER_NOISE, (CHUNK, RATERS))
        scores = np.clip(np.rint(impressions), VALUES[0], VALUES[-1]).mean(axis=1)
        for topic, words, true, score in zip(*themes, quality, scores, strict=True):
            fields = {
                "prompt": TOPICS[topic],
                "candidates": LEVELS,
                "values": VALUES,
                "response": " ".join(WORDS[word] for word in words),
                "gold": float(score),
                "group": TOPICS[topic],
            }
            yield (int(topic), *sorted(words.tolist())), {"quality": float(true)}, fields

    return _distinct("tiny-rubric", Task.RUBRIC, n, seed, chunk)


def _distinct(
    base: str,
    task: Task,
    n: int,
    seed: int,
    chunk: Callable[[np.random.Generator], Iterator[Made]],
    most: int | None = None,
) -> ItemSet:
    """Return the first n items with different contents, in the order drawn, numbered."""
    name = base if seed == BUILT_IN_SEED else f"{base}-{seed}"
    if n < 1:
        raise UsageError(f"{name}: {n} items asked for; ask for at least 1.")
    if most is not None and n > most:
        raise UsageError(f"{name}: {n} items asked for; {most} different ones at most.")
    rng = np.random.default_rng(seed)
    kept: dict[Hashable, tuple[dict[str, Any], dict[str, Any]]] = {}
    while len(kept) < n:
        for content, meta, given in chunk(rng):
            kept.setdefault(content, (meta, given))
    items = [
        Item(id=f"{name}-{number:04d}", task=task, meta={"source": name, **meta}, **given)
        for number, (meta, given) in enumerate(itertools.islice(kept.values(), n))
    ]
    return ItemSet.of(items, name=name)


TRAINING_SEED: Final = 1
"""Seed of the built-in training sets: other items than those the audits use."""


BUILT_IN: Final[Mapping[str, Callable[[], ItemSet]]] = {
    "tiny-judge": judge_items,
    "tiny-judge-train": lambda: judge_items(2000, TRAINING_SEED),
    "tiny-mcq": mcq_items,
    "tiny-mcq-train": lambda: mcq_items(1000, TRAINING_SEED),
    "tiny-rubric": rubric_items,
    "tiny-rubric-train": lambda: rubric_items(2000, TRAINING_SEED),
}
"""The built-in sets by the name that stands for them on the command line."""


def builtin_items(name: str) -> ItemSet:
    """Return a built-in set."""
    if name not in BUILT_IN:
        raise UnknownNameError(f"unknown built-in set {name!r}. {did_you_mean(name, BUILT_IN)}")
    return replace(BUILT_IN[name](), name=name)
