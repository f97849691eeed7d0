"""Whatever goes wrong while answers are recorded, the run ends, says why, and keeps what it can."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import needs
from fakes import SETTINGS, FakeBackend, failures, label_by_content, questions
from unswayed.backends.protocol import Backend
from unswayed.base.errors import RunDirectoryError, StoreError
from unswayed.calls import Caller, Question, RunCounts, writer
from unswayed.model.calls import Failure, Query, Request, Response
from unswayed.store import CallStore, pool
from unswayed.store.records import encode

Record = Request | Response | Failure

MOST_ASKED = writer.MOST_UNCOMMITTED + 8 + writer.BATCH
"""Calls that may be under way while the first commit fails: uncommitted, in flight, a batch."""


def run(asked: Sequence[Question], backend: Backend, store: CallStore, **options: Any) -> RunCounts:
    async def work() -> RunCounts:
        async with asyncio.timeout(60):  # a run that waits for ever fails here
            return await Caller(backend, store, SETTINGS).ask(asked, **options)

    return asyncio.run(work())


def absurd_tokens(query: Query) -> Response:
    """One answer of which SQLite cannot take the number of tokens."""
    answer = label_by_content(query)
    if query.item.id == "q7":
        return msgspec.structs.replace(answer, input_tokens=9999999999999999999)
    return answer


def test_a_row_that_sqlite_refuses_costs_one_call_and_says_why(store: CallStore) -> None:
    counts = run(questions(200), FakeBackend(absurd_tokens), store)
    assert (counts.made, counts.failed, counts.exit_code) == (398, 2, 3)
    assert len(store) == 398
    said = [failure.message for _, _, failure, _ in failures(store)]
    assert len(said) == 2
    assert all(
        line.startswith("q7: its answer could not be recorded (OverflowError") for line in said
    )
    assert store.totals().input_tokens == 398 * 100
    assert run(questions(200), FakeBackend(), store).made == 2  # it is asked again


@pytest.mark.parametrize("kind", [Response, Failure])
def test_an_encoder_that_raises_stops_the_run(
    store: CallStore, kind: type[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(record: Record, key: bytes) -> bytes:
        if isinstance(record, kind):
            raise TypeError("planned defect")
        return encode(record, key)

    def reply(query: Query) -> Response | Failure:
        if query.item.id == "q3":
            return Failure(error="ServerError", message="q3: 500")
        return label_by_content(query)

    monkeypatch.setattr(pool, "encode", broken)
    backend = FakeBackend(reply)
    with pytest.raises(StoreError, match="TypeError: planned defect"):
        run(questions(2000), backend, store)
    assert len(backend.asked) <= MOST_ASKED
    if kind is Response:
        assert 20 <= len(failures(store)) <= MOST_ASKED
    else:
        assert len(store) >= len(backend.asked) - backend.connections - 2


def test_refusals_far_from_each_other_do_not_stop_a_run(store: CallStore) -> None:
    def reply(query: Query) -> Response:
        answer = label_by_content(query)
        if int(query.item.id[1:]) % 40:
            return answer
        return msgspec.structs.replace(answer, output_tokens=2**70)

    counts = run(questions(1000), FakeBackend(reply), store)
    assert (counts.made, counts.failed) == (1950, 50)


def test_a_lack_of_memory_keeps_what_can_be_written(
    store: CallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_encoded = 0

    def hungry(record: Record, key: bytes) -> bytes:
        nonlocal n_encoded
        if not isinstance(record, Response):
            return encode(record, key)
        n_encoded += 1
        if n_encoded == 30:  # a lack that passes: one by one they can be written
            raise MemoryError
        if n_encoded > 1000:
            raise MemoryError
        return encode(record, key)

    monkeypatch.setattr(pool, "encode", hungry)
    backend = FakeBackend()
    with pytest.raises(StoreError, match=r"MemoryError.*Answers lost: \d+"):
        run(questions(2000), backend, store)
    assert 900 < len(store) < 1000
    assert len(backend.asked) <= len(store) + MOST_ASKED


@pytest.mark.parametrize("verb", ["INSERT", "COMMIT"])
def test_an_error_of_sqlite_stops_the_run(
    store: CallStore, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        """The connection, with a fault."""

        def __init__(self, connection: sqlite3.Connection) -> None:
            self._connection = connection

        def _check(self, sql: str) -> None:
            if sql.startswith(verb) and "logprobs" not in sql:
                raise sqlite3.OperationalError("planned fault")

        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            self._check(sql)
            return self._connection.execute(sql, *values)

        def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
            self._check(sql)
            return self._connection.executemany(sql, *values)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

    run(questions(1), FakeBackend(), store)  # settles what is noted
    monkeypatch.setattr(store, "_connection", Failing(store._connection))
    backend = FakeBackend()
    with pytest.raises(StoreError, match=r"cannot write .*planned fault.*Answers lost"):
        run(questions(2000), backend, store)
    assert len(backend.asked) <= MOST_ASKED
    monkeypatch.undo()
    assert len(store) == 2
    assert run(questions(100), FakeBackend(), store).made == 198


def test_an_error_while_counting_keeps_the_answers(
    store: CallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count(*rows: object) -> None:
        raise KeyError("planned")

    monkeypatch.setattr("unswayed.calls.counts.RunCounts.add", count)
    backend = FakeBackend()
    with pytest.raises(StoreError, match="KeyError"):
        run(questions(2000), backend, store)
    assert len(backend.asked) <= MOST_ASKED
    assert len(store) >= len(backend.asked) - backend.connections


def test_an_error_of_the_progress_line_keeps_the_answers(
    store: CallStore,
) -> None:
    class Broken:
        def update(self, counts: RunCounts) -> None:
            if counts.made:
                raise OSError("nobody reads the progress line")

        def close(self) -> None:
            raise AssertionError("it was broken before")

    backend = FakeBackend(delay_s=0.001)
    with pytest.raises(OSError, match="nobody reads"):
        run(questions(20_000), backend, store, progress=Broken())
    assert len(backend.asked) - backend.connections <= len(store) < 20_000


def test_a_machine_without_threads_records_all_the_same(
    store: CallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none_left(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(asyncio, "to_thread", none_left)
    counts = run(questions(200), FakeBackend(), store)
    assert counts.made == len(store) == 400


# --- the run directory -----------------------------------------------------------------------


def asks_until(change: Callable[[], object], after: int = 300) -> FakeBackend:
    """A backend during whose calls something happens once."""

    def reply(query: Query) -> Response:
        if len(backend.asked) == after and not happened:
            happened.append(change())
        return label_by_content(query)

    happened: list[object] = []
    backend = FakeBackend(reply, delay_s=0.0005)
    return backend


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda place: (place / "run").rename(place / "elsewhere"), "calls.sqlite"),
        (lambda place: (place / "run/calls.sqlite").unlink(), "calls.sqlite"),
        (lambda place: (place / "run/calls.sqlite-wal").unlink(), "calls.sqlite-wal"),
        (lambda place: (place / "other").rename(place / "run/calls.sqlite"), "calls.sqlite"),
    ],
    ids=["moved", "deleted", "journal deleted", "replaced"],
)
def test_a_changed_directory_is_noticed_and_a_moved_one_kept(
    store: CallStore, tmp_path: Path, change: Callable[[Path], object], name: str
) -> None:
    (tmp_path / "other").write_bytes(b"")
    backend = asks_until(lambda: change(tmp_path))
    with pytest.raises(RunDirectoryError, match=f"{name} was moved or deleted"):
        run(questions(2000), backend, store)
    assert len(backend.asked) <= 300 + MOST_ASKED
    store.close()
    if (tmp_path / "elsewhere").exists():
        with CallStore.open(tmp_path / "elsewhere") as kept:
            assert len(kept) >= len(backend.asked) - backend.connections
            assert run(questions(150), FakeBackend(), kept).made <= backend.connections


# --- limits of the system --------------------------------------------------------------------

PATHS = os.pathsep.join(map(str, Path(__file__).parents[:2]))  # of this file and of the fakes
LIMITED = """
import os, resource, sys
sys.path[:0] = sys.argv[1].split(os.pathsep)
from test_writer import FakeBackend, questions, run
from unswayed.base.errors import UnswayedError
from unswayed.store import CallStore

