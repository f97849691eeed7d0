"""The sets of presentations that methods read, and the weights that balance them."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from unswayed.model.permutations import Order, cyclic
from unswayed.model.presentation import Ask, Presentation, presentations

Reading = Literal["coupled", "label", "order", "all"]
"""Parts that move between the presentations read: see `presentation.presentations`; all = the three."""


Turning = Literal["given", "rotate"]
"""Criteria that are asked at once: in the item's own order, or rotated from call to call."""


@lru_cache(maxsize=256)
def canonical_ask(n: int, *, prompt_id: str = "default", sample: int = 0) -> Ask:
    """Return the one question of a single-call method: the item as it was given."""
    own = tuple(range(n))
    return Ask(Presentation(own, own), prompt_id, sample)


def content_ask(n: int) -> Ask:
    """Return the item with its candidates sorted by their content, labels in their own sequence."""
    return canonical_ask(n)._replace(arranged="content")


@lru_cache(maxsize=256)
def presentation_set(
    orders: str, n: int, layouts: Reading = "coupled", seed: int = 0
) -> tuple[Presentation, ...]:
    """Return the presentations of a set of orders, the canonical one first.

    `orders` is a set of `permutations.orders`, `graeco-latin`, or `auto`: cyclic, which is the swap
    for two candidates. Layouts `all` is the union of coupled, order-only and label-only (X0, X2,
    X1, X3 for two candidates).
    """
    name = "cyclic" if orders == "auto" else orders
    if layouts != "all" or name == "graeco-latin":
        protocol = "coupled" if layouts == "all" else layouts
        return presentations(name, n, protocol=protocol, seed=seed)
    union: dict[Presentation, None] = {}
    for protocol in ("coupled", "order", "label"):
        union.update(dict.fromkeys(presentations(name, n, protocol=protocol, seed=seed)))
    return tuple(union)


@lru_cache(maxsize=256)
def asks_of_set(
    orders: str, n: int, layouts: Reading = "coupled", seed: int = 0, criteria: Turning = "given"
) -> tuple[Ask, ...]:
    """Return the questions of a method that reads a set: its t-th presentation, and with "rotate" the
    criteria of the item turned by t (mod m).

    A criterion stands at every place equally often where m divides the number of presentations;
    else the numbers differ by one. An item without criteria is asked the same either way.
    """
    shown = presentation_set(orders, n, layouts, seed)
    return tuple(
        Ask(own, turned=turn if criteria == "rotate" else 0) for turn, own in enumerate(shown)
    )


@lru_cache(maxsize=256)
def presentation_weights(
    orders: str, n: int, layouts: Reading = "coupled", seed: int = 0
) -> tuple[int, ...]:
    """Weights under which every candidate meets every position and every label equally often.

    With m position-balanced orders, the union of the three protocols shows a candidate m times
    more at its own position (label-only) and with its own label (order-only). Weight m-1 on the
    coupled presentations and 1 on all others evens both out; for two candidates all are 1.

    >>> presentation_weights("cyclic", 3, "all")
    (1, 2, 2, 1, 1, 1, 1)
    """
    shown = presentation_set(orders, n, layouts, seed)
    if layouts != "all" or orders == "graeco-latin":
        return (1,) * len(shown)
    own = tuple(range(n))
    coupled = sum(shape.labels == own for shape in shown)
    return tuple(
        coupled - 1 if shape.labels == own and shape.order != own else 1 for shape in shown
    )


def label_layouts(n: int, which: Literal["canonical", "all"]) -> tuple[Order, ...]:
    """Label sequences over positions: the label set's own, or its n rotations (AB and BA)."""
    return cyclic(n)[:1] if which == "canonical" else cyclic(n)


def orbit(n: int, layout: Order) -> tuple[Presentation, ...]:
    """Return the n rotations of the candidates under one fixed label sequence.

    Every candidate carries every label once, so the content averages out of each label's mean:
    X0 and X2 for the sequence AB, X3 and X1 for BA.

    >>> [shown.order for shown in orbit(3, (0, 1, 2))]
    [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    """
    return tuple(Presentation(order, layout) for order in cyclic(n))
