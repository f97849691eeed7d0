"""What `--methods all` leaves out is said with its reason."""

from __future__ import annotations

from pathlib import Path

import unswayed as us
from unswayed.backends.simulated import simulated_items
from unswayed.methods import METHODS


def skipped(n: int, methods: str, out: Path) -> dict[str, str]:
    items = simulated_items(30, n)
    audit = us.audit("simulated/judge", items, methods=methods, resamples=100)
    taken = {name.partition(":")[0] for name in audit.metrics["methods"]}
    assert taken | set(audit.metrics["skipped"]) == set(METHODS) or methods != "all"
    return dict(audit.metrics["skipped"])


def test_all_names_every_method_it_leaves_out(tmp_path: Path) -> None:
    reasons = skipped(4, "all", tmp_path)
    assert reasons["cell-median"] == "it needs 2 candidates, got 4"
    assert reasons["batch"] == "not part of all; name it to run it"


def test_a_method_named_beside_all_is_not_left_out(tmp_path: Path) -> None:
    assert "batch" not in skipped(2, "all,batch", tmp_path)


def test_without_all_nothing_is_missing(tmp_path: Path) -> None:
    assert skipped(2, "direct,vote", tmp_path) == {}
