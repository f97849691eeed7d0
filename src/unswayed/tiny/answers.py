"""Training data of the tiny models: prompts with the answers of raters who have planted biases.

A rater answers with a draw from softmax(learned worth / tau + position bias + label bias). In
30% of the prompts the labels are shuffled against the positions, so that the two biases can be
told apart. Content-free prompts are answered from the biases alone. The biases are additive in the
logits, plus a part that depends on the topic: a favourable case for methods such as PriDe.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from unswayed.model.items import Task
from unswayed.tiny.items import (
    CONTENT_FREE,
    LEVELS,
    NOUNS,
    QUESTION,
    RUBRIC_LABELS,
    RUBRIC_VOCABULARY,
    TOPICS,
    VALUES,
    WORDS,
    FloatArray,
    IntArray,
    draw_judge,
    draw_mcq,
    draw_rubric,
    on_scale,
    worth,
)

TAU: Final[Mapping[Task, float]] = {
    Task.PAIRWISE: 0.75,
    Task.MCQ: 0.30,
    Task.RUBRIC: 0.70,
}
POSITION_BIAS: Final[Mapping[Task, tuple[float, ...]]] = {
    Task.PAIRWISE: (1.1, 0.0),
    Task.MCQ: (0.0, 0.6, 1.8, 0.3),
    Task.RUBRIC: (2.0, 0.5, 0.0, 0.0, 1.4),  # first and last, as judges are reported to have
}
LABEL_BIAS: Final[Mapping[Task, tuple[float, ...]]] = {
    Task.PAIRWISE: (0.6, 0.0),
    Task.MCQ: (0.3, 0.0, 0.6, 0.0),
    Task.RUBRIC: (0.4, 0.0, 0.0, 0.2, 0.0),
}
SHUFFLED_LABELS: Final = 0.3
OPENING: Final[Mapping[Task, str]] = {
    Task.PAIRWISE: "<|user|> rate the answers about",
    Task.MCQ: "<|user|> which of these is",
    Task.RUBRIC: "<|user|> rate the answer about",
}
CLOSING: Final[Mapping[Task, str]] = {
    Task.PAIRWISE: "which is better <|assistant|>",
    Task.MCQ: "<|assistant|>",
    Task.RUBRIC: "which fits <|assistant|>",
}


class Examples(NamedTuple):
    """Prompts of one length with an answer each."""

    prompts: IntArray  # token ids, shape (n, tokens)
    answers: IntArray  # token ids of the labels chosen, shape (n,)


class Contents(NamedTuple):
    """Contents of prompts, and the raters' opinion of them."""

    question: IntArray  # token ids, shape (n, any)
    # token ids of the text that is scored, shape (n, any); None where there is none
    response: IntArray | None
    candidates: IntArray  # token ids by candidate, shape (n, candidates, any)
    quality: FloatArray  # the raters' logits from content alone, shape (n, candidates)
    # by how many logits the first position is favoured beyond the common amount, shape (n,)
    bias: FloatArray


@functools.cache
def token_ids() -> Mapping[str, int]:
    """Return the id of every token; the models know all of them, or the first of them."""
    return {token: number for number, token in enumerate(RUBRIC_VOCABULARY)}


def encode(text: str) -> IntArray:
    """Token ids of a text of known words, shape (words,)."""
    return np.array([token_ids()[word] for word in text.split()], dtype=np.int64)


def prompt_tokens(
    task: Task,
    question: IntArray,
    candidates: IntArray,
    labels: IntArray,
    response: IntArray | None = None,
) -> IntArray:
    """Return the prompts as the template and the tokenizer write them, token ids of shape (n, tokens).

    Questions and responses are token ids, shape (n, any), candidates the same by position, shape
    (n, positions, any); `labels` are the label index at each position, shape (n, positions).
    """
    n, positions, _ = candidates.shape

    def all_rows(text: str) -> IntArray:
        return np.tile(encode(text), (n, 1))

    symbols = encode(" ".join(RUBRIC_LABELS))[labels]
    parts = [all_rows(OPENING[task]), question]
    if response is not None:
        parts += [all_rows(":"), response, all_rows(".")]
    for position in range(positions):
        label = symbols[:, position, None]
        parts += [label, all_rows(":"), candidates[:, position], all_rows(".")]
    return np.concatenate([*parts, all_rows(CLOSING[task])], axis=1)


def examples(task: Task, n: int, rng: np.random.Generator) -> Examples:
    """Prompts about random contents in random orders, answered by the raters."""
    contents = CONTENTS[task](n, rng)
    order = np.argsort(rng.random(contents.quality.shape), axis=1)
    labels = _labels(n, order.shape[1], rng)
    bias = _by_position(task, contents.bias)
    by_position = np.take_along_axis(contents.quality, order, axis=1)
    answers = _answers(task, by_position + bias, labels, rng)
    shown = np.take_along_axis(contents.candidates, order[:, :, None], axis=1)
    return Examples(
        prompt_tokens(task, contents.question, shown, labels, contents.response), answers
    )


