"""What a method is: plan -> calls -> decide, over one pool of recorded calls.

A method is a frozen dataclass: its hyperparameters, and what it has learned (None before `fit`).
It never calls a model and never sees gold. `decide_table` is the method itself, vectorised over
items; `decide` is the same computation for one item, so streaming equals batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol, Self

from unswayed.decisions import Decision, DecisionTable, Verdict, VerdictTable
from unswayed.items import Item, Task, blind
from unswayed.presentation import Ask

__all__ = ["Method", "decide_one"]


class Method(Protocol):
    """A way from decisions to a verdict.

    Attributes:
        name: Registered name.
        tasks: Tasks it works on.
        needs_probs: True if it reads label probabilities.
        fitted_from: Smallest number of estimation items that is not warned about; 0 if the method
            learns nothing.
    """

    name: ClassVar[str]
    tasks: ClassVar[frozenset[Task]]
    needs_probs: ClassVar[bool]
    fitted_from: ClassVar[int]

    def plan_fit(self, items: Sequence[Item]) -> list[tuple[Item, Ask]]:
        """The questions whose answers `fit` needs; empty if there is nothing to learn."""
        ...

    def fit(self, items: Sequence[Item], decisions: Sequence[Decision]) -> Self:
        """A copy that has learned from the decisions (pure; items are blind)."""
        ...

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Everything it could ever ask of an item with n candidates, in the order it asks."""
        ...

    def plan(self, item: Item, seen: Sequence[Decision] = ()) -> list[Ask]:
        """All it wants so far; it is done when this names nothing that was not answered."""
        ...

    def decide(self, item: Item, decisions: Sequence[Decision]) -> Verdict:
        """The verdict for one item (pure)."""
        ...

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """The verdicts for many items: `table.asks` must be `asks(table.n)`."""
        ...


def decide_one(method: Method, item: Item, decisions: Sequence[Decision]) -> Verdict:
    """`Method.decide` for every method: a table of one row."""
    table = DecisionTable.of([blind(item)], decisions)
    verdicts = method.decide_table(table.select(method.asks(item.n)))
    return verdicts.verdict(0, item_id=item.id, method=method.name)
