"""Outcomes: the join of decisions and gold, and what each item counts for."""

import msgspec
import numpy as np
import pytest
from metric_builders import SWAP, M, T, U, outcomes

from unswayed.base.errors import ShapeError
from unswayed.metrics import outcomes_from_decisions, outcomes_of
from unswayed.metrics.gold import GOLD_NONE, GOLD_ONE, GOLD_SEVERAL, GOLD_TIE
from unswayed.model.decisions import MISSING, Decision, DecisionTable
from unswayed.model.items import Item, Task
from unswayed.model.presentation import X2, Ask, Presentation


def pair(name: str, gold: object = 0, **fields: object) -> Item:
    return Item(id=name, prompt="p", candidates=("x", "y"), gold=gold, **fields)  # type: ignore[arg-type]


def decided(name: str, order: tuple[int, ...], choice: object, **fields: object) -> Decision:
    letters = tuple("ABCDE"[: len(order)])
    return Decision(
        item_id=name,
        order=order,
        labels=letters,
        label_set=letters,
        choice=choice,  # type: ignore[arg-type]
        **fields,  # type: ignore[arg-type]
    )


def test_gold_is_joined_by_id_and_its_kind_kept() -> None:
    gold = {"none": None, "one": 1, "both": (0, 1)}
    items = [*(pair(name, own) for name, own in gold.items()), pair("tie", "tie", group="g")]
    table = DecisionTable.of(items, [decided("tie", (0, 1), "tie")])
    made = outcomes_of(list(reversed(items)), table)
    assert made.item_ids == ("none", "one", "both", "tie")
    assert made.groups == (None, None, None, "g")
    assert made.gold_kind.tolist() == [GOLD_NONE, GOLD_ONE, GOLD_SEVERAL, GOLD_TIE]
    assert made.gold.tolist() == [[False, False], [False, True], [True, True], [False, False]]


def test_a_rubric_scores_the_value_of_the_chosen_level() -> None:
    levels = {"task": Task.RUBRIC, "response": "r", "values": (1.0, 5.0)}
    items = [pair("a", 3.5, **levels), pair("b", None, **levels), pair("c", 1)]
    table = DecisionTable.of(items[:2], [decided("a", (0, 1), 1), decided("b", (0, 1), None)])
    made = outcomes_of(items, table)
    assert made.human is not None
    assert made.score is not None
    np.testing.assert_array_equal(made.human, [3.5, np.nan])
    np.testing.assert_array_equal(made.score, [[5.0], [np.nan]])
    assert made.scored.tolist() == [[True], [False]]
    assert made.rows(np.array([0])).human == pytest.approx([3.5])
    # the index of a right candidate is no score
    assert outcomes_of(items[2:], DecisionTable.of(items[2:], [])).human is None


def test_an_item_that_was_decided_but_is_not_given_is_named() -> None:
    table = DecisionTable.of([pair("a"), pair("b")], [])
    with pytest.raises(ShapeError, match=r"^b: decided, but not among the items"):
        outcomes_of([pair("a")], table)


def test_a_table_seen_through_a_view_is_refused() -> None:
    table = DecisionTable.of([pair("a")], [decided("a", (1, 0), 0)])
    seen = table.select([Ask(X2)], through=X2)
    with pytest.raises(ShapeError, match="map its choices back"):
        outcomes_of([pair("a")], seen)


def test_a_wrong_shape_is_named() -> None:
    good = outcomes([[0, 0]])
    with pytest.raises(ShapeError, match=r"gold has shape \(1, 3\), expected \(1, 2\)"):
        type(good)(**{**good.__dict__, "gold": np.zeros((1, 3), dtype=np.bool_)})


def test_decisions_become_strata_by_number_of_candidates() -> None:
    items = [
        pair("p"),
        Item(id="m", prompt="p", candidates=("x", "y", "z"), task=Task.MCQ, gold=2),
    ]
    decisions = [
        decided("m", (1, 2, 0), 2),
        decided("p", (1, 0), 1),
        decided("p", (0, 1), 0),
        decided("p", (0, 1), 1, substitute=("N/A", "N/A")),  # content-free: no verdict on the item
    ]
    two, three = outcomes_from_decisions(items, decisions)
    assert [view.order for view in two.shown] == [(0, 1), (1, 0)]  # own order first
    assert two.choices.tolist() == [[0, 1]]
    assert three.choices.tolist() == [[2]]
    assert three.gold.tolist() == [[False, False, True]]


def test_a_fixed_item_keeps_its_own_order() -> None:
    items = [pair("free"), pair("fixed", permutable=False)]
    decisions = [
        decided(name, order, 0) for name in ("free", "fixed") for order in ((0, 1), (1, 0))
    ]
    (made,) = outcomes_from_decisions(items, decisions)
    assert made.choices.tolist() == [[0, 0], [0, MISSING]]
    assert made.complete.tolist() == [True, False]
    assert made.pooled.tolist() == [[True, True], [False, False]]


def test_a_fixed_item_keeps_its_own_labels() -> None:
    # "both A and B" names labels: an answer under the labels B, A is none about the item
    items = [pair("free"), pair("fixed", permutable=False)]
    decisions = [decided(name, (0, 1), 0) for name in ("free", "fixed")]
    swapped = [msgspec.structs.replace(one, labels=("B", "A")) for one in decisions]
    (made,) = outcomes_from_decisions(items, [*decisions, *swapped])
    assert made.choices.tolist() == [[0, 0], [0, MISSING]]


def test_choices_are_counted_by_candidate_with_ties_last() -> None:
    shown = (SWAP[0],) * 5
    made = outcomes([[0, 1, T, U, M]], shown=shown)
    assert made.choice_counts.tolist() == [[1, 1, 1]]


def test_positions_and_labels_use_the_inverse_of_the_order() -> None:
    # BCDA: candidate 0 stands last and, coupled, carries D. The inverse mistake would say B.
    bcda = Presentation((1, 2, 3, 0), (0, 1, 2, 3))
    made = outcomes([[0]], shown=[bcda])
    assert made.positions_by_candidate.tolist() == [[3, 0, 1, 2]]
    assert made.counts_by(made.positions_by_candidate).tolist() == [[0, 0, 0, 1]]
    assert made.counts_by(made.labels_by_candidate).tolist() == [[0, 0, 0, 1]]
    # order-only: labels are glued to the candidates, so candidate 0 is still A, in last place
    order_only = Presentation((1, 2, 3, 0), (1, 2, 3, 0))
    made = outcomes([[0]], shown=[order_only])
    assert made.counts_by(made.positions_by_candidate).tolist() == [[0, 0, 0, 1]]
    assert made.counts_by(made.labels_by_candidate).tolist() == [[1, 0, 0, 0]]