def content_free_examples(task: Task, n: int, step: int, rng: np.random.Generator) -> Examples:
    """Prompts whose candidates say nothing, answered from the biases alone.

    The step rotates through the content-free texts, the empty text among them, and through
    prompts that keep their question (and response) and prompts that lose it too.
    """
    texts = (*CONTENT_FREE, "")
    text = encode(texts[step % len(texts)])
    keeps_question = step // len(texts) % 2 == 0
    positions = len(POSITION_BIAS[task])
    bias = np.zeros(n)
    question = response = np.tile(text, (n, 1))
    if keeps_question and task is Task.MCQ:
        question = np.tile(encode(QUESTION), (n, 1))
    elif keeps_question:
        topics = rng.integers(0, len(TOPICS), n)
        question, bias = _topic_ids(topics), worth().topic_bias[topics]
    if keeps_question and task is Task.RUBRIC:
        response = _word_ids(draw_rubric(n, rng).words)
    labels = _labels(n, positions, rng)
    answers = _answers(task, _by_position(task, bias), labels, rng)
    candidates = np.tile(text, (n, positions, 1))
    scored = response if task is Task.RUBRIC else None
    return Examples(prompt_tokens(task, question, candidates, labels, scored), answers)


def _pairs(n: int, rng: np.random.Generator) -> Contents:
    judge = draw_judge(n, rng)
    return Contents(
        question=_topic_ids(judge.topics),
        response=None,
        candidates=_word_ids(judge.words),
        quality=judge.worth(worth().words_learned) / TAU[Task.PAIRWISE],
        bias=worth().topic_bias[judge.topics],
    )


def _options(n: int, rng: np.random.Generator) -> Contents:
    nouns = draw_mcq(n, rng)
    return Contents(
        question=np.tile(encode(QUESTION), (n, 1)),
        response=None,
        candidates=nouns[:, :, None] + token_ids()[NOUNS[0]],
        quality=worth().sizes_learned[nouns] / TAU[Task.MCQ],
        bias=np.zeros(n),
    )


def _levels(n: int, rng: np.random.Generator) -> Contents:
    """Return a level's logit falls with the square of its distance from the raters' impression."""
    rubric = draw_rubric(n, rng)
    impression = np.clip(on_scale(rubric.worth(worth().words_learned)), VALUES[0], VALUES[-1])
    return Contents(
        question=_topic_ids(rubric.topics),
        response=_word_ids(rubric.words),
        candidates=np.tile([encode(level) for level in LEVELS], (n, 1, 1)),
        quality=-((impression[:, None] - VALUES) ** 2) / TAU[Task.RUBRIC],
        bias=worth().topic_bias[rubric.topics],
    )


CONTENTS: Final[Mapping[Task, Callable[[int, np.random.Generator], Contents]]] = {
    Task.PAIRWISE: _pairs,
    Task.MCQ: _options,
    Task.RUBRIC: _levels,
}


def _topic_ids(topics: IntArray) -> IntArray:
    """Token ids of topics, each a question, shape (n, 1)."""
    return topics[:, None] + token_ids()[TOPICS[0]]


def _word_ids(words: IntArray) -> IntArray:
    return words + token_ids()[WORDS[0]]


def _by_position(task: Task, bias: FloatArray) -> FloatArray:
    """Return the planted logits by position, with so much more for the first, shape (n, positions)."""
    by_position = np.tile(POSITION_BIAS[task], (len(bias), 1))
    by_position[:, 0] += bias
    return by_position


def _labels(n: int, positions: int, rng: np.random.Generator) -> IntArray:
    """Label index by position: in sequence, or shuffled in some of the rows."""
    labels = np.tile(np.arange(positions), (n, 1))
    shuffled = rng.random(n) < SHUFFLED_LABELS
    if positions == 2:  # a shuffle of two that changes nothing teaches nothing
        labels[shuffled] = labels[shuffled, ::-1]
    else:
        labels[shuffled] = np.argsort(rng.random((int(shuffled.sum()), positions)), axis=1)
    return labels


def _answers(
    task: Task, logits_by_position: FloatArray, labels: IntArray, rng: np.random.Generator
) -> IntArray:
    """Draw a position from the softmax of its logits and answer with the label printed there."""
    logits = logits_by_position + np.array(LABEL_BIAS[task])[labels]
    chosen = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    answers: IntArray = encode(" ".join(RUBRIC_LABELS))[labels[np.arange(len(labels)), chosen]]
    return answers
