"""A metric that says its value from how often each item counts, as another package would write one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from metric_builders import simulated

import unswayed as us
from unswayed.metrics import METRICS, Metric, Outcomes, difference, measure, measure_groups
from unswayed.metrics.accuracy import ACCURACY
from unswayed.metrics.metric import Need, OfWeights, fraction
from unswayed.metrics.simultaneous import contrasts
from unswayed.model.decisions import FloatArray


def _prepared(outcomes: Outcomes) -> OfWeights:
    counted, right = ACCURACY.statistics(outcomes).T

    def share(weights: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            return np.asarray((weights @ right) / (weights @ counted))

    return share


def _counted(outcomes: Outcomes) -> FloatArray:
    return ACCURACY.statistics(outcomes)[:, :1]


WEIGHTED = Metric(
    title="Accuracy by weights",
    meaning="accuracy, said another way",
    statistics=_counted,
    weighted=_prepared,
    undefined="no answered item has gold",
    needs=(Need.GOLD,),
    better=1,
    compared="jointly",
    limits=fraction,
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    list(METRICS)
    monkeypatch.setitem(METRICS._all, "weighted", f"{__name__}:WEIGHTED")


A, B = (simulated(300, 3, orders="cyclic", position=p, seed=2) for p in (0.0, 1.0))


def test_it_equals_the_same_quantity_as_sums() -> None:
    row = measure([A], names=["accuracy", "weighted"], resamples=4000)
    sums, weights = row["accuracy"], row["weighted"]
    assert weights.value == pytest.approx(sums.value, abs=1e-12)
    assert weights.n == sums.n
    assert weights.low == pytest.approx(sums.low, abs=0.006)
    assert weights.high == pytest.approx(sums.high, abs=0.006)


def test_the_jackknife_gives_the_exact_difference_of_means() -> None:
    sums, weights = (difference([A], [B], name) for name in ("accuracy", "weighted"))
    assert (weights.value, weights.low, weights.high, weights.n) == (
        pytest.approx(sums.value, abs=1e-9),
        pytest.approx(sums.low, abs=1e-9),
        pytest.approx(sums.high, abs=1e-9),
        sums.n,
    )


def test_joint_intervals_are_those_of_the_mean() -> None:
    methods = {
        "direct": [A],
        "b": [B],
        "c": [simulated(300, 3, orders="cyclic", position=2, seed=2)],
    }
    for first, second in (("b", "direct"), ("c", "b")):
        sums, weights = (
            contrasts(methods, name).against(second)[first] for name in ("accuracy", "weighted")
        )
        assert weights.low == pytest.approx(sums.low, abs=1e-4)
        assert weights.high == pytest.approx(sums.high, abs=1e-4)


def test_groups_and_strata_have_values_of_their_own() -> None:
    two = simulated(50, 2, orders="swap", position=0.0, seed=1)
    row = measure([two, A], names=["accuracy", "weighted"], resamples=20)
    assert "weighted" not in row.values
    for stratum in row.strata.values():
        assert stratum["weighted"].value == pytest.approx(stratum["accuracy"].value)
    halves = tuple("xy"[number % 2] for number in range(300))
    grouped = replace(A, groups=halves)
    rows, macro = measure_groups([grouped], names=["accuracy", "weighted"], resamples=20)
    assert macro["weighted"].value == pytest.approx(macro["accuracy"].value)
    assert rows["x"]["weighted"].value == pytest.approx(rows["x"]["accuracy"].value)


def the_other_way_round(name: str) -> Metric:
    metric = METRICS.load(name)

    def statistics(outcomes):
        counted, value = metric.statistics(outcomes).T
        return np.column_stack([counted, counted - value])

    return replace(metric, title=f"Not {name}", statistics=statistics)


def test_an_outside_metric_decides_no_recommendation(monkeypatch) -> None:
    def audited():
        asked = {"methods": "vote,average,pride", "limit": 80, "resamples": 100}
        return us.audit("simulated/judge?slot=1.5", "tiny-judge", **asked).metrics

    ours = audited()
    for name, own in (("aaa_wrong", "accuracy"), ("zzz_unsteady", "consistency")):
        monkeypatch.setitem(METRICS._all, name, "mine:METRIC")
        monkeypatch.setitem(METRICS._loaded, name, the_other_way_round(own))
    theirs = audited()
    assert ours["recommendation"]["method"] not in (None, "direct")
    assert theirs["recommendation"] == ours["recommendation"]
    direct = theirs["methods"]["direct"]
    assert direct["aaa_wrong"]["value"] == pytest.approx(1 - direct["accuracy"]["value"])
