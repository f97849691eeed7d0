"""Measure how often the report says that groups, or position and label, differ where they do not, and that
a judge ignores the letters that it reads.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

import unswayed as us
from claim_rates.rate import Rate
from unswayed.backends.simulated import simulated_items
from unswayed.model.items import ItemSet
from unswayed.report.claims import Cause, cause_of, groups_of
from unswayed.report.collect import run_data
from unswayed.report.findings import Finding

TRIALS = 150
ITEMS, GROUPS = 300, 10
JUDGE = "slot=0.6&label=0.6"
"""Position and label weigh the same, and every group is drawn alike."""


def statements(seed: int) -> tuple[bool, bool, bool]:
    """Return whether the report of one audit reports different groups, different position and letter, and
    a judge that ignores the letters.
    """
    items = [
        msgspec.structs.replace(item, group=f"g{number % GROUPS}")
        for number, item in enumerate(simulated_items(ITEMS, 2, seed=5000 + seed))
    ]
    result = us.audit(
        f"simulated/judge?{JUDGE}&seed={seed}",
        ItemSet.of(items, name="groups"),
        methods="direct",
        protocol="all",
        seed=seed,
        resamples=400,
    )
    finding = Finding(run_data(result.record))
    cause = cause_of(finding)
    assert cause is not None
    differ = cause[0] in {Cause.POSITION, Cause.LABEL}
    return groups_of(finding).unlike is not None, differ, cause[0] is Cause.UNFOLLOWED


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Both statements from the same audits."""
    said = [statements(seed) for seed in range(trials or TRIALS)]
    for statement, count in (
        ("a group is called worst", sum(groups for groups, _, _ in said)),
        ("position or label is reported to matter more", sum(cause for _, cause, _ in said)),
        ("the judge is reported to ignore labels", sum(ignores for _, _, ignores in said)),
    ):
        yield Rate(
            statement=statement,
            setting=f"{GROUPS} groups alike, {ITEMS} pairs, {JUDGE}",
            count=count,
            trials=len(said),
            at_most=0.07,
        )
