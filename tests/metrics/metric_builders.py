"""Hand-made outcomes for the tests of this folder."""

from collections.abc import Sequence

import numpy as np

from unswayed.metrics import measure
from unswayed.metrics.gold import GOLD_NONE, GOLD_ONE, GOLD_SEVERAL, GOLD_TIE
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import MISSING, TIE, UNPARSED, Estimate
from unswayed.model.presentation import X0, X2, Presentation, presentations

U, T, M = UNPARSED, TIE, MISSING

SWAP = (X0, X2)

Gold = int | tuple[int, ...] | str | None


def outcomes(
    choices: Sequence[Sequence[int]],
    *,
    gold: Sequence[Gold] | None = None,
    shown: Sequence[Presentation] = SWAP,
    groups: Sequence[str | None] | None = None,
    permutable: Sequence[bool] | None = None,
    probs: object = None,
    label_mass: object = None,
    tied: object = None,
    ids: Sequence[str] | None = None,
) -> Outcomes:
    """Outcomes from rows of choices; without `gold` it is candidate 0 everywhere."""
    items, n = len(choices), shown[0].n
    answers: Sequence[Gold] = [0] * items if gold is None else gold
    right = np.zeros((items, n), dtype=np.bool_)
    kind = np.full(items, GOLD_NONE, dtype=np.int8)
    for row, answer in enumerate(answers):
        if answer == "tie":
            kind[row] = GOLD_TIE
        elif isinstance(answer, tuple):
            kind[row] = GOLD_SEVERAL
            right[row, list(answer)] = True
        elif isinstance(answer, int):
            kind[row] = GOLD_ONE
            right[row, answer] = True
    return Outcomes(
        item_ids=tuple(ids or [f"q{row}" for row in range(items)]),
        groups=tuple(groups or [None] * items),
        shown=tuple(shown),
        label_set=tuple("ABCDEFGH"[:n]),
        choices=np.array(choices, dtype=np.int16).reshape(items, len(shown)),
        gold=right,
        gold_kind=kind,
        permutable=np.array([True] * items if permutable is None else permutable, dtype=np.bool_),
        probs=None if probs is None else np.asarray(probs, dtype=np.float64),
        label_mass=None if label_mass is None else np.asarray(label_mass, dtype=np.float64),
        tied=None if tied is None else np.asarray(tied, dtype=np.bool_),
    )


def value(name: str, *strata: Outcomes, gold_ties: str = "exclude") -> float | None:
    row = measure(strata, names=[name], resamples=0, gold_ties=gold_ties)  # type: ignore[arg-type]
    return row[name].value


def cell(name: str, made: Outcomes, resamples: int = 0) -> Estimate:
    """The first value of a metric."""
    return measure([made], names=[name], resamples=resamples).values[name][0]


def by_letter(letters: str, shown: Sequence[Presentation]) -> list[int]:
    """Choices of one item from the letters that were answered ("?" unparsed, "=" tie, "-" missing)."""
    codes = {"?": U, "=": T, "-": M}
    return [
        codes[letter] if letter in codes else view.candidate_of_label("ABCDEFGH".index(letter))
        for letter, view in zip(letters, shown, strict=True)
    ]


def simulated(
    items: int, n: int, *, orders: str, position: float, seed: int, noise: float = 0.7
) -> Outcomes:
    """A judge with a planted push towards the first position, with its probabilities."""
    generator = np.random.default_rng(seed)
    shown = presentations(orders, n)
    gold = generator.integers(0, n, items)
    quality = generator.normal(size=(items, n))
    quality[np.arange(items), gold] += 1.0
    logits = np.empty((items, len(shown), n))
    for v, view in enumerate(shown):
        for c in range(n):
            push = position * (view.position_of_candidate(c) == 0)
            logits[:, v, c] = quality[:, c] + push + noise * generator.normal(size=items)
    probs = np.exp(logits)
    probs /= probs.sum(axis=2, keepdims=True)
    return outcomes(probs.argmax(axis=2).tolist(), gold=gold.tolist(), shown=shown, probs=probs)