backend = FakeBackend(delay_s=0.0005)
with CallStore.open(sys.argv[2]) as store:
    def reply(query):
        if len(backend.asked) == 300:
            {limit}
        return plain(query)
    plain, backend.reply = backend.reply, reply
    try:
        counts = run(questions(500), backend, store)
        print("ran", counts.made, len(store))
    except UnswayedError as error:
        print("stopped", error)
    except (MemoryError, RuntimeError):  # of the event loop itself
        print("stopped without memory")
"""
NO_FILES = "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))"
NO_MEMORY = (
    "size = int(open('/proc/self/statm').read().split()[0]) * 4096; "
    "resource.setrlimit(resource.RLIMIT_AS, (size, size))"
)
SMALL_FILES = "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))"


@needs.linux
@pytest.mark.parametrize(
    ("limit", "end"),
    [
        pytest.param(NO_FILES, "ran 1000 1000", id="no files"),
        pytest.param(SMALL_FILES, "stopped cannot write", id="small files"),
        pytest.param(NO_MEMORY, "", id="no memory"),  # Python itself may end without a word
    ],
)
def test_a_limit_of_the_system_never_makes_a_run_wait_for_ever(
    tmp_path: Path, limit: str, end: str
) -> None:
    code = textwrap.dedent(LIMITED).replace("{limit}", limit)
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, PATHS, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.stdout.startswith(end), done.stderr
    with CallStore.open(tmp_path / "run") as store:
        assert len(store) >= 200
        assert {call.request.model for call in store.calls()} == {"fake/one"}
