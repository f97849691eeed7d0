"""Input that shows little: the terminal says what is missing, and nothing that is not so."""

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import unswayed as us
from judges import Planted, Scored, figures
from page_text import page_text, printed
from unswayed.model.items import Task
from unswayed.report.collect import run_data
from unswayed.report.page import render_report

Choose = Callable[[int, int], object]
"""A candidate, "tie" or None, from the number of an item and the candidate shown first."""


@pytest.fixture
def told(tmp_path: Path) -> Callable[..., str]:
    """What the terminal prints about recorded decisions of pairs."""

    def told(choose: Choose, items: int = 40, *, orders: int = 2, **fields: object) -> str:
        decisions = [
            {"item_id": f"q{i}", "order": order, "labels": ["A", "B"], "label_set": ["A", "B"],
             "choice": choose(i, order[0]), "model": "m"}
            for i in range(items)
            for order in ([0, 1], [1, 0])[:orders]
        ]  # fmt: skip
        about = [
            {"id": f"q{i}", "prompt": f"Which is better, {i}?", "candidates": [f"a{i}", f"b{i}"],
             "task": "pairwise"} | {k: v[i] if isinstance(v, list) else v for k, v in fields.items()}
            for i in range(items)
        ]  # fmt: skip
        path = tmp_path / "decisions.jsonl"
        path.write_text("\n".join(map(json.dumps, decisions)))
        run = run_data(us.audit(items=about, decisions=path, resamples=100).record)
        assert render_report([run]).startswith("<!doctype html>")
        return printed(run, 100_000)

    return told


def first_place(_: int, first: int) -> int:
    return first


def split(item: int, first: int) -> object:
    return (first, first, 1 - first, "tie" if first else 0, None if first else 0, 0)[item % 6]


HALF = [0] * 30 + [None] * 30


@pytest.mark.parametrize(
    ("choose", "items", "fields", "said", "unsaid"),
    [
        (first_place, 40, {}, [
            "There is no gold",
            "^An answer wins 100% of its comparisons when shown first and 0% when shown last",
        ], ["The judge is right"]),
        (first_place, 40, {"gold": "tie"}, [
            "Every gold answer is a tie, so this report shows whether the verdicts are consistent",
            "No recommendation: with ties as the only gold nothing can be shown to be more accurate.",
        ], ["no gold", "without gold"]),
        (first_place, 1, {"gold": 0}, [
            "^Too few items. 1 distinct question: no interval.",
            "1 of 1 verdict (100%) changes with the order",
        ], ["would settle"]),
        (first_place, 30, {"gold": 0, "unit": "the same"}, [
            "^Too few items. 30 items, 1 distinct question: no interval.",
        ], []),
        (lambda *_: "tie", 40, {"gold": 0}, [
            "^This judge calls a tie in 100% of its answers.",
            "None of 40 verdicts changes with the order.",
        ], ["would settle"]),
        # a place that wins beside many ties
        (lambda i, first: first if i < 20 else "tie", 200, {"gold": 0}, [
            "^An answer wins 55% of its comparisons when shown first and 45% when shown last, a tie counted as half",
        ], []),
        (lambda *_: None, 40, {"gold": 0}, [
            "^None of 80 answers could be read, so there is nothing to describe.",
        ], ["change with the order"]),
        (lambda *_: 0, 40, {"gold": 0, "orders": 1}, [
            "^These 40 items do not show whether verdicts change with the order",
        ], []),
        (lambda i, first: first if i % 2 else 0, 500, {
            "gold": 0, "unit": [f"u{i // 50}" for i in range(500)],
        }, ["with 500 items, 10 distinct questions, ", " distinct questions narrow it"], []),
        (first_place, 60, {"gold": HALF}, [
            "right in both orders on 0% of the 30 items with gold.",
        ], []),
        (lambda i, first: first if i < 15 else 0, 60, {"gold": [0] * 40 + ["tie"] * 20}, [
            "of the 40 items with gold other than a tie.",
            "Compared on 40 of 60 items (20 with a tie as gold left out).",
        ], []),
        (lambda i, first: first if i >= 30 else None, 60, {"gold": HALF}, [], ["There is no gold"]),
        # groups of one item
        (lambda i, first: first if i % 2 else 0, 40, {"gold": 0, "group": [f"g{i}" for i in range(40)]}, [
            "20 of 40 verdicts (50%) change with the order: 20 stayed with the first position.",
        ], []),
        (lambda i, first: first if i % 4 else 1 - first, 400, {"gold": 0}, [
            "No item was asked twice in the same order",
            "300 stayed with the first position and 100 stayed with the last.",
            "Noise alone would leave as many with the last position as with the first.",
        ], []),
        (split, 60, {"gold": 0}, [
            "50 of 60 verdicts (83%) change with the order: 20 stayed with the first position, 10 stayed "
            "with the last, 10 involve a tie and 10 have an unparsed answer.",
        ], []),
    ],
)  # fmt: skip
def test_the_terminal_says_what_little_there_is(
    told: Callable[..., str],
    choose: Choose,
    items: int,
    fields: dict[str, Any],
    said: list[str],
    unsaid: list[str],
) -> None:
    text = told(choose, items, **fields)
    for words in said:
        assert words in f"^{text}"
    for words in unsaid:
        assert words not in text


