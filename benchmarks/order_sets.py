"""Measure the accuracy of `pcf` by set of orders (one, seeded, cyclic, balanced), where truth is known.

    python benchmarks/order_sets.py [--items 4000] [--draws 40] [--trials 1000]

Four candidates; the right one is worth most. The judge scores each by its worth, by the position at
which it stands and by noise; the candidates are listed in random order. `seeded` is one number for
each of `--draws` seeds. The last lines count how often the exact sign test (5%) calls `pcf` more
accurate than the single call on 300 lists, as many as in the paper, where the right answer was drawn
by lot: nobody is more accurate there.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evidence_table import Table, add_write
from unswayed.methods.pcf import PCF
from unswayed.metrics.improvements import sign_test
from unswayed.model.decisions import SCORE, DecisionTable, IntArray
from unswayed.model.items import Item, Task
from unswayed.model.presentation import label_symbols

N = 4
WORTH = 18.0
"""Standard deviation of what candidates are worth, in points."""
LISTS = 300

ONE = PCF(runs=1)
EVEN = {"4 cyclic": PCF(orders="cyclic"), "8 balanced": PCF(orders="balanced")}


@dataclass(frozen=True, slots=True)
class ListJudge:
    """A judge of lists of four.

    Attributes:
        places: Points that it adds at each position.
        noise: Standard deviation of what each call adds to each score, in points.
    """

    places: tuple[float, ...]
    noise: float

    def verdicts(self, method: PCF, worth: NDArray[np.float64], *, seed: int) -> IntArray:
        """Return the verdicts of a method on lists with these worths, shape (I, n); shape (I,)."""
        asks = method.asks(N)
        places = np.zeros((len(asks), N))
        for column, ask in enumerate(asks):
            places[column, list(ask.presentation.order)] = self.places
        drawn = np.random.default_rng(seed).standard_normal((len(worth), *places.shape))
        scores = 50.0 + worth[:, None] + places + self.noise * drawn
        table = DecisionTable(
            items=lists(len(worth)),
            asks=asks,
            shown=tuple(ask.presentation for ask in asks),
            label_set=label_symbols(N),
            choices=scores.argmax(axis=2).astype(np.int16),
            ratings={SCORE: scores},
        )
        return method.decide_table(table).choices


JUDGES = {
    "+15 for the first position": ListJudge((15, 0, 0, 0), 0),
    "+15 first and last, noise 6": ListJudge((15, 0, 0, 15), 6),
    "no bias, noise 6": ListJudge((0, 0, 0, 0), 6),
    "no bias, no noise": ListJudge((0, 0, 0, 0), 0),
}


@lru_cache(maxsize=4)
def lists(count: int) -> tuple[Item, ...]:
    """Items without text: what they are worth stands in the scores."""
    return tuple(
        Item(id=f"list-{number}", task=Task.LISTWISE, prompt="", candidates=("",) * N)
        for number in range(count)
    )


def accuracies(judge: ListJudge, items: int, draws: int) -> dict[str, list[float]]:
    """Shares of right verdicts, ties wrong: one for a set of orders, several for the seeded ones."""
    worth = WORTH * np.random.default_rng(0).standard_normal((items, N))

    def right(method: PCF) -> float:
        verdicts = judge.verdicts(method, worth, seed=1)
        return float((verdicts == worth.argmax(axis=1)).mean())

    return {
        "one order": [right(ONE)],
        "7 seeded": [right(PCF(seed=seed)) for seed in range(draws)],
        **{name: [right(method)] for name, method in EVEN.items()},
    }


def called_better(judge: ListJudge, method: PCF, trials: int) -> int:
    """Trials in which a method is called more accurate than the single call, and is not."""
    count = 0
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        worth, gold = WORTH * rng.standard_normal((LISTS, N)), rng.integers(0, N, LISTS)
        single = judge.verdicts(ONE, worth, seed=trial) == gold
        several = judge.verdicts(method, worth, seed=trials + trial) == gold
        improved, regressed = int((several & ~single).sum()), int((single & ~several).sum())
        count += improved > regressed and sign_test(improved, regressed) < 0.05
    return count


def written(values: list[float]) -> str:
    """One share, or the mean and the range of several that differ."""
    if f"{min(values):.3f}" == f"{max(values):.3f}":
        return f"{values[0]:.3f}"
    return f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--items", type=int, default=4000)
    parser.add_argument("--draws", type=int, default=40, help="seeds of the seeded orders")
    parser.add_argument("--trials", type=int, default=1000, help="of the sign test; 0 for none")
    add_write(parser, "claims")
    arguments = parser.parse_args()
    print(f"accuracy on {arguments.items} lists, {arguments.draws} seeds")
    table = Table(("judge", "one order", "7 seeded", *EVEN))
    for name, judge in JUDGES.items():
        table.add(name, *map(written, accuracies(judge, arguments.items, arguments.draws).values()))
    if arguments.write:
        table.keep("claims", "order-sets")
    if not arguments.trials:
        return
    print(f"\ncalled more accurate than one order, right answers by lot, {arguments.trials} trials")
    methods = {"7 seeded": PCF(), **EVEN}
    heads = (f"called more accurate with {name} orders" for name in methods)
    table = Table(("judge, with right answers drawn at random", *heads))
    for name, judge in JUDGES.items():
        counts = [called_better(judge, method, arguments.trials) for method in methods.values()]
        table.add(name, *(f"{count / arguments.trials:.1%}" for count in counts))
    if arguments.write:
        table.keep("claims", "lists-by-lot")


if __name__ == "__main__":
    main()
