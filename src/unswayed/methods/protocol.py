"""What a method is: plan -> calls -> decide, over one pool of recorded calls.

A method is a frozen dataclass: its hyperparameters, and what it has learned (None before `fit`).
It never calls a model and never sees gold. `decide_table` is the method itself, vectorised over
items; `decide` is the same computation for one item, so streaming equals batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, Protocol, Self

from unswayed.decisions import Decision, DecisionTable, Estimate, Verdict, VerdictTable
from unswayed.errors import UsageError
from unswayed.items import Item, Task, blind
from unswayed.permutations import check_size
from unswayed.presentation import Ask, settled

__all__ = [
    "CHOOSING",
    "COMPARING",
    "About",
    "FittedMethod",
    "Layouts",
    "Method",
    "MethodWarning",
    "decide_one",
    "is_fitted",
    "learned",
    "learned_fields",
    "learned_sizes",
    "learned_values",
    "plan_all",
    "why_not",
]

COMPARING: frozenset[Task] = frozenset({Task.PAIRWISE, Task.MCQ})
"""Tasks whose answer is one label, so that label probabilities mean something."""

CHOOSING: frozenset[Task] = COMPARING | {Task.LISTWISE}
"""Tasks whose decision names a best candidate."""


class MethodWarning(UserWarning):
    """A method works, but on less than it should have (few estimation items, a layout never seen)."""


@dataclass(frozen=True, slots=True)
class About:
    """What the docs and `unswayed list methods` say about a method.

    Attributes:
        title: Name in words.
        source: Paper with its arXiv number, or "ours".
        idea: One sentence.
        calls: Calls for one more item, as text.
        estimation: Calls it spends on estimation, as text; empty if it learns nothing.
        equation: The rule in one line, plain text.
        helps: When it helps.
        cannot: What it cannot do.
        differs: Where the authors' released code does something else; empty if it does not.
        default: Whether `--methods all` includes it.
        candidates: The only number of candidates it works for; None for any.
    """

    title: str
    source: str
    idea: str
    calls: str
    equation: str
    helps: str
    cannot: str
    estimation: str = ""
    differs: str = ""
    default: bool = True
    candidates: int | None = None


class Method(Protocol):
    """A way from decisions to a verdict.

    Attributes:
        name: Registered name.
        tasks: Tasks it works on.
        needs_probs: True if it reads label probabilities.
        fitted_from: Smallest number of estimation items that is not warned about; 0 if the method
            learns nothing.
        about: What the docs say about it.
    """

    name: ClassVar[str]
    tasks: ClassVar[frozenset[Task]]
    needs_probs: ClassVar[bool]
    fitted_from: ClassVar[int]
    about: ClassVar[About]

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


class FittedMethod(Method, Protocol):
    """A method that learns: what it learned can be shown, compared and watched for drift."""

    def fit_tables(self, tables: Mapping[int, DecisionTable]) -> Self:
        """`fit` on one table per number of candidates, whose columns are those of `plan_fit`."""
        ...

    def estimates(self) -> dict[str, Estimate]:
        """What was learned, as named numbers with intervals where they were computed."""
        ...


def decide_one(method: Method, item: Item, decisions: Sequence[Decision]) -> Verdict:
    """`Method.decide` for every method: a table of one row."""
    table = DecisionTable.of([blind(item)], decisions)
    verdicts = method.decide_table(table.select(method.asks(item.n)))
    return verdicts.verdict(0, item_id=item.id, method=method.name)


def plan_all(method: Method, item: Item) -> list[Ask]:
    """`Method.plan` of every method that is not adaptive.

    An item that is not permutable is asked as it was given only.
    """
    asks = method.asks(item.n)
    about_item = [one for ask in asks if (one := settled(ask, item)) is not None]
    return about_item if item.permutable else [ask for ask in about_item if ask.as_given]


def learned() -> Any:  # Any: the declared type of the field, as with dataclasses.field
    """A dataclass field that `fit` fills: None before, never a parameter on the command line.

    Its values have an `n`, the number of candidates they hold for.
    """
    return field(default=None, metadata={"learned": True})


def learned_fields(method: type[Method] | Method) -> tuple[str, ...]:
    """Names of the fields that `fit` fills."""
    return tuple(spec.name for spec in fields(method) if spec.metadata.get("learned"))  # type: ignore[arg-type]


def learned_sizes(method: Method) -> tuple[int, ...]:
    """Numbers of candidates that the method has learned about; empty if it has learned nothing."""
    return tuple(sorted({value.n for value in learned_values(method)}))


def learned_values(method: Method) -> tuple[Any, ...]:  # Any: each method has its own
    """Everything that `fit` filled in."""
    return tuple(value for name in learned_fields(method) for value in getattr(method, name) or ())


def is_fitted(method: Method) -> bool:
    """Whether the method has nothing to learn or has learned it."""
    return all(getattr(method, name) is not None for name in learned_fields(method))


def why_not(
    method: Method | type[Method], *, task: Task, n: int | None = None, probs: bool = True
) -> str | None:
    """Why a method cannot be used here, as the end of a sentence; None if it can.

    Args:
        method: The method.
        task: Task of the items.
        n: Number of candidates; None if not known.
        probs: Whether there are label probabilities.
    """
    if task not in method.tasks:
        allowed = ", ".join(sorted(known.value for known in method.tasks))
        return f"it works on {allowed}, not on {task.value}"
    only = method.about.candidates
    if n is not None and only is not None and n != only:
        return f"it needs {only} candidates, got {n}"
    if method.needs_probs and not probs:
        return "it needs label probabilities and there are none"
    try:
        if n is not None and method.fitted_from:
            check_size("cyclic", n)  # what methods learn from
        if n is not None and not isinstance(method, type):
            method.asks(n)
    except UsageError as error:
        return str(error).rstrip(".")
    return None


Layouts = Literal["canonical", "all"]
"""Label sequences a prior is estimated for: the label set's own, or every rotation of it."""
