"""Monotone quadratic programs: CalibraEval's objective solved over nondecreasing functions.

The objective of CalibraEval (arXiv 2410.15393, Eq. 10) is, with v = g - 1/2, exactly the quadratic
form mean_i v_i' H v_i in the values of g at the observed probabilities, under
0 <= g(z_1) <= ... <= g(z_M) <= 1. H = P - lambda C is indefinite for every lambda > 0, so the
solver runs from several starts and keeps the best. Pure numbers in, pure numbers out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed.model.decisions import FloatArray

SMALL: Final = 400
"""Distinct probabilities below which the solver runs more starts."""


@dataclass(frozen=True, slots=True)
class Form:
    """A quadratic form on one item's values of g, taken relative to `center`."""

    keep: FloatArray  # P, shape (m, m): what should be small (disagreement between presentations)
    # C, shape (m, m): what should be large, so that g does not collapse to `center`
    spread: FloatArray
    center: float  # the value at which both vanish: 1/2 for two candidates

    def at(self, weight: float) -> FloatArray:
        """H = P - weight * C."""
        return self.keep - weight * self.spread


@dataclass(frozen=True, slots=True)
class Problem:
    """Observed probabilities, sorted and merged."""

    z: FloatArray  # the M distinct probabilities, increasing
    index: NDArray[np.intp]  # where each item's m probabilities stand in `z`, shape (K, m)
    count: FloatArray  # how often each occurs, shape (M,)
    form: Form  # the objective


def make_problem(scores: FloatArray, form: Form) -> Problem:
    """Return the sorted and merged probabilities of K items under m presentations, shape (K, m).

    Equal probabilities (common after an API has rounded) are one variable with its multiplicity.
    """
    z, inverse = np.unique(scores.ravel(), return_inverse=True)
    index = inverse.reshape(scores.shape)
    count = np.bincount(index.ravel(), minlength=len(z)).astype(np.float64)
    return Problem(z, index, count, form)


def loss(problem: Problem, g: FloatArray, weight: float) -> float:
    """Return the mean over items of v' H v."""
    v = g[problem.index] - problem.form.center
    return float(np.einsum("kp,kp->", v @ problem.form.at(weight), v)) / len(v)


