"""The conformance suite for outside packages: checks that need no test runner.

Each `check_…` takes one thing as it is registered, and raises `AssertionError` that names the broken rule:

    from unswayed.testing import check_method

    def test_first_two():
        check_method(FirstTwo())
"""

from __future__ import annotations

from unswayed.testing.data import check_benchmark, check_importer
from unswayed.testing.methods import check_method
from unswayed.testing.metrics import check_metric
from unswayed.testing.models import check_backend
from unswayed.testing.tasks import check_prompt, check_skip, check_task
from unswayed.testing.training import check_engine, check_objective, check_reward

__all__ = [
    "check_backend",
    "check_benchmark",
    "check_engine",
    "check_importer",
    "check_method",
    "check_metric",
    "check_objective",
    "check_prompt",
    "check_reward",
    "check_skip",
    "check_task",
]
