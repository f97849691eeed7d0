"""The tiny judge's items as token arrays: prompts in every presentation, gold with noise."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone uses
from held_out import about, halved, topic_of
from numpy.typing import NDArray
from settings import Gold, Setting
from torch import nn

from unswayed.model.items import Item, Task
from unswayed.model.presentation import Presentation, presentations
from unswayed.tiny.answers import encode, prompt_tokens, token_ids
from unswayed.tiny.items import LABELS, judge_items, mcq_items

IntArray = NDArray[np.int64]
NOISE: dict[Task, float] = {Task.PAIRWISE: 0.75, Task.MCQ: 0.30}
"""Temperature of the Bradley-Terry rater."""
FLIPS = 0.35
EVALUATION_SEEDS = {False: 4242, True: 7373}
"""Seed of the evaluation items, of the first base and of the second."""


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
def evaluation_items(setting: Setting, seed: int = 0) -> tuple[Item, ...]:
    """Evaluation items with true gold: 800 judge items, or 300 multiple-choice items.

    The training seed matters only where it says which topic is held out.
    """
    number, draw = (800, judge_items) if setting.task is Task.PAIRWISE else (300, mcq_items)
    items = draw(number, EVALUATION_SEEDS[setting.second]).items
    if setting.held_out == "topic":
        return about(items, topic_of(seed))
    return halved(items, 1) if setting.held_out == "words" else items


def shown_in(setting: Setting) -> tuple[Presentation, ...]:
    """The presentations of a training group."""
    n = 2 if setting.task is Task.PAIRWISE else 4
    moved = ("coupled", "order", "label") if setting.layouts == "all" else ("coupled",)
    sets = [presentations(setting.orders, n, protocol=protocol) for protocol in moved]
    return tuple(dict.fromkeys(shown for group in sets for shown in group))


def prompts_of(items: Sequence[Item], shown: Sequence[Presentation]) -> IntArray:
    """Token ids of every item in every presentation, shape (items, presentations, tokens)."""
    question = np.stack([encode(str(item.prompt)) for item in items])
    by_candidate = np.stack([[encode(str(c)) for c in item.candidates] for item in items])
    return np.stack(
        [
            prompt_tokens(
                items[0].task,
                question,
                by_candidate[:, list(presentation.order)],
                np.tile(presentation.labels, (len(items), 1)),
            )
            for presentation in shown
        ],
        axis=1,
    )


def orders_of(shown: Sequence[Presentation]) -> IntArray:
    """Candidate at each label, shape (presentations, n)."""
    return np.array([presentation.candidates_by_label() for presentation in shown])


def label_ids(n: int) -> IntArray:
    """Token ids of the first n labels."""
    return np.array([token_ids()[label] for label in LABELS[:n]])


def answer_log_probs(model: nn.Module, prompts: torch.Tensor) -> torch.Tensor:
    """Log-probability of every token as the answer, shape (prompts, vocabulary)."""
    hidden = model.model(prompts).last_hidden_state[:, -1]
    return F.log_softmax(model.lm_head(hidden).float(), dim=-1)


def by_candidate(values: torch.Tensor, orders: IntArray) -> torch.Tensor:
    """Values of the labels as values of the candidates, shape (items, presentations, n).

    Args:
        values: By label, shape (items, presentations, n).
        orders: Candidate at each label, shape (presentations, n), or such for each item.
    """
    label = torch.from_numpy(orders.argsort(axis=-1)).to(values.device)
    return values.gather(-1, label.expand(values.shape))


@torch.no_grad()
def label_log_probs(
    model: nn.Module, items: Sequence[Item], shown: Sequence[Presentation], *, batch: int = 1024
) -> torch.Tensor:
    """Log-probability of every label among all tokens, shape (items, presentations, n), on the CPU."""
    prompts = prompts_of(items, shown)
    flat = torch.from_numpy(prompts.reshape(-1, prompts.shape[-1]))
    device = next(model.parameters()).device
    labels = torch.from_numpy(label_ids(items[0].n)).to(device)
    model.eval()
    parts = [
        answer_log_probs(model, flat[at : at + batch].to(device))[:, labels].cpu()
        for at in range(0, len(flat), batch)
    ]
    return torch.cat(parts).view(len(items), len(shown), -1)


def inconsistent_items(
    base: nn.Module, setting: Setting, seed: int, *, wanted: int = 1600
) -> tuple[tuple[Item, ...], float]:
    """Training items that the base model is inconsistent on, and the share of items that are.

    The filter is the paper's: both orders, or the cyclic ones. Items of the evaluation set are
    left out, and so is what the setting holds out.
    """
    draw = judge_items if setting.task is Task.PAIRWISE else mcq_items
    n = 2 if setting.task is Task.PAIRWISE else 4
    asked = presentations("swap" if n == 2 else "cyclic", n)
    candidates = orders_of(asked)
    forbidden = {content_of(item) for item in evaluation_items(setting, seed)}
    drawn = 2 * wanted
    while True:
        items = trained_part(draw(drawn, 10_000 + seed).items, setting, seed)
        labels = label_log_probs(base, items, asked).argmax(-1).numpy()
        choices = candidates[np.arange(len(asked)), labels]
        inconsistent = (choices != choices[:, :1]).any(axis=1)
        kept = [
            item
            for item, keep in zip(items, inconsistent, strict=True)
            if keep and content_of(item) not in forbidden
        ]
        if len(kept) >= wanted:
            return tuple(kept[:wanted]), float(inconsistent.mean())
        drawn *= 2


def trained_part(items: Sequence[Item], setting: Setting, seed: int) -> Sequence[Item]:
    """Return the drawn items that may be trained on."""
    if setting.held_out == "topic":
        return [item for item in items if item.prompt != topic_of(seed)]
    return halved(items, 0) if setting.held_out == "words" else items


def make_pool(items: Sequence[Item], kept: float, setting: Setting, seed: int) -> Pool:
    """The training items in the setting's presentations, with its kind of gold."""
    shown = shown_in(setting)
    utility = np.array([item.meta["utility"] for item in items])
    gold = noisy_gold(utility, setting.gold, setting.task, np.random.default_rng(20_000 + seed))
    return Pool(
        items=tuple(
            msgspec.structs.replace(item, gold=int(right))
            for item, right in zip(items, gold, strict=True)
        ),
        prompts=prompts_of(items, shown),
        orders=orders_of(shown),
        gold=gold,
        wrong_gold=float((gold != utility.argmax(axis=1)).mean()),
        kept=kept,
    )


def content_of(item: Item) -> tuple[object, frozenset[object]]:
    """Return the content of an item, equal for items that differ only in the order of their candidates."""
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
