"""Additive effects: estimate what each position and each label adds to log p, and subtract both.

log p_it(c) = theta_ic + alpha[position of c in t] + beta[label of c in t] + const, with the alphas
and the betas summing to 0. Fit: centre log p over the candidates, subtract each item's and
candidate's own mean over its presentations, least squares on the 2n effects. Position and label
are told apart only if they are decoupled somewhere: X0..X3 for two candidates, a Graeco-Latin set
where one exists, else rotations with and without their labels. From coupled presentations alone
only the sums alpha + beta are known: "not separable".
Calls: fit 4 (two candidates), n (Graeco-Latin) or 2n - 1 per estimation item; judge the size of
`orders` (1). Verdict: argmax mean_t (log p - alpha - beta). Ties: the tie rule. Ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from unswayed.methods.checks import check_layout, check_numbers
from unswayed.methods.estimation import (
    FEW_ITEMS,
    Tables,
    not_fitted,
    warn_if_few,
    warn_of,
    warn_uncorrected,
)
from unswayed.methods.intervals import FEWEST, expanded_interval, mean_interval
from unswayed.methods.priors import layout_name
from unswayed.methods.protocol import About, Learned, Method, learned, learned_for
from unswayed.methods.sets import Reading, asks_of_set, presentation_set
from unswayed.methods.tables import (
    EPSILON,
    TOLERANCE,
    labels_by_candidate,
    positions_by_candidate,
    probs_of,
    softmax,
    verdict_table,
)
from unswayed.model.decisions import (
    Clusters,
    DecisionTable,
    Estimate,
    Evidence,
    FloatArray,
    VerdictTable,
    argmax_by_tie_rule,
)
from unswayed.model.presentation import Ask, Presentation, presentations

Design = Literal["decoupled", "coupled"]


@dataclass(frozen=True, slots=True)
class Effects(Learned):
    """Effects of positions and labels on log p, in nats."""

    positions: tuple[float, ...]  # effect of each position (first is 0); sums to 0
    labels: tuple[float, ...]  # effect of each label; sums to 0
    # whether the design could tell positions from labels. If not, only the sums at the label
    # sequences of `layouts` mean anything.
    separable: bool
    layouts: tuple[tuple[int, ...], ...]  # label sequences seen in estimation
    count: int  # estimation items behind them
    # positions_low, positions_high, labels_low, labels_high: 95% bootstrap intervals; empty if
    # not computed
    positions_low: tuple[float, ...] = ()
    positions_high: tuple[float, ...] = ()
    labels_low: tuple[float, ...] = ()
    labels_high: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_numbers("positions", self.positions, self.n)
        check_numbers("labels", self.labels, self.n)
        for name in ("positions_low", "positions_high", "labels_low", "labels_high"):
            if bound := getattr(self, name):
                check_numbers(name, bound, self.n)
        for layout in self.layouts:
            check_layout("layouts", layout, self.n)

    def holds_for(self, shown: Presentation) -> bool:
        """Return True if the sums are known for the label sequence shown."""
        return self.separable or shown.labels in self.layouts


def design_presentations(n: int, design: Design) -> tuple[Presentation, ...]:
    """Return the presentations of each estimation item."""
    if design == "coupled":
        return presentation_set("auto", n)
    if n == 2:
        return presentation_set("auto", 2, "all")
    if n % 2 == 1 or n == 4:
        return presentations("graeco-latin", n)
    coupled = presentations("cyclic", n)
    return tuple(dict.fromkeys((*coupled, *presentations("cyclic", n, protocol="label"))))


@dataclass(frozen=True, slots=True)
class Additive(Method):
    """Subtraction of position and label effects.

    Attributes:
        orders: Presentations to judge: `identity` makes one call; any other set averages the
            corrected log-probabilities of its calls.
        layouts: Parts that move with `orders`.
        design: Presentations of the estimation items: `decoupled` separates positions from labels,
            `coupled` is usual in recorded data.
        centre: Average of the items' residuals: `mean` is least squares, `median` resists a
            distorted scale and outliers.
        resamples: Bootstrap resamples for the intervals, which need 60 items; 0 skips them.
        seed: Seed of the bootstrap and of `random:K`.
        effects: What `fit` learned.
    """

    orders: str = "identity"
    layouts: Reading = "coupled"
    design: Design = "decoupled"
    centre: Literal["mean", "median"] = "mean"
    resamples: int = 1000
    seed: int = 0
    effects: tuple[Effects, ...] | None = learned()

    name: ClassVar[str] = "additive"
    reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.PROBS})
    fitted_from: ClassVar[int] = FEW_ITEMS
    about: ClassVar[About] = About(
        title="Additive position and label effects",
        source="Unswayed",
        idea="Estimate the effect of each position and each label on log p, and subtract both.",
        calls="1",
        estimation="4 per estimation item for two candidates; for more, n if a Graeco-Latin set "
        "exists, otherwise 2n − 1",
        equation="argmax_c log p(c) - alpha[position of c] - beta[label of c]",
        helps="you want to know how much of the bias is position and how much is label, or "
        "presentations vary them separately",
        cannot="On coupled presentations it is no better than `pride`. It assumes that effects "
        "add up on the log scale; `cell-median` is safer if the scale saturates.",
        per_layout="additive",
    )

    def estimation_asks(self, n: int) -> tuple[Ask, ...]:
        """Every presentation of the design."""
        return tuple(Ask(shown) for shown in design_presentations(n, self.design))

    def fit_tables(self, tables: Tables) -> Self:
        """Return a copy that knows the effects; calls without all probabilities are left out."""
        by_size = {n: self._effects(table) for n, table in tables.items()}
        fitted = tuple(effects for effects in by_size.values() if effects is not None)
        counts = {n: (effects and effects.units) or 0 for n, effects in by_size.items()}
        warn_if_few(self.name, counts, least=self.fitted_from)
        for effects in fitted:
            if not effects.separable:
                warn_of(
                    f"additive: position and label effects are not separable for {effects.n} "
                    "candidates, because labels and positions always moved together. Only the "
                    "label sequences seen in estimation are corrected."
                )
        return replace(self, effects=fitted)

    def _effects(self, table: DecisionTable) -> Effects | None:
        residuals, design, columns, clusters = _residuals(table)
        if not len(columns):
            return None
        solver: FloatArray = np.asarray(np.linalg.pinv(design), dtype=np.float64)
        rank = int(np.linalg.matrix_rank(design))
        middle = np.median if self.centre == "median" else np.mean
        point = solver @ middle(residuals, axis=0)
        low = high = np.empty((0,))
        if self.resamples and clusters.count >= FEWEST:
            low, high = self._interval(residuals, solver, clusters)
        n = table.n
        read = sorted({table.shown[column].labels for column in columns})
        parts = [tuple(map(float, values)) for values in (point, low, high)]
        return Effects(
            n=n,
            positions=parts[0][:n],
            labels=parts[0][n:],
            separable=rank == 2 * (n - 1),
            layouts=tuple(read),
            count=len(residuals),
            positions_low=parts[1][:n],
            positions_high=parts[2][:n],
            labels_low=parts[1][n:],
            labels_high=parts[2][n:],
            units=clusters.count,
        )

    def _interval(
        self, residuals: FloatArray, solver: FloatArray, clusters: Clusters
    ) -> tuple[FloatArray, FloatArray]:
        if self.centre == "mean":
            each = clusters.entries(residuals @ solver.T)
            return mean_interval(each, resamples=self.resamples, seed=self.seed)
        return expanded_interval(
            lambda rows: solver @ np.median(residuals[rows], axis=0),
            clusters,
            resamples=self.resamples,
            seed=self.seed,
        )

    def estimates(self) -> dict[str, Estimate]:
        """Return the effects of positions and labels, in nats."""
        result = {}
        for effects in self.effects or ():
            for kind, values, low, high in (
                ("position", effects.positions, effects.positions_low, effects.positions_high),
                ("label", effects.labels, effects.labels_low, effects.labels_high),
            ):
                for at, value in enumerate(values):
                    result[f"effect of {kind} {at} among {effects.n} candidates"] = (
                        Estimate(
                            value=value,
                            low=low[at] if low else None,
                            high=high[at] if high else None,
                            n=effects.count,
                            n_units=effects.units,
                        )
                        if effects.separable
                        else Estimate(value=None, n=effects.count, reason="not separable")
                    )
        return result

    def threshold(self, shown: Presentation) -> float | None:
        """Return the P(A) above which A wins under one presentation of two candidates."""
        effects = learned_for(2, self.effects)
        if effects is None or not effects.holds_for(shown):
            return None
        positions = [shown.position_of_label(label) for label in range(effects.n)]
        by_label = np.array(effects.positions)[positions] + np.array(effects.labels)
        return float(1 / (1 + np.exp(by_label[1] - by_label[0])))

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Every presentation of the set judged."""
        return asks_of_set(self.orders, n, self.layouts, self.seed)

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Return the highest mean corrected log-probability.

        A call without probabilities is left out of the mean: what is left is corrected for the
        positions and labels it was shown under, so it needs no balance.
        """
        if self.effects is None:
            raise not_fitted(self.name)
        effects = learned_for(table.n, self.effects)
        if effects is None and self.effects:
            warn_uncorrected(self.name, f"no effects were estimated for {table.n} candidates")
        cells = table.allowed
        total, sure = np.zeros((len(table), table.n)), np.zeros((len(table), table.n))
        count = np.zeros(len(table))
        for column, shown in enumerate(table.shown):
            corrected = np.log(probs_of(table, column) + EPSILON) - self._offsets(
                effects, table, column, shown
            )
            read = cells[:, column] & ~np.isnan(corrected).any(axis=1)
            total[read] += corrected[read]
            sure[read] += softmax(corrected[read])
            count += read
        total[count == 0] = np.nan
        scores = softmax(total / np.maximum(count, 1)[:, None])
        choices = argmax_by_tie_rule(scores, table, tolerance=TOLERANCE)
        confidence = sure / np.maximum(count, 1)[:, None]
        return verdict_table(table, choices, scores=scores, confidence=confidence)

    def _offsets(
        self, effects: Effects | None, table: DecisionTable, column: int, shown: Presentation
    ) -> FloatArray:
        """Return the effect of the presentation on each candidate's log p, shape (n,)."""
        if effects is None:
            return np.zeros(table.n)
        if not effects.holds_for(shown):
            where = layout_name(shown.labels, table.label_set)
            warn_uncorrected(self.name, f"effects are not separable, and {where} was never seen")
            return np.zeros(table.n)
        positions = np.array(effects.positions)[list(positions_by_candidate(table, column))]
        labels = np.array(effects.labels)[list(labels_by_candidate(table, column))]
        result: FloatArray = positions + labels
        return result


