"""Measure the CPU time of the methods on one thread, with one command.

    python benchmarks/methods.py

Prints one line per measurement: the best of a few runs, and its target where there is one. Data are
simulated judges with a fixed seed; nothing is read from disk and no model is called.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from unswayed.methods.calibraeval import CalibraEval, objective_form
from unswayed.methods.monotone import descend, make_problem, solve
from unswayed.methods.names import default_methods, parse_method, spec_name
from unswayed.methods.pride import PriDe
from unswayed.methods.protocol import Method, learned_fields
from unswayed.model.decisions import DecisionTable
from unswayed.model.items import Item, Task
from unswayed.model.presentation import X0, X1, X2, Ask, Presentation, presentations, view

warnings.simplefilter("ignore")


def simulated(count: int, asks: Sequence[Ask], n: int, *, seed: int = 0) -> DecisionTable:
    """Content, position and label effects plus noise, one column per ask."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(0, 1.2, (count, n))
    position, label = np.linspace(0.6, -0.6, n), np.linspace(0.4, -0.4, n)
    logit = np.empty((count, len(asks), n))
    for column, ask in enumerate(asks):
        shown = ask.presentation
        for at, candidate in enumerate(shown.order):
            bias = position[at] + label[shown.labels[at]]
            content = quality[:, candidate] if ask.substitute is None else 0.0
            logit[:, column, candidate] = content + bias
    logit += rng.normal(0, 0.4, logit.shape)
    probs = np.exp(logit)
    probs /= probs.sum(axis=2, keepdims=True)
    items = tuple(
        Item(
            id=f"q{row}",
            task=Task.PAIRWISE if n == 2 else Task.MCQ,
            prompt="which",
            candidates=tuple(f"{row} {c}" for c in range(n)),
            group=f"g{row % 10}",
        )
        for row in range(count)
    )
    return DecisionTable(
        items=items,
        asks=tuple(asks),
        shown=tuple(ask.presentation for ask in asks),
        label_set=tuple("ABCDEF"[:n]),
        choices=probs.argmax(axis=2).astype(np.int16),
        probs=probs,
    )


def cpu(work: Callable[[], object], *, runs: int = 5) -> float:
    """Best CPU time of a few runs, in seconds; the first run warms imports and caches."""
    work()
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def show(name: str, seconds: float, target: float | None = None, note: str = "") -> None:
    """One line: name, milliseconds, target."""
    goal = "" if target is None else f"  target {1000 * target:7.0f} ms"
    met = "" if target is None else ("  met" if seconds <= target else "  MISSED")
    print(f"{name:58s} {1000 * seconds:9.2f} ms{goal}{met}  {note}".rstrip(), flush=True)


def calibraeval(count: int) -> None:
    """The exact fit against gradient descent."""
    asks = [Ask(X0), Ask(X2), Ask(X1)]
    table = simulated(count, asks, 2)
    method = CalibraEval()
    target = 0.050 if count == 3000 else None
    assert table.probs is not None
    scores = np.stack([table.probs[:, 0, 0], table.probs[:, 1, 1], table.probs[:, 2, 0]], axis=1)
    problem = make_problem(scores, objective_form(2, "both"))
    exact = solve(problem, 0.5)[1]
    show(
        f"calibraeval exact fit, K={count}, 5 starts",
        cpu(lambda: method.fit_tables({2: table})),
        target,
        f"loss {exact:.6f}",
    )
    start = time.process_time()
    reached = descend(problem, 0.5, epochs=20)[1]
    spent = time.process_time() - start
    show(f"calibraeval NOA, K={count}, 20 epochs", spent, None, f"loss {reached:.6f}")


def pride(count: int) -> None:
    """The prior of four options."""
    table = simulated(count, [Ask(shape) for shape in presentations("cyclic", 4)], 4)
    show(
        f"pride prior, K={count}, n=4",
        cpu(lambda: PriDe(resamples=0).fit_tables({4: table})),
        0.005 if count == 3000 else None,
    )
    show(
        f"pride prior with its bootstrap interval, K={count}, n=4",
        cpu(lambda: PriDe().fit_tables({4: table})),
    )


def everything(count: int, n: int) -> None:
    """Every method over one pool, seen through two coupled views."""
    methods = [
        *default_methods(Task.PAIRWISE if n == 2 else Task.MCQ, {n}, groups=True),
        parse_method("batch"),
    ]
    views = (X0, X2) if n == 2 else presentations("cyclic", n)[:2]
    fitted = [_fit(method, n) for method in methods]
    asks: dict[Ask, None] = {}
    for method in fitted:
        for outer in views:
            for ask in method.asks(n):
                asks[ask._replace(presentation=view(outer, ask.presentation))] = None
    table = simulated(count, list(asks), n)
    total = 0.0
    for method in fitted:
        spent = cpu(lambda method=method: _decide(method, table, views), runs=1)
        total += spent
        show(f"  {spec_name(method)}, {count} items x 2 views, n={n}", spent)
    show(f"all {len(fitted)} methods, {count} items x 2 views, n={n}", total, 10.0)


def _decide(method: Method, table: DecisionTable, views: Sequence[Presentation]) -> None:
    for outer in views:
        method.decide_table(table.select(method.asks(table.n), through=outer))


def _fit(method: Method, n: int) -> Method:
    if not learned_fields(method):
        return method
    items = simulated(200, [Ask(X0 if n == 2 else presentations("cyclic", n)[0])], n).items
    by_item: dict[str, list[Ask]] = {}
    for item, ask in method.plan_fit(items):
        by_item.setdefault(item.id, []).append(ask)
    asks = next(iter(by_item.values()))
    table = simulated(len(by_item), asks, n, seed=1)
    return method.fit_tables({n: table})


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000, help="size of the large pool")
    arguments = parser.parse_args()
    for count in (100, 1000, 3000):
        calibraeval(count)
    pride(3000)
    everything(arguments.items, 2)
    everything(arguments.items, 4)


if __name__ == "__main__":
    main()
