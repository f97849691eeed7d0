"""Every benchmark still runs: a tiny size of each, so that none rots unseen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

TINY = {
    "audit.py": (
        ["--items", "50"],
        ["--items", "50", "--task", "mcq"],
        ["--items", "50", "--simulated"],
    ),
    "bootstrap.py": (["--items", "50", "--resamples", "20", "--repeats", "1"],),
    "claims.py": (
        [
            "learned",
            "headlines",
            "groups",
            "lists",
            "correlations",
            "keyed",
            "criteria",
            "alarms",
            "advice",
            "gold",
            "changes",
            "printed",
            "sums",
            "rare",
            "--trials",
            "1",
        ],
    ),
    "http_calls.py": (["--calls", "20", "--rounds", "1", "--connections", "4"],),
    "judge.py": (
        ["--calls", "20", "--rounds", "1", "--connections", "4"],
        ["--memory", "20"],
    ),
    "loading.py": (["--items", "50", "--decisions", "200"],),
    "local.py": (
        ["--parts", "orders", "--rounds", "1", "--share", "0.05", "--width", "64", "--layers", "2"],
    ),
    "methods.py": (["--items", "50"],),
    "named_sets.py": (["--items", "200", "--rounds", "1"],),
    "order_sets.py": (["--items", "50", "--draws", "2", "--trials", "2"],),
    "parsing.py": (["--rounds", "1"],),
    "peers.py": (["--calls", "8", "--rounds", "1", "--connections", "2"],),
    "records.py": (["--lines", "200"],),
    "resume.py": (["--items", "50"], ["--items", "50", "--alternatives", "20"]),
    "rubric.py": (["--trials", "2", "--items", "20", "--levels", "5"],),
    "store.py": (["--calls", "50", "--keys", "500"],),
    "training.py": (["--rounds", "2", "--samples", "2"],),
    "without_labels.py": (["--seeds", "1", "--steps", "1", "--items", "40", "--arms", "distill"],),
}
"""The smallest runs; `claims` leaves out the parts whose single trial takes many seconds."""

TOO_LONG = {
    "same_outputs.py": "needs another revision's sources beside these",
}

BROKEN_BOUND = 1
"""What `claims` exits with where a rate is above its bound, as one trial may well be."""


def ran(script: str, options: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *options],
        cwd=BENCHMARKS,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "options"),
    [(script, options) for script, runs in TINY.items() for options in runs],
    ids=lambda part: part if isinstance(part, str) else " ".join(part),
)
def test_a_benchmark_runs(script: str, options: list[str]) -> None:
    done = ran(script, options)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in ((0, BROKEN_BOUND) if script == "claims.py" else (0,)), done.stderr
    assert done.stdout.strip()


def test_every_benchmark_is_run_or_says_why_not() -> None:
    assert {path.name for path in BENCHMARKS.glob("*.py")} == {*TINY, *TOO_LONG}


def test_a_stage_that_the_program_no_longer_has_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import audit

    with (
        pytest.raises(SystemExit, match="gone: there is no"),
        audit.watched({"gone": ["unswayed.audits:of_yesterday"]}),
    ):
        pass
