"""Where the recorded real data lie: the folder `shared` beside the checkout."""

import json
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parents[3] / ".." / "shared" / "data"

needs_data = pytest.mark.skipif(
    not (DATA / "expected").is_dir(), reason="shared/data is not beside the checkout"
)


def expected(name: str) -> dict[str, Any]:
    """The independently computed figures, {} where the data are absent."""
    path = DATA / "expected" / name
    return json.loads(path.read_text()) if path.is_file() else {}
