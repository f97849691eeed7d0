"""The page as text: sections, escaping, and one self-contained file."""

import base64
import hashlib
import itertools
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from importlib import resources
from typing import Any

import pytest

from judges import est, figures, method, null, plain_run, sample_run, shares, spans_in, with_metrics
from unswayed.auditing.flips import FlippedItem, Flips, Shown
from unswayed.auditing.records import Metrics, PromptRecord, RunRecord
from unswayed.auditing.rows import converted
from unswayed.base.errors import UsageError
from unswayed.model.items import Message
from unswayed.prompts import Span
from unswayed.report.data import RunData
from unswayed.report.page import named, render_report

HOSTILE = '</script><img src=x onerror="console.error(1)">\ud800\u2028\u202e<b>&\x00'


class Outline(HTMLParser):
    """Tags, ids and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.stack: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.urls: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name == "href":
                self.links.append(value or "")
            if name in {"src", "href", "action", "srcset", "data", "poster"}:
                self.urls.append(value or "")
            assert not name.startswith("on"), f"handler {name}"
            assert name != "style", "a style attribute would break the policy"
        self.stack.append(tag)

    def handle_data(self, data: str) -> None:
        if self.stack and data.strip():
            self.texts.setdefault(self.stack[-1], []).append(data.strip())


@cache
def sample() -> RunData:
    return sample_run(n_items=200)


@cache
def sample_page() -> str:
    return render_report([sample()])


def anchors(page: str) -> list[str]:
    return [link[1:] for link in Outline(page).links if link.startswith("#") and link != "#main"]


def test_sections_are_in_order_and_every_anchor_resolves() -> None:
    assert anchors(sample_page()) == ["bias", "cause", "methods", "groups", "table", "items", "how"]
    assert set(anchors(sample_page())) <= set(Outline(sample_page()).ids)


def test_ids_are_unique() -> None:
    counts = Counter(Outline(sample_page()).ids)
    assert [name for name, n in counts.items() if n > 1] == []


def test_sections_without_data_disappear_with_their_anchors() -> None:
    page = render_report([plain_run()])
    assert anchors(page) == ["bias", "table", "items", "how"]
    assert {"cause", "methods", "groups"}.isdisjoint(Outline(page).ids)


def test_figures_are_numbered_by_what_is_shown() -> None:
    numbers = re.findall(r"<b>Figure (\d)\.</b>", sample_page())
    assert numbers == ["1", "2", "3", "4"]
    run = with_metrics(sample(), protocols={"coupled": figures(sample())["protocols"]["coupled"]})
    assert re.findall(r"<b>Figure (\d)\.</b>", render_report([run])) == ["1", "2", "3"]


def test_headings_do_not_skip_a_level() -> None:
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", sample_page())]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


def test_every_plot_has_its_numbers_and_a_description() -> None:
    page = sample_page()
    for chart in re.findall(r"<svg[^>]*>", page):
        assert 'aria-hidden="true"' in chart or ('role="img"' in chart and "aria-label=" in chart)
    share = figures(sample())["protocols"]["coupled"]["position_rate"][0]
    assert f"{100 * share['value']:.1f} <span>{100 * share['low']:.1f}–" in page


def test_nothing_is_loaded_from_anywhere() -> None:
    outline = Outline(sample_page())
    assert all(url.startswith("#") for url in outline.urls)
    assert "url(" not in sample_page()
    assert "@import" not in sample_page()


def test_the_policy_allows_only_the_pages_script_and_style() -> None:
    page = sample_page()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "base-uri 'none'; form-action 'none'" in policy[1]
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert body is not None
        digest = base64.b64encode(hashlib.sha256(body[1].encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy[1]


def test_templates_never_mark_anything_as_safe() -> None:
    folder = resources.files("unswayed.report") / "templates"
    templates = [file for file in folder.iterdir() if file.name.endswith(".j2")]
    assert templates
    for file in templates:
        text = file.read_text("utf-8")
        assert not re.search(r"\|\s*safe|autoescape\s+false|Markup", text), file.name


def test_the_script_never_parses_html() -> None:
    script = (resources.files("unswayed.report") / "templates" / "page.js").read_text("utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", script)


def hostile_run() -> RunData:
    """A run in which every name and text tries to break out."""
    texts = (HOSTILE, f"x{HOSTILE}")
    messages = (Message(HOSTILE, f"{HOSTILE}?"), Message("user", f"A {HOSTILE} B x{HOSTILE}"))
    spans = ((Span(1, 2, 2 + len(HOSTILE)),), *spans_in(messages, texts[1:]))
    said = {"label": HOSTILE, "text": HOSTILE, "reasoning": HOSTILE, "spans": spans}
    shown = tuple(
        Shown(order, (HOSTILE, "B" + HOSTILE), messages, order[0], **said)  # type: ignore[arg-type]
        for order in ((0, 1), (1, 0))
    )
    item = FlippedItem(HOSTILE, HOSTILE, 0, texts, shown)
    rates = {"position_rate": shares(0.7, 0.3), "label_rate": shares(0.7, 0.3)}
    row = {"consistency": est(0.5, 0.45, 0.55), **rates}
    base = plain_run(protocols={"order": row, "label": row})
    rows = {
        "direct": figures(base)["methods"]["direct"],
        HOSTILE: method((0.8, 0.78, 0.82), 2.0),
        f"z{HOSTILE}": {**method((0.9, 0.88, 0.92), 3.0), "rstd": null(HOSTILE)},
    }
    more = {"rstd": est(0.1, 0.05, 0.15), "fleiss_kappa": est(0.3, 0.2, 0.4)}
    rows["direct"] = {**rows["direct"], **more}
    metrics: dict[str, Any] = {
        "model": HOSTILE,
        "unswayed": HOSTILE,
        "data": {"name": HOSTILE, "n_items": 1000},
        "protocol": {"name": HOSTILE, "n_presentations": 2},
        "methods": rows,
        "recommendation": {"method": HOSTILE, "criterion": "accuracy", "reason": HOSTILE,
                           "alternative": f"z{HOSTILE}", "best": f"z{HOSTILE}"},
        "groups": {f"{HOSTILE}{i}": {"direct": {"consistency": est(c, c - 0.05, c + 0.05, 90)}}
                   for i, c in enumerate((0.2, 0.8))},
        "skipped": {HOSTILE: HOSTILE},
        "cautions": {HOSTILE: [HOSTILE]},
    }  # fmt: skip
    run = RunRecord(
        version=HOSTILE, command=HOSTILE, intervals=HOSTILE, created=HOSTILE, labels=(HOSTILE, "B"),
        prompt=PromptRecord(name=HOSTILE, fingerprint=HOSTILE), packages={HOSTILE: HOSTILE},
    )  # fmt: skip
    told = {"flips": Flips(1, (item,), (HOSTILE,)), "caveats": (HOSTILE,)}
    return replace(with_metrics(base, **metrics), run=run, about={HOSTILE: HOSTILE}, **told)  # type: ignore[arg-type]


@pytest.mark.parametrize("unread", [False, True])
@pytest.mark.parametrize("copies", [1, 2])
def test_hostile_names_and_texts_add_no_element(unread: bool, copies: int) -> None:
    calls = {"planned": 2000, "made": 2000, "unparsed": 1500 if unread else 0}
    page = render_report([with_metrics(hostile_run(), calls=calls)] * copies)
    page.encode("utf-8")
    outline = Outline(page)
    assert outline.tags["img"] == 0
    assert outline.tags["script"] == 2
    assert "<img" not in page
    assert "\u2028" not in page.partition('type="application/json"')[2]
    assert not re.search("[\ud800-\udfff\x00]", page)


@pytest.mark.parametrize(
    "metrics",
    [
        {},
        {"methods": {}},
        {"methods": {"direct": {}}},
        {"calls": {"planned": 100, "made": 0, "cached": 0, "failed": 100}},
        {"calls": {"planned": 10, "made": 10, "unparsed": 10}, "data": {"n_items": 5}},
        {"methods": {"direct": {"consistency": null("one order was recorded")}}},
    ],
)
def test_a_run_without_numbers_still_gives_a_page(metrics: dict[str, Any]) -> None:
    run = RunData(converted(metrics, Metrics), RunRecord(), Flips(0))
    assert anchors(render_report([run]))[0] == "bias"


def test_a_report_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one run"):
        render_report([])


def test_one_method_turns_the_table_into_a_column() -> None:
    page = render_report([plain_run()])
    assert '<table class="data one"' in page
    assert "data-first" not in page


def test_mostly_unparsed_shows_raw_answers_in_place_of_figure_1() -> None:
    calls = {"planned": 2000, "made": 2000, "unparsed": 900}
    run = replace(
        with_metrics(sample(), calls=calls), flips=Flips(0, (), ("one", "two", "three", "four"))
    )
    page = render_report([run])
    assert re.findall(r'<pre class="raw"[^>]*>(\w+)</pre>', page) == ["one", "two", "three"]
    assert "Normal use" not in page
    assert "Recommended:" not in page


def test_without_gold_nothing_speaks_of_accuracy() -> None:
    rows = {
        name: {k: v for k, v in row.items() if "accuracy" not in k and k != "rstd"}
        for name, row in figures(sample())["methods"].items()
    }
    metrics = {**figures(sample()), "methods": rows, "differences": {}, "recommendation": None}
    del metrics["thresholds"]
    metrics["data"]["no_gold"] = metrics["data"]["n_items"]
    page = render_report([replace(sample(), metrics=converted(metrics, Metrics))])
    body = page[page.index("<body>") : page.index('<script type="application/json"')]
    assert "There is no gold" in body
    assert "ccuracy" not in body


@pytest.mark.parametrize(
    ("models", "sets", "names"),
    [
        (("hf/a", "hf/b"), ("d", "d"), ["a", "b"]),
        (("m", "m"), ("d", "e"), ["d", "e"]),
        (("m", "m"), ("d", "d"), ["m", "m (2)"]),
        (("m", "k"), ("d", "e"), ["m on d", "k on e"]),
        (("tiny/j@sha256:0123456789abcdef", "tiny/j+lora=x"), ("d", "d"), ["j", "j+lora=x"]),
    ],
)
def test_runs_are_named_by_what_tells_them_apart(
    models: tuple[str, str], sets: tuple[str, str], names: list[str]
) -> None:
    runs = [
        plain_run(model=model, data={"name": name, "n_items": 1000})
        for model, name in zip(models, sets, strict=True)
    ]
    assert [finding.name for finding in named(runs)] == names


def test_runs_without_a_prompt_are_named_without_one() -> None:
    asked = replace(plain_run(model="a"), run=RunRecord(prompt=PromptRecord(name="direct")))
    function = replace(plain_run(model="function/f-1"), run=asked.run)
    log = replace(plain_run(model="log"), run=RunRecord(recorded={}))
    assert [own.name for own in named([asked, function, log])] == ["a", "function/f-1", "log"]


def test_missing_calls_are_the_first_line_under_the_headline() -> None:
    calls = {"planned": 2000, "made": 1500}
    page = render_report([with_metrics(plain_run(), calls=calls)])
    after = page[page.index("</h1>") :]
    assert re.match(r'</h1>\s*<p class="warning">500 of 2,000 calls are missing', after)
