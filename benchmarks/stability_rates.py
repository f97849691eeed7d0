"""Simulate judges with known flips and count the differences that stability.py reports.

    python benchmarks/stability_rates.py [--trials 400] [--write]

Every trial draws judges that flip with known probability on the same pairs, and reads their differences at the
critical value of the page. Pairs differ in how often they are flipped, so that the judges agree with each
other; in the setting of 24 questions, pairs about one question are flipped alike.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence

import numpy as np

from evidence_table import Table, add_write
from stability import PAGE, apart, critical_value
from unswayed.metrics import Outcomes
from unswayed.metrics.simultaneous import contrasts
from unswayed.model.decisions import Clusters
from unswayed.model.presentation import X0, X2

COMPARISONS = 17
"""Comparisons on the page."""
SETTINGS = (  # judges, pairs, questions, points that the first judge flips more often
    (6, 100, 100, 0),
    (2, 66, 66, 0),
    (2, 96, 24, 0),
    (6, 100, 100, 20),
    (6, 100, 100, 40),
)


def judged(flipped: Sequence[bool], questions: int) -> Outcomes:
    """The answers of a judge of pairs in both orders, candidate 0 first unless flipped."""
    items = len(flipped)
    choices = np.zeros((items, 2), dtype=np.int16)
    choices[:, 1] = flipped
    units = [str(item % questions) for item in range(items)]
    return Outcomes(
        item_ids=tuple(f"{item:04d}" for item in range(items)),
        groups=(None,) * items,
        shown=(X0, X2),
        label_set=("A", "B"),
        choices=choices,
        gold=np.zeros((items, 2), dtype=np.bool_),
        gold_kind=np.zeros(items, dtype=np.int8),
        permutable=np.ones(items, dtype=np.bool_),
        clusters=Clusters.of(units),
    )


def trial(
    generator: np.random.Generator, judges: int, items: int, questions: int, points: int
) -> tuple[bool, float]:
    """Return whether equal judges are separated, and the share of separated pairs with the first."""
    rates = np.tile(generator.beta(1.5, 3.5, size=questions), items // questions + 1)[:items]
    shared = np.tile(generator.random((judges, questions)), (1, items // questions + 1))[:, :items]
    # three in four draws are common to a question where it has several pairs
    common = generator.random((judges, items)) < (0.75 if questions < items else 0.0)
    draws = np.where(common, shared, generator.random((judges, items)))
    likely = np.tile(rates, (judges, 1))
    likely[0] = np.minimum(1.0, likely[0] + points / 100)
    names = [f"judge {judge}" for judge in range(judges)]
    values = contrasts(
        {
            name: (judged((draws < likely)[judge].tolist(), questions),)
            for judge, name in enumerate(names)
        },
        "consistency",
    )
    critical = critical_value(COMPARISONS)
    told = {
        pair: apart(values.difference(*pair, critical)) for pair in itertools.combinations(names, 2)
    }
    other = [yes for pair, yes in told.items() if names[0] not in pair or points == 0]
    first = [yes for pair, yes in told.items() if names[0] in pair]
    return any(other), sum(first) / len(first)


def main() -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=400)
    add_write(parser, PAGE)
    given = parser.parse_args()
    columns = ("judges", "pairs", "units", "first judge flips more", "trials",
               "equal judges separated", "first judge's comparisons separated")  # fmt: skip
    table = Table(columns)
    for number, (judges, items, questions, points) in enumerate(SETTINGS):
        generator = np.random.default_rng([number, 20])
        found = [trial(generator, judges, items, questions, points) for _ in range(given.trials)]
        wrong, right = (float(np.mean(column)) for column in zip(*found, strict=True))
        told = f"{100 * right:.1f}%" if points else "–"
        more = f"{points} points" if points else "–"
        table.add(judges, items, questions, more, given.trials, f"{100 * wrong:.1f}%", told)
    if given.write:
        table.keep(PAGE, "rates")


if __name__ == "__main__":
    main()
