"""Metrics of somebody else's are measured, and decide nothing."""

from dataclasses import replace

import numpy as np
import pytest

import unswayed as us
from unswayed.metrics import METRICS, Metric


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
