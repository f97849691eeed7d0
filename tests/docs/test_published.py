"""The data of published judges are what their script writes, where the recorded files are."""

import subprocess
import sys
from pathlib import Path

import needs

ROOT = Path(__file__).parents[2]


@needs.recorded
@needs.papers
def test_published_data_match_the_recorded_files() -> None:
    command = [sys.executable, str(ROOT / "docs" / "published.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run python docs/published.py\n{done.stderr[-2000:]}"
