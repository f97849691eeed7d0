"""The report of a real audit of the tiny judge, in a real browser."""

import shutil
from pathlib import Path

import pytest
from devtools import browser, find_chromium

from unswayed.cli import main

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
pytest.importorskip("torch", reason="the tiny judge needs the extra 'local'")


def test_the_report_of_a_real_audit_opens_and_is_clicked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "--limit", "120", "--methods", "all", "--resamples", "200"]) == 0
    file = tmp_path / "runs" / "tiny-judge-tiny-judge" / "report.html"
    moved = tmp_path / "alone.html"
    shutil.move(file, moved)  # one file is enough
    assert CHROMIUM is not None
    with browser(CHROMIUM) as chromium:
        page = chromium.page()
        page.size(1280)
        page.open(moved.as_uri())
        assert "picks whichever answer comes first" in page.evaluate(
            "document.title + document.body.innerText"
        )
        rows = page.evaluate("document.querySelectorAll('#metrics1 tbody tr').length")
        assert rows >= 10
        before = page.evaluate("document.querySelector('#detail').innerText")
        page.click("#list li:nth-child(2) button")
        assert page.evaluate("document.querySelector('#detail').innerText") != before
        page.click("#next")
        assert "2 of" in page.evaluate("document.querySelector('#where').innerText")
        page.click("#metrics1 thead th:nth-child(3) button")
        assert page.evaluate(
            "document.querySelector('#metrics1 th[aria-sort=descending]') !== null"
        )
        page.size(390)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert page.console == []
        assert page.requests == [moved.as_uri()]
