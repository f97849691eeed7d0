"""Repeat noise: the same presentation asked again, beside another one.

Without an effect of the order two presentations are two draws of one law, as two samples of one
presentation are: what changes more between presentations than within them is due to the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import UNSET, Struct, UnsetType

from unswayed.metrics.rare import of_shares
from unswayed.metrics.uncertainty import ONE, entries_of, paired_difference
from unswayed.model.decisions import MISSING, TIE, Estimate, FloatArray, IntArray
from unswayed.model.decisions.clusters import Clusters

FEWEST: Final = 2
"""Samples of one presentation that can be compared."""


class Repeats(Struct, frozen=True, kw_only=True):
    """Share of verdicts that differ between two samples, mean over the items that have both kinds."""

    changed: Estimate  # samples of the same presentation
    across: Estimate  # samples of different presentations
    beyond: Estimate  # the second less the first, paired by item: what is due to the order
    temperature: float | UnsetType = UNSET  # that of the samples, where it is known


def repeats(
    samples: Sequence[tuple[IntArray, Clusters | None]], temperature: float | None
) -> Repeats | UnsetType:
    """Measure repeat noise from the choices of I items under V presentations in S samples, (I, V, S),
    and the clusters of the items, per number of candidates; nothing where no item has two of one
    presentation and one of another.
    """
    unequal = [unequal_pairs(choices) for choices, _ in samples]
    within, across = (np.concatenate(parts) for parts in zip(*unequal, strict=True))
    both = np.flatnonzero(~np.isnan(within + across))
    if not len(both):
        return UNSET
    clusters = Clusters.of_strata([(len(choices), own) for choices, own in samples])
    clusters = clusters and clusters.rows(both)
    return Repeats(
        changed=mean_share(within[both], clusters),
        across=mean_share(across[both], clusters),
        beyond=paired_difference((across - within)[both], span=1.0, clusters=clusters),
        temperature=UNSET if temperature is None else temperature,
    )


def mean_share(values: FloatArray, clusters: Clusters | None) -> Estimate:
    """Return the mean of one share per item, (I,), with the interval of a share."""
    entries, counts = entries_of(values, clusters, None)
    if len(entries) == 1:
        return Estimate(value=float(values.mean()), n=len(values), reason=ONE)
    ((low, high),) = of_shares(np.column_stack([counts, entries]), counts)
    return Estimate(value=float(values.mean()), low=low, high=high, n=len(values))


def unequal_pairs(choices: IntArray) -> tuple[FloatArray, FloatArray]:
    """Share of unequal pairs of samples within and between presentations, (I, V, S) -> (I,) each;
    NaN without any. A tie is like a tie, an answer that could not be read like nothing.
    """
    named = [candidate for candidate in np.unique(choices).tolist() if candidate >= 0]
    counts = np.stack([(choices == code).sum(axis=2) for code in (*named, TIE)], axis=2)
    calls = (choices != MISSING).sum(axis=2)
    equal, pairs = _pairs(counts).sum(axis=(1, 2)), _pairs(calls).sum(axis=1)
    with np.errstate(invalid="ignore"):
        between = _pairs(calls.sum(axis=1)) - pairs
        equal_between = _pairs(counts.sum(axis=1)).sum(axis=1) - equal
        return 1.0 - equal / pairs, 1.0 - equal_between / between


def _pairs(counts: FloatArray) -> FloatArray:
    return counts * (counts - 1) / 2.0
