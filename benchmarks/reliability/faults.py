"""Servers that misbehave: what an audit makes of each of some hundred ways.

    python benchmarks/reliability/faults.py [--only WORD] [--memory-mb 300]

Each way is one run of `unswayed audit` in a process of its own, against a server in this one. Two of
the four items get good answers; the calls about the other two meet the fault. Printed for each: the
verdicts on those two items, what was counted, seconds, peak memory, exit code and message. The last
line says how many ways broke a rule:

- a call that failed has no verdict, and is counted (as failed, or the run says why it stopped);
- the good items have their verdicts, unless the run stopped;
- no traceback, no hang (60 s), no more memory than allowed;
- the key is nowhere: not in the run directory, not in what was printed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from evidence_table import Table, add_write
from reliability.fault_modes import modes
from reliability.faulty_server import KEY, FaultyServer, Mode
from unswayed.store.records import SEALED

N_FAULTY: Final = 4
N_GOOD: Final = 4
LONGEST_S: Final = 60.0
TIE_CODE: Final = -2


@dataclass(frozen=True)
class Outcome:
    """Outcome of one mode; `broken` names the rules that did not hold."""

    mode: str
    verdicts: int
    calls: Mapping[str, Any]
    seconds: float
    peak_mb: float | None
    code: int
    message: str
    broken: tuple[str, ...] = field(default=())


def write_items(path: Path) -> Path:
    """Two items that meet the fault, and two that do not."""
    rows = [
        {
            "id": f"{kind}-{number}",
            "prompt": f"{word} question {number}?",
            "candidates": [f"first {number}", f"second {number}"],
            "gold": 0,
        }
        for kind, word in (("faulty", "FAULTY"), ("good", "Fine"))
        for number in range(2)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def command(mode: Mode, items: Path, out: Path) -> list[str]:
    return [
        *("audit", str(items), "--model", "openai-api/faulty/m", "--out", str(out)),
        *("--resamples", "100", "--timeout", "1", "--max-retries", "1", "--patience", "2"),
        *mode.options,
    ]


def environment(server: FaultyServer) -> dict[str, str]:
    return {
        **os.environ,
        "FAULTY_BASE_URL": f"http://127.0.0.1:{server.port}/v1",
        "FAULTY_API_KEY": KEY,
    }


def run_apart(arguments: Sequence[str], env: Mapping[str, str]) -> tuple[int, str, float | None]:
    """Exit code, all output, and peak memory in MB of a process of its own."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "unswayed", *arguments], stdout=output, stderr=output, env=env
        )
        ends = time.monotonic() + LONGEST_S
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > ends:
                process.kill()
            time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    return process.returncode, text, usage.ru_maxrss / 1024


def run_here(arguments: Sequence[str], env: Mapping[str, str]) -> tuple[int, str, float | None]:
    """The same in this process, for tests; memory is not measured."""
    from unswayed.cli import main as unswayed

    before = dict(os.environ)
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    os.environ.update(env)
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = unswayed(list(arguments))
    finally:
        os.environ.clear()
        os.environ.update(before)
    output.seek(0)
    return code, output.read(), None


Runner = Callable[[Sequence[str], Mapping[str, str]], tuple[int, str, float | None]]


def observe(
    mode: Mode, server: FaultyServer, folder: Path, *, run: Runner = run_apart, most_mb: float = 300
) -> Outcome:
    """Run an audit against one mode and check every rule."""
    items, out = write_items(folder / "items.jsonl"), folder / "run"
    server.serve(mode)
    started = time.monotonic()
    code, text, peak_mb = run(command(mode, items, out), environment(server))
    seconds = time.monotonic() - started
    calls = read_json(out / "metrics.json").get("calls", {})
    record = read_json(out / "run.json")
    faulty, good = verdicts(out, "faulty"), verdicts(out, "good")
    broken = [
        *judged(mode, calls, faulty, good, stopped=bool(record.get("fatal"))),
        *(["a traceback"] if "Traceback" in text else []),
        *(["it hung"] if code < 0 else []),
        *(["the exit code"] if code != (0 if mode.expected in FINISHED else 3) else []),
        *(["memory"] if peak_mb is not None and peak_mb > most_mb else []),
        *(["the key leaked"] if leaked(out, text) else []),
    ]
    said = [line for line in text.splitlines() if line.startswith("unswayed: ")]
    return Outcome(
        mode.name, faulty, calls, seconds, peak_mb, code, " ".join(said[:1]), tuple(broken)
    )


FINISHED: Final = ("answered", "unparsed", "refused")


def judged(
    mode: Mode, calls: Mapping[str, Any], faulty: int, good: int, *, stopped: bool
) -> Iterator[str]:
    """Rules about counts that do not hold."""
    if mode.expected != "answered" and faulty:
        yield "a verdict from a failure"
    if mode.expected == "answered" and faulty != N_FAULTY:
        yield "an answer was lost"
    if mode.expected == "failed" and not stopped and calls.get("failed") != N_FAULTY:
        yield "failures were not counted"
    if mode.expected in {"refused", "unparsed"} and calls.get("unparsed") != N_FAULTY:
        yield "unparsed answers were not counted"
    if mode.expected == "refused" and calls.get("refused") != N_FAULTY:
        yield "refusals were not counted"
    if good != N_GOOD and not stopped:
        yield "a good answer was lost"


def read_json(path: Path) -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return loaded


def verdicts(out: Path, kind: str) -> int:
    """Calls about items of a kind that have a verdict."""
    if not (out / "answers.json").exists():
        return 0
    parts = json.loads((out / "answers.json").read_text(encoding="utf-8"))
    return sum(
        choice >= 0 or choice == TIE_CODE
        for part in parts
        for item, row in zip(part["item_ids"], part["choices"], strict=True)
        if item.startswith(kind)
        for choice in row
    )


def leaked(out: Path, text: str) -> bool:
    """Return True if the key is in what was printed or in any file, packed rows of the store included."""
    secret = KEY.encode()
    if KEY in text or any(secret in path.read_bytes() for path in out.glob("*")):
        return True
    if not (out / "calls.sqlite").exists():
        return False
    connection = sqlite3.connect(f"file:{out / 'calls.sqlite'}?mode=ro", uri=True)
    try:
        rows = [
            *connection.execute("SELECT request, response FROM calls"),
            *connection.execute("SELECT request, failure FROM failures"),
        ]
    finally:
        connection.close()
    blobs = [bytes(blob)[SEALED:] for row in rows for blob in row]
    plain = [blob if blob[:1] == b"{" else zlib.decompress(blob) for blob in blobs]
    return any(secret in blob for blob in plain)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="ways whose name contains this")
    parser.add_argument("--memory-mb", type=float, default=300.0)
    add_write(parser, "reliability")
    given = parser.parse_args()
    chosen = [mode for mode in modes() if given.only in mode.name]
    if not chosen:
        parser.error(f"no way has {given.only!r} in its name")
    server = FaultyServer()
    outcomes = []
    print(f"{'way':34} verdicts failed refused unparsed     s   MB exit  message")
    try:
        for mode in chosen:
            with tempfile.TemporaryDirectory() as folder:
                seen = observe(mode, server, Path(folder), most_mb=given.memory_mb)
            outcomes.append(seen)
            counts = [seen.calls.get(name, "-") for name in ("failed", "refused", "unparsed")]
            bad = f"BROKEN: {', '.join(seen.broken)}. " if seen.broken else ""
            print(
                f"{seen.mode:34} {seen.verdicts:8} {counts[0]:>6} {counts[1]:>7} {counts[2]:>8} "
                f"{seen.seconds:5.1f} {seen.peak_mb or 0:4.0f} {seen.code:4}  {bad}{seen.message[:150]}",
                flush=True,
            )
    finally:
        server.close()
    broken = sum(bool(seen.broken) for seen in outcomes)
    slowest = max(seen.seconds for seen in outcomes)
    largest = max(seen.peak_mb or 0 for seen in outcomes)
    print()
    table = Table(("kinds of failure", "broke a rule", "slowest (s)", "most memory (MB)"))
    table.add(len(outcomes), broken, f"{slowest:.1f}", f"{largest:.0f}")
    if given.write:
        table.keep("reliability", "faults")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
