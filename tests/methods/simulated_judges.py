"""Judges with planted content, position, label and noise terms, as tables of decisions.

The generators of the method specification: for two candidates, u ~ N(0, 1.5) and
logit P(A) = +-1.2 u + label (label A) +- slot (A first) + N(0, noise), gold ~ Bernoulli(sigmoid(2u)).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unswayed.methods.estimation import MethodWarning
from unswayed.methods.names import parse_method
from unswayed.methods.protocol import Method
from unswayed.model.decisions import TIE, Decision, DecisionTable
from unswayed.model.items import Item, Task
from unswayed.model.presentation import X0, X1, X2, X3, Ask, Presentation

FOUR = (X0, X1, X2, X3)


@dataclass(frozen=True)
class Simulated:
    """Decisions on items with known gold."""

    table: DecisionTable  # one column per presentation
    gold: np.ndarray  # right candidate, shape (I,)


def table_of(
    probs: np.ndarray, shown: Sequence[Presentation], groups: Sequence[str | None] | None = None
) -> DecisionTable:
    """Probabilities by candidate, shape (I, T, n), as a table."""
    rows, _, n = probs.shape
    items = tuple(
        Item(
            id=f"s{row}",
            task=Task.PAIRWISE if n == 2 else Task.MCQ,
            prompt="?",
            candidates=tuple(f"{row}.{c}" for c in range(n)),
            group=None if groups is None else groups[row],
        )
        for row in range(rows)
    )
    return DecisionTable(
        items=items,
        asks=tuple(Ask(shape) for shape in shown),
        shown=tuple(shown),
        label_set=tuple("ABCDEFG"[:n]),
        choices=probs.argmax(axis=2).astype(np.int16),
        probs=probs,
    )


def answers(
    choices: Sequence[Sequence[int]] | np.ndarray, shown: Sequence[Presentation | Ask], n: int = 2
) -> DecisionTable:
    """Choices by candidate, shape (I, T), without probabilities."""
    asks = tuple(ask if isinstance(ask, Ask) else Ask(ask) for ask in shown)
    table = table_of(np.zeros((len(choices), len(asks), n)), [ask.presentation for ask in asks])
    return replace(table, asks=asks, choices=np.asarray(choices, dtype=np.int16), probs=None)


def decision(
    item_id: str, asked: Presentation | Ask, choice: object = 0, p_a: float | None = None
) -> Decision:
    """One answer about two candidates; with the probability of label A."""
    ask = asked if isinstance(asked, Ask) else Ask(asked)
    shown, substitute = ask.presentation, ask.substitute
    rest = None if p_a is None else (p_a, 1 - p_a)
    return Decision(
        item_id=item_id,
        order=shown.order,
        labels=shown.symbols("AB"),
        label_set=("A", "B"),
        prompt_id=ask.prompt_id,
        choice=choice,  # type: ignore[arg-type]
        probs=rest if rest is None or shown.candidate_of_label(0) == 0 else rest[::-1],
        substitute=substitute and substitute.candidates,
        substitute_prompt=substitute and substitute.prompt,
    )


def decisions_of(table: DecisionTable, digits: int = 17) -> list[Decision]:
    """The decisions of a table about two candidates, probabilities rounded."""
    p_a = np.round(table.probs, digits)  # type: ignore[arg-type]
    return [
        decision(
            item.id,
            shown,
            int(table.choices[row, column]),
            float(p_a[row, column, shown.candidate_of_label(0)]),
        )
        for row, item in enumerate(table.items)
        for column, shown in enumerate(table.shown)
    ]


def saturating(logit: np.ndarray) -> np.ndarray:
    """A judge whose scale is stretched above 0 and squeezed below."""
    return np.where(logit > 0, 3.0 * logit, 0.7 * logit)


def pairs(
    count: int,
    *,
    label: float = 0.4,
    slot: float = 0.6,
    noise: float = 0.4,
    seed: int = 0,
    shift: float = 0.0,
    link: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Simulated:
    """Two candidates under X0, X1, X2, X3: preferences and noise in logits, `link` distorts them.

    `shift` is the mean advantage of candidate 0; 1.4 makes it right in 80% of the items.
    """
    rng = np.random.default_rng(seed)
    u = rng.normal(shift, 1.5, count)
    gold = np.where(rng.random(count) < 1 / (1 + np.exp(-2 * u)), 0, 1)
    probs = np.empty((count, 4, 2))
    for column, shape in enumerate(FOUR):
        holder = shape.candidate_of_label(0)
        first = shape.position_of_label(0) == 0
        logit = 1.2 * u * (1 if holder == 0 else -1) + label + (slot if first else -slot)
        logit = logit + rng.normal(0, noise, count)
        p_a = 1 / (1 + np.exp(-(logit if link is None else link(logit))))
        probs[:, column, holder] = p_a
        probs[:, column, 1 - holder] = 1 - p_a
    return Simulated(table_of(probs, FOUR), gold)


def choices_options(
    count: int,
    n: int,
    shown: Sequence[Presentation],
    *,
    positions: Sequence[float],
    labels: Sequence[float],
    noise: float = 0.4,
    seed: int = 0,
) -> Simulated:
    """n options: log p = quality + position effect + label effect + noise; gold is noisy quality."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(0, 1.2, (count, n))
    gold = (quality + rng.gumbel(0, 0.35, (count, n))).argmax(axis=1)
    logit = np.repeat(quality[:, None, :], len(shown), axis=1)
    logit += rng.normal(0, noise, logit.shape)
    for column, shape in enumerate(shown):
        for position, candidate in enumerate(shape.order):
            logit[:, column, candidate] += positions[position] + labels[shape.labels[position]]
    probs = np.exp(logit)
    probs /= probs.sum(axis=2, keepdims=True)
    return Simulated(table_of(probs, shown), gold)


def fit(spec: str | Method, table: DecisionTable) -> Method:
    """The method that a name stands for, fitted on what it asks of a table, without warnings."""
    method = parse_method(spec) if isinstance(spec, str) else spec
    if not method.learns:
        return method
    asks = list(dict.fromkeys(ask for _, ask in method.plan_fit(table.items)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        return method.fit_tables({table.n: table.select(asks)})


def verdicts(method: Method, table: DecisionTable, views: Sequence[Presentation]) -> np.ndarray:
    """Choices by candidate of the item itself under each view, shape (I, views)."""
    result = np.empty((len(table), len(views)), dtype=int)
    for at, outer in enumerate(views):
        seen = method.decide_table(table.select(method.asks(table.n), through=outer)).choices
        back = np.array(outer.order)
        result[:, at] = np.where(seen >= 0, back[np.maximum(seen, 0)], seen)
    return result


def accuracy(choices: np.ndarray, gold: np.ndarray) -> float:
    """Mean accuracy in percent; ties and nulls are wrong."""
    return 100 * float((choices == gold[:, None]).mean())


def kappa(choices: np.ndarray, n: int = 2) -> float:
    """Fleiss' kappa in percent, raters = views."""
    counts = np.stack([(choices == c).sum(axis=1) for c in range(n)], axis=1)
    raters = choices.shape[1]
    agreed = ((counts**2).sum(axis=1) - raters) / (raters * (raters - 1))
    share = counts.sum(axis=0) / counts.sum()
    expected = float((share**2).sum())
    return 100 * (float(agreed.mean()) - expected) / (1 - expected)


def consistency(choices: np.ndarray) -> float:
    """Share of items with one choice under all views, in percent."""
    same = (choices == choices[:, :1]).all(axis=1) & (choices[:, 0] != TIE)
    return 100 * float(same.mean())
