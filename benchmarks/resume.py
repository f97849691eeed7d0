"""Measure runner and store per call: one made, and one found recorded by a later run.

    python benchmarks/resume.py                    # 20 000 pairs in two orders
    python benchmarks/resume.py --items 500000     # a million calls, about six minutes

The judge answers at once, so that what is measured is ours: keys, prompts, parsing and the store.
First the calls are made, then another process resumes them, as the same command does again: it
prices, asks nothing and reads every answer back. Its memory is what it takes beyond the items.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from unswayed.auditing.audit import Audit, plan_for, run_settings_for
from unswayed.auditing.settings import AuditSettings
from unswayed.backends import Backend
from unswayed.calls import Caller, RunCounts
from unswayed.model.calls import Query, Response, TokenLogprob
from unswayed.model.items import Item, ItemSet
from unswayed.store import CallStore

T = TypeVar("T")

SENTENCE = "The committee met on the first day and agreed to wait for the other report. "


class AtOnce(Backend):
    """The same answer to everything, with the log-probabilities of twenty tokens."""

    model = "benchmark/at-once"
    gives_logprobs = True
    offline = True

    def __init__(self, alternatives: int) -> None:
        tokens = ["A", "B", *(f"word {number}" for number in range(alternatives - 2))]
        top = tuple(TokenLogprob(token, -0.7 - number) for number, token in enumerate(tokens))
        self._answer = Response(
            text="A",
            tokens=("A",),
            top_logprobs=(top,),
            exact=alternatives == 2,
            input_tokens=180,
            output_tokens=1,
            cost_usd=0.0,
        )

    def respond(self, query: Query) -> Response:
        return self._answer


def items_of(count: int) -> Iterator[Item]:
    """Pairs with about 500 characters of text."""
    for number in range(count):
        yield Item(
            id=f"item-{number:06d}",
            prompt=f"Question {number}: {SENTENCE * 2}",
            candidates=tuple(f"Answer {number}.{c}: {SENTENCE * 2}" for c in range(2)),
            gold=number % 2,
        )


def megabytes(name: str) -> float:
    """Memory of this process: VmRSS now, VmHWM at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


class Stages:
    """CPU seconds of stages, printed per call."""

    def __init__(self, n_calls: int) -> None:
        self.total = 0.0
        self._n_calls = n_calls

    def timed(self, stage: str, work: Callable[[], T]) -> T:
        start = time.process_time()
        done = work()
        self.show(stage, time.process_time() - start)
        return done

    def show(self, stage: str, seconds: float) -> None:
        self.total += seconds
        print(f"{stage:10s} {seconds:8.2f} s {1e6 * seconds / self._n_calls:8.2f} µs a call")


def gone_through(folder: Path, count: int, alternatives: int) -> RunCounts:
    """An audit up to its decisions."""
    items = ItemSet.of(items_of(count), name="pairs")
    backend = AtOnce(alternatives)
    plan = plan_for(items, AuditSettings(methods=("direct", "vote")), backend)
    stages = Stages(2 * count)
    with CallStore.open(folder) as store:
        settings = run_settings_for(plan.settings, backend)
        audit = Audit.begin(plan, Caller(backend, store, settings))
        before = megabytes("VmRSS")
        priced = stages.timed("price", audit.price)
        asked = stages.timed("ask", lambda: asyncio.run(audit.ask(priced=priced)))
        n_read = stages.timed("read back", lambda: sum(1 for _ in audit.read(plan.questions())))
    assert n_read == 2 * count, f"{n_read:,} answers of {2 * count:,} were read"
    print(f"{'together':10s} {stages.total:8.2f} s {1e6 * stages.total / n_read:8.2f} µs a call")
    print(f"{megabytes('VmHWM') - before:.0f} MB beyond the {before:.0f} MB of program and items")
    return asked.counts


def main() -> None:
    """Make the calls, and resume them in another process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--alternatives", type=int, default=2, help="log-probabilities an answer")
    parser.add_argument("--folder", type=Path, help="where calls are, or will be, recorded")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = chosen.folder or Path(name) / "run"
        recorded = (folder / "calls.sqlite").exists()
        print("calls resumed" if recorded else "calls made")
        sys.stdout.flush()
        counts = gone_through(folder, chosen.items, chosen.alternatives)
        assert counts.planned == (counts.cached if recorded else counts.made) == 2 * chosen.items
        if not recorded:
            sys.stdout.flush()
            again = [*sys.argv[1:], "--folder", str(folder)]
            subprocess.run([sys.executable, __file__, *again], check=True)


if __name__ == "__main__":
    main()
