"""A package of somebody else's: one module and one line of entry points, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent


class OutsidePackage:
    """An installed package with one module, `mine`.

    Args:
        folder: Where it is installed.
        group: Entry-point group, such as `unswayed.backends`.
        line: The line that registers it, such as `echo = mine:open_echo`.
        source: The module.
    """

    def __init__(self, folder: Path, *, group: str, line: str, source: str) -> None:
        self.folder = folder
        (folder / "mine.py").write_text(dedent(source))
        told = folder / "mine-1.0.dist-info"
        told.mkdir()
        (told / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
        (told / "entry_points.txt").write_text(f"[{group}]\n{line}\n")

    def run(self, *arguments: str | Path, code: int = 0) -> str:
        """What the command prints, on both streams."""
        path = os.pathsep.join([str(self.folder), os.environ.get("PYTHONPATH", "")])
        ran = subprocess.run(
            [sys.executable, "-m", "unswayed", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
            timeout=120,
            check=False,
        )
        assert "Traceback" not in ran.stderr, ran.stderr
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr
