"""Run directories that cannot be used, belong to something else, are full, shared or interrupted."""

import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cli_commands import (
    SIMULATED,
    Ran,
    Run,
    Server,
    choice,
    forked,
    pair,
    write_lines,
)

import needs
from forked import Forked, command
from unswayed.base.errors import UnswayedError
from unswayed.store import CallStore


def audit(run: Run, data: Path, *more: str | Path, model: str = SIMULATED) -> Ran:
    return run("audit", data, "--model", model, "--resamples", "100", *more)


def test_a_file_in_the_place_of_the_directory_is_refused(run: Run, pairs: Path) -> None:
    Path("taken").write_text("mine")
    for out in ("taken", "taken/run"):
        ran = audit(run, pairs, "--out", out)
        assert ran.code == 2
        assert "is a file, not a directory" in ran.err
    assert Path("taken").read_text() == "mine"


UNPRIVILEGED = """
import os, sys
from pathlib import Path
from unswayed.cli import main
command = ["audit", "pairs.jsonl", "--model", "simulated/judge", "--resamples", "100"]
assert main([*command, "--out", "run"]) == 0  # loads every module while it can
Path("locked").mkdir(mode=0o555)
for path in (*Path("run").iterdir(), Path("run")):
    path.chmod(0o555)
if os.geteuid() == 0:  # the superuser may write anywhere
    os.setuid(65534)
for out in ("locked", "locked/run", "run"):
    print(main([*command, "--out", out]), file=sys.stderr)
print(main([*command, "--out", "run", "--dry-run"]), file=sys.stderr)
"""


def test_a_read_only_directory_is_refused_and_can_be_priced(pairs: Path) -> None:
    with needs.open_folder() as place:
        shutil.copy(pairs, place)
        done = subprocess.run(
            [sys.executable, "-c", UNPRIVILEGED],
            cwd=place,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        (place / "run").chmod(0o755)
    *_, first, code, second, code2, third, code3, priced = done.stderr.splitlines()
    assert [code, code2, code3, priced] == ["2", "2", "2", "0"]
    for said, out in ((first, "locked"), (second, "locked/run"), (third, "run")):
        assert said == f"unswayed: cannot write to {out}: Permission denied. Choose another --out."
    assert "60 recorded, 0 to make" in done.stdout


@needs.linux
def test_a_directory_that_cannot_be_made_is_refused(run: Run, pairs: Path) -> None:
    ran = audit(run, pairs, "--out", "/proc/unswayed")
    assert ran.code == 2
    assert "cannot write to /proc/unswayed" in ran.err


def test_another_model_or_other_data_are_refused_untouched(run: Run, pairs: Path) -> None:
    assert audit(run, pairs, "--out", "run").code == 0
    before = Path("run/metrics.json").read_bytes()
    other = audit(run, pairs, "--out", "run", model="simulated/judge?slot=2")
    assert other.code == 2
    assert "holds calls of model" in other.err
    data = write_lines("mcq.jsonl", [choice(number) for number in range(30)])
    ran = audit(run, data, "--out", "run")
    assert ran.code == 2
    assert "holds calls on other data" in ran.err
    rows = [pair(number) for number in range(1, 30)]
    changed = write_lines("changed.jsonl", [pair(0, prompt="Another question?"), *rows])
    assert "item 'q0' of changed has changed since" in audit(run, changed, "--out", "run").err
    assert Path("run/metrics.json").read_bytes() == before


def test_another_prompt_gets_a_directory_of_its_own(run: Run, pairs: Path) -> None:
    command = ["audit", pairs, "--model", SIMULATED, "--resamples", "100"]
    template = Path("my prompt.jinja")
    template.write_text(
        "{{ question }}\n{% for c in candidates %}{{ c.label }}: {{ c.text }}\n{% endfor %}"
        "{{ labels | join(' or ') }}?"
    )
    for more in (
        [],
        ["--prompt", "modified-direct"],
        ["--labels", "X,Y"],
        ["--template", template],
        ["--shots", write_lines("shots.jsonl", [pair(99)])],
    ):
        assert run(*command, *more).code == 0, more
    assert {path.name for path in Path("runs").iterdir()} == {
        "pairs-simulated-judge",
        "pairs-simulated-judge-modified-direct",
        "pairs-simulated-judge-X-Y",
        "pairs-simulated-judge-my-prompt",
        "pairs-simulated-judge-shots",
    }


@pytest.mark.parametrize("more", [["--prompt", "modified-direct"], ["--labels", "X,Y"]])
def test_another_prompt_in_the_same_directory_is_refused(
    more: list[str], run: Run, pairs: Path
) -> None:
    assert audit(run, pairs, "--out", "run").code == 0
    before = {path.name: path.read_bytes() for path in Path("run").iterdir()}
    ran = audit(run, pairs, "--out", "run", *more)
    assert ran.code == 2
    assert "run holds an audit with a different prompt" in ran.err
    assert {path.name: path.read_bytes() for path in Path("run").iterdir()} == before
    assert audit(run, pairs, "--out", "run", "--methods", "vote").code == 0


def test_the_same_data_may_grow(run: Run, pairs: Path) -> None:
    assert audit(run, pairs, "--out", "run", "--limit", "10").code == 0
    ran = audit(run, pairs, "--out", "run", "--json")
    assert ran.json["calls"]["cached"] == 20
    assert ran.json["calls"]["made"] == 40


KEPT = {"run.json", "metrics.json", "answers.json", "flipped.json", "report.html", "SHA256SUMS"}


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name in KEPT}


