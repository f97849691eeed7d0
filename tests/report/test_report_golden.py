"""The words of the report, kept: any change fails here, and is written anew on purpose:

PYTHONPATH=src:tests python tests/report/test_report_golden.py
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from judges import list_run, sample_run, scale_run
from page_text import page_text, printed
from unswayed.report.data import RunData
from unswayed.report.page import render_report

FOLDER = Path(__file__).parent / "golden"
TABLE = "== table =="
RUNS: dict[str, Callable[[], RunData]] = {
    "pairs": lambda: sample_run(n_items=200),
    "options": lambda: sample_run(4, 100),
    "lists": list_run,
    "scale": scale_run,
}


def said(name: str) -> str:
    """The terminal's text and the page: of pairs all of it, of others what stands above the table.

    Only lines with a word: what stands alone on an axis or in a cell is no sentence.
    """
    run = RUNS[name]()
    text = page_text(render_report([run]))
    if name != "pairs":
        text = text.partition(TABLE)[0]
    shown = "".join(f"{line.rstrip()}\n" for line in printed(run, 110).splitlines())
    lines = f"== terminal ==\n{shown}{text}".splitlines(keepends=True)
    return "".join(line for line in lines if re.search("[a-z]{3}", line))


@pytest.mark.parametrize("name", RUNS)
def test_page_and_terminal_say_what_they_said(name: str) -> None:
    kept = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert said(name) == kept, "the words changed; if that is meant, see the top of this file"


def test_no_file_is_left_over() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == set(RUNS)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in RUNS:
        (FOLDER / f"{name}.txt").write_text(said(name), encoding="utf-8")
