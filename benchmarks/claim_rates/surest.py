"""Measure `selective` with `guarantee=mean` on judges that are surest where they are wrong, which it assumes
away: the share of errors among verdicts, as the mean over fits that give verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from claim_rates.drawn_judges import DrawnJudge
from claim_rates.rate import Rate
from claim_rates.selection import JUDGES, TRIALS, Selective, outcome

JUDGES.update(
    {
        f"surer when wrong, spread {spread:g}": DrawnJudge(
            place=1.0, spread=spread, surer="when wrong"
        )
        for spread in (3.0, 2.5)
    }
)


def rates(trials: int | None) -> Iterator[Rate]:
    """No bound: the assumption is broken."""
    for judge in [name for name in JUDGES if name.startswith("surer when wrong")]:
        for orders in ("identity", "auto"):
            method = Selective(guarantee="mean", orders=orders)
            made = [outcome(method, judge, 300, seed) for seed in range(trials or TRIALS // 2)]
            risks = np.array([risk for risk, decided in made if decided])
            named = "one order" if orders == "identity" else "all orders"
            yield Rate(
                statement="verdicts that err, in fits that give any",
                setting=f"{judge}, guarantee=mean, {method.error:.0%}, {named}, verdicts in "
                f"{len(risks)} of {len(made)} fits",
                count=float(risks.sum()),
                trials=max(len(risks), 1),
            )
