"""The ways of `design/paths.md`: files that are there, are visited, and stand on the page once."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import unswayed

SOURCE = Path(unswayed.__file__).parent
PAGE = Path(__file__).parents[2] / "design" / "paths.md"
ITEMS = [
    f'{{"id":"{n}","task":"pairwise","prompt":"p","candidates":["a","{n}"],"gold":0}}'
    for n in range(8)
]


def ways() -> list[list[str]]:
    """The files of each way, as the page names them."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    return [re.findall(r"^\| `([\w/]+\.py)` \|", section, re.MULTILINE) for section in sections]


def visited(work: Callable[[], object]) -> set[str]:
    """The files of the package whose functions run, named from its root."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and not frame.f_code.co_name.startswith("<"):
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    ours = (Path(file) for file in files if file.startswith(str(SOURCE)))
    return {path.relative_to(SOURCE).as_posix() for path in ours}


def test_no_file_stands_on_two_ways() -> None:
    files = [file for way in ways() for file in way]
    assert len(files) == len(set(files)) > 30
    assert [file for file in files if not (SOURCE / file).is_file()] == []


def test_an_audit_goes_the_ways_of_items_and_decisions(tmp_path: Path) -> None:
    data = tmp_path / "items.jsonl"
    data.write_text("\n".join(ITEMS))
    files = visited(
        lambda: unswayed.audit("simulated/judge", data, out=tmp_path / "run", methods="direct,vote")
    )
    item, decision, _ = ways()
    assert [file for file in item + decision if file not in files] == []


def test_training_goes_the_way_of_a_recipe(trained: Callable[..., object], tmp_path: Path) -> None:
    files = visited(lambda: trained(tmp_path, "pa-grpo", 8, data_held_out="2", run_check_every="2"))
    assert [file for file in ways()[2] if file not in files] == []
