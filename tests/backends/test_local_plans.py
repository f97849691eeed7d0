from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.backends.local_costs import PassCosts
from unswayed.backends.local_plans import PromptBatch, Step, by_length, plan
from unswayed.backends.local_trees import Tree

PROMPTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=8)

COSTS = PassCosts(
    token=1e6, pair=10.0, call=1e6, hidden=1000, cached=100, repeated=50, scores=0, logits=100,
    budget=1e9,
)  # fmt: skip
"""A token costs as much as starting a pass, and attention nearly nothing."""


def planned(
    prompts: list[list[int]], groups: list[Any], *, costs: PassCosts = COSTS, **asked: Any
) -> list[PromptBatch]:
    settings = {"cap": 10_000, "cap_apart": 2_000, "pads": True, "trees": True, **asked}
    return list(plan(prompts, groups, costs=costs, **settings))


def every_order(question: int, candidate: int, *, n: int = 4) -> list[list[int]]:
    texts = [[10 * k + 20 + place for place in range(candidate)] for k in range(n)]
    return [
        [*[1] * question, *itertools.chain.from_iterable(texts[k] for k in order), 2]
        for order in itertools.permutations(range(n))
    ]


def computed(prompts: list[list[int]], batches: list[PromptBatch]) -> int:
    """Tokens that go through the model, padding left out."""
    tokens = 0
    for batch in batches:
        rows = [prompts[row] for row in batch.rows]
        if not batch.steps:
            tokens += sum(map(len, rows))
        for step in batch.steps:
            for begin, end in step.trees:
                part = [row[: step.trunk or None] for row in rows[begin:end]]
                tokens += len(Tree.of(part, step.kept).ids)
    return tokens


def test_batches_are_capped_longest_first_and_lose_nothing() -> None:
    lengths = [5, 1, 9, 3, 3, 20]
    # 1 x 20 (over the cap, so alone), 2 x 9, 3 x 3
    assert list(by_length(lengths, cap=18)) == [[5], [2, 0], [3, 4, 1]]
    assert list(by_length(lengths, cap=100, same=True)) == [[5], [2], [0], [3, 4], [1]]
    assert list(by_length([], cap=10)) == []
    small = by_length([4, 4, 4, 2, 2], cap=100, fits=lambda rows, longest: rows * longest <= 8)
    assert list(small) == [[0, 1], [2, 3], [4]]


def test_all_orders_of_an_item_are_a_tree_of_65_segments() -> None:
    # a question of 100, segments of 10: 4 + 12 + 24 + 24 of them and 24 ends, not 24 of everything
    prompts = every_order(100, 10)
    batches = planned(prompts, ["q"] * 24)
    assert {batch.form for batch in batches} == {"trie"}
    assert computed(prompts, batches) == 100 + 64 * 10 + 24
    assert sum(map(len, prompts)) == 24 * 141


def test_trees_share_a_pass_where_starting_one_is_dear() -> None:
    prompts = [*every_order(20, 2, n=3), *every_order(30, 2, n=3), [5, 6]]
    groups = ["a"] * 6 + ["b"] * 6 + ["c"]
    (together, alone) = planned(prompts, groups, costs=replace(COSTS, call=1e12))
    assert together.steps == (Step(((0, 6), (6, 12))),)
    assert sorted(together.rows) == list(range(12))
    assert (alone.rows, alone.tokens, alone.steps) == ([12], 2, ())


def test_a_long_beginning_is_read_once_and_cached() -> None:
    prompts = [[*[1] * 500, own, *[own] * 200] for own in (3, 4, 5)]
    # attention to what is not one's own is dear, so each goes on by itself
    (batch,) = planned(prompts, ["q"] * 3, costs=replace(COSTS, pair=1e5))
    assert batch.form == "prefix"
    assert batch.steps[0] == Step(((0, 1),), 0, 500)
    assert batch.steps[1:] == tuple(Step(((row, row + 1),), 500) for row in range(3))


@pytest.mark.parametrize(
    ("prompts", "groups"),
    [
        ([[*range(200), *[own] * 3000] for own in (300, 301)], ["q", "q"]),  # 3% is shared
        ([[*range(30), *[own] * 300] for own in (300, 301)], ["a", "b"]),  # of different items
        ([[1, 2, 3]], ["a"]),
    ],
)
def test_rows_stay_rows_where_sharing_gains_little(
    prompts: list[list[int]], groups: list[str]
) -> None:
    assert {batch.form for batch in planned(prompts, groups)} == {"plain"}


def test_what_all_items_begin_with_is_read_once() -> None:
    examples = [*range(900, 1500)]
    prompts = [
        [*examples, 3000 + item, *prompt] for item in range(5) for prompt in every_order(20, 5, n=2)
    ]
    groups = [item for item in range(5) for _ in range(2)]
    (batch,) = planned(prompts, groups)
    assert batch.form == "trie"
    assert batch.steps[0] == Step(((0, 1),), 0, 600)
    assert batch.tokens == computed(prompts, [batch]) == 600 + 5 * (1 + 20 + 2 * 11)
    # a pass of an accelerator is dear to start: five of them cost more than what is shared
    dear = planned(prompts, groups, costs=replace(COSTS, call=1e10))
    assert all(step.kept == 0 for batch in dear for step in batch.steps)


