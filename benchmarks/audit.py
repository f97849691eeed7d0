"""Measure CPU time by stage and memory of a whole audit, with one command.

    python benchmarks/audit.py                      # 20 000 recorded pairs in four presentations
    python benchmarks/audit.py --items 100000       # the full size
    python benchmarks/audit.py --task mcq           # four options, four rotations
    python benchmarks/audit.py --methods direct,vote   # or all
    python benchmarks/audit.py --simulated          # 20 000 pairs, two orders: 40 000 calls made

Data are simulated with a fixed seed in a temporary folder, and the audit is the one that the command
line runs, in this process. A stage's seconds leave out the stages inside it, so they add up.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import contextlib
import importlib
import io
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec
import numpy as np

from evidence_table import Table, add_write
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, Task, encode_item
from unswayed.model.presentation import X0, X1, X2, X3, Presentation, presentations

P = ParamSpec("P")
R = TypeVar("R")

GROUPS = 10
CHUNK = 5_000
SENTENCE = "The committee met on the first day and agreed to wait for the other report. "

RECORDED = {
    "read items": ["unswayed.sources:DataOptions.load"],
    "read decisions": ["unswayed.audits:read_recording"],
    "sort out and plan": ["unswayed.audits:audit_decisions"],
    "tables": ["unswayed.auditing.recorded:with_answers"],
    "score methods": ["unswayed.auditing.summary:score_method"],
    "metrics and bootstrap": ["unswayed.auditing.summary:measure"],
    "groups": ["unswayed.auditing.summary:measure_groups"],
    "comparison": ["unswayed.auditing.summary:compare_methods"],
    "thresholds": ["unswayed.auditing.summary:threshold_view"],
    "keep decisions": ["unswayed.audits:write_lines"],
    "write run": ["unswayed.audits:write_record"],
    "flipped items": ["unswayed.report.collect:flips_of"],
    "report": ["unswayed.audits:write_report"],
}
MADE = {
    **{
        stage: names
        for stage, names in RECORDED.items()
        if "decisions" not in stage and stage != "sort out and plan"
    },
    "plan": ["unswayed.audits:plan_for"],
    "price": ["unswayed.auditing.audit:Audit.price"],
    "ask and store": ["unswayed.audits:run_sync"],
    "read back": ["unswayed.auditing.audit:Audit.measure"],
    "  render": ["unswayed.calls.questions:render"],
    "  key": ["unswayed.calls.questions:Frame.key"],
    "  parse": ["unswayed.calls.questions:read_by", "unswayed.calls.drafts:read_by"],
    "tables": ["unswayed.auditing.audit:with_answers"],
}
"""Stages of an audit, and the names by which the program calls what they measure."""


def stages_of(task: Task, *, recorded: bool) -> dict[str, list[str]]:
    """The stages that an audit goes through: thresholds are for two candidates only."""
    stages = RECORDED if recorded else MADE
    return {s: names for s, names in stages.items() if task is Task.PAIRWISE or s != "thresholds"}


class Stopwatch:
    """CPU seconds by stage; a stage inside another is not counted in the outer one."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self._inner = [0.0]

    def timed(self, stage: str, work: Callable[P, R]) -> Callable[P, R]:
        """The same function, measured."""

        def measured(*args: P.args, **kwargs: P.kwargs) -> R:
            self._inner.append(0.0)
            start = time.process_time()
            try:
                return work(*args, **kwargs)
            finally:
                spent = time.process_time() - start
                self.seconds[stage] += spent - self._inner.pop()
                self.calls[stage] += 1
                self._inner[-1] += spent

        return measured


@contextlib.contextmanager
def watched(stages: dict[str, list[str]]) -> Iterator[Stopwatch]:
    """Measure the named functions until the block ends."""
    watch = Stopwatch()
    with contextlib.ExitStack() as stack:
        for stage, names in stages.items():
            for name in names:
                module_name, _, path = name.partition(":")
                *owners, attribute = path.split(".")
                place: object = importlib.import_module(module_name)
                for owner in owners:
                    place = getattr(place, owner)
                real = getattr(place, attribute, None)
                if real is None:
                    raise SystemExit(f"{stage}: there is no {name}; name what the program calls.")
                setattr(place, attribute, watch.timed(stage, real))
                stack.callback(setattr, place, attribute, real)
        yield watch


def shown_of(task: Task) -> tuple[Presentation, ...]:
    """Four presentations of pairs, four rotations of four options."""
    return (X0, X1, X2, X3) if task is Task.PAIRWISE else presentations("cyclic", 4)


def items_of(count: int, task: Task) -> Iterator[Item]:
    """Items with about 500 characters of text, in ten groups."""
    n = shown_of(task)[0].n
    gold = np.random.default_rng(0).integers(0, n, count).tolist()
    for number in range(count):
        yield Item(
            id=f"item-{number:06d}",
            task=task,
            prompt=f"Question {number}: {SENTENCE * 2}",
            candidates=tuple(f"Answer {number}.{c}: {SENTENCE * 2}" for c in range(n)),
            gold=gold[number],
            group=f"group {number % GROUPS}",
        )


