"""What the tiny judge learned from: prompts with the answers of raters who have planted biases.

A rater answers with a draw from softmax(learned worth / tau + position bias + label bias). In
30 % of the prompts the labels are shuffled against the positions, so that the two biases can be
told apart. Content-free prompts are answered from the biases alone. The biases are additive in the
logits, plus a part that depends on the topic: a favourable case for methods such as PriDe.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from unswayed.items import Task
from unswayed.tiny.items import (
    CONTENT_FREE,
    LABELS,
    NOUNS,
    QUESTION,
    TOPICS,
    VOCABULARY,
    WORDS,
    FloatArray,
    IntArray,
    draw_judge,
    draw_mcq,
    worth,
)

__all__ = ["Examples", "content_free_examples", "examples", "prompt_tokens"]

TAU: Final[Mapping[Task, float]] = {Task.PAIRWISE: 0.75, Task.MCQ: 0.30}
POSITION_BIAS: Final[Mapping[Task, tuple[float, ...]]] = {
    Task.PAIRWISE: (1.1, 0.0),
    Task.MCQ: (0.0, 0.6, 1.8, 0.3),
}
LABEL_BIAS: Final[Mapping[Task, tuple[float, ...]]] = {
    Task.PAIRWISE: (0.6, 0.0),
    Task.MCQ: (0.3, 0.0, 0.6, 0.0),
}
SHUFFLED_LABELS: Final = 0.3
OPENING: Final[Mapping[Task, str]] = {
    Task.PAIRWISE: "<|user|> rate the answers about",
    Task.MCQ: "<|user|> which of these is",
}
CLOSING: Final[Mapping[Task, str]] = {
    Task.PAIRWISE: "which is better <|assistant|>",
    Task.MCQ: "<|assistant|>",
}


class Examples(NamedTuple):
    """Prompts of one length with an answer each.

    Attributes:
        prompts: Token ids, shape (n, tokens).
        answers: Token ids of the labels chosen, shape (n,).
    """

    prompts: IntArray
    answers: IntArray


@functools.cache
def token_ids() -> Mapping[str, int]:
    """The id of every token."""
    return {token: number for number, token in enumerate(VOCABULARY)}


def encode(text: str) -> IntArray:
    """Token ids of a text of known words, shape (words,)."""
    return np.array([token_ids()[word] for word in text.split()], dtype=np.int64)


def prompt_tokens(
    task: Task, question: IntArray, candidates: IntArray, labels: IntArray
) -> IntArray:
    """The prompts as the template and the tokenizer write them.

    Args:
        task: Pairwise or MCQ.
        question: Token ids, shape (n, any).
        candidates: Token ids by position, shape (n, positions, any).
        labels: Label index at each position, shape (n, positions).

    Returns:
        Token ids, shape (n, tokens).
    """
    n, positions, _ = candidates.shape

    def all_rows(text: str) -> IntArray:
        return np.tile(encode(text), (n, 1))

    parts = [all_rows(OPENING[task]), question]
    for position in range(positions):
        label = labels[:, position, None] + token_ids()[LABELS[0]]
        parts += [label, all_rows(":"), candidates[:, position], all_rows(".")]
    return np.concatenate([*parts, all_rows(CLOSING[task])], axis=1)


def examples(task: Task, n: int, rng: np.random.Generator) -> Examples:
    """Prompts about random contents in random orders, answered by the raters."""
    bias_by_position = np.tile(POSITION_BIAS[task], (n, 1))
    if task is Task.PAIRWISE:
        judge = draw_judge(n, rng)
        question = judge.topics[:, None] + token_ids()[TOPICS[0]]
        candidates = judge.words + token_ids()[WORDS[0]]
        quality = judge.quality(worth().words_learned) / TAU[task]
        bias_by_position[:, 0] += worth().topic_bias[judge.topics]
    else:
        nouns = draw_mcq(n, rng).nouns
        question = np.tile(encode(QUESTION), (n, 1))
        candidates = nouns[:, :, None] + token_ids()[NOUNS[0]]
        quality = worth().sizes_learned[nouns] / TAU[task]
    order = np.argsort(rng.random(quality.shape), axis=1)
    labels = _labels(n, quality.shape[1], rng)
    by_position = np.take_along_axis(quality, order, axis=1)
    answers = _answers(task, by_position + bias_by_position, labels, rng)
    shown = np.take_along_axis(candidates, order[:, :, None], axis=1)
    return Examples(prompt_tokens(task, question, shown, labels), answers)


def content_free_examples(task: Task, n: int, step: int, rng: np.random.Generator) -> Examples:
    """Prompts whose candidates say nothing, answered from the biases alone.

    The step rotates through the content-free texts, the empty text among them, and through
    prompts that keep their question and prompts that lose it too.
    """
    texts = (*CONTENT_FREE, "")
    text = encode(texts[step % len(texts)])
    keeps_question = step // len(texts) % 2 == 0
    positions = len(POSITION_BIAS[task])
    bias = np.tile(POSITION_BIAS[task], (n, 1))
    question = np.tile(text, (n, 1))
    if keeps_question and task is Task.PAIRWISE:
        topics = rng.integers(0, len(TOPICS), n)
        question = topics[:, None] + token_ids()[TOPICS[0]]
        bias[:, 0] += worth().topic_bias[topics]
    elif keeps_question:
        question = np.tile(encode(QUESTION), (n, 1))
    labels = _labels(n, positions, rng)
    answers = _answers(task, bias, labels, rng)
    candidates = np.tile(text, (n, positions, 1))
    return Examples(prompt_tokens(task, question, candidates, labels), answers)


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
    answers: IntArray = labels[np.arange(len(labels)), chosen] + token_ids()[LABELS[0]]
    return answers
