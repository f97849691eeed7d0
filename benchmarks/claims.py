"""Measure how often each statement of the program is wrong, on judges whose truth is known.

    python benchmarks/claims.py [PART ...] [--trials N] [--write]

Every part is a module in `claim_rates` with `rates(trials) -> Iterator[Rate]`. Exit code 1 if a bound
is broken.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time

from evidence_table import Table, add_write

COLUMNS = ("statement", "setting", "rate", "trials", "bound")
PARTS = {
    "ladder": "claim_rates.ladder",
    "named": "claim_rates.named",
    "intervals": "claim_rates.intervals",
    "rare": "claim_rates.rare",
    "drift": "claim_rates.drift",
    "certain": "claim_rates.certain",
    "duplicates": "claim_rates.duplicates",
    "learned": "claim_rates.learned",
    "escalation": "claim_rates.escalation",
    "selection": "claim_rates.selection",
    "surest": "claim_rates.surest",
    "same": "claim_rates.same",
    "headlines": "claim_rates.headlines",
    "groups": "claim_rates.groups",
    "lists": "claim_rates.lists",
    "places": "claim_rates.places",
    "board": "claim_rates.board",
    "printed": "claim_rates.printed",
    "correlations": "claim_rates.correlations",
    "keyed": "claim_rates.keyed",
    "criteria": "claim_rates.criteria",
    "alarms": "claim_rates.alarms",
    "advice": "claim_rates.advice",
    "gold": "claim_rates.gold",
    "changes": "claim_rates.changes",
    "sums": "claim_rates.sums",
    "gates": "claim_rates.gates",
    "sentences": "claim_rates.sentences",
    "decisions": "claim_rates.decisions",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--trials", type=int, help="trials per setting (default: each part's own)")
    add_write(parser, "claims")
    arguments = parser.parse_args()
    broken = 0
    for part in arguments.parts:
        started = time.process_time()
        module = importlib.import_module(PARTS[part])
        table = Table(COLUMNS)
        for rate in module.rates(arguments.trials):
            bounds = [
                f"{sign} {bound:.1%}"
                for sign, bound in (("≤", rate.at_most), ("≥", rate.at_least))
                if bound is not None
            ]
            digits = 1 if isinstance(rate.count, int) else 2  # a sum of small shares
            table.add(
                rate.statement,
                rate.setting,
                f"{rate.share:.{digits}%}",
                rate.trials,
                (", ".join(bounds) or "–") + ("" if rate.kept else " BROKEN"),
            )
            broken += not rate.kept
        if arguments.write:
            table.keep("claims", part)
        print(f"{part}: {time.process_time() - started:.0f} CPU-s", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
