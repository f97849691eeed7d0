"""The harness of servers that misbehave, in this process and with the quick ways only."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reliability.fault_modes import modes
from reliability.faults import judged, leaked, observe, run_here
from reliability.faulty_server import KEY, FaultyServer, Mode, answer_well

QUICK = (
    "status 401",
    "status 302",
    "status 422",
    "200, truncated JSON",
    "200, NaN",
    "200, error object beside a choice",
    "200, gzip bomb of 1 GiB",
    "200, br",
    "200, duplicate keys",
    "200, content null",
    "refusal, content null",
    "content filter, content A",
    "usage 9999999999999999999",
    "usage negative",
    "logprobs above 0",
    "chunked, garbage",
    "key among the logprobs",
    "key in a long text",
)


GONE = ("--patience", "30", "--max-connections", "1")
MODES = {mode.name: mode for mode in modes()}


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    served = FaultyServer()
    yield served
    served.close()


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL")):
            monkeypatch.delenv(name)


@pytest.mark.parametrize("name", QUICK)
def test_a_server_that_misbehaves_breaks_no_rule(
    name: str, server: FaultyServer, tmp_path: Path
) -> None:
    quick = replace(MODES[name], options=("--max-retries", "0", "--patience", "0.2"))
    outcome = observe(quick, server, tmp_path, run=run_here)
    assert outcome.broken == ()


def test_an_outage_of_a_second_after_an_answer_loses_nothing(
    server: FaultyServer, tmp_path: Path
) -> None:
    mode = Mode("outage", answer_well, "answered", GONE, outage_s=1.0)
    outcome = observe(mode, server, tmp_path, run=run_here)
    assert outcome.broken == ()
    assert outcome.calls["failed"] == 0


def test_there_are_many_ways_and_each_has_its_own_name() -> None:
    names = [mode.name for mode in modes()]
    assert len(set(names)) == len(names) >= 70


def test_the_harness_sees_wrong_lost_and_uncounted_answers() -> None:
    failed = Mode("x", answer_well, "failed")
    counts = {"failed": 4, "unparsed": 0}
    assert list(judged(failed, counts, 0, 4, stopped=False)) == []
    assert list(judged(failed, counts, 1, 4, stopped=False)) == ["a verdict from a failure"]
    assert list(judged(failed, counts, 0, 3, stopped=False)) == ["a good answer was lost"]
    assert list(judged(failed, {"failed": 3}, 0, 4, stopped=False)) == ["failures were not counted"]
    answered = Mode("x", answer_well, "answered")
    assert list(judged(answered, counts, 3, 4, stopped=False)) == ["an answer was lost"]


def test_the_harness_sees_a_key_in_files_and_output(tmp_path: Path) -> None:
    assert not leaked(tmp_path, "fine")
    assert leaked(tmp_path, f"Bearer {KEY}")
    (tmp_path / "run.json").write_text(f'{{"x": "{KEY}"}}')
    assert leaked(tmp_path, "fine")
