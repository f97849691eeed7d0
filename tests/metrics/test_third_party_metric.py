"""Metrics of somebody else's are measured, and decide nothing."""

import json
from pathlib import Path

import pytest

from outside_package import OutsidePackage
from unswayed.cli import main

SOURCE = """
    from dataclasses import replace

    import numpy as np

    from unswayed.metrics.accuracy import ACCURACY
    from unswayed.metrics.consistency import CONSISTENCY


    def the_other_way_round(metric):
        def statistics(outcomes):
            counted, value = metric.statistics(outcomes).T
            return np.column_stack([counted, counted - value])

        return statistics


    WRONG = replace(ACCURACY, title="Wrong", statistics=the_other_way_round(ACCURACY))
    UNSTEADY = replace(CONSISTENCY, title="Unsteady", statistics=the_other_way_round(CONSISTENCY))
"""


def test_a_metric_from_outside_is_measured_and_takes_over_no_recommendation(
    tmp_path: Path,
) -> None:
    lines = "aaa_wrong = mine:WRONG\nzzz_unsteady = mine:UNSTEADY"
    package = OutsidePackage(tmp_path, group="unswayed.metrics", line=lines, source=SOURCE)
    model = "simulated/judge?slot=1.5"
    asked = ["--methods", "vote,average,pride,repeat", "--limit", "100", "--resamples", "100"]
    command = ["audit", "--model", model, *asked, "--out"]
    assert main([*command, str(tmp_path / "plain")]) == 0
    package.run(*command, "run")
    ours, theirs = (
        json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("plain", "run")
    )
    assert ours["recommendation"]["method"] not in (None, "direct")
    assert theirs["recommendation"] == ours["recommendation"]
    direct = theirs["methods"]["direct"]
    assert direct["aaa_wrong"]["value"] == pytest.approx(1 - direct["accuracy"]["value"])
