"""A biased judge that answers at once: items, and decisions about them by any question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
import numpy as np

from unswayed.decisions import Decision, Evidence, FloatArray
from unswayed.items import Item, Task, blind
from unswayed.methods.protocol import Method
from unswayed.permutations import Order, invert
from unswayed.presentation import Ask, presentations, settled, through

CHOICE_ALONE: Final[Mapping[str, Any]] = dict.fromkeys(("probs", "scores", "ranking", "flags"))
SILENT: Final[Mapping[str, Any]] = {"choice": None, **CHOICE_ALONE}
"""What a reply that cannot be read says."""


def sizes(method: Method) -> tuple[int, ...]:
    """Numbers of candidates that a method is tried with."""
    return (method.about.candidates,) if method.about.candidates else (2, 3, 4)


def make_items(method: Method, count: int, n: int, prefix: str = "q") -> list[Item]:
    """Items that the method works on: levels have values, listed in no order."""
    values = tuple(float((2 * c + 1) % (n + 1 - n % 2)) for c in range(n))
    return [
        Item(
            id=f"{prefix}{i}",
            task=Task.PAIRWISE if n == 2 else Task.MCQ,
            prompt=f"which of these, number {i}?",
            candidates=tuple(f"text {c} of {prefix}{i}" for c in range(n)),
            gold=i % n,
            group="odd" if i % 2 else "even",
            values=values if Evidence.LEVELS in method.reads else None,
        )
        for i in range(count)
    ]


def about(item: Item, ask: Ask) -> Ask:
    """The question that an ask is about this item."""
    question = settled(ask, item)
    assert question is not None
    return question


def _probs(item: Item, ask: Ask, seed: int) -> FloatArray:
    """Probability by candidate of a judge with taste, and bias for positions and labels."""
    bias = np.random.default_rng([seed, item.n]).normal(0, 0.8, (2, item.n))
    texts = item.candidates if ask.substitute is None else ask.substitute.candidates
    logit = np.empty(item.n)
    for position, candidate in enumerate(ask.presentation.order):
        text = str(texts[candidate])  # appeal hangs on the text alone, never on its index
        logit[candidate] = (
            float(np.random.default_rng([seed, *text.encode()]).normal(0, 1.2))
            + bias[0, position]
            + bias[1, ask.presentation.labels[position]]
            + 0.1 * ask.sample
        )
    probs = np.exp(logit - logit.max())
    return np.asarray(probs / probs.sum())


def rated(probs: FloatArray) -> dict[str, Any]:
    """What a judge with these probabilities says in full: choice, points, a ranking, a flag."""
    return {
        "choice": int(probs.argmax()),
        "probs": tuple(map(float, probs)),
        "scores": tuple(float(100 * p) for p in probs),
        "ranking": tuple(int(c) for c in np.argsort(-probs, kind="stable")),
        "flags": {"calibrated_uncertainty": tuple(bool(p < 0.3) for p in probs)},
    }


def answer(item: Item, ask: Ask, seed: int = 0) -> Decision:
    """The biased judge's decision."""
    ask = about(item, ask)
    label_set = tuple("ABCDEFG"[: item.n])
    return Decision(
        item_id=item.id,
        order=ask.presentation.order,
        labels=ask.presentation.symbols(label_set),
        label_set=label_set,
        sample=ask.sample,
        prompt_id=ask.prompt_id,
        **rated(_probs(item, ask, seed)),
        substitute=None if ask.substitute is None else ask.substitute.candidates,
        substitute_prompt=None if ask.substitute is None else ask.substitute.prompt,
    )


def fair(item: Item, ask: Ask) -> Decision:
    """The decision of a judge without bias: content-free texts are equal to it."""
    appeal = [np.random.default_rng([*str(text).encode()]).normal() for text in item.candidates]
    logit = np.array(appeal if ask.substitute is None else np.zeros(item.n))
    probs = np.exp(logit) / np.exp(logit).sum()
    return changed(answer(item, ask), **rated(probs))


def bare(item: Item, ask: Ask) -> Decision:
    """The biased judge's choice and nothing else."""
    return changed(answer(item, ask), **CHOICE_ALONE)


def changed(decision: Decision, **fields: Any) -> Decision:
    """A copy with other fields."""
    return msgspec.structs.replace(decision, **fields)


def pool(method: Method, items: Sequence[Item], seed: int = 0) -> list[Decision]:
    """Everything the method could ask, seen through every rotation of the candidates."""
    n = items[0].n
    views = presentations("cyclic", n)
    asks = dict.fromkeys(through(outer, ask) for outer in views for ask in method.asks(n))
    return [answer(item, ask, seed) for item in items for ask in asks]


def damage(
    decisions: Sequence[Decision], draw: np.random.Generator, rate: float = 0.25
) -> list[Decision]:
    """Drop, blank, tie and strip some decisions."""
    result = []
    for decision in decisions:
        fate = draw.random() / rate
        if decision.substitute is not None or fate > 1:
            result.append(decision)
        elif fate > 0.75:
            result.append(changed(decision, probs=None, ranking=None, flags=None))
        elif fate > 0.5:
            result.append(changed(decision, **SILENT))
        elif fate > 0.25:
            result.append(changed(decision, choice="tie"))
    return result


def rename(item: Item, decisions: Sequence[Decision], order: Order) -> tuple[Item, list[Decision]]:
    """The same item and calls once new candidate j is old candidate order[j]; nothing shown changes."""
    new_of = invert(order)

    def moved(values: Any) -> Any:
        return None if values is None else tuple(values[c] for c in order)

    calls = [
        changed(
            decision,
            order=tuple(new_of[c] for c in decision.order),
            choice=new_of[decision.choice] if isinstance(decision.choice, int) else decision.choice,
            probs=moved(decision.probs),
            scores=moved(decision.scores),
            ranking=decision.ranking and tuple(new_of[c] for c in decision.ranking),
            flags=decision.flags and {name: moved(flag) for name, flag in decision.flags.items()},
            substitute=moved(decision.substitute),
        )
        for decision in decisions
    ]
    renamed = msgspec.structs.replace(
        item, candidates=moved(item.candidates), values=moved(item.values)
    )
    return renamed, calls


@lru_cache(maxsize=64)
def fitted(method: Method, n: int, seed: int = 0) -> Method:
    """The method, fitted on 30 items of its own where it learns anything."""
    return fit_by(method, 30, n, lambda item, ask: answer(item, ask, seed))


def fit_by(method: Method, count: int, n: int, say: Callable[[Item, Ask], Decision]) -> Method:
    """The method, fitted on what a judge says of `count` items."""
    items = [blind(item) for item in make_items(method, count, n, "fit")]
    return method.fit(items, [say(item, ask) for item, ask in method.plan_fit(items)])
