"""Cases that small slips in the methods would get wrong and that random judges do not show."""

import numpy as np
import pytest
from simulated_judges import table_of

from unswayed.methods.additive import Additive
from unswayed.methods.cell_median import CellMedian
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.over_orders import Average
from unswayed.methods.pride import PriDe
from unswayed.model.decisions import DecisionTable
from unswayed.model.items import Item
from unswayed.model.presentation import X0, X1, X2, X3, Ask


def test_a_fixed_item_is_averaged_over_its_own_order() -> None:
    # the call in the other order was recorded, and would turn the mean round: (.6 + .1) / 2 < .5
    item = Item(id="a", prompt="q", candidates=("x", "y"), permutable=False)
    table = DecisionTable(
        items=(item,),
        asks=(Ask(X0), Ask(X2)),
        shown=(X0, X2),
        label_set=("A", "B"),
        choices=np.array([[0, 1]], dtype=np.int16),
        probs=np.array([[[0.6, 0.4], [0.1, 0.9]]]),
    )
    verdicts = Average().decide_table(table)
    assert verdicts.choices.tolist() == [0]
    assert verdicts.confidence.tolist() == [0.6]
    assert verdicts.n_calls.tolist() == [1]
    seen_swapped = Average().decide_table(table.select(Average().asks(2), through=X2))
    assert seen_swapped.choices.tolist() == [1]  # candidate 0, as that view numbers it


@pytest.mark.parametrize(("size", "own"), [(4, False), (5, True)])
def test_a_prior_per_group_needs_five_items(*, size: int, own: bool) -> None:
    probs = np.tile(np.array([[0.8, 0.2], [0.2, 0.8]]), (20, 1, 1))
    table = table_of(probs, (X0, X2), ["g" if k < size else None for k in range(20)])
    with pytest.warns(MethodWarning, match="few estimation questions in some groups"):
        fitted = PriDe(prior="group", resamples=0).fit_tables({2: table})
    assert fitted.priors is not None
    assert [prior.count for prior in fitted.priors if prior.group == "g"] == [5] * own


def test_many_small_groups_are_counted() -> None:
    table = table_of(np.full((8, 2, 2), 0.5), (X0, X2), [f"g{k}" for k in range(8)])
    with pytest.warns(MethodWarning, match=r"groups: g0 \(1\), .* g4 \(1\) and 3 more\. Below"):
        PriDe(prior="group", resamples=0).fit_tables({2: table})


def with_bias(bias: np.ndarray) -> np.ndarray:
    """X0 and X2 of candidates that are worth the same: label A gets each item's bias in logits."""
    p = 1 / (1 + np.exp(-bias))
    return np.stack([np.stack([p, 1 - p], axis=1), np.stack([1 - p, p], axis=1)], axis=1)


@pytest.mark.parametrize("method", ["pride", "additive", "cell-median"])
def test_intervals_of_what_was_learned_are_of_95_percent(method: str) -> None:
    # the mean of 400 values has an interval of 1.96 standard errors to each side (90%: 1.64),
    # the median of normal values one that is sqrt(pi / 2) times as wide
    bias = np.random.default_rng(5).normal(0.3, 0.5, 400)
    table = table_of(with_bias(bias), (X0, X2))
    if method == "pride":
        prior = 1 / (1 + np.exp(-bias))
        found = (PriDe(resamples=2000).fit_tables({2: table}).priors or ())[0]
        assert found.low is not None
        assert found.high is not None
        low, high = found.low, found.high
        error = np.array([1, 1]) * prior.std(ddof=1) / 20
    elif method == "additive":
        with pytest.warns(MethodWarning, match="not separable"):
            effects = (
                Additive(design="coupled", resamples=2000).fit_tables({2: table}).effects or ()
            )[0]
        # only the sum of position and label is known; each carries half of half the log-odds
        low, high = effects.labels_low, effects.labels_high
        error = np.array([1, 1]) * bias.std(ddof=1) / 20 / 4
    else:
        found = (CellMedian().fit_tables({2: table}).priors or ())[0]
        assert found.low is not None
        assert found.high is not None
        low, high = found.low, found.high
        share = np.array(found.values)
        error = share * (1 - share) * bias.std(ddof=1) / 20 * np.sqrt(np.pi / 2)
    half = (np.array(high) - np.array(low)) / 2
    slack = 0.12 if method != "cell-median" else 0.35
    assert half / error == pytest.approx(np.array([1.96, 1.96]), rel=slack)


def test_additive_leaves_out_a_presentation_half_missing() -> None:
    both = with_bias(np.linspace(-1, 1, 40))
    probs = np.concatenate([both, both], axis=1)
    probs[20:, 3] = np.nan
    fitted = Additive(resamples=0).fit_tables({2: table_of(probs, (X0, X2, X1, X3))})
    assert fitted.effects[0].count == 40


def test_additive_medians_use_centred_log_probabilities() -> None:
    # log-odds a0 of A under X0 and a2 under X2 hold the item's bias (a0 + a2) / 2; half of it is
    # what A adds to its centred log-probability, and label and position share that evenly
    odds = np.random.default_rng(3).normal(0.5, 2.0, (31, 2))
    first = 1 / (1 + np.exp(-odds))  # P(A): candidate 0 under X0, candidate 1 under X2
    probs = np.stack(
        [
            np.stack([first[:, 0], 1 - first[:, 0]], axis=1),
            np.stack([1 - first[:, 1], first[:, 1]], axis=1),
        ],
        axis=1,
    )
    with pytest.warns(MethodWarning):
        fitted = Additive(design="coupled", centre="median", resamples=0).fit_tables(
            {2: table_of(probs, (X0, X2))}
        )
    (effects,) = fitted.effects or ()
    wanted = float(np.median(odds.sum(axis=1))) / 4
    assert effects.labels[0] + effects.positions[0] == pytest.approx(wanted, abs=1e-7)
