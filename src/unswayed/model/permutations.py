"""Sets of orders: which candidate stands at which position, for any number of candidates.

An order is a tuple `order` with `order[p]` = the candidate shown at position p, so for four
candidates `(1, 2, 3, 0)` reads BCDA: the second candidate is shown first.

Sources: PA-GRPO (arXiv 2603.21016) for the structured set; the rest are standard designs.
"""

from __future__ import annotations

import itertools
import math
import random as _random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from unswayed.base.errors import ShapeError, UnknownNameError, UsageError
from unswayed.base.registry import did_you_mean

Order = tuple[int, ...]

FULL_LIMIT = 6
"""Largest number of candidates for which all n! orders are made (720)."""

MOST_ORDERS = 128
"""Orders of one item with more than 6 candidates: an audit takes each of them through each other,
which grows with the cube of n.
"""

MOST_CANDIDATES: Mapping[str, int] = {
    "identity": 1000,
    "cyclic": MOST_ORDERS,
    "structured": MOST_ORDERS - 1,
    "balanced": MOST_ORDERS // 2,
    "williams": MOST_ORDERS // 2,
    "graeco-latin": MOST_ORDERS,
    "random:K": MOST_ORDERS,
}
"""Largest number of candidates of a set of orders."""


def invert(order: Order) -> Order:
    """Return the inverse permutation: `invert(order)[c]` is the position at which candidate c is shown.

    >>> invert((2, 0, 1))
    (1, 2, 0)
    """
    inverse = [-1] * len(order)
    for position, candidate in enumerate(order):
        if not 0 <= candidate < len(order) or inverse[candidate] != -1:
            raise ShapeError(f"{order} is not a permutation of 0..{len(order) - 1}")
        inverse[candidate] = position
    return tuple(inverse)


@dataclass(frozen=True, slots=True)
class Exposure:
    """Counts of how often a set of orders shows each candidate at each position."""

    # `counts[c][p]` = orders that show candidate c at position p
    counts: tuple[tuple[int, ...], ...]

    @property
    def orders(self) -> int:
        """Size of the set."""
        return sum(self.counts[0])

    @property
    def first(self) -> tuple[int, ...]:
        """Number of times each candidate is shown first."""
        return tuple(by_position[0] for by_position in self.counts)

    @property
    def is_even_first(self) -> bool:
        """True if every candidate stands first equally often."""
        return len(set(self.first)) == 1


def exposure(shown: Sequence[Order]) -> Exposure:
    """Count how evenly a set of orders of n candidates shows them.

    >>> exposure(structured(3)).counts
    ((1, 1, 2), (1, 2, 1), (2, 1, 1))
    """
    if not shown:
        raise ShapeError("exposure needs at least one order")
    n = len(shown[0])
    counts = [[0] * n for _ in range(n)]
    for order in shown:
        for candidate, position in enumerate(invert(order)):
            counts[candidate][position] += 1
    return Exposure(tuple(map(tuple, counts)))


def compose(outer: Order, inner: Order) -> Order:
    """`outer` after `inner`: position p shows candidate `outer[inner[p]]`.

    >>> compose((1, 2, 0), (2, 0, 1))
    (0, 1, 2)
    """
    return tuple([outer[k] for k in inner])  # a list: half as long again with a generator


def identity(n: int) -> tuple[Order, ...]:
    """Return the items' own order only."""
    return (tuple(range(n)),)


def swap(n: int) -> tuple[Order, ...]:
    """Both orders of two candidates."""
    if n != 2:
        raise UsageError(
            f"orders 'swap' needs 2 candidates, got {n}. Use cyclic, balanced or full."
        )
    return ((0, 1), (1, 0))


def cyclic(n: int) -> tuple[Order, ...]:
    """Return the n rotations; every candidate stands once at every position. n=4: ABCD BCDA CDAB DABC.

    >>> cyclic(3)
    ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    """
    return tuple(tuple((p + shift) % n for p in range(n)) for shift in range(n))


def structured(n: int) -> tuple[Order, ...]:
    """Return the n rotations and the reversed list (n+1 orders; 2 for n=2, where they coincide).

    Not balanced over positions: use it for training groups as in PA-GRPO, not for averaging.

    >>> structured(3)
    ((0, 1, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    """
    return _distinct((*cyclic(n), tuple(reversed(range(n)))))


def balanced(n: int) -> tuple[Order, ...]:
    """Return the n rotations and the n rotations of the reversed list (2n orders for n > 2).

    Every candidate stands equally often at every position, forwards and backwards.
    """
    return _distinct((*cyclic(n), *(tuple(reversed(order)) for order in cyclic(n))))


def reverse(n: int) -> tuple[Order, ...]:
    """Return the items' own order and the reversed one."""
    return (*identity(n), tuple(reversed(range(n))))


