"""Two runs compared in pairs."""

import pytest

from unswayed.auditing.comparison import SingleCalls, changes

SWAP = ((0, 1), (1, 0))
OWN = ((0, 1), (0, 1))


def answers(choices: dict[str, tuple[int, int]], gold: int = 0) -> SingleCalls:
    return SingleCalls(
        label_set=("A", "B"),
        orders=SWAP,
        labels=OWN,
        item_ids=tuple(choices),
        choices=tuple(choices.values()),
        gold=((gold,),) * len(choices),
        gold_kind=(1,) * len(choices),
        permutable=(True,) * len(choices),
    )


def test_differences_are_of_shared_items_in_any_order() -> None:
    before = {"a": (0, 1), "b": (0, 1), "c": (0, 0), "d": (1, 1), "only-before": (1, 1)}
    after = {"d": (0, 0), "c": (0, 0), "b": (0, 0), "a": (0, 1), "only-after": (0, 0)}
    found = changes([answers(before)], [answers(after)], resamples=200)
    # shared a, b, c, d. Accuracy before (.5, .5, 1, 0) = .5, after (.5, 1, 1, 1) = .875.
    assert found["accuracy_fractional"].value == pytest.approx(0.375)
    # consistent before: c, d; after: b, c, d.
    assert found["consistency"].value == pytest.approx(0.25)
    assert found["accuracy_fractional"].n == 4


def test_runs_without_common_items_or_presentations_are_refused() -> None:
    one = answers({"a": (0, 1)})
    assert changes([one], [answers({"b": (0, 1)})]) == {}
    other = SingleCalls("AB", SWAP[::-1], OWN, ("a",), ((0, 1),), ((0,),), (1,), (True,))
    assert changes([one], [other]) == {}


def test_runs_with_other_label_symbols_are_compared() -> None:
    other = SingleCalls(
        "01", SWAP, OWN, ("a", "b"), ((0, 1), (0, 0)), ((0,),) * 2, (1,) * 2, (True,) * 2
    )
    found = changes([answers({"a": (0, 0), "b": (0, 0)})], [other], resamples=100)
    assert found["consistency"].value == -0.5


def test_what_two_candidates_define_is_not_compared_for_three() -> None:
    turned = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    run = SingleCalls("ABC", turned, turned[:1] * 3, ("a",), ((0, 1, 1),), ((0,),), (1,), (True,))
    found = changes([run], [run])
    assert "consistency" in found
    assert "recall_difference" not in found


def test_the_same_run_twice_differs_by_nothing() -> None:
    run = answers({str(k): (0, k % 2) for k in range(40)})
    found = changes([run], [run], resamples=200)
    assert {estimate.value for estimate in found.values()} == {0.0}


def test_compared_items_are_sorted_so_that_resamples_repeat() -> None:
    run = answers(dict.fromkeys("dbace", (0, 1)))
    assert run.outcomes(
        frozenset("abcde"), dict(zip("abcde", "abcde", strict=True))
    ).item_ids == tuple("abcde")