def test_a_common_beginning_is_read_again_for_the_next_batch() -> None:
    prompts = [[*range(100), 5000 + item, *[7] * 50] for item in range(64)]
    batches = planned(prompts, list(range(64)), cap=500)
    # 800 tokens, eight times the beginning, are 16 prompts of 51 beyond it
    assert [len(batch.rows) for batch in batches] == [16] * 4
    assert {batch.tokens for batch in batches} == {100 + 16 * 51}
    assert computed(prompts, batches) == sum(batch.tokens for batch in batches)


def test_a_beginning_that_does_not_fit_into_memory_is_not_kept() -> None:
    prompts = [[*range(600), item, 1] for item in range(4)]
    costs = replace(COSTS, cached=50_000, budget=COSTS.memory(602, scored=1))
    batches = planned(prompts, list(range(4)), costs=costs)
    assert {batch.form for batch in batches} == {"plain"}


def test_nothing_is_shared_or_padded_where_the_model_cannot() -> None:
    prompts = [[*range(300), 1], [*range(300), 2, 3]]
    batches = planned(prompts, ["q", "q"], pads=False, trees=False)
    assert [(batch.rows, batch.tokens, batch.steps) for batch in batches] == [
        ([1], 302, ()),
        ([0], 301, ()),
    ]


def test_memory_decides_what_runs_together() -> None:
    prompts = every_order(100, 10)
    longest = len(prompts[0])
    roomy = planned(prompts, ["q"] * 24, costs=replace(COSTS, call=1e7))
    assert [len(batch.steps) for batch in roomy] == [1]  # whole: 764 nodes and their mask, 3.8 MB
    walked = planned(prompts, ["q"] * 24, costs=replace(COSTS, call=1e7, budget=2e6))
    assert [batch.form for batch in walked] == ["trie"]
    assert len(walked[0].steps) > 1
    bare = replace(COSTS, cached=5000, budget=COSTS.memory(longest, scored=1))
    assert {
        (batch.form, len(batch.rows)) for batch in planned(prompts, ["q"] * 24, costs=bare)
    } == {("plain", 1)}


def test_the_memory_of_a_batch_is_that_of_its_largest_pass() -> None:
    costs = PassCosts(
        token=1, pair=0, call=0, hidden=10, cached=3, repeated=2, scores=0, logits=1, budget=1e9
    )
    apart = [[1, 2, 3, 4, 5], [9] * 7]
    (rows,) = planned(apart, ["q", "q"], costs=costs)
    assert (rows.form, rows.memory) == ("plain", 2 * (7 * 10 + 7 * 2))
    prompts = [[1, 2, 3, 4, 5], [1, 2, 3, 6]]
    (whole,) = planned(prompts, ["q", "q"], costs=costs)
    assert whole.steps == (Step(((0, 2),)),)
    assert whole.memory == 6 * 10 + 6 * 2 + 5 * 36
    # three tokens are read and kept; then two go on, with those three in the cache and held
    (walk,) = planned(prompts, ["q", "q"], costs=replace(costs, budget=whole.memory - 1))
    assert walk.steps == (Step(((0, 1),), 0, 3), Step(((0, 1),), 3), Step(((1, 2),), 3))
    trunk = 3 * 10 + 3 * 2 + 3 * 3
    longer = 2 * 10 + 5 * 2 + 5 * 2 * 5 + 5 * 3 + 3 * 3
    assert walk.memory == max(trunk, longer) == longer


@given(
    endings=PROMPTS,
    question=st.sampled_from([0, 40, 150]),
    groups=st.lists(st.integers(0, 2), min_size=8, max_size=8),
    cap=st.integers(1, 2000),
    pads=st.booleans(),
    call=st.sampled_from([0.0, 1e6, 1e12]),
    budget=st.sampled_from([2e5, 1e6, 1e9]),
)
def test_every_prompt_runs_once_within_cap_and_memory(
    endings: list[list[int]],
    question: int,
    groups: list[int],
    cap: int,
    pads: bool,
    call: float,
    budget: float,
) -> None:
    prompts = [[5] * question + ending for ending in endings]
    costs = replace(COSTS, call=call, budget=budget)
    batches = planned(
        prompts, groups[: len(prompts)], costs=costs, cap=cap, cap_apart=cap, pads=pads, trees=pads
    )
    assert sorted(row for batch in batches for row in batch.rows) == list(range(len(prompts)))
    for batch in batches:
        rows = [prompts[row] for row in batch.rows]
        assert batch.tokens == computed(prompts, [batch])
        if not batch.steps:
            assert len(rows) == 1 or len(rows) * max(map(len, rows)) <= cap
            assert pads or len(set(map(len, rows))) == 1
            assert len(rows) == 1 or batch.memory <= budget
            continue
        scored: list[int] = []
        cached = [0]
        for step in batch.steps:
            trees = [
                Tree.of([row[: step.trunk or None] for row in rows[begin:end]], step.kept)
                for begin, end in step.trees
            ]
            assert step.kept in cached, "a beginning is read before it is needed"
            cached = [length for length in cached if length <= step.kept]
            nodes = max(len(tree.ids) for tree in trees)
            alone = all(end - begin == 1 for begin, end in step.trees)
            assert alone or nodes * len(trees) <= cap
            masked = not alone or step.kept > 0
            needed = costs.memory(nodes, step.kept, masked=masked, rows=len(trees))
            assert needed <= batch.memory <= budget
            for begin, end in step.trees:
                assert len({tuple(row[: step.kept]) for row in rows[begin:end]}) == 1
                if step.trunk:
                    cached.append(step.trunk)
                else:
                    scored += range(begin, end)
        assert scored == list(range(len(rows)))
