"""`unswayed judge --out`: the same command goes on, pays nothing twice and overwrites nothing."""

import json
import os
import re
import shlex
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_commands import SIMULATED, Ran, Run, Server, pair, write_lines, write_prices

import unswayed as us
from forked import Forked, command
from unswayed.base.errors import RunDirectoryError
from unswayed.base.files import lock, temporary_for
from unswayed.calls.writer import MOST_UNCOMMITTED
from unswayed.cli.verdict_file import VerdictFile

OUT = Path("verdicts.jsonl")
CONNECTIONS = 2


def judge(run: Run, data: str | Path, *more: str | Path, model: str = SIMULATED) -> Ran:
    return run("judge", data, "--model", model, "--out", OUT, *more)


def ids(path: Path = OUT) -> list[str]:
    return [json.loads(line)["item_id"] for line in path.read_text().splitlines()]


def counts(ran: Ran) -> str:
    """The last line of the summary."""
    return ran.err.splitlines()[-1]


@pytest.fixture
def undisturbed(run: Run, pairs: Path) -> bytes:
    """What an undisturbed run writes, on standard output."""
    return run("judge", pairs, "--model", SIMULATED).out.encode()


def test_the_same_command_reuses_the_calls_beside_the_file(
    run: Run, pairs: Path, undisturbed: bytes
) -> None:
    first = judge(run, pairs)
    assert first.code == 0
    assert OUT.read_bytes() == undisturbed
    assert Path("verdicts.calls/calls.sqlite").is_file()
    assert counts(first) == "60 calls made, 0 reused, 0 failed; $0.0000"
    again = judge(run, pairs)
    assert again.code == 0
    assert counts(again) == "0 calls made, 60 reused, 0 failed; $0.0000"
    assert OUT.read_bytes() == undisturbed


@pytest.mark.parametrize("kept", [0, 1, 11, 200, -20, -1])
def test_a_file_that_was_cut_off_is_completed(
    kept: int, run: Run, pairs: Path, undisturbed: bytes
) -> None:
    judge(run, pairs)
    OUT.write_bytes(undisturbed[:kept])
    ran = judge(run, pairs)
    assert ran.code == 0
    assert counts(ran).startswith("0 calls made")
    assert OUT.read_bytes() == undisturbed


