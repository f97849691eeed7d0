"""Measure how often `unswayed check-table` rejects a judge's true row, and finds a changed one.

A judge prefers the right answer and a position, by item more or less; some of its answers are ties or
cannot be read. Its row is what this package measures of it, printed as tables are. Rounded digits
leave no possible row outside; digits that were cut off, or columns of different items, may.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from claim_rates.rate import Rate
from unswayed.base.counts import plural
from unswayed.metrics import Outcomes, check_cells, measure
from unswayed.metrics.gold import GOLD_NONE, GOLD_ONE
from unswayed.model.decisions import TIE, UNPARSED
from unswayed.model.presentation import presentations

TRIALS: Final = 2000
NAMES: Final = ("accuracy", "consistency", "consistent_accuracy")
LOST: Final = 0.1
"""Share of answers that are ties or cannot be read, where some are."""
POSSIBLE, MOVED = "a possible row is called impossible", "a row with one cell moved is found"

Write = Callable[[float, int], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Judges and how their rows are printed.

    Attributes:
        layouts: The set of presentations.
        candidates: Of an item.
        decided: No answer is a tie or cannot be read, and the check is told so.
        decimals: Of the percentages.
    """

    layouts: str = "swap"
    candidates: int = 2
    decided: bool = False
    decimals: int = 1

    @property
    def views(self) -> int:
        """Presentations of an item."""
        return len(presentations(self.layouts, self.candidates))

    @property
    def text(self) -> str:
        """The setting in words."""
        told = ", decided" if self.decided else ""
        return f"{self.candidates} candidates, {self.views} orders{told}, {plural(self.decimals, 'decimal')}"


SETTINGS: Final = (
    *(Setting(decimals=decimals) for decimals in (0, 1, 2)),
    *(Setting(decimals=decimals, decided=True) for decimals in (0, 1, 2)),
    Setting(layouts="cyclic", candidates=4),
    Setting(layouts="full", candidates=4),
)


def judged(setting: Setting, generator: np.random.Generator) -> Outcomes:
    """The answers of one judge to 20 to 1 000 items."""
    n, items = setting.candidates, int(generator.integers(20, 1001))
    shown = presentations(setting.layouts, n)
    gold = generator.integers(0, n, items)
    worth = generator.normal(size=(items, 1, n)) + 0.5 * generator.normal(
        size=(items, len(shown), n)
    )
    worth[np.arange(items), :, gold] += generator.uniform(0, 3)
    slot = generator.uniform(0, 3)
    for view, presentation in enumerate(shown):
        worth[:, view, presentation.order[0]] += slot
    choices = worth.argmax(axis=2).astype(np.int16)
    if not setting.decided:
        lost = generator.random(choices.shape) < generator.uniform(0, LOST)
        choices[lost] = generator.choice((TIE, UNPARSED), int(lost.sum()))
    right = np.zeros((items, n), dtype=np.bool_)
    right[np.arange(items), gold] = True
    return Outcomes(
        item_ids=tuple(map(str, range(items))),
        groups=(None,) * items,
        shown=shown,
        label_set=tuple("ABCD"[:n]),
        choices=choices,
        gold=right,
        gold_kind=np.full(items, GOLD_ONE, dtype=np.int8),
        permutable=np.ones(items, dtype=np.bool_),
    )


def without_gold(outcomes: Outcomes, share: float) -> Outcomes:
    """The same where the first items have no gold, so that columns are of different items."""
    gold, kind = outcomes.gold.copy(), outcomes.gold_kind.copy()
    first = int(share * len(kind))
    gold[:first], kind[:first] = False, GOLD_NONE
    return replace(outcomes, gold=gold, gold_kind=kind)


def shares(outcomes: Outcomes) -> list[float]:
    """Accuracy, consistency and consistent accuracy."""
    row = measure([outcomes], names=NAMES, resamples=0)
    return [value for name in NAMES if (value := row[name].value) is not None]


def rounded(share: float, decimals: int) -> str:
    """A percentage as Python rounds it."""
    return f"{100 * share:.{decimals}f}"


def cut_off(share: float, decimals: int) -> str:
    """A percentage whose further digits are left out."""
    unit = 10**decimals
    return f"{math.floor(100 * share * unit + 1e-9) / unit:.{decimals}f}"


def impossible(values: list[float], setting: Setting, write: Write = rounded) -> bool:
    """Return True if the printed row breaks a rule."""
    cells = {
        name: f"{write(value, setting.decimals)} %"
        for name, value in zip(NAMES, values, strict=True)
    }
    return bool(
        check_cells(
            [cells], views=setting.views, candidates=setting.candidates, decided=setting.decided
        )
    )


def moved(values: list[float], generator: np.random.Generator) -> list[float]:
    """The same with one of them 5 to 20 points higher or lower."""
    place = int(generator.integers(len(values)))
    by = generator.uniform(0.05, 0.2) * generator.choice((-1, 1))
    if not 0 <= values[place] + by <= 1:
        by = -by
    return [value + by * (at == place) for at, value in enumerate(values)]


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Rounded rows, which are never impossible; moved cells; then rows beyond the rules."""
    runs = trials or TRIALS
    for setting in SETTINGS:
        generator = np.random.default_rng([setting.views, setting.decimals, setting.decided])
        judges = [judged(setting, generator) for _ in range(runs)]
        rows = [shares(judge) for judge in judges]
        said = {
            (POSSIBLE, "rounded", 0.0): [impossible(row, setting) for row in rows],
            (POSSIBLE, "digits cut off", None): [impossible(row, setting, cut_off) for row in rows],
            (POSSIBLE, "a tenth of the items without gold", None): [
                impossible(shares(without_gold(judge, 0.1)), setting) for judge in judges
            ],
            (MOVED, "rounded", None): [impossible(moved(row, generator), setting) for row in rows],
        }
        for (statement, how, most), answers in said.items():
            yield Rate(
                statement=statement,
                setting=f"{setting.text}, {how}",
                count=sum(answers),
                trials=runs,
                at_most=most,
            )
