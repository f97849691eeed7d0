"""The report in a real browser: used by mouse and keyboard, in every layout, and attacked.

Skipped where no Chromium is installed; CI installs one.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from devtools import Browser, Page, find_chromium
from test_report_frontier import CROWD
from test_report_page import hostile_run

from judges import figures, list_run, null, sample_run, scale_run, with_metrics
from unswayed.cli import main
from unswayed.report.data import RunData
from unswayed.report.page import render_report

CHROMIUM = find_chromium()
OVERLAPS = (Path(__file__).parent / "overlapping_texts.js").read_text(encoding="utf-8")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

Sheets = dict[str, Path]


def crowded(run: RunData) -> RunData:
    """The run with twelve methods that lie close together."""
    rows = {}
    for name, (value, calls) in CROWD.items():
        row = figures(run)["methods"].get(name, figures(run)["methods"]["pride"])
        accuracy = {"value": value, "low": value - 0.02, "high": value + 0.02, "n": 200}
        rows[name] = {**row, "accuracy": accuracy, "calls_per_item_amortised": calls}
    rows["vote"]["recall_difference"] = null("it names no winner whenever the orders disagree")
    return with_metrics(run, methods=rows)


@pytest.fixture(scope="module")
def sheets(tmp_path_factory: pytest.TempPathFactory) -> Sheets:
    folder = tmp_path_factory.mktemp("reports")
    run = sample_run(n_items=200)
    other = with_metrics(sample_run(n_items=200, seed=5, bias=0.2), model="simulated/level")
    made = {
        "judge": [crowded(run)],
        "options": [sample_run(5, 100)],
        "runs": [run, other],
        "hostile": [hostile_run()],
        "lists": [list_run()],
        "scale": [scale_run()],
    }
    for name, runs in made.items():
        (folder / f"{name}.html").write_text(render_report(runs), encoding="utf-8")
    real = {  # with all methods, and with more columns than fit
        "tiny-judge": ["--limit", "120", "--methods", "all"],
        "tiny-rubric": ["--limit", "60", "--methods", "pride"],
    }
    for name, options in real.items():
        out = ["--resamples", "100", "--out", str(folder / name)]
        assert main(["audit", name, *options, *out]) == 0
    return {
        **{name: folder / f"{name}.html" for name in made},
        **{name: folder / name / "report.html" for name in real},
    }


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    assert CHROMIUM is not None
    with contextlib.closing(Browser(CHROMIUM)) as started:
        yield started


@pytest.fixture(scope="module")
def tab(chromium: Browser) -> Page:
    return chromium.page()


@pytest.fixture
def page(tab: Page, sheets: Sheets) -> Page:
    return opened(tab, sheets["judge"])


def opened(tab: Page, file: Path, *, width: int = 1280, scheme: str = "light") -> Page:
    tab.size(width)
    tab.media(scheme=scheme)
    tab.open(file.as_uri())
    return tab


def text(page: Page, selector: str) -> str:
    found = page.evaluate(f"document.querySelector({json.dumps(selector)}).innerText.trim()")
    assert isinstance(found, str)
    return found


def column(page: Page, index: int) -> list[float]:
    """The values of a column of the metrics table, top to bottom, without the empty ones."""
    values = page.evaluate(
        "[...document.querySelectorAll('#metrics1 tbody tr')]"
        f".map((row) => row.cells[{index}].dataset.v)"
    )
    return [float(value) for value in values if value != ""]


def shown(page: Page, selector: str) -> bool:
    return bool(
        page.evaluate(
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            ".some((node) => node.checkVisibility())"
        )
    )


def quiet(page: Page, file: Path) -> None:
    """No console line, and nothing asked for but the file itself."""
    assert page.console == []
    assert page.requests == [file.as_uri()]


@pytest.mark.parametrize("name", ["judge", "options", "runs", "hostile", "lists", "scale"])
def test_a_report_opens_without_a_console_line_or_a_request(
    tab: Page, sheets: Sheets, name: str
) -> None:
    page = opened(tab, sheets[name])
    assert text(page, "h1")
    quiet(page, sheets[name])


def test_the_report_of_a_real_audit_is_one_file_to_click_through(
    tab: Page, sheets: Sheets, tmp_path: Path
) -> None:
    moved = tmp_path / "alone.html"
    shutil.copy(sheets["tiny-judge"], moved)
    page = opened(tab, moved)
    assert "of its comparisons when shown first" in text(page, "h1")
    assert page.evaluate("document.querySelectorAll('#metrics1 tbody tr').length") >= 10
    before = text(page, "#detail")
    page.click("#list li:nth-child(2) button")
    assert text(page, "#detail") != before
    page.click("#next")
    assert "2 of" in text(page, "#where")
    page.click("#metrics1 thead th:nth-child(3) button")
    assert page.evaluate("document.querySelector('#metrics1 th[aria-sort=descending]') !== null")
    quiet(page, moved)


@pytest.mark.parametrize("name", ["options", "runs", "lists", "scale", "tiny-judge", "tiny-rubric"])
def test_no_two_texts_overlap_on_any_screen_or_in_print(
    tab: Page, sheets: Sheets, name: str
) -> None:
    for width, kind in ((1280, ""), (390, ""), (794, "print")):
        tab.size(width)
        tab.media(kind=kind)
        tab.open(sheets[name].as_uri())
        assert tab.evaluate(OVERLAPS) == [], f"{width} px {kind}"
        assert kind or tab.evaluate("document.documentElement.scrollWidth") <= width


def test_the_search_for_overlaps_finds_one(tab: Page, tmp_path: Path) -> None:
    file = tmp_path / "two.html"
    made = "<p style='position:absolute;top:{}px;left:{}px'>{}</p>"
    file.write_text(made.format(0, 0, "first") + made.format(5, 10, "second"), encoding="utf-8")
    (pair,) = opened(tab, file).evaluate(OVERLAPS)
    assert pair[:2] == ["first", "second"]


def test_headings_sort_the_table_by_mouse_and_keyboard(page: Page) -> None:
    page.click("#metrics1 thead th:nth-child(3) button")  # accuracy: best first
    assert column(page, 2) == sorted(column(page, 2), reverse=True)
    assert text(page, "#sorted") == "Sorted by Accuracy, ties shared, descending."
    page.key("Enter")  # the heading has the focus now: the other way round
    assert column(page, 2) == sorted(column(page, 2))
    heads = "[...document.querySelectorAll('#metrics1 thead th[aria-sort]')]"
    assert page.evaluate(f"{heads}.map((th) => th.ariaSort)") == ["ascending"]


def test_values_that_are_missing_sort_last_either_way(page: Page) -> None:
    title = "#metrics1 thead th:nth-child(6) button"  # of recalls: vote has none
    last = "document.querySelector('#metrics1 tbody tr:last-child th').dataset.v"
    for _ in range(2):
        page.click(title)
        assert page.evaluate(last) == "vote"


def test_items_are_filtered_and_paged(page: Page) -> None:
    whole = text(page, "#count")
    assert whole.endswith("flipped items, surest first")
    first = text(page, "#list li:first-child button span")
    page.click("#next")
    assert text(page, "#where").startswith("Page 2 of ")
    assert text(page, "#list li:first-child button span") != first
    page.click("#filter")
    page.type("bees letter")
    assert "items match" in text(page, "#count")
    assert text(page, "#where").startswith("Page 1 of ")
    groups = page.evaluate(
        "[...document.querySelectorAll('#list .muted')].map((node) => node.textContent)"
    )
    assert set(groups) == {"bees"}
    assert ", bees" in text(page, "#detail h3")
    page.type(" nothing-has-this")
    assert text(page, "#count") == "No item matches."


def test_an_item_is_chosen_by_mouse_and_shows_both_prompts(page: Page) -> None:
    page.click("#list li:nth-child(3) button")
    chosen = text(page, "#list li:nth-child(3) button span")
    assert text(page, "#detail h3").startswith(f"Item {chosen}")
    assert page.evaluate("document.querySelectorAll('#detail .side').length") == 2
    tags = page.evaluate(
        "[...document.querySelectorAll('#detail .cand i')].map((node) => node.textContent)"
    )
    assert tags == ["answer 1, chosen", "answer 2", "answer 2, chosen", "answer 1"]
    assert page.evaluate("document.querySelectorAll('.ribbons path').length") == 2
    assert chosen in text(page, "#shown")


def test_arrow_keys_walk_through_the_items_and_over_pages(page: Page) -> None:
    page.evaluate("document.querySelector('#list button').focus()")
    page.key("End")
    eighth = text(page, "#detail h3")
    page.key("ArrowDown")
    assert text(page, "#where").startswith("Page 2 of ")
    assert text(page, "#detail h3") != eighth
    page.key("ArrowUp")
    assert text(page, "#where").startswith("Page 1 of ")
    assert text(page, "#detail h3") == eighth
    focused = page.evaluate("document.activeElement.getAttribute('aria-current')")
    assert focused == "true"


def test_tab_reaches_the_skip_link_first_and_visibly(page: Page) -> None:
    page.key("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    left = page.evaluate("document.activeElement.getBoundingClientRect().left")
    assert left >= 0
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_many_options_show_one_prompt_and_hide_the_rest(tab: Page, sheets: Sheets) -> None:
    page = opened(tab, sheets["options"])
    prompts = "document.querySelectorAll('#detail .side').length"
    before = page.evaluate(prompts)
    assert 2 <= before <= 4
    assert not shown(page, ".ribbons")
    page.click("#detail .others summary")
    assert page.evaluate(f"new Promise((done) => setTimeout(() => done({prompts}), 50))") == 5


def test_several_runs_can_be_filtered(tab: Page, sheets: Sheets) -> None:
    page = opened(tab, sheets["runs"])
    page.evaluate(
        "(() => { const run = document.getElementById('run'); run.value = '1';"
        " run.dispatchEvent(new Event('change')); })()"
    )
    runs = page.evaluate(
        "[...document.querySelectorAll('#list .muted')].map((node) => node.textContent)"
    )
    assert set(runs) == {"level"}
    page.click("#metrics2 thead th:nth-child(4) button")  # the second table sorts by itself
    assert text(page, "#sorted") == "Sorted by Consistency, descending."


@pytest.mark.parametrize("name", ["judge", "options", "runs", "hostile", "lists", "scale"])
@pytest.mark.parametrize("width", [320, 700])
def test_no_width_scrolls_sideways(tab: Page, sheets: Sheets, name: str, width: int) -> None:
    page = opened(tab, sheets[name], width=width)
    wide, view = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= view == width


def test_each_layout_draws_its_own_frontier(tab: Page, sheets: Sheets) -> None:
    page = opened(tab, sheets["judge"])
    kinds = (".chart:not(.narrow)", ".narrow")
    assert [shown(page, kind) for kind in kinds] == [True, False]
    page.size(390)
    assert [shown(page, kind) for kind in kinds] == [False, True]
    page.size(1280)
    page.media(kind="print")
    assert [shown(page, kind) for kind in kinds] == [False, True]


@pytest.mark.parametrize(("width", "kind"), [(1280, ""), (390, ""), (1280, "print")])
def test_frontier_labels_do_not_overlap_as_drawn(
    tab: Page, sheets: Sheets, width: int, kind: str
) -> None:
    page = opened(tab, sheets["judge"], width=width)
    page.media(kind=kind)
    clashes = page.evaluate("""[...document.querySelectorAll('svg.chart')]
      .filter((svg) => svg.checkVisibility()).slice(0, 1)
      .flatMap((svg) => {
        const boxes = [...svg.querySelectorAll('.lbl')].map((node) => [node.textContent, node.getBBox()]);
        return boxes.flatMap(([name, a], i) => boxes.slice(i + 1)
          .filter(([, b]) => Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x) > 2
            && Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y) > 3)
          .map(([other]) => `${name} / ${other}`));
      })""")
    assert clashes == []


CONTRAST = """(() => {
  const parse = (css) => css.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(node).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const node of document.body.querySelectorAll('*')) {
    const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !node.checkVisibility() || node.closest('script,style,.vh,.skip,:disabled')) continue;
    const style = getComputedStyle(node);
    const ink = node.ownerSVGElement ? style.fill : style.color;
    const [a, b] = [light(parse(ink)), light(ground(node.ownerSVGElement || node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${node.tagName}.${node.className.baseVal ?? node.className} ${ratio.toFixed(2)}`);
  }
  return [...new Set(bad)];
})()"""


@pytest.mark.parametrize("name", ["options", "lists", "scale"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_enough_contrast(tab: Page, sheets: Sheets, scheme: str, name: str) -> None:
    page = opened(tab, sheets[name], scheme=scheme)
    assert page.evaluate(CONTRAST) == []


def test_dark_mode_follows_the_system(tab: Page, sheets: Sheets) -> None:
    grounds = [
        opened(tab, sheets["judge"], scheme=scheme).evaluate(
            "getComputedStyle(document.body).backgroundColor"
        )
        for scheme in ("light", "dark")
    ]
    assert grounds == ["rgb(253, 252, 250)", "rgb(20, 23, 26)"]


def test_print_keeps_the_selected_item_and_drops_the_controls(page: Page) -> None:
    page.click("#list li:nth-child(2) button")
    heading = text(page, "#detail h3")
    page.media(kind="print")
    assert text(page, "#detail h3") == heading
    assert shown(page, "#detail .prompt")
    for control in ("nav", "#finder", ".pager", ".ribbons", ".more"):
        assert not shown(page, control), control
    page.media()
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    assert 3 <= pdf.count(b"/Type /Page\n") <= 12


def test_everything_but_browsing_works_without_scripts(tab: Page, sheets: Sheets) -> None:
    tab.scripts(enabled=False)
    try:
        opened(tab, sheets["judge"])
        document = tab.call("DOM.getDocument", depth=-1)["root"]
    finally:
        tab.scripts(enabled=True)
    nodes = list(walk(document))
    finder = next(node for node in nodes if "finder" in node.get("attributes", []))
    assert "hidden" in finder["attributes"]
    assert not [node for node in nodes if node["nodeName"] == "BUTTON" and "type" not in str(node)]
    detail = next(node for node in nodes if "detail" in node.get("attributes", []))
    words = " ".join(n["nodeValue"] for n in walk(detail) if n["nodeName"] == "#text")
    assert "The judge said" in words
    notes = [node for node in nodes if node["nodeName"] == "NOSCRIPT"]
    assert "unswayed export" in " ".join(n["nodeValue"] for n in walk(notes[0]))


def walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("children", []):
        yield from walk(child)


def test_controls_and_charts_have_names_for_screen_readers(page: Page) -> None:
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    wanted = {"button", "searchbox", "combobox", "link", "table", "image", "region", "navigation"}
    unnamed = [
        node["role"]["value"]
        for node in tree
        if not node.get("ignored")
        and node.get("role", {}).get("value") in wanted
        and not node.get("name", {}).get("value")
    ]
    assert unnamed == []
    roles = [node.get("role", {}).get("value") for node in tree if not node.get("ignored")]
    assert roles.count("image") == 2  # one drawing per panel: the hidden ones stay silent
    assert "main" in roles


def test_hostile_names_and_texts_stay_text_in_use(tab: Page, sheets: Sheets) -> None:
    page = opened(tab, sheets["hostile"])
    for selector in ("#list li button", "#metrics1 thead th:nth-child(3) button", "#filter"):
        page.click(selector)
    page.type("onerror")
    for details in ("#detail .side details summary", ".more summary"):
        page.click(details)
    assert text(page, "#count") == "1 flipped item"
    assert page.evaluate("document.querySelectorAll('img, iframe, object, embed, b b').length") == 0
    assert page.evaluate("document.scripts.length") == 2
    assert page.evaluate("getComputedStyle(document.body).direction") == "ltr"
    assert "<img src=x" in text(page, "#detail")
    quiet(page, sheets["hostile"])


def test_right_to_left_text_is_laid_out_by_itself(tab: Page, sheets: Sheets) -> None:
    page = opened(tab, sheets["judge"])
    directions = page.evaluate(
        "[...document.querySelectorAll('#detail .cand, #detail .text')].map((n) => n.dir)"
    )
    assert set(directions) == {"auto"}
