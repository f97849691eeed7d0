"""Drift alarms: how often a judge that stayed the same raises one, and one that changed does."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator
from typing import Any, Final

from claim_rates.answers import estimation_answers
from claim_rates.rate import Rate
from unswayed.base.errors import MethodError
from unswayed.methods.drift import drift
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.names import parse_method

FILED: Final = 200
"""Items that the file was fitted on."""

SETTINGS: Final[tuple[tuple[str, int, int], ...]] = (
    ("pride", 2, 1),
    ("pride", 4, 1),
    ("pride:mean=geometric", 4, 1),
    ("pride:prior=cell", 2, 1),
    ("pride:prior=group", 2, 8),
    ("pride:prior=group", 4, 8),
    ("cell-median", 2, 1),
    ("cell-median:layouts=all", 2, 1),
    ("additive", 2, 1),
    ("additive", 4, 1),
    ("additive:centre=median", 2, 1),
    ("batch", 2, 1),
    ("bias-cost", 5, 1),
    ("calibraeval:resamples=100", 2, 1),
    ("contextual", 2, 1),
    ("domain-contextual", 2, 1),
)
"""Method, candidates, groups."""


def alarms(
    spec: str,
    n: int,
    groups: int,
    *,
    asked: int,
    trials: int,
    resamples: int = 200,
    steep: float = 1.0,
    **changed: float,
) -> Iterator[bool]:
    """Return, for each of some checks, whether it raises the alarm.

    Args:
        spec: The method.
        n: Candidates.
        groups: Groups of items.
        asked: Items asked again.
        trials: Files and checks.
        resamples: Of the items asked again, in each check.
        steep: Factor on all logits of the judge; above 1 it is nearly certain.
        changed: What is different in the judge of today.
    """
    method = parse_method(spec)
    shape: dict[str, Any] = {"n": n, "groups": groups} | ({"steep": steep} if steep != 1 else {})
    start = zlib.crc32(f"{spec} {shape} {asked} {changed}".encode())  # no two settings share items
    for trial in range(start, start + trials):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MethodWarning)
            filed = method.fit_tables(estimation_answers(method, FILED, seed=2 * trial, **shape))
            today = estimation_answers(method, asked, seed=2 * trial + 1, **shape, **changed)
            try:
                compared = drift(filed, today, resamples=resamples, seed=trial)
            except MethodError:  # the fresh map is constant: not checked, and said so
                compared = ()
            yield any(number.moved for number in compared)


def rates(trials: int | None) -> Iterator[Rate]:
    """Alarms without a change (at most 7%), then with one."""
    count = trials or 1000
    for spec, n, groups in SETTINGS:
        asked = 60 if groups == 1 else 200
        yield Rate(
            statement="drift alarm, judge unchanged",
            setting=_setting(spec, n, groups, asked),
            count=sum(alarms(spec, n, groups, asked=asked, trials=count, resamples=100)),
            trials=count,
            at_most=0.07,
        )
    fewer = max(1, count // 10)
    for spec, n, groups in SETTINGS:
        for position in (0.9, 1.2):
            yield Rate(
                statement=f"drift alarm, position effect 0.6 → {position} logits",
                setting=_setting(spec, n, groups, 60 if groups == 1 else 200),
                count=sum(
                    alarms(
                        spec,
                        n,
                        groups,
                        asked=60 if groups == 1 else 200,
                        trials=fewer,
                        resamples=100,
                        position=position,
                    )
                ),
                trials=fewer,
            )


def _setting(spec: str, n: int, groups: int, asked: int) -> str:
    return (
        f"{spec}, {n} candidates{f', {groups} groups' if groups > 1 else ''}, "
        f"{FILED} items filed, {asked} asked again"
    )
