"""Input that shows little: the terminal says what is missing, and nothing that is not so."""

import io
import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

import unswayed as us
from judges import Planted, Scored, figures
from page_text import page_text
from unswayed.model.items import Task
from unswayed.report.collect import run_data
from unswayed.report.page import render_report
from unswayed.report.terminal import terminal_report

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
        console = Console(file=io.StringIO(), width=100_000, force_terminal=False)
        console.print(terminal_report(run))
        text = console.file.getvalue()  # type: ignore[attr-defined]
        assert isinstance(text, str)
        return text

    return told


def first_place(_: int, first: int) -> int:
    return first


def test_no_gold_says_that_nothing_is_known_to_be_right(told: Callable[..., str]) -> None:
    text = told(first_place)
    assert "There are no gold labels" in text
    assert "The judge is right" not in text
    assert "An answer wins 100% of its comparisons when shown first and 0% when shown last" in text


def test_gold_that_is_all_ties_is_not_called_missing(told: Callable[..., str]) -> None:
    text = told(first_place, gold="tie")
    assert "The only gold labels are ties, so this report shows how steady the verdicts are" in text
    assert (
        "No recommendation: with ties as the only gold nothing can be shown to be more accurate."
        in text
    )
    assert "no gold" not in text
    assert "without gold" not in text


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
    console = Console(file=io.StringIO(), width=200, force_terminal=False)
    console.print(terminal_report(run))
    text = console.file.getvalue() + page_text(render_report([run]))  # type: ignore[attr-defined]
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


def test_one_item_is_one_question_without_an_interval(told: Callable[..., str]) -> None:
    text = told(first_place, 1, gold=0)
    assert text.startswith("Too few items. 1 distinct question: no interval.")
    assert "would settle" not in text
    assert "1 of 1 verdict (100%) changes with the order" in text


def test_one_question_asked_as_many_items_has_no_interval(told: Callable[..., str]) -> None:
    text = told(first_place, 30, gold=0, unit="the same")
    assert text.startswith("Too few items. 30 items, 1 distinct question: no interval.")


def test_ties_everywhere_say_that_no_preference_is_measured(told: Callable[..., str]) -> None:
    text = told(lambda *_: "tie", gold=0)
    assert text.startswith("This judge calls a tie in 100% of its answers.")
    assert "would settle" not in text
    assert "None of 40 verdicts changes with the order." in text


def test_a_place_that_wins_beside_many_ties_is_still_named(told: Callable[..., str]) -> None:
    text = told(lambda i, first: first if i < 20 else "tie", 200, gold=0)
    assert text.startswith(
        "An answer wins 55% of its comparisons when shown first and 45% when shown last, a tie counted as half"
    )


def test_answers_that_all_are_unread_describe_nothing(told: Callable[..., str]) -> None:
    text = told(lambda *_: None, gold=0)
    assert text.startswith("None of 80 answers could be read, so there is nothing to describe.")
    assert "change with the order" not in text


def test_one_presentation_does_not_show_what_the_order_does(told: Callable[..., str]) -> None:
    text = told(lambda *_: 0, orders=1, gold=0)
    assert text.startswith("These 40 items do not show whether verdicts change with the order")


def test_one_presentation_proves_no_position(told: Callable[..., str], tmp_path: Path) -> None:
    told(lambda *_: 0, 60, orders=1, gold=0)
    items = [us.Item(id=f"q{i}", prompt=f"{i}?", candidates=("x", "y"), gold=0) for i in range(60)]
    record = us.audit(items=items, decisions=tmp_path / "decisions.jsonl", resamples=100).record
    page = page_text(render_report([run_data(record)]))
    assert "No favoured position can be named." in page
    assert "because of the position, of the answers shown there, or both" in page
    assert "wins" not in page
    assert "than an even share" not in page


def test_questions_would_settle_not_more_of_their_items(told: Callable[..., str]) -> None:
    units = [f"u{i // 50}" for i in range(500)]
    text = told(lambda i, first: first if i % 2 else 0, 500, gold=0, unit=units)
    assert re.search(r"with 500 items, 10 distinct questions, .* distinct questions give", text)


def test_rates_of_gold_name_the_items_that_have_it(told: Callable[..., str]) -> None:
    text = told(first_place, 60, gold=[0] * 30 + [None] * 30)
    assert "right in both orders on 0% of the 30 items with gold." in text


def test_rates_of_gold_name_the_ties_that_are_left_out(told: Callable[..., str]) -> None:
    text = told(lambda i, first: first if i < 15 else 0, 60, gold=[0] * 40 + ["tie"] * 20)
    assert "of the 40 items with gold other than a tie." in text
    assert "Compared on 40 of 60 items (20 with a tie as gold label left out)." in text


def test_gold_without_an_answer_is_not_called_missing(told: Callable[..., str]) -> None:
    text = told(lambda i, first: first if i >= 30 else None, 60, gold=[0] * 30 + [None] * 30)
    assert "There are no gold labels" not in text


def test_groups_of_one_item_are_not_told_apart(told: Callable[..., str]) -> None:
    text = told(lambda i, first: first if i % 2 else 0, gold=0, group=[f"g{i}" for i in range(40)])
    assert (
        "20 of 40 verdicts (50%) change with the order: 20 stayed with the first position." in text
    )


def test_groups_of_one_item_are_not_compared() -> None:
    items = [
        us.Item(
            id=f"q{i}", prompt=f"{i}?", candidates=("x", "y"), gold=0, group=f"g{i}", unit=f"{i}"
        )
        for i in range(40)
    ]
    record = us.audit("simulated/judge?slot=1", items, resamples=100).record
    page = page_text(render_report([run_data(record)]))
    assert "Every group has one item, so groups are not compared." in page
    assert "measurably" not in page
    assert "chance alone marks" not in page


def test_noise_is_told_from_the_effect_of_the_order(told: Callable[..., str]) -> None:
    def choose(item: int, first: int) -> int:
        return first if item % 4 else 1 - first

    text = told(choose, 400, gold=0)
    assert "No item was asked twice in the same order" in text
    assert "300 stayed with the first position and 100 stayed with the last." in text
    assert "Noise alone would leave as many with the last position as with the first." in text


def test_verdicts_that_change_are_split_by_what_became_of_them(told: Callable[..., str]) -> None:
    def choose(item: int, first: int) -> object:
        return (first, first, 1 - first, "tie" if first else 0, None if first else 0, 0)[item % 6]

    text = told(choose, 60, gold=0)
    assert (
        "50 of 60 verdicts (83%) change with the order: 20 stayed with the first position, 10 stayed "
        "with the last, 10 involve a tie and 10 have an unread answer."
    ) in text
