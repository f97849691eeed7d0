"""The store: what was committed comes back, whatever happens to the process, the disk or the file."""

import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import needs
from fakes import failures
from unswayed.base.errors import RunDirectoryError, StoreError
from unswayed.model.calls import Failure, Request, Response, TokenLogprob, key_of
from unswayed.model.items import Item, ItemSet, Message
from unswayed.store import CallStore, lookup, prompt_bytes

TEXT = st.text(max_size=40)
REQUESTS = st.builds(
    Request,
    model=TEXT,
    messages=st.lists(st.builds(Message, role=TEXT, content=TEXT), max_size=3).map(tuple),
    labels=st.lists(TEXT, min_size=2, max_size=4).map(tuple),
    max_tokens=st.integers(1, 9000),
    temperature=st.floats(0, 2),
    top_logprobs=st.integers(0, 20),
    sample=st.integers(0, 9),
    nonce=st.none() | TEXT,
    schema=st.just(msgspec.UNSET) | TEXT,
)
ALTERNATIVE = st.builds(TokenLogprob, TEXT, st.floats(-9999, 0))
RESPONSES = st.builds(
    Response,
    text=TEXT | st.integers(0, 30_000).map(lambda n: "aé" * n),  # up to 90 kB: compressed
    reasoning=st.none() | TEXT,
    tokens=st.none() | st.lists(TEXT, max_size=3).map(tuple),
    top_logprobs=st.none()
    | st.lists(st.lists(ALTERNATIVE, max_size=3).map(tuple), max_size=3).map(tuple),
    exact=st.booleans(),
    finish_reason=TEXT,
    input_tokens=st.integers(0, 10**6),
    cached_tokens=st.integers(0, 10**6),
    output_tokens=st.integers(0, 10**6),
    cost_usd=st.none() | st.floats(0, 100),
    latency_s=st.floats(0, 1000),
    retries=st.integers(0, 9),
    model=st.none() | TEXT,
)


def last_errors(store: CallStore) -> Counter[str]:
    """Calls that no later answer cleared, by the error they failed with last."""
    return Counter({key: failure.error for key, _, failure, _ in failures(store)}.values())


def request(number: int, *, content: str = "Which is better?") -> Request:
    return Request(
        model="fake/one",
        messages=(Message("user", f"{content} {number}"),),
        labels=("A", "B"),
        max_tokens=5,
    )


def row(number: int, **fields: object) -> tuple[bytes, Request, Response]:
    asked = request(number)
    return key_of(asked), asked, Response(**{"text": f"answer {number}", **fields})  # type: ignore[arg-type]


def items(*ids: str, gold: int | None = 0, prompt: str = "q") -> ItemSet:
    return ItemSet.of(
        [Item(id=name, prompt=prompt, candidates=("a", "b"), gold=gold) for name in ids],
        name="pairs",
    )


def run_python(code: str, *args: object) -> str:
    """What the code prints in a process of its own."""
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def start_python(code: str, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        stdout=subprocess.PIPE,
        text=True,
    )


HOLD = """
import sys, time
from unswayed.store import CallStore
store = CallStore.open(sys.argv[1])
print("open", flush=True)
time.sleep(float(sys.argv[2]))
store.close()
"""


# --- calls -----------------------------------------------------------------------------------


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(REQUESTS, RESPONSES), min_size=1, max_size=4, unique_by=lambda r: r[0]))
def test_calls_come_back_as_they_were(
    store: CallStore, pairs: list[tuple[Request, Response]]
) -> None:
    store._connection.execute("DELETE FROM calls")  # of the example before
    rows = [(key_of(asked), asked, response) for asked, response in pairs]
    store.put_many(rows)
    keys = [key for key, _, _ in rows]
    assert [store.get(key) for key in keys] == pairs
    assert list(store.responses(keys)) == [(key, response) for key, _, response in rows]
    assert [(call.key, call.request, call.response) for call in store.calls()] == rows


def test_a_directory_with_a_dot_in_its_name_is_a_directory(tmp_path: Path) -> None:
    with CallStore.open(tmp_path / "pairs-gpt-4.1-mini") as store:
        assert store.path == tmp_path / "pairs-gpt-4.1-mini" / "calls.sqlite"
    with CallStore.open(tmp_path / "pairs-gpt-4.1-mini" / "calls.sqlite") as store:
        assert store.path == tmp_path / "pairs-gpt-4.1-mini" / "calls.sqlite"


