"""Top-k log-probabilities -> label probabilities, worked by hand."""

import gzip
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import needs
from unswayed.model.calls import TokenLogprob
from unswayed.model.parsing import label_probs
from unswayed.model.parsing.symbols import symbols_of

AB = symbols_of(("A", "B"))


def tops(probabilities: dict[str, float]) -> list[TokenLogprob]:
    return [TokenLogprob(token, math.log(p)) for token, p in probabilities.items()]


def test_variants_of_a_token_are_summed_and_the_rest_is_left_out() -> None:
    found = label_probs(tops({"A": 0.4, " A": 0.1, "A.": 0.1, "B": 0.2, "The": 0.1}), AB)
    # A .6, B .2, mass .8 -> .75, .25
    assert found.probs == pytest.approx((0.75, 0.25))
    assert found.mass == pytest.approx(0.8)
    assert not found.censored


@pytest.mark.parametrize(
    "token",
    ["A", " A", "\nA", "▁A", "ĠA", "ĊA", "a", " a", "A.", "A)", "(A", "**A", "A**", '"A', "[[A", "A\n",
     "A:", "\uff21"],
)  # fmt: skip
def test_every_way_of_writing_a_label_counts_for_it(token: str) -> None:
    found = label_probs(tops({token: 0.5, "B": 0.25}), AB)
    assert found.probs == pytest.approx((2 / 3, 1 / 3))


@pytest.mark.parametrize(
    "token", ["Answer", "An", "AB", "A's", "A+", "-A", "\u0410", "The", "", " ", "1", "Both"]
)
def test_other_tokens_count_for_no_label(token: str) -> None:
    found = label_probs(tops({token: 0.5, "B": 0.25, "A": 0.2}), AB)
    assert found.mass == pytest.approx(0.45)


def test_a_missing_label_gets_the_least_probability_and_a_flag() -> None:
    found = label_probs(tops({"A": 0.6, "The": 0.2, "It": 0.1}), AB)
    # B's floor is .1 (the smallest returned): .6/.7 and .1/.7; the floor is not part of the mass
    assert found.probs == pytest.approx((6 / 7, 1 / 7))
    assert found.mass == pytest.approx(0.6)
    assert found.censored


def test_a_missing_label_is_never_zero() -> None:
    found = label_probs([TokenLogprob("A", 0.0), TokenLogprob("x", -999.0)], AB)
    assert found.probs is not None
    assert 0 < found.probs[1] < 1e-200


@pytest.mark.parametrize("marker", [-math.inf, -9999.0])
def test_marker_for_missing_token_gives_no_probability(marker: float) -> None:
    found = label_probs([*tops({"A": 0.6, "C": 0.3}), TokenLogprob("B", marker)], AB)
    assert found.probs == pytest.approx((2 / 3, 1 / 3))
    assert found.censored


def test_a_single_returned_token_leaves_the_rest_to_the_other() -> None:
    # With one token the smallest returned is the label itself: .9 leaves at most .1 for B.
    for copies in (1, 2):
        found = label_probs([TokenLogprob("A", math.log(0.9))] * copies, AB)
        assert found.probs == pytest.approx((0.9, 0.1))
        assert found.censored


def test_no_label_in_the_list_gives_no_probabilities() -> None:
    found = label_probs(tops({"The": 0.9, "I": 0.1}), AB)
    assert (found.probs, found.mass, found.censored) == (None, 0.0, True)


@pytest.mark.parametrize(
    "given_top",
    [
        [],
        [TokenLogprob("A", math.nan)],
        [TokenLogprob("A", -math.inf)],
        [TokenLogprob("A", 3.2), TokenLogprob("B", 1.0)],  # logits, not log-probabilities
    ],
)
def test_invalid_distribution_gives_nothing(given_top: list[TokenLogprob]) -> None:
    assert label_probs(given_top, AB) == (None, 0.0, frozenset())


def test_rounding_above_zero_counts_as_certainty() -> None:
    found = label_probs([TokenLogprob("A", 1e-7), TokenLogprob("B", -20.0)], AB)
    assert found.mass == 1.0
    assert found.probs == pytest.approx((1.0, math.exp(-20)), rel=1e-6)


