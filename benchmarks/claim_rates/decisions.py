"""Measure the statements about decision models: questions influence each other, and the served model has changed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Final

import numpy as np

from claim_rates.answers import estimation_answers
from claim_rates.rate import Rate
from unswayed.backends.packed import is_mixed
from unswayed.calls.shadow import WINDOW, Looks
from unswayed.methods.drift import drift
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.names import parse_method

PROBES: Final = 10_000
DAYS: Final = 40
LOOKS: Final = 50
"""Tests of a day: 10,000 questions asked again."""
FILED: Final = 500
"""Items that the file was fitted on."""


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Rates of the probe, then of the p-value that a server shows."""
    yield from probe_rates(trials or PROBES)
    yield from drift_rates(trials or DAYS)


def probe_rates(trials: int) -> Iterator[Rate]:
    """Alarms of servers with the noise of batches: each request moves the logits of its questions by chance."""
    statement = "questions asked together are answered otherwise"
    for size in (2, 4):
        for jitter in (0.003, 0.01, 0.03, 0.1, 0.3):
            yield Rate(
                statement=f"{statement}, no influence",
                setting=f"{size} questions of {size} options, noise of {jitter} logits",
                count=int(mixed(trials, size, jitter=jitter).sum()),
                trials=trials,
                at_most=0.1 if jitter <= 0.03 else None,
            )
    for jitter in (0.01, 0.1):
        for effect in (0.25, 0.5, 1.0, 2.0):
            yield Rate(
                statement=f"{statement}, influence of {effect} logits",
                setting=f"4 questions of 4 options, noise of {jitter} logits",
                count=int(mixed(trials, 4, jitter=jitter, effect=effect).sum()),
                trials=trials,
                at_least=0.9 if jitter < 0.1 else None,
            )


def mixed(trials: int, size: int, *, jitter: float, effect: float = 0.0) -> np.ndarray:
    """Return, for each probe of a server, whether it finds an influence.

    Args:
        trials: Probes.
        size: Questions of a probe, and options of each.
        jitter: Standard deviation of a request's own noise, in logits.
        effect: Logits by which the last option gains in every question of a request but the first.
    """
    rng = np.random.default_rng(int(1000 * jitter + 10 * effect))
    shape = (trials, size, size)
    content = rng.normal(0, 1.2, shape)
    planted = np.zeros(shape)
    planted[:, 1:, -1] = effect
    first, again = (shares(content + rng.normal(0, jitter, shape)) for _ in range(2))
    together = shares(content + planted + rng.normal(0, jitter, shape))
    noise, difference = (
        np.abs(first - other).max(axis=(1, 2)).tolist() for other in (again, together)
    )
    return np.array([is_mixed(*pair) for pair in zip(difference, noise, strict=True)])


def shares(logits: np.ndarray) -> np.ndarray:
    """Return the probabilities of logits over the last axis."""
    weights = np.exp(logits)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def drift_rates(trials: int) -> Iterator[Rate]:
    """A day of looks at an unchanged model, and five looks at a changed one."""
    for name, n in (
        ("pride", 2),
        ("pride", 4),
        ("additive", 2),
        ("cell-median", 2),
        ("calibraeval", 2),
    ):
        refused = parse_method(name).tests_drift_once
        setting = (
            f"{name}, {n} candidates, {WINDOW} questions a test{', refused' if refused else ''}"
        )
        days = [day(n, LOOKS, trial, name) for trial in range(trials)]
        yield Rate(
            statement=f"drift p-value of 5% at any of {LOOKS} tests, model unchanged",
            setting=setting,
            count=sum(shown for shown, _ in days),
            trials=trials,
            at_most=None if refused else 0.05,
        )
        yield Rate(
            statement="the same, each test by itself at 5%",
            setting=setting,
            count=sum(alone for _, alone in days),
            trials=trials,
        )
        yield Rate(
            statement="drift p-value of 5% within 5 tests, position effect 0.6 → 1.2 logits",
            setting=setting,
            count=sum(day(n, 5, trial, name, position=1.2)[0] for trial in range(trials)),
            trials=trials,
            at_least=None if refused else 0.9,
        )


def day(n: int, count: int, trial: int, name: str, **changed: float) -> tuple[bool, bool]:
    """Return whether the shown p-value falls to 5%, and whether any test's own does."""
    method, looks, start = parse_method(name), Looks(), (100 * n + trial) * 1000
    moved = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        filed = method.fit_tables(estimation_answers(method, FILED, n, seed=start))
        for look in range(1, count + 1):
            today = estimation_answers(method, WINDOW, n, seed=start + look, **changed)
            compared = drift(filed, today, resamples=100)
            looks.add(compared)
            moved = moved or any(number.moved for number in compared)
    return (looks.p_value or 1.0) <= 0.05, moved
