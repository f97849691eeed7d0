"""A shadow: a share of the judged questions is asked again, to see whether the judge has changed."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from unswayed.base.counts import agrees, plural
from unswayed.base.digests import digest
from unswayed.base.errors import MethodError, UsageError
from unswayed.calls import Question
from unswayed.methods import Method
from unswayed.methods.drift import Drift, drift
from unswayed.methods.estimation import FEW_ITEMS
from unswayed.methods.fitted_file import FittedFile
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, unit_of, units_of

WINDOW: Final = 200
"""Items asked again until a server tests its model for drift."""


class Looks:
    """P-value of repeated tests for drift that holds at any moment.

    Test number k may spend 1/(k(k + 1)) of the error, which add up to 1 (alpha spending: Lan and DeMets 1983,
    Biometrika 70, 659). So with a judge that stays the same, the value ever falls to p with a probability of at
    most p, even if the tests depend on each other (Johari et al. 2022, Operations Research 70, 1806).
    """

    def __init__(self) -> None:
        self.count = 0
        self.p_value: float | None = None  # None before the first test

    def add(self, compared: Sequence[Drift]) -> None:
        """Take note of a test of some numbers; one without numbers spends its share as well."""
        self.count += 1
        tested = [number.p_value for number in compared if number.p_value is not None]
        if tested:
            own = min(tested) * len(tested) * self.count * (self.count + 1)
            self.p_value = min(own, 1.0 if self.p_value is None else self.p_value)


class Shadow:
    """Items asked again in every presentation that a fitted method has learned from.

    They are a share of the questions, drawn by a hash, each with all its items. Judging the items of the fitted
    file is told of as well.
    """

    def __init__(self, method: Method, share: float, file: FittedFile | None = None) -> None:
        if not 0 <= share <= 1:
            raise UsageError(f"shadow {share}: give a share from 0 to 1, such as 0.02.")
        if share and not method.fitted_from:
            raise UsageError(
                f"{method.name} learns nothing, so nothing can drift. Leave out shadow."
            )
        if share and method.learns_threshold:
            raise UsageError(
                f"{method.name} learns a threshold, whose spread resampling does not show, so it cannot be tested "
                "for drift. Leave out shadow, and calibrate again after a change of the judge."
            )
        self._method = method
        self._share = share
        self._file = file
        self._fitted_on: dict[str, None] = {}
        self._items: dict[str, Item] = {}
        self._recorded: set[str] = set()  # units of items whose answers were recorded before
        self._decisions: list[Decision] = []
        self.looks = Looks()

    def draws(self, item: Item) -> bool:
        """Return True if an item is of the share that is asked again."""
        drawn = int.from_bytes(digest("shadow", unit_of(item))[:6], "big") < self._share * 2**48
        return item.permutable and drawn

    def draw(self, items: Sequence[Item]) -> list[Item]:
        """Return the judged items that are drawn and were not asked again yet."""
        if self._file is not None:
            self._fitted_on.update(dict.fromkeys(self._file.overlap(items)))
        if not self._share:
            return []
        return [item for item in items if item.id not in self._items and self.draws(item)]

    def questions(self, items: Sequence[Item]) -> list[Question]:
        """Return what asking items again asks."""
        return [Question(item, ask) for item, ask in self._method.plan_fit(items)]

    def add(
        self, items: Sequence[Item], decisions: Iterable[Decision], recorded: Collection[str] = ()
    ) -> None:
        """Take note of items asked again, with the answers; `recorded` names items whose calls were recorded."""
        self._recorded.update(unit_of(item) for item in items if item.id in recorded)
        self._items.update({item.id: item for item in items})
        self._decisions.extend(decisions)

    @property
    def size(self) -> int:
        """Number of items asked again."""
        return len(self._items)

    def check_repeatable(self) -> None:
        """Check that the method can be tested again and again, as a server does.

        Raises:
            UsageError: If only one of its tests holds, or its numbers have no interval to test.
        """
        if not self._share:
            return
        name = self._method.name
        if self._method.tests_drift_once:
            raise UsageError(
                f"{name} can be tested for drift once, not repeatedly as a server does. Use judge --shadow."
            )
        if all(number.low is None for number in self._method.estimates().values()):
            raise UsageError(
                f"the numbers that {name} learns have no interval, so they cannot be tested for drift. Leave out --shadow, or "
                "fit pride on 60 questions."
            )

    def look(self) -> None:
        """Test the items once they fill a window, and forget them; recorded answers tell nothing new."""
        if self.size >= WINDOW:
            new = {
                i: item for i, item in self._items.items() if unit_of(item) not in self._recorded
            }
            self._items, self._recorded = new, set()
            self._decisions = [answer for answer in self._decisions if answer.item_id in new]
        if self.size >= WINDOW:
            compared: tuple[Drift, ...] = ()
            with contextlib.suppress(MethodError):  # the verdicts are good all the same
                compared = self.compared()
            self.looks.add(compared)
            self._items, self._decisions = {}, []

    def compared(self) -> tuple[Drift, ...]:
        """Compare the items asked again with the fitted file.

        Raises:
            MethodError: If nothing can be compared.
        """
        items = list(self._items.values())
        return drift(self._method, self._method.estimation_tables(items, self._decisions))

    def report(self) -> list[str]:
        """Report what the judged items show about the fitted file: all its numbers are one test at 5%."""
        overlap = []
        if self._fitted_on:
            overlap.append(
                f"{plural(len(self._fitted_on), 'judged item')} (such as {next(iter(self._fitted_on))}) "
                f"{agrees(len(self._fitted_on), 'was', 'were')} used to fit the method; figures on "
                f"{agrees(len(self._fitted_on), 'it', 'them')} flatter it. Judge other items."
            )
        return overlap + (self._drift() if self._share else [])

    def _drift(self) -> list[str]:
        items = list(self._items.values())
        count = len(set(units_of(items)[0]))
        if count < FEW_ITEMS:
            return [
                f"drift not checked: {plural(count, 'question')} asked again, {FEW_ITEMS} needed. "
                "Raise --shadow or judge more items."
            ]
        try:
            compared = self.compared()
        except MethodError as error:  # the verdicts are good all the same
            return [f"drift not checked: {error}"]
        tested = [number for number in compared if number.score is not None]
        if not tested:
            return [
                f"drift not checked: the numbers that {self._method.name} learns have no interval."
            ]
        old = f" ({len(self._recorded):,} from recorded calls)" if self._recorded else ""
        basis = f"{plural(count, 'question')} asked again{old}, {plural(len(tested), 'number')} compared in one test at the 5% level"
        moved = sorted((n for n in tested if n.moved), key=lambda n: -(n.score or 0))
        if not moved:
            return [f"no drift found: {basis}."]
        changed = (
            f"the judge has changed since it was calibrated: {basis}, which about 5% of unchanged judges fail. "
            "Calibrate again."
        )
        return [changed, *map(str, moved)]
