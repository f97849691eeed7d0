"""A biased judge that answers at once: items, and decisions about them by any question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, Final

import msgspec
import numpy as np

from unswayed.methods.protocol import Method
from unswayed.model.decisions import Decision, DecisionTable, Evidence, FloatArray
from unswayed.model.items import Item, Task, blind
from unswayed.model.permutations import Order, invert
from unswayed.model.presentation import Ask, presentations, settled, through

Judge = Callable[[Item, Ask], Decision]

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


@cache
def _appeal(text: str, seed: int) -> float:
    """Return the worth of a text to a judge: it depends on the text alone, never on its index."""
    return float(np.random.default_rng([seed, *text.encode()]).normal(0, 1.2))


@cache
def _bias(n: int, seed: int) -> FloatArray:
    """Return the worth of n positions and n labels to a judge, shape (2, n)."""
    return np.random.default_rng([seed, n]).normal(0, 0.8, (2, n))


def _probs(item: Item, ask: Ask, seed: int, biased: bool) -> FloatArray:
    shown = item.candidates
    if ask.substitute is not None:  # content-free texts are equal to a fair judge
        shown = ask.substitute.candidates if biased else ("",) * item.n
    logit = np.array([_appeal(str(text), seed) for text in shown])
    if biased:
        by_position, by_label = _bias(item.n, seed)
        logit[list(ask.presentation.order)] += by_position + by_label[[*ask.presentation.labels]]
    probs = np.exp(logit - logit.max())
    return np.asarray(probs / probs.sum())


def answer(item: Item, ask: Ask, seed: int = 0, *, biased: bool = True, **said: Any) -> Decision:
    """Return a judge's choice, probabilities, points, ranking and flag, but for what is `said` instead."""
    question = settled(ask, item)
    assert question is not None
    label_set = tuple("ABCDEFG"[: item.n])
    probs = _probs(item, question, seed, biased)
    told: dict[str, Any] = {
        "choice": int(probs.argmax()),
        "probs": tuple(map(float, probs)),
        "scores": tuple(float(100 * p) for p in probs),
        "ranking": tuple(int(c) for c in np.argsort(-probs, kind="stable")),
        "flags": {"calibrated_uncertainty": tuple(bool(p < 0.3) for p in probs)},
    }
    substitute = question.substitute
    return Decision(
        item_id=item.id,
        order=question.presentation.order,
        labels=question.presentation.symbols(label_set),
        label_set=label_set,
        sample=question.sample,
        prompt_id=question.prompt_id,
        substitute=None if substitute is None else substitute.candidates,
        substitute_prompt=None if substitute is None else substitute.prompt,
        **told | said,
    )


fair: Final = partial(answer, seed=1, biased=False)
bare: Final = partial(answer, **CHOICE_ALONE)
silent: Final = partial(answer, **SILENT)


def flat(item: Item, ask: Ask) -> Decision:
    """Return the decision of a judge to whom all candidates are equally probable."""
    return answer(item, ask, probs=(1 / item.n,) * item.n)


def replies(method: Method, items: Sequence[Item], judge: Judge = answer) -> list[Decision]:
    """Everything that the method asks about each item."""
    return [judge(item, ask) for item in items for ask in method.asks(item.n)]


def pool(method: Method, items: Sequence[Item], judge: Judge = answer) -> list[Decision]:
    """Everything the method could ask, seen through every rotation of the candidates."""
    n = items[0].n
    views = presentations("cyclic", n)
    asks = dict.fromkeys(through(outer, ask) for outer in views for ask in method.asks(n))
    return [judge(item, ask) for item in items for ask in asks]


def table_of(method: Method, items: Sequence[Item], calls: Sequence[Decision]) -> DecisionTable:
    """Return the decisions as the method's own table."""
    return DecisionTable.of(items, calls).select(method.asks(items[0].n))


def changed(decision: Decision, **fields: Any) -> Decision:
    """Return a copy with other fields."""
    return msgspec.structs.replace(decision, **fields)


def damage(calls: Sequence[Decision], seed: int, rate: float = 0.25) -> list[Decision]:
    """Drop, blank, tie and strip some decisions."""
    draw, result = np.random.default_rng(seed), []
    for decision in calls:
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


def rename(item: Item, calls: Sequence[Decision], order: Order) -> tuple[Item, list[Decision]]:
    """Return the same item and calls once new candidate j is old candidate order[j]; nothing shown changes."""
    new_of = invert(order)

    def moved(values: Any) -> Any:
        return None if values is None else tuple(values[c] for c in order)

    renamed = [
        changed(
            call,
            order=tuple(new_of[c] for c in call.order),
            choice=new_of[call.choice] if isinstance(call.choice, int) else call.choice,
            probs=moved(call.probs),
            scores=moved(call.scores),
            ranking=call.ranking and tuple(new_of[c] for c in call.ranking),
            flags=call.flags and {name: moved(flag) for name, flag in call.flags.items()},
            substitute=moved(call.substitute),
        )
        for call in calls
    ]
    fields = {"candidates": moved(item.candidates), "values": moved(item.values)}
    return msgspec.structs.replace(item, **fields), renamed


@lru_cache(maxsize=64)
def fitted(method: Method, n: int, seed: int = 0) -> Method:
    """Return the method, fitted on 30 items of its own where it learns anything."""
    return fit_by(method, 30, n, partial(answer, seed=seed))


def fit_by(method: Method, count: int, n: int, judge: Judge) -> Method:
    """Return the method, fitted on what a judge says of `count` items."""
    items = [blind(item) for item in make_items(method, count, n, "fit")]
    return method.fit(items, [judge(item, ask) for item, ask in method.plan_fit(items)])
