"""What some tests need and a machine may lack: recorded data, a system, folders that others may enter."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / "shared"
DATA = SHARED / "data"

recorded = pytest.mark.skipif(
    not (DATA / "expected").is_dir(), reason="shared/data is not beside the checkout"
)
papers = pytest.mark.skipif(
    not (SHARED / "papers").is_dir(), reason="shared/papers is not beside the checkout"
)
posix = pytest.mark.skipif(
    sys.platform == "win32", reason="needs forks, signals, limits and named pipes of POSIX"
)
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs limits and devices of Linux")


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that any user can enter; those of pytest are closed to other users."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        if os.geteuid() == 0 and not all(p.stat().st_mode & 0o001 for p in folder.parents):
            pytest.skip("temporary files lie where only the superuser can go")
        yield folder


def interpreter(variable: str, *packages: str) -> str:
    """The Python that a variable of the environment names, or this one; a test skips if it lacks a package."""
    python = os.environ.get(variable, sys.executable)
    code = f"import importlib.util as u; print(*(p for p in {packages} if u.find_spec(p) is None))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    if missing := ", ".join(found.stdout.split()):
        pytest.skip(f"{missing} not installed: name a Python that has them in {variable}")
    return python
