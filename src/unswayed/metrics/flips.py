"""Flips: items whose verdict changes with the presentation, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import TIE, UNPARSED


@dataclass(frozen=True, slots=True)
class FlipShare:
    """Share of verdicts that change, as in `metrics.json`."""

    total: int  # items whose answers are not all the same (unparsed agrees with nothing)
    n: int  # items with an answer under every presentation
    # items that picked the first position in every presentation although the candidates moved: pure
    # position picks
    first: int
    last: int  # items that picked the last position in every presentation
    unread: int  # flipped items with an answer that could not be read
    ties: int  # flipped items, all of them read, with a declared tie


def flips(strata: Sequence[Outcomes]) -> FlipShare:
    """Count the flips of some outcomes; items that lack a presentation are left out."""
    total = n = first = last = unread = ties = 0
    for outcomes in (part.tally for part in strata):
        n += outcomes.count(outcomes.complete)
        total += outcomes.count(outcomes.flipped)
        silent = outcomes.flipped & (outcomes.choices == UNPARSED).any(axis=1)
        unread += outcomes.count(silent)
        ties += outcomes.count(outcomes.flipped & ~silent & (outcomes.choices == TIE).any(axis=1))
        moved = len({presentation.order for presentation in outcomes.shown}) > 1
        if moved:
            picks = outcomes.counts_by(outcomes.positions_by_candidate)
            always = (picks == outcomes.n_views) & outcomes.complete[:, None]
            first += outcomes.count(always[:, 0])
            last += outcomes.count(always[:, -1])
    return FlipShare(total=total, n=n, first=first, last=last, unread=unread, ties=ties)
