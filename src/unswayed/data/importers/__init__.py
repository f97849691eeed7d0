"""Recorded outputs of other tools: a value per format, one line in `table`."""

from __future__ import annotations

from unswayed.data.importers.decisions_file import (
    Listed,
    as_filed,
    items_from_decisions,
    line_of,
    write_decisions,
)
from unswayed.data.importers.driver import Imported, import_files
from unswayed.data.importers.mapping import FieldMap, parse_map
from unswayed.data.importers.protocol import Importer
from unswayed.data.importers.recording_file import read_decisions_file, read_recording
from unswayed.data.importers.table import IMPORTERS

__all__ = [
    "IMPORTERS",
    "FieldMap",
    "Imported",
    "Importer",
    "Listed",
    "as_filed",
    "import_files",
    "items_from_decisions",
    "line_of",
    "parse_map",
    "read_decisions_file",
    "read_recording",
    "write_decisions",
]
