from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unswayed.backends.local_trees import Tree, shared_lengths

PROMPTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=1, max_size=8)


def test_beginnings_are_counted_against_the_prompt_before() -> None:
    prompts = [[1, 2], [1, 2], [1, 2, 5, 6], [1, 2, 5, 7], [3]]
    assert shared_lengths(prompts) == [0, 2, 2, 3, 0]
    assert shared_lengths([]) == []


def test_a_tree_by_hand() -> None:
    tree = Tree.of([[7, 1, 4], [7, 1, 5], [7, 2]])
    assert tree.ids.tolist() == [7, 1, 4, 5, 2]
    assert tree.positions.tolist() == [0, 1, 2, 2, 1]
    assert tree.last.tolist() == [2, 3, 4]
    assert tree.sees().astype(int).tolist() == [
        [1, 0, 0, 0, 0],  # 7
        [1, 1, 0, 0, 0],  # 7 1
        [1, 1, 1, 0, 0],  # 7 1 4
        [1, 1, 0, 1, 0],  # 7 1 5
        [1, 0, 0, 0, 1],  # 7 2
    ]
    assert not tree.is_chain


def test_a_tree_beyond_a_cached_beginning_sees_all_of_it() -> None:
    tree = Tree.of([[7, 1, 4], [7, 1, 5]], kept=2)
    assert tree.ids.tolist() == [4, 5]
    assert tree.positions.tolist() == [2, 2]
    assert tree.sees().astype(int).tolist() == [[1, 1, 1, 0], [1, 1, 0, 1]]


def test_equal_and_nested_prompts_are_one_chain() -> None:
    tree = Tree.of([[7, 1], [7, 1, 2]])
    assert tree.is_chain
    assert tree.last.tolist() == [1, 2]
    assert Tree.of([[7, 1], [7, 1]]).last.tolist() == [1, 1]


@given(prompts=PROMPTS, cached=st.booleans())
def test_what_the_last_token_of_a_prompt_sees_is_the_prompt(
    prompts: list[list[int]], cached: bool
) -> None:
    prompts = sorted([0, *prompt] for prompt in prompts) if cached else sorted(prompts)
    kept = 1 if cached else 0
    tree = Tree.of(prompts, kept)
    sees = tree.sees()
    assert sees[:, :kept].all()
    for prompt, last in zip(prompts, tree.last, strict=True):
        seen = np.flatnonzero(sees[last, kept:])
        assert [*prompt[:kept], *tree.ids[seen]] == prompt
        assert tree.positions[seen].tolist() == list(range(kept, len(prompt)))
    distinct = {
        tuple(prompt[:end]) for prompt in prompts for end in range(kept + 1, len(prompt) + 1)
    }
    assert len(tree.ids) == len(distinct)
