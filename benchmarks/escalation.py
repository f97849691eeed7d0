"""Compare `escalate` with and without fitted offsets on one pool, over random splits of the items.

    python benchmarks/escalation.py [--splits N] [--write]

The built-in judge answers its pairs and its multiple-choice questions in every order, once. Each split
fits on 200 items (500 for the bound `high`, which a share of 1% needs) and judges the others. Without
offsets the rule is that of AnyJev. The last column is what a prototype reached before `escalate` was
written.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from evidence_table import Table, add_write
from unswayed.auditing.settings import AuditSettings
from unswayed.audits import audit_calls
from unswayed.backends import BackendSettings
from unswayed.methods.escalate import Escalate
from unswayed.methods.estimation import MethodWarning
from unswayed.model.decisions import BoolArray, DecisionTable
from unswayed.model.items import ItemSet
from unswayed.tiny.items import judge_items, mcq_items

SETS: Final = {"pairs": judge_items, "multiple choice": mcq_items}
ITEMS: Final = {"mean": 200, "high": 500}
PROTOTYPE: Final = {
    ("pairs", "mean", 0.01): "1.19, 1.02%, 87.4%",
    ("multiple choice", "mean", 0.01): "1.30, 1.04%, 86.3%",
    ("pairs", "high", 0.02): "1.19, 1.02%",
}
COLUMNS: Final = (
    "items, guarantee",
    "share",
    "offsets",
    "calls per item",
    "changed",
    "share exceeded",
    "accuracy",
    "accuracy, all orders",
    "expected calls, changed, accuracy",
)


def pool_of(items: ItemSet) -> tuple[DecisionTable, BoolArray]:
    """Return the answers to every question of the method, and which candidate is right, shape (I, n)."""
    settings = AuditSettings(methods=("escalate:gap=inf",), resamples=0)
    audit = audit_calls(items, settings, "tiny/judge", BackendSettings(), directory=None)
    (stratum,) = audit.record.plan.strata
    return stratum.table.select(Escalate().asks(stratum.n)), stratum.unanswered.gold


def outcomes(
    method: Escalate, table: DecisionTable, gold: BoolArray, size: int, splits: int
) -> Iterator[tuple[float, float, bool, float, float]]:
    """Yield calls, changed verdicts, whether these exceed the share, and accuracy: stopped, and of all orders."""
    for split in range(splits):
        rows = np.random.default_rng(split).permutation(len(table))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MethodWarning)
            fitted = method.fit_tables({table.n: table.rows(rows[:size])})
        rest = rows[size:]
        early = fitted.decide_table(table.rows(rest))
        whole = replace(fitted, gap=np.inf).decide_table(table.rows(rest)).choices
        changed = float((early.choices != whole).mean())
        right = [float(gold[rest, named].mean()) for named in (early.choices, whole)]
        yield float(early.n_calls.mean()), changed, changed > method.share, *right


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=100)
    add_write(parser, "claims")
    given = parser.parse_args()
    pools = {kind: pool_of(items_of(1000)) for kind, items_of in SETS.items()}
    table = Table(COLUMNS)
    for (kind, pool), (bound, size), share in itertools.product(
        pools.items(), ITEMS.items(), (0.01, 0.02, 0.05)
    ):
        for offsets in ("fitted", "none"):
            method = Escalate(share=share, guarantee=bound, offsets=offsets)  # type: ignore[arg-type]
            calls, changed, exceeded, right, whole = np.mean(
                list(outcomes(method, *pool, size, given.splits)), axis=0
            )
            expected = PROTOTYPE.get((kind, bound, share), "–") if offsets == "fitted" else "–"
            table.add(
                f"{kind}, {bound}, {size} estimation items",
                f"{share:.0%}",
                offsets,
                f"{calls:.2f}",
                f"{changed:.2%}",
                f"{exceeded:.0%}",
                f"{right:.1%}",
                f"{whole:.1%}",
                expected,
            )
    if given.write:
        table.keep("claims", "escalation-offsets")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