@pytest.mark.parametrize(
    "poorer",
    [
        ["--methods", "direct"],
        ["--limit", "10"],
        ["--orders", "identity"],
        ["--seed", "3"],
        ["--gold-ties", "class"],
    ],
)
def test_other_settings_keep_finished_audit(poorer: list[str], run: Run, pairs: Path) -> None:
    richer = ("--out", "run", "--methods", "direct,average,pride")
    assert audit(run, pairs, *richer).code == 0
    before = files_of(Path("run"))
    assert before.keys() == KEPT
    ran = audit(run, pairs, *richer, *poorer)
    assert ran.code == 0
    (earlier,) = Path("run/earlier").iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d{6}", earlier.name)
    assert ran.said[0] == f"unswayed: the earlier audit is kept in {earlier}."
    assert files_of(earlier) == before
    assert files_of(Path("run"))["metrics.json"] != before["metrics.json"]
    assert run("report", "run", earlier, "--out", "both.html").code == 0


def test_same_settings_keep_nothing_earlier(run: Run, pairs: Path) -> None:
    for _ in range(2):
        assert audit(run, pairs, "--out", "run", "--methods", "all").code == 0
    assert not Path("run/earlier").exists()


def test_audits_of_one_second_are_all_kept(
    run: Run, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = ("10", "20", "30", "10", "20")
    made = []
    for limit in limits:
        assert audit(run, pairs, "--out", "run", "--limit", limit).code == 0
        record = json.loads(Path("run/run.json").read_text())
        text = json.dumps(record | {"created": "2026-01-01T00:00:00+00:00"})
        Path("run/run.json").write_text(text)
        made.append(text)
    kept = [(path / "run.json").read_text() for path in sorted(Path("run/earlier").iterdir())]
    assert sorted(kept) == sorted(made[:4])


def test_created_of_damaged_run_names_no_other_folder(run: Run, pairs: Path) -> None:
    assert audit(run, pairs, "--out", "run").code == 0
    record = json.loads(Path("run/run.json").read_text())
    Path("run/run.json").write_text(json.dumps(record | {"created": "../../elsewhere"}))
    assert audit(run, pairs, "--out", "run", "--limit", "10").code == 0
    assert [path.name for path in Path("run/earlier").iterdir()] == ["undated"]


def test_unfinished_audit_keeps_finished_one(run: Run, folder: Path, server: Server) -> None:
    data = write_lines("grown.jsonl", [pair(number) for number in range(40)])
    held = (data, "--out", "run", "--limit", "30", "--methods", "average")
    server.start()
    assert audit(run, *held, model=Server.model).code == 0
    before = files_of(Path("run"))
    server.start({"kind": "status", "status": 401})
    for larger in ("40", "35"):
        wanted = ("--protocol", "all", "--limit", larger)
        assert audit(run, data, "--out", "run", *wanted, model=Server.model).code == 3
    (earlier,) = Path("run/earlier").iterdir()
    assert files_of(earlier) == before
    assert not json.loads(Path("run/run.json").read_text())["finished"]
    again = audit(run, *held, "--json", model=Server.model)
    assert again.code == 0
    assert again.json["methods"] == json.loads(before["metrics.json"])["methods"]


def dies_after(steps: int) -> None:
    """Kill this process once it has linked, renamed, replaced or made so many files."""
    left = itertools.count(steps, -1)

    def counted(function: Callable[..., object]) -> Callable[..., object]:
        def step(*args: object, **named: object) -> object:
            if not next(left):
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **named)

        return step

    for name in ("hardlink_to", "rename", "replace", "mkdir"):
        setattr(Path, name, counted(getattr(Path, name)))


