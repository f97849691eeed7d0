"""PriDe: the worked example, strata, intervals, and what it must refuse."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_judges import FOUR, choices_options, decision, pairs, table_of

from unswayed.base.errors import MethodError, NeedsLogprobs
from unswayed.methods.additive import Additive
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.pride import PriDe, item_priors
from unswayed.methods.protocol import Method
from unswayed.model.items import Item
from unswayed.model.presentation import X0, X1, X2, X3, Ask, presentations

PAIR = (X0, X2)


def quiet_fit(method: PriDe, tables) -> PriDe:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        return method.fit_tables(tables)


def test_the_worked_example() -> None:
    # label rows X0 (.8, .2), X2 (.6, .4); in X2 candidate 1 carries A
    table = table_of(np.array([[[0.8, 0.2], [0.4, 0.6]]]), PAIR)
    fitted = quiet_fit(PriDe(), {2: table})
    assert fitted.priors[0].values == pytest.approx((0.7101, 0.2899), abs=5e-5)
    seen = fitted.decide_table(table_of(np.array([[[0.6, 0.4]]]), (X0,)))
    assert seen.scores[0] == pytest.approx((0.3798, 0.6202), abs=5e-5)
    assert seen.choices[0] == 1


def loop_prior(probs: np.ndarray, shown) -> np.ndarray:
    """The released computation, one item and one permutation at a time."""
    per_item = []
    for item in probs:
        rows = [
            np.log(row[[shape.candidate_of_label(label) for label in range(len(row))]] + 1e-10)
            for row, shape in zip(item, shown, strict=True)
        ]
        mean = np.mean(rows, axis=0)
        per_item.append(np.exp(mean) / np.exp(mean).sum())
    return np.mean(per_item, axis=0)


@given(n=st.integers(2, 5), seed=st.integers(0, 10**6))
def test_the_vectorised_prior_is_that_of_the_loop(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shown = presentations("cyclic", n)
    probs = rng.dirichlet(np.ones(n), size=(30, n))
    fitted = quiet_fit(PriDe(resamples=0), {n: table_of(probs, shown)})
    np.testing.assert_allclose(fitted.priors[0].values, loop_prior(probs, shown), atol=1e-12)


def test_arithmetic_and_geometric_priors_differ_by_little() -> None:
    table = pairs(2000).table.select([Ask(X0), Ask(X2)])
    values = [
        quiet_fit(PriDe(mean=mean, resamples=0), {2: table}).priors[0].values[0]  # type: ignore[index]
        for mean in ("arithmetic", "geometric")
    ]
    assert values[0] == pytest.approx(values[1], abs=0.01)
    assert values[0] != values[1]


def test_the_interval_covers_the_planted_prior_and_narrows() -> None:
    wide = quiet_fit(PriDe(), {2: pairs(60).table.select([Ask(X0), Ask(X2)])}).priors
    narrow = quiet_fit(PriDe(), {2: pairs(1000).table.select([Ask(X0), Ask(X2)])}).priors
    planted = 1 / (1 + np.exp(-1.0))  # label .4 + first .6
    # the arithmetic mean of noisy priors is pulled towards 1/2 by less than .005
    assert narrow[0].low[0] - 0.005 < planted < narrow[0].high[0] + 0.005
    assert narrow[0].high[0] - narrow[0].low[0] < (wide[0].high[0] - wide[0].low[0]) / 3


def test_a_coupled_prior_needs_its_own_label_sequence() -> None:
    sim = pairs(200)
    fitted = PriDe().fit_tables({2: sim.table.select([Ask(X0), Ask(X2)])})
    assert fitted.threshold(X0) == fitted.threshold(X2) != 0.5
    assert fitted.threshold(X1) is fitted.threshold(X3) is None
    with pytest.warns(MethodWarning, match="no prior was estimated for 2 candidates labelled B A"):
        seen = fitted.decide_table(sim.table.select(fitted.asks(2), through=X3))
    np.testing.assert_array_equal(seen.choices, sim.table.choices[:, 3])


def test_small_groups_share_the_global_prior() -> None:
    left, right = pairs(100, label=1.5, slot=0, seed=1), pairs(100, label=-1.5, slot=0, seed=2)
    probs = np.concatenate([left.table.probs, right.table.probs[:3]])
    groups = ["plus"] * 100 + ["few"] * 3
    table = table_of(probs, (X0, X1, X2, X3), groups).select([Ask(X0), Ask(X2)])
    with pytest.warns(MethodWarning, match=r"few \(3\)"):
        fitted = PriDe(prior="group").fit_tables({2: table})
    assert fitted.priors is not None
    assert {prior.group for prior in fitted.priors} == {None, "plus"}
    judged = table_of(np.full((3, 1, 2), 0.5), (X0,), ["plus", "few", "unknown"])
    scores = fitted.decide_table(judged).scores
    assert scores[0, 0] < scores[1, 0] == scores[2, 0]


def test_items_of_different_sizes_are_strata() -> None:
    shown = presentations("cyclic", 4)
    four = choices_options(
        60, 4, shown, positions=(0.9, 0.3, -0.4, -0.8), labels=(0, 0, 0, 0)
    ).table
    two = pairs(60).table.select([Ask(X0), Ask(X2)])
    fitted = PriDe().fit_tables({2: two, 4: four})
    assert fitted.priors is not None
    assert [(prior.n, len(prior.values)) for prior in fitted.priors] == [(2, 2), (4, 4)]
    three = table_of(np.array([[[0.2, 0.3, 0.5]]]), presentations("identity", 3))
    with pytest.warns(MethodWarning, match="3 candidates"):
        assert fitted.decide_table(three).choices[0] == 2


@pytest.mark.parametrize(("method", "shown"), [(PriDe(), PAIR), (Additive(), FOUR)])
def test_few_estimation_items_are_warned_about(method: Method, shown) -> None:
    few, enough = (pairs(count).table.select(list(map(Ask, shown))) for count in (19, 20))
    with pytest.warns(MethodWarning, match="only 19 estimation questions"):
        method.fit_tables({2: few})
    with warnings.catch_warnings():
        warnings.simplefilter("error", MethodWarning)
        method.fit_tables({2: enough})


def test_items_that_lack_probabilities_are_left_out() -> None:
    table = pairs(40).table.select([Ask(X0), Ask(X2)])
    table.probs[:10, 1] = np.nan
    fitted = PriDe(resamples=0).fit_tables({2: table})
    rest = PriDe(resamples=0).fit_tables({2: table.rows(np.arange(10, 40))})
    assert fitted.priors == rest.priors
    assert fitted.priors[0].count == 30


def test_deciding_before_fitting_is_an_error() -> None:
    with pytest.raises(MethodError, match="pride has not been fitted"):
        PriDe().decide_table(pairs(1).table.select([Ask(X0)]))


def test_recorded_decisions_alone_are_enough() -> None:
    decisions = [decision(f"q{i}", shape, p_a=0.7) for i in range(20) for shape in PAIR]
    items = [Item(id=f"q{i}", prompt="?", candidates=("a", "b")) for i in range(20)]
    assert PriDe().fit(decisions) == PriDe().fit(items, decisions)
    with pytest.raises(MethodError, match="fit needs the decisions"):
        PriDe().fit(items)


def test_decisions_without_probabilities_are_refused() -> None:
    decisions = [decision(f"q{i}", shape) for i in range(20) for shape in PAIR]
    with pytest.raises(NeedsLogprobs, match="pride needs label probabilities"):
        PriDe().fit(decisions)


def test_only_the_planned_questions_are_read() -> None:
    items = [Item(id=f"q{i}", prompt="?", candidates=("a", "b")) for i in range(20)]
    planned = [decision(item.id, shape, p_a=0.7) for item in items for shape in PAIR]
    others = [decision(item.id, shape, p_a=0.1) for item in items for shape in (X1, X3)]
    others += [decision("stranger", X0, p_a=0.1)]
    assert PriDe().fit(items, [*others, *planned]) == PriDe().fit(items, planned)


def test_an_items_prior_has_no_content_left() -> None:
    # noise-free judge: bias .4 + .6 on the label that stands first, any content
    table = pairs(50, noise=0.0).table.select([Ask(X0), Ask(X2)])
    logs = item_priors(table, (0, 1))
    np.testing.assert_allclose(logs[:, 0] - logs[:, 1], 1.0, atol=1e-6)