def decisions_of(items: Iterator[Item], count: int, task: Task) -> Iterator[Decision]:
    """A judge with slot and label bias on these items, one decision per presentation."""
    shown = shown_of(task)
    n = shown[0].n
    label_set = tuple("ABCD"[:n])
    rng = np.random.default_rng(1)
    slot, label = np.linspace(0.5, -0.5, n), np.linspace(0.3, -0.3, n)
    bias = np.array([[slot[p.order.index(c)] for c in range(n)] for p in shown])
    bias += np.array([[label[p.label_of_candidate(c)] for c in range(n)] for p in shown])
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        worth = rng.normal(0, 1.0, (size, 1, n)) + bias + rng.normal(0, 0.4, (size, len(shown), n))
        members = [next(items) for _ in range(size)]
        for row, item in enumerate(members):
            assert isinstance(item.gold, int)
            worth[row, :, item.gold] += 1.0
        probs = np.exp(worth)
        probs /= probs.sum(axis=2, keepdims=True)
        choices = probs.argmax(axis=2).tolist()
        for item, chosen, by_view in zip(members, choices, probs.tolist(), strict=True):
            for presentation, choice, by_candidate in zip(shown, chosen, by_view, strict=True):
                symbols = presentation.symbols(label_set)
                yield Decision(
                    item_id=item.id,
                    order=presentation.order,
                    labels=symbols,
                    label_set=label_set,
                    choice=choice,
                    probs=tuple(by_candidate),
                    label_mass=0.999,
                    text=symbols[presentation.order.index(choice)],
                    model="made-up/judge",
                    input_tokens=180,
                    output_tokens=1,
                    finish_reason="stop",
                )


def written(folder: Path, count: int, task: Task, *, recorded: bool) -> tuple[Path, Path | None]:
    """The data files: items, and decisions where they are recorded already."""
    items = folder / "items.jsonl"
    with items.open("wb") as file:
        file.writelines(encode_item(item) + b"\n" for item in items_of(count, task))
    if not recorded:
        return items, None
    decisions = folder / "decisions.jsonl"
    encode = msgspec.json.Encoder().encode
    with decisions.open("wb") as file:
        made = decisions_of(items_of(count, task), count, task)
        file.writelines(encode(decision) + b"\n" for decision in made)
    return items, decisions


def audited(folder: Path, items: Path, decisions: Path | None, methods: str) -> None:
    """Run the command as typed, its output thrown away."""
    from unswayed.cli import main as command

    asked = ["--decisions", str(decisions)] if decisions else ["--model", "simulated/judge"]
    quiet = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        command(["audit", str(items), *asked, "--methods", methods, "--out", str(folder / "run")])


def peak_bytes() -> int:
    """The most memory that this process ever held, its parent's left out; Linux only."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("the kernel does not say how much memory was used")


def main() -> None:
    """Make the data, run the audit, print its stages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--task", choices=["pairwise", "mcq"], default="pairwise")
    parser.add_argument("--methods", default="direct,vote,average")
    parser.add_argument("--simulated", action="store_true", help="make the calls, of two orders")
    add_write(parser, "performance")
    chosen = parser.parse_args()
    options = sys.argv[1:]
    task = Task(chosen.task)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        items, decisions = written(folder, chosen.items, task, recorded=not chosen.simulated)
        sys.argv[1:] = ["audit", "items.jsonl"]  # what run.json keeps as the command
        before = peak_bytes()
        start = time.process_time()
        stages = stages_of(task, recorded=not chosen.simulated)
        with watched(stages) as watch:
            audited(folder, items, decisions, chosen.methods)
        total = time.process_time() - start
        if silent := [stage for stage in stages if not watch.calls[stage]]:
            raise SystemExit(f"never called: {', '.join(silent)}; name what the program calls.")
        size = sum(file.stat().st_size for file in (folder / "run").iterdir())
    table = Table(("stage", "CPU s", "times"))
    for stage, seconds in sorted(watch.seconds.items(), key=lambda entry: -entry[1]):
        table.add(stage, f"{seconds:.2f}", f"{watch.calls[stage]:,}")
    table.add("the rest", f"{total - sum(watch.seconds.values()):.2f}", "–")
    table.add("whole audit", f"{total:.2f}", "1")
    print(
        f"peak memory {peak_bytes() / 1e6:.0f} MB ({before / 1e6:.0f} before); "
        f"run {size / 1e6:.0f} MB"
    )
    if chosen.write:
        sys.argv[1:] = options
        table.keep("performance", "stages")


if __name__ == "__main__":
    main()
