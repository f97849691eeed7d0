"""Method protocol: asks -> calls -> verdicts, over one pool of recorded calls.

A method is a frozen dataclass: its hyperparameters, and what it has learned (None before `fit`).
It never calls a model and decides without gold, which only a fit that `needs_gold` sees. Its author writes `asks` and `decide_table`, which is
the method itself, vectorised over items; one that learns also `estimation_asks`, `fit_tables` and
`estimates`; one that may stop before everything is asked also `stops_after`; one that also decides
by the first of its questions alone `prefixes`. The rest is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self, TypeVar

from unswayed.base.errors import MethodError, NeedsLogprobs, UsageError
from unswayed.methods.estimation import MOST_ITEMS, Tables, split, tables_of, with_gold
from unswayed.model.decisions import (
    MISSING,
    Decision,
    DecisionTable,
    Estimate,
    Evidence,
    Verdict,
    VerdictTable,
)
from unswayed.model.items import Item, Task, blind
from unswayed.model.permutations import check_size
from unswayed.model.presentation import Ask, Presentation, askable
from unswayed.model.tasks import task_of

M = TypeVar("M", bound="Method")

Layouts = Literal["canonical", "all"]
"""Label sequences a prior is estimated for: the label set's own, or every rotation of it."""


@dataclass(frozen=True, slots=True)
class About:
    """Description of a method for the docs, `unswayed list methods` and `--methods all`.

    Attributes:
        title: Name in words.
        source: Paper with its arXiv number, or "Unswayed".
        idea: One sentence.
        calls: Calls for one more item, as text.
        estimation: Calls for estimation, as text; empty if it learns nothing.
        equation: The rule in one line, plain text.
        helps: End of a sentence that begins "Use it when".
        cannot: Limits, as whole sentences.
        candidates: The only number of candidates it works for; None for any.
        default: Whether `--methods all` includes it.
        variants: What `all` includes beside it, as names with parameters.
        group_variants: What `all` includes beside it where items have groups.
        points_variants: What `all` includes beside it where one reply answers several points, as it
            does about criteria.
        rank: Place in `all`, lowest first: baselines come before corrections, equal ones by name.
        per_layout: Its name with the parameters that give it one threshold per label sequence;
            empty if it has no such form.
        control: Whether it shows what a gain is worth, and is never recommended.
    """

    title: str
    source: str
    idea: str
    calls: str
    equation: str
    helps: str
    cannot: str
    estimation: str = ""
    candidates: int | None = None
    default: bool = True
    variants: tuple[str, ...] = ()
    group_variants: tuple[str, ...] = ()
    points_variants: tuple[str, ...] = ()
    rank: int = 9
    per_layout: str = ""
    control: bool = False


L = TypeVar("L", bound="Learned")


@dataclass(frozen=True, slots=True)
class Learned:
    """Values that a method has learned for one number of candidates.

    Attributes:
        n: Number of candidates it holds for.
        units: Distinct questions behind it; None in files from before they were counted.
    """

    n: int
    units: int | None = field(default=None, kw_only=True)

    @property
    def is_constant(self) -> bool:
        """True if it maps everything to one value, and so corrects nothing."""
        return False


def learned_for(n: int, values: Sequence[L] | None) -> L | None:
    """Return what was learned for a number of candidates; None for nothing."""
    return next((own for own in values or () if own.n == n), None)


