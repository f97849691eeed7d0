"""Methods by name, and what `--methods all` means."""

from __future__ import annotations

import pytest

import unswayed.methods
from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.methods import METHODS
from unswayed.methods.content_free import Contextual
from unswayed.methods.names import default_methods, parameters, parse_method, spec_name
from unswayed.methods.over_orders import Vote
from unswayed.methods.pride import PriDe
from unswayed.methods.protocol import Method, why_not
from unswayed.model.decisions import Evidence
from unswayed.model.items import Task


def test_parameters_are_converted_and_checked() -> None:
    assert parse_method("pride:prior=group:resamples=0") == PriDe(prior="group", resamples=0)
    assert parse_method("vote:orders=random:8:layouts=all") == Vote(
        orders="random:8", layouts="all"
    )
    assert parse_method("contextual:strings=N/A+[MASK]:per_item=true") == Contextual(
        strings=("N/A", "[MASK]"), per_item=True
    )
    assert parse_method("calibraeval:weight=0.25").weight == 0.25  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("prde", UnknownNameError, "Did you mean 'pride'"),
        ("pride:piror=group", UsageError, "unknown parameter 'piror'. Did you mean 'prior'"),
        ("pride:prior=groups", UsageError, "prior cannot be 'groups'. Did you mean 'group'"),
        ("pride:resamples=many", UsageError, "resamples=many: Expected `int`"),
        ("pride:priors=1", UsageError, "unknown parameter 'priors'"),
        ("pride:prior", UsageError, "give prior a value, such as prior=global"),
        ("pride:prior=", UsageError, "give prior a value"),
        ("pride:seed=1:seed=2", UsageError, "seed is given twice"),
        ("direct:orders=swap", UsageError, "direct has no parameters"),
        ("contextual:per_item=maybe", UsageError, "per_item=maybe"),
        (
            "contextual:per_item=true,strings=N/A",
            UsageError,
            "with colons: contextual:per_item=true:strings=N/A.",
        ),
        ("strings=N/A", UsageError, "with colons: contextual:per_item=true:strings=N/A."),
        ("repeat:samples=0", UsageError, "at least 1"),
    ],
)
def test_mistakes_get_a_clear_message(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        parse_method(text)
    assert message in str(caught.value)


def test_the_display_name_shows_what_is_not_the_default() -> None:
    assert spec_name(PriDe()) == "pride"
    assert spec_name(PriDe(prior="group")) == "pride:prior=group"
    assert spec_name(PriDe(priors=())) == "pride"
    assert spec_name(Contextual(strings=("N/A",), per_item=True)) == (
        "contextual:strings=N/A:per_item=true"
    )


def test_learned_values_are_not_parameters() -> None:
    assert set(parameters(PriDe)) == {"prior", "mean", "resamples", "seed"}


CHOICE = frozenset({Evidence.CHOICE})


def names(methods: tuple[Method, ...]) -> list[str]:
    return [spec_name(method) for method in methods]


def test_all_means_every_applicable_method_and_useful_variants() -> None:
    pairwise = names(default_methods(Task.PAIRWISE, {2}, groups=True))
    assert pairwise[0] == "direct"
    assert {"cell-median", "pride", "pride:prior=group", "average:layouts=all"} <= set(pairwise)
    assert not {"apoc", "batch"} & set(pairwise)  # off by default
    assert "pride:prior=group" not in names(default_methods(Task.PAIRWISE, {2}))
    options = names(default_methods(Task.MCQ, {4, 5}))
    assert "cell-median" not in options
    assert "additive" in options
    words = [
        spec_name(method)
        for method in default_methods(Task.PAIRWISE, {2})
        if why_not(method, task=Task.PAIRWISE, n=2, gives=CHOICE) is None
    ]
    assert words == ["direct", "canonical", "repeat", "debias-prompt", "sequential", "vote"]
    levels = set(names(default_methods(Task.RUBRIC, {5})))
    assert {"balanced-rubric", "bias-cost", "repeat-score", "average", "vote"} <= levels
    assert not {"balanced-rubric", "bias-cost", "repeat-score"} & {*pairwise, *options}


def test_the_reason_why_a_method_does_not_apply_is_given() -> None:
    median, average = METHODS.load("cell-median")(), METHODS.load("average")()
    assert why_not(median, task=Task.MCQ, n=4) == "it needs 2 candidates, got 4"
    assert why_not(average, task=Task.PAIRWISE, n=2, gives=CHOICE) == (
        "it needs label probabilities, and these answers have none"
    )
    assert why_not(average, task=Task.RUBRIC, n=5) is None
    assert why_not(average, task=Task.LISTWISE, n=4) is None  # the mean score instead
    pride = METHODS.load("pride")()
    assert why_not(pride, task=Task.LISTWISE, n=4) == (
        "it needs label probabilities, and these answers have none"
    )
    assert why_not(median, task=Task.PAIRWISE, n=2) is None
    assert why_not(average, task=Task.MCQ, n=200) == (  # it learns nothing, and still cannot ask
        "orders 'cyclic' support at most 128 candidates, got 200. Remove items with more, or give them "
        "fewer candidates"
    )


def test_classes_are_reached_by_their_name() -> None:
    assert unswayed.methods.PriDe is PriDe
    with pytest.raises(AttributeError, match="Pride"):
        _ = unswayed.methods.Pride
