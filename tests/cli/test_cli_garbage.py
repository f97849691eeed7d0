"""The command looks for cycles seldom; a function leaves that to the process that it is called in."""

import gc
from collections.abc import Iterator

import pytest
from cli_commands import Run

import unswayed as us
from unswayed import audits
from unswayed.backends.simulated import simulated_items
from unswayed.cli.audit import SELDOM


@pytest.fixture(autouse=True)
def threshold() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_only_the_command_sets_how_often(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before, seen = gc.get_threshold(), []
    real = audits.plan_for

    def watched(*args: object, **options: object) -> object:
        seen.append(gc.get_threshold())
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(audits, "plan_for", watched)
    us.audit("simulated/judge", simulated_items(4, seed=1), out="function")
    run("audit", "tiny-judge", "--limit", "4", "--out", "command")
    assert seen == [before, (SELDOM, *before[1:])]
