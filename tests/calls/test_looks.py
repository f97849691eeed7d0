"""The p-value of repeated tests for drift."""

import random

import pytest

from unswayed.base.errors import UsageError
from unswayed.calls.shadow import Looks, Shadow
from unswayed.methods.drift import Drift
from unswayed.methods.names import parse_method
from unswayed.model.decisions import Estimate


def numbers(*p_values: float | None) -> list[Drift]:
    value = Estimate(value=0.5, n=200)
    return [Drift("prior", value, value, None, p) for p in p_values]


def test_each_look_spends_its_share() -> None:
    looks, shown = Looks(), []
    for compared in ([0.01], [0.001, 0.2], [], [None], [1e-6], [0.5]):
        looks.add(numbers(*compared))
        shown.append(looks.p_value)
    # 2 * .01, then 2 numbers * 6 * .001, then 30 * 1e-6 at the fifth look
    assert shown == pytest.approx([0.02, 0.012, 0.012, 0.012, 3e-5, 3e-5])


def test_value_begins_with_first_number() -> None:
    looks = Looks()
    assert looks.p_value is None
    looks.add([])
    assert looks.p_value is None
    looks.add(numbers(0.9))
    assert looks.p_value == 1.0


def test_uniform_p_values_seldom_reach_level_at_any_look() -> None:
    chance, alarms = random.Random(0), 0
    for _ in range(2000):
        looks = Looks()
        for _ in range(100):
            looks.add(numbers(chance.random()))
        assert looks.p_value is not None
        alarms += looks.p_value <= 0.05
    assert 0.03 < alarms / 2000 < 0.06


@pytest.mark.parametrize("name", ["escalate", "selective"])
def test_thresholds_are_not_tested_for_drift(name: str) -> None:
    """Unchanged judges raised the alarm in 11 to 23% of checks: questions drawn twice count once there."""
    with pytest.raises(UsageError, match=f"{name} learns a threshold.*Leave out shadow"):
        Shadow(parse_method(name), 0.1)
    assert Shadow(parse_method(name), 0.0).size == 0
