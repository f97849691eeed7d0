"""Published benchmarks by name: fetched, checked, and turned into items."""

from __future__ import annotations

from unswayed.data.benchmarks.benchmark import Benchmark, Place
from unswayed.data.benchmarks.loading import is_benchmark, load_benchmark
from unswayed.data.benchmarks.table import BENCHMARKS

__all__ = ["BENCHMARKS", "Benchmark", "Place", "is_benchmark", "load_benchmark"]
