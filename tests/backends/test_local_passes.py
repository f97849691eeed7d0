from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unswayed.backends.local_passes import Batch, by_length, common_length, plan

PROMPTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=8)


def test_batches_are_capped_longest_first_and_lose_nothing() -> None:
    lengths = [5, 1, 9, 3, 3, 20]
    # 1 x 20 (over the cap, so alone), 2 x 9, 3 x 3
    assert list(by_length(lengths, cap=18)) == [[5], [2, 0], [3, 4, 1]]
    assert list(by_length(lengths, cap=100, same=True)) == [[5], [2], [0], [3, 4], [1]]
    assert list(by_length([], cap=10)) == []


def test_a_group_with_a_long_common_beginning_is_read_once() -> None:
    question = list(range(300))
    prompts = [[*question, 1, 2, 9], [7, 7], [*question, 2, 1, 9], [*question, 3, 9]]
    found = list(
        plan(
            prompts, ["q", "other", "q", "q"], cap=10_000, cap_apart=10_000, pads=True, shares=True
        )
    )
    assert found == [Batch([0, 2, 3], 300), Batch([1], 0)]


def test_a_group_over_the_cap_is_divided_and_a_single_prompt_shares_nothing() -> None:
    question = list(range(300))
    prompts = [[*question, 1, own] for own in range(3)]
    found = list(plan(prompts, ["q"] * 3, cap=700, cap_apart=700, pads=True, shares=True))
    assert found == [Batch([0, 1], 301), Batch([2], 0)]


def test_batches_that_share_nothing_may_have_a_cap_of_their_own() -> None:
    prompts = [[*range(300), 1], [*range(300), 2], [1] * 5, [2] * 5, [3] * 5]
    groups = ["q", "q", "a", "b", "c"]
    found = list(plan(prompts, groups, cap=10_000, cap_apart=10, pads=True, shares=True))
    assert found == [Batch([0, 1], 300), Batch([2, 3], 0), Batch([4], 0)]


def test_sharing_is_left_where_it_saves_little() -> None:
    # 200 tokens saved; and 300 saved of 6 600
    short = [[*range(200), 1], [*range(200), 2]]
    long = [[*range(300), *[own] * 3000] for own in (300, 301)]
    for prompts in (short, long):
        found = list(
            plan(prompts, ["q", "q"], cap=10_000, cap_apart=10_000, pads=True, shares=True)
        )
        assert [batch.shared for batch in found] == [0]


def test_nothing_is_shared_or_padded_where_the_model_cannot() -> None:
    prompts = [[*range(300), 1], [*range(300), 2, 3]]
    asked = {"cap": 10_000, "cap_apart": 10_000, "pads": False}
    assert list(plan(prompts, ["q", "q"], shares=True, **asked)) == [Batch([1], 0), Batch([0], 0)]


@given(prompts=PROMPTS)
def test_the_common_length_is_the_longest_that_leaves_every_prompt_a_token(
    prompts: list[list[int]],
) -> None:
    found = common_length(prompts)
    assert all(prompt[:found] == prompts[0][:found] for prompt in prompts)
    assert all(len(prompt) > found for prompt in prompts)
    longer = found + 1
    assert any(
        len(prompt) <= longer or prompt[:longer] != prompts[0][:longer] for prompt in prompts
    )


@given(
    endings=PROMPTS,
    question=st.sampled_from([0, 150]),
    groups=st.lists(st.integers(0, 2), min_size=8, max_size=8),
    cap=st.integers(1, 2000),
    pads=st.booleans(),
)
def test_every_prompt_runs_once_within_the_cap(
    endings: list[list[int]], question: int, groups: list[int], cap: int, pads: bool
) -> None:
    prompts = [[5] * question + ending for ending in endings]
    batches = list(
        plan(prompts, groups[: len(prompts)], cap=cap, cap_apart=cap, pads=pads, shares=True)
    )
    assert sorted(row for batch in batches for row in batch.rows) == list(range(len(prompts)))
    for batch in batches:
        lengths = [len(prompts[row]) for row in batch.rows]
        assert len(lengths) == 1 or len(lengths) * max(lengths) <= cap
        assert pads or len(set(lengths)) == 1
        assert batch.shared == 0 or batch.shared >= question > 0
        assert batch.shared < min(lengths)
        assert len({tuple(prompts[row][: batch.shared]) for row in batch.rows}) == 1
