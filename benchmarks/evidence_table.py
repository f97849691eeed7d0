"""Tables that benchmarks print and, with --write, keep for a page of docs/evidence."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "docs"))

import evidence  # noqa: E402


def add_write(parser: argparse.ArgumentParser, page: str) -> None:
    """Add the option that keeps the printed tables."""
    parser.add_argument(
        "--write", action="store_true", help=f"keep the tables in docs/evidence/data/{page}.json"
    )


@dataclass
class Table:
    """A table that is printed row by row.

    Attributes:
        columns: Headings.
        rows: Cells as printed.
    """

    columns: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        print(evidence.markdown(self.columns, ()), flush=True)

    def add(self, *cells: object) -> None:
        """Print a row."""
        self.rows.append([str(cell) for cell in cells])
        print(evidence.line(self.rows[-1]), flush=True)

    def keep(self, page: str, name: str) -> None:
        """Keep the table, with this command and today's date, as the page's table of that name."""
        script = Path(sys.argv[0]).resolve().relative_to(ROOT)
        options = [option for option in sys.argv[1:] if option != "--write"]
        data = evidence.load(page)
        data["tables"][name] = {
            "command": " ".join(["python", str(script), *options]),
            "measured": time.strftime("%Y-%m-%d"),
            "columns": list(self.columns),
            "rows": self.rows,
        }
        evidence.save(page, data)
        print(f"written: {page}.json, {name}; now run python docs/evidence.py", file=sys.stderr)