@dataclass(frozen=True, slots=True)
class Method(ABC):
    """A way from decisions to a verdict.

    Attributes:
        name: Registered name.
        about: What the docs say about it.
        reads: What it reads of a decision: it works on every task whose decisions can hold that.
        or_reads: What it reads instead where decisions hold none of that; empty for nothing.
        fitted_from: Smallest number of estimation items that is not warned about; 0 if the method
            learns nothing.
        needs_gold: Whether `fit_tables` reads the gold of estimation items (`table.gold`).
        abstains: Whether it may withhold a verdict (ABSTAINED).
        learns_threshold: Whether it chooses a threshold on its estimation items. Resampling does not show the
            spread of a choice, so its numbers are not tested for drift.
        tests_drift_once: Whether its small p-values are too small, so that only one test for drift at 5% holds, not
            the repeated tests of a server.
    """

    name: ClassVar[str]
    about: ClassVar[About]
    reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.CHOICE})
    or_reads: ClassVar[frozenset[Evidence]] = frozenset()
    fitted_from: ClassVar[int] = 0
    needs_gold: ClassVar[bool] = False
    abstains: ClassVar[bool] = False
    learns_threshold: ClassVar[bool] = False
    tests_drift_once: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        for name in ("reads", "or_reads"):
            value = getattr(cls, name)
            if not isinstance(value, Set) or not value <= set(Evidence):
                right = f"{name} = frozenset({{Evidence.PROBS}})"
                raise TypeError(f"{cls.__name__}.{name} is {value!r}. Write {right}, for instance")

    @classmethod
    def readings(cls) -> tuple[frozenset[Evidence], ...]:
        """Return the kinds of evidence that the method can work with: `reads`, else `or_reads`."""
        return (cls.reads, cls.or_reads) if cls.or_reads else (cls.reads,)

    @abstractmethod
    def asks(self, n: int) -> tuple[Ask, ...]:
        """Everything it could ever ask of an item with n candidates, in the order it asks."""

    @abstractmethod
    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the verdicts for many items: `table.asks` must be `asks(table.n)`."""

    def keeps_order(self, n: int) -> bool:
        """Return True if it asks of the item's own order only: it can judge items that must keep theirs."""
        return all(ask.as_given for ask in self.asks(n))

    def stops_after(self, n: int) -> Sequence[int]:
        """Lengths of the prefixes of `asks` after which it may stop before everything is asked.

        Where a prefix is answered and `decide_table` needs no more, the rest is not asked. Stops
        that cannot change the verdict are not named.
        """
        return ()

    def prefixes(self, n: int) -> Sequence[int]:
        """Lengths of the prefixes of `asks` that `decide_table` takes as well, the whole the last.

        An audit shows what each further question brings, from the calls it has, and how unevenly
        the whole shows the candidates.
        """
        return ()

    def settings(self) -> Sequence[Method]:
        """Return the method at settings with fewer or more calls, the last one reading everything.

        An audit shows what each costs, from the calls it has.
        """
        return ()

    def without_abstaining(self) -> Method:
        """Return the method at the setting where it withholds no verdict."""
        return self

    def estimation_asks(self, n: int) -> tuple[Ask, ...]:
        """Return the questions about each estimation item; empty if there is nothing to learn."""
        return ()

    def fit_tables(self, tables: Tables) -> Self:
        """`fit` on one table per number of candidates, whose columns are those of `plan_fit`."""
        return self

    def estimates(self) -> dict[str, Estimate]:
        """Return the learned values as named numbers, with intervals where they were computed."""
        return {}

    def threshold(self, shown: Presentation) -> float | None:
        """Return the P(A) above which A wins under one presentation of two candidates, if there is one."""
        return None

    @property
    def resamples(self) -> int:
        """Bootstrap resamples behind the intervals of `estimates`; 0 for none."""
        return 0

    def with_resamples(self, count: int) -> Self:
        """Return the method with so many resamples, where it makes any."""
        makes = any(field.name == "resamples" for field in fields(self))
        return replace(self, **({"resamples": count} if makes else {}))

    def quick(self) -> Self:
        """Return the method as a bootstrap of its fits runs it: what only polishes a fit left out."""
        return self

    @property
    def learns(self) -> bool:
        """True if there is anything for `fit` to learn."""
        return not is_fitted(unlearned(self))

    def plan_fit(self, items: Sequence[Item]) -> list[tuple[Item, Ask]]:
        """List the questions whose answers `fit` needs: about every item that may be permuted, at most
        `MOST_ITEMS` per number of candidates.
        """
        asks: dict[int, tuple[Ask, ...]] = {}
        left: dict[int, int] = {}
        planned: list[tuple[Item, Ask]] = []
        for item in items:
            if item.n not in asks:
                try:
                    asks[item.n] = self.estimation_asks(item.n)
                except MethodError as error:
                    raise MethodError(f"{item.id}: {error}") from None
            if item.permutable and left.setdefault(item.n, MOST_ITEMS):
                left[item.n] -= 1
                planned.extend((item, ask) for ask in askable(item, asks[item.n]))
        return planned

    def estimation_tables(
        self, items: Sequence[Item | Decision], decisions: Sequence[Decision] | None = None
    ) -> Tables:
        """Return the answers to `plan_fit` per number of candidates: it learns from what it is priced for.

        Args:
            items: Estimation items; or the decisions alone, when there are no item texts.
            decisions: Decisions about them (others are left out); None if `items` are these.

        Raises:
            NeedsLogprobs: If it needs probabilities and no decision has any.
        """
        estimation_items, recorded = split(items, decisions)
        tables = tables_of(self.plan_fit(estimation_items), recorded)
        answered = any((table.choices >= 0).any() for table in tables.values())
        needs_probs = Evidence.PROBS in self.reads
        if needs_probs and answered and all(t.probs is None for t in tables.values()):
            raise NeedsLogprobs(
                f"{self.name} needs label probabilities, and none of the {len(recorded)} "
                "estimation decisions has any. Use vote, or ask for sampled probabilities "
                "(--probs sampled:R)."
            )
        return with_gold(tables, items) if self.needs_gold else tables

    def fit(
        self, items: Sequence[Item | Decision], decisions: Sequence[Decision] | None = None
    ) -> Self:
        """Return a copy that has learned from the decisions (pure; it sees gold only if it needs it)."""
        return self.fit_tables(self.estimation_tables(items, decisions)) if self.learns else self

    def plan(self, item: Item, seen: Sequence[Decision] = ()) -> list[Ask]:
        """All it wants so far; it is done when this names nothing that was not answered."""
        everything = self.asks(item.n)
        asks = list(askable(item, everything))
        if len(asks) < len(everything):  # not permutable
            return asks
        for end in self.stops_after(item.n):
            answers = [decision for decision in seen if decision.ask in asks[:end]]
            if len({decision.ask for decision in answers}) < end:
                return asks[:end]
            table = DecisionTable.of([blind(item)], answers).select(everything)
            if self.decide_table(table).choices[0] != MISSING:
                return asks[:end]
        return asks

    def decide(self, item: Item, decisions: Sequence[Decision]) -> Verdict:
        """Return the verdict for one item (pure): a table of one row, so streaming equals batch."""
        table = DecisionTable.of([blind(item)], decisions)
        verdicts = self.decide_table(table.select(self.asks(item.n)))
        return verdicts.verdict(0, item_id=item.id, method=self.name)


