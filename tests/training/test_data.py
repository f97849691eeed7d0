"""Permutation groups and the filter."""

from collections import Counter
from dataclasses import replace

import msgspec
import pytest
from small_models import colour_items

import needs
from unswayed.base.errors import ItemError, UsageError
from unswayed.data.importers import import_files
from unswayed.model.decisions import Decision
from unswayed.model.items import TASKS, Item, Task
from unswayed.model.tasks import task_of
from unswayed.tiny.items import rubric_items
from unswayed.training.filtering import filter_asks, keep_inconsistent
from unswayed.training.groups import build_groups, group_presentations
from unswayed.training.recipe_parts import DataTable, PromptTable

SHARED = needs.DATA / "pagrpo_train"


# --- groups -----------------------------------------------------------------------------------


def test_a_group_is_the_papers_set_of_orders_in_consecutive_rows():
    groups = build_groups(colour_items(3, n=4), DataTable(), PromptTable())
    orders = ["".join("ABCD"[c] for c in row.shown.order) for row in groups.rows[:5]]
    assert orders == ["ABCD", "BCDA", "CDAB", "DABC", "DCBA"]
    assert [row.item_id for row in groups.rows] == ["q0"] * 5 + ["q1"] * 5 + ["q2"] * 5
    assert [row.presentation for row in groups.rows] == [0, 1, 2, 3, 4] * 3


def test_prompts_show_candidates_in_order_and_never_gold():
    item = Item(id="x", task=Task.MCQ, prompt="?", candidates=("one", "two", "three"), gold=2)
    other = Item(id="x", task=Task.MCQ, prompt="?", candidates=("one", "two", "three"), gold=0)
    rows = build_groups([item], DataTable(), PromptTable()).rows
    bcda = rows[1].messages[-1].content
    assert bcda.index("two") < bcda.index("three") < bcda.index("one")
    assert [row.messages for row in rows] == [
        row.messages for row in build_groups([other], DataTable(), PromptTable()).rows
    ]
    assert rows[0].gold == (2,)


@pytest.mark.parametrize(
    ("orders", "n", "size"),
    [("cyclic", 4, 4), ("structured", 4, 5), ("full", 4, 24), ("swap", 2, 2), ("random:3", 4, 3)],
)
def test_the_size_of_a_group_follows_its_orders(orders, n, size):
    assert len(group_presentations(DataTable(orders=orders), n)) == size


def test_a_group_of_one_is_refused():
    with pytest.raises(UsageError, match="needs at least 2"):
        group_presentations(DataTable(orders="identity"), 4)


def test_an_item_with_an_overlong_presentation_is_dropped_whole():
    def count(messages):  # the second presentation of q1 is too long
        text = messages[-1].content
        return 99 if "longest" in text and text.index("longest") < text.index("red") else 10

    items = [
        Item(id="q0", prompt="?", candidates=("red", "blue"), gold=0),
        Item(id="q1", prompt="?", candidates=("red", "longest"), gold=0),
    ]
    groups = build_groups(items, DataTable(max_prompt_tokens=50), PromptTable(), count_tokens=count)
    assert {row.item_id for row in groups.rows} == {"q0"}
    assert len(groups.rows) == 2
    assert (groups.counts.overlong, groups.counts.kept) == (1, 1)
    assert groups.counts.longest_prompt == 10


@pytest.mark.parametrize(
    ("data", "remedy"),
    [
        (DataTable(max_prompt_tokens=5), "data.max_prompt_tokens higher"),
        (DataTable(held_out=9), "data.held_out lower"),
    ],
)
def test_where_no_item_is_left_the_remedy_is_named(data, remedy):
    with pytest.raises(ItemError, match=remedy):
        build_groups(colour_items(4), data, PromptTable(), count_tokens=lambda messages: 10)


@pytest.mark.parametrize(("gold", "what"), [(None, "is missing"), ("tie", "is a tie")])
def test_missing_gold_stops_before_anything_else_or_is_counted(gold, what):
    items = [
        *colour_items(2),
        Item(id="bad", prompt="?", candidates=("a", "b"), gold=gold),
    ]
    with pytest.raises(ItemError, match=f"bad: gold {what}; 1 of 3 items"):
        build_groups(items, DataTable(), PromptTable())
    groups = build_groups(items, DataTable(without_gold="drop"), PromptTable())
    assert (groups.counts.without_gold, groups.counts.kept) == (1, 2)


