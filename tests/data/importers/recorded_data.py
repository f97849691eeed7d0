"""The independently computed figures of the recorded real data."""

import json
from typing import Any

from needs import DATA


def expected(name: str) -> dict[str, Any]:
    """Figures of a file, {} where the data are absent."""
    path = DATA / "expected" / name
    return json.loads(path.read_text()) if path.is_file() else {}
