"""Write requirements.lock: what `pip` takes for `.[dev]` under constraints.txt, with its sha256.

    python .ci/lock.py

For the Python and the platform it runs on. Torch is left out: its builds (CPU, CUDA) differ from
place to place under one version number, so no one hash would be true.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEFT_OUT = {"torch", "unswayed"}


def main() -> None:
    """Ask pip what it would install, and write it down."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ["--dry-run", "--ignore-installed", "--quiet", "--report", str(report)]
        pinned = ["-c", "constraints.txt", ".[dev]", "hatchling"]
        command = [sys.executable, "-m", "pip", "install", *options, *pinned]
        subprocess.run(command, cwd=ROOT, check=True)
        installed = json.loads(report.read_text())["install"]
    lines = [
        f"# Python {platform.python_version_tuple()[0]}.{platform.python_version_tuple()[1]}, "
        f"{platform.system()} {platform.machine()}; written by: python .ci/lock.py",
    ]
    for entry in sorted(installed, key=lambda entry: entry["metadata"]["name"].lower()):
        name, version = entry["metadata"]["name"], entry["metadata"]["version"]
        if name.lower() not in LEFT_OUT:
            digest = entry["download_info"]["archive_info"]["hashes"]["sha256"]
            lines.append(f"{name}=={version} --hash=sha256:{digest}")
    (ROOT / "requirements.lock").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
