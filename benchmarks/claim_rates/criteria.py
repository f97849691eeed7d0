"""Measure how often intervals over the criteria of items contain the truth, with clusters and without.

Items have three criteria whose verdicts go together: a response that the judge gets right in one it
mostly gets right in the others. A trial draws items with their criteria; the truth is known. Without
clusters each criterion counts as an item of its own: those rows have no bound, they show why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from claim_rates.rate import Rate
from unswayed.metrics import difference, measure, measure_groups
from unswayed.metrics.gold import GOLD_ONE
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.simultaneous import contrasts
from unswayed.model.decisions.clusters import Clusters
from unswayed.model.presentation import canonical

TRIALS = 600
RESAMPLES = 300
CRITERIA = 3
ITEMS = 60
HIT, GAIN = 0.6, 0.1
"""Share of right verdicts of the plain judge, and what the other method adds."""
SHARED = 0.8
"""Share of items whose criteria all have the verdict of the first."""
AT_LEAST = 0.92


def drawn(generator: np.random.Generator) -> tuple[Outcomes, Outcomes]:
    """Verdicts of the plain judge and of a better method on the same items."""
    size = ITEMS * CRITERIA
    names = tuple(f"{item}#{criterion}" for item in range(ITEMS) for criterion in range(CRITERIA))
    level = generator.random((ITEMS, CRITERIA))
    shared = generator.random(ITEMS) < SHARED
    level[shared] = level[shared, :1]
    sides = []
    for share in (HIT, HIT + GAIN):
        right = (level < share).reshape(-1)
        sides.append(
            Outcomes(
                item_ids=names,
                groups=tuple(name.partition("#")[2] for name in names),
                shown=(canonical(2),),
                label_set=("A", "B"),
                choices=np.where(right, 0, 1).astype(np.int16)[:, None],
                gold=np.tile([True, False], (size, 1)),
                gold_kind=np.full(size, GOLD_ONE, dtype=np.int8),
                permutable=np.ones(size, dtype=np.bool_),
                clusters=Clusters.of([name.partition("#")[0] for name in names]),
            )
        )
    return sides[0], sides[1]


def rates(trials: int | None) -> Iterator[Rate]:
    """Coverage of values, macro averages, differences and joint differences."""
    count = trials or TRIALS
    generator = np.random.default_rng(11)
    kept: dict[tuple[str, str], int] = {}
    for seed in range(count):
        sides = drawn(generator)
        for clustered in (True, False):
            plain, better = (side if clustered else replace(side, clusters=None) for side in sides)
            options = {"resamples": RESAMPLES, "seed": seed}
            _, macro = measure_groups([plain], names=["accuracy"], **options)
            joint = contrasts({"plain": [plain], "better": [better]}, "accuracy", seed=seed)
            estimates = {
                "a value": (measure([plain], names=["accuracy"], **options)["accuracy"], HIT),
                "the macro average": (macro["accuracy"], HIT),
                "a difference": (difference([better], [plain], "accuracy", **options), GAIN),
                "a joint difference": (joint.against("plain")["better"], GAIN),
            }
            for statement, (estimate, truth) in estimates.items():
                key = statement, "clustered" if clustered else "each criterion by itself"
                kept[key] = kept.get(key, 0) + (estimate.low <= truth <= estimate.high)
    for (statement, setting), covered in kept.items():
        yield Rate(
            statement=f"95% interval of {statement} over {CRITERIA} criteria covers",
            setting=f"{ITEMS} items, {setting}",
            count=covered,
            trials=count,
            at_least=AT_LEAST if setting == "clustered" else None,
        )