def test_nan_is_left_out_and_equal_entries_count_once() -> None:
    a, b = tops({"A": 0.6, "B": 0.2})
    found = label_probs([a, b, TokenLogprob(" A", math.nan)], AB)
    assert found.probs == pytest.approx((0.75, 0.25))
    assert label_probs([a, a, b], AB).mass == pytest.approx(0.8)
    assert label_probs([a, TokenLogprob("A", math.log(0.1)), b], AB).mass == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("listed", "labels"),
    [
        # case counts where labels differ only in case
        ({"m": 0.6, "M": 0.2, " M": 0.1}, ("m", "M")),
        # the beginning of a name counts for it, unless the name is one token
        ({"Al": 0.5, "Bob": 0.25, "B": 0.1}, ("Alice", "Bob")),
        ({"Alice": 0.5, "Al": 0.2, "Bob": 0.25}, ("Alice", "Bob")),
    ],
)
def test_names_and_case_have_rules_of_their_own(
    listed: dict[str, float], labels: tuple[str, str]
) -> None:
    assert label_probs(tops(listed), symbols_of(labels)).probs == pytest.approx((2 / 3, 1 / 3))


def test_a_beginning_that_labels_share_settles_nothing() -> None:
    assert (
        label_probs(tops({"Model": 0.9, "I": 0.1}), symbols_of(("Model X", "Model Y"))).probs
        is None
    )
    assert label_probs(tops({"1": 0.9, "2": 0.1}), symbols_of(("1", "2", "12"))).probs is None
    whole = label_probs(tops({"1": 0.5, "12": 0.25, "2": 0.25}), symbols_of(("1", "2", "12")))
    assert whole.probs == pytest.approx((0.5, 0.25, 0.25))  # 12 is one token, so 1 is 1


@pytest.mark.parametrize(
    ("logprobs", "probs"),
    [
        ((math.log(0.3), math.log(0.1)), (0.75, 0.25)),
        ((-0.1, -math.inf), (1.0, 0.0)),
        # exp(-2000) is 0 in float64, the ratio is not: 1/(1+1/e) = .7311
        ((-2000.0, -2001.0), (0.7310586, 0.2689414)),
    ],
)
@pytest.mark.parametrize("labels", [("A", "B"), ("1", "12")])
def test_exact_lists_are_taken_as_they_are(
    labels: tuple[str, str], logprobs: tuple[float, float], probs: tuple[float, float]
) -> None:
    found = label_probs(list(map(TokenLogprob, labels, logprobs)), symbols_of(labels), exact=True)
    assert found.probs == pytest.approx(probs)
    assert found.mass == pytest.approx(sum(map(math.exp, logprobs)))
    assert not found.censored


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["A", " A", "B", "b", "(B", "C", "The", "", "▁B"]),
            st.floats().map(lambda value: -abs(value)),
        ).map(lambda pair: TokenLogprob(*pair)),
        max_size=20,
    ),
)
def test_probabilities_sum_to_one_in_any_order(entries: list[TokenLogprob]) -> None:
    found = label_probs(entries, AB)
    assert 0.0 <= found.mass <= 1.0
    if found.probs is not None:
        assert sum(found.probs) == pytest.approx(1.0)
        assert min(found.probs) > 0.0
    turned = label_probs(entries[::-1], AB)
    assert turned.censored == found.censored
    assert turned.mass == pytest.approx(found.mass)
    assert (turned.probs is None) == (found.probs is None)
    if found.probs is not None:
        assert turned.probs == pytest.approx(found.probs)


@given(st.floats(0.01, 0.98), st.floats(0.01, 0.98))
def test_relabelling_the_tokens_relabels_the_probabilities(first: float, second: float) -> None:
    total = first + second + 0.01
    one = label_probs(tops({"A": first / total, "B": second / total}), AB)
    other = label_probs(tops({"B": first / total, "A": second / total}), AB)
    assert one.probs is not None
    assert other.probs == pytest.approx(one.probs[::-1])


@needs.recorded
def test_recorded_logprobs_give_the_recorded_preference() -> None:
    path = needs.DATA / "alpaca_eval" / "weighted_gpt4_turbo_vicuna-7b.jsonl.gz"
    compared = 0
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            entries = row["first_token_logprobs"]
            if not entries or row["preference"] is None:
                continue
            found = label_probs(
                [TokenLogprob(*entry) for entry in entries.items()], symbols_of(("m", "M"))
            )
            if found.probs is None or found.censored:
                continue
            # Recorded is 1 + the probability of the second output; which of m and M it carried
            # was drawn by lot and is not recorded.
            second = row["preference"] - 1
            assert min(abs(second - p) for p in found.probs) < 1e-5
            compared += 1
    assert compared > 700
