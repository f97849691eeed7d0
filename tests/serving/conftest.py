"""The stub of the backends' tests and the runner of pages serve here, too."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / room) for room in ("backends", "docs")]