def test_the_first_answer_to_a_key_stays(store: CallStore) -> None:
    store.put_many([row(1, text="first", cost_usd=1.0)])
    store.put_many([row(1, text="second", cost_usd=2.0)])
    found = store.get(row(1)[0])
    assert found is not None
    assert found[1].text == "first"
    assert len(store) == 1
    assert store.totals().cost_usd == 3.0  # both were paid for


def test_what_is_not_recorded_is_left_out(store: CallStore) -> None:
    store.put_many([row(n) for n in range(1200)])  # more than one chunk of keys
    asked = [row(n)[0] for n in (1199, 5000, 3, 700)]
    assert store.get(asked[1]) is None
    assert store.recorded(asked).keys() == {asked[0], asked[2], asked[3]}
    assert [key for key, _ in store.responses(asked)] == [asked[0], asked[2], asked[3]]


def test_totals_add_up_over_runs(tmp_path: Path) -> None:
    with CallStore.open(tmp_path) as store:
        store.put_many(
            [row(1, input_tokens=10, cached_tokens=4, output_tokens=2, cost_usd=0.5), row(2)]
        )
    with CallStore.open(tmp_path) as store:
        store.put_many([row(3, input_tokens=5, output_tokens=1, cost_usd=0.25)])
        totals = store.totals()
    assert totals[:5] == (3, 15, 4, 3, 0.75)
    assert totals.prompt_bytes == 3 * len("Which is better? 1")
    assert totals.max_tokens == 3 * 5
    assert prompt_bytes(request(1, content="é")) == 2 + len(" 1")  # of UTF-8


def test_unread_answers_are_found_without_reading(store: CallStore) -> None:
    store.put_many([row(1), row(2), row(3)], unread={row(2)[0]})
    keys = [row(n)[0] for n in range(4)]
    marks = {key: call.unread for key, call in store.recorded(keys).items()}
    assert marks == {keys[1]: False, keys[2]: True, keys[3]: False}


def test_infinite_logprobs_and_surrogates_keep_the_answer(store: CallStore) -> None:
    alternatives = (TokenLogprob("A", -0.5), TokenLogprob("B", -float("inf")))
    store.put_many(
        [
            row(1, text="null", tokens=("A",), top_logprobs=(alternatives,)),
            row(2, text="bad \ud83d tail", finish_reason="st\udc00p"),
            row(3, text="x" * 20_000, top_logprobs=((TokenLogprob("A", float("nan")),),)),
        ]
    )
    one, two, three = (response for _, response in store.responses(row(n)[0] for n in (1, 2, 3)))
    # OpenAI's convention for a probability of zero
    assert one.top_logprobs == (((("A", -0.5)), ("B", -9999.0)),)
    assert one.text == "null"
    assert (two.text, two.finish_reason) == ("bad � tail", "st�p")
    assert three.top_logprobs == ((),)


