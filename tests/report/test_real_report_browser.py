"""The report of a real audit of the tiny judge, in a real browser."""

import shutil
from pathlib import Path

import pytest
from devtools import browser, find_chromium

import unswayed as us
from unswayed.backends.simulated import simulated_items
from unswayed.cli import main
from unswayed.model.items import Task

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
REPORTS = ("tiny-judge", "tiny-mcq", "lists", "scale", "columns")
OVERLAPS = (Path(__file__).parent / "overlapping_texts.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reports of the built-in sets and of simulated lists, with all methods."""
    folder = tmp_path_factory.mktemp("built-in")
    for name in ("tiny-judge", "tiny-mcq"):
        arguments = ["audit", name, "--limit", "120", "--methods", "all", "--resamples", "100"]
        assert main([*arguments, "--out", str(folder / name)]) == 0
    for name, items, judge in (
        ("lists", simulated_items(60, 4, seed=1, task=Task.LISTWISE), "simulated/judge?slot=2"),
        ("scale", simulated_items(60, 10, seed=1, task=Task.RUBRIC), "simulated/judge?slot=2"),
    ):
        methods = ["direct", "vote", "pcf"] if name == "lists" else ["direct", "balanced-rubric"]
        us.audit(judge, items, methods=methods, resamples=100, out=folder / name)
    # a table of more columns than fit
    us.audit(
        "tiny/rubric",
        "tiny-rubric",
        limit=60,
        methods="pride",
        resamples=100,
        out=folder / "columns",
    )
    return {name: folder / name / "report.html" for name in REPORTS}


def test_the_report_of_a_real_audit_opens_and_is_clicked_through(
    reports: dict[str, Path], tmp_path: Path
) -> None:
    moved = tmp_path / "alone.html"
    shutil.copy(reports["tiny-judge"], moved)  # one file is enough
    assert CHROMIUM is not None
    with browser(CHROMIUM) as chromium:
        page = chromium.page()
        page.size(1280)
        page.open(moved.as_uri())
        assert "of its comparisons when shown first" in page.evaluate(
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


@pytest.mark.parametrize("name", REPORTS)
def test_no_two_texts_overlap_on_any_screen_or_in_print(
    name: str, reports: dict[str, Path]
) -> None:
    assert CHROMIUM is not None
    with browser(CHROMIUM) as chromium:
        page = chromium.page()
        for width, scheme, kind in (
            (1280, "light", ""),
            (1280, "dark", ""),
            (390, "light", ""),
            (794, "light", "print"),
        ):
            page.size(width)
            page.media(scheme=scheme, kind=kind)
            page.open(reports[name].as_uri())
            assert page.evaluate(OVERLAPS) == [], f"{width} px, {scheme} {kind}"
            if not kind:
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, f"{wide} px wide on {width} px"


def test_the_search_for_overlaps_finds_one(tmp_path: Path) -> None:
    file = tmp_path / "two.html"
    text = "<p style='position:absolute;top:{}px;left:{}px'>{}</p>"
    file.write_text(text.format(0, 0, "first") + text.format(5, 10, "second"), encoding="utf-8")
    assert CHROMIUM is not None
    with browser(CHROMIUM) as chromium:
        page = chromium.page()
        page.open(file.as_uri())
        (pair,) = page.evaluate(OVERLAPS)
        assert pair[:2] == ["first", "second"]
