"""Flips, their sign test and recalls by label of recorded judges are those computed independently."""

from typing import Any

import numpy as np
import pytest
from recorded_data import expected

from needs import DATA, recorded
from unswayed.data.importers import import_files
from unswayed.metrics import flips, outcomes_from_decisions, sign_test
from unswayed.metrics.recall_balance import CKLD_RAW, RSTD, recalls

pytestmark = recorded

JUDGES = {
    **expected("judgebench_recorded_judges.json").get("judges", {}),
    **expected("llmbar_recorded_judges.json").get("judges", {}),
    **expected("mtbench_position_bias_judges.json").get("judges", {}),
    "Auto-J": expected("autoj_recorded.json").get("dev", {}),
}
AUTOJ = DATA / "autoj" / "pairs_with_judge_dev.jsonl.gz"


def figures_of(want: dict[str, Any]) -> dict[str, Any]:
    """The figures over all pairs of a judge."""
    return want["buckets"]["Overall"] if "buckets" in want else want.get("overall", want)


@pytest.mark.parametrize("judge", sorted(JUDGES))
def test_flips_and_recalls_are_those_of_the_recorded_judge(judge: str) -> None:
    want = figures_of(JUDGES[judge])
    file = AUTOJ if judge == "Auto-J" else DATA / JUDGES[judge]["file"]
    imported = import_files("auto", [file])
    (outcomes,) = strata = outcomes_from_decisions(imported.items, imported.decisions)
    found = flips(strata)
    assert (found.first, found.last) == (want["both_first"], want["both_second"])
    assert found.n - found.total == want["n_consistent_strict"]
    if want["position_sign_test_p"] is not None:  # None where no pair is a pure position pick
        p = sign_test(found.first, found.last)
        assert p == pytest.approx(want["position_sign_test_p"], rel=1e-9)
    if "ckld_AB_only" in want:
        sums = CKLD_RAW.statistics(outcomes).sum(axis=0, keepdims=True)
        # theirs adds 1e-10 to the shares
        assert CKLD_RAW.values(sums)[0] == pytest.approx(want["ckld_AB_only"], abs=1e-8)
        sums = RSTD.statistics(outcomes).sum(axis=0, keepdims=True)
        by_label = [want["recall_A"], want["recall_B"]]
        np.testing.assert_allclose(recalls(sums)[0], by_label, atol=1e-12)


def test_judges_of_the_same_pairs_join_without_mixing() -> None:
    files = sorted(DATA.glob("llmbar/Natural_*Vanilla.json.gz"))
    imported = import_files("llmbar", files)
    assert imported.counts["items"] == 100
    assert imported.counts["decisions"] == 200 * len(files)
    assert {decision.model for decision in imported.decisions} == {
        file.name.removesuffix(".json.gz") for file in files
    }
