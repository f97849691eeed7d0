"""Measure how often an audit of lists recommends `pcf` where a single call is at least as accurate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

import unswayed as us
from claim_rates.rate import Rate
from unswayed.backends.simulated import simulated_items
from unswayed.model.items import ItemSet, Task

TRIALS = 100
RESAMPLES = 100
LISTS = 150

NULL = "slot=2&label=0&noise=0.4"
"""A biased judge; the right answers of its lists are drawn by lot."""


def lists(seed: int, *, by_lot: bool) -> ItemSet:
    """Lists of four; their right answers may have nothing to do with the candidates."""
    plain = simulated_items(LISTS, 4, seed=seed)
    lot = np.random.default_rng(seed).integers(0, 4, LISTS)
    return ItemSet.of(
        [
            msgspec.structs.replace(
                item, task=Task.LISTWISE, gold=int(lot[number]) if by_lot else item.gold
            )
            for number, item in enumerate(plain)
        ],
        name=f"lists-{seed}",
    )


def measured(judge: str, seed: int, *, by_lot: bool = False) -> dict[str, Any]:
    """`metrics.json` of an audit of `direct` and `pcf`."""
    metrics: dict[str, Any] = us.audit(
        f"simulated/judge?{judge}&logprobs=0&seed={seed}",
        lists(60_000 + seed, by_lot=by_lot),
        methods=["direct", "pcf"],
        resamples=RESAMPLES,
        seed=seed,
    ).metrics
    return metrics


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Judges on which `pcf` cannot be better, then one on which it is, without a bound."""
    runs = trials or TRIALS
    settings = (
        ("slot 2, right answers by lot", NULL, True, 0.06),
        ("no bias, no noise", "slot=0&label=0&noise=0", False, 0.0),
        ("slot 2", NULL, False, None),
    )
    for setting, judge, by_lot, bound in settings:
        named = sum(
            measured(judge, seed, by_lot=by_lot)["recommendation"]["method"] == "pcf"
            for seed in range(runs)
        )
        yield Rate(
            statement="pcf is recommended over direct",
            setting=f"{setting}, {LISTS} lists of four",
            count=named,
            trials=runs,
            at_most=bound,
        )
