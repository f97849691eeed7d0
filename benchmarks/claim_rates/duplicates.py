"""Alarms where every question stands on several items: a copy is no evidence of its own.

Each question is asked once and its answers are those of all its copies, as a judge at temperature 0
gives them, so that items are as far from independent as they can be.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import msgspec
import numpy as np

from claim_rates.answers import estimation_answers
from claim_rates.changes import POPULATION, RESAMPLES, answers, of_rows
from claim_rates.rate import Rate
from unswayed.auditing.comparison import SingleCalls, changes
from unswayed.methods.drift import drift
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.names import parse_method
from unswayed.model.decisions import DecisionTable
from unswayed.report.claims import changes_of
from unswayed.report.intervals import above, below

TRIALS: Final = 100
COPIES: Final = 4
MOST: Final = 0.08
DRIFTS: Final = (("pride", 50, 30), ("pride", 100, 30), ("cell-median", 50, 30))
"""Method, questions that the file was fitted on, questions asked again."""


def copied(tables: Mapping[int, DecisionTable]) -> dict[int, DecisionTable]:
    """Every row as often as it has copies, whose ids differ."""
    return {
        n: replace(
            table.rows(np.repeat(np.arange(len(table)), COPIES)),
            items=tuple(
                msgspec.structs.replace(item, id=f"{item.id}.{copy}")
                for item in table.items
                for copy in range(COPIES)
            ),
        )
        for n, table in tables.items()
    }


def drift_alarm(spec: str, filed: int, asked: int, trial: int, **changed: float) -> bool:
    """Return True if a check raises the alarm."""
    method = parse_method(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        before = copied(estimation_answers(method, filed, seed=2 * trial))
        today = copied(estimation_answers(method, asked, seed=2 * trial + 1, **changed))
        compared = drift(method.fit_tables(before), today, resamples=200, seed=trial)
    return any(number.moved for number in compared)


def copied_run(run: SingleCalls) -> SingleCalls:
    """A run on items that each have copies of the same unit."""
    return msgspec.structs.replace(
        run,
        item_ids=tuple(f"{name}.{copy}" for name in run.item_ids for copy in range(COPIES)),
        **{
            column: tuple(value for value in getattr(run, column) for _ in range(COPIES))
            for column in ("choices", "gold", "gold_kind", "permutable", "units")
        },
    )


def change_said(questions: int, trial: int) -> bool:
    """Return True if anything is reported as changed between two runs of the same judge."""
    runs = [answers("slot=0.6", 2, seed=seed) for seed in (1, 2)]
    generator = np.random.default_rng(trial)
    rows = generator.choice(POPULATION, questions, replace=False).tolist()
    swapped = (generator.random(questions) < 0.5).tolist()
    before, after = (copied_run(of_rows(*own, rows, swapped)) for own in (runs, runs[::-1]))
    gains = changes_of(changes([before], [after], resamples=RESAMPLES, seed=trial), 1)
    return any(above(gain, 0) or below(gain, 0) for gain in gains.values())


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Alarms without a change, then drift alarms with one."""
    count = trials or TRIALS
    yield Rate(
        statement="anything is reported as changed, judge unchanged",
        setting=f"slot=0.6, 50 questions on {50 * COPIES} items",
        count=sum(change_said(50, trial) for trial in range(count)),
        trials=count,
        at_most=MOST,
    )
    for position in (0.6, 1.6):
        for spec, filed, asked in DRIFTS:
            unchanged = position == 0.6
            yield Rate(
                statement=f"drift alarm, {'judge unchanged' if unchanged else 'position 0.6 → 1.6'}",
                setting=f"{spec}, {filed} questions filed, {asked} asked again, {COPIES} items each",
                count=sum(
                    drift_alarm(spec, filed, asked, trial, position=position)
                    for trial in range(count)
                ),
                trials=count,
                at_most=MOST if unchanged else None,
            )
