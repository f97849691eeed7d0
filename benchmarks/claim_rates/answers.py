"""Answers of a judge with planted content, position and label effects, as estimation tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unswayed.backends.utilities import level_utilities
from unswayed.methods.protocol import Method
from unswayed.model.decisions import DecisionTable, Evidence
from unswayed.model.items import Item, Task


def estimation_answers(
    method: Method,
    count: int,
    n: int = 2,
    *,
    seed: int,
    groups: int = 1,
    position: float = 0.6,
    label: float = 0.4,
    noise: float = 0.4,
    steep: float = 1.0,
) -> Mapping[int, DecisionTable]:
    """Return the answers of a judge to the method's estimation questions.

    Args:
        method: Its `plan_fit` says what is asked.
        count: Items.
        n: Candidates of each.
        seed: Other items and other noise.
        groups: Number of groups, equally often.
        position: Logits by which the first position is ahead of the last.
        label: Logits by which the first label is ahead of the last.
        noise: Standard deviation of each call's own noise, in logits.
        steep: Factor on all logits; above 1 the judge is surer than its noise.
    """
    rng = np.random.default_rng(seed)
    values = tuple(map(float, range(1, n + 1))) if Evidence.LEVELS in method.reads else None
    items = [
        Item(
            id=f"q{row}",
            task=Task.PAIRWISE if n == 2 else Task.MCQ,
            prompt=f"question {row}",
            candidates=tuple(f"answer {row}.{candidate}" for candidate in range(n)),
            group=f"g{row % groups}",
            values=values,
        )
        for row in range(count)
    ]
    planned = method.plan_fit(items)
    asked = {item.id: item for item, _ in planned}
    asks = tuple(dict.fromkeys(ask for _, ask in planned))
    quality = rng.normal(0, 1.2, (len(asked), n))
    if values is not None:  # a scale: the level nearest to the quality of the response fits best
        of_response = rng.uniform(1, n, len(asked))
        quality = 1.2 * np.array([level_utilities(values, own) for own in of_response.tolist()])
    tilt = np.linspace(0.5, -0.5, n)
    logits = rng.normal(0, noise, (len(asked), len(asks), n))
    for column, ask in enumerate(asks):
        for at, candidate in enumerate(ask.presentation.order):
            bias = position * tilt[at] + label * tilt[ask.presentation.labels[at]]
            content = quality[:, candidate] if ask.substitute is None else 0.0
            logits[:, column, candidate] += content + bias
    probs = np.exp(steep * logits)
    probs /= probs.sum(axis=2, keepdims=True)
    table = DecisionTable(
        items=tuple(asked.values()),
        asks=asks,
        shown=tuple(ask.presentation for ask in asks),
        label_set=tuple("ABCDEF"[:n]),
        choices=probs.argmax(axis=2).astype(np.int16),
        probs=probs,
    )
    return {n: table}