def test_groups_of_different_sizes_are_refused_with_a_remedy():
    items = [
        *colour_items(2, n=4),
        Item(id="x", task=Task.MCQ, prompt="?", candidates=("a", "b", "c"), gold=0),
    ]
    message = r"1 items with 3 candidates x 4, 2 items with 4 candidates x 5.*random:4"
    with pytest.raises(UsageError, match=message):
        build_groups(items, DataTable(), PromptTable())
    assert build_groups(items, DataTable(orders="random:4"), PromptTable()).n_presentations == 4


@pytest.mark.parametrize("n", [2, 3])
def test_gold_that_names_every_candidate_stops_or_is_counted(n):
    texts = ("red", "blue", "green")[:n]
    everything = Item(
        id="all", task=Task.MCQ, prompt="?", candidates=texts, gold=tuple(range(n))[::-1]
    )
    items = [*colour_items(2, n=3), everything]
    with pytest.raises(ItemError, match=f"all: gold names all {n} candidates; 1 of 3 items"):
        build_groups(items, DataTable(), PromptTable())
    groups = build_groups(items, DataTable(without_gold="drop"), PromptTable())
    assert (groups.counts.all_right, groups.counts.without_gold, groups.counts.kept) == (1, 0, 2)


@pytest.mark.parametrize("texts", [("a", "a"), ("a", " a\n")])
def test_items_that_repeat_a_candidate_are_left_out_and_counted(texts):
    items = [*colour_items(2), Item(id="twice", prompt="?", candidates=texts, gold=0)]
    groups = build_groups(items, DataTable(), PromptTable())
    assert [item.id for item in groups.items] == ["q0", "q1"]
    assert (groups.counts.identical, groups.counts.kept) == (1, 2)


def test_candidates_that_differ_in_case_alone_are_different():
    item = Item(id="case", prompt="?", candidates=("us", "US"), gold=0)
    assert build_groups([item], DataTable(), PromptTable()).counts.identical == 0


def test_different_numbers_of_candidates_train_together():
    items = [
        *colour_items(2, n=4),
        Item(id="x", task=Task.MCQ, prompt="?", candidates=("a", "b", "c"), gold=(0, 2)),
        Item(id="y", task=Task.MCQ, prompt="?", candidates=("a", "b"), gold=1),
    ]
    groups = build_groups(items, DataTable(orders="random:2"), PromptTable())
    assert groups.n_presentations == 2
    assert groups.numbers == (2, 3, 4)
    assert groups.symbols == ("A", "B", "C", "D")
    assert [row.symbols for row in groups.first_rows[2:]] == [("A", "B", "C"), ("A", "B")]
    for row in groups.rows:
        assert row.shown in groups.views[row.n]
        assert len(row.symbols) == len(row.shown.order) == row.n


def test_items_that_may_not_be_permuted_are_left_out_and_counted():
    fixed = Item(id="x", prompt="?", candidates=("a", "both"), gold=0, permutable=False)
    assert (
        build_groups([*colour_items(2), fixed], DataTable(), PromptTable()).counts.not_permutable
        == 1
    )


def test_held_out_items_depend_on_ids_and_seed():
    items = colour_items(20)
    first = build_groups(items, DataTable(held_out=5), PromptTable())
    again = build_groups(items[::-1], DataTable(held_out=5), PromptTable())
    other = build_groups(items, DataTable(held_out=5), PromptTable(), seed=1)
    apart = {item.id for item in first.held_out}
    assert len(apart) == 5
    assert apart == {item.id for item in again.held_out}
    assert apart != {item.id for item in other.held_out}
    assert not apart & {row.item_id for row in first.rows}


def test_several_right_candidates_are_kept():
    item = Item(id="x", task=Task.MCQ, prompt="?", candidates=("a", "b", "c"), gold=(0, 2))
    assert build_groups([item], DataTable(), PromptTable()).rows[0].gold == (0, 2)


def test_nothing_left_says_where_it_went():
    with pytest.raises(ItemError, match=r"2 items given, 0 with .* 2 held out"):
        build_groups(colour_items(2), DataTable(held_out=2), PromptTable())


def test_a_task_without_orders_of_a_group_is_refused(monkeypatch):
    untrained = replace(task_of("listwise"), train_orders=None)
    monkeypatch.setitem(TASKS._loaded, "listwise", untrained)
    item = Item(id="r", task=Task.LISTWISE, prompt="?", candidates=("1", "2"))
    with pytest.raises(ItemError, match="task listwise cannot be trained"):
        build_groups([item], DataTable(), PromptTable())


