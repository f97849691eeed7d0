"""Run the blocks of a documentation page in order, in one folder, as a reader would paste them.

A fence without a language is for `bash -euo pipefail`, `python` for the interpreter (examples with `>>>` are left to `test_documentation.py`). A `json`,
`csv`, `tsv`, `toml`, `jinja`, `yaml`, `sh` or `python` block below a paragraph that ends with a file name in backticks and a colon is that file. A `text`
block is output: each part between lines of `…` must occur, in order, in what the block before it printed.
`<!-- skip: reason -->` above a block leaves it out, and so does a placeholder: DATA, NEW_DATA, MODEL or RUN; another test checks
the options of those. `pip install` is always left out, with `&&` behind it. `given/<page>.py` writes files that the reader has.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(
    r"(?P<above>[^\n]*)\n\n?^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
FILE = re.compile(r"`([\w.-]+\.\w+)`[^`]*:$")
SKIP = re.compile(r"<!-- skip: (.+?) -->$")
INSTALL = re.compile(r"(?m)^pip install .*?(?:&& |\n)")
PLACEHOLDER = re.compile(r"(?<!\S)(DATA|NEW_DATA|MODEL|RUN)(?!\S)")
KINDS = (
    "",
    "python",
    "text",
    "json",
    "csv",
    "tsv",
    "toml",
    "jinja",
    "yaml",
    "sh",
    "xml",
    "formula",
)


class Outcome(NamedTuple):
    """Blocks that ran, and the reason of each that was skipped."""

    ran: int
    skipped: list[str]


def flat(text: str) -> str:
    """The text with single spaces."""
    return " ".join(text.split())


def check_output(shown: str, printed: str, place: str) -> None:
    """Raise AssertionError unless the parts of `shown` occur in order in `printed`."""
    rest = flat(printed)
    for part in filter(str.strip, re.split(r"(?m)^\s*…\s*$", shown)):
        _, found, rest = rest.partition(flat(part))
        assert found, f"{place}: was not printed:\n{part}\nbut:\n{printed}"


def run_page(page: Path, folder: Path, commands: Path = Path(sys.executable).parent) -> Outcome:
    """Run every block of a page; the folder `commands` has its `unswayed`.

    Raises:
        AssertionError: With place and output, at a failing command, at output that was not printed, or at a
            block of unknown kind.
    """
    text = page.read_text(encoding="utf-8")
    if (given := Path(__file__).parent / "given" / f"{page.stem}.py").exists():
        subprocess.run([sys.executable, given], cwd=folder, check=True)
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])
    surroundings = {**os.environ, "COLUMNS": "100", "PATH": path}
    printed, ran = "", 0
    skipped: list[str] = []
    for block in FENCE.finditer(text):
        above, kind, body = block["above"].strip(), block["kind"], block["body"]
        place = f"{page.name}:{text.count(chr(10), 0, block.start('body')) + 1}"
        assert kind in KINDS, f"{place}: a block of unknown kind {kind!r}"
        file, skip = FILE.search(above), SKIP.search(above)
        if skip:
            skipped.append(skip[1])
        elif kind == "text":
            check_output(body, printed, place)
        elif kind and file:
            (folder / file[1]).write_text(body, encoding="utf-8")
        elif kind in {"", "python"} and ">>>" not in body and not PLACEHOLDER.search(body):
            command = ["bash", "-euo", "pipefail", "-c", INSTALL.sub("", body)]
            if kind:
                command = [sys.executable, "-c", body]
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, env=surroundings, check=False
            )
            printed, ran = done.stdout + done.stderr, ran + 1
            assert done.returncode == 0, f"{place}: exit code {done.returncode}\n{printed}"
    return Outcome(ran, skipped)


if __name__ == "__main__":
    print(run_page(Path(sys.argv[1]).resolve(), Path(sys.argv[2])))
