"""Presentation = order x labels, and the only conversions label <-> position <-> candidate.

Three index spaces: *candidate* (index in the item's own list), *position* (display slot, first is
0), *label* (index into the label set, whose symbol is printed). Nothing else in the package
converts between them.

For two candidates a, b the four presentations are CalibraEval's (arXiv 2410.15393)

    name  displayed    order   labels   is, relative to X0
    X0    A:a, B:b     (0, 1)  (0, 1)   default
    X1    B:b, A:a     (1, 0)  (1, 0)   order-only swap
    X2    A:b, B:a     (1, 0)  (0, 1)   coupled swap
    X3    B:a, A:b     (0, 1)  (1, 0)   label-only swap
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, get_args

from unswayed.base.digests import digest
from unswayed.base.errors import ShapeError, UnknownNameError
from unswayed.base.registry import did_you_mean
from unswayed.model import permutations
from unswayed.model.items import Item, text_of
from unswayed.model.permutations import Order, compose, invert

Protocol = Literal["coupled", "label", "order", "criteria"]
PROTOCOLS: Final[tuple[Protocol, ...]] = get_args(Protocol)


class Presentation(NamedTuple):
    """Order and labels in which one item is shown.

    Attributes:
        order: `order[p]` = candidate shown at position p.
        labels: `labels[p]` = label index printed at position p.
    """

    order: Order
    labels: Order

    @property
    def n(self) -> int:
        """Number of candidates."""
        return len(self.order)

    def candidate_of_label(self, label: int) -> int:
        """Return the candidate that carries `label`."""
        return self.order[self.labels.index(label)]

    def label_of_candidate(self, candidate: int) -> int:
        """Return the label that `candidate` carries."""
        return self.labels[self.order.index(candidate)]

    def position_of_candidate(self, candidate: int) -> int:
        """Return the position at which `candidate` is shown."""
        return self.order.index(candidate)

    def position_of_label(self, label: int) -> int:
        """Return the position at which `label` is printed."""
        return self.labels.index(label)

    def candidates_by_label(self) -> Order:
        """`result[l]` = the candidate that carries label l."""
        return tuple(self.order[p] for p in invert(self.labels))

    def labels_by_candidate(self) -> Order:
        """`result[c]` = the label that candidate c carries."""
        return invert(self.candidates_by_label())

    def symbols(self, label_set: Sequence[str]) -> tuple[str, ...]:
        """Return the symbols printed at the positions, first position first."""
        return tuple(label_set[label] for label in self.labels)

    def check(self) -> Presentation:
        """Return self if both parts are permutations of the same length."""
        invert(self.order)
        invert(self.labels)
        if len(self.order) != len(self.labels):
            raise ShapeError(
                f"order has {len(self.order)} candidates but labels has {len(self.labels)}"
            )
        return self


class Substitution(NamedTuple):
    """Content-free text in place of the candidates (and of the prompt, where given).

    Attributes:
        candidates: One text per candidate.
        prompt: Text in place of the prompt; None keeps the item's own.
    """

    candidates: tuple[str, ...]
    prompt: str | None = None


class Ask(NamedTuple):
    """One thing a method wants to know; the runner turns it into a call.

    Attributes:
        presentation: Order x labels.
        prompt_id: A prompt of the run: default, direct, reasoning, debias, ...
        sample: Index of a repeated sample of the same prompt; 0 is the greedy answer.
        substitute: Content-free text in place of the candidates, for calibration.
        arranged: What the order of `presentation` counts: the candidates as "given", or sorted by
            their "content", whatever order they were given in. `settled` makes the one from the
            other for an item.
        criteria: `criteria[k]` = criterion of the item that is printed at place k; empty for the
            item's own order, and where it has no criteria.
        turned: By how many places the criteria are rotated, whatever their number: place k shows
            criterion k + turned (mod m). `settled` makes the order of it; 0 for an item without.
    """

    presentation: Presentation
    prompt_id: str = "default"
    sample: int = 0
    substitute: Substitution | None = None
    arranged: Literal["given", "content"] = "given"
    criteria: Order = ()
    turned: int = 0

    @property
    def is_settled(self) -> bool:
        """True if it means the same for every item."""
        return self.arranged == "given" and not self.turned

    def criteria_order(self, m: int) -> Order:
        """Return the order of an item's m criteria; empty for its own."""
        return self.criteria or rotated(m, self.turned)

    @property
    def as_given(self) -> bool:
        """True if it shows the item in its own order, labels in their own sequence."""
        return (
            self.arranged == "given"
            and not self.criteria
            and not self.turned
            and self.presentation == canonical(self.presentation.n)
        )


X0: Final = Presentation((0, 1), (0, 1))
X1: Final = Presentation((1, 0), (1, 0))
X2: Final = Presentation((1, 0), (0, 1))
X3: Final = Presentation((0, 1), (1, 0))


def canonical(n: int) -> Presentation:
    """Return the item as it was given: its own order, labels in their own sequence."""
    own = tuple(range(n))
    return Presentation(own, own)


