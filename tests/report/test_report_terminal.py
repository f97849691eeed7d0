"""The report in the terminal: the same numbers, whatever its width."""

import re
from functools import cache

import pytest

from judges import figures, list_run, method, sample_run, scale_run, with_metrics
from page_text import printed
from unswayed.report.data import RunData


@cache
def sample() -> RunData:
    return sample_run(n_items=200)


def test_headline_table_and_recommendation_are_printed() -> None:
    text = printed(sample())
    assert text.startswith("An answer wins ")
    assert f"Use {figures(sample())['recommendation']['method']}: " in text
    value = figures(sample())["methods"]["pride"]["accuracy"]
    line = next(line for line in text.splitlines() if line.startswith("pride "))
    assert f"{100 * value['value']:.1f}" in line


def test_missing_recommendation_is_printed_once() -> None:
    assert printed(sample_run(n_items=5)).count("No recommendation") == 1


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_number_is_cut_off(width: int) -> None:
    text = printed(sample(), width)
    assert "…" not in text
    assert all(len(line) <= width for line in text.splitlines())


@pytest.mark.parametrize("name", ["pairs", "lists", "scale"])
def test_percent_sign_stays_with_its_number_at_any_width(name: str) -> None:
    run = {"pairs": sample, "lists": list_run, "scale": scale_run}[name]()
    texts = [printed(run, width) for width in range(60, 201, 4)]
    assert all("95%" in text for text in texts if "95" in text and "interval" in text)
    assert not [text for text in texts if re.search(r"\b95\s|\s%", text)]


def test_columns_without_room_are_named() -> None:
    assert "Not shown here: " in printed(sample(), 70)
    assert "Not shown here: " not in printed(sample(), 130)


def test_names_cannot_style_or_steer_the_terminal() -> None:
    name = "[red]x[/red]\x1b[31m\ud800"
    methods = {"direct": figures(sample())["methods"]["direct"], name: method((0.8, 0.7, 0.9), 2.0)}
    text = printed(with_metrics(sample(), methods=methods))
    assert "[red]x[/red]\u241b[31m\ufffd" in text
    assert "\x1b" not in text
