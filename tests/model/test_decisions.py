"""Decisions as columns, seen through views, and the one tie rule."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unswayed.base.errors import ItemError, ShapeError
from unswayed.methods.names import parse_method
from unswayed.model.decisions import (
    MISSING,
    TIE,
    UNPARSED,
    Decision,
    DecisionTable,
    argmax_by_tie_rule,
    check_decision,
    record,
    tie_rank,
)
from unswayed.model.items import Item, Task
from unswayed.model.permutations import invert
from unswayed.model.presentation import (
    X0,
    X1,
    X2,
    Ask,
    Presentation,
    askable,
    canonical,
    presentations,
    view,
)

ABCD = ("A", "B", "C", "D")


def item(n: int = 2, name: str = "q") -> Item:
    task = Task.PAIRWISE if n == 2 else Task.MCQ
    return Item(
        id=name, prompt="p", candidates=tuple(f"text {c}" for c in range(n)), task=task, gold=0
    )


def decision(
    shown: Presentation, choice: object, probs: object = None, name: str = "q"
) -> Decision:
    symbols = ABCD[: shown.n]
    return Decision(
        item_id=name,
        order=shown.order,
        labels=shown.symbols(symbols),
        label_set=symbols,
        choice=choice,  # type: ignore[arg-type]
        probs=probs,  # type: ignore[arg-type]
    )


def test_choices_become_codes_and_absent_calls_are_missing() -> None:
    items = [item(name="a"), item(name="b")]
    made = [
        decision(X0, 1, (0.2, 0.8), "a"),
        decision(X2, "tie", None, "a"),
        decision(X0, None, None, "b"),
    ]
    table = DecisionTable.of(items, made)
    assert table.choices.tolist() == [[1, TIE], [UNPARSED, MISSING]]
    assert table.probs is not None
    assert table.probs[0, 0].tolist() == [0.2, 0.8]
    assert np.isnan(table.probs[1]).all()


def test_the_last_decision_for_a_question_wins_whole() -> None:
    made = [decision(X0, 0, (0.9, 0.1)), decision(X0, 1), decision(X2, 0, (0.6, 0.4))]
    table = DecisionTable.of([item()], made)
    assert table.choices.tolist() == [[1, 0]]
    assert table.probs is not None
    assert np.isnan(table.probs[0, 0]).all()
    assert table.items[0].gold is None  # it is blind
    # a question that was never asked is a column of missing
    assert table.select([Ask(X1), Ask(X0)]).choices.tolist() == [[MISSING, 1]]


def test_through_the_bcda_view_candidates_are_those_of_the_view() -> None:
    # Seen through BCDA, candidate 0 is the item's candidate 1. Asked in its own order, the item is
    # really shown as BCDA; the judge picks the item's candidate 0, which the view calls 3.
    bcda = Presentation((1, 2, 3, 0), (0, 1, 2, 3))
    table = DecisionTable.of([item(4)], [decision(bcda, 0, (0.7, 0.1, 0.2, 0.0))])
    seen = table.select([Ask(canonical(4))], through=bcda)
    assert seen.choices.tolist() == [[3]]
    assert seen.probs is not None
    assert seen.probs[0, 0].tolist() == [0.1, 0.2, 0.0, 0.7]
    assert seen.shown == (bcda,)
    assert seen.asks == (Ask(canonical(4)),)


@settings(max_examples=40)
@given(st.integers(2, 4), st.integers(0, 1000))
def test_a_view_of_a_view_is_their_composition(n: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    everything = presentations("full", n)
    made = [
        decision(p, int(generator.integers(n)), tuple(generator.dirichlet(np.ones(n))))
        for p in everything
    ]
    table = DecisionTable.of([item(n)], made)
    outer, inner = (everything[generator.integers(len(everything))] for _ in range(2))
    asks = [Ask(p) for p in everything]
    twice = table.select(asks, through=outer).select(asks, through=inner)
    once = table.select(asks, through=view(outer, inner))
    assert twice.choices.tolist() == once.choices.tolist()
    assert twice.probs is not None
    assert once.probs is not None
    assert twice.probs.tolist() == once.probs.tolist()
    assert twice.shown == once.shown
    rows = np.array([0])
    assert twice.tie_ranks(rows).tolist() == once.tie_ranks(rows).tolist()
    expected = [tie_rank(item(n))[c] for c in view(outer, inner).order]
    assert once.tie_ranks(rows)[0].tolist() == expected


def test_what_is_allowed_is_what_is_askable() -> None:
    free, fixed = item(4, "free"), msgspec.structs.replace(item(4, "fixed"), permutable=False)
    asks = (
        *map(Ask, presentations("cyclic", 4)),
        *map(Ask, presentations("cyclic", 4, protocol="label")),
        Ask(canonical(4), sample=1),
    )
    table = DecisionTable.of([free, fixed], [], asks=tuple(dict.fromkeys(asks)))
    for row, one in enumerate((free, fixed)):
        assert [
            ask for ask, allowed in zip(table.asks, table.allowed[row], strict=True) if allowed
        ] == list(askable(one, table.asks))
    away = Presentation((1, 2, 3, 0), (0, 1, 2, 3))
    assert table.select([Ask(canonical(4))], through=away).allowed.tolist() == [[True], [False]]
    content = Ask(canonical(4), arranged="content")
    assert table.select([content], through=away).allowed.all()


@settings(max_examples=40)
@given(st.integers(2, 4), st.integers(0, 1000))
def test_verdicts_of_a_view_map_back_to_the_item(n: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    outer = presentations("full", n)[generator.integers(len(presentations("full", n)))]
    probs = tuple(generator.dirichlet(np.ones(n)))
    table = DecisionTable.of([item(n)], [decision(outer, int(np.argmax(probs)), probs)])
    direct = parse_method("direct")
    seen = direct.decide_table(table.select(direct.asks(n), through=outer))
    assert seen.choices[0] == outer.position_of_candidate(int(np.argmax(probs)))
    own = seen.renumbered(invert(outer.order))
    assert own.choices.tolist() == [int(np.argmax(probs))]
    assert own.scores is not None
    assert own.scores[0].tolist() == list(probs)
    tie = replace(seen, choices=np.array([TIE], np.int16), tied=np.arange(n)[None] == 0)
    back = tie.renumbered(invert(outer.order))
    assert back.choices.tolist() == [TIE]
    assert np.flatnonzero(back.tied[0]).tolist() == [outer.order[0]]


def test_other_sizes_or_label_sets_do_not_share_a_table() -> None:
    with pytest.raises(ShapeError, match="same number of candidates"):
        DecisionTable.of([item(2), item(3, "r")], [])
    other = Decision(item_id="q", order=(0, 1), labels=("X", "Y"), label_set=("X", "Y"), choice=0)
    with pytest.raises(ShapeError, match="label set"):
        DecisionTable.of([item()], [decision(X2, 0), other])
    outside = [msgspec.structs.replace(other, label_set=("A", "B"))]
    with pytest.raises(ShapeError, match="must be the 2 symbols of label_set"):
        DecisionTable.of([item()], outside)
    with pytest.raises(ShapeError, match="must be the 2 symbols of label_set"):
        DecisionTable.of_recording([item()], record(outside))


def test_the_tie_rule_follows_the_text_beside_an_empty_one() -> None:
    for name in map(str, range(50)):
        one = Item(id=name, prompt="p", candidates=("alpha", ""))
        two = Item(id=name, prompt="p", candidates=("", "alpha"))
        assert tie_rank(one) == tie_rank(two)[::-1]


def test_the_tie_rule_follows_the_text_and_favours_no_place() -> None:
    one = Item(id="q", prompt="p", candidates=("alpha", "beta", "gamma"), task=Task.MCQ)
    two = Item(id="q", prompt="p", candidates=("gamma", "alpha", "beta"), task=Task.MCQ)
    by_text = dict(zip(one.candidates, tie_rank(one), strict=True))
    assert by_text == dict(zip(two.candidates, tie_rank(two), strict=True))
    for texts in (("x", "y"), ("", "")):  # without text the index is hashed
        items = [Item(id=str(k), prompt="p", candidates=texts) for k in range(400)]
        wins = sum(tie_rank(own)[0] == 0 for own in items)
        assert 160 <= wins <= 240  # 4 standard deviations around 200


def test_argmax_breaks_ties_by_rule_and_keeps_unknown_rows() -> None:
    table = DecisionTable.of([item(name=str(k)) for k in range(3)], [])
    scores = np.array([[0.5, 0.5], [0.1, 0.9], [np.nan, 1.0]])
    expected = tie_rank(item(name="0")).index(0)
    assert argmax_by_tie_rule(scores, table).tolist() == [expected, 1, UNPARSED]


BROKEN = [
    ({"order": (0, 0)}, "not a permutation"),
    ({"labels": ("A", "C")}, "labels"),
    ({"choice": 2}, "choice: 2 is out of range"),
    ({"probs": (1.0,)}, "probs: 1 values for 2 candidates"),
    ({"probs": (0.9, 0.9)}, "not probabilities"),
    ({"scores": (1e308, 1.0)}, r"scores: .* are not all numbers below 1e\+15"),
    ({"label_mass": 1e308}, r"label_mass: 1e\+308 is not a share"),
    ({"label_mass": -1.0}, "label_mass: -1.0 is not a share"),
    ({"sample": -5}, "-5 is not a count"),
    ({"sample": 2**63}, "is not a count"),
    ({"input_tokens": 2**64}, "is not a count"),
    ({"output_tokens": -1}, "-1 is not a count"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN)
def test_a_broken_decision_names_item_and_field(change: dict[str, object], message: str) -> None:
    broken = msgspec.structs.replace(decision(X0, 0, name="q9"), **change)
    with pytest.raises(ItemError, match=message) as caught:
        check_decision(broken)
    assert str(caught.value).startswith("q9: ")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (("B", "A"), ("A", "B")),
        (("C", "A", "B"), ("A", "B", "C")),
        (("2", "3", "1"), ("1", "2", "3")),
        (tuple(str(n) for n in range(12, 0, -1)), tuple(str(n) for n in range(1, 13))),
    ],
)
def test_a_label_set_that_was_left_out_is_the_canonical_order(
    labels: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    order = tuple(range(len(labels)))
    decision = Decision(item_id="q", order=order, labels=labels, choice=0)
    assert decision.label_set == expected
    line = msgspec.json.encode({"item_id": "q", "order": order, "labels": labels, "choice": 0})
    assert msgspec.json.decode(line, type=Decision) == decision


@pytest.mark.parametrize("labels", [("X", "Y"), ("B", "C"), ("a", "b"), ("A", "A"), ()])
def test_other_labels_need_their_label_set(labels: tuple[str, ...]) -> None:
    with pytest.raises(ShapeError, match="label_set: give it"):
        Decision(item_id="q", order=tuple(range(len(labels))), labels=labels)
