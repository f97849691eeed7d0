"""Faults of shards end with a named error or a repeat, never with other figures."""

import errno
import json
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_commands import SIMULATED, Ran, Run, Server, pair, write_lines, write_prices

from forked import command
from reliability.counting import CountingServer, counting_server
from unswayed.auditing import shard_files
from unswayed.auditing.shard_files import ShardFolder
from unswayed.calls.questions import logprobs_note
from unswayed.model.items import Shard
from unswayed.store import CallStore

MODEL = "openai-api/killtest/fake"
FIGURES = ("metrics.json", "answers.json", "flipped.json")


@pytest.fixture(autouse=True)
def local(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files of each test."""
    local = folder / "tmp"
    local.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(local))
    monkeypatch.setenv("TMPDIR", str(local))
    return local


def shard(run: Run, number: int, *more: str, total: int = 2, model: str = SIMULATED) -> Ran:
    options = ("pairs.jsonl", "--model", model, "--out", "run", *more)
    return run("audit", *options, "--shard", f"{number}/{total}")


def parquet(number: int, total: int = 2) -> Path:
    return Path(f"run/shards/{number:05d}-of-{total:05d}.parquet")


@pytest.fixture
def asked(run: Run, pairs: Path) -> Path:
    """A run directory with both of two shards."""
    assert [shard(run, number).code for number in (0, 1)] == [0, 0]
    return Path("run")


def same_as_whole(run: Run, *options: str, model: str = SIMULATED) -> None:
    Path("run").rename("merged")
    assert run("audit", "pairs.jsonl", "--model", model, "--out", "run", *options).code == 0
    for name in FIGURES:
        assert Path("run", name).read_bytes() == Path("merged", name).read_bytes(), name


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingServer]:
    with counting_server(tmp_path, latency_ms=4) as serving:
        monkeypatch.setenv("KILLTEST_BASE_URL", serving.url)
        yield serving


def test_killed_shard_goes_on_and_merged_figures_are_unchanged(
    run: Run, counted: CountingServer, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines("pairs.jsonl", [pair(number) for number in range(120)])
    options = ("--max-connections", "8", "--methods", "all")
    words = ("audit", "pairs.jsonl", "--model", MODEL, "--out", "run", "--shard", "0/2")
    for _ in range(2):
        process = command(local, *words, *options)
        point = counted.n_received + random.Random(os.getpid()).randint(120, 200)
        while counted.n_received < point and process.is_alive:
            time.sleep(0.001)
        process.kill()
        assert process.code() == -signal.SIGKILL
        assert not parquet(0).exists()
    before = counted.n_received
    assert shard(run, 0, *options, model=MODEL).code == 0
    with ShardFolder(Path("run")).open_local(Shard(0, 2)) as fresh:
        assert len(fresh) == 0  # its calls were removed
    n_first = sum(map(len, shard_files._rows(parquet(0))))
    assert counted.n_received - before < n_first  # it went on
    monkeypatch.setattr(tempfile, "tempdir", str(local / "other"))
    assert shard(run, 1, *options, model=MODEL).code == 0
    asked = counted.n_received
    monkeypatch.delenv("KILLTEST_BASE_URL")
    assert run("merge", "run").code == 0
    assert counted.n_received == asked
    monkeypatch.setenv("KILLTEST_BASE_URL", counted.url)
    same_as_whole(run, "--methods", "all", model=MODEL)


def test_server_without_logprobs_is_asked_by_shards_alone(
    run: Run, pairs: Path, server: Server
) -> None:
    server.start({"kind": "no_logprobs"})
    options = ("--methods", "vote,average,pride")
    for number in (0, 1):
        assert shard(run, number, *options, model=server.model).code == 0
    received = server.received
    assert run("merge", "run").code == 0
    assert server.received == received
    same_as_whole(run, *options, model=server.model)


def test_failed_calls_leave_no_file_and_same_command_goes_on(
    run: Run, pairs: Path, server: Server
) -> None:
    server.start({"kind": "status", "status": 400, "contains": "answer 7"})
    ran = shard(run, 0, total=1, model=server.model)
    assert ran.code == 3
    assert any("2 of 60 calls failed" in line for line in ran.said)
    assert ran.said[-1].startswith("unswayed: to resume: unswayed")
    assert not parquet(0, 1).exists()
    server.start()
    assert shard(run, 0, total=1, model=server.model).code == 0
    assert server.received == 2


def test_spent_budget_leaves_no_file_and_names_enough(
    run: Run, pairs: Path, server: Server
) -> None:
    server.start()
    write_prices(1000)
    ran = shard(run, 0, "--prices", "prices.json", "--budget", "0.5", model=server.model)
    assert ran.code == 3
    assert " --budget " in ran.said[-1]
    assert not parquet(0).exists()


def test_named_budget_is_of_all_shards(
    run: Run, pairs: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_turn(ask: Callable[[Shard], object], count: int, *_: object, **gpus: object) -> object:
        return [ask(Shard(number, count)) for number in range(count)]

    monkeypatch.setattr("unswayed.cli.merge.on_ray", in_turn)
    server.start()
    write_prices(1000)
    options = ("--prices", "prices.json", "--shards", "2", "--engine", "ray", "--out", "run")
    command = ("audit", pairs, "--model", server.model, *options, "--budget")
    ran = run(*command, "0.5")
    assert ran.code == 3
    of_one = float(ran.err.partition("A budget of $")[2].split()[0])
    enough = ran.said[-1].rpartition(" --budget ")[2]
    assert float(enough) > 1.5 * of_one
    assert run(*command, enough).code == 0


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda whole: whole[:-100], "cannot read run/shards/00001-of-00002.parquet: "),
        (lambda whole: b"", "cannot read run/shards/00001-of-00002.parquet: "),
        (lambda whole: whole[:900] + b"\x00" * 400 + whole[1300:], "00001-of-00002.parquet"),
        (lambda whole: parquet(0).read_bytes(), "is of another run or another shard."),
    ],
    ids=["cut", "empty", "damaged", "swapped"],
)
def test_spoilt_file_is_named_and_nothing_is_written(
    spoil: object, said: str, run: Run, asked: Path
) -> None:
    assert callable(spoil)
    parquet(1).write_bytes(spoil(parquet(1).read_bytes()))
    ran = run("merge", "run")
    assert ran.code == 2
    assert said in ran.err
    assert ".." not in ran.err
    assert "Remove 00001-of-00002.parquet and run the command of shard 1/2 again." in ran.err
    assert not Path("run/calls.sqlite").exists()
    parquet(1).unlink()
    assert shard(run, 1).code == 0
    assert run("merge", "run").code == 0
    same_as_whole(run)


def test_foreign_file_is_refused_and_other_names_are_ignored(run: Run, asked: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    Path("run/shards/notes.txt").write_text("mine")
    assert run("merge", "run").code == 0
    pq.write_table(pa.table({"key": [b"k"]}), parquet(1))
    ran = run("merge", "run")
    assert ran.code == 2
    assert "00001-of-00002.parquet is not the file of a shard." in ran.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--labels", "X,Y"), "--labels is not set there and 'X,Y' here"),
        (("--methods", "vote"), "--methods is not set there and ['vote'] here"),
        (("--limit", "5"), "--limit is not set there and 5 here"),
    ],
)
def test_shard_of_other_command_is_refused(
    options: tuple[str, ...], said: str, run: Run, pairs: Path
) -> None:
    assert shard(run, 0).code == 0
    for number in (0, 1):
        ran = shard(run, number, *options)
        assert ran.code == 2
        assert said in ran.err
    assert not parquet(1).exists()


def test_shard_of_changed_data_and_other_number_is_refused(run: Run, pairs: Path) -> None:
    assert shard(run, 0).code == 0
    assert "shards is 2 there and 3 here" in shard(run, 1, total=3).err
    write_lines(pairs, [pair(number) for number in range(31)])
    ran = shard(run, 1)
    assert ran.code == 2
    assert "plan.json is of other shards: fingerprint is 'sha256:" in ran.err
    assert not parquet(1).exists()


def test_merge_of_changed_data_is_refused(run: Run, asked: Path) -> None:
    write_lines("pairs.jsonl", [pair(number) for number in range(29)])
    ran = run("merge", "run")
    assert ran.code == 2
    assert "plan.json is of other shards: fingerprint is 'sha256:" in ran.err
    assert not Path("run/metrics.json").exists()


def test_shard_of_edited_plan_is_refused(run: Run, asked: Path) -> None:
    plan = Path("run/shards/plan.json")
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "prompt": "sha256:other"}))
    ran = run("merge", "run")
    assert ran.code == 2
    assert "00000-of-00002.parquet is of another run or another shard." in ran.err


@pytest.mark.parametrize("command", ["audit", "judge"])
def test_lost_plan_is_written_again_by_finished_shard(run: Run, pairs: Path, command: str) -> None:
    options = (command, pairs, "--model", SIMULATED, "--out", "run", "--shard")
    assert [run(*options, f"{number}/2").code for number in (0, 1)] == [0, 0]
    plan = Path("run/shards/plan.json")
    whole = plan.read_bytes()
    plan.write_bytes(whole[:50])
    for ran in (run("merge", "run"), run(*options, "0/2")):
        assert ran.code == 2
        assert "truncated. Remove it and run the command of any shard again." in ran.err
    plan.unlink()
    ran = run(*options, "0/2")
    assert ran.code == 0
    assert "00000-of-00002.parquet: already complete" in ran.out
    assert plan.read_bytes() == whole
    assert run("merge", "run").code == 0


def test_full_disk_keeps_calls(
    run: Run, pairs: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.start()

    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shard_files, "whole_file", full)
        ran = shard(run, 0, total=1, model=server.model)
    assert ran.code == 2
    assert "00000-of-00001.parquet: No space left on device. The calls are kept in " in ran.err
    received = server.received
    assert shard(run, 0, total=1, model=server.model).code == 0
    assert server.received == received


def test_second_process_at_shard_is_refused_or_finds_its_file(
    run: Run, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ShardFolder(Path("run"))
    with folder.open_local(Shard(0, 2)):
        ran = shard(run, 0)
    assert ran.code == 2
    assert f"is being written by this process ({os.getpid()})" in ran.err

    open_local = ShardFolder.open_local

    def slower(self: ShardFolder, part: Shard) -> CallStore:
        monkeypatch.setattr(ShardFolder, "open_local", open_local)
        assert shard(run, 0).code == 0
        return open_local(self, part)

    monkeypatch.setattr(ShardFolder, "open_local", slower)
    assert shard(run, 0).out.endswith(": already complete\n")


def test_shards_that_differ_in_logprobs_are_refused(run: Run, pairs: Path) -> None:
    assert shard(run, 0).code == 0
    model = json.loads(Path("run/shards/plan.json").read_text())["model"]
    with ShardFolder(Path("run")).open_local(Shard(1, 2)) as store:
        store.note(logprobs_note(model), "not asked")
    assert shard(run, 1).code == 0
    ran = run("merge", "run")
    assert ran.code == 2
    assert "run/shards/00000-of-00002.parquet: asked; run/shards/00001-of-00002.parquet: not" in (
        ran.err
    )
    assert not Path("run/metrics.json").exists()


def test_missing_extra_is_reported_before_any_call(
    run: Run, pairs: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.start()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    ran = shard(run, 0, model=server.model)
    assert ran.code == 2
    assert "--shard needs pyarrow, which is not installed." in ran.err
    assert server.received == 0
    assert not Path("run").exists()


def test_spoilt_verdicts_of_shard_are_refused(run: Run, pairs: Path) -> None:
    options = ("judge", pairs, "--model", SIMULATED, "--out", "run", "--shard")
    assert [run(*options, f"{number}/2").code for number in (0, 1)] == [0, 0]
    verdicts = Path("run/shards/00000-of-00002.jsonl")
    verdicts.write_bytes(verdicts.read_bytes().replace(b'"choice":0', b'"choice":1'))
    ran = run("merge", "run")
    assert ran.code == 2
    assert "run/shards/00000-of-00002.jsonl has changed since the shard wrote it." in ran.err
    assert "Remove 00000-of-00002.parquet and run the command of shard 0/2 again." in ran.err
    assert not Path("run/verdicts.jsonl").exists()
    parquet(0).unlink()
    assert run(*options, "0/2").code == 0
    assert run("merge", "run").code == 0
    assert "kind is 'judge' there and 'audit' here" in shard(run, 0).err