def test_threads_share_one_store(store: CallStore) -> None:
    def write(start: int) -> None:
        for first in range(start, start + 200, 20):
            store.put_many([row(n) for n in range(first, first + 20)])
            assert store.get(row(first)[0]) is not None

    threads = [threading.Thread(target=write, args=(start,)) for start in (0, 1000, 2000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store) == 600
    assert store.totals().calls == 600


# --- failures --------------------------------------------------------------------------------


def failure(number: int, error: str) -> tuple[bytes, Request, Failure]:
    key, asked, _ = row(number)
    return key, asked, Failure(error=error, message="down \udc00", status=500, attempts=6)


def test_failures_keep_their_time_until_the_call_succeeds(tmp_path: Path) -> None:
    before = time.time()
    with CallStore.open(tmp_path) as store:
        store.put_failures([failure(1, "ServerError"), failure(2, "ServerError")])
    with CallStore.open(tmp_path) as store:
        store.put_failures([failure(1, "RateLimitedError")])
        assert last_errors(store) == {"ServerError": 1, "RateLimitedError": 1}
        kept = failures(store)
        assert [(key, failure.error) for key, _, failure, _ in kept] == [
            (row(1)[0], "ServerError"),
            (row(2)[0], "ServerError"),
            (row(1)[0], "RateLimitedError"),
        ]
        assert before <= kept[0][3] <= kept[-1][3] <= time.time()
        assert kept[0][1] == request(1)
        assert kept[0][2].message == "down �"
        assert len(store) == 0  # a failure is never a call
    with CallStore.open(tmp_path) as store:
        store.put_many([row(1)])
        assert last_errors(store) == {"ServerError": 1}
        assert [key for key, *_ in failures(store)] == [row(2)[0]]


# --- the run directory -----------------------------------------------------------------------


def test_a_run_directory_keeps_its_items_with_gold(tmp_path: Path) -> None:
    with CallStore.open(tmp_path) as store:
        with pytest.raises(RunDirectoryError, match="holds no items"):
            store.items()
        store.bind(model="fake/one", items=items("q2", "q1"))
    with CallStore.open(tmp_path, read_only=True) as store:
        assert store.items() == items("q2", "q1")
        assert store.model == "fake/one"
        assert store.noted("fingerprint") == items("q2", "q1").fingerprint


def test_the_same_data_may_grow_shrink_and_get_gold(store: CallStore) -> None:
    for ids in (("a", "b"), ("a", "b", "c"), ("b",), ("c", "b", "a")):
        store.bind(model="fake/one", items=items(*ids))
        assert [item.id for item in store.items()] == list(ids)
    store.bind(model="fake/one", items=items("a", "b", "c", gold=1))
    assert store.items() == items("a", "b", "c", gold=1)


def test_another_model_and_other_data_change_nothing(store: CallStore) -> None:
    store.bind(model="fake/one", items=items("a", "b"))
    with pytest.raises(RunDirectoryError, match=r"'fake/one', not 'fake/two'.*--out"):
        store.bind(model="fake/two", items=items("a", "b"))
    with pytest.raises(RunDirectoryError, match="item 'a' of pairs has changed"):
        store.bind(model="fake/one", items=items("a", "b", prompt="another question"))
    with pytest.raises(RunDirectoryError, match="1 of its 2 items are among the 2 of pairs"):
        store.bind(model="fake/one", items=items("b", "c"))
    with pytest.raises(RunDirectoryError, match="0 of its 2 items"):
        store.bind(model="fake/one", items=items("x"))
    assert store.items() == items("a", "b")


def test_facts_are_remembered(tmp_path: Path) -> None:
    (tmp_path / "calls.sqlite").touch()  # an empty file is a new store
    store = CallStore.open(tmp_path)
    assert (len(store), store.noted("seed")) == (0, None)
    store.note("seed", "0")
    store.note("seed", "1")
    assert store.noted("seed") == "1"
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        len(store)


def test_a_missing_run_is_an_error_for_readers(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="no recorded calls"):
        CallStore.open(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    CallStore.open(tmp_path).close()
    with (
        CallStore.open(tmp_path, read_only=True) as store,
        pytest.raises(StoreError, match="reading only"),
    ):
        store.put_many([row(1)])


# --- two processes ---------------------------------------------------------------------------


def test_a_second_writer_is_refused_and_told_who_writes(tmp_path: Path) -> None:
    holder = start_python(HOLD, tmp_path, 60)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(RunDirectoryError, match=f"written by process {holder.pid} since"):
            CallStore.open(tmp_path)
        with CallStore.open(tmp_path, read_only=True) as reader:
            assert len(reader) == 0
        holder.kill()
        holder.wait()
        assert (tmp_path / "calls.sqlite.lock").exists()  # left over, and not in the way
        with CallStore.open(tmp_path) as store:
            store.put_many([row(1)])
    finally:
        holder.kill()
        holder.communicate()


def test_opening_twice_in_one_process_is_refused(store: CallStore) -> None:
    assert store.path is not None
    with pytest.raises(RunDirectoryError, match="this process"):
        CallStore.open(store.path)


def test_a_reader_sees_what_a_writer_commits(store: CallStore) -> None:
    assert store.path is not None
    with CallStore.open(store.path, read_only=True) as reader:
        store.put_many([row(1)])
        assert [call.key for call in reader.calls()] == [row(1)[0]]


def test_what_was_committed_survives_kill_9(tmp_path: Path) -> None:
    writer = start_python(
        """
        import sys
        from unswayed.model.calls import Request, Response, key_of
        from unswayed.store import CallStore
        with CallStore.open(sys.argv[1]) as store:
            for batch in range(100_000):
                rows = []
                for number in range(batch * 50, batch * 50 + 50):
                    asked = Request(model="m", messages=(), labels=("A", "B"), max_tokens=1,
                                    sample=number)
                    rows.append((key_of(asked), asked, Response(text="x" * 300)))
                store.put_many(rows)
                print(batch, flush=True)
        """,
        tmp_path,
    )
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(40)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in writer.communicate()[0].split()]
    with CallStore.open(tmp_path) as store:
        assert len(store) >= 50 * len(acknowledged)
        assert len(store) % 50 == 0  # batches are whole or absent
        assert store.totals().calls == len(store)
        checked = sqlite3.connect(tmp_path / "calls.sqlite")
        assert checked.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        checked.close()


# --- faults ----------------------------------------------------------------------------------

UNPRIVILEGED = """
import os, sys
from unswayed.model.calls import Response
from unswayed.base.errors import UnswayedError
from unswayed.store import CallStore
if os.geteuid() == 0:  # the superuser may write anywhere
    os.setuid(65534)
try:
    with CallStore.open(sys.argv[1], read_only=sys.argv[2] == "ro") as store:
        print(len(store))
except UnswayedError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """A run directory that any user can reach and nobody can write."""
    with needs.open_folder() as place:
        with CallStore.open(place / "run") as store:
            store.put_many([row(1)])
        (place / "run" / "calls.sqlite").chmod(0o444)
        (place / "run").chmod(0o555)
        yield place / "run"
        (place / "run").chmod(0o755)


def test_a_read_only_directory_can_be_read_but_not_written(public: Path) -> None:
    assert run_python(UNPRIVILEGED, public, "ro") == "1\n"
    said = run_python(UNPRIVILEGED, public, "rw")
    assert said.startswith(f"RunDirectoryError cannot write to {public}")
    assert "--out" in said


def test_an_unfinished_journal_is_not_read_over(public: Path) -> None:
    """A copy of a killed run, where it cannot be written: its last calls are in the journal."""
    public.chmod(0o777)
    (public / "calls.sqlite").chmod(0o644)
    with CallStore.open(public) as store:
        store.put_many([row(2)])
        copy = public.parent / "copy"
        copy.mkdir()
        for name in ("calls.sqlite", "calls.sqlite-wal"):
            (copy / name).write_bytes((public / name).read_bytes())
    copy.chmod(0o555)
    said = run_python(UNPRIVILEGED, copy, "ro")
    copy.chmod(0o755)
    assert said.startswith("RunDirectoryError")
    assert "Copy the whole directory" in said
    with CallStore.open(copy, read_only=True) as store:  # as its owner
        assert len(store) == 2


@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_an_unreadable_directory_is_a_clear_error(public: Path, mode: str) -> None:
    public.chmod(0o000)
    said = run_python(UNPRIVILEGED, public, mode)
    assert said.startswith(f"RunDirectoryError cannot read {public}: Permission denied")


def test_a_read_only_file_is_found_before_any_call(public: Path) -> None:
    public.chmod(0o777)
    said = run_python(UNPRIVILEGED, public, "rw")
    assert said.startswith("RunDirectoryError cannot open"), said


def test_a_directory_in_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("not a directory")
    with pytest.raises(RunDirectoryError, match=r"--out"):
        CallStore.open(tmp_path / "run" / "deeper")


def test_a_database_at_its_size_limit_says_disk_full(store: CallStore) -> None:
    store.put_many([row(1)])
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="disk is full"):
        store.put_many([row(n, text="x" * 5000) for n in range(2, 400)])
    assert [call.key for call in store.calls()] == [row(1)[0]]
    assert store.totals().calls == 1


@pytest.mark.parametrize("content", [b"garbage", b"garbage " * 4000, b"{}\n"])
def test_file_other_than_database_is_rejected_untouched(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "calls.sqlite").write_bytes(content)
    for read_only in (False, True):
        with pytest.raises(StoreError, match="damaged"):
            CallStore.open(tmp_path, read_only=read_only)
    assert (tmp_path / "calls.sqlite").read_bytes() == content


def test_a_damaged_page_is_a_clear_error(tmp_path: Path) -> None:
    with CallStore.open(tmp_path) as store:
        store.put_many([row(n, text="x" * 3000) for n in range(200)])
    path = tmp_path / "calls.sqlite"
    content = bytearray(path.read_bytes())
    for page in range(3, len(content) // 16384):
        content[page * 16384 : page * 16384 + 100] = b"\xff" * 100
    path.write_bytes(content)
    with (
        pytest.raises(StoreError, match=r"damaged.*Move it aside"),
        CallStore.open(tmp_path) as store,
    ):
        list(store.calls())


def test_a_linked_lock_is_refused_and_its_target_untouched(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("content")
    (tmp_path / "calls.sqlite.lock").symlink_to(target)
    with pytest.raises(RunDirectoryError, match="symbolic link"):
        CallStore.open(tmp_path)
    assert target.read_text() == "content"


def test_a_damaged_row_names_its_key(store: CallStore) -> None:
    store.put_many([row(1)])
    store._connection.execute("UPDATE calls SET response = ?", (b'{"text":',))
    with pytest.raises(StoreError, match=row(1)[0].hex()[:16]):
        store.get(row(1)[0])
    store._connection.execute("UPDATE calls SET response = ?", (b"x\x9c??",))
    with pytest.raises(StoreError, match=row(1)[0].hex()[:16]):
        list(store.calls())


@pytest.mark.parametrize(
    "damage",
    [
        "CAST(replace(CAST(response AS TEXT), 'A', 'B') AS BLOB)",  # another answer
        "substr(response, 1, 9)",
        "x''",
        "'text'",
        "(SELECT response FROM calls WHERE id = 2)",  # a sound one, of another call
    ],
)
def test_a_damaged_answer_is_one_call_to_make_again(store: CallStore, damage: str) -> None:
    store.put_many([row(1, text="A"), row(2, text="B"), row(3)])
    store._connection.execute(f"UPDATE calls SET response = {damage} WHERE id = 1")
    keys = [row(n)[0] for n in (1, 2, 3)]
    assert store.recorded(keys).keys() == set(keys[1:])
    assert [key for key, _ in store.responses(keys)] == keys[1:]
    assert store.damaged == 1
    store.put_many([row(1, text="A")])
    assert dict(store.responses(keys))[keys[0]].text == "A"


def alike(number: int) -> bytes:
    """Keys of which several begin with the same eight bytes, and some are too short."""
    return (number % 7).to_bytes(8, "big") + number.to_bytes(24 if number % 11 else 3, "big")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_an_index_changes_nothing_of_what_is_read(data: st.DataObject) -> None:
    numbers = st.sets(st.integers(0, 40))
    with TemporaryDirectory() as folder, CallStore.open(folder) as store:
        for step in data.draw(st.permutations(["index", "put", "put", "damage", "delete", "mend"])):
            chosen = sorted(data.draw(numbers))
            rows = [(alike(n), request(n), Response(text=f"{step} {n}")) for n in chosen]
            places = ",".join(str(n + 1) for n in chosen)
            if step == "index":
                store.index()
            elif step == "delete":
                store._connection.execute(f"DELETE FROM calls WHERE id IN ({places})")
            elif step == "damage":
                store._connection.execute(
                    f"UPDATE calls SET response = substr(response, 2) WHERE id IN ({places})"
                )
            else:
                store.recorded(
                    map(alike, range(41))
                )  # damaged rows are replaced once they were met
                store.put_many(rows, unread={alike(n) for n in chosen[::3]})
        keys = [alike(n) for n in data.draw(st.permutations(range(41)))]
        at_once = store.recorded(keys), dict(store.responses(keys)), store.damaged
        assert list(at_once[1]) == [key for key in keys if key in at_once[0]]
        store._index, store._is_many, store._expected = None, False, None
        assert at_once == (store.recorded(keys), dict(store.responses(keys)), store.damaged)
        assert at_once[0] == {k: call for key in keys for k, call in store.recorded([key]).items()}
        for key, response in at_once[1].items():
            call = store.get(key)
            assert call is not None
            assert call[1] == response


def test_recorded_order_finds_calls_without_an_index(store: CallStore) -> None:
    store.put_many([row(n) for n in range(1_700)])
    keys = [row(n)[0] for n in range(1_700)]
    store.index()
    asked: list[str] = []
    store._connection.set_trace_callback(asked.append)
    for _ in range(2):  # going on, and over again
        assert len(store.recorded(keys)) == 1_700
        assert [key for key, _ in store.responses(keys)] == keys
    assert not any("ORDER BY key" in sql or "IN (" in sql for sql in asked)


def test_an_index_of_more_than_one_batch_finds_every_row(
    store: CallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "INDEXED_AT_ONCE", 7)
    monkeypatch.setattr(lookup, "CHUNK", 5)
    store.put_many([row(n) for n in range(50)])
    keys = [row(19 * n % 50)[0] for n in range(50)]
    store.index()
    asked: list[str] = []
    store._connection.set_trace_callback(asked.append)
    assert len(store.recorded(keys)) == 50
    assert any("ORDER BY key" in sql for sql in asked)
    assert not any("key IN" in sql for sql in asked)
    assert store.recorded([row(50)[0]]) == {}


def test_nothing_is_expected_behind_the_last_row_there_can_be(store: CallStore) -> None:
    store.put_many([row(0)])
    store._connection.execute(f"UPDATE calls SET id = {2**63 - 1}")
    store.index()
    keys = [row(n)[0] for n in range(3)]
    assert store.recorded(keys).keys() == store.recorded(keys).keys() == {keys[0]}


def test_items_that_have_changed_in_the_file_are_refused(store: CallStore) -> None:
    items = ItemSet.of([Item(id="q1", prompt="Which?", candidates=("one", "two"))], name="pairs")
    store.bind(model="fake/one", items=items)
    store._connection.execute("UPDATE items SET json = replace(json, 'Which', 'whiCh')")
    with pytest.raises(StoreError, match="fingerprint has changed"):
        store.items()


def test_equal_items_are_not_written_again_unless_damaged(store: CallStore) -> None:
    bound = items("q2", "q1")
    store.bind(model="fake/one", items=bound)
    before = store._connection.total_changes
    store.bind(model="fake/one", items=bound)
    assert store._connection.total_changes == before
    for damage in ("json = replace(json, 'a', 'b')", "json = CAST(json AS TEXT)", "place = NULL"):
        store._connection.execute(f"UPDATE items SET {damage} WHERE id = 'q1'")
        store.bind(model="fake/one", items=bound)
        assert store.items() == bound
    store.bind(model="fake/one", items=items("q1", "q2"))
    assert [item.id for item in store.items()] == ["q1", "q2"]
    store.bind(model="fake/one", items=items("q1"))
    assert [item.id for item in store.items()] == ["q1"]


def unsealed(directory: Path) -> None:
    """Make the file what version 1 wrote: the same rows without check sums."""
    connection = sqlite3.connect(directory / "calls.sqlite")
    connection.execute(
        "UPDATE calls SET request = substr(request, 5), response = substr(response, 5)"
    )
    connection.execute(
        "UPDATE failures SET request = substr(request, 5), failure = substr(failure, 5)"
    )
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()


def test_calls_of_the_version_without_check_sums_are_taken_over(tmp_path: Path) -> None:
    rows = [row(1, text="A"), row(2, text="B" * 20_000)]
    with CallStore.open(tmp_path) as store:
        store.put_many(rows)
        store.put_failures([(bytes(32), rows[0][1], Failure(error="ServerError", message="down"))])
    unsealed(tmp_path)
    with pytest.raises(RunDirectoryError, match=r"older version.*reuses all calls"):
        CallStore.open(tmp_path, read_only=True)
    with CallStore.open(tmp_path) as store:
        answers = dict(store.responses([key for key, _, _ in rows]))
        assert [answers[key].text for key, _, _ in rows] == ["A", "B" * 20_000]
        assert [lost.message for _, _, lost, _ in failures(store)] == ["down"]
        assert store.damaged == 0
    CallStore.open(tmp_path, read_only=True).close()


@pytest.mark.parametrize("version", [0, 3, 99])
def test_another_schema_version_is_refused(tmp_path: Path, version: int) -> None:
    CallStore.open(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "calls.sqlite")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    for read_only in (False, True):
        with pytest.raises(RunDirectoryError, match=f"schema version {version};"):
            CallStore.open(tmp_path, read_only=read_only)


def test_a_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(RunDirectoryError, match="not a call store of unswayed"):
        CallStore.open(tmp_path)
    assert path.read_bytes() == before
