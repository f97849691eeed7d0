"""Time of measuring 1e5 items x 4 presentations with 1 000 bootstrap resamples.

    OMP_NUM_THREADS=1 python benchmarks/bootstrap.py [--items 100000] [--repeats 3]

Every registered metric with its interval: the categorical ones alone, then with label probabilities
(both ICCs, their spread, signed bias, label mass). Times are CPU seconds of the whole `measure`
call, best of the repeats; outcomes are new each time, so that what they remember is counted. A
plain bootstrap that recomputes one metric on resampled rows is timed beside them, scaled up from a few
resamples.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from unswayed.metrics import Outcomes, difference, measure
from unswayed.metrics.gold import GOLD_ONE
from unswayed.model.presentation import presentations

VIEWS, CANDIDATES = 4, 4


def judge(items: int, *, with_probs: bool) -> Outcomes:
    """Four candidates in the four rotations, a push of 0.8 logits towards the first position."""
    generator = np.random.default_rng(0)
    shown = presentations("cyclic", CANDIDATES)
    gold = generator.integers(0, CANDIDATES, items)
    quality = generator.normal(size=(items, CANDIDATES))
    quality[np.arange(items), gold] += 1.0
    probs = np.empty((items, VIEWS, CANDIDATES))
    for v, view in enumerate(shown):
        probs[:, v] = quality + 0.5 * generator.normal(size=(items, CANDIDATES))
        probs[:, v, view.order[0]] += 0.8
    probs = np.exp(probs)
    probs /= probs.sum(axis=2, keepdims=True)
    right = np.zeros((items, CANDIDATES), dtype=np.bool_)
    right[np.arange(items), gold] = True
    return Outcomes(
        item_ids=tuple(str(i) for i in range(items)),
        groups=(None,) * items,
        shown=shown,
        label_set=("A", "B", "C", "D"),
        choices=probs.argmax(axis=2).astype(np.int16),
        gold=right,
        gold_kind=np.full(items, GOLD_ONE, dtype=np.int8),
        permutable=np.ones(items, dtype=np.bool_),
        probs=probs if with_probs else None,
        label_mass=1.0 - 0.1 * generator.random((items, VIEWS)) if with_probs else None,
    )


def best(run: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def naive(outcomes: Outcomes, resamples: int) -> None:
    """Consistency alone: gather the resampled rows and count again."""
    generator = np.random.default_rng(0)
    for _ in range(resamples):
        rows = outcomes.choices[generator.integers(0, len(outcomes), len(outcomes))]
        counts = [(rows == c).sum(axis=1) for c in range(CANDIDATES)]
        float((np.max(counts, axis=0) / VIEWS).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    measure([judge(200, with_probs=True)], resamples=10)  # imports
    plain = judge(options.items, with_probs=False)
    full = judge(options.items, with_probs=True)
    few = 20
    cases: dict[str, tuple[Callable[[], object], float]] = {
        "categorical metrics": (
            lambda: measure([replace(plain)], resamples=options.resamples),
            1.0,
        ),
        "every metric, with ICC": (
            lambda: measure([replace(full)], resamples=options.resamples),
            1.0,
        ),
        "paired difference": (
            lambda: difference([plain], [plain], "accuracy", resamples=options.resamples),
            1.0,
        ),
        f"naive, consistency only ({few} resamples, scaled)": (
            lambda: naive(plain, few),
            options.resamples / few,
        ),
    }
    for name, (run, scale) in cases.items():
        seconds = best(run, options.repeats) * scale
        print(json.dumps({"case": name, "items": options.items, "cpu_s": round(seconds, 3)}))


if __name__ == "__main__":
    main()
