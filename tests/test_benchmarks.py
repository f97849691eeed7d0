"""Benchmarks still run: a tiny size of seven; all can be imported, so that none rots unseen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

TINY = {
    "audit.py": (["--items", "50"],),
    "bootstrap.py": (["--items", "50", "--resamples", "20", "--repeats", "1"],),
    "claims.py": (["printed", "--trials", "1"],),
    "judge.py": (["--calls", "20", "--rounds", "1", "--connections", "4"],),
    "loading.py": (["--items", "50", "--decisions", "200"],),
    "serving.py": (["--decisions", "5", "--rounds", "1", "--options", "2"],),
    "store.py": (["--calls", "50", "--keys", "500"],),
}
"""The smallest runs of those that a change is measured by; others are imported only."""

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


def test_every_benchmark_can_be_imported() -> None:
    modules = [path.relative_to(BENCHMARKS).with_suffix("") for path in BENCHMARKS.rglob("*.py")]
    names = sorted(".".join(module.parts) for module in modules)
    assert set(TINY) < {f"{name}.py" for name in names}
    # `peer` is for another package's environment
    code = "\n".join(f"import {name}" for name in names if name != "local_parts.peer")
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
