"""RStd and CKLD: is the judge as good at finding the right answer under every label?

Both look at displayed labels, pooled over presentations. By candidate they would hide the bias: a
judge that always says "A" has recalls of 50/50 by candidate (RStd 0) and 100/0 by label (RStd 50).
Only items with exactly one right candidate count; ties and unparsed answers are misses for RStd
and are no choice for CKLD.

RStd: population standard deviation of the recalls, as a fraction (`ddof=1` for CalibraEval's printed
formula; the released code of PriDe and CalibraEval uses 0). Labels that never carried the gold are
left out. CKLD: sum over labels of p ln(p / q), p = shares of gold, q = shares of choices, smoothed
as (count + 0.5) / (total + 0.5 n); `ckld_raw` is unsmoothed and infinite where a label that carries
gold is never chosen.

Sources: Zheng et al. 2024 (PriDe) for RStd; Choi et al. 2025 for CKLD.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unswayed.metrics.gold import GOLD_ONE
from unswayed.metrics.metric import Ends, Metric, Need, correlation, item_means
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.rare import of_differences, of_spread
from unswayed.metrics.uncertainty import FEW, TOO_FEW
from unswayed.model.decisions import FloatArray


def _gold_and_hits(outcomes: Outcomes) -> FloatArray:
    """1, calls with gold under each label, and hits under each label; shape (I, 1 + 2n)."""
    gold, hits, _ = _by_label(outcomes)
    return _with_items(np.column_stack([gold, hits]))


def _gold_and_choices(outcomes: Outcomes) -> FloatArray:
    """1, calls with gold under each label, and choices of each label; shape (I, 1 + 2n)."""
    gold, _, chosen = _by_label(outcomes)
    return _with_items(np.column_stack([gold, chosen]))


def recalls(sums: FloatArray) -> FloatArray:
    """Recall under each label, (B, n), from the sums of `_gold_and_hits`; NaN for a label without
    gold.
    """
    n = (sums.shape[1] - 1) // 2
    gold, hits = sums[:, 1 : n + 1], sums[:, n + 1 :]
    return np.where(gold > 0, hits / np.where(gold > 0, gold, 1.0), np.nan)


def recall_spread(sums: FloatArray, *, ddof: int = 0) -> FloatArray:
    """RStd, the standard deviation of the recalls from the sums of `_gold_and_hits`, shape (B,)."""
    recall = recalls(sums)
    carried = ~np.isnan(recall)
    count = carried.sum(axis=1)
    safe = np.where(carried, recall, 0.0)
    mean = safe.sum(axis=1, keepdims=True) / np.maximum(count, 1)[:, None]
    square = (np.where(carried, recall - mean, 0.0) ** 2).sum(axis=1)
    return np.where(count >= 2, np.sqrt(square / np.maximum(count - ddof, 1)), np.nan)


def divergence(sums: FloatArray, *, smoothing: float = 0.5) -> FloatArray:
    """CKLD from the sums of `_gold_and_choices`, shape (B,); infinite where unsmoothed and a label
    is never chosen. `smoothing` is a pseudo-count added to every label on both sides.
    """
    n = (sums.shape[1] - 1) // 2
    counts = sums[:, 1:].reshape(len(sums), 2, n)
    totals = counts.sum(axis=2, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = (counts + smoothing) / (totals + smoothing * n)
        gold, chosen = shares[:, 0], shares[:, 1]
        terms = np.where(gold > 0, gold * np.log(gold / chosen), 0.0)
    value: FloatArray = terms.sum(axis=1)
    value[(totals == 0).any(axis=(1, 2))] = np.nan
    return value


def _by_label(outcomes: Outcomes) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Gold, hits and choices by displayed label over pooled calls with one gold, (I, n) each."""
    counted = outcomes.pooled & (outcomes.gold_kind == GOLD_ONE)[:, None]
    labels = outcomes.labels_by_candidate
    gold_label = labels[np.arange(outcomes.n_views)[None, :], outcomes.gold.argmax(axis=1)[:, None]]
    hit = counted & outcomes.right
    gold = np.empty((len(outcomes), outcomes.n))
    hits = np.empty_like(gold)
    for label in range(outcomes.n):
        here = gold_label == label
        gold[:, label] = (here & counted).sum(axis=1)
        hits[:, label] = (here & hit).sum(axis=1)
    chosen = outcomes.counts_by(labels) * (outcomes.gold_kind == GOLD_ONE)[:, None]
    return gold, hits, chosen


def _with_items(statistics: FloatArray) -> FloatArray:
    """Put the item count (1 where an item has any pooled call) in front."""
    return np.column_stack([statistics.any(axis=1).astype(float), statistics])


def _recall_difference(outcomes: Outcomes) -> FloatArray:
    """1 and the item's recall under the first label less that under the last, shape (I, 2)."""
    gold, hits, _ = _by_label(outcomes)
    recall = hits / np.maximum(gold, 1.0)
    return item_means(recall[:, 0] - recall[:, -1], np.all(gold > 0, axis=1))


def _if_enough_differ(statistics: FloatArray, counts: NDArray[np.int64]) -> list[Ends] | None:
    """No interval of CKLD where labels are chosen otherwise than they are right in few items."""
    n = (statistics.shape[1] - 1) // 2
    differ = (statistics[:, 1 : n + 1] != statistics[:, n + 1 :]).any(axis=1)
    return [TOO_FEW] if counts[differ].sum() < FEW else None


RSTD = Metric(
    title="RStd",
    meaning="standard deviation of recall over the labels; 0 if right answers are recognised equally "
    "often under each",
    statistics=_gold_and_hits,
    values=recall_spread,
    undefined="fewer than two labels ever carried the right answer",
    needs=(Need.ONE_GOLD, Need.PERMUTABLE),
    better=-1,
    percent=True,
    constructed="evenly",
    curve=True,
    interval=of_spread,
    inflated=2,
)

RECALL_DIFFERENCE = Metric(
    title="Recall difference",
    meaning="recall of right answers under the first label minus recall under the last; mean over "
    "items judged with the right answer under both; 0 without bias (two candidates)",
    statistics=_recall_difference,
    undefined="no item was judged with its right answer under both labels",
    needs=(Need.ONE_GOLD, Need.ORDERS, Need.PERMUTABLE),
    percent=True,
    compared="paired",
    constructed="evenly",
    limits=correlation,
    interval=of_differences,
    most=2,
)

CKLD = Metric(
    title="CKLD",
    meaning="Kullback-Leibler divergence from the gold labels to the chosen ones, smoothed; 0 if "
    "labels are chosen as often as they are right",
    statistics=_gold_and_choices,
    values=divergence,
    undefined="infinite: a label that carries right answers is never chosen (ckld is smoothed)",
    needs=(Need.ONE_GOLD, Need.PERMUTABLE, Need.PARSED),
    better=-1,
    constructed="evenly",
    interval=_if_enough_differ,
    inflated=1,
)

CKLD_RAW = replace(
    CKLD,
    title="CKLD, unsmoothed",
    meaning="CKLD without smoothing; infinite if a label that is right is never chosen",
    values=partial(divergence, smoothing=0.0),
)
