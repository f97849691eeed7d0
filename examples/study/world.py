"""The tiny judge's items as token arrays: prompts in every presentation, gold with noise."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone uses
from arms import Gold, Setting
from numpy.typing import NDArray
from torch import nn

from unswayed.items import Item, Task
from unswayed.presentation import Presentation, presentations
from unswayed.tiny.answers import encode, prompt_tokens, token_ids
from unswayed.tiny.items import LABELS, judge_items, mcq_items

__all__ = [
    "Pool",
    "answer_log_probs",
    "choices_of",
    "evaluation_items",
    "inconsistent_items",
    "label_ids",
    "make_pool",
    "prompts_of",
]

IntArray = NDArray[np.int64]
NOISE: dict[Task, float] = {Task.PAIRWISE: 0.75, Task.MCQ: 0.30}
"""Temperature of the Bradley-Terry rater."""
FLIPS = 0.35
EVALUATION_SEED = 4242


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Training items that the base model is inconsistent on.

    Attributes:
        items: In their own order, with this gold.
        prompts: Token ids, shape (items, P, tokens).
        orders: Candidate at each label, shape (P, n); labels stay with the positions.
        gold: Candidate, shape (items,).
        wrong_gold: Share of the gold that is not the truth.
        kept: Share of the items drawn that the filter kept.
    """

    items: tuple[Item, ...]
    prompts: IntArray
    orders: IntArray
    gold: IntArray
    wrong_gold: float
    kept: float


@functools.cache
def evaluation_items(task: Task) -> tuple[Item, ...]:
    """Held-out items with true gold: 800 judge items, or 300 multiple-choice items."""
    made = (
        judge_items(800, EVALUATION_SEED)
        if task is Task.PAIRWISE
        else mcq_items(300, EVALUATION_SEED)
    )
    return made.items


def prompts_of(items: Sequence[Item], shown: Sequence[Presentation]) -> IntArray:
    """Token ids of every item in every presentation, shape (items, presentations, tokens)."""
    question = np.stack([encode(str(item.prompt)) for item in items])
    by_candidate = np.stack([[encode(str(c)) for c in item.candidates] for item in items])
    return np.stack(
        [
            prompt_tokens(
                items[0].task,
                question,
                by_candidate[:, list(one.order)],
                np.tile(one.labels, (len(items), 1)),
            )
            for one in shown
        ],
        axis=1,
    )


def label_ids(n: int) -> IntArray:
    """Token ids of the first n labels."""
    return np.array([token_ids()[label] for label in LABELS[:n]])


def answer_log_probs(model: nn.Module, prompts: torch.Tensor) -> torch.Tensor:
    """Log-probability of every token as the answer, shape (prompts, vocabulary)."""
    hidden = model.model(prompts).last_hidden_state[:, -1]
    return F.log_softmax(model.lm_head(hidden).float(), dim=-1)


@torch.no_grad()
def choices_of(
    model: nn.Module, items: Sequence[Item], shown: Sequence[Presentation], *, batch: int = 1024
) -> IntArray:
    """The candidate chosen greedily among the labels, shape (items, presentations)."""
    prompts = prompts_of(items, shown)
    flat = torch.from_numpy(prompts.reshape(-1, prompts.shape[-1]))
    device = next(model.parameters()).device
    labels = torch.from_numpy(label_ids(items[0].n)).to(device)
    model.eval()
    chosen = [
        answer_log_probs(model, flat[at : at + batch].to(device))[:, labels].argmax(1).cpu()
        for at in range(0, len(flat), batch)
    ]
    label = torch.cat(chosen).numpy().reshape(len(items), len(shown))
    at_label = np.array([one.candidates_by_label() for one in shown])
    return at_label[np.arange(len(shown))[None], label]


def inconsistent_items(
    base: nn.Module, task: Task, seed: int, *, wanted: int = 1600
) -> tuple[tuple[Item, ...], float]:
    """Training items that the base model is inconsistent on, and the share of items that are.

    The filter is the paper's: both orders, or the cyclic ones. Items of the evaluation set are
    left out.
    """
    draw = judge_items if task is Task.PAIRWISE else mcq_items
    n = 2 if task is Task.PAIRWISE else 4
    asked = presentations("swap" if n == 2 else "cyclic", n)
    forbidden = {content_of(item) for item in evaluation_items(task)}
    drawn, kept = 2 * wanted, []
    while True:
        items = draw(drawn, 10_000 + seed).items
        choices = choices_of(base, items, asked)
        inconsistent = (choices != choices[:, :1]).any(axis=1)
        kept = [
            item
            for item, keep in zip(items, inconsistent, strict=True)
            if keep and content_of(item) not in forbidden
        ]
        if len(kept) >= wanted:
            return tuple(kept[:wanted]), float(inconsistent.mean())
        drawn *= 2


def make_pool(items: Sequence[Item], kept: float, setting: Setting, seed: int) -> Pool:
    """The training items in the setting's presentations, with its kind of gold."""
    shown = presentations(setting.orders, items[0].n)
    utility = np.array([item.meta["utility"] for item in items])
    gold = noisy_gold(utility, setting.gold, setting.task, np.random.default_rng(20_000 + seed))
    return Pool(
        items=tuple(
            msgspec.structs.replace(item, gold=int(right))
            for item, right in zip(items, gold, strict=True)
        ),
        prompts=prompts_of(items, shown),
        orders=np.array([one.candidates_by_label() for one in shown]),
        gold=gold,
        wrong_gold=float((gold != utility.argmax(axis=1)).mean()),
        kept=kept,
    )


def content_of(item: Item) -> tuple[object, frozenset[object]]:
    """What makes two items the same question, whatever the order of their candidates."""
    return item.prompt, frozenset(item.candidates)


def noisy_gold(
    utility: NDArray[np.float64], kind: Gold, task: Task, rng: np.random.Generator
) -> IntArray:
    """Gold as a rater would give it."""
    truth = utility.argmax(axis=1)
    if kind == "noisy":
        return (utility / NOISE[task] + rng.gumbel(size=utility.shape)).argmax(axis=1)
    if kind == "flips":
        n = utility.shape[1]
        flipped = rng.random(len(truth)) < FLIPS
        return np.where(flipped, (truth + rng.integers(1, n, len(truth))) % n, truth)
    return truth
