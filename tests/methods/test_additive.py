"""Additive effects: recovery, separability, missing calls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_judges import FOUR, choices_options, pairs, table_of

from unswayed.methods.additive import Additive, design_presentations
from unswayed.methods.estimation import MethodWarning
from unswayed.model.presentation import X0, X1, X2, Ask

PLAIN = Additive(resamples=0)


@pytest.mark.parametrize(("label", "slot"), [(0.4, 0.6), (0.0, 1.2), (1.2, 0.0), (0.8, -0.8)])
def test_position_and_label_effects_are_recovered_together(label: float, slot: float) -> None:
    # logit P(A) = ... + label +- slot: label A's effect on log p is label / 2, the first slot's slot / 2
    fitted = PLAIN.fit_tables({2: pairs(1000, label=label, slot=slot).table})
    effects = fitted.effects[0]
    assert effects.separable
    assert 2 * effects.labels[0] == pytest.approx(label, abs=0.04)
    assert 2 * effects.positions[0] == pytest.approx(slot, abs=0.04)
    assert sum(effects.labels) == pytest.approx(0)
    assert sum(effects.positions) == pytest.approx(0)


def test_the_intervals_cover_what_was_planted() -> None:
    covered = 0
    for seed in range(40):
        fitted = Additive(resamples=200).fit_tables({2: pairs(60, seed=seed).table})
        effects = fitted.effects[0]
        covered += effects.labels_low[0] <= 0.2 <= effects.labels_high[0]
        covered += effects.positions_low[0] <= 0.3 <= effects.positions_high[0]
    assert covered >= 68  # 95% of 80 is 76; the bootstrap of 60 items is a little narrow


# Graeco-Latin sets of 3, 4 and 5; of 6 rotations with and without their labels
@pytest.mark.parametrize(("n", "count"), [(2, 4), (3, 3), (4, 4), (5, 5), (6, 11)])
def test_every_design_separates_positions_from_labels(n: int, count: int) -> None:
    shown = design_presentations(n, "decoupled")
    assert len(shown) == count
    sim = choices_options(
        40, n, shown, positions=np.linspace(1, -1, n), labels=np.linspace(-0.5, 0.5, n), noise=0.0
    )
    fitted = PLAIN.fit_tables({n: sim.table})
    assert fitted.effects[0].separable
    np.testing.assert_allclose(fitted.effects[0].positions, np.linspace(1, -1, n), atol=1e-6)
    np.testing.assert_allclose(fitted.effects[0].labels, np.linspace(-0.5, 0.5, n), atol=1e-6)


def test_coupled_presentations_are_not_separable_and_say_so() -> None:
    table = pairs(200).table
    with pytest.warns(MethodWarning, match="not separable for 2 candidates"):
        fitted = Additive(design="coupled").fit_tables({2: table.select([Ask(X0), Ask(X2)])})
    assert not fitted.effects[0].separable
    assert {estimate.reason for estimate in fitted.estimates().values()} == {"not separable"}
    # the sum under the label sequence seen is known: logit threshold .4 + .6
    assert fitted.threshold(X0) == pytest.approx(1 / (1 + np.exp(-1)), abs=0.02)
    assert fitted.threshold(X1) is None
    with pytest.warns(MethodWarning, match="B A was never seen"):
        seen = fitted.decide_table(table.select(fitted.asks(2), through=X1))
    raw = table.choices[:, 1]
    np.testing.assert_array_equal(np.array(X1.order)[seen.choices], raw)


def test_two_of_four_presentations_are_not_separable() -> None:
    table = pairs(200).table
    table.probs[:, [1, 3]] = np.nan
    with pytest.warns(MethodWarning, match="not separable"):
        fitted = Additive().fit_tables({2: table})
    assert fitted.effects[0].layouts == ((0, 1),)


def test_three_presentations_are_enough_for_two_candidates() -> None:
    table = pairs(2000).table.select([Ask(X0), Ask(X1), Ask(X2)])
    fitted = PLAIN.fit_tables({2: table})
    assert fitted.effects[0].separable
    assert 2 * fitted.effects[0].positions[0] == pytest.approx(0.6, abs=0.05)


def test_several_calls_are_corrected_before_they_are_averaged() -> None:
    fitted = replace(PLAIN, orders="swap", layouts="all").fit_tables({2: pairs(500).table})
    sim = pairs(500, seed=7)
    table = sim.table.select(fitted.asks(2))
    whole = fitted.decide_table(table)
    assert whole.n_calls.tolist() == [4] * 500
    # with a call lost the rest is unbalanced, but corrected for what it was shown under
    table.probs[:, 0] = np.nan
    part = fitted.decide_table(table)
    assert (part.choices == whole.choices).mean() > 0.93
    assert (part.choices == sim.gold).mean() == pytest.approx(
        (whole.choices == sim.gold).mean(), abs=0.03
    )


def test_the_median_resists_a_few_wild_items() -> None:
    table = pairs(200, seed=2).table
    probs = table.probs.copy()
    probs[:20, 0] = (1.0, 0.0)  # an API that returns certainty under one presentation
    wild = table_of(probs, FOUR)
    planted = 0.3
    errors = []
    for centre in ("mean", "median"):
        effects = Additive(centre=centre, resamples=0).fit_tables({2: wild}).effects  # type: ignore[arg-type]
        errors.append(abs(effects[0].positions[0] - planted))
    assert errors[1] < 0.05 < errors[0]


def test_no_complete_item_means_the_identity_with_a_warning() -> None:
    table = pairs(30).table
    table.probs[:] = np.nan
    with pytest.warns(MethodWarning, match="no estimation questions"):
        fitted = Additive().fit_tables({2: table})
    assert fitted.effects == ()
