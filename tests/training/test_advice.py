"""Which objective is advised, and that what is said was estimated."""

import numpy as np
import pytest

from unswayed.errors import UsageError
from unswayed.items import Item, Task
from unswayed.training.advice import FEWEST, advise
from unswayed.training.table import OBJECTIVES


def items_of(golds, n=2, task=Task.PAIRWISE, **fields):
    return [
        Item(
            id=f"i{number}",
            task=task,
            prompt=f"question {number}",
            candidates=tuple(f"{number} {k}" for k in range(n)),
            gold=gold,
            **fields,
        )
        for number, gold in enumerate(golds)
    ]


def answers_of(items, logits, *, bias=1.0, mass=1.0):
    """Log-probabilities over the rotations, the first place favoured by `bias` logits."""
    answers = {}
    for item, own in zip(items, logits, strict=True):
        rows = []
        for first in range(item.n):  # the candidate shown first
            row = np.array(own, dtype=float)
            row[first] += bias
            rows.append(row - np.log(np.exp(row).sum()) + np.log(mass))
        answers[item.id] = np.array(rows)
    return answers


def world(size, *, n=2, wrong=0.0, scale=2.0, seed=0):
    """Items whose truth is drawn from the average, with this share of wrong gold."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(size, n)) * scale
    truth = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    flipped = rng.random(size) < wrong
    gold = np.where(flipped, (truth + rng.integers(1, n, size)) % n, truth)
    items = items_of(gold.tolist(), n, Task.PAIRWISE if n == 2 else Task.MCQ)
    return items, answers_of(items, logits)


@pytest.mark.parametrize(
    ("size", "wrong", "objective"),
    [(800, 0.0, "sft"), (800, 0.3, "rl-exact"), (800, 0.5, "distill"), (FEWEST - 1, 0, "distill")],
)
@pytest.mark.parametrize("n", [2, 4])
def test_the_objective_follows_the_share_of_wrong_gold(size, wrong, objective, n):
    lot = (n - 1) / n if wrong == 0.5 else wrong
    advice = advise(*world(size, n=n, wrong=lot), answer_only=True)
    assert advice.objective == objective
    assert advice.objective in OBJECTIVES
    assert advice.reasons[0].startswith(f"{objective}: ")


def test_without_any_answer_nothing_is_advised_about_labels():
    with pytest.raises(UsageError, match="no item was answered"):
        advise(items_of([0, 1]), None, answer_only=True)
