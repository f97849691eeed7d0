"""The scale of five levels that benchmarks with human scores share."""

from __future__ import annotations

from typing import Final

LEVELS: Final = ("Very low", "Low", "Medium", "High", "Very high")
VALUES: Final = (1.0, 2.0, 3.0, 4.0, 5.0)
"""Values of the levels, in the same order."""
