"""Every format is told from every other: all layouts against all importers."""

from pathlib import Path

import pytest
from foreign_files import FORMATS

from unswayed.data.importers import IMPORTERS, import_files
from unswayed.data.importers.reading import records_of
from unswayed.model.items import BadFieldError


@pytest.mark.parametrize("layout", FORMATS)
def test_only_its_own_importer_claims_a_layout_and_reads_it(layout: str, tmp_path: Path) -> None:
    kind, written = FORMATS[layout]
    file = written(tmp_path)
    if file.suffix != ".eval":  # which only its importer opens
        _, record = next(records_of(str(file)))
        assert not isinstance(record, BadFieldError)
        assert [name for name in IMPORTERS if IMPORTERS.load(name).detects(record)] == [kind]
    by_itself = import_files("auto", [file])
    assert by_itself.counts["records"] > 0
    assert by_itself.items or by_itself.decisions
    assert import_files(kind, [file]) == by_itself


def test_every_importer_has_a_layout_here() -> None:
    assert {kind for kind, _ in FORMATS.values()} == set(IMPORTERS)


@pytest.mark.parametrize(
    ("layout", "question"),
    [
        ("fastchat", "81"),
        ("fastchat-table", "81"),
        ("mt-bench", "81"),
        ("prometheus", "mt_bench_eval-1"),
    ],
)
def test_pairs_of_one_question_count_once(layout: str, question: str, tmp_path: Path) -> None:
    """Units are questions, which several models answer; the texts may be missing or differ."""
    kind, written = FORMATS[layout]
    items = import_files(kind, [written(tmp_path)]).items
    assert {item.unit for item in items} == {question}
