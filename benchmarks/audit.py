"""Where a whole audit spends its CPU time and how much memory it takes: one command.

    python benchmarks/audit.py                      # 20 000 recorded pairs in four presentations
    python benchmarks/audit.py --items 100000       # the full size
    python benchmarks/audit.py --task mcq           # four options, four rotations
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
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np

from unswayed.decisions import Decision
from unswayed.items import Item, Task, encode_item
from unswayed.presentation import X0, X1, X2, X3, Presentation, presentations

GROUPS = 10
CHUNK = 5_000
SENTENCE = "The committee met on the first day and agreed to wait for the other report. "

RECORDED = {
    "read items": ["unswayed.api:load_data"],
    "read decisions": ["unswayed.importers:read_decisions_file"],
    "sort out and plan": ["unswayed.auditing.recorded:audit_decisions"],
    "tables": ["unswayed.auditing.recorded:build_tables"],
    "score methods": ["unswayed.auditing.summary:score_method"],
    "metrics and bootstrap": ["unswayed.auditing.summary:measure"],
    "groups": ["unswayed.auditing.summary:measure_groups"],
    "differences": ["unswayed.auditing.summary:difference"],
    "thresholds": ["unswayed.auditing.summary:threshold_view"],
    "keep decisions": ["unswayed.cli.audit:_keep_recorded"],
    "write run": ["unswayed.auditing.run:write_record"],
    "flipped items": ["unswayed.report.collect:_collect"],
    "report": ["unswayed.report.collect:write_report"],
}
MADE = {
    **{stage: names for stage, names in RECORDED.items() if "decisions" not in stage},
    "price": ["unswayed.auditing.run:price_audit"],
    "ask and store": ["unswayed.auditing.run:ask_model"],
    "read back": ["unswayed.auditing.run:measure_pool"],
    "  render": ["unswayed.runner.questions:render"],
    "  key": ["unswayed.runner.questions:key_of"],
    "  parse": ["unswayed.runner.questions:read_decision"],
    "tables": ["unswayed.auditing.run:build_tables"],
}
"""Stages of an audit, and the names by which the program calls what they measure."""


class Stopwatch:
    """CPU seconds by stage; a stage inside another is not counted in the outer one."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._inner = [0.0]

    def timed[**P, R](self, stage: str, work: Callable[P, R]) -> Callable[P, R]:
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
                module_name, _, attribute = name.partition(":")
                module = importlib.import_module(module_name)
                real = getattr(module, attribute)
                setattr(module, attribute, watch.timed(stage, real))
                stack.callback(setattr, module, attribute, real)
        yield watch