def williams(n: int) -> tuple[Order, ...]:
    """Return a Williams design: n orders, 2n for odd n > 1.

    Each candidate stands equally often at every position, and directly before every other one (Williams
    1949, Australian Journal of Scientific Research A 2, 149).

    >>> williams(4)
    ((0, 1, 2, 3), (1, 3, 0, 2), (2, 0, 3, 1), (3, 2, 1, 0))
    """
    steps = tuple((place + 1) // 2 * (-1) ** (place + 1) % n for place in range(n))
    named = invert(steps)  # so that the first order is the items' own
    square = [tuple(named[(row + step) % n] for step in steps) for row in steps]
    return _distinct((*square, *(order[::-1] for order in square if n % 2)))


def full(n: int) -> tuple[Order, ...]:
    """All n! orders, the identity first."""
    if n > FULL_LIMIT:
        raise UsageError(
            f"orders 'full' means {math.factorial(n):,} orders for {n} candidates; the limit is "
            f"{FULL_LIMIT} candidates. Use balanced or random:K."
        )
    return tuple(itertools.permutations(range(n)))


def random(n: int, k: int, *, seed: int) -> tuple[Order, ...]:
    """Return the identity and k-1 other distinct orders drawn with a recorded seed (all n! if k is larger)."""
    if k < 1:
        raise UsageError(f"random:{k} asks for no orders; give at least 1.")
    if n <= FULL_LIMIT:
        others = list(itertools.permutations(range(n)))[1:]
        draw = _random.Random(f"{seed}:{n}").sample(others, min(k - 1, len(others)))
        return (tuple(range(n)), *draw)
    generator = _random.Random(f"{seed}:{n}")
    chosen = {tuple(range(n)): None}
    while len(chosen) < min(k, math.factorial(n)):
        order = list(range(n))
        generator.shuffle(order)
        chosen[tuple(order)] = None
    return tuple(chosen)


def graeco_latin(n: int) -> tuple[tuple[Order, Order], ...]:
    """n presentations that balance position and label at once, as (order, labels at positions).

    Candidate c stands once at every position, carries every label once, and every label stands
    once at every position. Odd n: position t+c, label t+2c (mod n); n=4: over GF(4).

    >>> graeco_latin(3)
    (((0, 1, 2), (0, 2, 1)), ((2, 0, 1), (2, 1, 0)), ((1, 2, 0), (1, 0, 2)))
    """
    check_size("graeco-latin", n)
    if n >= 3 and n % 2 == 1:
        positions = [[(t + c) % n for c in range(n)] for t in range(n)]
        labels = [[(t + 2 * c) % n for c in range(n)] for t in range(n)]
    elif n == 4:
        multiply = (0, 2, 3, 1)
        positions = [[t ^ c for c in range(n)] for t in range(n)]
        labels = [[t ^ multiply[c] for c in range(n)] for t in range(n)]
    else:
        raise UsageError(
            f"there is no Graeco-Latin set for {n} candidates. "
            "Use --protocol all with swap (2 candidates) or cyclic (more)."
        )
    result = []
    for position_of, label_of in zip(positions, labels, strict=True):
        order = invert(tuple(position_of))
        result.append((order, tuple(label_of[c] for c in order)))
    return tuple(result)


def _distinct(orders: tuple[Order, ...]) -> tuple[Order, ...]:
    return tuple(dict.fromkeys(orders))


ORDER_SETS: Mapping[str, Callable[[int], tuple[Order, ...]]] = {
    "identity": identity,
    "swap": swap,
    "cyclic": cyclic,
    "structured": structured,
    "balanced": balanced,
    "reverse": reverse,
    "williams": williams,
    "full": full,
}


def orders(name: str, n: int, *, seed: int = 0) -> tuple[Order, ...]:
    """Return the named set of orders for n candidates, the identity first; the seed is that of `random:K`.

    `graeco-latin` also fixes the labels: see `presentation.presentations`.
    """
    if n < 2:
        raise UsageError(f"an order needs at least 2 candidates, got {n}.")
    check_name(name)
    if name.startswith("random:"):
        count = name.removeprefix("random:")
        check_size("random:K", n)
        if n > FULL_LIMIT and int(count) > MOST_ORDERS:
            raise UsageError(
                f"orders {name!r} of {n} candidates: the limit is random:{MOST_ORDERS} for more "
                f"than {FULL_LIMIT} candidates. Use fewer."
            )
        return random(n, int(count), seed=seed)
    check_size(name, n)
    return ORDER_SETS[name](n)


def check_name(name: str) -> None:
    """Check that `orders` makes a set of this name, for some number of candidates."""
    if name.startswith("random:"):
        if not name.removeprefix("random:").isdigit():
            raise UsageError(f"{name!r}: write random:K with a whole number K, such as random:8.")
    elif name not in ORDER_SETS:
        names = [*ORDER_SETS, "graeco-latin", "random:K"]
        raise UnknownNameError(f"unknown orders {name!r}. {did_you_mean(name, names)}")


def check_size(name: str, n: int) -> None:
    """Check that a set of orders is not too large for n candidates."""
    limit = MOST_CANDIDATES.get(name, n)
    if n > limit:
        raise UsageError(
            f"orders {name!r} support at most {limit} candidates, got {n:,}. Remove items with "
            "more, or give them fewer candidates."
        )