def presentations(
    orders: str, n: int, *, protocol: Protocol = "coupled", seed: int = 0
) -> tuple[Presentation, ...]:
    """Return the presentations of a named set of orders under one protocol, the canonical one first.

    coupled: candidates move, labels stay with the positions (A first). label: candidates stay,
    labels move. order: candidates move and take their labels along. criteria: neither moves.

    >>> [p.symbols("AB") for p in presentations("swap", 2, protocol="label")]
    [('A', 'B'), ('B', 'A')]

    Args:
        orders: Name of a set of orders, `random:K`, or `graeco-latin` (its own labels; the
            protocol must be coupled).
        n: Number of candidates.
        protocol: Parts that move.
        seed: Seed of `random:K`.
    """
    if protocol not in PROTOCOLS:
        raise UnknownNameError(
            f"unknown protocol {protocol!r}. {did_you_mean(protocol, (*PROTOCOLS, 'all'))}"
        )
    if orders == "graeco-latin" and protocol != "criteria":
        return tuple(Presentation(*pair) for pair in permutations.graeco_latin(n))
    own = tuple(range(n))
    if protocol == "criteria":
        return (canonical(n),)
    moves = permutations.orders(orders, n, seed=seed)
    if protocol == "coupled":
        return tuple(Presentation(order, own) for order in moves)
    if protocol == "order":
        return tuple(Presentation(order, order) for order in moves)
    return tuple(Presentation(own, order) for order in moves)


def view(outer: Presentation, asked: Presentation) -> Presentation:
    """Return the presentation really shown when `asked` is asked of an item seen through `outer`.

    Seen through `outer`, candidate j is the item's candidate `outer.order[j]` and label l is
    printed as `outer.labels[l]`. One composition serves coupled, label-only and order-only
    protocols; `view(X1, X2)` is `X3`.

    >>> swapped = Presentation((1, 0), (0, 1))
    >>> view(swapped, swapped) == canonical(2)
    True
    """
    return Presentation(
        compose(outer.order, asked.order),
        compose(outer.labels, asked.labels),
    )


def through(outer: Presentation, ask: Ask) -> Ask:
    """Return the question really asked when `ask` is asked of an item seen through `outer`.

    Candidates sorted by content stand where they stand in every view.
    """
    seen = view(outer, ask.presentation)
    if ask.arranged == "content":
        seen = Presentation(ask.presentation.order, seen.labels)
    return ask._replace(presentation=seen)


def settled(ask: Ask, item: Item) -> Ask | None:
    """Return the question about this item as given; None if it has no content to sort by.

    An item that may not be permuted is asked in its own order, whatever was asked of its content.
    """
    if ask.is_settled:
        return ask
    order = content_order(item) if ask.arranged == "content" else None
    if ask.arranged == "content" and order is None:
        return None
    return settled_by(ask, order, item)


def settled_by(ask: Ask, order: Order | None, item: Item) -> Ask:
    """Return the question about an item whose candidates are sorted so by content (None: not asked for)."""
    if order is not None:
        if item.permutable:
            order = compose(order, ask.presentation.order)
        shown = Presentation(order, ask.presentation.labels)
        ask = ask._replace(presentation=shown, arranged="given")
        if not item.permutable:
            return ask._replace(turned=0)
    if ask.turned:
        ask = ask._replace(criteria=ask.criteria_order(len(item.criteria or ())), turned=0)
    return ask


def rotated(m: int, turned: int) -> Order:
    """Return the order of m criteria rotated by some places; empty where it is their own.

    >>> rotated(3, 1)
    (1, 2, 0)
    >>> rotated(3, 3)
    ()
    """
    return tuple([(place + turned) % m for place in range(m)]) if m and turned % m else ()


def askable(item: Item, asks: Sequence[Ask]) -> tuple[Ask, ...]:
    """Return the questions that this item allows, each once, as given.

    An item that may not be permuted allows only its own order, labels in their own sequence: a
    text that refers to a candidate may name its label. `DecisionTable.allowed` is the same mask over columns.
    """
    if item.permutable and all(ask.is_settled for ask in asks):
        return tuple(asks)
    about_item = dict.fromkeys(ask for asked in asks if (ask := settled(asked, item)) is not None)
    return tuple(ask for ask in about_item if item.permutable or ask.as_given)


def content_order(item: Item) -> Order | None:
    """Return the candidates sorted by the sha256 of their text, then by text; equal texts as they stand.

    Levels of a scale are sorted by their values instead, the lowest first: the usual scale. An item
    that may not be permuted keeps its own order. Recorded decisions may have no text: then there is
    no such order.
    """
    if not item.permutable:
        return tuple(range(item.n))
    texts = [text_of(candidate) for candidate in item.candidates]
    if item.values is not None and len(item.values) == item.n:
        values = item.values
        return tuple(sorted(range(item.n), key=lambda c: (values[c], texts[c], c)))
    if not any(texts):
        return None
    digests = [digest(text) for text in texts]
    return tuple(sorted(range(item.n), key=lambda c: (digests[c], texts[c], c)))


def label_symbols(n: int, *, letters: bool = True) -> tuple[str, ...]:
    """Return the usual labels: A, B, ... for up to 26 candidates, else (or without letters) 1, 2, ....

    >>> label_symbols(3)
    ('A', 'B', 'C')
    >>> label_symbols(30)[-1]
    '30'
    """
    if letters and n <= len(string.ascii_uppercase):
        return tuple(string.ascii_uppercase[:n])
    return tuple(str(label) for label in range(1, n + 1))
