"""Label <-> position <-> candidate, and views."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.base.errors import ShapeError, UnknownNameError
from unswayed.model.items import Item
from unswayed.model.presentation import (
    X0,
    X1,
    X2,
    X3,
    Ask,
    Presentation,
    askable,
    canonical,
    label_symbols,
    presentations,
    view,
)


@st.composite
def pairs(draw: st.DrawFn, count: int = 1) -> list[Presentation]:
    n = draw(st.integers(2, 6))
    one = st.permutations(range(n)).map(tuple)
    return [Presentation(draw(one), draw(one)) for _ in range(count)]


def test_bcda_with_labels_at_positions() -> None:
    shown = Presentation((1, 2, 3, 0), (0, 1, 2, 3))  # A:b B:c C:d D:a
    assert shown.candidates_by_label() == (1, 2, 3, 0)
    assert shown.labels_by_candidate() == (3, 0, 1, 2)
    assert shown.candidate_of_label(0) == 1
    assert shown.label_of_candidate(0) == 3
    assert shown.position_of_candidate(0) == 3


def test_the_four_presentations_of_two_candidates() -> None:
    # (holder of A, whether A is shown first): a first, a second, b first, b second
    held = [(p.candidate_of_label(0), p.position_of_label(0)) for p in (X0, X1, X2, X3)]
    assert held == [(0, 0), (0, 1), (1, 0), (1, 1)]
    moved = [presentations("swap", 2, protocol=own)[1] for own in ("coupled", "label", "order")]
    assert moved == [X2, X3, X1]
    # views of them are the Klein four-group
    assert (view(X1, X2), view(X2, X2), view(X3, X1)) == (X3, X0, X2)


@given(pairs(3))
def test_views_compose(made: list[Presentation]) -> None:
    outer, middle, inner = made if len({p.n for p in made}) == 1 else [made[0]] * 3
    assert view(view(outer, middle), inner) == view(outer, view(middle, inner))
    assert view(canonical(outer.n), outer) == outer == view(outer, canonical(outer.n))


@given(pairs())
def test_every_conversion_agrees_with_what_is_displayed(made: list[Presentation]) -> None:
    (shown,) = made
    for position in range(shown.n):
        candidate, label = shown.order[position], shown.labels[position]
        assert shown.position_of_candidate(candidate) == position == shown.position_of_label(label)
        assert shown.candidate_of_label(label) == candidate
        assert shown.label_of_candidate(candidate) == label
        assert shown.candidates_by_label()[label] == candidate
        assert shown.labels_by_candidate()[candidate] == label


def test_graeco_latin_sets_begin_canonically() -> None:
    made = presentations("graeco-latin", 4)
    assert made[0].order == (0, 1, 2, 3)
    assert len({p.order for p in made}) == len({p.labels for p in made}) == 4


def test_labels_past_z_are_numbers() -> None:
    assert label_symbols(3) == ("A", "B", "C")
    ends = [(label_symbols(n)[0], label_symbols(n)[-1]) for n in (26, 27)]
    assert ends == [("A", "Z"), ("1", "27")]


def test_a_fixed_item_allows_only_its_own_order() -> None:
    free = Item(id="q", prompt="p", candidates=("b", "a"))
    fixed = msgspec.structs.replace(free, permutable=False)
    by_content = Ask(X0, arranged="content")
    asks = (Ask(X0), Ask(X2), Ask(X3), by_content)
    assert askable(free, asks[:3]) == asks[:3]
    assert askable(fixed, asks) == (Ask(X0),)  # sorted by content it stands as given: asked once
    assert len(askable(free, asks)) == 3
    assert askable(msgspec.structs.replace(free, candidates=("", "")), (by_content,)) == ()


def test_unknown_protocol_suggests_a_name() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'order'"):
        presentations("swap", 2, protocol="orders")  # type: ignore[arg-type]


@pytest.mark.parametrize("parts", [((0, 1), (0, 0)), ((0, 1, 2), (0, 1))])
def test_a_malformed_presentation_is_refused(parts: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ShapeError):
        Presentation(*parts).check()
