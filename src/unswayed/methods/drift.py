"""Drift: does what a fitted file says still hold for the judge of today?

A share of the items is asked again in all the presentations of the method's estimation; the method
is fitted on them afresh, with a bootstrap over questions, and compared with the file. All its numbers
are one test at 5%: each difference is divided by its standard error, and the largest is held against
the largest of as many correlated normal deviates (max-t). So a file with many numbers raises no more
false alarms than a file with one.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from unswayed.base.errors import MethodError
from unswayed.base.quantiles import NORMAL, student
from unswayed.methods.estimation import FEW_ITEMS, MethodWarning, Tables
from unswayed.methods.intervals import expanded_levels
from unswayed.methods.protocol import Method, unlearned
from unswayed.model.decisions import Estimate, FloatArray

CHECKS: Final = 4000
"""Draws of what chance does to the largest deviate."""

LEAST_ERROR: Final = 1e-9
"""Estimates that differ by less than this are rounded differently, not different."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One learned number, then and now."""

    name: str  # what it is, such as "prior of label A under A B"
    filed: Estimate  # in the file
    fresh: Estimate  # estimated now, with its 95% interval
    # distance from the file over the largest that chance brings about in 95% of checks of all
    # the numbers together; None where the fresh value has no spread to compare with
    # (content-free questions are asked once, small groups too rarely)
    score: float | None
    # probability that chance alone moves this one number as far, however far; None as above
    p_value: float | None = None

    @property
    def moved(self) -> bool:
        """True if it is farther from the file than chance allows any of the numbers to be."""
        return self.score is not None and self.score > 1

    def __str__(self) -> str:
        filed, now, low, high = (
            "?" if value is None else f"{value:.3f}"
            for value in (self.filed.value, self.fresh.value, self.fresh.low, self.fresh.high)
        )
        ends = "no interval" if self.fresh.low is None else f"{low} to {high}"
        verb = "moved" if self.moved else "holds"
        chance = "" if self.p_value is None else f", p = {self.p_value:.2g}"
        return f"{self.name} {verb}: {filed} in the file, {now} now ({ends}{chance})"


def drift(
    method: Method, tables: Tables, *, resamples: int = 200, seed: int = 0
) -> tuple[Drift, ...]:
    """Compare a fit on the items asked again (their `method.estimation_tables`) with what the
    method has learned.
    """
    filed = method.estimates()
    repeated = any(table.subjects.clusters().count < len(table) for table in tables.values())
    if repeated and any(number.n_units is None for number in filed.values()):
        raise MethodError(f"{method.name}: fitted without counting questions. Fit it again.")
    with warnings.catch_warnings():  # small samples are the point here
        warnings.simplefilter("ignore", MethodWarning)
        plain = unlearned(method).with_resamples(0)  # no bootstrap inside this one
        point = plain.fit_tables(tables).estimates()
        names = [
            name
            for name, old in filed.items()
            if name in point and point[name].value is not None and old.value is not None
        ]
        draws = _resample(plain.quick(), tables, names, resamples=resamples, seed=seed)
    if filed and not names:
        raise MethodError(
            f"{method.name}: nothing to compare: the re-asked items give none of the numbers in "
            "the file. Ask again in the presentations of its plan_fit."
        )
    fresh = [_with_interval(point[name], draws[:, at]) for at, name in enumerate(names)]
    deviates = np.array(
        [
            _deviate(filed[name], new, draws[:, at])
            for at, (name, new) in enumerate(zip(names, fresh, strict=True))
        ]
    )
    tested = ~np.isnan(deviates)
    chance = _largest_by_chance(draws[:, tested], seed) if tested.any() else np.zeros(1)
    most = max(float(np.quantile(chance, 0.95)), NORMAL)
    return tuple(
        Drift(name, filed[name], new, None)
        if np.isnan(deviate)
        else Drift(name, filed[name], new, float(deviate) / most, math.erfc(deviate / math.sqrt(2)))
        for name, new, deviate in zip(names, fresh, deviates, strict=True)
    )


def _resample(
    plain: Method, tables: Tables, names: Sequence[str], *, resamples: int, seed: int
) -> FloatArray:
    """Return the numbers fitted on resampled questions, shape (resamples, names); NaN where one has none."""
    rng = np.random.default_rng(seed)
    clusters = {n: table.subjects.clusters() for n, table in tables.items()}
    if not any(len(table) > 1 for table in tables.values()):
        resamples = 0  # nothing to resample
    draws = np.full((resamples, len(names)), np.nan)
    for draw in draws:
        drawn = {n: table.rows(clusters[n].drawn(rng)) for n, table in tables.items()}
        estimates = plain.fit_tables(drawn).estimates()
        for at, name in enumerate(names):
            value = estimates[name].value if name in estimates else None
            draw[at] = np.nan if value is None else value
    return draws


def _with_interval(estimate: Estimate, draws: FloatArray) -> Estimate:
    fitted = draws[~np.isnan(draws)]
    if len(fitted) < 2 or 2 * len(fitted) < len(draws) or estimate.units < 2:
        return msgspec.structs.replace(estimate, low=None, high=None)
    low, high = np.percentile(fitted, expanded_levels(estimate.units))
    return msgspec.structs.replace(estimate, low=float(low), high=float(high))


def _deviate(old: Estimate, new: Estimate, draws: FloatArray) -> float:
    """Return the distance between two estimates in standard errors, as a normal deviate; NaN without a
    spread, or from fewer than 20 questions asked again (a small group), whose spread says too
    little.

    The variances of both sides add up; a file without an interval is taken to vary as the fresh fit
    does. Student's t with the degrees of freedom of the smaller side says what that is worth.
    """
    from scipy.special import ndtri, stdtr

    before, count = old.units, new.units
    if new.low is None or old.value is None or new.value is None or not before or count < FEW_ITEMS:
        return float("nan")
    freedom = count - 1
    now = float(np.nanvar(draws)) * count / freedom  # a resample varies less by (n - 1) / n
    if old.low is None or old.high is None:
        then = now * count / before
    else:
        then = ((old.high - old.low) / (2 * student(before))) ** 2
        freedom = min(freedom, before - 1)
    error = max(math.sqrt(now + then), LEAST_ERROR)
    tail = float(stdtr(freedom, -abs(old.value - new.value) / error))
    return -float(ndtri(max(tail, 1e-300)))


def _largest_by_chance(draws: FloatArray, seed: int) -> FloatArray:
    """Draw the largest absolute deviate of numbers that vary together as the draws do."""
    centred = np.nan_to_num(draws - np.nanmean(draws, axis=0))
    lengths = np.sqrt((centred**2).sum(axis=0))
    directions = centred / np.where(lengths > 0, lengths, 1.0)
    chance = np.random.default_rng(seed).standard_normal((CHECKS, len(draws))) @ directions
    largest: FloatArray = np.abs(chance).max(axis=1)
    return largest