@pytest.fixture
def finished(run: Run, pairs: Path) -> dict[str, bytes]:
    """The files of a finished audit in `run`."""
    assert audit(run, pairs, "--out", "run").code == 0
    return files_of(Path("run"))


FEWER = ("audit", "pairs.jsonl", "--model", SIMULATED, "--resamples", "100", "--out", "run")


@pytest.mark.parametrize("steps", [2, 4, 9, 10, 12])
def test_kill_while_keeping_loses_no_finished_audit(
    steps: int, run: Run, finished: dict[str, bytes]
) -> None:
    fewer = (*FEWER, "--limit", "10")
    killed = forked(*fewer, first=lambda: dies_after(steps))
    held = list(Path("run/earlier").glob("2*")) or [Path("run")]
    assert killed.code == -signal.SIGKILL
    assert [files_of(folder) for folder in held] == [finished]
    assert run(*fewer).code == 0
    (earlier,) = Path("run/earlier").iterdir()
    assert files_of(earlier) == finished
    assert json.loads(Path("run/metrics.json").read_text())["data"]["n_items"] == 10


@pytest.mark.parametrize("steps", [12, 13, 14, 15])
def test_half_written_audit_is_not_kept_as_earlier(
    steps: int, run: Run, finished: dict[str, bytes]
) -> None:
    killed = forked(*FEWER, "--limit", "10", first=lambda: dies_after(steps))
    assert killed.code == -signal.SIGKILL
    assert run("report", "run").code == 2
    assert run(*FEWER, "--limit", "20").code == 0
    (earlier,) = Path("run/earlier").iterdir()
    assert files_of(earlier) == finished


def test_all_keeps_costly_methods_that_the_finished_audit_holds(run: Run, folder: Path) -> None:
    data = write_lines("five.jsonl", [choice(number, 5) for number in range(8)])
    assert audit(run, data, "--out", "run", "--methods", "all,repeat").code == 0
    whole = ("--out", "run", "--methods", "all")
    assert "0 to make" in audit(run, data, *whole, "--dry-run").out
    again = audit(run, data, *whole, "--json")
    assert again.code == 0
    assert "repeat" in again.json["methods"]
    assert "adds 20 calls per item" in again.json["skipped"]["average:layouts=all"]
    assert again.json["calls"]["made"] == 0


def test_a_damaged_pool_is_refused_and_left_as_it_is(run: Run, pairs: Path) -> None:
    Path("run").mkdir()
    Path("run/calls.sqlite").write_bytes(b"this is no database" * 100)
    ran = audit(run, pairs, "--out", "run")
    assert ran.code == 2
    assert "calls.sqlite" in ran.err
    assert Path("run/calls.sqlite").read_bytes().startswith(b"this is no database")


def test_a_directory_that_another_process_writes_is_refused(
    run: Run, pairs: Path, folder: Path
) -> None:
    code = (
        "import sys\nfrom unswayed.store import CallStore\n"
        "with CallStore.open('run'):\n    print('open', flush=True)\n    sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        ran = audit(run, pairs, "--out", "run")
        assert ran.code == 2
        assert f"is being written by process {other.pid}" in ran.err
        assert audit(run, pairs, "--out", "run", "--dry-run").code == 0  # reading is allowed
        other.communicate("")
    assert audit(run, pairs, "--out", "run").code == 0


# --- a full disk -------------------------------------------------------------------------------


def with_room_for(n_bytes: int, *arguments: str | Path) -> Ran:
    """Run a command that may not write files larger than this."""
    limits = (n_bytes, n_bytes)
    return forked(*arguments, first=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits))


@pytest.mark.parametrize("kib", [2, 400])
def test_full_disk_is_reported_and_same_command_continues(kib: int, run: Run) -> None:
    data = write_lines("many.jsonl", [pair(number) for number in range(300)])
    ran = with_room_for(kib * 1024, "audit", data, "--model", SIMULATED, "--out", "run")
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert len(ran.said) == 1
    assert "calls.sqlite" in ran.said[0]
    assert "run the same command again" in ran.said[0]
    assert not Path("run/metrics.json").exists()
    kept = 0
    if kib > 100:
        with CallStore.open("run", read_only=True) as store:
            kept = len(store)
    again = audit(run, data, "--out", "run", "--json")
    assert again.code == 0
    assert again.json["calls"]["cached"] == kept
    assert again.json["calls"]["made"] == 600 - kept


