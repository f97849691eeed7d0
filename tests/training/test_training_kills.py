"""Training that is killed at any moment, also while it writes a checkpoint, ends with the same bytes.

More kills: `python benchmarks/reliability/training_kills.py`.
"""

import os
from pathlib import Path

import pytest
from forks import ended

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "reliability" / "training_kills.py"


@pytest.mark.parametrize(("objective", "save_every"), [("pa-grpo", 1), ("pif", 2), ("sft", 1)])
def test_killed_runs_end_with_the_bytes_of_an_undisturbed_one(objective, save_every):
    options = ["--objective", objective, "--save-every", str(save_every), "--steps", "4"]
    (done,) = ended([SCRIPT, "--kills", "4", *options], [dict(os.environ)])
    assert done.code == 0, done.err
    assert f"| {objective} | 4 |" in done.out