def _residuals(table: DecisionTable) -> tuple[FloatArray, FloatArray, NDArray[np.intp], Clusters]:
    """Residuals of log p after each item's and candidate's own mean, shape (items, columns * n);
    their design, (columns * n, 2n); the columns used; the clusters of the items.

    Columns that few items have are left out, then items that lack one of the others.
    """
    n = table.n
    logs = np.stack(
        [np.log(probs_of(table, column) + EPSILON) for column in range(len(table.shown))], axis=1
    )
    complete = ~np.isnan(logs).any(axis=2)
    often = complete.sum(axis=0)
    columns: NDArray[np.intp] = np.flatnonzero(2 * often > often.max(initial=0))
    rows = complete[:, columns].all(axis=1)
    if len(columns) < 2 or not rows.any():
        return np.empty((0, 0)), np.empty((0, 0)), columns[:0], Clusters.among(())
    logs = logs[rows][:, columns]
    centred = logs - logs.mean(axis=2, keepdims=True)
    left = centred - centred.mean(axis=1, keepdims=True)
    design = np.zeros((len(columns), n, 2 * n))
    for at, column in enumerate(columns):
        for candidate in range(n):
            design[at, candidate, positions_by_candidate(table, int(column))[candidate]] = 1
            design[at, candidate, n + labels_by_candidate(table, int(column))[candidate]] = 1
    design -= design.mean(axis=1, keepdims=True)
    design -= design.mean(axis=0, keepdims=True)
    clusters = table.subjects.clusters(rows)
    return left.reshape(len(left), -1), design.reshape(-1, 2 * n), columns, clusters
