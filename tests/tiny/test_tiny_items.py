from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.model.items import Item, ItemSet, Task, check_item
from unswayed.tiny import SETS, judge_of
from unswayed.tiny.formats import FORMATS
from unswayed.tiny.items import (
    BUILT_IN,
    CONTENT_FREE,
    LEVELS,
    NOUNS,
    RUBRIC_VOCABULARY,
    TOPICS,
    VOCABULARY,
    WORDS,
    builtin_items,
    judge_items,
    mcq_items,
    rubric_items,
    worth,
)

Maker = Callable[[int], ItemSet]
MAKERS: list[Maker] = [judge_items, mcq_items, rubric_items]


def true_worth(candidate: str) -> float:
    return sum(float(worth().words[WORDS.index(word)]) for word in candidate.split())


def test_the_world_has_the_size_it_is_described_with() -> None:
    assert len(WORDS) == 48
    assert len(TOPICS) == 10
    assert len(NOUNS) == 40
    assert len(set(VOCABULARY)) == len(VOCABULARY) == 121
    assert set(CONTENT_FREE) < set(VOCABULARY)
    assert len(set(RUBRIC_VOCABULARY)) == len(RUBRIC_VOCABULARY) == 129
    assert RUBRIC_VOCABULARY[:121] == VOCABULARY


def test_good_words_are_worth_more_than_bad_ones_and_raters_err() -> None:
    assert worth().words[:16].min() > worth().words[32:].max()
    errors = worth().words_learned - worth().words
    assert 0.2 < errors.std() < 0.4
    assert np.corrcoef(worth().sizes, worth().sizes_learned)[0, 1] > 0.85


@pytest.mark.parametrize(
    ("name", "n", "task"),
    [
        ("tiny-judge", 1000, Task.PAIRWISE),
        ("tiny-mcq", 300, Task.MCQ),
        ("tiny-rubric", 300, Task.RUBRIC),
    ],
)
def test_the_built_in_sets_are_those_of_the_command_line(name: str, n: int, task: Task) -> None:
    items = builtin_items(name)
    assert (items.name, len(items), items.task) == (name, n, task)
    assert builtin_items(name).fingerprint == items.fingerprint
    trained = builtin_items(f"{name}-train")
    assert trained.name == f"{name}-train"
    # chance repeats of four common nouns
    assert len(set(map(contents, items)) & set(map(contents, trained))) <= len(trained) // 200
    with pytest.raises(UnknownNameError, match=f"Did you mean '{name}'"):
        builtin_items(f"{name[:-2]}{name[-1]}{name[-2]}")


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_built_in_items_are_valid_and_use_known_words_only(name: str) -> None:
    kind = FORMATS[judge_of(name).removeprefix("tiny/")]
    for item in builtin_items(name):
        check_item(item)
        texts = (str(item.prompt), item.response or "", *map(str, item.candidates))
        assert set(" ".join(texts).split()) <= set(kind.vocabulary)
        assert item.task in kind.tasks
    assert sorted(SETS) == sorted(BUILT_IN)


def test_gold_is_the_candidate_of_higher_true_worth() -> None:
    for item in judge_items(200):
        values = [true_worth(str(candidate)) for candidate in item.candidates]
        assert item.gold == int(np.argmax(values))
        assert item.meta["utility"] == pytest.approx(values)
        assert item.group == item.prompt
    for item in mcq_items(100):
        sizes = [NOUNS.index(str(candidate)) for candidate in item.candidates]
        assert item.gold == int(np.argmax(sizes))
        assert len(set(sizes)) == 4
        second, largest = sorted(sizes)[-2:]
        assert (item.group == "close sizes") == (largest - second <= 4)


def test_human_scores_are_quality_with_noise_of_two_raters() -> None:
    items = rubric_items(2000)
    for item in items[:100]:
        assert (item.candidates, item.values) == (LEVELS, (1, 2, 3, 4, 5))
        assert item.meta["quality"] == pytest.approx(3 + 1.25 * true_worth(str(item.response)))
        assert item.group == item.prompt
    scores = np.array([item.human_score() for item in items])
    quality = np.clip([item.meta["quality"] for item in items], 1, 5)
    assert set(scores) == set(np.arange(1, 5.5, 0.5))
    assert 0.3 < np.mean([not item.gold_candidates() for item in items]) < 0.6
    inside = (quality > 2) & (quality < 4)  # the ends of the scale cut noise off
    # a mean of two, each with noise of .5 and rounding of 1/sqrt(12): sqrt((.25 + 1/12) / 2)
    assert (scores - quality)[inside].std() == pytest.approx(0.408, abs=0.03)
    assert abs((scores - quality)[inside].mean()) < 0.05
    assert min(np.bincount(np.rint(quality).astype(int))[1:]) > 200


def different_candidates(item: Item) -> frozenset[tuple[str, ...]]:
    """The candidates, words in whatever order."""
    return frozenset(tuple(sorted(str(text).split())) for text in item.candidates)


def contents(item: Item) -> tuple[object, ...]:
    scored = tuple(sorted((item.response or "").split()))
    return item.prompt, scored, different_candidates(item)


@pytest.mark.parametrize("make", MAKERS)
def test_no_item_occurs_twice_in_whatever_order(make: Maker) -> None:
    items = make(3000)
    assert len({contents(item) for item in items}) == 3000
    assert all(len(different_candidates(item)) == item.n for item in items)


def test_another_seed_draws_fresh_items() -> None:
    built_in, fresh = judge_items(1000), judge_items(1000, seed=5)
    assert set(map(contents, built_in)).isdisjoint(map(contents, fresh))
    assert {item.id for item in built_in}.isdisjoint(item.id for item in fresh)


@pytest.mark.parametrize("make", MAKERS)
def test_a_smaller_set_is_the_beginning_of_a_larger_one(make: Maker) -> None:
    assert make(30).items == make(1200).items[:30]
    with pytest.raises(UsageError, match="at least 1"):
        make(0)


def test_more_questions_than_exist_are_refused() -> None:
    with pytest.raises(UsageError, match="tiny-mcq-5: 50001 items asked for; 50000 different"):
        mcq_items(50_001, seed=5)


def test_margins_are_a_continuum_with_near_ties() -> None:
    gaps = np.array([abs(np.subtract(*item.meta["utility"])) for item in judge_items()])
    shares = np.histogram(gaps, bins=[0, 0.25, 0.5, 1, 2, 10])[0] / len(gaps)
    assert (shares > 0.05).all()
