"""Figures for papers: three formats each, and a clear error without matplotlib."""

import importlib.util
import re
from pathlib import Path

import pytest

from judges import plain_run, sample_run
from unswayed.base.errors import MissingExtraError, UsageError
from unswayed.base.registry import install_command
from unswayed.report.papers import write_figures


def test_every_figure_is_written_in_three_formats(tmp_path: Path) -> None:
    written = write_figures([sample_run(n_items=200)], tmp_path / "figures")
    assert {path.stem for path in written} == {"position", "protocols", "frontier", "groups"}
    starts = {".pdf": b"%PDF", ".svg": b"<?xml", ".png": b"\x89PNG"}
    assert len(written) == 12
    for path in written:
        assert path.read_bytes().startswith(starts[path.suffix])


def test_figures_that_were_not_measured_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)
    written = write_figures([plain_run(), plain_run(model="a$b$")], tmp_path)
    assert {path.stem for path in written} == {"1-position", "2-position"}


def test_without_matplotlib_the_error_names_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=re.escape(install_command("figures"))):
        write_figures([plain_run()], tmp_path)


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="cannot write figures"):
        write_figures([plain_run()], tmp_path / "file")