@pytest.mark.parametrize(
    "judge",
    [
        Planted(items=12, copies=12, place=1.5, samples=2, probs=True, apart=True),
        Planted(items=6, copies=6, n=3, place=1.5),
        Scored(task=Task.LISTWISE, n=3, slot=2.0, items=1),
        Scored(task=Task.RUBRIC, n=3, slot=2.0, items=1),
    ],
)
def test_one_question_has_no_interval_anywhere(judge: Planted | Scored) -> None:
    run = run_data(judge.audited(1))
    assert list(bounded(figures(run))) == []
    text = printed(run, 200) + page_text(render_report([run]))
    assert re.findall(r"\d[–-]−?\d+\.\d|\.\d to |interval (?:ex|con)tains", text) == []


def bounded(record: object) -> Iterator[object]:
    """The intervals of a record that do not hold by construction."""
    if isinstance(record, dict):
        if record.get("low") is not None and not record.get("by_construction"):
            yield record
        record = list(record.values())
    if isinstance(record, list):
        yield from itertools.chain.from_iterable(map(bounded, record))


def test_distinct_questions_stand_in_the_lead_of_a_page() -> None:
    page = page_text(render_report([run_data(Planted(place=2.0, copies=4).audited(1))]))
    assert re.search(r"when shown first .*\n300 items, 75 distinct questions\. ", page)


def test_one_presentation_proves_no_position(told: Callable[..., str], tmp_path: Path) -> None:
    told(lambda *_: 0, 60, orders=1, gold=0)
    items = [us.Item(id=f"q{i}", prompt=f"{i}?", candidates=("x", "y"), gold=0) for i in range(60)]
    record = us.audit(items=items, decisions=tmp_path / "decisions.jsonl", resamples=100).record
    page = page_text(render_report([run_data(record)]))
    assert "No favoured position can be named." in page
    assert "because of the position, of the answers shown there, or both" in page
    assert "wins" not in page
    assert "than an even share" not in page


def grouped_page(*names: str) -> str:
    """Write the report of 40 items in groups of these names in turn."""
    items = [
        us.Item(id=f"q{i}", prompt=f"{i}?", candidates=("x", "y"), gold=0, group=group, unit=f"{i}")
        for i, group in zip(range(40), itertools.cycle(names), strict=False)
    ]
    record = us.audit("simulated/judge?slot=1", items, resamples=100).record
    return render_report([run_data(record)])


def test_figure_of_groups_makes_room_for_long_names() -> None:
    assert '<section id="groups" class=wide' in grouped_page("law", "high_school_history")
    assert '<section id="groups" aria-labelledby' in grouped_page("law", "history")


@pytest.mark.parametrize(("last", "told"), [("lone", True), ("law", False)])
def test_figure_says_why_a_group_has_no_band(last: str, *, told: bool) -> None:
    page = page_text(grouped_page(*["law", "art"] * 19, "law", last))
    assert ("A group of one question has no band." in page) == told


def test_groups_of_one_item_are_not_compared() -> None:
    page = page_text(grouped_page(*[f"g{i}" for i in range(40)]))
    assert "Every group has one item, so groups are not compared." in page
    assert "measurably" not in page
    assert "chance alone marks" not in page