def solve(problem: Problem, weight: float, *, starts: int = 5) -> tuple[FloatArray, float]:
    """Minimise over nondecreasing g in [0, 1]: projected gradient from several starts.

    Each step is g <- clip(isotonic(y - grad / (rho * count))) from an extrapolated y; isotonic
    regression with multiplicities followed by clipping is the exact projection, and rho = 2 max|eig
    H| / K bounds the curvature. A step that would raise the loss is taken again without
    extrapolation, so the loss never rises. Every start runs until it changes little; the best goes
    on until two steps in a row lower the loss by less than 1e-11. Below 400 probabilities,
    where local optima differ most and a start costs least, up to 400 / M times as many `starts` are
    run.

    Returns the best g at each z, shape (M,), and its loss: the constant `center` (loss 0) if
    nothing beats it, when lambda is too small for these probabilities.
    """
    best = np.full(len(problem.z), problem.form.center)
    best_loss = 0.0
    starting = _starts(problem, weight, starts * max(1, SMALL // len(problem.z)))
    for tolerance in (1e-7, 1e-11):
        for start in starting:
            g, reached = _descend_projected(problem, weight, start, tolerance, 5000)
            if reached < best_loss - 1e-12:
                best, best_loss = g, reached
        starting = [best] if best_loss < 0 else _starts(problem, weight, 1)
    return best, best_loss


def _starts(problem: Problem, weight: float, count: int) -> list[FloatArray]:
    """Return the rank transform, the identity, then the best functions of two steps."""
    if len(problem.z) == 1:  # one distinct probability: nothing to order, g stays at the center
        return []
    plain: list[FloatArray] = [np.linspace(0.0, 1.0, len(problem.z)), problem.z.copy()]
    return plain[:count] if count <= 2 else [*plain, *_steps(problem, weight, count - 2)]


def _steps(problem: Problem, weight: float, count: int) -> list[FloatArray]:
    """Return the functions of least loss that are 0, then `center`, then 1, steps between 24 bins.

    The objective is homogeneous in g - center, so its optima touch 0 or 1; these functions lie in
    the basins of the best ones. On bins the loss of all of them is one small quadratic form.
    """
    size, center = len(problem.z), problem.form.center
    bins = min(24, size)
    bin_of = np.arange(size) * bins // size
    index, hessian = bin_of[problem.index], problem.form.at(weight)
    form = np.zeros(bins * bins)
    for row, column in np.ndindex(hessian.shape):
        pairs = index[:, row] * bins + index[:, column]
        form += hessian[row, column] * np.bincount(pairs, minlength=bins * bins)
    first, last = np.triu_indices(bins + 1)
    at = np.arange(bins)
    steps = np.where(at < first[:, None], 0.0, np.where(at >= last[:, None], 1.0, center))
    v = steps - center
    best = np.argsort(np.sum(v @ form.reshape(bins, bins) * v, axis=1), kind="stable")[:count]
    return list(steps[best][:, bin_of])


def _descend_projected(
    problem: Problem, weight: float, start: FloatArray, tolerance: float, most_steps: int
) -> tuple[FloatArray, float]:
    from scipy.optimize import isotonic_regression

    hessian = problem.form.at(weight)
    center, rows, size = problem.form.center, len(problem.index), len(start)
    index = np.ascontiguousarray(problem.index.T)
    step = 1.0 / (np.abs(np.linalg.eigvalsh(hessian)).max() * problem.count)

    def value_and_pull(g: FloatArray) -> tuple[float, FloatArray]:
        v = g[index] - center
        pull = hessian @ v
        total: FloatArray = np.bincount(index.ravel(), pull.ravel(), size).astype(np.float64)
        return float(np.vdot(pull, v)) / rows, total

    g, (now, pull) = start, value_and_pull(start)
    ahead, pull_ahead = g, pull
    quiet, run = 0, 0
    for _ in range(most_steps):
        moved = isotonic_regression(ahead - step * pull_ahead, weights=problem.count).x
        new: FloatArray = np.clip(moved, 0.0, 1.0)
        reached, new_pull = value_and_pull(new)
        if reached > now:
            if run == 0:  # not even a plain step helps: rounding is all that is left
                break
            run, ahead, pull_ahead = 0, g, pull
            continue
        quiet = quiet + 1 if now - reached < tolerance else 0
        run += 1
        reach = run / (run + 3)  # the pull is linear in g, so it extrapolates along
        ahead = new + reach * (new - g)
        pull_ahead = new_pull + reach * (new_pull - pull)
        g, now, pull = new, reached, new_pull
        if quiet == 2:
            break
    return g, now


def critical_lambda(problem: Problem, *, starts: int = 5) -> float:
    """lambda*: the smallest weight at which g = center stops being the best (Dinkelbach).

    lambda* = min_g (v' P v) / (v' C v). Below it the optimum is the constant g, which decides
    nothing. An upper estimate, because the inner solves are local and stopped early: a solve only
    has to find a g with a lower ratio.
    """
    if len(problem.z) == 1:
        return float("inf")
    first = _starts(problem, 0.5, starts)
    solved = solve(problem, 0.5, starts=starts)[0]
    g = min((*first, solved), key=lambda start: _ratio(problem, start))
    ratio = _ratio(problem, g)
    for _ in range(30):
        better, reached = _descend_projected(problem, ratio, g, 1e-12, 200)
        lower = _ratio(problem, better) if reached < 0 else ratio
        if lower > ratio * (1 - 1e-4):
            break
        g, ratio = better, lower
    return ratio


def _ratio(problem: Problem, g: FloatArray) -> float:
    v = g[problem.index] - problem.form.center
    keep = float(np.vdot(v @ problem.form.keep, v))
    spread = float(np.vdot(v @ problem.form.spread, v))
    return keep / spread if spread > 0 else float("inf")


def descend(
    problem: Problem,
    weight: float,
    *,
    rate: float = 10.0,
    batch: int = 32,
    epochs: int = 300,
    seed: int = 0,
) -> tuple[FloatArray, float]:
    """Run the paper's NOA: gradient descent on g(z_k) = cumulative softmax of d, with the true
    gradient; g at each z, shape (M,), and its loss over all items.

    dL/dd_k = p_k (sum over j >= k of dL/dg_j - sum over j of g_j dL/dg_j), p = softmax(d): O(M) per
    step instead of the O(M^2) Jacobian of Eq. 15. Eq. 14 has the sign of a term wrong (its literal
    form collapses g to 1/2); the criterion "sum of d changes little" always holds because the loss
    does not depend on the mean of d. Here d starts at z and an epoch that lowers the loss by less
    than 1e-10 of it is the last.
    """
    hessian, center = problem.form.at(weight), problem.form.center
    d = np.concatenate([[0.0], problem.z, [1.0]])
    index = problem.index + 1  # one sentinel below, one above
    rng = np.random.default_rng(seed)
    last = np.inf
    for _ in range(epochs):
        for rows in np.array_split(rng.permutation(len(index)), max(1, len(index) // batch)):
            g, p = _cumulative_softmax(d)
            part = index[rows]
            pull = (g[part] - center) @ hessian
            up = 2 * np.bincount(part.ravel(), pull.ravel(), minlength=len(d)) / len(rows)
            tail = np.cumsum(up[::-1])[::-1]
            d = d - rate * p * (tail - float(up @ g))
        g = _cumulative_softmax(d)[0][1:-1]
        now = loss(problem, g, weight)
        if last - now < 1e-10 * abs(now):
            break
        last = now
    return g, now


def _cumulative_softmax(d: FloatArray) -> tuple[FloatArray, FloatArray]:
    e = np.exp(d - d.max())
    total = np.cumsum(e)
    return total / total[-1], e / total[-1]


def thin(z: FloatArray, g: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the fewest points with the same piecewise-linear interpolation: flat stretches by their ends."""
    inner = np.ones(len(z), dtype=np.bool_)
    inner[1:-1] = (g[1:-1] != g[:-2]) | (g[1:-1] != g[2:])
    return z[inner], g[inner]


def crossing(z: FloatArray, g: FloatArray, level: float) -> float:
    """Find where the interpolation of (z, g) crosses a level: the middle of a flat stretch at it.

    0 if g is above the level everywhere, 1 if below it everywhere.
    """
    if g[0] > level:
        return 0.0
    if g[-1] < level:
        return 1.0
    first = int(np.searchsorted(g, level, side="left"))
    after = int(np.searchsorted(g, level, side="right"))
    if after > first:  # g equals the level on z[first] .. z[after - 1]
        return float(z[first] + z[after - 1]) / 2
    low, high = first - 1, first
    return float(z[low] + (level - g[low]) * (z[high] - z[low]) / (g[high] - g[low]))
