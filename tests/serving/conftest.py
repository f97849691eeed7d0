"""The stub of the backends' tests and the runner of pages serve here, too."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path += [str(Path(__file__).parents[1] / room) for room in ("backends", "docs")]

from decision_stub import DecisionStub


@pytest.fixture
def stub() -> Iterator[DecisionStub]:
    """A decision model behind both APIs."""
    with DecisionStub() as served:
        yield served
