"""The flipped items inside the page: sentences, selection, size, and JSON that stays data."""

import json
from collections.abc import Sequence
from dataclasses import replace

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from judges import list_run, plain_run, sample_run
from unswayed.auditing.flips import FlippedItem, Flips, Shown
from unswayed.model.decisions import Choice
from unswayed.model.items import Message
from unswayed.report.explorer import ItemView, embed, item_view, script_json
from unswayed.report.findings import Finding


def view(order: tuple[int, ...], choice: Choice, **more: object) -> Shown:
    labels = tuple("ABCDEFGHIJ"[: len(order)])
    label = labels[order.index(choice)] if isinstance(choice, int) else None
    made = Shown(order, labels, (Message("user", "Q"),), choice, label=label)
    return msgspec.structs.replace(made, **more)


def pair(first: Choice, second: Choice, gold: Choice = 1) -> FlippedItem:
    shown = (view((0, 1), first), view((1, 0), second))
    return FlippedItem("q1", "law", gold, ("red", "blue"), shown)


def test_an_item_says_how_the_choice_moved() -> None:
    made = item_view(pair(0, 1), "answer")
    assert made.summary == (
        "The judge said A both times, so its choice went from answer 1 to answer 2. "
        "The gold is answer 2."
    )
    assert [one.heading for one in made.views] == ["As given", "Answers swapped"]
    said = ["".join(text for text, _ in one.said) for one in made.views]
    assert said == [f"The judge said A, which is answer {place}." for place in (1, 2)]
    unread = item_view(pair(0, None), "answer").views[1].said
    assert unread == (("The answer could not be read.", False),)


def test_the_summary_names_ties_and_missing_gold() -> None:
    assert item_view(pair(0, "tie", None), "answer").summary == (
        "The judge's choice went from answer 1 to a tie. This item has no gold."
    )


def turned(choices: Sequence[int], gold: object = 0, presentations: int = 0) -> ItemView:
    """An item of as many candidates as choices, one for each rotation."""
    n = len(choices)
    orders = [tuple((p + k) % n for p in range(n)) for k in range(n)]
    shown = tuple(map(view, orders, choices))
    item = FlippedItem("q", None, gold, tuple("abcdef"[:n]), shown)  # type: ignore[arg-type]
    return item_view(item, "option", presentations=presentations)


def test_of_many_orders_one_prompt_per_answer_is_shown() -> None:
    made = turned((0, 1, 0, 2, 0), gold=(0, 2), presentations=5)
    assert [one.choice for one in made.views] == [0, 1, 2]
    assert len(made.others) == 2
    assert made.views[0].heading == "As given; same answer in 3 of 5 orders"
    assert made.views[1].heading == "Order 2 3 4 5 1; same answer in 1 of 5 orders"
    assert made.summary == (
        "Depending on the order, the judge chose option 1, option 2 or option 3. "
        "Right answers: option 1 and option 3."
    )


def test_answers_are_not_counted_where_orders_were_left_out() -> None:
    assert turned((0, 1, 0), presentations=6).views[0].heading == "As given"


def test_at_most_four_answers_stand_side_by_side() -> None:
    made = turned(range(6))
    assert (len(made.views), len(made.others)) == (4, 2)


def test_reasoning_and_long_answers_are_details() -> None:
    item = pair(0, 1)
    told = msgspec.structs.replace(item.shown[0], reasoning="Because.", text="<answer>A</answer>")
    plain = msgspec.structs.replace(item.shown[1], text=" A ")
    made = item_view(msgspec.structs.replace(item, shown=(told, plain)), "answer")
    assert made.views[0].details == (
        ("Reasoning", "Because."),
        ("Full answer", "<answer>A</answer>"),
    )
    assert made.views[1].details == ()


def test_the_page_embeds_the_surest_items_up_to_its_limit() -> None:
    run = sample_run(n_items=200)
    found = Finding(run)
    whole = embed([found], embed_mb=4.0)
    some = embed([found], embed_mb=len(whole.data.encode()) / 2e6)
    data = json.loads(some.data)
    items = data["items"]
    assert len(set(data["texts"])) == len(data["texts"])  # each is stored once
    assert 0 < len(items) < len(run.flips.flipped)
    assert [data["texts"][item[0]] for item in items] == [
        item.item_id for item in run.flips.flipped[: len(items)]
    ]
    assert len(some.data.encode()) <= len(whole.data.encode()) / 2
    assert some.count == f"surest {len(items)} of {run.flips.n_flipped}; more: flipped.json"
    assert whole.count == f"{run.flips.n_flipped} flipped items, surest first"


def test_items_of_lists_begin_with_the_least_stable() -> None:
    run = list_run()
    item = msgspec.structs.replace(run.flips.flipped[0], stability=0.2)
    made = embed([Finding(replace(run, flips=Flips(1, (item,))))], embed_mb=4.0)
    assert made.count == "1 flipped item, least stable first"


def test_the_surest_item_is_embedded_despite_the_limit() -> None:
    made = embed([Finding(sample_run(n_items=200))], embed_mb=0.0)
    assert len(json.loads(made.data)["items"]) == 1
    assert made.first is not None


@given(st.text(st.characters()))
def test_embedded_json_cannot_end_its_element_and_can_be_written(text: str) -> None:
    made = script_json({"t": text + "</script><!--\u2028"})
    assert "<" not in made
    assert "\u2028" not in made
    made.encode("utf-8")
    json.loads(made)


def test_items_without_probabilities_are_not_called_sure() -> None:
    run = replace(plain_run(), flips=Flips(2, (pair(0, 1), pair(1, 0))))
    assert embed([Finding(run)], embed_mb=4.0).count == "2 flipped items"
    assert embed([Finding(run)], embed_mb=0.0).count == "first 1 of 2; more: flipped.json"