def test_a_full_disk_leaves_no_half_written_results(run: Run, pairs: Path) -> None:
    assert audit(run, pairs, "--out", "run").code == 0
    before = {path.name: path.read_bytes() for path in Path("run").glob("*.json")}
    ran = with_room_for(2048, "report", "run", "--out", "report.html")
    assert ran.code == 2
    assert ran.err.startswith("unswayed: cannot write report.html: ")
    assert not Path("report.html").exists()
    assert {path.name: path.read_bytes() for path in Path("run").glob("*.json")} == before


# --- interrupts --------------------------------------------------------------------------------


@pytest.fixture
def slow(request: pytest.FixtureRequest, server: Server) -> Server:
    """A server that answers after 0.1 s, so that a run of 400 calls takes a while."""
    says = {"say": request.param} if hasattr(request, "param") else {}
    server.start(latency_s=0.1, **says)
    return server


@pytest.fixture
def begun(many: Path, slow: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    """An audit in a process of its own that has made its first calls."""
    options = ("--model", Server.model, "--out", "run", "--max-connections", "2")
    process = command(tmp_path_factory.mktemp("said"), "audit", many, *options)
    deadline = time.monotonic() + 60
    recorded = 0
    while not recorded:
        assert process.is_alive, process.err.read_text()
        assert time.monotonic() < deadline
        with suppress(UnswayedError), CallStore.open("run", read_only=True) as store:
            recorded = len(store)
        time.sleep(0.02)
    yield process
    process.kill()


@pytest.fixture
def many(folder: Path) -> Path:
    return write_lines("many.jsonl", [pair(number) for number in range(200)])


def test_one_ctrl_c_keeps_finished_work_for_the_same_command(
    run: Run, many: Path, slow: Server, begun: Forked
) -> None:
    begun.send(signal.SIGINT)
    assert begun.code() == 130
    assert "Traceback" not in begun.err.read_text()
    metrics = json.loads(Path("run/metrics.json").read_text())
    made = metrics["calls"]["made"]
    assert 0 < made < 400
    assert metrics["calls"]["planned"] == 400
    assert json.loads(Path("run/run.json").read_text())["interrupted"] is True
    paid = slow.received
    slow.start()
    ran = audit(run, many, "--out", "run", "--json", model=Server.model)
    assert ran.code == 0
    assert ran.json["calls"]["cached"] == made
    assert slow.received == 400 - made
    assert paid - made <= 2  # what was in flight


@pytest.mark.parametrize("slow", [lambda _: "Both have their merits."], indirect=True)
def test_ctrl_c_leaves_replies_that_await_a_second_call(begun: Forked) -> None:
    begun.send(signal.SIGINT)
    assert begun.code() == 130
    told = json.loads(Path("run/metrics.json").read_text())["calls"]
    assert 0 < told["awaiting"] == told["made"] < 400
    assert (told["unparsed"], told["replies"]) == (0, 0)
    assert " still await" in begun.out.read_text()
    assert "could not be read, so" not in begun.out.read_text()


def test_ctrl_c_twice_leaves_at_once_and_loses_no_recorded_call(
    run: Run, many: Path, slow: Server, begun: Forked
) -> None:
    begun.send(signal.SIGINT)
    begun.send(signal.SIGINT)
    assert begun.code() == 130
    assert "Traceback" not in begun.err.read_text()
    with CallStore.open("run", read_only=True) as store:
        kept = len(store)
    assert kept > 0
    slow.start()
    ran = audit(run, many, "--out", "run", "--json", model=Server.model)
    assert ran.json["calls"]["cached"] == kept
    assert slow.received == 400 - kept


def test_ctrl_c_while_results_are_computed_stops_at_once(
    run: Run, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("unswayed.auditing.measurement.evaluate", interrupted)
        ran = audit(run, pairs, "--out", "run")
    assert ran.code == 130
    assert ran.said == ["unswayed: interrupted. Recorded calls will not be repeated."]
    assert audit(run, pairs, "--out", "run", "--json").json["calls"]["made"] == 0