# --- the filter -------------------------------------------------------------------------------


def answered(item, choices, prompt_id="default"):
    symbols = tuple("ABCDE"[: item.n])
    return [
        Decision(
            item_id=item.id,
            order=ask.presentation.order,
            labels=ask.presentation.symbols(symbols),
            label_set=symbols,
            choice=choice,
            prompt_id=prompt_id,
        )
        for ask, choice in zip(filter_asks(item.n), choices, strict=False)
    ]


def test_the_filter_asks_both_orders_or_the_cyclic_ones():
    assert [ask.presentation.order for ask in filter_asks(2)] == [(0, 1), (1, 0)]
    assert [ask.presentation.order[0] for ask in filter_asks(4)] == [0, 1, 2, 3]


def test_the_filter_keeps_items_with_two_distinct_answers():
    items = colour_items(6)
    fates = [(0, 1), (1, 1), (0, None), (None, None), (0,), ("tie", 0)]
    decisions = [
        d for item, choices in zip(items, fates, strict=True) for d in answered(item, choices)
    ]
    found = keep_inconsistent(items, decisions)
    assert [item.id for item in found.items] == ["q0", "q5"]
    report = found.report
    assert (report.given, report.kept, report.consistent) == (6, 2, 1)
    assert (report.unparsed, report.incomplete, report.unparsed_answers) == (2, 1, 3)


def test_unparsed_answers_count_as_distinct_only_if_asked_for():
    items = colour_items(1)
    decisions = answered(items[0], (0, None))
    assert keep_inconsistent(items, decisions).report.kept == 0
    assert keep_inconsistent(items, decisions, count_unparsed=True).report.kept == 1


def test_evaluation_items_never_pass_the_filter():
    item = colour_items(1)[0]
    same = Item(
        id="elsewhere",
        prompt=f" {item.prompt} ",
        candidates=tuple(text.upper() for text in item.candidates[::-1]),
    )
    report = keep_inconsistent([item], answered(item, (0, 1)), evaluation=[same]).report
    assert (report.kept, report.evaluation) == (0, 1)


def test_another_response_on_the_same_levels_is_another_item():
    scored, other = rubric_items(200).items[0], rubric_items(200).items[1]
    same_topic = msgspec.structs.replace(other, prompt=scored.prompt)
    answers = answered(scored, (0, 1, 1, 1, 1))
    assert keep_inconsistent([scored], answers, evaluation=[same_topic]).report.kept == 1
    assert keep_inconsistent([scored], answers, evaluation=[scored]).report.evaluation == 1


def test_decisions_of_another_prompt_do_not_count():
    items = colour_items(1)
    decisions = answered(items[0], (0, 1), prompt_id="reasoning")
    assert keep_inconsistent(items, decisions).report.incomplete == 1


# --- the real training files ------------------------------------------------------------------


@needs.recorded
@pytest.mark.parametrize(
    ("name", "count", "gold", "presentations", "identical"),
    [
        ("chatbot_arena_filter_2perm", 773, {0: 388, 1: 385}, 2, 28),
        ("mmlu_filter_5perm", 549, {0: 109, 1: 153, 2: 159, 3: 128}, 5, 6),
    ],
)
def test_the_real_training_files_load_and_group(name, count, gold, presentations, identical):
    items = import_files("pa-grpo", [SHARED / f"{name}_think_dev.jsonl.gz"]).items
    assert len(items) == count
    assert Counter(item.gold for item in items) == gold
    groups = build_groups(items, DataTable(), PromptTable(style="reasoning"))
    assert groups.counts.identical == identical  # which of two equal texts is better is noise
    assert groups.counts.kept == count - identical
    assert len(groups.rows) == groups.counts.kept * presentations
    assert groups.n_presentations == presentations


def test_impossible_layouts_are_refused_and_the_default_yields():
    orders = DataTable(orders="graeco-latin")
    groups = build_groups(colour_items(1, n=4), orders, PromptTable(), layouts="all")
    assert groups.views[4] == group_presentations(orders, 4)
    with pytest.raises(UsageError, match=r'data\.layouts "all" does not work with.*cyclic'):
        group_presentations(DataTable(orders="graeco-latin", layouts="all"), 4)
