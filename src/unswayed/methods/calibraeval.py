"""CalibraEval: learn a monotone map g of P(A) under which permuted presentations agree.

With s0, s1, s2 = P(A) under X0, X1 (order-only swap) and X2 (coupled swap), the map minimises the
mean over estimation items of a^2 + b^2 - lambda c^2, a = g(s0) + g(s2) - 1, b = g(s0) - g(s1),
c = g(s0) - g(s2), over nondecreasing g (Li et al. 2024, Eq. 10). A verdict is g(P(A)) above 1/2,
with g interpolated linearly between the estimation probabilities and clipped at the ends.
Calls: fit 3 per estimation item (at most 3 000 items), judge 1. Ties: probabilities that differ and
are mapped to the same value are a tie, because the map took their difference away; equal ones go to
the tie rule. Where only the constant map is left (lambda below lambda*, as with noisy judges) nothing
is mapped: verdicts are the raw ones, with a warning.

Where the authors' code differs: it starts at d = 0 and stops after one epoch at lambda = 0.05,
which leaves g close to the rank transform; its gradient and Eq. 14 are both wrong (the latter
collapses g to 1/2). Here the problem is solved as the quadratic program it is; `solver=noa` is the
paper's descent with the true gradient. Reading X2 as "labels swapped, order kept" (X3) is a
different and much weaker method. The extension to more than two candidates is ours and
unvalidated: one map per label, over the coupled rotations, without order-only presentations
(squared differences to those outweigh the rest for n > 2 and leave constant maps).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from unswayed.base.errors import MethodError, UsageError
from unswayed.methods.checks import UnsoundError, check_numbers, check_rising
from unswayed.methods.estimation import (
    FEW_ITEMS,
    Tables,
    not_fitted,
    warn_if_few,
    warn_of,
    warn_uncorrected,
)
from unswayed.methods.intervals import FEWEST, expanded_interval
from unswayed.methods.monotone import (
    Form,
    Problem,
    critical_lambda,
    crossing,
    descend,
    make_problem,
    solve,
    thin,
)
from unswayed.methods.protocol import About, Learned, Method, learned, learned_for
from unswayed.methods.sets import canonical_ask, presentation_set
from unswayed.methods.tables import (
    TOLERANCE,
    labels_by_candidate,
    probs_by_label,
    probs_of,
    softmax,
    verdict_table,
)
from unswayed.model.decisions import (
    TIE,
    BoolArray,
    Clusters,
    DecisionTable,
    Estimate,
    Evidence,
    FloatArray,
    VerdictTable,
    argmax_by_tie_rule,
)
from unswayed.model.presentation import X1, Ask, Presentation, label_symbols

Objective = Literal["both", "l1", "l2"]
"""Eq. 10, or the paper's ablations: l1 = a^2 - lambda c^2, l2 = b^2 - lambda (g(s0) - 1/2)^2."""


@dataclass(frozen=True, slots=True)
class Curve(Learned):
    """The map of one label's probability."""

    label: int  # the label whose probability it maps (for two candidates: A; B is the complement)
    z: tuple[float, ...]  # breakpoints, increasing
    # value at each breakpoint, nondecreasing in [0, 1]; linear between, constant outside
    g: tuple[float, ...]
    count: int  # estimation items behind it
    loss: float  # value of the objective; 0 for a constant map, which decides nothing
    # lambda*, the weight below which only a constant map is left; None if not asked
    critical: float | None = None
    # low, high: 95% bootstrap interval of the threshold; None if not asked
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.label < self.n or not self.z:
            raise UnsoundError(f"label {self.label} of {self.n}: no such label, or no points")
        check_numbers("z", self.z, len(self.z), least=0, most=1)
        check_numbers("g", self.g, len(self.z), least=0, most=1)
        check_rising("z", self.z, strictly=True)
        check_rising("g", self.g, strictly=False)

    @property
    def is_constant(self) -> bool:
        """True if it maps every probability to the same value, and so decides nothing."""
        return self.g[-1] - self.g[0] < TOLERANCE

    @property
    def threshold(self) -> float:
        """Point at which the map crosses 1/n; 1/n for a constant map, which is never applied."""
        if self.is_constant:
            return 1 / self.n
        return crossing(np.array(self.z), np.array(self.g), 1 / self.n)


def objective_presentations(n: int, objective: Objective) -> tuple[Presentation, ...]:
    """List the presentations that the objective compares, canonical first: X0, X2, X1; the coupled rotations for n > 2."""
    if n > 2 and objective == "l2":
        raise MethodError(
            f"calibraeval:objective=l2 needs 2 candidates, got {n}. Use objective=both."
        )
    coupled = presentation_set("auto", n)
    if n > 2 or objective == "l1":
        return coupled
    return (*coupled, X1) if objective == "both" else (coupled[0], X1)