def learned() -> Any:  # Any: the declared type of the field, as with dataclasses.field
    """Return a dataclass field that `fit` fills: None before, never a parameter on the command line.

    Its type is a tuple of `Learned`, or None.
    """
    return field(default=None, kw_only=True, metadata={"learned": True})


def learned_fields(method: type[Method] | Method) -> tuple[str, ...]:
    """Names of the fields that `fit` fills."""
    return tuple(spec.name for spec in fields(method) if spec.metadata.get("learned"))


def learned_sizes(method: Method) -> tuple[int, ...]:
    """Numbers of candidates that the method has learned about; empty if it has learned nothing."""
    return tuple(sorted({value.n for value in learned_values(method)}))


def learned_values(method: Method) -> tuple[Learned, ...]:
    """Everything that `fit` filled in."""
    return tuple(value for name in learned_fields(method) for value in getattr(method, name) or ())


def unlearned(method: M) -> M:
    """Return the method as it was before `fit`."""
    return replace(method, **dict.fromkeys(learned_fields(method)))


def is_fitted(method: Method) -> bool:
    """Return True if the method has nothing to learn or has learned it."""
    return all(getattr(method, name) is not None for name in learned_fields(method))


def why_not(
    method: Method,
    *,
    task: Task,
    n: int | None = None,
    gives: frozenset[Evidence] | None = None,
    gold: bool = True,
    fitting: bool = False,
) -> str | None:
    """Why a method cannot be used here, as the end of a sentence; None if it can.

    `n` is None where the number of candidates is not known, `gives` for all that the task's
    decisions can hold. `gold` says whether some item has a right candidate. What is to be fitted only may ask less than all that it could learn to ask.
    """
    possible = task_of(task).gives  # an unknown task is refused in any case
    held = possible if gives is None else gives
    only = method.about.candidates
    if method.needs_gold and not gold:
        return "it needs items with the field gold, and none has it"
    if n is not None and only is not None and n != only:
        return f"it needs {only} candidates, got {n}"
    if not any(reading <= held for reading in method.readings()):
        return f"it needs {' and '.join(sorted(method.reads - held))}, and these answers have none"
    try:
        if n is not None and method.fitted_from:
            check_size("cyclic", n)  # what methods learn from
        if n is not None:
            method.estimation_asks(n) if fitting else method.asks(n)
    except UsageError as error:
        return str(error).rstrip(".")
    return None
