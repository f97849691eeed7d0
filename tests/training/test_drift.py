"""The exact expected gradients of the four estimators: what the study rests on, without seeds."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unswayed.base.errors import UsageError

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "study"))
try:
    from drift import ESTIMATORS, expected_drift
finally:
    del sys.path[0]


@pytest.mark.parametrize(
    ("ddof", "expected"),
    [
        (0, {"GRPO": -0.1387, "+r_con": -0.1728, "+A_PA": -0.1677, "PA-GRPO": -0.2236}),
        (1, {"GRPO": -0.1298, "+r_con": -0.1616, "+A_PA": -0.1624, "PA-GRPO": -0.2165}),
    ],
)
def test_push_on_the_bias_with_clean_gold(ddof, expected):
    found = {
        name: expected_drift(1.0, 1.5, 1.0, replace(settings, ddof=ddof)).bias
        for name, settings in ESTIMATORS.items()
    }
    assert found == pytest.approx(expected, abs=5e-5)


def test_push_on_the_bias_with_noisy_gold_agrees_with_simulation():
    # Simulated with 40 000 groups, ddof 0, q = .7; hence the wider tolerance.
    expected = {"GRPO": -0.056, "+r_con": -0.126, "+A_PA": -0.067, "PA-GRPO": -0.167}
    found = {
        name: expected_drift(1.0, 1.5, 0.7, replace(settings, ddof=0)).bias
        for name, settings in ESTIMATORS.items()
    }
    assert found == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("name", ["GRPO", "+A_PA"])
def test_without_r_con_uninformative_gold_leaves_the_bias_alone(name):
    drift = expected_drift(1.0, 1.5, 0.5, ESTIMATORS[name])
    assert drift.bias == pytest.approx(0, abs=1e-12)
    assert drift.content == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", ["GRPO", "+A_PA"])
def test_without_r_con_misleading_gold_makes_the_bias_worse(name):
    assert expected_drift(1.0, 1.5, 0.3, ESTIMATORS[name]).bias > 0.04


@pytest.mark.parametrize("name", ["+r_con", "PA-GRPO"])
@pytest.mark.parametrize("content", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("bias", [-1.5, 0.5, 1.5, 3.0])
def test_r_con_restores_the_bias_without_any_gold(name, content, bias):
    assert expected_drift(content, bias, 0.5, ESTIMATORS[name]).bias * bias < 0


def test_an_unbiased_judge_gets_no_bias():
    for settings in ESTIMATORS.values():
        assert expected_drift(1.0, 0.0, 0.8, settings).bias == pytest.approx(0, abs=1e-12)


def test_r_con_sharpens_an_unbiased_judge_and_inv_does_not():
    con = expected_drift(1.0, 0.0, 0.5, ESTIMATORS["PA-GRPO"]).content
    inv = expected_drift(
        1.0, 0.0, 0.5, replace(ESTIMATORS["PA-GRPO"], consistency="inv", lam=1.0)
    ).content
    assert con > 0.05
    assert abs(inv) < con / 5


def test_the_sum_over_outcomes_is_the_mean_over_simulated_groups():
    settings = ESTIMATORS["PA-GRPO"]
    from unswayed.training.rewards import Samples, right_mask, score

    generator = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-np.array([0.5 + 1.0, 0.5 - 1.0])))
    z = (generator.random((40_000, 2, 4)) > p[None, :, None]).astype(int)
    found = score(
        Samples(
            choices=z,
            right=np.broadcast_to(right_mask([0], 2), (len(z), 2)),
            well_formed=np.ones(z.shape, bool),
            reasoning_chars=np.zeros(z.shape, int),
        ),
        settings,
    ).advantages
    slope = (found * ((z == 0) - p[None, :, None])).mean(axis=2)
    simulated = (slope[:, 0] - slope[:, 1]).mean() / 2
    exact = expected_drift(0.5, 1.0, 1.0, settings, n_samples=4).bias
    assert exact == pytest.approx(simulated, abs=4e-3)


def test_gold_agreement_must_be_a_probability():
    with pytest.raises(UsageError, match="probability"):
        expected_drift(0, 0, 1.5, ESTIMATORS["GRPO"])