def when(is_so: Callable[[], bool], process: Forked) -> None:
    """Wait until something is so that a process at work does."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert process.is_alive
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_kill_9_loses_nothing_and_repeats_calls_in_flight(
    run: Run, tmp_path_factory: pytest.TempPathFactory, server: Server
) -> None:
    data = write_lines("many.jsonl", [pair(number) for number in range(150)])
    whole = Path("whole.jsonl")
    server.start()
    assert run("judge", data, "--model", Server.model, "--out", whole).code == 0
    server.start(latency_s=0.005)
    words = ("judge", data, "--model", Server.model, "--out", OUT)
    paid = 0
    for n_lines in (1, 65):
        said = tmp_path_factory.mktemp("said")
        process = command(said, *words, "--max-connections", CONNECTIONS)
        when(lambda n=n_lines: OUT.exists() and OUT.read_bytes().count(b"\n") >= n, process)
        process.kill()
        assert whole.read_bytes().startswith(OUT.read_bytes())
        with OUT.open("ab") as file:
            file.write(b'{"item_id":"q')  # as if it had been killed in the middle of a line
        paid = server.received
    server.start()
    assert run(*words).code == 0
    assert OUT.read_bytes() == whole.read_bytes()
    assert paid + server.received <= 300 + 2 * (CONNECTIONS + MOST_UNCOMMITTED)


def test_ctrl_c_keeps_paid_calls_and_reports_them(
    tmp_path_factory: pytest.TempPathFactory, run: Run, server: Server
) -> None:
    data = write_lines("many.jsonl", [pair(number) for number in range(60)])
    server.start(latency_s=0.05)
    words = ("judge", data, "--model", Server.model, "--out", OUT)
    process = command(tmp_path_factory.mktemp("said"), *words, "--max-connections", CONNECTIONS)
    when(lambda: server.received >= 10, process)
    process.send(signal.SIGINT)
    assert process.code() == 130
    assert "Recorded calls will not be repeated" in process.err.read_text()
    paid = server.received
    server.start()
    ran = judge(run, data, model=Server.model)
    assert ran.code == 0
    assert ids() == [f"q{number}" for number in range(60)]
    assert paid + server.received <= 120 + CONNECTIONS


def test_a_verdict_that_was_missing_comes_into_its_place(
    run: Run, folder: Path, server: Server
) -> None:
    data = write_lines("few.jsonl", [pair(number) for number in range(6)])
    server.start({"kind": "status", "status": 400, "contains": "first answer 3"})
    assert judge(run, data, model=Server.model).code == 3
    assert ids() == ["q0", "q1", "q2", "q4", "q5"]
    kept = OUT.read_bytes()
    again = judge(run, data, model=Server.model)
    assert again.code == 3
    assert OUT.read_bytes() == kept
    server.start()
    ran = judge(run, data, model=Server.model)
    assert ran.code == 0
    assert server.received == 2
    assert ids() == [f"q{number}" for number in range(6)]
    assert set(kept.splitlines()) < set(OUT.read_bytes().splitlines())
    assert {path.name for path in folder.iterdir()} == {
        "few.jsonl",
        "verdicts.jsonl",
        "verdicts.calls",
    }


def test_data_may_grow(run: Run, pairs: Path) -> None:
    judge(run, pairs)
    write_lines(pairs, [pair(number) for number in range(32)])
    ran = judge(run, pairs)
    assert ran.code == 0
    assert counts(ran).startswith("4 calls made, 60 reused")
    assert ids() == [f"q{number}" for number in range(32)]


def test_verdicts_without_their_calls_are_named(run: Run, pairs: Path) -> None:
    judge(run, pairs)
    for file in OUT.with_suffix(".calls").iterdir():
        file.unlink()
    assert "or verdicts whose calls are gone" in judge(run, pairs).said[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pairs.jsonl", "--method", "vote"], "verdicts.jsonl holds verdicts of average"),
        (["pairs.jsonl", "--labels", "X,Y"], "verdicts of another model, prompt or data"),
        (["pairs.jsonl", "--prompt", "modified-direct"], "has no call on q0"),
        (["other.jsonl"], "has no call on x0; the file goes on with q0"),
        (["changed.jsonl"], "has no call on q0"),
        (["part.jsonl"], "items that are not in the data or not in its order, such as q20"),
        (["pairs.jsonl", "--model", "simulated/judge?slot=2"], "verdicts of another model"),
    ],
)
def test_foreign_verdicts_are_refused_before_any_call(
    arguments: list[str], said: str, run: Run, pairs: Path
) -> None:
    write_lines("other.jsonl", [pair(number, id=f"x{number}") for number in range(30)])
    write_lines("changed.jsonl", [pair(number, prompt="Which?") for number in range(30)])
    write_lines("part.jsonl", [pair(number) for number in range(20)])
    judge(run, pairs)
    before = OUT.read_bytes()
    model = [] if "--model" in arguments else ["--model", SIMULATED]
    ran = run("judge", *arguments, *model, "--out", OUT)
    assert ran.code == 2
    assert said in ran.said[0]
    assert "Choose another --out, or delete the file" in ran.said[0]
    assert not re.search(r"[1-9]\d* calls made", ran.err)
    assert OUT.read_bytes() == before


def test_another_fitted_file_is_refused(run: Run, pairs: Path) -> None:
    calibrate = ["calibrate", "pride", pairs, "--model", SIMULATED, "--out"]
    run(*calibrate, "all.json")
    run(*calibrate, "ten.json", "--limit", "10")
    judge(run, pairs, "--method", "all.json")
    before = OUT.read_bytes()
    ran = judge(run, pairs, "--method", "ten.json")
    assert ran.code == 2
    assert "another verdict on q0, from a different fitted file" in ran.err
    assert OUT.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"a note of mine\n", b"a note", b'{"id": 1}\n', b'{"item_id":"\xff"}\n']
)
def test_a_file_of_something_else_is_never_touched(content: bytes, run: Run, pairs: Path) -> None:
    OUT.write_bytes(content)
    ran = judge(run, pairs)
    assert ran.code == 2
    assert "verdicts.jsonl holds something other than verdicts" in ran.err
    assert OUT.read_bytes() == content


def test_verdicts_whose_calls_are_gone_are_not_paid_for_again(run: Run, pairs: Path) -> None:
    judge(run, pairs)
    before = OUT.read_bytes()
    ran = judge(run, pairs, "--calls", "elsewhere")
    assert ran.code == 2
    assert "elsewhere has no call on q0" in ran.err
    assert OUT.read_bytes() == before


def test_a_device_is_written_as_a_stream(run: Run, pairs: Path) -> None:
    assert run("judge", pairs, "--model", SIMULATED, "--out", "/dev/null").code == 0
    assert not Path("/dev/null.calls").exists()


def test_two_processes_do_not_write_one_file(run: Run, pairs: Path, undisturbed: bytes) -> None:
    with OUT.open("wb") as held:
        lock(held)
        ran = judge(run, pairs, "--calls", "elsewhere")
        assert ran.code == 2
        assert "verdicts.jsonl is being written by another process" in ran.err
        assert OUT.read_bytes() == b""
    assert judge(run, pairs, "--calls", "elsewhere").code == 0
    assert OUT.read_bytes() == undisturbed


def test_what_a_killed_process_left_beside_the_file_is_removed(
    run: Run, pairs: Path, folder: Path
) -> None:
    temporary_for(OUT).write_bytes(b"half")
    assert judge(run, pairs).code == 0
    assert {path.name for path in folder.iterdir()} == {
        "pairs.jsonl",
        "verdicts.jsonl",
        "verdicts.calls",
    }


def test_a_full_disk_is_told_with_the_file(folder: Path) -> None:
    def write_to_a_full_disk(simulated: us.Judge) -> None:
        with VerdictFile(OUT, simulated, Path("calls")) as file:
            file._file.close()
            file._file = os.fdopen(os.open("/dev/full", os.O_RDWR), "r+b")
            file.write(b'{"item_id":"q0"}\n')

    said = "cannot write verdicts.jsonl: No space left"
    with us.Judge(SIMULATED) as simulated, pytest.raises(RunDirectoryError, match=said):
        write_to_a_full_disk(simulated)


def test_calls_of_audit_are_used(run: Run, pairs: Path) -> None:
    assert run("audit", pairs, "--model", SIMULATED, "--out", "run").code == 0
    before = Path("run/metrics.json").read_bytes()
    ran = judge(run, pairs, "--calls", "run")
    assert ran.code == 0
    assert counts(ran).startswith("0 calls made, 60 reused")
    assert not Path("verdicts.calls").exists()
    assert Path("run/metrics.json").read_bytes() == before


def test_a_dry_run_prices_without_a_key_and_writes_nothing(
    run: Run, pairs: Path, folder: Path
) -> None:
    ran = judge(run, pairs, "--dry-run", model="openai/gpt-4.1-mini")
    assert ran.code == 0
    assert "60 calls for 60 questions: 0 recorded, 60 to make" in ran.out
    assert "cost $0.0" in ran.out
    assert {path.name for path in folder.iterdir()} == {"pairs.jsonl"}


@pytest.mark.parametrize("command", ["audit", "judge"])
def test_a_spent_budget_names_a_command_that_goes_on(
    command: str, run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines("few.jsonl", [pair(number) for number in range(12)])
    write_prices(1)
    server.start()
    out = "run" if command == "audit" else "verdicts.jsonl"
    words = f"{command} few.jsonl --model {Server.model} --out {out} --budget 0.002 --prices prices.json"
    monkeypatch.setattr("sys.argv", ["unswayed", *words.split()])
    ran = run(*words.split())
    assert ran.code == 3
    assert 0 < server.received < 24
    assert command == "audit" or " of 12 items were judged: " in ran.err
    (said,) = [line for line in ran.said if "to resume: " in line]
    again = shlex.split(said.partition("to resume: unswayed ")[2])
    assert again.count("--budget") == 1
    assert run(*again).code == 0
    assert server.received == 24


def test_a_fatal_failure_ends_with_what_was_judged(run: Run, folder: Path, server: Server) -> None:
    data = write_lines("many.jsonl", [pair(number) for number in range(100)])
    server.start({"kind": "status", "status": 401, "on": list(range(150, 300))})
    ran = judge(run, data, "--max-connections", "1", model=Server.model)
    assert ran.code == 3
    assert ids() == [f"q{number}" for number in range(len(ids()))]
    server.start()
    assert judge(run, data, model=Server.model).code == 0
    assert ids() == [f"q{number}" for number in range(100)]


def test_unfinished_output_line_is_not_verdict(
    run: Run, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unswayed.cli.verdict_file.LARGEST", 5000)
    out = Path("verdicts.jsonl")
    out.write_text('{"item_id":"' + "q" * 9000)
    ran = run("judge", pairs, "--model", SIMULATED, "--out", out)
    assert ran.code == 2
    assert "holds something other than verdicts and was not changed" in ran.err
    assert len(out.read_text()) > 9000