def objective_form(n: int, objective: Objective) -> Form:
    """Return the objective as a quadratic form over `objective_presentations`.

    For one label and n > 2: (sum_t g(s_t) - 1)^2 - 2 lambda / (n - 1) sum_t (g(s_t) - mean)^2,
    which for n = 2 is a^2 - lambda c^2.
    """
    if objective == "l2":
        return Form(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.diag([1.0, 0.0]), 0.5)
    keep = np.ones((n, n))
    spread = 2 / (n - 1) * (np.eye(n) - 1 / n)
    if n == 2 and objective == "both":
        keep = np.array([[2.0, 1.0, -1.0], [1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
        spread = np.pad(spread, (0, 1))
    return Form(keep, spread, 1 / n)


@dataclass(frozen=True, slots=True)
class CalibraEval(Method):
    """A learned monotone map of label probabilities.

    Attributes:
        weight: λ, the force that keeps g from collapsing to 1/2.
        objective: Loss: Eq. 10 (`both`), or one of the paper's ablations.
        solver: Solver: the monotone quadratic program (`exact`), or the paper's descent with the
            correct gradient (`noa`).
        starts: Starts of the exact solver, more for few items; the best result is kept.
        rate: Step size of `noa`.
        batch: Batch size of `noa`.
        epochs: Maximum epochs of `noa`.
        resamples: Bootstrap resamples for the interval of the threshold, which needs 60 items; 0
            skips it. Each resample is a fit.
        diagnose: True computes λ* and warns if λ is below 1.2 λ*.
        seed: Seed of the bootstrap and of the batches.
        curves: What `fit` learned.

    Source: lambda and the step size: "we set lambda = 0.5 and gamma = 10"; batch: "a batch size of
    32" (arXiv 2410.15393, 4.3).
    """

    weight: float = 0.5
    objective: Objective = "both"
    solver: Literal["exact", "noa"] = "exact"
    starts: int = 5
    rate: float = 10.0
    batch: int = 32
    epochs: int = 300
    resamples: int = 0
    diagnose: bool = False
    seed: int = 0
    curves: tuple[Curve, ...] | None = learned()

    name: ClassVar[str] = "calibraeval"
    reads: ClassVar[frozenset[Evidence]] = frozenset({Evidence.PROBS})
    fitted_from: ClassVar[int] = FEW_ITEMS
    tests_drift_once: ClassVar[bool] = True
    about: ClassVar[About] = About(
        title="CalibraEval",
        source="Li et al. 2024 (arXiv 2410.15393)",
        idea="Learn a monotone map of P(A) under which swapped presentations of an item agree.",
        calls="1",
        estimation="3 per estimation item (n for n > 2 candidates)",
        equation="min over nondecreasing g of mean a^2 + b^2 - lambda c^2; A wins if g(P(A)) > 1/2",
        helps="you have no gold, assume no formula for the bias, and want probabilities that "
        "are comparable between presentations",
        cannot="A monotone map moves only one threshold on P(A), so its verdicts cannot beat "
        "the best single threshold, and a first-position preference needs one threshold "
        "per label sequence. For more than two candidates, the method is an unvalidated "
        "extension.",
    )

    def __post_init__(self) -> None:
        if self.weight < 0 or self.starts < 1 or self.batch < 1 or self.epochs < 1:
            raise UsageError("calibraeval: weight must be >= 0; starts, batch and epochs >= 1.")
        for n in {curve.n for curve in self.curves or ()}:
            labels = [curve.label for curve in self.curves or () if curve.n == n]
            if sorted(labels) != list(_mapped_labels(n)):
                raise UnsoundError(f"curves: those for {n} candidates map the labels {labels}")

    def estimation_asks(self, n: int) -> tuple[Ask, ...]:
        """Every presentation that the objective compares."""
        return tuple(Ask(shown) for shown in objective_presentations(n, self.objective))

    def quick(self) -> Self:
        """Return the method with one start of the exact solver, which is enough for a spread."""
        return replace(self, starts=1)

    def fit_tables(self, tables: Tables) -> Self:
        """Return a copy that knows the maps; an item that lacks one of its probabilities is left out."""
        curves: list[Curve] = []
        counts: dict[int, int] = {}
        for n, table in tables.items():
            columns = range(len(table.shown))
            by_label = np.stack([probs_by_label(table, column) for column in columns], axis=1)
            rows = ~np.isnan(by_label).any(axis=(1, 2))
            complete, clusters = by_label[rows], table.subjects.clusters(rows)
            counts[n] = clusters.count
            labels = _mapped_labels(n) if counts[n] else ()
            curves += [self._curve(complete[:, :, own], n, own, clusters) for own in labels]
        warn_if_few(self.name, counts, least=self.fitted_from)
        self._warn(curves)
        return replace(self, curves=tuple(curves))

    def _curve(self, scores: FloatArray, n: int, label: int, clusters: Clusters) -> Curve:
        problem = make_problem(scores, objective_form(n, self.objective))
        g, reached = self._solve(problem, self.starts)
        critical = None
        if self.diagnose:
            least = critical_lambda(problem, starts=self.starts)
            critical = least if np.isfinite(least) else None
        z, values = thin(problem.z, g)
        points = tuple(map(float, z)), tuple(map(float, values))
        units = clusters.count
        wanted = self.resamples and units >= FEWEST
        bounds = self._interval(scores, n, clusters) if wanted else (None, None)
        return Curve(n, label, *points, len(scores), reached, critical, *bounds, units=units)

    def _solve(self, problem: Problem, starts: int) -> tuple[FloatArray, float]:
        if self.solver == "exact" or len(problem.z) == 1:
            return solve(problem, self.weight, starts=starts)
        return descend(
            problem,
            self.weight,
            rate=self.rate,
            batch=self.batch,
            epochs=self.epochs,
            seed=self.seed,
        )

    def _interval(self, scores: FloatArray, n: int, clusters: Clusters) -> tuple[float, float]:
        form = objective_form(n, self.objective)

        def threshold(rows: NDArray[np.intp]) -> FloatArray:
            problem = make_problem(scores[rows], form)
            return np.array([crossing(problem.z, self._solve(problem, 1)[0], 1 / n)])

        low, high = expanded_interval(threshold, clusters, resamples=self.resamples, seed=self.seed)
        return float(low[0]), float(high[0])

    def _warn(self, curves: Sequence[Curve]) -> None:
        for curve in curves:
            where = f"{curve.n} candidates, label {curve.label}"
            if len(curve.z) == 1:
                warn_of(
                    f"calibraeval: all estimation probabilities are equal ({where}): there is no "
                    "map, verdicts are the uncorrected ones, and equal ones go to the tie rule.",
                    all_equal=True,
                )
            elif curve.is_constant:
                warn_of(
                    f"calibraeval: with weight {self.weight:g} the best map is constant ({where}) "
                    "and decides nothing; verdicts are the uncorrected ones. Raise the weight, or "
                    "use pride."
                )
            if curve.critical is not None and self.weight < 1.2 * curve.critical:
                warn_of(
                    f"calibraeval: weight {self.weight:g} is below 1.2 x lambda* = "
                    f"{1.2 * curve.critical:.3g} ({where}); below lambda* only a constant map is "
                    "left. Raise the weight."
                )
        if any(curve.n > 2 for curve in curves):
            warn_of("calibraeval: for more than 2 candidates, it is an unvalidated extension.")

    def estimates(self) -> dict[str, Estimate]:
        """Return the thresholds at which each label's map crosses 1/n."""
        return {
            f"threshold of label {label_symbols(curve.n)[curve.label]} among {curve.n} candidates": Estimate(
                value=None if curve.is_constant else curve.threshold,
                low=None if curve.is_constant else curve.low,
                high=None if curve.is_constant else curve.high,
                n=curve.count,
                reason="the map is constant" if curve.is_constant else None,
                n_units=curve.units,
            )
            for curve in self.curves or ()
        }

    def threshold(self, shown: Presentation) -> float | None:
        """Return the P(A) above which A wins, for two candidates: the same for every presentation."""
        return None if (curve := learned_for(2, self.curves)) is None else curve.threshold

    def asks(self, n: int) -> tuple[Ask, ...]:
        """Return the canonical presentation."""
        return (canonical_ask(n),)

    def decide_table(self, table: DecisionTable) -> VerdictTable:
        """Map each label's probability and take the highest; no map is applied if one is constant."""
        if self.curves is None:
            raise not_fitted(self.name)
        curves = {curve.label: curve for curve in self.curves if curve.n == table.n}
        if not curves and self.curves:
            warn_uncorrected(self.name, f"no map was estimated for {table.n} candidates")
        probs = probs_of(table, 0)
        label_of = list(labels_by_candidate(table, 0))
        applied = {} if any(curve.is_constant for curve in curves.values()) else curves
        scores: FloatArray = _map(probs_by_label(table, 0), applied)[:, label_of]
        best = _best(scores)
        erased = (best.sum(axis=1) > 1) & (best != (best & _best(probs))).any(axis=1)
        choices = argmax_by_tie_rule(scores, table, tolerance=TOLERANCE)
        choices[erased] = TIE
        return verdict_table(table, choices, scores=scores, tied=best)


def _best(scores: FloatArray) -> BoolArray:
    """Return the highest of each row, with all that are tied with it, shape (I, n)."""
    result: BoolArray = scores >= scores.max(axis=1, keepdims=True) - TOLERANCE
    return result


def _mapped_labels(n: int) -> range:
    """Return the labels that have a map of their own: for two candidates B is the complement of A."""
    return range(1) if n == 2 else range(n)


def _map(by_label: FloatArray, curves: Mapping[int, Curve]) -> FloatArray:
    """Calibrated probabilities by label, shape (I, n)."""
    if not curves:
        return by_label
    n = by_label.shape[1]
    mapped = np.empty_like(by_label)
    for label, curve in curves.items():
        mapped[:, label] = np.interp(by_label[:, label], curve.z, curve.g)
    if n == 2:
        mapped[:, 1] = 1 - mapped[:, 0]
        return mapped
    # several maps may be at 0 or 1 at once; a trace of p / threshold orders those labels
    thresholds = np.array([max(curves[label].threshold, 1e-6) for label in range(n)])
    mapped += 1e-3 * softmax(np.log(np.maximum(by_label, 1e-10) / thresholds))
    result: FloatArray = mapped / mapped.sum(axis=1, keepdims=True)
    return result
