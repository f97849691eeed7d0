"""kill -9 at random points of a run, then the same command: nothing committed is paid for twice.

A real server process counts what it is asked, the real HTTP client asks, and the process that
runs both the client and the store is killed without warning.
"""

import asyncio
import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from fakes import failures
from reliability.counting import CountingServer, counting_server
from unswayed.backends import BackendSettings, open_backend
from unswayed.backends.client import HttpBackend
from unswayed.calls import Caller, Question, RunCounts, RunSettings
from unswayed.calls.writer import MOST_UNCOMMITTED
from unswayed.model.calls import Request
from unswayed.model.decisions import Decision
from unswayed.model.items import Item
from unswayed.model.presentation import X0, X2, Ask
from unswayed.prompts import PromptSettings
from unswayed.store import CallStore

MODEL = "openai-api/killtest/fake"
CONNECTIONS = 16
N_ITEMS = 400
N_CALLS = 2 * N_ITEMS
SETTINGS = RunSettings(prompts=PromptSettings())
HERE = Path(__file__).parent
PATHS = f"{HERE},{HERE.parent},{HERE.parents[1] / 'benchmarks'}"

COMMAND = """
import sys
sys.path[:0] = sys.argv[1].split(",")
from test_kill9 import one_run
print(one_run(sys.argv[2], sys.argv[3]).exit_code)
"""


def questions() -> Iterator[Question]:
    for number in range(N_ITEMS):
        item = Item(
            id=f"q{number}",
            prompt=f"Which answer to question {number} is better?",
            candidates=(f"It is {number}.", f"It is not {number}, but {number + 1}."),
        )
        for presentation in (X0, X2):
            yield Question(item, Ask(presentation))


def connect(url: str) -> HttpBackend:
    settings = BackendSettings(base_url=url, max_connections=CONNECTIONS)
    backend = open_backend(MODEL, settings)
    assert isinstance(backend, HttpBackend)
    return backend


def one_run(directory: str | Path, url: str) -> RunCounts:
    """The command that is killed and repeated."""

    async def work() -> RunCounts:
        backend = connect(url)
        try:
            with CallStore.open(directory) as store:
                return await Caller(backend, store, SETTINGS).ask(questions())
        finally:
            await backend.close()

    return asyncio.run(work())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CountingServer]:
    with counting_server(tmp_path, latency_ms=4) as serving:
        yield serving


def start_run(directory: Path, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, PATHS, str(directory), url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "KILLTEST_BASE_URL": url},
    )


def wait_for(process: subprocess.Popen[str], server: CountingServer, n_received: int) -> None:
    """Until the server has received so many requests, or the run has ended."""
    deadline = time.monotonic() + 60
    while server.n_received < n_received and process.poll() is None:
        assert time.monotonic() < deadline, f"stuck after {server.n_received} requests"
        time.sleep(0.0005)


def kill_after(process: subprocess.Popen[str], server: CountingServer, n_received: int) -> bool:
    """kill -9 once the server has received so many requests; False if the run was done before."""
    wait_for(process, server, n_received)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL


def committed(directory: Path, backend: HttpBackend) -> set[str]:
    """Hashes of the bodies of all committed calls."""

    def body_hash(request: Request) -> str:
        return hashlib.sha256(backend.dialect.encode(request, backend.traits)).hexdigest()

    with CallStore.open(directory, read_only=True) as store:
        return {body_hash(call.request) for call in store.calls()}


def without_times(decisions: Iterator[Decision]) -> list[Decision]:
    return [msgspec.structs.replace(decision, latency_s=None) for decision in decisions]


def test_kill_9_repeats_no_committed_call_and_changes_no_result(
    tmp_path: Path, server: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KILLTEST_BASE_URL", server.url)
    backend = connect(server.url)
    chance = random.Random(os.getpid())
    done: set[str] = set()
    kills = paid_twice = 0
    for _ in range(4):
        before = server.n_received
        process = start_run(tmp_path / "killed", server.url)
        point = before + chance.randint(40, 180)
        kills += kill_after(process, server, point)
        received = server.received(before)
        assert not done & set(received), "a committed call was made again"
        if (tmp_path / "killed" / "calls.sqlite").exists():
            now_done = committed(tmp_path / "killed", backend)
        assert done <= now_done, "a committed call was lost"
        lost = set(received) - now_done
        assert len(lost) <= CONNECTIONS + MOST_UNCOMMITTED
        paid_twice += len(lost)
        done = now_done
    assert kills >= 3
    assert 0 < len(done) < N_CALLS

    before = server.n_received
    last = start_run(tmp_path / "killed", server.url)
    assert last.communicate(timeout=60)[0] == "0\n"
    finished = server.received(before)
    assert not done & set(finished), "a committed call was made again"
    assert len(finished) == N_CALLS - len(done)
    assert server.n_received == N_CALLS + paid_twice
    assert max(Counter(server.received()).values()) <= kills + 1

    one_run(tmp_path / "undisturbed", server.url)
    found = []
    for name in ("killed", "undisturbed"):
        with CallStore.open(tmp_path / name) as store:
            assert len(store) == N_CALLS
            assert failures(store) == []
            found.append(without_times(Caller(backend, store, SETTINGS).read(questions())))
    assert len(found[0]) == N_CALLS
    assert found[0] == found[1]


def test_two_commands_on_one_directory_pay_once(tmp_path: Path, server: CountingServer) -> None:
    first = start_run(tmp_path / "run", server.url)
    wait_for(first, server, 50)
    first.send_signal(signal.SIGSTOP)  # in the middle of its run
    second = start_run(tmp_path / "run", server.url)
    _, complaint = second.communicate(timeout=60)
    assert second.returncode != 0
    assert f"is being written by process {first.pid}" in complaint
    first.send_signal(signal.SIGCONT)
    assert first.communicate(timeout=60)[0] == "0\n"
    assert len(server.received()) == len(set(server.received())) == N_CALLS
