"""An audit looks for cycles less often while it runs, and leaves that as it was."""

import gc
from pathlib import Path

import pytest

import unswayed as us
from unswayed import audits
from unswayed.backends.simulated import simulated_items
from unswayed.errors import UsageError


def test_how_often_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, seen = gc.get_threshold(), []
    real = audits.plan_for

    def watched(*args: object, **options: object) -> object:
        seen.append(gc.get_threshold()[0])
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(audits, "plan_for", watched)
    us.audit("simulated/judge", simulated_items(4, seed=1), out=tmp_path / "a")
    assert seen == [100 * before[0]]
    assert gc.get_threshold() == before
    with pytest.raises(UsageError):
        us.audit("simulated/judge", simulated_items(4, seed=1), orders="none such")
    assert gc.get_threshold() == before
