"""How often a remedy is named on a judge without bias, and how often on one with bias.

A trial is a whole audit with `--methods all`. The recommendation reads no bootstrap resamples, so
trials make few. With bias every remedy named is a true one here: the planted bias is a shift that
all corrections remove or average out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

import unswayed as us
from claim_rates.rate import Rate
from unswayed.backends.simulated import simulated_items
from unswayed.items import ItemSet

TRIALS = 200
RESAMPLES = 100
UNBIASED = "slot=0&label=0"
"""The judge of the null runs: noise, but neither a position nor a label preference."""

BIASED = (("slot=0.6&label=0", 200), ("slot=0.9&label=0", 200), ("slot=1.5&label=0", 200))


def recommended(model: str, items: ItemSet, seed: int) -> dict[str, Any]:
    """The recommendation of one audit with all methods."""
    result = us.audit(model, items, methods="all", seed=seed, resamples=RESAMPLES)
    found: dict[str, Any] = result.metrics["recommendation"]
    return found


def without_signal(items: ItemSet, seed: int) -> ItemSet:
    """The items with gold that has nothing to do with the candidates: no method is right more."""
    shuffled = [
        msgspec.structs.replace(item, gold=(number * 7919 + seed) % 2)
        for number, item in enumerate(items)
    ]
    return ItemSet.of(shuffled, name=f"{items.name}-unrelated")


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Null runs with their bound, then power, which has none."""
    runs = trials or TRIALS
    named = 0
    for seed in range(runs):
        found = recommended(
            f"simulated/judge?{UNBIASED}&seed={seed}",
            simulated_items(200, 2, seed=1000 + seed),
            1000 + seed,
        )
        named += found["method"] not in (None, "direct")
    setting = "no bias, 200 pairs"
    yield Rate(
        statement="a remedy is recommended", setting=setting, count=named, trials=runs, at_most=0.06
    )
    fewer = max(1, runs // 4)
    for judge, size in BIASED:
        found_all = [
            recommended(
                f"simulated/judge?{judge}&seed={seed}",
                simulated_items(size, 2, seed=5000 + seed),
                5000 + seed,
            )
            for seed in range(fewer)
        ]
        setting = f"{judge.replace('&', ', ')}, {size} pairs"
        count = sum(found["method"] not in (None, "direct") for found in found_all)
        yield Rate(statement="a remedy is recommended", setting=setting, count=count, trials=fewer)
    unrelated = [
        recommended(
            f"simulated/judge?slot=0.9&seed={seed}",
            without_signal(simulated_items(300, 2, seed=9000 + seed), seed),
            9000 + seed,
        )
        for seed in range(fewer)
    ]
    setting = "slot=0.9, label=0.4, gold unrelated, 300 pairs"
    named = sum(found["method"] not in (None, "direct") for found in unrelated)
    yield Rate(
        statement="a remedy is recommended", setting=setting, count=named, trials=fewer,
        at_most=0.06 if fewer >= 50 else None,
    )  # fmt: skip
